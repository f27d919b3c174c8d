"""Laws of hidden samples.

1. A scheme draws whom it says; mixing the two alternatives of a replay gives the scheme back.
2. Linear operations map both parts of a sampled value; a value of all records joins the constant.
3. Plan, run and replay emit the same sampled event; what has no rule is refused.
4. One draw serves one release, of the curator that drew it.
5. The replayed density is the mixture's, against a naive computation record by record.
"""

import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from math import exp, log

import numpy as np
import pytest
from scipy import sparse

from dpledger.audits.curators import RecordingCurator, ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    Curator,
    DataShape,
    EventList,
    FixedBatch,
    GaussianMixtureStep,
    InvalidParameter,
    PlanningCurator,
    Poisson,
    PoissonSampled,
    PrivateDataset,
    SampledWithoutReplacement,
    SamplingCurator,
    Scheme,
    SeededSampler,
    Sensitive,
    SystemSampler,
    UnprotectedReleaseError,
    concatenate,
    concatenate_disjoint,
)
from dpledger.mechanisms.rounding import exact
from dpledger.mechanisms.sensitivity import Sensitivity, float_up, root_up
from dpledger.mechanisms.subsampling import Draw, alternatives, are_tied, drawn_records
from dpledger.solvers import Logistic

ZERO, REPLACE, ADD = Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE
HOLDER = np.array([0, 1, 0, 1, 0, 0, 1, 1, 0])
LOSS = Logistic()
W, ANCHOR = np.array([[0.5, -1.0], [2.0, 0.3]]), np.array([[-1.0, 0.2], [0.0, 1.0]])


def raw() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(len(HOLDER), 2))
    rows /= np.maximum(1.0, 1.001 * np.linalg.norm(rows, axis=1, keepdims=True))
    return rows, rng.choice([-1.0, 1.0], len(HOLDER))


def private(adjacency: Adjacency, *, layout: Callable[[np.ndarray], object] = np.array):
    rows, labels = raw()
    return AuditDataset(
        layout(rows),  # type: ignore[arg-type]
        labels,
        adjacency=adjacency,
        row_bound=1.0,
        party_of=HOLDER,
        parties=("a", "b"),
        n_min=3 if adjacency is ADD else None,
    )


SCHEMES = {"poisson": (Poisson(0.3), ZERO), "batch": (FixedBatch(2), REPLACE)}


@pytest.mark.parametrize("sampler", [SeededSampler(1), SystemSampler()])
def test_uniform_numbers_are_on_the_grid_and_never_zero(sampler: SeededSampler) -> None:
    numbers = sampler.uniform((20_000,))
    assert numbers.min() > 0
    assert numbers.max() <= 1
    assert np.array_equal(numbers * 2.0**53, np.round(numbers * 2.0**53))
    # Kolmogorov and Smirnov: false alarm below 1e-6
    ranks = np.arange(1, 20_001) / 20_000
    assert np.abs(np.sort(numbers) - ranks).max() < 2.7 / np.sqrt(20_000)


def test_poisson_draws_whose_number_is_at_most_the_rate() -> None:
    uniform = np.array([0.3, np.nextafter(0.3, 1), 2.0**-53, 1.0])
    assert drawn_records(Poisson(0.3), uniform, np.zeros(4, dtype=int)).tolist() == [1, 0, 1, 0]


def test_a_fixed_batch_has_its_size_in_every_party_and_trial() -> None:
    drawn = drawn_records(FixedBatch(2), SeededSampler(0).uniform((50, len(HOLDER))), HOLDER)
    for party in (0, 1):
        assert (drawn[:, party == HOLDER].sum(axis=1) == 2).all()


