"""Laws of the extracted checker: one verdict with checker.py (bent documents: test_mutation.py)."""

import json
from dataclasses import replace
from fractions import Fraction
from math import expm1, log, log1p
from pathlib import Path

import pytest
from tests.parameters import quick, slow

from dpledger.accounting.check import pld_checker
from dpledger.accounting.check.checker import check
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.check.statements import STOPPING, Run
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.accounting.proof.coq_theorem import BeyondTheorem, coq_theorem
from dpledger.accounting.proof.extracted import (
    ExtractedMissing,
    agrees,
    extracted_checker,
    run_extracted,
)
from dpledger.accounting.proof.prover import Search
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceNoise,
    LaplaceStep,
    Norm,
    Parties,
    PlanningCurator,
    PoissonSampled,
    PrivateTable,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    Sensitive,
    declared,
)
from dpledger.mechanisms.events import AccumulatedPoisson, SampledWithReplacement
from dpledger.mechanisms.private_table import BoundedColumn, TableShape
from dpledger.mechanisms.rounding import exact, total
from dpledger.mechanisms.sensitivity import (
    histogram,
    linearly_mapped,
    mean_of_bounded,
    mean_of_nonnegative,
    strongly_convex_argmin,
    sum_of_bounded,
)

needs_checker = pytest.mark.skipif(
    extracted_checker() is None, reason="dpledger-check is not built (make -C proofs checker)"
)
DOCUMENTS = Path(__file__).parents[2] / "golden" / "data" / "documents"
PATHS = sorted(DOCUMENTS.glob("*.certificate.json"))
COSTLY = ("sampled-tight", "batch-tight", "computed-sample", "privacy-loss-mixture")
"""Seconds each. The checker in Python verifies all of them always: test_golden_documents.py."""


