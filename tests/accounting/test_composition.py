"""What records pay.

1. Gaussian steps add mu² exactly, on whatever scale.
2. A record pays for its own party and for what any record pays; the worst record counts.
3. The running total equals the sum over records written out.
4. Nothing that cannot be priced is priced; nothing that was not protected is finite.
"""

import pickle
from fractions import Fraction
from math import inf

import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from dpledger.accounting.composition import Composition, UnpricedMechanism, composed
from dpledger.accounting.numbers.enclosure import Enclosure
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
    Parties,
    PoissonSampled,
    Repeated,
    UnprotectedRelease,
    declared,
)

UNIT = declared(1, "unit", adjacency=Adjacency.REPLACE_ONE)


def event(mechanism: Mechanism, *parties: str) -> Event:
    return Event(mechanism, Context(parties, 1, "test", Audience.SERVER))


def step(noise_std: float, value: float = 1.0) -> GaussianStep:
    return GaussianStep(declared(value, "unit", adjacency=Adjacency.REPLACE_ONE), noise_std)


def cost(mechanism: GaussianStep) -> Fraction:
    return mechanism.sensitivity.squared / Fraction(mechanism.noise_std) ** 2


def contains(enclosure: Enclosure, exact: Fraction) -> bool:
    def fraction(end: arb) -> Fraction:
        mantissa, exponent = end.man_exp()
        return int(mantissa) * Fraction(2) ** int(exponent)

    return fraction(enclosure.lower) <= exact <= fraction(enclosure.upper)


positive = st.floats(min_value=1e-12, max_value=1e12)
steps = st.builds(step, positive, positive)


@given(st.lists(steps, max_size=20))
def test_mu_squared_encloses_the_exact_sum(mechanisms: list[GaussianStep]) -> None:
    found = composed(event(m) for m in mechanisms)
    exact = sum((cost(m) for m in mechanisms), Fraction(0))
    assert contains(found.mu_squared, exact)
    assert found.mu_squared.relative_width < 1e-90 or exact < Fraction(1, 10**40)
    assert 0 <= found.spent - exact <= len(mechanisms) * Fraction(1, 2**512)


names = st.sampled_from("abcde")
programs = st.lists(
    st.tuples(steps, st.lists(names, unique=True, max_size=5), st.integers(1, 3)), max_size=12
)


@given(programs)
def test_the_worst_record_of_all_parties_counts(
    program: list[tuple[GaussianStep, list[str], int]],
) -> None:
    events = [event(Repeated(m, times), *parties) for m, parties, times in program]
    composition = composed(events)

    def of_record(party: str) -> Fraction:
        paid = (cost(m) * t for m, parties, t in program if not parties or party in parties)
        return sum(paid, Fraction(0))

    assert contains(composition.mu_squared, max(of_record(p) for p in "abcde-"))
    for parties, account in composition.accounts:
        for party in parties or ("-",):
            assert contains(account.mu_squared, of_record(party))


@given(programs, programs)
def test_looking_ahead_tells_what_adding_does(
    before: list[tuple[GaussianStep, list[str], int]],
    after: list[tuple[GaussianStep, list[str], int]],
) -> None:
    composition = composed(event(Repeated(m, t), *p) for m, p, t in before)
    ahead = [event(Repeated(m, t), *p) for m, p, t in after]
    spent, expected = composition.spent, composition.spent_after(ahead)
    assert composition.spent == spent
    composition.extend(ahead)
    assert composition.spent == expected
    assert contains(composition.mu_squared, Fraction(expected))


def test_named_parts_are_paid_by_their_own_party() -> None:
    split = Parties((("a", (step(1.0), step(1.0))), ("b", (step(0.5),))))
    found = composed([event(split), event(step(1.0), "a", "b"), event(step(1.0))])
    paid = {name: account.mu_squared for names, account in found.accounts for name in names}
    assert paid["a"] == 4
    assert paid["b"] == 6
    assert found.mu_squared == 6


def test_repeating_a_split_mechanism_repeats_every_part() -> None:
    split = Parties((("a", (Repeated(step(1.0), 2),)), ("b", (step(1.0),))))
    assert composed([event(Repeated(split, 3))]).mu_squared == 6


@pytest.mark.parametrize(
    "wrong",
    [
        event(step(1.0), "a", "a"),
        event(Parties((("a", (step(1.0),)),)), "a"),
        event(Parties((("a", (Parties((("b", (step(1.0),)),)),)),))),
    ],
    ids=["party named twice", "parties named by both", "parties of parties"],
)
def test_a_record_lives_with_one_party(wrong: Event) -> None:
    composition = composed([event(step(1.0))])
    with pytest.raises(InvalidParameter):
        composition.add(wrong)
    assert composition.mu_squared == 1


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (step(0.0), inf),
        (UnprotectedRelease("the initial dual"), inf),
        (step(0.0, 0.0), 0),
        (step(1.0, 0.0), 0),
        (LaplaceStep(declared(0, "constant", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1), 1), 0),
        (LaplaceStep(declared(1, "unit", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1), 0), inf),
    ],
)
def test_no_noise_costs_everything_and_no_sensitivity_nothing(
    mechanism: Mechanism, expected: float
) -> None:
    assert composed([event(mechanism)]).mu_squared == expected
    assert Composition().spent_after([event(mechanism)]) == expected


def test_one_unprotected_party_makes_the_total_infinite() -> None:
    found = composed([event(step(1.0), "a", "b"), event(UnprotectedRelease("raw"), "b")])
    assert found.mu_squared == inf
    assert found.spent == inf
    assert {names: tuple(a.reasons) for names, a in found.accounts}[("b",)] == ("raw",)


def test_mechanisms_without_a_price_are_named() -> None:
    sampled = PoissonSampled(
        GaussianStep(declared(1, "unit", adjacency=Adjacency.ZERO_OUT_ONE), 1.0), 0.5
    )
    composition = composed([event(Repeated(sampled, 4)), event(sampled)])
    with pytest.raises(UnpricedMechanism, match="PoissonSampled") as caught:
        _ = composition.mu_squared
    with pytest.raises(UnpricedMechanism):
        Composition().spent_after([event(sampled)])
    assert dict(composition.accounts[0][1].others) == {sampled: 5}
    assert pickle.loads(pickle.dumps(caught.value)).mechanism == sampled


def test_relations_are_not_mixed() -> None:
    other = GaussianStep(declared(1, "unit", adjacency=Adjacency.ZERO_OUT_ONE), 1.0)
    composition = composed([event(step(1.0))])
    for attempt in (composition.add, lambda e: composition.spent_after([e])):
        with pytest.raises(AdjacencyMismatch):
            attempt(event(other))
    assert composition.mu_squared == 1
    assert composition.adjacency is Adjacency.REPLACE_ONE


def test_an_event_costs_the_same_work_late_as_early(calls) -> None:
    everyone = tuple(f"agent-{i}" for i in range(100))
    events = [event(GaussianStep(UNIT, 1.0 + i / 7919), *everyone) for i in range(4000)]
    composition = Composition()

    def add(part: list[Event]) -> None:
        for e in part:
            composition.spent_after((e,))
            composition.add(e)

    counts = [calls(lambda k=k: add(events[k : k + 500])) for k in range(0, 4000, 500)]
    assert counts[-1] <= 1.01 * counts[1]
