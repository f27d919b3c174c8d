"""The law of the wall: no program of public operations moves a release by more than it prints.

Random programs run on two neighbouring data sets of every kind. What is compared is what leaves,
before noise: points of the noise's lattice, in exact rational arithmetic, with the sensitivity that
the event states. Refusals are the same for both neighbours, and rare where magnitudes are usual.
"""

from collections.abc import Callable
from fractions import Fraction
from math import ldexp
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse

from dpledger.accounting.check import sensitivities
from dpledger.audits.datasets import AuditDataset, VerticalAuditDataset
from dpledger.mechanisms import (
    Adjacency,
    BoundedColumn,
    EventList,
    FixedBatch,
    GaussianStep,
    InvalidParameter,
    PlanningCurator,
    Poisson,
    PrivateDataset,
    PrivateTable,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    VerticalDataset,
    concatenate,
    linear_map,
)
from dpledger.mechanisms.centred import CentredRows
from dpledger.mechanisms.encoding import mechanism_to_json
from dpledger.mechanisms.errors import UnprotectedFunction
from dpledger.mechanisms.lattice import LATTICE_BITS, _nearest
from dpledger.mechanisms.sensitivity import Sensitivity
from dpledger.mechanisms.subsampling import drawn_by
from dpledger.mechanisms.vertical_data import LocalProblem
from dpledger.solvers.losses import Hinge, LinearLoss, Logistic, SmoothedHinge

Rng = np.random.Generator
Program = Callable[[Any], Sensitive]
WIDTH, RECORDS = 3, 9
PROGRAMS = 150


def size(rng: Rng, reach: float) -> float:
    """Return a number of random sign whose magnitude is uniform on a logarithmic scale."""
    return float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-reach, reach))


def vector(rng: Rng, reach: float, length: int = WIDTH) -> np.ndarray:
    found = rng.normal(size=length) * abs(size(rng, reach))
    return found * rng.choice([0.0, 1.0], size=length, p=[0.2, 0.8])


def horizontal(rng: Rng, reach: float) -> tuple[Any, Any, Program]:
    """Return two neighbours, and what is computed first on either."""
    rows = np.array([vector(rng, reach) for _ in range(RECORDS)])
    labels, holder = rng.choice([-1.0, 1.0], size=RECORDS), np.arange(RECORDS) % 2
    adjacency = rng.choice(
        np.array([Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE])
    )
    changed, flipped = rows.copy(), labels.copy()
    null, removed = (
        adjacency is Adjacency.ZERO_OUT_ONE,
        adjacency is Adjacency.ADD_REMOVE_ONE,
    )
    changed[4] = 0.0 if null else rng.choice([-1.0, 1.0]) * vector(rng, reach)
    flipped[4] = rng.choice([-1.0, 1.0])
    others = [k for k in range(RECORDS) if not (removed and k == 4)]
    layout: Any = rng.choice(["dense", "sparse"])
    bound = abs(size(rng, min(reach, 90)))
    here, there = (
        AuditDataset(
            sparse.csr_array(table[some]) if layout == "sparse" else table[some],
            marks[some],
            adjacency=adjacency,
            row_bound=bound,
            party_of=holder[some],
            parties=("a", "b"),
            n_min=4 if removed else None,
        )
        for table, marks, some in ((rows, labels, list(range(RECORDS))), (changed, flipped, others))
    )
    loss: Any = rng.choice(np.array([Logistic(), Hinge(), SmoothedHinge(0.5), LinearLoss()]))
    w = vector(rng, min(reach, 90))
    if rng.random() < 0.25:  # two trials, of which each moves by as much as one alone may
        w = np.stack([w, vector(rng, min(reach, 90))])[:, None]
    kind, seed = rng.integers(7), int(rng.integers(2**31))
    scheme = FixedBatch(2) if adjacency is Adjacency.REPLACE_ONE else Poisson(0.5)
    chosen = (rng.random(RECORDS) < 0.5).astype(float)
    weights = np.array([size(rng, min(reach, 20)), rng.choice([0.0, 1.0])])
    linear, radius = vector(rng, 2), abs(size(rng, min(reach, 90)))

    def start(data: PrivateDataset) -> Sensitive:
        if kind == 0:
            return data.mean_gradient(loss, w)
        if kind == 1:
            return data.mean_gradient(loss, w, weights=weights)
        if kind == 2:
            return data.sum_gradient(loss, w, radius=radius)
        if kind == 3:
            return linear_map(np.eye(WIDTH, WIDTH**2, k=1), data.second_moment())
        if kind == 4:
            if removed:  # the others are drawn or not as they are with the record beside them
                drawn = chosen if data is here else chosen[others]
                sample = data._sampled(drawn_by(None, scheme, drawn))
            else:
                sample = SamplingCurator(EventList(), SeededSampler(seed)).sample(data, scheme)
            return sample.sum_correction(loss, w, anchor=linear, radius=1.0)
        if kind == 5:
            radii = CentredRows(data, np.full(WIDTH, 0.1 * bound), radius=0.5 * bound)
            return radii.mean_gradient(loss, w)
        smooth = Logistic() if isinstance(loss, Hinge) else loss
        tolerance = 1e-6 * bound
        return data.strongly_convex_argmin(
            smooth,
            modulus=0.05 * bound * max(1.0, bound),
            linear=linear * bound,
            tolerance=tolerance,
            start=np.zeros(WIDTH),
        )

    return here, there, start


