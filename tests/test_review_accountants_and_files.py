"""Laws that a reviewer tried against accountants, certificates, ledgers and imported events.

Every epsilon is held against a pair of neighbours whose outputs are put into bins: a pair of
finite laws, composed by rounding losses down, so that what it loses is a lower bound on the truth.
New files beside what dead writers left, odd texts and numbers in every place of a row.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import binom, hypergeom, laplace, norm
from tests.parameters import slow

import dpledger as dp
import dpledger.mechanisms as m
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.composition import UNIT_BITS
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import (
    LedgerError,
    MemoryLedger,
    SqliteLedger,
    exported,
    imported,
)
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.ledger.renyi_filter import renyi_price
from dpledger.accounting.numbers.notions import Gdp
from dpledger.accounting.proof.certificate import certify
from dpledger.interop.event_trees import EventTree, document_of_tree
from dpledger.interop.files import read_bytes
from dpledger.mechanisms.sensitivity import Sensitivity, sum_of_bounded

FloatArray = NDArray[np.float64]
Weights = Sequence[float] | FloatArray
Pair = tuple[FloatArray, FloatArray]
Losses = tuple[int, FloatArray, float]
"""Whole steps of the least loss, probabilities from there on, that of an infinite loss."""

STEP = 4e-3
ADD, ZERO, REPLACE = m.Adjacency.ADD_REMOVE_ONE, m.Adjacency.ZERO_OUT_ONE, m.Adjacency.REPLACE_ONE
NOWHERE = m.Provenance("none", None)
HERE = m.Context((), 1, "message", m.Audience.PUBLIC)


# --- pairs of neighbours ------------------------------------------------------------------------


def binned(first: tuple[Weights, Weights], second: tuple[Weights, Weights], law: Any) -> Pair:
    """Return two mixtures of shifts, as (chances, shifts), in bins; `law` is SciPy's."""
    shifts, wide = [*first[1], *second[1]], 9 * law.std()
    inner = np.linspace(min(shifts) - wide, max(shifts) + wide, 801)
    edges = np.concatenate([[-np.inf], np.union1d(inner, shifts), [np.inf]])

    def mass(mixture: tuple[Weights, Weights]) -> FloatArray:
        total = np.zeros(len(edges) - 1)
        for chance, shift in zip(*mixture, strict=True):
            at = edges - shift
            left, right = np.diff(law.cdf(at)), -np.diff(law.sf(at))
            total += chance * np.where(at[1:] <= 0, left, right)
        return total

    return mass(first), mass(second)


def losses(pair: Pair) -> Losses:
    """Return the distribution of the loss, every loss rounded down."""
    p, q = pair
    met = (p > 0) & (q > 0)
    place = np.floor(np.log(p[met] / q[met]) / STEP).astype(int)
    least = int(place.min())
    return (
        least,
        np.bincount(place - least, p[met]).astype(np.float64),
        float(p[(p > 0) & (q == 0)].sum()),
    )


def composed(one: Losses, other: Losses) -> Losses:
    size = len(one[1]) + len(other[1]) - 1
    product = np.fft.rfft(one[1], size) * np.fft.rfft(other[1], size)
    most = 1 - (1 - one[2]) * (1 - other[2])
    return one[0] + other[0], np.maximum(np.fft.irfft(product, size), 0), most


def at_least(parts: Sequence[tuple[Pair, int]], delta: float) -> float:
    """Return an epsilon that these pairs, so many times each, lose at least."""
    found = 0.0
    for turned in (False, True):
        sides = [((q, p) if turned else (p, q), times) for (p, q), times in parts]
        each = [losses(pair) for pair, times in sides for _ in range(times)]
        least, chances, gone = reduce(composed, each)
        loss = (least + np.arange(len(chances))) * STEP
        low, high = 0.0, max(float(loss[-1]), STEP)
        for _ in range(40):
            middle = (low + high) / 2
            kept = gone + float(chances @ np.maximum(-np.expm1(np.minimum(middle - loss, 0)), 0))
            # less what Fourier transforms round
            low, high = (middle, high) if kept - 1e-10 > delta else (low, middle)
        found = max(found, low)
    return found


def shifted(chances: Weights, unit: float, relation: m.Adjacency, law: Any) -> Pair:
    """Return the pair of a sum in which j copies of a record move by `unit` each, as drawn."""
    many: FloatArray = unit * np.arange(len(chances), dtype=np.float64)
    nobody: tuple[Weights, Weights] = ([1.0], [0.0])
    return binned((chances, many), (chances, -many) if relation is REPLACE else nobody, law)


