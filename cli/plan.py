"""`dpledger plan`: what a configured run will cost, before any data are read."""

from __future__ import annotations

from pathlib import Path

import click

from ..accounting.guarantees import compare_conversions
from ..mechanisms import GaussianStep
from ..runs.configuration import read_configuration
from ..runs.pipeline import Plan, certify_events
from ..runs.planning import plan as make_plan
from .inputs import configuration_argument
from .output import Outcome, deliver, guarantee_data, json_option, shown, shown_up

__all__ = ["plan", "plan_rows"]


@click.command()
@configuration_argument
@click.option(
    "--certificate",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the plan's certificate to this file.",
)
@json_option
def plan(configuration_path: Path, certificate: Path | None, as_json: bool) -> None:
    """Plan the run that CONFIG describes: its events, its noise and its certified epsilon."""
    configuration = read_configuration(configuration_path)
    made = make_plan(configuration)
    if certificate is not None:
        certificate.write_bytes(certify_events(made.events, configuration.terms).to_json_bytes())
    compared = compare_conversions(made.events, delta=configuration.privacy.delta)
    outcome = Outcome(
        title=f"Plan of {configuration_path.name}",
        data={
            "configuration_sha256": configuration.sha256,
            "noise_multiplier": made.noise_multiplier,
            "events": len(made.events),
            "guarantee": guarantee_data(made.guarantee),
            "other_conversions": {
                "rdp": compared.rdp,
                "zcdp": compared.zcdp,
                "moments": compared.moments,
            },
        },
        rows=(
            *plan_rows(made),
            (
                "by other conversions",
                f"RDP {shown(compared.rdp)}, zCDP {shown(compared.zcdp)}, "
                f"moments {shown(compared.moments)}",
            ),
            *((("certificate", str(certificate)),) if certificate else ()),
        ),
        finding=bool(made.guarantee.unprotected),
    )
    deliver(outcome, as_json=as_json)


def plan_rows(made: Plan) -> tuple[tuple[str, str], ...]:
    """Return what a plan says, row by row."""
    found = made.guarantee
    adjacency = "none" if found.adjacency is None else found.adjacency.value
    delta = shown_up(float(found.delta))
    rows = [
        ("epsilon", f"{shown(found.epsilon)} at delta {delta} per record, {adjacency}"),
        ("grade", f"{found.grade.value}: {found.method}"),
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
    return (*rows, *(("assumption", text) for text in found.assumptions))
