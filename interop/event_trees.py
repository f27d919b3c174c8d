"""Trees of named events: what dp_accounting's `DpEvent`s, their documents and ours have in common.

An event is a class name and its fields, some of them events again. It is read from a `DpEvent`, or
from the nested mappings or named tuples that `DpEvent.to_named_tuple` makes, such as JSON holds;
neither needs dp_accounting, and whatever module a document names, nothing is imported for it
(`DpEvent.from_named_tuple`, which imports it, is never called).

>>> tree_of_document({"module_name": "dp_accounting.dp_event", "class_name": "GaussianDpEvent",
...                   "noise_multiplier": 1.5})
EventTree(name='GaussianDpEvent', fields={'noise_multiplier': 1.5})
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..mechanisms.errors import DpledgerError, shown_value
from ..mechanisms.extras import import_extra

MODULE = "dp_accounting.dp_event"
"""The one module whose classes are known; a document that names another is refused, not imported.
"""
_MOST_DEPTH = 64
"""Levels of nesting, at most: the reader is recursive, and a document may be hostile."""


class Untranslatable(DpledgerError, ValueError):
    """One library has no word for what the other means. This says nothing about privacy."""


@dataclass(frozen=True, slots=True)
class EventTree:
    """An event by the name of its class in dp_accounting; an event among its fields is one too.

    Args:
        name: a class of dp_accounting, such as "GaussianDpEvent".
        fields: by the class's own names: numbers, lists of numbers, trees, or lists of trees.
    """

    name: str
    fields: Mapping[str, Any]


_OPTIONAL: dict[str, Mapping[str, object]] = {
    "ZCDpEvent": {"xi": 0.0},
    "DiscreteGaussianDpEvent": {"sensitivity": 1.0, "dimension": None},
}
"""Fields that a document may lack, with the defaults that dp_accounting's classes give them."""

_FIELDS: dict[str, tuple[str, ...]] = {
    "NoOpDpEvent": (),
    "NonPrivateDpEvent": (),
    "UnsupportedDpEvent": (),
    "GaussianDpEvent": ("noise_multiplier",),
    "LaplaceDpEvent": ("noise_multiplier",),
    "DiscreteLaplaceDpEvent": ("noise_parameter", "sensitivity"),
    "DiscreteGaussianDpEvent": ("sigma", "sensitivity", "dimension"),
    "RandomizedResponseDpEvent": ("noise_parameter", "num_buckets"),
    "EpsilonDeltaDpEvent": ("epsilon", "delta"),
    "ZCDpEvent": ("rho", "xi"),
    "ExponentialMechanismDpEvent": ("epsilon",),
    "PermuteAndFlipDpEvent": ("epsilon",),
    "MixtureOfGaussiansDpEvent": ("standard_deviation", "sensitivities", "sampling_probs"),
    "PoissonSampledDpEvent": ("sampling_probability", "event"),
    "SampledWithReplacementDpEvent": ("source_dataset_size", "sample_size", "event"),
    "SampledWithoutReplacementDpEvent": ("source_dataset_size", "sample_size", "event"),
    "TruncatedSubsampledGaussianDpEvent": (
        "dataset_size",
        "sampling_probability",
        "truncated_batch_size",
        "noise_multiplier",
    ),
    "SingleEpochTreeAggregationDpEvent": ("noise_multiplier", "step_counts"),
    "RepeatAndSelectDpEvent": ("event", "mean", "shape"),
    "SelfComposedDpEvent": ("event", "count"),
    "ComposedDpEvent": ("events",),
}
"""Every class known, and its fields; one more or one less is refused, as it might change the
meaning."""


def tree_of_document(document: Any) -> EventTree:
    """Return the event that a document describes.

    Args:
        document: a mapping or named tuple with `module_name`, `class_name` and the event's fields.

    Raises:
        Untranslatable: another module or class, other fields, or values that are not numbers,
            documents or lists of these.
    """
    return _of_document(document, _MOST_DEPTH)


