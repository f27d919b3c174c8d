"""Laws of the builder: a report says what the events say, and errs towards more epsilon."""

from dataclasses import replace
from fractions import Fraction

import pytest
from scipy.stats import binomtest

from dpledger.accounting.gaussian.exact import delta_from_epsilon, epsilon_from_delta
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.enclosure import Enclosure
from dpledger.audits.report import (
    ModelScore,
    Narrative,
    RunFacts,
    Skipped,
    UtilityFacts,
    build_report,
    crosschecks_of,
)
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    LaplaceStep,
    Norm,
    Provenance,
    declared,
)

DELTA = 1e-5
SKIPPED = Skipped(reason="not part of this test")


def built(events, *, guaranteed=None, **parts):
    found = guarantee(events, delta=DELTA) if guaranteed is None else guaranteed
    parts = {"crosschecks": SKIPPED, "attack": SKIPPED, "utility": SKIPPED, **parts}
    return build_report(title="A run", events=events, guarantee=found, **parts)


def test_the_printed_enclosure_holds_the_certified_one(events):
    privacy = built(events).privacy
    exact = guarantee(events, delta=DELTA).epsilon
    assert Enclosure.of(privacy.epsilon.lower) <= exact.lower_float
    assert Enclosure.of(privacy.epsilon.upper) >= exact.upper_float
    assert privacy.mu >= 1
    assert privacy.rho >= 0.5


def test_every_point_of_the_curve_is_above_the_exact_curve(events):
    privacy = built(events).privacy
    assert len(privacy.curve) == 49
    assert privacy.curve[0].epsilon == 0
    for point in privacy.curve:
        exact = delta_from_epsilon(mu_squared=1, epsilon=point.epsilon).lower_float
        assert exact <= point.delta <= exact * (1 + 1e-8)
    assert privacy.curve[-1].delta < DELTA / 100


def test_the_odometer_ends_at_the_promise_and_never_below_the_truth(events):
    privacy = built(events).privacy
    assert [point.round for point in privacy.odometer] == [1, 2, 3, 4]
    for point in privacy.odometer:
        exact = epsilon_from_delta(mu_squared=point.round / 4, delta=DELTA).lower_float
        assert exact <= point.epsilon <= exact * (1 + 1e-8)


def test_a_long_run_keeps_its_first_and_last_round(events):
    many = [replace(e, context=replace(e.context, round=k)) for k in range(1, 501) for e in events]
    odometer = built(many).privacy.odometer
    assert (odometer[0].round, odometer[-1].round) == (1, 500)
    assert 100 <= len(odometer) <= 200


def test_delta_is_rounded_up_and_a_tiny_one_has_no_fast_figures(events):
    third = built(events, guaranteed=guarantee(events, delta=Fraction(1, 3))).privacy
    assert Fraction(third.delta) >= Fraction(1, 3)
    tiny = built(events, guaranteed=guarantee(events, delta=Fraction(1, 10**305))).privacy
    assert Fraction(tiny.delta) >= Fraction(1, 10**305)
    assert tiny.odometer is None


def test_no_conversion_is_below_the_exact_one(events):
    exact, *others = built(events).privacy.conversions
    assert exact.method == "exact"
    assert len(others) == 3
    assert all(other.epsilon > exact.epsilon for other in others)


def test_a_leak_makes_epsilon_infinite_and_is_told_everywhere(events, leak):
    report = built((*events, leak))
    assert report.privacy.epsilon.upper == "infinity"
    assert report.privacy.curve is None
    assert {point.epsilon for point in report.privacy.odometer} == {"infinity"}
    (group,) = report.access.unprotected
    assert (group.release, group.messages) == ("warm start", 1)
    assert group.reason == leak.mechanism.reason
    assert any("without protection" in text for text in report.limitations)
    assert report.threat_model.outsiders == "every message addressed to them: 1 (warm start)"


def test_other_mechanisms_leave_the_odometer_out_and_have_their_own_conversions(events):
    sensitivity = declared(1, "an example", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
    step = Event(LaplaceStep(sensitivity, 3.0), Context((), 1, "count", Audience.PUBLIC))
    privacy = built([step], guaranteed=guarantee(events, delta=DELTA)).privacy
    assert privacy.odometer is None
    tightest, *others = [conversion.epsilon for conversion in privacy.conversions]
    assert tightest == pytest.approx(1 / 3, abs=1e-4)
    assert all(tightest <= other for other in others)
    assert privacy.curve is not None
    assert privacy.curve[0].delta < 1


def test_nothing_released_is_a_report_too():
    report = built([])
    assert report.privacy.epsilon.upper == 0
    assert report.mechanisms == ()
    assert report.promise.adjacency is None


def test_what_nobody_stated_is_missing(events):
    report = built(events)
    assert report.preparation.tuning is None
    assert report.sampling.claimed is None
    assert report.sampling.noise_source is None
    assert report.identity.ledger_head_sha256 is None
    assert any("not stated" in text for text in report.limitations)


def test_a_known_seed_is_a_limitation(events):
    seeded = built(events, run=RunFacts(provenance=Provenance("numpy-philox", 7)))
    system = built(events, run=RunFacts(provenance=Provenance("system-entropy", None)))
    tuned = Narrative(tuning="on public data")
    assert any("seed" in text for text in seeded.limitations)
    assert not any("seed" in text for text in system.limitations)
    assert len(built(events, narrative=tuned).limitations) == len(system.limitations) - 1


@pytest.mark.parametrize(("correct", "records"), [(0, 50), (50, 50), (4301, 5222)])
def test_intervals_of_utility_are_clopper_and_pearsons(events, correct, records):
    score = ModelScore(model="ours", guarantee="none", correct=correct, records=records)
    utility = UtilityFacts(metric="accuracy", scores=(score,), confidence=0.9)
    (found,) = built(events, utility=utility).utility.results
    exact = binomtest(correct, records).proportion_ci(confidence_level=0.9, method="exact")
    assert found.interval.lower == pytest.approx(exact.low, abs=1e-7)
    assert found.interval.upper == pytest.approx(exact.high, abs=1e-7)
    assert found.interval.lower <= exact.low + 1e-15
    assert found.interval.upper >= exact.high - 1e-15


def test_held_out_figures_are_an_access_that_is_not_covered(events):
    score = ModelScore(model="ours", guarantee="none", correct=1, records=2)
    utility = UtilityFacts(metric="accuracy", scores=(score,))
    assert built(events).access.not_covered == ()
    (words,) = built(events, utility=utility).access.not_covered
    assert "accuracy" in words


def test_an_attack_keeps_its_numbers(events, attack):
    audit = built(events, attack=attack).audit
    result = attack.result
    assert audit.trials == result.trials == 60
    assert [b.epsilon for b in audit.bounds] == [b.epsilon for b in result.bounds]
    assert audit.ceiling == result.ceiling
    assert audit.pair_mu == 0.5 * result.claimed_mu
    assert audit.contradicts_promise == result.refutes_claim
    assert audit.null_control.silent != result.null_control.positive
    assert len(audit.roc) == len(result.roc)
    assert audit.not_meant == result.not_meant


def test_other_libraries_answers_are_kept(events):
    crosscheck = pytest.importorskip("dpledger.audits.crosschecks")
    pytest.importorskip("dp_accounting")
    found = crosscheck.crosscheck(events, delta=DELTA)
    kept = crosschecks_of(found)
    assert kept.agree == found.agrees
    assert [p.epsilon for p in kept.peers] == [p.theirs for p in found.peers]
    assert [p.status for p in kept.peers] == [p.status.value for p in found.peers]
