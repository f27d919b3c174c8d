"""Independent trials of an attack at any scale: backends, and a store that survives a crash."""

from .backends import Backend, Dask, Loky, Ray, Serial
from .experiment import Attacked, Experiment, attack_trials, trial_scores, trials_at_once
from .store import ChunkKey, ScoreStore, ScoreStoreError

__all__ = [
    "Attacked",
    "Backend",
    "ChunkKey",
    "Dask",
    "Experiment",
    "Loky",
    "Ray",
    "ScoreStore",
    "ScoreStoreError",
    "Serial",
    "attack_trials",
    "trial_scores",
    "trials_at_once",
]
