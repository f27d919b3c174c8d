"""Laws that a reviewer tried against prices, certificates, verdicts and other tools' files.

What is printed is held against integrals and sums that share nothing with the accountants: laws of
outputs in small cells, of which every loss is rounded down.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.special import ndtr
from scipy.stats import binom, norm

import dpledger as dp
from dpledger.accounting import MemoryLedger
from dpledger.accounting.composition import UnpricedMechanism
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger.ledger import Ledger
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.proved import NotProved, proved
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import (
    Averaging,
    MechanismKind,
    PromisedEpsilon,
    Sampling,
    StatedRelease,
    judged,
)
from dpledger.audits.crosschecks import Status, crosscheck
from dpledger.audits.falsifier import ReplacedRecord
from dpledger.audits.foreign_code import Recorder, audit_noise
from dpledger.audits.noise_tests import Residual, noise_tests
from dpledger.interop import Deployment, read, registry_entry
from dpledger.mechanisms import Adjacency, declared
from dpledger.mechanisms.events import (
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
)
from dpledger.mechanisms.sensitivity import Norm, sum_of_bounded

Floats = NDArray[np.float64]
ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE
COLUMN = Adjacency.REPLACE_FEATURE_COLUMN


def event(mechanism: Mechanism, *parties: str) -> Event:
    """Return a mechanism's event, of these parties or of none."""
    return Event(mechanism, Context(parties, 1, "x", Audience.PUBLIC))


def gaussian(noise: float, relation: Adjacency = ADD, reason: str = "t") -> GaussianStep:
    """Return a Gaussian step of sensitivity 1."""
    return GaussianStep(declared(1, reason, adjacency=relation), noise)


def excess(log_p: Floats, log_q: Floats, cell: float, epsilon: float) -> float:
    """Return the hockey-stick divergence of two densities on a grid at e^epsilon."""
    return (
        float(np.maximum(np.exp(log_p) - np.exp(np.minimum(epsilon + log_q, 700.0)), 0).sum())
        * cell
    )


# --- prices -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "rate", "noise", "relation"),
    [
        (20, 0.05, 50.0, "add-remove-one"),
        (64, 0.01, 5.0, "zero-out-one"),
        (50, 0.2, 20.0, "replace-one"),
        (500, 0.002, 3.0, "add-remove-one"),
    ],
)
def test_no_large_unit_in_a_sample_tells_more_than_is_printed(
    unit: int, rate: float, noise: float, relation: str
) -> None:
    """A unit of up to 500 records, of which as many move the sum as are drawn: mixtures of normal
    laws, both ways round, enclosed and fast."""
    said: dict[str, Any] = {
        "rate": rate,
        "steps": 1,
        "sampling": "poisson",
        "adjacency": relation,
        "records_per_unit": unit,
    }
    drawn = np.arange(unit + 1)
    weights = binom.logpmf(drawn, unit, rate)
    both = -1.0 if relation == "replace-one" else 0.0
    grid = np.linspace(both * unit - 9 * noise, unit + 9 * noise, 40_001)
    with_unit, without = np.full(grid.size, -np.inf), np.full(grid.size, -np.inf)
    for count, weight in zip(drawn[weights > -60], weights[weights > -60], strict=True):
        with_unit = np.logaddexp(with_unit, weight + norm.logpdf(grid, count, noise))
        without = np.logaddexp(without, weight + norm.logpdf(grid, both * count, noise))
    cell = float(grid[1] - grid[0])
    for delta in (1e-5, 1e-2):
        enclosed = dp.epsilon(noise_multiplier=noise, delta=delta, **said).epsilon
        fast = dp.curve(noise_multiplier=noise, deltas=[delta], grade=Grade.FAST, **said).epsilon
        for epsilon in (enclosed, float(fast[0])):
            told = max(
                excess(with_unit, without, cell, epsilon), excess(without, with_unit, cell, epsilon)
            )
            assert told <= delta * (1 + 1e-3)


def least_delta(first: Floats, second: Floats, steps: int, epsilon: float, cell: float) -> float:
    """Return delta of so many steps of a pair of laws in cells, every loss rounded down."""
    width = 2.0**-7
    losses = np.floor((np.log(first) - np.log(second)) / width).astype(int)
    least = int(losses.min())
    masses = np.bincount(losses - least, weights=first * cell)
    total = masses
    for _ in range(steps - 1):
        total = np.convolve(total, masses)
    at = (np.arange(total.size) + steps * least) * width
    return float((total * np.maximum(0.0, 1 - np.exp(np.minimum(epsilon - at, 700.0)))).sum())


