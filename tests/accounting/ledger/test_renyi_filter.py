"""A budget of one Rényi order pays for every mechanism, and refuses before it is crossed."""

import pickle
from fractions import Fraction
from math import inf

import pytest

from dpledger.accounting.accountants import RdpAccountant, TightAccountant
from dpledger.accounting.composition import UNIT_BITS, UnpricedMechanism
from dpledger.accounting.conversions import epsilon_from_rdp
from dpledger.accounting.ledger import MemoryLedger, exported, imported
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.ledger.renyi_filter import renyi_budget, renyi_price
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp
from dpledger.accounting.renyi.rdp import log_moment
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    Norm,
    PoissonSampled,
    Provenance,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.events import LaplaceStep, Mechanism

ADD = Adjacency.ADD_REMOVE_ONE
UNIT = declared(1, "test", adjacency=ADD)
PURE = LaplaceStep(declared(1, "test", adjacency=ADD, norm=Norm.L1), 8.0)
PLAIN = GaussianStep(UNIT, 10.0)
SAMPLED = PoissonSampled(GaussianStep(UNIT, 4.0), 0.01)
TARGET = ApproxDp(1, Fraction(1, 10**5))
NOWHERE = Provenance("test", None)


def event(mechanism: Mechanism) -> Event:
    return Event(mechanism, Context((), 1, "test", Audience.SERVER))


@pytest.mark.parametrize("mechanism", [PURE, PLAIN, SAMPLED])
@pytest.mark.parametrize("order", [Fraction(12), Fraction(5, 2)])
def test_a_price_is_the_divergence_rounded_up(mechanism: Mechanism, order: Fraction) -> None:
    price = Fraction(renyi_price(mechanism, order).upper, 1 << UNIT_BITS)
    divergence = float(log_moment(mechanism, order)) / float(order - 1)
    assert float(price) == pytest.approx(divergence, rel=1e-14)
    if mechanism is PLAIN:
        assert price >= order / 200


def test_what_has_no_protection_has_no_price() -> None:
    assert renyi_price(UnprotectedRelease("raw"), Fraction(2)).reason == "raw"
    far = PoissonSampled(GaussianStep(UNIT, 1.0), 0.5)
    assert renyi_price(far, Fraction(10**6)).reason is not None  # beyond the orders looked at


@pytest.mark.parametrize("order", [Fraction(3, 2), 8, 30.5, 1000])
def test_spending_all_of_a_renyi_budget_implies_its_target(order: Fraction) -> None:
    target = ApproxDp(40, TARGET.delta)
    budget = renyi_budget(target, order=order)
    all_spent = epsilon_from_rdp(order=order, rdp=budget.epsilon, delta=TARGET.delta)
    assert all_spent.lower_float <= 40
    assert all_spent.upper_float == pytest.approx(40, rel=1e-14)


@pytest.mark.parametrize("order", [1, 0.5, inf, float("nan"), 1.0001])
def test_orders_that_cannot_imply_the_target_are_refused(order: float) -> None:
    with pytest.raises(InvalidParameter, match="order"):
        renyi_budget(TARGET, order=order)


def test_the_filter_refuses_the_first_step_beyond_and_spends_nothing_on_it() -> None:
    budget = Budget(renyi_budget(TARGET, order=20), adjacency=ADD)
    ledger = MemoryLedger()
    ledger.set_budget(budget)
    run = ledger.run("adaptive", configuration_hash="c")
    price = sum(
        Fraction(renyi_price(m, Fraction(20)).upper, 1 << UNIT_BITS) for m in (SAMPLED, PURE)
    )
    rounds = budget.limit // price
    for _ in range(rounds):
        run.reserve((event(SAMPLED), event(PURE)), NOWHERE)
    with pytest.raises(BudgetExceeded, match="order 20") as caught:
        run.reserve((event(SAMPLED), event(PURE)), NOWHERE)
    assert pickle.loads(pickle.dumps(caught.value)).limit == budget.limit
    assert len(ledger.events()) == 2 * rounds > 0
    spent = run.spent()
    assert spent.grade is Grade.ESTIMATE
    assert spent.mu_squared == inf
    accountant = RdpAccountant()
    accountant.extend(ledger.events())
    # the best order is at least as good as the filter's
    assert accountant.epsilon(TARGET.delta).upper <= 1


def test_a_sampled_plan_reads_the_same_as_its_accountant() -> None:
    ledger, plan = MemoryLedger(), [event(SAMPLED)] * 300
    ledger.set_budget(Budget(Rdp(8, 1), adjacency=ADD))
    run = ledger.run("planned", configuration_hash="c", plan=plan)
    run.reserve(plan, NOWHERE)
    accountant = TightAccountant()
    accountant.extend(plan)
    assert run.spent().grade is Grade.ENCLOSED
    assert run.spent().epsilon(1e-5).upper == accountant.epsilon(1e-5).upper
    other = ledger.run("second", configuration_hash="c")
    other.reserve(plan, NOWHERE)
    accountant.extend(plan)
    assert ledger.spent().epsilon(1e-5).upper == accountant.epsilon(1e-5).upper
    copy = MemoryLedger()
    imported(exported(ledger), copy)
    assert copy.budget == ledger.budget


def test_samples_outside_their_theorem_are_refused_by_name() -> None:
    ledger = MemoryLedger()
    ledger.set_budget(Budget(Rdp(8, 1), adjacency=Adjacency.REPLACE_ONE))
    run = ledger.run("a", configuration_hash="c")
    step = GaussianStep(declared(1, "test", adjacency=Adjacency.REPLACE_ONE), 1.0)
    with pytest.raises(UnpricedMechanism, match="PoissonSampled"):
        run.reserve((event(PoissonSampled(step, 0.1)),), NOWHERE)
    assert ledger.events() == []


def test_budgets_in_mu_name_what_would_pay() -> None:
    ledger = MemoryLedger()
    ledger.set_budget(Budget(Gdp(1), adjacency=ADD))
    run = ledger.run("a", configuration_hash="c")
    with pytest.raises(UnpricedMechanism, match="Rdp budget"):
        run.reserve((event(SAMPLED),), NOWHERE)
