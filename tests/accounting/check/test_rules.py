"""Laws of the rules: what they conclude is true, and each side condition is checked."""

import re
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import mpmath
import pytest

from dpledger.accounting.check import privacy, reading, sensitivities, statements
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.check.rules import rules, rules_page
from dpledger.accounting.check.statements import Priv
from dpledger.accounting.proof import derivation
from dpledger.mechanisms import (
    Adjacency,
    DiscreteGaussianStep,
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
    mean_of_nonnegative,
    scaled,
    strongly_convex_argmin,
    sum_of_bounded,
)

REPLACE, ADD, ZERO = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE
UNIT = declared(1, "unit", adjacency=REPLACE)
STEP = GaussianStep(UNIT, 2.0)
ROOT = Path(__file__).parents[3]


# --- the page ----------------------------------------------------------------------------------


def test_the_page_of_rules_is_what_the_checkers_say():
    assert (ROOT / "docs" / "rules.md").read_text() == rules_page()


def test_every_rule_is_drawn_with_its_name_behind_the_bar():
    for rule in rules():
        assert re.search(rf"^-+  {rule.name}$", rule.drawn, re.MULTILINE), rule.name


def without_comments(file):
    return re.sub(r"\(\*.*?\*\)", "", file.read_text(), flags=re.DOTALL)


@cache
def used_in_the_proofs():
    """Each name that `proofs/` defines or proves, and the words up to the next one."""
    found = {}
    for file in (ROOT / "proofs").glob("*.v"):
        kinds = r"(?:Theorem|Lemma|Corollary|Definition|Fixpoint|Inductive|Record|Notation|Ltac)"
        parts = re.split(rf"^{kinds} (\w+)", without_comments(file), flags=re.MULTILINE)
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            found.setdefault(name, set()).update(re.findall(r"[A-Za-z_][\w']*", body))
    return found


def reached_from(theorem):
    """What a theorem's proof rests on, through all lemmas: names of `proofs/`."""
    uses, reached, left = used_in_the_proofs(), set(), [theorem]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += uses[name] & uses.keys()
    return reached


def test_every_theorem_that_a_rule_names_is_in_the_proofs():
    named = {theorem for rule in rules() for theorem in (*rule.checked, *rule.theorems)}
    assert named
    assert named <= used_in_the_proofs().keys()


def test_a_rule_is_marked_by_what_the_checker_in_coq_rests_on_and_nothing_else():
    reached = reached_from("check_sound") | reached_from("check_filter_sound")
    for rule in rules():
        assert reached.issuperset(rule.checked), rule.name
        assert reached.isdisjoint(rule.theorems), rule.name


def test_a_rule_is_marked_as_checked_if_the_checker_in_coq_has_it():
    text = without_comments(ROOT / "proofs" / "Certificate.v")
    kinds = "rule|(?:leaf|unary|binary)_rule|float_(?:leaf|unary|binary)"
    bodies = re.findall(rf"^Inductive (?:{kinds}) :=(.*?)\.\n\n", text, re.MULTILINE | re.DOTALL)
    names = {name for body in bodies for name in re.findall(r"\b[A-Z]\w+", body)} - {"Q", "Z"}
    written = {re.sub(r"(?<!^)(?=[A-Z])", "-", n.removesuffix("Rule")).lower() for n in names}
    known = written - {"restate"} | {"post-processing", "given"}  # both repeat their premise
    known |= {"loss-distribution"}  # read as privacy-loss
    assert {rule.name for rule in rules() if rule.checked} == known


def test_prover_and_checker_name_the_same_axioms():
    names = {"Gdp": "gdp", "Zcdp": "zcdp", "Rdp": "rdp", "ApproxDp": "approx-dp"}
    written = {(rule, names[n.__name__]): t for (rule, n), t in derivation.AXIOMS.items()}
    # pure DP is written as approximate DP of delta 0; the other is read for ever, no longer written
    known = {
        (rule, notion.replace("pure", "approx")): text
        for (rule, notion), text in statements.AXIOMS.items()
        if rule != "loss-distribution"
    }
    assert written == known


# --- sensitivities -----------------------------------------------------------------------------


