"""Laws of PR-ADMM.

1. Plan, run and replay emit the same events, on every network, schedule and variant.
2. Derived sensitivities are the convex ones with 1/|D_i|; the published noise is Lemma 5's.
3. What Theorems 3 and 4 promise, and what the same noise is worth.
4. Without noise the optimum of an independent solver is found on every network.
5. The threshold test sees messages only, every trial on its own.
"""

from dataclasses import replace
from fractions import Fraction
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy.optimize import root
from tests.parameters import slow

from dpledger.accounting.gaussian.exact import delta_from_epsilon, epsilon_from_delta
from dpledger.audits.claims.auditor import at_tolerance
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    Audience,
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
    IterationDecay,
    LinearLoss,
    Network,
    NetworkState,
    PeriodicDecay,
    PrAdmm,
    PublishedPrAdmm,
    TabulatedNoise,
    complete,
    five_agents,
    hub,
    published_noise_multiplier,
    random_geometric,
    ring,
)
from dpledger.solvers.decentralised import trusted_sums
from dpledger.solvers.planning import plan

PARTIES = ("a", "b", "c", "d", "e")
RECORDS, FEATURES = 60, 4
NETWORKS = {
    "five agents": five_agents(),
    "ring": ring(5),
    "complete": complete(5),
    "star": hub(5),
    "geometric": random_geometric(5, 0.6, seed=1),
    "path": Network(5, ((0, 1), (1, 2), (2, 3), (3, 4))),
}
TABLE = TabulatedNoise((Fraction(1), Fraction(1, 2), Fraction(1, 4), Fraction(2), Fraction(3)))
ALGORITHMS = {
    "constant": PrAdmm(five_agents(), 5, 5.0),
    "periodic": PrAdmm(ring(5), 5, 5.0, PeriodicDecay(0.9, 2), regularisation=0.1),
    "iterations": PrAdmm(hub(5), 5, 5.0, IterationDecay(0.015), threshold=0.5),
    "table": PrAdmm(complete(5), 5, 5.0, TABLE),
    "without noise": PrAdmm(five_agents(), 5, 0.0),
    "published": PublishedPrAdmm(PrAdmm(five_agents(), 5, 5.0, PeriodicDecay(0.9))),
}


def records() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(RECORDS, FEATURES))
    # inside the bound, so that nothing is cut and the oracle sees the same rows
    rows /= np.maximum(1.0, 1.001 * np.linalg.norm(rows, axis=1, keepdims=True))
    labels = np.where(rows[:, 0] + 0.5 * rng.normal(size=RECORDS) > 0, 1.0, -1.0)
    return rows, labels, np.arange(RECORDS) % 5


def private(
    adjacency: Adjacency = Adjacency.REPLACE_ONE, *, unit_rows: bool = False
) -> PrivateDataset:
    rows, labels, party_of = records()
    if unit_rows:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return AuditDataset(
        rows,
        labels,
        adjacency=adjacency,
        row_bound=1.0,
        party_of=party_of,
        parties=PARTIES,
        n_min=10 if adjacency is Adjacency.ADD_REMOVE_ONE else None,
    )


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize(
    "adjacency", [Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE]
)
def test_plan_run_and_replay_emit_equal_events(name: str, adjacency: Adjacency) -> None:
    solver, dataset = ALGORITHMS[name], private(adjacency)
    plan, ran = PlanningCurator(), EventList()
    solver.solve(PrivateDataset.planned(dataset.shape), plan)
    run = SamplingCurator(ran, SeededSampler(3), trials=2, record=True)
    solver.solve(dataset, run)
    replay = ReplayCurator(run.transcript)
    solver.solve(dataset, replay)
    assert plan.events == ran.events == [message.event for message in run.transcript]
    assert [event.context.round for event in plan.events] == [1, 2, 3, 4, 5]
    assert {event.context.audience for event in plan.events} == {Audience.NEIGHBOURS}
    assert replay.log_density.shape == (2,)


