"""No traceback of a refused release shows private numbers, even with the frames' variables."""

import dataclasses
import inspect
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dpledger.mechanisms
from dpledger.audits import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    BoundedColumn,
    Event,
    EventList,
    FixedBatch,
    InvalidParameter,
    PrivateDataset,
    PrivateTable,
    SamplingCurator,
    SeededSampler,
    SystemSampler,
    VerticalDataset,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.inside import private_value, records_of
from dpledger.mechanisms.protocols import FloatArray, Provenance
from dpledger.runs.estimators import PrivateAdmmClassifier, PrivateAdmmRegressor
from dpledger.solvers import Logistic

ENTRY = 0.123456789
LAYOUTS: dict[str, Callable[[Any], Any]] = {"dense": np.asarray, "sparse": sparse.csr_array}


class Refusing(EventList):
    """Refuses every reservation, as a budget would, or every commit, as a full disk would."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self.step = step

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        if self.step == "reserve":
            raise OSError("refused")
        return super().reserve(events, provenance)

    def commit(self, token: int, message: FloatArray, /) -> None:
        raise OSError("refused")


def made(kind: type[PrivateDataset], layout: Callable[[Any], Any]) -> PrivateDataset:
    return kind(
        layout(np.full((4, 1), ENTRY)), np.ones(4), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
    )


def shown(error: BaseException) -> str:
    """Return a traceback as a debugger or an error tracker prints it, variables and all."""
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def digits(number: float) -> str:
    return f"{abs(number):.12f}"[:8]


RELEASES: dict[str, Callable[[SamplingCurator, PrivateDataset], object]] = {
    "gaussian": lambda curator, data: curator.release(
        data.mean_gradient(Logistic(), np.zeros(1)), round=1, release="g", noise_std=1.0
    ),
    "unprotected": lambda curator, data: curator.release_unprotected(
        data.mean_gradient(Logistic(), np.zeros(1)), round=1, release="g", reason="a test"
    ),
    "centred": lambda curator, data: curator.release(
        CentredRows(data, np.zeros(1), radius=1.0).mean_gradient(Logistic(), np.zeros(1)),
        round=1,
        release="g",
        noise_std=1.0,
    ),
    "sampled": lambda curator, data: curator.release(
        curator.sample(data, FixedBatch(3)).sum_gradient(Logistic(), np.zeros(1)),
        round=1,
        release="g",
        noise_std=1.0,
    ),
}


@pytest.mark.parametrize("step", ["reserve", "commit"])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_refused_release_shows_no_private_number(layout: str, release: str, step: str) -> None:
    data = made(PrivateDataset, LAYOUTS[layout])
    curator = SamplingCurator(Refusing(step), SystemSampler())
    try:
        RELEASES[release](curator, data)
    except Exception as error:
        text = shown(error)
    assert "OSError: refused" in text
    assert "release = " in text
    mean = private_value(made(AuditDataset, LAYOUTS[layout]).mean_gradient(Logistic(), np.zeros(1)))
    assert mean is not None
    value = float(mean[0, 0])
    for private in (ENTRY, value, 3 * value):
        # what leaves without protection is public once it is paid for
        if (release, step) != ("unprotected", "commit"):
            assert digits(private) not in text


WITH_A_WORD = np.array([["0,123456789"], [0.5]], dtype=object)
SIGNS = np.array([1.0, -1.0])
HANDLES: dict[str, Callable[[], object]] = {
    "rows": lambda: PrivateDataset(
        WITH_A_WORD, SIGNS, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
    ),
    "labels": lambda: PrivateDataset(
        np.ones((2, 1)), WITH_A_WORD[:, 0], adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
    ),
    "columns": lambda: VerticalDataset(
        [WITH_A_WORD],
        SIGNS,
        adjacency=Adjacency.REPLACE_ONE,
        parties=("a",),
        public_labels=True,
    ),
    "a table": lambda: PrivateTable(
        {"age": WITH_A_WORD[:, 0]}, {"age": BoundedColumn(0, 1)}, adjacency="replace-one"
    ),
    "an integer too large": lambda: PrivateDataset(
        np.array([[10**400], [1]]), SIGNS, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
    ),
    "a classifier's rows": lambda: PrivateAdmmClassifier(
        epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE
    ).fit(WITH_A_WORD, SIGNS),
    "weights": lambda: PrivateAdmmClassifier(
        epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE
    ).fit(np.ones((2, 1)), SIGNS, sample_weight=WITH_A_WORD[:, 0]),
    "a regressor's targets": lambda: PrivateAdmmRegressor(
        epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, target_bounds=(0.0, 1.0)
    ).fit(np.ones((2, 1)), WITH_A_WORD[:, 0]),
}


@pytest.mark.parametrize("handle", HANDLES)
def test_what_is_no_number_is_refused_without_a_word_of_it(handle: str) -> None:
    with pytest.raises(InvalidParameter, match="numbers") as refused:
        HANDLES[handle]()
    text = "".join(traceback.format_exception(refused.value))
    assert "123456789" not in text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_record_that_holds_private_arrays_shows_them(layout: str) -> None:
    data = made(AuditDataset, LAYOUTS[layout])
    records = records_of(data)
    view = CentredRows(data, np.zeros(1), radius=1.0)._view(records, slice(None))
    vertical = VerticalDataset(
        [np.full((4, 1), ENTRY)],
        np.ones(4),
        adjacency=Adjacency.REPLACE_ONE,
        parties=("a",),
        public_labels=False,
    )
    columns = vertical._held()
    sample = SamplingCurator(EventList(), SeededSampler(1)).sample(data, FixedBatch(3))
    for holder in (records, view, columns, *columns.blocks, vertical, sample, sample._draw):
        text = repr(holder)
        assert digits(ENTRY) not in text
        assert "array(" not in text


def test_a_dataclass_that_shows_its_arrays_holds_public_ones() -> None:
    """A new one is public, or gets `repr=False`."""
    shown_kinds = set()
    for module in iter_modules(dpledger.mechanisms.__path__, "dpledger.mechanisms."):
        for kind in vars(import_module(module.name)).values():
            if inspect.isclass(kind) and dataclasses.is_dataclass(kind):
                types = " ".join(str(field.type) for field in dataclasses.fields(kind))
                if "rray" in types and vars(kind)["__dataclass_params__"].repr:
                    shown_kinds.add(kind.__name__)
    assert shown_kinds == {"Iteration", "LocalProblem", "Release"}
