"""Laws of the cross-check: agreement is found, every difference explained, a wrong price caught."""

import sys
from math import exp, inf, log

import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.numbers.enclosure import Enclosure
from dpledger.audits.crosschecks import Status, crosscheck
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    Event,
    GaussianStep,
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
from dpledger.mechanisms.extras import MissingExtra

pytest.importorskip("dp_accounting")

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE


def gaussian(multiplier, adjacency=REPLACE, size=0.25):
    return GaussianStep(declared(size, "for the test", adjacency=adjacency), multiplier * size)


def event(mechanism, parties=(), round=1):
    return Event(mechanism, Context(parties, round, "gradient", Audience.SERVER))


def peers(events, **settings):
    found = crosscheck(events, **({"delta": 1e-5} | settings))
    return found, *found.peers


HUNDRED_ROUNDS = [event(gaussian(37.3063), ("a", "b"), k) for k in range(1, 101)]
DECAYING = [event(gaussian(20 + k), ("a", "b"), k) for k in range(1, 31)]


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize(
    "events",
    [
        HUNDRED_ROUNDS,
        DECAYING,
        [event(gaussian(1.0))],
        [event(gaussian(1.0, ADD))],
        [event(Repeated(gaussian(100.0), 10_000))],
        [event(gaussian(3.0), ("a",)), event(gaussian(4.0), ("b",)), event(gaussian(9.0))],
        [event(Parties((("a", (gaussian(3.0),)), ("b", (Repeated(gaussian(3.5), 2),)))))],
    ],
    ids=["rounds", "decay", "one", "add-remove", "repeated", "parties", "nested parties"],
)
def test_gaussian_steps_agree(events, delta):
    found, rdp, pld = peers(events, delta=delta)
    assert found.agrees
    assert pld.status is Status.AGREE
    assert rdp.status is Status.LOOSER
    assert "our own makes" in rdp.explanation


def test_the_maximum_over_parties_is_compared():
    both = [event(gaussian(3.0), ("a",)), event(gaussian(4.0), ("b",))]
    worse = [event(gaussian(3.0), ("a",))]
    assert [p.theirs for p in crosscheck(both, delta=1e-5).peers] == [
        p.theirs for p in crosscheck(worse, delta=1e-5).peers
    ]


@pytest.mark.parametrize("factor", [0.5, 0.97, 1.03, 2.0])
def test_a_wrong_price_fails(factor):
    def wrong(events, delta):
        right = crosscheck(events, delta=delta).ours
        return Enclosure.of(right.upper_float * factor)

    found, _, pld = peers(HUNDRED_ROUNDS, price=wrong)
    assert not found.agrees
    assert pld.status is Status.DISAGREES
    assert pld.failed


def test_a_hundredth_too_little_for_many_samples_fails():
    """A step of their grid for each sample let it pass, though normal noise is not rounded so."""
    step = Repeated(PoissonSampled(gaussian(1.0, ADD, 1), 0.01), 1000)
    found, _, pld = peers([event(step)], price=lambda _, __: Enclosure.of(0.99 * 1.8282366665))
    assert found.is_finding
    assert pld.status is Status.DISAGREES
    assert "finer one does not help" in pld.explanation


def test_a_price_for_sensitivities_without_the_factor_of_replace_one_fails():
    halved = epsilon_from_delta(mu_squared=100 / (4 * 37.3063**2), delta=1e-5)
    found = crosscheck(HUNDRED_ROUNDS, delta=1e-5, price=lambda _, __: halved)
    assert [peer.failed for peer in found.peers] == [True, True]


@pytest.mark.parametrize(
    ("delta", "raised", "status", "explained"),
    [
        (1e-10, 1e-6, Status.AGREE, True),
        (1e-14, 0.05, Status.DISAGREES, True),
        (1e-10, 0.01, Status.DISAGREES, False),
        (1e-5, 1e-6, Status.DISAGREES, False),
    ],
)
def test_below_the_exact_value_only_a_tiny_mass_explains(delta, raised, status, explained):
    # an exact value raised by hand stands for what they lose to rounding in long convolutions
    def above(events, at):
        return Enclosure.of(epsilon_from_delta(mu_squared=1, delta=at).upper_float * (1 + raised))

    found = crosscheck([event(gaussian(1.0))], delta=delta, price=above)
    pld = found.peers[1]
    assert (pld.status, pld.explained) == (status, explained)
    assert pld.relative_gap < -raised / 2
    assert ("not ours to follow" in pld.explanation) is explained


def test_their_convolutions_in_doubles_do_lose_such_a_mass():
    # the fact behind the allowance: 10,000 steps of mu = 1 in all, below the exact value
    from dp_accounting.pld import privacy_loss_distribution

    composed = privacy_loss_distribution.from_gaussian_mechanism(
        100, value_discretization_interval=1e-4
    ).self_compose(10_000)
    for delta in (1e-10, 1e-14):
        theirs = composed.get_epsilon_for_delta(delta)
        assert theirs < epsilon_from_delta(mu_squared=1, delta=delta).lower_float
        assert theirs > epsilon_from_delta(mu_squared=1, delta=delta + 1e-12).upper_float


def test_tails_that_they_cut_are_explained_at_tiny_delta():
    found, _, pld = peers(DECAYING, delta=1e-14)
    assert found.agrees
    assert (pld.status, pld.theirs) == (Status.LOOSER, inf)
    assert "cut tails" in pld.explanation


