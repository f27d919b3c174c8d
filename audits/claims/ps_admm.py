"""The claims of PS-ADMM (Ding, Errapotu, Zhang, Pan, Han 2019, stochastic steps in a star)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import exp, log, sqrt

import numpy as np
from flint import arb
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from ...accounting.enclosure import Enclosure, ball_of, precision
from ...accounting.gaussian import epsilon_from_delta, mu_from_epsilon_delta
from ...accounting.guarantee import guarantee
from ...accounting.tight import PrivacyProfile
from ...accounting.tight.dominating import GaussianShift, Order, Sampled
from ...accounting.tight.leaves import pairs_of
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ...mechanisms.events import Event, GaussianMixtureStep, GaussianStep, Mechanism, Repeated
from ...mechanisms.private_data import DataShape, PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sensitivity import declared, mean_of_bounded, sum_of_bounded
from ...mechanisms.subsampling import Poisson
from ...solvers.losses import LinearLoss
from ...solvers.stochastic import (
    InnerWeights,
    PrintedWeights,
    PsAdmm,
    PublishedPsAdmm,
    SampledPsAdmm,
    StochasticRounds,
    theorem_2_noise_std,
)
from ..falsifier import Falsification, ReplacedRecord, SensitivityLemma, Table
from ..neighbours import NeighbourPair, opposite_gradients
from .attack import Attack
from .auditor import EpsilonPromise, planned
from .claim import Case, Claim, Counterexample, Derivation, Finding, Paper, ThreatModel, Verdict
from .critical import critical_mu
from .gaussian_event import likelihood_event
from .lemma import LemmaPromise
from .mixture_pair import MixturePair
from .structure import ConstantsPromise, MessagesOnlyPromise, PublicPromise
from .sweep import Sweep

__all__ = ["PAPER", "LoopPromise", "PsSetting", "TotalPromise", "WeightsPromise"]

_BITS = 128
_MEASURED = 1e-8
_FEATURES = 2
_BEND = 0.01
_FAR = 60.0
_DISTINCT = 6.0
_LEAST_C = 1e-3
_SHARES = tuple(Fraction(k, 400) for k in (2, 4, 6, 8, 10, 14))
_MOST = {"K": 10**9, "S": 10**6, "M": 10**9, "first_step": 10**6}


@dataclass(frozen=True, slots=True)
class PsSetting:
    """The paper's parameters; by default those of its experiments, K and S assumed (section 5).

    Args:
        K, S: rounds, and inner steps of each.
        M: records of a provider.
        epsilon, delta: of the whole run.
        c, c1: the constants of Theorem 2, which it does not give.
        G: Lipschitz constant of the loss.
        eta_nu: step size times smoothness, in (0, 1/2).
        first_step: the s at which the inner loop starts; printed: 1.
        logistic: whether the loss is logistic, instead of any convex and smooth one.
        zero_out: whether neighbours replace a record by a null record, instead of by any other.
        q, z, sigma_u: sampling rate, noise multiplier and noise of the snapshot of the repair R-B.
    """

    K: int = 50
    S: int = 50
    M: int = 6838
    epsilon: float = 0.5
    delta: float = 1e-3
    c: float = 1.0
    c1: float = 1.0
    G: float = 1.0
    eta_nu: float = 0.25
    first_step: int = 1
    logistic: bool = False
    zero_out: bool = False
    q: float = 0.01
    z: float = 1.2
    sigma_u: float = 2e-3

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            if name == "first_step":
                require_nonnegative(name, value)
            else:
                require_positive_int(name, value)
            if value > most:
                raise InvalidParameter(name, value, f"in [1, {most}]")
        if self.M < 2:
            raise InvalidParameter("M", self.M, f"in [2, {_MOST['M']}]")
        require_open_unit("delta", self.delta)
        require_open_unit("q", self.q)
        for name in ("epsilon", "c", "c1", "G", "z", "sigma_u"):
            require_positive(name, getattr(self, name))
            if not 1e-9 <= getattr(self, name) <= 1e9:
                raise InvalidParameter(name, getattr(self, name), "in [1e-9, 1e9]")
        if not 0 < self.eta_nu < 0.5:
            raise InvalidParameter("eta_nu", self.eta_nu, "in (0, 1/2)")

    @property
    def relation(self) -> Adjacency:
        """What neighbours are."""
        return Adjacency.ZERO_OUT_ONE if self.zero_out else Adjacency.REPLACE_ONE

    @property
    def shape(self) -> DataShape:
        """What is public about a provider's records."""
        return DataShape(("provider",), self.M, _FEATURES, self.G, self.relation)

    @property
    def steps(self) -> int:
        """How many noisy gradients a provider uses."""
        return self.K * self.S


