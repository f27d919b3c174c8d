"""No neighbour moves a release by more than its derived sensitivity, and some attain it.

For every solver an optimiser chooses the differing record, what it is replaced by, the others, and
the transcript so far, which both data sets share; a curator that adds no noise notes what would be
released. The ratio of the change to the derived sensitivity is never above 1; where the bound is
tight, it is found within 1 %. Every start is seeded.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from dpledger.audits.datasets import AuditDataset, VerticalAuditDataset
from dpledger.mechanisms import (
    Adjacency,
    Curator,
    Event,
    FixedBatch,
    InvalidParameter,
    Loss,
    Poisson,
    PrivateDataset,
    Sensitive,
)
from dpledger.mechanisms.curators import Release
from dpledger.mechanisms.inside import party_of, private_value
from dpledger.mechanisms.subsampling import Draw, drawn_by
from dpledger.solvers import (
    CentralisedDpAdmm,
    Centring,
    ConsensusDpAdmm,
    ConstantSteps,
    DpAdmm,
    DpSgd,
    LinearLoss,
    Logistic,
    MAdmm,
    Network,
    PrAdmm,
    PsAdmm,
    PublishedDvpAdmm,
    PublishedPrAdmm,
    PublishedPsAdmm,
    PublishedSharingAdmm,
    PvpAdmm,
    RAdmm,
    SampledPsAdmm,
    SharingAdmm,
    StochasticRounds,
    fused_lasso,
)

ZERO, REPLACE, ADD = Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE
EVERY = (ZERO, REPLACE, ADD)
COUNT = 4
"""Records of the differing party in the larger data set."""


class NotingCurator(Curator):
    """Notes values, and answers with numbers given in advance.

    A sample is the `first` foremost records of the first party, and `others` of each other one.
    """

    def __init__(self, numbers: np.ndarray, first: int, others: int) -> None:
        self.numbers = numbers
        self.first, self.others = first, others
        self.noted: list[tuple[Event, Sensitive, np.ndarray]] = []

    def _draw(self, dataset: PrivateDataset, scheme: Any) -> Draw:
        parties = party_of(dataset)
        inside = np.zeros(len(parties))
        for party in np.unique(parties):
            drawn = self.others if party else self.first
            inside[np.flatnonzero(parties == party)[:drawn]] = 1.0
        return drawn_by(self, scheme, inside)

    def _deliver(self, release: Release) -> np.ndarray:
        value = private_value(release.sensitive)
        assert value is not None
        size = value.size
        places = (len(self.noted) * size + np.arange(size)) % len(self.numbers)
        self.noted.append((release.event, release.sensitive, value))
        return self.numbers[places].reshape(value.shape)


@dataclass(frozen=True)
class Case:
    """A solver, and for each release how much of the bound must be found (0 where not tight)."""

    solver: Any
    tight: dict[str, float]
    adjacencies: tuple[Adjacency, ...] = EVERY
    parties: int = 2
    drawn: int = 0
    vertical: bool = False
    renormalised: tuple[str, ...] = ("primal", "snapshot", "gradient")


SHARING = SharingAdmm(2, 1.0, tolerance=1e-6)
CENTRING = Centring(1, share=0.2, radius=0.4, constant=0.5, intercept=0.4)
ALONE = fused_lasso(2, [(0, 1)], [1.0])
PRIMAL, GRADIENT = {"primal": 0.99}, {"gradient": 0.99}


def horizontal_cases(loss: Loss) -> dict[str, Case]:
    """Every solver for records that live with one party each."""
    pair = PrAdmm(Network(2, ((0, 1),)), 2, 1.0, tolerance=1e-7, loss=loss)
    recycled = RAdmm(replace(pair, rounds=3), 1.0)
    pvp = PvpAdmm(2, 1.0, tolerance=1e-7, loss=loss)
    stochastic = StochasticRounds(2, 3, 0.5, loss=loss)
    return {
        "star": Case(DpAdmm(3, 1.0, ConstantSteps(1.0), loss=loss), PRIMAL),
        "consensus": Case(ConsensusDpAdmm(3, 1.0, 1.0, momentum=0.5, loss=loss), GRADIENT),
        "consensus, centred": Case(
            ConsensusDpAdmm(3, 1.0, 1.0, momentum=0.5, metric=CENTRING, loss=loss),
            {"mean": 0.85, "gradient": 0.8},  # those rows do not hold the constant
            renormalised=("mean", "gradient"),
        ),
        "consensus, scaled": Case(
            ConsensusDpAdmm(3, 1.0, 1.0, metric=replace(CENTRING, scaling=True), loss=loss),
            # squares are not negative: two of them are at most sqrt(2) apart, and 2 is priced
            {"mean": 0.85, "gradient": 0.3},
            renormalised=("mean", "gradient"),
        ),
        "pvp": Case(pvp, PRIMAL),
        "dvp, published": Case(PublishedDvpAdmm(pvp, 0.1), PRIMAL, (REPLACE,)),
        "pr": Case(pair, PRIMAL),
        "pr, published noise": Case(PublishedPrAdmm(pair), PRIMAL, (REPLACE,)),
        "m-admm": Case(MAdmm(pair, 1.5), PRIMAL),
        "r-admm": Case(recycled, PRIMAL),
        "ps, full gradients": Case(PsAdmm(stochastic, 1.0), GRADIENT),
        "ps, published": Case(
            PublishedPsAdmm(stochastic, 1.0), {"gradient": 0.0}, (REPLACE,), drawn=1
        ),
        "ps, poisson": Case(
            SampledPsAdmm(stochastic, Poisson(0.5), 0.1, 1.0, 1.0),
            {"snapshot": 0.99, "correction": 0.99},
            (ZERO, ADD),
            drawn=2,
        ),
        "ps, batch": Case(
            SampledPsAdmm(stochastic, FixedBatch(2), 0.1, 1.0, 1.0),
            {"snapshot": 0.99, "correction": 0.99},
            (REPLACE,),
            drawn=2,
        ),
        "centralised": Case(CentralisedDpAdmm(ALONE, 3, 1.0, 4.0, loss=loss), GRADIENT, parties=1),
        "centralised, accelerated": Case(
            CentralisedDpAdmm(ALONE, 3, 1.0, 4.0, loss=loss, accelerated=True), GRADIENT, parties=1
        ),
        "sgd": Case(DpSgd(3, 1.0, ConstantSteps(0.5), loss=loss), GRADIENT, renormalised=()),
        "sgd, cut": Case(
            DpSgd(3, 1.0, ConstantSteps(0.5), loss=loss, clip=0.3), GRADIENT, renormalised=()
        ),
        "sgd, poisson": Case(
            DpSgd(3, 1.0, ConstantSteps(0.5), loss=loss, scheme=Poisson(0.5), clip=0.3),
            GRADIENT,
            (ZERO, ADD),
            drawn=2,
            renormalised=(),
        ),
        "sgd, batch": Case(
            DpSgd(3, 1.0, ConstantSteps(0.5), loss=loss, scheme=FixedBatch(2)),
            GRADIENT,
            (REPLACE,),
            drawn=2,
        ),
    }


CASES = {
    **horizontal_cases(Logistic()),
    "sharing": Case(SHARING, {"scores": 0.0, "dual": 0.99}, (ZERO, REPLACE), vertical=True),
    "sharing, published": Case(
        PublishedSharingAdmm(SHARING, 1.0),
        {"model": 0.0, "scores": 0.0, "dual": 0.99},
        (ZERO, REPLACE),
        vertical=True,
    ),
}
NUMBERS = 14


def unit(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def horizontal(case: Case, adjacency: Adjacency, labels: np.ndarray, point: np.ndarray) -> Any:
    """Two neighbours: record 0 and what becomes of it, among others that are all alike."""
    length = 0.5 - 0.5 * np.cos(point[3])
    party_of = np.repeat(np.arange(case.parties), COUNT)
    rows = np.tile(length * unit(point[2]), (len(party_of), 1))
    rows[0] = unit(point[0])
    signs = np.full(len(party_of), labels[2])
    signs[0] = labels[0]
    names = tuple("ab"[: case.parties])
    fixed: dict[str, Any] = {
        "adjacency": adjacency,
        "row_bound": 1.0,
        "parties": names,
        "n_min": COUNT - 1 if adjacency is ADD else None,
    }
    one = AuditDataset(rows, signs, party_of=party_of, **fixed)
    if adjacency is ADD:
        return one, AuditDataset(rows[1:], signs[1:], party_of=party_of[1:], **fixed)
    other = np.zeros(2) if adjacency is ZERO else unit(point[1])
    return one, one.with_record(0, features=other, label=labels[1])


def vertical(case: Case, adjacency: Adjacency, labels: np.ndarray, point: np.ndarray) -> Any:
    """Two neighbours: record 0 differs at both parties and in its label."""
    rows = np.tile((0.5 - 0.5 * np.cos(point[5])) * unit(point[4]), (COUNT, 1))
    blocks = [rows.copy(), rows.copy()]
    blocks[0][0], blocks[1][0] = unit(point[0]), unit(point[1])
    signs = np.full(COUNT, labels[2])
    signs[0] = labels[0]
    one = VerticalAuditDataset(
        blocks, signs, adjacency=adjacency, parties=("a", "b"), public_labels=False
    )
    if adjacency is ZERO:
        return one, one.with_record(0, features=[np.zeros(2), np.zeros(2)], label=0.0)
    return one, one.with_record(0, features=[unit(point[2]), unit(point[3])], label=labels[1])


def ratios(
    case: Case, adjacency: Adjacency, labels: np.ndarray, point: np.ndarray
) -> dict[str, float]:
    """Each release's largest change over its derived sensitivity, by the first word of its name."""
    one, two = (vertical if case.vertical else horizontal)(case, adjacency, labels, point)
    numbers = point[-NUMBERS:]
    found: dict[str, float] = {}
    larger = NotingCurator(numbers, case.drawn, case.drawn)
    # without its first record the first party's sample has one record fewer, the others the same
    fewer = 1 if adjacency is ADD and case.drawn else 0
    smaller = NotingCurator(numbers, case.drawn - fewer, case.drawn)
    case.solver.solve(one, larger)
    case.solver.solve(two, smaller)
    for (event, sensitive, value), (_, _, other) in zip(larger.noted, smaller.noted, strict=True):
        moved, bound = float(np.linalg.norm(value - other)), sensitive.sensitivity.value
        name = event.context.release.split()[0]
        assert moved <= bound
        if bound > 0.0:
            found[name] = max(moved / bound, found.get(name, 0.0))
    return found


