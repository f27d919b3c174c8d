"""Laws of ADMM at the consensus.

1. Plan, run and replay emit the same events; many trials at once are as many single ones.
2. It is ADMM: agents with dual variables, linearised at the consensus, make the same models.
3. Sensitivities and totals have a closed form; a metric takes its share and no more.
4. Without noise it finds the optimum, in the model's coordinates and in centred ones.
5. A public start is where it starts, and outputs are the averages that they are called.
6. With public counts, parties count by their records.
7. Bad input is refused before anything is spent.
8. The least noise for a target is certified; under a sum it is sqrt(P) times less in the model.
"""

import itertools
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest
from scipy.optimize import root
from scipy.special import expit
from tests.parameters import slow

from dpledger.accounting.composition import composed
from dpledger.audits.curators import ReplayCurator
from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    EventList,
    GaussianStep,
    InvalidParameter,
    PlanningCurator,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
    Sensitivity,
)
from dpledger.solvers import (
    PER_PARTY,
    Centring,
    ClippedLogistic,
    ConsensusDpAdmm,
    ConsensusState,
    Logistic,
    Output,
    Summed,
    summed_shape,
)
from dpledger.solvers.consensus import shrunk

PARTIES, RECORDS, WIDTH = 3, 60, 4
CENTRING = Centring(3, share=0.1, radius=0.6, constant=0.5, intercept=0.2)
PLAIN = ConsensusDpAdmm(6, 3.0, 2.0, momentum=0.7)
SCALING = replace(CENTRING, scaling=True)
STRETCHING = replace(CENTRING, stretching=True)
UNBOUGHT = replace(CENTRING, share=0.0, radius=0.9)
SOLVERS = {
    "plain": PLAIN,
    "centred": replace(PLAIN, metric=CENTRING),
    "scaled": replace(PLAIN, metric=SCALING),
    "stretched": replace(PLAIN, metric=STRETCHING),
    "less the constant": replace(PLAIN, metric=UNBOUGHT),
}
EACH = pytest.mark.parametrize("name", SOLVERS)


def records() -> tuple[np.ndarray, np.ndarray]:
    """Rows whose last column is 1/2, off the origin, and labels that no plane separates."""
    rng = np.random.default_rng(11)
    rows = np.hstack([0.3 * rng.random((RECORDS, WIDTH - 1)) + 0.2, np.full((RECORDS, 1), 0.5)])
    labels = np.where(rng.random(RECORDS) < expit(8.0 * (rows[:, 0] - rows[:, 1])), 1.0, -1.0)
    return rows, labels


def private(party_of: np.ndarray | None = None, counts: tuple[int, ...] = ()) -> PrivateDataset:
    rows, labels = records()
    return AuditDataset(
        rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(RECORDS) % PARTIES if party_of is None else party_of,
        parties=tuple("abc"),
        party_counts=counts,
    )


def run(solver: Any, data: PrivateDataset, *, seed: int = 5, trials: int | None = None) -> Any:
    curator = SamplingCurator(EventList(), SeededSampler(seed), trials=trials, record=True)
    return solver.solve(data, curator), curator


@EACH
def test_plan_run_and_replay_emit_the_same_events(name: str) -> None:
    solver, data, plan = SOLVERS[name], private(), PlanningCurator()
    solver.solve(PrivateDataset.planned(data.shape), plan)
    state, curator = run(solver, data, trials=4)
    assert plan.events == [message.event for message in curator.transcript]
    replay = ReplayCurator(curator.transcript)
    again = solver.solve(data, replay)
    assert np.array_equal(again.model, state.model)
    assert replay.log_density.shape == (4,)


@EACH
def test_a_replay_is_a_likelihood_ratio(name: str) -> None:
    solver, data = replace(SOLVERS[name], noise_multiplier=8.0), private()
    neighbour = data.with_record(4, features=-records()[0][4])
    _, curator = run(solver, data, trials=4000)
    densities = []
    for each in (data, neighbour):
        replay = ReplayCurator(curator.transcript)
        solver.solve(each, replay)
        densities.append(replay.log_density)
    inverse = np.exp(densities[1] - densities[0])
    # its mean under the data is 1; four standard errors: false alarm below 1e-4
    assert abs(inverse.mean() - 1.0) < 4.0 * inverse.std() / np.sqrt(4000)
    # and no more is seen than is priced: the mean ratio is mu²/2 at most
    priced = composed([message.event for message in curator.transcript]).mu_squared.upper_float
    assert 0.1 * priced < 2.0 * (densities[0] - densities[1]).mean() < 1.1 * priced


