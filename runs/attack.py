"""The replay attack on a configured run: its neighbours, its trials, and what they show.

In comes a configuration with its plan; out goes an `AttackResult`, whose statistics are those of
`audits.assessment`. The attacked data are the first parties' real records, behind an auditor's
handle; what is released here is thrown away and never leaves the holder. A stored score is believed
only while code, configuration and data files are byte for byte those that made it.
"""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from dataclasses import dataclass, replace
from math import inf, isfinite
from pathlib import Path

import msgspec

from ..accounting.numbers.notions import Gdp
from ..audits.assessment import AttackResult, noise_level
from ..audits.datasets import AuditDataset
from ..audits.neighbours import NeighbourPair, flip_label, opposite_gradients, removed, zero_out
from ..audits.noise_tests import noise_test_of_run
from ..audits.replay import Progress
from ..audits.saturation import saturated_flip
from ..audits.trials import (
    Attacked,
    Backend,
    ScoreStore,
    TrialExperiment,
    attack_trials,
    trials_at_once,
)
from ..audits.trials.code import code_digest
from ..audits.worst_start import worst_start
from ..data.strict import ConfigurationError
from ..mechanisms import Adjacency, InvalidParameter
from ..solvers import ConsensusDpAdmm, DpAdmm, DpSgd, ModelSolver
from .configuration import Configuration
from .pipeline import Plan
from .planning import plan
from .sections import Attack, NeighbourName

__all__ = [
    "ROOMS_OF_SCORES",
    "RunAttack",
    "attacked",
    "experiment_of",
    "require_attackable",
    "require_protected",
    "run_attack",
    "with_worst_start",
]

ROOMS_OF_SCORES = ("mechanisms", "accounting", "solvers", "data", "audits", "runs")
"""Rooms whose code may change scores: a stored score of other code is not believed."""


@dataclass(frozen=True, eq=False, slots=True)
class RunAttack:
    """The neighbours that were attacked, and what the attack shows.

    Args:
        pair: two data sets that differ in one record, and how far apart a run brings them.
        result: bounds, tests and null control.
    """

    pair: NeighbourPair
    result: AttackResult


@dataclass(frozen=True, slots=True)
class _ConfiguredAttack:
    """Builds what is attacked from a run file; a worker reads the same data files."""

    configuration: Configuration
    noise_multiplier: float

    def __call__(self) -> Attacked:
        solver, pair = attacked(self.configuration, self.noise_multiplier)
        return Attacked(solver.solve, pair.dataset, pair.neighbour)


def run_attack(
    configuration: Configuration,
    planned: Plan | None = None,
    *,
    trials: int | None = None,
    null_trials: int | None = None,
    backend: Backend | None = None,
    store: Path | None = None,
    progress: Progress | None = None,
) -> RunAttack:
    """Return the attacked neighbours and what the replay attack shows about the plan.

    Args:
        configuration: of the run.
        planned: its plan, if it is known.
        trials: in each world; the configuration's by default.
        null_trials: of the null control; as many by default.
        backend: where trials run; in this process by default.
        store: a file that keeps scores; None for none.
        progress: called with the trials done and all trials.

    Raises `InvalidParameter` for a plan without protection: there is nothing left to attack;
    `ConfigurationError` as `require_attackable` does.
    """
    require_attackable(configuration)
    planned = plan(configuration) if planned is None else planned
    require_protected(planned)
    settings = configuration.attack
    solver, pair = attacked(configuration, planned.noise_multiplier)
    promised = planned.promise
    mu = float(promised.mu_squared) ** 0.5 if isinstance(promised, Gdp) else inf
    # the sampler of the run itself: what it draws here is thrown away
    noise = noise_test_of_run(
        solver.solve,
        pair.dataset,
        configuration.build_sampler(),
        level=noise_level(settings.confidence),
    )
    with nullcontext() if store is None else ScoreStore(store) as scores:
        result = attack_trials(
            experiment_of(configuration, planned),
            trials=settings.trials if trials is None else trials,
            null_trials=null_trials,
            backend=backend,
            store=scores,
            claimed=promised,
            delta=configuration.privacy.delta,
            confidence=settings.confidence,
            pair_mu=None if pair.share is None or not isfinite(mu) else pair.share * mu,
            noise=noise,
            progress=progress,
        )
    return RunAttack(pair, result)


def require_protected(planned: Plan) -> None:
    """Raise `InvalidParameter` for a plan that releases without a mechanism."""
    if planned.guarantee.unprotected:
        raise InvalidParameter("epsilon", "infinity", "finite: what is unprotected needs no attack")


def require_attackable(configuration: Configuration) -> None:
    """Raise `ConfigurationError` where no replay tells the configured neighbours apart.

    Looks at public settings only, so that a run with an attack can ask before it pays.
    """
    solver = configuration.solvers.noisy(1.0)
    if configuration.attack.neighbour is NeighbourName.WORST_START:
        _require_worst_start(solver)
    elif configuration.counts_are_private and isinstance(solver, DpSgd) and solver.scheme:
        raise ConfigurationError(
            f"adjacency={configuration.privacy.adjacency.value!r} must be 'zero-out-one' for a "
            "replay of hidden batches, which have no records to match if one is missing; "
            "or run without the attack (--no-attack)."
        )


