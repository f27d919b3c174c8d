"""The same events through Google's dp-accounting: two other accountants, two other codes.

Their RDP accountant is loose by its conversion; their PLD accountant is pessimistic on a grid, but
computes in doubles. Every difference is explained by a check of its own, or the cross-check fails.

What is passed to them: see `interop.dp_events`. Two properties of theirs are stepped around. Their
PLD accountant doubles a Gaussian's sensitivity under replace-one, which ours hold already: where a
list also has events that exist under replace-one only, or Poisson samples of which a record is
replaced, the noise multiplier is doubled with it. (Their add/remove pair of such samples dominates
ours by far; their RDP accountant knows no other.) And in version 0.6.0 it composes repeated
randomised response once only, so that such events are passed one by one.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from math import inf, isinf
from typing import Any

from ..accounting.conversions import epsilon_from_zcdp_by_orders
from ..accounting.gaussian.exact import mu_from_epsilon_delta
from ..accounting.guarantees import guarantee
from ..accounting.numbers.enclosure import Enclosure
from ..interop.dp_events import Untranslatable, dp_accounting, dp_event_of
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import Number, require_open_unit
from ..mechanisms.events import (
    AccumulatedPoisson,
    Event,
    Mechanism,
    Parties,
    PoissonSampled,
    unrepeated,
)
from ..mechanisms.extras import MissingExtra

__all__ = ["Crosscheck", "MissingExtra", "PeerCheck", "Price", "Status", "crosscheck"]

Price = Callable[[tuple[Event, ...], Number], Enclosure]
"""Returns our epsilon of events at a delta."""

MAPPING = (
    "each event went to dp-accounting with the noise multiplier noise_std / sensitivity, as a "
    "mechanism of sensitivity 1 under its add/remove relation: the sensitivity already holds the "
    "factor of replace-one. PLD of Poisson samples of which a record is replaced: under their "
    "replace-one, of half the sensitivity. Events of disjoint parties: the maximum over parties."
)

# relative differences of epsilon up to here are called agreement
_AGREEMENT = 1e-3
# doubles agree no further than this with an exact number
_DOUBLES = 1e-9
_EQUAL = f"equal within {_DOUBLES:.0e}"
# the mass that their convolutions in doubles lose or invent: measured at 1e-13 for 10,000 steps
_ROUNDED_MASS = 1e-12
# each composition may cut the tails by 1e-15, which it adds to delta: twice that, to be safe
_CUT_MASS = 2e-15
_GRID_PER_EPSILON = 1e-3
"""Spacing of their loss grid, as a part of epsilon."""

# grids and differences are relative to epsilon, or to this where epsilon is smaller
_LEAST_EPSILON = 1e-2
# below it their conversion takes no order
_LEAST_ORDER = 1.01
# above it e^epsilon is beyond what they compute with
_LARGEST_EPSILON = 500.0
_MOST_ANSWERS = 1_000
"""Of randomised response, which their PLD accountant is asked one by one: a few seconds."""

_MOST_WHOLE = 100_000
"""Of discrete Laplace noise, all values between two neighbours' which it lists: a second."""

_MOST_SOLVED = 2e5
"""Points of a grid at which it inverts the loss of a mixture of Gaussians, one by one: seconds."""

# grid points times compositions: a few seconds
_MOST_WORK = 1e6


class Status(Enum):
    """How a peer's epsilon compares with ours."""

    AGREE = "agree"
    LOOSER = "looser"
    DISAGREES = "disagrees"
    SKIPPED = "skipped"


@dataclass(frozen=True, eq=False, slots=True)
class PeerCheck:
    """One peer's answer.

    Args:
        peer: the library, its version and its accountant.
        status: how its epsilon compares with ours.
        theirs: its epsilon; None where it was not asked.
        relative_gap: (theirs - ours) / ours, ours being the nearer end of the enclosure.
        explained: whether a check of its own accounts for the difference.
        explanation: in a sentence.
    """

    peer: str
    status: Status
    theirs: float | None
    relative_gap: float | None
    explained: bool
    explanation: str

    @property
    def failed(self) -> bool:
        """Whether a difference stands unexplained."""
        return not self.explained


