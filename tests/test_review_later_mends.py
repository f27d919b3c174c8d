"""Laws that a later review found broken: what errors tell, what is judged, written and refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpledger import curve, epsilon
from dpledger.accounting.ledger import SqliteLedger
from dpledger.audits.claims.claim import ClaimVerdict
from dpledger.audits.claims.claim_file import promise_from_text
from dpledger.audits.claims.own import judged_events
from dpledger.audits.crosschecks import Status, crosscheck
from dpledger.data.strict import ConfigurationError
from dpledger.interop.dp_accounting import PldAccountant
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    Audience,
    Context,
    Event,
    EventList,
    GaussianStep,
    InvalidParameter,
    Poisson,
    PrivateDataset,
    Repeated,
    SamplingCurator,
    SeededSampler,
    SystemSampler,
    UnprotectedReleaseError,
    declared,
)
from dpledger.mechanisms.sensitivity import sum_of_bounded
from dpledger.runs.claims import judge_claim_file
from dpledger.runs.training import new_folder
from dpledger.solvers import DpSgd, Logistic
from dpledger.solvers.regularisers import L1
from dpledger.solvers.steps import ConstantSteps

NOWHERE = Context((), 1, "message", Audience.PUBLIC)


def handle(count: int, **given: Any) -> PrivateDataset:
    """Return records of which nobody is told how many there are."""
    rng = np.random.default_rng(0)
    settings = {"adjacency": "add-remove-one", "row_bound": 1.0, "n_min": 50} | given
    return PrivateDataset(rng.normal(size=(count, 3)), rng.choice([-1.0, 1.0], count), **settings)


def other_leading_axes(data: PrivateDataset) -> None:
    sample = SamplingCurator(EventList(), SystemSampler()).sample(data, Poisson(1 - 2.0**-53))
    sample.sum_correction(Logistic(), np.zeros((2, 1, 3)), anchor=np.zeros((3, 1, 3)), radius=1.0)


def other_trials(data: PrivateDataset) -> None:
    curator = SamplingCurator(EventList(), SeededSampler(1), trials=5)
    curator.sample(data, Poisson(0.5)).sum_gradient(Logistic(), np.zeros((3, 1, 3)))


@pytest.mark.parametrize("ask", [other_leading_axes, other_trials])
def test_what_does_not_fit_says_nothing_of_the_number_of_records(
    ask: Callable[[PrivateDataset], None],
) -> None:
    told = []
    for count in (936, 937):
        with pytest.raises((InvalidParameter, UnprotectedReleaseError)) as refused:
            ask(handle(count))
        told.append(str(refused.value))
        assert refused.value.__context__ is None
    assert told[0] == told[1]
    assert not {"936", "937"} & set(told[0].replace(",", " ").split())


def test_a_column_is_a_whole_number() -> None:
    data = handle(60, adjacency="replace-one", n_min=None)
    for column in (1.0, True, "1"):
        with pytest.raises(InvalidParameter, match="column"):
            data.histogram([0.0], column=column)  # type: ignore[arg-type]
    assert data.histogram([0.0], column=np.int64(1)).dimension == 2  # type: ignore[arg-type]


def releases(*mechanisms: Any) -> list[Event]:
    return [Event(mechanism, NOWHERE) for mechanism in mechanisms]


def test_a_looser_peer_does_not_refute_a_promise_that_is_proved() -> None:
    unit = declared(1, "example", adjacency=Adjacency.ADD_REMOVE_ONE)
    promise = promise_from_text("epsilon=1e9, delta=1e-5")
    events = releases(GaussianStep(unit, 0.001))
    assert judged_events(events, promise).verdict is ClaimVerdict.HOLDS
    for steps in (events, releases(Repeated(GaussianStep(unit, 0.001), 50))):
        found = crosscheck(steps, delta=1e-5)
        assert [peer.status for peer in found.peers] == [Status.SKIPPED] * 2
        assert not found.is_finding


def test_samples_that_share_one_noise_are_crosschecked() -> None:
    unit = sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE)
    step = AccumulatedPoisson(GaussianStep(unit, 1.0), 0.01, 4)
    assert not crosscheck(releases(Repeated(step, 10)), delta=1e-5).is_finding


ANSWERS = """[promise]
epsilon = 1.0
delta = 0.0
[[releases]]
mechanism = "randomised-response"
categories = 2
truth = 0.75
rounds = 1
"""


@pytest.mark.parametrize(
    ("relation", "verdict"),
    [
        ('adjacency = "zero-out-one"\n', ClaimVerdict.NOT_IMPLIED),
        ("", None),
        ('adjacency = "replace-one"\n', ClaimVerdict.FAILS),
    ],
)
def test_what_a_blank_answers_refutes_nothing(
    tmp_path: Path, relation: str, verdict: ClaimVerdict | None
) -> None:
    # with a blank that answers at random epsilon is ln 2, below the promise; replaced it is ln 3
    path = tmp_path / "claim.toml"
    path.write_text(relation + ANSWERS)
    found = judge_claim_file(path).finding.verdict
    assert found is verdict or (verdict is None and found is not ClaimVerdict.FAILS)


BARE = """adjacency = "add-remove-one"
[promise]
epsilon = {epsilon}
delta = {delta}
[[releases]]
mechanism = "{mechanism}"
{rest}
rounds = 1
"""


@pytest.mark.parametrize(
    ("epsilon", "delta", "mechanism", "rest", "fails"),
    [
        # not drawn with probability 1 - 1e-6, so that (0, 1e-6) holds
        (1, 1e-5, "gaussian", 'clip_norm=1.0\nnoise_std=0.0\nsampling="poisson"\nrate=1e-6', False),
        (1e16, 0, "laplace", 'sensitivity=1.0\nscale=1e-15\nsampling="none"', False),
        (1, 1e-5, "gaussian", 'clip_norm=1.0\nnoise_std=0.0\nsampling="none"', True),
    ],
)
def test_only_no_noise_on_all_records_refutes_every_promise(
    tmp_path: Path, epsilon: float, delta: float, mechanism: str, rest: str, fails: bool
) -> None:
    path = tmp_path / "claim.toml"
    path.write_text(BARE.format(epsilon=epsilon, delta=delta, mechanism=mechanism, rest=rest))
    assert (judge_claim_file(path).finding.verdict is ClaimVerdict.FAILS) == fails


@pytest.mark.parametrize(
    "text", ["epsilon=1e9, delta=1e-400", "epsilon=1e400, delta=0.1", "=", "=1"]
)
def test_a_promise_in_a_text_is_a_number_that_a_double_holds(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--promise"):
        promise_from_text(text)


@pytest.mark.parametrize("name", ["model.json", "report.html", "schema.toml", "public.html"])
def test_a_run_is_not_written_over_the_ledger_that_pays_for_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with SqliteLedger(path):
        pass
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        new_folder(tmp_path, "run", path)
    assert path.read_bytes() == before


def test_a_run_is_not_written_over_the_anchor_of_its_ledger(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError):
        new_folder(tmp_path, "run", None, tmp_path / "model.json")
    assert new_folder(tmp_path, "run", None, tmp_path / "anchor.txt") == tmp_path


def test_steps_at_which_the_model_runs_away_are_refused_in_a_plan() -> None:
    shape = handle(60, adjacency="replace-one", n_min=None).shape
    given: dict[str, Any] = {"rounds": 3, "noise_multiplier": 1.0, "regularisation": 10.0}
    planned = PrivateDataset.planned(shape)
    curator = SamplingCurator(EventList(), SystemSampler())
    with pytest.raises(InvalidParameter, match=r"step size=4\.0 must be at most 2/10"):
        DpSgd(steps=ConstantSteps(4.0), **given).solve(planned, curator)
    # sums of absolute values pull no harder far away
    with pytest.raises(InvalidParameter, match="plans have none"):
        DpSgd(steps=ConstantSteps(4.0), regulariser=L1(), **given).solve(planned, curator)


def test_what_tells_all_has_a_power_of_one_at_no_false_alarm() -> None:
    from dp_accounting import dp_event

    for event in (dp_event.NonPrivateDpEvent(), dp_event.GaussianDpEvent(0.0)):
        accountant = PldAccountant().compose(event)
        assert accountant.get_true_positive_rates(0.0) == 1.0
        assert np.all(accountant.get_true_positive_rates(np.array([0.0, 1e-9, 0.5])) == 1.0)


def test_private_steps_are_priced_beside_gaussian_noise_under_every_relation(
    tmp_path: Path,
) -> None:
    path = tmp_path / "claim.toml"
    text = """[promise]
