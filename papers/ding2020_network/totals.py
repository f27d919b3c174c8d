"""PR-2 to PR-6: what a round costs, and the totals over rounds and agents.

Round k has noise of variance sigma_k², so that its rho_k = rho_1 sigma_1²/sigma_k², and zCDP adds
up. With the periodic decay sigma_k² falls by the factor R after every K_p rounds, and J = K/K_p
periods cost

    rho_1 K_p (1 + 1/R + ... + 1/R^(J-1)) = rho_1 K_p (1 - R^J)/(R^(J-1) - R^J);

Theorem 3 has this less 1: for a single round it says 0. With the iteration-based decay the sum over
k of k (k + 1) is (K - 1) K (K + 1)/3, which is Theorem 4. A record belongs to one agent, so the
total over agents is the largest, not the sum.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import inf

from ...accounting.conversions import epsilon_from_zcdp, rho_from_epsilon
from ...accounting.gaussian.exact import epsilon_from_delta
from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, shown_up
from ...audits.claims.attack import ClaimAttack, promised_by_mu
from ...audits.claims.auditor import EpsilonPromise, gaussian_steps
from ...audits.claims.claim import Case, Counterexample
from ...audits.claims.gaussian_event import likelihood_event
from ...audits.claims.sums import ClosedFormPromise, PartiesPromise, RhoPromise
from ...mechanisms.errors import Number
from ...solvers.decentralised import PublishedPrAdmm, published_noise_multiplier
from ...solvers.planning import plan
from ...solvers.schedules import IterationDecay, PeriodicDecay, cost
from .minimiser import one_message
from .setting import (
    PrSetting,
    algorithm_of,
    claim,
    first_noise,
    lemma_5,
    one_each,
    published_guarantee,
    published_run,
    two_each,
)


def round_rho(s: PrSetting) -> Number:
    """Return rho of one round by Theorem 2, (V/(eta |V_i|))²/(2 sigma²).

    As printed, with Lemma 5's sensitivity: zero noise has no finite rho.
    """
    (step, *_) = gaussian_steps(published_run(s))
    variance = Fraction(step.noise_std) ** 2
    return lemma_5(s) ** 2 / (2 * variance) if variance else inf


def published_periodic(s: PrSetting) -> Fraction:
    """Return Theorem 3's total over rho_1: K_p (1 - R^J)/(R^(J-1) - R^J) - 1, J = K/K_p.

    The form as printed: an exact rational number, so that the comparison with the sum is exact.
    """
    return s.schedule.published_cost(s.K)


def exact_periodic(s: PrSetting) -> Fraction:
    """Return the sum over rounds of R^-floor((k-1)/K_p).

    Summed term by term, without a closed form.
    """
    return cost(s.schedule, s.K)


def _small_runs(s: PrSetting) -> Iterator[PrSetting]:
    """Yield the setting at shorter runs and periods, smallest first.

    In this order the first failure is the smallest: K = K_p = 1, where Theorem 3 says that one
    noisy release costs nothing.
    """
    for rounds in range(1, s.K + 1):
        for period in (p for p in range(1, rounds + 1) if rounds % p == 0):
            yield replace(s, K=rounds, K_p=period)


def _periodic_figures(s: PrSetting) -> dict[str, Enclosure]:
    """Return the sum, the closed form, and what the difference does to epsilon.

    sum, closed form                  total rho over rho_1: term by term, and Theorem 3
    relative understatement           of the closed form
    claimed epsilon                   what the noise was chosen for
    zCDP epsilon of the true total    by the paper's own conversion, with the right sum
    exact epsilon, Lemma 5 attained   of the same noise: below the claim where slack hides the
        error
    nominal rho                       what the claimed epsilon allows by that conversion
    """
    exact, published = exact_periodic(s), published_periodic(s)
    lemma_5 = published_guarantee(replace(s, convex=False))
    return {
        "sum": Enclosure.of(exact),
        "closed form": Enclosure.of(published),
        "relative understatement": Enclosure.of(exact / published - 1 if published else inf),
        "claimed epsilon": Enclosure.of(s.epsilon),
        "zCDP epsilon of the true total": epsilon_from_zcdp(rho=lemma_5.rho, delta=s.delta),
        "exact epsilon, Lemma 5 attained": lemma_5.epsilon,
        "nominal rho": rho_from_epsilon(epsilon=s.epsilon, delta=s.delta),
    }


def _periodic_argument(s: PrSetting) -> tuple[str, ...]:
    """Return where Theorem 3 has a 1 too many, and what that is worth."""
    f = {name: value.upper_float for name, value in _periodic_figures(s).items()}
    return (
        f"Over K = {s.K} rounds with K_p = {s.K_p} and R_P = {s.R_P:g} the sum of rho_k is "
        f'{f["sum"]:.10g} rho_1; Theorem 3 has {f["closed form"]:.10g} rho_1, a "- 1" too many.',
        "For K = K_p = 1 it says 0: one noisy release would be (0, delta)-DP, whatever the noise.",
        f"The noise that Theorem 3 gives for epsilon = {s.epsilon:g} costs "
        f"{shown_up(f['zCDP epsilon of the true total'], digits=8)} by its own "
        "conversion, and exactly "
        f"{shown_up(f['exact epsilon, Lemma 5 attained'], digits=8)} at delta {s.delta:g} "
        "where Lemma 5 is "
        "attained: the conversion's slack may hide the error.",
        'Repair: leave out the "- 1".',
    )


def _one_release(s: PrSetting) -> Counterexample:
    """One release whose noise equals its sensitivity, for which Theorem 3 would say epsilon 0.

    At epsilon 0 any event with different probabilities refutes: the best one is a threshold of the
    ratio.
    """
    algorithm = replace(algorithm_of(replace(s, K=1, K_p=1), 1.0), schedule=PeriodicDecay(s.R_P))
    mu = guarantee(plan(algorithm, s.shape(count=2), ideal=True), delta=s.delta).mu
    return likelihood_event(
        algorithm.solve, two_each(s), mu=mu, epsilon=Enclosure.of(0), delta=s.delta
    )


def _one_period(case: Case[PrSetting]) -> ClaimAttack | None:
    """Two rounds where they are free.

    None where the conversion's slack hides the error, or there is no noise to replay.

    A single period is where the error weighs most: one round out of few. epsilon = 1 where it is
    free, since the conversion's slack is larger at large epsilon.
    """
    s = case.at(epsilon=1.0).setting
    rounds = s.K
    if case.free("K"):
        rounds = 2 if case.free("K_p") else s.K_p
    s = replace(s, K=rounds, K_p=rounds if case.free("K_p") else s.K_p)
    noise, pair = first_noise(s), one_each(s)
    solve = PublishedPrAdmm(algorithm_of(s, noise)).solve
    exact = guarantee(plan(solve, pair.dataset.shape, ideal=True), delta=s.delta).epsilon
    if noise == 0 or exact <= s.epsilon:
        return None
    words = f"K = {s.K}, K_p = {s.K_p}, epsilon = {s.epsilon:g}, one record an agent"
    return ClaimAttack(solve, pair, s.epsilon, s.delta, words)


def _iteration(s: PrSetting) -> Fraction:
    """Return Theorem 4's total over rho_1, R_T K (K² - 1)/3 + 1.

    With the convention that round 1 has sigma_1²; equation 15 has an infinite variance there.
    """
    return IterationDecay(s.R_T).published_cost(s.K)


def iteration_epsilon(s: PrSetting) -> Enclosure:
    """Return the exact epsilon of K rounds with Theorem 4's noise, where Lemma 5 is attained."""
    schedule = IterationDecay(s.R_T)
    noise = published_noise_multiplier(schedule, s.K, epsilon=s.epsilon, delta=s.delta)
    return epsilon_from_delta(mu_squared=cost(schedule, s.K) / Fraction(noise) ** 2, delta=s.delta)


