"""ZZ-1 to ZZ-5: one iteration by primal and by dual perturbation, and what many of them cost.

Both algorithms draw noise e of density ∝ exp(-zeta |e|), whose length has a Gamma(d) law: moving it
by a vector v changes its log-density by zeta |v| at most, so that no delta is needed. PVP adds it
behind the minimiser, whose l2 sensitivity is then all that matters. DVP adds it to the dual
variable, in front: the message tells the noise if it is the exact minimiser, and a neighbour's
density differs by the noise's shift and by a determinant (Chaudhuri, Monteleoni, Sarwate 2011,
Theorem 9).

The attacks take one feature, in which the noise is Laplace's, and linear losses, in which both
algorithms send the same message up to the noise's place: the probabilities of "beyond the first
data set's minimiser" are 1/2 and exp(-gap/scale)/2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, log

import numpy as np
from scipy.special import gammainc

from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.attack import ClaimAttack, promised_by_mu
from ...audits.claims.auditor import EpsilonPromise, SensitivityPromise
from ...audits.claims.claim import Case, Counterexample
from ...audits.claims.structure import AssumptionPromise, ReadingsPromise
from ...audits.datasets import AuditDataset
from ...audits.neighbours import NeighbourPair, opposite_gradients, turned_record
from ...mechanisms.curators import SamplingCurator
from ...mechanisms.events import Event, Repeated
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ...solvers.dual_perturbation import exact_minimiser_epsilon
from ...solvers.losses import LinearLoss, Logistic
from .setting import (
    DynamicSetting,
    OneRound,
    claim,
    minimiser,
    one_message,
    pure_message,
    settings_of,
)

_CLOSE = 1e-9
"""Relative room for doubles in probabilities that are known in closed form."""
_RECORDS = 20
"""Most records of a node that an attack runs with."""
_ETA = 1e-3
"""Penalty of the attack where the user fixes none: the smaller, the nearer the claimed value."""
_DELTA = 1e-5
"""At which ZZ-1's attack looks, and the sweep: the paper's own guarantees have none."""


def claimed_sensitivity(s: DynamicSetting) -> Fraction:
    """Return 2/(rho B): of a minimiser, by strong convexity of the regulariser alone."""
    return 2 / (Fraction(s.rho) * s.B)


def _primal(s: DynamicSetting) -> list[Event]:
    """Return PVP's message, with minimisers found to tau, as a pure mechanism.

    The l2 length of what the minimiser moves by, times zeta, is the largest privacy loss: pure, for
    any dimension.
    """
    moved = minimiser(s, s.tau).root
    reason = "noise of density ∝ exp(-zeta |e|): its log-density moves by zeta times the minimiser"
    return [pure_message(s, moved, s.primal_scale, reason)]


def _dual(s: DynamicSetting) -> list[Event]:
    """Return DVP's message as a pure mechanism, if it is the exact minimiser.

    Where nothing of alpha is left for noise: with noise for all of it, outside the regime.

    Two parts add up: the shift of the noise that explains the same message, and the log-determinant
    of the map from noise to message, which a record changes by at most 2 ln(1 + c4/(B m)).
    """
    scale = 2.0 / (s.B * s.alpha) if _no_room(s) else s.dual_scale
    spent = Fraction(
        exact_minimiser_epsilon(s.shape, Logistic(), modulus=float(s.modulus), noise_scale=scale)
    )
    reason = "a message is the exact minimiser of its perturbed objective"
    return [pure_message(s, spent * (1 + Fraction(_CLOSE)), 1.0, reason)]


def _no_room(s: DynamicSetting) -> str | None:
    """Return why DVP's noise has no alpha left; None if it has."""
    return (
        None
        if s.left_for_noise > 0
        else "the determinant leaves nothing of alpha; with noise for all of it"
    )


# --- attacks -------------------------------------------------------------------------------------


def _attacked(case: Case[DynamicSetting]) -> DynamicSetting:
    """Return few records of one feature, and a small penalty unless the user fixed one.

    Few records make 2/(rho B) large, and a small penalty makes it nearly the truth.
    """
    return replace(case.at(eta=_ETA).setting, d=1, B=min(case.setting.B, _RECORDS))


def turned_gradient(s: DynamicSetting) -> NeighbourPair:
    """Return null records but node 0's first, whose gradient points either way."""
    count = s.B * s.N
    dataset = AuditDataset(
        np.zeros((count, 1)),
        np.ones(count),
        adjacency=s.shape.adjacency,
        row_bound=1.0,
        party_of=np.repeat(np.arange(s.N), s.B),
        parties=s.shape.parties,
    )
    return opposite_gradients(dataset, index=0, loss=LinearLoss())


