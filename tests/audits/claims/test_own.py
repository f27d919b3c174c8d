"""The court for the user's own claims: verdicts by reading, against independent routes."""

from dataclasses import replace
from fractions import Fraction
from math import exp, inf, log, sqrt
from typing import Any

import pytest
from scipy.stats import norm
from tests.parameters import slow

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.audits.claims import ClaimVerdict, Counterexample, DerivationEvidence
from dpledger.audits.claims.own import (
    Averaging,
    MechanismKind,
    PromisedEpsilon,
    PromisedMu,
    PromisedRho,
    Sampling,
    StatedRelease,
    judged,
)
from dpledger.audits.claims.policy import Check, final_verdict
from dpledger.mechanisms import Adjacency, InvalidParameter, PoissonSampled, Repeated

ADJACENCY = Adjacency.ZERO_OUT_ONE
OWN_MEAN = StatedRelease(
    MechanismKind.GAUSSIAN,
    clip_norm=1.0,
    averaging=Averaging.OWN,
    divisor=50,
    noise=0.1,
    rounds=1,
)
STEPS = StatedRelease(MechanismKind.GAUSSIAN, sensitivity=2.0, noise=20.0, rounds=100)


def test_randomised_response_is_its_log_odds() -> None:
    release = StatedRelease(
        MechanismKind.RANDOMISED_RESPONSE, noise=exp(1) / (1 + exp(1)), rounds=1
    )
    at = PromisedEpsilon(1.0001, 1e-12), PromisedEpsilon(0.9999, 1e-12)
    held, failed = (judged([release], p, adjacency=Adjacency.REPLACE_ONE) for p in at)
    assert held.verdict is ClaimVerdict.HOLDS
    assert failed.verdict is ClaimVerdict.FAILS


def test_what_is_said_to_hold_is_rounded_up() -> None:
    for noise in (11.0, 12.0, 13.0, 17.0):
        release = StatedRelease(MechanismKind.GAUSSIAN, sensitivity=1.0, noise=noise, rounds=3)
        found = judged([release], PromisedEpsilon(5.0, 1e-6), adjacency=ADJACENCY)
        assert found.true is not None
        said = float(found.reason.split("at most ")[1].split()[0])
        assert found.true.upper_float <= said <= found.true.upper_float * (1 + 1e-5)


def test_laplace_noise_adds_up_its_epsilons_at_tiny_delta() -> None:
    release = StatedRelease(MechanismKind.LAPLACE, sensitivity=1.0, noise=4.0, rounds=2)
    found = judged([release], PromisedEpsilon(1.0, 1e-30), adjacency=ADJACENCY)
    assert found.true is not None
    assert found.true.upper_float == pytest.approx(0.5, rel=1e-9)


def test_units_agree() -> None:
    # 100 steps of noise multiplier 10: mu = 1, rho = 1/2
    for promise in (PromisedMu(1.0), PromisedRho(0.5)):
        finding = judged([STEPS], promise, adjacency=ADJACENCY)
        assert finding.verdict_text == "holds exactly"
    assert (
        judged([STEPS], PromisedMu(0.999), adjacency=ADJACENCY).verdict is ClaimVerdict.NOT_IMPLIED
    )


def test_a_failure_has_an_event_that_the_promise_forbids() -> None:
    failed = judged([STEPS], PromisedEpsilon(4.3, 1e-5), adjacency=ADJACENCY)
    (event,) = [e for e in failed.evidence if isinstance(e, Counterexample)]
    first, second = event.probability.lower_float, event.neighbour_probability.upper_float
    assert first - exp(4.3) * second > 1e-5
    # mu = 1: the ratio is normal around ±1/2
    assert first == pytest.approx(norm.sf(4.3, loc=0.5), rel=1e-9)
    trials = 1_000_000
    rates = event.rerun(trials, 5)
    # 5 standard errors: missed by one of a million seeds; the seed is fixed
    assert abs(rates[0] - first) < 5 * sqrt(first / trials)
    assert abs(rates[1] - second) < 5 * sqrt(second / trials)
    held = judged([STEPS], PromisedEpsilon(4.4, 1e-5), adjacency=ADJACENCY)
    assert not any(isinstance(e, Counterexample) for e in held.evidence)


