"""The claims of the star paper (Huang, Hu, Guo, Chan-Tin, Gong 2020, DP-ADMM)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from math import log, sqrt

import numpy as np

from ...accounting.conversions import classical_noise_multiplier, epsilon_from_moments
from ...accounting.enclosure import Enclosure, ball_of, precision
from ...accounting.gaussian import delta_from_epsilon, epsilon_from_delta, mu_from_epsilon_delta
from ...accounting.guarantee import guarantee
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ...mechanisms.events import Event, Repeated
from ...mechanisms.private_data import DataShape, PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sensitivity import float_up
from ...solvers.losses import LinearLoss
from ...solvers.star import DpAdmm, PublishedDpAdmm, PvpAdmm, StarState
from ...solvers.steps import NonsmoothSteps, SmoothSteps
from ..neighbours import NeighbourPair, opposite_gradients
from .attack import Attack, promised_by_mu
from .auditor import EpsilonPromise, Quantifier, SensitivityPromise, gaussian_steps, planned
from .claim import Case, Claim, Counterexample, Paper, ThreatModel
from .critical import critical_mu
from .gaussian_event import likelihood_event
from .structure import AccessPromise, MessagesOnlyPromise, ReadingsPromise, RecordwisePromise
from .sweep import Sweep

__all__ = ["PAPER", "StarSetting", "exact_total", "published_total"]

_BITS = 128
_PLANNED_ROUNDS = 128
_MOST_ROUNDS = 10**7
_LARGEST = 10**6
_MOST_ORDER = 1999


@dataclass(frozen=True, slots=True)
class StarSetting:
    """The paper's parameters; by default an experiment with the l2 regulariser (section VI).

    Args:
        t: rounds.
        epsilon, delta: of one round (Theorem 1).
        m: records of an agent.
        d: dimension.
        rho: penalty.
        c1: bound on ‖l'‖.
        lambda_over_n: weight of the regulariser.
        c_w: ‖w*‖, from pre-training (89 with l2, 23 with l1).
        smooth: whether steps are Theorem 4's (l2) or Theorem 3's (l1).
        tau: gradient norm to which Algorithm 2's minimiser is found; the paper has 0.
        outlier: the entry of a record that column-maximum normalisation meets.
    """

    t: int = 100
    epsilon: float = 0.05
    delta: float = 1e-3
    m: int = 400
    d: int = 104
    rho: float = 0.1
    c1: float = 1.0
    lambda_over_n: float = 1e-6
    c_w: float = 89.0
    smooth: bool = True
    tau: float = 0.0
    outlier: float = 1000.0

    def __post_init__(self) -> None:
        require_open_unit("delta", self.delta)
        for name, most in (("t", _MOST_ROUNDS), ("m", _LARGEST), ("d", _LARGEST // 10)):
            value = getattr(self, name)
            require_positive_int(name, value)
            if value > most:
                raise InvalidParameter(name, value, f"in [1, {most}]")
        for name in ("epsilon", "rho", "c1", "c_w", "outlier"):
            require_positive(name, getattr(self, name))
            if not 1e-9 <= getattr(self, name) <= 1e9:
                raise InvalidParameter(name, getattr(self, name), "in [1e-9, 1e9]")
        for name in ("lambda_over_n", "tau"):
            require_nonnegative(name, getattr(self, name))

    @property
    def shape(self) -> DataShape:
        """What is public about one agent's records."""
        return DataShape(("agent",), self.m, self.d, self.c1, Adjacency.REPLACE_ONE)


def _noise_multiplier(s: StarSetting) -> float:
    """Theorem 1's sigma over its sensitivity, sqrt(2 ln(1.25/delta))/epsilon, rounded up."""
    at_one = classical_noise_multiplier(epsilon=1, delta=s.delta).upper_float
    return float_up(Fraction(at_one) / Fraction(s.epsilon))


def _algorithm(s: StarSetting, rounds: int, *, noise_multiplier: float | None = None) -> DpAdmm:
    z = _noise_multiplier(s) if noise_multiplier is None else noise_multiplier
    weight = s.lambda_over_n
    steps = (
        SmoothSteps(0.25 + weight, s.c_w)
        if s.smooth
        else NonsmoothSteps(s.c1 + weight * sqrt(s.d), s.c_w)
    )
    return DpAdmm(rounds, z, steps, s.rho, weight, loss=LinearLoss())


