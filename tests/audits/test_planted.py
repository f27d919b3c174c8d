"""Canaries planted in production runs: audited once each, against what the ledger says."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from dpledger.accounting.ledger import MemoryLedger, SqliteLedger
from dpledger.audits.planted import PlantedCanaries
from dpledger.audits.watching import Look, Watcher
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    Provenance,
    declared,
)

MU = 0.5
DELTA = 1e-5


def gaussian(adjacency: Adjacency = Adjacency.ADD_REMOVE_ONE) -> Event:
    moved = declared(1, "a test", adjacency=adjacency)
    return Event(GaussianStep(moved, 1 / MU), Context((), 1, "sum", Audience.SERVER))


def laplace() -> Event:
    moved = declared(1, "a test", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1)
    return Event(LaplaceStep(moved, 2.0), Context((), 1, "sum", Audience.SERVER))


def ledger_of(*events: Event, name: str = "run") -> MemoryLedger:
    ledger = MemoryLedger()
    enter(ledger, name, *events)
    return ledger


def enter(ledger: MemoryLedger | SqliteLedger, name: str, *events: Event) -> None:
    run = ledger.run(name, configuration_hash="0" * 64, plan=list(events))
    for event in events:
        run.commit(run.reserve((event,), Provenance("test", 1)))


def plant(folder: Path, *, mu: float, seed: int = 1, name: str = "run", count: int = 1000) -> None:
    generator = np.random.default_rng(seed)
    included = generator.random(count) < 0.5
    np.savez(
        folder / f"{name}.npz",
        scores=generator.normal(size=count) + mu * included,
        included=included,
    )


@pytest.mark.parametrize("event", [gaussian(), gaussian(Adjacency.ZERO_OUT_ONE), laplace()])
def test_noise_that_is_far_too_small_is_found_from_one_run(tmp_path: Path, event: Event) -> None:
    watched = PlantedCanaries(tmp_path, 0.99, DELTA)
    plant(tmp_path, mu=6 * MU)
    ((run, text),) = watched.look(ledger_of(event), {})
    assert run == "run"
    assert text.startswith("canaries refute epsilon")


def test_runs_that_keep_what_they_say_are_not_accused(tmp_path: Path) -> None:
    # 80 first looks at level 0.05: the limit is passed in one of ten thousand; seeds are fixed
    watched, ledger, accused = PlantedCanaries(tmp_path, 0.95, DELTA), ledger_of(gaussian()), 0
    for seed in range(80):
        plant(tmp_path, mu=MU, seed=seed, count=200)
        accused += bool(watched.look(ledger, {}))
    assert accused <= binom.isf(1e-4, 80, 0.05 * 6 / np.pi**2)


def test_canaries_are_audited_once_and_must_not_change(tmp_path: Path) -> None:
    watched, ledger = PlantedCanaries(tmp_path, 0.99, DELTA), ledger_of(gaussian())
    known: dict[str, str] = {}
    plant(tmp_path, mu=MU, name="another")
    assert (watched.look(ledger, known), known) == ([], {})  # it waits for its run
    plant(tmp_path, mu=MU)
    assert watched.look(ledger, known) == []
    assert list(known) == ["run"]
    before = dict(known)
    plant(tmp_path, mu=MU, seed=2)
    ((_, text),) = watched.look(ledger, known)
    assert "changed after their audit" in text
    assert known == before


def test_later_audits_have_less_of_the_error(tmp_path: Path) -> None:
    # what refutes the claim as the first audit does not as the ten-thousandth
    plant(tmp_path, mu=3.4 * MU, count=300, seed=5)
    watched, ledger = PlantedCanaries(tmp_path, 0.99, DELTA), ledger_of(gaussian())
    assert watched.look(ledger, {})
    assert not watched.look(ledger, {str(k): "" for k in range(10_000)})


def test_what_cannot_be_audited_is_said(tmp_path: Path) -> None:
    watched = PlantedCanaries(tmp_path, 0.99, DELTA)
    plant(tmp_path, mu=MU)
    ((_, text),) = watched.look(ledger_of(gaussian(Adjacency.REPLACE_ONE)), {})
    assert "replace-one" in text
    np.savez(tmp_path / "run.npz", scores=np.zeros(10))
    ((_, text),) = watched.look(ledger_of(gaussian()), {})
    assert "scores and included" in text
    np.savez(tmp_path / "run.npz", scores=np.zeros(100), included=np.ones(100))
    ((_, text),) = watched.look(ledger_of(gaussian()), {})
    assert "fair coins" in text
    (tmp_path / "run.npz").write_bytes(b"no archive")
    ((_, text),) = watched.look(ledger_of(gaussian()), {})
    assert "not audited" in text
    with pytest.raises(InvalidParameter, match="confidence"):
        PlantedCanaries(tmp_path, 1.0, DELTA)


def test_a_watcher_remembers_what_canaries_showed(tmp_path: Path) -> None:
    path, folder = tmp_path / "ledger.sqlite", tmp_path / "canaries"
    folder.mkdir()
    with SqliteLedger(path) as ledger:
        enter(ledger, "run", gaussian())
    planted = PlantedCanaries(folder, 0.99, DELTA)
    watcher = Watcher(path, tmp_path / "memory.json", (), DELTA, 20, canaries=planted)
    looks: list[Look] = []
    assert not watcher.step(looks.append).is_finding
    plant(folder, mu=6 * MU)  # it comes after the run was audited
    for news in (1, 0):
        look = watcher.step(looks.append)
        assert look.is_finding
        assert len(look.new) == news
        assert list(look.memory.canaries) == ["run"]
