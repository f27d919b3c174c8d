"""Laws that a reviewer tried against accountants, claims, searches, budgets and ledgers' names.

Prices are held against sums over small data sets and lattices, which share no code with them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr

import dpledger as dp
import dpledger.mechanisms as mech
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import Ledger, MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.ledger.rows import LedgerError
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.own import (
    Averaging,
    MechanismKind,
    PromisedEpsilon,
    Sampling,
    StatedRelease,
    judged,
)
from dpledger.audits.claims.own_function import judged_function
from dpledger.audits.falsifier import ReplacedRecord
from dpledger.mechanisms import Adjacency, Event, GaussianStep, Mechanism, Norm
from dpledger.mechanisms.sensitivity import Sensitivity

Array = NDArray[np.float64]
Law = Mapping[float, float]  # of what a step adds noise to: the probability of each value
REPLACE, ADD, ZERO = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE
VALUES = (-1.0, 0.0, 1.0)


def event(mechanism: Mechanism, place: int = 1) -> Event:
    return Event(mechanism, mech.Context((), place, "message", mech.Audience.PUBLIC))


def unit(
    relation: Adjacency = REPLACE, size: float | Fraction = 1, of: Norm = Norm.L2
) -> Sensitivity:
    return mech.declared(size, "unit", adjacency=relation, norm=of)


def hockey_stick(pair: Sequence[Array], epsilon: float) -> float:
    """Return the larger delta of both orders, of masses on one grid."""
    first, second = pair
    grown = math.exp(min(epsilon, 700.0))
    both = (first - grown * second, second - grown * first)
    return max(float(np.maximum(each, 0).sum()) for each in both)


# --- accountants ---------------------------------------------------------------------------------


def _vectors(squared: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of the entries of integer vectors of up to this squared length, falling."""
    yield ()
    for entry in range(min(largest, math.isqrt(squared)), 0, -1):
        for rest in _vectors(squared - entry * entry, entry):
            yield (entry, *rest)


def test_no_integer_vectors_lose_more_than_is_printed() -> None:
    """Tried: one and two steps of discrete noise, vectors of squared length up to 25."""
    draw = random.Random(1)
    for _ in range(30):
        root, steps, delta = draw.randint(1, 5), draw.choice([1, 2]), 10 ** draw.uniform(-6, -1)
        noise = draw.choice([0.8, 1.5, 3.0, 7.0])
        step = mech.DiscreteGaussianStep(unit(size=root), noise)
        printed = guarantee([event(step, k) for k in range(steps)], delta=delta)
        epsilon, reach = printed.epsilon.upper_float, int(11 * noise) + 3
        masses = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * noise**2))
        shapes = [shape for shape in _vectors(root * root, root) if shape]
        for shape in draw.sample(shapes, min(6, len(shapes))):
            chances = np.ones(1)  # of the sum of entry times noise, from its least value on
            for entry in shape * steps:
                each = np.zeros((masses.size - 1) * entry + 1)
                each[::entry] = masses / masses.sum()
                chances = np.convolve(chances, each)
            length = steps * sum(entry * entry for entry in shape)
            sums = np.arange(chances.size) - chances.size // 2
            losses = (2 * sums + length) / (2 * noise**2)
            over = losses > epsilon
            lost = float(np.sum(chances[over] * -np.expm1(epsilon - losses[over])))
            assert lost <= delta * (1 + 1e-6) + 1e-12


def _one_step(mu: float, rate: float, shift: Array, *, mixture_first: bool) -> Array:
    """Return delta at each epsilon of one sampled Gaussian step, in one order."""
    grown = np.exp(shift)
    if mixture_first:  # a loss above shift is an output above this
        odds = (grown - 1 + rate) / rate
        at = (np.log(np.maximum(odds, 1e-300)) + mu * mu / 2) / mu
        first, second = (1 - rate) * ndtr(-at) + rate * ndtr(mu - at), ndtr(-at)
        return np.asarray(np.where(odds > 0, first - grown * second, 1 - grown))
    odds = (np.exp(-shift) - 1 + rate) / rate  # 1 / grown: a loss above shift is an output below
    at = (np.log(np.maximum(odds, 1e-300)) + mu * mu / 2) / mu
    first, second = ndtr(at), (1 - rate) * ndtr(at) + rate * ndtr(at - mu)
    return np.where(odds > 0, first - grown * second, 0.0)


