"""Log moments lie above the truth, and hardly above it where the formula is exact."""

from collections.abc import Callable
from fractions import Fraction
from math import comb, inf

import mpmath
import pytest

from dpledger.accounting.renyi.rdp import LARGEST_WHOLE_ORDER, log_moment
from dpledger.mechanisms import (
    Adjacency,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    Sensitivity,
    declared,
)
from dpledger.mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    Mechanism,
    RandomisedResponse,
)
from dpledger.mechanisms.sensitivity import sum_of_bounded

ADD, REPLACE, ZERO = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE
Real = mpmath.mpf
Density = Callable[[Real], Real]

ORDERS = [Fraction(5, 4), Fraction(2), Fraction(7, 2), Fraction(8)]


def l2(size: float, adjacency: Adjacency = ADD) -> Sensitivity:
    return declared(size, "test", adjacency=adjacency)


def drawn(size: float, adjacency: Adjacency = ADD) -> Sensitivity:
    """A sum over drawn records of vectors of bounded norm, of this sensitivity."""
    one = 2 if adjacency is REPLACE else 1
    return sum_of_bounded(Fraction(size) / one, adjacency)


def l1(size: float, adjacency: Adjacency = ADD) -> Sensitivity:
    return declared(size, "test", adjacency=adjacency, norm=Norm.L1)


def normal(mean: float, std: float = 1.0) -> Density:
    return lambda x: mpmath.npdf(x, mean, std)


def laplace(mean: float) -> Density:
    return lambda x: mpmath.exp(-abs(x - mean)) / 2


def mixed(rate: float, hit: Density, missed: Density) -> Density:
    return lambda x: (1 - rate) * missed(x) + rate * hit(x)


def moment(first: Density, second: Density, order: Fraction, points: list[float]) -> Real:
    """log ∫ first^α second^(1-α), by mpmath's own quadrature."""
    with mpmath.workdps(18):
        alpha = mpmath.mpf(order.numerator) / order.denominator
        integral = mpmath.quad(lambda x: first(x) ** alpha * second(x) ** (1 - alpha), points)
        return mpmath.log(integral)


def symmetrised(
    base: Density, moved: Density, rate: float, order: Fraction, points: list[float]
) -> Real:
    """log moment of the symmetrised pair; `points` starts where the two densities cross."""
    with mpmath.workdps(20):
        alpha = mpmath.mpf(order.numerator) / order.denominator
        mixture = mixed(rate, moved, base)

        def excess(x: Real) -> Real:
            q, r = base(x), mixture(x) / base(x)
            return q * (r**alpha - r + r ** (1 - alpha) - 1)

        return mpmath.log1p(mpmath.quad(excess, points))


def close(bound: object, truth: Real, *, excess: float) -> bool:
    found = mpmath.mpf(str(float(bound)))  # type: ignore[arg-type]
    return bool(truth * (1 - 1e-12) <= found <= truth * (1 + excess))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("rate", "noise_std"), [(0.01, 1.0), (0.3, 0.7), (0.6, 4.0)])
def test_poisson_gaussian_is_exact_and_covers_both_directions(
    order: Fraction, rate: float, noise_std: float
) -> None:
    bound = log_moment(PoissonSampled(GaussianStep(l2(1), noise_std), rate), order)
    base, points = normal(0, noise_std), [-60.0, -10.0, 0.0, 1.0, 10.0, 60.0]
    mixture = mixed(rate, normal(1, noise_std), base)
    assert close(bound, moment(mixture, base, order, points), excess=1e-12)
    assert moment(base, mixture, order, points) <= float(bound) * (1 + 1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("rate", "epsilon"), [(0.01, 1.0), (0.4, 2.5)])
def test_poisson_laplace_is_exact_and_covers_both_directions(
    order: Fraction, rate: float, epsilon: float
) -> None:
    bound = log_moment(PoissonSampled(LaplaceStep(l1(epsilon), 1.0), rate), order)
    points = [-80.0, -10.0, 0.0, epsilon, 10.0, 80.0]
    mixture = mixed(rate, laplace(epsilon), laplace(0))
    assert close(bound, moment(mixture, laplace(0), order, points), excess=1e-12)
    assert moment(laplace(0), mixture, order, points) <= float(bound) * (1 + 1e-12)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("batch", "noise_std", "taylor"), [(1, 1.0, 0.05), (30, 2.0, 0.2), (60, 0.8, 0.5)]
)
def test_fixed_batch_gaussian_follows_the_symmetrised_pair(
    order: Fraction, batch: int, noise_std: float, taylor: float
) -> None:
    step = SampledWithoutReplacement(GaussianStep(l2(1, REPLACE), noise_std), batch, 100)
    base, moved = normal(0, noise_std), normal(1, noise_std)
    truth = symmetrised(base, moved, batch / 100, order, [0.5, 3.0, 10.0, 60.0])
    # whole orders bound one of the two powers by a Taylor sum, loose where much is drawn
    excess = taylor if order.denominator == 1 else 1e-10
    assert close(log_moment(step, order), truth, excess=excess)


