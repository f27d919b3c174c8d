"""Laws that a reviewer tried against prices at the borders, certificates, courts and audits.

Prices of one step are held against closed forms in sixty digits, prices of several against what
outputs in cells show, which is a lower bound on delta, as a function of the output tells no more
than all of it. Audits are given scores that lose all that they may.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom, hypergeom
from tests.parameters import slow

import dpledger as dp
from dpledger.accounting.check.reading import CalledWrong, CertificateWrong, Undecided
from dpledger.accounting.guarantees import epsilons_at
from dpledger.accounting.ledger import MemoryLedger
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.numbers.notions import ApproxDp
from dpledger.accounting.proof.proved import proved_guarantee
from dpledger.audits.claims.claim_file import promise_from_text
from dpledger.audits.claims.finished_run import judge_ledger
from dpledger.audits.claims.own import (
    MechanismKind,
    PromisedEpsilon,
    Sampling,
    StatedRelease,
    judged,
)
from dpledger.audits.crosschecks import crosscheck
from dpledger.audits.one_run import Canaries
from dpledger.audits.one_run_counts import OneRunAnyCount
from dpledger.audits.one_run_plan import audit_one_run, plan_guesses
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    LaplaceStep,
    Norm,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    SampledWithoutReplacement,
    declared,
)
from dpledger.mechanisms.errors import DpledgerError
from dpledger.mechanisms.events import GaussianMixtureStep, Mechanism, Repeated
from dpledger.mechanisms.protocols import Provenance
from dpledger.mechanisms.sensitivity import root_up, sum_of_bounded

Floats = NDArray[np.float64]
Law = list[tuple[Any, Any]]
"""Of a mixture: pairs of a weight and a mean."""

ADD, ZERO, REPLACE = Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE


def happened(*mechanisms: Mechanism) -> list[Event]:
    """Return events of these mechanisms, of no party."""
    return [Event(m, Context((), 1, "answer", Audience.PUBLIC)) for m in mechanisms]


# --- one step, in closed form ---------------------------------------------------------------------


def exact_delta(first: Law, second: Law, noise: Any, epsilon: Any, *, rises: bool) -> Any:
    """Return delta at epsilon of two mixtures of normal laws with a monotone likelihood ratio.

    Args:
        first, second: weights and means.
        noise: their standard deviation.
        epsilon: at which.
        rises: whether the ratio of the first to the second grows with the output.
    """

    def density(law: Law, y: Any) -> Any:
        return mpmath.fsum(w * mpmath.exp(-(((y - m) / noise) ** 2) / 2) for w, m in law)

    def excess(y: Any) -> Any:
        return mpmath.log(density(first, y) / density(second, y)) - epsilon

    far = max(abs(m) for _, m in (*first, *second)) + noise
    low, high = -far, far
    while (excess(low) > 0) is (excess(high) > 0):
        if abs(low) > 10**6 * far:
            return mpmath.mpf(0) if excess(low) <= 0 else 1 - mpmath.exp(epsilon)
        low, high = 2 * low, 2 * high
    for _ in range(190):
        middle = (low + high) / 2
        low, high = (middle, high) if (excess(middle) > 0) is (excess(low) > 0) else (low, middle)
    side = 1 if rises else -1

    def beyond(law: Law) -> Any:
        scale = noise * mpmath.sqrt(2)
        return mpmath.fsum(w * mpmath.erfc(side * (low - m) / scale) / 2 for w, m in law)

    return beyond(first) - mpmath.exp(epsilon) * beyond(second)


def drawn(rate: Any, size: int) -> Law:
    """Return how many of `size` records a Poisson sample holds: weights and shifts."""
    chances = (
        mpmath.binomial(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)
    )
    return [(chance, mpmath.mpf(j)) for j, chance in enumerate(chances)]


BORDERS = [
    # noise multiplier, rate, records of a unit, delta
    (0.2767, 0.0290783, 1, 5.7e-38),
    (1.3307, 6.7557e-09, 2, 5.6e-267),
    (0.143, 1.228e-06, 1, 3e-57),
    (1.6145, 1 - 2.0**-40, 2, 9.3e-50),
    (788.2, 7.078e-12, 1, 1.7e-49),
    (0.2191, 0.0015, 5, 2.2e-43),
    (4000.0, 0.999, 3, 0.0003),
    (0.05, 0.3, 1, 0.29),
]


@pytest.mark.parametrize(("noise", "rate", "size", "delta"), [*BORDERS[:4], *slow(*BORDERS[4:])])
@pytest.mark.parametrize("relation", [ADD, REPLACE])
def test_one_step_on_a_sample_costs_what_sixty_digits_say(
    noise: float, rate: float, size: int, delta: float, relation: Adjacency
) -> None:
    """Tried: rates next to 0 and to 1, deltas down to 1e-267, much noise and little, and units of
    several records; both grades from above, the enclosure also from below."""
    if relation is REPLACE:
        size = 1  # of several that are replaced all count as drawn, which no data need to reach
    stated: dict[str, Any] = {
        "noise_multiplier": noise,
        "rate": rate,
        "steps": 1,
        "sampling": "poisson",
        "adjacency": relation,
        "records_per_unit": size,
    }
    found = dp.epsilon(delta=delta, **stated).guarantee.epsilon
    fast = float(dp.curve(deltas=[delta], grade=Grade.FAST, **stated).epsilon[0])
    with mpmath.workdps(60):
        law, nobody = drawn(mpmath.mpf(rate), size), [(mpmath.mpf(1), mpmath.mpf(0))]
        pairs = [(law, nobody, True), (nobody, law, False)]
        if relation is REPLACE:
            pairs = [(law, [(w, -m) for w, m in law], True)]

        def lost(epsilon: float) -> Any:
            at = mpmath.mpf(epsilon)
            return max(exact_delta(p, q, mpmath.mpf(noise), at, rises=up) for p, q, up in pairs)

        for above in (found.upper_float, fast):
            assert lost(above) <= delta
        if found.lower_float > 0:
            assert lost(found.lower_float) >= delta


# --- several steps, in cells ----------------------------------------------------------------------


def in_cells(law: Law, noise: float, edges: Floats) -> Floats:
    """Return the masses of a mixture of normal laws between edges."""
    masses = np.zeros(edges.size - 1)
    for weight, mean in law:
        z = (edges - mean) / noise
        masses += weight * np.where(z[:-1] > 0, ndtr(-z[:-1]) - ndtr(-z[1:]), np.diff(ndtr(z)))
    return masses


def told(first: Floats, second: Floats, steps: int, epsilon: float) -> float:
    """Return a lower bound on delta at epsilon of so many steps, by losses rounded down."""
    seen = (first > 0) & (second > 0)
    losses, masses = np.log(first[seen] / second[seen]), first[seen]
    if steps == 1:
        above = losses > epsilon
        return float(-masses[above] @ np.expm1(epsilon - losses[above]))
    order = np.argsort(losses)
    losses, masses = losses[order], masses[order]
    kept = (np.cumsum(masses) > 1e-13) & (np.cumsum(masses[::-1])[::-1] > 1e-13)
    losses, masses = losses[kept], masses[kept]
    width = max(float(losses[-1] - losses[0]) / 2**14, 1e-9)
    places = np.floor(losses / width).astype(int)
    one = np.bincount(places - places[0], weights=masses)
    size = one.size * steps
    spectrum = np.fft.rfft(one, 1 << size.bit_length())
    total = np.maximum(np.fft.irfft(spectrum**steps)[:size] - 1e-14, 0.0)
    sums = (np.arange(size) + steps * int(places[0])) * width
    above = sums > epsilon
    return float(-total[above] @ np.expm1(epsilon - sums[above]))


def neighbours(scheme: str, relation: Adjacency, rate: float, size: int) -> list[tuple[Law, Law]]:
    """Return pairs of laws of one Poisson or whole step with a unit of `size` records, and without.

    A record that is replaced brings the clip norm first, then minus the clip norm.
    """
    law: Law = [(float(binom.pmf(j, size, rate)), float(j)) for j in range(size + 1)]
    if scheme == "none":
        law = [(1.0, float(size))]
    if relation is REPLACE:
        return [(law, [(w, -m) for w, m in law])]
    nobody: Law = [(1.0, 0.0)]
    return [(law, nobody), (nobody, law)]


def batches(batch: int, records: int, size: int, *, again: bool) -> list[tuple[Law, Law]]:
    """Return pairs of laws of a step on a batch of fixed size, `size` records of which differ."""
    most = batch if again else min(batch, size)
    chance = binom(batch, size / records) if again else hypergeom(records, size, batch)
    chances = [float(chance.pmf(j)) for j in range(most + 1)]

    def of(own: int, others: int) -> Law:
        return [(w, float(j * own + (batch - j) * others)) for j, w in enumerate(chances)]

    return [(of(x, o), of(-x, o)) for x, o in itertools.product((1, -1), (-1, 0, 1))]


@pytest.mark.parametrize("seed", range(10))
def test_no_training_run_tells_more_than_either_grade_prints(seed: int) -> None:
    """Tried: six schemes under all their relations, units of several records, cycles, a few steps;
    batches beside others that pull the same way, the other way, and not at all."""
    draw = random.Random(seed)
    schemes = {
        "none": (ADD, ZERO, REPLACE),
        "poisson": (ADD, ZERO, REPLACE),
        "cyclic-poisson": (ZERO, REPLACE),
        "fixed-batch": (REPLACE,),
        "with-replacement": (REPLACE,),
    }
    scheme = list(schemes)[seed % 5]
    relation, noise = draw.choice(schemes[scheme]), math.exp(draw.uniform(-0.5, 2.0))
    steps, delta, size = draw.choice([1, 2, 4]), 10 ** draw.uniform(-7, -2), draw.choice([1, 1, 2])
    stated: dict[str, Any] = {"steps": steps, "records_per_unit": size}
    if scheme in ("none", "poisson"):
        rate = draw.uniform(0.001, 0.99)
        stated |= {"rate": rate} if scheme == "poisson" else {}
        pairs = neighbours(scheme, relation, rate, size)
    elif scheme == "cyclic-poisson":
        cycle, group, batch = draw.randrange(1, 5), draw.randrange(20, 60), draw.randrange(1, 15)
        records = group * cycle + draw.randrange(cycle)
        stated = {"records": records, "batch": batch, "cycle": cycle, "steps": steps * cycle}
        pairs = neighbours(scheme, relation, batch / group, 1)
    else:
        records, batch = draw.randrange(5, 60), draw.randrange(1, 6)
        stated |= {"records": records, "batch": batch}
        pairs = batches(batch, records, size, again=scheme == "with-replacement")
    stated |= {"noise_multiplier": noise, "sampling": scheme, "adjacency": relation}
    printed = [
        dp.epsilon(delta=delta, **stated).epsilon,
        float(dp.curve(deltas=[delta], grade=Grade.FAST, **stated).epsilon[0]),
    ]
    far = max(abs(m) for pair in pairs for law in pair for _, m in law) + 8 * noise
    edges = np.linspace(-far, far, 3001)
    for first, second in pairs:
        cells = in_cells(first, noise, edges), in_cells(second, noise, edges)
        for epsilon in printed:
            assert told(*cells, steps, epsilon) <= delta * (1 + 1e-6)


def noisy_counts(scale: float, reach: int, shift: int) -> tuple[Floats, Floats]:
    """Return the masses of discrete Laplace noise on whole numbers, and of the same moved."""
    places = np.arange(-reach, reach + 1)
    total = (1 + math.exp(-1 / scale)) / (1 - math.exp(-1 / scale))
    return (
        np.exp(-np.abs(places) / scale) / total,
        np.exp(-np.abs(places - shift) / scale) / total,
    )


def normal_counts(noise: float, vector: Sequence[int]) -> tuple[Floats, Floats]:
    """Return masses of <v, K>, K discrete normal noise, and of the same under the moved data."""
    reach = int(12 * noise) + 4
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * noise**2))
    law = np.ones(1)
    for moved in vector:
        spaced = np.zeros(moved * (one.size - 1) + 1)
        spaced[::moved] = one / one.sum()
        law = np.convolve(law, spaced)
    squared = sum(moved**2 for moved in vector)
    losses = (squared + 2 * (np.arange(law.size) - law.size // 2)) / (2 * noise**2)
    return law, law * np.exp(-losses)


def laplace_cells(law: Law, scale: float, edges: Floats) -> Floats:
    """Return the masses of a mixture of Laplace laws between edges."""
    masses = np.zeros(edges.size - 1)
    for weight, mean in law:
        z = (edges - mean) / scale
        up, down = np.exp(-np.maximum(z, 0)) / 2, np.exp(np.minimum(z, 0)) / 2
        masses += weight * np.where(z[:-1] >= 0, up[:-1] - up[1:], down[1:] - down[:-1])
    return masses


def steps_and_cells() -> list[tuple[Mechanism, list[tuple[Floats, Floats]]]]:
    """Return mechanisms of many kinds, each with what neighbours that meet its bound release."""
    edges = np.unique(np.concatenate([np.linspace(-40.0, 40.0, 4001), [-1.0, 0.0, 1.0, 2.0]]))
    nobody, q = [(1.0, 0.0)], 0.3
    poisson = [(1 - q, 0.0), (q, 1.0)]
    mixed = [(1 - q, 0.5), (q, 1.5)]
    inverse = [(1 - q, -0.5), (q, 0.5)]
    laplace = tuple(laplace_cells(law, 1.5, edges) for law in (poisson, nobody))
    others = [[(0.75, 0.0), (0.25, 1.0)], [(0.75, 0.0), (0.25, -1.0)]]
    batch = tuple(laplace_cells(law, 1.5, edges) for law in others)
    parts = [tuple(in_cells(law, 1.2, edges) for law in (m, nobody)) for m in (mixed, inverse)]
    unit = declared(1, "example", adjacency=ADD, norm=Norm.L1)
    twice = declared(2, "example", adjacency=REPLACE, norm=Norm.L1)
    half = declared(Fraction(1, 2), "example", adjacency=ZERO)
    five = declared(root_up(Fraction(5)), "example", adjacency=ADD)
    answer = np.array([0.6, 0.2, 0.2]), np.array([0.2, 0.6, 0.2])
    pure = np.array([1.0, math.exp(-0.7)]) / (1 + math.exp(-0.7))
    return [
        (PoissonSampled(LaplaceStep(unit, 1.5), q), [laplace, laplace[::-1]]),  # type: ignore[list-item]
        (SampledWithoutReplacement(LaplaceStep(twice, 1.5), 1, 4), [batch]),  # type: ignore[list-item]
        (
            GaussianMixtureStep(half, sum_of_bounded(1, ZERO), q, 1.2),
            [pair for each in parts for pair in (each, each[::-1])],  # type: ignore[misc]
        ),
        (
            DiscreteLaplaceStep(declared(2, "example", adjacency=ADD, norm=Norm.L1), 1.7),
            [noisy_counts(1.7, 90, 2)],
        ),
        (
            DiscreteGaussianStep(five, 1.3),
            [normal_counts(1.3, vector) for vector in ((2, 1), (1, 1, 1, 1, 1))],
        ),
        (RandomisedResponse(0.6, 3), [answer]),
        (
            PureStep(declared(Fraction(7, 10), "x", adjacency=ADD, norm=Norm.L1), 1.0),
            [(pure, pure[::-1])],
        ),
    ]


@pytest.mark.parametrize(
    ("place", "times"),
    [
        *zip(range(7), (3, 1, 1, 3, 1, 3, 1), strict=True),
        *slow(*zip(range(7), (1, 3, 3, 1, 3, 1, 3), strict=True)),
    ],
)
def test_no_step_tells_more_than_any_grade_says(place: int, times: int) -> None:
    """Tried: Laplace noise on samples and batches, mixtures whose parts pull one way and two ways,
    discrete noise on vectors, answers, pure steps; proved, enclosed and fast."""
    mechanism, pairs = steps_and_cells()[place]
    events, delta = happened(Repeated(mechanism, times)), 1e-4
    said, proof = proved_guarantee(events, delta=delta)
    assert proof is not None
    fast = epsilons_at(events, deltas=[delta], grade=Grade.FAST).epsilon[0]
    enclosed = dp.guarantee(events, delta=delta).epsilon
    for epsilon in (said.epsilon.upper_float, enclosed.upper_float, float(fast)):
        for first, second in pairs:
            assert told(first, second, times, epsilon) <= delta * (1 + 1e-6)


# --- certificates ---------------------------------------------------------------------------------


def written() -> bytes:
    """Return the certificate of a step, and of three more of its kind."""
    step = GaussianStep(declared(1, "example", adjacency=ADD), 2.0)
    return dp.certify(happened(step, Repeated(step, 3)), delta=1e-5).to_json_bytes()


def test_no_spelling_of_a_certificate_changes_what_it_proves() -> None:
    """Tried: blanks, other orders of fields, letters as escapes: all are the same document."""
    document = written()
    content = json.loads(document)
    proved = dp.verify(document)
    turned = {name: content[name] for name in reversed(content)}
    for text in (json.dumps(content, indent=3), json.dumps(turned), json.dumps(content) + "\n\t "):
        assert dp.verify(text.encode()) == proved
    escaped = document.replace(b'"server"', b'"\\u0073erver"').replace(
        b'"public"', b'"p\\u0075blic"'
    )
    assert escaped != document
    assert dp.verify(escaped) == proved


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all numbers and texts of a document."""
    if isinstance(value, dict):
        return [p for name, inner in value.items() for p in leaves(inner, (*path, name))]
    if isinstance(value, list):
        return [p for place, inner in enumerate(value) for p in leaves(inner, (*path, place))]
    return [path]


