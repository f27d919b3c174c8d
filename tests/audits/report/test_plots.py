"""Laws of the plots: points stay in the box and in order, ticks are round, bounds are bounds."""

from math import exp, log10

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from dpledger.accounting.gaussian.fast import tpr_upper
from dpledger.audits.report import Skipped
from dpledger.audits.report.plots import HEIGHT, WIDTH, Axis, Role, plots
from dpledger.audits.report.record import Interval, UtilityPoint

LOG = Axis("rate", 1e-4, 1.0, 50.0, 450.0, logarithmic=True)


def by_name(report):
    return {plot.name: plot for plot in plots(report)}


def value_at(axis, place):
    share = (place - axis.start) / (axis.end - axis.start)
    if axis.logarithmic:
        return 10 ** (log10(axis.low) + share * (log10(axis.high) - log10(axis.low)))
    return axis.low + share * (axis.high - axis.low)


def test_every_point_is_inside_the_plot(report):
    found = plots(report)
    assert [plot.absent for plot in found] == [None] * 4
    for plot in found:
        for curve in plot.curves:
            assert len(curve.places) >= 2
            for x, y in curve.places:
                assert 0 <= plot.x.start <= x <= plot.x.end <= WIDTH
                assert 0 <= plot.y.end <= y <= plot.y.start <= HEIGHT


@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e6))
def test_ticks_are_few_and_on_the_axis(low, width):
    axis = Axis("x", low, low + width, 0.0, 100.0)
    assert 2 <= len(axis.ticks) <= 8
    places = [tick.place for tick in axis.ticks]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)


@given(st.integers(-300, -1))
def test_logarithmic_ticks_are_powers_of_ten(lowest):
    axis = Axis("x", 10.0**lowest, 1.0, 0.0, 100.0, logarithmic=True)
    assert 2 <= len(axis.ticks) <= 8
    assert axis.ticks[0].label == "1"
    assert all(tick.label.startswith("1") for tick in axis.ticks)


def test_a_decade_takes_equal_room():
    places = [LOG.place(10.0**-k) for k in range(5)]
    assert places == pytest.approx([450, 350, 250, 150, 50])
    assert LOG.place(0.0) == 50


def test_the_roc_has_both_axes_logarithmic_and_the_bounds_drawn_in(report):
    roc = by_name(report)["roc"]
    assert roc.x.logarithmic
    assert roc.y.logarithmic
    epsilon, delta = report.privacy.epsilon.upper, report.privacy.delta
    (bound,) = (c for c in roc.curves if c.role is Role.BOUND)
    (gaussian,) = (c for c in roc.curves if c.role is Role.OTHER_BOUND)
    for (x, y), (_, inner) in zip(bound.places, gaussian.places, strict=True):
        rate = value_at(roc.x, x)
        most = min(1, exp(epsilon) * rate + delta, 1 - exp(-epsilon) * (1 - delta - rate))
        assert value_at(roc.y, y) == pytest.approx(most, rel=1e-9)
        allowed = float(tpr_upper(mu_squared=report.privacy.mu**2, fpr=min(rate, 1.0)))
        assert value_at(roc.y, inner) == pytest.approx(allowed, rel=1e-9)
        # the Gaussian bound is the tighter one; pixels count downwards
        assert inner >= y - 1e-9


def test_the_promise_is_marked_on_the_curve(report):
    curve = by_name(report)["curve"]
    assert value_at(curve.x, curve.mark.x) == pytest.approx(report.privacy.epsilon.upper)
    assert value_at(curve.y, curve.mark.y) == pytest.approx(report.privacy.delta)


def test_what_is_not_there_says_why(report):
    without = structs.replace(
        report,
        audit=Skipped(reason="no attack"),
        utility=Skipped(reason="no test data"),
        privacy=structs.replace(report.privacy, curve=None, odometer=None),
    )
    assert [plot.absent for plot in plots(without)] == [
        "not stated",
        "not stated",
        "skipped: no attack",
        "skipped: no test data",
    ]
    leaked = structs.replace(
        without.privacy, epsilon=Interval(lower="infinity", upper="infinity"), mu=None
    )
    infinite = plots(structs.replace(report, privacy=leaked))
    assert [plot.absent for plot in infinite] == ["no finite ε", "no finite ε", None, None]


@pytest.mark.parametrize("value", [0.0, 0.5, 1e9])
def test_a_constant_history_can_be_drawn(report, value):
    history = (UtilityPoint(model="ours", round=0, value=value),) * 2
    utility = structs.replace(report.utility, history=history)
    plot = by_name(structs.replace(report, utility=utility))["utility"]
    assert plot.y.low < value < plot.y.high
