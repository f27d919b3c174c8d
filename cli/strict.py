"""Strict TOML: every key known, every value in range, and the nearest known word when not.

A file from a stranger is read within limits: a large or deeply nested one would keep the parser
busy for minutes.
"""

import re
import tomllib
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ..data.schema import among
from ..mechanisms.errors import DpledgerError

__all__ = ["ConfigurationError", "converted", "parse_toml", "read_toml"]

_MOST_BYTES = 1 << 16
# the parser's time grows with the square of a dotted name's length
_MOST_DOTS = 200
_SHOWN = 300

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class ConfigurationError(DpledgerError, ValueError):
    """A configuration is not readable or not allowed; nothing was loaded, run or spent."""


def read_toml(path: Path, kind: type[_Struct]) -> _Struct:
    """Return the configuration in a TOML file, or raise `ConfigurationError`."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: Expected a readable TOML file ({error}).") from error
    if len(content) > _MOST_BYTES:
        raise ConfigurationError(f"{path}: Expected at most {_MOST_BYTES} bytes.")
    return parse_toml(text, kind, source=str(path))


def parse_toml(text: str, kind: type[_Struct], *, source: str) -> _Struct:
    """Return the configuration in TOML `text`; `source` is what messages call it."""
    if max(line.count(".") for line in text.split("\n")) > _MOST_DOTS:
        raise ConfigurationError(f"{source}: Expected at most {_MOST_DOTS} dots in a line.")
    try:
        values = tomllib.loads(text)
    # a number of thousands of digits is a plain ValueError
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{source}: Expected TOML ({error}).") from error
    return converted(values, kind, source=source)


def converted(
    values: dict[str, Any], kind: type[_Struct], *, source: str, texts: bool = False
) -> _Struct:
    """Return `values` as a configuration; with `texts`, numbers may be written as texts."""
    try:
        return msgspec.convert(values, kind, strict=not texts)
    except msgspec.ValidationError as error:
        told = f"{error}{_hint(str(error), kind)}."
        raise ConfigurationError(f"{source}: {told[:_SHOWN]}") from error


def _hint(message: str, kind: type[msgspec.Struct]) -> str:
    # msgspec names the wrong word and where it stands, but not what is known there
    word = re.search(r"unknown field `([^`]*)`|Invalid (?:enum )?value '([^']*)'", message)
    place = re.search(r"at `\$\.?([^`]*)`", message)
    if word is None:
        return ""
    found: Any = kind
    # items of a list stand as [...]
    for step in re.sub(r"\[[^]]*\]", "", place[1] if place else "").split("."):
        if step:
            found = _known(found).get(step, found)
    return ", expected " + among(word[1] or word[2], sorted(_words(found)))


def _alternatives(kind: Any) -> list[Any]:
    return list(get_args(kind)) if get_origin(kind) in (Union, UnionType, tuple) else [kind]


def _known(kind: Any) -> dict[str, Any]:
    """Return the fields of a struct, or of all structs of a union; a union's tag field too."""
    fields: dict[str, Any] = {}
    for one in _alternatives(kind):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            fields |= get_type_hints(one)
            if one.__struct_config__.tag_field is not None:
                fields.setdefault(one.__struct_config__.tag_field, kind)
    return fields


def _words(kind: Any) -> set[str]:
    words: set[str] = set()
    for one in _alternatives(kind):
        if isinstance(one, type) and issubclass(one, Enum):
            words |= {str(choice.value) for choice in one}
    return words or set(_known(kind))
