"""Schemas: strict TOML, with the nearest known word for an unknown one."""

from pathlib import Path

import pytest

from dpledger.data import (
    OnOutside,
    PartyColumn,
    SchemaError,
    UnreadableFile,
    parse_schema,
    read_schema,
)

AGE = {"kind": '"numeric"', "name": '"age"', "lower": "0", "upper": "99"}
SEX = {"kind": '"categorical"', "name": '"sex"', "categories": '["F", "M"]'}
INCOME = {"kind": '"label"', "name": '"income"', "positive": '["high"]', "negative": '["low"]'}
SPECIES = {"kind": '"class"', "name": '"species"', "classes": '["setosa", "virginica"]'}
HOSPITAL = {"kind": '"party"', "name": '"hospital"', "parties": '["north", "south"]'}
TOP = {"row_bound": "1.0"}


def written(*columns: dict[str, str], top: dict[str, str] = TOP, **changes: dict[str, str]) -> str:
    """TOML of a schema with the given columns; `changes` replaces keys of a column by its name."""
    lines = [f"{key} = {value}" for key, value in top.items()]
    for column in columns:
        changed = column | changes.get(column["name"].strip('"'), {})
        lines += ["[[columns]]", *(f"{key} = {value}" for key, value in changed.items())]
    return "\n".join(lines)


def test_keys_are_read_and_features_are_named_in_order() -> None:
    schema = parse_schema(written(SEX, INCOME, AGE, HOSPITAL, top=TOP | {"on_outside": '"clip"'}))
    assert schema.feature_names == ("sex=F", "sex=M", "age")
    assert schema.label.name == "income"
    assert schema.party == PartyColumn(name="hospital", parties=("north", "south"))
    assert schema.on_outside is OnOutside.CLIP


def test_nothing_is_altered_or_dropped_unless_the_schema_says_so() -> None:
    schema = parse_schema(written(AGE, INCOME))
    assert schema.on_outside is OnOutside.REFUSE
    assert not schema.drop_missing
    assert schema.missing == ("",)