def test_all_batches_are_equally_likely_and_alternatives_give_them_back() -> None:
    # exhaustive: every order of five numbers in one party, batches of two, record 3 differs
    holder, scheme, differing = np.zeros(5, dtype=np.intp), FixedBatch(2), 3
    batches: Counter[bytes] = Counter()
    mixed: Counter[tuple[bytes, bytes]] = Counter()
    ran: Counter[tuple[bytes, bytes]] = Counter()
    for order in permutations(range(1, 6)):
        uniform = np.array(order) / 5
        others = np.argsort(np.delete(uniform, differing)).tobytes()
        batch = drawn_records(scheme, uniform, holder).tobytes()
        batches[batch] += 1
        ran[others, batch] += 5
        draw = alternatives(None, scheme, uniform, holder, differing)
        assert draw._inside is not None
        assert draw._probabilities is not None
        for probability, one in zip(draw._probabilities, draw._inside, strict=True):
            mixed[others, one.tobytes()] += round(5 * probability)
    assert set(batches.values()) == {12}
    assert len(batches) == 10
    assert mixed == ran


# once: equal numbers left the batch to the order of the records
def test_batches_that_are_no_ties_are_equally_likely() -> None:
    holder = np.zeros(4, dtype=np.intp)
    batches: Counter[bytes] = Counter()
    for numbers in product((0.25, 0.5, 0.75), repeat=4):
        uniform = np.array(numbers)
        drawn = drawn_records(FixedBatch(2), uniform, holder)
        if not are_tied(uniform, drawn, holder):
            batches[drawn.tobytes()] += 1
    assert len(batches) == 6
    assert len(set(batches.values())) == 1


def test_a_curator_draws_a_tied_batch_again() -> None:
    class Tied(SeededSampler):
        asked = 0

        def uniform(self, shape: tuple[int, ...]) -> np.ndarray:
            self.asked += 1
            return np.full(shape, 0.5) if self.asked < 3 else super().uniform(shape)

    sampler = Tied(1)
    SamplingCurator(EventList(), sampler).sample(private(REPLACE), FixedBatch(2))
    assert sampler.asked == 3


def test_poisson_alternatives_change_the_differing_record_only() -> None:
    uniform = SeededSampler(3).uniform((4, len(HOLDER)))
    draw = alternatives(None, Poisson(0.3), uniform, HOLDER, 5)
    assert draw._inside is not None
    assert draw._probabilities is not None
    assert draw._inside[:, :, 5].tolist() == [[0] * 4, [1] * 4]
    kept = np.delete(draw._inside, 5, axis=-1)
    assert np.array_equal(kept[0], kept[1])
    assert np.array_equal(kept[0], np.delete(uniform <= 0.3, 5, axis=-1))
    assert draw._probabilities.tolist() == [1 - 0.3, 0.3]


@pytest.mark.parametrize(
    ("scheme", "adjacency"),
    [
        (Poisson(0.3), REPLACE),
        (FixedBatch(2), ZERO),
        (FixedBatch(2), ADD),
        (FixedBatch(4), REPLACE),
    ],
)
def test_what_no_amplification_rule_covers_is_refused(scheme: Scheme, adjacency: Adjacency) -> None:
    for curator, dataset in (
        (PlanningCurator(), PrivateDataset.planned(private(adjacency).shape)),
        (SamplingCurator(EventList(), SeededSampler(0)), private(adjacency)),
    ):
        with pytest.raises(InvalidParameter):
            curator.sample(dataset, scheme)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, float("nan")])
def test_rates_outside_the_open_interval_are_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="sampling_rate"):
        Poisson(bad)


def test_empty_batches_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="batch"):
        FixedBatch(0)


def before_lattice(sensitivity: Sensitivity) -> float:
    """Return the bound of a released part before rounding, to the lattice too, was priced."""
    assert sensitivity.derivation.rule == "lattice"
    (held,) = sensitivity.derivation.premises
    assert held.rule == "computed"
    meant, _ = held.premises
    assert meant.squared < held.squared < sensitivity.squared
    return float_up(root_up(meant.squared))


def planned_parts(
    make: Callable[[PrivateDataset, Curator], Sensitive], adjacency: Adjacency = ZERO
) -> tuple[object, float, float]:
    curator = PlanningCurator()
    made = make(PrivateDataset.planned(private(adjacency).shape), curator)
    curator.release(made, round=1, release="x", noise_std=1.0)
    match curator.events[0].mechanism:
        case GaussianMixtureStep() as step:
            return type(step), before_lattice(step.constant), before_lattice(step.sampled)
        case PoissonSampled() | SampledWithoutReplacement() as step:
            return type(step), 0.0, before_lattice(step.event.sensitivity)
    raise AssertionError(curator.events)


