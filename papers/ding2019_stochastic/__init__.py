"""The claims of PS-ADMM (Ding, Errapotu, Zhang, Gong, Pan, Han 2019, stochastic steps in a star).

A server and providers; each provider runs S inner steps of variance-reduced stochastic gradients
(Johnson, Zhang 2013) a round, K rounds, with Gaussian noise on every inner gradient.

    PS-1  sensitivity of a stochastic gradient, 3G          fails: up to 4G - 2G/M
    PS-2  constants of Theorems 1 and 2                     unspecified
    PS-3  the whole run is (epsilon, delta)-DP, Theorem 2   fails for every c at large epsilon
    PS-4  weights of the average                            fails: no convex combination
    PS-5  the inner loop as printed                         fails: one iterate is never set
    PS-6  messages are functions of noisy gradients         holds
    PS-7  the classical Gaussian mechanism at any epsilon   fails for large epsilon
    PS-8  step size and K taken for public                  unaccounted access
    PS-9  "the same guarantee" as DVP's                     unspecified
    PS-R  the repair: full gradients, exact composition     holds

Verdicts are those at the setting's defaults; others may differ, and are computed each time.
"""

from dataclasses import replace
from pathlib import Path

from ...accounting.guarantees import guarantee
from ...audits.claims.claim import Paper
from ...audits.claims.settings import stated_epsilon
from ...audits.claims.sweep import Sweep
from .access import MESSAGES, STEP_SIZES
from .comparison import COMPARISON
from .constant import linear_epsilon, necessary_c
from .gradient import GRADIENT
from .loop import AVERAGE, LOOP, LoopPromise, WeightsPromise
from .mechanism import GAUSSIAN, classical_step
from .repair import REPAIR
from .setting import PsSetting
from .total import CONSTANTS, WHOLE_RUN, TotalPromise

__all__ = ["PAPER", "LoopPromise", "PsSetting", "TotalPromise", "WeightsPromise"]


def _worst_edge(s: PsSetting) -> str:
    """Return up to which constant the worst pair breaks the claim."""
    return f"The worst pair of steps breaks it up to c = {necessary_c(s):.6g}."


PAPER = Paper(
    name="ding2019_stochastic",
    title="Ding, Errapotu, Zhang, Gong, Pan, Han 2019: PS-ADMM with stochastic steps",
    setting=PsSetting(),
    evidence=Path(__file__).with_name("evidence.json"),
    claims=(
        GRADIENT,
        CONSTANTS,
        WHOLE_RUN,
        AVERAGE,
        LOOP,
        MESSAGES,
        GAUSSIAN,
        STEP_SIZES,
        COMPARISON,
        REPAIR,
    ),
    sweeps=(
        Sweep(
            "PS-3",
            "c, the constant of Theorem 2",
            (1, 1.25, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 10),
            at=lambda s, c: replace(s, c=c),
            claimed=stated_epsilon,
            true=lambda s: linear_epsilon(s, 1.0),
            caption="Linear losses alone, whose gradients are not sampled at all: a lower bound on "
            "what other data may cost.",
            at_least="linear losses",
            edges=_worst_edge,
        ),
        Sweep(
            "PS-7",
            "claimed epsilon",
            (0.1, 0.5, 1, 2, 3, 4, 5, 6, 7, 7.5, 8, 9, 10, 12),
            at=lambda s, epsilon: replace(s, epsilon=float(epsilon)),
            claimed=stated_epsilon,
            true=lambda s: guarantee(classical_step(s), delta=s.delta).epsilon,
            caption="One release with Definition 2's noise.",
        ),
    ),
)
"""Two sweeps: PS-3 varies c and holds epsilon, delta, K, S, M; PS-7 varies the epsilon of one
release and holds delta.
"""
