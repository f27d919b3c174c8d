"""Both layouts of records compute what a loop over records does, for any number of scores."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.curators import RecordingCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    FixedBatch,
    InvalidParameter,
    LabelDomain,
    Loss,
    PrivateDataset,
    RealLabels,
    SeededSampler,
)
from dpledger.mechanisms.protocols import EventList, MarginLoss
from dpledger.mechanisms.subsampling import drawn_records
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.solvers import Huber, Logistic, Multinomial, Shifted

HOLDER = np.array([1, 0, 1, 1, 0, 1])
LAYOUTS = pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
LOSSES = pytest.mark.parametrize(
    ("loss", "domain"),
    [(Multinomial(3), ClassLabels(3)), (Huber(0.5, 2.0), RealLabels(2.0))],
    ids=["three scores", "one score"],
)


def raw(domain: LabelDomain) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(6, 4)) * (rng.random((6, 4)) < 0.7) / 4.0
    labels = rng.integers(0, 3, 6) if isinstance(domain, ClassLabels) else rng.uniform(-2, 2, 6)
    return rows, labels.astype(np.float64)


def private(domain: LabelDomain, layout: Callable[[np.ndarray], Any]) -> PrivateDataset:
    rows, labels = raw(domain)
    return AuditDataset(
        layout(rows),
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=HOLDER,
        parties=("a", "b"),
        label_domain=domain,
    )


def gradient(loss: Loss, row: np.ndarray, label: float, w: np.ndarray) -> np.ndarray:
    """One record's gradient at one model (d·K,)."""
    scores = row @ w.reshape(4, loss.outputs)
    slopes = loss.derivative(scores[None] if loss.outputs > 1 else scores, np.array([label]))
    return np.outer(row, slopes).ravel()


@LAYOUTS
@LOSSES
@pytest.mark.parametrize("lead", [(), (1,), (5,), (2, 3)], ids=str)
def test_gradients_are_sums_over_records(
    loss: Loss, domain: LabelDomain, layout: Callable[[np.ndarray], Any], lead: tuple[int, ...]
) -> None:
    rows, labels = raw(domain)
    w = 3.0 * np.random.default_rng(1).normal(size=(*lead, 2, 4 * loss.outputs))
    expected = np.zeros_like(w)
    for index in np.ndindex(lead):
        for row, label, holder in zip(rows, labels, HOLDER, strict=True):
            expected[(*index, holder)] += gradient(loss, row, label, w[(*index, holder)])
    dataset, counts = private(domain, layout), np.array([[2.0], [4.0]])
    assert np.allclose(dataset.sum_gradient(loss, w)._value, expected, rtol=1e-12, atol=1e-14)
    mean = dataset.mean_gradient(loss, w)
    assert mean.dimension == 4 * loss.outputs
    assert np.allclose(mean._value, expected / counts, rtol=1e-12, atol=1e-14)


@LAYOUTS
@LOSSES
def test_corrections_of_a_sample_are_sums_over_drawn_records_cut_to_the_radius(
    loss: Loss, domain: LabelDomain, layout: Callable[[np.ndarray], Any]
) -> None:
    rows, labels = raw(domain)
    rng, radius = np.random.default_rng(2), 0.05
    w, anchor = 3.0 * rng.normal(size=(2, 2, 4 * loss.outputs))
    curator = RecordingCurator(EventList(), SeededSampler(3))
    sample = curator.sample(private(domain, layout), FixedBatch(1))
    found = sample.sum_correction(loss, w, anchor=anchor, radius=radius)
    expected, cut = np.zeros_like(w), 0
    drawn = drawn_records(FixedBatch(1), curator.uniforms[0], HOLDER)
    for row, label, holder, share in zip(rows, labels, HOLDER, drawn, strict=True):
        move = gradient(loss, row, label, w[holder]) - gradient(loss, row, label, anchor[holder])
        size = np.linalg.norm(move)
        cut += int(share and size > radius)
        expected[holder] += share * move * min(1.0, radius / max(size, 1e-9))
    assert cut > 0
    assert np.allclose(found._value, expected, rtol=1e-12, atol=1e-15)


