"""Laws of epsilon over random events, by the tight and the Rényi accountant.

1. More steps, less noise, a higher rate or a smaller delta never cost less.
2. Composing is commutative and associative, within the enclosures.
3. A sampled event of rate one, or of a whole batch, is the plain one.
4. Records of disjoint parties pay the maximum.
"""

from math import nextafter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpledger.accounting.accountants import (
    Accountant,
    RdpAccountant,
    TightAccountant,
    tightest_accountant,
)
from dpledger.accounting.composition import composed
from dpledger.accounting.numbers.enclosure import Enclosure
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    declared,
)

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
BOTH = pytest.mark.parametrize("kind", [RdpAccountant, TightAccountant], ids=lambda kind: kind.name)
UNDECIDED = 1e-5
"""The searches for an order and the grids leave this much open, relatively."""

noises = st.floats(0.8, 3.0)
rates = st.floats(0.01, 0.2)
counts = st.integers(300, 600)
deltas = st.sampled_from([1e-3, 1e-6])
few = settings(max_examples=4)


def l2(adjacency: Adjacency = ADD) -> GaussianStep:
    return GaussianStep(declared(1, "a test", adjacency=adjacency), 1.0)


def gaussian(noise: float, adjacency: Adjacency = ADD) -> GaussianStep:
    return GaussianStep(l2(adjacency).sensitivity, noise)


def poisson(noise: float, rate: float, times: int) -> Repeated:
    return Repeated(PoissonSampled(gaussian(noise), rate), times)


def event(mechanism: Mechanism, *parties: str) -> Event:
    return Event(mechanism, Context(parties, 1, "test", Audience.SERVER))


def epsilon(kind: type[Accountant], delta: float, *mechanisms: Mechanism) -> Enclosure:
    accountant = kind()
    accountant.extend(map(event, mechanisms))
    return accountant.epsilon(delta)


@BOTH
@few
@given(noises, rates, counts, deltas, st.floats(1.01, 3.0))
def test_more_costs_no_less(
    kind: type[Accountant], noise: float, rate: float, steps: int, delta: float, more: float
) -> None:
    here = epsilon(kind, delta, poisson(noise, rate, steps)).upper_float * (1 - UNDECIDED)
    assert epsilon(kind, delta, poisson(noise, rate, int(steps * more) + 1)).upper_float >= here
    assert epsilon(kind, delta, poisson(noise / more, rate, steps)).upper_float >= here
    assert epsilon(kind, delta, poisson(noise, rate * more, steps)).upper_float >= here
    assert epsilon(kind, delta / more, poisson(noise, rate, steps)).upper_float >= here


@BOTH
@few
@given(noises, rates, counts, noises, deltas)
def test_order_and_grouping_do_not_matter(
    kind: type[Accountant], noise: float, rate: float, steps: int, other: float, delta: float
) -> None:
    first, second, third = poisson(noise, rate, steps), poisson(other, rate, 30), gaussian(20.0)
    found = epsilon(kind, delta, first, second, third)
    halves = Repeated(first.event, steps - 7), Repeated(first.event, 7)
    for again in (
        epsilon(kind, delta, third, second, first),
        epsilon(kind, delta, halves[0], third, halves[1], second),
    ):
        assert again.lower <= found.upper
        assert found.lower <= again.upper
        assert again.upper_float == pytest.approx(found.upper_float, rel=UNDECIDED)


@BOTH
@few
@given(noises, st.integers(1, 40), deltas)
def test_rate_one_is_the_plain_event(
    kind: type[Accountant], noise: float, steps: int, delta: float
) -> None:
    plain = epsilon(kind, delta, Repeated(gaussian(noise), steps))
    assert epsilon(kind, delta, poisson(noise, 1.0, steps)).upper == plain.upper
    whole = Repeated(SampledWithoutReplacement(gaussian(noise, REPLACE), 9, 9), steps)
    assert epsilon(kind, delta, whole).upper == plain.upper


@few
@given(noises, deltas)
def test_a_rate_just_below_one_is_no_step_down(noise: float, delta: float) -> None:
    almost = epsilon(TightAccountant, delta, poisson(noise, nextafter(1.0, 0.0), 1))
    plain = epsilon(TightAccountant, delta, gaussian(noise))
    assert almost.upper_float == pytest.approx(plain.upper_float, rel=1e-9)


@few
@given(
    st.dictionaries(st.sampled_from("abc"), st.tuples(noises, counts), min_size=1),
    st.floats(3.0, 30.0),
    deltas,
)
def test_parties_pay_the_maximum_and_what_all_pay_is_added(
    parts: dict[str, tuple[float, int]], shared: float, delta: float
) -> None:
    size = declared(1, "a test", adjacency=ADD, norm=Norm.L1)
    events = [event(Repeated(LaplaceStep(size, 9 * n), k), p) for p, (n, k) in parts.items()]
    everybody = event(gaussian(shared))
    accountant = RdpAccountant()
    accountant.extend([*events, everybody])
    alone = [epsilon(RdpAccountant, delta, part.mechanism, everybody.mechanism) for part in events]
    assert accountant.epsilon(delta).upper == max(found.upper for found in alone)
    tight = tightest_accountant(composed([*events, everybody])).epsilon(delta)
    assert tight.upper <= accountant.epsilon(delta).upper
