"""Star DP-ADMM (Huang, Hu, Guo, Chan-Tin, Gong 2020), section VI: UCI Adult, 40,000 of 45,222.

The paper's epsilon is of one iteration; its total, by Theorem 2, is what is promised here. The
repaired algorithm takes the printed c_w as a public constant; the published one finds its own by
pre-training, and is also run with the printed one, so that the noise is all that differs.

    agents_l2, agents_l1             Figures 4 and 1: excess loss and accuracy; varied: agents, 1 to
        400
    convergence_l2, convergence_l1   Figures 5 and 2: excess loss by round; varied: epsilon
    accuracy_l2, accuracy_l1         Figures 6 and 3: accuracy and excess loss; varied: epsilon,
        algorithm
    delta                            Figure 6, its part over delta; epsilon = 0.1 a round
    times                            Table II: seconds of 100 rounds; varied: epsilon, algorithm

Held where it is not varied: 100 agents, 100 rounds, delta = 1e-5 a round, replace-one, ten runs.
The division of the records is the same for all cells of a run.
"""

from dataclasses import dataclass, replace
from enum import Enum
from math import log, sqrt

from ...mechanisms import DataShape
from ...mechanisms.errors import InvalidParameter
from ...solvers import (
    L1,
    L2,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    ModelSolver,
    NonsmoothSteps,
    PublishedDpAdmm,
    PublishedDvpAdmm,
    PvpAdmm,
    SmoothSteps,
    exact_minimiser_epsilon,
)
from ..harness.cell import Cell, CellKind
from ..harness.experiment import Experiment, PaperExperiments, over_epsilon, over_rounds, over_x
from ..harness.reference import converged
from ..harness.sources import Source, SourceRecords
from ..harness.training import Method, TrainingTask

_ADULT = Source(records=SourceRecords.ADULT, train=40_000, test=5_222)
"""45,222 complete records, of which 40,000 are trained on, as in section VI."""
_AGENTS = 100
"""As in section VI, where their number is not what is varied."""
_PRETRAINING_ROUNDS = 1000
"""Enough to find |w*| = 81 on Adult, within one; 100 find 18."""
_STOPPED = "without noise, 100 rounds"
"""A line's name: the algorithm as it was stopped, which is no optimum."""
_EPSILONS = (0.01, 0.05, 0.1, 0.2)
"""Of one iteration, as in section VI."""
_DELTAS = (1e-3, 1e-4, 1e-5, 1e-6)
"""As in Figure 6."""


class StarFamily(Enum):
    """Whose algorithm: the paper's, or one that it compares with."""

    DP_ADMM = "DP-ADMM"
    PVP = "PVP"
    DVP = "DVP"
    DPSGD = "DPSGD"


