"""The claims of PR-ADMM (Ding, Zhang, Chen, Xue, Zhang, Pan 2020, decentralised)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf

import numpy as np

from ...accounting.conversions import epsilon_from_zcdp, rho_from_epsilon
from ...accounting.enclosure import Enclosure, ball_of, precision
from ...accounting.gaussian import delta_from_epsilon, mu_from_epsilon_delta
from ...accounting.guarantee import Guarantee, guarantee
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.errors import (
    InvalidParameter,
    Number,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.private_data import DataShape, PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sensitivity import declared
from ...solvers.decentralised import PrAdmm, PublishedPrAdmm, published_noise_multiplier
from ...solvers.losses import LinearLoss
from ...solvers.schedules import IterationDecay, PeriodicDecay, cost
from ...solvers.topologies import Network, complete
from ..neighbours import NeighbourPair, opposite_gradients
from .attack import Attack, promised_by_mu
from .auditor import EpsilonPromise, SensitivityPromise, at_tolerance, gaussian_steps, planned
from .claim import Case, Claim, Counterexample, Paper, ThreatModel
from .gaussian_event import likelihood_event
from .structure import AccessPromise, MessagesOnlyPromise, RecordwisePromise
from .sums import ClosedFormPromise, PartiesPromise, RhoPromise
from .sweep import Sweep

__all__ = ["PAPER", "PrSetting", "exact_periodic", "published_periodic"]

_BITS = 128
_FEATURES = 2
_MOST = {"K": 500, "K_p": 500, "D": 10**9, "N": 50, "neighbours": 49}
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class PrSetting:
    """The paper's parameters; by default those of its experiments (section V).

    Args:
        K: rounds.
        K_p, R_P: period and rate of the periodic decay.
        R_T: rate of the iteration-based decay.
        epsilon, delta: of the whole run.
        D: records of an agent.
        N, neighbours: agents, and the fewest neighbours that one of them has.
        eta: penalty.
        V: Lipschitz constant of the loss.
        Lambda: weight of the regulariser.
        tau: gradient norm to which an implementation finds minimisers (PR-9 and PR-R); the paper,
            and so every other claim, has 0.
        convex: whether the loss is; Lemma 5 does not ask for it.
    """

    K: int = 50
    K_p: int = 1
    R_P: float = 0.925
    R_T: float = 0.015
    epsilon: float = 10.0
    delta: float = 1e-4
    D: int = 8000
    N: int = 5
    neighbours: int = 2
    eta: float = 0.5
    V: float = 1.0
    Lambda: float = 0.0
    tau: float = 1e-6
    convex: bool = True

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            require_positive_int(name, value)
            if value > most:
                raise InvalidParameter(name, value, f"in [1, {most}]")
        if self.N < 2:
            raise InvalidParameter("N", self.N, f"in [2, {_MOST['N']}]")
        if self.K % self.K_p:
            raise InvalidParameter("K", self.K, f"divisible by K_p={self.K_p}")
        if not self.neighbours < self.N:
            raise InvalidParameter("neighbours", self.neighbours, f"in [1, {self.N - 1}]")
        require_open_unit("delta", self.delta)
        require_open_unit("R_P", self.R_P)
        for name in ("R_T", "epsilon", "eta", "V"):
            require_positive(name, getattr(self, name))
            if not 1e-9 <= getattr(self, name) <= 1e9:
                raise InvalidParameter(name, getattr(self, name), "in [1e-9, 1e9]")
        require_nonnegative("Lambda", self.Lambda)
        require_nonnegative("tau", self.tau)

    @property
    def schedule(self) -> PeriodicDecay:
        """The periodic linear decay of equation 14."""
        return PeriodicDecay(self.R_P, self.K_p)

    @property
    def network(self) -> Network:
        """Everybody talks to everybody, but agent 0 to as few as asked."""
        edges = complete(self.N).edges
        return Network(self.N, tuple(e for e in edges if e[0] > 0 or e[1] <= self.neighbours))

    def shape(self, adjacency: Adjacency = Adjacency.REPLACE_ONE, count: int = 0) -> DataShape:
        """Return what is public about the agents' records."""
        parties = tuple(f"agent {i}" for i in range(self.N))
        return DataShape(parties, count or self.D, _FEATURES, self.V, adjacency)

    @property
    def modulus(self) -> Fraction:
        """m = 2 eta |V_i| + 2 Lambda/N."""
        return 2 * Fraction(self.eta) * self.neighbours + 2 * Fraction(self.Lambda) / self.N