def _of_document(document: Any, depth: int) -> EventTree:
    """Return the tree of a document that may be nested `depth` levels deep yet."""
    if depth == 0:
        raise Untranslatable(f"events must be nested at most {_MOST_DEPTH} deep.")
    fields = dict(document._asdict() if hasattr(document, "_asdict") else _mapping(document))
    module, name = fields.pop("module_name", None), fields.pop("class_name", None)
    if module != MODULE or not isinstance(name, str) or name not in _FIELDS:
        raise Untranslatable(f"class {module!r:.80}.{name!r:.80} must be one of {MODULE}.")
    fields = {**_OPTIONAL.get(name, {}), **fields}
    if set(fields) != set(_FIELDS[name]):
        raise Untranslatable(
            f"fields {sorted(map(str, fields))!r:.200} of {name} must be {list(_FIELDS[name])}."
        )
    return EventTree(name, {key: _value(key, value, depth) for key, value in fields.items()})


def _mapping(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise Untranslatable(f"{shown_value(document)} must be an event: an object with its class.")
    return document


def _value(field: str, value: Any, depth: int) -> Any:
    """Return a field's value, by its name: an event, a list of events, numbers, or one number."""
    if field == "event":
        return _of_document(value, depth - 1)
    if field == "events":
        return [_of_document(part, depth - 1) for part in _sequence(field, value)]
    if field in ("sensitivities", "sampling_probs") or isinstance(value, list):
        return [_number(field, part) for part in _sequence(field, value)]
    return value if field == "dimension" and value is None else _number(field, value)


def _sequence(field: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise Untranslatable(f"{field}={shown_value(value)} must be a list.")
    return value


def _number(field: str, value: Any) -> int | float:
    """Return a finite number as it is; True, which Python counts as 1, is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Untranslatable(f"{field}={shown_value(value)} must be a number.")
    if isinstance(value, float) and not isfinite(value):
        raise Untranslatable(f"{field}={value} must be a finite number.")
    return value


def tree_of_event(event: Any) -> EventTree:
    """Return a `DpEvent` as a tree.

    Raises `Untranslatable` for an object that is of no class of dp_accounting, or of one that is
    not known here; its subclasses, which may mean anything, are such.
    """
    return _of_event(event, _MOST_DEPTH)


def _of_event(event: Any, depth: int) -> EventTree:
    """Return the tree of a live event; its class is compared by module and name."""
    kind = type(event)
    if depth == 0:
        raise Untranslatable(f"events must be nested at most {_MOST_DEPTH} deep.")
    if kind.__module__ != MODULE or kind.__name__ not in _FIELDS:
        raise Untranslatable(f"class {kind.__module__}.{kind.__name__} must be one of {MODULE}.")
    values: dict[str, Any] = {}
    for field in _FIELDS[kind.__name__]:
        value = getattr(event, field)
        if field == "event":
            value = _of_event(value, depth - 1)
        elif field == "events":
            value = [_of_event(part, depth - 1) for part in value]
        values[field] = value
    return EventTree(kind.__name__, values)


def event_of_tree(tree: EventTree) -> Any:
    """Return the `DpEvent` of a tree.

    Raises `MissingExtra` where dp_accounting is not installed, `Untranslatable` where the installed
    version lacks the class.
    """
    peer = import_extra("dp_accounting", "crosscheck")
    kind = getattr(peer.dp_event, tree.name, None)
    if kind is None:
        raise Untranslatable(f"{tree.name} must be known to the installed dp_accounting.")
    return kind(**{key: _map_events(value, event_of_tree) for key, value in tree.fields.items()})


def document_of_tree(tree: EventTree) -> dict[str, Any]:
    """Return the document of a tree, in the form that `tree_of_document` and JSON know."""
    fields = {key: _map_events(value, document_of_tree) for key, value in tree.fields.items()}
    return {"module_name": MODULE, "class_name": tree.name, **fields}


def _map_events(value: Any, of: Any) -> Any:
    """Return a field's value with `of` applied to every tree in it, at any depth of lists."""
    if isinstance(value, EventTree):
        return of(value)
    if isinstance(value, list):
        return [_map_events(part, of) for part in value]
    return value
