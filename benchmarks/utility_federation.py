"""SUMMED on Adult as a federation: 100 parties, each with its own curator, ledger and noise.

    python benchmarks/utility_federation.py                 # three splits, epsilon 1 and 0.1
    python benchmarks/utility_federation.py --splits 1 --colluders 1

Splits and settings are those of `utility.py`, whose lines "consensus ADMM, defaults, summed" draw
one noise in one process. Here every party is a thread with a ledger and a journal on disk; it
rounds its part of each sum, adds its exactly sampled share of the noise and sends masked whole
numbers. Epsilon is the proved one: every party's certificate and the federation's are verified,
with what rounding costs. The masks are the test double: a simulation, as each event says.
"""

from __future__ import annotations

import argparse
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from utility import DELTA, PARTIES, adult, shown, split

from dpledger.accounting.ledger import SqliteLedger
from dpledger.federation import (
    Coordinator,
    FederatedPlan,
    Journal,
    Party,
    Policy,
    federated_plan,
    run_in_process,
    verify_federation,
    write_federation,
)
from dpledger.federation.summed import SummedTerms, plan_of_sums
from dpledger.mechanisms import Adjacency, DataShape, SystemSampler
from dpledger.mechanisms.share_data import ShareOfSum, summed_shape
from dpledger.runs.estimators.rows import with_constant
from dpledger.runs.pipeline import Terms, calibrate_proved
from dpledger.solvers import Summed, consensus_defaults

RELATION = Adjacency.REPLACE_ONE


def planned(shape: DataShape, epsilon: float, colluders: int) -> FederatedPlan:
    """Return the plan whose certificate proves epsilon, as every party derives it."""
    model = Summed(colluders)
    terms, seen = SummedTerms.of(model, shape), summed_shape(shape)

    def solver(noise_multiplier: float) -> Any:
        chosen = consensus_defaults(seen, epsilon=epsilon, delta=DELTA, column=shape.features - 1)
        return replace(chosen, noise_multiplier=noise_multiplier)

    made = calibrate_proved(
        lambda z: plan_of_sums(solver(z), shape, terms)[0],
        epsilon=epsilon,
        terms=Terms(DELTA, RELATION),
    )
    return federated_plan(
        solver(made.noise_multiplier),
        shape,
        delta=DELTA,
        algorithm="consensus-admm",
        configuration="0" * 64,
        threat_model=model,
    )


def trained(
    data: tuple[np.ndarray, ...], epsilon: float, colluders: int, folder: Path
) -> tuple[float, float]:
    """Return accuracy and the federation's proved epsilon of one split."""
    rows, labels = with_constant(data[0]), data[1]
    owner = np.arange(len(labels)) % PARTIES
    names = tuple(f"party-{k:02d}" for k in range(PARTIES))
    counts = tuple(np.bincount(owner).tolist())
    shape = DataShape(names, min(counts), rows.shape[1], 1.0, RELATION, party_counts=counts)
    plan = planned(shape, epsilon, colluders)
    policy = Policy(
        epsilon=epsilon,
        delta=DELTA,
        adjacency=RELATION,
        algorithms=("consensus-admm",),
        threat_models=("summed",),
        colluders=colluders,
    )
    with ExitStack() as opened:
        parties = []
        for k, name in enumerate(names):
            own = folder / name
            own.mkdir(parents=True)
            ledger = opened.enter_context(SqliteLedger(own / "ledger.sqlite"))
            journal = opened.enter_context(Journal(own / "journal.sqlite"))
            held = ShareOfSum(shape, name, rows[owner == k], labels[owner == k])
            parties.append(Party(name, held, SystemSampler(), ledger, journal, policy))
        journal = opened.enter_context(Journal(folder / "journal.sqlite"))
        coordinator = Coordinator(plan, journal, patience=600.0)
        took = run_in_process(parties, plan, coordinator)
        write_federation(folder, plan, coordinator.run, coordinator.handed_in())
    verdict = verify_federation(folder)
    model = took[0].state.model
    right = np.where(with_constant(data[2]) @ model >= 0.0, 1.0, -1.0) == data[3]
    return float(np.mean(right)), float(verdict.joint.values[1])


def main() -> None:
    """Print a line an epsilon: accuracy with its interval over splits, proved epsilon, seconds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--first", type=int, default=100, help="seed of the first split")
    parser.add_argument("--colluders", type=int, default=0)
    parser.add_argument("--epsilons", type=float, nargs="+", default=(1.0, 0.1))
    given = parser.parse_args()
    data = [split(*adult(), given.first + k) for k in range(given.splits)]
    print(f"{given.splits} splits from seed {given.first}, {PARTIES} parties, delta {DELTA},")
    print(f"{RELATION.value}, summed (simulation), {given.colluders} colluders")
    for epsilon in given.epsilons:
        start, found = perf_counter(), []
        for each in data:
            with tempfile.TemporaryDirectory() as folder:
                found.append(trained(each, epsilon, given.colluders, Path(folder)))
        accuracies, proved = zip(*found, strict=True)
        took = (perf_counter() - start) / given.splits
        print(
            f"epsilon {epsilon:g}: proved {max(proved):.9f}, accuracy {shown(list(accuracies))} %,"
            f" {took:.0f} s a federation",
            flush=True,
        )


if __name__ == "__main__":
    main()
