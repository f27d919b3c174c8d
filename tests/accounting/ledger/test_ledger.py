"""The laws of a ledger, over every place it can be kept in.

1. What is reserved is spent, committed or not; what is refused leaves no trace.
2. Within a run a record pays for its own party; over runs the worst of each adds up.
3. A budget stands before the first reservation and is never crossed.
4. What was written is read back equal, verifies, and travels as JSON lines without changing.
"""

import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from itertools import count
from math import comb, exp, inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interrupts import handled, interrupted
from tests.parameters import quick

from dpledger.accounting.composition import UnpricedMechanism
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import (
    Ledger,
    LedgerError,
    MalformedExport,
    MemoryLedger,
    Run,
    SqliteLedger,
    TamperedLedger,
    exported,
    imported,
    state,
)
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.ledger.rows import Reserved, encoded
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Zcdp
from dpledger.mechanisms import (
    Adjacency,
    AdjacencyMismatch,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    PrivateDataset,
    Provenance,
    RandomisedResponse,
    Repeated,
    SamplingCurator,
    SystemSampler,
    UnprotectedRelease,
    declared,
)
from dpledger.mechanisms.encoding import message_digest
from dpledger.solvers.losses import Logistic

NOWHERE = Provenance("none", None)

Make = Callable[[], Ledger]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    made: list[Ledger] = []

    def one_more() -> Ledger:
        path = tmp_path / f"{len(made)}.ledger"
        made.append(MemoryLedger() if request.param == "memory" else SqliteLedger(path))
        return made[-1]

    yield one_more
    for ledger in made:
        ledger.close()


@pytest.fixture
def ledger(make: Make) -> Ledger:
    return make()


def step(noise_std: float = 4.0, adjacency: Adjacency = Adjacency.REPLACE_ONE) -> GaussianStep:
    return GaussianStep(declared(1, "unit", adjacency=adjacency), noise_std)


def event(mechanism: Mechanism, *parties: str, round: int = 1) -> Event:
    return Event(mechanism, Context(parties, round, "message", Audience.SERVER))


def test_reservations_are_spent_with_or_without_commit(ledger: Ledger) -> None:
    run = ledger.run("a", configuration_hash="c")
    first = run.reserve((event(step()),), NOWHERE)
    run.reserve((event(step()), event(step(2.0))), NOWHERE)
    run.commit(first)
    assert run.spent().mu_squared == Fraction(1, 16) + Fraction(1, 16) + Fraction(1, 4)
    assert [r.committed for r in ledger.reservations()] == [True, False]
    (summary,) = ledger.runs()
    assert (summary.events, summary.reservations, summary.committed) == (3, 2, 1)
    assert len(ledger.verify().open) == 1


def test_a_reservations_messages_leave_once_each_and_in_order(make: Make) -> None:
    ledger = make()
    run, other = (ledger.run(name, configuration_hash="c") for name in "ab")
    token = run.reserve([event(step(), round=k) for k in range(2)], NOWHERE)
    contents = [np.full((2, 3), float(k)) for k in range(2)]
    for sink, number in ((run, 1), (run, -1), (run, True), (other, 0)):
        with pytest.raises(InvalidParameter):
            sink.commit(token, contents[0], event=number)
    assert not ledger.has_left(token)
    run.commit(token, contents[0])
    assert (ledger.has_left(token), ledger.has_left(token, 1)) == (True, False)
    with pytest.raises(InvalidParameter, match="next to leave"):
        run.commit(token, contents[1])  # a second message of the first event
    assert ledger.verify().open == (token,)
    run.commit(token, contents[1], event=1)
    assert ledger.verify().open == ()
    with pytest.raises(InvalidParameter, match="open reservation"):
        run.commit(token, contents[1], event=1)
    # an independent digest: numbers one after the other, eight bytes each, the lowest first
    digests = [sha256(struct.pack("<6d", *each.ravel())).hexdigest() for each in contents]
    assert ledger.messages("a") == dict(zip([(token, 0), (token, 1)], digests, strict=True))
    assert ledger.messages("b") == {}
    copy = make()
    imported(exported(ledger), copy)
    assert copy.messages() == ledger.messages()


def test_a_curators_release_is_in_the_ledger_by_its_digest(ledger: Ledger) -> None:
    run = ledger.run("a", configuration_hash="c")
    data = PrivateDataset(
        np.full((4, 2), 0.5),
        np.ones(4),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
    )
    curator = SamplingCurator(run, SystemSampler())
    mean = data.mean_gradient(Logistic(), np.zeros((1, 2)))
    message = curator.release(mean, round=1, release="gradient", noise_multiplier=1.0)
    assert list(ledger.messages().values()) == [message_digest(message)]
    assert ledger.verify().open == ()