def sent(algorithm: OneRound, side: AuditDataset, trials: int, seed: int) -> FloatArray:
    """Return what node 0 sends in independent runs of an iteration, of shape (trials,).

    Args:
        algorithm: one iteration.
        side: one of both data sets.
        trials: runs at once.
        seed: of the noise.
    """
    curator = SamplingCurator(EventList(), SimulationSampler(seed), trials=trials)
    messages = algorithm.solve(side, curator)
    return np.asarray(np.broadcast_to(messages, (trials, *messages.shape[-2:]))[:, 0, 0])


def _beyond(case: Case[DynamicSetting], *, behind: bool) -> Counterexample | None:
    """Return the event "beyond the first minimiser" in runs of the algorithm itself.

    The minimisers are 1/(B m) from 0 on either side. Noise behind them has the claim's scale in
    their own units; noise in front moves a linear loss's minimiser by itself over m. None where
    nothing of alpha is left for DVP's noise.

    Args:
        case: the parameters, and which of them the user fixed.
        behind: whether noise is added behind the minimiser (PVP) or in front of it (DVP).
    """
    s = _attacked(case)
    if not behind and _no_room(s):
        return None
    modulus = float(s.modulus)
    scale = s.primal_scale if behind else s.dual_scale
    away = 1.0 / (s.B * modulus)
    pair, settings = turned_gradient(s), settings_of(s)
    first = sent(OneRound(settings, 0.0, behind), pair.dataset, 1, 0)[0]
    chance = exp(-2.0 * away / (scale if behind else scale / modulus)) / 2.0

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        algorithm = OneRound(settings, scale, behind)
        rates = [
            float(np.mean(sent(algorithm, side, trials, seed + k) * np.sign(first) > abs(first)))
            for k, side in enumerate((pair.dataset, pair.neighbour))
        ]
        return rates[0], rates[1]

    return Counterexample(
        f"{s.B} null records a node but one, whose gradient is 1 or -1",
        f"one iteration at eta = {s.eta:g}: node 0's message is beyond the first's minimiser",
        Enclosure.of(0.5 * (1 - _CLOSE)),
        Enclosure.of(chance * (1 + _CLOSE)),
        rerun,
        (s.alpha, 0.0),
    )


def _normal_message(case: Case[DynamicSetting]) -> ClaimAttack:
    """Return one round with normal noise of the claimed sensitivity: 1-GDP, if that is right."""
    s = replace(_attacked(case), B=1, d=2)
    derived = minimiser(s).root
    ratio = float(claimed_sensitivity(s) / derived)
    algorithm = replace(settings_of(s), noise_multiplier=ratio, tolerance=1e-11 * max(1.0, ratio))
    pair = turned_record(s.shape.parties, each=1, row_bound=1.0)
    words = f"one iteration of one record a node at eta = {s.eta:g}, normal noise of 2/(rho B), "
    words += "which would make it 1-GDP"
    return ClaimAttack(algorithm.solve, pair, promised_by_mu(1, _DELTA), _DELTA, words)


def _stops_at_once(s: DynamicSetting) -> float:
    """Return the probability that DVP's noise is no longer than tau: Gamma(d) below tau/scale.

    The length of noise of density ∝ exp(-zeta |b|) in d dimensions has a Gamma(d) law (Chaudhuri,
    Monteleoni, Sarwate 2011).
    """
    return 0.0 if s.tau == 0 or _no_room(s) else float(gammainc(s.d, s.tau / s.dual_scale))


def _noiseless(case: Case[DynamicSetting]) -> Counterexample | None:
    """Return the event "the message is the minimiser without noise", bit for bit.

    The attack's tau, unless the user fixes one, is such that half of all noise is shorter. None
    where tau is 0 or nothing of alpha is left for noise.
    """
    s = _attacked(case)
    if _no_room(s) or s.tau == 0:
        return None
    stop = s.dual_scale * log(2.0) if case.free("tau") else s.tau
    chance = float(gammainc(s.d, stop / s.dual_scale))
    pair, settings = turned_gradient(s), settings_of(s)

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        bare = sent(OneRound(settings, 0.0, behind=False), pair.dataset, trials, seed)
        algorithm = OneRound(settings, s.dual_scale, behind=False, stop=stop)
        rates = [
            float(np.mean(sent(algorithm, side, trials, seed + k) == bare))
            for k, side in enumerate((pair.dataset, pair.neighbour))
        ]
        return rates[0], rates[1]

    return Counterexample(
        f"{s.B} null records a node but one, whose gradient is 1 or -1",
        f"a search from the minimiser without noise stops there at gradient norm {stop:.4g}",
        Enclosure.of(chance * (1 - _CLOSE)),
        Enclosure.of(0),
        rerun,
    )


# --- many iterations -----------------------------------------------------------------------------


def whole_run(s: DynamicSetting) -> list[Event]:
    """Return K iterations of which each is alpha-DP, as one repeated event."""
    one = pure_message(s, Fraction(s.alpha), 1.0, "an iteration is alpha-DP")
    return [Event(Repeated(one.mechanism, s.K), one.context)]


