"""H-5: step sizes, and so the noise, from training without privacy.

Theorems 3 and 4 want c_w = |w*|, and section VI finds it by pre-training on the private records
without noise. The step size eta_k sets the sensitivity of a round, and so the standard deviation of
its noise: noise of another size is seen without any message. For normal noise of variances s² and
s'² in d dimensions the Kullback-Leibler divergence is (d/2)(r - 1 - ln r), r = s²/s'², and over the
rounds it adds up; the figures compare it with what the guarantee accounts for.
"""

from dataclasses import replace

import numpy as np

from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision
from ...audits.claims.attack import countable
from ...audits.claims.auditor import gaussian_steps
from ...audits.claims.claim import Case, Counterexample
from ...audits.claims.structure import AccessPromise
from ...audits.datasets import AuditDataset
from ...mechanisms.curators import SamplingCurator
from ...mechanisms.events import Event
from ...mechanisms.protocols import EventList
from ...mechanisms.sampling import SimulationSampler
from ...solvers.planning import plan
from ...solvers.star import PublishedDpAdmm
from .setting import (
    PLANNED_ROUNDS,
    StarSetting,
    algorithm_of,
    claim,
    noise_multiplier,
    published_run,
)
from .whole_run import published_total

_ROUNDS = 30
"""Of pre-training without noise in the attack: c_w then grows with the record."""

_DEVIATIONS = 3.0
"""Of the smaller noise: beyond so many it is rarely met, the larger noise is."""


def _pretrained(s: StarSetting, *, rounds: int, before: int) -> PublishedDpAdmm:
    """The published algorithm, with so many rounds of training without noise before.

    Args:
        s: the parameters.
        rounds: of the private run.
        before: of training without noise.
    """
    return PublishedDpAdmm(algorithm_of(s, rounds, noise_multiplier(s)), before, s.c_w)


def _plan(s: StarSetting) -> tuple[Event, ...]:
    """Return the planned events of the published algorithm, pre-training included."""
    return plan(_pretrained(s, rounds=min(s.t, PLANNED_ROUNDS), before=1), s.shape, ideal=True)


def _figures(s: StarSetting) -> dict[str, Enclosure]:
    """The divergence of the noise alone, if one record moves c_w by one; and what is accounted.

        KL of the noise if c_w moves by 1   of the messages' noise alone, over the planned rounds
        KL accounted                        rho of the same rounds, as zCDP allows them

    Along any chain of replaced records from one c_w to another some neighbours differ by as much as
    a rounded c_w can: so a difference of 1 is no invention.
    """
    few = replace(s, t=min(s.t, PLANNED_ROUNDS))
    sides = [gaussian_steps(published_run(replace(few, c_w=c_w))) for c_w in (s.c_w, s.c_w + 1)]
    with precision(BITS):
        total = ball_of(0)
        for first, second in zip(*sides, strict=True):
            ratio = (ball_of(first.noise_std) / ball_of(second.noise_std)) ** 2
            total += ratio - 1 - ratio.log()
        divergence = Enclosure.from_ball(total * s.d / 2)
    accounted = guarantee(published_run(few), delta=s.delta).rho
    return {"KL of the noise if c_w moves by 1": divergence, "KL accounted": accounted}


def _argument(s: StarSetting) -> tuple[str, ...]:
    """Return what a record that moves c_w by 1 shows, beside what is accounted."""
    found = [value.upper_float for value in _figures(s).values()]
    return (
        "eta_k, and with it the variance of the noise, is computed from c_w = |w*|, which comes "
        "from training on the private records without noise.",
        f"If c_w is {s.c_w:g} on one data set and {s.c_w + 1:g} on its neighbour, the noise alone, "
        f"without any message, diverges by {found[0]:.4g} (Kullback-Leibler) over {s.t} rounds in "
        f"{s.d} dimensions; {found[1]:.4g} is accounted: {found[0] / found[1]:.3g} times less.",
        "Repair: a public c_w.",
    )


def _one_record(s: StarSetting, length: float) -> AuditDataset:
    """Return an agent's data set of one row (length, 0)."""
    return AuditDataset(
        np.array([[length, 0.0]]),
        np.ones(1),
        adjacency=s.shape.adjacency,
        row_bound=s.c1,
        parties=s.shape.parties,
    )


def _size_of_noise(case: Case[StarSetting]) -> Counterexample | None:
    """The first message across an agent's only record, which is null or not.

    With a linear loss c_w grows with the record and the rounds of pre-training, and is 1 for the
    null record. None where the noises are too close for one message to tell.

    The event "further across than three of the smaller deviations" has the probabilities of a
    normal law, in balls; whether so few runs can show it is asked before any is made (`countable`).
    """
    s = replace(case.setting, m=1, d=2, t=1)
    published = _pretrained(s, rounds=1, before=_ROUNDS)
    sides = [_one_record(s, length) for length in (s.c1, 0.0)]
    distances = [
        published.pretrained_distance(side, SamplingCurator(EventList(), SimulationSampler(0)))
        for side in sides
    ]
    noises = [gaussian_steps(published_run(replace(s, c_w=c)))[0].noise_std for c in distances]
    threshold, claimed = _DEVIATIONS * noises[1], published_total(s).upper_float
    with precision(BITS):
        often, rarely = (
            Enclosure.from_ball((ball_of(threshold) / ball_of(noise) / ball_of(2).sqrt()).erfc())
            for noise in noises
        )
    if not countable(often.lower_float, rarely.upper_float, epsilon=claimed, delta=s.delta):
        return None

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        rates: list[float] = []
        for number, side in enumerate(sides):
            curator = SamplingCurator(EventList(), SimulationSampler(seed + number), trials=trials)
            across = published.solve(side, curator).messages[..., 0, 1]
            rates.append(float(np.mean(np.abs(across) > threshold)))
        return rates[0], rates[1]

    return Counterexample(
        f"an agent's only record, in two dimensions, is ({s.c1:g}, 0) or null; c_w = "
        f"{distances[0]:g} or {distances[1]:g} after {_ROUNDS} rounds without noise",
        f"the first message is further than {threshold:.6g} from 0 across the record",
        often,
        rarely,
        rerun,
        (claimed, s.delta),
    )


PRETRAINING = claim(
    "H-5",
    "step sizes from pre-training",
    "the guarantee of Theorem 2 covers an algorithm whose eta_k uses c_w = |w*|",
    "section VI, Theorems 3 and 4",
    AccessPromise(_plan, figures=_figures, argument=_argument),
    attack=_size_of_noise,
)
"""Unaccounted access: c_w is a function of the records that is released through the noise.

The paper: section VI trains without noise to find |w*|, which sets eta_k and so sigma. Evidence: a
record that is an agent's only one changes the size of the first message's noise; how far the
message lies across the record tells the two apart, at the probabilities of a normal law with either
deviation.
"""