@pytest.mark.parametrize(
    ("adjacency", "scheme", "kind", "factor"),
    [
        (ZERO, Poisson(0.3), PoissonSampled, 1),
        (ADD, Poisson(0.3), PoissonSampled, 1),
        (REPLACE, FixedBatch(2), SampledWithoutReplacement, 2),
    ],
)
def test_sums_over_a_sample_are_sampled_gaussian_steps(
    adjacency: Adjacency, scheme: Scheme, kind: type, factor: int
) -> None:
    def gradient(dataset: PrivateDataset, curator: Curator) -> Sensitive:
        return curator.sample(dataset, scheme).sum_gradient(LOSS, W)

    def correction(dataset: PrivateDataset, curator: Curator) -> Sensitive:
        sample = curator.sample(dataset, scheme)
        return sample.sum_correction(LOSS, W, anchor=ANCHOR, radius=0.25) / 8

    def uncut(dataset: PrivateDataset, curator: Curator) -> Sensitive:
        sample = curator.sample(dataset, scheme)
        return sample.sum_correction(LOSS, W, anchor=ANCHOR, radius=9.0)

    assert planned_parts(uncut, adjacency) == (kind, 0.0, 2 * factor)
    assert planned_parts(gradient, adjacency) == (kind, 0.0, factor)
    assert planned_parts(correction, adjacency) == (kind, 0.0, factor / 32)


def test_svrg_steps_have_the_parts_of_the_paper() -> None:
    # claim PS-3: always 2G/M (M = 4, the smaller party), and up to 4G when drawn
    def step(dataset: PrivateDataset, curator: Curator) -> Sensitive:
        sample = curator.sample(dataset, FixedBatch(1))
        correction = sample.sum_gradient(LOSS, W) - sample.sum_gradient(LOSS, ANCHOR)
        return correction + dataset.mean_gradient(LOSS, ANCHOR) + np.ones(2)

    assert planned_parts(step, REPLACE) == (GaussianMixtureStep, 0.5, 4.0)


def test_linear_operations_map_both_parts() -> None:
    turn = np.array([[0.0, 3.0], [-3.0, 0.0], [0.0, 0.0]])

    def value(dataset: PrivateDataset, curator: Curator) -> Sensitive:
        sample = curator.sample(dataset, Poisson(0.3))
        both = dataset.mean_gradient(LOSS, W) - sample.sum_gradient(LOSS, W) / 2
        return turn @ (1.0 - 2.0 * both)

    kind, constant, sampled = planned_parts(value)
    assert kind is GaussianMixtureStep
    assert (constant, sampled) == pytest.approx((6 / 4, 3.0), rel=1e-12)


def test_concatenation_joins_parts_in_squares() -> None:
    def value(dataset: PrivateDataset, curator: Curator) -> Sensitive:
        sample = curator.sample(dataset, Poisson(0.3))
        mean, total = dataset.mean_gradient(LOSS, W), sample.sum_gradient(LOSS, W)
        return concatenate(concatenate(mean, total), concatenate(3 * total, 3 * mean + total))

    kind, constant, sampled = planned_parts(value)
    assert kind is GaussianMixtureStep
    assert (constant, sampled) == pytest.approx((10**0.5 / 4, 11**0.5), rel=1e-12)


def test_operations_without_a_rule_for_samples_are_refused() -> None:
    curator = PlanningCurator()
    dataset = PrivateDataset.planned(private(ZERO).shape)
    first, second = (curator.sample(dataset, Poisson(0.3)).sum_gradient(LOSS, W) for _ in range(2))
    with pytest.raises(InvalidParameter, match="another sample"):
        first + second
    with pytest.raises(UnprotectedReleaseError, match="record by record"):
        first.clipped(1.0)
    other = Sensitive(
        first.sensitivity, exact(Fraction(2**20), width=2), parties=("c",), dimension=2
    )
    with pytest.raises(UnprotectedReleaseError, match="on its own"):
        concatenate_disjoint(first, other)


