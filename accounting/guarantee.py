"""Guarantees: the epsilon of a list of events, and all that it rests on.

>>> from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.REPLACE_ONE), 37.3063)
>>> events = [Event(step, Context((), t, "mean", Audience.SERVER)) for t in range(1, 101)]
>>> found = guarantee(events, delta=1e-5)
>>> found.grade.value, round(found.epsilon.upper_float, 6), found.assumptions
('certified', 1.0, ('example',))
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import Number, require_open_unit
from ..mechanisms.events import Event, Mechanism, Parties
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sensitivity import Derivation, Sensitivity
from .composition import Composition, composed
from .conversions import epsilon_from_moments, epsilon_from_zcdp, epsilon_from_zcdp_by_orders
from .enclosure import Enclosure, precision
from .gaussian import delta_from_epsilon, epsilon_from_delta
from .gaussian_fast import delta_upper, epsilon_upper
from .grade import Grade
from .notions import Gdp

__all__ = [
    "ConversionComparison",
    "Guarantee",
    "PartyCost",
    "PrivacyCurve",
    "Theorem",
    "compare_conversions",
    "deltas_at",
    "epsilons_at",
    "guarantee",
]

_BITS = 128


@dataclass(frozen=True, slots=True)
class Theorem:
    """A theorem that a guarantee rests on, in a few words, and where it is proved."""

    statement: str
    source: str


_GAUSSIAN = Theorem("a Gaussian step is (sensitivity / noise_std)-GDP", "Dong, Roth, Su 2022, 2.7")
_COMPOSITION = Theorem("in a composition of GDP steps mu² adds up", "Dong, Roth, Su 2022, 3.3")
_PARTIES = Theorem("a record pays only for the party it lives with", "McSherry 2009, Theorem 4")
_CONVERSION = Theorem("the (epsilon, delta) curve of mu-GDP", "Balle, Wang 2018, Theorem 8")
_METHOD = "mu-GDP composition, exact conversion in ball arithmetic"


@dataclass(frozen=True, eq=False, slots=True)
class PartyCost:
    """What a record of any of these parties pays; no party stands for a record of none of them."""

    parties: tuple[str, ...]
    mu_squared: Enclosure
    epsilon: Enclosure


@dataclass(frozen=True, eq=False, slots=True)
class Guarantee:
    """What a list of events guarantees to one record under `adjacency`.

    `epsilon` encloses the smallest epsilon at `delta` for these sensitivities and noises; it is
    infinite where something left without a mechanism, and `unprotected` says what. `adjacency` is
    None only where no event speaks of one. `assumptions` are the reasons of declared sensitivities.
    """

    adjacency: Adjacency | None
    delta: Number
    epsilon: Enclosure
    notion: Gdp
    mu: Enclosure
    rho: Enclosure
    by_party: tuple[PartyCost, ...]
    grade: Grade
    method: str
    theorems: tuple[Theorem, ...]
    assumptions: tuple[str, ...]
    unprotected: tuple[str, ...]


def guarantee(
    events: Iterable[Event], *, delta: Number, adjacency: Adjacency | None = None
) -> Guarantee:
    """Return the certified guarantee of `events`, whose parameters are fixed in advance.

    Args:
        events: of a plan or of a run.
        delta: in (0, 1).
        adjacency: the relation the events are expected to speak of.

    Raises:
        InvalidParameter: delta out of range.
        AdjacencyMismatch: the events speak of several relations, or of another one.
        UnpricedMechanism: not only Gaussian steps, and all protected.
    """
    require_open_unit("delta", delta)
    listed = tuple(events)
    composition = composed(listed, adjacency=adjacency)
    total = composition.mu_squared
    by_party = _by_party(composition, delta)
    reasons = {reason: None for _, account in composition.accounts for reason in account.reasons}
    return Guarantee(
        adjacency=composition.adjacency,
        delta=delta,
        epsilon=epsilon_from_delta(mu_squared=total, delta=delta),
        notion=Gdp(composition.spent),
        mu=_mapped(total, arb.sqrt),
        rho=_mapped(total, lambda end: end / 2),
        by_party=by_party,
        grade=Grade.CERTIFIED,
        method=_METHOD,
        theorems=_theorems(len(listed), split=len(by_party) > 1),
        assumptions=_assumptions(listed),
        unprotected=tuple(reasons),
    )


def _by_party(composition: Composition, delta: Number) -> tuple[PartyCost, ...]:
    known: dict[tuple[object, ...], tuple[Enclosure, Enclosure]] = {}
    for _, account in composition.accounts:
        if account.key not in known:
            total = account.mu_squared
            known[account.key] = total, epsilon_from_delta(mu_squared=total, delta=delta)
    return tuple(
        PartyCost(parties, *known[account.key]) for parties, account in composition.accounts
    )


def _theorems(count: int, *, split: bool) -> tuple[Theorem, ...]:
    several = (_COMPOSITION,) if count > 1 else ()
    return (_GAUSSIAN, *several, *((_PARTIES,) if split else ()), _CONVERSION)


def _assumptions(events: Sequence[Event]) -> tuple[str, ...]:
    derivations: dict[int, Derivation] = {}
    for event in events:
        for sensitivity in _sensitivities(event.mechanism):
            derivations[id(sensitivity.derivation)] = sensitivity.derivation
    return tuple(dict.fromkeys(a for d in derivations.values() for a in d.assumptions()))


def _sensitivities(mechanism: Mechanism) -> Iterator[Sensitivity]:
    if isinstance(mechanism, Parties):
        for _, parts in mechanism.parts:
            for part in parts:
                yield from _sensitivities(part)
        return
    for field in fields(mechanism):
        value = getattr(mechanism, field.name)
        if isinstance(value, Sensitivity):
            yield value
        elif field.name == "event":
            yield from _sensitivities(value)


def _mapped(value: Enclosure, growing: Callable[[arb], arb]) -> Enclosure:
    with precision(_BITS):
        lower, upper = growing(value.lower), growing(value.upper)
        return Enclosure.hull(Enclosure.from_ball(lower), Enclosure.from_ball(upper))


@dataclass(frozen=True, eq=False, slots=True)
class PrivacyCurve:
    """Points of the privacy curve: (epsilon[i], delta[i])-DP holds for every i, with this grade."""

    grade: Grade
    epsilon: FloatArray
    delta: FloatArray


def epsilons_at(
    events: Iterable[Event], *, deltas: ArrayLike, grade: Grade = Grade.CERTIFIED
) -> PrivacyCurve:
    """Return the curve at the given deltas: epsilons rounded up.

    Args:
        events: of a plan or of a run.
        deltas: array of shape (n,), in (0, 1); the fast grade wants them >= 1e-300.
        grade: certified (ball arithmetic) or fast (doubles with an outward allowance).

    Raises as `guarantee` does.
    """
    total = composed(events).mu_squared
    given = np.asarray(deltas, dtype=np.float64)
    if grade is Grade.CERTIFIED:
        uppers = [epsilon_from_delta(mu_squared=total, delta=float(d)).upper_float for d in given]
        return PrivacyCurve(grade, np.array(uppers), given)
    return PrivacyCurve(Grade.FAST, epsilon_upper(mu_squared=total, delta=given), given)


def deltas_at(
    events: Iterable[Event], *, epsilons: ArrayLike, grade: Grade = Grade.CERTIFIED
) -> PrivacyCurve:
    """Return the curve at the given epsilons, array of shape (n,) in [0, inf]: deltas rounded up.

    Otherwise as `epsilons_at`.
    """
    total = composed(events).mu_squared
    given = np.asarray(epsilons, dtype=np.float64)
    if grade is Grade.CERTIFIED:
        uppers = [delta_from_epsilon(mu_squared=total, epsilon=float(e)).upper_float for e in given]
        return PrivacyCurve(grade, given, np.array(uppers))
    return PrivacyCurve(Grade.FAST, given, delta_upper(mu_squared=total, epsilon=given))


@dataclass(frozen=True, eq=False, slots=True)
class ConversionComparison:
    """The epsilon of the same events at the same delta by four conversions; `exact` is the least.

    Sources: Balle, Wang 2018; Canonne, Kamath, Steinke 2020 (best order); Bun, Steinke 2016
    (rho + 2 sqrt(rho ln 1/delta)); Abadi et al. 2016 (whole orders).
    """

    exact: Enclosure
    rdp: Enclosure
    zcdp: Enclosure
    moments: Enclosure


def compare_conversions(
    events: Iterable[Event], *, delta: Number, max_order: int = 32
) -> ConversionComparison:
    """Return epsilon by the exact curve and by the classical conversions.

    Args:
        events: Gaussian steps.
        delta: in (0, 1).
        max_order: the largest order of the moments accountant.

    Raises as `guarantee` does.
    """
    total = composed(events).mu_squared
    rho = _mapped(total, lambda end: end / 2)
    return ConversionComparison(
        exact=epsilon_from_delta(mu_squared=total, delta=delta),
        rdp=epsilon_from_zcdp_by_orders(rho=rho, delta=delta).epsilon,
        zcdp=epsilon_from_zcdp(rho=rho, delta=delta),
        moments=epsilon_from_moments(rho=rho, delta=delta, max_order=max_order).epsilon,
    )
