"""Laws that a reviewer tried against accounts: their prices, files, processes and imports.

Prices are held against a convolution of losses of its own, each rounded down, so that what it says
is a lower bound; what is refused, kept or judged is held against what happened.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr
from scipy.stats import binom

import dpledger as dp
import dpledger.mechanisms as mech
from dpledger.__main__ import main
from dpledger.accounting.guarantees import epsilons_at, guarantee
from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.anchor import RolledBack
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.ledger.rows import LedgerError
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import Gdp, Zcdp
from dpledger.audits.black_boxes import audit_black_box
from dpledger.audits.bounds import Scores
from dpledger.audits.scores import ClaimedPrivacy, judge_scores
from dpledger.audits.violations import AnswerPair
from dpledger.interop import import_into
from dpledger.mechanisms import Adjacency, Event, GaussianStep, Mechanism, Repeated

FloatArray = NDArray[np.float64]
Law = tuple[dict[float, float], dict[float, float]]
"""Where the mean of normal noise is, and with which probability: in one data set, in the other."""
Losses = tuple[int, FloatArray]
"""The smallest loss, in units, and the masses from there on."""
ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
NOWHERE = mech.Provenance("elsewhere", None)
_LOSS = 1e-3
"""To multiples of it losses are rounded down."""


def event(mechanism: Mechanism, *parties: str, times: int = 1) -> Event:
    context = mech.Context(parties, 1, "message", mech.Audience.PUBLIC)
    return Event(Repeated(mechanism, times), context)


def normal(noise: float, relation: Adjacency = ADD) -> GaussianStep:
    return GaussianStep(mech.declared(1, "unit", adjacency=relation), noise)


def losses_of(law: Law, noise: float) -> Losses:
    """Return the losses of one output, told in bins and rounded down."""
    places = [*law[0], *law[1]]
    x = np.linspace(min(places) - 9 * noise, max(places) + 9 * noise, 20_001)

    def log_density(means: dict[float, float]) -> FloatArray:
        parts = [np.log(w) - ((x - m) / noise) ** 2 / 2 for m, w in means.items() if w > 1e-200]
        return np.asarray(logsumexp(parts, axis=0), dtype=np.float64)

    loss = log_density(law[0]) - log_density(law[1])
    mass = np.diff(np.sum([w * ndtr((x - m) / noise) for m, w in law[0].items()], axis=0))
    places_of = np.floor(np.minimum(loss[1:], loss[:-1]) / _LOSS).astype(np.int64)
    masses: FloatArray = np.zeros(int(np.ptp(places_of)) + 1)
    np.add.at(masses, places_of - places_of.min(), mass)
    return int(places_of.min()), masses


def least_epsilon(steps: Sequence[Losses], delta: float) -> float:
    """Return a lower bound on the epsilon of all steps together."""
    low, masses = 0, np.ones(1)
    for first, one in steps:
        size = masses.size + one.size - 1
        masses = np.fft.irfft(np.fft.rfft(masses, size) * np.fft.rfft(one, size), size)
        low += first
    masses = np.maximum(masses - 1e-15, 0.0)
    losses = (low + np.arange(masses.size)) * _LOSS

    def excess(epsilon: float) -> float:
        over = losses > epsilon
        return float(np.sum(masses[over] * -np.expm1(epsilon - losses[over]))) - delta

    if excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, float(losses[-1]), xtol=1e-9))


def turned(law: Law) -> Law:
    return law[1], law[0]


def sampled(rate: float) -> Law:
    return {0.0: 1 - rate, 1.0: rate}, {0.0: 1.0}


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_lists_of_different_samples_cost_no_less_than_their_convolution(delta: float) -> None:
    """Three lists of Poisson samples of different noise, enclosed and fast, in both orders."""
    for steps in (
        [(0.8, 0.3, 2), (3.0, 1.0, 1)],
        [(1.0, 0.999, 3), (5.0, 0.01, 5)],
        [(0.6, 0.001, 4), (2.0, 0.5, 2)],
    ):
        events = [event(mech.PoissonSampled(normal(s), q), times=n) for s, q, n in steps]
        fast = epsilons_at(events, deltas=[delta], grade=Grade.FAST).epsilon[0]
        most = min(guarantee(events, delta=delta).epsilon.upper_float, fast)
        laws = [(sampled(q), s) for s, q, n in steps for _ in range(n)]
        assert least_epsilon([losses_of(law, s) for law, s in laws], delta) <= most
        assert least_epsilon([losses_of(turned(law), s) for law, s in laws], delta) <= most


@pytest.mark.parametrize(("batch", "records"), [(1, 2), (1, 10), (9, 10)])
def test_batches_cost_what_steps_of_both_orders_do(batch: int, records: int) -> None:
    """Of batches without replacement a record may lose by one order in some steps, by the other in
    the rest: the functions may change sign from step to step.
    """
    law, steps = sampled(batch / records), 4
    drawn = mech.SampledWithoutReplacement(normal(0.6, REPLACE), batch, records)
    for delta in (1e-2, 1e-5):
        most = guarantee([event(drawn, times=steps)], delta=delta).epsilon.upper_float
        first, second = losses_of(law, 0.6), losses_of(turned(law), 0.6)
        for k in range(steps + 1):
            assert least_epsilon([first] * k + [second] * (steps - k), delta) <= most


@pytest.mark.parametrize("group", [1, 2])
def test_draws_with_replacement_cost_what_all_copies_lose(group: int) -> None:
    """Six draws out of four records, of which one or two differ, in two steps of any order."""
    drawn = mech.SampledWithReplacement(normal(2.0, REPLACE), 6, 4)
    copies = {float(k): float(binom.pmf(k, 6, group / 4)) for k in range(7)}
    one, other = losses_of((copies, {0.0: 1.0}), 2.0), losses_of(({0.0: 1.0}, copies), 2.0)
    most = guarantee([event(drawn, times=2)], delta=1e-2, group=group).epsilon.upper_float
    for steps in ([one, one], [one, other], [other, other]):
        assert least_epsilon(steps, 1e-2) <= most


def test_a_noise_and_its_steps_keep_the_target_they_were_found_for() -> None:
    """The noise found for a target, priced again, and the steps found for that noise."""
    runs: list[dict[str, Any]] = [
        {"sampling": "none", "adjacency": "add-remove-one", "records_per_unit": 2},
        {"sampling": "truncated-poisson", "adjacency": "zero-out-one", "largest_batch": 40},
    ]
    for stated in runs:
        run: dict[str, Any] = {**stated, "records": 1000, "batch": 10, "delta": Fraction(1, 10**5)}
        found = dp.noise_multiplier(epsilon=Fraction(8, 3), steps=5, **run)
        again = dp.epsilon(noise_multiplier=found.noise_multiplier, steps=5, **run)
        assert again.epsilon <= Fraction(8, 3)
        assert again.guarantee.assumptions == found.guarantee.assumptions
        taken = dp.steps(epsilon=Fraction(8, 3), noise_multiplier=found.noise_multiplier, **run)
        assert taken.steps is not None
        assert taken.steps >= 5
        least = dp.epsilon(noise_multiplier=found.noise_multiplier, steps=taken.steps, **run)
        assert least.epsilon <= Fraction(8, 3)


def test_a_filter_bounds_a_record_of_any_party_in_every_run() -> None:
    """Reservations of three runs and two parties at random; the dearest choice of parties."""
    for seed in range(12):
        drawn, ledger = random.Random(seed), MemoryLedger()
        taken = dict[str, list[tuple[tuple[str, ...], Fraction]]]()
        notion = Zcdp(Fraction(1, 2)) if seed % 2 else Gdp(Fraction(1))
        ledger.set_budget(Budget(notion, adjacency=ADD))
        for _ in range(40):
            run, parties = drawn.choice("rst"), drawn.choice([(), ("a",), ("b",), ("a", "b")])
            noise, times = drawn.uniform(2, 9), drawn.randint(1, 3)
            asked = [event(normal(noise), *parties, times=times)]
            with suppress(BudgetExceeded):
                ledger.run(run, configuration_hash="c").reserve(asked, NOWHERE)
                taken.setdefault(run, []).append((parties, times / Fraction(noise) ** 2))
        for lived in product("ab-", repeat=len(taken)):
            costs = [
                cost
                for paid, party in zip(taken.values(), lived, strict=True)
                for parties, cost in paid
                if not parties or party in parties
            ]
            assert sum(costs) <= 1


def test_of_two_copies_at_one_anchor_one_alone_goes_on(tmp_path: Path) -> None:
    """Two copies of a ledger, reserving at one moment from two threads, thirty times each."""
    for begun in (False, True):
        home = tmp_path / str(begun)
        (home / "copy").mkdir(parents=True)
        with SqliteLedger(home / "ledger", anchor=home / "anchor") as ledger:
            run = ledger.run("run", configuration_hash="c")
            if begun:
                run.reserve([event(normal(1.0))], NOWHERE)
        shutil.copy(home / "ledger", home / "copy" / "ledger")
        found: dict[Path, list[str]] = {home / "ledger": [], home / "copy" / "ledger": []}
        ready = threading.Barrier(2)

        def reserve(
            path: Path, said: list[str], anchor: Path = home / "anchor", go: Any = ready
        ) -> None:
            with SqliteLedger(path, anchor=anchor) as ledger:
                run = ledger.run("run", configuration_hash="c")
                go.wait()
                for _ in range(30):
                    try:
                        run.reserve([event(normal(1.0))], NOWHERE)
                        said.append("reserved")
                    except RolledBack:
                        said.append("refused")

        threads = [threading.Thread(target=reserve, args=each) for each in found.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found.values()) == [["refused"] * 30, ["reserved"] * 30]
        assert len((home / "anchor").read_text().splitlines()) == 30 + begun


@pytest.mark.parametrize("name", ["ledger", "ledger-journal", "other", "/dev/null", "missing/a"])
def test_an_anchor_in_an_odd_place_lets_no_budget_by(tmp_path: Path, name: str) -> None:
    """The ledger itself, its journal, another ledger's anchor, no file, a folder that is not
    there: what is refused is refused, and the ledger stays whole.
    """
    with SqliteLedger(tmp_path / "before", anchor=tmp_path / "other") as before:
        before.run("run", configuration_hash="c").reserve([event(normal(1.0))], NOWHERE)
    taken = 0
    SqliteLedger(tmp_path / "ledger").close()
    with (
        suppress(LedgerError),
        SqliteLedger(tmp_path / "ledger", anchor=tmp_path / name) as ledger,
    ):
        run = ledger.run("run", configuration_hash="c")
        for _ in range(3):
            with suppress(LedgerError):
                run.reserve([event(normal(1.0))], NOWHERE)
                taken += 1
    with SqliteLedger(tmp_path / "ledger", read_only=True) as ledger:
        assert ledger.verify().reservations >= taken
    assert taken <= 1


_WRITER = """
import os, sys
import dpledger.mechanisms as mech
from dpledger.accounting.ledger import SqliteLedger
step = mech.GaussianStep(mech.declared(1, "unit", adjacency=mech.Adjacency.ADD_REMOVE_ONE), 20.0)
event = mech.Event(step, mech.Context((), 1, "message", mech.Audience.PUBLIC))
ledger = SqliteLedger(sys.argv[1], anchor=sys.argv[2])
run = ledger.run("run", configuration_hash="c")
while True:
    os.write(1, f"{run.reserve([event], mech.Provenance('elsewhere', None))}\\n".encode())
