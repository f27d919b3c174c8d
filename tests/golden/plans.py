"""Fifty plans: every solver, published and repaired, every relation, sampling, own noise, columns.

`found` says what a plan is, byte for byte. A plan needs no record, so neither does anything here.
"""

import hashlib
import zlib
from base64 import b85encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from dpledger.mechanisms import (
    Adjacency,
    ClassLabels,
    DataShape,
    Event,
    FixedBatch,
    PlanningCurator,
    Poisson,
    PrivateDataset,
    RealLabels,
    VerticalDataset,
    VerticalShape,
)
from dpledger.mechanisms.encoding import canonical_json, event_to_json, subject_hash
from dpledger.runs.configuration import (
    read_configuration,
)
from dpledger.runs.estimators.algorithms import (
    AdmmAlgorithm,
    Recipe,
)
from dpledger.runs.planning import (
    planned_events,
)
from dpledger.solvers import (
    L1,
    CentralisedDpAdmm,
    ConstantSteps,
    ConvexWeights,
    DpAdmm,
    DpSgd,
    Hinge,
    Huber,
    IterationDecay,
    LinearLoss,
    MAdmm,
    Multinomial,
    NonsmoothSteps,
    PeriodicDecay,
    PrAdmm,
    PsAdmm,
    PublishedCentralisedDpAdmm,
    PublishedDpAdmm,
    PublishedDvpAdmm,
    PublishedPrAdmm,
    PublishedPsAdmm,
    PublishedSharingAdmm,
    PvpAdmm,
    RAdmm,
    SampledPsAdmm,
    SharingAdmm,
    SmoothedHinge,
    SmoothSteps,
    StochasticRounds,
    TabulatedNoise,
    bounded_squared,
    complete,
    five_agents,
    fused_lasso,
    hub,
    ring,
)

__all__ = ["PLANS", "canonical_bytes", "found", "whole"]

DEMO = Path(__file__).parent / "data" / "documents" / "demo.toml"

ZERO, REPLACE, ADD = Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE

FIVE = DataShape(("a", "b", "c", "d", "e"), 400, 4, 1.0, REPLACE)
FIVE_ZERO, FIVE_ADD = replace(FIVE, adjacency=ZERO), replace(FIVE, adjacency=ADD)
ALONE = DataShape(("all",), 60, 4, 1.0, REPLACE)
UNEQUAL = DataShape(
    ("hub", "small", "middle", "large"), 10, 3, 1.0, REPLACE, party_counts=(30, 10, 20, 40)
)
CLASSES = replace(FIVE, label_domain=ClassLabels(3))
REAL = replace(FIVE, label_domain=RealLabels(2.0), row_bound=0.75)
COLUMNS = VerticalShape(("bank", "shop", "town"), 30, (3, 2, 1), 1.0, REPLACE, public_labels=True)

NETWORK = PrAdmm(five_agents(), 5, 5.0)
INNER = StochasticRounds(3, 4, 0.5, penalty=0.5, regularisation=0.1)
LASSO = fused_lasso(4, [(0, 1), (1, 2)], [1.0, -1.0])
CENTRALISED = CentralisedDpAdmm(LASSO, 6, 5.0, 4.0, regularisation=0.05)
STAR = DpAdmm(7, 5.0, SmoothSteps(0.25, 3.0))
SHARING = SharingAdmm(4, 5.0)

Plan = tuple[Any, DataShape | VerticalShape]