def _iteration_argument(s: PrSetting) -> tuple[str, ...]:
    """Return how the sum comes about, and that the noise rises before it falls."""
    schedule = IterationDecay(s.R_T)
    rises = float(schedule.variance(2))
    back = next(
        (k for k in range(2, 10**4) if schedule.variance(k) <= 1), None
    )  # the first round with no more noise than the first
    return (
        f"The sum over k of k (k + 1) is (K - 1) K (K + 1)/3, and the total {float(_iteration(s))} "
        "rho_1, if round 1 uses sigma_1²; equation 15 divides by zero there.",
        f"It is no decay: in round 2 the variance is {rises:.4g} times sigma_1²"
        + ("." if back is None else f", and it is not below sigma_1² before round {back}."),
    )


def _iteration_rounds(case: Case[PrSetting]) -> ClaimAttack:
    """Five rounds where K is free: few enough that one round's cost more or less would show.

    The promise is the closed form's rho as an exact epsilon, so that a total that is short would
    show.
    """
    s = replace(case.setting, K=5 if case.free("K") else case.setting.K, K_p=1)
    schedule = IterationDecay(s.R_T)
    noise = published_noise_multiplier(schedule, s.K, epsilon=s.epsilon, delta=s.delta)
    algorithm = replace(algorithm_of(s, noise), schedule=schedule)
    promised = promised_by_mu(_iteration(s) / Fraction(noise) ** 2, s.delta)
    words = f"K = {s.K}, one record an agent, against the closed form's total"
    return ClaimAttack(PublishedPrAdmm(algorithm).solve, one_each(s), promised, s.delta, words)


