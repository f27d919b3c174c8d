"""`dpledger init` and `dpledger explain` as a user calls them."""

import io
import json
import sys
from pathlib import Path

import pytest

from dpledger.runs.documents import all_keys

from ..golden.commands import write_people
from .conftest import Call

ANSWERS = """numeric
0
100
categorical
north, south, west
label
high
low
48
4
2
1e-5
"""


def test_a_table_becomes_a_run_that_plans(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO(ANSWERS))
    made = call("init", "people.csv", "--json")
    assert made.data["columns"] == ["age", "town", "income"]
    planned = call("plan", made.data["run"], "--json")
    assert planned.data["guarantee"]["grade"] == "proved"
    assert planned.data["guarantee"]["epsilon"]["upper"] <= 2.0
    # nothing is written over
    monkeypatch.setattr(sys, "stdin", io.StringIO(ANSWERS))
    assert "must not exist" in call("init", "people.csv").err


def test_a_template_is_refused_until_it_says_what_is_public(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(tmp_path)
    monkeypatch.chdir(tmp_path)
    made = call("init", "people.csv", "--template", "--json")
    refused = call("plan", made.data["run"])
    assert refused.status == 2
    assert "columns[0].kind" in refused.err
    assert "'numeric'" in refused.err


def test_keys_are_explained_one_or_all(call: Call) -> None:
    assert "may escape epsilon" in call("explain", "privacy.delta").out
    assert len(call("explain", "--json").data["keys"]) == len(all_keys())
    assert json.loads(call("explain", "--json-schema", "claim").out)["$defs"]["ClaimFile"]
