"""Records from files: what is read, what is refused, and that a row depends on its record only.

Laws:
- a file means the same records whether it is text, compressed text or NumPy;
- a number is mapped from its bounds onto [0, 1]: outside, it is clipped or refused, as declared;
- changing, adding or leaving out one record leaves the rows of all others as they are (1-stable);
- whatever is wrong is named by file, row, column, value and what is allowed.
"""

import bz2
import csv
import gzip
import io
import lzma
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dpledger.data import (
    BadValue,
    DataError,
    EmptyParty,
    LabelledRecords,
    MissingExtra,
    NoRecords,
    Schema,
    UnreadableFile,
    WrongColumns,
    load_records,
    load_table,
    parse_schema,
)
from dpledger.data.encoding import load_unlabelled
from dpledger.data.files import read_arrays, read_table
from dpledger.mechanisms import ClassLabels, EventList, SamplingCurator, SeededSampler

COLUMNS = """
[[columns]]
kind = "numeric"
name = "age"
lower = 0
upper = 100
[[columns]]
kind = "categorical"
name = "job"
categories = ["clerk", "cook", "carpenter"]
[[columns]]
kind = "numeric"
name = "hours"
lower = -10
upper = 10
on_outside = "clip"
[[columns]]
kind = "ignored"
name = "id"
[[columns]]
kind = "party"
name = "town"
parties = ["north", "south"]
[[columns]]
kind = "label"
name = "income"
positive = ["high", "1"]
negative = ["low", "0"]
"""
ROW_BOUND = 8.0  # above sqrt(3), the longest row of three entries in [0, 1]: nothing is scaled
SCHEMA = parse_schema(f"row_bound = {ROW_BOUND}\n{COLUMNS}")
DROPPING = parse_schema(
    f'row_bound = {ROW_BOUND}\ndrop_missing = true\nmissing = ["?", ""]\n{COLUMNS}'
)
NUMBERS = parse_schema("""
row_bound = 2.0
columns = [
    {kind = "numeric", name = "x", lower = 0, upper = 2},
    {kind = "numeric", name = "y", lower = -1, upper = 1},
    {kind = "label", name = "class", positive = ["1"], negative = ["0", "-1"]},
]
""")
HEADER = "age,job,hours,id,town,income"
GOOD = f"{HEADER}\n25,cook,0,a,north,high\n100,clerk,10,b,south,low\n0,carpenter,-10,c,south,high\n"


def load(text: str, folder: Path, schema: Schema = SCHEMA) -> LabelledRecords:
    file = folder / "people.csv"
    file.write_text(text)
    return load_records(file, schema=schema)


def dense(records: LabelledRecords) -> list[list[float]]:
    assert sparse.issparse(records.features)
    rows: list[list[float]] = records.features.toarray().tolist()
    return rows


def test_a_text_file_becomes_the_rows_that_its_schema_says(tmp_path: Path) -> None:
    records = load(GOOD, tmp_path)
    assert records.feature_names == ("age", "job=clerk", "job=cook", "job=carpenter", "hours")
    assert dense(records) == [[0.25, 0, 1, 0, 0.5], [1, 1, 0, 0, 1], [0, 0, 0, 1, 0]]
    assert records.labels.tolist() == [1, -1, 1]
    assert records.parties == ("north", "south")
    assert records.party_of.tolist() == [0, 1, 1]
    assert (records.row_bound, records.description) == (ROW_BOUND, "people.csv")