def run_epsilon(s: DynamicSetting) -> Enclosure:
    """Return the epsilon of K iterations at delta = 0, of which each is alpha-DP."""
    return guarantee(whole_run(s), delta=0.0).epsilon


def _readings(s: DynamicSetting) -> Mapping[str, Sequence[Event]]:
    """Return what alpha may be read to be of.

    As pure guarantees: alpha and K alpha, at delta = 0.
    """
    one = pure_message(s, Fraction(s.alpha), 1.0, "an iteration is alpha-DP")
    return {"one iteration": [one], f"the run of {s.K} iterations": whole_run(s)}


def stated_alpha(s: DynamicSetting) -> Enclosure:
    """Return alpha, which the paper states."""
    return Enclosure.of(s.alpha)


def _at_zero(_: DynamicSetting) -> float:
    """Return the delta of pure guarantees."""
    return 0.0


def _dual_attack(case: Case[DynamicSetting]) -> Counterexample | None:
    """The counted event with noise in front of the minimiser."""
    return _beyond(case, behind=False)


def _primal_attack(case: Case[DynamicSetting]) -> Counterexample | None:
    """The counted event with noise behind the minimiser."""
    return _beyond(case, behind=True)


_PRIMAL = "PVP (primal variable perturbation)"
_DUAL = "DVP (dual variable perturbation)"

MINIMISER = claim(
    "ZZ-1",
    "sensitivity of a node's minimiser",
    "a replaced record moves a node's minimiser by at most 2 C^R/(rho B)",
    "primal variable perturbation",
    SensitivityPromise(
        lambda s: [claimed_sensitivity(s)],
        plan=one_message,
        tolerance=lambda s: s.tau,
    ),
    solver=_PRIMAL,
    attack=_normal_message,
)
"""Holds, and also for minimisers found to a tolerance: the penalty adds 2 eta N_p to the modulus,
which the claim does without.
"""

PRIMAL = claim(
    "ZZ-2",
    "an iteration of primal perturbation",
    "noise of density ∝ exp(-zeta |e|), zeta = rho B alpha/(2 C^R), behind the minimiser makes an "
    "iteration alpha-DP",
    "primal variable perturbation",
    EpsilonPromise(plan=_primal, claimed=stated_alpha, delta=_at_zero),
    solver=_PRIMAL,
    attack=_primal_attack,
)
"""Holds, at delta = 0: the log-density of the noise moves by zeta times the sensitivity of the
minimiser, which is smaller than claimed (ZZ-1).
"""

DUAL = claim(
    "ZZ-3",
    "an iteration of dual perturbation",
    "of exact minimisers: noise of density ∝ exp(-zeta |b|) in the gradient, with zeta = (alpha - "
    "2 ln(1 + c4/(B m))) B/2, makes an iteration alpha-DP",
    "dual variable perturbation; Chaudhuri, Monteleoni, Sarwate 2011, Theorem 9",
    EpsilonPromise(
        plan=_dual,
        claimed=stated_alpha,
        delta=_at_zero,
        regime=_no_room,
        figures=lambda s: {"alpha left for the noise": Enclosure.of(s.left_for_noise)},
    ),
    solver=_DUAL,
    attack=_dual_attack,
)
"""Holds of exact minimisers: the noise's shift costs what is left of alpha, and the determinant
once the logarithm that is set aside twice. The theorem's noise is written for this gradient; the
paper's own symbols for it are not compared.
"""

EXACTNESS = claim(
    "ZZ-4",
    "exact minimisers in front of which noise is added",
    "a node sends the minimiser of its perturbed objective",
    "dual variable perturbation",
    AssumptionPromise(
        "the message is the exact minimiser",
        broken=_stops_at_once,
        argument=lambda s: (
            "An implementation stops at a gradient norm tau. One that starts from the minimiser "
            "without noise, as a warm start is, has the noise b for its gradient and stops at once "
            f"if |b| <= tau = {s.tau:g}: the message is then without noise, and no epsilon allows "
            "it.",
        ),
    ),
    solver=_DUAL,
    attack=_noiseless,
)
"""Unenforced assumption: what an implementation sends is found to a tolerance, and nothing says how
its search depends on the data. Noise behind the minimiser (ZZ-2) does not have this hole.
"""

RUN = claim(
    "ZZ-5",
    "what alpha is of",
    "the algorithm provides dynamic alpha-differential privacy",
    "dynamic differential privacy",
    ReadingsPromise(stated_alpha, readings=_readings, delta=_at_zero),
    solver="DVP and PVP",
    not_attacked="a definition: alpha of an iteration is attacked as ZZ-2 and ZZ-3",
)
"""Unspecified to a reader who takes alpha for the run's: the definition is of one iteration, and K
of them cost K alpha, as pure guarantees add up.
"""