def derived(sensitivity):
    """The squared sensitivity that the checker derives."""
    step = GaussianStep if sensitivity.norm is Norm.L2 else LaplaceStep
    return sensitivities.read_sensitivity(mechanism_to_json(step(sensitivity, 1.0))["sensitivity"])


def test_derivations_prove_their_own_number():
    argmin = strongly_convex_argmin(1.0, 0.3, 0.01, 70, ADD)
    whole = concatenated(scaled(argmin, 3.0), clipped(sum_of_bounded(5.0, ADD), 0.5))
    total = added(whole, mean_of_bounded(1, 9, ADD))
    assert derived(total).squared == total.squared
    assert derived(total).rules == {
        *("sum", "concatenation", "scaled", "strongly-convex-argmin", "clip"),
        *("sum-of-bounded", "mean-of-bounded"),
    }


@pytest.mark.parametrize(
    ("adjacency", "mean", "total"),
    [(REPLACE, Fraction(2, 10), 2), (ZERO, Fraction(1, 10), 1), (ADD, Fraction(2, 10), 1)],
)
def test_means_and_sums_move_as_far_as_the_farthest_records(adjacency, mean, total):
    assert derived(mean_of_bounded(1, 10, adjacency)).squared == mean**2
    assert derived(sum_of_bounded(1, adjacency)).squared == total**2


@pytest.mark.parametrize(
    ("adjacency", "squared"),
    [(REPLACE, Fraction(2, 100)), (ZERO, Fraction(1, 100)), (ADD, Fraction(2, 100))],
)
def test_means_of_vectors_that_do_not_point_apart_move_less(adjacency, squared):
    assert derived(mean_of_nonnegative(1, 10, adjacency)).squared == squared
    assert mean_of_nonnegative(1, 10, adjacency).squared == squared


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
        assert derived(right).squared == right.squared


def test_histograms_move_as_their_rules_say():
    for adjacency, moved in ((ADD, 1), (ZERO, 2), (REPLACE, 2)):
        assert derived(lie("histogram", moved, adjacency=adjacency)).squared == moved
        l1 = lie("histogram-l1", moved**2, adjacency=adjacency, norm=Norm.L1)
        assert derived(l1).squared == moved**2


def test_vertical_data_move_as_their_rules_say():
    assert derived(lie("vertical-predictions", 9, VERTICAL)).squared == 9
    halved = lie("vertical-predictions", Fraction(9, 4), VERTICAL, adjacency=ZERO)
    assert derived(halved).squared == Fraction(9, 4)
    assert derived(lie("label-dual", 4, LABELS)).squared == 4
    assert derived(lie("label-dual", 1, LABELS, adjacency=ZERO)).squared == 1


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
        lie("histogram", Fraction(3, 2)),
        lie("histogram", Fraction(1, 2), adjacency=ADD),
        lie("histogram", 1, adjacency=ZERO),
        lie("histogram", 4, norm=Norm.L1),
        lie("histogram", 2, adjacency=Adjacency.REPLACE_FEATURE_COLUMN),
        lie("histogram-l1", 3, norm=Norm.L1),
        lie("histogram-l1", 4, adjacency=Adjacency.REPLACE_FEATURE_COLUMN),
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
def test_wrong_derivations_prove_nothing(wrong):
    with pytest.raises(reading.CertificateWrong):
        derived(wrong)


# --- privacy -----------------------------------------------------------------------------------


def run_of(*mechanisms):
    return statements.Run([mechanism_to_json(m) for m in mechanisms], [])


def concluded(rule, *given, of=(STEP,)):
    """What a rule concludes of mechanisms, its parameters and premises given in their order."""
    return privacy.RULES[rule][0](run_of(*of), *given)


def cost(rule, mechanism):
    return concluded(rule, 0, of=(mechanism,)).values[-1]


def gdp(mu_squared=Fraction(1, 4), exposure=None, *, relation="replace-one"):
    return Priv({0: 1} if exposure is None else exposure, relation, 1, "gdp", (mu_squared,))


ZCDP = Priv({0: 1}, "replace-one", 1, "zcdp", (Fraction(1, 8),))
RDP = Priv({0: 1}, "replace-one", 1, "rdp", (Fraction(10), Fraction(10, 8)))


