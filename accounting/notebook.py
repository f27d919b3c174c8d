"""A training run's cost as a page of a notebook: the number, what it means, and its curve."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isfinite, log10

from .hypothesis_testing import best_guess, most_true_positives
from .numbers.enclosure import shown_up

_WIDTH, _HEIGHT, _MARGIN = 360, 150, 8
_RATES = (0.01, 0.001)
"""False-positive rates at which an attack's hits are quoted."""


def cost_page(
    headline: str,
    meaning: str,
    *,
    epsilon: float,
    delta: float,
    notes: Sequence[str],
    curve: Sequence[tuple[float, float]],
) -> str:
    """Return HTML that needs nothing else.

    Args:
        headline: the number, with all that it is stated for.
        meaning: in one sentence.
        epsilon, delta: upper ends of the promise.
        notes: warnings and assumptions, a sentence each.
        curve: points (epsilon, delta) of the privacy curve.
    """
    rows = [("membership advantage, at most", 2.0 * best_guess(epsilon, delta) - 1.0)]
    for rate in _RATES:
        most = most_true_positives(rate, epsilon, delta)
        rows.append((f"hits at {rate:g} false alarms, at most", most))
    table = "".join(
        f"<tr><th scope=row>{escape(name)}</th><td>{shown_up(value, digits=4)}</td></tr>"
        for name, value in rows
    )
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f"<p><strong>{escape(headline)}</strong></p><p>{escape(meaning)}</p>"
        f"<table>{table}</table>{_drawn(curve)}<ul>{listed}</ul>"
    )


def _drawn(curve: Sequence[tuple[float, float]]) -> str:
    """Return a line of delta, on a logarithmic axis, over epsilon; nothing without two points."""
    points = [(e, log10(d)) for e, d in curve if isfinite(e) and d > 0]
    if len(points) < 2:
        return ""
    right = max(e for e, _ in points) or 1.0
    low, high = min(y for _, y in points), max(y for _, y in points)
    places = " ".join(
        f"{_MARGIN + (_WIDTH - 2 * _MARGIN) * e / right:.1f},"
        f"{_MARGIN + (_HEIGHT - 2 * _MARGIN) * (high - y) / ((high - low) or 1.0):.1f}"
        for e, y in points
    )
    (first, last), (last_e, last_y) = points[0], points[-1]
    left, end = shown_up(first, digits=4), shown_up(last_e, digits=4)
    words = f"delta over epsilon: 1e{last:.1f} at {left} to 1e{last_y:.1f} at {end}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img"><title>{words}</title>'
        f'<polyline points="{places}" fill="none" stroke="currentColor" stroke-width="2"/></svg>'
        f"<p>{words}</p>"
    )
