"""Centralised DP-ADMM and DP-AccADMM (Xu, Shang, Liu et al. 2020), section V: fused lasso.

The paper's a9a is Adult in its binary form here, and bio_train is synthetic of that shape. The
paper prints neither the step size nor the number of rounds: here 0.3 and 200, where its gamma = 1
is stable. The paper learns its graph from the records, one more unprotected access; here all join
each feature to the next, which is public, so that the first dual variable and the noise differ.

    convergence         Figure 1: excess loss by round at epsilon = 0.1
    accuracy            Figure 2: loss and accuracy; varied: epsilon, 0.01 to 0.1; a record is
        replaced
    accuracy_zero_out   the same where a record is made null, for which Theorem 1's noise is enough
    synthetic           the same on records of bio_train's shape

Held: T = 200, delta = 1e-3, gamma = 1, step size 0.3, ten runs. As published u_0 is made of the raw
gradient, so that no enclosed epsilon is finite; the noise alone has one, which figures show.
"""

from dataclasses import dataclass

from ...mechanisms import Adjacency, DataShape
from ...solvers import (
    CentralisedDpAdmm,
    ModelSolver,
    PublishedCentralisedDpAdmm,
    fused_lasso,
    theorem_1_noise_multiplier,
)
from ..harness.cell import Cell, CellKind
from ..harness.experiment import Experiment, PaperExperiments, over_epsilon, over_rounds
from ..harness.reference import converged
from ..harness.sources import Source, SourceRecords
from ..harness.training import Method, TrainingTask

_A9A = Source(records=SourceRecords.ADULT_BINARY, train=32_561, test=16_281)
"""Binary Adult, with as many training and test records as LIBSVM's a9a."""
_BIO_TRAIN = Source(records=SourceRecords.SYNTHETIC, train=72_876, test=10_000, width=74)
"""Synthetic records of bio_train's size and width."""
_DELTA = 1e-3
"""As in section V."""
_EPSILONS = (0.01, 0.02, 0.04, 0.07, 0.1)
"""Of the whole run, within the range of Figure 2."""


@dataclass(frozen=True, kw_only=True)
class CentralisedMethod(Method):
    """The fused lasso by one holder of all records.

    Args:
        accelerated: DP-AccADMM.
        rounds: T.
    """

    accelerated: bool = False
    rounds: int = 200
    delta: float = _DELTA

    def repaired(self, shape: DataShape, noise_multiplier: float) -> ModelSolver:
        """Return the algorithm from u_0 = 0."""
        return self._algorithm(shape, noise_multiplier)

    def published(self, shape: DataShape) -> ModelSolver:
        """Return the algorithm with Theorem 1's noise, u_0 from the raw gradient."""
        noise = theorem_1_noise_multiplier(self.rounds, epsilon=self.epsilon, delta=self.delta)
        return PublishedCentralisedDpAdmm(self._algorithm(shape, noise))

    def _algorithm(self, shape: DataShape, noise_multiplier: float) -> CentralisedDpAdmm:
        """Return DP-ADMM or DP-AccADMM on a chain of features, with step size 0.3 and gamma = 1."""
        chain = [(i, i + 1) for i in range(shape.features - 1)]
        return CentralisedDpAdmm(
            fused_lasso(shape.features, chain),
            self.rounds,
            noise_multiplier,
            step_size=0.3,
            accelerated=self.accelerated,
            gamma=1.0,
        )


def _cell(
    line: str,
    method: CentralisedMethod,
    *,
    source: Source = _A9A,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    history: bool = False,
) -> Cell:
    """Return a cell of a line; published and repaired ones of an algorithm are a pair."""
    task = TrainingTask(
        source=source, method=method, parties=1, adjacency=adjacency, history=history
    )
    return Cell(line=line, kind=method.kind, task=task, pair=line.partition(":")[0])


def _accuracy(source: Source, adjacency: Adjacency, quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figure 2: both algorithms at every epsilon, and what no noise reaches.

    Args:
        source: of the records.
        adjacency: the relation that noise is priced under.
        quick: two epsilons only.
    """
    cells: list[Cell] = []
    for name, accelerated in (("DP-ADMM", False), ("DP-AccADMM", True)):
        for kind in (CellKind.PUBLISHED, CellKind.REPAIRED):
            for epsilon in (0.01, 0.1) if quick else _EPSILONS:
                method = CentralisedMethod(kind=kind, epsilon=epsilon, accelerated=accelerated)
                line = f"{name}: {kind.value}"
                cells.append(_cell(line, method, source=source, adjacency=adjacency))
        free = CentralisedMethod(kind=CellKind.NON_PRIVATE, accelerated=accelerated)
        line = f"{name}: without noise"
        cells.append(_cell(line, free, source=source, adjacency=adjacency))
    return (*cells, converged(source))


def _convergence(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figure 1: excess loss after every round at epsilon = 0.1."""
    kinds = (CellKind.PUBLISHED, CellKind.REPAIRED, CellKind.NON_PRIVATE)
    return tuple(
        _cell(
            f"{name}: {kind.value}",
            CentralisedMethod(kind=kind, epsilon=0.1, accelerated=accelerated),
            history=True,
        )
        for name, accelerated in (("DP-ADMM", False), ("DP-AccADMM", True))
        for kind in (kinds[1:] if quick else kinds)
    )


def _experiment(name: str, what: str, source: Source, adjacency: Adjacency) -> Experiment:
    """Return the experiment of Figure 2 on one source under one relation."""
    return Experiment(
        name=name,
        title=f"Loss and accuracy against ε, {what}",
        source=f"Figure 2, {what}; T = 200, under {adjacency.value}",
        runs=10,
        cells=lambda quick: _accuracy(source, adjacency, quick),
        figures=(over_epsilon("train_loss"), over_epsilon("accuracy")),
    )


PAPER = PaperExperiments(
    name="xu2020_centralised",
    reference="Xu, Shang, Liu et al. 2020, section V",
    experiments=(
        Experiment(
            name="convergence",
            title="Convergence on binary Adult, ε = 0.1",
            source="Figure 1, over rounds in place of seconds",
            runs=10,
            cells=_convergence,
            figures=(over_rounds("excess_loss"),),
        ),
        _experiment("accuracy", "binary Adult as a9a", _A9A, Adjacency.REPLACE_ONE),
        _experiment("accuracy_zero_out", "binary Adult as a9a", _A9A, Adjacency.ZERO_OUT_ONE),
        _experiment(
            "synthetic", "synthetic of bio_train's shape", _BIO_TRAIN, Adjacency.REPLACE_ONE
        ),
    ),
)
