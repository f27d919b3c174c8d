"""Losses of (generalised) linear models, with the constants that sensitivities and steps rest on.

For rows of norm at most R, a record's gradient row ⊗ ∂l/∂score has norm at most
R·derivative_bound, and moves by at most R²·curvature_bound per unit of the model. No loss here is
strongly convex in the model: a modulus comes from regularisers and penalties alone.

Two records' gradients differ by up to 2R·derivative_bound, and for every loss here that is the
supremum once d >= 2: take rows R(c, ±s) with s near 1, both with a large score along the
first axis, and slopes that saturate with one sign. Only where the label alone differs is it less:
R·label_gap_bound.

>>> import numpy as np
>>> Logistic().derivative(np.array([0.0]), np.array([1.0]))
array([-0.5])
>>> bounded_squared(score_bound=1.0, label_bound=2.0).derivative_bound
Fraction(3, 1)
"""

from dataclasses import dataclass
from fractions import Fraction
from math import log, log1p

import numpy as np
import numpy.typing as npt
import scipy  # whose submodules are loaded at their first use

from ..mechanisms.errors import (
    require_finite,
    require_open_unit,
    require_positive,
)
from ..mechanisms.labels import SIGNS, ClassLabels, LabelDomain, RealLabels
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sensitivity import float_up, root_up
from ..mechanisms.vertical_data import LabelLoss


@dataclass(frozen=True, slots=True)
class Logistic:
    """l(s, y) = ln(1 + exp(-y s)), y = ±1: |l'| <= 1, 0 <= l'' <= 1/4."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1, 4)
    label_gap_bound = Fraction(1)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise; never overflows."""
        return np.logaddexp(0.0, -labels * scores)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return -y/(1 + exp(y s)), elementwise."""
        slope = self._denominator(np.multiply(scores, labels))
        return np.divide(-labels, slope, out=slope)

    def margin_derivative(self, margins: FloatArray) -> FloatArray:
        """Return -1/(1 + exp(y s)), elementwise, written over the margins y s."""
        slope = self._denominator(margins)
        return np.divide(-1.0, slope, out=slope)

    def _denominator(self, margins: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # 1/(1 + infinity) is the right limit
            np.exp(margins, out=margins)
        margins += 1.0
        return margins


@dataclass(frozen=True, slots=True)
class ClippedLogistic:
    """The logistic loss whose slope is cut to ±b: a straight line below the margin ln((1-b)/b).

    phi(m) = ln(1 + exp(-m)) for m = y s >= m_b = ln((1-b)/b), else -ln(1-b) + b (m_b - m). Convex,
    since the cut slope still grows with m; |l'| <= b, 0 <= l'' <= 1/4, for b < 1/2 at most b(1-b).
    At b = 1/2 it is the logistic loss of records on the right side of the boundary and half the
    perceptron's of the others, at half the logistic loss's sensitivity. The Huber loss is what this
    is for the squared loss; of the multinomial loss, whose slope is a vector, a cut slope is no
    gradient of anything.

    A score at the least expected loss is no log-odds: it is further from 0 (`probability`).

    Source: gradient clipping of generalised linear models is the gradient of a loss: Song, Steinke,
    Thakkar and Thakurta (2021), Evading the curse of dimensionality in unconstrained private GLMs,
    section 5.

    Args:
        bound: b in (0, 1).
    """

    bound: float = 0.5

    outputs = 1
    label_domain = SIGNS

    def __post_init__(self) -> None:
        require_open_unit("bound", self.bound)

    @property
    def derivative_bound(self) -> Fraction:
        return Fraction(self.bound)

    @property
    def curvature_bound(self) -> Fraction | None:
        """sup of p(1-p) over the slopes p <= b that are not cut."""
        steepest = min(Fraction(self.bound), Fraction(1, 2))
        return steepest * (1 - steepest)

    @property
    def label_gap_bound(self) -> Fraction:
        """sup of min(p, b) + min(1-p, b) over p: at p = 1/2."""
        return min(Fraction(1), 2 * Fraction(self.bound))

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise; never overflows."""
        margins = labels * scores
        at_cut, level = log((1.0 - self.bound) / self.bound), -log1p(-self.bound)
        straight = level + self.bound * (at_cut - margins)
        return np.where(margins < at_cut, straight, np.logaddexp(0.0, -margins))

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return -y/(1 + exp(y s)) cut to ±b, elementwise."""
        slope = Logistic().derivative(scores, labels)
        return slope.clip(-self.bound, self.bound, out=slope)

    def margin_derivative(self, margins: FloatArray) -> FloatArray:
        """Return -1/(1 + exp(y s)) cut to -b, elementwise, written over the margins y s."""
        slope = Logistic().margin_derivative(margins)
        return slope.clip(-self.bound, self.bound, out=slope)

    def probability(self, scores: FloatArray) -> FloatArray:
        """Return the probability of +1 at which each score has the least expected loss.

        There p·min(1 - q, b) = (1 - p)·min(q, b) with q = 1/(1 + exp(-s)). At b = 1/2 a score of 2,
        for a logistic probability of 0.88, stands for 0.81; where both slopes are cut, for 1/2.
        Source: the link of a composite loss, Reid and Williamson (2010).
        """
        no, yes = (np.minimum(scipy.special.expit(s), self.bound) for s in (-scores, scores))
        return np.asarray(yes / (yes + no))


@dataclass(frozen=True, slots=True)
class LinearLoss:
    """l(s, y) = y s: the calculus' worst case, whose gradient y·row always has the full norm.

    Flipping one label moves a mean gradient by exactly 2·‖row‖/n: an attack on it measures the
    whole of what replace-one sensitivities price.
    """

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(0)
    label_gap_bound = Fraction(2)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return y·s, elementwise."""
        return labels * scores

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return y, elementwise."""
        return np.broadcast_to(labels, np.broadcast_shapes(scores.shape, labels.shape)).copy()


@dataclass(frozen=True, slots=True)
class Hinge:
    """l(s, y) = max(0, 1 - y s), y = ±1: |l'| <= 1 and not smooth; the slope at the kink is 0.

    `label_gap_bound` 2 is attained at |s| < 1.
    """

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = None
    label_gap_bound = Fraction(2)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise."""
        return np.maximum(0.0, 1.0 - labels * scores)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return -y where y s < 1, else 0."""
        return np.where(labels * scores < 1.0, -labels, 0.0)


@dataclass(frozen=True, slots=True)
class Shifted:
    """l(s + offset, y): a loss of models whose scores have a public constant added to them.

    Its constants are l's, which are suprema over all scores.

    Args:
        loss: l.
        offset: public, such as the log-odds of public labels.
    """

    loss: LabelLoss
    offset: float

    def __post_init__(self) -> None:
        require_finite("offset", self.offset)

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    @property
    def label_domain(self) -> LabelDomain:
        return self.loss.label_domain

    @property
    def derivative_bound(self) -> Fraction:
        return self.loss.derivative_bound

    @property
    def curvature_bound(self) -> Fraction | None:
        return self.loss.curvature_bound

    @property
    def label_gap_bound(self) -> Fraction:
        return self.loss.label_gap_bound

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return l(s + offset, y), elementwise."""
        return self.loss.value(scores + self.offset, labels)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return l'(s + offset, y), elementwise."""
        return self.loss.derivative(scores + self.offset, labels)


