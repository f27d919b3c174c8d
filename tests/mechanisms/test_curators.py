"""Curators: reserve, draw, commit; one solver read in three ways; the replay's likelihood ratio."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dpledger.accounting.guarantees import guarantee
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Curator,
    Event,
    EventList,
    GaussianStep,
    InvalidParameter,
    Message,
    PlanningCurator,
    PrivateDataset,
    Provenance,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SystemSampler,
    UnprotectedRelease,
    UnprotectedReleaseError,
    declared,
)
from dpledger.mechanisms.curators import noise_std_for
from dpledger.mechanisms.lattice import on_lattice
from dpledger.mechanisms.protocols import FloatArray
from dpledger.mechanisms.rounding import exact
from dpledger.solvers.losses import Logistic

REPLACE = Adjacency.REPLACE_ONE
PARTIES = ("a", "b")
ROUNDS = 3


def dataset() -> PrivateDataset:
    rng = np.random.default_rng(0)
    return AuditDataset(
        rng.standard_normal((6, 3)),
        np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0]),
        adjacency=REPLACE,
        row_bound=1.0,
        party_of=np.array([0, 1, 0, 1, 0, 1]),
        parties=PARTIES,
    )


def descend(data: PrivateDataset, curator: Curator) -> np.ndarray:
    """Return the last iterate of a small solver: gradient descent on noisy gradients."""
    w = np.zeros((2, 3))
    for k in range(1, ROUNDS + 1):
        gradient = 0.5 * data.mean_gradient(Logistic(), w) + w
        message = curator.release(gradient, round=k, release="gradient", noise_multiplier=2.0)
        w = w - message
    return w


def run(*, trials: int | None = None, seed: int = 1) -> tuple[EventList, SamplingCurator]:
    sink = EventList()
    curator = SamplingCurator(sink, SeededSampler(seed), trials=trials, record=True)
    descend(dataset(), curator)
    return sink, curator


class Spy:
    """A sink and a sampler that note the order of what happens to them."""

    def __init__(self, *, refuse: bool = False) -> None:
        self.calls: list[str] = []
        self.provenance = Provenance("spy", 7)
        self.refuse = refuse
        self.seen: list[tuple[Sequence[Event], Provenance]] = []

    def reserve(self, events: Sequence[Event], provenance: Provenance) -> int:
        self.calls.append("reserve")
        self.seen.append((events, provenance))
        if self.refuse:
            raise RuntimeError("budget")
        return 42

    def commit(self, token: int, message: FloatArray, /) -> None:
        assert token == 42
        self.calls.append("commit")

    def gaussian(self, value: np.ndarray, noise_std: float) -> np.ndarray:
        self.calls.append("draw")
        return np.array(value)


def sensitive(value: Any = None, *, bound: float = 0.5) -> Sensitive:
    block = np.arange(6.0).reshape(2, 3) if value is None else value
    unit = declared(bound, "an example", adjacency=REPLACE)
    return Sensitive(
        unit,
        exact(Fraction(2**20), width=3),
        parties=PARTIES,
        dimension=3,
        compute=lambda: block,
        auditable=True,
    )


def release(curator: Curator, what: Sensitive, **noise: Any) -> np.ndarray:
    return curator.release(what, round=1, release="x", **noise)


# Reserve, draw, commit ---------------------------------------------------------------------------


def test_the_event_is_reserved_before_the_draw_and_committed_after() -> None:
    spy = Spy()
    release(SamplingCurator(spy, spy), sensitive(), noise_std=3.0)
    assert spy.calls == ["reserve", "draw", "commit"]
    ((events, provenance),) = spy.seen
    priced = on_lattice(sensitive().sensitivity, sensitive().rounding, scale=3.0, rows=2)
    assert [e.mechanism for e in events] == [GaussianStep(priced, 3.0)]
    assert events[0].context.parties == PARTIES
    assert events[0].context.audience is Audience.SERVER
    assert provenance == spy.provenance


def test_a_refused_reservation_draws_nothing() -> None:
    spy = Spy(refuse=True)
    curator = SamplingCurator(spy, spy, record=True)
    with pytest.raises(RuntimeError, match="budget"):
        release(curator, sensitive(), noise_std=3.0)
    assert spy.calls == ["reserve"]
    assert curator.transcript == []


@pytest.mark.parametrize(
    "noise",
    [
        {},
        {"noise_std": 1.0, "noise_multiplier": 1.0},
        {"noise_std": -1.0},
        {"noise_std": np.nan},
        {"noise_std": np.inf},
        {"noise_multiplier": -1.0},
        {"noise_multiplier": np.nan},
        {"noise_multiplier": np.inf},
        {"noise_multiplier": 1e308},
        {"noise_std": 1e308},
        {"noise_std": 1e-320},
    ],
    ids=str,
)
def test_impossible_noise_is_refused_before_anything_is_reserved(noise: dict[str, float]) -> None:
    spy = Spy()
    with pytest.raises(InvalidParameter, match="noise"):
        release(SamplingCurator(spy, spy), sensitive(bound=10.0), **noise)
    assert spy.calls == []


@pytest.mark.parametrize("noise", [0.0, -0.0])
def test_no_noise_costs_infinitely_much_whatever_its_sign(noise: float) -> None:
    for argument in ("noise_std", "noise_multiplier"):
        sink = EventList()
        release(SamplingCurator(sink, SystemSampler()), sensitive(), **{argument: noise})
        assert guarantee(sink.events, delta=1e-5).epsilon.upper == np.inf


def test_private_noise_is_refused() -> None:
    with pytest.raises(UnprotectedReleaseError):
        release(SamplingCurator(EventList(), SeededSampler(0)), sensitive(), noise_std=sensitive())


@pytest.mark.parametrize(("lead", "trials"), [((4,), None), ((4,), 3), ((1, 4), 4)])
def test_a_value_of_other_trials_is_refused_before_anything_is_reserved(
    lead: tuple[int, ...], trials: int | None
) -> None:
    spy = Spy()
    with pytest.raises(InvalidParameter, match="trials"):
        release(
            SamplingCurator(spy, spy, trials=trials),
            sensitive(np.ones((*lead, 2, 3))),
            noise_std=1.0,
        )
    assert spy.calls == []


def test_a_plan_has_no_value_to_sample_and_a_value_is_no_plan() -> None:
    planned = Sensitive(
        sensitive().sensitivity, exact(Fraction(2**20), width=3), parties=PARTIES, dimension=3
    )
    spy = Spy()
    for curator in (SamplingCurator(spy, spy), ReplayCurator([])):
        with pytest.raises(InvalidParameter, match="have a value"):
            release(curator, planned, noise_std=1.0)
    with pytest.raises(InvalidParameter, match="planned"):
        release(PlanningCurator(), sensitive(), noise_std=1.0)
    assert spy.calls == []


@pytest.mark.parametrize("trials", [0, -1, 1.5, True])
def test_trials_are_counted_from_one(trials: Any) -> None:
    with pytest.raises(InvalidParameter, match="trials"):
        SamplingCurator(EventList(), SeededSampler(0), trials=trials)


def test_a_real_release_happens_once() -> None:
    # B trials would release B times what one event prices
    with pytest.raises(InvalidParameter, match="trials"):
        SamplingCurator(EventList(), SystemSampler(), trials=2)


@given(st.floats(0, 1e6), st.fractions(min_value=0, max_value=10**6, max_denominator=10**6))
def test_noise_std_never_falls_below_the_multiplier(multiplier: float, square: Fraction) -> None:
    bound = declared(square, "an example", adjacency=REPLACE)
    noise_std = noise_std_for(bound, multiplier)
    assert Fraction(noise_std) >= Fraction(multiplier) * bound.root
    assert (
        noise_std == 0 or Fraction(np.nextafter(noise_std, 0)) < Fraction(multiplier) * bound.root
    )


# Messages ----------------------------------------------------------------------------------------


def test_a_message_is_the_value_plus_scaled_noise_of_the_seed() -> None:
    content = release(
        SamplingCurator(EventList(), SeededSampler(5), trials=7), sensitive(), noise_std=2.5
    )
    noise = SeededSampler(5).gaussian(np.zeros((7, 2, 3)), 1.0)
    np.testing.assert_allclose(content, np.arange(6.0).reshape(2, 3) + 2.5 * noise, atol=1e-12)


def test_every_trial_and_party_has_its_own_noise() -> None:
    content = release(
        SamplingCurator(EventList(), SeededSampler(5), trials=50),
        sensitive(np.zeros((2, 3))),
        noise_std=1.0,
    )
    assert np.unique(content).size == content.size


def test_messages_are_read_only_in_all_three_readings() -> None:
    planned = Sensitive(
        sensitive().sensitivity, exact(Fraction(2**20), width=3), parties=PARTIES, dimension=3
    )
    sampling = SamplingCurator(EventList(), SeededSampler(0), record=True)
    release(sampling, sensitive(), noise_std=1.0)
    sampling.release_unprotected(sensitive(), reason="a test", round=2, release="x")
    for message in (
        *(m.content for m in sampling.transcript),
        release(PlanningCurator(), planned, noise_std=1.0),
        release(ReplayCurator(sampling.transcript), sensitive(), noise_std=1.0),
    ):
        with pytest.raises(ValueError, match="read-only"):
            message += 1.0


def test_an_exact_release_is_no_window_on_the_value() -> None:
    value = sensitive()
    content = release(SamplingCurator(EventList(), SeededSampler(0)), value, noise_std=0.0)
    assert not np.shares_memory(content, value._value)
    np.testing.assert_array_equal(content, value._value)


# One solver, three readings ----------------------------------------------------------------------


@pytest.mark.parametrize("trials", [None, 1, 4])
def test_plan_run_and_replay_agree(trials: int | None) -> None:
    data = dataset()
    plan = PlanningCurator()
    descend(PrivateDataset.planned(data.shape), plan)
    sink, curator = run(trials=trials)
    assert plan.events == sink.events == [m.event for m in curator.transcript]
    assert [e.context.round for e in plan.events] == [1, 2, 3]
    replay = ReplayCurator(curator.transcript)
    last = descend(data, replay)
    np.testing.assert_array_equal(last, -sum(m.content for m in curator.transcript))
    assert replay.log_density.shape == (() if trials is None else (trials,))


def test_the_seed_reproduces_every_message_bit_for_bit() -> None:
    first, again, other = run()[1], run()[1], run(seed=2)[1]
    for one, two, three in zip(first.transcript, again.transcript, other.transcript, strict=True):
        np.testing.assert_array_equal(one.content, two.content)
        assert not np.array_equal(one.content, three.content)


def test_the_replays_difference_is_the_log_likelihood_ratio() -> None:
    data = dataset()
    other = data.with_record(0, features=np.array([-3.0, 1.0, 2.0]), label=-1.0)
    _, curator = run(trials=5)

    def density(world: PrivateDataset) -> np.ndarray:
        """Return the transcript's exact log-density, by SciPy, one entry a trial."""
        total = np.zeros(5)
        for b in range(5):
            w = np.zeros((2, 3))
            for message in curator.transcript:
                mean = 0.5 * world.mean_gradient(Logistic(), w)._value + w
                std = message.event.mechanism.noise_std
                total[b] += stats.norm.logpdf(message.content[b], mean, std).sum()
                w = w - message.content[b]
        return total

    ratios = []
    for world in (data, other):
        replay = ReplayCurator(curator.transcript)
        descend(world, replay)
        ratios.append(replay.log_density)
    np.testing.assert_allclose(
        ratios[0] - ratios[1], density(data) - density(other), rtol=1e-9, atol=1e-11
    )


