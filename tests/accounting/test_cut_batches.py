"""Laws of Poisson batches that are cut to a largest size, and of groups of records that take turns.

1. By enumeration of samples and of what is cut: no neighbours lose more than twice the shift says
   (add/remove), nor more than Poisson batches and the probability of a cut (every relation).
2. The probability of a cut is bounded, and closely where it is small.
3. The answer is that of a peer where cuts are rare, and never below it.
4. Of delta at most half is set aside; then every cut is paid for, where a rule exists.
5. A record of a group pays for its group's turns.
"""

from fractions import Fraction
from itertools import combinations, product
from math import comb, exp
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.accounting.conftest import ADD, REPLACE, ZERO, event
from tests.accounting.proof.least_delta import Law, gaussian
from tests.parameters import slow

from dpledger.accounting import training
from dpledger.accounting.cut_batches import most_cut, twice_moved
from dpledger.accounting.guarantees import deltas_at
from dpledger.accounting.planning import UnattainableTarget
from dpledger.accounting.renyi.curves import Selection
from dpledger.accounting.training_runs import Sampling, TrainingRun
from dpledger.audits.claims.releases import MechanismKind, StatedRelease
from dpledger.mechanisms import Adjacency, GaussianStep, InvalidParameter, PoissonSampled
from dpledger.mechanisms.sensitivity import sum_of_bounded

CELLS = np.linspace(-14, 14, 1401)
FINE = np.linspace(-14, 14, 100_001)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0)
DATA = [(1.0, 1.0, 1.0), (-1.0, -1.0, -1.0), (-1.0, 1.0, 0.5), (0.0, 0.0, 0.0)]


# --- brute force ----------------------------------------------------------------------------------


def of_cut_batches(values: tuple[float, ...], rate: float, largest: int, noise: float) -> Law:
    """Masses of cells of the noisy sum: every sample, and every subset that a cut may leave."""
    chances: dict[float, float] = {}
    for drawn in product((False, True), repeat=len(values)):
        sample = [v for v, there in zip(values, drawn, strict=True) if there]
        chance = rate ** len(sample) * (1 - rate) ** (len(values) - len(sample))
        kept = list(combinations(sample, min(largest, len(sample))))
        for subset in kept:
            mean = sum(subset) / noise
            chances[mean] = chances.get(mean, 0.0) + chance / len(kept)
    return gaussian(np.array(list(chances)), np.array(list(chances.values())), CELLS)


def neighbours(others: tuple[float, ...], relation: Adjacency) -> list[tuple[Any, Any]]:
    match relation:
        case Adjacency.ADD_REMOVE_ONE:
            return [((*others, 1.0), others), (others, (*others, 1.0))]
        case Adjacency.ZERO_OUT_ONE:
            return [((*others, 1.0), (*others, 0.0)), ((*others, 0.0), (*others, 1.0))]
        case _:
            return [((*others, 1.0), (*others, -1.0)), ((*others, -1.0), (*others, 1.0))]


def poisson(relation: Adjacency, rate: float, noise: float, *, twice: bool) -> PoissonSampled:
    size = sum_of_bounded(1, relation)
    return PoissonSampled(GaussianStep(twice_moved(size) if twice else size, noise), rate)


@pytest.mark.parametrize("relation", [ADD, ZERO, REPLACE])
@pytest.mark.parametrize("largest", [1, 2, 3])
@pytest.mark.parametrize(("rate", "noise"), [(0.25, 1.0), (0.6, 2.0)])
def test_no_neighbours_lose_more_than_is_paid(relation, largest, rate, noise) -> None:
    def bound(twice: bool) -> np.ndarray:
        if relation is REPLACE:
            # the dominating pair, in fine cells
            sides = [{0.0: 1 - rate, side / noise: rate} for side in (1.0, -1.0)]
            p, q = (gaussian(np.array([*m]), np.array([*m.values()]), FINE) for m in sides)
            return np.array([np.sum(np.maximum(p - exp(e) * q, 0)) for e in EPSILONS]) + 1e-6
        listed = [event(poisson(relation, rate, noise, twice=twice))]
        return deltas_at(listed, epsilons=EPSILONS).delta

    rare = bound(False) + float(most_cut(3, Fraction(rate), largest))
    often = bound(True) if relation is ADD else np.ones(len(EPSILONS))
    seen = np.zeros(len(EPSILONS))
    for others in DATA:
        for one, two in neighbours(others, relation):
            p, q = (of_cut_batches(values, rate, largest, noise) for values in (one, two))
            lost = [float(np.sum(np.maximum(p - exp(e) * q, 0))) for e in EPSILONS]
            seen = np.maximum(seen, lost)
            assert (lost <= rare + 1e-12).all()
            assert (lost <= often + 1e-12).all()
    # a cut costs something: Poisson batches alone would not pay for it
    if relation is ADD and largest == 1:
        assert (seen > bound(False)).any()