def test_parties_with_records_of_their_own_pay_the_maximum() -> None:
    parts = [
        StatedRelease(MechanismKind.GAUSSIAN, sensitivity=1.0, noise=10.0, rounds=100, party=party)
        for party in ("north", "south")
    ]
    assert judged(parts, PromisedMu(1.0), adjacency=ADJACENCY).verdict is ClaimVerdict.HOLDS
    together = [StatedRelease(MechanismKind.GAUSSIAN, sensitivity=1.0, noise=10.0, rounds=100)] * 2
    assert (
        judged(together, PromisedMu(1.0), adjacency=ADJACENCY).verdict is ClaimVerdict.NOT_IMPLIED
    )


def test_an_unstated_relation_may_double_what_a_record_moves() -> None:
    finding = judged([STEPS], PromisedMu(1.5), adjacency=None)
    assert finding.verdict is ClaimVerdict.UNSPECIFIED
    assert [cost.upper_float for cost in finding.figures.values()] == pytest.approx([1.0, 2.0])
    assert judged([STEPS], PromisedMu(2.0), adjacency=None).verdict is ClaimVerdict.HOLDS
    assert judged([STEPS], PromisedMu(0.5), adjacency=None).verdict is ClaimVerdict.NOT_IMPLIED


def test_an_unstated_scheme_may_be_no_amplification_at_all() -> None:
    sampled = StatedRelease(
        MechanismKind.GAUSSIAN, sensitivity=1.0, noise=1.0, rounds=100, rate=0.01
    )
    costs = judged([sampled], PromisedEpsilon(2.0, 1e-5), adjacency=ADJACENCY).figures
    none, poisson, shuffled, again = (cost.upper_float for cost in costs.values())
    assert poisson < 2.0 < shuffled < none
    assert again == inf


@pytest.mark.parametrize(
    ("kind", "adjacency", "stated"),
    [
        *slow((MechanismKind.GAUSSIAN, Adjacency.REPLACE_ONE, {"batch": 9, "records": 10})),
        (MechanismKind.GAUSSIAN, Adjacency.REPLACE_ONE, {"batch": 9}),
        (MechanismKind.GAUSSIAN, Adjacency.REPLACE_ONE, {"rate": 0.9}),
        (MechanismKind.GAUSSIAN, Adjacency.ZERO_OUT_ONE, {"rate": 0.9}),
        (MechanismKind.LAPLACE, Adjacency.REPLACE_ONE, {"batch": 9}),
        (MechanismKind.LAPLACE, Adjacency.REPLACE_ONE, {"batch": 9, "records": 10}),
    ],
)
def test_saying_less_of_a_sample_makes_no_promise_hold(
    kind: MechanismKind, adjacency: Adjacency, stated: dict[str, Any]
) -> None:
    """Of batches drawn with replacement only those whose numbers were stated were thought of."""
    delta = 1e-5 if kind is MechanismKind.GAUSSIAN else 0.0
    promise = PromisedEpsilon(30.0, delta)
    sampled = StatedRelease(kind, sensitivity=1.0, noise=1.0, rounds=3, **stated)
    found = judged([sampled], promise, adjacency=adjacency)
    assert found.verdict is ClaimVerdict.UNSPECIFIED
    whole = StatedRelease(kind, sensitivity=1.0, noise=1.0, rounds=3)
    assert judged([whole], promise, adjacency=adjacency).verdict is ClaimVerdict.HOLDS


def test_an_unstated_scheme_may_draw_one_record_again_and_again() -> None:
    """No sampling at all costs 4.38, which was called the most that any scheme does."""
    sampled = StatedRelease(
        MechanismKind.GAUSSIAN, sensitivity=2.0, noise=2.0, rounds=1, batch=100, records=100
    )
    replace_one = Adjacency.REPLACE_ONE
    found = judged([sampled], PromisedEpsilon(5.9, 1e-5), adjacency=replace_one)
    assert found.verdict is ClaimVerdict.UNSPECIFIED
    said = replace(sampled, sampling=Sampling.WITH_REPLACEMENT)
    dearest = judged([said], PromisedEpsilon(5.9, 1e-5), adjacency=replace_one)
    assert dearest.verdict is ClaimVerdict.NOT_IMPLIED
    assert max(cost.upper_float for cost in found.figures.values()) == dearest.true.upper_float


