"""What the rows of a ledger add up to: runs, open reservations, what is spent, what is allowed.

A state is a pure function of the rows: it is made by `apply`, row by row, when a ledger is opened
or verified, and by `check` and `take` when one is appended. So whoever recomputes it from the file
gets the same budget, and a row that should have been refused is found later as tampering.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from flint import arb

from ...mechanisms.adjacency import Adjacency, require_same_adjacency
from ...mechanisms.errors import DpledgerError, InvalidParameter, Number, require_open_unit
from ...mechanisms.events import Event
from ...mechanisms.protocols import Provenance
from ..accountants import tightest_pricing
from ..composition import Account, Composition, UnpricedMechanism
from ..gaussian.exact import epsilon_from_delta
from ..numbers.enclosure import Enclosure
from ..numbers.grade import Grade
from ..numbers.notions import Rdp
from ..renyi.accountant import WorstOfRuns
from .budget import Budget
from .rows import (
    GENESIS,
    BudgetSet,
    Committed,
    Entry,
    LedgerError,
    Library,
    MessageLeft,
    Reserved,
    Row,
    RunOpened,
    TamperedLedger,
    decoded,
)

_NO_FILTER = (
    "under a budget in mu² (an Rdp budget, of one fixed order, pays for every kind; "
    "so does (epsilon, delta) for the plan of the ledger's first run)"
)

_MOST_ACCOUNTS = 1 << 10
"""Sums of one account of each run that are priced one by one, each in a few milliseconds."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, eq=False, slots=True)
class Odometer:
    """What has been spent so far, by the record that paid most.

    `grade` is enclosed where all events of a plan happened, in whatever order, that stood before
    the first reservation: what is still to come is then the same whatever was released. Otherwise
    it is an estimate. That a run kept to its plan so far is not enough: who reads the odometer
    after every event and stops when he likes what came out has a sum at a random time, and no sum
    of costs is a guarantee there (Rogers, Roth, Ullman, Vadhan 2016). What does hold at any
    stopping time: the budget of a filter (zCDP: Whitehouse, Ramdas, Rogers, Wu 2023; Rényi of one
    order: Feldman, Zrnic 2021), and the cost of a whole plan, of which stopping is post-processing.

    For the same reason a run that announced its plan in time and then stays idle, one that was
    refused for want of budget among them, leaves the reading of the whole ledger an estimate:
    whether it comes after all may depend on what others released. Readings of single runs do not
    suffer.

    Args:
        mu_squared: encloses what the events cost if their number and noise were fixed in advance;
            infinite where not only Gaussian steps ran.
        accounts: where not only Gaussian steps ran, what a record may have paid in all; else empty.
        runs: what it may have paid in each run, where that is too much to list in all.
        grade: enclosed or estimate, as above.
        adjacency: the relation of all events; None where there are none.
        budget: what may be spent in all, if there is one.
        unprotected: why something was released without a mechanism.
    """

    mu_squared: Enclosure
    accounts: tuple[Account, ...]
    grade: Grade
    adjacency: Adjacency | None
    budget: Budget | None
    unprotected: tuple[str, ...]
    runs: tuple[tuple[Account, ...], ...] = ()

    @property
    def is_finding(self) -> bool:
        """Whether something was released without a mechanism."""
        return bool(self.unprotected)

    def epsilon(self, delta: Number) -> Enclosure:
        """Return epsilon at `delta`, in (0, 1), of this reading.

        Raises `UnpricedMechanism` where no accountant knows a mechanism under its relation.
        """
        if self.runs and not self.unprotected:
            require_open_unit("delta", delta)
            return Enclosure(arb(0), WorstOfRuns(self.runs).epsilon_upper(delta))
        if not self.accounts or self.unprotected:
            return epsilon_from_delta(mu_squared=self.mu_squared, delta=delta)
        require_open_unit("delta", delta)
        accountant = tightest_pricing(self.accounts)
        found = [accountant.epsilon_of(account, delta) for account in self.accounts]
        # whether a record paid the dearest sum of accounts is not known, but all paid the least one
        return Enclosure(min(e.lower for e in found), max(e.upper for e in found))


