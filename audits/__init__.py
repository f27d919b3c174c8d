"""Is the bound true: attacks, lower bounds on epsilon, cross-checks with other libraries."""

from .assessment import AttackResult, NullControl, assess
from .bayesian import Bayesian, CredibleInterval
from .bounds import (
    ClopperPearson,
    GaussianFamily,
    LowerBound,
    MuInterval,
    Scores,
    ThresholdPlan,
    ceiling,
    plan_threshold,
)
from .crosscheck import Crosscheck, MissingExtra, PeerCheck, Status, crosscheck
from .dp_events import dp_event_of, mechanism_of
from .metrics import RocPoint, TprAtFpr, auc, roc, tpr_at_fpr
from .neighbours import (
    NeighbourPair,
    flip_label,
    longest_row,
    opposite_gradients,
    random_record,
    zero_out,
)
from .one_run import Canaries, OneRun, OneRunTradeOff
from .replay import ReplayScores, replay_attack, replay_chunks
from .sandwich import (
    EpsilonInterval,
    Tilt,
    TiltedRuns,
    epsilon_interval,
    plan_tilt,
    sandwich,
    tilted_chunks,
)
from .selection import Bonferroni, MultiSplit, Split
from .sequential import Bet, Evidence, SequentialTest, plan_bet
from .violations import (
    AnswerPair,
    BlackBox,
    LearnedScore,
    Violation,
    find_violation,
    query_patterns,
)

__all__ = [
    "AnswerPair",
    "AttackResult",
    "Bayesian",
    "Bet",
    "BlackBox",
    "Bonferroni",
    "Canaries",
    "ClopperPearson",
    "CredibleInterval",
    "Crosscheck",
    "EpsilonInterval",
    "Evidence",
    "GaussianFamily",
    "LearnedScore",
    "LowerBound",
    "MissingExtra",
    "MuInterval",
    "MultiSplit",
    "NeighbourPair",
    "NullControl",
    "OneRun",
    "OneRunTradeOff",
    "PeerCheck",
    "ReplayScores",
    "RocPoint",
    "Scores",
    "SequentialTest",
    "Split",
    "Status",
    "ThresholdPlan",
    "Tilt",
    "TiltedRuns",
    "TprAtFpr",
    "Violation",
    "assess",
    "auc",
    "ceiling",
    "crosscheck",
    "dp_event_of",
    "epsilon_interval",
    "find_violation",
    "flip_label",
    "longest_row",
    "mechanism_of",
    "opposite_gradients",
    "plan_bet",
    "plan_threshold",
    "plan_tilt",
    "query_patterns",
    "random_record",
    "replay_attack",
    "replay_chunks",
    "roc",
    "sandwich",
    "tilted_chunks",
    "tpr_at_fpr",
    "zero_out",
]