def test_no_protection_is_infinite_for_all():
    for unprotected in (UnprotectedRelease("a test"), gaussian(0.0)):
        found, *both = peers([event(unprotected), event(gaussian(1.0))])
        assert found.agrees
        assert [peer.theirs for peer in both] == [inf, inf]


def test_no_dependence_on_data_is_free_for_all():
    for free in ([], [event(gaussian(0.0, size=0.0))]):
        found, *both = peers(free)
        assert found.agrees
        assert [peer.theirs for peer in both] == [0.0, 0.0]


def test_repeated_randomised_response_counts_every_answer():
    # k binary answers, truth t: the loss of j wrong ones is (k - 2j) ln(t / (1 - t))
    times, truth, delta = 10, 0.75, 1e-5
    unit = log(truth / (1 - truth))

    def excess(epsilon):
        weights = binom.pmf(range(times + 1), times, 1 - truth)
        losses = [(times - 2 * j) * unit for j in range(times + 1)]
        above = zip(weights, losses, strict=True)
        return sum(w * (1 - exp(epsilon - x)) for w, x in above if x > epsilon) - delta

    exact = Enclosure.of(brentq(excess, 0.0, times * unit, xtol=1e-12))
    repeated = [event(Repeated(RandomisedResponse(truth), times))]
    found, rdp, pld = peers(repeated, delta=delta, price=lambda _, __: exact)
    assert found.agrees
    assert pld.status is Status.AGREE
    assert rdp.status is Status.LOOSER


def test_a_gaussian_beside_randomised_response_is_not_doubled():
    # an answer of almost pure noise costs nothing, and moves the list to their replace-one relation
    mixed = [event(gaussian(1.0)), event(RandomisedResponse(0.5 + 1e-9))]
    exact = epsilon_from_delta(mu_squared=1, delta=1e-5)
    assert crosscheck(mixed, delta=1e-5, price=lambda _, __: exact).peers[1].status is Status.AGREE


def test_one_sampled_gaussian_agrees_with_its_closed_form():
    rate, multiplier, delta = 0.05, 1.0, 1e-5

    def worst(epsilon):
        # P = (1-q) N(0, s²) + q N(1, s²) against Q = N(0, s²), cut where dP/dQ = e^epsilon
        ratio = (exp(epsilon) - 1 + rate) / rate
        cut = multiplier**2 * log(ratio) + 0.5
        mixture = (1 - rate) * norm.sf(cut / multiplier) + rate * norm.sf((cut - 1) / multiplier)
        return mixture - exp(epsilon) * norm.sf(cut / multiplier) - delta

    exact = Enclosure.of(brentq(worst, 1e-6, 10.0, xtol=1e-13))
    sampled = [event(PoissonSampled(gaussian(multiplier, ADD), rate))]
    found, rdp, pld = peers(sampled, delta=delta, price=lambda _, __: exact)
    assert found.agrees
    assert pld.status is Status.AGREE
    assert rdp.status is Status.LOOSER
    assert "not checked" in rdp.explanation


def test_what_a_peer_does_not_support_is_skipped_with_its_reason():
    one = Enclosure.of(0.1)
    fixed = [event(SampledWithoutReplacement(gaussian(2.0), 10, 1000))]
    _, rdp, pld = peers(fixed, price=lambda _, __: one)
    assert rdp.status is Status.LOOSER
    assert (pld.status, pld.theirs) == (Status.SKIPPED, None)
    assert "SampledWithoutReplacementDpEvent" in pld.explanation
    discrete = DiscreteGaussianStep(declared(1, "for the test", adjacency=REPLACE), 3.0)
    found, rdp, pld = peers([event(discrete)], price=lambda _, __: one)
    assert rdp.status is pld.status is Status.SKIPPED
    assert "DiscreteGaussianStep" in rdp.explanation
    assert not found.agrees


def test_laplace_steps_are_understood():
    step = LaplaceStep(declared(1, "for the test", adjacency=ADD, norm=Norm.L1), 2.0)
    # one Laplace step: delta(epsilon) = 1 - e^((epsilon - 1/b)/2)
    exact = Enclosure.of(0.5 + 2 * log(1 - 1e-5))
    found, rdp, pld = peers([event(step)], price=lambda _, __: exact)
    assert found.agrees
    assert (rdp.status, pld.status) == (Status.LOOSER, Status.AGREE)


def test_a_missing_library_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(MissingExtra, match=r"dpledger\[crosscheck\]"):
        crosscheck(HUNDRED_ROUNDS, delta=1e-5)


def test_their_two_accountants_treat_replace_one_differently():
    # the fact that the mapping rests on: should it change, the mapping must
    import dp_accounting as peer

    relations = peer.NeighboringRelation
    for accountant, doubles in ((peer.rdp.RdpAccountant, False), (peer.pld.PLDAccountant, True)):

        def epsilon(relation, multiplier, accountant=accountant):
            made = accountant(neighboring_relation=relation)
            return made.compose(peer.GaussianDpEvent(multiplier)).get_epsilon(1e-5)

        plain = epsilon(relations.ADD_OR_REMOVE_ONE, 2.0)
        doubled = epsilon(relations.ADD_OR_REMOVE_ONE, 1.0)
        replaced = epsilon(relations.REPLACE_ONE, 2.0)
        assert replaced == pytest.approx(doubled if doubles else plain, rel=1e-6)
