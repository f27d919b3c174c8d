"""A run as a library call: from a configuration or its file, to a folder that says what was run."""

from pathlib import Path

import pytest

import dpledger as dp
from dpledger.runs import RunOptions, demo_configuration, read_configuration

from ..golden.commands import CONFIGURATION, SCHEMA, write_people


def test_the_file_beside_the_results_is_the_configuration_that_ran(tmp_path: Path) -> None:
    configuration = demo_configuration(rounds=2, trials=10)
    path = tmp_path / "two rounds.toml"
    path.write_text(configuration.toml, encoding="utf-8")
    assert read_configuration(path).sha256 == configuration.sha256


def test_a_run_of_a_file_is_that_of_its_configuration(tmp_path: Path) -> None:
    configuration = demo_configuration(rounds=2)
    path = tmp_path / "short.toml"
    path.write_text(configuration.toml, encoding="utf-8")
    results = [
        dp.run(
            source, RunOptions(out=tmp_path / name, attack=False, baselines=False, crosscheck=False)
        )
        for name, source in (("of the file", path), ("of the values", configuration))
    ]
    first, second = results
    assert first.plan.events == second.plan.events == dp.plan(path).events
    assert first.name.startswith("short ")
    assert first.kept_to_plan
    for result in results:
        kept = read_configuration(result.folder / "configuration.toml")
        assert kept.sha256 == configuration.sha256
    models = [(result.folder / "model.npy").read_bytes() for result in results]
    assert models[0] == models[1]


def test_a_hash_covers_what_a_schema_says_and_not_where_it_lies(tmp_path: Path) -> None:
    text = CONFIGURATION.replace('schema = "people.toml"', 'schema = "public/people.toml"')
    hashes: list[str] = []
    for name, schema in {
        "as it was": SCHEMA,
        "with a comment": f"# measured in 1990\n{SCHEMA}",
        "another bound": SCHEMA.replace("upper = 100", "upper = 120"),
        "other row norms": SCHEMA.replace("row_bound = 1.0", "row_bound = 5.0"),
    }.items():
        (tmp_path / name / "public").mkdir(parents=True)
        (tmp_path / name / "public" / "people.toml").write_text(schema)
        (tmp_path / name / "run.toml").write_text(text)
        hashes.append(read_configuration(tmp_path / name / "run.toml").sha256)
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_paths_start_at_the_folder_of_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_people(tmp_path)
    (tmp_path / "run.toml").write_text(CONFIGURATION)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    configuration = read_configuration(Path("../run.toml"))
    assert configuration.shape.features == 4
    assert sum(len(part) for part in configuration.records()) == 60
    monkeypatch.chdir(tmp_path)
    assert read_configuration(Path("run.toml")).sha256 == configuration.sha256
