"""Laws of recomputed loss distributions: never below the truth, close to it, and hard to forge."""

import json
import random
import shutil
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from dpledger.accounting.check import checker, pld_checker
from dpledger.accounting.check.checker import CertificateWrong, Undecided
from dpledger.accounting.check.pld_checker import Grid, Loss, Pair
from dpledger.accounting.pld import PrivacyProfile
from dpledger.accounting.pld.pairs import GaussianShift, Order, Sampled
from dpledger.accounting.proof import prover
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.accounting.proof.judgement import RuleViolation
from dpledger.accounting.proof.rules import privacy
from dpledger.accounting.proof.rules.loss_distribution import Grid as Stated
from dpledger.accounting.proof.rules.loss_distribution import loss_distribution
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
)
from dpledger.mechanisms.sensitivity import mean_of_bounded, sum_of_bounded

DELTA = Fraction(1, 10**5)
POISSON = PoissonSampled(GaussianStep(sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE), 1.0), 0.05)
BATCH = SampledWithoutReplacement(
    GaussianStep(mean_of_bounded(1, 10, Adjacency.REPLACE_ONE), 0.5), 10, 100
)


def event(mechanism):
    return Event(mechanism, Context((), 1, "model", Audience.SERVER))


def coarse(mechanism, times, epsilon):
    """A certificate on a grid so coarse that it is checked in a moment."""
    events = (event(mechanism),) * times
    grid = Stated(Fraction(1, 8), 48, 80)
    whole = loss_distribution([(mechanism, times)], grid=grid, delta=DELTA, epsilon=epsilon)
    return Certificate(events, privacy.events(events, [whole]))


@pytest.fixture(scope="module")
def poisson():
    return coarse(POISSON, 20, Fraction(4))


