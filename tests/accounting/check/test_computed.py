"""Laws of rounding: a bound follows from the operations recorded, all of them, or is refused."""

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from tests.accounting.conftest import every_operation

from dpledger.accounting.check import roundings, sensitivities, statements
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.mechanisms import Adjacency, GaussianStep, LaplaceStep, Norm, declared, rounding
from dpledger.mechanisms.encoding import mechanism_to_json
from dpledger.mechanisms.lattice import on_lattice
from dpledger.mechanisms.rounding import Rounding
from dpledger.mechanisms.sensitivity import (
    Sensitivity,
    added,
    clipped,
    concatenated,
    histogram,
    linearly_mapped,
    mean_of_bounded,
    scaled,
    sum_of_bounded,
)

REPLACE = Adjacency.REPLACE_ONE
STD = 30.0
MEAN, HELD = mean_of_bounded(3, 40, REPLACE), rounding.mean(Fraction(3), 40, 6)


def priced(meant: Sensitivity, held: Rounding, scale: float = STD) -> dict[str, Any]:
    """Return the written sensitivity of a release of two rows."""
    step = GaussianStep if meant.norm is Norm.L2 else LaplaceStep
    mechanism: Any = mechanism_to_json(step(on_lattice(meant, held, scale=scale, rows=2), scale))
    found: dict[str, Any] = mechanism["sensitivity"]
    return found


def nodes(tree: dict[str, Any]) -> list[dict[str, Any]]:
    return [tree, *(node for premise in tree["premises"] for node in nodes(premise))]


def node(tree: dict[str, Any], rule: str) -> dict[str, Any]:
    return next(found for found in nodes(tree) if found["rule"] == rule)


def given(step: dict[str, Any], name: str) -> Fraction:
    return Fraction(dict(step["parameters"])[name])


def put(step: dict[str, Any], name: str, value: Fraction) -> None:
    pair = next(pair for pair in step["parameters"] if pair[0] == name)
    pair[1] = str(value)
    if name == "error":
        step["squared"] = str(value**2)


EVERY = priced(*every_operation())
ROUNDED = sorted({found["rule"] for found in nodes(EVERY["derivation"])} & {*roundings.ROUNDINGS})


def test_what_every_operation_is_recorded_for_is_accepted() -> None:
    found = sensitivities.read_sensitivity(copy.deepcopy(EVERY))
    assert found.distance == Fraction(STD) * (2**11 + 1) / 2**62
    assert {"computed", "lattice"} <= found.rules
    assert set(ROUNDED) == {*roundings.ROUNDINGS} - {"float-count", "float-grid", "float-scores"}
    counts = priced(histogram(REPLACE, Norm.L1), rounding.counted(40, width=5))
    assert sensitivities.read_sensitivity(counts).distance is not None


@pytest.mark.parametrize("rule", [rule for rule in ROUNDED if rule != "float-exact"])
@pytest.mark.parametrize("name", ["magnitude", "error"])
def test_a_bound_that_is_too_small_is_refused(rule: str, name: str) -> None:
    forged = copy.deepcopy(EVERY)
    step = node(forged["derivation"], rule)
    # bounds are rounded up to 32 bits: by less than this
    put(step, name, given(step, name) * (1 - Fraction(1, 2**30)))
    with pytest.raises(CertificateWrong, match=f"{rule}: {name}"):
        sensitivities.read_sensitivity(forged)


ON_TRUST = {("float-total", "count"), ("float-shift", "size")}
"""No sensitivity is about how many records a sum has, nor about the size of what is public."""

SMALLER = [
    (rule, name)
    for rule, (_, _, names) in roundings.ROUNDINGS.items()
    for name in names
    if rule in ROUNDED and name != "width" and (rule, name) not in ON_TRUST
]


@pytest.mark.parametrize(("rule", "name"), SMALLER)
def test_a_parameter_that_is_too_small_is_refused(rule: str, name: str) -> None:
    """Sizes that the sensitivity knows too, and those that only bounds rest on, made to fit."""
    forged = copy.deepcopy(EVERY)
    step = node(forged["derivation"], rule)
    least = given(step, name) - 1 if name in ("count", "height") else given(step, name) / 2
    put(step, name, least)
    with pytest.raises(CertificateWrong, match=r"same operations|dimension|width"):
        sensitivities.read_sensitivity(forged)


@pytest.mark.parametrize("rule", ["float-scale", "float-map", "float-clip", "float-product"])
def test_an_operation_left_out_is_refused(rule: str) -> None:
    forged = copy.deepcopy(EVERY)
    for step in nodes(forged["derivation"]):
        for k, premise in enumerate(step["premises"]):
            if premise["rule"] == rule:
                step["premises"][k] = premise["premises"][0]
    with pytest.raises(CertificateWrong):
        sensitivities.read_sensitivity(forged)


