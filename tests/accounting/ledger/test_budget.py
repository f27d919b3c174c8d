"""A budget, in whatever notion, is a limit on mu² that is never too large."""

import pickle
from fractions import Fraction
from math import inf

import mpmath
import pytest

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.mechanisms import Adjacency, InvalidParameter

REPLACE = Adjacency.REPLACE_ONE


def test_gdp_and_zcdp_budgets_are_exact() -> None:
    assert Budget(Gdp(Fraction(1, 3)), REPLACE).limit == Fraction(1, 3)
    assert Budget(Zcdp(Fraction(1, 3)), REPLACE).limit == Fraction(2, 3)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.1])
def test_spending_all_of_an_approximate_budget_keeps_it_and_hardly_more_breaks_it(
    epsilon: float, delta: float
) -> None:
    limit = Budget(ApproxDp(epsilon, delta), REPLACE).limit
    with mpmath.workdps(60):

        def delta_at(mu_squared: Fraction) -> mpmath.mpf:
            mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
            below = mpmath.ncdf(-epsilon / mu + mu / 2)
            return below - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)

        assert delta_at(limit) <= mpmath.mpf(delta) < delta_at(limit * (1 + Fraction(1, 10**15)))
    assert epsilon_from_delta(mu_squared=limit, delta=delta).lower <= epsilon


@pytest.mark.parametrize(
    "notion", [Gdp(inf), Zcdp(inf), ApproxDp(inf, 0.1), ApproxDp(1, 0), ApproxDp(1, 1), Rdp(inf, 1)]
)
def test_what_is_no_limit_is_refused(notion: Gdp) -> None:
    with pytest.raises(InvalidParameter):
        Budget(notion, REPLACE)


def test_a_refusal_says_what_is_spent_asked_and_left() -> None:
    budget = Budget(Gdp(1), REPLACE)
    budget.require(spent=Fraction(1, 2), after=Fraction(1))
    with pytest.raises(BudgetExceeded, match=r"0\.75 is spent, 0\.5 was asked for, 0\.25 rem") as e:
        budget.require(spent=Fraction(3, 4), after=Fraction(5, 4))
    copy = pickle.loads(pickle.dumps(e.value))
    assert (copy.spent, copy.asked, copy.remaining) == (
        Fraction(3, 4),
        Fraction(1, 2),
        Fraction(1, 4),
    )
    with pytest.raises(BudgetExceeded, match="inf was asked for"):
        budget.require(spent=Fraction(0), after=inf)
    with pytest.raises(BudgetExceeded, match="inf was asked for"):
        budget.require(spent=Fraction(0), after=Fraction(10) ** 400)