def _algorithm(s: PrSetting, noise_multiplier: float, *, threshold: float = inf) -> PrAdmm:
    return PrAdmm(
        network=s.network,
        rounds=s.K,
        noise_multiplier=noise_multiplier,
        schedule=s.schedule,
        penalty=s.eta,
        regularisation=s.Lambda,
        threshold=threshold,
        tolerance=_TINY,
        loss=LinearLoss(),
    )


def _first_noise(s: PrSetting) -> float:
    """sigma_1 over Lemma 5's sensitivity, by which Theorem 3 promises (epsilon, delta)."""
    return published_noise_multiplier(s.schedule, s.K, epsilon=s.epsilon, delta=s.delta)


def _lemma_5(s: PrSetting) -> Fraction:
    return Fraction(s.V) / (Fraction(s.eta) * s.neighbours)


def _events(s: PrSetting) -> list[Event]:
    """The published algorithm's planned events, with exact minimisers.

    A loss that is not convex has no rule in the calculus: its stationary points lie within V/m of
    the point that the messages alone would give, so two of them are at most 2V/m apart; and a
    record that tips the balance moves the minimiser by all of it.
    """
    events = planned(PublishedPrAdmm(_algorithm(s, _first_noise(s))).solve, s.shape())
    any_loss = declared(
        2 * Fraction(s.V) / s.modulus,
        "stationary points lie within V/m of a public one",
        adjacency=Adjacency.REPLACE_ONE,
    )
    return [
        replace(
            event,
            mechanism=GaussianStep(
                at_tolerance(step.sensitivity, Fraction(0)) if s.convex else any_loss,
                step.noise_std,
            ),
        )
        for event, step in zip(events, gaussian_steps(events), strict=True)
    ]


def _guarantee(s: PrSetting) -> Guarantee:
    return guarantee(_events(s), delta=s.delta)


def _sensitivity_figures(s: PrSetting) -> dict[str, Enclosure]:
    def root(adjacency: Adjacency, count: int) -> Enclosure:
        solve = replace(_algorithm(s, 1.0), rounds=1).solve
        (step,) = gaussian_steps(planned(solve, s.shape(adjacency, count)))
        return Enclosure.of(at_tolerance(step.sensitivity, Fraction(0)).root)

    truth = _guarantee(s)
    mu_squared = truth.notion.mu_squared
    return {
        "Lemma 5": Enclosure.of(_lemma_5(s)),
        "convex, replace-one": root(Adjacency.REPLACE_ONE, s.D),
        "convex, zero-out-one": root(Adjacency.ZERO_OUT_ONE, s.D),
        "convex, one record added": root(Adjacency.ADD_REMOVE_ONE, s.D + 1),
        "sigma_1 over Lemma 5": Enclosure.of(_first_noise(s)),
        "mu": truth.mu,
        "exact epsilon": truth.epsilon,
        "exact delta at epsilon 0": delta_from_epsilon(mu_squared=mu_squared, epsilon=0),
    }


def _lemma_5_argument(s: PrSetting) -> tuple[str, ...]:
    f = {name: value.upper_float for name, value in _sensitivity_figures(s).items()}
    return (
        "The proof evaluates both gradients at one point, though the minimisers differ, and loses "
        f"the factor 1/|D_i| = 1/{s.D}.",
        "With a convex loss the subproblem is m-strongly convex, m = 2 eta |V_i| + 2 Lambda/N = "
        f"{float(s.modulus):g}, and minimisers are 2V/(|D_i| m) = {f['convex, replace-one']:.6g} "
        f"apart at most; Lemma 5 says {f['Lemma 5']:.6g}.",
        "Without convexity the value is right, for another reason: every stationary point lies "
        "within V/m of the point that the messages alone would give, so two of them are at most "
        f"2V/m = {float(2 * Fraction(s.V) / s.modulus):.6g} apart, and one record can do it.",
        f"At these parameters the run is {f['mu']:.6g}-GDP: epsilon {f['exact epsilon']:.6g} at "
        f"delta {s.delta:g}, where {s.epsilon:g} is claimed.",
    )


def _round_rho(s: PrSetting) -> Number:
    (step, *_) = gaussian_steps(_events(s))
    variance = Fraction(step.noise_std) ** 2
    return _lemma_5(s) ** 2 / (2 * variance) if variance else inf


def published_periodic(s: PrSetting) -> Fraction:
    """Return Theorem 3's total over rho_1: K_p (1 - R^J)/(R^(J-1) - R^J) - 1, J = K/K_p."""
    return s.schedule.published_cost(s.K)


