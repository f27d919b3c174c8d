"""Foreign code, recorded and replayed: are another library's releases what they are said to be?

A program is run with a `Recorder` around its mechanism. Of every release the recorder notes what
the mechanism was given, which sensitivity and how much noise were stated, and what was sent. The
program is then run on a neighbour, where the mechanism gives back the recorded messages: whatever
still differs was computed from the data. Five questions are put to the records:

    structure    do number, shape, stated sensitivity and noise of the releases stay, and does the
                 program go on, when a record changes?
    sensitivity  does what the mechanism is given move by no more than stated? A search for
                 neighbours says no, or nothing.
    output       does the result stay the same where the messages do?
    noise        is what was sent, minus what was given, noise of the stated law? (`noise_tests`)
    cost         do the stated releases compose to no more than is claimed of the whole?

All but the noise's are exact: two data sets or a list of releases. What is not found is not proved.

>>> def mean_of_two(rows, labels, record):
...     generator = np.random.default_rng(record.seed)
...     for _ in range(2):
...         record.normal(rows.mean(axis=0), lambda mean: generator.normal(mean, 4.0),
...                       sensitivity=0.4, noise_std=4.0)
>>> domain = ReplacedRecord(count=5, features=3, adjacency=Adjacency.REPLACE_ONE)
>>> def refuted(mu):
...     claimed = ClaimedPrivacy.of(epsilon=None, mu=mu, delta=1e-5)
...     found = audit_foreign(mean_of_two, domain, claimed=claimed, level=0.001, seed=1)
...     return [test.name for test in found if test.refuted]
>>> refuted(0.1), refuted(0.15)  # each of both costs 0.1
(['cost'], [])
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import pi, sqrt
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from ..accounting.guarantees import guarantee
from ..accounting.numbers.enclosure import shown_down, shown_in_full, shown_up
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive_int,
)
from ..mechanisms.events import Audience, Context, Event, GaussianStep, LaplaceStep
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sensitivity import Norm, declared
from .claim_tests import ClaimTest
from .falsifier import Neighbours, ReplacedRecord, SearchTable, SensitivityLemma, falsify
from .noise_tests import Residual, format_rounding, noise_tests
from .scores import ClaimedPrivacy

_RUNS = 8
"""Recorded runs whose noise is tested together: a seed that starts again shows between two."""
_SAMPLES, _RESTARTS = 200, 1
"""Random pairs of neighbours, and how many of the worst are improved: each costs two runs."""
_ENDLESS = 1e300
"""Stands for an infinite ratio, with which an optimiser could not reckon."""
_ROOM = 1e-9
"""Relative excess of a cost over the claim that counts as rounding of the program's own noise."""
_MOST_RELEASES = 10_000
"""Of one run: a program that never ends on some data is stopped here, and that is a finding."""


class NoiseLaw(Enum):
    """The law of a mechanism's noise, and the norm that its sensitivity is stated in."""

    NORMAL = "normal"
    LAPLACE = "Laplace"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a mechanism was given and told.

    Args:
        value: before noise; a number or an array.
        sensitivity: as stated: in the l2 norm for normal noise, l1 for Laplace noise; >= 0.
        scale: as stated: standard deviation of normal noise, or b of density ∝ exp(-|x|/b).
        law: of the noise.
    """

    value: Any
    sensitivity: float
    scale: float
    law: NoiseLaw = NoiseLaw.NORMAL

    def __post_init__(self) -> None:
        require_nonnegative("sensitivity", self.sensitivity)
        require_nonnegative("scale", self.scale)

    @property
    def numbers(self) -> FloatArray:
        """The value as a vector."""
        return np.atleast_1d(np.asarray(self.value, dtype=np.float64)).ravel().copy()

    def step(self, adjacency: Adjacency) -> GaussianStep | LaplaceStep:
        """Return the release as an event's mechanism, with its sensitivity as stated."""
        norm = Norm.L2 if self.law is NoiseLaw.NORMAL else Norm.L1
        moved = declared(self.sensitivity, "as the program states", adjacency=adjacency, norm=norm)
        kind = GaussianStep if self.law is NoiseLaw.NORMAL else LaplaceStep
        return kind(moved, self.scale)

    def moved(self, other: "Asked") -> float:
        """Return how far another value of one shape is, in units of the stated sensitivity."""
        order = 2 if self.law is NoiseLaw.NORMAL else 1
        distance = float(np.linalg.norm(self.numbers - other.numbers, ord=order))
        if not np.isfinite(distance):
            return _ENDLESS
        if self.sensitivity == 0.0:
            return _ENDLESS if distance > 0.0 else 0.0
        return distance / self.sensitivity

    def same_form(self, other: "Asked") -> bool:
        """Return whether all but the value is the same, to the last bit."""
        ours, theirs = (
            (each.numbers.shape, each.sensitivity, each.scale, each.law) for each in (self, other)
        )
        return ours == theirs