@pytest.mark.parametrize(
    ("steps", "epsilon"),
    [
        (((1.0, 0.01), (0.5, 0.02)), 0.5),
        (((2.0, 0.001), (1.0, 0.1)), 1.0),
        (((0.8, 0.3), (3.0, 0.0005)), 0.7),
        (((1.4, 0.004), (1.4, 0.004)), 1.5),
    ],
)
def test_few_unlike_samples_lose_what_an_integral_says(
    steps: tuple[tuple[float, float], tuple[float, float]], epsilon: float
) -> None:
    """Both ends of what is printed, against the sum over the first of two steps' outputs."""
    u = np.linspace(-12, 16, 560_001)
    (mu, rate), (other, chance) = steps
    at_u = np.exp(-u * u / 2) / math.sqrt(2 * math.pi) * (u[1] - u[0])
    ratio = 1 - rate + rate * np.exp(mu * u - mu * mu / 2)

    def delta(point: float) -> float:
        first = at_u * ratio * _one_step(other, chance, point - np.log(ratio), mixture_first=True)
        second = at_u * _one_step(other, chance, point + np.log(ratio), mixture_first=False)
        return max(float(first.sum()), float(second.sum()))

    wanted = delta(epsilon)
    listed = [
        event(mech.PoissonSampled(GaussianStep(unit(ADD), 1 / m), q), k)
        for k, (m, q) in enumerate(steps)
    ]
    printed = guarantee(listed, delta=wanted).epsilon
    assert delta(printed.upper_float) <= wanted * (1 + 1e-8)
    assert delta(printed.lower_float) >= wanted * (1 - 1e-8)
    assert printed.relative_width < 1e-4


def _law(records: Sequence[float], stated: Mapping[str, Any]) -> Law:
    """Return the law of what one step releases but for noise, by enumeration."""
    n, found = len(records), dict[float, float]()
    batch, most = stated.get("batch", n), stated.get("largest_batch", n)
    samples: list[tuple[tuple[int, ...], float]] = []
    if stated["sampling"] in ("fixed-batch", "with-replacement"):
        again = stated["sampling"] == "with-replacement"
        all_of = [*(product(range(n), repeat=batch) if again else combinations(range(n), batch))]
        samples = [(each, 1 / len(all_of)) for each in all_of]
    elif stated["sampling"] == "none":
        samples = [(tuple(range(n)), 1.0)]
    else:
        rate = stated["rate"]
        for bits in product((0, 1), repeat=n):
            drawn = tuple(i for i in range(n) if bits[i])
            kept = [*combinations(drawn, min(most, len(drawn)))]
            chance = rate ** len(drawn) * (1 - rate) ** (n - len(drawn))
            samples += [(each, chance / len(kept)) for each in kept]
    for each, chance in samples:
        by = {"own": len(each) or 1, "public": stated.get("divisor", 1)}.get(
            stated.get("by", ""), 1
        )
        value = round(sum(records[i] for i in each) / by, 9)
        found[value] = found.get(value, 0.0) + chance
    return found


def _masses(law: Law, noise: float, grid: Array, kind: str = "gaussian") -> Array:
    total = np.zeros_like(grid)
    for value, chance in law.items():
        gap = np.abs(grid - value) / noise
        total += chance * np.exp(-gap * gap / 2 if kind == "gaussian" else -gap)
    return np.asarray(total / total.sum())


