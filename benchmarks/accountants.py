"""Time, tightness and memory of accountants on the same workloads, in one run.

Usage: python benchmarks/accountants.py [--timeout SECONDS] [--only ACCOUNTANT ...] [WORKLOAD ...]

Every (accountant, workload) runs in a process of its own: `cold` is its first answer after imports,
`warm` the median of the next ones (the first, where the timeout leaves no time for more), both in
processor time, which a busy machine blurs little; `peak` is the process's largest resident memory.
`gap` is (epsilon - reference) / reference: the reference is a published value to 12 digits where
there is one, else the upper end of our enclosure. A negative gap beyond rounding is an
epsilon below the truth. Calibration is by each library's own function where it has one. Peers that
are not installed, do not know an event or need more processor time than the timeout say so.
Peers: dp-accounting (PLD and RDP), prv-accountant, autodp.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

REPETITIONS = 3
ENOUGH = 0.1
"""Seconds of processor time that repeated answers take at least together."""


@dataclass(frozen=True)
class Sampled:
    """Poisson-sampled steps: (rate, noise multiplier, steps)."""

    rate: float
    multiplier: float
    steps: int


@dataclass(frozen=True)
class Workload:
    """Steps of some kind at one delta; add/remove unless `records` says fixed batches of one.

    Of Laplace noise, of all records, a multiplier is the scale over the sensitivity.
    """

    steps: tuple[Sampled, ...]
    delta: float
    reference: float | None = None
    records: int | None = None
    question: str = "epsilon"
    laplace: bool = False


def _thousand() -> tuple[Sampled, ...]:
    rng = np.random.default_rng(2020)
    rates, multipliers = rng.uniform(0.001, 0.05, 1000), rng.uniform(0.7, 2.0, 1000)
    return tuple(Sampled(float(q), float(s), 1) for q, s in zip(rates, multipliers, strict=True))


def _small_rates() -> tuple[Sampled, ...]:
    rates = np.linspace(0.001, 0.002, 10)
    return tuple(
        Sampled(float(q), s.multiplier, 1) for q, s in zip(rates, _thousand()[20:30], strict=True)
    )


TEN_THOUSAND = (Sampled(0.01, 1.0, 10_000),)

WORKLOADS = {
    "gaussian": Workload((Sampled(1.0, 1.0, 1),), 1e-5, 4.3771780957),
    "1e3 steps": Workload((Sampled(0.01, 1.0, 1_000),), 1e-5, 1.8282366665),
    "1e4 steps": Workload(TEN_THOUSAND, 1e-5, 6.1877123900),
    "1e5 steps": Workload((Sampled(0.01, 1.0, 100_000),), 1e-5, 25.5731069865),
    "1e6 steps": Workload((Sampled(1e-3, 0.8, 1_000_000),), 1e-7, 11.5857325355),
    "3 steps": Workload((Sampled(1e-3, 0.8, 3),), 1e-6),
    "10 distinct": Workload(_thousand()[:10], 1e-5),
    "10 others": Workload(_thousand()[10:20], 1e-6),
    "10 small rates": Workload(_small_rates(), 1e-6),
    "1000 distinct": Workload(_thousand(), 1e-5),
    "50 laplace": Workload((Sampled(1.0, 10.0, 50),), 1e-5, laplace=True),
    "fixed batch": Workload((Sampled(1 / 8000, 2.0, 20_000),), 1e-5, records=8000),
    "calibration": Workload(TEN_THOUSAND, 1e-5, question="noise multiplier for epsilon 2"),
    "curve": Workload(TEN_THOUSAND, 1e-5, question="epsilon at 200 deltas"),
}
TARGET = 2.0
DELTAS = np.geomspace(1e-10, 1e-2, 200)


class Interval(Protocol):
    """An enclosure."""

    @property
    def upper_float(self) -> float: ...
    @property
    def relative_width(self) -> float: ...


Answer = Callable[[], float | Interval]


def ours(workload: Workload, *, enclosed: bool) -> Answer:
    """Return our answer to a workload: the fast grade's bound, or the enclosure."""
    from dpledger.accounting.planning import calibrate_noise_multiplier, fast_noise_multiplier
    from dpledger.accounting.pld import PrivacyProfile
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
        Repeated,
        SampledWithoutReplacement,
        declared,
    )

    relation = Adjacency.REPLACE_ONE if workload.records else Adjacency.ADD_REMOVE_ONE
    # multipliers are noise_std over the sensitivity under the workload's own relation
    unit = declared(1, "benchmark", adjacency=relation)

    def mechanism(step: Sampled, multiplier: float) -> Mechanism:
        if workload.laplace:
            size = declared(1, "benchmark", adjacency=relation, norm=Norm.L1)
            return LaplaceStep(size, multiplier)
        noisy = GaussianStep(unit, multiplier)
        if workload.records:
            return SampledWithoutReplacement(noisy, 1, workload.records)
        return noisy if step.rate == 1.0 else PoissonSampled(noisy, step.rate)

    def profile(multiplier: float | None = None) -> PrivacyProfile:
        counts = {mechanism(s, multiplier or s.multiplier): s.steps for s in workload.steps}
        return PrivacyProfile.of(counts, relation)

    def epsilon() -> float | Interval:
        found = profile()
        asked = found.epsilon if enclosed else found.epsilon_upper
        return asked(workload.delta)

    def plan(z: float) -> list[Event]:
        context = Context((), 1, "benchmark", Audience.SERVER)
        return [Event(Repeated(mechanism(s, z), s.steps), context) for s in workload.steps]

    def noise() -> float:
        if enclosed:
            found = calibrate_noise_multiplier(plan, target_epsilon=TARGET, delta=workload.delta)
            return found.noise_multiplier
        return fast_noise_multiplier(plan, target_epsilon=TARGET, delta=workload.delta)

    def curve() -> float | Interval:
        found = profile()
        if enclosed:
            return [found.epsilon(float(d)) for d in DELTAS][-1]
        return float(found.epsilons_upper(DELTAS)[-1])

    if workload.question == "epsilon":
        return epsilon
    return noise if workload.question.startswith("noise") else curve