def _events(s: StarSetting) -> list[Event]:
    """The planned events; the costliest of the first rounds, repeated, where there are many."""
    return _run(s, _noise_multiplier(s))


def _run(s: StarSetting, noise_multiplier: float) -> list[Event]:
    # all rounds have one noise multiplier, so their costs differ by rounding only
    first = _first_rounds(replace(s, t=_PLANNED_ROUNDS), noise_multiplier)
    if s.t <= _PLANNED_ROUNDS:
        return list(first[: s.t])
    steps = gaussian_steps(first)
    costs = [step.sensitivity.root / Fraction(step.noise_std) for step in steps]
    costliest = first[costs.index(max(costs))]
    return [Event(Repeated(costliest.mechanism, s.t), costliest.context)]


@lru_cache(maxsize=64)
def _first_rounds(s: StarSetting, noise_multiplier: float) -> tuple[Event, ...]:
    algorithm = _algorithm(s, s.t, noise_multiplier=noise_multiplier)
    return tuple(planned(algorithm.solve, s.shape))


def _one_round(s: StarSetting) -> list[Event]:
    return _events(replace(s, t=1))


def _pair(s: StarSetting) -> NeighbourPair:
    """Two data sets of m records in two dimensions: the last one points either way."""
    rows, labels = np.zeros((s.m, 2)), np.ones(s.m)
    dataset = PrivateDataset(
        rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=s.c1, parties=("agent",)
    )
    return opposite_gradients(dataset, index=s.m - 1, loss=LinearLoss())


def _likelihood(s: StarSetting, claimed: Enclosure) -> Counterexample:
    small = replace(s, d=2)
    mu = guarantee(_events(small), delta=s.delta).mu
    solve = _algorithm(small, s.t).solve
    return likelihood_event(solve, _pair(s), mu=mu, epsilon=claimed, delta=s.delta)


def _attack(s: StarSetting, algorithm: DpAdmm | PvpAdmm, epsilon: float, at: str) -> Attack:
    return Attack(algorithm.solve, _pair(s), epsilon, s.delta, at)


def _small(s: StarSetting) -> StarSetting:
    """Ten records in two dimensions: the noise follows the sensitivity, so epsilon is the same."""
    return replace(s, d=2, m=10)


def _step_attack(case: Case[StarSetting]) -> Attack:
    s = _small(case.setting)
    told = "one round with noise of Lemma 1's sensitivity, which would make it 1-GDP"
    algorithm = _algorithm(s, 1, noise_multiplier=1.0)
    return _attack(s, algorithm, promised_by_mu(1, s.delta), told)


def _round_attack(case: Case[StarSetting]) -> Attack:
    s = _small(case.at(epsilon=1.0).setting)
    told = f"one round, epsilon = {s.epsilon:g}"
    return _attack(s, _algorithm(s, 1), s.epsilon, told)


def _total_attack(case: Case[StarSetting]) -> Attack:
    """Many rounds at a large epsilon, where the formula is most wrong; an experiment's if fixed."""
    s = _small(case.at(epsilon=1.0, t=200).setting)
    told = f"t = {s.t} rounds, epsilon = {s.epsilon:g} a round"
    return _attack(s, _algorithm(s, s.t), published_total(s).lower_float, told)


def _experiment_attack(case: Case[StarSetting]) -> Attack:
    s = _small(case.setting)
    told = f"t = {s.t} rounds, epsilon = {s.epsilon:g} a round"
    return _attack(s, _algorithm(s, s.t), published_total(s).lower_float, told)


def _minimiser_attack(case: Case[StarSetting]) -> Attack:
    s = _small(case.setting)
    algorithm = PvpAdmm(
        1, 1.0, penalty=s.rho, regularisation=s.lambda_over_n, tolerance=1e-9, loss=LinearLoss()
    )
    told = "one round with noise of Lemma 4's sensitivity, which would make it 1-GDP"
    return _attack(s, algorithm, promised_by_mu(1, s.delta), told)


def _repaired_attack(case: Case[StarSetting]) -> Attack:
    s = _small(case.setting)
    algorithm = _algorithm(s, s.t, noise_multiplier=_repaired_multiplier(s))
    return _attack(s, algorithm, s.epsilon, f"t = {s.t} rounds, epsilon = {s.epsilon:g} in all")


