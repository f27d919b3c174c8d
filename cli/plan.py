"""`dpledger plan`: what a configured run will cost, before any data are read."""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.outcome import Outcome
from ..runs import plan as plan_run
from ..runs import read_configuration
from ..runs.outcomes.plans import plan_outcome
from .inputs import certificate_option, configuration_argument
from .output import answers, write_certificate


@click.command()
@configuration_argument
@certificate_option
@answers
def plan(configuration_path: Path, certificate: Path | None) -> Outcome:
    """Plan the run that CONFIG describes: its events, its noise and its proved epsilon."""
    configuration = read_configuration(configuration_path)
    made = plan_run(configuration)
    if certificate is not None:
        write_certificate(certificate, made.proof, made.guarantee)
    return plan_outcome(configuration_path.name, configuration, made, certificate)
