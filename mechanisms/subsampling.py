"""Hidden samples: which records a step looks at, when that is itself random.

Every record holds a uniform number, and a scheme says who is drawn. A draw serves one release:
looking twice at the same sample is no fresh sample, and curators refuse it. Under replay the
adversary knows the order of the other records' numbers and not the differing record's own: the draw
then has two alternatives, that record out and in, with their probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from .adjacency import Adjacency
from .errors import (
    InvalidParameter,
    UnprotectedReleaseError,
    require_open_unit,
    require_positive_int,
)
from .events import GaussianMixtureStep, GaussianStep, PoissonSampled, SampledWithoutReplacement
from .refusals import Closed, refuse_copies
from .sensitivity import float_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from .protocols import FloatArray
    from .records import IntArray
    from .sensitivity import Sensitivity

__all__ = ["Draw", "FixedBatch", "Poisson", "SampledPart", "Scheme"]

_USE = Lock()  # threads that release one draw at once

SampledGaussian = PoissonSampled | SampledWithoutReplacement


@dataclass(frozen=True, slots=True)
class Poisson:
    """Every record is drawn with probability `sampling_rate`, independently.

    For add-remove-one and zero-out-one: under replace-one no rule here covers it.
    """

    sampling_rate: float

    def __post_init__(self) -> None:
        require_open_unit("sampling_rate", self.sampling_rate)

    def require_fits(self, adjacency: Adjacency, count: int) -> None:
        """Raise `InvalidParameter` under replace-one."""
        if adjacency not in (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE):
            raise InvalidParameter("adjacency", adjacency, "add-remove-one or zero-out-one")

    def rate(self, count: int) -> Fraction:
        """Return the sampling rate."""
        return Fraction(self.sampling_rate)

    def most(self, largest: int) -> int:
        """Return all of them."""
        return largest

    def event(self, step: GaussianStep, count: int) -> PoissonSampled:
        """Return the Poisson-sampled step."""
        return PoissonSampled(step, self.sampling_rate)


@dataclass(frozen=True, slots=True)
class FixedBatch:
    """A uniform subset of exactly `batch` records of each party, without replacement.

    For replace-one.
    """

    batch: int

    def __post_init__(self) -> None:
        require_positive_int("batch", self.batch)

    def require_fits(self, adjacency: Adjacency, count: int) -> None:
        """Raise `InvalidParameter` under other relations, or when everybody would be drawn."""
        if adjacency is not Adjacency.REPLACE_ONE:
            raise InvalidParameter("adjacency", adjacency, "replace-one")
        if self.batch >= count:
            raise InvalidParameter("batch", self.batch, f"in [1, {count - 1}]")

    def rate(self, count: int) -> Fraction:
        """Return batch / count."""
        return Fraction(self.batch, count)

    def most(self, largest: int) -> int:
        """Return the size of the batch."""
        return self.batch

    def event(self, step: GaussianStep, count: int) -> SampledWithoutReplacement:
        """Return the step on a batch of the smallest party, whose records are drawn most often."""
        return SampledWithoutReplacement(step, self.batch, count)


Scheme = Poisson | FixedBatch
"""The schemes that amplification rules cover. A scheme of one's own is none of them: who decides
which records are drawn, and how often each, decides what a release reveals."""


def require_scheme(scheme: Scheme, adjacency: Adjacency, count: int) -> None:
    """Raise `InvalidParameter` unless a rule covers exactly this scheme for parties of `count`."""
    if type(scheme) not in (Poisson, FixedBatch):
        raise InvalidParameter("scheme", type(scheme).__name__, "a Poisson or a FixedBatch itself")
    scheme.require_fits(adjacency, count)


@refuse_copies
class Draw:
    """One sample, for one release by the curator that drew it; compared by identity.

    Who was drawn is nobody's to read or to write: a draw is made by `curator.sample`.
    """

    __slots__ = ("_curator", "_inside", "_probabilities", "_released", "scheme")

    _curator: object
    scheme: Scheme
    _inside: FloatArray | None
    _probabilities: FloatArray | None
    _released: bool

    def __init__(self, *_: object, **__: object) -> None:
        raise UnprotectedReleaseError("samples are drawn by a curator: curator.sample(...).")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Expected no change of {name}: a draw is made once, by a curator.")

    def use(self, curator: object) -> None:
        """Note that `curator` releases what was computed on this draw, or refuse a second time."""
        if self._curator is not curator:
            raise InvalidParameter("sample", "drawn by another curator", "drawn by this curator")
        with _USE:
            before = self._released
            object.__setattr__(self, "_released", True)
        if before:
            raise InvalidParameter("sample", "released before", "fresh: draw one for each release")


def drawn_by(
    curator: object,
    scheme: Scheme,
    inside: FloatArray | None = None,
    probabilities: FloatArray | None = None,
) -> Draw:
    """Return a curator's draw by a scheme.

    Args:
        curator: who drew it.
        scheme: how.
        inside: array of shape (..., n), 1 for drawn records; None under planning.
        probabilities: of the alternatives, of shape (k,); then `inside` has shape (k, ..., n).
    """
    draw = object.__new__(Draw)
    if inside is not None:
        inside = inside.copy()
        inside.setflags(write=False)
    fields = (("_curator", curator), ("scheme", scheme), ("_released", False))
    for name, content in (*fields, ("_inside", inside), ("_probabilities", probabilities)):
        object.__setattr__(draw, name, content)
    return draw


def drawn_records(scheme: Scheme, uniforms: FloatArray, party_of: IntArray) -> FloatArray:
    """Return 1 for drawn records and 0 for others, from numbers (..., n) and parties (n,).

    Of a Poisson sample those whose number is at most the rate; of a batch those with the smallest
    numbers of each party.
    """
    if isinstance(scheme, Poisson):
        return (uniforms <= scheme.sampling_rate).astype(np.float64)
    drawn = np.zeros_like(uniforms)
    for party in np.unique(party_of):
        own = np.flatnonzero(party_of == party)
        first = np.argpartition(uniforms[..., own], scheme.batch - 1, axis=-1)[..., : scheme.batch]
        np.put_along_axis(drawn, own[first], 1.0, axis=-1)
    return drawn


def are_tied(uniforms: FloatArray, drawn: FloatArray, party_of: IntArray) -> bool:
    """Return whether the order of records, and not chance, decided who is in a batch.

    Of numbers on a grid of 2^-53 the largest that is in may equal one that is out; batches drawn
    again until none does are uniform.

    Args:
        uniforms: numbers (..., n) that a batch was drawn by.
        drawn: 1 for who is in, of the same shape.
        party_of: of each record, of shape (n,).
    """
    for party in np.unique(party_of):
        own = np.flatnonzero(party_of == party)
        numbers, inside = uniforms[..., own], drawn[..., own] > 0
        last = np.where(inside, numbers, 0.0).max(axis=-1)
        if np.any(last == np.where(inside, 2.0, numbers).min(axis=-1)):
            return True
    return False


def alternatives(
    curator: object, scheme: Scheme, uniforms: FloatArray, party_of: IntArray, differing: int
) -> Draw:
    """Return the draw as who knows all but record `differing`'s number sees it: out, or in.

    Given the order of the others' numbers, the differing record is drawn with the scheme's rate;
    numbers above and below everybody's put it out and in.
    """
    out, drawn = uniforms.copy(), uniforms.copy()
    out[..., differing], drawn[..., differing] = 2.0, 0.0
    rate = float(scheme.rate(int((party_of == party_of[differing]).sum())))
    both = np.stack([drawn_records(scheme, each, party_of) for each in (out, drawn)])
    return drawn_by(curator, scheme, both, np.array([1.0 - rate, rate]))


@refuse_copies
@dataclass(frozen=True, slots=True, eq=False)
class SampledPart(Closed):
    """How a value moves between neighbours: by `constant` always, by `sampled` more if drawn.

    Args:
        constant: None where nothing of the value is computed on all records.
        sampled: bound on the part of the differing record, once it is drawn.
        count: public lower bound on the number of records of each party.
        draw: the sample, which knows how it was drawn.
    """

    constant: Sensitivity | None
    sampled: Sensitivity
    count: int
    draw: Draw

    @property
    def scheme(self) -> Scheme:
        """How the sample was drawn."""
        return self.draw.scheme

    def mapped(self, rule: Callable[[Sensitivity], Sensitivity]) -> SampledPart:
        """Return both parts under a linear rule."""
        constant = None if self.constant is None else rule(self.constant)
        return self._with(constant, rule(self.sampled))

    def with_constant(
        self, other: Sensitivity, rule: Callable[[Sensitivity, Sensitivity], Sensitivity]
    ) -> SampledPart:
        """Return what `rule` makes of this and of a value computed on all records."""
        constant = other if self.constant is None else rule(self.constant, other)
        return self._with(constant, self.sampled)

    def joined(
        self, other: SampledPart, rule: Callable[[Sensitivity, Sensitivity], Sensitivity]
    ) -> SampledPart:
        """Return what `rule` makes of two values computed on the same draw."""
        # of one draw, and priced as one: a part made by hand has no say in the rate
        if other.draw is not self.draw or other.count != self.count:
            raise InvalidParameter("operand", "computed on another sample", "on the same sample")
        both = self._with(self.constant, rule(self.sampled, other.sampled))
        return both if other.constant is None else both.with_constant(other.constant, rule)

    def mechanism(self, noise_std: float) -> SampledGaussian | GaussianMixtureStep:
        """Return what a release with that noise is."""
        if self.constant is None:
            return self.scheme.event(GaussianStep(self.sampled, noise_std), self.count)
        rate = float_up(self.scheme.rate(self.count))
        return GaussianMixtureStep(self.constant, self.sampled, rate, noise_std)

    def _with(self, constant: Sensitivity | None, sampled: Sensitivity) -> SampledPart:
        return SampledPart(constant, sampled, self.count, self.draw)
