"""Checks certificates that rest on distributions of the privacy loss, by recomputing these.

A distribution is a list of whole numbers, each an upper bound (`losses`); that of one step comes
from enclosures of the distribution functions of its dominating pair (`one_step`). Which mechanism
has which pair, and under what conditions, stands here. FLINT multiplies if it is installed; the
numbers are the same without.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import ceil, comb, isqrt, log
from typing import Any, NamedTuple

from . import checker, integer_vectors, losses, one_step
from .intervals import exp_bounds, require_at_most
from .leaves import (
    fixed_batch_share,
    poisson_rate,
    randomised_truth,
    require_fixed_batch,
    require_poisson,
    root_up,
    trust_sample,
)
from .reading import (
    CertificateWrong,
    Undecided,
    read_above,
    read_count,
    read_delta,
    read_dyadic,
    read_kind,
    read_list,
    read_pair,
    read_triple,
    require_equal,
    require_least,
)
from .sensitivities import Sens, require_lattice
from .statements import Priv, Rules, Run

MAX_REACH = 1 << 15
"""Multiples of the step, in nodes of the first kind (`loss_distribution`)."""

MAX_BITS = 512
"""Bits of the masses, in nodes of the first kind."""

MAX_LOSS = 512
"""The largest loss of one step: the precision grows with it, by three bits a unit."""

MAX_DIGITS = 400
"""Decimal digits of masses: δ down to about 10^-390 has ten of its own."""

MAX_LEVELS = 128
"""Levels of a composition; N steps that enter at level 0 need about log2 N."""

MAX_GROUP = 64
"""Records of a group: a Poisson sample of it is a mixture of as many shifts."""

MAX_SHIFTS = 1 << 12
"""Laplace steps composed without a lattice: the polynomials have as many coefficients."""

MAX_SCALES = 64
"""Different shifts of those: choices of signs multiply, one recursion a shift."""

MAX_LATTICE = 1 << 11
"""Units over which discrete noise spreads, or by which it is shifted: bounds its table."""

Way = Callable[[one_step.Dots, list[one_step.Dot]], losses.Loss]
"""How masses at dots become the loss of one order of the data sets, or of both (symmetrised)."""

Pairs = tuple[one_step.Pair, Way | None]
"""A dominating pair, and which of its losses stands for both orders of the data sets; None: each
order has its own."""


class Grid(NamedTuple):
    """Where and how finely to compute; see `losses.Plan` and `one_step.Dots`."""

    step: Fraction
    dense: int
    digits: int
    plan: losses.Plan


class Step(NamedTuple):
    """A pair that is composed `times` times; `way`, if one loss stands for both orders."""

    pair: one_step.Pair
    way: Way | None
    times: int
    level: int


# --- which mechanism has which pair -------------------------------------------------------------

_HALF = Fraction(1, 2)
"""The share of a mixture step's variance for its constant part, where a node states none."""

_DRAWN = "Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (mixtures of Gaussian shifts)"
"""The theorem that a node rests on, beside its own, where a group is sampled."""

_REPLACED = "docs/rules.md, privacy-loss (a record is replaced in a Poisson sample)"
"""Likewise, where a Poisson sample is taken under replace-one."""

_BOTH_ORDERS = ("add-remove-one", "zero-out-one")


def _unrepeated(run: Run, place: int) -> tuple[Any, int]:
    """Return the mechanism inside any number of repetitions, and how often it runs in all."""
    mechanism, times = run.at(place), 1
    while isinstance(mechanism, dict) and mechanism.get("kind") == "repeated":
        mechanism, n = read_kind(mechanism, "repeated", "event", "times")
        times *= read_count(n)
    return mechanism, times


def _pure(run: Run, mechanism: Any, size: int) -> tuple[Sens, list[one_step.Pair]]:
    """Losses of ±ε: discrete noise of rate ε moved by one; groups have `size` times the loss."""
    sens, ratio = run.noise(mechanism, "pure", "scale", "l1")
    return sens, [one_step.DiscreteLaplaceShift(size * root_up(ratio), 1)] if ratio else []


def _base(run: Run, event: Any, size: int) -> tuple[Sens, one_step.Base | None]:
    """The sensitivity of a step with continuous noise, and its pair; none if it costs nothing."""
    kind = event.get("kind") if isinstance(event, dict) else None
    if kind == "laplace":
        sens, ratio = run.noise(event, "laplace", "scale", "l1")
        return sens, one_step.LaplaceShift(size * root_up(ratio)) if ratio else None
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    return sens, one_step.GaussianShift(ratio * size**2) if ratio else None


