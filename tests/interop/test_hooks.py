"""Each step of somebody else's training is in the ledger before it happens."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from tests.parameters import slow

from dpledger.accounting import guarantee
from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp, Rdp
from dpledger.interop.fields import MalformedImport
from dpledger.interop.opacus import LedgerAccountant, mechanisms_of_opacus
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    PoissonSampled,
    declared,
)

ADD = Adjacency.ADD_REMOVE_ONE
STEP = Event(
    GaussianStep(declared(1, "clipped", adjacency=ADD), 10.0),
    Context((), 1, "gradient", Audience.PUBLIC),
)


def poor(epsilon=0.5):
    ledger = MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(epsilon, 1e-5), adjacency=ADD))
    return ledger


def test_a_loop_stops_before_the_step_that_the_budget_does_not_allow():
    ledger, taken = poor(), list[int]()

    def train():
        with ledger.run("loop", configuration_hash="x") as run:
            for number in range(1000):
                run.step(STEP)
                taken.append(number)

    with pytest.raises(BudgetExceeded):
        train()
    run = ledger.run("loop", configuration_hash="x")
    assert len(run.events()) == len(taken) > 0
    assert guarantee(run.events(), delta=1e-5).epsilon.upper_float <= 0.5
    assert guarantee([*run.events(), STEP], delta=1e-5).epsilon.lower_float > 0.5


def test_a_step_is_reserved_while_it_happens_and_committed_after():
    ledger = MemoryLedger()
    with ledger.run("loop", configuration_hash="x") as run:
        for taken in range(3):
            run.step(STEP)
            committed = [found.committed for found in ledger.reservations("loop")]
            assert committed == [True] * taken + [False]
    assert all(found.committed for found in ledger.reservations("loop"))


def test_a_step_that_broke_stays_open_and_counts_as_spent():
    ledger = MemoryLedger()

    def train():
        with ledger.run("loop", configuration_hash="x") as run:
            run.step(STEP)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()
    assert [found.committed for found in ledger.reservations("loop")] == [False]
    assert ledger.events("loop") == [STEP]


def test_the_row_says_that_others_drew_the_noise():
    ledger = MemoryLedger()
    with ledger.run("loop", configuration_hash="x") as run:
        run.step(STEP, sampler="torch")
    assert [found.provenance.sampler for found in ledger.reservations()] == ["torch"]


class Optimiser(SimpleNamespace):
    """What Opacus hands to a hook."""

    accumulated_iterations = 1
    noise_multiplier = 1.0
    max_grad_norm = 1.0


def engine(accountant, sample_rate=0.01, noise_multiplier=1.0, accumulated=1):
    """What Opacus makes of an accountant: the hook of an optimiser."""
    hook = accountant.get_optimizer_hook_fn(sample_rate)
    optimiser = Optimiser(noise_multiplier=noise_multiplier, accumulated_iterations=accumulated)
    return lambda: hook(optimiser)


@pytest.mark.parametrize(
    "own",
    [
        {"target_unclipped_quantile": 0.5, "noise_multiplier": (1 - (2 * 0.6) ** -2) ** -0.5},
        {"_adjusted_noise_multiplier": (1 - (2 * 0.6) ** -2) ** -0.5},
    ],
)
def test_a_clip_norm_that_adapts_to_the_records_is_refused_before_its_first_step(own):
    """Opacus' AdaClip asked for z = 1, and its ghost clipping, whose loss holds the quantile."""
    ledger = MemoryLedger()
    accountant = LedgerAccountant.of(ledger, run="ada", adjacency=ADD)()
    optimiser = Optimiser(**{"noise_multiplier": 1.0, "accumulated_iterations": 1} | own)
    with pytest.raises(InvalidParameter, match="fixed clip norm"):
        accountant.get_optimizer_hook_fn(0.01)(optimiser)
    assert ledger.events() == []
    assert len(accountant) == 0


