"""`dpledger experiment` as a user meets it: a list, a run, a kill and what comes after it."""

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dpledger.cli.experiment as command
from dpledger.papers.experiments import PAPERS, Cell, CellKind, Experiment, PaperExperiments
from dpledger.papers.harness.experiment import Against, Figure
from dpledger.papers.harness.sources import Source, SourceRecords
from dpledger.papers.harness.training import TrainingTask
from dpledger.papers.huang2020_star.experiment import StarMethod

from .conftest import Call


def cells(quick: bool) -> tuple[Cell, ...]:
    source = Source(records=SourceRecords.SYNTHETIC, train=200, test=50, width=4)
    return tuple(
        Cell(
            line=kind.value,
            kind=kind,
            task=TrainingTask(source=source, method=StarMethod(kind=kind, rounds=3), parties=2),
        )
        for kind in (CellKind.PUBLISHED, CellKind.REPAIRED)
    )


TINY = PaperExperiments(
    name="tiny",
    reference="nobody",
    experiments=(
        Experiment(
            name="one",
            title="One",
            source="nowhere",
            runs=3,
            cells=cells,
            figures=(Figure(metric="accuracy", against=Against.EPSILON, log_x=True),),
        ),
    ),
)


def test_the_list_names_all_experiments(call: Call) -> None:
    listed = call("experiment", "list", "--json").data["experiments"]
    assert {entry["name"].partition("/")[0] for entry in listed} == {
        "huang2020_star",
        "ding2020_network",
        "ding2019_stochastic",
        "xu2020_centralised",
        "hu2020_sharing",
        "utility",
    }
    assert all(entry["runs"] >= 1 and entry["source"] for entry in listed)
    printed = call("experiment", "list")
    assert printed.status == 0
    assert "huang2020_star/times" in printed.out


def test_tables_keep_their_words_whole_and_leave_out_what_is_empty(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PAPERS", (TINY,))
    printed = call("experiment", "tiny", "--out", tmp_path, "--runs", 1).out
    for head in (
        "promised ε  enclosed ε  its noise alone  accuracy",
        "majority  excess loss",
        "promised ε  enclosed ε  noise ÷ repaired  excess loss ÷ repaired",
    ):
        assert head in printed
    assert "…" not in printed


def test_an_unknown_name_is_a_mistake_that_lists_the_known_ones(call: Call) -> None:
    answer = call("experiment", "huang2020_star/nothing")
    assert answer.status == 2
    assert (
        "experiment='huang2020_star/nothing' must be among huang2020_star/agents_l2" in answer.err
    )


def test_an_experiment_leaves_files_and_prints_what_epsilons_are_worth(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PAPERS", (TINY,))
    answer = call("experiment", "tiny", "--out", tmp_path, "--runs", 2, "--seed", 4, "--json")
    assert answer.status == 0, answer.err
    (only,) = answer.data["experiments"]
    published, repaired = only["cells"]
    assert published["enclosed_epsilon"] == "infinity"
    assert repaired["enclosed_epsilon"] <= published["promised_epsilon"]
    assert published["runs"] == 2
    (comparison,) = only["comparisons"]
    assert comparison["noise_ratio"] > 1
    folder = tmp_path / "tiny" / "one"
    assert sorted(path.name for path in folder.iterdir()) == [
        "accuracy.svg", "manifest.json", "runs.csv", "summary.csv", "times.csv",
    ]  # fmt: skip
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["seed"], manifest["runs"]) == (4, 2)
    with (folder / "summary.csv").open(newline="") as stream:
        means = {(r["line"], r["metric"]): float(r["mean"]) for r in csv.DictReader(stream)}
    assert means["repaired", "accuracy"] == repaired["means"]["accuracy"]
    text = call("experiment", "tiny/one", "--out", tmp_path, "--runs", 2, "--seed", 4).out
    assert "noise" in text
    assert "∞" in text


KILLED = """
import os, signal, sys
import dpledger.cli.experiment as command
from dpledger.cli import run
from dpledger.papers.harness.store import Store
from {module} import TINY
keep, kept = Store.keep, []
def keep_four(*arguments):
    kept.append(keep(*arguments))
    if len(kept) == 4:
        os.kill(os.getpid(), signal.SIGKILL)
Store.keep = keep_four
command.PAPERS = (TINY,)
sys.argv = ["dpledger", "experiment", "tiny", "--out", {out!r}, "--runs", "2"]
run()
"""


def test_a_killed_experiment_goes_on_where_it_stopped(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = KILLED.format(module="test_experiment_tiny", out=str(tmp_path))
    (tmp_path / "test_experiment_tiny.py").write_text(
        Path(__file__).read_text().replace("from .conftest import Call", "Call = object")
    )
    killed = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False)
    assert killed.returncode == -signal.SIGKILL
    kept = (tmp_path / "cells").glob("*.json")
    before = {path: path.stat().st_mtime_ns for path in kept}
    assert len(before) == 4
    monkeypatch.setattr(command, "PAPERS", (TINY,))
    assert call("experiment", "tiny", "--out", tmp_path, "--runs", 2).status == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert call("experiment", "tiny", "--out", tmp_path / "whole", "--runs", 2).status == 0
    for name in ("runs.csv", "summary.csv"):
        resumed, whole = (f / "tiny" / "one" / name for f in (tmp_path, tmp_path / "whole"))
        assert resumed.read_bytes() == whole.read_bytes()


def test_every_papers_cells_are_different_plain_data() -> None:
    for paper in PAPERS:
        for experiment in paper.experiments:
            for quick in (True, False):
                cells = experiment.cells(quick)
                points = {(cell.line, cell.x, cell.key) for cell in cells}
                assert len(points) == len(cells), experiment.name
            assert len(experiment.cells(True)) <= len(experiment.cells(False))
