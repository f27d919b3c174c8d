"""Bounds on rounding hold against exact rational arithmetic on the same doubles.

Both bounds: those that a value carries, and the least that the checker finds again from its
operations alone.
"""

from fractions import Fraction
from math import ldexp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpledger.accounting.check import roundings
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import blocking, rounding
from dpledger.mechanisms.clipping import inner_radius, project_to_ball
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.operator_norm import operator_norm_up
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.rounding import Rounding
from dpledger.mechanisms.sensitivity import Derivation, root_up
from dpledger.solvers import ClippedLogistic

WIDTH = 3
numbers = st.builds(ldexp, st.floats(-1.0, 1.0), st.integers(-900, 60))
vectors = st.lists(numbers, min_size=WIDTH, max_size=WIDTH).map(np.array)

Exact = list[Fraction]


def exactly(vector: FloatArray) -> Exact:
    return [Fraction(float(x)) for x in vector]


def length(vector: Exact) -> Fraction:
    return root_up(sum((x * x for x in vector), Fraction(0)))


def checked(node: Derivation) -> roundings.Round:
    """Return the least bounds that the checker finds for a tree of operations."""
    function, arity, names = roundings.ROUNDINGS[node.rule]
    given = dict(node.parameters)
    assert len(node.premises) == arity
    assert list(given) == [*names, "magnitude", "error"]
    found = function(*map(checked, node.premises), *(given[name] for name in names))
    if node.rule == "float-exact":  # what a value stands for has the size that is stated
        return found._replace(magnitude=Fraction(given["magnitude"]))
    return found


def holds(bounds: Rounding, computed: FloatArray, true: Exact) -> None:
    error = [a - b for a, b in zip(exactly(computed), true, strict=True)]
    # `root_up` rounds up by up to 2^-95 of the root, and so may this comparison
    slack = 1 - Fraction(1, 2**90)
    for found in (bounds, checked(bounds.derivation)):
        assert slack * length(error) <= found.error
        assert slack * length(exactly(computed)) <= found.magnitude
        assert found.width == len(true)


def public(vector: FloatArray) -> Rounding:
    return rounding.exact(length(exactly(vector)), width=len(vector))


@settings(max_examples=200)
@given(vectors, vectors, numbers)
def test_sums_shifts_and_multiples_err_within_their_bounds(
    x: FloatArray, c: FloatArray, factor: float
) -> None:
    true = [a + b for a, b in zip(exactly(x), exactly(c), strict=True)]
    shifted = rounding.shifted(public(x), length(exactly(c)))
    holds(shifted, x + c, true)
    holds(rounding.joined(public(x), public(c)), x + c, true)
    scaled = rounding.scaled(shifted, Fraction(factor))
    holds(scaled, (x + c) * factor, [Fraction(factor) * t for t in true])
    most = Fraction(float(np.abs(c).max()))
    each = rounding.multiplied(shifted, most, width=WIDTH)
    holds(each, (x + c) * c, [a * b for a, b in zip(exactly(c), true, strict=True)])
    outer = rounding.multiplied(shifted, length(exactly(c)), width=WIDTH**2)
    holds(outer, np.outer(x + c, c).ravel(), [t * a for t in true for a in exactly(c)])
    both = rounding.paired(shifted, public(c))
    holds(both, np.concatenate([x + c, c]), true + exactly(c))


@settings(max_examples=100)
@given(st.lists(vectors, min_size=2, max_size=2), vectors, vectors)
def test_linear_maps_err_within_their_bound(
    rows: list[FloatArray], x: FloatArray, c: FloatArray
) -> None:
    matrix = np.array(rows)
    norm = operator_norm_up(matrix)
    before = rounding.shifted(public(x), length(exactly(c)))
    bounds = rounding.mapped(before, norm, height=len(rows))
    moved = [a + b for a, b in zip(exactly(x), exactly(c), strict=True)]
    true = [sum((a * b for a, b in zip(exactly(r), moved, strict=True)), Fraction(0)) for r in rows]
    holds(bounds, matrix @ (x + c), true)


