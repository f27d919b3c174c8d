"""The claims of centralised DP-ADMM and DP-AccADMM (Xu, Shang, Liu et al. 2020)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import log, sqrt

import numpy as np
from scipy.stats import beta

from ...accounting.conversions import epsilon_from_rdp_mironov
from ...accounting.enclosure import Enclosure, ball_of, precision
from ...accounting.gaussian import delta_from_epsilon, mu_from_epsilon_delta
from ...accounting.guarantee import Guarantee, guarantee
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator, SamplingCurator
from ...mechanisms.errors import (
    InvalidParameter,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.private_data import DataShape, PrivateDataset
from ...mechanisms.protocols import EventList, FloatArray, Loss
from ...mechanisms.sampling import SeededSampler
from ...solvers.centralised import (
    CentralisedDpAdmm,
    PublishedCentralisedDpAdmm,
    SplitState,
    learned_fused_lasso,
    theorem_1_noise_multiplier,
)
from ...solvers.fused_lasso import fused_lasso
from ...solvers.losses import LinearLoss, Logistic
from ..neighbours import NeighbourPair, opposite_gradients, zero_out
from .attack import Attack, promised_by_mu
from .auditor import EpsilonPromise, SensitivityPromise, gaussian_steps, planned
from .claim import Case, Claim, Counterexample, Paper, ThreatModel
from .gaussian_event import likelihood_event
from .structure import AccessPromise, PublicPromise, RegimePromise
from .sweep import Sweep

__all__ = ["PAPER", "CentralisedSetting", "split_statistic"]

_BITS = 128
_FEATURES = 2
_ROW_BOUND = 2.0
_TRIALS = 1000
_FEW = 3
_MISSED = 1e-3
_MOST = {"T": 2000, "n": 10**9, "ones": 10**6}
_CLOSE = 1e-9
_DESIGN = fused_lasso(_FEATURES, ((0, 1),))
# orthogonal to the range of A
_NORMAL = np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True, slots=True)
class CentralisedSetting:
    """The paper's parameters; by default those of its experiments on a9a (section V).

    Args:
        T: rounds.
        epsilon, delta: of the whole run.
        mu: the constant of Theorem 1.
        n: records.
        c: bound on ‖grad f_i‖.
        rho, gamma, eta: penalty, linearisation, step size.
        lambda1: weight of the l1 norm.
        ones: unit entries of a row as it comes (a9a: 14).
        alpha: threshold of the sparse inverse covariance selection.
        zero_out: whether neighbours replace a record by a null record, instead of by any other.
    """

    T: int = 100
    epsilon: float = 0.1
    delta: float = 1e-3
    mu: float = 0.5
    n: int = 32561
    c: float = 1.0
    rho: float = 1.0
    gamma: float = 1.0
    eta: float = 0.05
    lambda1: float = 1e-5
    ones: int = 14
    alpha: float = 0.05
    zero_out: bool = False

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            require_positive_int(name, value)
            if value > most:
                raise InvalidParameter(name, value, f"in [1, {most}]")
        require_open_unit("delta", self.delta)
        require_open_unit("mu", self.mu)
        for name in ("epsilon", "c", "rho", "gamma", "eta", "lambda1", "alpha"):
            require_positive(name, getattr(self, name))
            if not 1e-9 <= getattr(self, name) <= 1e9:
                raise InvalidParameter(name, getattr(self, name), "in [1e-9, 1e9]")

    @property
    def shape(self) -> DataShape:
        """What is public about the records, rows cut to c."""
        adjacency = Adjacency.ZERO_OUT_ONE if self.zero_out else Adjacency.REPLACE_ONE
        return DataShape(("curator",), self.n, _FEATURES, self.c, adjacency)


def _algorithm(
    s: CentralisedSetting, noise_multiplier: float, loss: Loss | None = None
) -> CentralisedDpAdmm:
    return CentralisedDpAdmm(
        _DESIGN,
        s.T,
        noise_multiplier,
        step_size=s.eta,
        penalty=s.rho,
        gamma=s.gamma,
        regularisation=s.lambda1,
        loss=LinearLoss() if loss is None else loss,
    )


def _theorem_1(s: CentralisedSetting) -> float:
    """sigma over c/n."""
    return theorem_1_noise_multiplier(s.T, epsilon=s.epsilon, delta=s.delta, mu=s.mu)


def _published(s: CentralisedSetting) -> list[Event]:
    return planned(PublishedCentralisedDpAdmm(_algorithm(s, _theorem_1(s))).solve, s.shape)


def _gradients(s: CentralisedSetting) -> list[Event]:
    """The noisy gradients alone, of the algorithm as published."""
    return [event for event in _published(s) if isinstance(event.mechanism, GaussianStep)]


def _null(s: CentralisedSetting) -> CentralisedSetting:
    return replace(s, zero_out=True)


def _at_epsilon(zero_out: bool, s: CentralisedSetting, epsilon: float) -> CentralisedSetting:
    return replace(s, epsilon=epsilon, zero_out=zero_out)


def _guarantee(s: CentralisedSetting) -> Guarantee:
    return guarantee(_gradients(s), delta=s.delta)


def _stated(s: CentralisedSetting) -> Enclosure:
    return Enclosure.of(s.epsilon)


def _order(s: CentralisedSetting) -> float:
    """alpha of Theorem 1."""
    return -log(s.delta) / ((1 - s.mu) * s.epsilon) + 1


def _sensitivity_figures(s: CentralisedSetting) -> dict[str, Enclosure]:
    return {
        "exact epsilon, replace-one": _guarantee(replace(s, zero_out=False)).epsilon,
        "exact epsilon, zero-out-one": _guarantee(_null(s)).epsilon,
    }


def _sensitivity_argument(s: CentralisedSetting) -> tuple[str, ...]:
    f = {name: value.upper_float for name, value in _sensitivity_figures(s).items()}
    return (
        "The paper's neighbours differ in one element of D^n: a record is replaced, and the mean "
        f"of n = {s.n} gradients of norm at most c = {s.c:g} moves by as much as 2c/n = "
        f"{2 * s.c / s.n:.6g}: one gradient can turn round. c/n is right if a record is made null.",
        f"Theorem 1's noise gives, at delta = {s.delta:g}, exactly epsilon = "
        f"{f['exact epsilon, replace-one']:.6g} under replace-one and "
        f"{f['exact epsilon, zero-out-one']:.6g} under zero-out-one, where {s.epsilon:g} is "
        "claimed: the slack of its conversion may hide the factor 2.",
    )


def _opposite_gradients(s: CentralisedSetting) -> Counterexample:
    """One noisy gradient with noise c/n, which would be 1-GDP if c/n were the sensitivity."""
    pair = _four_records(replace(s, zero_out=False))
    solve = _half_noise(s).solve
    mu = guarantee(planned(solve, pair.dataset.shape), delta=s.delta).mu
    allowed = delta_from_epsilon(mu_squared=1, epsilon=1).upper_float
    return likelihood_event(solve, pair, mu=mu, epsilon=Enclosure.of(1), delta=allowed)


def _half_noise(s: CentralisedSetting) -> CentralisedDpAdmm:
    """One noisy gradient with noise c/n, half of its sensitivity."""
    return _algorithm(replace(s, T=1, gamma=1.0), 0.5)


def _four_records(s: CentralisedSetting) -> NeighbourPair:
    """Four records, the last of which points either way, or is made null."""
    rows = np.zeros((4, _FEATURES))
    rows[3, 0] = s.c
    dataset = PrivateDataset(
        rows,
        np.ones(4),
        adjacency=s.shape.adjacency,
        row_bound=s.c,
        parties=s.shape.parties,
    )
    turned = zero_out if s.zero_out else opposite_gradients
    return turned(dataset, index=3, loss=LinearLoss())


def _turned_gradient(case: Case[CentralisedSetting]) -> Attack:
    s = replace(case.setting, zero_out=False)
    return Attack(
        _half_noise(s).solve,
        _four_records(s),
        promised_by_mu(1, s.delta),
        s.delta,
        "one noisy gradient with noise of standard deviation c/n, which would make it 1-GDP",
    )


def _gradients_of(algorithm: CentralisedDpAdmm, s: CentralisedSetting, epsilon: float) -> Attack:
    return Attack(
        algorithm.solve,
        _four_records(s),
        epsilon,
        s.delta,
        f"T = {s.T} noisy gradients of four records, epsilon = {s.epsilon:g}",
    )


def _noisy_gradients(case: Case[CentralisedSetting]) -> Attack:
    s = _null(case.setting)
    return _gradients_of(_algorithm(s, _theorem_1(s)), s, s.epsilon)


def _converted_gradients(case: Case[CentralisedSetting]) -> Attack:
    s = _null(case.setting)
    return _gradients_of(_algorithm(s, _theorem_1(s)), s, _by_orders(s).upper_float)


def _accelerated_gradients(case: Case[CentralisedSetting]) -> Attack:
    s = _null(case.setting)
    algorithm = replace(_algorithm(s, _theorem_1(s)), accelerated=True)
    return _gradients_of(algorithm, s, s.epsilon)


def _repaired_gradients(case: Case[CentralisedSetting]) -> Attack:
    s = case.setting
    return _gradients_of(_algorithm(s, _repaired_multiplier(s)), s, s.epsilon)


def _noise_figures(s: CentralisedSetting) -> dict[str, Enclosure]:
    truth = _guarantee(_null(s))
    a = -log(s.delta) / s.epsilon
    # the root in (0, 1) of a (2 mu - 1) = (1 - mu)², where alpha/mu is least
    best = (1 + a) / (1 + a + sqrt(a * (1 + a)))
    optimal = theorem_1_noise_multiplier(s.T, epsilon=s.epsilon, delta=s.delta, mu=best)
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(_BITS):
        noise = ball_of(_theorem_1(s))
        against_exact = Enclosure.from_ball(noise * ball_of(mu) / ball_of(s.T).sqrt())
    return {
        "alpha": Enclosure.of(_order(s)),
        "rho": truth.rho,
        "exact epsilon": truth.epsilon,
        "noise ratio, against the best mu": Enclosure.of(_theorem_1(s) / optimal),
        "noise ratio, against the exact Gaussian": against_exact,
    }


def _by_orders(s: CentralisedSetting) -> Enclosure:
    """beta + ln(1/delta)/(alpha - 1), with beta = alpha rho of the gradients."""
    order = Fraction(_order(s))
    with precision(_BITS):
        rdp = Enclosure.from_ball(ball_of(_guarantee(_null(s)).rho) * ball_of(order))
    return epsilon_from_rdp_mironov(order=order, rdp=rdp, delta=s.delta)


def _ran(
    s: CentralisedSetting, rows: FloatArray, labels: FloatArray, *, trials: int, seed: int
) -> SplitState:
    """The published algorithm's output on logistic loss, `trials` times, with unit noise."""
    curator = SamplingCurator(EventList(), SeededSampler(seed), trials=trials)
    return _unit_noise(s, len(rows)).solve(_records(rows, labels), curator)


