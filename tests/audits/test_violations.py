"""Laws of the violation finder: wrong mechanisms are caught, right ones are not accused.

The mechanisms are those of the literature on violation finders. Sparse-vector algorithms 1 to 6:
Lyu, Su, Li 2017, Figure 1. Noisy maxima and histograms: Ding, Wang, Wang, Zhang, Kifer 2018.
One-time RAPPOR: Erlingsson, Pihur, Korolova 2014. Queries have sensitivity 1 each.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np
import pytest
from tests.parameters import quick

from dpledger.audits.violations import AnswerPair, LearnedScore, find_violation, query_patterns
from dpledger.mechanisms.errors import InvalidParameter

ABOVE, BELOW, STOPPED = 1.0, 0.0, -1.0


@dataclass(frozen=True)
class Known:
    """A mechanism, what it is claimed to be, and whether that is so (with the reason)."""

    name: str
    run: Callable
    epsilon: float
    holds: bool
    reason: str


def laplace_noise(generator, scale, trials, queries):
    return generator.laplace(scale=scale, size=(trials, queries)) if scale else 0.0


def noisy_max(noise, *, value):
    def run(answers, trials, generator):
        noisy = answers + noise(generator, (trials, answers.size))
        return (noisy.max(axis=1) if value else noisy.argmax(axis=1))[:, None]

    return run


def histogram(scale):
    def run(answers, trials, generator):
        return answers + laplace_noise(generator, scale, trials, answers.size)

    return run


def clamped_laplace(scale, reach):
    """Laplace noise cut at `reach`: what only one world can reach gives it away."""

    def run(answers, trials, generator):
        noise = laplace_noise(generator, scale, trials, answers.size)
        return answers + np.clip(noise, -reach, reach)

    return run


def geometric(epsilon):
    """Two-sided geometric noise, the result clamped to a public range: post-processing."""

    def run(answers, trials, generator):
        p = 1 - np.exp(-epsilon)
        size = (trials, answers.size)
        return np.clip(answers + generator.geometric(p, size) - generator.geometric(p, size), 0, 5)

    return run


def sparse_vector(
    *, threshold_scale, query_scale, cutoff=None, refreshed=None, answers_given=False
):
    """Sparse vector with threshold 1; `refreshed` redraws the threshold's noise when it is met."""

    def run(answers, trials, generator):
        rho = generator.laplace(scale=threshold_scale, size=trials)
        found = np.zeros(trials, dtype=int)
        outputs = np.full((trials, answers.size), STOPPED)
        for j, answer in enumerate(answers):
            noisy = answer + laplace_noise(generator, query_scale, trials, 1)
            noisy = np.broadcast_to(np.ravel(noisy), trials)
            running = found < cutoff if cutoff else np.full(trials, True)
            above = running & (noisy >= 1 + rho)
            shown = noisy if answers_given else ABOVE
            outputs[:, j] = np.where(above, shown, np.where(running, BELOW, STOPPED))
            found += above
            if refreshed:
                rho = np.where(above, generator.laplace(scale=refreshed, size=trials), rho)
        return outputs

    return run


def one_time_rappor(f, bits, hashes):
    """The permanent response of a Bloom filter; an answer j sets the bits j·hashes and after."""

    def run(answers, trials, generator):
        filled = np.zeros(bits)
        filled[(int(answers[0]) * hashes + np.arange(hashes)) % bits] = 1
        return (generator.random((trials, bits)) < np.where(filled == 1, 1 - f / 2, f / 2)) * 1.0

    return run


def laplace_of(scale):
    return lambda generator, size: generator.laplace(scale=scale, size=size)


def exponential_of(scale):
    return lambda generator, size: generator.exponential(scale=scale, size=size)


E1 = 1.0  # the claim of most
RAPPOR = {"f": 0.75, "bits": 12, "hashes": 2}
RAPPOR_EPSILON = 2 * RAPPOR["hashes"] * log((1 - RAPPOR["f"] / 2) / (RAPPOR["f"] / 2))

KNOWN = [
    Known("noisy max 1", noisy_max(laplace_of(2 / E1), value=False), E1, True, "index, Laplace"),
    Known(
        "noisy max 2",
        noisy_max(exponential_of(2 / E1), value=False),
        E1,
        True,
        "index, exponential",
    ),
    Known("noisy max 3", noisy_max(laplace_of(2 / E1), value=True), E1, False, "shows the value"),
    Known(
        "noisy max 4", noisy_max(exponential_of(2 / E1), value=True), E1, False, "shows the value"
    ),
    Known(
        "sparse vector 1",
        sparse_vector(threshold_scale=2 / E1, query_scale=4 * 2 / E1, cutoff=2),
        E1,
        True,
        "the repaired one",
    ),
    Known(
        "sparse vector 2",
        sparse_vector(
            threshold_scale=2 * 2 / E1, query_scale=4 * 2 / E1, cutoff=2, refreshed=2 * 2 / E1
        ),
        E1,
        True,
        "the text book's",
    ),
    Known(
        "sparse vector 3",
        sparse_vector(threshold_scale=2 / E1, query_scale=2 / E1, cutoff=1, answers_given=True),
        E1,
        False,
        "shows the compared noisy answer",
    ),
    Known(
        "sparse vector 4",
        sparse_vector(threshold_scale=4 / E1, query_scale=4 / (3 * E1), cutoff=2),
        E1,
        False,
        "noise of queries ignores the cutoff: (1 + 6c)/4 epsilon",
    ),
    Known(
        "sparse vector 5",
        sparse_vector(threshold_scale=2 / E1, query_scale=0),
        E1,
        False,
        "queries without noise",
    ),
    Known(
        "sparse vector 6",
        sparse_vector(threshold_scale=2 / E1, query_scale=2 / E1),
        E1,
        False,
        "no cutoff",
    ),
]
"""Run on the patterns of answers to several queries, any of which may change."""

