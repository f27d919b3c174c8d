"""Documents of `DpEvent`s: the nested mappings or named tuples that `to_named_tuple` makes.

A document names classes. Only names in a list that stands here are looked up, in dp-accounting
alone; whatever module a document names, nothing is imported for it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .dp_events import Untranslatable, dp_accounting

_MODULE = "dp_accounting.dp_event"
_MOST_DEPTH = 64

_FIELDS: dict[str, tuple[str, ...]] = {
    "NoOpDpEvent": (),
    "NonPrivateDpEvent": (),
    "GaussianDpEvent": ("noise_multiplier",),
    "LaplaceDpEvent": ("noise_multiplier",),
    "DiscreteLaplaceDpEvent": ("noise_parameter", "sensitivity"),
    "RandomizedResponseDpEvent": ("noise_parameter", "num_buckets"),
    "PoissonSampledDpEvent": ("sampling_probability", "event"),
    "SampledWithoutReplacementDpEvent": ("source_dataset_size", "sample_size", "event"),
    "SelfComposedDpEvent": ("event", "count"),
    "ComposedDpEvent": ("events",),
}


def dp_event_of_document(document: Any) -> Any:
    """Return the `DpEvent` that a document describes; `mechanism_of` makes mechanisms of it.

    Args:
        document: a mapping or named tuple with `module_name`, `class_name` and the event's fields;
            such as JSON holds, or `DpEvent.to_named_tuple` returns.

    Raises:
        Untranslatable: another module or class, other fields, or values that are not numbers,
            documents or lists of documents.
        MissingExtra: dp-accounting is not installed.
    """
    return _event(dp_accounting(), document, _MOST_DEPTH)


def _event(peer: Any, document: Any, depth: int) -> Any:
    if depth == 0:
        raise Untranslatable(f"Expected events nested at most {_MOST_DEPTH} deep.")
    fields = dict(document._asdict() if hasattr(document, "_asdict") else _mapping(document))
    module, name = fields.pop("module_name", None), fields.pop("class_name", None)
    if module != _MODULE or name not in _FIELDS:
        raise Untranslatable(f"Expected a known class of {_MODULE} instead got {module}.{name}.")
    if set(fields) != set(_FIELDS[name]):
        raise Untranslatable(f"Expected {name} to have {_FIELDS[name]} instead got {set(fields)}.")
    values = {field: _value(peer, field, value, depth) for field, value in fields.items()}
    try:
        return getattr(peer.dp_event, name)(**values)
    except (TypeError, ValueError) as error:
        raise Untranslatable(f"Expected the fields of a {name} instead got {fields}.") from error


def _mapping(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise Untranslatable(f"Expected an event instead got {type(document).__name__}.")
    return document


def _value(peer: Any, field: str, value: Any, depth: int) -> Any:
    if field == "event":
        return _event(peer, value, depth - 1)
    if field == "events":
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise Untranslatable(f"Expected a list of events instead got {value!r:.80}.")
        return [_event(peer, part, depth - 1) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Untranslatable(f"Expected {field} to be a number instead got {value!r:.80}.")
    return value
