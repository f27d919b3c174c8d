"""Run files of federations of columns: what they say is planned, what they get wrong is said."""

from pathlib import Path

import numpy as np
import pytest

from dpledger.data.errors import DataError
from dpledger.data.strict import ConfigurationError
from dpledger.federation import Coordinator, Journal, run_in_process
from dpledger.mechanisms import InvalidParameter
from dpledger.runs.federation_columns import ColumnsFederation
from dpledger.runs.federation_files import Participant, read_federation

SCHEMA = """
row_bound = 1.0
columns = [
    {kind = "numeric", name = "a", lower = 0, upper = 1},
    {kind = "categorical", name = "b", categories = ["x", "y"]},
    {kind = "label", name = "c", positive = ["yes"], negative = ["no"]},
]
"""
RUN = """
[federation]
parties = ["one", "two"]
records = 6
schema = "schema.toml"
labels = "public"
columns = {one = ["a"], two = ["b"]}
[privacy]
adjacency = "replace-one"
epsilon = 50.0
delta = 1e-5
[solver]
algorithm = "opinion-pool"
rounds = 3
"""
PARTY = """
[party]
name = "NAME"
run = "run.toml"
files = ["NAME.csv"]
folder = "NAME"
[noise]
sampler = "philox"
seed = 3
[policy]
epsilon = 50.0
delta = 1e-5
adjacency = "replace-one"
algorithms = ["opinion-pool", "sharing"]
"""
ONE = ["a,c", "0.1,no", "0.9,yes", "0.2,no", "0.8,yes", "0.7,yes", "0.3,no"]
TWO = ["b,c", "x,no", "y,yes", "x,no", "y,yes", "y,yes", "x,no"]


def written(folder: Path, *, run: str = RUN, one: list[str] = ONE, two: list[str] = TWO) -> Path:
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "run.toml").write_text(run)
    for name, lines in (("one", one), ("two", two)):
        (folder / f"{name}.toml").write_text(PARTY.replace("NAME", name))
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder


def models(folder: Path) -> list[np.ndarray]:
    plan, _ = read_federation(folder / "run.toml").plan()
    coordinator = Coordinator(plan, Journal(folder / "coordinator"), patience=20.0)
    one, two = (Participant.read(folder / f"{name}.toml") for name in ("one", "two"))
    with one.opened() as first, two.opened() as second:
        return [took.state.model for took in run_in_process([first, second], plan, coordinator)]


@pytest.mark.parametrize("public", [True, False])
def test_parties_with_columns_end_with_one_model(public: bool, tmp_path: Path) -> None:
    run, one, two = RUN, ONE, TWO
    if not public:
        run = RUN.replace('"public"', '"two"').replace('"opinion-pool"\nrounds = 3', '"sharing"')
        one = [line.partition(",")[0] for line in ONE]  # who does not know labels has no column
    first, second = models(written(tmp_path, run=run, one=one, two=two))
    assert first.shape == (3,)
    np.testing.assert_array_equal(first, second)


def test_the_plan_says_who_holds_what(tmp_path: Path) -> None:
    found = read_federation(written(tmp_path) / "run.toml")
    assert isinstance(found, ColumnsFederation)
    assert found.shape.features == (1, 2)
    subjects = {found.plan()[0].subject}
    for old, new in (('"public"', '"one"'), ("records = 6", "records = 7"), ("= 50.0", "= 40.0")):
        run = RUN.replace(old, new).replace('"opinion-pool"\nrounds = 3', '"sharing"')
        subjects.add(read_federation(written(tmp_path, run=run) / "run.toml").plan()[0].subject)
    assert len(subjects) == 4
    moved = RUN.replace('labels = "public"', 'labels = "public"\naddress = "10.0.0.1:99"')
    assert read_federation(written(tmp_path, run=moved) / "run.toml").sha256 == found.sha256


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('two = ["b"]', 'two = ["b", "a"]', "every feature once"),
        ('two = ["b"]', "two = []", "every feature once"),
        ('one = ["a"], two = ["b"]', 'one = ["a", "b"]', "each of parties"),
        ('"public"', '"nobody"', "one of parties"),
        ('"public"', '"one"', 'algorithm = "sharing"'),
        ("records = 6", "records = 0", "records=0"),
        ("rounds = 3", "rounds = 3\nclip = 1.0", "clip"),
    ],
)
def test_what_a_run_file_gets_wrong_is_said(old: str, new: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=what):
        read_federation(written(tmp_path, run=RUN.replace(old, new)) / "run.toml")


def test_files_that_do_not_fit_the_plan_are_refused(tmp_path: Path) -> None:
    for two, error in (
        (TWO[:-1], InvalidParameter),
        ([*TWO[:-1], ",no"], DataError),
        ([*TWO[:-1], "z,no"], DataError),
        (["b", *(line.partition(",")[0] for line in TWO[1:])], DataError),
    ):
        party = Participant.read(written(tmp_path, two=two) / "two.toml")
        with pytest.raises(error), party.opened():
            pass
