"""Rules of Gauss and Legendre: polynomials are integrated exactly, and no weight loses digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpledger.accounting.numbers import gauss_legendre
from dpledger.accounting.numbers.enclosure import precision


@pytest.mark.parametrize("points", [1, 2, 3, 8, 31])
def test_polynomials_are_integrated_to_the_balls_radii(points: int) -> None:
    rule = gauss_legendre.balls(points, 200)
    with precision(200):
        for degree in range(2 * points):
            total = sum((w * x**degree for x, w in rule), rule[0][0] * 0)
            exact = Fraction(1 + (-1) ** degree, degree + 1)
            assert (total * exact.denominator).contains(exact.numerator)
            assert float(total.rad()) < 1e-50


@pytest.mark.parametrize("points", [16, 209, 2048])
def test_the_outermost_weights_have_all_digits(points: int) -> None:
    x, w = gauss_legendre.doubles(points)
    assert np.all(np.diff(x) > 0)
    with mpmath.workdps(40):
        # w = 2 / ((1 - x²) P'(x)²) at the root that Newton's method finds from the double
        root = mpmath.mpf(x[-1])
        for _ in range(6):
            value, before = mpmath.legendre(points, root), mpmath.legendre(points - 1, root)
            slope = points * (root * value - before) / (root**2 - 1)
            root -= value / slope
        weight = 2 / ((1 - root**2) * slope**2)
    assert x[-1] == -x[0] == pytest.approx(float(root), rel=2**-52, abs=0)
    assert w[-1] == w[0] == pytest.approx(float(weight), rel=2**-51, abs=0)