def test_a_head_cannot_be_searched_for_a_seed(make: Make) -> None:
    """Reports carry heads: of two rows that say the same, the hashes differ where a seed is."""
    bodies: list[list[str]] = []
    for source in (Provenance("exact-philox", 7), NOWHERE):
        entry = Reserved((event(step()),), source, "2020-01-01T00:00:00+00:00")
        bodies.append([encoded(entry)[1] for _ in range(2)])
        ledger = make()
        ledger.run("a", configuration_hash="c").reserve((event(step()),), source)
        assert [each.provenance for each in ledger.reservations()] == [source]
        ledger.verify()
    (one, two), (same, again) = bodies
    assert one != two
    assert same == again
    assert "salt" not in same


def test_events_and_provenance_are_read_back_equal(ledger: Ledger) -> None:
    written = [
        event(step(), "a", "b", round=3),
        event(Repeated(PoissonSampled(step(1.1, Adjacency.ZERO_OUT_ONE), 0.25), 7), round=4),
        event(UnprotectedRelease("dual from the raw gradient"), "é", round=0),
    ]
    for number, one in enumerate(written):
        run = ledger.run(f"run-{number}", configuration_hash="c")
        run.reserve((one,), Provenance("numpy-philox", 2**128 - 1 - number))
    assert ledger.events() == written
    assert ledger.events("run-1") == written[1:2]
    assert [r.provenance.seed for r in ledger.reservations()] == [2**128 - 1 - n for n in range(3)]
    read = ledger.events()[0].mechanism
    assert isinstance(read, GaussianStep)
    assert read.sensitivity.assumptions == ("unit",)


def test_only_an_open_reservation_of_the_run_is_committed_and_once(ledger: Ledger) -> None:
    run, other = (ledger.run(name, configuration_hash="c") for name in "ab")
    token = run.reserve((event(step()),), NOWHERE)
    for sink, wrong in ((other, token), (run, token + 1), (run, 0), (run, float(token))):
        with pytest.raises(InvalidParameter):
            sink.commit(wrong)  # type: ignore[arg-type]
    run.commit(token)
    with pytest.raises(InvalidParameter):
        run.commit(token)
    assert ledger.runs()[0].committed == 1


def test_a_run_is_joined_only_under_its_own_configuration(ledger: Ledger) -> None:
    plan = [event(step())]
    ledger.run("a", configuration_hash="c", plan=plan)
    head = ledger.head
    ledger.run("a", configuration_hash="c", plan=plan).reserve(plan, NOWHERE)
    for changed in ({"configuration_hash": "d", "plan": plan}, {"configuration_hash": "c"}):
        with pytest.raises(InvalidParameter):
            ledger.run("a", **changed)  # type: ignore[arg-type]
    for name, digest in (("", "c"), ("b", "")):
        with pytest.raises(InvalidParameter):
            ledger.run(name, configuration_hash=digest)
    assert ledger.verify().rows == 2
    assert next(iter(ledger.rows())).hash == head


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ((), InvalidParameter),
        ((event(step(), "a", "a"),), InvalidParameter),
        ((event(step(1.0, Adjacency.ZERO_OUT_ONE)),), AdjacencyMismatch),
        ((event(step()), event(step(1.0, Adjacency.ZERO_OUT_ONE))), AdjacencyMismatch),
    ],
)
def test_what_cannot_be_charged_leaves_no_trace(
    ledger: Ledger, wrong: tuple[Event, ...], error: type[Exception]
) -> None:
    run = ledger.run("a", configuration_hash="c")
    run.reserve((event(step()),), NOWHERE)
    head = ledger.head
    with pytest.raises(error):
        run.reserve(wrong, NOWHERE)
    assert ledger.head == head
    assert ledger.spent().mu_squared == Fraction(1, 16)


def test_within_a_run_the_worst_party_counts_and_over_runs_they_add_up(ledger: Ledger) -> None:
    for name in ("first", "second"):
        run = ledger.run(name, configuration_hash="c")
        run.reserve((event(step(1.0), "a"), event(step(2.0), "b")), NOWHERE)
        assert run.spent().mu_squared == 1
    second = ledger.run("third", configuration_hash="c")
    second.reserve((event(step(1.0), "b"),), NOWHERE)
    # another run may deal the records out otherwise: party b of the third may hold a's record
    assert ledger.spent().mu_squared.upper == 3
    assert ledger.spent().mu_squared.lower == 1


def test_events_of_all_runs_are_handed_out_together_only_where_names_price_them(
    ledger: Ledger,
) -> None:
    def run(name: str, noises: dict[str, float]) -> None:
        events = [event(step(noise), party) for party, noise in noises.items()]
        ledger.run(name, configuration_hash="c").reserve(events, NOWHERE)

    run("first", {"a": 1.0, "b": 2.0})
    run("second", {"a": 1.0, "b": 1.0})
    total = ledger.spent().epsilon(1e-6).upper
    assert guarantee(ledger.joint_events(), delta=1e-6).epsilon.upper == total
    # the same records under another name: by names the worst would pay 2, in truth 3
    run("third", {"b": 1.0})
    assert ledger.spent().epsilon(1e-6).upper > guarantee(ledger.events(), delta=1e-6).epsilon.upper
    with pytest.raises(LedgerError):
        ledger.joint_events()


