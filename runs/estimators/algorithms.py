"""Named algorithms with public settings for rows of norm at most 1, ready for a noise multiplier.

A setting here depends on the target, the regularisation and the data's public shape only.
Whoever wants others writes a `SolverFactory`.

Step sizes come from the smoothness of the mean loss over rows of norm at most 1, which is 1/4 for
the logistic loss, so that they are safe for every data set; penalties are of the order at which a
round's move suits its noise. None of them was fitted to records.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.data_shape import DataShape
from ...mechanisms.errors import InvalidParameter, Number, require_positive, require_positive_int
from ...mechanisms.labels import ClassLabels, WeightedLabels
from ...mechanisms.subsampling import FixedBatch, Poisson, Scheme
from ...solvers.centralised import CentralisedDpAdmm
from ...solvers.constraints import fused_lasso
from ...solvers.decentralised import PrAdmm
from ...solvers.defaults import consensus_defaults
from ...solvers.losses import Logistic, Multinomial
from ...solvers.majority import ClassShares, classifier_defaults
from ...solvers.recycled import RAdmm
from ...solvers.regularisers import L2
from ...solvers.sgd import DpSgd
from ...solvers.solver import ModelSolver
from ...solvers.star import DpAdmm, PvpAdmm
from ...solvers.steps import SmoothSteps
from ...solvers.stochastic import PsAdmm, SampledPsAdmm, StochasticRounds
from ...solvers.topologies import complete
from ...solvers.weighted import Weighted

_DISTANCE = 100.0
"""A guess of |w*| for rows of norm 1: it sets how fast step sizes fall with the noise.

A wrong one costs accuracy and never privacy.
"""
_EXACT_PENALTY, _STEP_PENALTY = 0.1, 0.01
"""rho of subproblems that are solved, or nearly, in a round; and where a round is one step."""
_NETWORK_PENALTY = 0.02
"""eta times an agent's number of neighbours."""
_MOST_DRIFT = 2.0
"""Of a model of ones that a regulariser alone should bring to 0."""
_INNER_STEPS = 5
"""Of PS-ADMM in a round: each is a release, and more of them each have more noise."""

_REGULARISATION = 1e-4
"""lambda of algorithms without a rule of their own, for rows of norm at most 1."""

_LEAST_REGULARISATION = 1e-7
"""Where stopping in time regularises, lambda only keeps the optimum finite."""
_ROUNDS = 100
"""Of algorithms without a rule of their own for the number of rounds."""
_SAMPLING_RATE = 0.1
"""Share of the records in a sample of PS-ADMM's corrections."""


