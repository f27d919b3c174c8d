"""The price of a unit of privacy that has several records: a person's epsilon, not a record's."""

import mpmath
import pytest
from tests.parameters import slow

from dpledger.accounting.guarantees import (
    ONE_PARTY,
    compare_conversions,
    deltas_at,
    epsilons_at,
    guarantee,
)
from dpledger.accounting.numbers.grade import Grade
from dpledger.accounting.planning import calibrate_noise_multiplier, rounds_within
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.planning import proved_noise_multiplier
from dpledger.accounting.proof.proved import proved_guarantee
from dpledger.accounting.training import curve, epsilon, noise_multiplier
from dpledger.audits.claims.pricing import may_be_spread, priced
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    InvalidParameter,
    LaplaceStep,
    Norm,
    PoissonSampled,
    Repeated,
    SampledWithReplacement,
    declared,
)

ONE = declared(1, "example", adjacency=Adjacency.ADD_REMOVE_ONE)
ONE_L1 = declared(1, "example", adjacency=Adjacency.ADD_REMOVE_ONE, norm=Norm.L1)
DELTA = 1e-5


def event(mechanism, *parties):
    return Event(mechanism, Context(parties, 1, "release", Audience.PUBLIC))


def delta_of_gaussian(mu, epsilon):
    """Balle, Wang 2018, Theorem 8, in 60 digits."""
    with mpmath.workdps(60):
        mu, eps = mpmath.mpf(mu), mpmath.mpf(epsilon)
        first = mpmath.ncdf(mu / 2 - eps / mu)
        return first - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_a_unit_of_k_records_has_k_times_the_mu_of_one(k):
    found = guarantee([event(Repeated(GaussianStep(ONE, 8.0), 9))], delta=DELTA, group=k)
    assert found.group == k
    assert found.mu.upper_float == pytest.approx(k * 3 / 8, rel=1e-12)
    assert found.rho.upper_float == pytest.approx((k * 3 / 8) ** 2 / 2, rel=1e-12)
    assert delta_of_gaussian(k * 3 / 8, found.epsilon.upper_float) <= DELTA
    assert delta_of_gaussian(k * 3 / 8, found.epsilon.upper_float * (1 - 1e-9)) > DELTA


def test_a_unit_pays_the_distribution_of_its_shift_where_draws_are_fresh():
    """The hockey-stick of 2 records in one Poisson step, integrated over who was drawn."""
    q, std, k = 0.25, 2.0, 2
    found = guarantee([event(PoissonSampled(GaussianStep(ONE, std), q))], delta=1e-2, group=k)
    eps = found.epsilon.upper_float
    weights = [(1 - q) ** 2, 2 * q * (1 - q), q**2]

    def mixture(x):
        return sum(w * mpmath.npdf(x, j, std) for j, w in enumerate(weights))

    def null(x):
        return mpmath.npdf(x, 0, std)

    for p, other, side in ((mixture, null, 40), (null, mixture, -40)):
        with mpmath.workdps(30):

            def excess(x, p=p, other=other):
                return p(x) - mpmath.exp(eps) * other(x)

            # the ratio of both grows along the line, so that one of them exceeds on one side
            begin = mpmath.findroot(excess, (-side / 4, side / 4), solver="anderson")
            gap = abs(mpmath.quad(excess, mpmath.linspace(begin, side, 20)))
        assert gap <= 1e-2


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("mechanism", [GaussianStep(ONE, 6.0), LaplaceStep(ONE_L1, 12.0)])
def test_curves_of_a_unit_pass_through_its_guarantee(mechanism, k):
    events = [event(mechanism)]
    found = guarantee(events, delta=DELTA, group=k)
    for grade in Grade.ENCLOSED, Grade.FAST:
        at = epsilons_at(events, deltas=[DELTA], grade=grade, group=k).epsilon[0]
        assert at == pytest.approx(found.epsilon.upper_float, rel=1e-5)
        assert at >= found.epsilon.lower_float
        back = deltas_at(events, epsilons=[at], grade=grade, group=k).delta[0]
        assert back == pytest.approx(DELTA, rel=1e-3)


def test_no_conversion_says_less_of_a_unit_than_the_exact_one():
    by = compare_conversions([event(GaussianStep(ONE, 6.0))], delta=DELTA, group=3)
    assert by.exact.upper <= min(by.rdp.upper, by.zcdp.upper, by.moments.upper)
    one = compare_conversions([event(GaussianStep(ONE, 2.0))], delta=DELTA)
    assert by.zcdp.upper_float == pytest.approx(one.zcdp.upper_float, rel=1e-12)


def test_noise_for_a_unit_of_k_is_k_times_that_of_a_record():
    def plan(z):
        return [event(Repeated(GaussianStep(ONE, z), 20))]

    one, three = (
        calibrate_noise_multiplier(plan, target_epsilon=1, delta=DELTA, group=k) for k in (1, 3)
    )
    assert three.noise_multiplier == pytest.approx(3 * one.noise_multiplier, rel=1e-6)
    assert three.guarantee.epsilon <= 1
    found, proof = proved_noise_multiplier(plan, target_epsilon=1, delta=DELTA, group=3)
    assert proof is not None
    assert (proof.verdict.group, found.guarantee.group) == (3, 3)
    assert found.guarantee.epsilon <= 1


def test_as_many_rounds_are_paid_for_as_a_unit_can_pay():
    def plan(rounds):
        return [event(Repeated(GaussianStep(ONE, 40.0), rounds))]

    found = rounds_within(plan, target_epsilon=1, delta=DELTA, group=3)
    assert guarantee(plan(found.rounds), delta=DELTA, group=3).epsilon <= 1
    assert guarantee(plan(found.rounds + 1), delta=DELTA, group=3).epsilon > 1