def _conversion(s: PrSetting) -> Enclosure:
    """Return zCDP's epsilon of the run where Lemma 5 is attained.

    Bun, Steinke 2016, Proposition 1.3, which is the paper's Lemma 3.
    """
    return epsilon_from_zcdp(rho=published_guarantee(replace(s, convex=False)).rho, delta=s.delta)


def _whole_run(s: PrSetting, epsilon: float, promise: str) -> ClaimAttack | None:
    """All agents' messages of all rounds, where one record an agent attains Lemma 5.

    None for the one round that Theorem 3 gives no noise at all.
    """
    noise = first_noise(s)
    if noise == 0:
        return None
    algorithm = algorithm_of(s, noise)
    words = f"K = {s.K}, K_p = {s.K_p}, one record an agent: {promise}"
    return ClaimAttack(PublishedPrAdmm(algorithm).solve, one_each(s), epsilon, s.delta, words)


def _converted_rounds(case: Case[PrSetting]) -> ClaimAttack | None:
    """Return the attack on what that conversion promises."""
    s = case.setting
    return _whole_run(s, _conversion(s).upper_float, "zCDP's conversion of the exact total")


def _all_agents(case: Case[PrSetting]) -> ClaimAttack | None:
    """Return the attack on what a record's own agent costs alone."""
    s = case.setting
    own = published_guarantee(replace(s, convex=False)).epsilon.upper_float
    return _whole_run(s, own, "what the record's own agent costs alone")


ROUND = claim(
    "PR-2",
    "one round",
    "a round is rho-zCDP with rho = V²/(2 eta² |V_i|² sigma²)",
    "Theorem 2",
    RhoPromise(round_rho, plan=lambda s: published_run(s)[:1]),
    attack=one_message,
)
"""Holds, loosely: Lemma 5 lacks the factor 1/|D_i| of convex losses.

The paper: Theorem 2, rho = Delta²/(2 sigma²) with Lemma 5's Delta (Bun, Steinke 2016, Proposition
1.6). The court prices the planned round of the solver and compares two rational numbers.
"""


PERIODIC = claim(
    "PR-3",
    "total of the periodic decay",
    "rho_total = rho_1 (K_p (1 - R^J)/(R^(J-1) - R^J) - 1), J = K/K_p",
    "Theorem 3",
    ClosedFormPromise(
        published_periodic,
        exact=exact_periodic,
        candidates=_small_runs,
        named=("K", "K_p"),
        counterexample=_one_release,
        figures=_periodic_figures,
        argument=_periodic_argument,
    ),
    attack=_one_period,
)
"""Fails: the closed form is the sum less rho_1. The conversion's slack may hide it.

The paper: Theorem 3 sums a geometric series over J = K/K_p periods, and subtracts 1. Evidence: the
sum term by term, exactly; the smallest run at which the form is too small; and one release whose
noise equals its sensitivity, of which the form says epsilon 0 and which an event tells apart.
Enough, because a single round is a run that the theorem speaks of.
"""


ITERATION_BASED = claim(
    "PR-4",
    "total of the iteration-based decay",
    "rho_total = rho_1 (R_T K (K² - 1) + 3)/3",
    "Theorem 4",
    ClosedFormPromise(
        _iteration,
        exact=lambda s: cost(IterationDecay(s.R_T), s.K),
        candidates=_small_runs,
        named=("K",),
        figures=lambda s: {"variance in round 2": Enclosure.of(IterationDecay(s.R_T).variance(2))},
        argument=_iteration_argument,
    ),
    attack=_iteration_rounds,
)
"""Holds exactly; but the variance rises before it falls, so that it is no decay.

The paper: Theorem 4, of sigma_{k+1}² = sigma_1²/(R_T k (k + 1)). At R_T = 0.015 the second round
has 33 times the first one's variance; the court compares the form with the sum, exactly.
"""


AGENTS = claim(
    "PR-5",
    "total over agents",
    "epsilon = max over agents of epsilon_i",
    "Theorems 3 and 4",
    PartiesPromise(plan=published_run),
    attack=_all_agents,
)
"""Holds exactly: disjoint records compose in parallel (McSherry 2009, Theorem 4).

Other agents' messages are functions of what this one sent and of records of their own. Evidence: mu
of all agents' planned events together, and of each agent's own.
"""


CONVERSION = claim(
    "PR-6",
    "conversion",
    "rho-zCDP gives (rho + 2 sqrt(rho ln(1/delta)), delta)-DP",
    "Lemma 3",
    EpsilonPromise(
        claimed=_conversion,
        plan=lambda s: published_run(replace(s, convex=False)),
        figures=_periodic_figures,
    ),
    attack=_converted_rounds,
)
"""Holds: Bun, Steinke 2016, Proposition 1.3; the exact curve of Gaussian noise is lower.

The paper: Lemma 3. A composition of Gaussian releases is sqrt(2 rho)-GDP, whose exact epsilon the
court encloses: at the experiments' epsilon = 10 it is 8.4.
"""
