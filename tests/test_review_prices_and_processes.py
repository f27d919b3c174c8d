"""Laws that a reviewer tried against prices, certificates, and ledgers of many processes.

Prices are held against what outputs in bins show: a lower bound that no theorem is asked for, as a
function of the output tells no more than all of it.
"""

from __future__ import annotations

import decimal
import gc
import json
import os
import random
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import ctx
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, hypergeom, laplace, norm
from tests.interrupts import handled
from tests.parameters import slow

import dpledger as dp
import dpledger.mechanisms as mech
from dpledger.accounting.check.checker import Verdict
from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.check.statements import Run as Listed
from dpledger.accounting.composition import UNIT_BITS, UnpricedMechanism
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import LedgerLocked, SqliteLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.ledger.renyi_filter import renyi_price
from dpledger.accounting.numbers.enclosure import shown_down, shown_up
from dpledger.accounting.numbers.notions import Gdp
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.extracted import agrees, extracted_checker, run_extracted
from dpledger.mechanisms import Adjacency, Event, GaussianStep, LaplaceStep, Mechanism, Norm
from dpledger.mechanisms.sensitivity import Sensitivity, sum_of_bounded

FloatArray = NDArray[np.float64]
Shifts = Mapping[float, float]
"""How far a release moves, and with which probability."""
NOWHERE = mech.Provenance("none", None)
REPLACE, ADD, ZERO = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE
_LOSS = 4e-3
"""To a multiple of which losses are rounded down."""


def event(mechanism: Mechanism, place: int = 1, *parties: str) -> Event:
    return Event(mechanism, mech.Context(parties, place, "message", mech.Audience.PUBLIC))


def unit(relation: Adjacency, of: Norm = Norm.L2) -> Sensitivity:
    return mech.declared(1, "unit", adjacency=relation, norm=of)


