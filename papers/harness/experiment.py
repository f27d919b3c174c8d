"""An experiment: the cells of a figure or table of a paper, and how they are drawn."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from ...mechanisms.errors import DpledgerError
from .cell import Cell

METRICS: Mapping[str, str] = {
    "train_loss": "training loss",
    "excess_loss": "training loss above the least",
    "test_loss": "test loss",
    "accuracy": "test accuracy",
    "train_accuracy": "training accuracy",
    "seconds": "seconds of one processor",
}
"""What is drawn, and its name on an axis."""

MAJORITY: Mapping[str, str] = {"accuracy": "majority", "train_accuracy": "train_majority"}
"""By accuracy: the metric that is the accuracy of one answer to everybody."""


class Against(Enum):
    """What the horizontal axis of a figure is."""

    ROUND = "round"
    EPSILON = "epsilon"
    X = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """How cells are drawn.

    Args:
        metric: the vertical axis, a key of `METRICS`.
        against: the horizontal axis. Against epsilon a published cell stands twice: hollow at what
            its paper promises, filled at what is enclosed.
        label: of the horizontal axis, where it is neither rounds nor epsilon.
        log_x, log_y: logarithmic axes.
    """

    metric: str
    against: Against
    label: str = ""
    log_x: bool = False
    log_y: bool = False


def over_rounds(metric: str) -> Figure:
    """Return a metric after every round, on a logarithmic axis."""
    return Figure(metric=metric, against=Against.ROUND, log_y=True)


def over_epsilon(metric: str, *, log_y: bool = False) -> Figure:
    """Return a metric against epsilon, whose axis is logarithmic."""
    return Figure(metric=metric, against=Against.EPSILON, log_x=True, log_y=log_y)


def over_x(metric: str, label: str, *, log_x: bool = True, log_y: bool = False) -> Figure:
    """Return a metric against a setting of this name."""
    return Figure(metric=metric, against=Against.X, label=label, log_x=log_x, log_y=log_y)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A figure or table of a paper.

    Args:
        name: short; the command line's word after the paper's.
        title: what it shows.
        source: where it stands in the paper, and what differs here.
        runs: independent runs of every cell, the paper's number.
        cells: the cells; fewer of them, or smaller ones, for a quick look.
        figures: how they are drawn.
        timed: whether running times are the point: then cells run one after another.
    """

    name: str
    title: str
    source: str
    runs: int
    cells: Callable[[bool], tuple[Cell, ...]]
    figures: tuple[Figure, ...]
    timed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperExperiments:
    """A paper's experiments.

    Args:
        name: of the paper's folder.
        reference: authors, year and section.
        experiments: in the order of the paper.
    """

    name: str
    reference: str
    experiments: tuple[Experiment, ...]


class UnknownExperiment(DpledgerError, ValueError):
    """There is no experiment of this name."""


def chosen(
    name: str, papers: Iterable[PaperExperiments]
) -> list[tuple[PaperExperiments, Experiment]]:
    """Return the experiments that a name means: `paper`, or `paper/experiment`.

    Raises `UnknownExperiment`, which lists what there is.
    """
    paper_name, _, rest = name.partition("/")
    listed = list(papers)
    found = [
        (paper, experiment)
        for paper in listed
        for experiment in paper.experiments
        if paper.name == paper_name and rest in ("", experiment.name)
    ]
    if not found:
        known = ", ".join(
            f"{paper.name}/{experiment.name}"
            for paper in listed
            for experiment in paper.experiments
        )
        raise UnknownExperiment(f"experiment={name!r} must be among {known}, or a paper's name.")
    return found