def test_odd_values_in_a_certificate_are_refused_by_name() -> None:
    """Tried: null, truth values, lists, empty and huge numbers, blanks in rationals, digits of
    other scripts, at many places of a document: a verdict of another document, or one of the
    checker's own errors; never another error, and never less for the same events."""
    document = written()
    honest = dp.verify(document)
    content, draw = json.loads(document), random.Random(3)
    odd: list[object] = [
        None,
        True,
        [],
        {},
        "",
        "0",
        "1/0",
        " 1",
        "1 ",
        "-1",
        "٣",
        "1e5",
        -1,
        0,
        10**18,
        "9" * 1500,
    ]
    for path in draw.sample(leaves(content), 25):
        for value in draw.sample(odd, 5):
            bent = json.loads(document)
            at = bent
            for name in path[:-1]:
                at = at[name]
            at[path[-1]] = value
            try:
                found = dp.verify(json.dumps(bent).encode())
            except (CertificateWrong, CalledWrong, Undecided):
                continue
            same = found.subject == honest.subject and found.notion == honest.notion
            assert not same or found.values >= honest.values, (path, value)


@pytest.mark.parametrize(
    "document",
    [b"", b"5", b"null", b"[]", b"{}", b"[" * 10**5, b'{"a":1,"a":1}', b"\xef\xbb\xbf{}", b"\xff"],
)
def test_what_is_no_certificate_is_wrong(document: bytes) -> None:
    """Tried: nothing, numbers, deep lists, a name twice, marks of byte order, other encodings."""
    with pytest.raises(CertificateWrong):
        dp.verify(document)


