"""Laws of the white-box test of noise: what is as stated passes, what is not is found in one run.

Every fault is made in the sampler, below an unchanged solver, so that events say what they always
said; the solvers are those of each family.
"""

from typing import Any

import numpy as np
import pytest

from dpledger.audits.datasets import AuditDataset
from dpledger.audits.noise_tests import (
    Residual,
    format_rounding,
    has_normal_noise,
    noise_test_of_run,
    noise_tests,
    residuals,
)
from dpledger.mechanisms import (
    Adjacency,
    FixedBatch,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    PoissonSampled,
    PrivateDataset,
    SampledWithoutReplacement,
    SamplingCurator,
    SeededSampler,
    declared,
)
from dpledger.mechanisms.protocols import EventList, FloatArray, Provenance
from dpledger.solvers import (
    CentralisedDpAdmm,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    MAdmm,
    PrAdmm,
    PsAdmm,
    PvpAdmm,
    RAdmm,
    StochasticRounds,
    five_agents,
    fused_lasso,
)

LEVEL = 0.005


class Faulty:
    """Draws standard normal numbers and hands on what a fault makes of them."""

    provenance = Provenance("faulty", 1)

    def __init__(self, seed: int, fault: str) -> None:
        self._generator = np.random.default_rng([seed, 77])
        self._fault = fault
        self._first: dict[tuple[int, ...], FloatArray] = {}

    def gaussian(self, value: FloatArray, noise_std: float) -> FloatArray:
        return value + noise_std * self._normal(value.shape)

    def _normal(self, shape: tuple[int, ...]) -> FloatArray:
        fresh = self._generator.standard_normal(shape)
        first = self._first.setdefault(shape, fresh)
        match self._fault:
            case "halved":
                return fresh / 2
            case "reused":
                return first.copy()
            case "reused with its sign turned":
                return -first if first is not fresh else fresh
            case "a fixed seed":
                return np.random.default_rng(42).standard_normal(shape)
            case "mixed with the first":
                return 0.8 * first + 0.6 * fresh if first is not fresh else fresh
            case "one number for all coordinates":
                return np.broadcast_to(fresh[..., :1], shape).copy()
            case _:
                return fresh

    def uniform(self, shape: tuple[int, ...]) -> FloatArray:
        return 1.0 - self._generator.random(shape)


FAULTS = (
    "halved",
    "reused",
    "reused with its sign turned",
    "a fixed seed",
    "mixed with the first",
    "one number for all coordinates",
)


ROUNDS, PARTIES = 12, ("a", "b", "c", "d", "e")
PAIR = PrAdmm(five_agents(), ROUNDS, 5.0)
SOLVERS: dict[str, Any] = {
    "star": DpAdmm(ROUNDS, 5.0, ConstantSteps(1.0)),
    "pvp": PvpAdmm(ROUNDS, 5.0),
    "pr": PAIR,
    "m-admm": MAdmm(PAIR, 1.2),
    "r-admm": RAdmm(PAIR, 1.0),
    "ps, full gradients": PsAdmm(StochasticRounds(3, 4, 0.5), 5.0),
    "centralised": CentralisedDpAdmm(fused_lasso(6, [(0, 1)], [1.0]), ROUNDS, 5.0, 4.0),
    "sgd": DpSgd(ROUNDS, 5.0, ConstantSteps(0.5)),
    "sgd, batch": DpSgd(ROUNDS, 5.0, ConstantSteps(0.5), FixedBatch(3)),
}


def dataset(name: str) -> PrivateDataset:
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(60, 6))
    rows /= 1.001 * np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(generator.random(60) < 0.5, -1.0, 1.0)
    parties = PARTIES[:1] if name == "centralised" else PARTIES
    return AuditDataset(
        rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(60) % len(parties),
        parties=parties,
    )


def found(name: str, fault: str, seeds: int) -> float:
    """Return the share of seeds in which one run's noise is refuted."""
    data, solver = dataset(name), SOLVERS[name]
    tests = (
        noise_test_of_run(solver.solve, data, Faulty(seed, fault), level=LEVEL)
        for seed in range(seeds)
    )
    return sum(test.refuted for test in tests) / seeds


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_fault_of_the_noise_is_found_in_one_run(name: str, fault: str) -> None:
    assert found(name, fault, 2) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", SOLVERS)
def test_a_fault_is_found_in_95_of_100_runs(name: str, fault: str) -> None:
    assert found(name, fault, 200) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_noise_as_stated_is_accused_at_its_level_at_most(name: str) -> None:
    """200 runs at level 0.005: P(more than 6) = 1e-4."""
    assert found(name, "none", 200) <= 6 / 200


