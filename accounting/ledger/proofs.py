"""Certificates of a ledger's events: written, and held against the ledger.

Where all events of a plan happened that stood before the first of them, what they cost is proved.
Elsewhere their number, or the time of stopping, may depend on what was released, and the sum is no
guarantee; under a budget with a filter the budget is one, and that is proved instead.
"""

from contextlib import suppress
from fractions import Fraction

from ...mechanisms.errors import Number
from ..check.checker import Verdict
from ..numbers.grade import Grade
from ..numbers.notions import Gdp
from ..proof.certificate import Certificate, Uncertifiable, certify
from ..proof.derivation import GIVEN
from ..proof.proved import NotProved, proved
from .anchor import Head
from .ledger import Ledger

__all__ = ["certificate_of", "graded_certificate", "graded_verdict", "proved_of_ledger"]


def proved_of_ledger(document: bytes, ledger: Ledger, run: str | None = None) -> Verdict:
    """Return the verdict of `graded_verdict`."""
    return graded_verdict(document, ledger, run)[0]


def graded_verdict(
    document: bytes, ledger: Ledger, run: str | None = None
) -> tuple[Verdict, Grade]:
    """Return the verdict on a certificate of a ledger's events, of one run or of all, and a grade.

    The grade is the odometer's at the moment of the events, but *enclosed* where the budget of the
    ledger's filter is proved, which holds however runs were chosen, and whenever they ended.

    Raises as `proved`, also for a certificate that is silent about what the ledger knows of the
    noise, or that rests on the filter of another budget; `TamperedLedger` for a chain that was
    changed, `RolledBack` for a ledger that lacks a row which the certificate names.
    """
    ledger.verify()
    events, circumstances, kept, grade = ledger.steady(
        lambda: (
            ledger.joint_events(run),
            ledger.noise_circumstances(run),
            _filter_of(ledger),
            ledger.spent(run).grade,
        )
    )
    try:
        verdict = proved(document, events=events)
    except NotProved as error:
        if run is not None or (several := len(ledger.runs())) < 2:
            raise
        all_of_them = f"{error.expected} of all {several} runs; if it is of one, name that (--run)"
        raise NotProved(error.what, error.found, all_of_them) from error
    for head in Head.stated(verdict.assumptions):
        ledger.require_row(head)
    for words in circumstances:
        if f"{GIVEN}{words}" not in verdict.assumptions:
            raise NotProved("assumptions", "silence about the noise", words)
    if verdict.budget is None:
        return verdict, grade
    if verdict.budget != kept:
        raise NotProved("budget", verdict.budget, kept)
    return verdict, Grade.ENCLOSED


def _filter_of(ledger: Ledger) -> tuple[str, str, tuple[Fraction, ...]] | None:
    """Return the budget that the ledger's filter keeps, as a verdict states it."""
    budget = ledger.filtered
    if budget is None:
        return None
    if isinstance(kept := budget.kept, Gdp):
        return budget.adjacency.value, "gdp", (budget.limit,)
    return budget.adjacency.value, "rdp", (Fraction(kept.order), budget.limit)


def certificate_of(ledger: Ledger, *, delta: Number, run: str | None = None) -> Certificate:
    """Return the certificate of `graded_certificate`."""
    return graded_certificate(ledger, delta=delta, run=run)[0]


def graded_certificate(
    ledger: Ledger, *, delta: Number, run: str | None = None
) -> tuple[Certificate, Grade]:
    """Return a certificate of a ledger's events, of one run or of all, and a grade.

    The grade is that of `graded_verdict`.

    Args:
        ledger: with at least one event.
        delta: in (0, 1).
        run: its name; None for all.

    Its epsilon is that of the events where the odometer is enclosed; else that of the budget whose
    filter let them happen, and without one that of the events again, if nothing that was released
    had a say in which they are. The certificate lists which of these it assumes.

    The events' own epsilon is proved also where the budget's cannot be: the rules may price a
    mechanism dearer than the ledger's meter does, or have no price for it.

    Raises as `certify`.
    """
    events, budget, grade, given = ledger.steady(
        lambda: (
            ledger.joint_events(run),
            ledger.filtered,
            ledger.spent(run).grade,
            ledger.circumstances(run),
        )
    )
    if budget is not None and grade is not Grade.ENCLOSED:
        with suppress(Uncertifiable):
            certificate = certify(events, delta=delta, budget=budget.kept)
            return certificate.given(*given), Grade.ENCLOSED
    return certify(events, delta=delta).given(*given), grade
