"""PR-1 and PR-9: how far a record moves a minimiser, exact or not.

An agent minimises the mean loss of its records plus quadratic terms of modulus m = 2 eta |V_i| + 2
Lambda/N. For convex losses of slope V the objective is m-strongly convex, a replaced record changes
its gradient by 2V/|D_i|, and minimisers are at most 2V/(|D_i| m) apart. Lemma 5 says V/(eta |V_i|),
without |D_i|: an upper bound, and the right order for losses that are not convex, where a record
may tip the balance between two stationary points. A point found to gradient norm tau is within
tau/m of the minimiser, which adds 2 tau/m to the sensitivity.
"""

from dataclasses import replace
from fractions import Fraction

from ...accounting.gaussian.exact import delta_from_epsilon
from ...accounting.numbers.enclosure import Enclosure, shown_up
from ...audits.claims.attack import ClaimAttack, promised_by_mu
from ...audits.claims.auditor import SensitivityPromise, at_tolerance, gaussian_steps
from ...audits.claims.claim import Case
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import Event
from ...solvers.decentralised import PublishedPrAdmm
from ...solvers.planning import plan
from .inexact import exact_value, inexact_run
from .setting import (
    PrSetting,
    algorithm_of,
    claim,
    first_noise,
    lemma_5,
    one_each,
    published_guarantee,
    published_run,
)


def _sensitivity_figures(s: PrSetting) -> dict[str, Enclosure]:
    """Return how far minimisers move under each relation, beside Lemma 5.

    Lemma 5                    V/(eta |V_i|)
    convex, replace-one        2V/(|D_i| m); half of it for a null record
    convex, one record added   2V/((|D_i| + 1) m), the mean renormalised
    sigma_1 over Lemma 5       the printed noise of round 1
    mu, exact epsilon          of the whole published run
    exact delta at epsilon 0   the total variation that an observer has
    """

    def root(adjacency: Adjacency, count: int) -> Enclosure:
        solve = replace(algorithm_of(s, 1.0), rounds=1).solve
        (step,) = gaussian_steps(plan(solve, s.shape(adjacency, count), ideal=True))
        return Enclosure.of(at_tolerance(step.sensitivity, Fraction(0)).root)

    truth = published_guarantee(s)
    mu_squared = truth.notion.mu_squared
    return {
        "Lemma 5": Enclosure.of(lemma_5(s)),
        "convex, replace-one": root(Adjacency.REPLACE_ONE, s.D),
        "convex, zero-out-one": root(Adjacency.ZERO_OUT_ONE, s.D),
        "convex, one record added": root(Adjacency.ADD_REMOVE_ONE, s.D + 1),
        "sigma_1 over Lemma 5": Enclosure.of(first_noise(s)),
        "mu": truth.mu,
        "exact epsilon": truth.epsilon,
        "exact delta at epsilon 0": delta_from_epsilon(mu_squared=mu_squared, epsilon=0),
    }


def _lemma_5_argument(s: PrSetting) -> tuple[str, ...]:
    """Return where the proof of Lemma 5 loses 1/|D_i|, and for which losses its value is right."""
    f = {name: value.upper_float for name, value in _sensitivity_figures(s).items()}
    return (
        "The proof evaluates both gradients at one point, though the minimisers differ, and loses "
        f"the factor 1/|D_i| = 1/{s.D}.",
        "With a convex loss the subproblem is m-strongly convex, m = 2 eta |V_i| + 2 Lambda/N = "
        f"{float(s.modulus):g}, and minimisers are 2V/(|D_i| m) = {f['convex, replace-one']:.6g} "
        f"apart at most; Lemma 5 says {f['Lemma 5']:.6g}.",
        "Without convexity the value is right, for another reason: every stationary point lies "
        "within V/m of the point that the messages alone would give, so two of them are at most "
        f"2V/m = {float(2 * Fraction(s.V) / s.modulus):.6g} apart, and one record can do it.",
        f"At these parameters the run is {f['mu']:.6g}-GDP: epsilon "
        f"{shown_up(f['exact epsilon'], digits=6)} at "
        f"delta {s.delta:g}, where {s.epsilon:g} is claimed.",
    )


def one_message(case: Case[PrSetting]) -> ClaimAttack:
    """Return the attack on one round with noise of Lemma 5; its total is PR-3's business.

    One record an agent, so that Lemma 5's value and the convex bound agree: an attack that shows
    less than 1-GDP would be a flaw of the attack.
    """
    s = replace(case.setting, K=1, K_p=1)
    solve = PublishedPrAdmm(algorithm_of(s, 1.0)).solve
    words = "one round, one record an agent, with noise of Lemma 5, which would make it 1-GDP"
    return ClaimAttack(solve, one_each(s), promised_by_mu(1, s.delta), s.delta, words)


def _one_round(s: PrSetting) -> tuple[Event, ...]:
    """Return the planned events of one round at unit noise multiplier."""
    algorithm = replace(algorithm_of(s, 1.0), rounds=1)
    return plan(algorithm, s.shape(), ideal=True)


def _tolerance_figures(s: PrSetting) -> dict[str, Enclosure]:
    """Return what a gradient norm of tau adds to the sensitivity.

    inflation              the sensitivity at gradient norm tau over the exact one
    tau for one per cent   the gradient norm at which it is 1.01
    """
    (step,) = gaussian_steps(_one_round(s))
    found = at_tolerance(step.sensitivity, Fraction(s.tau)).root
    exact = at_tolerance(step.sensitivity, Fraction(0)).root
    return {
        "inflation": Enclosure.of(found / exact),
        "tau for one per cent": Enclosure.of(exact * s.modulus / 200),
    }


MINIMISER = claim(
    "PR-1",
    "sensitivity of a minimiser",
    "the sensitivity of x_i^{k+1} is V/(eta |V_i|); a bounded gradient is enough",
    "Lemma 5",
    SensitivityPromise(
        lambda s: [lemma_5(s)] * s.K,
        plan=published_run,
        figures=_sensitivity_figures,
        argument=_lemma_5_argument,
    ),
    attack=one_message,
)
"""Holds, with noise to spare: by the number of an agent's records where losses are convex.

The paper: Lemma 5 differentiates at one point though the minimisers are two. The court compares its
value with the strong-convexity bound 2V/(|D_i| m), and attacks one record an agent, where both are
the same.
"""


EXACTNESS = claim(
    "PR-9",
    "exact minimisers",
    "x_i^{k+1} minimises (12) exactly: a replaced record moves it by at most 2V/(|D_i| m)",
    "equation 12",
    SensitivityPromise(
        lambda s: [exact_value(s)],
        plan=_one_round,
        tolerance=lambda s: s.tau,
        figures=_tolerance_figures,
    ),
    attack=inexact_run,
)
"""Unenforced assumption: an implementation stops at a tolerance, which nothing prices.

The paper: "argmin" in equation 12. Evidence: PR-ADMM run with agents that go beyond their
minimisers to where the gradient's norm is tau; under noise of the exact minimiser's sensitivity its
messages leak more than rounds of 1-GDP do, at the very tau of the verdict.
"""
