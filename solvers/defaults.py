"""The settings of `ConsensusDpAdmm` as a public function of data's shape, epsilon and threat model.

The model of error: let sigma be the noise_std of the mean gradient that the whole budget would buy
if it were spent at once. Gradient descent for the time tau = sum of effective step sizes leaves an
error of early stopping, which falls as tau grows, and adds tau·sigma·|a| of noise to the score of
a row a, whatever the number of rounds and the dimension: T steps of size tau/T with noise
sigma·sqrt(T) each add up to that in every direction the loss does not bend in, and to less in
others. A score decides by its sign, and slopes change over scores of the order of one. So tau is
chosen for a fixed noise of a score, `SCORE_NOISE`, and all else follows:

    tau = SCORE_NOISE/(sigma·R),  eta = 1/(curvature·R²),  m = max(1, sqrt(tau/(2 eta))),
    momentum 1 - 1/m,  T the least number of rounds that reach tau (about 3 m), steps scaled to it.

R is the radius of centred rows, or the row bound. With that momentum T rounds go about as far as
m T plain ones; more rounds of smaller steps would cost communication and change nothing. Slopes are
cut at one half and rows are centred, unless the noise is so small that 300 rounds do not make tau;
columns are scaled where their mean squares are above the noise that they would be bought with, and
elsewhere rows are stretched where the mean row shows that they are short.

The mean row is bought where that pays. Cut rows show what is informative in them by one over their
length before the cut: |a - m|² + |error|² of a row a and the mean m, where 1/4 + |error|² stands
against the 1/2 of rows less the known constant. A noisy mean that is shrunk errs by about
|m|² |noise|²/(|m|² + |noise|²), with |m|² = 1/4; the purchase leaves 1 - share of the budget. So it
pays where 1/4 + |error|² < (1 - share)/2: where the noise is shorter than 1.15 row bounds, at a
share of 8 %. With q/4 for the |noise|² of the whole budget it is q/(4 share), and what is left to
pay, (share + 2q)/(4 (share + q)(1 - share)), is least at the share sqrt(2q² + q) - 2q: up to 15 %.
Where that is below 8 % little hangs on it, and 8 % it is; where it is above, the noise is too long
for stretching, and rounds are planned for `_LONGEST` times the time, with steps as long as the mean
row then asks for (`Centring.longer`).

Where noise hides what rows tell, the share of the classes is most of what can be learnt. Let s be
the noise_std of the mean of labels that the whole budget would buy. Rows of d columns that are
unlike, of which the best score correlates with the label by r, have a first gradient of the length
r R/(2 sqrt(d)), in noise of the length s R sqrt(d)/2: that is s d/r times as long. Its cosine with
the best score is 1/h, h = sqrt(1 + (s d/r)²). So tau is h times as short, and the constant h times
as large: a score's noise is then less than what the constant learns of unequal classes. Most data
have fewer directions than columns, and tell more than rows of d: r stands at 1.5.

Which data have fewer, a mean row that is bought shows. Rows that differ from it by a part p of what
they might are taken for rows of p as many directions, and steps are longer again, by h/sqrt(1 + (h²
- 1) p). Where none is bought nothing tells, and h is s d/4, where that is above one.

The part q = intercept²/radius² of a row's square stands for the constant. It is as if the mean
label were bought for that share of the budget: its noise is s/sqrt(q), and rows keep 1 - q. Classes
of 62 and 38 % have a mean label of 1/4, two deviations of which are 1/8. What the constant takes
from rows, q, and its squared noise in that unit, 64 s²/q, are together least at q = 8 s. Rows less
a noisy mean row have its error in common, which stands for a constant as well: by so much the
intercept's square is less (`Centring.standing`).

Source: the time of early stopping as a regulariser, Yao, Rosasco and Caponnetto (2007); the noise
of accumulated Gaussian steps is the calculation above.

Of the mean: James and Stein (1961), Estimation with quadratic loss.

>>> schedule(8.0, step_limit=4.0)
Schedule(rounds=2, step_size=4.0, momentum=0.0)
>>> schedule(1600.0, step_limit=4.0).rounds
41
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, sqrt

import numpy as np
import scipy  # whose submodules are loaded at their first use

from ..accounting.gaussian.exact import mu_from_epsilon_delta
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import (
    InvalidParameter,
    Number,
    require_nonnegative,
    require_positive,
    require_positive_int,
)
from ..mechanisms.labels import ClassLabels, RealLabels, SignLabels, WeightedLabels
from ..mechanisms.protocols import Loss
from ..mechanisms.sensitivity import mean_of_bounded
from ..mechanisms.vertical_data import LabelLoss, VerticalShape
from .consensus import Centring, ConsensusDpAdmm
from .losses import ClippedLogistic, Logistic, Multinomial, Shifted
from .opinion_pool import OpinionPool
from .schedules import noise_weights
from .sharing import SharingAdmm
from .threat_model import PER_PARTY, Summed, ThreatModel, summed_shape
from .weighted import Weighted

SCORE_NOISE = 1.2
"""Standard deviation of the noise in a score. Between 1 and 2 accuracies differ by less than their
own deviation in most cells of `benchmarks/utility_grid.py`."""

_ROUNDS_PER_MEMORY = 3
"""T(1 - momentum): shorter, momentum never comes up to speed; longer, rounds buy nothing."""

_KNOWN_INTERCEPT = 0.25
"""What stands for the constant in rows less it, where no mean row is bought, in units of the row
bound. Between 0.15 and 0.35 unequal classes gain two points and equal ones lose one (other splits
of the grid's sets)."""

_HIDING = 4.0
"""s d above which rows tell too little. On generated rows two is better on average: unequal classes
gain more than equal ones lose. At four equal ones lose hardly anything up to s d = 6."""

_HIDING_UNLIKE = 1.5
"""r of rows whose mean is bought. At one normal rows gain 0.3 points and binary ones lose 0.5
(splits 700 to 723 of the grid's sets)."""

_LONG_NOISE = 1.2
"""h from which steps may be longer whatever share a mean row gets: s d is then about one."""

_STANDING, _MOST_STANDING = 8.0, 1 / 3
"""q/s, and the most of q: beyond, what rows may still tell is cut for a number that noise hides."""

_REGRESSION_INTERCEPT = 0.35
"""What stands for the constant in a regression's rows, in units of the row bound: less is less
sensitive, and slower to find the labels' mean. From generated rows alone."""

_MOST_ROUNDS = 300
"""At more, the error is that of the optimum on the sample and no longer that of the noise."""


_LONGEST = 4.0
"""By what factor a noisy mean row may lengthen a run. With rows of breast cancer, that differ by
little, two and more are best; with others' it asks for less."""


_LARGEST_SCALED = 1e-6
"""lambda up to which columns are scaled: in scaled coordinates it bends as scales squared."""


_COEFFICIENT_NOISE, _LEAST_WEIGHT = 0.2, 1e-4
"""Of sharing: the noise of a coefficient that is let pass, and the least weight of a record's share
of the regulariser."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rounds, step size and momentum, which are public."""

    rounds: int
    step_size: float
    momentum: float


def schedule(
    time: float, *, step_limit: float, modulus: float = 0.0, rounds: int | None = None
) -> Schedule:
    """Return a schedule whose effective step sizes add up to `time`, or to what its rounds reach.

    Args:
        time: tau > 0; where it would take more than 300 rounds, it is cut to those.
        step_limit: eta > 0, the largest step size that is safe, 1/L.
        modulus: of strong convexity, >= 0: momentum is at most the best for it (Nesterov 2004,
            section 2.2.1).
        rounds: T, where it is not for the rule to say.
    """
    require_positive("time", time)
    require_positive("step_limit", step_limit)
    require_nonnegative("modulus", modulus)
    if rounds is not None:
        require_positive_int("rounds", rounds)
    root = sqrt(min(1.0, modulus * step_limit))
    longest = (1.0 + root) / (2.0 * root) if root > 0.0 else inf
    wanted = sqrt(time / (2.0 * step_limit)) if rounds is None else rounds / _ROUNDS_PER_MEMORY
    memory = max(1.0, min(wanted, longest, _MOST_ROUNDS / _ROUNDS_PER_MEMORY))
    momentum, reach, last = 1.0 - 1.0 / memory, 0.0, 0
    while last < (rounds or _MOST_ROUNDS) and (rounds or reach * step_limit < time):
        last += 1
        # what a unit step of one round adds until `last` rounds later
        reach += (1.0 - momentum**last) / (1.0 - momentum)
    return Schedule(last, min(time / reach, step_limit), momentum)


def label_noise(shape: DataShape, *, epsilon: Number, delta: Number) -> float:
    """Return s, the noise_std of the mean of labels +-1 that the whole budget buys.

    Args:
        shape: of the data, each of whose parties adds its own noise.
        epsilon: > 0.
        delta: in (0, 1).
    """
    mu = mu_from_epsilon_delta(epsilon=epsilon, delta=delta).lower_float
    return _mean_noise(shape, Fraction(1), mu)


def consensus_defaults(
    shape: DataShape,
    *,
    epsilon: Number,
    delta: Number,
    threat_model: ThreatModel = PER_PARTY,
    column: int | None = None,
    constant: float = sqrt(0.5),
    rounds: int | None = None,
    regularisation: float = 1e-6,
) -> ConsensusDpAdmm:
    """Return `ConsensusDpAdmm` with settings for a target, its noise multiplier the target's.

    The noise multiplier is mu's, of the whole run a Gaussian mechanism; planning certifies it.

    Args:
        shape: of all parties' records, whatever the threat model.
        epsilon: of the whole run, > 0.
        delta: in (0, 1).
        threat_model: under `Summed` the solver is for data of `summed_shape(shape)`.
        column: index of the column with a public constant in every row; None where there is none,
            and then rows are not centred.
        constant: what it holds, in units of the row bound.
        rounds: T, where it is not for the rule to say.
        regularisation: lambda, in mean loss + (lambda/2)|w|².
    """
    mu = mu_from_epsilon_delta(epsilon=epsilon, delta=delta).lower_float
    if isinstance(threat_model, Summed):
        mu /= threat_model.total(1.0, parties=len(shape.parties))
        shape = summed_shape(shape)
    metric = None if column is None else Centring(column, constant=constant)
    hiding, noise_std = 1.0, _mean_noise(shape, Fraction(1), mu)
    if metric is not None and _hidden(shape, metric, mu):
        metric = _unbought(replace(metric, intercept=_KNOWN_INTERCEPT))
        hiding = max(1.0, noise_std * shape.features / _HIDING)
    elif metric is not None and regularisation <= _LARGEST_SCALED:
        scaling = _seen(shape, metric, mu)
        metric = replace(metric, scaling=scaling, stretching=not scaling)
        if metric.stretching:
            hiding = sqrt(1.0 + (noise_std * shape.features / _HIDING_UNLIKE) ** 2)
            longest = 1.0 if rounds else _LONGEST * hiding
            share = _best_share(shape, metric, mu)
            metric = replace(_standing(metric, noise_std), hiding=hiding)
            if share > metric.share or hiding > _LONG_NOISE:
                metric = replace(metric, share=max(share, metric.share), longest=longest)
    metric = None if metric is None else _raised(metric, hiding)
    loss, metric, time = _cut_as_noise_asks(shape, metric, mu)
    radius, left = _radius(shape, metric), 1.0 if metric is None else 1.0 - metric.share
    # a model is at most 1 + |centre|/constant times as long as its centred coordinates
    bent = 1.0 if metric is None else (1.0 + 1.0 / constant) ** 2
    longest = 1.0 if metric is None else metric.longest
    chosen = schedule(
        longest * time / hiding,
        step_limit=1.0 / (float(loss.curvature_bound or 0) * radius**2 + bent * regularisation),
        modulus=regularisation,
        rounds=rounds,
    )
    return ConsensusDpAdmm(
        chosen.rounds,
        sqrt(chosen.rounds / left) / mu,
        chosen.step_size / longest,
        chosen.momentum,
        metric=metric,
        regularisation=regularisation,
        loss=loss,
    )


def opinion_pool_defaults(
    shape: VerticalShape,
    *,
    epsilon: Number,
    delta: Number,
    offset: float = 0.0,
    regularisation: float = 1e-7,
) -> OpinionPool:
    """Return `OpinionPool` with settings for a target, its noise multiplier the target's.

    Each of M parties descends as one that had all records and mu/sqrt(M) to itself.

    Args:
        shape: of the columns, with public labels.
        epsilon: of the whole run, of all parties together, > 0.
        delta: in (0, 1).
        offset: the log-odds of the labels, or whatever public number is added to all scores.
        regularisation: lambda, in mean loss + (lambda/2)|x_m|².
    """
    parties = len(shape.parties)
    mu = mu_from_epsilon_delta(epsilon=epsilon, delta=delta).lower_float / sqrt(parties)
    own = DataShape(("party",), shape.count, 1, shape.row_bound, shape.adjacency)
    loss, _, time = _cut_as_noise_asks(own, None, mu)
    chosen = schedule(
        time,
        step_limit=1.0 / (float(loss.curvature_bound or 0) * shape.row_bound**2 + regularisation),
        modulus=regularisation,
    )
    return OpinionPool(
        chosen.rounds,
        sqrt(chosen.rounds) / mu,
        chosen.step_size,
        chosen.momentum,
        regularisation=regularisation,
        loss=Shifted(loss, offset),
    )


def sharing_defaults(
    shape: VerticalShape,
    *,
    noise_multiplier: float,
    rounds: int = 0,
    penalty: float = 0.25,
    slope_bound: float = 1.0,
    radius: float = 3.0,
    offset: float = 0.0,
    regularisation: float | None = None,
) -> SharingAdmm:
    """Return `SharingAdmm` that opens with what labels tell, for models of new records.

    Args:
        shape: of the columns.
        noise_multiplier: of every release.
        rounds: exchanges of scores; without any, models are ridge regression on what is told.
        penalty, slope_bound, radius: of the algorithm.
        offset: public, added to all scores.
        regularisation: weight of the squared norm in a mean over records; None for the least at
            which the noise of a coefficient is 0.2, so that a party's scores of a new row err by no
            more.
    """
    if regularisation is None:
        # a replaced record moves coefficients by this, divided by the weight
        moves = 2.0 * (slope_bound + penalty * radius)
        weight = max(moves * noise_multiplier / _COEFFICIENT_NOISE, _LEAST_WEIGHT * shape.count)
    else:
        weight = regularisation * shape.count
    return SharingAdmm(
        rounds,
        noise_multiplier,
        penalty=penalty,
        regularisation=weight,
        slope_bound=slope_bound,
        radius=radius,
        loss=Shifted(Logistic(), offset),
        opening=True,
    )


def regression_defaults(
    shape: DataShape,
    *,
    loss: LabelLoss,
    epsilon: Number,
    delta: Number,
    column: int | None = None,
    rounds: int | None = None,
    regularisation: float = 1e-7,
) -> ConsensusDpAdmm:
    """Return `ConsensusDpAdmm` for a regression and a target, its noise multiplier the target's.

    A score has a size here, and no threshold that forgives noise. So tau is what makes the two
    errors of a prediction least together in a quadratic model of the loss: of stopping early,
    B² exp(-2 lambda tau), and of noise, (tau sigma R)². There tau exp(2 lambda tau) is
    lambda B²/(sigma R)², and tau is W(2 lambda² B²/(sigma R)²)/(2 lambda) (Lambert). B² = Y²/3 is
    the mean square of labels uniform within their bound Y, and lambda = R²/(4 d) the mean curvature
    in d directions of rows half of whose bound is a constant and whose squares are half of what is
    left. Rows are less the known constant, and never cut: a cut row's score would be biased.

    Args:
        shape: of all parties' records, with real labels, or with such and weights.
        loss: smooth; convex.
        epsilon: of the whole run, > 0.
        delta: in (0, 1).
        column: index of the column with the constant sqrt(1/2) in every row; None without one.
        rounds: T, where it is not for the rule to say.
        regularisation: lambda of the regulariser, in mean loss + (lambda/2)|w|².
    """
    labels, curvature = shape.label_domain, float(loss.curvature_bound or 0)
    labels = labels.labels if isinstance(labels, WeightedLabels) else labels
    if not isinstance(labels, RealLabels):
        raise InvalidParameter("label_domain", labels, "RealLabels")
    require_positive("loss.curvature_bound", curvature)
    mu = mu_from_epsilon_delta(epsilon=epsilon, delta=delta).lower_float
    metric = None
    if column is not None:
        metric = _unbought(Centring(column, intercept=_REGRESSION_INTERCEPT))
    radius = _radius(shape, metric)
    bound = Fraction(loss.derivative_bound) * Fraction(float(radius))
    noise_std = _mean_noise(shape, bound, mu) * radius
    bent = shape.row_bound**2 / (4.0 * shape.features)
    ratio = 2.0 * bent**2 * labels.bound**2 / 3.0 / noise_std**2
    # far out the schedule's own limits decide
    time = float(np.clip(scipy.special.lambertw(ratio).real / (2.0 * bent), 1e-9, 1e9))
    # a model is at most 1 + 1/constant times as long as its centred coordinates
    stretched = 1.0 if metric is None else (1.0 + 1.0 / metric.constant) ** 2
    chosen = schedule(
        time,
        step_limit=1.0 / (curvature * radius**2 + stretched * regularisation),
        # faster momentum would still swing when the time is up
        modulus=max(bent, regularisation),
        rounds=rounds,
    )
    return ConsensusDpAdmm(
        chosen.rounds,
        sqrt(chosen.rounds) / mu,
        chosen.step_size,
        chosen.momentum,
        metric=metric,
        regularisation=regularisation,
        loss=loss,
    )


def _cut_as_noise_asks(
    shape: DataShape, metric: Centring | None, mu: float
) -> tuple[LabelLoss, Centring | None, float]:
    """Return loss and metric, and tau: slopes and rows are cut unless noise is negligible."""
    whole = None
    if metric is not None:
        whole = replace(
            metric, radius=1.0, scaling=False, stretching=False, longest=1.0, least=None, hiding=1.0
        )
    loss = _loss(shape, cut=False)
    time = _time(shape, loss, whole, mu)
    # beyond, what is left is the error of so many rounds, and a cut would only bias the optimum
    reached = 2.0 * (_MOST_ROUNDS / _ROUNDS_PER_MEMORY) ** 2
    if time * float(loss.curvature_bound or 0) * _radius(shape, whole) ** 2 >= reached:
        return loss, whole, time
    loss = _loss(shape, cut=True)
    return loss, metric, _time(shape, loss, metric, mu)


def _radius(shape: DataShape, metric: Centring | None) -> float:
    return shape.row_bound * (1.0 if metric is None else metric.radius)


def _time(shape: DataShape, loss: Loss, metric: Centring | None, mu: float) -> float:
    """Return tau = SCORE_NOISE/(sigma·R)."""
    radius, left = _radius(shape, metric), 1.0 if metric is None else 1.0 - metric.share
    bound = Fraction(loss.derivative_bound) * Fraction(float(radius))
    return SCORE_NOISE / (_mean_noise(shape, bound, mu * sqrt(left)) * radius)


def _hidden(shape: DataShape, metric: Centring, mu: float) -> bool:
    """Return whether a mean row, shrunk, would err by more than pays for its share of it all."""
    length = Fraction(sqrt(1.0 - metric.constant**2))
    noise = _mean_noise(shape, length, mu * sqrt(metric.share)) ** 2 * shape.features
    error = 0.25 * noise / (0.25 + noise)
    return 0.25 + error > (1.0 - metric.share) / 2.0


def _best_share(shape: DataShape, metric: Centring, mu: float) -> float:
    """Return the share at which a mean row serves most; 0 or less where at none."""
    length = Fraction(sqrt(1.0 - metric.constant**2))
    q = 4.0 * _mean_noise(shape, length, mu) ** 2 * shape.features
    return sqrt(2.0 * q**2 + q) - 2.0 * q


def _raised(metric: Centring, factor: float) -> Centring:
    """Return the metric with a larger constant, up to the row bound; rows keep their radius."""
    larger = min(1.0, factor * metric.intercept)
    radius = sqrt(metric.radius**2 - metric.intercept**2 + larger**2)
    return replace(metric, intercept=larger, radius=radius)


def _standing(metric: Centring, noise_std: float) -> Centring:
    """Return the metric with as much for the constant as the noise of the mean label asks for."""
    part = min(_MOST_STANDING, _STANDING * noise_std)
    wanted = sqrt((metric.radius**2 - metric.intercept**2) * part / (1.0 - part))
    least = replace(metric, least=metric.intercept)
    return _raised(least, max(1.0, wanted / metric.intercept))


def _unbought(metric: Centring) -> Centring:
    """Return the metric of the known constant, whose radius cuts no row."""
    longest = sqrt(1.0 - metric.constant**2 + metric.intercept**2)
    return replace(metric, share=0.0, radius=longest)


def _seen(shape: DataShape, metric: Centring, mu: float) -> bool:
    """Return whether mean squares are worth buying: above their noise if columns were alike."""
    size = _radius(shape, metric) ** 2
    noise_std = _mean_noise(shape, Fraction(size), mu * sqrt(metric.share / 2.0))
    return 2.0 * noise_std < size / shape.features


def _mean_noise(shape: DataShape, bound: Fraction, mu: float) -> float:
    """Return the noise_std of a mean of vectors up to `bound` that costs mu."""
    own = [mean_of_bounded(bound, count, shape.adjacency) for count in shape.counts]
    weights, largest = noise_weights(own), max(each.value for each in own)
    # each party's noise is its sensitivity over mu; the mean is over their weights
    return largest * sqrt(len(own)) / (float(weights.sum()) * mu)


def _loss(shape: DataShape, *, cut: bool) -> LabelLoss:
    """Return the logistic loss of two classes, or the multinomial loss of more, never cut."""
    labels = shape.label_domain
    if isinstance(labels, WeightedLabels):
        return Weighted(_loss(replace(shape, label_domain=labels.labels), cut=cut))
    if isinstance(labels, ClassLabels):
        return Multinomial(labels.classes)
    if not isinstance(labels, SignLabels):
        raise InvalidParameter("label_domain", labels, "of classes")
    return ClippedLogistic() if cut else Logistic()
