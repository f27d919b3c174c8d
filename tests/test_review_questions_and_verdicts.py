"""Laws that a reviewer tried against prices of samples, the court, and files of other tools.

Truths are lower bounds that share nothing with the engine: all batches of small data sets are
listed, outputs are put into cells, and the best test of the cells is taken.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.special import ndtr

import dpledger as dp
from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.notions import Rdp
from dpledger.audits.claims.own import (
    Averaging,
    MechanismKind,
    PromisedEpsilon,
    Sampling,
    StatedRelease,
    judged,
)
from dpledger.cli.app import main
from dpledger.data.strict import ConfigurationError
from dpledger.interop.files import read_bytes
from dpledger.interop.matrix_mechanism import participation_sensitivity
from dpledger.mechanisms import Adjacency, Audience, Context, Event, Norm, declared
from dpledger.mechanisms.errors import DpledgerError
from dpledger.mechanisms.events import (
    AccumulatedPoisson,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    RandomisedResponse,
    SampledWithoutReplacement,
    SampledWithReplacement,
)
from dpledger.mechanisms.sensitivity import root_up, sum_of_bounded
from dpledger.runs.claims import judge_claim_file

Floats = NDArray[np.float64]
Mixture = Sequence[tuple[float, float]]
"""Probabilities, each with the mean that normal noise is added to."""

ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE
CONTEXT = Context((), 1, "release", Audience.PUBLIC)


def cells_of(mixture: Mixture, noise: float, edges: Floats) -> Floats:
    """Return the probabilities of the cells between edges, and of both ends."""
    found = np.zeros(edges.size + 1)
    for weight, mean in mixture:
        z = (edges - mean) / noise
        above, below = ndtr(-z), ndtr(z)
        inner = np.where(z[1:] > 0, above[:-1] - above[1:], below[1:] - below[:-1])
        found += weight * np.concatenate([[below[0]], inner, [above[-1]]])
    return found


def needed(first: Floats, second: Floats, delta: float) -> float:
    """Return the epsilon that two laws of cells need at delta, in either order."""

    def excess(epsilon: float) -> float:
        grown = math.exp(epsilon)
        one, other = np.maximum(first - grown * second, 0), np.maximum(second - grown * first, 0)
        return float(max(one.sum(), other.sum())) - delta

    top = 1.0
    while excess(top) > 0:
        top *= 2
    return float(brentq(excess, 0.0, top)) if excess(0.0) > 0 else 0.0


def least(first: Mixture, second: Mixture, noise: float, delta: float) -> float:
    """Return a lower bound on epsilon of two mixtures under normal noise."""
    means = [mean for _, mean in (*first, *second)]
    edges = np.linspace(min(means) - 12 * noise, max(means) + 12 * noise, 20_001)
    return needed(cells_of(first, noise, edges), cells_of(second, noise, edges), delta)


def gathered(drawn: Iterator[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return a mixture with equal means added up."""
    found: dict[float, float] = {}
    for weight, mean in drawn:
        place = round(mean, 12)
        found[place] = found.get(place, 0.0) + weight
    return [(weight, mean) for mean, weight in found.items()]


def fixed(values: Sequence[float], batch: int) -> list[tuple[float, float]]:
    """Return the sums of all batches without replacement."""
    chance = 1 / math.comb(len(values), batch)
    return gathered((chance, sum(drawn)) for drawn in combinations(values, batch))


def with_replacement(values: Sequence[float], batch: int) -> list[tuple[float, float]]:
    """Return the sums of all batches with replacement."""
    chance = len(values) ** -batch
    return gathered((chance, sum(drawn)) for drawn in product(values, repeat=batch))


