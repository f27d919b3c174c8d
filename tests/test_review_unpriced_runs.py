"""A ledger with a run without a price, or of another relation: the others are judged."""

import json
from pathlib import Path

import pytest

from dpledger.accounting.composition import UnpricedMechanism
from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import PromisedEpsilon
from dpledger.audits.watching import Look, Watcher
from dpledger.interop import import_into
from dpledger.interop.dp_events import Untranslatable, tree_of_mechanism
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    AdjacencyMismatch,
    Audience,
    Context,
    Event,
    GaussianStep,
    Mechanism,
    SampledWithoutReplacement,
    UnprotectedRelease,
    declared,
)

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE


def gaussian(adjacency: Adjacency) -> GaussianStep:
    return GaussianStep(declared(1, "a test", adjacency=adjacency), 5.0)


WITHOUT_A_RULE = SampledWithoutReplacement(gaussian(ADD), 10, 100)


def released(ledger: MemoryLedger | SqliteLedger, run: str, mechanism: Mechanism) -> None:
    event = Event(mechanism, Context((), 1, run, Audience.PUBLIC))
    with ledger.run(run, configuration_hash="0" * 64, plan=[event]) as opened:
        opened.step(event)


@pytest.mark.parametrize("first", [WITHOUT_A_RULE, gaussian(REPLACE)], ids=["no rule", "relation"])
def test_a_watch_looks_at_the_runs_after_one_that_cannot_be_priced(
    tmp_path: Path, first: Mechanism
) -> None:
    """It ended at such a run, at every look, and missed what was released unprotected later."""
    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path) as ledger:
        released(ledger, "first", first)
        released(ledger, "second", gaussian(ADD))
        released(ledger, "third", UnprotectedRelease("the whole table, by mistake"))
    looks: list[Look] = []
    watcher = Watcher(path, tmp_path / "memory.json", (), 1e-5, most_runs=10)
    watcher.step(looks.append)
    findings = {audit.run: audit.findings for audit in looks[0].audits}
    assert findings["third"] == ("unprotected: the whole table, by mistake",)
    assert not findings["second"]
    if first is WITHOUT_A_RULE:
        assert findings["first"][0].startswith("no epsilon: Expected this kind of sampling")
    watcher.step(looks.append)
    assert not looks[1].audits


def test_runs_of_two_relations_are_asked_about_one_by_one() -> None:
    ledger = MemoryLedger()
    released(ledger, "one", gaussian(ADD))
    released(ledger, "two", gaussian(REPLACE))
    for asked in (lambda: ledger.guarantee(delta=1e-5), ledger.spent, ledger.joint_events):
        with pytest.raises(AdjacencyMismatch, match=r"ask about one \(--run\)"):
            asked()
    assert ledger.guarantee("two", delta=1e-5).adjacency is REPLACE


def test_what_no_rule_prices_is_undecided_and_no_error() -> None:
    ledger = MemoryLedger()
    released(ledger, "one", WITHOUT_A_RULE)
    judged = judge_ledger(ledger, PromisedEpsilon(3.0, 1e-5))
    assert judged.finding.verdict is ClaimVerdict.UNDECIDED
    (cross,) = (each for each in judged.checks if each.name == "cross-check")
    assert cross.passed is None


def test_a_sum_of_very_many_samples_is_not_written_out_for_others() -> None:
    """The cross-check of such a ledger did not end."""
    with pytest.raises(Untranslatable, match="batches=501 must have 500 at most"):
        tree_of_mechanism(AccumulatedPoisson(gaussian(ADD), 0.01, 501))
    assert tree_of_mechanism(AccumulatedPoisson(gaussian(ADD), 0.01, 5)).fields


def test_what_no_rule_prices_is_not_imported(tmp_path: Path) -> None:
    """It was taken, and the whole ledger had no epsilon from then on."""
    module = "dp_accounting.dp_event"
    noise = {"module_name": module, "class_name": "GaussianDpEvent", "noise_multiplier": 20.0}
    batch = {
        "module_name": module,
        "class_name": "SampledWithoutReplacementDpEvent",
        "source_dataset_size": 100,
        "sample_size": 10,
        "event": noise,
    }
    ledger = MemoryLedger()
    for name, tree in (("noise", noise), ("batch", batch)):
        (tmp_path / name).write_text(json.dumps(tree))
    import_into(ledger, "dp-event", tmp_path / "noise", adjacency=ADD)
    before = ledger.guarantee(delta=1e-5).epsilon.upper_float
    with pytest.raises(UnpricedMechanism):
        import_into(ledger, "dp-event", tmp_path / "batch", adjacency=ADD)
    assert ledger.guarantee(delta=1e-5).epsilon.upper_float == before