@dataclass(frozen=True, eq=False, slots=True)
class Crosscheck:
    """What the peers say of the same events.

    Args:
        delta: at which all epsilons are.
        ours: encloses our epsilon.
        mapping: how events were translated.
        peers: an answer each.
    """

    delta: Number
    ours: Enclosure
    mapping: str
    peers: tuple[PeerCheck, ...]

    @property
    def agrees(self) -> bool:
        """Whether every difference is explained and at least one peer answered."""
        answered = any(peer.status is not Status.SKIPPED for peer in self.peers)
        return answered and not self.is_finding

    @property
    def is_finding(self) -> bool:
        """Whether a difference stands unexplained."""
        return any(peer.failed for peer in self.peers)


def _guaranteed(events: tuple[Event, ...], delta: Number) -> Enclosure:
    """Return the enclosed epsilon of events, by the accountant that `guarantee` chooses."""
    return guarantee(events, delta=delta).epsilon


def crosscheck(events: Iterable[Event], *, delta: Number, price: Price = _guaranteed) -> Crosscheck:
    """Return what dp-accounting's RDP and PLD accountants say about the same events.

    Args:
        events: of a plan or of a run.
        delta: in (0, 1).
        price: our own epsilon, by default the guarantee of the events.

    Raises:
        MissingExtra: dp-accounting is not installed.
        and what `price` raises.
    """
    require_open_unit("delta", delta)
    listed = tuple(events)
    peer = dp_accounting()
    case = _Case(listed, delta, price(listed, delta), price)
    name = f"dp-accounting {version('dp-accounting')}"
    try:
        if _LARGEST_EPSILON < case.ours.upper_float < inf:
            raise Untranslatable(f"they compute in doubles up to epsilon {_LARGEST_EPSILON:g}")
        counts = _lists(listed)
        lists = [_translated(found) for found in counts]
    except Untranslatable as unknown:
        skipped = tuple(_skipped(f"{name} {kind}", str(unknown)) for kind in ("RDP", "PLD"))
        return Crosscheck(delta, case.ours, MAPPING, skipped)
    pld = [
        (_relation(peer, leaves, any(map(_replaced_in_a_sample, found))), leaves)
        for found, leaves in zip(counts, lists, strict=True)
    ]
    checks = (_rdp(peer, f"{name} RDP", lists, case), _pld(peer, f"{name} PLD", pld, case))
    return Crosscheck(delta, case.ours, MAPPING, checks)


@dataclass(frozen=True, slots=True)
class _Case:
    """What is asked.

    Args:
        events: of a plan or a run.
        delta: in (0, 1).
        ours: our epsilon of them.
        price: computes it at another delta.
    """

    events: tuple[Event, ...]
    delta: Number
    ours: Enclosure
    price: Price


_Counts = Counter[Mechanism]
_Leaves = list[tuple[Any, int]]
_Asked = list[tuple[Any, _Leaves]]
"""Lists of their events, each with the relation under which it is asked."""


def _lists(events: Iterable[Event]) -> list[_Counts]:
    """Return what records pay for, a list for each set of parties that pay alike.

    A record pays for the events of its own party and for those that name no party; parties with
    equal charges share one list, so that each list is composed once.
    """
    everyone: _Counts = Counter()
    shared: dict[tuple[str, ...], _Counts] = {}
    for event in events:
        mechanism, times = unrepeated(event.mechanism)
        if isinstance(mechanism, Parties):
            for party, parts in mechanism.parts:
                for part, repeated in map(unrepeated, parts):
                    shared.setdefault((party,), Counter())[part] += times * repeated
        elif event.context.parties:
            shared.setdefault(event.context.parties, Counter())[mechanism] += times
        else:
            everyone[mechanism] += times
    paid: dict[str, list[int]] = {}
    charges = list(shared.items())
    for place, (parties, _) in enumerate(charges):
        for party in parties:
            paid.setdefault(party, []).append(place)
    alike = dict.fromkeys(tuple(places) for places in paid.values())
    return [
        sum((charges[place][1] for place in places), everyone) for places in alike or {(): None}
    ]