def poisson(
    values: Sequence[float], rate: float, largest: int | None = None
) -> list[tuple[float, float]]:
    """Return the sums of all Poisson samples, those of too many records cut at random."""

    def drawn() -> Iterator[tuple[float, float]]:
        for who in product((False, True), repeat=len(values)):
            kept = [value for value, there in zip(values, who, strict=True) if there]
            chance = rate ** len(kept) * (1 - rate) ** (len(values) - len(kept))
            if largest is None or len(kept) <= largest:
                yield chance, sum(kept)
                continue
            ways = list(combinations(kept, largest))
            yield from ((chance / len(ways), sum(way)) for way in ways)

    return gathered(drawn())


TABLES: list[tuple[list[float], int]] = [
    ([1, 1, -1], 2),
    ([1, -1, -1, -1], 1),
    ([-1, 1, 1, 1], 3),
    ([0.3, 1.0, -1.0], 2),
]
"""The differing record first, and how many are in a batch."""


@pytest.mark.parametrize(("values", "batch"), TABLES)
@pytest.mark.parametrize("noise", [0.5, 2.0])
@pytest.mark.parametrize("group", [1, 2])
def test_batches_of_a_fixed_size_cost_no_less_than_small_data_sets_show(
    values: list[float], batch: int, noise: float, group: int
) -> None:
    """With and without replacement, one record or two replaced by their opposites."""
    others = [-value for value in values[:group]] + values[group:]
    stated = {"records": len(values), "batch": batch, "steps": 1, "records_per_unit": group}
    for scheme, sums in (("fixed-batch", fixed), ("with-replacement", with_replacement)):
        found = dp.epsilon(
            noise_multiplier=noise,
            delta=1e-3,
            sampling=scheme,
            adjacency="replace-one",
            **stated,  # type: ignore[arg-type]
        )
        shown = least(sums(values, batch), sums(others, batch), noise, 1e-3)
        assert shown <= found.epsilon * (1 + 1e-9)
        if group == 1 and batch == 1 and scheme == "fixed-batch":
            assert found.epsilon <= shown * (1 + 1e-4)  # met: nothing is given away


@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("noise", [0.5, 2.0])
@pytest.mark.parametrize("relation", ["add-remove-one", "zero-out-one", "replace-one"])
def test_poisson_samples_cost_just_what_a_record_alone_shows(
    rate: float, noise: float, relation: str
) -> None:
    """A record by itself, there and not, or replaced by its opposite: neither more nor less."""
    found = dp.epsilon(
        noise_multiplier=noise,
        delta=1e-4,
        sampling="poisson",
        adjacency=relation,
        rate=rate,
        steps=1,
    )
    other = [-1.0] if relation == "replace-one" else [0.0]
    shown = least(poisson([1.0], rate), poisson(other, rate), noise, 1e-4)
    assert shown <= found.epsilon * (1 + 1e-9)
    assert found.epsilon <= shown * (1 + 1e-4) + 1e-9


@pytest.mark.parametrize("largest", [1, 2, 3])
@pytest.mark.parametrize("values", [[1.0, -1.0, -1.0, -1.0], [-1.0, 1.0, 1.0, 0.5]])
def test_cut_samples_cost_no_less_than_all_samples_of_four_records_show(
    largest: int, values: list[float]
) -> None:
    """A record more takes another's place where a sample is cut: up to twice its shift."""
    found = dp.epsilon(
        noise_multiplier=1.0,
        delta=1e-2,
        sampling="truncated-poisson",
        adjacency="add-remove-one",
        records=4,
        batch=2,
        largest_batch=largest,
        steps=1,
    )
    first, second = (poisson(each, 0.5, largest) for each in (values, values[1:]))
    assert least(first, second, 1.0, 1e-2) <= found.epsilon


def generating(x: Floats, gamma: float, shape: float) -> Floats:
    """Return E[x^K] of a truncated negative binomial number of runs K."""
    if shape == 0:
        return np.asarray(np.log1p(-(1 - gamma) * x) / math.log(gamma))
    return np.asarray(((1 - (1 - gamma) * x) ** -shape - 1) / (gamma**-shape - 1))


