"""PR-ADMM (Ding, Zhang, Chen, Xue, Zhang, Pan 2020), section V: five agents of 8,000 records each.

The records are Adult in its binary form, on which the paper's number of rounds gets beyond the
majority class (with the numeric form it does not), and so are the repaired runs' penalties: at the
paper's eta = 0.5 even the algorithm without noise answers "no" to everybody. Both are shown. The
regulariser's weight is not printed in the paper; it is 0 here.

    accuracy                   Figures 5 and 6: accuracy and loss; varied: epsilon, algorithm; eta =
        0.05
    accuracy_printed_penalty   the same at the printed eta = 0.5
    convergence                Figure 4: training loss by round at epsilon = 10
    period, rate, threshold    Figures 2 and 3(a): K_p, R_P and U of the linear decay, epsilon = 10
    iteration_rate             Figure 3(b): R_T of the other decay

Held where it is not varied: 50 rounds, delta = 1e-4 for the whole run, replace-one, ten runs.
"""

from dataclasses import dataclass, field
from enum import Enum
from math import inf

from ...mechanisms import DataShape
from ...solvers import (
    ConstantNoise,
    IterationDecay,
    MAdmm,
    ModelSolver,
    NoiseSchedule,
    PeriodicDecay,
    PrAdmm,
    PublishedPrAdmm,
    RAdmm,
    five_agents,
    published_noise_multiplier,
)
from ..harness.cell import Cell, CellKind
from ..harness.experiment import (
    Experiment,
    Figure,
    PaperExperiments,
    over_epsilon,
    over_rounds,
    over_x,
)
from ..harness.reference import converged
from ..harness.sources import Source, SourceRecords
from ..harness.training import Method, TrainingTask

_ADULT = Source(records=SourceRecords.ADULT_BINARY, train=40_000, test=8_842)
"""The same 48,842 records as the paper's, 40,000 of which five agents train on."""
_DELTA = 1e-4
"""Of the whole run (section V)."""
_EPSILONS = (0.1, 0.5, 1.0, 5.0, 10.0)
"""The paper's values, of the whole run."""
_PRINTED_PENALTY, _LEARNING_PENALTY = 0.5, 0.05
_PERIODIC = PeriodicDecay(0.925, 1)
"""R_P = 0.925 and K_p = 1, as section V settles on."""
_ITERATION = IterationDecay(0.015)
"""R_T = 0.015, as section V settles on."""


class NetworkFamily(Enum):
    """Whose algorithm: the paper's, or one that it compares with, repaired."""

    PR_ADMM = "PR-ADMM"
    M_ADMM = "M-ADMM"
    R_ADMM = "R-ADMM"


@dataclass(frozen=True, kw_only=True)
class PrMethod(Method):
    """An algorithm on the five agents' network.

    Args:
        family: which algorithm. What the paper prints of M-ADMM and R-ADMM is their names; growth
            of the penalty by 2 % a round and a proximity of 1/2 are of this experiment.
        schedule: of the noise.
        threshold: U.
        penalty: eta.
        rounds: K.
    """

    family: NetworkFamily = NetworkFamily.PR_ADMM
    schedule: PeriodicDecay | IterationDecay | ConstantNoise = field(default_factory=ConstantNoise)
    threshold: float = inf
    penalty: float = _LEARNING_PENALTY
    rounds: int = 50
    delta: float = _DELTA

    def repaired(self, shape: DataShape, noise_multiplier: float) -> ModelSolver:
        """Return the algorithm at a noise multiplier of the first round."""
        settings = self._algorithm(noise_multiplier)
        if self.family is NetworkFamily.M_ADMM:
            return MAdmm(settings, 1.02)
        if self.family is NetworkFamily.R_ADMM:
            return RAdmm(settings, 0.5)
        return settings

    def published(self, shape: DataShape) -> ModelSolver:
        """Return the algorithm with Theorem 3's or 4's noise, in units of Lemma 5."""
        schedule = self.schedule
        if isinstance(schedule, ConstantNoise):
            raise TypeError("Expected schedule=ConstantNoise() to be repaired: no paper's.")
        first = published_noise_multiplier(
            schedule, self.rounds, epsilon=self.epsilon, delta=self.delta
        )
        # at the published noise iterates reach 1e6, and doubles do not certify gradients of 1e-6
        return PublishedPrAdmm(self._algorithm(first, tolerance=1e-4))

    def _algorithm(self, noise_multiplier: float, *, tolerance: float = 1e-6) -> PrAdmm:
        """Return PR-ADMM on the paper's network of five; at noise 0 it is the algorithm without
        privacy.
        """
        schedule: NoiseSchedule = self.schedule
        return PrAdmm(
            five_agents(),
            self.rounds,
            noise_multiplier,
            schedule,
            penalty=self.penalty,
            threshold=self.threshold,
            tolerance=tolerance,
        )


def _cell(line: str, method: PrMethod, *, x: float | None = None, history: bool = False) -> Cell:
    """Return a cell of a line; published and repaired ones with the same name up to a colon are a
    pair.
    """
    task = TrainingTask(source=_ADULT, method=method, parties=5, history=history)
    return Cell(line=line, kind=method.kind, task=task, x=x, pair=line.partition(":")[0])


