"""PR-7, PR-8 and PR-10: tuning, the threshold test and preprocessing.

Three places at which the algorithm might read records outside its noisy messages: the choice of its
settings, the test that keeps a message back, and the cutting of rows. The first does.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...accounting.guarantees import guarantee
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.claim import Case, Counterexample
from ...audits.claims.gaussian_event import shift_event
from ...audits.claims.structure import AccessPromise, MessagesOnlyPromise, RecordwisePromise
from ...audits.claims.tuning import Candidate, best_fit, looked_at
from ...mechanisms.curators import Curator
from ...mechanisms.events import Event
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...solvers.decentralised import PublishedPrAdmm
from ...solvers.planning import plan
from ...solvers.schedules import PeriodicDecay
from .setting import PrSetting, algorithm_of, claim, first_noise, one_each, two_each

_LEAST_EPSILON = 0.1
"""Of the paper's experiments: where the attack on tuning is clearest."""


def _candidates(s: PrSetting) -> dict[str, Candidate]:
    """The published algorithm with R_P and two rates beside it."""
    algorithm = algorithm_of(s, first_noise(s))

    def at(rate: float) -> Candidate:
        published = PublishedPrAdmm(replace(algorithm, schedule=PeriodicDecay(rate, s.K_p)))
        return lambda dataset, curator: published.solve(dataset, curator).model

    return {f"R_P = {rate:g}": at(rate) for rate in sorted({0.9, s.R_P, 0.95})}


def _tuned(s: PrSetting) -> tuple[Event, ...]:
    """Section V's procedure: run for every candidate, look at the model's fit, keep the best."""
    reason = "U, K_p, R_P and R_T are chosen by accuracy on the records (section V)"
    return plan(looked_at(_candidates(s), reason=reason, round=s.K + 1), s.shape(), ideal=True)


def _best_candidate(case: Case[PrSetting]) -> Counterexample | None:
    """Two rounds, where a single record has a gradient."""
    s = case.at(K=2, K_p=1, epsilon=_LEAST_EPSILON).setting
    words = f"with K = {s.K} and epsilon = {s.epsilon:g} each"
    return best_fit(_candidates(s), one_each(s), models=words, epsilon=s.epsilon, delta=s.delta)


def _thresholded(s: PrSetting) -> Callable[[PrivateDataset, Curator], object]:
    """Return the published run with its threshold test, shortened to five rounds."""
    few = replace(s, K=min(s.K, 5), K_p=1, D=2)
    return algorithm_of(few, 1.0, threshold=few.V / few.eta).solve


def _thresholded_rounds(case: Case[PrSetting]) -> ClaimAttack:
    """All messages of a run in which the test is often met."""
    s = case.setting
    solve, pair = _thresholded(s), two_each(s)
    alone = guarantee(
        plan(solve, pair.dataset.shape, ideal=True), delta=s.delta
    ).epsilon.upper_float
    words = f"{min(s.K, 5)} rounds with the threshold test, against what its noisy messages cost"
    return ClaimAttack(solve, pair, alone, s.delta, words)


def _cut(rows: FloatArray) -> FloatArray:
    """Set missing entries to 0 and cut every row to norm 1."""
    present = np.nan_to_num(rows, nan=0.0)
    return np.asarray(present / np.maximum(1.0, np.linalg.norm(present, axis=1, keepdims=True)))


def _rows(s: PrSetting) -> tuple[FloatArray, FloatArray]:
    """Return rows (n, 1) of two data sets, whose last one is 1 or -1000."""
    rows = np.ones((min(s.D, 1000), 1))
    return rows, np.vstack([rows[:-1], [[-1000.0]]])


def _claimed_move(s: PrSetting) -> float:
    """Return 2/n, by which the mean of rows of norm 1 may move."""
    return 2 / min(s.D, 1000)


def _preprocessed(case: Case[PrSetting]) -> Counterexample:
    """The mean gradient of a linear loss, of preprocessed rows."""
    s = case.setting
    first, second = (_cut(side).mean(axis=0) for side in _rows(s))
    words = f"{min(s.D, 1000)} rows of 1, the last of which is 1 or -1000 before preprocessing"
    return shift_event(first, second, noise_std=_claimed_move(s), datasets=words)


TUNING = claim(
    "PR-7",
    "hyper-parameters",
    "the total covers an algorithm whose U, K_p, R_P and R_T were tuned",
    "section V; footnote 1 admits it",
    AccessPromise(_tuned),
    attack=_best_candidate,
)
"""Unaccounted access: every candidate's accuracy on the records was looked at.

The paper: section V chooses U, K_p, R_P and R_T by accuracy at epsilon = 10; a footnote admits that
this costs privacy which is not counted. Evidence: the planned looks are releases without a
mechanism, and the best of several noisy models is an event that one record moves.
"""


THRESHOLD = claim(
    "PR-8",
    "threshold test",
    "the sum over t of |x̃_i^t - x̃_j^t| > U is judged on released values only",
    "Algorithm 1, lines 8 to 12",
    MessagesOnlyPromise(_thresholded, pair=two_each),
    attack=_thresholded_rounds,
)
"""Holds: the test compares messages, which are public already.

The paper: Algorithm 1, lines 8 to 12. Evidence: a replay on other data, in a run where the test is
often met.
"""


PREPROCESSING = claim(
    "PR-10",
    "preprocessing",
    "rows are cut to |y_n| <= 1 and missing values handled record by record",
    "section V, data preprocessing",
    RecordwisePromise(_cut, rows=_rows, claimed=_claimed_move),
    attack=_preprocessed,
)
"""Holds: a row is cut by itself, so that a mean moves by at most 2/n.

The paper: section V, "data preprocessing". Evidence: two data sets that differ in the last row,
before and after: no other row moves.
"""
