"""Guards that hold for every test."""

import gc
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType

import pytest
from hypothesis import HealthCheck, settings

PACKAGE = Path(__file__).parents[1] / "src" / "dpledger"
ROOMS = frozenset(front.parent.name for front in PACKAGE.glob("*/__init__.py"))
"""The rooms of the package, each a link to a folder at the root."""


class _BareImportGuard(MetaPathFinder):
    """Refuse `import accounting`: a room has one name, `dpledger.accounting`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None and fullname in ROOMS:
            raise ImportError(f"Expected import dpledger.{fullname} instead got import {fullname}.")
        return None


sys.meta_path.insert(0, _BareImportGuard())

# a drawn example may take as long as a busy machine makes it
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_collection_finish() -> None:
    """Keep ten thousand tests out of every collection of garbage, and collect less often.

    It took a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


Calls = Callable[[Callable[[], object]], int]
"""Return how many functions, Python's and C's, are called while this one runs."""


@pytest.fixture
def calls() -> Calls:
    """Return a count of work that no other load of the machine can change, as a clock would."""

    def counted(work: Callable[[], object]) -> int:
        count = 0

        def note(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            work()
        finally:
            sys.setprofile(before)
        return count

    return counted
