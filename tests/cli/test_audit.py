"""`dpledger audit one-run`, as a user meets it."""

from pathlib import Path

import numpy as np
import pytest

from .conftest import Call

CLAIM = ("--epsilon", 1, "--delta", 1e-5, "--json")


def saved(folder: Path, scores: np.ndarray, included: np.ndarray) -> tuple[object, ...]:
    np.save(folder / "s.npy", scores)
    np.save(folder / "c.npy", included)
    return ("--scores", folder / "s.npy", "--included", folder / "c.npy")


def test_guesses_are_planned_before_the_run_and_the_same_after(call: Call, tmp_path: Path) -> None:
    included = np.random.default_rng(1).integers(0, 2, 600)
    plan = call("audit", "one-run", "--canaries", 600, *CLAIM)
    assert plan.status == 0
    found = call("audit", "one-run", *saved(tmp_path, included + 0.0, included), *CLAIM)
    assert found.data["plan"] == plan.data
    assert found.status == 0
    # the two levels are ties that the numbers divide: without a seed none is guessed
    assert found.data["bounds"][0]["epsilon"] == 0.0
    seeded = call(
        "audit", "one-run", *saved(tmp_path, included + 0.0, included), *CLAIM, "--seed", 3
    )
    assert seeded.status == 1
    assert seeded.data["refutes_claim"]


def test_scores_that_say_nothing_show_nothing(call: Call, tmp_path: Path) -> None:
    included = np.repeat([False, True], 300)
    for seed in ((), ("--seed", 5)):
        files = saved(tmp_path, np.zeros(600), included)
        found = call("audit", "one-run", *files, *CLAIM, *seed)
        assert found.status == 0
        assert all(bound["epsilon"] < 0.5 for bound in found.data["bounds"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--canaries", 10, "--delta", 1e-5), "epsilon"),
        (("--epsilon", 1, "--delta", 1e-5), "--canaries"),
        (("--canaries", 10, "--epsilon", 1, "--delta", 0), "delta"),
        (("--scores", "s.npy", "--included", "c.npy", "--epsilon", 1, "--delta", 1e-5), "fair"),
        (("--scores", "c.npy", "--included", "s.npy", "--epsilon", 1, "--delta", 1e-5), "0 or 1"),
    ],
)
def test_mistakes_are_named(
    call: Call, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    saved(tmp_path, np.linspace(0, 2, 200), np.ones(200))
    files = [tmp_path / str(x) if str(x).endswith(".npy") else x for x in options]
    answer = call("audit", "one-run", *files)
    assert answer.status == 2
    assert words in answer.err
