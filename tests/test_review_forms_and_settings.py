"""Laws that a reviewer tried against forms of arrays, settings of fits, and shared budgets.

Neighbours are given the same noise, so that whatever differs was computed from the records; what a
budget takes in all is compared with closed forms in forty digits.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multioutput import MultiOutputClassifier
from tests.test_review_calculus import ODD, RELATIONS, share_moved

import dpledger as dp
from dpledger.accounting import Budget, BudgetExceeded, MemoryLedger, SqliteLedger
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.mechanisms import (
    SIGNS,
    Adjacency,
    BoundedColumn,
    ClassLabels,
    DiscreteLaplaceNoise,
    Event,
    EventList,
    GaussianStep,
    LaplaceNoise,
    Norm,
    PrivateDataset,
    PrivateTable,
    RealLabels,
    RowBlocks,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    WeightedLabels,
    concatenate,
    linear_map,
)
from dpledger.mechanisms.centred import LARGEST_SCALE, CentredRows
from dpledger.runs import RunOptions, release_statistics
from dpledger.runs.estimators import AdmmAlgorithm, PrivateAdmmClassifier, PrivateAdmmRegressor
from dpledger.solvers import Hinge, Huber, Logistic, Multinomial, Summed
from dpledger.solvers.weighted import Weighted

Floats = NDArray[np.float64]
REPLACE, ZERO, ADD = RELATIONS


def said(value: Sensitive, **noise: Any) -> tuple[Floats, Any]:
    """Return what a curator of one seed says of a value, and the mechanism of its event."""
    sink = EventList()
    message = SamplingCurator(sink, SeededSampler(9)).release(value, round=1, release="x", **noise)
    return message, sink.events[0].mechanism


def differing(relation: Adjacency, count: int, rng: np.random.Generator) -> tuple[int, Any, Any]:
    """Return which record differs, which ones the second data set has, and bounds on numbers."""
    place, kept = int(rng.integers(count)), np.ones(count, dtype=bool)
    kept[place] = relation is not ADD
    return place, kept, {"n_min": 1, "n_max": 40} if relation is ADD else {}


Handle = PrivateTable | PrivateDataset


def costs(handle: Handle, draw: random.Random) -> Sensitive:
    """Return costs of a few candidates, at random public arguments."""
    if isinstance(handle, PrivateTable):
        share = draw.choice([0.0, 0.3, 1 / 3, 0.5, 1.0])
        return handle.quantile_costs("x", share, sorted(draw.uniform(-2, 3) for _ in range(3)))
    return handle.wrong_predictions([np.array([draw.gauss(0, 1) for _ in range(3)])] * 2)


def in_l1(handle: Handle, draw: random.Random) -> Sensitive:
    """Return a function of a handle that has an l1 sensitivity, at random public arguments."""
    edges = sorted({draw.uniform(-2, 3) for _ in range(4)})
    if isinstance(handle, PrivateDataset):
        counts = handle.histogram(edges, column=draw.choice([None, 0, 2]), norm=Norm.L1)
        return draw.choice([counts, costs(handle, draw)])
    sums = (handle.sum("x", norm=Norm.L1), handle.histogram("x", edges, norm=Norm.L1))
    return draw.choice([*sums, costs(handle, draw)])


def program_in_l1(handle: Handle, seed: int) -> Sensitive:
    """Return what a random program makes of a handle, in l1; one seed, one program."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    value = in_l1(handle, draw)
    for _ in range(draw.randrange(4)):
        width, other = value.dimension, in_l1(handle, draw)
        match draw.randrange(4):
            case 0:
                value = np.ones(width) - value * draw.choice([0.3, -7.0, 1e3])
            case 1:
                value = linear_map(rng.normal(size=(2, width)), value)
            case 2:
                value = concatenate(value, other)
            case _:
                value = value - linear_map(rng.normal(size=(width, other.dimension)), other)
    return value


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_program_in_l1_moves_further_than_its_event_says(relation: Adjacency) -> None:
    """Tried: tables with cells at and beyond their bounds, records of two classes; sums, counts,
    costs of quantiles and models, mapped, added and joined; every single cost of an answer."""
    rng, shares = np.random.default_rng(1), list[float]()
    for k in range(100):
        count, seed = int(rng.integers(5, 30)), int(rng.integers(2**60))
        place, kept, limits = differing(relation, count, rng)
        cells = rng.choice([-1.5, 0.0, 2.0, 1e300, 0.3, 5e-324], count)
        rows, labels = rng.normal(size=(count, 3)), rng.choice([-1.0, 1.0], count)
        other, turned, changed = cells.copy(), rows.copy(), labels.copy()
        other[place] = rng.choice([-9.0, 9.0]) if relation is REPLACE else 0.0
        turned[place] = -rows[place] if relation is REPLACE else 0.0
        changed[place] = rng.choice([-1.0, 1.0])
        found = list[tuple[Floats, Any, Floats, Any]]()
        for x, a, y, some in ((cells, rows, labels, kept | True), (other, turned, changed, kept)):
            table, bounded = {"x": BoundedColumn(-1.5, 2.0)}, dict[str, Any](limits)
            bounded["adjacency"] = relation
            handle: Handle = PrivateDataset(a[some], y[some], row_bound=1.0, **bounded)
            handle = PrivateTable({"x": x[some]}, table, **bounded) if k % 2 else handle
            value, each = program_in_l1(handle, seed), costs(handle, random.Random(seed))
            scale = value.sensitivity.value / 2
            exact = said(each, mechanism=DiscreteLaplaceNoise(2.0**-8))[0]
            found.append((*said(value, mechanism=LaplaceNoise(scale)), exact, each.each))
        (first, event, one, most), (second, same, two, _) = found
        assert event == same
        shares.append(float(np.abs(first - second).sum()) / event.sensitivity.value)
        assert np.abs(one - two).max() <= most.value
    assert 0.5 < max(shares) <= 1 + 1e-9


