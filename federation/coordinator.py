"""The coordinator: gathers every step's parts, adds them in the parties' order, answers everybody.

It needs no trust for privacy and keeps no secret. Its journal makes a restart harmless: a step that
was answered is answered the same again, and parts of the step that was not are sent again by the
parties. A run ends for all parties in the same sentence, which names the party at fault.

Where the plan's noise has room for dropouts, a party that is not there for a sum drops out and the
others go on; it learns so when it comes back, and takes no part in that run any more.
"""

import secrets
import threading
import time

from ..mechanisms.errors import require_positive
from .journal import Journal, JournalError
from .plan import PROTOCOL, FederatedPlan, StepKind
from .protocol import (
    Answer,
    Ask,
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

__all__ = ["Coordinator"]

_RUN, _RESULT, _ENDED, _PART, _BYE = "run", "result", "ended", "part", "bye"
_DROPPED = "dropped"
"""Kinds of entry in the journal: under the plan's subject the run's name; under that name the
result of each step by number, the sentence of a failed run, and by party the parts handed in, the
goodbyes, and who dropped out."""


def run_name(journal: Journal, subject: str) -> str:
    """Return the name of the run that a coordinator's journal is of; a new one where it has none.

    Random, so that a run that begins anew under the same plan is another run in every ledger.

    Args:
        journal: of the coordinator, or of the first of several ranks.
        subject: of the plan.

    Raises `JournalError` for a journal of another plan's run, beside which its files lie.
    """
    if others := journal.runs(_RUN) - {subject}:
        raise JournalError(
            f"journal={str(journal.path)!r} must be of this plan alone instead of "
            f"{', '.join(sorted(others))}; choose another folder. Nothing was sent."
        )
    found = journal.get(subject, _RUN, 0)
    if found is None:
        found = secrets.token_hex(16).encode()
        journal.keep(subject, _RUN, 0, found)
    return found.decode()


_GO_ON = (StepKind.SUM, StepKind.FINISH)
"""Steps at which a party may drop out: before the first sum, everybody agrees and pays."""


class AskedAgain(ConnectionError):
    """Nobody waits for this answer any more: the party has asked again, on another connection."""


class Coordinator:
    """Answers the requests of all parties of one run; safe to share between threads.

    Args:
        plan: as the coordinator derives it.
        journal: of this run; the same one goes on with it.
        patience: seconds that parties wait for the last one of them in a step, > 0.

    Requests come from several threads, one a connection; all state is read and written under one
    condition, and whatever an answer depends on is in the journal before the answer leaves.
    """

    def __init__(self, plan: FederatedPlan, journal: Journal, *, patience: float) -> None:
        require_positive("patience", patience)
        self.plan, self.patience = plan, patience
        self._journal = journal
        self._changed = threading.Condition()
        self.run = run_name(journal, plan.subject)
        done = range(journal.count(self.run, _RESULT))
        self._results = [journal.get(self.run, _RESULT, k) or b"" for k in done]
        ended = journal.get(self.run, _ENDED, 0)
        self._ended = None if ended is None else ended.decode()
        self._parts: dict[str, bytes] = {}
        self._asked: dict[str, int] = {}
        """How often each party asked: who asks again has given up waiting for the answer before."""
        self._since = time.monotonic()
        self._left_by, self._dropped = self._noted(_BYE), self._noted(_DROPPED)

    def _noted(self, kind: str) -> set[str]:
        """Return the parties that the journal has an entry of this kind of."""
        kept = (self._journal.get(self.run, kind, i) for i in range(len(self.plan.parties)))
        return {
            name for name, found in zip(self.plan.parties, kept, strict=True) if found is not None
        }

    @property
    def ended(self) -> str | None:
        """Why the run is over before its time, in a sentence."""
        return self._ended

    @property
    def dropped(self) -> tuple[str, ...]:
        """The parties that dropped out, in the plan's order; the others went on without them."""
        return tuple(name for name in self.plan.parties if name in self._dropped)

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return len(self._results) == len(self.plan.steps)

    def asked(self, party: str) -> int:
        """Return how often a party has asked since this coordinator began."""
        return self._asked.get(party, 0)

    def handed_in(self) -> dict[str, bytes]:
        """Return what the parties handed in at the end, by name.

        Each value is a `HandedIn` in msgpack, unverified; empty until the last step is done. Who
        dropped out has none.
        """
        kept = (self._journal.get(self.run, _PART, i) for i in range(len(self.plan.parties)))
        parts = zip(self.plan.parties, kept, strict=True)
        return {name: part for name, part in parts if part is not None}

    def reply(self, request: Request) -> Reply:
        """Return the answer to a request; of an `Ask`, once all parties' parts are there.

        Raises `AskedAgain` where the party has asked again since.

        Args:
            request: from any thread; an `Ask` blocks until its step is done, the run ends, or
                `patience`
                seconds went by without a new part, which ends the run.

        Requests of strangers, of other runs and of steps that the plan lacks are answered with
        `Ended`, and change nothing for the parties of this run.
        """
        if request.party not in self.plan.parties:
            return Ended(f"Party {request.party!r} is not in the plan.")
        if isinstance(request, Hello):
            return self._welcome(request)
        if request.run != self.run:
            return Ended(f"Party {request.party!r} asks about another run.")
        with self._changed:
            if isinstance(request, Ask) and request.party in self._dropped:
                return self._gone_on(request.party)
            if isinstance(request, Ask):
                return self._answered(request)
            if request.party not in self._left_by:
                place = self.plan.parties.index(request.party)
                self._journal.keep(self.run, _BYE, place, b"")
                self._left_by.add(request.party)
            self._changed.notify_all()
            return Ended("The run is over.")

    def wait(self) -> None:
        """Return when everybody knows the end and said so, or `patience` after the end."""
        while True:
            with self._changed:
                over = self.finished or self._ended is not None
                if over and self._left_by >= set(self.plan.parties) - self._dropped:
                    return
                self._changed.wait(self._left())
                if self._left() <= 0.0:
                    if self.finished or self._ended is not None:
                        return
                    self._give_up()

    def _welcome(self, hello: Hello) -> Reply:
        """Return the run for a party of the same protocol and plan; otherwise `Ended`, saying
        which differs.
        """
        plan = self.plan
        if hello.protocol != PROTOCOL:
            return Ended(f"Party {hello.party!r} speaks protocol {hello.protocol}, not {PROTOCOL}.")
        if hello.subject != plan.subject:
            reason = (
                f"Party {hello.party!r} has another plan: subject {hello.subject[:16]}, "
                f"not {plan.subject[:16]}."
            )
            with self._changed:
                # once all have agreed, who comes with another plan is a stranger
                if not self._results:
                    self._end(reason)
            return Ended(reason)
        with self._changed:
            gone_on = hello.party in self._dropped
        return self._gone_on(hello.party) if gone_on else Welcome(self.run)

    def _gone_on(self, party: str) -> Reply:
        """Return what a party hears that dropped out."""
        return Ended(
            f"Party {party!r} dropped out after {self.patience:g} s; the others went on without it."
        )

    def _answered(self, ask: Ask) -> Reply:
        """Take an `Ask` in and wait for its step's result; the caller holds the condition.

        A party that asks twice has given up its first connection: the older wait ends with
        `AskedAgain`, so that threads do not pile up.
        """
        plan, number = self.plan, ask.step
        if not 0 <= number < len(plan.steps):
            return Ended(f"Party {ask.party!r} asks for step {number}, which the plan has not.")
        if number == len(self._results) and self._ended is None:
            self._take(ask)
        asked = self._asked[ask.party] = self._asked.get(ask.party, 0) + 1
        self._changed.notify_all()
        while number >= len(self._results) and self._ended is None:
            if ask.party in self._dropped:
                return self._gone_on(ask.party)
            if self._asked[ask.party] != asked:
                raise AskedAgain(f"Party {ask.party!r} asked again elsewhere.")
            if number > len(self._results):
                # it was answered a step that is not done here: this journal is an older copy
                self._end(f"Party {ask.party!r} is ahead of the coordinator at step {number + 1}.")
                break
            self._changed.wait(self._left())
            if self._left() <= 0.0 and number >= len(self._results):
                self._give_up()
        if number < len(self._results):
            return Answer(number, result_for(plan, number, ask.party, self._results[number]))
        assert self._ended is not None
        return Ended(self._ended)

    def _take(self, ask: Ask) -> None:
        """Take in a part of the step that is next; with the last one the step is done.

        The same part again is what a lost answer looks like, and changes nothing. Another part
        for the same step would be two messages for one release, and ends the run.
        """
        step = self.plan.steps[ask.step]
        before = self._parts.get(ask.party)
        wrong = fault(step, ask.part, ask.party)
        if before is not None and before != ask.part:
            wrong = "sent two different messages"
        if wrong is not None:
            self._end(f"Party {ask.party!r} {wrong} ({shown_step(self.plan, ask.step)}).")
            return
        if before is not None:
            return
        self._parts[ask.party] = ask.part
        self._since = time.monotonic()
        if len(self._parts) + len(self._dropped) == len(self.plan.parties):
            self._complete()

    def _complete(self) -> None:
        """Finish the step that is next, whose parts are all there but those of dropouts."""
        plan, number = self.plan, len(self._results)
        there = [(i, name) for i, name in enumerate(plan.parties) if name not in self._dropped]
        if plan.steps[number].kind is StepKind.FINISH:
            for i, name in there:
                if self._journal.get(self.run, _PART, i) is None:
                    self._journal.keep(self.run, _PART, i, self._parts[name])
        result = combined(
            plan,
            number,
            [self._parts[name] for _, name in there],
            run=self.run,
            missing=[i for i, name in enumerate(plan.parties) if name in self._dropped],
        )
        # before any party can see it: after a crash the same result is given again
        self._journal.keep(self.run, _RESULT, number, result)
        self._results.append(result)
        self._parts, self._since = {}, time.monotonic()
        self._changed.notify_all()

    def _left(self) -> float:
        """Return the seconds that are left of the patience with the step that is next."""
        return max(0.0, self._since + self.patience - time.monotonic())

    def _give_up(self) -> None:
        """Go on without those whose part is missing, if the noise has room; or end the run."""
        known = {*self._parts, *self._dropped}
        missing = [name for name in self.plan.parties if name not in known]
        number = len(self._results)
        may_drop = number < len(self.plan.steps) and self.plan.steps[number].kind in _GO_ON
        if may_drop and self._parts and len(self._dropped) + len(missing) <= self.plan.dropouts:
            for name in missing:
                # first: after a crash nobody who was left out comes back into another sum
                self._journal.keep(self.run, _DROPPED, self.plan.parties.index(name), b"")
                self._dropped.add(name)
            self._complete()
            return
        who = ("Party " if len(missing) == 1 else "Parties ") + ", ".join(map(repr, missing))
        step = shown_step(self.plan, len(self._results))
        self._end(f"{who} sent nothing for {self.patience:g} s ({step}).")

    def _end(self, reason: str) -> None:
        """End the run for all parties with one sentence, once; a finished run stays finished."""
        if self._ended is None and not self.finished:
            self._journal.keep(self.run, _ENDED, 0, reason.encode())
            self._ended = reason
        # who has yet to be told has the patience once more
        self._since = time.monotonic()
        self._changed.notify_all()
