"""Laws that a reviewer tried against estimators, statistics, discrete noise and claims.

Messages are held fixed, so that whatever still differs was computed from the records.
"""

from __future__ import annotations

import json
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import combinations
from operator import mul, sub
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from dpledger.audits.claims.claim_file import ClaimFile
from dpledger.data.strict import ConfigurationError, converted
from dpledger.mechanisms import (
    Adjacency,
    BoundedColumn,
    CategoryColumn,
    DiscreteGaussianNoise,
    DiscreteGaussianStep,
    DiscreteLaplaceNoise,
    DiscreteLaplaceStep,
    DpledgerError,
    Event,
    EventList,
    ExponentialMechanism,
    GaussianStep,
    LaplaceNoise,
    LaplaceStep,
    Norm,
    PrivateTable,
    PureStep,
    SamplingCurator,
    SeededSampler,
    Sensitive,
    concatenate,
    linear_map,
)
from dpledger.mechanisms.curators import Release
from dpledger.runs import pipeline, release_statistics
from dpledger.runs.estimators import (
    AdmmAlgorithm,
    PrivateAdmmClassifier,
    PrivateAdmmRegressor,
    PrivateSharingClassifier,
)

Floats = NDArray[np.float64]
Patch = pytest.MonkeyPatch

RELATIONS = (Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE)
REPLACE = Adjacency.REPLACE_ONE
WHOLE = GaussianStep | LaplaceStep | DiscreteGaussianStep | DiscreteLaplaceStep | PureStep
ODD = (0.0, -0.0, 5e-324, -1e-310, 1e-200, 1e150, -1e300, 1.0, -1.0, 1 / 3)


@dataclass
class Tape:
    """What curators looked at and what they said; what they are to say, where it is given."""

    given: list[Floats] | None = None
    values: list[Floats] = field(default_factory=list[Floats])
    events: list[Event] = field(default_factory=list[Event])
    messages: list[Floats] = field(default_factory=list[Floats])

    def curator(self, sink: Any, sampler: Any) -> SamplingCurator:
        """Return a curator that writes to this tape, and says again what is given."""
        return Taped(self, sink, sampler)


class Taped(SamplingCurator):
    """A curator with a tape."""

    def __init__(self, tape: Tape, sink: Any, sampler: Any) -> None:
        super().__init__(sink, sampler)
        self._tape = tape

    def _noise(self, release: Release) -> Callable[[Floats], Floats]:
        noisy, tape = super()._noise(release), self._tape

        def said(value: Floats) -> Floats:
            tape.values.append(np.array(value))
            tape.events.append(release.event)
            again = tape.given is not None and len(tape.messages) < len(tape.given)
            message = noisy(value) if not again else (tape.given or [])[len(tape.messages)]
            tape.messages.append(np.array(message))
            return np.array(message)

        return said


def under_one_transcript(
    patch: Patch, run: Callable[..., Any], first: Sequence[Any], second: Sequence[Any]
) -> tuple[list[Tape], list[Any]]:
    """Return tapes and results of a run on either input, the second under the first's messages."""
    tapes, found = [Tape()], list[Any]()
    for given in (first, second):
        patch.setattr(pipeline, "SamplingCurator", tapes[-1].curator)
        found.append(run(*given))
        tapes.append(Tape(tapes[-1].messages))
    assert tapes[0].events == tapes[1].events
    return tapes[:2], found


def shares_moved(one: Tape, two: Tape) -> Iterator[float]:
    """Yield how far each whole release moved, over what its event says; samples are left out."""
    for first, second, event in zip(one.values, two.values, one.events, strict=True):
        step = event.mechanism
        if not isinstance(step, WHOLE):
            continue
        if not step.sensitivity.squared:
            assert np.array_equal(first, second)
            continue
        pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
        moved = [abs(Fraction(a) - Fraction(b)) for a, b in pairs]
        if isinstance(step, PureStep):  # each cost by half of the loss
            yield float(max(moved) * 2 / step.sensitivity.root)
        elif step.sensitivity.norm is Norm.L1:
            yield float(sum(moved) / step.sensitivity.root)
        else:
            yield float(sum(x * x for x in moved) / step.sensitivity.squared) ** 0.5