def _lines(epsilon: float, penalty: float) -> list[tuple[str, PrMethod]]:
    """The paper's two variants as published and repaired, and the repaired one at constant noise.

    Constant noise is the best schedule for the paper's own error bound.
    """
    found: list[tuple[str, PrMethod]] = []
    for name, schedule, threshold in (("Per", _PERIODIC, 0.1), ("Iter", _ITERATION, 1.0)):
        for kind in (CellKind.PUBLISHED, CellKind.REPAIRED):
            method = PrMethod(
                kind=kind,
                epsilon=epsilon,
                schedule=schedule,
                penalty=penalty,
                threshold=threshold if kind is CellKind.PUBLISHED else inf,
            )
            found.append((f"{name}: {kind.value}", method))
    constant = PrMethod(kind=CellKind.REPAIRED, epsilon=epsilon, penalty=penalty)
    found.append(("constant noise: repaired", constant))
    for family in (NetworkFamily.M_ADMM, NetworkFamily.R_ADMM):
        baseline = PrMethod(kind=CellKind.BASELINE, epsilon=epsilon, family=family, penalty=penalty)
        found.append((f"{family.value}: repaired", baseline))
    return found


def _free(penalty: float) -> PrMethod:
    """Return the algorithm without noise, which shows what the rounds alone reach."""
    return PrMethod(kind=CellKind.NON_PRIVATE, penalty=penalty)


def _accuracy(penalty: float, quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figures 5 and 6: every line at every epsilon, and what no noise
    reaches.
    """
    cells = [
        _cell(line, method)
        for epsilon in (_EPSILONS[::4] if quick else _EPSILONS)
        for line, method in _lines(epsilon, penalty)
    ]
    return (*cells, _cell("without noise", _free(penalty)), converged(_ADULT))


def _convergence(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figure 4, measured after every round at the paper's largest epsilon."""
    lines = [*_lines(10.0, _LEARNING_PENALTY), ("without noise", _free(_LEARNING_PENALTY))]
    return tuple(_cell(line, method, history=True) for line, method in lines)


def _swept(variants: list[tuple[float, PeriodicDecay | IterationDecay, float]]) -> tuple[Cell, ...]:
    """Return published and repaired cells over one setting, which stands on the x axis.

    Args:
        variants: (x, schedule, threshold).
    """
    return tuple(
        _cell(
            f"PR-ADMM: {kind.value}",
            PrMethod(kind=kind, epsilon=10.0, schedule=schedule, threshold=threshold),
            x=x,
        )
        for kind in (CellKind.PUBLISHED, CellKind.REPAIRED)
        for x, schedule, threshold in variants
    )


def _period(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figure 2(a): the period K_p of the linear decay."""
    periods = (1, 10) if quick else (1, 2, 5, 10, 25, 50)
    return _swept([(k, PeriodicDecay(0.925, k), 0.1) for k in periods])


def _rate(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figure 2(c): its rate R_P."""
    rates = (0.9, 0.95) if quick else (0.85, 0.875, 0.9, 0.925, 0.95, 0.975)
    return _swept([(r, PeriodicDecay(r, 1), 0.1) for r in rates])


def _iteration_rate(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figure 3(b): the rate R_T of the other decay."""
    rates = (0.005, 0.05) if quick else (0.005, 0.01, 0.015, 0.02, 0.05, 0.1)
    return _swept([(r, IterationDecay(r), 1.0) for r in rates])


def _threshold(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figures 2(b) and 3(a): the threshold U below which messages are kept
    back.
    """
    thresholds = (0.1, 10.0) if quick else (0.01, 0.1, 1.0, 10.0, 100.0)
    return _swept([(u, _PERIODIC, u) for u in thresholds])


def _accuracies(name: str, penalty: float, why: str) -> Experiment:
    """Return the experiment of Figures 5 and 6 at a penalty.

    Args:
        name: of the experiment.
        penalty: eta.
        why: in the experiment's source line.
    """
    return Experiment(
        name=name,
        title=f"Accuracy and loss, 5 agents, η = {penalty:g}",
        source=f"Figures 5 and 6; η = {penalty:g}, {why}",
        runs=10,
        cells=lambda quick: _accuracy(penalty, quick),
        figures=(
            over_epsilon("accuracy"),
            over_epsilon("train_accuracy"),
            over_epsilon("excess_loss", log_y=True),
        ),
    )


def _over(label: str, *, log_x: bool) -> tuple[Figure, ...]:
    """Return test and training accuracy over a setting."""
    return over_x("accuracy", label, log_x=log_x), over_x("train_accuracy", label, log_x=log_x)


PAPER = PaperExperiments(
    name="ding2020_network",
    reference="Ding, Zhang, Chen, Xue, Zhang, Pan 2020, section V",
    experiments=(
        _accuracies("accuracy", _LEARNING_PENALTY, "at which 50 rounds learn"),
        _accuracies("accuracy_printed_penalty", _PRINTED_PENALTY, "as printed"),
        Experiment(
            name="convergence",
            title="Convergence, ε = 10",
            source="Figure 4; η = 0.05",
            runs=10,
            cells=_convergence,
            figures=(over_rounds("train_loss"),),
        ),
        Experiment(
            name="period",
            title="Period of the linear decay, ε = 10",
            source="Figure 2(a); η = 0.05",
            runs=10,
            cells=_period,
            figures=_over("period $K_p$", log_x=True),
        ),
        Experiment(
            name="threshold",
            title="Threshold, ε = 10",
            source="Figures 2(b) and 3(a); periodic decay, η = 0.05",
            runs=10,
            cells=_threshold,
            figures=_over("threshold U", log_x=True),
        ),
        Experiment(
            name="rate",
            title="Rate of the linear decay, ε = 10",
            source="Figure 2(c); η = 0.05",
            runs=10,
            cells=_rate,
            figures=_over("rate $R_P$", log_x=False),
        ),
        Experiment(
            name="iteration_rate",
            title="Rate of the iteration-based decay, ε = 10",
            source="Figure 3(b); η = 0.05",
            runs=10,
            cells=_iteration_rate,
            figures=_over("rate $R_T$", log_x=True),
        ),
    ),
)
