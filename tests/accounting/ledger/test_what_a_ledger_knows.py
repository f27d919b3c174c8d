"""What a ledger knows of its noise stands beside every epsilon of it."""

from pathlib import Path
from typing import Any

import pytest

from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.ledger.proofs import certificate_of, proved_of_ledger
from dpledger.accounting.numbers.notions import Gdp
from dpledger.accounting.proof.certificate import certify
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import PromisedEpsilon
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DpledgerError,
    Event,
    GaussianStep,
    declared,
)
from dpledger.mechanisms.protocols import Provenance

Node = dict[str, Any]
Step = tuple[str, dict[str, Any], list[int]]


PARTIES = ("north", "south")


def released(parties: tuple[str, ...], relation: Adjacency = Adjacency.REPLACE_ONE) -> Event:
    step = GaussianStep(declared(1, "example", adjacency=relation), noise_std=4.0)
    return Event(step, Context(parties, 1, "model", Audience.PUBLIC))


# --- ledgers ------------------------------------------------------------------------------------


# once: 1,000 trials of known noise pass for one release
def test_a_certificate_of_a_ledger_says_what_its_noise_was() -> None:
    with MemoryLedger() as ledger:
        run = ledger.run("run", configuration_hash="hash", plan=[released(PARTIES)])
        run.reserve([released(PARTIES)], Provenance("PCG64", 7, trials=1000))
        honest = certificate_of(ledger, delta=1e-5).to_json_bytes()
        assert any("simulation" in each for each in proved_of_ledger(honest, ledger).assumptions)
        silent = certify(ledger.joint_events(), delta=1e-5).to_json_bytes()
        with pytest.raises(DpledgerError):
            proved_of_ledger(silent, ledger)


# once: the rows were in the -wal file alone
def test_a_closed_ledger_is_one_file(tmp_path: Path) -> None:
    writer = SqliteLedger(tmp_path / "ledger.sqlite")
    writer.run("run", configuration_hash="hash").reserve(
        [released(PARTIES)], Provenance("system", None)
    )
    with SqliteLedger(tmp_path / "ledger.sqlite", read_only=True) as reader:
        assert reader.verify().rows == 2
        writer.close()
    (tmp_path / "copy.sqlite").write_bytes((tmp_path / "ledger.sqlite").read_bytes())
    with SqliteLedger(tmp_path / "copy.sqlite", read_only=True) as copy:
        assert copy.verify().rows == 2


# once: a ledger that was moved after a kill had its budget back
def test_what_was_reserved_is_in_the_file_while_it_is_open(tmp_path: Path) -> None:
    path, moved = tmp_path / "ledger.sqlite", tmp_path / "moved.sqlite"
    writer = SqliteLedger(path)
    writer.set_budget(Budget(Gdp(1), Adjacency.REPLACE_ONE))
    run = writer.run("run", configuration_hash="hash")
    for spent in range(1, 4):
        run.reserve([released(PARTIES)], Provenance("system", None))
        # as a move of the one file after a kill leaves it: without the log beside it
        moved.write_bytes(path.read_bytes())
        with SqliteLedger(moved, read_only=True) as copy:
            assert copy.budget == writer.budget
            assert len(copy.events()) == spent
        moved.unlink()
    writer.close()


# once: a thousand messages for the price of one, or noise from a written seed, and HOLDS
@pytest.mark.parametrize(
    "provenance", [Provenance("PCG64", 7, trials=1000), Provenance("numpy", 7, simulation=True)]
)
def test_no_promise_holds_of_a_ledger_of_trials(provenance: Provenance) -> None:
    with MemoryLedger() as ledger:
        run = ledger.run("run", configuration_hash="hash", plan=[released(PARTIES)])
        run.reserve([released(PARTIES)], provenance)
        found = judge_ledger(ledger, PromisedEpsilon(1.0, 1e-5))
        assert found.finding.verdict is not ClaimVerdict.HOLDS
