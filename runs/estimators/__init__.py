"""scikit-learn estimators whose fit is planned, paid for in a ledger, run, and proved.

This package needs the extra `dpledger[sklearn]`; nothing else in the solvers does. See
`PrivateAdmmClassifier` and `PrivateAdmmRegressor` for records that live with one party each, and
`PrivateSharingClassifier` for parties that hold columns of the same records.
"""

try:
    import sklearn as _sklearn
except ImportError as missing:
    raise ImportError(
        "Expected scikit-learn for dpledger.runs.estimators: pip install 'dpledger[sklearn]'."
    ) from missing

from .algorithms import AdmmAlgorithm, SolverFactory
from .horizontal import PrivateAdmmClassifier
from .paid_run import PublicRound
from .regressor import PrivateAdmmRegressor, RegressionLoss
from .vertical import PrivateSharingClassifier

__all__ = [
    "AdmmAlgorithm",
    "PrivateAdmmClassifier",
    "PrivateAdmmRegressor",
    "PrivateSharingClassifier",
    "PublicRound",
    "RegressionLoss",
    "SolverFactory",
]

del _sklearn