@dataclass(slots=True)
class RunState:
    """A run so far.

    Args:
        run: its name.
        opening: what its opening row says.
        opened: the number of that row.
        plan: counts the planned events that have not happened yet.
        composition: what its records pay.
        meter: the same as the budget counts.
        departed: whether an event happened that was not planned, or more often than planned.
        imported: whether something of it happened elsewhere, before it was recorded here.
        events, reservations, committed: how many of each.
    """

    run: str
    opening: RunOpened
    opened: int
    plan: Counter[Event]
    composition: Composition
    meter: Composition
    """What the run costs as the budget counts; the composition itself where that counts mu²."""
    departed: bool = False
    imported: bool = False
    events: int = 0
    reservations: int = 0
    committed: int = 0

    def reserve(self, events: Sequence[Event]) -> None:
        """Charge events, and note whether they were planned."""
        self.composition.extend(events)
        if self.meter is not self.composition:
            self.meter.extend(events)
        if self.opening.plan is not None:
            for event in events:
                self.plan[event] -= 1
                self.departed |= self.plan[event] < 0
        self.events += len(events)
        self.reservations += 1

    @property
    def kept_to_plan(self) -> bool:
        """Whether there was a plan and every event so far was in it."""
        return self.opening.plan is not None and not self.departed

    @property
    def fixed_in_advance(self) -> bool:
        """Whether what happened, and when it ended, depends on nothing that was released."""
        return self.kept_to_plan and self.events == len(self.opening.plan or ())


@dataclass(slots=True)
class OpenReservation:
    """A reservation some of whose messages have not left.

    Args:
        run: whose it is.
        events: how many it has.
        left: how many of their messages are known to have left, the first ones.
    """

    run: str
    events: int
    left: int = 0


