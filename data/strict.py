"""Strict TOML: every key known, every value in range, and the nearest known word when not.

A file from a stranger is read within limits: a large or deeply nested one would keep the parser
busy for minutes. Run files, schemas and claim files all come through here; what goes out is a
frozen struct whose own checks have run.
"""

import json
import tomllib
from math import isinf
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ..mechanisms.errors import DpledgerError
from .hints import hint

_MOST_BYTES = 1 << 16
"""Of a configuration: a thousand lines, far above any of ours, parsed in milliseconds."""

_MOST_DOTS = 200
"""In one line: the parser's time grows with the square of a dotted name's length."""

_SHOWN = 500
"""Characters of a parser's complaint that a message repeats; it may quote the whole file."""

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class ConfigurationError(DpledgerError, ValueError):
    """A configuration is not readable or not allowed; nothing was loaded, run or spent."""


def _number(literal: str) -> float:
    """Return a number as a double; raise `ValueError` for one that no double holds.

    Read as 0 or as infinity it would stand for another promise, or for noise without end.
    """
    if _is_lost(literal):
        raise ValueError(f"{literal:.40} must be a number that a double holds")
    return float(literal)


def _is_lost(text: str) -> bool:
    """Return whether a text is a number that a double makes 0 or infinite."""
    try:
        found = float(text)
    except ValueError:
        return False
    digits = set(text.lower().split("e")[0]) & set("123456789")
    return bool(digits) and (found == 0.0 or isinf(found))


def read_toml(path: Path, kind: type[_Struct]) -> _Struct:
    """Return the configuration in a TOML file.

    Args:
        path: of the file, at most 64 KiB of UTF-8.
        kind: the struct that it is read as; unknown keys are refused.

    Raises `ConfigurationError` for a file that cannot be read, is no TOML, or is not of the kind.
    """
    try:
        text = toml_text(path, _MOST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}: Expected a readable TOML file in UTF-8 ({error})."
        ) from error
    return parse_toml(text, kind, source=str(path))


def parse_toml(text: str, kind: type[_Struct], *, source: str) -> _Struct:
    """Return the configuration in TOML `text`.

    Args:
        text: the document.
        kind: the struct that it is read as.
        source: what messages call the document.

    Raises `ConfigurationError` as `read_toml` does.
    """
    if max(line.count(".") for line in text.split("\n")) > _MOST_DOTS:
        raise ConfigurationError(f"{source}: Expected at most {_MOST_DOTS} dots in a line.")
    try:
        values = tomllib.loads(text, parse_float=_number)
    # a number of thousands of digits is a plain ValueError
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"{source}: Expected TOML ({error!s:.{_SHOWN}}): a line is `key = value`, texts stand "
            "in quotes, decimals have a point."
        ) from error
    if r"\u0000" in json.dumps(values, default=str):
        raise ConfigurationError(f"{source}: Expected texts of printable characters, without NUL.")
    return converted(values, kind, source=source)


def toml_value(value: object) -> str:
    """Return a value as TOML: what JSON writes is, but for two ways to write a character.

    Args:
        value: text, number, truth value, or a list of such.
    """
    # JSON escapes what is beyond U+FFFF as two halves, and leaves U+007F as it is
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_text(path: Path, most_bytes: int) -> str:
    """Return the text of a TOML file.

    Args:
        path: of the file.
        most_bytes: what is read at most: a larger file is refused unread.

    A byte order mark, as editors on Windows write one, is no part of it.

    Raises `ConfigurationError` if it is larger, `OSError` and `UnicodeDecodeError` as reading does.
    """
    with path.open("rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ConfigurationError(f"{path}: Expected at most {most_bytes} bytes.")
    return content.decode("utf-8-sig")


def converted(
    values: dict[str, Any], kind: type[_Struct], *, source: str, texts: bool = False
) -> _Struct:
    """Return `values` as a configuration.

    Args:
        values: keys and values as the TOML parser returned them.
        kind: the struct that they must fit.
        source: what messages call the document.
        texts: whether numbers may be written as texts, as in a command's argument.

    Raises `ConfigurationError` with the place of the fault and the nearest known word.
    """
    lost = [text for text in values.values() if texts and _is_lost(text)]
    if lost:
        raise ConfigurationError(f"{source}: {lost[0]:.40} must be a number that a double holds.")
    try:
        return msgspec.convert(values, kind, strict=not texts)
    except msgspec.ValidationError as error:
        words = f"{error}{hint(str(error), kind, values)}."
        raise ConfigurationError(f"{source}: {words[:_SHOWN]}") from error
