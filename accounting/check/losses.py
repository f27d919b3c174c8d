"""Compositions of privacy losses that are bounded from above, in whole numbers.

A *loss* is a list of masses, whole multiples of 10^-digits, at the losses first·h, (first + 1)·h,
... and a mass of an infinite loss. It bounds a pair of distributions (P, Q) if its profile

    δ(ε) = lost + Σ mass(x) (1 - e^(ε - x))⁺ >= sup_A P(A) - e^ε Q(A)    for every real ε.

Everything here keeps that inequality:

1. *Rounding up.* δ(ε) grows with every mass, so each mass may be rounded up.
2. *Moving up.* 1 - e^(ε - x) grows with x, so mass may be moved to a larger loss, or to infinity:
   what lies at the bottom is moved up to the lowest loss that is kept, what lies at the top is
   counted as lost, each up to `cut`.
3. *Doubling the step.* Mass m at an odd multiple x of h is shared between x - h and x + h, so that
   the sum of the masses and the sum of mass · e^-loss stay: shares 1/(1 + e^h) and e^h/(1 + e^h),
   rounded up. With γ = e^ε, (1 - γ e^-x)⁺ is a convex function of e^-x, and a mean of a convex
   function over two points is at least its value at their mean; so δ(ε) only grows.
4. *Composition.* If losses a and b bound the pairs of two independent mechanisms (or of two
   mechanisms of which the second may depend on what the first released: the inequality holds for
   each of its outcomes), the sums of the two losses bound the two together. For pairs this is Zhu,
   Dong, Wang 2022, Theorem 10 (a list of masses is itself a pair: Q has mass · e^-loss and what is
   missing to one). The masses of sums are the coefficients of a product of polynomials; they are
   multiplied exactly, and divided by 10^digits once, rounding up. Infinite losses: 1 - (1 - l)(1 -
   l') <= l·(all of b) + l'·(the finite masses of a).
   Masses may add up to a little more than one. That is no pair, but the product is bilinear and
   all is nonnegative, so by 1 more mass in a factor is more mass in the product.

*Order.* `composed` works in levels. At a level every loss that occurs n times is squared, to occur
n // 2 times at the next; losses that are left over single are multiplied in pairs. So N steps need
about log2 N levels, and all losses of a level spread alike, by about the root of 2^level steps:
therefore the step may double every few levels and products become shorter, not longer. What
doubling adds is a variance of at most h² per loss, where the loss has one of 2^level · v.

*Products.* Kronecker's substitution: coefficients below 10^width are the digits of one integer. The
standard library's `decimal` multiplies these by number-theoretic transforms, exactly (a result that
had to be rounded would raise `Inexact`). FLINT multiplies if it is installed, with the same result.
"""

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, localcontext
from itertools import accumulate, takewhile
from typing import NamedTuple

from .reading import Undecided

MAX_DIGITS_AT_ONCE = 1 << 26
"""Decimal digits of two lists that are multiplied: some 500 MB, with their product."""

Interval = tuple[int, int]
"""Whole numbers low <= 2^p x <= high that enclose a number x."""

Polynomial = list[int]
"""Coefficients, the constant first."""

Spend = Callable[[int], None]
"""Counts units of work, of about 0.2 microseconds; raises beyond what is allowed."""


class Loss(NamedTuple):
    """Upper bounds on the masses of losses first, first + 1, ..., and of an infinite loss."""

    first: int
    masses: Polynomial
    lost: int


def multiply_by_decimal(first: Polynomial, second: Polynomial) -> Polynomial:
    """Return the coefficients of a product of polynomials with coefficients >= 0, exactly.

    Kronecker's substitution at 10^width: a coefficient of the product is at most `most`, the
    product of the largest coefficients times the number of terms that meet, so that no digit is
    carried over.
    """
    length = len(first) + len(second) - 1
    most = max(first) * max(second) * min(len(first), len(second))
    width = len(str(most)) if most < 10**4000 else most.bit_length() // 3 + 1

    def packed(values: Polynomial) -> Decimal:
        """The polynomial at 10^width, its highest coefficient first."""
        return Decimal("".join([f"{v:0{width}d}" for v in reversed(values)]))

    exact = Context(prec=width * (length + 1), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact])
    with localcontext(exact):
        one = packed(first)
        digits = str(one * (one if first is second else packed(second)))
    digits = digits.zfill(width * length)
    end = len(digits)
    return [int(digits[i - width : i]) for i in range(end, end - width * length, -width)]


