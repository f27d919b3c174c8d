"""The law of places: where a record stands in memory moves no other record's number by a bit.

Under add-remove-one a record that leaves moves all that follow. What rounding costs is priced for
sums; a score that changed with its place would carry a slope across a jump (a hinge's), and a sum
whose order told of a record that was not drawn would undo what hiding the sample is worth.
"""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import SIGNS, Adjacency, Loss, Poisson, PrivateDataset
from dpledger.mechanisms.subsampling import drawn_by
from dpledger.solvers.losses import Hinge, LinearLoss, Logistic, Multinomial, SmoothedHinge

LAYOUTS = ("dense", "sparse")


def table(rng: np.random.Generator, records: int, width: int, loss: Any) -> tuple[Any, Any, Any]:
    """Return rows, labels and parties of random records, some of them null."""
    rows = rng.normal(size=(records, width)) * rng.choice(
        [0.0, 1.0], size=(records, 1), p=[0.1, 0.9]
    )
    classes = loss.label_domain
    labels = (
        rng.choice([-1.0, 1.0], size=records)
        if classes == SIGNS
        else rng.integers(classes.classes, size=records).astype(float)
    )
    return rows, labels, rng.permutation(records) % 2


def held(
    layout: str, rows: np.ndarray, labels: np.ndarray, holder: np.ndarray, loss: Any
) -> PrivateDataset:
    return AuditDataset(
        sparse.csr_array(rows) if layout == "sparse" else rows,
        labels,
        adjacency=Adjacency.ADD_REMOVE_ONE,
        row_bound=2.0,
        party_of=holder,
        parties=("a", "b"),
        n_min=1,
        n_max=10**4,
        label_domain=loss.label_domain,
    )


def sampled_sums(
    data: PrivateDataset, loss: Loss, inside: np.ndarray, w: np.ndarray
) -> list[bytes]:
    """Return the bytes of all that can be computed on one sample."""

    def sample() -> Any:
        return data._sampled(drawn_by(None, Poisson(0.5), inside))

    made = (
        sample().sum_gradient(loss, w),
        sample().sum_gradient(loss, w, radius=0.7),
        sample().sum_correction(loss, w, anchor=-0.5 * w, radius=0.9),
    )
    assert all(each._value is not None for each in made)
    return [np.asarray(each._value).tobytes() for each in made]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "loss", [Logistic(), Hinge(), SmoothedHinge(0.5), LinearLoss(), Multinomial(3)]
)
def test_a_record_that_is_not_drawn_moves_no_bit_of_a_sampled_sum(layout: str, loss: Any) -> None:
    rng = np.random.default_rng(17)
    counted = 0
    for _ in range(60):
        records, width = int(rng.integers(4, 80)), int(rng.integers(1, 20))
        rows, labels, holder = table(rng, records, width, loss)
        inside = (rng.random(records) < rng.choice([0.1, 0.5, 0.9])).astype(float)
        gone = int(rng.integers(records))
        inside[gone] = 0.0
        others = np.delete(np.arange(records), gone)
        if len(np.unique(holder[others])) < 2:
            continue
        w = rng.normal(size=width * loss.outputs)
        with_it = sampled_sums(held(layout, rows, labels, holder, loss), loss, inside, w)
        without = sampled_sums(
            held(layout, rows[others], labels[others], holder[others], loss),
            loss,
            inside[others],
            w,
        )
        assert with_it == without
        counted += 1
    assert counted > 50


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_score_is_the_same_number_wherever_its_record_stands(layout: str) -> None:
    rng = np.random.default_rng(23)
    for records, width in ((2, 1), (7, 3), (33, 5), (60, 14), (1030, 8), (2060, 104)):
        rows, labels, holder = table(rng, records, width, Logistic())
        w = rng.normal(size=(2, width))
        scores = [
            np.asarray(one._held().scores(w))
            for one in (
                held(layout, rows, labels, holder, Logistic()),
                held(layout, rows[::-1], labels[::-1], holder[::-1], Logistic()),
            )
        ]
        # every record's own score, and zeros of the padding
        assert sorted(scores[0].ravel().tolist()) == sorted(scores[1].ravel().tolist())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_removed_record_at_the_hinge_takes_no_other_with_it(layout: str) -> None:
    """All margins are 1 up to rounding: a score that moved by a bit would move a slope by 1."""
    rng = np.random.default_rng(29)
    for records, width in ((n, d) for n in range(4, 60, 5) for d in (5, 14, 104)):
        w = rng.normal(size=width)
        rows = rng.normal(size=(records, width))
        rows *= (1.0 / (rows @ w))[:, None]
        bound = 2.0 * float(np.linalg.norm(rows, axis=1).max())
        sums = []
        for some in (np.arange(records), np.arange(1, records)):
            data = AuditDataset(
                sparse.csr_array(rows[some]) if layout == "sparse" else rows[some],
                np.ones(len(some)),
                adjacency=Adjacency.ADD_REMOVE_ONE,
                row_bound=bound,
                n_min=1,
            )
            value = data.sum_gradient(Hinge(), w)
            assert value._value is not None
            sums.append(value._value)
        moved = float(np.linalg.norm(sums[0] - sums[1]))
        assert moved <= np.linalg.norm(rows[0]) * (1 + 1e-12)
