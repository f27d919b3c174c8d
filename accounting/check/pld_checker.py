"""Checks certificates that hold privacy-loss distributions, by recomputing these in integers.

    python pld_checker.py run.cert.json        (checker.py beside it, nothing else)

The distribution of the privacy loss of one step is put on a grid so that it dominates (connecting
the dots: Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022), with probabilities rounded up to whole
multiples of 2^-bits. Steps are composed by exact products of integer polynomials: whatever leaves
the window at the top counts as lost, whatever leaves it at the bottom is moved up. Every number is
an upper bound, so the delta in the end is one. FLINT multiplies if it is installed; the numbers are
the same without.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

try:
    from . import checker
except ImportError:  # run as a file, with checker.py beside it
    import checker  # type: ignore[import-not-found, no-redef]

MAX_REACH = 1 << 15  # multiples of the step
MAX_BITS = 512
MAX_LOSS = 512

Interval = tuple[int, int]
Polynomial = list[int]


def multiply_packed(first: Polynomial, second: Polynomial) -> Polynomial:
    """The coefficients of a product of polynomials, coefficients >= 0 packed into one integer."""
    length = len(first) + len(second) - 1
    bits = max(first).bit_length() + max(second).bit_length() + length.bit_length()
    width = bits // 8 + 1

    def packed(values: Polynomial) -> int:
        return int.from_bytes(b"".join(v.to_bytes(width, "little") for v in values), "little")

    whole = (packed(first) * packed(second)).to_bytes(width * length + 1, "little")
    return [int.from_bytes(whole[i * width : (i + 1) * width], "little") for i in range(length)]


def multiply_by_flint(first: Polynomial, second: Polynomial) -> Polynomial:
    """The same, by FLINT."""
    found = [int(c) for c in (fmpz_poly(first) * fmpz_poly(second)).coeffs()]
    return found + [0] * (len(first) + len(second) - 1 - len(found))


try:
    from flint import fmpz_poly
except ImportError:
    multiply = multiply_packed
else:
    multiply = multiply_by_flint


class Grid(NamedTuple):
    """Losses are up to `reach` multiples of `step` from zero; masses are multiples of 2^-bits."""

    step: Fraction
    reach: int
    bits: int


class Loss(NamedTuple):
    """Upper bounds on the probabilities of losses first, first + 1, ..., and of a loss beyond."""

    first: int
    masses: Polynomial
    lost: int


class Pair(NamedTuple):
    """Normal(0, 1) against itself with Normal(mu, 1) mixed in: mu squared and the rate of it."""

    mu_squared: Fraction
    rate: Fraction


# --- one step ----------------------------------------------------------------------------------


class _Cut(NamedTuple):
    """Where the loss of a pair passes a multiple of the step: Phi(x), Phi(x - mu), e^loss."""

    without: Interval
    with_it: Interval
    exp_loss: Interval


def _normal_cdf(low: Fraction, high: Fraction, p: int) -> Interval:
    """Enclose Phi over [low, high], a short interval; the density is below 2/5."""
    x = Fraction(int((low + high) * (1 << p)), 2 << p)
    below, above = checker.tail_bounds(x * x, x * x, p)
    if x > 0:
        below, above = (1 << p) - above, (1 << p) - below
    slack = int((high - low) * (1 << p)) + 2
    return max(below - slack, 0), min(above + slack, 1 << p)


def _cut(pair: Pair, mu: tuple[Fraction, Fraction], loss: Fraction, p: int) -> _Cut:
    """The loss ln(1 - q + q e^(mu x - mu²/2)) grows in x; solve for x and take Phi there."""
    exp_loss = checker.exp_bounds(loss, p)
    ends = [(Fraction(e, 1 << p) - 1) / pair.rate + 1 for e in exp_loss]
    if ends[1] <= 0:
        return _Cut((0, 0), (0, 0), exp_loss)
    # near the least loss of all only an upper end is known: Phi is between 0 and there
    logs = [checker.log_bounds(max(ends[0], ends[1] / 2), p)[0], checker.log_bounds(ends[1], p)[1]]
    quotients = [Fraction(z, 1 << p) / m for z in logs for m in mu]
    low, high = min(quotients), max(quotients)
    halves = mu[0] / 2, mu[1] / 2
    without = _normal_cdf(low + halves[0], high + halves[1], p)
    with_it = _normal_cdf(low - halves[1], high - halves[0], p)
    if ends[0] <= 0 or ends[0] < ends[1] / 2:
        without, with_it = (0, without[1]), (0, with_it[1])
    return _Cut(without, with_it, exp_loss)


def _cuts(pair: Pair, grid: Grid, p: int) -> tuple[int, list[_Cut]]:
    """The first index and the cuts from there on, as far as there is any mass to speak of."""
    root = checker.sqrt_bounds(pair.mu_squared, p)
    mu = (Fraction(root[0], 1 << p), Fraction(root[1], 1 << p))
    unit = 1 << (p - grid.bits)

    def walk(towards: int, done: Callable[[_Cut], bool]) -> list[_Cut]:
        found: list[_Cut] = []
        for index in range(0, towards * (grid.reach + 1), towards):
            found.append(_cut(pair, mu, index * grid.step, p))
            if done(found[-1]):
                break
        return found

    up = walk(1, lambda cut: (1 << p) - cut.with_it[0] <= unit)
    down = walk(-1, lambda cut: cut.without[1] <= unit and cut.exp_loss[1] < 1 << p)
    return 1 - len(down), [*down[:0:-1], *up]


def _difference(low: Interval, high: Interval) -> Interval:
    return max(high[0] - low[1], 0), max(high[1] - low[0], 0)


def _mixed(rate: Fraction, without: Interval, with_it: Interval) -> Interval:
    n, d = rate.numerator, rate.denominator
    low, high = ((d - n) * a + n * b for a, b in zip(without, with_it, strict=True))
    return low // d, -(-high // d)


def _split(first: Interval, second: Interval, ends: tuple[Interval, Interval], p: int) -> Interval:
    """Upper bounds on the masses at the lower and the upper end of a cell of losses.

    Together they have the probability of the cell under the first law, `first`, and, weighted with
    e^-loss, that under the second. Then the profile is its own chord between the ends.
    """
    (e_low, e_high), one = ends, 1 << p
    # lower: (Q e^(l+h) - P) / (e^h - 1); upper: (P - Q e^l) / (1 - e^-h); e^h = e_high / e_low
    growth = (e_high[0] << p) // e_low[1] - one
    shrink = one - -(-(e_low[1] << p) // e_high[0])
    at_low = -(-second[1] * e_high[1] >> p) - first[0]
    at_high = first[1] - (second[0] * e_low[0] >> p)
    return -(-max(at_low, 0) * one // growth), -(-max(at_high, 0) * one // shrink)


class _Step:
    """One step on the grid, mass by mass at precision p, in the order asked for."""

    def __init__(self, pair: Pair, grid: Grid) -> None:
        self._pair = pair
        self._shift = 64 + 2 * int(grid.reach * grid.step) + grid.step.denominator.bit_length()
        self._p = grid.bits + self._shift
        self._one = 1 << self._p
        self._start, self._cuts = _cuts(pair, grid, self._p)

    def _mixture(self, without: Interval, with_it: Interval) -> Interval:
        return _mixed(self._pair.rate, without, with_it)

    def _cells(self, least: int) -> Iterator[tuple[int, Interval, Interval]]:
        """Index, probability with the record present and without it, of cells from `least` on."""
        for i in range(max(least - self._start, 0), len(self._cuts) - 1):
            below, above = self._cuts[i], self._cuts[i + 1]
            without = _difference(below.without, above.without)
            with_it = _difference(below.with_it, above.with_it)
            yield self._start + i, self._mixture(without, with_it), without

    def _removed(self, least: int, masses: Counter[int]) -> int:
        """Losses with the record's data set first: add masses, return what lies beyond."""
        for index, mixture, without in self._cells(least):
            ends = self._cuts[index - self._start], self._cuts[index - self._start + 1]
            low, high = _split(mixture, without, (ends[0].exp_loss, ends[1].exp_loss), self._p)
            masses[index] += low
            masses[index + 1] += high
        return self._one - self._mixture(self._cuts[-1].without, self._cuts[-1].with_it)[0]

    def _added(self, least: int, masses: Counter[int]) -> None:
        """Losses with the record's data set second: the same cells, seen from the other side."""
        for index, mixture, without in self._cells(least):
            ends = self._cuts[index - self._start + 1], self._cuts[index - self._start]
            low, high = _split(
                without, mixture, (self._inverse(ends[0]), self._inverse(ends[1])), self._p
            )
            masses[-index - 1] += low
            masses[-index] += high
        masses[1 - self._start - len(self._cuts)] += self._one - self._cuts[-1].without[0]

    def _inverse(self, cut: _Cut) -> Interval:
        low, high = cut.exp_loss
        return self._one * self._one // high, -(-self._one * self._one // low)

    def _rounded(self, masses: Counter[int], lost: int) -> Loss:
        first, last = min(masses), max(masses)
        return Loss(
            first,
            [-(-masses[i] >> self._shift) for i in range(first, last + 1)],
            -(-lost >> self._shift),
        )

    def removed(self) -> Loss:
        masses: Counter[int] = Counter()
        lost = self._removed(self._start, masses)
        first = self._cuts[0]
        masses[self._start] += self._mixture(first.without, first.with_it)[1]
        return self._rounded(masses, lost)

    def added(self) -> Loss:
        masses: Counter[int] = Counter()
        self._added(self._start, masses)
        return self._rounded(masses, self._cuts[0].without[1])

    def glued(self) -> Loss:
        """One distribution for both orders of a symmetric relation.

        Its profile is that of `removed` for losses above zero, that of `added` below; whatever
        probability is left has loss zero. Source: Zhu, Dong, Wang 2022, Theorem 11.
        """
        masses: Counter[int] = Counter()
        lost = self._removed(0, masses)
        self._added(0, masses)
        middle = self._cuts[-self._start]
        mixture = self._mixture(middle.without, middle.with_it)
        masses[0] += max(mixture[1] + middle.without[1] - self._one, 0)
        return self._rounded(masses, lost)