# --- the probability of a cut ---------------------------------------------------------------------


@pytest.mark.parametrize(("others", "rate"), [(10, 0.25), (40, 0.125), (7, 0.875), (1, 0.5)])
def test_the_probability_of_a_cut_is_bounded(others, rate) -> None:
    q = Fraction(rate)
    for room in range(others + 2):
        exact = sum(
            comb(others, j) * q**j * (1 - q) ** (others - j) for j in range(room, others + 1)
        )
        assert exact <= most_cut(others, q, room) <= 1
        if room > 2 * others * q + 1:
            assert most_cut(others, q, room) <= 2 * exact


def test_nothing_is_cut_where_all_have_room_and_all_is_where_nobody_has() -> None:
    assert most_cut(9, Fraction(1), 10) == most_cut(9, Fraction(0), 1) == 0
    assert most_cut(9, Fraction(1), 9) == most_cut(9, Fraction(1, 9), 0) == 1
    # a unit of more records than a batch has room for
    assert most_cut(9, Fraction(1, 9), -1) == most_cut(9, Fraction(1, 9), -2) == 1


# --- the front door -------------------------------------------------------------------------------

RUN: dict[str, Any] = {"records": 60_000, "batch": 256, "noise_multiplier": 1.1, "delta": 1e-5}
CUT: dict[str, Any] = {**RUN, "sampling": "truncated-poisson", "adjacency": ADD, "steps": 1000}


def test_the_answer_is_that_of_a_peer_and_a_hair_above_poisson_batches() -> None:
    dp_event = pytest.importorskip("dp_accounting").dp_event
    theirs = pytest.importorskip("dp_accounting.pld").PLDAccountant(
        value_discretization_interval=1e-3
    )
    found = training.epsilon(**CUT, largest_batch=400)
    plain = training.epsilon(**{**CUT, "sampling": "poisson"})
    step = dp_event.TruncatedSubsampledGaussianDpEvent(60_000, 256 / 60_000, 400, 1.1)
    assert found.epsilon == pytest.approx(theirs.compose(step, 1000).get_epsilon(1e-5), rel=0.02)
    assert plain.epsilon < found.epsilon < 1.000001 * plain.epsilon
    assert found.delta == 1e-5
    share = 1000 * binom.sf(399, 60_000, 256 / 60_000)
    assert share <= float(found.run.cut) <= 1.1 * share
    assert any("more than 400 records, and cut" in each for each in found.guarantee.assumptions)


def test_cuts_cost_delta_in_every_run_of_which_the_best_is_published() -> None:
    """A choice between runs may look for one that was cut: E[K] as many chances of it."""
    stated: dict[str, Any] = {**CUT, "largest_batch": 360, "steps": 10, "select": Selection(100)}
    share = 100 * 10 * binom.sf(359, 60_000, 256 / 60_000)
    found = training.epsilon(**stated)
    plain = {**stated, "sampling": "poisson", "delta": 1e-5 - share, "largest_batch": None}
    assert found.epsilon >= training.epsilon(**plain).epsilon
    assert share <= float(found.run.cut) <= 1.1 * share
    # a delta that pays for cuts in one run, and not in all of them
    free = {**stated, "adjacency": REPLACE}
    del free["delta"]
    replaced = training.curve(**free, deltas=[1.9 * share, 1e-5])
    assert np.isinf(replaced.epsilon).tolist() == [True, False]
    with pytest.raises(InvalidParameter, match=r"largest_batch=360 must be larger"):
        training.epsilon(**free, delta=1.9 * share)


