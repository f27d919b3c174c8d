"""The four plots of a report, laid out: points in pixels, ticks and labels, ready for a template.

Colours and fonts belong to the page's style sheet, so that a plot follows light and dark; this
module knows a curve's *role* only. Logarithmic axes leave out what they cannot show (zero).

Each plot has a title, axes with units, and for every curve a sentence with its two ends: a reader
who cannot see the picture has the numbers that matter.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import ceil, floor, isfinite, log10

import numpy as np

from ...accounting.gaussian.fast import tpr_upper
from ...accounting.hypothesis_testing import most_true_positives
from ...accounting.numbers.grade import Grade
from ..visible_text import visible
from .numerals import power_of_ten, printed
from .record import EmpiricalAudit, PrivacyFacts, RatePoint, Report, Skipped, Utility

WIDTH, HEIGHT = 460, 310
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 14, 46
_MOST_TICKS = 6
"""Labels of an axis, at most: more would touch each other at this width."""
_END_DIGITS = 3
"""Significant digits of a curve's two ends in its description."""

Point = tuple[float, float]
"""x and y, in the units of the axes or in pixels."""


class Role(Enum):
    """What a curve is, for the style sheet."""

    BOUND = "bound"
    OTHER_BOUND = "other-bound"
    REFERENCE = "reference"
    FIRST = "series-1"
    SECOND = "series-2"
    THIRD = "series-3"
    FOURTH = "series-4"


_SERIES = (Role.FIRST, Role.SECOND, Role.THIRD, Role.FOURTH)
"""Roles of the utility plot's curves, one a model, in turn."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis, in pixels, and its label.

    Args:
        place: in pixels from the left or the top.
        label: a number as it is printed.
    """

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale from numbers to pixels, with its label (and unit) and ticks.

    Args:
        label: quantity and unit.
        low, high: the numbers at both ends.
        start, end: their places in pixels; y grows downwards, so that start > end there.
        logarithmic: whether powers of ten are evenly spaced.
    """

    label: str
    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """Return where `value` is, in pixels; values outside the axis are put at its end."""
        scale: Callable[[float], float] = log10 if self.logarithmic else float
        low, high = scale(self.low), scale(self.high)
        share = (scale(min(max(value, self.low), self.high)) - low) / (high - low)
        return self.start + (self.end - self.start) * share

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """At most about six round numbers: powers of ten, or multiples of 1, 2 or 5 of one."""
        if self.logarithmic:
            first, last = round(log10(self.low)), round(log10(self.high))
            stride = max(1, ceil((last - first) / _MOST_TICKS))
            powers = range(last, first - 1, -stride)
            return tuple(Tick(self.place(10.0**p), power_of_ten(p)) for p in powers)
        step = _round_step((self.high - self.low) / _MOST_TICKS)
        whole = range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)
        return tuple(Tick(self.place(k * step), printed(k * step, digits=4)) for k in whole)


@dataclass(frozen=True, slots=True)
class PlottedCurve:
    """A named line through points in pixels; `ends` says in words from where to where.

    Args:
        name: for the legend.
        role: by which the style sheet chooses colour and dash.
        places: in pixels.
        ends: for readers who see no picture.
    """

    name: str
    role: Role
    places: tuple[Point, ...]
    ends: str

    @property
    def path(self) -> str:
        """The line as SVG path data."""
        return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in self.places)


@dataclass(frozen=True, slots=True)
class Mark:
    """One point worth naming.

    Args:
        name: for the legend.
        x, y: in pixels.
    """

    name: str
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot, or (`absent`) why there is none.

    `name` is unique in a page; `forbidden` is the path of an area that the promise rules out.

    Args:
        name: an identifier.
        title: above the plot.
        caption: below it, a sentence or two.
        x, y: axes; None where there is no plot.
        curves: in the order of the legend.
        forbidden: SVG path data.
        mark: a point of its own, such as the promise.
        absent: why there is none.
    """

    name: str
    title: str
    caption: str
    x: Axis | None = None
    y: Axis | None = None
    curves: tuple[PlottedCurve, ...] = ()
    forbidden: str | None = None
    mark: Mark | None = None
    absent: str | None = None


def plots(report: Report) -> tuple[Plot, ...]:
    """Return the four plots: privacy curve, odometer, ROC, utility."""
    return (
        _privacy_curve(report.privacy),
        _odometer(report.privacy),
        _roc(report.audit, report.privacy),
        _utility(report.utility),
    )


