"""`PrivateAdmmRegressor`: linear regression on records that live with one party each."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any, Self, cast

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ...accounting.ledger import Ledger
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.clipping import LENGTH_EXPONENT
from ...mechanisms.data_shape import DataShape
from ...mechanisms.errors import (
    InvalidParameter,
    Number,
    named,
    require_magnitude,
    require_open_unit,
    require_positive,
)
from ...mechanisms.labels import LabelDomain, RealLabels, WeightedLabels
from ...mechanisms.protocols import FloatArray
from ...mechanisms.row_blocks import real_numbers
from ...mechanisms.vertical_data import LabelLoss
from ...solvers.consensus import ConsensusDpAdmm
from ...solvers.defaults import regression_defaults
from ...solvers.losses import Huber, SmoothedQuantile, bounded_squared
from ...solvers.threat_model import PER_PARTY, ThreatModel
from ...solvers.weighted import Weighted
from .algorithms import SolverFactory
from .linear import Scored, unchanged_if_refused
from .parties import PrivateModelOfParties
from .rows import bounded_rows, shares

_LEAST_REGULARISATION = 1e-7
"""Where stopping in time regularises, the weight only keeps the optimum finite."""

_QUANTILE_WIDTH = 0.02
"""Over so much of half the targets' range, to either side, the check loss's kink is smoothed: less
bends more and takes more rounds, more is a quantile of targets blurred by that."""


_TARGETS_ASSUMED = (
    "every target there could be is within target_bounds (one outside is refused aloud)"
)
"""Where targets are refused instead of clipped."""


class RegressionLoss(Enum):
    """What a regression minimises, by name."""

    SQUARED = "squared"
    HUBER = "huber"
    QUANTILE = "quantile"


class PrivateAdmmRegressor(Scored, RegressorMixin, PrivateModelOfParties):  # type: ignore[misc]
    """Linear regression of a bounded target by ADMM at the consensus, private for each record.

    `fit` plans, proves and pays as `PrivateAdmmClassifier` does, and what is said there of parties,
    public facts, tuning and pipelines holds here. It minimises the mean loss of targets scaled to
    [-1, 1] plus (regularisation/2)|w|², over rows divided by `row_bound`.

    The targets' bounds are public and asked for: whatever were read off the records would tell of
    the extreme ones. A target outside is an error, or with `clip` taken for the bound. The loss is
    smooth and its slope is bounded, so that every gradient is:

    * squared: (prediction - target)²/2 wherever the prediction lies within the targets' bounds, and
      its tangent beyond the width of the bounds (`bounded_squared`);
    * huber: squared up to `huber_width` and straight beyond: less moved by outliers, and at a
      smaller width less noise for the same epsilon;
    * quantile: the check loss at `quantile`, its kink smoothed over a hundredth of the bounds'
      width to either side (`SmoothedQuantile`).

    Rounds and steps follow from a model of error (`regression_defaults`), and predictions are cut
    to the bounds, which costs nothing. Sample weights are those of the classifier, at the price of
    the largest; beside them targets are rounded to 2^-24 of the bounds' width. Give
    `records_per_unit` where a person has several records.

    Args:
        epsilon: what the proved epsilon of one fit must not exceed, > 0.
        delta: in (0, 1).
        adjacency: what neighbouring data sets are.
        target_bounds: public (lowest, highest) target, in the target's units.
        loss: by name or by a member of `RegressionLoss`.
        huber_width: from where on the Huber loss is straight, in the target's units, > 0; None for
            a tenth of the bounds' width.
        quantile: the level of the quantile, in (0, 1).
        n_parties, parties, rounds, threat_model, row_bound, weight_bound, clip, fit_intercept,
            regularisation, n_min, records_per_unit, random_state, ledger: as in
            `PrivateAdmmClassifier`; `clip` cuts targets as well as rows, and without an intercept
            the middle of the bounds is one.
        warm_start: whether a fit starts from the model of the fit before it, which is public.

    Attributes: as of `PrivateAdmmClassifier`; `coef_` of shape (d,), `intercept_` a number.

    >>> from dpledger.mechanisms import Adjacency
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(5000, 3))
    >>> y = X @ [4.0, -2.0, 1.0] + 20.0 + 0.1 * rng.normal(size=5000)
    >>> model = PrivateAdmmRegressor(
    ...     epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, target_bounds=(15.0, 25.0),
    ...     n_parties=2, random_state=0,
    ... ).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.privacy_.epsilon <= 1
    (True, True)
    """

    intercept_: float

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        adjacency: Adjacency | str,
        target_bounds: tuple[float, float],
        loss: RegressionLoss | str = RegressionLoss.SQUARED,
        huber_width: float | None = None,
        quantile: float = 0.5,
        n_parties: int | None = None,
        parties: Sequence[str] | None = None,
        rounds: int | None = None,
        threat_model: ThreatModel = PER_PARTY,
        row_bound: float = 1.0,
        weight_bound: float = 1.0,
        clip: bool = False,
        fit_intercept: bool = True,
        regularisation: float | None = None,
        n_min: int | None = None,
        warm_start: bool = False,
        records_per_unit: int = 1,
        random_state: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.target_bounds = target_bounds
        self.loss = loss
        self.huber_width = huber_width
        self.quantile = quantile
        self.n_parties = n_parties
        self.parties = parties
        self.rounds = rounds
        self.threat_model = threat_model
        self.row_bound = row_bound
        self.weight_bound = weight_bound
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.regularisation = regularisation
        self.n_min = n_min
        self.warm_start = warm_start
        self.records_per_unit = records_per_unit
        self.random_state = random_state
        self.ledger = ledger

    @unchanged_if_refused
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, party_of: Any = None) -> Self:
        """Train on private records; returns the estimator.

        Args:
            X: rows of shape (n, d), dense or sparse.
            y: targets of shape (n,), within the bounds.
            sample_weight, party_of: as in `PrivateAdmmClassifier.fit`.

        Raises before anything is spent: `InvalidParameter` or `ValueError` for bad input, and
        whatever `paid_run` does.
        """
        numbers = None if y is None else real_numbers("y", y)
        features, targets = self._checked(X, numbers, accept_sparse="csr", y_numeric=True)
        middle, half = self._range()
        low, high = np.asarray(self.target_bounds, dtype=np.float64)
        # of the targets as they are: rounding may scale a bound itself to more than one
        if not self.clip and not np.all((low <= targets) & (targets <= high)):
            raise InvalidParameter(
                "y", "outside", f"within target_bounds={self.target_bounds}; clip=True cuts"
            )
        rows = bounded_rows(
            features, row_bound=self.row_bound, clip=self.clip, constant=self.fit_intercept
        )
        start, loss, plain = self._start(), self._loss(), RealLabels(1.0)
        labels = np.clip((np.clip(targets, low, high) - middle) / half, -1.0, 1.0)
        domain = cast(LabelDomain, plain)
        if sample_weight is not None:
            weights = shares(sample_weight, rows, weight_bound=self.weight_bound, clip=self.clip)
            loss, domain = Weighted(loss), WeightedLabels(plain)
            labels = domain.joined(labels, weights)
        factory = self._factory(loss, start)
        model, _ = self._trained(rows, labels, domain, party_of, factory, start=start)
        model = model * half * (np.sqrt(0.5) if self.fit_intercept else 1.0)
        width = self.n_features_in_
        self.coef_ = model[:width] / self.row_bound
        self.intercept_ = middle + float(model[width]) if self.fit_intercept else middle
        return self

    def predict(self, X: Any) -> FloatArray:
        """Return predictions of shape (n,), within the targets' bounds."""
        check_is_fitted(self)
        rows: Any = self._checked(X, accept_sparse="csr", reset=False)
        low, high = self.target_bounds
        return np.clip(np.asarray(rows @ self.coef_) + self.intercept_, low, high)

    def _range(self) -> tuple[float, float]:
        """Return the middle of the targets' bounds and half their width, which is above 0.

        Raises `InvalidParameter` for anything but two finite, increasing numbers, and for a width
        at which doubles end.
        """
        try:
            bounds = np.asarray(self.target_bounds, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            bounds = np.empty(0)
        if bounds.shape != (2,) or not np.all(np.isfinite(bounds)) or not bounds[0] < bounds[1]:
            raise InvalidParameter(
                "target_bounds", self.target_bounds, "(lowest, highest), finite and increasing"
            )
        low, high = bounds.tolist()
        require_magnitude("width of target_bounds", high - low, LENGTH_EXPONENT)
        return low / 2.0 + high / 2.0, (high - low) / 2.0

    def _loss(self) -> LabelLoss:
        """Return the loss of targets scaled to [-1, 1].

        Raises `InvalidParameter` for an unknown name, a level outside (0, 1), or a width that is
        not positive.
        """
        kind = named("loss", self.loss, RegressionLoss)
        if kind is RegressionLoss.SQUARED:
            return bounded_squared(score_bound=1.0, label_bound=1.0)
        if kind is RegressionLoss.QUANTILE:
            require_open_unit("quantile", self.quantile)
            return SmoothedQuantile(self.quantile, _QUANTILE_WIDTH, 1.0)
        if self.huber_width is None:
            return Huber(0.2, 1.0)
        require_positive("huber_width", self.huber_width)
        return Huber(self.huber_width / self._range()[1], 1.0)

    def _factory(self, loss: LabelLoss, start: tuple[float, ...]) -> SolverFactory:
        """Return the maker of solvers, whose settings know public numbers only."""
        share = self._epsilon_of_a_record()
        if self.regularisation is not None:
            require_positive("regularisation", self.regularisation)

        def solver(noise_multiplier: float, shape: DataShape) -> ConsensusDpAdmm:
            chosen = regression_defaults(
                shape,
                loss=loss,
                epsilon=share,
                delta=self.delta,
                column=shape.features - 1 if self.fit_intercept else None,
                rounds=self.rounds,
                regularisation=self.regularisation or _LEAST_REGULARISATION,
            )
            return replace(chosen, noise_multiplier=noise_multiplier, start=start)

        return solver

    def _start(self) -> tuple[float, ...]:
        """Return the model of the fit before, in the solver's units; empty for none."""
        if not self.warm_start or not hasattr(self, "coef_"):
            return ()
        if self.coef_.shape != (self.n_features_in_,):
            raise InvalidParameter(
                "coef_.shape", self.coef_.shape, f"({self.n_features_in_},) for a warm start"
            )
        middle, half = self._range()
        weights = self.coef_ * self.row_bound
        if self.fit_intercept:
            weights = np.append(weights, self.intercept_ - middle) / np.sqrt(0.5)
        return tuple((weights / half).tolist())

    def _assumed(self) -> tuple[str, ...]:
        """Return that targets are within the bounds, where a refusal would tell of one."""
        return () if self.clip else (_TARGETS_ASSUMED,)
