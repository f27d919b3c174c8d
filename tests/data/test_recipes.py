"""The recipes: binary Adult has LIBSVM's counts, digits and synthetic records are what they say."""

import math

import numpy as np
import pytest

from dpledger.data import (
    LabelledRecords,
    load_adult_binary,
    load_digits_with_probes,
    synthetic_records,
)
from dpledger.data.adult import adult_schema
from dpledger.data.adult.binary import CUTS, TRAINING_RECORDS
from dpledger.data.files import read_table
from dpledger.mechanisms.errors import InvalidParameter

from .test_adult import FOLDER


@pytest.fixture(scope="module")
def binary() -> LabelledRecords:
    return load_adult_binary()


def test_the_counts_are_those_of_a9a(binary: LabelledRecords) -> None:
    # LIBSVM's page: 123 features, 32,561 training and 16,281 testing records
    assert binary.features.shape == (48_842, 123)
    assert len(binary) - TRAINING_RECORDS == 16_281
    # adult.names: 23.93 % of all records are over 50K
    assert round(100 * float(np.mean(binary.labels == 1)), 2) == 23.93


def test_the_first_66_features_are_whole_attributes(binary: LabelledRecords) -> None:
    # the sharing paper splits a9a after 66 features
    heads = {name.split("=")[0].rstrip("<>") for name in binary.feature_names[:66]}
    tails = {name.split("=")[0].rstrip("<>") for name in binary.feature_names[66:]}
    heads, tails = ({name.split(">")[0] for name in group} for group in (heads, tails))
    assert (len(heads), len(tails), heads & tails) == (8, 6, set())


def test_every_record_has_one_bin_a_number_and_at_most_one_category(
    binary: LabelledRecords,
) -> None:
    rows = binary.features.toarray() * math.sqrt(14)
    assert set(np.unique(rows.round(12)).tolist()) == {0.0, 1.0}
    groups = [name.split("=")[0].split("<")[0].split(">")[0] for name in binary.feature_names]
    for group in dict.fromkeys(groups):
        ones = rows[:, [g == group for g in groups]].sum(axis=1).round()
        assert ones.max() == 1
        assert group not in CUTS or ones.min() == 1
    missing = {"workclass", "occupation", "native-country"}
    incomplete = np.flatnonzero(rows.sum(axis=1).round() < 14)
    # adult.names: 48,842 records, 45,222 without unknown values
    assert len(incomplete) == 48_842 - 45_222
    assert {g for g in set(groups) if rows[:, [h == g for h in groups]].sum(1).min() < 0.5} == (
        missing
    )


def test_the_cut_points_are_the_recipes_on_the_training_file() -> None:
    table = read_table(FOLDER / "adult.data.xz", adult_schema())
    for name, cuts in CUTS.items():
        values = np.sort(np.array([float(str(cell)) for cell in table.columns[name]]))
        if np.mean(values == values[0]) >= 0.8:
            assert cuts == (values[0],)
            continue
        found: list[float] = []
        for fifth in np.quantile(values, [0.2, 0.4, 0.6, 0.8], method="inverted_cdf"):
            free = values[values > found[-1]] if found else values
            found.append(max(float(fifth), float(free[0])))
        assert tuple(found) == cuts


def test_digits_are_pixels_products_and_probes_that_say_nothing() -> None:
    records = load_digits_with_probes(features=1000)
    assert records.features.shape == (361, 1000)
    assert set(np.unique(records.labels)) == {-1.0, 1.0}
    assert isinstance(records.features, np.ndarray)
    assert records.feature_names[-1] == "probe 299"
    # products are products of the pixels beside them, up to the scaling of the row
    i, j = (int(word.split()[1]) for word in records.feature_names[64].split(" × "))
    rows = records.features
    scale = rows[:, 64] / np.where(rows[:, i] * rows[:, j] > 0, rows[:, i] * rows[:, j], np.nan)
    again = rows[:, 65]
    a, b = (int(word.split()[1]) for word in records.feature_names[65].split(" × "))
    known = ~np.isnan(scale)
    assert known.any()
    np.testing.assert_allclose(
        again[known], (scale * rows[:, a] * rows[:, b])[known], rtol=1e-9, atol=1e-12
    )
    # a probe's correlation with the label is that of 361 coin tosses: 5 standard deviations
    probes = rows[:, 700:] - rows[:, 700:].mean(axis=0)
    labels = records.labels - records.labels.mean()
    norms = np.linalg.norm(probes, axis=0) * np.linalg.norm(labels)
    assert float(np.abs(labels @ probes / norms).max()) < 5 / math.sqrt(361)
    with pytest.raises(InvalidParameter, match="features=99"):
        load_digits_with_probes(features=99)


def test_synthetic_records_repeat_by_seed_and_follow_their_model() -> None:
    first, again = (synthetic_records(count=4000, features=5, seed=3) for _ in range(2))
    assert np.array_equal(first.features, again.features)
    assert np.array_equal(first.labels, again.labels)
    other = synthetic_records(count=4000, features=5, seed=4)
    assert not np.array_equal(first.labels, other.labels)
    # rows of norm about 1/2 with labels by chance have a mean of about 1/(2 sqrt(n))
    assert isinstance(first.features, np.ndarray)
    drift = np.linalg.norm((first.labels[:, None] * first.features).mean(axis=0))
    assert drift > 10 * 0.5 / math.sqrt(4000)
