"""Laws that a reviewer tried against handles, files of a run, fits, and units of two parties.

Messages are held fixed, so that whatever still differs was computed from the records; epsilons are
compared with integrals and enumeration, minimisers with gradients in thirty digits.
"""

from __future__ import annotations

import copy
import io
import itertools
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import joblib
import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import dpledger as dp
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    BoundedColumn,
    Context,
    Event,
    EventList,
    GaussianStep,
    InvalidParameter,
    PoissonSampled,
    PrivateDataset,
    PrivateTable,
    RealLabels,
    SampledWithoutReplacement,
    SampledWithReplacement,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    declared,
)
from dpledger.mechanisms.curators import Curator, Release
from dpledger.mechanisms.subsampling import Draw, Scheme, drawn_by, drawn_records
from dpledger.runs.configuration import read_configuration
from dpledger.runs.estimators import PrivateAdmmClassifier
from dpledger.solvers import ClippedLogistic, LinearLoss, Logistic, SmoothedHinge

Floats = NDArray[np.float64]
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE
RELATIONS = (REPLACE, Adjacency.ZERO_OUT_ONE, ADD)


# --- files of a run ------------------------------------------------------------------------------
class Pinned(Curator):
    """Notes private values and events, and says whatever a seed says."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.seen: list[tuple[Floats, Event]] = []

    def _random(self) -> np.random.Generator:
        return np.random.default_rng((self._seed, len(self.seen)))

    def _draw(self, dataset: PrivateDataset, scheme: Scheme) -> Draw:
        party_of = self._party_of(dataset)
        uniforms = self._random().uniform(size=len(party_of))
        return drawn_by(self, scheme, drawn_records(scheme, uniforms, party_of))

    def _deliver(self, release: Release) -> Floats:
        value = self._value_of(release.sensitive)
        assert value is not None
        self.seen.append((np.array(value), release.event))
        size = self._random().choice([0.01, 1.0, 30.0]) * min(1.0, release.scale)
        return np.asarray(self._random().normal(size=value.shape) * size)


SOLVERS = {
    "consensus": 'algorithm = "consensus-admm"\nrounds = 3\nintercept = true\n',
    "star": 'algorithm = "dp-admm"\nrounds = 3\ndistance = 5.0\n',
    "sums": 'algorithm = "dp-sgd"\nrounds = 3\nsteps = "constant"\nstep_size = 0.5\nclip = 0.3\n',
    "batch": 'algorithm = "dp-sgd"\nrounds = 3\nsteps = "constant"\nstep_size = 0.5\nbatch = 3\n',
    "minimisers": 'algorithm = "pvp-admm"\nrounds = 2\n',
    "network": 'algorithm = "pr-admm"\nrounds = 2\nnetwork = "complete"\n',
    "inner": 'algorithm = "ps-admm"\nrounds = 2\ninner_steps = 2\nsteps = "constant"\n'
    "step_size = 0.2\n",
}


def written(folder: Path, solver: str, relation: Adjacency, rng: np.random.Generator) -> str:
    """Write a run file and a schema of two or three classes; return the table's header."""
    parties, bound = int(rng.integers(2, 4)), rng.choice([0.1, 1.0, 3.0])
    several, resized = bool(rng.integers(2)), relation is ADD
    label = 'kind = "class", classes = ["p", "q", "r"]'
    label = label if several else 'kind = "label", positive = ["p"], negative = ["q", "r"]'
    (folder / "schema.toml").write_text(
        f'row_bound = {bound}\ncolumns = [{{kind = "numeric", name = "a", lower = -1, upper = 3}}, '
        '{kind = "numeric", name = "b", lower = 0, upper = 1, on_outside = "clip"}, '
        '{kind = "categorical", name = "c", categories = ["x", "y z", "7"]}, '
        f'{{name = "l", {label}}}]\n'
    )
    loss = 'loss = "multinomial"\n' if several else ""
    (folder / "run.toml").write_text(
        f'[data]\nfiles = ["t.csv"]\nschema = "schema.toml"\nparties = {parties}\n'
        f"train_records = {8 if resized else 50}\n{'held_out = 0.25' if resized else ''}\n"
        f'[privacy]\nadjacency = "{relation.value}"\ndelta = 1e-5\nepsilon = 2.0\n'
        f'[solver]\n{SOLVERS[solver]}{loss}[noise]\nsampler = "system"\n'
        f"[attack]\nparties = {parties if solver == 'network' else 1}\n"
    )
    return "a,b,c,l\n"