# --- composition -------------------------------------------------------------------------------


def composed(first: Loss, second: Loss, grid: Grid) -> Loss:
    """The distribution of the sum of two losses."""
    one_up = (1 << grid.bits) - 1
    masses = [m + one_up >> grid.bits for m in multiply(first.masses, second.masses)]
    lost = first.lost * (sum(second.masses) + second.lost) + second.lost * sum(first.masses)
    return _within(Loss(first.first + second.first, masses, lost + one_up >> grid.bits), grid)


def _within(loss: Loss, grid: Grid) -> Loss:
    """Move what is below the window up to its lower edge, count what is above it as lost."""
    first, masses, lost = loss
    if (over := first + len(masses) - 1 - grid.reach) > 0:
        lost += sum(masses[-over:])
        masses = masses[:-over] or [0]
    if (under := -grid.reach - first) > 0:
        masses = [sum(masses[: under + 1]), *masses[under + 1 :]]
        first = -grid.reach
    return Loss(first, masses, lost)


def power(loss: Loss, times: int, grid: Grid) -> Loss:
    """The distribution of a sum of `times` independent losses."""
    total: Loss | None = None
    loss = _within(loss, grid)
    while True:
        if times % 2:
            total = loss if total is None else composed(total, loss, grid)
        times //= 2
        if times == 0:
            assert total is not None
            return total
        loss = composed(loss, loss, grid)