def test_a_proof_for_a_unit_names_its_size():
    found, proof = proved_guarantee([event(GaussianStep(ONE, 6.0))], delta=DELTA, group=4)
    assert proof is not None
    assert (found.grade, found.group, proof.verdict.group) == (Grade.PROVED, 4, 4)


def test_a_unit_whose_records_lie_with_parties_that_pay_differently_is_an_assumption():
    mixed = [event(GaussianStep(ONE, 6.0), "a"), event(LaplaceStep(ONE_L1, 12.0), "b")]
    assert ONE_PARTY in guarantee(mixed, delta=DELTA, group=2).assumptions
    assert ONE_PARTY not in guarantee(mixed, delta=DELTA).assumptions
    gaussian = [event(GaussianStep(ONE, 6.0), "a"), event(GaussianStep(ONE, 7.0), "b")]
    assert ONE_PARTY not in guarantee(gaussian, delta=DELTA, group=2).assumptions


def delta_of_two_batches(at, q, sigma):
    """Return what two places lose that are filled by a unit's records with probability q each."""

    def loss(z):
        return mpmath.log1p(q * mpmath.expm1(z / sigma - 1 / (2 * sigma**2)))

    def given(z):
        rest = mpmath.expm1(at - loss(z)) / q
        bound = sigma * (mpmath.log1p(rest) + 1 / (2 * sigma**2)) if rest > -1 else -mpmath.inf
        first = (1 - q) * mpmath.npdf(z) + q * mpmath.npdf(z, 1 / sigma)
        drawn = (1 - q) * mpmath.ncdf(-bound) + q * mpmath.ncdf(1 / sigma - bound)
        return first * drawn - mpmath.exp(at) * mpmath.npdf(z) * mpmath.ncdf(-bound)

    return mpmath.quad(given, mpmath.linspace(-10, 1 / sigma + 10, 21), maxdegree=4)


@pytest.mark.parametrize("parties", [[("a", "b")], *slow([("a",), ("b",)])], ids=["one", "two"])
def test_a_group_that_fills_a_batch_at_each_of_two_parties_is_an_assumption(parties):
    one = declared(1, "a place filled otherwise", adjacency=Adjacency.REPLACE_ONE)
    batch = SampledWithReplacement(GaussianStep(one, 0.5), 1, 2)
    shared, listed = [event(batch, "a", "b")], [event(batch, *names) for names in parties]
    found = guarantee(listed, delta=DELTA, group=2)
    assert ONE_PARTY in found.assumptions
    assert ONE_PARTY in certify(listed, delta=DELTA, group=2).assumptions
    assert ONE_PARTY not in guarantee(listed, delta=DELTA).assumptions
    assert ONE_PARTY not in certify(listed, delta=DELTA).assumptions
    # without the assumption it is false, and what the court says of records that are spread holds
    assert delta_of_two_batches(found.epsilon.upper_float, 0.5, 0.5) > 50 * DELTA
    assert may_be_spread(shared, "epsilon", DELTA, 2)
    spread = priced(shared, unit="epsilon", delta=DELTA, group=2, spread=True).cost.upper_float
    assert delta_of_two_batches(spread, 0.5, 0.5) <= DELTA


@pytest.mark.parametrize("grade", [Grade.PROVED, "nonsense", None])
def test_no_curve_calls_itself_proved(grade):
    with pytest.raises(InvalidParameter, match=r"grade=.* must be one of 'enclosed', 'fast'"):
        epsilons_at([event(GaussianStep(ONE, 6.0))], deltas=[DELTA], grade=grade)
    with pytest.raises(InvalidParameter, match="grade="):
        deltas_at([event(GaussianStep(ONE, 6.0))], epsilons=[1.0], grade=grade)


def test_a_curve_in_a_grade_named_by_its_text_is_of_that_grade():
    run = {"noise_multiplier": 1.1, "sampling": "none", "steps": 3, "adjacency": "add-remove-one"}
    found = curve(deltas=[DELTA], grade="enclosed", **run)
    assert found.grade is Grade.ENCLOSED
    assert found.epsilon == curve(deltas=[DELTA], **run).epsilon


@pytest.mark.parametrize("k", [0, -1, 2.0, True])
def test_a_unit_has_a_whole_number_of_records(k):
    with pytest.raises(InvalidParameter, match="group="):
        guarantee([event(GaussianStep(ONE, 6.0))], delta=DELTA, group=k)


def test_a_training_run_is_priced_per_person():
    run = {"steps": 100, "sampling": "none", "adjacency": "add-remove-one", "delta": DELTA}
    person = epsilon(noise_multiplier=120.0, records_per_unit=4, **run)
    record = epsilon(noise_multiplier=30.0, **run)
    assert person.epsilon == pytest.approx(record.epsilon, rel=1e-9)
    assert "per unit of at most 4 records" in str(person)
    assert any("no unit has more than 4 records" in text for text in person.guarantee.assumptions)


@pytest.mark.slow  # eight searches for a certificate
def test_the_noise_of_sampled_persons_is_that_of_the_proof():
    run = {"rate": 0.1, "steps": 4, "sampling": "poisson", "adjacency": "add-remove-one"}
    loose = noise_multiplier(epsilon=1, delta=DELTA, records_per_unit=3, **run)
    tight = noise_multiplier(epsilon=1, delta=DELTA, records_per_unit=3, proved=True, **run)
    assert tight.guarantee.grade is Grade.PROVED
    assert 0.98 <= tight.epsilon <= 1
    assert tight.noise_multiplier < loose.noise_multiplier
