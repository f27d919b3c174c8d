"""The privacy curve of Gaussian steps on whole arrays, in double precision, erring outward only.

The fast grade of `gaussian`: `_upper` never lies below the exact value, `_lower` never above it.
Of few points the exact curve is asked: ball arithmetic takes less time than SciPy takes to load.

>>> print(epsilon_upper(mu_squared=1, delta=[1e-5, 1e-10]).round(6))
[4.377178 6.547924]
"""

from contextlib import suppress
from fractions import Fraction
from math import inf, nextafter, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...mechanisms.errors import InvalidParameter
from ..numbers.enclosure import Enclosure, Real, TooWide
from ..numbers.notions import exact_nonnegative
from .exact import delta_from_epsilon, epsilon_from_delta

# With R(x) = (1 - Phi(x)) / phi(x) (Mills' ratio), a = epsilon/mu - mu/2 and b = a + mu,
#
#     delta = phi(a) (R(a) - R(b)) =: G(a, mu),    G falls in a and grows in mu.
#
# Outward in two moves. (1) The arguments: mu is rounded up, and a is lowered by more than its own
# rounding error. (2) The value at these exact doubles is raised by a bound on its evaluation error,
# with u = 2^-53 and e = _MILLS_ERROR the relative error of _mills (2^-48; tests/ measure a quarter
# of it against ball arithmetic):
#   * phi(a) errs by u a² (the square in the exponent) plus a few u;
#   * mu > 1/100, a >= 0: R(a) - R(b) errs by at most 2 (e + 2u) R(a);
#   * mu > 1/100, a < 0: delta = 1 - phi(a) (R(-a) + R(b)) >= 0.003, the product errs by e + few u;
#   * mu <= 1/100: R(a) - R(b) is the integral of D(x) = -R'(x) = 1 - x R(x) over [a, b], by three
#     Gauss-Legendre nodes. D^(6)(x) = int t^7 e^(-xt-t²/2) dt <= 50 D(x) there, so that the
#     quadrature errs relatively by 5e-7 mu^6 50 < u. 1 - x R(x) errs by e + 4u absolutely, and
#     D(x) >= (x + sqrt 2)^-2 by the bounds of Birnbaum (1942) and Sampford (1953) on R.
# The bounds below are twice these. A last 1e-322 covers the underflow of phi.

_UNIT = 2.0**-53
_MILLS_ERROR = 2.0**-48
_UNDERFLOW = 1e-322
_LAST_SCORE = 40.0
_SMALL_MU = 0.01
_LEAST_DELTA = 1e-300
_NEWTON_STEPS = 100
_FEW_POINTS = 8
_EXACT = (int, float, Fraction, Enclosure)
# ndtri(p) errs by at most this times (1 + |ndtri(p)|); tests/ measure a tenth of it
_QUANTILE_ERROR = 2.0**-46
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)

_Array = NDArray[np.float64]


def _mills(x: _Array) -> _Array:
    import scipy.special

    return np.asarray(sqrt(pi / 2) * scipy.special.erfcx(x / sqrt(2)))


def _density(x: _Array) -> _Array:
    return np.asarray(np.exp(-x * x / 2) / sqrt(2 * pi))


def _density_error(x: _Array) -> _Array:
    return np.asarray(_UNIT * (2 * x * x + 32))


def _array(name: str, values: ArrayLike, *, least: float, most: float) -> _Array:
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise InvalidParameter(name, values, "an array of floats")
    array = array.astype(np.float64)
    if not bool(np.all((array >= least) & (array <= most))):
        worst = array[~((array >= least) & (array <= most))].flat[0]
        raise InvalidParameter(name, float(worst), f"in [{least}, {most}]")
    return array


