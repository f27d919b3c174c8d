"""`dpledger attack --scores`: a user's own scores, judged as a user meets it."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from dpledger.accounting.gaussian.exact import epsilon_from_delta
from dpledger.audits.bounds import Scores
from dpledger.audits.selection import MultiSplit

from .conftest import Call


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Log-likelihood ratios of a pair that is exactly 3-GDP, 5,000 runs in each world."""
    generator = np.random.default_rng(91)
    inside, outside = tmp_path / "in.npy", tmp_path / "out.npy"
    np.save(inside, generator.normal(4.5, 3.0, 5_000))
    np.save(outside, generator.normal(-4.5, 3.0, 5_000))
    return inside, outside


def test_a_true_claim_is_not_refuted(call: Call, files: tuple[Path, Path]) -> None:
    answer = call("attack", "--scores", *files, "--mu", 3, "--delta", 1e-5, "--json")
    assert answer.status == 0
    assert answer.data["refutes_claim"] is False
    expected = epsilon_from_delta(mu_squared=9, delta=1e-5).upper_float
    assert answer.data["claimed_epsilon"] == expected
    (counting,), (family,) = answer.data["bounds"], answer.data["if_normal"]
    assert 2 < counting["epsilon"] < answer.data["ceiling"] < expected
    assert 0.9 * expected < family["epsilon"] < expected
    assert 0.97 < answer.data["auc"] < 0.99


def test_a_false_claim_is_a_finding(call: Call, files: tuple[Path, Path]) -> None:
    answer = call("attack", "--scores", *files, "--epsilon", 1, "--delta", 1e-5)
    assert answer.status == 1
    assert "claim REFUTED" in answer.out
    assert "no evidence of privacy" in " ".join(answer.out.split())


def test_the_bound_is_that_of_many_splits(call: Call, files: tuple[Path, Path]) -> None:
    options = ("--mu", 3, "--delta", 1e-5, "--confidence", 0.9, "--json")
    answer = call("attack", "--scores", *files, *options)
    scores = Scores(np.load(files[0]), np.load(files[1]))
    expected = MultiSplit(0.9, seed=0).lower_bound(scores, delta=1e-5)
    assert answer.data["bounds"][0]["epsilon"] == expected.epsilon


def test_whole_numbers_are_scores_too(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "votes.npy"
    np.save(path, np.arange(50) % 2)
    answer = call("attack", "--scores", path, path, "--epsilon", 0, "--delta", 1e-5, "--json")
    assert (answer.status, answer.data["auc"]) == (0, 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "Expected --delta and either --epsilon or --mu"),
        (("--mu", 1), "Expected --delta"),
        (("--mu", 1, "--epsilon", 1, "--delta", 1e-5), "either --epsilon or --mu"),
        (("--mu", -1, "--delta", 1e-5), "mu=-1.0"),
        (("--mu", 1, "--delta", 2), "delta=2.0"),
        (("--mu", 1, "--delta", 1e-5, "--confidence", 1), "confidence=1.0"),
    ],
)
def test_mistakes_are_one_line(
    call: Call, files: tuple[Path, Path], options: tuple[object, ...], words: str
) -> None:
    answer = call("attack", "--scores", *files, *options)
    assert answer.status == 2
    assert words in answer.err


def test_either_a_configuration_or_scores(call: Call, folder: Path) -> None:
    assert "one of CONFIG, --scores and --model" in call("attack").err
    answer = call("attack", folder / "run.toml", "--mu", 1)
    assert answer.status == 2
    assert "only with --scores" in answer.err


@pytest.mark.parametrize("content", [b"", b"age,town\n1,north\n", b"\x93NUMPY"])
def test_files_that_hold_no_array_are_refused(call: Call, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "scores.npy"
    path.write_bytes(content)
    answer = call("attack", "--scores", path, path, "--mu", 1, "--delta", 1e-5)
    assert answer.status == 2
    assert "Expected a NumPy file" in answer.err


@pytest.mark.parametrize(
    "array", [np.ones((2, 2)), np.array([1.0, np.nan]), np.array(["a"]), np.array([1j]), np.ones(1)]
)
def test_arrays_that_are_no_scores_are_refused(
    call: Call, tmp_path: Path, array: np.ndarray
) -> None:
    path = tmp_path / "scores.npy"
    np.save(path, array)
    answer = call("attack", "--scores", path, path, "--mu", 1, "--delta", 1e-5)
    assert answer.status == 2
    assert "Expected" in answer.err or " must " in answer.err


def test_a_mechanism_with_half_its_noise_is_found(call: Call, tmp_path: Path) -> None:
    """The claim mu = 1, really 2: 200 runs a world suffice, where one point of the curve did not.

    Quantiles in place of draws: nothing here is left to luck.
    """
    path = tmp_path / "in.npy", tmp_path / "out.npy"
    in_order_of_runs = np.random.default_rng(0).permutation(200)
    quantiles = norm.ppf((in_order_of_runs + 0.5) / 200)
    np.save(path[0], 7 * (quantiles + 2))
    np.save(path[1], 7 * quantiles)
    options = ("--delta", 1e-5, "--json")
    found = call("attack", "--scores", *path, "--mu", 1, *options)
    assert found.status == 1
    assert [test["refuted"] for test in found.data["tests"]] == [True, False]
    assert call("attack", "--scores", *path, "--mu", 2, *options).status == 0


def test_what_needs_normal_scores_is_no_bound_of_a_pure_claim(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "in.npy", tmp_path / "out.npy"
    generator = np.random.default_rng(5)
    for name, centre in zip(path, (1.0, 0.0), strict=True):
        np.save(name, generator.normal(centre, 1.0, 600))
    pure = call("attack", "--scores", *path, "--epsilon", 1, "--delta", 0, "--json")
    assert pure.data["if_normal"] == []
    assert (
        len(
            call("attack", "--scores", *path, "--mu", 1, "--delta", 1e-5, "--json").data[
                "if_normal"
            ]
        )
        == 1
    )
    for name in path:
        np.save(name, np.load(name)[:400])
    few = call("attack", "--scores", *path, "--mu", 1, "--delta", 1e-5, "--json")
    assert few.data["if_normal"] == []
    wrong = call("attack", "--scores", *path, "--mu", 1, "--delta", 0)
    assert wrong.status == 2