def calibrated(epsilon_of: Callable[[float], float]) -> float:
    """Return the noise multiplier that meets the target to 1e-6, by bisection."""
    low, high = 0.5, 8.0
    while high > low * (1 + 1e-6):
        middle = (low + high) / 2
        low, high = (low, middle) if epsilon_of(middle) <= TARGET else (middle, high)
    return high


def dp_accounting(workload: Workload, *, pld: bool) -> Answer:
    """Return Google's answer, by PLD or by RDP."""
    import dp_accounting as peer
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    relation = peer.NeighboringRelation

    def accountant(multiplier: float | None = None) -> PLDAccountant | RdpAccountant:
        chosen = relation.REPLACE_ONE if workload.records else relation.ADD_OR_REMOVE_ONE
        kind = PLDAccountant if pld else RdpAccountant
        made = kind(neighboring_relation=chosen)
        for step in workload.steps:
            noise = peer.LaplaceDpEvent if workload.laplace else peer.GaussianDpEvent
            event = noise(multiplier or step.multiplier)
            if workload.records:
                event = peer.SampledWithoutReplacementDpEvent(workload.records, 1, event)
            elif step.rate < 1.0:
                event = peer.PoissonSampledDpEvent(step.rate, event)
            made.compose(event, step.steps)
        return made

    def answers(z: float | None, deltas: np.ndarray) -> list[float]:
        made = accountant(z)
        return [made.get_epsilon(float(d)) for d in deltas]

    def noise() -> float:
        (step,) = workload.steps
        return float(
            peer.calibrate_dp_mechanism(
                lambda: (PLDAccountant if pld else RdpAccountant)(),
                lambda z: peer.SelfComposedDpEvent(
                    peer.PoissonSampledDpEvent(step.rate, peer.GaussianDpEvent(z)), step.steps
                ),
                TARGET,
                workload.delta,
                bracket_interval=peer.LowerEndpointAndGuess(0.5, 2.0),
                tol=1e-6,
            )
        )

    return noise if workload.question.startswith("noise") else _asked(workload, answers)


def prv(workload: Workload) -> Answer:
    """Return prv-accountant's upper estimate (Poisson-sampled Gaussians only)."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    if workload.records or workload.laplace or workload.steps[0].rate == 1.0:
        raise NotImplementedError("not an event it knows")

    def answers(z: float | None, deltas: np.ndarray) -> list[float]:
        parts = [
            PoissonSubsampledGaussianMechanism(
                noise_multiplier=z or s.multiplier, sampling_probability=s.rate
            )
            for s in workload.steps
        ]
        counts = [s.steps for s in workload.steps]
        accountant = PRVAccountant(
            prvs=parts,
            max_self_compositions=counts,
            eps_error=0.01,
            delta_error=float(min(deltas)) / 1000,
        )
        return [accountant.compute_epsilon(float(d), counts)[2] for d in deltas]

    return _asked(workload, answers)


def autodp(workload: Workload) -> Answer:
    """Return autodp's RDP answer (Poisson-sampled Gaussians only)."""
    from autodp import mechanism_zoo, transformer_zoo

    if workload.records or workload.laplace:
        raise NotImplementedError("replace-one, or Laplace noise: not asked")

    def answers(z: float | None, deltas: np.ndarray) -> list[float]:
        sampled = transformer_zoo.AmplificationBySampling(PoissonSampling=True)
        parts = []
        for step in workload.steps:
            part = mechanism_zoo.GaussianMechanism(sigma=z or step.multiplier)
            part.neighboring = "add_remove"
            parts.append(
                part if step.rate == 1.0 else sampled(part, step.rate, improved_bound_flag=True)
            )
        whole = transformer_zoo.Composition()(parts, [s.steps for s in workload.steps])
        return [float(whole.get_approxDP(float(d))) for d in deltas]

    return _asked(workload, answers)


