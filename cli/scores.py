"""Attacks of a user's own: bounds from two arrays of scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
from rich.table import Table

from ..audits.bounds import LowerBound, Scores
from ..audits.claim_tests import ClaimTest
from ..audits.scores import JudgedScores
from ..mechanisms.protocols import FloatArray
from .output import Outcome, shown_down, shown_up

__all__ = ["read_scores", "scores_outcome", "tests_table"]


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


def scores_outcome(found: JudgedScores, *, confidence: float) -> Outcome:
    """Return what scores show; a finding if they refute the claim."""
    scores, refuted, delta = found.scores, found.refutes_claim, found.claimed.delta
    epsilon = found.claimed.epsilon
    tables = [_bounds_table("lower bound on epsilon", [found.bound])]
    if found.if_normal:
        tables.append(_bounds_table("if scores are normal, an assumption", found.if_normal))
    return Outcome(
        title="Attack by scores",
        data={
            "claimed_epsilon": epsilon,
            "delta": delta,
            "confidence": confidence,
            "trials": {"in": scores.dataset.size, "out": scores.neighbour.size},
            "bounds": [asdict(found.bound)],
            "if_normal": [asdict(each) for each in found.if_normal],
            "tests": [asdict(test) for test in found.tests],
            "ceiling": found.ceiling,
            "auc": found.auc,
            "refutes_claim": refuted,
            "not_meant": list(found.not_meant),
        },
        rows=(
            ("trials", f"{scores.dataset.size} in, {scores.neighbour.size} out"),
            ("claimed epsilon", f"{shown_up(epsilon, digits=6)} at delta {delta:g}"),
            ("largest provable", f"{found.ceiling:.4g} with so many trials"),
            ("AUC", f"{found.auc:.4f}"),
            ("verdict", "claim REFUTED" if refuted else "claim not refuted"),
            *(("note", text) for text in found.not_meant),
        ),
        tables=(*tables, tests_table(found.tests)),
        finding=refuted,
    )


def _bounds_table(heading: str, bounds: Sequence[LowerBound]) -> Table:
    table = Table(heading, "epsilon", "how", box=None)
    for bound in bounds:
        table.add_row(bound.method, shown_down(bound.epsilon, digits=4), bound.detail)
    return table
