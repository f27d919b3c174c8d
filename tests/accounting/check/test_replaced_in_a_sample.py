"""The checker on Poisson samples of which a record is replaced: which sums, and at what cost."""

import json
from fractions import Fraction
from typing import Any

import pytest
from tests.accounting.proof.grids import on_a_grid
from tests.parameters import slow

from dpledger.accounting.check import pld_checker, statements
from dpledger.accounting.check.dominating import _any_of
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.guarantees import guarantee
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    PoissonSampled,
    Repeated,
    Sensitivity,
    declared,
)
from dpledger.mechanisms.encoding import mechanism_to_json
from dpledger.mechanisms.sensitivity import (
    clipped,
    concatenated,
    mean_of_bounded,
    rounded_to_lattice,
    scaled,
    sum_of_bounded,
)

REPLACE = Adjacency.REPLACE_ONE
SUM = sum_of_bounded(1, REPLACE)
DELTA = 1e-5


def events(size: Sensitivity = SUM, *, noise: float = 4.0, times: int = 1000) -> list[Event]:
    step = PoissonSampled(GaussianStep(size, noise), 0.01)
    return [Event(Repeated(step, times), Context((), 1, "sum", Audience.PUBLIC))]


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return certify(events(), delta=DELTA)


def bent(certificate: Certificate, event: GaussianStep | LaplaceStep) -> bytes:
    """The certificate with another sampled step in it, and the hash made to fit."""
    document = json.loads(certificate.to_json_bytes())
    step = mechanism_to_json(PoissonSampled(event, 0.01))

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            sampled = value.get("kind") == "poisson-sampled"
            return step if sampled else {key: changed(each) for key, each in value.items()}
        return [changed(each) for each in value] if isinstance(value, list) else value

    document["mechanisms"] = changed(document["mechanisms"])
    document["subject"] = statements.Run(document["mechanisms"], document["events"]).subject
    return json.dumps(document).encode()


def test_what_is_proved_is_the_enclosed_price_within_a_thousandth(certificate) -> None:
    verdict = pld_checker.check(certificate.to_json_bytes())
    enclosed = guarantee(events(), delta=DELTA).epsilon
    assert enclosed.lower_float <= float(verdict.values[1]) <= 1.001 * enclosed.upper_float
    assert verdict.adjacency == "replace-one"
    assert any("a record is replaced in a Poisson sample" in axiom for axiom in verdict.axioms)
    assert statements.HIDDEN in verdict.assumptions


def test_it_costs_more_than_removing_a_record(certificate) -> None:
    alone = sum_of_bounded(1, Adjacency.ADD_REMOVE_ONE)
    removed = guarantee(events(alone), delta=DELTA).epsilon
    assert 1.5 * removed.upper_float < certificate.epsilon


@pytest.mark.parametrize("share", ["999/1000", "1/2"])
def test_too_small_an_epsilon_is_refused(certificate, share) -> None:
    document = json.loads(certificate.to_json_bytes())
    less = str(Fraction(certificate.epsilon) * Fraction(share))
    document["nodes"][0]["parameters"]["epsilon"] = less
    for node in document["nodes"]:
        node["conclusion"]["epsilon"] = less
    with pytest.raises(CertificateWrong, match="expected delta"):
        pld_checker.check(json.dumps(document).encode())