def test_shifts_that_would_quantise_the_smaller_part_are_refused() -> None:
    sample = PlanningCurator().sample(PrivateDataset.planned(private(ZERO).shape), Poisson(0.3))
    total = sample.sum_gradient(LOSS, W)
    small = total + PrivateDataset.planned(private(ZERO).shape).mean_gradient(LOSS, W) * 1e-6
    shift = np.full(2, 1e11)
    total + shift
    with pytest.raises(InvalidParameter, match="rounding error"):
        small + shift


def step(dataset: PrivateDataset, curator: Curator, scheme: Scheme) -> np.ndarray:
    """Two rounds: a noisy sampled sum, then a correction beside a full mean."""
    sample = curator.sample(dataset, scheme)
    first = curator.release(sample.sum_gradient(LOSS, W), round=1, release="sum", noise_std=0.7)
    sample = curator.sample(dataset, scheme)
    correction = sample.sum_correction(LOSS, first, anchor=ANCHOR, radius=0.4)
    value = correction / 2 + dataset.mean_gradient(LOSS, ANCHOR)
    return curator.release(value, round=2, release="svrg", noise_std=0.9)


@pytest.mark.parametrize("name", SCHEMES)
def test_plan_run_and_replay_emit_equal_events(name: str) -> None:
    scheme, adjacency = SCHEMES[name]
    dataset, plan, ran = private(adjacency), PlanningCurator(), EventList()
    step(PrivateDataset.planned(dataset.shape), plan, scheme)
    run = RecordingCurator(ran, SeededSampler(5), trials=4)
    last = step(dataset, run, scheme)
    replay = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=0)
    assert np.array_equal(step(dataset, replay, scheme), last)
    assert plan.events == ran.events == [message.event for message in run.transcript]
    assert replay.log_density.shape == (4,)


@pytest.mark.parametrize("name", SCHEMES)
def test_layouts_agree(name: str) -> None:
    scheme, adjacency = SCHEMES[name]
    for trials in (None, 1, 3):
        dense, thin = (
            step(
                private(adjacency, layout=layout),
                SamplingCurator(EventList(), SeededSampler(5), trials=trials),
                scheme,
            )
            for layout in (np.array, sparse.csr_array)
        )
        assert np.allclose(dense, thin, rtol=1e-12, atol=1e-13)


def test_one_draw_serves_one_release_of_its_own_curator() -> None:
    dataset = private(ZERO)
    run = RecordingCurator(EventList(), SeededSampler(5))
    plan, planned = PlanningCurator(), PrivateDataset.planned(dataset.shape)
    run.sample(dataset, Poisson(0.3))
    replay = ReplayCurator([], uniforms=run.uniforms, differing=0)
    curators: list[tuple[Curator, PrivateDataset]] = [(run, dataset), (plan, planned)]
    for curator, data in curators:
        sample = curator.sample(data, Poisson(0.3))
        value, other = (sample.sum_gradient(LOSS, w) for w in (W, 0.0 * W))
        curator.release(value, round=1, release="x", noise_std=1.0)
        for again in (value, 2 * value, other, value + other):
            with pytest.raises(InvalidParameter, match="released before"):
                curator.release(again, round=2, release="x", noise_std=1.0)
            with pytest.raises(InvalidParameter, match="released before"):
                curator.release_unprotected(again, reason="r", round=2, release="x")
            with pytest.raises(InvalidParameter, match="another curator"):
                replay.release(again, round=1, release="x", noise_std=1.0)
    assert len(plan.events) == 1


