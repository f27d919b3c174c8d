"""Arrays of private numbers, in memory or in files without names.

A file is made in a folder of the holder's choice and has lost its name before anything is written
to it: nobody opens it, so that it cannot change under a check that was made once, and it is gone
with the last array on it, however the process ends. Its space is reserved first, as a page that
finds no room when it is written would kill the process. What was on disk stays in free blocks until
these are used again: choose a disk that may hold the records.

An array on a file is an array like any other, with the same numbers in the same order: what is
computed from it does not depend on where it lies. The system keeps as many of its pages in memory
as it has room for.
"""

from __future__ import annotations

import os
import tempfile
from math import prod
from typing import IO, Any

import numpy as np

from .errors import InvalidParameter

Array = np.ndarray[Any, Any]
"""Of whatever numbers."""

Folder = str | os.PathLike[str] | None
"""Where files are made; None for memory."""

_PIECE = 2**23
"""Bytes that are written at once where no system call reserves space."""


def zeros(shape: tuple[int, ...], folder: Folder, dtype: Any = np.float64) -> Array:
    """Return an array of zeros: in memory, or on a file of its own in `folder`.

    Raises `InvalidParameter` where the folder is none, or has no room for it.
    """
    size = np.dtype(dtype).itemsize * prod(shape)
    if folder is None or not size:
        return np.zeros(shape, dtype)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            _reserve(file, size)
            return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape))
    except OSError as error:
        # the size would tell how many records there are
        need = f"a folder with room for the records (the system says: {error.strerror})"
        raise InvalidParameter("scratch", os.fspath(folder), need) from None


def copied(array: Array, folder: Folder, dtype: Any = np.float64) -> Array:
    """Return a copy of an array as numbers of `dtype`, where and as `zeros` makes it."""
    found = zeros(array.shape, folder, dtype)
    found[...] = array
    return found


def _reserve(file: IO[bytes], size: int) -> None:
    """Give a new file `size` bytes of zeros; raise `OSError` where there is no room for them."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for first in range(0, size, _PIECE):
        file.write(bytes(min(_PIECE, size - first)))
    file.flush()