# --- the court ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [Sampling.NONE, Sampling.POISSON, Sampling.FIXED_BATCH])
@pytest.mark.parametrize("noise", [0.7, 3.0])
def test_a_promise_holds_from_the_price_on_and_is_not_implied_below(
    scheme: Sampling, noise: float
) -> None:
    """The court and the price of a plan are two roads to one number."""
    relation = REPLACE if scheme is Sampling.FIXED_BATCH else ADD
    release = StatedRelease(
        MechanismKind.GAUSSIAN,
        clip_norm=1.0,
        noise=noise,
        rounds=4,
        sampling=scheme,
        rate=0.125 if scheme is Sampling.POISSON else None,
        batch=5 if scheme is Sampling.FIXED_BATCH else None,
        records=40 if scheme is Sampling.FIXED_BATCH else None,
    )
    stated: dict[str, Any] = {"rate": 0.125} if scheme is Sampling.POISSON else {}
    stated = {"batch": 5, "records": 40} if scheme is Sampling.FIXED_BATCH else stated
    price = dp.epsilon(
        noise_multiplier=noise, steps=4, delta=1e-5, sampling=scheme, adjacency=relation, **stated
    ).guarantee.epsilon
    for epsilon, verdict in (
        (price.upper_float, "holds"),
        (price.lower_float * (1 - 1e-9), "not implied by what is stated"),
    ):
        found = judged([release], PromisedEpsilon(epsilon, 1e-5), adjacency=relation)
        assert found.verdict.value == verdict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "}{",
        "epsilon=1",
        "delta=0.1",
        "epsilon=nan, delta=0",
        "epsilon=inf, delta=0.5",
        "epsilon=1, delta=1",
        "epsilon=1, epsilon=2, delta=0",
        "epsilon=1 delta=1e-5",
        "epsilon=1_0, delta=0.1",
        "epsilon=0x10, delta=0.1",
        "epsilon=true, delta=0.5",
        "epsilon=1e400, delta=0",
        "rho=1e-400",
        "epsilon=1, delta=1e-5, rho=1",
        "mu=[1]",
        "x" * 10**5,
    ],
)
def test_odd_texts_of_a_promise_are_refused_in_a_sentence(text: str) -> None:
    """Tried: what is missing, twice there, no number, out of range, or of another language."""
    with pytest.raises(DpledgerError):
        promise_from_text(text)


