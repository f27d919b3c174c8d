"""Star ADMM whose agents' steps are taken at the consensus: ADMM that may be accelerated publicly.

The problem is that of `star`: min over w_i = w of the mean over parties of mean_j l(<a_ij, w_i>,
b_ij) + regularisation·R(w_i). Huang et al. (2020) linearise each agent's loss at the agent's own
noisy point. Linearised at a public consensus point v instead, an agent's step is

    w_i = v + (gamma_i - g_i(v) - regularisation·R'(v))/(rho + 1/eta)

and after every server step the duals gamma_i sum to zero. So the model moves by the mean of the
noisy gradients, with step size 1/(rho + 1/eta): the duals tell where each agent would like to be,
and cancel in the model. What a party sends, w_i plus noise, is a public affine map of its noisy
gradient, which is what is released here. All else is post-processing of public numbers: the point v
may be extrapolated (momentum; Nesterov 2004, section 2.2), and iterates may be averaged.

A run may buy a metric (`Centring`): rows share one long direction, their mean, and so does every
gradient. The noisy mean row, released once, is taken off every row, and what is left is cut to a
smaller radius: every later release has a smaller sensitivity, and steps are taken in coordinates in
which the loss bends about equally in all directions. Its noise is known, so that it is shrunk by
the positive part of James and Stein (1961) first: where noise hides it, hardly anything is taken
off. With `scaling` the noisy mean squares of what is left are bought as well, and columns scaled to
equal ones. With `stretching` nothing more is bought: since no row is above its bound, a long mean
row leaves little to differ from it, by so much at most: mean |a - m|² = mean |a|² - |m|². Where
that is below the radius, what is left is stretched to it. Where the noise of the mean row is too
long for that, steps may be longer instead (`Centring.longer`): rows that are alike have scores that
noise moves alike. And what stands for the constant may be less (`Centring.standing`): rows less a
mean row that errs have its error in common. The model is linear in the rows as they were, because
one of their columns holds a public constant that carries the intercept.

Where the data have public `party_counts`, parties count by their records: each sends its mean
gradient times its number of records over the least one's.

>>> from dpledger.mechanisms import Adjacency, DataShape, PlanningCurator, PrivateDataset
>>> shape = DataShape(("a", "b"), count=400, features=3, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE)
>>> curator = PlanningCurator()
>>> solver = ConsensusDpAdmm(3, 10.0, step_size=8.0, momentum=0.5, metric=Centring(column=2))
>>> _ = solver.solve(PrivateDataset.planned(shape), curator)
>>> [event.context.release for event in curator.events]
['mean row', 'gradient', 'gradient', 'gradient']
"""

from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from math import sqrt
from typing import Protocol

import numpy as np

from ..mechanisms.centred import LARGEST_SCALE, CentredRows
from ..mechanisms.clipping import project_to_ball
from ..mechanisms.curators import Curator
from ..mechanisms.errors import (
    InvalidParameter,
    require_nonnegative,
    require_positive,
    require_positive_int,
)
from ..mechanisms.labels import LabelDomain
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray, Loss
from ..mechanisms.sensitive import Sensitive
from .losses import ClippedLogistic
from .regularisers import L2, Regulariser
from .schedules import noise_weights
from .solver import Observer, require_start, starting_model


class Output(Enum):
    """Which of the public iterates is the model."""

    LAST = "last"
    AVERAGE = "average"
    """Over all rounds: what Theorems 3 and 4 of Huang et al. (2020) bound."""
    TAIL = "tail"
    """Over the second half of the rounds, as of Rakhlin, Shamir and Sridharan (2012)."""


_LEAST_LEFT = 0.04
"""Of rows' mean square less the constant's: their least mean square about their mean."""


