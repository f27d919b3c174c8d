"""Laws that a reviewer tried against prices of samples and groups, searches, imports and verdicts.

Prices are held against what truly happens: every batch, or every sample, of a few records on a line
is counted, with the noise integrated over a fine grid; two steps against nested panels of Gauss and
Legendre, whose inner step has a closed form; losses of few values in forty digits.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, roots_legendre
from scipy.stats import binom, hypergeom
from tests.parameters import slow

import dpledger as dp
from dpledger.accounting import MemoryLedger
from dpledger.accounting.guarantees import deltas_at, epsilons_at, guarantee
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.renyi.curves import Selection, SelectionAccountant
from dpledger.accounting.training_runs import TrainingRun
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import (
    MechanismKind,
    OwnPromise,
    PromisedEpsilon,
    PromisedMu,
    PromisedRho,
    StatedRelease,
    judged,
)
from dpledger.audits.crosschecks import crosscheck
from dpledger.cli.app import main
from dpledger.interop.matrix_mechanism import participation_sensitivity
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    declared,
)
from dpledger.mechanisms.sensitivity import sum_of_bounded

Floats = NDArray[np.float64]
ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE
GRADES = (Grade.ENCLOSED, Grade.FAST)

GRID = np.linspace(-60, 60, 120_001)
CELL = float(GRID[1] - GRID[0])
ROUGH = 1e-6
"""Relative: what the grid errs by where one law's density crosses the other's."""


def listed(*mechanisms: Mechanism) -> list[Event]:
    """Return mechanisms as events of a record of any party."""
    return [Event(m, Context((), 1, "tried", Audience.PUBLIC)) for m in mechanisms]


def density(weights: ArrayLike, means: ArrayLike, noise: float) -> Floats:
    """Return the density of a mixture of normal laws, on the grid."""
    found = np.zeros_like(GRID)
    for weight, mean in zip(np.asarray(weights), np.asarray(means), strict=True):
        found += weight * np.exp(-(((GRID - mean) / noise) ** 2) / 2)
    return found / (noise * math.sqrt(2 * math.pi))


def lost(first: Floats, second: Floats, epsilon: float) -> float:
    """Return delta at an epsilon, of two densities in both orders."""
    grown = math.exp(epsilon)
    both = (np.maximum(p - grown * q, 0).sum() for p, q in ((first, second), (second, first)))
    return float(max(both)) * CELL


def lost_twice(first: Floats, second: Floats, epsilon: float) -> float:
    """Return a lower bound on delta of two such steps: what outputs in cells of the grid tell."""
    cells = [law[:-1].reshape(-1, 50).sum(axis=1) * CELL for law in (first, second)]
    p, q = (np.outer(law, law).ravel() for law in cells)
    grown = math.exp(epsilon)
    return float(max(np.maximum(p - grown * q, 0).sum(), np.maximum(q - grown * p, 0).sum()))


def require_no_less(
    mechanism: Mechanism, group: int, first: Floats, second: Floats, epsilons: Sequence[float]
) -> float:
    """Assert that no grade says less than a pair of neighbours loses; return the nearest ratio."""
    nearest = math.inf
    fast, tight, last = Grade.FAST, Grade.ENCLOSED, epsilons[-1]
    cases = [(1, lost, fast, epsilon) for epsilon in epsilons]
    for times, true, grade, epsilon in (
        *cases,
        (1, lost, tight, last),
        (2, lost_twice, fast, last),
    ):
        least, events = true(first, second, epsilon), listed(Repeated(mechanism, times))
        found = deltas_at(events, epsilons=[epsilon], grade=grade, group=group).delta[0]
        assert found >= least * (1 - ROUGH) - 1e-13
        if least > 1e-9:
            nearest = min(nearest, float(found) / least)
    return nearest


@pytest.mark.parametrize(
    ("records", "batch", "group", "noise"),
    [(4, 2, 2, 1.0), *slow((6, 1, 3, 0.6), (8, 3, 2, 2.5), (12, 2, 4, 1.5)), (12, 11, 2, 4.0)],
)
def test_no_group_in_a_batch_tells_more_than_is_counted(
    records: int, batch: int, group: int, noise: float
) -> None:
    """Tried: others at both ends and in the middle of the range that a replaced record moves over,
    the group at its ends, batches without replacement counted by the hypergeometric law."""
    moved = GaussianStep(declared(2, "the range", adjacency=REPLACE), noise)
    mechanism = SampledWithoutReplacement(moved, batch, records)
    drawn = np.arange(min(batch, group) + 1)
    chances = hypergeom.pmf(drawn, records, group, batch)
    for others, (here, there) in ((-1, (1, -1)), (1, (1, -1)), (0, (0, 1))):
        first, second = (density(chances, drawn * (x - others), noise) for x in (here, there))
        require_no_less(mechanism, group, first, second, (0.1, 1.0))


def test_one_record_of_a_batch_loses_just_what_is_said() -> None:
    """Tried: a replaced record of a batch against others at the far end, and likewise with
    replacement, where the number of places that it fills is told in the theorem."""
    noise, records, batch = 1.5, 12, 3
    moved = GaussianStep(declared(2, "the range", adjacency=REPLACE), noise)
    share = batch / records
    first = density([1 - share, share], [0, 2], noise)
    second = density([1.0], [0], noise)
    without = SampledWithoutReplacement(moved, batch, records)
    assert require_no_less(without, 1, first, second, (0.5,)) < 1 + 1e-5
    places = np.arange(batch + 1)
    first = density(binom.pmf(places, batch, 1 / records), places * 2, noise)
    again = SampledWithReplacement(moved, batch, records)
    assert require_no_less(again, 1, first, second, (0.5, 2.0)) < 1.2


@pytest.mark.parametrize(
    ("relation", "rate", "group"), [*slow((ADD, 0.1, 2)), (ZERO, 0.3, 3), (ADD, 0.95, 2)]
)
def test_no_group_in_a_poisson_sample_tells_more_than_is_said(
    relation: Adjacency, rate: float, group: int
) -> None:
    """Tried: records that are all there or all not, under two relations, and records that are
    replaced by their opposites, of which as many count as are drawn."""
    noise, drawn = 1.2, np.arange(group + 1)
    chances = binom.pmf(drawn, group, rate)
    here, there = density(chances, drawn, noise), density(chances, -drawn, noise)
    nothing = density([1.0], [0], noise)
    step = GaussianStep(declared(1, "a record", adjacency=relation), noise)
    assert require_no_less(PoissonSampled(step, rate), group, here, nothing, (0.2, 1.5)) < 1.01
    replaced = PoissonSampled(GaussianStep(sum_of_bounded(1, REPLACE), noise), rate)
    require_no_less(replaced, group, here, there, (0.2, 1.5))


@pytest.mark.parametrize("relation", [ADD, ZERO, REPLACE])
@pytest.mark.parametrize("sign", [1, -1])
def test_no_mixture_of_what_stays_and_what_is_drawn_tells_more(
    relation: Adjacency, sign: int
) -> None:
    """Tried: constant parts that go with the drawn one, and against it, for one record and two."""
    noise, rate, constant = 1.5, 0.3, 0.7
    replaced = relation is REPLACE
    size = sum_of_bounded(1, REPLACE) if replaced else declared(1, "a record", adjacency=relation)
    always = declared(constant, "what stays", adjacency=relation)
    mechanism = GaussianMixtureStep(always, size, rate, noise)
    for group in (1, 2):
        drawn = np.arange(group + 1)
        chances = binom.pmf(drawn, group, rate)
        stays = group * constant / (2 if replaced else 1)
        first = density(chances, stays + sign * drawn, noise)
        second = density(chances, -stays - sign * drawn, noise) if replaced else None
        nothing = density([1.0], [0], noise)
        require_no_less(mechanism, group, first, nothing if second is None else second, (0.3, 2.0))


NODES, WEIGHTS = roots_legendre(20)


class SampledStep:
    """A Gaussian step on a Poisson sample, in one order: its loss grows along the line."""

    def __init__(self, rate: float, noise: float, drawn_first: bool) -> None:
        self.rate, self.mu, self.drawn_first = rate, 1 / noise, drawn_first

    def losses(self) -> tuple[Floats, Floats]:
        """Return losses at the nodes of many panels, and the probability that each stands for."""
        ends = np.linspace(-9.6, 9.6 + (self.mu if self.drawn_first else 0.0), 1201)
        low, high = ends[:-1, None], ends[1:, None]
        x = ((low + high) / 2 + (high - low) / 2 * NODES).ravel()
        shifted = self.mu * x if self.drawn_first else -self.mu * x
        loss = np.logaddexp(np.log1p(-self.rate), np.log(self.rate) + shifted - self.mu**2 / 2)
        plain = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
        law = plain * np.exp(loss) if self.drawn_first else plain
        return (loss if self.drawn_first else -loss), ((high - low) / 2 * WEIGHTS).ravel() * law

    def delta(self, epsilon: Floats) -> Floats:
        """Return the closed form of one step, at epsilons of either sign."""
        sign = 1 if self.drawn_first else -1
        odds = (np.expm1(sign * epsilon) + self.rate) / self.rate
        with np.errstate(divide="ignore", invalid="ignore"):
            at = sign * (np.log(odds) + self.mu**2 / 2) / self.mu
        at = np.where(odds <= 0, -sign * math.inf, at)
        drawn = (1 - self.rate) * ndtr(-at) + self.rate * ndtr(sign * self.mu - at)
        pair = (drawn, ndtr(-at)) if self.drawn_first else (ndtr(-at), drawn)
        return np.maximum(pair[0] - np.exp(epsilon) * pair[1], 0)


@pytest.mark.parametrize(
    ("steps", "epsilon"),
    [
        (((0.3, 0.7), (0.3, 0.7)), 0.5),
        *slow((((0.4875, 0.728), (7.6e-6, 1.01)), 0.1168), (((0.2, 3.0), (0.001, 0.5)), 0.05)),
        (((0.9, 1.5), (0.02, 0.8)), 2.0),
        (((0.01, 1.1), (0.01, 1.1)), 0.05),
        (((0.6, 2.0), (0.5, 8.0)), 0.01),
    ],
)
def test_two_steps_cost_what_panels_inside_panels_say(
    steps: tuple[tuple[float, float], ...], epsilon: float
) -> None:
    """Tried: equal rates and rates five powers of ten apart, both orders, both ends of the
    enclosure, and epsilon at the delta that was found."""
    events = [
        event
        for rate, noise in steps
        for event in TrainingRun.of(
            sampling="poisson", adjacency="add-remove-one", rate=rate, steps=1
        ).events(noise)
    ]
    found = list[float]()
    for drawn_first in (True, False):
        inner, outer = (SampledStep(*step, drawn_first) for step in steps)
        losses, weights = outer.losses()
        found.append(float((weights * inner.delta(epsilon - losses)).sum()))
    true = max(found)
    for grade in GRADES:
        assert deltas_at(events, epsilons=[epsilon], grade=grade).delta[0] >= true * (1 - 1e-8)
        assert epsilons_at(events, deltas=[true], grade=grade).epsilon[0] >= epsilon * (1 - 1e-7)
    assert guarantee(events, delta=true).epsilon.lower_float <= epsilon * (1 + 1e-7)
    assert deltas_at(events, epsilons=[epsilon]).delta[0] <= true * (1 + 1e-6)


@pytest.mark.parametrize(
    ("scales", "noise"),
    [(((2.51, 23),), None), (((0.9303719975901904, 50),), 4.2), (((4.6, 2), (0.7, 20)), None)],
)
def test_whole_losses_add_up_as_in_forty_digits(
    scales: tuple[tuple[float, int], ...], noise: float | None
) -> None:
    """Tried: counts under discrete Laplace noise, alone, of two scales, and beside a Gaussian."""
    count = declared(1, "a count", adjacency=ADD, norm=Norm.L1)
    steps: list[Mechanism] = [Repeated(DiscreteLaplaceStep(count, scale), n) for scale, n in scales]
    if noise is not None:
        steps.append(GaussianStep(declared(1, "a sum", adjacency=ADD), noise))
    epsilon = guarantee(listed(*steps), delta=1e-5).epsilon
    with mpmath.workdps(40):
        law = {mpmath.mpf(0): mpmath.mpf(1)}
        for scale, n in scales:
            loss, after = 1 / mpmath.mpf(scale), dict[Any, Any]()
            up = 1 / (1 + mpmath.exp(-loss))
            for (so_far, chance), k in itertools.product(law.items(), range(n + 1)):
                place = so_far + loss * (2 * k - n)
                more = chance * mpmath.binomial(n, k) * up**k * (1 - up) ** (n - k)
                after[place] = after.get(place, 0) + more
            law = after

        def beyond(gap: Any) -> Any:
            if noise is None:
                return max(1 - mpmath.exp(gap), 0)
            mu = 1 / mpmath.mpf(noise)
            far = mpmath.exp(gap) * mpmath.ncdf(-gap / mu - mu / 2)
            return mpmath.ncdf(-gap / mu + mu / 2) - far

        low, high = (
            sum(chance * beyond(end - place) for place, chance in law.items())
            for end in (mpmath.mpf(epsilon.upper_float), mpmath.mpf(epsilon.lower_float))
        )
        assert low <= mpmath.mpf(1e-5) <= high * (1 + mpmath.mpf("1e-12"))


def cut_sums(values: Sequence[int], rate: float, largest: int) -> Counter[int]:
    """Return how likely each sum of a Poisson sample is that is cut to a largest size."""
    found = Counter[int]()
    for drawn in itertools.product((False, True), repeat=len(values)):
        chance = math.prod(rate if each else 1 - rate for each in drawn)
        kept = [value for value, each in zip(values, drawn, strict=True) if each]
        parts = [*itertools.combinations(kept, largest)] if len(kept) > largest else [tuple(kept)]
        for part in parts:
            found[sum(part)] += chance / len(parts)  # type: ignore[assignment]
    return found


@pytest.mark.parametrize("relation", ["add-remove-one", "zero-out-one", "replace-one"])
def test_no_cut_sample_tells_more_than_is_printed(relation: str) -> None:
    """Tried: all samples of up to eight records, cut to all sizes, often and rarely, of one record
    and of two that differ together, at deltas that pay for the cuts and that do not."""
    draw, tried, removed = random.Random(relation), 0, relation == "add-remove-one"
    for _ in range(12 if removed else 40):
        records, noise = draw.randint(3, 6), draw.choice([0.7, 1.5, 3.0])
        unit, delta = draw.choice([1, 1, 2]), 10 ** -draw.uniform(0.5, 5 if removed else 2)
        rate, largest = draw.uniform(0.05, 0.95 if removed else 0.4), draw.randint(2, records)
        others = [draw.choice([-1, 0, 1]) for _ in range(records)]
        if removed:
            without, with_it = others, [*others, *[1] * unit]
        else:
            end = 0 if relation == "zero-out-one" else -1
            without, with_it = ([x] * unit + others[unit:] for x in (end, 1))
        stated: dict[str, Any] = {"sampling": "truncated-poisson", "adjacency": relation}
        try:
            cost = dp.epsilon(
                noise_multiplier=noise,
                delta=delta,
                records=records,
                rate=rate,
                steps=1,
                largest_batch=largest,
                records_per_unit=unit,
                **stated,
            )
        except ValueError:
            assert relation != "add-remove-one"
            continue
        laws = (cut_sums(side, rate, largest) for side in (without, with_it))
        first, second = (density([*law.values()], [*law], noise) for law in laws)
        assert lost(first, second, cost.epsilon) <= delta * (1 + ROUGH) + 1e-12
        tried += 1
    assert tried >= 8


def stopping(mean: float, shape: float) -> Any:
    """Return the stopping probability of a truncated negative binomial number with this mean."""
    low, high = mpmath.mpf("1e-9"), 1 - mpmath.mpf("1e-9")
    for _ in range(100):
        gamma = (low + high) / 2
        runs = (
            (1 / gamma - 1) / -mpmath.log(gamma)
            if shape == 0
            else shape * (1 - gamma) / (gamma * (1 - gamma**shape))
        )
        low, high = (gamma, high) if runs > mean else (low, gamma)
    return gamma


def any_good(chance: float, gamma: Any, shape: float) -> float:
    """Return how likely one of so many runs is good, each with a chance: 1 - E[(1 - chance)^K]."""
    x = 1 - (1 - gamma) * (1 - chance)
    if shape == 0:
        return float(1 - mpmath.log(x) / mpmath.log(gamma))
    return float(1 - (x**-shape - 1) / (gamma**-shape - 1))


@pytest.mark.parametrize("shape", [0, 0.5, 1, 3])
def test_the_best_of_several_runs_costs_no_less_than_it_tells(shape: float) -> None:
    """Tried: the better of many answers by randomised response, whose law is exact by the number's
    generating function, at means from 1.5 to 100."""
    for mean, loss in itertools.product((1.5, 10, 100), (0.1, 1.0, 2.0)):
        truth = 1 / (1 + math.exp(-loss))
        with mpmath.workdps(30):
            gamma = stopping(mean, shape)
            p, q = (any_good(chance, gamma, shape) for chance in (truth, 1 - truth))
        accountant = SelectionAccountant(Selection(mean, shape))
        accountant.extend(listed(RandomisedResponse(truth)))
        for epsilon in (0.05, loss, 3 * loss):
            grown, stated = math.exp(epsilon), accountant.delta(epsilon).upper_float
            events = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
            tells = max(here - grown * there for here, there in events)
            assert tells <= stated * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("separation", [1, 2, 3])
@pytest.mark.parametrize("most", [None, 1, 2])
def test_no_pattern_of_steps_moves_a_matrix_further(separation: int, most: int | None) -> None:
    """Tried: all patterns of small matrices, of both signs, with gradients along one line turned
    either way, which attains the bound where nothing cancels."""
    rng = np.random.default_rng(separation)
    for steps in (1, 4, 6):
        matrix = rng.normal(size=(steps, steps)) * (1 if most else 1e-30)
        matrix = np.tril(np.abs(matrix)) if steps == 6 else matrix
        bound = participation_sensitivity(matrix, separation=separation, participations=most)
        reached = 0.0
        for taken in itertools.product((-1, 0, 1), repeat=steps):
            places = np.nonzero(np.array(taken))[0]
            if (np.diff(places) >= separation).all() and places.size <= (most or steps):
                reached = max(reached, float(np.linalg.norm(matrix @ np.array(taken, float))))
        assert reached <= bound <= reached * 1.5


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("sampling rate", {"rate": 5e-324}),
        ("number of records", {"batch": 7, "records": 10**12}),
        ("epochs", {"batch": 7, "records": 50, "epochs": 1e-9}),
    ],
)
def test_prices_at_the_ends_of_what_can_be_stated_keep_their_order(
    where: str, names: dict[str, Any]
) -> None:
    """Tried: rates below what doubles hold, a trillion records, a billionth of an epoch: what is
    answered is no less than at a smaller delta's, larger noise's or fewer steps' end."""
    stated = {"sampling": "poisson", "adjacency": "add-remove-one", "steps": 3, **names}
    if "epochs" in names:
        del stated["steps"]

    def price(noise: float, delta: float) -> float:
        return dp.epsilon(noise_multiplier=noise, delta=delta, **stated).epsilon

    if where == "sampling rate":
        with pytest.raises(ValueError, match="rate"):
            price(1.0, 1e-5)
        return
    for noise, delta in ((0.5, 1e-6), (2.0, 1e-9)):
        here = price(noise, delta)
        assert 0 <= price(2 * noise, delta) <= here <= price(noise, delta / 10) < math.inf


