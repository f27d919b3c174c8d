"""Planned events, calibrated noise and privacy curves as outcomes; nothing here reads data.

Every epsilon is printed as the upper end of an enclosure, rounded up, with its grade beside it.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from ...accounting.guarantees import compare_conversions
from ...accounting.ledger.file_names import write_over
from ...accounting.numbers.enclosure import shown_down, shown_in_full, shown_up
from ...audits.outcome import Outcome, Row, TextColumns, grade_rows, guarantee_data, shown
from ...mechanisms.errors import InvalidParameter
from ...mechanisms.events import GaussianStep

if TYPE_CHECKING:
    from ...accounting.accountant import PrivacyCurve
    from ...accounting.guarantees import Guarantee
    from ...accounting.proof.planning import GaussianRounds
    from ...accounting.training import TrainingCost
    from ...mechanisms.adjacency import Adjacency
    from ..configuration import Configuration
    from ..pipeline import Plan


def plan_outcome(
    name: str, configuration: Configuration, planned: Plan, certificate: Path | None = None
) -> Outcome:
    """Return a plan's events, noise and epsilon; a finding if a release is unprotected.

    Args:
        name: of the configuration.
        configuration: of the run.
        planned: its plan.
        certificate: where its certificate was written, if it was.

    Other conversions stand beside the enclosed epsilon, so that a reader who knows another
    library's number finds it; none of them is the promise.

    A group's epsilon is planned for the whole unit, and other conversions are shown for it as well.
    """
    privacy = configuration.privacy
    by = compare_conversions(planned.events, delta=privacy.delta, group=privacy.group)
    others = f"RDP {shown(by.rdp)}, zCDP {shown(by.zcdp)}, moments {shown(by.moments)} (enclosed)"
    return Outcome(
        title=f"Plan of {name}",
        data={
            "configuration_sha256": configuration.sha256,
            "noise_multiplier": planned.noise_multiplier,
            "events": len(planned.events),
            "guarantee": guarantee_data(planned.guarantee),
            "other_conversions": {"rdp": by.rdp, "zcdp": by.zcdp, "moments": by.moments},
        },
        rows=(
            *_plan_rows(planned, privacy.unit_text),
            ("by other conversions", others),
            ("certificate", str(certificate) if certificate else None),
        ),
        finding=planned.is_finding,
    )


def _plan_rows(planned: Plan, unit: str) -> list[Row]:
    """Return rows for people: epsilon and grade first, then what it rests on, leaks and
    assumptions.
    """
    found = planned.guarantee
    adjacency = "none" if found.adjacency is None else found.adjacency.value
    delta = shown_up(float(found.delta))
    rows = [
        ("epsilon", f"{shown(found.epsilon)} at delta {delta} per {unit}, {adjacency}"),
        *grade_rows(found),
        ("mu, rho", f"{shown(found.mu)}, {shown(found.rho)}"),
        ("noise multiplier", repr(planned.noise_multiplier)),
        ("events", f"{len(planned.events)}"),
    ]
    steps = [e.mechanism for e in planned.events if isinstance(e.mechanism, GaussianStep)]
    if steps:
        ends = (steps[0].noise_std, " (first)"), (steps[-1].noise_std, " (last)")
        rows += [
            ("noise_std", " to ".join(shown_down(x, digits=6) + which for x, which in ends)),
            ("sensitivity", "\n".join(steps[0].sensitivity.derivation.lines())),
        ]
    rows += [("UNPROTECTED", reason) for reason in found.unprotected]
    return [*rows, *(("assumption", text) for text in found.assumptions)]


def training_outcome(found: TrainingCost, certificate: Path | None = None) -> Outcome:
    """Return the epsilon, or the noise, of a training run that was stated by its parameters.

    Args:
        found: the run and what it costs.
        certificate: where its certificate was written, if it was.

    Warnings are printed as rows of their own: a number that is right may promise little.
    """
    run, guarantee = found.run, found.guarantee
    return Outcome(
        title="Training run",
        data={
            "guarantee": guarantee_data(guarantee),
            "noise_multiplier": found.noise_multiplier,
            "sampling": run.sampling,
            "rate": run.rate,
            "steps": run.steps,
            "releases": run.releases,
            "meaning": found.meaning,
            "warnings": found.warnings,
            "certificate": None if certificate is None else str(certificate),
        },
        rows=(
            ("epsilon", f"{shown(guarantee.epsilon)} at delta {shown_in_full(found.delta)}"),
            *grade_rows(guarantee),
            ("noise multiplier", f"{found.noise_multiplier!r} (noise_std / clip norm)"),
            *(
                ()
                if found.select is None
                else (("published", f"the best of {float(found.select.mean):g} runs on average"),)
            ),
            ("relation", run.adjacency.value),
            ("unit", run.unit),
            (
                "sampling",
                run.sampling.value + ("" if run.rate is None else f", rate {run.rate:.10g}"),
            ),
            ("releases", f"{run.releases} that a given record may be in"),
            ("meaning", found.meaning),
            *(("WARNING", text) for text in found.warnings),
            *(("assumption", text) for text in guarantee.assumptions),
        ),
    )


def rounds_outcome(
    found: GaussianRounds, *, epsilon: float, delta: float, adjacency: Adjacency
) -> Outcome:
    """Return a noise multiplier and a number of Gaussian rounds that meet a target together.

    Args:
        found: both, and what is proved of them.
        epsilon, delta: the target.
        adjacency: the relation of the sensitivity.

    The proof is of the events of so many steps at this noise; fewer rounds cost no more.
    """
    cost = found.guarantee
    return Outcome(
        title=(
            f"Gaussian steps for epsilon {shown_in_full(epsilon)}, delta {shown_in_full(delta)}, "
            f"{adjacency.value}"
        ),
        data={
            "noise_multiplier": found.noise_multiplier,
            "rounds": found.rounds,
            "guarantee": guarantee_data(cost),
        },
        rows=(
            ("noise multiplier", f"{found.noise_multiplier!r} (noise_std / sensitivity)"),
            ("rounds", str(found.rounds)),
            ("epsilon", f"{shown(cost.epsilon)} at delta {shown_in_full(delta)}"),
            *grade_rows(cost),
        ),
    )


def draw_curve(path: Path, found: PrivacyCurve, promised: Guarantee) -> None:
    """Write a privacy curve to an SVG file; raise `InvalidParameter` if no epsilon is finite.

    Args:
        path: of the file; nothing is written where there is nothing to draw.
        found: the curve, upper bounds.
        promised: its epsilon and delta are marked.
    """
    from ...audits.report.html import to_svg
    from ...audits.report.plots import curve_plot

    points = zip(found.epsilon.tolist(), found.delta.tolist(), strict=True)
    upper = promised.epsilon.upper_float
    promise = (upper if isfinite(upper) else None, float(promised.delta))
    drawn = curve_plot(points, promise, found.grade)
    if drawn.absent is not None:
        raise InvalidParameter("plot", str(path), f"of a run of finite epsilon: {drawn.absent}")
    write_over(path, to_svg(drawn).encode())


def curve_outcome(
    name: str, found: PrivacyCurve, promised: Guarantee, plot: Path | None = None
) -> Outcome:
    """Return epsilons, rounded up, over deltas, and the guarantee at the delta of the promise.

    Args:
        name: of what has the curve.
        found: the curve.
        promised: the guarantee at one delta.
        plot: where the curve was drawn, if it was.
    """
    delta, epsilon = found.delta.tolist(), found.epsilon.tolist()
    texts = [(shown_up(d, digits=3), shown_up(e)) for d, e in zip(delta, epsilon, strict=True)]
    return Outcome(
        title=f"Privacy curve of {name} ({found.grade.value})",
        data={
            "grade": found.grade,
            "delta": delta,
            "epsilon": epsilon,
            "promised": guarantee_data(promised),
        },
        rows=(
            ("epsilon", f"{shown(promised.epsilon)} at delta {shown_up(float(promised.delta))}"),
            *grade_rows(promised),
            ("relation", None if promised.adjacency is None else promised.adjacency.value),
            ("unit", "one record" if promised.group == 1 else f"{promised.group} records together"),
            ("plot", None if plot is None else str(plot)),
        ),
        tables=(TextColumns(("delta", "epsilon"), texts),),
    )
