"""Strict TOML: every key known, every value in range, and the nearest known word when not."""

import re
import tomllib
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from ..data.schema import among
from ..mechanisms.errors import DpledgerError

__all__ = ["ConfigurationError", "parse_toml", "read_toml"]

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class ConfigurationError(DpledgerError, ValueError):
    """A configuration is not readable or not allowed; nothing was loaded, run or spent."""


def read_toml(path: Path, kind: type[_Struct]) -> _Struct:
    """Return the configuration in a TOML file, or raise `ConfigurationError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: Expected a readable TOML file ({error}).") from error
    return parse_toml(text, kind, source=str(path))


def parse_toml(text: str, kind: type[_Struct], *, source: str) -> _Struct:
    """Return the configuration in TOML `text`; `source` is what messages call it."""
    try:
        return msgspec.convert(tomllib.loads(text), kind)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{source}: Expected TOML ({error}).") from error
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{source}: {error}{_hint(str(error), kind)}.") from error


def _hint(message: str, kind: type[msgspec.Struct]) -> str:
    # msgspec names the wrong word and where it stands, but not what is known there
    word = re.search(r"unknown field `([^`]*)`|Invalid (?:enum )?value '([^']*)'", message)
    place = re.search(r"at `\$\.?([^`]*)`", message)
    if word is None:
        return ""
    found: Any = kind
    for step in (place[1] if place else "").split("."):
        if step and not step.startswith("["):
            found = _known(found).get(step, found)
    return ", expected " + among(word[1] or word[2], sorted(_words(found)))


def _alternatives(kind: Any) -> list[Any]:
    return list(get_args(kind)) if get_origin(kind) in (Union, UnionType) else [kind]


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