def a_line(rng: np.random.Generator) -> str:
    """Return a record with cells at their bounds and beyond, or next to nothing."""
    a = rng.choice([-1.0, 3.0, 0.0, 1e-300, rng.uniform(-1, 3)])
    b = rng.choice([0.0, 1.0, 5.0, -2.0, rng.uniform()])
    return f"{a},{b},{rng.choice(['x', 'y z', '7'])},{rng.choice(['p', 'q', 'r'])}"


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_line_of_a_file_moves_a_message_further_than_its_event_says(
    solver: str, tmp_path: Path
) -> None:
    """Tried: seven algorithms of run files on text files that differ in a line, in two or three
    parties, of two or three classes; a third of the lines alike; every message of a run."""
    rng = np.random.default_rng(11)
    for relation, trial in itertools.product(RELATIONS, range(3)):
        if solver == "batch" and relation is not REPLACE:
            continue  # a curator that draws by places draws others where there is a record more
        header, lines = written(tmp_path, solver, relation, rng), [a_line(rng) for _ in range(64)]
        lines = lines[:1] * 20 * (trial % 2) + lines
        lines, place = lines[:64], int(rng.integers(64))
        other = [] if relation is ADD else [a_line(rng)]
        runs: list[list[tuple[Floats, Event]]] = []
        for some in (lines, [*lines[:place], *other, *lines[place + 1 :]]):
            (tmp_path / "t.csv").write_text(header + "\n".join(some) + "\n")
            asked, curator = read_configuration(tmp_path / "run.toml"), Pinned(trial)
            asked.solvers.noisy(5.0).solve(asked.load()[0], curator)
            runs.append(curator.seen)
        most = 1 + (relation is Adjacency.ZERO_OUT_ONE)  # of two records, where one is replaced
        for (first, event), (second, same) in zip(*runs, strict=True):
            mechanism: Any = event.mechanism
            inner = getattr(mechanism, "event", mechanism)
            assert event == same
            assert np.linalg.norm(first - second) <= most * inner.sensitivity.value


# --- units that several parties hold records of --------------------------------------------------
def tail(at: Floats) -> Floats:
    """Return P(N > at) of a normal number."""
    return np.asarray(special.ndtr(-at))


def delta_of_two(rate: float, shift: float, epsilon: float) -> float:
    """Return delta, in both orders, of two parties' N(0, 1) that each are shifted with a chance."""
    z = np.linspace(-13.0, shift + 13.0, 60_001)
    none = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    some = (1 - rate) * none + rate * np.exp(-((z - shift) ** 2) / 2) / np.sqrt(2 * np.pi)
    lost = np.log1p(rate * np.expm1(shift * z - shift**2 / 2))
    found = []
    for sign in (1, -1):
        # what the other party's loss must be above, or below, and where it is
        ratio = np.expm1(sign * epsilon - lost) / rate
        with np.errstate(all="ignore"):
            edge = np.where(ratio > -1, (np.log1p(ratio) + shift**2 / 2) / shift, -np.inf)
        above = (1 - rate) * tail(edge) + rate * tail(edge - shift)
        both = (above, tail(edge)) if sign > 0 else (1 - tail(edge), 1 - above)
        dense = (some, none) if sign > 0 else (none, some)
        gap = dense[0] * both[0] - np.exp(epsilon) * dense[1] * both[1]
        found.append(float(np.sum(gap) * (z[1] - z[0])))
    return max(found)


@pytest.mark.parametrize("kind", ["poisson", "fixed"])
def test_a_unit_with_a_record_at_each_of_two_parties_has_no_more_delta_than_is_printed(
    kind: str,
) -> None:
    """Tried: one sampled Gaussian step that names both parties, a unit of two records; rates of 1 %
    to a half, noise of 0.3 to 2 sensitivities, both orders of the data sets."""
    for rate, noise in itertools.product((0.5, 0.1, 0.01), (0.3, 1.0, 2.0)):
        fixed = kind == "fixed"
        step = GaussianStep(declared(1, "tried", adjacency=REPLACE if fixed else ADD), noise)
        drawn = SampledWithoutReplacement(step, round(100 * rate), 100)
        both = Context(("a", "b"), 1, "sum", Audience.SERVER)
        events = [Event(drawn if fixed else PoissonSampled(step, rate), both)]
        for delta in (1e-2, 1e-6):
            epsilon = dp.guarantee(events, delta=delta, group=2).epsilon.upper_float
            assert delta_of_two(rate, 1 / noise, epsilon) <= delta * (1 + 1e-6)


