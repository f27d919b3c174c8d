"""What is printed and what is proved, side by side, with the time it takes.

    python benchmarks/proofs.py [NAME...]

For each workload: the engine's enclosure, the epsilon of the tight certificate and how far it lies
above the upper end, processor seconds to prove and to check it (with FLINT, and with the standard
library alone), and dp-accounting's PLD beside it where that knows the events. Lines of Markdown.
"""

import sys
import time
from collections.abc import Callable
from fractions import Fraction

from dpledger.accounting.check import losses, pld_checker
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.proof.certificate import certify
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


def _peer(events: list[Event], delta: Fraction) -> str:
    try:
        from dp_accounting import NeighboringRelation
        from dp_accounting.pld import PLDAccountant

        accountant = PLDAccountant(NeighboringRelation.ADD_OR_REMOVE_ONE)
        started = time.process_time()
        for event in events:
            accountant.compose(dp_event_of(event.mechanism))
        found = accountant.get_epsilon(float(delta))
        return f"{found:.7g} | {time.process_time() - started:.2f}"
    except Exception as refused:
        return f"{type(refused).__name__} | -"


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
    gap = certificate.epsilon / exact.upper_float - 1
    shown = f"{gap:.1e}" if gap <= 1e-3 else f"**{gap:.1e}**"
    return (
        f"| {name} | {exact.upper_float:.9g} | {exact.relative_width:.0e} | {enclosed:.2f} "
        f"| {certificate.epsilon:.9g} | {shown} | {proving:.2f} | {quick:.2f} | {alone:.2f} "
        f"| {_peer(events, delta) if len(events) == 1 else '- | -'} |"
    )


def main(names: list[str]) -> None:
    """Print the table of the named workloads, of all without a name."""
    print(
        "| workload | enclosed | width | s | proved | above | prove s | check s, FLINT "
        "| check s, alone | dp-accounting PLD | s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for name in names or WORKLOADS:
        print(_line(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