def planned(solver: PrAdmm | PublishedPrAdmm, shape: DataShape) -> list[GaussianStep]:
    plan = PlanningCurator(ideal=True)  # figures of the mechanism without its arithmetic
    solver.solve(PrivateDataset.planned(shape), plan)
    return [event.mechanism for event in plan.events if isinstance(event.mechanism, GaussianStep)]


# the experiments: eta = 1/2, V = 1, |D_i| = 8000
PAPER = DataShape(PARTIES, 8000, 10, 1.0, Adjacency.REPLACE_ONE)
NEAR = 1e-11  # double precision reaches no less for 8000 records


def exact(step: GaussianStep) -> float:
    """Return the sensitivity of minimisers without a tolerance."""
    return at_tolerance(step.sensitivity, Fraction(0)).value


@pytest.mark.parametrize(
    ("network", "adjacency", "regularisation", "expected"),
    [
        (complete(5), Adjacency.REPLACE_ONE, 0.0, 6.25e-05),
        (complete(5), Adjacency.ZERO_OUT_ONE, 0.0, 3.125e-05),
        (
            Network(5, tuple(e for e in complete(5).edges if e != (0, 1))),
            Adjacency.REPLACE_ONE,
            1e-2,
            8.322237017e-05,
        ),
    ],
    ids=["convex_replace_nb4", "convex_addremove_fixednorm_nb4", "strong_replace_nb3"],
)
def test_derived_sensitivities_are_the_convex_ones(
    network: Network, adjacency: Adjacency, regularisation: float, expected: float
) -> None:
    solver = PrAdmm(network, 1, 1.0, regularisation=regularisation, tolerance=NEAR)
    step = planned(solver, replace(PAPER, adjacency=adjacency))[0]
    assert exact(step) == pytest.approx(expected, rel=1e-9)


def test_adding_a_record_is_priced_by_the_lower_bound_on_counts() -> None:
    # the claim's figure is for going from 8000 records to 8001 only: n_min bounds both sizes
    shape = replace(PAPER, count=8001, adjacency=Adjacency.ADD_REMOVE_ONE)
    step = planned(PrAdmm(ring(5), 1, 1.0, tolerance=NEAR), shape)[0]
    assert exact(step) == pytest.approx(0.000124984377, rel=1e-9)


@pytest.mark.parametrize(("tolerance", "inflation"), [(1.25e-6, 1.01), (1e-5, 1.08), (1e-4, 1.8)])
def test_the_tolerance_inflates_by_its_share(tolerance: float, inflation: float) -> None:
    step = planned(PrAdmm(five_agents(), 1, 1.0, tolerance=tolerance), PAPER)[0]
    assert step.sensitivity.value / exact(step) == pytest.approx(inflation, rel=1e-9)


def test_noise_follows_the_schedule_in_units_of_the_sensitivity() -> None:
    for step, variance in zip(planned(ALGORITHMS["table"], PAPER), TABLE.variances, strict=True):
        unit = float(step.sensitivity.root)
        # the unit is that before rounding to the noise's lattice
        assert step.noise_std == pytest.approx(5.0 * unit * sqrt(variance), rel=1e-12)


def test_published_noise_is_in_units_of_lemma_5() -> None:
    twin = PrAdmm(complete(5), 1, 1.0, tolerance=NEAR)
    published, repaired = (planned(kind, PAPER)[0] for kind in (PublishedPrAdmm(twin), twin))
    assert published.noise_std == pytest.approx(0.5, rel=1e-15)  # PR-1.lemma5_nb4
    without_tolerance = repaired.noise_std * exact(repaired) / repaired.sensitivity.value
    assert published.noise_std / without_tolerance == pytest.approx(8000, rel=1e-9)