@settings(max_examples=100)
@given(vectors, st.builds(ldexp, st.floats(0.5, 1.0), st.integers(-300, 60)))
def test_clipped_rows_err_within_their_bound(x: FloatArray, radius: float) -> None:
    size = length(exactly(x))
    bounds = rounding.clipped(public(x), Fraction(radius))
    # the projection on the ball that leaves room for rounding, 1-Lipschitz as well
    ball = Fraction(inner_radius(radius, WIDTH))
    shrunk = min(Fraction(1), ball / size) if size else Fraction(1)
    holds(bounds, project_to_ball(x, radius), [shrunk * a for a in exactly(x)])


@pytest.mark.parametrize("order", ["forward", "backward", "pairwise"])
def test_sums_of_products_err_within_their_bound_in_any_order(order: str) -> None:
    rng = np.random.default_rng(3)
    slopes, rows = rng.uniform(-1, 1, 500), rng.normal(size=(500, WIDTH))
    products = slopes[:, None] * rows
    if order == "pairwise":
        total = products.sum(axis=0)
    else:
        total = np.zeros(WIDTH)
        for term in products if order == "forward" else products[::-1]:
            total = total + term
    true = [
        sum(
            (
                Fraction(s) * Fraction(a)
                for s, a in zip(slopes.tolist(), rows[:, j].tolist(), strict=True)
            ),
            Fraction(0),
        )
        for j in range(WIDTH)
    ]
    longest = max(
        abs(Fraction(float(s))) * length(exactly(row)) for s, row in zip(slopes, rows, strict=True)
    )
    holds(rounding.total(longest, 500, WIDTH), total, true)
    holds(rounding.mean(longest, 500, WIDTH), total / 500, [t / 500 for t in true])


def test_scores_err_within_their_bound() -> None:
    rng = np.random.default_rng(4)
    rows, x = rng.normal(size=(WIDTH, 200)), rng.normal(size=200)
    true = [
        sum((a * b for a, b in zip(exactly(row), exactly(x), strict=True)), Fraction(0))
        for row in rows
    ]
    longest = max(length(exactly(row)) for row in rows) * length(exactly(x))
    holds(rounding.scores(longest, 200, WIDTH), rows @ x, true)


def test_rows_of_weight_below_one_are_priced_as_rounded_too() -> None:
    """The largest weight is 1, which rounds nothing; another row's product still does."""
    x, weight = np.array([1.0 / 3.0]), 1.0 - 2.0**-30
    bounds = rounding.multiplied(public(x), Fraction(1), width=1)
    true = [Fraction(float(x[0])) * Fraction(weight)]
    assert Fraction(float(x[0] * weight)) != true[0]
    holds(bounds, x * weight, true)


def test_sums_of_wide_rows_err_within_their_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows so wide that a cache holds one of them: a sum then has as many blocks as records.

    Every term but loses half a unit in the last place of the sum before it.
    """
    monkeypatch.setattr(blocking, "_BLOCK_NUMBERS", 1)
    count, total, halves = 6000, 0.0, list[float]()
    for _ in range(count):
        halves.append(0.498046875 + max(0.0, np.spacing(total) / 2 - 2.0**-54))
        total += halves[-1]
    rows = 2.0 * np.array(halves)[:, None]
    data = AuditDataset(rows, np.ones(count), adjacency="replace-one", row_bound=1.0)
    found = data.sum_gradient(ClippedLogistic(0.5), np.zeros(1))
    value = private_value(found)
    assert value is not None
    true = sum(map(Fraction, halves), Fraction(0))
    assert abs(Fraction(-float(value[0, 0])) - true) <= found.rounding.error
    # added one by one they err by more
    assert abs(Fraction(total) - true) > found.rounding.error