def laplace_releases():
    """The certificate of two Laplace releases of counts, as a run makes them: on a lattice."""
    unit = declared(2, "two counts change", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
    curator = PlanningCurator()
    for k in (1, 2):
        counts = Sensitive(unit, exact(Fraction(100), width=3), parties=("only",), dimension=3)
        curator.release(counts, mechanism=LaplaceNoise(4.0), round=k, release="counts")
    return certify(curator.events, delta=0).to_json_bytes()


def laplace_release(sensitive):
    """The certificate of one Laplace release of this."""
    curator = PlanningCurator()
    curator.release(sensitive, mechanism=LaplaceNoise(4.0), round=1, release="totals")
    return certify(curator.events, delta=0).to_json_bytes()


def totals(width):
    """A row of so many sums of a hundred numbers, one a record, that doubles round."""
    moved = linearly_mapped(histogram(Adjacency.REPLACE_ONE, Norm.L1), Fraction(3))
    rounding = total(Fraction(3), 100, width=width)
    return Sensitive(moved, rounding, parties=("only",), dimension=width)


def verdict_of(document):
    try:
        return check(document)
    except (CertificateWrong, Undecided):
        return None


@needs_checker
def test_certificates_of_every_kind_are_proved(certificates, tmp_path):
    paths = []
    for name in certificates:
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_bytes(certificates[name].to_json_bytes())
    for path, found in zip(paths, run_extracted(paths), strict=True):
        assert agrees(found, check(path.read_bytes())), found.line


@needs_checker
def test_what_moves_nothing_needs_no_noise(tmp_path):
    def nothing(norm):
        return declared(0, "public", adjacency=Adjacency.REPLACE_ONE, norm=norm)

    moved = GaussianStep(declared(1, "x", adjacency=Adjacency.REPLACE_ONE), 9.0)
    free = [
        GaussianStep(nothing(Norm.L2), 0.0),
        DiscreteGaussianStep(nothing(Norm.L2), 0.0),
        LaplaceStep(nothing(Norm.L1), 0.0),
        DiscreteLaplaceStep(nothing(Norm.L1), 0.0),
        PureStep(nothing(Norm.L1), 0.0),
    ]
    again = [Repeated(step, 3) for step in free]
    runs = [*([step] for step in free), free, [*free, *again, moved], [free[0], again[0], moved]]
    documents = [
        certify(
            [Event(step, Context((), 1, "model", Audience.PUBLIC)) for step in steps], delta=delta
        ).to_json_bytes()
        for steps in runs
        for delta in ((Fraction(1, 10**5), 0) if len(steps) == 1 else (Fraction(1, 10**5),))
        if delta or isinstance(steps[0], LaplaceStep | DiscreteLaplaceStep | PureStep)
    ]
    paths = [tmp_path / f"{k}.json" for k in range(len(documents))]
    for path, text in zip(paths, documents, strict=True):
        path.write_bytes(text)
    for text, found in zip(documents, run_extracted(paths), strict=True):
        assert agrees(found, pld_checker.check(text)), found.line


ADDED, REPLACED = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE


def moved_by(far, relation, norm=Norm.L2):
    return declared(far, "x", adjacency=relation, norm=norm)


FREE = {
    "nobody drawn": PoissonSampled(GaussianStep(sum_of_bounded(1, ADDED), 8.0), 0.0),
    "nobody drawn, replaced": PoissonSampled(GaussianStep(sum_of_bounded(1, REPLACED), 8.0), 0.0),
    "nobody drawn, Laplace": PoissonSampled(LaplaceStep(moved_by(1, ADDED, Norm.L1), 8.0), 0.0),
    "nobody drawn, three times": AccumulatedPoisson(GaussianStep(moved_by(1, ADDED), 8.0), 0.0, 3),
    "nothing moves": PoissonSampled(GaussianStep(moved_by(0, ADDED), 8.0), 0.5),
    "no noise": PoissonSampled(GaussianStep(moved_by(0, ADDED), 0.0), 0.5),
    "no noise, Laplace": PoissonSampled(LaplaceStep(moved_by(0, ADDED, Norm.L1), 0.0), 0.5),
    "no noise, three times": AccumulatedPoisson(GaussianStep(moved_by(0, ADDED), 0.0), 0.5, 3),
    "a batch": SampledWithoutReplacement(GaussianStep(moved_by(0, REPLACED), 0.0), 2, 9),
    "a batch, Laplace": SampledWithoutReplacement(
        LaplaceStep(moved_by(0, REPLACED, Norm.L1), 0.0), 2, 9
    ),
    "drawn again": SampledWithReplacement(GaussianStep(moved_by(0, REPLACED), 0.0), 2, 9),
    "a mixture": GaussianMixtureStep(moved_by(0, REPLACED), moved_by(0, REPLACED), 0.5, 0.0),
    "a mixture of nobody": GaussianMixtureStep(moved_by(0, ADDED), moved_by(1, ADDED), 0.0, 8.0),
}
"""Samples of nobody, and of which nothing moves, with noise or without."""


def decided_alike(runs, tmp_path, **how):
    """Return what both checkers prove of certificates of these runs, as one."""
    documents = [certify(run, **how).to_json_bytes() for run in runs]
    paths = [tmp_path / f"{k}.json" for k in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_bytes(document)
    verdicts = [pld_checker.check(document) for document in documents]
    for verdict, found in zip(verdicts, run_extracted(paths), strict=True):
        assert agrees(found, verdict), found.line
    return verdicts


@needs_checker
@pytest.mark.parametrize("free", FREE)
def test_samples_that_nothing_of_a_record_reaches_are_free(free, tmp_path):
    event = Event(FREE[free], Context((), 1, "model", Audience.PUBLIC))
    runs = [[event], [event, replace(event, mechanism=Repeated(FREE[free], 3))]]
    for group in (1, 3):
        for verdict in decided_alike(runs, tmp_path, delta=Fraction(1, 10**5), group=group):
            assert verdict.values[1] == 0
    moments = isinstance(FREE[free], PoissonSampled | SampledWithoutReplacement)
    if moments and free != "nobody drawn, replaced":  # a whole order, or pure DP
        for verdict in decided_alike(runs, tmp_path, delta=Fraction(1, 10**5), tight=False):
            assert verdict.values[1] == 0


@needs_checker
@pytest.mark.parametrize(
    ("constant", "sampled", "rate", "gaussian", "relation"),
    [
        (1, 1, 0.0, True, ADDED),
        (0, 1, 0.5, False, REPLACED),
        *slow(
            *((1, 1, 0.0, True, REPLACED), (0, 1, 0.5, False, ADDED)),
            *((1, 0, 0.5, True, relation) for relation in (ADDED, REPLACED)),
            *((0, 1, 1.0, True, relation) for relation in (ADDED, REPLACED)),
        ),
    ],
)
def test_what_does_not_move_takes_no_noise(constant, sampled, rate, gaussian, relation, tmp_path):
    """Of a mixture one part of which does not move the other has all of the noise."""
    step = GaussianMixtureStep(moved_by(constant, relation), moved_by(sampled, relation), rate, 8.0)
    event = Event(step, Context((), 1, "model", Audience.PUBLIC))
    (verdict,) = decided_alike([[event]], tmp_path, delta=Fraction(1, 10**5))
    plain = replace(event, mechanism=GaussianStep(moved_by(1, relation), 8.0))
    exact = certify([plain], delta=Fraction(1, 10**5)).epsilon
    if gaussian:
        assert exact * (1 - 1e-9) <= verdict.values[1] <= exact * 1.001
    else:
        assert verdict.values[1] < exact


@needs_checker
@pytest.mark.parametrize(
    "path",
    quick([path for path in PATHS if path.name.partition(".")[0] not in COSTLY], PATHS),
    ids=lambda p: p.name,
)
def test_documents_of_all_releases_are_proved(path):
    (found,) = run_extracted([path])
    assert agrees(found, pld_checker.check(path.read_bytes())), found.line


@needs_checker
def test_texts_of_any_letters_are_read_alike(tmp_path):
    """Lists of texts are sorted by code points, however these are escaped in the document."""
    paths = []
    for reasons in (
        ("zz", "é"),
        ("a b", "a\tb"),
        ("\uffee", "\U0001f600"),
        ("~", "\x7f", "\ud800"),
    ):
        events = [
            Event(
                GaussianStep(declared(1, reason, adjacency=Adjacency.REPLACE_ONE), 2.0),
                Context((), 1, "mean", Audience.SERVER),
            )
            for reason in reasons
        ]
        paths.append(tmp_path / f"{len(paths)}.json")
        paths[-1].write_bytes(certify(events, delta=1e-5).to_json_bytes())
    for path, found in zip(paths, run_extracted(paths), strict=True):
        assert agrees(found, check(path.read_bytes())), found.line


@needs_checker
def test_a_witness_of_pure_dp_below_the_loss_is_proved_by_neither(tmp_path):
    """The odds of an answer, either way, and the ratio of densities: ε to nine digits, and less."""
    moved = declared(Fraction(7, 3), "example", adjacency=Adjacency.ZERO_OUT_ONE, norm=Norm.L1)
    exact = {
        RandomisedResponse(0.75, 3): log(6),
        RandomisedResponse(0.125, 4): log(7 / 3),
        RandomisedResponse(2.0**-60, 2): log(2**60 - 1),
        LaplaceStep(moved, 1.5): 14 / 9,
        DiscreteLaplaceStep(moved, 1.5): 4 / 3,  # whole numbers move by two
        Repeated(LaplaceStep(moved, 1.5), 9): 14,
        PureStep(moved, 1.5): 14 / 9,
        PoissonSampled(LaplaceStep(moved, 1.5), 0.25): log1p(expm1(14 / 9) / 4),
    }
    documents = []
    for mechanism, epsilon in exact.items():
        event = Event(mechanism, Context((), 1, "model", Audience.PUBLIC))
        document = certify([event], delta=0).to_json_bytes()
        for share in (Fraction(1), 1 + Fraction(1, 10**9), 1 - Fraction(1, 10**9)):
            bent = json.loads(document)
            bent["nodes"] = [node for node in bent["nodes"] if node["rule"] != "weaken"]
            leaf = Fraction(epsilon) * share
            for node in bent["nodes"]:
                for stated in (node["parameters"], node["conclusion"]):
                    if "epsilon" in stated:
                        one = node["rule"].endswith("pure") and isinstance(mechanism, Repeated)
                        stated["epsilon"] = str(leaf / 9 if one else leaf)
            documents.append(json.dumps(bent).encode() if share != 1 else document)
    paths = [tmp_path / f"{k}.json" for k in range(len(documents))]
    for path, text in zip(paths, documents, strict=True):
        path.write_bytes(text)
    refuses_thirds(paths, documents)


def refuses_thirds(paths, documents):
    """Assert that both checkers prove the first two of every three documents, and no third."""
    for k, (text, found) in enumerate(zip(documents, run_extracted(paths), strict=True)):
        if k % 3 < 2:
            assert agrees(found, check(text)), found.line
        else:
            assert found.word == "undecided", found.line
            assert verdict_of(text) is None


MOMENTS = {
    "add-remove": lambda rate, noise: PoissonSampled(
        GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), noise), rate
    ),
    "zero-out": lambda rate, noise: PoissonSampled(
        GaussianStep(sum_of_bounded(1, Adjacency.ZERO_OUT_ONE), noise), rate
    ),
    "batch": lambda rate, noise: SampledWithoutReplacement(
        GaussianStep(mean_of_bounded(1, 8, Adjacency.REPLACE_ONE), noise / 4), 8, int(8 / rate)
    ),
}
"""A Gaussian step of so much noise, in units of its sensitivity, on a sample of this share."""