@pytest.mark.parametrize(("differing", "share"), [(1, 1.0), (0, 0.5), (2, 2 / 3)])
def test_the_agent_with_the_fewest_neighbours_attains_the_sensitivity(
    differing: int, share: float
) -> None:
    # linear losses; record i lives with agent i: 2, 4 and 3 neighbours
    dataset, labels = private(unit_rows=True), records()[1]
    neighbour = dataset.with_record(differing, label=-labels[differing])
    solver = PrAdmm(five_agents(), 1, 0.0, loss=LinearLoss(), tolerance=1e-9)
    one, two = (
        solver.solve(data, SamplingCurator(EventList(), SeededSampler(0))).messages
        for data in (dataset, neighbour)
    )
    moved = np.linalg.norm(one - two, axis=-1)
    derived = planned(solver, dataset.shape)[0].sensitivity.value
    assert moved[differing] == pytest.approx(share * derived, rel=1e-5)
    assert moved.max() <= derived
    assert np.count_nonzero(moved) == 1


def test_replay_of_linear_losses_attains_the_planned_mu_over_all_rounds() -> None:
    dataset, labels = private(unit_rows=True), records()[1]
    neighbour = dataset.with_record(1, label=-labels[1])
    solver = PrAdmm(five_agents(), 5, 2.0, TABLE, loss=LinearLoss(), tolerance=1e-9)
    trials = 2_000
    run = SamplingCurator(EventList(), SeededSampler(7), trials=trials, record=True)
    solver.solve(dataset, run)
    ratio = np.zeros(trials)
    for sign, data in ((1, dataset), (-1, neighbour)):
        replay = ReplayCurator(run.transcript)
        solver.solve(data, replay)
        ratio += sign * replay.log_density
    mu_squared = float(sum(1 / v for v in TABLE.variances)) / 4
    # the log-ratio is N(mu²/2, mu²); false alarm below 1e-5 for both together
    assert abs(ratio.mean() - mu_squared / 2) < 5 * sqrt(mu_squared / trials)
    assert abs(ratio.var() / mu_squared - 1) < 5 * sqrt(2 / trials)


PERIODIC = PeriodicDecay(Fraction(37, 40))


def exact_epsilon(
    schedule: PeriodicDecay | IterationDecay,
    *,
    rounds: int,
    nominal: float,
    records: int,
    delta: float = 1e-4,
) -> float:
    """The exact epsilon of the published noise; with one record the derived value is Lemma 5's."""
    steps = published_steps(schedule, rounds, nominal, records)
    mu_squared = sum(
        (
            at_tolerance(step.sensitivity, Fraction(0)).squared / Fraction(step.noise_std) ** 2
            for step in steps
        ),
        Fraction(0),
    )
    return epsilon_from_delta(mu_squared=mu_squared, delta=delta).upper_float


def published_steps(
    schedule: PeriodicDecay | IterationDecay, rounds: int, nominal: float, records: int
) -> list[GaussianStep]:
    multiplier = published_noise_multiplier(schedule, rounds, epsilon=nominal, delta=1e-4)
    twin = PrAdmm(five_agents(), rounds, multiplier, schedule, tolerance=NEAR)
    return planned(PublishedPrAdmm(twin), replace(PAPER, count=records))


def test_published_noise_multiplier_is_the_papers() -> None:
    found = published_noise_multiplier(PERIODIC, 50, epsilon=10.0, delta=1e-4)
    assert found == pytest.approx(12.79216068, rel=1e-9)


@pytest.mark.parametrize(
    ("nominal", "epsilon"),
    [
        (10.0, 8.365695),
        (5.0, 3.986238),
        (1.0, 0.6943376951),
        (0.5, 0.323090),
        (0.1, 0.052414),
    ],
)
def test_exact_epsilon_where_lemma_5_is_attained(nominal: float, epsilon: float) -> None:
    found = exact_epsilon(PERIODIC, rounds=50, nominal=nominal, records=1)
    assert found == pytest.approx(epsilon, rel=1e-5)
    if nominal == 1.0:
        assert found == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(
    ("rounds", "epsilon", "precision"), [(3, 0.8717916446, 1e-9), (2, 1.02568, 1e-5)]
)
def test_theorem_3_understates_short_runs(rounds: int, epsilon: float, precision: float) -> None:
    schedule = PeriodicDecay(Fraction(37, 40), rounds)
    found = exact_epsilon(schedule, rounds=rounds, nominal=1.0, records=1)
    assert found == pytest.approx(epsilon, rel=precision)