def attacked(
    configuration: Configuration, noise_multiplier: float
) -> tuple[ModelSolver, NeighbourPair]:
    """Return the solver and the neighbouring data sets that the configuration's audit tells apart.

    The solver is the run's, but for a public starting point where that makes the pair's mu known.

    Args:
        configuration: of the run.
        noise_multiplier: of its plan.

    The result is the solver and a pair; the pair's share is the part of the plan's mu that it
    attains, None where that is not known: bounds then say less of how tight the promise is.
    """
    solver = configuration.solvers.noisy(noise_multiplier)
    dataset, index = configuration.load_attacked()
    if configuration.attack.neighbour is NeighbourName.WORST_START:
        return with_worst_start(solver, dataset, index)
    flips = configuration.attack.neighbour is NeighbourName.LABEL_FLIP
    replaced = configuration.privacy.adjacency is Adjacency.REPLACE_ONE
    if isinstance(solver, ConsensusDpAdmm) and flips and replaced:
        return saturated_flip(solver, dataset, index=index)
    pair = _pair(configuration, dataset, index)
    return solver, replace(pair, share=None) if _is_cut(solver) else pair


def _is_cut(solver: ModelSolver) -> bool:
    """Return whether gradients are cut or of samples: shares are of whole ones in every round."""
    if isinstance(solver, DpSgd):
        return solver.scheme is not None or solver.clip is not None
    return isinstance(solver, ConsensusDpAdmm)


def with_worst_start(
    solver: ModelSolver, dataset: AuditDataset, index: int
) -> tuple[ModelSolver, NeighbourPair]:
    """Return the solver with the worst public start there is, and the pair of canaries for it.

    Args:
        solver: of a run.
        dataset: of the attacked parties.
        index: of the record in whose place a canary stands.

    Raises `ConfigurationError` for an algorithm that no such start is known of.
    """
    return worst_start(_require_worst_start(solver), dataset, index=index)


def _require_worst_start(solver: ModelSolver) -> DpSgd | DpAdmm:
    """Return the solver; raise `ConfigurationError` if no worst public start of it is known."""
    if isinstance(solver, DpSgd | DpAdmm):
        return solver
    raise ConfigurationError(
        f"solver={type(solver).__name__} must be DpSgd or DpAdmm for a worst-case start; "
        'choose attack.neighbour = "opposite", or the target "canary".'
    )


def _pair(configuration: Configuration, dataset: AuditDataset, index: int) -> NeighbourPair:
    """Return the data set and its neighbour: the record removed, nulled, its label flipped, or its
    gradient turned.

    Args:
        configuration: its relation and `attack.neighbour` choose.
        dataset: of the attacked parties.
        index: of the differing record, the longest row of the first party.
    """
    loss = configuration.solvers.loss
    if configuration.counts_are_private:
        return removed(dataset, index=index)
    if configuration.privacy.adjacency is Adjacency.ZERO_OUT_ONE:
        return zero_out(dataset, index=index, loss=loss)
    if configuration.attack.neighbour is NeighbourName.LABEL_FLIP:
        return flip_label(dataset, index=index, loss=loss)
    return opposite_gradients(dataset, index=index, loss=loss)


def experiment_of(configuration: Configuration, planned: Plan) -> TrialExperiment:
    """Return the trials of the replay attack on a planned run.

    A chunk holds as many trials as fit in memory at once; chunks are seeded one by one, so that any
    process can compute any of them.

    Args:
        configuration: of the run; its seed of the attack is another than that of its noise.
        planned: whose noise multiplier is attacked.
    """
    return TrialExperiment(
        _ConfiguredAttack(configuration, planned.noise_multiplier),
        _fingerprint(configuration, planned.noise_multiplier),
        seed=configuration.attack.seed,
        chunk=trials_at_once(
            parties=configuration.attack.parties,
            width=configuration.shape.parameters(configuration.solvers.loss),
            messages=len(planned.events),
        ),
    )


def _fingerprint(configuration: Configuration, noise_multiplier: float) -> str:
    """Return a hash of all that scores depend on besides the seed: files and code by content.

    Scores that were computed before are used again only under the same hash: another version of the
    code, or one changed byte of a file, computes them anew.
    """
    settings = configuration.attack
    attack = Attack(parties=settings.parties, neighbour=settings.neighbour)
    same = msgspec.structs.replace(configuration, attack=attack)
    data = configuration.data
    files = [*data.paths, *(() if data.schema_path is None else (data.schema_path,))]
    contents = [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
    parts = (code_digest(ROOMS_OF_SCORES), same.sha256, noise_multiplier.hex(), *contents)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
