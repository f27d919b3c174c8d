"""Which records an experiment runs on, and what they look like without reading them."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np
from scipy import sparse

from ...data import (
    LabelledRecords,
    load_adult,
    load_adult_binary,
    load_digits_with_probes,
    split_records,
    synthetic_records,
)
from ...mechanisms.errors import InvalidParameter
from ...mechanisms.protocols import FloatArray
from ...solvers.optimum import logistic_optimum

_RIDGE = 1e-6
"""The same as of the optimum's line (`reference`), so that excess losses have one zero."""


class SourceRecords(Enum):
    """The records that experiments know."""

    ADULT = "adult"
    ADULT_BINARY = "adult-binary"
    DIGITS = "digits"
    SYNTHETIC = "synthetic"


_FIXED_FEATURES = {SourceRecords.ADULT: 104, SourceRecords.ADULT_BINARY: 123}
"""Columns of each real data set, which its schema fixes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """SourceRecords, divided at random into training and test ones; another division in every run.

    Args:
        records: which.
        train: number of training records.
        test: number of test records.
        width: number of features, for digits and synthetic records.
    """

    records: SourceRecords
    train: int
    test: int
    width: int | None = None

    def __post_init__(self) -> None:
        if (self.width is None) != (self.records in _FIXED_FEATURES):
            raise InvalidParameter("width", self.width, f"a choice for {self.records.value}")

    @property
    def features(self) -> int:
        """The number of features."""
        return _FIXED_FEATURES[self.records] if self.width is None else self.width

    def split(self, seed: int) -> tuple[LabelledRecords, LabelledRecords]:
        """Return training and test records, by a permutation that the seed names."""
        train, rest = split_records(_load(self), train_records=self.train, seed=seed)
        return train, rest.take(np.arange(self.test))


@lru_cache(maxsize=4)
def _load(source: Source) -> LabelledRecords:
    count, width = source.train + source.test, source.features
    load: dict[SourceRecords, Callable[[], LabelledRecords]] = {
        SourceRecords.ADULT: load_adult,
        SourceRecords.ADULT_BINARY: load_adult_binary,
        SourceRecords.DIGITS: lambda: load_digits_with_probes(features=width),
        SourceRecords.SYNTHETIC: lambda: synthetic_records(count=count, features=width, seed=width),
    }
    return load[source.records]()


def measured(
    model: FloatArray,
    train: LabelledRecords,
    test: LabelledRecords,
    *,
    least: float,
    offset: float = 0.0,
) -> dict[str, float]:
    """Return all metrics of a linear model, by name; the records stand for public ones here.

    Args:
        model: of shape (d,).
        train, test: on what it is measured.
        least: the least training loss there is, see `optimum`.
        offset: added to all scores.
    """
    learnt, fresh = (records.features @ model + offset for records in (train, test))
    loss = _mean_loss(train, learnt)
    return {
        "train_loss": loss,
        "excess_loss": loss - least,
        "test_loss": _mean_loss(test, fresh),
        "accuracy": _accuracy(test, fresh),
        "train_accuracy": _accuracy(train, learnt),
        "majority": _majority(test),
        "train_majority": _majority(train),
    }


def _mean_loss(records: LabelledRecords, scores: FloatArray) -> float:
    """Return the mean logistic loss of scores."""
    return float(np.logaddexp(0.0, -records.labels * scores).mean())


def _accuracy(records: LabelledRecords, scores: FloatArray) -> float:
    """Return the share of records that the sign of the score classifies rightly; ties are wrong."""
    return float(np.mean(scores * records.labels > 0))


def _majority(records: LabelledRecords) -> float:
    """Return the share of the more frequent label: the accuracy of one answer to everybody."""
    positive = float(np.mean(records.labels > 0))
    return max(positive, 1.0 - positive)


@lru_cache(maxsize=32)
def optimum(source: Source, seed: int) -> float:
    """Return the least mean logistic loss on a training set, with the ridge 1e-6 |w|²/2.

    Found by Newton's method without privacy: the yardstick of all excess losses, not a release.

    Args:
        source: of the records.
        seed: of their division.
    """
    train, _ = source.split(seed)
    rows = train.features.toarray() if sparse.issparse(train.features) else train.features
    # turned rows have another optimum, and the same value
    narrow = _narrow(np.asarray(rows))
    return logistic_optimum(narrow, train.labels, regularisation=_RIDGE).value


def _narrow(rows: FloatArray) -> FloatArray:
    """Return rows with as few columns as there are records, turned: no loss's least changes."""
    if rows.shape[0] >= rows.shape[1]:
        return rows
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(left * sizes)
