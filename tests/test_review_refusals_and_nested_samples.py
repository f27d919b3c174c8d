"""What is refused shows nothing private, and a sample in a sample draws from what there is."""

from __future__ import annotations

import json
import traceback
import zipfile
from collections.abc import Callable
from fractions import Fraction
from math import expm1, log1p
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpledger as dp
from dpledger.accounting.guarantees import guarantee
from dpledger.audits.claims.claim import ClaimVerdict, Finding
from dpledger.audits.claims.own import PromisedEpsilon
from dpledger.audits.crosschecks import Status, crosscheck
from dpledger.data.errors import UnreadableFile
from dpledger.data.files import read_arrays
from dpledger.data.strict import ConfigurationError
from dpledger.interop import MalformedImport, read
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    Audience,
    BoundedColumn,
    Context,
    DpledgerError,
    Event,
    EventList,
    GaussianStep,
    InvalidParameter,
    Poisson,
    PrivateDataset,
    PrivateTable,
    Repeated,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    SystemSampler,
    concatenate,
)
from dpledger.mechanisms.rounding import exact
from dpledger.mechanisms.sensitivity import declared
from dpledger.runs.claims import judge_claim_file, judge_foreign_file
from dpledger.runs.statistics import Statistic, StatisticName
from dpledger.solvers import Logistic

_PUBLIC = {"public", "inputs", "other", "w", "point", "array"}
"""Names of what the caller hands in."""


def _arrays_shown(refused: Callable[[], object]) -> list[str]:
    """Which variables of our frames show numbers, in a traceback of a refusal."""
    with pytest.raises(DpledgerError) as caught:
        refused()
    return [
        f"{frame.f_code.co_qualname}: {name}"
        for frame, _ in traceback.walk_tb(caught.value.__traceback__)
        for name, content in frame.f_locals.items()
        if "dpledger" in frame.f_code.co_filename
        and name not in _PUBLIC
        and "array(" in repr(content)
    ]


def _private(**size: int) -> PrivateDataset:
    rows = np.random.default_rng(0).normal(size=(40, 2))
    relation = "add-remove-one" if size else "replace-one"
    return PrivateDataset(rows, np.ones(40), adjacency=relation, row_bound=1.0, **size)


def test_what_is_too_imprecise_is_refused_before_it_is_computed() -> None:
    """Debuggers, and services that collect errors, print tracebacks with their variables."""
    one = _private().mean_gradient(Logistic(), np.zeros(2))
    assert _arrays_shown(lambda: one + 1e14) == []
    assert _arrays_shown(lambda: np.full(2, 1e14) - one) == []
    assert _arrays_shown(lambda: one.clipped(1e-15)) == []
    cells = {"second": 1.7e9 + np.arange(5000.0) % 3600}
    column = BoundedColumn(1.7e9, 1.7e9 + 3600, 2.0**-8)
    table = PrivateTable(cells, {"second": column}, adjacency="replace-one")
    assert _arrays_shown(lambda: table.mean("second")) == []
    many = _private(n_min=30, n_max=10**11)
    assert _arrays_shown(lambda: many.sum_gradient(Logistic(), np.zeros(2))) == []
    sample = SamplingCurator(EventList(), SystemSampler()).sample(many, Poisson(0.5))
    assert _arrays_shown(lambda: sample.sum_gradient(Logistic(), np.zeros(2))) == []


def test_a_computation_that_fails_shows_no_number() -> None:
    """Of a loss, too: what is raised inside carries no frame that holds records."""
    three, two = (_private().mean_gradient(Logistic(), np.zeros((k, 1, 2))) for k in (3, 2))
    assert _arrays_shown(lambda: three + two) == []
    assert _arrays_shown(lambda: concatenate(three, two)) == []
    with pytest.raises(InvalidParameter, match=r"at \(2,\) points"):
        concatenate(three, two)


class _Exhausted(SeededSampler):
    """A generator of one's own that gives no more."""

    def gaussian(self, value: Any, noise_std: float) -> Any:
        raise OSError(f"no more bits for {value}")


def test_a_sampler_that_fails_shows_no_value() -> None:
    """Its error names what it was handed: another stands in its place."""
    one = _private().mean_gradient(Logistic(), np.zeros(2))
    curator = SamplingCurator(EventList(), _Exhausted(1))

    def released() -> object:
        return curator.release(one, noise_multiplier=1.0, round=1, release="g")

    assert _arrays_shown(released) == []
    with pytest.raises(InvalidParameter, match="sampler='OSError' must be a source") as caught:
        released()
    assert caught.value.__context__ is None


def test_a_refused_value_has_a_repr() -> None:
    """A service that prints variables asks for it while the constructor's frame is alive."""
    one = _private().mean_gradient(Logistic(), np.zeros(2))
    with pytest.raises(DpledgerError) as caught:
        one + 1e14
    frames = traceback.walk_tb(caught.value.__traceback__)
    shown = [repr(frame.f_locals.get("self")) for frame, _ in frames]
    assert "<Sensitive: refused>" in shown


