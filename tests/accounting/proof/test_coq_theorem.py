"""Laws of theorems about runs: Coq's kernel checks what the checker accepts, and nothing wrong."""

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product
from math import exp, expm1, isqrt, log
from statistics import NormalDist

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from tests.accounting.conftest import event, examples
from tests.parameters import quick, slow

from dpledger.accounting.check.pld_checker import check
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.check.statements import Run
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.coq_goal import compiled_proofs, prove
from dpledger.accounting.proof.coq_theorem import BeyondTheorem, coq_theorem
from dpledger.accounting.proof.extracted import agrees, extracted_checker, run_extracted
from dpledger.accounting.proof.opinions import opinion_of_coq
from dpledger.mechanisms import (
    AccumulatedPoisson,
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
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    Sensitivity,
    declared,
)
from dpledger.mechanisms.sensitivity import (
    concatenated,
    mean_of_bounded,
    scaled,
    sum_of_bounded,
)

from .grids import on_a_grid
from .test_every_mechanism import exact_group_epsilon, on_a_lattice

needs_proofs = pytest.mark.skipif(
    shutil.which("coqc") is None or compiled_proofs() is None,
    reason="coqc or the compiled proofs are not here (make -C proofs)",
)
needs_checker = pytest.mark.skipif(
    extracted_checker() is None, reason="dpledger-check is not built (make -C proofs checker)"
)
REALS = {"sig_not_dec", "sig_forall_dec", "functional_extensionality_dep", "classic"}
"""The axioms of Coq's classical reals."""
COVERED = tuple(examples())


def sampled(
    rate: float, noise: float, adjacency: Adjacency = Adjacency.ADD_REMOVE_ONE
) -> PoissonSampled:
    """Return a Gaussian step on a Poisson sample."""
    return PoissonSampled(GaussianStep(sum_of_bounded(1, adjacency), noise), rate)


def mixed(
    rate: float,
    noise: float,
    adjacency: Adjacency = Adjacency.ADD_REMOVE_ONE,
    constant: Fraction = Fraction(1, 20),
) -> GaussianMixtureStep:
    """Return Gaussian noise on a sum over a sample, and a share of the sum over all records."""
    one = sum_of_bounded(1, adjacency)
    return GaussianMixtureStep(scaled(one, constant), one, rate, noise)


def told(rate: float, noise: float) -> GaussianMixtureStep:
    """Return the same of a number of which nothing is said but how far replacing moves it."""
    one = declared(1, "x", adjacency=Adjacency.REPLACE_ONE)
    return GaussianMixtureStep(scaled(one, Fraction(1, 20)), one, rate, noise)


def beside_nothing(adjacency: Adjacency = Adjacency.REPLACE_ONE) -> Sensitivity:
    """Return a sum of bounded vectors beside what brings nothing."""
    nothing = declared(0, "public", adjacency=adjacency)
    return concatenated(sum_of_bounded(1, adjacency), nothing)


def accumulated(
    batches: int, rate: float, noise: float, adjacency: Adjacency = Adjacency.ADD_REMOVE_ONE
) -> AccumulatedPoisson:
    """Return Gaussian noise on the sum of so many Poisson samples."""
    return AccumulatedPoisson(GaussianStep(sum_of_bounded(1, adjacency), noise), rate, batches)


def composed(*steps: Mechanism, group: int = 1) -> bytes:
    """Return the certificate of these steps, on the grid that `certify` chooses."""
    events = [
        Event(step, Context((), k, "model", Audience.SERVER)) for k, step in enumerate(steps, 1)
    ]
    return certify(events, delta=1e-5, group=group).to_json_bytes()


def coarse(*steps: Mechanism, group: int = 1) -> bytes:
    """Return a certificate of these steps that takes both checkers less time."""
    made = on_a_grid(*steps, delta=Fraction(1, 10**5), group=group, fineness=8.0)
    return made.to_json_bytes()


def certified(times: int, rate: float, noise: float) -> bytes:
    """Return the certificate of so many steps on Poisson samples, on the grid `certify` chooses."""
    step = sampled(rate, noise)
    return composed(Repeated(step, times) if times > 1 else step)


def moved(by: int, scale: float) -> DiscreteLaplaceStep:
    """Return discrete Laplace noise on whole numbers that a record moves by so much in l1."""
    return DiscreteLaplaceStep(
        declared(by, "l1", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1), scale
    )


def discrete(squared: int, noise: float) -> DiscreteGaussianStep:
    """Return discrete Gaussian noise on vectors that a record moves by so much in squares."""
    root = Fraction(squared) if squared == 1 else Fraction(isqrt(squared << 40) + 1, 1 << 20)
    return DiscreteGaussianStep(declared(root, "l2", adjacency=Adjacency.ADD_REMOVE_ONE), noise)


