"""S-7, S-4 and S-R: the sensitivity to a record, its composition, and the whole repaired run.

The repair adds noise to the scores D x in R^N, keeps x in a ball of radius b and cuts the slopes to
B. A replaced record moves its own score by at most 2b, and all others through x; strong convexity
of modulus lambda, seen in the norm of D, gives the other term of

    sqrt((B + rho b)²/(rho lambda) + 4 b²).

The worst neighbours are built by hand and nearly meet it, so that the attack is as strong as the
bound. A record is spread over all parties, so that all parties' rounds add up.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np

from ...accounting.conversions import (
    advanced_composition,
    classical_noise_multiplier,
    epsilon_from_zcdp,
)
from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, ball_of, precision
from ...audits.claims.attack import ClaimAttack, promised_by_mu
from ...audits.claims.auditor import EpsilonPromise, SensitivityPromise
from ...audits.claims.claim import Case
from ...audits.claims.settings import multiplier_of
from ...audits.datasets import VerticalAuditDataset
from ...audits.neighbours import NeighbourPair
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import Event, GaussianStep
from ...mechanisms.sensitivity import vertical_predictions
from ...solvers.planning import plan
from .setting import SharingSetting, claim, costly, known_labels, repaired, repaired_claim

_BITS = 128
"""Working precision of the bound, in bits."""

_OTHERS = 24
"""Records beside the one that differs: with more the pair comes closer to the bound."""

_SLOPE = 0.01
"""B of the attack: small, so that slopes stay cut under noise."""

_ATTACK_TOLERANCE = 1e-6
"""Of the attacked minimisers: where noise is large no smaller norm is certified; it is priced."""


# --- the worst neighbours ------------------------------------------------------------------------


def worst_records(s: SharingSetting) -> NeighbourPair:
    """Return two data sets that nearly meet the sensitivity to a record, in all rounds but one.

    One feature a party. The first record's entry is 1 in one data set, -1 (or 0, the null record)
    in the other. n others have h each, n h² rho = lambda: at this curvature the proof's bound on
    |D_{-i} e|, max over s = |e| of ((Q s - lambda s²)/rho)^(1/2), is met. Labels alternate: once
    slopes are cut to ±B they cancel among the others, and x = ±B/(2 lambda + rho) (or 0) by the
    first record alone. If h = 1 and b is little more than |x|, the bound on the change of D x is
    1 + 3/(2n) times what it is, to first order.

    Where the ball is smaller the bound is looser: s <= 2b (at B = b = rho = 1, lambda = 0.1 this
    leaves a change of 3.41, where the bound says 6.63). In the first round x is 0 for all data.
    """
    others = np.full((_OTHERS, 1), min(1.0, sqrt(s.lam_m / (s.rho * _OTHERS))))

    def side(first: float) -> Any:
        return VerticalAuditDataset(
            [np.vstack([[first], others])] * s.M,
            np.resize([1.0, -1.0], 1 + _OTHERS),
            adjacency=s.relation,
            parties=s.parties,
            public_labels=True,
        )

    last = 0.0 if s.zero_out else -1.0
    words = f"{1 + _OTHERS} records of one feature a party, the first is 1 or {last:g}, the others "
    words += f"{others[0, 0]:.6g}; labels 1, -1, 1, ..."
    return NeighbourPair(side(1.0), side(last), None, words)


def _tight(case: Case[SharingSetting]) -> SharingSetting:
    """Parameters at which those neighbours meet the bound, and cut slopes stay cut under noise."""
    s = case.at(lam_m=_OTHERS * case.setting.rho, B=_SLOPE).setting
    s = replace(case, setting=s).at(b=s.B / (2 * s.lam_m)).setting
    return known_labels(replace(s, tau=max(s.tau, _ATTACK_TOLERANCE)))


def _attack(
    s: SharingSetting, noise_multiplier: float, rounds: int, promised: tuple[float, float]
) -> ClaimAttack:
    """Return the attack on repaired rounds.

    Args:
        s: the parameters.
        noise_multiplier: of a release.
        rounds: T.
        promised: epsilon and delta.

    Labels are public there, so that the dual variable costs nothing and the scores' noise is all
    there is.
    """
    solve: Any = repaired(s, noise_multiplier, rounds).solve
    words = (
        f"{rounds} rounds of {s.M} part{'y' if s.M == 1 else 'ies'} with noise of "
        f"{noise_multiplier:.6g} sensitivities, lambda = {s.lam_m:g}, B = {s.B:g}, b = {s.b:.6g}"
    )
    return ClaimAttack(solve, worst_records(s), *promised, words)


# --- one round -----------------------------------------------------------------------------------


def _bound(s: SharingSetting) -> list[Fraction]:
    """sqrt((B + rho b)²/(rho lambda m_R) + 4 b²), half of it for a null record; plus tau's part.

    In balls, and rounded up: the claim is compared with a derivation that is rounded up as well.
    """
    with precision(_BITS):
        rho, modulus, b = (ball_of(v) for v in (s.rho, s.lam_m, s.b))
        bound = ((ball_of(s.B) + rho * b) ** 2 / (rho * modulus) + 4 * b**2).sqrt()
        bound = bound / (2 if s.zero_out else 1) + ball_of(s.tau) / (rho * modulus).sqrt()
        return [Fraction(Enclosure.from_ball(bound).upper_float)] * s.M


def _one_round(s: SharingSetting) -> list[Event]:
    """Return what one repaired round releases that costs something."""
    known = known_labels(s)
    return costly(plan(repaired(known, 1.0, 1), known.shape, ideal=True))


def _bound_figures(s: SharingSetting) -> Mapping[str, Enclosure]:
    """Return the exact sensitivities, of a replaced record and of one that is made null."""
    relations = {"replace-one": Adjacency.REPLACE_ONE, "zero-out-one": Adjacency.ZERO_OUT_ONE}
    return {
        f"{name}, exact": Enclosure.of(
            vertical_predictions(
                row_bound=1,
                slope_bound=s.B,
                radius=s.b,
                penalty=s.rho,
                modulus=s.lam_m,
                tolerance=0.0,
                adjacency=relation,
            ).root
        )
        for name, relation in relations.items()
    }


def _bound_attack(case: Case[SharingSetting]) -> ClaimAttack:
    """Return the attack on the scores of one round, behind a first that tells nothing."""
    s = replace(_tight(case), M=1)
    # the first round's scores are 0 for all data, so that two rounds are promised what one costs
    attack = _attack(s, 1.0, 2, (promised_by_mu(1, s.delta), s.delta))
    return replace(attack, at=f"{attack.at}; the first round is the same for all data")


# --- many rounds ---------------------------------------------------------------------------------


def composed(s: SharingSetting) -> Enclosure:
    """Return Corollary 1's epsilon.

    Dwork, Roth 2014, Theorem 3.20, in balls.
    """
    found = advanced_composition(
        epsilon=s.epsilon, delta=s.delta, steps=s.T, delta_slack=s.delta_prime
    )
    return found.epsilon


def composed_exactly(s: SharingSetting) -> Enclosure:
    """Return the exact epsilon of these rounds, if their noise were added in R^N."""
    return guarantee(_one_party(s), delta=_total_delta(s)).epsilon


def _total_delta(s: SharingSetting) -> float:
    """Return T delta + delta', at which Corollary 1 promises."""
    return s.T * s.delta + s.delta_prime


