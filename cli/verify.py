"""`dpledger verify`: an epsilon, re-verified by the independent checker."""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.check.checker import CertificateWrong, Undecided, report
from ..accounting.check.pld_checker import check
from ..accounting.ledger import RolledBack, SqliteLedger, TamperedLedger
from ..accounting.ledger.proofs import proved_of_ledger
from ..accounting.numbers.grade import Grade
from ..accounting.proof.opinions import opinion_of_coq, opinion_of_extracted
from ..accounting.proof.proved import NotProved
from .inputs import FILE
from .output import Outcome, answers

__all__ = ["verify"]

_ADAPTIVE = (
    "an estimate: no plan, or not all of it, so that what ran, or when it ended, may depend on "
    "what was released"
)


@click.command()
@click.argument("certificate", metavar="CERTIFICATE", type=FILE)
@click.option(
    "--ledger",
    type=FILE,
    help="Also verify this ledger's chain, that it holds the row the certificate names, and that "
    "the certificate is about its events.",
)
@click.option("--run", help="Compare with this run's events only.")
@click.option(
    "--coq",
    is_flag=True,
    help="Write beside CERTIFICATE, for Coq, the theorem that its run is private (Gaussian runs) "
    "or its last inequality; prove it if coqc is here.",
)
@click.option(
    "--extracted",
    is_flag=True,
    help="Ask the checker that is proved in Coq, too: Gaussian runs, in milliseconds "
    "(make -C proofs checker).",
)
@answers
def verify(
    certificate: Path, ledger: Path | None, run: str | None, coq: bool, extracted: bool
) -> Outcome:
    """Re-verify CERTIFICATE with a checker that shares nothing with what wrote it."""
    title = f"Certificate {certificate.name}"
    grade = None
    try:
        document = certificate.read_bytes()
        if ledger is None:
            verdict = check(document)
        else:
            with SqliteLedger(ledger, read_only=True) as opened:
                verdict = proved_of_ledger(document, opened, run)
                grade = opened.spent(run).grade
        gold = opinion_of_coq(certificate) if coq else None
        second = opinion_of_extracted(certificate, verdict) if extracted else None
    except (CertificateWrong, NotProved, Undecided, TamperedLedger, RolledBack) as error:
        answer = "undecided" if isinstance(error, Undecided) else "refused"
        data = {"verdict": answer, "reason": str(error)}
        return Outcome(title, data, rows=((answer.upper(), str(error)),), finding=True)
    asked = {"coq": gold, "extracted": second}
    opinions = {name: each for name, each in asked.items() if each is not None}
    return Outcome(
        title,
        data={
            "verdict": "proved",
            "notion": verdict.notion,
            "values": [str(value) for value in verdict.values],
            "adjacency": verdict.adjacency,
            "group": verdict.group,
            "subject": verdict.subject,
            "steps": verdict.steps,
            "assumptions": verdict.assumptions,
            "axioms": verdict.axioms,
            "ledger": "events and chain agree" if grade else None,
            "ledger_grade": grade,
            "coq": None,
            **{name: each.text for name, each in opinions.items()},
        },
        rows=(
            ("proved", report(verdict)),
            ("ledger", "chain intact, events are the certificate's" if grade else None),
            ("but", _ADAPTIVE if grade is Grade.ESTIMATE else None),
            *((name, each.text) for name, each in opinions.items()),
        ),
        finding=any(each.against for each in opinions.values()),
    )