HALF = Fraction(1, 2)
TOTAL = rounding.total(Fraction(2), 40, 6)
BOTH = added(scaled(MEAN, 0.5), sum_of_bounded(2, REPLACE))
ALIEN: dict[str, tuple[Sensitivity, Rounding]] = {
    "one part of a sum": (BOTH, TOTAL),
    "the same part twice": (BOTH, rounding.joined(TOTAL, TOTAL)),
    "a factor at the other part": (BOTH, rounding.joined(HELD, rounding.scaled(TOTAL, HALF))),
    "a smaller factor": (scaled(MEAN, 2.0), rounding.scaled(HELD, Fraction(1))),
    "a larger factor undone": (MEAN, rounding.scaled(HELD, HALF)),
    "a smaller weight": (scaled(MEAN, 2.0), rounding.multiplied(HELD, Fraction(1), width=6)),
    "fewer records": (MEAN, rounding.mean(Fraction(3), 39, 6)),
    "shorter records": (MEAN, rounding.mean(Fraction(2), 40, 6)),
    "no rounding": (MEAN, rounding.exact(Fraction(3), width=6)),
    "counts": (MEAN, rounding.counted(40, width=6)),
    "a sum for a mean": (MEAN, TOTAL),
    "a mean for a sum": (sum_of_bounded(2, REPLACE), rounding.mean(Fraction(2), 40, 6)),
    "a pair for a sum": (BOTH, rounding.paired(rounding.scaled(HELD, HALF), TOTAL)),
    "a cut in another order": (
        scaled(clipped(MEAN, 0.5), 4.0),
        rounding.clipped(rounding.scaled(HELD, Fraction(4)), HALF),
    ),
    "a smaller map": (
        linearly_mapped(MEAN, Fraction(3)),
        rounding.mapped(HELD, Fraction(2), height=6),
    ),
}


@pytest.mark.parametrize("meant, held", ALIEN.values(), ids=ALIEN)  # noqa: PT006
def test_the_rounding_of_other_operations_is_refused(meant: Sensitivity, held: Rounding) -> None:
    with pytest.raises(CertificateWrong, match="same operations"):
        sensitivities.read_sensitivity(priced(meant, held))


NOTHING = declared(0, "public", adjacency=REPLACE)
LARGER: dict[str, tuple[Sensitivity, Rounding]] = {
    "a public shift": (MEAN, rounding.shifted(HELD, Fraction(9))),
    "a part that no record enters": (added(MEAN, NOTHING), rounding.shifted(HELD, Fraction(9))),
    "a part of another sample": (MEAN, rounding.joined(TOTAL, HELD)),
    "parts in another order": (BOTH, rounding.joined(TOTAL, rounding.scaled(HELD, HALF))),
    "an assumption": (concatenated(MEAN, NOTHING), HELD),
    "a sign": (scaled(MEAN, -1.0), HELD),
    "a weight of one": (MEAN, rounding.multiplied(HELD, Fraction(2), width=6)),
    "more records": (MEAN, rounding.mean(Fraction(4), 41, 6)),
    "a number by hand": (declared(1, "by hand", adjacency=REPLACE), rounding.scaled(HELD, HALF)),
}


@pytest.mark.parametrize("meant, held", LARGER.values(), ids=LARGER)  # noqa: PT006
def test_more_may_be_rounded_than_moves(meant: Sensitivity, held: Rounding) -> None:
    assert sensitivities.read_sensitivity(priced(meant, held)).distance is not None


def _bare(tree: dict[str, Any]) -> dict[str, Any]:
    """What is computed, and on no lattice."""
    inner: dict[str, Any] = tree["derivation"]["premises"][0]
    return tree | {"derivation": inner, "squared": inner["squared"]}


def _twice(tree: dict[str, Any]) -> dict[str, Any]:
    outer = tree["derivation"]
    inner = outer["premises"][0]
    again = inner | {"premises": [inner, inner["premises"][1]], "squared": str(10**9)}
    put(again, "u", Fraction(10**4))
    return tree | {"derivation": outer | {"premises": [again]}}


def _another_dimension(tree: dict[str, Any]) -> dict[str, Any]:
    put(tree["derivation"], "dimension", Fraction(11))
    return tree


def _fewer_rows(tree: dict[str, Any]) -> dict[str, Any]:
    put(tree["derivation"]["premises"][0], "rows", Fraction(1))
    return tree


def _as_l1(tree: dict[str, Any]) -> dict[str, Any]:
    step = tree["derivation"]["premises"][0]
    step["rule"] = "computed-l1"
    step["parameters"] = step["parameters"][:2]
    return tree


def _no_meaning(tree: dict[str, Any]) -> dict[str, Any]:
    step = tree["derivation"]["premises"][0]
    step["premises"] = step["premises"][::-1]
    return tree


@pytest.mark.parametrize(
    "bend", [_bare, _twice, _another_dimension, _fewer_rows, _as_l1, _no_meaning]
)
def test_what_is_computed_is_a_block_on_one_lattice(bend: Callable[[Any], Any]) -> None:
    with pytest.raises(CertificateWrong):
        sensitivities.read_sensitivity(bend(priced(MEAN, HELD)))


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_lattice_finer_than_that_of_the_noise_is_refused(kind: str) -> None:
    l1 = kind == "laplace"
    meant = histogram(REPLACE, Norm.L1) if l1 else MEAN
    held = rounding.counted(40, width=6) if l1 else HELD
    scale = "scale" if l1 else "noise_std"
    mechanism: Any = {"kind": kind, "sensitivity": priced(meant, held), scale: "15p1"}
    run = statements.Run([mechanism], [])
    run.noise(mechanism, kind, scale, "l1" if l1 else "l2")
    larger = mechanism | {scale: "15p2"}
    with pytest.raises(CertificateWrong, match="distance of a lattice"):
        statements.Run([larger], []).noise(larger, kind, scale, "l1" if l1 else "l2")


def test_comparing_two_derivations_is_bounded() -> None:
    """Wide trees whose parts all differ, in l2: the work is cut off, and nothing is concluded."""
    meant, held = MEAN, rounding.mean(Fraction(1), 1, 6)
    parts, rows = [meant] * 512, [held] * 512
    while len(parts) > 1:
        parts = [added(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        rows = [rounding.joined(a, b) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    tree = json.loads(json.dumps(priced(parts[0], rows[0])))
    with pytest.raises((Undecided, CertificateWrong)):
        sensitivities.read_sensitivity(tree)
