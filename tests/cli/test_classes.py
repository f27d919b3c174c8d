"""Labels of several classes: plan, run and replay agree, and what is not declared is refused."""

import re
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from tests.parameters import quick

from dpledger.data import LabelledRecords
from dpledger.mechanisms import ClassLabels, GaussianStep
from dpledger.runs.configuration import read_configuration
from dpledger.runs.planning import planned_events
from dpledger.runs.training import accuracy

from .conftest import Call, edited

SCHEMA = """
row_bound = 1.0
columns = [
    {kind = "numeric", name = "length", lower = 0, upper = 1},
    {kind = "numeric", name = "width", lower = 0, upper = 1},
    {kind = "class", name = "species", classes = ["setosa", "versicolor", "virginica"]},
]
"""
SOLVER = 'algorithm = "dp-admm"\nrounds = 6\ndistance = 5.0'
STAR = SOLVER + '\nloss = "multinomial"'
# 48 training records of 4 parties, the default penalty
RECORDS, PENALTY = 12, 0.1


@pytest.fixture
def flowers(folder: Path) -> Path:
    """The folder, its people replaced by flowers of three species, well apart."""
    rng = np.random.default_rng(1)
    species = rng.integers(3, size=60)
    centres = np.array([[0.9, 0.1], [0.1, 0.9], [0.6, 0.6]])
    rows = np.clip(centres[species] + 0.05 * rng.standard_normal((60, 2)), 0.0, 1.0)
    names = ["setosa", "versicolor", "virginica"]
    lines = [f"{x},{y},{names[s]}" for (x, y), s in zip(rows, species, strict=True)]
    (folder / "people.csv").write_text("length,width,species\n" + "\n".join(lines) + "\n")
    (folder / "people.toml").write_text(SCHEMA)
    return folder


ALGORITHMS: dict[str, tuple[tuple[str, str], ...]] = {
    "star": ((SOLVER, STAR),),
    "published": (
        (SOLVER, STAR.replace("dp-admm", "dp-admm-published")),
        ("epsilon = 2.0", "noise_multiplier = 5.0"),
    ),
    "l1": ((SOLVER, STAR + '\nsteps = "nonsmooth"\nregulariser = "l1"'),),
    "pvp": ((SOLVER, STAR.replace("dp-admm", "pvp-admm")),),
    "network": (
        (SOLVER, STAR.replace("dp-admm", "pr-admm") + '\nnetwork = "ring"'),
        ("trials = 40", "trials = 40\nparties = 4"),
    ),
    "inner steps": (
        (
            SOLVER,
            STAR.replace("dp-admm", "ps-admm")
            + '\ninner_steps = 2\nsteps = "constant"\nstep_size = 1.5',
        ),
    ),
    "centralised": (
        (
            SOLVER,
            STAR.replace("dp-admm", "centralised")
            + '\naccelerated = true\nsteps = "constant"\nstep_size = 2.0',
        ),
        ("parties = 4", "parties = 1"),
    ),
}


SOON = ALGORITHMS.keys() - {"pvp", "network"}


@pytest.mark.parametrize("name", quick(SOON, sorted(ALGORITHMS.keys() - {"published"})))
def test_a_run_of_classes_is_what_was_planned_and_its_certificate_holds(
    call: Call, flowers: Path, name: str
) -> None:
    path, out = edited(flowers, *ALGORITHMS[name]), flowers / "out"
    planned = call("plan", path, "--json")
    assert planned.status == 0, planned.err
    answer = call("run", path, "--out", out, "--no-crosscheck", "--json")
    assert answer.status == 0, answer.err
    assert answer.data["plan_equals_run"] is True
    assert answer.data["guarantee"] == planned.data["guarantee"]
    assert np.load(out / "model.npy").shape == (2, 3)
    assert answer.data["attack"]["trials"] == 40
    verified = call("verify", out / "certificate.json", "--ledger", out / "ledger.sqlite", "--json")
    assert (verified.status, verified.data["verdict"]) == (0, "proved")


def test_the_published_variant_is_unprotected_for_classes_as_well(
    call: Call, flowers: Path
) -> None:
    answer = call("plan", edited(flowers, *ALGORITHMS["published"]), "--json")
    assert answer.status == 1
    assert answer.data["guarantee"]["epsilon"]["upper"] == "infinity"


def test_a_step_is_priced_at_the_multinomial_bound(flowers: Path) -> None:
    # two gradients of length sqrt(2), a mean over n records, a step of 1/(rho + 1/eta)
    path = edited(flowers, (SOLVER, STAR + '\nsteps = "constant"\nstep_size = 0.5'))
    configuration = read_configuration(path)
    events = planned_events(configuration, configuration.solvers.noisy(3.0))
    step = events[0].mechanism
    assert isinstance(step, GaussianStep)
    exact = 2 * sqrt(2) / RECORDS / (PENALTY + 1 / 0.5)
    assert exact <= step.sensitivity.value <= exact * (1 + 1e-6)
    assert step.noise_std == pytest.approx(3 * exact, rel=1e-6)