def _records(rows: FloatArray, labels: FloatArray) -> PrivateDataset:
    # a row bound above 1 leaves rows of norm 1 as they are
    return PrivateDataset(
        rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=_ROW_BOUND,
        parties=("curator",),
    )


def _unit_noise(s: CentralisedSetting, records: int) -> PublishedCentralisedDpAdmm:
    """The published algorithm with noise of standard deviation 1 on every gradient."""
    return PublishedCentralisedDpAdmm(_algorithm(s, records / _ROW_BOUND, Logistic()))


def _raw_dual(s: CentralisedSetting, side: int) -> FloatArray:
    """u_0 of the pair whose last row turns."""
    rows, labels = _TURNED[side]
    curator = SamplingCurator(EventList(), SeededSampler(0))
    return _unit_noise(s, len(rows)).initial_dual(_records(rows, labels), curator, _DESIGN)


def split_statistic(y: FloatArray, weight: float) -> FloatArray:
    """Return nu·(y + weight sign(y)), nu orthogonal to the range of A, for y of shape (..., 3).

    Where y_T has no zero coordinate it is nu·k_{T-1}, k = clip(z, ±weight), and k_1 is a function
    of the raw gradient: weight is lambda/rho.
    """
    return np.asarray((y + weight * np.sign(y)) @ _NORMAL)


