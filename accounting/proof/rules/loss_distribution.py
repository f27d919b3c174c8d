"""The rule for tight (ε, δ) from the distribution of the privacy loss; ε and grid are witnesses."""

from fractions import Fraction

from ....mechanisms.adjacency import Adjacency
from ....mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
)
from ....mechanisms.sensitivity import Norm
from ...numbers.notions import ApproxDp
from ...renyi.amplification import HIDDEN_SAMPLE
from ..judgement import Exposure, Priv, RuleViolation, Sens, written
from ..losses import Composed, LossGrid, TooFine, delta_upper
from .privacy import conclude, ratio_squared
from .registry import ANY, rule
from .sampling import require_fixed_batch, require_poisson

__all__ = ["loss_conditions", "privacy_loss"]

_DRAWN = "Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (mixtures of Gaussian shifts)"


def loss_conditions(mechanism: Mechanism) -> tuple[Adjacency, frozenset[str]]:
    """Return the relation of a mechanism that has a dominating pair, and what that assumes.

    Raises `RuleViolation` if it has none here, or its side conditions do not hold.
    """
    match mechanism:
        case Repeated():
            return loss_conditions(mechanism.event)
        case PoissonSampled():
            sens, declared = _noise(mechanism.event)
            require_poisson(sens)
            return sens.adjacency, declared | {HIDDEN_SAMPLE}
        case SampledWithoutReplacement():
            sens, declared = _noise(mechanism.event)
            require_fixed_batch(sens)
            return sens.adjacency, declared | {HIDDEN_SAMPLE}
        case GaussianMixtureStep(constant=constant, sampled=sampled, noise_std=noise_std):
            always, _, known = ratio_squared(constant, noise_std, Norm.L2)
            drawn, _, more = ratio_squared(sampled, noise_std, Norm.L2)
            if drawn.adjacency is not Adjacency.REPLACE_ONE:
                require_poisson(drawn)
            return always.adjacency, known | more | {HIDDEN_SAMPLE}
        case RandomisedResponse(truth=truth):
            if truth in (0, 1):
                raise RuleViolation("Expected answers that exclude no other.")
            return Adjacency.REPLACE_ONE, frozenset()
        case GaussianStep() | LaplaceStep() | DiscreteGaussianStep() | DiscreteLaplaceStep():
            sens, declared = _noise(mechanism)
            return sens.adjacency, declared
        case _:
            raise RuleViolation(f"no loss distribution of {mechanism}.")


def _noise(
    step: GaussianStep | LaplaceStep | DiscreteGaussianStep | DiscreteLaplaceStep,
) -> tuple[Sens, frozenset[str]]:
    match step:
        case GaussianStep() | DiscreteGaussianStep():
            sens, _, declared = ratio_squared(step.sensitivity, step.noise_std, Norm.L2)
        case LaplaceStep() | DiscreteLaplaceStep():
            sens, _, declared = ratio_squared(step.sensitivity, step.scale, Norm.L1)
    return sens, declared


@rule(
    "privacy-loss",
    source="Zhu, Dong, Wang 2022, Theorems 10 and 11",
    axioms={ANY: "Zhu, Dong, Wang 2022, Theorems 10 and 11 (dominating pairs)"},
)
def privacy_loss(composed: Composed, *, grid: LossGrid, delta: Fraction, epsilon: Fraction) -> Priv:
    """Mechanisms composed by the distributions of their privacy losses. P, Q: a dominating pair.

    m_i: dominated by (P_i, Q_i); sampled with probability q: by (1-q)Q + qP and Q
    pairs ((1-q)Q + qP, Q) and (Q, (1-q)Q + qP) composed, each by itself; under replace-one the
    pair symmetrised at zero loss from H_γ((1-q)Q + qP ‖ Q), γ ≥ 1, and H_γ(P ‖ (1-q)P + qQ), γ < 1
    groups of k: k times the shift; of a Poisson sample with Gaussian noise as many as are drawn
    E[(1 - e^(ε - L))⁺] ≤ δ for the loss L of each composed pair    ε ≥ 0
    ------------------------------------------------------------------------  privacy-loss
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ))
    """
    parts = composed.parts
    if not parts or any(n < 1 for _, n, _ in parts):
        raise RuleViolation("Expected at least one mechanism, each at least once.")
    known = [loss_conditions(mechanism) for mechanism, _, _ in parts]
    if any(other is not composed.adjacency for other, _ in known):
        raise RuleViolation("Expected one relation for all mechanisms.")
    try:
        found = delta_upper(composed, grid, epsilon)
    except TooFine as error:
        raise RuleViolation(f"Expected a grid that fits: {error}") from None
    if found > delta:
        raise RuleViolation(f"delta={float(delta)} must be of at least {float(found)}.")
    return conclude(
        "privacy-loss",
        Exposure.of({written(mechanism): n for mechanism, n, _ in parts}),
        composed.adjacency,
        ApproxDp(epsilon, delta),
        group=composed.group,
        assumptions=frozenset[str]().union(*(assumed for _, assumed in known)),
        axioms=frozenset({_DRAWN}) if composed.draws_shifts else frozenset(),
        parameters={
            "parts": parts,
            "shares": composed.shares,
            "group": composed.group,
            "step": grid.step,
            "doublings": grid.doublings,
            "dense": grid.dense,
            "digits": grid.digits,
            "cut": Fraction(grid.cut),
            "delta": delta,
            "epsilon": epsilon,
        },
    )