def delta_upper(loss: Loss, epsilon: Fraction, grid: Grid) -> Fraction:
    """An upper bound on the sum of mass · (1 - e^(epsilon - loss)) over losses above epsilon."""
    p, total = 64, loss.lost << 64
    for i, mass in enumerate(loss.masses):
        excess = (loss.first + i) * grid.step - epsilon
        if excess > 0 and mass:
            total += mass * ((1 << p) - checker.exp_bounds(-excess, p)[0])
    return Fraction(total, 1 << (grid.bits + p))


# --- the rule ----------------------------------------------------------------------------------


def _steps(run: checker._Run, place: int) -> tuple[str, Pair, int]:
    """The relation and the pair of one step of a listed mechanism, and its number of steps."""
    mechanism, times = run.at(place), 1
    while isinstance(mechanism, dict) and mechanism.get("kind") == "repeated":
        mechanism, n = checker._kind(mechanism, "repeated", "event", "times")
        times *= checker._count(n)
    kind = mechanism.get("kind") if isinstance(mechanism, dict) else None
    if kind == "poisson-sampled":
        sens, ratio, rate = checker._poisson_step(run, mechanism)
    elif kind == "sampled-without-replacement":
        sens, ratio, rate = checker._fixed_batch_step(run, mechanism)
    else:
        (sens, ratio), rate = run.noise(mechanism, "gaussian", "noise_std", "l2"), Fraction(1)
    return sens.adjacency, Pair(ratio, rate), times


