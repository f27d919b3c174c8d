"""Laws that a reviewer tried against parties, files of other tools, tables and the process around.

Each test names its law; its docstring says what was tried beside the cases that are kept here.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import dpledger as dp
from dpledger import mechanisms as m
from dpledger.accounting import guarantee
from dpledger.accounting.ledger import SqliteLedger
from dpledger.data import load_records, read_schema
from dpledger.data.errors import DataError
from dpledger.federation import take_part
from dpledger.federation.protocol import Answer, Ask, Bye, Ended, Hello, Reply, Request, Welcome
from dpledger.interop import read
from dpledger.mechanisms.encoding import message_digest
from dpledger.runs.federation_files import Participant
from dpledger.solvers import Logistic

Array = NDArray[np.float64]
Moment = Callable[[Any], Any]  # of a loss under the first law, at a complex order
ONE = m.Adjacency.ADD_REMOVE_ONE


# --- a party and whatever answers it -----------------------------------------------------------

SCHEMA = """row_bound = 1.0
columns = [{kind = "numeric", name = "age", lower = 0.0, upper = 1.0},
    {kind = "label", name = "y", positive = ["1"], negative = ["0"]}]
"""
RUN = """solver = {algorithm = "consensus-admm", ASKED}
privacy = {adjacency = "replace-one", epsilon = 0.5, delta = 1e-5}
federation = {parties = ["north", "south"], records = [40, 40], schema = "schema.toml", SEEN}
"""
PARTY = """noise = {sampler = "system"}
party = {name = "north", run = "RUN", files = ["north.csv"], folder = "north"}
[policy]
epsilon = 3.0
delta = 1e-5
budget = 2.0
adjacency = "replace-one"
algorithms = ["consensus-admm"]
threat_models = ["per-party", "summed"]
"""
PLANS = {
    "a": ("rounds = 3", 'threat_model = "per-party"'),
    "b": ("rounds = 3, regularisation = 0.1", 'threat_model = "per-party"'),
    "c": ("rounds = 2", 'threat_model = "per-party"'),
    "s": ("rounds = 2", 'threat_model = "summed"'),
}


class Killed(BaseException): ...


class Liar:
    """A coordinator that names old runs and new ones, and answers with whatever fits, or not."""

    def __init__(self, rng: random.Random, steps: Sequence[Any], runs: list[str]) -> None:
        self.rng, self.steps, self.runs = rng, steps, runs
        self.left = defaultdict[tuple[str, int, bool], set[bytes]](set)

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        chance = self.rng.random()
        if isinstance(request, Hello):
            if not self.runs or chance < 0.25:
                self.runs.append(f"run {len(self.runs)}")
            return Welcome(self.rng.choice(self.runs))
        assert isinstance(request, Ask)
        step = self.steps[request.step]
        if step.width:
            self.left[request.run, request.step, step.bits > 0].add(request.part)
        if chance < 0.06:
            raise Killed
        if chance < 0.10:
            return Ended("stop")
        if chance < 0.12:
            return Answer(request.step + 1, b"")
        if step.bits:
            words = [self.rng.getrandbits(step.bits) for _ in range(step.width)]
            return Answer(request.step, np.array(words, dtype="<u8").tobytes())
        numbers = [self.rng.choice([0.0, -0.0, 1e-310, self.rng.gauss(0, 1)])] * step.width
        return Answer(request.step, np.array(numbers, dtype="<f8").tobytes())

    def leave(self, bye: Bye) -> None:
        if self.rng.random() < 0.05:
            raise Killed


@pytest.mark.parametrize("seed", range(3))
def test_no_coordinator_gets_two_messages_for_one_release(tmp_path: Path, seed: int) -> None:
    """Whatever is answered, one message leaves of each release, and its digest is in the ledger.

    Tried: 160 histories of four to fourteen calls, with four plans (two of equal events) that share
    a folder and a budget, kills at any request, old and new names of runs, sums of every size; and
    70 runs of three processes over sockets, killed by the number of messages that had left, with
    older copies of the journal, of the ledger or of both, forks of the folder and new coordinators.
    """
    rng = random.Random(seed)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    lines = [f"{rng.random():.3f},{rng.randrange(2)}" for _ in range(40)]
    (tmp_path / "north.csv").write_text("\n".join(["age,y", *lines]))
    for name, (asked, seen) in PLANS.items():
        text = RUN.replace("ASKED", asked).replace("SEEN", seen)
        (tmp_path / f"{name}.toml").write_text(text)
        (tmp_path / f"north_{name}.toml").write_text(PARTY.replace("RUN", f"{name}.toml"))
    plans = [tmp_path / f"north_{name}.toml" for name in PLANS]
    participants = [(each, each.federation.plan()[0]) for each in map(Participant.read, plans)]
    runs, done = list[str](), 0
    left = defaultdict[tuple[str, int, bool], set[bytes]](set)
    for _ in range(12):
        participant, plan = rng.choice(participants)
        liar = Liar(rng, plan.steps, runs)
        with suppress(m.DpledgerError, Killed), participant.opened() as party:
            take_part(party, plan, liar)
            done += 1
        for place, parts in liar.left.items():
            left[place] |= parts
    assert done >= 1
    assert len(left) >= 4
    with SqliteLedger(tmp_path / "north" / "ledger.sqlite") as ledger:
        recorded = {run.run: ledger.messages(run.run) for run in ledger.runs()}
    for (run, step, is_sum), parts in left.items():
        assert len(parts) == 1, f"{run}, step {step}"
        if not is_sum:  # of sums the ledger knows the party's numbers before they are masked
            sent = np.frombuffer(next(iter(parts)), dtype="<f8").astype(np.float64)[None]
            assert message_digest(sent) in recorded[f"federation {run}"].values()
    for run in {run for run, _, _ in left}:
        assert sum(run == other for other, _, _ in left) <= len(recorded[f"federation {run}"])


# --- files of other tools ----------------------------------------------------------------------


def _files(noise: float, steps: int) -> dict[str, str]:
    """Return one run of Poisson batches of 32 of 1,024 records as each tool writes it, by kind."""
    step = f'"noise_multiplier": {noise}, "sample_size": 32, "population_size": 1024'
    return {
        "opacus": f'{{"history": [[{noise}, 0.03125, {steps - 7}], [{noise}, 0.03125, 7]]}}',
        "flower": (
            '{"schema_version": 1, "backend": "x", "orders": [2.0], "config": {"target_delta": 0.1,'
            '"population_size": 1024, "neighboring_relation": "add-or-remove-one",'
            '"sampling_method": "poisson"},'
            f'"compositions": [{{"event": {{{step}}}, "count": {steps}}}]}}'
        ),
        "jax-privacy": (
            f'{{"noise_multipliers": [[0, {noise}], [9, {noise}]], "num_updates": {steps},'
            '"num_samples": 1024, "batch_size": 32, "sampling_method": "POISSON"}'
        ),
        "tf-privacy": (
            f'{{"noise_multiplier": {noise}, "num_epochs": {steps / 32}, "batch_size": 32,'
            '"number_of_examples": 1024, "sampling": "poisson", "used_microbatching": false}'
        ),
    }


@pytest.mark.parametrize(("noise", "steps"), [(0.7, 16), (1.5, 320), (40.0, 64)])
def test_one_run_costs_the_same_whoever_wrote_it_down(
    tmp_path: Path, noise: float, steps: int
) -> None:
    """Four tools' files of one run cost what `dp.epsilon` says, and less with more noise.

    Tried beside: trees of dp_accounting's events, matrices, checkpoints as pickles, a document with
    keys twice, missing, unknown, of another type, and numbers that no double holds.
    """

    def cost(kind: str, document: str) -> float:
        path = tmp_path / f"{kind}.json"
        path.write_text(document)
        return guarantee(read(kind, path, adjacency=ONE), delta=1e-5).epsilon.upper_float

    stated: dict[str, Any] = {
        "records": 1024,
        "batch": 32,
        "steps": steps,
        "sampling": "poisson",
        "adjacency": ONE,
    }
    expected = dp.epsilon(noise_multiplier=noise, delta=1e-5, **stated).guarantee.epsilon
    for kind, document in _files(noise, steps).items():
        found = cost(kind, document)
        assert expected.lower_float <= found <= expected.upper_float * (1 + 1e-9), kind
        assert cost(kind, _files(noise * 1.5, steps)[kind]) < found, kind


# --- numbers, by another road ------------------------------------------------------------------


def _moments() -> Iterator[tuple[list[tuple[m.Mechanism, Moment, int]], float]]:
    """Yield lists of unlike steps with the moments of their losses in closed form, and a delta."""

    def gaussian(noise: float) -> tuple[m.Mechanism, Moment]:
        step = m.GaussianStep(m.declared(1, "x", adjacency=ONE), noise)
        return step, lambda s: (s * (s - 1) / (2 * flint.arb(noise) ** 2)).exp()

    def laplace(scale: float) -> tuple[m.Mechanism, Moment]:
        a, size = 1 / flint.arb(scale), m.declared(1, "x", adjacency=ONE, norm=m.Norm.L1)
        return m.LaplaceStep(
            size, scale
        ), lambda s: (s * ((s - 1) * a).exp() + (s - 1) * (-s * a).exp()) / (2 * s - 1)

    def pure(loss: float) -> tuple[m.Mechanism, Moment]:
        p = flint.arb(loss).exp() / (1 + flint.arb(loss).exp())
        q, size = 1 - p, m.declared(loss, "x", adjacency=ONE, norm=m.Norm.L1)
        return m.PureStep(size, 1.0), lambda s: p**s * q ** (1 - s) + q**s * p ** (1 - s)

    yield [(*gaussian(2.0), 3), (*laplace(4.0), 5)], 1e-6
    yield [(*gaussian(8.0), 200), (*pure(0.25), 9)], 1e-9
    yield [(*gaussian(1.5), 1), (*laplace(3.0), 2), (*pure(0.5), 3)], 0.02


def _delta(steps: Sequence[tuple[Any, Moment, int]], epsilon: float) -> Any:
    """Return delta by the trapezoidal rule along a vertical line right of 1, 60 digits."""
    eps, h, total = flint.arb(epsilon), flint.arb("0.02"), flint.arb(0)
    for k in range(2000):
        s = flint.acb(flint.arb("2.5"), h * k)
        value = (-eps * (s - 1)).exp() / (s * (s - 1))
        for _, moment, times in steps:
            value *= moment(s) ** times
        total += value.real if k == 0 else 2 * value.real
    return total * h / (2 * flint.arb.pi())


def test_enclosures_hold_what_a_contour_integral_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unlike steps cost what the inverse transform of their losses says: an independent road.

    Tried: 447 lists of Gaussian, Laplace and pure steps of up to 3,000 repetitions, 60 with Poisson
    samples, deltas of 1e-14 to 0.2; and 260 training runs against dp_accounting.
    """
    context = m.Context((), 1, "x", m.Audience.PUBLIC)
    monkeypatch.setattr(flint.ctx, "prec", 200)
    for steps, delta in _moments():
        events = [m.Event(m.Repeated(step, times), context) for step, _, times in steps]
        found = guarantee(events, delta=delta).epsilon
        assert found.upper_float - found.lower_float < 1e-6
        assert _delta(steps, found.upper_float) < delta * (1 + 1e-12)
        assert _delta(steps, found.lower_float) > delta * (1 - 1e-12)


