"""All papers in court as one self-contained HTML page: no scripts, nothing fetched, inline SVG.

In come claims that were judged, with the parameters they were judged at; out goes the text of a
page. Its plots sweep one parameter: what is claimed beside what is true. Called by `dpledger claims
page`.

A point of a sweep is priced anew at every parameter, by the same functions that judge the claim: no
curve is drawn by hand or from a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ...accounting.numbers.enclosure import shown_up
from ..report.html import environment
from ..report.plots import HEIGHT, WIDTH, Mark, Plot, Role, drawn, x_axis, y_axis
from .claim import Case, Claim, ClaimVerdict, Finding, Paper
from .hearing import JudgedClaim, describe
from .sweep import Sweep, SweepPoint

_TONES = {ClaimVerdict.HOLDS: "good", ClaimVerdict.FAILS: "bad", ClaimVerdict.NOT_IMPLIED: "bad"}
"""How a verdict is coloured; what is neither is open."""

_PLAIN = {
    ClaimVerdict.HOLDS: "The claim holds",
    ClaimVerdict.FAILS: "What is claimed is not true",
    ClaimVerdict.NOT_IMPLIED: "What is stated does not imply it",
    ClaimVerdict.UNSPECIFIED: "The paper leaves out what would decide it",
    ClaimVerdict.UNDECIDED: "Nothing is missing, and no rule here decides it",
    ClaimVerdict.OUTSIDE_ITS_REGIME: "It is used where its own conditions do not hold",
    ClaimVerdict.UNENFORCED_ASSUMPTION: "True only if something holds that nothing enforces",
    ClaimVerdict.UNACCOUNTED_ACCESS: "The data are looked at in a way that no guarantee counts",
}
"""What a verdict means, for a reader who knows none of the words."""

_HEADROOM = 1.05
"""Of the vertical axis above the highest point."""


@dataclass(frozen=True, slots=True)
class _Row:
    """One claim as the page shows it.

    Args:
        claim, finding: the claim and its verdict.
        plain: the verdict in a sentence of plain words.
        tone: good, bad or open.
        claimed, true: as texts, empty where there is no number.
        attacked: what became of the attack, in a word; `attack` in a sentence.
        cached: the command that computed the attack before; None where it ran just now.
        evidence: in a sentence each.
    """

    claim: Claim[Any]
    finding: Finding
    plain: str
    tone: str
    claimed: str
    true: str
    attacked: str
    attack: str
    cached: str | None
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """One paper as the page shows it.

    Args:
        paper: with its title and reference.
        parameters: at which its claims were judged, as a text.
        rows: its claims.
        plots: sweeps of those of its claims that are shown.
        holding: how many claims hold.
    """

    paper: Paper[Any]
    parameters: str
    rows: tuple[_Row, ...]
    plots: tuple[Plot, ...]
    holding: int


def claims_page(judged: Sequence[JudgedClaim], cases: Mapping[str, Case[Any]]) -> str:
    """Return the page of claims that were judged, paper by paper.

    Args:
        judged: the claims.
        cases: each paper's parameters, by its name.

    Every text is escaped, and counts of verdicts stand at the top.
    """
    papers = {each.paper.name: each.paper for each in judged}
    parts = tuple(
        _part(paper, [each for each in judged if each.paper is paper], cases[name])
        for name, paper in papers.items()
    )
    rows = [row for part in parts for row in part.rows]
    counts = {
        verdict.value: sum(row.finding.verdict is verdict for row in rows)
        for verdict in ClaimVerdict
    }
    return (
        environment()
        .get_template("claims.html.j2")
        .render(parts=parts, counts=counts, total=len(rows), width=WIDTH, height=HEIGHT)
    )


def _part(paper: Paper[Any], judged: Sequence[JudgedClaim], case: Case[Any]) -> _Part:
    """Return a paper's part of the page.

    Args:
        paper: whose claims.
        judged: those that are shown.
        case: the parameters they were judged at.
    """
    setting = case.setting
    names = {each.claim.identifier for each in judged}
    parameters = ", ".join(f"{n} = {_value(setting, n)}" for n in setting.__dataclass_fields__)
    rows = tuple(_row(each) for each in judged)
    plots = tuple(_plot(sweep, setting) for sweep in paper.sweeps if sweep.claim in names)
    holding = sum(row.finding.verdict is ClaimVerdict.HOLDS for row in rows)
    return _Part(paper, parameters, rows, plots, holding)


def _value(setting: Any, name: str) -> str:
    """Return a parameter as a text."""
    value = getattr(setting, name)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _row(each: JudgedClaim) -> _Row:
    """Return a claim's row; the claimed number is rounded down, the true one up."""
    finding = each.finding
    far = f": {finding.how_far}" if finding.how_far else ""
    return _Row(
        each.claim,
        finding,
        f"{_PLAIN[finding.verdict]}{far}.",
        _TONES.get(finding.verdict, "open"),
        "" if finding.claimed is None else f"{finding.claimed.lower_float:.6g}",
        "" if finding.true is None else shown_up(finding.true.upper_float, digits=6),
        each.attacked,
        each.attack_text,
        each.command,
        tuple(describe(evidence) for evidence in finding.evidence),
    )


def _plot(sweep: Sweep[Any], setting: Any) -> Plot:
    """Return a sweep as a plot; one without two finite points says why it is empty.

    Args:
        sweep: which claim, over which parameter.
        setting: the other parameters.
    """
    points = [p for p in sweep.points(setting) if isfinite(p.claimed) and isfinite(p.true)]
    shown = f"at least, {sweep.at_least}" if sweep.at_least else "enclosed"
    name, title = f"sweep-{sweep.claim}", f"{sweep.claim}: ε claimed and {shown}"
    if len(points) < 2:
        return Plot(name, title, "", absent="no finite ε")
    values = [point.value for point in points]
    highest = max(max(p.claimed, p.true) for p in points)
    x = x_axis(sweep.parameter, min(values), max(values), logarithmic=sweep.logarithmic)
    y = y_axis("ε", 0.0, _HEADROOM * highest)
    claimed = drawn("claimed", Role.FIRST, [(p.value, p.claimed) for p in points], x, y)
    true = drawn(shown, Role.BOUND, [(p.value, p.true) for p in points], x, y)
    edge, words = _edge(points, at_least=sweep.at_least)
    words = f"{words} {sweep.edges(setting)}".rstrip()
    return Plot(
        name,
        title,
        f"{sweep.caption} {words}".rstrip(),
        x,
        y,
        (claimed, true),
        mark=None if edge is None else Mark("breaks", *true.places[edge]),
    )


def _edge(points: Sequence[SweepPoint], *, at_least: str) -> tuple[int | None, str]:
    """The outermost point where the claim is broken, and that in words.

    A lower bound that stays below the claim breaks nothing and proves nothing.
    """
    broken = [i for i, point in enumerate(points) if point.broken]
    if not broken:
        return None, f"Not broken here by {at_least}." if at_least else "Nowhere broken here."
    if at_least:
        last = broken[-1]
        place = broken[0] if last == len(points) - 1 else last
        way = "from" if place == broken[0] else "up to"
        end = " on" if way == "from" else ""
        return place, f"Broken by {at_least} {way} {points[place].value:g}{end}."
    if broken[-1] == len(points) - 1:
        return broken[0], f"Broken from {points[broken[0]].value:g} on."
    return broken[-1], f"Broken up to {points[broken[-1]].value:g}."
