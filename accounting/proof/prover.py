"""The search for derivations: what to try, and witnesses found in fast arithmetic.

Nothing here is trusted: rules admit or refuse what is found, and a refusal is the worst that a
mistake can cause.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import ceil, inf, nextafter

from ...mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from ..composition import UnpricedMechanism
from ..conversions import epsilon_from_rdp, epsilon_from_zcdp_by_orders
from ..gaussian.exact import epsilon_from_delta
from ..numbers.enclosure import Enclosure, Undecided
from ..numbers.notions import Gdp, Rdp, Zcdp
from ..pld.from_mechanisms import NoDominatingPair
from .judgement import Exposure, Priv, RuleViolation, written
from .losses import Composed, LossGrid, TooFine, epsilon_upper, suggested
from .rules import conversion, privacy, sampling
from .rules.loss_distribution import loss_conditions, privacy_loss

__all__ = ["Search"]

_COST_BITS = 128
_FEW = 8
"""Sums of more terms than this are of dyadic costs, rounded up: the digits would not end."""

_ORDERS = (2, 4, 8, 16, 32, 64, 128, 256, 512)

_FINENESS = (1.0, 2.0, 4.0, 8.0, 0.5, 0.25)
_GAIN = 5e-4
"""A finer grid is tried as long as it takes this part off ε; over many levels one will do:
losses are then near to normal, and what a grid adds to their variance is known beforehand."""

_SHORT = 8


class Search:
    """Derivations for one event list; every judgement is made once."""

    def __init__(self, events: Sequence[Event], delta: Fraction, group: int) -> None:
        self._events = events
        self._delta = delta
        self._group = group
        self._mechanisms = {written(m): m for e in events for m in _inside(e.mechanism)}
        self._leaves = [
            m for m in self._mechanisms.values() if not isinstance(m, Repeated | Parties)
        ]
        self._exposures = privacy.exposures(events)
        self._made: dict[tuple[str, Gdp | Zcdp | Rdp], Priv] = {}
        self._short: dict[int, Priv] = {}

    def best(self) -> Priv:
        if all(isinstance(m, GaussianStep) for m in self._leaves):
            return self._by_gdp()
        if any(isinstance(m, PoissonSampled | SampledWithoutReplacement) for m in self._leaves):
            return self._by_rdp()
        return self._by_zcdp()

    def _by_gdp(self) -> Priv:
        whole = self._whole(Gdp(0))
        found = epsilon_from_delta(mu_squared=whole.cost, delta=self._delta)
        return _admitted(
            found, lambda e: conversion.gdp_approx_dp(whole, delta=self._delta, epsilon=e)
        )

    def _by_zcdp(self) -> Priv:
        whole = self._whole(Zcdp(0))
        bound = epsilon_from_zcdp_by_orders(rho=whole.cost, delta=self._delta)
        order = Fraction(2) if bound.order == inf else Fraction(bound.order)
        return self._from_rdp(conversion.zcdp_rdp(whole, order))

    def _by_rdp(self) -> Priv:
        if self._group != 1:
            raise RuleViolation("Expected group=1: no rule enlarges groups under Rényi DP.")
        found = {order: self._from_rdp(self._whole(Rdp(order, 0))) for order in _ORDERS}
        order = min(found, key=lambda a: found[a].cost)
        step = order // 2
        while step > 0:
            for near in (order - step, order + step):
                if 2 <= near <= sampling.MAX_ORDER and near not in found:
                    found[near] = self._from_rdp(self._whole(Rdp(near, 0)))
            order = min(found, key=lambda a: found[a].cost)
            step //= 2
        return found[order]

    def tightest(self) -> Priv:
        """Return a derivation by loss distributions where they help, else the best other one."""
        if all(isinstance(m, GaussianStep) for m in self._leaves):
            return self.best()
        try:
            parts = [self._by_losses(exposure) for exposure in self._exposures]
        except (RuleViolation, NoDominatingPair, UnpricedMechanism, Undecided, TooFine):
            return self.best()
        return privacy.events(self._events, parts)

    def _by_losses(self, exposure: Exposure) -> Priv:
        counts = {self._mechanisms[text]: n for text, n in sorted(exposure.counts)}
        relations = [loss_conditions(mechanism)[0] for mechanism in counts]
        adjacency = relations[0]
        best: tuple[Fraction, Composed, LossGrid] | None = None
        for fineness in _FINENESS:
            composed, grid = suggested(
                counts, adjacency, self._delta, group=self._group, fineness=fineness
            )
            if best is not None and fineness > 1:
                continue
            try:
                epsilon = epsilon_upper(composed, grid, self._delta)
            except TooFine:
                continue
            gained = best is None or epsilon < best[0] * (1 - _GAIN)
            if best is None or epsilon < best[0]:
                best = epsilon, composed, grid
            if not gained or not grid.doublings or len(grid.doublings) > _SHORT:
                break
        if best is None:
            raise TooFine("Expected losses that fit on a grid.")
        epsilon, composed, grid = best
        return privacy_loss(composed, grid=grid, delta=self._delta, epsilon=epsilon)

    def _from_rdp(self, whole: Priv) -> Priv:
        assert isinstance(whole.notion, Rdp)
        found = epsilon_from_rdp(order=whole.notion.order, rdp=whole.cost, delta=self._delta)
        return _admitted(
            found, lambda e: conversion.rdp_approx_dp(whole, delta=self._delta, epsilon=e)
        )

    def _whole(self, family: Gdp | Zcdp | Rdp) -> Priv:
        views = [self._composed(exposure, family) for exposure in self._exposures]
        whole = privacy.events(self._events, views)
        return whole if self._group == 1 else privacy.group(whole, self._group)

    def _composed(self, exposure: Exposure, family: Gdp | Zcdp | Rdp) -> Priv:
        counts = sorted(exposure.counts)
        parts = [self._one(self._mechanisms[text], family) for text, _ in counts]
        if len(counts) == 1 and counts[0][1] == 1:
            return parts[0]
        if len(counts) > _FEW:
            parts = [self._shortened(part) for part in parts]
        return privacy.composition(parts, [n for _, n in counts])

    def _one(self, mechanism: Mechanism, family: Gdp | Zcdp | Rdp) -> Priv:
        key = (written(mechanism), family)
        if key not in self._made:
            self._made[key] = self._derived(mechanism, family)
        return self._made[key]

    def _shortened(self, part: Priv) -> Priv:
        """Return the part with a short cost; once, however many parties it concerns."""
        if id(part) not in self._short:
            self._short[id(part)] = _shortened(part)
        return self._short[id(part)]

    def _derived(self, mechanism: Mechanism, family: Gdp | Zcdp | Rdp) -> Priv:
        match mechanism:
            case Repeated():
                return privacy.repeated(mechanism, self._one(mechanism.event, family))
            case Parties():
                parts = [
                    self._composed(Exposure.of(Counter(map(written, listed))), family)
                    for _, listed in mechanism.parts
                    if listed
                ]
                return privacy.parties(mechanism, parts)
            case PoissonSampled() | SampledWithoutReplacement() if isinstance(family, Rdp):
                return _sampled(mechanism, int(family.order))
            case _:
                return _plain(mechanism, family)


def _inside(mechanism: Mechanism) -> Iterator[Mechanism]:
    """Yield a mechanism and those that it is made of, as far as rules look into it."""
    yield mechanism
    match mechanism:
        case Repeated():
            yield from _inside(mechanism.event)
        case Parties():
            for _, listed in mechanism.parts:
                for part in listed:
                    yield from _inside(part)
        case _:
            pass


def _plain(mechanism: Mechanism, family: Gdp | Zcdp | Rdp) -> Priv:
    if isinstance(family, Rdp):
        return conversion.zcdp_rdp(_plain(mechanism, Zcdp(0)), Fraction(family.order))
    match mechanism:
        case GaussianStep():
            return (privacy.gaussian_gdp if isinstance(family, Gdp) else privacy.gaussian_zcdp)(
                mechanism
            )
        case DiscreteGaussianStep():
            return privacy.discrete_gaussian_zcdp(mechanism)
        case LaplaceStep():
            return privacy.laplace_zcdp(mechanism)
        case DiscreteLaplaceStep():
            return privacy.discrete_laplace_zcdp(mechanism)
        case _:
            raise RuleViolation(f"no rule prices {mechanism}.")


def _sampled(mechanism: PoissonSampled | SampledWithoutReplacement, order: int) -> Priv:
    step = mechanism.event
    if not isinstance(step, GaussianStep):
        raise RuleViolation(f"no rule prices {mechanism}.")
    _, ratio, _ = privacy.ratio_squared(step.sensitivity, step.noise_std, step.sensitivity.norm)
    if isinstance(mechanism, PoissonSampled):
        found = sampling.poisson_divergence(ratio, Fraction(mechanism.rate), order)
        return _admitted(found, lambda e: sampling.poisson_rdp(mechanism, order=order, epsilon=e))
    share = Fraction(mechanism.batch, mechanism.records)
    found = sampling.fixed_batch_divergence(ratio, share, order)
    return _admitted(found, lambda e: sampling.fixed_batch_rdp(mechanism, order=order, epsilon=e))


def _admitted(found: Enclosure, rule: Callable[[Fraction], Priv]) -> Priv:
    """Return what `rule` concludes at the first binary64 above `found` that it can decide on."""
    witness = found.upper_float
    for k in range(52):
        if witness == inf:
            break
        try:
            return rule(Fraction(witness))
        except Undecided:
            witness = nextafter(witness * (1 + 2.0 ** (k - 52)), inf)
    raise RuleViolation("Expected a finite cost that can be decided on.")


def _shortened(judgement: Priv) -> Priv:
    """Return the judgement with its cost rounded up to a dyadic rational of 128 bits."""
    cost = judgement.cost
    numerator, denominator = cost.numerator, cost.denominator
    if denominator & (denominator - 1) == 0 and numerator.bit_length() <= _COST_BITS:
        return judgement
    scale = Fraction(2) ** (_COST_BITS - numerator.bit_length() + denominator.bit_length())
    return privacy.weaken(judgement, Fraction(ceil(cost * scale)) / scale)
