"""Experiments as outcomes: the list of all, and what finished ones measured and compared."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from ...accounting.numbers.enclosure import shown_up
from ...audits.outcome import Outcome, TextColumns
from .cell import CellKind
from .engine import Measured
from .experiment import PaperExperiments
from .report import Finished
from .tables import spread

_SHOWN = {"accuracy": "accuracy", "majority": "majority", "excess_loss": "excess loss"}
"""Metrics of the table, and their heads."""
_CELLS = ("line", "x", "promised ε", "enclosed ε", "its noise alone", *_SHOWN.values(), "seconds")
"""Columns of the table of cells."""
_COMPARED = (
    "published", "x", "promised ε", "enclosed ε", "noise ÷ repaired", "excess loss ÷ repaired",
    "accuracy − repaired",
)  # fmt: skip
"""Columns of the table of published against repaired; ÷ is a quotient, − a difference."""


def experiments_outcome(name: str, finished: Sequence[Finished], out: Path) -> Outcome:
    """Return what finished experiments measured.

    Args:
        name: what was asked for.
        finished: each with its cells and comparisons.
        out: the folder that all files are in.

    An experiment is no finding: what a paper's noise is worth is said, and the court judges it.
    """
    return Outcome(
        title=f"Experiment {name}",
        data={"out": str(out), "experiments": [_data(each) for each in finished]},
        rows=(("files", ", ".join(str(each.folder) for each in finished)),),
        tables=[table for each in finished for table in _tables(each)],
    )


def listed_outcome(papers: Sequence[PaperExperiments]) -> Outcome:
    """Return the names, titles, places and numbers of runs of all papers' experiments.

    Args:
        papers: in the order of `PAPERS`.
    """
    listed = [
        (f"{paper.name}/{one.name}", one.title, one.source, one.runs)
        for paper in papers
        for one in paper.experiments
    ]
    keys = ("name", "title", "source", "runs")
    return Outcome(
        title="Experiments",
        data={"experiments": [dict(zip(keys, each, strict=True)) for each in listed]},
        tables=(
            TextColumns(
                ("name", "what", "in the paper", "runs"), [tuple(map(str, e)) for e in listed]
            ),
        ),
    )


def _tables(finished: Finished) -> list[TextColumns]:
    """Return what was measured and, where there is a repaired cell, what is compared with it.

    Excess losses are compared as a quotient: how many times as far from the optimum the paper's
    noise leaves it.
    """
    metrics = finished.cells[0].traces[0].values
    cells = [
        (
            each.cell.line,
            _place(each.cell.x),
            *_epsilons(each),
            *(_mean(each, metric) if metric in metrics else "" for metric in _SHOWN),
            f"{spread(each, 'seconds').mean:.2g}",
        )
        for each in finished.cells
    ]
    compared = [
        (
            each.line,
            _place(each.x),
            _epsilon(each.nominal),
            _epsilon(each.published),
            f"{each.noise_ratio:.4g}",
            f"{each.excess_loss[0] / each.excess_loss[1]:.4g}",
            "" if each.accuracy is None else f"{each.accuracy[0] - each.accuracy[1]:+.2%}",
        )
        for each in finished.comparisons
    ]
    runs = len(finished.cells[0].traces)
    against = f"{finished.name}: published noise against the repaired one at the promised ε"
    return [
        _filled(f"{finished.name}, {runs} run{'s' * (runs > 1)}", _CELLS, cells),
        *([_filled(against, _COMPARED, compared)] if compared else []),
    ]


def _filled(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> TextColumns:
    """Return a table without the columns that have nothing in any row."""
    filled = [i for i in range(len(head)) if any(row[i] for row in rows)]
    return TextColumns([head[i] for i in filled], [[row[i] for i in filled] for row in rows], title)


def _place(x: float | None) -> str:
    """Return where a cell stands on the axis; empty where it does not."""
    return "" if x is None else f"{x:g}"


def _epsilons(measured: Measured) -> Sequence[str]:
    """Return promised and enclosed epsilon, and that of the noise alone; empty without privacy."""
    privacy, private = measured.privacy, measured.cell.kind is not CellKind.NON_PRIVATE
    found = (privacy.certified_epsilon, privacy.noisy_epsilon) if private else (None, None)
    return [_epsilon(bound) for bound in (privacy.nominal, *found)]


def _epsilon(bound: float | None) -> str:
    """Return an epsilon rounded up; a sign for infinity, empty for none."""
    if bound is None:
        return ""
    return shown_up(bound, digits=5) if isfinite(bound) else "∞"


def _mean(measured: Measured, metric: str) -> str:
    """Return mean and standard deviation of a metric over runs."""
    over = spread(measured, metric)
    # the majority's share differs between runs by their division of records only
    alone = metric == "majority" or len(measured.traces) == 1
    return f"{over.mean:.4g}" if alone else f"{over.mean:.4g} ± {over.deviation:.2g}"


def _data(finished: Finished) -> dict[str, Any]:
    """Return an experiment as plain values."""
    return {
        "name": finished.name,
        "folder": str(finished.folder),
        "cells": [
            {
                "line": each.cell.line,
                "kind": each.cell.kind,
                "x": each.cell.x,
                "delta": each.privacy.delta,
                "promised_epsilon": each.privacy.nominal,
                "enclosed_epsilon": each.privacy.certified_epsilon,
                "unprotected": each.privacy.unprotected,
                "runs": len(each.traces),
                "means": {metric: spread(each, metric).mean for metric in each.traces[0].values},
            }
            for each in finished.cells
        ],
        "comparisons": finished.comparisons,
    }