def _discrete(run: Run, mechanism: Any, size: int) -> tuple[Sens, list[one_step.Pair]]:
    """The sensitivity of a step with discrete noise, and its pairs.

    Integer vectors move by integer vectors. In l1 by a shift of floor(size · Δ) on a line. In l2
    the squared length is a whole number; below 4 each moved coordinate moves by one: as many pairs
    of a shift by one. From 4 on one loss stands above all vectors (`integer_vectors`).
    """
    kind = mechanism["kind"]
    if kind == "discrete-laplace":
        sens, ratio = run.noise(mechanism, kind, "scale", "l1")
    else:
        sens, ratio = run.noise(mechanism, kind, "noise_std", "l2")
    whole = int(sens.squared * size**2)
    if whole == 0 or ratio == 0:
        return sens, []
    squared = sens.squared / ratio
    if squared > MAX_LATTICE**2 or whole > MAX_LATTICE**2:
        raise Undecided(f"expected noise and shift of at most {MAX_LATTICE} units")
    if kind == "discrete-laplace":
        rate = read_dyadic(mechanism["scale"])
        return sens, [one_step.DiscreteLaplaceShift(1 / rate, isqrt(whole))]
    if whole >= 4:
        most = integer_vectors.MAX_SQUARED, integer_vectors.MAX_SPREAD
        if whole > most[0] or squared * whole > most[1] ** 2:
            raise Undecided(f"expected a squared sensitivity and a spread of at most {most}")
        return sens, [integer_vectors.DiscreteGaussianVectors(squared, whole)]
    return sens, [one_step.DiscreteGaussianShift(squared)] * whole


def _answers(mechanism: Any) -> list[Pairs]:
    """Return the pair of randomised response; none if all answers are equally likely anyway."""
    truth, categories = randomised_truth(mechanism)
    even = truth * categories == 1
    return [] if even else [(one_step.RandomisedAnswers(truth, categories), None)]


_SYMMETRISED = one_step.Dots.symmetrised

_SUMS = {"scaled", "linear-map", "sum", "concatenation", "sum-of-bounded"}
"""Rules after which one drawn record is known to move the mean by half of the sensitivity, where it
is replaced: sums of bounded vectors."""

# on a lattice a record moves by the lattice's distance more at most, and so does its bound
_LINEAR = {
    *("scaled", "linear-map", "sum", "concatenation", "disjoint", "computed", "lattice"),
    "sum-of-bounded",
}
"""Rules after which one drawn record is known to move the mean by the sampled sensitivity at most.
"""


def _mixture(run: Run, mechanism: Any, share: Fraction, size: int) -> tuple[str, list[Pairs]]:
    """A constant shift hidden by `share` of the variance, a sampled one by the rest.

    What is drawn is hidden under replace-one if a drawn record is known to move the mean by at
    most the sampled sensitivity, being one of the vectors of a sum; else the sample is told. Under
    zero-out it may be a fixed batch, where another record stands for the one that is missing.
    """
    names = ("constant", "sampled", "rate", "noise_std")
    constant, sampled, rate, noise = read_kind(mechanism, "gaussian-mixture", *names)
    always, drawn = run.sensitivity(constant, "l2"), run.sensitivity(sampled, "l2")
    require_equal("adjacency", drawn.adjacency, always.adjacency)
    relation = drawn.adjacency
    if relation not in (*_BOTH_ORDERS, "replace-one"):
        raise CertificateWrong(f"expected a relation of records instead got {relation}")
    if relation == "replace-one":
        trust_sample(run, drawn)
    else:
        require_poisson(run, drawn)
    for each in (always, drawn):
        require_lattice(each, read_dyadic(noise))
    q = min(size * read_dyadic(rate, Fraction(1)), Fraction(1))
    variance = (read_dyadic(noise) / size) ** 2
    moved = drawn.squared * (4 if relation == "zero-out-one" else 1) if q else Fraction(0)
    if variance == 0 and (always.squared or moved):
        raise CertificateWrong("expected noise_std > 0 instead got 0: no finite cost")
    found: list[Pairs] = []
    if always.squared:
        part = share if moved else Fraction(1)
        found.append((one_step.GaussianShift(always.squared / (part * variance)), None))
    if moved:
        part = 1 - share if always.squared else Fraction(1)
        base = one_step.GaussianShift(moved / (part * variance))
        hidden = relation != "replace-one" or drawn.rules <= _LINEAR
        if q == 1:
            found.append((base, None))
        elif hidden:
            way = _SYMMETRISED if relation != "add-remove-one" else None
            found.append((one_step.Sampled(base, q), way))
        else:
            found.append((one_step.Revealed(base, q), None))
    return relation, found


