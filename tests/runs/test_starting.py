"""First files for one's own table: only its header is read, and what is written can be run."""

import bz2
import gzip
import lzma
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpledger.data import read_schema
from dpledger.data.errors import DataError, SchemaError
from dpledger.data.strict import ConfigurationError, read_toml, toml_value
from dpledger.runs.configuration import Configuration
from dpledger.runs.starting import column_names, run_text, schema_text, write_new

COLUMNS = (
    {"name": "age", "kind": "numeric", "lower": 17.0, "upper": 99.0},
    {"name": "tøwn", "kind": "categorical", "categories": ["north", 'the "old" south']},
    {"name": "income", "kind": "label", "positive": ["high"], "negative": ["low\x7f \U0001f600"]},
)


def test_only_the_first_line_of_a_table_is_read(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    # what follows is no text at all: whoever read it would fail
    table.write_bytes(b'\xef\xbb\xbfage,"town, or city",income\r\n' + b"\xff\xfe" * 1000)
    assert column_names(table) == ("age", "town, or city", "income")


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_a_compressed_table_has_the_header_that_it_is_read_with(
    suffix: str, packed: ModuleType, tmp_path: Path
) -> None:
    table = tmp_path / f"people.csv{suffix}"
    content = packed.compress(b"age,town\n" + b"41,north\n" * 1000)
    table.write_bytes(content)
    assert column_names(table) == ("age", "town")
    table.write_bytes(content[:9])
    with pytest.raises(SchemaError, match="must be a readable file"):
        column_names(table)


@pytest.mark.parametrize(
    "content", [b"", b"\n1,2\n", b"\xff\xfe,a\n", b"a" * (1 << 18), b'"a\nb",c\n']
)
def test_a_header_that_names_nothing_is_refused(tmp_path: Path, content: bytes) -> None:
    table = tmp_path / "people.csv"
    table.write_bytes(content)
    with pytest.raises(SchemaError, match=r"people\.csv"):
        column_names(table)


@pytest.mark.parametrize(
    "record",
    [
        "51,Berlin,secret",
        "secret,-3.5",
        "secret,1980-01-02",
        "secret,$12",
        "secret,",
        "secret,?",
        "secret,secret",
        "secret,NaN",
        "secret,½",
        '"secret, north;12",Berlin',
        "secret 5.1 3.5 1.4",
        "secret   44 north",
        "secret,Main Street 12",
    ],
)
def test_a_first_line_that_may_be_a_record_is_refused_without_a_word_of_it(
    tmp_path: Path, record: str
) -> None:
    table = tmp_path / "people.csv"
    table.write_text(record + "\n")
    with pytest.raises(SchemaError, match="may be a record") as refused:
        column_names(table)
    assert not any(cell in str(refused.value) for cell in ("secret", "Berlin", "1980", "$12"))


@pytest.mark.parametrize(
    "line",
    [
        '{"age": 44, "town": "secret", "income": "high"}',
        '["secret", "high"]',
        "{'age': 44, 'town': 'secret'}",
        "<record><name>secret</name></record>",
        "name: secret",
        "- name: secret",
        "user=secret",
        "INSERT INTO people VALUES ('secret', 44)",
        "secret@example.org,high",
        "secret~north~high",
        "secret^north",
    ],
)
def test_a_line_of_another_kind_of_file_is_no_header(tmp_path: Path, line: str) -> None:
    """The first record of JSON lines was written into the schema, value by value."""
    table = tmp_path / "people.jsonl"
    table.write_text(line + "\n")
    with pytest.raises(SchemaError, match="may be a record") as refused:
        column_names(table)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("divider", [";", "\t", "|"])
def test_a_line_that_something_else_divides_is_refused_without_a_word_of_it(
    tmp_path: Path, divider: str
) -> None:
    table = tmp_path / "people.csv"
    table.write_text(divider.join(["secret", "high", "12"]) + "\n")
    with pytest.raises(SchemaError, match="seems to divide") as refused:
        column_names(table)
    assert "secret" not in str(refused.value)
    table.write_text(divider.join(["town", "income"]) + "\n")
    assert column_names(table, delimiter=divider) == ("town", "income")


def test_a_parquet_file_gives_its_columns_names_and_nothing_of_its_records(tmp_path: Path) -> None:
    """Its first bytes are the words of its first column, which were taken for a name."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = tmp_path / "people.parquet"
    content = arrow.table({"job": ["technician", "secret"] * 5, "family": ["single"] * 10})
    parquet.write_table(content, table, compression="none")
    assert column_names(table) == ("job", "family")
    # the same bytes under another name are no text
    other = tmp_path / "people.csv"
    other.write_bytes(table.read_bytes())
    with pytest.raises(SchemaError, match=r"control characters|UTF-8") as refused:
        column_names(other)
    assert "secret" not in str(refused.value)
    headless = arrow.table({"job": ["a"], "51": ["b"]})
    parquet.write_table(headless, table)
    with pytest.raises(SchemaError, match="may be a record"):
        column_names(table)
    table.write_bytes(b"job,family\n")
    with pytest.raises(DataError, match="Parquet"):
        column_names(table)


def test_a_file_with_control_characters_is_no_text(tmp_path: Path) -> None:
    """Whatever its name says."""
    table = tmp_path / "people.csv"
    table.write_bytes(b"PAR1\x15\x04\x06\x00\x00\x00single\n")
    with pytest.raises(SchemaError, match="control characters") as refused:
        column_names(table)
    assert "single" not in str(refused.value)
    arrays = tmp_path / "people.npy"
    np.save(arrays, np.ones(3))
    with pytest.raises(SchemaError, match="NumPy"):
        column_names(arrays)


def test_names_that_are_no_numbers_are_a_header(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_text(
        "_id,% growth,Größe,x1,education-num,nationality,infant,#no,年齢,temp. [°C],pay ($/h)\n"
    )
    assert len(column_names(table)) == 11


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_texts_are_written_as_toml(text: str) -> None:
    assert tomllib.loads(f"x = {toml_value([text, True, 1.5])}")["x"] == [text, True, 1.5]


def test_a_written_schema_says_what_was_answered(tmp_path: Path) -> None:
    path = tmp_path / "people.schema.toml"
    write_new(path, schema_text(COLUMNS, {"row_bound": 2.0, "delimiter": ";"}))
    schema = read_schema(path)
    assert schema.feature_names == ("age", "tøwn=north", 'tøwn=the "old" south')
    assert (schema.row_bound, schema.delimiter, schema.header) == (2.0, ";", True)


def test_answers_that_make_no_schema_are_refused_before_anything_is_written() -> None:
    backwards = [{**COLUMNS[0], "lower": 99.0, "upper": 17.0}, *COLUMNS[1:]]
    with pytest.raises(ConfigurationError, match="lower=99"):
        schema_text(backwards, {"row_bound": 1.0})


def test_a_written_run_is_read_as_it_was_said_and_its_comments_are_the_defaults(
    tmp_path: Path,
) -> None:
    sections = {
        "data": {"train_records": 48, "parties": 4},
        "privacy": {"adjacency": "replace-one", "epsilon": 2.0, "delta": 1e-5},
        "solver": {"algorithm": "dp-admm", "rounds": 6},
        "noise": {"sampler": "system"},
    }
    text = run_text(sections)
    path = tmp_path / "run.toml"
    write_new(path, text)
    found = read_toml(path, Configuration)
    # a default that is written out is the default
    assert "\n# penalty = 0.1 " in text
    path.write_text(text.replace("# penalty = 0.1 ", "penalty = 0.1 "))
    assert read_toml(path, Configuration) == found


def test_nothing_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("mine")
    with pytest.raises(ConfigurationError, match="must not exist"):
        write_new(path, "theirs")
    assert path.read_text() == "mine"
