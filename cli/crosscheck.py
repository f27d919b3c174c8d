"""`dpledger crosscheck`: the same events through Google's dp-accounting."""

from __future__ import annotations

from pathlib import Path

import click

from ..audits.crosschecks import crosscheck as compare
from ..audits.outcome import Outcome
from ..audits.outcomes.attacks import crosscheck_outcome
from ..runs import plan, read_configuration
from .inputs import configuration_argument
from .output import answers


@click.command()
@configuration_argument
@answers
def crosscheck(configuration_path: Path) -> Outcome:
    """Compare the epsilon of CONFIG's plan with dp-accounting's RDP and PLD accountants.

    Exit status 1 if a difference stands unexplained.
    """
    configuration = read_configuration(configuration_path)
    found = compare(plan(configuration).events, delta=configuration.privacy.delta)
    return crosscheck_outcome(found)
