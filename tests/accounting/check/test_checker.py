"""Laws of the checker: intervals contain the truth, bad documents are refused by their fault."""

import json
import math
import random
import shutil
import subprocess
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path

import pytest
from flint import arb, fmpq

from dpledger.accounting.check import checker, intervals, privacy, statements
from dpledger.accounting.check.checker import check
from dpledger.accounting.check.reading import CalledWrong, CertificateWrong, Undecided
from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.proof.certificate import certify
from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared

STEP = GaussianStep(declared(1, "unit", adjacency=Adjacency.REPLACE_ONE), 1.0)


def runs(count, *, noise=lambda k: 1.0):
    return [
        Event(
            GaussianStep(STEP.sensitivity, noise(k)),
            Context((), k, "model", Audience.SERVER),
        )
        for k in range(count)
    ]


# --- intervals ---------------------------------------------------------------------------------


def ball(x):
    return arb(fmpq(x.numerator, x.denominator))


FUNCTIONS = {
    # name: (the checker's, Arb's, range of the argument in powers of ten, signed)
    "exp": (intervals.exp_bounds, lambda x: x.exp(), (-30, 2), True),
    "log": (intervals.log_bounds, lambda x: x.log(), (-300, 300), False),
    "sqrt": (intervals.sqrt_bounds, lambda x: x.sqrt(), (-300, 300), False),
    "mills": (
        intervals.mills_bounds,
        lambda s: (s / 2).exp() * (arb.pi() / 2).sqrt() * (s / 2).sqrt().erfc(),
        (-30, 3),
        False,
    ),
    "Phi": (
        lambda s, p: intervals.tail_bounds(s, s, p),
        lambda s: (s / 2).sqrt().erfc() / 2,
        (-30, 3),
        False,
    ),
}