# Samples in samples -------------------------------------------------------------------------------


def _event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"module_name": "dp_accounting.dp_event", "class_name": f"{kind}DpEvent", **fields}


_LAPLACE = _event("Laplace", noise_multiplier=1.0)


def _drawn(kind: str, source: int, size: int, event: dict[str, Any]) -> dict[str, Any]:
    return _event(f"Sampled{kind}", source_dataset_size=source, sample_size=size, event=event)


def _read(
    document: dict[str, Any], folder: Path, relation: Adjacency = Adjacency.REPLACE_ONE
) -> Any:
    path = folder / "event.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return read("dp-event", path, adjacency=relation)


_TREE = _event("SingleEpochTreeAggregation", noise_multiplier=1.0, step_counts=2)
_ONE_OF_TEN = _drawn("WithoutReplacement", 10, 1, _LAPLACE)


@pytest.mark.parametrize(
    "document",
    [
        _drawn("WithReplacement", 10, 2, _ONE_OF_TEN),
        _drawn("WithReplacement", 10, 2, _event("SelfComposed", count=2, event=_ONE_OF_TEN)),
        _drawn(
            "WithoutReplacement",
            10,
            2,
            _event("RepeatAndSelect", mean=3.0, shape=1.0, event=_ONE_OF_TEN),
        ),
        _drawn("WithReplacement", 10, 2, _event("Composed", events=[_LAPLACE, _ONE_OF_TEN])),
    ],
)
def test_an_inner_sample_of_more_than_was_drawn_is_refused(
    document: dict[str, Any], tmp_path: Path
) -> None:
    """It would amplify by the outer share a second time: 0.12 for a truth of 0.49."""
    with pytest.raises(MalformedImport, match=r"of 2 records, not from 10"):
        _read(document, tmp_path)


@pytest.mark.parametrize(
    ("relation", "document"),
    [
        (Adjacency.ZERO_OUT_ONE, _event("PoissonSampled", sampling_probability=0.01, event=_TREE)),
        (Adjacency.REPLACE_ONE, _drawn("WithoutReplacement", 10, 2, _TREE)),
        (
            Adjacency.REPLACE_ONE,
            _drawn("WithReplacement", 10, 2, _event("Composed", events=[_TREE])),
        ),
    ],
)
def test_trees_of_sums_of_a_sample_are_refused(
    relation: Adjacency, document: dict[str, Any], tmp_path: Path
) -> None:
    """A record that is drawn moves others to other leaves: 0.8 for a truth of 4.8, of the first."""
    with pytest.raises(MalformedImport, match="moves others to other leaves"):
        _read(document, tmp_path, relation)


def test_an_inner_sample_of_what_was_drawn_costs_what_both_draws_are_worth(tmp_path: Path) -> None:
    """One of two of ten is one of ten; the true loss is that of a tenth of Laplace's."""
    document = _drawn("WithReplacement", 10, 2, _drawn("WithoutReplacement", 2, 1, _LAPLACE))
    priced = guarantee(_read(document, tmp_path), delta=1e-9).epsilon.upper_float
    truth = log1p(0.1 * expm1(2.0))
    assert truth <= priced < 1.2 * truth


# What is taken for granted is said ----------------------------------------------------------------


def test_the_best_of_several_runs_says_how_their_number_is_drawn() -> None:
    """Of twenty runs exactly the best is worth more than is printed."""
    found = dp.epsilon(noise_multiplier=2.0, steps=1, delta=1e-5, **_ALL, select=dp.Selection(20))
    assert any("drawn anew" in text for text in found.guarantee.assumptions)
    alone = dp.epsilon(noise_multiplier=2.0, steps=1, delta=1e-5, **_ALL)
    assert not any("drawn anew" in text for text in alone.guarantee.assumptions)


_ALL: dict[str, Any] = {"sampling": "none", "adjacency": "add-remove-one"}
_RUN = {
    "number_of_examples": 1000,
    "batch_size": 10,
    "num_epochs": 1,
    "noise_multiplier": 4.0,
    "sampling": "poisson",
}


