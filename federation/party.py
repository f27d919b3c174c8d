"""A party takes part: the solver that one process would run, on its own rows, through its ledger.

Before the first round the party decides by its own policy and pays for the whole plan. Then, for
every release: reserve, draw from its own sampler, record, commit, send. What it is asked never
enters: it releases what the plan says, in the plan's order, whatever comes back.

After a crash the same call goes on where it broke off. Messages that were recorded are sent again
as they were; the ledger says how many left, and has a digest of each: a journal that knows fewer,
or others, is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import numpy as np

from ..accounting.ledger import Ledger
from ..accounting.ledger.proofs import certificate_of
from ..mechanisms.collectives import Ends, mean_of
from ..mechanisms.curators import Curator
from ..mechanisms.errors import DpledgerError, InvalidParameter
from ..mechanisms.local_columns import LocalColumns
from ..mechanisms.local_data import LocalDataset
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sampling import Sampler
from ..mechanisms.share_data import ShareOfSum
from ..solvers.solver import PublicModel
from .columns import ColumnsCurator
from .journal import FINISH, MESSAGE, RESULT, Journal, JournalError, RecordedCurator
from .plan import PROTOCOL, FederatedPlan
from .policy import Policy, unaffordable
from .prepaid import PrepaidRun
from .protocol import (
    Answer,
    Ask,
    Bye,
    Ended,
    FederationEnded,
    HandedIn,
    Hello,
    Reply,
    Request,
    Welcome,
    checked_result,
    decoded_row,
    encoded_row,
)
from .summed import SummedCurator

__all__ = ["Link", "Party", "TookPart", "take_part"]

_RUN, _LEFT = "run", "left"
"""Kinds of entry in a party's journal: the names of the runs begun under a plan's subject; that it
left a run which came to its end."""


class Link(Protocol):
    """A party's way to the coordinator."""

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        """Return the answer, however often the request has to be sent; it may take long.

        Raises `FederationEnded` where the coordinator is gone.

        Args:
            request: `Hello` first, then one `Ask` for each step in order.
            brief: whether to give up at once where no coordinator can be reached.
        """
        ...

    def leave(self, bye: Bye) -> None:
        """Say that this party asks no more; once, whether or not that arrives."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Party:
    """Who takes part.

    Args:
        name: in the plan.
        dataset: its records, under the plan's shape; `ShareOfSum` where sums alone are seen,
            `LocalColumns` where every party holds columns.
        sampler: of its noise; after a crash of a seeded run, a fresh one of the same seed.
        ledger: that pays.
        journal: what it sent and received.
        policy: what it takes part in.
    """

    name: str
    dataset: LocalDataset | ShareOfSum | LocalColumns
    sampler: Sampler
    ledger: Ledger
    journal: Journal
    policy: Policy


@dataclass(frozen=True, slots=True, eq=False)
class TookPart:
    """What came of it: the run's name in the ledger, the public state, the certificate.

    Args:
        run: "federation " and the run's name.
        state: the solver's public state after the last round.
        certificate: of this party's own events, as JSON.
    """

    run: str
    state: PublicModel
    certificate: bytes


def take_part(
    party: Party,
    plan: FederatedPlan,
    link: Link,
    *,
    observe: Callable[[int, Any], None] | None = None,
) -> TookPart:
    """Run a party's part of a plan to its end and return what came of it.

    Args:
        party: who.
        plan: as the party derives it.
        link: to the coordinator.
        observe: called after every round with its number and the public state.

    Raises `FederationEnded` with the sentence that all parties get; `JournalError` before anything
    is sent where the journal and the ledger disagree; what the ledger raises.
    """
    if party.dataset.shape != plan.seen_shape or party.dataset.parties != (party.name,):
        raise InvalidParameter(
            "dataset", party.dataset.parties, f"that of {party.name!r}, under the plan's shape"
        )
    run = _run_of(party, plan, link)
    try:
        took = _to_the_end(party, plan, run, link, observe)
    finally:
        link.leave(Bye(run, party.name))
    if party.journal.get(run, _LEFT, 0) is None:
        party.journal.keep(run, _LEFT, 0, b"")
    return took


def _to_the_end(
    party: Party,
    plan: FederatedPlan,
    run: str,
    link: Link,
    observe: Callable[[int, Any], None] | None,
) -> TookPart:
    """Walk through all steps of a run: agree, pay, the solver's collectives, finish.

    A run that is paid for was agreed to before the crash: the policy is not asked a second time.
    """
    name = f"federation {run}"
    steps = _Steps(party, plan, link, run)
    # of a crash before the payment the ledger may know the run's name alone
    is_paid = any(found.run == name and found.reservations for found in party.ledger.runs())
    steps.agree(None if is_paid else _objection(party, plan))
    paid = steps.paid(name, plan)
    curator = _curator(paid, party, plan, run, steps)
    solver: Any = plan.solver  # for the kind of data that the plan's shape is of
    state: PublicModel = solver.solve(party.dataset, curator, observe=observe)
    handed_in = party.journal.get(run, FINISH, 0)
    if handed_in is None:  # once: a ledger that goes on with other runs has another head
        certificate = certificate_of(party.ledger, delta=plan.delta, run=name)
        document = certificate.given(*plan.assumptions).to_json_bytes()
        handed_in = msgspec.msgpack.encode(HandedIn(document, encoded_row(state.model)))
        party.journal.keep(run, FINISH, 0, handed_in)
    steps.ask(handed_in)
    return TookPart(name, state, msgspec.msgpack.decode(handed_in, type=HandedIn).certificate)


def _curator(
    paid: PrepaidRun, party: Party, plan: FederatedPlan, run: str, steps: "_Steps"
) -> Curator:
    """Return what a party releases through: every message of its own, or its part of sums."""
    if plan.senders:
        return ColumnsCurator(
            paid, party.sampler, party.journal, run, senders=plan.senders, share=steps.ask
        )
    if plan.summed is None:
        return PartyCurator(paid, party, run, FederatedCollectives(steps))
    return SummedCurator(
        paid,
        party.sampler,
        party.journal,
        run,
        terms=plan.summed,
        parties=plan.parties,
        party=party.name,
        exchange=steps.ask,
    )


def _objection(party: Party, plan: FederatedPlan) -> str | None:
    """Return why this party says no, by its policy or its budget; None where it takes part."""
    return party.policy.objection(plan) or unaffordable(plan, party.ledger)


def _run_of(party: Party, plan: FederatedPlan, link: Link) -> str:
    """Return the run that the coordinator is at, or, where it is gone, one that is over here.

    A party that was killed after its last step, before it noted that it left, has nothing to ask:
    its coordinator may be gone, and it does not wait for one.
    """
    journal, begun = party.journal, party.journal.count(plan.subject, _RUN)
    known = [journal.get(plan.subject, _RUN, k) or b"" for k in range(begun)]
    last = known[-1].decode() if known else ""
    over = bool(known) and journal.count(last, RESULT) == len(plan.steps)
    owes_nothing = over and journal.get(last, _LEFT, 0) is None
    try:
        hello = Hello(PROTOCOL, party.name, plan.subject)
        run = _welcomed(link.send(hello, brief=owes_nothing))
    except FederationEnded:
        if over:
            return last
        raise
    if run.encode() not in known:
        journal.keep(plan.subject, _RUN, begun, run.encode())
    return run


def _welcomed(reply: Reply) -> str:
    """Return the run's name from the answer to a greeting, or raise `FederationEnded`."""
    match reply:
        case Welcome(run=run):
            return run
        case Ended(reason=reason):
            raise FederationEnded(reason)
        case _:
            raise FederationEnded("The coordinator did not answer a greeting with a run.")