"""


def test_killed_writers_lose_nothing_that_they_were_told(tmp_path: Path) -> None:
    """Two processes at one ledger and anchor, each killed after some reservations."""
    path, anchor = tmp_path / "ledger", tmp_path / "anchor"
    SqliteLedger.create(path, Budget(Gdp(Fraction(100)), adjacency=ADD))
    command = [sys.executable, "-c", _WRITER, str(path), str(anchor)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told: list[int] = []
    for most, writer in zip((5, 12), writers, strict=True):
        assert writer.stdout is not None
        told += [int(writer.stdout.readline()) for _ in range(most)]
        writer.kill()
        told += [int(line) for line in writer.stdout.read().split("\n")[:-1]]
        writer.wait()
    with SqliteLedger(path, anchor=anchor) as ledger:
        ledger.verify()
        assert set(told) <= {found.sequence for found in ledger.reservations()}
        assert len(told) == len(set(told))
        ledger.run("run", configuration_hash="c").reserve([event(normal(20.0))], NOWHERE)


def test_no_command_writes_over_a_ledger(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory, metrics, certificates, plots and anchors, by the ledger's name and by a link."""
    history = tmp_path / "history.json"
    history.write_text(json.dumps({"history": [[1.0, 0.01, 100]], "mechanism": "rdp"}))
    with SqliteLedger(tmp_path / "ledger") as ledger:
        import_into(ledger, "opacus", history, adjacency=ADD)
    (tmp_path / "link").symlink_to(tmp_path / "ledger")
    kept = (tmp_path / "ledger").read_bytes()
    run = "--noise-multiplier 1 --steps 3 --sampling none --adjacency zero-out-one"
    for name in ("ledger", "link"):
        file = str(tmp_path / name)
        for words in (
            ["watch", file, "--memory", file],
            ["watch", str(tmp_path / "ledger"), "--metrics", file, "--memory", f"{file}.json"],
            ["ledger", "export", str(tmp_path / "ledger"), "--certificate", file],
            ["ledger", "anchor", str(tmp_path / "ledger"), "--to", file],
            ["curve", *run.split(), "--points", "2", "--plot", file],
        ):
            monkeypatch.setattr(sys, "argv", ["dpledger", *words])
            with pytest.raises(SystemExit) as ended:
                main()
            assert ended.value.code in (1, 2), words
            assert (tmp_path / "ledger").read_bytes() == kept, words
    capfd.readouterr()


