"""Sums over many records, block by block: fixed blocks, compensated, that fit in the caches.

What rounding costs is priced for sums of blocks of `BLOCK_RECORDS` records (`rounding.sum_depth`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from .protocols import FloatArray
from .rounding import BLOCK_RECORDS


class BlockSum:
    """A sum of blocks' sums: plain where there are few blocks, else compensated.

    The rounding errors of the additions are added up beside the sum (Ogita, Rump, Oishi 2005,
    TwoSum), so that its error grows with the size of a block and not with the number of records.

    Args:
        into: array that the sum is added to, of any shape.
        records: how many records a party has at most.
        sums: how many blocks' sums are added, where blocks are smaller than `BLOCK_RECORDS`.
    """

    def __init__(self, into: FloatArray, records: int, sums: int = 0) -> None:
        long = records > _PLAIN_BLOCKS * BLOCK_RECORDS or sums > _MOST_PLAIN
        self._sum = into
        self._lost = np.zeros_like(into) if long and records > BLOCK_RECORDS else None

    def add(self, block: FloatArray, place: Any = ...) -> None:
        """Add one block's sum, at one place of the whole."""
        if self._lost is None:
            self._sum[place] += block
            return
        before = self._sum[place]
        after = before + block
        counted = after - before
        self._lost[place] += (before - (after - counted)) + (block - counted)
        self._sum[place] = after

    def close(self) -> None:
        """Add what was lost on the way."""
        if self._lost is not None:
            self._sum += self._lost


_PLAIN_BLOCKS = 32
"""Up to so many blocks plain additions keep within the error that is priced."""

_MOST_PLAIN = 62
"""Of smaller blocks: so many additions beside a block's are priced (`rounding.sum_depth`)."""


def records_at_once(records: int) -> list[slice]:
    """Return the blocks of `BLOCK_RECORDS` records that a sum over `records` is made of."""
    return [slice(k, k + BLOCK_RECORDS) for k in range(0, records, BLOCK_RECORDS)]


_BLOCK_SCORES, _BLOCK_NUMBERS, _PART_PRODUCTS = 2**17, 2**17, 2**18
"""Scores of a block stay in the caches; so do its rows until they are read the second time. Up to
so many products BLAS does on one thread, which is faster here and gives the same numbers on any
machine's number of threads."""


def blocks(trials: int, shape: tuple[int, ...], whole: int) -> Iterator[tuple[slice, slice, slice]]:
    """Yield blocks of parties, records and trials for rows of shape (P, n, d).

    Args:
        trials: B, the points at which all rows are evaluated.
        shape: (P, n, d).
        whole: n, or of how many records these are a part: blocks are as long as those of the whole.
    """
    parties, records, width = shape
    some = rows_at_once(whole, width)
    pairs = max(1, _BLOCK_SCORES // some)
    at_once = _evenly(trials, pairs)
    several = max(1, min(pairs // at_once, 2 * _BLOCK_NUMBERS // (some * width)))
    for party, trial in product(range(0, parties, several), range(0, trials, at_once)):
        for record in range(0, records, some):
            yield (
                slice(party, party + several),
                slice(record, record + some),
                slice(trial, trial + at_once),
            )


def block_sums(records: int, width: int) -> int:
    """Return how many blocks' sums a sum over that many rows of `width` numbers is made of."""
    some = rows_at_once(records, width)
    whole, rest = divmod(records, some)
    return whole * len(records_at_once(some)) + len(records_at_once(rest))


def rows_at_once(records: int, width: int) -> int:
    """Return how many rows stay in the caches: all of them, where these are few."""
    return records if records * width <= 2 * _BLOCK_NUMBERS else max(1, _BLOCK_NUMBERS // width)


def parts(shape: tuple[int, ...], width: int) -> list[slice]:
    """Return parts of a block's trials for products with rows of that width.

    Args:
        shape: of the block's slopes, (parties, trials, records).
        width: d.
    """
    _, trials, records = shape
    some = _evenly(trials, max(1, _PART_PRODUCTS // (records * width)))
    return [slice(trial, trial + some) for trial in range(0, trials, some)]


def _evenly(count: int, most: int) -> int:
    """Return the size of parts of at most `most`, as few and as equal as can be."""
    return -(-count // -(-count // most)) if count else 1
