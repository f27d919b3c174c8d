"""PS-R: the repaired algorithms.

R-A uses full gradients: a step then moves by 2G/M and is a plain Gaussian mechanism. R-B releases
one noisy snapshot a round, and corrections of a hidden Poisson sample, each cut: only there
sampling amplifies, since a drawn record's correction is hidden by noise of its own size.
"""

from dataclasses import replace

from ...accounting.numbers.enclosure import Enclosure
from ...accounting.pld import PrivacyProfile
from ...accounting.pld.from_mechanisms import pairs_of
from ...accounting.pld.pairs import Order
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.auditor import EpsilonPromise
from ...audits.claims.claim import Case
from ...audits.claims.settings import multiplier_of
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.events import Event, GaussianStep, Mechanism, Repeated
from ...mechanisms.subsampling import Poisson
from ...solvers.planning import plan
from ...solvers.stochastic import PsAdmm, SampledPsAdmm
from .setting import PsSetting, claim, linear_pair, stochastic_rounds, whole_run


def _multiplier(s: PsSetting) -> float:
    """Of K S noises, for the whole run's (epsilon, delta).

    mu*(epsilon, delta) spread over K S steps: noise of sqrt(K S)/mu* sensitivities each.
    """
    return multiplier_of(s.steps, epsilon=s.epsilon, delta=s.delta)


def _repaired_attack(case: Case[PsSetting]) -> ClaimAttack:
    """A small run: the noise multiplier follows K S, so that its epsilon is the whole run's."""
    s = replace(case.setting, K=2, S=5, M=4, zero_out=False)
    words = f"K = {s.K}, S = {s.S}, four records, epsilon = {s.epsilon:g} in all"
    solve = PsAdmm(stochastic_rounds(s, s.K, s.S), _multiplier(s)).solve
    return ClaimAttack(solve, linear_pair(s), s.epsilon, s.delta, words)


def _repaired(s: PsSetting) -> list[Event]:
    """R-A: K S full gradients, noise in units of their sensitivity."""
    (event,) = plan(PsAdmm(stochastic_rounds(s, 1, 1), _multiplier(s)), s.shape, ideal=True)
    assert isinstance(event.mechanism, GaussianStep)
    return whole_run(s, event.mechanism)


def _sampled_counts(s: PsSetting) -> dict[Mechanism, int]:
    """R-B: K snapshots and K (S - 1) corrections of a Poisson sample; records are made null.

    The first step of a round releases the snapshot alone, as its correction is zero.
    """
    null = replace(s, zero_out=True)
    algorithm = SampledPsAdmm(
        stochastic_rounds(null, 1, 2),
        Poisson(s.q),
        correction_bound=s.G,
        snapshot_noise_multiplier=s.sigma_u * s.M / s.G,
        correction_noise_multiplier=s.z,
    )
    snapshot, correction = plan(algorithm, null.shape, ideal=True)
    return {snapshot.mechanism: s.K, correction.mechanism: s.K * (s.S - 1)}


def _repair_figures(s: PsSetting) -> dict[str, Enclosure]:
    """Return the noise of the repair, and both orders of its sampled part.

    R-B's epsilon is an upper bound in doubles; R-A's own is exact.
    """
    (event,) = _repaired(s)
    assert isinstance(event.mechanism, Repeated)
    assert isinstance(event.mechanism.event, GaussianStep)
    figures = {"sigma": Enclosure.of(event.mechanism.event.noise_std)}
    if s.S > 1:
        counts, relation = _sampled_counts(s), Adjacency.ZERO_OUT_ONE
        by_order = {
            order: PrivacyProfile.of_pairs(pairs_of(counts, relation, order)).epsilon_upper(s.delta)
            for order in (Order.MIXTURE_FIRST, Order.MIXTURE_SECOND)
        }
        figures["epsilon of R-B, one record added"] = Enclosure.of(by_order[Order.MIXTURE_SECOND])
        figures["epsilon of R-B"] = Enclosure.of(max(by_order.values()))
    return figures


REPAIR = claim(
    "PS-R",
    "the repair",
    "R-A: full gradients at every step, noise of sqrt(K S)/mu*(epsilon, delta) "
    "sensitivities: the whole run is (epsilon, delta)-DP",
    "ours",
    EpsilonPromise(
        plan=_repaired,
        figures=_repair_figures,
    ),
    solver="PS-ADMM, repaired",
    attack=_repaired_attack,
)
"""Holds exactly: the noise is that of K S full gradients, converted exactly.

Linear losses attain 2G/M in every step, so that no analysis of this algorithm needs less noise. The
figures price R-B as well: its snapshots at sigma_u, its K (S - 1) corrections as sampled Gaussian
steps, in both orders of a record that is there or not.
"""
