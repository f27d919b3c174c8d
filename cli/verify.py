"""`dpledger verify`: an epsilon, re-verified by the independent checker."""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.check.checker import CertificateWrong, Undecided, Verdict, report
from ..accounting.check.pld_checker import check
from ..accounting.ledger import Head, RolledBack, SqliteLedger, TamperedLedger
from ..accounting.numbers.grade import Grade
from ..accounting.proof.coq_goal import CoqMissing, compiled_proofs, coq_goal, prove
from ..accounting.proof.coq_theorem import BeyondTheorem, coq_theorem
from ..accounting.proof.extracted import ExtractedMissing, agrees, run_extracted
from ..accounting.proof.proved import NotProved, proved
from .output import Outcome, deliver, json_option

__all__ = ["verify"]

_ADAPTIVE = (
    "an estimate: no plan, or not all of it, so that what ran, or when it ended, may depend on "
    "what was released"
)


@click.command()
@click.argument(
    "certificate",
    metavar="CERTIFICATE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--ledger",
    "ledger_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Also verify this ledger's chain, that it holds the row the certificate names, and that "
    "the certificate is about its events.",
)
@click.option("--run", "run_name", help="Compare with this run's events only.")
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
@json_option
def verify(
    certificate: Path,
    ledger_path: Path | None,
    run_name: str | None,
    coq: bool,
    extracted: bool,
    as_json: bool,
) -> None:
    """Re-verify CERTIFICATE with a checker that shares nothing with what wrote it."""
    try:
        document, grade = certificate.read_bytes(), None
        if ledger_path is None:
            verdict = check(document)
        else:
            verdict, grade = _of_ledger(document, ledger_path, run_name)
        gold = _gold(certificate) if coq else None
        second = _second(certificate, verdict) if extracted else None
    except (CertificateWrong, NotProved, Undecided, TamperedLedger, RolledBack) as error:
        answer = "undecided" if isinstance(error, Undecided) else "refused"
        deliver(
            Outcome(
                title=f"Certificate {certificate.name}",
                data={"verdict": answer, "reason": str(error)},
                rows=((answer.upper(), str(error)),),
                finding=True,
            ),
            as_json=as_json,
        )
        return
    deliver(
        Outcome(
            title=f"Certificate {certificate.name}",
            data={
                "verdict": "proved",
                "notion": verdict.notion,
                "values": [str(value) for value in verdict.values],
                "adjacency": verdict.adjacency,
                "group": verdict.group,
                "subject": verdict.subject,
                "steps": verdict.steps,
                "assumptions": list(verdict.assumptions),
                "axioms": list(verdict.axioms),
                "ledger": "events and chain agree" if grade else None,
                "ledger_grade": None if grade is None else grade.value,
                "coq": gold,
                **({} if second is None else {"extracted": second}),
            },
            rows=(
                ("proved", report(verdict)),
                *((("ledger", "chain intact, events are the certificate's"),) if grade else ()),
                *((("but", _ADAPTIVE),) if grade is Grade.ESTIMATE else ()),
                *((("coq", gold),) if gold is not None else ()),
                *((("extracted", second),) if second is not None else ()),
            ),
            finding=any(said is not None and said.startswith("not ") for said in (gold, second)),
        ),
        as_json=as_json,
    )


def _of_ledger(document: bytes, path: Path, run: str | None) -> tuple[Verdict, Grade]:
    """Return the verdict on a certificate of a ledger's events, and the grade of these."""
    with SqliteLedger(path, read_only=True) as opened:
        opened.verify()
        events = opened.joint_events() if run is None else opened.events(run)
        verdict = proved(document, events=events)
        for head in Head.stated(verdict.assumptions):
            opened.require_row(head)
        return verdict, opened.spent(run).grade


def _second(certificate: Path, verdict: Verdict) -> str:
    """Ask the extracted checker, and say whether it has proved the same."""
    try:
        (found,) = run_extracted([certificate])
    except ExtractedMissing as missing:
        return f"no answer: {missing}"
    if agrees(found, verdict):
        return "proved by the checker that is proved in Coq"
    if found.word == "undecided":
        return found.line
    return f"not the same verdict: {found.line}"


def _gold(certificate: Path) -> str:
    """Write the certificate as a Coq file, run it, and say what came of it."""
    path, document = certificate.with_suffix(".v"), certificate.read_bytes()
    proofs = compiled_proofs()
    try:
        goal, what = coq_theorem(document), "this run is private"
    except BeyondTheorem as beyond:
        goal, what, proofs = coq_goal(document), f"the last inequality ({beyond})", None
    else:
        if proofs is None:
            path.write_text(goal, encoding="utf-8")
            return (
                f"{path} written: {what}; not run: needs the proofs of a checkout (make -C proofs)"
            )
    path.write_text(goal, encoding="utf-8")
    try:
        verdict = prove(goal, proofs=proofs)
    except CoqMissing as missing:
        return f"{path} written: {what}; not run: {missing}"
    if verdict.proved:
        return f"{path}: proved by coqc: {what}"
    return f"not proved by coqc ({path}): {verdict.output.strip()[-300:]}"
