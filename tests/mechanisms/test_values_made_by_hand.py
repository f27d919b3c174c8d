"""Values that nobody's records made, built from public names and added to private ones.

A `Sensitive` made by hand holds public numbers. Beside a private value it must neither lower its
price nor look at it.
"""

from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from dpledger.mechanisms import (
    EventList,
    GaussianStep,
    InvalidParameter,
    Poisson,
    PoissonSampled,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
    Sensitive,
)
from dpledger.mechanisms.rounding import exact
from dpledger.mechanisms.sensitivity import scaled
from dpledger.mechanisms.subsampling import SampledPart
from dpledger.solvers import Logistic

RATE = 0.9


def data() -> PrivateDataset:
    return PrivateDataset(np.eye(3), np.ones(3), adjacency="zero-out-one", row_bound=1.0)


def beside(private: Sensitive, part: SampledPart | None, zeros: Any) -> Sensitive:
    """Return zeros that say to move by next to nothing."""
    return Sensitive(
        scaled(private.sensitivity, 2.0**-20),
        exact(Fraction(0), width=3),
        parties=private.parties,
        dimension=3,
        compute=lambda: zeros,
        sampled_part=part,
    )


@pytest.mark.parametrize("first", [True, False])
def test_no_part_made_by_hand_has_a_say_in_the_rate(first: bool) -> None:
    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(1))
    private = curator.sample(data(), Poisson(RATE)).sum_gradient(Logistic(), np.zeros(3))
    real = cast("SampledPart", private.sampled_part)
    tiny = scaled(private.sensitivity, 2.0**-20)
    with pytest.raises(InvalidParameter, match="on the same sample"):
        private + beside(private, SampledPart(None, tiny, 10**9, real.draw), np.zeros((1, 3)))
    other = beside(private, SampledPart(None, tiny, real.count, real.draw), np.zeros((1, 3)))
    total = other + private if first else private + other
    curator.release(total, noise_std=1.0, round=1, release="x")
    step = sink.events[0].mechanism
    assert isinstance(step, PoissonSampled)
    assert step.rate == RATE
    assert isinstance(step.event, GaussianStep)
    assert step.event.sensitivity.squared > private.sensitivity.squared


class Curious(np.ndarray[Any, np.dtype[np.float64]]):
    """Numbers whose own functions keep what they are called with."""

    seen: list[Any] = []  # noqa: RUF012

    def __array_ufunc__(self, *given: Any, **_: Any) -> Any:
        self.seen.append(given)
        return np.zeros((1, 3))

    def __array_function__(self, *given: Any, **_: Any) -> Any:
        self.seen.append(given)
        return np.zeros((2, 3))


@pytest.mark.parametrize("way", ["sum", "pair"])
def test_no_numbers_look_at_what_they_are_added_to(way: str) -> None:
    private = data().mean_gradient(Logistic(), np.zeros(3))
    other = beside(private, None, np.zeros((1, 3)).view(Curious))
    Curious.seen.clear()
    if way == "sum":
        other + private
        private + other
    else:
        private.concatenated(other)
    assert not Curious.seen
