"""PS-2 and PS-3: the constants of Theorems 1 and 2, and what the whole run costs.

A stochastic gradient is the full gradient at a snapshot plus a correction of one drawn record. The
full gradient enters every one of K S steps unsampled and moves by 2G/M. With linear losses the
correction vanishes, and the run is exactly mu-GDP with mu = 2 epsilon/sqrt(c ln(1/delta)), in
proportion to epsilon: the exact epsilon grows like mu²/2, so that no constant c serves every
epsilon. With curved losses a drawn record moves the gradient by up to 4G, which noise for 2G/M does
not hide.

Where no given data sets refute a c, the bound for any data (`constant.upper_bound`) decides.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil

from ...accounting.gaussian.exact import mu_from_epsilon_delta
from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, shown_down, shown_up
from ...audits.claims.attack import ClaimAttack
from ...audits.claims.claim import Case, ClaimVerdict, Counterexample, DerivationEvidence, Finding
from ...audits.claims.gaussian_event import likelihood_event
from ...audits.claims.structure import ConstantsPromise
from ...solvers.stochastic import PrintedWeights, PsAdmm, PublishedPsAdmm
from .constant import (
    breaks_at,
    full_gradient_c,
    linear_epsilon,
    measured,
    necessary_c,
    regime_constants,
    sufficient_c,
    upper_bound,
    worst_pair,
    worst_shifts,
)
from .huber import effective_steps, first_message, first_message_c, huber_event
from .setting import PsSetting, claim, linear_pair, linear_run, printed_noise, stochastic_rounds

_DISTINCT = 6.0
"""Shift over noise beyond which a drawn record shows at once, and epsilon means little."""

_VISIBLE = 0.02
"""By how much an epsilon must be larger than promised, for a few thousand runs to tell."""

_LARGEST = 100.0
"""An epsilon beyond which so few runs show nothing."""

_MOST_STEPS = 100
"""Of the attacked run, which is one round of few records."""


def _constant_figures(s: PsSetting) -> dict[str, Enclosure]:
    """Return what the constants c and c_1 leave open: the noise, in units of the claimed 3G.

    K S/M²              times c_1, the largest epsilon that the theorem speaks of
    noise at this c     the printed standard deviation
    noise over 3G       far below 1: a drawn record is not hidden
    """
    return {
        "K S/M²": Enclosure.of(Fraction(s.steps, s.M**2)),
        "noise at this c": Enclosure.of(printed_noise(s)),
        "noise over 3G": Enclosure.of(printed_noise(s) / (3 * s.G)),
    }


@lru_cache(maxsize=32)
def _total_figures(s: PsSetting) -> dict[str, Enclosure]:
    """Return what the run costs linear and Huber losses, and the c that each would need."""
    seen, necessary, shown = effective_steps(s), necessary_c(s), first_message(s, s.c).epsilon
    figures = {
        "mu*": mu_from_epsilon_delta(epsilon=s.epsilon, delta=s.delta),
        "noise": Enclosure.of(printed_noise(s)),
        "epsilon, linear losses": linear_epsilon(s, 1.0),
        "effective steps of S": Enclosure.of(seen),
        "epsilon, linear losses, messages": linear_epsilon(s, seen / s.S),
        "epsilon, Huber instance, first message, at least": Enclosure.of(shown),
        "c needed, linear losses": full_gradient_c(s, s.steps),
        "c needed, linear losses, messages": full_gradient_c(s, seen * s.K),
        "c needed, Huber instance, first message": Enclosure.of(first_message_c(s)),
        "c needed, worst pair": measured(necessary),
        "c that suffices": Enclosure.of(sufficient_c(s, necessary)),
        "epsilon at which c breaks": breaks_at(s),
    }
    # beyond, a drawn record shows at once
    if worst_shifts(s)[1] < _DISTINCT * printed_noise(s):
        worst = worst_pair(s, s.c).epsilon(s.delta, times=s.steps)
        figures["epsilon, worst pair"] = measured(worst)
    return figures


def _shown(s: PsSetting, figures: Mapping[str, Enclosure]) -> dict[str, Enclosure]:
    """The epsilons that given data sets of this relation and loss show.

    Under zero-out a null record has no gradient that turns, and of logistic losses one record's
    slopes have one sign: there the Huber instance shows nothing.
    """
    names = {"linear losses": "epsilon, linear losses", "the worst pair": "epsilon, worst pair"}
    if not (s.logistic or s.zero_out):
        names["the Huber instance"] = "epsilon, Huber instance, first message, at least"
    elif s.logistic:
        del names["linear losses"]
    shown = {who: figures[name] for who, name in names.items() if name in figures}
    return shown or {"nothing": Enclosure.of(0)}


@dataclass(frozen=True, slots=True)
class TotalPromise:
    """A run is (epsilon, delta)-DP with noise of constant c, for all epsilon of the regime.

    Args:
        figures: what given data sets cost, and which c each of them would need.

    The verdict needs no single theorem: a data set that costs more than is claimed refutes it;
    where none does, an upper bound for any data may prove it; between them it is unspecified.
    """

    figures: Callable[[PsSetting], Mapping[str, Enclosure]]

    def judge(self, case: Case[PsSetting]) -> Finding:
        """Compare with data sets that refute it, then with the bound for any data."""
        s = case.setting
        figures, linear = self.figures(s), linear_epsilon(s, 1.0)
        named, least = max(_shown(s, figures).items(), key=lambda item: item[1].lower_float)
        broken = figures["epsilon at which c breaks"].upper_float
        place = f"epsilon > {broken:.6g} with K S >= epsilon M²/c1, for c = {s.c:g}: linear losses"
        verdict, breaks = ClaimVerdict.FAILS, place
        claimed: Enclosure | None = Enclosure.of(s.epsilon)
        true: Enclosure | None = least
        needed = figures["c needed, worst pair"].lower_float
        low = shown_down(least.lower_float, digits=6)
        if least.lower_float > s.epsilon:
            reason = f"epsilon of {named} is {low}, above {s.epsilon:g}"
        elif s.c < needed:
            claimed = true = None
            reason = f"the worst pair needs c >= {needed:.6g} for epsilon = {s.epsilon:g}"
        elif case.free("epsilon"):
            claimed = true = None
            reason = f"whatever holds at epsilon = {s.epsilon:g}, c = {s.c:g} is too small above"
        else:
            # only now: where noise is far too small, this takes long
            high = upper_bound(s)
            true = Enclosure.hull(least, Enclosure.of(high))
            verdict, breaks = ClaimVerdict.UNSPECIFIED, ""
            most = shown_up(high, digits=6)
            reason = f"neither proved nor refuted: epsilon in [{low}, {most}]"
            if high <= s.epsilon:
                verdict, reason = (
                    ClaimVerdict.HOLDS,
                    f"epsilon is at most {shown_up(high, digits=6)} for any data",
                )
        shows = linear.lower_float > s.epsilon and not s.logistic
        witness = (self._event(s),) if shows else ()
        return Finding(
            verdict,
            reason,
            claimed=claimed,
            true=true,
            unit=f"epsilon at delta {s.delta:g}",
            breaks_at=breaks or None,
            figures=figures,
            argument=_total_argument(s, figures),
            evidence=(DerivationEvidence((place,), tuple(linear_run(s)), s.delta), *witness),
        )

    def _event(self, s: PsSetting) -> Counterexample:
        """Return the likelihood event of a small linear run, whose mu is that of any run."""
        small = _linear_setting(s)
        solve = PublishedPsAdmm(stochastic_rounds(small, 1, small.S), printed_noise(small)).solve
        mu = guarantee(linear_run(small), delta=s.delta).mu
        pair, promised = linear_pair(small, null=s.zero_out), Enclosure.of(s.epsilon)
        return likelihood_event(solve, pair, mu=mu, epsilon=promised, delta=s.delta)


def _total_argument(s: PsSetting, figures: Mapping[str, Enclosure]) -> tuple[str, ...]:
    """Return why no constant c serves every epsilon."""
    f = {name: value.upper_float for name, value in figures.items()}
    return (
        "The full gradient enters every step unsampled. With linear losses the sampled correction "
        f"vanishes: each of K S = {s.steps} steps is a Gaussian mechanism with shift 2G/M, the run "
        "exactly mu-GDP with mu = 2 epsilon/sqrt(c ln(1/delta)), whatever K, S and M.",
        f"That needs c >= {f['c needed, linear losses']:.6g} at epsilon = {s.epsilon:g}, and as mu "
        "grows in proportion to epsilon no c serves all: this one breaks at epsilon = "
        f"{f['epsilon at which c breaks']:.6g}.",
        "A drawn record moves the gradient by up to 4G, and noise that hides 2G/M does not hide "
        f"that: the first message x^1 alone needs c >= "
        f"{f['c needed, Huber instance, first message']:.6g}, the noisy gradients at least "
        f"{f['c needed, worst pair']:.6g}; {f['c that suffices']:.6g} suffices for any data.",
        "Repair: drop the sampled correction, or release one noisy snapshot a round and sample "
        "clipped corrections.",
    )


def _attack(case: Case[PsSetting]) -> ClaimAttack | Counterexample | None:
    """Linear losses where they show enough, in the theorem's regime; else the Huber instance, which
    takes fewer steps than the regime asks for; else linear losses at a larger epsilon.

    None where the claim fails for the pair of one step only, of which no data sets are known, or
    at so large an epsilon that runs show nothing.

    Args:
        case: the parameters, and which of them the user fixed: those are attacked as they are.
    """
    s = case.setting
    if s.logistic:
        return None
    if linear_epsilon(s, 1.0).lower_float > s.epsilon * (1 + _VISIBLE):
        return _linear_attack(s)
    event = huber_event(case)
    if event is not None:
        return event
    if case.free("epsilon"):
        beyond = 1.5 * breaks_at(s).upper_float
        return _linear_attack(replace(s, epsilon=beyond)) if beyond < _LARGEST else None
    holds = s.c >= _total_figures(s)["c that suffices"].upper_float
    return _linear_attack(s) if holds else None


def _linear_setting(s: PsSetting) -> PsSetting:
    """One round of two records with as many steps as the regime wants; mu is that of any run.

    mu = 2 epsilon/sqrt(c ln(1/delta)) depends on none of K, S and M: so a small run's event refutes
    a large one's claim.
    """
    return replace(s, K=1, S=min(_MOST_STEPS, ceil(4 * s.epsilon / s.c1)), M=2, zero_out=False)


def _linear_attack(s: PsSetting) -> ClaimAttack:
    """The published run on linear losses.

    A drawn record's correction is zero there, so that nothing is sampled: full gradients, with the
    published noise and average, are the published algorithm.
    """
    small = _linear_setting(s)
    noise_multiplier = printed_noise(small) / (2 * s.G / small.M)
    solve = PsAdmm(stochastic_rounds(small, 1, small.S), noise_multiplier, PrintedWeights()).solve
    words = (
        f"K = 1, S = {small.S}, two records of linear loss, c = {s.c:g}, epsilon = {s.epsilon:g}"
    )
    return ClaimAttack(solve, linear_pair(small, null=s.zero_out), s.epsilon, s.delta, words)


CONSTANTS = claim(
    "PS-2",
    "constants",
    "there are c1 and c such that for epsilon <= c1 K S/M² noise of variance "
    "c G² K S ln(1/delta)/(M² epsilon²) gives (epsilon, delta)-DP",
    "Theorems 1 and 2",
    ConstantsPromise(("c1", "c"), needed=regime_constants, figures=_constant_figures),
    not_attacked="it names no constants; with constants its promise is that of PS-3, "
    "which is attacked",
)
"""Unspecified: the theorem names no constants, so that nothing can be checked against it.

The paper: Theorems 1 and 2, "there exist constants". With c = 1 the noise is about a hundredth of
the 3G that the analysis calls the sensitivity, as the figures show; amplification theorems ask for
at least one.
"""


WHOLE_RUN = claim(
    "PS-3",
    "the whole run",
    "with variance c G² K S ln(1/delta)/(M² epsilon²), c a constant, PS-ADMM is (epsilon, "
    "delta)-DP for all epsilon <= c1 K S/M²",
    "Theorem 2",
    TotalPromise(_total_figures),
    attack=_attack,
)
"""Fails for every c beyond some epsilon: mu grows with epsilon, the exact cost with mu².

The paper: Theorem 2. Evidence: linear losses, of which the run is exactly mu-GDP and an event of
the transcript has known probabilities; a Huber loss, whose first message alone shows a drawn
record; the worst pair of a step, composed over K S steps, as a necessary c; and a c that suffices
for any data.
"""