def _grid(run: checker._Run, step: Any, reach: Any, bits: Any) -> Grid:
    grid = Grid(checker._above(step, 0), checker._count(reach), checker._count(bits))
    if grid.reach > MAX_REACH or grid.bits > MAX_BITS or grid.reach * grid.step > MAX_LOSS:
        raise checker.CertificateWrong(f"expected a grid within the limits instead got {grid}")
    return grid


def compositions(steps: Counter[Pair], relation: str, grid: Grid) -> list[Loss]:
    """The loss of all steps together, for each order of the data sets that has to be looked at."""
    both = (_Step.removed, _Step.added)
    ways = both if relation in ("add-remove-one", "zero-out-one") else (_Step.glued,)
    totals = [Loss(0, [1 << grid.bits], 0)] * len(ways)
    for pair, times in steps.items():
        step = _Step(pair, grid)
        totals = [
            composed(total, power(way(step), times, grid), grid)
            for total, way in zip(totals, ways, strict=True)
        ]
    return totals


def loss_distribution(
    run: checker._Run, parts: Any, step: Any, reach: Any, bits: Any, delta: Any, epsilon: Any
) -> checker._Priv:
    """(epsilon, delta) of `parts` composed: pairs of a mechanism and how often."""
    grid = _grid(run, step, reach, bits)
    exposure: dict[int, int] = {}
    steps: Counter[Pair] = Counter()
    relations: set[str] = set()
    for part in checker._list(parts):
        place, often = checker._pair(part)
        relation, pair, times = _steps(run, place)
        relations.add(relation)
        exposure[place] = exposure.get(place, 0) + checker._count(often)
        run.spend(grid.reach * grid.bits // 2)
        if pair.mu_squared > 0 and pair.rate > 0:
            steps[pair] += often * times
    if len(relations) != 1:
        raise checker.CertificateWrong(f"expected one relation instead got {sorted(relations)}")
    (relation,) = relations
    d, e = checker._delta(delta), checker._above(epsilon, 0, False)
    for total in compositions(steps, relation, grid):
        checker._least("delta", d, delta_upper(total, e, grid))
    return checker._Priv(exposure, relation, 1, "approx-dp", (d, e))


RULES: checker.Rules = {
    "loss-distribution": (
        loss_distribution,
        ("parts", "step", "reach", "bits", "delta", "epsilon"),
        0,
    )
}


def check(document: bytes) -> checker.Verdict:
    """Return what a certificate proves; see `checker.check`, which lacks the one rule here."""
    return checker.check(document, more=RULES)


if __name__ == "__main__":
    sys.exit(checker.main(sys.argv[1:], more=RULES))
