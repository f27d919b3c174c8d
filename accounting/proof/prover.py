"""The search for derivations: what to try, and witnesses found in fast arithmetic.

Nothing here is trusted: the checker admits or refuses what is found, and a refusal is the worst
that a mistake can cause. In comes a list of events with delta; out goes a tree of `Step`s, which
`certificate` writes down.

Which notion: Gaussian steps alone go by GDP, which is exact. Anything else is tried by privacy loss
distributions on a grid (`losses`), which are the tightest; where they do not apply, by zCDP, or by
Rényi DP where there are samples. At delta 0 only pure DP says anything. An epsilon is a *witness*:
the upper end of an enclosure, at which the checker finds the inequality true.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, inf

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.encoding import subject_hash
from ...mechanisms.events import (
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
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    adjacencies,
    whole_numbers_assumed,
)
from ...mechanisms.sensitivity import Sensitivity, float_up
from ..composition import UnpricedMechanism
from ..conversions import epsilon_from_rdp, epsilon_from_zcdp_by_orders
from ..gaussian.exact import epsilon_from_delta
from ..numbers.enclosure import BITS, Enclosure, TooWide, precision, shown_in_full
from ..numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from ..pld.doubling import LossGrid, TooFine
from ..pld.from_mechanisms import NoDominatingPair
from ..pure import largest_loss
from ..renyi.amplification import assumed_of_sample, in_one_batch, require_amplification
from ..renyi.rdp import is_sampled
from .derivation import (
    FILTERED,
    ONE_PARTY,
    Exposure,
    NoRule,
    Parameter,
    PrivacyNotion,
    Step,
    exposures,
    held_apart,
    written,
)
from .losses import Composed, Counts, epsilon_upper, laplace_epsilon, suggested
from .sampling import MAX_ORDER, fixed_batch_divergence, poisson_divergence

_COST_BITS = 128
"""Of a cost that is rounded up: 2^-128 of it is far below what anybody prints."""

_FEW = 8
"""Sums of more terms than this are of dyadic costs, rounded up: the digits would not end."""

_ORDERS = (2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Rényi orders tried first; between the best two the search goes on by halves."""

_FINENESS = (1.0, 2.0, 4.0, 8.0, 0.5, 0.25)
"""Of grids, relative to the suggested one: finer while that gains, coarser where it does not fit.
"""

_GAIN = 5e-4
"""A finer grid is tried as long as it takes this part off ε; over many levels one will do:
losses are then near to normal, and what a grid adds to their variance is known beforehand."""

_SHORT = 8
"""Doublings of a grid beyond which a second fineness is not tried.

"""

_Family = Gdp | Zcdp | Rdp | ApproxDp
_PURE = ApproxDp(0, 0)
"""Stands for pure DP, at epsilon and delta 0: a family, not a claim."""

_Noisy = GaussianStep | LaplaceStep | DiscreteGaussianStep | DiscreteLaplaceStep | PureStep
"""Mechanisms that add noise of one scale to a query of known sensitivity."""


