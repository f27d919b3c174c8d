"""Events are of what a ledger can write and read back."""

from collections.abc import Callable
from typing import Any

import pytest

from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    GaussianStep,
    InvalidParameter,
    declared,
)
from dpledger.mechanisms.events import AccumulatedPoisson, Parties, UnprotectedRelease

STEP = GaussianStep(declared(1, "example", adjacency=Adjacency.ZERO_OUT_ONE), 2.0)


@pytest.mark.parametrize("name", [5, None, True, float("nan"), ("a",), b"a"])
def test_a_party_is_named_by_a_text(name: Any) -> None:
    """Another name was written as a text, after which the ledger's file could not be read."""
    with pytest.raises(InvalidParameter, match="parties named by texts"):
        Parties(((name, (STEP,)),))


ODD: dict[str, Callable[[Any], object]] = {
    "audience": lambda audience: Context((), 1, "x", audience),
    "reason": UnprotectedRelease,
    "batches": lambda batches: AccumulatedPoisson(STEP, 0.1, batches),
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("audience", "public"),
        ("audience", Adjacency.REPLACE_ONE),
        ("reason", 5),
        ("reason", b"x"),
        ("reason", " "),
        ("batches", 10**400),
        ("batches", 0),
    ],
)
def test_an_odd_field_is_refused_by_its_name(field: str, value: object) -> None:
    with pytest.raises(InvalidParameter, match=f"^{field}="):
        ODD[field](value)


def test_what_is_not_odd_is_taken() -> None:
    assert Context((), 1, "x", Audience.PUBLIC).audience is Audience.PUBLIC
    assert AccumulatedPoisson(STEP, 0.1, 10**18).batches == 10**18
    assert Parties((("a", (STEP,)),)).parts[0][0] == "a"