COUNT = moved(1, 8)
TOTAL = LaplaceStep(
    declared(Fraction(7, 3), "l1", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1), 20.5
)
NOISY = LaplaceStep(TOTAL.sensitivity, 1.5)
REPLACED = LaplaceStep(declared(1, "l1", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1), 0.75)
PURE = PureStep(TOTAL.sensitivity, 20.5)
MEAN = GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), 10.0)
MEAN_REPLACED = GaussianStep(mean_of_bounded(1, 60, Adjacency.REPLACE_ONE), 0.5)
DRAWN = tuple(
    SampledWithoutReplacement(
        GaussianStep(mean_of_bounded(1, size, Adjacency.REPLACE_ONE), 0.5), size, 1000
    )
    for size in (10, 1000)
)
AGAIN = tuple(
    SampledWithReplacement(
        GaussianStep(mean_of_bounded(1, size, Adjacency.REPLACE_ONE), noise), size, 1000
    )
    for size, noise in ((1, 1.5), (10, 0.5), (700, 0.05), (639, 2 / 639))
)
ZEROED = (
    declared(1, "example", adjacency=Adjacency.ZERO_OUT_ONE),
    mean_of_bounded(100, 100, Adjacency.ZERO_OUT_ONE),
)
ZEROED_COUNT = declared(3, "l1", adjacency=Adjacency.ZERO_OUT_ONE, norm=Norm.L1)
UNLIKE = {
    "two rates": (Repeated(sampled(1 / 64, 1.0), 100), Repeated(sampled(1 / 128, 1.5), 50)),
    "a noise of its own each": tuple(sampled(1 / 64, 1 + k / 8) for k in range(12)),
    "samples beside all records": (Repeated(sampled(1 / 64, 1.0), 100), MEAN),
    "samples beside many of all records": (
        *(GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), 20 - k / 4) for k in range(40)),
        Repeated(sampled(1 / 64, 1.0), 100),
    ),
    "samples beside counts": (Repeated(sampled(1 / 64, 1.0), 100), COUNT),
    "all records beside counts": (MEAN, COUNT),
    "counts that move by several": (Repeated(moved(5, 40), 50), Repeated(moved(3, 20), 20)),
    "counts that move far beside samples": (Repeated(sampled(1 / 64, 1.0), 100), moved(100, 900)),
    "once more alone": (Repeated(sampled(1 / 64, 1.0), 100), sampled(1 / 64, 1.0)),
    "records zeroed out": (
        Repeated(sampled(1 / 64, 1.0, Adjacency.ZERO_OUT_ONE), 100),
        *(PoissonSampled(GaussianStep(zeroed, 1.0), 1 / 32) for zeroed in ZEROED),
    ),
    "Laplace noise beside samples": (Repeated(sampled(1 / 64, 1.0), 100), TOTAL),
    "Laplace noise beside all records": (MEAN, Repeated(TOTAL, 3), COUNT),
    "Laplace noise on samples": (Repeated(PoissonSampled(TOTAL, 1 / 64), 100),),
    "Laplace noise on samples, in a few steps": (PoissonSampled(NOISY, 1 / 8), NOISY),
    "Laplace noise on samples beside others": (
        *(PoissonSampled(each, rate) for each in (TOTAL, NOISY) for rate in (1 / 256, 3 / 4)),
        Repeated(sampled(1 / 64, 1.0), 100),
        MEAN,
    ),
    "Laplace noise on batches": (
        Repeated(SampledWithoutReplacement(REPLACED, 10, 1000), 40),
        *(SampledWithoutReplacement(REPLACED, size, 99) for size in (1, 60, 99)),
        DRAWN[0],
    ),
    "Laplace noise on samples of which a record is zeroed out": (
        PoissonSampled(LaplaceStep(ZEROED_COUNT, 4.0), 1 / 4),
    ),
    "pure steps": (Repeated(PURE, 50),),
    "pure steps beside others": (PURE, Repeated(sampled(1 / 64, 1.0), 100), COUNT, MEAN),
    "batches": (Repeated(DRAWN[0], 40),),
    "batches beside answers": (*DRAWN, Repeated(DRAWN[0], 40), RandomisedResponse(0.75, 4)),
    "records replaced in samples": (Repeated(sampled(1 / 64, 1.0, Adjacency.REPLACE_ONE), 100),),
    "records replaced in samples, batches and sums": (
        Repeated(sampled(1 / 64, 1.0, Adjacency.REPLACE_ONE), 50),
        sampled(1, 4.0, Adjacency.REPLACE_ONE),
        *DRAWN,
    ),
    "mixtures": (Repeated(mixed(1 / 64, 3.0), 50),),
    "mixtures of which a record is zeroed out": (
        Repeated(mixed(1 / 64, 5.0, Adjacency.ZERO_OUT_ONE), 20),
        mixed(1 / 4, 9.0, Adjacency.ZERO_OUT_ONE, Fraction(2)),
    ),
    "mixtures beside samples, batches and sums": (
        *(mixed(rate, 6.0, Adjacency.REPLACE_ONE) for rate in (1 / 64, 3 / 4)),
        Repeated(sampled(1 / 64, 1.0, Adjacency.REPLACE_ONE), 50),
        Repeated(mixed(1 / 64, 9.0, Adjacency.REPLACE_ONE, Fraction(1)), 10),
        *DRAWN,
    ),
    "mixtures whose sample is told": (Repeated(told(1 / 64, 5.0), 20), told(3 / 4, 9.0)),
    "mixtures and samples beside what brings nothing": (
        GaussianMixtureStep(
            declared(1, "x", adjacency=Adjacency.REPLACE_ONE), beside_nothing(), 1 / 64, 9.0
        ),
        Repeated(PoissonSampled(GaussianStep(beside_nothing(), 2.0), 1 / 64), 10),
    ),
    "a mixture on a lattice": (
        Repeated(on_a_lattice(mixed(1 / 64, 5.0, Adjacency.REPLACE_ONE, Fraction(0.05))), 20),
    ),
    "samples under one noise": (Repeated(accumulated(4, 1 / 64, 2.0), 50),),
    "samples under one noise beside others": (
        accumulated(1, 1 / 4, 4.0),
        accumulated(16, 1 / 64, 4.0),
        Repeated(sampled(1 / 64, 1.0), 50),
        MEAN,
    ),
    "samples of all records under one noise": (accumulated(3, 1, 20.0), MEAN),
    "samples of all records": tuple(sampled(1, 9.0 + k) for k in range(5)),
    "samples under one noise of which a record is zeroed out": (
        Repeated(accumulated(2, 1 / 16, 4.0, Adjacency.ZERO_OUT_ONE), 20),
    ),
    "batches drawn with replacement": (Repeated(AGAIN[1], 40),),
    "a batch of large losses": (AGAIN[3],),
    "batches drawn with replacement beside others": (
        *AGAIN[:3],
        DRAWN[0],
        RandomisedResponse(0.75, 4),
    ),
    "discrete Gaussian noise": (Repeated(discrete(1, 10.0), 100),),
    "little discrete Gaussian noise": (discrete(1, 0.2),),
    "little discrete Gaussian noise on integer vectors": (discrete(8, 0.304), discrete(1, 2.0)),
    "discrete Gaussian noise on a finer lattice": (Repeated(discrete(1, 100.0), 1000),),
    "discrete Gaussian noise of a large scale": (discrete(4, 1500.0), discrete(1, 2000.0)),
    "discrete Gaussian noise of a large scale alone": (discrete(1, 2000.0),),
    "discrete Gaussian noise on two coordinates": (Repeated(discrete(2, 7.3), 30),),
    "discrete Gaussian noise on integer vectors": (Repeated(discrete(5, 9.0), 10),),
    "discrete Gaussian noise on longer integer vectors": (
        *(discrete(squared, 15.0) for squared in (17, 24)),
        Repeated(sampled(1 / 64, 1.0), 20),
    ),
    "discrete Gaussian noise beside others": (
        Repeated(sampled(1 / 64, 1.0), 100),
        Repeated(discrete(2, 9.0), 10),
        discrete(1, 4.0),
        MEAN,
        COUNT,
    ),
    "one of far larger loss": (Repeated(sampled(1 / 256, 4.0), 500), sampled(1 / 4, 1.0)),
}
"""Steps that `certify` composes by their loss distributions, some from a later level on."""
LONG = "a batch of large losses"
AS_CERTIFIED = (
    *(LONG, "little discrete Gaussian noise on integer vectors"),
    "discrete Gaussian noise of a large scale",
)
"""Of few values, or not by losses at all: no grid to be made coarser."""
COSTLY = {
    *(LONG, "discrete Gaussian noise on longer integer vectors", "a mixture on a lattice"),
    "discrete Gaussian noise of a large scale alone",
    *("a noise of its own each", "samples of all records", "samples under one noise beside others"),
    "samples beside many of all records",
    "records replaced in samples, batches and sums",
    "mixtures beside samples, batches and sums",
    "batches drawn with replacement beside others",
    *("Laplace noise on samples beside others", "pure steps beside others"),
    *("mixtures whose sample is told", "samples of all records under one noise"),
    *("discrete Gaussian noise beside others", "samples under one noise"),
    "mixtures of which a record is zeroed out",
}
"""Seconds each; most are of several kinds of which each stands for itself too."""
GROUPS = {
    "Laplace noise alone": (3, (Repeated(TOTAL, 2),)),
    "Laplace noise beside all records": (2, (MEAN, TOTAL, COUNT)),
    "counts": (5, (Repeated(moved(5, 80), 3),)),
    "discrete Gaussian noise": (2, (Repeated(discrete(2, 9.0), 10), discrete(1, 20.0))),
    "answers": (3, (Repeated(RandomisedResponse(0.55, 3), 7),)),
    "Poisson samples": (3, (Repeated(sampled(1 / 64, 1.0), 100),)),
    "a Poisson sample of many": (20, (sampled(1 / 64, 8.0),)),
    "Poisson samples beside others": (
        2,
        (Repeated(sampled(1 / 64, 1.5), 20), sampled(1, 9.0), sampled(1 / 3, 6.0), MEAN, COUNT),
    ),
    "records zeroed out of Poisson samples": (
        4,
        (Repeated(sampled(1 / 64, 2.0, Adjacency.ZERO_OUT_ONE), 30),),
    ),
    "samples of all records beside others": (
        3,
        (sampled(1, 9.0), accumulated(2, 1, 40.0), Repeated(sampled(1 / 64, 1.0), 50), MEAN),
    ),
    "batches": (3, (Repeated(DRAWN[0], 10), MEAN_REPLACED)),
    "a batch of all records": (2, (SampledWithoutReplacement(MEAN_REPLACED, 60, 100),)),
    "mixtures": (3, (Repeated(mixed(1 / 64, 6.0), 20), mixed(1 / 2, 9.0), MEAN)),
    "mixtures of which records are replaced": (
        2,
        (Repeated(mixed(1 / 64, 9.0, Adjacency.REPLACE_ONE), 20), MEAN_REPLACED),
    ),
    "mixtures whose sample is told": (3, (Repeated(told(1 / 64, 9.0), 20), MEAN_REPLACED)),
    "samples under one noise": (
        3,
        (Repeated(accumulated(4, 1 / 64, 6.0), 20), accumulated(1, 1 / 8, 6.0), MEAN),
    ),
    "samples under one noise of which records are zeroed out": (
        2,
        (accumulated(8, 1 / 16, 9.0, Adjacency.ZERO_OUT_ONE),),
    ),
    "batches drawn with replacement": (3, (Repeated(AGAIN[1], 10), AGAIN[0], MEAN_REPLACED)),
    "batches drawn with replacement out of the group alone": (
        3,
        (SampledWithReplacement(MEAN_REPLACED, 60, 3), Repeated(AGAIN[1], 10), MEAN_REPLACED),
    ),
    "batches drawn with replacement out of the group and one more": (
        3,
        (SampledWithReplacement(AGAIN[1].event, 10, 4), Repeated(AGAIN[1], 10), MEAN_REPLACED),
    ),
    "Laplace noise on Poisson samples": (3, (Repeated(PoissonSampled(TOTAL, 1 / 64), 20),)),
    "Laplace noise on Poisson samples beside others": (
        2,
        (PoissonSampled(NOISY, 1 / 8), PoissonSampled(TOTAL, 1), sampled(1 / 3, 6.0), MEAN),
    ),
    "Laplace noise on samples of which records are zeroed out": (
        5,
        (PoissonSampled(LaplaceStep(ZEROED_COUNT, 4.0), 0.1),),
    ),
    "Laplace noise on batches": (
        3,
        (
            Repeated(SampledWithoutReplacement(REPLACED, 10, 1000), 4),
            *(SampledWithoutReplacement(REPLACED, size, 99) for size in (1, 60, 99)),
        ),
    ),
    "records replaced in Poisson samples": (
        3,
        (Repeated(sampled(1 / 64, 3.0, Adjacency.REPLACE_ONE), 30), RandomisedResponse(0.55, 3)),
    ),
}
"""Steps that `certify` composes for so many records at once."""
SOON = (
    *("Laplace noise alone", "Laplace noise beside all records", "counts", "answers"),
    *("Poisson samples", "records zeroed out of Poisson samples", "a batch of all records"),
    *("discrete Gaussian noise", "mixtures of which records are replaced"),
    *("samples of all records beside others", "batches drawn with replacement"),
    *("Laplace noise on Poisson samples", "Laplace noise on batches"),
    "Laplace noise on samples of which records are zeroed out",
)
"""Those of them that both checkers decide in a second."""