SOLVED: dict[str, Plan] = {
    "star, constant steps": (DpAdmm(7, 5.0, ConstantSteps(1.0)), FIVE),
    "star, smooth steps, zero-out-one": (STAR, FIVE_ZERO),
    "star, smooth steps, add-remove-one": (STAR, FIVE_ADD),
    "star, nonsmooth steps, l1, hinge": (
        DpAdmm(3, 2.5, NonsmoothSteps(1.0, 3.0), regulariser=L1(), loss=Hinge()),
        FIVE,
    ),
    "star, own noise": (DpAdmm(3, 2.0, ConstantSteps(0.5)), UNEQUAL),
    "star, three classes": (DpAdmm(3, 2.0, ConstantSteps(0.5), loss=Multinomial(3)), CLASSES),
    "star, squared loss": (
        DpAdmm(3, 2.0, ConstantSteps(0.5), loss=Huber(width=1.0, label_bound=2.0)),
        REAL,
    ),
    "star, bounded squared loss, zero-out-one": (
        DpAdmm(3, 2.0, ConstantSteps(0.5), loss=bounded_squared(score_bound=0.75, label_bound=2.0)),
        replace(REAL, adjacency=ZERO),
    ),
    "star, published": (PublishedDpAdmm(STAR, 10, 23.0), FIVE),
    "star, one holder of all records": (DpAdmm(2, 1.0, ConstantSteps(1.0)), ALONE),
    "pvp": (PvpAdmm(4, 5.0), FIVE),
    "pvp, add-remove-one": (PvpAdmm(4, 5.0), FIVE_ADD),
    "pvp, own noise": (PvpAdmm(4, 5.0), UNEQUAL),
    "admm without privacy": (PvpAdmm(2, None), FIVE),
    "dvp, published": (PublishedDvpAdmm(PvpAdmm(4, None), 0.1), FIVE),
    "network": (NETWORK, FIVE),
    "network, periodic decay, ring": (
        PrAdmm(ring(5), 5, 5.0, PeriodicDecay(0.9, 2), regularisation=0.1),
        FIVE_ZERO,
    ),
    "network, iteration decay, hub": (
        PrAdmm(hub(5), 5, 5.0, IterationDecay(0.015), threshold=0.5),
        FIVE_ADD,
    ),
    "network, own noise, linear": (
        PrAdmm(hub(4), 3, 2.0, loss=LinearLoss(), tolerance=1e-9),
        UNEQUAL,
    ),
    "network, complete, smoothed hinge": (PrAdmm(complete(5), 3, 2.0, loss=SmoothedHinge()), FIVE),
    "network, without noise": (PrAdmm(five_agents(), 5, 0.0), FIVE),
    "network, tabulated noise": (
        PrAdmm(complete(5), 3, 5.0, TabulatedNoise((Fraction(1), Fraction(1, 2), Fraction(3)))),
        FIVE,
    ),
    "network, published": (
        PublishedPrAdmm(PrAdmm(five_agents(), 5, 5.0, PeriodicDecay(0.9))),
        FIVE,
    ),
    "m-admm": (MAdmm(NETWORK, 1.2), FIVE),
    "r-admm": (RAdmm(NETWORK, 1.0), FIVE_ZERO),
    "stochastic, full gradients": (PsAdmm(INNER, 5.0), FIVE),
    "stochastic, full gradients, l1, add-remove-one": (
        PsAdmm(replace(INNER, regulariser=L1()), 5.0),
        FIVE_ADD,
    ),
    "stochastic, Poisson, zero-out-one": (
        SampledPsAdmm(INNER, Poisson(0.2), 0.5, 5.0, 1.5),
        FIVE_ZERO,
    ),
    "stochastic, Poisson, add-remove-one": (
        SampledPsAdmm(INNER, Poisson(0.2), 0.5, 5.0, 1.5),
        FIVE_ADD,
    ),
    "stochastic, fixed batch": (SampledPsAdmm(INNER, FixedBatch(2), 0.5, 5.0, 1.5), FIVE),
    "stochastic, published": (PublishedPsAdmm(INNER, 0.5), FIVE),
    "stochastic, published, convex weights": (
        PublishedPsAdmm(INNER, 0.5, weights=ConvexWeights()),
        FIVE,
    ),
    "centralised": (CENTRALISED, ALONE),
    "centralised, accelerated, zero-out-one": (
        replace(CENTRALISED, accelerated=True),
        replace(ALONE, adjacency=ZERO),
    ),
    "centralised, published": (PublishedCentralisedDpAdmm(CENTRALISED), ALONE),
    "sgd": (DpSgd(4, 5.0, ConstantSteps(0.5)), FIVE_ADD),
    "sgd, cut": (DpSgd(4, 5.0, NonsmoothSteps(1.0, 3.0), clip=0.3), FIVE),
    "sgd, Poisson": (DpSgd(4, 5.0, ConstantSteps(0.5), Poisson(0.3), clip=0.3), FIVE_ADD),
    "sgd, fixed batch": (DpSgd(4, 5.0, ConstantSteps(0.5), FixedBatch(3)), FIVE),
    "columns, public labels": (SHARING, COLUMNS),
    "columns, private labels, zero-out-one": (
        SHARING,
        replace(COLUMNS, public_labels=False, adjacency=ZERO),
    ),
    "columns, opening dual": (
        replace(SHARING, opening=True, rounds=2),
        replace(COLUMNS, public_labels=False),
    ),
    "columns, published": (
        PublishedSharingAdmm(SHARING, 1.0),
        replace(COLUMNS, public_labels=False),
    ),
}


def _planned(solver: Any, shape: DataShape | VerticalShape) -> list[Event]:
    data = VerticalDataset if isinstance(shape, VerticalShape) else PrivateDataset
    curator = PlanningCurator()
    solver.solve(data.planned(shape), curator)
    return curator.events


def _named(algorithm: AdmmAlgorithm) -> list[Event]:
    """Return what an estimator of this algorithm plans at noise multiplier 4."""
    shape = ALONE if algorithm is AdmmAlgorithm.CENTRALISED else FIVE
    return _planned(algorithm.factory(Recipe(3, 0.01))(4.0, shape), shape)


def _demo(noise_multiplier: float) -> Sequence[Event]:
    """Return what the demo's file of version 0.1.0 plans."""
    configuration = read_configuration(DEMO)
    return planned_events(configuration, configuration.solvers.noisy(noise_multiplier))


PLANS: Mapping[str, Callable[[], Sequence[Event]]] = {
    **{name: partial(_planned, *each) for name, each in SOLVED.items()},
    **{f"estimator, {each.value}": partial(_named, each) for each in AdmmAlgorithm},
    "demo": partial(_demo, 37.25),
}


WHOLE = (
    "star, own noise",
    "network, iteration decay, hub",
    "stochastic, fixed batch",
    "columns, opening dual",
    "dvp, published",
)
"""Plans of which not only the hash is pinned, so that a difference can be read."""


def canonical_bytes(events: Sequence[Event]) -> bytes:
    """Return the bytes whose hash is the subject of a certificate."""
    return canonical_json([event_to_json(event) for event in events])


def found() -> dict[str, dict[str, Any]]:
    """Return each plan's number of events, hash of canonical bytes, and subject."""
    measured: dict[str, dict[str, Any]] = {}
    for name, plan in PLANS.items():
        events = plan()
        measured[name] = {
            "events": len(events),
            "sha256": hashlib.sha256(canonical_bytes(events)).hexdigest(),
            "subject": subject_hash(events),
        }
    return measured


def whole() -> dict[str, str]:
    """Return canonical bytes, compressed and written in base 85."""
    return {
        name: b85encode(zlib.compress(canonical_bytes(PLANS[name]()), 9)).decode() for name in WHOLE
    }
