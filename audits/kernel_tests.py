"""Is a black box's claim false? A bet on a function of its outputs that is learned while betting.

No run is set aside to learn a score from: after every chunk of runs the next chunk's function is
chosen from all runs before, and wealth is bet on it. It is the positive part of a witness function,
the difference of two kernel mean embeddings,

    w(z) = mean_i k(x_i, z) - e^epsilon mean_i k(y_i, z),    f(z) = min(1, max(0, w(z))/scale),

of the outputs x on D and y on D' so far: large where D' explains an output too badly. k is a sum of
Gaussian kernels, by random Fourier features (Rahimi, Recht 2007), so that a run costs the same
however many came before.

*Why wealth is a supermartingale under the claim.* Let F be what was seen before a chunk, f any
function into [0, 1] that F decides, and (epsilon, delta) a point of the claim. Then, for the
independent next runs x on D and y on D',

    E[f(x) | F] - e^epsilon E[f(y) | F] = integral over s in [0, 1] of
                                          P(f(x) > s | F) - e^epsilon P(f(y) > s | F)  <=  delta,

as each event {f > s} is one of the definition of (epsilon, delta)-DP. So the payoff
g = f(x) - e^epsilon f(y) - delta has E[g | F] <= 0 and g >= -(e^epsilon + delta). For a stake l in
[0, 1/(e^epsilon + delta)) the factor 1 + l g is positive, and E[1 + l g | F] <= 1. Wealth, the
product of the factors, is nonnegative and does not grow on average; nor does the mean of several
such wealths with weights fixed beforehand, over both orders of (D, D'), points of the claim and
stakes. By Ville's inequality the mean ever reaches 1/a with probability at most a. Nothing was
asked of f: a bad kernel costs power only.

Source: Shekhar, Ramdas 2021 (two-sample tests by betting on witness functions); Gonzalez et al.
2025 (arXiv:2509.07055, kernel tests of privacy by betting). The function, the stakes and the points
of the claim are chosen here.

>>> from dpledger.accounting.numbers.notions import Gdp
>>> generator = np.random.default_rng(1)
>>> def runs(shift, chunks=40):
...     for _ in range(chunks):
...         yield generator.normal(size=(50, 2)), generator.normal(size=(50, 2)) + shift
>>> test = KernelTest(Gdp(1), confidence=0.95, seed=3)
>>> test.run(runs(1.4)).refuted_after is None  # 2.0 standard deviations apart
False
>>> test.run(runs(0.7)).refuted_after is None  # 0.99 standard deviations apart
True
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import exp, log, sqrt

import numpy as np

from ..accounting.numbers.notions import ApproxDp
from ..mechanisms.errors import InvalidParameter, require_nonnegative, require_open_unit
from ..mechanisms.protocols import FloatArray
from .sequential import Claim, implied_delta, mu_of_claim

_FEATURES = 64
"""Random Fourier features of each length scale; half of them cosines, half sines."""
_LENGTHS = (0.4, 1.0, 2.5)
"""Length scales of the kernels, in units of an output's spread times the root of its dimension."""
_POINTS = (0.0, 0.5, 1.0)
"""Points of the claim that are bet against, as parts of the largest epsilon: small ones need fewer
runs, the largest sees what only tails show."""
_STAKES = 0.99 * 0.5 ** np.arange(7)
"""As parts of the largest stake; all get the same share of the initial wealth."""
_SCALES = (0.25, 0.05)
"""Of the witness's largest past value: where its positive part becomes 1."""
_ROUNDING = 1e-12
"""What rounding can add to the logarithm of wealth in one pair, with much to spare."""
_FAR = 8.0
"""Outputs are cut this many spreads from the middle, where a Gaussian kernel sees nothing."""


@dataclass(frozen=True, slots=True)
class KernelEvidence:
    """What the pairs of runs so far say against the claim.

    Args:
        pairs: that were bet upon.
        largest: the largest logarithm of wealth ever held, at least 0.
        refuted_after: pairs after which the claim was refuted; None if it was not, which is no
            evidence for the claim.
    """

    pairs: int
    largest: float
    refuted_after: int | None

    @property
    def p_value(self) -> float:
        """At most this probability of so much wealth, at any time, if the claim is true."""
        return min(1.0, exp(-self.largest))


