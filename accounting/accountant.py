"""The interface of accountants, and what all of them do alike.

An accountant takes in events, prices what one record pays, and answers for the record that pays
most. Laws, which hold for every accountant and are tested over all of them: an answer is an upper
bound (the upper end of an enclosure); the order of events does not matter; more steps, less noise,
a higher sampling rate or a smaller delta never lower epsilon; what cannot be priced is an error
that names it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import InvalidParameter, Number, named, require_open_unit
from ..mechanisms.events import Event, Mechanism
from ..mechanisms.protocols import FloatArray
from .composition import Account, Composition, UnpricedMechanism, costly_mechanisms
from .numbers.enclosure import Enclosure, maximum
from .numbers.grade import Grade
from .renyi.amplification import in_groups, require_amplification
from .renyi.rdp import is_sampled

CURVES = (Grade.ENCLOSED, Grade.FAST)
"""Grades in which a whole curve is priced; a proof is of one point."""


@dataclass(frozen=True, eq=False, slots=True)
class PrivacyCurve:
    """Points of the privacy curve: (epsilon[i], delta[i])-DP holds for every i, with this grade."""

    grade: Grade
    epsilon: FloatArray
    delta: FloatArray


class Accountant(ABC):
    """What events cost; it only grows. `adjacency` as for `Composition`."""

    name: ClassVar[str]
    """A word, for tables."""
    method: ClassVar[str]
    """How it gets its answers, for reports."""
    prices: ClassVar[str]
    """The mechanisms it knows, for error messages."""
    grade: ClassVar[Grade] = Grade.ENCLOSED
    counts_members: ClassVar[bool] = False
    """Whether it prices how many of a group a batch holds, and not only whether it holds any."""

    def __init__(self, adjacency: Adjacency | None = None) -> None:
        self._composition = Composition(adjacency)

    @classmethod
    def over(cls, composition: Composition) -> Self:
        """Return an accountant of the usual settings; see `with_composition`."""
        return cls().with_composition(composition)

    def with_composition(self, composition: Composition) -> Self:
        """Return an accountant of these settings that goes on with a composition.

        Raises `UnpricedMechanism` if that holds a mechanism which it cannot price.
        """
        self.require_accounts(account for _, account in composition.accounts)
        accountant = copy(self)
        accountant._composition = composition
        return accountant

    @property
    def adjacency(self) -> Adjacency | None:
        """The relation that all events speak of; None before the first."""
        return self._composition.adjacency

    @property
    def consulted(self) -> tuple[type["Accountant"], ...]:
        """The accountants on whose theorems the answers given so far rest."""
        return (type(self),)

    def supports(self, event: Event) -> bool:
        """Return whether `add` would price this event."""
        try:
            self.require(event)
        except UnpricedMechanism:
            return False
        return True

    def require(self, event: Event) -> None:
        """Raise `UnpricedMechanism`, which names it, for a mechanism that cannot be priced."""
        for mechanism in costly_mechanisms(event):
            self._require(mechanism)

    def require_accounts(self, accounts: Iterable[Account]) -> None:
        """Raise `UnpricedMechanism` if an account holds a mechanism that cannot be priced."""
        for account in accounts:
            for mechanism in account.others:
                self._require(mechanism)

    def add(self, event: Event) -> None:
        """Charge one event.

        Raises `UnpricedMechanism`, and what `Composition.add` does; then nothing is charged.
        """
        self.require(event)
        self._composition.add(event)

    def extend(self, events: Iterable[Event]) -> None:
        """Charge events in order."""
        for event in events:
            self.add(event)

    def epsilon(self, delta: Number, *, group: int = 1) -> Enclosure:
        """Return epsilon at `delta`, in (0, 1), of the `group` records that pay most.

        They are all there or all not, as one person's are; see `in_groups`.
        """
        return maximum(found for _, found in self.epsilon_by_party(delta, group=group))

    def delta(self, epsilon: Number, *, group: int = 1) -> Enclosure:
        """Return delta at `epsilon`, in [0, inf], of the `group` records that pay most."""
        return maximum(found for _, found in self.delta_by_party(epsilon, group=group))

    def epsilon_by_party(
        self, delta: Number, *, group: int = 1
    ) -> tuple[tuple[tuple[str, ...], Enclosure], ...]:
        """Return epsilon for each set of parties that pay alike; () is a record of no party."""
        require_open_unit("delta", delta)
        return self._by_party(lambda account: self.epsilon_of(account, delta), group)

    def delta_by_party(
        self, epsilon: Number, *, group: int = 1
    ) -> tuple[tuple[tuple[str, ...], Enclosure], ...]:
        """Return delta for each set of parties that pay alike; () is a record of no party."""
        if isinstance(epsilon, bool) or not epsilon >= 0:
            raise InvalidParameter("epsilon", epsilon, "in [0, inf]")
        return self._by_party(lambda account: self.delta_of(account, epsilon), group)

    def curve(
        self, deltas: ArrayLike, *, grade: Grade = Grade.ENCLOSED, group: int = 1
    ) -> PrivacyCurve:
        """Return the curve at `deltas`, array of shape (n,) in (0, 1): epsilons rounded up.

        The fast grade is at least that; it differs only where an accountant has a faster way.
        `group` as in `epsilon`.
        """
        grade = named("grade", grade, CURVES)
        given = np.asarray(deltas, dtype=np.float64)
        if grade is Grade.ENCLOSED:
            found = [self.epsilon(float(delta), group=group) for delta in given]
            uppers = np.array([epsilon.upper_float for epsilon in found])
        else:
            uppers = self._fast(lambda account: self.fast_epsilons_of(account, given), group)
        return PrivacyCurve(grade, uppers, given)

    def curve_at(
        self, epsilons: ArrayLike, *, grade: Grade = Grade.ENCLOSED, group: int = 1
    ) -> PrivacyCurve:
        """Return the curve at `epsilons`, array of shape (n,) in [0, inf]: deltas rounded up."""
        grade = named("grade", grade, CURVES)
        given = np.asarray(epsilons, dtype=np.float64)
        if grade is Grade.ENCLOSED:
            found = [self.delta(float(epsilon), group=group) for epsilon in given]
            uppers = np.array([delta.upper_float for delta in found])
        else:
            uppers = self._fast(lambda account: self.fast_deltas_of(account, given), group)
        return PrivacyCurve(grade, given, uppers)

    def _fast(self, answer: Callable[[Account], FloatArray], group: int) -> FloatArray:
        accounts = {account.key: account for _, account in self._accounts(group)}
        greatest: FloatArray = np.max([answer(a) for a in accounts.values()], axis=0)
        return greatest

    def _accounts(self, group: int) -> list[tuple[tuple[str, ...], Account]]:
        """Return what `group` records pay, for each set of parties that pay alike."""
        accounts = [
            (names, in_groups(account, group, counted=self.counts_members))
            for names, account in self._composition.accounts
        ]
        if group > 1:  # a group may meet a shift that has no price where one record's has
            self.require_accounts(account for _, account in accounts)
        return accounts

    def _by_party(
        self, answer: Callable[[Account], Enclosure], group: int
    ) -> tuple[tuple[tuple[str, ...], Enclosure], ...]:
        known: dict[object, Enclosure] = {}
        found: list[tuple[tuple[str, ...], Enclosure]] = []
        singles = (account for _, account in self._composition.accounts)
        for single, (names, account) in zip(singles, self._accounts(group), strict=True):
            if account.key not in known:
                known[account.key] = answer(account)
            cost = known[account.key]
            if group > 1 and any(map(is_sampled, single.others)):
                # the rule for groups counts every drawn group as all drawn: no lower end, also
                # where the chance that any is drawn is rounded to one
                cost = Enclosure(arb(0), cost.upper)
            found.append((names, cost))
        return tuple(found)

    def _require(self, mechanism: Mechanism) -> None:
        require_amplification(mechanism)
        if not self._knows(mechanism):
            raise UnpricedMechanism(mechanism, f"for the {self.name} accountant", self.prices)

    @abstractmethod
    def _knows(self, mechanism: Mechanism) -> bool:
        """Return whether a single mechanism that is no Gaussian step has a price here."""

    @abstractmethod
    def epsilon_of(self, account: Account, delta: Number) -> Enclosure:
        """Return epsilon of one record."""

    @abstractmethod
    def delta_of(self, account: Account, epsilon: Number) -> Enclosure:
        """Return delta of one record."""

    def fast_epsilons_of(self, account: Account, deltas: FloatArray) -> FloatArray:
        """Return upper bounds on epsilon of one record at `deltas`, in doubles."""
        found = (self.epsilon_of(account, float(delta)) for delta in deltas)
        return np.array([epsilon.upper_float for epsilon in found])

    def fast_deltas_of(self, account: Account, epsilons: FloatArray) -> FloatArray:
        """Return upper bounds on delta of one record at `epsilons`, in doubles."""
        found = (self.delta_of(account, float(epsilon)) for epsilon in epsilons)
        return np.array([delta.upper_float for delta in found])
