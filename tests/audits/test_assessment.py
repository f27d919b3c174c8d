"""What an attack's evidence comes to: the policy of `AttackResult`.

Law: where the null control fails, the attack is a finding and no bound of it stands.
Law: an honest run ends in an alarm about its own control in a tenth of 1 - confidence at most.
"""

import numpy as np

from dpledger.accounting.numbers.notions import (
    Gdp,
)
from dpledger.audits import AttackResult, NeighbourPair, Scores, assess
from dpledger.audits.outcomes.attacks import attack_outcome


def assessed(scores: Scores, null: Scores, confidence: float = 0.95) -> AttackResult:
    return assess(scores, null, claimed=Gdp(1), delta=1e-5, confidence=confidence)


APART = Scores(np.full(2000, 50.0), np.full(2000, -50.0))
LEVEL = np.linspace(-1, 1, 2000)


def test_a_null_control_that_fails_is_a_finding_and_no_bound_stands() -> None:
    found = assessed(Scores(LEVEL, LEVEL), APART)
    assert found.null_control.positive
    assert found.is_finding
    assert not found.refutes_claim
    assert found.bounds == ()
    assert found.measured_mu is None
    pair = NeighbourPair(None, None, None, "pair")  # type: ignore[arg-type]
    outcome = attack_outcome(pair, found)
    assert outcome.finding
    assert dict(outcome.rows)["verdict"].startswith("NULL CONTROL FAILED")
    assert outcome.data["bounds"] == ()


def test_it_refutes_nothing_however_far_the_worlds_are_apart() -> None:
    assert assessed(APART, Scores(LEVEL, LEVEL)).refutes_claim
    assert not assessed(APART, APART).refutes_claim


def test_the_control_of_an_honest_run_rarely_fails() -> None:
    """At confidence 0.5 its nominal rate is 5 %, of which only the Gaussian family's half is exact.

    150 repetitions; a control at half of 1 - confidence is accused with probability above 0.999,
    one that keeps its rate with probability below 1e-4.
    """
    generator = np.random.default_rng(20)
    nulls = [Scores(*generator.normal(0.5, 1.0, (2, 200))) for _ in range(150)]
    failed = sum(assessed(null, null, 0.5).null_control.positive for null in nulls)
    assert failed <= 0.05 * 150 + 4 * (0.05 * 150) ** 0.5


def test_the_interval_of_the_measured_mu_is_shown_outward() -> None:
    """Rounded to nearest, its ends lay inside the interval that holds the confidence."""
    generator = np.random.default_rng(21)
    pair = NeighbourPair(None, None, None, "pair")  # type: ignore[arg-type]
    for _ in range(8):
        found = assessed(Scores(*generator.normal(0.0, 1.0, (2, 300))), Scores(LEVEL, LEVEL))
        measured = found.measured_mu
        assert measured is not None
        shown = dict(attack_outcome(pair, found).rows)["measured mu"]
        lower, upper = (float(end) for end in shown.partition("]")[0].strip("[").split(", "))
        assert lower <= measured.lower < measured.upper <= upper
