"""`PrivateSharingClassifier`: logistic regression by parties that hold columns of the same rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import Any, Self

import numpy as np
from scipy.special import logit

from ...accounting.ledger import Ledger
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.errors import (
    InvalidParameter,
    Number,
    named,
    require_positive,
    require_positive_int,
)
from ...mechanisms.protocols import FloatArray
from ...mechanisms.vertical_data import VerticalDataset, VerticalShape
from ...solvers.defaults import opinion_pool_defaults, sharing_defaults
from ...solvers.opinion_pool import PoolState
from ...solvers.sharing import SharingState
from .classifier import PrivateLinearClassifier
from .linear import unchanged_if_refused
from .paid_run import History, PublicRound, paid_run
from .rows import unit_rows

_POOL_WEIGHT = 1e-7
"""Where stopping in time regularises, the weight only keeps the optimum finite."""

_Work = Callable[
    [float, VerticalDataset, Curator], tuple[tuple[FloatArray, ...], list[PublicRound]]
]
"""From noise multiplier, data and curator to the parties' coefficients and what was public."""


class PrivateSharingClassifier(PrivateLinearClassifier):
    """Logistic regression by repaired ADMM sharing, (epsilon, delta)-private for each record.

    Every party holds some columns of all records, so what all parties release adds up; at the end
    each releases its coefficients, which is part of the price. It minimises the mean logistic loss
    plus (regularisation/2)|w|² over rows divided by `row_bound`.

    A party's scores are N numbers whose noise does not fall with N. So by default none are
    exchanged: with public labels every party descends on the loss of its own columns, and log-odds
    are added (`OpinionPool`), which columns that tell the same make overconfident; with private
    ones the centre tells, for its price, what the labels tell, and every party's coefficients are
    ridge regression on that. Rounds of exchange (`SharingAdmm`) are for epsilons in the tens.

    Public are all arguments, the numbers of records and of columns, and the labels where
    `public_labels` says so. Tuning spends as it does with `PrivateAdmmClassifier`.

    Args:
        epsilon: what the proved epsilon of one fit must not exceed, > 0.
        delta: in (0, 1).
        adjacency: replace-one or zero-out-one.
        parties: the columns of each party by its name, every column once; or a number of parties,
            who get about equally many columns in order.
        public_labels: whether everybody knows the labels; else the centre alone does.
        rounds: T, exchanges of scores before the parties release their coefficients; None for no
            exchange and what the labels allow. What is said of `penalty`, `slope_bound` and
            `radius` is about exchanges and about private labels.
        row_bound: public l2 bound on each party's part of a row.
        clip: whether to cut longer parts; else they are refused.
        regularisation: weight of the squared norm, > 0; None for 1e-7 where a party descends, and
            else for the least at which the noise of a coefficient is 0.2, so that a party's scores
            of a new row err by no more.
        penalty: rho; by default the most by which the logistic loss bends.
        slope_bound: B, to which the terms that couple records and parties are cut.
        radius: b, bound on the norm of each party's coefficients, for rows divided by `row_bound`.
        fit_intercept: whether scores start from the log-odds of the labels, where they are public.
        classes, records_per_unit, random_state, ledger: as in `PrivateAdmmClassifier`.

    Attributes: as of `PrivateAdmmClassifier`.

    >>> from dpledger.mechanisms import Adjacency
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(4000, 4))
    >>> y = X @ [1.0, -1.0, 1.0, 1.0] > 0
    >>> model = PrivateSharingClassifier(
    ...     epsilon=2.0, delta=1e-5, adjacency=Adjacency.ZERO_OUT_ONE, public_labels=True,
    ...     parties={"bank": [0, 1], "shop": [2, 3]}, classes=(False, True), random_state=0,
    ... ).fit(X, y)
    >>> bool(model.score(X, y) > 0.8), model.privacy_.epsilon <= 2, model.privacy_.assumptions[0]
    (True, True, 'labels are public')
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        adjacency: Adjacency | str,
        parties: Mapping[str, Sequence[int]] | int,
        public_labels: bool,
        rounds: int | None = None,
        row_bound: float = 1.0,
        clip: bool = False,
        regularisation: float | None = None,
        penalty: float = 0.25,
        slope_bound: float = 1.0,
        radius: float = 3.0,
        fit_intercept: bool = True,
        classes: Sequence[Any] | None = None,
        records_per_unit: int = 1,
        random_state: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.parties = parties
        self.public_labels = public_labels
        self.rounds = rounds
        self.row_bound = row_bound
        self.clip = clip
        self.regularisation = regularisation
        self.penalty = penalty
        self.slope_bound = slope_bound
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.records_per_unit = records_per_unit
        self.random_state = random_state
        self.ledger = ledger

    @unchanged_if_refused
    def fit(self, X: Any, y: Any) -> Self:
        """Train on private records; returns the estimator.

        Args:
            X: rows of shape (n, d).
            y: labels of shape (n,), of two classes.

        Raises as `PrivateAdmmClassifier.fit` does.
        """
        features, labels = self._validated(X, y)
        columns = self._columns()
        private = VerticalDataset(
            [
                np.asarray(unit_rows(features[:, own], row_bound=self.row_bound, clip=self.clip))
                for own in columns.values()
            ],
            labels,
            adjacency=named("adjacency", self.adjacency, Adjacency),
            parties=tuple(columns),
            public_labels=self.public_labels,
        )
        if self.regularisation is not None:
            require_positive("regularisation", self.regularisation)
        offset = _log_odds(labels) if self.fit_intercept and self.public_labels else 0.0

        pooled = self.rounds is None and self.public_labels
        work = self._pool(private.shape, offset) if pooled else self._sharing(offset)
        paid = paid_run(
            work,
            planned=VerticalDataset.planned(private.shape),
            private=private,
            name=type(self).__name__,
            epsilon=self.epsilon,
            delta=self.delta,
            records_per_unit=self.records_per_unit,
            ledger=self.ledger,
            noise=self._noise(),
        )
        parts, history = self._note(paid)
        self.history_ = tuple(history)
        # coefficients are released after all exchanges, or in every round of descent
        self.n_iter_ = len(history) + (0 if pooled else 1)
        self.coef_ = np.zeros((1, self.n_features_in_))
        for own, part in zip(columns.values(), parts, strict=True):
            self.coef_[0, own] = part / self.row_bound
        self.intercept_ = np.array([offset])
        return self

    def _pool(self, shape: VerticalShape, offset: float) -> _Work:
        """Return what runs without an exchange: a model of every party's own columns."""
        weight = _POOL_WEIGHT if self.regularisation is None else self.regularisation
        chosen = opinion_pool_defaults(
            shape,
            epsilon=self._epsilon_of_a_record(),
            delta=self.delta,
            offset=offset,
            regularisation=weight,
        )

        def work(
            noise_multiplier: float, dataset: VerticalDataset, curator: Curator
        ) -> tuple[tuple[FloatArray, ...], list[PublicRound]]:
            history = History()

            def observe(k: int, state: PoolState) -> None:
                history.add(k, state.model)

            solver = replace(chosen, noise_multiplier=noise_multiplier)
            return solver.solve(dataset, curator, observe=observe).models, history.rounds

        return work

    def _sharing(self, offset: float) -> _Work:
        """Return what runs with exchanges of scores, or on labels that the centre tells."""

        def work(
            noise_multiplier: float, dataset: VerticalDataset, curator: Curator
        ) -> tuple[tuple[FloatArray, ...], list[PublicRound]]:
            history = History()
            solver = sharing_defaults(
                dataset.shape,
                noise_multiplier=noise_multiplier,
                rounds=self.rounds or 0,
                penalty=self.penalty,
                slope_bound=self.slope_bound,
                radius=self.radius,
                offset=offset,
                regularisation=self.regularisation,
            )

            def observe(k: int, state: SharingState) -> None:
                history.add(k, state.scores)

            state = solver.solve(dataset, curator, observe=observe)
            return solver.publish_models(dataset, curator, state), history.rounds

        return work

    def __sklearn_tags__(self) -> Any:
        """Say to scikit-learn: two classes, dense rows only."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = False
        return tags

    def _columns(self) -> dict[str, list[int]]:
        """Return each party's columns, by their places; every column has one holder.

        Raises `InvalidParameter` for others, of which nothing is shown: who hands columns in the
        place of their numbers hands private cells.
        """
        width = self.n_features_in_
        if isinstance(self.parties, Mapping):
            try:
                columns = {name: [*map(index, own)] for name, own in self.parties.items()}
            except TypeError:
                # the columns themselves, whose cells are private
                need = "places of columns, whole numbers, by party"
                raise InvalidParameter("parties", "others", need) from None
            if sorted(j for own in columns.values() for j in own) != list(range(width)):
                raise InvalidParameter("parties", "others", f"each of {width} columns once")
            return columns
        require_positive_int("parties", self.parties)
        if self.parties > width:
            raise InvalidParameter("parties", self.parties, f"in [1, {width}], a column each")
        split = np.array_split(np.arange(width), self.parties)
        return {f"party-{m + 1}": own.tolist() for m, own in enumerate(split)}


def _log_odds(labels: FloatArray) -> float:
    """Return the logarithm of the odds of +1, as if one more record had each label."""
    return float(logit((np.sum(labels > 0) + 1.0) / (len(labels) + 2.0)))
