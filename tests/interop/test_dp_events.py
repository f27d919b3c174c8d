"""Laws of the translation: what both know survives there and back, the rest is refused."""

from fractions import Fraction
from itertools import combinations, product
from math import inf, nan, nextafter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm
from tests.parameters import slow

from dpledger.accounting.guarantees import guarantee
from dpledger.interop.dp_events import (
    Untranslatable,
    dp_event_of,
    mechanism_of,
    mechanisms_of_tree,
)
from dpledger.interop.event_trees import EventTree
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    UnprotectedRelease,
    declared,
)

peer = pytest.importorskip("dp_accounting")

REPLACE = Adjacency.REPLACE_ONE


def size(value=1, norm=Norm.L2):
    return declared(value, "for the test", adjacency=REPLACE, norm=norm)


def back(event, sensitivity=1):
    return mechanism_of(event, adjacency=REPLACE, sensitivity=sensitivity)


UNIT_MECHANISMS = [
    GaussianStep(size(), 2.5),
    LaplaceStep(size(norm=Norm.L1), 0.5),
    DiscreteLaplaceStep(size(3, Norm.L1), 4.0),
    RandomisedResponse(0.75, 3),
    Repeated(GaussianStep(size(), 7.0), 40),
    PoissonSampled(GaussianStep(size(), 1.5), 0.01),
    PoissonSampled(LaplaceStep(size(norm=Norm.L1), 1.5), 0.25),
    SampledWithoutReplacement(GaussianStep(size(), 1.5), 8, 512),
]


@pytest.mark.parametrize("mechanism", UNIT_MECHANISMS, ids=lambda m: type(m).__name__)
def test_what_both_know_survives_there_and_back(mechanism):
    assert back(dp_event_of(mechanism)) == (mechanism,)


def test_the_noise_multiplier_is_noise_over_the_whole_sensitivity():
    step = GaussianStep(size(0.005), 0.02)
    assert dp_event_of(step) == peer.GaussianDpEvent(pytest.approx(4.0))


def test_edges_become_their_words_for_everything_and_nothing():
    assert dp_event_of(GaussianStep(size(0), 0.0)) == peer.NoOpDpEvent()
    assert dp_event_of(GaussianStep(size(), 0.0)) == peer.NonPrivateDpEvent()
    assert dp_event_of(RandomisedResponse(0.25, 4)) == peer.NoOpDpEvent()
    assert dp_event_of(UnprotectedRelease("a test")) == peer.NonPrivateDpEvent()
    assert isinstance(back(peer.NonPrivateDpEvent())[0], UnprotectedRelease)
    assert back(peer.NoOpDpEvent()) == ()


def test_the_event_of_a_jax_privacy_plan_is_read():
    # its execution plans hold the events of dp-accounting: DP-SGD, then one with groups of bands
    draws = peer.PoissonSampledDpEvent(0.01, peer.GaussianDpEvent(1.1))
    bands = peer.PoissonSampledDpEvent(0.04, peer.GaussianDpEvent(2.0))
    plan = peer.ComposedDpEvent(
        [peer.SelfComposedDpEvent(draws, 1000), peer.SelfComposedDpEvent(bands, 250)]
    )
    clipped = declared(
        1, "a DpEvent's noise multiplier is stated against this", adjacency=Adjacency.ADD_REMOVE_ONE
    )
    assert mechanism_of(plan, adjacency=Adjacency.ADD_REMOVE_ONE, sensitivity=1) == (
        Repeated(PoissonSampled(GaussianStep(clipped, 1.1), 0.01), 1000),
        Repeated(PoissonSampled(GaussianStep(clipped, 2.0), 0.04), 250),
    )


def test_a_repeated_composition_is_a_composition_of_repetitions():
    first, second = peer.GaussianDpEvent(1.0), peer.GaussianDpEvent(2.0)
    both = peer.ComposedDpEvent([first, second])
    one, two = back(first) + back(second)
    assert back(peer.SelfComposedDpEvent(both, 2)) == (Repeated(one, 2), Repeated(two, 2))


def test_a_count_stays_a_number_however_large():
    both = peer.ComposedDpEvent([peer.GaussianDpEvent(1e9), peer.LaplaceDpEvent(1e12)])
    huge = peer.SelfComposedDpEvent(peer.SelfComposedDpEvent(both, 10**9), 10**9)
    first, second = back(huge)
    one, two = back(both)
    assert (first, second) == tuple(Repeated(Repeated(x, 10**9), 10**9) for x in (one, two))


@pytest.mark.parametrize("count", [2.9, 0.3 / 0.1, 3.0, nan, inf, True, "3", -1, None])
def test_a_count_that_is_no_whole_number_is_refused_and_not_cut_down(count):
    with pytest.raises(Untranslatable, match=r"count=.* must be a whole number"):
        back(peer.SelfComposedDpEvent(peer.GaussianDpEvent(1.0), count))


