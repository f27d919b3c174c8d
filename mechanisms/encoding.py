"""The written form of events: canonical JSON in which every number is exact.

A binary64 is written as `"<mantissa>p<exponent>"`, mantissa odd (or `"0p0"`), so that 0.75 reads
`"3p-2"`; a rational as `"<numerator>/<denominator>"`. Keys are sorted, there is no white space, so
equal events with equal derivations have equal bytes and one SHA-256.

Ledgers store these bytes, certificates speak of their hash, and the checker, which shares no code
with this module, parses them. What was written once is read for ever: tests/golden pins the bytes.
Reading is strict, since a document may come from a stranger: every field must be there, none may be
unknown, depth and digits are bounded, and every number must be written in its one lowest form.

>>> dyadic(0.75)
'3p-2'
>>> from_dyadic('3p-2')
0.75
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fractions import Fraction
from math import ldexp
from typing import TypeVar, cast

import numpy as np

from .adjacency import Adjacency
from .errors import InvalidParameter, MalformedEvent
from .events import (
    SCHEMA_VERSION,
    AccumulatedPoisson,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
)
from .protocols import FloatArray
from .sensitivity import Derivation, Norm, Sensitivity

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]
"""What JSON can hold, but for fractional numbers, which are written as texts."""

_T = TypeVar("_T")

_KINDS: dict[str, type[Mechanism]] = {
    "gaussian": GaussianStep,
    "laplace": LaplaceStep,
    "discrete-gaussian": DiscreteGaussianStep,
    "discrete-laplace": DiscreteLaplaceStep,
    "pure": PureStep,
    "randomised-response": RandomisedResponse,
    "gaussian-mixture": GaussianMixtureStep,
    "poisson-sampled": PoissonSampled,
    "poisson-accumulated": AccumulatedPoisson,
    "sampled-without-replacement": SampledWithoutReplacement,
    "sampled-with-replacement": SampledWithReplacement,
    "unprotected": UnprotectedRelease,
    "repeated": Repeated,
    "parties": Parties,
}
"""The name of each mechanism in documents; a name never changes its meaning."""

_NAMES = {kind: name for name, kind in _KINDS.items()}

_DYADIC = re.compile(r"(-?[0-9]{1,16})p(-?[0-9]{1,4})")
"""Sixteen digits hold the 53 bits of a mantissa, four those of an exponent."""

_RATIONAL = re.compile(r"(-?[0-9]{1,4096})(?:/([0-9]{1,4096}))?")
"""Digits are capped: reading a whole number takes time quadratic in them."""

_DEPTH = 64
"""Of nested mechanisms and derivations: far above ours, below Python's recursion limit."""


def dyadic(value: float) -> str:
    """Return a finite binary64 as `mantissa p exponent`, exactly."""
    numerator, denominator = float(value).as_integer_ratio()
    twos = (numerator & -numerator).bit_length() - 1 if numerator else 0
    return f"{numerator >> twos}p{twos - (denominator.bit_length() - 1)}"


def from_dyadic(text: object) -> float:
    """Return the binary64 that `text` names.

    Raises `MalformedEvent` for another text, a number beyond binary64, or one not in lowest terms.
    """
    found = _DYADIC.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise MalformedEvent(f"Expected a number such as '3p-2' instead got {text!r:.80}.")
    mantissa, exponent = int(found[1]), int(found[2])
    try:
        value = ldexp(mantissa, exponent)
    except OverflowError:
        value = float("nan")
    if value != value or dyadic(value) != text:
        raise MalformedEvent(f"Expected a binary64 in lowest terms instead got {text!r:.80}.")
    return value


def rational(value: Fraction) -> str:
    """Return an exact rational as `numerator/denominator` (whole numbers without a bar)."""
    return str(value)


def from_rational(text: object) -> Fraction:
    """Return the rational that `text` names (digits capped), or raise `MalformedEvent`."""
    found = _RATIONAL.fullmatch(text) if isinstance(text, str) else None
    if found is None or (found[2] is not None and int(found[2]) == 0):
        raise MalformedEvent(f"Expected a rational such as '3/4' instead got {text!r:.80}.")
    value = Fraction(int(found[1]), int(found[2] or "1"))
    if rational(value) != text:
        raise MalformedEvent(f"Expected a rational in lowest terms instead got {text!r:.80}.")
    return value