def test_classes_become_their_numbers_in_the_order_of_the_schema(tmp_path: Path) -> None:
    schema = parse_schema("""
    row_bound = 1.0
    columns = [
        {kind = "numeric", name = "petal", lower = 0, upper = 8},
        {kind = "class", name = "species", classes = ["virginica", "setosa", "7"]},
    ]
    """)
    records = load("petal,species\n4,setosa\n8,virginica\n0,7\n2,setosa\n", tmp_path, schema)
    assert records.labels.tolist() == [1, 0, 2, 1]
    assert records.label_domain == ClassLabels(3)
    np.savez(tmp_path / "one.npz", petal=[1.0], species=[7])
    assert load_records(tmp_path / "one.npz", schema=schema).labels.tolist() == [2]
    place = r"people\.csv, line 2: species='setos' must be among .* \(nearest: 'setosa'\)"
    with pytest.raises(BadValue, match=place):
        load("petal,species\n4,setos\n", tmp_path, schema)


def test_columns_are_found_by_name_in_any_order(tmp_path: Path) -> None:
    rows = [line.split(",") for line in GOOD.split()]
    turned = "\n".join(",".join(reversed(row)) for row in rows)
    assert dense(load(turned, tmp_path)) == dense(load(GOOD, tmp_path))


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_compressed_text_means_the_same(suffix: str, compress, tmp_path: Path) -> None:
    file = tmp_path / f"people.csv{suffix}"
    file.write_bytes(compress(GOOD.encode()))
    assert dense(load_records(file, schema=SCHEMA)) == dense(load(GOOD, tmp_path))
    file.write_bytes(compress(GOOD.encode())[:-12])
    with pytest.raises(UnreadableFile, match=rf"people\.csv\{suffix}: Expected a readable file"):
        load_records(file, schema=SCHEMA)


def test_dialect_and_comments_are_as_declared(tmp_path: Path) -> None:
    schema = parse_schema(
        f'row_bound = 8.0\ndelimiter = ";"\nheader = false\ncomment = "#"\n{COLUMNS}'
    )
    text = '\ufeff# by hand\n25; "cook"; 0 ;a;north;high\n\n# more\n9;clerk;0;"x;y";south;low\n'
    records = load(text, tmp_path, schema)
    assert dense(records) == [[0.25, 0, 1, 0, 0.5], [0.09, 1, 0, 0, 0.5]]
    with pytest.raises(BadValue, match=r"people\.csv, line 5: age='x'"):
        load(text.replace("9;", "x;"), tmp_path, schema)