def _rounds(s: PsSetting, rounds: int, inner_steps: int) -> StochasticRounds:
    # a linear loss has no curvature of its own: the penalty alone makes nu
    return StochasticRounds(rounds, inner_steps, s.eta_nu, penalty=1.0, loss=LinearLoss())


def _noise(s: PsSetting) -> float:
    """Theorem 2's standard deviation, for c."""
    return theorem_2_noise_std(
        _rounds(s, s.K, s.S), s.shape, epsilon=s.epsilon, delta=s.delta, constant=s.c
    )


def _planned_step(s: PsSetting) -> tuple[Event, GaussianMixtureStep]:
    """One noisy gradient of the published algorithm, which samples for replace-one."""
    replaced = replace(s, zero_out=False)
    published = PublishedPsAdmm(_rounds(s, 1, 1), _noise(s))
    (event,) = planned(published.solve, replaced.shape)
    assert isinstance(event.mechanism, GaussianMixtureStep)
    return event, event.mechanism


def _step(s: PsSetting) -> GaussianMixtureStep:
    """That step for this relation and loss: a null record has no gradient."""
    _, step = _planned_step(s)
    if not (s.zero_out or s.logistic):
        return step
    # two logistic gradients of one record lie in one half-line: G apart, not 2G
    correction = s.G if s.logistic else 2 * s.G
    return replace(
        step,
        constant=mean_of_bounded(s.G, s.M, s.relation),
        sampled=sum_of_bounded(correction, s.relation),
    )


def _events(s: PsSetting, step: GaussianStep) -> list[Event]:
    """K S times this step."""
    event, _ = _planned_step(s)
    return [Event(Repeated(step, s.steps), event.context)]


def _linear(s: PsSetting) -> list[Event]:
    """What is left of it for linear losses, whose sampled corrections vanish: Gaussian steps."""
    step = _step(s)
    return _events(s, GaussianStep(step.constant, step.noise_std))


def _worst_shifts(s: PsSetting) -> tuple[float, float]:
    """How far the worst two data sets' gradients are apart: always, and more if drawn."""
    moved = (1 if s.zero_out else 2) * s.G
    if s.logistic:
        # the slope at the anchor is 0, at v it is 1: nothing moves unless the record is drawn
        return 0.0, moved
    # the anchor's full gradient moves back while the drawn record goes far ahead
    return -moved / s.M, 2 * moved


def _worst_pair(s: PsSetting, c: float) -> MixturePair:
    """The noisy gradients of these two data sets."""
    constant, sampled = _worst_shifts(s)
    noise = _noise(replace(s, c=c))
    return MixturePair(constant=constant, sampled=sampled, rate=1 / s.M, noise_std=noise)


def _measured(value: float) -> Enclosure:
    """A number found in doubles, with room for what doubles do."""
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(value) * arb(1, _MEASURED))


def _bound(s: PsSetting, share: Fraction) -> float:
    """An upper bound on the published run's epsilon for any data, by splitting the noise.

    c + r_J + noise is a function of c + one share of the noise and r_J + the rest of it.
    """
    step = _step(s)
    variance = Fraction(step.noise_std) ** 2
    # the sample of a null record's neighbour may hold another record instead: twice as far
    sampled = step.sampled.squared * (4 if s.zero_out else 1)
    profile = PrivacyProfile.of_pairs(
        {
            GaussianShift(s.steps * step.constant.squared / (variance * share)): 1,
            Sampled(
                GaussianShift(sampled / (variance * (1 - share))), Fraction(1, s.M), Order.GLUED
            ): s.steps,
        }
    )
    return profile.epsilon_upper(s.delta)


def _best_share(s: PsSetting) -> Fraction:
    return min(_SHARES, key=lambda share: _bound(s, share))


def _sufficient_c(s: PsSetting, necessary: float) -> float:
    """A c that is enough for any data."""
    share = _best_share(replace(s, c=necessary))

    def excess(log_c: float) -> float:
        return log(_bound(replace(s, c=exp(log_c)), share) / s.epsilon)

    low, high = log(necessary), log(necessary * (5 if s.zero_out else 1.25))
    while excess(high) > 0:
        low, high = high, high + 1
    return exp(float(brentq(excess, low, high, xtol=2e-4)))


def _necessary_c(s: PsSetting) -> float:
    """The c at which the worst pair has just epsilon at delta."""

    def excess(c: float) -> float:
        return log(max(_worst_pair(s, c).delta(s.epsilon, times=s.steps), 1e-300) / s.delta)

    return float(brentq(excess, *_bracket(s, lambda c: excess(c) > 0), rtol=1e-10))


