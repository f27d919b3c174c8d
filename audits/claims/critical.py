"""Where a formula proportional to mu stops being a guarantee of mu-GDP."""

from fractions import Fraction

from ...accounting.gaussian.exact import delta_from_epsilon
from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision

_HALVINGS = 56


def critical_mu(slope: Enclosure, delta: float) -> Enclosure:
    """Return the mu up to which epsilon = slope·mu is a guarantee at delta.

    The exact epsilon grows like mu²/2, so every such formula breaks somewhere. Args: slope in
    [0.01, 1000] or so, delta in (0, 1).
    """
    sound, broken = Fraction(1, 2**20), Fraction(2**12)
    for _ in range(_HALVINGS):
        middle = (sound + broken) / 2
        with precision(BITS):
            epsilon = Enclosure.from_ball(ball_of(middle) * ball_of(slope))
        if delta_from_epsilon(mu_squared=middle**2, epsilon=epsilon) <= delta:
            sound = middle
        else:
            broken = middle
    return Enclosure.hull(Enclosure.of(sound), Enclosure.of(broken))


def critical_epsilon(slope: Enclosure, delta: float) -> Enclosure:
    """Return the epsilon up to which epsilon = slope·mu is a guarantee at delta.

    Args:
        slope: in [0.01, 1000] or so.
        delta: in (0, 1).
    """
    mu = critical_mu(slope, delta)
    with precision(BITS):
        return Enclosure.from_ball(ball_of(mu) * ball_of(slope))
