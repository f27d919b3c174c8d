"""`dpledger verify`: an epsilon, re-verified by the independent checker.

Asks for a certificate, or with --federation for a folder of them; --ledger adds that the
certificate is about the events of that ledger. Nothing that wrote a certificate is used: the
standard-library checker derives every step again from the document.

Prints what is proved, for whom and under which relation, the assumptions, and with a ledger its
grade: where no plan stood beforehand the sum is an estimate, however well it is proved. --coq and
--extracted ask for further opinions, which can only turn against what was accepted.

Exit status 0 if it is proved; 1 if the certificate is refused or undecided, the ledger was changed
or has other events, or another checker disagrees; 2 for a file that cannot be read. What is no
certificate is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..audits.outcome import Outcome
from ..runs.outcomes.federation import verified_federation_outcome
from ..runs.outcomes.ledgers import verified_outcome
from .inputs import FILE, FOLDER, refuse
from .output import answers

__all__ = ["verify"]


@click.command()
@click.argument("certificate", metavar="[CERTIFICATE]", required=False, type=FILE)
@click.option("--federation", type=FOLDER, help="Verify a federation's folder instead.")
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
def verify(certificate: Path | None, federation: Path | None, **how: Any) -> Outcome:
    """Re-verify CERTIFICATE with a checker that shares nothing with what wrote it."""
    # what is checked is chosen by the argument; both at once would have two answers
    if certificate is not None and federation is None:
        return verified_outcome(certificate, **how)
    if federation is None:
        raise click.UsageError("Expected either CERTIFICATE or --federation.")
    # False and None are both "not given" for the options of the other form
    refuse("--federation alone", certificate, *(given or None for given in how.values()))
    return verified_federation_outcome(federation)
