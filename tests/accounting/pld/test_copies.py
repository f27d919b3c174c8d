"""Laws of batches drawn with replacement.

1. The profile lies above that of every pair of neighbouring data sets, by enumeration of batches.
2. It is the least over all ways to share out the outputs of batches without the record.
3. It lies above the mixture of shifts that is met, in both orders, and is one for both of them.
4. One draw is a fixed batch of one; of one record every draw is that record.
5. Steps compose: what is promised of two bounds their product.
6. A test on rounded outputs is nearly the best on the mixture that is met, and bounds ε from below.
7. Nothing is said under relations without a rule, or of a record that is drawn too often.
"""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp, sqrt

import numpy as np
import pytest
from flint import arb
from scipy.stats import binom, norm
from tests.parameters import slow

from dpledger.accounting.accountants import RdpAccountant
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.copies_floor import copies_floor
from dpledger.accounting.pld.from_mechanisms import NoDominatingPair, pairs_of
from dpledger.accounting.pld.pairs import CopiesDrawn, GaussianShift, Order, Sampled
from dpledger.accounting.pld.profiles import delta_of
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    Repeated,
    SampledWithReplacement,
    declared,
)

REPLACE = Adjacency.REPLACE_ONE
CONTEXT = Context((), 1, "sum", Audience.PUBLIC)
OUTPUTS = np.linspace(-30, 30, 6001)
LOSSES = (-1.5, -0.2, 0.0, 0.01, 0.4, 1.0, 2.5)
rng = np.random.default_rng(1)


def step(batch: int, records: int, noise: float, moves: float = 2.0) -> SampledWithReplacement:
    sensitivity = declared(moves, "by hand", adjacency=REPLACE)
    return SampledWithReplacement(GaussianStep(sensitivity, noise), batch, records)


def profile(pair: CopiesDrawn, loss: float) -> float:
    with precision(160):
        return float(delta_of(pair, arb(loss)).mid())


def of_copies(draws: int, records: int, mu: float) -> CopiesDrawn:
    return CopiesDrawn(Fraction(mu) ** 2, draws, records)


class Mixture:
    """Normal laws of one deviation around `means`, each with its chance."""

    def __init__(self, means, chances, noise: float = 1.0) -> None:
        laws = list(zip(means, chances, strict=True))
        self.density = sum(p * norm.pdf(OUTPUTS, mean, noise) for mean, p in laws)
        self.cells = sum(p * np.diff(norm.cdf(OUTPUTS, mean, noise)) for mean, p in laws)


def sum_of_batch(values: tuple[float, ...], draws: int, noise: float) -> Mixture:
    """The noisy sum of a batch with replacement: all batches, each equally likely."""
    sums = Counter(sum(batch) for batch in product(values, repeat=draws))
    return Mixture(sums, [n / sums.total() for n in sums.values()], noise)


def above(first: Mixture, second: Mixture, loss: float) -> float:
    """The hockey-stick divergence from below: exact on cells at whose left end the test says yes.

    No set of outputs tells the two apart better than the best, so that no grid is too coarse.
    """
    told = (first.density > exp(loss) * second.density)[:-1]
    return float(np.sum((first.cells - exp(loss) * second.cells)[told]))


OTHERS = [(-1.0, -1.0), (1.0, -1.0), (0.0, 0.3), *map(tuple, rng.uniform(-1, 1, (3, 2)).tolist())]


@pytest.mark.parametrize("draws", [2, 3])
@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_no_neighbours_lose_more_than_the_profile_says(draws, noise):
    pair = of_copies(draws, 3, 2 / noise)
    bounds = [profile(pair, loss) for loss in LOSSES]
    for others in OTHERS:
        for one, two in ((1.0, -1.0), (-1.0, 1.0), (0.2, -0.9)):
            p = sum_of_batch((*others, one), draws, noise)
            q = sum_of_batch((*others, two), draws, noise)
            for loss, bound in zip(LOSSES, bounds, strict=True):
                assert above(p, q, loss) <= bound + 1e-13


