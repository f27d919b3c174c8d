"""Laws of accumulated batches: one noise on the sum of Poisson samples, each drawn by itself.

1. A record is in Bin(k, q) of k samples and moves the sum by as many bounds: no ε is below what the
   densities of that mixture lose, nor far above.
2. It is what dp-accounting's mixture of Gaussians costs, over many steps.
3. One sample is a Poisson sample; a group of g records pays as one record in g times the samples.
4. Where a record is replaced it brings something in either data set: refused.
"""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm
from tests.accounting.conftest import ADD, REPLACE, ZERO, event
from tests.parameters import slow

from dpledger.accounting.check import pld_checker
from dpledger.accounting.composition import MOST_DRAWN
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.proof.certificate import Uncertifiable, certify
from dpledger.accounting.proof.proved import proved_guarantee
from dpledger.interop.dp_events import dp_event_of
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    DataShape,
    GaussianStep,
    InvalidParameter,
    Poisson,
    PoissonSampled,
    Repeated,
)
from dpledger.mechanisms.sensitivity import sum_of_bounded
from dpledger.solvers import ConstantSteps, DpSgd, planning

from .grids import on_a_grid

DELTA = 1e-5


def step(batches: int, rate: float, noise: float, adjacency: Adjacency = ADD) -> AccumulatedPoisson:
    return AccumulatedPoisson(GaussianStep(sum_of_bounded(1, adjacency), noise), rate, batches)


def proved_epsilon(mechanism, group=1, fineness=None) -> float:
    """What the checker confirms, on a grid so many times as wide as that of `certify`."""
    if fineness is None:
        made = certify([event(mechanism)], delta=DELTA, group=group)
    else:
        made = on_a_grid(mechanism, delta=Fraction(DELTA), group=group, fineness=fineness)
    verdict = pld_checker.check(made.to_json_bytes())
    assert verdict.values == (Fraction(DELTA), Fraction(made.epsilon))
    assert verdict.group == group
    return float(made.epsilon)


def by_densities(batches: int, rate: float, noise: float) -> float:
    """ε of one step by the definition, on a fine grid of outputs, in the dearer order."""
    grid = np.linspace(-12 * noise, batches + 12 * noise, 400_001)
    width = grid[1] - grid[0]
    drawn = binom.pmf(np.arange(batches + 1), batches, rate)
    present = sum(w * norm.pdf(grid, m, noise) for m, w in enumerate(drawn))
    absent = norm.pdf(grid, 0.0, noise)

    def excess(epsilon):
        orders = ((present, absent), (absent, present))
        lost = max(np.maximum(p - exp(epsilon) * q, 0).sum() * width for p, q in orders)
        return lost - DELTA

    return brentq(excess, 0, 60, xtol=1e-10)


@pytest.mark.parametrize(
    ("batches", "rate", "noise", "adjacency"),
    [(4, 0.01, 2.0, ZERO), *slow((2, 0.05, 1.0, ADD), (3, 0.5, 5.0, ADD), (2, 1.0, 20.0, ADD))],
)
def test_it_costs_what_the_mixture_of_shifts_loses(batches, rate, noise, adjacency):
    exact = by_densities(batches, rate, noise)
    found = proved_epsilon(step(batches, rate, noise, adjacency))
    assert exact * (1 - 1e-6) <= found <= exact * 1.002


def test_it_costs_what_dp_accounting_says_of_the_mixture():
    peer = pytest.importorskip("dp_accounting")
    mechanism = Repeated(step(4, 0.01, 1.0), 200)
    theirs = peer.pld.PLDAccountant(value_discretization_interval=4e-3)
    theirs.compose(dp_event_of(mechanism))
    upper = theirs.get_epsilon(DELTA)
    # theirs is an upper bound, of 200 roundings up by half of their interval on the average
    assert upper * 0.99 <= proved_epsilon(mechanism) <= upper * 1.001


def test_one_sample_is_a_poisson_sample():
    one = step(1, 0.02, 1.0)
    assert proved_epsilon(one) == proved_epsilon(PoissonSampled(one.event, one.rate))
    assert one.share == PoissonSampled(one.event, one.rate)


def test_a_group_of_records_pays_as_one_in_as_many_times_the_samples():
    group = proved_epsilon(step(2, 0.05, 2.0), group=3, fineness=8.0)
    assert group == proved_epsilon(step(6, 0.05, 2.0), fineness=8.0)


def test_the_engine_prices_what_is_proved():
    mechanism = step(4, 0.05, 0.8)
    found = guarantee([event(mechanism)], delta=DELTA).epsilon
    printed, proof = proved_guarantee([event(mechanism)], delta=DELTA)
    assert proof is not None
    assert printed.grade is Grade.PROVED
    assert found.upper_float * (1 - 1e-9) <= printed.epsilon.upper_float
    assert printed.epsilon.upper_float <= found.upper_float * 1.001


def test_very_many_samples_are_bounded_by_each_with_its_share_of_the_noise():
    """A step is a function of its shares."""
    mechanism = step(MOST_DRAWN + 1, 0.001, 4.0)
    shares = [event(Repeated(mechanism.share, MOST_DRAWN + 1))]
    found = guarantee([event(mechanism)], delta=DELTA).epsilon
    assert found.upper_float == guarantee(shares, delta=DELTA).epsilon.upper_float
    noise = Fraction(mechanism.share.event.noise_std)
    assert noise**2 * (MOST_DRAWN + 1) <= Fraction(4) ** 2
    fewer = guarantee([event(step(MOST_DRAWN, 0.001, 4.0))], delta=DELTA).epsilon
    assert fewer.upper_float < found.upper_float / 2


def test_more_samples_cost_more_and_joint_ones_of_the_same_records_less():
    found = [proved_epsilon(step(n, 0.02, 1.0), fineness=8.0) for n in (1, 2, 4)]
    assert found == sorted(found)
    joint = PoissonSampled(GaussianStep(sum_of_bounded(1, ADD), 1.0), 0.08)
    assert proved_epsilon(joint, fineness=8.0) < found[-1]


def test_replaced_records_are_refused():
    with pytest.raises(Uncertifiable):
        certify([event(step(2, 0.1, 1.0, REPLACE))], delta=DELTA)
    # each share is priced as what it is: a sum of vectors in a Poisson sample
    assert guarantee([event(step(2, 0.1, 1.0, REPLACE))], delta=DELTA).epsilon.upper_float > 0


@pytest.mark.parametrize("batches", [0, -1, 1.5, True])
def test_batches_are_counted(batches):
    with pytest.raises(InvalidParameter, match="batches"):
        step(batches, 0.1, 1.0)


def test_the_rounding_of_one_batch_says_nothing_of_a_sum_of_several() -> None:
    shape = DataShape(("a",), 40, 3, 1.0, ADD)
    (one,) = planning.plan(DpSgd(1, 4.0, ConstantSteps(0.1), scheme=Poisson(0.125)), shape)
    assert isinstance(one.mechanism, PoissonSampled)
    several = AccumulatedPoisson(one.mechanism.event, one.mechanism.rate, 4)
    assert proved_guarantee([one], delta=DELTA)[1] is not None
    assert proved_guarantee([event(several)], delta=DELTA)[1] is None
