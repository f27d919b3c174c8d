"""Laws of sensitive values.

Nothing but a curator's release shows a value, not even by accident; arithmetic with public numbers
derives; no program of operations moves neighbours further apart than its derived sensitivity.
"""

import array
import copy
import functools
import io
import json
import math
import operator
import pickle
import statistics
import struct
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
import scipy.special
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy import sparse

from dpledger.audits.datasets import AuditDataset
from dpledger.mechanisms import (
    Adjacency,
    AdjacencyMismatch,
    InvalidParameter,
    PrivateDataset,
    Sensitive,
    UnprotectedReleaseError,
    concatenate,
    concatenate_disjoint,
    declared,
    linear_map,
)
from dpledger.mechanisms.rounding import exact
from dpledger.solvers.losses import LinearLoss, Logistic

REPLACE = Adjacency.REPLACE_ONE
SECRET = 12345.678
UNIT = declared(1.0, "an example", adjacency=REPLACE)


def secret(*, parties: tuple[str, ...] = ("a", "b"), dimension: int = 3) -> Sensitive:
    value = np.full((len(parties), dimension), SECRET)
    return Sensitive(
        UNIT,
        exact(Fraction(2**20), width=dimension),
        parties=parties,
        dimension=dimension,
        compute=lambda: value,
    )


s = secret()
public = np.ones((2, 3))


@dataclass
class Holder:
    content: Sensitive


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# Ways out ----------------------------------------------------------------------------------------

