"""Brent's method: the points that scipy's own visits, in the same order."""

from math import cos, exp, log

import numpy as np
import pytest
from scipy.optimize import brentq

from dpledger.accounting.numbers.roots import brent


def test_it_visits_the_points_of_scipys_brentq_bit_for_bit() -> None:
    rng = np.random.default_rng(0)
    functions = 0
    for _ in range(2_000):
        a, b, c, d = (float(value) for value in rng.normal(size=4))

        def wave(x: float, a: float = a, b: float = b, c: float = c, d: float = d) -> float:
            return a * x**3 + b * x + c + d * cos(5 * x)

        low, high = (float(end) for end in rng.uniform(-3, 3, size=2))
        if wave(low) * wave(high) >= 0:
            continue
        functions += 1
        for options in ({}, {"xtol": 1e-6}, {"xtol": 1e-9, "rtol": 1e-14}):
            ours: list[float] = []
            theirs: list[float] = []
            root = brent(lambda x, s=ours: s.append(x) or wave(x), low, high, **options)
            words = brentq(lambda x, s=theirs: s.append(x) or wave(x), low, high, **options)
            assert root == words
            assert ours == theirs
    assert functions > 500


def test_a_root_at_an_end_and_one_of_a_steep_function_are_found() -> None:
    assert brent(lambda x: x - 2.0, 0.0, 2.0) == 2.0
    assert brent(lambda x: x, 0.0, 2.0) == 0.0
    assert brent(lambda x: exp(40 * x) - 1e9, -1.0, 3.0) == pytest.approx(log(1e9) / 40)


def test_ends_of_one_sign_and_too_few_evaluations_are_refused() -> None:
    with pytest.raises(ValueError, match="must have different signs"):
        brent(lambda x: x * x + 1, -1.0, 1.0)
    with pytest.raises(RuntimeError, match="within 2 evaluations"):
        brent(lambda x: x**3 - 0.2, -1.0, 1.0, maxiter=2)
