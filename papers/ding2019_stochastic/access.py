"""PS-6 and PS-8: what leaves, and what is taken for public.

The messages are functions of noisy gradients. The step size is not: Theorem 3 asks for eta by the
strong convexity of the data term, which is read off the records.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np

from ...accounting.gaussian.exact import delta_from_epsilon
from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.claim import Case, Counterexample
from ...audits.claims.gaussian_event import likelihood_event
from ...audits.claims.structure import MessagesOnlyPromise, PublicPromise
from ...audits.neighbours import NeighbourPair, turned_record
from ...mechanisms.curators import Curator
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...solvers.stochastic import PublishedPsAdmm
from .setting import PsSetting, claim, stochastic_rounds

_RECORDS = 3
"""Of a provider in the attack: few, so that one of them matters."""


def _provider_pair(s: PsSetting) -> NeighbourPair:
    """Two providers with few records; the first one's first record differs."""
    return turned_record(("provider 0", "provider 1"), each=_RECORDS, row_bound=s.G)


def _published(s: PsSetting) -> Callable[[PrivateDataset, Curator], object]:
    """Return a few rounds, whose noise makes a provider's gradients 1-GDP where losses are linear.

    At most 3 rounds of 4 inner steps: n steps of sensitivity 2G/records and noise sqrt(n) times
    that compose to mu = 1, whatever n.
    """
    rounds, steps = min(s.K, 3), min(s.S, 4)
    noise_std = sqrt(rounds * steps) * 2 * s.G / _RECORDS
    return PublishedPsAdmm(stochastic_rounds(s, rounds, steps), noise_std).solve


def _all_messages(case: Case[PsSetting]) -> Counterexample:
    """Return the likelihood event of all that both providers send, at mu = 1 and epsilon = 1.

    If a message held more than the first provider's noisy gradients, its likelihood ratio could
    show more than a 1-GDP mechanism's exact delta at epsilon = 1, which is what is allowed.
    """
    s, one = case.setting, Enclosure.of(1)
    allowed = delta_from_epsilon(mu_squared=1, epsilon=1).upper_float
    return likelihood_event(_published(s), _provider_pair(s), mu=one, epsilon=one, delta=allowed)


def _step_size(_: PsSetting, rows: FloatArray) -> str:
    """Return Theorem 3's condition, eta <= mu_f/(8 nu_f² + 2 mu_f nu_f), for these rows.

    Args:
        rows: of shape (n, d). The logistic loss has second derivative 1/4 at score 0, so that the
            extreme eigenvalues of rowsᵀ rows/(4n) stand for mu_f and nu_f.
    """
    curvatures = np.linalg.eigvalsh(rows.T @ rows / len(rows)) / 4
    least, greatest = float(curvatures[0]), float(curvatures[-1])
    return f"eta <= {least / (8 * greatest**2 + 2 * least * greatest):.6g}"


def _few_rows(_: PsSetting) -> tuple[FloatArray, FloatArray]:
    """Return four rows (4, 2) of two data sets, whose last one is (.6, .8) or (.6, 0)."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.6, 0.8]])
    return rows, np.vstack([rows[:-1], [[0.6, 0.0]]])


MESSAGES = claim(
    "PS-6",
    "what is released",
    "all messages and the final model are functions of the noisy gradients",
    "Algorithm 2",
    MessagesOnlyPromise(_published, pair=_provider_pair),
    attack=_all_messages,
)
"""Holds: z and lambda are functions of the x_i and of public starts, so that a replay reproduces
every message from the noisy gradients alone; providers' records are disjoint, and their costs
combine by their maximum. What a noisy gradient costs is PS-1's and PS-3's question.
"""


STEP_SIZES = claim(
    "PS-8",
    "step sizes",
    "eta, from mu_f and nu_f, and K are public",
    "Theorems 3 and 4",
    PublicPromise(
        _step_size,
        rows=_few_rows,
        argument=lambda _: (
            "mu_f, the strong convexity of the data term, is a function of the records.",
            "Logistic loss without a regulariser has mu_f = 0: no eta > 0 is admissible.",
        ),
    ),
)
"""Unaccounted access: eta shows the least curvature of the records, and two data sets that differ
in one row publish different bounds on it. In the experiments the regulariser stands in g, so that
mu_f = 0 and Theorem 3 admits no eta at all.
"""
