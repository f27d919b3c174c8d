"""Law: what `certify` proves, the checker confirms, at or just above the exact epsilon.

The exact epsilon comes from the engine's enclosure, and for groups and discrete mechanisms from
brute force that shares nothing with either.
"""

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb, exp, log

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, hypergeom, norm
from tests.parameters import quick, slow

from dpledger.accounting.check import pld_checker
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.pld.accountant import TightAccountant
from dpledger.accounting.proof import proved as proving
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.proved import NotProved, proved, proved_guarantee
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
    Norm,
    Parties,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    declared,
    rounding,
)
from dpledger.mechanisms.encoding import subject_hash
from dpledger.mechanisms.lattice import on_lattice
from dpledger.mechanisms.sensitivity import concatenated, scaled, sum_of_bounded

from .grids import on_a_grid

ADD, REPLACE, ZERO = Adjacency.ADD_REMOVE_ONE, Adjacency.REPLACE_ONE, Adjacency.ZERO_OUT_ONE


def gaussian(noise_std, adjacency=ADD):
    return GaussianStep(sum_of_bounded(1, adjacency), noise_std)


def laplace(scale, adjacency=ADD, length=1):
    return LaplaceStep(declared(length, "l1", adjacency=adjacency, norm=Norm.L1), scale)


def discrete_laplace(scale, length=1):
    return DiscreteLaplaceStep(declared(length, "l1", adjacency=ADD, norm=Norm.L1), scale)


def discrete_gaussian(noise_std, squared=1):
    return DiscreteGaussianStep(declared(squared, "l2", adjacency=ADD), noise_std)


def mixture(adjacency, derived=True):
    one = sum_of_bounded(1, adjacency) if derived else declared(1, "x", adjacency=adjacency)
    return GaussianMixtureStep(scaled(one, 0.05), one, 0.01, 5.0)


def on_a_lattice(step):
    """A mixture as curators release it, of a loss of which something is assumed."""
    assumed = declared(0, "its loss is elementwise", adjacency=step.sampled.adjacency)
    parts = (step.constant, concatenated(step.sampled, assumed))
    total = rounding.total(Fraction(1), 800, 3)
    both = rounding.joined(rounding.scaled(total, Fraction(0.05)), total)
    constant, sampled = (on_lattice(part, both, scale=step.noise_std) for part in parts)
    return GaussianMixtureStep(constant, sampled, step.rate, step.noise_std)


def events(*mechanisms, parties=()):
    return [
        Event(m, Context(parties, k, "model", Audience.SERVER)) for k, m in enumerate(mechanisms, 1)
    ]


RUNS = {
    "gaussian": events(gaussian(5.0), Repeated(gaussian(9.0), 3)),
    "laplace": events(Repeated(laplace(10.0), 50)),
    "two kinds of laplace": events(Repeated(laplace(10.0), 20), laplace(7.0, length=2)),
    "discrete laplace": events(Repeated(discrete_laplace(6.0, 2), 20)),
    "discrete gaussian": events(Repeated(discrete_gaussian(5.0), 10)),
    "two coordinates": events(Repeated(discrete_gaussian(5.0, Fraction(3, 2)), 10)),
    "integer vectors": events(Repeated(discrete_gaussian(5.0, Fraction(5, 2)), 10)),
    "randomised response": events(Repeated(RandomisedResponse(0.75, 2), 20)),
    "unlikely answers": events(Repeated(RandomisedResponse(0.1, 4), 20)),
    "poisson": events(Repeated(PoissonSampled(gaussian(1.0), 0.01), 1000)),
    "poisson laplace": events(Repeated(PoissonSampled(laplace(1.0), 0.01), 1000)),
    "fixed batch": events(Repeated(SampledWithoutReplacement(gaussian(4.0, REPLACE), 2, 99), 80)),
    "fixed batch laplace": events(
        Repeated(SampledWithoutReplacement(laplace(2.0, REPLACE), 2, 99), 30)
    ),
    "mixture": events(Repeated(mixture(REPLACE), 50)),
    "mixture, sample told": events(Repeated(mixture(REPLACE, derived=False), 50)),
    "mixture, released": events(Repeated(on_a_lattice(mixture(REPLACE)), 50)),
    "mixture, add or remove": events(Repeated(mixture(ADD), 50)),
    "mixture, zero out": events(Repeated(mixture(ZERO), 50)),
    "many kinds": events(
        laplace(9.0), gaussian(5.0), discrete_gaussian(9.0), PoissonSampled(gaussian(1.0), 0.01)
    ),
    "parties": [
        *events(*[PoissonSampled(gaussian(1.0), 0.01)] * 10, parties=("north",)),
        *events(*[PoissonSampled(gaussian(1.0), 0.03)] * 5, parties=("south",)),
        *events(gaussian(9.0)),
    ],
    "parties inside": events(
        Repeated(
            Parties(
                (
                    ("north", (PoissonSampled(gaussian(1.0), 0.01),) * 2),
                    ("south", (laplace(9.0), PoissonSampled(gaussian(1.0), 0.02))),
                    ("west", ()),
                )
            ),
            10,
        ),
        Parties((("north", (laplace(9.0),)), ("east", (gaussian(9.0),)))),
        gaussian(12.0),
    ),
    "no cost to speak of": events(Repeated(PoissonSampled(gaussian(1.0), 1e-12), 10**4)),
    "hardly any noise": events(PoissonSampled(gaussian(0.2), 0.5)),
    "sampled almost always": events(Repeated(PoissonSampled(gaussian(4.0), 0.999), 9)),
}


