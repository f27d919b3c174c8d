"""Laws that a review found broken: others' files, wrong kinds of arguments, what is judged."""

from pathlib import Path
from typing import Any

import dp_accounting
import numpy as np
import pytest

from dpledger.accounting.ledger import LedgerError, SqliteLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.enclosure import Enclosure
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.accounting.training_runs import TrainingRun
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.claim_file import promise_from_text
from dpledger.audits.claims.own import judged_events
from dpledger.audits.crosschecks import Status, crosscheck
from dpledger.audits.violations import query_patterns
from dpledger.interop.dp_accounting import PldAccountant
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteLaplaceStep,
    Event,
    EventList,
    GaussianStep,
    InvalidParameter,
    Mechanism,
    Norm,
    PrivateDataset,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SamplingCurator,
    SystemSampler,
    declared,
)
from dpledger.mechanisms.noise import DiscreteLaplaceNoise
from dpledger.mechanisms.private_table import BoundedColumn, PrivateTable
from dpledger.mechanisms.sensitivity import mean_of_bounded
from dpledger.runs.claims import judge_claim_file
from dpledger.runs.estimators import PrivateAdmmClassifier, PrivateAdmmRegressor
from dpledger.runs.training import journal_folder, new_folder

REPLACE = Adjacency.REPLACE_ONE
PROMISE = promise_from_text("epsilon=2, delta=1e-5")


def events(*mechanisms: Mechanism) -> tuple[Event, ...]:
    where = Context((), 1, "message", Audience.PUBLIC)
    return tuple(Event(mechanism, where) for mechanism in mechanisms)


# --- the court ---------------------------------------------------------------------------------

RARE = SampledWithoutReplacement(GaussianStep(mean_of_bounded(1, 1, REPLACE), 0.0), 1, 10**9)
"""Without noise, so that delta pays for the record's being drawn at all."""


@pytest.mark.parametrize(
    "beside",
    [
        RandomisedResponse(0.75),
        RandomisedResponse(0.0, 10**6),
        GaussianStep(declared(0, "public", adjacency=REPLACE), 0.0),
    ],
)
def test_a_sample_that_delta_pays_for_refutes_nothing_beside_what_tells_little(
    beside: Mechanism,
) -> None:
    found = judged_events(events(RARE, beside), PROMISE)
    assert found.verdict is not ClaimVerdict.FAILS


@pytest.mark.parametrize(
    "beside",
    [
        RandomisedResponse(1.0, 3),
        RandomisedResponse(0.0),
        RandomisedResponse(0.0, 1000),
        GaussianStep(declared(1, "all", adjacency=REPLACE), 0.0),
    ],
)
def test_what_tells_all_refutes_beside_a_sample_too(beside: Mechanism) -> None:
    assert judged_events(events(RARE, beside), PROMISE).verdict is ClaimVerdict.FAILS


def test_a_claim_of_answers_beside_a_rare_sample_does_not_fail(tmp_path: Path) -> None:
    path = tmp_path / "claim.toml"
    path.write_text(
        'adjacency = "replace-one"\nunit = "a record"\ntuning = "none"\npreprocessing = "none"\n'
        "[promise]\nepsilon = 2.0\ndelta = 1e-5\n"
        '[[releases]]\nname = "answer"\nmechanism = "randomised-response"\ncategories = 2\n'
        'truth = 0.75\nrounds = 1\n[[releases]]\nname = "sum"\nmechanism = "gaussian"\n'
        'sensitivity = 1.0\nnoise_std = 0.0\nrounds = 1\nsampling = "fixed-batch"\nbatch = 1\n'
        "records = 1000000000\n"
    )
    assert judge_claim_file(path).finding.verdict is not ClaimVerdict.FAILS


# --- the cross-check ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "noise", "steps"), [(0.01, 1.0, 100), (0.9, 3.0, 10), (0.5, 1.0, 1)]
)
def test_poisson_samples_of_which_a_record_is_replaced_are_no_finding(
    rate: float, noise: float, steps: int
) -> None:
    run = TrainingRun.of(sampling="poisson", adjacency="replace-one", rate=rate, steps=steps)
    found = crosscheck(run.events(noise), delta=1e-5)
    rdp, pld = found.peers
    assert found.agrees
    assert pld.status is Status.AGREE  # of the very same pair, no dominating one
    assert rdp.theirs is not None
    assert rdp.theirs > found.ours.upper_float


@pytest.mark.parametrize(("scale", "times"), [(2.51, 23), (4.6, 17)])
def test_losses_of_few_values_on_a_finer_grid_are_no_finding(scale: float, times: int) -> None:
    size = declared(1, "count", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1)
    found = crosscheck(events(Repeated(DiscreteLaplaceStep(size, scale), times)), delta=1e-5)
    assert found.agrees


def test_a_smaller_epsilon_of_ours_is_a_finding_on_every_grid() -> None:
    size = declared(1, "count", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1)
    steps = events(Repeated(DiscreteLaplaceStep(size, 2.51), 23))
    true = crosscheck(steps, delta=1e-5).ours.upper_float
    wrong = crosscheck(steps, delta=1e-5, price=lambda *_: Enclosure.of(0.97 * true))
    assert wrong.is_finding


