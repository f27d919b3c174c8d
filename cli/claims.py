"""`dpledger claims`: what published papers promise, and what is true of it."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from ..audits.claims import Claim, Finding, cases, find
from ..mechanisms.errors import InvalidParameter
from .claims_check import check
from .findings import finding_data, told, witnesses
from .output import Outcome, deliver, json_option, plain, steps

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
    rows = [(name.replace("_", " "), text) for name, text in _described(claim).items()]
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
@click.option(
    "--rerun",
    type=click.IntRange(1, 1_000_000),
    metavar="TRIALS",
    help="Run every counterexample so often, and say how often its event happened.",
)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@json_option
def audit(
    names: tuple[str, ...],
    assignments: tuple[str, ...],
    rerun: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Judge all claims, or those of NAMES (papers or claims).

    Exit status 1 if some claim does not hold, 0 if all do.
    """
    found = find(names)
    fixed = cases(list({paper.name: paper for paper, _ in found}.values()), assignments)
    judged: list[tuple[Claim[Any], Finding]] = []
    with steps() as start:
        advance = start("claims")
        for done, (paper, claim) in enumerate(found, start=1):
            judged.append((claim, claim.promise.judge(fixed[paper.name])))
            advance(done, len(found))
    table = Table("claim", "verdict", "claimed", "true", "breaks at", "why", box=None)
    for claim, finding in judged:
        table.add_row(
            claim.identifier,
            finding.verdict_text,
            "" if finding.claimed is None else f"{finding.claimed.lower_float:.6g}",
            "" if finding.true is None else f"{finding.true.upper_float:.6g}",
            finding.breaks_at or "",
            plain(finding.reason),
        )
    data = {
        "findings": [
            {"claim": claim.identifier, **finding_data(finding, rerun, seed)}
            for claim, finding in judged
        ]
    }
    rows: list[tuple[str, str]] = []
    for claim, finding in judged if rerun else ():
        rows += [(claim.identifier, told(e, rerun, seed)) for e in witnesses(finding)]
    failing = any(finding.is_finding for _, finding in judged)
    outcome = Outcome("Audit of claims", data, tuple(rows), (table,), finding=failing)
    deliver(outcome, as_json=as_json)


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
    rows += [("evidence", told(each, None, 0)) for each in finding.evidence]
    data = {"claim": claim.identifier, **finding_data(finding, None, 0)}
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
    }


def _value(setting: object, name: str) -> str:
    value = getattr(setting, name)
    return f"{value:g}" if isinstance(value, float) else str(value)


claims.add_command(check)
