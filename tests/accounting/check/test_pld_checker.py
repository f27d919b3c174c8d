"""Laws of recomputed loss distributions: never below the truth, close to it, and hard to forge."""

import json
import random
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from fractions import Fraction
from math import exp
from pathlib import Path

import mpmath
import pytest
from tests.parameters import slow

from dpledger.accounting.check import (
    checker,
    intervals,
    lattices,
    normal,
    one_step,
    pairs,
    pld_checker,
    statements,
)
from dpledger.accounting.check.intervals import log_bounds
from dpledger.accounting.check.laplace import laplace_delta
from dpledger.accounting.check.losses import Plan
from dpledger.accounting.check.normal import Normal
from dpledger.accounting.check.one_step import Dots
from dpledger.accounting.check.pld_checker import Grid, Step
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.doubling import LossGrid
from dpledger.accounting.pld.pairs import GaussianShift, Order, Sampled
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.accounting.proof.derivation import exposures
from dpledger.accounting.proof.losses import Composed
from dpledger.accounting.proof.prover import Search, privacy_loss
from dpledger.accounting.renyi.amplification import HIDDEN_SAMPLE
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    LaplaceStep,
    Norm,
    PoissonSampled,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    declared,
)
from dpledger.mechanisms.events import DiscreteLaplaceStep, adjacencies
from dpledger.mechanisms.sensitivity import mean_of_bounded, sum_of_bounded

DELTA = Fraction(1, 10**5)
POISSON = PoissonSampled(GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), 1.0), 0.05)
BATCH = SampledWithoutReplacement(
    GaussianStep(mean_of_bounded(1, 10, Adjacency.REPLACE_ONE), 0.5), 10, 100
)


COARSE = LossGrid(Fraction(1, 8), (0, 0, 0, 1), 24, 20, 10**9)


def event(mechanism):
    return Event(mechanism, Context((), 1, "model", Audience.SERVER))


def coarse(mechanism, times, epsilon):
    """A certificate on a grid so coarse that it is checked in a moment."""
    events = (event(mechanism),) * times
    (exposure,) = exposures(events)
    composed = Composed(((mechanism, times, 0),), next(adjacencies(mechanism)))
    assumed = frozenset({HIDDEN_SAMPLE})
    whole = privacy_loss(exposure, epsilon, composed, COARSE, DELTA, assumed)
    return Certificate(events, Search(events, DELTA, 1).run([whole]))


@pytest.fixture(scope="module")
def poisson():
    return coarse(POISSON, 20, Fraction(4))


def free(work):
    """Spend nothing."""


def grid_of(step, doublings=(), dense=40, digits=22, delta=1e-5):
    return Grid(step, dense, digits, Plan(doublings, 10**digits, int(delta * 1e-5 * 10**digits)))


ORDERS = {
    Order.MIXTURE_FIRST: ("add-remove-one", 0),
    Order.MIXTURE_SECOND: ("add-remove-one", 1),
    Order.SYMMETRISED: ("replace-one", 0),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("mu_squared", "rate", "times"),
    [(Fraction(1), Fraction(1, 50), 100), (Fraction(1, 16), Fraction(1, 4), 60)],
)
def test_delta_is_never_below_the_truth_and_close_to_it(mu_squared, rate, times, order):
    pair = Sampled(GaussianShift(mu_squared), rate, order)
    truth = PrivacyProfile.of_pairs({pair: times}).epsilon(1e-5)
    epsilon = Fraction(truth.lower_float)
    relation, place = ORDERS[order]
    base = pairs.Sampled(pairs.GaussianShift(mu_squared), rate)
    step = Step(base, Dots.symmetrised if order is Order.SYMMETRISED else None, times, 0)
    grid = grid_of(epsilon / 256, doublings=(0, 0, 0, 1))
    loss, width = list(pld_checker.compositions([step], relation, grid, free))[place]
    unit = grid.plan.unit
    assert pld_checker.delta_upper(loss, width, epsilon, unit) >= 1e-5
    assert pld_checker.delta_upper(loss, width, epsilon * Fraction(51, 50), unit) <= 1e-5


