"""The plan of a configured run, before any data are read.

In comes a configuration, of which the public shape of the data follows; out goes a `Plan`: events,
noise, guarantee and proof. Called by every command that needs an epsilon, and by the run itself.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from ..mechanisms import Event
from ..solvers import planning
from ..solvers.solver import ModelSolver
from .configuration import Configuration, read_configuration
from .pipeline import Plan, calibrate_proved, plan_at

__all__ = ["plan", "planned_events"]


def planned_events(configuration: Configuration, solver: ModelSolver) -> tuple[Event, ...]:
    """Return the events that a solver will emit on data of the configured shape.

    Args:
        configuration: of the run.
        solver: with its noise multiplier; it runs on a handle without records.
    """
    return planning.plan(solver, configuration.shape)


def plan(configuration: Configuration | Path | str) -> Plan:
    """Return the plan, proved: at the given noise, or the least that meets the target epsilon.

    Args:
        configuration: of the run, or the TOML file that it stands in.

    Raises `UnattainableTarget` where no noise does (the published variants).
    """
    if not isinstance(configuration, Configuration):
        configuration = read_configuration(Path(configuration))
    privacy, terms = configuration.privacy, configuration.terms

    @lru_cache
    def planned(noise_multiplier: float) -> tuple[Event, ...]:
        return planned_events(configuration, configuration.solvers.noisy(noise_multiplier))

    if privacy.noise_multiplier is not None:
        return plan_at(planned, privacy.noise_multiplier, terms)
    assert privacy.epsilon is not None
    return calibrate_proved(planned, epsilon=privacy.epsilon, terms=terms)