SMALL = "a record"


def some_step(relation: Adjacency, draw: random.Random) -> Mechanism:
    """Return a step of a kind that has a price under a relation, none of them a known quarrel of
    other libraries."""
    one = declared(1, SMALL, adjacency=relation)
    in_l1 = declared(1, SMALL, adjacency=relation, norm=Norm.L1)
    noise = draw.uniform(1.0, 5.0)
    kinds: list[Callable[[], Mechanism]] = [
        lambda: GaussianStep(one, noise),
        lambda: LaplaceStep(in_l1, noise),
        lambda: PureStep(in_l1, noise),
    ]
    if relation is REPLACE:
        kinds += [
            lambda: RandomisedResponse(draw.uniform(0.3, 0.9), draw.choice([2, 4])),
            lambda: SampledWithoutReplacement(GaussianStep(one, noise), 10, 1000),
        ]
    else:
        kinds.append(lambda: PoissonSampled(GaussianStep(one, noise), draw.uniform(0.01, 0.5)))
    return draw.choice(kinds)()


@pytest.mark.parametrize("relation", [*slow(ADD, ZERO), REPLACE])
def test_a_ledgers_promise_is_lost_just_below_its_price(relation: Adjacency) -> None:
    """Tried: steps of several kinds in a ledger that kept its plan, promises of epsilon and rho a
    thousandth above and below what they cost."""
    draw, seen = random.Random(relation.value), Counter[str]()
    for _ in range(2):
        events, ledger = listed(some_step(relation, draw)), MemoryLedger()
        with ledger.run("kept", configuration_hash="0" * 64, plan=events) as run:
            for event in events:
                run.step(event)
        found = guarantee(events, delta=1e-5)

        def verdict(promise: OwnPromise, judged_by: MemoryLedger = ledger) -> str:
            return judge_ledger(judged_by, promise).finding.verdict.value

        seen[verdict(PromisedEpsilon(found.epsilon.upper_float * 1.001, 1e-5))] += 1
        if found.epsilon.lower_float > 0:
            below = verdict(PromisedEpsilon(found.epsilon.lower_float * 0.999, 1e-5))
            assert below in ("fails", "not implied by what is stated")
        if 0 < found.rho.upper_float < math.inf:
            assert verdict(PromisedRho(found.rho.upper_float * 1.001)) == "holds"
    assert seen == {"holds": 2}


