"""Law: under a filter the budget is proved, and nothing less, however the run was chosen."""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.check.statements import FILTERED, STOPPING
from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.ledger import MemoryLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.ledger.proofs import certificate_of, proved_of_ledger
from dpledger.accounting.ledger.renyi_filter import renyi_budget
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.accounting.proof.certificate import Uncertifiable, certify
from dpledger.accounting.proof.proved import NotProved
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    declared,
)
from dpledger.mechanisms.protocols import Provenance

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE
DELTA = 1e-5
GAUSSIAN = GaussianStep(declared(1, "example", adjacency=REPLACE), 8.0)
SAMPLED = PoissonSampled(GaussianStep(declared(1, "example", adjacency=ADD), 2.0), 0.01)
LAPLACE = LaplaceStep(declared(1, "example", adjacency=REPLACE, norm=Norm.L1), 8.0)
Document = dict[str, Any]


def released(mechanism: Mechanism, times: int = 3) -> list[Event]:
    """Events of two parties in turn: the first pays for two of three."""
    parties = ("north", "south")
    return [
        Event(mechanism, Context((parties[k % 2],), k, "model", Audience.PUBLIC))
        for k in range(times)
    ]


def spent(*events: Event, budget: Budget, plan: list[Event] | None = None) -> MemoryLedger:
    """A ledger with a budget in which these events happened."""
    ledger = MemoryLedger()
    ledger.set_budget(budget)
    run = ledger.run("run", configuration_hash="hash", plan=plan)
    for event in events:
        run.reserve([event], Provenance("system", None))
    return ledger


# --- the rule -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "notion"),
    [(Gdp(0.25), "gdp"), (Zcdp(0.125), "zcdp"), (Rdp(8.5, 1), "rdp")],
)
def test_the_budget_is_proved_without_an_assumption_about_stopping(
    budget: Gdp | Zcdp | Rdp, notion: str
) -> None:
    made = certify(released(GAUSSIAN), delta=DELTA, budget=budget)
    verdict = check(made.to_json_bytes())
    assert verdict.budget is not None
    assert verdict.budget[:2] == ("replace-one", notion)
    assert verdict.assumptions == made.assumptions
    assert set(verdict.assumptions) >= FILTERED
    assert STOPPING not in verdict.assumptions
    assert any("filters of" in axiom for axiom in verdict.axioms)
    if notion == "gdp":
        exact = epsilon_from_delta(mu_squared=Fraction(1, 4), delta=DELTA)
        assert made.epsilon == exact.upper_float


def test_the_budget_is_proved_however_little_of_it_was_spent() -> None:
    budget = Gdp(0.25)
    few, many = (certify(released(GAUSSIAN, n), delta=DELTA, budget=budget) for n in (1, 12))
    assert few.epsilon == many.epsilon > certify(few.events, delta=DELTA).epsilon


@pytest.mark.parametrize(
    ("mechanism", "delta", "group", "budget"),
    [
        (GAUSSIAN, DELTA, 1, Gdp(Fraction(2, 64) - Fraction(1, 2**60))),
        (LAPLACE, DELTA, 1, Gdp(1)),
        (SAMPLED, DELTA, 1, Gdp(1)),
        (SAMPLED, DELTA, 1, Zcdp(1)),
        (SAMPLED, DELTA, 1, Rdp(8.5, 1)),
        (SAMPLED, DELTA, 2, Rdp(8, 1)),
        (GAUSSIAN, 0, 1, Gdp(1)),
    ],
)
def test_what_no_filter_adds_up_is_refused(
    mechanism: Mechanism, delta: float, group: int, budget: Gdp | Zcdp | Rdp
) -> None:
    with pytest.raises(Uncertifiable):
        certify(released(mechanism), delta=delta, group=group, budget=budget)


def test_a_budget_is_finite() -> None:
    for budget in (Gdp(float("inf")), Rdp(float("inf"), 1)):
        with pytest.raises(InvalidParameter, match="budget"):
            certify(released(GAUSSIAN), delta=DELTA, budget=budget)


