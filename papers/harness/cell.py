"""The vocabulary of experiments: a cell is one point of a figure, run several times.

A task says what is trained on what, in plain frozen data; its hash and a seed name its result, so
that a finished run is never run again and the same seed gives the same numbers in any order.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from math import inf
from typing import Any, Protocol

from ...mechanisms.sampling import Sampler


class CellKind(Enum):
    """Whose noise a cell is trained with."""

    PUBLISHED = "published"
    """The paper's algorithm and noise; its nominal epsilon is what the paper promises."""
    REPAIRED = "repaired"
    """The repaired algorithm, the least noise that certifies the nominal epsilon."""
    BASELINE = "baseline"
    """An algorithm that the paper compares with, at an enclosed epsilon like the repaired one."""
    NON_PRIVATE = "non-private"
    """The same algorithm without noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPrivacy:
    """What a cell promises, and what is true of it.

    Args:
        delta: of every epsilon here.
        nominal: the epsilon that the paper promises, or the target of a calibration; None without
            one.
        certified: upper bound on the epsilon of everything that left; None where there is no
            finite one.
        noisy_part: the same for the noisy releases alone, as if nothing else had left.
        noise_std: of the first noisy release, in its units; 0 without noise.
        noise_multiplier: the same in units of that release's sensitivity; None where it has not one
            but two of them (a sampled and a constant shift), or no noise.
        method: how the enclosed epsilon was found.
        unprotected: why there is no finite epsilon, in sentences.
    """

    delta: float
    nominal: float | None
    certified: float | None
    noisy_part: float | None
    noise_std: float
    noise_multiplier: float | None
    method: str
    unprotected: tuple[str, ...] = ()

    @property
    def certified_epsilon(self) -> float:
        """`certified`, or infinity."""
        return inf if self.certified is None else self.certified

    @property
    def noisy_epsilon(self) -> float:
        """`noisy_part`, or infinity."""
        return inf if self.noisy_part is None else self.noisy_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What was measured in one run: metrics by name, one value for each of `rounds`.

    `seconds` is the solver's own time on one processor; it is no function of the seed, all else is.
    """

    rounds: tuple[int, ...]
    values: Mapping[str, tuple[float, ...]]
    seconds: float


class Task(Protocol):
    """What a cell runs: frozen data, so that it has a hash and goes to another process."""

    def privacy(self) -> CellPrivacy:
        """Return the promise and the truth; touches no record."""
        ...

    def run(self, *, split_seed: int, sampler: Sampler) -> Trace:
        """Train once on the records that `split_seed` chooses, and measure."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One point of a figure.

    Args:
        line: what the legend calls the line that the point is on.
        kind: whose noise.
        task: what is run.
        x: where the point stands, for figures over something else than rounds or epsilon.
        pair: published and repaired cells of one name, one promise and one x are compared.
    """

    line: str
    kind: CellKind
    task: Task
    x: float | None = None
    pair: str = ""
    key: str = field(init=False)

    def __post_init__(self) -> None:
        document = json.dumps(canonical(self.task), sort_keys=True)
        object.__setattr__(self, "key", hashlib.sha256(document.encode()).hexdigest())


def canonical(value: object) -> Any:
    """Return frozen data as plain JSON that names every class and shows every number in full."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        inside = {f.name: canonical(getattr(value, f.name)) for f in fields(value) if f.init}
        return {"is": type(value).__name__, **inside}
    if isinstance(value, tuple):
        return [canonical(each) for each in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return repr(value)
    raise TypeError(f"Expected plain frozen data instead got {type(value).__name__}.")
