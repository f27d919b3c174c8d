"""The rule for tight (ε, δ) of sampled Gaussian steps; ε and the checker's grid are witnesses."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nextafter

from ....mechanisms.events import (
    GaussianStep,
    Mechanism,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from ....mechanisms.sensitivity import Norm
from ...numbers.enclosure import ball_of
from ...numbers.notions import ApproxDp
from ...pld import PrivacyProfile
from ..judgement import Exposure, Priv, RuleViolation, Sens, written
from .privacy import conclude, ratio_squared
from .registry import ANY, rule
from .sampling import HIDDEN_SAMPLE, fixed_batch_sensitivity, poisson_sensitivity

__all__ = ["Grid", "loss_distribution"]


@dataclass(frozen=True, slots=True)
class Grid:
    """How to recompute: losses up to `reach` steps from zero, masses in multiples of 2^-bits."""

    step: Fraction
    reach: int
    bits: int


def _sensitivity(mechanism: Mechanism) -> tuple[Sens, frozenset[str]]:
    """Return the sensitivity of one step under its rule's side conditions, and what it assumes."""
    match mechanism:
        case Repeated():
            return _sensitivity(mechanism.event)
        case GaussianStep():
            sens, _, declared = ratio_squared(mechanism.sensitivity, mechanism.noise_std, Norm.L2)
            return sens, declared
        case PoissonSampled():
            sens, _, declared = poisson_sensitivity(mechanism)
            return sens, declared | {HIDDEN_SAMPLE}
        case SampledWithoutReplacement():
            sens, _, declared = fixed_batch_sensitivity(mechanism)
            return sens, declared | {HIDDEN_SAMPLE}
        case _:
            raise RuleViolation(
                f"Expected Gaussian steps, sampled or not, instead got {mechanism}."
            )


def _float_down(x: Fraction) -> float:
    near = float(x)
    return near if Fraction(near) <= x else nextafter(near, 0.0)


@rule(
    "loss-distribution",
    source="Zhu, Dong, Wang 2022, Theorems 10 and 11",
    axioms={ANY: "Zhu, Dong, Wang 2022, Theorems 10 and 11 (dominating pairs)"},
)
def loss_distribution(
    parts: Sequence[tuple[Mechanism, int]], *, grid: Grid, delta: Fraction, epsilon: Fraction
) -> Priv:
    """Gaussian steps, on samples or not, composed without loss. P, Q: N(μ, 1), N(0, 1), μ = Δ/σ.

    m_i: side conditions of gaussian-gdp, poisson-rdp (rate q) or fixed-batch-rdp (share q)
    pairs ((1-q)Q + qP, Q) and (Q, (1-q)Q + qP) composed, each by itself; under replace-one the
    pair glued at zero loss from H_γ((1-q)Q + qP ‖ Q), γ ≥ 1, and H_γ(P ‖ (1-q)P + qQ), γ < 1
    E[(1 - e^(ε - L))⁺] ≤ δ for the loss L of each composed pair    ε ≥ 0
    ------------------------------------------------------------------------  loss-distribution
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ))
    """
    if not parts or any(n < 1 for _, n in parts):
        raise RuleViolation("Expected at least one mechanism, each at least once.")
    known = [_sensitivity(mechanism) for mechanism, _ in parts]
    adjacency = known[0][0].adjacency
    if any(sens.adjacency is not adjacency for sens, _ in known):
        raise RuleViolation("Expected one relation for all mechanisms.")
    # a smaller delta asks for more epsilon
    least = PrivacyProfile.of(dict(parts), adjacency).epsilon(_float_down(delta))
    if not least.upper <= ball_of(epsilon):
        raise RuleViolation(f"Expected epsilon={float(epsilon)} above the tight {least}.")
    return conclude(
        "loss-distribution",
        Exposure.of({written(mechanism): n for mechanism, n in parts}),
        adjacency,
        ApproxDp(epsilon, delta),
        assumptions=frozenset[str]().union(*(assumed for _, assumed in known)),
        parameters={
            "parts": tuple(parts),
            "step": grid.step,
            "reach": grid.reach,
            "bits": grid.bits,
            "delta": delta,
            "epsilon": epsilon,
        },
    )
