"""Shifts so long that one sees them, met with a small probability: the sample is taken as revealed.

Inner quadratures of a sampled shift μ take about μ² nodes. Beyond `LONGEST_LOSS` they would cost
much and gain little: a revealed sample adds log(1/q) at most to a loss of about μ²/2 for each
step that met the record. So there `RevealedSample` stands for `Sampled` in every upper bound.

With k_j of n_j steps of each pair j meeting the record, the composition has the profile

    δ(ε) = Σ_k Π_j Binomial(k_j; n_j, q_j) H_ε(Gaussian shift of μ² = μ₀² + Σ_j k_j μ_j²).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, log, prod, sqrt

from flint import arb

from ..numbers.enclosure import Enclosure, ball_of, precision
from .closed_form import Curve
from .pairs import (
    CopiesDrawn,
    DominatingPair,
    DrawnShifts,
    GaussianShift,
    Order,
    ReplacedInSample,
    RevealedSample,
    Sampled,
)
from .profiles import delta_of, mu_squared_ball

LONGEST_LOSS = 300.0
"""The largest loss, of the shift's middle, for which a sampled pair is integrated."""

_FAR = 10**4
"""The b beyond which a relative error of 1/b² in a small correction may be allowed."""

_GUARD_BITS = 128
_Counts = Mapping[DominatingPair, int]


def revealed(counts: _Counts) -> dict[DominatingPair, int]:
    """Return a composition that lies above this one, of pairs whose moments can be integrated.

    Sampled shifts that are too long are revealed. Of n records drawn each by itself each gets its
    share 1/n of the noise's variance: their sum is a function of n sampled shifts. A record that is
    replaced in a sample is the difference of two releases of half the variance: (1-q)N(0) + qN(C)
    and N(0), against N(0) and (1-q)N(0) + qN(C). Where a batch is drawn with replacement, a record
    that is drawn at all counts as all of it.
    """
    found: dict[DominatingPair, int] = {}
    for pair, n in counts.items():
        for known, times in _integrated(pair):
            if isinstance(known, Sampled) and _loss(known) > LONGEST_LOSS:
                known = RevealedSample(known.base, known.rate)
            found[known] = found.get(known, 0) + n * times
    return found


def _integrated(pair: DominatingPair) -> Iterator[tuple[DominatingPair, int]]:
    """Yield what lies above a pair and has moments, each with how often it is composed."""
    match pair:
        case DrawnShifts():
            shift = GaussianShift(pair.mu_squared * pair.size)
            yield Sampled(shift, pair.rate, pair.order), pair.size
        case ReplacedInSample():
            for order in (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND):
                yield Sampled(GaussianShift(2 * pair.mu_squared), pair.rate, order), 1
        case CopiesDrawn():
            yield RevealedSample(GaussianShift(pair.mu_squared * pair.draws**2), pair.rate), 1
        case _:
            yield pair, 1


def _loss(pair: Sampled) -> Fraction:
    base = pair.base
    return base.mu_squared / 2 if isinstance(base, GaussianShift) else base.epsilon


@dataclass(frozen=True)
class RevealedForm(Curve):
    """The profile of revealed samples of Gaussian shifts: a mean of Gaussian profiles.

    `missing` is the probability of numbers of meetings that were left out: anything from none to
    this is infinite.
    """

    shifts: tuple[tuple[arb, Fraction, Fraction], ...]
    """For each number of meetings its probability, μ² and the slack of μ²."""
    missing: arb
    bits: int

    def delta(self, epsilon: float) -> Enclosure:
        """Return an enclosure of δ(ε) for ε >= 0, at most 1."""
        with precision(self.bits):
            x = arb(epsilon)
            ball = sum((p * _gaussian(m, s, x) for p, m, s in self.shifts), arb(0))
            ball += arb(0).union(self.missing)
            return Enclosure(ball.lower().max(arb(0)), ball.upper().max(arb(0)).min(arb(1)))

    def _highest(self) -> float:
        return max(float(mu_squared) for _, mu_squared, _ in self.shifts) / 2 + 1.0