def worst(case: Case, adjacency: Adjacency, name: str) -> float:
    """The largest ratio found for releases of one name: random starts, the best of them polished.

    Every other start is near the worst case on paper: nearly opposite rows with one label.
    """
    rng, starts = np.random.default_rng(17), []

    def lost(point: np.ndarray, labels: np.ndarray) -> float:
        try:
            return -ratios(case, adjacency, labels, point)[name]
        except InvalidParameter:  # too far away for the tolerance: refused
            return 0.0

    for trial in range(30):
        labels, angles = rng.choice([-1.0, 1.0], 3), rng.uniform(0, 2 * np.pi, 6)
        numbers = rng.normal(size=NUMBERS) * 10 ** rng.uniform(-1, 4)
        if trial % 2:
            labels[:] = labels[0]
            if case.vertical:
                angles[2:4] = angles[:2] + np.pi + rng.normal(size=2) / 20
            else:
                angles[1:3] = angles[0] + np.pi + rng.normal(size=2) / 20
                angles[3] = np.pi if adjacency is ADD else 0.0
        point = np.concatenate([angles, numbers])
        value = lost(point, labels)
        if 0 < case.tight[name] <= -value:
            return -value
        starts.append((value, trial, labels, point))
    polished = [
        minimize(lost, point, (labels,), "Nelder-Mead", options={"maxfev": 150, "adaptive": True})
        for _, _, labels, point in sorted(starts)[:2]
    ]
    return max(-float(found.fun) for found in polished)


