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
    (folder / "public.html").write_text(to_html(public(report)), encoding="utf-8")
    holders_file(folder / "report.html").write_text(to_html(report), encoding="utf-8")
    holders_file(folder / "report.md").write_text(to_markdown(report), encoding="utf-8")


def holders_file(path: Path) -> Path:
    """Return the path of a file that its owner alone may read, if it was not there before.

    Reports hold what was computed from records, such as models without noise.
    """
    path.touch(mode=0o600)
    return path