def test_replay_of_samples_needs_uniforms_and_the_differing_record() -> None:
    dataset = private(ZERO)
    run = RecordingCurator(EventList(), SeededSampler(5))
    step(dataset, run, Poisson(0.3))
    for options, words in (
        ({}, "uniforms"),
        ({"uniforms": run.uniforms}, "differing"),
        ({"uniforms": run.uniforms, "differing": 9}, "differing"),
        ({"uniforms": run.uniforms[:1], "differing": 0}, "uniforms"),
        ({"uniforms": [np.ones(3)], "differing": 0}, "uniforms"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            step(dataset, ReplayCurator(run.transcript, **options), Poisson(0.3))  # type: ignore[arg-type]


def gradient(row: np.ndarray, label: float, w: np.ndarray) -> np.ndarray:
    return -label / (1 + exp(label * float(row @ w))) * row


def naive_density(
    rows: np.ndarray,
    labels: np.ndarray,
    messages: list[np.ndarray],
    samples: list[list[tuple[float, set[int]]]],
) -> float:
    """The log-density of `step`'s messages: a mixture over each round's (probability, sample)."""
    points = [W, messages[0]]
    total = 0.0
    for k, (message, mixture, noise) in enumerate(zip(messages, samples, (0.7, 0.9), strict=True)):
        density = 0.0
        for probability, among in mixture:
            mean = np.zeros((2, 2))
            for i, (row, label, party) in enumerate(zip(rows, labels, HOLDER, strict=True)):
                if k == 1:
                    mean[party] += gradient(row, label, ANCHOR[party]) / (party == HOLDER).sum()
                if i in among:
                    term = gradient(row, label, points[k][party])
                    if k == 1:
                        term -= gradient(row, label, ANCHOR[party])
                        length = max(np.sqrt(term @ term), 1e-9)
                        term *= min(1.0, 0.4 / length) / 2
                    mean[party] += term
            density += probability * exp(-((message - mean) ** 2).sum() / (2 * noise**2))
        total += log(density)
    return total


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("differing", [0, 3])
def test_replayed_log_ratio_is_the_mixtures(name: str, differing: int) -> None:
    scheme, adjacency = SCHEMES[name]
    dataset = private(adjacency)
    rows, labels = raw()
    other_rows = rows.copy()
    other_rows[differing] = 0.0 if name == "poisson" else [0.6, -0.7]
    neighbour = dataset.with_record(differing, features=other_rows[differing])
    run = RecordingCurator(EventList(), SeededSampler(8), trials=3)
    step(dataset, run, scheme)
    ratio = np.zeros(3)
    for sign, world in ((1, dataset), (-1, neighbour)):
        replay = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=differing)
        step(world, replay, scheme)
        ratio += sign * replay.log_density
    for trial in range(3):
        messages = [message.content[trial] for message in run.transcript]
        samples = [known(scheme, uniform[trial], differing) for uniform in run.uniforms]
        expected = naive_density(rows, labels, messages, samples) - naive_density(
            other_rows, labels, messages, samples
        )
        assert ratio[trial] == pytest.approx(expected, rel=1e-9, abs=1e-11)
    assert np.abs(ratio).min() > 1e-3


@pytest.mark.parametrize("name", SCHEMES)
def test_runs_follow_the_density_that_replays_compute(name: str) -> None:
    # under D the mean of the density ratio D'/D is 1, if the sampling is what the mixture says
    scheme, adjacency = SCHEMES[name]
    dataset, trials = private(adjacency), 40_000
    row = np.zeros(2) if name == "poisson" else np.array([0.6, -0.7])
    neighbour = dataset.with_record(3, features=row)
    run = RecordingCurator(EventList(), SeededSampler(21), trials=trials)
    step(dataset, run, scheme)
    ratio = np.zeros(trials)
    for sign, world in ((1, neighbour), (-1, dataset)):
        replay = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=3)
        step(world, replay, scheme)
        ratio += sign * replay.log_density
    terms = np.exp(ratio)
    assert terms.std() > 0.1
    # false alarm below 1e-6
    assert abs(terms.mean() - 1) < 5 * terms.std() / np.sqrt(trials)


def known(scheme: Scheme, uniform: np.ndarray, differing: int) -> list[tuple[float, set[int]]]:
    """What the adversary thinks of a sample, record by record."""
    others = [i for i in range(len(HOLDER)) if i != differing]
    if isinstance(scheme, Poisson):
        drawn = {i for i in others if uniform[i] <= scheme.sampling_rate}
        return [(1 - scheme.sampling_rate, drawn), (scheme.sampling_rate, drawn | {differing})]
    out, drawn = set[int](), {differing}
    for party in (0, 1):
        order = sorted((i for i in others if HOLDER[i] == party), key=lambda i: uniform[i])
        out |= set(order[:2])
        drawn |= set(order[: 1 if HOLDER[differing] == party else 2])
    rate = 2 / (HOLDER[differing] == HOLDER).sum()
    return [(1 - rate, out), (rate, drawn)]