def test_two_steps_on_a_small_data_set_lose_no_more_than_is_printed() -> None:
    """Tried: all schemes, units of two records, records that say another thing at the next step."""
    draw, tried = random.Random(4), 0
    schemes = [
        ("with-replacement", REPLACE),
        ("fixed-batch", REPLACE),
        ("poisson", REPLACE),
        ("poisson", ADD),
        ("truncated-poisson", ADD),
        ("truncated-poisson", REPLACE),
    ]
    for _ in range(24):
        (sampling, relation), n = draw.choice(schemes), draw.randint(1, 3)
        asked: dict[str, Any] = {"sampling": sampling, "records": n, "batch": draw.randint(1, n)}
        if sampling.startswith("truncated"):
            asked["largest_batch"] = draw.randint(1, n)
        size, noise, delta = draw.randint(1, min(n, 2)), draw.choice([0.6, 1.3, 2.5]), 0.01
        about: dict[str, Any] = {**asked, "adjacency": relation, "records_per_unit": size}
        try:
            epsilon = dp.epsilon(noise_multiplier=noise, steps=2, delta=delta, **about).epsilon
        except mech.InvalidParameter:
            continue
        asked["rate"] = asked["batch"] / n
        span = n + size + 7 * noise
        grid = np.linspace(-span, span, 221)
        for _ in range(8):
            there, here = list[Array](), list[Array]()
            for _ in range(2):
                own, rest = [draw.choice((-1.0, 1.0))] * size, draw.choices(VALUES, k=n)
                first = rest if relation is ADD else own + rest[size:]
                second = own + (rest if relation is ADD else rest[size:])
                if relation is REPLACE:
                    second[:size] = [-each for each in own]
                there.append(_masses(_law(first, asked), noise, grid))
                here.append(_masses(_law(second, asked), noise, grid))
            lost = hockey_stick((np.outer(*there), np.outer(*here)), epsilon)
            assert lost <= delta * 1.02
            tried += 1
    assert tried > 100


def test_no_stated_release_of_a_small_data_set_loses_more_than_a_claim_is_held_to() -> None:
    """Tried: sums, means over their own or a public number, Laplace and normal noise."""
    draw, tried = random.Random(6), 0
    for _ in range(70):
        kind, by = draw.choice(["gaussian", "laplace"]), draw.choice(["", "own", "public"])
        scheme = draw.choice(["none", "poisson", "fixed-batch", "with-replacement"])
        n, noise, delta = draw.randint(1, 3), draw.choice([0.4, 1.0, 3.0]), draw.choice([1e-3, 0.1])
        relation = draw.choice([ADD, ZERO, REPLACE])
        asked: dict[str, Any] = {"sampling": scheme, "by": by, "rate": draw.choice([0.2, 0.6])}
        asked["batch"] = draw.randint(1, n)
        sized = scheme in ("fixed-batch", "with-replacement")
        least = {"none": n, "poisson": 1}.get(scheme, asked["batch"])
        asked["divisor"] = {"own": least, "public": 2}.get(by)
        if (kind, scheme) == ("laplace", "with-replacement") or (sized and relation is ADD):
            continue
        release = StatedRelease(
            MechanismKind(kind),
            clip_norm=1.0,
            noise=noise,
            rounds=1,
            sampling=Sampling(scheme),
            rate=asked["rate"] if scheme == "poisson" else None,
            batch=asked["batch"] if sized else None,
            records=n if sized else None,
            averaging={"": Averaging.SUM, "own": Averaging.OWN, "public": Averaging.PUBLIC}[by],
            divisor=asked["divisor"],
        )
        true = judged([release], PromisedEpsilon(1e6, delta), adjacency=relation).true
        if true is None or math.isinf(true.upper_float):
            continue
        grid = np.linspace(-n - 1 - 20 * noise, n + 1 + 20 * noise, 6001)
        tried += 1
        for rest in product(VALUES, repeat=n if relation is ADD else n - 1):
            for old, new in product(VALUES, repeat=2):
                pair = ([old, *rest], [new if relation is REPLACE else 0.0, *rest])
                first, second = (rest, (new, *rest)) if relation is ADD else pair
                laws = (_law(first, asked), _law(second, asked))
                shown = [_masses(law, noise, grid, kind) for law in laws]
                assert hockey_stick(shown, true.upper_float) <= delta * 1.01 + 1e-6
    assert tried > 20


