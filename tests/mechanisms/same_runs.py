"""What two places of the same records must have in common."""

from typing import Any

import numpy as np

from dpledger.mechanisms import EventList, PrivateDataset, SamplingCurator, SeededSampler


def require_same_run(solver: Any, first: PrivateDataset, second: PrivateDataset) -> None:
    """Fail unless a solver comes to the same bits, and the same events, with both."""
    models, events = [], []
    for dataset in (first, second):
        sink = EventList()
        models.append(solver.solve(dataset, SamplingCurator(sink, SeededSampler(3))).model)
        events.append(sink.events)
    np.testing.assert_array_equal(*models)
    assert events[0] == events[1]
    assert events[0]
