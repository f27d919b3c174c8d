"""PS-ADMM (Ding, Errapotu, Zhang, Gong, Pan, Han 2019), section 5: five parties of 6,838 records.

The paper prints neither K nor S nor the constant c of its Theorem 2; here K = 50, S = 10, c = 1.
The step size and the penalty are not printed either. The printed weights of inner iterates are no
average and diverge; so the published algorithm is also run with the corrected ones, and once more
with a constant c at which the promise is enclosed.

    convergence   Figure 2: training loss after every round; varied: epsilon and the algorithm
    accuracy      Figure 3: accuracy and excess loss after K rounds; varied: the same

Held in both: delta = 1e-3, five parties, logistic loss, replace-one, the division 70 : 30. The two
share their runs, since every run keeps its history.
"""

from dataclasses import dataclass
from enum import Enum

from ...mechanisms import DataShape, FixedBatch
from ...solvers import (
    ConvexWeights,
    ModelSolver,
    PrintedWeights,
    PsAdmm,
    PublishedPsAdmm,
    SampledPsAdmm,
    StochasticRounds,
    theorem_2_noise_std,
)
from ..harness.cell import Cell, CellKind
from ..harness.experiment import Experiment, PaperExperiments, over_epsilon, over_rounds
from ..harness.reference import converged
from ..harness.sources import Source, SourceRecords
from ..harness.training import Method, TrainingTask

# round(0.7·48842/5) = 6,838 records a party
_ADULT = Source(records=SourceRecords.ADULT_BINARY, train=34_190, test=14_652)
_PARTIES = 5
_DELTA = 1e-3
"""Of the whole run (section 5)."""
_EPSILONS = (0.05, 0.1, 0.5)
"""Of the whole run. Figures 2 and 3 have three cases, of which the text names 0.5."""
_CERTIFYING = {0.05: 152.1, 0.1: 478.2, 0.5: 8115.0}
"""By epsilon: the least constant c, rounded up to four digits, whose enclosed epsilon is at most
that one; found by bisection."""


class Weights(Enum):
    """How inner iterates are averaged."""

    PRINTED = "printed"
    CORRECTED = "corrected"


@dataclass(frozen=True, kw_only=True)
class PsMethod(Method):
    """PS-ADMM as published, with full gradients (R-A), or with once-noised snapshots (R-B).

    Args:
        sampled: whether the repaired algorithm is R-B, on hidden batches of a tenth of the records.
        weights: of the published algorithm.
        rounds: K.
        inner_steps: S.
        constant: c of Theorem 2.
    """

    sampled: bool = False
    weights: Weights = Weights.CORRECTED
    rounds: int = 50
    inner_steps: int = 10
    constant: float = 1.0
    delta: float = _DELTA
    """Of the whole run, as printed."""

    def repaired(self, shape: DataShape, noise_multiplier: float) -> ModelSolver:
        """Return R-A or R-B.

        R-A, full gradients: noise_multiplier times 2G/M in each of the K S steps. R-B, sampled
        corrections: one noisy snapshot a round, and corrections on fixed batches of a tenth, cut to
        G times the sampling rate.
        """
        if not self.sampled:
            return PsAdmm(self._rounds(), noise_multiplier)
        batch = shape.count // 10
        # cut to the sampling rate, corrections have the snapshot's sensitivity, and so its noise
        return SampledPsAdmm(
            self._rounds(),
            FixedBatch(batch),
            correction_bound=batch / shape.count,
            snapshot_noise_multiplier=noise_multiplier,
            correction_noise_multiplier=noise_multiplier,
        )

    def published(self, shape: DataShape) -> ModelSolver:
        """Return the printed algorithm with Theorem 2's noise.

        Its variance is c G² K S ln(1/delta)/(M² epsilon²) on every inner gradient.
        """
        noise_std = theorem_2_noise_std(
            self._rounds(), shape, epsilon=self.epsilon, delta=self.delta, constant=self.constant
        )
        weights = PrintedWeights() if self.weights is Weights.PRINTED else ConvexWeights()
        return PublishedPsAdmm(self._rounds(), noise_std, weights)

    def _rounds(self) -> StochasticRounds:
        """Return K rounds of S inner steps, at step size 1.5, penalty 0.05 and ridge 1e-4·|x|²."""
        # eta·nu = 0.45: within the printed weights' range
        return StochasticRounds(
            self.rounds, self.inner_steps, step_size=1.5, penalty=0.05, regularisation=2e-4
        )


def _cell(line: str, method: PsMethod) -> Cell:
    """Return the point of a line that this method makes, on five parties of the same division."""
    # with its history always, so that both experiments share their runs
    task = TrainingTask(source=_ADULT, method=method, parties=_PARTIES, history=True)
    return Cell(line=line, kind=method.kind, task=task)


def _lines(epsilon: float) -> list[tuple[str, PsMethod]]:
    """Return the published algorithm in three forms and both repairs, at one promised epsilon."""
    return [
        (
            "published, printed weights",
            PsMethod(kind=CellKind.PUBLISHED, epsilon=epsilon, weights=Weights.PRINTED),
        ),
        ("published, corrected weights", PsMethod(kind=CellKind.PUBLISHED, epsilon=epsilon)),
        (
            "published, certified c",
            PsMethod(kind=CellKind.PUBLISHED, epsilon=epsilon, constant=_CERTIFYING[epsilon]),
        ),
        ("repaired, full gradients", PsMethod(kind=CellKind.REPAIRED, epsilon=epsilon)),
        (
            "repaired, sampled corrections",
            PsMethod(kind=CellKind.REPAIRED, epsilon=epsilon, sampled=True),
        ),
    ]


def _accuracy(quick: bool) -> tuple[Cell, ...]:
    """Return Figure 3's cells: five algorithms at three epsilons, and what no noise reaches.

    A quick look takes the middle epsilon and leaves out the printed weights, which diverge.
    """
    epsilons = _EPSILONS[1:2] if quick else _EPSILONS
    # line by line, so that the legend keeps the order
    cells = [
        _cell(_lines(epsilon)[line][0], _lines(epsilon)[line][1])
        for line in range(1 if quick else 0, 5)
        for epsilon in epsilons
    ]
    free = _cell("without noise", PsMethod(kind=CellKind.NON_PRIVATE))
    return (*cells, free, converged(_ADULT))


def _convergence(quick: bool) -> tuple[Cell, ...]:
    """Return Figure 2's cells: corrected weights, certified c, R-A, and the run without noise."""
    cells = [
        _cell(f"{line}, ε = {epsilon:g}", method)
        for epsilon in (_EPSILONS[1:2] if quick else _EPSILONS)
        for line, method in _lines(epsilon)[1:4]
    ]
    return (*cells, _cell("without noise", PsMethod(kind=CellKind.NON_PRIVATE)))


PAPER = PaperExperiments(
    name="ding2019_stochastic",
    reference="Ding, Errapotu, Zhang, Gong, Pan, Han 2019, section 5",
    experiments=(
        Experiment(
            name="convergence",
            title="Convergence, 5 parties",
            source="Figure 2, the loss of the server's model; c = 1",
            runs=20,
            cells=_convergence,
            figures=(over_rounds("train_loss"),),
        ),
        Experiment(
            name="accuracy",
            title="Accuracy and loss, 5 parties",
            source="Figure 3, as accuracy after the last round; c = 1",
            runs=20,
            cells=_accuracy,
            figures=(over_epsilon("accuracy"), over_epsilon("excess_loss", log_y=True)),
        ),
    ),
)
"""Twenty runs a cell, as in the paper; c = 1 wherever a line does not say "certified c"."""