def canonical_json(value: Json) -> bytes:
    """Return the one byte string of a JSON value: sorted keys, no white space, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def subject_hash(events: Sequence[Event]) -> str:
    """Return the SHA-256 of the canonical JSON of an event list, in hexadecimal: its *subject*.

    A certificate states an epsilon of a subject, so that a ledger can be held against it.
    """
    return hashlib.sha256(canonical_json([event_to_json(e) for e in events])).hexdigest()


def message_bytes(message: FloatArray) -> bytes:
    """Return a message's numbers, one after the other, as binary64 in little-endian order."""
    return np.ascontiguousarray(message, dtype="<f8").tobytes()


def message_digest(message: FloatArray) -> str:
    """Return the SHA-256 of a message's bytes, in hexadecimal: what a ledger knows it by.

    Args:
        message: as it leaves, noise included, of any shape.
    """
    return hashlib.sha256(message_bytes(message)).hexdigest()


def event_to_json(event: Event) -> dict[str, Json]:
    """Return the written form of an event."""
    context = event.context
    return {
        "schema": SCHEMA_VERSION,
        "mechanism": mechanism_to_json(event.mechanism),
        "parties": list(context.parties),
        "round": context.round,
        "release": context.release,
        "audience": context.audience.value,
    }


def event_from_json(value: object) -> Event:
    """Return the event that a written form names.

    Args:
        value: as `json.loads` returned it.

    Raises `MalformedEvent` for unknown or missing fields, another schema, or parameters out of
    range.
    """
    keys = ("schema", "mechanism", "parties", "round", "release", "audience")
    found = _object(value, keys)
    if _int(found["schema"]) != SCHEMA_VERSION:
        raise MalformedEvent(f"Expected schema {SCHEMA_VERSION} instead got {found['schema']!r}.")
    parties = tuple(_text(p) for p in _list(found["parties"]))
    context = _build(
        lambda: Context(
            parties, _int(found["round"]), _text(found["release"]), Audience(found["audience"])
        )
    )
    return Event(mechanism_from_json(found["mechanism"]), context)


def mechanism_to_json(mechanism: Mechanism, *, depth: int = 0) -> dict[str, Json]:
    """Return the written form of a mechanism.

    Args:
        mechanism: at most `_DEPTH` deep.
        depth: how deep it stands.

    Raises `InvalidParameter` for a deeper one, which could not be read back.
    """
    _require_depth("mechanism", depth)
    written: dict[str, Json] = {"kind": _NAMES[type(mechanism)]}
    if isinstance(mechanism, Parties):
        written["parts"] = [
            [n, [mechanism_to_json(m, depth=depth + 1) for m in ms]] for n, ms in mechanism.parts
        ]
        return written
    for item in fields(mechanism):
        written[item.name] = _field_to_json(getattr(mechanism, item.name), depth)
    return written


def mechanism_from_json(value: object, *, depth: int = 0) -> Mechanism:
    """Return the mechanism that a written form names.

    Args:
        value: as `json.loads` returned it.
        depth: how deep it stands.

    Raises `MalformedEvent` for unknown kinds and fields, and as the mechanism's own checks do.
    """
    if depth > _DEPTH:
        raise MalformedEvent(f"Expected mechanisms nested at most {_DEPTH} deep.")
    name = _as_object(value).get("kind")
    if not isinstance(name, str) or name not in _KINDS:
        raise MalformedEvent(f"Expected kind in {sorted(_KINDS)} instead got {name!r:.80}.")
    kind = cast("Callable[..., Mechanism]", _KINDS[name])
    if kind is Parties:
        pairs = [_pair(p) for p in _list(_object(value, ("kind", "parts"))["parts"])]
        return _build(
            lambda: Parties(
                tuple(
                    (_text(n), tuple(mechanism_from_json(m, depth=depth + 1) for m in _list(ms)))
                    for n, ms in pairs
                )
            )
        )
    names = tuple(item.name for item in fields(_KINDS[name]))
    found = _object(value, ("kind", *names))
    values = {n: _field_from_json(n, found[n], depth) for n in names}
    return _build(lambda: kind(**values))