def _bracket(s: PsSetting, short: Callable[[float], bool]) -> tuple[float, float]:
    """A c that is short and its double, which is not; searched from large c down.

    It starts where the noise is 3G.
    """
    high = _needed_constants(s)["c"].upper_float
    while short(high):
        high *= 2
    while high > _LEAST_C and not short(high / 2):
        high /= 2
    return high / 2, high


def _full_gradient_c(s: PsSetting, steps: float) -> Enclosure:
    """The least c for linear losses, if `steps` of the K S noises are seen at full weight."""
    shift = 1 if s.zero_out else 2
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(_BITS):
        share = ball_of(Fraction(steps) / s.steps)
        ratio = shift * ball_of(s.epsilon) / ball_of(mu)
        return Enclosure.from_ball(share * ratio**2 / -ball_of(s.delta).log())


def _message_weights(s: PsSetting) -> FloatArray:
    """How much x^{k+1} holds of every inner noise, in units of eta: (S - 1 - s + kappa)/S."""
    kappa = PrintedWeights().of_next(s.eta_nu)
    return np.asarray((s.S - 1 - np.arange(s.S) + kappa) / s.S)


def _effective_steps(s: PsSetting) -> float:
    weights = _message_weights(s)
    return float(weights.sum() ** 2 / (weights**2).sum())


def _linear_epsilon(s: PsSetting, share: float) -> Enclosure:
    """The exact epsilon for linear losses, if a share of the noises' information is seen."""
    mu_squared = guarantee(_linear(s), delta=s.delta).notion.mu_squared
    with precision(_BITS):
        seen = Enclosure.from_ball(ball_of(mu_squared) * ball_of(share))
    return epsilon_from_delta(mu_squared=seen, delta=s.delta)


def _first_message(s: PsSetting, c: float) -> tuple[float, float, float]:
    """Return the best event "x^1 <= t" on the Huber instance: P, P' and the epsilon it shows.

    One dimension, G = 1, rho -> 0: everybody has l(x) = -x, but one record has the Huber loss with
    slope clip((x - h)/h, -1, 1), or -x as well. v moves by eta = eta_nu h a step; once v >= 2h the
    drawn record pulls back by 2. Draws earlier than that are counted as if they did not exist.
    """
    weights, noise, steps = _message_weights(s), _noise(replace(s, c=c)) / s.G, np.arange(s.S)
    spread, rate = noise * sqrt(float((weights**2).sum())), 1 / s.M
    reached = steps - 2 / s.eta_nu
    late = steps[reached > 0]
    missed = norm.sf(reached[late] / (noise * np.sqrt(late)))
    t = np.linspace(-8 * spread - 3, 2.0, 6001)[:, None]
    drawn = norm.cdf((t + 2 * weights[late]) / spread) - missed
    once = rate * (1 - rate) ** (s.S - 1) * np.maximum(drawn, 0).sum(axis=1)
    first = once + (1 - rate) ** s.S * norm.cdf(t[:, 0] / spread)
    second = norm.logcdf(t[:, 0] / spread)
    shown = np.log(np.maximum(first - s.delta, 1e-300)) - second
    best = int(shown.argmax())
    return float(first[best]), float(np.exp(second[best])), float(max(0.0, shown[best]))


def _first_message_c(s: PsSetting) -> float:
    """Below this c the first message alone refutes (epsilon, delta); 0 if the instance cannot."""

    def refutes(c: float) -> bool:
        return _first_message(s, c)[2] > s.epsilon

    low, high = _bracket(s, refutes)
    if not refutes(low):
        return 0.0
    return float(brentq(lambda c: _first_message(s, c)[2] - s.epsilon, low, high))


def _breaks_at(s: PsSetting) -> Enclosure:
    """The epsilon above which this c is too small for linear losses, whatever K, S and M."""
    with precision(_BITS):
        slope = (ball_of(s.c) * -ball_of(s.delta).log()).sqrt() / (1 if s.zero_out else 2)
        bounded = Enclosure.from_ball(slope)
    mu = critical_mu(bounded, s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(mu) * ball_of(bounded))


