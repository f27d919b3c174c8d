"""The SQLite ledger among processes that die, and against hands that change it.

1. Writers killed at any moment lose no event, double none, and leave a chain that verifies; what
   was released is never more than what is recorded.
2. Writers together stay within a budget.
3. Rows cannot be changed or removed; whoever goes around the triggers is found.
4. What is no ledger, or cannot be written, is said to be so and left alone.
"""

import json
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.parameters import slow

from dpledger.accounting.ledger import (
    LedgerError,
    LedgerLocked,
    NotALedger,
    SqliteLedger,
    TamperedLedger,
)
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.ledger.rows import GENESIS, Row, RowKind
from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    Provenance,
    declared,
)

NOWHERE = Provenance("none", None)
WRITER = Path(__file__).parent / "ledger_writer.py"
# mu² of one event of ledger_writer.py
COST = Fraction(1, 16)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where the system has that: what a killed process wrote survives there as well."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def event(round: int = 1) -> Event:
    step = GaussianStep(declared(1, "unit", adjacency=Adjacency.REPLACE_ONE), 4.0)
    return Event(step, Context((), round, "message", Audience.SERVER))


def started(path: Path, run: str, count: int) -> subprocess.Popen[bytes]:
    released = path.with_name(f"{run}.released")
    return subprocess.Popen([sys.executable, WRITER, path, run, str(count), released])


def released(path: Path, run: str) -> list[int]:
    file = path.with_name(f"{run}.released")
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def check_after_the_storm(path: Path, runs: list[str]) -> dict[str, list[int]]:
    """Check the laws that hold whenever writers were killed; return the recorded rounds."""
    with SqliteLedger(path) as ledger:
        found = ledger.verify()
        recorded = {run: [e.context.round for e in ledger.events(run)] for run in runs}
        for run in runs:
            left = Counter(released(path, run))
            assert max(left.values(), default=1) == 1
            assert set(left) <= set(recorded[run])
            assert recorded[run] == list(range(1, len(recorded[run]) + 1))
            assert ledger.spent(run).mu_squared == COST * len(recorded[run])
        assert ledger.spent().mu_squared == COST * found.reservations
        assert found.reservations == sum(map(len, recorded.values()))
        return recorded


KILLED = """
import os, signal, sys
from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.mechanisms import Adjacency

def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "opened":
    SqliteLedger.set_budget = kill
else:
    os.link = kill
SqliteLedger.create(sys.argv[1], Budget(ApproxDp(0.1, 1e-5), Adjacency.REPLACE_ONE))
"""


@pytest.mark.parametrize("point", ["opened", "limited"])
def test_a_ledger_with_a_budget_is_made_whole_or_not_at_all(point: str, folder: Path) -> None:
    path = folder / "ledger.sqlite"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), point], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not path.exists()
    budget = Budget(ApproxDp(0.1, 1e-5), Adjacency.REPLACE_ONE)
    SqliteLedger.create(path, budget)
    with SqliteLedger(path) as ledger:
        assert ledger.budget == budget
        ledger.verify()
    with pytest.raises(LedgerError, match="must be a new file"):
        SqliteLedger.create(path, budget)


# once: tracebacks
@pytest.mark.parametrize("place", ["row", "document"])
def test_deep_json_is_tampering(place: str, folder: Path) -> None:
    path, deep = folder / "ledger.sqlite", "[" * 100_000 + "]" * 100_000
    SqliteLedger(path).close()
    digest = sha256(deep.encode()).hexdigest()
    plan = deep if place == "row" else json.dumps(digest)
    body = f'{{"configuration_hash":"x","plan":{plan},"time":"t"}}'
    row = Row.following(0, GENESIS, kind=RowKind.OPEN_RUN, run="x", body=body)
    with closing(sqlite3.connect(path)) as file:
        file.execute("INSERT INTO documents VALUES (?, ?)", (digest, deep))
        values = (row.sequence, row.kind.value, row.run, row.body, row.previous, row.hash)
        file.execute("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", values)
        file.commit()
    with SqliteLedger(path, read_only=True) as ledger, pytest.raises(TamperedLedger, match="Row 1"):
        ledger.verify()