class _Steps:
    """A party's walk through the steps of a run; a step that was answered is not asked again.

    Args:
        party: whose journal keeps the results.
        plan: whose steps are walked through in order.
        link: to the coordinator.
        run: the run's name.
    """

    def __init__(self, party: Party, plan: FederatedPlan, link: Link, run: str) -> None:
        self.party, self.plan, self.run = party, plan, run
        self._link, self._next = link, 0

    def agree(self, objection: str | None) -> None:
        """Say yes, or a reason; return once everybody said yes.

        A party that says no takes no part, whatever is answered: `FederationEnded`.
        """
        self.ask((objection or "").encode())
        if objection is not None:
            raise FederationEnded(f"Party {self.party.name!r} does not take part: {objection}")

    def paid(self, name: str, plan: FederatedPlan) -> PrepaidRun:
        """Pay, and return the sink that was paid for once everybody has.

        Before anything leaves, the ledger's messages and the journal's are counted. A journal with
        fewer would draw fresh noise for a release that left already, which costs twice what the
        ledger says: `JournalError`. One more in the journal is a message recorded and not yet
        committed. That they are the same messages is compared as each is sent again.
        """
        ledger, provenance = self.party.ledger, self.party.sampler.provenance
        try:
            run = ledger.run(name, configuration_hash=plan.subject, plan=plan.events)
            paid = PrepaidRun(run, plan.events, provenance, resumed=True)
        except DpledgerError as error:
            # the others learn that it did not, and not what the ledger holds
            self.ask(f"its ledger refused ({type(error).__name__})".encode())
            raise
        recorded, left = self.party.journal.count(self.run, MESSAGE), paid.left
        if not left <= recorded <= left + 1:
            raise JournalError(
                f"journal={str(self.party.journal.path)!r} must hold the {left} messages that "
                f"left by the ledger, or one more; it holds {recorded}. Nothing was sent: one of "
                "the two files is an older copy."
            )
        self.ask(b"")
        return paid

    def ask(self, part: bytes) -> bytes:
        """Return what the next step comes to, from the journal if it was answered before.

        Args:
            part: this party's bytes for the step; not sent where the answer is known.

        The result is in the journal before the solver sees it, so that a restart computes the
        same.
        """
        number, journal = self._next, self.party.journal
        self._next += 1
        kept = journal.get(self.run, RESULT, number)
        if kept is not None:
            return kept
        match self._link.send(Ask(self.run, self.party.name, number, part)):
            case Answer(step=step, result=result) if step == number:
                name = self.party.name
                sound = checked_result(self.plan, number, name, result)
                journal.keep(self.run, RESULT, number, sound)
                return result
            case Ended(reason=reason):
                raise FederationEnded(reason)
            case _:
                raise FederationEnded(f"The coordinator answered another step than {number}.")


