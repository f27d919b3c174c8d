"""Laws of the sensitivity calculus.

Every rule's bound holds on brute-force neighbours, in exact arithmetic; roots, caps and binary64
values never round below; the derivation explains the number and is not part of it.
"""

from fractions import Fraction
from itertools import product
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.mechanisms.adjacency import Adjacency
from dpledger.mechanisms.errors import AdjacencyMismatch, InvalidParameter
from dpledger.mechanisms.sensitivity import (
    Derivation,
    Norm,
    Sensitivity,
    _capped,
    added,
    clipped,
    concatenated,
    concatenated_disjoint,
    declared,
    float_down,
    float_up,
    linearly_mapped,
    mean_of_bounded,
    mean_of_nonnegative,
    root_up,
    scaled,
    strongly_convex_argmin,
    sum_of_bounded,
)

REPLACE, ZERO, ADD = Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE
RECORDS = (REPLACE, ZERO, ADD)

rationals = st.fractions(min_value=0, max_value=10**6, max_denominator=10**9)
positive = rationals.filter(lambda x: x > 0)


def of(value: Fraction | float, *, adjacency: Adjacency = REPLACE, norm: Norm = Norm.L2):
    return declared(value, "an example", adjacency=adjacency, norm=norm)


# Rules against brute force -----------------------------------------------------------------------


def neighbours(values: tuple[Fraction, ...], n: int, adjacency: Adjacency):
    """Yield all pairs of neighbouring scalar data sets with entries in `values`."""
    for base in product(values, repeat=n):
        if adjacency is REPLACE:
            yield from ((base, (*base[:-1], other)) for other in values)
        elif adjacency is ZERO:
            yield base, (*base[:-1], Fraction(0))
        else:
            yield from ((base, (*base, other)) for other in values)


@pytest.mark.parametrize("adjacency", RECORDS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_mean_and_sum_bounds_hold_on_all_neighbours(adjacency: Adjacency, n: int) -> None:
    bound = Fraction(7, 3)
    values = (-bound, -bound / 3, Fraction(0), bound)
    pairs = list(neighbours(values, n, adjacency))
    sums = max(abs(sum(a, Fraction(0)) - sum(b, Fraction(0))) for a, b in pairs)
    means = max(abs(sum(a, Fraction(0)) / len(a) - sum(b, Fraction(0)) / len(b)) for a, b in pairs)
    assert sum_of_bounded(bound, adjacency).root == sums
    derived = mean_of_bounded(bound, n, adjacency).root
    # with n_min = n the larger data set has n + 1 records: 2G/(n + 1) is attained, 2G/n is priced
    assert means == (derived * n / (n + 1) if adjacency is ADD else derived)


@pytest.mark.parametrize("adjacency", RECORDS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_mean_bound_of_nonnegative_vectors_holds_on_all_neighbours(
    adjacency: Adjacency, n: int
) -> None:
    # the plane's quadrant: corners, a diagonal and 0, with squares that stay rational
    corners = ((5, 0), (0, 5), (3, 4), (0, 0))
    squares = []
    for base in product(corners, repeat=n):
        if adjacency is REPLACE:
            others = [(*base[:-1], other) for other in corners]
        else:
            others = [(*base[:-1], (0, 0)) if adjacency is ZERO else (*base, c) for c in corners]
        for other in others:
            means = [
                [Fraction(sum(x), len(x)) for x in zip(*d, strict=True)] for d in (base, other)
            ]
            squares.append(sum((a - b) ** 2 for a, b in zip(*means, strict=True)))
    derived = mean_of_nonnegative(5, n, adjacency).squared
    # with n_min = n the larger data set has n + 1 records
    assert max(squares) == (derived * Fraction(n, n + 1) ** 2 if adjacency is ADD else derived)


@pytest.mark.parametrize("adjacency", RECORDS)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_argmin_bound_holds_on_all_neighbours(adjacency: Adjacency, n: int) -> None:
    # linear losses g·v + (m/2)v²: the minimiser is -mean(g)/m; a gradient of ±tau moves it by tau/m
    bound, modulus, tau = Fraction(2, 7), Fraction(3, 5), Fraction(1, 9)
    values = (-bound, Fraction(0), bound)
    exact = max(
        abs(sum(a, Fraction(0)) / len(a) - sum(b, Fraction(0)) / len(b)) / modulus
        for a, b in neighbours(values, n, adjacency)
    )
    derived = strongly_convex_argmin(bound, modulus, tau, n, adjacency).root
    attained = exact + 2 * tau / modulus
    assert attained <= derived
    assert adjacency is ADD or attained == derived


@given(rationals, rationals, st.fractions(max_denominator=10**6))
def test_arithmetic_rules_are_exact_on_rational_roots(a: Fraction, b: Fraction, c: Fraction):
    u, v = of(a), of(b)
    assert added(u, v).root == a + b
    assert concatenated(u, v).squared == a**2 + b**2
    assert concatenated_disjoint(u, v).root == max(a, b)
    assert scaled(u, c).root == abs(c) * a
    assert linearly_mapped(u, abs(c)).root == abs(c) * a
    assert clipped(u, b).root == min(a, 2 * b)


@given(positive, positive)
def test_l1_roots_add_under_concatenation(a: Fraction, b: Fraction) -> None:
    assert concatenated(of(a, norm=Norm.L1), of(b, norm=Norm.L1)).root == a + b


@given(st.lists(rationals, min_size=2, max_size=5))
def test_sums_of_irrational_roots_never_fall_below(squares: list[Fraction]) -> None:
    parts = [Sensitivity(Norm.L2, REPLACE, s, Derivation("given", s)) for s in squares]
    total = parts[0]
    for part in parts[1:]:
        total = added(total, part)
    # (sum of roots)² compared without roots: by rational lower bounds of each root
    lower = sum((root_up(s) * (1 - Fraction(1, 2**94)) for s in squares), Fraction(0))
    assert lower**2 <= total.squared <= (lower * (1 + Fraction(1, 2**88))) ** 2


# Rounding ----------------------------------------------------------------------------------------


@given(st.fractions(min_value=0))
def test_root_up_is_above_and_close(square: Fraction) -> None:
    root = root_up(square)
    assert root**2 >= square
    assert root**2 <= square * (1 + Fraction(1, 2**93))


@given(st.fractions(min_value=0, max_denominator=10**40))
def test_root_up_of_a_square_is_exact(root: Fraction) -> None:
    assert root_up(root**2) == root


@given(st.fractions())
def test_float_up_is_the_smallest_binary64_above(value: Fraction) -> None:
    up = float_up(value)
    assert Fraction(up) >= value
    assert Fraction(nextafter(up, -inf)) < value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Fraction(0), 0.0),
        (Fraction(1, 10**400), 5e-324),
        (-Fraction(1, 10**400), 0.0),
        (Fraction(10) ** 400, inf),
        (-(Fraction(10) ** 400), -nextafter(inf, 0.0)),
        (Fraction(1, 10), 0.1),
        (Fraction(3, 10), nextafter(0.3, 1.0)),
        (np.int64(2**62), 2.0**62),
    ],
)
def test_float_up_at_the_edges(value: Fraction, expected: float) -> None:
    assert float_up(value) == expected