@pytest.mark.parametrize("kind", [MechanismKind.DISCRETE_GAUSSIAN, MechanismKind.L2_EXPONENTIAL])
def test_a_sample_that_no_rule_prices_costs_somebody_nothing_known(kind: MechanismKind) -> None:
    sampled = StatedRelease(kind, sensitivity=1.0, noise=1.0, rounds=1, rate=0.01)
    costs = judged([sampled], PromisedEpsilon(9.0, 1e-5), adjacency=ADJACENCY).figures
    lower = {name: cost.lower_float for name, cost in costs.items()}
    assert lower["sampling is none"] > 0
    assert lower["sampling is poisson"] == 0


@pytest.mark.parametrize("relation", Adjacency)
def test_answers_are_priced_for_a_record_whose_answer_is_replaced(relation: Adjacency) -> None:
    """A record more is an answer more, and a column replaced is everybody's."""
    answers = StatedRelease(MechanismKind.RANDOMISED_RESPONSE, noise=0.7, rounds=2)
    found = judged([answers], PromisedEpsilon(1.7, 0.0), adjacency=relation)
    own = relation in (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE)
    assert (found.verdict is ClaimVerdict.HOLDS) == own
    assert found.true.upper_float == (pytest.approx(2 * log(7 / 3)) if own else inf)


@pytest.mark.parametrize("relation", [Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE])
@pytest.mark.parametrize("stated", [{}, {"batch": 50}, {"batch": 50, "records": 500}])
def test_a_mean_over_a_samples_own_number_is_dear_at_whatever_rate(
    relation: Adjacency, stated: dict[str, int]
) -> None:
    """A Poisson sample may hold one record; without a rate it was priced as 50 of them."""
    mean = replace(OWN_MEAN, rounds=3, sampling=Sampling.POISSON, **stated)
    found = judged([mean], PromisedEpsilon(9.0, 1e-5), adjacency=relation)
    assert found.verdict is not ClaimVerdict.HOLDS
    assert found.true.upper_float > 180.0


@pytest.mark.parametrize(
    ("stated", "last"),
    [
        ({"batch": 50, "records": 101}, 1),
        ({"batch": 50, "records": 120}, 20),
        ({"batch": 50, "records": 100}, 50),
        ({"rate": 0.1}, 50),
        ({"rate": 0.4951}, 1),
        ({"batch": 50}, 1),
        ({}, 1),
    ],
)
def test_a_mean_over_a_last_smaller_batch_is_over_its_records(
    stated: dict[str, Any], last: int
) -> None:
    mean = replace(OWN_MEAN, sampling=Sampling.SHUFFLED, **stated)
    found = judged([mean], PromisedEpsilon(1e4, 1e-5), adjacency=Adjacency.REPLACE_ONE)
    dearest = epsilon_from_delta(mu_squared=(2.0 / last / 0.1) ** 2, delta=1e-5)
    assert found.true.upper_float == pytest.approx(dearest.upper_float)


def test_parties_under_a_relation_of_columns_hold_columns_and_that_is_said() -> None:
    each = [
        StatedRelease(MechanismKind.GAUSSIAN, sensitivity=1.0, noise=2.0, rounds=1, party=party)
        for party in ("north", "south")
    ]
    columns = Adjacency.REPLACE_FEATURE_COLUMN
    found = judged(each, PromisedEpsilon(2.0, 1e-5), adjacency=columns)
    assert found.verdict is ClaimVerdict.HOLDS
    assert any("every column belongs to one party" in line for line in found.argument)
    alone = [replace(release, party=None) for release in each]
    dearer = judged(alone, PromisedEpsilon(2.0, 1e-5), adjacency=columns)
    assert dearer.verdict is ClaimVerdict.NOT_IMPLIED


