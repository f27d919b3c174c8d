"""Special methods of Python that would show a private value: each refuses, and says what to do.

`Sensitive` carries them. A conversion, a comparison, an iteration, a copy would hand out the number
or one bit of it without noise; and a function without a rule of sensitivity would hand out a number
that nothing prices. Each kind of way out has an error of its own, all of them
`UnprotectedReleaseError`, so that a caller sees at once which rule is missing.

And `Closed`, of what no class of the caller's may stand in for.
"""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from .errors import (
    InvalidParameter,
    UnprotectedComparison,
    UnprotectedConversion,
    UnprotectedFunction,
    UnprotectedIteration,
    UnprotectedReleaseError,
    UnprotectedSerialisation,
)

ADVICE = "release it through a curator (curator.release(...)) and work with the noisy message"
"""What every refusal ends with: the one way out."""

_Kind = TypeVar("_Kind", bound=type)


_SHOWS = f"let a sensitive value out of its protection; {ADVICE}"
_DOUBLES = (
    "make a second one, whose events are in nobody's list and whose noise may be the first one's; "
    "make a new one"
)


def _refusal(
    name: str, error: type[UnprotectedReleaseError], would: str = _SHOWS
) -> Callable[..., NoReturn]:
    """Return a method that raises `error`, whose message begins with `name`, the use it refuses."""

    def refuse(self: object, *_: object, **__: object) -> NoReturn:
        raise error(f"{name} would {would}.")

    return refuse


_PACKAGE = __name__.partition(".")[0]


class Closed:
    """A base of classes that none from elsewhere derives from: a `TypeError` says so.

    Prices rest on what their instances answer: public facts, bounds, how records are cut. An answer
    that a caller's class gives instead could be one for the price and another for the value.
    """

    __slots__ = ()

    def __init_subclass__(cls, **options: object) -> None:
        if cls.__module__.partition(".")[0] != _PACKAGE:
            kinds = ", ".join(base.__name__ for base in cls.__bases__)
            raise TypeError(f"Expected no class derived from {kinds}: prices rest on it.")
        super().__init_subclass__(**options)


def require_itself(name: str, value: object, kind: type[Closed]) -> None:
    """Raise `InvalidParameter` unless `value` is of this kind by its class, whatever it says it is.

    What hands questions on to a private value could answer some of them otherwise.
    """
    if not issubclass(type(value), kind):
        raise InvalidParameter(name, type(value).__name__, f"a {kind.__name__} itself")


_COPIES = {
    "__reduce_ex__": "pickling or copying",
    "__reduce__": "pickling or copying",
    "__getstate__": "pickling or copying",
    "__copy__": "copying",
    "__deepcopy__": "copying",
}


def refuse_copies(kind: _Kind) -> _Kind:
    """Make objects refuse to be pickled or copied, in every way that Python asks.

    Args:
        kind: the class, which is changed and returned: a decorator.
    """
    for name, use in _COPIES.items():
        setattr(kind, name, _refusal(use, UnprotectedSerialisation))
    return kind


def refuse_seconds(kind: _Kind) -> _Kind:
    """Make objects refuse to be pickled or copied: what a copy drew and spent nobody would know.

    Args:
        kind: the class, which is changed and returned: a decorator.
    """
    for name, use in _COPIES.items():
        setattr(kind, name, _refusal(use, UnprotectedSerialisation, _DOUBLES))
    return kind


def refuse_ways_out(kind: _Kind) -> _Kind:
    """Make every special method that could show the value raise, with advice.

    Powers, remainders and products from the left have no rule of sensitivity; absolute values have
    one that nothing here needs. Hashing and equality are refused because they would decide by the
    value.

    Args:
        kind: the class, which is changed and returned: a decorator.
    """
    ways: dict[type[UnprotectedReleaseError], dict[str, str]] = {
        UnprotectedConversion: {
            "__float__": "float()",
            "__int__": "int()",
            "__complex__": "complex()",
            "__index__": "use as an index",
            "__round__": "round()",
            "__trunc__": "truncation",
            "__floor__": "floor()",
            "__ceil__": "ceil()",
            "__array__": "conversion to an array",
            "__bytes__": "bytes()",
            "__dlpack__": "export to another library",
            "__dlpack_device__": "export to another library",
            "__format__": "formatting",
        },
        UnprotectedComparison: {
            **dict.fromkeys(
                ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"), "comparison"
            ),
            "__bool__": "use as a truth value",
        },
        UnprotectedIteration: {
            "__iter__": "iteration",
            "__reversed__": "iteration",
            "__len__": "len()",
            "__getitem__": "indexing",
            "__contains__": "a membership test",
        },
        UnprotectedFunction: {
            **dict.fromkeys(("__pow__", "__rpow__"), "a power"),
            **dict.fromkeys(("__mod__", "__rmod__", "__divmod__", "__rdivmod__"), "a remainder"),
            **dict.fromkeys(("__floordiv__", "__rfloordiv__"), "floor division"),
            **dict.fromkeys(("__rtruediv__",), "division by it"),
            "__abs__": "abs()",
            "__matmul__": "a matrix product from the left",
        },
        UnprotectedSerialisation: {**_COPIES, "__hash__": "hashing"},
    }
    for error, names in ways.items():
        for name, use in names.items():
            setattr(kind, name, _refusal(use, error))
    return kind
