"""Runs repeat by seed, whatever their order and processes; what is finished stays finished."""

import json
from pathlib import Path
from typing import Any

import pytest

from dpledger.audits.trials.code import code_digest as digest_of_rooms
from dpledger.mechanisms import SimulationSampler
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.papers.experiments import Cell, CellKind, Experiment, ExperimentPlan
from dpledger.papers.harness import store as storing
from dpledger.papers.harness.cell import canonical
from dpledger.papers.harness.engine import measure
from dpledger.papers.harness.store import Store, code_digest

from .conftest import cell


def numbers(folder: Path) -> dict[str, dict[str, object]]:
    """Return all stored results, without the seconds, which no seed decides."""
    found: dict[str, dict[str, object]] = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_bytes())
        document.pop("seconds", None)
        found[path.name] = document
    return found


@pytest.fixture(scope="module")
def whole(tiny: Experiment, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Results of one process, in one go: where they are kept, and themselves."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, measure(tiny, ExperimentPlan(quick=True), folder)


def test_parallel_results_are_those_of_one_process(
    tiny: Experiment, tmp_path: Path, whole: tuple[Path, Any]
) -> None:
    measure(tiny, ExperimentPlan(jobs=2, quick=True), tmp_path)
    serial = numbers(whole[0])
    assert len(serial) == 3 * (2 + 1)
    assert serial == numbers(tmp_path)


def test_what_is_finished_is_not_run_again(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: tuple[Path, Any]
) -> None:
    kept: list[tuple[str, int | None]] = []
    keep = Store.keep

    def interrupted(self: Store, cell: Cell, run: int | None, result: object) -> None:
        if len(kept) == 4:
            raise KeyboardInterrupt
        kept.append((cell.key, run))
        keep(self, cell, run, result)  # type: ignore[arg-type]

    plan = ExperimentPlan(quick=True)
    monkeypatch.setattr(Store, "keep", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure(tiny, plan, tmp_path / "cells")
    first, done = list(kept), {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.json")}
    assert len(first) == len(done) == 4

    def counted(self: Store, cell: Cell, run: int | None, result: object) -> None:
        kept.append((cell.key, run))
        keep(self, cell, run, result)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "keep", counted)
    measure(tiny, plan, tmp_path / "cells")
    assert len(kept) == len(set(kept)) == 3 * (2 + 1)
    assert {p: p.stat().st_mtime_ns for p in done} == done
    assert numbers(tmp_path / "cells") == numbers(whole[0])


def test_a_half_written_result_is_never_read(tiny: Experiment, tmp_path: Path) -> None:
    store, one = Store(tmp_path, seed=0), tiny.cells(True)[0]
    (tmp_path / "0123.4567").write_text('{"rounds":')
    assert store.trace(one, 0) is None
    store.keep(one, 0, one.task.run(split_seed=0, sampler=SimulationSampler(0)))
    assert store.trace(one, 0) is not None
    assert store.trace(one, 1) is None
    assert Store(tmp_path, seed=1).trace(one, 0) is None


def test_a_result_of_other_code_is_never_read(
    tiny: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = tiny.cells(True)[0]
    Store(tmp_path, seed=0).keep(one, None, one.task.privacy())
    assert Store(tmp_path, seed=0).privacy(one) is not None
    monkeypatch.setattr(storing, "code_digest", lambda: "other code")
    assert Store(tmp_path, seed=0).privacy(one) is None


@pytest.mark.parametrize(
    ("changed", "counts"),
    [
        ("mechanisms/noise.py", True),
        ("accounting/pld/bounds.py", True),
        ("solvers/star.py", True),
        ("data/adult.py", True),
        ("papers/huang2020_star/experiment.py", True),
        ("papers/harness/figures.py", False),
        ("cli/app.py", False),
    ],
)
def test_the_code_of_a_result_is_all_that_it_depends_on(
    tmp_path: Path, changed: str, counts: bool
) -> None:
    package = tmp_path / "package"
    path = package / changed
    path.parent.mkdir(parents=True)
    path.write_text("A = 1\n")
    before = code_digest(package)
    path.write_text("A = 2\n")
    digest_of_rooms.cache_clear()
    assert (code_digest(package) != before) == counts


def test_the_code_of_this_program_is_found() -> None:
    # a package without rooms would have this digest, whatever its code
    assert code_digest() != code_digest(Path("nowhere"))


def test_a_key_names_all_parameters_and_nothing_of_the_drawing() -> None:
    keys = {
        cell(kind, epsilon, history=history).key
        for kind in CellKind
        for epsilon in (0.1, 0.2)
        for history in (True, False)
    }
    assert len(keys) == 2 * 2 * len(CellKind)
    one = cell(CellKind.REPAIRED)
    renamed = Cell(line="another name", kind=one.kind, task=one.task, x=7.0)
    assert renamed.key == one.key


def test_what_is_not_plain_data_has_no_key() -> None:
    with pytest.raises(TypeError, match="plain frozen data"):
        canonical([1, 2])


def test_runs_differ_and_cells_share_the_division_of_records(whole: tuple[Path, Any]) -> None:
    published, repaired, free = whole[1]
    assert published.traces[0].values != published.traces[1].values
    # the cell without noise differs between runs by its records only
    assert free.traces[0].values != free.traces[1].values
    assert repaired.privacy.nominal == published.privacy.nominal


@pytest.mark.parametrize(("argument", "value"), [("jobs", 0), ("runs", 0)])
def test_a_plan_wants_whole_numbers_from_one(argument: str, value: int) -> None:
    with pytest.raises(InvalidParameter, match=f"{argument}=0 must be"):
        ExperimentPlan(**{argument: value})