_FLIPPED_ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.6, 0.8]])
_FLIPPED = ((_FLIPPED_ROWS, np.ones(4)), (_FLIPPED_ROWS, np.array([1.0, 1.0, 1.0, -1.0])))
_TURNED = tuple(
    (np.array([[1.0, 0.0], [0.0, 1.0], last]), np.ones(3)) for last in ([1.0, 0.0], [0.0, 1.0])
)


def _observed(s: CentralisedSetting, side: int, *, trials: int, seed: int) -> FloatArray:
    """What the event is about, in every trial: y_1 for T = 1, nu·k_1 for T = 2."""
    rows, labels = (_FLIPPED if s.T == 1 else _TURNED)[side]
    y = _ran(s, rows, labels, trials=trials, seed=seed).y
    y = np.broadcast_to(y, (trials, y.shape[-1]))
    return y if s.T == 1 else split_statistic(y, s.lambda1 / s.rho)[:, None]


def _expected(s: CentralisedSetting, side: int) -> FloatArray:
    """What the raw start makes of `_observed`: y_1 always, nu·k_1 unless y_2 has a zero."""
    if s.T == 1:
        return np.asarray(_observed(s, side, trials=1, seed=1)[0])
    return np.array([float(_first_clip(s, side) @ _NORMAL)])