@needs_checker
@pytest.mark.parametrize("of", MOMENTS)
@pytest.mark.parametrize("order", [2, 8, *slow(3, 63, 512)])
def test_a_moment_on_samples_is_proved_and_none_a_billionth_smaller(of, order, tmp_path):
    paths, documents = [], []
    for rate, noise in ((1 / 8, 1.0), (1 / 1024, 0.75), (1, 4.0), (1 / 2, 32.0)):
        event = Event(MOMENTS[of](rate, noise), Context((), 1, "model", Audience.PUBLIC))
        search = Search([event], Fraction(1, 10**5), 1)
        root = search._from_rdp(search.whole(Rdp(order, 0)))
        document = json.loads(Certificate((event,), root).to_json_bytes())
        for share in (Fraction(1), 1 + Fraction(1, 10**9), 1 - Fraction(1, 10**9)):
            bent = json.loads(json.dumps(document))
            for node in bent["nodes"]:
                for stated in (node["parameters"], node["conclusion"]):
                    if "epsilon" in stated:
                        over = (
                            share if node["conclusion"]["notion"] == "rdp" else Fraction(1001, 1000)
                        )
                        stated["epsilon"] = str(Fraction(stated["epsilon"]) * over)
            documents.append(json.dumps(bent).encode())
            paths.append(tmp_path / f"{len(paths)}.json")
            paths[-1].write_bytes(documents[-1])
    refuses_thirds(paths, documents)


