"""The game: train with the target and without it, score, compare with what was promised.

Models are trained in three groups: shadows, from which scores learn; judged ones, by which bounds
are computed; and a control, a second group without the target, in which there is nothing to find.
No model serves twice, so that what was chosen by one group is tested on another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.curators import Curator, SamplingCurator
from ...mechanisms.errors import (
    AdjacencyMismatch,
    DpledgerError,
    InvalidParameter,
    require_delta,
    require_nonnegative,
    require_open_unit,
    require_positive_int,
)
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import EventList, FloatArray, Loss
from ...mechanisms.records import IntArray
from ...mechanisms.sampling import SimulationSampler
from ..assessment import NULL_SHARE
from ..bounds import LowerBound, Scores
from ..claim_tests import ClaimTest, claimed_epsilon, scores_tests
from ..metrics import Promise, TprAtFpr, auc, tpr_at_fpr
from ..neighbours import NeighbourPair
from ..selection import MultiSplit
from .adapters import Train
from .scores import Answers, MembershipScore
from .targets import Target

_IMPOSSIBLE = 1e-300
"""A probability in place of 0: a model that is certain of another label is as good as wrong."""

_FPRS = (1e-1, 1e-2, 1e-3)
"""False-positive rates that a verdict speaks of, where there are enough models."""


class ModelFailed(DpledgerError, RuntimeError):
    """A model of the user's own raised or gave no probabilities: no statement about its privacy."""


class Game(Protocol):
    """Trains models in one of two worlds and asks them about the target and the population."""

    @property
    def target(self) -> Target: ...

    @property
    def adjacency(self) -> Adjacency:
        """How the two worlds differ."""
        ...

    @property
    def absent(self) -> str:
        """What the world without the target holds in its place, in words."""
        ...

    def answers(self, *, inside: bool, trials: int, seed: int) -> Answers:
        """Return the answers of `trials` fresh, independent models trained with the target or not.

        Different seeds give independent models.

        Args:
            inside: whether the target is among the training records.
            trials: models, at least 1.
            seed: a whole number >= 0.
        """
        ...


class _Solution(Protocol):
    @property
    def model(self) -> FloatArray: ...


@dataclass(frozen=True, slots=True, eq=False)
class SolverGame:
    """A game on one of our solvers: many runs are one array. Seen is the last model only.

    Args:
        solve: the algorithm, whose result has a model (B, d·K), K the loss's number of outputs.
        pair: the data set with the target and its neighbour without it.
        target: the record in which they differ, as the data set holds it.
        loss: a negative log-likelihood, as the logistic loss is.
        rows, labels: records of the population, shapes (Z, d) and (Z,).
        absent: what the neighbour holds in the target's place, in words.
        chunk: runs at once.
    """

    solve: Callable[[PrivateDataset, Curator], _Solution]
    pair: NeighbourPair
    target: Target
    loss: Loss
    rows: FloatArray
    labels: FloatArray
    absent: str = "another record in its place"
    chunk: int = 100

    @property
    def adjacency(self) -> Adjacency:
        """The relation of the two data sets."""
        return self.pair.dataset.shape.adjacency

    def answers(self, *, inside: bool, trials: int, seed: int) -> Answers:
        """Return the answers of `trials` runs.

        Each world and chunk has its own stream of the seed, so that runs are independent.
        """
        dataset = self.pair.dataset if inside else self.pair.neighbour
        models: list[FloatArray] = []
        for number, start in enumerate(range(0, trials, self.chunk)):
            size = min(self.chunk, trials - start)
            sampler = SimulationSampler.stream(seed, int(inside), number)
            curator = SamplingCurator(EventList(), sampler, trials=size)
            models.append(self.solve(dataset, curator).model)
        model = np.concatenate(models)
        label = np.asarray([self.target.label])
        return Answers(
            target=self._said_of(model, self.target.features[None], label)[:, 0],
            population=self._said_of(model, self.rows, self.labels),
            parameters=model,
        )

    def _said_of(self, model: FloatArray, rows: FloatArray, labels: FloatArray) -> FloatArray:
        """Return log-probabilities (B, Z) by models (B, d·K) of the labels (Z,) of rows (Z, d)."""
        if self.loss.outputs == 1:
            return -self.loss.value(model @ rows.T, labels)
        weights = model.reshape(len(model), -1, self.loss.outputs)
        return -self.loss.value(rows @ weights, labels)


