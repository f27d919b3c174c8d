"""Sums modulo 2^m of all parties' whole numbers: the seam of secure aggregation, and a test double.

Under the threat model `Summed` what leaves a party must be hidden in everything but the sum over
all parties. A protocol that does so (Bonawitz et al. 2017, Practical secure aggregation for
privacy-preserving machine learning) takes the place of `PublicMasks` here, behind one method:

    sum_mod_2m(integers, parties, release) -> the sum over parties, modulo 2^m

What an implementation must have before this project calls it anything but a simulation: seeds of
at least 128 bits expanded by a cryptographic stream, keys signed by identities that parties know
beforehand, integers passed through without rounding, a party that gives the shares of another's key
or of its mask and never both, and thresholds above half that the aggregator cannot lower. None that
was read has all of these, so that `PublicMasks` is the only one there is, and it hides nothing:
its masks are functions of public names. It is the flow of messages, and the same bits.

>>> rows = [np.array([5, -7]), np.array([-6, 9])]
>>> sent = [masked(as_words(row, 16), me, ("a", "b"), "run", 0, 16) for me, row in enumerate(rows)]
>>> as_integers(added(sent, 16), 16).tolist()
[-1, 2]
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..mechanisms.exact_noise import Integers

__all__ = ["Aggregation", "PublicMasks", "SumOf", "SumRelease", "Words"]

Words = np.ndarray[Any, np.dtype[np.uint64]]
"""Numbers modulo 2^m, m <= 64."""


class SumOf(NamedTuple):
    """Which sum is meant: the run's name, the release's number in it from 0, and m."""

    run: str
    number: int
    bits: int


@dataclass(frozen=True, slots=True)
class SumRelease:
    """Which sum is asked for, by whom, and the way to whoever adds.

    Args:
        run: the run's name.
        number: of the release in the run, from 0; no two sums of a run have the same masks.
        party: who asks.
        bits: m.
        exchange: hands in this party's bytes and returns what all parties' bytes come to.
    """

    run: str
    number: int
    party: str
    bits: int
    exchange: Callable[[bytes], bytes]


class Aggregation(Protocol):
    """A protocol that shows the sum of all parties' numbers and nothing else of them."""

    @property
    def name(self) -> str:
        """What plans call it: parties agree on it."""
        ...

    @property
    def simulated_by(self) -> str | None:
        """Why it hides nothing, for the assumption beside epsilon; None for one that does hide."""
        ...

    def sum_mod_2m(self, integers: Words, parties: Sequence[str], release: SumRelease) -> Words:
        """Return the sum over all parties modulo 2^m, of shape (width,), the same at every party.

        Args:
            integers: this party's numbers modulo 2^m, of shape (width,).
            parties: who takes part, in the order of the plan.
            release: which sum this is.

        Asked again with the same numbers, as after a crash, it answers the same.
        """
        ...

    def completed(
        self, total: Words, missing: Sequence[int], parties: Sequence[str], release: SumOf
    ) -> Words:
        """Return the sum over the parties that are there, from the sum of all that they sent.

        Called where parts are added, once a release: a protocol that hides the parts must never
        open the sums of two sets of parties for one release, whose difference is a party's part.

        Args:
            total: of what those that are there sent, modulo 2^m, of shape (width,).
            missing: who dropped out, by number; none where everybody is there.
            parties: who took part at first, in the order of the plan.
            release: which sum this is.
        """
        ...


class PublicMasks:
    """The test double: pairwise masks that cancel in the sum, and that anybody can compute."""

    name = "public masks"
    simulated_by = "its masks are public and hide nothing"

    def sum_mod_2m(self, integers: Words, parties: Sequence[str], release: SumRelease) -> Words:
        """Return the sum; see `Aggregation.sum_mod_2m`."""
        me = list(parties).index(release.party)
        sent = masked(integers, me, parties, release.run, release.number, release.bits)
        return decoded_words(release.exchange(encoded_words(sent)))

    def completed(
        self, total: Words, missing: Sequence[int], parties: Sequence[str], release: SumOf
    ) -> Words:
        """Return the sum without the masks whose other half is missing; see `Aggregation`."""
        there = [number for number in range(len(parties)) if number not in missing]
        for gone in missing:
            for other in there:
                stream = _mask_of(other, gone, len(total), release.run, release.number)
                total = total - stream if other < gone else total + stream
        return total & _mask(release.bits)


def masked(
    integers: Words, me: int, parties: Sequence[str], run: str, number: int, bits: int
) -> Words:
    """Return a party's numbers plus its masks, modulo 2^m.

    Of each pair of parties the first adds a stream and the second takes it off. The stream is
    SHAKE-256 of the run, the number of the release and the pair's places, which are public.
    """
    found = integers.copy()
    for other in range(len(parties)):
        if other == me:
            continue
        stream = _mask_of(me, other, len(found), run, number)
        found = found + stream if me < other else found - stream
    return found & _mask(bits)


def _mask_of(one: int, other: int, width: int, run: str, number: int) -> Words:
    """Return the stream of a pair of parties for a release of a run, of shape (width,)."""
    seed = f"public mask|{run}|{number}|{min(one, other)}|{max(one, other)}".encode()
    return decoded_words(hashlib.shake_256(seed).digest(8 * width))


def added(parts: Sequence[Words], bits: int) -> Words:
    """Return the sum of parts of shape (width,) modulo 2^m: what an aggregator computes."""
    total = np.zeros_like(parts[0])
    for part in parts:
        total += part  # modulo 2^64, of which 2^m is a divisor
    return total & _mask(bits)


def as_words(integers: Integers, bits: int) -> Words:
    """Return whole numbers in [-2^(m-1), 2^(m-1)) modulo 2^m."""
    return np.asarray(integers, dtype=np.int64).view(np.uint64) & _mask(bits)


def as_integers(words: Words, bits: int) -> Integers:
    """Return the numbers in [-2^(m-1), 2^(m-1)) that words stand for modulo 2^m."""
    up = np.uint64(64 - bits)
    return (words << up).view(np.int64) >> np.int64(64 - bits)


def encoded_words(words: Words) -> bytes:
    """Return words as bytes, little-endian, 8 a word."""
    return np.ascontiguousarray(words, dtype="<u8").tobytes()


def decoded_words(part: bytes) -> Words:
    """Return the words of `encoded_words`, of shape (width,); `ValueError` for other lengths."""
    return np.frombuffer(part, dtype="<u8").astype(np.uint64)


def _mask(bits: int) -> np.uint64:
    """Return 2^m - 1."""
    return np.uint64((1 << bits) - 1)