@EACH
def test_many_trials_are_as_many_runs(name: str) -> None:
    solver, data = replace(SOLVERS[name], noise_multiplier=0.0), private()
    one, _ = run(solver, data)
    many, _ = run(solver, data, trials=3)
    assert many.model.shape == (3, WIDTH)
    assert np.abs(many.model - one.model).max() < 1e-12


def test_agents_with_duals_linearised_at_the_consensus_make_the_same_models() -> None:
    penalty, eta, weight, data = 0.3, 1.7, 0.05, private()
    solver = ConsensusDpAdmm(
        12, 4.0, 1.0 / (penalty + 1.0 / eta), regularisation=weight, loss=Logistic()
    )
    models: list[np.ndarray] = []
    curator = SamplingCurator(EventList(), SeededSampler(8), record=True)
    solver.solve(data, curator, observe=lambda _, state: models.append(state.model))
    # agents add the same noise to their points, in units of the point: noise·step
    duals, w = np.zeros((PARTIES, WIDTH)), np.zeros(WIDTH)
    for message, model in zip(curator.transcript, models, strict=True):
        gradients = message.content + weight * w
        points = w + (duals - gradients) / (penalty + 1.0 / eta)
        w = (points - duals / penalty).mean(axis=0)
        duals = duals - penalty * (points - w)
        assert np.abs(duals.sum(axis=0)).max() < 1e-12
        assert np.abs(w - model).max() < 1e-12


