"""Laws of releases as people state them, each against a formula or a sum of its own."""

from dataclasses import replace
from itertools import pairwise
from math import comb, e, exp, expm1, inf, log, sqrt

import numpy as np
import pytest

from dpledger.audits.claims import ClaimVerdict, Finding
from dpledger.audits.claims.own import (
    Averaging,
    ClaimedAccountant,
    MechanismKind,
    OwnPromise,
    PromisedEpsilon,
    PromisedMu,
    PromisedRho,
    Sampling,
    StatedRelease,
    judged,
)
from dpledger.audits.claims.pricing import delta_left
from dpledger.mechanisms import Adjacency, InvalidParameter

ADD, NULL, REPLACE = (
    Adjacency.ADD_REMOVE_ONE,
    Adjacency.ZERO_OUT_ONE,
    Adjacency.REPLACE_ONE,
)
GAUSSIAN, LAPLACE, PRIVATE = (
    MechanismKind.GAUSSIAN,
    MechanismKind.LAPLACE,
    MechanismKind.PRIVATE,
)
OWN_MEAN = StatedRelease(
    GAUSSIAN, clip_norm=1.0, noise=0.05, rounds=1, averaging=Averaging.OWN, divisor=50
)


def true(finding: Finding) -> float:
    assert finding.true is not None
    return finding.true.upper_float


def cost(
    release: StatedRelease, promise: OwnPromise, adjacency: Adjacency, *, group: int = 1
) -> float:
    return true(judged([release], promise, adjacency=adjacency, group=group))


# --- pure epsilon ------------------------------------------------------------------------------


def test_pure_epsilons_add_up() -> None:
    steps = StatedRelease(LAPLACE, sensitivity=0.5, noise=2.0, rounds=8)
    answer = StatedRelease(MechanismKind.RANDOMISED_RESPONSE, noise=e / (1 + e), rounds=3)
    found = judged([steps, answer], PromisedEpsilon(5.0, 0.0), adjacency=REPLACE)
    assert found.verdict_text == "holds exactly"
    short = judged([steps, answer], PromisedEpsilon(4.999, 0.0), adjacency=REPLACE)
    assert short.verdict is ClaimVerdict.NOT_IMPLIED


def test_l2_exponential_noise_costs_the_largest_loss_of_its_density() -> None:
    """Of density ∝ exp(-|v|/2) on the plane, moved by 0.75 to where the file says."""
    release = StatedRelease(MechanismKind.L2_EXPONENTIAL, sensitivity=0.75, noise=2.0, rounds=3)
    x, y = np.meshgrid(np.linspace(-9, 9, 181), np.linspace(-9, 9, 181))
    losses = (np.hypot(x - 0.75, y) - np.hypot(x, y)) / 2.0
    found = cost(release, PromisedEpsilon(9.0, 0.0), ADD)
    assert found == pytest.approx(3 * np.abs(losses).max(), rel=1e-12)
    short = judged([release], PromisedEpsilon(1.124, 0.0), adjacency=ADD)
    assert short.verdict is ClaimVerdict.NOT_IMPLIED


def test_l2_exponential_noise_costs_no_less_than_its_density_does_at_a_delta() -> None:
    """Against Laplace noise, which it is on the line, and quadrature on the plane."""
    release = StatedRelease(MechanismKind.L2_EXPONENTIAL, sensitivity=1.0, noise=1.0, rounds=1)
    axis = np.linspace(-30, 30, 1201)
    x, y = np.meshgrid(axis, axis)
    here = np.exp(-np.hypot(x, y)) / (2 * np.pi)
    there = np.exp(-np.hypot(x - 1.0, y)) / (2 * np.pi)
    for epsilon in (0.3, 0.7):
        on_line = 1 - exp((epsilon - 1) / 2)
        on_plane = np.clip(here - exp(epsilon) * there, 0, None).sum() * (axis[1] - axis[0]) ** 2
        for delta in (on_line, on_plane):
            assert cost(release, PromisedEpsilon(9.0, float(delta)), ADD) >= epsilon


