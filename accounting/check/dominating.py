"""Which mechanism has which dominating pair, and under what conditions, for groups of records."""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt
from typing import Any

from . import integer_vectors
from .copies import MOST_COPIES, CopiesDrawn
from .lattices import DiscreteGaussianShift, DiscreteLaplaceShift, RandomisedAnswers
from .leaves import (
    fixed_batch_share,
    poisson_rate,
    randomised_truth,
    require_fixed_batch,
    require_poisson,
    root_up,
    trust_sample,
)
from .losses import Loss
from .one_step import Dot, Dots
from .pairs import (
    Base,
    DrawnShifts,
    GaussianShift,
    LaplaceShift,
    Pair,
    ReplacedInSample,
    Revealed,
    Sampled,
)
from .reading import CertificateWrong, Undecided, read_count, read_dyadic, read_kind, require_equal
from .sensitivities import Sens, require_lattice
from .statements import DRAWN_AGAIN, ONE_PARTY, Run

MAX_GROUP = 64
"""Records of a group: a Poisson sample of it is a mixture of as many shifts."""

MAX_LATTICE = 1 << 11
"""Units over which discrete noise spreads, or by which it is shifted: bounds its table."""

Way = Callable[[Dots, list[Dot]], Loss]
"""How masses at dots become the loss of one order of the data sets, or of both (symmetrised)."""

Pairs = tuple[Pair, Way | None]
"""A dominating pair, and which of its losses stands for both orders of the data sets; None: each
order has its own."""

EVEN = Fraction(1, 2)
"""The share of a mixture step's variance for its constant part, where a node states none."""

_DRAWN = "Choquette-Choo, Ganesh, Steinke, Thakurta 2023 (mixtures of Gaussian shifts)"
"""The theorem that a node rests on, beside its own, where a group is sampled."""

_REPLACED = "docs/rules.md, privacy-loss (a record is replaced in a Poisson sample)"
"""Likewise, where a Poisson sample is taken under replace-one."""

_BOTH_ORDERS = ("add-remove-one", "zero-out-one")


def unrepeated(run: Run, place: int) -> tuple[Any, int]:
    """Return the mechanism inside any number of repetitions, and how often it runs in all."""
    mechanism, times = run.at(place), 1
    while isinstance(mechanism, dict) and mechanism.get("kind") == "repeated":
        mechanism, n = read_kind(mechanism, "repeated", "event", "times")
        times *= read_count(n)
    return mechanism, times


def _pure(run: Run, mechanism: Any, size: int) -> tuple[Sens, list[Pair]]:
    """Losses of ±ε: discrete noise of rate ε moved by one; groups have `size` times the loss."""
    sens, ratio = run.noise(mechanism, "pure", "scale", "l1")
    return sens, [DiscreteLaplaceShift(size * root_up(ratio), 1)] if ratio else []


def _base(run: Run, event: Any, size: int) -> tuple[Sens, Base | None]:
    """The sensitivity of a step with continuous noise, and its pair; none if it costs nothing."""
    kind = event.get("kind") if isinstance(event, dict) else None
    if kind == "laplace":
        sens, ratio = run.noise(event, "laplace", "scale", "l1")
        return sens, LaplaceShift(size * root_up(ratio)) if ratio else None
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    return sens, GaussianShift(ratio * size**2) if ratio else None


def _discrete(run: Run, mechanism: Any, size: int) -> tuple[Sens, list[Pair]]:
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
        return sens, [DiscreteLaplaceShift(1 / rate, isqrt(whole))]
    if whole >= 4:
        most = integer_vectors.MAX_SQUARED, integer_vectors.MAX_SPREAD
        if whole > most[0] or squared * whole > most[1] ** 2:
            raise Undecided(f"expected a squared sensitivity and a spread of at most {most}")
        return sens, [integer_vectors.DiscreteGaussianVectors(squared, whole)]
    return sens, [DiscreteGaussianShift(squared)] * whole


def _answers(mechanism: Any) -> list[Pairs]:
    """Return the pair of randomised response; none if all answers are equally likely anyway."""
    truth, categories = randomised_truth(mechanism)
    even = truth * categories == 1
    return [] if even else [(RandomisedAnswers(truth, categories), None)]


_SYMMETRISED = Dots.symmetrised

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
        found.append((GaussianShift(always.squared / (part * variance)), None))
    if moved:
        part = 1 - share if always.squared else Fraction(1)
        base = GaussianShift(moved / (part * variance))
        hidden = relation != "replace-one" or drawn.rules <= _LINEAR
        if q == 1:
            found.append((base, None))
        elif hidden:
            way = _SYMMETRISED if relation != "add-remove-one" else None
            found.append((Sampled(base, q), way))
        else:
            found.append((Revealed(base, q), None))
    return relation, found


