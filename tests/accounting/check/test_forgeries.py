"""Laws of the checker: documents that were once accepted, and say less than the truth."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpledger.accounting.check import (
    checker,
    leaves,
    pld_checker,
    privacy,
    sensitivities,
    statements,
)
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.training import epsilon
from dpledger.interop.files import read_bytes
from dpledger.mechanisms import (
    Adjacency,
    DpledgerError,
)

Node = dict[str, Any]
Step = tuple[str, dict[str, Any], list[int]]

RULES = privacy.RULES | pld_checker.RULES


# --- documents, sealed as anyone can ------------------------------------------------------------


def sealed(mechanisms: list[Any], events: list[Any], steps: Sequence[Step]) -> bytes:
    """A certificate of these steps with the hash and the lists that it needs to be read.

    Steps are triples of a rule, its parameters, and the places of its premises.
    """
    run = statements.Run(mechanisms, events, 10_000)
    proved: list[statements.Priv] = []
    written: list[Any] = []
    for rule, parameters, premises in steps:
        function, names, _ = RULES[rule]
        found = function(run, *(parameters[n] for n in names), *(proved[i] for i in premises))
        if (rule, found.notion) in statements.AXIOMS:
            run.axioms.add(statements.AXIOMS[rule, found.notion])
        proved.append(found)
        labels = statements.NOTIONS[found.notion]
        conclusion = {
            "adjacency": found.adjacency,
            "group": found.group,
            "notion": found.notion,
            **{k: str(v) for k, v in zip(labels, found.values, strict=True)},
        }
        written.append(
            {"rule": rule, "parameters": parameters, "premises": premises, "conclusion": conclusion}
        )
    return json.dumps(
        {
            "format": checker.FORMAT,
            "subject": run.subject,
            "mechanisms": mechanisms,
            "events": events,
            "nodes": written,
            "assumptions": sorted(run.assumptions),
            "axioms": sorted(run.axioms),
        }
    ).encode()


def event(mechanism: int = 0, parties: Iterable[str] = (), times: int = 1) -> Node:
    return {
        "audience": "public",
        "mechanism": mechanism,
        "parties": list(parties),
        "release": "x",
        "round": 0,
        "times": times,
    }


def node(rule: str, squared: object, premises: Iterable[Node] = (), **parameters: object) -> Node:
    return {
        "rule": rule,
        "squared": str(squared),
        "parameters": [[k, v if isinstance(v, dict) else str(v)] for k, v in parameters.items()],
        "premises": list(premises),
    }


def stated(derivation: Node, norm: str = "l2", adjacency: str = "add-remove-one") -> Node:
    return {
        "norm": norm,
        "adjacency": adjacency,
        "squared": derivation["squared"],
        "derivation": derivation,
    }


def gaussian(sensitivity: Node, noise_std: str = "1p0") -> Node:
    return {"kind": "gaussian", "sensitivity": sensitivity, "noise_std": noise_std}


def certified(mechanism: Node, *steps: Step, events: list[Node] | None = None) -> checker.Verdict:
    """What is proved of one mechanism; the steps end in `events`, which is added."""
    last: Step = ("events", {}, [len(steps) - 1])
    return pld_checker.check(sealed([mechanism], events or [event()], [*steps, last]))


def gdp(mechanism: Node, events: list[Node] | None = None) -> checker.Verdict:
    return certified(mechanism, ("gaussian-gdp", {"mechanism": 0}, []), events=events)


def on_lattice(meant: Node, rounded: Node, scale: Fraction = Fraction(1)) -> Node:
    """A sensitivity with its rounding, put on the lattice of noise of this scale."""
    given = dict(rounded["parameters"])
    distance, width = sensitivities._HALF_STEP * scale, int(given["width"])
    u, w = leaves.root_up(Fraction(meant["squared"])), 2 * Fraction(given["error"])
    inner = node("computed", (u + w) ** 2, [meant, rounded], rows=1, u=u, w=w)
    u, w = u + w, leaves.root_up((2 * distance) ** 2 * width)
    return node("lattice", (u + w) ** 2, [inner], distance=distance, dimension=width, u=u, w=w)


def leaf(rule: str, error: Fraction | int = 0, **parameters: object) -> Node:
    return node(rule, Fraction(error) ** 2, (), **parameters, error=error)


# --- certificates -------------------------------------------------------------------------------


# once: epsilon 0 is accepted; the fraction of what is released shows the counts modulo 3
def test_discrete_noise_is_of_whole_numbers() -> None:
    third = node("scaled", "1/9", [node("histogram-l1", 1)], factor="1/3")
    noise = {"kind": "discrete-laplace", "sensitivity": stated(third, "l1"), "scale": "1p0"}
    with pytest.raises(CertificateWrong):
        certified(noise, ("discrete-laplace-pure", {"mechanism": 0, "epsilon": "0"}, []))


# once: rho 1/5000 and epsilon 0 are accepted
@pytest.mark.parametrize("by_losses", [False, True])
def test_discrete_gaussian_noise_is_not_of_means(by_losses: bool) -> None:
    mean = stated(node("mean-of-bounded", "1/2500", bound=1, count=100), adjacency="replace-one")
    noise = {"kind": "discrete-gaussian", "sensitivity": mean, "noise_std": "1p0"}
    losses = {
        "parts": [[0, 1, 0]],
        "shares": [],
        "group": 1,
        "step": "1/100",
        "doublings": [],
        "dense": 64,
        "digits": 30,
        "cut": "1",
        "delta": "1/1000000000",
        "epsilon": "0",
    }
    plain: Step = ("discrete-gaussian-zcdp", {"mechanism": 0}, [])
    with pytest.raises(CertificateWrong):
        certified(noise, ("privacy-loss", losses, []) if by_losses else plain)


# once: proved to cost nothing, with noise half as large as the sensitivity
def test_an_imported_discrete_gaussian_below_one_is_not_free() -> None:
    document = {"module_name": "dp_accounting.dp_event", "class_name": "DiscreteGaussianDpEvent"}
    content = json.dumps({**document, "sigma": 0.25, "sensitivity": 0.5}).encode()
    with suppress(DpledgerError):
        events = read_bytes("dp-event", content, "x", adjacency=Adjacency.ADD_REMOVE_ONE)
        assert guarantee(events, delta=1e-5).epsilon.upper_float > 0.1


# once: f + c is priced as f, whatever c is
def test_an_addition_of_what_does_not_move_is_rounded_too() -> None:
    moving = node("mean-of-bounded", "1/250000", bound=1, count=1000)
    still = node("declared", 0, value=0, reason={"text": "a public number of 10^30"})
    meant = node("sum", "1/250000", [moving, still], u="1/500", v=0)
    slip = Fraction(1, 10**12)
    rounded = leaf("float-mean", slip, bound=1, count=1000, width=1, magnitude=2)
    scale = Fraction(1, 1 << 10)
    with pytest.raises(CertificateWrong):
        gdp(gaussian(stated(on_lattice(meant, rounded, scale)), "1p-10"))


# once: any step, and none, passes
@pytest.mark.parametrize("step", ["1/3", Fraction(1, 2**4000), 3])
def test_steps_of_a_grid_are_powers_of_two(step: object) -> None:
    meant = node("sum-of-bounded", 1, bound=1)
    rounded = leaf("float-grid", most=1, step=step, width=1, magnitude=1)
    rounded["parameters"][0][1] = "1" if step != Fraction(1, 2**4000) else "0"
    with pytest.raises(CertificateWrong):
        gdp(gaussian(stated(on_lattice(meant, rounded))))


# once: multiples of counts by a third, by a map of any norm, count as whole numbers
@pytest.mark.parametrize("mapped", [False, True])
def test_a_third_of_counts_is_no_count(mapped: bool) -> None:
    meant = node("scaled", "1/9", [node("histogram", 1)], factor="1/3")
    if mapped:
        meant = node("linear-map", 1, [meant], operator_norm=3)
    rounded = leaf("float-count", most=1, width=1, magnitude=1)
    with pytest.raises(CertificateWrong):
        gdp(gaussian(stated(on_lattice(meant, rounded))))


# once: ten to the eighteenth of a count is no count that doubles hold
@pytest.mark.parametrize(
    "rounded",
    [
        leaf("float-grid", most=0, step=1, width=1, magnitude=0),
        leaf("float-count", most=1, width=1, magnitude=1),
    ],
)
def test_what_a_grid_holds_reaches_the_bound_of_a_multiple(rounded: Node) -> None:
    meant = node("scaled", 10**36, [node("histogram", 1)], factor=10**18)
    with pytest.raises(CertificateWrong):
        gdp(gaussian(stated(on_lattice(meant, rounded))))


# once: a record of a million beside a sum of at most 0 or 1
@pytest.mark.parametrize(
    "rounded",
    [
        leaf("float-grid", most=0, step=0, width=1, magnitude=0),
        leaf("float-count", most=1, width=1, magnitude=1),
    ],
)
def test_what_a_grid_holds_reaches_the_bound_of_a_record(rounded: Node) -> None:
    meant = node("sum-of-bounded", 10**12, bound=10**6)
    with pytest.raises(CertificateWrong):
        gdp(gaussian(stated(on_lattice(meant, rounded))))


# once: a mean of 100 drawn records is priced as one of 60,000
def test_a_mean_of_a_fixed_batch_is_over_its_records() -> None:
    mean = node("mean-of-bounded", Fraction(4, 60_000**2), bound=1, count=60_000)
    sampled = {
        "kind": "sampled-without-replacement",
        "event": gaussian(stated(mean, adjacency="replace-one"), "1p-10"),
        "batch": 100,
        "records": 60_000,
    }
    with pytest.raises(CertificateWrong):
        certified(
            sampled,
            ("fixed-batch-rdp", {"mechanism": 0, "order": 8, "epsilon": "1/100000"}, []),
            ("rdp-approx-dp", {"delta": "1/100000", "epsilon": "2"}, [0]),
        )


# once: a record that is drawn leaves the null record's cell and enters its own
@pytest.mark.parametrize(
    "moved",
    [
        node("histogram", 2),
        node("scaled", 8, [node("histogram", 2)], factor=2),
        node(
            "strongly-convex-argmin",
            Fraction(1, 60_000**2),
            lipschitz=1,
            modulus=1,
            tolerance=0,
            count=60_000,
        ),
    ],
)
def test_what_counts_who_is_drawn_is_in_no_poisson_sample_under_zero_out(moved: Node) -> None:
    sampled = {
        "kind": "poisson-sampled",
        "event": gaussian(stated(moved, adjacency="zero-out-one")),
        "rate": "1p-10",
    }
    with pytest.raises(CertificateWrong, match="null records"):
        certified(sampled, ("poisson-rdp", {"mechanism": 0, "order": 8, "epsilon": "1"}, []))


# once: the largest of two costs is taken where both move
def test_parties_of_records_are_not_parallel_for_columns() -> None:
    moved = node("declared", 1, value=1, reason={"text": "a sum over the party's own records"})
    step = gaussian(stated(moved, adjacency="replace-feature-column"))
    with pytest.raises(CertificateWrong):
        gdp(step, [event(parties=["A"]), event(parties=["B"])])


# once: the largest of two sensitivities is taken where both move
def test_disjoint_records_are_not_disjoint_for_columns() -> None:
    parts = [node("declared", 1, value=1, reason={"text": f"sums of {name}"}) for name in "AB"]
    both = node("disjoint", 1, parts)
    with pytest.raises(CertificateWrong):
        gdp(gaussian(stated(both, adjacency="replace-feature-column")))


def test_blanks_and_long_lists_buy_neither_work_nor_memory() -> None:
    moved = node("declared", 10_000, value=100, reason={"text": "a loss"})
    losses = {
        "parts": [[0, 2, 0]],
        "shares": [],
        "group": 1,
        "step": "100/240000",
        "doublings": [],
        "dense": 4,
        "digits": 380,
        "cut": "0",
        "delta": "1/1000000000",
        "epsilon": "200",
    }
    mechanism = {"kind": "pure", "sensitivity": stated(moved, "l1"), "scale": "1p0"}
    content = {
        "format": checker.FORMAT,
        "subject": statements.Run([mechanism], [event()] * 2).subject,
        "mechanisms": [mechanism],
        "events": [event()] * 2,
        "nodes": [
            {
                "rule": "privacy-loss",
                "parameters": losses,
                "premises": [],
                "conclusion": {
                    "adjacency": "add-remove-one",
                    "group": 1,
                    "notion": "approx-dp",
                    "delta": "1/1000000000",
                    "epsilon": "200",
                },
            }
        ],
        "assumptions": [],
        "axioms": [],
    }
    written = json.dumps(content).encode()
    for document in (written, written + b" " * 490_000):
        with pytest.raises(Undecided, match="gave up"):
            pld_checker.check(document)


# --- numbers ------------------------------------------------------------------------------------


def exact_epsilon(mu: mpmath.mpf, delta: mpmath.mpf) -> mpmath.mpf:
    """Epsilon of mu-GDP to some 50 digits."""
    low, high = mpmath.mpf(0), 50 * mu * mu + 100 * mu
    for _ in range(220):
        middle = (low + high) / 2
        found = mpmath.ncdf(mu / 2 - middle / mu)
        found -= mpmath.exp(middle) * mpmath.ncdf(-mu / 2 - middle / mu)
        low, high = (middle, high) if found > delta else (low, middle)
    return low


# once: the enclosure of epsilon at 11/10 lies below it
@pytest.mark.parametrize("noise", [Fraction(1, 10), Fraction(11, 10), Fraction(7, 5)])
def test_a_noise_multiplier_is_rounded_down(noise: Fraction) -> None:
    found = epsilon(
        noise_multiplier=noise,
        delta=Fraction(1, 10**5),
        sampling="none",
        adjacency="add-remove-one",
        steps=10,
    )
    with mpmath.workdps(60):
        mu = mpmath.sqrt(10) * noise.denominator / noise.numerator
        assert found.epsilon >= exact_epsilon(mu, mpmath.mpf(10) ** -5)


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize("parts", [(1, 1, 1), (2, 1)])
def test_discrete_laplace_noise_is_worst_on_a_line(scale: float, parts: tuple[int, ...]) -> None:
    """One coordinate moved by three against several that are moved by three together."""
    masses = np.exp(-np.abs(np.arange(-200, 201)) / scale)
    masses /= masses.sum()

    def losses(shift: int) -> tuple[np.ndarray, np.ndarray]:
        moved = np.roll(masses, shift)
        found, where = np.unique(np.round(np.log(moved / masses), 9), return_inverse=True)
        return found, np.bincount(where, moved)

    line, of_line = losses(sum(parts))
    several, of_several = np.zeros(1), np.ones(1)
    for part in parts:
        more, of_more = losses(part)
        several = np.add.outer(several, more).ravel()
        of_several = np.multiply.outer(of_several, of_more).ravel()
    for each in np.linspace(0, sum(parts) / scale, 7):
        profile = [
            (mass * np.maximum(1 - np.exp(each - loss), 0)).sum()
            for loss, mass in ((line, of_line), (several, of_several))
        ]
        assert profile[0] >= profile[1] - 1e-9