def _privacy_curve(privacy: PrivacyFacts) -> Plot:
    """Return δ(ε) of the events, with the promise marked on it."""
    points = [
        (point.epsilon, point.delta)
        for point in privacy.curve or ()
        if isinstance(point.epsilon, float)
    ]
    epsilon = privacy.epsilon.upper
    promise = (epsilon if isinstance(epsilon, float) else None, privacy.delta)
    return curve_plot(points, promise, privacy.curve_grade, absent=_no_curve(privacy))


def curve_plot(
    curve: Iterable[Point],
    promise: tuple[float | None, float],
    grade: Grade | None,
    *,
    absent: str = "no finite ε",
) -> Plot:
    """Return the plot of a privacy curve.

    Args:
        curve: points (epsilon, delta); those of infinite epsilon or of delta 0 are left out.
        promise: epsilon, None if it is infinite, and delta, which is marked.
        grade: of the curve.
        absent: why there is no plot, where there are no two points.

    The lowest power of ten on the axis lies below every point, so that none touches the frame.
    """
    title, name = "Privacy curve", "curve"
    points = [(e, d) for e, d in curve if isfinite(e) and d > 0]
    if len(points) < 2:
        return Plot(name, title, "", absent=absent)
    epsilon, delta = promise
    x = x_axis("ε", 0.0, max(e for e, _ in points))
    lowest = min(d for d in (*(d for _, d in points), delta) if d > 0)
    # a power of ten below, but not a decade lower for a last digit
    y = y_axis("δ", 10.0 ** min(-1, floor(log10(lowest * 1.01))), 1.0, logarithmic=True)
    mark = None
    if epsilon is not None:
        mark = Mark("the promise", x.place(epsilon), y.place(delta))
    graded = "" if grade is None else f" Grade: {grade.value}."
    caption = f"(ε, δ)-privacy holds at every point on the curve and above it.{graded}"
    return Plot(name, title, caption, x, y, (drawn("δ(ε)", Role.BOUND, points, x, y),), mark=mark)


def _no_curve(privacy: PrivacyFacts) -> str:
    """Return why there is no curve of a promise."""
    return "no finite ε" if privacy.epsilon.upper == "infinity" else "not stated"


def _odometer(privacy: PrivacyFacts) -> Plot:
    """Return what was spent after every round, at the promise's delta, up to the promise."""
    title, name = "Odometer", "odometer"
    points = [
        (float(point.round), point.epsilon)
        for point in privacy.odometer or ()
        if isinstance(point.epsilon, float)
    ]
    if not points:
        return Plot(name, title, "", absent=_no_curve(privacy))
    promise = privacy.epsilon.upper
    most = max([e for _, e in points] + ([promise] if isinstance(promise, float) else []))
    x = x_axis("round", 0.0, max(k for k, _ in points))
    y = y_axis(f"ε spent, at δ = {printed(privacy.delta, digits=4)}", 0.0, most * 1.08)
    curves = [drawn("spent so far", Role.FIRST, points, x, y)]
    if isinstance(promise, float):
        curves.append(drawn("promised", Role.BOUND, [(x.low, promise), (x.high, promise)], x, y))
    grade = "" if privacy.odometer_grade is None else f" Grade: {privacy.odometer_grade.value}."
    caption = f"What all messages up to a round cost together.{grade}"
    return Plot(name, title, caption, x, y, tuple(curves))


def _roc(audit: EmpiricalAudit | Skipped, privacy: PrivacyFacts) -> Plot:
    """Return the attack's receiver operating characteristic, under what the promise allows at most.

    Both axes are logarithmic: what matters of membership inference happens at low false-positive
    rates (Carlini et al. 2022, section IV). They start at the least rate that so many trials can
    show.
    """
    title, name = "Attack", "roc"
    if isinstance(audit, Skipped):
        return Plot(name, title, "", absent=f"skipped: {visible(audit.reason)}")
    # the least rate that the trials can show, up to a power of ten
    least = 10.0 ** -max(1, ceil(log10(audit.trials) - 1e-9))
    x = x_axis("false-positive rate", least, 1.0, logarithmic=True)
    y = y_axis("true-positive rate", least, 1.0, logarithmic=True)
    grid = [float(rate) for rate in np.geomspace(least, 1.0, 97)]
    curves = [
        drawn("measured", Role.FIRST, _shown(audit.roc), x, y),
        drawn("a coin", Role.REFERENCE, [(least, least), (1.0, 1.0)], x, y),
    ]
    for bound, role, points in _allowed(privacy, grid):
        curves.append(drawn(bound, role, points, x, y))
    caption = (
        f"{audit.trials:,} trials in each world. The shaded part is ruled out by the promise for "
        "every attack, up to chance, which is large at the left end."
    )
    tightest = curves[-1] if len(curves) > 2 else None
    forbidden = None if tightest is None else f"{tightest.path}V{y.end}H{x.start}Z"
    return Plot(name, title, caption, x, y, tuple(curves), forbidden)


