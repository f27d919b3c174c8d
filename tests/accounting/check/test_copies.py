"""Laws of the checker's rule for batches drawn with replacement.

1. Its enclosures of the loss contain what the engine computes in balls, by another program.
2. What it accepts no pair of neighbouring data sets loses, by enumeration of all batches.
3. It accepts the engine's price within a thousandth, and nothing less; facts that cost more are
   refused under the same claim.
4. Groups, one record, one draw, and what has no rule.
"""

import json
from collections import Counter
from fractions import Fraction
from itertools import product
from math import exp
from typing import Any

import numpy as np
import pytest
from flint import arb
from tests.accounting.conftest import REPLACE, ZERO, event
from tests.accounting.proof.least_delta import Law, gaussian
from tests.accounting.proof.test_loss_mutation import coarse

from dpledger.accounting.check import pld_checker, statements
from dpledger.accounting.check.copies import CopiesDrawn, _power
from dpledger.accounting.check.intervals import exp_bounds
from dpledger.accounting.check.normal import Normal
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.numbers.enclosure import ball_of, precision
from dpledger.accounting.pld import pairs
from dpledger.accounting.pld.copies import copies_tails
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.mechanisms import (
    GaussianStep,
    Mechanism,
    Repeated,
    SampledWithReplacement,
    Sensitivity,
)
from dpledger.mechanisms.encoding import mechanism_to_json
from dpledger.mechanisms.sensitivity import mean_of_bounded, sum_of_bounded

BITS = 512
SUM = sum_of_bounded(1, REPLACE)
LAWS = [(2, 5, 3.0), (16, 2, 0.2), (40, 900, 1.7), (9, 10**9, 0.5)]
LOSSES = (0.0, 1e-6, 0.05, 3.0, 20.0)


def step(batch: int, records: int, noise: float, size: Sensitivity = SUM) -> SampledWithReplacement:
    return SampledWithReplacement(GaussianStep(size, noise), batch, records)


@pytest.mark.parametrize(("draws", "records", "mu"), LAWS)
@pytest.mark.parametrize("loss", LOSSES)
def test_enclosures_contain_what_the_engine_computes_in_balls(draws, records, mu, loss) -> None:
    """But for numbers of copies that are too unlikely to be counted, which lose infinitely."""
    normal, x, squared = Normal(BITS, lambda units: None), Fraction(loss), Fraction(mu) ** 2
    ends = CopiesDrawn(squared, draws, records).below(x, exp_bounds(x, BITS), normal)
    with precision(2 * BITS):
        tails = copies_tails(pairs.CopiesDrawn(squared, draws, records), ball_of(x))
        gamma = ball_of(x).exp()
        (low, high), (least, most) = [(1 - arb(b) / 2**BITS, 1 - arb(a) / 2**BITS) for a, b in ends]
        exact = tails[0] - gamma * tails[1]
        assert not high - gamma * least < exact
        for (under, over), tail, weight in (
            ((low, high), tails[0], 1),
            ((least, most), tails[1], gamma),
        ):
            assert weight * (tail - under) > -1e-18
            assert weight * (over - tail) > -1e-18
            assert weight * (over - under) < 1e-18


@pytest.mark.parametrize(("times", "records"), [(1, 10), (123_456, 10**9), (10**9, 10**9)])
def test_powers_are_enclosed(times, records) -> None:
    with precision(2000):
        exact = (arb(records - 1) / records) ** times * arb(2) ** 200
        low, high = _power(records - 1, records, times, 200)
        assert low <= exact <= high <= low + 4


# --- against enumeration --------------------------------------------------------------------------


OTHERS = [(-1.0, -1.0), (1.0, -1.0), (0.0, 0.3), (-0.7, 0.9)]
CELLS = np.linspace(-12, 12, 481)


def cells_of(values: tuple[float, ...], draws: int, noise: float) -> Law:
    """Masses of cells of the noisy sum of a batch: all batches, each equally likely."""
    sums = Counter(sum(batch) / noise for batch in product(values, repeat=draws))
    chances = np.array(list(sums.values())) / sums.total()
    return gaussian(np.array(list(sums)), chances, CELLS)


def lost(one: Law, two: Law, epsilon: float) -> float:
    """What outputs in cells lose, which is no more than what they lose themselves."""
    return float(np.sum(np.maximum(one - exp(epsilon) * two, 0)))


@pytest.mark.parametrize(("draws", "noise"), [(2, 0.7), (3, 0.7), (2, 2.0), (3, 4.0)])
@pytest.mark.parametrize("times", [1, 2])
def test_no_neighbours_lose_more_than_was_accepted(draws, noise, times) -> None:
    made = coarse(Repeated(step(draws, 3, noise), times))
    delta, epsilon = map(float, pld_checker.check(made.to_json_bytes()).values)
    seen = 0.0
    for others in OTHERS:
        for ends in ((1.0, -1.0), (0.2, -0.9)):
            p, q = (cells_of((*others, end), draws, noise) for end in ends)
            if times == 2:
                p, q = np.outer(p, p), np.outer(q, q)
            for first, second in ((p, q), (q, p)):
                assert lost(first, second, epsilon) <= delta
                seen = max(seen, lost(first, second, 0.9 * epsilon))
    # and some nearly as much
    assert seen > delta