def pure_run(step: str) -> bytes:
    """Return the certificate of fifty answers, or of fifty noisy counts, at delta > 0."""
    steps = {
        "counts": COUNT,
        "Laplace noise": TOTAL,
        "one of two": RandomisedResponse(0.55, 2),
        "one of four": RandomisedResponse(0.2, 4),
    }
    event = Event(Repeated(steps[step], 50), Context((), 1, "model", Audience.SERVER))
    return certify([event], delta=1e-6).to_json_bytes()


def with_epsilon(document: bytes, epsilon: Fraction) -> bytes:
    """Return the same claims with another epsilon."""
    bent = json.loads(document)
    for node in bent["nodes"]:
        for stated in (node["parameters"], node["conclusion"]):
            if "epsilon" in stated:
                stated["epsilon"] = str(epsilon)
    return json.dumps(bent).encode()


def smaller_epsilon(document: bytes) -> bytes:
    """Return the same claims with a hundredth less epsilon."""
    stated = json.loads(document)["nodes"][-1]["conclusion"]["epsilon"]
    return with_epsilon(document, Fraction(stated) * Fraction(99, 100))


def epsilon_of_replaced(rate: float, mu: float, delta: float) -> float:
    """Return ε of (1-q)N(0, 1) + qN(mu, 1) against (1-q)N(0, 1) + qN(-mu, 1), in doubles."""
    normal = NormalDist()

    def above(x: float, shift: float) -> float:
        return (1 - rate) * normal.cdf(-x) + rate * normal.cdf(shift - x)

    def density(x: float, shift: float) -> float:
        return (1 - rate) * normal.pdf(x) + rate * normal.pdf(x - shift)

    def loss(x: float) -> float:
        return log(density(x, mu) / density(x, -mu))

    def excess(x: float) -> float:
        return above(x, mu) - exp(loss(x)) * above(x, -mu) - delta

    low, high = 0.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return loss(high)


