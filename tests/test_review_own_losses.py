"""Laws that a review found broken: a record moves its own part of sums of a loss of one's own.

Its last bits may not depend on who else is there: where a slope has a threshold, they are a whole
slope.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpledger.mechanisms import (
    Adjacency,
    ClassLabels,
    EventList,
    InvalidParameter,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
)
from dpledger.mechanisms.loss_trial import stated

Floats = NDArray[np.float64]
OUTPUTS = 32


@dataclass(frozen=True)
class Unsure:
    """A perceptron of the records that are not yet right with probability 1/2."""

    label_domain = ClassLabels(OUTPUTS)
    outputs, derivative_bound, curvature_bound = OUTPUTS, Fraction(1), None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        own, right = self._right(scores, labels)
        return np.where(right < 0.5, 1.0 / OUTPUTS - own, 0.0)

    def _right(self, scores: Floats, labels: Floats) -> tuple[Floats, Floats]:
        each = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares = each / each.sum(axis=-1, keepdims=True)
        own = np.equal(np.arange(OUTPUTS), labels[..., None])
        return own.astype(float), np.where(own, shares, 0.0).max(axis=-1, keepdims=True)


@dataclass(frozen=True)
class Halfway(Unsure):
    """Pulls a record's probability to 1/2; of scores that are all 0 it raises (0/0)."""

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        with np.errstate(invalid="raise"):
            scale = np.abs(scores).max(axis=-1, keepdims=True)
            scores = scores / scale * scale
        own, right = self._right(scores, labels)
        return np.where(right < 0.5, 1.0, -1.0) * (1.0 / OUTPUTS - own)


def turning(loss: Unsure) -> Floats:
    """Return a public point of one column at which a row of 1/2 has probability 1/2 to an ulp."""
    rng = np.random.default_rng(0)
    for _ in range(100_000):
        scores = rng.normal(size=OUTPUTS)
        scores[0] = np.log(np.exp(scores[1:]).sum()) + rng.integers(-3, 4) * 2.0**-52
        columns = np.zeros((OUTPUTS, 2))
        columns[:] = scores[:, None]
        alone = loss.derivative(scores[None], np.zeros(1))[0]
        if not np.array_equal(alone, loss.derivative(columns.T, np.zeros(2))[0]):
            return 2.0 * scores
    pytest.skip("NumPy adds up rows and columns alike here")


def said(loss: Any, rows: list[float], point: Floats, relation: Adjacency) -> tuple[Floats, float]:
    """Return a noisy sum of one seed, and its printed sensitivity."""
    sink, bounds = EventList(), dict[str, Any]()
    if relation is Adjacency.ADD_REMOVE_ONE:
        bounds["n_min"] = 1
    held = PrivateDataset(
        np.array(rows)[:, None],
        np.zeros(len(rows)),
        adjacency=relation,
        row_bound=0.5000001,
        n_max=64,
        label_domain=ClassLabels(OUTPUTS),
        **bounds,
    )
    curator = SamplingCurator(sink, SeededSampler(1))
    total = held.sum_gradient(loss, point[None])
    message = curator.release(total, noise_multiplier=0.01, round=1, release="sum")
    mechanism: Any = sink.events[0].mechanism
    return message, mechanism.sensitivity.value


@pytest.mark.parametrize("relation", list(Adjacency)[:3])
@pytest.mark.parametrize("others", [1, 40])
def test_a_record_at_which_a_loss_raises_moves_no_other_record(
    relation: Adjacency, others: int
) -> None:
    """The batch is halved, and who is left alone is handed over in another layout."""
    loss, rows = Halfway(), [0.5] * others
    point = turning(loss)
    (first, bound), (second, same) = (
        said(loss, [*rows, last], point, relation) for last in (0.5, 0.0)
    )
    assert bound == same
    # a slope of nearly 1 becomes 0, at a row of 1/2
    assert np.linalg.norm(first - second) <= 0.5 * (1.0 + 1e-6)


def test_an_own_losss_slope_is_the_same_alone_and_beside_another_record() -> None:
    """One record's scores are contiguous, two records' lie column by column."""
    loss = Unsure()
    point = turning(loss)
    (first, bound), (second, same) = (
        said(loss, rows, point, Adjacency.ADD_REMOVE_ONE) for rows in ([0.5], [0.5, 0.5])
    )
    assert bound == same
    assert np.linalg.norm(first - second) <= bound * (1.0 + 1e-9)


def test_a_record_more_at_one_party_moves_no_message_of_another() -> None:
    """The rows that pad a party's block are records at which a loss may raise, too."""
    point, found = turning(Halfway()), []
    for rows, party_of in (([0.5, 0.5], [0, 1]), ([0.5, 0.5, 0.4], [0, 1, 0])):
        held = PrivateDataset(
            np.array(rows)[:, None],
            np.zeros(len(rows)),
            adjacency=Adjacency.ADD_REMOVE_ONE,
            row_bound=0.5000001,
            n_min=1,
            n_max=64,
            parties=("a", "b"),
            party_of=np.array(party_of),
            label_domain=ClassLabels(OUTPUTS),
        )
        curator = SamplingCurator(EventList(), SeededSampler(1))
        total = held.sum_gradient(Halfway(), point[None])
        found.append(curator.release(total, noise_multiplier=0.01, round=1, release="sum"))
    assert np.linalg.norm(found[0][1] - found[1][1]) < 1e-9


COSTS = np.random.default_rng(7).normal(size=(8, 8))


@dataclass(frozen=True)
class Costly:
    """A perceptron whose slope turns where the cost of an answer is 0: a product with a matrix."""

    label_domain = ClassLabels(8)
    outputs, derivative_bound, curvature_bound = 8, Fraction(1), None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        cost = (scores @ COSTS)[:, :1]
        return np.where(cost < 0.0, -1.0, 1.0) * np.equal(np.arange(8), 0)


def test_a_tenth_record_moves_no_slope_of_the_nine_before() -> None:
    """The last of nine rows of a product is rounded otherwise than in a pair."""
    rng, nine, ten = np.random.default_rng(0), np.zeros((8, 9)), np.zeros((8, 10))
    for _ in range(10_000):
        scores = rng.normal(size=8)
        scores[0] -= (scores @ COSTS[:, 0]) / COSTS[0, 0]
        nine[:], ten[:] = scores[:, None], scores[:, None]
        if ((nine.T @ COSTS)[8, 0] < 0) != ((ten.T @ COSTS)[8, 0] < 0):
            break
    else:
        pytest.skip("products round alike here")
    found = []
    for rows in ([0.5] * 9, [*[0.5] * 9, 0.0]):
        held = PrivateDataset(
            np.array(rows)[:, None],
            np.zeros(len(rows)),
            adjacency=Adjacency.ADD_REMOVE_ONE,
            row_bound=0.5000001,
            n_min=4,
            n_max=64,
            label_domain=ClassLabels(8),
        )
        curator = SamplingCurator(EventList(), SeededSampler(1))
        total = held.sum_gradient(Costly(), 2.0 * scores[None])
        found.append(curator.release(total, noise_multiplier=0.01, round=1, release="sum"))
    assert np.linalg.norm(found[0] - found[1]) < 1e-9  # the tenth is a record of zeros


class Uneven(Unsure):
    """Its slopes have one bit more at every third place."""

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        found = super().derivative(scores, labels)
        found[2::3] *= 1.0 + 2.0**-52
        return found


def test_a_loss_whose_last_bit_depends_on_the_place_does_not_pass_its_trial() -> None:
    with pytest.raises(InvalidParameter, match="to the last bit"):
        stated(Uneven())
    stated(Unsure())
