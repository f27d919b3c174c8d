"""Laws of the rules: what they conclude is true, and each side condition is checked."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest
from dp_accounting.rdp import rdp_privacy_accountant

from dpledger.accounting.check import checker
from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.accounting.proof.judgement import Exposure, RuleViolation, written
from dpledger.accounting.proof.losses import Composed, LossGrid
from dpledger.accounting.proof.rules import (
    TABLE,
    conversion,
    derive,
    loss_distribution,
    privacy,
    sampling,
)
from dpledger.accounting.proof.rules.__main__ import rules_page
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    Event,
    GaussianStep,
    LaplaceStep,
    Norm,
    Parties,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    declared,
)
from dpledger.mechanisms.encoding import mechanism_to_json
from dpledger.mechanisms.sensitivity import (
    Derivation,
    added,
    clipped,
    concatenated,
    mean_of_bounded,
    scaled,
    strongly_convex_argmin,
    sum_of_bounded,
)

REPLACE, ADD, ZERO = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE
UNIT = declared(1, "unit", adjacency=REPLACE)
STEP = GaussianStep(UNIT, 2.0)
ROOT = Path(__file__).parents[3]


def event(mechanism, *parties):
    return Event(mechanism, Context(parties, 1, "model", Audience.SERVER))


# --- the table ---------------------------------------------------------------------------------


def test_the_page_of_rules_is_current():
    assert (ROOT / "docs" / "rules.md").read_text() == rules_page()


def test_every_rule_is_drawn_with_its_name_behind_the_bar():
    for rule in TABLE.values():
        assert re.search(rf"^-+  {rule.name}$", rule.drawn, re.MULTILINE), rule.name
        assert rule.source


def test_every_theorem_that_a_rule_names_is_in_the_proofs():
    proved = {
        name
        for file in (ROOT / "proofs").glob("*.v")
        for name in re.findall(r"^(?:Theorem|Lemma) (\w+)", file.read_text(), re.MULTILINE)
    }
    named = {theorem for rule in TABLE.values() for theorem in rule.theorems}
    assert named
    assert named <= proved


# --- sensitivities -----------------------------------------------------------------------------


def test_derivations_prove_their_own_number():
    argmin = strongly_convex_argmin(1.0, 0.3, 0.01, 70, ADD)
    whole = concatenated(scaled(argmin, 3.0), clipped(sum_of_bounded(5.0, ADD), 0.5))
    found = derive(added(whole, mean_of_bounded(1, 9, ADD)))
    assert found.squared == added(whole, mean_of_bounded(1, 9, ADD)).squared
    assert found.rules == {
        *("sum", "concatenation", "scaled", "strongly-convex-argmin", "clip"),
        *("sum-of-bounded", "mean-of-bounded"),
    }


@pytest.mark.parametrize(
    ("adjacency", "mean", "total"),
    [(REPLACE, Fraction(2, 10), 2), (ZERO, Fraction(1, 10), 1), (ADD, Fraction(2, 10), 1)],
)
def test_means_and_sums_move_as_far_as_the_farthest_records(adjacency, mean, total):
    assert derive(mean_of_bounded(1, 10, adjacency)).squared == mean**2
    assert derive(sum_of_bounded(1, adjacency)).squared == total**2


def lie(rule, squared, parameters=(), premises=(), *, norm=Norm.L2, adjacency=REPLACE):
    """A sensitivity with a derivation typed in by hand."""
    tree = Derivation(rule, Fraction(squared), parameters, premises)
    return replace(
        declared(0, "lie", adjacency=adjacency, norm=norm), squared=tree.squared, derivation=tree
    )


ONE = Derivation("declared", Fraction(1), (("value", Fraction(1)), ("reason", "unit")))
G, N = ("bound", Fraction(1)), ("count", Fraction(10))


# Q = 1 (0 + 1·1·1) = 1, so u² >= 1 + 4 and v² >= 0
VERTICAL = tuple(
    (name, Fraction(value))
    for name, value in [
        *(("row_bound", 1), ("slope_bound", 0), ("radius", 1), ("penalty", 1)),
        *(("modulus", 1), ("tolerance", 0), ("u", 3), ("v", 0)),
    ]
)
LABELS = (
    ("derivative_bound", Fraction(1)),
    ("label_gap", Fraction(2)),
    ("tolerance", Fraction(0)),
)


HALF, SIX, TWO = ("distance", Fraction(1, 2)), ("dimension", Fraction(6)), ("u", Fraction(2))
LATTICE = (HALF, SIX, TWO, ("w", Fraction(3)))


def test_rounding_to_a_lattice_moves_as_its_rules_say():
    # each of six coordinates moves by 1/2 at either end: √6 <= 3 in l2, 6 in l1
    for right in (
        lie("lattice", 25, LATTICE, (ONE,)),
        lie("lattice-l1", 64, LATTICE[:3], (ONE,), norm=Norm.L1),
    ):
        assert derive(right).squared == right.squared
        step = GaussianStep if right.norm is Norm.L2 else LaplaceStep
        written_down = mechanism_to_json(step(right, 1.0))["sensitivity"]
        assert checker._sensitivity(written_down).squared == right.squared


def test_vertical_data_move_as_their_rules_say():
    assert derive(lie("vertical-predictions", 9, VERTICAL)).squared == 9
    halved = lie("vertical-predictions", Fraction(9, 4), VERTICAL, adjacency=ZERO)
    assert derive(halved).squared == Fraction(9, 4)
    assert derive(lie("label-dual", 4, LABELS)).squared == 4
    assert derive(lie("label-dual", 1, LABELS, adjacency=ZERO)).squared == 1
    for right in (halved, lie("label-dual", 1, LABELS, adjacency=ZERO)):
        written_down = mechanism_to_json(GaussianStep(right, 1.0))["sensitivity"]
        assert checker._sensitivity(written_down).squared == right.squared


@pytest.mark.parametrize(
    "wrong",
    [
        lie("mean-of-bounded", Fraction(1, 26), (G, N)),
        lie("mean-of-bounded", 1, (G,)),
        lie("mean-of-bounded", 1, (G, ("count", Fraction(1, 2)))),
        lie("mean-of-bounded", 1, (G, N), norm=Norm.L1),
        lie("mean-of-bounded", 1, (G, N), adjacency=Adjacency.REPLACE_FEATURE_COLUMN),
        lie("sum-of-bounded", 3, (G,)),
        lie("sum-of-bounded", 4, (("bound", Fraction(-1)),)),
        lie("declared", Fraction(1, 2), ONE.parameters),
        lie("scaled", 3, (("factor", Fraction(2)),), (ONE,)),
        lie("sum", 2, (("u", Fraction(1)), ("v", Fraction(1))), (ONE, ONE)),
        lie("sum", 4, (("u", Fraction(3)), ("v", Fraction(-1))), (ONE, ONE)),
        lie("sum", 1, (("u", Fraction(1, 2)), ("v", Fraction(1, 2))), (ONE, ONE)),
        lie("linear-map", 1, (("operator_norm", Fraction(2)),), (ONE,)),
        lie("clip", Fraction(1, 2), (("radius", Fraction(1)),), (ONE,)),
        lie("concatenation", 1, (), (ONE, ONE)),
        lie("concatenation", 2, (), (ONE,)),
        lie("disjoint", Fraction(1, 2), (), (ONE, ONE)),
        lie("vertical-predictions", Fraction(1, 2), VERTICAL),
        lie("vertical-predictions", 9, VERTICAL, adjacency=ADD),
        lie("vertical-predictions", 9, (*VERTICAL[:6], ("u", Fraction(2)), VERTICAL[7])),
        lie("vertical-predictions", 9, (*VERTICAL[:5], ("tolerance", Fraction(1)), *VERTICAL[6:])),
        lie("vertical-predictions", 9, (*VERTICAL[:3], ("penalty", Fraction(0)), *VERTICAL[4:])),
        lie("label-dual", 3, LABELS),
        lie("label-dual", 9, LABELS, adjacency=ADD),
        lie("label-dual", Fraction(1, 2), LABELS, adjacency=ZERO),
        lie("lattice", 24, LATTICE, (ONE,)),
        lie("lattice", 25, LATTICE, (ONE,), norm=Norm.L1),
        lie("lattice", 25, LATTICE),
        lie("lattice", 25, (*LATTICE[:2], ("u", Fraction(1, 2)), LATTICE[3]), (ONE,)),
        lie("lattice", 25, (*LATTICE[:3], ("w", Fraction(2))), (ONE,)),
        lie("lattice", 25, (*LATTICE[:3], ("w", Fraction(-3))), (ONE,)),
        lie("lattice", 25, (HALF, ("dimension", Fraction(1, 2)), *LATTICE[2:]), (ONE,)),
        lie("lattice-l1", 63, LATTICE[:3], (ONE,), norm=Norm.L1),
        lie("lattice-l1", 64, (HALF, SIX, ("u", Fraction(1, 2))), (ONE,), norm=Norm.L1),
        lie("lattice-l1", 64, (("distance", Fraction(-1)), SIX, TWO), (ONE,), norm=Norm.L1),
        lie("lattice-l1", 64, (HALF, ("dimension", Fraction(0)), TWO), (ONE,), norm=Norm.L1),
        lie("wishful", 1),
        lie(
            "strongly-convex-argmin",
            1,
            (
                ("lipschitz", Fraction(1)),
                ("modulus", Fraction(0)),
                ("tolerance", Fraction(0)),
                N,
            ),
        ),
    ],
    ids=lambda s: f"{s.derivation.rule} {s.derivation.squared}",
)
def test_wrong_derivations_prove_nothing_neither_here_nor_to_the_checker(wrong):
    with pytest.raises(RuleViolation):
        derive(wrong)
    step = GaussianStep if wrong.norm is Norm.L2 else LaplaceStep
    with pytest.raises(checker.CertificateWrong):
        checker._sensitivity(mechanism_to_json(step(wrong, 1.0))["sensitivity"])


# --- privacy -----------------------------------------------------------------------------------


def test_costs_of_single_mechanisms():
    assert privacy.gaussian_gdp(STEP).notion == Gdp(Fraction(1, 4))
    assert privacy.gaussian_zcdp(STEP).notion == Zcdp(Fraction(1, 8))
    discrete = DiscreteGaussianStep(UNIT, 2.0)
    assert privacy.discrete_gaussian_zcdp(discrete).notion == Zcdp(Fraction(1, 8))
    pure = declared(1, "count", adjacency=REPLACE, norm=Norm.L1)
    assert privacy.laplace_zcdp(LaplaceStep(pure, 4.0)).notion == Zcdp(Fraction(1, 32))


def test_no_noise_is_no_judgement_but_no_dependence_is():
    with pytest.raises(RuleViolation, match="noise"):
        privacy.gaussian_gdp(GaussianStep(UNIT, 0.0))
    constant = GaussianStep(declared(0, "constant", adjacency=REPLACE), 0.0)
    assert privacy.gaussian_gdp(constant).notion == Gdp(0)


def test_costs_add_up_as_often_as_said():
    found = privacy.composition([privacy.gaussian_gdp(STEP)], [7])
    assert found.notion == Gdp(Fraction(7, 4))
    assert found.subject == Exposure.of({written(STEP): 7})
    assert privacy.repeated(Repeated(STEP, 7), privacy.gaussian_gdp(STEP)).notion == found.notion


@pytest.mark.parametrize(
    ("premises", "times"),
    [
        ([], []),
        ([privacy.gaussian_gdp(STEP)], [0]),
        ([privacy.gaussian_gdp(STEP)], [1, 1]),
        ([privacy.gaussian_gdp(STEP), privacy.gaussian_zcdp(STEP)], [1, 1]),
        (
            [
                privacy.gaussian_gdp(STEP),
                privacy.gaussian_gdp(GaussianStep(sum_of_bounded(1, ADD), 1.0)),
            ],
            [1, 1],
        ),
        (
            [
                conversion.zcdp_rdp(privacy.gaussian_zcdp(STEP), Fraction(2)),
                conversion.zcdp_rdp(privacy.gaussian_zcdp(STEP), Fraction(3)),
            ],
            [1, 1],
        ),
    ],
    ids=["none", "never", "too many", "notions", "relations", "orders"],
)
def test_what_does_not_agree_does_not_add_up(premises, times):
    with pytest.raises(RuleViolation):
        privacy.composition(premises, times)


def test_parties_pay_the_largest_part():
    loud = GaussianStep(UNIT, 1.0)
    both = Parties((("a", (STEP, STEP)), ("b", (loud,)), ("c", ())))
    a = privacy.composition([privacy.gaussian_gdp(STEP)], [2])
    b = privacy.gaussian_gdp(loud)
    assert privacy.parties(both, [a, b]).notion == Gdp(1)
    with pytest.raises(RuleViolation):
        privacy.parties(both, [b, a])
    with pytest.raises(RuleViolation):
        privacy.parties(both, [a])


def test_events_need_a_premise_for_every_party_and_no_other():
    events = [event(STEP, "a"), event(STEP, "a", "b"), event(STEP)]
    one = privacy.gaussian_gdp(STEP)
    two, three = privacy.composition([one], [2]), privacy.composition([one], [3])
    assert privacy.events(events, [two, three]).notion == Gdp(Fraction(3, 4))
    for premises in ([three], [two], [one, two, three], []):
        with pytest.raises(RuleViolation):
            privacy.events(events, premises)


def test_weaker_statements_only():
    premise = privacy.gaussian_gdp(STEP)
    assert privacy.weaken(premise, Fraction(1, 3)).notion == Gdp(Fraction(1, 3))
    with pytest.raises(RuleViolation):
        privacy.weaken(premise, Fraction(24, 100))


def test_groups_cost_their_square():
    premise = privacy.gaussian_zcdp(STEP)
    assert privacy.group(premise, 5).notion == Zcdp(Fraction(25, 8))
    with pytest.raises(RuleViolation):
        privacy.group(privacy.group(premise, 2), 2)
    with pytest.raises(RuleViolation):
        privacy.group(conversion.zcdp_rdp(premise, Fraction(2)), 2)


def test_replacing_is_removing_and_adding():
    resized = privacy.gaussian_gdp(GaussianStep(sum_of_bounded(1, ADD), 2.0))
    replaced = privacy.replace_one(resized)
    assert (replaced.adjacency, replaced.notion) == (REPLACE, Gdp(1))
    # the direct bound agrees: a sum moves twice as far under replace-one
    direct = privacy.gaussian_gdp(GaussianStep(sum_of_bounded(1, REPLACE), 2.0))
    assert direct.notion == replaced.notion
    with pytest.raises(RuleViolation):
        privacy.replace_one(direct)


# --- conversions -------------------------------------------------------------------------------


def test_conversions_admit_the_witness_and_nothing_smaller():
    rdp = conversion.zcdp_rdp(privacy.gaussian_zcdp(STEP), Fraction(10))
    delta = Fraction(1, 10**5)
    a, tau, d = mpmath.mpf(10), mpmath.mpf(10) / 8, mpmath.mpf(1) / 10**5
    exact = tau + (mpmath.log(1 / d) + (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)) / (a - 1)
    above, below = Fraction(float(exact) * (1 + 1e-12)), Fraction(float(exact) * (1 - 1e-12))
    found = conversion.rdp_approx_dp(rdp, delta=delta, epsilon=above)
    assert found.notion == ApproxDp(above, delta)
    with pytest.raises(RuleViolation):
        conversion.rdp_approx_dp(rdp, delta=delta, epsilon=below)
    gdp = privacy.gaussian_gdp(GaussianStep(UNIT, 1.0))
    assert conversion.gdp_approx_dp(gdp, delta=delta, epsilon=Fraction("4.377178095682"))
    with pytest.raises(RuleViolation):
        conversion.gdp_approx_dp(gdp, delta=delta, epsilon=Fraction("4.377178095681"))
    for wrong in (Fraction(0), Fraction(1)):
        with pytest.raises(RuleViolation, match="delta"):
            conversion.gdp_approx_dp(gdp, delta=wrong, epsilon=Fraction(9))
    with pytest.raises(RuleViolation):
        conversion.rdp_approx_dp(gdp, delta=delta, epsilon=Fraction(9))


# --- sampling ----------------------------------------------------------------------------------


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
    mechanism = PoissonSampled(GaussianStep(sum_of_bounded(Fraction(mu), ADD), 1.0), rate)
    above, below = (Fraction(float(exact)) * (1 + s * Fraction(1, 10**9)) for s in (1, -1))
    judged = sampling.poisson_rdp(mechanism, order=order, epsilon=above)
    assert judged.notion == Rdp(order, above)
    with pytest.raises(RuleViolation):
        sampling.poisson_rdp(mechanism, order=order, epsilon=below)


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


@pytest.mark.parametrize(
    ("rule", "mechanism", "order"),
    [
        (
            sampling.poisson_rdp,
            PoissonSampled(GaussianStep(sum_of_bounded(1, REPLACE), 1.0), 0.1),
            2,
        ),
        (
            sampling.poisson_rdp,
            PoissonSampled(GaussianStep(mean_of_bounded(1, 9, ADD), 1.0), 0.1),
            2,
        ),
        (sampling.poisson_rdp, PoissonSampled(GaussianStep(sum_of_bounded(1, ADD), 1.0), 0.1), 1),
        (
            sampling.poisson_rdp,
            PoissonSampled(LaplaceStep(declared(1, "x", adjacency=ADD, norm=Norm.L1), 1.0), 0.1),
            2,
        ),
        (
            sampling.fixed_batch_rdp,
            SampledWithoutReplacement(GaussianStep(sum_of_bounded(1, ADD), 1.0), 1, 10),
            2,
        ),
        (
            sampling.fixed_batch_rdp,
            SampledWithoutReplacement(GaussianStep(sum_of_bounded(1, REPLACE), 1.0), 1, 10),
            513,
        ),
    ],
    ids=["relation", "renormalised", "order 1", "Laplace", "batch relation", "order 513"],
)
def test_side_conditions_of_sampling(rule, mechanism, order):
    with pytest.raises(RuleViolation):
        rule(mechanism, order=order, epsilon=Fraction(10**6))


def test_means_over_a_public_number_may_be_sampled_under_zero_out():
    mechanism = PoissonSampled(GaussianStep(mean_of_bounded(1, 10, ZERO), 0.1), 0.1)
    assert sampling.poisson_rdp(mechanism, order=2, epsilon=Fraction(1)).adjacency is ZERO
    assert math.isfinite(
        float(sampling.poisson_divergence(Fraction(1), Fraction(1, 10), 512).upper)
    )


# --- the side conditions that only a careless caller meets ---------------------------------------

POISSON = PoissonSampled(GaussianStep(sum_of_bounded(1, ADD), 2.0), 0.1)
BATCH = SampledWithoutReplacement(GaussianStep(sum_of_bounded(1, REPLACE), 2.0), 1, 10)
GRID = LossGrid(Fraction(1, 64), (), 40, 20, 10**8)
PURE = LaplaceStep(declared(1, "count", adjacency=ADD, norm=Norm.L1), 1.0)
BELIEVED = conversion.gdp_approx_dp(
    privacy.gaussian_gdp(STEP), delta=Fraction(1, 10), epsilon=Fraction(9)
)


def understated():
    """A sensitivity whose number is not the one its derivation ends in."""
    found = sum_of_bounded(1, ADD)
    object.__setattr__(found, "squared", Fraction(1, 4))
    return found


def composed_tightly(*parts, epsilon=Fraction(9)):
    composed = Composed(parts, ADD)
    return loss_distribution.privacy_loss(
        composed, grid=GRID, delta=Fraction(1, 10**5), epsilon=epsilon
    )


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        (lambda: composed_tightly(), "at least one mechanism"),
        (lambda: composed_tightly((STEP, 0, 0)), "each at least once"),
        (lambda: composed_tightly((STEP, 1, 0), (POISSON, 1, 0)), "one relation"),
        (lambda: composed_tightly((Parties((("a", (STEP,)),)), 1, 0)), "no loss distribution"),
        (lambda: composed_tightly((POISSON, 9, 0), epsilon=Fraction(1, 9)), "of at least"),
        (lambda: privacy.ratio_squared(UNIT, 1.0, Norm.L1), "norm"),
        (lambda: privacy.composition([BELIEVED], [2]), "adds up"),
        (
            lambda: privacy.repeated(
                Repeated(STEP, 3), privacy.gaussian_gdp(GaussianStep(UNIT, 9.0))
            ),
            "a premise about",
        ),
        (lambda: privacy.group(privacy.gaussian_gdp(STEP), 0), "size=0"),
        (
            lambda: sampling.fixed_batch_rdp(BATCH, order=2, epsilon=Fraction(1, 10**9)),
            "above the divergence",
        ),
        (
            lambda: sampling.poisson_rdp(POISSON, order=2, epsilon=Fraction(1, 10**9)),
            "above the divergence",
        ),
        (lambda: derive(understated()), "squared >= 1"),
        (lambda: conversion.zcdp_rdp(privacy.gaussian_gdp(STEP), Fraction(2)), "zCDP"),
        (lambda: conversion.zcdp_rdp(privacy.gaussian_zcdp(STEP), Fraction(1)), "order=1"),
        (
            lambda: conversion.gdp_approx_dp(
                privacy.gaussian_zcdp(STEP), delta=Fraction(1, 9), epsilon=Fraction(9)
            ),
            "GDP",
        ),
    ],
)
def test_a_side_condition_that_does_not_hold_is_named(asked, wanted):
    with pytest.raises(RuleViolation, match=wanted):
        asked()


def test_post_processing_keeps_the_cost_and_names_what_it_takes_on_trust():
    premise = privacy.gaussian_gdp(STEP)
    found = privacy.post_processing(premise, "the mean of all messages")
    assert (found.notion, found.subject) == (premise.notion, premise.subject)
    assert found.assumptions == {"reads released messages only: the mean of all messages"}


def test_a_statement_costs_nothing_and_is_one_more_thing_to_trust():
    premise = privacy.post_processing(privacy.gaussian_gdp(STEP), "the mean")
    found = privacy.given(premise, "bounds are public")
    assert (found.notion, found.subject) == (premise.notion, premise.subject)
    assert found.assumptions == {"taken for granted: bounds are public"}


def test_every_rule_has_a_source_and_its_standing():
    for found in TABLE.values():
        assert found.source.strip()
        assert found.theorems or found.axioms or found.standing == "elementary"
        assert all(found.axioms.values())
