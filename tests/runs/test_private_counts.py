"""Runs of a file under add-remove-one: no number of records and no position decides anything.

The laws, each over all neighbours that one file has: a record's presence moves no other record's
place; what is planned is the same; and what is released moves by that record's part alone.
"""

from pathlib import Path

import numpy as np
import pytest

from dpledger.accounting.check.pld_checker import check
from dpledger.data import load_records, parse_schema, split_by_content
from dpledger.data.strict import ConfigurationError
from dpledger.mechanisms.inside import private_value
from dpledger.runs import Configuration, RunOptions, read_configuration, run
from dpledger.solvers import Logistic

from ..golden.commands import CONFIGURATION, SCHEMA, write_people

ADDED = (
    CONFIGURATION.replace("replace-one", "add-remove-one")
    .replace("train_records = 48", "train_records = 24\nheld_out = 0.2")
    .replace("parties = 4", "parties = 2")
)
HIDDEN = ADDED.replace(
    'algorithm = "dp-admm"\nrounds = 6\ndistance = 5.0',
    'algorithm = "dp-sgd"\nrounds = 6\nsteps = "constant"\nstep_size = 1.0\nbatch = 4',
)
POINT = np.array([0.5, -1.0, 2.0, 0.0])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_people(tmp_path)
    (tmp_path / "run.toml").write_text(ADDED, encoding="utf-8")
    return tmp_path


def lines(folder: Path) -> tuple[str, list[str]]:
    head, *people = (folder / "people.csv").read_text(encoding="utf-8").splitlines()
    return head, people


def with_people(folder: Path, head: str, people: list[str]) -> Configuration:
    (folder / "people.csv").write_text("\n".join([head, *people]) + "\n", encoding="utf-8")
    return read_configuration(folder / "run.toml")


def places(configuration: Configuration) -> dict[bytes, list[int]]:
    """Return where each different record is: -1 held out, else its party; once for every copy."""
    train, test = configuration.records()
    assert train.contents is not None
    assert test.contents is not None
    found: dict[bytes, list[int]] = {}
    for content, party in zip(train.contents, train.party_of.tolist(), strict=True):
        found.setdefault(content.tobytes(), []).append(party)
    for content in test.contents:
        found.setdefault(content.tobytes(), []).append(-1)
    return found


def test_a_record_less_moves_no_other_record(folder: Path) -> None:
    head, people = lines(folder)
    whole = places(with_people(folder, head, people))
    assert {place for copies in whole.values() for place in copies} == {-1, 0, 1}
    for index in range(len(people)):
        less = places(with_people(folder, head, people[:index] + people[index + 1 :]))
        changed = [key for key in whole if whole[key] != less.get(key, [])]
        assert len(changed) == 1
        assert len(whole[changed[0]]) == len(less.get(changed[0], [])) + 1
        assert set(less) <= set(whole)


def test_the_order_of_a_file_moves_no_record(folder: Path) -> None:
    head, people = lines(folder)
    assert places(with_people(folder, head, people)) == places(
        with_people(folder, head, people[::-1])
    )


def test_equal_records_have_one_place(folder: Path) -> None:
    head, people = lines(folder)
    twice = places(with_people(folder, head, people + people))
    assert all(len(set(copies)) == 1 for copies in twice.values())


def test_another_seed_is_another_deal(folder: Path) -> None:
    head, people = lines(folder)
    first = places(with_people(folder, head, people))
    text = ADDED.replace("train_records", "split_seed = 1\ntrain_records")
    (folder / "run.toml").write_text(text, encoding="utf-8")
    assert places(read_configuration(folder / "run.toml")) != first


