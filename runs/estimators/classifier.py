"""What private linear classifiers share: labels, scores, promises, and how they are copied.

The base of `PrivateAdmmClassifier` and `PrivateSharingClassifier`: scikit-learn's conventions on
the outside (`fit` elsewhere, `predict`, `predict_proba`, pickling), the ledger and the certificate
of a fit on the inside.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ...accounting.guarantees import Guarantee
from ...accounting.ledger import Ledger, MemoryLedger, exported, imported
from ...accounting.proof.certificate import Certificate
from ...mechanisms.errors import InvalidParameter, Number, RepeatableNoise, require_positive_int
from ...mechanisms.protocols import FloatArray
from ...mechanisms.sampling import SeededSampler, SystemSampler
from .paid_run import NoiseStream, PaidRun, PublicRound

T = TypeVar("T")

_CLASSES_ASSUMED = "the classes are public (they were read off y)"
"""An assumption of the promise where the caller did not name the classes."""

_BOUND_ASSUMED = "every row there could be is within row_bound (a longer one is refused aloud)"
"""Where rows are refused instead of clipped: a refusal tells of a record."""

_SEED_ASSUMED = "random_state is secret and served one fit only (who knows it subtracts the noise)"
"""Where noise is repeatable."""


class PrivateLinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier that was trained with differential privacy.

    Prediction costs no privacy: the model is public.

    Attributes that end in an underscore are set by `fit`: the model (`coef_` of shape (K, d) or (1,
    d), `intercept_`), `privacy_` with the epsilon and what it takes for granted, `certificate_`,
    the `ledger_` that paid, and `history_`, a public value for each round.
    """

    classes: Sequence[Any] | None
    clip: bool
    epsilon: Number
    records_per_unit: int
    ledger: Ledger | None
    random_state: int | None

    classes_: npt.NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray
    n_features_in_: int
    n_iter_: int
    noise_multiplier_: float
    privacy_: Guarantee
    certificate_: Certificate
    ledger_: Ledger
    history_: tuple[PublicRound, ...]

    def decision_function(self, X: Any) -> FloatArray:
        """Return scores: of two classes, the second's over the first's in shape (n,); else (n, K).

        Of two classes the second is predicted where the score is positive.
        """
        check_is_fitted(self)
        rows: Any = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = np.asarray(rows @ self.coef_.T + self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return classes of shape (n,)."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the logistic model's probabilities of all classes, of shape (n, K)."""
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        second = expit(scores)
        return np.column_stack([1.0 - second, second])

    def __sklearn_tags__(self) -> Any:
        """Say to scikit-learn: sparse rows welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """Return the parameters as scikit-learn shows them, a seed of noise kept back."""
        return str(super(PrivateLinearClassifier, self._without_seed()).__repr__(N_CHAR_MAX))

    def _repr_html_inner(self) -> str:
        """Return the same for notebooks."""
        return str(super(PrivateLinearClassifier, self._without_seed())._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """Return the same for notebooks, in every form that they ask for."""
        shown: Any = super(PrivateLinearClassifier, self._without_seed())
        return cast("dict[str, str]", shown._repr_mimebundle_(**options))

    def _without_seed(self) -> Self:
        """Return what is shown of this: notebooks and logs are read by others."""
        if self.random_state is None:
            return self
        shown = object.__new__(type(self))
        shown.__dict__.update(self.__dict__, random_state="kept")
        return shown

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled; the ledger that a fit made for itself goes along as text.

        A fitted model's seed of noise stays behind, and so does a ledger whose rows hold it: who
        is given the model could subtract the noise.
        """
        state: dict[str, Any] = {**cast("dict[str, Any]", super().__getstate__())}
        if "coef_" in state and state["random_state"] is not None:
            state["random_state"] = None
            if state["ledger_"] is not self.ledger:
                del state["ledger_"]
        if "ledger_" in state and state["ledger_"] is not self.ledger:
            state["ledger_"] = list(exported(state["ledger_"]))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take in what was pickled."""
        if isinstance(lines := state.get("ledger_"), list):
            ledger = MemoryLedger()
            imported(lines, ledger)
            state = {**state, "ledger_": ledger}
        super().__setstate__(state)

    def _validated(self, X: Any, y: Any, **checks: Any) -> tuple[Any, FloatArray]:
        """Return finite rows, and labels as numbers; notes classes and number of features.

        Args:
            X: rows, shape (n, d), dense or sparse.
            y: labels, shape (n,).
            checks: as `sklearn.utils.validation.validate_data` takes them.
        """
        given: Any = validate_data(self, X, y, dtype=np.float64, **checks)
        rows, labels = given
        return rows, self._numbered(labels)

    def _numbered(self, y: npt.NDArray[Any]) -> FloatArray:
        """Return ±1 for two classes and 0, 1, ... for more, and note the classes.

        Args:
            y: labels of any type, shape (n,).

        Raises:
            ValueError: for fewer than two classes, and in scikit-learn's words for too many.
            InvalidParameter: for a label outside of `classes`.
        """
        check_classification_targets(y)
        classes = np.unique(y if self.classes is None else np.asarray(self.classes))
        if len(classes) < 2:
            raise ValueError("Expected at least two classes instead got 1 class.")
        if len(classes) > 2 and not self.__sklearn_tags__().classifier_tags.multi_class:
            raise ValueError(
                "Only binary classification is supported. "
                f"Expected two classes instead got {len(classes)}."
            )
        if not np.isin(y, classes).all():
            raise InvalidParameter("y", "with other labels", f"of classes {classes.tolist()}")
        self.classes_ = classes
        places = np.searchsorted(classes, y).astype(np.float64)
        return 2.0 * places - 1.0 if len(classes) == 2 else places

    def _epsilon_of_a_record(self) -> Number:
        """Return about the part of epsilon that one record of a person has, for settings only.

        Rounds and steps suit the noise; the promise is planned for the person.
        """
        require_positive_int("records_per_unit", self.records_per_unit)
        if self.records_per_unit == 1:
            return self.epsilon
        return float(self.epsilon) / self.records_per_unit

    def _noise(self) -> NoiseStream:
        """Return where a fit's noise comes from; warn of noise that can be repeated.

        Raises `InvalidParameter` for a seed that is no whole number in range, before anything is
        spent.
        """
        seed = self.random_state
        if seed is None:
            return lambda *_: SystemSampler()
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise InvalidParameter("random_state", seed, "None or a whole number")
        SeededSampler(int(seed))  # raises for a seed out of range, before anything is spent
        warnings.warn(
            "experiment: repeatable noise. Whoever knows random_state subtracts the noise of this "
            "fit; pass random_state=None for a release.",
            RepeatableNoise,
            stacklevel=3,
        )
        return partial(SeededSampler.stream, int(seed))

    def _note(self, paid: PaidRun[T], *, assuming: Sequence[str] = ()) -> T:
        """Keep a run's promises, with what they rest on, and return its result.

        Args:
            paid: a run that the ledger has paid for.
            assuming: what is taken for granted besides what all classifiers do.
        """
        given = (
            *assuming,
            *((_CLASSES_ASSUMED,) if self.classes is None else ()),
            *(() if self.clip else (_BOUND_ASSUMED,)),
            *(() if self.random_state is None else (_SEED_ASSUMED,)),
        )
        assumptions = (*paid.guarantee.assumptions, *given)
        self.privacy_ = replace(paid.guarantee, assumptions=assumptions)
        self.certificate_ = paid.certificate.given(*given)
        self.ledger_ = paid.ledger
        self.noise_multiplier_ = paid.noise_multiplier
        return paid.result