@pytest.mark.parametrize(
    ("mechanism", "promise", "verdict"),
    [
        (
            LaplaceStep(declared(1, "x", adjacency=ADD, norm=Norm.L1), 2.0),
            "epsilon=0.5, delta=0",
            "holds",
        ),
        (GaussianStep(declared(1, "x", adjacency=ADD), 5.0), "mu=0.2000001", "holds"),
        (GaussianStep(declared(1, "x", adjacency=ADD), 5.0), "rho=0.0200001", "holds"),
        (
            GaussianStep(declared(1, "x", adjacency=ADD), 5.0),
            "mu=0.1",
            "not implied by what is stated",
        ),
        (RandomisedResponse(0.75), "epsilon=1.0987, delta=0", "holds"),
        (RandomisedResponse(0.75), "epsilon=1.0985, delta=0", "fails"),
        (GaussianStep(declared(1, "x", adjacency=ADD), 0.0), "rho=1e30", "fails"),
        (GaussianStep(declared(0, "x", adjacency=ADD), 0.0), "epsilon=0, delta=0", "holds"),
    ],
)
def test_a_ledgers_promise_is_judged_in_its_own_unit(
    mechanism: Mechanism, promise: str, verdict: str
) -> None:
    """Tried: promises of epsilon, rho and mu next to the closed form, on either side."""
    ledger, events = MemoryLedger(), happened(mechanism)
    run = ledger.run("run", configuration_hash="hash", plan=events)
    run.commit(run.reserve(events, Provenance("elsewhere", None)))
    assert judge_ledger(ledger, promise_from_text(promise)).finding.verdict.value == verdict