def epsilon_of_discrete(squared: int, noise: float, delta: float) -> float:
    """Return epsilon of discrete Gaussian noise on vectors with this square, the worst of them."""
    far = range(-int(12 * noise) - 12, int(12 * noise) + 13)
    weights = {k: exp(-k * k / (2 * noise**2)) for k in far}
    total = sum(weights.values())

    def products(vector: list[int]) -> dict[int, float]:
        """The law of the noise times a vector."""
        found = {0: 1.0}
        for v in vector:
            new: dict[int, float] = defaultdict(float)
            for at, mass in found.items():
                for k, weight in weights.items():
                    new[at + v * k] += mass * weight / total
            found = {at: mass for at, mass in new.items() if mass > 1e-18}
        return found

    def vectors(left: int, most: int) -> Iterator[list[int]]:
        if left == 0:
            yield []
        for v in range(1, most + 1):
            if v * v <= left:
                yield from ([v, *rest] for rest in vectors(left - v * v, v))

    laws = [products(vector) for vector in vectors(squared, squared)]

    def lost(law: dict[int, float], epsilon: float) -> float:
        losses = (((squared + 2 * at) / (2 * noise**2), mass) for at, mass in law.items())
        return sum(mass * -expm1(epsilon - loss) for loss, mass in losses if loss > epsilon)

    low, high = 0.0, 100.0 + squared / noise**2
    for _ in range(60):
        middle = (low + high) / 2
        large = any(lost(law, middle) > delta for law in laws)
        low, high = (middle, high) if large else (low, middle)
    return high


