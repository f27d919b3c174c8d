"""What theorems about hidden samples ask of a derivation, beside the bound that it concludes.

Equal bounds do not cost the same on a sample: that it is hidden helps where a drawn record brings
no more than what moves, where a mean is over what is drawn, where null records bring nothing. So
mechanisms on samples are equal where these answers are.

>>> from dpledger.mechanisms.adjacency import Adjacency
>>> from dpledger.mechanisms.sensitivity import declared, scaled, sum_of_bounded
>>> total = sum_of_bounded(1, Adjacency.REPLACE_ONE)
>>> twice = scaled(sum_of_bounded(Fraction(1, 2), Adjacency.REPLACE_ONE), 2)
>>> typed = declared(2, "example", adjacency=Adjacency.REPLACE_ONE)
>>> [asked_of(total.derivation) == asked_of(each.derivation) for each in (twice, typed)]
[True, False]
"""

from fractions import Fraction
from typing import NamedTuple

from .sensitivity import Derivation

MEANS = frozenset({"mean-of-bounded", "mean-of-nonnegative", "strongly-convex-argmin"})
"""Rules of derivations that divide by the number of records."""

HALVED = ("scaled", "linear-map", "sum", "concatenation")
"""Rules that map, scale or join what stands above them, by public numbers and exactly."""

LINEAR = (*HALVED, "disjoint", "computed", "lattice")
"""Rules of a derivation that map, scale or join what stands above them, and bring nothing of their
own.
"""

_OF_WHOM_IS_DRAWN = ("histogram", "histogram-l1", "strongly-convex-argmin")
"""Rules under which a null record counts, or the number of those drawn does."""


class HidingFacts(NamedTuple):
    """What decides which theorem prices a sample of a quantity, and what it rests on.

    Args:
        linear: whether it is made of sums of bounded vectors, one a record; of what is computed.
        halved: the same of what is meant: each record then moves it by half as much as two.
        mean: the largest number of records that a mean is over.
        counted: whether null records, or how many are drawn, count in what moves.
        declared: whether anything of it is typed in by hand.
    """

    linear: bool
    halved: bool
    mean: Fraction
    counted: bool
    declared: bool


def asked_of(derivation: Derivation) -> HidingFacts:
    """Return what theorems ask of the derivation of what a drawn record moves."""
    return HidingFacts(
        sums_records(derivation),
        sums_records(derivation, HALVED),
        largest_mean(derivation),
        counts_drawn(derivation),
        bool(derivation.assumptions()),
    )


def sums_records(derivation: Derivation, linear: tuple[str, ...] = LINEAR) -> bool:
    """Return whether a bound is a linear function of sums of bounded vectors, one a record."""
    if derivation.squared == 0:
        return True  # it brings nothing
    if derivation.rule in linear:
        # what `computed` rests on besides bounds rounding, and maps nothing
        mapped = derivation.premises[: 1 if derivation.rule == "computed" else None]
        return all(sums_records(premise, linear) for premise in mapped)
    return derivation.rule == "sum-of-bounded"


def largest_mean(derivation: Derivation) -> Fraction:
    """Return the largest number of records that a mean is said to be over; 0 without one."""
    found = [largest_mean(premise) for premise in derivation.premises]
    if derivation.rule in MEANS and derivation.squared:
        found.append(Fraction(dict(derivation.parameters)["count"]))
    return max(found, default=Fraction(0))


def counts_drawn(derivation: Derivation) -> bool:
    """Return whether null records, or how many are drawn, count in what moves."""
    own = derivation.rule in _OF_WHOM_IS_DRAWN and derivation.squared
    return bool(own) or any(map(counts_drawn, derivation.premises))
