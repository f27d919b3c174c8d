"""Public facts are answered by the program's own classes, in plain numbers.

A column, a shape or a bound that a caller derives from ours could be one for the price and another
for the value: records were released uncut at the price of cut ones.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from dpledger.mechanisms import (
    BoundedColumn,
    DataShape,
    InvalidParameter,
    PrivateDataset,
    PrivateTable,
    RandomisedResponse,
    RealLabels,
    Sensitive,
    Sensitivity,
)
from dpledger.mechanisms.labels import ClassLabels, SignLabels, WeightedLabels
from dpledger.mechanisms.layout import RowBlocks
from dpledger.mechanisms.local_data import LocalDataset
from dpledger.mechanisms.private_table import CategoryColumn, TableShape
from dpledger.mechanisms.rounding import Rounding
from dpledger.mechanisms.sensitivity import Derivation
from dpledger.mechanisms.subsampling import SampledPart
from dpledger.mechanisms.vertical_data import VerticalDataset, VerticalShape


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
        RowBlocks,
        RandomisedResponse,
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
