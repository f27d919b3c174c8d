"""UCI Adult: the published counts, met with public bounds only."""

import lzma
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import dpledger.data.adult
from dpledger.data import LabelledRecords, load_adult, load_records, read_schema, split_records
from dpledger.data.schema import CategoricalColumn
from dpledger.mechanisms import Adjacency, PrivateDataset

FOLDER = Path(dpledger.data.adult.__file__).parent


@pytest.fixture(scope="module")
def adult() -> LabelledRecords:
    return load_adult()


def test_counts_are_those_of_the_documentation_and_of_the_paper(adult: LabelledRecords) -> None:
    documented = (FOLDER / "adult.names").read_text()
    assert "| 45222 if instances with unknown values are removed" in documented
    assert "23.93% / 24.78% (without unknowns)" in documented
    assert adult.features.shape == (45_222, 104)
    assert round(100 * float(np.mean(adult.labels == 1)), 2) == 24.78


def test_categories_are_the_documented_ones_but_never_worked() -> None:
    documented = {
        name: tuple(values.split(", "))
        for name, values in re.findall(
            r"^([a-z-]+): (.+)\.$", (FOLDER / "adult.names").read_text(), flags=re.MULTILINE
        )
    }
    schema = read_schema(FOLDER / "adult.toml")
    assert [column.name for column in schema.features] == list(documented)
    for column in schema.features:
        if isinstance(column, CategoricalColumn):
            left_out = {"Never-worked"} if column.name == "workclass" else set()
            assert set(documented[column.name]) - set(column.categories) == left_out
            assert set(column.categories) <= set(documented[column.name])
        else:
            assert documented[column.name] == ("continuous",)


def test_every_row_is_sparse_and_within_the_exact_norm_bound(adult: LabelledRecords) -> None:
    features = adult.features
    assert np.diff(features.indptr).max() <= 14
    assert np.diff(features.indptr).min() >= 8
    for row in range(0, 45_222, 97):
        entries = features.data[features.indptr[row] : features.indptr[row + 1]].tolist()
        assert sum(Fraction(entry) ** 2 for entry in entries) <= Fraction(adult.row_bound) ** 2
    norms = np.sqrt(features.multiply(features).sum(axis=1))
    assert norms.max() <= adult.row_bound
    # a row has eight 1s before scaling, so every one is cut to the bound
    assert norms.min() > 0.999_999 * adult.row_bound


def test_each_record_has_one_category_of_each_kind(adult: LabelledRecords) -> None:
    names = np.array([name.split("=")[0] for name in adult.feature_names])
    for kind in ("workclass", "education", "race", "sex", "native-country"):
        chosen = adult.features[:, np.flatnonzero(names == kind)]
        assert (np.diff(chosen.indptr) == 1).all()


def test_first_record_is_encoded_as_written(adult: LabelledRecords) -> None:
    # 39, State-gov, 77516, Bachelors, 13, ..., capital-gain 2174, 0, 40, United-States, <=50K
    row = dict(zip(adult.feature_names, adult.features[[0]].toarray()[0], strict=True))
    unit = row["workclass=State-gov"]
    assert row["age"] / unit == pytest.approx((39 - 17) / (99 - 17))
    assert row["education-num"] / unit == pytest.approx(12 / 15)
    assert row["capital-gain"] / unit == pytest.approx(2174 / 99_999)
    assert row["capital-loss"] == 0.0
    assert row["hours-per-week"] / unit == pytest.approx(39 / 98)
    assert row["sex=Male"] == row["native-country=United-States"] == unit
    assert row["sex=Female"] == row["workclass=Private"] == 0.0
    assert adult.labels[0] == -1.0


def test_a_record_alone_is_encoded_as_among_all_others(
    adult: LabelledRecords, tmp_path: Path
) -> None:
    with lzma.open(FOLDER / "adult.data.xz", mode="rt") as stream:
        lines = [line for line in stream.read().splitlines() if line and "?" not in line]
    schema = read_schema(FOLDER / "adult.toml")
    for position in range(0, len(lines), 3_001):
        (tmp_path / "one.csv").write_text(lines[position])
        alone = load_records(tmp_path / "one.csv", schema=schema)
        assert np.array_equal(alone.features.toarray(), adult.features[[position]].toarray())
        assert alone.labels[0] == adult.labels[position]


def test_split_divides_40000_to_5222_without_overlap(adult: LabelledRecords) -> None:
    train, test = split_records(adult, train_records=40_000, seed=1)
    assert (len(train), len(test)) == (40_000, 5_222)
    # every column keeps its sum: no record is lost or doubled
    total = train.features.sum(axis=0) + test.features.sum(axis=0)
    assert total == pytest.approx(adult.features.sum(axis=0), rel=1e-12)


def test_records_of_a_hundred_agents_become_a_private_data_set(adult: LabelledRecords) -> None:
    agents = tuple(f"agent {i}" for i in range(100))
    train, _ = split_records(adult, train_records=40_000, seed=1)
    divided = train.divided(agents)
    private = PrivateDataset(
        divided.features,
        divided.labels,
        adjacency=Adjacency.REPLACE_ONE,
        row_bound=divided.row_bound,
        parties=divided.parties,
        party_of=divided.party_of,
    )
    assert (private.shape.count, private.shape.features) == (400, 104)
    assert private.shape.parties == agents
