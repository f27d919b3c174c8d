"""ADMM sharing over features: parties hold columns of the same records (Hu, Liu, Ge et al. 2020).

The problem is min sum_i l(z_i, label_i) + (lambda/2) sum_m |x_m|²  subject to z = sum_m D_m x_m.
In each round every party pushes its part p_m of the records' scores, and the centre answers with
the dual variable y; all the rest is a function of these messages. A record is everybody's, so the
costs of all parties and of the centre add up.

Two algorithms:
  `SharingAdmm`           repaired: noise on D_m x_m in R^N; x_m from a ball, slopes cut to a bound
                          (`SharingModels`: and the models x_m at the end, for new records);
  `PublishedSharingAdmm`  as published: noise on x_m, then multiplied by the private D_m; y exact.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log, sqrt

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_open_unit,
    require_positive,
    require_positive_int,
)
from ..mechanisms.events import Audience
from ..mechanisms.protocols import FloatArray
from ..mechanisms.vertical_data import LabelLoss, LocalProblem, VerticalDataset, require_dual
from .losses import Logistic
from .opinion_pool import PoolState
from .solver import Observer

_STIFF = 2.0**30


@dataclass(frozen=True, slots=True)
class SharingState:
    """What is public after a round.

    Args:
        parts: the parties' p_m, what they add to the records' scores, of shape (..., M, N).
        split: z, of shape (..., N).
        dual: y, of shape (..., N).
    """

    parts: FloatArray
    split: FloatArray
    dual: FloatArray
    scores: FloatArray = field(init=False)
    """The records' scores, sum over parties of p_m, of shape (..., N)."""

    def __post_init__(self) -> None:
        # once a round: every party's step needs them
        object.__setattr__(self, "scores", self.parts.sum(axis=-2))


Push = Callable[[int, str, LocalProblem], FloatArray]
"""From round, party and problem to p_m of shape (..., N): how a party's part leaves."""

Answer = Callable[[int, FloatArray], FloatArray]
"""From round and target a = y + rho·scores to the new y, both of shape (..., N)."""


