"""States that accountants of other libraries save: Flower's, diffprivlib's.

In comes a parsed JSON document, out come mechanisms, one a composition entry; `interop.files`
calls, by kind. Every field is checked and an unknown one refused: a field that this version does
not know might change what the others mean.
"""

from collections.abc import Callable
from fractions import Fraction
from math import inf
from typing import Any

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.events import (
    GaussianStep,
    Mechanism,
    PoissonSampled,
    PureStep,
    Repeated,
    SampledWithoutReplacement,
)
from ..mechanisms.sensitivity import Norm, declared, float_up
from .event_trees import Untranslatable
from .fields import Fields, MalformedImport

MOST_ENTRIES = 100_000
"""Entries of a state, at most: bounds the time that a hostile file takes; a run of equal steps is
one."""

_FLOWER = {
    "add-or-remove-one": Adjacency.ADD_REMOVE_ONE,
    "replace-one": Adjacency.REPLACE_ONE,
}
"""Flower's words for a neighbouring relation; a "record" of these is a client with all its data."""


def mechanisms_of_flower(
    document: Any, where: str, *, adjacency: Adjacency
) -> tuple[Mechanism, ...]:
    """Return the mechanisms of the state of Flower's `RdpAccountant`; a record is a client.

    The noise multiplier is noise over the clip norm, so that a client replaced moves two of these.

    Raises `MalformedImport` where the state speaks of another relation than `adjacency`.

    Args:
        document: the state as JSON: schema_version 1, config, and compositions of (event, count).
        where: the file's name, for messages.
        adjacency: the relation asked for; the state's own must be the same.

    Returns one `Repeated` for each composition; an entry of count 0 adds nothing.
    """
    names = ("schema_version", "backend", "config", "orders", "compositions")
    fields = Fields.of(document, where, required=names)
    if fields.whole("schema_version") != 1:
        raise fields.wrong("schema_version", "1")
    stated = ("target_delta", "population_size", "neighboring_relation", "sampling_method")
    config = Fields.of(
        document["config"], f"{where}: config", required=stated, optional=("max_epsilon",)
    )
    relation = config.word("neighboring_relation", _FLOWER)
    if relation is not adjacency:
        raise config.wrong("neighboring_relation", f"{adjacency.value}, which was asked for")
    # a client replaced takes its clipped update away and brings another: twice the clip norm
    moves = 2 if relation is Adjacency.REPLACE_ONE else 1
    size = declared(moves, "Flower: every client's update is clipped", adjacency=relation)
    # the rate n / of is rounded up: a higher sampling rate never costs less
    schemes: dict[str, Callable[[GaussianStep, int, int], Mechanism]] = {
        "poisson": lambda step, n, of: PoissonSampled(step, float_up(Fraction(n, of))),
        "without-replacement": SampledWithoutReplacement,
        "no-amplification": lambda step, n, of: step,
    }
    sampled = config.word("sampling_method", schemes)
    found: list[Mechanism] = []
    for number, entry in enumerate(fields.listed("compositions", MOST_ENTRIES)):
        place = f"{where}: composition {number}"
        composition = Fields.of(entry, place, required=("event", "count"))
        about = ("noise_multiplier", "sample_size", "population_size")
        event = Fields.of(entry["event"], place, required=about)
        drawn, of = event.whole("sample_size"), event.whole("population_size")
        if not 0 < drawn <= of or of != config.whole("population_size"):
            raise event.wrong("sample_size", "in [1, population_size], the population's of config")
        step = sampled(GaussianStep(size, event.number("noise_multiplier")), drawn, of)
        if count := composition.whole("count"):
            found.append(Repeated(step, count))
    return tuple(found)


def mechanisms_of_diffprivlib(
    document: Any, where: str, *, adjacency: Adjacency
) -> tuple[Mechanism, ...]:
    """Return the mechanisms of a `BudgetAccountant`, as JSON of its arguments.

    Fields: spent_budget, a list of [epsilon, delta]; epsilon, delta and slack, its ceilings, are
    not looked at. Infinite ceilings are left out, as JSON has no infinity.

    Its mechanisms spend under different relations, which the state does not name: sums, means and
    models are of a record replaced (0.6.6: a sensitivity of upper - lower), of which one more may
    tell any amount; histograms are of one more, and a record replaced is two of these. So all are
    read as the latter, under replace-one.

    Raises `Untranslatable` for a spend with a delta, of which no event is known, and under another
    relation.

    Args:
        document: the JSON object of these fields.
        where: the file's name, for messages.
        adjacency: replace-one.

    Returns one `Repeated` for each distinct epsilon, of a `PureStep` of twice that loss: basic
    composition depends on how often each epsilon was spent, and not on the order.
    """
    if adjacency is not Adjacency.REPLACE_ONE:
        raise Untranslatable(
            f"{where} must be read under replace-one: its sums are not of a record more."
        )
    names = ("epsilon", "delta", "slack")
    fields = Fields.of(document, where, required=("spent_budget",), optional=names)
    counts: dict[float, int] = {}
    for number, entry in enumerate(fields.listed("spent_budget", MOST_ENTRIES)):
        place = f"{where}: spend {number}"
        if not isinstance(entry, list) or len(entry) != 2:
            raise MalformedImport(f"{place} must be [epsilon, delta].")
        spend = Fields({"epsilon": entry[0], "delta": entry[1]}, place)
        epsilon, delta = spend.number("epsilon"), spend.number("delta")
        if delta != 0 or not 0 <= epsilon < inf:
            raise Untranslatable(
                f"{place} of ({epsilon!r}, {delta!r}) must be a finite epsilon with delta 0; "
                "`dpledger claims check` takes (epsilon, delta) steps in a claim."
            )
        counts[epsilon] = counts.get(epsilon, 0) + 1
    reason = "diffprivlib: a spend of a budget, at delta 0, is of a record replaced or of one more"
    found: list[Mechanism] = []
    for epsilon, times in counts.items():
        loss = declared(2 * Fraction(epsilon), reason, adjacency=adjacency, norm=Norm.L1)
        found.append(Repeated(PureStep(loss, 1.0), times))
    return tuple(found)
