"""experiments: the papers' figures and tables, with what is enclosed beside what is promised.

`PAPERS` lists them; `chosen` finds some by name, `run_experiment` runs one and leaves figures,
tables and a manifest. Every cell has a price from a plan, so that a point of a figure says what its
epsilon is worth: what the paper promises, what is enclosed of all that leaves, and what its noise
alone would cost.
"""

from . import utility
from .ding2019_stochastic import experiment as ps_admm
from .ding2020_network import experiment as pr_admm
from .harness.cell import Cell, CellKind, CellPrivacy, Task, Trace
from .harness.engine import ExperimentPlan, Measured
from .harness.experiment import Experiment, PaperExperiments, UnknownExperiment, chosen
from .harness.report import Finished, run_experiment
from .harness.tables import Comparison, Spread, spread
from .hu2020_sharing import experiment as admm_sharing
from .huang2020_star import experiment as star
from .xu2020_centralised import experiment as dp_admm_centralized

__all__ = [
    "PAPERS",
    "Cell",
    "CellKind",
    "CellPrivacy",
    "Comparison",
    "Experiment",
    "ExperimentPlan",
    "Finished",
    "Measured",
    "PaperExperiments",
    "Spread",
    "Task",
    "Trace",
    "UnknownExperiment",
    "chosen",
    "run_experiment",
    "spread",
]

PAPERS: tuple[PaperExperiments, ...] = (
    star.PAPER,
    pr_admm.PAPER,
    ps_admm.PAPER,
    dp_admm_centralized.PAPER,
    admm_sharing.PAPER,
    utility.PAPER,
)
"""All papers' experiments, and one over all papers."""
