"""Every key that people write is explained, once, and the schemas admit what the readers admit."""

import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from dpledger.runs import DEMO, read_configuration
from dpledger.runs.documents import FILES, UnknownKey, all_keys, explained, json_schema

ROOT = Path(__file__).parents[2]


def test_every_key_is_explained_in_a_sentence() -> None:
    keys = all_keys()
    assert len(keys) > 90
    for key in keys:
        assert key.text.endswith("."), key
    assert len({(key.file, key.path) for key in keys}) == len(keys)


def test_docstrings_explain_no_key_that_there_is_not() -> None:
    # `json_schema` looks each explained key up among the properties
    for name in FILES:
        assert json_schema(name)["$defs"]


def test_a_key_is_found_by_its_name_and_by_its_path() -> None:
    assert {key.path for key in explained("delta")} == {
        "privacy.delta",
        "promise.delta",
        "releases.delta",
    }
    (found,) = explained("solver.algorithm")
    assert "consensus-admm" in found.allowed
    assert found.default is None


def test_a_section_is_explained_key_by_key() -> None:
    assert {key.path for key in explained("noise")} == {"noise.sampler", "noise.seed"}


def test_an_unknown_key_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownKey, match=r"nearest: 'noise\.seed'"):
        explained("noise.sed")


def test_schemas_know_the_keys_of_the_shipped_files() -> None:
    runs = sorted(DEMO.parent.glob("*.toml"))
    assert all(map(read_configuration, runs))
    files = [*(("run", path) for path in runs), ("schema", ROOT / "data/adult/adult.toml")]
    files += [("claim", path) for path in sorted((ROOT / "docs/gallery").glob("*.toml"))]
    assert len(files) > 12
    for name, path in files:
        schema = json_schema(name)
        top = schema["$defs"][schema["$ref"].rpartition("/")[2]]
        values = tomllib.loads(path.read_text())
        assert set(top["required"]) <= set(values) <= set(top["properties"]), path


def test_published_schemas_are_those_of_the_program() -> None:
    for name in FILES:
        published = (ROOT / f"docs/schemas/{name}.schema.json").read_bytes()
        # as JSON, which knows no tuples
        made = msgspec.json.encode(json_schema(name))
        assert msgspec.json.decode(published) == msgspec.json.decode(made), name


def test_without_docstrings_keys_have_no_meaning_and_commands_answer() -> None:
    command = [sys.executable, "-OO", "-m", "dpledger", "explain", "rounds"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "rounds" in answer.stdout