def test_shares_are_those_that_were_asked_for(tmp_path: Path) -> None:
    """40,000 different records, a fifth held out, four parties: each count within five standard
    deviations of its mean, missed by a fair hash with probability below 6e-7 a count.
    """
    rows = "\n".join(f"{n / 400},north,high" for n in range(40_000))
    (tmp_path / "many.csv").write_text(f"age,town,income\n{rows}\n", encoding="utf-8")
    schema = parse_schema(SCHEMA, source="people.toml")
    records = load_records(tmp_path / "many.csv", schema=schema)
    train, test = split_by_content(records, held_out=0.2, seed=3)
    assert abs(len(test) - 8_000) < 5 * (40_000 * 0.2 * 0.8) ** 0.5
    dealt = train.dealt_by_content(("a", "b", "c", "d"), seed=3)
    quarter = len(train) / 4
    counts = np.bincount(dealt.party_of)
    assert np.all(np.abs(counts - quarter) < 5 * (quarter * 0.75) ** 0.5)


def test_neighbouring_files_have_one_shape_and_move_one_party_within_its_bound(
    folder: Path,
) -> None:
    head, people = lines(folder)
    configuration = with_people(folder, head, people)
    mean = configuration.audited(configuration.records()[0]).mean_gradient(Logistic(), POINT)
    whole, moved = np.asarray(private_value(mean)), 0
    # a plan is made of the shape, and of nothing else that a file says
    for index in range(len(people)):
        neighbour = with_people(folder, head, people[:index] + people[index + 1 :])
        assert neighbour.shape == configuration.shape
        other = neighbour.audited(neighbour.records()[0]).mean_gradient(Logistic(), POINT)
        changed = np.asarray(private_value(other)) - whole
        # what rounds, rounds otherwise in another sum
        gaps = np.linalg.norm(changed, axis=-1) > 1e-12
        assert gaps.sum() <= 1
        assert np.linalg.norm(changed) <= mean.sensitivity.value
        moved += int(gaps.sum())
    assert 0 < moved < len(people)


def test_a_run_is_certified_attacked_and_says_no_count(folder: Path) -> None:
    """What is public says the bound of 24, and not how many of the 60 people are on which side."""
    result = run(folder / "run.toml", RunOptions(out=folder / "out", crosscheck=False))
    assert not result.is_finding
    assert result.attack is not None
    assert result.attack.pair.description.endswith("removed")
    assert check((folder / "out" / "certificate.json").read_bytes()).adjacency == "add-remove-one"
    train, test = read_configuration(folder / "run.toml").records()
    page = (folder / "out" / "public.html").read_text(encoding="utf-8")
    for secret in (len(train), len(test), len(train) + len(test)):
        assert f">{secret}<" not in page
        assert f"{secret} records" not in page
    assert str(folder) not in page, "where the holder's files lie"
    # 24 records of two parties
    bounds = "a party has at least 12 complete ones and at most 12288"
    assert any(bounds in each for each in result.guarantee.assumptions)


def test_an_attack_that_cannot_be_made_is_refused_before_anything_is_paid(folder: Path) -> None:
    given = HIDDEN.replace("epsilon = 2.0", "noise_multiplier = 5.0")
    (folder / "run.toml").write_text(given, encoding="utf-8")
    out = folder / "out"
    with pytest.raises(ConfigurationError, match=r"hidden batches.*--no-attack"):
        run(folder / "run.toml", RunOptions(out=out))
    assert not out.exists()
    assert run(folder / "run.toml", RunOptions(out=out, attack=False)).attack is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("held_out = 0.2", "", "data.held_out=None must be stated under add-remove-one"),
        ("held_out = 0.2", "held_out = 1.0", "held_out=1.0 must be in (0, 1)"),
        ("add-remove-one", "replace-one", "data.held_out=0.2 must be stated under add-remove-one"),
        ("add-remove-one", "replace-feature-column", "must be among 'replace-one'"),
    ],
)
def test_the_share_held_out_is_stated_under_add_remove_one_alone(
    folder: Path, old: str, new: str, words: str
) -> None:
    (folder / "run.toml").write_text(ADDED.replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigurationError) as refusal:
        read_configuration(folder / "run.toml")
    assert words in str(refusal.value)


def test_a_missed_bound_is_refused_without_the_count(folder: Path) -> None:
    text = ADDED.replace("train_records = 24", "train_records = 54")
    (folder / "run.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="instead got fewer"):
        read_configuration(folder / "run.toml").records()