def _translated(mechanisms: _Counts) -> _Leaves:
    """Return their events of mechanisms, with how often each runs; raise `Untranslatable`.

    Equal ones are composed at once; theirs of several samples have no hash.
    """
    hashed: Counter[Any] = Counter()
    others: _Leaves = []
    for mechanism, times in mechanisms.items():
        leaf = dp_event_of(mechanism)
        try:
            hashed[leaf] += times
        except TypeError:
            others.append((leaf, times))
    return [*hashed.items(), *others]


def _replaced_in_a_sample(mechanism: Mechanism) -> bool:
    """Return whether a record of a Poisson sample is replaced."""
    if not isinstance(mechanism, PoissonSampled | AccumulatedPoisson):
        return False
    return mechanism.event.sensitivity.adjacency is Adjacency.REPLACE_ONE


def _relation(peer: Any, leaves: _Leaves, replaced: bool = False) -> Any:
    """Return the relation under which their accountant knows all these events.

    `replaced` says that a record of a Poisson sample is.
    """
    replacing = (
        peer.RandomizedResponseDpEvent,
        peer.SampledWithoutReplacementDpEvent,
        peer.SampledWithReplacementDpEvent,
    )
    if replaced or any(isinstance(leaf, replacing) for leaf, _ in leaves):
        return peer.NeighboringRelation.REPLACE_ONE
    return peer.NeighboringRelation.ADD_OR_REMOVE_ONE


def _skipped(name: str, reason: str) -> PeerCheck:
    """Return the answer of a peer that was not asked."""
    return PeerCheck(name, Status.SKIPPED, None, None, True, reason)


# --- RDP ---------------------------------------------------------------------------------------


def _rdp(peer: Any, name: str, lists: list[_Leaves], case: _Case) -> PeerCheck:
    """Return what their RDP accountant says, and whether its conversion explains the difference.

    Their orders are a fixed grid; the best order for our epsilon is added to it, so that what is
    left is the looseness of Rényi DP itself, which our own conversion reproduces for Gaussian
    steps.

    Args:
        peer: the module dp_accounting.
        name: of library, version and accountant.
        lists: of their events, one for each set of parties that pay alike.
        case: what is asked.
    """
    expected = _expected_rdp(lists, peer, case)
    extra_orders = [] if expected is None else [expected[1]]
    orders = [*peer.rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS, *extra_orders]

    def epsilon_of(leaves: _Leaves) -> float:
        accountant = peer.rdp.RdpAccountant(orders, _relation(peer, leaves))
        for leaf, times in leaves:
            accountant.compose(leaf, times)
        return float(accountant.get_epsilon(float(case.delta)))

    try:
        # parallel composition: disjoint parties, of which a record is in one
        theirs = max(epsilon_of(leaves) for leaves in lists)
    except (peer.UnsupportedEventError, ArithmeticError, ValueError, MemoryError) as unanswered:
        return _skipped(name, _reason(unanswered))
    gap = _gap(theirs, case.ours)
    if abs(gap) <= _DOUBLES:
        return PeerCheck(name, Status.AGREE, theirs, gap, True, _EQUAL)
    if gap < 0:
        return PeerCheck(name, Status.DISAGREES, theirs, gap, False, "an upper bound below ours")
    if expected is None:
        words = f"an upper bound, {gap:.2%} above ours; how loose it has to be was not checked"
        return PeerCheck(name, Status.LOOSER, theirs, gap, True, words)
    by_us = expected[0]
    if abs(theirs / by_us - 1) <= _AGREEMENT:
        words = f"RDP conversion is loose by {gap:.2%}; our own makes {by_us:.6g} of our epsilon"
        return PeerCheck(name, Status.LOOSER, theirs, gap, True, words)
    words = f"RDP conversion should make {by_us:.6g} of our epsilon"
    return PeerCheck(name, Status.DISAGREES, theirs, gap, False, words)


def _expected_rdp(lists: list[_Leaves], peer: Any, case: _Case) -> tuple[float, float] | None:
    """Return what the best order of RDP makes of our epsilon, and that order; Gaussians only."""
    gaussian = all(isinstance(leaf, peer.GaussianDpEvent) for leaves in lists for leaf, _ in leaves)
    if not gaussian or not 0 < case.ours.upper_float < inf:
        return None
    mu = mu_from_epsilon_delta(epsilon=case.ours, delta=case.delta).upper_float
    bound = epsilon_from_zcdp_by_orders(rho=mu**2 / 2, delta=case.delta)
    if bound.order < _LEAST_ORDER:
        return None
    return bound.epsilon.upper_float, float(bound.order)