def test_no_precision_that_a_caller_chose_for_balls_makes_an_epsilon_smaller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """FLINT's precision is a setting of the process: fewer bits may cost more and never less.

    Tried: 2, 4, 8, 16 and 30 bits on 56 lists of all mechanisms and groups, training runs, the best
    of several, calibration, budgets; decimal's contexts, NumPy's settings, locales, `python -OO`.
    """
    stated: dict[str, Any] = {"records": 600, "batch": 32, "steps": 31, "sampling": "poisson"}
    for noise, select in product((0.9, 3.0), (None, dp.Selection(7, 1))):
        costs: list[float] = []
        for bits in (53, 2, 9, 30):
            monkeypatch.setattr(flint.ctx, "prec", bits)
            found = dp.epsilon(
                noise_multiplier=noise, delta=1e-5, select=select, adjacency=ONE, **stated
            )
            costs.append(found.epsilon)
        assert min(costs) >= costs[0] * (1 - 1e-9)


# --- arrays and tables -------------------------------------------------------------------------

FORMS: dict[str, Callable[[Array], Any]] = {
    "plain": np.array,
    "big endian": lambda rows: rows.astype(">f8"),
    "by columns": np.asfortranarray,
    "every second": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "sparse": sparse.csr_array,
    "blocks": lambda rows: m.RowBlocks(rows.shape, lambda some: rows[some].tolist(), None, 3),
}
EXTREMES = (0.0, -0.0, 5e-324, 1e-310, 1e-160, 1.0, -3.0, 1e154, 1.7e308, -1.7e308)


