"""What releases cost: composition, conversions, ledgers, certificates, planning.

>>> from dpledger.accounting import epsilon
>>> epsilon(noise_multiplier=4, steps=10, delta=1e-5, sampling="none", adjacency="zero-out-one")
ε ≤ 3.3414...

Names are loaded when they are asked for; everything else is importable from its module.
"""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .check.pld_checker import check as verify
    from .guarantees import Guarantee, guarantee
    from .ledger import MemoryLedger, SqliteLedger
    from .ledger.budget import Budget, BudgetExceeded
    from .planning import calibrate_noise_multiplier, calibrate_sampling_rate, rounds_within
    from .proof.certificate import Certificate, certify
    from .training import curve, epsilon, noise_multiplier, steps

__all__ = [
    "Budget",
    "BudgetExceeded",
    "Certificate",
    "Guarantee",
    "MemoryLedger",
    "SqliteLedger",
    "calibrate_noise_multiplier",
    "calibrate_sampling_rate",
    "certify",
    "curve",
    "epsilon",
    "guarantee",
    "noise_multiplier",
    "rounds_within",
    "steps",
    "verify",
]

__getattr__, __dir__ = names_from(__name__)