def test_several_files_are_read_in_turn(tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(f"{HEADER}\n25,cook,0,a,north,high\n")
    second.write_text(f"{HEADER}\n100,clerk,10,b,south,low\n0,carpenter,-10,c,south,high\n")
    (tmp_path / "again.csv").hardlink_to(first)
    for again in (tmp_path / "." / first.name, tmp_path / "again.csv"):
        with pytest.raises(DataError, match="listed once"):
            load_records([first, second, again], schema=SCHEMA)
    both = load_records([first, second], schema=SCHEMA)
    assert dense(both) == dense(load(GOOD, tmp_path))
    assert both.description == "first.csv, second.csv"
    second.write_text(f"{HEADER}\n100,clark,10,b,south,low\n")
    with pytest.raises(BadValue, match=r"second\.csv, line 2: job='clark'"):
        load_records([first, second], schema=SCHEMA)


def test_a_numpy_matrix_has_its_columns_in_the_order_of_the_schema(tmp_path: Path) -> None:
    file = tmp_path / "numbers.npy"
    np.save(file, np.array([[1.0, 1.0, 1.0], [2.0, 0.0, -1.0]]))
    records = load_records(file, schema=NUMBERS)
    assert isinstance(records.features, np.ndarray)
    assert records.features.tolist() == [[0.5, 1.0], [1.0, 0.5]]
    assert records.labels.tolist() == [1.0, -1.0]


def test_numpy_files_with_names_have_columns_by_name(tmp_path: Path) -> None:
    structured = tmp_path / "structured.npy"
    kinds = [("class", "i8"), ("y", "f4"), ("x", "f8")]
    np.save(structured, np.array([(1, 1.0, 1.0), (0, 0.0, 2.0)], dtype=kinds))
    named = tmp_path / "named.npz"
    np.savez(named, x=[1.0, 2.0], y=[1, 0], **{"class": np.array(["1", "0"])})
    for file in (structured, named):
        records = load_records(file, schema=NUMBERS)
        assert np.asarray(records.features).tolist() == [[0.5, 1.0], [1.0, 0.5]]
        assert records.labels.tolist() == [1.0, -1.0]


def test_a_matrix_in_an_npz_file_gives_numbered_columns(tmp_path: Path) -> None:
    schema = parse_schema("""
    row_bound = 2.0
    columns = [
        {kind = "numeric", name = "x[0]", lower = 0, upper = 2},
        {kind = "numeric", name = "x[1]", lower = -1, upper = 1},
        {kind = "label", name = "y", positive = ["1"], negative = ["-1"]},
    ]
    """)
    file = tmp_path / "xy.npz"
    np.savez(file, x=[[1.0, 1.0], [2.0, 0.0]], y=[1, -1])
    records = load_records(file, schema=schema)
    assert np.asarray(records.features).tolist() == [[0.5, 1.0], [1.0, 0.5]]


def test_a_parquet_file_means_the_same_as_text(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table(
        {
            "age": [25, 100, 0],
            "job": ["cook", "clerk", "carpenter"],
            "hours": [0.0, 10.0, -10.0],
            "id": [None, None, None],
            "town": ["north", "south", "south"],
            "income": [1, 0, 1],
        }
    )
    parquet.write_table(table, tmp_path / "people.parquet")
    records = load_records(tmp_path / "people.parquet", schema=SCHEMA)
    assert dense(records) == dense(load(GOOD, tmp_path))
    assert records.labels.tolist() == [1, -1, 1]
    gap = table.set_column(0, "age", pyarrow.array([25, None, 0]))
    parquet.write_table(gap, tmp_path / "people.parquet")
    with pytest.raises(BadValue, match=r"people\.parquet, row 2: age=None must be there"):
        load_records(tmp_path / "people.parquet", schema=SCHEMA)
    (tmp_path / "people.parquet").write_text(GOOD)
    with pytest.raises(UnreadableFile, match=r"people\.parquet: Expected a Parquet file"):
        load_records(tmp_path / "people.parquet", schema=SCHEMA)


def test_a_folder_of_parquet_files_is_refused(tmp_path: Path) -> None:
    # the names of its folders would be numbers, or texts, as one record's cell decides for all
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"age": [25, 30], "town": ["0417", "A1"]})
    parquet.write_to_dataset(table, tmp_path / "people.parquet", partition_cols=["town"])
    with pytest.raises(UnreadableFile, match=r"people\.parquet: Expected a readable file"):
        load_records(tmp_path / "people.parquet", schema=SCHEMA)


def test_parquet_without_its_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtra, match=r"pip install 'dpledger\[parquet\]'"):
        load_records(tmp_path / "people.parquet", schema=SCHEMA)


def test_a_number_outside_is_clipped_or_refused_as_its_column_says(tmp_path: Path) -> None:
    clipped = load(GOOD.replace(",0,a", ",-99,a").replace(",10,b", ",1e300,b"), tmp_path)
    assert [row[4] for row in dense(clipped)] == [0.0, 1.0, 0.0]
    place = r"people\.csv, line 3: age='101' must be a finite number in \[0, 100\]\."
    with pytest.raises(BadValue, match=place):
        load(GOOD.replace("100,", "101,"), tmp_path)
    lenient = parse_schema(f'row_bound = 8.0\non_outside = "clip"\n{COLUMNS}')
    assert dense(load(GOOD.replace("100,", "101,"), tmp_path, lenient))[1][0] == 1.0


