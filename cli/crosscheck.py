"""`dpledger crosscheck`: the same events through Google's dp-accounting.

Asks for a run's configuration; its plan is handed to dp-accounting (Google) event by event, and
epsilons of both are printed side by side, with the relative gap and its explanation: PLD
accountants discretise upwards, RDP accountants convert with a loss. A gap without an explanation is
a finding on one side or the other.

Exit status 0 if all gaps are explained, 1 if one is not, 2 without dp-accounting (extra
[crosscheck]).
"""

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
    # of one record: dp-accounting has no group privacy for these events
    found = compare(plan(configuration).events, delta=configuration.privacy.delta)
    return crosscheck_outcome(found)