def test_costs_of_single_mechanisms():
    assert cost("gaussian-gdp", STEP) == Fraction(1, 4)
    assert cost("gaussian-zcdp", STEP) == Fraction(1, 8)
    assert cost("discrete-gaussian-zcdp", DiscreteGaussianStep(UNIT, 2.0)) == Fraction(1, 8)
    pure = declared(1, "count", adjacency=REPLACE, norm=Norm.L1)
    assert cost("laplace-zcdp", LaplaceStep(pure, 4.0)) == Fraction(1, 32)


def test_no_noise_has_no_cost_but_no_dependence_has_none_to_pay():
    with pytest.raises(CertificateWrong, match="no finite cost"):
        cost("gaussian-gdp", GaussianStep(UNIT, 0.0))
    assert cost("gaussian-gdp", GaussianStep(declared(0, "constant", adjacency=REPLACE), 0.0)) == 0


def test_costs_add_up_as_often_as_said():
    found = concluded("composition", [7], gdp())
    assert (found.values, found.exposure) == ((Fraction(7, 4),), {0: 7})
    both = (STEP, Repeated(STEP, 7))
    assert concluded("repeated", 1, gdp(), of=both).values == found.values
    with pytest.raises(CertificateWrong, match="exposure"):
        concluded("repeated", 1, gdp(exposure={0: 2}), of=both)


@pytest.mark.parametrize(
    ("premises", "times"),
    [
        ([], []),
        ([gdp()], [0]),
        ([gdp()], [1, 1]),
        ([gdp(), ZCDP], [1, 1]),
        ([gdp(), gdp(relation="add-remove-one")], [1, 1]),
        ([RDP, RDP._replace(values=(Fraction(3), Fraction(3, 8)))], [1, 1]),
        ([gdp()._replace(notion="approx-dp", values=(Fraction(1, 9), Fraction(1)))], [2]),
    ],
    ids=["none", "never", "too many", "notions", "relations", "orders", "approximate"],
)
def test_what_does_not_agree_does_not_add_up(premises, times):
    with pytest.raises(CertificateWrong):
        concluded("composition", times, *premises)


def test_parties_pay_the_largest_part():
    loud = GaussianStep(UNIT, 1.0)
    of = (STEP, loud, Parties((("a", (STEP, STEP)), ("b", (loud,)), ("c", ()))))
    a, b = gdp(Fraction(1, 2), {0: 2}), gdp(Fraction(1), {1: 1})
    assert concluded("parties", 2, a, b, of=of).values == (1,)
    for premises in ((b, a), (a,), ()):
        with pytest.raises(CertificateWrong):
            concluded("parties", 2, *premises, of=of)


def test_events_need_a_premise_for_every_party_and_no_other():
    run = run_of(STEP)
    run.common, run.own = (
        Counter({0: 1}),
        {
            "a": Counter({0: 2}),
            "b": Counter({0: 1}),
        },
    )
    one, two, three = (gdp(Fraction(n, 4), {0: n}) for n in (1, 2, 3))
    events = privacy.RULES["events"][0]
    assert events(run, two, three).values == (Fraction(3, 4),)
    for premises in ([three], [two], [one, two, three], []):
        with pytest.raises(CertificateWrong):
            events(run, *premises)


def test_weaker_statements_only():
    assert concluded("weaken", "1/3", gdp()).values == (Fraction(1, 3),)
    with pytest.raises(CertificateWrong):
        concluded("weaken", "24/100", gdp())


def test_groups_cost_their_square():
    assert concluded("group", 5, ZCDP).values == (Fraction(25, 8),)
    for premise in (concluded("group", 2, ZCDP), RDP):
        with pytest.raises(CertificateWrong):
            concluded("group", 2, premise)
    with pytest.raises(CertificateWrong):
        concluded("group", 0, ZCDP)