class LedgerState:
    """The sum of rows applied in order; the same rows always give the same state.

    Party names belong to a run: another run may deal the records out otherwise. So the most that a
    record can pay in all is the sum over runs of the most that one pays in each.
    """

    def __init__(self, library: Library) -> None:
        self.library = library
        self.whole = True
        """Whether no row was taken in by half: an interrupt may come between any two lines."""
        self.sequence = 0
        self.head = GENESIS
        self.budget: Budget | None = None
        self.runs: dict[str, RunState] = {}
        self.open: dict[int, OpenReservation] = {}
        self.seeds: set[tuple[str, int]] = set()
        """Streams of noise that were drawn from and that somebody can draw again."""
        self._first_reservation: int | None = None
        self._payer: str | None = None
        """The run whose plan was paid for as a whole, by all of the budget."""
        self._spent = Fraction(0)

    def apply(self, row: Row) -> Entry:
        """Take in the next row, read back from where it is kept, and return what it says.

        Raises `TamperedLedger` if it does not follow, or says what the ledger would have refused.
        """
        row.require_after(self.sequence, self.head)
        entry = decoded(row, self.library)
        try:
            self.check(row.run, entry)
        except DpledgerError as error:
            raise TamperedLedger(
                f"Row {row.sequence}", "an entry that is allowed", error
            ) from error
        self.take(row, entry)
        return entry

    def check(self, run: str, entry: Entry) -> None:
        """Raise unless `entry` may come next; change nothing.

        Args:
            run: whose entry it is; empty for a budget.
            entry: what is to be appended.

        Raises what `Run.reserve`, `Ledger.set_budget` and `Run.commit` raise.
        """
        match entry:
            case BudgetSet():
                self._check_budget()
            case RunOpened():
                if not run or run in self.runs:
                    raise InvalidParameter("run", run, "a new name")
            case Reserved():
                self._check_provenance(entry.provenance)
                self._check_reservation(run, entry.events)
            case Committed():
                self._require_open(run, entry.reservation)
            case MessageLeft():
                found = self._require_open(run, entry.reservation)
                if type(entry.event) is not int or entry.event != found.left:
                    raise InvalidParameter("event", entry.event, f"the next to leave: {found.left}")
                if not _SHA256.fullmatch(entry.sha256):
                    raise InvalidParameter("sha256", entry.sha256, "64 hexadecimal digits")

    def take(self, row: Row, entry: Entry) -> None:
        """Take in the next row, whose entry has been checked; nothing where it is in already.

        The handler of a signal, which may come between any two lines, makes a sum of its own while
        this one is not whole, and has taken in rows of others where it is.
        """
        self.whole = False
        if row.sequence <= self.sequence:
            self.whole = True
            return
        match entry:
            case BudgetSet():
                self._set_budget(entry.budget)
            case RunOpened():
                self.runs[row.run] = RunState(
                    row.run,
                    entry,
                    row.sequence,
                    Counter(entry.plan or ()),
                    *_compositions(self.budget),
                )
            case Reserved():
                self._reserve(row, entry.events)
                self.runs[row.run].imported |= entry.provenance.is_history
                if entry.provenance.stream is not None:
                    self.seeds.add(entry.provenance.stream)
            case Committed():
                self._close(entry.reservation)
            case MessageLeft():
                found = self.open[entry.reservation]
                found.left += 1
                if found.left == found.events:
                    self._close(entry.reservation)
        self.sequence, self.head = row.sequence, row.hash
        self.whole = True

    def _require_open(self, run: str, reservation: int) -> OpenReservation:
        """Return a run's open reservation; raise `InvalidParameter` where it is none."""
        # 7.0 would find the reservation 7 as well
        found = self.open.get(reservation) if type(reservation) is int else None
        if found is None or found.run != run:
            raise InvalidParameter("token", reservation, f"an open reservation of run {run!r}")
        return found

    def _close(self, reservation: int) -> None:
        """Count a reservation as committed: all of its messages have left."""
        self.runs[self.open.pop(reservation).run].committed += 1

    def odometer(self, run: str | None = None) -> Odometer:
        """Return the reading of one run, or of the whole ledger.

        Args:
            run: its name; None for all runs, whose costs add up whatever their parties are called.

        Raises `AdjacencyMismatch` if the runs speak of several relations, `InvalidParameter` for an
        unknown run.
        """
        chosen = list(self.runs.values()) if run is None else [self._run(run)]
        adjacency = self.budget.adjacency if self.budget else None
        for state in chosen:
            if state.composition.adjacency is not None:
                found = state.composition.adjacency
                adjacency = require_same_adjacency(adjacency or found, found)
        compositions = [state.composition for state in chosen]
        others = any(account.others for c in compositions for _, account in c.accounts)
        each = [[account for _, account in c.accounts] for c in compositions] if others else []
        accounts = _worst_accounts(each)
        reasons = (reason for composition in compositions for reason in composition.unprotected)
        # of two plans that stood before, whether the second comes may depend on the first
        begun = [
            s for s in chosen if s.events or (not run and s.opening.plan and self._precedes(s))
        ]
        fixed = all(s.fixed_in_advance and (run or self._precedes(s)) for s in begun)
        return Odometer(
            mu_squared=Enclosure.of(inf) if others else _summed(compositions),
            accounts=accounts or (),
            grade=Grade.ENCLOSED if fixed else Grade.ESTIMATE,
            adjacency=adjacency,
            budget=self.budget,
            unprotected=tuple(dict.fromkeys(reasons)),
            runs=tuple(map(tuple, each)) if accounts is None else (),
        )

    @property
    def filtered(self) -> Budget | None:
        """The budget, where every reservation so far had to pass its filter.

        None without one, and where all of it went to the plan of the first run: events of that plan
        are bounded by the plan, and by nothing that a filter adds up.
        """
        return self.budget if self._payer is None else None

    def covered_by(self, joint: Composition) -> bool:
        """Return whether some record of `joint` pays the most that any can have paid in all.

        `joint` prices all runs' events together by their parties' names; a record that bears one
        name in one run and another in the next may have paid more than any name says. So may it
        where the dearest sums are too many to list: whoever is dearest changes from run to run.
        """
        dearest = [Account()]
        for state in self.runs.values():
            own = _dearest([account for _, account in state.composition.accounts])
            if len(dearest) * len(own) > _MOST_ACCOUNTS:
                return False
            dearest = _dearest([left + right for left in dearest for right in own])
        payers = [account for _, account in joint.accounts]
        return all(any(payer.covers(account) for payer in payers) for account in dearest)

    def _precedes(self, state: RunState) -> bool:
        """Whether a run was opened before anything was released that it could depend on."""
        return self._first_reservation is None or state.opened < self._first_reservation

    def _run(self, run: str) -> RunState:
        if run not in self.runs:
            raise InvalidParameter("run", run, f"one of {sorted(self.runs)}")
        return self.runs[run]

    def _set_budget(self, budget: Budget) -> None:
        """Keep the budget; runs that are open get meters that count in its notion."""
        self.budget = budget
        for state in self.runs.values():
            state.composition, state.meter = _compositions(budget)

    def _reserve(self, row: Row, events: Sequence[Event]) -> None:
        """Charge a reservation, and keep the sum over runs of what the budget's meter counts.

        The sum is kept exactly, and updated by the run that grew: a reservation costs the same
        however many runs there are.
        """
        state = self.runs[row.run]
        if self.budget is not None and self._by_plan(self.budget, state):
            self._payer = row.run
        if self.budget is None or self._payer is not None:
            state.reserve(events)
        else:
            self._spent -= Fraction(state.meter.spent)
            state.reserve(events)
            self._spent += Fraction(state.meter.spent)
        self.open[row.sequence] = OpenReservation(row.run, len(events))
        self._first_reservation = self._first_reservation or row.sequence

    def _check_budget(self) -> None:
        """Raise `LedgerError` for a second budget, or one after a reservation."""
        if self.budget is not None:
            raise LedgerError(f"Expected no budget yet instead got {self.budget}.")
        if self._first_reservation is not None:
            raise LedgerError(
                "Expected a budget before the first reservation: one that is set later may depend "
                f"on what row {self._first_reservation} released."
            )

    def _check_provenance(self, provenance: Provenance) -> None:
        """Raise `LedgerError` for a simulation on a ledger with a budget."""
        if self.budget is not None and not provenance.is_release:
            what = f"{provenance.sampler}, trials={provenance.trials}"
            raise LedgerError(
                f"Expected a release instead got a simulation ({what}): a budget pays for one "
                "message with ideal noise for each event; simulate on a ledger without a budget."
            )

    def _check_reservation(self, run: str, events: Sequence[Event]) -> None:
        """Raise unless the events can be charged: by the rule of the ledger that applies.

        Without a budget every event that composes may come. With one, either a filter adds up what
        every run spends and refuses what would cross it, or the first run's whole plan took all of
        the budget, and only what is left of that plan may come.
        """
        if not events:
            raise InvalidParameter("events", events, "at least one")
        state = self._run(run)
        if self.budget is None:
            state.composition.check(events)
            return
        if self._by_plan(self.budget, state):
            self._check_plan(self.budget, state, events)
            return
        self._require_filter(self.budget, state.meter, events)

    def check_new_run(self, plan: Sequence[Event]) -> None:
        """Raise what a new run is refused with whose first reservation is its whole plan."""
        if not plan:
            raise InvalidParameter("events", plan, "at least one")
        if self.budget is None:
            Composition().check(plan)
        elif self._payer is not None:
            self._check_plan(self.budget, None, plan)
        elif self._first_reservation is None and not self.budget.adds_up(plan):
            self.budget.require_plan(plan)
        else:
            self._require_filter(self.budget, self.budget.meter(), plan)

    def _require_filter(self, budget: Budget, meter: Composition, events: Sequence[Event]) -> None:
        """Raise `BudgetExceeded` if the events would cross the budget, `UnpricedMechanism` if it
        cannot count them.

        Args:
            budget: of the ledger.
            meter: of the run, as it stands.
            events: to be charged.
        """
        try:
            own, after = meter.spent, meter.spent_after(events)
        except UnpricedMechanism as error:
            if isinstance(budget.notion, Rdp):
                raise
            raise UnpricedMechanism(error.mechanism, _NO_FILTER) from None
        budget.require(spent=self._spent, after=self._spent - Fraction(own) + after)

    def _by_plan(self, budget: Budget, state: RunState) -> bool:
        """Whether a plan is paid for as a whole: the ledger's first, of what no filter can add."""
        if self._first_reservation is not None:
            return self._payer is not None
        plan = state.opening.plan
        return plan is not None and not budget.adds_up(plan)

    def _check_plan(self, budget: Budget, state: RunState | None, events: Sequence[Event]) -> None:
        """Raise `LedgerError` for an event that is not left in the plan which took all of the
        budget.

        Args:
            budget: of the ledger.
            state: of the run; None for a run that is not open yet.
            events: to be charged.
        """
        own = None if state is None else state.run
        payer = self._payer or own
        left = state.plan if state is not None and own == payer else Counter[Event]()
        for event, times in Counter(events).items():
            if left[event] < times:
                where = f"{type(event.mechanism).__name__}, {event.context.release!r}"
                raise LedgerError(
                    f"Expected an event left in the plan of run {payer!r}, for which all of the "
                    f"budget is taken, instead got another ({where}): not all mechanisms of that "
                    "plan add up in the budget's filter, so that it could be paid for as a whole "
                    "alone. A budget of Rényi DP pays for several such runs. Nothing was released."
                )
        if self._payer is None and state is not None:
            budget.require_plan(state.opening.plan or ())


