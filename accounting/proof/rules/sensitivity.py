"""Rules for sensitivities: each step of a derivation is derived again, from its parameters.

`derive` walks the tree that `mechanisms.sensitivity` left behind and believes none of its numbers.
A stated square may exceed what its rule gives (long fractions are rounded up), never fall below.
"""

from collections.abc import Callable
from fractions import Fraction

from ....mechanisms.adjacency import Adjacency
from ....mechanisms.sensitivity import Derivation, Norm, Sensitivity
from ...renyi.amplification import MEANS
from ..judgement import _RULES_ONLY, RuleViolation, Sens
from .registry import rule

__all__ = ["derive"]

"""Rules that divide by a number of records, which under add/remove is not public."""

_L2_ONLY = MEANS | {
    "sum-of-bounded",
    "clip",
    "concatenation",
    "vertical-predictions",
    "label-dual",
    "lattice",
}
_Premises = tuple[Fraction, ...]


def derive(sensitivity: Sensitivity) -> Sens:
    """Return the judgement that a sensitivity's derivation tree proves, or raise RuleViolation."""
    tree = sensitivity.derivation
    squared = _step(tree, sensitivity.norm, sensitivity.adjacency)
    nodes = list(_nodes(tree))
    if squared > sensitivity.squared:
        raise RuleViolation(f"Expected squared >= {squared} instead got {sensitivity.squared}.")
    return Sens(
        sensitivity.norm,
        sensitivity.adjacency,
        sensitivity.squared,
        frozenset(node.rule for node in nodes),
        frozenset(sensitivity.assumptions),
        _RULES_ONLY,
    )


def _nodes(tree: Derivation) -> list[Derivation]:
    return [tree, *(node for premise in tree.premises for node in _nodes(premise))]


def _step(node: Derivation, norm: Norm, adjacency: Adjacency) -> Fraction:
    if node.rule not in _STEPS:
        raise RuleViolation(f"rule={node.rule!r} must be in {sorted(_STEPS)}.")
    if node.rule in _L2_ONLY and norm is not Norm.L2:
        raise RuleViolation(f"Expected {node.rule} in the l2 norm instead got {norm.value}.")
    premises = tuple(_step(premise, norm, adjacency) for premise in node.premises)
    numbers = {k: v for k, v in node.parameters if isinstance(v, Fraction)}
    try:
        least = _STEPS[node.rule](adjacency, *premises, **numbers)
    except TypeError as error:
        raise RuleViolation(
            f"Expected the parameters and premises of {node.rule}: {error}."
        ) from None
    if node.squared < least:
        raise RuleViolation(f"{node.rule}: expected >= {least} instead got {node.squared}.")
    return node.squared


def _nonnegative(**numbers: Fraction) -> None:
    for name, number in numbers.items():
        if number < 0:
            raise RuleViolation(f"{name}={number} must be in [0, inf).")


def _factor(adjacency: Adjacency, doubled: frozenset[Adjacency]) -> int:
    if adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
        raise RuleViolation("Expected a relation between records: a column meets every record.")
    return 2 if adjacency in doubled else 1


_REPLACE = frozenset({Adjacency.REPLACE_ONE})
_REPLACE_OR_RESIZE = _REPLACE | {Adjacency.ADD_REMOVE_ONE}


def _whole(count: Fraction) -> None:
    if count.denominator != 1 or count < 1:
        raise RuleViolation(f"a count or dimension={count} must be in 1, 2, ...")


@rule("declared", source="an assumption, listed in every certificate")
def _declared(adjacency: Adjacency, *, value: Fraction) -> Fraction:
    """A bound typed in by hand.

    the user says: f moves by at most v
    -----------------------------------  declared
    Sens(f, v²)
    """
    _nonnegative(value=value)
    return value**2


@rule(
    "mean-of-bounded",
    source="the triangle inequality",
    coq=(
        "mean_sensitivity_replace",
        "mean_sensitivity_zero_out",
        "mean_sensitivity_add_remove",
    ),
)
def _mean_of_bounded(adjacency: Adjacency, *, bound: Fraction, count: Fraction) -> Fraction:
    """A mean of vectors, one a record.

    |v_i| ≤ G for every record    n public (add/remove: n ≤ both sizes)
    --------------------------------------------------------------------  mean-of-bounded
    Sens(mean v, (2G/n)²)    zero-out: (G/n)²
    """
    _nonnegative(bound=bound)
    _whole(count)
    return (_factor(adjacency, _REPLACE_OR_RESIZE) * bound / count) ** 2


