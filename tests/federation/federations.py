"""Small federations for tests: records, plans, parties with files of their own."""

from pathlib import Path
from typing import Any

import numpy as np

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.notions import Gdp
from dpledger.federation import FederatedPlan, Journal, Party, Policy, federated_plan
from dpledger.mechanisms import (
    Adjacency,
    DataShape,
    LocalDataset,
    PrivateDataset,
    Sampler,
    SamplingCurator,
    SeededSampler,
)
from dpledger.mechanisms.protocols import EventSink, FloatArray
from dpledger.solvers import Centring, ConsensusDpAdmm
from dpledger.solvers.solver import ModelSolver

from ..solvers.test_across_parties import RowByRow

NAMES = ("north", "east", "south", "west")
RECORDS, WIDTH, SEED = 40, 4, 11
SHAPE = DataShape(NAMES, RECORDS, WIDTH, 1.0, Adjacency.REPLACE_ONE, party_counts=(RECORDS,) * 4)
POLICY = Policy(
    epsilon=100.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, algorithms=("consensus-admm",)
)


def solver(rounds: int = 4) -> ConsensusDpAdmm:
    return ConsensusDpAdmm(
        rounds, 2.0, 4.0, momentum=0.5, metric=Centring(column=WIDTH - 1, scaling=True)
    )


def plan_of(chosen: ModelSolver | None = None, *, configuration: str = "c" * 64) -> FederatedPlan:
    return federated_plan(
        solver() if chosen is None else chosen,
        SHAPE,
        delta=1e-5,
        algorithm="consensus-admm",
        configuration=configuration,
    )


def records(party: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng((5, party))
    rows = rng.normal(size=(RECORDS, WIDTH))
    rows *= 0.6 / np.linalg.norm(rows, axis=1, keepdims=True)
    labels = np.where(rows[:, 0] > 0, 1.0, -1.0)
    rows[:, -1] = 0.7
    return rows, labels


def local_data(party: int) -> LocalDataset:
    return LocalDataset(SHAPE, (NAMES[party],), *records(party))


def party_in(
    folder: Path,
    number: int,
    *,
    sampler: Sampler | None = None,
    policy: Policy = POLICY,
    mu_squared: float | None = None,
) -> Party:
    """Return a party whose files are in a folder of its own, which is made."""
    own = folder / NAMES[number]
    own.mkdir(parents=True, exist_ok=True)
    ledger = SqliteLedger(own / "ledger.sqlite")
    if mu_squared is not None and ledger.budget is None:
        ledger.set_budget(Budget(Gdp(mu_squared), Adjacency.REPLACE_ONE))
    return Party(
        name=NAMES[number],
        dataset=local_data(number),
        sampler=seeded(number) if sampler is None else sampler,
        ledger=ledger,
        journal=Journal(own / "journal.sqlite"),
        policy=policy,
    )


def seeded(party: int) -> SeededSampler:
    return SeededSampler.stream(SEED, party)


def one_process(chosen: ModelSolver, sink: EventSink) -> Any:
    """Return the state that one process with all records and samplers comes to."""
    parts = [records(party) for party in range(len(NAMES))]
    whole = PrivateDataset(
        np.concatenate([rows for rows, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=1.0,
        party_of=np.repeat(np.arange(len(NAMES)), RECORDS),
        parties=NAMES,
        party_counts=(RECORDS,) * len(NAMES),
    )
    noise = RowByRow([seeded(party) for party in range(len(NAMES))], (RECORDS,) * len(NAMES))
    return chosen.solve(whole, SamplingCurator(sink, noise))
