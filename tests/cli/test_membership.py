"""`dpledger membership`, as a user meets it: a run of ours, and a model of the user's own."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from tests.parameters import slow

from .conftest import Call, edited

MODEL = """
import numpy as np


class Memory:
    \"\"\"Knows the records it was trained on, and nothing else.\"\"\"

    def __init__(self, features, labels):
        self.known = {row.tobytes(): label for row, label in zip(features, labels)}
        self.classes_ = np.array([-1, 1])

    def predict_proba(self, rows):
        labels = [self.known.get(row.tobytes(), 0) for row in rows]
        positive = np.array([0.5 + 0.4 * label for label in labels])
        return np.stack([1 - positive, positive], axis=1)


class Coin(Memory):
    def predict_proba(self, rows):
        return np.full((len(rows), 2), 0.5)


def memory(features, labels, seed):
    return Memory(features, labels)


def coin(features, labels, seed):
    return Coin(features, labels)


def crash(features, labels, seed):
    return 1 / 0


class Sum:
    # the sum of the labels plus Laplace noise of scale 1, as the odds of the label 1

    def __init__(self, noisy):
        self.noisy, self.classes_ = noisy, np.array([-1, 1])

    def predict_proba(self, rows):
        positive = 1 / (1 + np.exp(-np.clip(self.noisy / 50, -30, 30)))
        return np.tile([1 - positive, positive], (len(rows), 1))


def total(features, labels, seed):
    return Sum(labels.sum() + np.random.default_rng(seed).laplace(scale=1.0))


