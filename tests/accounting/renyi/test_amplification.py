"""What groups of records pay on hidden samples, against the mixtures that they really meet."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import comb, exp

import numpy as np
import pytest
from flint import arb
from scipy.stats import laplace, norm

from dpledger.accounting.composition import Account, UnpricedMechanism, composed
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.pld.from_mechanisms import pairs_of
from dpledger.accounting.pld.pairs import DominatingPair, Order
from dpledger.accounting.pld.profiles import delta_of
from dpledger.accounting.renyi.amplification import UNTOLD, in_groups, require_amplification
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
    SampledWithoutReplacement,
    SampledWithReplacement,
    declared,
)
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.sensitivity import (
    added,
    histogram,
    mean_of_bounded,
    scaled,
    sum_of_bounded,
)

ADD, NULL, REPLACE = (
    Adjacency.ADD_REMOVE_ONE,
    Adjacency.ZERO_OUT_ONE,
    Adjacency.REPLACE_ONE,
)
Noise = Callable[[FloatArray], FloatArray]
GRID = np.linspace(-24, 24, 24_001)


def grouped(mechanism: Mechanism, size: int) -> dict[Mechanism, int]:
    """Return what a group pays for one mechanism."""
    event = Event(mechanism, Context((), 1, "sum", Audience.SERVER))
    return dict(in_groups(composed([event]).accounts[0][1], size).others)


def hockey_stick(first: FloatArray, second: FloatArray, epsilon: float) -> float:
    """Return H at exp(epsilon) of densities on the grid, by the rectangle rule."""
    excess = np.maximum(first - exp(epsilon) * second, 0.0)
    return float(excess.sum() * (GRID[1] - GRID[0]))


def mixture(weights: list[float], shifts: list[float], noise: Noise) -> FloatArray:
    parts = [w * noise(GRID - shift) for w, shift in zip(weights, shifts, strict=True)]
    density: FloatArray = np.sum(parts, axis=0)
    return density


def single(mechanisms: dict[Mechanism, int], adjacency: Adjacency, order: Order) -> DominatingPair:
    (pair,) = pairs_of(mechanisms, adjacency, order)
    return pair


def stays_below(first: FloatArray, second: FloatArray, pair: DominatingPair) -> None:
    for epsilon in (-2.0, -0.5, -0.1, 0.0, 0.05, 0.3, 1.0, 2.5):
        bound = float(delta_of(pair, arb(epsilon)).upper())
        assert hockey_stick(first, second, epsilon) <= bound + 1e-6


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("kind", ["Gaussian", "Laplace"])
@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1), (1, 0.5, 0)])
def test_a_group_in_a_poisson_sample_stays_below_its_pair(
    size: int, rate: float, kind: str, signs: tuple[float, ...]
) -> None:
    step: GaussianStep | LaplaceStep
    if kind == "Gaussian":
        step, noise = GaussianStep(declared(1, "clipped", adjacency=ADD), 1.5), norm(scale=1.5).pdf
    else:
        size_of_sum = declared(1, "clipped", adjacency=ADD, norm=Norm.L1)
        step, noise = LaplaceStep(size_of_sum, 1.5), laplace(scale=1.5).pdf
    bound = grouped(PoissonSampled(step, rate), size)
    # every subset of the group may be drawn; its members' messages may point anywhere
    drawn = list(product((0, 1), repeat=size))
    weights = [rate ** sum(d) * (1 - rate) ** (size - sum(d)) for d in drawn]
    shifts = [sum(s for s, there in zip(signs, d, strict=False) if there) for d in drawn]
    there, without = mixture(weights, shifts, noise), noise(GRID)
    stays_below(there, without, single(bound, ADD, Order.MIXTURE_FIRST))
    stays_below(without, there, single(bound, ADD, Order.MIXTURE_SECOND))


@pytest.mark.parametrize(("batch", "records", "size"), [(1, 6, 2), (2, 8, 3)])
def test_a_group_in_a_fixed_batch_stays_below_its_symmetrised_pair(
    batch: int, records: int, size: int
) -> None:
    step = GaussianStep(declared(2, "clipped", adjacency=REPLACE), 2.0)
    bound = grouped(SampledWithoutReplacement(step, batch, records), size)
    # the group's messages turn from 1 to -1, all others' are 0
    weights = [
        comb(size, j) * comb(records - size, batch - j) / comb(records, batch)
        for j in range(min(size, batch) + 1)
    ]
    noise = norm(scale=2.0).pdf
    before = mixture(weights, [float(j) for j in range(len(weights))], noise)
    after = mixture(weights, [-float(j) for j in range(len(weights))], noise)
    pair = single(bound, REPLACE, Order.SYMMETRISED)
    stays_below(before, after, pair)
    stays_below(after, before, pair)


def test_records_that_come_while_others_go_are_not_covered_by_one_order() -> None:
    # one record more and another less: the loss has no upper end, that of the added pair has one
    step = PoissonSampled(GaussianStep(declared(1, "clipped", adjacency=ADD), 0.25), 0.1)
    pair = single(grouped(step, 2), ADD, Order.MIXTURE_SECOND)
    noise = norm(scale=0.25).pdf
    more, less = mixture([0.9, 0.1], [0.0, 1.0], noise), mixture([0.9, 0.1], [0.0, -1.0], noise)
    assert hockey_stick(more, less, 1.0) > float(delta_of(pair, arb(1.0)).upper()) + 0.05


def test_the_rate_of_a_group_is_rounded_up() -> None:
    clipped = declared(1, "clipped", adjacency=ADD, norm=Norm.L1)
    (found,) = grouped(PoissonSampled(LaplaceStep(clipped, 1.0), 0.1), 3)
    assert isinstance(found, PoissonSampled)
    assert Fraction(found.rate) >= 1 - (1 - Fraction(0.1)) ** 3
    assert found.rate == pytest.approx(0.271, rel=1e-15)


@pytest.mark.parametrize("rate", [1e-9, 0.3, 1 - 2.0**-53, 5e-324])
def test_somebody_of_the_largest_group_is_drawn_as_often_as_can_be(rate: float) -> None:
    """It hung: the exact power of a rate has as many digits as the group has records."""
    step = LaplaceStep(declared(1, "clipped", adjacency=ADD, norm=Norm.L1), 1e18)
    found = {}
    for size in (2, 99, 10**18):
        (one,) = grouped(PoissonSampled(step, rate), size)
        found[size] = one.rate if isinstance(one, PoissonSampled) else 1.0
    exact = 1 - (1 - Fraction(rate)) ** 99
    assert exact <= Fraction(found[99]) <= exact * (1 + Fraction(1, 2**51)) + Fraction(5e-324)
    assert rate <= found[2] <= found[99] <= found[10**18] <= 1
    assert (found[10**18] == 1) is (rate > 1e-300)


def test_what_holds_parties_has_no_price_for_a_group() -> None:
    account = Account()
    account.others[Parties((("a", ()),))] = 1
    with pytest.raises(UnpricedMechanism, match="Parties"):
        in_groups(account, 2)


@pytest.mark.parametrize("kind", [SampledWithoutReplacement, SampledWithReplacement])
def test_a_mean_is_over_no_more_records_than_are_drawn(kind) -> None:
    """As the independent checker asks: one of a hundred, of ten drawn, moves a tenth as far."""
    wide, own = (mean_of_bounded(1, count, REPLACE) for count in (100, 10))
    require_amplification(kind(GaussianStep(own, 1.0), 10, 1000))
    for moved in (wide, scaled(wide, 2), added(own, wide)):
        with pytest.raises(UnpricedMechanism, match="a mean over no more than the 10 records"):
            require_amplification(kind(GaussianStep(moved, 1.0), 10, 1000))


@pytest.mark.parametrize(
    ("covered", "other"),
    [
        (sum_of_bounded(1, REPLACE), declared(2, "who was drawn", adjacency=REPLACE)),
        (sum_of_bounded(1, ADD), mean_of_bounded(1, 2, ADD)),
        (declared(2, "by hand", adjacency=NULL), scaled(histogram(NULL, Norm.L1), 1)),
    ],
)
def test_no_sample_is_hidden_by_another_of_the_same_bound(covered, other) -> None:
    """A sum that a theorem covers lent it to what was typed in: of one bound, they were one."""
    if other.norm is Norm.L1:
        covered = declared(covered.root, "by hand", adjacency=NULL, norm=Norm.L1)
    kind = LaplaceStep if other.norm is Norm.L1 else GaussianStep
    both = [
        Event(PoissonSampled(kind(size, 2.0), 0.01), Context((), 1, "sum", Audience.SERVER))
        for size in (covered, other)
    ]
    assert covered == other
    assert both[0] != both[1]
    require_amplification(both[0].mechanism)
    for listed in (both, both[::-1]):
        with pytest.raises(UnpricedMechanism):
            guarantee(listed, delta=1e-5)


def test_what_a_hidden_sample_rests_on_is_said_of_each() -> None:
    """Of two with one bound, the one that is typed in may tell who was drawn."""
    sizes = sum_of_bounded(1, NULL), declared(1, "by hand", adjacency=NULL)
    context = Context((), 1, "sum", Audience.SERVER)
    both = [Event(PoissonSampled(GaussianStep(size, 2.0), 0.01), context) for size in sizes]
    for listed in (both, both[::-1]):
        assert UNTOLD in guarantee(listed, delta=1e-5).assumptions