def _pairs(run: Run, mechanism: Any, share: Fraction, size: int) -> tuple[str, list[Pairs]]:
    """The relation of a mechanism, and the pairs that dominate it for groups of `size` records.

    All of a group are there or all are not, or all are replaced. Noise then meets up to `size`
    times the shift. A Poisson sample draws a binomial number of them; of a fixed batch some are
    drawn with probability at most `size` times the share, and then count as all drawn.
    """
    kind = mechanism.get("kind") if isinstance(mechanism, dict) else None
    if kind == "poisson-accumulated":
        return _accumulated(run, mechanism, size)
    if kind == "randomised-response":
        return "replace-one", _answers(mechanism) * size
    if kind in ("discrete-laplace", "discrete-gaussian"):
        sens, lattices = _discrete(run, mechanism, size)
        return sens.adjacency, [(pair, None) for pair in lattices]
    if kind == "pure":
        sens, lattices = _pure(run, mechanism, size)
        return sens.adjacency, [(pair, None) for pair in lattices]
    if kind == "gaussian-mixture":
        return _mixture(run, mechanism, share, size)
    if kind == "poisson-sampled":
        event, rate = poisson_rate(mechanism)
        sens, base = _base(run, event, 1)
        if sens.adjacency == "replace-one":
            return sens.adjacency, replaced_in_a_sample(run, sens, base, rate, size)
        require_poisson(run, sens)
        if base and 0 < rate < 1 and size > 1:
            return sens.adjacency, [(_drawn(run, base, rate, size), None)]
    elif kind == "sampled-without-replacement":
        event, rate = fixed_batch_share(mechanism)
        sens, base = _base(run, event, size)
        require_fixed_batch(run, sens, mechanism)
        rate = min(rate * size, Fraction(1))
    else:
        rate, (sens, base) = Fraction(1), _base(run, mechanism, size)
    if base is None or rate == 0:
        return sens.adjacency, []
    if rate == 1:
        return sens.adjacency, [(_longer(base, size if kind == "poisson-sampled" else 1), None)]
    way = None if kind == "poisson-sampled" else _SYMMETRISED
    return sens.adjacency, [(one_step.Sampled(base, rate), way)]


def _accumulated(run: Run, mechanism: Any, size: int) -> tuple[str, list[Pairs]]:
    """Sums of n Poisson samples under one noise, each drawn from all records and by itself.

    A record is in Bin(n, q) of them, and moves the sum by its bound for each at most: as a group of
    n records does in one sample, and `size` records as n times as many.
    """
    names = ("event", "rate", "batches")
    event, rate, batches = read_kind(mechanism, "poisson-accumulated", *names)
    if (number := read_count(batches) * size) > MAX_GROUP:
        raise Undecided(f"expected at most {MAX_GROUP} records times batches, got {number}")
    q = read_dyadic(rate, Fraction(1))
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    require_poisson(run, sens)
    if not q or not ratio:
        return sens.adjacency, []
    base = one_step.GaussianShift(ratio)
    if q == 1 or number == 1:
        longer = _longer(base, number)
        return sens.adjacency, [(longer if q == 1 else one_step.Sampled(base, q), None)]
    return sens.adjacency, [(_drawn(run, base, q, number), None)]


