"""Three or four records in two dimensions, and the neighbours that differ in the last one.

Small enough for a reader to redo by hand, large enough for A = [1, -1; I], the fused lasso of two
features.
"""

import numpy as np

from ...audits.datasets import AuditDataset
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.protocols import FloatArray

ROW_BOUND = 2.0
"""Above every row's norm, so that no row is scaled and the arithmetic stays as written."""

_ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.6, 0.8]])

# rows and labels: the last label differs
FLIPPED = ((_ROWS, np.ones(4)), (_ROWS, np.array([1.0, 1.0, 1.0, -1.0])))

# rows and labels: the last row differs
TURNED = tuple(
    (np.array([[1.0, 0.0], [0.0, 1.0], last]), np.ones(3)) for last in ([1.0, 0.0], [0.0, 1.0])
)

# rows: columns are correlated by the last row alone
CORRELATED = (_ROWS, np.vstack([_ROWS[:-1], [[0.6, 0.0]]]))


def records_of(rows: FloatArray, labels: FloatArray) -> AuditDataset:
    """Return a curator's data set of these rows (n, 2) and labels (n,), under replace-one."""
    # a row bound above 1 leaves rows of norm 1 as they are
    return AuditDataset(
        rows, labels, adjacency=Adjacency.REPLACE_ONE, row_bound=ROW_BOUND, parties=("curator",)
    )
