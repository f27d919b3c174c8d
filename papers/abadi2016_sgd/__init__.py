"""The claims of DP-SGD (Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang 2016)."""

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