def _first_clip(s: CentralisedSetting, side: int) -> FloatArray:
    """k_1 of the pair whose last row turns."""
    weight = s.lambda1 / s.rho
    return np.asarray(np.clip(_raw_dual(s, side), -weight, weight))


def _raw_start(s: CentralisedSetting, _: Enclosure) -> Counterexample | None:
    """The output y_T for T = 1, 2 or 3, which shows the raw gradient in u_0."""
    few = replace(s, T=s.T if s.T <= _FEW else 2, gamma=1.0)
    first, second = (_expected(few, side) for side in (0, 1))
    if np.abs(first - second).max() <= 2 * _CLOSE:
        return None

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        seen = [_observed(few, side, trials=trials, seed=seed + side) for side in (0, 1)]
        rates = [float(np.mean(np.abs(found - first).max(axis=1) <= _CLOSE)) for found in seen]
        return rates[0], rates[1]

    if few.T == 1:
        return Counterexample(
            "rows (1,0), (0,1), (0,1), (.6,.8), labels 1; the last label 1 or -1; A = [1,-1; I], "
            f"x_0 = 0, T = 1, lambda = {s.lambda1:g}, rho = {s.rho:g}",
            f"y_1 = {np.round(first, 10).tolist()}; under the other data set it is "
            f"{np.round(second, 10).tolist()}",
            Enclosure.of(1),
            Enclosure.of(0),
            rerun,
        )
    # with T = 3 the event is rare: only where the second step does not saturate
    trials = _TRIALS if few.T == 2 else 20 * _TRIALS
    seen = round(rerun(trials, 1)[0] * trials)
    if seen == 0:
        return None
    least = float(beta.ppf(_MISSED, seen, trials - seen + 1))
    return Counterexample(
        "rows (1,0), (0,1) and (1,0) or (0,1), labels 1; A = [1,-1; I], x_0 = 0, "
        f"T = {few.T}, lambda = {s.lambda1:g}, rho = {s.rho:g}, noise of standard deviation 1",
        f"nu·(y_T + (lambda/rho) sign y_T) = {float(first[0]):.10g}, nu = (1,-1,1), impossible "
        f"under the other (first probability: Clopper-Pearson, {1 - _MISSED:.1%}, {trials} runs)",
        Enclosure.hull(Enclosure.of(least), Enclosure.of(1)),
        Enclosure.of(0),
        rerun,
    )