SPARSE = ("csr", "csc", "coo", "bsr")
FORMS: dict[str, Callable[[Floats], Any]] = {
    "plain": np.copy,
    "column by column": np.asfortranarray,
    "blocks": lambda rows: RowBlocks(rows.shape, lambda some: rows[some], at_once=3),
    **{f"{name}_array": getattr(sparse, f"{name}_array") for name in SPARSE},
    **{f"{name}_matrix": getattr(sparse, f"{name}_matrix") for name in SPARSE},
}


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_rows_is_another_number(form: str) -> None:
    """Tried: dense rows in three layouts, SciPy's seven sparse arrays and its older matrices, and
    places in CSR that are not sorted, and say that they are."""
    rng = np.random.default_rng(2)
    rows = np.where(rng.random((40, 5)) < 0.5, rng.uniform(-1, 1, (40, 5)), 0.0)
    made = FORMS[form](rows)
    stated: dict[str, Any] = {"adjacency": ADD, "row_bound": 1.0, "n_min": 1}
    if form == "csr_array":
        start, end = made.indptr[3:5]
        made.indices[start:end] = made.indices[start:end][::-1].copy()
        made.data[start:end] = made.data[start:end][::-1].copy()
        made.has_sorted_indices = True
    one, two = (
        said(
            PrivateDataset(some, np.ones(40), **stated).sum_gradient(Logistic(), np.ones(5)),
            noise_std=1e-6,
        )[0]
        for some in (rows, made)
    )
    assert np.abs(one - two).max() < 1e-12


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_centred_row_moves_further_at_any_scale(relation: Adjacency) -> None:
    """Tried: centres up to twice the bound, factors of columns from 1e-300 to the largest, radii
    down to a 64th, kinks, four label domains, bounds of 1e-9 to 1e9, rows in six forms."""
    rng, shares, forms = np.random.default_rng(3), list[float](), list(FORMS.values())
    domains: list[tuple[Any, Any]] = [
        (SIGNS, Hinge() if relation is ADD else Logistic()),
        (ClassLabels(3), Multinomial(3)),
        (RealLabels(2.0), Huber(0.2, 2.0)),
        (WeightedLabels(SIGNS), Weighted(Logistic())),
    ]
    for k in range(120):
        count, width, bound = (
            int(rng.integers(4, 25)),
            int(rng.integers(1, 7)),
            10.0 ** (k % 19 - 9),
        )
        place, kept, limits = differing(relation, count, rng)
        domain, loss = domains[k % 4]
        rows = rng.normal(size=(count, width)) * bound
        rows = rows if k % 5 else rng.choice(np.array(ODD), rows.shape)
        labels: Any = rng.choice(domain.some(9), count)
        other, changed = rows.copy(), labels.copy()
        other[place] = -rows[place] if relation is REPLACE else 0.0
        changed[place] = rng.choice(domain.some(9)) if relation is REPLACE else labels[place]
        radius, centre = bound * rng.choice([1 / 64, 0.45, 1.0, 3.0]), rng.normal(size=width)
        centre *= bound * rng.choice([0.0, 0.5, 1.99]) / float(np.linalg.norm(centre))
        largest = LARGEST_SCALE * radius / bound * (1 - 1e-12)
        scale = largest * 10.0 ** -rng.uniform(0, rng.choice([0.0, 3.0, 300.0]), width)
        found = list[tuple[Floats, Any]]()
        for x, y, some in ((rows, labels, kept | True), (other, changed, kept)):
            limits |= {"adjacency": relation, "row_bound": bound, "label_domain": domain}
            handle = PrivateDataset(forms[k % 6](x[some]), y[some], **limits)
            centred = CentredRows(handle, centre, radius=radius, scale=scale)
            value = centred.mean_gradient(loss, np.ones(handle.shape.parameters(loss)) / bound)
            found.append(
                said(centred.mean_squares() if k % 7 == 0 else value, noise_multiplier=0.5)
            )
        (first, event), (second, same) = found
        assert event == same
        shares.append(share_moved(first, second, event.sensitivity.root))
    assert 0.1 < max(shares) <= 1 + 1e-9


