"""JSON that strangers wrote: finite numbers, no key twice, every field named and of its kind.

The readers of this room take their fields from here, so that all refuse alike: in a sentence that
names the file, the field, what stood there and what it must be. A field with two meanings, or an
unread one, would let a file say one thing to its writer and another to the ledger.

>>> fields = Fields.of(json_of(b'{"steps": 3}', "run.json"), "run.json", required=("steps",))
>>> fields.whole("steps")
3
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from sys import float_info
from typing import Any, NoReturn, TypeVar

from ..mechanisms.errors import DpledgerError, shown_value

MOST_BYTES = 1 << 24
"""Of a document: histories of a million steps of equal kind are far shorter."""

_T = TypeVar("_T")


class MalformedImport(DpledgerError, ValueError):
    """This is no file of that kind; nothing in it was executed, and nothing recorded."""


_NONZERO = frozenset("123456789")
"""Digits of a number that is not zero, whatever a double makes of it."""


def json_of(text: bytes, where: str) -> Any:
    """Return what a JSON document holds.

    Args:
        text: UTF-8, `MOST_BYTES` at most.
        where: its name, for messages.

    Raises `MalformedImport` for what is no JSON: NaN and infinity, a key twice, too deep.
    """
    if len(text) > MOST_BYTES:
        raise MalformedImport(f"{where}: {len(text)} bytes must be at most {MOST_BYTES}.")

    def refuse(word: str) -> NoReturn:
        raise MalformedImport(f"{where}: {word} must be a finite number.")

    def number(literal: str) -> float:
        """Return a number with a point or an exponent, as `json` would, or refuse it."""
        found = float(literal)
        if not isfinite(found) or (found == 0 and set(literal.lower().split("e")[0]) & _NONZERO):
            # a delta or a rate that vanishes, or grows beyond all numbers, would cost another sum
            refuse(f"{literal:.40}, which no double holds,")
        return found

    # `json` alone keeps the last of two values of one key
    def pairs(listed: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(listed)
        if len(found) < len(listed):
            raise MalformedImport(f"{where}: every key of an object must stand once.")
        return found

    try:
        return json.loads(
            text.decode("utf-8"), parse_constant=refuse, parse_float=number, object_pairs_hook=pairs
        )
    except MalformedImport:
        raise
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise MalformedImport(f"{where}: must be JSON: {reason}.") from error


class Fields:
    """The fields of one object, by name; what is of another kind raises `MalformedImport`.

    Args:
        values: a JSON object, as parsed.
        where: what it is, such as "run.json: composition 3"; every message begins with it.
    """

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = values
        self.where = where

    @classmethod
    def of(
        cls, value: Any, where: str, *, required: Sequence[str], optional: Sequence[str] = ()
    ) -> "Fields":
        """Return the fields of `value`, which has all that are required and none but these.

        Args:
            value: anything that JSON may hold.
            where: its name, for messages.
            required: names that must be there.
            optional: names that may be.

        Raises `MalformedImport` for what is no object, and for a name missing or unknown.
        """
        if not isinstance(value, Mapping):
            raise MalformedImport(f"{where}: {shown_value(value)} must be an object.")
        missing = [name for name in required if name not in value]
        unknown = [str(name)[:80] for name in value if name not in (*required, *optional)]
        if missing:
            raise MalformedImport(f"{where}: {', '.join(missing)} must be stated.")
        if unknown:
            allowed = ", ".join((*required, *optional))
            raise MalformedImport(f"{where}: {unknown[0]!r} must be one of: {allowed}.")
        return cls(value, where)

    def has(self, name: str) -> bool:
        """Return whether a field is there and not null."""
        return self._values.get(name) is not None

    def is_list(self, name: str) -> bool:
        """Return whether a field is a list."""
        return isinstance(self._values.get(name), list)

    def wrong(self, name: str, allowed: str) -> MalformedImport:
        """Return the error that says what a field must be."""
        return MalformedImport(
            f"{self.where}: {name}={shown_value(self._values.get(name))} must be {allowed}."
        )

    def number(self, name: str) -> int | float:
        """Return a number; its range is for whoever uses it to check."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, "a number")
        if not -float_info.max <= value <= float_info.max:
            raise self.wrong(name, "a finite number")
        return value

    def whole(self, name: str) -> int:
        """Return a whole number in [0, inf); 3.0 is none."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(name, "a whole number in [0, inf)")
        return value

    def flag(self, name: str, default: bool) -> bool:
        """Return True or False.

        A field that is missing counts as `default`; null does not.
        """
        value = self._values.get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def word(self, name: str, among: Mapping[str, _T]) -> _T:
        """Return what one of several words stands for.

        `among` maps the words that are allowed to their meanings.
        """
        value = self._values.get(name)
        if not isinstance(value, str) or value not in among:
            raise self.wrong(name, f"one of {', '.join(among)}")
        return among[value]

    def listed(self, name: str, most: int) -> list[Any]:
        """Return a list of at most so many items."""
        value = self._values.get(name)
        if not isinstance(value, list):
            raise self.wrong(name, "a list")
        if len(value) > most:
            raise MalformedImport(f"{self.where}: {name} of {len(value)} must have at most {most}.")
        return value

    def numbers(self, name: str, most: int) -> list[float]:
        """Return a list of at most so many numbers, as doubles."""
        found = self.listed(name, most)
        return [float(Fields({name: x}, self.where).number(name)) for x in found]