def law_of_a_batch(records: Sequence[float], batch: int, noise: float, at: Floats) -> Floats:
    """Return the density of a sum over draws with replacement, each of all records, plus noise."""
    sums = Counter(round(sum(each), 9) for each in itertools.product(records, repeat=batch))
    found = sum(n * np.exp(-((at - s) ** 2) / 2 / noise**2) for s, n in sums.items())
    return np.asarray(found / len(records) ** batch / noise / np.sqrt(2 * np.pi))


def test_a_unit_in_a_batch_drawn_with_replacement_has_no_more_delta_than_is_printed() -> None:
    """Tried: two to five records, one to three draws, units of one and two records at one party,
    records at the ends and in the middle of what they may be; all draws enumerated."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        count, batch, size = (int(rng.integers(*ends)) for ends in ((2, 6), (1, 4), (1, 3)))
        noise = float(rng.choice([0.2, 0.35, 0.6, 1.0, 2.0]))
        others = rng.choice([0.0, 0.5, 1.0], count - size).tolist()
        mine = rng.choice([0.0, 1.0], size).tolist()
        at = np.linspace(-10 * noise, batch + 10 * noise, 20_001)
        p, q = (
            law_of_a_batch([*others, *own], batch, noise, at)
            for own in (mine, [1 - each for each in mine])
        )
        step = GaussianStep(declared(1, "tried", adjacency=REPLACE), noise)
        context = Context((), 1, "sum", Audience.SERVER)
        events = [Event(SampledWithReplacement(step, batch, count), context)]
        for delta in (1e-1, 1e-4, 1e-7):
            odds = np.exp(dp.guarantee(events, delta=delta, group=size).epsilon.upper_float)
            gaps = (np.maximum(p - odds * q, 0), np.maximum(q - odds * p, 0))
            assert max(float(gap.sum()) for gap in gaps) * (at[1] - at[0]) <= delta * (1 + 1e-4)


# --- handles -------------------------------------------------------------------------------------
TAKEN: tuple[Any, ...] = (
    *(np.array(0.3), "0.3", b"0.3", np.str_("0.3"), Decimal("0.3"), Fraction(3, 10), True),
    *(np.True_, np.float16(0.3), np.longdouble(0.3)),
)
REFUSED: tuple[Any, ...] = (
    *(np.array([0.3]), 1 + 0j, [0.3], (0.3,), None, "nan", 10**400, "Ann", float("inf"), {0.3}),
    *(range(1), np.void(bytes(8)), np.timedelta64(1, "ms")),
)
SPECIMENS = [(cell, True) for cell in TAKEN] + [(cell, False) for cell in REFUSED]


def of_objects(numbers: Floats, cell: Any) -> NDArray[np.object_]:
    """Return numbers as objects, the sixth of them another cell."""
    found = numbers.astype(np.object_)
    found[5] = None
    found.ravel()[5:6] = np.fromiter((cell for _ in range(1)), dtype=np.object_)
    return found


@pytest.mark.parametrize(("cell", "taken"), SPECIMENS, ids=lambda each: repr(each)[:20])
def test_a_cell_is_read_by_itself_and_nothing_is_said_of_it(cell: Any, taken: bool) -> None:
    """Tried: cells of columns, rows and labels that are texts, fractions, arrays of no axis, or
    no numbers, in arrays of objects: they count as their number, or are refused."""
    numbers = np.linspace(-0.9, 0.9, 30)
    odd, number = of_objects(numbers, cell), float(np.asarray(cell, dtype=float)) if taken else 0.0
    plain = np.where(np.arange(30) == 5, number, numbers)
    state: dict[str, Any] = {"adjacency": REPLACE}
    bounded: dict[str, Any] = {**state, "row_bound": 1.0}
    made: list[Callable[[Any], Sensitive]] = [
        lambda cells: PrivateTable({"x": cells}, {"x": BoundedColumn(-1, 1)}, **state).mean("x"),
        lambda cells: PrivateDataset(cells[:, None], np.ones(30), **bounded).mean_gradient(
            LinearLoss(), np.zeros(1)
        ),
        lambda cells: PrivateDataset(
            np.ones((30, 1)), cells, label_domain=RealLabels(1.0), **bounded
        ).histogram([-0.5, number, number + 1e-9]),
    ]
    for make in made:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if not taken:
                with pytest.raises(InvalidParameter) as refusal:
                    make(odd)
                assert "Ann" not in str(refusal.value)
                continue
            one, two = (
                SamplingCurator(EventList(), SeededSampler(1)).release(
                    make(cells), round=1, release="x", noise_std=1e-6
                )
                for cells in (odd, plain)
            )
            assert np.array_equal(one, two)


def mean_slope(loss: Any, at: Any, rows: Floats, labels: Floats) -> Any:
    """Return the mean gradient of a loss on a line, in mpmath's numbers."""
    total = mpmath.mpf(0)
    for row, sign in zip(rows[:, 0].tolist(), labels.tolist(), strict=True):
        margin = sign * row * at
        slope = 1 / (1 + mpmath.exp(margin)) if margin > -1e4 else mpmath.mpf(1)
        if isinstance(loss, ClippedLogistic):
            slope = min(slope, mpmath.mpf(loss.bound))
        if isinstance(loss, SmoothedHinge):
            slope = (1 - margin) / (2 * mpmath.mpf(loss.width)) + 0.5
            slope = min(max(slope, mpmath.mpf(0)), mpmath.mpf(1))
        total -= sign * slope * row
    return total / len(labels)