class _Diverged(Exception):
    """A replay asked for a release that was not recorded."""


@dataclass(slots=True, eq=False)
class Recorder:
    """Stands around a program's mechanism: records its releases, or gives recorded ones back.

    Args:
        seed: for the program's own generator, another one in every run.
        messages: to give back, in order; None where the mechanism itself sends.
    """

    seed: int
    messages: Sequence[Any] | None = None
    asked: list[Asked] = field(default_factory=list[Asked])
    sent: list[Any] = field(default_factory=list[Any])

    def wrap(self, mechanism: Callable[..., Any], read: Callable[..., Asked]) -> Callable[..., Any]:
        """Return a library's mechanism with this recorder around it.

        Args:
            mechanism: of the library; it returns what is sent.
            read: from the same arguments to what the mechanism was given and told.
        """

        def wrapped(*args: Any, **keywords: Any) -> Any:
            return self._release(read(*args, **keywords), lambda: mechanism(*args, **keywords))

        return wrapped

    def normal(
        self, value: Any, send: Callable[[Any], Any], *, sensitivity: float, noise_std: float
    ) -> Any:
        """Return what `send` adds normal noise to; see `Asked` for what is stated of it."""
        return self._release(Asked(value, sensitivity, noise_std), lambda: send(value))

    def laplace(
        self, value: Any, send: Callable[[Any], Any], *, sensitivity: float, scale: float
    ) -> Any:
        """Return what `send` adds Laplace noise to; see `Asked` for what is stated of it."""
        asked = Asked(value, sensitivity, scale, NoiseLaw.LAPLACE)
        return self._release(asked, lambda: send(value))

    def _release(self, asked: Asked, send: Callable[[], Any]) -> Any:
        """Record one release; the message is a copy, so that nobody changes it afterwards."""
        place = len(self.asked)
        if place >= _MOST_RELEASES:
            raise _Diverged
        self.asked.append(
            Asked(
                asked.numbers.reshape(np.shape(asked.value)),
                asked.sensitivity,
                asked.scale,
                asked.law,
            )
        )
        if self.messages is None:
            message = send()
        elif place < len(self.messages):
            message = self.messages[place]
        else:
            raise _Diverged
        self.sent.append(np.array(message, dtype=np.float64))
        return np.array(message, dtype=np.float64) if np.ndim(message) else float(message)


Program = Callable[[FloatArray, FloatArray, Recorder], object]
"""f(rows of shape (n, d), labels of shape (n,), recorder), the result an array or None.

It is a function of the records, of the messages and of `recorder.seed` alone.
"""


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """A run on a table from a seed, its releases and its result; `ended` says how it failed, ""
    where it did not.
    """

    table: SearchTable
    seed: int
    asked: tuple[Asked, ...]
    sent: tuple[Any, ...]
    result: FloatArray
    ended: str


def _run(
    program: Program, table: SearchTable, seed: int, messages: Sequence[Any] | None = None
) -> _Run:
    """Run a program on copies of a table's records; what it raises is part of the record."""
    recorder = Recorder(seed, messages)
    result, ended = None, ""
    try:
        result = program(table.rows.copy(), table.labels.copy(), recorder)
    except _Diverged:
        ended = f"asks for more than {len(recorder.sent)} releases"
    except (Exception, SystemExit) as error:
        ended = f"raises {type(error).__name__}"
    try:
        numbers = np.zeros(0) if result is None else np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter("program", program, f"one that returns an array: {error}") from error
    return _Run(table, seed, tuple(recorder.asked), tuple(recorder.sent), numbers, ended)


