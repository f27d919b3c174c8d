"""What a claim says over its paper's range of a parameter, beside what is certified there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...accounting.numbers.enclosure import Enclosure

__all__ = ["Sweep", "SweepPoint"]

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """Claimed and certified epsilon at one value of the parameter, both as upper ends."""

    value: float
    claimed: float
    certified: float

    @property
    def broken(self) -> bool:
        """Whether more than claimed is certified here."""
        return self.certified > self.claimed


@dataclass(frozen=True, slots=True)
class Sweep(Generic[S]):
    """A claim's epsilon over a range.

    Args:
        claim: its identifier.
        parameter: what varies, in words.
        values: of it, growing.
        at: the setting for a value.
        claimed: epsilon as the paper has it.
        certified: the true one for the same noise.
        caption: a sentence or two.
        logarithmic: whether the values are shown so.
    """

    claim: str
    parameter: str
    values: Sequence[float]
    at: Callable[[S, float], S]
    claimed: Callable[[S], Enclosure]
    certified: Callable[[S], Enclosure]
    caption: str
    logarithmic: bool = False

    def points(self, setting: S) -> list[SweepPoint]:
        """Return both numbers at every value."""
        found: list[SweepPoint] = []
        for value in self.values:
            here = self.at(setting, value)
            claimed, certified = self.claimed(here), self.certified(here)
            # a break is shown only where the lower end of what is true is above
            shown = certified.lower if certified.lower > claimed.upper else certified.upper
            found.append(SweepPoint(value, claimed.lower_float, float(shown)))
        return found
