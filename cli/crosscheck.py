"""`dpledger crosscheck`: the same events through Google's dp-accounting."""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.numbers.grade import Grade
from ..audits.crosschecks import crosscheck as compare
from ..runs import plan, read_configuration
from .inputs import configuration_argument
from .output import Outcome, TextColumns, answers, shown


@click.command()
@configuration_argument
@answers
def crosscheck(configuration_path: Path) -> Outcome:
    """Compare the epsilon of CONFIG's plan with dp-accounting's RDP and PLD accountants.

    Exit status 1 if a difference stands unexplained.
    """
    configuration = read_configuration(configuration_path)
    found = compare(plan(configuration).events, delta=configuration.privacy.delta)
    texts = [
        (
            peer.peer,
            peer.status.value,
            "" if peer.theirs is None else f"{peer.theirs:.8g}",
            "" if peer.relative_gap is None else f"{peer.relative_gap:+.2e}",
            peer.explanation,
        )
        for peer in found.peers
    ]
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
                    "status": peer.status,
                    "epsilon": peer.theirs,
                    "relative_gap": peer.relative_gap,
                    "explained": peer.explained,
                    "explanation": peer.explanation,
                }
                for peer in found.peers
            ],
        },
        rows=(("ours", f"{shown(found.ours)}, {Grade.ENCLOSED.value}"), ("mapping", found.mapping)),
        tables=(TextColumns(("peer", "status", "epsilon", "gap", "explanation"), texts),),
        finding=found.is_finding,
    )
