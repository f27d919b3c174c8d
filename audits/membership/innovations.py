"""Canary scores on innovations: the attack of one who sees every message but not the others' data.

Such an adversary subtracts from each message what it would be on records of its own choice and
looks at the rest in the direction in which the canary would have moved it. That is the replay's
log-likelihood ratio with reference data in place of the true ones, so it needs no code of its own
for any solver: the closer the reference, the closer to the optimal attack.
"""

from collections.abc import Callable, Iterator

from ...mechanisms.curators import Curator, SamplingCurator
from ...mechanisms.errors import InvalidParameter, require_nonnegative, require_positive_int
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ..bounds import Scores
from ..curators import ReplayCurator
from ..neighbours import NeighbourPair


def innovation_scores(
    solve: Callable[[PrivateDataset, Curator], object],
    pair: NeighbourPair,
    reference: NeighbourPair,
    *,
    trials: int,
    seed: int,
    chunk: int = 100,
) -> Iterator[Scores]:
    """Yield scores of runs on `pair` by an adversary who knows `reference` only.

    Args:
        solve: the algorithm.
        pair: the attacked data sets, which differ in the canary.
        reference: the adversary's data with and without the canary; the same public facts.
        trials: number of runs on each data set.
        seed: a whole number >= 0.
        chunk: runs at once.
    """
    require_positive_int("trials", trials)
    require_positive_int("chunk", chunk)
    require_nonnegative("seed", seed)
    if pair.dataset.shape != reference.dataset.shape:
        raise InvalidParameter(
            "reference.shape", reference.dataset.shape, f"equal to {pair.dataset.shape}"
        )

    def scores(world: int, number: int, size: int) -> FloatArray:
        sampler = SimulationSampler.stream(seed, world, number)
        curator = SamplingCurator(EventList(), sampler, trials=size, record=True)
        solve((pair.dataset, pair.neighbour)[world], curator)
        replays = [ReplayCurator(curator.transcript) for _ in range(2)]
        for data, replay in zip((reference.dataset, reference.neighbour), replays, strict=True):
            solve(data, replay)
        return replays[0].log_density - replays[1].log_density

    for number, start in enumerate(range(0, trials, chunk)):
        size = min(chunk, trials - start)
        yield Scores(scores(0, number, size), scores(1, number, size))