@lru_cache(maxsize=32)
def _total_figures(s: PsSetting) -> dict[str, Enclosure]:
    seen, necessary = _effective_steps(s), _necessary_c(s)
    figures = {
        "mu*": mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta),
        "noise": Enclosure.of(_noise(s)),
        "epsilon, linear losses": _linear_epsilon(s, 1.0),
        "effective steps of S": Enclosure.of(seen),
        "epsilon, linear losses, messages": _linear_epsilon(s, seen / s.S),
        "epsilon, Huber instance, first message, at least": Enclosure.of(_first_message(s, s.c)[2]),
        "c needed, linear losses": _full_gradient_c(s, s.steps),
        "c needed, linear losses, messages": _full_gradient_c(s, seen * s.K),
        "c needed, Huber instance, first message": Enclosure.of(_first_message_c(s)),
        "c needed, worst pair": _measured(necessary),
        "c that suffices": Enclosure.of(_sufficient_c(s, necessary)),
        "epsilon at which c breaks": _breaks_at(s),
    }
    # beyond, a drawn record shows at once
    if _worst_shifts(s)[1] < _DISTINCT * _noise(s):
        worst = _worst_pair(s, s.c).epsilon(s.delta, times=s.steps)
        figures["epsilon, worst pair"] = _measured(worst)
    return figures


def _linear_pair(s: PsSetting) -> NeighbourPair:
    """Two data sets of four records: one of them points either way."""
    dataset = PrivateDataset(
        np.zeros((4, _FEATURES)),
        np.ones(4),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=s.G,
        parties=s.shape.parties,
    )
    return opposite_gradients(dataset, index=3, loss=LinearLoss())


def _shown(s: PsSetting, figures: Mapping[str, Enclosure]) -> dict[str, Enclosure]:
    """The epsilons that given data sets of this relation and loss show."""
    names = {"linear losses": "epsilon, linear losses", "the worst pair": "epsilon, worst pair"}
    if not (s.logistic or s.zero_out):
        names["the Huber instance"] = "epsilon, Huber instance, first message, at least"
    elif s.logistic:
        del names["linear losses"]
    shown = {who: figures[name] for who, name in names.items() if name in figures}
    return shown or {"nothing": Enclosure.of(0)}


@dataclass(frozen=True, slots=True)
class TotalPromise:
    """A run is (epsilon, delta)-DP with noise of constant c, for all epsilon of the regime."""

    figures: Callable[[PsSetting], Mapping[str, Enclosure]]

    def judge(self, case: Case[PsSetting]) -> Finding:
        """Compare with data sets that refute it, then with the bound for any data."""
        s = case.setting
        figures, linear = self.figures(s), _linear_epsilon(s, 1.0)
        named, least = max(_shown(s, figures).items(), key=lambda item: item[1].lower_float)
        broken = figures["epsilon at which c breaks"].upper_float
        place = f"epsilon > {broken:.6g} with K S >= epsilon M²/c1, for c = {s.c:g}: linear losses"
        verdict, breaks = Verdict.FAILS, place
        claimed: Enclosure | None = Enclosure.of(s.epsilon)
        true: Enclosure | None = least
        needed = figures["c needed, worst pair"].lower_float
        if least.lower_float > s.epsilon:
            reason = f"epsilon of {named} is {least.lower_float:.6g}, above {s.epsilon:g}"
        elif s.c < needed:
            claimed = true = None
            reason = f"the worst pair needs c >= {needed:.6g} for epsilon = {s.epsilon:g}"
        elif case.free("epsilon"):
            claimed = true = None
            reason = f"whatever holds at epsilon = {s.epsilon:g}, c = {s.c:g} is too small above"
        else:
            # only now: where noise is far too small, this takes long
            high = _bound(s, _best_share(s))
            true = Enclosure.hull(least, Enclosure.of(high))
            verdict, breaks = Verdict.UNSPECIFIED, ""
            reason = f"neither proved nor refuted: epsilon in [{least.lower_float:.6g}, {high:.6g}]"
            if high <= s.epsilon:
                verdict, reason = Verdict.HOLDS, f"epsilon is at most {high:.6g} for any data"
        shows = linear.lower_float > s.epsilon and not s.logistic
        witness = (self._event(s),) if shows else ()
        return Finding(
            verdict,
            reason,
            claimed=claimed,
            true=true,
            unit=f"epsilon at delta {s.delta:g}",
            breaks_at=breaks or None,
            figures=figures,
            argument=_total_argument(s, figures),
            evidence=(Derivation((place,), tuple(_linear(s)), s.delta), *witness),
        )

    def _event(self, s: PsSetting) -> Counterexample:
        """The published run on linear losses; mu does not depend on K, S and M: a small one."""
        small = replace(s, K=1, S=4, M=4, zero_out=False)
        solve = PublishedPsAdmm(_rounds(small, 1, 4), _noise(small)).solve
        mu = guarantee(_linear(small), delta=s.delta).mu
        promised = Enclosure.of(s.epsilon)
        return likelihood_event(solve, _linear_pair(small), mu=mu, epsilon=promised, delta=s.delta)