def _asked(
    workload: Workload, answers: Callable[[float | None, np.ndarray], list[float]]
) -> Answer:
    if workload.question == "epsilon":
        return lambda: answers(None, np.array([workload.delta]))[0]
    if workload.question.startswith("noise"):
        return lambda: calibrated(lambda z: answers(z, np.array([workload.delta]))[0])
    return lambda: answers(None, DELTAS)[-1]


ACCOUNTANTS: dict[str, Callable[[Workload], Answer]] = {
    "dpledger fast": lambda w: ours(w, enclosed=False),
    "dpledger enclosed": lambda w: ours(w, enclosed=True),
    "dp-accounting PLD": lambda w: dp_accounting(w, pld=True),
    "dp-accounting RDP": lambda w: dp_accounting(w, pld=False),
    "prv-accountant": prv,
    "autodp RDP": autodp,
}


def child(accountant: str, workload: str, *, timeout: int) -> None:
    """Answer one workload with one accountant and print what it took, as JSON."""
    # of processor time: on a busy machine the clock says little
    resource.setrlimit(resource.RLIMIT_CPU, (timeout, timeout + 5))
    try:
        answer = ACCOUNTANTS[accountant](WORKLOADS[workload])
        start = time.process_time()
        found = answer()
        cold = time.process_time() - start
        warm = cold if cold * (REPETITIONS + 1) > timeout else warm_seconds(answer)
    except Exception as error:  # a benchmark reports whatever a peer raises
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:60]}))
        return
    row = {"cold": cold, "warm": warm}
    row["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if isinstance(found, float):
        row["value"] = found
    else:
        row["value"], row["width"] = found.upper_float, found.relative_width
    print(json.dumps(row))


def warm_seconds(answer: Answer) -> float:
    """Return what an answer takes once more: the median of a few, or the mean of very many."""
    times: list[float] = []
    while len(times) < REPETITIONS or (sum(times) < ENOUGH and len(times) < 1000):
        start = time.process_time()
        answer()
        times.append(time.process_time() - start)
    # the clock of a process may be coarser than one answer
    return statistics.median(times) if len(times) == REPETITIONS else statistics.mean(times)


def main() -> None:
    """Print a table a workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("--only", action="append", choices=ACCOUNTANTS, metavar="ACCOUNTANT")
    parser.add_argument("--child", nargs=2, metavar=("ACCOUNTANT", "WORKLOAD"))
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    asked = parser.parse_args()
    if asked.child:
        child(*asked.child, timeout=asked.timeout)
        return
    if unknown := set(asked.workloads) - set(WORKLOADS):
        parser.error(f"Expected workloads among {list(WORKLOADS)} instead got {sorted(unknown)}.")
    for workload in asked.workloads or WORKLOADS:
        compare(workload, asked.timeout, asked.only or list(ACCOUNTANTS))


def compare(workload: str, timeout: int, accountants: list[str]) -> None:
    """Print what the accountants say to one workload, and how long beside our fast grade."""
    settings = WORKLOADS[workload]
    print(f"\n{workload}: {settings.question}, delta {settings.delta:g}")
    found: dict[str, dict[str, float | str]] = {}
    for name in accountants:
        options = ["--timeout", str(timeout), "--child", name, workload]
        try:
            run = subprocess.run(
                [sys.executable, __file__, *options], capture_output=True, check=True
            )
            found[name] = json.loads(run.stdout.splitlines()[-1])
        except subprocess.CalledProcessError as ended:
            late = ended.returncode == -signal.SIGXCPU
            found[name] = {"error": f"more than {timeout} s" if late else "crashed"}
        except (IndexError, json.JSONDecodeError):
            found[name] = {"error": "crashed"}
    enclosed = found.get("dpledger enclosed", {}).get("value")
    reference = settings.reference or (enclosed if isinstance(enclosed, float) else None)
    base = found.get("dpledger fast", {}).get("warm")
    for name, row in found.items():
        if "error" in row:
            print(f"  {name:20s} {row['error']}")
            continue
        value, warm, cold, peak = (float(row[k]) for k in ("value", "warm", "cold", "peak"))
        gap = f"{value / reference - 1:+.1e}" if reference else ""
        width = f"  width {float(row['width']):.0e}" if "width" in row else ""
        ratio = f"{warm / base:9.1f} x" if isinstance(base, float) else ""
        print(
            f"  {name:20s} {value:14.10g}  gap {gap:9s} cold {1e3 * cold:10.1f} ms  "
            f"warm {1e3 * warm:10.1f} ms {ratio}  peak {peak:5.0f} MB{width}",
            flush=True,
        )


if __name__ == "__main__":
    main()
