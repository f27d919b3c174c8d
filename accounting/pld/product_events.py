"""Lower ends where losses lie by their largest value: the event that every step's loss does.

For every event E, δ(ε) >= P(E) - e^ε Q(E). The steps of a composition are independent, so that of
the event that each has a loss above its threshold x_i

    P(E) = Π P(L_i > x_i)^{n_i},   Q(E) = Π Q(L_i > x_i)^{n_i},   ε(δ) >= log((P(E) - δ) / Q(E)),

by the definition of ε(δ) alone. Of a record that may be missing, at rates so small that it seldom
shows, the loss of a step is hardly below its largest value -log(1 - q): there the event is almost
the best one, and grids, whose cells are wider than all losses are apart, tell nothing.
"""

from math import ceil, inf, log2

from flint import arb

from ..numbers.enclosure import ball_of, precision
from .nodes import maximal_loss
from .profiles import tails_of
from .saddle import Counts

_HALVINGS = 48
"""Thresholds that are tried: 2^-k below the largest loss, relatively."""

_MOST_PAIRS = 16
"""Of more distinct pairs no event is tried: each has its tails at every threshold."""

_BITS = 192
"""Beyond those of δ: what cancels between a probability and a loss of 2^-64, and powers."""


def epsilon_floor(counts: Counts, delta: float) -> arb:
    """Return a lower bound on ε(δ); zero where some loss is unbounded, or no event tells more.

    Args:
        counts: pairs, composed in one order; zero is said of more than `_MOST_PAIRS` of them.
        delta: in (0, 1).
    """
    best = arb(0)
    if len(counts) > _MOST_PAIRS:
        return best
    most = {pair: maximal_loss(pair) for pair in counts}
    if not all(0 < loss < inf for loss in most.values()):
        return best
    with precision(_BITS + ceil(-log2(delta))):
        for halving in range(1, _HALVINGS + 1):
            p, q = arb(1), arb(1)
            for pair, n in counts.items():
                above = tails_of(pair, arb(most[pair] * (1 - 2.0**-halving)))
                p, q = p * above[0] ** n, q * above[1] ** n
            if p > ball_of(delta) and q > 0:
                best = best.max(((p - ball_of(delta)) / q).log().lower())
    return best.lower()