def exact_periodic(s: PrSetting) -> Fraction:
    """Return the sum over rounds of R^-floor((k-1)/K_p)."""
    return cost(s.schedule, s.K)


def _small_runs(s: PrSetting) -> Iterator[PrSetting]:
    for rounds in range(1, s.K + 1):
        for period in (p for p in range(1, rounds + 1) if rounds % p == 0):
            yield replace(s, K=rounds, K_p=period)


def _periodic_figures(s: PrSetting) -> dict[str, Enclosure]:
    exact, published = exact_periodic(s), published_periodic(s)
    lemma_5 = _guarantee(replace(s, convex=False))
    return {
        "sum": Enclosure.of(exact),
        "closed form": Enclosure.of(published),
        "relative understatement": Enclosure.of(exact / published - 1 if published else inf),
        "claimed epsilon": Enclosure.of(s.epsilon),
        "zCDP epsilon of the true total": epsilon_from_zcdp(rho=lemma_5.rho, delta=s.delta),
        "exact epsilon, Lemma 5 attained": lemma_5.epsilon,
        "nominal rho": rho_from_epsilon(epsilon=s.epsilon, delta=s.delta),
    }


def _periodic_argument(s: PrSetting) -> tuple[str, ...]:
    f = {name: value.upper_float for name, value in _periodic_figures(s).items()}
    return (
        f"Over K = {s.K} rounds with K_p = {s.K_p} and R_P = {s.R_P:g} the sum of rho_k is "
        f'{f["sum"]:.10g} rho_1; Theorem 3 has {f["closed form"]:.10g} rho_1, a "- 1" too many.',
        "For K = K_p = 1 it says 0: one noisy release would be (0, delta)-DP, whatever the noise.",
        f"The noise that Theorem 3 gives for epsilon = {s.epsilon:g} costs "
        f"{f['zCDP epsilon of the true total']:.8g} by its own conversion, and exactly "
        f"{f['exact epsilon, Lemma 5 attained']:.8g} at delta {s.delta:g} where Lemma 5 is "
        "attained: the conversion's slack may hide the error.",
        'Repair: leave out the "- 1".',
    )


def _pair(s: PrSetting) -> NeighbourPair:
    """Two data sets of two records an agent in two dimensions; one of agent 0's differs."""
    rows = np.zeros((2 * s.N, _FEATURES))
    dataset = PrivateDataset(
        rows,
        np.ones(len(rows)),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=s.V,
        party_of=np.repeat(np.arange(s.N), 2),
        parties=s.shape().parties,
    )
    return opposite_gradients(dataset, index=0, loss=LinearLoss())


def _one_release(s: PrSetting) -> Counterexample:
    """One release whose noise equals its sensitivity, for which Theorem 3 would say epsilon 0."""
    algorithm = replace(_algorithm(replace(s, K=1, K_p=1), 1.0), schedule=PeriodicDecay(s.R_P))
    mu = guarantee(planned(algorithm.solve, s.shape(count=2)), delta=s.delta).mu
    return likelihood_event(
        algorithm.solve, _pair(s), mu=mu, epsilon=Enclosure.of(0), delta=s.delta
    )


def _iteration(s: PrSetting) -> Fraction:
    return IterationDecay(s.R_T).published_cost(s.K)


def _iteration_argument(s: PrSetting) -> tuple[str, ...]:
    schedule = IterationDecay(s.R_T)
    rises = float(schedule.variance(2))
    back = next(
        (k for k in range(2, 10**4) if schedule.variance(k) <= 1), None
    )  # the first round with no more noise than the first
    return (
        f"The sum over k of k (k + 1) is (K - 1) K (K + 1)/3, and the total {float(_iteration(s))} "
        "rho_1, if round 1 uses sigma_1²; equation 15 divides by zero there.",
        f"It is no decay: in round 2 the variance is {rises:.4g} times sigma_1²"
        + ("." if back is None else f", and it is not below sigma_1² before round {back}."),
    )


def _conversion(s: PrSetting) -> Enclosure:
    return epsilon_from_zcdp(rho=_guarantee(replace(s, convex=False)).rho, delta=s.delta)


def _tuned(s: PrSetting) -> list[Event]:
    """Section V's procedure: run for every candidate, look at the model's fit, keep the best."""

    def solve(dataset: PrivateDataset, curator: Curator) -> None:
        for rate in sorted({0.9, s.R_P, 0.95}):
            candidate = PeriodicDecay(rate, s.K_p)
            algorithm = replace(_algorithm(s, _first_noise(s)), schedule=candidate)
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
    return _algorithm(few, 1.0, threshold=few.V / few.eta).solve


