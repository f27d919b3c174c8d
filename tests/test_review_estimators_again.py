"""Laws that a reviewer tried against estimators: forms of what they are given, settings, files.

Messages are held fixed, so that whatever still differs was computed from the records.
"""

from __future__ import annotations

import logging
import pickle
import random
import re
import warnings
from collections.abc import Callable, Sequence
from datetime import date
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, special, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from tests.test_review_estimators import (
    RELATIONS,
    REPLACE,
    Tape,
    odd_rows,
    shares_moved,
    shown,
    under_one_transcript,
)

import dpledger as dp
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.ledger import LedgerError, MemoryLedger
from dpledger.accounting.ledger.budget import Budget
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.federation.journal import RecordedCurator
from dpledger.mechanisms import Adjacency, DpledgerError, GaussianStep
from dpledger.mechanisms.curators import Release
from dpledger.runs import RunOptions
from dpledger.runs.estimators import (
    AdmmAlgorithm,
    PrivateAdmmClassifier,
    PrivateAdmmRegressor,
    PrivateSharingClassifier,
)
from dpledger.runs.estimators.rows import bounded_rows

Floats = NDArray[np.float64]
Patch = pytest.MonkeyPatch
A = AdmmAlgorithm
ADD = Adjacency.ADD_REMOVE_ONE
STATED: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-5, "adjacency": REPLACE, "clip": True}
ONE_STEP: dict[str, Any] = {"algorithm": A.DP_SGD, "rounds": 1}


def neighbours(draw: random.Random, rng: np.random.Generator, rel: Adjacency) -> list[list[Any]]:
    """Return rows, labels and weights twice: one record is other, null, or not there."""
    n = draw.choice([6, 20])
    i = draw.randrange(n)
    X, y = odd_rows(rng, (n, 2)), rng.integers(0, 2, n)
    w = rng.choice([0.0, 1e-320, 0.3, 1.0, 9.0, 1e300], n)
    w[i - 1], kept = 1.0, np.arange(n) != (i if rel is ADD else -1)
    two, z, v = X.copy(), y.copy(), w.copy()
    two[i], v[i] = 0.0, 0.0
    if rel is REPLACE:
        two[i], z[i], v[i] = odd_rows(rng, (1, 2))[0], rng.integers(0, 2), rng.choice([0, 9])
    return [[X, y, w], [each[kept] for each in (two, z, v)]]


# --- what is given -------------------------------------------------------------------------------

