"""PS-1 attacked: Algorithm 2 runs up to a step where a record moves its gradient by nearly 4G.

A sensitivity is a bound for every history, so that one history refutes it: the first messages are
given, as an observer has seen them, and the solver's own code computes where they lead and what
the next stochastic gradient is. The given ones are shorter than their noise, hence nothing unusual.

With the Huber loss of width 1 a record of label 1 has slope -1 at v = 0, the anchor, and slope 1
where its score is 2 or more. Two rows G(c, ±s) with a small c both get there when v moves along the
first axis, by 2/(G c), and their gradients turn from -a to a: the drawn record moves the released
gradient by (2 - 1/M)|a - a'| = (4 - 2/M) G s, which is nearly 4G.
"""

from dataclasses import replace
from math import sqrt

import numpy as np

from ...audits.claims.claim import Case, Counterexample
from ...audits.claims.gaussian_event import shift_event
from ...audits.curators import log_density_of, shown_value
from ...audits.datasets import AuditDataset
from ...audits.neighbours import NeighbourPair
from ...mechanisms.curators import Release, SamplingCurator
from ...mechanisms.labels import RealLabels
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ...solvers.losses import Huber
from ...solvers.stochastic import PublishedPsAdmm, StochasticRounds
from .setting import FEATURES, PsSetting

_MOST_RECORDS = 10**4
"""Of the attacked data set: more change nothing but 1/M."""

_ALONG = 0.2
"""Part of both rows that points the way the history leads; the rest of them is opposite."""

_HISTORY = 18
"""Messages before the attacked one: of 2.4 G each at the default step size, below their noise."""

_PENALTY = 1e-3
"""rho over the loss's curvature G²: the pull back to z is too weak to matter within a round."""

_BEYOND = 1.1
"""How much farther the history leads than where both slopes are saturated."""


def far_records(s: PsSetting) -> NeighbourPair:
    """Return M records, all null but the first, which is G(c, s) or G(c, -s) with label 1.

    Null records have no gradient: what the first one does is all there is to see.

    Args:
        s: the parameters; of M at most 10,000.
    """
    rows = np.zeros((min(s.M, _MOST_RECORDS), FEATURES))
    rows[0] = s.G * _ALONG, s.G * sqrt(1 - _ALONG**2)
    dataset = AuditDataset(
        rows,
        np.ones(len(rows)),
        adjacency=s.relation,
        row_bound=s.G,
        parties=s.shape.parties,
        label_domain=RealLabels(1.0),
    )
    neighbour = dataset.with_record(0, features=rows[0] * [1, -1])
    across = rows[0, 1]
    words = (
        f"{len(rows)} records, all null but the first, ({rows[0, 0]:.6g}, ±{across:.6g}), label 1"
    )
    return NeighbourPair(dataset, neighbour, None, words)


def attacked_algorithm(s: PsSetting) -> PublishedPsAdmm:
    """Return Algorithm 2 for one round, on a Huber loss, with noise of the claimed 3G.

    One round is enough: its anchor is the public start 0, where the slope is -1 already.

    Args:
        s: the parameters; G and eta nu are used.
    """
    penalty = _PENALTY * s.G**2
    step_size = s.eta_nu / (s.G**2 + penalty)
    loss = Huber(width=1.0, label_bound=1.0)
    rounds = StochasticRounds(1, _HISTORY + 1, step_size, penalty, regularisation=0.0, loss=loss)
    return PublishedPsAdmm(rounds, noise_std=3 * s.G)


def leading_gradient(s: PsSetting) -> FloatArray:
    """Return the gradients (1, d) that lead v from 0 to a score of 2 or more on both rows.

    At v = 0 the residual is -1, at a score of 2 it is 1: the slope turns round. Eighteen
    steps share the way, so that none of them is longer than the noise it comes with.

    Args:
        s: the parameters.
    """
    far = _BEYOND * 2.0 / (s.G * _ALONG)
    settings = attacked_algorithm(s).settings
    return np.array([[-far / (_HISTORY * settings.step_size), 0.0]])


class _AfterHistory(SamplingCurator):
    """Sends given messages first and then draws its noise; its samples hold the first record.

    Args:
        history: the message (P, d) that the first releases are answered with, so many times.
        given: how many.
        trials: runs at once.
        seed: of the noise.
    """

    def __init__(self, history: FloatArray, given: int, *, trials: int, seed: int) -> None:
        super().__init__(EventList(), SimulationSampler(seed), trials=trials, record=True)
        self._history = history
        self._given = given
        self.values: list[FloatArray] = []

    def _deliver(self, release: Release) -> FloatArray:
        """Return the given message, or one that is drawn; note what it would be without noise."""
        self.values.append(shown_value(release))
        if len(self.values) <= self._given:
            return self._history.copy()
        return super()._deliver(release)

    def _uniforms(self, records: int) -> FloatArray:
        """Return numbers by which the first record is the one that is drawn."""
        # the smallest number is drawn
        numbers = np.ones(records)
        numbers[0] = 0.0
        return numbers


def _ran(s: PsSetting, dataset: AuditDataset, *, trials: int, seed: int) -> _AfterHistory:
    """Return the curator of so many runs on a data set, after the solver's last step.

    Args:
        s: the parameters.
        dataset: one of the two.
        trials: runs at once; all have the same history.
        seed: of the noise.
    """
    curator = _AfterHistory(leading_gradient(s), _HISTORY, trials=trials, seed=seed)
    attacked_algorithm(s).solve(dataset, curator)
    return curator


def gradient_of_the_solver(case: Case[PsSetting]) -> Counterexample | None:
    """Return the event that tells the two data sets apart by the solver's own next gradient.

    With noise of the claimed sensitivity that gradient would be 1-GDP. None where a record moves it
    by no more than claimed: under zero-out-one, for logistic loss, and of two records.

    The observer knows who was drawn, as whoever asks for a sensitivity of one draw does; in a run
    the first record is drawn in one step of M.

    Args:
        case: the parameters.
    """
    s = case.setting
    if s.zero_out or s.logistic:
        return None
    pair = far_records(s)
    sides = (pair.dataset, pair.neighbour)
    # the last value of each: what the step would release without noise
    first, second = (_ran(s, side, trials=1, seed=0).values[-1].ravel() for side in sides)
    noise_std = 3 * s.G
    moved = float(np.linalg.norm(first - second))
    if moved <= noise_std:
        return None

    def rerun(trials: int, seed: int) -> tuple[float, float]:
        rates: list[float] = []
        for offset, side in enumerate(sides):
            content = _ran(s, side, trials=trials, seed=seed + offset).transcript[-1].content
            densities = [log_density_of(content, value, noise_std) for value in (first, second)]
            rates.append(float(np.mean(densities[0] - densities[1] > 1.0)))
        return rates[0], rates[1]

    event = shift_event(first, second, noise_std=noise_std, datasets=pair.description)
    length = float(np.linalg.norm(leading_gradient(s)))
    words = (
        f"Algorithm 2 with noise 3G = {noise_std:.6g}: after {_HISTORY} gradients of length "
        f"{length:.4g} along the first axis, and with the first record drawn, the next one moves "
        f"by {moved:.6g}; its log-likelihood ratio exceeds 1"
    )
    return replace(event, event=words, rerun=rerun)