def paid_by_two_parties(runs: int) -> MemoryLedger:
    """Return a ledger of runs whose two parties have Laplace noise of different scales."""
    ledger = MemoryLedger()
    unit = declared(1, "unit", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)
    for k in range(runs):
        plan = [
            Event(LaplaceStep(unit, 10.0 + k + 0.5 * i), Context((p,), 1, "g", Audience.SERVER))
            for i, p in enumerate("ab")
        ]
        ledger.run(f"run {k}", configuration_hash="c", plan=plan).reserve(plan, NOWHERE)
    return ledger


def test_what_a_record_may_have_paid_is_bounded_where_it_is_too_much_to_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A record may be either party's in each run: the worst is the dearer party's of every run."""
    with paid_by_two_parties(5) as ledger:
        listed = ledger.spent()
        monkeypatch.setattr(state, "_MOST_ACCOUNTS", 1)
        bounded = ledger.spent()
        assert (len(listed.accounts), bounded.accounts) == (3**5, ())  # or of no party
        exact, bound = (each.epsilon(1e-5).upper_float for each in (listed, bounded))
        assert exact <= bound <= exact * 1.01


def test_a_ledger_of_many_runs_is_priced_by_their_number_and_not_by_their_sums() -> None:
    with paid_by_two_parties(4) as few, paid_by_two_parties(8) as many:
        assert (len(few.spent().accounts), len(few.spent().runs)) == (3**4, 0)
        assert (len(many.spent().accounts), len(many.spent().runs)) == (0, 8)
        assert 0 < many.spent().epsilon(1e-5).upper_float < 20
        with pytest.raises(LedgerError, match="Expected one run, or runs in which"):
            many.joint_events()


def test_of_two_plans_one_alone_is_an_estimate_until_the_other_is_done(ledger: Ledger) -> None:
    plan = [event(step())]
    runs = [ledger.run(name, configuration_hash="c", plan=plan) for name in ("a", "b")]
    runs[0].reserve(plan, NOWHERE)
    # whether the second will run may depend on what the first released
    assert ledger.spent().grade is Grade.ESTIMATE
    assert runs[0].spent().grade is Grade.ENCLOSED
    runs[1].reserve(plan, NOWHERE)
    assert ledger.spent().grade is Grade.ENCLOSED


def test_runs_under_two_relations_have_no_common_total(ledger: Ledger) -> None:
    for name, adjacency in (("a", Adjacency.REPLACE_ONE), ("b", Adjacency.ZERO_OUT_ONE)):
        ledger.run(name, configuration_hash="c").reserve((event(step(1.0, adjacency)),), NOWHERE)
    with pytest.raises(AdjacencyMismatch):
        ledger.spent()
    assert ledger.spent("b").adjacency is Adjacency.ZERO_OUT_ONE


def test_an_unprotected_release_is_recorded_and_infinite(ledger: Ledger) -> None:
    run = ledger.run("published", configuration_hash="c")
    run.reserve((event(UnprotectedRelease("pre-training")),), NOWHERE)
    ledger.run("other", configuration_hash="c").reserve((event(step()),), NOWHERE)
    assert ledger.spent().epsilon(0.1) == inf
    assert ledger.spent().unprotected == ("pre-training",)
    assert ledger.spent("other").epsilon(0.1) < inf


def test_the_odometer_is_certified_for_whole_plans_and_else_an_estimate(ledger: Ledger) -> None:
    plan = [event(step(), round=r) for r in (1, 2, 3)]
    planned = ledger.run("planned", configuration_hash="c", plan=plan)
    adaptive = ledger.run("adaptive", configuration_hash="c")
    planned.reserve(plan[:2], NOWHERE)
    # somebody may stop here because of what came out
    assert planned.spent().grade is Grade.ESTIMATE
    assert planned.spent().epsilon(1e-6).upper == guarantee(plan[:2], delta=1e-6).epsilon.upper
    planned.reserve(plan[2:], NOWHERE)
    assert planned.spent().grade is Grade.ENCLOSED
    assert ledger.spent().grade is Grade.ENCLOSED
    assert planned.spent().epsilon(1e-6).upper == guarantee(plan, delta=1e-6).epsilon.upper
    adaptive.reserve((event(step()),), NOWHERE)
    assert adaptive.spent().grade is Grade.ESTIMATE
    assert ledger.spent().grade is Grade.ESTIMATE
    planned.reserve(plan[:1], NOWHERE)
    assert planned.spent().grade is Grade.ESTIMATE
    assert [(r.planned, r.kept_to_plan) for r in ledger.runs()] == [(True, False), (False, False)]


def test_what_a_new_run_could_not_reserve_is_refused_without_a_trace(ledger: Ledger) -> None:
    ledger.set_budget(Budget(ApproxDp(Fraction(1), Fraction(1, 10**5)), Adjacency.REPLACE_ONE))
    plan = [event(step(), round=r) for r in (1, 2)]
    ledger.require([event(GaussianStep(step().sensitivity, 100.0))])
    rows = ledger.head
    with pytest.raises(BudgetExceeded, match="epsilon at delta 1e-05 <= 1 in all: 0 is") as refusal:
        ledger.require(plan)
    assert refusal.value.asked == guarantee(plan, delta=Fraction(1, 10**5)).epsilon.upper_float
    assert refusal.value.limit == 1
    other = declared(1, "test", adjacency=Adjacency.ZERO_OUT_ONE)
    with pytest.raises(AdjacencyMismatch):
        ledger.require([event(GaussianStep(other, 100.0))])
    with pytest.raises(InvalidParameter, match="events"):
        ledger.require([])
    assert (ledger.head, ledger.runs()) == (rows, ())
    assert ledger.spent().epsilon(1e-5) == 0


def test_a_stopped_run_guarantees_no_more_than_its_odometer_says(ledger: Ledger) -> None:
    plan = [event(step(), round=r) for r in (1, 2, 3)]
    run = ledger.run("planned", configuration_hash="c", plan=plan)
    run.reserve(plan[:2], NOWHERE)
    stopped = run.guarantee(delta=1e-6)
    assert stopped.grade is run.spent().grade is Grade.ESTIMATE
    assert ledger.guarantee(delta=1e-6).grade is Grade.ESTIMATE
    assert stopped.epsilon.upper == run.spent().epsilon(1e-6).upper
    run.reserve(plan[2:], NOWHERE)
    whole = run.guarantee(delta=1e-6)
    assert whole.grade is run.spent().grade is Grade.ENCLOSED
    assert whole.epsilon.upper == guarantee(plan, delta=1e-6).epsilon.upper
    assert ledger.guarantee(delta=1e-6).grade is Grade.ENCLOSED


def test_an_odometer_of_planned_events_in_another_order_is_certified_at_the_end(
    ledger: Ledger,
) -> None:
    # which of two planned events comes next may have been chosen by what the first one said
    plan = [event(step(noise), round=1) for noise in (10.0, 1.0, 100.0)]
    run = ledger.run("a", configuration_hash="c", plan=plan)
    grades = []
    for planned in (plan[0], plan[2], plan[1]):
        run.reserve((planned,), NOWHERE)
        grades.append(run.spent().grade)
    assert grades == [Grade.ESTIMATE, Grade.ESTIMATE, Grade.ENCLOSED]
    assert ledger.runs()[0].kept_to_plan


@pytest.mark.parametrize(
    "write",
    [
        lambda run: run.reserve((event(step()),), Provenance("none", True)),
        lambda run: run.reserve((event(step()),), Provenance("none", 1.0)),
        lambda run: run.reserve((event(step()),), Provenance(1, None)),
        lambda run: run.reserve((event(step(), 1),), NOWHERE),
        lambda run: run.reserve(
            (Event(step(), Context("ab", 1, "message", Audience.SERVER)),), NOWHERE
        ),
        lambda run: run.reserve((Event(step(), Context((), 1, 5, Audience.SERVER)),), NOWHERE),
        lambda run: run.ledger.run("b", configuration_hash=5),
    ],
    ids=["a seed true", "a seed 1.0", "a sampler 1", "a party 1", "a bare name", "5", "a hash 5"],
)
def test_what_could_not_be_read_back_is_not_written(
    ledger: Ledger, write: Callable[[Any], object]
) -> None:
    run = ledger.run("a", configuration_hash="c")
    with pytest.raises(InvalidParameter):
        write(run)
    assert ledger.verify().rows == 1


def test_a_plan_made_after_a_release_is_certified_alone_but_not_in_sum(ledger: Ledger) -> None:
    plan = [event(step())]
    for name in ("first", "second"):
        ledger.run(name, configuration_hash="c", plan=plan).reserve(plan, NOWHERE)
        assert ledger.spent(name).grade is Grade.ENCLOSED
    assert ledger.spent().grade is Grade.ESTIMATE


@pytest.mark.parametrize("notion", [Gdp(Fraction(3, 16)), Zcdp(Fraction(3, 32))])
def test_a_budget_is_spent_to_the_last_and_not_beyond(ledger: Ledger, notion: Gdp) -> None:
    ledger.set_budget(Budget(notion, Adjacency.REPLACE_ONE))
    runs = [ledger.run(name, configuration_hash="c") for name in "ab"]
    runs[0].reserve((event(step()),), NOWHERE)
    runs[1].reserve((event(step()),), NOWHERE)
    head = ledger.head
    with pytest.raises(BudgetExceeded) as refusal:
        runs[0].reserve((event(step()), event(step())), NOWHERE)
    # in the unit that the budget was set in
    assert refusal.value.remaining == Fraction(1, 32 if isinstance(notion, Zcdp) else 16)
    with pytest.raises(BudgetExceeded):
        runs[1].reserve((event(UnprotectedRelease("raw")),), NOWHERE)
    assert ledger.head == head
    runs[1].reserve((event(step()),), NOWHERE)
    with pytest.raises(BudgetExceeded):
        runs[0].reserve((event(step(1e9)),), NOWHERE)
    assert ledger.spent().mu_squared == Fraction(3, 16)
    assert ledger.verify().reservations == 3


def test_parties_share_a_budget_only_with_their_own_records(ledger: Ledger) -> None:
    ledger.set_budget(Budget(Gdp(Fraction(1, 8)), Adjacency.REPLACE_ONE))
    run = ledger.run("a", configuration_hash="c")
    for parties in (("a", "b"), ("a",), ("b",)):
        run.reserve((event(step(), *parties),), NOWHERE)
    for parties in ((), ("a",), ("b", "c")):
        with pytest.raises(BudgetExceeded):
            run.reserve((event(step(), *parties),), NOWHERE)
    run.reserve((event(step(), "c"), event(step(), "c")), NOWHERE)


def test_other_names_of_parties_in_other_runs_spend_from_one_budget(ledger: Ledger) -> None:
    ledger.set_budget(Budget(Gdp(Fraction(1, 4)), Adjacency.REPLACE_ONE))
    for k in range(4):
        run = ledger.run(f"run {k}", configuration_hash="c")
        run.reserve((event(step(), f"party {k}"),), NOWHERE)
    with pytest.raises(BudgetExceeded):
        ledger.run("a fifth", configuration_hash="c").reserve((event(step(), "party"),), NOWHERE)


def test_a_budget_stands_once_and_before_the_first_reservation(make: Make) -> None:
    budget = Budget(ApproxDp(1, 1e-5), Adjacency.REPLACE_ONE)
    ledger = make()
    ledger.set_budget(budget)
    assert ledger.budget == budget
    with pytest.raises(LedgerError, match="no budget yet"):
        ledger.set_budget(budget)
    late = make()
    late.run("a", configuration_hash="c").reserve((event(step()),), NOWHERE)
    with pytest.raises(LedgerError, match="before the first reservation"):
        late.set_budget(budget)


def test_a_budget_speaks_of_one_relation_and_pays_gaussian_steps_only(ledger: Ledger) -> None:
    early = ledger.run("early", configuration_hash="c")
    ledger.set_budget(Budget(Gdp(1), Adjacency.ZERO_OUT_ONE))
    late = ledger.run("late", configuration_hash="c")
    for run in (early, late):
        with pytest.raises(AdjacencyMismatch):
            run.reserve((event(step()),), NOWHERE)
        with pytest.raises(UnpricedMechanism, match="PoissonSampled"):
            run.reserve((event(PoissonSampled(step(4.0, Adjacency.ZERO_OUT_ONE), 0.1)),), NOWHERE)
    assert ledger.events() == []


programs = st.lists(
    st.tuples(
        st.sampled_from("AB"),
        st.lists(st.sampled_from("abc"), unique=True, max_size=3),
        st.integers(-3, 6),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(programs, st.fractions(min_value=0, max_value=8, max_denominator=64))
def test_the_filter_admits_exactly_what_fits(
    program: list[tuple[str, list[str], int]], limit: Fraction
) -> None:
    ledger = MemoryLedger()
    ledger.set_budget(Budget(Gdp(limit), Adjacency.REPLACE_ONE))
    paid = {(run, party): Fraction(0) for run in "AB" for party in "abc-"}

    def total(costs: dict[tuple[str, str], Fraction]) -> Fraction:
        return sum((max(costs[run, p] for p in "abc-") for run in "AB"), Fraction(0))

    for run, parties, exponent in program:
        ahead = {
            (r, p): c
            + (Fraction(4) ** -exponent if r == run and (not parties or p in parties) else 0)
            for (r, p), c in paid.items()
        }
        sink = ledger.run(run, configuration_hash="c")
        wanted = (event(step(2.0**exponent), *parties),)
        if total(ahead) <= limit:
            sink.reserve(wanted, NOWHERE)
            paid = ahead
        else:
            with pytest.raises(BudgetExceeded) as refusal:
                sink.reserve(wanted, NOWHERE)
            assert refusal.value.spent == total(paid)
            assert refusal.value.asked == total(ahead) - total(paid)
    assert ledger.spent().mu_squared.upper_float == total(paid)
    ledger.verify()


def test_threads_share_a_ledger(ledger: Ledger) -> None:
    ledger.set_budget(Budget(Gdp(Fraction(50, 16)), Adjacency.REPLACE_ONE))
    refusals: list[str] = []

    def write(name: str) -> None:
        run = ledger.run(name, configuration_hash="c")
        for round in range(1, 21):
            try:
                run.commit(run.reserve((event(step(), round=round),), NOWHERE))
            except BudgetExceeded:
                refusals.append(name)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = ledger.verify()
    assert (found.reservations, len(refusals), found.open) == (50, 30, ())


def filled(ledger: Ledger) -> Ledger:
    ledger.set_budget(Budget(ApproxDp(1, Fraction(1, 10**5)), Adjacency.REPLACE_ONE))
    plan = [event(step(40.0), "a", "b", round=r) for r in (1, 2)]
    run = ledger.run("planned", configuration_hash="c", plan=plan)
    run.commit(run.reserve(plan[:1], Provenance("numpy-philox", 7)))
    ledger.run("other", configuration_hash="d").reserve((event(step(50.0)),), NOWHERE)
    return ledger


def test_a_ledger_travels_as_lines_without_changing(make: Make) -> None:
    ledger = filled(make())
    lines = list(exported(ledger))
    for copy in (make(), MemoryLedger()):
        assert imported(lines, copy) == ledger.verify()
        assert copy.head == ledger.head
        assert copy.events() == ledger.events()
        assert copy.runs() == ledger.runs()
        assert list(exported(copy)) == lines
        run = copy.run("other", configuration_hash="d")
        run.reserve((event(step(50.0)),), NOWHERE)
        copy.verify()


def test_an_empty_ledger_travels_too(make: Make) -> None:
    assert imported(exported(make()), make()).rows == 0


def test_import_wants_an_empty_ledger(make: Make) -> None:
    lines = list(exported(filled(make())))
    with pytest.raises(LedgerError, match="no rows yet"):
        imported(lines, filled(make()))


LINES = list(exported(filled(MemoryLedger())))


@pytest.mark.parametrize(
    "lines",
    [
        [],
        LINES[:-1],
        LINES[1:],
        LINES[:-2] + LINES[-1:],
        [*LINES, LINES[-1]],
        [*LINES[:-1], LINES[-2], LINES[-1]],
        ['{"format":"urn:dpledger:ledger:2"}', *LINES[1:]],
        ['{"extra":1,"format":"urn:dpledger:ledger:1"}', *LINES[1:]],
        [LINES[0].replace(":", ": "), *LINES[1:]],
        [LINES[0], "not JSON", *LINES[1:]],
        [LINES[0], "[" * 100_000, *LINES[1:]],
        [LINES[0], *LINES[2:]],
        [LINES[0], '{"row":[1]}', *LINES[1:]],
    ],
    ids=[
        "nothing",
        "no end",
        "no header",
        "a row is missing at the end",
        "two ends",
        "a row twice",
        "another version",
        "an unknown field",
        "not canonical",
        "not JSON",
        "nested without end",
        "a document is missing",
        "a row too short",
    ],
)
def test_lines_that_are_no_ledger_are_refused_and_nothing_is_kept(
    make: Make, lines: list[str]
) -> None:
    ledger = make()
    with pytest.raises((MalformedExport, TamperedLedger)):
        imported(lines, ledger)
    assert ledger.verify().rows == 0
    assert ledger.verify().documents == 0


@settings(max_examples=200)
@given(st.data())
def test_one_changed_byte_of_any_line_is_found(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(LINES) - 1))
    line = LINES[number]
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.characters(min_codepoint=32, max_codepoint=126).filter(line[place].__ne__))
    changed = [*LINES]
    changed[number] = line[:place] + other + line[place + 1 :]
    with pytest.raises((MalformedExport, TamperedLedger)):
        imported(changed, MemoryLedger())


def test_the_head_kept_elsewhere_shows_rows_missing_at_the_end(ledger: Ledger) -> None:
    filled(ledger)
    ledger.verify(expected_head=ledger.head)
    with pytest.raises(TamperedLedger):
        ledger.verify(expected_head="0" * 64)


def sampled_plan(times: int) -> list[Event]:
    size = declared(1, "clipped", adjacency=Adjacency.ADD_REMOVE_ONE)
    drawn = PoissonSampled(GaussianStep(size, 1.0), 0.01)
    release = GaussianStep(size, 8.0)
    return [*(event(drawn, round=r) for r in range(1, times)), event(release, round=times)]


def test_a_plan_of_samples_is_paid_for_as_a_whole(ledger: Ledger) -> None:
    plan = sampled_plan(20)
    enough = guarantee(plan, delta=1e-5).epsilon.upper_float
    ledger.set_budget(Budget(ApproxDp(enough, 1e-5), adjacency=Adjacency.ADD_REMOVE_ONE))
    run = ledger.run("planned", configuration_hash="c", plan=plan)
    other = ledger.run("other", configuration_hash="c", plan=plan[:1])
    # in any order, but nothing twice, nothing else, and no other run
    run.reserve(plan[10:], NOWHERE)
    for refused, events in ((run, plan[10:11]), (run, [event(step())]), (other, plan[:1])):
        with pytest.raises((LedgerError, AdjacencyMismatch)):
            refused.reserve(events, NOWHERE)
    run.reserve(plan[:10], NOWHERE)
    assert run.spent().grade is Grade.ENCLOSED
    assert run.spent().epsilon(1e-5).upper_float == enough
    assert ledger.verify().reservations == 2


def test_a_plan_of_samples_above_the_budget_is_refused_before_its_first_event(
    ledger: Ledger,
) -> None:
    plan = sampled_plan(20)
    least = guarantee(plan, delta=1e-5).epsilon.lower_float
    ledger.set_budget(Budget(ApproxDp(least * 0.999, 1e-5), adjacency=Adjacency.ADD_REMOVE_ONE))
    run = ledger.run("planned", configuration_hash="c", plan=plan)
    with pytest.raises(BudgetExceeded, match="epsilon"):
        run.reserve(plan[:1], NOWHERE)
    assert ledger.verify().reservations == 0


def test_samples_without_a_plan_or_after_a_release_or_in_mu_are_not_paid(ledger: Ledger) -> None:
    plan = sampled_plan(3)
    with MemoryLedger() as in_mu:
        in_mu.set_budget(Budget(Gdp(Fraction(9)), adjacency=Adjacency.ADD_REMOVE_ONE))
        with pytest.raises(UnpricedMechanism):
            in_mu.run("planned", configuration_hash="c", plan=plan).reserve(plan[:1], NOWHERE)
    ledger.set_budget(Budget(ApproxDp(9, 1e-5), adjacency=Adjacency.ADD_REMOVE_ONE))
    planned = ledger.run("planned", configuration_hash="c", plan=plan)
    free = ledger.run("free", configuration_hash="c")
    with pytest.raises(UnpricedMechanism):
        free.reserve(plan[:1], NOWHERE)
    free.reserve(plan[-1:], NOWHERE)
    with pytest.raises(UnpricedMechanism):
        planned.reserve(plan[:1], NOWHERE)


def test_a_plan_of_pure_steps_is_paid_for_by_rho() -> None:
    # epsilon²/2 each, of an epsilon of log 3
    plan = [event(RandomisedResponse(0.75), round=r) for r in (1, 2, 3)]
    for rho, kept in ((1.82, True), (1.81, False)):
        with MemoryLedger() as kept_by:
            kept_by.set_budget(Budget(Zcdp(Fraction(rho)), adjacency=Adjacency.REPLACE_ONE))
            run = kept_by.run("planned", configuration_hash="c", plan=plan)
            if kept:
                run.reserve(plan, NOWHERE)
            else:
                with pytest.raises(BudgetExceeded, match="rho"):
                    run.reserve(plan, NOWHERE)


def test_a_sum_at_a_stopping_time_is_no_guarantee() -> None:
    # (epsilon_T, delta) at a stopping time T would say E[(1 - exp(epsilon_T - L_T))+] <= delta of
    # the loss L_T; the best time to stop, by dynamic programming over coins, breaks that by far
    truth, flips, delta = 0.6, 12, 0.05
    gain = log(truth / (1 - truth))
    coins = [event(RandomisedResponse(truth))] * flips
    reading = [guarantee(coins[:t], delta=delta).epsilon.upper_float for t in range(1, flips + 1)]

    def stopped(t: int, heads: int) -> float:
        return max(0.0, 1 - exp(reading[t - 1] - (2 * heads - t) * gain))

    fixed = [
        sum(comb(t, k) * truth**k * (1 - truth) ** (t - k) * stopped(t, k) for k in range(t + 1))
        for t in range(1, flips + 1)
    ]
    assert max(fixed) <= delta * (1 + 1e-9)
    value = [stopped(flips, k) for k in range(flips + 1)]
    for t in range(flips - 1, 0, -1):
        onward = [truth * value[k + 1] + (1 - truth) * value[k] for k in range(t + 1)]
        value = [max(stopped(t, k), onward[k]) for k in range(t + 1)]
    assert truth * value[1] + (1 - truth) * value[0] > 1.5 * delta


def test_a_name_that_is_no_text_is_refused_in_every_ledger(tmp_path: Path) -> None:
    for ledger in (MemoryLedger(), SqliteLedger(tmp_path / "ledger.sqlite")):
        with pytest.raises(InvalidParameter, match="UTF-8"):
            ledger.run("\ud800", configuration_hash="x")
        ledger.run("naïve 名", configuration_hash="x")
        ledger.close()


def test_events_and_their_grade_are_of_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last event of a plan came while the others were priced: their sum was called enclosed."""
    plan = [event(step(), round=k) for k in range(1, 4)]
    ledger = MemoryLedger()
    run = ledger.run("run", configuration_hash="x", plan=plan)
    run.reserve(plan[:2], NOWHERE)

    def priced(events: Any, *, delta: Any) -> Any:
        if len(ledger.events()) == 2:
            run.reserve(plan[2:], NOWHERE)
        return guarantee(events, delta=delta)

    monkeypatch.setattr("dpledger.accounting.ledger.ledger.guarantee", priced)
    found, whole = (ledger.guarantee(delta=1e-5) for _ in range(2))
    assert (found.grade, whole.grade) == (Grade.ESTIMATE, Grade.ENCLOSED)
    assert found.epsilon.upper_float < whole.epsilon.lower_float


