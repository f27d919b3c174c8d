"""Laws of grouping: messages are counted once each, and ranges hold every member."""

from fractions import Fraction

import pytest

from dpledger.audits.report.groups import (
    audience_views,
    mechanism_groups,
    message_kinds,
    sampling_executed,
    seen_by,
    unprotected_groups,
)
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    Audience,
    Context,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    Norm,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.sensitivity import mean_of_bounded


def sensitivity(value=1, norm=Norm.L2):
    return declared(value, "an example", adjacency=Adjacency.REPLACE_ONE, norm=norm)


def gaussian(value=1, noise_std=2.0):
    return GaussianStep(sensitivity(value), noise_std)


def event(mechanism, *, parties=(), round=1, release="mean", audience=Audience.SERVER):
    return Event(mechanism, Context(parties, round, release, audience))


def groups(*events):
    return mechanism_groups(message_kinds(events))


@pytest.mark.parametrize(
    ("mechanism", "parties", "messages"),
    [
        (gaussian(), (), 1),
        (gaussian(), ("a", "b"), 2),
        (Repeated(gaussian(), 3), ("a", "b"), 6),
        (Repeated(Repeated(gaussian(), 3), 2), (), 6),
        (Parties((("a", (gaussian(),)), ("b", (Repeated(gaussian(), 4),)))), (), 5),
    ],
)
def test_every_message_counts_once(mechanism, parties, messages):
    (group,) = groups(event(mechanism, parties=parties))
    assert group.messages == messages


def test_ranges_hold_every_member():
    (group,) = groups(*(event(gaussian(k, noise_std=2.0 * k * k), round=k) for k in (1, 2, 4)))
    assert (group.sensitivity.least, group.sensitivity.most) == (1, 4)
    assert (group.noise_std.least, group.noise_std.most) == (2, 32)
    assert (group.noise_multiplier.least, group.noise_multiplier.most) == (2, 8)
    assert group.rounds == "1 to 4, 3 of them"
    assert "value=4" in group.derivation


def test_other_derivations_audiences_and_releases_are_other_groups():
    derived = GaussianStep(mean_of_bounded(Fraction(1), 10, Adjacency.REPLACE_ONE), 2.0)
    found = groups(
        event(gaussian()),
        event(gaussian(2)),
        event(derived),
        event(gaussian(), release="sum"),
        event(gaussian(), audience=Audience.PUBLIC),
    )
    assert [group.messages for group in found] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (PoissonSampled(gaussian(), 0.25), "Poisson, rate 0.25"),
        (AccumulatedPoisson(gaussian(), 0.25, 4), "4 Poisson samples summed, rate 0.25"),
        (SampledWithoutReplacement(gaussian(), 5, 2000), "5 of 2,000 records"),
        (SampledWithReplacement(gaussian(), 5, 2000), "5 of 2,000 records with replacement"),
        (GaussianMixtureStep(sensitivity(), sensitivity(2), 0.5, 2.0), "probability 0.5"),
        (gaussian(), "every record enters"),
    ],
)
def test_sampling_is_told(mechanism, words):
    assert words in groups(event(mechanism))[0].sampling
    assert words in sampling_executed(message_kinds([event(mechanism)]))


def test_a_mixture_shifts_by_both_parts():
    mixture = GaussianMixtureStep(sensitivity(1), sensitivity(2), 0.5, 6.0)
    (group,) = groups(event(mixture))
    assert group.sensitivity.most == 3
    assert group.noise_multiplier.most == 2


def test_noise_std_of_discrete_laplace_is_that_of_its_masses():
    scale = 1.5
    (group,) = groups(event(DiscreteLaplaceStep(sensitivity(norm=Norm.L1), scale)))
    masses = {k: 2.718281828459045 ** (-abs(k) / scale) for k in range(-200, 201)}
    variance = sum(k * k * m for k, m in masses.items()) / sum(masses.values())
    assert group.noise_std.most == pytest.approx(variance**0.5, rel=1e-12)


def test_randomised_response_has_neither_sensitivity_nor_noise_std():
    (group,) = groups(event(RandomisedResponse(0.75)))
    assert (group.sensitivity, group.noise_std, group.derivation) == (None, None, None)
    assert "0.75" in group.mechanism


def test_what_does_not_depend_on_the_data_has_an_infinite_noise_multiplier():
    (group,) = groups(event(gaussian(0)))
    assert group.noise_multiplier.most == "infinity"


def test_unprotected_messages_are_apart_and_grouped_by_reason():
    leaks = [
        event(UnprotectedRelease("a reason"), parties=("a", "b"), release=f"step {k}")
        for k in range(5)
    ]
    kinds = list(message_kinds([event(gaussian()), *leaks]))
    (leaked,) = unprotected_groups(kinds)
    assert (leaked.messages, leaked.release) == (10, "step 0, …, step 4")
    assert [group.messages for group in mechanism_groups(kinds)] == [1]
    assert [view.protected for view in audience_views(kinds)] == [True, False]


def test_a_mechanism_without_noise_protects_nothing():
    kinds = list(message_kinds([event(gaussian(noise_std=0.0)), event(gaussian(0, 0.0))]))
    (leaked,) = unprotected_groups(kinds)
    assert leaked.messages == 1
    assert "without noise" in leaked.reason
    assert [group.messages for group in mechanism_groups(kinds)] == [1]


def test_an_audience_is_told_what_it_sees():
    views = audience_views(message_kinds([event(gaussian(), parties=("a", "b"))]))
    assert seen_by(views, Audience.SERVER) == "every message addressed to them: 2 (mean)"
    assert seen_by(views, Audience.PUBLIC).startswith("no message")