def test_where_cuts_are_likely_a_record_moves_the_sum_twice_as_far() -> None:
    often = training.epsilon(**CUT, largest_batch=260)
    twice = training.epsilon(**{**CUT, "sampling": "poisson", "noise_multiplier": 0.55})
    assert often.epsilon == pytest.approx(twice.epsilon, rel=1e-9)
    with pytest.raises(InvalidParameter, match=r"largest_batch=260 must be larger, under zero-out"):
        training.epsilon(**{**CUT, "adjacency": ZERO}, largest_batch=260)


def test_of_delta_at_most_half_is_set_aside() -> None:
    run = TrainingRun.of(
        sampling="truncated-poisson",
        adjacency=ADD,
        records=60_000,
        batch=256,
        steps=1000,
        largest_batch=345,
    )
    for delta in (run.cut, 1.9 * float(run.cut), 2.1 * float(run.cut), 0.5):
        priced, left = run.within(delta)
        assert priced.spared == (delta > 2 * run.cut)
        assert Fraction(left) == Fraction(delta) - (run.cut if priced.spared else 0)


def test_a_unit_of_several_records_needs_as_much_room() -> None:
    stated = {key: CUT[key] for key in ("sampling", "adjacency", "steps", "records", "batch")}
    one = TrainingRun.of(**stated, largest_batch=380)
    three = TrainingRun.of(**stated, largest_batch=382, records_per_unit=3)
    assert one.cut == three.cut > 0


def test_curves_steps_and_noise_agree_with_epsilon() -> None:
    stated = {**CUT, "largest_batch": 380}
    deltas = [1e-12, 1e-5]
    free = {key: value for key, value in stated.items() if key != "delta"}
    curve = training.curve(**free, deltas=deltas)
    assert list(curve.delta) == deltas
    for delta, found in zip(deltas, curve.epsilon, strict=True):
        again = training.epsilon(**{**stated, "delta": delta})
        assert found == pytest.approx(again.epsilon, rel=1e-9)
    replaced = training.curve(**{**free, "adjacency": REPLACE}, deltas=deltas)
    assert np.isinf(replaced.epsilon).tolist() == [True, False]
    planned = {**stated, "epsilon": 0.5}
    del planned["steps"]
    most = training.steps(**planned)
    assert most.run.steps is not None
    assert most.epsilon <= 0.5
    assert training.epsilon(**{**stated, "steps": most.run.steps + 1}).epsilon > 0.5
    del planned["noise_multiplier"]
    least = training.noise_multiplier(**planned, steps=most.run.steps)
    assert 0.499 < least.epsilon <= 0.5
    assert least.noise_multiplier == pytest.approx(1.1, rel=1e-3)


def test_steps_of_batches_that_are_often_cut_are_counted_at_twice_the_shift() -> None:
    planned = {**CUT, "largest_batch": 256, "epsilon": 5.0}
    del planned["steps"]
    found = training.steps(**planned)
    assert found.run.steps is not None
    assert found.run.steps > 100
    assert found.epsilon <= 5
    assert (
        training.epsilon(**{**CUT, "largest_batch": 256, "steps": found.run.steps + 9}).epsilon > 5
    )
    with pytest.raises(UnattainableTarget):
        training.steps(**{**planned, "epsilon": 1e-3})


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ({"sampling": "truncated-poisson"}, "largest_batch=None must be stated"),
        ({"sampling": "poisson", "largest_batch": 9}, "largest_batch=9 must be left out"),
        ({"sampling": "cyclic-poisson", "adjacency": ZERO}, "cycle=None must be stated"),
        ({"sampling": "cyclic-poisson", "cycle": 3}, "adjacency='add-remove-one' must be"),
        (
            {"sampling": "cyclic-poisson", "adjacency": ZERO, "cycle": 300},
            "a group of 200 fills a batch",
        ),
        (
            {"sampling": "cyclic-poisson", "adjacency": ZERO, "cycle": 3, "records_per_unit": 2},
            "records_per_unit=2 must be 1",
        ),
    ],
)
def test_what_is_missing_or_has_no_rule_is_said(stated, words) -> None:
    with pytest.raises(InvalidParameter, match=words):
        training.epsilon(**{**CUT, **stated})


# --- groups that take turns -----------------------------------------------------------------------