def test_finer_grids_come_closer():
    epsilon = PrivacyProfile.of({POISSON: 40}, Adjacency.ADD_REMOVE_ONE).epsilon(1e-5).upper_float
    pair = pairs.Sampled(pairs.GaussianShift(Fraction(1)), Fraction(POISSON.rate))
    found = []
    for k in (3, 4, 5):
        grid = grid_of(Fraction(1, 1 << k), dense=1000)
        composed = pld_checker.compositions([Step(pair, None, 40, 0)], "add-remove-one", grid, free)
        loss, width = next(iter(composed))
        found.append(pld_checker.delta_upper(loss, width, Fraction(epsilon), grid.plan.unit))
    excess = [float(d) / 1e-5 - 1 for d in found]
    assert excess[0] > 2 * excess[1] > 4 * excess[2] > 0


PAIRS = {
    "gaussian": pairs.GaussianShift(Fraction(2)),
    "laplace": pairs.LaplaceShift(Fraction(3, 2)),
    "sampled gaussian": pairs.Sampled(pairs.GaussianShift(Fraction(1)), Fraction(1, 10)),
    "sampled laplace": pairs.Sampled(pairs.LaplaceShift(Fraction(1)), Fraction(1, 10)),
    "a revealed sample": pairs.Revealed(pairs.GaussianShift(Fraction(1)), Fraction(1, 10)),
    "a drawn group": pairs.DrawnShifts(Fraction(1, 4), Fraction(1, 10), 3),
    "answers": lattices.RandomisedAnswers(Fraction(3, 4), 3),
    "unlikely answers": lattices.RandomisedAnswers(Fraction(1, 10), 3),
    "discrete laplace": lattices.DiscreteLaplaceShift(Fraction(2, 7), 3),
    "discrete gaussian": lattices.DiscreteGaussianShift(Fraction(5, 2)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_probabilities_add_up_to_one_or_a_little_more(name):
    unit = 10**30
    lattice = Dots(Fraction(1, 32), 32, unit, Normal(200, free))
    dots = lattice.dots(PAIRS[name], 10**12)
    for loss in (lattice.removed(dots), lattice.added(dots), lattice.symmetrised(dots)):
        total = sum(loss.masses) + loss.lost
        assert unit <= total <= unit + 4 * len(loss.masses)
        # the other law of the pair has mass · e^-loss; what is missing to one is moved or lost
        other = sum(m * exp(-(loss.first + i) / 32) for i, m in enumerate(loss.masses))
        assert other <= unit * (1 + 1e-12)


def test_the_normal_distribution_is_enclosed_everywhere():
    mpmath.mp.dps = 60
    rng = random.Random("normal")
    normal = Normal(140, free)
    points = [rng.uniform(-20, 20) for _ in range(200)] + [0.0, 1 / 64, -1 / 64, 16.0, -16.0]
    for x in points:
        scaled = int(Fraction(x) * (1 << 140))
        low, high = normal.cdf(scaled)
        exact = mpmath.ncdf(mpmath.mpf(scaled) / (1 << 140)) * (1 << 140)
        assert low <= exact <= high <= low + 20


def laplace_delta_by_quadrature(shifts, epsilon):
    """δ of Laplace noise of scale 1 shifted by these, one integral over the loss of each."""
    if not shifts:
        return max(1 - mpmath.exp(epsilon), 0)
    e, *rest = shifts
    ends = sorted({-e, e, *(x for x in (epsilon - sum(rest), epsilon + sum(rest)) if abs(x) < e)})
    inside = mpmath.quad(
        lambda v: mpmath.exp((v - e) / 2) / 4 * laplace_delta_by_quadrature(rest, epsilon - v), ends
    )
    edges = laplace_delta_by_quadrature(rest, epsilon - e)
    edges += mpmath.exp(-e) * laplace_delta_by_quadrature(rest, epsilon + e)
    return inside + edges / 2


@pytest.mark.parametrize(
    ("shifts", "epsilon"),
    [((1,), 0.25), ((0.5, 0.5), 0.75), ((0.5, 2), 1), ((3, 0.25), 0)],
)
def test_the_closed_form_of_laplace_noise_is_what_integrals_say(shifts, epsilon):
    counts = sorted(Counter(map(Fraction, shifts)).items())
    low, high = laplace_delta(counts, Fraction(epsilon), free, 200)
    assert 0 <= high - low <= 8
    with mpmath.workdps(15):
        exact = laplace_delta_by_quadrature([mpmath.mpf(x) for x in shifts], mpmath.mpf(epsilon))
    assert low / 2**200 == pytest.approx(float(exact), rel=1e-6)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1), Fraction(2)])
