"""Rules that end in (ε, δ). The witnesses are found by fast code; a rule verifies one inequality.

Comparisons are of enclosures: what cannot be decided raises `Undecided`.
"""

from fractions import Fraction

from ...conversions import epsilon_from_rdp
from ...gaussian.exact import delta_from_epsilon
from ...numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from ..judgement import Priv, RuleViolation
from .privacy import conclude
from .registry import ANY, rule

__all__ = ["gdp_approx_dp", "rdp_approx_dp", "zcdp_rdp"]


def _converted(name: str, premise: Priv, notion: Rdp | ApproxDp, **witness: Fraction) -> Priv:
    return conclude(
        name,
        premise.subject,
        premise.adjacency,
        notion,
        group=premise.group,
        premises=(premise,),
        parameters=witness,
    )


def _require_delta(delta: Fraction) -> None:
    if not 0 < delta < 1:
        raise RuleViolation(f"delta={delta} must be in (0, 1).")


@rule("zcdp-rdp", source="Bun, Steinke 2016, Definition 1.1")
def zcdp_rdp(premise: Priv, order: Fraction) -> Priv:
    """zCDP read at one order.

    Priv(m, Zcdp(ρ))    α > 1
    ---------------------------  zcdp-rdp
    Priv(m, Rdp(α, αρ))
    """
    if not isinstance(premise.notion, Zcdp) or order <= 1:
        raise RuleViolation(f"Expected zCDP and order={order} in (1, inf), got {premise}.")
    return _converted("zcdp-rdp", premise, Rdp(order, order * premise.cost), order=order)


@rule(
    "rdp-approx-dp",
    source="Canonne, Kamath, Steinke 2020, Proposition 12",
    coq=("rdp_to_dp",),
)
def rdp_approx_dp(premise: Priv, *, delta: Fraction, epsilon: Fraction) -> Priv:
    """Rényi DP at one order to (ε, δ); ε is a witness.

    Priv(m, Rdp(α, τ))    (α-1)(ε-τ) ≥ ln(1/δ) + (α-1) ln(1-1/α) - ln α    ε ≥ 0
    ------------------------------------------------------------------------------  rdp-approx-dp
    Priv(m, ApproxDp(ε, δ))
    """
    _require_delta(delta)
    if not isinstance(premise.notion, Rdp):
        raise RuleViolation(f"Expected Rényi DP instead got {premise}.")
    order = Fraction(premise.notion.order)
    if not epsilon_from_rdp(order=order, rdp=premise.cost, delta=delta) <= epsilon:
        raise RuleViolation(f"epsilon={float(epsilon)} must be above the conversion's.")
    notion = ApproxDp(epsilon, delta)
    return _converted("rdp-approx-dp", premise, notion, delta=delta, epsilon=epsilon)


@rule(
    "gdp-approx-dp",
    source="Balle, Wang 2018, Theorem 8",
    coq=("profile_dp",),
    axioms={ANY: "Balle, Wang 2018, Theorem 8 (delta of GDP)"},
)
def gdp_approx_dp(premise: Priv, *, delta: Fraction, epsilon: Fraction) -> Priv:
    """GDP to (ε, δ) without loss; ε is a witness.

    Priv(m, Gdp(μ²))    Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) ≤ δ    ε ≥ 0
    --------------------------------------------------------------------  gdp-approx-dp
    Priv(m, ApproxDp(ε, δ))
    """
    _require_delta(delta)
    if not isinstance(premise.notion, Gdp):
        raise RuleViolation(f"Expected GDP instead got {premise}.")
    if not delta_from_epsilon(mu_squared=premise.cost, epsilon=epsilon) <= delta:
        raise RuleViolation(f"Expected delta(epsilon={float(epsilon)}) <= {float(delta)}.")
    notion = ApproxDp(epsilon, delta)
    return _converted("gdp-approx-dp", premise, notion, delta=delta, epsilon=epsilon)