@pytest.mark.parametrize(("rate", "noise"), [(0.5, 1.0), (0.5, 0.4), (0.9, 0.7), (0.2, 0.5)])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_mean_over_a_samples_own_number_tells_no_more_than_its_claim(
    rate: float, noise: float, steps: int
) -> None:
    """Two records, one of which is made null: a null record that is drawn counts in the number, so
    that even where it brings nothing the sample shows. Both rows are of the clip norm, and point
    apart or the same way."""
    release = StatedRelease(
        MechanismKind.GAUSSIAN,
        noise=noise,
        rounds=steps,
        sampling=Sampling.POISSON,
        rate=rate,
        clip_norm=1.0,
        averaging=Averaging.OWN,
        divisor=1,
    )
    grid = np.linspace(-1 - 9 * noise, 1 + 9 * noise, 20_001)
    cell = float(grid[1] - grid[0])

    def law(own: float, other: float) -> Floats:
        parts = [
            ((1 - rate) ** 2, 0.0),
            ((1 - rate) * rate, other),
            (rate * (1 - rate), own),
            (rate**2, (own + other) / 2),
        ]
        found = sum(weight * norm.pdf(grid, mean, noise) for weight, mean in parts)
        return np.asarray(found) + 1e-300

    for delta in (1e-3, 0.1):
        true = judged([release], PromisedEpsilon(1.0, delta), adjacency=ZERO).true
        assert true is not None
        for other in (1.0, -1.0):
            pair = law(1.0, other), law(0.0, other)
            for first, second in (pair, pair[::-1]):
                assert least_delta(first, second, steps, true.upper_float, cell) <= delta


UNRULED = [
    (SampledWithoutReplacement(gaussian(1.0, relation), 10, 100), relation)
    for relation in (ADD, ZERO, COLUMN)
] + [
    (SampledWithReplacement(gaussian(1.0, ADD), 10, 100), ADD),
    (PoissonSampled(gaussian(1.0, REPLACE), 0.1), REPLACE),
    (PoissonSampled(gaussian(1.0, COLUMN), 0.1), COLUMN),
    (
        PoissonSampled(LaplaceStep(declared(1, "t", adjacency=REPLACE, norm=Norm.L1), 1.0), 0.1),
        REPLACE,
    ),
]


@pytest.mark.parametrize(("mechanism", "relation"), UNRULED)
def test_no_sample_is_priced_under_a_relation_that_no_theorem_is_about(
    mechanism: Mechanism, relation: Adjacency
) -> None:
    """Batches of fixed size of which a record is missing; replaced records of which nothing says
    what each brings; columns."""
    for delta in (1e-5, 0.1):
        with pytest.raises(UnpricedMechanism, match=f"instead got {type(mechanism).__name__}"):
            guarantee([event(mechanism)], delta=delta)


# --- certificates -------------------------------------------------------------------------------