def test_counts_of_numpy_are_whole_numbers():
    (found,) = back(peer.SelfComposedDpEvent(peer.GaussianDpEvent(1.0), np.int64(3)))
    assert (found.times, type(found.times)) == (3, int)


@pytest.mark.parametrize(
    "event",
    [
        peer.RandomizedResponseDpEvent(0.5, 2.5),
        peer.dp_event.DiscreteLaplaceDpEvent(0.5, 2.5),
        peer.SampledWithoutReplacementDpEvent(100.5, 5, peer.GaussianDpEvent(2.0)),
        peer.SampledWithoutReplacementDpEvent(100, 5.5, peer.GaussianDpEvent(2.0)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_sizes_that_are_no_whole_numbers_are_refused(event):
    with pytest.raises(Untranslatable, match="must be a whole number"):
        back(event)


@pytest.mark.parametrize(
    "event",
    [
        peer.RandomizedResponseDpEvent(1.5, 2),
        peer.RandomizedResponseDpEvent(nan, 2),
        peer.dp_event.DiscreteLaplaceDpEvent(-0.5, 2),
        peer.dp_event.DiscreteLaplaceDpEvent(inf, 2),
        peer.PoissonSampledDpEvent(1.5, peer.GaussianDpEvent(1.0)),
        peer.PoissonSampledDpEvent(nan, peer.GaussianDpEvent(1.0)),
        peer.GaussianDpEvent(-1.0),
        peer.SelfComposedDpEvent(peer.GaussianDpEvent(1.0), 10**18 + 1),
    ],
    ids=str,
)
def test_numbers_out_of_range_are_refused(event):
    with pytest.raises(InvalidParameter):
        back(event)


CHANCES = [3e-16, 1e-6, 0.1, 0.3, 1 / 3, 0.999, nextafter(1.0, 0.0), 5e-324]


@pytest.mark.parametrize("categories", [2, 3, 7, 1000])
@pytest.mark.parametrize("chance", CHANCES)
def test_randomised_response_never_becomes_cheaper_on_its_way(chance, categories):
    # e^epsilon is truth·(k - 1)/(1 - truth), larger for more truth; exact rationals throughout
    def truth(uniform):
        return 1 - Fraction(uniform) * (categories - 1) / categories

    (read,) = back(peer.RandomizedResponseDpEvent(chance, categories))
    assert Fraction(read.truth) >= truth(chance)
    assert Fraction(nextafter(read.truth, 0.0)) < truth(chance)
    if read.truth < 1:
        assert truth(dp_event_of(read).noise_parameter) >= Fraction(read.truth)


@pytest.mark.parametrize("noise", [0.1, 1 / 3, 0.7, 4.0, 1e-300, 1e300])
@pytest.mark.parametrize("sensitivity", [3, 7, 10**6])
def test_noise_is_never_more_on_the_way_out(noise, sensitivity):
    multiplier = Fraction(noise) / sensitivity
    gaussian = dp_event_of(GaussianStep(size(sensitivity), noise))
    laplace = dp_event_of(LaplaceStep(size(sensitivity, Norm.L1), noise))
    for written in (gaussian.noise_multiplier, laplace.noise_multiplier):
        assert Fraction(written) <= multiplier < Fraction(nextafter(written, inf))
    discrete = dp_event_of(DiscreteLaplaceStep(size(sensitivity, Norm.L1), noise))
    assert Fraction(discrete.noise_parameter) * Fraction(noise) >= 1


@pytest.mark.parametrize("parameter", [0.1, 1 / 3, 0.7, 3.0, 1e-300, 1e300])
def test_the_scale_of_discrete_laplace_noise_is_never_more_on_the_way_in(parameter):
    (read,) = back(peer.dp_event.DiscreteLaplaceDpEvent(parameter, 1))
    assert Fraction(read.scale) * Fraction(parameter) <= 1
    assert Fraction(nextafter(read.scale, inf)) * Fraction(parameter) > 1


def test_a_clipped_sum_under_replace_one_has_twice_the_sensitivity():
    (step,) = back(peer.GaussianDpEvent(3.0), sensitivity=2)
    assert (step.sensitivity.value, step.noise_std) == (2.0, 3.0)
    assert step.sensitivity.adjacency is REPLACE
    assert step.sensitivity.assumptions


@pytest.mark.parametrize(
    "mechanism",
    [
        DiscreteGaussianStep(size(), 2.0),
        GaussianMixtureStep(size(), size(), 0.1, 2.0),
        Parties((("a", (GaussianStep(size(), 1.0),)),)),
        DiscreteLaplaceStep(size(0.5, Norm.L1), 4.0),
        RandomisedResponse(0.1, 2),
    ],
    ids=lambda m: type(m).__name__,
)
def test_what_they_have_no_word_for_is_refused(mechanism):
    with pytest.raises(Untranslatable):
        dp_event_of(mechanism)


@pytest.mark.parametrize(
    "event",
    [
        peer.ZCDpEvent(0.1),
        peer.UnsupportedDpEvent(),
        peer.PoissonSampledDpEvent(0.1, peer.ZCDpEvent(0.1)),
        peer.SampledWithReplacementDpEvent(100, 5, peer.GaussianDpEvent(1.0)),
        peer.dp_event.RepeatAndSelectDpEvent(peer.GaussianDpEvent(1.0), 10.0, 1.0),
        peer.dp_event.RepeatAndSelectDpEvent(peer.LaplaceDpEvent(1.0), 10.0, inf),
        peer.dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.4]),
        SimpleNamespace(module_name="os", class_name="system", command="true"),
    ],
    ids=str,
)
def test_what_has_no_meaning_here_is_refused(event):
    with pytest.raises(Untranslatable):
        mechanism_of(event, adjacency=Adjacency.ADD_REMOVE_ONE, sensitivity=1)


def test_a_sensitivity_out_of_range_is_refused():
    with pytest.raises(InvalidParameter, match="sensitivity=0"):
        back(peer.GaussianDpEvent(1.0), sensitivity=0)


# --- truncated Poisson batches -----------------------------------------------------------------


def truncated(records=4, rate=0.3, batch=1, noise=1.5):
    event = peer.dp_event.TruncatedSubsampledGaussianDpEvent(records, rate, batch, noise)
    found = mechanism_of(event, adjacency=Adjacency.ADD_REMOVE_ONE, sensitivity=1)
    where = Context((), 1, "batch", Audience.PUBLIC)
    return event, [Event(mechanism, where) for mechanism in found]


def laws_of_a_cut_batch(others, added, *, rate, batch):
    """Return how probable each sum is, without and with the added record, by enumeration."""
    laws = []
    for values in (others, [*others, added]):
        sums: dict[float, float] = {}
        for drawn in product([0, 1], repeat=len(values)):
            chosen = [v for v, d in zip(values, drawn, strict=True) if d]
            weight = rate ** sum(drawn) * (1 - rate) ** (len(values) - sum(drawn))
            kept = list(combinations(chosen, min(batch, len(chosen))))
            for each in kept:
                sums[sum(each)] = sums.get(sum(each), 0.0) + weight / len(kept)
        laws.append(sums)
    return laws


@pytest.mark.parametrize("others", [[-1, -1, -1], [1, 1, 1], [-1, 0, 1], [-1]])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_cut_batch_costs_no_more_than_it_is_priced(others, batch) -> None:
    noise, rate, delta = 1.5, 0.3, 1e-2
    _, events = truncated(len(others), rate, batch, noise)
    epsilon = guarantee(events, delta=delta).epsilon.upper_float
    points = np.linspace(-15, 15, 60_001)
    without, with_it = (
        sum(w * norm.pdf(points, s, noise) for s, w in law.items())
        for law in laws_of_a_cut_batch(others, 1, rate=rate, batch=batch)
    )
    step = points[1] - points[0]
    for p, q in ((without, with_it), (with_it, without)):
        assert np.maximum(p - np.exp(epsilon) * q, 0).sum() * step <= delta


@pytest.mark.parametrize(("records", "batch"), [(1000, 40), *slow((1000, 2000))])
def test_cut_batches_are_priced_above_their_library_and_uncut_ones_alike(
    records: int, batch: int
) -> None:
    event, events = truncated(records, 0.02, batch, 1.0)
    accountant = peer.pld.PLDAccountant()
    accountant.compose(event, 50)
    theirs = accountant.get_epsilon(1e-5)
    ours = guarantee([e for e in events for _ in range(50)], delta=1e-5).epsilon.upper_float
    assert ours >= theirs * (1 - 1e-3)
    assert batch < records or ours == pytest.approx(theirs, rel=1e-2)


def test_cut_batches_of_nobody_cost_nothing_and_another_relation_is_refused() -> None:
    assert truncated(1000, 0.0)[1] == []
    with pytest.raises(Untranslatable, match="under add/remove"):
        back(peer.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 20, 1.0))


@pytest.mark.parametrize("shape", [[1.0], "1", None, True])
def test_a_shape_that_is_no_number_is_refused_by_name(shape: object) -> None:
    """A list ended in a bare comparison."""
    inner = EventTree("LaplaceDpEvent", {"noise_multiplier": 1.0})
    tree = EventTree("RepeatAndSelectDpEvent", {"event": inner, "mean": 20.0, "shape": shape})
    with pytest.raises(InvalidParameter, match=r"shape=.* must be in \[0, inf\)"):
        mechanisms_of_tree(tree, adjacency=Adjacency.REPLACE_ONE, sensitivity=1)