# --- planted faults -----------------------------------------------------------------------------


def node(document: Document, rule: str) -> Document:
    (found,) = (each for each in document["nodes"] if each["rule"] == rule)
    return found


def below_the_sum(document: Document) -> None:
    less = "1/64"  # of one event of two
    node(document, "filter")["parameters"]["budget"] = less
    node(document, "filter")["conclusion"]["mu_squared"] = less


def a_smaller_conclusion(document: Document) -> None:
    node(document, "filter")["conclusion"]["mu_squared"] = "1/32"


def another_relation(document: Document) -> None:
    for each in document["nodes"][-2:]:
        each["conclusion"]["adjacency"] = "zero-out-one"


def of_one_party(document: Document) -> None:
    node(document, "filter")["premises"] = [0]


def twice(document: Document) -> None:
    again = json.loads(json.dumps(node(document, "filter")))
    again["premises"] = [document["nodes"].index(node(document, "filter"))]
    document["nodes"].insert(-1, again)
    document["nodes"][-1]["premises"] = [len(document["nodes"]) - 2]


def before_groups(document: Document) -> None:
    place = document["nodes"].index(node(document, "filter"))
    group = {
        "rule": "group",
        "parameters": {"size": 2},
        "premises": [place - 1],
        "conclusion": {"adjacency": "replace-one", "group": 2, "notion": "gdp"}
        | {"mu_squared": "1/8"},
    }
    document["nodes"].insert(place, group)
    document["nodes"][place + 1]["premises"] = [place]
    document["nodes"][-1]["premises"] = [place + 1]


def goes_around_it(document: Document) -> None:
    """The sum is converted, and the filter stands aside: the sum still rests on stopping."""
    place = document["nodes"].index(node(document, "filter"))
    cheap = certify(released(GAUSSIAN), delta=DELTA).epsilon
    last = document["nodes"][-1]
    last["premises"] = [place - 1]
    last["parameters"]["epsilon"] = last["conclusion"]["epsilon"] = str(Fraction(cheap))


def silent_about_the_budget(document: Document) -> None:
    document["assumptions"] = [a for a in document["assumptions"] if a not in FILTERED]


def silent_about_choices(document: Document) -> None:
    document["assumptions"].remove(next(a for a in FILTERED if "decided" in a))


def stopping_instead(document: Document) -> None:
    silent_about_the_budget(document)
    document["assumptions"] = sorted([*document["assumptions"], STOPPING])


def silent_about_the_theorem(document: Document) -> None:
    document["axioms"] = [a for a in document["axioms"] if "filters of" not in a]


def an_event_outside(document: Document) -> None:
    document["events"][0]["times"] = 40


def a_party_left_out(document: Document) -> None:
    node(document, "events")["premises"].pop()


def of_another_notion(document: Document) -> None:
    conclusion = node(document, "filter")["conclusion"]
    conclusion["notion"] = "zcdp"
    conclusion["rho"] = conclusion.pop("mu_squared")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (below_the_sum, "the budget"),
        (a_smaller_conclusion, "conclusion"),
        (another_relation, "conclusion"),
        (of_one_party, "whole run"),
        (twice, "whole run"),
        (before_groups, "one record"),
        (goes_around_it, "follows from the filter"),
        (silent_about_the_budget, "assumptions"),
        (silent_about_choices, "assumptions"),
        (stopping_instead, "assumptions"),
        (silent_about_the_theorem, "axioms"),
        (an_event_outside, "subject"),
        (a_party_left_out, "exposed"),
        (of_another_notion, "fields"),
    ],
)
def test_a_planted_fault_is_refused_by_its_reason(
    fault: Callable[[Document], None], reason: str
) -> None:
    document = json.loads(
        certify(released(GAUSSIAN), delta=DELTA, budget=Gdp(0.25)).to_json_bytes()
    )
    fault(document)
    with pytest.raises(CertificateWrong, match=reason):
        check(json.dumps(document).encode())


