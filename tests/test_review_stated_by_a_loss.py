"""Losses of one's own: what they state, say and answer far out moves no other."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit

from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    BoundedColumn,
    ClassLabels,
    EventList,
    LabelDomain,
    PrivateDataset,
    PrivateTable,
    SamplingCurator,
    SeededSampler,
)
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.runs.estimators import PrivateAdmmClassifier

Floats = NDArray[np.float64]


class OfPositiveScores:
    """How far a record's own class is below the mean of its positive scores: of itself alone."""

    outputs = 16
    label_domain: LabelDomain = ClassLabels(16)
    derivative_bound = Fraction(1)
    curvature_bound = None

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Is not asked for."""
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes; NumPy warns of a record that has no positive score."""
        own = np.take_along_axis(scores, labels[:, None].astype(int), axis=1)[:, 0]
        level = np.nan_to_num(np.nanmean(np.where(scores > 0, scores, np.nan), axis=-1))
        slopes = np.zeros_like(scores)
        slopes[np.arange(len(scores)), labels.astype(int)] = -np.tanh(level - own)
        return slopes


class EndsAtZero(OfPositiveScores):
    """The logistic loss, by a program that ends itself where a score is exactly 0."""

    outputs = 1
    label_domain = SIGNS

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes, or end."""
        if np.any(scores == 0.0):
            sys.exit("a score of exactly 0")
        return -labels / (1.0 + np.exp(labels * scores))


def handle(rows: Floats, domain: LabelDomain) -> PrivateDataset:
    """Return records whose labels are alternating."""
    ends = (0.0, 1.0) if isinstance(domain, ClassLabels) else (-1.0, 1.0)
    labels = np.resize(ends, len(rows))
    given: dict[str, Any] = {"adjacency": Adjacency.REPLACE_ONE, "row_bound": 3.0}
    return PrivateDataset(rows, labels, label_domain=domain, **given)


def test_a_warning_of_what_a_loss_calls_does_not_leave() -> None:
    """Neighbours are heard alike: by bisection a warning told the least feature to 12 digits."""
    rows, point, heard = np.linspace(0.5, 1.5, 50)[:, None], np.linspace(0.1, 1.0, 16), []
    for differing in (0.5, -0.5):
        rows[7] = differing
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            handle(rows, OfPositiveScores.label_domain).mean_gradient(OfPositiveScores(), point)
        heard.append([str(each.message) for each in said])
    assert heard[0] == heard[1]


def test_a_loss_that_ends_the_program_on_data_answers_with_zero() -> None:
    """As one that raises does: whether it ends would tell of a record."""
    rows = np.linspace(0.5, 1.5, 50)[:, None]
    rows[7] = 0.0
    handle(rows, SIGNS).mean_gradient(EndsAtZero(), np.ones(1))


class NaiveLogistic(OfPositiveScores):
    """The logistic loss as it is often written: inf/inf, not a number, beyond 709."""

    outputs = 1
    label_domain = SIGNS
    curvature_bound: Any = Fraction(1, 4)

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""
        part = np.exp(-labels * scores)
        return -labels * part / (1.0 + part)


class ByLogarithm(NaiveLogistic):
    """The same by the logarithm of the softmax, which answers 0 where it overflows."""

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""
        return np.exp(scores - np.log1p(np.exp(scores))) - (labels > 0)


class SteepHinge(NaiveLogistic):
    """A hinge, smoothed: its slope bends by 4 at most, which a NumPy integer says."""

    curvature_bound = np.int32(4)

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""
        return -labels * np.clip((1.0 - labels * scores) * 4.0 + 0.5, 0.0, 1.0)


@pytest.mark.parametrize(
    ("loss", "row_bound", "pull", "modulus"),
    [
        (NaiveLogistic(), 1.0, -1.7095, 1e-3),
        (ByLogarithm(), 1.0, -1.7095, 1e-3),
        (SteepHinge(), 30000.0, 0.0, 1.0),
    ],
    ids=["not a number", "falls to 0", "whole number of NumPy's"],
)
def test_minimisers_move_by_their_price_or_are_refused(
    loss: Any, row_bound: float, pull: float, modulus: float
) -> None:
    """Slopes that fall, or steps for another curvature, let one record move all the others."""
    labels, messages = np.resize([-1.0, 1.0] if pull == 0.0 else [-1.0], 201), []
    for first in (-1.0, 1.0):
        labels[0] = first
        data = PrivateDataset(
            np.full((201, 1), row_bound),
            labels,
            adjacency=Adjacency.REPLACE_ONE,
            row_bound=row_bound,
        )
        try:
            found = data.strongly_convex_argmin(
                loss,
                modulus=modulus,
                linear=np.array([pull]),
                tolerance=1e-3 * row_bound if pull == 0.0 else 1e-6,
                start=np.zeros(1),
            )
        except InvalidParameter:
            return
        sink = EventList()
        curator = SamplingCurator(sink, SeededSampler(3))
        sent = curator.release(found, round=1, release="minimiser", noise_multiplier=300.0)
        messages.append(Fraction(sent.item()))
    step: Any = sink.events[0].mechanism
    assert (messages[0] - messages[1]) ** 2 <= step.sensitivity.squared


class Undefined(NaiveLogistic):
    """A loss whose slopes are no numbers anywhere."""

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return none."""
        return np.full_like(scores, np.nan)