@pytest.mark.parametrize("shape", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("mean", [3.0, 50.0])
@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_the_best_of_several_runs_costs_no_less_than_the_law_of_the_winner(
    shape: float, mean: float, rate: float
) -> None:
    """Each run is one noisy number, the largest of all is published: its law in closed form."""

    def off(t: float) -> float:
        mass = t if shape == 0 else -math.expm1(-shape * t) / shape
        return math.expm1(t) / mass - mean

    gamma = math.exp(-brentq(off, 1e-12, 60.0))
    edges = np.linspace(-13.0, 13.0, 20_001)

    def winner(mixture: Mixture) -> Floats:
        reached = np.clip(np.cumsum(cells_of(mixture, 1.0, edges)), 0.0, 1.0)
        reached[-1] = 1.0
        return np.diff(generating(np.concatenate([[0.0], reached]), gamma, shape))

    found = dp.epsilon(
        noise_multiplier=1.0,
        delta=1e-5,
        adjacency="add-remove-one",
        sampling="poisson",
        rate=rate,
        steps=1,
        select=dp.Selection(mean, shape),
    ).epsilon
    for sign in (1.0, -1.0):
        there, gone = winner([(1 - rate, 0.0), (rate, sign)]), winner([(1.0, 0.0)])
        assert needed(there, gone, 1e-5) <= found


def divergence(first: Mixture, second: Mixture, noise: float, order: float) -> float:
    """Return the Rényi divergence of two mixtures under normal noise, by the trapezoidal rule."""
    means = [mean for _, mean in (*first, *second)]
    x = np.linspace(min(means) - 40 * noise, max(means) + 40 * noise, 100_001)

    def log_density(mixture: Mixture) -> Floats:
        terms = [math.log(w) - (x - m) ** 2 / (2 * noise**2) for w, m in mixture if w > 0]
        return np.asarray(np.logaddexp.reduce(terms, axis=0))

    total = order * log_density(first) + (1 - order) * log_density(second)
    area = np.trapezoid(np.exp(total - total.max()), x) / (noise * math.sqrt(2 * math.pi))
    return float((total.max() + math.log(area)) / (order - 1))


def on_samples(noise: float) -> Iterator[tuple[Mechanism, Adjacency, Mixture, Mixture]]:
    """Yield samples of one Gaussian step, each with two laws of neighbours that it may have."""
    rate, here = 0.3, [(1.0, 0.0)]
    there = [(1 - rate, 0.0), (rate, 1.0)]
    one = GaussianStep(declared(1, "test", adjacency=ADD), noise)
    yield PoissonSampled(one, rate), ADD, there, here
    twice = [(0.49, 0.0), (0.42, 1.0), (0.09, 2.0)]
    yield AccumulatedPoisson(one, rate, 2), ADD, twice, here
    both = GaussianStep(sum_of_bounded(1, REPLACE), noise)
    yield PoissonSampled(both, rate), REPLACE, there, [(1 - rate, 0.0), (rate, -1.0)]
    moved = GaussianStep(declared(1, "test", adjacency=REPLACE), noise)
    quarter = [(0.75, 0.0), (0.25, 1.0)]
    yield SampledWithoutReplacement(moved, 1, 4), REPLACE, quarter, here
    copies = [(9 / 16, 0.0), (6 / 16, 1.0), (1 / 16, 2.0)]
    yield SampledWithReplacement(moved, 2, 4), REPLACE, copies, here


@pytest.mark.parametrize("noise", [0.7, 3.0])
@pytest.mark.parametrize("order", [Fraction(3, 2), Fraction(2), Fraction(8), Fraction(40)])
def test_a_budget_of_one_order_counts_no_less_than_the_divergence(
    noise: float, order: Fraction
) -> None:
    """Of every kind of sample, in both orders of the neighbours."""
    for mechanism, relation, first, second in on_samples(noise):
        meter = Budget(Rdp(order, Fraction(10**9)), adjacency=relation).meter()
        counted = float(meter.spent_after([Event(mechanism, CONTEXT)]))
        true = max(
            divergence(*pair, noise, float(order)) for pair in ((first, second), (second, first))
        )
        assert true <= counted * (1 + 1e-6) + 1e-12


def test_rho_of_noise_and_answers_is_no_less_than_any_divergence_over_its_order() -> None:
    """Laplace noise on whole numbers, discrete normal noise, and answers, told truly or seldom."""
    whole = np.arange(-40, 43)

    def law(masses: Floats) -> Floats:
        return np.asarray(masses / masses.sum())

    def answers(truth: float, kinds: int, told: int) -> Floats:
        return np.array([truth if k == told else (1 - truth) / (kinds - 1) for k in range(kinds)])

    l1 = declared(2, "test", adjacency=REPLACE, norm=Norm.L1)
    l2 = declared(2, "test", adjacency=REPLACE)
    cases: list[tuple[Mechanism, Floats, Floats]] = [
        (
            DiscreteLaplaceStep(l1, 1.5),
            law(np.exp(-np.abs(whole) / 1.5)),
            law(np.exp(-np.abs(whole - 2) / 1.5)),
        ),
        (
            DiscreteGaussianStep(l2, 1.5),
            law(np.exp(-(whole**2) / 4.5)),
            law(np.exp(-((whole - 2) ** 2) / 4.5)),
        ),
        (RandomisedResponse(0.75, 2), answers(0.75, 2, 0), answers(0.75, 2, 1)),
        (RandomisedResponse(0.05, 5), answers(0.05, 5, 0), answers(0.05, 5, 1)),
        (RandomisedResponse(0.9, 5), answers(0.9, 5, 0), answers(0.9, 5, 1)),
    ]
    for mechanism, first, second in cases:
        rho = guarantee([Event(mechanism, CONTEXT)], delta=1e-6).rho.upper_float
        for order in (1.01, 1.1, 2.0, 5.0, 30.0):
            terms = order * np.log(first) + (1 - order) * np.log(second)
            total = terms.max() + math.log(np.exp(terms - terms.max()).sum())
            assert total / (order - 1) / order <= rho * (1 + 1e-9)


def drawn_means(
    values: Sequence[float], scheme: Sampling, averaging: Averaging, divisor: int | None
) -> list[tuple[float, float]]:
    """Return what a release of three records adds noise to, of all samples by a scheme."""
    n = len(values)

    def samples() -> Iterator[tuple[float, tuple[int, ...]]]:
        if scheme is Sampling.NONE:
            yield 1.0, tuple(range(n))
        elif scheme is Sampling.POISSON:
            for who in product((0, 1), repeat=n):
                yield 0.5**n, tuple(k for k in range(n) if who[k])
        elif scheme is Sampling.FIXED_BATCH:
            for batch in combinations(range(n), 2):
                yield 1 / math.comb(n, 2), batch
        else:
            for places in product(range(n), repeat=2):
                yield n**-2.0, places

    def told(drawn: tuple[int, ...]) -> float:
        total = sum(values[k] for k in drawn)
        if averaging is Averaging.OWN:
            return total / len(drawn) if drawn else 0.0
        return total / (divisor or 1)

    return gathered((chance, told(drawn)) for chance, drawn in samples())


@pytest.mark.parametrize("averaging", list(Averaging))
@pytest.mark.parametrize(
    ("scheme", "relation"),
    [
        (Sampling.NONE, REPLACE),
        (Sampling.NONE, ZERO),
        (Sampling.POISSON, ADD),
        (Sampling.POISSON, ZERO),
        (Sampling.POISSON, REPLACE),
        (Sampling.FIXED_BATCH, REPLACE),
        (Sampling.WITH_REPLACEMENT, REPLACE),
    ],
)
def test_the_court_prices_clipped_sums_and_means_no_lower_than_three_records_show(
    averaging: Averaging, scheme: Sampling, relation: Adjacency
) -> None:
    """Sums, means over a public number and over their own, of all samples of three records."""
    own = {Sampling.NONE: 3, Sampling.POISSON: 1}.get(scheme, 2)
    divisor = {Averaging.SUM: None, Averaging.PUBLIC: 2, Averaging.OWN: own}[averaging]
    stated: dict[str, Any] = {}
    if scheme is Sampling.POISSON:
        stated = {"rate": 0.5}
    elif scheme is not Sampling.NONE:
        stated = {"batch": 2, "records": 3}
    release = StatedRelease(
        MechanismKind.GAUSSIAN,
        clip_norm=1.0,
        noise=0.8,
        rounds=1,
        sampling=scheme,
        averaging=averaging,
        divisor=divisor,
        **stated,
    )
    found = judged([release], PromisedEpsilon(1.0, 1e-3), adjacency=relation)
    assert found.true is not None
    for others in ([-1.0, -1.0], [1.0, 0.5], [0.0, 0.0]):
        neighbour = {ADD: others, ZERO: [0.0, *others], REPLACE: [-1.0, *others]}[relation]
        first = drawn_means([1.0, *others], scheme, averaging, divisor)
        second = drawn_means(neighbour, scheme, averaging, divisor)
        assert least(first, second, 0.8, 1e-3) <= found.true.upper_float * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_no_pattern_of_steps_moves_a_matrix_further_than_its_sensitivity(seed: int) -> None:
    """All patterns of steps, all signs of contributions, matrices with negative entries too."""
    rng = np.random.default_rng(seed)
    matrix = np.tril(rng.normal(size=(6, 6)))
    for separation, most in ((1, None), (1, 2), (2, None), (3, 1), (2, 2)):
        said = participation_sensitivity(matrix, separation=separation, participations=most)
        for count in range(1, min(6, most or 6) + 1):
            for steps in combinations(range(6), count):
                if any(b - a < separation for a, b in pairwise(steps)):
                    continue
                for signs in product((1.0, -1.0), repeat=count):
                    moved = np.linalg.norm(matrix[:, list(steps)] @ np.array(signs))
                    assert moved <= said


THEIRS = {"module_name": "dp_accounting.dp_event"}
NOISY = {**THEIRS, "class_name": "GaussianDpEvent", "noise_multiplier": 1.0}
PURE = {**THEIRS, "class_name": "EpsilonDeltaDpEvent", "epsilon": 0.5, "delta": 0.0}
FILES: list[tuple[str, dict[str, Any]]] = [
    ("dp-event", NOISY),
    ("dp-event", {**THEIRS, "class_name": "LaplaceDpEvent", "noise_multiplier": 2.0}),
    (
        "dp-event",
        {
            **THEIRS,
            "class_name": "PoissonSampledDpEvent",
            "sampling_probability": 0.1,
            "event": NOISY,
        },
    ),
    (
        "dp-event",
        {
            **THEIRS,
            "class_name": "SampledWithReplacementDpEvent",
            "source_dataset_size": 100,
            "sample_size": 10,
            "event": PURE,
        },
    ),
    ("dp-event", {**THEIRS, "class_name": "SelfComposedDpEvent", "event": PURE, "count": 3}),
    ("opacus", {"history": [[1.0, 0.01, 10]], "mechanism": "rdp"}),
    (
        "tf-privacy",
        {
            "number_of_examples": 1000,
            "batch_size": 10,
            "num_epochs": 2,
            "noise_multiplier": 1.1,
            "sampling": "poisson",
        },
    ),
    (
        "jax-privacy",
        {
            "noise_multipliers": 1.0,
            "num_samples": 1000,
            "batch_size": 10,
            "num_updates": 50,
            "sampling_method": "POISSON",
            "cycle_length": 2,
        },
    ),
    ("matrix", {"matrix": [[1.0, 0.0], [0.5, 1.0]], "noise_multiplier": 2.0, "min_separation": 1}),
    ("diffprivlib", {"spent_budget": [[0.5, 0.0]]}),
]
ODD: list[Any] = [
    *(None, True, "x", [], [1.0, 2.0], {}, {"a": 1}, -5, 0, 10**400, 5e-324, 1e308, [[1]]),
]


@pytest.mark.parametrize(("kind", "document"), FILES)
def test_odd_values_in_files_of_other_tools_are_read_or_refused_in_a_sentence(
    kind: str, document: dict[str, Any]
) -> None:
    """Every field in turn holds something else; nothing but the library's own errors comes out."""
    for field in document:
        for odd in ODD:
            content = json.dumps({**document, field: odd}).encode()
            for relation in (ADD, ZERO, REPLACE):
                try:
                    read_bytes(kind, content, "their.json", adjacency=relation)
                except DpledgerError as refused:
                    assert str(refused).strip()  # noqa: PT017


CLAIM = """
adjacency = "zero-out-one"
unit = "a record"
tuning = "none"
preprocessing = "none"
[promise]
{promise}
[[releases]]
mechanism = "gaussian"
sensitivity = {sensitivity}
noise_std = {noise}
rounds = 100
sampling = "none"
"""


@pytest.mark.parametrize(
    "wrong",
    [
        {"promise": "epsilon = nan\ndelta = 1e-5"},
        {"promise": "epsilon = 2.0\ndelta = nan"},
        {"promise": "rho = nan"},
        {"promise": "mu = -1.0"},
        {"sensitivity": "inf"},
        {"sensitivity": "true"},
        {"noise": "nan"},
        {"noise": "[1.0, 2.0]"},
    ],
)
def test_no_number_that_is_none_gets_into_the_court(wrong: dict[str, str], tmp_path: Path) -> None:
    """NaN, infinity, truth values, negative numbers and lists of another length are refused."""
    stated = {"promise": "epsilon = 2.0\ndelta = 1e-5", "sensitivity": "1.0", "noise": "20.0"}
    file = tmp_path / "claim.toml"
    file.write_text(CLAIM.format(**stated))
    assert judge_claim_file(file).finding.verdict.value == "holds"
    file.write_text(CLAIM.format(**{**stated, **wrong}))
    with pytest.raises(ConfigurationError):
        judge_claim_file(file)


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with its whole name."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            found = command.get_command(context, each)
            assert found is not None
            yield from commands(found, f"{name} {each}")
    else:
        yield name, command


def test_every_command_takes_json() -> None:
    """As README says."""
    listed = dict(commands(main, "dpledger"))
    assert len(listed) > 25
    lacking = [
        name
        for name, each in listed.items()
        if "--json" not in {option for param in each.params for option in param.opts}
    ]
    assert lacking == []


def test_laplace_noise_on_samples_costs_no_less_than_its_cells_show() -> None:
    """Poisson samples under add-remove, batches under replace-one, in both orders."""
    edges = np.linspace(-40.0, 42.0, 40_001)

    def laplace(mixture: Mixture) -> Floats:
        found = np.zeros(edges.size + 1)
        for weight, mean in mixture:
            z = edges - mean
            below = np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.abs(z)))
            found += weight * np.diff(np.concatenate([[0.0], below, [1.0]]))
        return found

    one = LaplaceStep(declared(2, "test", adjacency=ADD, norm=Norm.L1), 1.0)
    moved = LaplaceStep(declared(2, "test", adjacency=REPLACE, norm=Norm.L1), 1.0)
    sampled = laplace([(0.75, 0.0), (0.25, 2.0)])
    none = laplace([(1.0, 0.0)])
    for mechanism in (PoissonSampled(one, 0.25), SampledWithoutReplacement(moved, 1, 4)):
        for delta in (1e-2, 1e-4):
            found = guarantee([Event(mechanism, CONTEXT)], delta=delta).epsilon.upper_float
            assert needed(sampled, none, delta) <= found * (1 + 1e-9)