def sampled_run(step: Fraction, dense: int, epsilon: Fraction) -> bytes:
    """Ten steps on Poisson samples, on a coarse grid: a larger epsilon, but soon computed."""
    document = json.loads(certified(10, 1 / 8, 2.0))
    loss, events = document["nodes"]
    loss["parameters"] |= {"step": str(step), "dense": dense, "doublings": [0, 0, 1]}
    for stated in (loss["parameters"], loss["conclusion"], events["conclusion"]):
        stated["epsilon"] = str(epsilon)
    return json.dumps(document).encode()


def test_a_sampled_run_becomes_a_term():
    goal = coq_theorem(sampled_run(Fraction(1, 32), 8, Fraction(3)))
    assert "SampledStep (Poisson (1 # 8)) AddRemoveOne (1 # 1)" in goal
    terms = "[((2)%positive, (1)%positive, 0%nat)] [] 1 (1 # 32) [0; 0; 1]%nat 8 "
    assert f"(PrivacyLoss {terms}" in goal
    assert "dp (one_part add_remove_one)" in goal


def axioms(output: str) -> set[str]:
    """Return the axioms that `Print Assumptions` has listed."""
    pairs = re.findall(r"^(\w+(?:\.\w+)+)\s*$|^(\w+(?:\.\w+)+) :", output, re.MULTILINE)
    return {"".join(pair) for pair in pairs}


@needs_proofs
def test_the_kernel_proves_a_sampled_run_private_and_no_smaller_epsilon():
    goal = coq_theorem(sampled_run(Fraction(1, 32), 8, Fraction(3)))
    found = prove(goal, proofs=compiled_proofs(), timeout=1200)
    assert found.proved, found.output
    # beside the axioms of the reals only what the kernel's primitive integers are said to do
    others = {name for name in axioms(found.output) if name.split(".")[-1] not in REALS}
    assert others
    assert all(name.split(".")[0] in ("Uint63", "PrimInt63") for name in others), others
    small = goal.replace("(3 # 1)", "(1 # 2)")
    assert not prove(small, proofs=compiled_proofs(), timeout=1200).proved


@needs_proofs
@pytest.mark.slow
@pytest.mark.parametrize("run", [(10, 1 / 8, 2.0), (1000, 1 / 128, 1.0)])
def test_the_kernel_proves_losses_on_the_lattice_of_certify_and_no_smaller_epsilon(run):
    enough = certified(*run)
    found = prove(coq_theorem(enough), proofs=compiled_proofs(), timeout=3600)
    assert found.proved, found.output
    stated = json.loads(enough)["nodes"][-1]["conclusion"]["epsilon"].replace("/", " # ")
    less = Fraction(stated.replace(" # ", "/")) * Fraction(99, 100)
    small = coq_theorem(enough).replace(f"({stated})", f"({less.numerator} # {less.denominator})")
    assert not prove(small, proofs=compiled_proofs(), timeout=3600).proved


@needs_proofs
@pytest.mark.slow
@pytest.mark.parametrize("step", ["one of two", "one of four", "counts", "Laplace noise"])
def test_the_kernel_proves_pure_steps_composed_and_no_smaller_epsilon(step):
    enough = coq_theorem(pure_run(step))
    assert prove(enough, proofs=compiled_proofs(), timeout=1200).proved
    epsilon = json.loads(pure_run(step))["nodes"][-1]["conclusion"]["epsilon"].replace("/", " # ")
    less = Fraction(epsilon.replace(" # ", "/")) * Fraction(99, 100)
    small = enough.replace(f"({epsilon})", f"({less.numerator} # {less.denominator})")
    assert small != enough
    assert not prove(small, proofs=compiled_proofs(), timeout=1200).proved


