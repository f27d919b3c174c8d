"""What prices of runs, histories and cut batches rest on is said where promises are judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dpledger as dp
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import (
    PromisedEpsilon,
)
from dpledger.audits.outcomes.claims import promise_outcome
from dpledger.interop.files import import_into
from dpledger.mechanisms import Adjacency
from dpledger.runs import DEMO
from dpledger.runs.claims import judge_claim_file, judge_foreign_file

REPLACE = Adjacency.REPLACE_ONE


@pytest.fixture
def persons(tmp_path: Path) -> Path:
    """The demo's run for persons with up to three records, in a folder."""
    text = Path(DEMO).read_text()
    assert "[privacy]" in text
    person = text.replace("[privacy]", '[privacy]\nunit = "person"\nrecords_per_unit = 3', 1)
    (tmp_path / "run.toml").write_text(person)
    (tmp_path / "record.toml").write_text(text)
    return tmp_path


CLAIM = """
title = "our model"
{stated}
tuning = "on public data"
preprocessing = "none"
run = "{run}"
[promise]
epsilon = {epsilon}
delta = 1e-5
"""


def test_the_court_names_what_the_plan_of_a_run_takes_for_granted(persons: Path) -> None:
    """The demo's seed of noise stands in the file beside the claim."""
    file = persons / "claim.toml"
    stated = 'adjacency = "replace-one"\nunit = "a record"'
    file.write_text(CLAIM.format(stated=stated, run="record.toml", epsilon=1.0))
    text = promise_outcome(judge_claim_file(file)).text
    planned = dp.plan(persons / "record.toml").guarantee.assumptions
    assert any("seed is secret" in each for each in planned)
    assert "seed" in text


def test_the_court_of_a_ledger_names_what_an_imported_history_takes_for_granted(
    tmp_path: Path,
) -> None:
    """As it does where the same file is judged by itself."""
    file = tmp_path / "opacus.json"
    file.write_text(json.dumps({"history": [[1.0, 0.01, 10]], "mechanism": "rdp"}))
    with dp.Ledger(tmp_path / "ledger.sqlite") as ledger:
        import_into(ledger, "opacus", file, adjacency=Adjacency.ADD_REMOVE_ONE)
        promise = PromisedEpsilon(2.0, 1e-5)
        text = promise_outcome(judge_ledger(ledger, promise)).text
    alone = judge_foreign_file("opacus", file, promise, adjacency=Adjacency.ADD_REMOVE_ONE)
    words = "samples are drawn afresh, as stated, and stay hidden"
    assert words in promise_outcome(alone).text
    assert words in text


def test_a_promise_for_truncated_batches_is_not_said_to_be_too_small(tmp_path: Path) -> None:
    """`dp.epsilon` encloses the epsilon of the same run far below the promise."""
    run = {"noise_multipliers": 1.1, "num_samples": 60000, "batch_size": 256, "num_updates": 1000}
    file = tmp_path / "run.json"
    file.write_text(json.dumps({**run, "sampling_method": "POISSON", "truncated_batch_size": 512}))
    found = dp.epsilon(
        noise_multiplier=1.1,
        records=60000,
        batch=256,
        steps=1000,
        delta=1e-5,
        sampling="truncated-poisson",
        largest_batch=512,
        adjacency="add-remove-one",
    )
    promise = PromisedEpsilon(1.2 * found.epsilon, 1e-5)
    told = judge_foreign_file("jax-privacy", file, promise, adjacency=Adjacency.ADD_REMOVE_ONE)
    assert told.finding.verdict.value in ("holds", "undecided")
    assert told.finding.true is not None
    assert told.finding.true.lower_float <= found.epsilon
