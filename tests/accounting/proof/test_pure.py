"""Law: at delta 0 the proved epsilon is the largest privacy loss, by counting outcomes alone."""

import json
from fractions import Fraction
from itertools import combinations, product
from math import comb, exp, expm1, inf, log, log1p

import pytest

from dpledger.accounting.check import checker
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.planning import UnattainableTarget
from dpledger.accounting.proof.certificate import Uncertifiable, certify
from dpledger.accounting.proof.planning import proved_noise_multiplier
from dpledger.accounting.proof.proved import NotProved, prove, proved, proved_guarantee
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    declared,
)

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE


def length(value, adjacency=REPLACE):
    return declared(value, "l1", adjacency=adjacency, norm=Norm.L1)


def events(*mechanisms, parties=()):
    return [
        Event(m, Context(parties, k, "model", Audience.SERVER)) for k, m in enumerate(mechanisms, 1)
    ]


def largest_ratio(first, second):
    return log(max(p / q for a, b in zip(first, second, strict=True) for p, q in ((a, b), (b, a))))


def laplace_density(centre, scale):
    """At points on and between the two centres 0 and 1; beyond them ratios stay."""
    return [exp(-abs(k / 8 - centre) / scale) for k in range(-8, 17)]


def discrete_laplace_masses(centre, scale):
    return [exp(-abs(k - centre) / scale) for k in range(-9, 10)]


def of_a_batch(values, batch, densities):
    """A sum of `batch` of these records, released with noise of density `densities[sum]`."""
    drawn = list(combinations(values, batch))
    parts = [densities(sum(records)) for records in drawn]
    return [sum(column) / len(drawn) for column in zip(*parts, strict=True)]


def sampled_masses(records, rate, densities):
    """The same of a Poisson sample of records that are worth one each."""
    weights = [comb(records, j) * rate**j * (1 - rate) ** (records - j) for j in range(records + 1)]
    parts = [[w * d for d in densities(j)] for j, w in enumerate(weights)]
    return [sum(column) for column in zip(*parts, strict=True)]


def wide_density(centre):
    return [exp(-abs(k / 2 - centre) / 2.0) for k in range(-10, 20)]


BRUTE = {
    "laplace": (
        LaplaceStep(length(1), 1.5),
        largest_ratio(laplace_density(0, 1.5), laplace_density(1, 1.5)),
    ),
    "discrete laplace": (
        DiscreteLaplaceStep(length(Fraction(5, 2)), 3.0),  # whole numbers move by two
        largest_ratio(discrete_laplace_masses(0, 3.0), discrete_laplace_masses(2, 3.0)),
    ),
    "answers": (RandomisedResponse(0.75, 3), largest_ratio([0.75, 1 / 8], [1 / 8, 0.75])),
    "unlikely answers": (RandomisedResponse(0.1, 4), largest_ratio([0.1, 0.3], [0.3, 0.1])),
    "even answers": (RandomisedResponse(0.25, 4), 0.0),
    "poisson": (
        PoissonSampled(LaplaceStep(length(1, ADD), 2.0), 0.25),
        largest_ratio(sampled_masses(1, 0.25, wide_density), wide_density(0)),
    ),
    "fixed batch": (
        SampledWithoutReplacement(LaplaceStep(length(1), 2.0), 2, 5),
        largest_ratio(
            of_a_batch((1, 0, 0, 0, 0), 2, wide_density),
            of_a_batch((0, 0, 0, 0, 0), 2, wide_density),
        ),
    ),
}


@pytest.mark.parametrize("name", BRUTE)
def test_the_proved_epsilon_is_the_largest_loss_and_three_times_that_for_three(name):
    mechanism, exact = BRUTE[name]
    for run, times in ((events(mechanism), 1), (events(mechanism, Repeated(mechanism, 2)), 3)):
        found, proof = proved_guarantee(run, delta=0)
        assert found.grade is Grade.PROVED
        assert proof.epsilon == found.epsilon.upper_float
        assert proof.epsilon == pytest.approx(times * exact, rel=1e-12)
        enclosed = guarantee(run, delta=0).epsilon
        assert enclosed.lower_float <= times * exact * (1 + 1e-12)
        assert enclosed.lower_float <= proof.epsilon <= enclosed.upper_float * (1 + 1e-15)


@pytest.mark.parametrize("size", [2, 3])
def test_groups_of_a_poisson_sample_pay_for_all_that_may_be_drawn(size):
    exact = largest_ratio(sampled_masses(size, 0.25, wide_density), wide_density(0))
    found = prove(events(BRUTE["poisson"][0]), delta=0, group=size)
    assert found.epsilon == pytest.approx(exact, rel=1e-12)
    assert (found.verdict.group, found.verdict.notion) == (size, "pure-dp")


def test_groups_of_a_fixed_batch_never_pay_less_than_what_counting_says():
    found = prove(events(BRUTE["fixed batch"][0]), delta=0, group=2).epsilon
    exact = largest_ratio(
        of_a_batch((1, 1, 0, 0, 0), 2, wide_density), of_a_batch((0, 0, 0, 0, 0), 2, wide_density)
    )
    assert exact <= found <= 1.2 * exact


