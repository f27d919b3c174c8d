"""Rules for Gaussian steps on hidden samples, at whole Rényi orders; ε is a witness."""

from fractions import Fraction
from math import comb

from flint import arb

from ....mechanisms.adjacency import Adjacency
from ....mechanisms.events import GaussianStep, PoissonSampled, SampledWithoutReplacement
from ....mechanisms.sensitivity import Norm
from ...numbers.enclosure import Enclosure, ball_of, precision
from ...numbers.notions import Rdp
from ...renyi.amplification import HIDDEN_SAMPLE, MEANS
from ..judgement import Exposure, Priv, RuleViolation, Sens, written
from .privacy import conclude, ratio_squared
from .registry import ANY, rule

__all__ = [
    "MAX_ORDER",
    "fixed_batch_divergence",
    "fixed_batch_rdp",
    "fixed_batch_sensitivity",
    "poisson_divergence",
    "poisson_rdp",
    "poisson_sensitivity",
    "require_fixed_batch",
    "require_poisson",
]

MAX_ORDER = 512
_BITS = 192


def poisson_divergence(ratio: Fraction, rate: Fraction, order: int) -> Enclosure:
    """Return the Rényi divergence of the sampled Gaussian, `ratio` = (sensitivity / noise_std)²."""
    with precision(_BITS):
        q, half = ball_of(rate), ball_of(ratio) / 2
        moment = arb(0)
        for k in range(order + 1):
            weight = comb(order, k) * (1 - q) ** (order - k) * q**k
            moment += weight * (half * (k * (k - 1))).exp()
        return _divergence(moment, order)


def fixed_batch_divergence(ratio: Fraction, share: Fraction, order: int) -> Enclosure:
    """Return the published bound for a fixed batch, `share` = batch / records."""
    with precision(_BITS):
        g, half = ball_of(share), ball_of(ratio) / 2
        second = (2 * half).exp()
        pair = min(4 * (second - 1), 2 * second, key=lambda bound: float(bound.mid()))
        moment = 1 + g**2 * comb(order, 2) * pair
        for j in range(3, order + 1):
            moment += 2 * g**j * comb(order, j) * (half * (j * (j - 1))).exp()
        return _divergence(moment, order)


def _divergence(moment: arb, order: int) -> Enclosure:
    found = Enclosure.from_ball(moment.log() / (order - 1))
    return found if found.lower >= 0 else Enclosure(arb(0), found.upper.max(arb(0)))


def _require_order(order: int) -> None:
    if not 2 <= order <= MAX_ORDER:
        raise RuleViolation(f"order={order} must be in [2, {MAX_ORDER}].")


def _sampled(
    name: str,
    mechanism: PoissonSampled | SampledWithoutReplacement,
    sens: Sens,
    declared: frozenset[str],
    order: int,
    epsilon: Fraction,
) -> Priv:
    return conclude(
        name,
        Exposure.of({written(mechanism): 1}),
        sens.adjacency,
        Rdp(order, epsilon),
        assumptions=declared | {HIDDEN_SAMPLE},
        parameters={"mechanism": mechanism, "order": order, "epsilon": epsilon},
    )


def _gaussian_event(mechanism: PoissonSampled | SampledWithoutReplacement) -> GaussianStep:
    if not isinstance(mechanism.event, GaussianStep):
        raise RuleViolation(f"Expected a sampled Gaussian step instead got {mechanism.event}.")
    return mechanism.event


def poisson_sensitivity(mechanism: PoissonSampled) -> tuple[Sens, Fraction, frozenset[str]]:
    """Return what `ratio_squared` does, under the side conditions of Poisson sampling."""
    step = _gaussian_event(mechanism)
    sens, ratio, declared = ratio_squared(step.sensitivity, step.noise_std, Norm.L2)
    require_poisson(sens)
    return sens, ratio, declared


def require_poisson(sens: Sens) -> None:
    """Raise `RuleViolation` unless a Poisson sample of this quantity amplifies."""
    if sens.adjacency not in (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE):
        raise RuleViolation(f"Expected {sens.adjacency} to be add/remove or zero-out.")
    if sens.adjacency is Adjacency.ADD_REMOVE_ONE and sens.rules & MEANS:
        raise RuleViolation("Expected a sum divided by public numbers, not a renormalised mean.")


def fixed_batch_sensitivity(
    mechanism: SampledWithoutReplacement,
) -> tuple[Sens, Fraction, frozenset[str]]:
    """Return what `ratio_squared` does, under the side conditions of a fixed batch."""
    step = _gaussian_event(mechanism)
    sens, ratio, declared = ratio_squared(step.sensitivity, step.noise_std, Norm.L2)
    require_fixed_batch(sens)
    return sens, ratio, declared


def require_fixed_batch(sens: Sens) -> None:
    """Raise `RuleViolation` unless a fixed batch amplifies under this relation."""
    if sens.adjacency is not Adjacency.REPLACE_ONE:
        raise RuleViolation(f"Expected {sens.adjacency} to be replace-one.")


@rule(
    "poisson-rdp",
    source="Mironov, Talwar, Zhang 2019, Theorems 4 and 5, section 3.3",
    axioms={ANY: "Mironov, Talwar, Zhang 2019, Theorems 4 and 5 (Poisson sampling)"},
)
def poisson_rdp(mechanism: PoissonSampled, *, order: int, epsilon: Fraction) -> Priv:
    """A Gaussian step on a Poisson sample.

    Sens(f, Δ²)    add/remove or zero-out    sample hidden, drawn with rate q
    under add/remove f divides by public numbers only    α in 2, 3, ...
    Σ_k C(α,k) q^k (1-q)^(α-k) e^(k(k-1)Δ²/(2σ²)) ≤ e^((α-1)ε)
    ---------------------------------------------------------------------------  poisson-rdp
    Priv(PoissonSampled(f + N(0, σ²), q), Rdp(α, ε))
    """
    _require_order(order)
    sens, ratio, declared = poisson_sensitivity(mechanism)
    if not poisson_divergence(ratio, Fraction(mechanism.rate), order) <= epsilon:
        raise RuleViolation(f"epsilon={float(epsilon)} must be above the divergence.")
    return _sampled("poisson-rdp", mechanism, sens, declared, order, epsilon)


@rule(
    "fixed-batch-rdp",
    source="Wang, Balle, Kasiviswanathan 2019, Theorem 9",
    axioms={ANY: "Wang, Balle, Kasiviswanathan 2019, Theorem 9 (sampling a fixed batch)"},
)
def fixed_batch_rdp(mechanism: SampledWithoutReplacement, *, order: int, epsilon: Fraction) -> Priv:
    """A Gaussian step on a batch of fixed size; ε_j = jΔ²/(2σ²), γ = batch / records.

    Sens(f, Δ²)    replace-one    batch hidden, uniform    α in 2, 3, ...
    1 + γ²C(α,2) min(4(e^ε₂-1), 2e^ε₂) + Σ_(j≥3) 2γ^j C(α,j) e^((j-1)ε_j) ≤ e^((α-1)ε)
    --------------------------------------------------------------------------  fixed-batch-rdp
    Priv(SampledWithoutReplacement(f + N(0, σ²), batch, records), Rdp(α, ε))
    """
    _require_order(order)
    sens, ratio, declared = fixed_batch_sensitivity(mechanism)
    share = Fraction(mechanism.batch, mechanism.records)
    if not fixed_batch_divergence(ratio, share, order) <= epsilon:
        raise RuleViolation(f"epsilon={float(epsilon)} must be above the divergence.")
    return _sampled("fixed-batch-rdp", mechanism, sens, declared, order, epsilon)
