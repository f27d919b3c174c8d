"""How often each lower bound exceeds the truth, on mechanisms whose epsilon is known.

Usage: python benchmarks/lower_bounds.py [--repetitions 1000] [--trials 100 1000]
           [--confidence 0.95] [--jobs 1] [--peers] [--only TEXT]

A row is one bound on one mechanism: in how many repetitions the bound was above the true epsilon
(or a true claim was refuted), and the median bound beside the truth. The exit status is 1 if a
bound with a confidence exceeds the truth more often than it may, by more than binomial chance
(1 in 1000 over the whole table). The Bayesian interval claims no confidence: reported, not gated,
with a fiftieth of the repetitions. `--peers` puts the auditors of five other libraries beside ours
(lower_bounds_peers.py says which and how to install them), with a tenth of the repetitions, the two
far slower than all others with a hundredth.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from statistics import median

import numpy as np
from joblib import Parallel, delayed
from lower_bounds_mechanisms import DELTA, MECHANISMS, Experiment, Mechanism
from lower_bounds_peers import one_run_peers, peers
from numpy.random import Generator
from scipy.stats import binom

from dpledger.accounting.numbers.notions import ApproxDp, Gdp
from dpledger.audits.bayesian import Bayesian
from dpledger.audits.bounds import Bound, ClopperPearson, GaussianFamily
from dpledger.audits.importance_sampling import TiltedRuns, epsilon_interval, plan_tilt
from dpledger.audits.one_run import OneRun, OneRunTradeOff
from dpledger.audits.selection import Bonferroni, MultiSplit, Split
from dpledger.audits.sequential import SequentialTest, plan_bet

FALSE_ALARM = 1e-3


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


@dataclass(frozen=True)
class Case:
    """One row of the table, from one in `one_in` of the repetitions."""

    number: int
    mechanism: Mechanism
    epsilon: float
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
                one_in, truth = 1 if gated else 50, mechanism.epsilon
                yield Case(number, mechanism, truth, trials, name, gated, one_in, experiment)
                number += 1
    if not asked.peers:
        return
    for first, library in ((10_000, peers), (20_000, one_run_peers)):
        for place, mechanism in enumerate(MECHANISMS):
            for trials in asked.trials:
                for name, one_in, ask, truth in library(mechanism, trials, asked.confidence):
                    yield Case(first + place, mechanism, truth, trials, name, False, one_in, ask)


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
        truth, count = case.epsilon, len(found)
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