def _exact_value(s: PrSetting) -> list[Fraction]:
    return [2 * Fraction(s.V) / (s.D * s.modulus)]


def _one_round(s: PrSetting) -> list[Event]:
    algorithm = replace(_algorithm(s, 1.0), rounds=1)
    return planned(algorithm.solve, s.shape())


def _tolerance_figures(s: PrSetting) -> dict[str, Enclosure]:
    (step,) = gaussian_steps(_one_round(s))
    found = at_tolerance(step.sensitivity, Fraction(s.tau)).root
    exact = at_tolerance(step.sensitivity, Fraction(0)).root
    return {
        "inflation": Enclosure.of(found / exact),
        "tau for one per cent": Enclosure.of(exact * s.modulus / 200),
    }


def _cut(rows: FloatArray) -> FloatArray:
    """Set missing entries to 0 and cut every row to norm 1."""
    present = np.nan_to_num(rows, nan=0.0)
    return np.asarray(present / np.maximum(1.0, np.linalg.norm(present, axis=1, keepdims=True)))


def _rows(s: PrSetting) -> tuple[FloatArray, FloatArray]:
    rows = np.ones((min(s.D, 1000), 1))
    return rows, np.vstack([rows[:-1], [[-1000.0]]])


def _mean_gradient_moves(first: FloatArray, second: FloatArray) -> float:
    return float(np.linalg.norm((first - second).mean(axis=0)) / 2)


def _repaired_multiplier(s: PrSetting) -> float:
    """sqrt(cost)/mu for the whole run's (epsilon, delta), rounded up."""
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(exact_periodic(s)).sqrt() / ball_of(mu)).upper_float


def _repaired_algorithm(s: PrSetting) -> PrAdmm:
    return replace(_algorithm(s, _repaired_multiplier(s)), tolerance=s.tau or _TINY)


def _repaired(s: PrSetting) -> list[Event]:
    return planned(_repaired_algorithm(s).solve, s.shape())


def _alone(s: PrSetting) -> NeighbourPair:
    """One record an agent, agent 0's turned: then a convex loss attains Lemma 5."""
    dataset = PrivateDataset(
        np.zeros((s.N, _FEATURES)),
        np.ones(s.N),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=s.V,
        party_of=np.arange(s.N),
        parties=s.shape().parties,
    )
    return opposite_gradients(dataset, index=0, loss=LinearLoss())


def _one_message(case: Case[PrSetting]) -> Attack:
    s = replace(case.setting, K=1, K_p=1)
    solve = PublishedPrAdmm(_algorithm(s, 1.0)).solve
    told = "one round, one record an agent, with noise of Lemma 5, which would make it 1-GDP"
    return Attack(solve, _alone(s), promised_by_mu(1, s.delta), s.delta, told)


def _two_rounds(case: Case[PrSetting]) -> Attack:
    s = case.at(K=2, K_p=2, epsilon=1.0).setting
    solve = PublishedPrAdmm(_algorithm(s, _first_noise(s))).solve
    told = f"K = {s.K}, K_p = {s.K_p}, epsilon = {s.epsilon:g}, one record an agent"
    return Attack(solve, _alone(s), s.epsilon, s.delta, told)


def _whole_run(s: PrSetting, epsilon: float, promise: str) -> Attack:
    """All agents' messages of all rounds, where one record an agent attains Lemma 5."""
    # in late rounds the noise is large, and no gradient smaller than this can be certified
    algorithm = replace(_algorithm(s, _first_noise(s)), tolerance=s.tau or _TINY)
    told = f"K = {s.K}, K_p = {s.K_p}, one record an agent: {promise}"
    return Attack(PublishedPrAdmm(algorithm).solve, _alone(s), epsilon, s.delta, told)


def _converted_rounds(case: Case[PrSetting]) -> Attack:
    s = case.setting
    return _whole_run(s, _conversion(s).upper_float, "zCDP's conversion of the exact total")


def _all_agents(case: Case[PrSetting]) -> Attack:
    s = case.setting
    own = _guarantee(replace(s, convex=False)).epsilon.upper_float
    return _whole_run(s, own, "what the record's own agent costs alone")


def _repaired_rounds(case: Case[PrSetting]) -> Attack:
    s = case.setting
    told = f"K = {s.K}, K_p = {s.K_p}, one record an agent, tau = {s.tau:g}"
    return Attack(_repaired_algorithm(s).solve, _alone(s), s.epsilon, s.delta, told)


