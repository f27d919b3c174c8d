"""A ledger's past: older copies, used seeds and simulations are refused, with nothing spent."""

import copy
import os
import pickle
import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from dpledger.accounting.ledger import (
    FileAnchor,
    Head,
    Ledger,
    LedgerError,
    MemoryLedger,
    RolledBack,
    Run,
    SqliteLedger,
    exported,
    imported,
)
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import Gdp
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    Provenance,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SimulationSampler,
    SystemSampler,
    declared,
)
from dpledger.mechanisms.rounding import exact

REPLACE = Adjacency.REPLACE_ONE
A, B = "a" * 64, "b" * 64


def value() -> Sensitive:
    unit = declared(1, "an example", adjacency=REPLACE)
    return Sensitive(
        unit,
        exact(unit.root, width=2),
        parties=("p",),
        dimension=2,
        compute=lambda: np.zeros((1, 2)),
        auditable=True,
    )


def release(run: Run, sampler: object, times: int = 1) -> None:
    curator = SamplingCurator(run, sampler)  # type: ignore[arg-type]
    for k in range(1, times + 1):
        curator.release(value(), round=k, release="x", noise_multiplier=1.0)


def budgeted(ledger: Ledger, releases: int) -> Ledger:
    ledger.set_budget(Budget(Gdp(releases), adjacency=REPLACE))
    return ledger


# Anchors -----------------------------------------------------------------------------------------


def swapped_releases(path: Path, open_ledger: Callable[[], SqliteLedger]) -> int:
    """Return how many releases a budget of 12 lets out if an older copy comes back three times."""
    older = path.with_suffix(".older")
    with open_ledger() as ledger:
        budgeted(ledger, 12)
        release(ledger.run("before", configuration_hash="c"), SystemSampler(), 4)
    shutil.copy(path, older)
    left = 4
    for attempt in range(4):
        with open_ledger() as ledger:
            run = ledger.run(f"run {attempt}", configuration_hash="c")
            try:
                while True:
                    release(run, SystemSampler())
                    left += 1
            except (BudgetExceeded, RolledBack):
                pass
        shutil.copy(older, path)
    return left


def test_an_older_copy_in_a_ledgers_place_is_refused_by_its_anchor(tmp_path: Path) -> None:
    path, anchor = tmp_path / "ledger.sqlite", tmp_path / "elsewhere.anchor"
    assert swapped_releases(path, lambda: SqliteLedger(path, anchor=anchor)) == 12
    # without an anchor nothing can tell: 8 more each time
    path = tmp_path / "unanchored.sqlite"
    assert swapped_releases(path, lambda: SqliteLedger(path)) == 4 + 4 * 8


def test_an_older_copy_takes_no_other_message_for_one_that_left(tmp_path: Path) -> None:
    path, anchor = tmp_path / "ledger.sqlite", tmp_path / "elsewhere.anchor"
    with SqliteLedger(path, anchor=anchor) as ledger:
        step = GaussianStep(declared(1, "an example", adjacency=REPLACE), 4.0)
        event = Event(step, Context((), 1, "x", Audience.SERVER))
        run = ledger.run("r", configuration_hash="c")
        token = run.reserve((event,), Provenance("system", None))
    older = path.read_bytes()
    with SqliteLedger(path, anchor=anchor) as ledger:
        ledger.run("r", configuration_hash="c").commit(token, np.zeros((1, 1)))
    path.write_bytes(older)
    with SqliteLedger(path, anchor=anchor) as ledger, pytest.raises(RolledBack):
        ledger.run("r", configuration_hash="c").commit(token, np.ones((1, 1)))


def test_the_refusal_says_what_is_missing_and_records_nothing(tmp_path: Path) -> None:
    path, anchor = tmp_path / "ledger.sqlite", tmp_path / "elsewhere.anchor"
    with SqliteLedger(path, anchor=anchor) as ledger:
        release(ledger.run("r", configuration_hash="c"), SystemSampler())
        rows = ledger.last_row.row
    FileAnchor(anchor).append(Head(rows + 5, A))
    with SqliteLedger(path, anchor=anchor) as ledger:
        with pytest.raises(RolledBack, match=rf"row {rows + 5} instead got {rows} rows"):
            release(ledger.run("r", configuration_hash="c"), SystemSampler())
        assert ledger.last_row.row == rows


