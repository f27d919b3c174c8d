"""Laws of the planned one-run audit: numbers of guesses never see scores, true claims stand."""

import numpy as np
import pytest

from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.one_run import Canaries, OneRunTradeOff
from dpledger.audits.one_run_plan import GuessPlan, audit_one_run, plan_guesses
from dpledger.mechanisms.errors import InvalidParameter

DELTA = 1e-5


def canaries(seed: int, mu: float, count: int) -> Canaries:
    generator = np.random.default_rng([9, seed])
    included = generator.random(count) < 0.5
    return Canaries(generator.normal(size=count) + mu * included, included)


def test_a_plan_is_better_than_guessing_all_or_few() -> None:
    plan = plan_guesses(canaries=1000, claimed=Gdp(1), delta=DELTA, confidence=0.95)
    assert plan.suspected_mu == 2.0
    assert 0 < plan.guessed_in == plan.guessed_out < 500
    # what is expected is about what happens
    found = [
        OneRunTradeOff(0.95, plan.guessed_in, plan.guessed_out)
        .lower_bound(canaries(seed, 2.0, 1000), delta=DELTA)
        .mu
        for seed in range(9)
    ]
    assert np.median(np.array(found, dtype=float)) == pytest.approx(plan.expected, abs=0.15)


@pytest.mark.parametrize("claim", [Gdp(0.25), ApproxDp(1.0, DELTA)])
def test_a_true_claim_stands(claim: Gdp | ApproxDp) -> None:
    """Canaries without any effect: 60 audits at 5 %, P(more than 9) = 1e-3."""
    plan = plan_guesses(canaries=200, claimed=claim, delta=DELTA, confidence=0.95)
    accused = sum(
        audit_one_run(
            canaries(seed, 0.0, 200), claimed=claim, delta=DELTA, confidence=0.95, plan=plan
        ).is_finding
        for seed in range(60)
    )
    assert accused <= 9


def test_a_false_claim_is_refuted_and_the_quoted_bounds_hold_alone() -> None:
    for claim in (Gdp(0.25), ApproxDp(0.5, DELTA)):
        plan = plan_guesses(canaries=1000, claimed=claim, delta=DELTA, confidence=0.95)
        found = audit_one_run(
            canaries(1, 4.0, 1000), claimed=claim, delta=DELTA, confidence=0.95, plan=plan
        )
        assert found.is_finding
        assert [bound.confidence for bound in found.bounds] == [0.95] * 3


def test_coins_that_are_not_fair_are_refused() -> None:
    included = np.arange(400) < 300
    plan = GuessPlan(10, 10, 1.0, 0.0)
    with pytest.raises(InvalidParameter, match="included"):
        audit_one_run(
            Canaries(np.zeros(400), included), claimed=Gdp(1), delta=DELTA, confidence=0.9,
            plan=plan,
        )  # fmt: skip