def test_exponential_mechanisms_cost_their_epsilons() -> None:
    release = StatedRelease(MechanismKind.EXPONENTIAL, step_epsilon=0.25, rounds=8)
    found = judged([release], PromisedEpsilon(2.0, 0.0), adjacency=REPLACE)
    assert found.verdict_text == "holds exactly"
    short = judged([release], PromisedEpsilon(1.99, 0.0), adjacency=REPLACE)
    assert short.verdict is ClaimVerdict.NOT_IMPLIED
    # as k-fold randomised response costs, which dominates them (Kairouz, Oh, Viswanath 2015)
    answers = StatedRelease(
        MechanismKind.RANDOMISED_RESPONSE, noise=exp(0.25) / (1 + exp(0.25)), rounds=8
    )
    promise = PromisedEpsilon(1.5, 1e-3)
    assert cost(release, promise, REPLACE) == pytest.approx(
        cost(answers, promise, REPLACE), rel=1e-9
    )
    # choices between two candidates lose half: what lies between is not said to be broken
    halves = StatedRelease(
        MechanismKind.RANDOMISED_RESPONSE, noise=exp(0.125) / (1 + exp(0.125)), rounds=8
    )
    least = cost(halves, promise, REPLACE)
    for epsilon, verdict in (
        (0.99 * least, ClaimVerdict.NOT_IMPLIED),
        (1.01 * least, ClaimVerdict.UNDECIDED),
    ):
        asked = PromisedEpsilon(epsilon, 1e-3)
        assert judged([release], asked, adjacency=REPLACE).verdict is verdict
    unsaid = judged(
        [StatedRelease(MechanismKind.EXPONENTIAL, rounds=8)], promise, adjacency=REPLACE
    )
    assert unsaid.verdict is ClaimVerdict.UNSPECIFIED


def test_gaussian_noise_is_pure_at_no_epsilon() -> None:
    for sampling, rate in ((None, None), (Sampling.POISSON, 1e-6)):
        release = StatedRelease(
            GAUSSIAN, sensitivity=1.0, noise=1e6, rounds=1, sampling=sampling, rate=rate
        )
        found = judged([release], PromisedEpsilon(1e9, 0.0), adjacency=ADD)
        assert found.verdict is ClaimVerdict.FAILS


def test_a_hidden_sample_makes_a_pure_mechanism_better_by_its_rate() -> None:
    release = StatedRelease(
        LAPLACE, sensitivity=1.0, noise=0.5, rounds=4, sampling=Sampling.POISSON, rate=0.1
    )
    found = cost(release, PromisedEpsilon(9.0, 0.0), ADD)
    assert found == pytest.approx(4 * log(1 + 0.1 * expm1(2.0)), rel=1e-12)


# --- clip norm and averaging -------------------------------------------------------------------


@pytest.mark.parametrize(("adjacency", "clips"), [(ADD, 1), (NULL, 1), (REPLACE, 2)])
def test_a_clip_norm_moves_twice_where_a_record_is_replaced(
    adjacency: Adjacency, clips: int
) -> None:
    release = StatedRelease(GAUSSIAN, clip_norm=0.3, noise=2.4, rounds=16)
    assert cost(release, PromisedMu(1.0), adjacency) == pytest.approx(clips * 0.3 / 2.4 * 4)
    shared = StatedRelease(
        GAUSSIAN, clip_norm=0.3, noise=0.01, rounds=1, averaging=Averaging.PUBLIC, divisor=60
    )
    assert cost(shared, PromisedMu(1.0), adjacency) == pytest.approx(clips * 0.3 / 60 / 0.01)


