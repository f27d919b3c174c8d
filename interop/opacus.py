"""Histories of other accountants as our mechanisms.

An Opacus accountant keeps what it was told as (noise_multiplier, sample_rate, num_steps), one entry
for each run of equal steps: Poisson-sampled sums of gradients clipped to norm 1 (in units of
`max_grad_norm`), the noise's standard deviation being the multiplier. Events of dp-accounting and
of jax_privacy, which uses the same, are read by `dpledger.interop.dp_events`.

>>> history = [(1.0, 0.01, 1000), (1.5, 0.01, 500)]
>>> [m.times for m in mechanisms_of_opacus(history, adjacency=Adjacency.ADD_REMOVE_ONE)]
[1000, 500]
"""

from collections.abc import Sequence
from math import inf, nextafter
from numbers import Integral, Real

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import InvalidParameter, shown_value
from ..mechanisms.events import GaussianStep, PoissonSampled, Repeated
from ..mechanisms.sensitivity import declared
from .fields import MalformedImport

_REASON = "Opacus: every gradient is clipped to max_grad_norm, the unit of this sensitivity"
_RELATIONS = (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE)


def mechanisms_of_opacus(
    history: Sequence[Sequence[object]], *, adjacency: Adjacency
) -> tuple[Repeated, ...]:
    """Return the mechanisms of an accountant's `history`, in order.

    Args:
        history: of (noise_multiplier, sample_rate, num_steps).
        adjacency: add/remove-one, which Opacus speaks of, or zero-out-one.

    Raises:
        MalformedImport: an entry is not three numbers.
        InvalidParameter: another relation, or a number outside its range.
    """
    if adjacency not in _RELATIONS:
        raise InvalidParameter("adjacency", adjacency, "add-remove-one or zero-out-one")
    size = declared(1, _REASON, adjacency=adjacency)
    found: list[Repeated] = []
    for number, entry in enumerate(history):
        noise_multiplier, sample_rate, num_steps = _three(number, entry)
        step = PoissonSampled(GaussianStep(size, noise_multiplier), sample_rate)
        found.append(Repeated(step, num_steps))
    return tuple(found)


def _three(number: int, entry: object) -> tuple[float, float, int]:
    if not isinstance(entry, Sequence) or isinstance(entry, str) or len(entry) != 3:
        raise MalformedImport(f"entry {number}, {shown_value(entry)}, must be three numbers.")
    noise_multiplier, sample_rate, num_steps = entry
    for value in entry:
        if isinstance(value, bool) or not isinstance(value, Real):
            raise MalformedImport(f"entry {number} with {shown_value(value)} must be of numbers.")
    if not isinstance(num_steps, Integral):
        raise MalformedImport(
            f"num_steps={shown_value(num_steps)} of entry {number} must be a whole number."
        )
    try:
        noise, rate = float(noise_multiplier), float(sample_rate)
    except OverflowError as error:
        raise MalformedImport(f"entry {number} must be of binary64 numbers.") from error
    # towards more epsilon, where a number has more digits than a binary64 holds
    noise = nextafter(noise, -inf) if noise > noise_multiplier else noise
    rate = nextafter(rate, inf) if rate < sample_rate else rate
    return noise, rate, int(num_steps)
