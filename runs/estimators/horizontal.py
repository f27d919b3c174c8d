"""`PrivateAdmmClassifier`: logistic regression on records that live with one party each."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from ...accounting.ledger import Ledger
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator
from ...mechanisms.errors import InvalidParameter, Number, named, require_positive_int
from ...mechanisms.labels import SIGNS, ClassLabels
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import FloatArray
from ...solvers.solver import PublicModel
from ...solvers.threat_model import PER_PARTY, Summed, ThreatModel, summed_name
from .algorithms import AdmmAlgorithm, Recipe, SolverFactory
from .classifier import PrivateLinearClassifier
from .paid_run import History, PublicRound, paid_run
from .rows import unit_rows, with_constant

IntArray = npt.NDArray[np.integer[Any]]


_START_ASSUMED = "the model that this fit starts from is public: fits before it paid for it"


class PrivateAdmmClassifier(PrivateLinearClassifier):
    """Logistic regression of two or more classes by a repaired ADMM, private for each record.

    `fit` plans the algorithm on public facts alone, finds the least noise whose proved epsilon
    is at most `epsilon`, pays for the whole plan in the ledger, and only then runs. It minimises
    the mean logistic loss plus (regularisation/2)|w|², over rows divided by `row_bound`; with an
    intercept, a constant 1 is added to each row and all is divided by sqrt(2).

    What is public: all arguments, the number of features, and under replace-one and zero-out-one
    the number of records of each party. Under add-remove-one that number is private and `n_min`
    stands for it. A row longer than `row_bound` is an error, or cut with `clip`; cutting looks at
    one record only and costs nothing.

    Tuning spends: every fit is a release of its own, so k fits of a grid search on the same records
    add up. Give them one `ledger` with a budget, and the fit that it cannot pay for raises
    `BudgetExceeded` before any noise is drawn (say `error_score="raise"` to a search, or it
    notes a failed fit and goes on). Copies of the estimator share their ledger; processes share
    one in a file (`SqliteLedger`). And what a search learns from scores on private records, the
    winner included, is covered by no fit's guarantee: score on public ones.

    In a pipeline, steps before this one that learn from the records (a `StandardScaler`) are not
    covered by the guarantee; those that look at one row at a time (a `Normalizer`) are harmless.

    Args:
        epsilon: what the proved epsilon of one fit must not exceed, > 0.
        delta: in (0, 1).
        records_per_unit: how many records a person has at most; `epsilon` is then of a person, all
            of whose records are added, removed, zeroed or replaced together.
        adjacency: what neighbouring data sets are.
        algorithm: by name, or a function from noise multiplier and public shape to a solver,
            which then has settings of its own for `rounds` and `regularisation`.
        n_parties: number of parties, to which `fit` deals records in turn; 1 without `parties`.
        parties: names of the parties, in place of their number.
        rounds: of communication; None for what the algorithm's own rule says, or 100.
        threat_model: whether every party's message is seen, or sums over all parties only. A sum is
            simulated here, as if a protocol for it were run; that is one of the assumptions in
            `privacy_`. The noise that colluders add for nothing is left out.
        row_bound: public l2 bound on a row.
        clip: whether to cut longer rows; else they are refused.
        fit_intercept: whether to add the constant.
        regularisation: weight of the squared norm, > 0; None for the algorithm's own.
        classes: two (logistic loss) or more (multinomial). Without them they are read off y, and
            that they are public is one of the assumptions in `privacy_`.
        n_min: public lower bound on every party's number of records; add-remove-one only.
        warm_start: whether a fit starts from the model of the fit before it, which is public: it
            cost what it cost, and starting from it costs nothing. For the default algorithm.
        random_state: None for noise from the operating system's cryptographic generator. A whole
            number makes a fit reproducible, for experiments, with a warning: who knows it can
            subtract the noise. A fitted model's pickle does not hold it.
            Fits on one ledger have noise of their own; those that share only the number may not.
        ledger: where fits are written and paid for; None for a fresh one in memory.

    Attributes:
        privacy_: the proved guarantee of this fit: epsilon (an enclosure), delta, adjacency,
            notion, assumptions.
        certificate_: a derivation for the independent checker, whose epsilon meets the target as
            well. That of a sampled algorithm takes some seconds to write and to check.
        ledger_: where the fit was written.
        history_: what every round made public.
        noise_multiplier_: noise_std / sensitivity of the releases.
        coef_, intercept_, classes_, n_features_in_, n_iter_: as in scikit-learn.

    >>> from dpledger.mechanisms import Adjacency
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(2000, 3))
    >>> y = X @ [1.0, -1.0, 0.5] + 0.1 > 0
    >>> model = PrivateAdmmClassifier(
    ...     epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE, n_parties=4,
    ...     classes=(False, True), random_state=0,
    ... ).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.privacy_.epsilon <= 1
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        adjacency: Adjacency | str,
        algorithm: AdmmAlgorithm | SolverFactory = AdmmAlgorithm.CONSENSUS,
        n_parties: int | None = None,
        parties: Sequence[str] | None = None,
        rounds: int | None = None,
        threat_model: ThreatModel = PER_PARTY,
        row_bound: float = 1.0,
        clip: bool = False,
        fit_intercept: bool = True,
        regularisation: float | None = None,
        classes: Sequence[Any] | None = None,
        n_min: int | None = None,
        warm_start: bool = False,
        records_per_unit: int = 1,
        random_state: int | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.algorithm = algorithm
        self.n_parties = n_parties
        self.parties = parties
        self.rounds = rounds
        self.threat_model = threat_model
        self.row_bound = row_bound
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.regularisation = regularisation
        self.classes = classes
        self.n_min = n_min
        self.warm_start = warm_start
        self.records_per_unit = records_per_unit
        self.random_state = random_state
        self.ledger = ledger

    def fit(self, X: Any, y: Any, *, party_of: Any = None) -> Self:
        """Train on private records; returns the estimator.

        Args:
            X: rows of shape (n, d), dense or sparse.
            y: labels of shape (n,), of the classes.
            party_of: for each record the index of its party, of shape (n,); public and fixed.
                Without it records are dealt in turn, which add-remove-one does not allow: one
                record more would move others.

        Raises before anything is spent: `InvalidParameter` or `ValueError` for bad input, and
        whatever `paid_run` does.
        """
        features, labels = self._validated(X, y, accept_sparse="csr")
        rows = unit_rows(features, row_bound=self.row_bound, clip=self.clip)
        if self.fit_intercept:
            rows = with_constant(rows)
        names = self._names()
        holders = self._holders(party_of, len(labels), len(names))
        least = self.n_min
        if isinstance(self.threat_model, Summed):
            self.threat_model.share(0.0, parties=len(names))  # refuses more colluders than parties
            least = None if least is None else least * len(names)
            holders, names = np.zeros_like(holders), (summed_name(len(names)),)
        private = PrivateDataset(
            rows,
            labels,
            adjacency=self.adjacency,
            row_bound=1.0,
            party_of=holders,
            parties=names,
            n_min=least,
            label_domain=SIGNS if len(self.classes_) == 2 else ClassLabels(len(self.classes_)),
        )
        start = self._start()
        factory = self._factory(start)

        def work(
            noise_multiplier: float, dataset: PrivateDataset, curator: Curator
        ) -> tuple[PublicModel, list[PublicRound]]:
            history = History()
            solver = factory(noise_multiplier, dataset.shape)

            def observe(k: int, state: PublicModel) -> None:
                history.add(k, state.model)

            return solver.solve(dataset, curator, observe=observe), history.rounds

        paid = paid_run(
            work,
            planned=PrivateDataset.planned(private.shape),
            private=private,
            name=type(self).__name__,
            epsilon=self.epsilon,
            delta=self.delta,
            records_per_unit=self.records_per_unit,
            ledger=self.ledger,
            noise=self._noise(),
        )
        trust = self.threat_model.assumption
        assuming = (*(() if trust is None else (trust,)), *((_START_ASSUMED,) if start else ()))
        state, history = self._note(paid, assuming=assuming)
        self.history_ = tuple(history)
        self.n_iter_ = len(history)
        self._keep_model(state.model)
        return self

    def _keep_model(self, model: FloatArray) -> None:
        """Set coefficients for rows as they were given."""
        columns = 1 if len(self.classes_) == 2 else len(self.classes_)
        weights = model.reshape(-1, columns).T * (np.sqrt(0.5) if self.fit_intercept else 1.0)
        width = self.n_features_in_
        self.coef_ = weights[:, :width] / self.row_bound
        self.intercept_ = weights[:, width] if self.fit_intercept else np.zeros(columns)

    def _factory(self, start: tuple[float, ...]) -> SolverFactory:
        column = self.n_features_in_ if self.fit_intercept else None
        share = self._epsilon_of_a_record()
        recipe = Recipe(self.rounds, self.regularisation, share, self.delta, column, start)
        if isinstance(self.algorithm, AdmmAlgorithm):
            return self.algorithm.factory(recipe)
        if not callable(self.algorithm):
            raise InvalidParameter("algorithm", self.algorithm, "an AdmmAlgorithm or a function")
        return self.algorithm

    def _start(self) -> tuple[float, ...]:
        """Return the model of the fit before, as `_keep_model` was handed it; empty for none."""
        if not self.warm_start:
            return ()
        if self.algorithm is not AdmmAlgorithm.CONSENSUS:
            raise InvalidParameter(
                "warm_start", True, f"False with algorithm={self.algorithm}: it starts at 0"
            )
        if not hasattr(self, "coef_"):
            return ()
        columns = 1 if len(self.classes_) == 2 else len(self.classes_)
        if self.coef_.shape != (columns, self.n_features_in_):
            expected = (columns, self.n_features_in_)
            raise InvalidParameter("coef_.shape", self.coef_.shape, f"{expected} for a warm start")
        weights = self.coef_ * self.row_bound
        if self.fit_intercept:
            weights = np.hstack([weights, self.intercept_[:, None]]) / np.sqrt(0.5)
        return tuple(weights.T.ravel().tolist())

    def _names(self) -> tuple[str, ...]:
        if self.parties is None:
            number = 1 if self.n_parties is None else self.n_parties
            require_positive_int("n_parties", number)
            return tuple(f"party-{i + 1}" for i in range(number))
        names = tuple(self.parties)
        if self.n_parties not in (None, len(names)):
            raise InvalidParameter("n_parties", self.n_parties, f"None or {len(names)}")
        return names

    def _holders(self, party_of: Any, count: int, parties: int) -> IntArray:
        if party_of is not None:
            holders: IntArray = column_or_1d(party_of)
            if len(holders) != count:
                raise InvalidParameter("party_of.shape", holders.shape, f"({count},)")
            return holders
        if (
            parties > 1
            and named("adjacency", self.adjacency, Adjacency) is Adjacency.ADD_REMOVE_ONE
        ):
            raise InvalidParameter("party_of", None, "an array: dealing in turn moves records")
        return np.arange(count) % parties
