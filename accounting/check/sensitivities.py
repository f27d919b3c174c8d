"""How far a function moves between neighbours: each sensitivity is derived again from its tree.

Every rule takes the relation, what it knows of its premises (squared bounds) and its parameters
(all >= 0 but a factor), and returns the least squared bound that follows. A derivation may state
a larger one: long fractions are rounded up.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from .reading import (
    MAX_DEPTH,
    CertificateWrong,
    read_fields,
    read_list,
    read_pair,
    read_rational,
    read_text,
    require_equal,
    require_least,
    require_whole,
    show,
)
from .roundings import Round, parameters_of, read_rounding, require_same_operations

_RECORD_RELATIONS = ("add-remove-one", "zero-out-one", "replace-one")
"""Neighbours differ in one record: there or not, null or not, or replaced."""

_RELATIONS = (*_RECORD_RELATIONS, "replace-feature-column")
"""Those, and vertical data: neighbours differ in one column of features."""

# they divide by a number of records
MEANS = {"mean-of-bounded", "mean-of-nonnegative", "strongly-convex-argmin"}


class Sens(NamedTuple):
    """A bound on how far a quantity moves between neighbours, derived again from its tree.

    `norm`: "l1" or "l2"; `adjacency`: one of `_RELATIONS`; `squared`: the squared bound; `rules`:
    those on the way, but for parts that move by nothing; `reasons`: what users declared;
    `distance`: how far a lattice may move a coordinate of what is computed, None where nothing is
    said of computing.
    """

    norm: str
    adjacency: str
    squared: Fraction
    rules: frozenset[str]
    reasons: frozenset[str]
    distance: Fraction | None = None


def _declared(adjacency: str, value: Fraction) -> Fraction:
    """A bound typed in by hand.

    the user says: f moves by at most v
    -----------------------------------  declared
    Sens(f, v²)

    Source: an assumption, listed in every certificate.
    Check: derived_sound.
    """
    return value**2


def _doubled(adjacency: str, *others: str) -> int:
    """2 where both records of a pair may count, 1 where one of them is null."""
    return 2 if adjacency in ("replace-one", *others) else 1


def _require_fixed_size(adjacency: str) -> None:
    """Raise where neighbours may differ in their number of records."""
    if adjacency == "add-remove-one":
        raise CertificateWrong(f"expected equally many records instead got {adjacency}")


def _mean_of_bounded(adjacency: str, bound: Fraction, count: Fraction) -> Fraction:
    """A mean of vectors, one a record.

    |v_i| ≤ G for every record    n public (add/remove: n ≤ both sizes)
    --------------------------------------------------------------------  mean-of-bounded
    Sens(mean v, (2G/n)²)    zero-out: (G/n)²

    Source: the triangle inequality.
    Check: mean_sensitivity_replace, mean_sensitivity_zero_out, mean_present_add_remove.
    Coq: mean_sensitivity_add_remove.
    """
    require_whole("a count", count)
    return (_doubled(adjacency, "add-remove-one") * bound / count) ** 2


def _mean_of_nonnegative(adjacency: str, bound: Fraction, count: Fraction) -> Fraction:
    """A mean of vectors, one a record, no two of which point apart.

    |v_i| ≤ G    <v_i, v_j> ≥ 0 for all records    n public (add/remove: n ≤ both sizes)
    -------------------------------------------------------------  mean-of-nonnegative
    Sens(mean v, 2(G/n)²)    zero-out: (G/n)²

    Source: the square of a difference, expanded; add/remove: from the mean of the others.
    Check: nonnegative_mean_sensitivity_replace, nonnegative_mean_present_add_remove.
    """
    require_whole("a count", count)
    return _doubled(adjacency, "add-remove-one") * (bound / count) ** 2


def _sum_of_bounded(adjacency: str, bound: Fraction) -> Fraction:
    """A sum of vectors, one a record.

    |v_i| ≤ G for every record
    ------------------------------------------  sum-of-bounded
    Sens(sum v, G²)    replace-one: (2G)²

    Source: the triangle inequality.
    Check: sum_sensitivity_replace, sum_sensitivity_zero_out, sum_sensitivity_add_remove.
    """
    return (_doubled(adjacency) * bound) ** 2


def _histogram(adjacency: str) -> Fraction:
    """How many records lie in each cell, in l2.

    every record lies in one cell, by itself
    -----------------------------------------  histogram
    Sens(counts, 2)    add/remove: 1

    Source: two counts move by one, under add/remove one.
    Check: nonnegative_sum_sensitivity_replace, sum_sensitivity_add_remove.
    """
    return Fraction(_doubled(adjacency, "zero-out-one"))


def _histogram_l1(adjacency: str) -> Fraction:
    """How many records lie in each cell, in any norm up to l1.

    every record lies in one cell, by itself
    -----------------------------------------  histogram-l1
    Sens(counts, 2²)    add/remove: 1

    Source: two counts move by one, under add/remove one.
    Check: sum_sensitivity_replace, sum_sensitivity_add_remove.
    """
    if adjacency not in _RECORD_RELATIONS:
        raise CertificateWrong(f"expected a relation between records instead got {adjacency}")
    return Fraction(_doubled(adjacency, "zero-out-one") ** 2)


def _strongly_convex_argmin(
    adjacency: str, lipschitz: Fraction, modulus: Fraction, tolerance: Fraction, count: Fraction
) -> Fraction:
    """A point where the gradient of a strongly convex mean of losses is small.

    losses convex, G-Lipschitz    objective m-strongly convex
    |gradient at output| ≤ τ    n public
    -------------------------------------------------------------  strongly-convex-argmin
    Sens(argmin, (2G/(mn) + 2τ/m)²)    zero-out: (G/(mn) + 2τ/m)²

    Source: Chaudhuri, Monteleoni, Sarwate 2011, Lemma 8; strong monotonicity for τ > 0.
    Check: argmin_sensitivity_replace, argmin_sensitivity_zero_out, argmin_present_add_remove.
    Coq: argmin_sensitivity_add_remove.
    """
    require_whole("a count", count)
    if modulus == 0:
        raise CertificateWrong("expected modulus > 0 instead got 0")
    factor = _doubled(adjacency, "add-remove-one")
    return (factor * lipschitz / (modulus * count) + 2 * tolerance / modulus) ** 2


def _scaled(adjacency: str, squared: Fraction, factor: Fraction) -> Fraction:
    """A public multiple.

    Sens(f, Δ²)    c public
    ------------------------  scaled
    Sens(c·f, c²Δ²)

    Source: homogeneity of norms.
    Check: sensitivity_scale.
    """
    return factor**2 * squared


def _sum(adjacency: str, first: Fraction, second: Fraction, u: Fraction, v: Fraction) -> Fraction:
    """A sum or a difference; witnesses keep it in rational numbers.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    u² ≥ Δ₁²    v² ≥ Δ₂²    u, v ≥ 0
    ----------------------------------------------------------------  sum
    Sens(f ± g, (u+v)²)

    Source: the triangle inequality.
    Check: sensitivity_sum.
    Coq: sensitivity_sum_witnesses.
    """
    require_least("u²", u**2, first)
    require_least("v²", v**2, second)
    return (u + v) ** 2


def _linear_map(adjacency: str, squared: Fraction, operator_norm: Fraction) -> Fraction:
    """A public linear map.

    Sens(f, Δ²)    ‖A‖ ≤ a    A public
    -----------------------------------  linear-map
    Sens(A·f, a²Δ²)

    Source: the definition of an operator norm.
    Check: sensitivity_linear.
    """
    return operator_norm**2 * squared


def _clip(adjacency: str, squared: Fraction, radius: Fraction) -> Fraction:
    """The projection on a ball.

    Sens(f, Δ²)    l2 norm
    ---------------------------------  clip
    Sens(clip_C(f), min(Δ², (2C)²))

    Source: projections are 1-Lipschitz.
    Check: sensitivity_clip.
    """
    return min(squared, (2 * radius) ** 2)


def _concatenation(adjacency: str, first: Fraction, second: Fraction) -> Fraction:
    """A pair of functions of the same records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    l2 norm
    -----------------------------------------  concatenation
    Sens((f, g), Δ₁² + Δ₂²)

    Source: Pythagoras.
    Check: sensitivity_concatenation.
    """
    return first + second


def _disjoint(adjacency: str, first: Fraction, second: Fraction) -> Fraction:
    """A pair of functions of disjoint records.

    Sens(f, Δ₁²)    Sens(g, Δ₂²)    no record enters both; record → part is public
    --------------------------------------------------------------------------------  disjoint
    Sens((f, g), max(Δ₁², Δ₂²))

    Source: a record enters one part only.
    Check: derived_sound.
    """
    return max(first, second)


def _vertical_predictions(
    adjacency: str,
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

    Source: optimality of both minimisers and convexity.
    Check: predictions_sensitivity_replace, predictions_sensitivity_zero_out.
    """
    _require_fixed_size(adjacency)
    if penalty * modulus == 0:
        raise CertificateWrong("expected penalty and modulus > 0 instead got 0")
    pull = row_bound * (slope_bound + penalty * row_bound * radius)
    require_least("u²", u**2, pull**2 / (penalty * modulus) + (2 * row_bound * radius) ** 2)
    require_least("v²", v**2, tolerance**2 / (penalty * modulus))
    return (_doubled(adjacency) * u / 2 + v) ** 2