def test_an_answers_price_refutes_epsilon_and_no_other_unit() -> None:
    """Tried: randomised response, which some data make lose all of its epsilon, against promises
    of rho and mu between what it truly costs and the bound that follows from epsilon."""
    answer = StatedRelease(MechanismKind.RANDOMISED_RESPONSE, noise=0.75, rounds=1)
    with mpmath.workdps(30):
        true = max(
            mpmath.log(
                mpmath.mpf(0.75) ** a * mpmath.mpf(0.25) ** (1 - a)
                + mpmath.mpf(0.25) ** a * mpmath.mpf(0.75) ** (1 - a)
            )
            / (a * (a - 1))
            for a in (1 + mpmath.mpf(k) / 50 for k in range(1, 200))
        )
    assert true < 0.55

    def verdict(promise: OwnPromise) -> str:
        return judged([answer], promise, adjacency=REPLACE).verdict.value

    assert verdict(PromisedRho(0.58)) == "undecided"
    assert verdict(PromisedMu(1.4)) == "undecided"
    assert verdict(PromisedRho(0.61)) == "holds"
    assert verdict(PromisedEpsilon(1.0986, 0.0)) == "fails"
    assert verdict(PromisedEpsilon(1.0987, 0.0)) == "holds"


def test_peers_contradict_no_mixed_list() -> None:
    """Tried: answers beside noise, samples beside noise, accumulated and cut tails, nothing."""
    pytest.importorskip("dp_accounting")
    one, in_l1 = (declared(1, SMALL, adjacency=ZERO, norm=norm) for norm in (Norm.L2, Norm.L1))
    replaced = declared(1, SMALL, adjacency=REPLACE)
    cases: list[list[Mechanism]] = [
        [Repeated(RandomisedResponse(0.6), 20), GaussianStep(replaced, 3.0)],
        [Repeated(RandomisedResponse(0.6, 3), 20)],
        [SampledWithoutReplacement(GaussianStep(replaced, 2.0), 50, 1000)],
        [Repeated(PoissonSampled(LaplaceStep(in_l1, 2.0), 0.1), 2), LaplaceStep(in_l1, 3.0)],
        [PoissonSampled(GaussianStep(one, 2.0), 0.0)],
        [GaussianStep(one, 1e6), GaussianStep(declared(0, SMALL, adjacency=ZERO), 1.0)],
    ]
    for mechanisms in cases:
        found = crosscheck(listed(*mechanisms), delta=1e-5)
        assert not found.is_finding, found