def _allowed(
    privacy: PrivacyFacts, rates: Sequence[float]
) -> Iterator[tuple[str, Role, list[Point]]]:
    """The most true positives by (ε, δ) and by μ, which is at least as tight.

    Each is the largest true-positive rate at a false-positive rate: min(e^ε x + δ, 1 - e^{-ε}(1 - δ
    - x)) for (ε, δ) (Kairouz, Oh, Viswanath 2015), Φ(Φ^{-1}(x) + μ) for μ (Dong, Roth, Su 2022).

    Args:
        privacy: the promise's numbers.
        rates: false-positive rates in (0, 1].
    """
    epsilon, delta, mu = privacy.epsilon.upper, privacy.delta, privacy.mu
    if isinstance(epsilon, float):
        by_pair = [(rate, most_true_positives(rate, epsilon, delta)) for rate in rates]
        yield "(ε, δ) bound", Role.BOUND, by_pair
    if isinstance(mu, float):
        most = tpr_upper(mu_squared=mu * mu * (1 + 1e-15), fpr=rates)
        yield "μ-GDP bound", Role.OTHER_BOUND, list(zip(rates, map(float, most), strict=True))


def _shown(roc: Iterable[RatePoint]) -> list[Point]:
    """Return the points of a characteristic that a logarithmic plot can show, in order."""
    rates = ((point.false_positive_rate, point.true_positive_rate) for point in roc)
    return sorted((fpr, tpr) for fpr, tpr in rates if fpr > 0 and tpr > 0)


def _utility(utility: Utility | Skipped) -> Plot:
    """Return each model's figure of merit after every round."""
    title, name = "Utility", "utility"
    if isinstance(utility, Skipped):
        return Plot(name, title, "", absent=f"skipped: {visible(utility.reason)}")
    if not utility.history:
        return Plot(name, title, "", absent="not stated")
    series: dict[str, list[Point]] = {}
    for point in utility.history:
        series.setdefault(point.model, []).append((float(point.round), point.value))
    values = [point.value for point in utility.history]
    spread = max(values) - min(values) or 1.0
    x = x_axis("round", 0.0, float(max(point.round for point in utility.history)))
    y = y_axis(visible(utility.metric), min(values) - 0.05 * spread, max(values) + 0.08 * spread)
    curves = [
        drawn(visible(model), _SERIES[i % len(_SERIES)], points, x, y)
        for i, (model, points) in enumerate(series.items())
    ]
    return Plot(name, title, "After each round.", x, y, tuple(curves))


def x_axis(label: str, low: float, high: float, *, logarithmic: bool = False) -> Axis:
    """Return the axis along the bottom of a plot.

    Args:
        label: quantity and unit.
        low, high: its ends; made different where they are one number.
        logarithmic: whether powers of ten are evenly spaced.
    """
    return Axis(label, low, high if high > low else low + 1, _LEFT, WIDTH - _RIGHT, logarithmic)


def y_axis(label: str, low: float, high: float, *, logarithmic: bool = False) -> Axis:
    """Return the axis along the left of a plot.

    Args:
        label: quantity and unit.
        low, high: its ends; made different where they are one number.
        logarithmic: whether powers of ten are evenly spaced.
    """
    return Axis(label, low, high if high > low else low + 1, HEIGHT - _BOTTOM, _TOP, logarithmic)


def drawn(name: str, role: Role, points: Sequence[Point], x: Axis, y: Axis) -> PlottedCurve:
    """Return a curve through points (x, y), in the units of the axes.

    Args:
        name: for the legend.
        role: for the style sheet.
        points: at least one.
        x, y: the axes.
    """
    places = tuple((x.place(a), y.place(b)) for a, b in points)
    ends = [
        f"{printed(b, digits=_END_DIGITS)} at {x.label} {printed(a, digits=_END_DIGITS)}"
        for a, b in (*points[:1], *points[-1:])
    ]
    return PlottedCurve(name, role, places, f"{name}: from {' to '.join(ends)}")


def _round_step(least: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is >= `least`."""
    power = 10.0 ** floor(log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