WAYS_OUT: dict[str, Callable[[], Any]] = {
    # Python
    "float": lambda: float(s),
    "int": lambda: int(s),
    "complex": lambda: complex(s),
    "bool": lambda: bool(s),
    "not": lambda: not s,
    "if": lambda: 1 if s else 0,
    "and": lambda: s and 1,
    "index": lambda: operator.index(s),
    "list index": lambda: [0][s],
    "range": lambda: range(s),
    "hex": lambda: hex(s),
    "round": lambda: round(s),
    "round to digits": lambda: round(s, 2),
    "floor": lambda: math.floor(s),
    "ceil": lambda: math.ceil(s),
    "trunc": lambda: math.trunc(s),
    "abs": lambda: abs(s),
    "power": lambda: s**2,
    "power of": lambda: 2**s,
    "pow": lambda: pow(s, 2, 5),
    "divmod": lambda: divmod(s, 2),
    "divmod by": lambda: divmod(2, s),
    "floor division": lambda: s // 2,
    "floor division by": lambda: 2 // s,
    "remainder": lambda: s % 2,
    "remainder by": lambda: 2 % s,
    "division by it": lambda: 1 / s,
    "s * s": lambda: s * s,
    "s / s": lambda: s / s,
    "s * array": lambda: s * public,
    "s * list": lambda: s * [1.0],
    "list * s": lambda: [1.0] * s,
    "text * s": lambda: "a" * s,
    "s * bool": lambda: s * True,
    "s * complex": lambda: s * 1j,
    "s @ A": lambda: s @ np.eye(3),
    "s @ s": lambda: s @ s,
    "s + list of s": lambda: s + [s],  # noqa: RUF005
    "len": lambda: len(s),
    "iter": lambda: iter(s),
    "list": lambda: list(s),
    "star": lambda: [*s],
    "unpacking": lambda: (lambda a, b: None)(*s),
    "for": lambda: [x for x in s],  # noqa: C416
    "reversed": lambda: reversed(s),
    "getitem": lambda: s[0],
    "slice": lambda: s[..., :1],
    "contains": lambda: 1.0 in s,
    "sum of": lambda: sum(s),
    "max of": lambda: max(s),
    "max of two": lambda: max(s, s),
    "sorted": lambda: sorted([s, s]),
    "zip": lambda: list(zip(s, s, strict=True)),
    "dict": lambda: dict(s),
    "==": lambda: s == s,
    "!=": lambda: s != 0,
    "== None": lambda: s == None,  # noqa: E711
    "<": lambda: s < 0,
    "<=": lambda: s <= 0,
    ">": lambda: s > 0,
    ">=": lambda: s >= 0,
    "in a list of others": lambda: s in [0.0],
    "hash": lambda: hash(s),
    "set": lambda: {s},
    "dict key": lambda: {s: 1},
    "pickle": lambda: pickle.dumps(s),
    "pickle inside": lambda: pickle.dumps({"model": [s]}),
    "copy": lambda: copy.copy(s),
    "deepcopy": lambda: copy.deepcopy(s),
    "deepcopy inside": lambda: copy.deepcopy([s]),
    "asdict": lambda: asdict(Holder(s)),
    "getstate": lambda: s.__getstate__(),
    "format": lambda: format(s),
    "format with a specification": lambda: f"{s:.3f}",
    "str.format": lambda: "{:.3f}".format(s),  # noqa: UP032
    "%f": lambda: "%.3f" % s,  # noqa: UP031
    "bytes": lambda: bytes(s),
    "math.sqrt": lambda: math.sqrt(s),
    "math.isnan": lambda: math.isnan(s),
    "math.fsum": lambda: math.fsum([s]),
    "array module": lambda: array.array("d", [s]),
    "mean": lambda: statistics.fmean([s, s]),
    # NumPy
    "asarray": lambda: np.asarray(s),
    "asanyarray": lambda: np.asanyarray(s),
    "array": lambda: np.array(s),
    "array of objects": lambda: np.array(s, dtype=object),
    "array of two": lambda: np.array([s, s]),
    "float64": lambda: np.float64(s),
    "masked": lambda: np.ma.array(s),
    "from_dlpack": lambda: np.from_dlpack(s),
    "exp": lambda: np.exp(s),
    "abs ufunc": lambda: np.abs(s),
    "isfinite": lambda: np.isfinite(s),
    "maximum": lambda: np.maximum(public, s),
    "add out": lambda: np.add(public, s, out=np.zeros((2, 3))),
    "add where": lambda: np.add(public, s, where=True),
    "add first": lambda: np.add(s, public),
    "add.at": lambda: np.add.at(np.zeros((2, 3)), 0, s),
    "add.reduce": lambda: np.add.reduce(s),
    "add.accumulate": lambda: np.add.accumulate(s),
    "add.outer": lambda: np.add.outer(public, s),
    "frompyfunc": lambda: np.frompyfunc(lambda x: x, 1, 1)(s),
    "vectorize": lambda: np.vectorize(lambda x: x)(s),
    "array += s": lambda: operator.iadd(np.zeros((2, 3)), s),
    "array *= s": lambda: operator.imul(np.ones((2, 3)), s),
    "array @= s": lambda: operator.imatmul(np.eye(3), s),
    "array * s": lambda: public * s,
    "array / s": lambda: public / s,
    "float64 / s": lambda: np.float64(1.0) / s,
    "float64 ** s": lambda: np.float64(2.0) ** s,
    "float64 // s": lambda: np.float64(2.0) // s,
    "array == s": lambda: public == s,
    "array < s": lambda: public < s,
    "array[s]": lambda: public[s],
    "array[:] = s": lambda: operator.setitem(np.zeros(3), slice(None), s),
    "sum": lambda: np.sum(s),
    "sum of a list": lambda: np.sum([s, s]),
    "mean function": lambda: np.mean(s),
    "dot": lambda: np.dot(public, s),
    "dot method": lambda: public.dot(s),
    "einsum": lambda: np.einsum("ij->", s),
    "norm": lambda: np.linalg.norm(s),
    "where": lambda: np.where(True, s, 0.0),
    "clip": lambda: np.clip(s, 0, 1),
    "concatenate": lambda: np.concatenate([s, s]),
    "stack": lambda: np.stack([s, s]),
    "copyto": lambda: np.copyto(np.zeros((2, 3)), s),
    "full": lambda: np.full((2, 3), s),
    "full_like": lambda: np.full_like(public, s),
    "reshape": lambda: np.reshape(s, 6),
    "shape": lambda: np.shape(s),
    "unique": lambda: np.unique(s),
    "allclose": lambda: np.allclose(s, 1),
    "assert_allclose": lambda: np.testing.assert_allclose(s, 1),
    "array_equal": lambda: np.array_equal(s, public),
    "save": lambda: np.save(io.BytesIO(), s),
    "savez": lambda: np.savez(io.BytesIO(), s),
    "savetxt": lambda: np.savetxt(io.StringIO(), s),
    "array2string": lambda: np.array2string(s),
    "random": lambda: rng().normal(s),
    # SciPy
    "expit": lambda: scipy.special.expit(s),
    "sparse @ s": lambda: sparse.csr_array(np.eye(3)) @ s,
    "sparse * s": lambda: sparse.csr_array(np.eye(3)) * s,
}
"""What a user might write. Each must raise our own error, with advice."""


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_way_out_raises(way: str) -> None:
    with pytest.raises(UnprotectedReleaseError) as caught:
        WAYS_OUT[way]()
    assert "12345" not in str(caught.value)


