"""The engine "mpi": ranks that serve parties, on one owner's cluster (`pip install dpledger[mpi]`).

A rank serves one party or several, each with a thread, a ledger and a journal of its own. All ranks
gather every step's parts and add them in the parties' order: an Allreduce would give other bits.
There is no coordinator, and no authentication: one owner starts all ranks.

A job that was killed is started again under the same run's name: every party goes on from its own
ledger and journal. Parties may have ended one step apart, so that at the beginning those that have
a step's result give it to those that lack it. Under `mpirun --with-ft ulfm` the other ranks outlive
one that was killed, and end with a sentence that names its parties.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from ..mechanisms.errors import InvalidParameter
from ..mechanisms.extras import import_extra
from .journal import FINISH, RESULT, Journal
from .party import Party, TookPart, take_part
from .plan import FederatedPlan, StepKind
from .protocol import (
    Answer,
    Ask,
    Bye,
    Ended,
    FederationEnded,
    Hello,
    Reply,
    Request,
    Welcome,
    combined,
    fault,
    result_for,
    shown_step,
)

__all__ = ["MpiLink", "Ranks", "begun", "run_by_ranks", "world"]

_T = TypeVar("_T")

WHOLE = "whole"
"""Kind of entry in a party's journal: all rows of an exchange, for parties that were killed before
they had theirs."""


def world() -> Any:
    """Return the communicator of all ranks; raises `MissingExtra` without mpi4py.

    mpi4py starts MPI when it is imported, so that this is called by runs of this engine alone.
    """
    return import_extra("mpi4py.MPI", "mpi").COMM_WORLD


class Ranks:
    """All parties' one collective, a gathering in their order; each rank serves a block of them.

    With R ranks and P parties, rank r serves the parties from r·P/R up to (r + 1)·P/R, rounded
    down, so that the ranks' blocks one after the other are the parties in order.

    Args:
        parties: names, in the plan's order.
        communicator: of at least one rank and at most as many as parties, or `InvalidParameter`.
    """

    def __init__(self, parties: tuple[str, ...], communicator: Any) -> None:
        size, rank, count = communicator.Get_size(), communicator.Get_rank(), len(parties)
        if size > count:
            raise InvalidParameter("ranks", size, f"at most {count}, the number of parties")
        self.served = parties[slice(*_block(rank, size, count))]
        self._parties, self._world = parties, communicator
        self._changed = threading.Condition()
        self._waiting: dict[str, Any] = {}
        self._found: Any = None
        self._times = 0

    def gather(self, party: str, mine: object, made: Callable[[list[Any]], _T]) -> _T:
        """Return what is made of all parties' parts, in their order.

        Every party calls it the same number of times, each in a thread of its own. The last one of
        a rank speaks to the other ranks and makes the result, once for the rank; nobody can gather
        the next parts before all have this result.

        Args:
            party: whose part it is, one that this rank serves.
            mine: its part; picklable.
            made: the same pure function at all parties.

        Raises `FederationEnded` at all parties where one has stopped.
        """
        with self._changed:
            times = self._times
            self._waiting[party] = (True, mine)
            if len(self._waiting) == len(self.served):
                self._speak(made)
            while self._times == times:
                self._changed.wait()
            if isinstance(self._found, FederationEnded):
                raise FederationEnded(*self._found.args)
            found: _T = self._found
            return found

    def stop(self, party: str, reason: str) -> None:
        """Tell all parties, at their next gathering, that this one gathers no more.

        Without it the others would wait for ever: a rank that ends by itself waits in MPI's own
        end for all others.
        """
        with self._changed:
            self._waiting[party] = (False, reason)
            if len(self._waiting) == len(self.served):
                self._speak(lambda parts: parts)

    def _speak(self, made: Callable[[list[Any]], Any]) -> None:
        """Gather the ranks' parts and make the result; the caller holds the condition."""
        block = [self._waiting[name] for name in self.served]
        try:
            parts = [each for block in self._world.allgather(block) for each in block]
            named = zip(self._parties, parts, strict=True)
            gone = [f"Party {name!r} stopped: {what}." for name, (on, what) in named if not on]
            self._found = FederationEnded(gone[0]) if gone else made([part for _, part in parts])
        except Exception as error:  # or this rank's other threads would wait for ever
            self._found = FederationEnded(self._why(error))
        self._waiting = {}
        self._times += 1
        self._changed.notify_all()

    def _why(self, error: Exception) -> str:
        """Return why ranks could not gather, in a sentence: who is gone, where MPI can say so.

        MPI says so with fault tolerance (`mpirun --with-ft ulfm`); else it ends the whole job when
        a rank is killed, or knows nothing.
        """
        try:
            gone = failed_ranks(self._world)
        except Exception:  # no fault tolerance here
            gone = []
        if not gone:
            return f"The ranks could not gather ({type(error).__name__})."
        count, size = len(self._parties), self._world.Get_size()
        lost = [name for r in gone for name in self._parties[slice(*_block(r, size, count))]]
        return (
            f"Rank {', '.join(map(str, gone))} is gone, and with it {', '.join(map(repr, lost))}; "
            "the same command goes on with the run."
        )