def confirmed(run, delta, group=1, fineness=None):
    """The epsilon that both the certificate states and the checker recomputes.

    On a grid so many times as wide as that of `certify`, if one is named.
    """
    if fineness is None:
        found = certify(run, delta=delta, group=group)
    else:
        mechanisms = [each.mechanism for each in run]
        found = on_a_grid(*mechanisms, delta=Fraction(delta), group=group, fineness=fineness)
    verdict = pld_checker.check(found.to_json_bytes())
    assert verdict.values == (Fraction(delta), Fraction(found.epsilon))
    assert (verdict.subject, verdict.group) == (found.subject, group)
    return found.epsilon


SEEN_BY_OTHERS = {
    *("mixture, released", "mixture, sample told", "mixture, zero out", "mixture, add or remove"),
    *("parties", "parties inside", "two kinds of laplace", "unlikely answers", "many kinds"),
    *("fixed batch laplace", "two coordinates", "sampled almost always"),
    "hardly any noise",
}
"""Runs whose rules others here use too: checked with the slow tests."""


@pytest.mark.parametrize("name", quick(RUNS.keys() - SEEN_BY_OTHERS, RUNS))
def test_the_proved_epsilon_is_the_exact_one_to_a_thousandth_and_of_these_events(name, monkeypatch):
    run, exact = RUNS[name], guarantee(RUNS[name], delta=1e-5).epsilon
    found, proof = proved_guarantee(run, delta=1e-5)
    verdict = pld_checker.check(proof.document)
    assert found.grade is Grade.PROVED
    assert found.epsilon.upper_float == verdict.values[1] == Fraction(proof.epsilon)
    room = 0 if name in ("gaussian", "laplace", "two kinds of laplace") else 1e-3
    assert exact.lower_float <= proof.epsilon <= exact.upper_float * (1 + room) + room * 1e-6
    assert (verdict.subject, verdict.adjacency) == (subject_hash(run), found.adjacency.value)
    # what follows is about the comparison: the checker's verdict on this document is known
    monkeypatch.setattr(proving, "check", {proof.document: verdict}.__getitem__)
    asked = {"events": run, "delta": 1e-5, "epsilon": proof.epsilon, "group": 1}
    asked |= {"adjacency": found.adjacency}
    assert proved(proof.document, **asked) == verdict
    other = next(relation for relation in Adjacency if relation is not found.adjacency)
    for what, change in (
        ("subject", {"events": run[:-1]}),
        ("subject", {"events": [*run, run[0]]}),
        ("delta", {"delta": 1e-6}),
        ("adjacency", {"adjacency": other}),
        ("group", {"group": 2}),
        ("epsilon", {"epsilon": proof.epsilon * (1 - 1e-15)}),
    ):
        with pytest.raises(NotProved, match=f"proves {what}="):
            proved(proof.document, **(asked | change))