def test_with_little_noise_the_classes_are_learned(call: Call, flowers: Path) -> None:
    path = edited(
        flowers,
        (SOLVER, STAR.replace("rounds = 6", "rounds = 100").replace("= 5.0", "= 50.0")),
        ("epsilon = 2.0", "noise_multiplier = 0.01"),
    )
    only = ("--no-attack", "--no-baselines", "--no-crosscheck", "--json")
    answer = call("run", path, "--out", flowers / "out", *only)
    assert [(m["right"], m["records"]) for m in answer.data["models"]] == [(12, 12)]


def test_the_replay_of_a_changed_label_measures_what_the_plan_says(
    call: Call, flowers: Path
) -> None:
    path = edited(flowers, *ALGORITHMS["star"], ("epsilon = 2.0", "noise_multiplier = 1.0"))
    answer = call("attack", path, "--trials", 2000, "--json")
    assert answer.status == 0
    # row ⊗ (e_y - e_y') has length sqrt(2)·|row|, half of the price of a row of norm 1
    dataset, index = read_configuration(path).load_attacked()
    share = answer.data["share"]
    assert 0.3 < share <= 0.5
    measured = answer.data["measured_mu"]
    assert measured["lower"] < share * answer.data["claimed_mu"] < measured["upper"]
    assert measured["upper"] < 1.2 * measured["lower"]
    assert dataset.shape.label_domain == ClassLabels(3)
    assert answer.data["neighbours"] == f"label of record {index} flipped"


@pytest.mark.parametrize("target", ["random", "worst", "canary"])
def test_a_run_of_classes_stays_within_its_promise(call: Call, flowers: Path, target: str) -> None:
    path = edited(flowers, *ALGORITHMS["star"])
    options = ("--target", target, "--trials", 100, "--shadows", 20, "--json")
    answer = call("membership", path, *options)
    assert answer.status == 0, answer.err
    assert answer.data["refutes_promise"] is False
    assert len(answer.data["results"]) == 5


def test_a_class_that_is_not_declared_spends_nothing(call: Call, flowers: Path) -> None:
    file = flowers / "people.csv"
    file.write_text(file.read_text().replace("virginica", "virginika", 1))
    out = flowers / "out"
    answer = call("run", edited(flowers, *ALGORITHMS["star"]), "--out", out)
    assert answer.status == 2
    assert (
        "'virginika' must be among 'setosa', 'versicolor', 'virginica' (nearest: 'virginica')"
        in (answer.err)
    )
    assert not out.exists()


@pytest.mark.parametrize("command", ["plan", "run", "attack", "membership"])
def test_a_loss_for_other_labels_is_a_mistake(call: Call, flowers: Path, command: str) -> None:
    answer = call(command, flowers / "run.toml")
    assert answer.status == 2
    assert "solver.loss='logistic' must be 'multinomial' where the schema has a class" in answer.err


def test_the_multinomial_loss_wants_declared_classes(call: Call, folder: Path) -> None:
    answer = call("plan", edited(folder, (SOLVER, STAR)))
    assert answer.status == 2
    assert "a class column, and only there" in answer.err


def test_the_example_in_the_documentation_does_what_it_says(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    text = (Path(__file__).parents[2] / "docs" / "classes.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```(python|toml)\n(.*?)```", text, re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(blocks["python"], {})
    Path("digits-run.toml").write_text(blocks["toml"])
    only = ("--no-attack", "--no-baselines", "--no-crosscheck", "--json")
    answer = call("run", "digits-run.toml", "--out", "digits", *only)
    assert answer.status == 0, answer.err
    words = re.search(r"noise multiplier of ([\d.]+)", text)
    assert words is not None
    assert f"{answer.data['noise_multiplier']:.4f}" == words[1]
    model = answer.data["models"][0]
    # other linear algebra may turn the last bits, and with them a digit or two
    assert f"| {model['model']} | 83.84 % |" in text
    assert abs(model["accuracy"] - 0.8384) < 0.02
    assert np.load("digits/model.npy").shape == (64, 10)


def test_a_tie_between_classes_counts_as_wrong() -> None:
    records = LabelledRecords(
        features=np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        labels=np.array([2.0, 0.0, 1.0]),
        feature_names=("x", "y"),
        row_bound=1.0,
        description="three points",
        parties=("all",),
        party_of=np.zeros(3, dtype=np.intp),
        label_domain=ClassLabels(3),
    )
    model = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 0.0]]).ravel()
    found = accuracy(model, records)
    assert (found.right, found.total) == (1, 3)
