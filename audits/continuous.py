"""Continuous auditing: after each run of a ledger, is everything still as promised?

Every check is repeated from what the ledger holds: its hash chain, the epsilon of the run's events,
other libraries' answers for the same events, and, where somebody can repeat the run, a sequential
test of its guarantee that goes on from run to run: evidence adds up, and one may look after each.
"""

from collections.abc import Callable
from dataclasses import dataclass

from flint import arb

from ..accounting.composition import UnpricedMechanism
from ..accounting.guarantees import guarantee
from ..accounting.ledger import Ledger
from ..accounting.ledger.ledger import HISTORY, RunSummary
from ..accounting.numbers.enclosure import Enclosure
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import AdjacencyMismatch, Number
from ..mechanisms.events import Event
from ..mechanisms.extras import MissingExtra
from .crosschecks import Crosscheck, crosscheck
from .sequential import Evidence

MoreEvidence = Callable[[list[str]], Evidence | None]
"""Repeats a run some more times on neighbouring data; adds what is wrong to a list, and returns the
evidence so far, None where nothing is promised."""


@dataclass(frozen=True, slots=True)
class RunAudit:
    """What was found about one run.

    Args:
        run: its name in the ledger.
        epsilon: recomputed from its events, at `delta`.
        adjacency: the relation between data sets that epsilon is about; None without an event.
        grade: of epsilon; an estimate unless the run's whole plan happened.
        crosscheck: other libraries' answers, or why there are none.
        evidence: against the run's guarantee so far; None where nobody repeats the run.
        findings: what is wrong, in words; empty if nothing is.
        remarks: what should be known and is no fault.
    """

    run: str
    epsilon: Enclosure
    delta: Number
    adjacency: Adjacency | None
    grade: str
    crosscheck: Crosscheck | str
    evidence: Evidence | None
    findings: tuple[str, ...]
    remarks: tuple[str, ...]


def audit_run(
    ledger: Ledger,
    summary: RunSummary,
    *,
    delta: Number,
    evidence: Evidence | None = None,
    more: MoreEvidence | None = None,
) -> RunAudit:
    """Return what a fresh look at one of the ledger's runs finds.

    Args:
        ledger: whose chain has been verified.
        summary: of the run.
        delta: where epsilon is computed, in (0, 1).
        evidence: what earlier runs of the same configuration have shown.
        more: repeats the run; None where that is not possible.

    The sequential test may be looked at after every run without losing its level; the other
    checks are exact and have none. Findings are what is wrong, remarks what a reader should know.
    """
    events, spent = ledger.steady(lambda: (ledger.events(summary.run), ledger.spent(summary.run)))
    epsilon, findings = _priced(events, delta)
    protected = not findings
    sharing = [name for name in ledger.sharing_noise(summary.run) if name != summary.run]
    if sharing:
        findings.append(f"noise of one seed with {', '.join(sharing)}: it can be subtracted")
    remarks: list[str] = []
    if summary.planned and not summary.kept_to_plan:
        findings.append("the run left its plan")
    if not summary.planned:
        remarks.append("the run had no plan")
    if summary.imported:
        remarks.append(f"imported: taken for granted that {HISTORY}")
    # a reservation may have left before the crash that lost its commit
    missing = summary.reservations - summary.committed
    if missing:
        remarks.append(f"{missing} reservations without a commit; they count as spent")
    checked = _crosschecked(events, delta)
    if isinstance(checked, Crosscheck):
        findings += [f"{peer.peer}: {peer.explanation}" for peer in checked.peers if peer.failed]
    if more is not None and protected:
        evidence = more(findings) or evidence
        if evidence is not None and evidence.refuted_after is not None:
            findings.append(f"guarantee refuted after {evidence.refuted_after} pairs of runs")
    return RunAudit(
        run=summary.run,
        epsilon=epsilon,
        delta=delta,
        adjacency=spent.adjacency,
        grade=spent.grade.value,
        crosscheck=checked,
        evidence=evidence,
        findings=tuple(findings),
        remarks=tuple(remarks),
    )


def _priced(events: list[Event], delta: Number) -> tuple[Enclosure, list[str]]:
    """Return epsilon, and why it is infinite or, in [0, inf], unknown."""
    try:
        found = guarantee(events, delta=delta)
    except (UnpricedMechanism, AdjacencyMismatch) as error:
        # one run without a price must not keep the others from being looked at
        return Enclosure(arb(0), arb.pos_inf()), [f"no epsilon: {error}"]
    return found.epsilon, [f"unprotected: {reason}" for reason in found.unprotected]


def _crosschecked(events: list[Event], delta: Number) -> Crosscheck | str:
    """Return other libraries' answers, or why there are none."""
    try:
        return crosscheck(events, delta=delta)
    except (MissingExtra, UnpricedMechanism, AdjacencyMismatch) as why:
        return str(why)
