"""The events of a solver, told before it runs: no data are needed, only their public shape."""

from collections.abc import Callable
from typing import Protocol, TypeVar, cast, overload

from ..mechanisms.collectives import Noted
from ..mechanisms.curators import Curator, PlanningCurator
from ..mechanisms.data_shape import DataShape
from ..mechanisms.events import Event
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.share_data import OnlySums, require_sum
from ..mechanisms.vertical_data import VerticalDataset, VerticalShape

D = TypeVar("D")
D_contra = TypeVar("D_contra", contravariant=True)


class Solves(Protocol[D_contra]):
    """Anything with a method `solve` that releases through a curator."""

    def solve(self, dataset: D_contra, curator: Curator) -> object: ...


@overload
def plan(
    solver: Solves[PrivateDataset] | Callable[[PrivateDataset, Curator], object],
    shape: DataShape,
    *,
    ideal: bool = False,
) -> tuple[Event, ...]: ...
@overload
def plan(
    solver: Solves[VerticalDataset] | Callable[[VerticalDataset, Curator], object],
    shape: VerticalShape,
    *,
    ideal: bool = False,
) -> tuple[Event, ...]: ...
def plan(
    solver: object, shape: DataShape | VerticalShape, *, ideal: bool = False
) -> tuple[Event, ...]:
    """Return the events that `solver` emits on any data of this shape; no record is read.

    Args:
        solver: an algorithm, or a function of (data set, curator) that releases as one does.
        shape: what is public about the data: `DataShape` of disjoint records, `VerticalShape` of
            parties that hold columns.
        ideal: whether to return the events of the algorithm on paper, with real numbers and real
            noise. What a paper promises is judged by these; a run computes in doubles, and its
            events cost slightly more (see `mechanisms.lattice`).
    """
    solve = cast("Callable[[object, Curator], object]", getattr(solver, "solve", solver))
    if isinstance(shape, VerticalShape):
        return planned_events(solve, VerticalDataset.planned(shape), ideal=ideal)
    return planned_events(solve, PrivateDataset.planned(shape), ideal=ideal)


def plan_across_parties(
    solver: Solves[PrivateDataset], shape: DataShape
) -> tuple[tuple[Event, ...], Noted]:
    """Return the events of `plan`, and the collectives that it asks for."""
    curator = PlanningCurator()
    curator.collectives = noted = Noted()
    solver.solve(PrivateDataset.planned(shape), curator)
    return tuple(curator.events), noted


def planned_events(
    solve: Callable[[D, Curator], object], planned: D, *, ideal: bool = False
) -> tuple[Event, ...]:
    """Return the events that `solve` emits on a handle without records; see `plan`.

    Raises `InvalidParameter` for other noise than Gaussian where only sums are seen: no party has a
    share of it.
    """
    curator = PlanningCurator(ideal=ideal)
    solve(planned, curator)
    if isinstance(planned, OnlySums):
        for event in curator.events:
            require_sum(event)
    return tuple(curator.events)