def _classical(s: SharingSetting) -> float:
    """Return Theorem 1's noise over its sensitivity, rounded up."""
    at_one = classical_noise_multiplier(epsilon=1, delta=s.delta)
    with precision(_BITS):
        return Enclosure.from_ball(ball_of(at_one) / ball_of(s.epsilon)).upper_float


def _one_party(s: SharingSetting) -> list[Event]:
    """T Gaussian steps with Theorem 1's noise, as if it were added in R^N."""
    alone = known_labels(replace(s, M=1))
    return costly(plan(repaired(alone, _classical(s), s.T), alone.shape, ideal=True))


def _composition_figures(s: SharingSetting) -> dict[str, Enclosure]:
    """Return Corollary 1 beside zCDP's and the exact epsilon of the same Gaussian rounds."""
    truth = guarantee(_one_party(s), delta=_total_delta(s))
    return {
        "Corollary 1": composed(s),
        "by zCDP": epsilon_from_zcdp(rho=truth.rho, delta=_total_delta(s)),
        "exact": truth.epsilon,
    }


def _composition_regime(s: SharingSetting) -> str | None:
    """Return how Theorem 1's own condition is violated, None if it is not."""
    return None if s.epsilon <= 1 else f"Theorem 1 asks for epsilon={s.epsilon:g} in (0, 1]"