def test_scores_in_the_orders_that_people_keep_refute_no_kept_claim() -> None:
    """Sorted by worker, by size, as texts, zigzag: of a claim that is exactly kept."""

    def parts(x: FloatArray) -> FloatArray:
        return np.concatenate([np.sort(part) for part in np.array_split(x, 3)])

    orders: list[Callable[[FloatArray], FloatArray]] = [
        lambda x: x,
        parts,
        lambda x: x[np.argsort(np.abs(x))],
        lambda x: x[np.argsort([f"{v:.3f}" for v in x])],
        lambda x: np.concatenate([np.sort(x)[::2], np.sort(x)[1::2][::-1]]),
    ]
    claimed = ClaimedPrivacy.of(epsilon=None, mu=1.0, delta=1e-5)
    for order in orders:
        refuted = 0
        for seed in range(20):
            drawn = np.random.default_rng(seed)
            scores = Scores(order(drawn.normal(1, 1, 200)), order(drawn.normal(0, 1, 200)))
            refuted += judge_scores(scores, claimed, confidence=0.95).refutes_claim
        assert refuted <= 4  # binomial of 20 at 0.05: 0.3 % of chance beyond it


def test_bets_against_answers_that_lose_all_that_they_may_are_seldom_won() -> None:
    """Randomised response at its epsilon, and an answer that leaks with probability delta."""

    def flips(answers: FloatArray, trials: int, generator: np.random.Generator) -> FloatArray:
        kept = generator.random((trials, 1)) < np.exp(2) / (1 + np.exp(2))
        return np.where(kept, answers[:1], 1 - answers[:1])

    def leaks(answers: FloatArray, trials: int, generator: np.random.Generator) -> FloatArray:
        return np.where(generator.random((trials, 1)) < 0.05, answers[:1], -5.0)

    pairs = [AnswerPair(np.array([1.0]), np.array([0.0]), "one record")]
    for black_box, epsilon, delta in ((flips, 2.0, 0.0), (leaks, 0.0, 0.05)):
        claimed = ClaimedPrivacy.of(epsilon=epsilon, mu=None, delta=delta)
        audit = partial(audit_black_box, black_box, pairs, runs=2000, claimed=claimed)
        for bound, kernel in ((False, False), (True, False), (False, True)):
            bet = partial(audit, confidence=0.9, bound=bound, kernel=kernel)
            won = [bet(seed=seed).refuted for seed in range(12)]
            assert sum(won) <= 4  # binomial of 12 at 0.1: 0.4 % of chance beyond it
