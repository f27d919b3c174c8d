"""Checks certificates that rest on distributions of the privacy loss, by recomputing these.

    python pld_checker.py run.cert.json        (checker.py, losses.py and one_step.py beside it)

A distribution is a list of whole numbers, each an upper bound (`losses`); that of one step comes
from enclosures of the distribution functions of its dominating pair (`one_step`). Which mechanism
has which pair, and under what conditions, stands here. FLINT multiplies if it is installed; the
numbers are the same without.
"""

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import log
from typing import Any, NamedTuple

try:
    from . import checker, losses, one_step
except ImportError:  # run as a file, with the others beside it
    import checker  # type: ignore[import-not-found, no-redef]
    import losses  # type: ignore[import-not-found, no-redef]
    import one_step  # type: ignore[import-not-found, no-redef]

MAX_REACH = 1 << 15  # multiples of the step, in nodes of the first kind
MAX_BITS = 512
MAX_LOSS = 512  # of one step
MAX_DIGITS = 400
MAX_LEVELS = 128

Way = Callable[[one_step.Lattice, list[one_step.Dot]], losses.Loss]


class Grid(NamedTuple):
    """Where and how finely to compute; see `losses.Plan` and `one_step.Lattice`."""

    step: Fraction
    dense: int
    digits: int
    plan: losses.Plan


class Step(NamedTuple):
    """A pair that is composed `times` times; `glued`, if both orders are one loss."""

    pair: one_step.Pair
    glued: bool
    times: int
    level: int


# --- which mechanism has which pair -------------------------------------------------------------

_BOTH_ORDERS = ("add-remove-one", "zero-out-one")


def _unrepeated(run: checker.Run, place: int) -> tuple[Any, int]:
    mechanism, times = run.at(place), 1
    while isinstance(mechanism, dict) and mechanism.get("kind") == "repeated":
        mechanism, n = checker.read_kind(mechanism, "repeated", "event", "times")
        times *= checker.read_count(n)
    return mechanism, times


def _pairs(run: checker.Run, mechanism: Any) -> tuple[str, Iterator[tuple[one_step.Pair, bool]]]:
    """The relation of a mechanism, and the pairs that together dominate it."""
    kind = mechanism.get("kind") if isinstance(mechanism, dict) else None
    rate, glued = Fraction(1), False
    if kind == "poisson-sampled":
        sens, ratio, rate = checker.poisson_step(run, mechanism)
    elif kind == "sampled-without-replacement":
        sens, ratio, rate = checker.fixed_batch_step(run, mechanism)
        glued = True
    else:
        sens, ratio = run.noise(mechanism, "gaussian", "noise_std", "l2")

    def found() -> Iterator[tuple[one_step.Pair, bool]]:
        base = one_step.GaussianShift(ratio)
        if ratio > 0 and rate > 0:
            yield (base if rate == 1 else one_step.Sampled(base, rate)), glued

    return sens.adjacency, found()


# --- composition --------------------------------------------------------------------------------


def _bits(steps: list[Step], grid: Grid) -> int:
    """A precision that leaves the masses, divided by the step, right to about one unit.

    More bits than needed cost time, fewer a larger delta: nothing else depends on this.
    """
    tail = grid.digits * log(10)
    top = max(step.pair.highest(tail) for step in steps)
    if not top <= MAX_LOSS:
        raise checker.Undecided(f"expected losses up to {MAX_LOSS} in one step, got {top:.6g}")
    return (
        7 * grid.digits // 2
        + 64
        + 3 * int(top)
        + 2 * grid.step.denominator.bit_length()
        + max(step.pair.precision for step in steps)
    )