def vertical(rng: Rng, reach: float) -> tuple[Any, Any, Program]:
    """Return two neighbours of columns, and what is computed first on either."""
    bound = abs(size(rng, min(reach, 20)))
    rows = np.array([vector(rng, reach) for _ in range(WIDTH)])
    labels = rng.choice([-1.0, 1.0], size=WIDTH)
    here = VerticalAuditDataset(
        [rows],
        labels,
        adjacency=Adjacency.REPLACE_ONE,
        parties=("a",),
        public_labels=False,
        row_bound=bound,
    )
    there = here.with_record(1, features=[-rows[1]], label=-float(labels[1]))
    point, target = vector(rng, min(reach, 90)), vector(rng, 2)
    kind = rng.integers(3)
    problem = LocalProblem(
        pull=target,
        penalty=1.0 / bound**2,
        modulus=0.1,
        slope_bound=1.0,
        radius=2.0,
        tolerance=1e-3,
    )

    def start(data: VerticalDataset) -> Sensitive:
        if kind == 0:
            return data.scores("a", point)
        if kind == 1:
            return data.predictions("a", problem)
        return data.dual(Logistic(), target, penalty=0.5, tolerance=1e-6)

    return here, there, start


class AuditTable(PrivateTable):
    """A table whose values a test may look at."""

    __module__ = "dpledger.tests"  # of the program's own, as what derives from a handle must be
    __slots__ = ()
    _auditable: ClassVar[bool] = True


def tabular(rng: Rng, reach: float) -> tuple[Any, Any, Program]:
    """Return two neighbouring tables, and a statistic of either, of three numbers."""
    reach = min(reach, 20)
    columns: dict[str, BoundedColumn] = {}
    for name in "xyz":
        ends = sorted([size(rng, reach), size(rng, reach)])
        columns[name] = BoundedColumn(ends[0], ends[1] + abs(size(rng, reach)))
    cells = {name: rng.normal(size=RECORDS) * abs(size(rng, reach)) for name in columns}
    adjacency = rng.choice(
        np.array([Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE])
    )
    removed = adjacency is Adjacency.ADD_REMOVE_ONE
    changed = {name: cell.copy() for name, cell in cells.items()}
    for name, column in columns.items():
        null = adjacency is Adjacency.ZERO_OUT_ONE
        changed[name][4] = 0.0 if null else rng.choice([column.lower, column.upper])
    others = [k for k in range(RECORDS) if not (removed and k == 4)]
    here, there = (
        AuditTable(
            {name: cell[some] for name, cell in table.items()},
            columns,
            adjacency=adjacency,
            n_min=RECORDS - 1 if removed else None,
        )
        for table, some in ((cells, list(range(RECORDS))), (changed, others))
    )
    kind = int(rng.integers(5))
    edges = np.sort(rng.normal(size=2)) * abs(size(rng, 1)) + np.array([0.0, 1.0])

    def start(data: PrivateTable) -> Sensitive:
        if kind == 0:
            return concatenate(concatenate(data.mean("x"), data.mean("y")), data.mean("z"))
        if kind == 1:
            return concatenate(concatenate(data.sum("x"), data.count()), data.sum("z"))
        if kind == 2:
            return data.second_moments(["x", "y"])
        if kind == 3:
            return data.histogram("x", edges.tolist())
        return concatenate(concatenate(data.mean("x"), data.sum("x")), data.sum("x"))

    return here, there, start