def settings(draw: random.Random) -> tuple[Any, dict[str, Any], dict[str, Any], Any]:
    """Return an estimator, settings of all kinds, arguments of `fit`, and labels, at random."""
    relation, parties = draw.choice(RELATIONS), draw.choice([1, 2])
    algorithms = [each for each in AdmmAlgorithm if each is not AdmmAlgorithm.SAMPLED_PS_ADMM]
    stated: dict[str, Any] = {
        "epsilon": draw.choice([0.05, 2.0]),
        "delta": draw.choice([1e-5, 1e-2]),
        "adjacency": relation.value,
        "n_parties": parties,
        "rounds": draw.choice([1, 3]),
        "clip": draw.random() < 0.7,
        "records_per_unit": draw.choice([1, 1, 3]),
        "n_min": 5 if relation is ADD else None,
    }
    given: dict[str, Any] = {"party_of": np.arange(60) % parties} if relation is ADD else {}
    if draw.random() < 0.3:
        given["sample_weight"] = np.linspace(0.0, draw.choice([1.0, 2.0]), 60)
    if draw.random() < 0.4:
        stated["threat_model"] = Summed()
    if draw.random() < 0.3:
        stated |= {"target_bounds": (-1, 1), "loss": draw.choice(["squared", "huber", "quantile"])}
        return PrivateAdmmRegressor, stated, given, np.linspace(-1, 1, 60)
    stated |= {"algorithm": draw.choice(algorithms), "classes": range(draw.choice([2, 2, 3]))}
    if "threat_model" not in stated and draw.random() < 0.4:
        stated["candidates"] = [{"rounds": 1}, {"algorithm": draw.choice(algorithms)}]
    return PrivateAdmmClassifier, stated, given, np.arange(60) % len(stated["classes"])


def test_what_a_fit_refuses_is_not_paid_and_what_is_paid_is_proved() -> None:
    """Tried: classifiers and regressors of nearly all algorithms, relations, parties, units,
    weights, sums and choices, on a ledger with a budget or without: what the certificate says is
    what the ledger has paid."""
    draw, fitted, refused = random.Random(5), 0, 0
    rows = np.random.default_rng(5).uniform(-0.7, 0.7, (60, 3))
    for k in range(36):
        kind, stated, given, labels = settings(draw)
        ledger = MemoryLedger()
        if k % 3 == 0:
            promised = ApproxDp(2 * stated["epsilon"], stated["delta"])
            ledger.set_budget(Budget(promised, adjacency=Adjacency(stated["adjacency"])))
        try:
            model = kind(**stated, ledger=ledger).fit(rows, labels, **given)
        except ValueError:
            refused += 1
            assert not ledger.events()
            continue
        fitted += 1
        assert model.privacy_.epsilon <= stated["epsilon"]
        assert model.certificate_.events == tuple(ledger.events())
        delta, epsilon = dp.verify(model.certificate_.to_json_bytes()).values
        assert delta <= stated["delta"]
        assert epsilon <= stated["epsilon"]
    assert fitted > 10
    assert refused > 5


META: dict[str, tuple[int, Callable[[Any, Floats, Any], Any]]] = {
    "vote": (2, lambda m, x, y: VotingClassifier([("a", m), ("b", clone(m))]).fit(x, y)),
    "bag": (3, lambda m, x, y: BaggingClassifier(m, 3, bootstrap=False).fit(x, y)),
    "two outputs": (2, lambda m, x, y: MultiOutputClassifier(m).fit(x, np.stack([y, ~y], axis=1))),
    "search": (5, lambda m, x, y: GridSearchCV(m, {"clip": [True, False]}, cv=KFold(2)).fit(x, y)),
    "folds": (3, lambda m, x, y: cross_val_predict(m, x, y, cv=KFold(3))),
}