@pytest.mark.parametrize(
    ("skipped", "split", "accumulated", "priced"),
    [(False, False, 2, 2), (True, False, 1, None), (True, True, 1, 1), (True, True, 2, None)],
)
def test_a_step_after_skipped_ones_says_what_they_were_of(skipped, split, accumulated, priced):
    """Skipped steps add their batches to the sum, and `accumulated_iterations` forgets them."""
    ledger = MemoryLedger()
    make = LedgerAccountant.of(
        ledger, run="v", adjacency=ADD, split_batches=split, independent_batches=True
    )
    hook = make().get_optimizer_hook_fn(0.01)
    optimiser = Optimiser(
        noise_multiplier=1.0, accumulated_iterations=accumulated, _is_last_step_skipped=skipped
    )
    if priced is None:
        with pytest.raises(InvalidParameter, match="without skipped steps"):
            hook(optimiser)
        assert ledger.events() == []
        return
    hook(optimiser)
    (event,) = ledger.events()
    assert getattr(event.mechanism, "batches", 1) == priced


@pytest.mark.parametrize("split", [False, True])
def test_backward_passes_of_which_nobody_says_what_they_are_of_are_refused(split):
    """Two losses of one sample clip its records twice: that is no pair of independent samples."""
    ledger = MemoryLedger()
    accountant = LedgerAccountant.of(ledger, run="two", adjacency=ADD, split_batches=split)()
    with pytest.raises(InvalidParameter, match=r"accumulated_iterations=2 .*independent_batches"):
        engine(accountant, accumulated=2)()
    assert ledger.events() == []
    assert len(accountant) == 0


@pytest.mark.parametrize("independent", [False, True])
def test_a_second_optimiser_beside_a_first_is_refused_unless_each_has_its_own_sample(independent):
    """Two steps on one Poisson sample of rate q and noise z are one of noise z / sqrt 2."""
    ledger = MemoryLedger()
    accountant = LedgerAccountant.of(
        ledger, run="gan", adjacency=ADD, independent_batches=independent
    )()
    first, second = engine(accountant), engine(accountant)
    first()
    first()
    if independent:
        second()
        assert len(ledger.events()) == 3
        return
    with pytest.raises(InvalidParameter, match="that of the steps before"):
        second()
    assert len(ledger.events()) == 2
    del first  # a training that is over
    second()
    assert len(ledger.events()) == 3


def test_optimisers_of_two_engines_are_beside_each_other_as_those_of_one():
    """Each engine asks the registry for an accountant of its own, of one run."""
    ledger = MemoryLedger()
    make = LedgerAccountant.of(ledger, run="gan", adjacency=ADD)
    first, second = engine(make()), engine(make())
    first()
    with pytest.raises(InvalidParameter, match="that of the steps before"):
        second()
    assert len(ledger.events()) == 1


def test_parts_of_one_sample_are_clipped_to_one_norm():
    """As a scheduler of Opacus changes it; the noise follows, and earlier parts do not."""
    ledger = MemoryLedger()
    accountant = LedgerAccountant.of(ledger, run="parts", adjacency=ADD, split_batches=True)()
    hook, optimiser = accountant.get_optimizer_hook_fn(0.01), Optimiser(_is_last_step_skipped=True)
    hook(optimiser)
    hook(optimiser)
    optimiser.max_grad_norm = 0.5
    with pytest.raises(InvalidParameter, match=r"max_grad_norm=0\.5 .*1\.0, as at the step"):
        hook(optimiser)
    assert len(ledger.events()) == 2


@pytest.mark.parametrize("said", [None, 10.0])
def test_ghost_clipping_is_priced_at_the_norm_that_is_said(said):
    """The module keeps the norm it was wrapped with; the noise is a multiple of the optimiser's."""
    ledger = MemoryLedger()
    accountant = LedgerAccountant.of(ledger, run="g", adjacency=ADD, ghost_clip_norm=said)()
    hook, optimiser = accountant.get_optimizer_hook_fn(0.01), Optimiser(accumulate=None)
    if said is None:
        with pytest.raises(InvalidParameter, match="ghost_clip_norm"):
            hook(optimiser)
        assert ledger.events() == []
        return
    noises = []
    for optimiser.max_grad_norm in (10.0, 0.5, 20.0):
        hook(optimiser)
        noises.append(ledger.events()[-1].mechanism.event.noise_std)
    assert noises[::2] == [1.0, 1.0]
    assert 0.05 * (1 - 1e-14) <= noises[1] <= 0.05