@dataclass(frozen=True, slots=True)
class KernelTest:
    """Tests a claim by betting on kernel witnesses.

    Refutes a true claim with probability at most 1 - confidence, ever.

    Args:
        claim: mu-GDP, a point of a privacy curve, or all of it.
        confidence: in (0, 1).
        seed: of the random features; drawn before any run is seen.
    """

    claim: Claim
    confidence: float
    seed: int

    def __post_init__(self) -> None:
        require_open_unit("confidence", self.confidence)
        require_nonnegative("seed", self.seed)

    def run(self, chunks: Iterable[tuple[FloatArray, FloatArray]]) -> KernelEvidence:
        """Return the evidence of chunks of outputs, taking no more of them once it refutes.

        Args:
            chunks: outputs on D and on D', shape (size, m) each, of independent runs. The first
                chunk is not bet upon: it teaches the first witness.

        Raises `InvalidParameter` for worlds of different shapes.
        """
        points = [
            (epsilon, min(1.0, implied_delta(self.claim, epsilon))) for epsilon in self._epsilons
        ]
        features: _Features | None = None
        wealths: list[_Wealth] = []
        pairs, largest, goal = 0, 0.0, -log(1 - self.confidence)
        for dataset, neighbour in chunks:
            if dataset.ndim != 2 or dataset.shape != neighbour.shape:
                raise InvalidParameter(
                    "outputs.shape", neighbour.shape, f"{dataset.shape}, as on D"
                )
            if features is None:
                pooled = np.concatenate([dataset, neighbour])
                features = _Features.of(pooled, np.random.default_rng(self.seed))
                wealths = [
                    _Wealth(epsilon, delta, scale, swapped, np.zeros(features.size))
                    for epsilon, delta in points
                    for scale in _SCALES
                    for swapped in (False, True)
                ]
            seen = features(dataset), features(neighbour)
            paths = [wealth.bet(*seen) for wealth in wealths if wealth.taught]
            for wealth in wealths:
                wealth.learn(*seen)
            if not paths:
                continue
            total = _mean_of_exponentials(np.concatenate(paths, axis=1)) - _ROUNDING
            reached = total >= goal
            last = int(np.argmax(reached)) if reached.any() else total.size - 1
            pairs += last + 1
            largest = max(largest, float(total[: last + 1].max()))
            if reached.any():
                return KernelEvidence(pairs, largest, pairs)
        return KernelEvidence(pairs, largest, None)

    @property
    def _epsilons(self) -> list[float]:
        """The epsilons of the claim that are bet against."""
        claim = self.claim
        most = float(claim.epsilon) if isinstance(claim, ApproxDp) else mu_of_claim(claim)
        return sorted({part * most for part in _POINTS})


def _mean_of_exponentials(paths: FloatArray) -> FloatArray:
    """Return log(mean(exp(paths))) over the columns, shape (N,)."""
    top = paths.max(axis=1)
    return np.asarray(top + np.log(np.mean(np.exp(paths - top[:, None]), axis=1)))


@dataclass(frozen=True, slots=True, eq=False)
class _Features:
    """Random Fourier features: their inner product is a sum of Gaussian kernels, on average."""

    middle: FloatArray
    spread: FloatArray
    frequencies: FloatArray

    @classmethod
    def of(cls, outputs: FloatArray, generator: np.random.Generator) -> "_Features":
        """Return features for outputs like these, shape (N, m)."""
        low, middle, high = np.quantile(outputs, [0.25, 0.5, 0.75], axis=0)
        deviation = outputs.std(axis=0)
        spread = np.where(high > low, (high - low) / 1.35, np.where(deviation > 0, deviation, 1.0))
        lengths = np.repeat(_LENGTHS, _FEATURES // 2) * sqrt(outputs.shape[1])
        drawn = generator.normal(size=(outputs.shape[1], lengths.size))
        return cls(middle, spread, drawn / lengths)

    @property
    def size(self) -> int:
        """The number of features."""
        return 2 * int(self.frequencies.shape[1])

    def __call__(self, outputs: FloatArray) -> FloatArray:
        """Return the features of outputs, shape (N, size), of norm 1 each."""
        near = np.clip((outputs - self.middle) / self.spread, -_FAR, _FAR)
        angles = near @ self.frequencies
        both = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        return np.asarray(both / sqrt(self.frequencies.shape[1]))


@dataclass(slots=True, eq=False)
class _Wealth:
    """Wealth of one point of the claim, one order of the data sets and one scale, by stakes.

    Args:
        epsilon, delta: the point; delta rounded up.
        scale: part of the largest past value of the witness at which its positive part is 1.
        swapped: whether D' takes the place of D.
        embedding: sum over runs so far of features on D minus e^epsilon of those on D'.
        largest: past value of the witness; 0 before anything was learned.
        logarithms: of the wealths, one a stake.
    """

    epsilon: float
    delta: float
    scale: float
    swapped: bool
    embedding: FloatArray
    count: int = 0
    largest: float = 0.0
    logarithms: FloatArray = field(default_factory=lambda: np.zeros(_STAKES.size))

    @property
    def taught(self) -> bool:
        """Whether there is a witness to bet on."""
        return self.count > 0

    def bet(self, dataset: FloatArray, neighbour: FloatArray) -> FloatArray:
        """Return the logarithms of wealth after each pair of a chunk, shape (N, stakes)."""
        if self.swapped:
            dataset, neighbour = neighbour, dataset
        payoffs = (
            self._function(dataset) - exp(self.epsilon) * self._function(neighbour) - self.delta
        )
        stakes = _STAKES / (exp(self.epsilon) + self.delta)
        growth = np.log1p(np.outer(payoffs, stakes)) - _ROUNDING
        paths = self.logarithms + np.cumsum(growth, axis=0)
        self.logarithms = paths[-1]
        return np.asarray(paths)

    def _function(self, features: FloatArray) -> FloatArray:
        """Return f in [0, 1] at outputs with these features, decided by earlier chunks."""
        if self.largest <= 0.0:
            return np.zeros(len(features))
        witness = features @ (self.embedding / self.count)
        return np.asarray(np.clip(witness / (self.scale * self.largest), 0.0, 1.0))

    def learn(self, dataset: FloatArray, neighbour: FloatArray) -> None:
        """Add a chunk to the embedding; the next chunk's function rests on it."""
        if self.swapped:
            dataset, neighbour = neighbour, dataset
        self.embedding += dataset.sum(axis=0) - exp(self.epsilon) * neighbour.sum(axis=0)
        self.count += len(dataset)
        self.largest = float(np.max(dataset @ (self.embedding / self.count), initial=0.0))