def multiply_by_flint(first: Polynomial, second: Polynomial) -> Polynomial:
    """The same, by FLINT."""
    one = fmpz_poly(first)
    found = [int(c) for c in (one * (one if first is second else fmpz_poly(second))).coeffs()]
    return found + [0] * (len(first) + len(second) - 1 - len(found))


try:
    from flint import fmpz_poly
except ImportError:
    multiply = multiply_by_decimal
else:
    multiply = multiply_by_flint


def product(first: Loss, second: Loss, unit: int) -> Loss:
    """The loss of two mechanisms together, masses in multiples of 1 / unit, rounded up (4).

    Infinite: the first is, whatever the second, or the second is and the first is finite.
    """
    masses = [-(-m // unit) for m in multiply(first.masses, second.masses)]
    lost = first.lost * (sum(second.masses) + second.lost) + second.lost * sum(first.masses)
    return Loss(first.first + second.first, masses, -(-lost // unit))


def trimmed(loss: Loss, cut: int) -> Loss:
    """Move mass of at most `cut` up from the bottom, and count as much at the top as lost (2).

    One mass at least stays, however large `cut` is.
    """
    first, masses, lost = loss
    low, below = _leading(masses, cut)
    masses = masses[low:]
    number, above = _leading(masses[::-1], cut)
    masses = masses[: len(masses) - number]
    masses[0] += below
    return Loss(first + low, masses, lost + above)


def _leading(masses: Polynomial, cut: int) -> tuple[int, int]:
    """How many of the first masses add to at most `cut`, without the last one, and their sum."""
    sums = list(takewhile(cut.__ge__, accumulate(masses[:-1])))
    return len(sums), sums[-1] if sums else 0


def doubled(loss: Loss, exp_step: Interval, p: int) -> Loss:
    """The same on a lattice of twice the step h, for low <= 2^p e^h <= high (3).

    `exp_step` is that enclosure: the share 1/(1 + e^h) that moves down is rounded up by its lower
    end, the share e^h/(1 + e^h) that moves up by its upper end.
    """
    first, masses, lost = loss
    if first % 2:
        first, masses = first - 1, [0, *masses]
    if len(masses) % 2 == 0:
        masses = [*masses, 0]
    one, half = 1 << p, (1 << p) - 1
    down = -(-one * one // (one + exp_step[0]))
    up = -(-one * exp_step[1] // (one + exp_step[1]))
    kept, odd = masses[::2], masses[1::2]
    for i, mass in enumerate(odd):
        kept[i] += mass * down + half >> p
        kept[i + 1] += mass * up + half >> p
    return Loss(first // 2, kept, lost)


class Plan(NamedTuple):
    """How to compose: `doublings[k]` is how often the step doubles before level k.

    `unit` is the inverse of the least mass; `cut` bounds the mass that is cut off from all losses
    of a level together, at either end.
    """

    doublings: tuple[int, ...]
    unit: int
    cut: int


def composed(
    entering: Sequence[tuple[int, Loss, int]],
    plan: Plan,
    exp_step: Callable[[int], Interval],
    p: int,
    spend: Spend,
) -> tuple[Loss, int]:
    """The loss of all together, and how often the step has doubled.

    `entering` are triples of a level, a loss on the lattice of that level and how often it occurs;
    `exp_step(k)` encloses 2^p e^h for the step h after k doublings.
    """
    level, power = 0, 0
    last = max(level for level, _, _ in entering)
    items: list[tuple[Loss, int]] = []
    while True:
        for _ in range(plan.doublings[level] if level < len(plan.doublings) else 0):
            items = [(doubled(loss, exp_step(power), p), n) for loss, n in items]
            spend(sum(len(loss.masses) for loss, _ in items) // 2)
            power += 1
        items += [(loss, n) for entry, loss, n in entering if entry == level]
        if level >= last and len(items) == 1 and items[0][1] == 1:
            return items[0][0], power
        cut = plan.cut // max(1, sum(n for _, n in items))

        def times(first: Loss, second: Loss, cut: int = cut) -> Loss:
            digits = 3 * plan.unit.bit_length() // 10
            if (len(first.masses) + len(second.masses)) * digits > MAX_DIGITS_AT_ONCE:
                raise Undecided(f"gave up before lists of more than {MAX_DIGITS_AT_ONCE} digits")
            spend((len(first.masses) + len(second.masses)) * (4 + digits // 2))
            return trimmed(product(first, second, plan.unit), cut)

        singles = [loss for loss, n in items if n % 2]
        items = [(times(loss, loss), n // 2) for loss, n in items if n > 1]
        items += [(times(a, b), 1) for a, b in zip(singles[::2], singles[1::2], strict=False)]
        if len(singles) % 2:
            items.append((singles[-1], 1))
        level += 1