def dominating_pairs(
    run: Run, mechanism: Any, share: Fraction, size: int
) -> tuple[str, list[Pairs]]:
    """The relation of a mechanism, and the pairs that dominate it for groups of `size` records.

    All of a group are there or all are not, or all are replaced. Noise then meets up to `size`
    times the shift. A Poisson sample draws a binomial number of them. Of a fixed batch of Gaussian
    noise no more are drawn than of a binomial number (`fewer_records`); else some are drawn with
    probability at most `size` times the share, and then count as all drawn. With replacement each
    draw is one of the group with probability `size` / n.
    """
    kind = mechanism.get("kind") if isinstance(mechanism, dict) else None
    if kind == "poisson-accumulated":
        return _accumulated(run, mechanism, size)
    if kind == "randomised-response":
        return "replace-one", _answers(mechanism) * size
    if kind == "sampled-with-replacement":
        return "replace-one", drawn_with_replacement(run, mechanism, size)
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
        sens, base = _base(run, event, 1)
        require_fixed_batch(run, sens, mechanism)
        fewer = fewer_records(mechanism, size)
        if isinstance(base, GaussianShift) and fewer:
            run.assumptions.add(ONE_PARTY)
            run.axioms.add(DRAWN_AGAIN)
            return sens.adjacency, [(CopiesDrawn(base.mu_squared, size, fewer), _SYMMETRISED)]
        base = base and _longer(base, size)
        rate = min(rate * size, Fraction(1))
    else:
        rate, (sens, base) = Fraction(1), _base(run, mechanism, size)
    if base is None or rate == 0:
        return sens.adjacency, []
    if rate == 1:
        return sens.adjacency, [(_longer(base, size if kind == "poisson-sampled" else 1), None)]
    way = None if kind == "poisson-sampled" else _SYMMETRISED
    return sens.adjacency, [(Sampled(base, rate), way)]


def _accumulated(run: Run, mechanism: Any, size: int) -> tuple[str, list[Pairs]]:
    """Sums of n Poisson samples under one noise, each drawn from all records and by itself.

    A record is in Bin(n, q) of them, and moves the sum by its bound for each at most: as a group of
    n records does in one sample, and `size` records as n times as many.
    """
    names = ("event", "rate", "batches")
    event, rate, batches = read_kind(mechanism, "poisson-accumulated", *names)
    number = read_count(batches) * size
    q = read_dyadic(rate, Fraction(1))
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    require_poisson(run, sens)
    if sens.distance is not None:
        raise Undecided("expected a batch of which nothing is said of rounding: sums round more")
    if not q or not ratio:
        return sens.adjacency, []
    if number > MAX_GROUP:
        raise Undecided(f"expected at most {MAX_GROUP} records times batches, got {number}")
    base = GaussianShift(ratio)
    if q == 1 or number == 1:
        longer = _longer(base, number)
        return sens.adjacency, [(longer if q == 1 else Sampled(base, q), None)]
    return sens.adjacency, [(_drawn(run, base, q, number), None)]


def replaced_in_a_sample(
    run: Run,
    sens: Sens,
    base: Base | None,
    rate: Fraction,
    size: int,
) -> list[Pairs]:
    """A Gaussian step on a Poisson sample of which a record is replaced.

    Its sum is known to move by at most C = Δ/2 with a record that is drawn. In one data set that
    brings u, in the other v. With w = (1-q)(γ-1)/q and γ >= 1, for every event A and 0 < λ < 1,

        ((1-q)N(0) + qN(u))(A) - γ((1-q)N(0) + qN(v))(A) = q (N(u) - γN(v) - wN(0))(A)
            <= q (λ H_{γ/λ}(N(u)‖N(v)) + (1-λ) H_{w/(1-λ)}(N(u)‖N(0))).

    A Gaussian profile grows with the distance, which is at most 2C in the first and C in the
    second. Of u = C and v = -C on a line both are attained by one half-line, on which φ_C >
    γφ_{-C} + wφ_0, with λ = γφ_{-C}/φ_C at its end; so (1-q)N(0) + qN(C) against (1-q)N(0) +
    qN(-C) dominates, for γ < 1 by symmetry, and what holds given the other records holds of their
    mixture, by joint convexity. Of a group any is drawn with probability 1 - (1 - q)^size, and
    then brings size · C at most.
    """
    if not sens.rules <= _SUMS:
        raise CertificateWrong("expected a sum of vectors that are bounded one by one")
    trust_sample(run, sens)
    if base is None or rate == 0:
        return []
    if not isinstance(base, GaussianShift):
        raise CertificateWrong("expected Gaussian noise where a record is replaced")
    run.axioms.add(_REPLACED)
    drawn = _any_of(rate, size)
    if drawn == 1:
        return [(_longer(base, size), None)]
    return [(ReplacedInSample(base.mu_squared * size**2 / 4, drawn), None)]