def _total_argument(s: PsSetting, figures: Mapping[str, Enclosure]) -> tuple[str, ...]:
    f = {name: value.upper_float for name, value in figures.items()}
    return (
        "The full gradient enters every step unsampled. With linear losses the sampled correction "
        f"vanishes: each of K S = {s.steps} steps is a Gaussian mechanism with shift 2G/M, the run "
        "exactly mu-GDP with mu = 2 epsilon/sqrt(c ln(1/delta)), whatever K, S and M.",
        f"That needs c >= {f['c needed, linear losses']:.6g} at epsilon = {s.epsilon:g}, and as mu "
        "grows in proportion to epsilon no c serves all: this one breaks at epsilon = "
        f"{f['epsilon at which c breaks']:.6g}.",
        "A drawn record moves the gradient by up to 4G, and noise that hides 2G/M does not hide "
        f"that: the first message x^1 alone needs c >= "
        f"{f['c needed, Huber instance, first message']:.6g}, the noisy gradients at least "
        f"{f['c needed, worst pair']:.6g}; {f['c that suffices']:.6g} suffices for any data.",
        "Repair: drop the sampled correction, or release one noisy snapshot a round and sample "
        "clipped corrections.",
    )


def _gradient(s: PsSetting) -> Callable[[Table, FloatArray], FloatArray]:
    """g_i^s without lambda and the penalty's pull, which are public.

    Public input: v, the anchor, and whether the first record is drawn or the second.
    """

    def released(table: Table, public: FloatArray) -> FloatArray:
        points = public[: 2 * _FEATURES].reshape(2, _FEATURES)
        scores = table.rows @ points.T
        if s.logistic:
            slopes = -table.labels[:, None] * expit(-table.labels[:, None] * scores)
        else:
            slopes = np.clip(scores / _BEND, -1, 1)
        drawn = 0 if public[-1] >= 0 else 1
        correction = (slopes[drawn, 0] - slopes[drawn, 1]) * table.rows[drawn]
        return np.asarray(correction + slopes[:, 1] @ table.rows / len(table.rows))

    return released


def _gradient_lemma(s: PsSetting) -> SensitivityLemma:
    # more records than that change nothing but 1/M
    count = min(s.M, 10**4)
    domain = ReplacedRecord(
        count=count,
        features=_FEATURES,
        adjacency=s.relation,
        row_bound=s.G,
        public=2 * _FEATURES + 1,
        public_bound=_FAR / s.G,
    )
    return SensitivityLemma(_gradient(s), domain, 3 * s.G)


def _proved(s: PsSetting) -> tuple[Fraction, tuple[str, ...]]:
    """With a, b the gradients of a record at v and the anchor: |(a - a') - (1 - 1/M)(b - b')|."""
    records, bound = min(s.M, 10**4), Fraction(s.G)
    drawn = bound if s.logistic else bound * (2 - Fraction(1, records))
    if not s.zero_out:
        drawn *= 2
    always = (1 if s.zero_out else 2) * bound / records
    lines = (
        "not drawn: (b - b')/M, at most " + f"{float(always):.6g}",
        "drawn: (a - a') - (1 - 1/M)(b - b'), at most " + f"{float(drawn):.10g}",
    )
    return max(drawn, always), lines


def _gradient_pair(s: PsSetting, found: Falsification) -> str:
    sides = (found.pair.dataset, found.pair.neighbour)
    first, second = (np.round(side.rows[0], 6).tolist() for side in sides)
    v, anchor = np.round(found.pair.public[: 2 * _FEATURES].reshape(2, -1), 6).tolist()
    loss = "logistic" if s.logistic else f"Huber, bend {_BEND:g}"
    return (
        f"{len(sides[0].rows)} records, {loss} loss of <row, v>; the first row is {first} or "
        f"{second}, the others {np.round(sides[0].rows[1], 6).tolist()}; v = {v}, anchor {anchor}"
    )


def _gradient_argument(s: PsSetting) -> tuple[str, ...]:
    bound, _ = _proved(s)
    return (
        "Fix the history and the drawn index. If the differing record is not drawn, the gradient "
        "moves by (b - b')/M; if it is, by (a - a') - (1 - 1/M)(b - b'), where a and b are its "
        f"gradients at v and at the anchor: by up to {float(bound):.6g}.",
        "3G adds the norms of three terms, which is neither the replace-one nor the null-record "
        "sensitivity. Two nearly opposite rows that both point from the anchor to v attain 4G.",
    )


