"""Handles without names pay with everybody; samplers of one's own show 64 bits that change."""

import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpledger as dp
from dpledger.accounting import Budget, MemoryLedger, certify, verify
from dpledger.accounting.ledger.budget import BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.mechanisms import (
    Adjacency,
    BoundedColumn,
    EventList,
    ExactSampler,
    InvalidParameter,
    PrivateDataset,
    PrivateTable,
    Provenance,
    SamplingCurator,
    SystemSampler,
    concatenate_disjoint,
)
from dpledger.runs.estimators import PrivateAdmmClassifier, PrivateSharingClassifier
from dpledger.solvers import LinearLoss, Summed

REPLACE = Adjacency.REPLACE_ONE
APART = "every record belongs to one party, and who holds which record is public and fixed"
ROWS, LABELS = np.tile([[0.6, 0.8]], (80, 1)), np.where(np.arange(80) % 3 > 0, 1.0, -1.0)


def handle(**named: Any) -> PrivateDataset:
    """Return a handle of the same eighty records."""
    return PrivateDataset(ROWS, LABELS, adjacency=REPLACE, row_bound=1.0, **named)


BY_NAME = {"parties": ("north", "south"), "party_of": np.repeat([0, 1], 40)}


def release(held: PrivateDataset, curator: SamplingCurator, at: int) -> None:
    """Release a gradient at noise of twice its sensitivity: mu 1/2."""
    gradient = held.mean_gradient(LinearLoss(), np.zeros(2))
    curator.release(gradient, round=at, release="gradient", noise_multiplier=2.0)


