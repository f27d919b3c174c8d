"""Releases with noise that is not normal: planned, run, replayed, priced and proved alike.

Statistical tests have fixed seeds and a false-alarm rate of 1e-6 each, should a seed change.
"""

from collections.abc import Callable
from math import log

import numpy as np
import pytest

from dpledger.accounting import MemoryLedger, certify, verify
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.pure import pure_epsilon
from dpledger.audits import AuditDataset
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.replay import ReplayTrials
from dpledger.mechanisms import (
    Adjacency,
    ClassLabels,
    Curator,
    DataShape,
    DiscreteGaussianNoise,
    DiscreteGaussianStep,
    DiscreteLaplaceNoise,
    DiscreteLaplaceStep,
    EventList,
    InvalidParameter,
    LaplaceNoise,
    LaplaceStep,
    Norm,
    PlanningCurator,
    Poisson,
    PrivateDataset,
    RandomisedResponse,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SimulationSampler,
)
from dpledger.mechanisms.inside import private_value
from dpledger.mechanisms.noise import Noise
from dpledger.mechanisms.protocols import FloatArray
from dpledger.solvers import Logistic

ADD, ZERO, REPLACE = (
    Adjacency.ADD_REMOVE_ONE,
    Adjacency.ZERO_OUT_ONE,
    Adjacency.REPLACE_ONE,
)
EDGES = (-0.5, 0.0, 0.25)
DELTA = 1e-6


def held(adjacency: Adjacency = REPLACE, *, records: int = 12, seed: int = 0) -> AuditDataset:
    rng = np.random.default_rng(seed)
    return AuditDataset(
        rng.uniform(-0.7, 0.7, size=(records, 2)),
        rng.choice([0.0, 1.0, 2.0], size=records),
        adjacency=adjacency,
        row_bound=1.0,
        parties=("a", "b"),
        party_of=np.arange(records) % 2,
        label_domain=ClassLabels(3),
        n_min=3 if adjacency is ADD else None,
    )


Ask = Callable[[PrivateDataset], Sensitive]


def labels(norm: Norm) -> Ask:
    return lambda data: data.histogram((0.5, 1.5), norm=norm)


RELEASES: dict[str, tuple[Ask, Noise, type]] = {
    "laplace": (labels(Norm.L1), LaplaceNoise(4.0), LaplaceStep),
    "discrete laplace": (labels(Norm.L1), DiscreteLaplaceNoise(4.0), DiscreteLaplaceStep),
    "discrete gaussian": (labels(Norm.L2), DiscreteGaussianNoise(3.5), DiscreteGaussianStep),
    "randomised response": (
        lambda data: data.answers(),
        RandomisedResponse(0.75, 3),
        RandomisedResponse,
    ),
}
EVERY = pytest.mark.parametrize(("ask", "noise", "step"), RELEASES.values(), ids=RELEASES)


def solver(ask: Ask, noise: Noise) -> Callable[[PrivateDataset, Curator], object]:
    return lambda data, curator: curator.release(ask(data), mechanism=noise, round=1, release="x")


# What is whole ----------------------------------------------------------------------------------


@pytest.mark.parametrize("column", [None, 0, 1])
def test_histograms_count_every_record_once(column: int | None) -> None:
    data = held(records=400)
    rng = np.random.default_rng(0)
    rows, labels = rng.uniform(-0.7, 0.7, size=(400, 2)), rng.choice([0.0, 1.0, 2.0], size=400)
    values = labels if column is None else rows[:, column]
    found = private_value(data.histogram(EDGES, column=column))
    assert found is not None
    for party in range(2):
        own = values[party::2]
        expected = [
            sum(low <= v < high for v in own)
            for low, high in zip((-9, *EDGES), (*EDGES, 9), strict=True)
        ]
        assert found[party].tolist() == expected
    total = private_value(data.histogram(()))
    assert total is not None
    assert total.tolist() == [[200.0], [200.0]]