def _lemma_1(s: StarSetting) -> list[Fraction]:
    """2 c₁/(m (rho + 1/eta_k)) with eta_k as printed in Theorems 3 and 4."""
    values: list[Fraction] = []
    log_term = log(1.25 / s.delta)
    for k in range(1, min(s.t, _PLANNED_ROUNDS) + 1):
        if s.smooth:
            noise = 4 * s.c1 * sqrt(s.d * k * log_term) / (s.m * s.epsilon)
            inverse = 0.25 + s.lambda_over_n + noise / s.c_w
        else:
            slope = s.c1 + s.lambda_over_n * sqrt(s.d)
            noise = 16 * s.d * k * s.c1**2 * log_term / (s.m * s.epsilon) ** 2
            inverse = sqrt(2 * k * slope**2 + noise) / s.c_w
        values.append(2 * Fraction(s.c1) / (s.m * (Fraction(s.rho) + Fraction(inverse))))
    return values


def _lemma_1_figures(s: StarSetting) -> dict[str, Enclosure]:
    values = _lemma_1(s)
    return {
        "sensitivity in round 1": Enclosure.of(values[0]),
        f"sensitivity in round {len(values)}": Enclosure.of(values[-1]),
        "sigma in round 1": Enclosure.of(values[0] * Fraction(_noise_multiplier(s))),
        f"sigma in round {len(values)}": Enclosure.of(values[-1] * Fraction(_noise_multiplier(s))),
    }


def _in_regime(s: StarSetting) -> str | None:
    return None if s.epsilon <= 1 else f"the theorem asks for epsilon={s.epsilon:g} in (0, 1]"


def _round_figures(s: StarSetting) -> dict[str, Enclosure]:
    classical = classical_noise_multiplier(epsilon=1, delta=s.delta)
    with precision(_BITS):
        mu = ball_of(mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta))
        ratio = Enclosure.from_ball(ball_of(classical) / ball_of(s.epsilon) * mu)
    return {"noise ratio": ratio}


def published_total(s: StarSetting) -> Enclosure:
    """Return Theorem 2's epsilon_bar as its proof derives it, with c_0 spelled out (56)."""
    with precision(_BITS):
        delta = ball_of(s.delta)
        ratio = -delta.log() / (ball_of(Fraction(5, 4)) / delta).log()
        return Enclosure.from_ball((s.t * ratio).sqrt() * ball_of(s.epsilon))


def exact_total(s: StarSetting) -> Enclosure:
    """Return the repair of Theorem 2: the exact epsilon of mu = epsilon sqrt(t/(2 ln(1.25/d)))."""
    with precision(_BITS):
        log_term = (ball_of(Fraction(5, 4)) / ball_of(s.delta)).log()
        mu_squared = Enclosure.from_ball(s.t * ball_of(s.epsilon) ** 2 / (2 * log_term))
    return epsilon_from_delta(mu_squared=mu_squared, delta=s.delta)


def _critical(delta: float) -> Enclosure:
    """The mu up to which mu sqrt(2 ln(1/delta)), Theorem 2's formula, is a guarantee."""
    with precision(_BITS):
        slope = Enclosure.from_ball((-2 * ball_of(delta).log()).sqrt())
    return critical_mu(slope, delta)


def _total_figures(s: StarSetting) -> dict[str, Enclosure]:
    truth, formula, critical = (
        guarantee(_events(s), delta=s.delta),
        published_total(s),
        _critical(s.delta),
    )
    moments = epsilon_from_moments(rho=truth.rho, delta=s.delta, max_order=_MOST_ORDER)
    with precision(_BITS):
        side = (-2 * ball_of(s.delta).log()).sqrt()
        log_term = (ball_of(Fraction(5, 4)) / ball_of(s.delta)).log()
        epsilon, mu_c = ball_of(s.epsilon), ball_of(critical)
        return {
            "mu": truth.mu,
            "formula": formula,
            "exact epsilon": truth.epsilon,
            "exact delta at the formula": delta_from_epsilon(
                mu_squared=truth.notion.mu_squared, epsilon=formula
            ),
            "moments accountant": moments.epsilon,
            "c_0 needed": Enclosure.from_ball(
                ball_of(truth.epsilon) / (epsilon * ball_of(s.t).sqrt())
            ),
            "critical mu": critical,
            "critical t": Enclosure.from_ball(2 * log_term * (mu_c / epsilon) ** 2),
            "critical epsilon": Enclosure.from_ball(mu_c * side),
            "mu of side condition (53)": Enclosure.from_ball(side),
        }