def test_writers_killed_at_random_lose_and_double_nothing(folder: Path) -> None:
    path, runs, count = folder / "shared.ledger", [f"run-{i}" for i in range(8)], 100
    SqliteLedger(path).close()
    chance = random.Random(20221117)
    doomed = {run: chance.randint(1, count - 20) for run in chance.sample(runs, 4)}
    # whoever is to be killed has too much to do to be done before
    todo = {run: 20 * count if run in doomed else count for run in runs}
    writers = {run: started(path, run, todo[run]) for run in runs}
    while doomed:
        for run, after in list(doomed.items()):
            if len(released(path, run)) >= after:
                writers[run].send_signal(signal.SIGKILL)
                del doomed[run]
        time.sleep(0.002)
    codes = {run: writer.wait(600) for run, writer in writers.items()}
    assert Counter(codes.values()) == {0: 4, -signal.SIGKILL: 4}
    recorded = check_after_the_storm(path, runs)
    for run, code in codes.items():
        assert code != 0 or len(recorded[run]) == count
        # killed between reserving and releasing, at most one event was recorded and did not happen
        assert len(recorded[run]) - len(released(path, run)) in (0, 1)


@pytest.mark.slow
def test_writers_killed_and_restarted_again_and_again_finish_their_work(folder: Path) -> None:
    """About two minutes on two cores: 8 writers, 1,000 events each, 40 kills."""
    path, runs, count = folder / "shared.ledger", [f"run-{i}" for i in range(8)], 1000
    SqliteLedger(path).close()
    writers = {run: started(path, run, count) for run in runs}
    chance = random.Random(7)
    for _ in range(40):
        time.sleep(chance.uniform(0.5, 2.0))
        run = chance.choice(runs)
        writers[run].send_signal(signal.SIGKILL)
        if writers[run].wait(600) == -signal.SIGKILL:
            writers[run] = started(path, run, count)
    assert {writer.wait(600) for writer in writers.values()} == {0}
    recorded = check_after_the_storm(path, runs)
    assert [len(recorded[run]) for run in runs] == [count] * len(runs)


def test_writers_together_do_not_cross_the_budget(folder: Path) -> None:
    path, runs = folder / "shared.ledger", ["a", "b", "c"]
    with SqliteLedger(path) as ledger:
        ledger.set_budget(Budget(Gdp(COST * 150), Adjacency.REPLACE_ONE))
    writers = [started(path, run, 151) for run in runs]
    assert [writer.wait(600) for writer in writers] == [3, 3, 3]
    recorded = check_after_the_storm(path, runs)
    assert sum(map(len, recorded.values())) == 150


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "filled.ledger"
    with SqliteLedger(path) as ledger:
        ledger.set_budget(Budget(Gdp(1), Adjacency.REPLACE_ONE))
        run = ledger.run("a", configuration_hash="c", plan=[event(1), event(2)])
        run.commit(run.reserve((event(1),), NOWHERE))
        run.reserve((event(2),), NOWHERE)
    return path


def around_the_triggers(path: Path, *statements: str) -> None:
    """Change a ledger as someone would who owns the file, and leave no other trace."""
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
    kept = triggers.fetchall()
    for name, _ in kept:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in kept:
        connection.execute(sql)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rows SET body = '{}' WHERE sequence = 1",
        "DELETE FROM rows WHERE sequence = 5",
        "INSERT OR REPLACE INTO rows VALUES (5, 'commit', 'a', '{}', 'x', 'y')",
        "INSERT INTO rows VALUES (7, 'commit', 'a', '{}', 'x', 'y')",
        "UPDATE documents SET content = '[]'",
        "DELETE FROM documents",
        "INSERT OR REPLACE INTO documents SELECT hash, '[]' FROM documents",
    ],
)
def test_triggers_refuse_to_change_what_is_written(filled: Path, statement: str) -> None:
    connection = sqlite3.connect(filled)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()
    with SqliteLedger(filled) as ledger:
        assert ledger.verify().rows == 5


