"""Two hundred compositions and what they cost: every mechanism, relation, accountant and grade.

The inputs are written out in `data/compositions.json`, in the short form that `_mechanism` reads;
`found` computes what they cost. An enclosed answer is ball arithmetic, rounded outward to doubles:
it is the same on every machine, and pinned to its last bit. A fast one is computed by NumPy and
SciPy, whose last bits depend on the machine's vector instructions: it is pinned to 1e-12.
"""

import json
from pathlib import Path
from typing import Any

from dpledger.accounting.accountants import (
    Accountant,
    GdpAccountant,
    MomentsAccountant,
    RdpAccountant,
    TightAccountant,
    ZcdpAccountant,
)
from dpledger.accounting.guarantees import deltas_at, epsilons_at, guarantee
from dpledger.accounting.numbers.grade import (
    Grade,
)
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    Sensitivity,
    UnprotectedRelease,
    declared,
)

__all__ = ["INPUTS", "events_of", "found", "inputs"]

INPUTS = Path(__file__).parent / "data" / "compositions.json"

ACCOUNTANTS: dict[str, type[Accountant]] = {
    "gdp": GdpAccountant,
    "tight": TightAccountant,
    "rdp": RdpAccountant,
    "zcdp": ZcdpAccountant,
    "moments": MomentsAccountant,
}
NOISES: dict[str, tuple[Any, Norm]] = {
    "gaussian": (GaussianStep, Norm.L2),
    "laplace": (LaplaceStep, Norm.L1),
    "discrete-gaussian": (DiscreteGaussianStep, Norm.L2),
    "discrete-laplace": (DiscreteLaplaceStep, Norm.L1),
}


def _declared(value: float, adjacency: Adjacency, norm: Norm = Norm.L2) -> Sensitivity:
    return declared(value, "pinned", adjacency=adjacency, norm=norm)


def _mechanism(form: list[Any], adjacency: Adjacency) -> Mechanism:
    """Return the mechanism of a form such as ["poisson", rate, ["gaussian", sensitivity, std]]."""
    kind, *rest = form
    match kind:
        case "response":
            return RandomisedResponse(*rest)
        case "unprotected":
            return UnprotectedRelease(*rest)
        case "mixture":
            constant, sampled, rate, noise_std = rest
            moved = (_declared(constant, adjacency), _declared(sampled, adjacency))
            return GaussianMixtureStep(*moved, rate, noise_std)
        case "poisson":
            rate, inner = rest
            return PoissonSampled(_sampled(inner, adjacency), rate)
        case "batch":
            batch, records, inner = rest
            return SampledWithoutReplacement(_sampled(inner, adjacency), batch, records)
        case "repeated":
            times, inner = rest
            return Repeated(_mechanism(inner, adjacency), times)
        case "parties":
            parts = [(name, tuple(_mechanism(m, adjacency) for m in ms)) for name, ms in rest[0]]
            return Parties(tuple(parts))
        case _:
            step, norm = NOISES[kind]
            sensitivity, scale = rest
            made: Mechanism = step(_declared(sensitivity, adjacency, norm), scale)
            return made


def _sampled(form: list[Any], adjacency: Adjacency) -> GaussianStep | LaplaceStep:
    made = _mechanism(form, adjacency)
    assert isinstance(made, (GaussianStep, LaplaceStep))
    return made


def events_of(given: dict[str, Any]) -> list[Event]:
    """Return the events of an entry: one a release, [mechanism, names of its parties]."""
    adjacency = Adjacency(given["adjacency"])
    return [
        Event(_mechanism(form, adjacency), Context(tuple(names), k, "model", Audience.SERVER))
        for k, (form, names) in enumerate(given["events"], start=1)
    ]


def inputs() -> dict[str, dict[str, Any]]:
    """Return all entries by name."""
    read: dict[str, dict[str, Any]] = json.loads(INPUTS.read_text(encoding="utf-8"))
    return read


def found(given: dict[str, Any]) -> list[str]:
    """Return the ends of what an entry costs as hexadecimal doubles; the upper alone if fast.

    `at` is a delta, and epsilon is found, or ["epsilon", e], and delta is found.
    """
    events, at, grade = events_of(given), given["at"], Grade(given["grade"])
    by_epsilon = isinstance(at, list)
    point = at[1] if by_epsilon else at
    if grade is Grade.FAST:
        curve = (deltas_at if by_epsilon else epsilons_at)(
            events, **{"epsilons" if by_epsilon else "deltas": [point]}, grade=grade
        )
        return [float((curve.delta if by_epsilon else curve.epsilon)[0]).hex()]
    if given["accountant"] == "guarantee":
        cost = guarantee(events, delta=point).epsilon
    else:
        accountant = ACCOUNTANTS[given["accountant"]]()
        accountant.extend(events)
        answer = accountant.delta if by_epsilon else accountant.epsilon
        cost = answer(point, group=given["group"])
    return [cost.lower_float.hex(), cost.upper_float.hex()]
