"""PR-11 to PR-13: the Gaussian mechanism below 1, what is called tight, and what lookers-on see.

Sentences of the paper that are no theorems of its own: the classical Gaussian mechanism, which it
cites; that zCDP is a tight measure of a round's loss; that intermediate results tell nothing more.
"""

from collections.abc import Callable
from dataclasses import replace

from ...accounting.guarantees import guarantee
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.auditor import EpsilonPromise
from ...audits.claims.claim import Case
from ...audits.claims.classical import breaks_beyond, classical_multiplier, classical_release
from ...audits.claims.structure import MessagesOnlyPromise
from ...audits.claims.sums import RhoPromise
from ...audits.claims.tightness import TightPromise
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.events import Event
from ...mechanisms.private_data import PrivateDataset
from ...solvers.decentralised import PublishedPrAdmm
from ...solvers.planning import plan
from .setting import PrSetting, algorithm_of, claim, one_each, published_run, two_each
from .totals import round_rho

_BELOW_ONE = 0.99
"""The largest epsilon that is tried: the cited theorem is for epsilon < 1."""


def _below_one(case: Case[PrSetting]) -> list[PrSetting]:
    """The theorem is for epsilon in (0, 1): at the largest, and smaller.

    The largest epsilon is where the classical noise has the least to spare.
    """
    grid = (_BELOW_ONE, 0.5, 0.1)
    return list(dict.fromkeys(case.at(epsilon=epsilon).setting for epsilon in grid))


def _one_release(s: PrSetting) -> list[Event]:
    """Return one message with the theorem's noise."""
    return classical_release(
        published_run(s), Adjacency.REPLACE_ONE, epsilon=s.epsilon, delta=s.delta
    )


def _regime(s: PrSetting) -> str | None:
    """Return how the theorem's own condition is violated, None if it is not."""
    return None if s.epsilon < 1 else f"Theorem 1 asks for epsilon={s.epsilon:g} in (0, 1)"


def _one_message(case: Case[PrSetting]) -> ClaimAttack:
    """One round of one record an agent, which attains Lemma 5.

    Normal noise of one scale, so that the attack's exact mu is known.
    """
    s = replace(case.at(epsilon=_BELOW_ONE).setting, K=1, K_p=1)
    noise = classical_multiplier(epsilon=s.epsilon, delta=s.delta)
    words = f"one round of one record an agent, noise for epsilon = {s.epsilon:g}"
    solve = PublishedPrAdmm(algorithm_of(s, noise)).solve
    return ClaimAttack(solve, one_each(s), s.epsilon, s.delta, words)


def _rounds(s: PrSetting) -> Callable[[PrivateDataset, Curator], object]:
    """Return the published run, shortened to five rounds."""
    few = replace(s, K=min(s.K, 5), K_p=1)
    return PublishedPrAdmm(algorithm_of(few, 1.0)).solve


def _all_messages(case: Case[PrSetting]) -> ClaimAttack:
    """All messages of those rounds, against what their noise costs.

    Whatever a looker-on learns from them is in the noisy messages' price, or the attack would
    exceed it.
    """
    s = case.setting
    solve, pair = _rounds(s), two_each(s)
    planned = plan(solve, pair.dataset.shape, ideal=True)
    alone = guarantee(planned, delta=s.delta).epsilon.upper_float
    words = f"all messages of {min(s.K, 5)} rounds, against what the noisy ones cost"
    return ClaimAttack(solve, pair, alone, s.delta, words)


GAUSSIAN = claim(
    "PR-11",
    "the Gaussian mechanism below 1",
    "for epsilon in (0, 1) noise sigma >= sqrt(2 ln(1.25/delta)) Delta/epsilon is "
    "(epsilon, delta)-DP",
    "Theorem 1",
    EpsilonPromise(
        plan=_one_release,
        cases=_below_one,
        regime=_regime,
        figures=lambda s: {"epsilon at which it breaks": breaks_beyond(s.delta)},
    ),
    attack=_one_message,
)
"""Holds: below 1 the classical noise is enough; the figures say up to which epsilon.

The paper: its Theorem 1, cited from Dwork, Roth 2014, Theorem A.1, whose condition epsilon < 1 it
keeps. The court prices one planned message with that noise at three epsilons.
"""

TIGHT = claim(
    "PR-12",
    "a tight bound",
    "zero-concentrated differential privacy gives a tight bound on the privacy loss of a round",
    "introduction",
    TightPromise(RhoPromise(round_rho, plan=lambda s: published_run(s)[:1])),
    not_attacked="no run shows that less is lost than is said: what is lost at most is proved",
)
"""Fails: Theorem 2's rho exceeds what a round costs by the square of the number of records.

"Tight" promises a lower bound as well: that less would not do. The enclosure of the true rho shows
that much less does.
"""

INTERMEDIATE = claim(
    "PR-13",
    "intermediate results",
    "adversaries cannot obtain additional information by observing the intermediate results",
    "after Definition 4",
    MessagesOnlyPromise(_rounds, pair=two_each),
    attack=_all_messages,
)
"""Holds: all that an adversary sees are functions of messages that are priced.

Evidence: a run is recorded, and its messages are replayed on another data set: every part of the
state comes out the same, bit for bit, so that nothing private enters besides them.
"""
