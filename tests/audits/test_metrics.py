"""Laws of the metrics: each equals its definition, counted by hand."""

import doctest
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from dpledger.accounting.numbers.notions import Gdp
from dpledger.audits import metrics
from dpledger.audits.bounds import Scores
from dpledger.audits.metrics import auc, roc, tpr_at_fpr


@pytest.fixture
def scores():
    generator = np.random.default_rng(21)
    # rounded, so that there are ties
    return Scores(generator.normal(1, 1, 400).round(1), generator.normal(0, 1, 300).round(1))


def test_the_examples_in_the_docstrings_are_true():
    assert doctest.testmod(metrics).failed == 0


def test_auc_counts_pairs_and_half_of_the_ties(scores):
    gaps = scores.dataset[:, None] - scores.neighbour[None, :]
    assert auc(scores) == pytest.approx(np.mean((gaps > 0) + 0.5 * (gaps == 0)), abs=1e-12)


def test_every_point_of_the_roc_is_a_threshold(scores):
    thresholds = np.append(np.unique(scores.neighbour), -np.inf)
    possible = {(np.mean(scores.neighbour > t), np.mean(scores.dataset > t)) for t in thresholds}
    curve = roc(scores, points=40)
    assert len(curve) > 20
    for point in curve:
        assert any(np.allclose((point.fpr, point.tpr), p, rtol=0, atol=1e-12) for p in possible)


def test_the_roc_rises_from_no_false_positives_to_all(scores):
    curve = roc(scores)
    assert (curve[0].fpr, curve[-1].fpr, curve[-1].tpr) == (0.0, 1.0, 1.0)
    assert curve[0].tpr == np.mean(scores.dataset > scores.neighbour.max())
    assert all(a.fpr < b.fpr and a.tpr <= b.tpr for a, b in pairwise(curve))


def test_tpr_at_fpr_is_the_best_threshold_that_keeps_the_rate(scores):
    found = tpr_at_fpr(scores, 0.05, claimed=Gdp(1), confidence=0.9)
    kept = [t for t in scores.neighbour if np.mean(scores.neighbour > t) <= 0.05]
    best = max(np.mean(scores.dataset > t) for t in kept)
    assert found.tpr == pytest.approx(best, abs=1e-12)
    exact = binomtest(round(best * 400), 400).proportion_ci(0.9, method="exact")
    assert (found.lower, found.upper) == pytest.approx((exact.low, exact.high), rel=1e-9)
    assert found.claimed == pytest.approx(norm.cdf(norm.ppf(0.05) + 1), rel=1e-8)