def chances_of(counts: Sequence[int], most: int, rate: float) -> FloatArray:
    return np.asarray(binom.pmf(counts, most, rate))


def size_of(bound: float, relation: m.Adjacency, kind: m.Norm = m.Norm.L2) -> Sensitivity:
    moves = 2 if relation is REPLACE else 1
    return m.declared(moves * bound, "a bound of one", adjacency=relation, norm=kind)


def event(mechanism: m.Mechanism, times: int = 1) -> m.Event:
    return m.Event(mechanism if times == 1 else m.Repeated(mechanism, times), HERE)


def of_kind(kind: str, relation: m.Adjacency, noise: float, group: int) -> tuple[m.Mechanism, Pair]:
    """Return a mechanism and a pair of its neighbours that differ in `group` records."""
    rate, drawn, normal = 0.2, range(group + 1), norm(scale=noise)
    step = m.GaussianStep(size_of(1, relation), noise)
    chances = chances_of(drawn, group, rate)
    if kind == "all":
        return step, shifted([*[0.0] * group, 1.0], 1, relation, normal)
    if kind == "poisson":
        step = m.GaussianStep(sum_of_bounded(1, relation), noise)  # what one record brings is told
        return m.PoissonSampled(step, rate), shifted(chances, 1, relation, normal)
    if kind == "accumulated":
        several = chances_of(range(3 * group + 1), 3 * group, rate)
        return m.AccumulatedPoisson(step, rate, 3), shifted(several, 1, relation, normal)
    if kind == "mixture":
        always = [*[0.0] * group, *chances]
        mixed = m.GaussianMixtureStep(size_of(1, relation), size_of(1, relation), rate, noise)
        return mixed, shifted(always, 1, relation, normal)
    if kind == "fixed batch":
        batch = np.asarray(hypergeom.pmf(drawn, 10, group, 3))
        return m.SampledWithoutReplacement(step, 3, 10), shifted(batch, 1, relation, normal)
    if kind == "with replacement":
        places = chances_of(range(4), 3, group / 10)
        return m.SampledWithReplacement(step, 3, 10), shifted(places, 1, relation, normal)
    if kind == "laplace":
        size = size_of(1, relation, m.Norm.L1)
        pair = shifted([*[0.0] * group, 1.0], 1, relation, laplace(scale=noise))
        return m.LaplaceStep(size, noise), pair
    if kind == "whole":
        at = np.arange(-400, 401)
        one = np.exp(-np.abs(at) / noise)
        moved = group * (2 if relation is REPLACE else 1)
        pair = (one / one.sum())[moved:], one[:-moved] / one.sum()
        return m.DiscreteLaplaceStep(size_of(1, relation, m.Norm.L1), noise), pair
    both: FloatArray = reduce(np.outer, [np.array([0.6, 0.4])] * group).ravel()
    return m.RandomisedResponse(0.6, 2), (both, both[::-1].copy())


LISTS = [
    (ADD, ("accumulated", "whole"), 2, 3.0),
    (ADD, ("mixture", "all"), 2, 5.0),
    (ZERO, ("poisson", "laplace"), 3, 6.0),
    (REPLACE, ("fixed batch", "answers"), 2, 4.0),
    (REPLACE, ("poisson", "all"), 1, 5.0),
    (REPLACE, ("with replacement",), 2, 4.0),
]


@pytest.mark.parametrize(("relation", "kinds", "group", "noise"), LISTS)
def test_unlike_steps_of_a_group_lose_no_more_than_is_printed(
    relation: m.Adjacency, kinds: tuple[str, ...], group: int, noise: float
) -> None:
    """Two of each kind in one list, against a pair in bins."""
    made = [of_kind(kind, relation, noise, group) for kind in kinds]
    events = [event(mechanism, 2) for mechanism, _ in made]
    lost = at_least([(pair, 2) for _, pair in made], 1e-4)
    assert 0.1 < lost <= guarantee(events, delta=1e-4, group=group).epsilon.upper_float


@pytest.mark.parametrize("order", [Fraction(11, 10), Fraction(7, 2), Fraction(32)])
def test_a_filters_price_is_no_less_than_the_divergence_of_a_pair(order: Fraction) -> None:
    """Of outputs in bins, in both directions: putting into bins loses, and never gains."""
    kinds = ("all", "poisson", "mixture", "accumulated", "laplace", "whole")
    wanted = [(kind, relation) for kind in kinds for relation in (ADD, ZERO)]
    wanted += [(kind, REPLACE) for kind in ("fixed batch", "with replacement", "answers")]
    for kind, relation in wanted:
        mechanism, pair = of_kind(kind, relation, 2.0, 1)
        price, alpha = renyi_price(mechanism, order).upper / (1 << UNIT_BITS), float(order)
        for one, other in (pair, pair[::-1]):
            met = (one > 0) & (other > 0)
            powers = alpha * np.log(one[met]) + (1 - alpha) * np.log(other[met])
            assert logsumexp(powers) / (alpha - 1) <= price * (1 + 1e-9) + 1e-12, kind


