"""dpledger: a proof-carrying ledger for differential privacy.

>>> import dpledger as dp
>>> dp.epsilon(noise_multiplier=1.1, records=60000, batch=256, epochs=60, delta=1e-5,
...            sampling="poisson", adjacency="add-remove-one")
ε ≤ 2.381689... at δ = 1e-05 (...; add-remove-one, sampling poisson; noise multiplier 1.1; ...)
>>> dp.noise_multiplier(epsilon=2, records=60000, batch=256, epochs=60, delta=1e-5,
...                     sampling="poisson", adjacency="add-remove-one").noise_multiplier
1.22417...
>>> dp.audit_claim("H-3").verdict_text
'fails (...)'
>>> from dpledger.runs import DEMO
>>> planned = dp.plan(DEMO)
>>> round(planned.noise_multiplier, 2), len(planned.events), planned.guarantee.epsilon <= 1
(23.34, 37, True)

These names are the front door; they are loaded when they are asked for. Everything else is
importable from its room: mechanisms, accounting, solvers, audits, runs, papers.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .accounting.check.pld_checker import check as verify
    from .accounting.guarantees import guarantee
    from .accounting.ledger import SqliteLedger as Ledger
    from .accounting.ledger.budget import Budget
    from .accounting.proof.certificate import certify
    from .accounting.renyi.curves import Selection
    from .accounting.training import curve, epsilon, noise_multiplier, steps
    from .audits.replay import replay_attack
    from .mechanisms.adjacency import Adjacency
    from .papers import audit as audit_claim
    from .runs import plan, run

__version__: str

__all__ = [
    "Adjacency",
    "Budget",
    "Ledger",
    "Selection",
    "__version__",
    "audit_claim",
    "certify",
    "curve",
    "epsilon",
    "guarantee",
    "noise_multiplier",
    "plan",
    "replay_attack",
    "run",
    "steps",
    "verify",
]

_PLACES = {
    "Adjacency": ("mechanisms.adjacency", "Adjacency"),
    "Budget": ("accounting.ledger.budget", "Budget"),
    "Ledger": ("accounting.ledger", "SqliteLedger"),
    "Selection": ("accounting.renyi.curves", "Selection"),
    "audit_claim": ("papers", "audit"),
    "certify": ("accounting.proof.certificate", "certify"),
    "curve": ("accounting.training", "curve"),
    "epsilon": ("accounting.training", "epsilon"),
    "guarantee": ("accounting.guarantees", "guarantee"),
    "noise_multiplier": ("accounting.training", "noise_multiplier"),
    "plan": ("runs.planning", "plan"),
    "replay_attack": ("audits.replay", "replay_attack"),
    "run": ("runs.execution", "run"),
    "steps": ("accounting.training", "steps"),
    "verify": ("accounting.check.pld_checker", "check"),
}


def __getattr__(name: str) -> object:
    """Return a name of the front door from its module, loaded at its first use."""
    if name == "__version__":
        return _version()
    if name not in _PLACES:
        raise AttributeError(f"module 'dpledger' has no attribute {name!r}")
    module, own = _PLACES[name]
    found: object = getattr(import_module(f".{module}", __name__), own)
    globals()[name] = found
    return found


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dpledger")
    except PackageNotFoundError:  # a source tree that was never installed
        return "0+unknown"


def __dir__() -> list[str]:
    """Return the names of the front door."""
    return __all__