def _block(rank: int, size: int, count: int) -> tuple[int, int]:
    """Return the numbers of the first party that a rank of `size` serves and of the next rank's."""
    return rank * count // size, (rank + 1) * count // size


def failed_ranks(communicator: Any) -> list[int]:
    """Return the ranks that were killed, as far as this one knows, by ULFM's extension of MPI.

    The communicator is of no use afterwards: ranks that had all parts of the last gathering learn
    at their next one that it is over, and wait for nobody (Bland et al. 2013, Post-failure recovery
    of MPI communication capability). Raises what MPI raises where it has no such extension.
    """
    communicator.Revoke()
    failed, group = communicator.Get_failed(), communicator.Get_group()
    return sorted(failed.Translate_ranks(list(range(failed.Get_size())), group))


def begun(communicator: Any, named: Callable[[], str]) -> str:
    """Return the run's name, drawn at rank 0 and sent to the others, so that all pay for one run.

    Args:
        communicator: of all ranks.
        named: gives the name; called at rank 0 alone.

    Raises what `named` raises at rank 0, and there `FederationEnded` at the others.
    """
    name = None
    try:
        if communicator.Get_rank() == 0:
            name = named()
    finally:  # the others wait for it, whatever happened
        name = communicator.bcast(name)
    if name is None:
        raise FederationEnded("Rank 0 could not begin the run.")
    return str(name)


def run_by_ranks(
    opened: Sequence[AbstractContextManager[Party]], plan: FederatedPlan, run: str, ranks: Ranks
) -> tuple[tuple[TookPart, ...], dict[str, bytes]]:
    """Return what came of this rank's parties, and what all parties handed in, by name.

    Args:
        opened: gives each party that this rank serves, in their order, with its files open.
        plan: as this rank derives it.
        run: the run's name, which all ranks were given.
        ranks: of the plan's parties.

    Raises what the first of its parties did; where another one stopped, `FederationEnded`.
    """

    def part(name: str, files: AbstractContextManager[Party]) -> tuple[TookPart, dict[str, bytes]]:
        try:
            with files as party:
                link = MpiLink(plan, run, ranks, party.name, party.journal)
                return take_part(party, plan, link), link.handed_in()
        except FederationEnded:  # which all parties get
            raise
        except BaseException as error:
            # the others learn that it did, and not what its files hold
            ranks.stop(name, type(error).__name__)
            raise

    with ThreadPoolExecutor(len(ranks.served)) as pool:
        parts = [pool.submit(part, *each) for each in zip(ranks.served, opened, strict=True)]
        wait(parts)
    own = [error for each in parts if (error := each.exception()) is not None]
    # a party's own reason says more than that it stopped
    for error in sorted(own, key=lambda each: isinstance(each, FederationEnded)):
        raise error
    found = [each.result() for each in parts]
    return tuple(took for took, _ in found), found[0][1]


