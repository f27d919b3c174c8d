"""The law of two handles: an analyst's shows public facts; an auditor's is made of the records."""

import ast
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import dpledger
from dpledger.accounting.numbers.notions import Gdp
from dpledger.audits import AuditDataset, RecordingCurator, ReplayCurator, replay_attack
from dpledger.audits.datasets import VerticalAuditDataset
from dpledger.mechanisms import (
    Adjacency,
    EventList,
    InvalidParameter,
    Message,
    PlanningCurator,
    Poisson,
    PrivateDataset,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SimulationSampler,
    UnprotectedReleaseError,
    VerticalDataset,
    concatenate,
    linear_map,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.inside import party_of, private_value
from dpledger.solvers import ConstantSteps, DpAdmm, LinearLoss, Logistic

ROOT = Path(__file__).parents[1]


def held(
    kind: type[PrivateDataset], adjacency: Adjacency = Adjacency.REPLACE_ONE
) -> PrivateDataset:
    rng = np.random.default_rng(0)
    return kind(
        rng.normal(size=(8, 3)),
        rng.choice([-1.0, 1.0], size=8),
        adjacency=adjacency,
        row_bound=1.0,
        n_min=4 if adjacency is Adjacency.ADD_REMOVE_ONE else None,
    )


def public_names(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_an_analysts_handle_has_no_more_than_functions_of_records_and_public_facts() -> None:
    assert public_names(PrivateDataset) == {
        "answers",
        "histogram",
        "mean_gradient",
        "own",
        "planned",
        "rows",
        "second_moment",
        "shape",
        "strongly_convex_argmin",
        "sum_gradient",
        "wrong_predictions",
    }
    assert public_names(VerticalDataset) == {
        "dual",
        "mean_gradient",
        "minimiser",
        "planned",
        "predictions",
        "scores",
        "shape",
    }
    with pytest.raises(TypeError):
        len(held(PrivateDataset))  # type: ignore[arg-type]


def values(data: PrivateDataset) -> list[Sensitive]:
    """Return what public operations make of a data set."""
    mean = data.mean_gradient(Logistic(), np.zeros(3))
    total = data.sum_gradient(Logistic(), np.ones(3))
    centred = CentredRows(data, np.zeros(3), radius=0.5).mean_gradient(Logistic(), np.ones(3))
    return [
        mean,
        total,
        centred,
        mean + total,
        -2.0 * mean + 1.0,
        mean.clipped(0.5),
        linear_map(np.ones((2, 3)), mean),
        concatenate(mean, total),
        data.second_moment(),
    ]


def test_no_audit_looks_at_what_an_analysts_handle_computed() -> None:
    data = held(PrivateDataset)
    for value in values(data):
        with pytest.raises(UnprotectedReleaseError, match="AuditDataset"):
            private_value(value)
    with pytest.raises(UnprotectedReleaseError, match="AuditDataset"):
        party_of(data)
    for value in values(held(AuditDataset)):
        assert private_value(value) is not None


def test_one_private_operand_makes_a_value_private() -> None:
    known = held(AuditDataset).mean_gradient(Logistic(), np.zeros(3))
    private = held(PrivateDataset).mean_gradient(Logistic(), np.zeros(3))
    for mixed in (known + private, private - known, concatenate(known, private)):
        with pytest.raises(UnprotectedReleaseError):
            private_value(mixed)


def test_a_replay_of_messages_of_ones_own_scores_no_analysts_data() -> None:
    """Densities at messages of one's own choice would be distances to the private value."""
    data = held(PrivateDataset)
    plan = PlanningCurator()
    planned = PrivateDataset.planned(data.shape).mean_gradient(Logistic(), np.zeros(3))
    plan.release(planned, round=1, release="x", noise_std=0.1)
    replay = ReplayCurator([Message(plan.events[0], np.zeros((1, 3)))])
    with pytest.raises(UnprotectedReleaseError):
        replay.release(
            data.mean_gradient(Logistic(), np.zeros(3)), round=1, release="x", noise_std=0.1
        )


@pytest.mark.parametrize("sampler", [SeededSampler(1), SimulationSampler(1)])
def test_no_trials_answer_many_times_at_the_price_of_one(
    sampler: SeededSampler | SimulationSampler,
) -> None:
    """The mean of 100,000 messages was the private value, to 7e-4, for one event."""
    sink = EventList()
    curator = SamplingCurator(sink, sampler, trials=1000)
    for kind in (AuditDataset, PrivateDataset):
        asked = held(kind).mean_gradient(Logistic(), np.zeros(3))
        if kind is AuditDataset:
            assert len(curator.release(asked, round=1, release="x", noise_std=1.0)) == 1000
            continue
        with pytest.raises(UnprotectedReleaseError, match="trials=1000 would answer as often"):
            curator.release(asked, round=1, release="x", noise_std=1.0)
    assert len(sink.events) == 1


def test_no_replay_attack_runs_on_analysts_handles() -> None:
    data = held(PrivateDataset)
    solver = DpAdmm(2, 2.0, ConstantSteps(1.0), loss=LinearLoss())
    with pytest.raises(InvalidParameter, match="AuditDataset"):
        replay_attack(
            solver.solve,
            data,  # type: ignore[arg-type]
            data,  # type: ignore[arg-type]
            trials=4,
            seed=0,
            chunk=2,
            claimed=Gdp(1),
            delta=1e-5,
            confidence=0.9,
        )


def test_a_real_run_keeps_nothing_of_who_was_drawn() -> None:
    adjacency = Adjacency.ADD_REMOVE_ONE
    for kind in (PrivateDataset, AuditDataset):
        curator = SamplingCurator(EventList(), SeededSampler(1), record=True)
        sample = curator.sample(held(kind, adjacency), Poisson(0.5))
        curator.release(
            sample.sum_gradient(Logistic(), np.zeros(3)), round=1, release="x", noise_std=1.0
        )
        assert public_names(type(curator)) == {
            "collectives",
            "release",
            "release_unprotected",
            "sample",
        }
        assert {name for name in vars(curator) if not name.startswith("_")} == {"transcript"}


def test_an_audits_recording_replays_to_its_own_density() -> None:
    data = held(AuditDataset, Adjacency.ADD_REMOVE_ONE)
    run = RecordingCurator(EventList(), SimulationSampler(1), trials=3)
    sample = run.sample(data, Poisson(0.5))
    run.release(sample.sum_gradient(Logistic(), np.zeros(3)), round=1, release="x", noise_std=1.0)
    replay = ReplayCurator(run.transcript, uniforms=run.uniforms, differing=2)
    sample = replay.sample(data, Poisson(0.5))
    replay.release(
        sample.sum_gradient(Logistic(), np.zeros(3)), round=1, release="x", noise_std=1.0
    )
    assert replay.log_density.shape == (3,)


def test_a_vertical_neighbour_is_an_auditors() -> None:
    blocks, labels = [np.eye(4)], np.ones(4)
    facts = {"adjacency": Adjacency.REPLACE_ONE, "parties": ("a",), "public_labels": False}
    assert not hasattr(VerticalDataset, "with_record")
    data = VerticalAuditDataset(blocks, labels, **facts)  # type: ignore[arg-type]
    other = data.with_record(0, label=-1.0)
    scores = other.scores("a", np.ones(4))
    assert private_value(scores) is not None


def test_one_file_alone_may_name_private_attributes_of_others() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    assert settings["pyright"].get("reportPrivateUsage", True) is True
    assert settings["pyright"]["typeCheckingMode"] == "strict"
    rooms = [ROOT / name for name in settings["pyright"]["include"]]
    files = [path for room in rooms for path in ([room] if room.is_file() else room.rglob("*.py"))]
    excused = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if re.search(r"#\s*pyright:.*(PrivateUsage|basic)", path.read_text(encoding="utf-8"))
    }
    assert excused == {"mechanisms/inside.py"}
    assert dpledger.__file__ is not None


def test_nobody_but_audits_and_their_door_calls_for_a_private_value() -> None:
    calling = set()
    for room in ("mechanisms", "accounting", "solvers", "runs", "papers", "cli", "data"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Name | ast.alias):
                    name = node.id if isinstance(node, ast.Name) else node.name
                    if name in ("private_value", "party_of") and isinstance(node, ast.alias):
                        calling.add(path.relative_to(ROOT).as_posix())
    assert calling == set()