def test_sampling_is_free_or_nothing_at_the_ends_of_the_rate():
    base = LaplaceStep(length(1, ADD), 2.0)
    assert prove(events(PoissonSampled(base, 1.0)), delta=0).epsilon == 0.5
    assert prove(events(PoissonSampled(base, 0.0)), delta=0).epsilon == 0
    tiny = prove(events(PoissonSampled(base, 2.0**-1000)), delta=0).epsilon
    assert 0 < tiny == pytest.approx(2.0**-1000 * expm1(0.5), rel=1e-12)


def test_a_record_pays_for_its_own_party_alone():
    one, two = LaplaceStep(length(1), 2.0), LaplaceStep(length(1), 3.0)
    run = [*events(one, parties=("north",)), *events(two, two, parties=("south",)), *events(two)]
    split = events(Parties((("north", (one,)), ("south", (two, two)))))
    assert prove(run, delta=0).epsilon == pytest.approx(1.0, rel=1e-15)
    assert prove(split, delta=0).epsilon == pytest.approx(2 / 3, rel=1e-15)


def test_every_composition_of_two_kinds_adds_up():
    kinds = {name: pair for name, pair in BRUTE.items() if name != "poisson"}
    for (first, a), (second, b) in product(kinds.values(), repeat=2):
        assert prove(events(first, second), delta=0).epsilon == pytest.approx(a + b, rel=1e-12)


def test_what_has_no_finite_loss_is_told_by_name():
    gaussian = GaussianStep(declared(1, "unit", adjacency=REPLACE), 1.0)
    run = events(gaussian, LaplaceStep(length(1), 1.0))
    found, proof = proved_guarantee(run, delta=0)
    assert (found.epsilon.lower_float, proof) == (inf, None)
    assert "at delta 0 with a GaussianStep" in found.not_proved
    with pytest.raises(Uncertifiable, match="no epsilon is finite at delta 0"):
        certify(run, delta=0)
    for delta in (-1e-300, 1, float("nan"), True):
        with pytest.raises(InvalidParameter, match="delta"):
            guarantee(run, delta=delta)


def test_the_least_scale_for_a_pure_epsilon_is_found_and_proved():
    def plan(multiplier):
        return events(Repeated(LaplaceStep(length(1), multiplier), 4))

    found, proof = proved_noise_multiplier(plan, target_epsilon=2.0, delta=0)
    assert found.noise_multiplier == pytest.approx(2.0, rel=2e-6)
    assert proof.epsilon <= 2.0

    def normal(multiplier):
        return events(GaussianStep(declared(1, "unit", adjacency=REPLACE), multiplier))

    with pytest.raises(UnattainableTarget, match="instead got epsilon=inf"):
        proved_noise_multiplier(normal, target_epsilon=2.0, delta=0)


def test_a_certificate_of_something_else_is_refused():
    run = events(*[BRUTE["laplace"][0]] * 3)
    proof = prove(run, delta=0)
    asked = {"events": run, "delta": 0, "epsilon": proof.epsilon, "adjacency": REPLACE, "group": 1}
    assert proved(proof.document, **asked) == proof.verdict
    for what, change in (
        ("subject", {"events": run[:-1]}),
        ("delta", {"delta": 1e-6}),
        ("adjacency", {"adjacency": ADD}),
        ("group", {"group": 2}),
        ("epsilon", {"epsilon": proof.epsilon * (1 - 1e-15)}),
    ):
        with pytest.raises(NotProved, match=f"proves {what}="):
            proved(proof.document, **(asked | change))


@pytest.mark.parametrize("name", [name for name, (_, exact) in BRUTE.items() if exact])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1, 2), Fraction(10**9 - 1, 10**9)])
def test_a_witness_below_the_loss_is_refused(name, share):
    document = json.loads(certify(events(BRUTE[name][0]), delta=0).to_json_bytes())
    smaller = str(Fraction(document["nodes"][0]["parameters"]["epsilon"]) * share)
    document["nodes"][0]["parameters"]["epsilon"] = smaller
    for node in document["nodes"]:
        node["conclusion"]["epsilon"] = smaller
    with pytest.raises(CertificateWrong, match=r"expected (epsilon²|odds|1 - q)"):
        checker.check(json.dumps(document).encode())


def test_what_is_pure_is_proved_at_any_delta_where_nothing_closer_is():
    hidden = PoissonSampled(LaplaceStep(length(1, ADD), 2.0**-9), 0.5)  # losses beyond every grid
    run = events(hidden, hidden)
    exact = 2 * (512 + log(0.5) + log1p(exp(-512.0)))
    found = prove(run, delta=1e-9)
    assert found.certificate.steps[-1].rule == "pure-approx-dp"
    assert found.epsilon == pytest.approx(exact, rel=1e-12)
    assert (found.verdict.notion, found.verdict.values[0]) == ("approx-dp", Fraction(1e-9))
