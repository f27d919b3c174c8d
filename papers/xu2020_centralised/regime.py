"""DPA-4, DPA-5, DPA-6 and DPA-9: what the theorems ask for, and what is taken for public.

Two conditions of the convergence theorems that section V's settings do not meet, and two settings
that are functions of the records: the graph, which a sparse inverse covariance of the features
gives, and the step size, which is chosen by results.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.claim import Case, Counterexample, ThreatModel
from ...audits.claims.structure import AccessPromise, PublicPromise, RegimePromise
from ...audits.claims.tuning import Candidate, best_fit, looked_at
from ...mechanisms.curators import SamplingCurator
from ...mechanisms.events import Event
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ...solvers.centralised import learned_fused_lasso
from ...solvers.planning import plan
from .setting import DESIGN, CentralisedSetting, algorithm_of, claim, four_records, theorem_1
from .small_data import CORRELATED, records_of


def _rank_missing(_: CentralisedSetting) -> str | None:
    """Return how A = [W; I] misses Assumption 2, or None."""
    rows, rank = len(DESIGN.a), int(np.linalg.matrix_rank(DESIGN.a))
    if rank == rows:
        return None
    return f"A = [W; I] has {rows} rows and rank {rank}: Assumption 2 asks for full row rank"


def _dual_figures(_: CentralisedSetting) -> Mapping[str, Enclosure]:
    """Return the dual variable of Lemma 4 for a gradient (2, 0)."""
    dual = np.linalg.pinv(DESIGN.a.T) @ np.array([2.0, 0.0])
    return {f"dual of Lemma 4 [{j}]": Enclosure.of(float(v)) for j, v in enumerate(dual)}


def _selected(s: CentralisedSetting, rows: FloatArray) -> str:
    """The size of y_T, if A = [W; I] is learned from the records as published."""
    dataset = records_of(rows, np.ones(len(rows)))
    curator = SamplingCurator(EventList(), SimulationSampler(0))
    learned = learned_fused_lasso(dataset, curator, penalty=s.alpha, noise_multiplier=None)
    return f"y_T has {len(learned.a)} coordinates"


def _gamma_too_small(s: CentralisedSetting) -> str | None:
    """Return how gamma misses the condition for convergence, or None."""
    least = s.eta * s.rho * DESIGN.norm_squared + 1
    if s.gamma >= least:
        return None
    return f"gamma = {s.gamma:g} is below eta rho |AᵀA| + 1 = {least:.6g}"


def _candidates(s: CentralisedSetting) -> dict[str, Candidate]:
    """The algorithm with eta, half of it and twice as much."""

    def at(step_size: float) -> Candidate:
        algorithm = replace(algorithm_of(s, theorem_1(s)), step_size=step_size)
        return lambda dataset, curator: algorithm.solve(dataset, curator).x

    return {f"eta = {factor * s.eta:g}": at(factor * s.eta) for factor in (0.5, 1.0, 2.0)}


def _tuned(s: CentralisedSetting) -> tuple[Event, ...]:
    """Section V-B's procedure: run with several step sizes, look at the fit, keep the best."""
    reason = "eta and T are chosen for each data set by results on it (section V-B)"
    return plan(looked_at(_candidates(s), reason=reason, round=s.T + 1), s.shape, ideal=True)


def _best_candidate(case: Case[CentralisedSetting]) -> Counterexample | None:
    """A few rounds, where a single record of four has a gradient."""
    s = replace(case.at(T=5).setting, zero_out=False)
    words = f"with T = {s.T} and epsilon = {s.epsilon:g} each"
    return best_fit(_candidates(s), four_records(s), models=words, epsilon=s.epsilon, delta=s.delta)


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
"""Outside its regime: the fused lasso's A = [W; I] has more rows than columns.

The paper: Assumption 2 and Lemma 4, against section V-A's own A. For a gradient (2, 0) Lemma 4's
dual variable leaves the box that the l1 norm allows, as the figures show.
"""

GRAPH = claim(
    "DPA-5",
    "the graph",
    "A = [W; I] is public, W from sparse inverse covariance selection",
    "section V-A",
    PublicPromise(_selected, rows=lambda _: CORRELATED),
)
"""Unaccounted access: the number of edges, and so the size of y_T, shows the records.

The paper: section V-A takes W from sparse inverse covariance selection. Evidence: two data sets
that differ in one record, with one edge and with none: y_T has another length, which needs no run
to be told apart.
"""

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
"""Outside its regime: gamma = 1 is below what section III asks for.

The paper: section III asks for gamma >= eta rho |AᵀA| + 1, section V-B sets 1, whatever eta > 0.
"""

TUNING = claim(
    "DPA-9",
    "hyper-parameters",
    "Theorem 1 covers an algorithm whose eta and T differ among data sets",
    "section V-B",
    AccessPromise(_tuned),
    attack=_best_candidate,
)
"""Unaccounted access: several runs were looked at, and one was kept.

The paper: section V-B, eta and T "differ among datasets". Evidence: the planned looks have no
mechanism.
"""
