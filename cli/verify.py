"""`dpledger verify`: an epsilon, re-verified by the independent checker."""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.check.checker import CertificateWrong, Undecided, Verdict, report
from ..accounting.check.pld_checker import check
from ..accounting.ledger import SqliteLedger, TamperedLedger
from ..accounting.numbers.grade import Grade
from ..accounting.proof.coq_goal import CoqMissing, compiled_proofs, coq_goal, prove
from ..accounting.proof.coq_theorem import BeyondTheorem, coq_theorem
from ..accounting.proof.extracted import ExtractedMissing, agrees, run_extracted
from ..mechanisms.encoding import subject_hash
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
    help="Also verify this ledger's chain, and that the certificate is about its events.",
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
        proved = check(certificate.read_bytes())
        compared = grade = None
        gold = _gold(certificate) if coq else None
        second = _second(certificate, proved) if extracted else None
        if ledger_path is not None:
            with SqliteLedger(ledger_path, read_only=True) as opened:
                opened.verify()
                events = opened.joint_events() if run_name is None else opened.events(run_name)
                compared, grade = subject_hash(events), opened.spent(run_name).grade
            if compared != proved.subject:
                raise CertificateWrong(
                    f"expected the ledger's events {compared} instead got {proved.subject}"
                )
    except (CertificateWrong, Undecided, TamperedLedger) as error:
        verdict = "undecided" if isinstance(error, Undecided) else "refused"
        deliver(
            Outcome(
                title=f"Certificate {certificate.name}",
                data={"verdict": verdict, "reason": str(error)},
                rows=((verdict.upper(), str(error)),),
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
                "notion": proved.notion,
                "values": [str(value) for value in proved.values],
                "adjacency": proved.adjacency,
                "group": proved.group,
                "subject": proved.subject,
                "steps": proved.steps,
                "assumptions": list(proved.assumptions),
                "axioms": list(proved.axioms),
                "ledger": "events and chain agree" if compared else None,
                "ledger_grade": None if grade is None else grade.value,
                "coq": gold,
                **({} if second is None else {"extracted": second}),
            },
            rows=(
                ("proved", report(proved)),
                *((("ledger", "chain intact, events are the certificate's"),) if compared else ()),
                *((("but", _ADAPTIVE),) if grade is Grade.ESTIMATE else ()),
                *((("coq", gold),) if gold is not None else ()),
                *((("extracted", second),) if second is not None else ()),
            ),
            finding=any(said is not None and said.startswith("not ") for said in (gold, second)),
        ),
        as_json=as_json,
    )


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
