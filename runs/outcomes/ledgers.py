"""Ledgers and certificates as outcomes: what was spent, what is intact, what is proved.

These open the file themselves, read-only but for an anchor, since a ledger that cannot be read is
an answer too: what raises as tampering or as a refused certificate becomes a finding, and what is
no ledger at all stays an error of the caller's.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ...accounting.check.checker import report
from ...accounting.check.pld_checker import check
from ...accounting.check.reading import CertificateWrong, Undecided
from ...accounting.ledger import FileAnchor, RolledBack, SqliteLedger, TamperedLedger
from ...accounting.ledger.budget import Budget
from ...accounting.ledger.file_names import write_over
from ...accounting.ledger.ledger import HISTORY
from ...accounting.ledger.proofs import graded_certificate, graded_verdict
from ...accounting.numbers.enclosure import shown_down, shown_in_full, shown_up
from ...accounting.numbers.grade import Grade
from ...accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from ...accounting.proof.opinions import opinion_of_coq, opinion_of_extracted
from ...accounting.proof.proved import NotProved, certificate_bytes
from ...audits.outcome import Outcome, TextColumns, shown
from ...mechanisms.sensitivity import float_down

_ADAPTIVE = (
    "an estimate: no plan, or not all of it, so that what ran, or when it ended, may depend on "
    "what was released"
)
"""Said of a ledger whose sum is an estimate, beside a certificate that was accepted."""


def spent_outcome(path: Path, *, delta: float) -> Outcome:
    """Return a ledger's runs and what they spent; a finding if a release is unprotected.

    Args:
        path: the ledger.
        delta: in (0, 1), where epsilon is shown.

    The grade is *enclosed* where all that ran was planned beforehand, else *estimate* (see
    `Odometer`).
    """
    with SqliteLedger(path, read_only=True) as ledger:
        odometer, runs, head, filtered = ledger.steady(
            lambda: (ledger.spent(), ledger.runs(), ledger.head, ledger.filtered)
        )
        epsilon = odometer.epsilon(delta)
    texts = [
        (
            run.run,
            run.opened,
            str(run.events),
            f"{run.committed}/{run.reservations}",
            "imported" if run.imported else "yes" if run.kept_to_plan else "no",
        )
        for run in runs
    ]
    spent = f"epsilon {shown(epsilon)} at delta {shown_up(delta)} ({odometer.grade.value})"
    return Outcome(
        title=f"Ledger {path.name}",
        data={
            "head": head,
            "delta": delta,
            "epsilon": epsilon,
            "grade": odometer.grade,
            "unit": "record",
            "adjacency": odometer.adjacency,
            "unprotected": odometer.unprotected,
            "runs": [
                {
                    "run": run.run,
                    "opened": run.opened,
                    "configuration_sha256": run.configuration_hash,
                    "events": run.events,
                    "reservations": run.reservations,
                    "committed": run.committed,
                    "kept_to_plan": run.kept_to_plan,
                    "imported": run.imported,
                }
                for run in runs
            ],
        },
        rows=(
            ("spent", spent),
            ("relation", None if odometer.adjacency is None else odometer.adjacency.value),
            ("unit", "one record; a person with several records pays more"),
            ("budget", _budget_text(odometer.budget, filtered=filtered is not None)),
            ("head", head),
            ("assumed", HISTORY if any(run.imported for run in runs) else None),
            *(("UNPROTECTED", reason) for reason in odometer.unprotected),
        ),
        tables=(TextColumns(("run", "opened", "events", "committed", "kept to plan"), texts),),
        finding=odometer.is_finding,
    )


def _budget_text(budget: Budget | None, *, filtered: bool) -> str | None:
    """Return what a ledger may spend in all, and whether one plan took all of it.

    A filter of epsilon adds up Gaussian steps. A plan that has others, on samples or with Laplace
    noise, is paid for as a whole, by all of the budget, where it is the ledger's first: its
    epsilon, which is spent, says nothing of what is left.

    Args:
        budget: of the ledger; None without one.
        filtered: whether its filter still adds up what runs spend.
    """
    if budget is None:
        return None
    taken = "" if filtered else "; all of it is taken by the first run's plan: no other is paid for"
    match budget.notion:
        case ApproxDp(epsilon, delta):
            most = f"epsilon {shown_down(float_down(epsilon))} at delta {shown_in_full(delta)}"
        case Gdp(mu_squared):
            most = f"mu^2 {shown_down(float_down(mu_squared))}"
        case Zcdp(rho):
            most = f"rho {shown_down(float_down(rho))}"
        case Rdp(order, cost):
            most = f"{shown_down(float_down(cost))} in Rényi DP of order {order}"
    return f"at most {most}{taken}"


def chain_outcome(path: Path, *, head: str | None = None) -> Outcome:
    """Return whether a ledger's hash chain is intact; a finding if anything was changed.

    Args:
        path: the ledger.
        head: the hash that its last row must have, as known from somewhere else.

    An intact chain says that no row was changed since it was written, as far as `head` is known
    from elsewhere: whoever owns the file could write another chain.
    """
    title = f"Ledger {path.name}"
    try:
        with SqliteLedger(path, read_only=True) as ledger:
            found = ledger.verify(expected_head=head)
    # a broken chain is the answer to the question, not a failure to answer it
    except TamperedLedger as error:
        data = {"intact": False, "difference": str(error)}
        return Outcome(title, data, rows=(("TAMPERED", str(error)),), finding=True)
    return Outcome(
        title,
        {"intact": True, **asdict(found)},
        rows=(
            ("intact", f"{found.rows} rows, {found.reservations} reservations"),
            ("without commit", f"{len(found.open)} (spent all the same)"),
            ("head", found.head),
        ),
    )


def anchored_outcome(path: Path, anchor: Path) -> Outcome:
    """Append a ledger's last row to an anchor file, and return whether the two agree.

    A finding, and nothing is appended, if the ledger lacks the row that the file names last.

    Args:
        path: the ledger.
        anchor: the file, new or with lines of this ledger.

    Raises `TamperedLedger` for a chain that was changed.

    An anchor kept elsewhere notices that a ledger was replaced by an older copy of itself, whose
    chain is intact.
    """
    with SqliteLedger(path, read_only=True) as ledger:
        # a changed ledger must not be anchored: that would vouch for the change
        ledger.verify()
        head = ledger.last_row
        data = {"row": head.row, "hash": head.hash, "anchored": True}
        row, refused = ("anchored", f"{anchor}: row {head.row}"), False
        try:
            ledger.add_to(FileAnchor(anchor))
        except RolledBack as error:
            data["anchored"] = False
            row, refused = ("BEHIND", str(error)), True
    return Outcome(f"Ledger {path.name}", data, rows=(row,), finding=refused)


def certified_outcome(
    path: Path, certificate: Path, *, delta: float, run: str | None = None
) -> Outcome:
    """Write a certificate of a ledger's events, or of its filter's budget; return its epsilon.

    Args:
        path: the ledger.
        certificate: the file, which is made or replaced.
        delta: in (0, 1).
        run: whose events alone are certified.

    Of events that were not all planned the epsilon is an estimate, however well it is proved.
    Raises as `graded_certificate`.
    """
    with SqliteLedger(path, read_only=True) as opened:
        # found anew: no certificate is kept in a ledger
        made, grade = graded_certificate(opened, delta=delta, run=run)
    write_over(certificate, made.to_json_bytes())
    return Outcome(
        f"{certificate}: epsilon {made.epsilon} at delta {delta}",
        {"certificate": certificate, "epsilon": made.epsilon, "delta": delta},
        rows=(("but", None if grade is Grade.ENCLOSED else _ADAPTIVE),),
    )


def verified_outcome(
    certificate: Path,
    *,
    ledger: Path | None = None,
    run: str | None = None,
    coq: bool = False,
    extracted: bool = False,
) -> Outcome:
    """Re-verify a certificate, and return the verdict; a finding if it is refused or undecided.

    Args:
        certificate: the file.
        ledger: whose events, chain and named row the certificate must agree with.
        run: of the ledger, whose events alone are compared.
        coq: whether to write, and with coqc to prove, the theorem for Coq beside the file.
        extracted: whether to ask the checker that was extracted from Coq, too.

    Without a ledger only the certificate is checked, by the standard-library checker. A ledger
    adds that the events are the certificate's, and its grade: where no plan was stated
    beforehand, the sum is an estimate, as what ran may depend on what was released; the budget of
    the ledger's filter is none, where that is what the certificate proves.

    Raises `OSError` for a file that cannot be read.

    Opinions of Coq's kernel and of the extracted checker stand beside the verdict; one that is
    against it is a finding.
    """
    title = f"Certificate {certificate.name}"
    grade = None
    try:
        document = certificate_bytes(certificate)
        if ledger is None:
            verdict = check(document)
        else:
            with SqliteLedger(ledger, read_only=True) as opened:
                verdict, grade = graded_verdict(document, opened, run)
        asked = {
            "coq": opinion_of_coq(certificate) if coq else None,
            "extracted": opinion_of_extracted(certificate, verdict) if extracted else None,
        }
    except (CertificateWrong, NotProved, Undecided, TamperedLedger, RolledBack) as error:
        answer = "undecided" if isinstance(error, Undecided) else "refused"
        data = {"verdict": answer, "reason": str(error)}
        return Outcome(title, data, rows=((answer.upper(), str(error)),), finding=True)
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