@pytest.mark.parametrize("order", ORDERS)
def test_fixed_batch_laplace_follows_the_symmetrised_pair(order: Fraction) -> None:
    step = SampledWithoutReplacement(LaplaceStep(l1(1.5, REPLACE), 1.0), 1, 20)
    truth = symmetrised(laplace(0), laplace(1.5), 0.05, order, [0.75, 1.5, 10.0, 80.0])
    assert close(log_moment(step, order), truth, excess=0.01)


@pytest.mark.parametrize("order", [2, 3, 8, 20])
def test_fixed_batches_cost_less_than_the_published_bound(order: int) -> None:
    share, ratio = mpmath.mpf(1) / 8000, mpmath.mpf(1) / 4
    second = mpmath.exp(ratio)
    published = 1 + share**2 * comb(order, 2) * min(4 * (second - 1), 2 * second)
    for j in range(3, order + 1):
        published += 2 * share**j * comb(order, j) * mpmath.exp(j * (j - 1) * ratio / 2)
    step = SampledWithoutReplacement(GaussianStep(l2(1, REPLACE), 2.0), 1, 8000)
    assert float(log_moment(step, Fraction(order))) < mpmath.log(published)


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(4)])
@pytest.mark.parametrize("adjacency", [REPLACE, ZERO, ADD])
def test_a_mixture_step_lies_above_the_pairs_that_occur(
    order: Fraction, adjacency: Adjacency
) -> None:
    constant, sampled, rate = 0.1, 0.8, 0.05
    mechanism = GaussianMixtureStep(l2(constant, adjacency), drawn(sampled, adjacency), rate, 1.0)
    bound, points = float(log_moment(mechanism, order)), [-40.0, -5.0, 0.0, 5.0, 40.0]
    still = normal(0)
    for bump in (-sampled, sampled):
        moved = mixed(rate, normal(constant + bump), normal(constant))
        assert moment(moved, still, order, points) <= bound
        assert moment(still, moved, order, points) <= bound
    if adjacency is not ADD:  # another record's message may stand in the record's place
        swapped = mixed(rate, normal(-sampled), still)
        assert moment(normal(constant), swapped, order, points) <= bound


def test_a_mixture_step_without_a_constant_part_is_a_fixed_batch() -> None:
    mixture = GaussianMixtureStep(l2(0, REPLACE), drawn(2, REPLACE), 0.25, 3.0)
    batch = SampledWithoutReplacement(GaussianStep(l2(2, REPLACE), 3.0), 1, 4)
    for order in ORDERS:
        assert log_moment(mixture, order) == log_moment(batch, order)


@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(4)])
def test_a_mixture_of_a_declared_part_lies_above_pairs_whose_drawn_record_is_far_off(
    order: Fraction,
) -> None:
    constant, sampled, rate = 0.1, 0.8, 0.3
    made = GaussianMixtureStep(l2(constant, REPLACE), l2(sampled, REPLACE), rate, 1.0)
    bound, points = float(log_moment(made, order)), [-40.0, -5.0, 0.0, 5.0, 40.0]
    for far in (sampled, 2 * sampled, 10.0):
        one = mixed(rate, normal(far), normal(0))
        other = mixed(rate, normal(constant + far + sampled), normal(constant))
        assert moment(one, other, order, points) <= bound
        assert moment(other, one, order, points) <= bound


def discrete_moment(mass: Callable[[int], Real], shift: int, order: Fraction) -> Real:
    with mpmath.workdps(30):
        alpha = mpmath.mpf(order.numerator) / order.denominator
        support = range(-200, 201)
        total = mpmath.fsum(mass(k) for k in support)
        terms = (mass(k - shift) ** alpha * mass(k) ** (1 - alpha) for k in support)
        return mpmath.log(mpmath.fsum(terms) / total)


@pytest.mark.parametrize("order", ORDERS)
def test_discrete_noise_against_sums(order: Fraction) -> None:
    def exponential(k: int) -> Real:
        return mpmath.exp(-abs(k) / mpmath.mpf(2.5))

    def gaussian(k: int) -> Real:
        return mpmath.exp(-(mpmath.mpf(k) ** 2) / 18)

    one, three = (discrete_moment(exponential, shift, order) for shift in (1, 3))
    assert close(log_moment(DiscreteLaplaceStep(l1(3), 2.5), order), three, excess=1e-12)
    assert 3 * one <= three  # three coordinates moved by one each
    assert close(log_moment(DiscreteLaplaceStep(l1(1.9), 2.5), order), one, excess=1e-12)
    bound = log_moment(DiscreteGaussianStep(l2(2), 3.0), order)
    assert close(bound, discrete_moment(gaussian, 2, order), excess=1e-3)