@pytest.mark.parametrize("relation", [ZERO, *slow(REPLACE)])
def test_a_record_pays_for_the_turns_of_its_group(relation) -> None:
    """Groups of 5,999 or 6,000 records: each step draws 256 out of the smallest, at most."""
    stated = {**RUN, "adjacency": relation}
    turns = training.epsilon(
        **{**stated, "records": 59_999}, sampling="cyclic-poisson", cycle=10, steps=1001
    )
    own = training.epsilon(**{**stated, "records": 5_999}, sampling="poisson", steps=101)
    assert turns.epsilon == own.epsilon
    assert turns.run.releases == 101
    epochs = training.epsilon(**stated, sampling="cyclic-poisson", cycle=10, epochs=2)
    assert (epochs.steps, epochs.run.releases) == (469, 47)


def test_a_stated_rate_is_of_a_group_and_not_beside_the_number_of_records() -> None:
    """With the number of records beside it, it was once of a group and once of all."""
    settings: dict[str, Any] = {"sampling": "cyclic-poisson", "adjacency": ZERO, "cycle": 10}
    bare = TrainingRun.of(**settings, rate=0.1, epochs=5)
    sized = TrainingRun.of(**settings, batch=10, records=1000, epochs=5)
    assert (sized.rate, sized.steps, sized.releases) == (0.1, bare.steps, bare.releases)
    for rate in (0.1, 0.01):
        with pytest.raises(InvalidParameter, match="a rate is of one group; state batch"):
            TrainingRun.of(**settings, rate=rate, epochs=5, records=1000)


def test_of_a_stated_rate_an_epoch_is_as_many_steps_as_all_groups_take() -> None:
    run = TrainingRun.of(sampling="cyclic-poisson", adjacency=ZERO, rate=0.125, cycle=4, epochs=3)
    assert (run.steps, run.releases, run.rate) == (96, 24, 0.125)


def test_of_groups_in_turn_the_joint_law_is_that_of_the_records_own_steps() -> None:
    """Brute force: two groups of one record, three steps, the second group's record is zeroed."""
    rate, noise = 0.5, 1.5
    grid = CELLS[::50]

    def law(value: float) -> Law:
        chances = np.array([1 - rate, rate])
        return gaussian(np.array([0.0, value / noise]), chances, grid)

    first, kept, gone = law(-1.0), law(1.0), law(0.0)
    p, q = (np.einsum("i,j,k->ijk", first, second, first) for second in (kept, gone))
    run = TrainingRun.of(sampling="cyclic-poisson", adjacency=ZERO, rate=rate, cycle=2, steps=3)
    assert run.releases == 2
    bound = deltas_at(run.events(noise), epsilons=EPSILONS).delta
    for epsilon, delta in zip(EPSILONS, bound, strict=True):
        assert float(np.sum(np.maximum(p - exp(epsilon) * q, 0))) <= delta


@pytest.mark.parametrize("scheme", [Sampling.TRUNCATED_POISSON, Sampling.CYCLIC_POISSON])
def test_claims_say_that_they_cannot_state_them(scheme) -> None:
    with pytest.raises(InvalidParameter, match="neither a largest batch nor a cycle"):
        StatedRelease(
            MechanismKind.GAUSSIAN, clip_norm=1.0, noise=4.0, rounds=3, sampling=scheme, rate=0.1
        )


def test_a_lower_end_is_none_above_what_cut_batches_lose() -> None:
    """Often cut, twice a shift stands above all neighbours: enumeration of those in {-1, 0, 1}
    finds 2.3006, where 6.45 was printed as the lower end."""
    stated: dict[str, Any] = {
        "noise_multiplier": 1.0, "delta": 1e-3, "steps": 1, "records": 4, "rate": 0.5,
        "sampling": "truncated-poisson", "adjacency": ADD,
    }  # fmt: skip
    often = training.epsilon(largest_batch=2, **stated).guarantee.epsilon
    assert often.lower_float <= 2.3006 < often.upper_float
    # hardly ever cut: what is kept of delta for cuts moves the lower end by as little
    rare = training.epsilon(**{**RUN, **CUT, "largest_batch": 600}).guarantee.epsilon
    assert 0 < rare.upper_float - rare.lower_float < 1e-3 * rare.upper_float
