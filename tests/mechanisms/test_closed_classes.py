"""Public facts are answered by the program's own classes, in plain numbers.

A column, a shape or a bound that a caller derives from ours could be one for the price and another
for the value: records were released uncut at the price of cut ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpledger.audits import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    BoundedColumn,
    DataShape,
    EventList,
    FixedBatch,
    InvalidParameter,
    LocalProblem,
    Poisson,
    PrivateDataset,
    PrivateTable,
    RandomisedResponse,
    RealLabels,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    Sensitivity,
    concatenate,
    concatenate_disjoint,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.cluster_records import ClusterRows
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.labels import ClassLabels, SignLabels, WeightedLabels
from dpledger.mechanisms.local_data import LocalDataset
from dpledger.mechanisms.private_table import CategoryColumn, TableShape
from dpledger.mechanisms.rounding import Rounding, exact
from dpledger.mechanisms.row_blocks import RowBlocks
from dpledger.mechanisms.sensitivity import Derivation, scaled
from dpledger.mechanisms.subsampling import SampledPart
from dpledger.mechanisms.vertical_data import VerticalDataset, VerticalShape
from dpledger.solvers import Logistic
from dpledger.solvers.losses import ClippedLogistic, Shifted


@pytest.mark.parametrize(
    "kind",
    [
        PrivateDataset,
        PrivateTable,
        LocalDataset,
        VerticalDataset,
        Sensitive,
        Sensitivity,
        Derivation,
        Rounding,
        SampledPart,
        DataShape,
        TableShape,
        VerticalShape,
        SignLabels,
        ClassLabels,
        RealLabels,
        WeightedLabels,
        BoundedColumn,
        CategoryColumn,
        ClusterRows,
        RowBlocks,
        RandomisedResponse,
        LocalProblem,
    ],
)
def test_no_class_from_elsewhere_answers_for_what_prices_rest_on(kind: type) -> None:
    """A column that rounds no cell, a shape of a larger count, blocks of rows that are not cut."""
    with pytest.raises(TypeError, match=r"no class derived from \w+: prices rest on it"):
        type("Other", (kind,), {"__slots__": ()})


class _Many(int):
    """1,000, and no comparison tells that it is more than another number."""

    def __gt__(self, other: object) -> bool:
        return False

    __le__ = __ge__ = lambda self, other: True
    __lt__ = __gt__


class _Counts(tuple[int, ...]):
    """Counts that are others when they are iterated over."""

    def __iter__(self) -> Iterator[int]:
        return iter([1000])


@pytest.mark.parametrize(
    ("adjacency", "bounds"),
    [
        ("add-remove-one", {"n_min": _Many(1000), "n_max": 2000}),
        ("replace-one", {"party_counts": _Counts([2])}),
    ],
)
def test_a_bound_on_counts_is_a_plain_number(adjacency: str, bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="count"):
        PrivateDataset(np.eye(3), np.ones(3), adjacency=adjacency, row_bound=1.0, **bounds)


class _Number(float):
    """A number whose own arithmetic NumPy would call with the private array beside it."""

    __array_ufunc__ = None


@pytest.mark.parametrize(
    "made",
    [
        lambda: Poisson(_Number(0.5)),
        lambda: RandomisedResponse(_Number(0.6)),
        lambda: RealLabels(_Number(1.0)),
        lambda: BoundedColumn(_Number(0.0), 1.0),
        lambda: BoundedColumn(0.0, 1.0, _Number(0.5)),
        lambda: LocalProblem(np.zeros(3), _Number(1.0), 1.0, 1.0, 1.0, 0.1),
        lambda: ClippedLogistic(_Number(0.5)),
        lambda: Shifted(Logistic(), _Number(0.0)),
    ],
)
def test_a_parameter_is_a_plain_number(made: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter, match="must be"):
        made()


@dataclass
class _Writing:
    """Slopes that write the public point once they see records, whose labels no trial has."""

    point: NDArray[np.float64]
    outputs = 1
    label_domain = RealLabels(3.0)
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1)

    def value(self, scores: Any, labels: Any) -> Any:
        return np.log(np.cosh(scores - labels))

    def derivative(self, scores: Any, labels: Any) -> Any:
        if np.any(labels == 2.5):
            self.point[:] = 50.0
        return np.tanh(scores - labels)


def test_a_point_stays_what_it_was_when_it_was_handed_in() -> None:
    rows = np.random.default_rng(0).normal(size=(20_000, 20))
    data = AuditDataset(
        rows,
        np.full(20_000, 2.5),
        adjacency="replace-one",
        row_bound=1.0,
        label_domain=RealLabels(3.0),
    )
    point = np.zeros(20)
    found = private_value(data.mean_gradient(_Writing(point), point))
    assert point[0] == 50.0
    plain = private_value(data.mean_gradient(_Writing(np.zeros(20)), np.zeros(20)))
    np.testing.assert_allclose(found, plain, atol=1e-12)


class _StandIn:
    """Hands every question on, but for those that it has an answer to."""

    def __init__(self, real: Any, **answers: Any) -> None:
        self.__dict__.update(answers, real=real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    @property
    def __class__(self) -> Any:
        return type(self.real)


def test_what_stands_in_for_a_private_value_is_not_taken_for_it() -> None:
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)
    value = data.sum_gradient(Logistic(), np.zeros(3))
    tiny = scaled(value.sensitivity, Fraction(1, 1000))
    cheap: Any = _StandIn(value, sensitivity=tiny)
    larger: Any = _StandIn(data, shape=replace(data.shape, count=1000, n_max=2000))
    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(1))
    ways: list[Callable[[], object]] = [
        lambda: curator.release(cheap, noise_multiplier=1.0, round=1, release="x"),
        lambda: curator.release_unprotected(cheap, reason="x", round=1, release="x"),
        lambda: concatenate(value * 1e-6, cheap),
        lambda: concatenate_disjoint(value, cheap),
        lambda: curator.sample(larger, FixedBatch(2)),
        lambda: CentredRows(larger, np.zeros(3), radius=1.0),
    ]
    for way in ways:
        with pytest.raises(InvalidParameter, match="itself"):
            way()
    with pytest.raises((InvalidParameter, TypeError, ValueError)):
        value * 1e-6 + cheap
    part: Any = _StandIn(tiny, root=Fraction(-1))
    with pytest.raises(InvalidParameter, match="itself"):
        Sensitive(part, exact(Fraction(0), width=3), parties=value.parties, dimension=3)
    assert not sink.events


def test_a_local_problem_is_not_taken_from_what_stands_in_for_one() -> None:
    """Its pull was believed, a thousand times as long as the bound it was priced by."""
    data = VerticalDataset(
        [np.eye(3)],
        np.ones(3),
        adjacency=Adjacency.REPLACE_ONE,
        parties=("one",),
        public_labels=True,
    )
    problem = LocalProblem(np.zeros(3), 1.0, 1.0, 1e-6, 1.0, 1e-3)
    longer: Any = _StandIn(problem, pull=np.full(3, 1e3))
    for ask in (data.minimiser, data.predictions):
        with pytest.raises(InvalidParameter, match="itself"):
            ask("one", longer)


@pytest.mark.parametrize("weights", [None, np.ones(1)])
def test_a_minimisers_modulus_stays_what_it_is_priced_by(weights: Any) -> None:
    """It was read again when the other points were, and so after they could write to it."""
    modulus, shared = np.ones(1), np.zeros((1, 3))

    class Writing:
        def __array__(self, *_: object, **__: object) -> Any:
            modulus[:] = 1e-3
            return shared

    data = AuditDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)
    found, plain = (
        private_value(
            data.strongly_convex_argmin(
                Logistic(),
                modulus=m,
                linear=linear,
                tolerance=1e-3,
                start=shared,
                weights=weights,
            )
        )
        for m, linear in ((modulus, Writing()), (1.0, shared))
    )
    assert modulus[0] == 1e-3
    np.testing.assert_array_equal(found, plain)


def test_a_table_reads_columns_and_cells_once() -> None:
    """Priced by one pair of bounds a column was cut to another; n was one of no cells."""

    class Changing(dict[str, BoundedColumn]):
        def __getitem__(self, name: str) -> BoundedColumn:
            return BoundedColumn(0, 1000, 1.0)

    class Longer:
        shape = (1000,)

        def __array__(self, *_: object, **__: object) -> Any:
            return np.array([5.0, 5.0])

    table = PrivateTable(
        {"x": Longer()},  # type: ignore[dict-item]
        Changing(x=BoundedColumn(0, 1, 1.0)),
        adjacency="replace-one",
    )
    assert table.shape.count == 2
    assert table.mean("x").sensitivity.value == 500.0


def test_a_statistic_is_of_the_column_that_it_is_priced_for() -> None:
    """A name, and a list of names, that were others when the cells were summed."""
    cells = {"narrow": np.zeros(3), "wide": np.array([0.0, 0.0, 1000.0])}
    columns = {"narrow": BoundedColumn(0, 1, 1.0), "wide": BoundedColumn(0, 1000, 1.0)}
    curator = SamplingCurator(EventList(), SeededSampler(1))

    class Name(str):
        """The narrow column's, whatever it is compared with at first, and then the wide one's."""

        turns = 0

        def __hash__(self) -> int:
            self.turns += 1
            return hash("narrow" if self.turns < 2 else "wide")

        def __eq__(self, other: object) -> bool:
            return other == ("narrow" if self.turns < 2 else "wide")

    class Names(list[str]):
        turns = 0

        def __iter__(self) -> Iterator[str]:
            self.turns += 1
            return iter(["narrow" if self.turns < 2 else "wide"])

    table = PrivateTable(cells, columns, adjacency="replace-one")
    asked: list[Callable[[], Sensitive]] = [
        lambda: table.sum(Name("narrow")),
        lambda: table.mean(Name("narrow")),
        lambda: table.second_moments(Names(["narrow"])),
    ]
    for ask in asked:
        sensitive = ask()
        bound = sensitive.sensitivity.value
        message = curator.release(sensitive, noise_std=1e-6, round=1, release="x")
        assert abs(float(message[0, 0])) < 1e-3 or bound > 100


def test_an_answer_is_drawn_by_the_truth_that_is_written() -> None:
    """A stand-in for randomised response that says another truth each time."""
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)
    truths = iter([0.6, *[1.0] * 100])

    class Changing(_StandIn):
        truth = property(lambda _: next(truths))

    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(1))
    said: Any = Changing(RandomisedResponse(0.6))
    curator.release(data.answers(), mechanism=said, round=1, release="x")
    assert sink.events[0].mechanism == RandomisedResponse(0.6)
    assert type(sink.events[0].mechanism) is RandomisedResponse