@pytest.mark.parametrize(("largest", "unit", "delta"), [(1, 1, 1e-3), (4, 2, 1e-2), (8, 1, 1e-1)])
def test_samples_that_are_cut_lose_no_more_than_is_printed(
    largest: int, unit: int, delta: float
) -> None:
    """The law of the sum in full: eight others pull against the unit, cuts keep whom they keep."""
    others, rate, noise, steps = 8, Fraction(1, 4), 1.5, 3
    law: tuple[dict[int, float], dict[int, float]] = ({}, {})
    for drawn in range(others + 1):
        chance = float(binom.pmf(drawn, others, float(rate)))
        without = -min(drawn, largest)
        law[1][without] = law[1].get(without, 0) + chance
        for more in range(unit + 1):
            both = chance * float(binom.pmf(more, unit, float(rate)))
            kept = min(drawn + more, largest)
            for there in range(max(0, kept - drawn), min(more, kept) + 1):
                share = float(hypergeom.pmf(there, drawn + more, more, kept)) if kept else 1.0
                at = 2 * there - kept
                law[0][at] = law[0].get(at, 0) + both * share
    first, second = ((list(each.values()), [float(at) for at in each]) for each in law)
    stated: dict[str, Any] = {"sampling": "truncated-poisson", "adjacency": "add-remove-one"}
    stated |= {"records": others + unit, "rate": rate, "largest_batch": largest, "steps": steps}
    found = dp.epsilon(noise_multiplier=noise, delta=delta, records_per_unit=unit, **stated)
    assert at_least([(binned(first, second, norm(scale=noise)), steps)], delta) <= found.epsilon


def tree(name: str, **fields: Any) -> EventTree:
    return EventTree(f"{name}DpEvent", fields)


def test_a_history_of_dp_accounting_loses_no_more_than_is_priced() -> None:
    """Several looks at one sample are not several samples, whoever sampled."""
    noise, other = 1.5, 2.5
    joint = (2 / noise**2 + 1 / other**2) ** -0.5
    one = tree("Gaussian", noise_multiplier=noise)
    twice = tree("SelfComposed", event=one, count=2)
    looks = tree("Composed", events=[twice, tree("Gaussian", noise_multiplier=other)])
    numbers = {"source_dataset_size": 10, "sample_size": 3}
    places = chances_of(range(4), 3, 0.1)
    poisson = tree("PoissonSampled", sampling_probability=0.2, event=looks)
    cases: list[tuple[m.Adjacency, EventTree, Weights]] = [
        (ADD, poisson, [0.8, 0.2]),
        (REPLACE, tree("SampledWithoutReplacement", event=looks, **numbers), [0.7, 0.3]),
        (REPLACE, tree("SampledWithReplacement", event=looks, **numbers), places),
        (ZERO, looks, [0.0, 1.0]),
    ]
    for relation, document, chances in cases:
        again = tree("SelfComposed", event=document, count=2)
        whole = tree("Composed", events=[again, tree("Laplace", noise_multiplier=other)])
        content = json.dumps(document_of_tree(whole)).encode()
        events = read_bytes("dp-event", content, "file", adjacency=relation)
        parts = [
            (shifted(chances, 1, relation, norm(scale=joint)), 2),
            (shifted([0.0, 1.0], 1, relation, laplace(scale=other)), 1),
        ]
        assert at_least(parts, 1e-4) <= guarantee(events, delta=1e-4).epsilon.upper_float