@rule(
    "sum-of-bounded",
    source="the triangle inequality",
    coq=("sum_sensitivity_replace", "sum_sensitivity_zero_out", "sum_sensitivity_add_remove"),
)
def _sum_of_bounded(adjacency: Adjacency, *, bound: Fraction) -> Fraction:
    """A sum of vectors, one a record.

    |v_i| ≤ G for every record
    ------------------------------------------  sum-of-bounded
    Sens(sum v, G²)    replace-one: (2G)²
    """
    _nonnegative(bound=bound)
    return (_factor(adjacency, _REPLACE) * bound) ** 2


@rule(
    "strongly-convex-argmin",
    source="Chaudhuri, Monteleoni, Sarwate 2011, Lemma 8; strong monotonicity for τ > 0",
    coq=(
        "argmin_sensitivity_replace",
        "argmin_sensitivity_zero_out",
        "argmin_sensitivity_add_remove",
    ),
)
def _strongly_convex_argmin(
    adjacency: Adjacency,
    *,
    lipschitz: Fraction,
    modulus: Fraction,
    tolerance: Fraction,
    count: Fraction,
) -> Fraction:
    """A point where the gradient of a strongly convex mean of losses is small.

    losses convex, G-Lipschitz    objective m-strongly convex
    |gradient at output| ≤ τ    n public
    -------------------------------------------------------------  strongly-convex-argmin
    Sens(argmin, (2G/(mn) + 2τ/m)²)    zero-out: (G/(mn) + 2τ/m)²
    """
    _nonnegative(lipschitz=lipschitz, tolerance=tolerance)
    _whole(count)
    if modulus <= 0:
        raise RuleViolation(f"modulus={modulus} must be in (0, inf).")
    factor = _factor(adjacency, _REPLACE_OR_RESIZE)
    return (factor * lipschitz / (modulus * count) + 2 * tolerance / modulus) ** 2


@rule("scaled", source="homogeneity of norms", coq=("sensitivity_scale",))
def _scaled(adjacency: Adjacency, squared: Fraction, *, factor: Fraction) -> Fraction:
    """A public multiple.

    Sens(f, Δ²)    c public
    ------------------------  scaled
    Sens(c·f, c²Δ²)
    """
    return factor**2 * squared


@rule("sum", source="the triangle inequality", coq=("sensitivity_sum_witnesses",))
def _sum(
    adjacency: Adjacency, first: Fraction, second: Fraction, *, u: Fraction, v: Fraction
) -> Fraction:
    """A sum or a difference; witnesses keep it in rational numbers.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    u² ≥ Δ₁²    v² ≥ Δ₂²    u, v ≥ 0
    ----------------------------------------------------------------  sum
    Sens(f ± g, (u+v)²)
    """
    _nonnegative(u=u, v=v)
    if u**2 < first or v**2 < second:
        raise RuleViolation(f"Expected u²={u**2} >= {first} and v²={v**2} >= {second}.")
    return (u + v) ** 2


@rule("linear-map", source="the definition of an operator norm", coq=("sensitivity_linear",))
def _linear_map(adjacency: Adjacency, squared: Fraction, *, operator_norm: Fraction) -> Fraction:
    """A public linear map.

    Sens(f, Δ²)    ‖A‖ ≤ a    A public
    -----------------------------------  linear-map
    Sens(A·f, a²Δ²)
    """
    _nonnegative(operator_norm=operator_norm)
    return operator_norm**2 * squared


@rule("clip", source="projections are 1-Lipschitz", coq=("sensitivity_clip",))
def _clip(adjacency: Adjacency, squared: Fraction, *, radius: Fraction) -> Fraction:
    """The projection on a ball.

    Sens(f, Δ²)    l2 norm
    ---------------------------------  clip
    Sens(clip_C(f), min(Δ², (2C)²))
    """
    _nonnegative(radius=radius)
    return min(squared, (2 * radius) ** 2)


@rule("concatenation", source="Pythagoras", coq=("sensitivity_concatenation",))
def _concatenation(adjacency: Adjacency, first: Fraction, second: Fraction) -> Fraction:
    """A pair of functions of the same records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    l2 norm
    -----------------------------------------  concatenation
    Sens((f, g), Δ₁² + Δ₂²)
    """
    return first + second


@rule("disjoint", source="a record enters one part only")
def _disjoint(adjacency: Adjacency, first: Fraction, second: Fraction) -> Fraction:
    """A pair of functions of disjoint records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    no record enters both; record → part is public
    --------------------------------------------------------------------------------  disjoint
    Sens((f, g), max(Δ₁², Δ₂²))
    """
    return max(first, second)


def _halves(adjacency: Adjacency) -> int:
    """Return 1 if one of two neighbouring records is null, else 2."""
    if adjacency is Adjacency.ADD_REMOVE_ONE:
        raise RuleViolation("Expected equally many records: one coordinate of the release each.")
    return _factor(adjacency, _REPLACE)


