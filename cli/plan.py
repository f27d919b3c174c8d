"""`dpledger plan`: what a configured run will cost, before any data are read.

Asks for a run's configuration. Everything that costs privacy follows from it and from the public
schema: the solver runs under a planning curator, which records releases and draws no noise, and no
record is read.

Prints the noise multiplier (calibrated where an epsilon is asked for), the epsilon with its grade,
the number of releases, the first sensitivity's derivation, and epsilons by other conversions for
comparison.

Exit status 0; 1 if a planned release is unprotected; 2 for a configuration that is none, or a
target that no noise meets.
"""

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
    # a plan without a proof says why, and writes nothing
    if certificate is not None:
        write_certificate(certificate, made.proof, made.guarantee)
    return plan_outcome(configuration_path.name, configuration, made, certificate)
