"""Federations of files that one process reads."""

from pathlib import Path

import pytest

from dpledger.mechanisms import InvalidParameter
from dpledger.runs.federation import Engine, federate

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
algorithms = ["dp-admm"]
"""


def test_parties_of_one_process_that_hold_the_same_records_are_refused(tmp_path: Path) -> None:
    """One file under two names: a record would pay for one party's messages, and be in both's."""
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "run.toml").write_text(RUN)
    rows = [f"{20 + k / 2},{'yes' if k % 3 else 'no'}" for k in range(60)]
    for name, held in (("a", rows), ("b", rows[::-1])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["age,back", *held, ""]))
        (tmp_path / f"{name}.toml").write_text(PARTY.format(name=name))
    parties = (tmp_path / "a.toml", tmp_path / "b.toml")

    def run() -> None:
        federate(
            tmp_path / "run.toml", engine=Engine.IN_PROCESS, out=tmp_path / "out", parties=parties
        )

    with pytest.raises(InvalidParameter, match=r"'a', 'b'.*the same"):
        run()
    other = [f"{30 + k / 2},{'no' if k % 3 else 'yes'}" for k in range(60)]
    (tmp_path / "b.csv").write_text("\n".join(["age,back", *other, ""]))
    run()
    assert (tmp_path / "out" / "federation.json").exists()
