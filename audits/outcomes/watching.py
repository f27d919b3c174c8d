"""A look at a ledger as an outcome: new runs, open alarms, and what was and was not tested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from ...accounting.numbers.enclosure import shown_up
from ..burn_rate import burn_rate
from ..continuous import RunAudit
from ..crosschecks import Crosscheck
from ..outcome import Outcome, Row, shown
from ..sequential import Evidence
from ..watching import Alarm, Look

_TESTS = (
    "the ledger's chain, each run's epsilon, plan and seeds, other libraries' answers; with "
    "--config, the installed code: runs repeated on neighbouring data, and their noise against "
    "what their events state; with --canaries, production runs, by canaries planted in them"
)
"""What a look tests, said in every answer."""

_TESTS_NOT = (
    "the production run itself, but for its canaries: its data, its machine, what its noise was; "
    "nor what left it without an entry in the ledger"
)
"""What no look can test, said beside it."""


def look_outcome(ledger: str, look: Look) -> Outcome:
    """Return what a look at a ledger found; a finding while an alarm is open or it was changed.

    Args:
        ledger: the file's name.
        look: the runs that were audited and the alarms that are open after it.
    """
    alarms = look.memory.open_alarms
    rows: list[Row] = []
    for audit in look.audits:
        epsilon = f"epsilon {shown(audit.epsilon)} at delta {shown_up(float(audit.delta))}"
        relation = "" if audit.adjacency is None else f", {audit.adjacency.value}"
        rows += [
            (audit.run, f"{epsilon}{relation}, {audit.grade}"),
            ("", _checked(audit)),
            ("", _tested(audit.evidence)),
            *(("note", text) for text in audit.remarks),
        ]
    if look.tampered is not None:
        rows.append(("TAMPERED", look.tampered))
    rows += [(f"WRONG {a.identifier}", f"{a.run}: {a.text} (since {a.since})") for a in alarms]
    rate = burn_rate(look.memory.spending)
    if rate is not None:
        rows.append(("budget", rate.text))
    if look.waiting:
        rows.append(("waiting", f"{look.waiting} runs, for the next look"))
    return Outcome(
        title=f"Ledger {ledger}: {len(look.audits) or 'no'} new runs, {len(alarms)} open alarms",
        data={
            "intact": look.tampered is None,
            "difference": look.tampered,
            "runs": [_data(audit) for audit in look.audits],
            "waiting": look.waiting,
            "alarms": msgspec.to_builtins(alarms),
            "budget": None if rate is None else asdict(rate),
            "tested": _TESTS,
            "not_tested": _TESTS_NOT,
        },
        rows=[*rows, ("tested", _TESTS), ("not tested", _TESTS_NOT)],
        finding=look.is_finding,
    )


def acknowledged_outcome(chosen: Sequence[Alarm], left: int) -> Outcome:
    """Return which alarms were acknowledged, and how many are still open.

    Args:
        chosen: alarms that somebody has dealt with; they stay in the memory, and are shown no more.
        left: how many are open.
    """
    return Outcome(
        f"{len(chosen)} alarms acknowledged, {left} open",
        {"acknowledged": msgspec.to_builtins(chosen), "open": left},
        [(each.identifier, f"{each.run}: {each.text}") for each in chosen],
    )


def _checked(audit: RunAudit) -> str:
    """Return what other libraries said of a run."""
    found = audit.crosscheck
    if isinstance(found, str):
        return f"cross-check skipped: {found}"
    return "cross-check agrees" if found.agrees else "cross-check: see findings"


def _tested(evidence: Evidence | None) -> str:
    """Return how far the sequential test has come."""
    if evidence is None:
        return "not repeated: no configuration was given for it"
    return f"sequential test: {evidence.pairs} pairs of runs so far, p-value {evidence.p_value:.3g}"


def _data(audit: RunAudit) -> dict[str, Any]:
    """Return a run's audit as plain values."""
    checked, evidence = audit.crosscheck, audit.evidence
    return {
        "run": audit.run,
        "epsilon": audit.epsilon,
        "delta": float(audit.delta),
        "adjacency": audit.adjacency,
        "grade": audit.grade,
        "crosscheck_agrees": checked.agrees if isinstance(checked, Crosscheck) else None,
        "pairs": None if evidence is None else evidence.pairs,
        "p_value": None if evidence is None else evidence.p_value,
        "refuted_after": None if evidence is None else evidence.refuted_after,
        "findings": audit.findings,
        "remarks": audit.remarks,
    }
