"""Who releases: losses, regularisers, step sizes, the ADMM family and its baselines."""

from .losses import LinearLoss, Logistic
from .regularisers import L1, L2, Regulariser
from .star import DpAdmm, PublishedDpAdmm, PvpAdmm, Solver, StarState
from .steps import ConstantSteps, NonsmoothSteps, SmoothSteps, Steps

__all__ = [
    "L1",
    "L2",
    "ConstantSteps",
    "DpAdmm",
    "LinearLoss",
    "Logistic",
    "NonsmoothSteps",
    "PublishedDpAdmm",
    "PvpAdmm",
    "Regulariser",
    "SmoothSteps",
    "Solver",
    "StarState",
    "Steps",
]
