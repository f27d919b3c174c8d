"""The rule for tight (ε, δ) from the distribution of the privacy loss; ε and grid are witnesses."""

from collections.abc import Sequence
from fractions import Fraction

from ....mechanisms.adjacency import Adjacency
from ....mechanisms.events import (
    GaussianStep,
    Mechanism,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from ....mechanisms.sensitivity import Norm
from ...numbers.notions import ApproxDp
from ..judgement import Exposure, Priv, RuleViolation, Sens, written
from ..losses import LossGrid, TooFine, delta_upper
from .privacy import conclude, ratio_squared
from .registry import ANY, rule
from .sampling import HIDDEN_SAMPLE, fixed_batch_sensitivity, poisson_sensitivity

__all__ = ["loss_conditions", "privacy_loss"]


def loss_conditions(mechanism: Mechanism) -> tuple[Adjacency, frozenset[str]]:
    """Return the relation of a mechanism that has a dominating pair, and what that assumes.

    Raises `RuleViolation` if it has none here, or its side conditions do not hold.
    """
    sens: Sens
    match mechanism:
        case Repeated():
            return loss_conditions(mechanism.event)
        case GaussianStep():
            sens, _, declared = ratio_squared(mechanism.sensitivity, mechanism.noise_std, Norm.L2)
            return sens.adjacency, declared
        case PoissonSampled():
            sens, _, declared = poisson_sensitivity(mechanism)
            return sens.adjacency, declared | {HIDDEN_SAMPLE}
        case SampledWithoutReplacement():
            sens, _, declared = fixed_batch_sensitivity(mechanism)
            return sens.adjacency, declared | {HIDDEN_SAMPLE}
        case _:
            raise RuleViolation(
                f"Expected Gaussian steps, sampled or not, instead got {mechanism}."
            )


@rule(
    "privacy-loss",
    source="Zhu, Dong, Wang 2022, Theorems 10 and 11",
    axioms={ANY: "Zhu, Dong, Wang 2022, Theorems 10 and 11 (dominating pairs)"},
)
def privacy_loss(
    parts: Sequence[tuple[Mechanism, int, int]],
    *,
    grid: LossGrid,
    delta: Fraction,
    epsilon: Fraction,
) -> Priv:
    """Mechanisms composed by the distributions of their privacy losses. P, Q: a dominating pair.

    m_i: dominated by (P_i, Q_i); sampled with probability q: by (1-q)Q + qP and Q
    pairs ((1-q)Q + qP, Q) and (Q, (1-q)Q + qP) composed, each by itself; under replace-one the
    pair glued at zero loss from H_γ((1-q)Q + qP ‖ Q), γ ≥ 1, and H_γ(P ‖ (1-q)P + qQ), γ < 1
    E[(1 - e^(ε - L))⁺] ≤ δ for the loss L of each composed pair    ε ≥ 0
    ------------------------------------------------------------------------  privacy-loss
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ))
    """
    if not parts or any(n < 1 for _, n, _ in parts):
        raise RuleViolation("Expected at least one mechanism, each at least once.")
    known = [loss_conditions(mechanism) for mechanism, _, _ in parts]
    adjacency = known[0][0]
    if any(other is not adjacency for other, _ in known):
        raise RuleViolation("Expected one relation for all mechanisms.")
    try:
        found = delta_upper(tuple(parts), adjacency, grid, epsilon)
    except TooFine as error:
        raise RuleViolation(f"Expected a grid that fits: {error}") from None
    if found > delta:
        raise RuleViolation(f"delta={float(delta)} must be of at least {float(found)}.")
    return conclude(
        "privacy-loss",
        Exposure.of({written(mechanism): n for mechanism, n, _ in parts}),
        adjacency,
        ApproxDp(epsilon, delta),
        assumptions=frozenset[str]().union(*(assumed for _, assumed in known)),
        parameters={
            "parts": tuple(parts),
            "step": grid.step,
            "doublings": grid.doublings,
            "dense": grid.dense,
            "digits": grid.digits,
            "cut": Fraction(grid.cut),
            "delta": delta,
            "epsilon": epsilon,
        },
    )