def test_records_with_missing_values_are_dropped_only_when_declared(tmp_path: Path) -> None:
    text = GOOD + "?,cook,0,d,north,high\n7,,0,e,north,high\n50,clerk,0,?,north,low\n"
    records = load(text, tmp_path, DROPPING)
    # the last record misses only a column that is not read
    assert [row[0] for row in dense(records)] == [0.25, 1.0, 0.0, 0.5]
    # a record that is dropped is not looked at further
    wrong = text.replace("7,,0,e,north", "-7,,0,e,nowhere")
    assert dense(load(wrong, tmp_path, DROPPING)) == dense(records)
    # the rows of what remains keep the line numbers of the file
    with pytest.raises(BadValue, match=r"line 7: job='chef'"):
        load(text.replace("50,clerk", "50,chef"), tmp_path, DROPPING)


def test_nan_in_an_array_is_missing_only_when_declared(tmp_path: Path) -> None:
    file = tmp_path / "numbers.npy"
    np.save(file, np.array([[1.0, 1.0, 1.0], [np.nan, 0.0, 0.0], [-9.0, 0.0, 0.0]]))
    with pytest.raises(BadValue, match=r"numbers\.npy, row 2: x=nan must be a finite"):
        load_records(file, schema=NUMBERS)
    columns = NUMBERS.columns
    marked = Schema(columns=columns, row_bound=2.0, missing=("nan", "-9"), drop_missing=True)
    assert len(load_records(file, schema=marked)) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("25,", "abc,", r"line 2: age='abc' must be a finite number in \[0, 100\]\."),
        ("25,", "2_5,", r"line 2: age='2_5' must be a finite number"),
        ("25,", "nan,", r"line 2: age='nan' must be a finite number"),
        (",0,a", ",inf,a", r"line 2: hours='inf' must be a finite number in \[-10, 10\]\."),
        (",0,a", ",-1e999,a", r"line 2: hours='-1e999' must be a finite number"),
        ("100,", ",", r"line 3: age='' must be there \(drop_missing = true skips"),
        (
            "clerk",
            "cark",
            r"line 3: job='cark' must be among 'clerk', 'cook', 'carpenter' \(nearest: 'clerk'\)",
        ),
        ("south,low", "south,medium", r"line 3: income='medium' must be among 'high', '1', 'low'"),
        ("south,low", "west,low", r"line 3: town='west' must be among 'north', 'south'\."),
    ],
)
def test_a_bad_cell_is_named_by_file_row_column_value_and_what_is_allowed(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(BadValue, match=rf"people\.csv, {message}") as caught:
        load(GOOD.replace(old, new, 1), tmp_path)
    # workers hand errors back by pickling them
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", NoRecords, r"people\.csv: Expected a line of column names instead got an empty file"),
        (HEADER, NoRecords, r"people\.csv: Expected at least one record instead got none"),
        (
            GOOD.replace("age", "agee"),
            WrongColumns,
            r"people\.csv: column 'agee' must be among 'age', .* \(nearest: 'age'\); kind =",
        ),
        (
            "\n".join(line.split(",", 1)[1] for line in GOOD.split()),
            WrongColumns,
            r"people\.csv: column 'age' of the schema must be among 'job', 'hours', 'id', 'town',",
        ),
        (
            GOOD.replace("hours", "age"),
            WrongColumns,
            r"people\.csv: Expected column 'age' once instead got it twice",
        ),
        (
            GOOD.replace("100,clerk", "100,tall,clerk"),
            WrongColumns,
            r"people\.csv, line 3: Expected 6 values instead got 7",
        ),
        (
            GOOD.replace("north", "south"),
            EmptyParty,
            r"people\.csv: Expected party 'north' to hold a record instead got none",
        ),
        (
            GOOD.replace(",", ";"),
            WrongColumns,
            r"people\.csv: column 'age;.* divided by ';': say delimiter in the schema",
        ),
        (GOOD + '"open quote', UnreadableFile, r"people\.csv: Expected a readable file"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(
    text: str, kind: type[DataError], message: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        load(text, tmp_path)


@pytest.mark.parametrize(
    "lines",
    [
        ['south,"urgent', *["south,fine"] * 50, 'north,screen of 5"', "north,fine"],
        ['south,"see', '#3"', *["south,fine"] * 50, 'north,"', 'south,later"', "north,fine"],
        ['south,"one', 'record"'],
    ],
)
def test_a_record_is_one_line(lines: list[str], tmp_path: Path) -> None:
    """Two stray quotes, or a comment's sign in a quoted cell, joined all lines between."""
    schema = """
row_bound = 1.0
comment = "#"
[[columns]]
kind = "categorical"
name = "town"
categories = ["north", "south"]
[[columns]]
kind = "ignored"
name = "note"
"""
    file = tmp_path / "people.csv"
    file.write_text("\n".join(["town,note", *lines]) + "\n")
    with pytest.raises(UnreadableFile, match="line 2: Expected a record on one line") as refused:
        load_table(file, schema=parse_schema(schema), adjacency="add-remove-one", records=1)
    assert "urgent" not in str(refused.value)


def test_nothing_left_after_dropping_is_refused(tmp_path: Path) -> None:
    text = f"{HEADER}\n?,cook,0,a,north,high\n"
    with pytest.raises(NoRecords, match=r"people\.csv: Expected a record without missing values"):
        load(text, tmp_path, DROPPING)
    with pytest.raises(NoRecords, match="Expected at least one file"):
        load_records([], schema=SCHEMA)


@pytest.mark.parametrize("name", ["absent.csv", "absent.csv.gz", "absent.npy", "absent.npz"])
def test_a_missing_file_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=rf"{name}: Expected a readable file \(.*No such file"):
        load_records(tmp_path / name, schema=SCHEMA)


@pytest.mark.parametrize("name", ["people.csv", "people.csv.xz", "people.npy", "people.npz"])
def test_a_file_of_another_kind_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x93\xff\x00\x01 no such format")
    with pytest.raises(UnreadableFile, match=rf"{name}(: Expected a| must be text in UTF-8)"):
        load_records(tmp_path / name, schema=SCHEMA)


def test_arrays_that_would_run_code_or_have_no_columns_are_refused(tmp_path: Path) -> None:
    pickled = tmp_path / "pickled.npy"
    np.save(pickled, np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableFile, match=r"pickled\.npy: Expected a NumPy file of plain"):
        load_records(pickled, schema=NUMBERS)
    narrow = tmp_path / "narrow.npy"
    np.save(narrow, np.zeros((4, 2)))
    with pytest.raises(WrongColumns, match=r"shape \(n, 3\), .* instead got \(4, 2\)"):
        load_records(narrow, schema=NUMBERS)
    ragged = tmp_path / "ragged.npz"
    np.savez(ragged, x=[1.0, 2.0], y=[1.0], **{"class": [1, 0]})
    with pytest.raises(WrongColumns, match=r"one length instead got .*'y': 1"):
        load_records(ragged, schema=NUMBERS)


FORGED = {
    "a petabyte": "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000,), }",
    "no machine's length": f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**23},), }}",
    "a truth value": "{'descr': '<f8', 'fortran_order': False, 'shape': (True,), }",
    "a list for a key": "{'descr': '<f8', [1]: False, 'shape': (2,), }",
    "many brackets": "{'descr': " + "(" * 3000 + ")" * 3000 + "}",
}


