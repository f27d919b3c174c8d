"""Computations on private numbers, of which nothing is heard but their result."""

from collections.abc import Callable

import numpy as np

from .errors import DpledgerError, InvalidParameter
from .protocols import FloatArray


def quietly(compute: Callable[[], FloatArray]) -> FloatArray:
    """Return what a computation on private numbers makes, without warnings or words of others.

    What NumPy says of arrays that do not fit, or into memory, names their shapes, and so the number
    of records; a traceback that starts in the computation holds the records themselves.

    Args:
        compute: reads private arrays and public arguments.

    Raises `InvalidParameter` in place of all that is not ours, `MemoryError` without its sizes.
    """
    try:
        with np.errstate(all="ignore"):
            return compute()
    except DpledgerError:
        raise
    except Exception as error:
        kind = type(error)
    # out here, so that the refusal does not carry the error that it stands for
    if issubclass(kind, MemoryError):
        raise MemoryError("The records and the arguments do not fit into memory; ask for less.")
    raise InvalidParameter(
        "arguments", kind.__name__, "of kinds and shapes with which the records can be computed"
    )
