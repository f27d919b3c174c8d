"""Laws of the sequential audit of black boxes."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.parameters import slow

from dpledger.audits.black_boxes import audit_black_box, pairs_of
from dpledger.audits.programs import load_program
from dpledger.audits.scores import ClaimedPrivacy
from dpledger.audits.violations import BlackBox, query_patterns
from dpledger.mechanisms import InvalidParameter
from dpledger.mechanisms.protocols import FloatArray

PURE = ClaimedPrivacy.of(epsilon=1.0, mu=None, delta=0.0)
CURVE = ClaimedPrivacy.of(epsilon=None, mu=1.0, delta=1e-5)


def laplace(scale: float) -> BlackBox:
    def run(answers: FloatArray, trials: int, generator: np.random.Generator) -> FloatArray:
        return answers + generator.laplace(scale=scale, size=(trials, answers.size))

    return run


def normal(scale: float) -> BlackBox:
    def run(answers: FloatArray, trials: int, generator: np.random.Generator) -> FloatArray:
        return answers + generator.normal(scale=scale, size=(trials, answers.size))

    return run


def refuted(mechanism: BlackBox, claimed: ClaimedPrivacy, queries: int, seeds: int) -> int:
    found = (
        audit_black_box(
            mechanism,
            query_patterns(queries),
            claimed=claimed,
            runs=20_000,
            confidence=0.95,
            seed=seed,
        )
        for seed in range(seeds)
    )
    return sum(each.refuted for each in found)


@pytest.mark.parametrize(("seeds", "many"), [(20, 6), *slow((50, 9))])
def test_a_true_claim_is_refuted_no_more_often_than_stated(seeds: int, many: int) -> None:
    # at most 5 % a seed: so many of them have probability 0.0008 or less, and seeds are fixed
    assert refuted(laplace(3.0), PURE, 3, seeds) < many
    assert refuted(normal(1.0), CURVE, 1, seeds) < many


@pytest.mark.parametrize(
    ("mechanism", "claimed", "queries"),
    [(laplace(1.5), PURE, 3), (normal(0.5), CURVE, 1), *slow((normal(0.7), CURVE, 1))],
)
def test_noise_that_is_too_small_is_found(
    mechanism: BlackBox, claimed: ClaimedPrivacy, queries: int
) -> None:
    assert refuted(mechanism, claimed, queries, 20) == 20


def test_a_refutation_ends_the_runs() -> None:
    seen = 0

    def counted(answers: FloatArray, trials: int, generator: np.random.Generator) -> FloatArray:
        nonlocal seen
        seen += trials
        return laplace(0.2)(answers, trials, generator)

    found = audit_black_box(
        counted, query_patterns(1)[:1], claimed=PURE, runs=20_000, confidence=0.95, seed=1
    )
    assert found.refuted
    assert found.runs == seen < 20_000
    assert found.p_value is not None
    assert found.p_value <= 0.05


def test_runs_are_spent_on_a_bound_where_one_is_asked_for() -> None:
    found = audit_black_box(
        laplace(1.0),
        query_patterns(3),
        claimed=PURE,
        runs=20_000,
        confidence=0.99,
        seed=3,
        bound=True,
    )
    assert found.bound is not None
    # three answers of epsilon 1 each
    assert 1.0 < found.bound.epsilon < 3.0
    assert found.refuted


def test_too_few_runs_are_a_mistake() -> None:
    with pytest.raises(InvalidParameter, match="enough for 100 runs"):
        audit_black_box(
            laplace(1.0), query_patterns(3), claimed=PURE, runs=500, confidence=0.9, seed=1
        )


def test_pairs_come_from_a_file_or_from_patterns(tmp_path: Path) -> None:
    path = tmp_path / "pairs.npz"
    np.savez(path, dataset=np.zeros((2, 3)), neighbour=np.ones((2, 3)))
    assert [pair.description for pair in pairs_of(path, None)] == [
        "row 0 of pairs.npz",
        "row 1 of pairs.npz",
    ]
    assert len(pairs_of(None, 3)) == len(query_patterns(3))
    for wrong in ((None, None), (path, 3)):
        with pytest.raises(InvalidParameter, match="queries"):
            pairs_of(*wrong)
    np.savez(path, dataset=np.zeros((2, 3)), neighbour=np.ones((3, 3)))
    with pytest.raises(InvalidParameter, match="pairs"):
        pairs_of(path, None)


@pytest.mark.parametrize("program", ["nothing", "absent.py:run", "os:system", "box.py:absent"])
def test_only_a_function_of_a_file_is_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "box", raising=False)
    Path("box.py").write_text("def run(answers, trials, generator):\n    return answers\n")
    assert callable(load_program("box.py:run"))
    with pytest.raises(InvalidParameter, match="must"):
        load_program(program)


def test_a_file_is_never_taken_for_a_module_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("random.py").write_text("def gauss(answers, trials, generator):\n    return answers\n")
    with pytest.raises(InvalidParameter, match="whose name no other module has; random is"):
        load_program("random.py:gauss")
