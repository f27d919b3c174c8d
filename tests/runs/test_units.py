"""A run whose unit of privacy is a person with several records: planned, certified, reported."""

from pathlib import Path

import pytest

from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.grade import Grade
from dpledger.data.strict import ConfigurationError
from dpledger.runs import RunOptions, read_configuration, run
from dpledger.runs.outcomes.plans import plan_outcome
from dpledger.runs.planning import plan

from ..golden.commands import CONFIGURATION, write_people

PERSON = CONFIGURATION.replace("[privacy]", '[privacy]\nunit = "person"\nrecords_per_unit = 3')


@pytest.fixture
def person(tmp_path: Path) -> Path:
    write_people(tmp_path)
    path = tmp_path / "run.toml"
    path.write_text(PERSON, encoding="utf-8")
    return path


def test_a_plan_meets_its_target_for_a_person(person: Path) -> None:
    configuration = read_configuration(person)
    planned = plan(configuration)
    target = configuration.privacy.epsilon
    assert target is not None
    assert (planned.guarantee.group, planned.guarantee.grade) == (3, Grade.PROVED)
    assert 0.999 * target < planned.guarantee.epsilon.upper_float <= target
    alone = guarantee(planned.events, delta=configuration.privacy.delta)
    assert alone.epsilon.upper_float < target / 2
    assert planned.per_record.epsilon.upper_float == alone.epsilon.upper_float
    assert planned.proof is not None
    assert planned.proof.verdict.group == 3
    assert "no person has more than 3 of the records" in planned.guarantee.assumptions
    printed = dict(plan_outcome("run", configuration, planned).rows)
    assert "per person with at most 3 records, replace-one" in str(printed["epsilon"])


def test_a_run_is_certified_and_reported_for_a_person(person: Path, tmp_path: Path) -> None:
    options = RunOptions(out=tmp_path / "out", baselines=False)
    result = run(person, options)
    assert not result.is_finding
    verdict = check((tmp_path / "out" / "certificate.json").read_bytes())
    assert verdict.group == 3
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "per person with at most 3 records, replace-one" in page
    assert "two candidates for one person with at most 3 records" in page
    assert result.attack is not None
    # what is attacked differs in one record, and is held against one record's epsilon
    one = result.plan.per_record.epsilon.upper_float
    assert result.attack.result.claimed_epsilon == pytest.approx(one, rel=1e-6)


def test_what_is_not_stated_keeps_the_hash_of_a_configuration(person: Path) -> None:
    found = read_configuration(person)
    person.write_text(CONFIGURATION, encoding="utf-8")
    before = read_configuration(person)
    assert found.sha256 != before.sha256
    said = CONFIGURATION.replace("[privacy]", '[privacy]\nunit = "record"')
    person.write_text(said, encoding="utf-8")
    assert read_configuration(person).sha256 == before.sha256


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ('unit = "person"', "records_per_unit must be stated"),
        ("records_per_unit = 3", "must name who has up to"),
        ('unit = "person"\nrecords_per_unit = 0', "records_per_unit=0"),
        ('unit = ""', "must be 1 to 60"),
        ('unit = "per\\nson"\nrecords_per_unit = 2', "printable"),
    ],
)
def test_a_unit_has_a_name_and_a_bound(person: Path, keys: str, message: str) -> None:
    text = CONFIGURATION.replace("[privacy]", f"[privacy]\n{keys}")
    person.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message):
        read_configuration(person)
