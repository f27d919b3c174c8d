"""The answer without rows: the classes' noisy counts, told once, and a model that is a constant.

Where noise hides what rows tell, what is left to learn is which class is the larger one, and that
is one number: how many records more are +1 than -1. Replacing a record moves it by 2. For one
number Laplace noise is the better one: of scale 2/epsilon, against a Gaussian noise_std of 2/mu at
(epsilon, delta); at (0.05, 1e-5) its deviation is half as large. Each party sends its own number,
and they add up to that of all records, however these are divided.

The model is the log-odds of the share that is told, in a column that is constant. As many records
of either class as the noise's deviation are added to both: what is in doubt is told as less sure,
and no log-odds is infinite. (The number of records is the public one: of parties of which only the
least one's is public, that many each, and the answer is told as more sure, never another one.)

`classifier_defaults` chooses it by shape and target. Let s be the noise_std of the mean label that
the whole budget buys as Gaussian noise. Classes of 62 and 38 % have a mean of 1/4: above s = 1/8
that is within two deviations, before rows and their noise join it. And of d columns that are unlike
rows tell little from about s d = 2 on: the first gradient's cosine with the best score is
1/sqrt(1 + (s d/r)²) (see `defaults`), and a score that correlates by so much times r is right on
1/2 + asin(.)/pi of two equal classes: 57 % at r = 0.7. Where both hold, the constant is the answer:
right on more, unless classes are nearly equal. And so it is where s d is above eight, whatever s:
52 % is then less than what two classes of 55 and 45 % have.

>>> from dpledger.mechanisms import Adjacency, DataShape, PlanningCurator
>>> shape = DataShape(("a", "b"), count=40, features=3, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE)
>>> curator = PlanningCurator()
>>> _ = ClassShares(20.0, column=2).solve(PrivateDataset.planned(shape), curator)
>>> [(event.context.release, event.mechanism.scale) for event in curator.events]
[('class counts', 40.0)]
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from ..mechanisms.curators import Curator
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import InvalidParameter, Number, require_nonnegative, require_positive
from ..mechanisms.labels import SignLabels
from ..mechanisms.noise import LaplaceNoise
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sensitive import linear_map
from ..mechanisms.sensitivity import Norm, float_up
from .consensus import ConsensusDpAdmm
from .defaults import consensus_defaults, label_noise
from .solver import Observer

_HIDDEN_SHARE = 0.125
"""s above which Gaussian noise hides which class is larger: half the mean label of 62 and 38 %."""

_HIDDEN_ROWS = 2.0
"""s d above which rows tell little. On generated rows unequal classes gain 5 to 10 points from here
on, and equal ones lose 4, and less with every further column."""

_HIDDEN_ANYWAY = 8.0
"""s d above which rows tell less than half of that: by the formula above 52 % of two equal classes
are right at r = 0.7."""


@dataclass(frozen=True, slots=True)
class SharesState:
    """What is public after the release.

    Args:
        model: of shape (..., d), 0 but for the constant's column.
        messages: each party's records of class +1 less those of -1, noisy, of shape (..., P, 1).
    """

    model: FloatArray
    messages: FloatArray


@dataclass(frozen=True, slots=True)
class ClassShares:
    """The log-odds of two classes, from each party's count released once with Laplace noise.

    Args:
        noise_multiplier: scale / sensitivity: 1/epsilon; 0 is not private.
        column: index of the column that holds one public number in every row.
        constant: that number, in units of the row bound.
    """

    noise_multiplier: float
    column: int
    constant: float = sqrt(0.5)

    def __post_init__(self) -> None:
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("constant", self.constant)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[SharesState] = None
    ) -> SharesState:
        """Release every party's count and return the public state.

        Raises `InvalidParameter` for labels that are no signs, or a column that there is not.
        """
        shape = dataset.shape
        if not isinstance(shape.label_domain, SignLabels):
            raise InvalidParameter("label_domain", shape.label_domain, "SignLabels")
        if not 0 <= self.column < shape.features:
            raise InvalidParameter("column", self.column, f"in [0, {shape.features - 1}]")
        counts = dataset.histogram([0.0], norm=Norm.L1)
        more = linear_map(np.array([[-1.0, 1.0]]), counts)
        scale = float_up(self.noise_multiplier * more.sensitivity.root)
        messages = curator.release(
            more, round=1, release="class counts", mechanism=LaplaceNoise(scale)
        )
        parties, records = len(shape.parties), float(sum(shape.counts))
        total = curator.collectives.mean(messages)[..., 0] * parties
        doubt = scale * sqrt(2.0 * parties)
        told = np.clip(total, -records, records) / (records + 2.0 * doubt)
        model = np.zeros((*told.shape, shape.features))
        model[..., self.column] = 2.0 * np.arctanh(told) / (self.constant * shape.row_bound)
        state = SharesState(model, messages)
        if observe is not None:
            observe(1, state)
        return state


def classifier_defaults(
    shape: DataShape,
    *,
    epsilon: Number,
    delta: Number,
    column: int | None = None,
    rounds: int | None = None,
    regularisation: float = 1e-6,
) -> ConsensusDpAdmm | ClassShares:
    """Return `ClassShares` where noise hides rows and classes, and else `consensus_defaults`.

    Of two classes, and where neither rounds are given nor a column with a constant is missing.

    Args: as of `consensus_defaults`, with noise per party.
    """
    two_classes = isinstance(shape.label_domain, SignLabels)
    if two_classes and column is not None and rounds is None:
        noise_std = label_noise(shape, epsilon=epsilon, delta=delta)
        hidden = noise_std * shape.features
        if hidden > _HIDDEN_ANYWAY or (noise_std > _HIDDEN_SHARE and hidden > _HIDDEN_ROWS):
            return ClassShares(1.0 / float(epsilon), column)
    return consensus_defaults(
        shape,
        epsilon=epsilon,
        delta=delta,
        column=column,
        rounds=rounds,
        regularisation=regularisation,
    )
