"""Records of a known logistic model, of any shape.

>>> records = synthetic_records(count=100, features=7, seed=1)
>>> records.features.shape, records.row_bound
((100, 7), 1.0)
"""

import numpy as np
from scipy.special import expit

from ..mechanisms.clipping import project_to_ball
from ..mechanisms.data_shape import EVERYBODY
from ..mechanisms.errors import require_positive, require_positive_int
from .records import LabelledRecords


def synthetic_records(
    *, count: int, features: int, seed: int, signal: float = 10.0
) -> LabelledRecords:
    """Return rows of standard normal numbers scaled onto the unit ball, labels by a logistic model.

    A label is +1 with probability 1/(1 + exp(-<w, row>)), w of norm `signal` in a random direction.

    Args:
        count: of records.
        features: of a record.
        seed: of everything.
        signal: norm of w; more makes the labels easier to tell.
    """
    require_positive_int("count", count)
    require_positive_int("features", features)
    require_positive("signal", signal)
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(features)
    w = direction * (signal / np.linalg.norm(direction))
    # a typical row has norm 1/2: few are cut
    rows = project_to_ball(rng.standard_normal((count, features)) / (2.0 * np.sqrt(features)), 1.0)
    return LabelledRecords(
        features=rows,
        labels=np.where(rng.random(count) < expit(rows @ w), 1.0, -1.0),
        feature_names=tuple(f"x{i}" for i in range(features)),
        row_bound=1.0,
        description=f"synthetic, {count} records of {features} features",
        parties=EVERYBODY,
        party_of=np.zeros(count, dtype=np.intp),
    )
