"""Certificates of a ledger's events: written, and held against the ledger."""

from ...mechanisms.errors import Number
from ..check.checker import Verdict
from ..proof.certificate import Certificate, certify
from ..proof.derivation import GIVEN
from ..proof.proved import NotProved, proved
from .anchor import Head
from .ledger import Ledger

__all__ = ["certificate_of", "proved_of_ledger"]


def proved_of_ledger(document: bytes, ledger: Ledger, run: str | None = None) -> Verdict:
    """Return the verdict on a certificate of a ledger's events, of one run or of all.

    Raises as `proved`, also for a certificate that is silent about what the ledger knows of the
    noise; `TamperedLedger` for a chain that was changed, `RolledBack` for a ledger that lacks a row
    which the certificate names.
    """
    ledger.verify()
    verdict = proved(document, events=ledger.joint_events(run))
    for head in Head.stated(verdict.assumptions):
        ledger.require_row(head)
    for words in ledger.noise_circumstances(run):
        if f"{GIVEN}{words}" not in verdict.assumptions:
            raise NotProved("assumptions", "silence about the noise", words)
    return verdict


def certificate_of(ledger: Ledger, *, delta: Number, run: str | None = None) -> Certificate:
    """Return a certificate of a ledger's events, of one run or of all; raises as `certify`."""
    certificate = certify(ledger.joint_events(run), delta=delta)
    return certificate.given(*ledger.circumstances(run))
