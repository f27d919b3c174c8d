"""The privacy curve of Gaussian steps: mu-GDP to (epsilon, delta) and back, without loss.

Any composition of Gaussian steps is exactly mu-GDP, mu² the sum of (sensitivity / noise_std)², and

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

(Balle, Wang 2018, Theorem 8; Dong, Roth, Su 2022, Corollary 1). It falls in epsilon and grows in
mu. The functions here are of the grade enclosed: an `Enclosure` of the exact value.

>>> epsilon_from_delta(mu_squared=1, delta=1e-5)
Enclosure([4.3771780956812245, 4.377178095681225])
"""

from collections.abc import Callable
from math import inf

from flint import arb

from ...mechanisms.errors import InvalidParameter, Number, require_open_unit
from ..numbers.enclosure import Enclosure, Real, TooWide, ball_of, precision
from ..numbers.notions import exact_nonnegative

_ZERO = Enclosure.of(0)
_ONE = Enclosure.of(1)
_INFINITY = Enclosure.of(inf)

_START_BITS = 128
_CAP_BITS = 4096
_NEWTON_STEPS = 100
# Newton ends at a step this small next to the root and to the scale on which the curve bends, which
# is mu for epsilon and 1 for mu: what is left to go is of the order of the square
_STEP = 2.0**-40
# a root is certified to one part in 2^59, finer than a float: rounding it outward to a float costs
# at most one unit in the last place
_MARGIN = 2.0**-60
_ACCURACY_BITS = 60
_FAR = 64


def delta_from_epsilon(*, mu_squared: Real, epsilon: Real) -> Enclosure:
    """Return the smallest delta for which mu-GDP implies (epsilon, delta)-DP.

    Args:
        mu_squared: the sum of (sensitivity / noise_std)², in [0, inf]; may be an enclosure.
        epsilon: in [0, inf]; may be an enclosure.

    Raises `InvalidParameter` outside these ranges, `TooWide` if the precision cap is too low.
    Source: Balle, Wang 2018, Theorem 8.
    """
    least_mu, greatest_mu = _ends("mu_squared", mu_squared)
    least_epsilon, greatest_epsilon = _ends("epsilon", epsilon)
    upper = _delta(greatest_mu, least_epsilon)
    if least_mu is greatest_mu and least_epsilon is greatest_epsilon:
        return upper
    return Enclosure.hull(_delta(least_mu, greatest_epsilon), upper)


def epsilon_from_delta(*, mu_squared: Real, delta: Number) -> Enclosure:
    """Return the smallest epsilon for which mu-GDP implies (epsilon, delta)-DP.

    Exactly 0 when delta is at least the advantage 2 Phi(mu/2) - 1.

    Args:
        mu_squared: the sum of (sensitivity / noise_std)², in [0, inf]; may be an enclosure.
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges, `TooWide` if the precision cap is too low.
    Source: Balle, Wang 2018, Theorem 8.
    """
    require_open_unit("delta", delta)
    least, greatest = _ends("mu_squared", mu_squared)
    upper = _epsilon(greatest, delta)
    return upper if least is greatest else Enclosure.hull(_epsilon(least, delta), upper)


def mu_from_epsilon_delta(*, epsilon: Real, delta: Number) -> Enclosure:
    """Return the largest mu for which mu-GDP implies (epsilon, delta)-DP; its lower end is safe.

    Args:
        epsilon: in [0, inf]; may be an enclosure.
        delta: in (0, 1).

    Raises `InvalidParameter` outside these ranges, `TooWide` if the precision cap is too low.
    Source: Balle, Wang 2018, Algorithm 1 solves the same equation in doubles.
    """
    require_open_unit("delta", delta)
    least, greatest = _ends("epsilon", epsilon)
    upper = _mu(greatest, delta)
    return upper if least is greatest else Enclosure.hull(_mu(least, delta), upper)


def _ends(name: str, value: Real) -> tuple[Real, Real]:
    """Both ends of an enclosure, or the exact number twice (the same object)."""
    if not isinstance(value, Enclosure):
        number = exact_nonnegative(name, value)
        return number, number
    if value.lower < 0:
        raise InvalidParameter(name, value, "in [0, inf]")
    if value.is_point:
        return value, value
    return Enclosure(value.lower, value.lower), Enclosure(value.upper, value.upper)


