"""Losses that are not what sensitivities take them for are refused on random scores."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from tests.parameters import slow

from dpledger.accounting.check.checker import check
from dpledger.accounting.check.pld_checker import check as pld_check
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.proof.certificate import certify
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    Audience,
    Context,
    DataShape,
    Event,
    FixedBatch,
    GaussianStep,
    InvalidParameter,
    Loss,
    PlanningCurator,
    Poisson,
    PrivateDataset,
    Sensitive,
    VerticalDataset,
    VerticalShape,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.loss_trial import require_convex, stated
from dpledger.mechanisms.sensitivity import mean_of_bounded
from dpledger.mechanisms.stated_loss import assuming
from dpledger.solvers.losses import (
    ClippedLogistic,
    Hinge,
    Huber,
    LinearLoss,
    Logistic,
    Multinomial,
    Shifted,
    SmoothedHinge,
)

SHIPPED: list[Loss] = [
    Logistic(),
    Hinge(),
    SmoothedHinge(0.3),
    Huber(0.5, 2.0),
    LinearLoss(),
    Multinomial(4),
    Shifted(Logistic(), 0.7),
]


class Majority(Logistic):
    """Every slope is minus the sign of the labels' sum: one record may turn them all."""

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return -np.sign(labels.sum()) * np.ones_like(scores)


class Centred(Logistic):
    """Slopes less their mean over the batch."""

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        slopes = super().derivative(scores, labels)
        return np.asarray(slopes - slopes.mean(axis=-1, keepdims=True))


@pytest.mark.parametrize("loss", SHIPPED, ids=lambda loss: type(loss).__name__)
def test_losses_that_come_with_the_program_pass(loss: Loss) -> None:
    stated(loss)


@pytest.mark.parametrize("loss", [Majority(), Centred()], ids=["majority", "centred"])
def test_a_loss_of_several_records_is_refused_when_a_plan_is_made(loss: Loss) -> None:
    shape = DataShape(("a",), 9, 2, 1.0, Adjacency.REPLACE_ONE)
    with pytest.raises(InvalidParameter, match=r"alone and .* among \d+ records"):
        PrivateDataset.planned(shape).mean_gradient(loss, np.zeros(2))


class Falling(Logistic):
    """Slopes that fall: minus the logistic loss."""

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return -super().derivative(scores, labels)


class Steep(Logistic):
    """Slopes of three times the stated bound."""

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return 3.0 * super().derivative(scores, labels)


class Bent(Logistic):
    """A slope that jumps, of a loss that states a curvature."""

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return -labels * (labels * scores < 0.0)


class Apart(Logistic):
    """States that labels move slopes by half of what they do."""

    @property
    def label_gap_bound(self) -> Fraction:
        return Fraction(1, 2)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Falling(), "convex in the score"),
        (Steep(), "derivative_bound"),
        (Bent(), "curvature_bound"),
    ],
)
def test_a_minimiser_of_a_loss_that_is_not_as_stated_is_refused_with_a_counterexample(
    loss: Loss, words: str
) -> None:
    shape = DataShape(("a",), 9, 2, 1.0, Adjacency.REPLACE_ONE)
    with pytest.raises(InvalidParameter, match=rf"{words}.* at score .* label"):
        PrivateDataset.planned(shape).strongly_convex_argmin(
            loss, modulus=0.1, linear=np.zeros(2), tolerance=1e-6, start=np.zeros(2)
        )


@pytest.mark.parametrize("loss", SHIPPED, ids=lambda loss: type(loss).__name__)
def test_losses_that_come_with_the_program_are_convex_as_stated(loss: Loss) -> None:
    require_convex(stated(loss))


def test_labels_further_apart_than_stated_are_refused_where_labels_are_private() -> None:
    shape = VerticalShape(("a",), 4, (2,), 1.0, Adjacency.REPLACE_ONE, public_labels=False)
    data = VerticalDataset.planned(shape)
    with pytest.raises(InvalidParameter, match="label_gap_bound"):
        data.dual(Apart(), np.zeros(4), penalty=1.0, tolerance=1e-6)
    data.dual(Logistic(), np.zeros(4), penalty=1.0, tolerance=1e-6)


class Mine(Logistic):
    """A logistic loss that does not come with the program."""


POINT = np.zeros(2)
RELEASES: dict[str, Callable[[PrivateDataset, Loss], Sensitive]] = {
    "mean": lambda data, loss: data.mean_gradient(loss, POINT),
    "weighted mean": lambda data, loss: data.mean_gradient(loss, POINT, weights=np.array([0.5])),
    "centred mean": lambda data, loss: CentredRows(data, POINT, radius=1.0).mean_gradient(
        loss, POINT
    ),
    "sum": lambda data, loss: data.sum_gradient(loss, POINT),
    "minimiser": lambda data, loss: data.strongly_convex_argmin(
        loss, modulus=0.1, linear=POINT, tolerance=1e-6, start=POINT
    ),
}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("loss", [Mine(), Shifted(Mine(), 0.5)], ids=["own", "shifted"])
def test_what_is_assumed_of_a_loss_of_ones_own_is_named_by_certificate_and_guarantee(
    loss: Loss, release: str
) -> None:
    data = PrivateDataset.planned(DataShape(("a",), 9, 2, 1.0, Adjacency.REPLACE_ONE))
    own, shipped = (RELEASES[release](data, each).sensitivity for each in (loss, Logistic()))
    assert (own, shipped.assumptions) == (shipped, ())
    events = [Event(GaussianStep(own, 9.0), Context((), 1, "model", Audience.PUBLIC))]
    (given,) = guarantee(events, delta=1e-5).assumptions
    word = "convex" if release == "minimiser" else "elementwise"
    assert re.search(rf"the loss .*Mine is {word}.*: tried on random scores, not proved", given)
    assert f"declared: {given}" in check(certify(events, delta=1e-5).to_json_bytes()).assumptions


