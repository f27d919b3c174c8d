"""Model files: applied to a file they predict what the run's own model does."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from dpledger.accounting.check.pld_checker import check
from dpledger.data import Schema
from dpledger.data.errors import BadValue, DataError, WrongColumns
from dpledger.data.strict import ConfigurationError
from dpledger.mechanisms import InvalidParameter
from dpledger.runs import RunOptions, demo_configuration, read_model, run
from dpledger.runs.models import ModelFile, predict_file
from dpledger.runs.training import accuracy

from ..golden.commands import CONFIGURATION, write_people

QUICK = {"attack": False, "baselines": False, "crosscheck": False}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    write_people(folder)
    (folder / "run.toml").write_text(CONFIGURATION, encoding="utf-8")
    run(folder / "run.toml", RunOptions(out=folder / "out", **QUICK))
    return folder


def rows(folder: Path) -> list[list[str]]:
    text = (folder / "people.csv").read_text(encoding="utf-8")
    return [line.split(",") for line in text.splitlines()]


def csv(folder: Path, name: str, lines: list[list[str]]) -> Path:
    path = folder / name
    path.write_text("\n".join(map(",".join, lines)) + "\n", encoding="utf-8")
    return path


def test_a_model_predicts_by_the_schema_and_the_coefficients_that_it_names(trained: Path) -> None:
    model = read_model(trained / "out" / "model.json")
    verdict = check((trained / "out" / "certificate.json").read_bytes())
    assert model.subject == verdict.subject
    assert model.features == ("age", "town=north", "town=south", "town=west")
    weights = np.load(trained / "out" / "model.npy")
    assert np.array_equal(np.array(model.coefficients)[:, 0], weights)
    expected = []
    for age, town, _ in rows(trained)[1:]:
        row = np.array([float(age) / 100, *(town == t for t in ("north", "south", "west"))])
        row *= min(1.0, 1.0 / np.linalg.norm(row))
        expected.append("high" if row @ weights > 1e-12 else "low")
    assert model.predict(trained / "people.csv").tolist() == expected


def test_labels_may_be_missing_and_columns_in_another_order(trained: Path) -> None:
    model = read_model(trained / "out" / "model.json")
    bare = csv(trained, "bare.csv", [[town, age] for age, town, _ in rows(trained)])
    assert np.array_equal(model.predict(bare), model.predict(trained / "people.csv"))


def test_an_intercept_and_the_held_out_accuracy_are_those_of_the_run(tmp_path: Path) -> None:
    configuration = demo_configuration(rounds=2)
    result = run(configuration, RunOptions(out=tmp_path / "out", **QUICK))
    model = read_model(tmp_path / "out" / "model.json")
    assert model.features[-1] == "constant"
    _, test = configuration.records()
    scores = test.features @ np.array(model.coefficients)[:, 0]
    right = accuracy(result.models[0].training.state.model, test).right
    assert ((scores > 0) == (test.labels > 0)).sum() >= right > 0
    assert set(model.chosen(scores)) <= set(model.classes) == {"<=50K", ">50K"}


def test_predictions_are_written_once_a_line_for_each_record(trained: Path) -> None:
    out = trained / "predicted.csv"
    found = predict_file(trained / "out" / "model.json", trained / "people.csv", out)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "prediction,score"
    assert [line.split(",")[0] for line in lines[1:]] == found.classes.tolist()
    with pytest.raises(InvalidParameter, match="exists"):
        predict_file(trained / "out" / "model.json", trained / "people.csv", out)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (lambda r: [[a, "towns" if a == "age" else t] for a, t, _ in r], WrongColumns, "towns"),
        (lambda r: [[a] for a, _, _ in r], WrongColumns, "town"),
        (lambda r: [[a, t, y, "1"] for a, t, y in r], DataError, "'1'"),
        (lambda r: [r[0][:2], ["", "north"]], BadValue, "must be there"),
        (lambda r: [r[0][:2], ["30", "east"]], BadValue, "east"),
        (lambda r: [r[0][:2], ["old", "north"]], BadValue, "old"),
        (lambda r: [r[0][:2]], DataError, "at least one record"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_a_sentence(
    trained: Path, change, error, match
) -> None:
    path = csv(trained, "bad.csv", change(rows(trained)))
    with pytest.raises(error, match=match) as refused:
        predict_file(trained / "out" / "model.json", path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "urn:dpledger:model:2"},
        {"coefficients": [[1.0]]},
        {"coefficients": [[1.0, 2.0]] * 4},
        {"classes": ["high"]},
        {"features": ["age", "town=south", "town=north", "town=west"]},
        {"unknown": 1},
        {"epsilon": "small"},
        {"coefficients": [[1e999]] * 4},
    ],
)
def test_a_changed_model_is_refused(trained: Path, change: dict[str, object]) -> None:
    values = msgspec.json.decode((trained / "out" / "model.json").read_bytes())
    path = trained / "changed.json"
    path.write_bytes(msgspec.json.encode(values | change))
    if change == {"coefficients": [[1e999]] * 4}:
        path.write_text(path.read_text().replace("null", "1e999"))
    with pytest.raises(ConfigurationError, match="model file"):
        read_model(path)


def test_several_classes_have_a_score_each() -> None:
    schema = msgspec.convert(
        {
            "row_bound": 1.0,
            "columns": [
                {"kind": "numeric", "name": "x", "lower": 0, "upper": 1},
                {"kind": "class", "name": "y", "classes": ["a", "b", "c"]},
            ],
        },
        Schema,
    )
    model = ModelFile(
        algorithm="by hand",
        schema=schema,
        features=("x",),
        classes=("a", "b", "c"),
        coefficients=((1.0, 3.0, 2.0),),
        epsilon="infinity",
        delta=1e-5,
        adjacency=None,
        unit="record",
        subject="0" * 64,
    )
    assert model.chosen(np.array([[1.0, 3.0, 2.0], [5.0, 5.0, 0.0]])).tolist() == ["b", "a"]