def test_rows_that_come_while_a_ledger_is_read_are_of_another_moment(tmp_path: Path) -> None:
    """Events were listed, and then held against a state with more of them: refused, or for ever."""
    path = tmp_path / "ledger"
    with SqliteLedger(path) as ledger, SqliteLedger(path) as other:
        writer = other.run("a", configuration_hash="x")
        writer.reserve([event(step())], NOWHERE)

        def read() -> tuple[int, ...]:
            counts = [len(ledger.events())]
            writer.reserve([event(step()), event(step())], NOWHERE)
            with pytest.raises(LedgerError, match="one moment"):
                ledger.run("b", configuration_hash="x")
            seen = ledger.spent().mu_squared
            counts += [
                len(ledger.joint_events()),
                ledger.runs()[0].events,
                len(list(ledger.rows())),
            ]
            assert seen == counts[0] * Fraction(1, 16)
            return tuple(counts)

        assert ledger.steady(read) == (1, 1, 1, 2)
        assert ledger.steady(read) == (3, 3, 3, 3)
        assert len(ledger.events()) == 5
        assert ledger.guarantee(delta=1e-5).grade is Grade.ESTIMATE


def test_no_interrupt_of_a_reservation_makes_room_in_a_budget() -> None:
    """Half of a row was in the state, and the row was taken in again: six steps paid for eight."""
    for line in count(1):
        ledger = MemoryLedger()
        ledger.set_budget(Budget(Gdp(Fraction(6, 16)), Adjacency.REPLACE_ONE))
        run = ledger.run("a", configuration_hash="x")
        run.reserve([event(step())], NOWHERE)

        def spend(run: Run = run) -> None:
            run.reserve([event(step())], NOWHERE)

        was = interrupted(spend, line=line, among="accounting")
        with suppress(BudgetExceeded):
            for _ in range(7):
                spend()
        assert len(ledger.events()) == 6
        assert ledger.spent().mu_squared == Fraction(6, 16)
        ledger.verify()
        if not was:
            assert line > 100
            return