COLUMNS = ("kind", "run", "body", "previous", "hash")


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("sequence", range(1, 6))
def test_one_changed_byte_of_a_row_is_found(filled: Path, sequence: int, column: str) -> None:
    changed = f"'X' || substr({column}, 2)"
    around_the_triggers(filled, f"UPDATE rows SET {column} = {changed} WHERE sequence = {sequence}")
    with SqliteLedger(filled) as ledger, pytest.raises(TamperedLedger, match=f"Row {sequence}"):
        ledger.verify()


def test_a_changed_row_is_also_found_by_the_next_writer(filled: Path) -> None:
    around_the_triggers(filled, "UPDATE rows SET body = replace(body, 'none', 'nine')")
    with SqliteLedger(filled) as ledger, pytest.raises(TamperedLedger) as found:
        ledger.run("b", configuration_hash="c")
    assert found.value.where == "Row 3"
    assert len(str(found.value.expected)) == len(str(found.value.found)) + len("hash ")


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM rows WHERE sequence = 4",
        "DELETE FROM rows WHERE sequence = 1",
        "UPDATE rows SET sequence = 6 WHERE sequence = 5",
        "UPDATE rows SET sequence = -sequence WHERE sequence = 1",
        "UPDATE documents SET content = replace(content, '1p2', '1p9')",
        "DELETE FROM documents",
        "DROP TRIGGER rows_update",
        "CREATE TABLE extra (a)",
    ],
)
def test_what_was_done_around_the_triggers_is_found(filled: Path, statement: str) -> None:
    if statement.startswith("DROP"):
        connection = sqlite3.connect(filled)
        connection.execute(statement)
        connection.close()
    else:
        around_the_triggers(filled, statement)
    with SqliteLedger(filled) as ledger, pytest.raises(TamperedLedger):
        ledger.verify()


def test_a_flipped_bit_never_ends_in_another_family_of_errors(filled: Path, tmp_path: Path) -> None:
    with SqliteLedger(filled) as ledger:
        lines = ledger.head
    whole, damaged = filled.read_bytes(), tmp_path / "damaged.sqlite"
    # the schema's text is where SQLite itself complains, in bytes that are no text
    schema = range(whole.index(b"CREATE"), whole.rindex(b"CREATE") + 60, 40)
    rest = random.Random(80).sample(range(len(whole)), 150)
    unread = 0
    for place in (*schema, *rest):
        data = bytearray(whole)
        data[place] ^= 0x80 if place in schema else 1 << place % 8
        damaged.write_bytes(data)
        try:
            with SqliteLedger(damaged, read_only=True) as ledger:
                assert ledger.verify().head == lines
        except LedgerError:
            unread += 1
    assert unread > len(schema) // 2


def test_a_removed_last_row_is_found_by_its_head(filled: Path) -> None:
    with SqliteLedger(filled) as ledger:
        head = ledger.head
    around_the_triggers(filled, "DELETE FROM rows WHERE sequence = 5")
    with SqliteLedger(filled) as ledger, pytest.raises(TamperedLedger, match=head):
        ledger.verify(expected_head=head)


def test_a_writer_sees_what_others_wrote(filled: Path) -> None:
    with SqliteLedger(filled) as one, SqliteLedger(filled) as other:
        run = one.run("b", configuration_hash="c")
        assert other.head == one.head
        other.run("b", configuration_hash="c").commit(run.reserve((event(),), NOWHERE))
        assert one.runs() == other.runs()
        assert one.verify() == other.verify()


def test_a_reader_changes_nothing_and_makes_nothing(filled: Path, tmp_path: Path) -> None:
    with SqliteLedger(filled, read_only=True) as ledger:
        assert ledger.verify().rows == 5
        with pytest.raises(LedgerError, match="readonly"):
            ledger.run("b", configuration_hash="c")
    absent = tmp_path / "absent.ledger"
    with pytest.raises(LedgerError, match=r"absent\.ledger"):
        SqliteLedger(absent, read_only=True)
    assert not absent.exists()


