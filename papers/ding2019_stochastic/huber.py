"""What the first message x^1 alone shows of one record: the Huber instance.

One dimension, rho -> 0, x = z = 0 at the start: everybody has l(v) = -v, but one record has the
Huber loss with slope clip((v - h)/h, -1, 1), or -v as well. v moves ahead by eta = eta_nu h a step;
once v >= 2h the slope of that record has turned, and where it is drawn its correction of 2G shows
in full: noise that hides 2G/M in a mean does not hide that.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from ...accounting.numbers.enclosure import Enclosure
from ...audits.claims.attack import countable
from ...audits.claims.claim import Case, Counterexample
from ...audits.datasets import AuditDataset
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import SamplingCurator
from ...mechanisms.labels import SIGNS
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ...solvers.stochastic import PrintedWeights, PublishedPsAdmm, StochasticRounds
from .constant import bracket
from .setting import PsSetting, printed_noise

_GRID = 6001
"""Thresholds that are tried: spaced far below the noise of x^1."""
_CHUNK = 500
"""Runs of one batch."""
# what 20,000 runs without it leave possible of an event, at 99.95 per cent
_UNSEEN = 4e-4
_RECORDS = (100, 200, 300, 500)
"""Numbers of records that the attack tries: few enough for a draw to matter, enough for 2G/M to be
hidden.
"""
_MOST_DRAWS = 10**5
"""Records times steps of an attacked run, at most: beyond, thousands of runs take minutes."""
_NO_PENALTY = 1e-9
"""The penalty rho of the instance, in units of G²: near zero, so that v moves by eta G a step."""


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """The event "x^1, less its mean without draws and in units of eta G, is at most `threshold`".

    `probability` is where the record has the Huber loss, at least; `neighbour_probability` where it
    has not; `epsilon` is what they show at delta.
    """

    threshold: float
    probability: float
    neighbour_probability: float
    epsilon: float


def message_weights(s: PsSetting) -> FloatArray:
    """Return how much of every inner noise x^1 holds, in units of eta: (S - 1 - s + kappa)/S.

    By the identity of PS-4: x^{k+1} = mean of v^s + (kappa/S)(v^S - v^0).

    Args:
        s: the parameters; S and eta nu are used.
    """
    kappa = PrintedWeights().of_next(s.eta_nu)
    return np.asarray((s.S - 1 - np.arange(s.S) + kappa) / s.S)


def effective_steps(s: PsSetting) -> float:
    """Return how many of the S steps' noises, at full weight, a message is worth.

    (Σ w)²/Σ w²: a message that averages S noises with these weights hides a constant shift as well
    as so many equal ones.
    """
    weights = message_weights(s)
    return float(weights.sum() ** 2 / (weights**2).sum())


def first_message(s: PsSetting, c: float, *, unseen: float = 0.0) -> FirstMessage:
    """Return the event that shows most; draws before v >= 2h count as if they did not exist.

    With `unseen`, an event's neighbour probability counts as larger by it: what is best to count.

    The probability where the record is Huber is a lower bound: at most one draw of it counts, and
    only once v has passed 2h, less the probability that noise holds v back. Without the record x^1
    is normal.

    Args:
        s: the parameters.
        c: the constant of Theorem 2.
        unseen: what a count of zero in the runs leaves possible.
    """
    weights, noise, steps = message_weights(s), printed_noise(replace(s, c=c)) / s.G, np.arange(s.S)
    spread, rate = noise * sqrt(float((weights**2).sum())), 1 / s.M
    reached = steps - 2 / s.eta_nu
    late = steps[reached > 0]
    missed = norm.sf(reached[late] / (noise * np.sqrt(late)))
    t = np.linspace(-8 * spread - 3, 2.0, _GRID)[:, None]
    drawn = norm.cdf((t + 2 * weights[late]) / spread) - missed
    once = rate * (1 - rate) ** (s.S - 1) * np.maximum(drawn, 0).sum(axis=1)
    first = once + (1 - rate) ** s.S * norm.cdf(t[:, 0] / spread)
    second = norm.logcdf(t[:, 0] / spread)
    floor = np.logaddexp(second, log(unseen) if unseen else -np.inf)
    shown = np.log(np.maximum(first - s.delta, 1e-300)) - floor
    best = int(shown.argmax())
    return FirstMessage(
        float(t[best, 0]),
        float(first[best]),
        float(np.exp(second[best])),
        float(max(0.0, shown[best])),
    )


def first_message_c(s: PsSetting) -> float:
    """Return the c below which the first message refutes (epsilon, delta); 0 for none.

    Args:
        s: the parameters; epsilon and delta are what is refuted.
    """

    def refutes(c: float) -> bool:
        return first_message(s, c).epsilon > s.epsilon

    low, high = bracket(s, refutes)
    if not refutes(low):
        return 0.0
    return float(brentq(lambda c: first_message(s, c).epsilon - s.epsilon, low, high))


class _HuberOrLinear:
    """-s for label -1; for label 1 the Huber loss with slope clip(s - 1, -1, 1)."""

    outputs = 1
    label_domain = SIGNS
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(1)
    label_gap_bound = Fraction(2)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the loss, elementwise."""
        inside = np.clip(scores - 1, -1, 1)
        huber = inside * (scores - 1) - inside**2 / 2
        return np.where(labels > 0, huber, -scores)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return its slope, elementwise."""
        return np.where(labels > 0, np.clip(scores - 1, -1, 1), -1.0)


def huber_event(case: Case[PsSetting]) -> Counterexample | None:
    """Return the event to count in runs of the published algorithm's first round.

    The round is the only one, and the records few, where the claim is free in K and M. None where
    the instance shows too little, or the records are so many that runs would take long.
    """
    settings = [case.at(K=1, M=records).setting for records in _RECORDS]
    events = [(first_message(s, s.c, unseen=_UNSEEN), s) for s in settings]
    found, s = max(events, key=lambda pair: pair[0].epsilon)
    if s.zero_out or s.logistic or s.M * s.S > _MOST_DRAWS:
        return None
    often, rarely = found.probability, found.neighbour_probability + _UNSEEN
    shows = countable(often, rarely, epsilon=s.epsilon, delta=s.delta)
    return _event(s, found) if shows else None


def _event(s: PsSetting, found: FirstMessage) -> Counterexample:
    """Return the counterexample that runs of the published solver confirm, at these parameters."""
    rounds = StochasticRounds(
        1, s.S, s.eta_nu / s.G**2, penalty=_NO_PENALTY * s.G**2, loss=_HuberOrLinear()
    )
    solve = PublishedPsAdmm(rounds, printed_noise(s)).solve
    labels = -np.ones(s.M)
    neighbour = AuditDataset(
        np.full((s.M, 1), s.G),
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=s.G,
        parties=s.shape.parties,
    )
    dataset = neighbour.with_record(0, label=1.0)
    mean, unit = float(message_weights(s).sum()), rounds.step_size * s.G

    def rate(side: AuditDataset, trials: int, seed: int, world: int) -> float:
        hits = 0
        for number, start in enumerate(range(0, trials, _CHUNK)):
            size = min(_CHUNK, trials - start)
            sampler = SimulationSampler.stream(seed, world, number)
            curator = SamplingCurator(EventList(), sampler, trials=size)
            (message,) = np.moveaxis(solve(side, curator).messages[..., 0], -1, 0)
            hits += int(np.sum(message / unit - mean <= found.threshold))
        return hits / trials

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        return rate(dataset, trials, seed, 0), rate(neighbour, trials, seed, 1)

    return Counterexample(
        f"{s.M} records of loss -v, but one has a Huber loss, or -v as well",
        f"one round of S = {s.S} steps, c = {s.c:g}: x^1 is {-found.threshold:.6g} eta G or more "
        "below its mean without draws",
        Enclosure.of(found.probability),
        Enclosure.of(found.neighbour_probability),
        rerun,
        (s.epsilon, s.delta),
    )
