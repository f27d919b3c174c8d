"""Laws that a reviewer tried against ledgers, files of other tools and verdicts.

Interrupts, full disks, dead writers and odd names of files; numbers as they are written; verdicts
on what keeps its claim exactly.
"""

from __future__ import annotations

import math
import pickle
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from fractions import Fraction
from itertools import count, product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from tests.interrupts import interrupted

import dpledger as dp
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import LedgerError, LedgerLocked, MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp
from dpledger.audits.bounds import Scores
from dpledger.audits.scores import ClaimedPrivacy, judge_scores
from dpledger.interop import MalformedImport, mechanisms_of_opacus, read
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    Parties,
    PoissonSampled,
    Provenance,
    Repeated,
    declared,
)

FloatArray = NDArray[np.float64]
NOWHERE = Provenance("none", None)
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE
COST = Fraction(1, 16)


def gaussian(noise: float = 4.0, relation: Adjacency = REPLACE) -> GaussianStep:
    return GaussianStep(declared(1, "unit", adjacency=relation), noise)


def laplace(scale: float = 4.0, relation: Adjacency = REPLACE) -> LaplaceStep:
    return LaplaceStep(declared(1, "unit", adjacency=relation, norm=Norm.L1), scale)


def event(mechanism: Mechanism | None = None, place: int = 1, *parties: str) -> Event:
    return Event(mechanism or gaussian(), Context(parties, place, "message", Audience.PUBLIC))


# --- ledgers ------------------------------------------------------------------------------------


BUDGETS: dict[str, tuple[Budget, Mechanism]] = {
    "filter": (Budget(Rdp(Fraction(4), Fraction(5, 8)), REPLACE), gaussian()),
    "plan": (Budget(ApproxDp(2, 1e-5), REPLACE), laplace()),
}


@pytest.mark.parametrize("kind", BUDGETS)
@pytest.mark.parametrize("entry", ["a run", "a reservation", "a message"])
def test_a_ledger_says_what_its_rows_say_wherever_it_was_interrupted(kind: str, entry: str) -> None:
    """Every line of opening, reserving and letting go; another ledger of the same rows agrees.

    The budgets are of one Rényi order, which pays for five steps of a record, and of a whole plan.
    """
    budget, mechanism = BUDGETS[kind]
    events = [event(mechanism, k, *names) for k, names in enumerate(((), ("a",), ("b",), ("a",)))]
    for line in count(1):
        ledger = MemoryLedger()
        ledger.set_budget(budget)
        run = ledger.run("first", configuration_hash="x", plan=events)
        token = run.reserve(events[:2], NOWHERE)
        calls: dict[str, Callable[[], object]] = {
            "a run": lambda: ledger.run("second", configuration_hash="y", plan=events[:1]),  # noqa: B023
            "a reservation": lambda: run.reserve(events[2:3], NOWHERE),  # noqa: B023
            "a message": lambda: run.commit(token, np.zeros(2)),  # noqa: B023
        }
        was = interrupted(calls[entry], line=line, among="ledger/state.py")
        granted = 2
        with suppress(BudgetExceeded, LedgerError):
            for each in (*events[2:], *events):
                run.reserve([each], NOWHERE)
                granted += 1
        again = MemoryLedger(ledger.rows(), {d: ledger.document(d) for d in ledger.digests()})
        assert again.verify() == ledger.verify()
        assert again.runs() == ledger.runs()
        assert [a.key for a in again.spent().accounts] == [a.key for a in ledger.spent().accounts]
        assert granted <= len(ledger.events())
        of_a = sum(each.context.parties in ((), ("a",)) for each in ledger.events())
        assert of_a <= (5 if kind == "filter" else 3)
        if not was:
            assert line > 10
            return