CHOSEN = [(name, adjacency) for name, case in CASES.items() for adjacency in case.adjacencies]


def priced(case: Case, adjacency: Adjacency, release: str) -> float:
    """A mean renormalised over n is priced for the smaller n: 2G/(n-1), of which 2G/n is moved."""
    mean = adjacency is ADD and release in case.renormalised
    return (COUNT - 1) / COUNT if mean else 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "adjacency"), CHOSEN)
def test_no_neighbour_that_a_search_finds_exceeds_a_derived_sensitivity(
    name: str, adjacency: Adjacency
) -> None:
    case = CASES[name]
    for release, share in case.tight.items():
        assert (
            1.0 >= worst(case, adjacency, release) > 0.5 * share * priced(case, adjacency, release)
        )


@pytest.mark.parametrize(
    ("name", "adjacency"), [chosen for chosen in CHOSEN if not CASES[chosen[0]].vertical]
)
def test_linear_losses_attain_what_is_tight(name: str, adjacency: Adjacency) -> None:
    # opposite rows with one label; the others null, or opposite too where a mean is renormalised
    case = horizontal_cases(LinearLoss())[name]
    angles = np.array([0.0, np.pi, np.pi, np.pi if adjacency is ADD else 0.0, 0.0, 0.0])
    # messages that move a centre by less than rows are long: none of these is beyond all rows
    numbers = 0.1 * np.random.default_rng(3).normal(size=NUMBERS)
    found = ratios(case, adjacency, np.ones(3), np.concatenate([angles, numbers]))
    assert set(found) == set(case.tight)
    for release, share in case.tight.items():
        # linear losses have one gradient everywhere, so there is nothing to correct
        if release != "correction":
            assert found[release] >= share * priced(case, adjacency, release)