def _needed_constants(s: PsSetting) -> dict[str, Enclosure]:
    """For the regime, and for the lemma behind Theorem 1: a noise multiplier of 1 at 3G."""
    return {
        "c1": Enclosure.of(Fraction(s.epsilon) * s.M**2 / s.steps),
        "c": Enclosure.of((3 * s.M * s.epsilon) ** 2 / (s.steps * -log(s.delta))),
    }


def _constant_figures(s: PsSetting) -> dict[str, Enclosure]:
    return {
        "K S/M²": Enclosure.of(Fraction(s.steps, s.M**2)),
        "noise at this c": Enclosure.of(_noise(s)),
        "noise over 3G": Enclosure.of(_noise(s) / (3 * s.G)),
    }


@dataclass(frozen=True, slots=True)
class WeightsPromise:
    """v̂^{s+1} is a convex combination of v^s and v^{s+1}."""

    weights: InnerWeights

    def judge(self, case: Case[PsSetting]) -> Finding:
        """Look at both weights."""
        following = self.weights.of_next(case.setting.eta_nu)
        convex = 0 <= following <= 1
        reason = f"the weights are {1 - following:.6g} of v^s and {following:.6g} of v^(s+1)"
        return Finding(
            Verdict.HOLDS if convex else Verdict.FAILS,
            reason + ("" if convex else ": an extrapolation; nothing that privacy leans on"),
            figures={
                "weight of v^s": Enclosure.of(1 - following),
                "weight of v^(s+1)": Enclosure.of(following),
            },
            argument=(
                "x^{k+1} = mean of v^s + (kappa/S)(v^S - v^0), kappa = xi/(2 eta): the average "
                "runs, but Jensen's inequality in Lemma 7 has a negative weight.",
                "Repair: xi = 2 eta/(2 - eta nu), zeta = 2 eta - xi, which eta nu <= 1 allows.",
            ),
            evidence=(Derivation((reason,)),),
        )


@dataclass(frozen=True, slots=True)
class LoopPromise:
    """The inner loop computes all that the average uses.

    Args:
        used: the indices s + 1 of v̂ in the average.
        computed: those that the loop sets.
    """

    used: Callable[[PsSetting], range]
    computed: Callable[[PsSetting], range]

    def judge(self, case: Case[PsSetting]) -> Finding:
        """Compare the indices."""
        used, computed = self.used(case.setting), self.computed(case.setting)
        missing = [index for index in used[:2] if index not in computed]
        missing += [index for index in used[-2:] if index not in computed]
        reason = f"the loop sets v̂^s for s = {computed.start}, ..., {computed.stop - 1}"
        if missing:
            reason += f", the average also uses v̂^{missing[0]}"
        draws = f"{len(computed)} noises a round; Theorem 2 counts {case.setting.S}"
        return Finding(
            Verdict.FAILS if missing else Verdict.HOLDS,
            reason,
            argument=(draws, "Least change: s = 0, ..., S - 1; the first correction is zero."),
            evidence=(Derivation((reason, draws)),),
        )


def _provider_pair(s: PsSetting) -> NeighbourPair:
    """Two providers with three records each; the first one's first record differs."""
    dataset = PrivateDataset(
        np.full((6, _FEATURES), s.G / 2),
        np.ones(6),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=s.G,
        party_of=np.repeat([0, 1], 3),
        parties=("provider 0", "provider 1"),
    )
    return opposite_gradients(dataset, index=0, loss=LinearLoss())


def _published(s: PsSetting) -> Callable[[PrivateDataset, Curator], object]:
    return PublishedPsAdmm(_rounds(s, min(s.K, 3), min(s.S, 4)), s.G).solve


def _classical_step(s: PsSetting) -> list[Event]:
    """Definition 2: noise of sqrt(2 ln(1.25/delta))/epsilon sensitivities."""
    unit = declared(1, "the unit of noise", adjacency=s.relation)
    return [replace(_linear(s)[0], mechanism=GaussianStep(unit, float(_slope(s) / s.epsilon)))]


def _classical_attack(case: Case[PsSetting]) -> Attack:
    """At a large epsilon, where Definition 2 breaks; at the user's where one is fixed."""
    s = replace(case.at(epsilon=10.0).setting, K=1, S=1, M=4, zero_out=False)
    told = f"one release of four records with Definition 2's noise for epsilon = {s.epsilon:g}"
    solve = PsAdmm(_rounds(s, 1, 1), float(_slope(s) / s.epsilon)).solve
    return Attack(solve, _linear_pair(s), s.epsilon, s.delta, told)


def _slope(s: PsSetting) -> float:
    """sqrt(2 ln(1.25/delta)), by which Definition 2 multiplies mu."""
    with precision(_BITS):
        return Enclosure.from_ball(_slope_ball(s)).upper_float