def test_a_minimiser_is_as_near_as_is_priced() -> None:
    """Tried: three smooth losses on a line, moduli of 0.01 to 1000 squared row bounds, pulls to
    1e6, starts to 1e4, tolerances of all sizes; signs of the gradient in thirty digits."""
    rng, tried = np.random.default_rng(3), 0
    for k in range(90):
        bound = float(10.0 ** rng.uniform(-3, 3))
        modulus, tolerance = bound**2 * 10 ** rng.uniform(-2, 3), bound * 10 ** rng.uniform(-8, -1)
        pull, start = (float(rng.normal() * 10 ** rng.uniform(-3, ten)) for ten in (6, 4))
        loss: Any = (Logistic(), ClippedLogistic(0.3), SmoothedHinge(0.1))[k % 3]
        rows = np.clip(rng.normal(size=(5, 1)) * bound, -0.9 * bound, 0.9 * bound)
        labels = rng.choice([-1.0, 1.0], 5)
        handle = PrivateDataset(rows, labels, adjacency=REPLACE, row_bound=bound)
        given: dict[str, Any] = {"linear": np.array([pull]), "start": np.array([start])}
        try:
            asked = handle.strongly_convex_argmin(
                loss, modulus=modulus, tolerance=tolerance, **given
            )
        except InvalidParameter:
            continue  # beyond doubles, by public numbers
        curator, tried = Pinned(0), tried + 1
        curator.release(asked, round=1, release="minimiser", noise_std=1.0)
        with mpmath.workdps(30):
            found = mpmath.mpf(float(curator.seen[0][0].ravel()[0]))
            near = mpmath.mpf(tolerance) / modulus
            # slopes grow: the minimiser lies between two points where the gradient has two signs
            low, high = (
                mean_slope(loss, at, rows, labels) + mpmath.mpf(modulus) * at + pull
                for at in (found - near, found + near)
            )
            assert low <= 0 <= high
    assert tried > 30


# --- fits ----------------------------------------------------------------------------------------
def test_no_copy_of_a_fitted_model_holds_the_seed_of_its_noise() -> None:
    """Tried: pickles, copies, joblib's files, models in a pipeline that is fitted with them or
    before; the seed as a number, and those of its streams."""
    rng, seed = np.random.default_rng(0), 987654321987
    rows = rng.uniform(-0.5, 0.5, (200, 3))
    stated: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "adjacency": REPLACE, "rounds": 3}
    made = PrivateAdmmClassifier(classes=(False, True), random_state=seed, **stated)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = made.fit(rows, rows[:, 0] > 0)
        line = make_pipeline(Normalizer(), copy.copy(made)).fit(rows, rows[:, 0] > 0)
    own = {str(each.provenance.seed) for each in fitted.ledger_.reservations()} | {str(seed)}
    file = io.BytesIO()
    joblib.dump(fitted, file)
    written = [pickle.dumps(each) for each in (fitted, copy.deepcopy(fitted), line)]
    for content, number in itertools.product([*written, file.getvalue()], own):
        assert number.encode() not in content
        assert int(number).to_bytes(17, "little").rstrip(b"\0") not in content
