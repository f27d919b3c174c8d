"""Was this record in the training data? The membership game, its scores and a plain verdict.

The game fixes one target record and trains many models on data with it and without it. A score
looks at a model and says how much more likely "with" is; what it learns, it learns from models
that are not judged. So every bound of `audits` applies to the scores, and a promise can be held
against them: a sanity check that the promise is kept, and a look at how far it is from attacks
that people run.

The order of work: `random_target` or a canary, a game (`SolverGame` for solvers here, `ModelGame`
for models of the user's own), `check_membership` with scores, and `verdict` in plain words.
"""

from .adapters import Train, trainer_of
from .game import (
    Game,
    MembershipCheck,
    ModelFailed,
    ModelGame,
    ScoreResult,
    SolverGame,
    check_membership,
    log_probabilities,
)
from .innovations import innovation_scores
from .replacements import replacements, worst_replacement
from .scores import (
    Answers,
    Fisher,
    KnownDirection,
    LiraOffline,
    LiraOnline,
    LossThreshold,
    MembershipScore,
    Rmia,
)
from .targets import Target, canary, hardest, mislabelled, most_exposed, random_target, worst_off
from .verdict import verdict

__all__ = [
    "Answers",
    "Fisher",
    "Game",
    "KnownDirection",
    "LiraOffline",
    "LiraOnline",
    "LossThreshold",
    "MembershipCheck",
    "MembershipScore",
    "ModelFailed",
    "ModelGame",
    "Rmia",
    "ScoreResult",
    "SolverGame",
    "Target",
    "Train",
    "canary",
    "check_membership",
    "hardest",
    "innovation_scores",
    "log_probabilities",
    "mislabelled",
    "most_exposed",
    "random_target",
    "replacements",
    "trainer_of",
    "verdict",
    "worst_off",
    "worst_replacement",
]
