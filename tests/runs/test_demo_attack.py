"""Law: the demo's attack has the power to show what there is, and its control shows nothing."""

from pathlib import Path

import pytest

import dpledger.runs
from dpledger.runs.attack import run_attack
from dpledger.runs.configuration import read_configuration
from dpledger.runs.planning import plan


@pytest.mark.slow
def test_the_demo_tells_its_pair_from_none_and_finds_its_exact_mu() -> None:
    """At 4.7 standard errors the interval leaves 0 out in 98 of 100 seeds; this one is fixed."""
    path = Path(dpledger.runs.__file__).with_name("demo.toml")
    configuration = read_configuration(path)
    found = run_attack(configuration, plan(configuration))
    result, share = found.result, found.pair.share
    assert share is not None
    assert result.measured_mu is not None
    exact = share * result.claimed_mu
    assert 0.0 < result.measured_mu.lower < exact < result.measured_mu.upper
    assert result.null_control.measured_mu is not None
    assert result.null_control.measured_mu.lower < 0.0 < result.null_control.measured_mu.upper
    assert not result.is_finding