@given(st.integers(1, 2**2000), st.integers(1, 2**2000))
def test_capped_is_above_close_and_short(numerator: int, denominator: int) -> None:
    square = Fraction(numerator, denominator)
    capped = _capped(square)
    assert square <= capped <= square * (1 + Fraction(1, 2**254))
    assert capped.numerator.bit_length() + capped.denominator.bit_length() < 4096


def test_digits_do_not_grow_with_the_number_of_operations() -> None:
    total, exact = of(Fraction(1, 3)), Fraction(1, 3)
    for k in range(1, 60):
        total, exact = (
            added(scaled(total, 0.9), of(Fraction(1, 3 + k))),
            exact * Fraction(0.9) + Fraction(1, 3 + k),
        )
    assert exact <= total.root <= exact * (1 + Fraction(1, 2**80))
    assert total.squared.numerator.bit_length() <= 512


# Edges -------------------------------------------------------------------------------------------


def test_zero_sensitivity_stays_exactly_zero() -> None:
    zero = mean_of_bounded(0, 5, REPLACE)
    for derived in (zero, added(zero, zero), scaled(zero, 1e300), clipped(of(3), 0)):
        assert derived.squared == 0
        assert derived.value == 0.0


@pytest.mark.parametrize("value", [Fraction(2) ** 401, Fraction(1, 2**401), 1e-200, 1e200])
def test_sensitivities_that_doubles_cannot_follow_are_refused(value: Fraction) -> None:
    with pytest.raises(InvalidParameter, match="sensitivity"):
        of(value)


def test_fixed_width_integers_do_not_wrap_around() -> None:
    assert of(2**40).squared == Fraction(2) ** 80
    for make in (
        lambda: of(np.int64(2**40)),
        lambda: clipped(of(2.0**50), np.int64(2**40)),
        lambda: mean_of_bounded(np.int32(2**20), 3, REPLACE),
    ):
        with pytest.raises(InvalidParameter, match="wrap"):
            make()