def test_integer_vectors_cannot_move_by_less_than_one() -> None:
    assert log_moment(DiscreteLaplaceStep(l1(0.5), 2.5), Fraction(3)) == 0


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("truth", "categories"), [(0.75, 2), (0.2, 3), (0.5, 7)])
def test_randomised_response_against_sums(order: Fraction, truth: float, categories: int) -> None:
    with mpmath.workdps(30):
        alpha, p = mpmath.mpf(order.numerator) / order.denominator, mpmath.mpf(truth)
        o = (1 - p) / (categories - 1)
        total = p**alpha * o ** (1 - alpha) + o**alpha * p ** (1 - alpha) + (categories - 2) * o
        assert close(
            log_moment(RandomisedResponse(truth, categories), order),
            mpmath.log(total),
            excess=1e-12,
        )


def test_dp_accounting_says_the_same_at_the_same_orders() -> None:
    rdp = pytest.importorskip("dp_accounting.rdp")
    peer = pytest.importorskip("dp_accounting")
    orders = [1.5, 2, 3.25, 8, 32]
    pairs: list[tuple[Mechanism, object]] = [
        (GaussianStep(l2(1), 1.5), peer.GaussianDpEvent(1.5)),
        (LaplaceStep(l1(1), 1.5), peer.LaplaceDpEvent(1.5)),
        (
            PoissonSampled(GaussianStep(l2(1), 1.1), 0.02),
            peer.PoissonSampledDpEvent(0.02, peer.GaussianDpEvent(1.1)),
        ),
    ]
    for ours, theirs in pairs:
        accountant = rdp.RdpAccountant(orders=orders)
        accountant.compose(theirs)
        for order, epsilon in zip(orders, accountant._rdp, strict=True):  # type: ignore[attr-defined]
            exact = Fraction(order)
            bound = float(log_moment(ours, exact)) / float(exact - 1)
            assert bound <= epsilon * (1 + 1e-6)
            if exact.denominator == 1 or not isinstance(ours, PoissonSampled):
                assert bound == pytest.approx(epsilon, rel=1e-6)


def test_fractional_orders_lie_below_the_chord_of_whole_ones() -> None:
    step = PoissonSampled(GaussianStep(l2(1), 0.05), 0.9)  # too peaked for the integral
    for below in range(1, 5):
        left = float(log_moment(step, Fraction(below))) if below > 1 else 0.0
        right = float(log_moment(step, Fraction(below + 1)))
        assert float(log_moment(step, Fraction(2 * below + 1, 2))) <= (left + right) / 2 * (
            1 + 1e-15
        )


@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.999999])
@pytest.mark.parametrize("noise_std", [0.01, 1.0, 1e8])
def test_no_extreme_makes_a_bound_negative_or_none(rate: float, noise_std: float) -> None:
    for order in (Fraction(1025, 1024), Fraction(3), Fraction(31, 2)):
        poisson = log_moment(PoissonSampled(GaussianStep(l2(1), noise_std), rate), order)
        assert poisson > 0
        assert not poisson.is_nan()


def test_whole_orders_have_an_end() -> None:
    step = PoissonSampled(GaussianStep(l2(1), 1e4), 0.5)
    assert log_moment(step, Fraction(LARGEST_WHOLE_ORDER + 1)) == inf


@pytest.mark.parametrize("order", [Fraction(1), Fraction(1, 2), Fraction(-3), inf, float("nan")])
def test_orders_up_to_one_are_refused(order: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="order"):
        log_moment(GaussianStep(l2(1), 1.0), order)


def test_what_only_composes_others_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="single mechanism"):
        log_moment(Repeated(GaussianStep(l2(1), 1.0), 2), Fraction(2))


@pytest.mark.parametrize(
    ("noise", "rate", "order", "divergence"),
    # by mpmath's quadrature of E[r^order], in 30 digits
    [
        (0.1, 0.01, Fraction(5, 4), 39.474353592809),
        (0.25, 0.01, Fraction(9, 2), 30.0790669037296),
        (0.1, 0.01, Fraction(21, 10), 96.2083114631136),
    ],
)
def test_little_noise_is_priced_exactly_at_fractional_orders(
    noise: float, rate: float, order: Fraction, divergence: float
) -> None:
    size = declared(1, "unit", adjacency=Adjacency.ADD_REMOVE_ONE)
    found = log_moment(PoissonSampled(GaussianStep(size, noise), rate), order)
    assert float(
        found / (order.numerator - order.denominator) * order.denominator
    ) == pytest.approx(divergence, rel=1e-12)