def test_threads_get_the_answers_that_each_gets_alone() -> None:
    """Tried: four threads at once, whose numbers need other precisions."""
    draw, asked = random.Random(5), list[Mapping[str, Any]]()
    for _ in range(8):
        scheme, relation = draw.choice([("poisson", "add-remove-one"), ("fixed-batch", REPLACE)])
        noise, steps, delta = draw.uniform(0.7, 4), draw.randint(1, 40), 10 ** draw.uniform(-9, -2)
        some = {"noise_multiplier": noise, "steps": steps, "delta": delta, "sampling": scheme}
        asked.append({**some, "adjacency": relation, "records": 1000, "batch": 50})
    with ThreadPoolExecutor(4) as pool:
        together = [found.guarantee.epsilon for found in pool.map(lambda k: dp.epsilon(**k), asked)]
    for one, among in zip(asked, together, strict=True):
        alone = dp.epsilon(**one).guarantee.epsilon
        assert (alone.lower_float, alone.upper_float) == (among.lower_float, among.upper_float)


# --- verdicts ------------------------------------------------------------------------------------


def test_a_search_does_not_refute_what_is_exactly_met() -> None:
    """Tried: last digits that are off, and a function that writes over its rows."""

    def scaled(rows: Array, labels: Array, public: Array) -> Array:
        rows *= 0.1
        return np.asarray(labels @ rows)

    def mean(rows: Array, labels: Array, public: Array) -> Array:
        return np.asarray((labels[:, None] * rows).mean(axis=0))

    for count, claimed, released in ((3, 0.2, scaled), (7, 2 / 7, mean), (130, 2 / 130, mean)):
        found = judged_function(released, ReplacedRecord(count, 2, REPLACE), claimed)
        assert found.verdict is ClaimVerdict.UNSPECIFIED


# --- ledgers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [MemoryLedger, lambda: SqliteLedger("ledger")])
def test_a_budget_holds_whatever_was_opened_before_it(
    make: Callable[[], Ledger], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried: runs and plans that are open before the budget is set, in each of its units."""
    notions: list[Gdp | Zcdp | ApproxDp | Rdp]
    notions = [Gdp(Fraction(3)), Zcdp(1.5), ApproxDp(8, 1e-5), Rdp(8, 12)]
    for place, notion in enumerate(notions):
        (tmp_path / f"{place}").mkdir()
        monkeypatch.chdir(tmp_path / f"{place}")
        ledger, step = make(), GaussianStep(unit(), 2.0)
        plan = [event(step, place) for place in range(3)]
        plans = {"steps": None, "plan": plan}
        runs = [ledger.run(name, configuration_hash="h", plan=plans[name]) for name in plans]
        ledger.set_budget(Budget(notion, adjacency=REPLACE))
        taken = 0
        for place in range(40):
            try:
                runs[place % 2].step(plan[place % 3])
                taken += 1
            except BudgetExceeded:
                break
        assert taken == (11 if isinstance(notion, ApproxDp) else 12)  # mu^2 is 1/4 a step
        ledger.close()


def test_a_ledger_of_an_odd_name_is_the_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried: names that mean something in an address, to SQLite, or to a shell; folders, links."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("no ledger")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("not yet there")
    for name in ("q?mode=memory", "h#a", "p%2e", "file:x", ":memory:", " ", "new\nline", "a\\b"):
        for _ in range(2):
            with SqliteLedger(name) as ledger:
                ledger.run("r", configuration_hash="h").step(event(GaussianStep(unit(), 9.0)))
        with SqliteLedger(tmp_path / name, read_only=True) as ledger:
            assert len(ledger.events()) == 2
        assert (tmp_path / name).is_file()
    with SqliteLedger("link") as ledger:
        assert ledger.path == tmp_path / "not yet there"
    for name in ("", ".", "folder", "text", "text/x", "no/x", "/dev/null", "x-wal", "~/x"):
        with pytest.raises(LedgerError):
            SqliteLedger(name, timeout=0.1)