def test_an_unprotected_release_replays_to_certainty() -> None:
    sampling = SamplingCurator(EventList(), SeededSampler(0), trials=3, record=True)
    options = {"reason": "a test", "round": 1, "release": "x"}
    content = sampling.release_unprotected(sensitive(), **options)
    np.testing.assert_array_equal(content, np.broadcast_to(sensitive()._value, (3, 2, 3)))
    assert sampling.transcript[0].event.mechanism == UnprotectedRelease("a test")
    moved = sensitive()._value + np.array([0.0, 0.0, 1e-12])
    for value, expected in ((None, 0.0), (moved, -np.inf)):
        replay = ReplayCurator(sampling.transcript)
        replay.release_unprotected(sensitive(value), **options)
        np.testing.assert_array_equal(replay.log_density, np.full(3, expected))


def test_a_plan_of_an_unprotected_release_answers_with_its_stand_in() -> None:
    planned = Sensitive(
        sensitive().sensitivity, exact(Fraction(2**20), width=3), parties=PARTIES, dimension=3
    )
    options: dict[str, Any] = {"reason": "a test", "round": 1, "release": "x"}
    plan = PlanningCurator()
    np.testing.assert_array_equal(plan.release_unprotected(planned, **options), np.zeros((2, 3)))
    guess = plan.release_unprotected(planned, stand_in=np.ones(3), **options)
    np.testing.assert_array_equal(guess, np.ones((2, 3)))
    assert plan.events[0] == plan.events[1]


