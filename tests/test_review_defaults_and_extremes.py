"""Laws that a reviewer tried against what estimators choose by themselves, and data of all sizes.

Messages are held fixed, so that whatever still differs was computed from the records; epsilons are
compared with dp_accounting, with integrals in doubles, and with sums over all outcomes.
"""

from __future__ import annotations

import itertools
import random
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from math import exp, expm1, log
from typing import Any

import dp_accounting.pld.privacy_loss_distribution as pld
import numpy as np
import pytest
import scipy
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold
from tests.test_review_estimators import RELATIONS, odd_rows, shares_moved, under_one_transcript
from tests.test_review_handles_and_fits import Pinned

import dpledger as dp
from dpledger import mechanisms as m
from dpledger.mechanisms.centred import CentredRows
from dpledger.runs.estimators import (
    PrivateAdmmClassifier,
    PrivateAdmmRegressor,
    PrivateSharingClassifier,
)
from dpledger.solvers import Huber, Logistic, Multinomial, Summed

Floats = NDArray[np.float64]
Patch = pytest.MonkeyPatch
REPLACE, ZERO, ADD = RELATIONS
STATED: dict[str, Any] = {"delta": 1e-5, "clip": True}
FORMS: list[Callable[[Floats], Any]] = [np.copy, sparse.csr_array, np.asfortranarray]


# --- what estimators choose ----------------------------------------------------------------------
def fit_by_default(
    draw: random.Random, rel: m.Adjacency, epsilon: float, parties: int, classes: int
) -> Callable[..., Any]:
    """Return a fit that chooses its algorithm, rounds and metric, and goes on from its model."""
    stated: dict[str, Any] = {**STATED, "epsilon": epsilon, "adjacency": rel}
    stated |= {"n_parties": parties, "classes": range(classes), "warm_start": True}
    stated["records_per_unit"] = draw.choice([1, 2])
    if rel is ADD:
        stated["n_min"] = 5
    elif draw.random() < 0.3:
        stated["threat_model"] = Summed(colluders=parties - 1)
    weighted, kind = rel is ZERO, draw.choice(FORMS)

    def fit(X: Floats, y: Any, weights: Floats, order: NDArray[np.intp]) -> Any:
        model, given = PrivateAdmmClassifier(**stated), weights if weighted else None
        for _ in range(2):
            model.fit(kind(X), y, given, party_of=order % parties)
        return model

    return fit


@pytest.mark.parametrize("rel", RELATIONS)
def test_no_message_of_a_default_moves_further_than_its_event_says(
    rel: m.Adjacency, monkeypatch: Patch
) -> None:
    """Tried: epsilons from 0.02 to 20, where shares of classes, bought and stretched metrics and
    whole gradients are chosen; long mean rows, sums over parties, fits that go on; beside these
    choices among candidates, and 200 fits of all named algorithms."""
    draw, rng, shares, seen = random.Random(4), np.random.default_rng(4), list[float](), set[str]()
    for epsilon, parties in itertools.product((0.02, 0.1, 1.0, 20.0), (1, 2)):
        n, width, classes, i = 60, draw.choice([1, 6]), draw.choice([2, 2, 3]), draw.randrange(60)
        X = rng.normal(size=width) * draw.choice([0.0, 2.0]) + rng.normal(size=(n, width)) * 0.1
        fit = fit_by_default(draw, rel, epsilon, parties, classes)
        y, order, w = rng.integers(0, classes, n), np.arange(n), rng.choice([0.3, 1.0], n)
        two, z, v, kept = X.copy(), y.copy(), w.copy(), order != (i if rel is ADD else -1)
        two[i], v[i] = 0.0, 0.0
        if rel is REPLACE:
            two[i], z[i] = odd_rows(rng, (1, width))[0], rng.integers(0, classes)
        other = [each[kept] for each in (two, z, v, order)]
        tapes, models = under_one_transcript(monkeypatch, fit, (X, y, w, order), other)
        shares.extend(shares_moved(*tapes))
        seen |= {event.context.release for event in tapes[0].events}
        assert np.array_equal(models[0].coef_, models[1].coef_)
    assert 0.1 < max(shares) <= 1 + 1e-12
    assert rel is not ADD or "class counts" in seen


def lost(steps: Sequence[Any], group: int = 1) -> float:
    """Return a lower bound on epsilon at 1e-5 of Gaussian, Laplace or pure steps together."""
    found: Any = None
    below: dict[str, Any] = {"pessimistic_estimate": False, "use_connect_dots": False}
    for step in steps:
        moves = group * float(step.sensitivity.root)
        if isinstance(step, m.PureStep):  # one choice, whose losses are those of its costs
            return moves / step.scale * (1 - 1e-9)
        if isinstance(step, m.GaussianStep):
            made = pld.from_gaussian_mechanism(step.noise_std, sensitivity=moves, **below)
        else:
            made = pld.from_laplace_mechanism(step.scale, sensitivity=moves, **below)
        found = made if found is None else found.compose(made)
    return float(found.get_epsilon_for_delta(1e-5))


