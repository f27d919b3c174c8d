"""Independent trials of an attack at any scale: backends, and a store that survives a crash."""

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