def _label_dual(
    adjacency: str, derivative_bound: Fraction, label_gap: Fraction, tolerance: Fraction
) -> Fraction:
    """The vector y with y_i = l'(z_i, label_i) and y_i + ρ z_i = a_i, a public.

    l convex in z    |l'| ≤ c    |l'(z, +1) - l'(z, -1)| ≤ g    y_i to within τ, of a_i and label_i
    replace-one or zero-out
    -----------------------------------------------------------------------------------  label-dual
    Sens(y, (g + 2τ)²)    zero-out: (c + 2τ)²

    Source: l' grows with z, so that y and z move against each other.
    Check: dual_sensitivity_replace, dual_sensitivity_zero_out.
    """
    _require_fixed_size(adjacency)
    moved = label_gap if adjacency == "replace-one" else derivative_bound
    return (moved + 2 * tolerance) ** 2


def _lattice(
    adjacency: str,
    squared: Fraction,
    distance: Fraction,
    dimension: Fraction,
    u: Fraction,
    w: Fraction,
) -> Fraction:
    """A value rounded to a lattice, coordinate by coordinate; witnesses keep it rational.

    Sens(f, Δ²)    |f̂_i - f_i| ≤ h in d coordinates    u² ≥ Δ²    w² ≥ (2h)²d    u, w ≥ 0    l2 norm
    ---------------------------------------------------------------------------------------  lattice
    Sens(f̂, (u+w)²)

    Source: the triangle inequality.
    Check: sensitivity_rounding.
    """
    require_whole("a dimension", dimension)
    require_least("u²", u**2, squared)
    require_least("w²", w**2, (2 * distance) ** 2 * dimension)
    return (u + w) ** 2