CHOICES: list[dict[str, Any]] = [
    {"epsilon": 0.05, "records_per_unit": 3, "n_parties": 2},
    {"epsilon": 0.1, "candidates": [{}, {"rounds": 2}]},
    {"epsilon": 0.2, "candidates": [{}, {}, {"regularisation": 1e-3}], "n_parties": 2},
]


@pytest.mark.parametrize("given", CHOICES)
def test_what_is_chosen_costs_no_less_than_its_losses(given: dict[str, Any]) -> None:
    """Tried: shares of classes by themselves, for a person, and beside gradients in a search."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 30)) / 10.0, rng.integers(0, 2, 300)
    model = PrivateAdmmClassifier(**STATED, **given, adjacency=REPLACE, classes=(0, 1)).fit(X, y)
    of_party = defaultdict[str, list[Any]](list)
    for event in model.ledger_.events():
        for party in event.context.parties:
            of_party[party].append(event.mechanism)
    each = [lost(steps, model.records_per_unit) for steps in of_party.values()]
    assert 0.97 * given["epsilon"] < min(each) <= max(each) <= model.privacy_.epsilon.upper_float
    assert model.privacy_.epsilon <= given["epsilon"]


def test_folds_by_place_move_no_other_record(monkeypatch: Patch) -> None:
    """Tried: folds by place, and by labels, as a search's default is: those move others."""
    rng = np.random.default_rng(1)
    X, y = rng.choice([-1.0, 1.0], (40, 1)), rng.integers(0, 2, 40)
    model = PrivateAdmmClassifier(**STATED, epsilon=1.0, adjacency=REPLACE, classes=(0, 1))
    how: dict[str, Any] = {"cv": KFold(4), "refit": False, "error_score": "raise"}
    search = GridSearchCV(model, {"rounds": [1, 2]}, **how)
    other = np.where(np.arange(40) == 7, 1 - y, y)
    tapes, _ = under_one_transcript(monkeypatch, partial(search.fit, X), [y], [other])
    assert 0.1 < max(shares_moved(*tapes)) <= 1 + 1e-12


# --- handles -------------------------------------------------------------------------------------
SIZES = np.array([0.0, -0.0, 5e-324, -1e-310, 1e-200, 1e150, -1e300, 1.7e308, 1.0, -1.0, 1 / 3])
LOSSES: tuple[tuple[Any, Any, Sequence[float]], ...] = (
    (Logistic(), m.SIGNS, (-1.0, 1.0)),
    (Multinomial(3), m.ClassLabels(3), (0.0, 1.0, 2.0)),
    (Huber(0.2, 1e300), m.RealLabels(1e300), (1e300, -1e-310, 0.0, 1.0)),
)


def rows_of_all_sizes(rng: np.random.Generator, n: int, width: int) -> Floats:
    """Return odd numbers, unit vectors, and rows of lengths up to 1e300."""
    kinds, unit = rng.integers(3, size=(n, 1)), np.eye(width)[rng.integers(width, size=n)]
    some = rng.normal(size=(n, width)) * 10.0 ** rng.uniform(-300, 300, size=(n, 1))
    odd = rng.choice(SIZES, size=(n, width))
    return np.where(kinds == 0, odd, np.where(kinds == 1, unit, some))


def asked_of(
    handle: m.PrivateDataset, rng: np.random.Generator, loss: Any
) -> Iterator[m.Sensitive]:
    """Yield what may be asked of records, at odd points, weights, centres and radii."""
    shape, bound = handle.shape, handle.shape.row_bound
    width, parties = shape.features, len(shape.parties)
    w = rng.normal(size=width * loss.outputs) * 10.0 ** rng.uniform(-2, 3) / bound
    weights = rng.choice([0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e300, 3.0], parties)
    centre = rng.normal(size=width) * bound * rng.choice([0.0, 0.1, 0.3])
    radius, scale = bound * float(rng.choice([0.05, 0.5, 2.0])), np.abs(rng.normal(size=width))
    centred = CentredRows(handle, centre, radius=radius, scale=scale)
    convex: dict[str, Any] = {"linear": np.zeros(1), "start": np.zeros(1)}
    convex |= {"modulus": 0.3 * bound**2, "tolerance": bound * 1e-6, "weights": weights}
    ways: list[Callable[[], m.Sensitive]] = [
        lambda: handle.mean_gradient(loss, w, weights=weights),
        lambda: handle.sum_gradient(loss, w, radius=bound * 0.1),
        lambda: centred.mean_gradient(loss, w, weights=weights),
        lambda: centred.mean_squares(weights=weights),
        lambda: handle.strongly_convex_argmin(loss, **convex),
        handle.second_moment,
        lambda: handle.histogram([0.0, 1e-310, 1e300], column=0),
        lambda: handle.wrong_predictions([w]),
    ]
    for way in ways:
        with suppress(m.InvalidParameter):  # by public numbers
            yield way()