def test_the_closed_form_of_laplace_noise_is_that_of_the_lattice(epsilon):
    low, _ = laplace_delta([(Fraction(1, 10), 40)], epsilon, free, 200)
    grid = grid_of(Fraction(1, 160), dense=4096, digits=30)
    step = Step(pairs.LaplaceShift(Fraction(1, 10)), None, 40, 0)
    ((loss, width),) = pld_checker.compositions([step], "add-remove-one", grid, free)
    above = pld_checker.delta_upper(loss, width, epsilon, grid.plan.unit)
    assert 0 <= above / Fraction(low, 2**200) - 1 <= Fraction(1, 1000)


UNITS = declared(2, "two counts", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1)

# --- limits -----------------------------------------------------------------------------------

ENDLESS = {  # bends of a small document that would take minutes, or all of the memory
    "a step of 1e-8": ({"step": "1/100000000", "dense": 4}, "steps of the lattice"),
    "a step of 2^-1000": ({"step": f"1/{2**1000}", "dense": 4}, "gave up after"),
    "masses of 400 digits": (
        {"step": "1/1000", "dense": 4096, "digits": 400, "cut": "0"},
        "gave up after",
    ),
    "a large group": ({"group": 8, "step": "1/64", "dense": 4096, "digits": 60}, "gave up after"),
}


def test_an_exponential_below_the_precision_ends_and_has_an_upper_end_alone():
    """Its logarithm's series never ended, where a lattice was far wider than what is composed."""
    normal, pair = Normal(64, lambda work: None), pairs.GaussianShift(Fraction(1, 4))
    found = pair.below(Fraction(-100), (0, 1), normal)
    exact = [mpmath.ncdf(-200 - side * mpmath.mpf(1) / 4) for side in (1, -1)]
    for (low, high), probability in zip(found, exact, strict=True):
        assert low == 0 < probability * 2**64 + 1 < high + 1
    with pytest.raises(Undecided, match="above zero"):
        log_bounds(Fraction(0), 64)


@pytest.mark.parametrize("name", ENDLESS)
def test_what_would_not_end_is_given_up_before_it_is_done(poisson, monkeypatch, name):
    change, reason = ENDLESS[name]
    monkeypatch.setattr(statements, "MAX_WORK", 100_000)
    monkeypatch.setattr(statements, "WORK_A_BYTE", 0)
    bits = [0]

    def counted(x, p):
        bits[0] += p
        return exp_bounds(x, p)

    exp_bounds = intervals.exp_bounds
    for module in (normal, pairs, lattices, one_step):
        if hasattr(module, "exp_bounds"):
            monkeypatch.setattr(module, "exp_bounds", counted)
    document = json.loads(poisson.to_json_bytes())
    document["nodes"][0]["parameters"].update(change)
    tracemalloc.start()
    try:
        with pytest.raises(Undecided, match=reason):
            pld_checker.check(json.dumps(document).encode())
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert bits[0] < 100_000 * 8  # at least a unit for every eight bits of every exponential


# --- certificates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [(BATCH, Adjacency.REPLACE_ONE), *slow((POISSON, Adjacency.ADD_REMOVE_ONE))],
)
def test_certificates_come_within_a_thousandth_of_the_exact_epsilon(mechanism, adjacency):
    found = certify([event(Repeated(mechanism, 60))], delta=1e-5)
    truth = PrivacyProfile.of({mechanism: 60}, adjacency).epsilon(1e-5)
    assert truth.lower_float <= found.epsilon <= truth.upper_float * 1.001
    assert pld_checker.check(found.to_json_bytes()).values[1] == Fraction(found.epsilon)