def test_noise_as_stated_is_rarely_accused() -> None:
    """100 draws of each form at level 0.2: P(more than 36) = 1e-4."""
    generator = np.random.default_rng(8)
    for rounds, parties, width in ((2, 1, 1), (6, 3, 1), (10, 1, 5)):
        accused = sum(
            noise_tests(
                [[Residual(generator.normal(size=(parties, width)), "x") for _ in range(rounds)]],
                level=0.2,
            ).refuted
            for _ in range(100)
        )
        assert accused <= 36


def test_what_is_left_is_the_noise_itself() -> None:
    """By an independent road: the sampler's numbers, drawn again in the same order."""
    data, solver = dataset("star"), SOLVERS["star"]
    curator = SamplingCurator(EventList(), SeededSampler(3), record=True)
    solver.solve(data, curator)
    left = residuals(solver.solve, data, curator.transcript)
    again = SeededSampler(3)
    assert len(left) == len(curator.transcript)
    for each in left:
        np.testing.assert_allclose(
            each.values, again.gaussian(np.zeros(each.values.shape), 1.0), atol=1e-9
        )


def test_another_law_and_a_shifted_one_are_told() -> None:
    generator = np.random.default_rng(6)
    uniform = [Residual((generator.random((5, 100)) - 0.5) * 12**0.5, "x") for _ in range(8)]
    shifted = [Residual(generator.normal(0.2, 1.0, (5, 100)), "x") for _ in range(8)]
    assert noise_tests([uniform], level=LEVEL).refuted
    assert noise_tests([shifted], level=LEVEL).refuted


def test_two_runs_of_one_seed_are_told() -> None:
    data, solver = dataset("star"), SOLVERS["star"]

    def run(seed: int) -> list[Residual]:
        curator = SamplingCurator(EventList(), SeededSampler(seed), record=True)
        solver.solve(data, curator)
        return residuals(solver.solve, data, curator.transcript)

    assert noise_tests([run(1), run(1)], level=LEVEL).refuted
    assert not noise_tests([run(1), run(2)], level=LEVEL).refuted


@pytest.mark.parametrize(
    ("kind", "offset"), [(np.float32, 0.0), (np.float16, 0.0), (np.float64, 1.6e9)]
)
def test_numbers_of_few_digits_agree_by_chance(kind: type[np.floating[Any]], offset: float) -> None:
    """Two of thousands are equal in their format; noise that is used again is still told."""

    def sent(noise: FloatArray) -> Residual:
        content = (offset + 4.0 * noise).astype(kind).astype(np.float64)
        return Residual((content - offset) / 4.0, "x", format_rounding(content) / 4.0)

    accused = 0
    for seed in range(40):
        generator = np.random.default_rng([seed, 21])
        drawn = [generator.normal(size=(1, 500)) for _ in range(8)]
        accused += noise_tests([[sent(each)] for each in drawn], level=LEVEL).refuted
    assert accused == 0  # by the level, one of a thousand
    turned = [*drawn[:7], -np.roll(drawn[3], 5)]
    told = noise_tests([[sent(each)] for each in turned], level=LEVEL).refuted
    assert told is (kind is not np.float16)  # of which hundreds are equal in any case


def test_a_transcript_of_another_run_is_refused() -> None:
    data, solver = dataset("star"), SOLVERS["star"]
    curator = SamplingCurator(EventList(), SeededSampler(3), record=True)
    solver.solve(data, curator)
    with pytest.raises(InvalidParameter, match="event 0"):
        residuals(SOLVERS["sgd"].solve, data, curator.transcript)


def test_without_noise_there_is_nothing_to_test() -> None:
    words = noise_tests([[]], level=0.1)
    assert not words.refuted
    assert "not tested" in words.detail


def test_only_normal_noise_is_held_to_the_normal_law() -> None:
    unit = declared(1, "an example", adjacency=Adjacency.REPLACE_ONE)
    manhattan = declared(1, "an example", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
    gaussian, laplace = GaussianStep(unit, 2.0), LaplaceStep(manhattan, 2.0)
    for sampled in (
        lambda step: step,
        lambda step: PoissonSampled(step, 0.1),
        lambda step: SampledWithoutReplacement(step, 3, 9),
    ):
        assert has_normal_noise(sampled(gaussian))
        assert not has_normal_noise(sampled(laplace))
