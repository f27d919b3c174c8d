"""The engine "mpi": a rank a party, on one owner's cluster (`pip install dpledger[mpi]`).

All ranks gather every step's parts and add them in the parties' order: an Allreduce would give
other bits. There is no coordinator, and no authentication: one owner starts all ranks.
"""

from __future__ import annotations

from typing import Any

from ..mechanisms.errors import InvalidParameter
from ..mechanisms.extras import import_extra
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


def world() -> Any:
    """Return the communicator of all ranks; raises `MissingExtra` without mpi4py.

    mpi4py starts MPI when it is imported, so that this is called by runs of this engine alone.
    """
    return import_extra("mpi4py.MPI", "mpi").COMM_WORLD


class MpiLink:
    """A party's way to the others: collectives of a communicator with a rank for each party.

    Args:
        plan: as this rank derives it.
        run: the run's name, which all ranks were given.
        communicator: of as many ranks as parties, in their order.

    All ranks call `send` in the same order; each call is a collective, so that a rank that died
    leaves the others waiting until the cluster ends the job. Raises `InvalidParameter` for
    another number of ranks.
    """

    def __init__(self, plan: FederatedPlan, run: str, communicator: Any) -> None:
        size = communicator.Get_size()
        if size != len(plan.parties):
            raise InvalidParameter("ranks", size, f"{len(plan.parties)}, one for each party")
        self._plan, self._run, self._world = plan, run, communicator
        self.handed_in: list[bytes] = []
        """What the parties handed in at the end, in their order."""

    def send(self, request: Request) -> Reply:
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
        return Welcome(self._run)

    def _answer(self, ask: Ask) -> Reply:
        """Return a step's result; every rank finds the same faults, as every rank sees the same
        parts.
        """
        numbers = self._world.allgather(ask.step)
        if len(set(numbers)) > 1:
            # a party that comes back repeats nothing here: a restart begins all ranks anew
            return Ended(f"The parties are at different steps: {numbers}.")
        step = self._plan.steps[ask.step]
        parts = self._world.allgather(ask.part)
        for name, part in zip(self._plan.parties, parts, strict=True):
            wrong = fault(step, part)
            if wrong is not None:
                return Ended(f"Party {name!r} {wrong} ({shown_step(self._plan, ask.step)}).")
        if step.kind is StepKind.FINISH:
            self.handed_in = parts
        result = combined(self._plan, ask.step, parts)
        return Answer(ask.step, result_for(self._plan, ask.step, ask.party, result))