_claim = partial(
    Claim,
    solver="PR-ADMM (Algorithm 1)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)


PAPER = Paper(
    name="pr-admm",
    title="Ding, Zhang, Chen, Xue, Zhang, Pan 2020: PR-ADMM on a network",
    setting=PrSetting(),
    claims=(
        _claim(
            "PR-1",
            "sensitivity of a minimiser",
            "the sensitivity of x_i^{k+1} is V/(eta |V_i|); a bounded gradient is enough",
            "Lemma 5",
            SensitivityPromise(
                lambda s: [_lemma_5(s)] * s.K,
                plan=_events,
                figures=_sensitivity_figures,
                argument=_lemma_5_argument,
            ),
            attack=_one_message,
        ),
        _claim(
            "PR-2",
            "one round",
            "a round is rho-zCDP with rho = V²/(2 eta² |V_i|² sigma²)",
            "Theorem 2",
            RhoPromise(_round_rho, delta=lambda s: s.delta, plan=lambda s: _events(s)[:1]),
            attack=_one_message,
        ),
        _claim(
            "PR-3",
            "total of the periodic decay",
            "rho_total = rho_1 (K_p (1 - R^J)/(R^(J-1) - R^J) - 1), J = K/K_p",
            "Theorem 3",
            ClosedFormPromise(
                published_periodic,
                exact=exact_periodic,
                candidates=_small_runs,
                named=("K", "K_p"),
                counterexample=_one_release,
                figures=_periodic_figures,
                argument=_periodic_argument,
            ),
            attack=_two_rounds,
        ),
        _claim(
            "PR-4",
            "total of the iteration-based decay",
            "rho_total = rho_1 (R_T K (K² - 1) + 3)/3",
            "Theorem 4",
            ClosedFormPromise(
                _iteration,
                exact=lambda s: cost(IterationDecay(s.R_T), s.K),
                candidates=_small_runs,
                named=("K",),
                figures=lambda s: {
                    "variance in round 2": Enclosure.of(IterationDecay(s.R_T).variance(2))
                },
                argument=_iteration_argument,
            ),
        ),
        _claim(
            "PR-5",
            "total over agents",
            "epsilon = max over agents of epsilon_i",
            "Theorems 3 and 4",
            PartiesPromise(delta=lambda s: s.delta, plan=_events),
            attack=_all_agents,
        ),
        _claim(
            "PR-6",
            "conversion",
            "rho-zCDP gives (rho + 2 sqrt(rho ln(1/delta)), delta)-DP",
            "Lemma 3",
            EpsilonPromise(
                _conversion,
                delta=lambda s: s.delta,
                plan=lambda s: _events(replace(s, convex=False)),
                figures=_periodic_figures,
            ),
            attack=_converted_rounds,
        ),
        _claim(
            "PR-7",
            "hyper-parameters",
            "the total covers an algorithm whose U, K_p, R_P and R_T were tuned",
            "section V; footnote 1 admits it",
            AccessPromise(_tuned),
        ),
        _claim(
            "PR-8",
            "threshold test",
            "the sum over t of |x̃_i^t - x̃_j^t| > U is judged on released values only",
            "Algorithm 1, lines 8 to 12",
            MessagesOnlyPromise(_thresholded, pair=_pair),
        ),
        _claim(
            "PR-9",
            "exact minimisers",
            "x_i^{k+1} minimises (12) exactly: a replaced record moves it by at most 2V/(|D_i| m)",
            "equation 12",
            SensitivityPromise(
                _exact_value,
                plan=_one_round,
                tolerance=lambda s: s.tau,
                figures=_tolerance_figures,
            ),
        ),
        _claim(
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
        ),
        _claim(
            "PR-R",
            "the repair",
            "noise in units of 2V/(|D_i| m) + 2 tau/m, and the exact total: the whole run is "
            "(epsilon, delta)-DP",
            "ours",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_repaired,
                figures=lambda s: {"noise multiplier": Enclosure.of(_repaired_multiplier(s))},
            ),
            solver="PR-ADMM, repaired",
            attack=_repaired_rounds,
        ),
    ),
    sweeps=(
        Sweep(
            "PR-3",
            "K = K_p, rounds of one period, epsilon = 1",
            tuple(range(2, 13)),
            at=lambda s, k: replace(s, K=int(k), K_p=int(k), epsilon=1.0),
            claimed=lambda s: Enclosure.of(s.epsilon),
            certified=lambda s: _guarantee(replace(s, convex=False)).epsilon,
            caption='The "- 1" of Theorem 3 weighs most in short runs; in longer ones the slack of '
            "the conversion hides it.",
        ),
    ),
)
