"""What a stranger's events cost, within a time limit.

Sums of Gaussian steps have a closed form. Anything else may be made to take hours by numbers that
nobody would use, so it is priced in a process of its own, which is stopped when its time is up.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from math import inf

from ...accounting.accountants import RdpAccountant
from ...accounting.composition import UnpricedMechanism, composed
from ...accounting.guarantees import Guarantee, guarantee
from ...accounting.numbers.enclosure import Enclosure
from ...mechanisms.encoding import event_from_json, event_to_json
from ...mechanisms.events import (
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    UnprotectedRelease,
)

__all__ = ["has_closed_form", "priced"]

_UNKNOWN = Enclosure.hull(Enclosure.of(0), Enclosure.of(inf))
_SECONDS = 15.0
_MOST_GRID_ROUNDS = 10


def priced(
    lists: Sequence[tuple[Event, ...]], *, unit: str, delta: float, seconds: float = _SECONDS
) -> list[Enclosure]:
    """Return what each list of events costs; [0, infinity] where no rule or no time was left.

    Args:
        lists: events whose parameters were fixed in advance.
        unit: epsilon (at `delta`), rho or mu.
        delta: in (0, 1).
        seconds: for all lists together that have no closed form.
    """
    found: dict[int, Enclosure] = {}
    slow: dict[int, tuple[Event, ...]] = {}
    for number, events in enumerate(lists):
        if has_closed_form(events):
            found[number] = _price(events, unit, delta)
        else:
            slow[number] = events
    if slow:
        found |= _apart(slow, unit, delta, seconds)
    return [found.get(number, _UNKNOWN) for number in range(len(lists))]


def has_closed_form(events: Sequence[Event]) -> bool:
    """Return whether all events are Gaussian steps, or without a finite price."""
    closed = (GaussianStep, UnprotectedRelease)
    return all(isinstance(_innermost(event.mechanism)[0], closed) for event in events)


def _innermost(mechanism: Mechanism) -> tuple[Mechanism, int]:
    times = 1
    while isinstance(mechanism, Repeated):
        times *= mechanism.times
        mechanism = mechanism.event
    return mechanism, times


def _price(events: Sequence[Event], unit: str, delta: float) -> Enclosure:
    if not events:
        return Enclosure.of(0)
    try:
        if unit == "epsilon" and _takes_minutes(events):
            bound = RdpAccountant.over(composed(events)).epsilon(delta)
            return Enclosure.hull(Enclosure.of(0), bound)
        return _in_unit(guarantee(events, delta=delta), unit)
    except UnpricedMechanism:
        return _UNKNOWN


def _in_unit(found: Guarantee, unit: str) -> Enclosure:
    return {"epsilon": found.epsilon, "rho": found.rho, "mu": found.mu}[unit]


def _takes_minutes(events: Sequence[Event]) -> bool:
    """Whether exact composition needs a grid: of samples whose moments have no closed form."""
    rounds = 0
    for event in events:
        mechanism, times = _innermost(event.mechanism)
        gridded = isinstance(mechanism, SampledWithoutReplacement) or (
            isinstance(mechanism, PoissonSampled) and isinstance(mechanism.event, LaplaceStep)
        )
        rounds += times if gridded else 0
    return rounds > _MOST_GRID_ROUNDS


def _apart(
    lists: dict[int, tuple[Event, ...]], unit: str, delta: float, seconds: float
) -> dict[int, Enclosure]:
    task = {
        "unit": unit,
        "delta": delta,
        "lists": [[n, [event_to_json(e) for e in events]] for n, events in lists.items()],
    }
    command = [sys.executable, "-m", __name__]
    try:
        ran = subprocess.run(
            command, input=json.dumps(task).encode(), capture_output=True, timeout=seconds
        )
        answers = ran.stdout
    except subprocess.TimeoutExpired as late:
        answers = late.stdout or b""
    return dict(_read(answers))


def _read(answers: bytes) -> Iterator[tuple[int, Enclosure]]:
    # a last line that was cut short is no answer
    for line in answers.decode().splitlines(keepends=True):
        if line.endswith("\n"):
            number, low, high = line.split()
            ends = (Enclosure.of(float.fromhex(end)) for end in (low, high))
            yield int(number), Enclosure.hull(*ends)


def _main() -> None:
    task = json.load(sys.stdin)
    for number, documents in task["lists"]:
        events = [event_from_json(document) for document in documents]
        cost = _price(events, task["unit"], task["delta"])
        print(number, cost.lower_float.hex(), cost.upper_float.hex(), flush=True)


if __name__ == "__main__":
    _main()