ORDERS = {
    Order.MIXTURE_FIRST: ("add-remove-one", 0),
    Order.MIXTURE_SECOND: ("add-remove-one", 1),
    Order.GLUED: ("replace-one", 0),
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
    grid = Grid(epsilon / 64, 192, 128)
    relation, place = ORDERS[order]
    total = pld_checker.compositions(Counter({Pair(mu_squared, rate): times}), relation, grid)[
        place
    ]
    assert pld_checker.delta_upper(total, epsilon, grid) >= 1e-5
    assert pld_checker.delta_upper(total, epsilon * Fraction(21, 20), grid) <= 1e-5


def test_finer_grids_come_closer():
    epsilon = PrivacyProfile.of({POISSON: 40}, Adjacency.ADD_REMOVE_ONE).epsilon(1e-5).upper_float
    steps = Counter({Pair(Fraction(1), Fraction(POISSON.rate)): 40})
    found = [
        pld_checker.delta_upper(
            pld_checker.compositions(steps, "add-remove-one", grid)[0], Fraction(epsilon), grid
        )
        for grid in (Grid(Fraction(1, 1 << k), 5 << k, 96) for k in (3, 4, 5))
    ]
    excess = [float(d) / 1e-5 - 1 for d in found]
    assert excess[0] > 2 * excess[1] > 4 * excess[2] > 0


def test_probabilities_add_up_to_one_or_a_little_more():
    grid = Grid(Fraction(1, 32), 320, 100)
    step = pld_checker._Step(Pair(Fraction(1), Fraction(1, 10)), grid)
    for loss in (step.removed(), step.added(), step.glued()):
        total = Fraction(sum(loss.masses) + loss.lost, 1 << grid.bits)
        assert 1 <= total <= 1 + Fraction(len(loss.masses) + 1, 1 << grid.bits - 2)


def test_both_multiplications_agree():
    generator = random.Random("products")
    for _ in range(50):
        first, second = (
            [
                generator.getrandbits(generator.randint(1, 200))
                for _ in range(generator.randint(1, 30))
            ]
            for _ in range(2)
        )
        expected = [0] * (len(first) + len(second) - 1)
        for i, a in enumerate(first):
            for j, b in enumerate(second):
                expected[i + j] += a * b
        assert pld_checker.multiply_packed(first, second) == expected
        assert pld_checker.multiply_by_flint(first, second) == expected


def test_what_leaves_the_window_is_lost_above_and_moved_up_below():
    grid = Grid(Fraction(1), 2, 10)
    loss = pld_checker._within(Loss(-4, [1, 2, 3, 4, 5, 6, 7, 8], 100), grid)
    assert loss == Loss(-2, [6, 4, 5, 6, 7], 108)
    assert pld_checker._within(Loss(5, [1, 2], 0), grid).lost == 3


def test_a_power_is_a_repeated_sum():
    grid = Grid(Fraction(1), 50, 60)
    one = Loss(-1, [1 << 58, 1 << 59, 1 << 58], 0)
    five = one
    for _ in range(4):
        five = pld_checker.composed(five, one, grid)
    assert pld_checker.power(one, 5, grid) == five


# --- certificates ------------------------------------------------------------------------------


def tight_within(share):
    for mechanism, adjacency in (
        (POISSON, Adjacency.ADD_REMOVE_ONE),
        (BATCH, Adjacency.REPLACE_ONE),
    ):
        events = [event(Repeated(mechanism, 60))]
        found = certify(events, delta=1e-5, tight=True)
        truth = PrivacyProfile.of({mechanism: 60}, adjacency).epsilon(1e-5)
        assert truth.lower_float <= found.epsilon <= truth.upper_float * (1 + share)
        assert found.epsilon < certify(events, delta=1e-5).epsilon


def test_tight_certificates_come_close_to_the_tight_epsilon(monkeypatch):
    monkeypatch.setattr(prover, "_CELLS", 128)
    tight_within(0.05)


@pytest.mark.slow
def test_tight_certificates_come_very_close_to_the_tight_epsilon():
    tight_within(1e-4)


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


def test_the_rule_refuses_what_the_checker_refuses():
    with pytest.raises(RuleViolation):
        coarse(POISSON, 20, Fraction(3, 2))


FAULTS = {
    "a mechanism run less often": ({"parts": [[0, 19]]}, "things a record can be exposed to"),
    "nothing": ({"parts": []}, "one relation"),
    "a grid too long": ({"reach": 10**9}, "limits"),
    "masses too fine": ({"bits": 10**6}, "limits"),
    "losses too large": ({"step": "100000"}, "limits"),
    "no step": ({"step": "0"}, "above 0"),
    "another mechanism": ({"parts": [[7, 20]]}, "listed mechanism"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_bad_parameters_are_refused_by_their_fault(poisson, fault):
    change, reason = FAULTS[fault]
    document = json.loads(poisson.to_json_bytes())
    document["nodes"][0]["parameters"].update(change)
    with pytest.raises(CertificateWrong, match=reason):
        pld_checker.check(json.dumps(document).encode())


def forged(rng, document):
    """The document with one witness of the recomputation bent, conclusions following."""
    parameters = document["nodes"][0]["parameters"]
    name = rng.choice(["step", "reach", "bits", "epsilon", "delta"])
    if isinstance(parameters[name], int):
        parameters[name] = max(1, int(parameters[name] * rng.choice((0.3, 0.9, 1.1, 2))))
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


def test_it_runs_with_nothing_but_the_checker_beside_it(poisson, tmp_path):
    for module in (checker, pld_checker):
        shutil.copy(module.__file__, tmp_path)
    (tmp_path / "run.cert.json").write_bytes(poisson.to_json_bytes())
    (tmp_path / "start.py").write_text(
        "import sys\nsys.modules['flint'] = None\nsys.path.insert(0, '.')\n"
        "import pld_checker\nassert pld_checker.multiply is pld_checker.multiply_packed\n"
        "sys.exit(pld_checker.checker.main(['run.cert.json'], pld_checker.RULES))\n"
    )
    for script in (["start.py"], ["pld_checker.py", "run.cert.json"]):
        done = subprocess.run(
            [sys.executable, *script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "steps checked" in done.stdout
    assert Path(checker.__file__).name == "checker.py"
