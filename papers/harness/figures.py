"""Figures as SVG: the same bytes for the same numbers.

Colours are by line; the first seven are safe for the colour-blind (Okabe, Ito 2008). Markers are by
line too, and what is published is dashed, so that figures can be read without colours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from .cell import CellKind
from .engine import Measured
from .experiment import MAJORITY, METRICS, Against, Figure
from .tables import Spread, spread

_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31",
    "#882255", "#888888",
)  # fmt: skip
"""By line; the first seven are those of Okabe and Ito."""
_MARKERS = "osD^vPX"
"""By line, in turn."""
_STYLE: dict[Any, Any] = {"svg.hashsalt": "dpledger", "svg.fonttype": "none", "font.size": 9.0}
"""A salt of its own and text as text: the same numbers give the same bytes on every machine."""
_LABELLED = (
    (4.0, (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)),
    (1e3, (1.0, 2.0, 5.0)),
    (1e4, (1.0,)),
)
"""By how far an axis reaches: which multiples of powers of ten are labelled."""
_DASHES = {
    CellKind.PUBLISHED: "--",
    CellKind.REPAIRED: "-",
    CellKind.BASELINE: "-.",
    CellKind.NON_PRIVATE: ":",
}
"""By kind: what is published is dashed, so that it stands out without colours."""


@dataclass(frozen=True, slots=True)
class _Line:
    """Cells of one line of the legend, in order, and its look.

    Args:
        name: in the legend.
        kind: whose noise.
        cells: along the axis.
        colour, marker: of the line.
    """

    name: str
    kind: CellKind
    cells: tuple[Measured, ...]
    colour: str
    marker: str

    @property
    def look(self) -> dict[str, Any]:
        """Colour and dash, as matplotlib takes them."""
        return {"color": self.colour, "linestyle": _DASHES[self.kind], "linewidth": 1.4}


def draw(figure: Figure, cells: Sequence[Measured], *, title: str, source: str, path: Path) -> None:
    """Write one figure; bands and bars are one standard deviation over runs.

    Args:
        figure: metric and axes.
        cells: all that are drawn, line by line.
        title, source: what stands above.
        path: of the SVG file.
    """
    with mpl.rc_context(_STYLE):
        canvas = Canvas(figsize=(7.2, 4.2), layout="constrained")
        axes: Any = canvas.subplots()
        for line in _lines(cells):
            _DRAWN[figure.against](axes, line, figure.metric)
        if figure.metric in MAJORITY:
            share = fmean(spread(each, MAJORITY[figure.metric]).mean for each in cells)
            axes.axhline(share, color="#bbbbbb", linewidth=0.9, label="one answer to everybody")
        if figure.log_y:
            _logarithmic(axes.yaxis)
        if figure.log_x:
            _logarithmic(axes.xaxis)
        axes.set_xlabel(_x_label(figure, cells))
        axes.set_ylabel(f"{METRICS[figure.metric]}, {_runs(cells)}")
        canvas.suptitle(title, fontsize=10)
        axes.set_title(fill(source, 110), fontsize=7, color="#555555")
        axes.grid(visible=True, which="major", alpha=0.25)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=7.5, frameon=False)
        canvas.savefig(path, format="svg", metadata={"Date": None})


def _runs(cells: Sequence[Measured]) -> str:
    """Return over how many runs means are taken, for the axis."""
    count = len(cells[0].traces)
    return "one run" if count == 1 else f"mean ± deviation of {count} runs"


def _logarithmic(axis: Any) -> None:
    """Scale an axis, with labels that are numbers and not powers unless there are many decades.

    Powers of ten alone label an axis of four decades or more; a shorter one needs numbers between
    them.
    """
    name = axis.axis_name
    getattr(axis.axes, f"set_{name}scale")("log")
    low, high = getattr(axis.axes, f"get_{name}lim")()
    for range_of, multiples in _LABELLED:
        if high / low < range_of:
            axis.set_major_locator(LogLocator(subs=multiples))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            break
    axis.set_minor_formatter(NullFormatter())


def _lines(cells: Sequence[Measured]) -> list[_Line]:
    """Return cells by line, in order of appearance."""
    names = list(dict.fromkeys(measured.cell.line for measured in cells))
    found: list[_Line] = []
    for place, name in enumerate(names):
        of_line = tuple(measured for measured in cells if measured.cell.line == name)
        colour, marker = _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]
        found.append(_Line(name, of_line[0].cell.kind, of_line, colour, marker))
    return found


def _x_label(figure: Figure, cells: Sequence[Measured]) -> str:
    """Return the label of the horizontal axis; over epsilon it says what hollow and filled
    marks are.
    """
    if figure.against is Against.ROUND:
        return "round"
    if figure.against is Against.X:
        return figure.label
    deltas = sorted({measured.privacy.delta for measured in cells})
    at = ", ".join(f"{delta:g}" for delta in deltas)
    return f"ε at δ = {at} (hollow: promised by the paper, filled: enclosed)"


def _against_round(axes: Any, line: _Line, metric: str) -> None:
    """Draw a metric after every round, mean and one standard deviation."""
    for measured in line.cells:
        rounds = measured.traces[0].rounds
        over = [spread(measured, metric, place) for place in range(len(rounds))]
        axes.plot(rounds, [s.mean for s in over], label=line.name, **line.look)
        low, high = [s.mean - s.deviation for s in over], [s.mean + s.deviation for s in over]
        axes.fill_between(rounds, low, high, color=line.colour, alpha=0.15, linewidth=0)


def _against_x(axes: Any, line: _Line, metric: str) -> None:
    """Draw a metric over a setting; a line without one is drawn as a level."""
    over = [spread(measured, metric) for measured in line.cells]
    places = [measured.cell.x for measured in line.cells]
    if places == [None]:
        _level(axes, line, over[0])
        return
    axes.errorbar(
        places,
        [s.mean for s in over],
        yerr=[s.deviation for s in over],
        label=line.name,
        marker=line.marker,
        markersize=4,
        capsize=2,
        **line.look,
    )


def _against_epsilon(axes: Any, line: _Line, metric: str) -> None:
    """Draw a metric over epsilon: hollow where the paper promises it, filled where it is enclosed.

    An arrow leads from the one to the other. A line whose epsilon is infinite is drawn at the
    epsilon of its noise alone, and says so in the legend.
    """
    if line.kind is CellKind.NON_PRIVATE:
        _level(axes, line, spread(line.cells[0], metric))
        return
    over = [spread(measured, metric) for measured in line.cells]
    means, deviations = [s.mean for s in over], [s.deviation for s in over]
    privacies = [measured.privacy for measured in line.cells]
    common = {"yerr": deviations, "markersize": 4.5, "capsize": 2, "color": line.colour}
    true = [p.noisy_part for p in privacies]
    name = line.name
    if any(p.certified is None for p in privacies):
        alone = any(p.noisy_part for p in privacies)
        name += "\n(ε = ∞; filled: its noise alone)" if alone else "\n(ε = ∞)"
    if any(e == 0.0 for e in true):
        name += "\n(enclosed ε = 0 where not filled)"
    if line.kind is CellKind.PUBLISHED:
        promised = [p.nominal for p in privacies]
        joined = "--" if not any(true) else "none"
        axes.errorbar(
            promised, means, marker=line.marker, markerfacecolor="white", linestyle=joined, **common
        )
        for a, b, y in zip(promised, true, means, strict=True):
            if a and b:
                axes.annotate("", (b, y), (a, y), arrowprops=_arrow(line))
    axes.errorbar(
        [e or float("nan") for e in true],
        means,
        marker=line.marker,
        linestyle=_DASHES[line.kind],
        linewidth=1.4,
        label=name,
        **common,
    )


def _arrow(line: _Line) -> dict[str, Any]:
    """Return the look of the arrow from what is promised to what is true."""
    return {"arrowstyle": "->", "color": line.colour, "linewidth": 0.7, "shrinkA": 3, "shrinkB": 3}


def _level(axes: Any, line: _Line, over: Spread) -> None:
    """Draw a line that does not depend on the axis, with its spread."""
    axes.axhline(over.mean, label=line.name, **line.look)
    axes.axhspan(
        over.mean - over.deviation, over.mean + over.deviation, color=line.colour, alpha=0.1
    )


_DRAWN = {Against.ROUND: _against_round, Against.X: _against_x, Against.EPSILON: _against_epsilon}
