"""DPA-2, DPA-7, DPA-8, DPA-11 and DPA-R: what the noisy gradients cost, and the repair.

Theorem 1 takes Rényi DP of one order alpha, with a share mu of epsilon for the divergence and the
rest for delta: T gradients with noise z sensitivities have divergence alpha T/(2 z²), and the
conversion adds ln(1/delta)/(alpha - 1) (Mironov 2017, Proposition 3). For null records, where c/n
is the sensitivity, the noise is more than enough. Where a record is replaced the sensitivity is
twice as large, and the slack hides that only at small epsilon.
"""

from dataclasses import replace
from fractions import Fraction
from math import log, sqrt

from scipy.optimize import brentq

from ...accounting.conversions import epsilon_from_rdp_mironov
from ...accounting.gaussian.exact import mu_from_epsilon_delta
from ...accounting.guarantees import Guarantee, guarantee
from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision, shown_up
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.auditor import EpsilonPromise, gaussian_steps
from ...audits.claims.claim import Case
from ...audits.claims.settings import multiplier_of
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import Event
from ...solvers.centralised import CentralisedDpAdmm, theorem_1_noise_multiplier
from ...solvers.planning import plan
from .setting import (
    CentralisedSetting,
    algorithm_of,
    attack_on,
    claim,
    gradients,
    null,
    replaced,
    theorem_1,
)

_LARGER = (1.0, 5.0)
"""Further epsilons at which the theorem is looked at: it names no range."""

_SMALL = 1e-3
"""The least epsilon of the search for where the noise becomes too small."""


def _null_gradients(s: CentralisedSetting) -> list[Event]:
    """Return the noisy gradients where a record is made null.

    The relation for which c/n is the sensitivity: all that is left of the theorem is then its
    conversion.
    """
    return gradients(null(s))


def _truth(s: CentralisedSetting) -> Guarantee:
    """Return what they cost."""
    return guarantee(_null_gradients(s), delta=s.delta)


def _order(s: CentralisedSetting) -> float:
    """alpha of Theorem 1.

    ln(1/delta)/((1 - mu) epsilon) + 1: the order at which the delta part costs its share.
    """
    return -log(s.delta) / ((1 - s.mu) * s.epsilon) + 1


def _figures(s: CentralisedSetting) -> dict[str, Enclosure]:
    """Return alpha, and the noise over the least that is needed."""
    truth = _truth(s)
    a = -log(s.delta) / s.epsilon
    # the root in (0, 1) of a (2 mu - 1) = (1 - mu)², where alpha/mu is least
    best = (1 + a) / (1 + a + sqrt(a * (1 + a)))
    optimal = theorem_1_noise_multiplier(s.T, epsilon=s.epsilon, delta=s.delta, mu=best)
    mu = mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta)
    with precision(BITS):
        noise = ball_of(theorem_1(s))
        against_exact = Enclosure.from_ball(noise * ball_of(mu) / ball_of(s.T).sqrt())
    return {
        "alpha": Enclosure.of(_order(s)),
        "rho": truth.rho,
        "exact epsilon": truth.epsilon,
        "noise ratio, against the best mu": Enclosure.of(theorem_1(s) / optimal),
        "noise ratio, against the exact Gaussian": against_exact,
    }


def _by_orders(s: CentralisedSetting) -> Enclosure:
    """beta + ln(1/delta)/(alpha - 1), with beta = alpha rho of the gradients.

    Mironov 2017, Proposition 3, as Appendix A has it.
    """
    order = Fraction(_order(s))
    with precision(BITS):
        rdp = Enclosure.from_ball(ball_of(_truth(s).rho) * ball_of(order))
    return epsilon_from_rdp_mironov(order=order, rdp=rdp, delta=s.delta)


def _accelerated(s: CentralisedSetting) -> CentralisedDpAdmm:
    """Return DP-AccADMM with Theorem 1's noise."""
    return replace(algorithm_of(s, theorem_1(s)), accelerated=True)