def binned(moved: Shifts, rest: Shifts, law: Any, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return the probabilities of bins of an output with noise of this law, between neighbours."""
    span = max(map(abs, (*moved, *rest))) + 32 * scale
    edges = np.linspace(-span, span, 3001)

    def masses(shifts: Shifts) -> FloatArray:
        total = np.zeros(edges.size + 1)
        for shift, chance in shifts.items():
            x = (edges - shift) / scale
            low = np.diff(np.concatenate([[0.0], law.cdf(x), [1.0]]))
            high = -np.diff(np.concatenate([[1.0], law.sf(x), [0.0]]))
            total += chance * np.where(np.concatenate([[-1.0], x]) > 0, high, low)
        return total

    return masses(moved), masses(rest)


def least_epsilon(pairs: Sequence[tuple[FloatArray, FloatArray]], delta: float) -> float:
    """Return a lower bound on the epsilon of several outputs together, losses rounded down."""
    low, masses, sure = 0, np.ones(1), 0.0
    for p, q in pairs:
        both = (p > 1e-280) & (q > 1e-280)
        sure = 1 - (1 - sure) * (1 - p[(p > 1e-280) & ~both].sum())
        places = np.floor(np.log(p[both] / q[both]) / _LOSS).astype(np.int64)
        low += int(places.min())
        one = np.bincount(places - places.min(), weights=p[both])
        size = masses.size + one.size - 1
        together = np.fft.irfft(np.fft.rfft(masses, size) * np.fft.rfft(one, size), size)
        masses = np.maximum(together - 1e-15, 0.0)
    losses = (np.arange(masses.size) + low) * _LOSS

    def excess(epsilon: float) -> float:
        over = losses > epsilon
        told = masses[over] * -np.expm1(epsilon - losses[over])
        return float(sure + told.sum()) - delta

    most = float(losses[-1]) + 1.0
    return 0.0 if excess(0.0) <= 0 else inf if excess(most) > 0 else brentq(excess, 0.0, most)


def chances(law: Any, most: int) -> Shifts:
    return {float(k): float(law.pmf(k)) for k in range(most + 1)}


def some_step(rng: random.Random, relation: Adjacency, group: int) -> tuple[Mechanism, Any] | None:
    """Return a mechanism, and the bins of a pair of neighbours that differ in a group."""
    noise, rate = 2 ** rng.uniform(-0.5, 3), rng.choice([rng.random(), 2 ** -rng.uniform(1, 7)])
    step = GaussianStep(sum_of_bounded(1, relation), noise)
    all_records, batch, both = 20, rng.randint(1, 20), relation is REPLACE

    def pair(shifts: Shifts, law: Any = norm) -> Any:
        rest = {-s: w for s, w in shifts.items()} if both else {0.0: 1.0}
        return binned(shifts, rest, law, noise)

    match rng.randrange(6), both:
        case 0, _:
            return step, pair({float(group): 1.0})
        case 1, _:
            return mech.PoissonSampled(step, rate), pair(chances(binom(group, rate), group))
        case 2, False:
            told = chances(binom(3 * group, rate), 3 * group)
            return mech.AccumulatedPoisson(step, rate, 3), pair(told)
        case 3, False:
            drawn = mech.PoissonSampled(LaplaceStep(unit(relation, Norm.L1), noise), rate)
            return drawn, pair(chances(binom(group, rate), group), laplace)
        case 4, True:
            told = chances(hypergeom(all_records, group, batch), group)
            return mech.SampledWithoutReplacement(step, batch, all_records), pair(told)
        case 5, True:
            told = chances(binom(batch, group / all_records), batch)
            return mech.SampledWithReplacement(step, batch, all_records), pair(told)
        case _:
            return None


@pytest.mark.parametrize("seed", [0, *slow(1)])
def test_no_list_of_events_tells_more_than_is_printed(seed: int) -> None:
    """Unlike steps, repeated, of parties by context and by mechanism, for groups of up to three."""
    rng, tried = random.Random(seed), 0
    while tried < 6:
        relation, group, delta = rng.choice([REPLACE, ADD, ZERO]), rng.randint(1, 3), 1e-4
        events: list[Event] = []
        shown: dict[str, list[Any]] = {"a": [], "b": []}
        for place in range(rng.randint(1, 3)):
            found = some_step(rng, relation, group)
            if found is None:
                continue
            times, who = rng.randint(1, 2), rng.choice(["", "a", "b"])
            one: Mechanism = mech.Repeated(found[0], times)
            if who and rng.random() < 0.5:
                events.append(event(mech.Parties(((who, (one,)),)), place))
            else:
                events.append(event(one, place, *([who] if who else [])))
            for name, seen in shown.items():
                seen += [found[1]] * times * (who in ("", name))
        if not events:
            continue
        try:
            printed = guarantee(events, delta=delta, group=group).epsilon.upper_float
        except UnpricedMechanism:
            continue
        tried += 1
        for pairs in shown.values():
            back = [(q, p) for p, q in pairs]
            least = max(least_epsilon(pairs, delta), least_epsilon(back, delta)) if pairs else 0.0
            assert least <= printed * (1 + 1e-9) + 1e-9


def test_no_divergence_of_binned_outputs_is_above_a_filters_price() -> None:
    """Every kind of step, at orders near one, between whole ones, and large."""
    rng, tried = random.Random(1), 0
    while tried < 40:
        relation, order = rng.choice([REPLACE, ADD, ZERO]), rng.choice([1.01, 1.5, 3.7, 16.0])
        found = some_step(rng, relation, 1)
        if found is None:
            continue
        price = renyi_price(found[0], Fraction(order))
        p, q = (np.log(np.maximum(side, 1e-290)) for side in found[1])
        for one, other in ((p, q), (q, p)):
            seen = (one > -600) & (other > -600)
            moment = logsumexp(order * one[seen] - (order - 1) * other[seen])
            assert moment / (order - 1) <= price.upper / 2**UNIT_BITS * (1 + 1e-9) + 1e-9
        tried += 1


def test_no_setting_of_arithmetic_changes_what_is_printed() -> None:
    """Few decimals rounded down with all traps set, few bits of balls, NumPy that raises."""
    run: dict[str, Any] = {"records": 60000, "batch": 256, "steps": 500, "delta": 1e-5}
    run |= {"sampling": "poisson", "adjacency": "add-remove-one", "noise_multiplier": 1.1}

    def printed() -> list[str]:
        numbers = (1 / 3, 5e-324, 1e22, 123456789.123456789)
        return [
            str(dp.epsilon(**run)),
            *(show(x) for show in (shown_up, shown_down) for x in numbers),
        ]

    before, bits = printed(), ctx.prec
    coarse = decimal.Context(prec=2, rounding=decimal.ROUND_FLOOR, Emin=-3, Emax=3)
    coarse.traps = dict.fromkeys(coarse.traps, True)
    try:
        ctx.prec = 5
        with decimal.localcontext(coarse), np.errstate(all="raise"):
            assert printed() == before
    finally:
        ctx.prec = bits


def bent(document: Any, rng: random.Random) -> bytes:
    """Return a certificate with one thing changed, and the hash of its events made right."""
    found = deepcopy(document)
    kind = rng.randrange(5)
    node = rng.choice(found["nodes"])
    if kind == 0:
        conclusion = node["conclusion"]
        name = rng.choice([k for k in conclusion if k not in ("adjacency", "group", "notion")])
        value = Fraction(conclusion[name]) * rng.choice([Fraction(999, 1000), Fraction(1001, 1000)])
        conclusion[name] = str(value)
    elif kind == 1:
        node["conclusion"]["group"] += rng.choice([-1, 1])
    elif kind == 2:
        found["events"][0]["times"] += 1
    elif kind == 3:
        found["events"][0]["parties"] = rng.choice([[], ["a"], ["a", "b"]])
    else:
        found["assumptions"] = found["assumptions"][1:]
    size = len(json.dumps(found))
    found["subject"] = Listed(found["mechanisms"], found["events"], size).subject
    return json.dumps(found).encode()


def proved(document: bytes) -> Verdict | None:
    try:
        return check(document)
    except (CertificateWrong, Undecided):
        return None


@pytest.mark.parametrize("pure", [False, True])
def test_what_two_checkers_prove_of_a_bent_certificate_is_the_same(
    pure: bool, tmp_path: Path
) -> None:
    """Numbers a thousandth off, other groups, counts, parties, and an assumption less."""
    rng, right = random.Random(3), 0
    for number, relation in enumerate((ADD, ZERO, REPLACE)):
        size = unit(relation, Norm.L1 if pure else Norm.L2)
        kind: Any = LaplaceStep if pure else GaussianStep
        events = [event(kind(size, 2.0), 1), event(kind(size, 4.5), 2, "a")]
        document = json.loads(certify(events, delta=0 if pure else 1e-5).to_json_bytes())
        least = guarantee(events, delta=0 if pure else 1e-5).epsilon.lower_float
        paths = [tmp_path / f"{number} {k}.json" for k in range(13)]
        for k, path in enumerate(paths):
            path.write_bytes(bent(document, rng) if k else json.dumps(document).encode())
        verdicts = [proved(path.read_bytes()) for path in paths]
        for verdict in verdicts:
            if verdict is not None and verdict.subject == document["subject"]:
                assert float(verdict.values[-1]) >= least * (1 - 1e-15)
        right += sum(verdict is not None for verdict in verdicts)
        if extracted_checker() is not None:
            for verdict, found in zip(verdicts, run_extracted(paths), strict=True):
                assert (found.word == "proved") == (verdict is not None)
                assert verdict is None or agrees(found, verdict)
    assert 3 < right < 30


WRITER = """
import os, sys, threading
from dpledger.accounting.ledger import LedgerLocked, SqliteLedger
from dpledger.mechanisms import (
    Adjacency, Audience, Context, Event, GaussianStep, Provenance, declared)
path = sys.argv[1]
ledger = SqliteLedger(path, anchor=path + ".anchor")
step = GaussianStep(declared(1, "unit", adjacency=Adjacency.REPLACE_ONE), 4.0)
def work(number):
    run = ledger.run(f"{os.getpid()} {number}", configuration_hash="x")
    for place in range(1, 10**6):
        names = tuple(f"party {k}" for k in range(200 * (place % 2)))
        event = Event(step, Context(names, place, "message", Audience.PUBLIC))
        os.write(1, b"%d\\n" % run.reserve([event], Provenance("none", None)))
        open(path, "rb").close()  # drops SQLite's locks of this process
for number in range(2):
    threading.Thread(target=work, args=(number,), daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such kill")
def test_what_was_reserved_is_in_the_file_whenever_its_writers_are_killed(tmp_path: Path) -> None:
    """Two processes of two threads that read the file meanwhile, both killed, twice."""
    path, returned = tmp_path / "ledger", set[int]()
    SqliteLedger.create(path, Budget(Gdp(Fraction(10**5)), REPLACE))
    for turn in range(2):
        command = [sys.executable, "-c", WRITER, str(path)]
        writers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        for writer in writers:
            assert writer.stdout is not None
            returned |= {int(writer.stdout.readline()) for _ in range(4)}
        for writer in writers:
            writer.kill()
            returned |= set(map(int, writer.communicate()[0].split()))
        with SqliteLedger(path, anchor=tmp_path / "ledger.anchor", read_only=turn == 0) as ledger:
            there = {found.sequence for found in ledger.reservations()}
            assert returned <= there
            assert len(there) <= len(returned) + 4 * (turn + 1)
            assert ledger.verify().reservations == len(there)


AMID = """
import sys
from dpledger.accounting.ledger import LedgerLocked, SqliteLedger
from dpledger.mechanisms import (
    Adjacency, Audience, Context, Event, GaussianStep, Provenance, declared)
path = sys.argv[1]
class Stopping(SqliteLedger):
    def _store(self, row, documents):
        self._connection.execute("PRAGMA cache_size = 1")  # so that the file is written to here
        super()._store(row, documents)
        open(path, "rb").close()  # drops SQLite's locks of this process
        if row.sequence == 2:
            print("amid", flush=True)
            input()
step = GaussianStep(declared(1, "unit", adjacency=Adjacency.REPLACE_ONE), 4.0)
names = tuple(f"party {k}" for k in range(9999))
event = Event(step, Context(names, 1, "message", Audience.PUBLIC))
print(Stopping(path).run("run", configuration_hash="x").reserve([event], Provenance("none", None)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
@pytest.mark.parametrize("read_only", [False, True])
def test_who_opens_a_ledger_takes_nothing_from_one_that_is_writing(
    tmp_path: Path, read_only: bool
) -> None:
    """The writer has read the file meanwhile: to SQLite its journal is one that a crash left."""
    path = tmp_path / "ledger"
    SqliteLedger(path).close()
    with subprocess.Popen(
        [sys.executable, "-c", AMID, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"amid\n"
        with pytest.raises(LedgerLocked):
            SqliteLedger(path, read_only=read_only, timeout=0.05)
        assert writer.communicate(b"\n")[0] == b"2\n"
    with SqliteLedger(path) as ledger:
        assert ledger.verify().reservations == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forks_end_takes_no_row_from_a_thread_that_is_writing_it(tmp_path: Path) -> None:
    """The child lets all of its copies go while a thread of the parent is amid a reservation."""
    step, reached = event(GaussianStep(unit(REPLACE), 4.0)), 0
    for line in range(1, 150, 12):
        path = tmp_path / f"ledger {line}"
        ledger = SqliteLedger(path)
        run = ledger.run("run", configuration_hash="x")
        amid, go_on = threading.Event(), threading.Event()

        def wait(amid: threading.Event = amid, go_on: threading.Event = go_on) -> None:
            amid.set()
            go_on.wait()

        reserve = partial(run.reserve, [step], NOWHERE)
        among = "ledger/sqlite.py"
        thread = threading.Thread(
            target=handled, args=(reserve, wait), kwargs={"line": line, "among": among}
        )
        thread.start()
        while not amid.wait(0.05) and thread.is_alive():
            pass  # a line that is not come by ends the reservation, and not the wait for it
        reached += amid.is_set()
        if (child := os.fork()) == 0:
            del ledger, run, reserve
            gc.collect()
            os._exit(0)
        os.waitpid(child, 0)
        go_on.set()
        thread.join()
        run.reserve([step], NOWHERE)
        assert len(ledger.events()) == 2
        ledger.close()
        with SqliteLedger(path) as again:
            assert again.verify().reservations == 2
    assert reached >= 8