@pytest.mark.parametrize(("adjacency", "clips"), [(ADD, 2), (NULL, 1), (REPLACE, 2)])
def test_a_mean_over_their_own_number_moves_by_both_its_parts(
    adjacency: Adjacency, clips: int
) -> None:
    release = replace(OWN_MEAN, sampling=Sampling.NONE)
    assert cost(release, PromisedMu(1.0), adjacency) == pytest.approx(clips / 50 / 0.05)
    # of a Poisson sample it may be over one record: which it is has to be said
    unsaid = judged([OWN_MEAN], PromisedMu(2.0), adjacency=adjacency)
    assert unsaid.verdict is ClaimVerdict.UNSPECIFIED
    assert "not stated: sampling scheme" in unsaid.argument


def test_a_mean_over_a_poisson_sample_may_be_of_one_record() -> None:
    release = replace(OWN_MEAN, divisor=256, sampling=Sampling.POISSON, rate=0.01)
    alone = StatedRelease(
        GAUSSIAN, sensitivity=1.0, noise=0.05, rounds=1, sampling=Sampling.POISSON, rate=0.01
    )
    promise = PromisedEpsilon(1.0, 1e-5)
    assert cost(release, promise, ADD) == cost(alone, promise, ADD)


# once: a sample of everybody, whose one record is replaced, was priced at one clip norm
def test_a_mean_of_one_record_moves_by_two_clip_norms_where_it_is_replaced() -> None:
    shared = {"noise": 1.0, "rounds": 1, "sampling": Sampling.POISSON, "rate": 1.0}
    own = StatedRelease(GAUSSIAN, clip_norm=1.0, averaging=Averaging.OWN, divisor=1, **shared)
    twice = StatedRelease(GAUSSIAN, sensitivity=2.0, **shared)
    for promise in (PromisedMu(1.0), PromisedEpsilon(4.4, 1e-5)):
        assert cost(own, promise, REPLACE) == cost(twice, promise, REPLACE)


@pytest.mark.parametrize("scheme", [None, Sampling.FIXED_BATCH, Sampling.WITH_REPLACEMENT])
def test_no_mean_is_over_more_records_than_its_own_number(scheme) -> None:
    """Ten records drawn were priced as a mean over a thousand: at a hundredth of the noise."""
    shared = {"noise": 0.05, "rounds": 100, "clip_norm": 1.0, "averaging": Averaging.OWN}
    with pytest.raises(InvalidParameter, match="at most 10, their own number"):
        StatedRelease(GAUSSIAN, divisor=1000, batch=10, records=1000, sampling=scheme, **shared)
    with pytest.raises(InvalidParameter, match="at most 999, their own number"):
        StatedRelease(GAUSSIAN, divisor=1000, records=999, **shared)


def test_an_unstated_relation_is_read_with_the_clip_norm_of_each() -> None:
    release = StatedRelease(GAUSSIAN, clip_norm=1.0, noise=10.0, rounds=100)
    found = judged([release], PromisedMu(1.5), adjacency=None)
    assert found.verdict is ClaimVerdict.UNSPECIFIED
    assert [c.upper_float for c in found.figures.values()] == pytest.approx([1.0, 2.0])


def test_a_sensitivity_by_itself_is_not_said_to_be_of_a_record_replaced() -> None:
    alone = StatedRelease(GAUSSIAN, sensitivity=1.0, noise=10.0, rounds=1)
    clipped = StatedRelease(GAUSSIAN, clip_norm=0.5, noise=10.0, rounds=1)
    for release, words in ((alone, 1), (clipped, 0)):
        found = judged([release], PromisedMu(0.1), adjacency=REPLACE)
        assert found.verdict is ClaimVerdict.HOLDS
        assert len([line for line in found.argument if "record replaced" in line]) == words


def test_what_a_sensitivity_is_of_is_stated_once() -> None:
    with pytest.raises(InvalidParameter, match="in place of sensitivity"):
        StatedRelease(GAUSSIAN, sensitivity=1.0, clip_norm=1.0)
    with pytest.raises(InvalidParameter, match="clip_norm only"):
        StatedRelease(GAUSSIAN, sensitivity=1.0, averaging=Averaging.OWN, divisor=3)


