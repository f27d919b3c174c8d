"""`dpledger experiment`: run the papers' experiments, and say what their epsilons are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..papers.experiments import (
    PAPERS,
    CellKind,
    Comparison,
    ExperimentPlan,
    Finished,
    Measured,
    chosen,
    run_experiment,
    spread,
)
from .output import Outcome, deliver, json_option, number, shown_up, steps

__all__ = ["experiment"]

_SHOWN = {"accuracy": "accuracy", "majority": "majority", "excess_loss": "excess loss"}


@click.command()
@click.argument("name")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("dpledger-runs/experiments"),
    show_default=True,
    help="Folder for figures, tables and finished runs.",
)
@click.option("--runs", type=click.IntRange(1), help="Runs of each cell; by default the paper's.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--quick", is_flag=True, help="Fewer cells and two runs, for a look.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@json_option
def experiment(
    name: str, out: Path, runs: int | None, seed: int, quick: bool, jobs: int, as_json: bool
) -> None:
    """Run experiment NAME: `list` shows all, `star/delta` is one, `star` means all of a paper's.

    Each leaves SVG figures, tables (CSV) and a manifest in its folder. What is interrupted goes on
    where it stopped: finished runs are kept, and used again.
    """
    if name == "list":
        deliver(_listed(), as_json=as_json)
        return
    plan = ExperimentPlan(seed=seed, runs=runs, quick=quick, jobs=jobs)
    pairs = chosen(name, PAPERS)
    with steps() as start:
        finished = [
            run_experiment(paper, one, plan, out, progress=start(f"{paper.name}/{one.name}"))
            for paper, one in pairs
        ]
    deliver(_outcome(name, finished, out), as_json=as_json)


def _listed() -> Outcome:
    table = Table("name", "what", "in the paper", "runs", box=None)
    data: list[dict[str, Any]] = []
    for paper in PAPERS:
        for one in paper.experiments:
            name = f"{paper.name}/{one.name}"
            table.add_row(name, one.title, one.source, str(one.runs))
            data.append({"name": name, "title": one.title, "source": one.source, "runs": one.runs})
    return Outcome(title="Experiments", data={"experiments": data}, tables=(table,))


def _outcome(name: str, finished: list[Finished], out: Path) -> Outcome:
    tables: list[Table] = []
    for each in finished:
        tables.append(_cells_table(each))
        if each.comparisons:
            tables.append(_comparison_table(each))
    return Outcome(
        title=f"Experiment {name}",
        data={"out": str(out), "experiments": [_data(each) for each in finished]},
        rows=(("files", ", ".join(str(each.folder) for each in finished)),),
        tables=tuple(tables),
    )


def _cells_table(finished: Finished) -> Table:
    metrics = [m for m in _SHOWN if m in finished.cells[0].traces[0].values]
    head = (
        "line",
        "x",
        "promised ε",
        "certified ε",
        "its noise alone",
        *_SHOWN.values(),
        "seconds",
    )
    rows: list[tuple[str, ...]] = []
    for each in finished.cells:
        privacy = each.privacy
        private = each.cell.kind is not CellKind.NON_PRIVATE
        rows.append(
            (
                each.cell.line,
                _place(each.cell.x),
                "" if privacy.nominal is None else _epsilon(privacy.nominal),
                _epsilon(privacy.certified) if private else "",
                _epsilon(privacy.noisy_part) if private else "",
                *(_mean(each, metric) if metric in metrics else "" for metric in _SHOWN),
                f"{spread(each, 'seconds').mean:.2g}",
            )
        )
    runs = len(finished.cells[0].traces)
    return _table(f"{finished.name}, {runs} run{'s' * (runs > 1)}", head, rows)


def _comparison_table(finished: Finished) -> Table:
    head = (
        "published", "x", "promised ε", "certified ε", "noise ÷ repaired",
        "excess loss ÷ repaired", "accuracy − repaired",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for each in finished.comparisons:
        published, repaired = each.excess_loss
        rows.append(
            (
                each.line,
                _place(each.x),
                _epsilon(each.nominal),
                _epsilon(each.published if isfinite(each.published) else None),
                f"{each.noise_ratio:.4g}",
                f"{published / repaired:.4g}",
                "" if each.accuracy is None else f"{each.accuracy[0] - each.accuracy[1]:+.2%}",
            )
        )
    title = f"{finished.name}: published noise against the repaired one at the promised ε"
    return _table(title, head, rows)


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table without the columns that have nothing in any row."""
    filled = [i for i in range(len(head)) if any(row[i] for row in rows)]
    table = Table(*(head[i] for i in filled), title=title, title_justify="left", box=None)
    for row in rows:
        table.add_row(*(row[i] for i in filled))
    return table


def _place(x: float | None) -> str:
    return "" if x is None else f"{x:g}"


def _epsilon(bound: float | None) -> str:
    return "∞" if bound is None else shown_up(bound, digits=5)


def _mean(measured: Measured, metric: str) -> str:
    over = spread(measured, metric)
    # the majority's share differs between runs by their division of records only
    alone = metric == "majority" or len(measured.traces) == 1
    return f"{over.mean:.4g}" if alone else f"{over.mean:.4g} ± {over.deviation:.2g}"


def _data(finished: Finished) -> dict[str, Any]:
    return {
        "name": finished.name,
        "folder": str(finished.folder),
        "cells": [_cell_data(each) for each in finished.cells],
        "comparisons": [_comparison_data(each) for each in finished.comparisons],
    }


def _cell_data(measured: Measured) -> dict[str, Any]:
    privacy = measured.privacy
    return {
        "line": measured.cell.line,
        "kind": measured.cell.kind.value,
        "x": measured.cell.x,
        "delta": privacy.delta,
        "promised_epsilon": privacy.nominal,
        "certified_epsilon": "infinity" if privacy.certified is None else privacy.certified,
        "unprotected": list(privacy.unprotected),
        "runs": len(measured.traces),
        "means": {m: number(spread(measured, m).mean) for m in measured.traces[0].values},
    }


def _comparison_data(comparison: Comparison) -> dict[str, Any]:
    return {
        key: number(value) if isinstance(value, float) and not isfinite(value) else value
        for key, value in asdict(comparison).items()
    }