epsilon = 5.0
delta = 1e-5
[[releases]]
mechanism = "private"
epsilon = 0.1
delta = 1e-7
rounds = 3
[[releases]]
mechanism = "gaussian"
sensitivity = 1.0
noise_std = 10.0
rounds = 1
sampling = "none"
"""
    for relation in ("add-remove-one", "zero-out-one", "replace-one"):
        path.write_text(f'adjacency = "{relation}"\n{text}')
        assert judge_claim_file(path).finding.verdict is ClaimVerdict.HOLDS


@pytest.mark.parametrize("select", [5, "geometric", True])
def test_what_is_no_law_of_the_number_of_runs_is_refused(select: Any) -> None:
    with pytest.raises(InvalidParameter, match="select"):
        epsilon(
            noise_multiplier=1.0,
            records=1000,
            batch=10,
            epochs=1,
            delta=1e-5,
            sampling="poisson",
            adjacency="add-remove-one",
            select=select,
        )


@pytest.mark.parametrize("deltas", [[-1.0], [0.0], [1.0], [float("nan")], 1e-5, [[1e-5, 1e-6]]])
def test_a_curve_is_asked_at_a_list_of_deltas(deltas: Any) -> None:
    for stated in ({"sampling": "poisson"}, {"sampling": "truncated-poisson", "largest_batch": 60}):
        with pytest.raises(InvalidParameter, match="delta"):
            curve(
                noise_multiplier=1.0,
                records=1000,
                batch=10,
                epochs=1,
                adjacency="add-remove-one",
                deltas=deltas,
                **stated,  # type: ignore[arg-type]
            )
