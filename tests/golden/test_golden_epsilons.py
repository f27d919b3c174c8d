"""Law: what two hundred compositions cost does not change, to the last bit where it is exact.

An entry is `exact` where its enclosure comes from ball arithmetic alone. For sampled mechanisms by
privacy profile, NumPy and SciPy choose where the contour of a certified integral runs, so the last
bits of the (valid) enclosure follow the machine's vector instructions. Of fast answers, sums in
doubles, up to eight digits cancel, so that these follow it from their eleventh digit on.
"""

from typing import Any

import pytest

from .compositions import found, inputs

ENTRIES = inputs()
LAST_BITS = 1e-12
CANCELLED = 1e-9


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
        rel = CANCELLED if entry["grade"] == "fast" else LAST_BITS
        # absolute 0: a delta of 1e-300 is compared as closely as any
        assert [float.fromhex(end) for end in cost] == pytest.approx(before, rel=rel, abs=0.0)
