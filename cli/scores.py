"""Attacks of a user's own: bounds from two arrays of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from ..accounting.numbers.notions import ApproxDp, Gdp
from ..audits.bounds import GaussianFamily, LowerBound, Scores, require_delta
from ..audits.claim_tests import ClaimTest, claimed_epsilon, scores_tests
from ..audits.metrics import auc
from ..audits.selection import MultiSplit
from ..mechanisms.errors import require_nonnegative
from ..mechanisms.protocols import FloatArray
from .output import Outcome, shown_down, shown_up

__all__ = ["ClaimedPrivacy", "read_scores", "scores_outcome", "tests_table"]

_SEED = 0
# below so many trials a world the family's own tests do not see heavy tails: of Laplace scores the
# bound exceeded the truth in 46 % of 50 trials, 19 % of 200, none of 500
_FEWEST_FOR_FAMILY = 500
_NOTES = (
    "A bound of 0, or one below the claim, is no evidence of privacy: another attack, other data "
    "or more trials may show more.",
    "Scores must be of independent runs. There is no null control: attack runs that do not differ "
    "in the same way, and expect 0.",
    "The verdict is that of the tests, which share the error probability. What holds only for "
    "normal scores is no part of it; it stands under its own heading, from 500 trials a world on.",
)


@dataclass(frozen=True, slots=True)
class ClaimedPrivacy:
    """What is claimed, and where epsilon is bounded."""

    claim: Gdp | ApproxDp
    delta: float

    @classmethod
    def of(cls, *, epsilon: float | None, mu: float | None, delta: float | None) -> ClaimedPrivacy:
        """Return the claim that options state; raise `UsageError` unless they state one."""
        if delta is None or (epsilon is None) == (mu is None):
            raise click.UsageError("Expected --delta and either --epsilon or --mu with --scores.")
        require_delta(delta)
        if epsilon is not None:
            return cls(ApproxDp(epsilon, delta), delta)
        assert mu is not None
        require_nonnegative("mu", mu)
        if delta == 0:
            raise click.UsageError("Expected --delta in (0, 1) with --mu; 0 is pure epsilon's.")
        return cls(Gdp(Fraction(mu) ** 2), delta)

    @property
    def epsilon(self) -> float:
        """The claimed epsilon at `delta`, rounded up."""
        return claimed_epsilon(self.claim, self.delta)


def read_scores(inside: Path, outside: Path) -> Scores:
    """Return scores from two .npy files of numbers, shape (N,) each: with the record, without."""
    return Scores(_read(inside), _read(outside))


def _read(path: Path) -> FloatArray:
    try:
        found = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise click.BadParameter(f"{path}: Expected a .npy file of numbers: {error}") from error
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu":
        raise click.BadParameter(f"{path}: Expected a .npy file with one array of real numbers.")
    return found.astype(np.float64)


def tests_table(tests: Sequence[ClaimTest]) -> Table:
    """Return the tests of a claim as a table: what each may err, and what it saw."""
    table = Table("test of the claim", "level", "refuted", "what it saw", box=None)
    for test in tests:
        table.add_row(test.name, f"{test.level:.3g}", "YES" if test.refuted else "no", test.detail)
    return table


def scores_outcome(scores: Scores, claimed: ClaimedPrivacy, *, confidence: float) -> Outcome:
    """Return what scores show; a finding if a test refutes the claim."""
    delta, epsilon = claimed.delta, claimed.epsilon
    counting = MultiSplit(confidence, _SEED)
    bound = counting.lower_bound(scores, delta=delta)
    tests = scores_tests(
        scores, claimed=claimed.claim, delta=delta, confidence=confidence, seed=_SEED
    )
    family = _of_the_family(scores, claimed, confidence)
    refuted = any(test.refuted for test in tests)
    trials = min(scores.dataset.size, scores.neighbour.size)
    most, area = counting.ceiling(trials=trials, delta=delta), auc(scores)
    return Outcome(
        title="Attack by scores",
        data={
            "claimed_epsilon": epsilon,
            "delta": delta,
            "confidence": confidence,
            "trials": {"in": scores.dataset.size, "out": scores.neighbour.size},
            "bounds": [asdict(bound)],
            "if_normal": [asdict(each) for each in family],
            "tests": [asdict(test) for test in tests],
            "ceiling": most,
            "auc": area,
            "refutes_claim": refuted,
            "not_meant": list(_NOTES),
        },
        rows=(
            ("trials", f"{scores.dataset.size} in, {scores.neighbour.size} out"),
            ("claimed epsilon", f"{shown_up(epsilon, digits=6)} at delta {delta:g}"),
            ("largest provable", f"{most:.4g} with so many trials"),
            ("AUC", f"{area:.4f}"),
            ("verdict", "claim REFUTED" if refuted else "claim not refuted"),
            *(("note", text) for text in _NOTES),
        ),
        tables=(
            _bounds_table("lower bound on epsilon", [bound]),
            *([_bounds_table("if scores are normal, an assumption", family)] if family else []),
            tests_table(tests),
        ),
        finding=refuted,
    )


def _of_the_family(scores: Scores, claimed: ClaimedPrivacy, confidence: float) -> list[LowerBound]:
    """Return what holds for normal scores only, where enough of them say nothing against it."""
    if claimed.delta == 0:
        return []
    found = GaussianFamily(confidence, fewest=_FEWEST_FOR_FAMILY).lower_bound(
        scores, delta=claimed.delta
    )
    return [found] if found.conditions_met else []


def _bounds_table(heading: str, bounds: Sequence[LowerBound]) -> Table:
    table = Table(heading, "epsilon", "how", box=None)
    for bound in bounds:
        table.add_row(bound.method, shown_down(bound.epsilon, digits=4), bound.detail)
    return table
