"""Choosing among private models by their fit to the records, and what the choice tells.

Every candidate is private by itself, but the choice looks at the records without noise: it is right
about a record where one candidate at least is.
"""

from collections.abc import Callable, Mapping

import numpy as np

from ...accounting.numbers.enclosure import Enclosure
from ...mechanisms.curators import Curator, SamplingCurator
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ...solvers.losses import LinearLoss
from ..neighbours import NeighbourPair
from .attack import countable
from .claim import Counterexample

Candidate = Callable[[PrivateDataset, Curator], FloatArray]
"""Trains on a data set and returns the model, of shape (..., d)."""


def looked_at(
    candidates: Mapping[str, Candidate], *, reason: str, round: int
) -> Callable[[PrivateDataset, Curator], None]:
    """Return the algorithm that trains every candidate and looks at its fit.

    Args:
        candidates: by the parameter that is tuned and its value.
        reason: why fits are looked at, and where the paper says so.
        round: the round after the last.
    """

    def solve(dataset: PrivateDataset, curator: Curator) -> None:
        for name, candidate in candidates.items():
            model = candidate(dataset, curator)
            curator.release_unprotected(
                dataset.mean_gradient(LinearLoss(), model),
                reason=reason,
                round=round,
                release=f"fit with {name}",
            )

    return solve


def best_fit(
    candidates: Mapping[str, Candidate],
    pair: NeighbourPair,
    *,
    models: str,
    epsilon: float,
    delta: float,
) -> Counterexample | None:
    """Return the event "the candidate of least loss points away from the record's row".

    A candidate's sign along the row is right in at least half of its runs, so that the best of k is
    right with probability 1 - 2^-k at least. None where epsilon allows that.

    Args:
        candidates: k algorithms, by name; noise is symmetric about 0, and models follow the record
            on average.
        pair: a record along the first axis, label 1 or -1, of a linear loss; no other has a
            gradient.
        models: what the candidates are, in words.
        epsilon, delta: what the claim allows.
    """
    wrong = 0.5 ** len(candidates)
    if not countable(1 - wrong, wrong, epsilon=epsilon, delta=delta):
        return None

    def points_away(dataset: PrivateDataset, label: float, trials: int, seed: int) -> float:
        curator = SamplingCurator(EventList(), SimulationSampler(seed), trials=trials)
        along = [train(dataset, curator)[..., 0] for train in candidates.values()]
        # the loss of the one record is its label times the model along it
        chosen = np.min(label * np.stack(along), axis=0) * label
        return float(np.mean(chosen < 0))

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        return (
            points_away(pair.dataset, 1.0, trials, seed),
            points_away(pair.neighbour, -1.0, trials, seed + 1),
        )

    return Counterexample(
        pair.description,
        f"of {len(candidates)} models {models}, the one of least loss points away from the "
        "record's row",
        Enclosure.of(1 - wrong),
        Enclosure.of(wrong),
        rerun,
        (epsilon, delta),
    )
