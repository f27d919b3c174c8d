"""A run as a library: configuration, plan, calibration, training, certificate, comparison.

>>> from dpledger.runs import DEMO, plan
>>> planned = plan(DEMO)
>>> len(planned.events), round(planned.noise_multiplier, 3)
(100, 37.306)
>>> planned.guarantee.epsilon <= 1
True

Names are loaded when they are asked for; everything else is importable from its module.
"""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .attack import RunAttack, run_attack
    from .claims import judge_claim_file, judge_finished_run
    from .configuration import DEMO, Configuration, demo_configuration, read_configuration
    from .execution import RunOptions, RunResult, run
    from .pipeline import Plan, Terms, calibrate, calibrate_certified, certify_events, plan_at
    from .planning import plan

__all__ = [
    "DEMO",
    "Configuration",
    "Plan",
    "RunAttack",
    "RunOptions",
    "RunResult",
    "Terms",
    "calibrate",
    "calibrate_certified",
    "certify_events",
    "demo_configuration",
    "judge_claim_file",
    "judge_finished_run",
    "plan",
    "plan_at",
    "read_configuration",
    "run",
    "run_attack",
]

__getattr__ = names_from(
    __name__,
    {
        "attack": ("RunAttack", "run_attack"),
        "claims": ("judge_claim_file", "judge_finished_run"),
        "configuration": ("DEMO", "Configuration", "demo_configuration", "read_configuration"),
        "execution": ("RunOptions", "RunResult", "run"),
        "pipeline": (
            "Plan",
            "Terms",
            "calibrate",
            "calibrate_certified",
            "certify_events",
            "plan_at",
        ),
        "planning": ("plan",),
    },
)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