BAD = {
    "not TOML": ("row_bound = = 1", r"schema: Expected TOML \(.*line 1"),
    "unknown key": (
        written(AGE, INCOME, top=TOP | {"on_outsid": '"clip"'}),
        r"unknown field `on_outsid`, expected among .*\(nearest: 'on_outside'\)",
    ),
    "unknown key of a column": (
        written(AGE, INCOME, age={"uper": "9"}),
        r"`uper` - at `\$.columns\[0\]`, expected among 'kind', 'name', .*\(nearest: 'upper'\)",
    ),
    "key of another kind of column": (
        written(AGE, SEX, INCOME, sex={"lower": "0"}),
        r"`lower` - at `\$.columns\[1\]`, expected among 'kind', 'name', 'categories'\.",
    ),
    "unknown kind": (
        written(AGE, INCOME, age={"kind": '"numerc"'}),
        r"'numerc' .*expected among .*\(nearest: 'numeric'\)",
    ),
    "unknown rule": (
        written(AGE, INCOME, age={"on_outside": '"clop"'}),
        r"'clop' .*expected among 'clip', 'refuse' \(nearest: 'clip'\)",
    ),
    "no bounds": (
        written({k: v for k, v in AGE.items() if k != "upper"}, INCOME),
        r"missing required field `upper` - at `\$.columns\[0\]`",
    ),
    "no row bound": (written(AGE, INCOME, top={}), "missing required field `row_bound`"),
    "row bound zero": (
        written(AGE, INCOME, top={"row_bound": "0.0"}),
        r"row_bound=0.0 must be in \[1e-100, 1e\+100\]",
    ),
    "row bound NaN": (written(AGE, INCOME, top={"row_bound": "nan"}), "row_bound=nan"),
    "bounds in the wrong order": (
        written(AGE, INCOME, age={"lower": "100"}),
        r"Expected finite lower=100.0 < upper=99.0 - at `\$.columns\[0\]`",
    ),
    "bounds equal": (written(AGE, INCOME, age={"lower": "99"}), "finite lower=99.0 < upper=99.0"),
    "bound infinite": (written(AGE, INCOME, age={"upper": "inf"}), "finite lower=0.0 < upper=inf"),
    "bound NaN": (written(AGE, INCOME, age={"lower": "nan"}), "finite lower=nan"),
    "bound as text": (written(AGE, INCOME, age={"upper": '"99"'}), "Expected `float`, got `str`"),
    "no category": (written(SEX, INCOME, sex={"categories": "[]"}), r"categories=\[\]"),
    "category twice": (
        written(SEX, INCOME, sex={"categories": '["F", "F"]'}),
        r"categories=\['F', 'F'\] must be one or more different words",
    ),
    "category with a blank": (
        written(SEX, INCOME, sex={"categories": '["F "]'}),
        "without outer blanks",
    ),
    "label in both classes": (
        written(AGE, INCOME, income={"negative": '["high"]'}),
        r"positive \+ negative=\['high', 'high'\]",
    ),
    "one class": (
        written(AGE, SPECIES, species={"classes": '["setosa"]'}),
        r"classes=\['setosa'\] must be two or more words",
    ),
    "class twice": (
        written(AGE, SPECIES, species={"classes": '["setosa", "setosa"]'}),
        r"classes=\['setosa', 'setosa'\] must be one or more different words",
    ),
    "label and class": (written(AGE, INCOME, SPECIES), "instead got 2, 0 and 1"),
    "two labels": (
        written(AGE, INCOME, INCOME | {"name": '"other"'}),
        "instead got 2, 0 and 1",
    ),
    "two parties": (
        written(AGE, INCOME, HOSPITAL, HOSPITAL | {"name": '"other"'}),
        "instead got 1, 2 and 1",
    ),
    "no feature": (written(INCOME), "instead got 1, 0 and 0"),
    "column twice": (written(AGE, AGE, INCOME), r"column names=\['age', 'age', 'income'\]"),
    "delimiter of two characters": (
        written(AGE, INCOME, top=TOP | {"delimiter": '"::"'}),
        "delimiter='::' must be one character",
    ),
    "empty comment": (
        written(AGE, INCOME, top=TOP | {"comment": '""'}),
        "Expected comment to be at least one character",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_a_bad_schema_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_schema(text)


def test_a_schema_without_a_label_is_for_statistics_only() -> None:
    schema = parse_schema(written(AGE, SEX))
    with pytest.raises(SchemaError, match="one label or class column"):
        _ = schema.label


@pytest.mark.parametrize(
    "text",
    [
        "row_bound = " + "1" * 5000,
        "row_bound = " + "[" * 5000,
        "row_bound = " + "{a=" * 5000,
        "a" + ".a" * 5000 + " = 1",
        "row_bound = 'unclosed",
        "\0",
        "",
    ],
    ids=["digits", "lists", "tables", "dots", "text", "null", "nothing"],
)
def test_no_text_ends_in_another_error_than_the_schemas(text: str) -> None:
    with pytest.raises(SchemaError) as refused:
        parse_schema(text, source="people.toml")
    assert str(refused.value).startswith("people.toml: ")
    assert len(str(refused.value)) < 500


def test_a_schema_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "people.toml"
    path.write_text("#" * (1 << 23))
    with pytest.raises(SchemaError, match=r"people\.toml: Expected at most \d+ bytes"):
        read_schema(path)


def test_a_schema_of_thousands_of_columns_is_read() -> None:
    columns = [AGE | {"name": f'"{k}"', "lower": "0.5"} for k in range(3000)]
    assert len(parse_schema(written(*columns, INCOME)).columns) == 3001


def test_a_message_names_the_schema_file(tmp_path: Path) -> None:
    file = tmp_path / "people.toml"
    file.write_text(written(AGE, INCOME, age={"uper": "9"}))
    with pytest.raises(SchemaError, match=r"people\.toml: Object contains unknown field `uper`"):
        read_schema(file)


def test_a_missing_schema_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"absent\.toml: Expected a readable TOML file"):
        read_schema(tmp_path / "absent.toml")


def test_a_schema_that_windows_wrote_reads_as_any_other(tmp_path: Path) -> None:
    plain, windows, wide = (tmp_path / name for name in ("plain.toml", "windows.toml", "wide.toml"))
    text = written(AGE, INCOME)
    plain.write_bytes(text.encode())
    windows.write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    wide.write_bytes(text.encode("utf-16"))
    assert read_schema(windows) == read_schema(plain)
    with pytest.raises(UnreadableFile, match=r"wide\.toml: .* in UTF-8"):
        read_schema(wide)
