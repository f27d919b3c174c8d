"""Laws of certificates: what is written is what is proved, and a stranger reads it the same way."""

import json
from fractions import Fraction

import pytest

from dpledger.accounting.check import checker, pld_checker, privacy, roundings, sensitivities
from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.proof.certificate import FORMAT, Uncertifiable, certify
from dpledger.accounting.proof.proved import delta_and_epsilon
from dpledger.mechanisms import (
    Adjacency,
    AdjacencyMismatch,
    Audience,
    Context,
    DpledgerError,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    PoissonSampled,
    Repeated,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.encoding import subject_hash
from dpledger.mechanisms.sensitivity import histogram, mean_of_bounded

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE


def event(mechanism, *, parties=(), round=1):
    return Event(mechanism, Context(parties, round, "model", Audience.SERVER))


def unit_steps(count, noise_std=1.0):
    step = GaussianStep(declared(1, "unit", adjacency=REPLACE), noise_std)
    return [event(step, round=k) for k in range(1, count + 1)]


def test_the_checker_reads_what_the_certificate_says(certificates):
    for name, certificate in certificates.items():
        verdict = checker.check(certificate.to_json_bytes())
        assert verdict.subject == subject_hash(certificate.events), name
        assert verdict.notion == ("pure-dp" if name in ("pure", "answers") else "approx-dp")
        stated = certificate.guarantee
        assert delta_and_epsilon(verdict) == (stated.delta, stated.epsilon)
        assert verdict.adjacency == certificate.root.adjacency.value
        assert verdict.group == certificate.root.group
        assert verdict.assumptions == certificate.assumptions
        assert verdict.axioms == certificate.axioms
        assert verdict.steps == len(certificate.steps)


def test_the_examples_use_every_rule_but_those_of_loss_distributions(certificates):
    written = "".join(c.to_json_bytes().decode() for c in certificates.values())
    for name in (*sensitivities.SENSITIVITIES, *roundings.ROUNDINGS, *privacy.RULES):
        assert f'"rule":"{name}"' in written, name


def test_gaussian_steps_cost_what_the_exact_curve_says():
    found = certify(unit_steps(12, noise_std=2.5), delta=1e-7)
    exact = epsilon_from_delta(mu_squared=Fraction(12 * 4, 25), delta=1e-7)
    assert exact.upper_float <= found.epsilon <= exact.upper_float * (1 + 1e-15)


def test_a_party_pays_for_its_own_events_and_for_those_of_nobody():
    step = GaussianStep(mean_of_bounded(1, 100, REPLACE), 0.05)
    quiet = event(step, parties=("a", "b"))
    loud = event(GaussianStep(step.sensitivity, 0.02), parties=("b",))
    shared = event(step)
    alone = certify([quiet, loud, shared], delta=1e-5)
    mu_squared = Fraction(1, 2500) * (2 / Fraction(0.05) ** 2 + 1 / Fraction(0.02) ** 2)
    assert alone.epsilon == pytest.approx(
        epsilon_from_delta(mu_squared=mu_squared, delta=1e-5).upper_float, rel=1e-12
    )


def test_order_does_not_matter_to_epsilon_but_to_the_subject():
    events = [event(GaussianStep(declared(1, "unit", adjacency=REPLACE), std)) for std in (1, 2, 3)]
    forward, backward = certify(events, delta=1e-5), certify(events[::-1], delta=1e-5)
    assert forward.epsilon == backward.epsilon
    assert forward.subject != backward.subject


def test_certificates_name_what_was_declared(certificates):
    assert "declared: from the protocol" in certificates["schedule of two parties"].assumptions
    assert any("one party" in text for text in certificates["parties inside"].assumptions)
    assert any("stay hidden" in text for text in certificates["Poisson samples"].assumptions)
    assert not any("stay hidden" in text for text in certificates["repeated"].assumptions)


def test_runs_of_equal_events_are_written_once():
    events = unit_steps(1) * 1000
    document = json.loads(certify(events, delta=1e-5).to_json_bytes())
    assert document["format"] == FORMAT
    assert [entry["times"] for entry in document["events"]] == [1000]
    assert len(document["mechanisms"]) == 1


@pytest.mark.parametrize(
    ("mechanism", "reason"),
    [
        (UnprotectedRelease("raw dual variable"), "raw dual variable"),
        (GaussianStep(declared(1, "unit", adjacency=REPLACE), 0.0), "noise above 0"),
        (
            PoissonSampled(GaussianStep(mean_of_bounded(1, 9, REPLACE), 1.0), 0.1),
            "this kind of sampling",
        ),
        (PoissonSampled(GaussianStep(mean_of_bounded(1, 9, ADD), 1.0), 0.1), "public numbers"),
    ],
)
def test_what_no_rule_prices_is_refused_with_its_reason(mechanism, reason):
    with pytest.raises(Uncertifiable, match=reason):
        certify([event(Repeated(mechanism, 3))], delta=1e-5)


def test_mixed_relations_are_refused():
    other = GaussianStep(declared(1, "unit", adjacency=ADD), 1.0)
    with pytest.raises((Uncertifiable, AdjacencyMismatch)):
        certify([*unit_steps(1), event(other)], delta=1e-5)


@pytest.mark.parametrize("options", [{"delta": -1e-9}, {"delta": 1.0}, {"delta": 0.1, "group": 0}])
def test_parameters_out_of_range_are_named(options):
    with pytest.raises(InvalidParameter):
        certify(unit_steps(1), **options)
    with pytest.raises(DpledgerError):
        certify([], delta=1e-5)


def test_zero_sensitivity_costs_nothing():
    step = GaussianStep(declared(0, "a constant", adjacency=REPLACE), 0.0)
    found = certify([event(step)], delta=1e-300)
    assert found.epsilon == 0.0
    assert checker.check(found.to_json_bytes()).values[-1] == 0


def test_equal_steps_that_were_derived_otherwise_are_proved_together():
    """Their losses are composed by what is written of each: of one bound, one of them was lost."""
    typed = declared(1, "unit", adjacency=ADD, norm=Norm.L1)
    steps = [LaplaceStep(size, 4.0) for size in (histogram(ADD, Norm.L1), typed)]
    assert steps[0] == steps[1]
    both = certify([event(step) for step in steps], delta=1e-5)
    same = certify([event(Repeated(steps[0], 2))], delta=1e-5)
    found = pld_checker.check(both.to_json_bytes())
    assert delta_and_epsilon(found) == (Fraction(1e-5), Fraction(same.epsilon))
