"""Federations of files that one process reads."""

from fractions import Fraction
from pathlib import Path

import pytest

from dpledger.accounting.ledger import SqliteLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.notions import ApproxDp, Rdp
from dpledger.data.strict import ConfigurationError
from dpledger.federation import verify_federation
from dpledger.federation.journal import Journal, JournalError
from dpledger.mechanisms import Adjacency, InvalidParameter
from dpledger.mechanisms.sampling import ExactSampler
from dpledger.runs.federation import Engine, federate
from dpledger.runs.federation_files import Participant
from dpledger.runs.training import new_folder

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


def federation_of_two(folder: Path, run: str = RUN) -> tuple[Path, ...]:
    """Write the files of a federation of a and b."""
    folder.mkdir(exist_ok=True)
    return written(folder, run, {"a": rows(0, 60), "b": rows(7, 60)})


def contents(folder: Path) -> dict[str, bytes]:
    """Return what the files of a folder hold, but for its journal."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if not p.name.startswith("journal")}


def test_a_folder_is_of_one_federation_and_parties_keep_what_they_had(tmp_path: Path) -> None:
    """Tried: another plan in a coordinator's folder, with the parties' folders shared."""
    run, out = tmp_path / "run.toml", tmp_path / "together"
    parties = federation_of_two(tmp_path)
    federate(run, engine=Engine.IN_PROCESS, out=out, parties=parties)
    first, had = contents(out), contents(tmp_path / "a")
    # once more is the same run
    federate(run, engine=Engine.IN_PROCESS, out=out, parties=parties)
    assert contents(out) == first
    assert contents(tmp_path / "a")["model.npy"] == had["model.npy"]
    parties = federation_of_two(tmp_path, RUN.replace("20.0", "30.0"))
    with pytest.raises(JournalError, match="of this plan alone"):
        federate(run, engine=Engine.IN_PROCESS, out=out, parties=parties)
    assert contents(out) == first
    federate(run, engine=Engine.IN_PROCESS, out=tmp_path / "other", parties=parties)
    held = contents(tmp_path / "a")
    assert held["model.1.npy"] == had["model.npy"] != held["model.npy"]
    assert held["certificate.1.json"] == had["certificate.json"]
    assert len(had) + 2 == len(held)


def test_no_run_goes_into_the_folder_of_a_federation_that_broke_off(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite"):
        pass
    with pytest.raises(FileExistsError):
        new_folder(tmp_path, "run", first="configuration.toml")


def test_a_ledger_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with SqliteLedger(path) as ledger:
        ledger.set_budget(Budget(ApproxDp(1, 1e-5), Adjacency.REPLACE_ONE))
    before = path.read_bytes()
    with pytest.raises(JournalError, match="must be free and a journal"):
        Journal(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("anchor", ["a/certificate.json", "a/model.npy", "together/model.npy"])
def test_an_anchor_is_none_of_the_files_that_are_written(tmp_path: Path, anchor: str) -> None:
    parties = federation_of_two(tmp_path)
    parties[0].write_text(
        parties[0].read_text().replace("folder =", f'anchor = "{anchor}"\nfolder =')
    )
    with pytest.raises(ConfigurationError, match="anchor"):
        federate(
            tmp_path / "run.toml",
            engine=Engine.IN_PROCESS,
            out=tmp_path / "together",
            parties=parties,
        )
    assert not (tmp_path / anchor).exists()
