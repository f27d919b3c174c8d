"""How accurate a model is at an enclosed epsilon: UCI Adult, 100 parties, delta 1e-5, replace-one.

    python benchmarks/utility.py                # the table: ten splits, about ten minutes
    python benchmarks/utility.py --splits 2 --only consensus     # a quick look

The defaults over epsilon, parties and data sets: `utility_grid.py`. Another library on the same
splits: `--export FILE` and `utility_diffprivlib.py`.

Every line is trained through the estimator, which certifies its epsilon, and tested on records that
had no part in choosing anything: all settings were tuned on 20,000 development records
(`DEVELOPMENT`), and every split's 5,222 test records are drawn from the other 25,222. A line's
interval is mean ± t·s/sqrt(splits) over splits, which share records: it speaks of this data set.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import t as student

from dpledger.data import load_adult
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    EventList,
    Poisson,
    PrivateDataset,
    SamplingCurator,
)
from dpledger.mechanisms.sampling import SimulationSampler
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.runs.estimators.rows import with_constant
from dpledger.solvers import (
    PER_PARTY,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    Logistic,
    ModelSolver,
    OutputPerturbation,
    PublishedObjectivePerturbation,
    PvpAdmm,
    SmoothSteps,
    Summed,
    ThreatModel,
    logistic_optimum,
    objective_noise_std,
)

DELTA, PARTIES, TEST = 1e-5, 100, 5_222
DEVELOPMENT = np.random.default_rng(20201).permutation(45_222)[:20_000]
"""Indices of the records that settings were tuned on, in the order of `load_adult`."""

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Line:
    """A method at an epsilon: from rows and a seed to accuracy and enclosed epsilon."""

    method: str
    trust: str
    epsilon: float
    fit: Callable[[Rows, int], tuple[float, float]]


def adult() -> tuple[np.ndarray, np.ndarray]:
    """Return Adult's rows, dense, and labels."""
    records = load_adult()
    features: Any = records.features
    rows = features.toarray() if hasattr(features, "toarray") else features
    return np.asarray(rows, dtype=np.float64), np.asarray(records.labels, dtype=np.float64)


def split(rows: np.ndarray, labels: np.ndarray, seed: int) -> Rows:
    """Return training and test rows; no development record is tested on."""
    rng = np.random.default_rng(seed)
    fresh = np.setdiff1d(np.arange(len(labels)), DEVELOPMENT)
    test = rng.choice(fresh, TEST, replace=False)
    train = rng.permutation(np.setdiff1d(np.arange(len(labels)), test))
    return rows[train], labels[train], rows[test], labels[test]


def export(rows: np.ndarray, labels: np.ndarray, splits: list[Rows], path: str) -> None:
    """Write the records of all splits, and the development records, for other programs.

    Args:
        rows: the development records' rows.
        labels: their labels.
        splits: training and test records.
        path: of the file.
    """
    arrays = {"development_rows": rows, "development_labels": labels}
    names = ("train_rows", "train_labels", "test_rows", "test_labels")
    for k, found in enumerate(splits):
        arrays |= {f"{name}_{k}": array for name, array in zip(names, found, strict=True)}
    np.savez_compressed(path, splits=len(splits), **arrays)


def estimator(
    epsilon: float,
    parties: int,
    seed: int,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    **given: Any,
) -> PrivateAdmmClassifier:
    """Return the estimator with its defaults, but for what is given."""
    return PrivateAdmmClassifier(
        epsilon=epsilon,
        delta=DELTA,
        adjacency=adjacency,
        n_parties=parties,
        clip=True,
        classes=(-1, 1),
        random_state=seed,
        **given,
    )


def trained(parties: int, epsilon: float, **given: Any) -> Callable[[Rows, int], Any]:
    """Return what trains and tests an estimator."""

    def fit(data: Rows, seed: int) -> tuple[float, float]:
        model = estimator(epsilon, parties, seed, **given).fit(data[0], data[1])
        return float(model.score(data[2], data[3])), model.privacy_.epsilon.upper_float

    return fit


