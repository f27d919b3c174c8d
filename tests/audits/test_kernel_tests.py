"""Kernel bets: no bet gains on average if the claim is true, and a false one is refuted early."""

from collections.abc import Callable, Iterator
from math import exp

import numpy as np
import pytest
from tests.parameters import slow

from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.black_boxes import audit_black_box
from dpledger.audits.kernel_tests import KernelTest, _Wealth  # pyright: ignore[reportPrivateUsage]
from dpledger.audits.scores import ClaimedPrivacy
from dpledger.audits.sequential import Claim
from dpledger.audits.violations import query_patterns
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.protocols import FloatArray

Draw = Callable[[np.random.Generator, int], tuple[FloatArray, FloatArray]]
TINY = 1e-12


def _pair(name: str, size: float, dimension: int = 1) -> Draw:
    def draw(generator: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
        noise = getattr(generator, name)
        shape = (trials, dimension)
        return noise(size=shape), noise(size=shape) + size

    return draw


def _responses(generator: np.random.Generator, trials: int) -> tuple[FloatArray, FloatArray]:
    """Randomised response, exactly 1-DP: the worst of all that are."""
    truth = 1 / (1 + exp(-1.0))
    first, second = (generator.random((trials, 1)) < share for share in (truth, 1 - truth))
    return first.astype(np.float64), second.astype(np.float64)


def _chunks(draw: Draw, seed: int, pairs: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    generator = np.random.default_rng(seed)
    for _ in range(pairs // 50):
        yield draw(generator, 50)


TRUE: list[tuple[Draw, Claim]] = [
    (_pair("laplace", 1.0), ApproxDp(1.0, TINY)),
    (_responses, ApproxDp(1.0, TINY)),
    (_pair("normal", 1.0), Gdp(1)),
    (_pair("standard_cauchy", 0.0), ApproxDp(0.01, TINY)),
]


@pytest.mark.parametrize(("draw", "claim"), [*TRUE[:2], *slow(*TRUE[2:])])
def test_a_true_claim_is_rarely_refuted_whenever_one_looks(draw: Draw, claim: Claim) -> None:
    seeds = 60
    found = [KernelTest(claim, 0.9, seed).run(_chunks(draw, seed, 600)) for seed in range(seeds)]
    # at most a tenth: 15 or more of 60 come by chance with probability 0.0005; the seeds are fixed
    assert sum(each.refuted_after is not None for each in found) < 15


def test_no_bet_gains_on_average_under_the_worst_law_of_the_claim() -> None:
    # the mean of a payoff is an exact sum over both answers of randomised response
    truth = 1 / (1 + exp(-1.0))
    generator = np.random.default_rng(4)
    gains: list[float] = []
    for _ in range(200):
        wealth = _Wealth(1.0, 0.0, 0.25, bool(generator.integers(2)), np.zeros(6))
        for _ in range(2):
            wealth.learn(generator.normal(size=(5, 6)), generator.normal(size=(5, 6)))
        answers = generator.normal(size=(2, 6))
        f = wealth._function(answers)  # pyright: ignore[reportPrivateUsage]
        assert np.all((f >= 0) & (f <= 1))
        gains += [
            float(p @ f - exp(1.0) * (p[::-1] @ f))
            for p in (np.array([truth, 1 - truth]), np.array([1 - truth, truth]))
        ]
    assert max(gains) <= 1e-12
    # and the bound is attained: some witness picks the worst event
    assert max(gains) > -1e-12


@pytest.mark.parametrize(
    ("draw", "claim", "most"),
    [
        (_pair("normal", 2.0), Gdp(1), 200),
        (_pair("normal", 2.0 / 10**0.5, 10), Gdp(1), 400),
        (_pair("laplace", 2.0), ApproxDp(1.0, TINY), 500),
    ],
)
def test_half_of_the_noise_is_found_in_few_pairs(draw: Draw, claim: Claim, most: int) -> None:
    found = KernelTest(claim, 0.99, 3).run(_chunks(draw, 8, 4000))
    assert found.refuted_after is not None
    assert found.refuted_after <= most
    assert found.p_value <= 0.01


def test_the_first_chunk_teaches_and_is_not_bet_upon() -> None:
    draws = list(_chunks(_pair("normal", 0.5), 5, 200))
    assert KernelTest(Gdp(1), 0.95, 1).run(draws[:1]).pairs == 0
    assert KernelTest(Gdp(1), 0.95, 1).run(draws).pairs == 150


def test_worlds_of_other_shapes_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="outputs"):
        KernelTest(Gdp(1), 0.95, 1).run([(np.zeros((5, 1)), np.zeros((4, 1)))])


def test_a_black_box_is_tested_by_kernels_within_its_runs() -> None:
    def forgetful(answers: FloatArray, trials: int, generator: np.random.Generator) -> FloatArray:
        return answers + generator.laplace(size=(trials, answers.size))

    for epsilon, refuted in ((1.0, True), (3.0, False)):
        found = audit_black_box(
            forgetful,
            query_patterns(3),
            claimed=ClaimedPrivacy.of(epsilon=epsilon, mu=None, delta=0.0),
            runs=20_000,
            confidence=0.99,
            seed=1,
            kernel=True,
        )
        assert found.refuted is refuted
        assert found.runs <= 20_000
