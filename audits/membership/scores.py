"""Scores of the membership game: from what a model answers to how likely it saw the target.

A score learns from shadow models, whose membership it is told, and is then applied to others. None
is trusted: a bad one costs power, never validity.

The gradient-norm score of a generalised linear model needs no class of its own: for one target the
norm |l'(score)|·|row| falls as the probability of its label rises, so it orders models exactly as
`LossThreshold` does.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import log_ndtr, logsumexp

from ...mechanisms.errors import InvalidParameter, require_positive
from ...mechanisms.protocols import FloatArray

_SMALLEST_STD = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What B models say of the target and of other records of the same population.

    Args:
        target: log-probability of the target's label, shape (B,).
        population: log-probabilities of the others' labels, shape (B, Z); Z may be 0.
        parameters: the models themselves, shape (B, m), or None where they cannot be seen.
    """

    target: FloatArray
    population: FloatArray
    parameters: FloatArray | None = None

    def __post_init__(self) -> None:
        trials = self.target.shape[0] if self.target.ndim == 1 else -1
        for name, array, ndim in (
            ("target", self.target, 1),
            ("population", self.population, 2),
            ("parameters", self.parameters, 2),
        ):
            if array is None:
                continue
            if array.ndim != ndim or array.shape[0] != trials:
                raise InvalidParameter(f"{name}.shape", array.shape, "one row a model")
            if not np.isfinite(array).all() or (name != "parameters" and (array > 0).any()):
                raise InvalidParameter(name, "infinite, NaN or positive", "log-probabilities")

    @property
    def confidence(self) -> FloatArray:
        """log p - log(1 - p) of the target's label: nearly normal where p is not.

        Source: Carlini, Chien, Nasr, Song, Terzis, Tramèr 2022, section IV-C.
        """
        # p = 1 in floating point stands for odds of the last place
        other = np.maximum(-np.expm1(self.target), np.finfo(float).eps)
        return np.asarray(self.target - np.log(other))


class MembershipScore(Protocol):
    """A way to score models; `learn` returns the function that does."""

    @property
    def name(self) -> str: ...

    def learn(self, inside: Answers, outside: Answers) -> "Scorer":
        """Return what scores further models, from shadow models with and without the target.

        Args:
            inside: answers of shadow models that were trained with the target.
            outside: answers of shadow models that were trained without it.
        """
        ...


class Scorer(Protocol):
    """Scores models, larger where they look more as if trained with the target."""

    def __call__(self, answers: Answers) -> FloatArray: ...


@dataclass(frozen=True, slots=True)
class LossThreshold:
    """The target's log-probability itself; learns nothing. Source: Yeom et al. 2018."""

    name: str = "loss threshold (Yeom)"

    def learn(self, inside: Answers, outside: Answers) -> Scorer:
        """Return the score."""
        return lambda answers: answers.target


@dataclass(frozen=True, slots=True)
class LiraOnline:
    """Likelihood ratio of two normal laws of the confidence. Source: Carlini et al. 2022."""

    name: str = "LiRA, online"

    def learn(self, inside: Answers, outside: Answers) -> Scorer:
        """Fit a normal law to the shadow models of each world."""
        laws = [_normal(world.confidence) for world in (inside, outside)]

        def score(answers: Answers) -> FloatArray:
            favour, against = (
                -(((answers.confidence - mean) / std) ** 2) / 2 - np.log(std) for mean, std in laws
            )
            return np.asarray(favour - against)

        return score


@dataclass(frozen=True, slots=True)
class LiraOffline:
    """How far above the models without the target the confidence lies: log P(below).

    Source: Carlini et al. 2022, section V-B. Shadow models with the target are not used.
    """

    name: str = "LiRA, offline"

    def learn(self, inside: Answers, outside: Answers) -> Scorer:
        """Fit a normal law to the shadow models without the target."""
        mean, std = _normal(outside.confidence)
        # -log P(above) orders as log P(below) does, without its saturation at the top
        return lambda answers: -log_ndtr((mean - answers.confidence) / std)