def _total_argument(s: StarSetting) -> tuple[str, ...]:
    f = {name: value.upper_float for name, value in _total_figures(s).items()}
    return (
        f"Each of t = {s.t} rounds adds noise of sqrt(2 ln(1.25/delta))/epsilon = "
        f"{_noise_multiplier(s):.6g} times its sensitivity, so the run is exactly mu-GDP with "
        f"mu = epsilon sqrt(t/(2 ln(1.25/delta))) = {f['mu']:.6g}.",
        "The proof bounds the least integer moment from below (54), so (55) and (56) are necessary "
        "conditions, not sufficient ones.",
        f"Its formula is mu sqrt(2 ln(1/delta)) = {f['formula']:.6g}; the exact epsilon at "
        f"delta = {s.delta:g} is {f['exact epsilon']:.6g}, and the exact delta at the formula is "
        f"{f['exact delta at the formula']:.4g}.",
        f"The formula is a guarantee while mu <= {f['critical mu']:.6g}, that is t <= "
        f"{f['critical t']:.6g} at epsilon = {s.epsilon:g}; the side condition (53) would allow "
        f"mu < {f['mu of side condition (53)']:.6g}. A constant c_0 for all t does not exist: here "
        f"it would have to be {f['c_0 needed']:.6g}, and it grows like sqrt(t).",
        "Repair: state epsilon as the exact conversion of mu.",
    )


def _experiments(case: Case[StarSetting]) -> list[StarSetting]:
    grid = product((0.01, 0.05, 0.1, 0.2), (1e-3, 1e-4, 1e-5, 1e-6))
    settings = (case.at(epsilon=epsilon, delta=delta).setting for epsilon, delta in grid)
    return list(dict.fromkeys(settings))


