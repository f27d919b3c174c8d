"""The claims of dynamic private ADMM: dual and primal variable perturbation (Zhang, Zhu 2017).

IEEE Transactions on Information Forensics and Security 12(1), 172 to 187.

    ZZ-1  2 C^R/(rho B), the sensitivity of a node's minimiser
    ZZ-2  alpha-DP of an iteration with noise behind the minimiser (PVP)
    ZZ-3  alpha-DP of an iteration with noise in front of it (DVP), for exact minimisers
    ZZ-4  that messages are exact minimisers
    ZZ-5  what alpha is of: an iteration

The statements are those that later work cites, with noise in the form of Chaudhuri, Monteleoni,
Sarwate 2011, on which the paper builds; they are not quoted, and no figure of its experiments is
judged. Guarantees are pure: delta is 0.
"""

from dataclasses import replace
from pathlib import Path

from ...audits.claims.auditor import swept
from ...audits.claims.claim import Paper
from ...audits.claims.sweep import Sweep
from .iteration import DUAL, EXACTNESS, MINIMISER, PRIMAL, RUN, run_epsilon, stated_alpha
from .setting import DynamicSetting

__all__ = ["PAPER", "DynamicSetting"]

PAPER = Paper(
    name="zhang2017_dynamic",
    title="Zhang, Zhu 2017: dynamic differential privacy for ADMM (DVP, PVP)",
    setting=DynamicSetting(),
    evidence=Path(__file__).with_name("evidence.json"),
    claims=(MINIMISER, PRIMAL, DUAL, EXACTNESS, RUN),
    sweeps=(
        Sweep(
            "ZZ-5",
            "K, iterations of alpha-DP each",
            (1, 2, 3, 5, 10, 20, 30, 50, 70, 100),
            at=lambda s, k: replace(s, K=int(k)),
            claimed=stated_alpha,
            true=run_epsilon,
            caption="If alpha were of the run: what K iterations cost of which no more is known "
            "than that each is alpha-DP.",
        ),
        *(
            swept(
                claim,
                "alpha of an iteration",
                (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0),
                at=lambda s, alpha: replace(s, alpha=float(alpha)),
                caption=f"One iteration with noise {where}.",
            )
            for claim, where in ((PRIMAL, "behind the minimiser"), (DUAL, "in the gradient"))
        ),
    ),
)
"""The first sweep prices the run at delta = 0, where pure guarantees add up; the others one
iteration of each algorithm.
"""