number = 3
"""


@pytest.fixture
def own(tmp_path: Path) -> tuple[Path, Path]:
    """A Python file with models, and records."""
    model, records = (
        tmp_path / f"own_model_{tmp_path.name.replace('-', '_')}.py",
        tmp_path / "r.npz",
    )
    model.write_text(MODEL, encoding="utf-8")
    generator = np.random.default_rng(4)
    np.savez(
        records,
        features=generator.normal(size=(20, 2)),
        labels=np.repeat([-1, 1], 10),
        population_features=generator.normal(size=(10, 2)),
        population_labels=np.repeat([-1, 1], 5),
    )
    return model, records


@pytest.mark.parametrize("target", ["random", "worst", "canary"])
def test_a_run_stays_within_its_promise(call: Call, folder: Path, target: str) -> None:
    options = ("--target", target, "--trials", 100, "--shadows", 20)
    answer = call("membership", folder / "run.toml", *options, "--json")
    assert answer.status == 0
    assert answer.data["refutes_promise"] is False
    # the promise of the plan: 2 at 1e-5, certified from below
    assert 1.99 < answer.data["claimed_epsilon"] <= 2.0
    assert len(answer.data["results"]) == 5
    text = call("membership", folder / "run.toml", *options)
    assert "the bound says an attacker has" in " ".join(text.out.split())


def test_from_the_worst_start_a_run_pays_its_price_and_no_more(call: Call, folder: Path) -> None:
    options = ("--target", "worst-start", "--trials", 200, "--shadows", 20)
    answer = call("membership", folder / "run.toml", *options, "--json")
    assert answer.status == 0
    assert answer.data["results"][0]["name"] == "the canary's direction"
    # of the message's mu what the steps' unequal lengths leave
    assert 0.2 < answer.data["reach"] < 0.5
    text = " ".join(call("membership", folder / "run.toml", *options).out.split())
    assert "The best attack there is on the last model reaches mu" in text

    path = folder / "run.toml"
    path.write_text(path.read_text() + 'neighbour = "worst-start"\n', encoding="utf-8")
    attack = call("attack", path, "--json")
    assert attack.status == 0
    assert attack.data["share"] == pytest.approx(1.0, abs=1e-6)
    assert "two canaries of opposite maximal gradients" in attack.data["neighbours"]


@pytest.mark.parametrize(
    ("target", "algorithm"),
    [("metagradient", "dp-sgd"), *slow(("metagradient", "dp-admm"), ("adversarial", "pvp-admm"))],
)
def test_climbed_canaries_are_seen_and_the_verdict_says_what_share_of_the_price_they_pay(
    call: Call, folder: Path, target: str, algorithm: str
) -> None:
    few = 'rounds = 2\nsteps = "constant"\nstep_size = 4.0'
    few = "rounds = 2" if algorithm == "pvp-admm" else few
    path = edited(folder, ('"dp-admm"', f'"{algorithm}"'), ("rounds = 6\ndistance = 5.0", few))
    options = ("--target", target, "--trials", 2000, "--shadows", 20, "--json")
    found = call("membership", path, *options).data
    assert found["refutes_promise"] is False
    assert found["reach"] is None  # an estimate is no law
    first = found["results"][0]
    assert first["name"] == "the canary's direction"
    words = next(line for line in found["verdict"] if "by the search's estimate" in line)
    estimate = float(words.split("mu = ")[1].split()[0])
    assert 0.2 < float(words.split(" of the promised mu")[0].split()[-1]) <= 1.05
    # a difference of two means, in units of their noise, within five standard errors
    measured, error = sqrt(2) * norm.ppf(first["auc"]), sqrt(2 / 2000)
    assert 5 * error < measured < estimate + 5 * error


@pytest.mark.parametrize("target", ["worst-start", "metagradient", "adversarial"])
def test_no_canary_of_an_algorithm_is_invented_for_a_model_of_ones_own(
    call: Call, own: tuple[Path, Path], target: str
) -> None:
    model, path = own
    promise = ("--adjacency", "replace-one", "--epsilon", 1, "--delta", 1e-5)
    words = ("--model", f"{model}:coin", "--records", path, *promise, "--target", target)
    answer = call("membership", *words)
    assert answer.status == 2
    assert "target" in answer.err


def test_no_worst_start_is_invented_for_other_algorithms(call: Call, folder: Path) -> None:
    path = folder / "run.toml"
    path.write_text(path.read_text().replace('"dp-admm"', '"pvp-admm"'), encoding="utf-8")
    answer = call("membership", path, "--target", "worst-start", "--trials", 2, "--shadows", 2)
    assert answer.status == 2
    assert "worst-case start" in answer.err
    answer = call("membership", path, "--target", "metagradient", "--trials", 2, "--shadows", 2)
    assert answer.status == 2
    assert 'the target "adversarial"' in " ".join(answer.err.split())


@pytest.mark.parametrize("target", ["random", "worst", "canary"])
def test_a_model_that_remembers_is_caught(call: Call, own: tuple[Path, Path], target: str) -> None:
    model, records = own
    promise = ("--adjacency", "replace-one", "--epsilon", 1, "--delta", 1e-5, "--target", target)
    sizes = ("--trials", 100, "--shadows", 10)
    words = ("--records", records, *promise, *sizes)
    answer = call("membership", "--model", f"{model}:memory", *words)
    assert answer.status == 1
    assert "THE PROMISE IS BROKEN" in " ".join(answer.out.split())
    assert call("membership", "--model", f"{model}:coin", *words).status == 0


def test_a_promise_is_held_to_its_own_relation_only(call: Call, own: tuple[Path, Path]) -> None:
    """A sum of labels plus Laplace noise of scale 1: 1 under add-remove-one, 2 under replace-one.

    With pure epsilon, delta = 0. The replacement that differs shows what one like the target hides.
    """
    model, records = own
    words = ("--model", f"{model}:total", "--records", records, "--delta", 0, "--json")
    sizes = ("--trials", 3000, "--shadows", 40)
    kept = call("membership", *words, *sizes, "--adjacency", "add-remove-one", "--epsilon", 1)
    assert kept.status == 0
    assert kept.data["adjacency"] == "add-remove-one"
    assert kept.data["absent"] == "one record less"
    broken = call("membership", *words, *sizes, "--adjacency", "replace-one", "--epsilon", 1)
    assert broken.status == 1
    assert broken.data["refutes_promise"]
    assert "with the label" in broken.data["absent"] or "another label" in broken.data["absent"]
    assert any("under replace-one" in line for line in broken.data["verdict"])
    kept = call("membership", *words, *sizes, "--adjacency", "replace-one", "--epsilon", 2)
    assert kept.status == 0


def test_attack_hands_a_model_to_membership(call: Call, own: tuple[Path, Path]) -> None:
    model, records = own
    options = (
        "--records", records, "--adjacency", "add-remove-one", "--epsilon", 1, "--delta", 1e-5,
        "--target", "worst", "--trials", 100, "--shadows", 10, "--json",
    )  # fmt: skip
    for words in (("--model", f"{model}:memory"), (f"--model={model}:memory",)):
        first, second = (call(name, *words, *options) for name in ("attack", "membership"))
        assert (first.status, first.data) == (1, second.data)


def test_each_help_names_the_other_command(call: Call) -> None:
    attack, membership = (
        " ".join(call(name, "--help").out.split()) for name in ("attack", "membership")
    )
    assert "dpledger membership CONFIG" in attack
    assert "--model FILE.py:NAME" in attack
    assert "dpledger attack CONFIG" in membership
    assert "--target" in call("attack", "--model", "own.py:model", "--help").out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "either CONFIG or --model"),
        (("--model", "{model}:memory"), "--records"),
        (("--model", "{model}:memory", "--records", "{records}", "--delta", "1e-5"), "--epsilon"),
        (("--model", "{model}:nothing", "{promise}"), "nothing"),
        (
            (
                "--model",
                "{model}:coin",
                "--records",
                "{records}",
                "--mu",
                "-1",
                "--delta",
                "1e-5",
                "--adjacency",
                "replace-one",
            ),
            "mu=-1",
        ),
        (("--model", "{model}:number", "{promise}"), "predict_proba"),
        (("--model", "os:system", "{promise}"), "FILE.py:NAME"),
        (
            ("--model", "{model}:coin", "--records", "{records}", "--mu", "1", "--delta", "1e-5"),
            "--adjacency",
        ),
        (("--model", "{model}:crash", "{promise}"), "ZeroDivisionError"),
    ],
)
def test_what_is_missing_or_wrong_is_named(
    call: Call, own: tuple[Path, Path], options: tuple[str, ...], words: str
) -> None:
    model, records = own
    promise = (
        "--records", str(records), "--epsilon", "1", "--delta", "1e-5",
        "--adjacency", "add-remove-one",
    )  # fmt: skip
    filled: list[str] = []
    for option in options:
        filled += (
            promise if option == "{promise}" else [option.format(model=model, records=records)]
        )
    answer = call("membership", *filled)
    assert answer.status == 2
    assert words in answer.err


def test_records_of_a_wrong_form_are_refused(call: Call, own: tuple[Path, Path]) -> None:
    model, records = own
    np.savez(records, features=np.zeros((3, 2)), labels=np.zeros(3))
    promise = ("--adjacency", "replace-one", "--epsilon", 1, "--delta", 1e-5)
    answer = call("membership", "--model", f"{model}:memory", "--records", records, *promise)
    assert answer.status == 2
    assert "population_features" in answer.err
