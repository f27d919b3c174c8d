"""Guarantees: the epsilon of a list of events, and all that it rests on.

>>> from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.REPLACE_ONE), 37.3063)
>>> events = [Event(step, Context((), t, "mean", Audience.SERVER)) for t in range(1, 101)]
>>> found = guarantee(events, delta=1e-5)
>>> found.grade.value, round(found.epsilon.upper_float, 6), found.assumptions
('enclosed', 1.0, ('example',))

Gaussian steps have a closed form; other events go to the tightest accountant that knows them all.
At delta 0, pure differential privacy, the largest privacy losses add up.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from math import inf

from flint import arb
from numpy.typing import ArrayLike

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import InvalidParameter, Number, require_delta, require_group
from ..mechanisms.events import (
    AccumulatedPoisson,
    DiscreteGaussianStep,
    Event,
    GaussianMixtureStep,
    Mechanism,
    Parties,
    PoissonSampled,
    SampledWithoutReplacement,
    SampledWithReplacement,
    whole_numbers_assumed,
)
from ..mechanisms.sensitivity import Derivation, Sensitivity
from .accountants import (
    Accountant,
    GdpAccountant,
    MomentsAccountant,
    PrivacyCurve,
    RdpAccountant,
    TightAccountant,
    ZcdpAccountant,
    tightest_accountant,
)
from .composition import Composition, UnpricedMechanism, composed
from .conversions import epsilon_from_zcdp
from .numbers.enclosure import BITS, Enclosure, maximum, precision, shown_in_full, shown_up
from .numbers.grade import Grade
from .numbers.notions import Gdp
from .proof.derivation import ONE_PARTY, held_apart
from .pure import pure_by_party
from .renyi.amplification import assumed_of_sample, in_groups, together_in_batches
from .renyi.curves import Selection, SelectionAccountant

NO_PROTECTION = 10.0
"""Above this epsilon a fair guess at membership may be right more than 99.995 % of the time."""


@dataclass(frozen=True, slots=True)
class Theorem:
    """A theorem that a guarantee rests on.

    Args:
        statement: in a few words.
        source: author, year and number.
    """

    statement: str
    source: str


_GAUSSIAN = Theorem("a Gaussian step is (sensitivity / noise_std)-GDP", "Dong, Roth, Su 2022, 2.7")
_COMPOSITION = Theorem("in a composition of GDP steps mu² adds up", "Dong, Roth, Su 2022, 3.3")
_PARTIES = Theorem("a record pays only for the party it lives with", "McSherry 2009, Theorem 4")
_CONVERSION = Theorem("the (epsilon, delta) curve of mu-GDP", "Balle, Wang 2018, Theorem 8")
_RENYI = Theorem("Rényi divergences of one order add up", "Mironov 2017, Proposition 1")
_FROM_RENYI = Theorem("RDP to (epsilon, delta)", "Canonne, Kamath, Steinke 2020, Proposition 12")
_PURE = (
    Theorem("the largest losses of mechanisms add up", "Dwork, Roth 2014, Theorem 3.14"),
    Theorem("pure DP under sampling", "Balle, Barthe, Gaboardi 2018, Theorems 8 and 9"),
)
DRAWN_NUMBER = (
    "the number of runs is drawn anew from its law (shape 1: geometric), and nothing of the runs "
    "but the best, nor their number, is shown"
)
"""What the best of several runs rests on: of a fixed number of runs it costs more."""

_GROUPS = Theorem(
    "k records move a release by at most k times what one does", "Dong, Roth, Su 2022, 2.14"
)
_PURE_METHOD = "the largest privacy losses, added up"
_BY_ACCOUNTANT: dict[type[Accountant], tuple[Theorem, ...]] = {
    GdpAccountant: (_GAUSSIAN, _COMPOSITION, _CONVERSION),
    TightAccountant: (Theorem("dominating pairs compose", "Zhu, Dong, Wang 2022, Theorem 10"),),
    RdpAccountant: (_RENYI, _FROM_RENYI),
    ZcdpAccountant: (
        Theorem("in a composition of zCDP steps rho adds up", "Bun, Steinke 2016, Lemma 2.3"),
        _FROM_RENYI,
    ),
    SelectionAccountant: (
        _RENYI,
        Theorem("the best of a random number of runs", "Papernot, Steinke 2022, Theorem 2"),
        _FROM_RENYI,
    ),
    MomentsAccountant: (
        _RENYI,
        Theorem("log moments to (epsilon, delta)", "Abadi et al. 2016, Theorem 2"),
    ),
}
"""What every answer of an accountant rests on."""

_SAMPLED: dict[type[Mechanism], Theorem] = {
    SampledWithoutReplacement: Theorem(
        "the pair of a fixed batch under replace-one", "Zhu, Dong, Wang 2022, Theorem 11"
    ),
    GaussianMixtureStep: Theorem(
        "a sampled and a constant shift are post-processing of both apart, the noise split",
        "Zhu, Dong, Wang 2022, Theorem 11, for the sampled one",
    ),
}
"""What the pairs of sampled mechanisms under replace-one rest on, beside."""

_BY_DIVERGENCE: dict[type[Mechanism], Theorem] = {
    PoissonSampled: Theorem(
        "Rényi divergences under Poisson sampling", "Mironov, Talwar, Zhang 2019, Theorems 4 and 5"
    ),
    AccumulatedPoisson: Theorem(
        "a sum of Poisson samples is a function of each with its share of the noise",
        "Mironov, Talwar, Zhang 2019, Theorems 4 and 5",
    ),
    **_SAMPLED,
    DiscreteGaussianStep: Theorem(
        "a discrete Gaussian costs no more than a Gaussian, order by order",
        "Canonne, Kamath, Steinke 2020, Theorem 4",
    ),
}
"""What the log moments of a kind of mechanism rest on."""

_BY_KIND: dict[type[Accountant], dict[type[Mechanism], Theorem]] = {
    GdpAccountant: {},
    TightAccountant: {
        PoissonSampled: Theorem("pairs under Poisson sampling", "Zhu, Dong, Wang 2022, Theorem 11"),
        AccumulatedPoisson: Theorem(
            "how often a record is drawn, as a mixture of Gaussian shifts",
            "Choquette-Choo, Ganesh, Steinke, Thakurta 2023",
        ),
        SampledWithReplacement: Theorem(
            "how often a batch drawn with replacement holds a record, the number revealed",
            "Balle, Barthe, Gaboardi 2018, Theorems 2 and 10",
        ),
        **_SAMPLED,
        DiscreteGaussianStep: Theorem(
            "discrete Gaussian noise of exact probabilities, the worst of all integer vectors",
            "Zhu, Dong, Wang 2022, Section 3; Canonne, Kamath, Steinke 2020, Definition 1",
        ),
    },
    RdpAccountant: _BY_DIVERGENCE,
    SelectionAccountant: _BY_DIVERGENCE,
    ZcdpAccountant: _BY_DIVERGENCE,
    MomentsAccountant: _BY_DIVERGENCE,
}
"""What an accountant's answer rests on, beside, where it priced such a mechanism."""


