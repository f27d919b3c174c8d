"""PR-7, PR-8 and PR-10: tuning, the threshold test and preprocessing."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ....mechanisms.curators import Curator
from ....mechanisms.events import Event
from ....mechanisms.private_data import PrivateDataset
from ....mechanisms.protocols import FloatArray
from ....solvers.decentralised import PublishedPrAdmm
from ....solvers.losses import LinearLoss
from ....solvers.schedules import PeriodicDecay
from ..auditor import planned
from ..structure import AccessPromise, MessagesOnlyPromise, RecordwisePromise
from .setting import PrSetting, algorithm_of, claim, first_noise, two_each

__all__ = ["PREPROCESSING", "THRESHOLD", "TUNING"]


def _tuned(s: PrSetting) -> list[Event]:
    """Section V's procedure: run for every candidate, look at the model's fit, keep the best."""

    def solve(dataset: PrivateDataset, curator: Curator) -> None:
        for rate in sorted({0.9, s.R_P, 0.95}):
            candidate = PeriodicDecay(rate, s.K_p)
            algorithm = replace(algorithm_of(s, first_noise(s)), schedule=candidate)
            state = PublishedPrAdmm(algorithm).solve(dataset, curator)
            curator.release_unprotected(
                dataset.mean_gradient(LinearLoss(), state.model),
                reason="U, K_p, R_P and R_T are chosen by accuracy on the records (section V)",
                round=s.K + 1,
                release=f"fit with R_P = {rate:g}",
            )

    return planned(solve, s.shape())


def _thresholded(s: PrSetting) -> Callable[[PrivateDataset, Curator], object]:
    few = replace(s, K=min(s.K, 5), K_p=1, D=2)
    return algorithm_of(few, 1.0, threshold=few.V / few.eta).solve


def _cut(rows: FloatArray) -> FloatArray:
    """Set missing entries to 0 and cut every row to norm 1."""
    present = np.nan_to_num(rows, nan=0.0)
    return np.asarray(present / np.maximum(1.0, np.linalg.norm(present, axis=1, keepdims=True)))


def _rows(s: PrSetting) -> tuple[FloatArray, FloatArray]:
    rows = np.ones((min(s.D, 1000), 1))
    return rows, np.vstack([rows[:-1], [[-1000.0]]])


def _mean_gradient_moves(first: FloatArray, second: FloatArray) -> float:
    return float(np.linalg.norm((first - second).mean(axis=0)) / 2)


TUNING = claim(
    "PR-7",
    "hyper-parameters",
    "the total covers an algorithm whose U, K_p, R_P and R_T were tuned",
    "section V; footnote 1 admits it",
    AccessPromise(_tuned),
)


THRESHOLD = claim(
    "PR-8",
    "threshold test",
    "the sum over t of |x̃_i^t - x̃_j^t| > U is judged on released values only",
    "Algorithm 1, lines 8 to 12",
    MessagesOnlyPromise(_thresholded, pair=two_each),
)


PREPROCESSING = claim(
    "PR-10",
    "preprocessing",
    "rows are cut to |y_n| <= 1 and missing values handled record by record",
    "section V, data preprocessing",
    RecordwisePromise(
        _cut,
        rows=_rows,
        claimed=lambda s: 2 / min(s.D, 1000),
        moved=_mean_gradient_moves,
    ),
)