# --- certificates ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """On a coarse grid, which is checked in milliseconds."""
    return coarse(Repeated(step(20, 400, 4.0), 2))


def bent(certificate: Certificate, mechanism: Mechanism) -> bytes:
    """The certificate of another sampled step, and the hash made to fit."""
    document = json.loads(certificate.to_json_bytes())
    sampled = mechanism_to_json(mechanism)

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            found = value.get("kind") == "sampled-with-replacement"
            return sampled if found else {key: changed(each) for key, each in value.items()}
        return [changed(each) for each in value] if isinstance(value, list) else value

    document["mechanisms"] = changed(document["mechanisms"])
    document["subject"] = statements.Run(document["mechanisms"], document["events"]).subject
    return json.dumps(document).encode()


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "steps"), [(4.0, 1000), (1.0, 100)])
def test_what_is_proved_is_the_enclosed_price_within_a_thousandth(noise, steps) -> None:
    found = certify([event(Repeated(step(100, 10_000, noise), steps))], delta=1e-5)
    verdict = pld_checker.check(found.to_json_bytes())
    enclosed = guarantee(found.events, delta=1e-5).epsilon
    assert enclosed.lower_float <= float(verdict.values[1]) <= 1.001 * enclosed.upper_float


def test_the_verdict_lists_what_it_rests_on(certificate) -> None:
    verdict = pld_checker.check(certificate.to_json_bytes())
    assert (verdict.adjacency, verdict.notion) == ("replace-one", "approx-dp")
    assert any("a batch drawn with replacement" in axiom for axiom in verdict.axioms)
    assert set(verdict.axioms) == set(certificate.axioms)
    assert statements.HIDDEN in verdict.assumptions


def test_too_small_an_epsilon_is_refused(certificate) -> None:
    document = json.loads(certificate.to_json_bytes())
    less = str(Fraction(certificate.epsilon) * Fraction(999, 1000))
    document["nodes"][0]["parameters"]["epsilon"] = less
    for node in document["nodes"]:
        node["conclusion"]["epsilon"] = less
    with pytest.raises(CertificateWrong, match="expected delta"):
        pld_checker.check(json.dumps(document).encode())


DEARER = {
    "a draw more": step(21, 400, 4.0),
    "a percent fewer records": step(20, 396, 4.0),
    "less noise": step(20, 400, 3.99),
    "records that move further": step(20, 400, 4.0, sum_of_bounded(1.01, REPLACE)),
}
ELSEWHERE = {
    "a null record": (step(20, 400, 4.0, sum_of_bounded(2, ZERO)), "expected adjacency"),
    "means over more than are drawn": (
        step(20, 400, 4.0, mean_of_bounded(20, 21, REPLACE)),
        "expected means over the 20 records drawn",
    ),
}


@pytest.mark.parametrize("name", DEARER)
def test_what_costs_more_is_refused_under_the_same_claim(certificate, name) -> None:
    with pytest.raises(CertificateWrong, match="expected delta"):
        pld_checker.check(bent(certificate, DEARER[name]))


@pytest.mark.parametrize("name", ELSEWHERE)
def test_what_the_rule_says_nothing_of_is_refused(certificate, name) -> None:
    mechanism, words = ELSEWHERE[name]
    with pytest.raises(CertificateWrong, match=words):
        pld_checker.check(bent(certificate, mechanism))


def test_a_record_that_is_drawn_very_often_is_undecided(certificate) -> None:
    with pytest.raises(Undecided, match="8 draws a record"):
        pld_checker.check(bent(certificate, step(82, 10, 4000.0)))


@pytest.mark.parametrize("mechanism", [step(19, 400, 4.0), step(20, 400, 4.1)])
def test_what_costs_less_is_accepted(certificate, mechanism) -> None:
    verdict = pld_checker.check(bent(certificate, mechanism))
    assert verdict.values[1] == Fraction(certificate.epsilon)


@pytest.mark.parametrize(
    ("mechanism", "group"), [(step(3, 40, 4.0), 3), (step(1, 5, 2.0), 1), (step(3, 2, 9.0), 2)]
)
def test_groups_single_draws_and_single_records_are_priced_as_the_engine_prices_them(
    mechanism, group
) -> None:
    found = coarse(Repeated(mechanism, 3), group=group)
    enclosed = guarantee(found.events, delta=0.01, group=group).epsilon
    assert enclosed.lower_float <= found.epsilon <= 1.05 * enclosed.upper_float
    verdict = pld_checker.check(found.to_json_bytes())
    assert (verdict.values[1], verdict.group) == (Fraction(found.epsilon), group)
