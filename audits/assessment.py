"""What an attack showed: bounds, null control, ceiling and metrics, gathered from its scores."""

from dataclasses import dataclass

from ..accounting.gaussian.exact import epsilon_from_delta
from ..accounting.numbers.notions import Gdp
from .bounds import (
    Bound,
    ClopperPearson,
    GaussianFamily,
    LowerBound,
    MuInterval,
    Scores,
    ceiling,
    plan_threshold,
)
from .metrics import RocPoint, TprAtFpr, auc, roc, tpr_at_fpr

__all__ = ["NULL_SHARE", "AttackResult", "NullControl", "assess", "null_confidence"]

_INTERVAL_CONFIDENCE = 0.99
NULL_SHARE = 0.1
"""Of the error probability 1 - confidence, what the null control may spend: by all its bounds
together, so that an attack on an honest run rarely ends in an alarm about itself."""
_REPORTED_FPRS = (1e-1, 1e-2, 1e-3)

_NOT_MEANT = (
    "A bound of 0, or one below the claim, is no evidence of privacy: another attack, another "
    "pair of data sets or more trials may show more.",
    "The bound speaks of this pair of neighbours; the guarantee speaks of all.",
    "The Gaussian-family bound and the measured mu hold only if the scores are normal with one "
    "variance; Clopper-Pearson needs no such thing.",
    "A single bound fails with probability 1 - confidence; all of the null control's together with "
    "a tenth of that.",
)


@dataclass(frozen=True, slots=True)
class NullControl:
    """The same pipeline where there is nothing to find: both worlds are runs on the data set.

    Scored by the same function of the output. A positive bound here has probability at most
    1 - `confidence`, for all bounds together; if it happens, the attack's own bounds prove nothing:
    look for what the attack knows besides the output, and repeat it with a new seed.
    """

    confidence: float
    bounds: tuple[LowerBound, ...]
    measured_mu: MuInterval | None
    auc: float

    @property
    def positive(self) -> bool:
        """Whether any bound claims leakage where there is none."""
        return any(bound.positive for bound in self.bounds)


@dataclass(frozen=True, slots=True)
class AttackResult:
    """An attack's evidence, in plain values: `dataclasses.asdict` gives what JSON can hold.

    Args:
        trials: in each world.
        confidence, delta: of every bound.
        claimed_mu, claimed_epsilon: what was attacked, epsilon at `delta` (rounded up).
        measured_mu: with its 99 % interval; None outside the Gaussian family.
        bounds: Clopper-Pearson first, then the Gaussian family; none, and no measured mu, where the
            null control failed: an attack that finds leakage where there is none proves nothing.
        null_control: the same with D = D'.
        threshold: fixed from the claim, the number of trials, delta and confidence.
        expected_epsilon: the Clopper-Pearson bound to expect if the claim is tight.
        ceiling: the largest epsilon that counting could have shown with so many trials.
        roc, tpr_at_fpr, auc: how well the trials were told apart.
        not_meant: what this does not mean.
    """

    trials: int
    confidence: float
    delta: float
    claimed_mu: float
    claimed_epsilon: float
    measured_mu: MuInterval | None
    bounds: tuple[LowerBound, ...]
    null_control: NullControl
    threshold: float
    expected_epsilon: float
    ceiling: float
    roc: tuple[RocPoint, ...]
    tpr_at_fpr: tuple[TprAtFpr, ...]
    auc: float
    not_meant: tuple[str, ...]

    @property
    def refutes_claim(self) -> bool:
        """Whether counting alone puts epsilon above the claim (false alarm: 1 - confidence).

        Never where the null control failed: then there are no bounds.

        The Gaussian family is not asked: for a tight claim its bound exceeds the truth just as
        often, and outside the family it means nothing.
        """
        return any(
            bound.epsilon > self.claimed_epsilon
            for bound in self.bounds
            if bound.method == ClopperPearson.METHOD
        )

    @property
    def is_finding(self) -> bool:
        """Whether there is something to report: a refuted claim, or a control that failed."""
        return self.refutes_claim or self.null_control.positive

    @property
    def verdict(self) -> str:
        """What it says of the claim, in a sentence."""
        if self.null_control.positive:
            return (
                "NULL CONTROL FAILED: leakage was found between runs that do not differ. The "
                "attack proves nothing; no bound of it stands"
            )
        return "claim REFUTED" if self.refutes_claim else "claim not refuted"


def assess(
    scores: Scores, null: Scores, *, claimed: Gdp, delta: float, confidence: float
) -> AttackResult:
    """Return what log-likelihood ratios show about a claim of mu-GDP.

    Args:
        scores: ratios log p(output | D) - log p(output | D') of runs on D and on D'.
        null: the same ratios of further runs, all on D.
        claimed: the guarantee under attack; it fixes the threshold.
        delta: where epsilon is bounded, in (0, 1).
        confidence: of each bound, in (0, 1).
    """
    trials = min(scores.dataset.size, scores.neighbour.size)
    plan = plan_threshold(claimed=claimed, trials=trials, delta=delta, confidence=confidence)
    measure = GaussianFamily(_INTERVAL_CONFIDENCE)
    control = _null_control(null, plan.threshold, delta=delta, confidence=confidence)
    bounds = () if control.positive else _bounds(plan.threshold, confidence)
    return AttackResult(
        trials=trials,
        confidence=confidence,
        delta=delta,
        claimed_mu=float(claimed.mu_squared) ** 0.5,
        claimed_epsilon=epsilon_from_delta(mu_squared=claimed.mu_squared, delta=delta).upper_float,
        measured_mu=None if control.positive else measure.interval(scores),
        bounds=tuple(bound.lower_bound(scores, delta=delta) for bound in bounds),
        null_control=control,
        threshold=plan.threshold,
        expected_epsilon=plan.expected_epsilon,
        ceiling=ceiling(trials=trials, delta=delta, confidence=confidence),
        roc=roc(scores),
        tpr_at_fpr=tuple(
            tpr_at_fpr(scores, fpr, claimed=claimed, confidence=confidence)
            for fpr in _REPORTED_FPRS
            if fpr * trials >= 1
        ),
        auc=auc(scores),
        not_meant=_NOT_MEANT,
    )


def _bounds(threshold: float, confidence: float) -> tuple[Bound, ...]:
    return ClopperPearson(threshold, confidence), GaussianFamily(confidence)


def _null_control(
    null: Scores, threshold: float, *, delta: float, confidence: float
) -> NullControl:
    level = null_confidence(confidence)
    each = _bounds(threshold, 1 - (1 - level) / 2)
    return NullControl(
        confidence=level,
        bounds=tuple(bound.lower_bound(null, delta=delta) for bound in each),
        measured_mu=GaussianFamily(_INTERVAL_CONFIDENCE).interval(null),
        auc=auc(null),
    )


def null_confidence(confidence: float) -> float:
    """Return the confidence of a null control that goes with an attack's `confidence`."""
    return 1 - NULL_SHARE * (1 - confidence)