def operation(rng: Rng, reach: float) -> Callable[[Sensitive], Sensitive]:
    """Return one public operation; shifts are also carried by a value of sensitivity 0."""
    number, shift = size(rng, min(reach, 60)), vector(rng, reach)
    matrix = rng.normal(size=(WIDTH, WIDTH)) * abs(size(rng, min(reach, 60)))
    radius = abs(size(rng, min(reach, 90)))
    return [
        lambda x: x * number,
        lambda x: x / number,
        lambda x: x + shift,
        lambda x: shift - x,
        lambda x: x.clipped(radius),
        lambda x: linear_map(matrix, x),
        lambda x: x + (x * 0.0 + shift),
        lambda x: (x * 0.0 + shift) - x,
        lambda x: x + x * number,
        lambda x: linear_map(np.hstack([matrix, matrix.T]), concatenate(x, x * number)),
        lambda x: x.clipped(0.0) + x,
        lambda x: -x,
    ][rng.integers(12)]


def composed(start: Program, operations: list[Callable[[Sensitive], Sensitive]]) -> Program:
    def program(data: Any) -> Sensitive:
        with np.errstate(all="raise"):
            value = start(data)
            for each in operations:
                try:
                    value = each(value)
                except UnprotectedFunction:  # samples are not clipped as a whole
                    assert value.sampled_part is not None
        return value

    return program


def priced(sensitive: Sensitive, noise_std: float) -> Fraction:
    """Return the squared sensitivity that the event of a release states, of a drawn record too."""
    price = PlanningCurator()._price(sensitive, noise_std)
    part = sensitive.sampled_part
    if part is None:
        return checked(price(sensitive.sensitivity)).squared
    moved = part.mapped(price)
    constant = Fraction(0) if moved.constant is None else checked(moved.constant).root
    return (constant + checked(moved.sampled).root) ** 2


def checked(priced: Sensitivity) -> Sensitivity:
    """Return a sensitivity that the checker has derived again, with the rounding of its value."""
    written: Any = mechanism_to_json(GaussianStep(priced, 1.0))
    found = sensitivities.read_sensitivity(written["sensitivity"])
    assert found.squared == priced.squared
    assert (found.distance is None) == ("computed" not in found.rules)
    return priced


def lattice_points(sensitive: Sensitive, noise_std: float) -> list[list[Fraction]]:
    """Return what leaves before noise, a list of numbers for each trial."""
    assert sensitive._value is not None
    return [
        _lattice_points(trial.ravel(), noise_std)
        for trial in sensitive._value.reshape(-1, *sensitive._value.shape[-2:])
    ]


def _lattice_points(flat: np.ndarray, noise_std: float) -> list[Fraction]:
    if noise_std == 0.0:
        return [Fraction(float(x)) for x in flat]
    coarse, fine = _nearest(flat, noise_std)
    step = Fraction(ldexp(noise_std, -LATTICE_BITS))
    return [(int(c) * 2**32 + int(f)) * step for c, f in zip(coarse, fine, strict=True)]


def largest_move(one: list[list[Fraction]], other: list[list[Fraction]]) -> Fraction:
    """Return the largest squared change of a trial."""
    return max(
        sum(((a - b) ** 2 for a, b in zip(*pair, strict=True)), Fraction(0))
        for pair in zip(one, other, strict=True)
    )


def outcome(program: Program, data: Any) -> tuple[Sensitive | None, str]:
    try:
        return program(data), ""
    except InvalidParameter as refusal:
        return None, str(refusal)