def _slope_ball(s: PsSetting) -> arb:
    return (2 * (ball_of(Fraction(5, 4)) / ball_of(s.delta)).log()).sqrt()


def _classical_breaks(s: PsSetting) -> Enclosure:
    with precision(_BITS):
        slope = Enclosure.from_ball(_slope_ball(s))
    mu = critical_mu(slope, s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(mu) * ball_of(slope))


def _epsilons(case: Case[PsSetting]) -> list[PsSetting]:
    grid = (case.setting.epsilon, 0.1, 1.0, 5.0, 10.0)
    return list(dict.fromkeys(case.at(epsilon=epsilon).setting for epsilon in grid))


def _step_size(_: PsSetting, rows: FloatArray) -> str:
    """Theorem 3's condition on eta, of the records: mu_f is their least curvature at 0."""
    curvatures = np.linalg.eigvalsh(rows.T @ rows / len(rows)) / 4
    least, greatest = float(curvatures[0]), float(curvatures[-1])
    return f"eta <= {least / (8 * greatest**2 + 2 * least * greatest):.6g}"


def _few_rows(_: PsSetting) -> tuple[FloatArray, FloatArray]:
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.6, 0.8]])
    return rows, np.vstack([rows[:-1], [[0.6, 0.0]]])


def _repaired_multiplier(s: PsSetting) -> float:
    """sqrt(K S)/mu for the whole run's (epsilon, delta), rounded up."""
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(s.steps).sqrt() / ball_of(mu)).upper_float


def _repaired_attack(case: Case[PsSetting]) -> Attack:
    """A small run: the noise multiplier follows K S, so that its epsilon is the whole run's."""
    s = replace(case.setting, K=2, S=5, M=4, zero_out=False)
    told = f"K = {s.K}, S = {s.S}, four records, epsilon = {s.epsilon:g} in all"
    solve = PsAdmm(_rounds(s, s.K, s.S), _repaired_multiplier(s)).solve
    return Attack(solve, _linear_pair(s), s.epsilon, s.delta, told)


def _repaired(s: PsSetting) -> list[Event]:
    """R-A: K S full gradients, noise in units of their sensitivity."""
    (event,) = planned(PsAdmm(_rounds(s, 1, 1), _repaired_multiplier(s)).solve, s.shape)
    assert isinstance(event.mechanism, GaussianStep)
    return _events(s, event.mechanism)


def _sampled_counts(s: PsSetting) -> dict[Mechanism, int]:
    """R-B: K snapshots and K (S - 1) corrections of a Poisson sample; records are made null."""
    null = replace(s, zero_out=True)
    algorithm = SampledPsAdmm(
        _rounds(null, 1, 2),
        Poisson(s.q),
        correction_bound=s.G,
        snapshot_noise_multiplier=s.sigma_u * s.M / s.G,
        correction_noise_multiplier=s.z,
    )
    snapshot, correction = planned(algorithm.solve, null.shape)
    return {snapshot.mechanism: s.K, correction.mechanism: s.K * (s.S - 1)}


def _repair_figures(s: PsSetting) -> dict[str, Enclosure]:
    (event,) = _repaired(s)
    assert isinstance(event.mechanism, Repeated)
    assert isinstance(event.mechanism.event, GaussianStep)
    figures = {"sigma": Enclosure.of(event.mechanism.event.noise_std)}
    if s.S > 1:
        counts, relation = _sampled_counts(s), Adjacency.ZERO_OUT_ONE
        by_order = {
            order: PrivacyProfile.of_pairs(pairs_of(counts, relation, order)).epsilon_upper(s.delta)
            for order in (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)
        }
        figures["epsilon of R-B, one record added"] = Enclosure.of(by_order[Order.MIXTURE_SECOND])
        figures["epsilon of R-B"] = Enclosure.of(max(by_order.values()))
    return figures


_claim = partial(
    Claim,
    solver="PS-ADMM (Algorithm 2)",
    adjacency=Adjacency.REPLACE_ONE,
    threat_model=ThreatModel.ALL_MESSAGES,
)


