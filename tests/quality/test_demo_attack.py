"""Law: the demo's attack has the power to show what there is, and its control shows nothing."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import dpledger.runs
from dpledger.audits.curators import shown_value
from dpledger.audits.datasets import AuditDataset
from dpledger.audits.saturation import saturated_flip
from dpledger.mechanisms import SamplingCurator
from dpledger.mechanisms.curators import Release
from dpledger.mechanisms.events import GaussianStep
from dpledger.mechanisms.protocols import EventList, FloatArray
from dpledger.mechanisms.sampling import SimulationSampler
from dpledger.runs.attack import run_attack
from dpledger.runs.configuration import read_configuration
from dpledger.runs.planning import plan
from dpledger.solvers import Centring, ConsensusDpAdmm
from dpledger.solvers.planning import plan as planned_events

PATH = Path(dpledger.runs.__file__).with_name("demo.toml")


@pytest.mark.slow
def test_the_demo_tells_its_pair_from_none_and_finds_its_exact_mu() -> None:
    """At 5 standard errors the interval leaves 0 out in 99 of 100 seeds; this one is fixed."""
    configuration = read_configuration(PATH)
    found = run_attack(configuration, plan(configuration))
    result, share = found.result, found.pair.share
    assert share is not None
    assert result.measured_mu is not None
    exact = share * result.claimed_mu
    assert 0.0 < result.measured_mu.lower < exact < result.measured_mu.upper
    assert result.null_control.measured_mu is not None
    assert result.null_control.measured_mu.lower < 0.0 < result.null_control.measured_mu.upper
    assert not result.is_finding


@dataclass
class _Messages:
    """Values before noise, of every release, and the noise."""

    values: list[FloatArray] = field(default_factory=list)
    noise: list[float] = field(default_factory=list)


class _NotingCurator(SamplingCurator):
    """Draws the same noise for both data sets of a pair, and notes what it hides."""

    def __init__(self, seed: int, trials: int, handed: _Messages | None = None) -> None:
        super().__init__(EventList(), SimulationSampler(seed), trials=trials)
        self.noted, self.sent, self._handed = _Messages(), _Messages(), handed

    def _deliver(self, release: Release) -> FloatArray:
        sent = super()._deliver(release)
        if self._handed is not None:  # the neighbour's state is a function of the same messages
            sent = self._handed.values[len(self.sent.values)].copy()
        self.noted.values.append(np.broadcast_to(shown_value(release), sent.shape))
        self.noted.noise.append(release.scale)
        self.sent.values.append(sent)
        return sent


def test_a_saturated_flip_pays_its_share_in_every_trial() -> None:
    """The gap of each release over its noise, added up along real paths, is the exact mu."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(60, 5))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True) * np.sqrt(0.5)
    rows[:, 4], rows[0, :4] = np.sqrt(0.5), (-np.sqrt(0.5), 0.0, 0.0, 0.0)
    rows[1:, 0] = np.abs(rows[1:, 0])
    rows *= 1.0 / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    configuration = read_configuration(PATH)
    data = AuditDataset(
        rows, rng.choice([-1.0, 1.0], 60), adjacency=configuration.privacy.adjacency, row_bound=1.0
    )
    planned = ConsensusDpAdmm(6, 2.0, 4.0, 0.5, metric=Centring(4))
    solver, pair = saturated_flip(planned, data, index=0)
    first = _NotingCurator(5, trials=200)
    solver.solve(pair.dataset, first)
    second = _NotingCurator(5, trials=200, handed=first.sent)
    solver.solve(pair.neighbour, second)
    gaps = sum(
        (np.linalg.norm(a - b, axis=(-2, -1)) / std) ** 2
        for a, b, std in zip(
            first.noted.values, second.noted.values, first.noted.noise, strict=True
        )
    )
    steps = [e.mechanism for e in planned_events(planned, data.shape)]
    whole = sum(
        (float(s.sensitivity.value) / s.noise_std) ** 2
        for s in steps
        if isinstance(s, GaussianStep)
    )
    assert len(steps) == 7
    assert pair.share is not None
    assert gaps == pytest.approx(np.full(200, pair.share**2 * whole), rel=1e-6)
    # a public start changes no event
    assert planned_events(solver, data.shape) == planned_events(planned, data.shape)


def test_the_hash_of_a_file_from_before_a_key_is_what_it_was() -> None:
    golden = Path(__file__).parents[1] / "golden" / "data" / "documents" / "demo.toml"
    found = [read_configuration(path) for path in (golden, PATH.with_name("huang2020.toml"))]
    # as older ledgers have them: with the seed of the noise
    older = (
        "b0fe0daa94d33f0e34a84c88f0575341e6ad2493c00edd777aa3f10df035d8f0",
        "0fc2ea8a826757d988fbe7920df2d24a77482b010d42664b881f751d9471543c",
    )
    assert [each.known_as for each in found] == [
        {each.sha256, digest} for each, digest in zip(found, older, strict=True)
    ]
    assert [each.sha256 for each in found] == [
        "63672ab9f505c19a7af057df7c7767f6a9749437ca0595e3276559272ad41eb5",
        "57ed30a074d935af220e5180d299cb8da822371ded24cf313ec139c0fddc004e",
    ]
