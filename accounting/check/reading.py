"""Reads documents: sizes are bounded before anything is parsed or computed.

Three errors stand for all that can go wrong: the document proves nothing (`CertificateWrong`), the
caller is mistaken (`CalledWrong`), or more precision or work would be needed than is allowed
(`Undecided`). Numbers are whole or rational; no float enters.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

MAX_BYTES = 16 << 20
"""Bytes of a document: what is longer is refused before it is parsed."""

MAX_ITEMS = 500_000  # brackets and commas: bounds memory before anything is parsed
MAX_DEPTH = 64
"""Levels of a sensitivity's derivation: far below where Python's recursion ends."""

MOST = 10**18
"""Whole numbers in JSON, such as counts; rationals are texts, and may be longer."""


class CertificateWrong(ValueError):
    """The document is malformed or a step does not follow. Says nothing about the run itself."""


class CalledWrong(TypeError):
    """The checker was handed something that is no document."""


class Undecided(ArithmeticError):
    """The step may be right, but needs more precision or work than the checker allows."""


_RATIONAL = re.compile(r"(-?[0-9]{1,1500})(?:/([0-9]{1,1500}))?")
"""A fraction of whole numbers, each of up to 1,500 digits."""

_DYADIC = re.compile(r"(-?[0-9]{1,16})p(-?[0-9]{1,4})")
"""m·2^e, written "mpe": a binary64 in exact digits."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object's fields, for `json.loads`; refuse one that names a field twice.

    `json` alone keeps the last of the two, so that two readers of one document could disagree.
    """
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(k for k, n in Counter(k for k, _ in pairs).items() if n > 1)
        raise CertificateWrong(f"expected each field once instead got {twice!r:.80} twice")
    return found


def _no_float(text: str) -> Any:
    """Refuse a number with a point, an exponent, NaN or Infinity: no float enters a proof."""
    raise CertificateWrong(f"expected exact numbers instead got {text:.80}")


def _whole(text: str) -> int:
    """Return a whole number of up to 10^18, for `json.loads`.

    The length is looked at first: `int` takes time that grows with the square of the digits.
    """
    if len(text) > 19 or int(text) > MOST:
        raise CertificateWrong(f"expected whole numbers of up to 10^18 instead got {text[:20]}")
    return int(text)


def parse(document: bytes) -> Any:
    """Return a document's JSON, its size and number of items bounded before it is parsed.

    Raises `CalledWrong` if `document` is no bytes, `CertificateWrong` if it is too large, no JSON
    in UTF-8, nested too deeply, names a field twice, or holds a float.
    """
    if not isinstance(document, bytes):
        raise CalledWrong(f"expected the bytes of a document instead got {type(document).__name__}")
    if len(document) > MAX_BYTES:
        raise CertificateWrong(f"expected up to {MAX_BYTES} bytes instead got {len(document)}")
    if (items := sum(document.count(c) for c in (b"[", b"{", b","))) > MAX_ITEMS:
        raise CertificateWrong(f"expected up to {MAX_ITEMS} items instead got {items}")
    try:
        return json.loads(
            document.decode(),
            object_pairs_hook=_unique,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_whole,
        )
    except RecursionError:
        raise CertificateWrong("expected shallow JSON instead got a deeply nested one") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CertificateWrong(f"expected JSON in UTF-8: {error}") from None


def read_fields(value: Any, *names: str) -> Iterator[Any]:
    """The values of exactly these fields, in this order."""
    if not isinstance(value, dict) or value.keys() != set(names):
        got = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise CertificateWrong(f"expected the fields {sorted(names)} instead got {got!r:.200}")
    return (value[name] for name in names)


def read_list(value: Any) -> list[Any]:
    """Return the value, which must be a list of any length; raise `CertificateWrong` if not."""
    if not isinstance(value, list):
        raise CertificateWrong(f"expected a list instead got {type(value).__name__}")
    return value


def read_pair(value: Any) -> list[Any]:
    """Return the value, which must be a list of two; raise `CertificateWrong` if not."""
    require_equal("length of a pair", len(read_list(value)), 2)
    return read_list(value)


def read_triple(value: Any) -> list[Any]:
    """Return the value, which must be a list of three; raise `CertificateWrong` if not."""
    require_equal("length of a triple", len(read_list(value)), 3)
    return read_list(value)


def read_text(value: Any) -> str:
    """Return the value, which must be a text; raise `CertificateWrong` if not."""
    if not isinstance(value, str):
        raise CertificateWrong(f"expected a text instead got {type(value).__name__}")
    return value


def read_count(value: Any, least: int = 1) -> int:
    """Return the value, which must be a whole number >= `least`; raise `CertificateWrong` if not.

    `type` and not `isinstance`: JSON's true is an `int` to Python.
    """
    if type(value) is not int or value < least:
        raise CertificateWrong(f"expected a whole number >= {least} instead got {value!r:.80}")
    return value


def read_rational(value: Any) -> Fraction:
    """Return the number of a text such as "-3/4" or "12", exactly; it need not be in lowest terms.

    Raises `CertificateWrong` for any other text, and for a denominator of zero.
    """
    found = _RATIONAL.fullmatch(read_text(value))
    if found is None or (found[2] and int(found[2]) == 0):
        raise CertificateWrong(f"expected a rational of up to 1500 digits, got {value!r:.80}")
    return Fraction(int(found[1]), int(found[2] or 1))


def read_dyadic(value: Any, most: Fraction | None = None) -> Fraction:
    """Return the number m·2^e >= 0 of a text "mpe", exactly, as every finite binary64 has one.

    Args:
        value: m is odd or the text is "0p0", so that a number has one spelling only; |e| <= 1100.
        most: the largest number allowed; any, if None.

    Raises `CertificateWrong` for any other text, and for numbers outside [0, most].
    """
    found = _DYADIC.fullmatch(read_text(value))
    if found is None or abs(int(found[2])) > 1100 or (int(found[1]) % 2 == 0 and value != "0p0"):
        raise CertificateWrong(f"expected a number such as '3p-2' instead got {value!r:.80}")
    number = int(found[1]) * Fraction(2) ** int(found[2])
    if number < 0 or (most is not None and number > most):
        raise CertificateWrong(f"expected a number in [0, {most or 'inf'}] instead got {value}")
    return number


def show(value: object) -> str:
    """Short numbers exactly, long ones to 40 digits (they may be too long for `str`)."""
    if isinstance(value, tuple):
        return f"({', '.join(map(show, value))})"
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) >> 160:
        with localcontext(Context(prec=40, traps=[])):
            return str(Decimal(value.numerator) / Decimal(value.denominator))
    return f"{value!s:.300}"


def require_least(what: str, stated: Fraction, least: Fraction) -> None:
    """Raise `CertificateWrong` if the stated bound is smaller than the least that follows."""
    if stated < least:
        raise CertificateWrong(f"expected {what} >= {show(least)} instead got {show(stated)}")


def require_equal(what: str, got: object, expected: object) -> None:
    """Raise `CertificateWrong`, naming both, unless what was got is what was expected."""
    if got != expected:
        raise CertificateWrong(f"expected {what} {show(expected)} instead got {show(got)}")


def require_whole(what: str, number: Fraction) -> None:
    """Raise unless a number of records or coordinates is whole and at least one."""
    if number.denominator != 1 or number < 1:
        raise CertificateWrong(f"expected {what} >= 1, whole, instead got {show(number)}")


def read_kind(mechanism: Any, kind: str, *names: str) -> Iterator[Any]:
    """The fields of a mechanism, which must be of this kind."""
    found, *fields = read_fields(mechanism, "kind", *names)
    require_equal("kind", found, kind)
    return iter(fields)


def read_above(value: Any, least: int, strictly: bool = True) -> Fraction:
    """Return a rational above `least`, or at least that if not `strictly`; raise if it is not."""
    number = read_rational(value)
    if number < least or (strictly and number == least):
        raise CertificateWrong(f"expected a number above {least} instead got {show(number)}")
    return number


def read_delta(value: Any) -> Fraction:
    """Return δ, a rational in (2^-2000, 1).

    The lower end bounds the precision at which a comparison with δ is decided.
    """
    number = read_above(value, 0)
    if number >= 1 or number.denominator.bit_length() - number.numerator.bit_length() > 2000:
        raise CertificateWrong(f"expected delta in (2^-2000, 1) instead got {show(number)}")
    return number
