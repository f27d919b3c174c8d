"""The defaults beside other methods on four more data sets: epsilon 1, delta 1e-5, replace-one.

    python benchmarks/utility_sets.py                # two sets of scikit-learn, two generated ones
    python benchmarks/utility_sets.py --only digits --export digits.npz
    python benchmarks/utility_diffprivlib.py digits.npz

The sets are those of `utility_grid.py`. Two fifths of the records of each are for development:
every method but the defaults takes the best of a few settings, by the mean over twenty divisions of
these. It is then trained on three quarters of all records and tested on the others, of which none
is a development record. Intervals are 95 %, over splits, which share records.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from utility import (
    DELTA,
    Line,
    Rows,
    export,
    objective,
    print_line,
    print_references,
    pvp,
    sgd,
    trained,
)
from utility_grid import data_sets, proved, unit_records

from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    EventList,
    Poisson,
    PrivateDataset,
    SamplingCurator,
)
from dpledger.mechanisms.errors import InvalidParameter
from dpledger.mechanisms.sampling import SimulationSampler
from dpledger.solvers import (
    PER_PARTY,
    ConstantSteps,
    DpSgd,
    OutputPerturbation,
    Summed,
    ThreatModel,
)

EPSILON, PARTIES, DIVISIONS = 1.0, 10, 20
TRUST: dict[str, tuple[int, ThreatModel]] = {
    "per party": (PARTIES, PER_PARTY),
    "summed": (PARTIES, Summed()),
    "one party": (1, PER_PARTY),
}
STEPS = ((5, 8.0), (20, 8.0), (20, 32.0), (80, 32.0))
WEIGHTS = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)

Settings = dict[str, Callable[[Rows, int], tuple[float, float]]]
"""By name: from rows and a seed to accuracy and enclosed epsilon."""


class Records:
    """A data set whose rows have norm at most 1, and which of them are for development.

    Args:
        name: of the set, as `utility_grid.data_sets` has it.
    """

    def __init__(self, name: str) -> None:
        self.rows, self.labels = unit_records(name)
        order = np.random.default_rng(20201).permutation(len(self.rows))
        self.development, self.fresh = np.split(order, [2 * len(order) // 5])

    def _taken(self, train: np.ndarray, test: np.ndarray) -> Rows:
        return self.rows[train], self.labels[train], self.rows[test], self.labels[test]

    def divisions(self) -> list[Rows]:
        """Return divisions of the development records, a fifth of each to test on."""
        found = []
        for k in range(DIVISIONS):
            order = np.random.default_rng(k).permutation(self.development)
            found.append(self._taken(order[len(order) // 5 :], order[: len(order) // 5]))
        return found

    def splits(self, count: int, first: int) -> list[Rows]:
        """Return splits that test on no development record.

        Args:
            count: how many.
            first: seed of the first; the others' follow.
        """
        found = []
        for seed in range(first, first + count):
            rng = np.random.default_rng(seed)
            test = rng.choice(self.fresh, len(self.rows) // 4, replace=False)
            train = rng.permutation(np.setdiff1d(np.arange(len(self.rows)), test))
            found.append(self._taken(train, test))
        return found


def fits(trust: str, **given: Any) -> Callable[[Rows, int], tuple[float, float]]:
    """Return what trains and tests an estimator under a threat model.

    Args:
        trust: of `TRUST`.
        **given: to the estimator, in place of its defaults.
    """
    parties, threat = TRUST[trust]
    return trained(parties, EPSILON, threat_model=threat, **given)


def poisson(step: float, rounds: int) -> Callable[[Rows, int], tuple[float, float]]:
    """Return what trains and tests DP-SGD on hidden tenths of one party's records, zero-out-one.

    The plan is proved once for all records of one shape.
    """
    known: dict[DataShape, float] = {}

    def made(noise_multiplier: float, _: DataShape) -> DpSgd:
        steps = ConstantSteps(step)
        return DpSgd(rounds, noise_multiplier, steps, scheme=Poisson(0.1), clip=0.5)

    def fit(data: Rows, seed: int) -> tuple[float, float]:
        private = PrivateDataset(data[0], data[1], adjacency=Adjacency.ZERO_OUT_ONE, row_bound=1.0)
        if private.shape not in known:
            known[private.shape] = proved(private.shape, EPSILON, made)
        solver = made(known[private.shape], private.shape)
        curator = SamplingCurator(EventList(), SimulationSampler(seed))
        scores = data[2] @ solver.solve(private, curator).model
        return float(np.mean((scores > 0.0) == (data[3] > 0.0))), EPSILON

    return fit


def methods(trust: str) -> Iterator[tuple[str, Settings]]:
    """Yield each method under a threat model, with the settings to choose from."""
    parties, _ = TRUST[trust]
    yield "consensus ADMM, defaults", {"defaults": fits(trust)}
    yield (
        "DP-SGD",
        {
            f"{rounds} x {step:g}{', intercept' * intercept}": fits(
                trust, algorithm=sgd(step, rounds), fit_intercept=intercept
            )
            for rounds, step in STEPS
            for intercept in (False, True)
        },
    )
    if trust == "per party":
        several = {
            f"{rounds} rounds": fits(trust, algorithm=pvp(rounds), fit_intercept=False)
            for rounds in (10, 30, 100)
        }
        yield "PVP", several
    if trust == "one party":
        several = {
            f"{rounds} x {step:g}": poisson(step, rounds)
            for rounds in (100, 300)
            for step in (4.0, 16.0)
        }
        yield "DP-SGD, Poisson, zero-out", several
        weaker = fits(trust, adjacency=Adjacency.ZERO_OUT_ONE)
        yield "consensus ADMM, zero-out", {"defaults": weaker}
    if trust != "summed":
        one_shot = fits(trust, algorithm=lambda z, _: OutputPerturbation(z))
        yield "output perturbation", {"defaults": one_shot}
        weights = {f"{weight:g}": objective(parties, EPSILON, weight) for weight in WEIGHTS}
        yield "objective perturbation, theorem", weights


def chosen(settings: Settings, divisions: list[Rows]) -> str:
    """Return the name of the settings that are best on development records, of one the one."""
    if len(settings) == 1:
        return next(iter(settings))

    def reached(name: str) -> float:
        try:
            return float(np.mean([settings[name](d, k)[0] for k, d in enumerate(divisions)]))
        except InvalidParameter:  # a weight at which no noise is enough
            return 0.0

    return max(settings, key=reached)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first split")
    parser.add_argument("--only", default="", help="a part of the data set's name")
    parser.add_argument("--export", help="write a set's records to this file, and end")
    given = parser.parse_args()
    for name in data_sets():
        if given.only not in name:
            continue
        records = Records(name)
        data = records.splits(given.splits, given.first)
        if given.export is not None:
            chosen_from = records.development
            export(records.rows[chosen_from], records.labels[chosen_from], data, given.export)
            return
        words = f"{given.splits} splits from seed {given.first}"
        print(f"\n{name}: {words}, {PARTIES} parties, delta {DELTA}, replace-one")
        print_references(data)
        divisions = records.divisions()
        for trust in TRUST:
            for method, settings in methods(trust):
                best = chosen(settings, divisions)
                line = Line(method, trust, EPSILON, settings[best])
                print_line(line, data, f", {best}")


if __name__ == "__main__":
    main()
