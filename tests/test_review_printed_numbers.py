"""Numbers in words are on the safe side of what they stand for: bounds above, remainders below."""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import MemoryLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.interop.dp_events import mechanisms_of_tree
from dpledger.interop.event_trees import EventTree
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    PrivateDataset,
    declared,
)
from dpledger.runs.training import new_folder
from dpledger.solvers import Logistic

ADD = Adjacency.ADD_REMOVE_ONE


@given(st.fractions(Fraction(1, 10**9), 10**9, max_denominator=10**12))
def test_a_printed_sensitivity_is_not_below_the_bound(bound: Fraction) -> None:
    """Six digits to the nearest were below it half of the time."""
    (line,) = declared(bound, "a test", adjacency=ADD).derivation.lines()
    printed = Fraction(line.rsplit(": ", 1)[1])
    assert bound <= printed <= bound * (1 + Fraction(1, 10**5))


def test_a_private_value_shows_no_less_than_a_record_moves_it() -> None:
    rows = PrivateDataset(np.eye(3), np.ones(3), row_bound=1.0, adjacency="zero-out-one")
    value = rows.mean_gradient(Logistic(), np.zeros((1, 3)))
    (printed,) = re.findall(r"sensitivity ([\d.e+-]+)", repr(value))
    assert Fraction(printed) >= value.sensitivity.root


def test_what_a_budget_refuses_is_said_on_the_safe_side() -> None:
    generator = np.random.default_rng(5)
    for _ in range(12):
        limit = float(generator.uniform(0.5, 2.0))
        step = GaussianStep(declared(1, "a test", adjacency=ADD), float(generator.uniform(8, 12)))
        event = Event(step, Context((), 1, "x", Audience.PUBLIC))
        ledger = MemoryLedger()
        ledger.set_budget(Budget(ApproxDp(limit, 1e-5), ADD))
        run = ledger.run("run", configuration_hash="0" * 64)
        run.step(event)
        dear = Event(GaussianStep(declared(1, "a test", adjacency=ADD), 1.0), event.context)
        with pytest.raises(BudgetExceeded) as refused:
            run.step(dear)
        said = re.findall(
            r"[\d.]+(?=(?: in all| is spent| was asked| remains))", str(refused.value)
        )
        most, spent, _, left = (float(number) for number in said)
        exact = guarantee([event], delta=1e-5).epsilon
        assert most <= limit
        assert exact.lower_float <= spent <= exact.upper_float * (1 + 1e-5)
        assert left <= limit - exact.lower_float


def test_a_cut_sample_of_nobody_is_one_of_the_neighbours_record() -> None:
    """It cost nothing: the neighbour with one record more was forgotten."""
    fields = {
        "dataset_size": 0,
        "sampling_probability": 1.0,
        "truncated_batch_size": 5,
        "noise_multiplier": 0.1,
    }

    def epsilon(name: str, fields: Mapping[str, Any]) -> float:
        tree = EventTree(name, fields)
        listed = [
            Event(each, Context((), 1, "x", Audience.PUBLIC))
            for each in mechanisms_of_tree(tree, adjacency=ADD, sensitivity=1)
        ]
        return guarantee(listed, delta=1e-5).epsilon.upper_float

    cut = epsilon("TruncatedSubsampledGaussianDpEvent", fields)
    assert cut == pytest.approx(epsilon("GaussianDpEvent", {"noise_multiplier": 0.1}), rel=1e-9)


def test_runs_of_one_second_have_folders_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads of one process got one folder, and the files of one run were gone."""
    monkeypatch.chdir(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: new_folder(None, "run"), range(24)))
    assert len(folders) == 24
    assert all(folder.is_dir() for folder in folders)