def _epsilons(case: Case[StarSetting]) -> list[StarSetting]:
    grid = (case.setting.epsilon, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
    return list(dict.fromkeys(case.at(epsilon=epsilon).setting for epsilon in grid))


def _pretrained(s: StarSetting) -> list[Event]:
    few = min(s.t, _PLANNED_ROUNDS)
    return planned(PublishedDpAdmm(_algorithm(s, few), 1, s.c_w).solve, s.shape)


def _pretraining_figures(s: StarSetting) -> dict[str, Enclosure]:
    """The divergence of the noise alone, if one record moves c_w by one; and what is accounted."""
    few = replace(s, t=min(s.t, _PLANNED_ROUNDS))
    sides = [gaussian_steps(_events(replace(few, c_w=c_w))) for c_w in (s.c_w, s.c_w + 1)]
    with precision(_BITS):
        total = ball_of(0)
        for first, second in zip(*sides, strict=True):
            ratio = (ball_of(first.noise_std) / ball_of(second.noise_std)) ** 2
            total += ratio - 1 - ratio.log()
        divergence = Enclosure.from_ball(total * s.d / 2)
    accounted = guarantee(_events(few), delta=s.delta).rho
    return {"KL of the noise if c_w moves by 1": divergence, "KL accounted": accounted}


def _pretraining_argument(s: StarSetting) -> tuple[str, ...]:
    found = [value.upper_float for value in _pretraining_figures(s).values()]
    return (
        "eta_k, and with it the variance of the noise, is computed from c_w = |w*|, which comes "
        "from training on the private records without noise.",
        f"If c_w is {s.c_w:g} on one data set and {s.c_w + 1:g} on its neighbour, the noise alone, "
        f"without any message, diverges by {found[0]:.4g} (Kullback-Leibler) over {s.t} rounds in "
        f"{s.d} dimensions; {found[1]:.4g} is accounted: {found[0] / found[1]:.3g} times less.",
        "Repair: a public c_w.",
    )


def _columns(rows: FloatArray) -> FloatArray:
    """Divide every column by its largest entry, then rows of norm above 1 by their norm."""
    scaled = rows / np.abs(rows).max(axis=0)
    return np.asarray(scaled / np.maximum(1.0, np.linalg.norm(scaled, axis=1, keepdims=True)))


def _with_outlier(s: StarSetting) -> tuple[FloatArray, FloatArray]:
    rows = np.ones((s.m, 1))
    return rows, np.vstack([rows[:-1], [[s.outlier]]])


def _mean_gradient_moves(first: FloatArray, second: FloatArray) -> float:
    """The change of the mean logistic gradient at w = 0, all labels 1."""
    return float(np.linalg.norm((first - second).mean(axis=0)) / 2)


def _normalisation_argument(s: StarSetting) -> tuple[str, ...]:
    rows = _with_outlier(s)
    moved = _mean_gradient_moves(*(_columns(side) for side in rows))
    claimed = _gradient_sensitivity(s)
    return (
        f"Columns are divided by their largest entry. One record with an entry of {s.outlier:g} "
        f"rescales the {s.m - 1} others: the mean gradient at 0 moves by {moved:.6g} instead of "
        f"2 c1/m = {claimed:.6g}, {moved / claimed:.4g} times as far.",
        "Repair: divide by public bounds, and cut rows one by one.",
    )


def _cross_validated(s: StarSetting) -> list[Event]:
    """Section VI's choice of lambda: run with several, look at each model's fit, keep the best."""

    def solve(dataset: PrivateDataset, curator: Curator) -> None:
        for factor in (0.1, 1.0, 10.0):
            weight = factor * s.lambda_over_n
            tried = replace(s, lambda_over_n=weight, t=min(s.t, 3))
            state = _algorithm(tried, tried.t).solve(dataset, curator)
            curator.release_unprotected(
                dataset.mean_gradient(LinearLoss(), state.model),
                reason="lambda is chosen by 10-fold cross-validation on the records (section VI)",
                round=tried.t + 1,
                release=f"fit with lambda/n = {weight:g}",
            )

    return planned(solve, s.shape)


def _gradient_sensitivity(s: StarSetting) -> float:
    handle = PrivateDataset.planned(s.shape)
    return handle.mean_gradient(LinearLoss(), np.zeros(s.d)).sensitivity.value


def _readings(s: StarSetting) -> Mapping[str, Sequence[Event]]:
    events = _events(replace(s, t=min(s.t, _PLANNED_ROUNDS)))
    literal = [
        replace(event, mechanism=replace(step, noise_std=step.noise_std**2))
        for event, step in zip(events, gaussian_steps(events), strict=True)
    ]
    return {"entries N(0, sigma²)": events, "MN(0, sigma² I, sigma² I) literally": literal}


def _messages(s: StarSetting) -> Callable[[PrivateDataset, Curator], StarState]:
    return _algorithm(replace(s, d=2), min(s.t, 20)).solve


def _lemma_4(s: StarSetting) -> list[Fraction]:
    return [2 * Fraction(s.c1) / ((Fraction(s.lambda_over_n) + Fraction(s.rho)) * s.m)]


def _pvp(s: StarSetting) -> list[Event]:
    algorithm = PvpAdmm(1, 1.0, penalty=s.rho, regularisation=s.lambda_over_n)
    return planned(algorithm.solve, s.shape)


def _repaired(s: StarSetting) -> list[Event]:
    return _run(s, _repaired_multiplier(s))


def _repaired_multiplier(s: StarSetting) -> float:
    """sqrt(t)/mu for the whole run's (epsilon, delta), rounded up."""
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(s.t).sqrt() / ball_of(mu)).upper_float


_TOTAL: EpsilonPromise[StarSetting] = EpsilonPromise(
    published_total,
    delta=lambda s: s.delta,
    plan=_events,
    regime=_in_regime,
    counterexample=_likelihood,
    figures=_total_figures,
    argument=_total_argument,
)