@dataclass(frozen=True, slots=True, eq=False)
class ModelGame:
    """A game on a model of the user's own, trained anew for every trial.

    Args:
        train: trains a classifier; it must take its randomness from the seed.
        features, labels: the training data without the target.
        target: the record in question.
        rows, population_labels: records of the population that are not trained on.
        replacement: what the world without the target holds in its place (replace-one); None for
            one record less (add-remove-one).
        jobs: processes; -1 for one a core.
    """

    train: Train
    features: FloatArray
    labels: Any
    target: Target
    rows: FloatArray
    population_labels: Any
    replacement: Target | None = None
    jobs: int = 1

    @property
    def adjacency(self) -> Adjacency:
        """How the two worlds differ."""
        none = self.replacement is None
        return Adjacency.ADD_REMOVE_ONE if none else Adjacency.REPLACE_ONE

    @property
    def absent(self) -> str:
        """What the world without the target holds in its place, in words."""
        if self.replacement is None:
            return "one record less"
        return f"{self.replacement.description} in its place"

    def answers(self, *, inside: bool, trials: int, seed: int) -> Answers:
        """Return the answers of `trials` trained models.

        Args:
            inside: whether the target is among the training records.
            trials: models, at least 1.
            seed: from which each training's own is drawn, without repetition.
        """
        features, labels = self.features, np.asarray(self.labels)
        own = self.target if inside else self.replacement
        if own is not None:
            features = np.vstack([features, own.features])
            labels = np.append(labels, np.asarray([own.label], dtype=labels.dtype))
        seeds = _training_seeds(trials, inside=inside, seed=seed)
        rows = np.vstack([self.target.features, self.rows])
        asked = np.append(
            np.asarray([self.target.label], dtype=labels.dtype), self.population_labels
        )
        found: Any = Parallel(n_jobs=self.jobs)(
            delayed(log_probabilities)(self.train, features, labels, int(one), rows, asked)
            for one in seeds
        )
        answers = np.stack(found)
        return Answers(answers[:, 0], answers[:, 1:])


def _training_seeds(trials: int, *, inside: bool, seed: int) -> IntArray:
    """Return different whole numbers below 2³², of one half in one world, of the other in another.

    Independent draws of 32 bits would repeat: among 10,000 trainings once in a hundred games, and
    trials with one seed are one trial.
    """
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(int(inside),)))
    return generator.choice(2**31, size=trials, replace=False) + int(inside) * 2**31


def log_probabilities(
    train: Train, features: FloatArray, labels: Any, seed: int, rows: FloatArray, asked: Any
) -> FloatArray:
    """Return the log-probability that one model, freshly trained, gives to each row's label.

    Raises `ModelFailed` where the model does not train or answer.

    Args:
        train: trains a classifier from features, labels and a seed.
        features, labels: the training records, shapes (n, d) and (n,).
        seed: of the training, a whole number below 2³².
        rows: what the model is asked about, shape (Z, d).
        asked: the labels whose probabilities are looked at, shape (Z,).
    """
    try:
        model = train(features, labels, seed)
        probabilities = np.asarray(model.predict_proba(rows), dtype=np.float64)
        columns = {label: place for place, label in enumerate(np.asarray(model.classes_).tolist())}
    except (Exception, SystemExit) as error:
        raise ModelFailed(
            f"Expected a model that trains on {len(labels)} records with seed={seed} and answers; "
            f"it raised {type(error).__name__}: {error}. Nothing was judged."
        ) from error
    # a label that was never trained on has probability 0
    picked = [
        probabilities[place, columns[label]] if label in columns else 0.0
        for place, label in enumerate(np.asarray(asked).tolist())
    ]
    return np.asarray(np.log(np.clip(picked, _IMPOSSIBLE, 1.0)))


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """One score's evidence.

    Args:
        name: of the score.
        bound: on epsilon; None where a null control of the check failed.
        null: the same bound where nothing differs.
        auc: area under the receiver operating characteristic.
        tpr_at_fpr: true-positive rates at small false-positive rates.
        tests: of the promise, as a curve where it is one; none where a null control failed.
    """

    name: str
    bound: LowerBound | None
    null: LowerBound
    auc: float
    tpr_at_fpr: tuple[TprAtFpr, ...]
    tests: tuple[ClaimTest, ...]