def test_however_a_file_is_reached_it_has_one_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By links of the file and of its folder, a relative name, dots, a pickle; odd letters."""
    home = tmp_path / "a folder"
    (home / "deeper").mkdir(parents=True)
    path = home / "büdget #1?%41&mode=ro.ledger"
    SqliteLedger.create(path, Budget(Gdp(COST * 9), REPLACE))
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "way").symlink_to(home)
    monkeypatch.chdir(home)
    names = (path, tmp_path / "link", tmp_path / "way" / path.name, Path(path.name))
    ledgers = [SqliteLedger(name) for name in (*names, home / "deeper" / ".." / path.name)]
    ledgers.append(pickle.loads(pickle.dumps(ledgers[1])))
    granted = 0
    for turn in range(4):
        for k, ledger in enumerate(ledgers):
            with suppress(BudgetExceeded):
                ledger.run(f"run {k}", configuration_hash="x").reserve([event(None, turn)], NOWHERE)
                granted += 1
    assert granted == 9
    assert {ledger.head for ledger in ledgers} == {ledgers[0].head}
    assert {ledger.path for ledger in ledgers} == {path.resolve()}
    for ledger in ledgers:
        assert ledger.verify().reservations == 9
        ledger.close()
    assert [found.name for found in home.iterdir() if found.is_file()] == [path.name]


def test_a_disk_that_is_full_loses_and_doubles_no_event(tmp_path: Path) -> None:
    """The file may grow no further, or not even its journal fits, now and then."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "ledger"
    with SqliteLedger(path) as ledger:
        run = ledger.run("run", configuration_hash="x")
        granted, refused, (_, most) = 0, 0, resource.getrlimit(resource.RLIMIT_FSIZE)
        for k in range(40):
            room = path.stat().st_size - (k % 5) * 2000 if k % 2 else 3000
            names = [f"party {j}" for j in range(40 * (k % 3))]
            try:
                if k % 3 == 0:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (room, most))
                run.reserve([event(None, k, *names)], NOWHERE)
                granted += 1
            except LedgerError:
                refused += 1
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        assert refused > 5
        assert len(ledger.events()) == granted
        assert ledger.spent().mu_squared <= COST * granted
    with SqliteLedger(path) as again:
        assert again.verify().reservations == granted