TWO = (event(gaussian(5.0), "a"), event(gaussian(5.0), "b"))
OTHERS: dict[str, Sequence[Event]] = {
    "of no party": [event(gaussian(5.0))] * 2,
    "of one party": [event(gaussian(5.0), "a")] * 2,
    "of both parties": [event(gaussian(5.0), "a", "b")] * 2,
    "of parties of other names": [event(gaussian(5.0), "c"), event(gaussian(5.0), "d")],
    "in another order": TWO[::-1],
    "as parts": [event(Parties((("a", (gaussian(5.0),)), ("b", (gaussian(5.0),)))))],
    "of another reason": [event(gaussian(5.0, reason="u"), name) for name in "ab"],
    "of another relation": [event(gaussian(5.0, ZERO), name) for name in "ab"],
    "with one more, of next to no cost": [*TWO, event(gaussian(1e9), "a")],
    "with less noise by the last bit": [TWO[0], event(gaussian(float(np.nextafter(5.0, 0))), "b")],
    "twice": [*TWO, *TWO],
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_certificate_is_of_its_own_events_and_no_others(other: str) -> None:
    """Two steps at two parties cost what one does: a document that says so fits no list in which
    they might cost more, or are told otherwise."""
    document = certify(TWO, delta=1e-5).to_json_bytes()
    assert proved(document, events=TWO).values
    with pytest.raises(NotProved, match="subject"):
        proved(document, events=OTHERS[other])


# --- verdicts -----------------------------------------------------------------------------------


def recorded(ledger: Ledger, run: str, *events: Event) -> None:
    """Write events into a ledger as a run that is over and kept to its plan."""
    with ledger.run(run, configuration_hash="h", plan=events) as opened:
        opened.step(*events)


@pytest.mark.parametrize("beside", [UNRULED[0][0], gaussian(5.0, REPLACE)])
def test_a_runs_own_promise_is_judged_whatever_stands_beside_it(beside: Mechanism) -> None:
    """One run has no rule, or speaks of another relation; of the other nothing changes."""
    ledger = MemoryLedger()
    recorded(ledger, "first", event(beside))
    recorded(ledger, "second", event(gaussian(5.0)))
    price = guarantee([event(gaussian(5.0))], delta=1e-5).epsilon.upper_float
    for share, verdict in ((1.001, ClaimVerdict.HOLDS), (0.999, ClaimVerdict.NOT_IMPLIED)):
        promise = PromisedEpsilon(share * price, 1e-5)
        assert judge_ledger(ledger, promise, run="second").finding.verdict is verdict


SUMS = {relation: sum_of_bounded(1, relation) for relation in (ADD, ZERO, REPLACE)}


@pytest.mark.parametrize(
    ("relation", "beside"),
    [*[(each, what) for each in SUMS for what in ("nothing", "noise")], (REPLACE, "answers")],
)
def test_the_peer_contradicts_no_sample_and_what_stands_beside_it(
    relation: Adjacency, beside: str
) -> None:
    """Poisson samples under three relations, alone, beside Gaussian noise and beside answers."""
    sampled = Repeated(PoissonSampled(GaussianStep(SUMS[relation], 4.0), 0.1), 20)
    events = [event(sampled)]
    if beside == "noise":
        events.append(event(gaussian(5.0, relation)))
    if beside == "answers":
        events.append(event(RandomisedResponse(0.7)))
    found = crosscheck(events, delta=1e-5)
    assert not found.is_finding
    assert found.peers[1].status is Status.AGREE


def test_honest_noise_in_doubles_is_seldom_refuted() -> None:
    """A mean and two thousand normal numbers a run, eight runs, twenty seeds."""

    def program(rows: Any, labels: Any, record: Recorder) -> None:
        generator = np.random.default_rng(record.seed)
        mean = np.resize(rows.mean(axis=0), 2_000)
        record.normal(
            mean, lambda value: generator.normal(value, 4.0), sensitivity=18.0, noise_std=4.0
        )

    domain = ReplacedRecord(count=5, features=3, adjacency=REPLACE)
    found = [audit_noise(program, domain, level=0.001, seed=seed) for seed in range(20)]
    assert sum(test.refuted for test in found) <= 1


@pytest.mark.parametrize(("parties", "numbers", "rounds", "runs"), [(1, 1, 1, 2), (2, 5, 4, 1)])
def test_few_numbers_that_are_noise_are_seldom_called_otherwise(
    parties: int, numbers: int, rounds: int, runs: int
) -> None:
    """Three hundred times two numbers, and forty: refuted about one time in seven, where a level
    of one in five is allowed."""
    generator = np.random.default_rng(7)

    def noise() -> list[list[Residual]]:
        return [
            [Residual(generator.normal(size=(parties, numbers)), "x") for _ in range(rounds)]
            for _ in range(runs)
        ]

    refuted = sum(noise_tests(noise(), level=0.2).refuted for _ in range(300))
    assert refuted <= 85


# --- files and pages ----------------------------------------------------------------------------


def document(name: str, **fields: Any) -> dict[str, Any]:
    """Return an event of dp_accounting as JSON has it."""
    return {"module_name": "dp_accounting.dp_event", "class_name": name, **fields}


def priced(found: dict[str, Any], relation: Adjacency, folder: Path, *, delta: float) -> float:
    """Return the epsilon of a file that holds this event, rounded up."""
    file = folder / "event.json"
    file.write_text(json.dumps(found))
    return guarantee(read("dp-event", file, adjacency=relation), delta=delta).epsilon.upper_float


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return delta of mu-GDP at epsilon."""
    first = float(ndtr(-epsilon / mu + mu / 2))
    return first - float(np.exp(epsilon) * ndtr(-epsilon / mu - mu / 2))


@pytest.mark.parametrize("steps", [1, 2, 7, 8, 1000])
@pytest.mark.parametrize("relation", [ZERO, REPLACE])
def test_a_tree_costs_no_less_than_the_nodes_above_its_deepest_leaf(
    steps: int, relation: Adjacency, tmp_path: Path
) -> None:
    """Counted in the tree itself: complete nodes of 1, 2, 4, ... leaves that hold a leaf."""
    sizes = [2**height for height in range(steps.bit_length())]
    nodes = max(sum((leaf // size + 1) * size <= steps for size in sizes) for leaf in range(steps))
    moves = 2 if relation is REPLACE else 1
    tree = document("SingleEpochTreeAggregationDpEvent", noise_multiplier=20.0, step_counts=[steps])
    epsilon = priced(tree, relation, tmp_path, delta=1e-5)
    assert gaussian_delta(moves * nodes**0.5 / 20.0, epsilon) <= 1e-5 * (1 + 1e-9)


@pytest.mark.parametrize("noise", [0.7, 2.0, 5.0])
@pytest.mark.parametrize("chances", [(0.5, 0.25, 0.25), (0.0, 0.9, 0.1), (0.99, 0.0, 0.01)])
def test_a_mixture_of_shifts_tells_no_more_than_is_priced(
    noise: float, chances: tuple[float, ...], tmp_path: Path
) -> None:
    """Shifts 0, 1 and 3; both orders of the two laws, on a grid."""
    shifts = (0.0, 1.0, 3.0)
    mixture = document(
        "MixtureOfGaussiansDpEvent",
        standard_deviation=noise,
        sensitivities=list(shifts),
        sampling_probs=list(chances),
    )
    grid = np.linspace(-9 * noise, 3 + 9 * noise, 40_001)
    moved = np.log(
        sum(c * norm.pdf(grid, s, noise) for c, s in zip(chances, shifts, strict=True)) + 1e-300
    )
    still, cell = norm.logpdf(grid, 0.0, noise), float(grid[1] - grid[0])
    for delta in (1e-5, 1e-2):
        epsilon = priced(mixture, ADD, tmp_path, delta=delta)
        told = max(excess(moved, still, cell, epsilon), excess(still, moved, cell, epsilon))
        assert told <= delta * (1 + 1e-3)


@pytest.mark.parametrize("draws", [1, 2, 5])
@pytest.mark.parametrize("records", [1, 2, 3, 50])
@pytest.mark.parametrize("loss", [0.1, 1.0, 2.0])
def test_draws_with_replacement_of_a_pure_mechanism_lose_what_a_linear_program_finds(
    draws: int, records: int, loss: float, tmp_path: Path
) -> None:
    """Of every mechanism whose chances move by e^loss for a place of the batch, the worst: chances
    of one event by how often the differing record was drawn, on both data sets."""
    weights = binom.pmf(np.arange(draws + 1), draws, 1 / records)
    places, rows = draws + 1, list[Floats]()

    def at_most(one: int, other: int, distance: int) -> None:
        row = np.zeros(2 * places)
        row[one], row[other] = 1.0, -np.exp(distance * loss)
        rows.append(row)

    for first in range(places):
        at_most(first, places + first, first)
        at_most(places + first, first, first)
        for second in range(places):
            if first != second:
                at_most(first, second, abs(first - second))
                at_most(places + first, places + second, abs(first - second))
    nothing = np.zeros(places)
    found = linprog(
        np.concatenate([-weights, nothing]),
        A_ub=np.array(rows),
        b_ub=np.zeros(len(rows)),
        A_eq=np.concatenate([nothing, weights])[None, :],
        b_eq=[1.0],
    )
    sampled = document(
        "SampledWithReplacementDpEvent",
        source_dataset_size=records,
        sample_size=draws,
        event=document("ExponentialMechanismDpEvent", epsilon=loss),
    )
    epsilon = priced(sampled, REPLACE, tmp_path, delta=0.0)
    assert found.fun is not None
    assert np.log(-found.fun) <= epsilon * (1 + 1e-9)


def test_the_page_for_officers_has_no_guess_below_the_theorem() -> None:
    """Its table is of delta 1e-5: (e^epsilon + delta) / (e^epsilon + 1), rounded up."""
    page = (Path(__file__).parents[1] / "docs" / "meaning.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9.]+) \| ([0-9.]+) % \|", page, flags=re.MULTILINE)
    assert len(rows) == 6
    for epsilon, shown in ((float(a), float(b)) for a, b in rows):
        right = 100 * (np.exp(epsilon) + 1e-5) / (np.exp(epsilon) + 1)
        assert right <= shown < right + 0.011


def test_an_entry_for_the_registry_is_told_apart_from_text_whatever_is_said() -> None:
    """Colons, quotes, line breaks and braces in what a curator says stay inside their own field."""
    yaml = pytest.importorskip("yaml")
    odd = 'a: b\n- c: "d" # {e} | f'
    said = Deployment(
        name=odd,
        data_curators=[odd],
        description=odd,
        intended_use=odd,
        data_product_type="Dataset",
        data_product_region=odd,
        publication_date=date(2026, 1, 1),
        model_name="Central",
        privacy_unit=odd,
        preprocessing=odd,
    )
    events = [event(gaussian(50.0))]
    found = guarantee(events, delta=1e-5)
    entry = yaml.safe_load(registry_entry(said, found, events))["deployment"]
    assert entry["basic"]["description"] == odd
    assert entry["basic"]["data_curators"] == [odd]
    assert entry["privacy_loss"]["privacy_unit"] == odd
    assert entry["privacy_loss"]["privacy_parameters"]["epsilon"] == found.epsilon.upper_float