@pytest.mark.parametrize(
    ("norms", "norm", "expected"),
    [
        (None, 0.01, 1.0),  # records are clipped to what the noise is a multiple of
        ([3.0, 4.0], 5.0, 1.0),
        ([3.0, 4.0], 6.0, 1.0),
        ([3.0, 4.0], 0.05, 0.01),
        ([1.0, 1.0], 1.4142135381698608, 1.4142135381698608 / 2**0.5),  # its 24 bits of sqrt 2
    ],
)
def test_noise_is_over_what_records_are_clipped_to(norms, norm, expected):
    """Layers have norms of their own, which a scheduler of the common one leaves alone."""
    ledger = MemoryLedger()
    accountant = LedgerAccountant.of(ledger, run="layers", adjacency=ADD)()
    hook = accountant.get_optimizer_hook_fn(0.01)
    optimiser = Optimiser(**({} if norms is None else {"max_grad_norms": norms}))
    hook(optimiser)
    optimiser.max_grad_norm = norm
    hook(optimiser)
    noise = ledger.events()[-1].mechanism.event.noise_std
    assert expected * (1 - 1e-14) <= noise <= expected


def test_opacus_reserves_each_step_and_its_epsilon_is_the_ledgers(tmp_path: Path):
    with SqliteLedger(tmp_path / "team.sqlite") as ledger:
        accountant = LedgerAccountant.of(ledger, run="mnist", adjacency=ADD)()
        step = engine(accountant)
        assert accountant.get_epsilon(1e-5) == 0
        for _ in range(5):
            step()
        assert len(accountant) == 5
        assert accountant.history == [(1.0, 0.01, 5)]
        theirs = accountant.get_epsilon(delta=1e-5, alphas=[2.0])
        ours = ledger.run("mnist", configuration_hash="opacus:mnist").events()
        assert guarantee(ours, delta=1e-5).epsilon.upper_float == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(
    ("rate", "batches", "noise", "delta"),
    [(0.05, 4, 0.8, 1e-5), *slow((0.01, 8, 1.0, 1e-6), (0.2, 3, 2.0, 1e-5))],
)
def test_accumulated_batches_pay_for_a_record_that_is_in_several(rate, batches, noise, delta):
    """Of k independent batches a record is in M ~ Bin(k, q), and moves their sum by M.

    Against the definition: the sum's density with and without the record, on a fine grid. One step
    of rate k·q, as Opacus counts it, prints an epsilon that loses more than delta.
    """
    make = LedgerAccountant.of(MemoryLedger(), run="r", adjacency=ADD, independent_batches=True)
    accountant = make()
    engine(accountant, sample_rate=rate, noise_multiplier=noise, accumulated=batches)()
    grid = np.linspace(-12 * noise, batches + 12 * noise, 200_001)
    step = grid[1] - grid[0]
    drawn = stats.binom.pmf(np.arange(batches + 1), batches, rate)
    inside = sum(p * stats.norm.pdf(grid, m, noise) for m, p in enumerate(drawn))
    outside = stats.norm.pdf(grid, 0.0, noise)

    def lost(epsilon):
        directions = ((inside, outside), (outside, inside))
        return max(np.maximum(0.0, p - np.exp(epsilon) * q).sum() * step for p, q in directions)

    epsilon = accountant.get_epsilon(delta)
    assert lost(epsilon) <= delta < lost(epsilon * 0.998)
    joint = PoissonSampled(GaussianStep(declared(1, "clip", adjacency=ADD), noise), rate * batches)
    context = Context((), 1, "x", Audience.PUBLIC)
    counted = guarantee([Event(joint, context)], delta=delta).epsilon.upper_float
    assert lost(counted) > 2 * delta
    # what is in the history is what is in the ledger: a checkpoint of it is loaded
    accountant.load_state_dict(accountant.state_dict())
    assert len(accountant) == 1
    assert accountant.history == [(noise, rate, 1, batches)]