@dataclass(frozen=True, eq=False, slots=True)
class PartyCost:
    """What a record of any of these parties pays; no party stands for a record of none of them.

    Args:
        parties: that pay alike.
        mu_squared: as in `Guarantee.mu`, squared.
        epsilon: at the guarantee's delta.
    """

    parties: tuple[str, ...]
    mu_squared: Enclosure
    epsilon: Enclosure


@dataclass(frozen=True, eq=False, slots=True)
class Guarantee:
    """What a list of events guarantees to one record, or to a unit of several.

    Args:
        adjacency: the relation of all events; None only where no event speaks of one.
        delta: at which epsilon is.
        epsilon: encloses the smallest epsilon for these sensitivities and noises (for a Gaussian
            mixture step, several batches of a fixed size, and groups with discrete Gaussian noise,
            whose dominating pair need not be met: that of the pair; for accumulated batches: that
            of each with its share of the noise; for batches drawn with replacement: from that of
            one copy, or of the pair, to that of the pair); infinite where something left without a
            mechanism.
        notion: Gdp, infinite where not only Gaussian steps ran.
        mu: where not only Gaussian steps ran no finite mu is known: its upper end is infinite.
        rho: of zCDP; its upper end is infinite unless every step has one.
        by_party: what records of each party pay; `epsilon` is the largest.
        grade: what stands behind `epsilon`.
        method: how it was found, in a phrase.
        theorems: what it rests on.
        assumptions: the reasons of declared sensitivities, and what sampling rests on.
        unprotected: what left without a mechanism.
        not_proved: why no proof stands behind `epsilon`, where one was looked for.
        group: how many records a unit has at most, whose epsilon, mu and rho these are.
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
    not_proved: str = ""
    group: int = 1

    def __repr__(self) -> str:
        """Return the number and what it is stated for, on one line."""
        relation = "no relation" if self.adjacency is None else self.adjacency.value
        upper = shown_up(self.epsilon.upper_float)
        records = f"{self.group} records, " if self.group > 1 else ""
        return (
            f"ε ≤ {upper} at δ = {shown_in_full(self.delta)} ({records}{relation}; {self.graded})"
        )

    @property
    def graded(self) -> str:
        """The grade of `epsilon`, and why it is not proved where a proof was looked for."""
        grade = self.grade.value
        return f"{grade}, not proved: {self.not_proved}" if self.not_proved else grade


def guarantee(
    events: Iterable[Event],
    *,
    delta: Number,
    adjacency: Adjacency | None = None,
    group: int = 1,
    selection: Selection | None = None,
    accountant: type[Accountant] | None = None,
) -> Guarantee:
    """Return the enclosed guarantee of `events`, whose number and parameters are fixed in advance.

    What a run spent before it was stopped is no such list: `Ledger.guarantee` says so.

    Args:
        events: of a plan or of a run.
        delta: in [0, 1); 0 is pure differential privacy.
        adjacency: the relation the events are expected to speak of.
        group: records that a unit of privacy has at most: all of them added, removed, zeroed or
            replaced together (see `in_groups`).
        selection: where the events are one of several runs, of which the best alone is published:
            the law of their number. Epsilon encloses what the theorem bounds and one run costs.
        accountant: asked in place of the tightest at delta > 0, without a selection.

    Raises:
        InvalidParameter: delta or group out of range; delta = 0 with a selection.
        AdjacencyMismatch: the events speak of several relations, or of another one.
        UnpricedMechanism: no accountant knows a mechanism under this relation.
    """
    require_delta(delta)
    require_group("group", group)
    if selection is not None and delta == 0:
        raise InvalidParameter("delta", delta, "in (0, 1) for the best of several runs")
    listed = tuple(events)
    composition = composed(listed, adjacency=adjacency)
    gaussian_only = selection is None and not any(a.others for _, a in composition.accounts)
    if delta == 0:
        by_party = _by_party(composition, pure_by_party(composition, group=group), group)
        grade, method, theorems = Grade.ENCLOSED, _PURE_METHOD, _pure_theorems(composition)
    else:
        if selection is not None:
            asked: Accountant = SelectionAccountant(selection).with_composition(composition)
        elif accountant is not None:
            asked = accountant.over(composition)
        else:
            asked = tightest_accountant(composition, group=group)
        by_party = _by_party(composition, asked.epsilon_by_party(delta, group=group), group)
        grade, method = asked.grade, asked.method
        theorems = _theorems(composition, asked, group)
    if group > 1:
        theorems = (*theorems, _GROUPS)
    if selection is not None:  # of the best run no mu is known
        unknown = (Enclosure(cost.mu_squared.lower, arb(inf)) for cost in by_party)
        pairs = zip(by_party, unknown, strict=True)
        by_party = tuple(replace(cost, mu_squared=mu_squared) for cost, mu_squared in pairs)
    total = maximum([cost.mu_squared for cost in by_party])
    return Guarantee(
        adjacency=composition.adjacency,
        delta=delta,
        epsilon=maximum([cost.epsilon for cost in by_party]),
        notion=Gdp(composition.spent * group**2 if gaussian_only else inf),
        mu=_mapped(total, arb.sqrt),
        rho=_rho(composition, total, gaussian_only=gaussian_only, group=group)
        if selection is None
        else _mapped(total, lambda end: end / 2),
        by_party=by_party,
        grade=grade,
        method=method,
        theorems=(*theorems, _PARTIES) if composition.apart else theorems,
        assumptions=(
            *_assumptions(listed, composition),
            *_parted(composition, group, gaussian_only, delta),
            *((DRAWN_NUMBER,) if selection is not None else ()),
        ),
        unprotected=composition.unprotected,
        group=group,
    )


def _parted(
    composition: Composition, group: int, gaussian_only: bool, delta: Number
) -> tuple[str, ...]:
    """Return what is taken for granted of whose records are whose: that each is one party's, and
    all of a unit where one that lives with several parties might pay more than is said.

    By mu, and by pure epsilon, it pays at most `group` times what its dearest record does.
    """
    apart = (held_apart(composition.adjacency),) if composition.apart else ()
    if group == 1 or gaussian_only or delta == 0:
        return apart
    accounts = composition.accounts
    spread = len(accounts) > 2 or any(together_in_batches(a, group) for _, a in accounts)
    return (*apart, ONE_PARTY) if spread else apart


def weaknesses(epsilon: float, delta: Number, records: int | None) -> tuple[str, ...]:
    """Return what is weak about a promise whatever its proof, a sentence each.

    Args:
        epsilon: its upper end; infinity is allowed.
        delta: in (0, 1).
        records: public number of units at least; None if it is not known.
    """
    found: list[str] = []
    if records is not None and delta * records >= 1:
        found.append(
            f"delta={shown_in_full(delta)} is at least 1 / records: a mechanism that publishes one "
            "whole record would keep it."
        )
    if epsilon > NO_PROTECTION:
        number = "infinite" if epsilon == inf else shown_up(epsilon, digits=4)
        found.append(f"epsilon is {number}: this is no protection.")
    return tuple(found)


def _by_party(
    composition: Composition, epsilons: Sequence[tuple[tuple[str, ...], Enclosure]], group: int
) -> tuple[PartyCost, ...]:
    """Return what a unit pays with each set of parties; equal accounts are computed once.

    Args:
        composition: of what one record pays.
        epsilons: of a unit, for each set of parties.
        group: records of a unit.
    """
    accounts = [(names, in_groups(account, group)) for names, account in composition.accounts]
    known: dict[tuple[object, ...], Enclosure] = {}
    for _, account in accounts:
        if account.key not in known:
            total = account.gaussian_mu_squared
            if account.reasons:
                total = Enclosure.of(inf)
            elif account.others:
                total = Enclosure(total.lower, arb(inf))
            known[account.key] = total
    found = dict(epsilons)
    return tuple(
        PartyCost(parties, known[account.key], found[parties]) for parties, account in accounts
    )


def _rho(
    composition: Composition, mu_squared: Enclosure, *, gaussian_only: bool, group: int
) -> Enclosure:
    """Return an enclosure of rho: half of mu² where that is known, else by zCDP prices."""
    halved = _mapped(mu_squared, lambda end: end / 2)
    if gaussian_only:
        return halved
    try:
        return Enclosure(halved.lower, _zcdp(composition, group).upper)
    except UnpricedMechanism:
        return halved


def _zcdp(composition: Composition, group: int) -> Enclosure:
    """Return rho of a unit by zCDP prices; raise `UnpricedMechanism` for what has none."""
    accountant = ZcdpAccountant.over(composition)
    accounts = [in_groups(account, group, counted=False) for _, account in composition.accounts]
    return maximum([accountant.rho(account) for account in accounts])


def _kinds(composition: Composition) -> set[type[Mechanism]]:
    """Return which kinds of mechanisms ran that are no Gaussian steps."""
    return {type(m) for _, account in composition.accounts for m in account.others}


def _pure_theorems(composition: Composition) -> tuple[Theorem, ...]:
    sampled = _kinds(composition) & {PoissonSampled, SampledWithoutReplacement}
    return _PURE if sampled else _PURE[:1]


def _theorems(composition: Composition, accountant: Accountant, group: int) -> tuple[Theorem, ...]:
    """Return what an answer rests on: of each accountant that was consulted, and by kind."""
    kinds = _kinds(composition)
    if group > 1 and PoissonSampled in kinds:  # see `in_groups`
        kinds.add(AccumulatedPoisson)
    if group > 1 and SampledWithoutReplacement in kinds:
        kinds.add(SampledWithReplacement)
    found: dict[Theorem, None] = {}
    for consulted in accountant.consulted:
        by_kind = (theorem for kind, theorem in _BY_KIND[consulted].items() if kind in kinds)
        found |= dict.fromkeys((*_BY_ACCOUNTANT[consulted], *by_kind))
    return tuple(found)


def assumptions_of(events: Sequence[Event], *, delta: Number, group: int = 1) -> tuple[str, ...]:
    """Return what a guarantee of events takes for granted; nothing is priced.

    Args:
        events, delta, group: as for `guarantee`.

    Raises as `guarantee` does, but for what has no price.
    """
    composition = composed(events)
    gaussian_only = not any(account.others for _, account in composition.accounts)
    parted = _parted(composition, group, gaussian_only, delta)
    return (*_assumptions(events, composition), *parted)


def _assumptions(events: Sequence[Event], composition: Composition) -> tuple[str, ...]:
    """Return what is declared of the data, that what is to be whole is, and that samples stay
    hidden where there are any.
    """
    derivations: dict[int, Derivation] = {}
    whole: dict[str, None] = {}
    for event in events:
        for sensitivity in _sensitivities(event.mechanism):
            derivations[id(sensitivity.derivation)] = sensitivity.derivation
        whole |= dict.fromkeys(whole_numbers_assumed(event.mechanism))
    declared = dict.fromkeys(a for d in derivations.values() for a in d.assumptions()) | whole
    sampled = (m for _, account in composition.accounts for m in account.others)
    return (*declared, *dict.fromkeys(text for m in sampled for text in assumed_of_sample(m)))


def _sensitivities(mechanism: Mechanism) -> Iterator[Sensitivity]:
    """Yield the sensitivities inside a mechanism."""
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
    """Return the image of an enclosure under a growing function, rounded outward."""
    with precision(BITS):
        lower, upper = growing(value.lower), growing(value.upper)
        return Enclosure.hull(Enclosure.from_ball(lower), Enclosure.from_ball(upper))


def epsilons_at(
    events: Iterable[Event],
    *,
    deltas: ArrayLike,
    grade: Grade = Grade.ENCLOSED,
    group: int = 1,
) -> PrivacyCurve:
    """Return the curve at the given deltas: epsilons rounded up.

    Args:
        events: of a plan or of a run.
        deltas: array of shape (n,), in (0, 1); the fast grade wants them >= 1e-300.
        grade: enclosed (ball arithmetic) or fast (doubles with an outward allowance).
        group: records that a unit has at most.

    Raises as `guarantee` does.
    """
    return tightest_accountant(composed(events), group=group).curve(
        deltas, grade=grade, group=group
    )


def deltas_at(
    events: Iterable[Event],
    *,
    epsilons: ArrayLike,
    grade: Grade = Grade.ENCLOSED,
    group: int = 1,
) -> PrivacyCurve:
    """Return the curve at the given epsilons, array of shape (n,) in [0, inf]: deltas rounded up.

    Otherwise as `epsilons_at`.
    """
    return tightest_accountant(composed(events), group=group).curve_at(
        epsilons, grade=grade, group=group
    )


@dataclass(frozen=True, eq=False, slots=True)
class ConversionComparison:
    """The epsilon of the same events at the same delta in four ways.

    Args:
        exact: encloses the tightest epsilon, the least of all four.
        rdp: by Rényi divergences at the best order (Canonne, Kamath, Steinke 2020).
        zcdp: rho + 2 sqrt(rho ln 1/delta) (Bun, Steinke 2016); infinite where a step has no rho, as
            sampled ones.
        moments: by log moments of whole orders (Abadi et al. 2016).
    """

    exact: Enclosure
    rdp: Enclosure
    zcdp: Enclosure
    moments: Enclosure


def compare_conversions(
    events: Iterable[Event], *, delta: Number, max_order: int = 32, group: int = 1
) -> ConversionComparison:
    """Return epsilon by the tightest accountant and by those of the literature.

    Args:
        events: of a plan or of a run.
        delta: in (0, 1).
        max_order: the largest order of the moments accountant.
        group: records that a unit has at most.

    Raises as `guarantee` does.
    """
    listed = tuple(events)
    composition = composed(listed)
    moments = MomentsAccountant(max_order=max_order).with_composition(composition)
    try:
        rho = _zcdp(composition, group)
    except UnpricedMechanism:
        rho = Enclosure.of(inf)
    return ConversionComparison(
        exact=tightest_accountant(composition, group=group).epsilon(delta, group=group),
        rdp=_bound(RdpAccountant.over(composition).epsilon(delta, group=group)),
        zcdp=epsilon_from_zcdp(rho=rho, delta=delta),
        moments=_bound(moments.epsilon(delta, group=group)),
    )


def _bound(found: Enclosure) -> Enclosure:
    """Return the upper end alone: what the accountant says, not where the truth lies."""
    return Enclosure(found.upper, found.upper)