def _start_figures(s: CentralisedSetting) -> dict[str, Enclosure]:
    few = replace(s, gamma=1.0)
    y = [_observed(replace(few, T=1), side, trials=1, seed=1)[0] for side in (0, 1)]
    duals = [_raw_dual(few, side) for side in (0, 1)]
    clipped = [_first_clip(few, side) for side in (0, 1)]
    later = s.rho * _DESIGN.a.T @ (clipped[0] - clipped[1])
    # Aᵀ (Aᵀ)⁺ = I gives the gradients back
    gradients = -s.rho * _DESIGN.a.T @ (duals[0] - duals[1])
    values = {
        **{f"y_1[{j}], data set {i + 1}": y[i][j] for i in (0, 1) for j in range(3)},
        **{f"nu·k_1, data set {i + 1}": clipped[i] @ _NORMAL for i in (0, 1)},
        "first-step shift": np.linalg.norm(gradients + later),
        "rho |Aᵀ(k_1 - k_1')|": np.linalg.norm(later),
        "cond(A)": np.linalg.cond(_DESIGN.a),
    }
    return {name: Enclosure.of(float(value)) for name, value in values.items()}


def _start_argument(s: CentralisedSetting) -> tuple[str, ...]:
    return (
        "u_0 = -(1/rho) (Aᵀ)⁺ grad f(x_0) is made of the raw gradient, and "
        f"y_1 = soft(A x_0 + u_0, lambda/rho), lambda/rho = {s.lambda1 / s.rho:g}, is a function "
        "of it without noise: with T = 1 it is published, and tells neighbours apart with "
        "probability 1.",
        "Later it stays visible: k_1 = clip(A x_0 + u_0, ±lambda/rho) is carried along in u_1, and "
        "since A has more rows than columns, a direction nu orthogonal to its range shows nu·k_1 "
        "in y_2 exactly, unless a coordinate of y_2 is zero.",
        "Repair: u_0 = 0, or u_0 from a noisy gradient.",
    )


def _rank_missing(_: CentralisedSetting) -> str | None:
    rows, rank = len(_DESIGN.a), int(np.linalg.matrix_rank(_DESIGN.a))
    if rank == rows:
        return None
    return f"A = [W; I] has {rows} rows and rank {rank}: Assumption 2 asks for full row rank"


def _dual_figures(_: CentralisedSetting) -> Mapping[str, Enclosure]:
    dual = np.linalg.pinv(_DESIGN.a.T) @ np.array([2.0, 0.0])
    return {f"dual of Lemma 4 [{j}]": Enclosure.of(float(v)) for j, v in enumerate(dual)}


def _selected(s: CentralisedSetting, rows: FloatArray) -> str:
    """The size of y_T, if A = [W; I] is learned from the records as published."""
    dataset = _records(rows, np.ones(len(rows)))
    curator = SamplingCurator(EventList(), SeededSampler(0))
    learned = learned_fused_lasso(dataset, curator, penalty=s.alpha, noise_multiplier=None)
    return f"y_T has {len(learned.a)} coordinates"


def _correlated(_: CentralisedSetting) -> tuple[FloatArray, FloatArray]:
    return _FLIPPED_ROWS, np.vstack([_FLIPPED_ROWS[:-1], [[0.6, 0.0]]])


def _gamma_too_small(s: CentralisedSetting) -> str | None:
    least = s.eta * s.rho * _DESIGN.norm_squared + 1
    if s.gamma >= least:
        return None
    return f"gamma = {s.gamma:g} is below eta rho |AᵀA| + 1 = {least:.6g}"


