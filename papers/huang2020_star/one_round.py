"""H-1, H-2 and H-9: the sensitivity of a step, and what its noise is worth.

A first-order step is w = (rho w̃ + w_k/eta_k - grad + ...)/(rho + 1/eta_k): the mean gradient
enters divided by rho + 1/eta_k, and moves by 2 c1/m where a record of gradient norm c1 is replaced.
That is Lemma 1. The classical noise, sqrt(2 ln(1.25/delta))/epsilon sensitivities, makes a Gaussian
release (epsilon, delta)-DP for epsilon up to 1 (Dwork, Roth 2014, Theorem A.1): Theorem 1.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import log, sqrt

from ...accounting.conversions import classical_noise_multiplier
from ...accounting.gaussian.exact import mu_from_epsilon_delta
from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision
from ...audits.claims.attack import ClaimAttack, promised_by_mu
from ...audits.claims.auditor import EpsilonPromise, SensitivityPromise
from ...audits.claims.claim import Case
from ...mechanisms.events import Event
from ...solvers.losses import LinearLoss
from ...solvers.planning import plan
from ...solvers.star import PvpAdmm
from .setting import (
    PLANNED_ROUNDS,
    StarSetting,
    algorithm_of,
    attack_on,
    claim,
    noise_multiplier,
    published_run,
    small,
)

_TOLERANCE = 1e-9
"""Gradient norm of the attack's minimiser: far below what an attack could tell."""


def in_regime(s: StarSetting) -> str | None:
    """Return how the theorems' own condition is violated, None if it is not."""
    return None if s.epsilon <= 1 else f"the theorem asks for epsilon={s.epsilon:g} in (0, 1]"


def _lemma_1(s: StarSetting) -> list[Fraction]:
    """2 c₁/(m (rho + 1/eta_k)) with eta_k as printed in Theorems 3 and 4.

    One value for each planned round: eta_k falls with k, and the sensitivity with it.
    """
    values: list[Fraction] = []
    log_term = log(1.25 / s.delta)
    for k in range(1, min(s.t, PLANNED_ROUNDS) + 1):
        if s.smooth:
            noise = 4 * s.c1 * sqrt(s.d * k * log_term) / (s.m * s.epsilon)
            inverse = 0.25 + s.lambda_over_n + noise / s.c_w
        else:
            slope = s.c1 + s.lambda_over_n * sqrt(s.d)
            noise = 16 * s.d * k * s.c1**2 * log_term / (s.m * s.epsilon) ** 2
            inverse = sqrt(2 * k * slope**2 + noise) / s.c_w
        values.append(2 * Fraction(s.c1) / (s.m * (Fraction(s.rho) + Fraction(inverse))))
    return values


def _first_rounds(s: StarSetting) -> list[Event]:
    """Return the published events of as many rounds as are planned one by one."""
    return published_run(replace(s, t=min(s.t, PLANNED_ROUNDS)))


def _lemma_1_figures(s: StarSetting) -> dict[str, Enclosure]:
    """Return Lemma 1's sensitivity and Theorem 1's sigma in the first and the last round.

    sensitivity in round k   2 c1/(m (rho + 1/eta_k))
    sigma in round k         that times sqrt(2 ln(1.25/delta))/epsilon
    """
    values, multiplier = _lemma_1(s), Fraction(noise_multiplier(s))
    return {
        "sensitivity in round 1": Enclosure.of(values[0]),
        f"sensitivity in round {len(values)}": Enclosure.of(values[-1]),
        "sigma in round 1": Enclosure.of(values[0] * multiplier),
        f"sigma in round {len(values)}": Enclosure.of(values[-1] * multiplier),
    }


def _step_attack(case: Case[StarSetting]) -> ClaimAttack:
    """Return the attack on one round with noise of Lemma 1's sensitivity.

    Noise of exactly the claimed sensitivity makes the release 1-GDP if Lemma 1 is right, and more
    if it is not.
    """
    s = small(case.setting)
    words = "one round with noise of Lemma 1's sensitivity, which would make it 1-GDP"
    return attack_on(s, algorithm_of(s, 1, 1.0), promised_by_mu(1, s.delta), words)


def _one_round(s: StarSetting) -> list[Event]:
    """Return the published events of one round."""
    return published_run(replace(s, t=1))