# --- noise by round ----------------------------------------------------------------------------


def test_noise_of_each_round_is_paid_at_its_own_price() -> None:
    noises = (1.0, 2.0, 4.0, 2.0)
    release = StatedRelease(GAUSSIAN, sensitivity=3.0, noise=noises, rounds=4)
    expected = 3.0 * sqrt(sum(1 / noise**2 for noise in noises))
    assert cost(release, PromisedMu(1.0), NULL) == pytest.approx(expected)
    release = StatedRelease(LAPLACE, sensitivity=3.0, noise=noises, rounds=4)
    expected = 3.0 * sum(1 / noise for noise in noises)
    assert cost(release, PromisedEpsilon(1.0, 0.0), NULL) == pytest.approx(expected)


# --- steps of any mechanism --------------------------------------------------------------------


def composed_delta(epsilon0: float, delta0: float, steps: int, epsilon: float) -> float:
    """The total delta by Kairouz, Oh, Viswanath 2015, Theorem 3.3, summed term by term."""
    pure = sum(
        comb(steps, k)
        * max(0.0, exp((steps - k) * epsilon0) - exp(epsilon + k * epsilon0))
        / (1 + exp(epsilon0)) ** steps
        for k in range(steps + 1)
    )
    return 1 - (1 - delta0) ** steps * (1 - pure)


@pytest.mark.parametrize(("step", "delta0"), [(0.1, 0.0), (0.1, 1e-6), (0.7, 1e-4)])
def test_steps_of_any_mechanism_compose_as_the_theorem_says(step: float, delta0: float) -> None:
    release = StatedRelease(PRIVATE, step_epsilon=step, step_delta=delta0, rounds=10)
    for delta in (0.02, 0.1):
        found = judged([release], PromisedEpsilon(0.0, delta), adjacency=ADD)
        assert found.true is not None
        assert found.true.lower_float == pytest.approx(found.true.upper_float, rel=1e-6)
        at = true(found)
        assert composed_delta(step, delta0, 10, at) == pytest.approx(delta, rel=1e-6)


def test_deltas_of_steps_that_come_to_more_leave_nothing() -> None:
    assert delta_left(1e-5, [(1e-6, 11)]) is None
    left = delta_left(1e-5, [(1e-6, 9)])
    assert left is not None
    assert left == pytest.approx(1e-6, rel=1e-4)
    assert 1 - (1 - left) * (1 - 1e-6) ** 9 <= 1e-5 * (1 + 1e-9)
    assert delta_left(1e-5, [(1e-5, 1)]) == 0.0
    release = StatedRelease(PRIVATE, step_epsilon=0.1, step_delta=1e-6, rounds=11)
    found = judged([release], PromisedEpsilon(99.0, 1e-5), adjacency=ADD)
    # steps may be better than what is stated of them: nothing is refuted
    assert found.verdict is ClaimVerdict.NOT_IMPLIED


@pytest.mark.parametrize("promise", [PromisedRho(3.0), PromisedMu(9.0)])
@pytest.mark.parametrize("delta0", [1e-7, 1e-5])
def test_what_tells_all_with_any_chance_has_no_rho_and_no_mu(
    promise: OwnPromise, delta0: float
) -> None:
    """Its divergence is infinite at every order; a delta below the attack's was taken for paid."""
    steps = StatedRelease(PRIVATE, step_epsilon=1.0, step_delta=delta0, rounds=1)
    found = judged([steps], promise, adjacency=Adjacency.REPLACE_ONE)
    assert found.verdict is ClaimVerdict.NOT_IMPLIED
    assert found.true is not None
    assert found.true.upper_float == inf


