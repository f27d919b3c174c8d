"""`dpledger crosscheck`: the same events through Google's dp-accounting."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from ..audits.crosschecks import Crosscheck
from ..audits.crosschecks import crosscheck as compare
from ..runs.configuration import read_configuration
from ..runs.planning import plan as make_plan
from .inputs import configuration_argument
from .output import Outcome, deliver, json_option, shown

__all__ = ["crosscheck", "crosscheck_outcome"]


@click.command()
@configuration_argument
@json_option
def crosscheck(configuration_path: Path, as_json: bool) -> None:
    """Compare the epsilon of CONFIG's plan with dp-accounting's RDP and PLD accountants.

    Exit status 1 if a difference stands unexplained.
    """
    configuration = read_configuration(configuration_path)
    made = make_plan(configuration)
    deliver(
        crosscheck_outcome(compare(made.events, delta=configuration.privacy.delta)),
        as_json=as_json,
    )


def crosscheck_outcome(found: Crosscheck) -> Outcome:
    """Return what the peers say: a finding if a difference stands unexplained."""
    table = Table("peer", "status", "epsilon", "gap", "explanation", box=None)
    for peer in found.peers:
        table.add_row(
            peer.peer,
            peer.status.value,
            "" if peer.theirs is None else f"{peer.theirs:.8g}",
            "" if peer.relative_gap is None else f"{peer.relative_gap:+.2e}",
            peer.explanation,
        )
    return Outcome(
        title="Cross-check",
        data={
            "delta": float(found.delta),
            "ours": found.ours,
            "mapping": found.mapping,
            "agrees": found.agrees,
            "peers": [
                {
                    "peer": peer.peer,
                    "status": peer.status.value,
                    "epsilon": peer.theirs,
                    "relative_gap": peer.relative_gap,
                    "explained": peer.explained,
                    "explanation": peer.explanation,
                }
                for peer in found.peers
            ],
        },
        rows=(("ours", shown(found.ours)), ("mapping", found.mapping)),
        tables=(table,),
        finding=any(peer.failed for peer in found.peers),
    )