# --- PLD ---------------------------------------------------------------------------------------


def _pld(peer: Any, name: str, lists: _Asked, case: _Case) -> PeerCheck:
    """Return what their PLD accountant says, and whether grid or cut tails explain the difference.

    It rounds losses up on a grid, so that it may be above ours by a little, and finer grids must
    come closer; and it may be below only by what doubles lose in a convolution.
    """
    answers = max(
        sum(n for leaf, n in leaves if isinstance(leaf, peer.RandomizedResponseDpEvent))
        for _, leaves in lists
    )
    if answers > _MOST_ANSWERS:
        return _skipped(name, f"{answers} randomised answers, which it composes one by one")
    farthest = max((_farthest(leaf) for _, leaves in lists for leaf, _ in leaves), default=0)
    if farthest > _MOST_WHOLE:
        return _skipped(name, f"whole numbers that move by {farthest}, all of which it lists")
    scale = case.ours.upper_float
    grid = _GRID_PER_EPSILON * (1.0 if isinf(scale) else max(scale, _LEAST_EPSILON))
    solved = max((_width(leaf) for _, leaves in lists for leaf, _ in leaves), default=0.0) / grid
    if solved > _MOST_SOLVED:
        return _skipped(name, f"mixtures on {solved:.0e} points of a grid, each of which it solves")
    try:
        theirs = max(_pld_epsilon(peer, *each, case.delta, grid) for each in lists)
    except (peer.UnsupportedEventError, ArithmeticError, ValueError, MemoryError) as unanswered:
        return _skipped(name, _reason(unanswered))
    gap = _gap(theirs, case.ours)
    if abs(gap) <= _DOUBLES:
        return PeerCheck(name, Status.AGREE, theirs, gap, True, _EQUAL)
    if gap < 0:
        return _below(name, theirs, gap, case)
    if gap <= _AGREEMENT:
        words = f"pessimistic on a grid of {grid:.1e}: {gap:.1e} above ours"
        return PeerCheck(name, Status.AGREE, theirs, gap, True, words)
    cut = _CUT_MASS * _most_events(lists)
    if case.delta <= cut or theirs <= case.price(case.events, float(case.delta) - cut).upper_float:
        words = f"{gap:.1e} above ours: their cut tails add a mass of up to {cut:.0e} to delta"
        return PeerCheck(name, Status.LOOSER, theirs, gap, True, words)
    if 10 * solved > _MOST_SOLVED:
        words = (
            f"{gap:.1e} above ours on a grid of {grid:.1e}, and mixtures take long on a finer one"
        )
        return _skipped(name, words)
    return _refined(peer, name, lists, case, grid, theirs)


def _refined(
    peer: Any, name: str, lists: _Asked, case: _Case, grid: float, theirs: float
) -> PeerCheck:
    """Return what finer grids say where the first one was too coarse.

    Each grid is ten times finer; a gap that does not at least halve is not the grid's, and is a
    disagreement, unless it is within a step of the grid for each event whose loss has atoms: these
    are rounded up by anything from nothing to a step, on a finer grid by a larger part of one.
    Stops at `_MOST_WORK` grid points times compositions.
    """
    first = gap = _gap(theirs, case.ours)
    work = max(len(leaves) for _, leaves in lists) / _GRID_PER_EPSILON
    atoms = max(sum(times for leaf, times in leaves if not _normal(leaf)) for _, leaves in lists)
    converges = True
    while converges and gap > _AGREEMENT and (gap == first or work < _MOST_WORK):
        grid, work, coarser = grid / 10, work * 10, gap
        theirs = max(_pld_epsilon(peer, *each, case.delta, grid) for each in lists)
        gap = _gap(theirs, case.ours)
        within_steps = theirs - case.ours.lower_float <= atoms * grid
        converges = gap <= coarser / 2 or within_steps
    words = f"pessimistic on a grid of {grid:.1e}: {gap:.1e} above ours"
    if gap <= _AGREEMENT:
        return PeerCheck(name, Status.AGREE, theirs, gap, True, words)
    words += f", {first:.1e} on a coarser one" if converges else ", and a finer one does not help"
    status = Status.LOOSER if converges else Status.DISAGREES
    return PeerCheck(name, status, theirs, gap, converges, words)