def _epsilons(case: Case[StarSetting]) -> list[StarSetting]:
    """Return the setting at seven epsilons: the theorem is meant for all in (0, 1]."""
    grid = (case.setting.epsilon, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
    return list(dict.fromkeys(case.at(epsilon=epsilon).setting for epsilon in grid))


def _round_figures(s: StarSetting) -> dict[str, Enclosure]:
    """Return the published noise over the least that (epsilon, delta) needs.

    noise ratio   Theorem 1's sigma over the least for (epsilon, delta) (Balle, Wang 2018)
    """
    classical = classical_noise_multiplier(epsilon=1, delta=s.delta)
    with precision(BITS):
        mu = ball_of(mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta))
        ratio = Enclosure.from_ball(ball_of(classical) / ball_of(s.epsilon) * mu)
    return {"noise ratio": ratio}


def _round_attack(case: Case[StarSetting]) -> ClaimAttack:
    """Return the attack on one round, at epsilon = 1 where it is free."""
    s = small(case.at(epsilon=1.0).setting)
    algorithm = algorithm_of(s, 1, noise_multiplier(s))
    return attack_on(s, algorithm, s.epsilon, f"one round, epsilon = {s.epsilon:g}")


def _lemma_4(s: StarSetting) -> list[Fraction]:
    """Return 2 c1/(m (lambda/n + rho))."""
    return [2 * Fraction(s.c1) / ((Fraction(s.lambda_over_n) + Fraction(s.rho)) * s.m)]


def _minimiser(s: StarSetting) -> PvpAdmm:
    """Return Algorithm 2 for one round, with noise of its sensitivity."""
    return PvpAdmm(1, 1.0, penalty=s.rho, regularisation=s.lambda_over_n, loss=LinearLoss())


def _planned_minimiser(s: StarSetting) -> Sequence[Event]:
    """Return its planned event."""
    return plan(_minimiser(s), s.shape, ideal=True)


def _minimiser_attack(case: Case[StarSetting]) -> ClaimAttack:
    """Return the attack on it.

    Linear losses: the minimiser is a closed form, and the tolerance is far below what an attack
    could tell.
    """
    s = small(case.setting)
    words = "one round with noise of Lemma 4's sensitivity, which would make it 1-GDP"
    algorithm = replace(_minimiser(s), tolerance=_TOLERANCE)
    return attack_on(s, algorithm, promised_by_mu(1, s.delta), words)


FIRST_ORDER_STEP = claim(
    "H-1",
    "sensitivity of a first-order step",
    "the l2 sensitivity of w_i^k is 2 c1/(m (rho + 1/eta_k))",
    "Lemma 1",
    SensitivityPromise(_lemma_1, plan=_first_rounds, figures=_lemma_1_figures),
    attack=_step_attack,
)
"""Holds exactly: linear losses of opposite rows attain Lemma 1 in every round.

The paper: Lemma 1. The court compares its value, with eta_k as printed in Theorems 3 and 4, with
the derived sensitivity of each planned round. No convexity is needed: a step is a closed form.
"""

ROUND = claim(
    "H-2",
    "one round",
    "with sigma = Delta sqrt(2 ln(1.25/delta))/epsilon a round is (epsilon, delta)-DP, "
    "epsilon in (0, 1]",
    "Theorem 1",
    EpsilonPromise(
        plan=_one_round,
        regime=in_regime,
        cases=_epsilons,
        figures=_round_figures,
    ),
    attack=_round_attack,
)
"""Holds, with some noise to spare: the classical noise exceeds the exact one at epsilon up to 1.

The paper: Theorem 1, whose proof takes one coordinate's privacy loss for the vector's; the
statement follows from rotating the shift into one axis. Seven epsilons in (0, 1] are priced
exactly.
"""

MINIMISER = claim(
    "H-9",
    "sensitivity of an exact minimiser",
    "the l2 sensitivity of Algorithm 2's step is 2 c1/(m (lambda/n + rho))",
    "Lemma 4, Appendix A",
    SensitivityPromise(_lemma_4, plan=_planned_minimiser, tolerance=lambda s: s.tau),
    solver="ADMM with PVP (Algorithm 2)",
    attack=_minimiser_attack,
)
"""Holds exactly for exact minimisers; a tolerance tau adds 2 tau over the modulus.

The paper: Lemma 4, of its comparison ADMM with primal variable perturbation: strong convexity rho +
lambda/n and a change of the gradient by 2 c1/m.
"""