@dataclass(frozen=True, slots=True)
class SharingAdmm:
    """ADMM sharing, repaired: p_m = D_m x_m + noise in R^N, for all parties at once.

    x_m minimises (lambda/2)|x|² + <y + rho v_m, D_m x> + (rho/2)|D_m x|² over |x| <= radius, where
    v_m = sum of the others' p_k - z, and every |y_i + rho v_mi| is cut to `slope_bound`. The
    sensitivity of D_m x_m, under replace-one and for rows of norm 1, is
    sqrt((B + rho b)²/(rho lambda) + 4b²) + tau/sqrt(rho lambda). The centre's y moves by at most 1
    (logistic loss), unless labels are public: then it is free.

    Before the first round nothing is known, so the paper's x_m of that round is 0 and its release
    noise alone. With `opening` the centre first sends y at scores of 0, which tells what labels
    tell: for nothing where they are public. Then T may be 0, and a model is ridge regression on
    labels by each party for itself: the best there is where the noise of N scores drowns them.

    Args:
        rounds: T; 0 with `opening` only.
        noise_multiplier: noise_std / sensitivity of every p_m and of y; 0 is not private.
        penalty: rho.
        regularisation: lambda, on the scale of a sum over records.
        slope_bound: B.
        radius: b.
        tolerance: tau, of every x_m and every y_i; declared and priced.
        loss: l.
        opening: whether the centre sends y before the first round, as round 0.
    """

    rounds: int
    noise_multiplier: float
    penalty: float = 1.0
    regularisation: float = 0.1
    slope_bound: float = 1.0
    radius: float = 1.0
    tolerance: float = 1e-4
    loss: LabelLoss = field(default_factory=Logistic)
    opening: bool = False

    def __post_init__(self) -> None:
        if not (self.opening and type(self.rounds) is int and self.rounds == 0):
            require_positive_int("rounds", self.rounds)
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("penalty", self.penalty)
        require_positive("regularisation", self.regularisation)
        require_positive("slope_bound", self.slope_bound)
        require_positive("radius", self.radius)
        require_positive("tolerance", self.tolerance)
        require_dual(self.loss)

    def solve(
        self, dataset: VerticalDataset, curator: Curator, *, observe: Observer[SharingState] = None
    ) -> SharingState:
        """Run all rounds and return the last public state."""

        def push(t: int, party: str, problem: LocalProblem) -> FloatArray:
            return curator.release(
                dataset.predictions(party, problem),
                round=t,
                release=f"scores of {party}",
                noise_multiplier=self.noise_multiplier,
            )[..., 0, :]

        def answer(t: int, target: FloatArray) -> FloatArray:
            return curator.release(
                dataset.dual(self.loss, target, penalty=self.penalty, tolerance=self.tolerance),
                round=t,
                release="dual",
                audience=Audience.NEIGHBOURS,
                noise_multiplier=self.noise_multiplier,
            )[..., 0, :]

        dual = self._opening_dual(dataset, curator) if self.opening else 0.0
        return self.run(dataset, push, answer, observe, dual=dual)

    def _opening_dual(self, dataset: VerticalDataset, curator: Curator) -> FloatArray:
        """Return y of shape (..., N) at scores of 0, as it leaves."""
        # the centre's step under a penalty that keeps z at 0
        slopes = dataset.dual(
            self.loss, np.zeros(dataset.shape.count), penalty=_STIFF, tolerance=self.tolerance
        )
        return curator.release(
            slopes,
            round=0,
            release="dual",
            audience=Audience.NEIGHBOURS,
            noise_multiplier=self.noise_multiplier,
        )[..., 0, :]

    def run(
        self,
        dataset: VerticalDataset,
        push: Push,
        answer: Answer,
        observe: Observer[SharingState],
        *,
        dual: FloatArray | float = 0.0,
    ) -> SharingState:
        """Run all rounds from y, whatever leaves in `push` and `answer` (Algorithm 1)."""
        names, none = dataset.shape.parties, np.zeros(dataset.shape.count)
        state = SharingState(np.stack([none] * len(names)), none, none + dual)
        for t in range(1, self.rounds + 1):
            parts = np.stack(
                [push(t, name, self.local_problem(state, m)) for m, name in enumerate(names)],
                axis=-2,
            )
            target = state.dual + self.penalty * parts.sum(axis=-2)
            answered = answer(t, target)
            # the z that belongs to this y: the minimiser of (8) where y is exact
            state = SharingState(parts, (target - answered) / self.penalty, answered)
            if observe is not None:
                observe(t, state)
        return state

    def publish_models(
        self, dataset: VerticalDataset, curator: Curator, state: SharingState
    ) -> tuple[FloatArray, ...]:
        """Return a noisy x_m of shape (..., d_m) for each party: one more release of each.

        Scores are for the records at hand; a model serves new ones.
        """
        return tuple(
            curator.release(
                dataset.minimiser(name, self.local_problem(state, m)),
                round=self.rounds + 1,
                release=f"model of {name}",
                noise_multiplier=self.noise_multiplier,
            )[..., 0, :]
            for m, name in enumerate(dataset.shape.parties)
        )

    def local_problem(self, state: SharingState, party: int) -> LocalProblem:
        """Return the step of the party with this index (equation 6)."""
        others = state.scores - state.parts[..., party, :] - state.split
        return LocalProblem(
            pull=state.dual + self.penalty * others,
            penalty=self.penalty,
            modulus=self.regularisation,
            slope_bound=self.slope_bound,
            radius=self.radius,
            tolerance=self.tolerance,
        )


@dataclass(frozen=True, slots=True)
class SharingModels:
    """`SharingAdmm`, and then every party's coefficients: one more release of each.

    Args:
        algorithm: what runs before.
    """

    algorithm: SharingAdmm

    def solve(
        self, dataset: VerticalDataset, curator: Curator, *, observe: Observer[SharingState] = None
    ) -> PoolState:
        """Run all rounds and return the parties' models."""
        state = self.algorithm.solve(dataset, curator, observe=observe)
        return PoolState(self.algorithm.publish_models(dataset, curator, state))