def shift_profile(mu: float, gamma: np.ndarray) -> np.ndarray:
    middle = np.log(gamma) / mu
    return norm.sf(middle - mu / 2) - gamma * norm.sf(middle + mu / 2)


@pytest.mark.parametrize("loss", [0.0, 0.05, 0.7, 3.0])
def test_the_profile_is_the_least_over_all_shares_of_two_copies(loss):
    records, mu = 5, 1.3
    none, once, twice = binom.pmf(range(3), 2, 1 / records)
    shared = (exp(loss) - 1) * none
    first = np.linspace(0, shared, 20_001)
    costs = once * shift_profile(mu, exp(loss) + first / once)
    costs += twice * shift_profile(2 * mu, exp(loss) + (shared - first) / twice)
    assert profile(of_copies(2, records, mu), loss) == pytest.approx(np.min(costs), rel=1e-6)


@pytest.mark.parametrize(("draws", "records", "mu"), [(3, 4, 1.0), (40, 900, 1.7), (16, 2, 0.2)])
def test_the_profile_lies_above_the_mixture_that_is_met_and_is_one_for_both_orders(
    draws, records, mu
):
    pair = of_copies(draws, records, mu)
    chances = binom.pmf(range(draws + 1), draws, 1 / records)
    mixed = Mixture([k * mu for k in range(draws + 1)], chances)
    alone = Mixture([0], [1])
    for loss in LOSSES:
        bound = profile(pair, loss)
        assert max(above(mixed, alone, loss), above(alone, mixed, loss)) <= bound + 1e-13
        turned = exp(loss) * profile(pair, -loss) + 1 - exp(loss)
        assert bound == pytest.approx(turned, rel=1e-12, abs=1e-14)


def test_one_draw_is_a_fixed_batch_of_one_and_one_record_is_in_every_place():
    (one,) = pairs_of({step(1, 50, 2.0): 1}, REPLACE, Order.SYMMETRISED)
    assert one == Sampled(GaussianShift(Fraction(1)), Fraction(1, 50), Order.SYMMETRISED)
    alone = guarantee([Event(step(3, 1, 6.0), CONTEXT)], delta=1e-5)
    gaussian = GaussianStep(declared(1, "by hand", adjacency=REPLACE), 1.0)
    same = guarantee([Event(gaussian, CONTEXT)], delta=1e-5)
    assert alone.epsilon.upper == same.epsilon.upper


def test_two_steps_cost_no_less_than_the_product_of_two_mixtures():
    draws, records, noise, delta = 3, 4, 2.0, 1e-3
    found = guarantee([Event(Repeated(step(draws, records, noise), 2), CONTEXT)], delta=delta)
    outputs = np.linspace(-9, 13, 1101)
    chances = binom.pmf(range(draws + 1), draws, 1 / records)
    mixed = sum(p * norm.pdf(outputs, k * 2 / noise, 1) for k, p in enumerate(chances))
    alone = norm.pdf(outputs, 0, 1)
    p, q = np.outer(mixed, mixed), np.outer(alone, alone)

    def lost(epsilon: float) -> float:
        return float(np.sum(np.maximum(p - exp(epsilon) * q, 0))) * (outputs[1] - outputs[0]) ** 2

    assert lost(found.epsilon.upper_float) <= delta
    # and not by much: the lower end counts one copy alone
    assert lost(found.epsilon.upper_float * 0.8) > delta
    assert lost(float(found.epsilon.lower)) >= delta