@pytest.mark.parametrize("relation", [m.Adjacency.REPLACE_ONE, m.Adjacency.ZERO_OUT_ONE, ONE])
def test_no_form_of_an_array_moves_a_message_further(relation: m.Adjacency) -> None:
    """Neighbours of extreme entries are as near as is stated, and the form changes no bit.

    Tried: 1,200 pairs, with integers and halves of doubles, radii, minimisers, moments, histograms
    at zeros of both signs, linear maps; `RowBlocks` that hand out one buffer again and again.
    """
    rng = np.random.default_rng(4)
    counts: dict[str, Any] = {"n_min": 5, "n_max": 6} if relation is ONE else {}
    for _ in range(5):
        rows = np.where(rng.random((6, 3)) < 0.5, rng.choice(EXTREMES, (6, 3)), rng.normal(size=3))
        labels, other = rng.choice([-1.0, 1.0], 6), rows.copy()
        if relation is ONE:
            pairs = [(rows, labels), (rows[1:], labels[1:])]
        else:
            other[0] = 0.0 if relation is m.Adjacency.ZERO_OUT_ONE else rng.choice(EXTREMES, 3)
            pairs = [(rows, labels), (other, labels * np.array([-1.0, 1, 1, 1, 1, 1]))]
        point, sent, sensitivity = rng.normal(size=3), list[dict[str, Array]](), Fraction(0)
        for each, signs in pairs:
            found = dict[str, Array]()
            for form, made in FORMS.items():
                data = m.PrivateDataset(
                    made(each), signs, adjacency=relation, row_bound=0.1, **counts
                )
                sink = m.EventList()
                value = data.sum_gradient(Logistic(), point, radius=0.03)
                found[form] = m.SamplingCurator(sink, m.SeededSampler(2)).release(
                    value, noise_multiplier=64.0, round=1, release="x"
                )
                step = sink.events[0].mechanism
                assert isinstance(step, m.GaussianStep)
                sensitivity = step.sensitivity.squared
            sent.append(found)
        for found in sent:
            assert len({message.tobytes() for message in found.values()}) == 1
        both = zip(*(found["plain"].ravel().tolist() for found in sent), strict=True)
        assert sum((Fraction(a) - Fraction(b)) ** 2 for a, b in both) <= sensitivity