def test_more_answers_than_the_peer_composes_in_seconds_are_not_asked() -> None:
    found = crosscheck(events(Repeated(RandomisedResponse(0.501), 10**6)), delta=1e-5)
    assert found.peers[1].status is Status.SKIPPED
    assert not found.is_finding


# --- other people's files ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["schema.toml", "configuration.holder.toml"])
def test_a_run_copies_over_no_other_file_of_that_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"another's")
    with pytest.raises(FileExistsError):
        new_folder(tmp_path, "run", copies={name: b"the run's"})
    assert (tmp_path / name).read_bytes() == b"another's"
    assert new_folder(tmp_path, "run", copies={name: b"another's"}) == tmp_path
    (tmp_path / "configuration.toml").unlink()  # by which a run takes its folder
    assert new_folder(tmp_path, "run") == tmp_path  # which copies nothing there


@pytest.mark.parametrize("name", ["certificate.json", "model.npy", "report.html"])
def test_a_federation_is_not_written_into_the_folder_of_a_run(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"of a run")
    with pytest.raises(FileExistsError):
        journal_folder(tmp_path)
    (tmp_path / "journal.sqlite").write_bytes(b"")  # its own: it goes on
    assert journal_folder(tmp_path) == tmp_path / "journal.sqlite"


def test_a_party_brings_a_ledger_with_its_budget(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"")
    assert journal_folder(tmp_path) == tmp_path / "journal.sqlite"


# --- kinds of arguments ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ledger", "census.sqlite"), ("parties", 3), ("parties", "ab"), ("fit_intercept", None)),
        *(("candidates", 2), ("candidates", [1, 2]), ("candidates", ["a", "b"])),
    ],
)
def test_a_fit_refuses_a_wrong_kind_by_name(name: str, value: Any) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40, 2)), np.arange(40) % 2
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one"}
    model = PrivateAdmmClassifier(**given | {name: value})
    with pytest.raises(InvalidParameter, match=name):
        model.fit(rows, labels)


@pytest.mark.parametrize("bounds", ["x", (0.0, 10**400), None, (1.0,), (0.0, "much")])
def test_bounds_of_targets_are_two_numbers(bounds: Any) -> None:
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one"}
    model = PrivateAdmmRegressor(**given, target_bounds=bounds)
    with pytest.raises(InvalidParameter, match="target_bounds"):
        model.fit(rng.normal(size=(40, 2)), rng.normal(size=40))


@pytest.mark.parametrize("noise", ["abc", "1", 10**400, float("nan"), -1.0])
def test_noise_is_a_number_and_else_nothing_is_released(noise: Any) -> None:
    data = PrivateDataset(np.eye(3), np.ones(3), adjacency="replace-one", row_bound=1.0)
    kept = EventList()
    with pytest.raises(InvalidParameter, match="noise_std"):
        SamplingCurator(kept, SystemSampler()).release(
            data.second_moment(), noise_std=noise, round=1, release="mean", audience=Audience.PUBLIC
        )
    assert not kept.events


@pytest.mark.parametrize("scale", [None, "1", 10**400])
def test_a_scale_is_a_number(scale: Any) -> None:
    with pytest.raises(InvalidParameter, match="scale"):
        DiscreteLaplaceNoise(scale)


def test_sums_of_wide_steps_are_counted_in_their_steps() -> None:
    """A thousand multiples of 2 up to 1e13 are exact, below 2^53 steps; of 1 they are not."""
    cells = {"x": np.full(1000, 1e13)}

    def total(step: float) -> Any:
        column = BoundedColumn(0.0, 1e13, step)
        return PrivateTable(cells, {"x": column}, adjacency="replace-one").sum("x")

    assert total(2.0).sensitivity.value == 1e13
    with pytest.raises(InvalidParameter, match=r"step=1\.0 must be a larger power of two"):
        total(1.0)


@pytest.mark.parametrize("truth", [5e-324, 1e-310])
def test_answers_whose_loss_no_double_holds_are_refused(truth: float) -> None:
    with pytest.raises(InvalidParameter, match="truth"):
        RandomisedResponse(truth)
    RandomisedResponse(2.0**-1000)


def test_a_ledger_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    budget = Budget(ApproxDp(1, 1e-5), REPLACE)
    for name in (Path("."), Path("/")):
        with pytest.raises(LedgerError, match="the name of a file"):
            SqliteLedger.create(name, budget)


def test_patterns_of_too_many_queries_are_refused_by_their_number() -> None:
    with pytest.raises(InvalidParameter, match=r"queries=10000000000000 must be .*1000000"):
        query_patterns(10**13)


def test_what_is_no_number_has_no_delta() -> None:
    accountant = PldAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(1.0))
    with pytest.raises(InvalidParameter, match="target_epsilon"):
        accountant.get_delta(float("nan"))
    with pytest.raises(InvalidParameter, match="target_delta"):
        accountant.get_epsilon(float("nan"))
