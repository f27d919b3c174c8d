"""Composition: from events to what a record pays, in constant time per Gaussian event.

Gaussian steps compose exactly: mu² adds up (Dong, Roth, Su 2022, Corollary 3.3), also when the
releases are adaptive but the noise is fixed in advance. Sums are whole multiples of 2^-512, rounded
down on one side and up on the other, so that a million events cost a million integer additions.

A record lives with at most one party, and the map from records to parties is fixed and public. An
event that names parties is paid by their records only; one that names none is paid by every record.
Parties that always appear together share one account.

>>> from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.REPLACE_ONE), 2.0)
>>> events = [Event(step, Context((name,), 1, "mean", Audience.SERVER)) for name in ("a", "b")]
>>> composed(events).mu_squared
Enclosure(0.25)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import NamedTuple

from flint import arb

from ..mechanisms.adjacency import Adjacency, require_same_adjacency
from ..mechanisms.errors import DpledgerError, InvalidParameter
from ..mechanisms.events import (
    AccumulatedPoisson,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
    adjacencies,
    unrepeated,
)
from ..mechanisms.sensitivity import added, scaled
from .numbers.enclosure import Enclosure, maximum
from .numbers.notions import Exact

UNIT_BITS = 512
"""Costs are kept as whole multiples of 2 to minus this."""

MOST_DRAWN = 64
"""Records of a group times accumulated samples up to which the number drawn is priced exactly."""


class UnpricedMechanism(DpledgerError, ValueError):
    """No rule here prices this `mechanism`. This does not mean that it is not private."""

    def __init__(self, mechanism: Mechanism, where: str, expected: str = "Gaussian steps") -> None:
        super().__init__(f"Expected {expected} {where} instead got {type(mechanism).__name__}.")
        self.mechanism = mechanism
        self.where = where
        self.expected = expected

    def __reduce__(self) -> tuple[type["UnpricedMechanism"], tuple[Mechanism, str, str]]:
        return (type(self), (self.mechanism, self.where, self.expected))


class Price(NamedTuple):
    """What one run of a mechanism costs: mu², or a mechanism without one, or no protection.

    Args:
        lower, upper: mu² in units of 2^-512, rounded down and up.
        other: a mechanism that has no mu, brought to its simplest form.
        reason: why it costs everything: no mechanism, no noise, or less than 2^-48 of the
            sensitivity.
    """

    lower: int = 0
    upper: int = 0
    other: Mechanism | None = None
    reason: str | None = None


FREE = Price()
"""The price of what moves nothing."""

_LEAST_SHARE = Fraction(1, 1 << 48)
"""Noise below this share of the sensitivity counts as none, but in a plain Gaussian step, of which
mu² is exact on any scale: ε would be beyond 2^47."""


def _unhidden(mechanism: Mechanism) -> str | None:
    """Return why noise hides nothing of what has a sensitivity > 0; None where it does."""
    match mechanism:
        case (
            LaplaceStep(sensitivity, noise)
            | DiscreteLaplaceStep(sensitivity, noise)
            | PureStep(sensitivity, noise)
        ):
            name = "scale"
        case GaussianStep(sensitivity, noise) | DiscreteGaussianStep(sensitivity, noise):
            name = "noise_std"
        case GaussianMixtureStep(constant, sampled, _, noise):
            name, sensitivity = "noise_std", added(constant, sampled)
        case _:
            return None
    if noise and Fraction(noise) ** 2 >= sensitivity.squared * _LEAST_SHARE**2:
        return None
    below = ", below 2^-48 of the sensitivity" if noise else ""
    return f"{type(mechanism).__name__} with {name}={noise:g}{below}"


def price_of(mechanism: Mechanism) -> Price:
    """Return what one run of a single mechanism costs.

    A Gaussian step costs Δ²/σ² (Dong, Roth, Su 2022, Theorem 2.7), as an integer division of exact
    numbers. Mechanisms that are others in disguise are priced as these: a sample of everybody, a
    sample of nobody, an answer that is a fair guess.
    """
    match mechanism:
        case UnprotectedRelease():
            return Price(reason=mechanism.reason)
        case GaussianStep() | DiscreteGaussianStep() if mechanism.sensitivity.squared == 0:
            return FREE
        case LaplaceStep() | DiscreteLaplaceStep() | PureStep() if (
            mechanism.sensitivity.squared == 0
        ):
            return FREE
        case GaussianStep() if mechanism.noise_std == 0:
            return Price(reason="GaussianStep with noise_std=0")
        case GaussianStep():
            squared = mechanism.sensitivity.squared
            noise, unit = mechanism.noise_std.as_integer_ratio()
            units, rest = divmod(
                (squared.numerator * unit * unit) << UNIT_BITS, squared.denominator * noise * noise
            )
            return Price(units, units + (rest > 0))
        case PoissonSampled() | AccumulatedPoisson():
            return _sampled_price(mechanism)
        case SampledWithoutReplacement() | SampledWithReplacement():
            return _sampled_price(mechanism)
        case GaussianMixtureStep():
            return _mixture_price(mechanism)
        case RandomisedResponse(truth=truth, categories=categories):
            if truth in (0, 1):
                return Price(reason=f"RandomisedResponse with truth={truth}")
            if Fraction(truth) * categories == 1:
                return FREE
            return Price(other=mechanism)
        case _:
            return _finite(mechanism, mechanism)


def _finite(mechanism: Mechanism, noisy: Mechanism) -> Price:
    """Return the price of a mechanism that is no Gaussian step; infinite without noise in it."""
    reason = _unhidden(noisy)
    return Price(other=mechanism) if reason is None else Price(reason=reason)


def _sampled_price(
    mechanism: PoissonSampled
    | AccumulatedPoisson
    | SampledWithoutReplacement
    | SampledWithReplacement,
) -> Price:
    """Return the price of a sampled step: free for nobody, the step's own for everybody."""
    if isinstance(mechanism, SampledWithReplacement):
        never, always = False, mechanism.records == 1
    elif isinstance(mechanism, SampledWithoutReplacement):
        never, always = False, mechanism.batch == mechanism.records
    else:
        never, always = mechanism.rate == 0, mechanism.rate == 1
    if never:
        return FREE
    whole = price_of(mechanism.event)
    if isinstance(mechanism, AccumulatedPoisson | SampledWithReplacement) and always:
        # everybody is in every sample, or in every place
        step, times = mechanism.event, copies_of(mechanism)
        whole = price_of(GaussianStep(scaled(step.sensitivity, times), step.noise_std))
    if always or whole.reason is not None or whole == FREE:
        return whole
    return _finite(mechanism, mechanism.event)


