"""The estimator's defaults over epsilon, parties and data sets, beside the best of tuned rivals.

    python benchmarks/utility_grid.py                    # five data sets: hours on one core
    python benchmarks/utility_grid.py --only digits --splits 4
    python benchmarks/utility_grid.py --raw >> cells.jsonl          # every accuracy, a line a cell
    python benchmarks/utility_grid.py --table cells.jsonl           # the table of such lines

A cell is a data set, a number of parties with at least 20 records each, and an epsilon (delta 1e-5,
replace-one, noise per party). Its rivals are DP-SGD at five settings of steps, rounds and
intercept, the same ADMM with the settings for a third and for three times the epsilon and without a
metric, and output perturbation. Each method's plan is proved once a cell, as the estimator proves
it, and run on all splits.

`lost` is to the rival that is best on the other half of the splits, even or odd, so that no rival
is chosen by the noise that it is compared in; `to luckiest` is to the best on the same splits,
which flatters it. The defaults pass where `lost` is within 0.5 points or two standard errors of the
difference over splits, and they are not below the majority by more than two standard errors; `both`
says that they pass by `to luckiest` as well. The majority is the larger class of the whole set, one
answer for all splits: which class is the larger one of a split's test records, no training record
tells. Rows are those of docs/utility.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from utility import DELTA, Rows, adult, sgd, split

from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    Event,
    EventList,
    PrivateDataset,
    SamplingCurator,
)
from dpledger.mechanisms.sampling import SeededSampler, SimulationSampler
from dpledger.runs.estimators.rows import with_constant
from dpledger.runs.pipeline import Terms, calibrate_proved
from dpledger.solvers import (
    ClassShares,
    ModelSolver,
    OutputPerturbation,
    classifier_defaults,
    consensus_defaults,
)
from dpledger.solvers.planning import planned_events

EPSILONS = (0.05, 0.2, 1.0, 3.0, 10.0)
PARTIES = (1, 10, 100, 1000)
LEAST_RECORDS = 20
WITHIN = 0.005
"""Of accuracy: what the defaults may lose to the best rival."""


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return rows and targets: two that scikit-learn ships, two that are generated."""
    cancer: Any = load_breast_cancer()
    digits: Any = load_digits()
    rng = np.random.default_rng(5)
    normal, weights = rng.normal(size=(12_000, 20)), rng.normal(size=20)
    pull = 2.0 * (normal @ weights) / np.linalg.norm(weights) - 1.0
    binary, effects = (rng.random((8_000, 200)) < 0.1).astype(float), rng.normal(size=200)
    return {
        "breast cancer, 569 x 30": (cancer.data / cancer.data.max(axis=0), cancer.target),
        "digits, odd or even, 1,797 x 64": (digits.data, digits.target % 2),
        "normal rows, 12,000 x 20": (normal, rng.random(12_000) < expit(pull)),
        "binary rows, 8,000 x 200": (binary, rng.random(8_000) < expit(binary @ effects)),
    }


