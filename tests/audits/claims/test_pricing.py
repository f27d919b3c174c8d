"""A stranger's events are priced as anybody's, and stopped when their time is up."""

import time
from math import inf

import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.audits.claims.pricing import priced
from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
from dpledger.mechanisms.events import (
    DiscreteLaplaceStep,
    LaplaceStep,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from dpledger.mechanisms.sensitivity import Norm

CONTEXT = Context((), 1, "release", Audience.PUBLIC)
DELTA = 1e-5
ZERO_OUT = Adjacency.ZERO_OUT_ONE


def gaussian(adjacency: Adjacency = ZERO_OUT) -> GaussianStep:
    return GaussianStep(declared(1, "a test", adjacency=adjacency), 4.0)


def laplace(scale: float) -> LaplaceStep:
    return LaplaceStep(declared(1, "a test", adjacency=ZERO_OUT, norm=Norm.L1), scale)


def test_prices_are_those_of_the_guarantee() -> None:
    lists = [
        (Event(gaussian(), CONTEXT),),
        (Event(Repeated(PoissonSampled(gaussian(), 0.1), 50), CONTEXT),),
        (Event(gaussian(), CONTEXT), Event(laplace(3.0), CONTEXT)),
        (),
    ]
    for events, cost in zip(lists, priced(lists, unit="epsilon", delta=DELTA), strict=True):
        if not events:
            assert cost.upper_float == 0.0
            continue
        expected = guarantee(events, delta=DELTA).epsilon
        assert cost.lower_float <= expected.lower_float
        assert expected.upper_float <= cost.upper_float
        assert cost.upper_float == pytest.approx(expected.upper_float, rel=1e-12)


def test_what_would_take_minutes_has_an_upper_bound_at_once() -> None:
    step = SampledWithoutReplacement(gaussian(Adjacency.REPLACE_ONE), 10, 1000)
    few, many = (Event(Repeated(step, times), CONTEXT) for times in (2, 1000))
    short, long = priced([(few,), (many,)], unit="epsilon", delta=DELTA)
    assert 0.0 < short.lower_float <= short.upper_float < long.upper_float < 10.0
    assert long.lower_float == 0.0


def endless() -> tuple[Event, ...]:
    size = declared(1e9, "a test", adjacency=ZERO_OUT, norm=Norm.L1)
    return (Event(Repeated(DiscreteLaplaceStep(size, 1.0), 10**9), CONTEXT),)


def test_what_takes_too_long_is_not_priced() -> None:
    started = time.monotonic()
    gauss, slow = priced(
        [(Event(gaussian(), CONTEXT),), endless()], unit="epsilon", delta=DELTA, seconds=0.1
    )
    assert time.monotonic() - started < 5
    assert (slow.lower_float, slow.upper_float) == (0.0, inf)
    assert 0.0 < gauss.lower_float <= gauss.upper_float < 2.0


@pytest.mark.slow
def test_what_was_priced_in_time_is_kept() -> None:
    quick, slow = priced(
        [(Event(laplace(1.0), CONTEXT),), endless()], unit="epsilon", delta=DELTA, seconds=20.0
    )
    assert (slow.lower_float, slow.upper_float) == (0.0, inf)
    assert quick.upper_float == pytest.approx(1.0, abs=0.01)