class MpiLink:
    """A party's way to the others: the gatherings of all ranks' parties.

    Args:
        plan: as this rank derives it.
        run: the run's name, which all ranks were given; that of a job before goes on with it.
        ranks: of the plan's parties.
        party: whose link it is, one that this rank serves.
        journal: of this party.

    All parties call `send` in the same order; each call is a collective. A rank that was killed
    ends the job for all, or, with ULFM, a sentence that names its parties does.
    """

    def __init__(
        self, plan: FederatedPlan, run: str, ranks: Ranks, party: str, journal: Journal
    ) -> None:
        self._plan, self._run, self._ranks = plan, run, ranks
        self._party, self._journal = party, journal

    def _gather(self, mine: object) -> list[Any]:
        """Return all parties' parts, in their order."""
        return self._ranks.gather(self._party, mine, list)

    def handed_in(self) -> dict[str, bytes]:
        """Return what the parties handed in, by name, at every party; called once by all of
        them.
        """
        parts = self._gather(self._journal.get(self._run, FINISH, 0) or b"")
        return dict(zip(self._plan.parties, parts, strict=True))

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        """Return the answer, once all parties have asked."""
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
        """Return the run, or `Ended` where a party has another plan, run name or place in the
        order.
        """
        greetings = self._gather((hello.party, hello.subject, self._run))
        for name, greeting in zip(self._plan.parties, greetings, strict=True):
            if greeting != (name, self._plan.subject, self._run):
                return Ended(f"Party {name!r} has another plan, run or rank: {greeting!r:.200}.")
        self._catch_up()
        return Welcome(self._run)

    def _catch_up(self) -> None:
        """Give every party the results that only some had kept when the job before was killed.

        Whoever has a result had everybody's part, so that nobody's message is missing from it, and
        the ledger of whoever lacks it has the commit of its own.
        """
        kept = self._gather(self._journal.count(self._run, RESULT))
        for number in range(min(kept), max(kept)):
            # of an exchange a party's result has its neighbours' rows only
            kind = WHOLE if self._plan.steps[number].kind is StepKind.EXCHANGE else RESULT
            found = self._gather(self._journal.get(self._run, kind, number))
            whole = next(each for each in found if each is not None)
            if self._journal.get(self._run, RESULT, number) is None:
                mine = result_for(self._plan, number, self._party, whole)
                self._journal.keep(self._run, RESULT, number, mine)

    def _answer(self, ask: Ask) -> Reply:
        """Return a step's result; every party finds the same faults, as every rank sees the same
        parts.
        """
        step = self._plan.steps[ask.step]
        result = self._ranks.gather(self._party, (ask.step, ask.part), self._of_step)
        if isinstance(result, Ended):
            return result
        if step.kind is StepKind.EXCHANGE and self._journal.get(self._run, WHOLE, ask.step) is None:
            self._journal.keep(self._run, WHOLE, ask.step, result)
        return Answer(ask.step, result_for(self._plan, ask.step, ask.party, result))

    def _of_step(self, asked: list[tuple[int, bytes]]) -> bytes | Ended:
        """Return what all parties' parts of a step come to, or whose fault it is that the run ends.

        Args:
            asked: each party's number of the step and part of it, in their order.
        """
        numbers = [number for number, _ in asked]
        number, parts = numbers[0], [part for _, part in asked]
        if len(set(numbers)) > 1:  # all caught up at the greeting
            return Ended(f"The parties are at different steps: {numbers}.")
        for name, part in zip(self._plan.parties, parts, strict=True):
            wrong = fault(self._plan.steps[number], part, name)
            if wrong is not None:
                return Ended(f"Party {name!r} {wrong} ({shown_step(self._plan, number)}).")
        return combined(self._plan, number, parts, run=self._run)
