"""Independent trials of an attack at any scale: backends, and a store that survives a crash.

A trial runs an algorithm on one of two neighbouring data sets and scores what came out. Chunks of
trials are seeded by their number, so that any process computes any of them and the result is the
same.
"""

from .backends import Backend, BackendName, Dask, Loky, Ray, Serial, backend_of
from .experiment import Attacked, TrialExperiment, attack_trials, trial_scores, trials_at_once
from .store import ChunkKey, ScoreStore, ScoreStoreError

__all__ = [
    "Attacked",
    "Backend",
    "BackendName",
    "ChunkKey",
    "Dask",
    "Loky",
    "Ray",
    "ScoreStore",
    "ScoreStoreError",
    "Serial",
    "TrialExperiment",
    "attack_trials",
    "backend_of",
    "trial_scores",
    "trials_at_once",
]
