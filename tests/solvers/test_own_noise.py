"""Laws of noise where agents differ in records, and on a network in neighbours.

1. Every agent's noise is in units of its own sensitivity, V 2/(|D_i| m_i) + 2 tau/m_i.
2. That costs nothing: events are those of a shared noise_std, and certificates verify.
3. A record of any agent attains the same planned mu; none exceeds it.
"""

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from dpledger.accounting.check import checker
from dpledger.accounting.proof.certificate import certify
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.replay import replay_chunks
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    EventList,
    GaussianStep,
    InvalidParameter,
    PlanningCurator,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
)
from dpledger.solvers import (
    ConstantSteps,
    DpAdmm,
    LinearLoss,
    PrAdmm,
    PublishedPrAdmm,
    PvpAdmm,
    hub,
)

COUNTS = (30, 10, 20, 40)
PARTIES = ("hub", "small", "middle", "large")
PARTY_OF = np.repeat(np.arange(4), COUNTS)
SOLVER = PrAdmm(hub(4), 3, 2.0, loss=LinearLoss(), tolerance=1e-9)
RELATIONS = [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE]


def records() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(len(PARTY_OF), 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, rng.choice([-1.0, 1.0], len(PARTY_OF))


def private(
    adjacency: Adjacency = Adjacency.REPLACE_ONE, party_counts: tuple[int, ...] = COUNTS
) -> PrivateDataset:
    return AuditDataset(
        *records(),
        adjacency=adjacency,
        row_bound=1.0,
        party_of=PARTY_OF,
        parties=PARTIES,
        party_counts=party_counts,
    )


def own_sensitivities(adjacency: Adjacency) -> np.ndarray:
    """The sensitivities in doubles: eta = 1/2, and the hub has three neighbours, the others one."""
    moduli = np.array([3.0, 1.0, 1.0, 1.0])
    factor = 1 if adjacency is Adjacency.ZERO_OUT_ONE else 2
    return factor / (np.array(COUNTS) * moduli) + 2e-9 / moduli


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_weights_are_the_largest_sensitivity_over_each_agents_own(adjacency: Adjacency) -> None:
    shape, own = private(adjacency).shape, own_sensitivities(adjacency)
    assert SOLVER.noise_weights(shape) == pytest.approx(own.max() / own, rel=1e-12)


@pytest.mark.parametrize("adjacency", RELATIONS)
def test_plan_run_and_replay_emit_equal_events_at_the_price_of_the_largest(
    adjacency: Adjacency,
) -> None:
    dataset, plan, ran = private(adjacency), PlanningCurator(), EventList()
    SOLVER.solve(PrivateDataset.planned(dataset.shape), plan)
    run = SamplingCurator(ran, SeededSampler(1), trials=2, record=True)
    SOLVER.solve(dataset, run)
    SOLVER.solve(dataset, ReplayCurator(run.transcript))
    assert plan.events == ran.events == [message.event for message in run.transcript]
    for event in plan.events:
        step = event.mechanism
        assert isinstance(step, GaussianStep)
        assert step.sensitivity.value == pytest.approx(own_sensitivities(adjacency).max(), rel=1e-6)
        # rounding and the lattice of the noise have their price, below a 2^-20th
        ratio = Fraction(step.noise_std) / step.sensitivity.root
        assert 2 * (1 - Fraction(1, 2**20)) <= ratio <= 2 * (1 + Fraction(1, 2**20))


def test_certificates_of_weighted_releases_verify() -> None:
    plan = PlanningCurator()
    SOLVER.solve(PrivateDataset.planned(private().shape), plan)
    certificate = certify(plan.events, delta=1e-5)
    assert float(checker.check(certificate.to_json_bytes()).values[-1]) == certificate.epsilon


def test_the_noise_of_an_agents_message_is_a_multiple_of_its_own_sensitivity() -> None:
    dataset, trials = private(), 4_000
    once = replace(SOLVER, rounds=1)
    noisy = once.solve(dataset, SamplingCurator(EventList(), SeededSampler(5), trials=trials))
    exact = replace(once, noise_multiplier=0.0).solve(
        dataset, SamplingCurator(EventList(), SeededSampler(5))
    )
    spread = np.sqrt(((noisy.messages - exact.messages) ** 2).mean(axis=(0, 2)))
    expected = 2.0 * own_sensitivities(Adjacency.REPLACE_ONE)
    # 12,000 squares each: five standard deviations, false alarm below 1e-5 for all four together
    assert np.all(np.abs(spread / expected - 1) < 5 / sqrt(2 * trials * 3))


@pytest.mark.parametrize("party", range(4))
def test_a_record_of_any_agent_attains_the_planned_mu(party: int) -> None:
    dataset, index = private(), sum(COUNTS[:party])
    neighbour = dataset.with_record(index, label=-records()[1][index])
    once = replace(SOLVER, rounds=1)
    # one round: the log-ratio of a message drawn under the data set is N(mu²/2, mu²), mu = 1/2
    run = SamplingCurator(EventList(), SeededSampler(9), trials=4_000, record=True)
    once.solve(dataset, run)
    ratio = np.zeros(4_000)
    for sign, data in ((1, dataset), (-1, neighbour)):
        replay = ReplayCurator(run.transcript)
        once.solve(data, replay)
        ratio += sign * replay.log_density
    # five standard deviations of mean and variance: false alarm below 1e-5
    assert abs(ratio.mean() - 1 / 8) < 5 * 0.5 / sqrt(4_000)
    assert abs(ratio.var() * 4 - 1) < 5 * sqrt(2 / 4_000)


def test_without_own_counts_all_agents_count_as_the_smallest() -> None:
    dataset = private(party_counts=())
    weights = SOLVER.noise_weights(dataset.shape)
    assert weights == pytest.approx([3.0, 1.0, 1.0, 1.0], rel=1e-12)
    assert dataset.shape.counts == (10, 10, 10, 10)


def test_the_published_variant_has_every_agents_own_noise_of_lemma_5() -> None:
    dataset, published = private(), PublishedPrAdmm(replace(SOLVER, rounds=1))
    noisy = published.solve(dataset, SamplingCurator(EventList(), SeededSampler(5), trials=2_000))
    spread = noisy.messages.std(axis=0).mean(axis=-1)
    # V/(eta |V_i|): 2/3 for the hub, 2 for agents with one neighbour, times the noise multiplier;
    # 6,000 deviates an agent: three standard deviations are 3/sqrt(12,000) = 0.027
    assert spread == pytest.approx([4 / 3, 4.0, 4.0, 4.0], rel=0.05)


@pytest.mark.parametrize("wrong", [(30, 10, 20, 41), (30, 10, 20), (0, 10, 20, 40)])
def test_bounds_that_are_no_bounds_are_refused(wrong: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter, match=r"(party_counts|count=0).* must "):
        private(party_counts=wrong)


def test_bounds_and_a_common_bound_exclude_each_other() -> None:
    shape = private().shape
    assert shape.counts == COUNTS
    with pytest.raises(InvalidParameter, match="party_counts"):
        DataShape(PARTIES, 11, 3, 1.0, Adjacency.REPLACE_ONE, party_counts=COUNTS)
    with pytest.raises(InvalidParameter, match="n_min=5 must be None beside party_counts"):
        AuditDataset(
            np.eye(3), np.ones(3), adjacency=Adjacency.ADD_REMOVE_ONE, row_bound=1.0, n_min=5,
            party_counts=(3,),
        )  # fmt: skip


# in a star all agents have one modulus, and the records alone make the difference
RHO, ETA = 0.5, 0.25
STAR = {
    "dp-admm": DpAdmm(
        3, 2.0, ConstantSteps(ETA), penalty=RHO, regularisation=0.0, loss=LinearLoss()
    ),
    "pvp": PvpAdmm(3, 2.0, tolerance=1e-9, penalty=RHO, regularisation=0.0, loss=LinearLoss()),
}


def star_sensitivities(name: str, adjacency: Adjacency) -> np.ndarray:
    """The sensitivities in doubles: Lemma 1 with a step of eta, Lemma 4 with its tolerance."""
    factor = 1 if adjacency is Adjacency.ZERO_OUT_ONE else 2
    if name == "dp-admm":
        return factor / (np.array(COUNTS) * (RHO + 1 / ETA))
    return factor / (np.array(COUNTS) * RHO) + 2e-9 / RHO


@pytest.mark.parametrize("adjacency", RELATIONS)
@pytest.mark.parametrize("name", STAR)
def test_in_a_star_plan_run_and_replay_emit_equal_events_at_the_price_of_the_largest(
    name: str, adjacency: Adjacency
) -> None:
    solver, dataset, plan, ran = STAR[name], private(adjacency), PlanningCurator(), EventList()
    solver.solve(PrivateDataset.planned(dataset.shape), plan)
    run = SamplingCurator(ran, SeededSampler(1), trials=2, record=True)
    solver.solve(dataset, run)
    solver.solve(dataset, ReplayCurator(run.transcript))
    assert plan.events == ran.events == [message.event for message in run.transcript]
    largest = star_sensitivities(name, adjacency).max()
    for event in plan.events:
        step = event.mechanism
        assert isinstance(step, GaussianStep)
        assert step.sensitivity.value == pytest.approx(largest, rel=1e-6)
        # rounding and the lattice of the noise have their price, below a 2^-20th
        ratio = Fraction(step.noise_std) / step.sensitivity.root
        assert 2 * (1 - Fraction(1, 2**20)) <= ratio <= 2 * (1 + Fraction(1, 2**20))
    certificate = certify(plan.events, delta=1e-5)
    assert float(checker.check(certificate.to_json_bytes()).values[-1]) == certificate.epsilon


@pytest.mark.parametrize("name", STAR)
def test_in_a_star_an_agents_noise_is_a_multiple_of_its_own_sensitivity(name: str) -> None:
    dataset, trials = private(), 4_000
    once = replace(STAR[name], rounds=1)
    noisy = once.solve(dataset, SamplingCurator(EventList(), SeededSampler(5), trials=trials))
    exact = replace(once, noise_multiplier=0.0).solve(
        dataset, SamplingCurator(EventList(), SeededSampler(5))
    )
    spread = np.sqrt(((noisy.messages - exact.messages) ** 2).mean(axis=(0, 2)))
    expected = 2.0 * star_sensitivities(name, Adjacency.REPLACE_ONE)
    # 12,000 squares each: five standard deviations, false alarm below 1e-5 for all four together
    assert np.all(np.abs(spread / expected - 1) < 5 / sqrt(2 * trials * 3))


@pytest.mark.parametrize("party", range(4))
@pytest.mark.parametrize("name", STAR)
def test_in_a_star_a_record_of_any_agent_attains_the_planned_mu(name: str, party: int) -> None:
    dataset, index = private(), sum(COUNTS[:party])
    neighbour = dataset.with_record(index, label=-records()[1][index])
    (scores,) = replay_chunks(
        replace(STAR[name], rounds=2).solve, dataset, neighbour, trials=4_000, seed=9, chunk=4_000
    )
    # the gap is constant: two rounds have mu² = 2/4, and the log-ratio is N(±mu²/2, mu²)
    for ratio, sign in ((scores.attack.dataset, 1), (scores.attack.neighbour, -1)):
        assert abs(ratio.mean() - sign / 4) < 5 * sqrt(0.5 / 4_000)
        assert abs(ratio.var() * 2 - 1) < 5 * sqrt(2 / 4_000)


@pytest.mark.parametrize("name", STAR)
def test_without_noise_own_counts_change_nothing(name: str) -> None:
    silent = replace(STAR[name], noise_multiplier=0.0, rounds=5)
    own, shared = (
        silent.solve(private(party_counts=counts), SamplingCurator(EventList(), SeededSampler(5)))
        for counts in (COUNTS, ())
    )
    np.testing.assert_allclose(own.messages, shared.messages, rtol=1e-9, atol=1e-9)
