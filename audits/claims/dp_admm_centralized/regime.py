"""DPA-4, DPA-5, DPA-6 and DPA-9: what the theorems ask for, and what is taken for public."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ....accounting.enclosure import Enclosure
from ....mechanisms.curators import Curator, SamplingCurator
from ....mechanisms.events import Event
from ....mechanisms.private_data import PrivateDataset
from ....mechanisms.protocols import EventList, FloatArray
from ....mechanisms.sampling import SeededSampler
from ....solvers.centralised import learned_fused_lasso
from ....solvers.losses import LinearLoss
from ..auditor import planned
from ..claim import ThreatModel
from ..structure import AccessPromise, PublicPromise, RegimePromise
from .setting import DESIGN, CentralisedSetting, algorithm_of, claim, theorem_1
from .small_data import CORRELATED, records_of

__all__ = ["GRAPH", "LINEARISATION", "RANK", "TUNING"]


def _rank_missing(_: CentralisedSetting) -> str | None:
    rows, rank = len(DESIGN.a), int(np.linalg.matrix_rank(DESIGN.a))
    if rank == rows:
        return None
    return f"A = [W; I] has {rows} rows and rank {rank}: Assumption 2 asks for full row rank"


def _dual_figures(_: CentralisedSetting) -> Mapping[str, Enclosure]:
    dual = np.linalg.pinv(DESIGN.a.T) @ np.array([2.0, 0.0])
    return {f"dual of Lemma 4 [{j}]": Enclosure.of(float(v)) for j, v in enumerate(dual)}


def _selected(s: CentralisedSetting, rows: FloatArray) -> str:
    """The size of y_T, if A = [W; I] is learned from the records as published."""
    dataset = records_of(rows, np.ones(len(rows)))
    curator = SamplingCurator(EventList(), SeededSampler(0))
    learned = learned_fused_lasso(dataset, curator, penalty=s.alpha, noise_multiplier=None)
    return f"y_T has {len(learned.a)} coordinates"


def _gamma_too_small(s: CentralisedSetting) -> str | None:
    least = s.eta * s.rho * DESIGN.norm_squared + 1
    if s.gamma >= least:
        return None
    return f"gamma = {s.gamma:g} is below eta rho |AᵀA| + 1 = {least:.6g}"


def _tuned(s: CentralisedSetting) -> list[Event]:
    """Section V-B's procedure: run with several step sizes, look at the fit, keep the best."""

    def solve(dataset: PrivateDataset, curator: Curator) -> None:
        for factor in (0.5, 1.0, 2.0):
            tried = replace(algorithm_of(s, theorem_1(s)), step_size=factor * s.eta)
            state = tried.solve(dataset, curator)
            curator.release_unprotected(
                dataset.mean_gradient(LinearLoss(), state.x),
                reason="eta and T are chosen for each data set by results on it (section V-B)",
                round=s.T + 1,
                release=f"fit with eta = {factor * s.eta:g}",
            )

    return planned(solve, s.shape)


RANK = claim(
    "DPA-4",
    "full row rank",
    "A has full row rank, so u_* = -(1/rho) (Aᵀ)⁺ grad f(x_*)",
    "Assumption 2, Lemma 4; A = [W; I] in section V-A",
    RegimePromise(_rank_missing, figures=_dual_figures),
    adjacency=None,
    threat_model=ThreatModel.NONE,
    not_attacked="it promises nothing about privacy: rank is a matter of convergence",
)

GRAPH = claim(
    "DPA-5",
    "the graph",
    "A = [W; I] is public, W from sparse inverse covariance selection",
    "section V-A",
    PublicPromise(_selected, rows=lambda _: CORRELATED),
)

LINEARISATION = claim(
    "DPA-6",
    "the linearisation",
    "the theorems apply with gamma = 1",
    "section V-B; gamma >= eta rho |AᵀA| + 1 in section III",
    RegimePromise(_gamma_too_small),
    adjacency=None,
    threat_model=ThreatModel.NONE,
    not_attacked="it promises nothing about privacy: gamma is a matter of convergence",
)

TUNING = claim(
    "DPA-9",
    "hyper-parameters",
    "Theorem 1 covers an algorithm whose eta and T differ among data sets",
    "section V-B",
    AccessPromise(_tuned),
)
