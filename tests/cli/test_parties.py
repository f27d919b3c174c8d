"""Parties of unequal sizes: public least numbers of records, and noise for each one's own."""

from pathlib import Path

import numpy as np
import pytest

from dpledger.mechanisms import GaussianStep
from dpledger.runs.configuration import read_configuration
from dpledger.runs.planning import planned_events

from ..golden.commands import SCHEMA
from .conftest import Call, edited

HOSPITALS = ("north", "south", "west")
DEALT = "parties = 4"
SHARED, OWN = "party_records = 5", "party_records = [18, 10, 5]"
SOLVER = 'algorithm = "dp-admm"\nrounds = 6\ndistance = 5.0'
STEPS = SOLVER.replace("distance = 5.0", 'steps = "constant"\nstep_size = 0.5')
# the step's scale at the default penalty
SCALE = 1 / (0.1 + 1 / 0.5)


@pytest.fixture
def hospitals(folder: Path) -> Path:
    """The folder, every person with a hospital: 32 north, 18 south, 10 west."""
    lines = (folder / "people.csv").read_text().splitlines()
    hospitals = np.repeat(HOSPITALS, (32, 18, 10))
    rows = [f"{line},{hospital}" for line, hospital in zip(lines[1:], hospitals, strict=True)]
    (folder / "people.csv").write_text("\n".join([lines[0] + ",hospital", *rows]) + "\n")
    column = '    {kind = "party", name = "hospital", parties = ["north", "south", "west"]},\n]'
    (folder / "people.toml").write_text(SCHEMA.rstrip().removesuffix("]") + column)
    return folder


@pytest.mark.parametrize("solver", ["pvp-admm", "pr-admm"])
def test_exact_minimisers_have_noise_of_their_own_as_well(
    call: Call, hospitals: Path, solver: str
) -> None:
    network = '\nnetwork = "complete"' if solver == "pr-admm" else ""
    path = edited(
        hospitals,
        (DEALT, OWN),
        (SOLVER, SOLVER.replace("dp-admm", solver) + network),
        ("trials = 40", "trials = 500\nparties = 3"),
        ("epsilon = 2.0", "noise_multiplier = 1.0"),
    )
    out = hospitals / "out"
    answer = call("run", path, "--out", out, "--no-baselines", "--no-crosscheck", "--json")
    # 1 if the attack, on a record of the largest party, found too little noise
    assert answer.status == 0, answer.err
    assert answer.data["plan_equals_run"] is True
    verified = call("verify", out / "certificate.json", "--ledger", out / "ledger.sqlite", "--json")
    assert (verified.status, verified.data["verdict"]) == (0, "proved")


@pytest.mark.parametrize("records", [SHARED, OWN], ids=["shared", "own"])
def test_a_run_of_unequal_parties_is_what_was_planned(
    call: Call, hospitals: Path, records: str
) -> None:
    path, out = edited(hospitals, (DEALT, records), (SOLVER, STEPS)), hospitals / "out"
    configuration = read_configuration(path)
    step = planned_events(configuration, configuration.solvers.noisy(3.0))[0].mechanism
    assert isinstance(step, GaussianStep)
    # what is priced is the smallest party, whether or not the others have noise of their own
    # rounding and the lattice are priced: less than a millionth part
    assert 1 <= step.sensitivity.value / (2 / 5 * SCALE) < 1 + 1e-6
    answer = call("run", path, "--out", out, "--no-crosscheck", "--json")
    assert answer.status == 0, answer.err
    assert answer.data["plan_equals_run"] is True
    verified = call("verify", out / "certificate.json", "--ledger", out / "ledger.sqlite", "--json")
    assert (verified.status, verified.data["verdict"]) == (0, "proved")


def test_a_plan_says_that_homes_of_records_are_public_where_they_are_a_column(
    call: Call, hospitals: Path
) -> None:
    words = "which party holds which record is public, and neighbours agree in it"
    for changes, stated in (((DEALT, OWN),), True), ((), False):
        planned = call("plan", edited(hospitals, *changes), "--json")
        assert planned.status == 0, planned.err
        assert (words in planned.data["guarantee"]["assumptions"]) is stated


def test_the_attack_on_a_large_party_measures_what_its_own_noise_costs(
    call: Call, hospitals: Path
) -> None:
    visible = {}
    for records in (SHARED, OWN):
        noise = ("epsilon = 2.0", "noise_multiplier = 1.0")
        path = edited(hospitals, (DEALT, records), (SOLVER, STEPS), noise)
        answer = call("attack", path, "--trials", 2000, "--json")
        assert answer.status == 0, answer.err
        visible[records] = answer.data["share"] * answer.data["claimed_mu"]
        measured = answer.data["measured_mu"]
        assert measured["lower"] < visible[records] < measured["upper"] < 2 * visible[records]
    # the north's noise is for the 18 records that it is known to have, and not for the west's 5
    assert visible[OWN] == pytest.approx(18 / 5 * visible[SHARED])


@pytest.mark.parametrize(
    ("records", "words"),
    [
        ("party_records = 11", "records of party 'west'"),
        ("party_records = [40, 10, 5]", "data.party_records=40 records of party 'north'"),
        ("party_records = [10, 5]", "one number, or 3 for the parties"),
        ("party_records = []", "one number, or 3 for the parties"),
        ("party_records = [10, 5, 0]", "party_records=0 must be in [1, inf)"),
        ("party_records = 0", "party_records=0 must be in [1, inf)"),
    ],
)
def test_parties_that_are_smaller_than_planned_spend_nothing(
    call: Call, hospitals: Path, records: str, words: str
) -> None:
    answer = call("run", edited(hospitals, (DEALT, records)), "--out", hospitals / "out")
    assert answer.status == 2
    assert words in answer.err
    assert not (hospitals / "out").exists()


def test_records_that_cannot_be_dealt_equally_are_attacked_all_the_same(
    call: Call, folder: Path
) -> None:
    # 13 records for two parties, 12 for two: 12 are what the plan knows of
    answer = call("attack", edited(folder, ("train_records = 48", "train_records = 50")), "--json")
    assert answer.status == 0, answer.err
