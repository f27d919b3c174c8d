"""Laws of centred rows.

1. Gradients are those of rows that an independent program centres and cuts, in both layouts.
2. Null rows add nothing, so that a record zeroed out moves a mean by one gradient.
3. Sensitivities are those of rows of the smaller norm, a party's own where weights ask for them.
4. Bad centres and radii are refused with their value and range.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import Adjacency, ClassLabels, InvalidParameter, PrivateDataset
from dpledger.mechanisms.centred import CentredRows, _centred
from dpledger.mechanisms.inside import records_of
from dpledger.mechanisms.labels import SIGNS
from dpledger.solvers import Logistic, Multinomial

RECORDS, WIDTH, RADIUS = 50, 4, 0.6
HOLDER = np.random.default_rng(2).integers(0, 3, RECORDS)
LAYOUTS: dict[str, Any] = {"dense": np.asarray, "sparse": sparse.csr_array}


def rows() -> np.ndarray:
    found = np.random.default_rng(0).normal(size=(RECORDS, WIDTH))
    found /= 1.01 * np.linalg.norm(found, axis=1, keepdims=True)
    found[3] = 0.0
    return found


def private(layout: str, classes: int = 2, **public: Any) -> PrivateDataset:
    labels = np.random.default_rng(1).integers(0, classes, RECORDS).astype(float)
    return AuditDataset(
        LAYOUTS[layout](rows()),
        2.0 * labels - 1.0 if classes == 2 else labels,
        adjacency=public.pop("adjacency", Adjacency.REPLACE_ONE),
        row_bound=1.0,
        party_of=HOLDER,
        parties=("a", "b", "c"),
        label_domain=SIGNS if classes == 2 else ClassLabels(classes),
        **public,
    )


def moved(row: np.ndarray, centre: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """A row as it enters gradients."""
    found = (row - centre) * scale
    return found * min(1.0, RADIUS / np.linalg.norm(found)) if row.any() else 0.0 * row


def naive(
    centre: np.ndarray, scale: np.ndarray, w: np.ndarray, loss: Any, labels: np.ndarray
) -> np.ndarray:
    """Mean gradients of one trial, of shape (P, d·K), record by record."""
    found = np.zeros((3, WIDTH, loss.outputs))
    for row, label, party in zip(rows(), labels, HOLDER, strict=True):
        here = moved(row, centre, scale)
        scores = (here @ w[party].reshape(WIDTH, -1))[None]
        shaped = scores if loss.outputs > 1 else scores[0]
        slope = loss.derivative(shaped, np.array([label])).reshape(-1)
        found[party] += np.outer(here, slope) / (party == HOLDER).sum()
    return found.reshape(3, -1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_are_those_of_rows_centred_one_by_one(layout: str, classes: int) -> None:
    rng = np.random.default_rng(4)
    loss: Any = Logistic() if classes == 2 else Multinomial(classes)
    centres, scales = rng.normal(size=(2, WIDTH)) / 3, rng.uniform(0.2, 3.0, size=(2, WIDTH))
    w = 3.0 * rng.normal(size=(2, 3, WIDTH * loss.outputs))
    centred = CentredRows(private(layout, classes), centres, radius=RADIUS, scale=scales)
    found, squares = centred.mean_gradient(loss, w), centred.mean_squares()
    raw = np.random.default_rng(1).integers(0, classes, RECORDS).astype(float)
    labels = 2.0 * raw - 1.0 if classes == 2 else raw
    assert found._value is not None
    assert squares._value is not None
    for trial in range(2):
        expected = naive(centres[trial], scales[trial], w[trial], loss, labels)
        # the room that is left for rounding
        assert np.abs(found._value[trial] - expected).max() < 1e-8
        entries = np.array([moved(row, centres[trial], scales[trial]) for row in rows()]) ** 2
        for party in range(3):
            mean = entries[party == HOLDER].mean(axis=0)
            assert np.abs(squares._value[trial, party] - mean).max() < 1e-8


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_record_zeroed_out_adds_nothing(layout: str) -> None:
    centre, loss, w = np.full(WIDTH, 0.4), Logistic(), np.ones(WIDTH)
    zero = private(layout, adjacency=Adjacency.ZERO_OUT_ONE)
    gone = zero.with_record(7, features=np.zeros(WIDTH))
    values = [CentredRows(d, centre, radius=RADIUS).mean_gradient(loss, w) for d in (zero, gone)]
    assert values[0]._value is not None
    assert values[1]._value is not None
    change = values[0]._value - values[1]._value
    row = moved(rows()[7], centre, np.ones(WIDTH))
    party = HOLDER[7]
    labels = 2.0 * np.random.default_rng(1).integers(0, 2, RECORDS) - 1.0
    own = row * loss.derivative(np.array([row @ w]), labels[[7]])[0] / (party == HOLDER).sum()
    assert np.abs(change[party] - own).max() < 1e-8
    assert np.linalg.norm(change) <= values[0].sensitivity.value


@pytest.mark.parametrize(
    ("adjacency", "factor"), [(Adjacency.REPLACE_ONE, 2), (Adjacency.ZERO_OUT_ONE, 1)]
)
def test_sensitivities_are_those_of_the_smaller_radius(adjacency: Adjacency, factor: int) -> None:
    counts = tuple(np.bincount(HOLDER).tolist())
    data = private("dense", adjacency=adjacency, party_counts=counts)
    centred = CentredRows(data, np.zeros(WIDTH), radius=0.5)
    sensitivities = centred.mean_sensitivities(Logistic())
    assert [s.root for s in sensitivities] == [factor * Fraction(1, 2) / n for n in counts]
    weights = np.array([1.0, 0.25, 0.5])
    joint = centred.mean_gradient(Logistic(), np.zeros(WIDTH), weights=weights).sensitivity
    assert joint.root == max(
        s.root * Fraction(x) for s, x in zip(sensitivities, weights.tolist(), strict=True)
    )


@pytest.mark.parametrize(
    ("centre", "radius", "words"),
    [
        (np.zeros(WIDTH), 0.0, "radius"),
        (np.zeros(WIDTH), 0.01, "row_bound/64"),
        (np.zeros(WIDTH - 1), 0.5, "centre.shape"),
        (np.full(WIDTH, 1.5), 0.5, "centre"),
        (np.full(WIDTH, np.nan), 0.5, "centre"),
    ],
)
def test_bad_centres_and_radii_are_refused(centre: np.ndarray, radius: float, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        CentredRows(private("dense"), centre, radius=radius)


@pytest.mark.parametrize("bad", [np.zeros(WIDTH), np.full(WIDTH, 65.0), np.ones(WIDTH + 1)])
def test_bad_scales_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(InvalidParameter, match="scale"):
        CentredRows(private("dense"), np.zeros(WIDTH), radius=1.0, scale=bad)


def test_rounding_is_planned_whatever_the_scale() -> None:
    made = [
        CentredRows(private("dense"), np.zeros(WIDTH), radius=0.5, scale=np.full(WIDTH, size))
        for size in (0.1, 30.0)
    ]
    gradients = [rows.mean_gradient(Logistic(), np.ones(WIDTH)) for rows in made]
    assert gradients[0].rounding == gradients[1].rounding
    assert gradients[0].sensitivity == gradients[1].sensitivity


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [1, 5, 80])
def test_no_centred_row_is_longer_than_the_radius_in_exact_arithmetic(
    layout: str, width: int
) -> None:
    """The worst of what is allowed: rows 64 radii long, scaled, near a centre as far away."""
    rng, radius = np.random.default_rng(width), 0.7
    centre = rng.normal(size=width)
    centre *= 60 * radius / np.linalg.norm(centre)
    away = rng.normal(size=(60, width))
    away *= radius * rng.uniform(0.5, 2.0, size=(60, 1)) / np.linalg.norm(away, axis=1)[:, None]
    features = centre + away
    data = AuditDataset(
        LAYOUTS[layout](features),
        np.ones(60),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=64 * radius,
    )
    scale = rng.uniform(0.5, 1.0, size=width)
    records = records_of(data)
    view = _centred(records, centre[None], scale[None], radius)
    longest = Fraction(0)
    for row, shrink in zip(features, records.in_order(view.shrink), strict=True):
        parts = [
            Fraction(s) * (Fraction(a) - Fraction(m))
            for s, a, m in zip(scale.tolist(), row.tolist(), centre.tolist(), strict=True)
        ]
        square = sum((part**2 for part in parts), Fraction(0)) * Fraction(float(shrink)) ** 2
        assert square <= Fraction(radius) ** 2
        longest = max(longest, square)
    assert longest > (1 - Fraction(1, 10**6)) * Fraction(radius) ** 2