def test_replacing_is_removing_and_adding():
    resized = GaussianStep(sum_of_bounded(1, ADD), 2.0)
    replaced = concluded("replace-one", concluded("gaussian-gdp", 0, of=(resized,)))
    # the direct bound agrees: a sum moves twice as far under replace-one
    direct = concluded("gaussian-gdp", 0, of=(GaussianStep(sum_of_bounded(1, REPLACE), 2.0),))
    assert replaced == direct == Priv({0: 1}, "replace-one", 1, "gdp", (Fraction(1),))
    with pytest.raises(CertificateWrong):
        concluded("replace-one", direct)


def test_conversions_admit_the_witness_and_nothing_smaller():
    a, tau, d = mpmath.mpf(10), mpmath.mpf(10) / 8, mpmath.mpf(1) / 10**5
    exact = tau + (mpmath.log(1 / d) + (a - 1) * mpmath.log(1 - 1 / a) - mpmath.log(a)) / (a - 1)
    above, below = (str(Fraction(float(exact) * (1 + s * 1e-12))) for s in (1, -1))
    assert concluded("rdp-approx-dp", "1/100000", above, RDP).values[-1] == Fraction(above)
    with pytest.raises(CertificateWrong):
        concluded("rdp-approx-dp", "1/100000", below, RDP)
    unit, least = gdp(Fraction(1)), Fraction("4.377178095682")
    assert concluded("gdp-approx-dp", "1/100000", str(least), unit).values[-1] == least
    with pytest.raises(CertificateWrong):
        concluded("gdp-approx-dp", "1/100000", str(least - Fraction(1, 10**12)), unit)
    for delta in ("0", "1"):
        with pytest.raises(CertificateWrong):
            concluded("gdp-approx-dp", delta, "9", unit)
    for rule, premise in (("rdp-approx-dp", unit), ("gdp-approx-dp", ZCDP)):
        with pytest.raises(CertificateWrong, match="notion"):
            concluded(rule, "1/100000", "9", premise)
    assert concluded("zcdp-rdp", "10", ZCDP) == RDP
    for order, premise in (("1", ZCDP), ("2", gdp())):
        with pytest.raises(CertificateWrong):
            concluded("zcdp-rdp", order, premise)


PURE = LaplaceStep(declared(1, "x", adjacency=ADD, norm=Norm.L1), 1.0)


@pytest.mark.parametrize(
    ("mechanism", "order"),
    [
        (PoissonSampled(GaussianStep(sum_of_bounded(1, REPLACE), 1.0), 0.1), 2),
        (PoissonSampled(GaussianStep(mean_of_bounded(1, 9, ADD), 1.0), 0.1), 2),
        (PoissonSampled(GaussianStep(mean_of_nonnegative(1, 9, ADD), 1.0), 0.1), 2),
        (PoissonSampled(GaussianStep(sum_of_bounded(1, ADD), 1.0), 0.1), 1),
        (PoissonSampled(PURE, 0.1), 2),
        (SampledWithoutReplacement(GaussianStep(sum_of_bounded(1, ADD), 1.0), 1, 10), 2),
        (SampledWithoutReplacement(GaussianStep(sum_of_bounded(1, REPLACE), 1.0), 1, 10), 513),
    ],
    ids=[
        "relation",
        "renormalised",
        "renormalised, nonnegative",
        "order 1",
        "Laplace",
        "batch relation",
        "order 513",
    ],
)
def test_side_conditions_of_sampling(mechanism, order):
    batch = isinstance(mechanism, SampledWithoutReplacement)
    with pytest.raises(CertificateWrong):
        concluded(
            "fixed-batch-rdp" if batch else "poisson-rdp", 0, order, "1000000", of=(mechanism,)
        )


def test_means_over_a_public_number_may_be_sampled_under_zero_out():
    mechanism = PoissonSampled(GaussianStep(mean_of_bounded(1, 10, ZERO), 0.1), 0.1)
    assert concluded("poisson-rdp", 0, 2, "1", of=(mechanism,)).adjacency == "zero-out-one"


def test_words_cost_nothing_and_are_things_to_trust():
    run = run_of(STEP)
    for rule, word in (("post-processing", "the mean"), ("given", "bounds are public")):
        assert privacy.RULES[rule][0](run, word, gdp()) == gdp()
    assert {text for text in run.assumptions if ": " in text} == {
        "reads released messages only: the mean",
        "taken for granted: bounds are public",
    }
