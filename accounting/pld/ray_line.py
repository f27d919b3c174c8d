"""Moment functions of sampled Gaussian pairs near the real axis, for `ray`: the trapezoid rule.

Where z is low |r^{1+z}| on the real axis is not much more than |M(1+z)|, and the trapezoid rule of
`quadrature` there takes a tenth of the terms of a path that leaves the axis. With nodes u_k = k h,
m_k = h φ(u_k) r(u_k) and b_k = log r(u_k),

    M(1+z) ≈ S(1+z) = Σ_k m_k e^{z b_k},

which errs, for z = x + iy, by at most η e^{yμa} M(1+x), η = 2 e^{a²/2} / (e^{2πa/h} - 1), a the
height of the strip ((*) in `quadrature`), and by the nodes left out. As M is the sum of S, of these
and of an error of its own at y = 0, M(1+x) <= (S(1+x) + left out) / (1 - η): all are sums of
exponentials of linear functions, b_k - iμa for those with a strip. On the left of the first node
r <= 1; on the right of the last, U > (1+x) μ + 1, the terms fall by e a unit at least.
"""

from math import exp, inf, log, log1p, pi

import numpy as np

from .pairs import Sampled
from .quadrature import Line
from .ray_sums import ExponentialSum, PairSum, Ulps, log_ratio, scale_and_rate


def line_sum(pair: Sampled, line: Line) -> PairSum:
    """Return the sum of a pair, its mixture first, along the real axis.

    Args:
        pair: a sampled Gaussian shift.
        line: planned for the order 1 + x of the z at which the sum is used.
    """
    mu, q = scale_and_rate(pair)
    u = (line.step * np.arange(line.first, line.last + 1)).astype(np.complex128)
    b = log_ratio(u, mu, q)
    g = np.asarray(log(line.step) - u * u / 2 - log(2 * pi) / 2 + b, np.complex128)
    low, end = np.zeros(1, np.complex128), b[-1:]
    tail = ExponentialSum(-u[:1] * u[:1] / 2, low)
    tail += ExponentialSum(-u[-1:] * u[-1:] / 2 - log(2 * pi) / 2 + end, end)
    terms = ExponentialSum(g, b)
    fall = 2 * pi * line.height / line.step
    eta = log(2) + line.height**2 / 2 - fall - log1p(-exp(-fall))
    size = eta - log1p(-exp(eta)) if eta < 0 else inf
    whole = terms + tail
    error = tail + ExponentialSum(whole.g + size, whole.b - 1j * mu * line.height)
    most = Ulps.most(2 * float(np.max(np.abs(u))), whole + error, mu, q)
    return PairSum(terms, error, whole, Ulps.of(u, g, b, mu, q), most)
