"""OpenDP measurements are known by their metric, their measure and their map, and nothing else."""

from dataclasses import dataclass
from typing import Any

import pytest

from dpledger.interop.dp_events import mechanisms_of_tree
from dpledger.interop.event_trees import EventTree, Untranslatable
from dpledger.interop.opendp import tree_of_measurement
from dpledger.mechanisms import Adjacency

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE
NOISE = 1.0
"""Of the sum of cells in [0, 1] in the measurements below."""


@dataclass
class Spoken:
    """What `opendp.mod.Measurement` answers with (0.16.0): the words of its metric and measure."""

    input_metric: str
    output_measure: str
    loss: Any
    input_domain: str = "VectorDomain(AtomDomain(T=f64))"

    def map(self, distance: int) -> Any:
        return self.loss(distance)


def pure(metric: str) -> Spoken:
    return Spoken(metric, "MaxDivergence", lambda distance: 0.5 * distance)


@pytest.mark.parametrize(
    ("metric", "adjacency", "epsilon"),
    [
        ("SymmetricDistance()", ADD, 0.5),
        ("SymmetricDistance()", REPLACE, 1.0),
        ("InsertDeleteDistance()", REPLACE, 1.0),
        ("ChangeOneDistance()", REPLACE, 0.5),
        ("HammingDistance()", REPLACE, 0.5),
    ],
)
def test_neighbours_are_as_far_apart_as_the_metric_says(metric, adjacency, epsilon):
    tree = tree_of_measurement(pure(metric), adjacency=adjacency)
    assert tree == EventTree("EpsilonDeltaDpEvent", {"epsilon": epsilon, "delta": 0.0})
    assert len(mechanisms_of_tree(tree, adjacency=adjacency, sensitivity=2)) == 1


@pytest.mark.parametrize(
    ("metric", "measure", "adjacency", "words"),
    [
        ("AbsoluteDistance(f64)", "MaxDivergence", ADD, "chain the transformation"),
        ("ChangeOneDistance()", "MaxDivergence", ADD, "read under replace-one"),
        ("SymmetricDistance()", "MaxDivergence", Adjacency.ZERO_OUT_ONE, "read under"),
        ("SymmetricDistance()", "SmoothedMaxDivergence", ADD, "fix a delta"),
        ("SymmetricDistance()", "RenyiDivergence", ADD, "output_measure"),
    ],
)
def test_what_it_does_not_say_of_records_is_refused(metric, measure, adjacency, words):
    def never(distance: int) -> float:
        raise AssertionError("the map must not be asked")

    with pytest.raises(Untranslatable, match=words):
        tree_of_measurement(Spoken(metric, measure, never), adjacency=adjacency)


def test_a_measurement_of_data_sets_of_one_size_is_not_asked_about_one_more() -> None:
    """OpenDP's map of a mean: no two of them are at distance one, and it says nearly nothing."""
    domain = "VectorDomain(AtomDomain(T=f64), size=10)"
    mean = Spoken("SymmetricDistance()", "MaxDivergence", lambda d: float(d // 2), domain)
    with pytest.raises(Untranslatable, match=r"size=10.* must be without a size under add-remove"):
        tree_of_measurement(mean, adjacency=ADD)
    assert tree_of_measurement(mean, adjacency=REPLACE).fields["epsilon"] == 1.0
    mean.input_domain = "of which nothing is said"
    with pytest.raises(Untranslatable, match="two steps of it do not cost"):
        tree_of_measurement(mean, adjacency=ADD)


@pytest.mark.parametrize(("power", "allowed"), [(1, True), (2, True), (3, False)])
def test_a_map_that_grows_beyond_steps_of_neighbours_is_refused(power: int, allowed: bool) -> None:
    measured = Spoken("SymmetricDistance()", "ZeroConcentratedDivergence", lambda d: 0.1 * d**power)
    if allowed:
        assert tree_of_measurement(measured, adjacency=ADD).fields["rho"] == 0.1
        return
    with pytest.raises(Untranslatable, match="two steps of it do not cost"):
        tree_of_measurement(measured, adjacency=ADD)


def test_measures_with_a_delta_and_of_zcdp_are_events_of_their_kind():
    both = Spoken("SymmetricDistance()", "Approximate(MaxDivergence)", lambda d: (0.5 * d, 1e-6))
    zcdp = Spoken("SymmetricDistance()", "ZeroConcentratedDivergence", lambda d: 0.125 * d**2)
    assert tree_of_measurement(both, adjacency=ADD).fields == {"epsilon": 0.5, "delta": 1e-6}
    assert tree_of_measurement(zcdp, adjacency=REPLACE) == EventTree(
        "ZCDpEvent", {"rho": 0.5, "xi": 0.0}
    )


def test_opendp_answers_in_these_words():
    """Where OpenDP is installed: a clamped sum with Laplace and with Gaussian noise."""
    opendp: Any = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    space = (
        opendp.vector_domain(opendp.atom_domain(T=float, nan=False)),
        opendp.symmetric_distance(),
    )
    total = space >> opendp.t.then_clamp((0.0, 1.0)) >> opendp.t.then_sum()
    laplace = total >> opendp.m.then_laplace(NOISE)
    gaussian = total >> opendp.m.then_gaussian(2 * NOISE)
    tree = tree_of_measurement(laplace, adjacency=ADD)
    assert 1.0 <= tree.fields["epsilon"] <= 1.0 + 1e-6
    rho = tree_of_measurement(gaussian, adjacency=ADD).fields["rho"]
    assert 0.125 <= rho <= 0.125 * (1 + 1e-6)
