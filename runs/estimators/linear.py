"""What private linear models share: promises, noise, and how they are shown and copied.

The base of the estimators here: scikit-learn's conventions on the outside (parameters, pickling),
the ledger and the certificate of a fit on the inside.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial, wraps
from numbers import Integral
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ...accounting.guarantees import Guarantee
from ...accounting.ledger import Ledger, MemoryLedger, exported, imported
from ...accounting.proof.certificate import Certificate
from ...mechanisms.errors import InvalidParameter, Number, RepeatableNoise, require_positive_int
from ...mechanisms.layout import require_places
from ...mechanisms.protocols import FloatArray
from ...mechanisms.row_blocks import require_unmasked, require_unspelled, require_untimed
from ...mechanisms.sampling import SeededSampler, SystemSampler
from .paid_run import NoiseStream, PaidRun, PublicRound
from .rows import without_cells

T = TypeVar("T")

_CELLS_ASSUMED = (
    "every cell there could be is a finite number, and a label one of the classes (others are "
    "refused aloud)"
)
"""Of every fit: a refusal tells of a record."""

_CHOSEN_ASSUMED = (
    "which records a fit is given depends on no record (folds by labels do, the default of "
    "scikit-learn's searches; cv=KFold(k) does not, where a record is replaced or zeroed)"
)
"""Of every fit: a label that moves others to another fold moves more than its own message."""

_BOUND_ASSUMED = "every row there could be is within row_bound (a longer one is refused aloud)"
"""Where rows are refused instead of clipped: a refusal tells of a record."""

_SEED_ASSUMED = "random_state is secret and served one fit only (who knows it subtracts the noise)"
"""Where noise is repeatable."""


M = TypeVar("M", bound="PrivateLinearModel")
P = ParamSpec("P")


def unchanged_if_refused(
    fit: Callable[Concatenate[M, P], T],
) -> Callable[Concatenate[M, P], T]:
    """Return a `fit` after whose refusal the model is as it was, its promise with it.

    Of what was noted on the way, classes of the records or the promise of a run that was paid for,
    nothing stays: it would stand beside another model. The ledger keeps what was paid. Nor does
    NumPy say anything of what a fit computes: one record's overflow would tell of it.

    Args:
        fit: a method that trains.
    """

    @wraps(fit)
    def trained(self: M, /, *args: P.args, **kwargs: P.kwargs) -> T:
        before = dict(vars(self))
        try:
            with np.errstate(all="ignore"):
                return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return trained


class _KeptSeed(str):
    """A seed of noise that prints, formats and serialises as `kept`, and equals its number."""

    seed: int

    def __new__(cls, seed: int) -> Self:
        """Keep a whole number."""
        kept = super().__new__(cls, "kept")
        kept.seed = seed
        return kept

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        """Pickle the number."""
        return (type(self), (self.seed,))

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same number."""
        return self.seed == (other.seed if isinstance(other, _KeptSeed) else other)

    def __hash__(self) -> int:
        """Return the number's hash."""
        return hash(self.seed)