def _lattice_l1(
    adjacency: str, squared: Fraction, distance: Fraction, dimension: Fraction, u: Fraction
) -> Fraction:
    """A value rounded to a lattice, coordinate by coordinate, in any norm up to l1.

    Sens(f, Δ²)    |f̂_i - f_i| ≤ h in d coordinates    u² ≥ Δ²    u ≥ 0
    ----------------------------------------------------------------------  lattice-l1
    Sens(f̂, (u + 2hd)²)

    Source: the triangle inequality.
    Check: sensitivity_rounding.
    """
    require_whole("a dimension", dimension)
    require_least("u²", u**2, squared)
    return (u + 2 * distance * dimension) ** 2


def _computed(
    adjacency: str, squared: Fraction, row: "Round", rows: Fraction, u: Fraction, w: Fraction
) -> Fraction:
    """What doubles hold in place of a function, row by row, by the same operations.

    Sens(f, Δ²)    Round(f̂_k, M, r) for each of P rows    u² ≥ Δ²    w² ≥ (2r)²P    u, w ≥ 0    l2
    -----------------------------------------------------------------------------------  computed
    Sens(f̂, (u+w)²)

    Source: the triangle inequality.
    Check: sensitivity_rounding, block_sound.
    """
    require_whole("a number of rows", rows)
    require_least("u²", u**2, squared)
    require_least("w²", w**2, (2 * row.error) ** 2 * rows)
    return (u + w) ** 2


