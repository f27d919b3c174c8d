"""The auditors of five other libraries, asked as their documentation says, for lower_bounds.py.

    pip install jax-privacy privacy-estimates opake-auditing
    pip install --no-deps tensorflow-empirical-privacy && pip install immutabledict statsmodels
    pip install git+https://github.com/cmla-psu/statdp

Those that are not installed are left out.
"""

import importlib.util
from collections.abc import Callable, Iterator
from functools import cache
from math import inf
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from lower_bounds_mechanisms import DELTA, MECHANISMS, Experiment, Mechanism
from numpy.random import Generator

from dpledger.audits.bounds import Scores
from dpledger.audits.one_run import Canaries


class PeerBound(NamedTuple):
    """A peer's bound on one mechanism, from one in `one_in` of the repetitions: some are slow."""

    name: str
    one_in: int
    experiment: Experiment
    epsilon: float
    """The truth that it bounds: at delta, or at 0 where the peer knows pure epsilon only."""


def peers(mechanism: Mechanism, trials: int, confidence: float) -> Iterator[PeerBound]:
    """Yield the bounds of the peers that are installed, from scores of runs in both worlds."""
    error = 1 - confidence
    for library in (_jax_privacy, _privacy_estimates, _tensorflow_privacy, _statdp):
        yield from library(mechanism, trials, error)


def one_run_peers(mechanism: Mechanism, trials: int, confidence: float) -> Iterator[PeerBound]:
    """Yield the one-run bounds of the peers that are installed, on canaries as ours have them."""
    error = 1 - confidence
    for library in (_jax_privacy_one_run, _opake):
        yield from library(mechanism, trials, error)


def _jax_privacy(mechanism: Mechanism, trials: int, error: float) -> Iterator[PeerBound]:
    try:
        from jax_privacy.auditing import CanaryScoreAuditor, MultiSplit
    except ImportError:
        return

    def asked(ask: Callable[[CanaryScoreAuditor], float]) -> Experiment:
        def anew(generator: Generator) -> float:
            scores = mechanism.scores(generator, trials)
            return float(ask(CanaryScoreAuditor(scores.dataset, scores.neighbour)))

        return anew

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
        yield PeerBound(f"jax-privacy: {name}", one_in, asked(ask), mechanism.epsilon)


def _privacy_estimates(mechanism: Mechanism, trials: int, error: float) -> Iterator[PeerBound]:
    try:
        from privacy_estimates import AttackResults, compute_eps_lo
    except ImportError:
        return

    def counted(method: str, *, chosen: bool) -> Experiment:
        def anew(generator: Generator) -> float:
            scores = mechanism.scores(generator, trials)
            threshold = best_accuracy(scores) if chosen else mechanism.threshold
            true = int(np.count_nonzero(scores.dataset > threshold))
            false = int(np.count_nonzero(scores.neighbour > threshold))
            found = AttackResults(FN=trials - true, FP=false, TN=trials - false, TP=true)
            return float(compute_eps_lo(found, DELTA, error, method))

        return anew

    for method in ("beta", "jeffreys"):
        for threshold in ("fixed", "chosen"):
            name = f"privacy-estimates: {method}, threshold {threshold}"
            asked = counted(method, chosen=threshold == "chosen")
            yield PeerBound(name, 10, asked, mechanism.epsilon)


def _tensorflow_privacy(mechanism: Mechanism, trials: int, error: float) -> Iterator[PeerBound]:
    """Of pure epsilon: the ratio of two rates, without a delta."""
    module = _tensorflow_module()
    if module is None or mechanism.pure_epsilon == inf:
        return

    def bounded(method: str, *, chosen: bool) -> Experiment:
        def anew(generator: Generator) -> float:
            scores = mechanism.scores(generator, trials)
            pooled = np.unique(np.concatenate([scores.dataset, scores.neighbour]))
            between = (pooled[:-1] + pooled[1:]) / 2  # it cuts tied scores by their place
            thresholds = between if chosen else np.array([mechanism.threshold])
            with np.errstate(all="ignore"):
                bound = module.EpsilonLowerBound(
                    scores.dataset, scores.neighbour, error, thresholds=thresholds
                ).compute_epsilon_lower_bound(module.BoundMethod(method), 1)
            return max(0.0, *bound.tolist()) if bound.size else 0.0

        return anew

    for method in ("clopper-pearson", "katz-log"):
        for threshold in ("fixed", "chosen"):
            name = f"tensorflow-empirical-privacy: {method}, threshold {threshold}"
            asked = bounded(method, chosen=threshold == "chosen")
            yield PeerBound(name, 10, asked, mechanism.pure_epsilon)


