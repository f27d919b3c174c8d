"""Is the bound true: attacks, lower bounds on epsilon, cross-checks with other libraries.

What comes in: a solver with two neighbouring data sets, scores of a user's own attack, a black
box, trained models, a ledger, or a published claim. What goes out: lower bounds with a
confidence, tests with a level, and verdicts. An audit refutes or does not refute; that nothing was
found proves no privacy. `runs` and the command line call.
"""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from ..mechanisms.extras import MissingExtra as MissingExtra
    from .adversarial import adversarial_pair as adversarial_pair
    from .assessment import AttackResult as AttackResult
    from .assessment import NullControl as NullControl
    from .assessment import assess as assess
    from .bayesian import Bayesian as Bayesian
    from .bayesian import CredibleInterval as CredibleInterval
    from .bounds import ClopperPearson as ClopperPearson
    from .bounds import GaussianFamily as GaussianFamily
    from .bounds import LowerBound as LowerBound
    from .bounds import MuInterval as MuInterval
    from .bounds import Scores as Scores
    from .bounds import ThresholdPlan as ThresholdPlan
    from .bounds import ceiling as ceiling
    from .bounds import plan_threshold as plan_threshold
    from .claim_tests import ClaimTest as ClaimTest
    from .claim_tests import claim_tests as claim_tests
    from .claim_tests import mu_of_errors as mu_of_errors
    from .claim_tests import scores_tests as scores_tests
    from .crosschecks import Crosscheck as Crosscheck
    from .crosschecks import PeerCheck as PeerCheck
    from .crosschecks import Status as Status
    from .crosschecks import crosscheck as crosscheck
    from .curators import RecordingCurator as RecordingCurator
    from .curators import ReplayCurator as ReplayCurator
    from .curators import TranscriptCurator as TranscriptCurator
    from .datasets import AuditDataset as AuditDataset
    from .datasets import VerticalAuditDataset as VerticalAuditDataset
    from .falsifier import Falsification as Falsification
    from .falsifier import FlippedColumn as FlippedColumn
    from .falsifier import Neighbours as Neighbours
    from .falsifier import ReplacedRecord as ReplacedRecord
    from .falsifier import SearchTable as SearchTable
    from .falsifier import SensitivityLemma as SensitivityLemma
    from .falsifier import falsify as falsify
    from .foreign_code import Asked as Asked
    from .foreign_code import NoiseLaw as NoiseLaw
    from .foreign_code import Recorder as Recorder
    from .foreign_code import audit_foreign as audit_foreign
    from .importance_sampling import EpsilonInterval as EpsilonInterval
    from .importance_sampling import Tilt as Tilt
    from .importance_sampling import TiltedRuns as TiltedRuns
    from .importance_sampling import epsilon_interval as epsilon_interval
    from .importance_sampling import pair_interval as pair_interval
    from .importance_sampling import plan_tilt as plan_tilt
    from .importance_sampling import tilted_chunks as tilted_chunks
    from .metagradient import TunedPair as TunedPair
    from .metagradient import metagradient_pair as metagradient_pair
    from .metrics import RocPoint as RocPoint
    from .metrics import TprAtFpr as TprAtFpr
    from .metrics import auc as auc
    from .metrics import roc as roc
    from .metrics import tpr_at_fpr as tpr_at_fpr
    from .neighbours import NeighbourPair as NeighbourPair
    from .neighbours import flip_label as flip_label
    from .neighbours import longest_row as longest_row
    from .neighbours import opposite_gradients as opposite_gradients
    from .neighbours import random_record as random_record
    from .neighbours import turned_record as turned_record
    from .neighbours import zero_out as zero_out
    from .noise_tests import Residual as Residual
    from .noise_tests import noise_test_of_run as noise_test_of_run
    from .noise_tests import noise_tests as noise_tests
    from .noise_tests import residuals as residuals
    from .one_run import Canaries as Canaries
    from .one_run import OneRun as OneRun
    from .one_run import OneRunTradeOff as OneRunTradeOff
    from .one_run_counts import OneRunAnyCount as OneRunAnyCount
    from .replay import ReplayScores as ReplayScores
    from .replay import replay_attack as replay_attack
    from .replay import replay_chunks as replay_chunks
    from .selection import Bonferroni as Bonferroni
    from .selection import MultiSplit as MultiSplit
    from .selection import Split as Split
    from .sequential import Bet as Bet
    from .sequential import Evidence as Evidence
    from .sequential import SequentialTest as SequentialTest
    from .sequential import plan_bet as plan_bet
    from .trials import Attacked as Attacked
    from .trials import Backend as Backend
    from .trials import Dask as Dask
    from .trials import Loky as Loky
    from .trials import Ray as Ray
    from .trials import ScoreStore as ScoreStore
    from .trials import ScoreStoreError as ScoreStoreError
    from .trials import Serial as Serial
    from .trials import TrialExperiment as TrialExperiment
    from .trials import attack_trials as attack_trials
    from .trials import trial_scores as trial_scores
    from .trials import trials_at_once as trials_at_once
    from .violations import AnswerPair as AnswerPair
    from .violations import BlackBox as BlackBox
    from .violations import LearnedScore as LearnedScore
    from .violations import Violation as Violation
    from .violations import find_violation as find_violation
    from .violations import query_patterns as query_patterns

__getattr__, __dir__ = names_from(__name__)