def poisson(epsilon: float) -> Callable[[Rows, int], Any]:
    """Return what trains and tests DP-SGD on hidden tenths of one party's records, zero-out-one."""
    return trained(
        1,
        epsilon,
        adjacency=Adjacency.ZERO_OUT_ONE,
        algorithm=lambda z, _: DpSgd(300, z, ConstantSteps(16.0), scheme=Poisson(0.1), clip=0.5),
        fit_intercept=False,
    )


def objective(parties: int, epsilon: float, weight: float) -> Callable[[Rows, int], Any]:
    """Return what trains and tests objective perturbation, whose epsilon is a theorem's on exact
    minimisers: no certificate.
    """

    def fit(data: Rows, seed: int) -> tuple[float, float]:
        rows, test = (with_constant(each) for each in (data[0], data[2]))
        private = PrivateDataset(
            rows,
            data[1],
            adjacency=Adjacency.REPLACE_ONE,
            row_bound=1.0,
            party_of=np.arange(len(rows)) % parties,
            parties=tuple(f"party-{i}" for i in range(parties)),
        )
        noise_std = objective_noise_std(
            private.shape, Logistic(), modulus=weight, epsilon=epsilon, delta=DELTA
        )
        solver = PublishedObjectivePerturbation(noise_std, weight, tolerance=1e-7)
        curator = SamplingCurator(EventList(), SimulationSampler(seed))
        model = solver.solve(private, curator).model
        right = np.where(np.asarray(test @ model) >= 0.0, 1.0, -1.0) == data[3]
        return float(np.mean(right)), float("inf")

    return fit


def sgd(step: float, rounds: int) -> Callable[[float, DataShape], ModelSolver]:
    """Return tuned DP-SGD: gradients cut at one half, all records in every round."""
    return lambda z, _: DpSgd(rounds, z, ConstantSteps(step), clip=0.5)


def star(z: float, _: DataShape) -> ModelSolver:
    """Return the star DP-ADMM with the settings that its paper prints."""
    return DpAdmm(100, z, SmoothSteps(0.25 + 1e-6, 89.0))


def pvp(rounds: int) -> Callable[[float, DataShape], ModelSolver]:
    """Return PVP, whose only setting is the number of rounds."""
    return lambda z, _: PvpAdmm(rounds, z, tolerance=1e-4)


SGD = {
    ("per party", 1.0): sgd(32.0, 20),
    ("per party", 0.1): sgd(16.0, 20),
    ("summed", 1.0): sgd(32.0, 80),
    ("summed", 0.1): sgd(16.0, 20),
}
OBJECTIVE = {
    ("one party", 1.0): 3e-4,
    ("one party", 0.1): 3e-3,
    ("per party", 1.0): 3e-2,
    ("per party", 0.1): 3e-2,
}
"""Weights of the squared norm: the best of three or four on development records."""
TRUST: dict[str, tuple[int, ThreatModel]] = {
    "per party": (PARTIES, PER_PARTY),
    "summed": (PARTIES, Summed()),
    "one party": (1, PER_PARTY),
}


def lines() -> Iterator[Line]:
    """Yield what the table shows."""
    for epsilon in (1.0, 0.1):
        for trust, (parties, threat) in TRUST.items():
            made: dict[str, dict[str, Any]] = {"consensus ADMM, defaults": {}}
            if (trust, epsilon) in SGD:
                made["DP-SGD, tuned"] = {"algorithm": SGD[trust, epsilon], "fit_intercept": False}
            if trust == "per party":
                made["star DP-ADMM, as printed, repaired"] = {
                    "algorithm": star,
                    "fit_intercept": False,
                }
                made["PVP"] = {"algorithm": pvp(100), "fit_intercept": False}
            if trust != "summed":
                one_shot = {"algorithm": lambda z, _: OutputPerturbation(z)}
                made["output perturbation"] = one_shot
                weight = OBJECTIVE[trust, epsilon]
                yield Line(
                    "objective perturbation, theorem",
                    trust,
                    epsilon,
                    objective(parties, epsilon, weight),
                )
            if trust == "one party":
                yield Line("DP-SGD, Poisson, zero-out", trust, epsilon, poisson(epsilon))
            for method, given in made.items():
                fit = trained(parties, epsilon, threat_model=threat, **given)
                yield Line(method, trust, epsilon, fit)


