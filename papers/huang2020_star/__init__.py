"""The claims of the star paper (Huang, Hu, Guo, Chan-Tin, Gong 2020, DP-ADMM).

The paper: agents in a star send w̃_i = w_i + xi to a server; w_i is one first-order step on the
augmented Lagrangian, with a step size that falls with the noise. Theorem 1 is of one round, Theorem
2 of t rounds, Theorems 3 and 4 of convergence; section VI compares on Adult with 100 agents.

What the court finds: the sensitivity of Lemma 1 is right and attained; a round's noise is enough;
the total of Theorem 2 is a guarantee up to a critical mu only, below which all experiments lie; and
c_w, the columns' maxima and lambda are read off the records without noise.

    H-1   sensitivity of a first-order step, Lemma 1     holds exactly
    H-2   one round, Theorem 1                           holds
    H-3   the whole run, Theorem 2                       fails beyond a critical mu
    H-4   the experiments' totals                        hold
    H-5   step sizes from pre-training                   unaccounted access
    H-6   normalisation by column maxima                 unaccounted access
    H-6B  lambda by cross-validation                     unaccounted access
    H-7   the notation of the noise                      unspecified
    H-8   what is released                               holds
    H-9   sensitivity of an exact minimiser, Lemma 4     holds exactly
    H-R   the repair                                     holds

Verdicts are those at the setting's defaults, and are computed each time.
"""

from dataclasses import replace
from pathlib import Path

from ...audits.claims.auditor import swept
from ...audits.claims.claim import Paper
from ...audits.claims.sweep import Sweep
from .access import CROSS_VALIDATION, MESSAGES, NORMALISATION
from .one_round import FIRST_ORDER_STEP, MINIMISER, ROUND
from .pretraining import PRETRAINING
from .setting import StarSetting
from .whole_run import EXPERIMENTS, NOTATION, REPAIR, WHOLE_RUN, exact_total, published_total

__all__ = ["PAPER", "StarSetting", "exact_total", "published_total"]

PAPER = Paper(
    name="huang2020_star",
    title="Huang, Hu, Guo, Chan-Tin, Gong 2020: DP-ADMM in a star",
    setting=StarSetting(),
    evidence=Path(__file__).with_name("evidence.json"),
    claims=(
        FIRST_ORDER_STEP,
        ROUND,
        WHOLE_RUN,
        EXPERIMENTS,
        PRETRAINING,
        NORMALISATION,
        CROSS_VALIDATION,
        NOTATION,
        MESSAGES,
        MINIMISER,
        REPAIR,
    ),
    sweeps=(
        Sweep(
            "H-3",
            "t, rounds of epsilon = 1 each",
            (1, 2, 5, 10, 20, 30, 40, 51, 75, 100, 150, 200, 300, 400, 500),
            at=lambda s, t: replace(s, t=int(t), epsilon=1.0),
            claimed=published_total,
            true=exact_total,
            caption="Theorem 2's formula is linear in mu = epsilon sqrt(t/(2 ln(1.25/delta))), the "
            "truth is not.",
        ),
        swept(
            ROUND,
            "epsilon of a round",
            (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
            at=lambda s, epsilon: replace(s, epsilon=epsilon),
            caption="Theorem 1's noise over the whole range that it names.",
        ),
        swept(
            EXPERIMENTS,
            "epsilon of each of 100 rounds",
            (0.01, 0.02, 0.05, 0.1, 0.15, 0.2),
            at=lambda s, epsilon: replace(s, t=100, epsilon=epsilon),
            caption="The range of section VI's experiments.",
        ),
    ),
)
"""The paper's claims. The sweeps: Theorem 2 at epsilon = 1 a round, where its formula breaks after
50 rounds at delta = 1e-3; one round over (0, 1], and the experiments' 100 rounds, where nothing
breaks.
"""
