"""How much of its price each canary pays in the last model, measured, one algorithm a column.

    python benchmarks/canaries.py [--trials 2000] [--seed 1]

Every number is what `dpledger membership run.toml --target TARGET` finds on 120 invented people in
two parties, under replace-one at epsilon 2 and delta 1e-5: mu = sqrt(2) ndtri(AUC) of the best
score, as of normal scores. Its standard error is sqrt(2 / trials). The promised mu, which no pair
can exceed, is in the head. A dash: there is no such canary for the algorithm.
"""

import argparse
import sys
import tempfile
from math import sqrt
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from dpledger.accounting.numbers.notions import Gdp
from dpledger.data.strict import ConfigurationError
from dpledger.runs import read_configuration
from dpledger.runs.membership import MembershipOptions, TargetName, membership_of_run

ALGORITHMS = {
    "dp-sgd": 'rounds = 20\nsteps = "constant"\nstep_size = 1.0\nregularisation = 0.01',
    "dp-sgd, cut": (
        'rounds = 20\nsteps = "constant"\nstep_size = 1.0\nregularisation = 0.01\nclip = 0.3'
    ),
    "dp-admm": 'rounds = 20\nsteps = "constant"\nstep_size = 0.5\nregularisation = 0.01',
    "pvp-admm": "rounds = 10\nregularisation = 0.05",
}
"""Solver sections by their names in the table: what follows the algorithm's line."""

SCHEMA = """
row_bound = 1.0
on_outside = "clip"
columns = [
    {kind = "numeric", name = "age", lower = 0, upper = 100},
    {kind = "categorical", name = "town", categories = ["north", "south", "west"]},
    {kind = "label", name = "income", positive = ["high"], negative = ["low"]},
]
"""
RUN = """
[data]
files = ["people.csv"]
schema = "people.toml"
train_records = 120
parties = 2

[privacy]
adjacency = "replace-one"
epsilon = 2.0
delta = 1e-5

[solver]
algorithm = "{algorithm}"
{solver}

[noise]
sampler = "philox"
seed = 5

[attack]
parties = 2
"""


def write_people(folder: Path) -> None:
    """Write 160 people: the older and those of the north earn more, with exceptions."""
    generator = np.random.default_rng(6)
    lines = ["age,town,income"]
    for _ in range(160):
        age, town = int(generator.integers(18, 90)), int(generator.integers(3))
        high = age + 30 * (town == 0) + 20 * generator.normal() > 65
        lines.append(f"{age},{('north', 'south', 'west')[town]},{'high' if high else 'low'}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "people.toml").write_text(SCHEMA, encoding="utf-8")


def measured(path: Path, target: TargetName, trials: int, seed: int) -> tuple[float | None, float]:
    """Return mu of the best score on the target, None where there is no such one; and the price."""
    options = MembershipOptions(target=target, trials=trials, shadows=1000, seed=seed)
    try:
        found = membership_of_run(read_configuration(path), options)
    except ConfigurationError:
        return None, 0.0
    assert isinstance(found.promise, Gdp)
    best = max(result.auc for result in found.results)
    return sqrt(2) * float(ndtri(best)), sqrt(float(found.promise.mu_squared))


def main(arguments: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What part of its price each canary pays.")
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    found: dict[str, dict[TargetName, float | None]] = {}
    price = 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_people(folder)
        for algorithm, solver in ALGORITHMS.items():
            path = folder / "run.toml"
            text = RUN.format(algorithm=algorithm.split(",")[0], solver=solver)
            path.write_text(text, encoding="utf-8")
            found[algorithm] = {}
            for target in TargetName:
                mu, promised = measured(path, target, asked.trials, asked.seed)
                found[algorithm][target], price = mu, max(price, promised)
    print(f"promised mu {price:.3f}; standard error {sqrt(2 / asked.trials):.3f}\n")
    print(f"| canary | {' | '.join(found)} |\n|---{'|---' * len(found)}|")
    for target in TargetName:
        row = (column[target] for column in found.values())
        cells = " | ".join("-" if mu is None else f"{mu:.3f}" for mu in row)
        print(f"| {target.value} | {cells} |")


if __name__ == "__main__":
    main(sys.argv[1:])