def epsilon_of(events: Sequence[Event], delta: float) -> Any:
    """Return the epsilon of Gaussian steps by their closed form, in mpmath's numbers."""
    mu, low, high = mpmath.mpf(0), mpmath.mpf(0), mpmath.mpf(100)
    for step in (event.mechanism for event in events):
        assert isinstance(step, GaussianStep)
        squared = step.sensitivity.squared
        mu += mpmath.mpf(squared.numerator) / squared.denominator / mpmath.mpf(step.noise_std) ** 2
    mu = mpmath.sqrt(mu)
    while high - low > mpmath.mpf("1e-30"):
        middle = (low + high) / 2
        tails = mpmath.ncdf(mu / 2 - middle / mu), mpmath.ncdf(-mu / 2 - middle / mu)
        below = tails[0] - mpmath.exp(middle) * tails[1] <= delta
        low, high = (low, middle) if below else (middle, high)
    return high


@pytest.mark.parametrize("meta", META)
def test_every_fit_of_an_estimator_of_estimators_is_paid(meta: str) -> None:
    """Tried: scikit-learn's votes, bags, outputs, searches and folds of one model: the ledger
    has each fit's releases, and its odometer says what all of them cost together."""
    rng, ledger, use = np.random.default_rng(6), MemoryLedger(), META[meta][1]
    rows = rng.uniform(-0.5, 0.5, (90, 3))
    stated: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "adjacency": REPLACE, "rounds": 2}
    stated |= {"algorithm": AdmmAlgorithm.DP_ADMM, "classes": (False, True), "ledger": ledger}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ensembles give their members seeds
        use(PrivateAdmmClassifier(**stated), rows, rows[:, 0] > 0)
    assert (len(ledger.runs()), len(ledger.events())) == (META[meta][0], 2 * META[meta][0])
    with mpmath.workdps(40):
        truth, spent = epsilon_of(ledger.events(), 1e-5), ledger.spent().epsilon(1e-5).upper_float
        assert truth <= spent <= truth * (1 + mpmath.mpf("1e-9"))


def test_two_commands_on_one_ledger_cost_what_both_cost_together(tmp_path: Path) -> None:
    """Tried: statistics and a training of one file on one ledger, with a budget that is a
    millionth too small for both, or as much too large."""
    draw = random.Random(7)
    lines = [f"{draw.uniform(18, 90):.1f},{draw.choice('pq')}" for _ in range(300)]
    (tmp_path / "t.csv").write_text("\n".join(["age,state", *lines]) + "\n")
    (tmp_path / "s.toml").write_text(
        'row_bound = 1.0\ncolumns = [{kind = "numeric", name = "age", lower = 18, upper = 90}, '
        '{kind = "label", name = "state", positive = ["p"], negative = ["q"]}]\n'
    )
    privacy = '[privacy]\nadjacency = "replace-one"\ndelta = 1e-5\nepsilon = '
    data = '[data]\nfiles = ["t.csv"]\nschema = "s.toml"\nrecords = 300\n'
    asked, run = tmp_path / "asked.toml", tmp_path / "run.toml"
    asked.write_text(f'{data}{privacy}0.7\n[[statistics]]\nkind = "mean"\ncolumn = "age"\n')
    run.write_text(
        f"{data}train_records = 200\nparties = 2\n{privacy}2.0\n[solver]\nrounds = 3\n"
        'algorithm = "dp-admm"\nintercept = true\n[noise]\nsampler = "system"\n'
    )
    events = (*release_statistics(asked, out=tmp_path / "a").plan.events, *dp.plan(run).events)
    with mpmath.workdps(40):
        truth = float(epsilon_of(events, 1e-5))
    for factor, paid in ((1 - 1e-6, 1), (1 + 1e-6, 2)):
        ledger, folder = tmp_path / f"{paid}.sqlite", tmp_path / str(paid)
        SqliteLedger.create(ledger, Budget(ApproxDp(truth * factor, 1e-5), REPLACE))
        release_statistics(asked, out=folder / "asked", ledger=ledger)
        options = RunOptions(out=folder / "run", ledger=ledger, attack=False, baselines=False)
        with nullcontext() if paid == 2 else pytest.raises(BudgetExceeded):
            dp.run(run, options)
        with SqliteLedger(ledger, read_only=True) as book:
            assert len(book.runs()) == paid