def test_theorem_3_gives_one_round_no_noise_at_all() -> None:
    assert published_noise_multiplier(PERIODIC, 1, epsilon=1.0, delta=1e-4) == 0.0


def test_for_convex_losses_the_published_noise_is_far_too_much() -> None:
    assert exact_epsilon(PERIODIC, rounds=50, nominal=5.0, records=8000) == 0.0
    small = exact_epsilon(PERIODIC, rounds=50, nominal=10.0, records=8000, delta=1e-8)
    assert small == pytest.approx(0.0008545923803, rel=1e-9)
    mu_squared = sum(
        step.sensitivity.squared / Fraction(step.noise_std) ** 2
        for step in published_steps(PERIODIC, 50, 0.1, 8000)
    )
    assert sqrt(mu_squared) == pytest.approx(2.907019177e-06, rel=1e-9)
    advantage = delta_from_epsilon(
        mu_squared=sum(
            step.sensitivity.squared / Fraction(step.noise_std) ** 2
            for step in published_steps(PERIODIC, 50, 0.5, 8000)
        ),
        epsilon=0,
    )
    assert advantage.upper_float == pytest.approx(5.73752246e-06, rel=1e-9)


@pytest.mark.parametrize(("nominal", "truth"), [(0.5, 0.5004256947), (10.0, 10.00993115)])
def test_the_zcdp_epsilon_of_the_published_noise(nominal: float, truth: float) -> None:
    steps = published_steps(PERIODIC, 50, nominal, 1)
    rho = float(sum(s.sensitivity.squared / Fraction(s.noise_std) ** 2 for s in steps)) / 2
    assert rho + 2 * sqrt(rho * log(1e4)) == pytest.approx(truth, rel=1e-9)


def optimum(regularisation: float) -> np.ndarray:
    """The zero of the gradient of sum_i mean loss + Λ|w|², by an independent solver."""
    rows, labels, _ = records()

    def gradient(w: np.ndarray) -> np.ndarray:
        slopes = -labels / (1 + np.exp(labels * (rows @ w)))
        return 5 * rows.T @ slopes / RECORDS + 2 * regularisation * w

    found = root(gradient, np.zeros(FEATURES), tol=1e-14).x
    assert np.linalg.norm(gradient(found)) < 1e-12
    return found


@pytest.mark.parametrize(
    ("name", "regularisation"),
    [
        *(("complete", 0.0), ("ring", 0.2)),
        *slow(*((name, 0.0) for name in NETWORKS if name != "complete"), ("path", 0.2)),
    ],
)
def test_without_noise_the_optimum_of_an_independent_solver_is_found(
    name: str, regularisation: float
) -> None:
    solver = PrAdmm(
        NETWORKS[name],
        500,
        0.0,
        penalty=0.04,
        regularisation=regularisation,
        tolerance=1e-10,
    )
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(0)))
    best = optimum(regularisation)
    errors = np.linalg.norm(state.messages - best, axis=-1)
    assert errors.max() <= 1e-6 * np.linalg.norm(best)


def test_trials_are_independent_runs_of_one_algorithm() -> None:
    solver = ALGORITHMS["iterations"]
    together = SamplingCurator(EventList(), SeededSampler(1), trials=3, record=True)
    state = solver.solve(private(), together)
    assert state.model.shape == (3, FEATURES)
    assert len({row.tobytes() for row in state.model}) == 3
    for trial in range(3):
        alone = [m._replace(content=m.content[trial]) for m in together.transcript]
        replayed = solver.solve(private(), ReplayCurator(alone))
        assert np.allclose(replayed.duals, state.duals[trial], rtol=1e-12, atol=1e-14)
        assert np.array_equal(replayed.messages, state.messages[trial])
        assert np.allclose(replayed.deviations, state.deviations[trial], rtol=1e-14)


