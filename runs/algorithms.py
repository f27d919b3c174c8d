"""From the solver section of a run file to solvers, for data of a public shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from .. import solvers  # each algorithm's module is loaded when it is asked for
from ..data.strict import ConfigurationError
from ..mechanisms import ClassLabels, DataShape, Loss
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
        """The loss, if the data's labels are those it is for."""
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
        """R."""
        return solvers.L2() if self.made.regulariser is RegulariserName.L2 else solvers.L1()

    def noisy(self, noise_multiplier: float) -> solvers.ModelSolver:
        """Return the algorithm with a noise multiplier (which `admm` has no use for)."""
        made = self.made
        if made.network is not None:
            return self._on_network(made.network, noise_multiplier)
        if made.inner_steps is not None:
            return self._with_inner_steps(made.inner_steps, noise_multiplier)
        if made.algorithm is Algorithm.CENTRALISED:
            return self._centralised(noise_multiplier)
        if made.algorithm is Algorithm.CONSENSUS:
            return self.consensus(noise_multiplier)
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
        """Return ADMM at the consensus with the settings that `consensus_defaults` derives."""
        made, privacy = self.made, self.privacy
        if privacy.epsilon is None:
            raise ConfigurationError(
                "privacy.epsilon must be given with consensus-admm: its settings follow from it."
            )
        self.loss  # noqa: B018 - refuses a loss for other labels
        chosen = _defaults(made, self.shape, privacy)
        return replace(chosen, noise_multiplier=noise_multiplier)

    def exact(self, noise_multiplier: float | None) -> solvers.PvpAdmm:
        """Return ADMM with exact minimisers: PVP at a noise multiplier, or without privacy."""
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

    def _steps(self) -> solvers.Steps:
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
    """Return the settings for a section; a search for noise asks for them at every try."""
    assert privacy.epsilon is not None
    return solvers.consensus_defaults(
        shape,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        column=shape.features - 1 if made.intercept else None,
        rounds=made.rounds,
        regularisation=made.regularisation,
    )