def drawn_with_replacement(run: Run, mechanism: Any, size: int) -> list[Pairs]:
    """Gaussian noise on a batch of m draws out of n records, of which one is replaced.

    Fix what each place of the batch holds where it is not the differing record, which it is with
    probability 1/n, by itself. With p_k the probability that it fills k places, and P_k, Q_k the
    release given that, for either record, P_0 = Q_0. P_k is a mixture, over the sets of k places,
    of normal laws whose means are at most kΔ away from those of Q_k and of P_0. Share out p_0 as
    c_1 + c_2 + ...; ∫ (dP - γ dQ)⁺ of a sum of measures is at most the sum of theirs, so

        H_γ(Σ p_k P_k ‖ Σ p_k Q_k) <= Σ_(k>0) ∫ (p_k dP_k + c_k dP_0 - γ p_k dQ_k - γ c_k dP_0)⁺

    For γ >= 1 the k-th term is, with t_k = (γ-1) c_k, that is t_k >= 0 and Σ t_k = (γ-1) p_0,

        p_k ∫ (dP_k - γ dQ_k - (t_k/p_k) dP_0)⁺ <= p_k H_c(N(kΔ/σ, 1) ‖ N(0, 1)), c = γ + t_k/p_k

    since γ dQ_k + (t_k/p_k) dP_0 is c times a mixture of laws as far from P_k as kΔ, set by set of
    places (advanced joint convexity: Balle, Barthe, Gaboardi 2018, Theorems 2 and 10). For every γ
    the t_k may be chosen anew: the least sum is convex in γ, and with the two records exchanged it
    holds for γ < 1. What was fixed is averaged over, by joint convexity. Numbers of copies that are
    too unlikely to be counted lose infinitely. Any of a group of g records fills a place with
    probability g/n <= 1/n' for the whole number n' below n/g: it is priced as one record of n', if
    the group is drawn into one batch, and not into one at each of several parties.
    """
    names = ("event", "batch", "records")
    event, batch, records = read_kind(mechanism, "sampled-with-replacement", *names)
    sens, ratio = run.noise(event, "gaussian", "noise_std", "l2")
    require_fixed_batch(run, sens, mechanism)
    n, m = max(read_count(records) // size, 1), read_count(batch)
    if not ratio:
        return []
    if size > 1:
        run.assumptions.add(ONE_PARTY)
    if n == 1:
        return [(GaussianShift(ratio * m**2), None)]
    if m == 1:
        return [(Sampled(GaussianShift(ratio), Fraction(1, n)), _SYMMETRISED)]
    if m > MOST_COPIES * n:
        raise Undecided(f"expected at most {MOST_COPIES} draws a record, got {m} of {n}")
    run.axioms.add(DRAWN_AGAIN)
    return [(CopiesDrawn(ratio, m, n), _SYMMETRISED)]


def fewer_records(mechanism: Any, size: int) -> int:
    """n' of which `size` draws hit a record at least as often as a batch holds one of the group.

    A group of k = `size` records, all of which are replaced, in a batch of m out of n records that
    is drawn without replacement, Gaussian noise. Decide the members one after another: given those
    before, the next is in the batch with the probability (m - a) / (n - i) <= m / (n - k + 1), that
    is at most 1/n' for the whole number n' below (n - k + 1) / m. So the batch can be drawn beside
    k independent draws, each of which hits with probability 1/n', such that a member is in it only
    if its own draw hits: of a draw that hits, with its probability over 1/n'. Given the draws, j of
    which hit, at most j of the group are in the batch. Exchanged for a uniform choice of others
    they make the batch that avoids the group, which it is where no draw hits; replaced, they are
    those of the other data set. So for either data set the release is a mixture of normal laws that
    are at most jΔ away from those of the other, and from that of no hit: all that
    `drawn_with_replacement` uses of M ~ Bin(draws, 1/records), here Bin(k, 1/n').

    0 where another rule has to do, as hardly anybody is left out.
    """
    fewer: int = (mechanism["records"] - size + 1) // mechanism["batch"]
    return fewer if 1 < size <= MOST_COPIES * fewer and fewer > 1 else 0


def _longer(base: Base, size: int) -> Base:
    """Return the pair of a shift that is `size` times as long."""
    if isinstance(base, GaussianShift):
        return GaussianShift(base.mu_squared * size**2)
    assert isinstance(base, LaplaceShift)
    return LaplaceShift(base.epsilon * size)


def _drawn(run: Run, base: Base, rate: Fraction, size: int) -> Pair:
    """A Poisson sample of a group: any of it with probability 1 - (1 - q)^size, then all of it;
    of Gaussian noise exactly as many as are drawn."""
    if isinstance(base, GaussianShift):
        run.axioms.add(_DRAWN)
        return DrawnShifts(base.mu_squared, rate, size)
    return Sampled(_longer(base, size), _any_of(rate, size))


def _any_of(rate: Fraction, size: int) -> Fraction:
    """1 - (1 - q)^size, rounded up to a whole multiple of 2^-512: a larger q only costs more."""
    if size == 1:
        return rate
    none = one = 1 << 512
    for _ in range(size):
        none = none * (rate.denominator - rate.numerator) // rate.denominator
    return Fraction(one - none, one)