def replaced_in_a_sample(
    run: Run,
    sens: Sens,
    base: one_step.Base | None,
    rate: Fraction,
    size: int,
) -> list[Pairs]:
    """A Gaussian step on a Poisson sample of which a record is replaced.

    Its sum is known to move by at most C = Δ/2 with a record that is drawn. In one data set that
    brings u, in the other v. With w = (1-q)(γ-1)/q, γ >= 1 and h(s) = (1-s)⁺ the profile of
    (1-q)N(0) + qN(u) against (1-q)N(0) + qN(v) is

        q ∫ (φ_u - γφ_v - wφ_0)⁺ = q E h(γe^X + we^Y),

    X and Y normal, with covariances |v-u|², |u|², <v-u, -u> over σ² and means minus half of their
    variances. It grows with every entry of that matrix: h is convex, and its derivatives by the
    entries are means of h'' times γe^X we^Y, (γe^X)²/2 and (we^Y)²/2 (Plackett 1954). No entry
    exceeds that of u = C, v = -C on a line; so (1-q)N(0) + qN(C) against (1-q)N(0) + qN(-C)
    dominates, for γ < 1 by symmetry. It is the difference of two releases of half the variance:
    (1-q)N(0) + qN(C) and N(0), against N(0) and (1-q)N(0) + qN(C). Both orders composed dominate.
    Of a group any is drawn with probability 1 - (1 - q)^size, and then brings size · C at most.
    """
    if not sens.rules <= _SUMS:
        raise CertificateWrong("expected a sum of vectors that are bounded one by one")
    trust_sample(run, sens)
    if base is None or rate == 0:
        return []
    if not isinstance(base, one_step.GaussianShift):
        raise CertificateWrong("expected Gaussian noise where a record is replaced")
    run.axioms.add(_REPLACED)
    drawn = 1 - (1 - rate) ** size
    if drawn == 1:
        return [(_longer(base, size), None)]
    half = one_step.Sampled(one_step.GaussianShift(base.mu_squared * size**2 / 2), drawn)
    return [(half, one_step.Dots.removed), (half, one_step.Dots.added)]


def _longer(base: one_step.Base, size: int) -> one_step.Base:
    """Return the pair of a shift that is `size` times as long."""
    if isinstance(base, one_step.GaussianShift):
        return one_step.GaussianShift(base.mu_squared * size**2)
    assert isinstance(base, one_step.LaplaceShift)
    return one_step.LaplaceShift(base.epsilon * size)


