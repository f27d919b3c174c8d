"""A stranger's events are priced as anybody's, or given up after so much work; no clock is read."""

from math import inf, log

import pytest

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.work import WorkExhausted, limited, spend
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.own import (
    OwnPromise,
    PromisedEpsilon,
    PromisedMu,
    PromisedRho,
    judged_events,
)
from dpledger.audits.claims.pricing import priced
from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.events import (
    AccumulatedPoisson,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    Repeated,
    SampledWithoutReplacement,
)
from dpledger.mechanisms.sensitivity import Norm

CONTEXT = Context((), 1, "release", Audience.PUBLIC)
DELTA = 1e-5
ZERO_OUT = Adjacency.ZERO_OUT_ONE


def gaussian(noise_std: float = 4.0, adjacency: Adjacency = ZERO_OUT) -> GaussianStep:
    return GaussianStep(declared(1, "a test", adjacency=adjacency), noise_std)


def laplace(scale: float) -> LaplaceStep:
    return LaplaceStep(declared(1, "a test", adjacency=ZERO_OUT, norm=Norm.L1), scale)


@pytest.mark.parametrize(
    "promise", [PromisedEpsilon(1.0, DELTA), PromisedRho(1.0), PromisedMu(1.0)], ids=repr
)
def test_no_noise_on_a_sample_refutes_where_records_are_in_it_more_often_than_delta(
    promise: OwnPromise,
) -> None:
    bare = gaussian(0.0, Adjacency.REPLACE_ONE)
    for mechanism in (
        bare,
        PoissonSampled(gaussian(0.0), 1.0),
        PoissonSampled(gaussian(0.0), 0.5),
        AccumulatedPoisson(gaussian(0.0), 1.0, 3),
        SampledWithoutReplacement(bare, 1, 99),
    ):
        assert judged_events(listed(mechanism), promise).verdict is ClaimVerdict.FAILS
    for rare in (PoissonSampled(gaussian(0.0), 1e-7), SampledWithoutReplacement(bare, 1, 10**7)):
        assert judged_events(listed(rare), promise).verdict is not ClaimVerdict.FAILS


def listed(*mechanisms: Mechanism) -> tuple[Event, ...]:
    return tuple(Event(mechanism, CONTEXT) for mechanism in mechanisms)


@pytest.mark.parametrize(
    "events",
    [
        listed(gaussian()),
        listed(Repeated(PoissonSampled(gaussian(), 0.1), 50)),
        listed(gaussian(), laplace(3.0)),
        # 16 epochs of MNIST, promised by Abadi et al. 2016 under this noise
        listed(Repeated(PoissonSampled(gaussian(2.0), 0.01), 70_000)),
    ],
)
def test_prices_are_those_of_the_guarantee(events: tuple[Event, ...]) -> None:
    found = priced(events, unit="epsilon", delta=DELTA)
    expected = guarantee(events, delta=DELTA).epsilon
    assert (found.cost.lower, found.cost.upper) == (expected.lower, expected.upper)
    assert not found.refusal
    assert not found.gave_up


def test_nothing_costs_nothing() -> None:
    assert priced((), unit="epsilon", delta=DELTA).cost == 0


def batches(noise_std: float) -> tuple[Event, ...]:
    # each test has a noise of its own: what is in a cache would cost no work
    step = SampledWithoutReplacement(gaussian(noise_std, Adjacency.REPLACE_ONE), 10, 1000)
    return listed(Repeated(step, 3))


def test_what_takes_too_much_work_is_given_up_with_an_upper_bound_by_divergences() -> None:
    found = priced(batches(4.03), unit="epsilon", delta=DELTA, units_of_work=200)
    assert found.gave_up
    assert "200 units of work" in found.refusal
    assert found.cost.lower_float == 0.0
    true = guarantee(batches(4.03), delta=DELTA).epsilon
    assert true.upper_float < found.cost.upper_float < 10


def test_less_work_still_leaves_everything_open() -> None:
    found = priced(batches(4.05), unit="epsilon", delta=DELTA, units_of_work=1)
    assert found.gave_up
    assert (found.cost.lower_float, found.cost.upper_float) == (0.0, inf)
    assert priced(batches(4.05), unit="rho", delta=DELTA, units_of_work=1).cost.upper_float == inf


def test_a_refusal_of_the_engine_is_passed_on() -> None:
    sampled = listed(PoissonSampled(gaussian(4.0, Adjacency.REPLACE_ONE), 0.1))
    found = priced(sampled, unit="epsilon", delta=DELTA)
    assert not found.gave_up
    assert "add-remove-one or zero-out-one" in found.refusal
    assert (
        "add-remove-one or zero-out-one"
        in judged_events(sampled, PromisedEpsilon(1.0, DELTA)).reason
    )


def test_many_different_pure_steps_are_bounded_by_their_divergences() -> None:
    """They hung: moments in balls, of each step at each of a hundred thousand nodes, were free."""
    steps = [
        PureStep(declared(k / 999, "a test", adjacency=ZERO_OUT, norm=Norm.L1), 1.0)
        for k in range(1, 31)
    ]
    found = priced(
        [Event(step, CONTEXT) for step in steps], unit="epsilon", delta=DELTA, units_of_work=5_000
    )
    assert found.gave_up
    # by zCDP alone, ρ = Σ ε²/2 (Bun, Steinke 2016, Propositions 1.3 and 1.4)
    rho = sum(float(step.sensitivity.squared) for step in steps) / 2
    assert 0.2 < found.cost.upper_float < rho + 2 * (rho * log(1 / DELTA)) ** 0.5


def test_work_is_counted_inside_the_block_only() -> None:
    with limited(5):
        spend(5)
        with limited(2):
            spend(2)
        with pytest.raises(WorkExhausted, match="Gave up after 5 units"):
            spend(1)
    spend(10**9)
    with pytest.raises(InvalidParameter, match="units"), limited(0):
        pass
