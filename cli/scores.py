"""Attacks of a user's own: bounds from two arrays of scores."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from ..accounting.gaussian.exact import (
    epsilon_from_delta,
)
from ..audits.bounds import GaussianFamily, LowerBound, Scores, require_delta
from ..audits.metrics import auc
from ..audits.selection import MultiSplit
from ..mechanisms.errors import require_nonnegative
from ..mechanisms.protocols import FloatArray
from .output import Outcome, shown_down, shown_up

__all__ = ["ClaimedPrivacy", "read_scores", "scores_outcome"]

_SEED = 0
_NOTES = (
    "A bound of 0, or one below the claim, is no evidence of privacy: another attack, other data "
    "or more trials may show more.",
    "Scores must be of independent runs. There is no null control: attack runs that do not differ "
    "in the same way, and expect 0.",
    "The verdict is the counting bound's; the Gaussian family holds only for normal scores with "
    "one variance.",
)


@dataclass(frozen=True, slots=True)
class ClaimedPrivacy:
    """What is claimed at `delta`: epsilon, or that of mu (rounded up)."""

    epsilon: float
    delta: float

    @classmethod
    def of(cls, *, epsilon: float | None, mu: float | None, delta: float | None) -> ClaimedPrivacy:
        """Return the claim that options state; raise `UsageError` unless they state one."""
        if delta is None or (epsilon is None) == (mu is None):
            raise click.UsageError("Expected --delta and either --epsilon or --mu with --scores.")
        require_delta(delta)
        if epsilon is None:
            assert mu is not None
            require_nonnegative("mu", mu)
            if delta == 0:
                raise click.UsageError("Expected --delta in (0, 1) with --mu; 0 is pure epsilon's.")
            squared = Fraction(mu) ** 2
            epsilon = epsilon_from_delta(mu_squared=squared, delta=delta).upper_float
        require_nonnegative("epsilon", epsilon)
        return cls(epsilon, delta)


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


def scores_outcome(scores: Scores, claim: ClaimedPrivacy, *, confidence: float) -> Outcome:
    """Return what scores show; a finding if counting puts epsilon above the claim."""
    counting = MultiSplit(confidence, _SEED)
    bounds: tuple[LowerBound, ...] = (
        counting.lower_bound(scores, delta=claim.delta),
        *(
            (GaussianFamily(confidence).lower_bound(scores, delta=claim.delta),)
            if claim.delta
            else ()
        ),
    )
    refuted = bounds[0].epsilon > claim.epsilon
    trials = min(scores.dataset.size, scores.neighbour.size)
    most, area = counting.ceiling(trials=trials, delta=claim.delta), auc(scores)
    table = Table("lower bound on epsilon", "epsilon", "how", box=None)
    for bound in bounds:
        table.add_row(bound.method, shown_down(bound.epsilon, digits=4), bound.detail)
    return Outcome(
        title="Attack by scores",
        data={
            "claimed_epsilon": claim.epsilon,
            "delta": claim.delta,
            "confidence": confidence,
            "trials": {"in": scores.dataset.size, "out": scores.neighbour.size},
            "bounds": [asdict(bound) for bound in bounds],
            "ceiling": most,
            "auc": area,
            "refutes_claim": refuted,
            "not_meant": list(_NOTES),
        },
        rows=(
            ("trials", f"{scores.dataset.size} in, {scores.neighbour.size} out"),
            ("claimed epsilon", f"{shown_up(claim.epsilon, digits=6)} at delta {claim.delta:g}"),
            ("largest provable", f"{most:.4g} with so many trials"),
            ("AUC", f"{area:.4f}"),
            ("verdict", "claim REFUTED" if refuted else "claim not refuted"),
            *(("note", text) for text in _NOTES),
        ),
        tables=(table,),
        finding=refuted,
    )