def _accelerated(s: CentralisedSetting) -> list[Event]:
    algorithm = replace(_algorithm(s, _theorem_1(s)), accelerated=True)
    return planned(algorithm.solve, _null(s).shape)


def _tuned(s: CentralisedSetting) -> list[Event]:
    """Section V-B's procedure: run with several step sizes, look at the fit, keep the best."""

    def solve(dataset: PrivateDataset, curator: Curator) -> None:
        for factor in (0.5, 1.0, 2.0):
            tried = replace(_algorithm(s, _theorem_1(s)), step_size=factor * s.eta)
            state = tried.solve(dataset, curator)
            curator.release_unprotected(
                dataset.mean_gradient(LinearLoss(), state.x),
                reason="eta and T are chosen for each data set by results on it (section V-B)",
                round=s.T + 1,
                release=f"fit with eta = {factor * s.eta:g}",
            )

    return planned(solve, s.shape)


def _raw_rows(s: CentralisedSetting) -> list[Event]:
    """The noisy gradients on rows as they come, with the noise of Theorem 1 for c."""
    (bound, *_) = gaussian_steps(_gradients(s))
    raw = replace(s.shape, row_bound=max(s.c, sqrt(s.ones)))
    events = planned(_algorithm(s, 1.0).solve, raw)
    return [
        replace(event, mechanism=GaussianStep(step.sensitivity, bound.noise_std))
        for event, step in zip(events, gaussian_steps(events), strict=True)
    ]


def _raw_figures(s: CentralisedSetting) -> dict[str, Enclosure]:
    return {
        "c of rows as they come": Enclosure.of(sqrt(s.ones)),
        "exact epsilon": guarantee(_raw_rows(s), delta=s.delta).epsilon,
    }


def _mean_of_c(s: CentralisedSetting) -> list[Fraction]:
    factor = 1 if s.zero_out else 2
    return [factor * Fraction(s.c) / s.n] * s.T


def _repaired_multiplier(s: CentralisedSetting) -> float:
    """sqrt(T)/mu for the whole run's (epsilon, delta), rounded up."""
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(s.T).sqrt() / ball_of(mu)).upper_float


def _repaired(s: CentralisedSetting) -> list[Event]:
    return planned(_algorithm(s, _repaired_multiplier(s)).solve, s.shape)


def _repaired_figures(s: CentralisedSetting) -> dict[str, Enclosure]:
    (step, *_) = gaussian_steps(_repaired(s))
    with precision(_BITS):
        noise = ball_of(step.noise_std) * s.n / ball_of(s.c) / ball_of(s.T).sqrt()
        return {"sigma n/(c sqrt(T))": Enclosure.from_ball(noise)}


_claim = partial(
    Claim,
    solver="DP-ADMM (Algorithm 2)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.OUTPUT,
)


