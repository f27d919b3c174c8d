"""Compositions in closed form, against sums and integrals by hand and against the grid."""

from collections.abc import Callable
from fractions import Fraction
from math import log
from typing import Any

import mpmath
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parameters import slow

from dpledger.accounting.pld.closed_form import ClosedForm, _Masses, closed_form
from dpledger.accounting.pld.distribution import epsilon_by_pld
from dpledger.accounting.pld.pairs import (
    DiscreteGaussianShift,
    DiscreteLaplaceShift,
    DominatingPair,
    GaussianShift,
    LaplaceShift,
    Order,
    RandomisedAnswers,
    Sampled,
)

mpf = mpmath.mpf
Exact = Any  # a number of mpmath, which has no types
Profile = Callable[[Exact], Exact]

COIN = RandomisedAnswers(Fraction(3, 5), 2)
DIE = RandomisedAnswers(Fraction(1, 10), 6)
LAPLACE = LaplaceShift(Fraction(7, 10))
SAMPLED = Sampled(GaussianShift(Fraction(1)), Fraction(1, 50), Order.MIXTURE_FIRST)


def found(counts: dict[DominatingPair, int], delta: float = 1e-5) -> ClosedForm:
    form = closed_form(counts, delta)
    assert form is not None
    return form


def atoms_of(pair: DominatingPair) -> list[tuple[Exact, Exact]]:
    """Return (loss, probability under P) by the definition of each mechanism."""
    match pair:
        case RandomisedAnswers():
            p, k = mpf(pair.truth.numerator) / pair.truth.denominator, pair.categories
            o = (1 - p) / (k - 1)
            return [(mpmath.log(p / o), p), (mpmath.log(o / p), o), *[(mpf(0), o)] * (k - 2)]
        case DiscreteLaplaceShift():
            b = mpf(pair.rate.numerator) / pair.rate.denominator
            noise = {k: mpmath.exp(-b * abs(k)) for k in range(-400, 401)}
            shift = pair.shift
        case DiscreteGaussianShift():
            s2 = mpf(pair.sigma_squared.numerator) / pair.sigma_squared.denominator
            noise = {k: mpmath.exp(-(mpf(k) ** 2) / (2 * s2)) for k in range(-35, 36)}
            shift = 1
        case _:
            raise TypeError(pair)
    total = mpmath.fsum(noise.values())
    return [
        (mpmath.log(noise[k] / noise[k + shift]), noise[k] / total)
        for k in noise
        if k + shift in noise
    ]


def summed(
    first: list[tuple[Exact, Exact]], second: list[tuple[Exact, Exact]]
) -> list[tuple[Exact, Exact]]:
    merged: dict[str, tuple[Exact, Exact]] = {}
    for loss, p in first:
        for other, q in second:
            key = mpmath.nstr(loss + other, 25)
            merged[key] = (loss + other, merged.get(key, (0, mpf(0)))[1] + p * q)
    return list(merged.values())


def by_hand(counts: dict[DominatingPair, int], last: Profile | None = None) -> Profile:
    """Return δ(ε) of atoms, and of one pair more with the profile `last`."""
    atoms = [(mpf(0), mpf(1))]
    for pair, n in counts.items():
        once = summed([(mpf(0), mpf(1))], atoms_of(pair))
        for _ in range(n):
            atoms = summed(atoms, once)

    def delta(epsilon: Exact) -> Exact:
        if last is not None:
            return mpmath.fsum(p * last(epsilon - loss) for loss, p in atoms)
        return mpmath.fsum(
            p * (1 - mpmath.exp(epsilon - loss)) for loss, p in atoms if loss > epsilon
        )

    return delta


def encloses(form: ClosedForm, profile: Profile, delta: float) -> None:
    """Check both ends of ε(δ), and δ at a point between, against the profile by hand."""
    epsilon = form.epsilon(delta)
    assert epsilon.relative_width < 1e-12
    with mpmath.workdps(60):
        slack = mpf(10) ** -20
        assert profile(mpf(epsilon.upper_float)) <= mpf(delta) * (1 + slack)
        assert profile(mpf(epsilon.lower_float)) >= mpf(delta) * (1 - slack)
        half = epsilon.upper_float / 2
        there = form.delta(half)
        assert there.relative_width < 1e-9
        assert there.lower_float <= profile(mpf(half)) <= there.upper_float


