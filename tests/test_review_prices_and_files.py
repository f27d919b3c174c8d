"""Laws of the prices of samples, and of files that state them, tried on many settings.

Prices are held against what small data sets lose, every draw enumerated; a composition against a
convolution of losses, each rounded down; single steps against closed forms in sixty digits.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from math import comb, exp
from pathlib import Path
from typing import Any

import click
import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.signal import fftconvolve
from scipy.special import logsumexp, ndtr

import dpledger as dp
import dpledger.mechanisms as mech
from dpledger.accounting.guarantees import deltas_at, epsilons_at, guarantee
from dpledger.accounting.ledger.renyi_filter import renyi_price
from dpledger.accounting.numbers.grade import Grade
from dpledger.audits.crosschecks import crosscheck
from dpledger.cli.app import main
from dpledger.interop import KINDS, read
from dpledger.mechanisms import Adjacency, Event, GaussianStep, Mechanism, Norm, Repeated
from dpledger.mechanisms.errors import DpledgerError
from dpledger.mechanisms.sensitivity import sum_of_bounded
from dpledger.runs.claims import judge_claim_file

Floats = NDArray[np.float64]
Law = dict[float, float]
"""Where the mean of normal noise is -> with which probability."""
ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE
_LOSS = 5e-3
"""To multiples of it losses are rounded down."""


def event(mechanism: Mechanism, times: int = 1) -> Event:
    context = mech.Context((), 1, "message", mech.Audience.PUBLIC)
    return Event(Repeated(mechanism, times), context)


def moved(by: float, relation: Adjacency, norm: Norm = Norm.L2) -> mech.Sensitivity:
    return mech.declared(by, "stated", adjacency=relation, norm=norm)


def losses(first: Law, second: Law, noise: float) -> tuple[int, Floats]:
    """Return the least loss, in units, and the masses from there on, of one told in bins."""
    places = [*first, *second]
    x = np.linspace(min(places) - 9 * noise, max(places) + 9 * noise, 4001)
    p, q = (
        np.diff(np.sum([w * ndtr((x - c) / noise) for c, w in law.items()], axis=0))
        for law in (first, second)
    )
    seen = (p > 1e-17) & (q > 1e-17)
    units = np.floor(np.log(p[seen] / q[seen]) / _LOSS).astype(np.int64)
    masses: Floats = np.bincount(units - units.min(), weights=p[seen]).astype(np.float64)
    return int(units.min()), masses


def least_epsilon(steps: Sequence[tuple[Law, Law, float, int]], delta: float) -> float:
    """Return a lower bound on ε at δ of steps that run so often, in one order of the data sets.

    Transforms err by less than 1e-9 in all, which δ is larger by.
    """
    start, masses = 0, np.ones(1)
    for first, second, noise, times in steps:
        low, one = losses(first, second, noise)
        for _ in range(times):
            start, masses = start + low, np.maximum(fftconvolve(masses, one), 0.0)
    found = (np.arange(masses.size) + start) * _LOSS
    masses, found = masses[found > 0], found[found > 0]

    def above(epsilon: float) -> float:
        far = found > epsilon
        return float(masses[far] @ -np.expm1(epsilon - found[far]))

    low_end, high_end = 0.0, float(found.max(initial=0.0))
    if found.size == 0 or above(0.0) <= delta + 1e-9:
        return 0.0
    for _ in range(40):
        middle = (low_end + high_end) / 2
        more = above(middle) > delta + 1e-9
        low_end, high_end = (middle, high_end) if more else (low_end, middle)
    return low_end


def binomial(n: int, q: float) -> list[float]:
    return [comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1)]


def small_sets(scheme: str, n: int, m: int, k: int) -> Iterator[tuple[str, Law, Law]]:
    """Yield, by relation, what k records and all others of n release without noise, and what the
    other data set does: numbers of norm 1, all others alike."""
    q = m / n
    if scheme == "poisson":
        drawn = dict(enumerate(binomial(k, q)))
        for relation in ("add-remove-one", "zero-out-one"):
            yield relation, {float(j): w for j, w in drawn.items()}, {0.0: 1.0}
        turned = {-float(j): w for j, w in drawn.items()}
        yield "replace-one", {float(j): w for j, w in drawn.items()}, turned
        return
    if scheme == "fixed-batch":
        met = {j: comb(k, j) * comb(n - k, m - j) / comb(n, m) for j in range(min(k, m) + 1)}
    else:
        met = dict(enumerate(binomial(m, k / n)))
    for others in (-1, 0, 1):
        laws: list[Law] = []
        for own in (1, -1):
            law: Law = {}
            for j, w in met.items():
                place = float(own * j + others * (m - j))
                law[place] = law.get(place, 0.0) + w
            laws.append(law)
        yield "replace-one", laws[0], laws[1]


@pytest.mark.parametrize("scheme", ["poisson", "fixed-batch", "with-replacement"])
def test_no_small_data_set_loses_more_than_a_training_is_said_to(scheme: str) -> None:
    """Tried: data sets of 6 to 12 records, units of one and two, one and two steps."""
    tight = 0
    for n, m, k, noise, delta, steps in (
        (6, 2, 1, 1.5, 1e-3, 1),
        (6, 2, 2, 3.0, 1e-3, 1),
        (12, 5, 1, 3.0, 1e-4, 2),
    ):
        for relation, one, other in small_sets(scheme, n, m, k):
            said = dp.epsilon(
                noise_multiplier=noise,
                delta=delta,
                records=n,
                batch=m,
                steps=steps,
                sampling=scheme,
                adjacency=relation,
                records_per_unit=k,
            ).epsilon
            found = max(
                least_epsilon([(first, second, noise, steps)], delta)
                for first, second in ((one, other), (other, one))
            )
            assert found <= said
            tight += found >= said * (1 - 5e-2)
    assert tight  # the bound would see a price that is too small


def cut(n: int, q: float, room: int, own: float, others: float, first: bool) -> Law:
    """Return where a Poisson sample's sum stands that is cut to `room` records: all of n others,
    and one of its own, which is kept first or by a fair choice; none of its own where that is NaN.
    """
    law: Law = {}
    for a, w in enumerate(binomial(n, q)):
        alone = others * min(a, room)
        law[alone] = law.get(alone, 0.0) + w * (1.0 if np.isnan(own) else 1 - q)
        if np.isnan(own):
            continue
        kept = 1.0 if a < room or first else room / (a + 1)
        for place, chance in ((others * min(a, room - 1) + own, kept), (alone, 1 - kept)):
            law[place] = law.get(place, 0.0) + w * q * chance
    return law


def test_no_cut_sample_of_a_small_data_set_loses_more_than_is_said() -> None:
    """Tried: cuts that keep a record first, and fair ones; others of every sign."""
    for (n, m, room), noise, steps in product(
        ((6, 2, 2), (6, 3, 3), (8, 2, 4)), (0.8, 2.0), (1, 2)
    ):
        said = dp.epsilon(
            noise_multiplier=noise,
            delta=1e-2,
            records=n,
            batch=m,
            steps=steps,
            largest_batch=room,
            sampling="truncated-poisson",
            adjacency="add-remove-one",
        ).epsilon
        for others, first in product((-1.0, 0.0, 1.0), (True, False)):
            with_it = cut(n, m / n, room, 1.0, others, first)
            without = cut(n, m / n, room, np.nan, others, first)
            for one, other in ((with_it, without), (without, with_it)):
                assert least_epsilon([(one, other, noise, steps)], 1e-2) <= said


def steps_of(relation: Adjacency, group: int, draw: random.Random) -> tuple[Event, Any]:
    """Return a step of a kind that groups meet in a way of its own, and what one unit tells."""
    noise, times = 10 ** draw.uniform(-0.1, 0.6), draw.choice([1, 2, 3])
    q = draw.choice([10 ** draw.uniform(-2, -0.2), draw.uniform(0.1, 0.9)])
    one: Mechanism
    if relation is not REPLACE:
        batches = draw.choice([2, 3])
        one = mech.AccumulatedPoisson(GaussianStep(moved(1, relation), noise), q, batches)
        law = {float(j): w for j, w in enumerate(binomial(group * batches, q))}
        return event(one, times), (law, {0.0: 1.0}, noise, times)
    if draw.random() < 0.5:
        one = mech.PoissonSampled(GaussianStep(sum_of_bounded(1, relation), noise), q)
        law = {float(j): w for j, w in enumerate(binomial(group, q))}
        turned = {-c: w for c, w in law.items()}
        return event(one, times), (law, turned, noise, times)
    n, m = draw.randint(4, 30), draw.randint(1, 4)
    one = mech.SampledWithReplacement(GaussianStep(moved(2, relation), noise), m, n)
    law = {2.0 * j: w for j, w in enumerate(binomial(m, group / n))}
    return event(one, times), (law, {0.0: 1.0}, noise, times)


@pytest.mark.parametrize("relation", [ADD, ZERO, REPLACE])
def test_units_in_unlike_samples_lose_no_more_than_either_grade_prints(
    relation: Adjacency,
) -> None:
    """Tried: sums of samples, replaced records in a sample, draws with replacement; two unlike
    steps, δ from 1e-5 to nearly one."""
    draw = random.Random(11)
    for _ in range(2):
        group, delta = draw.choice([1, 2, 3]), draw.choice([1e-5, 1e-3, 0.1, 0.5, 0.9])
        both = [steps_of(relation, group, draw) for _ in range(2)]
        events = [each for each, _ in both]
        enclosed = guarantee(events, delta=delta, group=group).epsilon
        fast = epsilons_at(events, deltas=[delta], grade=Grade.FAST, group=group).epsilon[0]
        forward = [law for _, law in both]
        backward = [(second, first, noise, times) for first, second, noise, times in forward]
        found = max(least_epsilon(way, delta) for way in (forward, backward))
        assert found <= min(enclosed.upper_float, fast) + 1e-9
        assert enclosed.lower_float <= fast * (1 + 1e-9) + 1e-12


def log_density(law: Law, noise: float, x: Floats) -> Floats:
    parts = [np.log(w) - ((x - c) / noise) ** 2 / 2 for c, w in law.items() if w > 0]
    found: Floats = np.asarray(logsumexp(parts, axis=0) - np.log(noise * np.sqrt(2 * np.pi)))
    return found


def test_a_filter_charges_no_less_than_the_divergence_of_a_pair_on_a_line() -> None:
    """Tried: whole and fractional orders up to 32, every kind of sample, both ways round."""
    draw, x = random.Random(5), np.linspace(-150.0, 150.0, 120_001)
    for _ in range(6):
        q, noise = draw.uniform(0.01, 0.9), 10 ** draw.uniform(-0.1, 0.6)
        order = draw.choice([1.25, 1.5, 2.0, 2.5, 5.0, 17.5, 32.0])
        n = draw.randint(2, 20)
        m = draw.randint(1, n)
        unit, two = moved(1, ADD), moved(2, REPLACE)
        one_of = {float(j): w for j, w in enumerate(binomial(3, q))}
        met = {1.0: q, 0.0: 1 - q}
        cases: list[tuple[Mechanism, Law, Law]] = [
            (mech.PoissonSampled(GaussianStep(unit, noise), q), met, {0.0: 1.0}),
            (
                mech.PoissonSampled(GaussianStep(sum_of_bounded(1, REPLACE), noise), q),
                met,
                {-1.0: q, 0.0: 1 - q},
            ),
            (mech.AccumulatedPoisson(GaussianStep(unit, noise), q, 3), one_of, {0.0: 1.0}),
            (
                mech.SampledWithReplacement(GaussianStep(two, noise), 3, n),
                {2.0 * j: w for j, w in enumerate(binomial(3, 1 / n))},
                {0.0: 1.0},
            ),
        ]
        if m < n:
            batch = mech.SampledWithoutReplacement(GaussianStep(two, noise), m, n)
            cases.append((batch, {2.0: m / n, 0.0: 1 - m / n}, {0.0: 1.0}))
        for mechanism, one, other in cases:
            charged = float(Fraction(renyi_price(mechanism, Fraction(order)).upper, 1 << 512))
            p, p2 = (log_density(law, noise, x) for law in (one, other))
            for first, second in ((p, p2), (p2, p)):
                moment = float(logsumexp(order * first + (1 - order) * second))
                divergence = (moment + np.log(x[1] - x[0])) / (order - 1)
                assert divergence <= charged * (1 + 1e-7) + 1e-9


def step_delta(epsilon: Any, mu: Any, rate: float | None) -> Any:
    """Return δ(ε) of one normal step, on a Poisson sample or not, the larger of both orders."""

    def whole(e: Any) -> Any:
        root = mpmath.sqrt(2)
        tails = [mpmath.erfc((e / mu + side * mu / 2) / root) / 2 for side in (-1, 1)]
        return tails[0] - mpmath.exp(e) * tails[1]

    if rate is None:
        return whole(epsilon)
    q, grown = mpmath.mpf(rate), mpmath.exp(epsilon)
    left = 1 - grown * (1 - q)
    second = left * whole(mpmath.log(grown * q / left)) if left > 0 else mpmath.mpf(0)
    return max(q * whole(mpmath.log(1 + (grown - 1) / q)), second)


def test_one_step_at_the_ends_of_what_can_be_asked_is_priced_from_above() -> None:
    """Tried: noise from 1e-3 to 1e9, rates from 1e-12 to one less 1e-9, δ from 1e-250 to nearly 1,
    ε from 0 to 300; both grades, both questions, sixty digits."""
    draw = random.Random(2)
    with mpmath.workdps(60):
        for _ in range(5):
            noise = 10 ** draw.uniform(-3, 9)
            rate = draw.choice(
                [None, 10 ** draw.uniform(-12, -0.01), 1 - 10 ** draw.uniform(-9, -0.5)]
            )
            step = GaussianStep(moved(1, ADD), noise)
            listed = [event(step if rate is None else mech.PoissonSampled(step, rate))]
            mu = 1 / mpmath.mpf(noise)
            epsilon = draw.choice([0.0, 10 ** draw.uniform(-12, 0), 10 ** draw.uniform(-2, 2.5)])
            delta = draw.choice([10 ** draw.uniform(-250, -0.3), 1 - 10 ** draw.uniform(-6, -0.5)])
            truth = step_delta(mpmath.mpf(epsilon), mu, rate)
            for grade in (Grade.FAST, Grade.ENCLOSED):
                said = deltas_at(listed, epsilons=[epsilon], grade=grade).delta[0]
                assert mpmath.mpf(said) >= truth * (1 - mpmath.mpf(10) ** -15)
                enough = float(epsilons_at(listed, deltas=[delta], grade=grade).epsilon[0])
                if enough < 1e5:
                    left = step_delta(mpmath.mpf(enough), mu, rate)
                    assert left <= mpmath.mpf(delta) * (1 + mpmath.mpf(10) ** -9)


def test_a_shift_of_whole_numbers_spread_over_coordinates_tells_less_than_one() -> None:
    """Tried: one and one, one and two, by discrete Laplace noise of five scales; prices of the sum
    of both moves, at many deltas."""
    for scale in (0.3, 0.7, 1.0, 2.0, 5.0):
        places = np.arange(-160, 161)
        weight = (1 - exp(-1 / scale)) / (1 + exp(-1 / scale))
        by = {s: weight * np.exp(-np.abs(places - s) / scale) for s in (0, 1, 2)}
        for parts in ((1, 1), (1, 2)):
            p = np.outer(by[0], by[0]).ravel()
            q = np.outer(by[parts[0]], by[parts[1]]).ravel()
            step = mech.DiscreteLaplaceStep(moved(sum(parts), ADD, Norm.L1), scale)
            for epsilon in np.linspace(0.0, sum(parts) / scale, 9):
                found = float(np.maximum(p - exp(epsilon) * q, 0.0).sum())
                assert found <= deltas_at([event(step)], epsilons=[epsilon]).delta[0] + 1e-14


def test_the_peer_contradicts_no_few_unlike_steps() -> None:
    """Tried: noise with atoms beside normal noise, what moves by nothing, δ up to a half."""
    pytest.importorskip("dp_accounting")
    listed = [
        [event(mech.RandomisedResponse(0.7, 3), 2), event(GaussianStep(moved(2, REPLACE), 3.0), 9)],
        [event(GaussianStep(moved(0, ADD), 0.1)), event(GaussianStep(moved(1, ADD), 40.0), 3)],
    ]
    for events, delta in product(listed, (1e-6, 0.5)):
        assert not crosscheck(events, delta=delta).is_finding


_ODD = (
    *("0", "-1", "1e-300", "1e30", "nan", "inf", "100", "true", "[]", "[1.0, 2.0]"),
    *('"poisson"', '"none"', '"replace-one"', '"laplace"', '"private"', '"unprotected"'),
)
_KEYS = (
    *("sensitivity", "clip_norm", "averaging", "divisor", "noise_std", "scale", "truth", "rate"),
    *("epsilon", "delta", "rounds", "sampling", "batch", "records", "party", "mechanism"),
)


def test_a_bent_claim_ends_in_a_verdict_or_is_refused_in_a_sentence(tmp_path: Path) -> None:
    """Tried: the gallery's claims, with values and lines of other claims, odd ones among them."""
    gallery = sorted((Path(__file__).parents[1] / "docs" / "gallery").glob("*.toml"))
    draw, judged, refused = random.Random(4), 0, 0
    assert gallery
    for _ in range(40):
        lines = draw.choice(gallery).read_text().splitlines()
        stated = [k for k, line in enumerate(lines) if "=" in line]
        place = draw.choice(stated)
        match draw.randrange(3):
            case 0:
                lines[place] = f"{lines[place].split('=')[0]}= {draw.choice(_ODD)}"
            case 1:
                del lines[place]
            case _:
                lines.append(f"{draw.choice(_KEYS)} = {draw.choice(_ODD)}")
        file = tmp_path / "claim.toml"
        file.write_text("\n".join(lines))
        try:
            found = judge_claim_file(file).finding
        except DpledgerError:
            refused += 1
        else:
            assert "nan" not in f"{found.verdict_text} {found.reason}".lower()
            judged += 1
    assert judged > 2
    assert refused > 5