FOREIGN: dict[str, Callable[[], Any]] = {
    # these look for a protocol that a sensitive value lacks, and refuse in their own words
    "json": lambda: json.dumps(s),
    "%d": lambda: "%d" % s,  # noqa: UP031
    "memoryview": lambda: memoryview(s),
    "bytearray": lambda: bytearray(s),
    "struct": lambda: struct.pack("d", s),
    "fromiter": lambda: np.fromiter([s], float),
    "frombuffer": lambda: np.frombuffer(s),
    "array.fill": lambda: np.zeros(3).fill(s),
    "array[0, 0] = s": lambda: operator.setitem(public.copy(), (0, 0), s),
    "recarray": lambda: np.rec.array(s),
    "Fraction": lambda: Fraction(s),
    "Decimal": lambda: Decimal(s),
    "flint": lambda: flint.arb(s),
    "vars": lambda: vars(s),
    "item assignment": lambda: operator.setitem(s, 0, 1.0),
    "call": lambda: s(),
    "<<": lambda: s << 1,
    "&": lambda: s & 1,
    "~": lambda: ~s,
    "attribute assignment": lambda: setattr(s, "sensitivity", UNIT),
    "value assignment": lambda: setattr(s, "_value", public),
    "new attribute": lambda: setattr(s, "note", 1),
    "mean method": lambda: s.mean(),
    "T": lambda: s.T,
}


@pytest.mark.parametrize("way", FOREIGN)
def test_foreign_protocols_refuse_too(way: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError, struct.error)) as caught:
        FOREIGN[way]()
    assert "12345" not in str(caught.value)


def test_an_object_array_only_passes_the_handle_on() -> None:
    box = np.empty(1, dtype=object)
    box[0] = s
    assert box[0] is s
    with pytest.raises((TypeError, ValueError)):
        box.astype(float)


@pytest.mark.parametrize("show", [repr, str, ascii, lambda x: f"{x!r}", lambda x: f"{[x]}"])
def test_what_is_printed_shows_no_value(show: Callable[[object], str]) -> None:
    assert "<Sensitive: 2 x 3, l2 sensitivity 1 (replace-one)>" in show(s)
    assert "12345" not in show(s)


# Arithmetic --------------------------------------------------------------------------------------

DERIVES: dict[str, tuple[Callable[[], Sensitive], float, Callable[[Any], Any]]] = {
    "s + array": (lambda: s + public, 1.0, lambda x: x + 1.0),
    "array + s": (lambda: public + s, 1.0, lambda x: x + 1.0),
    "list + s": (
        lambda: [1.0, 2.0, 3.0] + s,  # noqa: RUF005
        1.0,
        lambda x: x + np.array([1.0, 2.0, 3.0]),
    ),
    "number + s": (lambda: 2 + s, 1.0, lambda x: x + 2.0),
    "array - s": (lambda: public - s, 1.0, lambda x: 1.0 - x),
    "s - array": (lambda: s - public, 1.0, lambda x: x - 1.0),
    "float64 - s": (lambda: np.float64(2.0) - s, 1.0, lambda x: 2.0 - x),
    "float64 * s": (lambda: np.float64(2.0) * s, 2.0, lambda x: 2.0 * x),
    "float32 * s": (
        lambda: np.float32(0.1) * s,
        float(np.float32(0.1)),
        lambda x: float(np.float32(0.1)) * x,
    ),
    "int64 * s": (lambda: np.int64(3) * s, 3.0, lambda x: 3.0 * x),
    "0-d array * s": (lambda: np.array(2.0) * s, 2.0, lambda x: 2.0 * x),
    "s * negative": (lambda: s * -0.5, 0.5, lambda x: -0.5 * x),
    "s * 0": (lambda: s * 0, 0.0, lambda x: 0.0 * x),
    "s / 3": (lambda: s / 3, 1 / 3, lambda x: x * (1 / 3)),
    "s / 0-d array": (lambda: s / np.array(4.0), 0.25, lambda x: x / 4.0),
    "-s": (lambda: -s, 1.0, lambda x: -x),
    "+s": (lambda: +s, 1.0, lambda x: x),
    "s + s": (lambda: s + s, 2.0, lambda x: x + x),
    "s - s": (lambda: s - s, 2.0, lambda x: x - x),
    "np.add(s, s)": (lambda: np.add(s, s), 2.0, lambda x: x + x),
    "sum of a list": (lambda: sum([s, s, s]), 3.0, lambda x: 3.0 * x),
    "A @ s": (lambda: np.diag([1.0, -5.0, 2.0]) @ s, 5.0, lambda x: x * np.array([1.0, -5.0, 2.0])),
    "np.matmul": (lambda: np.matmul(2 * np.eye(3), s), 2.0, lambda x: 2.0 * x),
    "linear_map": (lambda: linear_map(np.eye(3)[:2], s), 1.0, lambda x: x[..., :2]),
    "clipped": (
        lambda: s.clipped(0.25),
        0.5,
        lambda x: x * 0.25 / np.linalg.norm(x, axis=-1, keepdims=True),
    ),
    "concatenate": (
        lambda: concatenate(s, 2.0 * s),
        float(np.sqrt(5.0)),
        lambda x: np.concatenate([x, 2 * x], -1),
    ),
}