SolverFactory = Callable[[float, DataShape], ModelSolver]
"""From noise multiplier and public shape (rows of norm at most 1) to a solver.

More noise must not cost more, and the settings must be public.
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a named algorithm is told: the public settings that all of them have.

    Args:
        given_rounds: of communication; None for the algorithm's own.
        given_regularisation: lambda, in mean loss + (lambda/2)|w|²; None for the algorithm's own.
        epsilon: the target.
        delta: of the target.
        column: index of a column with the constant sqrt(1/2) in every row; None without one.
        start: public model that consensus-admm starts from; empty for 0.
        gaussian: whether noise must be Gaussian: where one serves all parties, or a budget adds
            fits up in mu².
    """

    given_rounds: int | None
    given_regularisation: float | None
    epsilon: Number = 1.0
    delta: Number = 1e-5
    column: int | None = None
    start: tuple[float, ...] = ()
    gaussian: bool = False

    def __post_init__(self) -> None:
        if self.given_rounds is not None:
            require_positive_int("rounds", self.given_rounds)
        if self.given_regularisation is not None:
            require_positive("regularisation", self.given_regularisation)

    @property
    def regularisation(self) -> float:
        """lambda, for algorithms without a rule of their own."""
        given = self.given_regularisation
        return _REGULARISATION if given is None else given

    @property
    def rounds(self) -> int:
        """Of communication, for algorithms without a rule of their own."""
        return _ROUNDS if self.given_rounds is None else self.given_rounds

    def consensus(self, noise_multiplier: float, shape: DataShape) -> ModelSolver:
        """Return ADMM at the consensus, or the classes' shares, as `classifier_defaults` derives.

        From a given start it is always ADMM: that model may tell more than a share.

        Args:
            noise_multiplier: noise_std, or the scale of Laplace noise, over the sensitivity.
            shape: public facts about the data.
        """
        settled = self.gaussian or bool(self.start)
        chosen = (consensus_defaults if settled else classifier_defaults)(
            shape,
            epsilon=self.epsilon,
            delta=self.delta,
            column=self.column,
            rounds=self.given_rounds,
            regularisation=self.given_regularisation or _LEAST_REGULARISATION,
        )
        if isinstance(chosen, ClassShares):
            return replace(chosen, noise_multiplier=noise_multiplier)
        return replace(chosen, noise_multiplier=noise_multiplier, start=self.start)

    def dp_admm(self, noise_multiplier: float, shape: DataShape) -> DpAdmm:
        """Return the star DP-ADMM of Huang et al. (2020).

        First-order steps (Algorithm 3 there): each agent's message is one mean gradient away from
        the last model, and noise is in units of Lemma 1's sensitivity.
        """
        return DpAdmm(
            self.rounds,
            noise_multiplier,
            self._steps(shape),
            penalty=_STEP_PENALTY,
            regularisation=self.regularisation,
            loss=_loss(shape),
        )

    def dp_sgd(self, noise_multiplier: float, shape: DataShape) -> DpSgd:
        """Return gradient descent with all records in every round, the papers' comparison.

        No sampling: every record enters every round, as in the papers' comparisons.
        """
        return DpSgd(
            self.rounds,
            noise_multiplier,
            self._steps(shape),
            regularisation=self.regularisation,
            loss=_loss(shape),
        )

    def pvp_admm(self, noise_multiplier: float, shape: DataShape) -> PvpAdmm:
        """Return star ADMM with primal variable perturbation.

        Subproblems are minimised to a gradient norm that the sensitivity prices (Zhang, Zhu 2017).
        """
        return PvpAdmm(
            self.rounds,
            noise_multiplier,
            penalty=_EXACT_PENALTY,
            regularisation=self.regularisation,
            loss=_loss(shape),
        )

    def pr_admm(self, noise_multiplier: float, shape: DataShape) -> PrAdmm:
        """Return PR-ADMM of Ding et al. (2020), in which everybody talks to everybody.

        Raises `InvalidParameter` for a single agent.

        eta is divided by the number of neighbours, so that the modulus of a subproblem does not
        grow with the network; the regulariser's weight is of |w|² in the sum over agents.
        """
        agents = len(shape.parties)
        if agents < 2:
            raise InvalidParameter("n_parties", agents, "at least 2 agents of a network")
        return PrAdmm(
            complete(agents),
            self.rounds,
            noise_multiplier,
            penalty=_NETWORK_PENALTY / (agents - 1),
            regularisation=agents * self.regularisation / 2.0,
            loss=_loss(shape),
        )

    def r_admm(self, noise_multiplier: float, shape: DataShape) -> RAdmm:
        """Return PR-ADMM whose even rounds reuse what was sent (Zhang et al. 2018)."""
        return RAdmm(self.pr_admm(noise_multiplier, shape), proximity=2.0 * _smoothness(shape))

    def ps_admm(self, noise_multiplier: float, shape: DataShape) -> PsAdmm:
        """Return PS-ADMM of Ding et al. (2019) with full gradients.

        Every inner step is a release; sampling would amplify nothing, as the full gradient enters
        anyway.
        """
        return PsAdmm(self._inner(shape), noise_multiplier)

    def sampled_ps_admm(self, noise_multiplier: float, shape: DataShape) -> SampledPsAdmm:
        """Return PS-ADMM of Ding et al. (2019) with corrections of a hidden tenth.

        Poisson samples, but batches of fixed size under replace-one, where only they amplify.

        One noisy snapshot a round, and corrections of a sample that are cut to the loss's
        smoothness.

        Args:
            noise_multiplier: of snapshot and corrections alike.
            shape: public facts about the data.
        """
        scheme: Scheme = Poisson(_SAMPLING_RATE)
        if shape.adjacency is Adjacency.REPLACE_ONE:
            scheme = FixedBatch(max(1, int(_SAMPLING_RATE * shape.count)))
        return SampledPsAdmm(
            self._inner(shape),
            scheme,
            correction_bound=_smoothness(shape),
            snapshot_noise_multiplier=noise_multiplier,
            correction_noise_multiplier=noise_multiplier,
        )

    def centralised(self, noise_multiplier: float, shape: DataShape) -> CentralisedDpAdmm:
        """Return DP-AccADMM of Xu et al. (2020), for the constraint y = x.

        The step is 1 over the smoothness; x alone is published, as y follows it. Where the
        extrapolated dual would not settle beside the regulariser, it is not extrapolated.
        """
        accelerated = CentralisedDpAdmm(
            fused_lasso(shape.parameters(_loss(shape)), ()),
            self.rounds,
            noise_multiplier,
            step_size=1.0 / _smoothness(shape),
            accelerated=True,
            penalty=_STEP_PENALTY,
            regularisation=self.regularisation,
            regulariser=L2(),
            loss=_loss(shape),
        )
        settles = accelerated.drift() < _MOST_DRIFT
        return accelerated if settles else replace(accelerated, accelerated=False)

    def _steps(self, shape: DataShape) -> SmoothSteps:
        """Return Theorem 4's steps of Huang et al. (2020), for a smooth objective."""
        return SmoothSteps(_smoothness(shape) + self.regularisation, _DISTANCE)

    def _inner(self, shape: DataShape) -> StochasticRounds:
        """Return PS-ADMM's rounds; step sizes are 1 over the subproblem's smoothness."""
        return StochasticRounds(
            self.rounds,
            _INNER_STEPS,
            step_size=1.0 / (_smoothness(shape) + _EXACT_PENALTY),
            penalty=_EXACT_PENALTY,
            regularisation=len(shape.parties) * self.regularisation,
            loss=_loss(shape),
        )