def with_header(header: str) -> bytes:
    """Return a .npy file of 64 bytes of numbers under a header of one's own."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)


# once: some were tracebacks
@pytest.mark.parametrize("name", FORGED)
def test_headers_that_no_array_fits_are_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    plain, archive = tmp_path / "x.npy", tmp_path / "x.npz"
    plain.write_bytes(with_header(FORGED[name]))
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("a.npy", plain.read_bytes())
    for path in (plain, archive):
        with pytest.raises(UnreadableFile, match=r"Expected a NumPy file of plain arrays"):
            read_arrays(path)


def test_no_message_advises_to_read_a_pickle(tmp_path: Path) -> None:
    (tmp_path / "scores.npy").write_text("1,2\n")
    with pytest.raises(UnreadableFile, match=r"plain arrays \(numpy\.save writes one\)"):
        read_arrays(tmp_path / "scores.npy")


def test_a_spreadsheet_is_told_how_to_become_text(tmp_path: Path) -> None:
    (tmp_path / "people.xlsx").write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(UnreadableFile, match=r"people\.xlsx must be .*; save the sheet as CSV"):
        read_table(tmp_path / "people.xlsx", SCHEMA)


JOBS = ("clerk", "cook", "carpenter")
PEOPLE = st.lists(
    st.tuples(
        st.floats(0, 100),
        st.sampled_from(JOBS),
        st.floats(-1e6, 1e6),
        st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=5),
        st.sampled_from(("north", "south")),
        st.sampled_from(("high", "low")),
    ),
    min_size=1,
    max_size=12,
)
# towns as categories: a schema with parties would refuse files in which one town has nobody
TOWNS = COLUMNS.replace('kind = "party"', 'kind = "categorical"').replace("parties", "categories")
UNSCALED = parse_schema(f"row_bound = {ROW_BOUND}\n{TOWNS}")
SCALED = parse_schema(f"row_bound = 1.0\n{TOWNS}")


def encoded(people: list[tuple[object, ...]], folder: Path, schema: Schema) -> LabelledRecords:
    text = io.StringIO()
    csv.writer(text).writerows([HEADER.split(","), *people])
    file = folder / "people.csv"
    file.write_text(text.getvalue(), encoding="utf-8", newline="")
    return load_records(file, schema=schema)


@given(people=PEOPLE)
def test_what_is_written_is_what_is_read(
    people: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    records = encoded(people, tmp_path_factory.getbasetemp(), UNSCALED)
    for row, label, (age, job, hours, _, town, income) in zip(
        dense(records), records.labels, people, strict=True
    ):
        assert row[0] * 100 == pytest.approx(age)
        assert row[1:4] == [float(job == known) for known in JOBS]
        assert row[4] * 20 - 10 == pytest.approx(min(max(hours, -10), 10), abs=1e-12)
        assert row[5:] == [float(town == "north"), float(town == "south")]
        assert label == (1.0 if income == "high" else -1.0)


@given(people=PEOPLE, other=PEOPLE, data=st.data())
def test_a_row_depends_on_its_record_only(
    people: list[tuple[object, ...]],
    other: list[tuple[object, ...]],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    at = data.draw(st.integers(0, len(people) - 1))
    before = encoded(people, folder, SCALED)
    after = encoded([*people[:at], other[0], *people[at + 1 :], *other[1:]], folder, SCALED)
    same = np.delete(np.arange(len(people)), at)
    assert np.array_equal(after.features.toarray()[same], before.features.toarray()[same])
    assert np.array_equal(after.labels[same], before.labels[same])
    alone = encoded([people[at]], folder, SCALED)
    assert np.array_equal(alone.features.toarray()[0], before.features.toarray()[at])


def test_a_parquet_column_of_lists_is_refused_by_name(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"age": [[1.0], [2.0]]}), tmp_path / "lists.parquet")
    schema = parse_schema(
        'row_bound = 1.0\ncolumns = [{kind = "numeric", name = "age", lower = 0, upper = 9}]'
    )
    with pytest.raises(UnreadableFile, match="every cell of column 'age'"):
        load_table(tmp_path / "lists.parquet", schema=schema, adjacency="replace-one", records=2)


def test_complex_arrays_are_refused_rather_than_halved(tmp_path: Path) -> None:
    np.savez(tmp_path / "people.npz", age=np.array([1.0 + 2.0j, 3.0]))
    with pytest.raises(UnreadableFile, match="real numbers in 'age'"):
        load_records(tmp_path / "people.npz", schema=SCHEMA)


def test_fields_of_several_numbers_are_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "people.npy", np.zeros(3, dtype=[("age", np.float64, (2,))]))
    with pytest.raises(UnreadableFile, match="'age' instead got an array of 2 axes"):
        load_records(tmp_path / "people.npy", schema=SCHEMA)


def test_cells_that_python_has_no_value_for_are_refused_without_them(tmp_path: Path) -> None:
    """Nanoseconds: pyarrow's sentence named the cell, also of a column that is ignored."""
    pa = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    times = pa.array([1577836800000000123, 1577836800000000456], pa.timestamp("ns"))
    parquet.write_table(pa.table({"age": [1.0, 2.0], "t": times}), tmp_path / "a.parquet")
    numbers = '{kind = "numeric", name = "age", lower = 0, upper = 9}'
    ignored, used = (
        parse_schema(f'row_bound = 1.0\ncolumns = [{numbers}, {{kind = {kind}, name = "t"}}]')
        for kind in ('"ignored"', '"categorical", categories = ["a", "b"]')
    )
    for schema, column in ((ignored, "age"), (used, "t")):
        found = {"schema": schema, "adjacency": "replace-one", "records": 2}
        if column == "age":
            load_table(tmp_path / "a.parquet", **found).sum("age")
            continue
        with pytest.raises(UnreadableFile, match="every cell of column 't'") as refused:
            load_table(tmp_path / "a.parquet", **found)
        assert "1577836800" not in str(refused.value)
        assert refused.value.__context__ is None


