"""DPA-12: the Gaussian mechanism of Definition 3, at any epsilon.

The classical noise is a theorem for epsilon up to 1 (Dwork, Roth 2014, Theorem A.1); for large
epsilon it is too little (Balle, Wang 2018).
"""

from dataclasses import replace

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.auditor import EpsilonPromise
from ...audits.claims.claim import Case
from ...audits.claims.classical import breaks_beyond, classical_multiplier, classical_release
from ...mechanisms.events import Event
from .setting import CentralisedSetting, algorithm_of, attack_on, claim, gradients, replaced


def _one_release(s: CentralisedSetting) -> list[Event]:
    """Return one noisy gradient with Definition 3's noise."""
    return classical_release(gradients(s), s.relation, epsilon=s.epsilon, delta=s.delta)


def _epsilons(case: Case[CentralisedSetting]) -> list[CentralisedSetting]:
    """The definition names no range: at these parameters, and at larger epsilons."""
    grid = (case.setting.epsilon, 1.0, 5.0, 10.0)
    return list(dict.fromkeys(case.at(epsilon=epsilon).setting for epsilon in grid))


def _breaks(s: CentralisedSetting) -> Enclosure:
    """Return the epsilon beyond which the definition gives too little noise."""
    return breaks_beyond(s.delta)


def _one_gradient(case: Case[CentralisedSetting]) -> ClaimAttack:
    """One noisy gradient of the solver, at an epsilon where the noise is too little."""
    s = replaced(replace(case.at(epsilon=10.0).setting, T=1, gamma=1.0))
    return attack_on(
        s, algorithm_of(s, classical_multiplier(epsilon=s.epsilon, delta=s.delta)), s.epsilon
    )


GAUSSIAN = claim(
    "DPA-12",
    "the Gaussian mechanism",
    "noise sigma >= sqrt(2 ln(1.25/delta)) Delta/epsilon is (epsilon, delta)-DP",
    "Definition 3",
    EpsilonPromise(
        plan=_one_release,
        cases=_epsilons,
        broken=lambda s: f"epsilon > {_breaks(s).upper_float:.6g}",
        figures=lambda s: {"epsilon at which it breaks": _breaks(s)},
    ),
    attack=_one_gradient,
)
"""Fails beyond an epsilon that depends on delta alone; the figures enclose it.

The paper: Definition 3 names no range for epsilon. Evidence: the exact epsilon of one planned
gradient with that noise at several epsilons, and the one at which both are equal.
"""