@rule("vertical-predictions", source="optimality of both minimisers and convexity")
def _vertical_predictions(
    adjacency: Adjacency,
    *,
    row_bound: Fraction,
    slope_bound: Fraction,
    radius: Fraction,
    penalty: Fraction,
    modulus: Fraction,
    tolerance: Fraction,
    u: Fraction,
    v: Fraction,
) -> Fraction:
    """Predictions D x of an approximate minimiser x over |x| ≤ b that depends on the rows D too.

    x minimises <c, Dx> + (ρ/2)|Dx|² + R(x) to the tolerance τ    R m-strongly convex    c public
    |c_i| ≤ B and |D_i| ≤ G for every record    Q = G(B + ρGb)
    u² ≥ Q²/(ρm) + 4G²b²    v² ≥ τ²/(ρm)    u, v ≥ 0    replace-one or zero-out
    --------------------------------------------------------------------------  vertical-predictions
    Sens(D x, (u+v)²)    zero-out: (u/2 + v)²
    """
    halves = _halves(adjacency)
    _nonnegative(row_bound=row_bound, slope_bound=slope_bound, radius=radius)
    _nonnegative(tolerance=tolerance, u=u, v=v)
    if penalty <= 0 or modulus <= 0:
        raise RuleViolation(f"penalty={penalty} must be and modulus={modulus} in (0, inf).")
    pull = row_bound * (slope_bound + penalty * row_bound * radius)
    if u**2 < pull**2 / (penalty * modulus) + (2 * row_bound * radius) ** 2:
        raise RuleViolation(f"Expected a larger witness than u={u}.")
    if v**2 < tolerance**2 / (penalty * modulus):
        raise RuleViolation(f"Expected a larger witness than v={v}.")
    return (halves * u / 2 + v) ** 2


@rule("label-dual", source="l' grows with z, so that y and z move against each other")
def _label_dual(
    adjacency: Adjacency, *, derivative_bound: Fraction, label_gap: Fraction, tolerance: Fraction
) -> Fraction:
    """The vector y with y_i = l'(z_i, label_i) and y_i + ρ z_i = a_i, a public.

    l convex in z    |l'| ≤ c    |l'(z, +1) - l'(z, -1)| ≤ g    y_i to within τ, of a_i and label_i
    replace-one or zero-out
    -----------------------------------------------------------------------------------  label-dual
    Sens(y, (g + 2τ)²)    zero-out: (c + 2τ)²
    """
    moved = label_gap if _halves(adjacency) == 2 else derivative_bound
    _nonnegative(derivative_bound=derivative_bound, label_gap=label_gap, tolerance=tolerance)
    return (moved + 2 * tolerance) ** 2


@rule("lattice", source="the triangle inequality")
def _lattice(
    adjacency: Adjacency,
    squared: Fraction,
    *,
    distance: Fraction,
    dimension: Fraction,
    u: Fraction,
    w: Fraction,
) -> Fraction:
    """A value rounded to a lattice, coordinate by coordinate; witnesses keep it rational.

    Sens(f, Δ²)    |f̂_i - f_i| ≤ h in d coordinates    u² ≥ Δ²    w² ≥ (2h)²d    u, w ≥ 0    l2 norm
    ---------------------------------------------------------------------------------------  lattice
    Sens(f̂, (u+w)²)
    """
    _nonnegative(distance=distance, u=u, w=w)
    _whole(dimension)
    if u**2 < squared or w**2 < (2 * distance) ** 2 * dimension:
        raise RuleViolation(f"Expected larger witnesses than u={u} and w={w}.")
    return (u + w) ** 2


@rule("lattice-l1", source="the triangle inequality")
def _lattice_l1(
    adjacency: Adjacency,
    squared: Fraction,
    *,
    distance: Fraction,
    dimension: Fraction,
    u: Fraction,
) -> Fraction:
    """A value rounded to a lattice, coordinate by coordinate, in any norm up to l1.

    Sens(f, Δ²)    |f̂_i - f_i| ≤ h in d coordinates    u² ≥ Δ²    u ≥ 0
    ----------------------------------------------------------------------  lattice-l1
    Sens(f̂, (u + 2hd)²)
    """
    _nonnegative(distance=distance, u=u)
    _whole(dimension)
    if u**2 < squared:
        raise RuleViolation(f"Expected a larger witness than u={u}.")
    return (u + 2 * distance * dimension) ** 2


_STEPS: dict[str, Callable[..., Fraction]] = {
    "declared": _declared,
    "mean-of-bounded": _mean_of_bounded,
    "sum-of-bounded": _sum_of_bounded,
    "strongly-convex-argmin": _strongly_convex_argmin,
    "scaled": _scaled,
    "sum": _sum,
    "linear-map": _linear_map,
    "clip": _clip,
    "concatenation": _concatenation,
    "disjoint": _disjoint,
    "vertical-predictions": _vertical_predictions,
    "label-dual": _label_dual,
    "lattice": _lattice,
    "lattice-l1": _lattice_l1,
}