def before_lattice(sensitivity: Sensitivity) -> Fraction:
    """Return the squared bound of a released value before its rounding, on a lattice too."""
    held = sensitivity.derivation.premises[0]
    assert (sensitivity.derivation.rule, held.rule) == ("lattice", "computed")
    return held.premises[0].squared


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_metric_takes_its_share_of_the_budget(share: float) -> None:
    solver = replace(PLAIN, metric=replace(CENTRING, share=share))
    plan = PlanningCurator()
    solver.solve(PrivateDataset.planned(private().shape), plan)
    first, *rounds = (event.mechanism for event in plan.events)
    assert isinstance(first, GaussianStep)
    # rows less the constant 1/2 are no longer than the root of 3/4
    found = float(before_lattice(first.sensitivity)) ** 0.5
    assert found == pytest.approx(np.sqrt(3) / (RECORDS // PARTIES), rel=1e-12)
    for step in rounds:
        assert isinstance(step, GaussianStep)
        # 2·(1/2)·radius/n
        bound = Fraction(0.6) / (RECORDS // PARTIES)
        assert before_lattice(step.sensitivity) == bound**2
    bought = PlanningCurator()
    both = replace(solver, metric=replace(SCALING, share=share))
    both.solve(PrivateDataset.planned(private().shape), bought)
    assert [event.context.release for event in bought.events[:2]] == ["mean row", "mean squares"]
    squares = bought.events[1].mechanism
    assert isinstance(squares, GaussianStep)
    bound = 2 * Fraction(0.6) ** 2 / (RECORDS // PARTIES)
    assert before_lattice(squares.sensitivity) == bound**2
    total = composed(plan.events).mu_squared.upper_float
    assert composed(bought.events).mu_squared.upper_float == pytest.approx(total, rel=1e-9)
    rest = PLAIN.rounds / PLAIN.noise_multiplier**2
    assert total == pytest.approx(rest / (1.0 - share), rel=1e-9)


def test_what_is_known_costs_nothing() -> None:
    plan = PlanningCurator()
    SOLVERS["less the constant"].solve(PrivateDataset.planned(private().shape), plan)
    assert [event.context.release for event in plan.events] == ["gradient"] * PLAIN.rounds
    (step,) = {event.mechanism for event in plan.events}
    assert isinstance(step, GaussianStep)
    assert before_lattice(step.sensitivity) == (Fraction(0.9) / (RECORDS // PARTIES)) ** 2


def optimum(weight: float) -> np.ndarray:
    rows, labels = records()

    def gradient(w: np.ndarray) -> np.ndarray:
        return weight * w - rows.T @ (labels * expit(-labels * (rows @ w))) / RECORDS

    return np.asarray(root(gradient, np.zeros(WIDTH), tol=1e-14).x)


@pytest.mark.parametrize(
    ("metric", "weight"),
    [
        *slow((None, 0.0), (None, 0.01)),
        (replace(CENTRING, radius=1.0), 0.01),
        *slow((UNBOUGHT, 0.01)),
    ],
    ids=["plain, weight 0", "plain", "centred", "less the constant"],
)
def test_without_noise_it_finds_the_optimum(metric: Centring | None, weight: float) -> None:
    solver = ConsensusDpAdmm(
        6000, 0.0, 3.5, momentum=0.98, metric=metric, regularisation=weight, loss=Logistic()
    )
    state, _ = run(solver, private())
    assert np.abs(state.model - optimum(weight)).max() < 1e-5


@pytest.mark.parametrize("length", [0.0, 0.3, 1.0, 4.0])
def test_a_shrunk_mean_row_errs_less_than_its_noise_and_less_than_none(length: float) -> None:
    """Over 4,000 draws: the oracle inequality of Donoho and Johnstone (1995)."""
    rng, others, noise_std = np.random.default_rng(4), 30, 0.2
    mean = np.full(others, length / sqrt(others))
    drawn = mean + noise_std * rng.standard_normal((4000, others))
    error = ((shrunk(drawn, noise_std, others=others) - mean) ** 2).sum(axis=-1).mean()
    noise = others * noise_std**2
    assert error < noise
    # at most 2 noise_std² above the best factor for a known length
    assert error < 1.03 * (2.0 * noise_std**2 + length**2 * noise / (length**2 + noise))
    assert np.array_equal(shrunk(drawn, 0.0, others=others), drawn)
    assert not shrunk(np.zeros((2, others)), noise_std, others=others).any()


def test_scaled_columns_have_equal_mean_squares_where_noise_allows() -> None:
    metric = replace(SCALING, column=0)
    squares = np.array([1.0, 4e-4, 1e-2, 1e-9, -1e-5])
    scale = metric.scale(squares, 1e-6, 1.0)
    assert scale[0] == 1.0
    # a factor of one over the root, up to a common one; what noise hides counts as the noise
    assert scale[1] / scale[2] == pytest.approx(5.0)
    assert scale[3] == scale[4] == pytest.approx(min(scale[1] * 20.0, 64.0 * metric.radius))
    length = np.sqrt((scale[1:] ** 2 * np.maximum(squares[1:], 0.0)).sum())
    assert length <= metric.radius * (1 + 1e-12)


def test_rows_are_stretched_where_their_mean_leaves_little_to_differ_from_it() -> None:
    """Unit rows about a mean of length 0.68, of 0.71 that there may be: they differ by 0.19."""
    rng, width = np.random.default_rng(2), 30
    metric = Centring(width, stretching=True)
    mean = np.full(width, 0.68 / sqrt(width))
    rows = mean + rng.standard_normal((2000, width)) * 0.19 / sqrt(width)
    rows *= sqrt(0.5) / np.linalg.norm(rows, axis=1, keepdims=True)
    left = np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
    reached = sqrt(metric.radius**2 - metric.intercept**2)
    for noise_std in (0.0, 0.002, 0.02, 0.2):
        noise = noise_std * rng.standard_normal((500, width))
        seen = np.hstack([rows.mean(axis=0) + noise, np.zeros((500, 1))])
        factors = metric.stretch(seen, noise_std, 1.0)
        assert factors.shape == (500, width + 1)
        assert np.all(factors[:, -1] == 1.0)
        assert np.all(factors[:, :-1] == factors[:, :1])
        assert np.all(factors >= 1.0)
        # with the centre's error, rows are hardly ever stretched beyond the radius
        length = sqrt(left**2 + width * noise_std**2)
        ideal = max(1.0, reached / length)
        assert np.quantile(factors[:, 0], 0.9) < 1.5 * ideal
        assert np.median(factors[:, 0]) == pytest.approx(ideal, rel=0.15)
    # other units of rows change nothing
    doubled = metric.stretch(2.0 * seen, 2.0 * noise_std, 2.0)
    np.testing.assert_allclose(doubled, metric.stretch(seen, noise_std, 1.0))


def test_steps_are_longer_where_rows_differ_by_little() -> None:
    """Without noise by the radius over what rows differ by; and by 1 where they differ by more."""
    width = 30
    metric = Centring(width, stretching=True, longest=4.0)
    reached = sqrt(metric.radius**2 - metric.intercept**2)

    def longer(length: float, noise_std: float, unit: float = 1.0) -> np.ndarray:
        seen = np.append(np.full(width, unit * length / sqrt(width)), 0.0)
        stretch = metric.stretch(seen, unit * noise_std, unit)
        return metric.longer(seen, unit * noise_std, unit, stretch)

    for length in (0.0, 0.3, 0.68):  # without noise rows are stretched, or cut, to the radius
        np.testing.assert_allclose(longer(length, 0.0), [1.0], rtol=1e-6)
    # a mean row of 0.66 is seen as 0.85 under a noise of 0.54: errs by 0.42, and so rows of 0.24
    # about it are cut by sqrt(0.24² + 0.42²)
    error = 30 * 0.1**2
    seen = sqrt(0.66**2 + error)
    left, wrong = 0.5 - 0.66**2, 0.66**2 * error / (0.66**2 + error)
    by = reached / sqrt(left) / min(1.0, reached / sqrt(left + wrong))
    assert 1.5 < by < 4.0
    np.testing.assert_allclose(longer(seen, 0.1), [by], rtol=1e-9)
    np.testing.assert_allclose(longer(seen, 0.1, unit=3.0), [by], rtol=1e-9)
    assert longer(2.0, 0.3)[0] <= 4.0
    several = np.stack([np.zeros(width + 1), np.append(np.full(width, seen / sqrt(width)), 0.0)])
    found = metric.longer(several, 0.1, 1.0, metric.stretch(several, 0.1, 1.0))
    assert found.shape == (2, 1)
    assert found[0, 0] == 1.0


def test_steps_are_longer_again_where_rows_are_alike_though_noise_hides_them() -> None:
    """By h where rows do not differ, by 1 where they differ by all they can."""
    width = 30
    plain = Centring(width, stretching=True, longest=100.0)
    hidden = replace(plain, hiding=3.0)

    def ratio(length: float) -> float:
        seen = np.append(np.full(width, length / sqrt(width)), 0.0)
        found = [
            each.longer(seen, 0.0, 1.0, each.stretch(seen, 0.0, 1.0)) for each in (hidden, plain)
        ]
        return float((found[0] / found[1]).item())

    assert ratio(0.0) == pytest.approx(1.0)
    # a 25th of what they can differ by is the least that is told
    for length, part in [(0.3, 1.0 - 0.3**2 / 0.5), (0.6, 1.0 - 0.6**2 / 0.5), (0.7071, 0.04)]:
        assert ratio(length) == pytest.approx(3.0 / sqrt(1.0 + 8.0 * part), rel=1e-9)


def test_less_stands_for_the_constant_where_rows_have_an_error_in_common() -> None:
    width = 30
    metric = Centring(width, radius=0.5, intercept=0.4, least=0.1, stretching=True)
    for unit, (length, noise_std) in itertools.product(
        (1.0, 3.0), [(0.0, 0.1), (0.68, 0.0), (0.68, 0.03), (0.68, 0.06), (0.68, 0.3)]
    ):
        # |seen|² as it is expected to be
        error = width * noise_std**2
        size = unit * sqrt(length**2 + error)
        seen = np.append(np.full(width, size / sqrt(width)), 0.0)
        wrong = length**2 * error / (length**2 + error) if length > 0.0 else 0.0
        kept = max(0.4**2 - wrong, 0.1**2)
        constant, factor = metric.standing(seen, unit * noise_std, unit)
        # rows of 0.3 and this constant fill the radius, in the same proportion
        assert factor == pytest.approx(0.5 / sqrt(0.3**2 + kept), rel=1e-6)
        assert constant / unit == pytest.approx(sqrt(kept) * factor, rel=1e-6)
        assert constant**2 + (0.3 * unit * factor) ** 2 == pytest.approx((0.5 * unit) ** 2)
        always = replace(metric, least=None).standing(seen, unit * noise_std, unit)
        assert always == (pytest.approx(0.4 * unit), 1.0)


def test_what_stands_for_the_constant_is_in_every_row() -> None:
    """A run with a mean row that errs is one whose known constant is what stands for it.

    Both learn labels of one class from rows of zeros but for the constant: after one step from 0
    the model's constant is the step times the slope times what stands for it, over the constant.
    """
    rows = np.hstack([np.zeros((50, 4)), np.full((50, 1), sqrt(0.5))])
    data = PrivateDataset(rows, np.ones(50), adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)
    for intercept, least in [(0.4, None), (0.4, 0.1), (0.2, 0.1)]:
        metric = Centring(
            4, share=0.5, radius=0.5, intercept=intercept, least=least, stretching=True
        )
        solver = ConsensusDpAdmm(1, 0.0, 1.0, metric=metric)
        model = run(solver, data)[0].model
        # without noise the mean row is 0, and nothing is in common
        assert model[-1] == pytest.approx(0.5 * intercept**2 / sqrt(0.5), rel=1e-6)


def test_longer_steps_are_a_longer_step_size() -> None:
    """Of one run with noise, the models: every message of it is the same but for where it is."""
    rng = np.random.default_rng(2)
    rows = np.full((60, 6), 0.69 / sqrt(6)) + 0.02 * rng.standard_normal((60, 6))
    rows *= sqrt(0.5) / np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.hstack([rows, np.full((60, 1), sqrt(0.5))])
    labels = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    data = PrivateDataset(rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)
    metric = Centring(6, share=0.2, stretching=True)
    plain = ConsensusDpAdmm(1, 0.5, 2.0, metric=metric)
    far = replace(plain, metric=replace(metric, longest=4.0))
    ratio = [
        np.linalg.norm(run(far, data, seed=seed)[0].model)
        / np.linalg.norm(run(plain, data, seed=seed)[0].model)
        for seed in range(20)
    ]
    assert all(1.0 <= each <= 4.0 + 1e-9 for each in ratio)
    assert max(ratio) > 1.2


def test_stretched_rows_tell_more_at_the_same_price() -> None:
    """Rows that differ by little: the same events, and a model that errs less."""
    rng, width = np.random.default_rng(2), 6
    rows = rng.standard_normal((400, width)) * 0.04
    labels = np.where(rows[:, 0] + rows[:, 1] > 0.0, 1.0, -1.0)
    rows = rows + 0.68 / sqrt(width)
    rows *= sqrt(0.5) / np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.hstack([rows, np.full((400, 1), sqrt(0.5))])
    data = PrivateDataset(rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=1.0)
    found = {}
    for stretching in (False, True):
        metric = Centring(width, share=0.2, stretching=stretching)
        solver = ConsensusDpAdmm(8, 6.0, 16.0, momentum=0.6, metric=metric)
        right = [
            np.mean((rows @ run(solver, data, seed=seed)[0].model > 0.0) == (labels > 0.0))
            for seed in range(30)
        ]
        found[stretching] = np.array(right)
    gained = found[True] - found[False]
    assert gained.mean() > 0.03
    assert gained.mean() > 4.0 * gained.std() / sqrt(30)


@EACH
def test_it_starts_at_the_public_start(name: str) -> None:
    start = (0.5, -1.0, 2.0, 0.25)
    solver = replace(SOLVERS[name], rounds=1, step_size=1e-12, start=start)
    state, _ = run(solver, private())
    assert np.abs(state.model - start).max() < 1e-9
    many, _ = run(solver, private(), trials=2)
    assert np.abs(many.model - start).max() < 1e-9


@EACH
def test_outputs_are_what_they_are_called(name: str) -> None:
    states: list[ConsensusState] = []
    solver = replace(SOLVERS[name], rounds=7)
    curator = SamplingCurator(EventList(), SeededSampler(5))
    solver.solve(private(), curator, observe=lambda _, state: states.append(state))
    lasts = np.array([state.last for state in states])
    assert np.abs(states[-1].average - lasts.mean(axis=0)).max() < 1e-12
    assert np.abs(states[-1].tail - lasts[3:].mean(axis=0)).max() < 1e-12
    for output, field in (
        (Output.LAST, "last"),
        (Output.AVERAGE, "average"),
        (Output.TAIL, "tail"),
    ):
        state, _ = run(replace(solver, output=output), private())
        assert np.array_equal(state.model, getattr(states[-1], field))


@EACH
def test_with_public_counts_parties_count_by_their_records(name: str) -> None:
    party_of = np.repeat([0, 1, 2], [30, 20, 10])
    solver = replace(SOLVERS[name], noise_multiplier=0.0)
    skewed, _ = run(solver, private(party_of, (30, 20, 10)))
    pooled, _ = run(solver, private(np.arange(RECORDS) % PARTIES))
    assert np.abs(skewed.model - pooled.model).max() < 1e-9


@EACH
def test_with_public_counts_each_party_pays_for_its_own_sensitivity(name: str) -> None:
    plans = []
    for counts in ((), (30, 20, 10)):
        plan = PlanningCurator()
        shape = DataShape(tuple("abc"), 10, WIDTH, 1.0, Adjacency.REPLACE_ONE, party_counts=counts)
        SOLVERS[name].solve(PrivateDataset.planned(shape), plan)
        plans.append(plan.events)
    common, own = (composed(events).mu_squared.upper_float for events in plans)
    assert own == pytest.approx(common, rel=1e-9)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rounds": 0}, "rounds"),
        ({"noise_multiplier": -1.0}, "noise_multiplier"),
        ({"step_size": 0.0}, "step_size"),
        ({"momentum": 1.0}, "momentum"),
        ({"momentum": float("nan")}, "momentum"),
        ({"regularisation": -1.0}, "regularisation"),
        ({"output": "last"}, "output"),
        ({"start": (float("inf"),)}, "start"),
    ],
)
def test_bad_settings_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        replace(PLAIN, **changed)


@pytest.mark.parametrize(
    "changed",
    [
        {"column": -1.5},
        {"share": -0.1},
        {"share": 0.0, "scaling": True},
        {"stretching": True, "scaling": True},
        {"stretching": True, "share": 0.0},
        {"longest": 2.0},
        {"longest": 0.5, "stretching": True},
        {"hiding": 2.0},
        {"hiding": 0.5, "stretching": True},
        {"least": 0.1},
        {"least": 0.3, "stretching": True},
        {"least": 0.0, "stretching": True},
        {"share": 1.0},
        {"radius": 0.0},
        {"constant": 2.0},
        {"intercept": 0.0},
    ],
)
def test_bad_metrics_are_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(changed))):
        replace(CENTRING, **changed)


@pytest.mark.parametrize(
    "solver",
    [replace(PLAIN, start=(1.0,)), replace(PLAIN, metric=replace(CENTRING, column=WIDTH))],
    ids=["start", "column"],
)
def test_what_does_not_fit_the_data_is_refused_before_anything_is_spent(solver: Any) -> None:
    ran = EventList()
    with pytest.raises(InvalidParameter):
        solver.solve(private(), SamplingCurator(ran, SeededSampler(0)))
    assert ran.events == []


def test_a_sum_of_parties_needs_the_root_of_their_number_less_noise() -> None:
    shape = private().shape
    stds = []
    for each in (shape, summed_shape(shape)):
        plan = PlanningCurator()
        PLAIN.solve(PrivateDataset.planned(each), plan)
        step = plan.events[0].mechanism
        assert isinstance(step, GaussianStep)
        stds.append(step.noise_std / np.sqrt(len(each.parties)))
    assert stds[0] == pytest.approx(np.sqrt(PARTIES) * stds[1], rel=1e-12)
    assert "simulation" in summed_shape(shape).parties[0]


def test_shares_of_the_noise_survive_colluders() -> None:
    for colluders in range(5):
        model = Summed(colluders)
        share = model.share(1.0, parties=5)
        assert (5 - colluders) * Fraction(share) ** 2 >= 1
        assert (5 - colluders) * share**2 == pytest.approx(1.0, rel=1e-12)
        assert model.total(1.0, parties=5) == pytest.approx(share * np.sqrt(5), rel=1e-12)
        assert "simulation" in model.assumption
    assert PER_PARTY.assumption is None
    with pytest.raises(InvalidParameter, match="above colluders=5"):
        Summed(5).share(1.0, parties=5)
    for bad in (-1, 1.5, True):
        with pytest.raises(InvalidParameter, match="colluders"):
            Summed(bad)  # type: ignore[arg-type]


def test_the_default_loss_has_half_the_logistic_sensitivity() -> None:
    assert PLAIN.loss == ClippedLogistic(0.5)
    shape = private().shape
    assert 2 * shape.gradient_bound(PLAIN.loss) == shape.gradient_bound(Logistic())
