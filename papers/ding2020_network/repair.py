"""PR-R: the repaired algorithm.

Noise in units of the true sensitivity, 2V/(|D_i| m) and 2 tau/m for a declared tolerance, and the
exact total of the schedule, converted exactly: the least noise that this analysis allows.
"""

from dataclasses import replace

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.auditor import EpsilonPromise
from ...audits.claims.claim import Case
from ...audits.claims.settings import multiplier_of
from ...mechanisms.events import Event
from ...solvers.decentralised import PrAdmm
from ...solvers.planning import plan
from .setting import PrSetting, algorithm_of, claim, one_each
from .totals import exact_periodic


def _multiplier(s: PrSetting) -> float:
    """Of round 1, for the whole run's (epsilon, delta)."""
    return multiplier_of(exact_periodic(s), epsilon=s.epsilon, delta=s.delta)


def _repaired_algorithm(s: PrSetting) -> PrAdmm:
    """Return PR-ADMM with noise for the exact total, and minimisers found to tau."""
    exact = algorithm_of(s, _multiplier(s))
    return replace(exact, tolerance=s.tau or exact.tolerance)


def _repaired(s: PrSetting) -> tuple[Event, ...]:
    """Return its planned events."""
    return plan(_repaired_algorithm(s), s.shape(), ideal=True)


def _repaired_rounds(case: Case[PrSetting]) -> ClaimAttack:
    """Return the attack on all messages of the repaired run."""
    s = case.setting
    words = f"K = {s.K}, K_p = {s.K_p}, one record an agent, tau = {s.tau:g}"
    return ClaimAttack(_repaired_algorithm(s).solve, one_each(s), s.epsilon, s.delta, words)


REPAIR = claim(
    "PR-R",
    "the repair",
    "noise in units of 2V/(|D_i| m) + 2 tau/m, and the exact total: the whole run is "
    "(epsilon, delta)-DP",
    "ours",
    EpsilonPromise(
        plan=_repaired,
        figures=lambda s: {"noise multiplier": Enclosure.of(_multiplier(s))},
    ),
    solver="PR-ADMM, repaired",
    attack=_repaired_rounds,
)
"""Holds exactly: the noise is that of the exact total, converted exactly.

Less noise would not do by this analysis: mu*(epsilon, delta) is the largest mu of that (epsilon,
delta) (Balle, Wang 2018, Theorem 8), and the sensitivity is attained by linear losses but for the
tolerance.
"""