@pytest.mark.parametrize("missing", [False, True])
def test_equal_cells_of_different_words_are_each_read_by_its_own(
    tmp_path: Path, missing: bool
) -> None:
    """The hour that comes twice when clocks go back: the first record's moved all others'."""
    pa = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    seconds = {"2020-10-25 02:30:00+02:00": 1603585800, "2020-10-25 02:30:00+01:00": 1603589400}
    summer, winter = seconds
    text = f"""
row_bound = 1.0
columns = [{{kind = "categorical", name = "when", categories = {[summer, winter]}}}]
"""
    if missing:
        text += f"drop_missing = true\nmissing = [{summer!r}]"
    for words in ([summer, winter, winter], [winter, summer, winter], [winter, winter, summer]):
        cells = pa.array([10**6 * seconds[w] for w in words], pa.timestamp("us", "Europe/Berlin"))
        parquet.write_table(pa.table({"when": cells}), tmp_path / "people.parquet")
        table = load_table(
            tmp_path / "people.parquet",
            schema=parse_schema(text),
            adjacency="add-remove-one",
            records=1,
        )
        curator = SamplingCurator(EventList(), SeededSampler(1))
        value = table.histogram("when")
        counts = curator.release(value, noise_std=1e-3, round=1, release="h").round()
        np.testing.assert_array_equal(counts, [[0 if missing else 1, 2]])


ONE_COLUMN = """
row_bound = 1.0
comment = "#"
columns = [
  {kind = "numeric", name = "age", lower = 0.0, upper = 100.0},
  {kind = "label", name = "back", positive = ["yes"], negative = ["no"]},
]
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# people\nage\n10\n# more\n30\n", 2),
        ('age\n10\n""\n30\n', "missing"),
        ("age\n10\n\n30\n", "line 3"),
        ("age\n10\n30\n\n", "line 4"),
    ],
)
def test_a_missing_value_in_a_file_of_one_column_is_no_record_less(
    tmp_path: Path, text: str, expected: int | str
) -> None:
    """An empty line was passed over, and what followed stood at the places before it."""
    (tmp_path / "people.csv").write_text(text)
    schema = parse_schema(ONE_COLUMN)
    if isinstance(expected, int):
        assert len(load_unlabelled(tmp_path / "people.csv", schema=schema).features) == expected
    else:
        with pytest.raises(DataError, match=expected):
            load_unlabelled(tmp_path / "people.csv", schema=schema)