def test_what_is_no_ledger_is_left_as_it_is(tmp_path: Path) -> None:
    text, other = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("Dear diary, " * 100)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (a)")
    connection.commit()
    connection.close()
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(NotALedger, match=path.name):
            SqliteLedger(path)
        assert path.read_bytes() == before


def test_another_version_is_named(filled: Path) -> None:
    connection = sqlite3.connect(filled)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(NotALedger, match="version=2 of the ledger"):
        SqliteLedger(filled)


def test_a_file_that_others_hold_too_long_is_said_to_be_locked(filled: Path) -> None:
    holder = sqlite3.connect(filled, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerLocked, match=filled.name):
        SqliteLedger(filled, timeout=0.05)
    holder.execute("ROLLBACK")
    with SqliteLedger(filled, timeout=0.05) as ledger:
        run = ledger.run("a", configuration_hash="c", plan=[event(1), event(2)])
        head = ledger.head
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerLocked):
            run.reserve((event(3),), NOWHERE)
        holder.execute("ROLLBACK")
        assert ledger.head == head
        run.reserve((event(3),), NOWHERE)
        ledger.verify()
    holder.close()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="nowhere"):
        SqliteLedger(tmp_path / "nowhere" / "a.ledger")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_process_opens_the_file_anew(filled: Path) -> None:
    with SqliteLedger(filled) as ledger:
        child = os.fork()
        if child == 0:
            try:
                ledger.head  # noqa: B018
            except LedgerError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        ledger.verify()


def test_a_long_run_of_many_parties_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "long.ledger"
    parties = tuple(f"agent-{i:03}" for i in range(100))
    with SqliteLedger(path) as ledger:
        run = ledger.run("a", configuration_hash="c")
        for round in range(1, 101):
            context = Context(parties, round, "message", Audience.SERVER)
            run.reserve((Event(event().mechanism, context),), NOWHERE)
        # one mechanism and one list of parties, however many rounds
        assert ledger.verify().documents == 2
        assert ledger.spent().mu_squared == COST * 100
    assert path.stat().st_size < 150_000


def test_a_copy_of_a_handle_is_of_its_own_file_wherever_the_process_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder has a ledger of the same name, which fits were once charged to."""
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        SqliteLedger(tmp_path / name / "a.ledger").close()
    monkeypatch.chdir(tmp_path / "here")
    with SqliteLedger("a.ledger") as ledger:
        monkeypatch.chdir(tmp_path / "there")
        with pickle.loads(pickle.dumps(ledger)) as copy:
            assert copy.path == ledger.path == tmp_path / "here" / "a.ledger"


def test_no_row_is_written_into_a_log_that_another_program_brought_back(tmp_path: Path) -> None:
    """A log is lost with the last of its readers: a budget of four steps granted six."""
    path = tmp_path / "a.ledger"
    with SqliteLedger(path) as ledger:
        run = ledger.run("a", configuration_hash="x")
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
            with pytest.raises(LedgerError, match="journal_mode=wal"):
                run.reserve([event()], NOWHERE)
        assert ledger.events() == []
    with SqliteLedger(path) as ledger:
        ledger.run("a", configuration_hash="x").reserve([event()], NOWHERE)
        assert len(ledger.events()) == 1


def test_a_forked_process_does_not_wait_for_a_thread_that_it_has_not(tmp_path: Path) -> None:
    reading, done = threading.Event(), threading.Event()
    with SqliteLedger(tmp_path / "a.ledger") as ledger:

        def read() -> None:
            reading.set()
            done.wait(60)

        thread = threading.Thread(target=lambda: ledger.steady(read))
        thread.start()
        assert reading.wait(30)
        child = os.fork()
        if not child:
            signal.alarm(30)  # ends what waits for ever
            ledger.close()
            os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)
        done.set()
        thread.join()


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_a_ledger_is_not_named_as_what_sqlite_removes(tmp_path: Path, ending: str) -> None:
    """Whoever used the ledger `a` deleted the ledger `a-journal`."""
    path, budget = tmp_path / f"a{ending}", Budget(Gdp(1), Adjacency.REPLACE_ONE)
    with pytest.raises(LedgerError, match="must have another name"):
        SqliteLedger(path)
    with pytest.raises(LedgerError, match="must have another name"):
        SqliteLedger.create(path, budget)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
def test_a_new_ledger_is_not_made_beside_what_another_of_its_name_left(
    tmp_path: Path, ending: str
) -> None:
    """It was rolled back into the new file, which then had the old one's budget."""
    path = tmp_path / "a.ledger"
    left = path.with_name(path.name + ending)
    left.write_bytes(b"of another")
    budget = Budget(Gdp(1), Adjacency.REPLACE_ONE)
    with pytest.raises(LedgerError, match="must go first"):
        SqliteLedger.create(path, budget)
    with pytest.raises(LedgerError, match="must go first"):
        SqliteLedger(path)
    assert os.listdir(tmp_path) == [left.name]
    left.unlink()
    SqliteLedger.create(path, budget)
    with SqliteLedger(path) as ledger:
        assert ledger.verify().rows == 1