class Search:
    """Derivations for one event list; every step is made once.

    Args:
        events: of a plan or a run, of one relation.
        delta: in [0, 1).
        group: how many records the conclusion protects together.

    Raises `NoRule` for events of several relations.

    Steps are shared: a mechanism that a thousand parties run is derived once, and its step is a
    premise of each of them. `best` is cheap; `tightest` composes loss distributions and takes
    seconds.
    """

    def __init__(self, events: Sequence[Event], delta: Fraction, group: int) -> None:
        self._events = events
        self._delta = delta
        self._group = group
        self._mechanisms = {written(m): m for e in events for m in _inside(e.mechanism)}
        self._leaves = [
            m for m in self._mechanisms.values() if not isinstance(m, Repeated | Parties)
        ]
        relations = {relation for m in self._leaves for relation in adjacencies(m)}
        if len(relations) > 1:
            raise NoRule(f"several relations: {sorted(r.value for r in relations)}.")
        self._adjacency = next(iter(relations), Adjacency.REPLACE_ONE)
        self._exposures = exposures(events)
        self._made: dict[tuple[str, _Family], Step] = {}
        self._short: dict[int, Step] = {}

    def best(self) -> Step:
        """Return a derivation by GDP, zCDP, pure DP or Rényi DP.

        Raises `NoRule` where none leads to a finite cost.
        """
        if self._delta == 0:
            return _in_doubles(self.whole(_PURE))
        if self._is_gaussian:
            return self._by_gdp(self.whole(Gdp(0)))
        sampled = any(map(is_sampled, self._leaves))
        try:
            return self._by_rdp() if sampled else self._by_zcdp(self.whole(Zcdp(0)))
        except NoRule as why:
            try:
                pure = _in_doubles(self.whole(_PURE))
            except NoRule:
                raise why from None
            notion = ApproxDp(pure.cost, self._delta)
            return pure.then("pure-approx-dp", notion, delta=self._delta)

    def within(self, budget: Gdp | Zcdp | Rdp) -> Step:
        """Return (epsilon, delta)-DP of whatever a filter with this budget lets happen.

        Args:
            budget: fixed beforehand, of finite order; towards one record, whatever the group.

        Raises `NoRule` for events that cost more than the budget, or nothing in its notion.
        """
        if self._delta == 0 or (isinstance(budget, Gdp) and not self._is_gaussian):
            raise NoRule(f"at delta {shown_in_full(self._delta)} no finite cost under {budget}.")
        found = self._of_one(budget)
        limit = replace(found, notion=budget).cost
        if limit < found.cost:
            raise NoRule(f"a cost of at most {budget} instead of {float_up(found.cost):g}.")
        kept = found.then("filter", budget, budget=limit)
        whole = self._enlarged(replace(kept, assumptions=FILTERED))
        match budget:
            case Gdp():
                return self._by_gdp(whole)
            case Zcdp():
                return self._by_zcdp(whole)
            case Rdp():
                return self._from_rdp(whole)

    @property
    def _is_gaussian(self) -> bool:
        """Whether every mechanism is a Gaussian step, for which GDP is exact."""
        return all(isinstance(m, GaussianStep) for m in self._leaves)

    def _by_gdp(self, whole: Step) -> Step:
        """Return (epsilon, delta)-DP by the exact curve of μ-GDP (Balle, Wang 2018, Theorem 8)."""
        found = epsilon_from_delta(mu_squared=whole.cost, delta=self._delta)
        return self._converted(whole, "gdp-approx-dp", found)

    def _by_zcdp(self, whole: Step) -> Step:
        """Return (epsilon, delta)-DP by rho and the best Rényi order, whole or not.

        ρ-zCDP is (α, ρα)-RDP for every α (Bun, Steinke 2016, Definition 1.1), converted by Canonne,
        Kamath, Steinke 2020, Proposition 12.
        """
        bound = epsilon_from_zcdp_by_orders(rho=whole.cost, delta=self._delta)
        order = Fraction(2) if bound.order == inf else Fraction(bound.order)
        return self._from_rdp(_at_order(whole, order))

    def _by_rdp(self) -> Step:
        """Return the best derivation over whole Rényi orders.

        Epsilon over orders falls and then grows: the powers of two bracket the least, and steps of
        half the distance close in on it.
        """
        found = {order: self._from_rdp(self.whole(Rdp(order, 0))) for order in _ORDERS}
        order = min(found, key=lambda a: found[a].cost)
        step = order // 2
        while step > 0:
            for near in (order - step, order + step):
                if 2 <= near <= MAX_ORDER and near not in found:
                    found[near] = self._from_rdp(self.whole(Rdp(near, 0)))
            order = min(found, key=lambda a: found[a].cost)
            step //= 2
        return found[order]

    def _from_rdp(self, whole: Step) -> Step:
        """Return (epsilon, delta)-DP of a step in Rényi DP, at the smallest epsilon that its order
        allows.
        """
        assert isinstance(whole.notion, Rdp)
        found = epsilon_from_rdp(order=whole.notion.order, rdp=whole.cost, delta=self._delta)
        return self._converted(whole, "rdp-approx-dp", found)

    def _converted(self, whole: Step, rule: str, found: Enclosure) -> Step:
        """Return (epsilon, delta)-DP of the whole run, epsilon the witness of an enclosure.

        Args:
            whole: the run's cost in another notion.
            rule: the conversion's name in docs/rules.md.
            found: encloses epsilon at the search's delta.
        """
        epsilon = _witness(found)
        notion = ApproxDp(epsilon, self._delta)
        return whole.then(rule, notion, delta=self._delta, epsilon=epsilon)

    def tightest(self) -> Step:
        """Return a derivation by loss distributions where they help, else the best other one."""
        if self._delta == 0 or self._is_gaussian:
            return self.best()
        try:
            parts = [self._by_losses(exposure) for exposure in self._exposures]
        except (NoRule, NoDominatingPair, UnpricedMechanism, TooWide, TooFine):
            return self.best()
        return self.run(parts)

    def _by_losses(self, exposure: Exposure) -> Step:
        """Return what a record with this exposure pays, by the distribution of its privacy loss.

        Grids are tried in the order of `_FINENESS`, and the best is kept. Raises `TooFine` where no
        grid holds the losses.

        Several orders of the pair, for instance of adding and removing a record, are composed
        apart, and the larger epsilon counts (Zhu, Dong, Wang 2022, Theorem 10).
        """
        counts = [(self._mechanisms[text], n) for text, n in sorted(exposure.counts)]
        assumptions = frozenset[str]().union(*(_assumed(each) for each, _ in counts))
        if self._group > 1 and any(in_one_batch(each, self._group) for each, _ in counts):
            assumptions |= {ONE_PARTY}
        closed = laplace_epsilon(counts, self._adjacency, self._delta, self._group)
        if closed is not None:
            return self._by_laplace(exposure, counts, closed, assumptions)
        best: tuple[Fraction, Composed, LossGrid] | None = None
        for fineness in _FINENESS:
            composed, grid = suggested(
                counts, self._adjacency, self._delta, group=self._group, fineness=fineness
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
        return privacy_loss(exposure, *best, self._delta, assumptions)

    def _by_laplace(
        self,
        exposure: Exposure,
        counts: Counts,
        epsilon: Enclosure,
        assumptions: frozenset[str],
    ) -> Step:
        """Return what a record with this exposure pays where all of it is Laplace noise, in closed
        form.

        Args:
            exposure: the steps that it meets.
            counts: what is composed.
            epsilon: encloses the exact value; its upper end is the witness.
            assumptions: that the sensitivities rest on.
        """
        witness = _witness(epsilon)
        parameters: dict[str, Parameter] = {
            "parts": tuple(counts),
            "group": self._group,
            "delta": self._delta,
            "epsilon": witness,
        }
        return Step(
            exposure,
            self._adjacency,
            ApproxDp(witness, self._delta),
            "laplace-losses",
            tuple(parameters.items()),
            group=self._group,
            assumptions=assumptions,
        )

    def whole(self, family: _Family) -> Step:
        """Return what the run costs in a notion, whatever numbers `family` has."""
        return self._enlarged(self._of_one(family))

    def _of_one(self, family: _Family) -> Step:
        """Return the same towards one record, whatever the search's group."""
        return self.run([self._composed(exposure, family) for exposure in self._exposures])

    def _enlarged(self, whole: Step) -> Step:
        """Return the same towards groups, of what one record pays.

        Groups of k cost k times as much in pure DP (Dwork, Roth 2014, Theorem 2.2), k² times in mu²
        and rho.

        Raises `NoRule` under Rényi DP.
        """
        if self._group == 1:
            return whole
        if isinstance(whole.notion, Rdp):
            raise NoRule("groups: no rule enlarges them under Rényi DP.")
        factor = self._group if isinstance(whole.notion, ApproxDp) else self._group**2
        larger = whole.then("group", whole.at_cost(factor * whole.cost), size=self._group)
        return replace(larger, group=self._group)

    def run(self, views: Sequence[Step]) -> Step:
        """Return what the whole run costs, from what records of each party pay: the largest of
        these.

        Args:
            views: a derivation for each exposure that a record can have.
        """
        dearest = max(views, key=lambda view: view.cost)
        split = any(isinstance(m, Parties) for m in self._mechanisms.values())
        named = split or any(event.context.parties for event in self._events)
        return Step(
            subject_hash(self._events),
            self._adjacency,
            dearest.notion,
            "events",
            premises=tuple(views),
            group=dearest.group,
            assumptions=frozenset({held_apart(self._adjacency)} if named else ()) | _spread(views),
        )

    def _composed(self, exposure: Exposure, family: _Family) -> Step:
        """Return the sum of what an exposure's mechanisms cost, in one notion."""
        counts = sorted(exposure.counts)
        parts = [self._one(self._mechanisms[text], family) for text, _ in counts]
        if len(counts) == 1 and counts[0][1] == 1:
            return parts[0]
        if len(counts) > _FEW:
            parts = [self._shortened(part) for part in parts]
        times = tuple(n for _, n in counts)
        cost = sum((n * part.cost for n, part in zip(times, parts, strict=True)), Fraction(0))
        return Step(
            exposure,
            self._adjacency,
            parts[0].at_cost(cost),
            "composition",
            (("times", times),),
            premises=tuple(parts),
        )

    def _one(self, mechanism: Mechanism, family: _Family) -> Step:
        """Return what a mechanism costs in a notion; derived once, however often it ran."""
        key = (written(mechanism), family)
        if key not in self._made:
            self._made[key] = self._derived(mechanism, family)
        return self._made[key]

    def _shortened(self, part: Step) -> Step:
        """Return the part with a short cost; once, however many parties it concerns."""
        if id(part) not in self._short:
            self._short[id(part)] = _shortened(part)
        return self._short[id(part)]

    def _derived(self, mechanism: Mechanism, family: _Family) -> Step:
        """Return the step of one mechanism in a notion, by the rule that knows it; raise `NoRule`
        without one.
        """
        match mechanism:
            case Repeated():
                once = self._one(mechanism.event, family)
                notion = once.at_cost(mechanism.times * once.cost)
                return replace(
                    once.then("repeated", notion, mechanism=mechanism),
                    subject=Exposure.of({written(mechanism): 1}),
                )
            case PoissonSampled() | SampledWithoutReplacement() if isinstance(family, Rdp):
                return self._sampled(mechanism, Fraction(family.order))
            case _ if isinstance(family, ApproxDp):
                return self._pure(mechanism)
            case _:
                return self._plain(mechanism, family)

    def _pure(self, mechanism: Mechanism) -> Step:
        """Return the largest privacy loss of a mechanism, which is its epsilon at delta 0.

        Raises `NoRule` for mechanisms whose loss is unbounded.
        """
        assumed = _assumed(mechanism)
        match mechanism:
            case LaplaceStep():
                rule = "laplace-pure"
            case PureStep():
                rule = "pure-step"
            case DiscreteLaplaceStep():
                rule = "discrete-laplace-pure"
            case RandomisedResponse():
                rule = "randomised-response-pure"
            case PoissonSampled(event=LaplaceStep()):
                rule = "poisson-pure"
            case SampledWithoutReplacement(event=LaplaceStep()):
                rule = "fixed-batch-pure"
            case _:
                raise NoRule(f"no epsilon is finite at delta 0 with a {type(mechanism).__name__}.")
        with precision(BITS):
            loss = largest_loss(mechanism)
            epsilon = loss if isinstance(loss, Fraction) else _witness(Enclosure.from_ball(loss))
        leaf = self._leaf(rule, mechanism, ApproxDp(epsilon, 0), assumed)
        return replace(leaf, parameters=(*leaf.parameters, ("epsilon", epsilon)))

    def _plain(self, mechanism: Mechanism, family: _Family) -> Step:
        """Return the cost of an additive mechanism in GDP, zCDP or Rényi DP; raise `NoRule` for
        others.
        """
        if isinstance(family, Rdp):
            return _at_order(self._plain(mechanism, Zcdp(0)), Fraction(family.order))
        match mechanism:
            case GaussianStep():
                kind = "gaussian"
            case DiscreteGaussianStep():
                kind = "discrete-gaussian"
            case LaplaceStep():
                kind = "laplace"
            case DiscreteLaplaceStep():
                kind = "discrete-laplace"
            case _:
                raise NoRule(f"no rule prices {mechanism}.")
        ratio = _ratio_squared(mechanism)
        notion = Gdp(ratio) if isinstance(family, Gdp) else Zcdp(ratio / 2)
        name = "gdp" if isinstance(family, Gdp) else "zcdp"
        return self._leaf(f"{kind}-{name}", mechanism, notion, _assumed(mechanism))

    def _sampled(self, mechanism: PoissonSampled | SampledWithoutReplacement, at: Fraction) -> Step:
        """Return the Rényi DP of a Gaussian step on a hidden sample, at a whole order."""
        step, order = mechanism.event, int(at)
        if not isinstance(step, GaussianStep) or order != at:
            raise NoRule(f"no rule prices {mechanism} at order {float(at):g}.")
        require_amplification(mechanism)
        replaced = step.sensitivity.adjacency is Adjacency.REPLACE_ONE
        if replaced and isinstance(mechanism, PoissonSampled):
            raise NoRule("where a record is replaced in a Poisson sample, losses on a grid only.")
        ratio = _ratio_squared(step)
        if isinstance(mechanism, PoissonSampled):
            rule, found = "poisson-rdp", poisson_divergence(ratio, Fraction(mechanism.rate), order)
        else:
            share = Fraction(mechanism.batch, mechanism.records)
            rule, found = "fixed-batch-rdp", fixed_batch_divergence(ratio, share, order)
        free = not ratio or (isinstance(mechanism, PoissonSampled) and not mechanism.rate)
        epsilon = Fraction(0) if free else _witness(found)
        assumed = _declared(step.sensitivity) | {*assumed_of_sample(mechanism)}
        leaf = self._leaf(rule, mechanism, Rdp(order, epsilon), assumed)
        return replace(leaf, parameters=(*leaf.parameters, ("order", order), ("epsilon", epsilon)))

    def _leaf(
        self, rule: str, mechanism: Mechanism, notion: PrivacyNotion, assumed: frozenset[str]
    ) -> Step:
        """Return a step without premises: what a rule says of one run of a mechanism."""
        return Step(
            Exposure.of({written(mechanism): 1}),
            self._adjacency,
            notion,
            rule,
            (("mechanism", mechanism),),
            assumptions=assumed,
        )


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


def _spread(views: Sequence[Step]) -> frozenset[str]:
    """Return what the largest of several parties' costs to groups rests on.

    Nothing in pure DP, zCDP and GDP, where records that are spread over parties pay no more than as
    many of the dearest.
    """
    one = views[0]
    curved = isinstance(one.notion, Rdp) or (isinstance(one.notion, ApproxDp) and one.notion.delta)
    return frozenset({ONE_PARTY} if len(views) > 1 and one.group > 1 and curved else ())


def _declared(sensitivity: Sensitivity) -> frozenset[str]:
    """Return the assumptions that a sensitivity rests on, as the certificate states them."""
    return frozenset(f"declared: {reason}" for reason in sensitivity.assumptions)


def _ratio_squared(step: _Noisy) -> Fraction:
    """Return (sensitivity / scale)²."""
    scale = step.noise_std if isinstance(step, GaussianStep | DiscreteGaussianStep) else step.scale
    return _over_noise(step.sensitivity, scale)


def _over_noise(sensitivity: Sensitivity, scale: float) -> Fraction:
    """Return a squared sensitivity over the noise's variance; zero without one, whatever the noise.

    Raises:
        NoRule: for noise 0, as a pair of point masses has no finite cost.
    """
    if sensitivity.squared == 0:
        return Fraction(0)
    if scale == 0:
        raise NoRule("noise above 0 is missing: without it no cost is finite.")
    return sensitivity.squared / Fraction(scale) ** 2


def _require_rule(mechanism: PoissonSampled | SampledWithoutReplacement) -> None:
    """Raise `NoRule` for Poisson samples of which a record is replaced: the accountants price them,
    and the checker has no rule.
    """
    if not isinstance(mechanism, PoissonSampled):
        return
    replaced = mechanism.event.sensitivity.adjacency is Adjacency.REPLACE_ONE
    known = isinstance(mechanism.event, GaussianStep) and mechanism.bounds_each_record
    if replaced and not known:
        raise NoRule("where a record is replaced in a Poisson sample, sums of bounded vectors.")


def _assumed(mechanism: Mechanism) -> frozenset[str]:
    """Return what the dominating pair of a mechanism takes on trust; raise if it has none."""
    require_amplification(mechanism)
    match mechanism:
        case Repeated():
            return _assumed(mechanism.event)
        case AccumulatedPoisson():
            return _assumed(PoissonSampled(mechanism.event, mechanism.rate))
        case PoissonSampled() | SampledWithoutReplacement():
            _require_rule(mechanism)
            return _assumed(mechanism.event) | {*assumed_of_sample(mechanism)}
        case SampledWithReplacement():
            return _assumed(mechanism.event) | {*assumed_of_sample(mechanism)}
        case GaussianMixtureStep(constant=constant, sampled=sampled, noise_std=noise_std):
            for shift in (constant, sampled):
                _over_noise(shift, noise_std)
            declared = _declared(constant) | _declared(sampled)
            return declared | {*assumed_of_sample(mechanism)}
        case RandomisedResponse() if mechanism.truth not in (0, 1):
            return frozenset()
        case (
            GaussianStep()
            | LaplaceStep()
            | DiscreteGaussianStep()
            | DiscreteLaplaceStep()
            | PureStep()
        ):
            _ratio_squared(mechanism)
            return _declared(mechanism.sensitivity) | frozenset(whole_numbers_assumed(mechanism))
        case _:
            raise NoRule(f"no loss distribution of {mechanism}.")


def privacy_loss(
    exposure: Exposure,
    epsilon: Fraction,
    composed: Composed,
    grid: LossGrid,
    delta: Fraction,
    assumptions: frozenset[str],
) -> Step:
    """Return the step whose witness is the grid on which the losses were composed.

    Args:
        exposure: the steps that a record meets.
        epsilon: the witness: δ(epsilon) <= delta of what is composed.
        composed: mechanisms, levels and shares.
        grid: that the checker is to compose them on.
        delta: of the claim.
        assumptions: that the mechanisms rest on.
    """
    parameters: dict[str, Parameter] = {
        "parts": composed.parts,
        "shares": composed.shares,
        "group": composed.group,
        "step": grid.step,
        "doublings": grid.doublings,
        "dense": grid.dense,
        "digits": grid.digits,
        "cut": Fraction(grid.cut),
        "delta": delta,
        "epsilon": epsilon,
    }
    return Step(
        exposure,
        composed.adjacency,
        ApproxDp(epsilon, delta),
        "privacy-loss",
        tuple(parameters.items()),
        group=composed.group,
        assumptions=assumptions,
        theorems=composed.theorems,
    )


def _in_doubles(step: Step) -> Step:
    """Return the step with its cost rounded up to a binary64."""
    value = Fraction(float_up(step.cost))
    return step if value == step.cost else step.then("weaken", step.at_cost(value), value=value)


def _at_order(whole: Step, order: Fraction) -> Step:
    """Return what ρ-zCDP says at a Rényi order: (α, ρα)-RDP (Bun, Steinke 2016, Definition 1.1)."""
    return whole.then("zcdp-rdp", Rdp(order, order * whole.cost), order=order)


def _witness(found: Enclosure) -> Fraction:
    """Return the upper end, a binary64: there the inequality that the checker decides is true."""
    if found.upper_float == inf:
        raise NoRule("no finite cost in double precision.")
    return Fraction(found.upper_float)


def _shortened(step: Step) -> Step:
    """Return the step with its cost rounded up to a dyadic rational of 128 bits.

    Sums of many rationals with different denominators would have as many digits as there are terms.
    """
    numerator, denominator = step.cost.numerator, step.cost.denominator
    if denominator & (denominator - 1) == 0 and numerator.bit_length() <= _COST_BITS:
        return step
    scale = Fraction(2) ** (_COST_BITS - numerator.bit_length() + denominator.bit_length())
    value = Fraction(ceil(step.cost * scale)) / scale
    return step.then("weaken", step.at_cost(value), value=value)
