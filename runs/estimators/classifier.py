"""What private linear classifiers share: classes, scores and probabilities.

The base of `PrivateAdmmClassifier` and `PrivateSharingClassifier`.
"""

from collections.abc import Sequence
from functools import partial
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ...mechanisms.errors import InvalidParameter
from ...mechanisms.protocols import FloatArray
from ...mechanisms.row_blocks import require_unmasked
from ...solvers.losses import ClippedLogistic
from .linear import PrivateLinearModel, Scored
from .rows import without_cells

_CLASSES_ASSUMED = "the classes are public (they were read off y)"
"""An assumption of the promise where the caller did not name the classes."""


class PrivateLinearClassifier(Scored, ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """A linear classifier that was trained with differential privacy.

    Prediction costs no privacy: the model is public.

    `coef_` has shape (K, d), or (1, d) for two classes, `intercept_` one number for each row of it.
    """

    classes: Sequence[Any] | None

    classes_: npt.NDArray[Any]
    intercept_: FloatArray
    slope_bound_: float
    """To which the loss's slopes were cut; 1 for the logistic loss."""

    def decision_function(self, X: Any) -> FloatArray:
        """Return scores: of two classes, the second's over the first's in shape (n,); else (n, K).

        Of two classes the second is predicted where the score is positive.
        """
        check_is_fitted(self)
        rows: Any = self._checked(X, accept_sparse="csr", reset=False)
        scores = np.asarray(rows @ self.coef_.T + self.intercept_)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return classes of shape (n,)."""
        scores = self.decision_function(X)
        chosen = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the model's probabilities of all classes, of shape (n, K).

        Of two classes they are those at which a score has the least expected loss, which is not the
        logistic function where slopes were cut (`ClippedLogistic.probability`).
        """
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        cut = getattr(self, "slope_bound_", 1.0)
        second = expit(scores) if cut >= 1.0 else ClippedLogistic(cut).probability(scores)
        return np.column_stack([1.0 - second, second])

    def _validated(self, X: Any, y: Any, **checks: Any) -> tuple[Any, FloatArray]:
        """Return finite rows, and labels as ±1 for two classes and 0, 1, ... for more.

        Notes classes and number of features.

        Args:
            X: rows, shape (n, d), dense or sparse.
            y: labels of any type, shape (n,).
            checks: as `sklearn.utils.validation.validate_data` takes them.

        Raises `ValueError` for fewer than two classes and `InvalidParameter` for a label outside of
        `classes`.
        """
        if self.classes is not None:
            classes = self._known(np.asarray(self.classes))
            rows, places = self._checked(X, _places(y, classes), **checks)
        else:
            rows, labels = self._checked(X, y, **checks)
            different = without_cells("y", partial(np.unique, labels))
            # four times each: it would warn of labels of which there are many different ones
            often = np.repeat(different, 4)
            without_cells("y", partial(check_classification_targets, often))
            classes = self._known(different)
            places = np.searchsorted(classes, labels).astype(np.float64)
        self.classes_ = classes
        return rows, 2.0 * places - 1.0 if len(classes) == 2 else places

    def _known(self, labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the different ones of labels, in order, of which there must be two or more.

        Raises `ValueError`, in scikit-learn's words for too many.
        """
        classes: npt.NDArray[Any] = without_cells("y", partial(np.unique, labels))
        if len(classes) < 2:
            raise ValueError("Expected at least two classes instead got 1 class.")
        if len(classes) > 2 and not self.__sklearn_tags__().classifier_tags.multi_class:
            raise ValueError(
                "Only binary classification is supported. "
                f"Expected two classes instead got {len(classes)}."
            )
        return classes

    def _assumed(self) -> tuple[str, ...]:
        """Return that classes which were read off the labels are public."""
        return (_CLASSES_ASSUMED,) if self.classes is None else ()


def _places(y: Any, classes: npt.NDArray[Any]) -> Any:
    """Return each label's place among classes, of y's shape; None for None.

    Every label is looked up by itself: NumPy makes texts of all where one is, and searches texts
    among numbers from where the last one was.

    Args:
        y: labels.
        classes: different, in order.

    Raises `InvalidParameter` for labels of no class.
    """
    if y is None:
        return None
    require_unmasked("y", y)
    if isinstance(y, np.ndarray) and y.dtype != np.object_:
        labels, where = np.unique(np.asarray(y), return_inverse=True)
        shape = y.shape
    else:
        labels = np.asarray(y, dtype=np.object_)
        shape, where = labels.shape, np.arange(labels.size)
    places_of = (enumerate(classes), enumerate(classes.tolist()))  # NumPy's scalars, and Python's
    known = {label: float(place) for each in places_of for place, label in each}
    places = np.array([_found(known, label) for label in labels.ravel()])
    if np.isnan(places).any():
        raise InvalidParameter("y", "with other labels", f"of classes {classes.tolist()}")
    return places[where].reshape(shape)


def _found(known: dict[Any, float], label: Any) -> float:
    """Return a label's place, or NaN where it is no class.

    Args:
        known: each class's place.
        label: of one record.
    """
    try:
        return known.get(label, nan)
    except TypeError:  # what cannot be looked up is none
        return nan