KILLED = """
import os, signal, sqlite3, sys
file = sqlite3.connect(sys.argv[1], isolation_level=None)
file.execute("PRAGMA cache_size = 0")  # pages go to the file before the end
file.execute("BEGIN IMMEDIATE")
for number in range(300):
    file.execute("INSERT INTO documents VALUES (?, ?)", (f"h{number}", "x" * 3000))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such kill")
def test_what_a_dead_writer_left_behind_changes_no_answer(tmp_path: Path) -> None:
    """Half of its pages are in the file; readers, a writer, copies with the journal and without."""
    (tmp_path / "copy").mkdir()
    path = tmp_path / "ledger"
    with SqliteLedger(path) as ledger:
        ledger.run("run", configuration_hash="x").reserve([event()], NOWHERE)
        known = ledger.verify()
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    journal = tmp_path / "ledger-journal"
    assert journal.exists()
    assert path.stat().st_size > 100_000
    shutil.copy(path, tmp_path / "copy" / "with")
    shutil.copy(journal, tmp_path / "copy" / "with-journal")
    shutil.copy(path, tmp_path / "copy" / "without")
    with SqliteLedger(tmp_path / "copy" / "with", read_only=True) as reader:
        assert reader.verify() == known
    with SqliteLedger(tmp_path / "copy" / "without") as torn, suppress(LedgerError):
        assert torn.verify().head == known.head
    with SqliteLedger(path) as ledger:
        assert ledger.verify() == known
        ledger.run("run", configuration_hash="x").reserve([event(None, 2)], NOWHERE)
        assert ledger.verify().reservations == 2
    assert not journal.exists()


def test_a_log_that_an_earlier_release_holds_is_waited_for(tmp_path: Path) -> None:
    """Its rows would go to the log, and ours to the file."""
    path = tmp_path / "ledger"
    SqliteLedger.create(path, Budget(Gdp(COST * 2), REPLACE))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchall() == [("wal",)]
        assert other.execute("SELECT count(*) FROM rows").fetchall() == [(1,)]
        with pytest.raises(LedgerLocked):
            SqliteLedger(path, timeout=0.05)
    with SqliteLedger(path) as ledger:
        run = ledger.run("run", configuration_hash="x")
        run.reserve([event()], NOWHERE)
        run.reserve([event(None, 2)], NOWHERE)
        with pytest.raises(BudgetExceeded):
            run.reserve([event(None, 3)], NOWHERE)
    assert [found.name for found in tmp_path.iterdir()] == ["ledger"]


@pytest.mark.parametrize("seed", range(4))
def test_no_record_pays_more_than_the_odometer_says(seed: int) -> None:
    """Whatever party it is of in each run; parties in contexts and inside of mechanisms."""
    rng, ledger, delta = random.Random(seed), MemoryLedger(), 1e-4
    runs: list[list[tuple[str | None, Mechanism]]] = []
    for name in ("first", "second"):
        run, paid = ledger.run(name, configuration_hash="x"), list[tuple[str | None, Mechanism]]()
        for place in range(3):
            sizes: list[Mechanism] = [gaussian(2.0), gaussian(5.0), laplace(3.0), laplace(9.0)]
            one, other = rng.choice(sizes), rng.choice(sizes)
            party = rng.choice([None, "a", "b"])
            if rng.random() < 0.4:
                run.reserve([event(Parties((("a", (one,)), ("b", (other, one)))), place)], NOWHERE)
                paid += [("a", one), ("b", other), ("b", one)]
            else:
                run.reserve([event(one, place, *([party] if party else []))], NOWHERE)
                paid.append((party, one))
        runs.append(paid)
    spent = ledger.spent().epsilon(delta).upper_float
    with suppress(LedgerError):
        assert ledger.guarantee(delta=delta).epsilon.upper_float >= spent - 1e-9
    most = 0.0
    for places in product(("a", "b", "c"), repeat=2):
        seen = [
            m for paid, me in zip(runs, places, strict=True) for p, m in paid if p in (None, me)
        ]
        if seen:
            found = guarantee([event(m) for m in seen], delta=delta).epsilon.lower_float
            most = max(most, found)
    assert most <= spent <= most + 1e-3


# --- files of other tools, and verdicts ---------------------------------------------------------


def test_no_way_to_write_a_number_makes_a_history_cheaper(tmp_path: Path) -> None:
    """Long decimals, exponents, numbers beyond doubles, texts and truth values."""
    path = tmp_path / "state.json"
    noises = ("1.1", "11e-1", "1.10000000000000000000000001", "1.0999999999999999999999", "1e400")
    rates = ("0.01", "1e-2", "0.010000000000000000000000001", "1e-400", "1.00000000000000000001")
    counts = ("20", "2e1", "20.0", "0", "-1", "true", '"20"')
    read_in = 0
    for noise, rate, steps in product(noises, rates, counts):
        path.write_text(f'{{"history": [[{noise}, {rate}, {steps}]], "mechanism": "rdp"}}')
        try:
            (repeated,) = (found.mechanism for found in read("opacus", path, adjacency=ADD))
        except MalformedImport:
            continue
        read_in += 1
        assert isinstance(repeated, Repeated)
        sampled = repeated.event
        assert isinstance(sampled, PoissonSampled)
        assert isinstance(sampled.event, GaussianStep)
        assert repeated.times == 20
        assert sampled.event.noise_std <= float(noise)
        assert sampled.rate >= min(float(rate), 1.0)
    assert read_in >= 9
    (exact,) = mechanisms_of_opacus([(Fraction(11, 10), Fraction(1, 100), 20)], adjacency=ADD)
    assert isinstance(exact.event, PoissonSampled)
    assert isinstance(exact.event.event, GaussianStep)
    assert Fraction(exact.event.event.noise_std) <= Fraction(11, 10)
    assert Fraction(exact.event.rate) >= Fraction(1, 100)


@pytest.mark.parametrize("size", [1.0, 5e-324, 1e308])
def test_what_keeps_its_claim_exactly_is_seldom_refuted(size: float) -> None:
    """The worst mechanism of a claim: it tells all with probability delta, and else as epsilon."""
    rng, refuted, exceeded, tries = np.random.default_rng(5), 0, 0, 50
    for epsilon, delta, shape in ((0.5, 0.02, (60, 60)), (1.0, 0.0, (150, 50))):
        claimed = ClaimedPrivacy.of(epsilon=epsilon, mu=None, delta=delta)
        for _ in range(tries):
            scores: list[FloatArray] = []
            for world, runs in zip((1.0, -1.0), shape, strict=True):
                right = rng.random(runs) < 1 / (1 + math.exp(-epsilon))
                drawn = np.where(right, world, -world) * size
                drawn[rng.random(runs) < delta] = 1.5e308 * world
                scores.append(drawn)
            found = judge_scores(Scores(*scores), claimed, confidence=0.9)
            refuted += found.refutes_claim
            exceeded += found.bound.epsilon > epsilon
    allowed = int(binom(2 * tries, 0.1).ppf(0.999))
    assert refuted <= allowed
    assert exceeded <= allowed


def test_noise_that_is_printed_meets_its_target_when_it_is_typed_back() -> None:
    """Of decimals as they are printed, not of the doubles behind them."""
    for relation, sampling, more in (
        ("add-remove-one", "poisson", {}),
        ("replace-one", "none", {"records_per_unit": 2}),
        ("zero-out-one", "shuffled", {}),
    ):
        run = {"records": 5000, "batch": 500, "epochs": 1, "delta": 1e-5, **more}
        asked = {**run, "sampling": sampling, "adjacency": relation}
        for target in (0.5, 2.0):
            found = dp.noise_multiplier(epsilon=target, **asked)  # type: ignore[arg-type]
            printed = str(found).partition("noise multiplier ")[2].partition(";")[0]
            again = dp.epsilon(noise_multiplier=float(printed), **asked)  # type: ignore[arg-type]
            assert again.epsilon <= target
