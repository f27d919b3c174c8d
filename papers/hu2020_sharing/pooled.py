"""What sharing is compared with beside the paper's own baselines: parties' own models, added.

No scores leave: every party descends on its own columns and the public labels, and a record's
score is the labels' log-odds plus what all parties' models add (`OpinionPool`). The settings are
`opinion_pool_defaults`, which know public numbers only; nothing was chosen on these records.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, pairwise
from time import process_time

import numpy as np
from scipy.sparse import issparse
from scipy.special import logit

from ...accounting.planning import calibrate_noise_multiplier
from ...data import LabelledRecords
from ...mechanisms import Adjacency, Event, EventList, SamplingCurator
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sampling import Sampler
from ...mechanisms.vertical_data import VerticalDataset, VerticalShape
from ...solvers import OpinionPool, opinion_pool_defaults
from ...solvers.planning import plan
from ..harness.cell import CellPrivacy, Trace
from ..harness.sources import Source, measured, optimum
from ..harness.training import priced


def shape_of(source: Source, widths: Sequence[int]) -> VerticalShape:
    """Return what is public about a source's training records, labels included.

    Args:
        source: of the records.
        widths: columns of each party.
    """
    names = tuple(f"party {i + 1}" for i in range(len(widths)))
    return VerticalShape(names, source.train, tuple(widths), 1.0, Adjacency.REPLACE_ONE, True)


def columns_of(records: LabelledRecords, shape: VerticalShape) -> VerticalDataset:
    """Return the records' columns with their parties.

    Args:
        records: dense or sparse.
        shape: the parties' widths add up to the records' columns.
    """
    features = records.features
    rows = np.asarray(features.toarray() if issparse(features) else features)
    ends = accumulate(shape.features, initial=0)
    return VerticalDataset(
        [rows[:, a:b] for a, b in pairwise(ends)],
        records.labels,
        adjacency=shape.adjacency,
        parties=shape.parties,
        public_labels=shape.public_labels,
    )


def log_odds(records: LabelledRecords) -> float:
    """Return the log-odds of the labels, which are public."""
    return float(logit(np.mean(records.labels > 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """Every party's own model, log-odds added.

    Args:
        source: of the records.
        widths: columns of each party.
        epsilon: enclosed, of all parties together.
        delta: of the guarantee.
    """

    source: Source
    widths: tuple[int, ...]
    epsilon: float
    delta: float

    def privacy(self) -> CellPrivacy:
        """Return the promise and the truth, from a plan."""
        events = plan(_calibrated(self, 0.0), shape_of(self.source, self.widths))
        return priced(events, delta=self.delta, nominal=self.epsilon)

    def run(self, *, split_seed: int, sampler: Sampler) -> Trace:
        """Train once, and measure the model.

        Args:
            split_seed: of the division into training and test records.
            sampler: of all noise.
        """
        train, test = self.source.split(split_seed)
        offset = log_odds(train)
        dataset = columns_of(train, shape_of(self.source, self.widths))
        solver = _calibrated(self, offset)
        start = process_time()
        model: FloatArray = solver.solve(dataset, SamplingCurator(EventList(), sampler)).model
        seconds = process_time() - start
        least = optimum(self.source, split_seed)
        found = measured(model, train, test, least=least, offset=offset)
        values = {name: (value,) for name, value in found.items()}
        return Trace(rounds=(solver.rounds,), values=values, seconds=seconds)


@lru_cache(maxsize=64)
def _calibrated(task: Pooled, offset: float) -> OpinionPool:
    """Return the solver with the least noise that certifies the task's target.

    Kept by task and offset: price and runs of a cell ask for the same search.
    """
    shape = shape_of(task.source, task.widths)
    solver = opinion_pool_defaults(shape, epsilon=task.epsilon, delta=task.delta, offset=offset)

    def planned(noise_multiplier: float) -> tuple[Event, ...]:
        return plan(replace(solver, noise_multiplier=noise_multiplier), shape)

    found = calibrate_noise_multiplier(planned, target_epsilon=task.epsilon, delta=task.delta)
    return replace(solver, noise_multiplier=found.noise_multiplier)