def test_reservations_that_come_while_they_are_read_are_not_said_to_be_committed(
    ledger: Ledger,
) -> None:
    run = ledger.run("a", configuration_hash="x")
    run.reserve([event(step())], NOWHERE)
    found = ledger.reservations()
    assert not next(found).committed
    run.reserve([event(step())], NOWHERE)
    assert list(found) == []
    assert [each.committed for each in ledger.reservations()] == [False, False]


@pytest.mark.parametrize("spends", [False, True])
def test_what_a_handler_of_a_signal_does_in_between_counts_once(
    ledger: Ledger, spends: bool
) -> None:
    """Rows that it had read were taken in again: a third of a budget's steps used all of it."""
    ledger.set_budget(Budget(Gdp(100), Adjacency.REPLACE_ONE))
    run = ledger.run("a", configuration_hash="x")
    spent = refused = 0

    def spend() -> None:
        nonlocal spent, refused
        try:
            run.reserve([event(step())], NOWHERE)
            spent += 1
        except LedgerError:
            refused += 1

    def handler() -> None:
        # the row may be there before the call that wrote it is back
        assert ledger.spent().mu_squared in (Fraction(spent, 16), Fraction(spent + 1, 16))
        if spends:
            spend()

    for line in count(1, 5):
        came = handled(spend, handler, line=line, among="accounting")
        assert ledger.spent().mu_squared == Fraction(spent, 16)
        if not came:
            break
    assert line > 100
    assert ledger.verify().reservations == len(ledger.events()) == spent
    assert bool(refused) is spends


