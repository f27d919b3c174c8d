"""Law: what two hundred compositions cost does not change, to the last bit where it is exact.

An entry is `exact` where its enclosure comes from ball arithmetic alone. For sampled mechanisms by
privacy profile, NumPy and SciPy choose where the contour of a certified integral runs, so the last
bits of the (valid) enclosure follow the machine's vector instructions, as those of fast answers do.
Two of these are of a tiny delta, of whose sums in doubles digits cancel: they follow it further up.
"""

from typing import Any

import pytest

from .compositions import found, inputs

ENTRIES = inputs()
LAST_BITS = 1e-12
CANCELLED = {"fast poisson, delta 1e-300": 1e-9, "fast poisson delta at epsilon 5.0": 1e-11}


def test_there_are_two_hundred_of_every_kind() -> None:
    assert len(ENTRIES) >= 200
    assert {each["grade"] for each in ENTRIES.values()} == {"enclosed", "fast"}
    assert sum(each["exact"] for each in ENTRIES.values()) >= 150


@pytest.mark.parametrize("name", ENTRIES)
def test_a_composition_costs_what_it_cost(name: str) -> None:
    entry: dict[str, Any] = ENTRIES[name]
    cost = found(entry)
    if entry["exact"]:
        assert cost == entry["cost"]
    else:
        before = [float.fromhex(end) for end in entry["cost"]]
        rel = CANCELLED.get(name, LAST_BITS)
        # absolute 0: a delta of 1e-300 is compared as closely as any
        assert [float.fromhex(end) for end in cost] == pytest.approx(before, rel=rel, abs=0.0)
