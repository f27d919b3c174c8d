"""Notions: what can be said about a mechanism.

Contents are exact: a float is its dyadic rational, so that equal notions are equal numbers and sums
do not round. Infinity means no protection, zero means no dependence on the data.

>>> Gdp(0.5) == Gdp(Fraction(1, 2))
True
>>> Zcdp(0.125).rho
Fraction(1, 8)
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

from ...mechanisms.errors import InvalidParameter, Number

Exact = Fraction | float
"""A Fraction, or the float infinity."""


def exact_nonnegative(name: str, value: object) -> Exact:
    """Return `value` as a Fraction, or infinity.

    Raises `InvalidParameter` for NaN, a negative number or something that is no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not value >= 0:
        raise InvalidParameter(name, value, "in [0, inf]")
    return inf if value == inf else Fraction(value)


@dataclass(frozen=True, init=False, slots=True)
class Zcdp:
    """rho-zCDP: Rényi divergence at most `rho` times the order, at every order > 1.

    Source: Bun, Steinke 2016, Definition 1.1.
    """

    rho: Exact

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", exact_nonnegative("rho", rho))


@dataclass(frozen=True, init=False, slots=True)
class Rdp:
    """(order, epsilon)-RDP: Rényi divergence of that order at most `epsilon`; order in (1, inf].

    Source: Mironov 2017, Definition 4.
    """

    order: Exact
    epsilon: Exact

    def __init__(self, order: Number, epsilon: Number) -> None:
        if isinstance(order, bool) or not order > 1:
            raise InvalidParameter("order", order, "in (1, inf]")
        object.__setattr__(self, "order", exact_nonnegative("order", order))
        object.__setattr__(self, "epsilon", exact_nonnegative("epsilon", epsilon))


@dataclass(frozen=True, init=False, slots=True)
class Gdp:
    """mu-GDP, by mu squared, which adds up: as hard to tell apart as N(0, 1) and N(mu, 1).

    Source: Dong, Roth, Su 2022, Definition 4.
    """

    mu_squared: Exact

    def __init__(self, mu_squared: Number) -> None:
        object.__setattr__(self, "mu_squared", exact_nonnegative("mu_squared", mu_squared))


@dataclass(frozen=True, init=False, slots=True)
class ApproxDp:
    """(epsilon, delta)-DP; delta in [0, 1], 0 for pure DP.

    Source: Dwork, Kenthapadi, McSherry, Mironov, Naor 2006, Definition 1.
    """

    epsilon: Exact
    delta: Exact

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", exact_nonnegative("epsilon", epsilon))
        if isinstance(delta, bool) or not 0 <= delta <= 1:
            raise InvalidParameter("delta", delta, "in [0, 1]")
        object.__setattr__(self, "delta", exact_nonnegative("delta", delta))
