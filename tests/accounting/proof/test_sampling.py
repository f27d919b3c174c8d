"""Laws of divergences under sampling: the integral's value, and what the checker admits."""

from fractions import Fraction

import mpmath
import pytest
from dp_accounting.rdp import rdp_privacy_accountant

from dpledger.accounting.check import privacy, reading, statements
from dpledger.accounting.proof import sampling
from dpledger.mechanisms import Adjacency, GaussianStep, PoissonSampled
from dpledger.mechanisms.encoding import mechanism_to_json
from dpledger.mechanisms.sensitivity import sum_of_bounded


def mixture_divergence(mu, rate, order):
    """Rényi divergence of (1-q) N(0,1) + q N(mu,1) from N(0,1), by quadrature."""

    def integrand(x):
        return mpmath.npdf(x) * (1 - rate + rate * mpmath.exp(mu * x - mu**2 / 2)) ** order

    peaks = [0, mu * order / 2, mu * order]
    moment = mpmath.quad(integrand, [-12, *peaks, mu * order + 12])
    return mpmath.log(moment) / (order - 1)


@pytest.mark.parametrize(("mu", "rate", "order"), [(1, 0.01, 2), (0.7, 0.2, 5), (2, 0.001, 8)])
def test_poisson_sampling_costs_the_divergence_of_the_mixture(mu, rate, order):
    exact = mixture_divergence(mpmath.mpf(mu), mpmath.mpf(rate), order)
    found = sampling.poisson_divergence(Fraction(mu) ** 2, Fraction(rate), order)
    assert found.upper_float == pytest.approx(float(exact), rel=1e-10)
    step = GaussianStep(sum_of_bounded(Fraction(mu), Adjacency.ADD_REMOVE_ONE), 1.0)
    run = statements.Run([mechanism_to_json(PoissonSampled(step, rate))], [])
    poisson_rdp = privacy.RULES["poisson-rdp"][0]
    above, below = (str(Fraction(float(exact)) * (1 + s * Fraction(1, 10**9))) for s in (1, -1))
    assert poisson_rdp(run, 0, order, above).values == (order, Fraction(above))
    with pytest.raises(reading.CertificateWrong):
        poisson_rdp(run, 0, order, below)


def test_a_rate_of_one_is_no_sampling():
    found = sampling.poisson_divergence(Fraction(9, 4), Fraction(1), 7)
    assert found.upper_float == pytest.approx(7 * 9 / 8, rel=1e-15)
    assert sampling.poisson_divergence(Fraction(9, 4), Fraction(0), 7).upper_float == 0


def test_fixed_batches_cost_a_little_more_than_a_finer_bound():
    # Wang, Balle, Kasiviswanathan's refinement by finite differences, as dp-accounting has it
    for mu, share, order in ((0.5, 0.01, 4), (0.25, 1 / 800, 20), (2.0, 0.1, 3)):
        found = sampling.fixed_batch_divergence(Fraction(mu) ** 2, Fraction(share), order)
        theirs = rdp_privacy_accountant._compute_rdp_sample_wor_gaussian(share, 1 / mu, [order])
        assert theirs[0] * (1 - 1e-9) <= found.upper_float <= theirs[0] * 1.2


def test_fixed_batches_cost_more_than_the_worst_mixture():
    # a lower bound on the truth: one record of the batch replaced, the others equal
    for mu, share, order in ((0.5, 0.01, 4), (1.0, 0.05, 8)):
        truth = mixture_divergence(mpmath.mpf(mu), mpmath.mpf(share), order)
        found = sampling.fixed_batch_divergence(Fraction(mu) ** 2, Fraction(share), order)
        assert found.upper_float >= float(truth)