class Scored:
    """scikit-learn's score, whose refusals show no cell; before scikit-learn's own mixin."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return accuracy, or R² of a regressor: of private records it is private, too.

        Args:
            X: rows, as of `predict`.
            y: labels or targets, shape (n,).
            sample_weight: of shape (n,).
        """
        scored = partial(cast(Any, super()).score, X, y, sample_weight=sample_weight)
        return float(without_cells("X, y", scored))


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """A linear model that was trained with differential privacy, whatever it predicts.

    Attributes that end in an underscore are set by `fit`: the model (`coef_`), `privacy_` with
    epsilon and what it takes for granted, `certificate_`, the `ledger_` that paid, and `history_`,
    a public value a round.
    """

    clip: bool
    fit_intercept: bool
    epsilon: Number
    records_per_unit: int
    ledger: Ledger | None
    random_state: int | None

    coef_: FloatArray
    n_features_in_: int
    n_iter_: int
    noise_multiplier_: float
    privacy_: Guarantee
    certificate_: Certificate
    ledger_: Ledger
    history_: tuple[PublicRound, ...]

    def __sklearn_tags__(self) -> Any:
        """Say to scikit-learn: sparse rows welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; a seed of noise is a number that does not show itself.

        scikit-learn prints estimators by these, inside pipelines and searches too, and notebooks
        and logs are read by others.
        """
        found: dict[str, Any] = super().get_params(deep)
        seed = found.get("random_state")
        if isinstance(seed, Integral) and not isinstance(seed, bool):
            found["random_state"] = _KeptSeed(int(seed))
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled; the ledger that a fit made for itself goes along as text.

        A fitted model's seed of noise stays behind, and so does a ledger whose rows hold it: who
        is given the model could subtract the noise.
        """
        state: dict[str, Any] = {**cast("dict[str, Any]", super().__getstate__())}
        if "coef_" in state:
            state["random_state"] = None
        if "ledger_" in state and state["ledger_"] is not self.ledger:
            own = state.pop("ledger_")
            # what the rows say, not the parameter: that may have been set since the fit
            if all(found.provenance.seed is None for found in own.reservations()):
                state["ledger_"] = list(exported(own))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take in what was pickled."""
        if isinstance(lines := state.get("ledger_"), list):
            ledger = MemoryLedger()
            imported(lines, ledger)
            state = {**state, "ledger_": ledger}
        super().__setstate__(state)

    def _checked(self, X: Any, y: Any = "no_validation", **checks: Any) -> Any:
        """Return rows, and labels if given, as scikit-learn checks them; no error shows a cell.

        Args: as `sklearn.utils.validation.validate_data` takes them.
        """
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise InvalidParameter("fit_intercept", self.fit_intercept, "True or False")
        if not isinstance(self.ledger, Ledger | None):
            raise InvalidParameter("ledger", self.ledger, "None or a ledger, not its file's name")
        require_places(X)
        for name, given in (("X", X), ("y", y)):
            require_unmasked(name, given)
            require_untimed(name, given)
        require_unspelled("X", X)
        check = partial(validate_data, self, X, y, dtype=np.float64, **checks)
        return without_cells("X, y", check)

    def _assumed(self) -> tuple[str, ...]:
        """Return what this kind of estimator takes for granted of a fit."""
        return ()

    def _epsilon_of_a_record(self) -> Number:
        """Return about the part of epsilon that one record of a person has, for settings only.

        Rounds and steps suit the noise; the promise is planned for the person.
        """
        require_positive_int("records_per_unit", self.records_per_unit)
        if self.records_per_unit == 1:
            return self.epsilon
        return float(self.epsilon) / self.records_per_unit

    def _noise(self, *, stacklevel: int = 4) -> NoiseStream:
        """Return where a fit's noise comes from; warn of noise that can be repeated.

        Args:
            stacklevel: of the warning: whose line it names, 4 for the caller of a `fit` that asks.

        Raises `InvalidParameter` for a seed that is no whole number in range, before anything is
        spent.
        """
        seed = self.random_state
        if isinstance(seed, _KeptSeed):
            seed = seed.seed
        if seed is None:
            return lambda *_: SystemSampler()
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            raise InvalidParameter("random_state", seed, "None or a whole number")
        SeededSampler(int(seed))  # raises for a seed out of range, before anything is spent
        warnings.warn(
            "experiment: repeatable noise. Whoever knows random_state subtracts the noise of this "
            "fit; pass random_state=None for a release (ensembles give their members seeds).",
            RepeatableNoise,
            stacklevel=stacklevel,
        )
        return partial(SeededSampler.stream, int(seed))

    def _note(self, paid: PaidRun[T], *, assuming: Sequence[str] = ()) -> T:
        """Keep a run's promises, with what they rest on, and return its result.

        Args:
            paid: a run that the ledger has paid for.
            assuming: what is taken for granted besides what all estimators of this kind take.
        """
        given = (
            *assuming,
            *self._assumed(),
            _CELLS_ASSUMED,
            _CHOSEN_ASSUMED,
            *(() if self.clip else (_BOUND_ASSUMED,)),
            *(() if self.random_state is None else (_SEED_ASSUMED,)),
        )
        assumptions = (*paid.guarantee.assumptions, *given)
        self.privacy_ = replace(paid.guarantee, assumptions=assumptions)
        self.certificate_ = paid.certificate.given(*given)
        self.ledger_ = paid.ledger
        self.noise_multiplier_ = paid.noise_multiplier
        return paid.result