class FederatedCollectives:
    """The collectives of a federation: a row goes out, a sum or the neighbours' rows come back."""

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps

    def mean(self, messages: FloatArray, weights: FloatArray | None = None) -> FloatArray:
        """Return the mean over all parties; see `Collectives.mean`.

        Args:
            messages: of shape (1, width), this party's row, noise included.
            weights: public; their sum divides in place of the number of parties.
        """
        total = decoded_row(self._steps.ask(encoded_row(messages)))[0]
        return mean_of(total, len(self._steps.plan.parties), weights)

    def exchange(self, messages: FloatArray, ends: Ends) -> FloatArray:
        """Return the own row and the neighbours', others 0; see `Collectives.exchange`.

        Args:
            messages: of shape (1, width).
            ends: of the graph's edges; not used here, as the plan holds the neighbours already.

        Returns rows of shape (parties, width).
        """
        plan, me = self._steps.plan, self._steps.party.name
        number, width = plan.parties.index(me), messages.shape[-1]
        came = np.frombuffer(self._steps.ask(encoded_row(messages)), dtype="<f8")
        rows = np.zeros((len(plan.parties), width))
        rows[list(plan.neighbours[number])] = came.reshape(-1, width)
        rows[number] = messages[0]
        return rows


class PartyCurator(RecordedCurator):
    """Releases the party's own rows; each message is recorded before it is committed and sent."""

    def __init__(
        self, paid: PrepaidRun, party: Party, run: str, collectives: FederatedCollectives
    ) -> None:
        super().__init__(paid, party.sampler, party.journal, run)
        self.collectives = collectives
