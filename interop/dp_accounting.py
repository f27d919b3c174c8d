"""Accountants that stand in for dp_accounting's: existing code changes one import.

    from dpledger.interop.dp_accounting import PldAccountant        # was: PLDAccountant
    accountant = PldAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(event, count).get_epsilon(1e-5)

Both fulfil dp_accounting's `PrivacyAccountant`: `supports`, `compose`, `ledger`, `get_epsilon`,
`get_delta`. Epsilons and deltas are upper ends of enclosures, rounded up. `PldAccountant` asks the
tightest accountant here; `RdpAccountant` Rényi divergences at the best of all orders, which is what
it is for, and no tighter.

Relations: `ADD_OR_REMOVE_ONE`, `REPLACE_ONE` (a record moves a sum by two of the norms that a noise
multiplier is stated against; their own RDP accountant leaves the factor out), `REPLACE_SPECIAL` as
zero-out-one. An event without a rule here is unsupported, and the message names it.

What is known by its Rényi divergences alone, zCDP events and the best of several runs that are not
pure, has no pair of laws to compose: both accountants then price all by Rényi divergences.

Needs dp_accounting, which the extra `crosscheck` installs.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import inf, isnan, prod
from typing import Any

import numpy as np
from flint import arb

from ..accounting.accountant import Accountant
from ..accounting.accountants import RdpAccountant as _Renyi
from ..accounting.accountants import tightest_accountant
from ..accounting.composition import Composition, UnpricedMechanism, composed
from ..accounting.numbers.enclosure import BITS, Enclosure, ball_of, maximum, precision
from ..accounting.numbers.grade import Grade
from ..accounting.pure import pure_by_party
from ..accounting.renyi.curves import (
    CurveAccountant,
    LogMoment,
    Selection,
    SelectionAccountant,
    zcdp_moment,
)
from ..accounting.renyi.rdp import is_sampled, log_moment
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import InvalidParameter, require_positive_int
from ..mechanisms.events import Audience, Context, Event, Mechanism, Repeated
from ..mechanisms.extras import import_extra
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sensitivity import float_up
from .dp_events import mechanism_of, mechanisms_of_tree, whole
from .event_trees import EventTree, Untranslatable

_peer = import_extra("dp_accounting", "crosscheck")
_Base: Any = _peer.PrivacyAccountant
_Details = _peer.PrivacyAccountant.CompositionErrorDetails
NeighboringRelation = _peer.NeighboringRelation

_RELATIONS = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: (Adjacency.ADD_REMOVE_ONE, 1),
    NeighboringRelation.REPLACE_ONE: (Adjacency.REPLACE_ONE, 2),
    NeighboringRelation.REPLACE_SPECIAL: (Adjacency.ZERO_OUT_ONE, 1),
}
"""Theirs to ours, with the sensitivity in units of the norm that a noise multiplier is stated
against: one record replaced is one removed and one added, so that a sum moves by two."""
_FEW = 100
"""Steps with a failure probability up to which their product is an exact fraction; above, the
digits would grow with every step, and ball arithmetic, rounded down, takes over."""
_NEAR_ONE = 1 + 2.0**-20
"""The order at which a divergence of order 1 or less is evaluated. Rényi divergences do not
decrease with the order (van Erven, Harremoës 2014, Theorem 3), so that this is an upper bound."""
_CONTEXT = Context((), 1, "as a DpEvent says", Audience.PUBLIC)
"""A `DpEvent` names no party, round or audience; none of these changes what it costs."""


class _Accountant(_Base):  # type: ignore[misc]
    """What both do alike: events one by one, as theirs are walked through."""

    def __init__(self, neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        super().__init__(neighboring_relation)
        self._adjacency, self._moves = _RELATIONS[neighboring_relation]
        self._events: list[Event] = []
        self._failures: Counter[Fraction] = Counter()
        """How often each step ran that tells everything with some probability."""
        self._curves: list[tuple[LogMoment, int]] = []
        """What is known by log moments alone, and how often it ran."""
        self._integrals = 0
        """How many sampled mechanisms the curves are of."""

    def compose(self, event: Any, count: int = 1) -> Any:
        """Charge an event `count` >= 1 times and return the accountant itself.

        Raises their `UnsupportedEventError` for an event without a rule here, `InvalidParameter`, a
        `ValueError`, for another count; then nothing is charged.
        """
        require_positive_int("count", count)
        return super().compose(event, count)

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        """Charge an event if `do_compose`; return None, or why it is unsupported.

        dp_accounting calls it with `do_compose` False from `supports`, True from `compose`.
        Compositions are walked through part by part; a leaf is priced before it is charged.
        """
        kind = type(event).__name__
        if kind == "SelfComposedDpEvent":
            try:
                times = whole("count", event.count)
            except Untranslatable as refused:
                return _Details(event, str(refused))
            return self._maybe_compose(event.event, times * count, do_compose and times > 0)
        if kind == "ComposedDpEvent":
            refusals = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((found for found in refusals if found is not None), None)
        try:
            if (curve := self._curve(event)) is not None:
                if do_compose:
                    self._curves.append((curve, count))
                return None
            mechanisms, failure = self._priced(event)
        except (Untranslatable, UnpricedMechanism) as refused:
            return _Details(event, str(refused))
        if do_compose:
            self._failures[failure] += count
            self._events += [Event(Repeated(m, count), _CONTEXT) for m in mechanisms]
        return None

    def _curve(self, event: Any) -> LogMoment | None:
        """Return the log moments of an event known by nothing else; None for all others.

        The best of several runs is taken by its pure epsilon where it has one.
        """
        kind = type(event).__name__
        if kind == "ZCDpEvent":
            return zcdp_moment(event.rho, event.xi)
        if kind != "RepeatAndSelectDpEvent" or not 0 <= event.shape < inf:
            return None
        one = mechanism_of(event.event, adjacency=self._adjacency, sensitivity=self._moves)
        composition = composed(Event(m, _CONTEXT) for m in one)
        if composition.unprotected or self._largest_loss(composition) < inf:
            return None
        best = SelectionAccountant(Selection(event.mean, event.shape)).with_composition(composition)
        ((_, account),) = composition.accounts
        self._integrals += sum(is_sampled(mechanism) for mechanism in account.others)
        return lambda order: best.log_moment(account, order)

    def _priced(self, event: Any) -> tuple[Sequence[Mechanism], Fraction]:
        """Return the mechanisms of one event, and with what probability it tells everything."""
        failure = Fraction(0)
        if type(event).__name__ == "EpsilonDeltaDpEvent" and 0 < event.delta <= 1:
            # dominated by one that tells all with probability delta, and is pure otherwise
            # (Kairouz, Oh, Viswanath 2015, Theorem 3.3)
            failure = Fraction(event.delta)
            tree = EventTree("EpsilonDeltaDpEvent", {"epsilon": event.epsilon, "delta": 0.0})
            found = mechanisms_of_tree(tree, adjacency=self._adjacency, sensitivity=self._moves)
        else:
            found = mechanism_of(event, adjacency=self._adjacency, sensitivity=self._moves)
        # an event without a price must be refused now, not when an epsilon is asked for
        self._accountant(composed(Event(m, _CONTEXT) for m in found))
        return found, failure

    @staticmethod
    def _accountant(composition: Composition) -> Accountant:
        """Return the accountant that answers for a composition."""
        raise NotImplementedError

    def _answers(self, composition: Composition) -> Accountant:
        """Return the accountant of all that was charged: by Rényi divergences if curves were."""
        if self._curves:
            curves = CurveAccountant(self._curves, integrals=self._integrals)
            return curves.with_composition(composition)
        return self._accountant(composition)

    @property
    def _charged(self) -> bool:
        """Whether anything was composed that may depend on records."""
        return bool(self._events or self._curves)

    @property
    def _kept(self) -> Fraction:
        """A lower bound on the probability that nothing told everything; exact of a few steps."""
        if sum(n for failure, n in self._failures.items() if failure) <= _FEW:
            return prod(((1 - f) ** n for f, n in self._failures.items() if f), start=Fraction(1))
        with precision(BITS):
            logs = sum((n * (-ball_of(f)).log1p() for f, n in self._failures.items() if f), arb(0))
            return Fraction(Enclosure.from_ball(logs.exp()).lower_float)

    def get_epsilon(self, target_delta: float) -> float:
        """Return the least epsilon at a delta in [0, 1] that is known, rounded up.

        Steps that tell everything with probability δ_i are taken apart: with 1 - k the
        probability that any of them did, the rest runs at (target_delta - (1 - k)) / k, and
        epsilon is infinite where that is negative. Of pure steps the
        largest loss bounds epsilon at every delta, so that the smaller of the two is returned.

        Raises `InvalidParameter` where it is no number.
        """
        if isnan(target_delta):
            raise InvalidParameter("target_delta", target_delta, "in [0, 1]")
        composition, kept = composed(self._events), self._kept
        if composition.unprotected:
            return inf
        if not kept or (left := (Fraction(target_delta) - (1 - kept)) / kept) < 0:
            return inf
        if left >= 1 or not self._charged:
            return 0.0
        if left == 0:
            return self._pure(composition)
        found = self._answers(composition).epsilon(left).upper_float
        return min(found, self._pure(composition))

    def get_delta(self, target_epsilon: float) -> float:
        """Return the least delta at an epsilon in [0, inf] that is known, rounded up.

        As the union of both ways to fail: 1 - k (1 - δ'), δ' of the steps that tell everything
        never. Raises `InvalidParameter` where it is no number.
        """
        if isnan(target_epsilon):
            raise InvalidParameter("target_epsilon", target_epsilon, "in [0, inf]")
        composition = composed(self._events)
        if composition.unprotected:
            return 1.0
        delta = Enclosure.of(0)
        if self._charged and target_epsilon < self._pure(composition):
            delta = self._answers(composition).delta(target_epsilon)
        with precision(BITS):
            total = 1 - ball_of(self._kept) * (1 - delta.upper)
        return min(1.0, Enclosure.from_ball(total).upper_float)

    def _pure(self, composition: Composition) -> float:
        """Return an upper bound on the largest loss of all that was charged; inf with curves."""
        return inf if self._curves else self._largest_loss(composition)

    @staticmethod
    def _largest_loss(composition: Composition) -> float:
        """Return an upper bound on the largest privacy loss, over parties; inf for Gaussians."""
        return maximum(found for _, found in pure_by_party(composition)).upper_float


class PldAccountant(_Accountant):
    """In place of `dp_accounting.pld.PLDAccountant`: the tightest epsilon, enclosed.

    Args:
        neighboring_relation: theirs; add or remove one by default, as there.
        value_discretization_interval: taken and not used: no grid decides what is printed.
    """

    def __init__(
        self,
        neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE,
        value_discretization_interval: float = 1e-4,
    ) -> None:
        super().__init__(neighboring_relation)

    @staticmethod
    def _accountant(composition: Composition) -> Accountant:
        return tightest_accountant(composition)

    def get_true_positive_rates(
        self, false_positive_rates: Any, deltas: FloatArray | None = None
    ) -> Any:
        """Return upper bounds on the true positive rates of any test at false positive rates.

        Args:
            false_positive_rates: a number, or an array of shape (n,), in [0, 1].
            deltas: at which points of the curve to look, in (0, 1); 3,000 by default.

        Returns an array of shape (n,), or a float for a number. Each (ε, δ) of the curve gives
        two lines that a test's power lies under; the bound is their minimum, so that more deltas
        only tighten it.

        Source: Kairouz, Oh, Viswanath 2015, "The composition theorem for differential privacy"
        (a mechanism is (ε, δ)-DP if and only if no test leaves its region).
        """
        rates = np.atleast_1d(np.asarray(false_positive_rates, dtype=np.float64))
        deltas = np.geomspace(1e-13, 0.999, 3000) if deltas is None else np.asarray(deltas)
        epsilons = np.array([self.get_epsilon(0.0), *self._fast_epsilons(deltas)])
        at = np.array([0.0, *deltas])[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            # P(S) <= e^ε Q(S) + δ, of a test and of its complement (Kairouz et al. 2015)
            grown = at + np.exp(epsilons)[:, None] * rates
            complement = 1 - np.exp(-epsilons)[:, None] * (1 - at - rates)
        grown[:, rates == 0] = at
        grown[epsilons == inf] = 1.0  # no bound, at a rate of 0 neither
        found = np.minimum(np.minimum(grown, complement).min(axis=0), 1.0)
        return found if np.ndim(false_positive_rates) else float(found[0])

    def get_gdp_parameter_estimate(
        self, false_positive_rates: FloatArray | None = None, deltas: FloatArray | None = None
    ) -> float:
        """Return the least mu whose curve lies above the bounds at some false positive rates.

        An estimate, as theirs: between these rates the curve may be crossed.

        Args:
            false_positive_rates: of shape (n,), in (0, 1); 500 from 1e-12 to 1/2 by default.
            deltas: as for `get_true_positive_rates`.

        Mu-GDP is the curve Φ(Φ⁻¹(α) + mu) of power over false positive rate α (Dong, Roth, Su
        2022).
        """
        from scipy.special import ndtri

        rates = false_positive_rates
        if rates is None:
            rates = np.geomspace(1e-12, 0.5, 500)
        if 1 - self._kept > float(np.min(rates)):
            return inf  # what tells everything now and then has no mu
        powers = self.get_true_positive_rates(np.asarray(rates), deltas)
        return max(0.0, float(np.max(ndtri(powers) - ndtri(rates))))

    def _fast_epsilons(self, deltas: FloatArray) -> FloatArray:
        """Return epsilons of grade *fast* at deltas of shape (n,); inf where none is known."""
        composition, kept = composed(self._events), float(self._kept)
        if composition.unprotected or not kept:
            return np.full(deltas.shape, inf)
        # down by more than doubles round here: a smaller delta has a larger epsilon
        left = (deltas - float_up(1 - self._kept)) / kept * (1 - 1e-12)
        found = np.full(deltas.shape, inf if self._charged else 0.0)
        inside = left > 0
        if self._charged and inside.any():
            curve = self._answers(composition).curve(left[inside], grade=Grade.FAST)
            found[inside] = curve.epsilon
        return found


class RdpAccountant(_Accountant):
    """In place of `dp_accounting.rdp.RdpAccountant`: Rényi divergences, at the best order.

    Args:
        orders: above 1, for `_rdp` alone: of an epsilon the best of all orders is found.
        neighboring_relation: theirs; add or remove one by default, as there.
    """

    def __init__(
        self,
        orders: Sequence[float] | None = None,
        neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE,
    ) -> None:
        super().__init__(neighboring_relation)
        theirs = import_extra("dp_accounting.rdp.rdp_privacy_accountant", "crosscheck")
        self._orders = theirs.DEFAULT_RDP_ORDERS if orders is None else orders

    @property
    def _rdp(self) -> FloatArray:
        """Rényi divergences at the orders, rounded up: where theirs keeps them, others read them.

        Not used here.
        """
        composition = composed(self._events)
        if composition.unprotected:
            return np.full(len(self._orders), inf)
        ((_, account),) = composition.accounts
        found: list[float] = []
        for stated in self._orders:
            if stated == inf:
                found.append(self._pure(composition))
                continue
            # divergences grow with the order: just above 1 stands for 1 and less
            order = Fraction(max(float(stated), _NEAR_ONE))
            with precision(BITS):
                total = account.gaussian_mu_squared.ball * ball_of(order) / 2
                for mechanism, times in account.others.items():
                    total += times * log_moment(mechanism, order) / ball_of(order - 1)
                for curve, times in self._curves:
                    total += times * curve(order) / ball_of(order - 1)
                found.append(Enclosure.from_ball(total).upper_float)
        # divergences do not decrease with the order: what a larger one has bounds a smaller
        pairs = [*zip(self._orders, found, strict=True)]
        return np.array([min(d for other, d in pairs if other >= order) for order, _ in pairs])

    @staticmethod
    def _accountant(composition: Composition) -> Accountant:
        return _Renyi.over(composition)