@pytest.mark.parametrize("adjacency", [ADD, ZERO, REPLACE])
@pytest.mark.parametrize("column", [None, 1])
def test_no_neighbours_histograms_are_further_apart_than_the_sensitivity(
    adjacency: Adjacency, column: int | None
) -> None:
    rng = np.random.default_rng(3)
    moved = {Norm.L1: 0.0, Norm.L2: 0.0}
    for _ in range(60):
        rows, labels = rng.uniform(-1, 1, size=(9, 2)), rng.choice([0.0, 1.0, 2.0], size=9)
        other_rows, other_labels = rows.copy(), labels.copy()
        other_rows[8] = 0.0 if adjacency is ZERO else rng.uniform(-1, 1, size=2)
        other_labels[8] = rng.choice([0.0, 1.0, 2.0])
        if adjacency is ADD:
            other_rows, other_labels = other_rows[:8], other_labels[:8]
        for norm in Norm:
            values = []
            for x, y in ((rows, labels), (other_rows, other_labels)):
                data = AuditDataset(
                    x,
                    y,
                    adjacency=adjacency,
                    row_bound=1.0,
                    label_domain=ClassLabels(3),
                    n_min=5 if adjacency is ADD else None,
                )
                asked = data.histogram((0.5, 1.5), column=column, norm=norm)
                assert asked.rounding.whole
                values.append(private_value(asked))
            gap = np.abs(values[0] - values[1]).ravel()
            size = gap.sum() if norm is Norm.L1 else np.sqrt(gap @ gap)
            assert size <= asked.sensitivity.value
            moved[norm] = max(moved[norm], size / asked.sensitivity.value)
    assert min(moved.values()) > 0.999  # the bounds are attained


@pytest.mark.parametrize("noise", [DiscreteGaussianNoise(2.0), DiscreteLaplaceNoise(2.0)])
def test_discrete_noise_on_what_no_rule_makes_whole_is_refused(noise: Noise) -> None:
    data, sink = held(), EventList()
    norm = Norm.L1 if isinstance(noise, DiscreteLaplaceNoise) else Norm.L2
    curator = SamplingCurator(sink, SeededSampler(1))
    counts = data.histogram(EDGES, norm=norm)
    for value in (counts + 0.5, counts * 2.0, counts + counts, np.eye(4) @ counts):
        with pytest.raises(InvalidParameter, match="whole numbers"):
            curator.release(value, mechanism=noise, round=1, release="x")
    assert not sink.events
    pair = counts.concatenated(data.histogram((), norm=norm))
    assert curator.release(pair, mechanism=noise, round=1, release="x").shape == (2, 5)


def test_each_mechanism_asks_for_its_norm() -> None:
    data = held()
    curator = PlanningCurator()
    planned = PrivateDataset.planned(data.shape)
    for norm, noise in (
        (Norm.L2, LaplaceNoise(1.0)),
        (Norm.L2, DiscreteLaplaceNoise(1.0)),
        (Norm.L1, DiscreteGaussianNoise(1.0)),
    ):
        with pytest.raises(InvalidParameter, match="norm"):
            curator.release(
                planned.histogram(EDGES, norm=norm), mechanism=noise, round=1, release="x"
            )
    assert not curator.events


def test_answers_are_asked_of_records_that_answer_for_themselves() -> None:
    curator = PlanningCurator()
    planned = PrivateDataset.planned(held().shape)
    for value in (planned.histogram(EDGES), planned.answers() + 1.0, planned.answers() * 1.0):
        with pytest.raises(InvalidParameter, match="one answer a record"):
            curator.release(value, mechanism=RandomisedResponse(0.75, 3), round=1, release="x")
    with pytest.raises(InvalidParameter, match="out of 2"):
        curator.release(planned.answers(), mechanism=RandomisedResponse(0.75), round=1, release="x")
    for adjacency in (ADD, ZERO):
        with pytest.raises(InvalidParameter, match="replace-one"):
            held(adjacency).answers()
    with pytest.raises(InvalidParameter, match="party_counts"):
        held(records=13).answers()


def test_exactly_one_kind_of_noise_is_asked_for() -> None:
    counts = PrivateDataset.planned(held().shape).histogram(EDGES)
    with pytest.raises(InvalidParameter, match="one of"):
        PlanningCurator().release(
            counts, mechanism=DiscreteGaussianNoise(2.0), noise_std=2.0, round=1, release="x"
        )