# records that bring 4C and 2C differ by as much as +C and -C do, and cost far more
REFUSED = {
    "declared": declared(2, "records differ by 2", adjacency=REPLACE),
    "a mean": mean_of_bounded(10, 10, REPLACE),
    "clipped": clipped(sum_of_bounded(5, REPLACE), 1.0),
    "in part declared": concatenated(
        sum_of_bounded(0.5, REPLACE), declared(1, "the rest", adjacency=REPLACE)
    ),
    "on a lattice": rounded_to_lattice(sum_of_bounded(0.5, REPLACE), Fraction(1, 64), 4),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bound_on_differences_alone_is_refused(certificate, name) -> None:
    with pytest.raises(CertificateWrong, match="bounded one by one"):
        pld_checker.check(bent(certificate, GaussianStep(REFUSED[name], 100.0)))


def test_laplace_noise_is_refused(certificate) -> None:
    size = declared(0.01, "little", adjacency=REPLACE, norm=Norm.L1)
    with pytest.raises(CertificateWrong, match="bounded one by one"):
        pld_checker.check(bent(certificate, LaplaceStep(size, 100.0)))


def test_more_noise_than_was_proved_is_accepted(certificate) -> None:
    verdict = pld_checker.check(bent(certificate, GaussianStep(SUM, 8.0)))
    assert verdict.values[1] == Fraction(certificate.epsilon)


def test_a_rate_of_very_many_digits_is_no_work_in_a_group() -> None:
    """Powers of 2^-1100 had 70,000 bits, in each of as many parts as a document holds."""
    step = PoissonSampled(GaussianStep(SUM, 512.0), 2.0**-1020)
    listed = [Event(Repeated(step, 3), Context((), 1, "sum", Audience.PUBLIC))]
    document = certify(listed, delta=DELTA, group=64).to_json_bytes()
    assert pld_checker.check(document).group == 64
    assert _any_of(Fraction(1, 1 << 1100), 64).denominator <= 1 << 512
    for rate in (Fraction(1, 3), Fraction(1, 1 << 70), Fraction((1 << 60) - 1, 1 << 60)):
        exact = 1 - (1 - rate) ** 5
        assert exact <= _any_of(rate, 5) <= exact + Fraction(5, 1 << 510)


def test_groups_and_scaled_sums_are_priced_as_the_engine_prices_them() -> None:
    listed = events(scaled(SUM, Fraction(1, 3)), times=30)
    found = certify(listed, delta=DELTA, group=3)
    enclosed = guarantee(listed, delta=DELTA, group=3).epsilon
    assert enclosed.lower_float <= found.epsilon <= 1.001 * enclosed.upper_float
    assert pld_checker.check(found.to_json_bytes()).values[1] == Fraction(found.epsilon)


# --- once: what moves by nothing between neighbours told who was drawn, at no price -------------

TOLD = declared(0, "1000 times the number of records drawn", adjacency=REPLACE)
COUNTED = declared(1, "a sum beside the number drawn", adjacency=Adjacency.ZERO_OUT_ONE)


def steps(size: Sensitivity) -> list[Mechanism]:
    """Every mechanism that hides a Poisson sample of a quantity of this sensitivity."""
    sampled = PoissonSampled(GaussianStep(size, 4.0), 2**-6)
    return [sampled, Repeated(sampled, 3), GaussianMixtureStep(size, size, 2**-6, 4.0)]


@pytest.mark.parametrize(
    "step",
    [
        *(steps(concatenated(SUM, TOLD))[0], steps(COUNTED)[0]),
        *slow(*steps(concatenated(SUM, TOLD))[1:], *steps(COUNTED)[1:]),
    ],
    ids=repr,
)
def test_that_what_is_declared_does_not_tell_who_was_drawn_is_assumed(step: Mechanism) -> None:
    listed = [Event(step, Context((), 1, "sum", Audience.PUBLIC))]
    found = certify(listed, delta=DELTA)
    verdict = pld_checker.check(found.to_json_bytes())
    assert statements.UNTOLD in verdict.assumptions
    assert statements.UNTOLD in found.assumptions
    assert statements.UNTOLD in guarantee(listed, delta=DELTA).assumptions


@pytest.mark.parametrize("size", [SUM, sum_of_bounded(1, Adjacency.ZERO_OUT_ONE)])
def test_of_derived_sums_it_is_not(size: Sensitivity) -> None:
    listed = [Event(steps(size)[0], Context((), 1, "sum", Audience.PUBLIC))]
    assert statements.UNTOLD not in guarantee(listed, delta=DELTA).assumptions


def test_means_of_a_sample_say_that_they_divide_by_a_public_number() -> None:
    size = mean_of_bounded(1, 100, Adjacency.ZERO_OUT_ONE)
    listed = [Event(steps(size)[0], Context((), 1, "mean", Audience.PUBLIC))]
    certificate = on_a_grid(steps(size)[0], delta=Fraction(DELTA), fineness=8.0)
    verdict = pld_checker.check(certificate.to_json_bytes())
    assert statements.DIVIDED in verdict.assumptions
    assert statements.DIVIDED in guarantee(listed, delta=DELTA).assumptions


def test_documents_from_before_need_not_say_so() -> None:
    document = json.loads(
        on_a_grid(steps(COUNTED)[0], delta=Fraction(DELTA), fineness=8.0).to_json_bytes()
    )
    document["assumptions"].remove(statements.UNTOLD)
    assert statements.UNTOLD in pld_checker.check(json.dumps(document).encode()).assumptions
