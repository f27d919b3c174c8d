"""Statistics of a file: planned before it is read, paid for as a whole, proved, and about right."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.ledger import LedgerError, SqliteLedger
from dpledger.accounting.ledger.budget import Budget, BudgetExceeded
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.data.errors import SchemaError
from dpledger.data.strict import ConfigurationError
from dpledger.mechanisms import Adjacency, GaussianStep, InvalidParameter
from dpledger.mechanisms.events import DiscreteLaplaceStep
from dpledger.runs.outcomes.ledgers import spent_outcome
from dpledger.runs.outcomes.statistics import statistics_outcome
from dpledger.runs.statistics import plan_statistics, read_statistics, release_statistics
from dpledger.runs.training import NewLedger

SCHEMA = """
row_bound = 1.0
on_outside = "clip"
columns = [
    {kind = "numeric", name = "age", lower = 18, upper = 90},
    {kind = "categorical", name = "town", categories = ["north", "south"]},
    {kind = "numeric", name = "gain", lower = -3, upper = 3},
]
"""
ASKED = """
[data]
files = ["people.csv"]
schema = "people.toml"
records = 2000
whole = ["age"]
[privacy]
adjacency = "replace-one"
epsilon = 2.0
delta = 0.0
[noise]
sampler = "philox"
seed = 7
[[statistics]]
kind = "count"
[[statistics]]
kind = "sum"
column = "age"
[[statistics]]
kind = "mean"
column = "gain"
[[statistics]]
kind = "histogram"
column = "town"
[[statistics]]
kind = "histogram"
column = "age"
edges = [30, 60]
[[statistics]]
kind = "quantile"
column = "age"
quantile = 0.25
weight = 2.0
[[statistics]]
kind = "second-moments"
columns = ["gain"]
"""
NORMAL = ASKED.replace("delta = 0.0", "delta = 1e-6")
ADDED = NORMAL.replace("replace-one", "add-remove-one")
PERSON = ADDED.replace("[privacy]", '[privacy]\nunit = "person"\nrecords_per_unit = 2')
MEAN = ASKED.partition("[[statistics]]")[0].replace("delta = 0.0", "delta = 1e-6")
MEAN += '[[statistics]]\nkind = "mean"\ncolumn = "gain"\n'
"""One statistic, where it does not matter which: its noise is planned and proved at once."""
FEW = PERSON.partition("[[statistics]]")[0] + "[[statistics]]" + MEAN.partition("[[statistics]]")[2]
TEXTS = [
    pytest.param(ASKED, id="pure"),
    pytest.param(FEW, id="person, a mean"),
    pytest.param(PERSON, id="person", marks=pytest.mark.slow),
    pytest.param(ADDED, id="add-remove-one", marks=pytest.mark.slow),
    pytest.param(NORMAL.replace("replace-one", "zero-out-one"), id="zero", marks=pytest.mark.slow),
]


@pytest.fixture
def people(tmp_path: Path) -> np.ndarray:
    rng = np.random.default_rng(4)
    ages, gains = rng.integers(18, 91, 2000), rng.normal(size=2000).round(3)
    towns = rng.integers(2, size=2000)
    rows = zip(ages, towns, gains, strict=True)
    lines = [f"{age},{['north', 'south'][town]},{gain}" for age, town, gain in rows]
    (tmp_path / "people.csv").write_text("age,town,gain\n" + "\n".join(lines), encoding="utf-8")
    (tmp_path / "people.toml").write_text(SCHEMA, encoding="utf-8")
    return np.column_stack([ages, towns, np.clip(gains, -3, 3)])


def written(folder: Path, text: str) -> Path:
    path = folder / "asked.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_plan_that_takes_all_of_a_budget_is_shown_and_named_in_refusals(
    tmp_path: Path, people: np.ndarray
) -> None:
    """Of a budget of ten one epsilon was spent, it seemed, and nothing more was paid for."""
    book = tmp_path / "shared.sqlite"
    SqliteLedger.create(book, Budget(ApproxDp(10.0, 1e-6), adjacency=Adjacency.REPLACE_ONE))
    quantile = '[[statistics]]\nkind = "quantile"\ncolumn = "age"\nquantile = 0.5\n'
    text = ASKED[: ASKED.index('[[statistics]]\nkind = "count"')] + quantile
    shown = str(spent_outcome(book, delta=1e-6).rows)
    assert "at most epsilon 10 at delta 1e-06" in shown
    assert "taken" not in shown
    release_statistics(written(tmp_path, text), out=tmp_path / "first", ledger=book)
    assert "taken by the first run's plan" in str(spent_outcome(book, delta=1e-6).rows)
    again = written(tmp_path, text.replace("seed = 7", "seed = 8"))
    with pytest.raises(LedgerError, match="all of the budget is taken") as refused:
        release_statistics(again, out=tmp_path / "second", ledger=book)
    assert "Fraction(" not in str(refused.value)


def test_counts_that_are_public_already_are_refused_with_their_plan(tmp_path: Path) -> None:
    alone = ASKED[: ASKED.index('[[statistics]]\nkind = "sum"')]
    (tmp_path / "people.toml").write_text(SCHEMA, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="number of records, 2000, is public"):
        plan_statistics(read_statistics(written(tmp_path, alone)))


def test_releases_of_one_second_on_one_ledger_are_runs_of_their_own(
    tmp_path: Path, people: np.ndarray
) -> None:
    book = tmp_path / "shared.sqlite"
    for seed in (7, 8):
        path = written(tmp_path, MEAN.replace("seed = 7", f"seed = {seed}"))
        with warnings.catch_warnings(record=True) as told:
            release_statistics(path, out=tmp_path / str(seed), ledger=book)
        # a mistyped name of a ledger with a budget would have none
        assert [each.category for each in told] == [NewLedger] * (seed == 7)
    with SqliteLedger(book, read_only=True) as ledger:
        assert len({run.run for run in ledger.runs()}) == 2


@pytest.mark.parametrize("seeded", [True, False])
def test_noise_from_a_seed_is_said_to_be_an_experiments(
    tmp_path: Path, people: np.ndarray, seeded: bool
) -> None:
    """Two runs wrote the same numbers, and nothing said that noise like that can be subtracted."""
    system = MEAN.replace('sampler = "philox"\nseed = 7', 'sampler = "system"')
    path = written(tmp_path, MEAN if seeded else system)
    outcome = statistics_outcome(release_statistics(path, out=tmp_path / "out"))
    kept = json.loads((tmp_path / "out" / "statistics.json").read_text())
    assert ("experiment: repeatable noise" in outcome.text) is seeded
    assert ("experiment: repeatable noise" in kept.get("noise", "")) is seeded


@pytest.mark.parametrize("text", TEXTS)
def test_statistics_cost_what_was_planned_and_are_near_the_truth(
    tmp_path: Path, people: np.ndarray, text: str
) -> None:
    path = written(tmp_path, text)
    planned = release_statistics(path, out=tmp_path / "out").plan
    assert 1.98 < planned.guarantee.epsilon.upper_float <= 2
    document = (tmp_path / "out" / "certificate.json").read_bytes()
    verdict = check(document)
    assert verdict.group == (2 if text in (PERSON, FEW) else 1)
    with SqliteLedger(tmp_path / "out" / "ledger.sqlite", read_only=True) as ledger:
        (run,) = ledger.runs()
        assert tuple(ledger.events(run.run)) == planned.events
    kept = json.loads((tmp_path / "out" / "statistics.json").read_text())
    assert kept["epsilon"] <= 2
    assert kept["grade"] == "proved"
    assert any("records fit the schema" in said for said in kept["assumptions"])
    assert kept["unit"] == ("person with at most 2 records" if text in (PERSON, FEW) else "record")
    ages, towns, gains = people.T
    truth = {
        "count": [2000],
        "sum of age": [ages.sum()],
        "mean of gain": [gains.mean()],
        "histogram of town": np.bincount(towns.astype(int)),
        "histogram of age": np.histogram(ages, [0, 30, 60, 99])[0],
        "second-moments of gain": [(gains**2).mean()],
    }
    for each in kept["statistics"]:
        if each["statistic"].startswith("quantile"):
            below = (ages < each["values"][0]).mean()
            assert below == pytest.approx(0.25, abs=0.05)
            continue
        # three half-widths of 95 %: fixed by the seed
        gap = np.abs(np.array(each["values"]) - truth[each["statistic"]])
        assert (gap <= 3 * each["within_95_percent"]).all(), each


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0, 4.4])
def test_intervals_of_whole_numbers_hold_as_often_as_they_say(
    tmp_path: Path, people: np.ndarray, epsilon: float, delta: float
) -> None:
    """By the masses of the noise: a 95 % interval that is one narrower holds less often."""
    asked = written(
        tmp_path,
        ASKED[: ASKED.index('[[statistics]]\nkind = "sum"')]
        .replace("delta = 0.0", f"delta = {delta}")
        .replace("epsilon = 2.0", f"epsilon = {epsilon}")
        .replace('"replace-one"', '"add-remove-one"')
        .replace("records = 2000", "records = 2000\nmost_records = 2000"),
    )
    result = release_statistics(asked, out=tmp_path / "out")
    (count,) = result.statistics
    given = result.plan.guarantee.assumptions
    assert any("at least 2000 and at most 2000 of them are complete" in each for each in given)
    (event,) = result.plan.events
    far = np.arange(-2000, 2001)
    if isinstance(event.mechanism, DiscreteLaplaceStep):
        masses = np.exp(-abs(far) / event.mechanism.scale)
    else:
        assert isinstance(event.mechanism, GaussianStep)
        masses = np.diff(norm.cdf(np.append(far, 2001) - 0.5, scale=event.mechanism.noise_std))
    masses /= masses.sum()
    assert count.within is not None
    assert masses[abs(far) <= count.within].sum() >= 0.95
    assert masses[abs(far) <= count.within - 1].sum() < 0.95


def test_a_public_count_is_no_release(tmp_path: Path, people: np.ndarray) -> None:
    replaced = plan_statistics(read_statistics(written(tmp_path, ASKED)))
    assert len(replaced.events) == 6
    assert "count" not in {event.context.release for event in replaced.events}


def test_what_a_budget_does_not_pay_for_is_not_begun(tmp_path: Path, people: np.ndarray) -> None:
    budget = Budget(ApproxDp(1, 1e-6), adjacency=Adjacency.REPLACE_ONE)
    book = tmp_path / "team.sqlite"
    with SqliteLedger(book) as ledger:
        ledger.set_budget(budget)
    with pytest.raises(BudgetExceeded):
        release_statistics(written(tmp_path, ASKED), out=tmp_path / "out", ledger=book)
    assert not (tmp_path / "out").exists()
    with SqliteLedger(book, read_only=True) as ledger:
        assert not tuple(ledger.runs())


def test_a_file_of_another_size_is_refused_before_anything_is_spent(
    tmp_path: Path, people: np.ndarray
) -> None:
    text = ASKED.replace("records = 2000", "records = 1999")
    with pytest.raises(InvalidParameter, match="records=1999"):
        release_statistics(written(tmp_path, text), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('kind = "count"', 'kind = "count"\ncolumn = "age"', "column must be left out"),
        ('kind = "sum"\ncolumn = "age"', 'kind = "sum"', "column must be stated"),
        ("quantile = 0.25", "", "quantile must be stated"),
        ("weight = 2.0", "weight = 0.0", "weight=0.0"),
        ("weight = 2.0", "candidates = 1", "candidates=1"),
        ('kind = "mean"', 'kind = "mean"\nedges = [1]', "edges must be left out"),
        ("epsilon = 2.0", "epsilon = 0.0", "epsilon=0.0"),
        ("delta = 0.0", "delta = 1.0", "delta=1.0"),
        ("records = 2000", "records = 0", "records=0"),
        ('kind = "mean"', 'kind = "median"', "median"),
        ('adjacency = "replace-one"', 'adjacency = "replace-feature-column"', "between records"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(
    tmp_path: Path, old: str, new: str, match: str
) -> None:
    with pytest.raises(ConfigurationError, match=match):
        read_statistics(written(tmp_path, ASKED.replace(old, new)))


def test_columns_are_those_of_the_schema(tmp_path: Path, people: np.ndarray) -> None:
    for old, new in (('column = "gain"', 'column = "gains"'), ("quantile = 0.25", "quantile = 7")):
        with pytest.raises(InvalidParameter):
            plan_statistics(read_statistics(written(tmp_path, ASKED.replace(old, new))))
    other = ASKED.replace('whole = ["age"]', 'whole = ["town"]')
    with pytest.raises(SchemaError, match="whole='town'"):
        plan_statistics(read_statistics(written(tmp_path, other)))
