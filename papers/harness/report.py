"""What an experiment leaves behind: figures, tables, and a manifest that makes them again.

A manifest names the seed, the code's hash, versions, and each cell with its parameters: whoever has
it makes the same numbers again, and a changed line of source makes another hash.
"""

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from ...mechanisms.extras import import_extra
from .cell import canonical
from .engine import ExperimentPlan, Measured, Progress, measure
from .experiment import Experiment, PaperExperiments
from .store import code_digest
from .tables import Comparison, comparisons, spread, write_tables

_PACKAGES = ("dpledger", "numpy", "scipy", "python-flint", "matplotlib")
"""Whose versions stand in a manifest: numbers, or pictures, may depend on each of them."""


@dataclass(frozen=True, slots=True)
class Finished:
    """An experiment that is done: where its files are, and its numbers.

    Args:
        name: paper and experiment.
        folder: with figures, tables and the manifest.
        cells: measured, in the order of the experiment.
        comparisons: published cells beside repaired ones of the same promise.
    """

    name: str
    folder: Path
    cells: tuple[Measured, ...]
    comparisons: tuple[Comparison, ...]


def run_experiment(
    paper: PaperExperiments,
    experiment: Experiment,
    plan: ExperimentPlan,
    out: Path,
    *,
    progress: Progress | None = None,
) -> Finished:
    """Run an experiment and write its files into `out/paper/experiment`.

    Finished runs are kept in `out/cells`, and used again by every experiment that has the same.

    Raises `MissingExtra` before anything is run where matplotlib, which draws, is not installed.

    Args:
        paper: whose experiment, for the source line of figures.
        experiment: its cells and figures.
        plan: seed, number of runs, processes.
        out: the folder of all experiments.
        progress: called with the jobs done and all jobs.
    """
    draw = _drawing()
    cells = measure(experiment, plan, out / "cells", progress=progress)
    folder = out / paper.name / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    write_tables(cells, folder)
    source = f"{paper.reference}: {experiment.source}"
    for figure in experiment.figures:
        path = folder / f"{figure.metric.replace('_', '-')}.svg"
        draw(figure, cells, title=experiment.title, source=source, path=path)
    finished = Finished(
        f"{paper.name}/{experiment.name}", folder, tuple(cells), tuple(comparisons(cells))
    )
    manifest = _manifest(paper, experiment, plan, cells)
    (folder / "manifest.json").write_text(
        json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return finished


def _drawing() -> Callable[..., None]:
    """Return the function that draws figures; matplotlib is loaded here and nowhere earlier."""
    import_extra("matplotlib", "experiments")
    from .figures import draw

    return draw


def _manifest(
    paper: PaperExperiments, experiment: Experiment, plan: ExperimentPlan, cells: Sequence[Measured]
) -> dict[str, Any]:
    """Return what a manifest says, as plain values."""
    return {
        "experiment": f"{paper.name}/{experiment.name}",
        "title": experiment.title,
        "source": f"{paper.reference}: {experiment.source}",
        "seed": plan.seed,
        "runs": plan.runs_of(experiment),
        "quick": plan.quick,
        "code": code_digest(),
        "versions": {
            "python": platform.python_version(),
            **{package: version(package) for package in _PACKAGES},
        },
        "cells": [
            {
                "line": measured.cell.line,
                "kind": measured.cell.kind.value,
                "x": measured.cell.x,
                "key": measured.cell.key,
                "parameters": canonical(measured.cell.task),
                "privacy": msgspec.to_builtins(measured.privacy),
                "final": {
                    metric: msgspec.to_builtins(spread(measured, metric))
                    for metric in measured.traces[0].values
                },
            }
            for measured in cells
        ],
    }