@pytest.mark.parametrize("name", DERIVES)
def test_arithmetic_derives_value_and_sensitivity(name: str) -> None:
    make, sensitivity, oracle = DERIVES[name]
    derived = make()
    assert isinstance(derived, Sensitive)
    assert derived.sensitivity.value == pytest.approx(sensitivity, rel=1e-15)
    np.testing.assert_allclose(derived._value, oracle(np.full((2, 3), SECRET)), rtol=1e-14)


@pytest.mark.parametrize("name", [n for n in DERIVES])  # noqa: C416
def test_a_planned_value_derives_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, _, _ = DERIVES[name]
    real = make()
    planned = Sensitive(UNIT, exact(Fraction(2**20), width=3), parties=s.parties, dimension=3)
    monkeypatch.setitem(globals(), "s", planned)
    assert make().planned
    assert make().sensitivity == real.sensitivity
    assert make().sensitivity.derivation == real.sensitivity.derivation
    assert (make().parties, make().dimension) == (real.parties, real.dimension)


def test_disjoint_parties_take_the_maximum() -> None:
    other = secret(parties=("c",)) * 3.0
    joined = concatenate_disjoint(s, other)
    assert joined.parties == ("a", "b", "c")
    assert joined.sensitivity.value == 3.0
    np.testing.assert_array_equal(joined._value, np.concatenate([s._value, other._value]))


@pytest.mark.parametrize(
    "bad",
    [
        np.nan,
        np.inf,
        -np.inf,
        np.array([1.0, np.nan, 0.0]),
        np.ones(4),
        np.ones((3, 3)),
        np.ones((2, 1, 3, 3)),
    ],
    ids=str,
)
def test_public_operands_are_finite_and_fit(bad: Any) -> None:
    with pytest.raises(InvalidParameter, match="public operand"):
        s + bad


@pytest.mark.parametrize("bad", [0, 0.0, -0.0, 5e-324, np.nan, np.inf, -np.inf])
def test_divisors_are_finite_with_a_finite_reciprocal(bad: float) -> None:
    with pytest.raises(InvalidParameter, match=r"divisor|factor"), np.errstate(all="ignore"):
        s / bad


def test_a_shift_that_would_quantise_the_value_is_refused() -> None:
    # (x + 2**60) - 2**60 is a multiple of 256: neighbours 1 apart could end 256 apart
    with pytest.raises(InvalidParameter, match="rounding error"):
        s + 2.0**60
    assert (s + 2.0**30).sensitivity == s.sensitivity


def test_many_shifts_are_refused_before_they_quantise_the_value() -> None:
    def walk() -> Sensitive:
        return functools.reduce(operator.add, [2.0**30] * 10_000, s)

    with pytest.raises(InvalidParameter, match="rounding error"):
        walk()


def test_a_public_value_carries_no_shift_past_the_bound() -> None:
    # z has sensitivity 0, so that any number may be added to it; s + z then is s + 2**80
    z = s * 0.0 + 2.0**80
    with pytest.raises(InvalidParameter, match="rounding error"):
        s + z
    with pytest.raises(InvalidParameter, match="rounding error"):
        (z + s) - z


