"""Every algorithm that a run file can name is planned, run, certified and attacked alike."""

from pathlib import Path

import numpy as np
import pytest

from .conftest import Call, edited

SOLVER = 'algorithm = "dp-admm"\nrounds = 6\ndistance = 5.0'
TRIALS = "trials = 40"
PARTIES = "parties = 4"

NETWORK = (
    (SOLVER, 'algorithm = "pr-admm"\nrounds = 6\nnetwork = "ring"'),
    (TRIALS, "trials = 40\nparties = 4"),
)
INNER = (
    (
        SOLVER,
        'algorithm = "ps-admm"\nrounds = 3\ninner_steps = 2\nsteps = "constant"\nstep_size = 2.0',
    ),
)
CENTRALISED = (
    (
        SOLVER,
        'algorithm = "centralised"\nrounds = 6\nsteps = "constant"\nstep_size = 4.0\n'
        "accelerated = true",
    ),
    (PARTIES, "parties = 1"),
)
DESCENT = (
    (SOLVER, 'algorithm = "dp-sgd"\nrounds = 6\nsteps = "constant"\nstep_size = 4.0\nclip = 0.5'),
)
BATCHES = (DESCENT[0], ("clip = 0.5", "batch = 4"))


@pytest.mark.parametrize(
    "changes",
    [NETWORK, INNER, CENTRALISED, DESCENT],
    ids=["pr", "ps", "centralised", "sgd"],
)
def test_a_repaired_algorithm_runs_from_plan_to_verified_certificate(
    call: Call, folder: Path, changes: tuple[tuple[str, str], ...]
) -> None:
    path, out = edited(folder, *changes), folder / "out"
    planned = call("plan", path, "--json")
    assert (planned.status, planned.data["events"]) == (0, 6)
    answer = call("run", path, "--out", out, "--no-crosscheck", "--json")
    assert answer.status == 0, answer.err
    assert answer.data["plan_equals_run"] is True
    assert 1.9999 < answer.data["guarantee"]["epsilon"]["upper"] <= 2.0
    assert answer.data["attack"]["trials"] == 40
    assert np.load(out / "model.npy").shape == (4,)
    verified = call("verify", out / "certificate.json", "--ledger", out / "ledger.sqlite", "--json")
    assert (verified.status, verified.data["verdict"]) == (0, "proved")


def test_hidden_batches_cost_less_than_all_records(call: Call, folder: Path) -> None:
    noise, out = ("epsilon = 2.0", "noise_multiplier = 5.0"), folder / "out"
    relation = ("replace-one", "zero-out-one")
    found = [
        call("plan", edited(folder, *changes, noise), "--json").data["guarantee"]["epsilon"]
        for changes in (DESCENT, BATCHES, (*BATCHES, relation))
    ]
    assert max(each["upper"] for each in found[1:]) < found[0]["lower"]
    path = edited(folder, *BATCHES, noise, relation)
    answer = call("run", path, "--out", out, "--no-crosscheck", "--no-baselines", "--json")
    assert answer.data["plan_equals_run"] is True
    # the claim under attack is that of the run: epsilon, where hidden samples leave no mu
    assert answer.data["attack"]["claimed_epsilon"] == found[2]["upper"]
    assert answer.data["attack"]["share"] is None
    verified = call("verify", out / "certificate.json", "--ledger", out / "ledger.sqlite", "--json")
    assert (verified.status, verified.data["verdict"]) == (0, "proved")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (((SOLVER, SOLVER + '\nnetwork = "ring"'),), "network with pr-admm"),
        (((SOLVER, 'algorithm = "pr-admm"\nrounds = 6'),), "network with pr-admm"),
        ((NETWORK[0],), "attack.parties=1 must be 4"),
        ((*NETWORK, (PARTIES, "parties = 1")), "2 parties or more with pr-admm"),
        (((SOLVER, NETWORK[0][1] + '\nregulariser = "l1"'), NETWORK[1]), "'l2' with pr-admm"),
        (((SOLVER, SOLVER + "\ninner_steps = 2"),), "inner_steps with ps-admm"),
        (((SOLVER, 'algorithm = "ps-admm"\nrounds = 3\ninner_steps = 2'),), "steps = 'constant'"),
        (((SOLVER, INNER[0][1].replace("_steps = 2", "_steps = 0")),), "inner_steps=0"),
        ((CENTRALISED[0],), "data.parties = 1"),
        (((SOLVER, SOLVER + "\naccelerated = true"),), "accelerated with centralised"),
        (((SOLVER, SOLVER + "\nclip = 1.0"),), "clip and batch with dp-sgd"),
        ((DESCENT[0], ("clip = 0.5", "clip = 0.0")), "clip=0.0"),
        ((DESCENT[0], ("clip = 0.5", "batch = 12")), "solver.batch=12 must be in [1, 11]"),
        (((SOLVER, 'algorithm = "dp-sgd"\nrounds = 6'),), "steps = 'constant' with dp-sgd"),
        (((SOLVER, NETWORK[0][1].replace("ring", "rink")), NETWORK[1]), "ring"),
    ],
)
def test_a_run_file_that_makes_no_sense_is_a_mistake(
    call: Call, folder: Path, changes: tuple[tuple[str, str], ...], words: str
) -> None:
    answer = call("run", edited(folder, *changes), "--out", folder / "out")
    assert answer.status == 2
    assert words in " ".join(answer.err.split())
    assert not (folder / "out").exists()
