"""What a repair is worth: the noise that a paper prescribes against the noise that is needed.

One epsilon of each paper, on its own records: the paper's noise for that epsilon beside the least
noise with a certificate for it, and what both do to the model. The cells are those of the papers'
experiments, the middle one of each line. There is no line for M-ADMM, R-ADMM and DPSGD, whose noise
these papers do not print, or for DVP, which has no certificate at any noise.

Ratios of noise are of multipliers, in units of each one's own sensitivity, so that a sensitivity
which the paper overstates counts as noise that was not needed. A quick look has two runs and the
same cells.
"""

from dataclasses import dataclass, replace

from .ding2019_stochastic.experiment import PAPER as PS_ADMM
from .ding2020_network.experiment import PAPER as PR_ADMM
from .harness.cell import Cell, CellKind
from .harness.experiment import Experiment, PaperExperiments
from .hu2020_sharing.experiment import PAPER as ADMM_SHARING
from .huang2020_star.experiment import PAPER as STAR
from .xu2020_centralised.experiment import PAPER as DP_ADMM_CENTRALIZED


@dataclass(frozen=True, slots=True)
class _Repair:
    """Two lines of a paper's experiment.

    Args:
        name: of the algorithm.
        paper: whose experiment.
        experiment: its name.
        published, repaired: the lines.
    """

    name: str
    paper: PaperExperiments
    experiment: str
    published: str
    repaired: str

    def cells(self, quick: bool) -> tuple[Cell, Cell]:
        """Return the middle cell of both lines, named after the algorithm.

        The middle one, as the ends of a range of epsilons are where one of both is of no use.
        """
        (experiment,) = (e for e in self.paper.experiments if e.name == self.experiment)
        known = experiment.cells(quick)

        def middle(line: str, kind: CellKind) -> Cell:
            of_line = [cell for cell in known if cell.line == line]
            name = f"{self.name}, {kind.value}"
            return replace(of_line[len(of_line) // 2], line=name, pair=self.name)

        return middle(self.published, CellKind.PUBLISHED), middle(self.repaired, CellKind.REPAIRED)


_NOISE = "published noise, printed c_w"
"""The star paper's noise with its printed c_w: pre-training has no epsilon at all."""
_CERTIFIED = "published, certified c"
"""PS-ADMM at a constant c for which its promise is enclosed."""
_REPAIRS = (
    _Repair("star DP-ADMM, L2", STAR, "accuracy_l2", _NOISE, "repaired"),
    _Repair("star DP-ADMM, L1", STAR, "accuracy_l1", _NOISE, "repaired"),
    _Repair("star PVP", STAR, "accuracy_l2", "PVP, published noise", "PVP, repaired"),
    *(
        _Repair(
            f"PR-ADMM, {decay}", PR_ADMM, "accuracy", f"{decay}: published", f"{decay}: repaired"
        )
        for decay in ("Per", "Iter")
    ),
    *(
        _Repair(f"PS-ADMM, {kind}", PS_ADMM, "accuracy", _CERTIFIED, f"repaired, {kind}")
        for kind in ("full gradients", "sampled corrections")
    ),
    *(
        _Repair(
            f"centralised {name}",
            DP_ADMM_CENTRALIZED,
            "accuracy",
            f"{name}: published",
            f"{name}: repaired",
        )
        for name in ("DP-ADMM", "DP-AccADMM")
    ),
    *(
        _Repair(f"sharing, {kind}", ADMM_SHARING, "noise", "published", f"repaired, {kind}")
        for kind in ("no scores exchanged", "20 exchanges")
    ),
)
"""By algorithm: which line of which experiment is the paper's noise, and which the repair's."""


def _cells(quick: bool) -> tuple[Cell, ...]:
    """Return both cells of every algorithm."""
    return tuple(cell for repair in _REPAIRS for cell in repair.cells(quick))


PAPER = PaperExperiments(
    name="utility",
    reference="Five papers' algorithms on Adult",
    experiments=(
        Experiment(
            name="noise",
            title="The published noise against the repaired one",
            source="one epsilon of each paper; the published PS-ADMM with a c that is certified",
            runs=5,
            cells=_cells,
            figures=(),
        ),
    ),
)
