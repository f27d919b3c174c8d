"""`PrivateAdmmClassifier`: logistic regression on records that live with one party each."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from ...accounting.ledger import Ledger
from ...mechanisms.adjacency import Adjacency
from ...mechanisms.errors import InvalidParameter, Number
from ...mechanisms.labels import SIGNS, ClassLabels, LabelDomain, WeightedLabels
from ...mechanisms.protocols import FloatArray
from ...solvers.losses import ClippedLogistic
from ...solvers.threat_model import PER_PARTY, Summed, ThreatModel
from ...solvers.weighted import Weighted
from .algorithms import AdmmAlgorithm, Recipe, SolverFactory
from .classifier import PrivateLinearClassifier
from .linear import unchanged_if_refused
from .rows import bounded_rows, shares
from .search import SETTINGS, SearchedModelOfParties


class PrivateAdmmClassifier(PrivateLinearClassifier, SearchedModelOfParties):
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
    winner included, is covered by no fit's guarantee: score on public ones, or name `candidates`,
    among which the fit itself chooses: then all of them and the choice are within `epsilon`.

    Divide records by place alone: `cv=KFold(k)`. A search's default for classifiers goes by labels,
    so that one record moves others from fold to fold, and every fit's epsilon is of all that it
    moves; so do `stratify=`, `OneVsOneClassifier`, whose fits are of two classes' records
    (their number is taken for public), and `OneVsRestClassifier`, which fits nothing where a label
    is the same of all records, and so tells that it is. Under add-remove-one a record more moves
    those behind it whatever the splitter.

    A sample weight is a part of its record, as private as the label, and counts over
    `weight_bound`: what is minimised is the sum of (weight/weight_bound) · loss over the number of
    records, which is public, plus the regulariser; the sum of weights would not be. Noise is that
    of records of the largest weight, so that a bound k times the usual weight costs as much
    accuracy as an epsilon k times smaller; equal weights at the bound minimise what none do (but
    where noise hides all rows, classes are then told by their slopes, and not by their counts).

    In a pipeline, steps before this one that learn from the records (a `StandardScaler`) are not
    covered by the guarantee; those that look at one row at a time (a `Normalizer`) are harmless.
    Nor is what learns from private labels after the fit (calibration, tuned thresholds, stacking).
    What repeats rows (a bootstrap, oversampling) makes several of one record: say how many with
    `records_per_unit`. scikit-learn's ensembles give their members seeds of 31 bits, which can be
    searched through: their noise is an experiment's, whatever `random_state` says here.

    Args:
        epsilon: what the proved epsilon of one fit must not exceed, > 0.
        delta: in (0, 1).
        records_per_unit: how many records a person has at most; `epsilon` is then of a person, all
            of whose records are added, removed, zeroed or replaced together.
        adjacency: what neighbouring data sets are.
        algorithm: by name, or a function from noise multiplier and public shape to a solver,
            which then has settings of its own for `rounds` and `regularisation`. The default is
            ADMM at the consensus; where noise hides what rows tell, by a public rule, and neither
            rounds are given nor a budget is shared, it answers with the class that is the larger
            one by a count with Laplace noise (`solvers.classifier_defaults`).
        n_parties: number of parties, to which `fit` deals records in turn; 1 without `parties`.
        parties: names of the parties, in place of their number.
        rounds: of communication; None for what the algorithm's own rule says, or 100.
        threat_model: whether every party's message is seen, or sums over all parties only. A sum is
            simulated here, as if a protocol for it were run; that is one of the assumptions in
            `privacy_`. The noise that colluders add for nothing is left out.
        row_bound: public l2 bound on a row.
        weight_bound: public largest sample weight, > 0; where `fit` is given weights.
        clip: whether to cut longer rows and larger weights; else they are refused.
        fit_intercept: whether to add the constant.
        regularisation: weight of the squared norm, > 0; None for the algorithm's own.
        classes: two (logistic loss) or more (multinomial). Without them they are read off y, and
            that they are public is one of the assumptions in `privacy_`.
        n_min: public lower bound on every party's number of records; add-remove-one only.
        warm_start: whether a fit starts from the model of the fit before it, which is public: it
            cost what it cost, and starting from it costs nothing. For the default algorithm.
        candidates: settings of `algorithm`, `rounds` and `regularisation` to choose among, as
            [{"rounds": 5}, {"algorithm": AdmmAlgorithm.DP_SGD}]. All are trained, each with noise
            sqrt(K) times that of a single fit, and the exponential mechanism chooses by errors on
            the holdout, whose records pay for the choice alone. Not under add-remove-one.
        holdout: share of the records that the choice is made on, one of each 1/holdout in order; a
            party of its own, which sees the other parties' public models and no records.
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
        history_: what every round made public; of the chosen candidate.
        noise_multiplier_: noise_std / sensitivity of the releases, of the chosen candidate's.
        best_index_, best_params_: which candidate was chosen.
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
        weight_bound: float = 1.0,
        clip: bool = False,
        fit_intercept: bool = True,
        regularisation: float | None = None,
        classes: Sequence[Any] | None = None,
        n_min: int | None = None,
        warm_start: bool = False,
        candidates: Sequence[Mapping[str, Any]] | None = None,
        holdout: float = 0.2,
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
        self.weight_bound = weight_bound
        self.clip = clip
        self.fit_intercept = fit_intercept
        self.regularisation = regularisation
        self.classes = classes
        self.n_min = n_min
        self.warm_start = warm_start
        self.candidates = candidates
        self.holdout = holdout
        self.records_per_unit = records_per_unit
        self.random_state = random_state
        self.ledger = ledger

    @unchanged_if_refused
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, party_of: Any = None) -> Self:
        """Train on private records; returns the estimator.

        Args:
            X: rows of shape (n, d), dense or sparse.
            y: labels of shape (n,), of the classes.
            sample_weight: of shape (n,), in [0, weight_bound] and not all 0, as private as labels.
                Each of its own record and public facts alone: of weights that balance classes by
                how often they occur here, or follow errors on others, one record moves many.
            party_of: for each record the index of its party, of shape (n,); public and fixed.
                Without it records are dealt in turn, which add-remove-one does not allow: one
                record more would move others.

        Raises before anything is spent: `InvalidParameter` or `ValueError` for bad input, and
        whatever `paid_run` does.
        """
        features, labels = self._validated(X, y, accept_sparse="csr")
        rows = bounded_rows(
            features, row_bound=self.row_bound, clip=self.clip, constant=self.fit_intercept
        )
        plain = SIGNS if len(self.classes_) == 2 else ClassLabels(len(self.classes_))
        domain: LabelDomain = plain
        if sample_weight is not None:
            weights = shares(sample_weight, rows, weight_bound=self.weight_bound, clip=self.clip)
            domain = WeightedLabels(plain)
            labels = domain.joined(labels, weights)
        start = self._start()
        if self.candidates is None:
            factory = self._factory(start, {}, self._epsilon_of_a_record())
            model, solver = self._trained(rows, labels, domain, party_of, factory, start=start)
        else:
            candidates, share = self._candidates(), self._epsilon_of_a_candidate()
            factories = [self._factory((), each, share) for each in candidates]
            model, solver = self._searched(rows, labels, domain, party_of, factories)
        loss = getattr(solver, "loss", None)
        loss = loss.loss if isinstance(loss, Weighted) else loss
        self.slope_bound_ = loss.bound if isinstance(loss, ClippedLogistic) else 1.0
        self._keep_model(model)
        return self

    def _keep_model(self, model: FloatArray) -> None:
        """Set coefficients for rows as they were given."""
        columns = 1 if len(self.classes_) == 2 else len(self.classes_)
        weights = model.reshape(-1, columns).T * (np.sqrt(0.5) if self.fit_intercept else 1.0)
        width = self.n_features_in_
        self.coef_ = weights[:, :width] / self.row_bound
        self.intercept_ = weights[:, width] if self.fit_intercept else np.zeros(columns)

    def _factory(
        self, start: tuple[float, ...], given: Mapping[str, Any], epsilon: Number
    ) -> SolverFactory:
        """Return the maker of solvers with these settings.

        Args:
            start: the public model that they start from; empty for 0.
            given: settings in place of the estimator's own, a candidate's.
            epsilon: that rounds and steps are chosen for.
        """
        chosen: dict[str, Any] = {name: getattr(self, name) for name in SETTINGS} | dict(given)
        column = self.n_features_in_ if self.fit_intercept else None
        # a budget that several fits share adds them up as Gaussian ones
        shared = self.ledger is not None and self.ledger.budget is not None
        recipe = Recipe(
            chosen["rounds"],
            chosen["regularisation"],
            epsilon,
            self.delta,
            column,
            start,
            gaussian=shared or isinstance(self.threat_model, Summed),
        )
        algorithm: AdmmAlgorithm | SolverFactory = chosen["algorithm"]
        if isinstance(algorithm, AdmmAlgorithm):
            return algorithm.factory(recipe)
        if not callable(algorithm):
            raise InvalidParameter("algorithm", algorithm, "an AdmmAlgorithm or a function")
        return algorithm

    def _start(self) -> tuple[float, ...]:
        """Return the model of the fit before, as `_keep_model` was handed it; empty for none."""
        if not self.warm_start:
            return ()
        if self.candidates is not None:
            raise InvalidParameter("warm_start", True, "False with candidates")
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
