"""From the solver section of a run file to solvers, for data of a public shape.

In come the section, the `DataShape` and the target; out goes a solver that takes a noise
multiplier. Calibration asks for one at every multiplier that it tries, and the run for one at the
multiplier that was found: both from here, so that plan and run cannot differ in a setting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from .. import solvers  # each algorithm's module is loaded when it is asked for
from ..data.strict import ConfigurationError
from ..mechanisms import Adjacency, ClassLabels, DataShape, FixedBatch, Loss, Poisson
from .sections import (
    Algorithm,
    Algorithmic,
    LossName,
    NetworkName,
    Privacy,
    RegulariserName,
    StepsName,
)


@dataclass(frozen=True, slots=True)
class Solvers:
    """The solvers that a section describes; each method raises `ConfigurationError` for a section
    that does not fit the data.

    Args:
        made: the section.
        shape: of the data, public.
        privacy: the target, from which consensus-admm derives its settings.
    """

    made: Algorithmic
    shape: DataShape
    privacy: Privacy

    @property
    def loss(self) -> Loss:
        """The loss, if the data's labels are those it is for.

        Raises `ConfigurationError` where classes meet a loss of two labels, or the other way round.
        """
        labels, multinomial = self.shape.label_domain, self.made.loss is LossName.MULTINOMIAL
        if isinstance(labels, ClassLabels) != multinomial:
            raise ConfigurationError(
                f"solver.loss={self.made.loss.value!r} must be 'multinomial' where the "
                "schema has a class column, and only there."
            )
        if isinstance(labels, ClassLabels):
            return solvers.Multinomial(labels.classes)
        return solvers.Logistic() if self.made.loss is LossName.LOGISTIC else solvers.LinearLoss()

    @property
    def regulariser(self) -> solvers.L1 | solvers.L2:
        """R, a function of the model that is added to the loss with the section's weight."""
        return solvers.L2() if self.made.regulariser is RegulariserName.L2 else solvers.L1()

    def noisy(self, noise_multiplier: float) -> solvers.ModelSolver:
        """Return the algorithm with a noise multiplier (which `admm` has no use for).

        Args:
            noise_multiplier: noise_std over the sensitivity of a release.

        Raises `ConfigurationError` for settings that the algorithm cannot have.
        """
        made = self.made
        if made.network is not None:
            return self._on_network(made.network, noise_multiplier)
        if made.inner_steps is not None:
            return self._with_inner_steps(made.inner_steps, noise_multiplier)
        if made.algorithm is Algorithm.CENTRALISED:
            return self._centralised(noise_multiplier)
        if made.algorithm is Algorithm.CONSENSUS:
            return self.consensus(noise_multiplier)
        if made.algorithm is Algorithm.DP_SGD:
            return self._sgd(noise_multiplier)
        if made.algorithm is Algorithm.PVP_ADMM:
            return self.exact(noise_multiplier)
        if made.algorithm is Algorithm.ADMM:
            return self.exact(None)
        repaired = solvers.DpAdmm(
            made.rounds,
            noise_multiplier,
            self._steps(),
            penalty=made.penalty,
            regularisation=made.regularisation,
            regulariser=self.regulariser,
            loss=self.loss,
        )
        if made.algorithm is Algorithm.DP_ADMM:
            return repaired
        return solvers.PublishedDpAdmm(repaired, made.pretraining_rounds, made.distance)

    def consensus(self, noise_multiplier: float) -> solvers.ConsensusDpAdmm:
        """Return ADMM at the consensus with the settings that `consensus_defaults` derives.

        Args:
            noise_multiplier: takes the place of the one that the settings were derived for.

        Raises `ConfigurationError` without a target epsilon.
        """
        made, privacy = self.made, self.privacy
        if privacy.epsilon is None:
            raise ConfigurationError(
                "privacy.epsilon must be given with consensus-admm: its settings follow from it."
            )
        self.loss  # noqa: B018 - refuses a loss for other labels
        chosen = _defaults(made, self.shape, privacy)
        return replace(chosen, noise_multiplier=noise_multiplier)

    def exact(self, noise_multiplier: float | None) -> solvers.PvpAdmm:
        """Return ADMM with exact minimisers: PVP at a noise multiplier, or without privacy.

        Args:
            noise_multiplier: noise_std over the sensitivity of a minimiser; None for no noise,
                whose messages are unprotected.
        """
        made = self.made
        return solvers.PvpAdmm(
            made.rounds,
            noise_multiplier,
            tolerance=made.tolerance,
            penalty=made.penalty,
            regularisation=made.regularisation,
            loss=self.loss,
        )

    def _on_network(self, name: NetworkName, noise_multiplier: float) -> solvers.PrAdmm:
        """Return PR-ADMM on a named network of as many agents as there are parties.

        The section's weight is of |w|²/2 beside the mean loss; PR-ADMM's is of |w|² in the sum over
        agents.
        """
        made, agents = self.made, len(self.shape.parties)
        networks = {
            NetworkName.COMPLETE: solvers.complete,
            NetworkName.RING: solvers.ring,
            NetworkName.HUB: solvers.hub,
        }
        return solvers.PrAdmm(
            networks[name](agents),
            made.rounds,
            noise_multiplier,
            penalty=made.penalty,
            regularisation=made.regularisation * agents / 2,  # of |w|² in the sum over agents
            tolerance=made.tolerance,
            loss=self.loss,
        )

    def _with_inner_steps(self, inner_steps: int, noise_multiplier: float) -> solvers.PsAdmm:
        """Return PS-ADMM with full gradients, so many steps in each round.

        The section's weight is beside the mean loss; PS-ADMM's is in the sum over agents.
        """
        made = self.made
        assert made.step_size is not None
        rounds = solvers.StochasticRounds(
            made.rounds,
            inner_steps,
            made.step_size,
            penalty=made.penalty,
            regularisation=made.regularisation * len(self.shape.parties),
            regulariser=self.regulariser,
            loss=self.loss,
        )
        return solvers.PsAdmm(rounds, noise_multiplier)

    def _centralised(self, noise_multiplier: float) -> solvers.CentralisedDpAdmm:
        """Return DP-ADMM, or DP-AccADMM, for the constraint y = x, which every model meets.

        Without edges the fused lasso's A is the identity: its y follows x, and one model is
        published.
        """
        made = self.made
        assert made.step_size is not None
        return solvers.CentralisedDpAdmm(
            solvers.fused_lasso(self.shape.parameters(self.loss), ()),
            made.rounds,
            noise_multiplier,
            made.step_size,
            accelerated=made.accelerated,
            penalty=made.penalty,
            regularisation=made.regularisation,
            regulariser=self.regulariser,
            loss=self.loss,
        )

    def _sgd(self, noise_multiplier: float) -> solvers.DpSgd:
        """Return DP-SGD on all records, or on a hidden batch of them in each round.

        Raises `ConfigurationError` for a batch of all records or more.
        """
        made, count, scheme = self.made, self.shape.count, None
        if made.batch is not None:
            if made.batch >= count:
                raise ConfigurationError(
                    f"solver.batch={made.batch} must be in [1, {count - 1}]: a party has {count} "
                    "records at least; leave it out for all of them."
                )
            fixed = self.shape.adjacency is Adjacency.REPLACE_ONE
            scheme = FixedBatch(made.batch) if fixed else Poisson(made.batch / count)
        return solvers.DpSgd(
            made.rounds,
            noise_multiplier,
            self._steps(),
            scheme=scheme,
            clip=made.clip,
            regularisation=made.regularisation,
            regulariser=self.regulariser,
            loss=self.loss,
        )

    def _steps(self) -> solvers.Steps:
        """Return step sizes: constant ones, or those of a theorem of Huang et al. (2020).

        Theorem 4's want a smooth objective and its smoothness, Theorem 3's a bound on its
        gradients; both want a bound on the distance to the optimum.

        Raises `ConfigurationError` where the loss or the regulariser has none.
        """
        made, shape, loss, regulariser = self.made, self.shape, self.loss, self.regulariser
        if made.step_size is not None:
            return solvers.ConstantSteps(made.step_size)
        if made.steps is StepsName.SMOOTH:
            if loss.curvature_bound is None or regulariser.curvature is None:
                raise ConfigurationError("Expected steps = 'nonsmooth' for a loss or R with kinks.")
            smoothness = float(loss.curvature_bound) * shape.row_bound**2
            return solvers.SmoothSteps(
                smoothness + made.regularisation * regulariser.curvature, made.distance
            )
        bound = regulariser.gradient_bound(shape.parameters(loss))
        if bound is None:
            raise ConfigurationError("Expected regulariser = 'l1' with steps = 'nonsmooth'.")
        return solvers.NonsmoothSteps(
            float(shape.gradient_bound(loss)) + made.regularisation * bound, made.distance
        )


@lru_cache(maxsize=8)
def _defaults(made: Algorithmic, shape: DataShape, privacy: Privacy) -> solvers.ConsensusDpAdmm:
    """Return the settings for a section, once: a search for noise asks for them at every try.

    Args:
        made: the section.
        shape: of the data, public.
        privacy: the target; a group's epsilon is shared by its records.
    """
    assert privacy.epsilon is not None
    return solvers.consensus_defaults(
        shape,
        # step size and rounds suit the noise, which is that of one record's part of epsilon
        epsilon=privacy.epsilon / privacy.group,
        delta=privacy.delta,
        column=shape.features - 1 if made.intercept else None,
        rounds=made.rounds,
        regularisation=made.regularisation,
    )
