"""What a claim says over its paper's range of a parameter, beside what is true there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ...accounting.numbers.enclosure import Enclosure

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """Claimed and true epsilon at one value of the parameter.

    `true` is an upper end, or a lower one where the sweep shows what some data cost at least.
    """

    value: float
    claimed: float
    true: float

    @property
    def broken(self) -> bool:
        """Whether more than claimed is true here."""
        return self.true > self.claimed


@dataclass(frozen=True, slots=True)
class Sweep(Generic[S]):
    """A claim's epsilon over a range.

    Args:
        claim: its identifier.
        parameter: what varies, in words.
        values: of it, growing.
        at: the setting for a value.
        claimed: epsilon as the paper has it.
        true: the true one for the same noise, or of some data at least.
        caption: a sentence or two.
        logarithmic: whether the values are shown so.
        at_least: what data `true` is of, in words, where it is a lower bound on what any may cost;
            empty where it is the epsilon of the worst data. Below such a bound nothing is proved.
        edges: what is known of where the claim breaks besides these points, in a sentence.
    """

    claim: str
    parameter: str
    values: Sequence[float]
    at: Callable[[S, float], S]
    claimed: Callable[[S], Enclosure]
    true: Callable[[S], Enclosure]
    caption: str
    logarithmic: bool = False
    at_least: str = ""
    edges: Callable[[S], str] = lambda _: ""

    def points(self, setting: S) -> list[SweepPoint]:
        """Return both numbers at every value."""
        found: list[SweepPoint] = []
        for value in self.values:
            here = self.at(setting, value)
            claimed, true = self.claimed(here), self.true(here)
            # a break is shown only where the lower end of what is true is above
            below = bool(self.at_least) or true.lower > claimed.upper
            shown = true.lower_float if below else true.upper_float
            found.append(SweepPoint(value, claimed.lower_float, shown))
        return found