@pytest.mark.parametrize("rel", RELATIONS)
def test_nothing_asked_of_records_moves_further_or_tells_of_their_size(rel: m.Adjacency) -> None:
    """Tried: 3,800 questions to neighbours whose cells are zeros, next to nothing or next to
    infinity, dense, sparse, in blocks and as objects, under weights of all sizes; NumPy calls a
    function of the caller's for what overflows, and SciPy raises."""
    rng, told, shares = np.random.default_rng(7), list[str](), list[float]()
    blocks: Any = lambda a: m.RowBlocks(a.shape, a.__getitem__, at_once=3)  # noqa: E731
    forms = [*FORMS, lambda a: a.astype(object), blocks]
    special: Any = scipy.special
    for loss, domain, _ in LOSSES:  # tried once, at scores that are public
        planned = m.PrivateDataset.planned(m.DataShape(("a",), 9, 2, 1.0, rel, domain))
        list(asked_of(planned, rng, loss))
    for _ in range(20):
        parties, width = int(rng.integers(1, 3)), int(rng.integers(1, 5))
        n, i = 12, int(rng.integers(12))
        loss, domain, labels = LOSSES[rng.integers(len(LOSSES))]
        X, y, who = rows_of_all_sizes(rng, n, width), rng.choice(labels, n), np.arange(n) % parties
        two, z, kept = X.copy(), y.copy(), np.arange(n) != (i if rel is ADD else -1)
        two[i] = 0.0
        if rel is REPLACE:
            two[i], z[i] = rows_of_all_sizes(rng, 1, width)[0], rng.choice(labels)
        stated: dict[str, Any] = {"adjacency": rel, "row_bound": float(10 ** rng.uniform(-9, 9))}
        stated |= {"label_domain": domain, "parties": ("a", "b")[:parties]}
        stated |= {"n_min": 4} if rel is ADD else {}
        form, seed, seen = forms[rng.integers(len(forms))], int(rng.integers(2**32)), list[Any]()
        with warnings.catch_warnings(), np.errstate(all="call"), special.errstate(all="raise"):
            warnings.simplefilter("error")
            before = np.seterrcall(lambda kind, _: told.append(kind))
            for some, own, holders in ((X, y, who), (two[kept], z[kept], who[kept])):
                handle = m.PrivateDataset(form(some), own, party_of=holders, **stated)
                curator = Pinned(0)
                for asked in asked_of(handle, np.random.default_rng(seed), loss):
                    with suppress(m.InvalidParameter):
                        curator.release(asked, round=1, release="x", noise_multiplier=1e-3)
                seen.append(curator.seen)
            np.seterrcall(before)
        for (first, event), (second, same) in zip(*seen, strict=True):
            step: Any = event.mechanism
            assert event == same
            if not step.sensitivity.squared:
                assert first.tobytes() == second.tobytes()
                continue
            pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
            moved = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in pairs)
            shares.append(float(moved / step.sensitivity.squared) ** 0.5)
    assert 0.5 < max(shares) <= 1
    assert not told


# --- losses --------------------------------------------------------------------------------------
def law(scale: float, shift: int, reach: int) -> Floats:
    """Return the probabilities of whole Laplace noise about a shift, from -reach to reach."""
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1) - shift) / scale)
    return np.asarray(weights * np.tanh(0.5 / scale))