def test_one_step_costs_what_is_stated_of_it() -> None:
    release = StatedRelease(PRIVATE, step_epsilon=0.5, step_delta=1e-5, rounds=1)
    at = [
        judged([release], PromisedEpsilon(epsilon, 1e-5), adjacency=ADD).verdict
        for epsilon in (0.5, 0.4999)
    ]
    assert at == [ClaimVerdict.HOLDS, ClaimVerdict.NOT_IMPLIED]


# --- unit and tuning ---------------------------------------------------------------------------


def test_a_person_of_several_records_pays_for_all_of_them() -> None:
    release = StatedRelease(GAUSSIAN, sensitivity=1.0, noise=10.0, rounds=25)
    assert cost(release, PromisedMu(9.0), ADD, group=4) == pytest.approx(2.0)
    assert cost(release, PromisedRho(9.0), ADD, group=4) == pytest.approx(2.0)
    four = StatedRelease(GAUSSIAN, sensitivity=4.0, noise=10.0, rounds=25)
    promise = PromisedEpsilon(9.0, 1e-6)
    assert cost(release, promise, ADD, group=4) == pytest.approx(cost(four, promise, ADD))
    pure = StatedRelease(LAPLACE, sensitivity=1.0, noise=10.0, rounds=5)
    assert cost(pure, PromisedEpsilon(9.0, 0.0), ADD, group=4) == pytest.approx(2.0)


def test_every_fit_among_which_was_chosen_is_paid() -> None:
    release = StatedRelease(GAUSSIAN, sensitivity=1.0, noise=10.0, rounds=25)
    found = judged([release], PromisedMu(1.0), adjacency=ADD, fits=9)
    assert found.verdict is ClaimVerdict.NOT_IMPLIED
    assert true(found) == pytest.approx(1.5)


# --- claimed accountants -----------------------------------------------------------------------

LOTS = StatedRelease(
    GAUSSIAN, clip_norm=1.0, noise=4.0, rounds=10_000, sampling=Sampling.POISSON, rate=0.01
)


def said(accountant: ClaimedAccountant, release: StatedRelease = LOTS) -> float:
    found = judged([release], PromisedEpsilon(1.26, 1e-5), adjacency=ADD, accountant=accountant)
    return found.figures[f"by {accountant.value}"].upper_float


def test_the_moments_accountant_says_what_its_authors_published() -> None:
    # Abadi et al. 2016, section 3.1: epsilon about 1.26 for q = 0.01, sigma = 4, T = 10,000
    assert round(said(ClaimedAccountant.MOMENTS), 2) == 1.26


def test_no_accountant_of_the_literature_says_less_than_the_exact_one() -> None:
    kinds = (
        ClaimedAccountant.EXACT,
        ClaimedAccountant.RDP,
        ClaimedAccountant.MOMENTS,
        ClaimedAccountant.STRONG,
        ClaimedAccountant.BASIC,
    )
    assert all(first < second for first, second in pairwise(map(said, kinds)))


def test_strong_and_basic_composition_are_their_formulas() -> None:
    release = StatedRelease(LAPLACE, sensitivity=1.0, noise=20.0, rounds=100)
    # 0.05 is what a step costs at delta 0; at a share of 1e-5 hardly less
    assert said(ClaimedAccountant.BASIC, release) == pytest.approx(5.0, rel=1e-5)
    strong = sqrt(200 * log(2e5)) * 0.05 + 100 * 0.05 * expm1(0.05)
    assert said(ClaimedAccountant.STRONG, release) == pytest.approx(strong, rel=1e-5)
    zcdp = 0.125 + 2 * sqrt(0.125 * log(1e5))
    assert said(ClaimedAccountant.ZCDP, release) == pytest.approx(zcdp, rel=1e-9)


def test_an_accountant_that_says_more_than_is_promised_is_told_and_decides_nothing() -> None:
    found = judged(
        [LOTS],
        PromisedEpsilon(1.2, 1e-5),
        adjacency=ADD,
        accountant=ClaimedAccountant.MOMENTS,
    )
    assert found.verdict is ClaimVerdict.HOLDS
    assert "by moments accountant it would be 1.25" in found.reason