_claim = partial(
    Claim,
    solver="DP-ADMM (Algorithm 3)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)


PAPER = Paper(
    name="star",
    title="Huang, Hu, Guo, Chan-Tin, Gong 2020: DP-ADMM in a star",
    setting=StarSetting(),
    claims=(
        _claim(
            "H-1",
            "sensitivity of a first-order step",
            "the l2 sensitivity of w_i^k is 2 c1/(m (rho + 1/eta_k))",
            "Lemma 1",
            SensitivityPromise(
                _lemma_1,
                plan=lambda s: _events(replace(s, t=min(s.t, _PLANNED_ROUNDS))),
                figures=_lemma_1_figures,
            ),
            attack=_step_attack,
        ),
        _claim(
            "H-2",
            "one round",
            "with sigma = Delta sqrt(2 ln(1.25/delta))/epsilon a round is (epsilon, delta)-DP, "
            "epsilon in (0, 1]",
            "Theorem 1",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_one_round,
                regime=_in_regime,
                cases=_epsilons,
                figures=_round_figures,
            ),
            attack=_round_attack,
        ),
        _claim(
            "H-3",
            "the whole run",
            "t rounds are (epsilon_bar, delta)-DP with epsilon_bar = c0 sqrt(t) epsilon, by its "
            "proof sqrt(t ln(1/delta)/ln(1.25/delta)) epsilon, for all t and epsilon in (0, 1]",
            "Theorem 2, Appendix B",
            replace(_TOTAL, quantifier=Quantifier("t", _MOST_ROUNDS, {"epsilon": 1.0})),
            attack=_total_attack,
        ),
        _claim(
            "H-4",
            "the experiments",
            "t = 100 rounds with epsilon in {.01, .05, .1, .2} and delta in {1e-3, ..., 1e-6}: "
            "(sqrt(t ln(1/delta)/ln(1.25/delta)) epsilon, delta)-DP",
            "section VI",
            replace(_TOTAL, cases=_experiments),
            attack=_experiment_attack,
        ),
        _claim(
            "H-5",
            "step sizes from pre-training",
            "the guarantee of Theorem 2 covers an algorithm whose eta_k uses c_w = |w*|",
            "section VI, Theorems 3 and 4",
            AccessPromise(
                _pretrained, figures=_pretraining_figures, argument=_pretraining_argument
            ),
        ),
        _claim(
            "H-6",
            "normalisation by column maxima",
            "preprocessing gives |l'| <= c1 and leaves the sensitivity 2 c1/m of a mean gradient",
            "section VI, data set",
            RecordwisePromise(
                _columns,
                rows=_with_outlier,
                claimed=_gradient_sensitivity,
                moved=_mean_gradient_moves,
                argument=_normalisation_argument,
            ),
        ),
        _claim(
            "H-6B",
            "lambda by cross-validation",
            "the guarantee covers an algorithm whose lambda was chosen by cross-validation",
            "section VI",
            AccessPromise(_cross_validated),
        ),
        _claim(
            "H-7",
            "the distribution of the noise",
            "xi ~ MN(0, sigma² I_d, sigma² I_p), with variance sigma²",
            "Algorithm 3, Theorem 1",
            ReadingsPromise(published_total, delta=lambda s: s.delta, readings=_readings),
        ),
        _claim(
            "H-8",
            "what is released",
            "only the noisy w̃_i leave; the dual variables sent along are functions of them",
            "Algorithm 3",
            MessagesOnlyPromise(_messages, pair=_pair),
        ),
        _claim(
            "H-9",
            "sensitivity of an exact minimiser",
            "the l2 sensitivity of Algorithm 2's step is 2 c1/(m (lambda/n + rho))",
            "Lemma 4, Appendix A",
            SensitivityPromise(_lemma_4, plan=_pvp, tolerance=lambda s: s.tau),
            solver="ADMM with PVP (Algorithm 2)",
            attack=_minimiser_attack,
        ),
        _claim(
            "H-R",
            "the repair",
            "public c_w, and noise of sqrt(t)/mu*(epsilon, delta) sensitivities: the whole run is "
            "(epsilon, delta)-DP",
            "ours",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_repaired,
                figures=lambda s: {"noise multiplier": Enclosure.of(_repaired_multiplier(s))},
            ),
            solver="DP-ADMM, repaired",
            attack=_repaired_attack,
        ),
    ),
    sweeps=(
        Sweep(
            "H-3",
            "t, rounds of epsilon = 1 each",
            (1, 2, 5, 10, 20, 30, 40, 51, 75, 100, 150, 200, 300, 400, 500),
            at=lambda s, t: replace(s, t=int(t), epsilon=1.0),
            claimed=published_total,
            certified=exact_total,
            caption="Theorem 2's formula is linear in mu = epsilon sqrt(t/(2 ln(1.25/delta))), the "
            "truth is not.",
        ),
    ),
)
