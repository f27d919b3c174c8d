"""Noise other than Gaussian that a curator can add, and the events that say so.

Each asks for what its theorem rests on: Laplace noise for an l1 sensitivity, discrete noise for
whole numbers, randomised response for one answer a record, the exponential mechanism for costs of
candidates. A value has these by the rules that made it (`PrivateDataset.histogram`, `answers` and
`wrong_predictions`, `PrivateTable.quantile_costs`), or is refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from .discrete_noise import require_scale
from .errors import InvalidParameter, require_nonnegative, require_positive
from .events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    LaplaceStep,
    PureStep,
    RandomisedResponse,
)
from .sensitive import Sensitive
from .sensitivity import Sensitivity, float_up, scaled


@dataclass(frozen=True, slots=True)
class LaplaceNoise:
    """Laplace noise of the given scale, its mean absolute value, on a lattice 2^-50 as fine."""

    scale: float

    def __post_init__(self) -> None:
        require_nonnegative("scale", self.scale)


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise:
    """Whole numbers of probability ∝ e^-|j|/scale; `scale` in [2^-8, 2^40]."""

    scale: float

    def __post_init__(self) -> None:
        require_scale("scale", self.scale)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise:
    """Whole numbers of probability ∝ e^-j²/(2 noise_std²); `noise_std` in [2^-8, 2^40]."""

    noise_std: float

    def __post_init__(self) -> None:
        require_scale("noise_std", self.noise_std)


@dataclass(frozen=True, slots=True)
class ExponentialMechanism:
    """One of several candidates, each with probability ∝ e^-(cost·ε/2Δ), Δ what one cost moves by.

    The message has a 1 in the place of the chosen candidate, among zeros. The log-density moves by
    at most ε/2 for the cost and ε/2 for the sum of all weights (McSherry, Talwar 2007, Theorem 6).

    Args:
        epsilon: > 0, of this one release.
    """

    epsilon: float

    def __post_init__(self) -> None:
        require_positive("epsilon", self.epsilon)


Noise = (
    ExponentialMechanism
    | LaplaceNoise
    | DiscreteLaplaceNoise
    | DiscreteGaussianNoise
    | RandomisedResponse
)
"""What `Curator.release` takes for `mechanism`."""

NoisyStep = PureStep | LaplaceStep | DiscreteLaplaceStep | DiscreteGaussianStep | RandomisedResponse


def noisy_step(
    sensitive: Sensitive,
    noise: Noise,
    price: Callable[[float], Callable[[Sensitivity], Sensitivity]],
) -> tuple[NoisyStep, float]:
    """Return the event's mechanism for a value and its noise, and the noise's scale.

    Args:
        sensitive: what is released.
        noise: that is added to it; the scale of a randomised response is 0.
        price: makes of the scale of noise on a lattice what the lattice makes of a sensitivity.

    Raises `InvalidParameter` for a value that is not what the noise asks for.
    """
    if sensitive.sampled_part is not None:
        raise InvalidParameter("sensitive", sensitive, "computed on all records")
    sensitivity = sensitive.sensitivity
    match noise:
        case LaplaceNoise(scale):
            return LaplaceStep(price(scale)(sensitivity), scale), float(scale)
        case RandomisedResponse(truth, categories):
            if sensitive.categories != categories:
                raise InvalidParameter(
                    "sensitive", sensitive, f"one answer a record, out of {categories}"
                )
            return RandomisedResponse(truth, categories), 0.0
        case ExponentialMechanism(epsilon):
            if sensitive.each is None:
                raise InvalidParameter(
                    "sensitive",
                    sensitive,
                    "costs of candidates (PrivateTable.quantile_costs, "
                    "PrivateDataset.wrong_predictions)",
                )
            _require_whole(sensitive)
            # a cost and the sum of all weights move the log-density by as much
            loss = scaled(sensitive.each, 2)
            scale = float_up(loss.root / Fraction(epsilon))
            return PureStep(loss, scale), scale
        case DiscreteLaplaceNoise(scale):
            _require_whole(sensitive)
            return DiscreteLaplaceStep(sensitivity, scale), float(scale)
        case DiscreteGaussianNoise(noise_std):
            _require_whole(sensitive)
            return DiscreteGaussianStep(sensitivity, noise_std), float(noise_std)


def _require_whole(sensitive: Sensitive) -> None:
    if not sensitive.rounding.whole:
        raise InvalidParameter(
            "sensitive", sensitive, "of whole numbers by the rules that made it, as histograms are"
        )