@dataclass(frozen=True, slots=True)
class MembershipCheck:
    """What a membership-inference sanity check found.

    Args:
        target: which record, in words.
        adjacency: of the promise and of the game, in the relation's name.
        absent: what stands in the target's place in the world without it, in words.
        promise: what was held against the attacks; epsilon at `delta`.
        results: one a score.
        trials, shadows: judged and shadow models, in each world.
        confidence: that no bound of any score is too large; and that no test refutes a promise that
            is kept and no null control fails without cause. A tenth of the error is the controls',
            all is divided among the scores.
        ceiling: the largest epsilon that so many trials could have shown.
        reach: mu of the best attack on what the game shows, if the noise is as stated; None where
            it is not known.
    """

    target: str
    adjacency: str
    absent: str
    promise: Promise
    claimed_epsilon: float
    delta: float
    results: tuple[ScoreResult, ...]
    trials: int
    shadows: int
    confidence: float
    ceiling: float
    reach: float | None = None

    @property
    def refutes_promise(self) -> bool:
        """Whether some attack refutes the promise by a test."""
        return any(test.refuted for result in self.results for test in result.tests)

    @property
    def null_control_failed(self) -> bool:
        """Whether some score finds leakage where there is none: distrust the check."""
        return any(result.null.positive for result in self.results)

    @property
    def is_finding(self) -> bool:
        """Whether there is something to report: a broken promise, or a control that failed."""
        return self.refutes_promise or self.null_control_failed


def check_membership(
    game: Game,
    scores: Sequence[MembershipScore],
    *,
    promise: Promise,
    adjacency: Adjacency,
    delta: float,
    trials: int,
    shadows: int,
    confidence: float,
    seed: int,
    reach: float | None = None,
) -> MembershipCheck:
    """Return how well scores tell models trained with the target from models without it.

    Args:
        game: trains the models.
        scores: at least one.
        promise: mu-GDP or (epsilon, delta).
        adjacency: the relation that the promise speaks of.
        delta: where epsilon is bounded, in [0, 1).
        trials: judged models in each world, at least 2.
        shadows: models that scores learn from, in each world, at least 2.
        confidence: of all bounds together, in (0, 1).
        seed: of everything; fix it before looking.
        reach: what the best attack could show, where the pair's law is known: for the verdict's
            words only.

    Raises `AdjacencyMismatch` where the game's worlds differ in another way than the promise's:
    under another relation a promise is another promise.
    """
    if game.adjacency is not adjacency:
        raise AdjacencyMismatch(
            f"Expected a game of {adjacency.value}, as the promise, instead got "
            f"{game.adjacency.value}."
        )
    if not scores:
        raise InvalidParameter("scores", scores, "at least one")
    for name, count in (("trials", trials), ("shadows", shadows)):
        require_positive_int(name, count)
        if count < 2:
            raise InvalidParameter(name, count, "at least 2")
    require_delta(delta)
    require_open_unit("confidence", confidence)
    require_nonnegative("seed", seed)
    claimed = claimed_epsilon(promise, delta)
    shadow, judged, control = (
        int(word) for word in np.random.SeedSequence(seed).generate_state(3, np.uint64)
    )
    lessons = [game.answers(inside=side, trials=shadows, seed=shadow) for side in (True, False)]
    members, others = (
        game.answers(inside=side, trials=trials, seed=judged) for side in (True, False)
    )
    # where nothing differs: further models without the target in the place of the members
    nobody = game.answers(inside=False, trials=trials, seed=control)
    kept = 1 - (1 - NULL_SHARE) * (1 - confidence) / len(scores)
    each = MultiSplit(kept, seed)
    control_each = MultiSplit(1 - NULL_SHARE * (1 - confidence) / len(scores), seed)
    scorers = [score.learn(*lessons) for score in scores]
    worlds = [Scores(scorer(members), scorer(others)) for scorer in scorers]
    nulls = [
        control_each.lower_bound(Scores(scorer(nobody), world.neighbour), delta=delta)
        for scorer, world in zip(scorers, worlds, strict=True)
    ]
    failed = any(null.positive for null in nulls)

    def result(score: MembershipScore, real: Scores, null: LowerBound) -> ScoreResult:
        return ScoreResult(
            name=score.name,
            bound=None if failed else each.lower_bound(real, delta=delta),
            null=null,
            auc=auc(real),
            tpr_at_fpr=tuple(
                tpr_at_fpr(real, fpr, claimed=promise, confidence=confidence)
                for fpr in _FPRS
                if fpr * trials >= 1
            ),
            tests=()
            if failed
            else scores_tests(real, claimed=promise, delta=delta, confidence=kept, seed=seed),
        )

    return MembershipCheck(
        target=game.target.description,
        adjacency=adjacency.value,
        absent=game.absent,
        promise=promise,
        claimed_epsilon=claimed,
        delta=delta,
        results=tuple(map(result, scores, worlds, nulls)),
        trials=trials,
        shadows=shadows,
        confidence=confidence,
        ceiling=each.ceiling(trials=trials, delta=delta),
        reach=reach,
    )