SINGLE = [
    Known("Laplace", histogram(1 / E1), E1, True, "scale 1/epsilon"),
    Known("histogram 1", histogram(1 / E1), E1, True, "one count changes"),
    Known("histogram 2", histogram(0.5), 0.5, False, "scale epsilon instead of its inverse"),
    Known("geometric, clamped", geometric(E1), E1, True, "post-processing"),
    Known("Laplace, noise clamped", clamped_laplace(1 / E1, 6.0), E1, False, "atoms move"),
    Known("one-time RAPPOR", one_time_rappor(**RAPPOR), RAPPOR_EPSILON, True, "2h bits differ"),
    Known(
        "one-time RAPPOR, half counted",
        one_time_rappor(**RAPPOR),
        RAPPOR_EPSILON / 2,
        False,
        "h bits go and h come",
    ),
]
"""Run where one answer changes by 1."""

ONE_ANSWER = (AnswerPair(np.array([0.0]), np.array([1.0]), "one answer higher"),)
CONFIDENCE = 0.999


def hunt(known, *, trials, seed=3):
    pairs = ONE_ANSWER if known in SINGLE else query_patterns(8)
    return find_violation(
        known.run, pairs, epsilon=known.epsilon, trials=trials, confidence=CONFIDENCE, seed=seed
    )


def names(known):
    return known.name


BROKEN = [k for k in KNOWN + SINGLE if not k.holds]
COSTLY = ("noisy max 3", "histogram 2")


@pytest.mark.parametrize(
    "known", quick([k for k in BROKEN if names(k) not in COSTLY], BROKEN), ids=names
)
def test_a_broken_mechanism_is_caught_within_a_million_runs(known):
    assert hunt(known, trials=1_000_000).refuted


@pytest.mark.parametrize("known", [k for k in KNOWN + SINGLE if k.holds], ids=names)
def test_a_correct_mechanism_is_not_accused(known):
    found = hunt(known, trials=400_000)
    assert not found.refuted


@pytest.mark.slow
@pytest.mark.parametrize("known", [k for k in KNOWN + SINGLE if k.holds], ids=names)
def test_a_correct_mechanism_is_not_accused_by_a_million_runs_of_any_seed(known):
    # twenty chances at an error probability of 0.001 each
    assert not any(hunt(known, trials=1_000_000, seed=seed).refuted for seed in range(20))


def test_the_bound_comes_close_to_the_truth_where_that_is_known():
    laplace = hunt(SINGLE[0], trials=400_000)
    assert 0.9 < laplace.bound.epsilon <= 1.0
    rappor = next(known for known in SINGLE if known.name == "one-time RAPPOR")
    assert 0.8 * RAPPOR_EPSILON < hunt(rappor, trials=1_000_000).bound.epsilon <= RAPPOR_EPSILON


def test_an_approximate_claim_is_held_to_its_delta():
    # one world in twenty says which it is: (0, 0.05)-DP, and nothing less
    def tells(answers, trials, generator):
        words = generator.random(trials) < 0.05
        return np.where(words, answers[0], -5.0)[:, None]

    def asked(delta):
        return find_violation(
            tells, ONE_ANSWER, epsilon=0.5, delta=delta, trials=100_000, confidence=0.99, seed=1
        )

    assert not asked(0.05).refuted
    assert asked(0.01).refuted


def test_a_learned_score_orders_outputs_as_the_true_ratio_does():
    generator = np.random.default_rng(5)
    first, second = (
        generator.normal(shift, size=(40_000, 3)) for shift in (np.array([1.0, 0, 0]), np.zeros(3))
    )
    fresh = generator.normal(size=(5_000, 3))
    learned = LearnedScore(first, second)(fresh)
    assert np.corrcoef(learned, fresh[:, 0])[0, 1] > 0.97


def test_dependent_symbols_are_compared_together():
    # each bit alone says nothing, their parity everything
    def parity(answers, trials, generator):
        bits = generator.integers(2, size=(trials, 2))
        return np.stack([bits[:, 0], bits[:, 0] ^ int(answers[0])], axis=1).astype(float)

    found = find_violation(parity, ONE_ANSWER, epsilon=3.0, trials=10_000, confidence=0.99, seed=1)
    assert found.refuted


def test_the_choice_of_a_pair_costs_no_confidence():
    # nothing leaks and sixteen pairs compete: false alarms stay below the level
    def nothing(answers, trials, generator):
        return generator.normal(size=(trials, 1))

    pairs = [AnswerPair(np.zeros(1), np.ones(1), str(i)) for i in range(16)]
    alarms = sum(
        find_violation(
            nothing, pairs, epsilon=0.0, trials=40_000, confidence=0.9, seed=seed
        ).refuted
        for seed in range(60)
    )
    # P(more than 12 of 60 at rate 0.1) = 0.005
    assert alarms <= 12


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 1.5}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"trials": 500}, "trials"),
        ({"pairs": ()}, "pairs"),
        ({"mechanism": lambda answers, trials, generator: np.zeros(trials)}, "outputs.shape"),
        ({"mechanism": lambda answers, trials, generator: np.full((trials, 1), np.nan)}, "outputs"),
    ],
)
def test_bad_input_is_refused(change, named):
    given = {
        "mechanism": histogram(1.0),
        "pairs": query_patterns(2),
        "epsilon": 1.0,
        "trials": 10_000,
        "confidence": 0.95,
        "seed": 1,
    } | change
    mechanism, pairs = given.pop("mechanism"), given.pop("pairs")
    with pytest.raises(InvalidParameter, match=named):
        find_violation(mechanism, pairs, **given)
