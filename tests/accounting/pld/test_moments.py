"""Moment functions in doubles and balls against quadrature at high precision."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import acb, arb
from tests.parameters import slow

from dpledger.accounting.numbers.enclosure import precision
from dpledger.accounting.pld import moments_certified, quadrature
from dpledger.accounting.pld import nodes as nodes_module
from dpledger.accounting.pld.decay import log_decay
from dpledger.accounting.pld.decay_certified import modulus_beyond
from dpledger.accounting.pld.moments import log_moments, log_real_moments, turned_on_line
from dpledger.accounting.pld.moments_certified import moments_on_line
from dpledger.accounting.pld.nodes import line_of, nodes
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
from dpledger.accounting.pld.quadrature import Demand, Density

GAUSSIAN, LAPLACE = GaussianShift(Fraction(9, 4)), LaplaceShift(Fraction(3, 2))
PAIRS: list[DominatingPair] = [
    GAUSSIAN,
    LAPLACE,
    *(Sampled(base, Fraction(1, 10), order) for base in (GAUSSIAN, LAPLACE) for order in Order),
    RandomisedAnswers(Fraction(1, 2), 4),
    DiscreteLaplaceShift(Fraction(1, 3), 3),
    DiscreteGaussianShift(Fraction(7, 2)),
]
ORDER, STEP = 1.75, 2.5


def brute_force(pair: DominatingPair, z: mpmath.mpc) -> mpmath.mpc:
    """Return E_P[(P/Q)^z] from the definition of the pair."""
    match pair:
        case GaussianShift():
            mu = mpmath.sqrt(mpmath.mpf(pair.mu_squared.numerator) / pair.mu_squared.denominator)
            return over_line(mu, lambda p, q: p * (p / q) ** z, gaussian_densities(mu))
        case LaplaceShift():
            e = mpmath.mpf(pair.epsilon.numerator) / pair.epsilon.denominator
            return over_line(e, lambda p, q: p * (p / q) ** z, laplace_densities(e))
        case Sampled(base=base, rate=rate):
            share = mpmath.mpf(rate.numerator) / rate.denominator
            if isinstance(base, GaussianShift):
                shift = mpmath.mpf(3) / 2
                densities = gaussian_densities(shift)
            else:
                shift = mpmath.mpf(base.epsilon.numerator) / base.epsilon.denominator
                densities = laplace_densities(shift)
            return over_line(
                shift, lambda p, q: sampled_term(pair.order, share, z, p, q), densities
            )
        case RandomisedAnswers():
            p, o = mpmath.mpf(1) / 2, mpmath.mpf(1) / 6
            return p * (p / o) ** z + o * (o / p) ** z + 2 * o
        case DiscreteLaplaceShift():
            weight = lambda k: mpmath.exp(-abs(mpmath.mpf(k)) / 3)  # noqa: E731
        case DiscreteGaussianShift():
            weight = lambda k: mpmath.exp(-(mpmath.mpf(k) ** 2) / 7)  # noqa: E731
    shift = pair.shift if isinstance(pair, DiscreteLaplaceShift) else 1
    total = mpmath.fsum(weight(k) for k in range(-250, 251))
    return (
        mpmath.fsum(
            weight(k - shift) * (weight(k - shift) / weight(k)) ** z for k in range(-200, 201)
        )
        / total
    )


def gaussian_densities(mu: mpmath.mpf):  # type: ignore[no-untyped-def]
    return lambda u: (mpmath.npdf(u, mu, 1), mpmath.npdf(u, 0, 1))


def laplace_densities(e: mpmath.mpf):  # type: ignore[no-untyped-def]
    return lambda u: (mpmath.exp(-abs(u - e)) / 2, mpmath.exp(-abs(u)) / 2)


def sampled_term(order: Order, share, z, p, q):  # type: ignore[no-untyped-def]
    mixed, mirrored = (1 - share) * q + share * p, (1 - share) * p + share * q
    if order is Order.MIXTURE_FIRST:
        return mixed * (mixed / q) ** z
    if order is Order.MIXTURE_SECOND:
        return q * (q / mixed) ** z
    # losses above zero from one order, below zero from the other, what is left of P at zero
    return mixed * (mixed / q) ** z + p - mixed if p > q else p * (p / mirrored) ** z


def over_line(shift, term, densities):  # type: ignore[no-untyped-def]
    cuts = [-30, -8, -4, -2, -1, 0, shift / 2, shift, shift + 2, shift + 4, shift + 8, shift + 40]
    return mpmath.quad(lambda u: term(*densities(u)), cuts)


@pytest.mark.parametrize("pair", [*slow(*PAIRS[:4]), *PAIRS[4:]], ids=str)
def test_doubles_and_balls_agree_with_the_definition(pair: DominatingPair) -> None:
    demand = Demand(ORDER, 2 * STEP, 40.0)
    z = ORDER + 1j * STEP * np.arange(3)
    found = log_moments(pair, z, demand)
    with precision(128):
        balls = moments_on_line(pair, STEP, 2, demand)
    with mpmath.workdps(25):
        for k in range(3):
            exact = brute_force(pair, mpmath.mpc(ORDER, k * STEP))
            assert abs(complex(np.exp(found.log[k])) - complex(exact)) < 1e-12 * abs(complex(exact))
            assert float(abs(balls[k] - complex(exact)).lower()) < 1e-13
            assert float(balls[k].real.rad()) < 1e-14 * float(balls[0].real.mid())


@pytest.mark.parametrize("pair", PAIRS, ids=str)
@pytest.mark.parametrize("reach", [0.5, 5.0, 40.0])
def test_the_decay_bound_holds_beyond_the_reach(pair: DominatingPair, reach: float) -> None:
    t = reach * np.linspace(1.0, 6.0, 60)
    moduli = log_moments(pair, ORDER + 1j * t, Demand(ORDER, 6 * reach, 40.0)).log.real
    bound = log_decay(pair, ORDER, reach)
    assert moduli.max() <= bound + 1e-9
    with precision(128):
        certified = float(modulus_beyond(pair, ORDER, reach).log().upper())
    assert moduli.max() <= certified + 1e-9
    assert certified <= bound + 0.05


@pytest.mark.parametrize(
    ("mu_squared", "rate", "order", "reach"),
    [
        (Fraction(5, 2), 6e-8, 4e6, 4e6),
        *slow(
            (10, 4e-7, 1e4, 1e5),
            (Fraction(1, 6), 2e-6, 1e5, 1e4),
            (Fraction(1, 12_800), 1e-5, 1.2e7, 6e7),
        ),
    ],
)
def test_high_orders_of_a_mixture_that_stands_second_are_those_of_the_definition(
    mu_squared: Fraction, rate: float, order: float, reach: float
) -> None:
    pair = Sampled(GaussianShift(Fraction(mu_squared)), Fraction(rate), Order.MIXTURE_SECOND)
    with mpmath.workdps(30):
        mu, q = mpmath.sqrt(mpmath.mpf(mu_squared)), mpmath.mpf(rate)
        h, reached = mpmath.mpf(1) / 256, []
        logs = [
            (mpmath.npdf(k * h), mpmath.log1p(q * mpmath.expm1(mu * k * h - mu**2 / 2)))
            for k in range(-11 * 256, 11 * 256 + 1)
        ]
        for t in (0, reach / 2, reach):
            z = mpmath.mpc(-order, -t)
            reached.append(mpmath.fsum(h * p * mpmath.exp(z * log_r) for p, log_r in logs))
    demand = Demand(order, reach, 40.0)
    with precision(128):
        balls = moments_on_line(pair, reach / 2, 2, demand)
        beyond = float(modulus_beyond(pair, order, reach).log().upper())
        for ball, exact in zip(balls, reached, strict=True):
            near = acb(mpmath.nstr(exact.real, 25), mpmath.nstr(exact.imag, 25)) - ball
            assert float(abs(near).lower()) < 1e-15
            assert float(abs(near).upper()) < 1e-12 * float(abs(reached[0]))
    doubles = log_moments(pair, order + 1j * np.array([0.0, reach / 2, reach]), demand)
    exact_logs = [complex(mpmath.log(each)) for each in reached]
    assert doubles.log.real == pytest.approx([each.real for each in exact_logs], abs=1e-9)
    assert float(mpmath.log(abs(reached[-1]))) <= beyond
    assert beyond < float(mpmath.log(abs(reached[0])))


@pytest.mark.parametrize("base", [GAUSSIAN, LAPLACE, LaplaceShift(Fraction(9))], ids=str)
@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 10), Fraction(9, 10)])
def test_moments_of_many_real_orders_are_those_of_each(
    base: GaussianShift | LaplaceShift, order: Order, rate: Fraction
) -> None:
    pair, orders = Sampled(base, rate, order), 2.0 ** np.arange(-4, 4)
    alone = [
        log_moments(pair, np.array([c + 0j]), Demand(c, 0.0, 60.0)).log[0].real
        for c in orders.tolist()
    ]
    assert log_real_moments(pair, orders) == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("order", [Order.MIXTURE_FIRST, Order.MIXTURE_SECOND])
def test_where_a_small_rate_turns_fast_panels_do_what_a_line_does(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = GaussianShift(Fraction(1))
    pair, step, demand = Sampled(base, Fraction(1, 10_000), order), 500.0, Demand(8.0, 1500.0, 40.0)
    z = np.asarray(demand.order + 1j * step * np.arange(4), np.complex128)
    assert line_of(pair, base, demand) is None
    in_panels = log_moments(pair, z, demand)
    with precision(128):
        balls = moments_on_line(pair, step, 3, demand)
    nodes.cache_clear()
    monkeypatch.setattr(nodes_module, "_LONG_LINE", 1 << 30)
    assert line_of(pair, base, demand) is not None
    on_a_line = log_moments(pair, z, demand)
    with precision(128):
        others = moments_on_line(pair, step, 3, demand)
    nodes.cache_clear()
    assert np.abs(in_panels.log - on_a_line.log).max() < 1e-12
    for k in range(4):
        assert balls[k].overlaps(others[k])
        assert float(balls[k].real.rad()) < 1e-14
        assert abs(complex(balls[k]) - complex(np.exp(in_panels.log[k]))) < 1e-12


@pytest.mark.parametrize(
    ("mu_squared", "rate", "order", "reach"),
    [(328, 0.99, 0.5, 4e3), *slow((100, 0.45, 4.0, 1e4), (4, 0.999, 12.0, 1e3))],
)
def test_an_integral_that_has_fallen_ends_where_r_still_turns(
    mu_squared: float, rate: float, order: float, reach: float
) -> None:
    base = GaussianShift(Fraction(mu_squared))
    pair = Sampled(base, Fraction(rate), Order.MIXTURE_SECOND)
    demand = Demand(order, reach, 40.0)
    with mpmath.workdps(30):
        mu, q = mpmath.sqrt(mpmath.mpf(mu_squared)), mpmath.mpf(rate)
        h, z = mpmath.mpf(1) / 128, mpmath.mpc(-order, -2.0)
        terms = (
            mpmath.npdf(k * h)
            * mpmath.exp(z * mpmath.log1p(q * mpmath.expm1(mu * k * h - mu**2 / 2)))
            for k in range(-12 * 128, 12 * 128 + 1)
        )
        exact = complex(h * mpmath.fsum(terms))
    with precision(128):
        real, at = moments_on_line(pair, 2.0, 1, demand)
        assert line_of(pair, base, demand) is None
        assert float(abs(at - exact).lower()) < 1e-14 * float(real.real.mid())
        assert float(at.real.rad()) < 1e-14 * float(real.real.mid())
    (found,) = log_moments(pair, np.array([order + 2j]), demand).log
    assert abs(np.exp(found) - exact) < 1e-13 * float(real.real.mid())


def test_turns_on_a_long_line_are_those_of_each_loss() -> None:
    rng = np.random.default_rng(7)
    loss = rng.normal(size=2500) * 10.0 ** rng.uniform(-6, 1, 2500)
    weights = 10.0 ** rng.uniform(-40, 0, loss.size)
    step, count = 0.125, 20_000
    found = turned_on_line(step, count, loss, weights)
    moved = float(weights @ np.abs(loss))
    for k in [1, 141, 142, count - 1]:
        with mpmath.workdps(30):
            exact = mpmath.fsum(
                mpmath.mpf(w) * mpmath.expm1(mpmath.mpc(0, mpmath.mpf(k) * step * mpmath.mpf(x)))
                for w, x in zip(weights.tolist(), loss.tolist(), strict=True)
            )
        assert abs(found[k] - complex(exact)) <= 2.0**-46 * k * step * moved


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 17, 97])
def test_turns_in_balls_are_those_of_each_height(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # so few at once that several products are added up
    monkeypatch.setattr(moments_certified, "_AT_ONCE", 3)
    with precision(160):
        weights = [arb(1) / (3**k + 1) for k in range(7)]
        angles = [arb(k) * arb.pi() / 11 - 1 for k in range(7)]
        found = moments_certified._turned(weights, angles, count)
        assert len(found) == count + 1
        for k, ball in enumerate(found):
            exact = [w * acb(0, k * a).exp() for w, a in zip(weights, angles, strict=True)]
            assert ball.overlaps(sum(exact, acb(0)))
            assert float(ball.real.rad()) + float(ball.imag.rad()) < 1e-44


@pytest.mark.parametrize("angle", [0.4, 1.5, 1.7, 2.3, 2.9])
@pytest.mark.parametrize("low", [-6.0, -1.0, 0.5])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 2)])
def test_powers_of_r_are_bounded_all_over_a_panels_box(
    angle: float, low: float, rate: Fraction
) -> None:
    """Where the real part of e^v is negative, r is smallest where that is largest in modulus."""
    c, high, q = 3.0, low + 5.0, float(rate)
    pair = Sampled(GaussianShift(Fraction(1)), rate, Order.MIXTURE_SECOND)
    v = np.linspace(low, high, 301)[:, None] + 1j * np.linspace(0.0, angle, 101)
    largest = float((np.abs(1 - q + q * np.exp(v)) ** -c).max())
    with precision(96):
        ball, _ = moments_certified._peak_power(
            pair, arb(c), arb(1), arb(low), arb(high), arb(angle)
        )
    assert float(ball.lower()) >= largest * (1 - 1e-9)
    density, demand = Density(1.0, low, falling=True), Demand(c, 0.0, 40.0)
    planned = quadrature._log_power(density, q, demand, low, high, angle)
    assert planned >= np.log(largest) + np.log(2) - 1e-9
