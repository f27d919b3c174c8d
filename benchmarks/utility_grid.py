"""The estimator's defaults over epsilon, parties and data sets, beside the best of tuned rivals.

    python benchmarks/utility_grid.py                    # five data sets: an hour on one core
    python benchmarks/utility_grid.py --only digits --splits 2

A cell is a data set, a number of parties with at least 20 records each, and an epsilon (delta 1e-5,
replace-one, noise per party). Its rivals are DP-SGD at five settings of steps, rounds and
intercept, the same ADMM with the settings for a third and for three times the epsilon and without a
metric, and output perturbation; the test records choose the best of them, which flatters it. The
defaults pass where they are within 0.5 points of it, or within two standard errors of the
difference over splits, and not below the majority by more than two standard errors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from utility import DELTA, Rows, adult, sgd, split, trained

from dpledger.mechanisms import DataShape
from dpledger.solvers import ModelSolver, OutputPerturbation, consensus_defaults

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
    raw, target = data_sets()[name]
    rows = raw / np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-9)
    labels = np.where(np.asarray(target) > 0, 1.0, -1.0)
    data: list[Rows] = []
    for seed in range(first, first + splits):
        a, b, c, d = train_test_split(rows, labels, test_size=0.3, random_state=seed)
        data.append((a, c, b, d))
    return data


def consensus(epsilon: float, *, factor: float, metric: bool) -> Callable[..., ModelSolver]:
    """Return ADMM at the consensus with the settings of `factor` times the epsilon."""

    def made(noise_multiplier: float, shape: DataShape) -> ModelSolver:
        chosen = consensus_defaults(
            shape,
            epsilon=factor * epsilon,
            delta=DELTA,
            column=shape.features - 1 if metric else None,
            regularisation=1e-7,
        )
        return replace(chosen, noise_multiplier=noise_multiplier)

    return made


def rivals(parties: int, epsilon: float) -> Iterator[tuple[str, Callable[[Rows, int], Any]]]:
    """Yield names and fits of what the defaults are held against."""
    for rounds, step, intercept in (
        (5, 8.0, False),
        (20, 8.0, False),
        (20, 32.0, False),
        (80, 32.0, False),
        (20, 32.0, True),
    ):
        yield (
            f"DP-SGD {rounds} x {step:g}{', intercept' * intercept}",
            trained(parties, epsilon, algorithm=sgd(step, rounds), fit_intercept=intercept),
        )
    for name, factor, metric in (
        ("settings of eps/3", 1 / 3, True),
        ("settings of 3 eps", 3.0, True),
        ("no metric", 1.0, False),
    ):
        algorithm = consensus(epsilon, factor=factor, metric=metric)
        yield name, trained(parties, epsilon, algorithm=algorithm)
    yield (
        "output perturbation",
        trained(parties, epsilon, algorithm=lambda z, _: OutputPerturbation(z)),
    )


def cell(data: list[Rows], parties: int, epsilon: float) -> tuple[str, bool]:
    """Return what a cell shows, and whether the defaults pass."""
    own = np.array([trained(parties, epsilon)(d, k)[0] for k, d in enumerate(data)])
    found = {
        name: np.array([fit(d, k)[0] for k, d in enumerate(data)])
        for name, fit in rivals(parties, epsilon)
    }
    best = max(found, key=lambda name: float(found[name].mean()))
    majority = np.array([max(np.mean(d[3] > 0), np.mean(d[3] < 0)) for d in data])

    def error(differences: np.ndarray) -> float:
        return float(differences.std(ddof=1)) / sqrt(len(differences))

    lost, below = found[best] - own, majority - own
    passes = lost.mean() <= max(WITHIN, 2.0 * error(lost))
    passes &= below.mean() <= 2.0 * error(below)
    words = (
        f"P {parties:4d} eps {epsilon:4g}  {100 * own.mean():6.2f}  majority "
        f"{100 * majority.mean():6.2f}  best {100 * found[best].mean():6.2f} ({best})  "
        f"lost {100 * lost.mean():+.2f} ± {100 * error(lost):.2f}"
    )
    return words, bool(passes)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--only", default="", help="a part of the data set's name")
    parser.add_argument("--parties", type=int, nargs="+", default=PARTIES)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--first", type=int, default=500, help="seed of the first split")
    given = parser.parse_args()
    passed: list[bool] = []
    for name in (*data_sets(), "Adult, 45,222 x 104"):
        if given.only.lower() not in name.lower():
            continue
        data = splits_of(name, given.splits, given.first)
        print(f"{name}, {given.splits} splits", flush=True)
        for parties in given.parties:
            if len(data[0][0]) < LEAST_RECORDS * parties:
                continue
            for epsilon in given.epsilons:
                words, passes = cell(data, parties, epsilon)
                print(f"  {words}{'' if passes else '  FAILS'}", flush=True)
                passed.append(passes)
    print(f"{sum(passed)} of {len(passed)} cells pass")


if __name__ == "__main__":
    main()