def unit_records(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of norm 1 and labels +-1 of one of `data_sets`."""
    raw, target = data_sets()[name]
    rows = raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-9)
    return rows, np.where(np.asarray(target) > 0, 1.0, -1.0)


def splits_of(name: str, splits: int, first: int) -> list[Rows]:
    """Return training and test rows of norm at most 1, a third of the small sets for testing.

    Args:
        name: of the data set.
        splits: how many.
        first: seed of the first; the others' follow.
    """
    if name.startswith("Adult"):
        rows, labels = adult()
        return [split(rows, labels, 1500 + first + k) for k in range(splits)]
    rows, labels = unit_records(name)
    data: list[Rows] = []
    for seed in range(first, first + splits):
        a, b, c, d = train_test_split(rows, labels, test_size=0.3, random_state=seed)
        data.append((a, c, b, d))
    return data


def consensus(
    epsilon: float, *, factor: float = 1.0, metric: bool = True, rows: bool = True
) -> Callable[..., ModelSolver]:
    """Return ADMM at the consensus with the settings of `factor` times the epsilon; the defaults
    of the estimator where rows need not be asked for.
    """

    def made(noise_multiplier: float, shape: DataShape) -> ModelSolver:
        chosen = (consensus_defaults if rows else classifier_defaults)(
            shape,
            epsilon=factor * epsilon,
            delta=DELTA,
            column=shape.features - 1 if metric else None,
            regularisation=1e-7,
        )
        return replace(chosen, noise_multiplier=noise_multiplier)

    return made


Algorithm = Callable[[float, DataShape], ModelSolver]


def rivals(epsilon: float) -> Iterator[tuple[str, Algorithm, bool]]:
    """Yield what the defaults are held against: name, algorithm, and whether with an intercept."""
    for rounds, step, intercept in (
        (5, 8.0, False),
        (20, 8.0, False),
        (20, 32.0, False),
        (80, 32.0, False),
        (20, 32.0, True),
    ):
        yield f"DP-SGD {rounds} x {step:g}{', intercept' * intercept}", sgd(step, rounds), intercept
    yield "settings of eps/3", consensus(epsilon, factor=1 / 3), True
    yield "settings of 3 eps", consensus(epsilon, factor=3.0), True
    yield "no metric", consensus(epsilon, metric=False), True
    yield "output perturbation", lambda z, _: OutputPerturbation(z), True


def dealt(rows: np.ndarray, labels: np.ndarray, parties: int, *, constant: bool) -> PrivateDataset:
    """Return training records dealt to parties in turn, with a constant if so wished."""
    return PrivateDataset(
        np.asarray(with_constant(rows)) if constant else rows,
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.arange(len(labels)) % parties,
        parties=tuple(f"party-{i + 1}" for i in range(parties)),
    )


def proved(shape: DataShape, epsilon: float, made: Algorithm) -> float:
    """Return the least noise multiplier at which a plan is proved, as the estimator finds it."""
    planned = PrivateDataset.planned(shape)

    def events(noise_multiplier: float) -> tuple[Event, ...]:
        return planned_events(made(noise_multiplier, shape).solve, planned)

    terms = Terms(DELTA, None, (), 1)
    return calibrate_proved(events, epsilon=epsilon, terms=terms).noise_multiplier


def accuracies(
    data: Sequence[Rows],
    parties: int,
    epsilon: float,
    made: Algorithm,
    intercept: bool,
    *,
    noise: int,
) -> list[float]:
    """Return the accuracy on each split, at the noise of a proved plan.

    Args:
        data: splits, of one number of records.
        parties: to which records are dealt in turn.
        epsilon: the target.
        made: the algorithm, from noise multiplier and shape.
        intercept: whether rows get a constant.
        noise: seed of the first split's noise; the others' follow.
    """
    found: list[float] = []
    multiplier = None
    for seed, (rows, labels, test, truth) in enumerate(data, noise):
        private = dealt(rows, labels, parties, constant=intercept)
        if multiplier is None:
            multiplier = proved(private.shape, epsilon, made)
        solver = made(multiplier, private.shape)
        # Laplace noise has no simulation, only the exact one
        exact = isinstance(solver, ClassShares)
        sampler = SeededSampler(seed) if exact else SimulationSampler(seed)
        model = solver.solve(private, SamplingCurator(EventList(), sampler)).model
        held = with_constant(test) if intercept else test
        found.append(float(np.mean((np.asarray(held @ model) > 0.0) == (truth > 0.0))))
    return found


def methods(epsilon: float) -> Iterator[tuple[str, Algorithm, bool]]:
    """Yield the defaults and their rivals, as `rivals` does."""
    yield "defaults", consensus(epsilon, rows=False), True
    yield from rivals(epsilon)


def cell(
    name: str, data: Sequence[Rows], parties: int, epsilon: float, noise: int
) -> dict[str, Any]:
    """Return a cell's name, and of each method and of the majority the accuracy on all splits."""
    labels = np.concatenate([data[0][1], data[0][3]])
    larger = 1.0 if np.mean(labels > 0) > 0.5 else -1.0
    found: dict[str, Any] = {
        method: accuracies(data, parties, epsilon, made, intercept, noise=noise)
        for method, made, intercept in methods(epsilon)
    }
    found["majority"] = [float(np.mean(d[3] * larger > 0.0)) for d in data]
    return {"data": name, "parties": parties, "epsilon": epsilon, "found": found}


def row(measured: dict[str, Any]) -> tuple[str, bool, bool]:
    """Return a cell's row, whether the defaults pass, and whether by both comparisons."""
    found = {method: np.array(values) for method, values in measured["found"].items()}
    own, majority = found.pop("defaults"), found.pop("majority")

    def error(differences: np.ndarray) -> float:
        return float(differences.std(ddof=1)) / sqrt(len(differences))

    def best(chosen: slice) -> str:
        return max(found, key=lambda rival: float(found[rival][chosen].mean()))

    lost, halves = np.empty(len(own)), (slice(0, None, 2), slice(1, None, 2))
    for here, there in (halves, halves[::-1]):
        lost[here] = found[best(there)][here] - own[here]
    luckiest = best(slice(None))
    flattered, below = found[luckiest] - own, majority - own

    def within(differences: np.ndarray) -> bool:
        return bool(differences.mean() <= max(WITHIN, 2.0 * error(differences)))

    above = bool(below.mean() <= 2.0 * error(below))
    passes, both = above and within(lost), above and within(lost) and within(flattered)
    words = (
        f"| {measured['data']} | {measured['parties']} | {measured['epsilon']:g} | "
        f"{100 * own.mean():.2f} | {100 * majority.mean():.2f} | "
        f"{100 * found[luckiest].mean():.2f}, {luckiest} | "
        f"{100 * lost.mean():+.2f} ± {100 * error(lost):.2f} | "
        f"{100 * flattered.mean():+.2f} ± {100 * error(flattered):.2f} | "
        f"{'both' if both else 'yes' if passes else 'no'} |"
    )
    return words, passes, both


def cells(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the cells that the arguments name, as soon as they are measured, or those of a file."""
    if given.table is not None:
        yield from map(json.loads, Path(given.table).read_text(encoding="utf-8").splitlines())
        return
    for name in (*data_sets(), "Adult, 45,222 x 104"):
        if given.only.lower() not in name.lower():
            continue
        data = splits_of(name, given.splits, given.first)
        for parties in given.parties:
            if len(data[0][0]) < LEAST_RECORDS * parties:
                continue
            for epsilon in given.epsilons:
                yield cell(name.partition(",")[0], data, parties, epsilon, given.noise)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=24, help="at least 4")
    parser.add_argument("--only", default="", help="a part of the data set's name")
    parser.add_argument("--parties", type=int, nargs="+", default=PARTIES)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--first", type=int, default=500, help="seed of the first split")
    parser.add_argument("--noise", type=int, default=0, help="seed of the first split's noise")
    parser.add_argument("--raw", action="store_true", help="print every accuracy, a line a cell")
    parser.add_argument("--table", metavar="FILE", help="of what `--raw` printed, in place of runs")
    given = parser.parse_args()
    if given.raw:
        for measured in cells(given):
            print(json.dumps(measured), flush=True)
        return
    print(
        "| data | parties | ε | defaults, % | majority | best rival | lost | to luckiest | passes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    passed: list[tuple[bool, bool]] = []
    for measured in cells(given):
        words, *passes = row(measured)
        print(words, flush=True)
        passed.append((passes[0], passes[1]))
    by_half, by_both = (sum(column) for column in zip(*passed, strict=True))
    print(f"{by_half} of {len(passed)} cells pass, {by_both} by both")


if __name__ == "__main__":
    main()
