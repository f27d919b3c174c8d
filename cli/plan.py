"""`dpledger plan`: what a configured run will cost, before any data are read."""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.guarantees import compare_conversions
from ..mechanisms import GaussianStep
from ..runs import Plan, read_configuration
from ..runs import plan as plan_run
from .inputs import NEW_FILE, configuration_argument
from .output import (
    Outcome,
    Row,
    answers,
    grade_rows,
    guarantee_data,
    shown,
    shown_up,
    write_certificate,
)


@click.command()
@configuration_argument
@click.option("--certificate", type=NEW_FILE, help="Write the plan's certificate to this file.")
@answers
def plan(configuration_path: Path, certificate: Path | None) -> Outcome:
    """Plan the run that CONFIG describes: its events, its noise and its proved epsilon."""
    configuration = read_configuration(configuration_path)
    made = plan_run(configuration)
    if certificate is not None:
        write_certificate(certificate, made.proof, made.guarantee)
    by = compare_conversions(made.events, delta=configuration.privacy.delta)
    others = f"RDP {shown(by.rdp)}, zCDP {shown(by.zcdp)}, moments {shown(by.moments)} (enclosed)"
    return Outcome(
        title=f"Plan of {configuration_path.name}",
        data={
            "configuration_sha256": configuration.sha256,
            "noise_multiplier": made.noise_multiplier,
            "events": len(made.events),
            "guarantee": guarantee_data(made.guarantee),
            "other_conversions": {"rdp": by.rdp, "zcdp": by.zcdp, "moments": by.moments},
        },
        rows=(
            *_rows(made),
            ("by other conversions", others),
            ("certificate", str(certificate) if certificate else None),
        ),
        finding=made.is_finding,
    )


def _rows(made: Plan) -> list[Row]:
    found = made.guarantee
    adjacency = "none" if found.adjacency is None else found.adjacency.value
    delta = shown_up(float(found.delta))
    rows = [
        ("epsilon", f"{shown(found.epsilon)} at delta {delta} per record, {adjacency}"),
        *grade_rows(found),
        ("mu, rho", f"{shown(found.mu)}, {shown(found.rho)}"),
        ("noise multiplier", f"{made.noise_multiplier:.10g}"),
        ("events", f"{len(made.events)}"),
    ]
    steps = [e.mechanism for e in made.events if isinstance(e.mechanism, GaussianStep)]
    if steps:
        rows += [
            ("noise_std", f"{steps[0].noise_std:.6g} (first) to {steps[-1].noise_std:.6g} (last)"),
            ("sensitivity", "\n".join(steps[0].sensitivity.derivation.lines())),
        ]
    rows += [("UNPROTECTED", reason) for reason in found.unprotected]
    return [*rows, *(("assumption", text) for text in found.assumptions)]
