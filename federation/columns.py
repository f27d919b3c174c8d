"""Runs of parties that hold columns of the same records: the plan, and how messages travel.

A record is everybody's, so what all parties release adds up. Every party walks through the whole
run: it releases what rests on its own columns, and gets the others' messages as they left. Each
pays for all releases in its own ledger, before the first, and writes all of them down: every ledger
says what a record has paid in all, and every certificate is about that.

Row i must be the same record at every party; who is in the intersection is not computed here.
"""

from collections.abc import Callable, Sequence

from ..mechanisms.curators import PlanningCurator, Release
from ..mechanisms.encoding import subject_hash
from ..mechanisms.errors import InvalidParameter, Number, require_open_unit
from ..mechanisms.events import Event
from ..mechanisms.local_columns import LocalColumns
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sampling import Sampler
from ..mechanisms.vertical_data import VerticalDataset, VerticalShape
from ..solvers.planning import Solves
from .journal import MESSAGE, Journal, JournalError, RecordedCurator
from .plan import (
    FederatedPlan,
    RunStep,
    StepKind,
    all_steps,
    require_carried,
    require_protected,
)
from .prepaid import PrepaidRun
from .protocol import decoded_row, encoded_row

__all__ = ["ColumnsCurator", "plan_of_columns"]

SAME_RECORDS = "row i is of the same record at every party"
SECRET_NOISE = "the noise of every party is known to it alone, and so is a seed of it"
"""An assumption of every promise about columns: nothing here can see it."""


class _Rehearsal(PlanningCurator):
    """Notes of each release how many numbers it has, and whether its values are here."""

    def __init__(self) -> None:
        super().__init__()
        self.here: list[bool] = []
        self.widths: list[int] = []

    def _deliver(self, release: Release) -> FloatArray:
        self.here.append(release.sensitive.held > 0)
        self.widths.append(release.sensitive.dimension)
        return super()._deliver(release)


def plan_of_columns(
    solver: Solves[VerticalDataset],
    shape: VerticalShape,
    *,
    labels_at: str | None,
    delta: Number,
    algorithm: str,
    configuration: str,
    assumptions: tuple[str, ...] = (),
) -> FederatedPlan:
    """Return the plan of a solver on columns of a public shape; no record is read.

    Raises `InvalidParameter` for a solver that releases something without a mechanism, or noise on
    what every party computes, which would be another noise at each; for messages that are longer
    than an engine carries; for private labels that no party holds, or public ones that one does.

    Args:
        solver: with its noise; ends in a state with a `model`.
        shape: public: parties, number of records, columns of each party.
        labels_at: the party that holds private labels; None where they are public.
        delta: in (0, 1).
        algorithm: its name, as policies write it.
        configuration: SHA-256 of the configuration.
        assumptions: what is taken for granted beside what is written in the events, and that rows
            are of the same records.
    """
    require_open_unit("delta", delta)
    if (labels_at is None) is not shape.public_labels or labels_at not in (None, *shape.parties):
        wanted = "None: labels are public" if shape.public_labels else f"one of {shape.parties}"
        raise InvalidParameter("labels_at", labels_at, wanted)
    seen = []
    for name in shape.parties:
        curator = _Rehearsal()
        labelled = shape.public_labels or name == labels_at
        solver.solve(LocalColumns.planned_at(shape, name, labelled=labelled), curator)
        seen.append(curator)
    events, widths = tuple(seen[0].events), seen[0].widths
    if len({subject_hash(each.events) for each in seen}) > 1:
        raise InvalidParameter("solver", algorithm, "one with the same releases at every party")
    require_protected(events, algorithm)
    require_carried(max(widths, default=0))
    senders = tuple(
        _sender(event, shape.parties, [each.here[k] for each in seen])
        for k, event in enumerate(events)
    )
    shared = [
        RunStep(StepKind.SHARE, width, sender=sender)
        for width, sender in zip(widths, senders, strict=True)
        if sender
    ]
    return FederatedPlan(
        *(solver, shape, delta, algorithm, configuration),
        *(events, all_steps(shared), ()),
        assumptions=(*assumptions, SAME_RECORDS, SECRET_NOISE),
        senders=senders,
    )


def _sender(event: Event, parties: Sequence[str], here: Sequence[bool]) -> str:
    """Return whose release this is: the one party that holds what it rests on, or "" for all.

    What all hold has no noise, so that all compute the same numbers.
    """
    holders = [name for name, holds in zip(parties, here, strict=True) if holds]
    if len(holders) == 1:
        return holders[0]
    if len(holders) < len(parties) or getattr(event.mechanism, "noise_std", None) != 0.0:
        wanted = "of one party, or of all and without noise"
        raise InvalidParameter("release", event.context.release, wanted)
    return ""


class ColumnsCurator(RecordedCurator):
    """Releases what rests on the party's own columns, and takes in the others' messages.

    All are written down and told to the ledger in the plan's order: those of others once they came.

    Args:
        paid: where the run has paid for all releases.
        sampler: where the party's own noise comes from.
        journal: of all messages.
        run: name of the run in it.
        senders: whose each release is; "" where every party computes it.
        share: takes the party's part of the next step, nothing where another sends, and returns
            the sender's.
    """

    def __init__(
        self,
        paid: PrepaidRun,
        sampler: Sampler,
        journal: Journal,
        run: str,
        *,
        senders: Sequence[str],
        share: Callable[[bytes], bytes],
    ) -> None:
        super().__init__(paid, sampler, journal, run)
        self._senders, self._share = senders, share

    def _deliver(self, release: Release) -> FloatArray:
        """Return a release's message: of the own columns as recorded or drawn, or another's.

        Raises `JournalError` where another's message is not the recorded one.
        """
        sender = self._senders[self._count]
        if release.sensitive.held:
            content = super()._deliver(release)
            if sender:
                self._share(encoded_row(content))
            return content
        came = self._share(b"")
        recorded = self._journal.get(self._name, MESSAGE, self._count)
        if recorded is None:
            self._journal.keep(self._name, MESSAGE, self._count, came)
        elif recorded != came:
            raise JournalError(
                f"journal={str(self._journal.path)!r} must hold message {self._count + 1} of "
                f"{self._name} as it came from {sender!r}."
            )
        self._count += 1
        token = self._paid.repeat((release.event,), self._provenance)
        content = decoded_row(came)
        self._sink.commit(token, content)
        return content
