"""The filter of one Rényi order: what every mechanism costs at it, so that a budget can be kept.

The divergences of one order, fixed before the first release, add up also where every mechanism may
depend on what was released before, as long as their sum is never let beyond the budget (Feldman,
Zrnic 2021, Theorem 3.1; Lécuyer 2021, Theorem 1).

>>> from dpledger.mechanisms import Adjacency, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.REPLACE_ONE), 2.0)
>>> float(Fraction(renyi_price(step, Fraction(8)).upper, 1 << UNIT_BITS))
1.0
"""

from fractions import Fraction
from math import ceil, inf

from ...mechanisms.errors import InvalidParameter, Number, require_finite, require_open_unit
from ...mechanisms.events import Mechanism
from ..composition import UNIT_BITS, Price, price_of
from ..numbers.enclosure import BITS, ball_of, fraction_of, precision
from ..numbers.notions import ApproxDp, Rdp
from ..renyi.amplification import require_amplification
from ..renyi.rdp import log_moment


def renyi_budget(target: ApproxDp, *, order: Number) -> Rdp:
    """Return the largest Rényi divergence of that order, rounded down, that implies `target`.

    Args:
        target: with delta in (0, 1) and a finite epsilon.
        order: in (1, inf); the best one is that of the run as it is planned.

    Raises `InvalidParameter` for an infinite target, and where even a divergence of zero does not
    imply it at this order. Source: Canonne, Kamath, Steinke 2020, Proposition 12.
    """
    require_open_unit("delta", target.delta)
    require_finite("epsilon", target.epsilon)
    if isinstance(order, bool) or not 1 < order < inf:
        raise InvalidParameter("order", order, "in (1, inf)")
    with precision(BITS):
        excess, delta = ball_of(Fraction(order) - 1), ball_of(target.delta)
        log_order = excess.log1p()
        offset = excess.log() - log_order - (delta.log() + log_order) / excess
        limit = (ball_of(target.epsilon) - offset).lower()
    if not limit > 0:
        raise InvalidParameter("order", order, f"large enough for {target}")
    return Rdp(order, fraction_of(limit))


def renyi_price(mechanism: Mechanism, order: Fraction) -> Price:
    """Return the Rényi divergence of one run at `order`, in units of 2^-512, rounded up.

    Raises `UnpricedMechanism` for a sample that no theorem covers.
    """
    price = price_of(mechanism)
    if price.reason is not None:
        return price
    if price.other is None:
        return Price(upper=ceil(price.upper * order / 2))
    require_amplification(price.other)
    moment = log_moment(price.other, order)
    if not moment.is_finite():
        return Price(reason=f"{type(price.other).__name__} at order {float(order):.6g}")
    return Price(upper=ceil(fraction_of(moment) / (order - 1) * (1 << UNIT_BITS)))
