"""dpledger: a proof-carrying ledger for differential privacy."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("dpledger")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