def contains_arb(name, draws):
    """Compare at random arguments of random size, at random precisions."""
    bounds, exact, (least, most), signed = FUNCTIONS[name]
    generator = random.Random(f"intervals of {name}")
    for _ in range(draws):
        size = Fraction(10) ** generator.randint(least, most - 1)
        x = size * Fraction(generator.randint(1, 10**12), 10**11)
        if signed and generator.random() < 0.5:
            x = -x
        bits = generator.choice((64, 128, 300))
        low, high = bounds(x, bits)
        # Arb's precision is relative, the checker's is absolute
        with precision(bits + (200 if name == "log" else 3000 if x > 50 else 400)):
            truth = exact(ball(x)) * arb(2) ** bits
        assert low <= truth <= high, (x, bits)
        # tight as well: within two units, or for huge values one part in 2^bits
        assert high - low <= 2 + (abs(low) >> bits)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_contain_arbs_values(name):
    contains_arb(name, 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_intervals_contain_arbs_values_many_times(name):
    contains_arb(name, 100_000)


def test_the_exact_curve_lies_in_its_interval():
    generator = random.Random("curve")
    for _ in range(300):
        mu_squared = Fraction(generator.randint(1, 10**6), 10 ** generator.randint(3, 9))
        epsilon = Fraction(generator.randint(0, 10**6), 10 ** generator.randint(4, 9))
        low, high = intervals.delta_bounds(mu_squared, epsilon, 128)
        with precision(2000):
            mu, e = ball(mu_squared).sqrt(), ball(epsilon)
            phi = [((e / mu + side * mu / 2) / arb(2).sqrt()).erfc() / 2 for side in (-1, 1)]
            truth = (phi[0] - e.exp() * phi[1]) * arb(2) ** 128
        assert low <= truth <= high
        assert high - low <= 16


def test_exponents_beyond_the_limit_are_undecided_not_wrong():
    with pytest.raises(Undecided):
        intervals.exp_bounds(Fraction(10**9), 64)
    assert intervals.exp_bounds(Fraction(-(10**9)), 64) == (0, 1)


# --- bad documents, each named by its fault ----------------------------------------------------


def document(certificates, name="schedule of two parties"):
    return json.loads(certificates[name].to_json_bytes())


def _set(*path, to):
    def edit(doc):
        for step in path[:-1]:
            doc = doc[step]
        doc[path[-1]] = to

    return edit


def _drop(*path):
    def edit(doc):
        for step in path[:-1]:
            doc = doc[step]
        del doc[path[-1]]

    return edit


FAULTS = {
    "another format": (_set("format", to="urn:dpledger:certificate:2"), "expected format"),
    "another subject": (_set("subject", to="0" * 64), "expected subject"),
    "unknown field": (_set("comment", to="trust me"), "expected the fields"),
    "unknown field of an event": (_set("events", 0, "note", to=""), "expected the fields"),
    "unknown field of a node": (_set("nodes", 0, "value", to="0"), "expected the fields"),
    "missing field": (_drop("axioms"), "expected the fields"),
    "an event left out": (_drop("events", 0), "expected subject"),
    "an event more often": (_set("events", 0, "times", to=2), "expected subject"),
    "an event by another party": (_set("events", 0, "parties", to=["south"]), "expected subject"),
    "no times": (_set("events", 0, "times", to=0), "whole number >= 1"),
    "events of an unlisted mechanism": (_set("events", 0, "mechanism", to=99), "listed"),
    "more noise": (_set("mechanisms", 0, "noise_std", to="1p9"), "expected subject"),
    "a mechanism twice": (
        lambda doc: doc["mechanisms"].append(doc["mechanisms"][0]),
        "distinct mechanisms",
    ),
    "a mechanism that no event uses": (
        lambda doc: doc["mechanisms"].append({**doc["mechanisms"][0], "noise_std": "1p-9"}),
        "mechanisms that are used",
    ),
    "what is no mechanism": (
        lambda doc: doc["mechanisms"].append({"kind": "magic"}),
        "mechanisms that are used",
    ),
    "a float": (_set("nodes", 0, "conclusion", "group", to=1.0), "exact numbers"),
    "NaN": (_set("nodes", 0, "conclusion", "group", to=math.nan), "exact numbers"),
    "a bool for a number": (_set("nodes", 0, "conclusion", "group", to=True), "whole number"),
    "a premise that comes later": (_set("nodes", 1, "premises", to=[9]), "earlier nodes"),
    "a premise of itself": (_set("nodes", 1, "premises", to=[1]), "earlier nodes"),
    "a negative premise": (_set("nodes", 1, "premises", to=[-1]), "whole number >= 0"),
    "an unknown rule": (_set("nodes", 0, "rule", to="magic"), "expected one of"),
    "a rule that is no text": (_set("nodes", 0, "rule", to=[]), "expected a text"),
    "a smaller cost": (_set("nodes", 0, "conclusion", "mu_squared", to="1/1000"), "conclusion"),
    "another relation": (
        _set("nodes", 0, "conclusion", "adjacency", to="zero-out-one"),
        "conclusion",
    ),
    "a smaller epsilon": (_set("nodes", -1, "parameters", "epsilon", to="1/10"), "delta at eps"),
    "a negative epsilon": (_set("nodes", -1, "parameters", "epsilon", to="-1"), "above 0"),
    "delta of one": (_set("nodes", -1, "parameters", "delta", to="1"), "expected delta"),
    "a denominator of zero": (_set("nodes", -1, "parameters", "delta", to="1/0"), "a rational"),
    "an exponent": (_set("nodes", -1, "parameters", "delta", to="1e-5"), "a rational"),
    "a long number": (_set("nodes", -1, "parameters", "delta", to="1/" + "9" * 2000), "1500"),
    "a part for the whole": (lambda doc: doc["nodes"].__delitem__(slice(-2, None)), "last node"),
    "no nodes": (_set("nodes", to=[]), "last node"),
    "a hidden assumption": (_set("assumptions", to=[]), "assumptions"),
    "a hidden axiom": (_set("axioms", to=[]), "axioms"),
    "an axiom more": (lambda doc: doc["axioms"].append("P = NP"), "axioms"),
    "a list for an object": (_set("nodes", 0, to=[]), "expected the fields"),
}


@pytest.mark.parametrize(
    "error", [ZeroDivisionError, OverflowError, KeyError, TypeError, ValueError]
)
def test_a_rule_that_breaks_leaves_the_document_undecided(certificates, error):
    def broken(*_):
        raise error("here")

    document = next(iter(certificates.values())).to_json_bytes()
    rules = {name: (broken, *entry[1:]) for name, entry in privacy.RULES.items()}
    with pytest.raises(Undecided, match=error.__name__):
        check(document, rules)


def test_a_certificate_of_before_stopping_was_listed_verifies_and_the_verdict_lists_it(
    certificates,
):
    for name, certificate in certificates.items():
        if "filter" in name:
            continue
        doc = json.loads(certificate.to_json_bytes())
        (stopping,) = (text for text in doc["assumptions"] if "time of stopping" in text)
        new = check(json.dumps(doc).encode())
        doc["assumptions"].remove(stopping)
        assert check(json.dumps(doc).encode()) == new, name
        assert stopping in new.assumptions
        doc["assumptions"].remove("the event list is complete and says what happened")
        with pytest.raises(CertificateWrong, match="assumptions"):
            check(json.dumps(doc).encode())


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_documents_are_refused_by_their_fault(certificates, fault):
    edit, reason = FAULTS[fault]
    doc = document(certificates)
    edit(doc)
    with pytest.raises(CertificateWrong, match=reason):
        check(json.dumps(doc).encode())


def bent(certificates, name, edit):
    """The document with one mechanism bent and the hash made to fit: a lie about sensitivity."""
    doc = document(certificates, name)
    edit(doc["mechanisms"])
    run = statements.Run(doc["mechanisms"], doc["events"])
    doc["subject"] = run.subject
    return json.dumps(doc).encode()


def _tree(mechanisms):
    return mechanisms[0]["sensitivity"]["derivation"]


LIES = {
    "a smaller square at the root": (
        lambda m: (_set("squared", to="1/9")(_tree(m)), m[0]["sensitivity"].update(squared="1/9")),
        "squared sensitivity >=",
    ),
    "a square that the tree does not conclude": (
        lambda m: m[0]["sensitivity"].update(squared="1/9"),
        "expected squared sensitivity",
    ),
    "an unknown sensitivity rule": (
        lambda m: _set("rule", to="wishful")(_tree(m)),
        "a sensitivity rule",
    ),
    "a missing premise": (lambda m: _tree(m)["premises"].pop(), "premises"),
    "a parameter more": (
        lambda m: _tree(m)["parameters"].append(["count", "9"]),
        "parameters",
    ),
    "a triple for a pair": (
        lambda m: _tree(m)["premises"][1]["parameters"][0].append("1/9"),
        "length of a pair",
    ),
    "the l1 norm": (lambda m: m[0]["sensitivity"].update(norm="l1"), "expected l2"),
    "a relation between columns": (
        lambda m: m[0]["sensitivity"].update(adjacency="replace-feature-column"),
        "record relation",
    ),
    "no noise": (lambda m: m[0].update(noise_std="0p0"), "no finite cost"),
    "negative noise": (lambda m: m[0].update(noise_std="-1p0"), r"number in \[0, inf\]"),
    "a huge exponent": (lambda m: m[0].update(noise_std="1p9999"), "a number such as"),
    "another kind": (lambda m: m[0].update(kind="discrete-gaussian"), "expected kind"),
}


@pytest.mark.parametrize("lie", LIES)
def test_sensitivities_are_derived_again(certificates, lie):
    edit, reason = LIES[lie]
    with pytest.raises(CertificateWrong, match=reason):
        check(bent(certificates, "schedule of two parties", edit))


def test_a_witness_too_small_is_refused(certificates):
    doc = document(certificates, "on lattices")
    trees = (m["sensitivity"]["derivation"] for m in doc["mechanisms"])
    tree = next(p for t in trees for p in t["premises"][0]["premises"] if p["rule"] == "sum")
    tree["parameters"][0][1] = "1/1000"
    doc["subject"] = statements.Run(doc["mechanisms"], doc["events"]).subject
    with pytest.raises(CertificateWrong, match="u²"):
        check(json.dumps(doc).encode())


SYNTAX = {
    "no JSON": (b"certificate", "expected JSON"),
    "no UTF-8": (b'{"format": "\xff"}', "expected JSON"),
    "a list": (b"[]", "expected the fields"),
    "a field twice": (b'{"format": "a", "format": "b"}', "each field once"),
    "deep nesting": (b"[" * 100_000 + b"]" * 100_000, "deeply nested"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "deeply nested"),
    "too many items": (b"[" + b"1," * 600_000 + b"1]", "items"),
    "too many bytes": (b'"' + b"x" * (17 << 20) + b'"', "bytes"),
    "a gigabyte number in three bytes": (b"[1e999999999]", "exact numbers"),
    "a long whole number": (b"[" + b"9" * 5000 + b"]", r"up to 10\^18"),
}


@pytest.mark.parametrize("fault", SYNTAX)
def test_hostile_input_is_refused_with_little_work_and_memory(calls, fault):
    text, reason = SYNTAX[fault]

    def refuse():
        with pytest.raises(CertificateWrong, match=reason):
            check(text)

    tracemalloc.start()
    try:
        refuse()
        assert tracemalloc.get_traced_memory()[1] < 80e6
    finally:
        tracemalloc.stop()
    assert calls(refuse) < 1000


def test_a_reason_cannot_pass_for_a_line_of_the_verdict():
    for reason in ("ok\napprox-dp (zero-out-one): epsilon <= 0.01", "\x1b[2J", "\ud800"):
        unit = declared(1, reason, adjacency=Adjacency.ZERO_OUT_ONE)
        run = [Event(GaussianStep(unit, 1.0), Context((), 1, "model", Audience.PUBLIC))]
        text = checker.report(check(certify(run, delta=1e-5).to_json_bytes()))
        assert text.isascii()
        assert sum(line.startswith("approx-dp") for line in text.splitlines()) == 1
        assert all(line.isprintable() for line in text.splitlines())


def test_too_much_work_is_undecided():
    doc = json.loads(certify(runs(1), delta=1e-5).to_json_bytes())
    doc["events"][0]["times"] = statements.MAX_EVENTS
    doc["events"] *= 3
    with pytest.raises((CertificateWrong, Undecided)):
        check(json.dumps(doc).encode())


def test_misuse_is_not_the_certificates_fault():
    with pytest.raises(CalledWrong, match="bytes"):
        check("{}")


# --- what it is made of, how fast it is --------------------------------------------------------


def test_it_runs_alone(certificates, tmp_path):
    path = tmp_path / "run.cert.json"
    path.write_bytes(certificates["repeated"].to_json_bytes())
    alone = tmp_path / "check"
    shutil.copytree(Path(checker.__file__).parent, alone)
    command = [sys.executable, "-I", "-S", str(alone), str(path)]
    good = subprocess.run(command, capture_output=True, text=True, check=False)
    assert good.returncode == 0
    assert "steps checked" in good.stdout
    path.write_bytes(path.read_bytes().replace(b"gdp-approx-dp", b"gdp-perfect"))
    bad = subprocess.run(command, capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "gdp-perfect" in bad.stderr
    path.unlink()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_the_work_of_a_check_grows_with_the_number_of_nodes(calls):
    few = certify(runs(27, noise=lambda k: 1 + k / 8), delta=1e-5)
    many = certify(runs(1_270, noise=lambda k: 1 + (2 * k + 1) / 7), delta=1e-5)
    assert 30 <= len(few.steps) <= 60
    assert len(many.steps) >= 2_500
    few_calls, many_calls = (calls(lambda c=c: check(c.to_json_bytes())) for c in (few, many))
    assert many_calls / len(many.steps) <= few_calls / len(few.steps)


def test_a_tiny_delta_is_not_tenfold_the_work(calls):
    large, tiny = (certify(runs(1), delta=delta).to_json_bytes() for delta in (1e-5, 1e-300))
    assert calls(lambda: check(tiny)) <= 10 * calls(lambda: check(large))