@dataclass(frozen=True, slots=True)
class SmoothedHinge:
    """The hinge with a parabola of half-width h around its kink: the Huber loss of support vectors.

    l = 0 for m >= 1 + h, 1 - m for m <= 1 - h, else (1 + h - m)²/(4h), with m = y s and y = ±1.
    |l'| <= 1, 0 <= l'' <= 1/(2h); between the hinge and the hinge + h/4.
    Source: Chapelle (2007), Training a support vector machine in the primal; Chaudhuri, Monteleoni
    and Sarwate (2011), section 3.4.2.

    Args:
        width: h.
    """

    width: float = 0.5

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)

    def __post_init__(self) -> None:
        require_positive("width", self.width)

    @property
    def curvature_bound(self) -> Fraction | None:
        return 1 / (2 * Fraction(self.width))

    @property
    def label_gap_bound(self) -> Fraction:
        """sup of h(s) + h(-s), h = -l'(·, +1) in [0, 1]: at s = 0, 1 + 1/h where h > 1, else 2."""
        return min(Fraction(2), 1 + 1 / Fraction(self.width))

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise."""
        shortfall = 1.0 - labels * scores
        inside = np.clip(shortfall + self.width, 0.0, 2.0 * self.width)
        return inside**2 / (4.0 * self.width) + np.maximum(shortfall - self.width, 0.0)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return -y times the cut of 1/2 + (1 - y s)/(2h) to [0, 1]."""
        # 1 - y s first: exact near the kink, where a small h would magnify its rounding
        slope = (1.0 - labels * scores) / (2.0 * self.width) + 0.5
        return np.clip(slope, 0.0, 1.0, out=slope) * -labels


@dataclass(frozen=True, slots=True)
class Huber:
    """l(s, y) = r²/2 for |r| <= kappa, else kappa|r| - kappa²/2, with r = s - y and |y| <= Y.

    l' is r cut to ±kappa, so |l'| <= kappa, 0 <= l'' <= 1, and two labels move the slope by at most
    min(2 kappa, 2Y). Source: Huber (1964).

    Args:
        width: kappa, in units of the label.
        label_bound: Y, public; labels beyond are refused with the data.
    """

    width: float
    label_bound: float

    outputs = 1
    curvature_bound = Fraction(1)

    def __post_init__(self) -> None:
        require_positive("width", self.width)
        require_positive("label_bound", self.label_bound)

    @property
    def label_domain(self) -> LabelDomain:
        return RealLabels(self.label_bound)

    @property
    def derivative_bound(self) -> Fraction:
        return Fraction(self.width)

    @property
    def label_gap_bound(self) -> Fraction:
        return 2 * min(Fraction(self.width), Fraction(self.label_bound))

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise."""
        size = np.abs(scores - labels)
        near = np.minimum(size, self.width)
        return near * (size - 0.5 * near)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return s - y cut to ±kappa, elementwise."""
        return np.clip(scores - labels, -self.width, self.width)