@pytest.mark.parametrize(
    ("adjacency", "scheme", "beside"),
    [
        (Adjacency.ADD_REMOVE_ONE, Poisson(0.1), True),
        (Adjacency.REPLACE_ONE, FixedBatch(2), False),
        *slow(
            (Adjacency.ZERO_OUT_ONE, Poisson(0.1), False),
            (Adjacency.REPLACE_ONE, FixedBatch(2), True),
        ),
    ],
)
def test_what_is_assumed_of_a_loss_is_named_for_sampled_sums_at_the_same_price(
    adjacency: Adjacency, scheme: Poisson | FixedBatch, beside: bool
) -> None:
    data = PrivateDataset.planned(DataShape(("a",), 9, 2, 1.0, adjacency))
    prices = []
    for loss in (Logistic(), Mine()):
        curator = PlanningCurator()
        sample = curator.sample(data, scheme)
        for total in (
            sample.sum_gradient(loss, POINT),
            sample.sum_correction(loss, POINT, anchor=POINT, radius=0.1),
        ):
            drawn = total + 0.1 * data.sum_gradient(Logistic(), POINT) if beside else total
            prices.append((drawn.sampled_part.sampled, drawn.sampled_part.constant))  # type: ignore[union-attr]
        curator.release(drawn, round=1, release="x", noise_std=9.0)
        named = [
            text for text in guarantee(curator.events, delta=1e-5).assumptions if "Mine" in text
        ]
        verdict = pld_check(certify(curator.events, delta=1e-5).to_json_bytes())
        assert {f"declared: {text}" for text in named} <= {*verdict.assumptions}
        assert len(named) == isinstance(loss, Mine)
    assert prices[:2] == prices[2:]


@pytest.mark.parametrize("loss", SHIPPED, ids=lambda loss: type(loss).__name__)
def test_nothing_is_assumed_of_losses_that_come_with_the_program(loss: Loss) -> None:
    bound = mean_of_bounded(1, 9, Adjacency.REPLACE_ONE)
    assert assuming(stated(loss), bound, minimised=True) is bound


def test_what_a_loss_states_is_read_once_for_price_and_cut() -> None:
    """A bound that is small when it is priced and large when slopes are cut."""

    class Changing:
        outputs = 1
        label_domain = SIGNS
        curvature_bound = None
        readings = 0

        @property
        def derivative_bound(self) -> Fraction:
            self.readings += 1
            return Fraction(1 if self.readings == 1 else 1000)

        def value(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
            return -500.0 * labels * scores

        def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
            return -500.0 * labels * np.ones_like(scores)

    loss = Changing()
    data = AuditDataset(
        np.ones((4, 1)), -np.ones(4), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0
    )
    total = data.sum_gradient(loss, np.full(1, 100.0))
    found = private_value(total)
    assert found is not None
    assert np.abs(found).max() <= 4.0 * total.sensitivity.value / 2


class Turning(Logistic):
    """A loss of one's own that may be told to add up what others have."""

    def __init__(self) -> None:
        object.__setattr__(self, "turned", False)

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        slopes = super().derivative(scores, labels)
        return np.full_like(slopes, slopes.mean()) if self.turned else slopes  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Asked(Logistic):
    """The logistic loss, which counts how often it is asked."""

    calls: ClassVar[list[int]] = []

    def derivative(self, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
        self.calls.append(len(scores))
        return Logistic().derivative(scores, labels)


def test_a_frozen_loss_of_the_callers_is_tried_every_time() -> None:
    """What it reads of its module may have changed."""
    stated(Shifted(Asked(), 0.25))
    tried = len(Asked.calls)
    assert tried > 0
    stated(Shifted(Asked(), 0.25))
    assert len(Asked.calls) == 2 * tried


def test_a_loss_of_the_programs_is_tried_once_for_its_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def asked(*_: object) -> np.ndarray:
        raise AssertionError("tried again")

    stated(ClippedLogistic(0.3725))
    monkeypatch.setattr(ClippedLogistic, "derivative", asked)
    stated(ClippedLogistic(0.3725))
    with pytest.raises(InvalidParameter, match="tried again"):
        stated(ClippedLogistic(0.3726))


def test_a_loss_made_of_one_that_may_change_is_tried_every_time() -> None:
    inner = Turning()
    stated(Shifted(inner, 0.25))
    object.__setattr__(inner, "turned", True)
    with pytest.raises(InvalidParameter, match="elementwise"):
        stated(Shifted(inner, 0.25))
