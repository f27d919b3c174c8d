"""Attacks that confirm a verdict: what fails is exceeded, what holds is not.

A `ClaimAttack` runs the claim's own algorithm on two neighbours by importance sampling: a
rigorous lower bound on epsilon that small deltas do not blunt. A counterexample's event is counted
(Clopper, Pearson 1934), or is certain under one data set and impossible under the other; where
nothing random decides it, it is computed once of each, and there are no trials and no confidence.
"""

from dataclasses import dataclass
from enum import Enum
from math import isfinite, log

from ...accounting.gaussian.exact import epsilon_from_delta
from ...mechanisms.errors import InvalidParameter, Number
from ..bounds import largest_rate
from ..importance_sampling import pair_interval
from ..neighbours import NeighbourPair
from ..replay import Progress, Solve

_CHUNK = 250
# of the epsilon that an event shows, for counting to show it too
_MARGIN = 0.2


class AttackKind(Enum):
    """How a lower bound was found."""

    TILTED_REPLAY = "replay with tilted noise"
    COUNTED_EVENT = "event counted"
    CERTAIN_EVENT = "event impossible under the neighbour"
    EXACT_EVENT = "exact event"


@dataclass(frozen=True, slots=True)
class AttackOutcome:
    """What an attack found, in plain values.

    Args:
        kind: of the attack.
        neighbours: the two data sets, in words.
        at: what was run, in words.
        epsilon, delta: what was promised; None where nothing finite is.
        lower: with probability `confidence` epsilon of this pair is more; None for an exact event.
        upper: and no more than this, where that is known.
        trials, seed, confidence: of the attack; None for an exact event.
        exceeded: whether the promise is refuted.
    """

    kind: AttackKind
    neighbours: str
    at: str
    epsilon: float | None
    delta: float
    lower: float | None
    upper: float | None
    trials: int | None
    seed: int | None
    confidence: float | None
    exceeded: bool


@dataclass(frozen=True, eq=False, slots=True)
class ClaimAttack:
    """A run on two neighbours against a promise about it.

    Args:
        solve: the algorithm; all it releases are Gaussian steps.
        pair: two data sets whose gap does not depend on the history.
        epsilon, delta: what the claim promises about this very run.
        at: what is run, in words.
    """

    solve: Solve
    pair: NeighbourPair
    epsilon: float
    delta: float
    at: str

    def run(
        self, *, trials: int, seed: int, confidence: float, progress: Progress | None = None
    ) -> AttackOutcome:
        """Enclose the pair's epsilon by `trials` runs in each direction.

        Args:
            trials: runs in each direction, at least 2.
            seed: of all of them, a whole number >= 0.
            confidence: of the interval, in (0, 1).
            progress: called after every chunk with the runs done and all runs.
        """
        found = pair_interval(
            self.solve,
            self.pair.dataset,
            self.pair.neighbour,
            delta=self.delta,
            confidence=confidence,
            trials=trials,
            seed=seed,
            chunk=min(_CHUNK, trials),
            progress=progress,
        )
        return AttackOutcome(
            kind=AttackKind.TILTED_REPLAY,
            neighbours=self.pair.description,
            at=self.at,
            epsilon=self.epsilon,
            delta=self.delta,
            lower=found.lower,
            upper=found.upper if isfinite(found.upper) else None,
            trials=trials,
            seed=seed,
            confidence=confidence,
            exceeded=found.lower > self.epsilon,
        )


def promised_by_mu(mu_squared: Number, delta: float) -> float:
    """Return the epsilon at `delta` that a promise of mu-GDP comes to, rounded up.

    Args:
        mu_squared: of the promise, >= 0.
        delta: in (0, 1).
    """
    return epsilon_from_delta(mu_squared=mu_squared, delta=delta).upper_float


def counted_bound(
    hits: int, neighbour_hits: int, trials: int, *, delta: float, confidence: float
) -> float:
    """Return the least epsilon that allows an event's frequencies, at least 0.

    Half of the error probability goes to either rate.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 2.1; rates by Clopper, Pearson 1934.

    Args:
        hits, neighbour_hits: runs in which the event happened, of `trials` under each data set.
        trials: runs under each.
        delta: in [0, 1).
        confidence: in (0, 1).
    """
    for name, value in (("hits", hits), ("neighbour_hits", neighbour_hits)):
        if not 0 <= value <= trials:
            raise InvalidParameter(name, value, f"in [0, {trials}]")
    each = 1 - (1 - confidence) / 2
    least = 1 - float(largest_rate(trials - hits, trials, confidence=each))
    most = float(largest_rate(neighbour_hits, trials, confidence=each))
    return max(0.0, log((least - delta) / most)) if least > delta else 0.0


def countable(first: float, second: float, *, epsilon: float, delta: float) -> bool:
    """Return whether counting an event with these probabilities would show more than epsilon."""
    return first > delta and log((first - delta) / second) >= epsilon + _MARGIN