def _curve(mu: arb, epsilon: arb) -> tuple[arb, arb]:
    """delta at epsilon, and e^epsilon Phi(-epsilon/mu - mu/2), its slope downwards in epsilon."""
    root = arb(2).sqrt()
    shift, half = epsilon / (mu * root), mu / (2 * root)
    slope = _scaled_tail(shift + half, log_scale=epsilon)
    return _scaled_tail(shift - half, log_scale=arb(0)) - slope, slope


def _scaled_tail(x: arb, *, log_scale: arb) -> arb:
    """e^log_scale erfc(x) / 2."""
    if x > _FAR:
        # erfc of a ball far out loses all accuracy to the ball's radius; erfc(x) e^(x²) does not
        square = x * x
        series = square.hypgeom_u(arb(0.5), arb(0.5)) / (2 * arb.pi().sqrt())
        return (log_scale - square).exp() * series
    return log_scale.exp() * x.erfc() / 2


def _refined(attempt: Callable[[], Enclosure | None]) -> Enclosure:
    """The first answer of `attempt`, at ever higher precision."""
    bits = _START_BITS
    while bits <= _CAP_BITS:
        with precision(bits):
            answer = attempt()
        if answer is not None:
            return answer
        bits *= 2
    raise TooWide(f"Expected an answer within {_CAP_BITS} bits of precision.")


def _enclosed_root(excess: Callable[[arb], arb], root: arb) -> Enclosure | None:
    """An enclosure of the root of a falling function, proved by two signs; None if not proved."""
    lower, upper = (root - root * _MARGIN).lower(), (root + root * _MARGIN).upper()
    return Enclosure(lower, upper) if excess(lower) > 0 > excess(upper) else None


def _delta(mu_squared: Real, epsilon: Real) -> Enclosure:
    if mu_squared == 0 or epsilon == inf:
        return _ZERO
    if mu_squared == inf:
        return _ONE

    def attempt() -> Enclosure | None:
        value, _ = _curve(ball_of(mu_squared).sqrt(), ball_of(epsilon))
        if value.rel_accuracy_bits() < _ACCURACY_BITS:
            return None
        found = Enclosure.from_ball(value)
        return found if found.upper <= 1 else Enclosure(found.lower, arb(1))

    return _refined(attempt)


def _epsilon(mu_squared: Real, delta: Number) -> Enclosure:
    if mu_squared == 0:
        return _ZERO
    if mu_squared == inf:
        return _INFINITY

    def attempt() -> Enclosure | None:
        mu, target = ball_of(mu_squared).sqrt(), ball_of(delta)
        at_zero = (mu / arb(8).sqrt()).erf()
        if at_zero <= target:
            return _ZERO
        if not at_zero > target:
            return None
        # log delta(epsilon) is concave (a log-concave function of a Gaussian), so Newton from the
        # right, where the zCDP bound starts, comes down to the root without crossing it
        log_target = target.log()
        root = (mu * mu / 2 + mu * (-2 * log_target).sqrt()).upper()
        for _ in range(_NEWTON_STEPS):
            value, slope = _curve(mu, root)
            if not value > 0:
                return None
            step = (value.log() - log_target) * value / slope
            root = (root + step).mid()
            if abs(step) < root.min(mu) * _STEP:
                break
        return _enclosed_root(lambda point: _curve(mu, point)[0] - target, root)

    return _refined(attempt)


def _mu(epsilon: Real, delta: Number) -> Enclosure:
    if epsilon == inf:
        return _INFINITY

    def attempt() -> Enclosure | None:
        exact_epsilon, target = ball_of(epsilon), ball_of(delta)
        # d delta / d mu = phi(epsilon/mu - mu/2) is log-concave in mu, hence so is delta, and
        # Newton climbs to the root without crossing it. It starts from the larger of two lower
        # bounds on mu: by zCDP, and by delta <= mu / sqrt(2 pi)
        log_target = target.log()
        zcdp = exact_epsilon / ((exact_epsilon - log_target).sqrt() + (-log_target).sqrt())
        root = (zcdp * arb(2).sqrt()).max(target * (2 * arb.pi()).sqrt()).lower()
        for _ in range(_NEWTON_STEPS):
            value, _slope = _curve(root, exact_epsilon)
            if not value > 0:
                return None
            score = exact_epsilon / root - root / 2
            density = (-score * score / 2).exp() / (2 * arb.pi()).sqrt()
            step = (log_target - value.log()) * value / density
            root = (root + step).mid()
            if abs(step) < root.min(arb(1)) * _STEP:
                break
        return _enclosed_root(lambda point: target - _curve(point, exact_epsilon)[0], root)

    return _refined(attempt)