@pytest.mark.parametrize("reach", [6.0, 300.0])
@pytest.mark.parametrize("kind", [horizontal, vertical, tabular])
def test_no_release_moves_by_more_than_its_event_states(kind: Any, reach: float) -> None:
    rng = np.random.default_rng(int(reach) + [horizontal, vertical, tabular].index(kind))
    refused, largest = 0, Fraction(0)
    for _ in range(PROGRAMS):
        here, there, start = kind(rng, reach)
        program = composed(start, [operation(rng, reach) for _ in range(rng.integers(5))])
        one, words = outcome(program, here)
        other, told_other = outcome(program, there)
        assert (one is None, words) == (other is None, told_other)
        if one is None or other is None:
            refused += 1
            continue
        assert one.sensitivity == other.sensitivity
        assert one.rounding == other.rounding
        multiplier = float(10.0 ** rng.uniform(-1, 3))
        noise_std = PlanningCurator()._noise_std(one, multiplier)
        try:
            bounds = [priced(each, noise_std) for each in (one, other)]
        except InvalidParameter:
            refused += 1
            continue
        moved = largest_move(*(lattice_points(each, noise_std) for each in (one, other)))
        assert bounds[0] == bounds[1]
        assert moved <= bounds[0]
        if bounds[0]:
            largest = max(largest, moved / bounds[0])
    # neither an idle search nor one that refuses what is usual
    assert largest > Fraction(1, 5)
    assert refused <= PROGRAMS * (0.05 if reach < 10 else 0.9)


def test_no_release_of_a_pair_moves_by_more_than_its_event_states() -> None:
    """Two data sets side by side, as attacks hold them: what either would have said."""
    rng, counted = np.random.default_rng(5), 0
    for _ in range(PROGRAMS):
        here, there, start = horizontal(rng, 6.0)
        program = composed(start, [operation(rng, 6.0) for _ in range(rng.integers(5))])
        try:
            both = program(here.paired_with(there))
            noise_std = PlanningCurator()._noise_std(both, 10.0)
            bound = priced(both, noise_std)
        except InvalidParameter:
            continue
        alone, _ = outcome(program, here)
        assert alone is not None
        points = lattice_points(both, noise_std)
        trials = len(points) // 2
        assert points[:trials] == lattice_points(alone, noise_std)
        assert largest_move(points[:trials], points[trials:]) <= bound
        counted += 1
    assert counted > PROGRAMS / 2


@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_an_added_record_moves_a_sampled_release_by_the_parts_that_its_event_states(
    layout: str, drawn: bool
) -> None:
    """Poisson samples under add/remove, alone and beside values computed on all records.

    A record that is not drawn moves the part computed on all records alone; one that is drawn also
    moves its own party's sum, and by rounding the others', whose padding depends on how many are
    drawn. What all rows move together is priced.
    """
    rng, largest = np.random.default_rng(31 + drawn), Fraction(0)
    for _ in range(PROGRAMS):
        records, parties = int(rng.integers(40, 120)), int(rng.integers(2, 6))
        rows = rng.normal(size=(records, WIDTH)) * abs(size(rng, 3.0))
        labels, holder = rng.choice([-1.0, 1.0], size=records), np.arange(records) % parties
        chosen = (rng.random(records) < 0.5).astype(float)
        chosen[-1] = float(drawn)
        bound, w, anchor = abs(size(rng, 2.0)), vector(rng, 2.0), vector(rng, 2.0)
        loss: Any = rng.choice(np.array([Logistic(), Hinge(), LinearLoss()]))
        number = size(rng, 2.0) if rng.random() < 0.7 else 0.0
        found: list[Sensitive] = []
        for count in (records, records - 1):
            data = AuditDataset(
                sparse.csr_array(rows[:count]) if layout == "sparse" else rows[:count],
                labels[:count],
                adjacency=Adjacency.ADD_REMOVE_ONE,
                row_bound=bound,
                party_of=holder[:count],
                parties=tuple("abcde"[:parties]),
                n_min=6,
            )
            sample = data._sampled(drawn_by(None, Poisson(0.5), chosen[:count]))
            value = sample.sum_correction(loss, w, anchor=anchor, radius=0.9 * bound)
            if number:
                value = value + data.mean_gradient(loss, anchor) * number
            found.append(value * 0.3)
        one, other = found
        noise_std = PlanningCurator()._noise_std(one, 30.0)
        part = one.sampled_part
        assert part is not None
        moved = part.mapped(PlanningCurator()._price(one, noise_std))
        stated = Fraction(0) if moved.constant is None else moved.constant.root
        stated += moved.sampled.root if drawn else 0
        points = [lattice_points(each, noise_std) for each in (one, other)]
        change = largest_move(*points)
        assert change <= stated**2
        if stated:
            largest = max(largest, change / stated**2)
    assert largest > Fraction(1, 100)
