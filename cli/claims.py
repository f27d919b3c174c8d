"""`dpledger claims`: what published papers promise, and what is true of it.

NAMES are papers ("ding2020_network") or claims ("PR-3"); without any, all are meant. --set fixes a
parameter in the paper's own symbols: what is left free may be chosen by an attack where a claim is
for all values.

    list      the claims, by paper, with their place in it
    show      one claim and the parameters it is judged at
    audit     verdicts, and the attacks that confirm them
    page      the same as one HTML page with plots
    explain   one verdict's argument, numbers and evidence
    check     a claim of the user's own, or a finished run (see claims_check)

Attacks were computed before and are shown with the command that repeats them; --rerun attacks anew,
which takes minutes, and --save keeps what it finds.

Exit status of `audit`: 1 if some claim does not hold, 0 if all do. `show`, `explain`, `list` and
`page` answer a question and exit with 0; a name that is unknown, or a parameter out of range, is a
mistake: 2.
"""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.ledger.file_names import write_over
from ..audits.claims import cases
from ..audits.claims.confirmations import SEED
from ..audits.claims.hearing import Attacks, judge_claims, save_evidence
from ..audits.claims.page import claims_page
from ..audits.outcome import Outcome, TextColumns
from ..audits.outcomes.claims import audit_outcome, explanation_outcome
from ..papers import PAPERS, find, find_one
from .claims_check import check
from .inputs import FOLDER, NEW_FILE, refuse
from .output import answers, steps

_set_option = click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter in the paper's own symbols, PAPER.NAME=VALUE if several papers have it.",
)
"""Of commands that judge: NAME=VALUE, several times."""


@click.group()
def claims() -> None:
    """Audit what published papers promise."""


@claims.command("list")
@click.argument("names", nargs=-1)
@answers
def list_claims(names: tuple[str, ...]) -> Outcome:
    """List the claims of all papers, or of NAMES (papers or claims)."""
    found = find(names)
    texts = [(claim.identifier, paper.name, claim.title, claim.place) for paper, claim in found]
    return Outcome(
        title="Claims",
        data={"claims": [{"paper": paper.name, **claim.described} for paper, claim in found]},
        tables=(TextColumns(("claim", "paper", "what", "where"), texts),),
    )


@claims.command()
@click.argument("identifier")
@_set_option
@answers
def show(identifier: str, assignments: tuple[str, ...]) -> Outcome:
    """Show one claim and the parameters it is judged at."""
    paper, claim = find_one(identifier)
    setting = cases([paper], assignments)[paper.name].setting
    # every parameter is shown, those at their default too: a verdict is at all of them
    values = {name: getattr(setting, name) for name in setting.__dataclass_fields__}
    texts = (f"{n} = {v:g}" if isinstance(v, float) else f"{n} = {v}" for n, v in values.items())
    rows = [(name.replace("_", " "), text) for name, text in claim.described.items() if text]
    return Outcome(
        title=f"{claim.identifier}: {paper.title}",
        data={"paper": paper.title, **claim.described, "parameters": values},
        rows=(*rows, ("parameters", ", ".join(texts))),
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
    type=FOLDER,
    help="With --rerun: write what attacks found to this folder, PAPER/evidence.json each.",
)
@answers
def audit(
    names: tuple[str, ...],
    assignments: tuple[str, ...],
    rerun: bool,
    trials: int | None,
    seed: int | None,
    folder: Path | None,
) -> Outcome:
    """Judge all claims, or those of NAMES (papers or claims), and show what attacks confirm it.

    Exit status 1 if some claim does not hold, 0 if all do.
    """
    # trials and seeds of attacks that were computed before are what they are
    if not rerun:
        refuse("--trials, --seed and --save with --rerun only", trials, seed, folder)
    attacks = Attacks(rerun, trials, SEED if seed is None else seed)
    # a claim takes from a blink to a minute; --rerun opens a bar for each attack
    with steps() as start:
        judged = judge_claims(PAPERS, names, assignments, attacks=attacks, progress=start)
    if folder is not None:
        save_evidence(judged, folder)
    return audit_outcome(judged)


@claims.command()
@click.argument("names", nargs=-1)
@_set_option
@click.option(
    "--out",
    type=NEW_FILE,
    required=True,
    help="The file to write; one HTML page that needs nothing else.",
)
@answers
def page(names: tuple[str, ...], assignments: tuple[str, ...], out: Path) -> Outcome:
    """Write all claims, or those of NAMES, as one HTML page with plots."""
    papers = {paper.name: paper for paper, _ in find(names)}
    with steps() as start:
        judged = judge_claims(PAPERS, names, assignments, attacks=Attacks(), progress=start)
    write_over(out, claims_page(judged, cases(list(papers.values()), assignments)).encode())
    return Outcome(title=f"{out}: {len(judged)} claims", data={"page": out, "claims": len(judged)})


@claims.command()
@click.argument("identifier")
@_set_option
@answers
def explain(identifier: str, assignments: tuple[str, ...]) -> Outcome:
    """Explain the verdict on one claim, with the numbers of the given parameters."""
    paper, claim = find_one(identifier)
    case = cases([paper], assignments)[paper.name]
    # no attack here: the argument and its numbers are what is asked for
    return explanation_outcome(claim, claim.promise.judge(case))


claims.add_command(check)