@pytest.mark.parametrize("first", [{}, {"parties": ("all",)}])
@pytest.mark.parametrize("second", [{}, BY_NAME])
def test_records_without_a_party_pay_for_what_is_released_of_named_ones_too(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Their default name was a party like any other, and both paid for the dearer of two only."""
    sink = EventList()
    curator = SamplingCurator(sink, SystemSampler())
    for at, held in enumerate((handle(**first), handle(**second)), 1):
        release(held, curator, at)
    found = dp.guarantee(sink.events, delta=1e-5)
    assert found.mu.upper_float == pytest.approx(0.5**0.5, rel=1e-9)
    proved = verify(certify(sink.events, delta=1e-5).to_json_bytes())
    alone = dp.guarantee(sink.events[:1], delta=1e-5)
    assert Fraction(proved.values[1]) >= Fraction(found.epsilon.lower_float)
    assert found.epsilon.lower_float > 1.3 * alone.epsilon.upper_float


def test_a_budget_counts_both() -> None:
    ledger = MemoryLedger()
    alone = EventList()
    release(handle(), SamplingCurator(alone, SystemSampler()), 1)
    once = dp.guarantee(alone.events, delta=1e-5).epsilon.upper_float
    ledger.set_budget(Budget(ApproxDp(1.2 * once, 1e-5), adjacency=REPLACE))
    curator = SamplingCurator(ledger.run("both", configuration_hash="x"), SystemSampler())
    release(handle(), curator, 1)
    with pytest.raises(BudgetExceeded):
        release(handle(**BY_NAME), curator, 2)


def test_a_guarantee_says_that_records_belong_to_one_party_where_it_counts_on_it() -> None:
    """Certificates said so, and what is printed without one did not."""
    for named, said in (({}, ()), ({"parties": ("only",)}, ()), (BY_NAME, (APART,))):
        sink = EventList()
        release(handle(**named), SamplingCurator(sink, SystemSampler()), 1)
        assert dp.guarantee(sink.events, delta=1e-5).assumptions == said


class Own(ExactSampler):
    """Words of a generator of one's own."""

    def __init__(self, words: Callable[[int], Any]) -> None:
        self._words = words

    @property
    def provenance(self) -> Provenance:
        return Provenance("exact-own", None)

    def words(self, count: int) -> Any:
        return self._words(count)


@pytest.mark.parametrize(
    "words",
    [
        np.random.MT19937().random_raw,  # uint64 by its type, below 2^32 all the same
        lambda count: np.random.PCG64().random_raw(count).astype(np.uint32),
        lambda count: np.random.PCG64().random_raw(count).view(np.int64),
        lambda count: np.random.PCG64().random_raw(count).tolist(),
        lambda count: np.random.PCG64().random_raw(count)[: count // 2],
        lambda count: np.random.PCG64().random_raw(count) | np.uint64(1),
    ],
)
def test_words_that_are_not_of_64_fair_bits_are_refused_before_anything_is_released(
    words: Callable[[int], Any],
) -> None:
    """Words of 32 bits made no noise of any kind, at full price; other types fell when paid."""
    with pytest.raises(InvalidParameter, match=r"uint64 of shape|64 fair bits"):
        SamplingCurator(EventList(), Own(words))


def test_words_of_a_good_generator_are_taken() -> None:
    sink = EventList()
    release(handle(), SamplingCurator(sink, Own(np.random.PCG64().random_raw)), 1)
    assert len(sink.events) == 1


@pytest.mark.parametrize("swapped", [False, True])
def test_unnamed_records_are_no_party_beside_others(swapped: bool) -> None:
    """Rows of disjoint parties cost what the dearer one does; unnamed records may be in both."""
    named = PrivateDataset(ROWS, LABELS, adjacency=REPLACE, row_bound=1.0, parties=("north",))
    parts = [each.mean_gradient(LinearLoss(), np.zeros(2)) for each in (handle(), named)]
    with pytest.raises(InvalidParameter, match="of other parties"):
        concatenate_disjoint(*(reversed(parts) if swapped else parts))


def test_a_filter_of_warnings_that_is_put_before_ours_leaves_no_second_one() -> None:
    with warnings.catch_warnings():
        held = handle()
        for _ in range(20):
            warnings.simplefilter("default")
            held.mean_gradient(LinearLoss(), np.zeros(2))
        assert len(warnings.filters) == len({id(each) for each in warnings.filters})


CELLS = np.array([31.25, 44.5, 67.75, 52.125])


@pytest.mark.parametrize(
    "cells",
    [
        CELLS,
        CELLS.tolist(),
        CELLS[:, None],
        set(CELLS.tolist()),
        np.array([(each,) for each in CELLS], dtype=[("age", float)]),
        pytest.param("pandas", id="a series"),
        pytest.param("pyarrow", id="a column"),
    ],
)
def test_a_column_for_a_table_is_refused_without_a_look_at_it(cells: Any) -> None:
    """Its values were taken for names of columns, and printed."""
    if isinstance(cells, str):
        module = pytest.importorskip(cells)
        cells = module.Series(CELLS) if cells == "pandas" else module.chunked_array([CELLS])
    with pytest.raises(InvalidParameter, match="a mapping or a frame") as refused:
        PrivateTable(cells, {"age": BoundedColumn(18, 90)}, adjacency=REPLACE)
    assert not any(str(each) in str(refused.value) for each in CELLS)
    assert "44.5" not in repr(refused.value.__dict__)


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "dict"])
def test_frames_and_mappings_are_tables(kind: str) -> None:
    cells: Any = {"age": CELLS, "columns": CELLS}
    if kind == "pandas":
        cells = pytest.importorskip("pandas").DataFrame(cells)
    if kind == "pyarrow":
        cells = pytest.importorskip("pyarrow").table(cells)
    columns = {"age": BoundedColumn(18, 90), "columns": BoundedColumn(18, 90)}
    held = PrivateTable(cells, columns, adjacency=REPLACE)
    assert held.shape.count == 4
    with pytest.raises(InvalidParameter, match="those of"):
        PrivateTable(cells, {"age": columns["age"]}, adjacency=REPLACE)


def test_estimators_and_federations_of_one_party_called_all_are_as_others() -> None:
    """Records without parties say so of themselves; a search had 500 times the noise."""
    rows, labels = np.tile(ROWS, (5, 1)), np.tile(LABELS, 5) > 0
    rows[:, 0] *= np.where(labels, 1.0, -1.0)
    noise = []
    for parties in (["all"], ["x"]):
        fit = PrivateAdmmClassifier(
            epsilon=1.0, delta=1e-5, adjacency="replace-one", classes=(False, True),
            candidates=[{"rounds": 1}, {"rounds": 2}], parties=parties, threat_model=Summed(),
            random_state=1,
        ).fit(rows, labels)  # fmt: skip
        noise.append(fit.noise_multiplier_)
    assert noise[0] == noise[1]


@pytest.mark.parametrize("own", [CELLS, CELLS.astype(int), ["age"], [0.7]])
def test_columns_for_places_of_columns_are_refused_without_a_look(own: Any) -> None:
    fit = PrivateSharingClassifier(
        epsilon=1.0, delta=1e-5, adjacency="replace-one", public_labels=True,
        parties={"bank": own, "shop": [1]}, classes=(False, True),
    )  # fmt: skip
    with pytest.raises(InvalidParameter, match="parties='others'") as refused:
        fit.fit(ROWS, LABELS > 0)
    assert not any(str(each) in str(refused.value) for each in (*CELLS, *CELLS.astype(int)))