@needs_checker
@pytest.mark.parametrize(
    "adjacency", [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE]
)
@pytest.mark.parametrize(
    "moved",
    [
        histogram,
        lambda a: mean_of_bounded(1, 50, a),
        lambda a: mean_of_nonnegative(Fraction(3, 2), 50, a),
        lambda a: strongly_convex_argmin(1.0, 0.25, 0.125, 50, a),
    ],
)
def test_what_moves_is_proved_to_move_so_far_and_no_less(moved, adjacency, tmp_path):
    event = Event(GaussianStep(moved(adjacency), 2.0), Context((), 1, "model", Audience.PUBLIC))
    document = certify([event], delta=1e-5).to_json_bytes()
    bent = json.loads(document)
    stated = bent["mechanisms"][0]["sensitivity"]
    less = str(Fraction(stated["squared"]) * Fraction(999, 1000))
    stated["squared"] = stated["derivation"]["squared"] = less
    bent["subject"] = Run(bent["mechanisms"], bent["events"]).subject
    paths = [tmp_path / "run.json", tmp_path / "less.json"]
    paths[0].write_bytes(document)
    paths[1].write_text(json.dumps(bent))
    proved, refused = run_extracted(paths)
    assert agrees(proved, check(document)), proved.line
    assert refused.line == "undecided: a step does not follow, or is beyond this checker"
    with pytest.raises(CertificateWrong, match="squared"):
        check(paths[1].read_bytes())


@needs_checker
def test_groups_pay_in_proportion_in_pure_dp(tmp_path):
    moved = declared(1, "example", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1)
    event = Event(LaplaceStep(moved, 4.0), Context(("a",), 1, "model", Audience.PUBLIC))
    path = tmp_path / "run.json"
    path.write_bytes(certify([event], delta=0, group=3).to_json_bytes())
    (found,) = run_extracted([path])
    assert found.line.endswith(" add-remove-one group 3 pure-dp 3/4"), found.line
    assert agrees(found, check(path.read_bytes()))