class Overstated:
    """A loss of three scores whose slopes are longer than it says."""

    outputs, label_domain = 3, ClassLabels(3)
    derivative_bound, curvature_bound = Multinomial(3).derivative_bound, None

    def value(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return 10.0 * scores[..., 0]

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.full_like(scores, 10.0)


@LAYOUTS
def test_slopes_are_cut_to_their_bound(layout: Callable[[np.ndarray], Any]) -> None:
    dataset = private(ClassLabels(3), layout)
    rows, _ = raw(ClassLabels(3))
    found = dataset.sum_gradient(Overstated(), np.zeros(12))
    for party in (0, 1):
        total = rows[np.equal(HOLDER, party)].sum(axis=0)
        slopes = np.full(3, np.sqrt(2 / 3))
        assert np.allclose(found._value[party], np.outer(total, slopes).ravel(), rtol=1e-12)


@pytest.mark.parametrize("trials", [3, 4, 2_000])
def test_rows_with_their_signs_give_the_very_gradients_of_rows_and_labels(trials: int) -> None:
    rng = np.random.default_rng(9)
    data = AuditDataset(
        rng.normal(size=(90, 4)),
        np.sign(rng.normal(size=90)),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=2.0,
        party_of=np.arange(90) % 13 // 12,
        parties=("many", "few"),
    )
    points = 3.0 * rng.normal(size=(trials, 2, 4))
    # a loss that has no derivative by margins
    plain, records = Shifted(Logistic(), 0.0), data._held()
    assert isinstance(Logistic(), MarginLoss)
    assert not isinstance(plain, MarginLoss)
    signed = records.sum_gradient(Logistic(), points)
    assert np.array_equal(signed, records.sum_gradient(plain, points))
    scores = points[:, 1] @ data._records.rows[1].T
    slopes = Logistic().derivative(scores, data._records.labels[1])
    assert np.allclose(signed[:, 1], slopes @ data._records.rows[1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("trials", [7, 500, 997])
def test_the_gradient_of_a_trial_is_that_of_the_trial_alone(trials: int) -> None:
    # wide rows: a block holds several parts of its trials, the last of which is shorter
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 104)) / 20
    labels = np.where(rng.random(400) < 0.5, -1.0, 1.0)
    data = AuditDataset(
        rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0, parties=("one",)
    )
    points, records = rng.normal(size=(trials, 1, 104)), data._held()
    together = records.sum_gradient(Logistic(), points)
    for trial in (0, trials // 2, trials - 1):
        alone = records.sum_gradient(Logistic(), points[trial])
        assert np.allclose(together[trial], alone, rtol=1e-12, atol=1e-14)


@dataclass(frozen=True)
class Steep:
    """-label·score, which says that its slopes are at most 1, of labels that are larger."""

    outputs: int = 1
    derivative_bound: Fraction = Fraction(1)
    curvature_bound: Fraction | None = Fraction(0)
    label_domain: LabelDomain = field(default_factory=lambda: RealLabels(5.0))

    def value(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return -labels * scores

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.broadcast_to(-labels, scores.shape).copy()

    def margin_derivative(self, margins: np.ndarray) -> np.ndarray:
        margins[:] = -1.0
        return margins


@pytest.mark.parametrize("trials", [1, 50])
def test_no_loss_leaves_its_bound_by_the_sizes_of_labels(trials: int) -> None:
    data = AuditDataset(
        np.array([[1.0, 0.0], [1.0, 0.0]]),
        np.array([5.0, 5.0]),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        label_domain=RealLabels(5.0),
    )
    found = data._held().mean_gradient(Steep(), np.zeros((trials, 1, 2)))
    assert np.linalg.norm(found, axis=-1).max() <= 1.0


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_means_of_one_column_and_several_scores_are_divided(lead: tuple[int, ...]) -> None:
    data = AuditDataset(
        np.full((6, 1), 0.5),
        np.array([0.0, 1.0, 2.0, 0.0, 1.0, 0.0]),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=HOLDER,
        parties=("a", "b"),
        label_domain=ClassLabels(3),
    )
    records, point = data._held(), np.zeros((*lead, 2, 3))
    sums = records.sum_gradient(Multinomial(3), point)
    means = records.mean_gradient(Multinomial(3), point)
    assert np.allclose(means, sums / np.array([[2.0], [4.0]]), rtol=1e-15)
    assert np.abs(means).max() > 0.1


@dataclass(frozen=True)
class Undefined:
    """A loss whose slopes are no numbers, or infinite, for records of the last label."""

    outputs: int
    slope: float
    derivative_bound: Fraction = Fraction(1)
    curvature_bound: Fraction | None = Fraction(1)

    @property
    def label_domain(self) -> LabelDomain:
        return SIGNS if self.outputs == 1 else ClassLabels(2)

    def value(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.zeros(np.broadcast_shapes(scores.shape, labels.shape))

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        wrong = labels == 1.0
        if self.outputs > 1:
            wrong = wrong[..., None]
        return np.where(wrong, self.slope, np.zeros_like(scores))


@LAYOUTS
@pytest.mark.parametrize("slope", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("trials", [1, 50])
def test_slopes_that_are_no_numbers_show_no_record(
    layout: Callable[[np.ndarray], Any], slope: float, outputs: int, trials: int
) -> None:
    loss = Undefined(outputs, slope)
    data = AuditDataset(
        layout(np.array([[0.9, 0.0], [0.0, 0.9], [0.0, 0.9]])),
        np.array([1.0, -1.0, -1.0] if outputs == 1 else [1.0, 0.0, 0.0]),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        label_domain=loss.label_domain,
    )
    point = np.zeros((trials, 1, 2 * outputs))
    for found in (
        data._held().sum_gradient(loss, point),
        data.sum_gradient(loss, point, radius=0.5)._value,
    ):
        assert np.linalg.norm(found, axis=-1).max() <= 1.0  # which NaN is not


@pytest.mark.parametrize("place", [3, 10**6, -1])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array])
def test_no_sparse_entry_lies_outside_of_its_array(kind: Callable[..., Any], place: int) -> None:
    """Products of such an array write to memory that is not theirs, or end the process."""
    rows = kind(np.eye(3))
    rows.indices[1] = place
    with pytest.raises(InvalidParameter, match="indices of an array of shape"):
        PrivateDataset(rows, np.ones(3), adjacency="replace-one", row_bound=1.0)


@pytest.mark.parametrize("place", [3, 10**6, -1])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_coordinate_lies_outside_of_its_array(axis: int, place: int) -> None:
    """A column beyond the last one was the first of another party's, who paid nothing for it."""
    rows = sparse.coo_array(np.eye(3))
    rows.coords[axis][1] = place
    with pytest.raises(InvalidParameter, match="indices of an array of shape"):
        PrivateDataset(rows, np.ones(3), adjacency="replace-one", row_bound=1.0)


@pytest.mark.parametrize("kind", ["dia", "dok", "lil"])
def test_sparse_rows_that_cannot_be_looked_through_are_refused(kind: str) -> None:
    """A list of more indices than numbers gave all numbers behind it to other records."""
    rows = sparse.coo_array(np.eye(3)).asformat(kind)
    with pytest.raises(InvalidParameter, match=rf"{kind}' must be one of csr.*tocsr"):
        PrivateDataset(rows, np.ones(3), adjacency="replace-one", row_bound=1.0)
    model = PrivateAdmmClassifier(epsilon=1.0, delta=1e-5, adjacency="replace-one")
    with pytest.raises(InvalidParameter, match=rf"{kind}' must be one of csr"):
        model.fit(rows, [0, 1, 0])


def test_numbers_of_a_sparse_array_are_asked_before_it_is_converted() -> None:
    rows = sparse.coo_array(np.eye(3))
    rows.data = np.array([1.0, "text", 1.0], object)
    with pytest.raises(InvalidParameter, match="numbers that a binary64 holds"):
        PrivateDataset(rows, np.ones(3), adjacency="replace-one", row_bound=1.0)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
def test_sparse_rows_of_every_kind_are_the_same_rows(kind: str) -> None:
    dense = np.array([[0.5, 0.0, 0.25], [0.0, -0.5, 0.0], [0.25, 0.25, 0.25]])
    rows = sparse.coo_array(dense).asformat(kind)
    data = AuditDataset(rows, np.ones(3), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)
    found = data.mean_gradient(Logistic(), np.zeros(3))._value
    np.testing.assert_allclose(found[0], -0.5 * dense.mean(axis=0))