def _gaussian(mu_squared: Fraction, slack: Fraction, x: arb) -> arb:
    """Return a ball that contains δ(x), x >= 0, of Gaussian shifts of this μ², none if zero.

    With a = x/μ - μ/2 and b = a + μ it is Q(a) - φ(a) R(b), R = Q/φ Mills' ratio. Balls of erfc(b)
    widen with b, but then b/(1 + b²) <= R(b) <= 1/b is narrow enough (Gordon 1941).
    """
    if not mu_squared:
        return arb(0)
    shift = GaussianShift(mu_squared, slack)
    mu = mu_squared_ball(shift).sqrt()
    a, b = x / mu - mu / 2, x / mu + mu / 2
    if b < _FAR:
        return delta_of(shift, x)
    density = (-a * a / 2).exp() / (2 * arb.pi()).sqrt()
    if abs(a) < 1000:
        tail = (a / arb(2).sqrt()).erfc() / 2
    else:
        tail = arb(0).union(density) if a > 0 else 1 - arb(0).union(density)
    return tail - density * (b / (1 + b * b)).union(1 / b)


def revealed_form(counts: _Counts, delta: float, *, most_terms: int) -> RevealedForm | None:
    """Return the closed form of Gaussian shifts, revealed samples of such among them, or None.

    None where no sample is revealed, something else is composed, or more than `most_terms` would
    have to be summed.
    """
    plain = [(pair, n) for pair, n in counts.items() if isinstance(pair, GaussianShift)]
    known = [
        (pair.base, pair.rate, n)
        for pair, n in counts.items()
        if isinstance(pair, RevealedSample) and isinstance(pair.base, GaussianShift)
    ]
    if not known or len(known) + len(plain) < len(counts):
        return None
    mu_squared = sum((n * pair.mu_squared for pair, n in plain), Fraction(0))
    slack = sum((n * pair.slack for pair, n in plain), Fraction(0))
    digits = 48 - log(delta)
    # exp(ε) keeps its digits up to an ε of about all μ² together
    highest = mu_squared + sum(n * base.mu_squared for base, _, n in known)
    bits = ceil(2 * digits / log(2)) + 2 * int(highest).bit_length() + _GUARD_BITS
    with precision(bits):
        parts = []
        for base, rate, n in known:
            kept = _meetings(n, float(rate), digits, most_terms)
            parts.append([(k, _binomial(n, k, rate), base) for k in kept])
            if not kept or prod(len(part) for part in parts) > most_terms:
                return None
        shifts = [
            (
                prod((p for _, p, _ in chosen), start=arb(1)),
                mu_squared + sum(k * base.mu_squared for k, _, base in chosen),
                slack + sum(k * base.slack for k, _, base in chosen),
            )
            for chosen in product(*parts)
        ]
        missing = 1 - sum((p for p, _, _ in shifts), arb(0))
        # of very many steps doubles do not find the numbers that count
        if not missing < delta:
            return None
        return RevealedForm(tuple(shifts), missing.upper().max(arb(0)), bits)


def _meetings(n: int, rate: float, digits: float, most: int) -> range:
    """Return the numbers of n meetings but for a probability of about exp(-digits); none if many.

    Bernstein's inequality; whatever is left out is accounted for, so doubles will do.
    """
    spread = digits / 3 + sqrt(digits**2 / 9 + 2 * digits * n * rate * (1 - rate))
    low, high = max(0, ceil(n * rate - spread) - 1), min(n, ceil(n * rate + spread))
    return range(low, high + 1) if high - low < most else range(0)


def _binomial(n: int, k: int, rate: Fraction) -> arb:
    q = ball_of(rate)
    chosen = (arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()).exp()
    return chosen * q**k * (1 - q) ** (n - k)