def _accelerated_run(s: CentralisedSetting) -> tuple[Event, ...]:
    """Return its planned events, where a record is made null.

    With the same u_0 = 0 as the repair: the raw start is a claim of its own (DPA-3).
    """
    return plan(_accelerated(s), null(s).shape, ideal=True)


def _multiplier(s: CentralisedSetting) -> float:
    """Return the noise multiplier by which the T gradients are (epsilon, delta)-DP."""
    return multiplier_of(s.T, epsilon=s.epsilon, delta=s.delta)


def _repaired(s: CentralisedSetting) -> tuple[Event, ...]:
    """Return the planned events with that noise, from u_0 = 0."""
    return plan(algorithm_of(s, _multiplier(s)), s.shape, ideal=True)


def _repaired_figures(s: CentralisedSetting) -> dict[str, Enclosure]:
    """Return sigma n/(c sqrt(T)), which depends on none of n, c and T."""
    (step, *_) = gaussian_steps(_repaired(s))
    with precision(BITS):
        noise = ball_of(step.noise_std) * s.n / ball_of(s.c) / ball_of(s.T).sqrt()
        return {"sigma n/(c sqrt(T))": Enclosure.from_ball(noise)}


def _gradients_attack(case: Case[CentralisedSetting]) -> ClaimAttack:
    """Return the attack on what Theorem 1 promises for null records."""
    s = null(case.setting)
    return attack_on(s, algorithm_of(s, theorem_1(s)), s.epsilon)


def _conversion_attack(case: Case[CentralisedSetting]) -> ClaimAttack:
    """Return the attack on what the conversion promises at alpha."""
    s = null(case.setting)
    return attack_on(s, algorithm_of(s, theorem_1(s)), _by_orders(s).upper_float)


def _accelerated_attack(case: Case[CentralisedSetting]) -> ClaimAttack:
    """Return the attack on the accelerated run."""
    s = null(case.setting)
    return attack_on(s, _accelerated(s), s.epsilon)


def _replaced_gradients(s: CentralisedSetting) -> list[Event]:
    """Return the noisy gradients where a record is replaced."""
    return gradients(replaced(s))


def _every_epsilon(case: Case[CentralisedSetting]) -> list[CentralisedSetting]:
    """The theorem is for every epsilon: at these parameters, and at larger ones."""
    larger = _LARGER if case.free("epsilon") else ()
    return [case.setting, *(case.at(epsilon=epsilon).setting for epsilon in larger)]


def _replaced_breaks(s: CentralisedSetting) -> str:
    """Return from which epsilon on the noise is too small under replace-one.

    By bisection on the ratio of the exact epsilon and the claimed one, which grows with epsilon.
    """

    def excess(epsilon: float) -> float:
        here = replace(s, epsilon=epsilon)
        found = guarantee(_replaced_gradients(here), delta=s.delta).epsilon
        return found.upper_float / epsilon - 1

    return f"epsilon > {float(brentq(excess, _SMALL, s.epsilon, xtol=1e-6)):.6g}"


def _replaced_attack(case: Case[CentralisedSetting]) -> ClaimAttack:
    """Return the attack under replace-one, at an epsilon where the noise is clearly too small."""
    # where the noise is clearly too small
    s = replaced(case.at(epsilon=max(_LARGER)).setting)
    # four records move the gradient by their price, whatever n: noise over sensitivity is half
    return attack_on(s, algorithm_of(s, theorem_1(s) / 2), s.epsilon)


def _replaced_argument(s: CentralisedSetting) -> tuple[str, ...]:
    """Return by what factor the noise is too small where a record is replaced."""
    truth = guarantee(_replaced_gradients(s), delta=s.delta).epsilon
    return (
        "The paper's neighbours differ in one element: a record is replaced by any other. Then a "
        "mean gradient moves by 2c/n, twice of what Theorem 1's noise is made for (DPA-1), and the "
        f"T noisy gradients cost epsilon = {shown_up(truth.upper_float, digits=6)} at "
        f"delta = {s.delta:g}.",
        "DPA-2, DPA-7 and DPA-8 ask what is left of it where a record is made null.",
    )


