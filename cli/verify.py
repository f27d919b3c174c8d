"""`dpledger verify`: an epsilon, re-verified by the independent checker."""

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
    if certificate is not None and federation is None:
        return verified_outcome(certificate, **how)
    if federation is None:
        raise click.UsageError("Expected either CERTIFICATE or --federation.")
    refuse("--federation alone", certificate, *(given or None for given in how.values()))
    return verified_federation_outcome(federation)
