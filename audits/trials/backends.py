"""Where independent tasks run: in this process, in others, or on a cluster.

Results come back in the order of the tasks, whatever the backend; what a task returns must depend
on the task alone.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed, parallel_config

from ...mechanisms.errors import InvalidParameter, require_positive_int
from ...mechanisms.extras import import_extra

T = TypeVar("T")
R = TypeVar("R")


class Backend(Protocol):
    """Runs a function on tasks; the function and the tasks must pickle, except for `Serial`."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in order. A caller who stops early stops the rest."""
        ...


@dataclass(frozen=True, slots=True)
class Serial:
    """One task after another, in this process."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in order."""
        yield from map(function, tasks)


@dataclass(frozen=True, slots=True)
class Loky:
    """Processes of this machine, by joblib; BLAS has one thread in each.

    Args:
        jobs: number of processes.
    """

    jobs: int

    def __post_init__(self) -> None:
        require_positive_int("jobs", self.jobs)

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in order."""
        with parallel_config(backend="loky", n_jobs=self.jobs, inner_max_num_threads=1):
            parallel: Any = Parallel(return_as="generator")
        yield from parallel(delayed(function)(task) for task in tasks)


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Other machines.

    Args:
        address: of the scheduler; None for processes of this machine, for the length of the call.
        jobs: number of processes without an address.
    """

    address: str | None = None
    jobs: int = 1

    def __post_init__(self) -> None:
        require_positive_int("jobs", self.jobs)

    def options(self, **local: object) -> dict[str, Any]:
        """Return the address, or what starts processes here."""
        return local if self.address is None else {"address": self.address}


@dataclass(frozen=True, slots=True)
class Dask(_Cluster):
    """A Dask cluster, or Dask's processes on this machine; needs the extra `dask`."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in order; raises `MissingExtra` where Dask is not installed."""
        distributed = import_extra("distributed", "dask")
        options = self.options(n_workers=self.jobs, threads_per_worker=1, dashboard_address=None)
        with distributed.Client(**options) as client:
            for future in client.map(function, list(tasks), pure=False):
                yield future.result()
                future.release()


@dataclass(frozen=True, slots=True)
class Ray(_Cluster):
    """A Ray cluster, or Ray's processes on this machine; needs the extra `ray`."""

    def map(self, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield the results in order; raises `MissingExtra` where Ray is not installed."""
        ray = import_extra("ray", "ray")
        with ray.init(**self.options(num_cpus=self.jobs, include_dashboard=False)):
            remote = ray.remote(lambda task: function(task))
            for reference in [remote.remote(task) for task in tasks]:
                yield ray.get(reference)


class BackendName(Enum):
    """Where trials can run."""

    SERIAL = "serial"
    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


def backend_of(
    name: BackendName | None = None, *, jobs: int = 1, address: str | None = None
) -> Backend:
    """Return a backend by name: without one, processes by loky, unless one job is all.

    Raises `InvalidParameter` for options that contradict each other.
    """
    if name is None:
        name = BackendName.SERIAL if jobs == 1 else BackendName.LOKY
    if address is not None and name not in (BackendName.DASK, BackendName.RAY):
        raise InvalidParameter("address", address, "None unless the backend is dask or ray")
    if name is BackendName.SERIAL:
        if jobs > 1:
            raise InvalidParameter("jobs", jobs, "1 where the backend is serial")
        return Serial()
    if name is BackendName.LOKY:
        return Loky(jobs)
    kind = Dask if name is BackendName.DASK else Ray
    return kind(address=address, jobs=jobs)