def before_events(family):
    """The certificate of two parties' runs, where each one's cost is enlarged before the largest
    counts: records are replaced, three of them."""
    moved = sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE)
    total = declared(1, "example", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1)
    pure = isinstance(family, ApproxDp)
    steps = [
        LaplaceStep(total, scale) if pure else GaussianStep(moved, scale) for scale in (40.0, 70.0)
    ]
    events = [
        Event(step, Context((party,), 1, "model", Audience.PUBLIC))
        for party, step in zip("ab", steps, strict=True)
    ]
    search = Search(events, Fraction(1, 10**5), 1)

    def enlarged(step):
        by = (2, 3) if pure else (4, 9)
        two = step.then("replace-one", step.at_cost(by[0] * step.cost))
        two = replace(two, adjacency=Adjacency.REPLACE_ONE)
        three = two.then("group", two.at_cost(by[1] * two.cost), size=3)
        three = replace(three, group=3)
        if not isinstance(family, Rdp):
            return three
        order = Fraction(family.order)
        return three.then("zcdp-rdp", Rdp(order, order * three.cost), order=order)

    one = Zcdp(0) if isinstance(family, Rdp) else family
    views = [enlarged(search._composed(exposure, one)) for exposure in search._exposures]
    whole = replace(search.run(views), adjacency=Adjacency.REPLACE_ONE)
    match family:
        case Gdp():
            root = search._by_gdp(whole)
        case Zcdp():
            root = search._by_zcdp(whole)
        case Rdp():
            root = search._from_rdp(whole)
        case _:
            root = whole
    return Certificate(tuple(events), root).to_json_bytes()


@needs_checker
@pytest.mark.parametrize("family", [Gdp(0), Zcdp(0), Rdp(8, 0), ApproxDp(0, 0)], ids=repr)
def test_groups_before_events_are_proved_and_no_cheaper_ones(family, tmp_path):
    document = before_events(family)
    paths = [tmp_path / "run.json"]
    paths[0].write_bytes(document)
    verdict = check(document)
    assert (verdict.group, verdict.adjacency) == (3, "replace-one")
    for k, node in enumerate(json.loads(document)["nodes"]):
        bent = json.loads(document)
        if node["rule"] in ("group", "replace-one"):
            stated = bent["nodes"][k]["conclusion"]
            (name,) = {"mu_squared", "rho", "epsilon"} & set(stated)
            stated[name] = str(Fraction(stated[name]) * Fraction(999, 1000))
        elif node["rule"] == "events":
            bent["nodes"][k]["conclusion"]["group"] = 2
        else:
            continue
        paths.append(tmp_path / f"{k}.json")
        paths[-1].write_text(json.dumps(bent))
    assert len(paths) == 6
    proved, *refused = run_extracted(paths)
    assert agrees(proved, verdict), proved.line
    for path, found in zip(paths[1:], refused, strict=True):
        assert found.word == "undecided", found.line
        assert verdict_of(path.read_bytes()) is None


MEAN, OTHER, OF_TEN = (
    GaussianStep(mean_of_bounded(1, count, Adjacency.REPLACE_ONE), noise)
    for count, noise in ((50, 0.5), (50, 0.75), (10, 0.25))
)
DRAWN = SampledWithoutReplacement(OF_TEN, 10, 1000)
SPLIT = {
    "different parts": (Parties((("a", (MEAN,)), ("b", (OTHER, OTHER)))),),
    "parts that repeat": (Parties((("a", (Repeated(MEAN, 3),)), ("b", (OTHER, MEAN)))),),
    "repeated, beside all": (Repeated(Parties((("a", (MEAN,)), ("b", (OTHER,)))), 3), MEAN),
    "a party without a part": (Parties((("a", (MEAN,)), ("b", ()))), OTHER),
    "samples": (Parties((("a", (Repeated(DRAWN, 5),)), ("b", (MEAN,)))), DRAWN),
}


