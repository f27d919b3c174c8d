"""Values move by no more than is priced, at any magnitude, or public numbers refuse them."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.parameters import slow

from dpledger.audits import AuditDataset
from dpledger.audits.datasets import VerticalAuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    InvalidParameter,
    Sensitive,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.clipping import cut_slopes, cut_to_bound, lengths
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.labels import LabelDomain
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.sensitivity import root_up
from dpledger.mechanisms.vertical_data import LocalProblem
from dpledger.solvers import Logistic

REPLACE = Adjacency.REPLACE_ONE


@dataclass(frozen=True)
class Flat:
    """Slopes of one size: ±size for labels ±1; of three outputs, size for the label's."""

    size: float
    outputs: int = 1

    @property
    def label_domain(self) -> LabelDomain:
        return SIGNS if self.outputs == 1 else ClassLabels(3)

    @property
    def derivative_bound(self) -> Fraction:
        return Fraction(self.size)

    curvature_bound = None

    def value(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        return scores

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        if self.outputs == 1:
            return np.asarray(-self.size * labels + 0.0 * scores)
        return np.asarray(-self.size * (labels[..., None] == np.arange(3)) + 0.0 * scores)


Operation = Callable[[AuditDataset, Flat, float], Sensitive]
OPERATIONS: dict[str, Operation] = {
    "mean": lambda data, loss, radius: data.mean_gradient(loss, np.zeros(2 * loss.outputs)),
    "sum": lambda data, loss, radius: data.sum_gradient(loss, np.zeros(2 * loss.outputs)),
    "cut sum": lambda data, loss, radius: data.sum_gradient(
        loss, np.zeros(2 * loss.outputs), radius=radius
    ),
    "centred": lambda data, loss, radius: CentredRows(
        data, np.array([data.shape.row_bound / 2, 0.0]), radius=radius
    ).mean_gradient(loss, np.zeros(2 * loss.outputs)),
    "squares": lambda data, loss, radius: CentredRows(
        data,
        np.array([data.shape.row_bound / 2, 0.0]),
        radius=radius,
        scale=np.full(2, 32 * radius / data.shape.row_bound),
    ).mean_squares(),
    "moment": lambda data, loss, radius: data.second_moment(),
}


def moved_at_most(first: Sensitive, second: Sensitive) -> bool:
    """Return whether two computed values lie within the price of each other, in exact numbers."""
    one, other = private_value(first), private_value(second)
    assert one is not None
    assert other is not None
    pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
    moved = sum(((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs), Fraction(0))
    price = first.sensitivity.root + 2 * first.rounding.error * root_up(Fraction(one.shape[-2]))
    return moved <= price**2


@pytest.mark.parametrize(
    ("name", "outputs"),
    [
        *((name, 1) for name in OPERATIONS if name not in ("mean", "sum")),
        ("mean", 3),
        *slow(("mean", 1), ("sum", 1), *((name, 3) for name in OPERATIONS if name != "mean")),
    ],
)
def test_values_move_by_no_more_than_their_price_or_are_refused_for_all_data(
    name: str, outputs: int
) -> None:
    rng, taken, ordinary = np.random.default_rng(11), 0, []
    sizes = [*rng.uniform(-300, 300, size=(60, 3)), *rng.uniform(-6, 6, size=(20, 3))]
    # cut slopes that are subnormal numbers: a radius over a row's length
    sizes += [np.array([-200.0, 123.5 + t, 0.0]) for t in rng.uniform(-1.0, 0.5, size=20)]
    for radius, bound, slope in 10.0 ** np.array(sizes):
        if name in ("centred", "squares") and rng.random() < 0.7:
            radius = bound * 10.0 ** rng.uniform(-1.8, 1.0)
        found: list[Sensitive] = []
        refused = 0
        for first in ((1.0, 0.0), (-1.0, 0.0), (1e-160, 1e-300)):
            with np.errstate(all="ignore"):
                rows = rng.permutation(np.full((4, 2), 0.1)) * bound
                rows[0] = np.array(first) * bound
            try:
                loss = Flat(float(slope), outputs)
                data = AuditDataset(
                    rows,
                    np.ones(4),
                    adjacency=REPLACE,
                    row_bound=float(bound),
                    label_domain=loss.label_domain,
                )
                found.append(OPERATIONS[name](data, loss, float(radius)))
            except InvalidParameter:
                refused += 1
        assert refused in (0, 3)  # a matter of public numbers
        if min(bound, slope) >= 1e-6 and max(bound, slope) <= 1e6:
            ordinary.append(refused == 0)
        for one in found:
            for other in found:
                assert moved_at_most(one, other)
        taken += bool(found)
    assert taken >= 15
    assert name in ("centred", "squares") or np.mean(ordinary) > 0.9


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1.0, 1e170])
@pytest.mark.parametrize("outputs", [1, 3])
def test_slopes_are_no_longer_than_their_bound_at_any_magnitude(size: float, outputs: int) -> None:
    """Squares of 1e-170 are 0: slopes that long would pass a bound of 1e-200 uncut."""
    slopes = np.full((5, outputs) if outputs > 1 else 5, 10.0 * size)
    cut = cut_to_bound(slopes.copy(), Fraction(size), outputs)
    exact = [sum(Fraction(c) ** 2 for c in np.atleast_1d(row).tolist()) for row in cut]
    assert max(exact) <= Fraction(size) ** 2
    assert min(exact) >= (Fraction(size) * (1 - Fraction(1, 2**47))) ** 2


