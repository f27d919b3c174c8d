"""The claims of DP-SGD (Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang 2016).

Published at CCS 2016, arXiv:1607.00133.

    AB-1  epsilon of 1.26 by the moments accountant, for q = 0.01, sigma = 4, T = 10,000
    AB-2  epsilon of 9.34 for the same run by strong composition
    AB-3  Theorem 1's constants c1 and c2, which are not given
    AB-4  lots drawn independently in the analysis, permuted and divided in practice

The setting's defaults are those of the example in section 3. Neighbours add or remove one example;
with linear losses of full clipping norm a step is exactly the sampled Gaussian mechanism.
"""

from dataclasses import replace
from pathlib import Path

from ...audits.claims.claim import Paper
from ...audits.claims.sweep import Sweep
from .accounting import CONSTANTS, LOTS, MOMENTS, STRONG, exact, moments
from .setting import SgdSetting

__all__ = ["PAPER", "SgdSetting"]

PAPER = Paper(
    name="abadi2016_sgd",
    title="Abadi, Chu, Goodfellow et al. 2016: DP-SGD and the moments accountant",
    setting=SgdSetting(),
    evidence=Path(__file__).with_name("evidence.json"),
    claims=(MOMENTS, STRONG, CONSTANTS, LOTS),
    sweeps=(
        Sweep(
            "AB-1",
            "sigma, noise over the clipping norm",
            (1, 1.5, 2, 3, 4, 6, 8),
            at=lambda s, sigma: replace(s, sigma=float(sigma)),
            claimed=moments,
            true=exact,
            caption="The moments accountant against exact accounting, for q = 0.01 and 10,000 "
            "steps.",
        ),
    ),
)
"""The sweep holds q, T and delta and varies sigma: the moments accountant, whole orders up to 32,
against exact accounting of the same events.
"""