@pytest.mark.parametrize("delta", [1e-12, *slow(1e-1, 1e-40)])
def test_it_is_so_at_every_delta(delta):
    run = events(Repeated(PoissonSampled(gaussian(1.0), 0.01), 500))
    exact = guarantee(run, delta=delta).epsilon
    assert exact.lower_float <= confirmed(run, delta) <= exact.upper_float * 1.002


def exact_group_epsilon(size, rate, noise_std, delta):
    """One Poisson-sampled Gaussian step of a group, in both orders, by quadrature-free formulas."""
    weights = [comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]
    mu = 1 / noise_std

    def loss(y):
        return log(sum(w * exp(j * mu * y - j * j * mu * mu / 2) for j, w in enumerate(weights)))

    def above(y):
        with_it = sum(w * mpmath.ncdf(j * mu - y) for j, w in enumerate(weights))
        return float(with_it), float(mpmath.ncdf(-y))

    def removed(epsilon):
        y = brentq(lambda y: loss(y) - epsilon, -40, 40, xtol=1e-14)
        p, q = above(y)
        return p - exp(epsilon) * q

    def added(epsilon):
        if -epsilon <= log(weights[0]):
            return 0.0
        y = brentq(lambda y: loss(y) + epsilon, -40, 40, xtol=1e-14)
        p, q = above(y)
        return (1 - q) - exp(epsilon) * (1 - p)

    return brentq(lambda e: max(removed(e), added(e)) - delta, 1e-6, 30, xtol=1e-12)


@pytest.mark.parametrize("size", [2, *slow(3, 5)])
def test_a_group_pays_for_as_many_records_as_a_poisson_sample_draws(size):
    exact = exact_group_epsilon(size, 0.1, 2.0, 1e-6)
    found = confirmed(events(PoissonSampled(gaussian(2.0), 0.1)), 1e-6, group=size)
    assert exact * (1 - 1e-9) <= found <= exact * 1.001


@pytest.mark.parametrize(
    "run",
    [
        events(laplace(9.0), laplace(9.0)),
        events(*[RandomisedResponse(0.6, 2)] * 2),
        *slow(events(Repeated(SampledWithoutReplacement(gaussian(6.0, REPLACE), 2, 99), 20))),
        events(discrete_laplace(9.0)),
        events(PoissonSampled(laplace(4.0), 0.1)),
    ],
    ids=["laplace", "answers", "fixed batch", "discrete laplace", "poisson laplace"],
)
def test_groups_pay_more_and_no_more_than_in_the_engine(run):
    accountant = TightAccountant()
    accountant.extend(run)
    alone, found = confirmed(run, 1e-6), confirmed(run, 1e-6, group=2)
    assert alone < found <= accountant.epsilon(1e-6, group=2).upper_float * 1.001


def normal_mixture_epsilon(first, second, noise_std, delta):
    """ε of mixtures {mean: weight} of normal laws against each other, in the dearer order."""
    points = np.linspace(-12 * noise_std, 12 * noise_std + 8, 400_001)

    def density(mixture):
        return sum(w * norm.pdf(points, mean, noise_std) for mean, w in mixture.items())

    p, q, width = density(first), density(second), points[1] - points[0]

    def excess(epsilon):
        over = [np.maximum(a - exp(epsilon) * b, 0).sum() * width for a, b in ((p, q), (q, p))]
        return max(over) - delta

    return brentq(excess, 0, 60, xtol=1e-10) if excess(0) > 0 else 0.0