@pytest.mark.parametrize("micro", [True, False])
@pytest.mark.parametrize("relation", [Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE])
def test_microbatches_are_named_among_what_is_assumed(
    micro: bool, relation: Adjacency, tmp_path: Path
) -> None:
    """A record of a microbatch moves the sum by two clip norms, and must not move the others."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**_RUN, "used_microbatching": micro}), encoding="utf-8")
    mechanisms = read("tf-privacy", path, adjacency=relation)
    assumed = guarantee(mechanisms, delta=1e-5).assumptions
    assert micro is any("twice the clip norm" in text for text in assumed)
    assert micro is not any("in units of the clip norm" in text for text in assumed)
    assert not any("at most 1 clip norm" in text for text in assumed)


def test_mixtures_on_a_grid_of_many_points_are_not_asked_of_a_peer() -> None:
    """It inverts the loss at each of them: minutes, or hours."""
    pytest.importorskip("dp_accounting")
    step = GaussianStep(declared(1, "for the test", adjacency=Adjacency.ADD_REMOVE_ONE), 1.1)
    mechanism = Repeated(AccumulatedPoisson(step, 0.001, 4), 10)
    context = Context((), 1, "r", Audience.PUBLIC)
    peers = crosscheck([Event(mechanism, context)], delta=1e-5).peers
    assert [each.status for each in peers] == [Status.SKIPPED] * 2
    assert "points of a grid" in peers[1].explanation


# Files --------------------------------------------------------------------------------------------


def test_an_archive_with_another_file_in_it_is_refused(tmp_path: Path) -> None:
    """NumPy hands what is no array out as bytes."""
    path = tmp_path / "table.npz"
    np.savez(path, x=np.ones(2))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("readme.txt", "about x")
    with pytest.raises(UnreadableFile, match="arrays alone instead got a file 'readme"):
        read_arrays(path)


@pytest.mark.parametrize("weight", [5e-324, 1e-101, 1e101, float("nan"), -1.0])
def test_a_weight_whose_ratio_overflows_is_refused(weight: float) -> None:
    """In words, before the plan."""
    with pytest.raises(ValueError, match=r"weight=.* must be in \[1e-100, 1e\+100\]"):
        Statistic(kind=StatisticName.COUNT, weight=weight)


# Values made by hand ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2.0**55, -1.1, float("inf"), float("nan")])
def test_a_public_value_is_no_larger_than_is_said(size: float) -> None:
    """Added to a private one it would round neighbours apart, which nobody would pay for."""

    def by_hand(number: float) -> Sensitive:
        return Sensitive(
            declared(0, "public", adjacency=Adjacency.REPLACE_ONE),
            exact(Fraction(1), width=1),
            parties=("all",),
            dimension=1,
            compute=lambda: np.array([[number]]),
        )

    assert by_hand(-1.0).dimension == 1
    with pytest.raises(InvalidParameter, match="within the magnitude 1"):
        by_hand(size)


def test_a_judged_file_says_what_it_does_not_state(tmp_path: Path) -> None:
    """As a ledger's hearing does: what holds, holds of these releases and of what is assumed."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**_RUN, "used_microbatching": False}), encoding="utf-8")
    promise = PromisedEpsilon(epsilon=1.0, delta=1e-5)
    judged = judge_foreign_file("tf-privacy", path, promise, adjacency=Adjacency.ADD_REMOVE_ONE)
    assert judged.finding.verdict is ClaimVerdict.HOLDS
    assert any("nothing else was released: a file cannot say" in text for text in judged.missing)
    assumed = [check.text for check in judged.checks]
    assert any("imported history" in text for text in assumed)
    assert any("clip" in text for text in assumed)


# Claims in files ----------------------------------------------------------------------------------


def _judged(folder: Path, release: str, *, epsilon: float, delta: float) -> Finding:
    path = folder / "claim.toml"
    path.write_text(
        'adjacency = "replace-one"\ntuning = "none"\n'
        f"[promise]\nepsilon = {epsilon}\ndelta = {delta}\n[[releases]]\nrounds = 1\n{release}",
        encoding="utf-8",
    )
    return judge_claim_file(path).finding


def test_the_number_of_answers_is_asked_for(tmp_path: Path) -> None:
    """One of ten, the true one half of the time, is ln 9: of two answers it would be nothing."""
    answer = 'mechanism = "randomised-response"\ntruth = 0.5\n'
    unsaid = _judged(tmp_path, answer, epsilon=0.1, delta=0.0)
    assert unsaid.verdict is ClaimVerdict.UNSPECIFIED
    assert any("number of answers" in text for text in unsaid.argument)
    ten = _judged(tmp_path, f"{answer}categories = 10\n", epsilon=2.19, delta=0.0)
    assert ten.verdict is ClaimVerdict.FAILS
    more = _judged(tmp_path, f"{answer}categories = 10\n", epsilon=2.2, delta=0.0)
    assert more.verdict is ClaimVerdict.HOLDS


def test_discrete_noise_has_no_multiplier(tmp_path: Path) -> None:
    """Its price is no function of the ratio: of 2 and 1.4 it is more than of 1 and 0.7."""
    release = 'mechanism = "discrete-gaussian"\nnoise_multiplier = 0.7\n'
    with pytest.raises(ConfigurationError, match="noise_std and sensitivity of discrete noise"):
        _judged(tmp_path, release, epsilon=3.5, delta=0.01)


