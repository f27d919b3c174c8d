"""Federations of files that one process reads."""

from fractions import Fraction
from pathlib import Path

import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.notions import ApproxDp, Rdp
from dpledger.data.strict import ConfigurationError
from dpledger.federation import verify_federation
from dpledger.mechanisms import Adjacency, InvalidParameter
from dpledger.mechanisms.sampling import ExactSampler
from dpledger.runs.federation import Engine, federate
from dpledger.runs.federation_files import Participant

SCHEMA = """
row_bound = 1.0
columns = [
  {kind = "numeric", name = "age", lower = 0.0, upper = 100.0},
  {kind = "label", name = "back", positive = ["yes"], negative = ["no"]},
]
"""
RUN = """
[federation]
parties = ["a", "b"]
records = [60, 60]
schema = "schema.toml"
[privacy]
adjacency = "replace-one"
noise_multiplier = 20.0
delta = 1e-5
[solver]
algorithm = "dp-admm"
rounds = 2
"""
PARTY = """
[party]
name = "{name}"
run = "run.toml"
files = ["{name}.csv"]
folder = "{name}"
[noise]
sampler = "system"
[policy]
epsilon = 5.0
delta = 1e-5
adjacency = "replace-one"
algorithms = ["dp-admm", "dp-sgd"]
threat_models = ["per-party", "summed"]
"""


def written(folder: Path, run: str, held: dict[str, list[str]]) -> tuple[Path, ...]:
    """Write a federation's files, and return those of its parties."""
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "run.toml").write_text(run)
    for name, rows in held.items():
        (folder / f"{name}.csv").write_text("\n".join(["age,back", *rows, ""]))
        (folder / f"{name}.toml").write_text(PARTY.format(name=name))
    return tuple(folder / f"{name}.toml" for name in held)


def rows(first: int, often: int) -> list[str]:
    """Sixty records of people from an age on, every third or so another label."""
    return [f"{first + k / 2},{'yes' if k % often else 'no'}" for k in range(60)]


def test_hidden_batches_run_across_parties_and_not_on_sums(tmp_path: Path) -> None:
    descent = 'algorithm = "dp-sgd"\nsteps = "constant"\nstep_size = 1.0\nbatch = 9'
    run = RUN.replace('algorithm = "dp-admm"', descent).replace("replace-one", "zero-out-one")
    parties = written(tmp_path, run, {"a": rows(20, 3), "b": rows(30, 4)})
    for path in parties:
        path.write_text(path.read_text().replace("replace-one", "zero-out-one"))

    def federated(out: str) -> None:
        federate(
            tmp_path / "run.toml", engine=Engine.IN_PROCESS, out=tmp_path / out, parties=parties
        )

    federated("out")
    found = verify_federation(tmp_path / "out")
    assert set(found.parties) == {"a", "b"}
    assert found.same_model
    sums = run.replace("schema =", 'threat_model = "summed"\nschema =')
    (tmp_path / "run.toml").write_text(sums)
    with pytest.raises(ConfigurationError, match="batch=9 must be left out"):
        federated("sums")


def test_parties_of_one_process_that_hold_the_same_records_are_refused(tmp_path: Path) -> None:
    """One file under two names: a record would pay for one party's messages, and be in both's."""
    parties = written(tmp_path, RUN, {"a": rows(20, 3), "b": rows(20, 3)[::-1]})

    def run() -> None:
        federate(
            tmp_path / "run.toml", engine=Engine.IN_PROCESS, out=tmp_path / "out", parties=parties
        )

    with pytest.raises(InvalidParameter, match=r"'a', 'b'.*the same"):
        run()
    written(tmp_path, RUN, {"b": rows(30, 4)})
    run()
    assert (tmp_path / "out" / "federation.json").exists()


def test_parties_that_chose_one_seed_have_different_noise(tmp_path: Path) -> None:
    """Secret as it may be: the difference of two messages would have no noise at all."""
    paths = written(tmp_path, RUN, {"a": rows(20, 3), "b": rows(30, 4)})
    words: list[list[int]] = []
    for path in (*paths, paths[0]):
        own = path.read_text().replace('sampler = "system"', 'sampler = "philox"\nseed = 7')
        path.write_text(own)
        with Participant.read(path).opened() as party:
            assert isinstance(party.sampler, ExactSampler)
            words.append(party.sampler.words(8).tolist())
    assert words[0] == words[2]
    assert not set(words[0]) & set(words[1])


@pytest.mark.parametrize(("later", "refused"), [(4.0, False), (1.0, True)])
def test_a_budget_that_was_lowered_in_a_file_is_not_passed_over(
    tmp_path: Path, later: float, refused: bool
) -> None:
    """The ledger keeps what it got at first: a larger number changes nothing, a smaller one cannot
    be kept.
    """
    run = (tmp_path / "run.toml", Engine.IN_PROCESS)
    parties = written(tmp_path, RUN, {"a": rows(20, 3), "b": rows(30, 4)})
    parties[0].write_text(parties[0].read_text() + "budget = 3.0\n")
    federate(run[0], engine=run[1], out=tmp_path / "first", parties=parties)
    parties[0].write_text(parties[0].read_text().replace("budget = 3.0", f"budget = {later}"))
    if refused:
        with pytest.raises(ConfigurationError, match=r"policy\.budget"):
            federate(run[0], engine=run[1], out=tmp_path / "second", parties=parties)
    else:
        federate(run[0], engine=run[1], out=tmp_path / "second", parties=parties)
    with SqliteLedger(tmp_path / "a" / "ledger.sqlite", read_only=True) as ledger:
        assert len(ledger.runs()) == 2 - refused
        assert ledger.budget is not None
        assert ledger.budget.notion == ApproxDp(3.0, 1e-5)


def test_a_budget_in_another_unit_than_the_ledgers_is_not_passed_over(tmp_path: Path) -> None:
    parties = written(tmp_path, RUN, {"a": rows(20, 3), "b": rows(30, 4)})
    parties[0].write_text(parties[0].read_text() + "budget = 0.5\n")
    (tmp_path / "a").mkdir()
    kept = Budget(Rdp(Fraction(8), Fraction(50)), Adjacency.REPLACE_ONE)
    SqliteLedger.create(tmp_path / "a" / "ledger.sqlite", kept)
    with pytest.raises(ConfigurationError, match=r"policy\.budget=.* must be left out"):
        federate(tmp_path / "run.toml", engine=Engine.IN_PROCESS, out=tmp_path, parties=parties)
