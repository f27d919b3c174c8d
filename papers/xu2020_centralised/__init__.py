"""The claims of centralised DP-ADMM and DP-AccADMM (Xu, Shang, Liu et al. 2020).

The paper: one holder of all records solves min f(x) + lambda |A x|_1 by a linearised ADMM with a
noisy gradient in each of T rounds, and publishes the last (x_T, y_T); an accelerated variant takes
gradients at extrapolated points. Theorem 1 sets the noise by Rényi DP of one order; section V
solves the fused lasso on a9a and bio_train.

What the court finds: c/n is the sensitivity for null records only (DPA-1), which at the paper's
small epsilon the loose conversion hides (DPA-2, DPA-11); but the first dual variable is made of the
raw gradient and shows in the output (DPA-3), and the graph comes from the records (DPA-5).

    DPA-1   sensitivity c/n                              fails: 2c/n
    DPA-2   the noisy gradients, null records            holds
    DPA-3   the initial dual variable                    fails, with infinite epsilon
    DPA-4   full row rank                                outside its regime
    DPA-5   the graph is public                          unaccounted access
    DPA-6   gamma = 1                                    outside its regime
    DPA-7   conversion                                   holds
    DPA-8   acceleration costs nothing                   holds
    DPA-9   settings tuned on the records                unaccounted access
    DPA-10  the bound on gradients                       unenforced assumption
    DPA-11  Theorem 1 under its own relation             fails at larger epsilon
    DPA-12  the Gaussian mechanism                       fails at larger epsilon
    DPA-R   the repair                                   holds

Verdicts are those at the setting's defaults, and are computed each time.
"""

from dataclasses import replace
from pathlib import Path

from ...audits.claims.auditor import swept
from ...audits.claims.claim import Paper
from .mechanism import GAUSSIAN
from .regime import GRAPH, LINEARISATION, RANK, TUNING
from .sensitivity import BOUND, MEAN_GRADIENT
from .setting import CentralisedSetting
from .start import INITIAL_DUAL, split_statistic
from .whole_run import ACCELERATION, CONVERSION, GRADIENTS, REPAIR, REPLACED

__all__ = ["PAPER", "CentralisedSetting", "split_statistic"]


_EPSILONS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Of the sweeps of Theorem 1: section V's, and larger ones."""


def _at_epsilon(s: CentralisedSetting, epsilon: float) -> CentralisedSetting:
    """Return the setting at this epsilon.

    Args:
        s: the other parameters.
        epsilon: of the claim.
    """
    return replace(s, epsilon=float(epsilon))


PAPER = Paper(
    name="xu2020_centralised",
    title="Xu, Shang, Liu et al. 2020: centralised DP-ADMM and DP-AccADMM",
    setting=CentralisedSetting(),
    evidence=Path(__file__).with_name("evidence.json"),
    claims=(
        MEAN_GRADIENT,
        GRADIENTS,
        INITIAL_DUAL,
        RANK,
        GRAPH,
        LINEARISATION,
        CONVERSION,
        ACCELERATION,
        TUNING,
        BOUND,
        REPLACED,
        GAUSSIAN,
        REPAIR,
    ),
    sweeps=(
        *(
            swept(
                claim,
                f"claimed epsilon, {relation}",
                _EPSILONS,
                at=_at_epsilon,
                caption=f"Theorem 1's noise on the gradients alone, {relation}.",
            )
            for claim, relation in (
                (REPLACED, "a record is replaced"),
                (GRADIENTS, "a record is made null"),
            )
        ),
        swept(
            CONVERSION,
            "claimed epsilon of the run",
            _EPSILONS,
            at=_at_epsilon,
            caption="Appendix A's conversion at the best order, of Theorem 1's noise.",
        ),
        swept(
            GAUSSIAN,
            "claimed epsilon of one gradient",
            (0.1, 0.5, 1, 2, 3, 4, 5, 6, 7, 7.5, 8, 9, 10, 12),
            at=_at_epsilon,
            caption="One gradient with Definition 3's noise.",
        ),
    ),
)
"""The paper's claims at its a9a experiment. The first two sweeps show one noise under two
relations: where a record is replaced the claim breaks at an epsilon that the sweep shows, where it
is made null it never does. The others: the conversion, and Definition 3 where it names no range.
"""
