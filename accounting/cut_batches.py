"""Poisson batches that are cut to a largest size: what is left out, and what it costs.

A sample of more than B records is cut to a uniform subset of B of them (Opacus's physical batches,
jax-privacy's truncated ones). Fix whom of the others the Poisson sample draws, S, and a uniform
subset T of S of at most B, in the order in which a cut keeps records.

*Every cut is paid for* (`twice_moved`), under add/remove. Without the record the release is N(s_T).
With it, drawn with probability q, it is added where S has room, or with probability B/(|S| + 1)
takes the place of a uniform member of T, or is left out: the sum moves by at most two bounds. So
the pair is N(s) and (1-q) N(s) + q R, R a mixture of N(s + v) with |v| <= 2C, which `in_groups`
(`renyi.amplification`) shows to be dominated by one v of that length; S and T are averaged over, by
joint convexity. Nothing is added to delta; epsilon is that of twice the shift.

*Cuts are rare* (`most_cut`), under every relation. Where |S| < B, nothing is cut with or without
the record, and given such an S the step is the Poisson step given S. The pairs of Poisson steps are
proved given S, and averaged by joint convexity: with τ = P(|S| >= B)

    H_γ(cut) <= Σ_S P(S) H_γ(cut given S) <= H_γ(Poisson pair) + τ,

and of n steps, whose samples are independent, H_γ <= H_γ(n Poisson pairs) + nτ: cuts cost nτ of
delta. For k records that differ together, nothing is cut where |S| <= B - k. A pair that prices the
cut step in place of τ is that of arXiv:2508.15089.

Of K runs, the best of which is published, each may be cut: a choice between them can look for the
one that was. With probability E[(1 - nτ)^K] >= 1 - E[K] nτ, the same for both data sets, none is,
and they are runs of the Poisson batches given that; the fewer of these there are, the likelier, so
that their number has the law of K with a larger stopping probability, and costs less (Papernot,
Steinke 2022, Theorem 2). So cuts cost E[K] nτ of delta.
"""

from fractions import Fraction

from flint import arb

from ..mechanisms.sensitivity import Norm, Sensitivity, declared
from .numbers.enclosure import BITS, Enclosure, ball_of, precision

CUT = "a record of a batch cut to a fixed size takes another's place"
"""Why a batch that may be cut moves twice as far; a bound, which rare cuts are far below."""


def twice_moved(size: Sensitivity) -> Sensitivity:
    """Return the l2 sensitivity of a batch that is cut, from that of one in which all are kept."""
    return declared(2 * size.root, CUT, adjacency=size.adjacency, norm=Norm.L2)


def most_cut(others: int, rate: Fraction, room: int) -> Fraction:
    """Return an upper bound on P(Bin(others, rate) >= room), the chance that a batch is cut.

    From the mean on the probabilities fall ever faster: their sum from `room` on is at most the
    first over one minus the ratio of the second to it.

    Args:
        others: records, at least 0.
        rate: in [0, 1].
        room: records that find a place beside those that differ; below 1 for none.
    """
    if room <= 0:
        return Fraction(1)
    if room > others or rate == 0:
        return Fraction(0)
    ratio = Fraction((others - room) * rate, (room + 1) * (1 - rate)) if rate < 1 else Fraction(1)
    if ratio >= 1:
        return Fraction(1)
    with precision(BITS):
        ways = arb(others + 1).lgamma() - arb(room + 1).lgamma() - arb(others - room + 1).lgamma()
        q = ball_of(rate)
        first = (ways + room * q.log() + (others - room) * (1 - q).log()).exp()
        found = Enclosure.from_ball(first / (1 - ball_of(ratio))).upper_float
    return min(Fraction(1), Fraction(found))