def test_a_loss_without_slopes_is_not_minimised() -> None:
    data = handle(np.linspace(0.5, 1.5, 50)[:, None], SIGNS)
    with pytest.raises(InvalidParameter, match="the slope is nan"):
        data.strongly_convex_argmin(
            Undefined(), modulus=1.0, linear=np.zeros(1), start=np.zeros(1), tolerance=1e-6
        )


def test_filters_of_warnings_can_be_copied_as_scikit_learn_copies_them() -> None:
    """Its processes get the patterns of all filters; one had none, and every search failed."""
    handle(np.linspace(0.5, 1.5, 50)[:, None], SIGNS).mean_gradient(Undefined(), np.ones(1))
    with warnings.catch_warnings():
        given: list[Any] = list(warnings.filters)
        warnings.resetwarnings()
        for action, message, category, _, line in given:
            words = message if message is None or isinstance(message, str) else message.pattern
            warnings.filterwarnings(action, words or "", category, lineno=line, append=True)
        with pytest.warns(UserWarning, match="heard"):
            warnings.warn("heard", UserWarning, stacklevel=1)


SCALE = 1.0
"""A constant of a module that a loss reads, as a schedule of temperatures does."""


@dataclass(frozen=True)
class Tempered:
    """A logistic loss of a temperature that is no field."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1, 4)

    def value(self, scores: Floats, labels: Floats) -> Floats:
        """Is not asked for."""
        raise NotImplementedError

    def derivative(self, scores: Floats, labels: Floats) -> Floats:
        """Return slopes."""
        return -labels * expit(-SCALE * labels * scores)


def minimised(data: PrivateDataset) -> object:
    return data.strongly_convex_argmin(
        Tempered(), modulus=1.0, linear=np.zeros(1), start=np.zeros(1), tolerance=1e-6
    )


def test_a_frozen_loss_is_tried_again_where_what_it_reads_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tried once, it moved a minimiser by 19.9 times the printed sensitivity afterwards."""
    data = handle(np.linspace(0.5, 1.5, 50)[:, None], SIGNS)
    minimised(data)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 400.0)
    with pytest.raises(InvalidParameter, match="curvature_bound"):
        minimised(data)


SPANS = np.array([np.timedelta64(3, "D"), np.timedelta64(36, "h")])


@pytest.mark.parametrize(
    "taken",
    [
        lambda: PrivateTable(
            {"stay": SPANS}, {"stay": BoundedColumn(0, 720)}, adjacency="replace-one"
        ),
        lambda: PrivateDataset(SPANS[:, None], np.ones(2), adjacency="replace-one", row_bound=1.0),
        lambda: PrivateDataset(np.ones((2, 1)), SPANS, adjacency="replace-one", row_bound=1.0),
        lambda: PrivateAdmmClassifier(epsilon=1, delta=1e-5, adjacency="replace-one").fit(
            np.resize(SPANS, (40, 1)), np.resize([0, 1], 40)
        ),
    ],
    ids=["table", "rows", "labels", "estimator"],
)
def test_arrays_of_times_are_no_numbers(taken: Callable[[], object]) -> None:
    """One record in hours gave all of days another unit: a sum moved by 99 times its price."""
    with pytest.raises(InvalidParameter, match="times"):
        taken()
