"""How often each lower bound exceeds the truth, on mechanisms whose epsilon is known.

Usage: python benchmarks/coverage.py [--repetitions 1000] [--trials 100 1000] [--confidence 0.95]
           [--jobs 1] [--peers] [--only TEXT]

A row is one bound on one mechanism: in how many repetitions the bound was above the true epsilon
(or a true claim was refuted), and the median bound beside the truth. The exit status is 1 if a
bound with a confidence exceeds the truth more often than it may, by more than binomial chance
(1 in 1000 over the whole table). The Bayesian interval claims no confidence: reported, not gated,
with a fiftieth of the repetitions. `--peers` puts the auditing modules of jax-privacy, of
privacy-estimates and of opake-auditing beside ours, where they are installed, with a tenth of the
repetitions (jax-privacy's multi-split and its one run by f-DP, far slower than all others, with a
hundredth).
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp, inf, log
from statistics import median

import numpy as np
from joblib import Parallel, delayed
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.stats import binom, norm

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.bayesian import Bayesian
from dpledger.audits.bounds import Bound, ClopperPearson, GaussianFamily, Scores
from dpledger.audits.importance_sampling import TiltedRuns, epsilon_interval, plan_tilt
from dpledger.audits.one_run import Canaries, OneRun, OneRunTradeOff
from dpledger.audits.selection import Bonferroni, MultiSplit, Split
from dpledger.audits.sequential import SequentialTest, plan_bet
from dpledger.mechanisms.protocols import FloatArray

DELTA = 1e-5
FALSE_ALARM = 1e-3
_GRID = 2.0**30


@dataclass(frozen=True)
class Mechanism:
    """A pair of laws of one number; scores are log-likelihood ratios of it."""

    name: str
    epsilon: float
    threshold: float
    dataset: Callable[[Generator, int], FloatArray]
    neighbour: Callable[[Generator, int], FloatArray]
    gaussian_mu: float | None = None

    def scores(self, generator: Generator, trials: int) -> Scores:
        """Return scores of runs in both worlds."""
        return Scores(self.dataset(generator, trials), self.neighbour(generator, trials))

    def canaries(self, generator: Generator, number: int) -> Canaries:
        """Return one run of independent canaries, each in where the first law drew it."""
        included = generator.random(number) < 0.5
        scores = self.scores(generator, number)
        seed = int(generator.integers(2**32))
        return Canaries(np.where(included, scores.dataset, scores.neighbour), included, seed)


def gaussian(mu: float) -> Mechanism:
    """Return the exactly mu-GDP pair; mu = 0 scores by noise."""
    half, spread = mu * mu / 2, mu or 1.0
    epsilon = epsilon_from_delta(mu_squared=mu * mu, delta=DELTA).upper_float if mu else 0.0
    return Mechanism(
        f"Gaussian mu = {mu:g}" if mu else "null",
        epsilon,
        epsilon / 2 if mu else 0.5,
        lambda generator, trials: generator.normal(half, spread, trials),
        lambda generator, trials: generator.normal(-half, spread, trials),
        mu,
    )


def randomised_response(epsilon: float) -> Mechanism:
    """Return randomised response, whose epsilon at delta is that of the binary mechanism."""
    true = 1 / (1 + exp(-epsilon))

    def world(sign: float) -> Callable[[Generator, int], FloatArray]:
        return lambda generator, trials: np.where(
            generator.random(trials) < true, sign * epsilon, -sign * epsilon
        )

    truth = log((true - DELTA) / (1 - true))
    return Mechanism("randomised response", truth, 0.0, world(1.0), world(-1.0))


def laplace(epsilon: float) -> Mechanism:
    """Return Laplace noise of scale 1/epsilon on a sum of sensitivity 1."""

    def world(centre: float) -> Callable[[Generator, int], FloatArray]:
        def ratios(generator: Generator, trials: int) -> FloatArray:
            # on one grid in both worlds: the last bits of a sum show what noise was added to
            # (Mironov 2012), and thresholds chosen on the scores do find that
            drawn = np.round(generator.laplace(centre, 1 / epsilon, trials) * _GRID) / _GRID
            return np.asarray(epsilon * (np.abs(drawn) - np.abs(drawn - 1)))

        return ratios

    # delta(eps') = 1 - e^((eps' - epsilon)/2)
    truth = epsilon + 2 * log(1 - DELTA)
    return Mechanism("Laplace", truth, epsilon / 2, world(1.0), world(0.0))


def sampled_gaussian(rate: float, mu: float) -> Mechanism:
    """Return one Poisson-sampled Gaussian step under add/remove: a mixture against its part."""

    def ratio(drawn: FloatArray) -> FloatArray:
        return np.log1p(rate * np.expm1(mu * drawn - mu * mu / 2))

    def mixture(generator: Generator, trials: int) -> FloatArray:
        return ratio(generator.normal(mu * (generator.random(trials) < rate)))

    def excess(epsilon: float) -> float:
        start = (log((exp(epsilon) - 1 + rate) / rate) + mu * mu / 2) / mu
        present = rate * norm.sf(start - mu) + (1 - rate) * norm.sf(start)
        forward = present - exp(epsilon) * norm.sf(start)
        backward = 0.0
        if exp(-epsilon) > 1 - rate:
            end = (log((exp(-epsilon) - 1 + rate) / rate) + mu * mu / 2) / mu
            other = rate * norm.cdf(end - mu) + (1 - rate) * norm.cdf(end)
            backward = norm.cdf(end) - exp(epsilon) * other
        return float(max(forward, backward) - DELTA)

    truth = float(brentq(excess, 1e-6, 20.0))
    return Mechanism(
        "Poisson-sampled Gaussian",
        truth,
        truth / 2,
        mixture,
        lambda generator, trials: ratio(generator.normal(size=trials)),
    )


MECHANISMS = (
    gaussian(0.0),
    gaussian(0.5),
    gaussian(1.0),
    gaussian(2.0),
    randomised_response(1.0),
    laplace(1.0),
    sampled_gaussian(0.1, 1.0),
)

Experiment = Callable[[Generator], float]
"""Draws anew and returns a bound on epsilon; infinity for a true claim that was refuted."""


def experiments(
    mechanism: Mechanism, trials: int, confidence: float
) -> Iterator[tuple[str, bool, Experiment]]:
    """Yield name, whether a confidence is claimed, and the experiment, where conditions are met."""

    def bounded(bound: Bound) -> Experiment:
        return lambda generator: (
            bound.lower_bound(mechanism.scores(generator, trials), delta=DELTA).epsilon
        )

    threshold, each = mechanism.threshold, trials // 10
    spread = tuple(threshold * scale for scale in (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0))
    yield "Clopper-Pearson", True, bounded(ClopperPearson(threshold, confidence))
    yield "Bonferroni, 6 thresholds", True, bounded(Bonferroni(spread, confidence))
    yield "split", True, bounded(Split(confidence, seed=1))
    yield "multi-split", True, bounded(MultiSplit(confidence, seed=1))
    if mechanism.gaussian_mu is not None:
        yield "Gaussian family", True, bounded(GaussianFamily(confidence))

    def one_run(method: OneRun | OneRunTradeOff) -> Experiment:
        return lambda generator: (
            method.lower_bound(mechanism.canaries(generator, trials), delta=DELTA).epsilon
        )

    yield "one run", True, one_run(OneRun(confidence, each, each))
    yield "one run, trade-off", True, one_run(OneRunTradeOff(confidence, each, each))
    if mechanism.epsilon > 0:
        yield "sequential, true claim", True, _refuting(mechanism, trials, confidence)
    if mechanism.gaussian_mu:
        yield (
            "importance sampling, lower end",
            True,
            _tilted(mechanism.gaussian_mu, trials, confidence),
        )
    believed = Bayesian(threshold, 2 * confidence - 1)
    yield (
        "Bayesian, lower end",
        False,
        lambda generator: believed.interval(mechanism.scores(generator, trials), delta=DELTA).lower,
    )


def _refuting(mechanism: Mechanism, trials: int, confidence: float) -> Experiment:
    mu = mechanism.gaussian_mu
    claimed = ApproxDp(mechanism.epsilon, DELTA) if mu is None else Gdp(mu * mu)
    test = SequentialTest(plan_bet(claimed=claimed), confidence)

    def refuted(generator: Generator) -> float:
        found = test.after(mechanism.scores(generator, trials))
        return 0.0 if found.refuted_after is None else inf

    return refuted


def _tilted(mu: float, trials: int, confidence: float) -> Experiment:
    tilt = plan_tilt(gap_squared=mu * mu, delta=DELTA)

    def lower(generator: Generator) -> float:
        ratios = generator.normal(mu * mu / 2 + tilt.amount * mu * mu, mu, trials)
        runs = TiltedRuns(ratios, tilt.log_constant - tilt.amount * ratios)
        error = 1 - confidence
        return epsilon_interval(runs, tilt, delta=DELTA, lower_error=error, upper_error=error).lower

    return lower


def peers(
    mechanism: Mechanism, trials: int, confidence: float
) -> Iterator[tuple[str, int, Experiment]]:
    """Yield the bounds of the peers that are installed, as their documentation says to use them.

    The number is as in `Case.one_in`: some are slow.
    """
    error = 1 - confidence
    try:
        from jax_privacy.auditing import CanaryScoreAuditor, MultiSplit
    except ImportError:
        pass
    else:

        def audited(ask: Callable[[CanaryScoreAuditor], float]) -> Experiment:
            def ask_anew(generator: Generator) -> float:
                scores = mechanism.scores(generator, trials)
                return float(ask(CanaryScoreAuditor(scores.dataset, scores.neighbour)))

            return ask_anew

        split = MultiSplit()
        for name, one_in, ask in (
            ("Clopper-Pearson", 10, lambda a: a.epsilon_clopper_pearson(error, DELTA)),
            (
                "Clopper-Pearson, multi-split",
                100,
                lambda a: a.epsilon_clopper_pearson(error, DELTA, threshold_strategy=split),
            ),
            ("raw counts (no confidence claimed)", 10, lambda a: a.epsilon_raw_counts(delta=DELTA)),
            ("GDP", 10, lambda a: a.epsilon_from_gdp(error, DELTA)),
        ):
            yield f"jax-privacy: {name}", one_in, audited(ask)
    try:
        from privacy_estimates import AttackResults, compute_eps_lo
    except ImportError:
        return

    def counted(method: str, *, chosen: bool) -> Experiment:
        def ask_anew(generator: Generator) -> float:
            scores = mechanism.scores(generator, trials)
            threshold = best_accuracy(scores) if chosen else mechanism.threshold
            true = int(np.count_nonzero(scores.dataset > threshold))
            false = int(np.count_nonzero(scores.neighbour > threshold))
            found = AttackResults(FN=trials - true, FP=false, TN=trials - false, TP=true)
            return float(compute_eps_lo(found, DELTA, error, method))

        return ask_anew

    for method in ("beta", "jeffreys"):
        yield f"privacy-estimates: {method}, threshold fixed", 10, counted(method, chosen=False)
        yield f"privacy-estimates: {method}, threshold chosen", 10, counted(method, chosen=True)


def one_run_peers(
    mechanism: Mechanism, trials: int, confidence: float
) -> Iterator[tuple[str, int, Experiment]]:
    """Yield the one-run bounds of the peers that are installed, on canaries as ours have them.

    The number is as in `Case.one_in`: some are slow.
    """
    error = 1 - confidence

    def asked(ask: Callable[[Canaries], float]) -> Experiment:
        return lambda generator: float(ask(mechanism.canaries(generator, trials)))

    try:
        from jax_privacy.auditing import CanaryScoreAuditor
    except ImportError:
        pass
    else:

        def auditor(canaries: Canaries) -> CanaryScoreAuditor:
            scores, included = canaries.scores, canaries.included
            return CanaryScoreAuditor(scores[included], scores[~included])

        yield "jax-privacy: one run", 10, asked(lambda c: auditor(c).epsilon_one_run(error, DELTA))
        yield (
            "jax-privacy: one run, f-DP",
            100,
            asked(lambda c: auditor(c).epsilon_one_run_fdp(error, DELTA)),
        )
    try:
        from opake.auditing import canary_scores, one_run
        from opake.auditing.types import CoinFlip
    except ImportError:
        return

    def ordered(canaries: Canaries) -> float:
        places, included = np.arange(canaries.scores.size), canaries.included
        coins = CoinFlip(places.size, places, included, places[included], places[~included])
        scores = canary_scores(canaries.scores, canary_indices=places)
        method = one_run(scores, coin_flip=coins).eps_delta()
        return method.epsilon_at(delta=DELTA, significance=error)

    yield "opake-auditing: one run, order statistics", 10, asked(ordered)


def best_accuracy(scores: Scores) -> float:
    """Return the threshold that tells these very scores apart best, as tuned attacks choose it."""
    pooled = np.concatenate([scores.dataset, scores.neighbour])
    order = np.argsort(pooled)
    marks = np.where(order < scores.dataset.size, -1, 1)
    return float(pooled[order[int(np.argmax(np.cumsum(marks)))]])


@dataclass(frozen=True)
class Case:
    """One row of the table, from one in `one_in` of the repetitions."""

    number: int
    mechanism: Mechanism
    trials: int
    name: str
    gated: bool
    one_in: int
    experiment: Experiment

    def run(self, repetitions: int, seed: int) -> list[float]:
        """Return the bounds."""
        generator = np.random.default_rng([seed, self.number])
        return [self.experiment(generator) for _ in range(-(-repetitions // self.one_in))]


def rows(asked: argparse.Namespace) -> Iterator[Case]:
    """Yield all cases; numbers name streams of noise and stay when peers are missing."""
    number = 0
    for mechanism in MECHANISMS:
        for trials in asked.trials:
            for name, gated, experiment in experiments(mechanism, trials, asked.confidence):
                one_in = 1 if gated else 50
                yield Case(number, mechanism, trials, name, gated, one_in, experiment)
                number += 1
    if asked.peers:
        for place, mechanism in enumerate(MECHANISMS):
            for trials in asked.trials:
                for name, one_in, experiment in peers(mechanism, trials, asked.confidence):
                    yield Case(10_000 + place, mechanism, trials, name, False, one_in, experiment)
                for name, one_in, experiment in one_run_peers(mechanism, trials, asked.confidence):
                    yield Case(20_000 + place, mechanism, trials, name, False, one_in, experiment)


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if a bound failed its confidence."""
    parser = argparse.ArgumentParser(description="Coverage of lower bounds on epsilon.")
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 1_000])
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", default="", help="rows whose bound's name holds this text")
    asked = parser.parse_args(arguments)
    cases = [case for case in rows(asked) if asked.only in case.name]
    level = FALSE_ALARM / max(1, sum(case.gated for case in cases))
    allowed = int(binom.isf(level, asked.repetitions, 1 - asked.confidence))
    print(
        f"{asked.repetitions} repetitions, confidence {asked.confidence:g}, delta {DELTA:g}, "
        f"seed {asked.seed}; at most {allowed} may be above the truth\n"
    )
    print("| mechanism | epsilon | trials | bound | above the truth | share | median bound |")
    print("|---|---|---|---|---|---|---|", flush=True)
    results = Parallel(n_jobs=asked.jobs, return_as="generator")(
        delayed(case.run)(asked.repetitions, asked.seed) for case in cases
    )
    failed = False
    for case, found in zip(cases, results, strict=True):
        truth, count = case.mechanism.epsilon, len(found)
        above = sum(bound > truth for bound in found)
        failed |= case.gated and above > allowed
        print(
            f"| {case.mechanism.name} | {truth:.4g} | {case.trials} | {case.name}"
            f"{'' if case.gated else ' (not gated)'} | {above} of {count} "
            f"| {above / count:.4f} | {median(found):.3g} |",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