@needs_checker
@pytest.mark.parametrize(
    "times",
    [
        *((1,), (2,), (40, 3), (7, 5, 6, 1, 1)),
        pytest.param((300,), marks=pytest.mark.slow),
    ],
)
def test_laplace_noise_alone_is_proved_and_no_epsilon_a_millionth_smaller(tmp_path, times):
    scales = (20.5, 31.0, 9.75, 50.0, 64.0)
    enough = composed(
        *(
            Repeated(LaplaceStep(TOTAL.sensitivity, scale), n) if n > 1 else TOTAL
            for n, scale in zip(times, scales, strict=False)
        )
    )
    assert b"laplace-losses" in enough
    stated = Fraction(json.loads(enough)["nodes"][-1]["conclusion"]["epsilon"])
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    paths[0].write_bytes(enough)
    paths[1].write_bytes(with_epsilon(enough, stated * (1 - Fraction(1, 10**6))))
    proved, undecided = run_extracted(paths)
    assert agrees(proved, check(enough)), proved.line
    assert undecided.word == "undecided"


def test_what_coq_does_not_cover_is_no_answer_and_no_objection(tmp_path):
    path = tmp_path / "run.json"
    column = declared(1, "a column", adjacency=Adjacency.REPLACE_FEATURE_COLUMN, norm=Norm.L1)
    path.write_bytes(composed(LaplaceStep(column, 9.0)))
    opinion = opinion_of_coq(path)
    assert opinion.text.startswith("no answer: adjacency=replace-feature-column")
    assert not opinion.against
    assert not path.with_suffix(".v").exists()


@needs_checker
@pytest.mark.parametrize(
    ("written", "step"),
    [
        (composed, GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), 9.0)),
        (coarse, sampled(1 / 8, 4.0)),
        *slow((composed, sampled(1 / 8, 4.0))),
    ],
)
def test_repetitions_of_repetitions_are_proved_as_so_many_in_all(tmp_path, written, step):
    document, path = written(Repeated(Repeated(step, 3), 5)), tmp_path / "run.json"
    assert document == written(Repeated(step, 15))
    path.write_bytes(document)
    (found,) = run_extracted([path])
    assert found.word == "proved"
    assert agrees(found, check(document)), found.line


@needs_checker
def test_too_many_samples_under_one_noise_are_no_answer(tmp_path):
    document, path = (
        with_epsilon(coarse(accumulated(64, 1 / 64, 9.0)), Fraction(100)),
        tmp_path / "x",
    )
    for group, samples, word in ((1, 64, "proved"), (1, 65, "undecided"), (2, 64, "undecided")):
        bent = json.loads(document)
        bent["mechanisms"][0]["batches"] = samples
        bent["subject"] = Run(bent["mechanisms"], bent["events"]).subject
        bent["nodes"][0]["parameters"]["group"] = group
        for node in bent["nodes"]:
            node["conclusion"]["group"] = group
        path.write_bytes(json.dumps(bent).encode())
        (found,) = run_extracted([path])
        assert found.word == word, found.line


@needs_checker
@pytest.mark.parametrize(
    "run",
    [
        (1000, 1 / 128, 1.0),
        *(
            pytest.param(run, marks=pytest.mark.slow)
            for run in ((1, 1 / 8, 2.0), (100, 1 / 64, 1.0))
        ),
        *("one of two", "one of four", "counts", "Laplace noise"),
        *quick(UNLIKE.keys() - COSTLY, UNLIKE),
    ],
)
def test_the_extracted_checker_proves_losses_and_no_smaller_epsilon(tmp_path, run):
    if isinstance(run, str):
        written = composed if run in AS_CERTIFIED else coarse
        enough = written(*UNLIKE[run]) if run in UNLIKE else pure_run(run)
    else:
        enough = certified(*run)
    too_small = smaller_epsilon(enough)
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, written in zip(paths, (enough, too_small), strict=True):
        path.write_bytes(written)
    proved, undecided = run_extracted(paths)
    assert agrees(proved, check(enough)), proved.line
    assert undecided.word == "undecided"
    with pytest.raises(CertificateWrong):
        check(too_small)


@needs_checker
@pytest.mark.parametrize("name", quick(SOON, GROUPS))
def test_losses_of_records_at_once_are_proved_and_no_smaller_ones(tmp_path, name):
    group, steps = GROUPS[name]
    enough, fewer = coarse(*steps, group=group), coarse(*steps, group=group - 1)
    documents = [enough, smaller_epsilon(enough)]
    # what fewer records lose is not said of more
    documents.append(fewer.replace(b'"group":%d' % (group - 1), b'"group":%d' % group))
    paths = [tmp_path / f"{k}.json" for k in range(len(documents))]
    for path, written in zip(paths, documents, strict=True):
        path.write_bytes(written)
    proved, *undecided = run_extracted(paths)
    assert agrees(proved, check(enough)), proved.line
    assert not any(found.word == "proved" for found in undecided)
    for wrong in documents[1:]:
        with pytest.raises(CertificateWrong):
            check(wrong)