KINDS: dict[str, Sequence[Any]] = {
    "whole": range(-15, 15),
    "parts": [k / 7 for k in range(-15, 15)],
    "texts": [str(k) for k in range(30)],
    "bytes": [b"%d" % k for k in range(30)],
    "days": [np.datetime64("2020-01-01") + k for k in range(30)],
    "dates": [date(2020, 1, k + 1) for k in range(30)],
    "large": [2**53 + k for k in range(30)],
    "fractions": [Fraction(k, 7) for k in range(30)],
    "booleans": [False, True],
    "blanks": ["x", "x ", " x", "X", "x\n", "", "é"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_label_is_numbered_by_its_own_record(kind: str, monkeypatch: Patch) -> None:
    """Tried: thirty kinds of classes by fourteen of labels, as lists, arrays and objects."""
    draw, rng, shares, pool = random.Random(3), np.random.default_rng(3), [0.0], [*KINDS[kind]]
    forms: list[Callable[[list[Any]], Any]] = [list, np.array, lambda a: np.array(a, dtype=object)]
    for _ in range(3):
        y = [draw.choice(pool) for _ in range(60)]
        other = [draw.choice(pool), *y[1:]]
        form, named, X = draw.choice(forms), draw.choice(forms), rng.normal(size=(60, 2))

        def fit(y: list[Any], form: Any = form, named: Any = named, X: Any = X) -> Any:
            return PrivateAdmmClassifier(**STATED, **ONE_STEP, classes=named(pool)).fit(X, form(y))

        tapes, _ = under_one_transcript(monkeypatch, fit, [y], [other])
        shares.extend(shares_moved(*tapes))
    assert 0.0 < max(shares) <= 1 + 1e-12


def strided(array: NDArray[Any]) -> NDArray[Any]:
    """Return every third row of a longer array, whose others are large."""
    longer = np.full((3 * len(array), *array.shape[1:]), 77).astype(array.dtype)
    longer[::3] = array
    return longer[::3]


def repeated(array: Floats) -> Any:
    """Return sparse rows whose entries are the sums of four, out of order."""
    i, j = (~np.isnan(array)).nonzero()
    parts = [array[i, j] * share for share in (0.5, 3.0, 0.5, -3.0)]
    return sparse.coo_array((np.concatenate(parts), (np.tile(i, 4), np.tile(j, 4))), array.shape)


FORMS: tuple[Callable[[NDArray[Any]], Any], ...] = (
    lambda a: a.clip(-100, 100).astype(np.float16),
    lambda a: a.clip(-100, 100).astype(np.int8),
    lambda a: a.clip(0, 100).astype(np.uint64),
    lambda a: a.astype(np.longdouble),
    lambda a: a.astype(a.dtype.newbyteorder()),
    lambda a: a > 0,
    lambda a: a.astype(object),
    lambda a: a.tolist(),
    np.asfortranarray,
    strided,
    lambda a: a[::-1].copy()[::-1],
)
ROWS: tuple[Callable[[Floats], Any], ...] = (
    *FORMS,
    lambda a: np.ma.masked_array(a, mask=a > 1),
    lambda a: a.astype(str),
    sparse.csc_array,
    sparse.lil_array,
    lambda a: sparse.csr_array(a > 0),
    lambda a: sparse.csr_array(a.clip(-9, 9).astype(np.float32)),
    repeated,
    lambda a: repeated(a).tocsr(),
)


@pytest.mark.parametrize("rel", RELATIONS)
def test_no_form_of_a_record_moves_a_message_further(rel: Adjacency, monkeypatch: Patch) -> None:
    """Tried: 38 forms of rows, 14 of labels and of weights, four estimators; 1,500 fits."""
    draw, rng, shares = random.Random(5), np.random.default_rng(5), list[float]()
    stated = {**STATED, "adjacency": rel, "n_min": 3 if rel is ADD else None}
    while len(shares) < 20:
        row, label, weight = draw.choice(ROWS), draw.choice(FORMS), draw.choice(FORMS)
        more: dict[str, Any] = {"weight_bound": draw.choice([1e-3, 1.0, 5.0])}
        kind: Any = PrivateAdmmRegressor
        if draw.random() < 0.5:
            more |= {"target_bounds": (0, 2), "loss": draw.choice(["squared", "quantile"])}
        else:
            more |= {"classes": (0, 1), "algorithm": draw.choice([A.DP_SGD, A.PVP_ADMM])}
            kind = PrivateAdmmClassifier

        def fit(X: Any, y: Any, w: Any, kind: Any = kind, more: Any = more) -> Any:
            return kind(**stated, **more, rounds=1).fit(X, y, w)

        given = [
            [form(each) for form, each in zip((row, label, weight), data, strict=True)]
            for data in neighbours(draw, rng, rel)
        ]
        try:
            tapes, _ = under_one_transcript(monkeypatch, fit, *given)
        except (ValueError, TypeError):  # an array of objects, a weight that is no number
            continue
        shares.extend(shares_moved(*tapes))
    assert 0.1 < max(shares) <= 1 + 1e-12


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_row_is_scaled_alike_wherever_it_stands(order: Any) -> None:
    """Tried: widths up to 300, blocks' ends, unaligned memory. (A lone column-major row is summed
    in another order: a unit in the last place.)"""
    rng = np.random.default_rng(0)
    for width, count, constant in product((1, 2, 7, 9, 33), (2, 3, 8, 2047, 2049), (False, True)):
        X = rng.normal(size=(count + 1, width))
        some = [np.array(each, order=order) for each in (X, X[1:])]
        stated: Any = {"row_bound": 1.0, "clip": True, "constant": constant}
        found: list[Any] = [bounded_rows(each, **stated) for each in some]
        one, two = (np.concatenate([rows[:2048], rows[2048:]]) for rows in found)
        assert np.array_equal(one[1:], two)


# --- settings, of the fit and of others ----------------------------------------------------------

SIZES = (1e-250, 1e-20, 1.0, 1e20, 1e250)


def test_no_size_of_a_setting_moves_a_message_or_shows_a_record(monkeypatch: Patch) -> None:
    """Tried: bounds, weights, radii, targets and deltas from the smallest to the largest."""
    draw, rng, shares = random.Random(2), np.random.default_rng(2), list[float]()
    while len(shares) < 25:
        kind: Any = draw.choice([PrivateAdmmClassifier, PrivateAdmmRegressor, None])
        stated = {**STATED, "rounds": draw.choice([1, 2]), "row_bound": draw.choice(SIZES)}
        stated |= {"epsilon": draw.choice([1e-3, 100.0]), "delta": draw.choice([1e-12, 0.5])}
        if kind is None:
            kind, own = PrivateSharingClassifier, draw.random() < 0.5
            stated |= {"parties": 2, "public_labels": not own, "classes": (0, 1)}
            stated |= {"slope_bound": draw.choice([1e-3, 1.0]), "radius": draw.choice([0.1, 10.0])}
        else:
            stated |= {"weight_bound": draw.choice(SIZES), "regularisation": draw.choice(SIZES)}
        if kind is PrivateAdmmClassifier:
            stated |= {"classes": (0, 1), "algorithm": draw.choice([A.CONSENSUS, A.DP_SGD])}
        if kind is PrivateAdmmRegressor:
            stated |= {"target_bounds": (0.0, draw.choice(SIZES)), "loss": "huber"}

        def fit(X: Any, y: Any, w: Any, kind: Any = kind, stated: Any = stated) -> Any:
            given = () if kind is PrivateSharingClassifier else (w,)
            return shown(kind(**stated).fit(X, y * (not stated.get("public_labels")), *given))

        try:
            data = neighbours(draw, rng, REPLACE)
            tapes, found = under_one_transcript(monkeypatch, fit, *data)
        except (DpledgerError, ValueError):  # of public numbers; weights that are all 0
            continue
        assert found[0] == found[1]
        shares.extend(shares_moved(*tapes))
    assert 0.1 < max(shares) <= 1 + 1e-12


def test_no_warning_or_log_tells_of_a_record(caplog: pytest.LogCaptureFixture) -> None:
    """Tried: rows all huge, subnormal, zeros of both signs or alike; every error made one."""
    rng, kinds = np.random.default_rng(1), ((1.7e308, -1e154), (5e-324, -1e-310), (0.0, -0.0))
    caplog.set_level(logging.DEBUG)
    with np.errstate(all="raise"), special.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        for cells, sparsely in product(kinds, (False, True)):
            rows, y = rng.choice(np.array(cells), size=(20, 2)), np.arange(20) % 2
            X: Any = sparse.csr_array(rows) if sparsely else rows
            w = rng.choice([5e-324, 1.0, 1e308], 20)
            PrivateAdmmClassifier(**STATED, classes=(0, 1), rounds=1).fit(X, y, w)
            PrivateAdmmRegressor(**STATED, target_bounds=(0, 1), rounds=1).fit(X, y, w)
    assert not caplog.records


def test_a_search_pays_from_one_budget() -> None:
    """Tried: one process, threads, loky and multiprocessing, ledgers in memory and in files."""
    X, ledger = np.random.default_rng(0).uniform(-0.5, 0.5, (80, 2)), MemoryLedger()
    ledger.set_budget(Budget(ApproxDp(4.0, 1e-5), adjacency=REPLACE))
    model = PrivateAdmmClassifier(**STATED, classes=(0, 1), ledger=ledger)
    assert clone(model).ledger is ledger
    with pytest.raises(LedgerError):
        pickle.dumps(model)
    search = GridSearchCV(model, {"rounds": [1, 2, 3]}, cv=2, refit=False, n_jobs=2)
    with joblib.parallel_config(backend="threading"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that the budget refused
        search.fit(X, np.arange(80) % 2)
    scores = np.array([search.cv_results_[f"split{k}_test_score"] for k in (0, 1)])
    paid = len([run for run in ledger.runs() if run.events])
    assert np.isfinite(scores).sum() == paid < 6
    assert guarantee(ledger.events(), delta=1e-5).epsilon.upper_float <= 4.0


def test_noise_of_a_fit_has_the_law_that_its_event_says(monkeypatch: Patch) -> None:
    """Tried: every algorithm, three fits on one ledger with one random_state and without."""
    X, y = np.random.default_rng(0).uniform(-0.5, 0.5, (60, 2)), np.arange(60) % 3
    for algorithm in (A.CONSENSUS, A.DP_ADMM, A.PR_ADMM, A.PS_ADMM):
        tape, ledger = Tape(), MemoryLedger()
        monkeypatch.setattr("dpledger.runs.pipeline.SamplingCurator", tape.curator)
        stated: dict[str, Any] = {**STATED, "n_parties": 2, "rounds": 8, "random_state": 5}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for _ in range(2):
                made = PrivateAdmmClassifier(**stated, classes=(0, 1, 2), ledger=ledger)
                made.set_params(algorithm=algorithm).fit(X, y)
        noise = list[float]()
        for value, event, message in zip(tape.values, tape.events, tape.messages, strict=True):
            assert isinstance(event.mechanism, GaussianStep)
            noise.extend(((message - value) / float(event.mechanism.noise_std)).ravel().tolist())
        assert len(set(noise)) == len(noise)
        assert stats.kstest(noise, "norm").pvalue > 1e-3


# --- beside the fit ------------------------------------------------------------------------------

FILES = """
row_bound = 1.0
columns = [{kind = "numeric", name = "age", lower = 18, upper = 90},
           {kind = "categorical", name = "town", categories = ["north", "south"]},
           {kind = "label", name = "income", positive = ["high"], negative = ["low"]}]
"""
RUN = """
[data]
files = ["t.csv"]
schema = "s.toml"
train_records = 12
parties = 1
[privacy]
adjacency = "replace-one"
delta = 1e-3
noise_multiplier = 2.0
[solver]
algorithm = "dp-admm"
rounds = 2
[noise]
sampler = "system"
"""


class Repeating(RecordedCurator):
    """A curator that says again what it said in the run before, whatever it looks at."""

    said: ClassVar[list[Floats]] = []
    seen: ClassVar[list[float]] = []

    def _noise(self, release: Release) -> Callable[[Floats], Floats]:
        noisy, said, seen = super()._noise(release), self.said, self.seen

        def message(value: Floats) -> Floats:
            seen.append(float(value[0, 0]))
            if len(said) < len(seen):
                said.append(noisy(value))
            return np.array(said[len(seen) - 1])

        return message


def test_no_file_of_a_run_shows_a_training_record_beside_its_messages(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """Tried: replace-one and add-remove-one, a record moved to the other end, a record more."""
    monkeypatch.setattr("dpledger.runs.resuming.RecordedCurator", Repeating)
    other = re.compile(r"\d{4}-\d\d-\d\dT[\d:.+]+|[0-9a-f]{64}|one|two")
    lines = [f"{20 + k},north,{'high' if k % 2 else 'low'}\n" for k in range(20)]
    written, firsts = list[dict[str, str]](), list[float]()
    for name, last in (("one", "18,north,low\n"), ("two", "90,south,high\n")):
        (folder := tmp_path / name).mkdir()
        (folder / "s.toml").write_text(FILES)
        (folder / "t.csv").write_text("age,town,income\n" + "".join(lines) + last)
        (folder / "run.toml").write_text(RUN)
        Repeating.seen.clear()
        off = RunOptions(out=folder / "out", attack=False, crosscheck=False, baselines=False)
        dp.run(folder / "run.toml", off)
        firsts.append(Repeating.seen[0])
        texts = [p for p in (folder / "out").iterdir() if p.suffix in (".html", ".md", ".json")]
        written.append({p.name: other.sub("", p.read_text()) for p in texts})
    assert firsts[0] != firsts[1]
    assert written[0] == written[1]
    assert len(written[0]) == 6