@needs_checker
@pytest.mark.parametrize("of", quick(SPLIT.keys() - {"samples"}, SPLIT))
@pytest.mark.parametrize("named", [False, True])
def test_parts_by_party_are_taken_apart(of, named, tmp_path):
    events = [Event(m, Context((), 1, "model", Audience.PUBLIC)) for m in SPLIT[of]]
    if named:
        events += [
            Event(m, Context((party,), 2, "model", Audience.PUBLIC))
            for m, party in ((MEAN, "b"), (OTHER, "c"))
        ]
    document = certify(events, delta=1e-5).to_json_bytes()
    less = json.loads(document)
    for node in less["nodes"]:
        if node["rule"] == "events":
            assert len(node["premises"]) > 1
            node["premises"].pop()
    paths = [tmp_path / "run.json", tmp_path / "less.json"]
    paths[0].write_bytes(document)
    paths[1].write_text(json.dumps(less))
    proved, refused = run_extracted(paths)
    assert agrees(proved, check(document, more=pld_checker.RULES)), proved.line
    with pytest.raises(CertificateWrong):
        check(paths[1].read_bytes(), more=pld_checker.RULES)
    assert refused.word != "proved", refused.line


@needs_checker
def test_parts_towards_groups_of_different_sizes_do_not_add_up(tmp_path):
    bent = json.loads(before_events(Gdp(0)))
    (whole,) = (node for node in bent["nodes"] if node["rule"] == "events")
    _, second = whole["premises"]
    bent["nodes"][second]["parameters"]["size"] = 2
    bent["nodes"][second]["conclusion"]["group"] = 2
    stated = bent["nodes"][second]["conclusion"]
    stated["mu_squared"] = str(Fraction(stated["mu_squared"]) * Fraction(4, 9))
    path = tmp_path / "run.json"
    path.write_text(json.dumps(bent))
    (found,) = run_extracted([path])
    assert (found.word, verdict_of(path.read_bytes())) == ("undecided", None)


@needs_checker
def test_other_noise_beside_gaussian_noise_is_proved_in_zcdp_and_at_no_smaller_rho(tmp_path):
    """rho is squared / scale^2 / 2, of noise on numbers and on whole numbers."""
    moved = {
        norm: declared(Fraction(7, 3), "example", adjacency=Adjacency.ZERO_OUT_ONE, norm=norm)
        for norm in (Norm.L1, Norm.L2)
    }
    rho = {
        LaplaceStep(moved[Norm.L1], 1.5): Fraction(98, 81),
        DiscreteLaplaceStep(moved[Norm.L1], 3.5): Fraction(2, 9),
        Repeated(LaplaceStep(moved[Norm.L1], 3.5), 9): Fraction(2),
        GaussianStep(moved[Norm.L2], 2.0): Fraction(49, 72),
        DiscreteGaussianStep(moved[Norm.L2], 4.0): Fraction(49, 288),
    }
    events = [Event(m, Context((), 1, "model", Audience.PUBLIC)) for m in rho]
    document = certify(events, delta=1e-5, tight=False).to_json_bytes()
    (whole,) = (n for n in json.loads(document)["nodes"] if n["rule"] == "events")
    assert Fraction(whole["conclusion"]["rho"]) == sum(rho.values())
    names = {"laplace-zcdp", "discrete-laplace-zcdp", "discrete-gaussian-zcdp"}
    paths = [tmp_path / "run.json"]
    paths[0].write_bytes(document)
    for k, node in enumerate(json.loads(document)["nodes"]):
        if node["rule"] in names:
            bent = json.loads(document)
            stated = bent["nodes"][k]["conclusion"]
            stated["rho"] = str(Fraction(stated["rho"]) * Fraction(999, 1000))
            paths.append(tmp_path / f"{k}.json")
            paths[-1].write_text(json.dumps(bent))
    assert len(paths) == 5
    proved, *refused = run_extracted(paths)
    assert agrees(proved, check(document)), proved.line
    for path, found in zip(paths[1:], refused, strict=True):
        assert found.word == "undecided", found.line
        assert verdict_of(path.read_bytes()) is None


def filtered_run(noise, budget, group=1):
    """The certificate of three releases that a filter with this budget let happen."""
    moved = declared(2, "example", adjacency=Adjacency.ADD_REMOVE_ONE)
    events = [Event(Repeated(noise(moved, 8.0), 3), Context((), 1, "model", Audience.PUBLIC))]
    return certify(events, delta=1e-5, budget=budget, group=group).to_json_bytes()