PAPER = Paper(
    name="ps-admm",
    title="Ding, Errapotu, Zhang, Gong, Pan, Han 2019: PS-ADMM with stochastic steps",
    setting=PsSetting(),
    claims=(
        _claim(
            "PS-1",
            "sensitivity of a stochastic gradient",
            "the sensitivity of g_i^s is at most 3G",
            "section 3, before Theorem 2",
            LemmaPromise(
                _gradient_lemma,
                described=_gradient_pair,
                proved=_proved,
                argument=_gradient_argument,
            ),
        ),
        _claim(
            "PS-2",
            "constants",
            "there are c1 and c such that for epsilon <= c1 K S/M² noise of variance "
            "c G² K S ln(1/delta)/(M² epsilon²) gives (epsilon, delta)-DP",
            "Theorems 1 and 2",
            ConstantsPromise(("c1", "c"), needed=_needed_constants, figures=_constant_figures),
            not_attacked="it names no constants; with constants its promise is that of PS-3, "
            "which is attacked",
        ),
        _claim(
            "PS-3",
            "the whole run",
            "with variance c G² K S ln(1/delta)/(M² epsilon²), c a constant, PS-ADMM is (epsilon, "
            "delta)-DP for all epsilon <= c1 K S/M²",
            "Theorem 2",
            TotalPromise(_total_figures),
        ),
        _claim(
            "PS-4",
            "the average of iterates",
            "v̂^{s+1} = (zeta v^s + xi v^{s+1})/(2 eta), xi = 4 eta/(1 - 2 eta nu), zeta = 2 eta - "
            "xi, is a convex combination",
            "Algorithm 2, line 12; Lemma 7",
            WeightsPromise(PrintedWeights()),
            adjacency=None,
            threat_model=ThreatModel.NONE,
            not_attacked="it promises nothing about privacy: whatever its weights, the average is "
            "computed from noisy gradients that are priced one by one",
        ),
        _claim(
            "PS-5",
            "the inner loop",
            "for s = 1, ..., S - 1 the loop sets v̂^{s+1}; x^{k+1} is the mean of v̂^1, ..., v̂^S",
            "Algorithm 2, lines 7 to 14",
            LoopPromise(lambda s: range(1, s.S + 1), lambda s: range(s.first_step + 1, s.S + 1)),
            adjacency=None,
            threat_model=ThreatModel.NONE,
            not_attacked="as printed it averages what it never computes, so that nothing runs; "
            "read from s = 0 it is the algorithm that PS-3 and PS-6 run",
        ),
        _claim(
            "PS-6",
            "what is released",
            "all messages and the final model are functions of the noisy gradients",
            "Algorithm 2",
            MessagesOnlyPromise(_published, pair=_provider_pair),
        ),
        _claim(
            "PS-7",
            "the Gaussian mechanism",
            "noise sigma >= sqrt(2 ln(1.25/delta)) Delta/epsilon is (epsilon, delta)-DP",
            "Definition 2",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_classical_step,
                cases=_epsilons,
                broken=lambda s: f"epsilon > {_classical_breaks(s).upper_float:.6g}",
                figures=lambda s: {"epsilon at which it breaks": _classical_breaks(s)},
            ),
            attack=_classical_attack,
        ),
        _claim(
            "PS-8",
            "step sizes",
            "eta, from mu_f and nu_f, and K are public",
            "Theorems 3 and 4",
            PublicPromise(
                _step_size,
                rows=_few_rows,
                argument=lambda _: (
                    "mu_f, the strong convexity of the data term, is a function of the records.",
                    "Logistic loss without a regulariser has mu_f = 0: no eta > 0 is admissible.",
                ),
            ),
        ),
        _claim(
            "PS-R",
            "the repair",
            "R-A: full gradients at every step, noise of sqrt(K S)/mu*(epsilon, delta) "
            "sensitivities: the whole run is (epsilon, delta)-DP",
            "ours",
            EpsilonPromise(
                lambda s: Enclosure.of(s.epsilon),
                delta=lambda s: s.delta,
                plan=_repaired,
                figures=_repair_figures,
            ),
            solver="PS-ADMM, repaired",
            attack=_repaired_attack,
        ),
    ),
    sweeps=(
        Sweep(
            "PS-3",
            "c, the constant of Theorem 2",
            (1, 1.25, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10),
            at=lambda s, c: replace(s, c=c),
            claimed=lambda s: Enclosure.of(s.epsilon),
            certified=lambda s: _linear_epsilon(s, 1.0),
            caption="Linear losses alone, whose gradients are not sampled at all: a lower bound on "
            "what any data may cost.",
        ),
        Sweep(
            "PS-7",
            "claimed epsilon",
            (0.1, 0.5, 1, 2, 3, 4, 5, 6, 7, 7.5, 8, 9, 10, 12),
            at=lambda s, epsilon: replace(s, epsilon=float(epsilon)),
            claimed=lambda s: Enclosure.of(s.epsilon),
            certified=lambda s: guarantee(_classical_step(s), delta=s.delta).epsilon,
            caption="One release with Definition 2's noise.",
        ),
    ),
)