@pytest.mark.parametrize("bound", [1.5e-323, 1e-308, 1e300])
def test_row_bounds_where_underflow_outgrows_rounding_are_refused(bound: float) -> None:
    """Cut to a few of the smallest doubles, rows of many columns were longer than the bound."""
    with pytest.raises(InvalidParameter, match=r"row_bound=.* must be in \[2\^-900, 2\^900\]"):
        AuditDataset(np.ones((4, 35)), np.ones(4), adjacency=REPLACE, row_bound=bound)


@pytest.mark.parametrize("norm", [3.9e123, 1e110, 1.0])
def test_a_slope_that_is_cut_to_a_subnormal_number_is_not_rounded_up(norm: float) -> None:
    radius = 1e-200
    found = cut_slopes(np.ones((1, 1)), np.array([norm]), radius, 1)
    assert Fraction(float(found[0, 0])) * Fraction(norm) <= Fraction(radius)


@pytest.mark.parametrize("radius", [1e-200, 1e-170, 1e-60, 1.0])
def test_no_minimiser_leaves_its_ball_because_its_square_underflows(radius: float) -> None:
    """Squares of 1e-170 are 0: a point that long would pass a radius of 1e-200 uncut."""
    data = VerticalAuditDataset(
        [np.eye(3)], np.ones(3), adjacency=REPLACE, parties=("a",), public_labels=True
    )
    try:
        problem = LocalProblem(
            pull=np.full(3, -1e30 * radius),
            penalty=1.0,
            modulus=1.0,
            slope_bound=1.0,
            radius=radius,
            tolerance=1e-3,
        )
        found = private_value(data.minimiser("a", problem))
    except InvalidParameter:
        assert radius < 2.0**-230
        return
    assert found is not None
    assert lengths(found).max() <= radius


@pytest.mark.parametrize("layout", [np.asarray, csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("size", [0.1, 1e200, 1e308, 1e-310])
def test_no_size_of_a_record_makes_a_warning(
    layout: Callable[[FloatArray], FloatArray], size: float
) -> None:
    rows = np.full((20, 2), 0.1)
    rows[0] = size
    with np.errstate(all="raise"):
        data = AuditDataset(layout(rows), np.ones(20), adjacency=REPLACE, row_bound=1.0)
        data.mean_gradient(Logistic(), np.full((1, 2), 1e99))
        data.second_moment()
        data.sum_gradient(Logistic(), np.full((1, 2), -1e99), radius=1e-9)


def test_no_size_of_a_vertical_record_makes_a_warning() -> None:
    with np.errstate(all="raise"):
        for size, bound in ((1e308, 1.0), (1e200, 1e3), (1e-200, 1.0), (5e-324, 1e-3)):
            rows = np.full((4, 2), 0.1)
            rows[0] = size
            data = VerticalAuditDataset(
                [rows],
                np.ones(4),
                adjacency=REPLACE,
                parties=("a",),
                public_labels=False,
                row_bound=bound,
            )
            data.dual(Logistic(), np.full(4, 1e3), penalty=1.0, tolerance=1e-6)
            problem = LocalProblem(
                pull=np.ones(4),
                penalty=1.0,
                modulus=0.1,
                slope_bound=1.0,
                radius=1.0,
                tolerance=1e-6 * max(1.0, bound) ** 4,
            )
            data.minimiser("a", problem)
            data.scores("a", np.full(2, 1e-99))
