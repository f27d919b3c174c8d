"""The claims of PR-ADMM (Ding, Zhang, Chen, Xue, Zhang, Pan 2020, decentralised)."""

from dataclasses import replace
from pathlib import Path

from ...audits.claims.claim import Paper
from ...audits.claims.settings import stated_epsilon
from ...audits.claims.sweep import Sweep
from .access import PREPROCESSING, THRESHOLD, TUNING
from .minimiser import EXACTNESS, MINIMISER
from .repair import REPAIR
from .sentences import GAUSSIAN, INTERMEDIATE, TIGHT
from .setting import PrSetting, published_guarantee
from .totals import (
    AGENTS,
    CONVERSION,
    ITERATION_BASED,
    PERIODIC,
    ROUND,
    exact_periodic,
    published_periodic,
)

__all__ = ["PAPER", "PrSetting", "exact_periodic", "published_periodic"]


PAPER = Paper(
    name="ding2020_network",
    title="Ding, Zhang, Chen, Xue, Zhang, Pan 2020: PR-ADMM on a network",
    setting=PrSetting(),
    evidence=Path(__file__).with_name("evidence.json"),
    claims=(
        MINIMISER,
        ROUND,
        PERIODIC,
        ITERATION_BASED,
        AGENTS,
        CONVERSION,
        TUNING,
        THRESHOLD,
        EXACTNESS,
        PREPROCESSING,
        GAUSSIAN,
        TIGHT,
        INTERMEDIATE,
        REPAIR,
    ),
    sweeps=(
        Sweep(
            "PR-3",
            "K = K_p, rounds of one period, epsilon = 1",
            tuple(range(2, 13)),
            at=lambda s, k: replace(s, K=int(k), K_p=int(k), epsilon=1.0),
            claimed=stated_epsilon,
            true=lambda s: published_guarantee(replace(s, convex=False)).epsilon,
            caption='The "- 1" of Theorem 3 weighs most in short runs; in longer ones the slack of '
            "the conversion hides it.",
        ),
    ),
)