def compositions(
    steps: list[Step], relation: str, grid: Grid, spend: Callable[[int], None]
) -> Iterator[tuple[losses.Loss, Fraction]]:
    """The loss of all steps, and its step, for each order of the data sets that matters."""
    p, unit = _bits(steps, grid), 10**grid.digits
    total = sum(step.times for step in steps)
    tail = grid.plan.cut // total
    lattices: list[one_step.Lattice] = []
    power = 0
    for level in range(max(step.level for step in steps) + 1):
        power += grid.plan.doublings[level] if level < len(grid.plan.doublings) else 0
        lattices.append(one_step.Lattice(grid.step * 2**power, grid.dense, unit, p))
    dots = [lattices[step.level].dots(step.pair, tail, spend) for step in steps]
    orders = any(not (step.pair.symmetric or step.glued) for step in steps)

    def exp_step(power: int) -> losses.Interval:
        return checker.exp_bounds(grid.step * 2**power, 96 + 7 * grid.digits // 2)

    ways: list[Way] = [one_step.Lattice.removed, one_step.Lattice.added]
    for way in ways if orders else ways[:1]:
        entering = []
        for step, points in zip(steps, dots, strict=True):
            made = one_step.Lattice.glued if step.glued else way
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
    shrink, total = checker.exp_bounds(-step, p)[0], 0
    for mass in reversed(loss.masses[start:]):  # a lower bound on the sum of mass · e^-(loss - low)
        total = (mass << p) + (total * shrink >> p)
    lowest = checker.exp_bounds(epsilon - (loss.first + start) * step, p)[0]
    above = (sum(loss.masses[start:]) << p) - (total * lowest >> p)
    return Fraction((loss.lost << p) + above, unit << p)


# --- the rules ----------------------------------------------------------------------------------


def _grid(step: Any, doublings: Any, dense: Any, digits: Any, cut: Any) -> Grid:
    often = tuple(checker.read_count(n, 0) for n in checker.read_list(doublings))
    width = checker.read_above(step, 0)
    grid = Grid(
        width,
        checker.read_count(dense, 4),
        checker.read_count(digits),
        losses.Plan(often, 10 ** min(digits, MAX_DIGITS), int(checker.read_above(cut, 0, False))),
    )
    if (
        *(grid.digits > MAX_DIGITS, len(often) > MAX_LEVELS, sum(often) > MAX_LEVELS),
        *(grid.dense > 1 << 12, width > MAX_LOSS, width.denominator >> 1024),
    ) != (False,) * 6:
        raise checker.CertificateWrong(f"expected a grid within the limits, got {grid!s:.200}")
    return grid


def _proved(run: checker.Run, parts: Any, grid: Grid, delta: Any, epsilon: Any) -> checker.Priv:
    exposure: dict[int, int] = {}
    relations: set[str] = set()
    steps: dict[tuple[one_step.Pair, bool, int], int] = {}
    gaussian, last = Fraction(0), 0
    for part in checker.read_list(parts):
        place, often, level = checker.read_triple(part)
        mechanism, times = _unrepeated(run, place)
        relation, pairs = _pairs(run, mechanism)
        relations.add(relation)
        exposure[place] = exposure.get(place, 0) + checker.read_count(often)
        if checker.read_count(level, 0) > MAX_LEVELS:
            raise checker.CertificateWrong(f"expected a level up to {MAX_LEVELS}, got {level}")
        for pair, glued in pairs:
            if isinstance(pair, one_step.GaussianShift):
                gaussian += often * times * pair.mu_squared
                last = max(last, level)
            else:
                key = (pair, glued, level)
                steps[key] = steps.get(key, 0) + often * times
    if len(relations) != 1:
        raise checker.CertificateWrong(f"expected one relation instead got {sorted(relations)}")
    (relation,) = relations
    d, e = checker.read_delta(delta), checker.read_above(epsilon, 0, False)
    listed = [Step(*key[:2], n, key[2]) for key, n in steps.items()]
    if gaussian:
        listed.append(Step(one_step.GaussianShift(gaussian), False, 1, last))
    if listed:
        for total, step in compositions(listed, relation, grid, run.spend):
            checker.require_least("delta", d, delta_upper(total, step, e, grid.plan.unit))
    return checker.Priv(exposure, relation, 1, "approx-dp", (d, e))


def privacy_loss(
    run: checker.Run,
    parts: Any,
    step: Any,
    doublings: Any,
    dense: Any,
    digits: Any,
    cut: Any,
    delta: Any,
    epsilon: Any,
) -> checker.Priv:
    """(epsilon, delta) of `parts` composed: triples of a mechanism, how often, and its level."""
    return _proved(run, parts, _grid(step, doublings, dense, digits, cut), delta, epsilon)


def loss_distribution(
    run: checker.Run, parts: Any, step: Any, reach: Any, bits: Any, delta: Any, epsilon: Any
) -> checker.Priv:
    """The same as first written: pairs of a mechanism and how often, on one step throughout.

    The dots were as far apart as the step; here they are at half of it, so that delta is smaller.
    """
    width, far = checker.read_above(step, 0), checker.read_count(reach)
    if far > MAX_REACH or checker.read_count(bits) > MAX_BITS or far * width > MAX_LOSS:
        raise checker.CertificateWrong(f"expected a grid within the limits, got {width}, {far}")
    digits = bits // 3 + 2
    tiny = checker.read_delta(delta) * 10**digits / 10**9
    triples = [[*checker.read_pair(part), 0] for part in checker.read_list(parts)]
    grid = Grid(width / 2, 2 * far, digits, losses.Plan((), 10**digits, int(tiny)))
    return _proved(run, triples, grid, delta, epsilon)


RULES: checker.Rules = {
    "loss-distribution": (
        loss_distribution,
        ("parts", "step", "reach", "bits", "delta", "epsilon"),
        0,
    ),
    "privacy-loss": (
        privacy_loss,
        ("parts", "step", "doublings", "dense", "digits", "cut", "delta", "epsilon"),
        0,
    ),
}


def check(document: bytes) -> checker.Verdict:
    """Return what a certificate proves; see `checker.check`, which lacks the rules here."""
    return checker.check(document, more=RULES)


if __name__ == "__main__":
    sys.exit(checker.main(sys.argv[1:], more=RULES))