@dataclass(frozen=True, slots=True)
class _Replayed(SensitivityLemma):
    """The lemma that every release moves by no more than stated, under the same messages.

    What a replay shows besides is noted: how its structure or its result differs.
    """

    program: Program = field(kw_only=True)
    seed: int = field(kw_only=True)
    noted: dict[str, str] = field(kw_only=True)

    def change(self, pair: Neighbours) -> float:
        """Return the largest move of a release, in units of its stated sensitivity."""
        first = _run(self.program, pair.dataset, self.seed)
        second = _run(self.program, pair.neighbour, self.seed, first.sent)
        differs = _structure(first, second)
        if differs:
            self.noted.setdefault("structure", f"{differs}: {_described(pair)}")
        elif not np.array_equal(first.result, second.result, equal_nan=True):
            words = "the result differs though all messages are the same"
            self.noted.setdefault("output", f"{words}: {_described(pair)}")
        both = zip(first.asked, second.asked, strict=False)
        return max((one.moved(other) for one, other in both if one.same_form(other)), default=0.0)


def _structure(first: _Run, second: _Run) -> str:
    """Return how a replay's releases differ in form from the recorded ones; "" if they do not."""
    for place, (one, other) in enumerate(zip(first.asked, second.asked, strict=False)):
        if not one.same_form(other):
            return f"release {place + 1} changes its shape, stated sensitivity or noise"
    if first.ended != second.ended:
        return f"a neighbour {second.ended or 'ends well'}, this {first.ended or 'ends well'}"
    if len(first.asked) != len(second.asked):
        return f"{len(first.asked)} releases become {len(second.asked)}"
    return ""


def _described(pair: Neighbours) -> str:
    """Return a pair in words that suffice to build it."""
    first, second = pair.dataset, pair.neighbour
    gone = len(second.rows) < len(first.rows)
    other = "removed" if gone else f"replaced by {second.rows[0].tolist()}, {second.labels[0]:g}"
    words = f"record {first.rows[0].tolist()}, {first.labels[0]:g} {other}"
    if len(first.rows) > 1:
        words += f"; the other {len(first.rows) - 1} are {first.rows[-1].tolist()}, "
        words += f"{first.labels[-1]:g}"
    return words


def audit_foreign(
    program: Program,
    domain: ReplacedRecord,
    *,
    claimed: ClaimedPrivacy,
    level: float,
    seed: int,
    runs: int = _RUNS,
) -> tuple[ClaimTest, ...]:
    """Return what recorded and replayed runs show of a program's releases, a test a question.

    Args:
        program: it is run as it is: nothing here is a sandbox.
        domain: the data sets and the relation that it promises something about; rows longer than
            the program's clipping norm are what finds clipping that was forgotten.
        claimed: of the whole run.
        level: the largest probability to refute noise that is as stated, in (0, 1). The other four
            tests have level 0: what they find are two data sets, or a list of releases.
        seed: of the runs and of the search.
        runs: whose noise is tested together, at least 2.

    Error controlled: family-wise, at `level`. Raises `InvalidParameter` if the program is no
    function of records, messages and seed, or releases nothing.
    """
    recorded, last = _recorded(program, domain, level=level, seed=seed, runs=runs)
    first = recorded[0]
    again = _run(program, first.table, first.seed, first.sent)
    asked = zip(first.asked, again.asked, strict=False)
    differs = "other values to the mechanism" if any(a.moved(b) > 0 for a, b in asked) else ""
    differs = differs or _structure(first, again)
    if not (differs or np.array_equal(first.result, again.result, equal_nan=True)):
        differs = "another result"
    if differs:
        allowed = "a function of records, messages and recorder.seed: the same run gives "
        raise InvalidParameter("program", program, f"{allowed}{differs}")

    noted: dict[str, str] = {}
    lemma = _Replayed(
        lambda table, _: table.rows, domain, 1.0, program=program, seed=last, noted=noted
    )
    worst = falsify(lemma, samples=_SAMPLES, restarts=_RESTARTS, seed=seed)
    moved = f"{worst.change:.6g} times what is stated, in {worst.evaluations} pairs"
    if worst.refuted:
        moved += f": {_described(worst.pair)}"
    nothing = f"no difference in {worst.evaluations} pairs"
    return (
        _exact("structure", "structure" in noted, noted.get("structure", nothing)),
        _exact("sensitivity", worst.refuted, moved),
        _exact("output", "output" in noted, noted.get("output", nothing)),
        _noise(recorded, level),
        _cost(recorded, domain.adjacency, claimed),
    )


