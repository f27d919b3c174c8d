"""Laws that a reviewer tried against accountants, courts, budgets, watchers and commands.

Prices are held against what truly happens: mixtures of shifted noise are integrated over a fine
grid, answers of a group are counted one by one, and the best of a random number of runs has its law
in closed form. Odd numbers go into commands and claim files, which answer or refuse in a sentence.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr
from scipy.stats import binom, hypergeom

import dpledger as dp
from dpledger.accounting import Budget, BudgetExceeded, MemoryLedger, SqliteLedger
from dpledger.accounting.guarantees import deltas_at, epsilons_at, guarantee
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.audits.black_boxes import audit_black_box
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import PromisedEpsilon, PromisedRho
from dpledger.audits.scores import ClaimedPrivacy
from dpledger.audits.violations import query_patterns
from dpledger.audits.watching import Watcher
from dpledger.cli.app import main
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    declared,
)
from dpledger.mechanisms.errors import DpledgerError, InvalidParameter
from dpledger.mechanisms.events import AccumulatedPoisson, Parties, UnprotectedRelease
from dpledger.mechanisms.protocols import Provenance
from dpledger.mechanisms.sensitivity import sum_of_bounded

Floats = NDArray[np.float64]
ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE
ELSEWHERE = Provenance("elsewhere", None)
GRID = np.linspace(-60, 60, 120_001)
CELL = float(GRID[1] - GRID[0])


def event(mechanism: Mechanism, *parties: str) -> Event:
    """Return a mechanism as an event of these parties, or of all records."""
    return Event(mechanism, Context(parties, 1, "tried", Audience.PUBLIC))


def gaussian(noise: float, relation: Adjacency = ADD) -> GaussianStep:
    """Return a step in which a record moves by one."""
    return GaussianStep(declared(1, "tried", adjacency=relation), noise)


def laplace(scale: float, relation: Adjacency = ADD, moved: int = 1) -> LaplaceStep:
    """Return a step in which a record moves by so much."""
    return LaplaceStep(declared(moved, "tried", adjacency=relation, norm=Norm.L1), scale)


def mixed(weights: ArrayLike, means: ArrayLike, noise: Callable[[Floats], Floats]) -> Floats:
    """Return the density of a mixture of shifted noise, on the grid."""
    found = np.zeros_like(GRID)
    for weight, mean in zip(np.asarray(weights), np.asarray(means), strict=True):
        found += weight * noise(GRID - mean)
    return found


def normal(noise: float) -> Callable[[Floats], Floats]:
    """Return the density of normal noise."""
    return lambda x: np.exp(-((x / noise) ** 2) / 2) / (noise * math.sqrt(2 * math.pi))


def double_exponential(scale: float) -> Callable[[Floats], Floats]:
    """Return the density of Laplace noise."""
    return lambda x: np.exp(-np.abs(x) / scale) / (2 * scale)


def lost(first: Floats, second: Floats, epsilon: float) -> float:
    """Return delta at an epsilon, of two densities in both orders."""
    grown = math.exp(epsilon)
    pairs = ((first, second), (second, first))
    return float(max(np.maximum(p - grown * q, 0).sum() for p, q in pairs)) * CELL


def require_no_less(mechanism: Mechanism, group: int, first: Floats, second: Floats) -> None:
    """Assert that neither grade says less than two laws lose."""
    for epsilon in (0.05, 1.0):
        true = lost(first, second, epsilon)
        for grade in (Grade.ENCLOSED, Grade.FAST):
            found = deltas_at([event(mechanism)], epsilons=[epsilon], grade=grade, group=group)
            assert found.delta[0] >= true * (1 - 1e-5) - 1e-12


# --- groups on samples ---------------------------------------------------------------------------


@pytest.mark.parametrize(("rate", "scale", "group"), [(0.1, 1.0, 2), (0.4, 0.5, 3), (0.7, 2.0, 2)])
@pytest.mark.parametrize("relation", [ADD, ZERO])
def test_groups_under_laplace_noise_in_a_poisson_sample(
    relation: Adjacency, rate: float, scale: float, group: int
) -> None:
    """Tried: records of a group that all move the same way, as many as are drawn."""
    drawn, noise = np.arange(group + 1), double_exponential(scale)
    here = mixed(binom.pmf(drawn, group, rate), drawn, noise)
    mechanism = PoissonSampled(laplace(scale, relation), rate)
    require_no_less(mechanism, group, here, mixed([1.0], [0.0], noise))


@pytest.mark.parametrize(
    ("records", "batch", "scale", "group"), [(6, 2, 1.5, 2), (5, 3, 1.0, 3), (4, 1, 0.7, 2)]
)
def test_groups_under_laplace_noise_in_a_batch(
    records: int, batch: int, scale: float, group: int
) -> None:
    """Tried: a group that goes from one end of the range to the other, others at an end or not."""
    drawn, noise = np.arange(min(batch, group) + 1), double_exponential(scale)
    chances = hypergeom.pmf(drawn, records, group, batch)
    mechanism = SampledWithoutReplacement(laplace(scale, REPLACE, 2), batch, records)
    require_no_less(mechanism, group, mixed(chances, 2 * drawn, noise), mixed([1.0], [0.0], noise))
    require_no_less(mechanism, group, mixed(chances, drawn, noise), mixed(chances, -drawn, noise))


@pytest.mark.parametrize(
    ("batches", "rate", "noise", "group"), [(3, 0.2, 1.0, 1), (2, 0.5, 2.0, 2)]
)
def test_groups_in_samples_that_add_up_under_one_noise(
    batches: int, rate: float, noise: float, group: int
) -> None:
    """Tried: how often all records of a group are drawn together, left out and replaced."""
    drawn, law = np.arange(batches * group + 1), normal(noise)
    chances = binom.pmf(drawn, batches * group, rate)
    here, there = mixed(chances, drawn, law), mixed(chances, -drawn, law)
    for relation in (ADD, ZERO):
        mechanism = AccumulatedPoisson(gaussian(noise, relation), rate, batches)
        require_no_less(mechanism, group, here, mixed([1.0], [0.0], law))
    step = GaussianStep(sum_of_bounded(1, REPLACE), noise)
    require_no_less(AccumulatedPoisson(step, rate, batches), group, here, there)


@pytest.mark.parametrize(("truth", "answers", "group"), [(0.75, 2, 2), (0.5, 3, 2), (0.6, 2, 3)])
def test_answers_of_a_group_cost_what_counting_them_says(
    truth: float, answers: int, group: int
) -> None:
    """Tried: all lists of answers of a group whose true ones all change."""
    lie = (1 - truth) / (answers - 1)
    here, there = np.full(answers, lie), np.full(answers, lie)
    here[0] = there[1] = truth
    first, second = np.ones(1), np.ones(1)
    for _ in range(group):
        first, second = np.outer(first, here).ravel(), np.outer(second, there).ravel()
    for epsilon in (0.1, 1.0, 1.5):
        true = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
        said = deltas_at(
            [event(RandomisedResponse(truth, answers))], epsilons=[epsilon], group=group
        )
        assert said.delta[0] >= true * (1 - 1e-9) - 1e-13
        assert said.delta[0] <= true * (1 + 1e-6) + 1e-12


# --- the best of several runs --------------------------------------------------------------------


def published(mean: float, moved: float, epsilon: float) -> float:
    """Return delta of the largest of a geometric number of normal outcomes that move so far.

    P(largest > t) = S/(1 - (1 - γ) F) with γ = 1/mean; the likelihood ratio grows with t.
    """
    at = np.linspace(-8, 30, 60_001)
    share, found = 1 / mean, []
    for shift in (moved, 0.0):
        above, below = np.exp(log_ndtr(shift - at)), np.exp(log_ndtr(at - shift))
        found.append(above / (1 - (1 - share) * below))
    here, there = found
    down = (1 - there) - math.exp(epsilon) * (1 - here)
    return float(max(np.max(here - math.exp(epsilon) * there), np.max(down)))


@pytest.mark.parametrize("mean", [1.5, 5.0, 100.0])
@pytest.mark.parametrize("unit", [1, 2])
def test_the_best_of_several_runs_loses_no_more_than_is_said(mean: float, unit: int) -> None:
    """Tried: one normal number a run, which is its own score, of one record and of two."""
    for noise in (0.5, 1.0, 4.0):
        found = dp.epsilon(
            noise_multiplier=noise,
            delta=1e-5,
            sampling="none",
            adjacency="add-remove-one",
            steps=1,
            records_per_unit=unit,
            select=dp.Selection(mean),
        )
        assert published(mean, unit / noise, found.epsilon) <= 1e-5
        assert found.guarantee.epsilon.lower_float <= found.epsilon


# --- laws between prices -------------------------------------------------------------------------


def some_mechanism(draw: random.Random, relation: Adjacency) -> Mechanism:
    """Return a mechanism of a kind that exists under a relation, with numbers of all sizes."""
    noise = math.exp(draw.uniform(math.log(0.4), math.log(30)))
    rate = draw.choice([0.0, 1.0, 10 ** draw.uniform(-6, 0)])
    size = declared(1, "tried", adjacency=relation)
    kinds: list[Mechanism] = [
        GaussianStep(size, noise),
        laplace(noise, relation),
        DiscreteLaplaceStep(declared(2, "tried", adjacency=relation, norm=Norm.L1), noise),
    ]
    if relation is REPLACE:
        kinds += [
            RandomisedResponse(draw.uniform(0.5, 1), 2),
            PoissonSampled(GaussianStep(sum_of_bounded(1, REPLACE), noise), rate),
        ]
    else:
        kinds += [PoissonSampled(GaussianStep(size, noise), rate)]
    found = draw.choice(kinds)
    times = draw.choice([1, 1, 3, 20])
    return Repeated(found, times) if times > 1 else found


@pytest.mark.parametrize("seed", [0, 2, 3, 4])
def test_more_events_more_records_and_less_delta_never_cost_less(seed: int) -> None:
    """Tried: the lower end of what is less against the upper end of what is more."""
    draw = random.Random(seed)
    relation = draw.choice([ADD, ZERO, REPLACE])
    events = [event(some_mechanism(draw, relation)) for _ in range(2)]
    delta, room = draw.choice([1e-12, 1e-5, 1e-3]), 1 + 1e-9
    found = guarantee(events, delta=delta).epsilon
    assert found.lower_float <= found.upper_float
    fast = epsilons_at(events, deltas=[delta], grade=Grade.FAST).epsilon[0]
    assert fast >= found.lower_float * (1 - 1e-12)
    less = (guarantee(events[:1], delta=delta), guarantee(events, delta=3 * delta))
    more = (guarantee(events, delta=delta, group=2), guarantee([*events, *events], delta=delta))
    assert all(each.epsilon.lower_float <= found.upper_float * room + 1e-12 for each in less)
    assert all(found.lower_float <= each.epsilon.upper_float * room + 1e-12 for each in more)


def test_a_record_pays_for_its_own_party_wherever_that_is_named() -> None:
    """Tried: parts by party beside events of one of them, of a stranger and of everybody."""
    step = gaussian(2.0)
    parts = Parties((("a", (step,)), ("b", (step,))))

    def price(*events: Event) -> float:
        return guarantee(events, delta=1e-5).epsilon.upper_float

    once, twice = price(event(step)), price(event(step), event(step))
    assert price(event(parts)) == once
    assert price(event(parts), event(step, "c")) == once
    for other in (event(step, "a"), event(step)):
        assert price(event(parts), other) == twice
    assert price(event(Repeated(parts, 2))) == twice
    with pytest.raises(InvalidParameter):
        price(event(parts, "b"))
    with pytest.raises(InvalidParameter):
        price(event(step, "a", "a"))


# --- budgets and courts --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "cost"),
    [(Gdp(1), 0.25), (Zcdp(Fraction(1, 2)), 0.25), (Rdp(8, Fraction(4)), 0.25)],
)
def test_a_run_that_was_open_before_the_budget_is_charged_from_its_first_step(
    budget: Gdp | Zcdp | Rdp, cost: float
) -> None:
    """Tried: four steps of a quarter each, in two runs, of which one was open beforehand."""
    ledger = MemoryLedger()
    before = ledger.run("before", configuration_hash="0" * 64)
    ledger.set_budget(Budget(budget, ADD))
    for run in (before, before, ledger.run("after", configuration_hash="0" * 64), before):
        run.step(event(gaussian(1 / math.sqrt(cost))))
    with pytest.raises(BudgetExceeded):
        before.step(event(gaussian(100.0)))
    assert len(ledger.events("before")) == 3


def test_a_plan_that_took_all_of_the_budget_leaves_nothing_to_another() -> None:
    """Tried: a plan that no filter adds up, all of it and one event more, and a second run."""
    ledger = MemoryLedger()
    plan = [event(laplace(10.0))] * 3
    run = ledger.run("planned", configuration_hash="0" * 64, plan=plan)
    ledger.set_budget(Budget(ApproxDp(1, 1e-5), ADD))
    for each in plan:
        run.step(each)
    other = ledger.run("other", configuration_hash="0" * 64)
    for late, what in ((run, plan[0]), (other, event(gaussian(100.0)))):
        with pytest.raises(DpledgerError, match="Nothing was released"):
            late.step(what)
    assert len(ledger.events("planned")) == 3


def recorded(ledger: MemoryLedger | SqliteLedger, name: str, events: list[Event]) -> None:
    """Record a planned run that is over."""
    run = ledger.run(name, configuration_hash="0" * 64, plan=events)
    run.commit(run.reserve(events, ELSEWHERE))


def test_the_court_is_exact_about_pure_promises_and_about_deltas() -> None:
    """Tried: promises that are just kept and just broken, at delta 0 and above, and of rho."""
    ledger = MemoryLedger()
    recorded(ledger, "laplace", [event(laplace(2.0)), event(laplace(2.0))])
    for promise, expected in (
        (PromisedEpsilon(1.0, 0.0), ClaimVerdict.HOLDS),
        (PromisedEpsilon(0.99, 0.0), ClaimVerdict.NOT_IMPLIED),
        (PromisedEpsilon(0.99997, 1e-5), ClaimVerdict.HOLDS),
        (PromisedEpsilon(0.99995, 1e-5), ClaimVerdict.NOT_IMPLIED),
        (PromisedEpsilon(0.0, 0.9), ClaimVerdict.HOLDS),
        (PromisedRho(0.25), ClaimVerdict.HOLDS),
    ):
        assert judge_ledger(ledger, promise).finding.verdict is expected


def test_an_answer_that_tells_too_much_refutes_its_promise() -> None:
    """Tried: randomised answers, whose price some data meet, at the sixth decimal of ln 3."""
    ledger = MemoryLedger()
    recorded(ledger, "answers", [event(RandomisedResponse(0.75))])
    verdicts = [
        judge_ledger(ledger, PromisedEpsilon(epsilon, 0.0)).finding.verdict
        for epsilon in (1.098613, 1.098612)
    ]
    assert verdicts == [ClaimVerdict.HOLDS, ClaimVerdict.FAILS]


def test_a_watcher_tells_of_all_runs_beside_one_without_a_price(tmp_path: Path) -> None:
    """Tried: a run that no theorem prices in front of one that released everything."""
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path) as ledger:
        recorded(ledger, "unpriced", [event(PoissonSampled(laplace(2.0, REPLACE, 2), 0.1))])
        recorded(ledger, "bare", [event(UnprotectedRelease("everything"))])
        recorded(ledger, "good", [event(gaussian(5.0, REPLACE))])
    look = Watcher(path, tmp_path / "memory.json", (), 1e-5, 20).step(lambda _: None)
    assert {alarm.run for alarm in look.new} == {"unpriced", "bare"}
    again = Watcher(path, tmp_path / "memory.json", (), 1e-5, 20).step(lambda _: None)
    assert not again.new
    assert len(again.memory.open_alarms) == 2


@pytest.mark.parametrize("kernel", [False, True])
def test_bets_on_a_tight_claim_are_lost(kernel: bool) -> None:
    """Tried: a randomised answer that is just as private as is claimed, with forty seeds."""

    def answer(answers: Floats, trials: int, generator: np.random.Generator) -> Floats:
        true = answers > 0.5
        lies = generator.random((trials, answers.size)) > math.e / (1 + math.e)
        return np.asarray(np.where(lies, ~true, true), dtype=np.float64)

    claimed = ClaimedPrivacy.of(epsilon=1.0, mu=None, delta=0.0)
    refuted = sum(
        audit_black_box(
            answer,
            query_patterns(1),
            claimed=claimed,
            runs=2000,
            confidence=0.9,
            seed=seed,
            kernel=kernel,
        ).refuted
        for seed in range(40)
    )
    assert refuted <= 11  # of 40 at a level of 0.1: less than one time in a thousand


# --- the front door ------------------------------------------------------------------------------


def test_numbers_of_other_kinds_are_refused_by_name() -> None:
    """Tried: numbers that round by themselves, and counts that wrap."""
    stated = {
        "noise_multiplier": 1.1,
        "records": 60000,
        "batch": 256,
        "steps": 10,
        "delta": 1e-5,
        "sampling": "poisson",
        "adjacency": "add-remove-one",
    }
    for name, value in (
        ("noise_multiplier", np.float32(1.1)),
        ("noise_multiplier", np.int64(1)),
        ("noise_multiplier", True),
        ("delta", np.float32(1e-5)),
        ("records", np.int64(60000)),
        ("batch", 256.0),
        ("steps", True),
    ):
        with pytest.raises(InvalidParameter, match=name):
            dp.epsilon(**{**stated, name: value})  # type: ignore[arg-type]
    exact = dp.epsilon(**{**stated, "noise_multiplier": Fraction(11, 10)})  # type: ignore[arg-type]
    nearby = dp.epsilon(**stated).guarantee.epsilon  # type: ignore[arg-type]
    assert exact.epsilon >= nearby.lower_float
    assert exact.noise_multiplier <= 1.1


ODD = ("nan", "inf", "-1", "0", "1e-320", "1e308", "1e309", "abc", "")
COUNTS = ("-1", "0", "1", "10000000000", "1000000000000000001", "1.5", "x")
SCHEMES = ("none", "poisson", "truncated-poisson", "fixed-batch", "shuffled", "x")


@pytest.mark.parametrize("seed", range(5))
def test_commands_answer_odd_numbers_or_refuse_them_in_a_sentence(seed: int) -> None:
    """Tried: two hundred calls, with numbers outside every range; no other error came out."""
    draw = random.Random(seed)
    for _ in range(8):
        call = ["epsilon", "--delta", draw.choice(["1e-5", *ODD])]
        call += ["--noise-multiplier", draw.choice(["4", *ODD])]
        call += ["--sampling", draw.choice(SCHEMES)]
        call += ["--adjacency", draw.choice(["add-remove-one", "replace-one", "x"])]
        for name, usual in (("records", "1000"), ("batch", "10"), ("steps", "3")):
            call += [f"--{name}", draw.choice([usual, usual, draw.choice(COUNTS)])]
        if draw.random() < 0.3:
            call += ["--largest-batch", draw.choice(COUNTS)]
        found = CliRunner().invoke(main, call)
        if found.exception is not None:
            kinds = (SystemExit, DpledgerError, click.ClickException)
            assert isinstance(found.exception, kinds), call
