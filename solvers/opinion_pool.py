"""A model of every party's own columns, log-odds added: vertical data without exchanged scores.

The problem is that of `sharing`: M parties hold columns of the same N records, and everybody knows
the labels. What a party could tell the others of one record is a score, and a release of N scores
has noise on each that does not shrink with N: at epsilon = 1, delta = 1e-5 it is at least seven
times the bound on a score. So no score leaves here. Every party descends on the mean loss of a
model of its own columns alone,

    l(log-odds of the labels + <D_m, x_m>),

by noisy mean gradients, d_m numbers each, whose noise falls as 1/N; and a new record's score is the
log-odds of the labels plus the sum over parties of <a_m, x_m>.

Were the parties' columns independent of each other given the label, that sum would be the log-odds
of the whole record (Bayes' rule: prior odds times one likelihood ratio a party). Columns that tell
the same count twice, which moves scores away from 0 more often than across it: the class is right
more often than the probability. Source: logarithmic opinion pools, Genest and Zidek (1986), with
the weights 1 of conditionally independent sources.

A record is everybody's, so the costs of all parties add up: M·T Gaussian steps.

>>> from dpledger.mechanisms import Adjacency, PlanningCurator, VerticalDataset, VerticalShape
>>> shape = VerticalShape(("bank", "shop"), 1000, (4, 7), 1.0, Adjacency.REPLACE_ONE, True)
>>> curator = PlanningCurator()
>>> solver = OpinionPool(2, 10.0, step_size=4.0)
>>> state = solver.solve(VerticalDataset.planned(shape), curator)
>>> [event.context.release for event in curator.events]
['gradient of bank', 'gradient of shop', 'gradient of bank', 'gradient of shop']
>>> [model.shape for model in state.models]
[(4,), (7,)]
"""

from dataclasses import dataclass, field

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_positive,
    require_positive_int,
)
from ..mechanisms.protocols import FloatArray, Loss
from ..mechanisms.vertical_data import VerticalDataset
from .losses import ClippedLogistic
from .solver import Observer


@dataclass(frozen=True, slots=True)
class PoolState:
    """What is public after a round.

    Args:
        models: every party's x_m, of shape (..., d_m).
    """

    models: tuple[FloatArray, ...]

    @property
    def model(self) -> FloatArray:
        """The coefficients of all parties' columns side by side, of shape (..., d)."""
        return np.concatenate(self.models, axis=-1)


@dataclass(frozen=True, slots=True)
class OpinionPool:
    """Logistic models of all parties' own columns, by accelerated noisy gradient descent.

    Every party takes T steps from 0. `opinion_pool_defaults` derives the settings from public
    facts.

    Args:
        rounds: T.
        noise_multiplier: noise_std / sensitivity of every gradient; 0 is not private.
        step_size: eta.
        momentum: beta in [0, 1): gradients are taken at x_k + beta (x_k - x_{k-1}).
        regularisation: lambda, in mean loss + (lambda/2)|x_m|².
        loss: l of a party's scores, which has the log-odds of public labels in it (`Shifted`).
    """

    rounds: int
    noise_multiplier: float
    step_size: float
    momentum: float = 0.0
    regularisation: float = 1e-7
    loss: Loss = field(default_factory=ClippedLogistic)

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("step_size", self.step_size)
        if not 0.0 <= self.momentum < 1.0:
            raise InvalidParameter("momentum", self.momentum, "in [0, 1)")
        require_nonnegative("regularisation", self.regularisation)

    def solve(
        self, dataset: VerticalDataset, curator: Curator, *, observe: Observer[PoolState] = None
    ) -> PoolState:
        """Run all rounds of all parties and return the last public state."""
        names, before = dataset.shape.parties, [np.zeros(d) for d in dataset.shape.features]
        here = before
        for k in range(1, self.rounds + 1):
            ahead = [x + self.momentum * (x - y) for x, y in zip(here, before, strict=True)]
            before, here = (
                here,
                [
                    self._step(dataset, curator, k, name, x)
                    for name, x in zip(names, ahead, strict=True)
                ],
            )
            if observe is not None:
                observe(k, PoolState(tuple(here)))
        return PoolState(tuple(here))

    def _step(
        self, dataset: VerticalDataset, curator: Curator, k: int, party: str, x: FloatArray
    ) -> FloatArray:
        """Return the party's next point after x."""
        gradient = curator.release(
            dataset.mean_gradient(party, self.loss, x),
            round=k,
            release=f"gradient of {party}",
            noise_multiplier=self.noise_multiplier,
        )[..., 0, :]
        return x - self.step_size * (gradient + self.regularisation * x)