@pytest.mark.parametrize(
    "fault", ["noise", "sensitivity", "round", "release", "audience", "kind", "length"]
)
def test_another_event_list_is_refused(fault: str) -> None:
    sampling = SamplingCurator(EventList(), SeededSampler(0), record=True)
    release(sampling, sensitive(), noise_std=1.0)
    replay = ReplayCurator(sampling.transcript)
    options: dict[str, Any] = {"round": 1, "release": "x", "noise_std": 1.0}
    what = sensitive(bound=0.25) if fault == "sensitivity" else sensitive()
    changes: dict[str, dict[str, Any]] = {
        "noise": {"noise_std": 2.0},
        "round": {"round": 2},
        "release": {"release": "y"},
        "audience": {"audience": Audience.PUBLIC},
    }
    if fault == "length":
        replay.release(what, **options)
    again = replay.release
    if fault == "kind":
        again, options = (
            replay.release_unprotected,
            {"reason": "a test", "round": 1, "release": "x"},
        )
    with pytest.raises(InvalidParameter, match=r"event 0|transcript"):
        again(what, **(options | changes.get(fault, {})))
    if fault != "length":
        with pytest.raises(InvalidParameter, match=r"transcript"):
            _ = replay.log_density


def test_a_replay_that_leaves_messages_unread_has_no_density() -> None:
    sampling = SamplingCurator(EventList(), SeededSampler(0), record=True)
    for k in (1, 2):
        sampling.release(sensitive(), round=k, release="x", noise_std=1.0)
    replay = ReplayCurator(sampling.transcript)
    replay.release(sensitive(), round=1, release="x", noise_std=1.0)
    with pytest.raises(InvalidParameter, match=r"transcript=2 must be of length 1"):
        _ = replay.log_density
    replay.release(sensitive(), round=2, release="x", noise_std=1.0)
    assert replay.log_density < 0.0


def test_a_transcript_is_kept_only_on_request() -> None:
    curator = SamplingCurator(EventList(), SeededSampler(0))
    release(curator, sensitive(), noise_std=1.0)
    assert curator.transcript == []
    assert Message._fields == ("event", "content")