def _drawn(run: Run, base: one_step.Base, rate: Fraction, size: int) -> one_step.Pair:
    """A Poisson sample of a group: any of it with probability 1 - (1 - q)^size, then all of it;
    of Gaussian noise exactly as many as are drawn."""
    if isinstance(base, one_step.GaussianShift):
        run.axioms.add(_DRAWN)
        return one_step.DrawnShifts(base.mu_squared, rate, size)
    return one_step.Sampled(_longer(base, size), 1 - (1 - rate) ** size)


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
    normal = one_step.Normal(p, spend)
    lattices: list[one_step.Dots] = []
    power = 0
    for level in range(max(step.level for step in steps) + 1):
        power += grid.plan.doublings[level] if level < len(grid.plan.doublings) else 0
        lattices.append(one_step.Dots(grid.step * 2**power, grid.dense, unit, normal))
    dots = [lattices[step.level].dots(step.pair, tail) for step in steps]
    orders = any(not (step.pair.symmetric or step.way) for step in steps)

    def exp_step(power: int) -> losses.Interval:
        """Enclose e^h for the step h after `power` doublings."""
        return exp_bounds(grid.step * 2**power, 96 + 7 * grid.digits // 2)

    ways: list[Way] = [one_step.Dots.removed, one_step.Dots.added]
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
    steps: dict[tuple[one_step.Pair, Way | None, int], int] = {}
    gaussian, last = Fraction(0), 0
    for part in read_list(parts):
        place, often, level = read_triple(part)
        mechanism, times = _unrepeated(run, place)
        relation, pairs = _pairs(run, mechanism, split.get(place, _HALF), group)
        relations.add(relation)
        exposure[place] = exposure.get(place, 0) + read_count(often)
        if read_count(level, 0) > MAX_LEVELS:
            raise CertificateWrong(f"expected a level up to {MAX_LEVELS}, got {level}")
        for pair, way in pairs:
            if isinstance(pair, one_step.GaussianShift):
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
        listed.append(Step(one_step.GaussianShift(gaussian), None, 1, last))
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
    Poisson samples under replace-one, Gaussian noise on sums of vectors of at most C: both pairs
    of the shift by C with half of the variance, composed
    discrete Gaussian noise: the maximum of the profiles of all integer vectors of norm at most Δ
    groups of k: k times the shift; of a Poisson sample with Gaussian noise as many as are drawn
    n Poisson samples accumulated under one Gaussian noise: as a group of n in one sample
    E[(1 - e^(ε - L))⁺] ≤ δ for the loss L of each composed pair    ε ≥ 0
    ------------------------------------------------------------------------  privacy-loss
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ))

    `parts` are triples of a mechanism, how often, and its level; `shares` pairs of a mixture step
    and the share of its variance that hides the constant part.

    Source: Zhu, Dong, Wang 2022, Theorems 10 and 11.
    Check: run_loss, step_losses_sound, composed_sound, loss_delta_sound.
    """
    return _proved(
        run, parts, shares, group, _grid(step, doublings, dense, digits, cut), delta, epsilon
    )


def loss_distribution(
    run: Run, parts: Any, step: Any, reach: Any, bits: Any, delta: Any, epsilon: Any
) -> Priv:
    """The same as documents first had it: pairs of a mechanism and how often, on one step.

    as in privacy-loss; dots half a step apart, where they were a whole one, so that δ is smaller
    ---------------------------------------------------------------------------  loss-distribution
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ))

    Source: Zhu, Dong, Wang 2022, Theorems 10 and 11.
    """
    width, far = read_above(step, 0), read_count(reach)
    if far > MAX_REACH or read_count(bits) > MAX_BITS or far * width > MAX_LOSS:
        raise CertificateWrong(f"expected a grid within the limits, got {width}, {far}")
    digits = bits // 3 + 2
    tiny = read_delta(delta) * 10**digits / 10**9
    triples = [[*read_pair(part), 0] for part in read_list(parts)]
    grid = Grid(width / 2, 2 * far, digits, losses.Plan((), 10**digits, int(tiny)))
    return _proved(run, triples, [], 1, grid, delta, epsilon)


# --- Laplace noise alone: no lattice -------------------------------------------------------------


Knot = tuple[Fraction, int, int]
"""A sum of signed shifts, how many of its signs are +, and in how many ways it arises."""


def _knots(shifts: list[tuple[Fraction, int]], least: Fraction) -> Iterator[Knot]:
    """The sums t = Σ ±e > `least`, how many signs are +, and in how many ways they are chosen."""
    reach = [Fraction(0)]
    for e, n in reversed(shifts):
        reach.append(reach[-1] + e * n)

    def of_first(left: int, least: Fraction) -> Iterator[Knot]:
        """Yield those of the first `left` shifts that a choice of the others can still lift above
        `least`.
        """
        if reach[left] <= least:
            return
        if left == 0:
            yield Fraction(0), 0, 1
            return
        e, n = shifts[-left]
        for k in range(n + 1):
            moved = (2 * k - n) * e
            for t, plus, ways in of_first(left - 1, least - moved):
                yield t + moved, plus + k, ways * comb(n, k)

    return of_first(len(shifts), least)


def laplace_delta(
    shifts: list[tuple[Fraction, int]], epsilon: Fraction, spend: Callable[[int], None], p: int
) -> losses.Interval:
    """Enclose 2^p δ(ε) of Laplace noise of scale 1 shifted by e, n times, for all pairs (e, n).

    One shift has P = e^(v/2) M and Q = e^(-v/2) M of the loss v, with the measure

        2 e^(e/2) M = (one at e) + (one at -e) + dv/2 on (-e, e),

    so that δ(ε) of N shifts of sum S is 2 e^(ε/2) times the integral of sinh((v - ε)/2) over v > ε
    by the convolution of their M. Let I integrate from below: then dv/2 is 1/2 I applied to the
    difference of the two points, I^m of a point at ε is y^(m-1)/(m-1)! at y above ε, and sinh is
    (I²/2) / (1 - I²/4). A choice of signs with k of them + and the sum t > ε leaves

        (1 + I/2)^k (1 - I/2)^(N-k) (I²/2) / (1 - I²/4) = Σ_j c_j h^(j+1) / (j+1)!    h = (t - ε)/2

    with the coefficients c_j of (1 + z)^(k-1) (1 - z)^(N-k-1); and δ(ε) is 2^(1-N) e^((ε - S)/2)
    times the sum over all choices. For k = N the c_j are 2^(N-1) from j = N - 1 on: e^h.
    """
    number = sum(n for _, n in shifts)
    total = sum((e * n for e, n in shifts), Fraction(0))
    if epsilon >= total:
        return 0, 0
    if total > 2 * MAX_LOSS:
        raise Undecided(f"expected shifts of at most {2 * MAX_LOSS} together, got {total}")
    w = p + 4 + 2 * int(total)
    low = high = 0
    for t, k, ways in _knots(shifts, epsilon):
        h = (t - epsilon) / 2
        limbs = 1 + max(h.numerator, h.denominator).bit_length() // 64
        spend(32 * len(shifts) + number * (8 + limbs * (w + number) // 64))
        whole = 1 << number - 1 if k == number else 0
        series = _horner(_coefficients(k - 1, number - k - 1, number - 1), whole, h, w)
        grown = exp_bounds(h, w) if whole else (0, 0)
        low += ways * (series + whole * (grown[0] - (1 << w)))
        # each of Horner's steps rounds down by at most one: together by less than e^h
        high += ways * (series + 3 ** (int(h) + 1) + whole * (grown[1] - (1 << w)))
    shrink = exp_bounds((epsilon - total) / 2, w)
    scale = 2 * w - p + number - 1
    return max(low, 0) * shrink[0] >> scale, (high * shrink[1] >> scale) + 1


def _short_up(x: Fraction) -> Fraction:
    """A dyadic rational of about 160 bits at or above x.

    Long fractions would slow down every power of h; a larger shift dominates, so that δ only grows.
    """
    scale = Fraction(2) ** (160 + x.denominator.bit_length() - x.numerator.bit_length())
    return ceil(x * scale) / scale


def _coefficients(a: int, b: int, length: int) -> list[int]:
    """Of (1 + z)^a (1 - z)^b, f = Σ c_j z^j: from (1 - z²) f' = ((a - b) - (a + b) z) f."""
    before, now, found = 0, 1, []
    for j in range(length):
        found.append(now)
        before, now = now, ((a - b) * now - (a + b - j + 1) * before) // (j + 1)
    return found