@pytest.mark.parametrize(
    ("release", "named"),
    [
        ('mechanism = "laplace"\nclip_norm = 1.0\nscale = 2.0\n', "taken to be l1"),
        ('mechanism = "exponential"\nepsilon = 1.0\n', "whether the epsilon of release"),
        ('mechanism = "private"\nepsilon = 1.0\ndelta = 0.0\n', "whether the epsilon of release"),
    ],
)
def test_what_a_stated_number_is_taken_to_be_of_is_named(
    release: str, named: str, tmp_path: Path
) -> None:
    """A norm, or a relation, that the file does not say."""
    found = _judged(tmp_path, release, epsilon=1.0, delta=0.0)
    assert found.verdict is ClaimVerdict.HOLDS
    assert any(named in text for text in found.argument)


def test_what_the_price_of_a_claim_rests_on_is_shown(tmp_path: Path) -> None:
    """As in certificates: that samples stay hidden, and that records are of one party."""
    path = tmp_path / "claim.toml"
    head = 'adjacency = "zero-out-one"\ntuning = "none"\n[promise]\nepsilon = 2.0\ndelta = 1e-5\n'
    step = '[[releases]]\nmechanism = "gaussian"\nsensitivity = 1.0\nnoise_std = 2.0\nrounds = 9\n'
    sampled = 'sampling = "poisson"\nrate = 0.01\n'
    path.write_text(head + step + sampled, encoding="utf-8")
    assumed = [check.text for check in judge_claim_file(path).checks]
    assert any("stay hidden" in text for text in assumed)
    path.write_text(head + step, encoding="utf-8")
    assumed = [check.text for check in judge_claim_file(path).checks]
    assert assumed == ["the sensitivity that the claim states"]


@pytest.mark.parametrize("records", [1, 3])
def test_what_no_rule_prices_is_undecided_for_persons_too(records: int, tmp_path: Path) -> None:
    """A replaced answer beside a record that is left out: no claim was made of two relations."""
    path = tmp_path / "claim.toml"
    path.write_text(
        f'adjacency = "zero-out-one"\nrecords_per_unit = {records}\ntuning = "none"\n'
        "[promise]\nepsilon = 9.0\ndelta = 1e-5\n"
        '[[releases]]\nmechanism = "gaussian"\nsensitivity = 1.0\nnoise_std = 2.0\nrounds = 1\n'
        '[[releases]]\nmechanism = "randomised-response"\ncategories = 2\ntruth = 0.6\n'
        "rounds = 1\n",
        encoding="utf-8",
    )
    assert judge_claim_file(path).finding.verdict is ClaimVerdict.UNDECIDED


_TOTAL = "import sys\ndef total(rows, labels, public):\n    return rows.sum(axis=0)\n"


@pytest.mark.parametrize("last", ["sys.exit(0)\n", "def total(*given):\n    sys.exit(0)\n"])
def test_a_program_that_ends_the_process_is_a_mistake(last: str, tmp_path: Path) -> None:
    """When it is imported, or when it is called: the status was that of what holds."""
    (tmp_path / "mine.py").write_text(_TOTAL + last, encoding="utf-8")
    path = tmp_path / "claim.toml"
    path.write_text(
        'adjacency = "replace-one"\n[promise]\nsensitivity = 0.1\n'
        '[function]\ncode = "mine.py:total"\ncount = 5\nfeatures = 2\n',
        encoding="utf-8",
    )
    with pytest.raises(DpledgerError, match="SystemExit"):
        judge_claim_file(path, run_code=True)


@pytest.mark.parametrize("parts", [1, 8])
def test_parts_of_a_batch_are_said_to_share_no_record(parts: int) -> None:
    """Drawn one by one under one noise, eight of these lose 23.6 and not 16.96."""
    asked: dict[str, Any] = {"sampling": "poisson", "adjacency": "add-remove-one", "rate": 0.01}
    found = dp.epsilon(noise_multiplier=0.6, steps=100, delta=1e-5, accumulation=parts, **asked)
    named = any("parts of a batch" in text for text in found.guarantee.assumptions)
    assert named is (parts > 1)


@pytest.mark.parametrize(
    "release",
    [
        'mechanism = "discrete-gaussian"\nsensitivity = 1.0\nnoise_std = 2.0\n',
        'mechanism = "randomised-response"\ncategories = 2\ntruth = 0.6\n',
    ],
)
def test_that_all_records_take_part_may_be_said_of_every_mechanism(
    release: str, tmp_path: Path
) -> None:
    """It was refused, where leaving it out was not."""
    said, left_out = (
        _judged(tmp_path, text, epsilon=4.0, delta=1e-5)
        for text in (f'{release}sampling = "none"\n', release)
    )
    assert said.verdict is left_out.verdict is ClaimVerdict.HOLDS