@pytest.mark.parametrize("split", [(1, 1), (2, 1), (1, 1, 1)])
@pytest.mark.parametrize("scale", [0.4, 1.0, 4.0])
def test_a_shift_of_several_numbers_loses_no_more_than_of_one(
    split: tuple[int, ...], scale: float
) -> None:
    """Tried: a record that leaves one cell of a histogram for another, or moves three, under whole
    Laplace noise priced by its l1 sensitivity; all outcomes added up."""
    one, two = np.ones(1), np.ones(1)
    for shift in split:
        reach = (40 if len(split) == 3 else 150) * (1 + shift // 2)
        one = np.multiply.outer(one, law(scale, 0, reach)).ravel()
        two = np.multiply.outer(two, law(scale, shift, reach)).ravel()
    moves = m.declared(sum(split), "tried", norm=m.Norm.L1, adjacency=REPLACE)
    events = [
        m.Event(m.DiscreteLaplaceStep(moves, scale), m.Context((), 1, "cells", m.Audience.SERVER))
    ]
    for delta in (0.3, 0.05, 1e-3):
        odds = exp(dp.guarantee(events, delta=delta).epsilon.upper_float)
        gaps = (np.maximum(one - odds * two, 0), np.maximum(two - odds * one, 0))
        assert max(float(gap.sum()) for gap in gaps) <= delta * (1 + 1e-9)


def delta_of_step(rate: float, shift: float, epsilon: Floats) -> tuple[Floats, Floats]:
    """Return delta, in both orders, of N(0, 1) shifted with a chance, at every epsilon."""
    found, ndtr = list[Floats](), scipy.special.ndtr
    for sign in (1, -1):
        with np.errstate(all="ignore"):
            at = np.log1p(np.expm1(sign * epsilon) / rate) / shift + shift / 2
        at = np.where(np.isnan(at), -np.inf, at)
        none, drawn = ndtr(-sign * at), ndtr(-sign * (at - shift))
        some = (1 - rate) * none + rate * drawn
        gap = some - np.exp(epsilon) * none if sign > 0 else none - np.exp(epsilon) * some
        found.append(np.maximum(gap, 0.0))
    return found[0], found[1]


def delta_of_two_steps(steps: Sequence[tuple[float, float]], epsilon: float) -> float:
    """Return delta of two such steps, the second's added up over the first's losses: in small
    panels where the first's is the whole epsilon and the second's delta bends."""
    (rate, shift), second = steps
    nodes, weights = np.polynomial.legendre.leggauss(24)
    found = list[float]()
    for sign in (1, -1):
        ends = np.arange(-12.0, 12.5 + shift, 0.25)
        if 1 + expm1(sign * epsilon) / rate > 0:
            bend = log(1 + expm1(sign * epsilon) / rate) / shift + shift / 2
            near = 2.0 ** -np.arange(0.0, 44.0)
            ends = np.concatenate([ends, bend - near, [bend], bend + near])
        ends = np.unique(ends)
        middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
        z = middle[:, None] + half[:, None] * nodes
        losses = np.log1p(rate * np.expm1(shift * z - shift**2 / 2))
        none = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        dense = none * np.exp(losses) if sign > 0 else none
        rest = delta_of_step(*second, epsilon - sign * losses)[0 if sign > 0 else 1]
        found.append(float(np.sum(dense * rest * weights * half[:, None])))
    return max(found)


def test_two_unlike_sampled_steps_lose_what_is_printed() -> None:
    """Tried: 210 pairs of rates from 1e-6 to 0.9, shifts of 0.03 to 10 and deltas from 1e-14; here
    six, at both ends of what is printed."""
    rng = np.random.default_rng(3)
    for _ in range(6):
        steps = [(10 ** rng.uniform(-4, -0.05), 10 ** rng.uniform(-1, 0.8)) for _ in range(2)]
        noisy = [m.GaussianStep(m.declared(1, "tried", adjacency=ADD), 1 / mu) for _, mu in steps]
        drawn = [m.PoissonSampled(step, q) for (q, _), step in zip(steps, noisy, strict=True)]
        context = m.Context((), 1, "sum", m.Audience.SERVER)
        delta = 10 ** rng.uniform(-7, -1)
        found = dp.guarantee([m.Event(each, context) for each in drawn], delta=delta).epsilon
        same = [(q, 1 / step.noise_std) for (q, _), step in zip(steps, noisy, strict=True)]
        assert delta_of_two_steps(same, found.upper_float) <= delta * (1 + 1e-6)
        if found.lower_float > 0:
            assert delta_of_two_steps(same, found.lower_float) >= delta * (1 - 1e-6)


# --- what is said --------------------------------------------------------------------------------
ODD: dict[str, Any] = {
    "map": {"a": 777123},
    "texts": np.full((20, 2), "777123x"),
    "cells": np.array([[0.5, "x777123"]] * 20, dtype=object),
    "turned": np.full((20, 2), 777123j),
    "large": [[10**400 + 777123, 1.0]] * 20,
}


@pytest.mark.parametrize("odd", ODD)
def test_no_odd_container_is_shown(odd: str) -> None:
    """Tried: 36 containers as rows, labels and weights, and 50 tables of three libraries."""
    X, y = np.random.default_rng(0).normal(size=(20, 2)) / 5, np.arange(20) % 2
    stated: dict[str, Any] = {**STATED, "epsilon": 1.0, "adjacency": REPLACE}
    models: list[Any] = [
        PrivateAdmmClassifier(**stated, classes=(0, 1), rounds=1),
        PrivateAdmmRegressor(**stated, target_bounds=(0, 1), rounds=1),
        PrivateSharingClassifier(**stated, parties=2, public_labels=True),
    ]
    for model, given in itertools.product(models, ((ODD[odd], y), (X, ODD[odd]))):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((ValueError, TypeError)) as refusal:
                model.fit(*given)
        error = refusal.value
        assert "777123" not in f"{error} {error.__context__} {error.__cause__}"
        assert not hasattr(model, "n_features_in_")
