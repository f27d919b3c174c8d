"""What an attack showed: bounds, null control, ceiling and metrics, gathered from its scores."""

from dataclasses import dataclass
from math import inf

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
from .claim_tests import ERROR_SHARES, ClaimTest, claim_tests, claimed_epsilon
from .metrics import Promise, RocPoint, TprAtFpr, auc, roc, tpr_at_fpr

_INTERVAL_CONFIDENCE = 0.99
"""Of the interval for mu, which is a measurement beside the verdict and no part of it."""
NULL_SHARE = ERROR_SHARES["null control"]
"""Of the error probability 1 - confidence, what the null control may spend: by all its bounds
together, so that an attack on an honest run rarely ends in an alarm about itself."""
_REPORTED_FPRS = (1e-1, 1e-2, 1e-3)
"""False-positive rates that a report names, where at least one false positive is to be expected."""

_NOT_MEANT = (
    "A bound of 0, or one below the claim, is no evidence of privacy: another attack, another "
    "pair of data sets or more trials may show more.",
    "The bound speaks of this pair of neighbours; the guarantee speaks of all.",
    "The Gaussian-family bound and the measured mu hold only if the scores are normal with one "
    "variance; Clopper-Pearson needs no such thing.",
    "A single bound fails with probability 1 - confidence. The verdict is that of tests which "
    "share this probability with the null control, by a split fixed beforehand: so a bound may lie "
    "above a claim that they do not refute.",
)


@dataclass(frozen=True, slots=True)
class NullControl:
    """The same pipeline where there is nothing to find: both worlds are runs on the data set.

    Scored by the same function of the output. A positive bound here has probability at most
    1 - `confidence`, for all bounds together; if it happens, the attack's own bounds prove nothing:
    look for what the attack knows besides the output, and repeat it with a new seed.

    Args:
        confidence: of all its bounds together.
        bounds: as of the attack, each with half of the control's error.
        measured_mu: with its interval; None outside the Gaussian family.
        auc: near 1/2, as both worlds are one.
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
        claimed_mu, claimed_epsilon: what was attacked, epsilon at `delta` (rounded up); mu is
            infinite where the claim is one of epsilon.
        measured_mu: with its 99 % interval; None outside the Gaussian family.
        bounds: Clopper-Pearson first, then the Gaussian family; none, and no measured mu, where the
            null control failed: an attack that finds leakage where there is none proves nothing.
        null_control: the same with D = D'.
        tests: of the claim, which share the error probability; none where the null control failed.
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
    tests: tuple[ClaimTest, ...]
    threshold: float
    expected_epsilon: float
    ceiling: float
    roc: tuple[RocPoint, ...]
    tpr_at_fpr: tuple[TprAtFpr, ...]
    auc: float
    not_meant: tuple[str, ...]

    @property
    def refutes_claim(self) -> bool:
        """Whether some test refutes the claim; a true one with probability 1 - confidence at most.

        Never where the null control failed: then there are no tests.
        """
        return any(test.refuted for test in self.tests)

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
        by = ", ".join(test.name for test in self.tests if test.refuted)
        return f"claim REFUTED by: {by}" if by else "claim not refuted"


def assess(
    scores: Scores,
    null: Scores,
    *,
    claimed: Promise,
    delta: float,
    confidence: float,
    pair_mu: float | None = None,
    noise: ClaimTest | None = None,
) -> AttackResult:
    """Return what log-likelihood ratios show about a claim of mu-GDP or (epsilon, delta).

    Args:
        scores: ratios log p(output | D) - log p(output | D') of runs on D and on D'.
        null: the same ratios of further runs, all on D.
        claimed: the guarantee under attack; it fixes the threshold.
        delta: where epsilon is bounded, in (0, 1).
        confidence: of each bound, and of the verdict, in (0, 1).
        pair_mu: the pair's exact mu if the run is as stated; None where it is not known.
        noise: what a test of the run's own noise found, at the level of `noise_level`.

    Error controlled: all tests of the claim and the null control share 1 - confidence, by shares
    fixed in `ERROR_SHARES`; so a claim that is kept is refuted with at most that probability. The
    bounds have `confidence` each, not together.
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
        claimed_mu=float(claimed.mu_squared) ** 0.5 if isinstance(claimed, Gdp) else inf,
        claimed_epsilon=claimed_epsilon(claimed, delta),
        measured_mu=None if control.positive else measure.interval(scores),
        bounds=tuple(bound.lower_bound(scores, delta=delta) for bound in bounds),
        null_control=control,
        tests=()
        if control.positive
        else (
            *claim_tests(
                scores, claimed=claimed, delta=delta, confidence=confidence, pair_mu=pair_mu
            ),
            *(() if noise is None else (noise,)),
        ),
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
    """Return the counting bound at a threshold that is fixed, and the one for normal scores."""
    return ClopperPearson(threshold, confidence), GaussianFamily(confidence)


def _null_control(
    null: Scores, threshold: float, *, delta: float, confidence: float
) -> NullControl:
    """Return the control's evidence; its two bounds share the control's error in halves."""
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


def noise_level(confidence: float) -> float:
    """Return the level of a test of the noise that goes with an attack's `confidence`."""
    return ERROR_SHARES["noise"] * (1 - confidence)