def bent_filters(document):
    """Budgets above and below what was kept, and what the word about stopping is replaced by."""
    for number in ("1/9999", "10000"):
        bent = json.loads(document)
        (kept,) = [node for node in bent["nodes"] if node["rule"] == "filter"]
        kept["parameters"]["budget"] = number
        yield bent
        cost = {"gdp": "mu_squared", "zcdp": "rho", "rdp": "epsilon"}[kept["conclusion"]["notion"]]
        kept["conclusion"][cost] = number
        yield bent
    bent = json.loads(document)
    said = [text for text in bent["assumptions"] if "budget" in text or "decided" in text]
    bent["assumptions"] = [text for text in bent["assumptions"] if text not in said]
    yield bent
    bent["assumptions"] = sorted({*json.loads(document)["assumptions"], STOPPING})
    yield bent


@needs_checker
@pytest.mark.parametrize(
    ("noise", "budget", "group"),
    [
        *((GaussianStep, Gdp(1), group) for group in (1, 3)),
        *((GaussianStep, Zcdp(Fraction(1, 2)), group) for group in (1, 3)),
        (DiscreteGaussianStep, Zcdp(Fraction(1, 2)), 1),
        (GaussianStep, Rdp(8, 4), 1),
        (DiscreteGaussianStep, Rdp(Fraction(7, 2), 4), 1),
    ],
)
def test_what_a_filter_lets_happen_is_proved_of_its_budget_and_no_other(
    noise, budget, group, tmp_path
):
    document = filtered_run(noise, budget, group)
    written = [document, *(json.dumps(bent).encode() for bent in bent_filters(document))]
    paths = [tmp_path / f"{k}.json" for k in range(len(written))]
    for path, text in zip(paths, written, strict=True):
        path.write_bytes(text)
    proved, *refused = run_extracted(paths)
    assert agrees(proved, check(document)), proved.line
    for text, found in zip(written[1:], refused, strict=True):
        assert found.word != "proved", found.line
        assert verdict_of(text) is None


@needs_checker
def test_a_filter_that_the_conclusion_does_not_follow_from_is_wrong(tmp_path):
    """The budget is on a node of its own, and what is concluded is about the list."""
    bent = json.loads(filtered_run(GaussianStep, Gdp(1)))
    listed, last = bent["nodes"][-3], bent["nodes"][-1]
    last["premises"] = [listed_place := len(bent["nodes"]) - 3]
    assert bent["nodes"][listed_place] is listed
    assert listed["rule"] == "events"
    path = tmp_path / "run.json"
    path.write_text(json.dumps(bent))
    (found,) = run_extracted([path])
    assert found.line == "wrong: expected a conclusion that follows from the filter"
    with pytest.raises(CertificateWrong, match="follows from the filter"):
        check(path.read_bytes())


@needs_checker
def test_costs_add_up_at_one_renyi_order_and_at_no_smaller_sum(tmp_path):
    moved = {
        norm: declared(2, "example", adjacency=Adjacency.ADD_REMOVE_ONE, norm=norm)
        for norm in (Norm.L1, Norm.L2)
    }
    steps = (
        Repeated(GaussianStep(moved[Norm.L2], 8.0), 3),
        LaplaceStep(moved[Norm.L1], 8.0),
        DiscreteGaussianStep(moved[Norm.L2], 16.0),
    )
    events = [Event(step, Context((), 1, "model", Audience.PUBLIC)) for step in steps]
    document = certify(events, delta=1e-5, budget=Rdp(8, 4)).to_json_bytes()
    bent = json.loads(document)
    (added,) = [node for node in bent["nodes"] if node["rule"] == "composition"]
    # order times rho: three times 1/32, once 1/32, once 1/128
    assert Fraction(added["conclusion"]["epsilon"]) == 8 * (Fraction(4, 32) + Fraction(1, 128))
    added["conclusion"]["epsilon"] = "1"
    paths = [tmp_path / "run.json", tmp_path / "less.json"]
    paths[0].write_bytes(document)
    paths[1].write_text(json.dumps(bent))
    proved, refused = run_extracted(paths)
    assert agrees(proved, check(document)), proved.line
    assert refused.word == "undecided", refused.line
    with pytest.raises(CertificateWrong):
        check(paths[1].read_bytes())