def squares(total: int, largest: int) -> Iterator[list[int]]:
    """Yield every way to write a whole number as a sum of squares of falling numbers."""
    if total == 0:
        yield []
        return
    for first in range(min(largest, math.isqrt(total)), 0, -1):
        yield from ([first, *rest] for rest in squares(total - first**2, first))


@pytest.mark.parametrize("squared", [2, 4, 5, 8])
@pytest.mark.parametrize("noise", [0.8, 2.0])
def test_discrete_normal_noise_costs_no_less_than_any_vector_of_that_length_shows(
    squared: int, noise: float
) -> None:
    """One coordinate far, or many by one: losses of all vectors, added up on a grid from below."""
    grid, delta, reach = 1e-3, 1e-4, int(12 * noise) + 4
    whole = np.arange(-reach, reach + 1)
    total = np.exp(-(whole**2) / (2 * noise**2)).sum()

    def law(mean: int) -> Floats:
        return np.asarray(np.exp(-((whole - mean) ** 2) / (2 * noise**2)) / total)

    def shown(vector: list[int]) -> float:
        masses, lowest = np.ones(1), 0
        for moved in vector:
            losses = np.floor(np.log(law(moved) / law(0)) / grid).astype(int)
            one = np.zeros(losses.max() - losses.min() + 1)
            np.add.at(one, losses - losses.min(), law(moved))
            masses, lowest = np.maximum(fftconvolve(masses, one), 0.0), lowest + losses.min()
        at = (np.arange(masses.size) + lowest) * grid

        def excess(epsilon: float) -> float:
            above = at > epsilon
            return float((masses[above] * -np.expm1(epsilon - at[above])).sum()) - delta

        top = 1.0
        while excess(top) > 0:
            top *= 2
        return float(brentq(excess, 0.0, top))

    size = declared(root_up(Fraction(squared)), "test", adjacency=REPLACE)
    found = guarantee([Event(DiscreteGaussianStep(size, noise), CONTEXT)], delta=delta)
    most = max(shown(vector) for vector in squares(squared, math.isqrt(squared)))
    assert most <= found.epsilon.upper_float * (1 + 1e-9)


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("fits", [1, 4])
def test_the_court_adds_up_parties_epochs_groups_and_fits_as_a_closed_form_does(
    group: int, fits: int
) -> None:
    """A record with the dearer party, in the noisiest batches that an epoch may have for it."""
    noises = (1.5, 3.0, 3.0, 1.5, 3.0)
    releases = [
        StatedRelease(MechanismKind.GAUSSIAN, clip_norm=0.5, noise=2.0, rounds=3),
        StatedRelease(MechanismKind.GAUSSIAN, clip_norm=1.0, noise=5.0, rounds=4, party="a"),
        StatedRelease(MechanismKind.GAUSSIAN, clip_norm=2.0, noise=5.0, rounds=2, party="b"),
        StatedRelease(
            MechanismKind.GAUSSIAN,
            clip_norm=1.0,
            noise=noises,
            rounds=5,
            sampling=Sampling.SHUFFLED,
            batch=3,
            records=10,
        ),
    ]
    # in replace-one a record moves two clip norms; three batches an epoch, the rest is dropped
    common = 3 * Fraction(1, 2) ** 2 + 2 * Fraction(4, 3) ** 2
    dearest = max(4 * Fraction(2, 5) ** 2, 2 * Fraction(4, 5) ** 2)
    exact = epsilon_from_delta(mu_squared=(common + dearest) * group**2 * fits, delta=1e-5)
    promise = PromisedEpsilon(1.0, 1e-5)
    found = judged(releases, promise, adjacency=REPLACE, group=group, fits=fits).true
    assert found is not None
    assert found.upper_float >= exact.lower_float * (1 - 1e-12)
    assert found.upper_float <= exact.upper_float * (1 + 1e-9)