@dataclass(frozen=True, slots=True)
class SmoothedQuantile:
    """The check loss of quantile regression, its kink smoothed over 2h: |y| <= Y.

    The check loss of r = y - s is tau r for r > 0 and (tau - 1) r below; its mean is least where a
    share tau of the labels lies below s. Averaged over a uniform shift of up to h,

        l'(s, y) = ((s - y)/(2h) + 1/2 cut to [0, 1]) - tau,

    so |l'| <= max(tau, 1 - tau) and 0 <= l'' <= 1/(2h), and l is between the check loss and h/4
    more. Two labels move the slope by at most min(1, Y/h). Source: Koenker and Bassett (1978);
    smoothed by convolution, Fernandes, Guerre and Horta (2021).

    Args:
        level: tau in (0, 1).
        width: h, in units of the label.
        label_bound: Y, public; labels beyond are refused with the data.
    """

    level: float
    width: float
    label_bound: float

    outputs = 1

    def __post_init__(self) -> None:
        require_open_unit("level", self.level)
        require_positive("width", self.width)
        require_positive("label_bound", self.label_bound)

    @property
    def label_domain(self) -> LabelDomain:
        return RealLabels(self.label_bound)

    @property
    def derivative_bound(self) -> Fraction:
        return max(Fraction(self.level), 1 - Fraction(self.level))

    @property
    def curvature_bound(self) -> Fraction | None:
        return 1 / (2 * Fraction(self.width))

    @property
    def label_gap_bound(self) -> Fraction:
        return min(Fraction(1), Fraction(self.label_bound) / Fraction(self.width))

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise."""
        above = scores - labels
        inside = np.clip(above + self.width, 0.0, 2.0 * self.width)
        positive = inside**2 / (4.0 * self.width) + np.maximum(above - self.width, 0.0)
        return positive - self.level * above

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return (s - y)/(2h) + 1/2 cut to [0, 1], less tau, elementwise."""
        slope = (scores - labels) / (2.0 * self.width) + 0.5
        return np.clip(slope, 0.0, 1.0, out=slope) - self.level


def bounded_squared(*, score_bound: float, label_bound: float) -> Huber:
    """Return the loss that is (s - y)²/2 wherever |s| <= `score_bound`, and Lipschitz everywhere.

    On the domain |row| <= R, |w| <= B, |y| <= Y the squared loss has gradients of norm at most
    R(RB + Y). A noisy iterate can leave that domain, and projecting it would be one more thing to
    assume: with score_bound = RB, this loss goes on as a straight line once |s - y| passes
    RB + Y, so that R(RB + Y) bounds its gradients for every w.

    Args:
        score_bound: RB, a bound on the scores of interest.
        label_bound: Y.
    """
    require_positive("score_bound", score_bound)
    require_positive("label_bound", label_bound)
    return Huber(float_up(Fraction(score_bound) + Fraction(label_bound)), label_bound)


@dataclass(frozen=True, slots=True)
class Multinomial:
    """l(s, y) = ln sum_j exp(s_j) - s_y, y in {0, ..., K-1}: multi-class logistic regression.

    With p = softmax(s), the slope is p - e_y and a record's gradient row ⊗ (p - e_y), whose
    (Frobenius) norm is ‖row‖·‖p - e_y‖. Equation 3 of Huang et al. (2020), for one-hot labels.

    |p - e_y|² = (1 - p_y)² + sum over j ≠ y of p_j² <= 2 (1 - p_y)² <= 2: at most sqrt(2),
    approached as p tends to another e_j. The curvature diag(p) - p pᵀ is the variance of v_J under
    J ~ p in direction v, at most ((max v - min v)/2)² <= |v|²/2: at most 1/2, attained at
    p = (1/2, 1/2). Two labels move the slope by |e_y - e_y'| = sqrt(2), exactly.

    Args:
        classes: K, public.
    """

    classes: int

    derivative_bound = root_up(Fraction(2))
    curvature_bound = Fraction(1, 2)
    label_gap_bound = root_up(Fraction(2))

    def __post_init__(self) -> None:
        ClassLabels(self.classes)

    @property
    def outputs(self) -> int:
        return self.classes

    @property
    def label_domain(self) -> LabelDomain:
        return ClassLabels(self.classes)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss of shape (..., n), for scores (..., n, K)."""
        own = np.where(self._one_hot(labels), scores, 0.0).sum(axis=-1)
        return np.asarray(scipy.special.logsumexp(scores, axis=-1) - own)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return softmax(s) - e_y, of the scores' shape."""
        slopes = np.asarray(scipy.special.softmax(scores, axis=-1))
        slopes -= self._one_hot(labels)
        return slopes

    def _one_hot(self, labels: FloatArray) -> npt.NDArray[np.bool_]:
        return np.equal(labels[..., None], np.arange(self.classes))