@dataclass(frozen=True, slots=True)
class Centring:
    """The noisy mean row, bought once, and rows less it, their columns scaled if so wished.

    Columns are scaled to equal mean squares, those that noise hides to that of the noise, so that
    the root of a row's mean square is the radius: about half of the rows are cut.

    Args:
        column: index of the column that holds one public number in every row (if it does not, the
            guarantee stands and the model suffers).
        share: of the run's budget (in rho, or in mu²) that the mean row takes, and with it the
            mean squares, half each; in [0, 1). At 0 nothing is bought, and only the constant, which
            is known, is taken off.
        radius: to which centred rows are cut, in units of the row bound.
        constant: the public number in the column, in units of the row bound.
        intercept: what stands for it in centred rows, in units of the row bound.
        scaling: whether to buy mean squares and to scale columns.
        stretching: whether rows less the mean row are stretched, all columns alike, where it shows
            that they are shorter than the radius; only where columns are not scaled.
        longest: by how much steps may be longer where rows, stretched and cut, differ by less than
            the radius, >= 1; with stretching.
        least: to which the intercept falls where rows less a noisy mean row have a mean of their
            own, which stands for a constant as well; with stretching. None for the intercept.
        hiding: h >= 1, by which steps are shorter than rows that are alike ask for; with
            stretching.
    """

    column: int
    share: float = 0.08
    radius: float = 0.45
    constant: float = sqrt(0.5)
    intercept: float = 0.15
    scaling: bool = False
    stretching: bool = False
    longest: float = 1.0
    least: float | None = None
    hiding: float = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.column, bool) or not isinstance(self.column, int):
            raise InvalidParameter("column", self.column, "an index")
        if not 0.0 <= self.share < 1.0 or (self.scaling and self.share == 0.0):
            raise InvalidParameter("share", self.share, "in [0, 1), and above 0 with scaling")
        if self.stretching and (self.scaling or self.share == 0.0):
            raise InvalidParameter("stretching", True, "False with scaling, or with a share of 0")
        require_positive("longest", self.longest)
        if self.longest < 1.0 or (self.longest > 1.0 and not self.stretching):
            raise InvalidParameter("longest", self.longest, "1, or above it with stretching")
        require_positive("hiding", self.hiding)
        if self.hiding < 1.0 or (self.hiding > 1.0 and not self.stretching):
            raise InvalidParameter("hiding", self.hiding, "1, or above it with stretching")
        require_positive("radius", self.radius)
        require_positive("constant", self.constant)
        require_positive("intercept", self.intercept)
        if self.constant >= 1.0:
            raise InvalidParameter("constant", self.constant, "in (0, 1)")
        if self.intercept > 1.0:
            raise InvalidParameter("intercept", self.intercept, "in (0, 1]")
        if self.least is not None:
            require_positive("least", self.least)
            if self.least > self.intercept or not self.stretching:
                expected = f"at most intercept={self.intercept}, with stretching"
                raise InvalidParameter("least", self.least, expected)

    @property
    def _largest_factor(self) -> float:
        """The largest factor of a column, a hair below what `CentredRows` takes in any units."""
        return LARGEST_SCALE * self.radius * (1.0 - 2.0**-50)

    def noise_multiplier(self, per_round: float, rounds: int) -> float:
        """Return that of each purchase, which take the share beside `rounds` rounds of theirs."""
        purchases = 2.0 if self.scaling else 1.0
        return per_round * sqrt(purchases * (1.0 - self.share) / (self.share * rounds))

    def scale(self, squares: FloatArray, floor: float, row_bound: float) -> FloatArray:
        """Return the columns' factors (..., d), given noisy mean squares and their noise."""
        seen = np.maximum(squares, max(floor, 2.0**-60 * row_bound**2))
        factors = 1.0 / np.sqrt(seen)
        others = np.arange(squares.shape[-1]) != self.column
        length = np.sqrt((np.where(others, np.maximum(squares, 0.0), 0.0) / seen).sum(axis=-1))
        # a run without any signal has no length to divide by
        factors *= (self.radius * row_bound / np.maximum(length, 1.0))[..., None]
        factors[..., self.column] = 1.0
        return np.minimum(factors, self._largest_factor)

    def standing(
        self, seen: FloatArray, noise_std: float, row_bound: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return what stands for the constant in centred rows, in units of rows, and by what factor
        rows are longer then so that both fill the radius; both of shape (...).

        The shrunk mean row errs, and rows less it have that error in common, which the descent uses
        as it does a constant. So the intercept's square is less by the error's, and not below that
        of `least`.

        Args:
            seen, noise_std, row_bound: as of `stretch`.
        """
        least = self.intercept if self.least is None else self.least
        _, _, wrong = self._squares(seen, noise_std, row_bound)
        squared = np.maximum(self.intercept**2 - wrong / row_bound**2, least**2)
        factor = np.maximum(1.0, self.radius / np.sqrt(self._own**2 + squared))
        return factor * np.sqrt(squared) * row_bound, factor

    def longer(
        self, seen: FloatArray, noise_std: float, row_bound: float, stretch: FloatArray
    ) -> FloatArray:
        """Return by what factor steps are longer, of shape (..., 1), in [1, longest].

        Rows differ from their mean by what the bound leaves beside |mean|², a 25th of it at least
        (below, differences are not told from the doubt about |mean|²), times the stretch; and are
        cut by what the shrunk mean row errs besides. Of rows that differ by a part of what they
        might, noise hides the less: h² - 1 counts directions, and falls by that part.

        Args:
            seen, noise_std, row_bound: as of `stretch`.
            stretch: what it returned.
        """
        whole = (1.0 - self.constant**2) * row_bound**2
        squared, _, wrong = self._squares(seen, noise_std, row_bound)
        left = np.clip(whole - squared, _LEAST_LEFT * whole, whole)
        factor = np.delete(stretch, self.column, axis=-1).max(axis=-1)
        own = self._own * row_bound * self.standing(seen, noise_std, row_bound)[1]
        cut = np.minimum(1.0, own / (factor * np.sqrt(left + wrong)))
        found = own / (factor * np.sqrt(left) * cut)
        found = found * self.hiding / np.sqrt(1.0 + (self.hiding**2 - 1.0) * left / whole)
        return np.asarray(np.clip(found, 1.0, self.longest))[..., None]

    @property
    def _own(self) -> float:
        """The radius beside the intercept, in units of the row bound."""
        return sqrt(max(self.radius**2 - self.intercept**2, 0.0))

    def _squares(
        self, seen: FloatArray, noise_std: float, row_bound: float
    ) -> tuple[FloatArray, float, FloatArray]:
        """Return |mean row|², the noise's and the shrunk mean row's squared error."""
        error = (seen.shape[-1] - 1) * noise_std**2
        squared = np.maximum((seen**2).sum(axis=-1) - error, 0.0)
        wrong = squared * error / np.maximum(squared + error, 2.0**-60 * row_bound**2)
        return squared, error, wrong

    def stretch(self, seen: FloatArray, noise_std: float, row_bound: float) -> FloatArray:
        """Return the columns' factors (..., d), alike but for the constant's, that make rows less
        the mean row as long as the radius: never below one.

        The length is the root of what their mean square can be: what the bound leaves beside
        |mean|², or the standard deviation of that where it is more, and the centre's own error, for
        which stands the noise of all its entries, though it was shrunk.

        Args:
            seen: the noisy mean row, of shape (..., d), 0 in the constant's column.
            noise_std: of an entry.
            row_bound: of rows, the constant's column among them.
        """
        squared, error, _ = self._squares(seen, noise_std, row_bound)
        doubt = np.sqrt(4.0 * squared + 2.0 * error) * noise_std + 2.0**-20 * row_bound**2
        left = np.maximum((1.0 - self.constant**2) * row_bound**2 - squared, doubt)
        length = np.sqrt(left + error)
        filling = self.standing(seen, noise_std, row_bound)[1]
        factors = filling * np.maximum(1.0, self._own * row_bound / length)
        factors = np.minimum(factors, self._largest_factor)
        found = np.where(np.arange(seen.shape[-1]) == self.column, 1.0, factors[..., None])
        return np.asarray(found)


@dataclass(frozen=True, slots=True)
class ConsensusState:
    """What is public after a round.

    Args:
        model: the chosen output so far, of shape (..., d).
        last: the server's w, of shape (..., d).
        average: of the last w of all rounds, of shape (..., d).
        tail: of the rounds in the second half (until there, the last w), of shape (..., d).
        messages: the parties' noisy gradients, of shape (..., P, d).
    """

    model: FloatArray
    last: FloatArray
    average: FloatArray
    tail: FloatArray
    messages: FloatArray


class _Coordinates(Protocol):
    """What the iterates v are coordinates of, and by how much steps are longer in them."""

    @property
    def longer(self) -> FloatArray | float: ...

    def gradient(self, loss: Loss, v: FloatArray, weights: FloatArray | None) -> Sensitive:
        """Return each party's mean gradient at v of shape (..., d)."""
        ...

    def model(self, v: FloatArray) -> FloatArray:
        """Return the model of rows as they were."""
        ...

    def of_model(self, w: FloatArray) -> FloatArray:
        """Return the coordinates of a model."""
        ...

    def pulled(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient by v of what has this gradient by the model."""
        ...


@dataclass(frozen=True, slots=True)
class _Plain:
    """Those of the model itself."""

    dataset: PrivateDataset
    longer: float = 1.0

    def gradient(self, loss: Loss, v: FloatArray, weights: FloatArray | None) -> Sensitive:
        return self.dataset.mean_gradient(loss, v[..., None, :], weights=weights)

    def model(self, v: FloatArray) -> FloatArray:
        return v

    def of_model(self, w: FloatArray) -> FloatArray:
        return w

    def pulled(self, gradient: FloatArray) -> FloatArray:
        return gradient


@dataclass(frozen=True, slots=True)
class _Centred:
    """Those of a model of centred rows: <scale·(a - centre), v> = <a, w>.

    So w is scale·v but for the entry of the column, which carries what the centre takes off.

    Args:
        rows: less the centre, scaled.
        centre: of shape (..., d).
        scale: of shape (..., d).
        column: of the constant.
        constant: in the column of every row.
        longer: of shape (..., 1).
    """

    rows: CentredRows
    centre: FloatArray
    scale: FloatArray
    column: int
    constant: float
    longer: FloatArray | float = 1.0

    def gradient(self, loss: Loss, v: FloatArray, weights: FloatArray | None) -> Sensitive:
        return self.rows.mean_gradient(loss, v[..., None, :], weights=weights)

    def model(self, v: FloatArray) -> FloatArray:
        matrix = self._matrix(v) * self.scale[..., None]
        matrix[..., self.column, :] -= self._along_centre(matrix) / self.constant
        return matrix.reshape(*matrix.shape[:-2], -1)

    def of_model(self, w: FloatArray) -> FloatArray:
        matrix = self._matrix(w)
        shift = self._along_centre(matrix)
        lead = np.broadcast_shapes(matrix.shape[:-2], self.centre.shape[:-1])
        moved = np.broadcast_to(matrix, (*lead, *matrix.shape[-2:])).copy()
        # u = scale·v: <centre, u> = <centre, w> + c_j (u_j - w_j), u_j = w_j + <centre, u>/constant
        own = self.centre[..., self.column, None]
        moved[..., self.column, :] += shift / (self.constant - own)
        moved /= self.scale[..., None]
        return moved.reshape(*lead, -1)

    def pulled(self, gradient: FloatArray) -> FloatArray:
        matrix = self._matrix(gradient)
        own = matrix[..., self.column, None, :] / self.constant
        pulled = (matrix - self.centre[..., None] * own) * self.scale[..., None]
        return np.asarray(pulled.reshape(*pulled.shape[:-2], -1))

    def _matrix(self, w: FloatArray) -> FloatArray:
        return w.reshape(*w.shape[:-1], self.centre.shape[-1], -1)

    def _along_centre(self, matrix: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("...d,...dk->...k", self.centre, matrix))


@dataclass(frozen=True, slots=True)
class ConsensusDpAdmm:
    """Star DP-ADMM linearised at the consensus, with public momentum and a private metric.

    Every round costs 1/noise_multiplier² in mu², the metric its share of the whole; steps, momentum
    and outputs cost nothing.

    Args:
        rounds: T.
        noise_multiplier: noise_std / sensitivity of a round; 0 is not private, priced at infinity.
        step_size: 1/(rho + 1/eta), before a metric makes it longer.
        momentum: beta in [0, 1): v = w_k + beta (w_k - w_{k-1}).
        metric: what is bought of the rows' geometry; None for nothing.
        start: the public model to start from, of d·K numbers; empty for 0.
        output: which iterate is the model.
        regularisation: λ/n, the weight of the regulariser in each party's objective.
        regulariser: R; a public function of public iterates.
        loss: l.
    """

    rounds: int
    noise_multiplier: float
    step_size: float
    momentum: float = 0.0
    metric: Centring | None = None
    start: tuple[float, ...] = ()
    output: Output = Output.LAST
    regularisation: float = 1e-6
    regulariser: Regulariser = field(default_factory=L2)
    loss: Loss = field(default_factory=ClippedLogistic)

    def __post_init__(self) -> None:
        require_positive_int("rounds", self.rounds)
        require_nonnegative("noise_multiplier", self.noise_multiplier)
        require_positive("step_size", self.step_size)
        if not 0.0 <= self.momentum < 1.0:
            raise InvalidParameter("momentum", self.momentum, "in [0, 1)")
        require_nonnegative("regularisation", self.regularisation)
        if not isinstance(self.output, Output):
            raise InvalidParameter("output", self.output, "an Output")
        require_start(self.start)

    def solve(
        self, dataset: PrivateDataset, curator: Curator, *, observe: Observer[ConsensusState] = None
    ) -> ConsensusState:
        """Run all rounds and return the last public state."""
        dataset.shape.gradient_bound(self.loss)  # refuses a loss for other labels
        origin, weights = starting_model(self.start, dataset.shape.parameters(self.loss)), None
        if len(set(dataset.shape.counts)) > 1:
            weights = noise_weights(dataset.shape.mean_sensitivities(self.loss))
        space = self._coordinates(dataset, curator, weights)
        before = here = space.of_model(origin)
        state = ConsensusState(origin, origin, origin, origin, np.zeros(0))
        for k in range(1, self.rounds + 1):
            ahead = here + self.momentum * (here - before)
            messages = curator.release(
                space.gradient(self.loss, ahead, weights),
                round=k,
                release="gradient",
                noise_multiplier=self.noise_multiplier,
            )
            pull = self.regulariser.gradient(space.model(ahead))
            slope = curator.collectives.mean(messages, weights)
            slope = slope + self.regularisation * space.pulled(pull)
            before, here = here, ahead - self.step_size * space.longer * slope
            state = self._after(k, state, space.model(here), messages)
            if observe is not None:
                observe(k, state)
        return state

    def _after(
        self, k: int, state: ConsensusState, last: FloatArray, messages: FloatArray
    ) -> ConsensusState:
        """Return the state after round k, whose consensus is `last`."""
        average = last if k == 1 else state.average + (last - state.average) / k
        inside = k - self.rounds // 2  # rounds of the second half so far
        tail = last if inside <= 1 else state.tail + (last - state.tail) / inside
        model = {Output.LAST: last, Output.AVERAGE: average, Output.TAIL: tail}[self.output]
        return ConsensusState(model, last, average, tail, messages)

    def _coordinates(
        self, dataset: PrivateDataset, curator: Curator, weights: FloatArray | None
    ) -> _Coordinates:
        """Return the model's own coordinates, or buy better ones."""
        metric, shape = self.metric, dataset.shape
        if metric is None:
            return _Plain(dataset)
        if not 0 <= metric.column < shape.features:
            raise InvalidParameter("column", metric.column, f"in [0, {shape.features - 1}]")
        bound, known = shape.row_bound, np.zeros(shape.features)
        known[metric.column] = metric.constant * bound

        def bought(sensitive: Sensitive, release: str) -> FloatArray:
            multiplier = metric.noise_multiplier(self.noise_multiplier, self.rounds)
            messages = curator.release(
                sensitive, round=0, release=release, noise_multiplier=multiplier
            )
            return curator.collectives.mean(messages, weights)

        rest = (metric.constant - metric.intercept) * bound
        if metric.share == 0.0:
            centre = np.zeros(shape.features)
            centre[metric.column] = rest
            rows = CentredRows(dataset, centre, radius=metric.radius * bound)
            return _Centred(rows, centre, np.ones(shape.features), metric.column, known.max())
        # less the constant, which is known, rows are shorter
        others = CentredRows(dataset, known, radius=sqrt(1.0 - metric.constant**2) * bound)
        score = _Score(shape.label_domain)
        mean_row = others.mean_gradient(score, np.zeros_like(known), weights=weights)
        noise_std = self._mean_noise(metric, mean_row, weights)
        seen = bought(mean_row, "mean row") * (known == 0.0)
        centre = project_to_ball(shrunk(seen, noise_std, others=shape.features - 1), bound)
        standing = metric.standing(seen, noise_std, bound) if metric.stretching else None
        centre[..., metric.column] = rest if standing is None else known.max() - standing[0]
        rows, scale = (
            CentredRows(dataset, centre, radius=metric.radius * bound),
            np.ones(centre.shape),
        )
        longer: FloatArray | float = 1.0
        if metric.stretching:
            scale = metric.stretch(seen, noise_std, bound)
            longer = metric.longer(seen, noise_std, bound, scale)
            rows = CentredRows(dataset, centre, radius=metric.radius * bound, scale=scale)
        if metric.scaling:
            squares = rows.mean_squares(weights=weights)
            floor = 2.0 * self._mean_noise(metric, squares, weights)
            scale = metric.scale(bought(squares, "mean squares"), floor, bound)
            rows = CentredRows(dataset, centre, radius=metric.radius * bound, scale=scale)
        return _Centred(rows, centre, scale, metric.column, metric.constant * bound, longer)

    def _mean_noise(
        self, metric: Centring, sensitive: Sensitive, weights: FloatArray | None
    ) -> float:
        """Return the noise_std of a purchase's mean over parties."""
        parties = sensitive.rows
        total = parties if weights is None else float(weights.sum())
        multiplier = metric.noise_multiplier(self.noise_multiplier, self.rounds)
        return multiplier * sensitive.sensitivity.value * sqrt(parties) / total


def shrunk(mean: FloatArray, noise_std: float, *, others: int) -> FloatArray:
    """Return noisy means of shape (..., d) times max(0, 1 - (m - 2) noise_std²/|mean|²).

    Args:
        mean: with normal noise in m entries, the others 0.
        noise_std: of an entry.
        others: m; up to 2 nothing is known to be better than the mean as it is.
    """
    squared = (mean**2).sum(axis=-1, keepdims=True)
    left = np.maximum(squared - max(others - 2, 0) * noise_std**2, 0.0)
    return np.asarray(mean * (left / np.where(squared > 0.0, squared, 1.0)))


@dataclass(frozen=True, slots=True)
class _Score:
    """l(s, y) = s, whose gradient is the row."""

    label_domain: LabelDomain

    outputs = 1
    derivative_bound = Fraction(1)
    curvature_bound = Fraction(0)

    def value(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return s, elementwise."""
        return np.array(scores)

    def derivative(self, scores: FloatArray, labels: FloatArray) -> FloatArray:
        """Return 1, elementwise."""
        return np.ones_like(scores)