def copies_of(mechanism: AccumulatedPoisson | SampledWithReplacement) -> int:
    """Return how often a record is part of one release at most."""
    if isinstance(mechanism, AccumulatedPoisson):
        return mechanism.batches
    return mechanism.batch


def _mixture_price(mechanism: GaussianMixtureStep) -> Price:
    """Return the price of a mixture: a Gaussian step's, where its sample is nobody or everybody."""
    constant, sampled = mechanism.constant, mechanism.sampled
    if mechanism.rate == 0 or sampled.squared == 0:
        return price_of(GaussianStep(constant, mechanism.noise_std))
    if mechanism.rate == 1:
        return price_of(GaussianStep(added(constant, sampled), mechanism.noise_std))
    return _finite(mechanism, mechanism)


class Account:
    """What one record pays: mu² of Gaussian steps, other mechanisms, reasons for no protection."""

    __slots__ = ("_lower", "others", "reasons", "units_up")

    def __init__(self) -> None:
        self._lower = 0
        self.units_up = 0
        self.others: Counter[Mechanism] = Counter()
        """How often each mechanism ran that is no Gaussian step."""
        self.reasons: dict[str, None] = {}
        """Why there is no protection at all; empty if there is."""

    def charge(self, price: Price, times: int) -> None:
        """Add a price, so many times.

        Args:
            price: of one run.
            times: how often it ran.
        """
        if price.reason is not None:
            self.reasons[price.reason] = None
        elif price.other is not None:
            self.others[price.other] += times
        else:
            self._lower += price.lower * times
            self.units_up += price.upper * times

    def __add__(self, other: "Account") -> "Account":
        """Return the account of a record that pays both."""
        total = Account()
        total._lower = self._lower + other._lower
        total.units_up = self.units_up + other.units_up
        total.others = self.others + other.others
        total.reasons = self.reasons | other.reasons
        return total

    @property
    def mu_squared(self) -> Enclosure:
        """mu² of all that the record pays; infinity without protection.

        Raises `UnpricedMechanism` if not only Gaussian steps ran.
        """
        if self.reasons:
            return Enclosure.of(inf)
        if self.others:
            raise UnpricedMechanism(next(iter(self.others)), "for a mu")
        return self.gaussian_mu_squared

    @property
    def gaussian_mu_squared(self) -> Enclosure:
        """mu² of the Gaussian steps alone, whatever else ran."""
        return Enclosure(arb((self._lower, -UNIT_BITS)), arb((self.units_up, -UNIT_BITS)))

    @property
    def least(self) -> Fraction:
        """A lower bound on mu² of the Gaussian steps alone."""
        return Fraction(self._lower, 1 << UNIT_BITS)

    def in_groups(self, size: int, grouped: Callable[[Mechanism], Mechanism]) -> "Account":
        """Return what `size` records pay together.

        mu of a group is `size` times mu (Dong, Roth, Su 2022, Theorem 2.14).

        Args:
            size: records of the group.
            grouped: a mechanism that is no Gaussian step -> the same for a group of that size.
        """
        total = Account()
        total._lower, total.units_up = self._lower * size**2, self.units_up * size**2
        total.reasons = self.reasons
        for mechanism, times in self.others.items():
            inner, repeated = _unrolled(grouped(mechanism), times)
            total.charge(price_of(inner), repeated)
        return total

    @property
    def most(self) -> Fraction:
        """An upper bound on mu² of the Gaussian steps alone."""
        return Fraction(self.units_up, 1 << UNIT_BITS)

    def covers(self, other: "Account") -> bool:
        """Return whether this is charged for everything that `other` is charged for."""
        charged = other.units_up <= self.units_up and other.others <= self.others
        return bool(self.reasons) or (charged and not other.reasons)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for accounts of equal cost."""
        others = frozenset(self.others.items())
        return (bool(self.reasons), self._lower, self.units_up, others)


@dataclass(slots=True)
class _Cell:
    """Parties that have always appeared together, and their account."""

    members: set[str]
    account: Account


class _Charge(NamedTuple):
    """A price that the records of some parties pay, so many times; of all parties where none is
    named.
    """

    parties: tuple[str, ...]
    price: Price
    times: int


def _charges(event: Event, price: Callable[[Mechanism], Price] = price_of) -> Iterator[_Charge]:
    """Yield what an event charges to whom, by a notion's price.

    Raises `InvalidParameter` for a party named twice, or parties split into parties.
    """
    mechanism, times = _unrolled(event.mechanism, 1)
    parties = event.context.parties
    if not isinstance(mechanism, Parties):
        if len(set(parties)) != len(parties):
            raise InvalidParameter("parties", parties, "each named once: one message each")
        yield _Charge(parties, price(mechanism), times)
        return
    if parties:
        raise InvalidParameter("parties", parties, "empty where the mechanism names the parties")
    for name, parts in mechanism.parts:
        for part in parts:
            inner, repeated = _unrolled(part, times)
            if isinstance(inner, Parties):
                raise InvalidParameter(f"part {name!r}", inner, "not split into parties again")
            yield _Charge((name,), price(inner), repeated)


def _unrolled(mechanism: Mechanism, times: int) -> tuple[Mechanism, int]:
    """Return the innermost mechanism that is repeated, and how often it runs in all.

    Very many accumulated batches, or ones in which a record is replaced, are priced as each with
    its share of the noise, of which the step is a function.
    """
    mechanism, often = unrepeated(mechanism)
    times *= often
    if isinstance(mechanism, AccumulatedPoisson) and not _is_counted(mechanism):
        return mechanism.share, times * mechanism.batches
    return mechanism, times


def _is_counted(mechanism: AccumulatedPoisson) -> bool:
    """Return whether the exact pair of accumulated batches is priced."""
    replaced = mechanism.event.sensitivity.adjacency is Adjacency.REPLACE_ONE
    return mechanism.batches <= MOST_DRAWN and not replaced


class Composition:
    """What records pay for events, party by party; it only grows.

    Parties that always appear together share a cell and one account, so that ten thousand agents
    who send in every round cost what one does. A cell that an event names only in part is split.

    Args:
        adjacency: the one relation that all events speak of; None leaves it to the first event.
        price: says what is added up: mu², unless another notion's price is given.
    """

    def __init__(
        self, adjacency: Adjacency | None = None, *, price: Callable[[Mechanism], Price] = price_of
    ) -> None:
        self.adjacency = adjacency
        self.price = price
        self._everyone = Account()
        self._cell_of: dict[str, _Cell] = {}
        self._cells_under: dict[tuple[str, ...], tuple[_Cell, ...]] = {}
        self._greatest = 0
        self._others: Mechanism | None = None
        self._unprotected = False

    def add(self, event: Event) -> None:
        """Charge one event.

        Raises `AdjacencyMismatch` if it speaks of another relation, `InvalidParameter` if a party
        is named twice or split again; then nothing is charged.
        """
        charges = self._checked((event,))
        self.adjacency = self._adjacency_with((event,))
        for parties, price, times in charges:
            self._others = self._others or price.other
            self._unprotected |= price.reason is not None
            if not parties:
                self._everyone.charge(price, times)
            for cell in self._cells(parties):
                cell.account.charge(price, times)
                self._greatest = max(self._greatest, cell.account.units_up)

    def extend(self, events: Iterable[Event]) -> None:
        """Charge events in order."""
        for event in events:
            self.add(event)

    @property
    def mu_squared(self) -> Enclosure:
        """mu² of the record that pays most; infinity if anything left without protection.

        Raises `UnpricedMechanism` if anything but Gaussian steps ran, and all was protected.
        """
        if self._unprotected:
            return Enclosure.of(inf)
        if self._others is not None:
            raise UnpricedMechanism(self._others, "for a mu")
        costs = [account.mu_squared for _, account in self.accounts]
        return maximum(costs)

    @property
    def spent(self) -> Exact:
        """An upper bound on mu² of the record that pays most, in constant time.

        Raises `UnpricedMechanism` as `mu_squared` does.
        """
        return self.spent_after(())

    def spent_after(self, events: Sequence[Event]) -> Exact:
        """Return what `spent` would be after `events`, which are checked but not charged.

        Args:
            events: that a filter is asked about.

        Raises as `add` does; `UnpricedMechanism` if anything but Gaussian steps ran or would run.
        """
        charges = self._checked(events)
        if self._unprotected or any(charge.price.reason is not None for charge in charges):
            return inf
        other = self._others or next((c.price.other for c in charges if c.price.other), None)
        if other is not None:
            raise UnpricedMechanism(other, "for a mu")
        for charge in charges:
            self._cells(charge.parties)  # cells may split here, and from then on stay
        everyone, added = self._everyone.units_up, Counter[int]()
        greatest = self._greatest
        for parties, price, times in charges:
            if not parties:
                everyone += price.upper * times
            for cell in self._cells(parties):
                added[id(cell)] += price.upper * times
                greatest = max(greatest, cell.account.units_up + added[id(cell)])
        return Fraction(everyone + greatest, 1 << UNIT_BITS)

    def check(self, events: Sequence[Event]) -> None:
        """Raise as `add` would for the first of `events` that cannot be charged; charge nothing."""
        self._checked(events)

    @property
    def unprotected(self) -> tuple[str, ...]:
        """Why somebody has no protection at all; empty if all have some."""
        return tuple({reason: None for _, account in self.accounts for reason in account.reasons})

    @property
    def apart(self) -> bool:
        """Whether several parties are named, whose records are no one's but theirs."""
        return len(self._cell_of) > 1

    @property
    def accounts(self) -> tuple[tuple[tuple[str, ...], Account], ...]:
        """Each group of parties that pay alike, with its account; () is a record of no party."""
        cells = {id(cell): cell for cell in self._cell_of.values()}
        names: dict[int, list[str]] = {key: [] for key in cells}
        for name, cell in self._cell_of.items():
            names[id(cell)].append(name)
        own = ((tuple(names[k]), self._everyone + cell.account) for k, cell in cells.items())
        return (((), self._everyone), *own)

    def _checked(self, events: Sequence[Event]) -> list[_Charge]:
        self._adjacency_with(events)
        return [charge for event in events for charge in _charges(event, self.price)]

    def _adjacency_with(self, events: Iterable[Event]) -> Adjacency | None:
        common = self.adjacency
        for event in events:
            for found in adjacencies(event.mechanism):
                common = require_same_adjacency(common or found, found)
        return common

    def _cells(self, parties: tuple[str, ...]) -> tuple[_Cell, ...]:
        """The cells whose union is `parties`; a cell that lies only partly inside is split."""
        found = self._cells_under.get(parties)
        if found is not None:
            return found
        wanted = set(parties)
        for cell in {id(c): c for p in parties if (c := self._cell_of.get(p))}.values():
            if not cell.members <= wanted:
                self._move(cell.members & wanted, cell.account + Account())
                cell.members -= wanted
        newcomers = {p for p in parties if p not in self._cell_of}
        if newcomers:
            self._move(newcomers, Account())
        cells = tuple({id(self._cell_of[p]): self._cell_of[p] for p in parties}.values())
        self._cells_under[parties] = cells
        return cells

    def _move(self, members: set[str], account: Account) -> None:
        cell = _Cell(members, account)
        for name in members:
            self._cell_of[name] = cell
        self._cells_under.clear()


def costly_mechanisms(event: Event) -> Iterator[Mechanism]:
    """Yield the single mechanisms of an event that cost something and are no Gaussian steps."""
    for charge in _charges(event):
        if charge.price.other is not None:
            yield charge.price.other


def composed(events: Iterable[Event], *, adjacency: Adjacency | None = None) -> Composition:
    """Return what records pay for `events`.

    Args:
        events: of a plan or a run.
        adjacency: their relation; None leaves it to the first event.

    Raises as `Composition.add` does.
    """
    composition = Composition(adjacency)
    composition.extend(events)
    return composition
