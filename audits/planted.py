"""Canaries that a holder planted in production runs, audited as a watcher sees them come.

Repeated runs test the installed code; what really ran, on the real machine with the real noise,
only the production run shows. Its holder draws fair coins, puts the canaries that came up heads
among the records, and moves their scores into a folder once the run has ended: RUN.npz with
`scores` and `included`. One-run auditing then holds the run to what its own ledger says it costs.

Each file is looked at once: scores that were changed afterwards might have been changed until an
alarm went away. The k-th audit has the share 6/(pi k)² of the allowed error, so that all audits to
come share it.
"""

import hashlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from math import inf, pi
from pathlib import Path

from ..accounting.guarantees import Guarantee, guarantee
from ..accounting.ledger.ledger import Ledger
from ..accounting.numbers.enclosure import shown_in_full, shown_up
from ..accounting.numbers.notions import ApproxDp, Gdp
from ..data.errors import UnreadableFile
from ..data.files import read_arrays
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import DpledgerError, require_open_unit
from .one_run import Canaries
from .one_run_plan import OneRunAudit, audit_one_run, plan_guesses

__all__ = ["PlantedCanaries"]

_RELATIONS = (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE)
"""Under which a canary that is in or out makes a neighbour."""


@dataclass(frozen=True, slots=True)
class PlantedCanaries:
    """A folder of canaries, RUN.npz for the run of that name.

    Args:
        folder: where files appear; each is read once.
        confidence: that runs which keep what their ledger says are never accused, however many
            come, in (0, 1).
        delta: where epsilon is bounded, in (0, 1).
    """

    folder: Path
    confidence: float
    delta: float

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        require_open_unit("delta", self.delta)

    def look(self, ledger: Ledger, known: MutableMapping[str, str]) -> list[tuple[str, str]]:
        """Return what is wrong with runs whose canaries are new, as pairs of run and text.

        Args:
            ledger: whose chain has been verified; files of runs that it does not hold wait.
            known: SHA-256 of the files that were audited, by run; the new ones are added.
        """
        runs = {summary.run for summary in ledger.runs() if summary.events}
        found: list[tuple[str, str]] = []
        for path in sorted(self.folder.glob("*.npz")):
            run = path.stem
            if run not in runs:
                continue
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if run not in known:
                known[run] = digest
                cost = guarantee(ledger.events(run), delta=self.delta)
                text = self._audited(path, cost, place=len(known))
            else:
                same = known[run] == digest
                text = "" if same else f"canaries changed after their audit, to {digest[:12]}"
            if text:
                found.append((run, text))
        return found

    def _audited(self, path: Path, cost: Guarantee, *, place: int) -> str:
        """Return what a run's canaries show against it; "" for nothing.

        Args:
            path: of the canaries.
            cost: of the run, from its ledger.
            place: of this audit among all, from 1.
        """
        if cost.adjacency not in _RELATIONS:
            relation = "none" if cost.adjacency is None else cost.adjacency.value
            return (
                f"canaries not audited: the run's relation is {relation}, and a canary that is "
                "in or out is of add-remove-one or zero-out-one"
            )
        if cost.unprotected:
            return ""  # an alarm of its own, and nothing left to refute
        try:
            audit = self._audit(path, cost, 1 - (1 - self.confidence) * 6 / (pi * place) ** 2)
        except DpledgerError as error:
            return f"canaries not audited: {error}"
        if not audit.is_finding:
            return ""
        epsilon = shown_up(audit.claimed_epsilon, digits=6)
        best = max(audit.bounds, key=lambda bound: bound.epsilon)
        return (
            f"canaries refute epsilon {epsilon} at delta {shown_in_full(self.delta)}: {best.detail}"
        )

    def _audit(self, path: Path, cost: Guarantee, confidence: float) -> OneRunAudit:
        """Return the audit of a file's canaries, with numbers of guesses planned from the claim."""
        arrays = read_arrays(path)
        if not {"scores", "included"} <= arrays.keys():
            raise UnreadableFile(f"{path.name}: Expected arrays scores and included.")
        canaries = Canaries.of(arrays["scores"], arrays["included"])
        # a curve can be refuted where no point of it is
        claimed: Gdp | ApproxDp = cost.notion
        if cost.notion.mu_squared == inf:
            claimed = ApproxDp(cost.epsilon.upper_float, self.delta)
        plan = plan_guesses(
            canaries=canaries.scores.size,
            claimed=claimed,
            delta=self.delta,
            confidence=confidence,
        )
        return audit_one_run(
            canaries, claimed=claimed, delta=self.delta, confidence=confidence, plan=plan
        )