def odd_rows(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Return rows of odd numbers, of unit vectors, or of all sizes."""
    kinds = rng.integers(3, size=(shape[0], 1))
    unit = np.eye(shape[1])[rng.integers(shape[1], size=shape[0])]
    sizes = 10.0 ** rng.uniform(-3, 2, size=(shape[0], 1))
    odd, some = rng.choice(np.array(ODD), size=shape), rng.normal(size=shape) * sizes
    return np.where(kinds == 0, odd, np.where(kinds == 1, unit, some))


def fit_of(draw: random.Random, rel: Adjacency) -> Callable[..., Any]:
    """Return a random estimator's fit on records, weights and the parties of records."""
    parties, resized = draw.choice([1, 2]), rel is Adjacency.ADD_REMOVE_ONE
    stated: dict[str, Any] = {"epsilon": draw.choice([0.5, 3.0]), "delta": 1e-5, "adjacency": rel}
    stated |= {"clip": True, "rounds": draw.choice([1, 2]), "fit_intercept": draw.random() < 0.5}
    kind: Any = PrivateAdmmRegressor
    match draw.choice(["classes", "classes", "targets", "columns"]):
        case "columns" if not resized:
            stated |= {"parties": 2, "public_labels": draw.random() < 0.5, "classes": (0, 1)}
            of_columns, own = PrivateSharingClassifier(**stated), 1 - stated["public_labels"]
            return lambda X, y, *_: of_columns.fit(X, y % 2 * own)
        case "targets":
            stated |= {"target_bounds": (0, 2), "loss": draw.choice(["squared", "quantile"])}
        case _:
            named = [AdmmAlgorithm.CONSENSUS, AdmmAlgorithm.DP_ADMM, AdmmAlgorithm.PVP_ADMM]
            stated |= {"classes": (0, 1, 2), "algorithm": draw.choice(named)}
            kind = PrivateAdmmClassifier
    weighted = draw.random() < 0.5 or rel is Adjacency.ZERO_OUT_ONE
    forms: list[Callable[[Floats], Any]] = [np.copy, sparse.csr_array]
    form = draw.choice(forms)
    stated |= {"n_parties": parties, "n_min": 5 if resized else None}

    def fit(X: Floats, y: Floats, weights: Floats, order: NDArray[np.intp]) -> Any:
        given = weights if weighted else None
        return kind(**stated).fit(form(X), y, given, party_of=order % parties)

    return fit


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_message_of_a_fit_moves_further_than_its_event_says(
    relation: Adjacency, monkeypatch: Patch
) -> None:
    """Tried: odd cells, weights of 0 and above their bound, columns, sparse rows."""
    draw, rng, shares = random.Random(2), np.random.default_rng(2), list[float]()
    while len(shares) < 15:
        n, i, order = 20, int(rng.integers(20)), np.arange(20)
        X, y, w = odd_rows(rng, (n, 2)), rng.integers(0, 3, n), rng.choice([0.0, 0.3, 1.0, 9.0], n)
        w[i - 1], some = 1.0, order != (i if relation is Adjacency.ADD_REMOVE_ONE else -1)
        two, z, v = X.copy(), y.copy(), w.copy()
        two[i], v[i] = 0.0, 0.0  # a null record
        if relation is REPLACE:
            two[i], z[i], v[i] = odd_rows(rng, (1, 2))[0], rng.integers(0, 3), rng.choice([0, 9])
        other = [each[some] for each in (two, z, v, order)]
        fit = fit_of(draw, relation)
        tapes, _ = under_one_transcript(monkeypatch, fit, (X, y, w, order), other)
        shares.extend(shares_moved(*tapes))
    assert 0.1 < max(shares) <= 1 + 1e-12


def shown(model: Any) -> dict[str, str]:
    """Return all that a fitted model holds, less times, names of runs and random bits."""
    found = {name: repr(value) for name, value in vars(model).items() if name != "ledger_"}
    found["history_"] = repr([(r.round, r.point.tolist(), r.change) for r in model.history_])
    found["certificate_"] = model.certificate_.to_json_bytes().decode()
    found["rows"] = repr([(row.kind, row.body) for row in model.ledger_.rows()])
    hidden = r"\d{4}-\d\d-\d\dT[\d:.+]+|\b[0-9a-f]{8}\b|[0-9a-f]{64}|0x[0-9a-f]+|\"salt\":\"[^\"]*"
    return {name: re.sub(hidden, "", text) for name, text in found.items()}


def test_a_fit_shows_the_same_of_other_records_under_the_same_messages(monkeypatch: Patch) -> None:
    """Tried: records with nothing in common, all alike or huge, another number where private."""
    draw, rng = random.Random(1), np.random.default_rng(1)
    for relation in (*RELATIONS, *RELATIONS):
        fit = fit_of(draw, relation)

        def noted(X: Floats, y: Floats, fit: Callable[..., Any] = fit) -> Any:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                return shown(fit(X, y, np.ones(len(y)), np.arange(len(y)))), [*map(str, caught)]

        n = 33 if relation is Adjacency.ADD_REMOVE_ONE else 30
        first = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
        second = rng.normal(size=(n, 2)) * draw.choice([0.0, 1.0, 1e150]), np.ones(n, dtype=int)
        _, (one, two) = under_one_transcript(monkeypatch, noted, first, second)
        assert one == two


ASKED = """
[data]
files = ["t.csv"]
schema = "s.toml"
records = 20
most_records = 100
whole = ["age"]
[privacy]
adjacency = "add-remove-one"
epsilon = 1.0
delta = 0.0
"""
STATISTICS = (
    {"kind": "sum", "column": "age"},
    {"kind": "histogram", "column": "town"},
    {"kind": "quantile", "column": "age", "quantile": 0.5},
)


def test_statistics_are_written_alike_of_other_records_under_the_same_messages(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """Tried: cells far outside of their bounds, subnormal ones, all alike; a private number."""
    (tmp_path / "s.toml").write_text("""
row_bound = 1.0
on_outside = "clip"
columns = [{kind = "numeric", name = "age", lower = 18, upper = 90},
           {kind = "categorical", name = "town", categories = ["north", "south"]}]
""")
    parts = (f"{key} = {json.dumps(value)}" for one in STATISTICS for key, value in one.items())
    text = "\n".join(re.sub("^kind", "[[statistics]]\nkind", part) for part in parts)
    (tmp_path / "a.toml").write_text(ASKED + text)

    def released(out: str, lines: list[str]) -> Any:
        (tmp_path / "t.csv").write_text("age,town\n" + "".join(lines))
        found = release_statistics(tmp_path / "a.toml", out=tmp_path / out)
        return found.statistics, (tmp_path / out / "statistics.json").read_text()

    odd = ["1e308,south\n", "5e-324,north\n", "-0,south\n"] * 12
    alike = ["18,north\n"] * 25
    _, (one, two) = under_one_transcript(monkeypatch, released, ("x", alike), ("y", odd))
    assert one == two


def counted(handle: PrivateTable, seed: int) -> Sensitive:
    """Return what a random program makes of a table's counts; one seed, one program."""
    draw = random.Random(seed)
    norm = draw.choice([Norm.L1, Norm.L2])
    leaves: list[Callable[[], Sensitive]] = [
        lambda: handle.sum("w", norm=norm),
        lambda: handle.histogram("w", [1, 3], norm=norm),
        lambda: handle.histogram("c", norm=norm),
        lambda: handle.quantile_costs("w", draw.choice([0.0, 0.3, 1.0]), [0, 1.5, 3]),
    ]
    value = draw.choice(leaves)()
    for _ in range(draw.randrange(4)):
        number = draw.choice([2.0, -1.0, 3.0, 0.5, 1 / 3, 2.0**52, 0.0, 1e15])
        matrix = [[draw.choice([0.0, 1.0, -2.0, 0.5]) for _ in range(value.dimension)]]
        grown: list[Callable[[Sensitive], Sensitive]] = [
            partial(mul, number),
            partial(sub, number),
            partial(linear_map, np.array(matrix)),
            lambda x: concatenate(x, draw.choice(leaves)()),
            lambda x: x - x * draw.choice([0.5, 2.0]),
        ]
        value = draw.choice(grown)(value)
    return value


@pytest.mark.parametrize("relation", RELATIONS)
def test_what_takes_discrete_noise_is_whole_and_moves_no_further(relation: Adjacency) -> None:
    """Tried: programs with numbers that are no whole ones, costs, steps of other widths."""
    draw, rng, shares, whole = random.Random(4), np.random.default_rng(4), list[float](), 0
    noises = (DiscreteGaussianNoise(5.0), DiscreteLaplaceNoise(5.0), LaplaceNoise(3.0))
    cells = np.array([0, 1, 2, 3, 4, 9, -5, 2.49, 2.5, 1e308])
    for seed in range(400):
        n, i, noise = 6, int(rng.integers(6)), draw.choice((*noises, ExponentialMechanism(1.0)))
        w, c = rng.choice(cells, n), rng.integers(0, 2, n).astype(np.float64)
        two, other, some = w.copy(), c.copy(), np.arange(n) >= 0
        two[i], other[i] = (9.0, 1.0 - c[i]) if relation is REPLACE else (0.0, 0.0)
        some[i] = relation is not Adjacency.ADD_REMOVE_ONE
        width = BoundedColumn(draw.choice([0, -1]), 4, step=draw.choice([0, 1, 0.5, 2]))
        tapes = [Tape(), Tape()]
        try:
            for tape, x, y, kept in ((tapes[0], w, c, some | True), (tapes[1], two, other, some)):
                table = PrivateTable(
                    {"w": x[kept], "c": y[kept]},
                    {"w": width, "c": CategoryColumn(("a", "b"))},
                    adjacency=relation,
                    n_min=None if relation is not Adjacency.ADD_REMOVE_ONE else 3,
                )
                curator = tape.curator(EventList(), SeededSampler(seed))
                curator.release(counted(table, seed), mechanism=noise, round=1, release="x")
        except DpledgerError:
            continue  # not whole, or in the other norm
        assert tapes[0].events == tapes[1].events
        if not isinstance(noise, LaplaceNoise):
            whole += 1
            assert np.all(tapes[0].values[0] == np.rint(tapes[0].values[0]))
        shares.extend(shares_moved(*tapes))
    assert whole > 20
    assert 0.9 < max(shares) <= 1 + 1e-12


def test_what_holds_whatever_is_not_stated_holds_as_stated() -> None:
    """Tried: claims with the relation, the sampling and its rate left out, each alone and all."""
    draw, compared = random.Random(3), 0
    while compared < 8:
        relation = draw.choice(["zero-out-one", "replace-one"])
        scheme = draw.choice(["none", "poisson", "shuffled", "fixed-batch"])
        release: dict[str, Any] = {"mechanism": "gaussian", "rounds": draw.choice([1, 5])}
        release |= {draw.choice(["clip_norm", "sensitivity"]): 1.0, "noise_std": 2.0}
        release |= {"sampling": scheme}
        if scheme != "none":
            release |= {"batch": draw.choice([1, 5, 10]), "records": 10}
        promise = {"epsilon": draw.choice([1.0, 2.0, 4.0, 8.0, 16.0]), "delta": 1e-5}
        claim = {"adjacency": relation, "promise": promise, "releases": [release]}
        stated = converted(claim, ClaimFile, source="claim").judged().verdict.value
        for several in combinations(("adjacency", "sampling", "batch"), draw.choice([1, 2, 3])):
            kept = {key: value for key, value in release.items() if key not in several}
            less = {key: value for key, value in claim.items() if key not in several}
            try:
                found = converted(less | {"releases": [kept]}, ClaimFile, source="claim").judged()
            except ConfigurationError:
                continue
            compared += 1
            assert found.verdict.value != "holds" or stated in ("holds", "undecided")