def optimum(data: Rows) -> tuple[float, float]:
    """Return the accuracy of converged logistic regression, and its gradient's norm."""
    rows, labels, test, truth = data
    rows, test = (np.hstack([each, np.ones((len(each), 1))]) for each in (rows, test))
    found = logistic_optimum(rows, labels, regularisation=1e-6)
    accuracy = np.mean(np.where(test @ found.model >= 0.0, 1.0, -1.0) == truth)
    return float(accuracy), found.gradient_norm


def shown(values: list[float]) -> str:
    """Return mean and 95 % interval, in percent."""
    mean, count = float(np.mean(values)), len(values)
    if count < 2:
        return f"{100 * mean:.2f}"
    half = float(student.ppf(0.975, count - 1) * np.std(values, ddof=1) / sqrt(count))
    return f"{100 * mean:.2f} ± {100 * half:.2f}"


def print_references(data: list[Rows]) -> None:
    """Print the table's head and what needs no privacy: the larger class, the converged optimum."""
    majority = [max(float(np.mean(d[3] > 0)), float(np.mean(d[3] < 0))) for d in data]
    best, norms = zip(*(optimum(d) for d in data), strict=True)
    print(f"{'method':36s} {'noise':10s} {'eps':>5s} {'enclosed':>10s} {'accuracy, %':>15s}")
    print(f"{'majority':36s} {'-':10s} {'-':>5s} {'-':>10s} {shown(majority):>15s}")
    words = f"converged optimum, |grad| {max(norms):.0e}"
    print(f"{words:36s} {'-':10s} {'inf':>5s} {'-':>10s} {shown(list(best)):>15s}", flush=True)


def print_line(line: Line, data: list[Rows], words: str = "") -> None:
    """Print what a method reaches on splits, at the largest enclosed epsilon of them.

    Args:
        line: method, threat model and epsilon.
        data: the splits.
        words: at the line's end.
    """
    start = perf_counter()
    found, enclosed = zip(*(line.fit(d, k) for k, d in enumerate(data)), strict=True)
    seconds = (perf_counter() - start) / len(data)
    print(
        f"{line.method:36s} {line.trust:10s} {line.epsilon:5g} {max(enclosed):10.6f} "
        f"{shown(list(found)):>15s}   {seconds:.1f} s a fit{words}",
        flush=True,
    )


def table(data: list[Rows], only: str) -> None:
    """Print the table, or its lines whose method contains a word, as soon as they are known."""
    print_references(data)
    for line in lines():
        if only in f"{line.method}, {line.trust}, {line.epsilon:g}":
            print_line(line, data)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=100, help="seed of the first split")
    parser.add_argument("--only", default="", help="a part of 'method, noise, epsilon'")
    parser.add_argument("--export", help="write records and splits to this file, and end")
    given = parser.parse_args()
    rows, labels = adult()
    data = [split(rows, labels, given.first + k) for k in range(given.splits)]
    if given.export is not None:
        export(rows[DEVELOPMENT], labels[DEVELOPMENT], data, given.export)
        return
    words = f"{given.splits} splits from seed {given.first}"
    print(f"{words}, {PARTIES} parties, delta {DELTA}, replace-one")
    table(data, given.only)


if __name__ == "__main__":
    main()