@pytest.mark.parametrize("first", quick((3,), range(1, 8)))
def test_no_interrupt_locks_a_folder_for_others(tmp_path: Path, first: int) -> None:
    """A lock whose descriptor was lost held every ledger of the folder until the process ended."""
    for line in count(first, 7):
        path = tmp_path / f"{line}.ledger"
        with SqliteLedger(path, timeout=0.5) as ledger, SqliteLedger(path, timeout=0.5) as other:
            ledger.set_budget(Budget(Gdp(Fraction(6, 16)), Adjacency.REPLACE_ONE))
            run = ledger.run("a", configuration_hash="x")
            second = other.run("b", configuration_hash="x")

            def spend(run: Run = run) -> None:
                run.reserve([event(step())], NOWHERE)

            was = interrupted(spend, line=line, among="sqlite.py")
            spend()
            second.reserve([event(step())], NOWHERE)
            with suppress(BudgetExceeded):
                for _ in range(7):
                    spend()
            assert len(ledger.events()) == len(other.events()) == 6
            other.verify()
        if not was:
            assert line > 20
            return


@pytest.mark.parametrize("name", [2, b"a", 1.5, True, ("a",), None, "", "\ud800"])
def test_a_run_is_named_by_a_text(ledger: Ledger, name: Any) -> None:
    """A number was written and read back as a text: the file was called changed, for good."""
    with pytest.raises(InvalidParameter, match="run="):
        ledger.run(name, configuration_hash="x")
    assert ledger.verify().rows == 0


@pytest.mark.parametrize("reason", [b"a", 1, None, "", " "])
def test_an_assumption_is_a_text(reason: Any) -> None:
    with pytest.raises(InvalidParameter, match="reason="):
        declared(1, reason, adjacency=Adjacency.REPLACE_ONE)