def _compositions(budget: Budget | None) -> tuple[Composition, Composition]:
    """Return an empty composition and meter of a run."""
    if budget is None or not isinstance(budget.notion, Rdp):
        composition = Composition(budget.adjacency if budget else None)
        return composition, composition
    return Composition(budget.adjacency), budget.meter()


def _dearest(accounts: Sequence[Account]) -> list[Account]:
    """Return the accounts that no other one covers."""
    kept: list[Account] = []
    for account in accounts:
        if not any(other.covers(account) for other in kept):
            kept = [other for other in kept if not account.covers(other)] + [account]
    return kept


def _worst_accounts(runs: Sequence[Sequence[Account]]) -> tuple[Account, ...] | None:
    """Return what records may pay in all, whatever party they belong to in each run.

    One account of each run, in every combination; accounts of equal cost count once. None where
    these are more than `_MOST_ACCOUNTS`.
    """
    found: dict[object, Account] = {}
    for run in runs:
        own = {account.key: account for account in run}.values()
        if max(len(found), 1) * len(own) > _MOST_ACCOUNTS:
            return None
        sums = [left + right for left in found.values() or [Account()] for right in own]
        found = {account.key: account for account in sums}
    return tuple(found.values())


def _summed(compositions: Sequence[Composition]) -> Enclosure:
    """Enclose what the record pays that pays most, whatever party it belongs to in each run."""
    if len(compositions) == 1:
        return compositions[0].mu_squared
    spent = [composition.spent for composition in compositions]
    finite = [cost for cost in spent if isinstance(cost, Fraction)]
    if len(finite) < len(spent):
        return Enclosure.of(inf)
    # the worst record of one run pays at least what every record pays in the others
    accounts = [[account.least for _, account in c.accounts] for c in compositions]
    everywhere = sum((least for least, *_ in accounts), Fraction(0))
    lower = max((max(found) - found[0] + everywhere for found in accounts), default=Fraction(0))
    return Enclosure(Enclosure.of(lower).lower, Enclosure.of(sum(finite, Fraction(0))).upper)