def _horner(coefficients: list[int], whole: int, h: Fraction, w: int) -> int:
    """Σ (c_j - whole) h^(j+1) / (j+1)!, times 2^w, rounded down by less than e^h."""
    n, d, total = h.numerator, h.denominator, 0
    for j in range(len(coefficients), 0, -1):
        total = ((coefficients[j - 1] - whole << w) + total) * n // (d * j)
    return total


def laplace_losses(run: Run, parts: Any, group: Any, delta: Any, epsilon: Any) -> Priv:
    """Laplace noise alone, without a lattice; `parts` are pairs of a mechanism and how often.

    Sens(f_i, Δ_i²)    l1 norm    b_i > 0 fixed before the data are seen    noise fresh    ε ≥ 0
    E[(1 - e^(ε - L))⁺] ≤ δ for the sum L of the losses of Lap(1) shifted by kΔ_i/b_i, n_i times
    --------------------------------------------------------------------------  laplace-losses
    Priv(n₁·m₁ + ... + n_k·m_k, ApproxDp(ε, δ)) for groups of k

    Source: Zhu, Dong, Wang 2022, Theorem 10.
    """
    size, exposure, shifts = read_count(group), Counter[int](), Counter[Fraction]()
    relations: set[str] = set()
    for part in read_list(parts):
        place, often = read_pair(part)
        mechanism, times = _unrepeated(run, place)
        sens, ratio = run.noise(mechanism, "laplace", "scale", "l1")
        exposure[place] += read_count(often)
        relations.add(sens.adjacency)
        if ratio:  # a larger shift dominates
            shifts[_short_up(size * root_up(ratio))] += often * times
    if len(relations) != 1:
        raise CertificateWrong(f"expected one relation instead got {sorted(relations)}")
    (relation,) = relations
    if shifts.total() > MAX_SHIFTS or len(shifts) > MAX_SCALES:
        raise Undecided(f"expected up to {MAX_SHIFTS} shifts of {MAX_SCALES} lengths")
    d, e = read_delta(delta), read_above(epsilon, 0, False)
    bits = max(128, 64 + d.denominator.bit_length() - d.numerator.bit_length())
    enclose = partial(laplace_delta, list(shifts.items()), -_short_up(-e), run.spend)
    require_at_most("delta", enclose, d, run.spend, bits)
    return Priv(dict(exposure), relation, size, "approx-dp", (d, e))


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