def test_epsilon_is_of_all_steps_in_the_ledger_loaded_or_not():
    ledger = MemoryLedger()
    make = LedgerAccountant.of(ledger, run="r", adjacency=ADD)
    for _ in range(2):
        accountant = make()  # the second process begins without a checkpoint
        for _ in range(3):
            accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    whole = guarantee(ledger.events("r"), delta=1e-5).epsilon.upper_float
    assert accountant.get_epsilon(1e-5) == pytest.approx(whole, rel=1e-9)


def test_a_step_beyond_the_budget_raises_and_is_not_in_the_history():
    ledger = MemoryLedger()
    ledger.set_budget(Budget(Rdp(8, 0.1), adjacency=ADD))
    accountant = LedgerAccountant.of(ledger, run="r", adjacency=ADD)()
    step = engine(accountant, noise_multiplier=0.5, sample_rate=0.5)
    with pytest.raises(BudgetExceeded):
        step()
    assert accountant.history == []
    assert accountant.run.events() == []


def test_a_state_is_loaded_where_the_ledger_has_its_steps():
    ledger = MemoryLedger()
    make = LedgerAccountant.of(ledger, run="r", adjacency=ADD)
    first = make()
    for _ in range(3):
        first.step(noise_multiplier=1.0, sample_rate=0.01)
    again = make()
    again.load_state_dict(first.state_dict())
    assert again.history == first.history
    assert again.mechanism() == "dpledger"
    stranger = LedgerAccountant.of(MemoryLedger(), run="r", adjacency=ADD)()
    with pytest.raises(MalformedImport, match="3 steps"):
        stranger.load_state_dict(first.state_dict())
    milder = {"history": [(9.0, 0.01, 3)], "mechanism": "dpledger"}
    with pytest.raises(MalformedImport, match="of these"):
        again.load_state_dict(milder)
    with pytest.raises(MalformedImport, match="named dpledger"):
        again.load_state_dict({"history": [], "mechanism": "rdp"})


def test_numbers_out_of_range_reserve_nothing():
    accountant = LedgerAccountant.of(MemoryLedger(), run="r", adjacency=ADD)()
    with pytest.raises(InvalidParameter):
        accountant.step(noise_multiplier=-1.0, sample_rate=0.01)
    assert accountant.run.events() == []


def test_a_history_that_is_set_is_priced_beside_what_the_ledger_holds():
    """Opacus looks for the noise of a target so: its bisection was told an epsilon of 0."""
    make = LedgerAccountant.of(MemoryLedger(), run="r", adjacency=ADD)
    asked, found = make(), []
    for noise in (20.0, 1.0, 0.5):
        asked.history = [(noise, 0.01, 100)]
        found.append(asked.get_epsilon(delta=1e-5))
        steps = mechanisms_of_opacus(asked.history, adjacency=ADD)
        alone = guarantee([Event(each, STEP.context) for each in steps], delta=1e-5)
        assert alone.epsilon.lower_float <= found[-1] <= alone.epsilon.upper_float
    assert 0.0 < found[0] < found[1] < found[2]
    assert len(asked) == 100
    asked.step(noise_multiplier=0.5, sample_rate=0.01)
    assert asked.state_dict()["history"] == [(0.5, 0.01, 1)]
    assert asked.get_epsilon(delta=1e-5) > found[2]
    with pytest.raises(MalformedImport):
        asked.history = [(0.5, "x", 1)]
    assert 0.0 < make().get_epsilon(delta=1e-5) < found[2]