@pytest.mark.parametrize("noise", [0.05, 0.4, 3.0, 50.0])
def test_another_library_contradicts_no_ordinary_price(noise: float) -> None:
    """Tried: Gaussian and Laplace noise from epsilon 280 down to a hundredth."""
    pytest.importorskip("dp_accounting")
    steps = (
        GaussianStep(declared(1, "x", adjacency=ADD), noise),
        LaplaceStep(declared(1, "x", adjacency=ADD, norm=Norm.L1), noise),
    )
    for step in steps:
        assert not crosscheck(happened(step), delta=1e-5).is_finding


# --- audits of one run ----------------------------------------------------------------------------


def canaries(epsilon: float, delta: float, count: int, generator: np.random.Generator) -> Canaries:
    """Return scores that lose all of (epsilon, delta), each coin's by itself; ties are broken."""
    coins = generator.random(count) < 0.5
    right = generator.random(count) < 1 / (1 + math.exp(-epsilon))
    scores = np.where(right == coins, 1.0, -1.0) + generator.random(count) / 10
    scores = np.where(generator.random(count) < delta, np.where(coins, 3.0, -3.0), scores)
    return Canaries.of(scores, coins)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"), [(1.0, 0.02, 20), *slow((1.0, 1e-5, 40), (0.1, 1e-5, 30))]
)
def test_canaries_that_lose_all_they_may_are_seldom_accused(
    epsilon: float, delta: float, count: int
) -> None:
    """A kept claim may be refuted in a tenth of 300 audits, and by chance in 50 at the most."""
    generator, claimed = np.random.default_rng(11), ApproxDp(epsilon, delta)
    plan = plan_guesses(canaries=count, claimed=claimed, delta=delta, confidence=0.9)
    accused = sum(
        audit_one_run(
            canaries(epsilon, delta, count, generator),
            claimed=claimed,
            delta=delta,
            confidence=0.9,
            plan=plan,
        ).is_finding
        for _ in range(300)
    )
    assert accused <= 50


@pytest.mark.parametrize(
    ("epsilon", "count", "confidence"), [*slow((0.1, 30, 0.9)), (0.05, 4, 0.5)]
)
def test_the_best_of_all_numbers_of_guesses_keeps_its_confidence(
    epsilon: float, count: int, confidence: float
) -> None:
    """Tried: few canaries and small epsilons, where the counts are coarse."""
    generator, bound = np.random.default_rng(12), OneRunAnyCount(confidence)
    runs = 800
    above = sum(
        bound.lower_bound(canaries(epsilon, 0.0, count, generator), delta=1e-9).epsilon > epsilon
        for _ in range(runs)
    )
    allowed = 1 - confidence
    assert above <= runs * allowed + 4 * math.sqrt(runs * allowed * (1 - allowed))
