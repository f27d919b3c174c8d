"""What an OpenDP measurement says of itself: its metric, its measure and its privacy map at one.

    from dpledger.interop.opendp import tree_of_measurement
    tree = tree_of_measurement(measurement, adjacency=Adjacency.ADD_REMOVE_ONE)
    mechanisms_of_tree(tree, adjacency=..., sensitivity=1)   # pure: for ledgers and claims
    PldAccountant().compose(event_of_tree(tree))     # (ε, δ) and zCDP: the accountants in place

A measurement is no file: OpenDP has no stored form of it that could be read (0.16.0), and a stored
one would be a program. The object in memory answers for three things, and they are all that is
read: between which data sets, in which divergence, and at most how much. It is their bound, not one
of ours: nothing here looks at the noise, and the loss is known by its map alone.

OpenDP need not be installed; a measurement is told by what it answers.
"""

from typing import Any

from ..mechanisms.adjacency import Adjacency
from .event_trees import EventTree, Untranslatable

_DISTANCES = {
    "SymmetricDistance()": {Adjacency.ADD_REMOVE_ONE: 1, Adjacency.REPLACE_ONE: 2},
    "InsertDeleteDistance()": {Adjacency.ADD_REMOVE_ONE: 1, Adjacency.REPLACE_ONE: 2},
    "ChangeOneDistance()": {Adjacency.REPLACE_ONE: 1},
    "HammingDistance()": {Adjacency.REPLACE_ONE: 1},
}
"""How far apart neighbours are in each metric on data sets: a record replaced is one removed and
one added. Data sets of different size have no Hamming or change-one distance."""


def tree_of_measurement(measurement: Any, *, adjacency: Adjacency) -> EventTree:
    """Return what a measurement guarantees between neighbours, as an event of dp_accounting.

    Args:
        measurement: `opendp.mod.Measurement` on data sets: transformations from a data set's metric
            and a measurement chained.
        adjacency: the relation; its distance is looked up in the measurement's own input metric.

    Returns an `EpsilonDeltaDpEvent` for OpenDP's MaxDivergence and its approximate form, a
    `ZCDpEvent` for ZeroConcentratedDivergence.

    Raises:
        Untranslatable: the metric is none of data sets (a noise measurement alone speaks of numbers
            and not of records) or does not know the relation; or the measure has no such event; or
            its data sets have one size, which a record more is not of.
    """
    metric, measure = str(measurement.input_metric), str(measurement.output_measure)
    known = _DISTANCES.get(metric)
    if known is None:
        raise Untranslatable(
            f"input_metric={metric} must be a distance of data sets ({', '.join(_DISTANCES)}); "
            "chain the transformation that reads the records before the measurement."
        )
    if adjacency not in known:
        listed = " or ".join(relation.value for relation in known)
        raise Untranslatable(f"A measurement over {metric} must be read under {listed}.")
    if measure not in ("MaxDivergence", "Approximate(MaxDivergence)", "ZeroConcentratedDivergence"):
        raise Untranslatable(
            f"output_measure={measure} must be MaxDivergence, Approximate(MaxDivergence) or "
            "ZeroConcentratedDivergence; fix a delta first (make_fix_delta)."
        )
    domain = str(measurement.input_domain)
    if adjacency is Adjacency.ADD_REMOVE_ONE and "size=" in domain:
        # its members are an even distance apart, so that its map is free to say nothing of one
        raise Untranslatable(
            f"input_domain={domain} must be without a size under add-remove-one: a measurement of "
            "data sets of one size says nothing of a record more; read it under replace-one."
        )
    loss = measurement.map(known[adjacency])
    _require_a_path(measurement, known[adjacency], loss)
    if measure == "ZeroConcentratedDivergence":
        return EventTree("ZCDpEvent", {"rho": loss, "xi": 0.0})
    epsilon, delta = loss if measure.startswith("Approximate") else (loss, 0.0)
    return EventTree("EpsilonDeltaDpEvent", {"epsilon": epsilon, "delta": delta})


def _require_a_path(measurement: Any, distance: int, loss: Any) -> None:
    """Raise `Untranslatable` where twice the distance costs more than two steps of it may.

    Then no data set lies between, and the map says of one step what is true of none.
    """
    if isinstance(loss, tuple):
        return
    most = 4 if str(measurement.output_measure) == "ZeroConcentratedDivergence" else 2
    twice = measurement.map(2 * distance)
    if twice > most * loss * _ROUNDING:
        raise Untranslatable(
            f"The privacy map must be one between neighbours: {loss} at the distance {distance}, "
            f"but {twice} at {2 * distance}, which two steps of it do not cost."
        )


_ROUNDING = 1.0 + 1e-6
"""What OpenDP adds for floating point, at most, relative to a loss."""