def _computed_l1(
    adjacency: str, squared: Fraction, row: "Round", rows: Fraction, u: Fraction
) -> Fraction:
    """What doubles hold in place of a function, row by row, by the same operations, in l1.

    Sens(f, Δ²)    Round(f̂_k, M, r) for each of P rows    u² ≥ Δ²    u ≥ 0
    -----------------------------------------------------------------------  computed-l1
    Sens(f̂, (u + 2rP)²)

    Source: the triangle inequality.
    Check: sensitivity_rounding, computes_exact.
    """
    require_whole("a number of rows", rows)
    require_least("u²", u**2, squared)
    return (u + 2 * row.error * rows) ** 2


SENSITIVITIES: dict[str, tuple[Callable[..., Fraction], int, tuple[str, ...]]] = {
    # name: (function, number of premises, names of its parameters)
    "declared": (_declared, 0, ("value", "reason")),
    "mean-of-bounded": (_mean_of_bounded, 0, ("bound", "count")),
    "mean-of-nonnegative": (_mean_of_nonnegative, 0, ("bound", "count")),
    "sum-of-bounded": (_sum_of_bounded, 0, ("bound",)),
    "histogram": (_histogram, 0, ()),
    "histogram-l1": (_histogram_l1, 0, ()),
    "strongly-convex-argmin": (
        _strongly_convex_argmin,
        0,
        ("lipschitz", "modulus", "tolerance", "count"),
    ),
    "scaled": (_scaled, 1, ("factor",)),
    "sum": (_sum, 2, ("u", "v")),
    "linear-map": (_linear_map, 1, ("operator_norm",)),
    "clip": (_clip, 1, ("radius",)),
    "concatenation": (_concatenation, 2, ()),
    "disjoint": (_disjoint, 2, ()),
    "vertical-predictions": (
        _vertical_predictions,
        0,
        (
            *("row_bound", "slope_bound", "radius", "penalty", "modulus", "tolerance"),
            *("u", "v"),
        ),
    ),
    "label-dual": (_label_dual, 0, ("derivative_bound", "label_gap", "tolerance")),
    "lattice": (_lattice, 1, ("distance", "dimension", "u", "w")),
    "lattice-l1": (_lattice_l1, 1, ("distance", "dimension", "u")),
    "computed": (_computed, 2, ("rows", "u", "w")),
    "computed-l1": (_computed_l1, 2, ("rows", "u")),
}
_IN_L2 = ("lattice", "computed")
"""Rules of any relation that are proved for the Euclidean norm only."""

_COMPUTED, _LATTICES = ("computed", "computed-l1"), ("lattice", "lattice-l1")
"""Rules whose second premise is a derivation of rounding errors, and what such a value is put on.
"""

_OF_RECORDS_IN_L2 = MEANS | {
    *("vertical-predictions", "label-dual", "sum-of-bounded", "clip", "concatenation"),
    "histogram",
}
"""Rules that are proved for one record and the Euclidean norm only."""


def is_whole(node: Any) -> bool:
    """Whether a quantity is whole numbers by its derivation; False where that is the list's word.

    Counts are, and what sums and whole factors make of them; a declared quantity, a sum of records'
    numbers or a linear map of counts may be. What moves nothing is a public shift.

    Args:
        node: a derivation that was read before.

    Raises `CertificateWrong` for what is no vector of whole numbers: a mean of records, say.
    """
    rule, above = node["rule"], node["premises"]
    if not read_rational(node["squared"]):
        return True
    known = False not in [*map(is_whole, above)]  # each is looked at
    match rule:
        case "histogram" | "histogram-l1" | "sum" | "concatenation" | "disjoint":
            return known
        case "declared" | "sum-of-bounded" | "linear-map":
            return False
        case "scaled" if parameters_of(node)["factor"].denominator == 1:
            return known
        case _:
            raise CertificateWrong(f"expected discrete noise on whole numbers instead got {rule}")


def means_over(node: Any) -> Iterator[Fraction]:
    """Yield the number of records of every mean in a derivation that was read before."""
    if node["rule"] in MEANS:
        yield parameters_of(node)["count"]
    for above in node["premises"]:
        if isinstance(above, dict) and above["rule"] in SENSITIVITIES:
            yield from means_over(above)