@dataclass(frozen=True, kw_only=True)
class StarMethod(Method):
    """An algorithm of section VI; epsilon is of one iteration.

    Args:
        norm: the regulariser, 1 or 2.
        family: which algorithm.
        rounds: t.
        pretrained: whether the published algorithm finds c_w by pre-training, or takes the printed.
        step_size: of DPSGD.
    """

    norm: int = 2
    family: StarFamily = StarFamily.DP_ADMM
    rounds: int = 100
    pretrained: bool = True
    step_size: float = 0.1

    @property
    def target(self) -> float:
        """Theorem 2's total, sqrt(t ln(1/delta)/ln(1.25/delta))·epsilon."""
        ratio = log(1.0 / self.delta) / log(1.25 / self.delta)
        return sqrt(self.rounds * ratio) * self.epsilon

    def repaired(self, shape: DataShape, noise_multiplier: float) -> ModelSolver:
        """Return the algorithm at a noise multiplier."""
        if self.family is StarFamily.DPSGD:
            steps, regulariser = ConstantSteps(self.step_size), L2() if self.norm == 2 else L1()
            return DpSgd(self.rounds, noise_multiplier, steps, regulariser=regulariser)
        if self.family is StarFamily.PVP:
            # a gradient norm of 1e-4 costs a fiftieth of the sensitivity 2/(0.1·400)
            return PvpAdmm(self.rounds, noise_multiplier or None, tolerance=1e-4)
        return self._dp_admm(shape, noise_multiplier)

    def published(self, shape: DataShape) -> ModelSolver:
        """Return Algorithm 3 with Theorem 1's noise, and c_w from pre-training; or DVP, PVP.

        Noise of sqrt(2 ln(1.25/delta))/epsilon sensitivities in each round. Under DVP no noise is
        enough: see below.
        """
        if self.family is StarFamily.DVP:
            return self._dual_perturbation(shape)
        noise = sqrt(2.0 * log(1.25 / self.delta)) / self.epsilon
        if self.family is StarFamily.PVP:
            return self.repaired(shape, noise)
        algorithm = self._dp_admm(shape, noise)
        if not self.pretrained:
            return algorithm
        return PublishedDpAdmm(algorithm, _PRETRAINING_ROUNDS, self._distance)

    def _dual_perturbation(self, shape: DataShape) -> ModelSolver:
        """Return DVP whose exact minimisers would cost epsilon a round."""
        twin = PvpAdmm(self.rounds, None, tolerance=1e-4)
        modulus = twin.penalty + twin.regularisation
        # what a message costs at any noise: the change of its density's determinant
        bent = exact_minimiser_epsilon(shape, twin.loss, modulus=modulus, noise_scale=1e300)
        once = exact_minimiser_epsilon(shape, twin.loss, modulus=modulus, noise_scale=1.0) - bent
        if self.epsilon <= bent:
            raise InvalidParameter("epsilon", self.epsilon, f"above {bent:g} for DVP")
        return PublishedDvpAdmm(twin, once / (self.epsilon - bent))

    @property
    def _distance(self) -> float:
        """c_w as printed: |w*| = 89 with the l2 regulariser, 23 with l1."""
        return 89.0 if self.norm == 2 else 23.0

    def _dp_admm(self, shape: DataShape, noise_multiplier: float) -> DpAdmm:
        """Return Algorithm 3 with Theorem 4's steps (l2) or Theorem 3's (l1), at a noise
        multiplier.
        """
        if self.norm == 2:
            steps = SmoothSteps(0.25 + 1e-6, self._distance)
            return DpAdmm(self.rounds, noise_multiplier, steps)
        bound = 1.0 + 1e-6 * sqrt(shape.features)
        steps_l1 = NonsmoothSteps(bound, self._distance)
        return DpAdmm(self.rounds, noise_multiplier, steps_l1, regulariser=L1())


def _cell(
    line: str,
    method: StarMethod,
    *,
    x: float | None = None,
    agents: int = _AGENTS,
    history: bool = False,
) -> Cell:
    """Return a cell of a line; cells of one family are compared with each other."""
    task = TrainingTask(source=_ADULT, method=method, parties=agents, history=history)
    return Cell(line=line, kind=method.kind, task=task, x=x, pair=method.family.value)