@pytest.mark.parametrize("bad", [-1, -1e-300, float("nan"), inf, True, "1", None, 1j])
def test_bounds_outside_their_range_are_refused(bad: object) -> None:
    for make in (
        lambda: of(bad),
        lambda: mean_of_bounded(bad, 3, REPLACE),
        lambda: sum_of_bounded(bad, REPLACE),
        lambda: clipped(of(1), bad),
        lambda: linearly_mapped(of(1), bad),
        lambda: strongly_convex_argmin(bad, 1, 0, 3, REPLACE),
        lambda: strongly_convex_argmin(1, bad, 0, 3, REPLACE),
        lambda: strongly_convex_argmin(1, 1, bad, 3, REPLACE),
    ):
        with pytest.raises(InvalidParameter, match=" must "):
            make()


@pytest.mark.parametrize("bad", [float("nan"), inf, -inf, True, "2"])
def test_factors_are_finite_numbers(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="factor"):
        scaled(of(1), bad)


@pytest.mark.parametrize("bad", [0, -1, 2.0, True, Fraction(3), None])
def test_counts_are_positive_whole_numbers(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="count"):
        mean_of_bounded(1, bad, REPLACE)
    with pytest.raises(InvalidParameter, match="count"):
        strongly_convex_argmin(1, 1, 0, bad, REPLACE)


def test_modulus_zero_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="modulus"):
        strongly_convex_argmin(1, 0, 0, 3, REPLACE)


def test_feature_columns_have_no_record_rule() -> None:
    for make in (
        lambda: mean_of_bounded(1, 3, Adjacency.REPLACE_FEATURE_COLUMN),
        lambda: sum_of_bounded(1, Adjacency.REPLACE_FEATURE_COLUMN),
        lambda: strongly_convex_argmin(1, 1, 0, 3, Adjacency.REPLACE_FEATURE_COLUMN),
    ):
        with pytest.raises(InvalidParameter, match="adjacency"):
            make()


@pytest.mark.parametrize("rule", [added, concatenated, concatenated_disjoint])
def test_relations_and_norms_never_mix(rule) -> None:
    with pytest.raises(AdjacencyMismatch, match="replace-one and zero-out-one"):
        rule(of(1), of(1, adjacency=ZERO))
    with pytest.raises(InvalidParameter, match="norm"):
        rule(of(1), of(1, norm=Norm.L1))


def test_an_l2_projection_has_no_l1_rule() -> None:
    with pytest.raises(InvalidParameter, match="norm"):
        clipped(of(1, norm=Norm.L1), 1)


# Derivations -------------------------------------------------------------------------------------


def test_equality_and_hash_ignore_the_derivation() -> None:
    derived, typed_in = mean_of_bounded(1, 2, REPLACE), of(1)
    assert derived == typed_in
    assert hash(derived) == hash(typed_in)
    assert derived != of(1, adjacency=ZERO)
    assert derived != of(1, norm=Norm.L1)
    assert derived != of(nextafter(1.0, 2.0))


def test_assumptions_surface_once_from_any_depth() -> None:
    first = declared(1, "first reason", adjacency=REPLACE)
    second = declared(2, "second reason", adjacency=REPLACE)
    tree = clipped(added(scaled(first, 3), concatenated(second, first)), 1)
    assert tree.assumptions == ("first reason", "second reason")
    assert mean_of_bounded(1, 2, REPLACE).assumptions == ()


@pytest.mark.parametrize("reason", ["", "  "])
def test_a_declared_bound_says_why(reason: str) -> None:
    with pytest.raises(InvalidParameter, match="reason"):
        declared(1, reason, adjacency=REPLACE)


def test_a_derivation_must_conclude_the_bound() -> None:
    with pytest.raises(InvalidParameter, match="derivation"):
        Sensitivity(Norm.L2, REPLACE, Fraction(1), Derivation("declared", Fraction(2)))


def test_an_inexact_square_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="squared"):
        Sensitivity(Norm.L2, REPLACE, 0.25, Derivation("declared", 0.25))


def test_a_derivation_reads_as_a_tree() -> None:
    tree = clipped(mean_of_bounded(1, 4, REPLACE), 2)
    assert tree.derivation.lines() == [
        "clip(radius=2): 0.5",
        "  mean-of-bounded(bound=1, count=4): 0.5",
    ]


def test_zero_rounded_down_has_no_sign() -> None:
    assert str(float_down(0)) == str(float_down(Fraction(1, 10**400))) == "0.0"
