"""`dpledger claims`: what published papers promise, and what is true of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from ..audits.claims import Claim, Finding, cases
from ..audits.claims.confirmations import SEED, Confirmation, written
from ..audits.claims.hearing import Attacks, JudgedClaim, describe, judge_claims
from ..audits.claims.page import claims_page
from ..audits.visible_text import visible
from ..mechanisms.errors import InvalidParameter
from ..papers import PAPERS, find
from .claims_check import check
from .findings import finding_data, judged_data
from .output import Outcome, deliver, json_option, plain, shown_up, steps

__all__ = ["claims"]

_set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter in the paper's own symbols, PAPER.NAME=VALUE if several papers have it.",
)


@click.group()
def claims() -> None:
    """Audit what published papers promise."""


@claims.command("list")
@click.argument("names", nargs=-1)
@json_option
def list_claims(names: tuple[str, ...], as_json: bool) -> None:
    """List the claims of all papers, or of NAMES (papers or claims)."""
    found = find(names)
    table = Table("claim", "paper", "what", "where", box=None)
    for paper, claim in found:
        table.add_row(claim.identifier, paper.name, claim.title, claim.place)
    data = {"claims": [{"paper": paper.name, **_described(claim)} for paper, claim in found]}
    deliver(Outcome(title="Claims", data=data, tables=(table,)), as_json=as_json)


@claims.command()
@click.argument("identifier")
@_set_option
@json_option
def show(identifier: str, assignments: tuple[str, ...], as_json: bool) -> None:
    """Show one claim and the parameters it is judged at."""
    paper, claim = _single(identifier)
    setting = cases([paper], assignments)[paper.name].setting
    rows = [(name.replace("_", " "), text) for name, text in _described(claim).items() if text]
    parameters = ", ".join(f"{n} = {_value(setting, n)}" for n in setting.__dataclass_fields__)
    deliver(
        Outcome(
            title=f"{claim.identifier}: {paper.title}",
            data={
                "paper": paper.title,
                **_described(claim),
                "parameters": {n: getattr(setting, n) for n in setting.__dataclass_fields__},
            },
            rows=(*rows, ("parameters", parameters)),
        ),
        as_json=as_json,
    )


@claims.command()
@click.argument("names", nargs=-1)
@_set_option
@click.option("--rerun", is_flag=True, help="Attack anew instead of showing what attacks found.")
@click.option("--trials", type=click.IntRange(2, 1_000_000), help="With --rerun: of every attack.")
@click.option("--seed", type=click.IntRange(0), help="With --rerun: of the noise.")
@click.option(
    "--save",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="With --rerun: write what attacks found to this folder, PAPER/evidence.json each.",
)
@json_option
def audit(
    names: tuple[str, ...],
    assignments: tuple[str, ...],
    rerun: bool,
    trials: int | None,
    seed: int | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Judge all claims, or those of NAMES (papers or claims), and show what attacks confirm it.

    Exit status 1 if some claim does not hold, 0 if all do.
    """
    if not rerun and any(option is not None for option in (trials, seed, folder)):
        raise click.UsageError("Expected --trials, --seed and --save with --rerun only.")
    attacks = Attacks(rerun, trials, SEED if seed is None else seed)
    with steps() as start:
        judged = judge_claims(PAPERS, names, assignments, attacks=attacks, progress=start)
    if folder is not None:
        _save(judged, folder)
    table = Table("claim", "verdict", "claimed", "true", "breaks at", "attack", "why", box=None)
    for each in judged:
        finding = each.finding
        table.add_row(
            each.claim.identifier,
            finding.verdict_text,
            "" if finding.claimed is None else f"{finding.claimed.lower_float:.6g}",
            "" if finding.true is None else shown_up(finding.true.upper_float, digits=6),
            finding.breaks_at or "",
            plain(each.attacked),
            plain(finding.reason),
        )
    rows = [(each.claim.identifier, each.attack_text) for each in judged if each.attack_text]
    if any(each.command is not None for each in judged):
        rows.append(("attacks", "as computed before; --rerun computes them anew"))
    data = {"findings": [{"claim": each.claim.identifier, **judged_data(each)} for each in judged]}
    outcome = Outcome(
        "Audit of claims",
        data,
        tuple(rows),
        (table,),
        finding=any(each.finding.is_finding or each.contradicted for each in judged),
    )
    deliver(outcome, as_json=as_json)


@claims.command()
@click.argument("names", nargs=-1)
@_set_option
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file to write; one HTML page that needs nothing else.",
)
def page(names: tuple[str, ...], assignments: tuple[str, ...], out: Path) -> None:
    """Write all claims, or those of NAMES, as one HTML page with plots."""
    papers = {paper.name: paper for paper, _ in find(names)}
    with steps() as start:
        judged = judge_claims(PAPERS, names, assignments, attacks=Attacks(), progress=start)
    text = claims_page(judged, cases(list(papers.values()), assignments))
    out.write_text(text, encoding="utf-8")
    click.echo(visible(f"{out}: {len(judged)} claims"))


def _save(judged: Sequence[JudgedClaim], folder: Path) -> None:
    by_paper: dict[str, list[Confirmation]] = {}
    for each in judged:
        if each.confirmation is not None:
            by_paper.setdefault(each.paper.name, []).append(each.confirmation)
    for name, confirmations in by_paper.items():
        path = folder / name / "evidence.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(written(name, confirmations))


@claims.command()
@click.argument("identifier")
@_set_option
@json_option
def explain(identifier: str, assignments: tuple[str, ...], as_json: bool) -> None:
    """Explain the verdict on one claim, with the numbers of the given parameters."""
    paper, claim = _single(identifier)
    finding: Finding = claim.promise.judge(cases([paper], assignments)[paper.name])
    rows = [
        ("claim", f"{claim.statement} ({claim.place})"),
        ("verdict", finding.verdict_text),
        ("because", finding.reason),
    ]
    if finding.breaks_at is not None:
        rows.append(("breaks at", finding.breaks_at))
    rows += [("argument", text) for text in finding.argument]
    rows += [(name, f"{value.upper_float:.10g}") for name, value in finding.figures.items()]
    rows += [("evidence", describe(each)) for each in finding.evidence]
    if claim.not_attacked:
        rows.append(("not attacked", claim.not_attacked))
    data = {
        "claim": claim.identifier,
        **finding_data(finding),
        "not_attacked": claim.not_attacked,
    }
    deliver(Outcome(f"{claim.identifier}: {claim.title}", data, tuple(rows)), as_json=as_json)


def _single(identifier: str) -> tuple[Any, Claim[Any]]:
    found = find([identifier])
    if len(found) != 1:
        raise InvalidParameter("claim", identifier, "a single claim, not a paper")
    return found[0]


def _described(claim: Claim[Any]) -> dict[str, str]:
    return {
        "identifier": claim.identifier,
        "title": claim.title,
        "statement": claim.statement,
        "place": claim.place,
        "adjacency": "none named" if claim.adjacency is None else claim.adjacency.value,
        "threat_model": claim.threat_model.value,
        "solver": claim.solver,
        "not_attacked": claim.not_attacked,
    }


def _value(setting: object, name: str) -> str:
    value = getattr(setting, name)
    return f"{value:g}" if isinstance(value, float) else str(value)


claims.add_command(check)