def _innermost(leaf: Any) -> Any:
    """Return the noise of a leaf, which may be on a sample."""
    while hasattr(leaf, "event"):
        leaf = leaf.event
    return leaf


def _normal(leaf: Any) -> bool:
    """Return whether a leaf is normal noise, on a sample or not, whose loss has a density."""
    return type(_innermost(leaf)).__name__ in ("GaussianDpEvent", "MixtureOfGaussiansDpEvent")


def _farthest(leaf: Any) -> int:
    """Return by how much a leaf's value moves, if it is of discrete Laplace noise; else 0."""
    leaf = _innermost(leaf)
    discrete = type(leaf).__name__ == "DiscreteLaplaceDpEvent"
    return int(leaf.sensitivity) if discrete else 0


def _width(leaf: Any) -> float:
    """Return about how wide losses of a mixture of Gaussians lie, eight deviations out; else 0."""
    leaf = _innermost(leaf)
    if type(leaf).__name__ != "MixtureOfGaussiansDpEvent":
        return 0.0
    return 16.0 * float(max(leaf.sensitivities)) / float(leaf.standard_deviation)


def _most_events(lists: _Asked) -> int:
    """Return how many events the longest list has."""
    return max(sum(times for _, times in leaves) for _, leaves in lists)


def _pld_epsilon(peer: Any, relation: Any, leaves: _Leaves, delta: Number, grid: float) -> float:
    """Return their PLD epsilon of one list, around the two properties that the module names."""
    replacing = relation is peer.NeighboringRelation.REPLACE_ONE
    accountant = peer.pld.PLDAccountant(relation, grid)
    for leaf, times in leaves:
        if isinstance(leaf, peer.RandomizedResponseDpEvent):
            for _ in range(times):
                accountant.compose(leaf)
        else:
            accountant.compose(_halved(peer, leaf) if replacing else leaf, times)
    return float(accountant.get_epsilon(float(delta)))


def _halved(peer: Any, leaf: Any) -> Any:
    """Return an event of theirs whose normal noise is stated against half a replacement."""
    if isinstance(leaf, peer.GaussianDpEvent):
        return peer.GaussianDpEvent(2 * leaf.noise_multiplier)
    if isinstance(leaf, peer.PoissonSampledDpEvent):
        return peer.PoissonSampledDpEvent(leaf.sampling_probability, _halved(peer, leaf.event))
    return leaf


def _below(name: str, theirs: float, gap: float, case: _Case) -> PeerCheck:
    """Return why a pessimistic epsilon is below the exact one: rounded masses, or a contradiction.

    Checked, not assumed: their epsilon must be enough at a delta greater by `_ROUNDED_MASS`.

    An upper bound below the exact value is the serious direction: either doubles lost mass, which
    a little more delta makes up for, or one of the two programs is wrong.
    """
    eased = float(case.delta) + _ROUNDED_MASS
    explained = eased < 1 and theirs >= case.price(case.events, eased).lower_float
    words = f"{-gap:.1e} below the exact value"
    if explained:
        words += f": their doubles misplace a mass below {_ROUNDED_MASS:.0e}; not ours to follow"
    agrees = explained and -gap <= _AGREEMENT
    return PeerCheck(
        name, Status.AGREE if agrees else Status.DISAGREES, theirs, gap, explained, words
    )


# --- comparison --------------------------------------------------------------------------------


def _gap(theirs: float, ours: Enclosure) -> float:
    """Return (theirs - ours) / ours against the nearer end; 0 inside the enclosure."""
    lower, upper = ours.lower_float, ours.upper_float
    if lower <= theirs <= upper:
        return 0.0
    nearer = upper if theirs > upper else lower
    return -1.0 if isinf(nearer) else (theirs - nearer) / max(nearer, _LEAST_EPSILON)


def _reason(unanswered: Exception) -> str:
    """Return what they say about events of which they have no price."""
    return f"not answered there: {unanswered}"