def test_another_ledger_of_the_same_length_is_refused(tmp_path: Path) -> None:
    anchor = tmp_path / "elsewhere.anchor"
    for name in ("one", "other"):
        with SqliteLedger(tmp_path / name, anchor=anchor) as ledger:
            run = ledger.run("r", configuration_hash="c")
            if name == "one":
                release(run, SystemSampler(), 2)
                continue
            with pytest.raises(RolledBack, match=r"another ledger|instead got"):
                release(run, SystemSampler())


def test_a_lost_anchor_is_no_new_one(tmp_path: Path) -> None:
    path, anchor = tmp_path / "ledger.sqlite", tmp_path / "elsewhere.anchor"
    with SqliteLedger(path, anchor=anchor) as ledger:
        run = ledger.run("r", configuration_hash="c")
        release(run, SystemSampler())
        anchor.unlink()
        with pytest.raises(RolledBack, match=r"elsewhere.anchor .* instead got no file"):
            release(run, SystemSampler())


def test_an_anchor_keeps_the_farthest_head_and_survives_a_torn_line(tmp_path: Path) -> None:
    anchor = FileAnchor(tmp_path / "anchor")
    assert anchor.last() is None
    for head in (Head(3, A), Head(12, B), Head(9, A)):
        anchor.append(head)
    assert anchor.last() == Head(12, B)
    with anchor.path.open("a") as file:
        file.write("13 ab")
    assert anchor.last() == Head(12, B)
    anchor.append(Head(14, A))
    assert anchor.last() == Head(14, A)
    for number in range(15, 1000):
        anchor.append(Head(number, B))
    assert anchor.last() == Head(999, B)