PAPER = Paper(
    name="dp-admm",
    title="Xu, Shang, Liu et al. 2020: centralised DP-ADMM and DP-AccADMM",
    setting=CentralisedSetting(),
    claims=(
        _claim(
            "DPA-1",
            "sensitivity of the mean gradient",
            "the sensitivity of grad f is c/n, c = max_i |grad f_i(x)|",
            "Appendix A, proof of Theorem 1",
            SensitivityPromise(
                lambda s: [Fraction(s.c) / s.n] * s.T,
                plan=_gradients,
                counterexample=_opposite_gradients,
                figures=_sensitivity_figures,
                argument=_sensitivity_argument,
            ),
            attack=_turned_gradient,
        ),
        _claim(
            "DPA-2",
            "the noisy gradients",
            "with sigma² = c² alpha T/(2 n² epsilon mu), alpha = ln(1/delta)/((1-mu) epsilon) + 1 "
            "the T noisy gradients are (epsilon, delta)-DP if records are made null",
            "Theorem 1",
            EpsilonPromise(
                _stated,
                delta=lambda s: s.delta,
                plan=lambda s: _gradients(_null(s)),
                figures=_noise_figures,
            ),
            adjacency=Adjacency.ZERO_OUT_ONE,
            attack=_noisy_gradients,
        ),
        _claim(
            "DPA-3",
            "the initial dual variable",
            "Theorem 1 covers (x_T, y_T) of the algorithm, with u_0 = -(1/rho) (Aᵀ)⁺ grad f(x_0)",
            "Algorithms 2 and 3, Theorem 1",
            EpsilonPromise(
                _stated,
                delta=lambda s: s.delta,
                plan=_published,
                counterexample=_raw_start,
                figures=_start_figures,
                argument=_start_argument,
            ),
        ),
        _claim(
            "DPA-4",
            "full row rank",
            "A has full row rank, so u_* = -(1/rho) (Aᵀ)⁺ grad f(x_*)",
            "Assumption 2, Lemma 4; A = [W; I] in section V-A",
            RegimePromise(_rank_missing, figures=_dual_figures),
            adjacency=None,
            threat_model=ThreatModel.NONE,
        ),
        _claim(
            "DPA-5",
            "the graph",
            "A = [W; I] is public, W from sparse inverse covariance selection",
            "section V-A",
            PublicPromise(_selected, rows=_correlated),
        ),
        _claim(
            "DPA-6",
            "the linearisation",
            "the theorems apply with gamma = 1",
            "section V-B; gamma >= eta rho |AᵀA| + 1 in section III",
            RegimePromise(_gamma_too_small),
            adjacency=None,
            threat_model=ThreatModel.NONE,
        ),
        _claim(
            "DPA-7",
            "conversion",
            "(alpha, beta)-RDP gives epsilon = beta + ln(1/delta)/(alpha - 1)",
            "Appendix A",
            EpsilonPromise(
                _by_orders,
                delta=lambda s: s.delta,
                plan=lambda s: _gradients(_null(s)),
                figures=_noise_figures,
            ),
            adjacency=Adjacency.ZERO_OUT_ONE,
            attack=_converted_gradients,
        ),
        _claim(
            "DPA-8",
            "acceleration costs nothing",
            "DP-AccADMM's noisy gradients need the same noise (u_0 apart: DPA-3)",
            "section IV-C",
            EpsilonPromise(_stated, delta=lambda s: s.delta, plan=_accelerated),
            solver="DP-AccADMM (Algorithm 3)",
            adjacency=Adjacency.ZERO_OUT_ONE,
            attack=_accelerated_gradients,
        ),
        _claim(
            "DPA-9",
            "hyper-parameters",
            "Theorem 1 covers an algorithm whose eta and T differ among data sets",
            "section V-B",
            AccessPromise(_tuned),
        ),
        _claim(
            "DPA-10",
            "the bound on gradients",
            "gradients have norm at most c, so that their mean moves by at most 2c/n",
            "Appendix A",
            SensitivityPromise(
                _mean_of_c,
                plan=_raw_rows,
                enforced=("true of rows cut to c only, and the algorithm cuts none", _gradients),
                figures=_raw_figures,
            ),
        ),
        _claim(
            "DPA-R",
            "the repair",
            "u_0 = 0, a public A, rows cut to c, noise of sqrt(T)/mu*(epsilon, delta) "
            "sensitivities: the whole run is (epsilon, delta)-DP",
            "ours",
            EpsilonPromise(
                _stated, delta=lambda s: s.delta, plan=_repaired, figures=_repaired_figures
            ),
            solver="DP-ADMM, repaired",
            attack=_repaired_gradients,
        ),
    ),
    sweeps=tuple(
        Sweep(
            claim,
            f"claimed epsilon, {relation}",
            (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0),
            at=partial(_at_epsilon, null),
            claimed=_stated,
            certified=lambda s: _guarantee(s).epsilon,
            caption=f"Theorem 1's noise on the gradients alone, {relation}.",
        )
        for claim, relation, null in (
            ("DPA-1", "a record is replaced", False),
            ("DPA-2", "a record is made null", True),
        )
    ),
)