@EVERY
def test_samples_take_normal_noise_only(ask: Ask, noise: Noise, step: type) -> None:
    curator = PlanningCurator()
    shape = DataShape(("a",), count=9, features=2, row_bound=1.0, adjacency=ADD)
    sample = curator.sample(PrivateDataset.planned(shape), Poisson(0.5))
    with pytest.raises(InvalidParameter, match="computed on all records"):
        curator.release(
            sample.sum_gradient(Logistic(), np.zeros(2)), mechanism=noise, round=1, release="x"
        )


# Run, replayed, proved --------------------------------------------------------------------------


@EVERY
def test_plan_and_run_agree_and_the_certificate_verifies(
    ask: Ask, noise: Noise, step: type
) -> None:
    data, solve = held(), solver(ask, noise)
    plan = PlanningCurator()
    solve(PrivateDataset.planned(data.shape), plan)
    ledger = MemoryLedger()
    sink = ledger.run("counts", configuration_hash="x", plan=plan.events)
    message = solve(data, SamplingCurator(sink, SeededSampler(5)))
    assert isinstance(message, np.ndarray)
    assert not message.flags.writeable
    assert list(sink.events()) == plan.events
    assert isinstance(plan.events[0].mechanism, step)
    if step is not LaplaceStep:
        np.testing.assert_array_equal(message, np.rint(message))
    certificate = certify(sink.events(), delta=DELTA)
    verdict = verify(certificate.to_json_bytes())
    assert not [each for each in verdict.assumptions if each.startswith("declared")]
    own = guarantee(plan.events, delta=DELTA).epsilon.upper_float
    assert own <= certificate.epsilon <= 1.01 * own


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("laplace", 2 / 4),
        ("discrete laplace", 2 / 4),
        ("randomised response", log(0.75 / 0.125)),
    ],
)
def test_pure_mechanisms_cost_what_their_ratio_says(name: str, epsilon: float) -> None:
    ask, noise, _ = RELEASES[name]
    plan = PlanningCurator()
    solver(ask, noise)(PrivateDataset.planned(held().shape), plan)
    found = pure_epsilon(plan.events).upper_float
    assert epsilon <= found <= epsilon * (1 + 1e-9)


@EVERY
def test_replays_give_the_log_ratio_of_the_law(ask: Ask, noise: Noise, step: type) -> None:
    data = held()
    neighbour = data.with_record(0, label=0.0 if private_value(data.answers())[0, 0] else 1.0)  # type: ignore[index]
    solve = solver(ask, noise)
    run = SamplingCurator(EventList(), SeededSampler(2), trials=500, record=True)
    message = solve(data, run)
    assert isinstance(message, np.ndarray)

    def log_law(side: AuditDataset) -> FloatArray:
        gap = np.abs(message - private_value(ask(side)))
        match noise:
            case LaplaceNoise(scale) | DiscreteLaplaceNoise(scale):
                return np.asarray(-gap.sum(axis=(-2, -1)) / scale)
            case DiscreteGaussianNoise(noise_std):
                return np.asarray(-(gap**2).sum(axis=(-2, -1)) / (2 * noise_std**2))
            case RandomisedResponse():
                return np.asarray(np.where(gap == 0, log(0.75), log(0.125)).sum(axis=(-2, -1)))

    densities = []
    for side in (data, neighbour):
        replay = ReplayCurator(run.transcript)
        solve(side, replay)
        densities.append(replay.log_density)
    ratio = densities[0] - densities[1]
    np.testing.assert_allclose(ratio, log_law(data) - log_law(neighbour), atol=1e-12)
    scores = ReplayTrials(solve, data, neighbour, seed=4).attack(0, 200)
    assert scores.dataset.shape == (200,)
    assert np.abs(scores.dataset).max() > 0.0


@EVERY
def test_simulated_noise_is_refused_where_it_has_no_such_law(
    ask: Ask, noise: Noise, step: type
) -> None:
    sink = EventList()
    with pytest.raises(InvalidParameter, match="ExactSampler"):
        solver(ask, noise)(held(), SamplingCurator(sink, SimulationSampler(1)))
    assert not sink.events