@pytest.mark.parametrize(
    "mechanism",
    [
        Repeated(RandomisedResponse(0.3, 5), 100),
        Repeated(RandomisedResponse(0.75, 2), 1000),
        Repeated(DiscreteLaplaceStep(UNITS, 3.0), 50),
    ],
)
def test_losses_on_a_lattice_of_their_own_are_proved_to_six_digits(mechanism):
    found = certify([event(mechanism)], delta=1e-5)
    truth = PrivacyProfile.of({mechanism: 1}, Adjacency.REPLACE_ONE).epsilon(1e-5)
    assert truth.lower_float <= found.epsilon <= truth.upper_float * (1 + 1e-6)
    assert pld_checker.check(found.to_json_bytes()).values[1] == Fraction(found.epsilon)


def test_a_certificate_is_recomputed_or_left_undecided(poisson):
    document = poisson.to_json_bytes()
    assert pld_checker.check(document).values == (DELTA, Fraction(4))
    with pytest.raises(Undecided, match="pld_checker"):
        checker.check(document)


@pytest.mark.parametrize("epsilon", ["1/2", "1", "3/2"])
def test_too_small_an_epsilon_is_refused(poisson, epsilon):
    document = json.loads(poisson.to_json_bytes())
    document["nodes"][0]["parameters"]["epsilon"] = epsilon
    for node in document["nodes"]:
        node["conclusion"]["epsilon"] = epsilon
    with pytest.raises(CertificateWrong, match="expected delta"):
        pld_checker.check(json.dumps(document).encode())


FAULTS = {
    "a mechanism run less often": ({"parts": [[0, 19, 0]]}, "things a record can be exposed to"),
    "nothing": ({"parts": []}, "one relation"),
    "a share of nothing": ({"shares": [[0, "0"]]}, "above 0"),
    "a share of all": ({"shares": [[0, "1"]]}, "shares"),
    "no group": ({"group": 0}, "whole number"),
    "no level": ({"parts": [[0, 20]]}, "triple"),
    "a level too high": ({"parts": [[0, 20, 10**6]]}, "level"),
    "a step that doubles for ever": ({"doublings": [10**9]}, "limits"),
    "too many levels": ({"doublings": [0] * 1000}, "limits"),
    "too many dots": ({"dense": 10**9}, "limits"),
    "masses too fine": ({"digits": 10**6}, "limits"),
    "losses too large": ({"step": "100000"}, "limits"),
    "a negative cut": ({"cut": "-1"}, "above 0"),
    "no step": ({"step": "0"}, "above 0"),
    "another mechanism": ({"parts": [[7, 20, 0]]}, "listed mechanism"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_parameters_are_refused_by_their_fault(poisson, fault):
    change, reason = FAULTS[fault]
    document = json.loads(poisson.to_json_bytes())
    document["nodes"][0]["parameters"].update(change)
    with pytest.raises(CertificateWrong, match=reason):
        pld_checker.check(json.dumps(document).encode())


@pytest.mark.parametrize("noise_std", ["1p300", "1p1100", "1p-300", "1p-1100"])
def test_noise_of_any_size_ends_in_a_verdict(poisson, noise_std):
    document = json.loads(poisson.to_json_bytes())
    document["mechanisms"][0]["event"]["noise_std"] = noise_std
    document["subject"] = statements.Run(document["mechanisms"], document["events"]).subject
    written = json.dumps(document).encode()
    if "-" in noise_std:
        with pytest.raises((CertificateWrong, Undecided)):
            pld_checker.check(written)
    else:  # more noise than the epsilon was found for
        assert pld_checker.check(written).values == (DELTA, Fraction(4))


def laplace_certificate():
    noise = LaplaceStep(declared(1, "l1", adjacency=Adjacency.REPLACE_ONE, norm=Norm.L1), 4.0)
    run = [event(Repeated(noise, 9)), event(noise)]
    return json.loads(certify(run, delta=DELTA).to_json_bytes())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"epsilon": Fraction(999_999_999, 10**9)}, "expected delta <="),
        ({"delta": Fraction(999_999, 10**6)}, "expected delta <="),
        ({"group": 2}, "expected delta <="),
        ({"parts": [[0, 1], [1, 0]]}, "whole number"),
        ({"parts": [[0, 9]]}, "things a record can be exposed to"),
        ({"parts": []}, "one relation"),
    ],
)
def test_laplace_noise_costs_no_less_than_its_closed_form_says(change, reason):
    document = laplace_certificate()
    assert pld_checker.check(json.dumps(document).encode()).notion == "approx-dp"
    with pytest.raises(Undecided, match="pld_checker"):
        checker.check(json.dumps(document).encode())
    parameters = document["nodes"][0]["parameters"]
    for name, value in change.items():
        bent = str(Fraction(parameters[name]) * value) if isinstance(value, Fraction) else value
        parameters[name] = bent
        for node in document["nodes"]:
            node["conclusion"] |= {name: bent} if name in node["conclusion"] else {}
    with pytest.raises(CertificateWrong, match=reason):
        pld_checker.check(json.dumps(document).encode())


