"""A page of claim files with their verdicts: `python -m dpledger.runs.gallery docs/gallery`.

Every number of the page is computed from the files when it is written.
"""

import sys
from math import inf
from pathlib import Path

from ..accounting.numbers.enclosure import Enclosure, shown_down, shown_up
from ..audits.claims import Finding
from ..audits.claims.claim_file import read_claim
from ..data.strict import ConfigurationError
from .claims import judge_claim_file

_HEAD = """\
# Claims of well-known runs, judged

    python -m dpledger.runs.gallery {folder} > {folder}.md

Each line is a claim file, as `dpledger claims check` reads it: what is promised, of which releases,
under which relation. *True* is what the releases cost as they are stated, priced exactly; *by the
claimed accountant* is what the one that the claim names says of them. A claim that is *not implied*
may still be true of the data at hand: what is stated are upper bounds on what a record moves.
Claims that are called hypothetical are nobody's; they are mistakes as people write them.

| claim | promised | verdict | true | by the claimed accountant |
|---|---|---|---|---|
"""
"""The page above its table."""


def gallery_page(folder: Path) -> str:
    """Return the page, in Markdown, of the claim files of a folder, by name.

    Raises `ConfigurationError` for a file that is no claim, or where there is none.

    Claims that somebody made come first, hypothetical ones after them; a claim's note, or else the
    reason of its verdict, stands below the table.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise ConfigurationError(f"{folder}: Expected claim files, *.toml.")
    # what somebody claims stands above what nobody does
    paths.sort(key=lambda path: path.name.startswith("hypothetical"))
    rows: list[str] = []
    notes: list[str] = []
    for path in paths:
        claim, finding = read_claim(path), judge_claim_file(path).finding
        promised = f"{shown_up(claim.promise.made().claimed, digits=6)}, {finding.unit}"
        cells = (
            f"[{claim.title}]({folder.name}/{path.name})",
            promised,
            finding.verdict_text,
            _true(finding),
            _said(finding),
        )
        rows.append(f"| {' | '.join(cells)} |\n")
        notes.append(f"- **{claim.title}.** {claim.note or finding.reason} *{claim.source}.*\n")
    page = _HEAD.format(folder=f"docs/{folder.name}")
    return f"{page}{''.join(rows)}\n## In a sentence each\n\n{''.join(notes)}"


def _true(finding: Finding) -> str:
    """Return what the releases cost as stated, a cost for each reading where there are several."""
    readings = {n: cost for n, cost in finding.figures.items() if not n.startswith("by ")}
    if readings:
        return "; ".join(f"{name}: {_cost(cost)}" for name, cost in readings.items())
    return "not known" if finding.true is None else _cost(finding.true)


def _cost(cost: Enclosure) -> str:
    """Return a cost as a text, rounded up; both ends where they differ in the fifth digit."""
    low, high = cost.lower_float, cost.upper_float
    if high == inf:
        return "infinite" if low == inf else "no rule"
    # a last place more is no reason to show the next decimal
    shown = shown_up(high * (1 - 1e-12), digits=6)
    exact = high - low <= 1e-5 * high
    return shown if exact else f"{shown_down(low, digits=6)} to {shown}"


def _said(finding: Finding) -> str:
    """Return what the claim's own accountant says of the releases, rounded up; often nothing.

    What the accountant says is no verdict: an older bound may be above the truth and still be
    right.
    """
    said = [value for name, value in finding.figures.items() if name.startswith("by ")]
    return shown_up(said[0].upper_float, digits=4) if said else ""


if __name__ == "__main__":
    sys.stdout.write(gallery_page(Path(sys.argv[1])))