@pytest.mark.parametrize(("mechanism", "delta"), [(SAMPLED, DELTA), (LAPLACE, 0)])
def test_losses_and_pure_epsilons_have_no_filter(mechanism: Mechanism, delta: float) -> None:
    """Of loss distributions only what is fixed beforehand composes; pure DP is not in the rule."""
    document = json.loads(certify(released(mechanism), delta=delta).to_json_bytes())
    last = document["nodes"][-1]
    kept = {"rule": "filter", "premises": [len(document["nodes"]) - 1]}
    kept |= {"parameters": {"budget": "9"}, "conclusion": last["conclusion"] | {"epsilon": "9"}}
    document["nodes"].append(kept)
    with pytest.raises(CertificateWrong, match="GDP, zCDP or RDP"):
        check(json.dumps(document).encode())


# --- the ledger ---------------------------------------------------------------------------------

BUDGETS = {
    "epsilon": (Budget(ApproxDp(1.0, DELTA), adjacency=REPLACE), GAUSSIAN, 1.0),
    "rho": (Budget(Zcdp(0.125), adjacency=REPLACE), GAUSSIAN, 1.99309),
    "one order": (
        Budget(renyi_budget(ApproxDp(1.0, DELTA), order=16), adjacency=ADD),
        SAMPLED,
        1.0,
    ),
}


@pytest.mark.parametrize("name", BUDGETS)
def test_a_run_that_may_have_been_stopped_has_the_epsilon_of_its_budget(name: str) -> None:
    budget, mechanism, epsilon = BUDGETS[name]
    events = released(mechanism)
    for plan in (None, [*events, *events]):
        with spent(*events, budget=budget, plan=plan) as ledger:
            made = certificate_of(ledger, delta=DELTA)
            verdict = proved_of_ledger(made.to_json_bytes(), ledger)
        assert verdict.budget is not None
        assert verdict.budget.values[-1] == budget.limit
        assert STOPPING not in verdict.assumptions
        assert made.epsilon == pytest.approx(epsilon, rel=1e-3)
    if name == "epsilon":
        assert made.epsilon == 1.0


def test_a_plan_that_happened_has_its_own_epsilon() -> None:
    events = released(GAUSSIAN)
    budget, *_ = BUDGETS["epsilon"]
    with spent(*events, budget=budget, plan=events) as ledger:
        made = certificate_of(ledger, delta=DELTA)
        assert proved_of_ledger(made.to_json_bytes(), ledger).budget is None
    assert made.epsilon == certify(events, delta=DELTA).epsilon < 1


def test_a_plan_that_took_all_of_the_budget_has_no_filter() -> None:
    events = released(SAMPLED)
    with spent(
        *events[:2], budget=Budget(ApproxDp(1, DELTA), adjacency=ADD), plan=events
    ) as ledger:
        assert ledger.filtered is None
        made = certificate_of(ledger, delta=DELTA)
        assert STOPPING in proved_of_ledger(made.to_json_bytes(), ledger).assumptions


def test_the_filter_of_another_budget_is_refused() -> None:
    events = released(GAUSSIAN)
    budget, *_ = BUDGETS["epsilon"]
    with spent(*events, budget=budget) as ledger, MemoryLedger() as free:
        free.run("run", configuration_hash="hash").reserve(events, Provenance("system", None))
        given = ledger.noise_circumstances()
        for other in (Gdp(budget.limit * 2), Zcdp(budget.limit / 2), Rdp(2, budget.limit)):
            made = certify(events, delta=DELTA, budget=other).given(*given).to_json_bytes()
            with pytest.raises(NotProved, match="budget"):
                proved_of_ledger(made, ledger)
        made = certify(events, delta=DELTA, budget=budget.kept).given(*given).to_json_bytes()
        assert proved_of_ledger(made, ledger).budget is not None
        with pytest.raises(NotProved, match="budget"):
            proved_of_ledger(made, free)