def test_every_command_takes_json() -> None:
    def commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
        if not isinstance(command, click.Group):
            yield path, command
            return
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from commands(inner, f"{path} {name}")

    found = dict(commands(main, "dpledger"))
    assert len(found) > 30
    for path, command in found.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--json" in options, path


def test_samples_inside_samples_of_a_stated_size_are_refused(tmp_path: Path) -> None:
    """Tried: fixed sizes directly in a Poisson sample, in each other, and more drawn than there."""
    module = {"module_name": "dp_accounting.dp_event"}
    noise = {**module, "class_name": "GaussianDpEvent", "noise_multiplier": 1.0}

    def fixed(records: int, batch: int, inner: dict[str, Any]) -> dict[str, Any]:
        name = "SampledWithoutReplacementDpEvent"
        sizes = {"source_dataset_size": records, "sample_size": batch}
        return {**module, "class_name": name, **sizes, "event": inner}

    poisson = {**module, "class_name": "PoissonSampledDpEvent", "sampling_probability": 0.1}
    documents = [
        {**poisson, "event": fixed(10, 2, noise)},
        fixed(10, 5, fixed(5, 2, noise)),
        fixed(5, 10, noise),
        fixed(10, 5, {**poisson, "event": noise}),
    ]
    assert "dp-event" in KINDS
    for document, relation in product(documents, (ADD, ZERO, REPLACE)):
        file = tmp_path / "events.json"
        file.write_text(json.dumps(document))
        with pytest.raises(DpledgerError):
            guarantee(read("dp-event", file, adjacency=relation), delta=1e-5)
