"""A lower bound on ε of batches drawn with replacement, by a test on rounded outputs.

Where all other records are like the one that takes its place, a record of which a batch holds M ~
Bin(draws, 1/records) copies moves the output by Mμ: the outputs are (Σ_k p_k N(kμ, 1), N(0, 1)),
to which `CopiesDrawn` comes near. Rounding an output to cells is post-processing, and each cell has
a score, about its loss in whole steps. With A and B the polynomials of the cells' probabilities
under both laws, by score, the coefficients of A^n and B^n are those of the sum of n scores; and for
every set S of sums

    ε >= log((A^n(S) - δ) / B^n(S)),

whatever cells, scores and numbers of copies were left out, since S then leaves them out, too. Here
S are the sums from a threshold on, the best one in doubles.
"""

from itertools import pairwise
from math import sqrt

import numpy as np
from flint import arb, arb_poly

from ..numbers.enclosure import ball_of, precision
from .copies import law_of
from .pairs import CopiesDrawn

_BITS = 192
_CELLS = 1 << 10
"""Cells of one output: 0.05 % of ε."""

_FINEST, _COARSEST = 32, 2
"""Scores to a standard deviation of the loss under Q: rounding adds 1/12 of a step's square."""

_LONGEST = 1 << 14
"""The longest polynomial of sums of scores; of steps so many that they are too coarse nothing is
said."""

_HIGHEST = 600.0
"""Losses above the least that are told apart."""

_FAR = 8.0
"""Standard deviations of noise that outputs are looked at beyond all shifts that count."""

_RARE = 1e-3
"""The chance, over δ, of numbers of copies that are left out."""


def copies_floor(pair: CopiesDrawn, times: int, delta: float) -> arb:
    """Return a lower bound on ε(δ) of so many batches; zero where nothing is known."""
    with precision(_BITS):
        law = law_of(pair, _BITS)
        mu = law.mu_squared.sqrt()
        last = max(k for k, p in enumerate(law.chances) if k < 2 or p * times > _RARE * delta)
        kept = law.chances[: last + 1]
        edges = np.linspace(-_FAR, (len(kept) - 1) * float(mu) + _FAR, _CELLS + 1).tolist()
        root = arb(2).sqrt()
        # Q beyond an edge, and P, whose rarest copies are left out
        beyond = [[((x - k * mu) / root).erfc() / 2 for k in range(len(kept))] for x in edges]
        above = [sum((p * b for p, b in zip(kept, row, strict=True)), arb(0)) for row in beyond]
        p = [a - b for a, b in pairwise(above)]
        q = [a[0] - b[0] for a, b in pairwise(beyond)]
        scores = _scores(p, q, times)
        if scores is None:
            return arb(0)
        powers = [_by_score(scores, masses) ** times for masses in (p, q)]
        a, b = ([power[i] for i in range(max(scores) * times + 1)] for power in powers)
        start = _threshold(a, b, delta)
        found = (sum(a[start:], arb(0)) - ball_of(delta)) / sum(b[start:], arb(0))
        return found.log().lower().max(arb(0)) if found > 1 else arb(0)


def _scores(p: list[arb], q: list[arb], times: int) -> list[int] | None:
    """Return the scores of cells, from zero on: losses in steps, rounded; None where too coarse."""
    under_p, under_q = (np.array([max(float(x), 1e-300) for x in each]) for each in (p, q))
    losses = np.log(under_p) - np.log(under_q)
    # the typical loss, without the few that nearly never happen
    spread = sqrt(float(np.sum(under_q * np.minimum(np.abs(losses), 4.0) ** 2)))
    losses = np.minimum(losses - losses.min(), _HIGHEST)
    step = max(spread / _FINEST, float(losses.max()) * times / _LONGEST)
    if not 0 < step <= spread / _COARSEST:
        return None
    return [int(score) for score in np.rint(losses / step)]


def _by_score(scores: list[int], masses: list[arb]) -> arb_poly:
    """Return the polynomial of masses by score."""
    found = [arb(0)] * (max(scores) + 1)
    for score, mass in zip(scores, masses, strict=True):
        found[score] += mass
    return arb_poly(found)


def _threshold(a: list[arb], b: list[arb], delta: float) -> int:
    """Return about the best sum of scores from which on a test says P."""
    p, q = (np.cumsum([float(x) for x in reversed(each)])[::-1] for each in (a, b))
    with np.errstate(all="ignore"):
        found = np.where((p > delta) & (q > 0), np.log((p - delta) / q), -np.inf)
    return int(np.argmax(found))
