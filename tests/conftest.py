"""Guards that hold for every test."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ROOMS = frozenset(
    {"mechanisms", "accounting", "solvers", "audits", "runs", "papers", "cli", "data"}
)


class _BareImportGuard(MetaPathFinder):
    """Refuse `import accounting`: a room has one name, `dpledger.accounting`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None and fullname in ROOMS:
            raise ImportError(f"Expected import dpledger.{fullname} instead got import {fullname}.")
        return None


sys.meta_path.insert(0, _BareImportGuard())