def epochs(rounds: int, batch: int, records: int) -> StatedRelease:
    """Steps of shuffled epochs."""
    return StatedRelease(
        MechanismKind.GAUSSIAN, sensitivity=1.0, noise=2.0, rounds=rounds,
        sampling=Sampling.SHUFFLED, batch=batch, records=records,
    )  # fmt: skip


@pytest.mark.parametrize("adjacency", [Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE])
@pytest.mark.parametrize(
    ("rounds", "batch", "records"), [(100, 10, 100), (5, 4, 10), (7, 3, 3), (1, 1, 9)]
)
def test_shuffled_epochs_cost_as_often_as_one_record_can_be_met(
    rounds: int, batch: int, records: int, adjacency: Adjacency
) -> None:
    # the worst order: a record is in the first batch of every epoch; what fills none is dropped,
    # or is a batch of its own
    dropped, kept = (
        sum(step % in_an_epoch == 0 for step in range(rounds))
        for in_an_epoch in (records // batch, -(-records // batch))
    )
    promise = PromisedEpsilon(5.0, 1e-5)
    found = judged([epochs(rounds, batch, records)], promise, adjacency=adjacency).true
    most, least = (
        judged(
            [StatedRelease(MechanismKind.GAUSSIAN, sensitivity=1.0, noise=2.0, rounds=met)],
            promise,
            adjacency=adjacency,
        ).true
        for met in (dropped, kept)
    )
    assert found is not None
    assert most is not None
    assert least is not None
    assert (found.lower_float, found.upper_float) == (least.lower_float, most.upper_float)


@pytest.mark.parametrize(
    ("stated", "promised"),
    [
        ({"rounds": 10, "rate": 0.1}, 1.9932),
        ({"rounds": 4, "batch": 3, "records": 10}, 1.9932),
        ({"rounds": 14_100, "batch": 256, "records": 60_000}, 23.35),
    ],
)
def test_whole_shuffled_epochs_are_not_accused_of_one_more(
    stated: dict[str, Any], promised: float
) -> None:
    """A true promise of a loader that keeps its last batch; 0.1 as a double is above a tenth."""
    release = StatedRelease(
        MechanismKind.GAUSSIAN, sensitivity=1.0, noise=2.0, sampling=Sampling.SHUFFLED, **stated
    )
    found = judged([release], PromisedEpsilon(promised, 1e-5), adjacency=Adjacency.ZERO_OUT_ONE)
    assert found.verdict is ClaimVerdict.UNDECIDED
    assert found.true is not None
    assert found.true.lower_float <= promised < found.true.upper_float


def test_shuffled_epochs_have_no_rule_where_a_record_is_added() -> None:
    found = judged(
        [epochs(10, 1, 10)], PromisedEpsilon(9.0, 1e-5), adjacency=Adjacency.ADD_REMOVE_ONE
    )
    assert found.verdict is ClaimVerdict.UNDECIDED
    assert "a record more shifts every batch behind its place" in found.reason


def test_what_holds_for_every_other_scheme_may_not_for_shuffled_epochs() -> None:
    sampled = StatedRelease(
        MechanismKind.GAUSSIAN, sensitivity=1.0, noise=50.0, rounds=10, rate=0.01
    )
    found = judged([sampled], PromisedEpsilon(9.0, 1e-5), adjacency=Adjacency.ADD_REMOVE_ONE)
    assert found.verdict is ClaimVerdict.UNSPECIFIED
    assert "sampling scheme" in found.reason


def test_a_missing_rate_is_paid_in_full() -> None:
    some = StatedRelease(
        MechanismKind.GAUSSIAN, sensitivity=1.0, noise=10.0, rounds=100, sampling=Sampling.POISSON
    )
    found = judged([some], PromisedEpsilon(4.38, 1e-5), adjacency=ADJACENCY)
    assert found.verdict is ClaimVerdict.HOLDS
    assert "sampling rate" in found.reason
    found = judged([some], PromisedEpsilon(1.0, 1e-5), adjacency=ADJACENCY)
    assert found.verdict is ClaimVerdict.UNSPECIFIED


def test_what_is_let_out_costs_infinity() -> None:
    raw = StatedRelease(MechanismKind.UNPROTECTED, name="weights")
    finding = judged([raw], PromisedEpsilon(1e9, 1e-5), adjacency=ADJACENCY)
    assert finding.verdict is ClaimVerdict.FAILS
    assert finding.evidence


def test_what_no_rule_prices_is_not_decided() -> None:
    sampled = StatedRelease(
        MechanismKind.GAUSSIAN,
        sensitivity=1.0,
        noise=1.0,
        rounds=1,
        sampling=Sampling.POISSON,
        rate=0.1,
    )
    found = judged([sampled], PromisedEpsilon(9.0, 1e-5), adjacency=Adjacency.REPLACE_ONE)
    assert found.verdict is ClaimVerdict.UNDECIDED
    assert "add-remove-one or zero-out-one" in found.reason


def test_no_release_is_no_claim() -> None:
    with pytest.raises(InvalidParameter, match="at least one"):
        judged([], PromisedMu(1.0), adjacency=ADJACENCY)


def test_bounds_that_nobody_is_shown_to_meet_imply_nothing_and_refute_nothing() -> None:
    found = judged([STEPS], PromisedEpsilon(0.9, 1e-5), adjacency=ADJACENCY)
    assert found.verdict is ClaimVerdict.NOT_IMPLIED
    assert found.is_finding
    assert found.factor is not None
    assert found.factor < 1
    # an attack that meets them makes it fail, anything else that went wrong as well
    attacked = final_verdict(found, [Check("attack", "claim REFUTED", passed=False)])
    assert attacked.verdict is ClaimVerdict.FAILS
    assert final_verdict(found, [Check("ledger", "intact", passed=True)]) is found


@pytest.mark.parametrize(
    ("kind", "stated", "whole"),
    [
        (MechanismKind.DISCRETE_GAUSSIAN, 0.5, 1.0),
        (MechanismKind.DISCRETE_GAUSSIAN, 1.9, 2.0),
        (MechanismKind.DISCRETE_LAPLACE, 0.5, 1.0),
        (MechanismKind.DISCRETE_LAPLACE, 1.9, 2.0),
    ],
)
def test_discrete_noise_is_priced_for_the_next_whole_change(
    kind: MechanismKind, stated: float, whole: float
) -> None:
    # integer noise shows the fractions of what is not whole: such a bound is never rounded down
    part, full = (
        judged(
            [StatedRelease(kind, sensitivity=size, noise=3.0, rounds=2)],
            PromisedEpsilon(0.001, 1e-9),
            adjacency=Adjacency.ADD_REMOVE_ONE,
        )
        for size in (stated, whole)
    )
    assert part.verdict is not ClaimVerdict.HOLDS
    assert part.true is not None
    assert full.true is not None
    assert part.true.upper_float == full.true.upper_float > 0.1
    (words,) = part.argument
    assert "of whole numbers" in words
    assert words.endswith(f"sensitivity {stated} rounded up to {whole:g}")
    assert not full.argument


@pytest.mark.parametrize("squared", [2, 3, 5])
def test_a_root_of_a_whole_number_is_not_rounded_to_the_next(squared: int) -> None:
    release = StatedRelease(
        MechanismKind.DISCRETE_GAUSSIAN, sensitivity=sqrt(squared), noise=2.0, rounds=1
    )
    priced = release.priced_sensitivity
    assert priced is not None
    assert squared <= priced**2 < squared + Fraction(1, 10**12)


@pytest.mark.parametrize(("batch", "records"), [(1, 3), (2, 3), (1, 49)])
def test_stated_poisson_rate_is_rounded_up(batch: int, records: int) -> None:
    release = StatedRelease(
        MechanismKind.GAUSSIAN,
        sensitivity=1.0,
        noise=2.0,
        rounds=1,
        sampling=Sampling.POISSON,
        batch=batch,
        records=records,
    )
    found = judged([release], PromisedEpsilon(9.0, 1e-5), adjacency=Adjacency.ADD_REMOVE_ONE)
    (derivation,) = found.evidence
    assert isinstance(derivation, DerivationEvidence)
    (event,) = derivation.events
    assert isinstance(event.mechanism, Repeated)
    assert isinstance(event.mechanism.event, PoissonSampled)
    assert Fraction(event.mechanism.event.rate) >= Fraction(batch, records)