def _repair_attack(case: Case[CentralisedSetting]) -> ClaimAttack:
    """Return the attack on the repaired run."""
    s = case.setting
    return attack_on(s, algorithm_of(s, _multiplier(s)), s.epsilon)


GRADIENTS = claim(
    "DPA-2",
    "the noisy gradients",
    "with sigma² = c² alpha T/(2 n² epsilon mu), alpha = ln(1/delta)/((1-mu) epsilon) + 1 "
    "the T noisy gradients are (epsilon, delta)-DP if records are made null",
    "Theorem 1",
    EpsilonPromise(plan=_null_gradients, figures=_figures),
    adjacency=Adjacency.ZERO_OUT_ONE,
    attack=_gradients_attack,
)
"""Holds for null records, with noise to spare.

The paper: Theorem 1, of the T noisy gradients; u_0 and the graph are claims of their own. The court
composes the planned gradients exactly: at epsilon = 0.1 the noise is 2.1 times the least that is
needed.
"""

REPLACED = claim(
    "DPA-11",
    "Theorem 1 under its own relation",
    "with sigma² = c² alpha T/(2 n² epsilon mu) the T noisy gradients are (epsilon, delta)-DP for "
    "data sets that differ in one element",
    "Theorem 1; section II, neighbouring data sets",
    EpsilonPromise(
        plan=_replaced_gradients,
        cases=_every_epsilon,
        broken=_replaced_breaks,
        argument=_replaced_argument,
    ),
    attack=_replaced_attack,
)
"""Fails beyond an epsilon that the court finds: the noise is for half the sensitivity.

The paper: the relation is section II's own. At every epsilon that section V uses the conversion's
slack hides the factor 2; from about 0.145 on, at delta = 1e-3, it does not.
"""

CONVERSION = claim(
    "DPA-7",
    "conversion",
    "(alpha, beta)-RDP gives epsilon = beta + ln(1/delta)/(alpha - 1)",
    "Appendix A",
    EpsilonPromise(claimed=_by_orders, plan=_null_gradients, figures=_figures),
    adjacency=Adjacency.ZERO_OUT_ONE,
    attack=_conversion_attack,
)
"""Holds: one order of Rényi DP is a guarantee, though not the best.

The paper: Appendix A, Mironov 2017, Proposition 3. The best order (Canonne, Kamath, Steinke 2020,
Proposition 12), and the exact curve of Gaussian noise, are lower.
"""

ACCELERATION = claim(
    "DPA-8",
    "acceleration costs nothing",
    "DP-AccADMM's noisy gradients need the same noise (u_0 apart: DPA-3)",
    "section IV-C",
    EpsilonPromise(plan=_accelerated_run),
    solver="DP-AccADMM (Algorithm 3)",
    adjacency=Adjacency.ZERO_OUT_ONE,
    attack=_accelerated_attack,
)
"""Holds: acceleration changes where gradients are taken, not how many.

The paper: section IV-C, without an analysis. The extrapolated points are linear functions of
earlier iterates, which is post-processing; one noisy gradient is taken in each round as before.
"""

REPAIR = claim(
    "DPA-R",
    "the repair",
    "u_0 = 0, a public A, rows cut to c, noise of sqrt(T)/mu*(epsilon, delta) "
    "sensitivities: the whole run is (epsilon, delta)-DP",
    "ours",
    EpsilonPromise(plan=_repaired, figures=_repaired_figures),
    solver="DP-ADMM, repaired",
    attack=_repair_attack,
)
"""Holds exactly: the least noise that T gradients need.

T gradients at sqrt(T)/mu*(epsilon, delta) sensitivities are exactly mu*-GDP; iterates and (x_T,
y_T) follow from them, u_0 = 0 and A are public.
"""