def _require_depth(name: str, depth: int) -> None:
    if depth > _DEPTH:
        raise InvalidParameter(f"{name} depth", depth, f"in [0, {_DEPTH}]")


def _field_to_json(value: object, depth: int) -> Json:
    match value:
        case Sensitivity():
            return {
                "norm": value.norm.value,
                "adjacency": value.adjacency.value,
                "squared": rational(value.squared),
                "derivation": _derivation_to_json(value.derivation),
            }
        case float():
            return dyadic(value)
        case int() | str():
            return value
        case _:
            return mechanism_to_json(cast("Mechanism", value), depth=depth + 1)


def _field_from_json(name: str, value: object, depth: int) -> object:
    match name:
        case "sensitivity" | "constant" | "sampled":
            return _sensitivity_from_json(value)
        case "event":
            return mechanism_from_json(value, depth=depth + 1)
        case "reason":
            return _text(value)
        case "times" | "batch" | "batches" | "records" | "categories":
            return _int(value)
        case _:
            return from_dyadic(value)


def _derivation_to_json(node: Derivation, depth: int = 0) -> Json:
    _require_depth("derivation", depth)
    return {
        "rule": node.rule,
        "squared": rational(node.squared),
        "parameters": [
            [name, {"text": v} if isinstance(v, str) else rational(v)]
            for name, v in node.parameters
        ],
        "premises": [_derivation_to_json(p, depth + 1) for p in node.premises],
    }


def _derivation_from_json(value: object, depth: int = 0) -> Derivation:
    if depth > _DEPTH:
        raise MalformedEvent(f"Expected derivations nested at most {_DEPTH} deep.")
    found = _object(value, ("rule", "squared", "parameters", "premises"))
    parameters: list[tuple[str, Fraction | str]] = []
    for pair in _list(found["parameters"]):
        name, content = _pair(pair)
        if isinstance(content, dict):
            parameters.append((_text(name), _text(_object(content, ("text",))["text"])))
        else:
            parameters.append((_text(name), from_rational(content)))
    return Derivation(
        _text(found["rule"]),
        from_rational(found["squared"]),
        tuple(parameters),
        tuple(_derivation_from_json(p, depth + 1) for p in _list(found["premises"])),
    )


def _sensitivity_from_json(value: object) -> Sensitivity:
    found = _object(value, ("norm", "adjacency", "squared", "derivation"))
    return _build(
        lambda: Sensitivity(
            Norm(found["norm"]),
            Adjacency(found["adjacency"]),
            from_rational(found["squared"]),
            _derivation_from_json(found["derivation"]),
        )
    )


def _as_object(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise MalformedEvent(f"Expected an object instead got {type(value).__name__}.")
    return cast("Mapping[str, object]", value)


def _object(value: object, keys: Sequence[str]) -> Mapping[str, object]:
    found = _as_object(value)
    if set(found) != set(keys):
        raise MalformedEvent(
            f"Expected an object with fields {sorted(keys)} instead got {sorted(map(str, found))}."
        )
    return found


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise MalformedEvent(f"Expected a list instead got {type(value).__name__}.")
    return cast("list[object]", value)


def _pair(value: object) -> tuple[object, object]:
    items = _list(value)
    if len(items) != 2:
        raise MalformedEvent(f"Expected a pair instead got {len(items)} items.")
    return items[0], items[1]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise MalformedEvent(f"Expected a text instead got {type(value).__name__}.")
    return value


def _int(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise MalformedEvent(f"Expected a whole number instead got {value!r:.80}.")
    return value


def _build(make: Callable[[], _T]) -> _T:
    """Run a constructor on outside data; its complaint becomes a complaint about the document."""
    try:
        return make()
    except (InvalidParameter, ValueError, TypeError) as error:
        if isinstance(error, MalformedEvent):
            raise
        raise MalformedEvent(f"Expected a valid event: {error}") from error