@pytest.mark.parametrize("size", [1, 2, 4])
@pytest.mark.parametrize("signs", [(0, 1), (-0.5, 0.5)], ids=["zero to one", "half to half"])
def test_a_group_in_a_fixed_batch_pays_at_least_for_those_that_are_drawn(size, signs):
    batch, records, noise_std = 3, 12, 2.0
    drawn = hypergeom(records, size, batch).pmf(np.arange(size + 1))
    old, new = ({j * sign: float(w) for j, w in enumerate(drawn)} for sign in signs)
    old = {0.0: 1.0} if signs[0] == 0 else old
    exact = normal_mixture_epsilon(old, new, noise_std, 1e-3)
    step = GaussianStep(declared(1, "moved", adjacency=REPLACE), noise_std)
    tight = size == 1 and signs[0] == 0
    run = events(SampledWithoutReplacement(step, batch, records))
    found = confirmed(run, 1e-3, group=size, fineness=None if tight else 8.0)
    assert exact * (1 - 1e-6) <= found
    if tight:
        assert found <= exact * 1.001


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_group_in_a_mixture_step_pays_at_least_for_those_that_are_drawn(size):
    constant, rate, noise_std = 0.125, 0.25, 2.0
    drawn = binom(size, rate).pmf(np.arange(size + 1))
    with_it = {size * constant + j: float(w) for j, w in enumerate(drawn)}
    exact = normal_mixture_epsilon(with_it, {0.0: 1.0}, noise_std, 1e-3)
    one = sum_of_bounded(1, ADD)
    mechanism = GaussianMixtureStep(scaled(one, constant), one, rate, noise_std)
    found = confirmed(events(mechanism), 1e-3, group=size, fineness=8.0)
    assert exact * (1 - 1e-6) <= found


def exact_discrete_epsilon(masses, times, delta):
    """By enumeration of all sums of losses: `masses` are pairs of a P-mass and a Q-mass."""
    total = Counter({(): 1.0})
    for picks in product(range(len(masses)), repeat=times):
        total[tuple(sorted(picks))] += 1.0
    del total[()]
    pairs = []
    for picks, often in total.items():
        p = q = mpmath.mpf(often)
        for k in picks:
            p, q = p * masses[k][0], q * masses[k][1]
        pairs.append((p, q))

    def excess(epsilon):
        ratio = mpmath.exp(epsilon)
        return float(sum(max(p - ratio * q, 0) for p, q in pairs) / delta - 1)

    return brentq(excess, 0, 60, xtol=1e-13) if excess(0) > 0 else 0.0


@pytest.mark.parametrize(
    "free",
    [
        discrete_gaussian(1.0, Fraction(1, 2)),  # no two vectors of whole numbers are as near
        discrete_laplace(1.0, Fraction(1, 2)),
        laplace(1.0, length=0),
        RandomisedResponse(0.5),
        PoissonSampled(gaussian(2.0), 0.0),
        PoissonSampled(laplace(1.0, length=0), 0.1),
    ],
)
def test_what_costs_nothing_is_proved_to_cost_nothing(free):
    delta = Fraction(1, 10**6)
    for run in (events(free), events(Repeated(free, 3), free)):
        found = certify(run, delta=delta)
        assert found.guarantee.epsilon == 0
        assert pld_checker.check(found.to_json_bytes()).values == (delta, 0)


def test_randomised_response_is_what_enumeration_says():
    other = mpmath.mpf(1) / 8
    masses = [(mpmath.mpf(3) / 4, other), (other, mpmath.mpf(3) / 4), (other, other)]
    exact = exact_discrete_epsilon(masses, 5, 1e-3)
    found = confirmed(events(*[RandomisedResponse(0.75, 3)] * 5), 1e-3)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-4)


def test_discrete_noise_is_what_enumeration_says():
    mpmath.mp.dps = 30
    for mechanism, weight, reach in (
        (discrete_laplace(2.0), lambda k: mpmath.exp(-abs(k) / mpmath.mpf(2)), 60),
        (discrete_gaussian(1.5), lambda k: mpmath.exp(-mpmath.mpf(k * k) / 4.5), 20),
    ):
        scale = sum(weight(k) for k in range(-4 * reach, 4 * reach + 1))
        masses = [(weight(k) / scale, weight(k - 1) / scale) for k in range(-reach, reach + 1)]
        exact = exact_discrete_epsilon(masses, 2, 1e-4)
        found = confirmed(events(mechanism, mechanism), 1e-4)
        assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-4)
