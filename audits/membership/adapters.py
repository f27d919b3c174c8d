"""Models of a user's own as players of the membership game."""

from collections.abc import Callable
from typing import Any

from ...mechanisms.errors import InvalidParameter
from ...mechanisms.protocols import FloatArray

Train = Callable[[FloatArray, Any, int], Any]
"""From features (n, d), labels (n,) and a seed to a fitted classifier with `predict_proba(rows)`
and `classes_`, as in scikit-learn. Seeds are below 2³²: a `random_state` takes no larger one."""


def trainer_of(model: object) -> Train:
    """Return what trains `model`: a scikit-learn classifier, or a function that is a `Train`.

    A classifier is cloned for every training; if it has a `random_state`, it gets the seed.

    Raises `InvalidParameter` for anything else.
    """
    if hasattr(model, "get_params") and hasattr(model, "predict_proba"):
        return _Cloned(model)
    if callable(model) and not isinstance(model, type):
        return model
    raise InvalidParameter(
        "model", model, "a classifier with predict_proba or a function (features, labels, seed)"
    )


class _Cloned:
    """Trains clones of a scikit-learn classifier; travels to other processes."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, features: FloatArray, labels: Any, seed: int) -> Any:
        from sklearn.base import clone

        fresh: Any = clone(self._model)
        seeds = {
            name: seed for name in fresh.get_params() if name.split("__")[-1] == "random_state"
        }
        return fresh.set_params(**seeds).fit(features, labels)