@needs_checker
def test_losses_of_integer_vectors_are_proved(tmp_path):
    document = filtered_run(DiscreteGaussianStep, None)
    verdict = pld_checker.check(document)
    assert verdict.assumptions
    path = tmp_path / "run.json"
    path.write_bytes(document)
    (found,) = run_extracted([path])
    assert agrees(found, verdict), found.line


@needs_checker
@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "{}{}", '{"a":1,"a":2}', "1.5", "NaN", '{"a":1e3}', "01", "--1"),
        *('"\\ud800"', '"\x01"', '"\\x"', "\ufeff{}", "[" * 100_000, "1" * 19, "tru"),
    ],
)
def test_what_is_no_certificate_is_wrong(tmp_path, text):
    path = tmp_path / "document.json"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    assert run_extracted([path])[0].word == "wrong"


@needs_checker
def test_invalid_utf_8_is_wrong(certificates, tmp_path):
    document = certificates["one Gaussian step"].to_json_bytes()
    for k, bad in enumerate((b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2")):
        path = tmp_path / f"{k}.json"
        path.write_bytes(document.replace(b"model", b"mo" + bad + b"el"))
        assert run_extracted([path])[0].word == "wrong"
        assert verdict_of(path.read_bytes()) is None


def test_without_it_nothing_is_claimed(monkeypatch, tmp_path):
    monkeypatch.setattr("dpledger.accounting.proof.extracted.extracted_checker", lambda: None)
    with pytest.raises(ExtractedMissing, match="make -C proofs checker"):
        run_extracted([tmp_path])


@needs_checker
def test_laplace_releases_on_a_lattice_are_proved_and_no_narrower_lattice(tmp_path):
    enough = laplace_releases()
    step = json.loads(enough)["mechanisms"][0]["sensitivity"]["derivation"]
    assert (step["rule"], step["premises"][0]["rule"]) == ("lattice-l1", "computed-l1")
    narrow = json.loads(enough)
    for mechanism in narrow["mechanisms"]:
        tree = mechanism["sensitivity"]["derivation"]
        mechanism["sensitivity"]["squared"] = tree["squared"] = "4"  # nothing for the lattice
    paths = [tmp_path / "enough.json", tmp_path / "narrow.json"]
    for path, document in zip(paths, (enough, json.dumps(narrow).encode()), strict=True):
        path.write_bytes(document)
    proved, refused = run_extracted(paths)
    assert agrees(proved, check(enough)), proved.line
    assert refused.word != "proved"


@needs_checker
def test_who_waits_too_long_is_told(tmp_path):
    path = tmp_path / "far.json"
    step = GaussianStep(declared(30, "unit", adjacency=Adjacency.REPLACE_ONE), 1.0)
    event = Event(step, Context((), 1, "mean", Audience.SERVER))
    path.write_bytes(certify([event], delta=1e-5).to_json_bytes())
    with pytest.raises(ExtractedMissing, match=r"within 0\.1 seconds"):
        run_extracted([path], timeout=0.1)


@needs_checker
def test_laplace_sums_and_means_of_a_column_are_proved_and_no_smaller_rounding(tmp_path):
    shape = TableShape((("x", BoundedColumn(0, 1)),), 40, Adjacency.REPLACE_ONE)
    table = PrivateTable.planned(shape)
    asked = [table.sum("x", norm=Norm.L1), table.mean("x", norm=Norm.L1), totals(1)]
    documents = [laplace_release(sensitive) for sensitive in asked]
    for document in documents[1:]:  # nothing for what the row is rounded by
        bent = json.loads(document)
        computed = bent["mechanisms"][0]["sensitivity"]["derivation"]["premises"][0]
        assert computed["rule"] == "computed-l1"
        computed["squared"] = computed["premises"][0]["squared"]
        documents.append(json.dumps(bent).encode())
    documents.append(laplace_release(totals(2)))
    paths = [tmp_path / f"{k}.json" for k in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_bytes(document)
    found = run_extracted(paths)
    for document, one in zip(documents[:3], found, strict=False):
        assert agrees(one, check(document)), one.line
        assert "(LinearMap (" in coq_theorem(document)
    for document, one in zip(documents[3:5], found[3:5], strict=True):
        assert one.word != "proved"
        assert verdict_of(document) is None
    assert found[5].line == "undecided: beyond this checker: rounding of rows in l1"
    with pytest.raises(BeyondTheorem, match="width=2"):
        coq_theorem(documents[5])
