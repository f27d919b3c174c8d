"""What is printed and what is proved, side by side, with the time it takes.

    python benchmarks/proofs.py [NAME...]

For each workload: the epsilon that commands print, with its grade; the proved one, the upper end of
the engine's enclosure, and how far the first lies above it; processor seconds to enclose, to prove
and to check (with FLINT, and with the standard library alone); and dp-accounting's PLD and RDP
beside it where they know the events, with their seconds over those of proving and checking. Lines
of Markdown; misses of 1e-3 are bold.
"""

import sys
import time
from collections.abc import Callable
from fractions import Fraction
from math import nan
from typing import Any

from dpledger.accounting.check import losses, pld_checker
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.proved import proved_guarantee
from dpledger.interop.dp_events import dp_event_of
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    declared,
)
from dpledger.mechanisms.sensitivity import sum_of_bounded

ADD, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE


def _events(*mechanisms: Mechanism) -> list[Event]:
    context = Context((), 1, "model", Audience.SERVER)
    return [Event(mechanism, context) for mechanism in mechanisms]


def _gaussian(noise_std: float, adjacency: Adjacency = ADD) -> GaussianStep:
    return GaussianStep(sum_of_bounded(1, adjacency), noise_std)


def _poisson(rate: float, noise_std: float, times: int) -> list[Event]:
    return _events(Repeated(PoissonSampled(_gaussian(noise_std), rate), times))


def _distinct(number: int) -> list[Event]:
    return _events(
        *(
            PoissonSampled(_gaussian(0.8 + k / (2 * number)), 0.005 + k / (100 * number))
            for k in range(number)
        )
    )


_LAPLACE = LaplaceStep(declared(1, "l1", adjacency=ADD, norm=Norm.L1), 10.0)
_BATCH = SampledWithoutReplacement(_gaussian(8.0, REPLACE), 80, 8000)

WORKLOADS: dict[str, tuple[list[Event], Fraction]] = {
    "gaussian": (_events(Repeated(_gaussian(4.0), 16)), Fraction(1, 10**5)),
    "1e3 steps": (_poisson(0.01, 1.0, 10**3), Fraction(1, 10**5)),
    "1e4 steps": (_poisson(0.01, 1.0, 10**4), Fraction(1, 10**5)),
    "1e5 steps": (_poisson(0.01, 1.0, 10**5), Fraction(1, 10**5)),
    "1e6 steps": (_poisson(0.001, 0.8, 10**6), Fraction(1, 10**7)),
    "3 steps": (_poisson(0.001, 0.8, 3), Fraction(1, 10**6)),
    "fixed batch": (_events(Repeated(_BATCH, 100)), Fraction(1, 10**5)),
    "50 laplace": (_events(Repeated(_LAPLACE, 50)), Fraction(1, 10**5)),
    "answers": (_events(Repeated(RandomisedResponse(0.3, 5), 100)), Fraction(1, 10**5)),
    "100 distinct": (_distinct(100), Fraction(1, 10**5)),
    "1000 distinct": (_distinct(1000), Fraction(1, 10**5)),
}


_MOST_FOR_PEERS = 10
"""Distinct mechanisms; with more, their compositions take many minutes."""


def _timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _checked(document: bytes, multiply: Callable[..., list[int]]) -> float:
    installed, losses.multiply = losses.multiply, multiply
    try:
        return _timed(lambda: pld_checker.check(document))
    finally:
        losses.multiply = installed


def _peer(accountant: Any, events: list[Event], delta: Fraction) -> tuple[str, float]:
    """What a peer answers and how long it takes; its refusal by name."""
    started = time.process_time()
    try:
        for event in events:
            accountant.compose(dp_event_of(event.mechanism))
        return f"{accountant.get_epsilon(float(delta)):.7g}", time.process_time() - started
    except Exception as refused:
        return type(refused).__name__, nan


def _peers(events: list[Event], delta: Fraction) -> list[tuple[str, float]]:
    try:
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import PLDAccountant
        from dp_accounting.rdp import RdpAccountant
    except ImportError:
        return [("not here", nan)] * 2
    relation = NeighboringRelation.ADD_OR_REMOVE_ONE
    if len({event.mechanism for event in events}) > _MOST_FOR_PEERS:
        return [("not asked", nan)] * 2
    kinds = (PLDAccountant(relation), RdpAccountant(neighboring_relation=relation))
    return [_peer(accountant, events, delta) for accountant in kinds]


def _line(name: str) -> str:
    events, delta = WORKLOADS[name]
    started = time.process_time()
    exact = guarantee(events, delta=delta).epsilon
    enclosed = time.process_time() - started
    started = time.process_time()
    certificate = certify(events, delta=delta)
    proving = time.process_time() - started
    document = certificate.to_json_bytes()
    quick = _checked(document, losses.multiply_by_flint)
    alone = _checked(document, losses.multiply_by_decimal)
    printed, _ = proved_guarantee(events, delta=delta)
    gap = certificate.epsilon / exact.upper_float - 1
    shown = f"{gap:.1e}" if gap <= 1e-3 else f"**{gap:.1e}**"
    peers = [
        cell
        for epsilon, seconds in _peers(events, delta)
        for cell in (epsilon, f"{seconds:.2f}", f"{seconds / (proving + quick):.1f}")
    ]
    return (
        f"| {name} | {printed.epsilon.upper_float:.9g}, {printed.grade.value} "
        f"| {certificate.epsilon:.9g} | {exact.upper_float:.9g} | {exact.relative_width:.0e} "
        f"| {shown} | {enclosed:.2f} | {proving:.2f} | {quick:.2f} | {alone:.2f} "
        f"| {' | '.join(peers).replace('nan', '-')} |"
    )


def main(names: list[str]) -> None:
    """Print the table of the named workloads, of all without a name."""
    print(
        "| workload | printed | proved | enclosure | its width | above | s | prove s "
        "| check s, FLINT | check s, alone | dp-accounting PLD | s | times ours "
        "| dp-accounting RDP | s | times ours |"
    )
    print("|" + "---|" * 16)
    for name in names or WORKLOADS:
        print(_line(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
