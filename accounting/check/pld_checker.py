"""Checks certificates that rest on distributions of the privacy loss, by recomputing these.

A distribution is a list of whole numbers, each an upper bound (`losses`); that of one step comes
from enclosures of the distribution functions of its dominating pair (`one_step`, `dominating`).
FLINT multiplies if it is installed; the numbers are the same without.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import log
from typing import Any, NamedTuple

from . import checker, losses
from .dominating import EVEN, MAX_GROUP, Way, dominating_pairs, unrepeated
from .intervals import exp_bounds
from .laplace import laplace_losses
from .normal import Normal
from .one_step import MAX_LOSS, Dots
from .pairs import GaussianShift, Pair
from .reading import (
    CertificateWrong,
    Undecided,
    read_above,
    read_count,
    read_delta,
    read_list,
    read_pair,
    read_triple,
    require_least,
)
from .statements import Priv, Rules, Run

MAX_REACH = 1 << 15
"""Multiples of the step, in nodes of the first kind (`loss_distribution`)."""

MAX_BITS = 512
"""Bits of the masses, in nodes of the first kind."""

MAX_DIGITS = 400
"""Decimal digits of masses: δ down to about 10^-390 has ten of its own."""

MAX_LEVELS = 128
"""Levels of a composition; N steps that enter at level 0 need about log2 N."""


class Grid(NamedTuple):
    """Where and how finely to compute; see `losses.Plan` and `Dots`."""

    step: Fraction
    dense: int
    digits: int
    plan: losses.Plan


class Step(NamedTuple):
    """A pair that is composed `times` times; `way`, if one loss stands for both orders."""

    pair: Pair
    way: Way | None
    times: int
    level: int


# --- composition --------------------------------------------------------------------------------


def _bits(steps: list[Step], grid: Grid) -> int:
    """A precision that leaves the masses, divided by the step, right to about one unit.

    More bits than needed cost time, fewer a larger delta: nothing else depends on this.
    """
    tail = grid.digits * log(10)
    top = max(step.pair.highest(tail) for step in steps)
    if not top <= MAX_LOSS:
        raise Undecided(f"expected losses up to {MAX_LOSS} in one step, got {top:.6g}")
    return (
        7 * grid.digits // 2
        + 32
        + 3 * int(top)
        + 2 * grid.step.denominator.bit_length()  # atoms may lie a hair below a point
        + max(step.pair.precision for step in steps)
    )


def compositions(
    steps: list[Step], relation: str, grid: Grid, spend: Callable[[int], None]
) -> Iterator[tuple[losses.Loss, Fraction]]:
    """The loss of all steps, and its step, for each order of the data sets that matters."""
    p, unit = _bits(steps, grid), 10**grid.digits
    total = sum(step.times for step in steps)
    tail = grid.plan.cut // total
    normal = Normal(p, spend)
    lattices: list[Dots] = []
    power = 0
    for level in range(max(step.level for step in steps) + 1):
        power += grid.plan.doublings[level] if level < len(grid.plan.doublings) else 0
        lattices.append(Dots(grid.step * 2**power, grid.dense, unit, normal))
    dots = [lattices[step.level].dots(step.pair, tail) for step in steps]
    orders = any(not (step.pair.symmetric or step.way) for step in steps)

    def exp_step(power: int) -> losses.Interval:
        """Enclose e^h for the step h after `power` doublings."""
        return exp_bounds(grid.step * 2**power, 96 + 7 * grid.digits // 2)

    ways: list[Way] = [Dots.removed, Dots.added]
    for way in ways if orders else ways[:1]:
        entering = []
        for step, points in zip(steps, dots, strict=True):
            made = step.way or way
            entering.append((step.level, made(lattices[step.level], points), step.times))
        width = 96 + 7 * grid.digits // 2
        found, power = losses.composed(entering, grid.plan, exp_step, width, spend)
        yield found, grid.step * 2**power


def delta_upper(loss: losses.Loss, step: Fraction, epsilon: Fraction, unit: int) -> Fraction:
    """An upper bound on the sum of mass · (1 - e^(epsilon - loss)) over losses above epsilon."""
    p = 64 + unit.bit_length()
    start = max(epsilon // step + 1 - loss.first, 0)
    if start >= len(loss.masses):
        return Fraction(loss.lost, unit)
    shrink, total = exp_bounds(-step, p)[0], 0
    for mass in reversed(loss.masses[start:]):  # a lower bound on the sum of mass · e^-(loss - low)
        total = (mass << p) + (total * shrink >> p)
    lowest = exp_bounds(epsilon - (loss.first + start) * step, p)[0]
    above = (sum(loss.masses[start:]) << p) - (total * lowest >> p)
    return Fraction((loss.lost << p) + above, unit << p)


# --- the rules ----------------------------------------------------------------------------------


def _grid(step: Any, doublings: Any, dense: Any, digits: Any, cut: Any) -> Grid:
    """Return the grid that a node states; raise `CertificateWrong` if it exceeds the limits.

    Args:
        step: of the lattice of level 0, a rational > 0.
        doublings: how often the step doubles before each level.
        dense: points from zero up to which every point is a dot, >= 4.
        digits: masses are whole multiples of 10^-digits.
        cut: such multiples that may be cut off a level's losses, at either end.

    A bad grid makes δ large, not wrong: every mass is rounded up and moved up.
    """
    often = tuple(read_count(n, 0) for n in read_list(doublings))
    width = read_above(step, 0)
    grid = Grid(
        width,
        read_count(dense, 4),
        read_count(digits),
        losses.Plan(often, 10 ** min(digits, MAX_DIGITS), int(read_above(cut, 0, False))),
    )
    if (
        *(grid.digits > MAX_DIGITS, len(often) > MAX_LEVELS, sum(often) > MAX_LEVELS),
        *(grid.dense > 1 << 12, width > MAX_LOSS, width.denominator >> 1024),
    ) != (False,) * 6:
        raise CertificateWrong(f"expected a grid within the limits, got {grid!s:.200}")
    return grid


def _proved(
    run: Run, parts: Any, shares: Any, group: Any, grid: Grid, delta: Any, epsilon: Any
) -> Priv:
    """Return (ε, δ)-DP of all parts, after composing their losses on the grid.

    Args:
        parts: triples of a mechanism's number, how often it runs, and the level at which it enters.
        shares: pairs of a mixture step's number and the share of its variance for the constant
            part.
        group: records that neighbours differ in, at most `MAX_GROUP`.
        delta, epsilon: what the node claims.

    The μ² of Gaussian shifts are added first, and enter as one step at the last of their levels:
    that is exact (Dong, Roth, Su 2022, Corollary 3.3). Raises `CertificateWrong` where the composed
    loss has a larger δ in one of the orders.
    """
    split = {place: read_above(share, 0) for place, share in map(read_pair, read_list(shares))}
    if any(share >= 1 for share in split.values()):
        raise CertificateWrong("expected shares of the noise in (0, 1)")
    if read_count(group) > MAX_GROUP:
        raise Undecided(f"expected groups of at most {MAX_GROUP} records, got {group}")
    exposure: dict[int, int] = {}
    relations: set[str] = set()
    steps: dict[tuple[Pair, Way | None, int], int] = {}
    gaussian, last = Fraction(0), 0
    for part in read_list(parts):
        place, often, level = read_triple(part)
        mechanism, times = unrepeated(run, place)
        relation, pairs = dominating_pairs(run, mechanism, split.get(place, EVEN), group)
        relations.add(relation)
        exposure[place] = exposure.get(place, 0) + read_count(often)
        if read_count(level, 0) > MAX_LEVELS:
            raise CertificateWrong(f"expected a level up to {MAX_LEVELS}, got {level}")
        for pair, way in pairs:
            if isinstance(pair, GaussianShift):
                gaussian += often * times * pair.mu_squared
                last = max(last, level)
            else:
                key = (pair, way, level)
                steps[key] = steps.get(key, 0) + often * times
    if len(relations) != 1:
        raise CertificateWrong(f"expected one relation instead got {sorted(relations)}")
    (relation,) = relations
    d, e = read_delta(delta), read_above(epsilon, 0, False)
    listed = [Step(*key[:2], n, key[2]) for key, n in steps.items()]
    if gaussian:
        listed.append(Step(GaussianShift(gaussian), None, 1, last))
    if listed:
        for total, step in compositions(listed, relation, grid, run.spend):
            require_least("delta", d, delta_upper(total, step, e, grid.plan.unit))
    return Priv(exposure, relation, group, "approx-dp", (d, e))


def privacy_loss(
    run: Run,
    parts: Any,
    shares: Any,
    group: Any,
    step: Any,
    doublings: Any,
    dense: Any,
    digits: Any,
    cut: Any,
    delta: Any,
    epsilon: Any,
) -> Priv:
    """Mechanisms composed by the distributions of their privacy losses. P, Q: a dominating pair.

    m_i: dominated by (P_i, Q_i); sampled with probability q: by (1-q)Q + qP and Q
    pairs ((1-q)Q + qP, Q) and (Q, (1-q)Q + qP) composed, each by itself; under replace-one the
    pair symmetrised at zero loss from H_γ((1-q)Q + qP ‖ Q), γ ≥ 1, and H_γ(P ‖ (1-q)P + qQ), γ < 1
    Poisson samples under replace-one, Gaussian noise on sums of vectors of at most C:
    (1-q)N(0) + qN(C) against (1-q)N(0) + qN(-C)
    batches with replacement, Gaussian noise, replace-one: the least sum over the number of copies
    discrete Gaussian noise: the maximum of the profiles of all integer vectors of norm at most Δ
    groups of k: k times the shift; with Gaussian noise on samples as many as are drawn, of batches
    without replacement as of k draws with it out of the whole number below (n - k + 1)/m
    n Poisson samples accumulated under one Gaussian noise: as a group of n in one sample
    E[(1 - e^(ε - L))⁺] ≤ δ for the loss L of each composed pair    ε ≥ 0
    ------------------------------------------------------------------------  privacy-loss
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ))

    `parts` are triples of a mechanism, how often, and its level; `shares` pairs of a mixture step
    and the share of its variance that hides the constant part.

    Source: Zhu, Dong, Wang 2022, Theorems 10 and 11.
    Check: run_loss, noise_split, accumulated_sensitivity, step_losses_sound, batch_losses_sound,
        told_losses_sound, replaced_losses_sound, copies_losses_sound, gathered_losses_sound,
        laplace_loss_sound, laplace_step_losses_sound, laplace_batch_losses_sound,
        geometric_loss_sound, discrete_gaussian_loss_sound, odds_loss_sound, composed_sound,
        loss_delta_sound.
    """
    return _proved(
        run, parts, shares, group, _grid(step, doublings, dense, digits, cut), delta, epsilon
    )


def first_grid(width: Fraction, far: int, bits: int, delta: Fraction) -> Grid:
    """Return what nodes of the first kind are computed on: one step, half of theirs."""
    digits = bits // 3 + 2
    tiny = delta * 10**digits / 10**9
    return Grid(width / 2, 2 * far, digits, losses.Plan((), 10**digits, int(tiny)))


def loss_distribution(
    run: Run, parts: Any, step: Any, reach: Any, bits: Any, delta: Any, epsilon: Any
) -> Priv:
    """The same as documents first had it: pairs of a mechanism and how often, on one step.

    as in privacy-loss; dots half a step apart, where they were a whole one, so that δ is smaller
    ---------------------------------------------------------------------------  loss-distribution
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ))

    Source: Zhu, Dong, Wang 2022, Theorems 10 and 11.
    Check: run_loss, composed_sound, loss_delta_sound.
    """
    width, far = read_above(step, 0), read_count(reach)
    if far > MAX_REACH or read_count(bits) > MAX_BITS or far * width > MAX_LOSS:
        raise CertificateWrong(f"expected a grid within the limits, got {width}, {far}")
    triples = [[*read_pair(part), 0] for part in read_list(parts)]
    grid = first_grid(width, far, bits, read_delta(delta))
    return _proved(run, triples, [], 1, grid, delta, epsilon)


RULES: Rules = {
    "laplace-losses": (laplace_losses, ("parts", "group", "delta", "epsilon"), 0),
    "loss-distribution": (
        loss_distribution,
        ("parts", "step", "reach", "bits", "delta", "epsilon"),
        0,
    ),
    "privacy-loss": (
        privacy_loss,
        (
            "parts",
            "shares",
            "group",
            "step",
            "doublings",
            "dense",
            "digits",
            "cut",
            "delta",
            "epsilon",
        ),
        0,
    ),
}


def check(document: bytes) -> checker.Verdict:
    """Return what a certificate proves; see `checker.check`, which lacks the rules here."""
    return checker.check(document, more=RULES)