def _mu_above(mu_squared: Real | ArrayLike) -> _Array:
    """sqrt(mu_squared), rounded up; a scalar may be any exact number, an array holds floats."""
    if isinstance(mu_squared, int | float | Fraction):
        exact_nonnegative("mu_squared", mu_squared)
        mu_squared = Enclosure.of(mu_squared)
    if isinstance(mu_squared, Enclosure):
        mu_squared = mu_squared.upper_float
    squares = _array("mu_squared", mu_squared, least=0.0, most=inf)
    return np.asarray(np.where(squares == 0, 0.0, np.nextafter(np.sqrt(squares), inf)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore")
def _curve_upper(mu: _Array, epsilon: _Array) -> tuple[_Array, _Array]:
    """delta rounded up, and an estimate of delta / -delta' in epsilon, for 0 < mu < inf."""
    ratio = np.minimum(epsilon / mu, 1e300)
    a = np.minimum(ratio - mu / 2 - 4 * _UNIT * (ratio + mu), _LAST_SCORE)
    b = a + mu
    density, mills_a, mills_b = _density(a), _mills(np.abs(a)), _mills(b)
    inner = density * (mills_a + mills_b)
    nodes = a[..., np.newaxis] + mu[..., np.newaxis] * (1 + _NODES) / 2
    fall = mu * np.sum(_WEIGHTS * (1 - nodes * _mills(nodes)), axis=-1) / 2
    difference = np.where(mu <= _SMALL_MU, fall, mills_a - mills_b)
    relative = _density_error(a) + np.where(
        mu <= _SMALL_MU,
        2 * (_MILLS_ERROR + 4 * _UNIT) * (b + sqrt(2)) ** 2,
        4 * (_MILLS_ERROR + 2 * _UNIT) * mills_a / difference,
    )
    factored = (mu <= _SMALL_MU) | (a >= 0)
    upper = np.where(
        factored,
        density * difference * (1 + relative),
        1 - inner + inner * (2 * _MILLS_ERROR + _density_error(a)) + 2 * _UNIT,
    )
    length = np.where(factored, difference, upper / density) / mills_b
    return np.minimum(upper + _UNDERFLOW, 1.0), length


def delta_upper(*, mu_squared: Real | ArrayLike, epsilon: ArrayLike) -> _Array:
    """Return an upper bound on delta.

    Relatively within 1e-9 while delta >= 1e-300 and mu in [1e-6, 1e3].

    Args:
        mu_squared: a number or an array of floats, in [0, inf].
        epsilon: array of any shape that broadcasts with it, in [0, inf].

    Raises `InvalidParameter` outside these ranges. Source: as `delta_from_epsilon`.
    """
    given = _array("epsilon", epsilon, least=0.0, most=inf)
    if isinstance(mu_squared, _EXACT) and given.size <= _FEW_POINTS:
        with suppress(TooWide):
            exact = (delta_from_epsilon(mu_squared=mu_squared, epsilon=x) for x in given.flat)
            return np.array([found.upper_float for found in exact]).reshape(given.shape)
    mu, given = np.broadcast_arrays(_mu_above(mu_squared), given)
    proper = (mu > 0) & (mu < inf) & (given < inf)
    upper = _curve_upper(np.where(proper, mu, 1.0), np.where(proper, given, 0.0))[0]
    certain = np.where((mu == 0) | (given == inf), 0.0, 1.0)
    return np.where(proper, upper, certain)


def epsilon_upper(*, mu_squared: Real | ArrayLike, delta: ArrayLike) -> _Array:
    """Return an upper bound on epsilon: a value at which `delta_upper` is proved to be <= delta.

    Relatively within 1e-9 for mu in [1e-6, 1e3], except next to epsilon = 0, where it is ill-posed.

    Args:
        mu_squared: a number or an array of floats, in [0, inf].
        delta: array of any shape that broadcasts with it, in [1e-300, 1).

    Raises `InvalidParameter` outside these ranges. Source: as `epsilon_from_delta`.
    """
    target = _array("delta", delta, least=_LEAST_DELTA, most=nextafter(1.0, 0.0))
    if isinstance(mu_squared, _EXACT) and target.size <= _FEW_POINTS:
        with suppress(TooWide):
            exact = (epsilon_from_delta(mu_squared=mu_squared, delta=x) for x in target.flat)
            return np.array([found.upper_float for found in exact]).reshape(target.shape)
    mu, target = np.broadcast_arrays(_mu_above(mu_squared), target)
    proper = (mu > 0) & (mu < inf)
    mu_proper = np.where(proper, mu, 1.0)
    log_target = np.log(target)
    # Newton as in the grade enclosed; what it returns is checked, not trusted
    epsilon = mu_proper * mu_proper / 2 + mu_proper * np.sqrt(-2 * log_target)
    for _ in range(_NEWTON_STEPS):
        value, length = _curve_upper(mu_proper, epsilon)
        step = (np.log(value) - log_target) * length
        epsilon = np.maximum(epsilon + step, 0.0)
        # the error after a step is of the order of its square; at 0 it would go on to below 0
        if np.all((np.abs(step) <= 1e-9 * epsilon + 1e-15 * mu_proper) | (epsilon == 0)):
            break
    pad = 1e-15 * epsilon + _UNDERFLOW
    while np.any(failing := _curve_upper(mu_proper, epsilon)[0] > target):
        epsilon = np.where(failing, epsilon + pad, epsilon)
        pad *= 2
    return np.where(proper, epsilon, mu)


def advantage_upper(*, mu_squared: Real | ArrayLike) -> _Array:
    """Return an upper bound on the advantage TPR - FPR of any attack: 2 Phi(mu/2) - 1.

    Args:
        mu_squared: a number or an array of floats, in [0, inf].

    Source: Dong, Roth, Su 2022, Section 2 (the advantage is delta at epsilon = 0).
    """
    return delta_upper(mu_squared=mu_squared, epsilon=0.0)


def tpr_upper(*, mu_squared: Real | ArrayLike, fpr: ArrayLike) -> _Array:
    """Return an upper bound on the true-positive rate of any attack with false-positive rate `fpr`.

    It is Phi(Phi^-1(fpr) + mu), relatively within 1e-9.

    Args:
        mu_squared: a number or an array of floats, in [0, inf].
        fpr: array of any shape that broadcasts with it, in [0, 1].

    Raises `InvalidParameter` outside these ranges. Source: Dong, Roth, Su 2022, equation (6).
    """
    rate, mu, score = _score_above(mu_squared, fpr, name="fpr")
    value, error = _cdf(score)
    upper = np.minimum(value + error + _UNDERFLOW, 1.0)
    return np.where(mu == 0, rate, np.where((mu == inf) | (rate == 1), 1.0, (rate > 0) * upper))


def beta_lower(*, mu_squared: Real | ArrayLike, alpha: ArrayLike) -> _Array:
    """Return a lower bound on the trade-off function: the type II error at type I error `alpha`.

    It is Phi(Phi^-1(1 - alpha) - mu), relatively within 1e-9 above 1e-300.

    Args:
        mu_squared: a number or an array of floats, in [0, inf].
        alpha: array of any shape that broadcasts with it, in [0, 1].

    Raises `InvalidParameter` outside these ranges. Source: Dong, Roth, Su 2022, equation (6).
    """
    level, mu, score = _score_above(mu_squared, alpha, name="alpha")
    value, error = _cdf(-score)
    lower = np.maximum(value - error - _UNDERFLOW, 0.0)
    return np.where((mu == inf) | (level == 1), 0.0, np.where(level == 0, 1.0, lower))


def _score_above(
    mu_squared: Real | ArrayLike, level: ArrayLike, *, name: str
) -> tuple[_Array, _Array, _Array]:
    """level, mu, and Phi^-1(level) + mu rounded up; the last is arbitrary at level 0 and 1."""
    import scipy.special

    mu, given = np.broadcast_arrays(_mu_above(mu_squared), _array(name, level, least=0.0, most=1.0))
    quantile = scipy.special.ndtri(np.where((given > 0) & (given < 1), given, 0.5))
    above = quantile + _QUANTILE_ERROR * (1 + np.abs(quantile))
    return given, mu, np.nextafter(above + mu, inf)


def _cdf(score: _Array) -> tuple[_Array, _Array]:
    """Phi(score) and a bound on the error of this value."""
    score = np.clip(score, -_LAST_SCORE, _LAST_SCORE)
    tail = _density(score) * _mills(np.abs(score))
    error = tail * (2 * _MILLS_ERROR + _density_error(score))
    return np.where(score < 0, tail, 1 - tail), error + np.where(score < 0, 0.0, 2 * _UNIT)