def test_what_is_concluded_of_records_at_once_is_said_of_one_party():
    goal = coq_theorem(composed(MEAN, TOTAL, group=2))
    assert "dp (unit_neighbours null AddRemoveOne 2)" in goal
    assert " 2 (" in goal[goal.index("PrivacyLoss") :].partition("\n")[0]


@needs_checker
@pytest.mark.parametrize(("rate", "noise"), [(1 / 1000, 1.0), *slow((1 / 8, 2.0), (1 / 2, 0.5))])
def test_a_replaced_record_costs_what_its_pair_costs(tmp_path, rate, noise):
    document = composed(sampled(rate, noise, Adjacency.REPLACE_ONE))
    exact = Fraction(epsilon_of_replaced(rate, 1 / noise, 1e-5))
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (Fraction(1001, 1000), Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


@needs_checker
@pytest.mark.parametrize(
    ("size", "rate", "noise"), [(16, 1 / 64, 1.0), *slow((2, 1 / 8, 2.0), (5, 1 / 2, 2.0))]
)
def test_records_at_once_cost_what_their_mixture_costs(tmp_path, size, rate, noise):
    document = composed(sampled(rate, noise), group=size)
    exact = Fraction(exact_group_epsilon(size, rate, noise, 1e-5))
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (Fraction(1001, 1000), Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


@needs_checker
@pytest.mark.parametrize(("size", "rate", "noise"), [(2, 1 / 8, 4.0), *slow((5, 1 / 64, 4.0))])
def test_replaced_records_cost_what_the_pair_of_all_costs(tmp_path, size, rate, noise):
    document = composed(sampled(rate, noise, Adjacency.REPLACE_ONE), group=size)
    exact = Fraction(epsilon_of_replaced(1 - (1 - rate) ** size, size / noise, 1e-5))
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (Fraction(1001, 1000), Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


def least_epsilon_of_laplace(share: float, far: float, delta: float) -> float:
    """The epsilon of (1 - q) Lap(0) + q Lap(far) and Lap(0), in both orders, by quadrature."""

    def density(x: float) -> tuple[float, float]:
        without = exp(-abs(x)) / 2
        return (1 - share) * without + share * exp(-abs(x - far)) / 2, without

    def excess(epsilon: float, first: int) -> float:
        def above(x: float) -> float:
            pair = density(x)
            return max(0.0, pair[first] - exp(epsilon) * pair[1 - first])

        return quad(above, -40, 0)[0] + quad(above, 0, far, limit=200)[0] + quad(above, far, 60)[0]

    return brentq(lambda e: max(excess(e, 0), excess(e, 1)) - delta, 1e-9, far, xtol=1e-9)


@needs_checker
@pytest.mark.parametrize(("size", "rate", "scale"), [(2, 1 / 8, 2.0), (5, 1 / 64, 8.0)])
def test_records_in_samples_with_laplace_noise_cost_what_the_pair_of_all_costs(
    tmp_path, size, rate, scale
):
    noise = LaplaceStep(declared(1, "l1", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1), scale)
    event = Event(PoissonSampled(noise, rate), Context((), 1, "model", Audience.SERVER))
    document = certify([event], delta=1e-3, group=size).to_json_bytes()
    exact = Fraction(least_epsilon_of_laplace(1 - (1 - rate) ** size, size / scale, 1e-3))
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (Fraction(1001, 1000), Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


@needs_checker
@pytest.mark.parametrize(("size", "draws", "records"), [(5, 3, 100), *slow((2, 10, 400))])
def test_records_drawn_again_and_again_cost_hardly_more_than_their_mixture(
    tmp_path, size, draws, records
):
    noise = GaussianStep(mean_of_bounded(1, draws, Adjacency.REPLACE_ONE), 4 / draws)
    document = coarse(SampledWithReplacement(noise, draws, records), group=size)
    exact = Fraction(exact_group_epsilon(draws, size / records, 2.0, 1e-5))
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (Fraction(101, 100), Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


def epsilon_of_all_drawn_again(draws: int, records: int, noise: float, delta: float) -> float:
    """Return the largest epsilon of the noisy mean of draws with replacement between any two data
    sets of so many records, each of them -1/2 or 1/2: what can be drawn is enumerated."""
    x = np.linspace(-0.5 - 9 * noise, 0.5 + 9 * noise, 20_001)
    laws = []
    for data in product((-0.5, 0.5), repeat=records):
        means = [sum(data[i] for i in row) / draws for row in product(range(records), repeat=draws)]
        found = sum(np.exp(-((x - mean) ** 2) / (2 * noise**2)) for mean in means)
        laws.append(found / found.sum())

    def lost(epsilon: float) -> float:
        return max(np.maximum(p - exp(epsilon) * q, 0).sum() for p, q in permutations(laws, 2))

    return brentq(lambda e: lost(e) - delta, 0.0, 30.0, xtol=1e-9)


@needs_checker
@pytest.mark.parametrize(("draws", "records"), [(3, 3), *slow((3, 1), (1, 2), (4, 2))])
def test_all_records_drawn_again_and_again_cost_what_enumeration_says(tmp_path, draws, records):
    noise = GaussianStep(mean_of_bounded(Fraction(1, 2), draws, Adjacency.REPLACE_ONE), 0.5)
    document = composed(SampledWithReplacement(noise, draws, records), group=records)
    exact = Fraction(epsilon_of_all_drawn_again(draws, records, 0.5, 1e-5))
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (Fraction(1001, 1000), Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


@needs_checker
@pytest.mark.parametrize(
    ("size", "batch", "records"), [(2, 10, 401), *slow((5, 3, 94), (16, 3, 975))]
)
def test_records_in_a_batch_cost_hardly_more_than_their_mixture(tmp_path, size, batch, records):
    noise = GaussianStep(mean_of_bounded(1, batch, Adjacency.REPLACE_ONE), 4 / batch)
    document = coarse(SampledWithoutReplacement(noise, batch, records), group=size)
    rate = batch / (records - size + 1)  # of whole numbers each, as the draws that bound them need
    exact = Fraction(exact_group_epsilon(size, rate, 2.0, 1e-5))
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (Fraction(101, 100), Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


@needs_checker
@pytest.mark.parametrize("squared", [1, 2, 3, 4, 9, *slow(16, 25)])
@pytest.mark.parametrize("noise", [0.75, 3.0])
def test_discrete_gaussian_noise_costs_what_enumeration_says(tmp_path, squared, noise):
    document = composed(discrete(squared, noise))
    exact = Fraction(epsilon_of_discrete(squared, noise, 1e-5))
    # from 4 on one loss stands for several vectors: straight between their losses
    more = Fraction(1001 if squared < 4 else 1003, 1000)
    paths = [tmp_path / "enough.json", tmp_path / "too-small.json"]
    for path, share in zip(paths, (more, Fraction(999, 1000)), strict=True):
        path.write_bytes(with_epsilon(document, share * exact))
    assert [found.word for found in run_extracted(paths)] == ["proved", "undecided"]


@needs_proofs
def test_the_kernel_proves_a_run_private(certificates):
    found = prove(coq_theorem(certificates["repeated"].to_json_bytes()), proofs=compiled_proofs())
    assert found.proved, found.output
    assert {name.split(".")[-1] for name in axioms(found.output)} == REALS


@needs_proofs
@pytest.mark.slow
@pytest.mark.parametrize("name", COVERED)
def test_the_kernel_proves_what_the_checker_accepts(certificates, name):
    found = prove(coq_theorem(certificates[name].to_json_bytes()), proofs=compiled_proofs())
    assert found.proved, found.output


@needs_proofs
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("repeated", ("(MeanOfBounded (1 # 1) 400)", "(MeanOfBounded (2 # 1) 400)")),
        ("repeated", ("(MeanOfBounded (1 # 1) 400)", "(MeanOfBounded (1 # 1) 399)")),
        ("repeated", ("Event 1 [] 1", "Event 1 [] 2")),
        ("repeated", ("Event 1 [] 1", "Event 1 [1%positive] 1;\n  Event 2 [2%positive] 1")),
        ("repeated", ("Repeated 1 7", "Repeated 1 8")),
        ("repeated", ("Composition [1; 1]", "Composition [1; 2]")),
        ("answers", ("ResponseStep (3 # 4) 3", "ResponseStep (7 # 8) 3")),
        ("answers", ("ResponseStep (3 # 4) 3", "ResponseStep (3 # 4) 4")),
        ("answers", ("(Scaled (-1 # 2))", "(Scaled (-1 # 1))")),
    ],
)
def test_the_kernel_refuses_planted_faults(certificates, name, fault):
    old, new = fault
    goal = coq_theorem(certificates[name].to_json_bytes())
    assert goal.count(old) == 1
    assert not prove(goal.replace(old, new), proofs=compiled_proofs()).proved


@pytest.mark.parametrize("name", COVERED)
def test_the_theorem_names_the_run_and_its_numbers(certificates, name):
    certificate = certificates[name]
    goal = coq_theorem(certificate.to_json_bytes())
    document = json.loads(certificate.to_json_bytes())
    assert certificate.subject in goal
    assert len(re.findall(r"\bEvent \d+", goal)) == len(document["events"])
    assert len(re.findall(r"\bNode ", goal)) == len(document["nodes"])
    conclusion = document["nodes"][-1]["conclusion"]
    statement = goal[goal.index("Theorem this_run_is_private") :]
    for number in [conclusion[name] for name in ("epsilon", "delta") if name in conclusion]:
        numerator, _, denominator = number.partition("/")
        assert f"Q2R ({numerator} # {denominator or 1})" in statement
    assert "Admitted" not in goal


def test_what_is_not_covered_is_named():
    column = declared(1, "a column", adjacency=Adjacency.REPLACE_FEATURE_COLUMN)
    found = certify([event(GaussianStep(column, 9.0))], delta=1e-5)
    with pytest.raises(BeyondTheorem, match="adjacency=replace-feature-column"):
        coq_theorem(found.to_json_bytes())


def test_only_what_is_proved_becomes_a_theorem(certificates):
    document = json.loads(certificates["one Gaussian step"].to_json_bytes())
    with pytest.raises(CertificateWrong):
        coq_theorem(json.dumps(document | {"subject": "0" * 64}).encode())
