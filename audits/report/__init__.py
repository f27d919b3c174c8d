"""Reports: one record, rendered as HTML, Markdown and JSON.

>>> from dpledger.audits.report import from_json, to_html, to_json, to_markdown

`build_report` makes the record from a run's components; `from_json` reads it back.

A report says what left, what that costs at most, what was checked, and what none of this covers.
Three forms show one record: HTML and Markdown for the holder of the data, and a public page without
what was computed from records outside of the bound (`public`). Two reports of one record are equal
byte by byte.
"""

from .builder import Narrative, RunFacts, build_report
from .evidence import AttackFacts, ModelScore, UtilityFacts, crosschecks_of
from .html import to_html
from .markdown import to_markdown
from .pages import holders_file, write_pages
from .public import public
from .record import (
    Crosschecks,
    MalformedReport,
    Report,
    Skipped,
    StatementFacts,
    from_json,
    to_json,
)

__all__ = [
    "AttackFacts",
    "Crosschecks",
    "MalformedReport",
    "ModelScore",
    "Narrative",
    "Report",
    "RunFacts",
    "Skipped",
    "StatementFacts",
    "UtilityFacts",
    "build_report",
    "crosschecks_of",
    "from_json",
    "holders_file",
    "public",
    "to_html",
    "to_json",
    "to_markdown",
    "write_pages",
]