@cache
def _tensorflow_module() -> ModuleType | None:
    """Return its module of bounds, by its file: the package around it wants TensorFlow."""
    package = importlib.util.find_spec("tensorflow_privacy")
    for folder in (package and package.submodule_search_locations) or ():
        file = Path(folder) / "privacy" / "privacy_tests" / "epsilon_lower_bound.py"
        if file.exists():
            spec = importlib.util.spec_from_file_location("epsilon_lower_bound", file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None


def _statdp(mechanism: Mechanism, trials: int, error: float) -> Iterator[PeerBound]:
    """A test of the true pure epsilon, which is infinite here where it is refuted.

    Half of the runs choose the event, half judge it. It draws from generators of its own.
    """
    try:
        from statdp.hypotest import hypothesis_test
        from statdp.selectors import select_event
    except ImportError:
        return
    if mechanism.pure_epsilon == inf:
        return
    place, claimed = MECHANISMS.index(mechanism), mechanism.pure_epsilon
    here, other, half = [place, 1], [place, 0], trials // 2

    def refuted(generator: Generator) -> float:
        pool, pairs = _InThisProcess(), [(here, other, {})]
        *_, event = select_event(_one_score, pairs, claimed, half, pool, quiet=True)
        p_value = hypothesis_test(_one_score, here, other, {}, event, claimed, half, pool, False)
        return inf if p_value <= error else 0.0

    yield PeerBound("StatDP: test of the true claim", 10, refuted, claimed)


class _InThisProcess:
    """Stands where StatDP wants a pool of processes."""

    _processes = 1
    imap_unordered = staticmethod(map)


def _one_score(generator: Generator, queries: list[int]) -> float:
    place, first = queries
    mechanism = MECHANISMS[place]
    return float((mechanism.dataset if first else mechanism.neighbour)(generator, 1)[0])


def _jax_privacy_one_run(mechanism: Mechanism, trials: int, error: float) -> Iterator[PeerBound]:
    try:
        from jax_privacy.auditing import CanaryScoreAuditor
    except ImportError:
        return

    def asked(ask: Callable[[CanaryScoreAuditor], float]) -> Experiment:
        def anew(generator: Generator) -> float:
            canaries = mechanism.canaries(generator, trials)
            scores, included = canaries.scores, canaries.included
            return float(ask(CanaryScoreAuditor(scores[included], scores[~included])))

        return anew

    for name, one_in, ask in (
        ("one run", 10, lambda a: a.epsilon_one_run(error, DELTA)),
        ("one run, f-DP", 100, lambda a: a.epsilon_one_run_fdp(error, DELTA)),
    ):
        yield PeerBound(f"jax-privacy: {name}", one_in, asked(ask), mechanism.epsilon)


def _opake(mechanism: Mechanism, trials: int, error: float) -> Iterator[PeerBound]:
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
        return float(method.epsilon_at(delta=DELTA, significance=error))

    yield PeerBound(
        "opake-auditing: one run, order statistics",
        10,
        lambda generator: ordered(mechanism.canaries(generator, trials)),
        mechanism.epsilon,
    )


def best_accuracy(scores: Scores) -> float:
    """Return the threshold that tells these very scores apart best, as tuned attacks choose it."""
    pooled = np.concatenate([scores.dataset, scores.neighbour])
    order = np.argsort(pooled)
    marks = np.where(order < scores.dataset.size, -1, 1)
    return float(pooled[order[int(np.argmax(np.cumsum(marks)))]])
