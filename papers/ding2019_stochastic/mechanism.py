"""PS-7: the Gaussian mechanism of Definition 2, at any epsilon.

sigma >= sqrt(2 ln(1.25/delta)) Delta/epsilon is a theorem for epsilon up to 1 (Dwork, Roth 2014,
Theorem A.1). For large epsilon the least sigma falls like 1/sqrt(2 epsilon), slower than this one,
which is then too small (Balle, Wang 2018).
"""

from dataclasses import replace

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.auditor import EpsilonPromise
from ...audits.claims.claim import Case
from ...audits.claims.classical import breaks_beyond, classical_multiplier, classical_release
from ...mechanisms.events import Event
from ...solvers.stochastic import PsAdmm
from .setting import PsSetting, claim, linear_pair, linear_run, stochastic_rounds


def classical_step(s: PsSetting) -> list[Event]:
    """Return one release by Definition 2: noise of sqrt(2 ln(1.25/delta))/epsilon sensitivities."""
    return classical_release(linear_run(s), s.relation, epsilon=s.epsilon, delta=s.delta)


def _classical_attack(case: Case[PsSetting]) -> ClaimAttack:
    """At a large epsilon, where Definition 2 breaks; at the user's where one is fixed."""
    s = replace(case.at(epsilon=10.0).setting, K=1, S=1, M=4, zero_out=False)
    words = f"one release of four records with Definition 2's noise for epsilon = {s.epsilon:g}"
    noise = classical_multiplier(epsilon=s.epsilon, delta=s.delta)
    solve = PsAdmm(stochastic_rounds(s, 1, 1), noise).solve
    return ClaimAttack(solve, linear_pair(s), s.epsilon, s.delta, words)


def _breaks(s: PsSetting) -> Enclosure:
    """Return the epsilon beyond which Definition 2 gives too little noise."""
    return breaks_beyond(s.delta)


def _epsilons(case: Case[PsSetting]) -> list[PsSetting]:
    """Return the setting at five epsilons: the definition is meant for all."""
    grid = (case.setting.epsilon, 0.1, 1.0, 5.0, 10.0)
    return list(dict.fromkeys(case.at(epsilon=epsilon).setting for epsilon in grid))


GAUSSIAN = claim(
    "PS-7",
    "the Gaussian mechanism",
    "noise sigma >= sqrt(2 ln(1.25/delta)) Delta/epsilon is (epsilon, delta)-DP",
    "Definition 2",
    EpsilonPromise(
        plan=classical_step,
        cases=_epsilons,
        broken=lambda s: f"epsilon > {_breaks(s).upper_float:.6g}",
        figures=lambda s: {"epsilon at which it breaks": _breaks(s)},
    ),
    attack=_classical_attack,
)
"""Fails beyond an epsilon that depends on delta alone; the figures enclose it.

The paper: Definition 2 names no range for epsilon. Evidence: the exact epsilon of one release with
that noise at five epsilons; an attack on one full gradient, with the claimed noise, at epsilon =
10.
"""