def test_values_that_may_overflow_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="bound on the value"):
        (s * 0.0 + 1e300) * 1e300


def test_operands_must_be_aligned() -> None:
    planned = Sensitive(UNIT, exact(Fraction(2**20), width=3), parties=s.parties, dimension=3)
    for other in (secret(parties=("a", "c")), secret(dimension=4), planned):
        with pytest.raises(InvalidParameter):
            s + other
    elsewhere = declared(1, "an example", adjacency=Adjacency.ZERO_OUT_ONE)
    other = Sensitive(
        elsewhere,
        exact(Fraction(2**20), width=3),
        parties=s.parties,
        dimension=3,
        compute=lambda: public,
    )
    for operation in (operator.add, operator.sub, concatenate):
        with pytest.raises(AdjacencyMismatch):
            operation(s, other)


@pytest.mark.parametrize(
    "join",
    [
        lambda: concatenate(s, secret(parties=("c", "d"))),
        lambda: concatenate_disjoint(s, secret()),
        lambda: concatenate_disjoint(s, secret(parties=("b", "c"))),
        lambda: concatenate_disjoint(s, secret(parties=("c",), dimension=4)),
        lambda: concatenate_disjoint(
            s, Sensitive(UNIT, exact(Fraction(2**20), width=3), parties=("c",), dimension=3)
        ),
        lambda: linear_map(np.eye(4), s),
        lambda: linear_map(np.ones(3), s),
        lambda: linear_map(np.full((3, 3), np.nan), s),
        lambda: Sensitive(
            UNIT,
            exact(Fraction(2**20), width=3),
            parties=("a",),
            dimension=3,
            compute=lambda: public,
        ),
    ],
)
def test_wrong_shapes_are_refused(join: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        join()


# Programs on neighbours --------------------------------------------------------------------------

FEATURES = 2
PARTIES = ("a", "b")
entry = st.floats(-3.0, 3.0).map(lambda x: round(x, 6))
row = st.lists(entry, min_size=FEATURES, max_size=FEATURES)
record = st.tuples(row, st.sampled_from([-1.0, 1.0]))
number = st.floats(-4.0, 4.0, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 1e-3)
vector = st.lists(entry, min_size=FEATURES, max_size=FEATURES).map(np.array)
square = st.lists(vector, min_size=FEATURES, max_size=FEATURES).map(np.array)

SLACK = 1e-12
"""Rounding in doubles, relative to the sensitivity."""


@st.composite
def neighbouring(draw: st.DrawFn) -> tuple[PrivateDataset, PrivateDataset]:
    adjacency = draw(st.sampled_from([REPLACE, Adjacency.ZERO_OUT_ONE, Adjacency.ADD_REMOVE_ONE]))
    records = draw(st.lists(record, min_size=3, max_size=7))
    holders = [0, 1, *(draw(st.integers(0, 1)) for _ in records[2:])]
    changed = list(records)
    gone = draw(st.integers(2, len(records) - 1))
    counts = np.bincount(holders, minlength=2)
    n_min = None
    if adjacency is REPLACE:
        changed[gone] = draw(record)
    elif adjacency is Adjacency.ZERO_OUT_ONE:
        changed[gone] = ([0.0] * FEATURES, 1.0)
    else:
        counts = np.bincount([h for k, h in enumerate(holders) if k != gone], minlength=2)
        n_min = draw(st.integers(1, int(counts.min())))

    def dataset(kept: list[Any], where: list[int], *, as_sparse: bool) -> PrivateDataset:
        rows = np.array([r for r, _ in kept])
        return AuditDataset(
            sparse.csr_array(rows) if as_sparse else rows,
            np.array([label for _, label in kept]),
            adjacency=adjacency,
            row_bound=1.0,
            party_of=np.array(where),
            parties=PARTIES,
            n_min=n_min,
        )

    as_sparse = draw(st.booleans())
    if n_min is not None:
        fewer = [r for k, r in enumerate(records) if k != gone]
        rest = [h for k, h in enumerate(holders) if k != gone]
        return dataset(records, holders, as_sparse=as_sparse), dataset(
            fewer, rest, as_sparse=as_sparse
        )
    return dataset(records, holders, as_sparse=as_sparse), dataset(
        changed, holders, as_sparse=as_sparse
    )


Program = Callable[[PrivateDataset], Sensitive]


@st.composite
def start(draw: st.DrawFn) -> Program:
    loss = draw(st.sampled_from([Logistic(), LinearLoss()]))
    w = draw(vector) * draw(st.sampled_from([0.0, 1.0, 50.0]))
    kind = draw(st.sampled_from(["mean", "sum", "argmin"]))
    if kind == "mean":
        return lambda d: d.mean_gradient(loss, w)
    if kind == "sum":
        return lambda d: d.sum_gradient(loss, w)
    linear = draw(vector)
    modulus = draw(st.sampled_from([0.1, 1.0]))
    tolerance = draw(st.sampled_from([1e-6, 1e-3]))
    return lambda d: d.strongly_convex_argmin(
        loss, modulus=modulus, linear=linear, tolerance=tolerance, start=w
    )


def _extend(child: st.SearchStrategy[Program]) -> st.SearchStrategy[Program]:
    def unary(change: Callable[[Sensitive, Any], Sensitive]) -> Callable[[Program, Any], Program]:
        return lambda program, operand: lambda d: change(program(d), operand)

    def binary(change: Callable[[Sensitive, Sensitive], Sensitive]) -> Callable[..., Program]:
        return lambda first, second: lambda d: change(first(d), second(d))

    radius = st.floats(0.0, 3.0, allow_subnormal=False)
    return st.one_of(
        st.builds(binary(operator.add), child, child),
        st.builds(binary(operator.sub), child, child),
        st.builds(unary(operator.mul), child, number),
        st.builds(unary(operator.add), child, vector),
        st.builds(unary(lambda x, c: c - x), child, vector),
        st.builds(unary(lambda x, m: m @ x), child, square),
        st.builds(unary(lambda x, r: x.clipped(r)), child, radius),
        # a concatenation is folded back to width d, so that programs stay composable
        st.builds(
            lambda first, second, m: (
                lambda d: np.hstack([m, m.T]) @ concatenate(first(d), second(d))
            ),
            child,
            child,
            square,
        ),
    )


programs = st.recursive(start(), _extend, max_leaves=4)


def distance(program: Program, pair: tuple[PrivateDataset, PrivateDataset]) -> tuple[float, Any]:
    one, other = program(pair[0]), program(pair[1])
    assert one.sensitivity == other.sensitivity
    return float(np.linalg.norm(one._value - other._value)), one


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@settings(max_examples=150)
@given(programs, neighbouring())
def test_no_program_moves_neighbours_further_than_its_sensitivity(
    program: Program, pair: tuple[PrivateDataset, PrivateDataset]
) -> None:
    try:
        moved, derived = distance(program, pair)
    except InvalidParameter:
        # a public shift far above a tiny sensitivity is refused for every data set alike
        reject()
    bound = derived.sensitivity.value
    assert moved <= bound * (1 + SLACK)
    planned = program(PrivateDataset.planned(pair[0].shape))
    if pair[0].shape == pair[1].shape:
        assert planned.planned
        assert planned.sensitivity.derivation == derived.sensitivity.derivation


@settings(max_examples=50)
@given(start(), start(), neighbouring())
def test_blocks_of_disjoint_parties_move_by_the_maximum(
    first: Program, second: Program, pair: tuple[PrivateDataset, PrivateDataset]
) -> None:
    # the second block belongs to other people: it does not change between these neighbours
    bystander = first(pair[0])
    renamed = Sensitive(
        bystander.sensitivity,
        exact(Fraction(2**20), width=FEATURES),
        parties=("c", "d"),
        dimension=FEATURES,
        compute=lambda: bystander._value,
    )
    moved, joined = distance(lambda d: concatenate_disjoint(second(d), renamed), pair)
    assert moved <= joined.sensitivity.value * (1 + SLACK)


def test_linear_loss_attains_the_whole_sensitivity() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    one = AuditDataset(rows, np.array([1.0, 1.0]), adjacency=REPLACE, row_bound=1.0)
    other = one.with_record(0, label=-1.0)
    moved, derived = distance(lambda d: d.mean_gradient(LinearLoss(), np.zeros(2)), (one, other))
    assert moved == pytest.approx(derived.sensitivity.value, rel=1e-8)