# --- what nobody said ----------------------------------------------------------------------------


# once: a claim about persons was confirmed as if all records of each lived with one party
def test_a_claim_about_units_over_parties_is_no_claim_about_one_party() -> None:
    answer = MechanismKind.RANDOMISED_RESPONSE
    releases = [
        StatedRelease(answer, noise=0.95, rounds=1, party="a"),
        StatedRelease(answer, noise=0.53, rounds=60, party="b"),
    ]
    promise = PromisedEpsilon(6.0, 1e-5)
    found = judged(releases, promise, adjacency=REPLACE, group=2)
    assert found.verdict is ClaimVerdict.UNSPECIFIED
    # one record with each party: the sum of both losses, outcome by outcome
    gains = log(0.95 / 0.05), log(0.53 / 0.47)

    def delta(epsilon: float) -> float:
        return sum(
            comb(60, k) * 0.53**k * 0.47 ** (60 - k) * first * max(0.0, -expm1(epsilon - loss))
            for k in range(61)
            for first, sign in ((0.95, 1), (0.05, -1))
            if (loss := sign * gains[0] + (2 * k - 60) * gains[1]) > epsilon
        )

    assert delta(6.8) > 1e-5
    assert true(found) >= 6.8
    assert judged(releases, promise, adjacency=REPLACE).verdict is ClaimVerdict.HOLDS
    wide = judged(releases, PromisedEpsilon(12.0, 1e-5), adjacency=REPLACE, group=2)
    assert wide.verdict is ClaimVerdict.HOLDS


def test_units_over_parties_with_gaussian_noise_pay_no_more_than_at_the_dearest() -> None:
    releases = [
        StatedRelease(GAUSSIAN, sensitivity=1.0, noise=n, rounds=5, party=name)
        for name, n in (("a", 20.0), ("b", 30.0))
    ]
    found = judged(releases, PromisedEpsilon(1.5, 1e-5), adjacency=REPLACE, group=2)
    assert found.verdict is ClaimVerdict.HOLDS


# once: nobody read an unstated relation as the usual one, under which no rule prices an epoch
def test_shuffled_batches_without_a_relation_are_unspecified() -> None:
    release = StatedRelease(
        GAUSSIAN,
        clip_norm=1.0,
        noise=2.0,
        rounds=100,
        sampling=Sampling.SHUFFLED,
        batch=10,
        records=1000,
    )
    promise = PromisedEpsilon(4.5, 1e-5)
    assert judged([release], promise, adjacency=None).verdict is ClaimVerdict.UNSPECIFIED
    assert judged([release], promise, adjacency=REPLACE).verdict is ClaimVerdict.HOLDS


@pytest.mark.parametrize("kind", [PRIVATE, MechanismKind.EXPONENTIAL])
def test_an_epsilon_of_a_step_is_of_a_relation_too(kind: MechanismKind) -> None:
    delta = 0.0 if kind is PRIVATE else None
    release = StatedRelease(kind, step_epsilon=0.1, step_delta=delta, rounds=10)
    found = judged([release], PromisedEpsilon(1.001, 0.0), adjacency=None)
    assert found.verdict is ClaimVerdict.UNSPECIFIED
    assert true(found) == pytest.approx(2.0, rel=1e-9)
    assert judged([release], PromisedEpsilon(2.001, 0.0), adjacency=None).verdict is (
        ClaimVerdict.HOLDS
    )


def test_deltas_of_steps_grow_where_two_records_are_one_replaced() -> None:
    release = StatedRelease(PRIVATE, step_epsilon=0.1, step_delta=1e-6, rounds=1)
    twice = (1 + exp(0.1)) * 1e-6
    assert release.delta_of_step(doubled=False) == 1e-6
    assert twice <= release.delta_of_step(doubled=True) <= twice * (1 + 1e-12)
