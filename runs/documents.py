"""The files that people write and read: their JSON schemas, and every key in a sentence.

What a key means stands once, in the docstring of the section that has it (`Args:`). From there come
`dpledger explain`, the comments of `dpledger init` and the published schemas.

>>> explained("privacy.delta")[0].text
'probability mass that may escape epsilon; below one over the number of records.'
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from ..audits.claims.claim_file import ClaimFile
from ..audits.report import Report
from ..data import Schema
from ..data.hints import among
from ..mechanisms.errors import DpledgerError
from .configuration import Configuration
from .statistics import StatisticsFile

FILES: Mapping[str, type[msgspec.Struct]] = MappingProxyType(
    {
        "run": Configuration,
        "schema": Schema,
        "claim": ClaimFile,
        "statistics": StatisticsFile,
        "report": Report,
    }
)
"""What a file is called -> its sections and keys. All are TOML but a report, which is JSON."""

_WRITTEN = ("run", "schema", "claim", "statistics")
"""Of these, the kinds that people write by hand; a report is written by a run."""


class UnknownKey(DpledgerError, LookupError):
    """No file that people write has a key of this name."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a file that people write.

    Args:
        file: one of `_WRITTEN`.
        path: sections and key, joined by dots; of a column of a schema with its kind.
        text: what it means, one or two sentences.
        allowed: the words that it may be; empty where it is no choice.
        default: what it is where the file leaves it out, as JSON; None where it must be said.
    """

    file: str
    path: str
    text: str
    allowed: tuple[str, ...]
    default: str | None


def json_schema(file: str) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of a kind of file, with a description of every key.

    TOML files are checked against it as what their parser returns.

    Args:
        file: one of `FILES`.
    """
    kind = FILES[file]
    made = msgspec.json.schema(kind)
    structs = {each.__name__: each for each in _structs(kind)}
    for name, definition in made["$defs"].items():
        if name not in structs:
            continue
        summary, keys = documented(structs[name])
        definition["description"] = summary
        for key, text in keys.items():
            definition["properties"][key]["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def explained(name: str) -> tuple[Key, ...]:
    """Return the keys of that name, path such as "privacy.delta" or section, of all files.

    Raises `UnknownKey`, with the nearest known one.
    """
    found = tuple(
        key for key in all_keys() if key.path == name or key.path.rpartition(".")[2] == name
    ) or tuple(key for key in all_keys() if key.path.startswith(f"{name}."))
    if not found:
        known = sorted({key.path for key in all_keys()})
        raise UnknownKey(f"key={name!r} must be {among(name, known)}")
    return found


@cache
def all_keys() -> tuple[Key, ...]:
    """Return every key of the files that people write, in the files' order."""
    return tuple(key for file in _WRITTEN for key in _keys(file, FILES[file], ""))


def documented(kind: type[msgspec.Struct]) -> tuple[str, dict[str, str]]:
    """Return what a section is, and what its keys mean, from its docstring and its bases'.

    Args:
        kind: a struct whose docstring lists its fields under `Args:`.
    """
    # `python -OO` takes all docstrings away
    keys = dict.fromkeys(kind.__struct_fields__, "") if kind.__doc__ is None else dict[str, str]()
    for each in reversed(kind.__mro__):
        doc = inspect.cleandoc(each.__doc__ or "")
        _, _, args = doc.partition("Args:\n")
        block = re.match(r"(?:    .*\n?)*", args)
        for item in re.split(r"\n(?=    \S)", "\n" + (block[0] if block else "")):
            name, colon, text = item.strip().partition(": ")
            if colon:
                keys[name] = " ".join(text.split())
    doc = inspect.cleandoc(kind.__doc__ or "")
    return " ".join(doc.partition("Args:\n")[0].split()), keys


def _keys(file: str, kind: type[msgspec.Struct], prefix: str) -> Iterator[Key]:
    """Yield the keys of a section and of the sections in it.

    Args:
        file: that they stand in.
        kind: the section.
        prefix: its path, with a dot; empty at the top.
    """
    meaning = documented(kind)[1]
    hints = get_type_hints(kind)
    for field in msgspec.structs.fields(kind):
        inner = [each for each in _types(hints[field.name]) if _is_struct(each)]
        for struct in inner:
            tag = struct.__struct_config__.tag
            yield from _keys(file, struct, f"{prefix}{tag or field.encode_name}.")
        if not inner:
            yield Key(
                file,
                f"{prefix}{field.encode_name}",
                meaning[field.name],
                tuple(
                    str(word.value)
                    for each in _types(hints[field.name])
                    if isinstance(each, type) and issubclass(each, Enum)
                    for word in each
                ),
                None if field.required else msgspec.json.encode(field.default).decode(),
            )


def _structs(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Yield a section and those inside it."""
    yield kind
    for hint in get_type_hints(kind).values():
        for each in _types(hint):
            if _is_struct(each):
                yield from _structs(each)


def _types(hint: Any) -> list[Any]:
    """Return the types in an annotation: members of a union, items of a collection."""
    inner = [each for each in get_args(hint) if each not in (NoneType, Ellipsis)]
    return [one for each in inner for one in _types(each)] if inner else [hint]


def _is_struct(kind: Any) -> bool:
    """Whether a type is a section."""
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