def test_a_release_without_noise_replays_to_the_mass_of_the_matching_alternatives() -> None:
    dataset = private(ZERO)

    def exact(data: PrivateDataset, curator: Curator) -> None:
        sample = curator.sample(data, Poisson(0.3))
        curator.release(sample.sum_gradient(LOSS, W), round=1, release="x", noise_std=0.0)

    run = RecordingCurator(EventList(), SeededSampler(8), trials=200)
    exact(dataset, run)
    drawn = run.uniforms[0][:, 2] <= 0.3
    replay = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=2)
    exact(dataset, replay)
    assert np.allclose(replay.log_density, np.where(drawn, log(0.3), log(0.7)))
    other = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=2)
    exact(dataset.with_record(2, features=np.zeros(2)), other)
    assert np.allclose(other.log_density, np.where(drawn, -np.inf, 0.0), atol=1e-12)


def test_samples_stay_hidden() -> None:
    sample = SamplingCurator(EventList(), SeededSampler(1)).sample(private(ZERO), Poisson(0.3))
    assert "0.3" in repr(sample)
    assert "inside" not in repr(sample)
    counted = PrivateDataset(
        np.full((123, 1), 0.1), np.ones(123), adjacency=ADD, row_bound=1.0, n_min=50
    )
    sample = SamplingCurator(EventList(), SeededSampler(1)).sample(counted, Poisson(0.3))
    found = sample.sum_gradient(LOSS, np.zeros(1))
    assert found.sampled_part is not None
    for shown in (counted, sample, found, found.sampled_part.scheme):
        assert "123" not in repr(shown)
    for look in (lambda: list(sample), lambda: pickle.dumps(sample)):  # type: ignore[call-overload]
        with pytest.raises(UnprotectedReleaseError):
            look()


def test_batch_rates_are_never_rounded_down() -> None:
    for count in range(2, 60):
        curator = PlanningCurator()
        shape = DataShape(("a",), count, 2, 1.0, REPLACE)
        dataset = PrivateDataset.planned(shape)
        sample = curator.sample(dataset, FixedBatch(1))
        value = sample.sum_gradient(LOSS, W[0]) + dataset.mean_gradient(LOSS, W[0])
        curator.release(value, round=1, release="x", noise_std=1.0)
        mechanism = curator.events[0].mechanism
        assert isinstance(mechanism, GaussianMixtureStep)
        assert 0 <= Fraction(mechanism.rate) - Fraction(1, count) < Fraction(1, 2**53)


@dataclass(frozen=True)
class Loaded(Poisson):
    """A scheme of one's own that would draw everybody a million times."""

    def drawn_records(self, uniform: np.ndarray, holder: np.ndarray) -> np.ndarray:
        return np.full_like(uniform, 1e6)


def test_schemes_of_ones_own_are_refused() -> None:
    for curator in (SamplingCurator(EventList(), SeededSampler(0)), PlanningCurator()):
        with pytest.raises(InvalidParameter, match="scheme"):
            curator.sample(private(ZERO), Loaded(0.01))


def test_draws_are_made_by_curators_and_show_nothing() -> None:
    with pytest.raises(UnprotectedReleaseError, match="curator"):
        Draw(None, np.ones(9))
    curator = SamplingCurator(EventList(), SeededSampler(0))
    part = curator.sample(private(ZERO), Poisson(0.3)).sum_gradient(LOSS, W).sampled_part
    assert part is not None
    shown = [name for name in dir(part.draw) if not name.startswith("_")]
    assert shown == ["scheme", "use"]
    for name in ("_inside", "_scheme", "_released", "inside"):
        with pytest.raises(AttributeError):
            setattr(part.draw, name, np.ones(9))
    with pytest.raises(ValueError, match="read-only"):
        part.draw._inside[...] = 1e6
