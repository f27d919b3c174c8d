"""The exponential mechanism, exactly: one of K candidates with probability ∝ e^-cost/scale.

Costs are whole numbers and the scale is a double, hence rational: every probability is a ratio of
sums of exponentials of rationals. A uniform real number, read as far as the decision needs
(`exact_bernoulli`), falls between two of the cumulative sums, which are enclosed in decimal
arithmetic of as many digits as that takes. No floating-point exponential decides, no law is
truncated, and the same words give the same choice on every platform.

Source: McSherry, Talwar 2007 (the mechanism); Mironov 2012 (why its doubles must not decide).

>>> import numpy as np
>>> choose(np.array([3, 0, 5]), 0.125, np.random.PCG64(1).random_raw)
1
"""

from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any

import numpy as np

from .exact_bernoulli import Interval, UniformReal, WordSource, exp_minus_bounds

MOST_CANDIDATES = 1 << 14
"""Of one choice: each costs an exponential in decimal arithmetic."""

_FARTHEST = Fraction(2000)
"""Costs this many scales above the least count as this far. Every cost moves by at most Δ between
neighbours, the least does, and so does the smaller of a cost and the least plus a constant: the
mechanism's price does not change."""


def choose(costs: np.ndarray[Any, np.dtype[np.int64]], scale: float, words: WordSource) -> int:
    """Return an index j of `costs` with probability ∝ e^-costs[j]/scale.

    Args:
        costs: whole numbers of shape (K,), K in [1, 2^14].
        scale: > 0, in units of the costs.
        words: where random bits come from.
    """
    least = int(costs.min())
    gaps = [min((int(cost) - least) / Fraction(scale), _FARTHEST) for cost in costs]

    @lru_cache
    def sums(digits: int) -> list[Interval]:
        each = {gap: exp_minus_bounds((gap, gap), digits) for gap in set(gaps)}
        return list(
            accumulate((each[gap] for gap in gaps), lambda a, b: (a[0] + b[0], a[1] + b[1]))
        )

    def share(upto: int, digits: int) -> Interval:
        """Enclose the probability of the first `upto` + 1 candidates."""
        below, (least_total, most_total) = sums(digits)[upto], sums(digits)[-1]
        return below[0] / most_total, below[1] / least_total

    uniform = UniformReal(int(words(1)[0]), 64)
    low, high = 0, len(gaps) - 1
    while low < high:
        middle = (low + high) // 2
        if uniform.is_below(partial(share, middle), words):
            high = middle
        else:
            low = middle + 1
    return low
