"""The pages of a report in a run's folder."""

from pathlib import Path

from .html import to_html
from .markdown import to_markdown
from .public import public
from .record import Report


def write_pages(report: Report, folder: Path) -> None:
    """Write `report.html` and `report.md`, for the holder of the data, and `public.html`.

    Args:
        report: the whole record.
        folder: of the run, which exists.
    """
    (folder / "report.html").write_text(to_html(report), encoding="utf-8")
    (folder / "public.html").write_text(to_html(public(report)), encoding="utf-8")
    (folder / "report.md").write_text(to_markdown(report), encoding="utf-8")
