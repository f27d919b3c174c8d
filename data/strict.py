"""Strict TOML: every key known, every value in range, and the nearest known word when not.

A file from a stranger is read within limits: a large or deeply nested one would keep the parser
busy for minutes.
"""

import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..mechanisms.errors import DpledgerError
from .hints import hint

_MOST_BYTES = 1 << 16
# the parser's time grows with the square of a dotted name's length
_MOST_DOTS = 200
_SHOWN = 500

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class ConfigurationError(DpledgerError, ValueError):
    """A configuration is not readable or not allowed; nothing was loaded, run or spent."""


def read_toml(path: Path, kind: type[_Struct]) -> _Struct:
    """Return the configuration in a TOML file, or raise `ConfigurationError`."""
    try:
        text = toml_text(path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: Expected a readable TOML file ({error}).") from error
    return parse_toml(text, kind, source=str(path))


def parse_toml(text: str, kind: type[_Struct], *, source: str) -> _Struct:
    """Return the configuration in TOML `text`; `source` is what messages call it."""
    if max(line.count(".") for line in text.split("\n")) > _MOST_DOTS:
        raise ConfigurationError(f"{source}: Expected at most {_MOST_DOTS} dots in a line.")
    try:
        values = tomllib.loads(text)
    # a number of thousands of digits is a plain ValueError
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{source}: Expected TOML ({error!s:.{_SHOWN}}).") from error
    return converted(values, kind, source=source)


def toml_text(path: Path, most_bytes: int) -> str:
    """Return the text of a TOML file; raises `ConfigurationError` if it is longer than that."""
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ConfigurationError(f"{path}: Expected at most {most_bytes} bytes.")
    return content.decode("utf-8")


def converted(
    values: dict[str, Any], kind: type[_Struct], *, source: str, texts: bool = False
) -> _Struct:
    """Return `values` as a configuration; with `texts`, numbers may be written as texts."""
    try:
        return msgspec.convert(values, kind, strict=not texts)
    except msgspec.ValidationError as error:
        words = f"{error}{hint(str(error), kind, values)}."
        raise ConfigurationError(f"{source}: {words[:_SHOWN]}") from error
