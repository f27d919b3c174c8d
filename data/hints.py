"""What a wrong word could have been: the tail of a message about strict, typed documents.

msgspec names the wrong word and where it stands, but neither what is known there nor which of it
comes nearest.

>>> among("parquit", ("csv", "parquet"))
"among 'csv', 'parquet' (nearest: 'parquet')"
"""

import difflib
import re
from collections.abc import Iterable
from enum import Enum
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

_MOST_SHOWN = 20
"""Words listed in a message; of more, only their number and the nearest."""


def among(word: str, known: Iterable[str]) -> str:
    """The tail of an error message: what `word` could have been, and which of these is nearest.

    Args:
        word: what was written.
        known: what is allowed; the first twenty are listed, and how many there are.
    """
    words = list(known)
    more = f", ... ({len(words)} in all)" if len(words) > _MOST_SHOWN else ""
    near = difflib.get_close_matches(word, words, n=1)
    nearest = f" (nearest: {near[0]!r})" if near else ""
    return f"among {', '.join(map(repr, words[:_MOST_SHOWN]))}{more}{nearest}"


def hint(message: str, kind: type[msgspec.Struct], document: object) -> str:
    """What to add to msgspec's `message` about a `document` that is no `kind`; often nothing.

    For an unknown word it lists the known ones, for a missing choice what may be chosen; a value of
    another type is repeated.

    The message names the path of the fault, such as `$.columns[2].kind`. It is followed through the
    types and the document side by side, since the tag in a document decides which struct of a union
    is meant.

    Args:
        message: of a `msgspec.ValidationError`.
        kind: the struct that the document was to be.
        document: as the TOML parser returned it.
    """
    word = re.search(
        r"unknown field `([^`]*)`|Invalid (?:enum )?value '([^']*)'|required field `([^`]*)`",
        message,
    )
    mistyped = message.startswith("Expected `") and ", got `" in message
    if word is None and not mistyped:
        return ""
    place = re.search(r"at `\$([^`]*)`", message)
    here: Any = kind
    value: Any = document
    for index, name in re.findall(r"\[([^]]*)\]|([^.\[]+)", place[1] if place else ""):
        if name:
            here = _fields(here, value).get(name, here)
            value = value.get(name) if isinstance(value, dict) else None
        else:  # an item, whose type `_alternatives` finds; one of a mapping stands as [...]
            value = value[int(index)] if isinstance(value, list) and index.isdigit() else None
    if word is None:
        # the seed of noise is secret, and a message may end up in a log
        secret = place is None or place[1].endswith("seed")
        return "" if secret or not isinstance(value, str | int | float) else f": {value!r:.40}"
    if word[3] is not None:
        choices = _choices(_fields(here, value).get(word[3]))
        return f", one of {', '.join(map(repr, choices))}" if choices else ""
    return ", expected " + among(word[1] or word[2], _words(here, value))


def _alternatives(kind: Any) -> list[Any]:
    """The types that a type stands for: members of a union, items of a collection."""
    if get_origin(kind) in (Union, UnionType, tuple, list, dict):
        return [one for each in get_args(kind) for one in _alternatives(each)]
    return [kind]


def _fields(kind: Any, value: object) -> dict[str, Any]:
    """The fields of a struct, a tag among them; of several structs, those that the tag leaves."""
    structs = [
        one
        for one in _alternatives(kind)
        if isinstance(one, type) and issubclass(one, msgspec.Struct)
    ]
    tags = {(s.__struct_config__.tag_field, s.__struct_config__.tag): s for s in structs}
    given = value.items() if isinstance(value, dict) else ()
    named = [s for (field, tag), s in tags.items() if field is not None and (field, tag) in given]
    fields: dict[str, Any] = {
        field: Literal[tuple(tag for _, tag in tags)] for field, _ in tags if field is not None
    }
    for struct in named or structs:
        fields |= get_type_hints(struct)
    return fields


def _words(kind: Any, value: object) -> list[str]:
    """The words of an enumeration, or the names of fields."""
    return _choices(kind) or list(_fields(kind, value))


def _choices(kind: Any) -> list[str]:
    """The words of an enumeration; none of another type."""
    words: list[str] = []
    for one in _alternatives(kind):
        if isinstance(one, type) and issubclass(one, Enum):
            words += [str(choice.value) for choice in one]
        elif get_origin(one) is Literal:
            words += [str(choice) for choice in get_args(one)]
    return words