@dataclass(frozen=True, slots=True)
class PublishedSharingAdmm:
    """ADMM sharing as published: x̃_m = x_m + noise, and D_m x̃_m is what leaves; y leaves exactly.

    D_m x̃_m lies in the column space of the private D_m, whatever the noise, so epsilon is infinite;
    and y_i = l'(z_i, label_i) tells the label, which is one more infinity unless labels are public.
    x̃_m stays with its party: its event says what the noise would be worth if it were what leaves.

    Args:
        algorithm: the repaired twin, whose noise_multiplier is not used. The paper has neither the
            ball nor the cut, and assumes that all iterates are bounded: choose them large.
        noise_std: of every coordinate of x_m; `published_parameter_noise` is the paper's.
    """

    algorithm: SharingAdmm
    noise_std: float

    def __post_init__(self) -> None:
        require_nonnegative("noise_std", self.noise_std)
        if self.algorithm.opening:
            raise InvalidParameter("algorithm.opening", True, "False, as published")

    def solve(
        self, dataset: VerticalDataset, curator: Curator, *, observe: Observer[SharingState] = None
    ) -> SharingState:
        """Run all rounds and return the last public state."""

        def push(t: int, party: str, problem: LocalProblem) -> FloatArray:
            local = curator.release(
                dataset.minimiser(party, problem),
                round=t,
                release=f"model of {party}, kept",
                noise_std=self.noise_std,
            )[..., 0, :]
            return curator.release_unprotected(
                dataset.scores(party, local),
                reason="noise in parameter space is multiplied by private features (equation 7)",
                round=t,
                release=f"scores of {party}",
            )[..., 0, :]

        def answer(t: int, target: FloatArray) -> FloatArray:
            dual = dataset.dual(
                self.algorithm.loss,
                target,
                penalty=self.algorithm.penalty,
                tolerance=self.algorithm.tolerance,
            )
            if dataset.shape.public_labels:
                return curator.release(
                    dual,
                    round=t,
                    release="dual",
                    audience=Audience.NEIGHBOURS,
                    noise_multiplier=0.0,
                )[..., 0, :]
            return curator.release_unprotected(
                dual,
                reason="the dual variable is the loss's slope, whose sign is the label (line 12)",
                round=t,
                release="dual",
                audience=Audience.NEIGHBOURS,
            )[..., 0, :]

        return self.algorithm.run(dataset, push, answer, observe)


def lemma_1_bound(
    *,
    features: int,
    parties: int,
    penalty: float,
    regularisation: float,
    curvature: float,
    size: float,
) -> float:
    """Return Lemma 1's C = (3/(d_m rho)) (lambda c_1 + (1 + M rho) b_1); it is no bound.

    Args:
        features: d_m, the party's number of columns.
        parties: M.
        penalty: rho.
        regularisation: lambda.
        curvature: c_1, sup |R''|.
        size: b_1, a bound on |x|, |y| and |z|.
    """
    require_positive_int("features", features)
    require_positive_int("parties", parties)
    require_positive("penalty", penalty)
    bracket = regularisation * curvature + (1.0 + parties * penalty) * size
    return 3.0 / (features * penalty) * bracket


def published_parameter_noise(bound: float, *, epsilon: float, delta: float) -> float:
    """Return sigma = sqrt(2 ln(1.25/delta)) C/epsilon (Theorem 1), for one release, epsilon <= 1.

    Args:
        bound: C of Lemma 1.
        epsilon: of one party's release in one round.
        delta: likewise.
    """
    require_nonnegative("bound", bound)
    require_positive("epsilon", epsilon)
    require_open_unit("delta", delta)
    return sqrt(2.0 * log(1.25 / delta)) * bound / epsilon
