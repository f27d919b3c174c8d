"""Reports: one record, rendered as HTML, Markdown and JSON.

>>> from dpledger.audits.report import from_json, to_html, to_json, to_markdown

`build_report` makes the record from a run's components; `from_json` reads it back.
"""

from .builder import Narrative, RunFacts, build_report
from .evidence import AttackFacts, ModelScore, UtilityFacts, crosschecks_of
from .html import to_html
from .markdown import to_markdown
from .pages import write_pages
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
    "public",
    "to_html",
    "to_json",
    "to_markdown",
    "write_pages",
]