def _composition_attack(case: Case[SharingSetting]) -> ClaimAttack:
    """Return the attack on T rounds with Theorem 1's noise, against Corollary 1's epsilon."""
    s = replace(_tight(case), M=1)
    return _attack(s, _classical(s), s.T, (composed(s).lower_float, _total_delta(s)))


def _multiplier(s: SharingSetting) -> float:
    """A record is everybody's: all parties' rounds add up."""
    return multiplier_of(s.M * s.T, epsilon=s.epsilon, delta=s.delta)


def _repair(s: SharingSetting) -> tuple[Event, ...]:
    """Return the planned events of the repaired run; labels are public."""
    known = known_labels(s)
    return plan(repaired(known, _multiplier(s), s.T), known.shape, ideal=True)


def _repair_figures(s: SharingSetting) -> dict[str, Enclosure]:
    """Return the noise of the repaired run's releases."""
    (event, *_) = costly(_repair(s))
    assert isinstance(event.mechanism, GaussianStep)
    return {"sigma": Enclosure.of(event.mechanism.noise_std)}


def _repair_attack(case: Case[SharingSetting]) -> ClaimAttack:
    """Return the attack on the whole repaired run."""
    s = _tight(case)
    return _attack(s, _multiplier(s), s.T, (s.epsilon, s.delta))


COMPOSITION = claim(
    "S-4",
    "composition",
    "T rounds of (epsilon, delta)-DP are (sqrt(2 T ln(1/delta')) epsilon + T epsilon "
    "(e^epsilon - 1), T delta + delta')-DP",
    "Corollary 1",
    EpsilonPromise(
        claimed=composed,
        delta=_total_delta,
        plan=_one_party,
        regime=_composition_regime,
        figures=_composition_figures,
    ),
    attack=_composition_attack,
)
"""Holds, loosely: advanced composition of Gaussian rounds costs many times the exact sum.

The paper: Corollary 1, by Dwork, Roth 2014, Theorem 3.20. The court composes the same rounds
exactly: 0.23 in place of 2.36 at epsilon = 0.1, T = 20.
"""

SENSITIVITY = repaired_claim(
    "S-7",
    "sensitivity to a record",
    "D x in R^N moves by at most sqrt((B + rho b)²/(rho lambda m_R) + 4 b²) if a record is "
    "replaced, half of it if it is made null, plus tau/sqrt(rho lambda m_R)",
    "ours",
    SensitivityPromise(_bound, plan=_one_round, figures=_bound_figures),
    attack=_bound_attack,
)
"""Holds exactly: the derived sensitivity is the closed form.

Ours: x minimises a lambda-strongly convex function whose slopes are cut to B, in a ball of radius
b. A replaced record moves its own score by up to 2b and the others through x. The derivation is
`vertical_predictions`, whose closed form this is; tau/sqrt(rho lambda) is for a tolerance.
"""

REPAIR = repaired_claim(
    "S-R",
    "the repair",
    "noise on D x in R^N, x in a ball, slopes cut, sqrt(M T)/mu*(epsilon, delta) "
    "sensitivities of noise, public labels: the whole run is (epsilon, delta)-DP",
    "ours",
    EpsilonPromise(
        plan=_repair,
        figures=_repair_figures,
    ),
    attack=_repair_attack,
)
"""Holds exactly, with public labels.

Every party's rounds add up, as a record has features with all of them: M T releases, and noise of
sqrt(M T) sensitivities over mu*(epsilon, delta).
"""