def test_a_run_with_much_noise_and_few_records_keeps_to_its_plan() -> None:
    parties, width = 100, 40
    solver = PrAdmm(ring(parties), 8, 30.0, penalty=0.05, tolerance=1e-4)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(2 * parties, width))
    rows *= 0.9 / np.linalg.norm(rows, axis=1, keepdims=True)
    dataset = PrivateDataset(
        rows,
        np.where(rows[:, 0] > 0, 1.0, -1.0),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.repeat(np.arange(parties), 2),
        parties=tuple(f"agent {i}" for i in range(parties)),
    )
    events = EventList()
    state = solver.solve(dataset, SamplingCurator(events, SeededSampler(5)))
    # what is linear in a subproblem has outgrown the room that every plan leaves, 2^8 gradients
    assert np.abs(state.duals).max() * width > 2**8
    assert tuple(events.events) == plan(solver, dataset.shape)
    # the room costs next to nothing: 2V/(n m) + 2 tau/m and a part in 2^22 at most
    (step,) = {event.mechanism for event in events.events}
    assert isinstance(step, GaussianStep)
    derived = (Fraction(2, 2) + 2 * Fraction(1e-4)) / Fraction(0.2)
    assert derived**2 <= step.sensitivity.squared <= (derived * (1 + Fraction(1, 2**22))) ** 2


def test_far_neighbours_are_replaced_by_ones_own_message_trial_by_trial() -> None:
    network = Network(3, ((0, 1), (1, 2)))
    messages = np.array([[1.0], [10.0], [100.0]])
    deviations = np.array([[0.4, 0.6], [0.6, 0.4], [0.5, 0.5], [0.6, 0.6]])
    state = NetworkState(np.broadcast_to(messages, (4, 3, 1)), np.zeros((4, 3, 1)), deviations)
    sums = trusted_sums(state, network, 0.5)[..., 0]
    assert sums.tolist() == [[10, 11, 100], [1, 110, 10], [10, 101, 10], [1, 20, 100]]
    assert trusted_sums(state, network, inf)[0, :, 0].tolist() == [10, 101, 10]


def test_the_threshold_adds_up_distances_over_rounds() -> None:
    history: list[NetworkState] = []
    solver = replace(ALGORITHMS["iterations"], threshold=1e9)
    curator = SamplingCurator(EventList(), SeededSampler(4))
    solver.solve(private(), curator, observe=lambda _, state: history.append(state))
    first, second = solver.network.ends
    total = np.zeros(4)
    for state in history:
        total += [
            sqrt(((state.messages[i] - state.messages[j]) ** 2).sum())
            for i, j in zip(first, second, strict=True)
        ]
        assert np.allclose(state.deviations, total, rtol=1e-14)


def test_dual_variables_add_up_to_zero() -> None:
    solver = ALGORITHMS["iterations"]
    state = solver.solve(private(), SamplingCurator(EventList(), SeededSampler(4)))
    assert np.abs(state.duals).max() > 1e-3
    assert np.allclose(state.duals.sum(axis=-2), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"noise_multiplier": float("nan")}, "noise_multiplier"),
        ({"penalty": 0.0}, "penalty"),
        ({"regularisation": -1e-9}, "regularisation"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"threshold": 0.0}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"schedule": TABLE, "rounds": 6}, "round=6"),
    ],
)
def test_bad_settings_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        replace(ALGORITHMS["constant"], **change)


def test_a_network_of_another_size_is_refused_before_anything_is_spent() -> None:
    events = EventList()
    with pytest.raises(InvalidParameter, match="number of parties, 5"):
        PrAdmm(ring(4), 3, 1.0).solve(private(), SamplingCurator(events, SeededSampler(0)))
    assert events.events == []