def _loss(shape: DataShape) -> Logistic | Multinomial | Weighted:
    """Return the logistic loss of two classes, or of more; times weights where labels have them."""
    labels = shape.label_domain
    if isinstance(labels, WeightedLabels):
        return Weighted(_loss(replace(shape, label_domain=labels.labels)))
    return Multinomial(labels.classes) if isinstance(labels, ClassLabels) else Logistic()


def _smoothness(shape: DataShape) -> float:
    """Return the smoothness of the mean loss over rows of norm at most 1: l'' at most.

    As rows have norm at most 1, the Hessian's norm is at most that of the loss in its scores.
    """
    return float(_loss(shape).curvature_bound or 0)


class AdmmAlgorithm(Enum):
    """The repaired algorithms by name; another one is a line here and a method of `Recipe`."""

    CONSENSUS = "consensus-admm"
    DP_ADMM = "dp-admm"
    PVP_ADMM = "pvp-admm"
    PR_ADMM = "pr-admm"
    PS_ADMM = "ps-admm"
    SAMPLED_PS_ADMM = "sampled-ps-admm"
    CENTRALISED = "centralised"
    DP_SGD = "dp-sgd"
    R_ADMM = "r-admm"

    def factory(self, recipe: Recipe) -> SolverFactory:
        """Return the maker of this algorithm's solvers."""
        made: SolverFactory = getattr(recipe, self.name.lower())
        return made