@pytest.mark.parametrize(("relation", "kinds", "group", "noise"), [LISTS[3], *slow(LISTS[2])])
def test_no_certificate_holds_for_events_of_less_noise(
    relation: m.Adjacency, kinds: tuple[str, ...], group: int, noise: float
) -> None:
    """Its steps under the other list's events, subject and mechanisms: the checker finds more."""
    quiet = [event(of_kind(kind, relation, noise * 0.9, group)[0], 2) for kind in kinds]
    loud = [event(of_kind(kind, relation, noise, group)[0], 2) for kind in kinds]
    certificate = certify(loud, delta=1e-3, group=group)
    document = json.loads(certificate.to_json_bytes())
    forged = json.loads(certify(quiet, delta=1e-3, group=group).to_json_bytes())
    for part in ("nodes", "axioms", "assumptions"):
        forged[part] = document[part]
    assert dp.verify(certificate.to_json_bytes()).subject == certificate.subject
    written = json.dumps(forged, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    with pytest.raises((CertificateWrong, Undecided)):
        dp.verify(written.encode())


# --- ledgers ------------------------------------------------------------------------------------


def budget(steps: int) -> Budget:
    return Budget(Gdp(Fraction(steps, 16)), REPLACE)


def plain(place: int = 1, release: str = "message") -> m.Event:
    step = m.GaussianStep(m.declared(1, "unit", adjacency=REPLACE), 4.0)
    return m.Event(step, m.Context((), place, release, m.Audience.PUBLIC))


@pytest.mark.parametrize(("mode", "suffix"), [("DELETE", "-journal"), ("WAL", "-wal")])
def test_a_file_that_is_new_has_no_rows_of_one_that_was_there(
    mode: str, suffix: str, tmp_path: Path
) -> None:
    """A dead writer's journal, or an earlier release's log, beside a name that was given up."""
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect('ledger', isolation_level=None);"
        "c.execute('PRAGMA journal_mode = ' + sys.argv[1]); c.execute('PRAGMA cache_size = 1');"
        "c.execute('BEGIN IMMEDIATE'); c.execute('PRAGMA user_version = 1');"
        "[c.execute('INSERT INTO documents VALUES (?, ?)', (i, 9000 * 'x')) for i in 'abcdefg'];"
        "sys.argv[1] == 'WAL' and c.execute('COMMIT'); os.kill(os.getpid(), 9)"
    )
    path = tmp_path / "ledger"
    SqliteLedger.create(path, budget(1000))
    subprocess.run([sys.executable, "-c", script, mode], cwd=tmp_path, check=False)
    assert Path(f"{path}{suffix}").stat().st_size
    path.rename(tmp_path / "old")
    with pytest.raises(LedgerError, match="must go first"):
        SqliteLedger(path)
    Path(f"{path}{suffix}").rename(tmp_path / f"old{suffix}")
    Path(f"{path}-shm").unlink(missing_ok=True)
    SqliteLedger.create(path, budget(2))
    for each, steps in ((path, 2), (tmp_path / "old", 1000)):
        with SqliteLedger(each) as ledger:
            assert ledger.budget == budget(steps)
            assert len(list(ledger.rows())) == 1


ODD: list[Callable[[Any], m.Event]] = [
    lambda value: plain(value),
    lambda value: plain(1, value),
    lambda value: m.Event(plain().mechanism, m.Context((value,), 1, "m", m.Audience.PUBLIC)),
    lambda value: event(m.GaussianStep(m.declared(1, value, adjacency=REPLACE), 4.0)),
    lambda value: event(m.GaussianStep(m.declared(1, "unit", adjacency=REPLACE), value)),
    lambda value: event(m.GaussianStep(m.declared(value, "unit", adjacency=REPLACE), 4.0)),
    lambda value: event(m.Repeated(plain().mechanism, value)),
    lambda value: event(m.RandomisedResponse(0.6, value)),
    lambda value: event(m.PoissonSampled(m.GaussianStep(size_of(1, REPLACE), 4.0), value)),
]
VALUES: list[Any] = [
    *("", "a\0b", "\ud800", "\n", "e\u0301", "1", np.str_("np"), 5, -1, 0, None, True, 2**70, 1.5),
    *(math.nan, math.inf, 5e-324, np.int64(3), np.float64(2), Fraction(1, 3)),
]


def test_what_a_ledger_takes_it_can_read_and_write_again(tmp_path: Path) -> None:
    """Odd texts and numbers in every place: refused in words with nothing recorded, or kept."""
    taken = 0
    for place, (make, value) in enumerate((make, value) for make in ODD for value in VALUES):
        path, ledger = tmp_path / str(place), MemoryLedger()
        run = ledger.run("run", configuration_hash="same")
        try:
            found = make(value)
            run.reserve([found], NOWHERE)
        except m.DpledgerError:
            assert not ledger.events()
            continue
        taken += 1
        with SqliteLedger(path) as file:
            imported(list(exported(ledger)), file)
        with SqliteLedger(path) as file:
            file.verify()
            assert file.events() == [found]
            assert str(file.spent().mu_squared) == str(ledger.spent().mu_squared)
    assert taken >= 20
