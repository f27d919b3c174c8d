"""A tiny experiment: two agents, a few rounds, synthetic records; seconds."""

import pytest

from dpledger.papers.experiments import Cell, CellKind, Experiment, PaperExperiments
from dpledger.papers.harness.experiment import Against, Figure
from dpledger.papers.harness.sources import Source, SourceRecords
from dpledger.papers.harness.training import TrainingTask
from dpledger.papers.huang2020_star.experiment import StarMethod

SOURCE = Source(records=SourceRecords.SYNTHETIC, train=400, test=100, width=5)


def cell(kind: CellKind, epsilon: float = 0.1, *, history: bool = True) -> Cell:
    """Return a cell of the star algorithm on 400 records."""
    method = StarMethod(kind=kind, epsilon=epsilon, rounds=4)
    task = TrainingTask(source=SOURCE, method=method, parties=2, history=history)
    return Cell(line=f"{kind.value}, ε = {epsilon:g}", kind=kind, task=task, x=epsilon)


def cells(quick: bool) -> tuple[Cell, ...]:
    """Return published and repaired cells at one or two epsilons, and one without noise."""
    epsilons = (0.1,) if quick else (0.1, 0.2)
    kinds = (CellKind.PUBLISHED, CellKind.REPAIRED)
    private = [cell(kind, epsilon) for kind in kinds for epsilon in epsilons]
    return (*private, cell(CellKind.NON_PRIVATE))


@pytest.fixture(scope="session")
def tiny() -> Experiment:
    """The experiment."""
    return Experiment(
        name="tiny",
        title="A tiny one",
        source="nowhere",
        runs=3,
        cells=cells,
        figures=(
            Figure(metric="excess_loss", against=Against.ROUND, log_y=True),
            Figure(metric="accuracy", against=Against.EPSILON, log_x=True),
            Figure(metric="test_loss", against=Against.X, label="what", log_x=True),
        ),
    )


@pytest.fixture(scope="session")
def paper(tiny: Experiment) -> PaperExperiments:
    """A paper of the tiny experiment only."""
    return PaperExperiments(name="none", reference="nobody", experiments=(tiny,))
