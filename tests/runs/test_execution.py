"""A run as a library call: from a configuration or its file, to a folder that says what was run."""

from pathlib import Path

import dpledger as dp
from dpledger.runs import RunOptions, demo_configuration, read_configuration


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