@pytest.mark.parametrize(
    "counts",
    [
        {COIN: 1},
        {COIN: 100},
        {DIE: 20},
        {COIN: 12, RandomisedAnswers(Fraction(3, 4), 3): 8, DIE: 3},
        {DiscreteLaplaceShift(Fraction(1, 3), 2): 10},
        {DiscreteGaussianShift(Fraction(4)): 3},
        {DiscreteGaussianShift(Fraction(9, 4)): 2, COIN: 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_atoms_compose_to_sums_over_all_outcomes(
    counts: dict[DominatingPair, int], delta: float
) -> None:
    with mpmath.workdps(60):
        profile = by_hand(counts)
    encloses(found(counts, delta), profile, delta)


@pytest.mark.parametrize("delta", [1e-12, *slow(1e-3)])
def test_many_answers_are_binomial_without_the_tails_that_were_cut(delta: float) -> None:
    n = 3000
    with mpmath.workdps(60):
        unit, p = mpmath.log(mpf(3) / 2), mpf(3) / 5
        atoms = [
            ((2 * k - n) * unit, mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k))
            for k in range(n + 1)
        ]

    def profile(epsilon: Exact) -> Exact:
        return mpmath.fsum(m * (1 - mpmath.exp(epsilon - x)) for x, m in atoms if x > epsilon)

    form = found({COIN: n}, delta)
    assert len(form.knots) < n // 3
    encloses(form, profile, delta)
    with mpmath.workdps(60):
        kept = {round(float(knot.loss / float(unit))) for knot in form.knots}
        lost = mpmath.fsum(m for k, (_, m) in enumerate(atoms) if 2 * k - n not in kept)
        assert 0 < lost < mpf(str(form.missing.str(30, radius=False)))


def gaussian_profile(mu: Exact) -> Profile:
    def delta(x: Exact) -> Exact:
        return mpmath.ncdf(-x / mu + mu / 2) - mpmath.exp(x) * mpmath.ncdf(-x / mu - mu / 2)

    return delta


def test_atoms_and_gaussian_steps_are_a_mixture_of_gaussian_profiles() -> None:
    with mpmath.workdps(60):
        profile = by_hand({COIN: 30}, gaussian_profile(mpf(1) / 3))
    encloses(found({COIN: 30, GaussianShift(Fraction(1, 9)): 1}), profile, 1e-5)


def laplace_profile(e: Exact) -> Profile:
    """Return δ of one Laplace shift, at any real x (Dwork, McSherry, Nissim, Smith 2006)."""

    def delta(x: Exact) -> Exact:
        if x >= e:
            return mpf(0)
        return 1 - mpmath.exp(x) if x <= -e else 1 - mpmath.exp((x - e) / 2)

    return delta


def one_more_laplace(profile: Profile, e: Exact, kinks: list[Exact]) -> Profile:
    """Return E[profile(ε - L)] over the loss of a Laplace shift, whose density is by hand."""

    def delta(epsilon: Exact) -> Exact:
        def weighted(v: Exact) -> Exact:
            return mpmath.exp((v - e) / 2) / 4 * profile(epsilon - v)

        places = sorted({-e, e, *(epsilon - k for k in kinks if -e < epsilon - k < e)})
        ends = profile(epsilon - e) / 2 + mpmath.exp(-e) / 2 * profile(epsilon + e)
        return ends + mpmath.quad(weighted, places)

    return delta


@pytest.mark.parametrize("order", [0.0, 1e-3, 1.0, 10.0, 1e6])
@pytest.mark.parametrize("loose", [1 + 1e-12, 1.0007, 1.1, 3.0, 1e6])
@pytest.mark.parametrize("counts", [{COIN: 40}, {LAPLACE: 30}, {DIE: 9, SAMPLED: 1}], ids=str)
def test_an_upper_end_is_found_from_any_bound_and_slope(
    counts: dict[DominatingPair, int], loose: float, order: float
) -> None:
    form = found(counts)
    enclosed = form.epsilon(1e-5)
    upper = form.epsilon_upper(1e-5, enclosed.upper_float * loose, order)
    assert enclosed.lower_float <= upper <= enclosed.upper_float * (1 + 1e-8)


def test_one_laplace_shift_has_its_own_profile() -> None:
    with mpmath.workdps(40):
        profile = laplace_profile(mpf(7) / 10)
    encloses(found({LAPLACE: 1}), profile, 1e-5)


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_two_laplace_shifts_are_an_integral_over_the_first(delta: float) -> None:
    with mpmath.workdps(40):
        e, f = mpf(7) / 10, mpf(1) / 5
        profile = one_more_laplace(laplace_profile(e), f, [e, -e])
    counts: dict[DominatingPair, int] = {LAPLACE: 1, LaplaceShift(Fraction(1, 5)): 1}
    encloses(found(counts, delta), profile, delta)


def test_a_laplace_shift_more_is_the_mean_over_its_loss() -> None:
    # the closed form of n + 1 from that of n, which stands for the profile in balls
    n, e = 9, mpf(7) / 10
    fewer, more = found({LAPLACE: n}), found({LAPLACE: n + 1})

    def profile(x: Exact) -> Exact:
        enclosed = fewer.delta(float(x))
        return mpf((enclosed.lower_float + enclosed.upper_float) / 2)

    kinks = [(2 * j - n) * e for j in range(n + 1)]
    for epsilon in (0.3, 2.0, 5.5):
        expected = one_more_laplace(profile, e, kinks)(mpf(epsilon))
        assert more.delta(epsilon).upper_float == pytest.approx(float(expected), rel=1e-11)


def test_an_empty_answer_and_coins_that_tell_nothing() -> None:
    assert found({COIN: 1}, 0.5).epsilon(0.5) == 0
    assert found({COIN: 2}).delta(2 * log(1.5) + 1e-9).upper == 0


@pytest.mark.parametrize(
    "counts",
    [
        {LAPLACE: 2, GaussianShift(Fraction(1)): 1},
        {SAMPLED: 2},
        {RandomisedAnswers(Fraction(k, 100), 3): 90 for k in (51, 52, 53)},
        {DiscreteGaussianShift(Fraction(10**8)): 50},
        {LaplaceShift(Fraction(1, 1000)): 1000},
    ],
    ids=["Laplace and Gaussian", "sampled twice", "too many sums", "too long", "too many shifts"],
)
def test_there_is_none_for(counts: dict[DominatingPair, int]) -> None:
    assert closed_form(counts, 1e-5) is None


def test_no_power_is_taken_of_losses_that_are_too_many_already(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: dict[DominatingPair, int] = {DiscreteGaussianShift(Fraction(4000)): 7}
    found = closed_form(counts, 1e-20)
    assert found is not None
    most = len(found.knots)
    assert closed_form(counts, 1e-20, most_knots=most) is not None
    lengths: list[int] = []
    times = _Masses.times

    def noted(self: _Masses, other: _Masses, negligible: arb) -> _Masses:
        product = times(self, other, negligible)
        lengths.append(product.polynomial.length())
        return product

    monkeypatch.setattr(_Masses, "times", noted)
    assert closed_form(counts, 1e-20, most_knots=most - 1) is None
    # 7 = 1 + 2 (1 + 2 · 1): four products, each longer than the last
    assert len(lengths) == 4
    assert lengths == sorted(lengths)
    assert lengths[-1] == most
    lengths.clear()
    assert closed_form(counts, 1e-20, most_knots=100) is None
    assert not lengths


pairs = st.sampled_from(
    [
        COIN,
        DIE,
        LAPLACE,
        LaplaceShift(Fraction(1, 8)),
        DiscreteLaplaceShift(Fraction(1, 4), 3),
        DiscreteGaussianShift(Fraction(2)),
    ]
)


@settings(max_examples=10)
@given(
    st.dictionaries(pairs, st.integers(1, 6), min_size=1, max_size=2),
    st.sampled_from([1e-2, 1e-6, 1e-15]),
    st.sampled_from([None, GaussianShift(Fraction(1, 10)), SAMPLED]),
)
def test_closed_form_and_grid_enclose_the_same_number(
    counts: dict[DominatingPair, int], delta: float, more: DominatingPair | None
) -> None:
    if more is not None and not any(isinstance(pair, LaplaceShift) for pair in counts):
        counts = {**counts, more: 1}
    closed = found(counts, delta).epsilon(delta)
    grid = epsilon_by_pld(counts, delta, cells=1 << 9)
    assert closed.lower <= grid.upper
    assert grid.lower <= closed.upper
    # a root is sought to 2e-12, and widened by factors of eight
    assert float(closed.upper - closed.lower) < 1e-11 * max(1.0, closed.upper_float)