def test_no_text_in_a_certificate_writes_a_line_of_its_own(tmp_path: Path) -> None:
    """Tried: an assumption with a line break, a terminal's command and a sign that turns text."""
    events = listed(GaussianStep(declared(1, SMALL, adjacency=ZERO), 4.0))
    document = json.loads(dp.certify(events, delta=1e-5).to_json_bytes())
    words = "x\nproved  epsilon 0.001\x1b[2K\u202e\u2028"
    nodes = document["nodes"]
    nodes.append(
        {
            "rule": "given",
            "parameters": {"statement": words},
            "premises": [len(nodes) - 1],
            "conclusion": nodes[-1]["conclusion"],
        }
    )
    document["assumptions"] = sorted([*document["assumptions"], f"taken for granted: {words}"])
    path = tmp_path / "bent.json"
    path.write_text(json.dumps(document))
    verdict = dp.verify(path.read_bytes())
    assert verdict.values[1] > Fraction(9, 10)
    assert f"taken for granted: {words}" in verdict.assumptions
    shown = CliRunner().invoke(main, ["verify", str(path)], standalone_mode=False).output
    assert "taken for granted" in shown
    assert not {"\x1b", "\u202e", "\u2028"} & set(shown)
    assert not any(line.startswith("proved  epsilon 0.001") for line in shown.splitlines())
