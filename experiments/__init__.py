"""experiments: the papers' figures and tables, with what is certified beside what is promised."""

from . import admm_sharing, dp_admm_centralized, pr_admm, ps_admm, star, utility
from .cell import Cell, Kind, Privacy, Task, Trace
from .engine import Measured, Plan
from .experiment import Experiment, Paper, UnknownExperiment, chosen
from .report import Finished, carry_out
from .tables import Comparison, Spread, spread

__all__ = [
    "PAPERS",
    "Cell",
    "Comparison",
    "Experiment",
    "Finished",
    "Kind",
    "Measured",
    "Paper",
    "Plan",
    "Privacy",
    "Spread",
    "Task",
    "Trace",
    "UnknownExperiment",
    "carry_out",
    "chosen",
    "spread",
]

PAPERS: tuple[Paper, ...] = (
    star.PAPER,
    pr_admm.PAPER,
    ps_admm.PAPER,
    dp_admm_centralized.PAPER,
    admm_sharing.PAPER,
    utility.PAPER,
)
"""All papers' experiments, and one over all papers."""