def test_a_table_is_the_same_in_every_format_and_others_are_refused(tmp_path: Path) -> None:
    """Text, NumPy's files and compressed ones hold one table; what is none raises `DataError`.

    Tried: 45 files: marks of byte order, line ends, quotes, blanks, digits of other scripts, `1_0`,
    infinities, words for booleans, dates, pickles, broken archives, Parquet of every plain type.
    """
    (tmp_path / "s.toml").write_text(SCHEMA)
    schema = read_schema(tmp_path / "s.toml")
    ages, classes = np.array([0.25, 1.0, 0.5]), np.array([1, 0, 1])
    text = "age,y\n0.25,1\n1,0\n5e-1,1\n"
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (tmp_path / "b.csv").write_text(text.replace("1,0", ' 1 ,"0"'))
    np.savez(tmp_path / "c.npz", age=ages.astype(">f4"), y=classes.astype("u1"))
    np.save(tmp_path / "d.npy", np.asfortranarray(np.stack([ages, classes], axis=1)))
    expected = load_records(tmp_path / "b.csv", schema=schema)
    for name in ("a.csv", "c.npz", "d.npy"):
        found = load_records(tmp_path / name, schema=schema)
        for one, other in ((found.features, expected.features), (found.labels, expected.labels)):
            assert np.array_equal(np.asarray(one), np.asarray(other)), name
    for number, cell in enumerate(("1_0", "0x1", "inf", "1e999", "", "nan", "٣؍", "1,5")):
        (tmp_path / f"{number}.csv").write_text(f"age,y\n{cell},1\n")
        with pytest.raises(DataError):
            load_records(tmp_path / f"{number}.csv", schema=schema)
