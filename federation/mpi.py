"""The engine "mpi": a rank a party, on one owner's cluster (`pip install dpledger[mpi]`).

All ranks gather every step's parts and add them in the parties' order: an Allreduce would give
other bits. There is no coordinator, and no authentication: one owner starts all ranks.

A job that was killed is started again under the same run's name: every rank goes on from its own
ledger and journal. Ranks may have ended one step apart, so that at the beginning those that have a
step's result give it to those that lack it.
"""

from __future__ import annotations

from typing import Any

from ..mechanisms.errors import InvalidParameter
from ..mechanisms.extras import import_extra
from .journal import FINISH, RESULT, Journal
from .plan import FederatedPlan, StepKind
from .protocol import (
    Answer,
    Ask,
    Bye,
    Ended,
    Hello,
    Reply,
    Request,
    Welcome,
    combined,
    fault,
    result_for,
    shown_step,
)

__all__ = ["MpiLink", "world"]

WHOLE = "whole"
"""Kind of entry in a rank's journal: all rows of an exchange, for ranks that were killed before."""


def world() -> Any:
    """Return the communicator of all ranks; raises `MissingExtra` without mpi4py.

    mpi4py starts MPI when it is imported, so that this is called by runs of this engine alone.
    """
    return import_extra("mpi4py.MPI", "mpi").COMM_WORLD


class MpiLink:
    """A party's way to the others: collectives of a communicator with a rank for each party.

    Args:
        plan: as this rank derives it.
        run: the run's name, which all ranks were given; that of a job before goes on with it.
        journal: of this rank's party.
        communicator: of as many ranks as parties, in their order.

    All ranks call `send` in the same order; each call is a collective, so that a rank that died
    leaves the others waiting until the cluster ends the job. Raises `InvalidParameter` for
    another number of ranks.
    """

    def __init__(self, plan: FederatedPlan, run: str, communicator: Any, journal: Journal) -> None:
        size = communicator.Get_size()
        if size != len(plan.parties):
            raise InvalidParameter("ranks", size, f"{len(plan.parties)}, one for each party")
        self._plan, self._run, self._world, self._journal = plan, run, communicator, journal

    def handed_in(self) -> dict[str, bytes]:
        """Return what the parties handed in, by name, at every rank; called once by all of them."""
        parts = self._world.allgather(self._journal.get(self._run, FINISH, 0) or b"")
        return dict(zip(self._plan.parties, parts, strict=True))

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        """Return the answer, once all ranks have asked."""
        match request:
            case Hello():
                return self._welcome(request)
            case Ask():
                return self._answer(request)
            case Bye():
                return Ended("The run is over.")

    def leave(self, bye: Bye) -> None:
        """Do nothing: ranks end together."""

    def _welcome(self, hello: Hello) -> Reply:
        """Return the run, or `Ended` where a rank has another plan, run name or place in the
        order.
        """
        greetings = self._world.allgather((hello.party, hello.subject, self._run))
        for name, greeting in zip(self._plan.parties, greetings, strict=True):
            if greeting != (name, self._plan.subject, self._run):
                return Ended(f"Party {name!r} has another plan, run or rank: {greeting!r:.200}.")
        self._catch_up(hello.party)
        return Welcome(self._run)

    def _catch_up(self, party: str) -> None:
        """Give every rank the results that only some had kept when the job before was killed.

        Whoever has a result had everybody's part, so that nobody's message is missing from it, and
        the ledger of whoever lacks it has the commit of its own.
        """
        kept = self._world.allgather(self._journal.count(self._run, RESULT))
        for number in range(min(kept), max(kept)):
            # of an exchange a party's result has its neighbours' rows only
            kind = WHOLE if self._plan.steps[number].kind is StepKind.EXCHANGE else RESULT
            found = self._world.allgather(self._journal.get(self._run, kind, number))
            whole = next(each for each in found if each is not None)
            if self._journal.get(self._run, RESULT, number) is None:
                mine = result_for(self._plan, number, party, whole)
                self._journal.keep(self._run, RESULT, number, mine)

    def _answer(self, ask: Ask) -> Reply:
        """Return a step's result; every rank finds the same faults, as every rank sees the same
        parts.
        """
        numbers = self._world.allgather(ask.step)
        if len(set(numbers)) > 1:  # all caught up at the greeting
            return Ended(f"The parties are at different steps: {numbers}.")
        step = self._plan.steps[ask.step]
        parts = self._world.allgather(ask.part)
        for name, part in zip(self._plan.parties, parts, strict=True):
            wrong = fault(step, part)
            if wrong is not None:
                return Ended(f"Party {name!r} {wrong} ({shown_step(self._plan, ask.step)}).")
        result = combined(self._plan, ask.step, parts, run=self._run)
        if step.kind is StepKind.EXCHANGE and self._journal.get(self._run, WHOLE, ask.step) is None:
            self._journal.keep(self._run, WHOLE, ask.step, result)
        return Answer(ask.step, result_for(self._plan, ask.step, ask.party, result))