def test_a_file_that_is_mounted_by_itself_takes_nothing_and_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has another name elsewhere, and what a writer by that name had left was not seen here."""
    path, beside = tmp_path / "a ledger\\", tmp_path / "a ledger"
    for each in (path, beside):
        SqliteLedger(each).close()
    found = os.fsencode(path).replace(b"\\", rb"\134").replace(b" ", rb"\040")
    mounts = tmp_path / "mountinfo"
    root = b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    mounts.write_bytes(root + b"36 21 8:1 /x.ledger " + found + b" rw - ext4 /dev/sda1 rw\n")
    monkeypatch.setattr("dpledger.accounting.ledger.file_names._MOUNTS", mounts)
    with pytest.raises(LedgerError, match="mount the folder"):
        SqliteLedger(path)
    with SqliteLedger(path, read_only=True) as ledger:
        assert ledger.verify().rows == 0
    SqliteLedger(beside).close()


def _linked(path: Path) -> None:
    os.link(path, path.with_name("other"))


def _moved(path: Path) -> None:
    path.rename(path.with_name("other"))


def _removed(path: Path) -> None:
    path.unlink()


def _replaced(path: Path) -> None:
    beside = path.with_name("other")
    beside.write_bytes(path.read_bytes())
    beside.replace(path)


@pytest.mark.parametrize("change", [_linked, _moved, _removed, _replaced])
def test_an_open_file_that_lost_its_name_takes_no_more(
    folder: Path, change: Callable[[Path], None]
) -> None:
    """SQLite's log goes by the name: what another process spends would not be seen."""
    path = folder / "ledger"
    SqliteLedger.create(path, Budget(Gdp(1), Adjacency.REPLACE_ONE))
    with SqliteLedger(path) as ledger:
        ledger.run("run", configuration_hash="x").reserve([event()], NOWHERE)
        change(path)
        with pytest.raises(LedgerError, match=r"Nothing was recorded"):
            ledger.run("run", configuration_hash="x").reserve([event(2)], NOWHERE)
    kept = folder / "other" if (folder / "other").exists() else path
    if change is _linked:
        path.unlink()
    if kept.exists():
        with SqliteLedger(kept) as ledger:
            assert len(ledger.events()) == 1
            ledger.verify()
            ledger.run("run", configuration_hash="x").reserve([event(2)], NOWHERE)


def _closed_again(path: Path) -> None:
    SqliteLedger(path).close()


def _read(path: Path) -> None:
    path.read_bytes()


def _copied(path: Path) -> None:
    with SqliteLedger(path) as ledger:
        pickle.loads(pickle.dumps(ledger)).close()