def read_sensitivity(value: Any) -> Sens:
    """Return a sensitivity after every step of its derivation has been recomputed.

    Raises `CertificateWrong` where a step does not follow, or the stated square is not the derived
    one.
    """
    norm, adjacency, squared, tree = read_fields(
        value, "norm", "adjacency", "squared", "derivation"
    )
    if norm not in ("l1", "l2") or adjacency not in _RELATIONS:
        raise CertificateWrong(f"expected a norm and a relation instead got {norm}, {adjacency}")
    rules: set[str] = set()
    reasons: set[str] = set()
    derived = _derive(tree, norm, adjacency, rules, reasons, 0)
    require_equal("squared sensitivity", read_rational(squared), derived)
    found = Sens(norm, adjacency, derived, frozenset(rules), frozenset(reasons))
    premises = tree["premises"]
    if not premises or premises[0]["rule"] not in _COMPUTED:
        return found
    given = parameters_of(tree)
    row = read_rounding(premises[0]["premises"][1], norm, 2)
    require_equal("dimension", given["dimension"], parameters_of(premises[0])["rows"] * row.width)
    return found._replace(distance=given["distance"])


def _derive(
    node: Any,
    norm: str,
    adjacency: str,
    rules: set[str],
    reasons: set[str],
    depth: int,
    above: str = "",
) -> Fraction:
    """The squared bound that a derivation concludes; it may be rounded up at every step."""
    rule, squared, pairs, premises = read_fields(node, "rule", "squared", "parameters", "premises")
    if read_text(rule) not in SENSITIVITIES or depth > MAX_DEPTH:
        raise CertificateWrong(f"expected a sensitivity rule up to {MAX_DEPTH} deep, got {rule!r}")
    if rule in _OF_RECORDS_IN_L2 and (norm != "l2" or adjacency not in _RECORD_RELATIONS):
        raise CertificateWrong(
            f"{rule}: expected l2 and a record relation, got {norm}, {adjacency}"
        )
    if rule == "disjoint" and adjacency not in _RECORD_RELATIONS:
        raise CertificateWrong(f"{rule}: expected a record relation instead got {adjacency}")
    if (rule in _IN_L2 and norm != "l2") or (rule == "computed-l1" and norm != "l1"):
        raise CertificateWrong(f"{rule}: expected another norm instead got {norm}")
    if rule in _COMPUTED and (depth != 1 or above not in _LATTICES):
        raise CertificateWrong(f"{rule}: expected it to be what a lattice is about and no more")
    function, arity, names = SENSITIVITIES[rule]
    given = [read_pair(pair) for pair in read_list(pairs)]
    require_equal(f"{rule} parameters", [name for name, _ in given], list(names))
    require_equal(f"{rule} premises", len(read_list(premises)), arity)
    meant = premises[:1] if rule in _COMPUTED else premises
    below: list[Any] = [_derive(p, norm, adjacency, rules, reasons, depth + 1, rule) for p in meant]
    if rule in _COMPUTED:
        below.append(read_rounding(premises[1], norm, depth + 1))
        require_same_operations(premises[0], premises[1], norm)
    if rule == "declared":
        reasons.add(read_text(next(read_fields(given.pop()[1], "text"))))
    numbers = [read_rational(value) for _, value in given]
    if rule != "scaled" and any(x < 0 for x in numbers):
        raise CertificateWrong(
            f"{rule}: expected parameters >= 0 instead got {show(tuple(numbers))}"
        )
    stated = read_rational(squared)
    require_least(f"{rule}: squared sensitivity", stated, function(adjacency, *below, *numbers))
    if stated:  # what moves nothing asks nothing of those above it
        rules.add(rule)
    return stated


_HALF_STEP = (Fraction(1, 2) + Fraction(1, 1 << 12)) / (1 << 50)
"""How far rounding to the lattice moves a coordinate at most, over the noise's scale."""


def require_lattice(sens: Sens, scale: Fraction) -> None:
    """Raise if what is computed is on a finer lattice than that of noise of this scale."""
    if sens.distance is not None:
        require_least("distance of a lattice", sens.distance, _HALF_STEP * scale)
