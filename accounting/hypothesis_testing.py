"""What (ε, δ)-differential privacy leaves to whoever guesses between two neighbours.

Both bounds are rounded up. Source: Kairouz, Oh, Viswanath 2015, Theorem 2.1.

>>> round(best_guess(1.0, 0.0), 4), round(most_true_positives(0.01, 1.0, 0.0), 4)
(0.7311, 0.0272)
"""

from math import exp

LARGEST_EXPONENT = 700.0
"""e to it is finite, and allows what no number of digits tells from everything."""


def best_guess(epsilon: float, delta: float) -> float:
    """Return the largest probability of a right guess at even odds, (e^ε + δ)/(e^ε + 1).

    Args:
        epsilon: >= 0, infinity allowed.
        delta: in [0, 1).
    """
    odds = _odds(epsilon)
    return min(1.0, (odds + delta) / (odds + 1.0) + 1e-15)


def most_true_positives(rate: float, epsilon: float, delta: float) -> float:
    """Return the most that an attack can hit at a rate of false alarms.

    Args:
        rate: of false positives, in [0, 1].
        epsilon, delta: as for `best_guess`.
    """
    odds = _odds(epsilon)
    found = min(odds * rate + delta, 1.0 - (1.0 - delta - rate) / odds)
    return min(1.0, found * (1.0 + 1e-12) + 1e-15)


def _odds(epsilon: float) -> float:
    return exp(min(epsilon, LARGEST_EXPONENT))