def forged(rng, document):
    """The document with one witness of the recomputation bent, conclusions following."""
    parameters = document["nodes"][0]["parameters"]
    name = rng.choice(["step", "doublings", "dense", "digits", "cut", "epsilon", "delta"])
    if name == "doublings":
        parameters[name] = [rng.randint(0, 2) for _ in range(rng.randint(0, 5))]
    elif isinstance(parameters[name], int):
        parameters[name] = max(4, int(parameters[name] * rng.choice((0.3, 0.9, 1.1, 2))))
    else:
        share = rng.choice((1, 3)) if name == "delta" else rng.randint(1, 3 * 64) / 64
        parameters[name] = str(Fraction(parameters[name]) * Fraction(share) / 2)
    for node in document["nodes"]:
        node["conclusion"].update({k: parameters[k] for k in ("epsilon", "delta")})
    return document


def accepted_forgeries(count, certificate, profile):
    rng = random.Random("forgeries")
    truth = {
        DELTA * share: profile.epsilon(float(DELTA * share))
        for share in (Fraction(1, 2), Fraction(1), Fraction(3, 2))
    }
    accepted = 0
    for _ in range(count):
        document = forged(rng, json.loads(certificate.to_json_bytes()))
        try:
            delta, epsilon = pld_checker.check(json.dumps(document).encode()).values
        except (CertificateWrong, Undecided):
            continue
        assert truth[delta].lower_float <= epsilon
        accepted += 1
    return accepted


def test_bent_witnesses_prove_nothing_false(poisson):
    profile = PrivacyProfile.of({POISSON: 20}, Adjacency.ADD_REMOVE_ONE)
    assert accepted_forgeries(12, poisson, profile) > 0


@pytest.mark.slow
def test_bent_witnesses_prove_nothing_false_in_the_long_run(poisson):
    profile = PrivacyProfile.of({POISSON: 20}, Adjacency.ADD_REMOVE_ONE)
    assert accepted_forgeries(1000, poisson, profile) > 100


def test_distributions_are_checked_without_flint(poisson, tmp_path):
    folder = tmp_path / "any name"
    shutil.copytree(Path(checker.__file__).parent, folder)
    (tmp_path / "run.cert.json").write_bytes(poisson.to_json_bytes())
    (tmp_path / "start.py").write_text(
        "import runpy, sys\nsys.modules['flint'] = None\n"
        "sys.argv = ['check', 'run.cert.json']\n"
        "try:\n    runpy.run_path('any name', run_name='__main__')\n"
        "finally:\n"
        "    losses = sys.modules['dpledger_check.losses']\n"
        "    assert losses.multiply is losses.multiply_by_decimal\n"
    )
    for script in ("start.py", folder.name):
        done = subprocess.run(
            [sys.executable, script, "run.cert.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "steps checked" in done.stdout