def test_two_records_of_a_person_cost_more_than_one_and_no_more_than_half_as_many_records():
    events = [Event(Repeated(step(4, 100, 6.0), 3), CONTEXT)]
    single, double = (guarantee(events, delta=1e-5, group=k).epsilon.upper for k in (1, 2))
    half = guarantee([Event(Repeated(step(4, 50, 6.0), 3), CONTEXT)], delta=1e-5).epsilon.upper
    assert single < double == half


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE])
def test_without_a_rule_nothing_is_said(adjacency):
    inner = GaussianStep(declared(1, "by hand", adjacency=adjacency), 1.0)
    with pytest.raises(NoDominatingPair, match="under replace-one"):
        pairs_of({SampledWithReplacement(inner, 2, 9): 1}, adjacency, Order.MIXTURE_FIRST)


def test_a_record_that_is_drawn_very_often_is_refused():
    with pytest.raises(NoDominatingPair, match="8 draws a record"):
        pairs_of({step(19, 2, 1.0): 1}, REPLACE, Order.SYMMETRISED)
    with pytest.raises(InvalidParameter, match="draws=19"):
        of_copies(19, 2, 1.0)


def test_chances_of_huge_batches_add_up():
    pair = of_copies(10**9, 10**9, 1e-3)
    assert float(pair.rate) == pytest.approx(1 - exp(-1), rel=1e-8)
    # for a short shift the total variation is mu / sqrt(2 pi) times the mean number, one
    assert profile(pair, 0.0) == pytest.approx(1e-3 / sqrt(2 * np.pi), rel=1e-3)


def test_renyi_divergences_bound_it_by_all_copies_at_once():
    events = [Event(Repeated(step(3, 40, 30.0), 5), CONTEXT)]
    loose = RdpAccountant()
    loose.extend(events)
    tight = guarantee(events, delta=1e-5).epsilon.upper
    assert tight < loose.epsilon(1e-5).upper < 1


def delta_of_mixtures(pair: CopiesDrawn, times: int, epsilon: float) -> float:
    """δ(ε) of one or two batches where all other records are alike, from below, on cells."""
    mu, copies = sqrt(pair.mu_squared), np.arange(40)
    edges = np.arange(-8.0, 35.0, 0.0005 if times == 1 else 0.02)
    chances = binom.pmf(copies, pair.draws, 1 / pair.records)
    p = chances @ -np.diff(norm.sf(edges - copies[:, None] * mu), axis=1)
    q = -np.diff(norm.sf(edges))
    if times == 2:
        p, q = np.outer(p, p).ravel(), np.outer(q, q).ravel()
    return float(np.sum(np.maximum(p - exp(epsilon) * q, 0.0)))


@pytest.mark.parametrize(("draws", "records"), [(639, 1000), (50, 1000), (400, 100)])
@pytest.mark.parametrize(
    ("noise", "times", "delta"),
    [
        *((0.8, 1, 2.4e-3), (2.0, 2, 1e-6)),
        *slow((0.8, 1, 1e-6), (0.8, 2, 2.4e-3), (0.8, 2, 1e-6)),
        *slow((2.0, 1, 2.4e-3), (2.0, 1, 1e-6), (2.0, 2, 2.4e-3)),
    ],
)
def test_rounded_outputs_tell_nearly_as_much_as_the_mixture_that_is_met(
    draws: int, records: int, noise: float, times: int, delta: float
) -> None:
    pair = of_copies(draws, records, 1 / noise)
    floor = float(copies_floor(pair, times, delta))
    assert floor > 0
    # cells of two outputs, not so fine, tell less than the outputs by some parts in 10^5
    assert delta_of_mixtures(pair, times, floor * (1 - 1e-4 * (times - 1))) >= delta
    assert delta_of_mixtures(pair, times, 1.01 * floor) < delta


@pytest.mark.parametrize("times", [1, *slow(3)])
def test_batches_that_hold_a_record_more_than_once_are_enclosed_narrowly(times: int) -> None:
    pair = of_copies(639, 1000, 0.5)
    found = PrivacyProfile.of_pairs({pair: times}).epsilon(2.4e-3)
    assert found.relative_width < 0.05