def test_a_file_that_is_no_anchor_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello\n")
    with pytest.raises(LedgerError, match="Expected lines of a row number and a hash"):
        FileAnchor(path).last()


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_an_anchor_is_a_file_of_its_own(tmp_path: Path) -> None:
    """A pipe was waited for under the lock; a name of a journal was SQLite's to remove."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(LedgerError, match="to be a file"):
            SqliteLedger(tmp_path / "ledger", anchor=path)
    with pytest.raises(LedgerError, match="must have another name"):
        SqliteLedger(tmp_path / "ledger", anchor=tmp_path / "ledger-journal")
    assert not (tmp_path / "ledger").exists()


@pytest.mark.parametrize("line", ["", f"0 {A}", f"1  {A}", f"1 {A[:-1]}", f"1 {A.upper()}", A])
def test_lines_that_are_no_heads_are_refused(line: str) -> None:
    with pytest.raises(LedgerError, match="row number and a hash"):
        Head.read(line)


def test_a_pickled_ledger_keeps_its_anchor_and_a_missing_file_is_an_error(tmp_path: Path) -> None:
    path, anchor = tmp_path / "ledger.sqlite", tmp_path / "elsewhere.anchor"
    with SqliteLedger(path, anchor=anchor) as ledger:
        release(ledger.run("r", configuration_hash="c"), SystemSampler())
        written = pickle.dumps(ledger)
    FileAnchor(anchor).append(Head(99, A))
    with pickle.loads(written) as again, pytest.raises(RolledBack):
        release(again.run("r", configuration_hash="c"), SystemSampler())
    path.unlink()
    with pytest.raises(LedgerError, match=r"Expected the ledger .* instead got no file"):
        pickle.loads(written)
    assert not path.exists()


def test_a_certificate_names_a_row_that_its_ledger_holds(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(LedgerError, match="at least one row"):
            _ = ledger.last_row
        run = ledger.run("r", configuration_hash="c")
        release(run, SystemSampler(), 2)
        (statement,) = ledger.circumstances()
        (head,) = Head.stated([f"taken for granted: {statement}", "something else"])
        assert head == ledger.last_row
        release(run, SystemSampler())
        ledger.require_row(head)
        with pytest.raises(RolledBack, match="another ledger"):
            ledger.require_row(Head(head.row, A))
        with pytest.raises(RolledBack, match="older copy"):
            ledger.require_row(Head(1000, A))


# Seeds -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [SeededSampler, SimulationSampler])
@pytest.mark.parametrize("name", ["r", "another"])
def test_a_seed_used_by_another_sampler_is_refused(name: str, other: type) -> None:
    ledger = MemoryLedger()
    sampler = SeededSampler(5)
    release(ledger.run("r", configuration_hash="c"), sampler, 2)
    release(ledger.run("r", configuration_hash="c"), sampler)  # goes on where it was
    rows = ledger.last_row.row
    run = ledger.run(name, configuration_hash="c")
    with pytest.raises(LedgerError, match=r"Expected a fresh seed"):
        release(run, other(5))
    assert ledger.last_row.row == rows + (name != "r")
    release(run, other(6))


def test_a_seed_in_the_file_is_refused_after_it_is_opened_again(tmp_path: Path) -> None:
    sampler = SeededSampler(5)
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        release(ledger.run("r", configuration_hash="c"), sampler)
    with (
        SqliteLedger(tmp_path / "ledger.sqlite") as ledger,
        pytest.raises(LedgerError, match="fresh seed"),
    ):
        release(ledger.run("r", configuration_hash="c"), SeededSampler(5))


def test_ledgers_that_hold_a_seed_twice_are_still_read() -> None:
    ledger, again = MemoryLedger(), MemoryLedger()
    twice = Provenance("numpy-philox", 5)  # as it was written before
    sampler = SeededSampler(7)
    event = None
    curator = SamplingCurator(ledger.run("r", configuration_hash="c"), sampler, record=True)
    curator.release(value(), round=1, release="x", noise_multiplier=1.0)
    (event,) = (message.event for message in curator.transcript)
    for name in ("one", "two"):
        ledger.run(name, configuration_hash="c").reserve((event,), twice)
    imported(exported(ledger), again)
    again.verify()
    assert again.sharing_noise() == ("one", "two")


# Simulations -------------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [None, 3])
@pytest.mark.parametrize("kind", [SeededSampler, SimulationSampler])
def test_a_budget_pays_for_releases_only(kind: type, trials: int | None) -> None:
    ledger, free = budgeted(MemoryLedger(), 5), MemoryLedger()
    for book in (ledger, free):
        run = book.run("r", configuration_hash="c")
        curator = SamplingCurator(run, kind(1), trials=trials)
        is_release = kind is SeededSampler and trials is None
        if book is ledger and not is_release:
            with pytest.raises(LedgerError, match="Expected a release instead got a simulation"):
                curator.release(value(), round=1, release="x", noise_multiplier=1.0)
            assert not ledger.events()
            continue
        curator.release(value(), round=1, release="x", noise_multiplier=1.0)
        (found,) = book.reservations()
        assert found.provenance == Provenance(
            f"{'exact' if kind is SeededSampler else 'numpy'}-philox",
            1,
            trials,
            kind is SimulationSampler,
        )
        assert found.provenance.is_release is is_release
        words = [text for text in book.circumstances() if "simulation" in text]
        assert bool(words) is not is_release
        book.verify()


# Processes ---------------------------------------------------------------------------------------


def test_a_ledger_in_memory_has_no_copy() -> None:
    ledger = budgeted(MemoryLedger(), 1)
    assert copy.deepcopy(ledger) is ledger
    for copied in (pickle.dumps, copy.copy):
        with pytest.raises(LedgerError):
            copied(ledger)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_ledger_in_memory_refuses_to_be_a_second_budget() -> None:
    ledger = budgeted(MemoryLedger(), 1)
    run = ledger.run("r", configuration_hash="c")
    child = os.fork()
    if child == 0:
        try:
            release(run, SystemSampler())
        except LedgerError as error:
            os._exit(42 if "second budget" in str(error) else 1)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    release(run, SystemSampler())


def test_of_two_copies_that_reserve_at_one_moment_one_is_refused(tmp_path: Path) -> None:
    """Each looks for the anchor's last head before the other has added its own, but for a lock."""
    anchor, paths = tmp_path / "anchor", [tmp_path / name / "ledger.sqlite" for name in "ab"]
    for path in paths:
        path.parent.mkdir()
    with SqliteLedger(paths[0], anchor=anchor) as ledger:
        release(ledger.run("r", configuration_hash="c"), SystemSampler())
    shutil.copy(*paths)
    together, found = threading.Barrier(2), list[str]()
    context = Context((), 1, "sum", Audience.SERVER)
    step = Event(GaussianStep(declared(1, "sum", adjacency=REPLACE), 4.0), context)

    class Late(FileAnchor):
        """Waits after each look until the other has looked, too, or a tenth of a second."""

        def last(self) -> Head | None:
            head = super().last()
            with suppress(threading.BrokenBarrierError):
                together.wait(0.1)
            return head

    def reserve(path: Path) -> None:
        with SqliteLedger(path) as ledger:
            ledger._anchor = Late(anchor)
            try:
                ledger.run("r", configuration_hash="c").step(step)
                found.append("reserved")
            except RolledBack:
                found.append("refused")

    threads = [threading.Thread(target=reserve, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["refused", "reserved"]
