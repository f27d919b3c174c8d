"""A record as one self-contained HTML page: no scripts, nothing fetched, plots as inline SVG.

A page must be readable in twenty years and without a network: so there is nothing on it that a
browser would fetch or run.
"""

from functools import lru_cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..visible_text import visible
from .formulas import typeset
from .headline import headline
from .outline import Item, outline, plotted
from .plots import HEIGHT, WIDTH, Plot, plots
from .record import Report


def to_html(report: Report) -> str:
    """Return the report as one HTML page; the same record gives the same text.

    Args:
        report: whose texts may come from anybody; all of them are escaped.
    """
    items = outline(report)
    return (
        environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            head=headline(report),
            items=items,
            plotted=plotted(items),
            plots=plots(report),
            width=WIDTH,
            height=HEIGHT,
        )
    )


def to_svg(plot: Plot) -> str:
    """Return one plot as an SVG file; raise `ValueError` if there is nothing to draw.

    Args:
        plot: laid out by `plots`; its colours are those of the style sheet inside the file.
    """
    if plot.absent is not None:
        raise ValueError(f"plot={plot.title!r} must have two points: {plot.absent}")
    template = environment().get_template("file.svg.j2")
    return template.render(plot=plot, width=WIDTH, height=HEIGHT)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the templates of reports; whatever they are given is escaped."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        # every text of a record comes from outside
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["visible"] = visible
    made.filters["typeset"] = typeset
    made.filters["kind"] = _kind
    return made


def _kind(item: Item) -> str:
    """Return which of the outline's types an item is; the templates branch on it."""
    return type(item).__name__