@dataclass(frozen=True, slots=True)
class Rmia:
    """The share of population records over which the target's probability rose by `gamma` more.

    The rise is over the mean probability in shadow models of both worlds.
    Source: Zarifzadeh, Liu, Shokri 2024.
    """

    gamma: float = 1.0
    name: str = "RMIA"

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma)

    def learn(self, inside: Answers, outside: Answers) -> Scorer:
        """Average the shadow models' probabilities; needs records of the population."""
        if outside.population.shape[1] == 0:
            raise InvalidParameter("population", 0, "at least one record for RMIA")
        worlds = (inside, outside)
        target = _log_mean(np.concatenate([world.target for world in worlds]))
        others = _log_mean(np.concatenate([world.population for world in worlds]))
        edge = np.log(self.gamma)

        def score(answers: Answers) -> FloatArray:
            rise = (answers.target - target)[:, None] - (answers.population - others)
            # the mean rise parts models with equal shares
            spread = np.tanh(rise.mean(axis=1)) / (2 * rise.shape[1] + 2)
            return np.asarray((rise >= edge).mean(axis=1) + spread)

        return score


@dataclass(frozen=True, slots=True)
class Fisher:
    """The linear score of the parameters that best parts the shadow models.

    Optimal when the parameters are normal with one covariance, as after Gaussian noise on linear
    steps. Source: Fisher 1936.
    """

    name: str = "Fisher score of the parameters"

    def learn(self, inside: Answers, outside: Answers) -> Scorer:
        """Estimate both means and the common covariance, a little shrunk to its diagonal."""
        first, second = _parameters(inside), _parameters(outside)
        middle = (first.mean(axis=0) + second.mean(axis=0)) / 2
        centred = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
        covariance = centred.T @ centred / max(1, centred.shape[0] - 2)
        # as many directions as models can be estimated; the rest leans on the diagonal
        shrink = min(1.0, covariance.shape[0] / centred.shape[0])
        diagonal = np.diag(np.maximum(np.diag(covariance), _SMALLEST_STD**2))
        mixed = (1 - shrink) * covariance + shrink * diagonal
        mixed += diagonal * 1e-9  # exact dependence among parameters leaves a covariance singular
        weights = np.linalg.solve(mixed, first.mean(axis=0) - second.mean(axis=0))
        return lambda answers: (_parameters(answers) - middle) @ weights


@dataclass(frozen=True, slots=True, eq=False)
class KnownDirection:
    """The parameters' coordinate along a direction that the attacker knows beforehand.

    Optimal where the last model is normal with one covariance and means apart along it, as that of
    a canary of constant gradient is (`worst_start.last_model`).

    Args:
        direction: of shape (m,).
    """

    direction: FloatArray
    name: str = "the canary's direction"

    def learn(self, inside: Answers, outside: Answers) -> Scorer:
        """Learn nothing: shadow models only show how far off all models are."""
        middle = (_parameters(inside).mean(axis=0) + _parameters(outside).mean(axis=0)) / 2
        return lambda answers: (_parameters(answers) - middle) @ self.direction


def _parameters(answers: Answers) -> FloatArray:
    """Return the models' parameters; raise `InvalidParameter` for a game in which an attacker sees
    none.
    """
    if answers.parameters is None:
        raise InvalidParameter("parameters", None, "visible for this score")
    return answers.parameters


def _normal(values: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation of shadow models' values, the latter kept away from
    zero.
    """
    if values.size < 2:
        raise InvalidParameter("shadow models", values.size, "at least 2 of each world")
    return float(values.mean()), max(float(values.std(ddof=1)), _SMALLEST_STD)


def _log_mean(values: FloatArray) -> FloatArray:
    """Return the log of the mean over models of exponentials, without overflow."""
    return np.asarray(logsumexp(values, axis=0) - np.log(values.shape[0]))
