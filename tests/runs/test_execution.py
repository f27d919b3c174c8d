"""A run as a library call: from a configuration or its file, to a folder that says what was run."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from msgspec import structs

import dpledger as dp
from dpledger.accounting import MemoryLedger
from dpledger.data.strict import ConfigurationError
from dpledger.federation.prepaid import PrepaidRun
from dpledger.mechanisms import InvalidParameter, SeededSampler
from dpledger.runs import Configuration, RunOptions, demo_configuration, read_configuration
from dpledger.runs.outcomes.plans import plan_outcome
from dpledger.runs.planning import plan
from dpledger.runs.sections import Noise, SamplerName
from dpledger.runs.training import NewLedger, new_folder

from ..golden.commands import CONFIGURATION, SCHEMA, write_people


def test_the_file_beside_the_results_is_the_configuration_that_ran(tmp_path: Path) -> None:
    configuration = demo_configuration(rounds=2, trials=10)
    path = tmp_path / "two rounds.toml"
    path.write_text(configuration.toml, encoding="utf-8")
    assert read_configuration(path).sha256 == configuration.sha256


# once: written as two halves, which TOML forbids
def test_a_configuration_with_any_character_is_read_back(tmp_path: Path) -> None:
    plain = demo_configuration(rounds=2)
    said = structs.replace(
        plain, statement=structs.replace(plain.statement, purpose="a \U0001f600")
    )
    path = tmp_path / "said.toml"
    path.write_text(said.toml, encoding="utf-8")
    assert read_configuration(path).statement.purpose == "a \U0001f600"


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
        kept = read_configuration(result.folder / "configuration.holder.toml")
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


@pytest.mark.parametrize("sampler", [SamplerName.SYSTEM, SamplerName.PHILOX])
def test_a_seed_of_noise_stands_in_the_holders_files_only(
    tmp_path: Path, sampler: SamplerName
) -> None:
    seed = None if sampler is SamplerName.SYSTEM else 314159265358979323
    noise = Noise(sampler=sampler, seed=seed)
    configuration = structs.replace(demo_configuration(rounds=1), noise=noise)
    given = tmp_path / "given.toml"
    given.write_text(f"# mine\n{configuration.toml}", encoding="utf-8")
    options = RunOptions(out=tmp_path / "run", attack=False, baselines=False, crosscheck=False)
    folder = dp.run(given, options).folder
    files = {path.name for path in folder.iterdir() if str(seed).encode() in path.read_bytes()}
    written = (folder / "configuration.toml").read_text(encoding="utf-8")
    if seed is None:
        assert written == given.read_text(encoding="utf-8")
        assert not (folder / "configuration.holder.toml").exists()
        return
    assert files == {"configuration.holder.toml", "ledger.sqlite"}
    own = folder / "configuration.holder.toml"
    assert own.read_text(encoding="utf-8") == given.read_text(encoding="utf-8")
    assert own.stat().st_mode & 0o077 == 0
    assert "kept by the data's holder" in written
    again = tmp_path / "again.toml"
    again.write_text(written.replace("[noise]", f"[noise]\nseed = {seed}"), encoding="utf-8")
    assert read_configuration(again).sha256 == configuration.sha256


def test_a_hash_tells_nothing_of_a_seed_but_that_there_is_one(tmp_path: Path) -> None:
    """A report carries the hash: a seed of 32 bits that it covers is found in an hour."""
    write_people(tmp_path)
    texts = [CONFIGURATION.replace("seed = 5", f"seed = {seed}") for seed in (5, 6, 2**64)]
    system = 'sampler = "system"'
    texts += [CONFIGURATION.replace('sampler = "philox"\nseed = 5', system)]
    texts += [CONFIGURATION.replace('"philox"', '"pcg64"')]
    read: list[Configuration] = []
    for text in texts:
        (tmp_path / "run.toml").write_text(text)
        read.append(read_configuration(tmp_path / "run.toml"))
    assert len({each.sha256 for each in read[:3]}) == 1
    assert len({each.sha256 for each in read}) == 3
    # of older ledgers, and of nobody else's
    assert all(len(each.known_as) == 3 for each in read[:3])
    assert read[0].known_as & read[1].known_as == {read[0].sha256}
    outcome = plan_outcome("run", read[0], plan(read[0]))
    assert outcome.data["configuration_sha256"] == read[1].sha256


def test_the_plan_is_paid_with_the_sampler_that_draws() -> None:
    """A second sampler of the same seed would draw the same noise, which subtracts."""
    events = plan(demo_configuration(rounds=2)).events
    samplers = [SeededSampler(7), SeededSampler(7)]
    run = MemoryLedger().run("a", configuration_hash="c")
    paid = PrepaidRun(run, events, samplers[0].provenance)
    with pytest.raises(InvalidParameter, match="paid with"):
        paid.reserve(events[:1], samplers[1].provenance)
    paid.reserve(events[:1], samplers[0].provenance)
    assert paid.released == events[:1]


def test_the_folder_of_a_run_can_be_planned_from_alone(tmp_path: Path) -> None:
    (tmp_path / "holder").mkdir()
    write_people(tmp_path / "holder")
    (tmp_path / "holder" / "run.toml").write_text(CONFIGURATION)
    options = RunOptions(out=tmp_path / "out", attack=False, baselines=False, crosscheck=False)
    result = dp.run(tmp_path / "holder" / "run.toml", options)
    expected = read_configuration(tmp_path / "holder" / "run.toml").sha256
    for path in (tmp_path / "holder").iterdir():
        path.unlink()
    kept = read_configuration(result.folder / "configuration.holder.toml")
    assert kept.sha256 == expected
    assert dp.plan(kept).events == result.events
    for path in result.folder.glob("*.toml"):
        assert str(tmp_path) not in path.read_text()


def test_what_was_dropped_is_told_to_nobody(tmp_path: Path) -> None:
    write_people(tmp_path)
    lines = (tmp_path / "people.csv").read_text().splitlines()
    lines += [",north,low", "41,,high", ",west,high"]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "people.toml").write_text(f"drop_missing = true\n{SCHEMA}")
    (tmp_path / "run.toml").write_text(CONFIGURATION)
    options = RunOptions(out=tmp_path / "out", attack=False, baselines=False, crosscheck=False)
    folder = dp.run(tmp_path / "run.toml", options).folder
    for name in ("report.html", "report.md", "report.json", "public.html"):
        assert "3 records" not in (folder / name).read_text()
        assert "missing values were" not in (folder / name).read_text()
    open_to_others = {path.name for path in folder.iterdir() if path.stat().st_mode & 0o077}
    holders = {"report.html", "report.md", "report.json", "ledger.sqlite"}
    assert holders.isdisjoint(open_to_others)


def test_the_number_of_complete_records_is_checked_where_it_is_stated(tmp_path: Path) -> None:
    """One missing value less of a file whose other records are dealt by position."""
    write_people(tmp_path)
    (tmp_path / "people.toml").write_text(f"drop_missing = true\n{SCHEMA}")
    lines = (tmp_path / "people.csv").read_text().splitlines()
    (tmp_path / "run.toml").write_text(CONFIGURATION)
    unchecked = read_configuration(tmp_path / "run.toml")
    assert "nothing checks that: data.records would" in unchecked.assumptions[0]
    stated = CONFIGURATION.replace("[data]", f"[data]\nrecords = {len(lines) - 1}")
    (tmp_path / "run.toml").write_text(stated)
    checked = read_configuration(tmp_path / "run.toml")
    assert "a file with others is refused aloud" in checked.assumptions[0]
    assert sum(map(len, checked.records())) == len(lines) - 1
    lines[2] = "," + lines[2].split(",", 1)[1]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(ConfigurationError, match=r"Expected data\.records="):
        checked.records()


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    write_people(tmp_path)
    (tmp_path / "run.toml").write_text(CONFIGURATION)
    for out in (tmp_path / "people.csv" / "out", tmp_path / ("long" * 75)):
        with pytest.raises(ConfigurationError, match="must be a folder that can be made"):
            dp.run(tmp_path / "run.toml", RunOptions(out=out))


def test_of_runs_told_one_folder_at_one_moment_one_has_it(tmp_path: Path) -> None:
    """All had found it empty; the files of one lay over those of another."""
    together = Barrier(8)

    def told(_: int) -> Path | None:
        together.wait()
        try:
            return new_folder(tmp_path / "out", "run", first="configuration.toml")
        except FileExistsError:
            return None

    for _ in range(20):
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(told, range(8))).count(None) == 7
        (tmp_path / "out" / "configuration.toml").unlink()


def test_no_run_writes_over_the_files_of_another(tmp_path: Path) -> None:
    """With a ledger elsewhere, one run's public page lay beside another's model."""
    quick = RunOptions(
        out=tmp_path / "out", ledger=tmp_path / "paid.sqlite",
        attack=False, baselines=False, crosscheck=False,
    )  # fmt: skip
    with pytest.warns(NewLedger):
        dp.run(demo_configuration(rounds=2), quick)
    another = demo_configuration(rounds=3)
    another = structs.replace(another, noise=Noise(sampler=SamplerName.PHILOX, seed=99))
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(FileExistsError, match=r"files of a run; choose another\.$"):
        dp.run(another, quick)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