def _convergence(norm: int, quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figures 2 and 5: excess loss after every round."""
    cells: list[Cell] = []
    for epsilon in _EPSILONS[1::2] if quick else _EPSILONS:
        for kind in (CellKind.PUBLISHED, CellKind.REPAIRED):
            method = StarMethod(kind=kind, epsilon=epsilon, norm=norm)
            cells.append(_cell(f"{kind.value}, ε = {epsilon:g} a round", method, history=True))
    free = StarMethod(kind=CellKind.NON_PRIVATE, norm=norm)
    return (*cells, _cell("without noise", free, history=True))


def _agents(norm: int, quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figures 1 and 4: more agents have fewer records each."""
    cells: list[Cell] = []
    for kind in (CellKind.PUBLISHED, CellKind.REPAIRED, CellKind.NON_PRIVATE):
        for agents in (10, 100) if quick else (1, 10, 50, 100, 200, 400):
            method = StarMethod(kind=kind, epsilon=0.1, norm=norm)
            line = _STOPPED if kind is CellKind.NON_PRIVATE else kind.value
            cells.append(_cell(line, method, x=agents, agents=agents))
    return tuple(cells)


def _accuracy(norm: int, quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figures 3 and 6: the paper's algorithm and those that it compares
    with.
    """
    epsilons = _EPSILONS[1::2] if quick else _EPSILONS
    # exact minimisers want a smooth objective
    baselines = (*_MINIMISERS, *_DESCENTS) if norm == 2 else _DESCENTS
    cells = [
        _cell(line, replace(method, epsilon=epsilon, norm=norm))
        for line, method in (("repaired", StarMethod(kind=CellKind.REPAIRED)), *baselines)
        for epsilon in epsilons
    ]
    published = [cell for epsilon in epsilons for cell in _published(norm, epsilon, 1e-5)]
    free = _cell(_STOPPED, StarMethod(kind=CellKind.NON_PRIVATE, norm=norm))
    return (*published, *cells, free, converged(_ADULT))


def _published(
    norm: int, epsilon: float, delta: float, *, x: float | None = None
) -> tuple[Cell, Cell]:
    """Return the published algorithm, and its noise with the printed c_w.

    Beside the whole algorithm stands its noise with the printed c_w: all else equal, so that the
    difference is what pre-training does to accuracy, and what epsilon the noise alone has.
    """
    kind = CellKind.PUBLISHED
    whole = StarMethod(kind=kind, epsilon=epsilon, delta=delta, norm=norm)
    noise = StarMethod(kind=kind, epsilon=epsilon, delta=delta, norm=norm, pretrained=False)
    return _cell("published", whole, x=x), _cell("published noise, printed c_w", noise, x=x)


_MINIMISERS = (
    ("PVP, published noise", StarMethod(kind=CellKind.PUBLISHED, family=StarFamily.PVP)),
    ("PVP, repaired", StarMethod(kind=CellKind.REPAIRED, family=StarFamily.PVP)),
    ("DVP as published", StarMethod(kind=CellKind.PUBLISHED, family=StarFamily.DVP)),
)
"""Algorithms with exact minimisers (Zhang, Zhu 2017), for smooth objectives only."""
_DESCENTS = (
    ("DPSGD, step 0.1 as printed", StarMethod(kind=CellKind.BASELINE, family=StarFamily.DPSGD)),
    # the reciprocal of the loss's smoothness, which is public
    ("DPSGD, step 4", StarMethod(kind=CellKind.BASELINE, family=StarFamily.DPSGD, step_size=4.0)),
)
"""Gradient descent with all records, at the printed step and at one over the smoothness."""


def _delta(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Figure 6's part over delta."""
    cells: list[Cell] = []
    for delta in _DELTAS[::3] if quick else _DELTAS:
        repaired = StarMethod(kind=CellKind.REPAIRED, epsilon=0.1, delta=delta)
        cells += _published(2, 0.1, delta, x=delta)
        cells.append(_cell("repaired", repaired, x=delta))
    return tuple(cells)


def _times(quick: bool) -> tuple[Cell, ...]:
    """Return the cells of Table II: seconds of 100 rounds.

    One processor and no other job beside it: times are compared, and stand in no test.
    """
    epsilons = (0.05,) if quick else (0.01, 0.05, 0.1)
    ours = ("DP-ADMM", StarMethod(kind=CellKind.REPAIRED))
    cells = [
        _cell(line, replace(method, epsilon=epsilon), x=epsilon)
        for line, method in (ours, *_MINIMISERS[1:], _DESCENTS[0])
        for epsilon in epsilons
    ]
    free = StarMethod(kind=CellKind.NON_PRIVATE, family=StarFamily.PVP)
    return (*cells, _cell("ADMM without privacy", free))


def _both(norm: int) -> tuple[Experiment, ...]:
    """Return the three experiments that the paper has for each regulariser, l1 or l2."""
    name, places = (f"l{norm}", (1, 2, 3) if norm == 1 else (4, 5, 6))
    return (
        Experiment(
            name=f"agents_{name}",
            title=f"Number of agents, {name.upper()}",
            source=f"Figure {places[0]}; ε = 0.1 a round, δ = 1e-5",
            runs=10,
            cells=lambda quick: _agents(norm, quick),
            figures=(over_x("excess_loss", "agents", log_y=True), over_x("accuracy", "agents")),
        ),
        Experiment(
            name=f"convergence_{name}",
            title=f"Convergence, {name.upper()}",
            source=f"Figure {places[1]}, as loss above the least; 100 agents, δ = 1e-5",
            runs=10,
            cells=lambda quick: _convergence(norm, quick),
            figures=(over_rounds("excess_loss"),),
        ),
        Experiment(
            name=f"accuracy_{name}",
            title=f"Accuracy and loss, {name.upper()}",
            source=f"Figure {places[2]}; 100 agents, δ = 1e-5",
            runs=10,
            cells=lambda quick: _accuracy(norm, quick),
            figures=(over_epsilon("accuracy"), over_epsilon("excess_loss", log_y=True)),
        ),
    )


PAPER = PaperExperiments(
    name="huang2020_star",
    reference="Huang, Hu, Guo, Chan-Tin, Gong 2020, section VI",
    experiments=(
        *_both(2),
        *_both(1),
        Experiment(
            name="delta",
            title="Accuracy against δ, L2",
            source="Figure 6, the part over δ; ε = 0.1 a round",
            runs=10,
            cells=_delta,
            figures=(over_x("accuracy", "δ"),),
        ),
        Experiment(
            name="times",
            title="Running time of 100 rounds, L2",
            source="Table II; 100 agents, δ = 1e-5",
            runs=10,
            cells=_times,
            figures=(over_x("seconds", "ε a round", log_y=True),),
            timed=True,
        ),
    ),
)