@pytest.mark.parametrize("use", [_closed_again, *slow(_read, _copied)])
def test_whoever_else_uses_the_file_here_two_processes_share_a_budget(
    folder: Path, use: Callable[[Path], None]
) -> None:
    """POSIX drops all locks of a process on a file with the first descriptor that it closes."""
    path = folder / "ledger"
    SqliteLedger.create(path, Budget(Gdp(COST * 6), Adjacency.REPLACE_ONE))
    granted = 0
    with SqliteLedger(path) as ledger:
        for turn in range(4):
            use(path)
            with suppress(BudgetExceeded):
                ledger.run("here", configuration_hash="x").reserve([event()], NOWHERE)
                granted += 1
            # a process that opens, writes and closes takes itself for the last one
            other = started(path, f"other {turn}", 1)
            granted += other.wait() == 0
        assert len(ledger.events()) == granted == 6
    with SqliteLedger(path) as again:
        assert len(again.events()) == 6
        again.verify()


def test_a_thread_that_reads_the_file_breaks_no_transaction(folder: Path) -> None:
    """A lock that fell in the middle of a row let another process in: rows were lost."""
    path, done = folder / "ledger", threading.Event()
    SqliteLedger.create(path, Budget(Gdp(COST * 250), Adjacency.REPLACE_ONE))

    def read() -> None:
        while not done.is_set():
            path.read_bytes()

    reader = threading.Thread(target=read)
    others = [started(path, f"other {k}", 100) for k in range(2)]
    while not all(path.with_name(f"other {k}.released").exists() for k in range(2)):
        time.sleep(0.01)
    reader.start()
    granted = 0
    try:
        with SqliteLedger(path, timeout=600) as ledger, suppress(BudgetExceeded):
            run = ledger.run("here", configuration_hash="x")
            for k in range(100):
                run.reserve([event(k + 1)], NOWHERE)
                granted += 1
        assert {other.wait() for other in others} <= {0, 3}
    finally:
        done.set()
        reader.join()
    with SqliteLedger(path) as ledger:
        ledger.verify()
        assert len(ledger.events()) == 250
        assert len(ledger.events("here")) == granted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_that_outlives_its_parent_locks_nobody_out(folder: Path) -> None:
    """It had the folder's descriptor, and with it the lock that its parent held when it died."""
    path = folder / "ledger"
    SqliteLedger.create(path, Budget(Gdp(COST * 9), Adjacency.REPLACE_ONE))
    ready, go_on = os.pipe(), os.pipe()
    parent = os.fork()
    if parent == 0:
        ledger = SqliteLedger(path)
        if os.fork() == 0:
            os.read(go_on[0], 1)
            os._exit(0)
        with ledger._folder(writing=True):
            os.write(ready[1], b"1")
            time.sleep(60)
    os.read(ready[0], 1)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    try:
        with SqliteLedger(path, timeout=5) as ledger:
            ledger.run("a", configuration_hash="x").reserve([event(1)], NOWHERE)
    finally:
        os.write(go_on[1], b"1")


def test_a_folder_that_was_replaced_takes_no_reservations(folder: Path) -> None:
    """The open ledger held the lock of the folder that was, and others that of the new one."""
    home = folder / "home"
    home.mkdir()
    path = home / "ledger"
    with SqliteLedger(path) as ledger:
        run = ledger.run("a", configuration_hash="x")
        home.rename(folder / "before")
        home.mkdir()
        with pytest.raises(LedgerError, match="moved"):
            run.reserve([event(1)], NOWHERE)
        (folder / "before" / "ledger").rename(path)
        with pytest.raises(LedgerError, match="moved"):
            run.reserve([event(1)], NOWHERE)
        home.rename(folder / "again")
        with pytest.raises(LedgerError, match="moved"):
            run.reserve([event(1)], NOWHERE)
        (folder / "again").rename(home)
    with SqliteLedger(path) as again:
        again.run("a", configuration_hash="x").reserve([event(1)], NOWHERE)
