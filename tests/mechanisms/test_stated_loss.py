"""A loss of the caller's is called in one layout, and nothing that it does there can fail a run."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits import AuditDataset
from dpledger.audits.datasets import VerticalAuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    ClassLabels,
    EventList,
    FixedBatch,
    InvalidParameter,
    SamplingCurator,
    SeededSampler,
    Sensitive,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.labels import LabelDomain
from dpledger.mechanisms.loss_trial import stated
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.stated_loss import StatedLoss
from dpledger.solvers import Logistic, Multinomial

Calls = list[tuple[tuple[int, ...], tuple[int, ...], bool]]


class Noted:
    """A loss that comes with the program; notes the layouts it is called in."""

    def __init__(self, loss: Logistic | Multinomial, calls: Calls) -> None:
        self.loss, self.calls = loss, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loss, name)

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        written = scores.flags.writeable or labels.flags.writeable
        self.calls.append((scores.shape, labels.shape, written))
        return self.loss.derivative(scores, labels)


THREE = ClassLabels(3)
HOLDER = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1])
RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(9, 2))


def held(domain: LabelDomain = SIGNS, *, layout: Callable[[Any], Any] = np.asarray) -> AuditDataset:
    labels = np.resize(domain.some(3), 9)
    return AuditDataset(
        layout(ROWS),
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=HOLDER,
        parties=("a", "b"),
        label_domain=domain,
    )


def everything(data: AuditDataset, loss: Any, point: FloatArray) -> list[Sensitive]:
    """Return what each public operation makes of a loss."""
    curator = SamplingCurator(EventList(), SeededSampler(1))
    sample = curator.sample(data, FixedBatch(2))
    width = point.shape[-1]
    return [
        data.mean_gradient(loss, point),
        data.sum_gradient(loss, point, radius=0.3),
        data.strongly_convex_argmin(
            loss, modulus=1.0, linear=np.zeros(width), tolerance=1e-2, start=np.zeros(width)
        ),
        CentredRows(data, np.zeros(2), radius=0.5).mean_gradient(loss, point),
        sample.sum_gradient(loss, point),
        sample.sum_correction(loss, point, anchor=np.zeros(width), radius=0.3),
    ]


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("trials", [(), (5,)])
def test_trial_and_data_show_a_loss_one_layout(
    layout: Callable[[Any], Any], classes: int, trials: tuple[int, ...]
) -> None:
    calls: Calls = []
    own = Logistic() if classes == 2 else Multinomial(3)
    loss = Noted(own, calls)
    domain: LabelDomain = SIGNS if classes == 2 else ClassLabels(3)
    width = 2 * own.outputs
    point = np.resize(np.array([0.3, -1.2, 2.0]), (*trials, 1, width))
    found = everything(held(domain, layout=layout), loss, point)
    tail = () if own.outputs == 1 else (own.outputs,)
    assert {(len(scores), scores[1:], written) for scores, _, written in calls} == {
        (1 + len(tail), tail, False)
    }
    assert all(labels == scores[:1] for scores, labels, _ in calls)
    for one, other in zip(found, everything(held(domain, layout=layout), own, point), strict=True):
        mine, its = private_value(one), private_value(other)
        assert mine is not None
        assert its is not None
        assert np.allclose(mine, its, rtol=1e-12, atol=1e-15)
        assert np.abs(mine).max() > 1e-3


def test_the_centres_step_shows_a_loss_the_same_layout() -> None:
    calls: Calls = []
    labels = np.array([1.0, -1.0, 1.0])
    data = VerticalAuditDataset(
        [np.eye(3)], labels, adjacency=Adjacency.REPLACE_ONE, parties=("a",), public_labels=False
    )
    data.dual(
        Noted(Logistic(), calls),  # type: ignore[arg-type]
        np.zeros((4, 3)),
        penalty=1.0,
        tolerance=1e-6,
    )
    assert {(len(scores), labels == scores, w) for scores, labels, w in calls} == {(1, True, False)}


@dataclass(frozen=True)
class Softmax:
    """The multinomial loss, its classes along axis 1: right for scores of shape (m, K) only."""

    outputs: int = 3
    label_domain: LabelDomain = THREE
    derivative_bound: Fraction = Fraction(3, 2)
    curvature_bound: Fraction | None = None

    def value(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        return scores[..., 0]

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(len(p)), labels.astype(int)] -= 1.0
        return p


def test_classes_along_axis_1_are_no_other_records() -> None:
    rng, ratios = np.random.default_rng(1), []
    for n in (3, 5):
        for _ in range(10):
            rows, labels = rng.uniform(-1, 1, (n, 1)), rng.integers(0, 3, n).astype(float)
            point = rng.normal(size=(1, 3)) * 10
            values = []
            for first, label in ((rows[0, 0], labels[0]), (rng.choice([-1.0, 1.0]), 2.0)):
                rows[0], labels[0] = first, label
                data = AuditDataset(
                    rows,
                    labels,
                    adjacency=Adjacency.REPLACE_ONE,
                    row_bound=1.0,
                    label_domain=ClassLabels(3),
                )
                mean = data.mean_gradient(Softmax(), point)
                values.append(private_value(mean))
            ratios.append(np.linalg.norm(values[0] - values[1]) / mean.sensitivity.value)
    assert 0.1 < max(ratios) <= 1.0


class Narrow(Logistic):
    """Does something odd for scores in a narrow interval, which no trial is likely to meet."""

    at = 0.123456789

    def odd(self, slopes: FloatArray, scores: FloatArray) -> FloatArray:
        raise FloatingPointError(f"score {scores} out of range")

    def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
        slopes = super().derivative(scores, labels)
        near = np.abs(scores - self.at) < 1e-9
        return self.odd(slopes, scores) if near.any() else slopes


class Short(Narrow):
    def odd(self, slopes: FloatArray, scores: FloatArray) -> FloatArray:
        return slopes[:-1]


class Broad(Narrow):
    def odd(self, slopes: FloatArray, scores: FloatArray) -> FloatArray:
        return np.asarray(slopes.sum())


class Complex(Narrow):
    def odd(self, slopes: FloatArray, scores: FloatArray) -> FloatArray:
        return slopes + 1j


class Texts(Narrow):
    def odd(self, slopes: FloatArray, scores: FloatArray) -> FloatArray:
        return np.full(slopes.shape, "much")


class Masked(Narrow):
    def odd(self, slopes: FloatArray, scores: FloatArray) -> FloatArray:
        return np.ma.masked_array(slopes, mask=np.ones(slopes.shape, dtype=bool))


@pytest.mark.parametrize("kind", [Narrow, Short, Broad, Complex, Texts, Masked])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_record_that_a_loss_fails_for_has_slope_0_and_moves_no_other(
    kind: type[Narrow], layout: Callable[[Any], Any]
) -> None:
    """Neither an error nor a slope of other records tells that a record with that score exists."""
    rows = np.full((50, 1), 0.5)
    rows[7] = Narrow.at
    values = []
    for loss in (kind(), Logistic()):
        data = AuditDataset(
            layout(rows), np.ones(50), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
        )
        values.append(private_value(data.sum_gradient(loss, np.ones(1))))
    own = -Narrow.at / (1 + np.exp(Narrow.at))
    assert np.allclose(values[0], values[1] - own, rtol=0, atol=1e-12)


def test_a_stated_loss_made_by_hand_is_tried() -> None:
    class Mixing(Logistic):
        def derivative(self, scores: FloatArray, labels: FloatArray, /) -> FloatArray:
            return np.full(scores.shape, np.sign(labels.sum()))

    made = StatedLoss(Mixing(), 1, SIGNS, Fraction(1), Fraction(1, 4), None)
    with pytest.raises(InvalidParameter, match="elementwise"):
        stated(made)
    read = stated(Logistic())
    assert stated(read) is read