def audit_noise(
    program: Program, domain: ReplacedRecord, *, level: float, seed: int, runs: int = _RUNS
) -> ClaimTest:
    """Return the answer of `audit_foreign` to the question of noise alone, from the same runs.

    Args and errors as there: this is the one question that chance can answer wrongly, and the one
    that takes no search.
    """
    recorded, _ = _recorded(program, domain, level=level, seed=seed, runs=runs)
    return _noise(recorded, level)


def _recorded(
    program: Program, domain: ReplacedRecord, *, level: float, seed: int, runs: int
) -> tuple[list[_Run], int]:
    """Return the recorded runs, each on data and from a seed of its own, and a further seed.

    Args as for `audit_foreign`, whose errors for numbers out of range and for a program that
    releases nothing are raised here.
    """
    require_open_unit("level", level)
    require_nonnegative("seed", seed)
    require_positive_int("runs", runs)
    if runs < 2:
        raise InvalidParameter("runs", runs, "at least 2: some noise repeats between runs only")
    points = np.random.default_rng(seed).uniform(-1, 1, (runs, domain.dimension))
    # no small numbers: a stream of a seed that people choose is itself a finding
    states = np.random.SeedSequence(seed).generate_state(runs + 1, np.uint64)
    last, *seeds = (int(state) for state in states)
    recorded = [
        _run(program, domain.pair(point).dataset, own)
        for point, own in zip(points, seeds, strict=True)
    ]
    if not any(run.asked for run in recorded):
        why = recorded[0].ended or "releases nothing through the recorder"
        raise InvalidParameter("program", program, f"one that releases something; it {why}")
    return recorded, last


def _exact(name: str, refuted: bool, detail: str) -> ClaimTest:
    """Return a test that two data sets or a list decide."""
    return ClaimTest(name, 0.0, refuted, detail, "")


def _noise(recorded: Sequence[_Run], level: float) -> ClaimTest:
    """Return whether sent minus given is noise of the stated law, over all runs."""
    left = [
        [
            _residual(asked, sent, f"release {place + 1}")
            for place, (asked, sent) in enumerate(zip(run.asked, run.sent, strict=False))
            if asked.scale > 0.0
        ]
        for run in recorded
    ]
    return noise_tests(left, level=level)


def _residual(asked: Asked, sent: Any, name: str) -> Residual:
    """Return the noise of a release, and what rounding may have moved it by."""
    content = np.asarray(sent, dtype=np.float64)
    # the quantiles of Laplace noise are nowhere steeper than sqrt(pi/2)
    rounding = sqrt(pi / 2) * format_rounding(content) / asked.scale
    return Residual(_normalised(asked, content)[None, :], name, rounding)


def _normalised(asked: Asked, sent: FloatArray) -> FloatArray:
    """Return noise in units of its stated scale, as standard normal numbers if it is as stated.

    Laplace noise goes through its distribution function and the normal quantile, in logarithms: its
    tail of probability exp(-|x|/b)/2 becomes the normal one of the same probability.
    """
    noise = (sent.ravel() - asked.numbers) / asked.scale
    if asked.law is NoiseLaw.NORMAL:
        return noise
    # beyond the range of log_ndtr's inverse nothing changes: it is extreme in any case
    tail = np.maximum(-np.log(2.0) - np.abs(noise), float(log_ndtr(-1e150)))
    return np.asarray(-np.sign(noise) * ndtri_exp(tail))


def _cost(recorded: Sequence[_Run], adjacency: Adjacency, claimed: ClaimedPrivacy) -> ClaimTest:
    """Return whether the stated releases of some run compose to more than is claimed."""
    # most runs release alike
    listed = {
        tuple(
            Event(asked.step(adjacency), Context((), place + 1, "release", Audience.PUBLIC))
            for place, asked in enumerate(run.asked)
        )
        for run in recorded
        if run.asked
    }
    costs = [(guarantee(events, delta=claimed.delta).epsilon, len(events)) for events in listed]
    found, releases = max(costs, key=lambda cost: (cost[0].lower_float, cost[0].upper_float))
    refuted = found.lower_float > claimed.epsilon * (1 + _ROOM)
    cost = (
        shown_down(found.lower_float, digits=6)
        if refuted
        else shown_up(found.upper_float, digits=6)
    )
    words = f"{releases} releases compose to epsilon {cost} at delta {shown_in_full(claimed.delta)}"
    return _exact("cost", refuted, f"{words}; claimed {shown_up(claimed.epsilon, digits=6)}")
