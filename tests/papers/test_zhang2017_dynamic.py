"""The claims of dynamic private ADMM: pure epsilons, exact minimisers, and attacks that bite."""

from math import log1p, sqrt

import numpy as np
import pytest

from dpledger.audits.claims import Claim, ClaimVerdict, Counterexample
from dpledger.audits.claims.attack import counted_bound
from dpledger.mechanisms.curators import SamplingCurator
from dpledger.mechanisms.protocols import EventList
from dpledger.mechanisms.sampling import SimulationSampler
from dpledger.papers import audit, find
from dpledger.papers.zhang2017_dynamic.iteration import sent, turned_gradient
from dpledger.papers.zhang2017_dynamic.setting import DynamicSetting, OneRound, settings_of
from dpledger.solvers.dual_perturbation import perturbing_noise
from dpledger.solvers.losses import LinearLoss

_FEW = ["B=20", "eta=0.001"]


def _event(identifier: str, assignments: list[str]) -> Counterexample:
    ((paper, claim),) = find([identifier])
    assert isinstance(claim, Claim)
    assert claim.attack is not None
    event = claim.attack(paper.case(assignments))
    assert isinstance(event, Counterexample)
    return event


def test_an_iterations_epsilon_is_pure_and_what_the_noise_and_the_determinant_cost() -> None:
    s = DynamicSetting()
    modulus = 0.1 + 2 * 0.1 * 2
    primal = audit("ZZ-2", ["tau=0"])
    assert primal.verdict is ClaimVerdict.HOLDS
    assert primal.true is not None
    # zeta times 2/(B m): the noise is for rho, the objective bends by m
    assert primal.true.upper_float == pytest.approx(s.alpha * 0.1 / modulus, rel=1e-9)
    dual = audit("ZZ-3")
    assert dual.verdict is ClaimVerdict.HOLDS
    assert dual.true is not None
    # the logarithm is set aside twice and spent once
    spent = s.alpha - log1p(0.25 / (s.B * modulus))
    assert dual.true.upper_float == pytest.approx(spent, rel=1e-8)


def test_too_little_alpha_for_the_curvature_is_outside_the_regime_and_no_crash() -> None:
    assert audit("ZZ-3", ["B=1", "alpha=0.1"]).verdict is ClaimVerdict.OUTSIDE_ITS_REGIME
    audit("ZZ-4", ["B=1", "alpha=0.1"])


def test_many_iterations_cost_as_many_alphas() -> None:
    found = audit("ZZ-5", ["K=7", "alpha=0.5"])
    assert found.verdict is ClaimVerdict.UNSPECIFIED
    assert found.true is not None
    assert found.true.upper_float == pytest.approx(3.5, rel=1e-9)
    assert audit("ZZ-5", ["K=1"]).verdict is ClaimVerdict.HOLDS


def test_noise_in_front_has_the_length_of_a_gamma_number() -> None:
    curator = SamplingCurator(EventList(), SimulationSampler(5), trials=20_000)
    dataset = turned_gradient(DynamicSetting(d=1, B=1)).dataset
    noise = perturbing_noise(dataset, curator, LinearLoss(), scale=0.5, round=1)
    lengths = np.abs(noise[:, 0, 0])
    # Gamma(1) of scale 1/2: mean and deviation 1/2; five standard errors, a seed in two million
    assert abs(lengths.mean() - 0.5) < 5 * 0.5 / sqrt(20_000)


@pytest.mark.parametrize("identifier", ["ZZ-2", "ZZ-3"])
def test_runs_of_the_algorithm_have_the_probabilities_that_are_derived(identifier: str) -> None:
    event = _event(identifier, _FEW)
    trials = 20_000
    # five standard errors: missed by one of a million seeds; the seed is fixed
    for rate, chance in zip(
        event.rerun(trials, 3), (event.probability, event.neighbour_probability), strict=True
    ):
        p = chance.lower_float
        assert abs(rate - p) < 5 * sqrt(p * (1 - p) / trials)


def test_half_of_the_noise_is_found_out() -> None:
    s = DynamicSetting(d=1, B=20, eta=1e-3)
    trials, pair = 20_000, turned_gradient(s)
    first = sent(OneRound(settings_of(s), 0.0, behind=True), pair.dataset, 1, 0)[0]
    algorithm = OneRound(settings_of(s), s.primal_scale / 2, behind=True)
    hits = [
        int(np.sum(sent(algorithm, side, trials, 1 + k) * np.sign(first) > abs(first)))
        for k, side in enumerate((pair.dataset, pair.neighbour))
    ]
    assert counted_bound(hits[0], hits[1], trials, delta=0, confidence=0.999) > s.alpha


def test_a_search_that_stops_where_it_starts_sends_a_minimiser_without_noise() -> None:
    event = _event("ZZ-4", _FEW)
    first, second = event.rerun(400, 2)
    # half of all noise is shorter than the tolerance: five standard errors; the seed is fixed
    assert abs(first - 0.5) < 5 * sqrt(0.25 / 400)
    assert second == 0.0
    assert audit("ZZ-4", ["tau=0"]).verdict is ClaimVerdict.HOLDS
    # at the default tolerance and dimension 2: Gamma(2) below x is x²/2 - x³/3 + ...
    finding = audit("ZZ-4")
    assert finding.verdict is ClaimVerdict.UNENFORCED_ASSUMPTION
    x = 1e-6 / DynamicSetting().dual_scale
    said = float(finding.reason.split("probability ")[1].split()[0])
    assert said == pytest.approx(x**2 / 2 - x**3 / 3, rel=1e-3)
    assert said <= x**2 / 2
