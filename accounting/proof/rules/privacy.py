"""Rules for privacy: what one mechanism costs, how costs add up, whom they concern.

Costs are exact rationals; no rule here rounds. Conversions to (ε, δ) are in `conversion`, sampled
mechanisms in `sampling`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType

from ....mechanisms.adjacency import Adjacency
from ....mechanisms.encoding import subject_hash
from ....mechanisms.events import (
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    Repeated,
)
from ....mechanisms.sensitivity import Norm, Sensitivity
from ...numbers.notions import ApproxDp, Gdp, Zcdp
from ..judgement import (
    _RULES_ONLY,
    Exposure,
    Parameter,
    Priv,
    PrivacyNotion,
    RuleViolation,
    Sens,
    Subject,
    written,
)
from .registry import ANY, TABLE, rule
from .sensitivity import derive

__all__ = [
    "DISJOINT_RECORDS",
    "composition",
    "conclude",
    "discrete_gaussian_zcdp",
    "discrete_laplace_zcdp",
    "events",
    "exposures",
    "gaussian_gdp",
    "gaussian_zcdp",
    "given",
    "group",
    "laplace_zcdp",
    "parties",
    "post_processing",
    "ratio_squared",
    "repeated",
    "replace_one",
    "weaken",
]

DISJOINT_RECORDS = (
    "every record belongs to one party, and who holds which record is public and fixed"
)

_PARALLEL = "McSherry 2009, Theorem 4 (parallel composition)"
_GDP_COMPOSITION = "Dong, Roth, Su 2022, Corollary 3.3 (composition of GDP)"
_GDP_GROUP = "Dong, Roth, Su 2022, Theorem 2.14 (GDP of groups)"


def conclude(
    name: str,
    subject: Subject,
    adjacency: Adjacency,
    notion: PrivacyNotion,
    *,
    group: int = 1,
    premises: tuple[Priv, ...] = (),
    assumptions: frozenset[str] = frozenset(),
    axioms: frozenset[str] = frozenset(),
    parameters: Mapping[str, Parameter] = MappingProxyType({}),
) -> Priv:
    """Return the judgement that rule `name` makes; for the modules of this package only."""
    return Priv(
        subject,
        adjacency,
        group,
        notion,
        name,
        tuple(parameters.items()),
        premises,
        assumptions,
        TABLE[name].axioms_for(type(notion).__name__.lower()) | axioms,
        _RULES_ONLY,
    )


def ratio_squared(
    sensitivity: Sensitivity, scale: float, norm: Norm
) -> tuple[Sens, Fraction, frozenset[str]]:
    """Return the derived sensitivity, (sensitivity / scale)², and what was declared."""
    sens = derive(sensitivity)
    if sens.norm is not norm:
        raise RuleViolation(f"norm={sens.norm} must be equal to {norm}.")
    declared = frozenset(f"declared: {reason}" for reason in sens.reasons)
    if sens.squared == 0:
        return sens, Fraction(0), declared
    if scale == 0:
        raise RuleViolation("Expected noise above 0: without it no cost is finite.")
    return sens, sens.squared / Fraction(scale) ** 2, declared


def _leaf(
    name: str,
    mechanism: Mechanism,
    adjacency: Adjacency,
    notion: PrivacyNotion,
    declared: frozenset[str],
) -> Priv:
    subject = Exposure.of({written(mechanism): 1})
    return conclude(
        name, subject, adjacency, notion, assumptions=declared, parameters={"mechanism": mechanism}
    )


@rule(
    "gaussian-gdp",
    source="Dong, Roth, Su 2022, Theorem 2.7",
    coq=("rounded_below_profile", "vector_gaussian_below_profile"),
    axioms={ANY: "Dong, Roth, Su 2022, Theorem 2.7 (Gaussian noise is GDP)"},
)
def gaussian_gdp(step: GaussianStep) -> Priv:
    """Normal noise.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ------------------------------------------------------------------------------  gaussian-gdp
    Priv(f + N(0, σ²), Gdp(Δ²/σ²))
    """
    sens, ratio, declared = ratio_squared(step.sensitivity, step.noise_std, Norm.L2)
    return _leaf("gaussian-gdp", step, sens.adjacency, Gdp(ratio), declared)


@rule(
    "gaussian-zcdp",
    source="Bun, Steinke 2016, Lemma 2.5",
    coq=("gaussian_zcdp", "vector_gaussian_zcdp"),
)
def gaussian_zcdp(step: GaussianStep) -> Priv:
    """Normal noise.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ------------------------------------------------------------------------------  gaussian-zcdp
    Priv(f + N(0, σ²), Zcdp(Δ²/(2σ²)))
    """
    sens, ratio, declared = ratio_squared(step.sensitivity, step.noise_std, Norm.L2)
    return _leaf("gaussian-zcdp", step, sens.adjacency, Zcdp(ratio / 2), declared)


@rule(
    "discrete-gaussian-zcdp",
    source="Canonne, Kamath, Steinke 2020, Theorem 14",
    axioms={ANY: "Canonne, Kamath, Steinke 2020, Theorem 14 (discrete Gaussian)"},
)
def discrete_gaussian_zcdp(step: DiscreteGaussianStep) -> Priv:
    """Discrete normal noise on whole numbers.

    Sens(f, Δ²)    l2 norm    σ > 0 fixed before the data are seen    noise fresh
    ----------------------------------------------------------------  discrete-gaussian-zcdp
    Priv(f + N_Z(0, σ²), Zcdp(Δ²/(2σ²)))
    """
    sens, ratio, declared = ratio_squared(step.sensitivity, step.noise_std, Norm.L2)
    return _leaf("discrete-gaussian-zcdp", step, sens.adjacency, Zcdp(ratio / 2), declared)


_PURE = "Bun, Steinke 2016, Proposition 1.4 (pure DP is zCDP)"


@rule("laplace-zcdp", source="Bun, Steinke 2016, Proposition 1.4", axioms={ANY: _PURE})
def laplace_zcdp(step: LaplaceStep) -> Priv:
    """Laplace noise is (Δ/b)-DP, and pure DP is zCDP.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh
    -----------------------------------------------------------------------------  laplace-zcdp
    Priv(f + Lap(b), Zcdp(Δ²/(2b²)))
    """
    sens, ratio, declared = ratio_squared(step.sensitivity, step.scale, Norm.L1)
    return _leaf("laplace-zcdp", step, sens.adjacency, Zcdp(ratio / 2), declared)


@rule("discrete-laplace-zcdp", source="Bun, Steinke 2016, Proposition 1.4", axioms={ANY: _PURE})
def discrete_laplace_zcdp(step: DiscreteLaplaceStep) -> Priv:
    """Discrete Laplace noise on whole numbers is (Δ/b)-DP, and pure DP is zCDP.

    Sens(f, Δ²)    l1 norm    b > 0 fixed before the data are seen    noise fresh
    ----------------------------------------------------------------  discrete-laplace-zcdp
    Priv(f + Lap_Z(b), Zcdp(Δ²/(2b²)))
    """
    sens, ratio, declared = ratio_squared(step.sensitivity, step.scale, Norm.L1)
    return _leaf("discrete-laplace-zcdp", step, sens.adjacency, Zcdp(ratio / 2), declared)


def _agreeing(premises: Sequence[Priv]) -> Priv:
    """Return the first premise, having compared relation, notion and order of all others to it."""
    if not premises:
        raise RuleViolation("Expected at least one premise.")
    first = premises[0]
    for other in premises:
        ours = (first.adjacency, first.group, first.at_cost(Fraction(0)))
        theirs = (other.adjacency, other.group, other.at_cost(Fraction(0)))
        if ours != theirs:
            raise RuleViolation(f"Expected premises that agree instead got {ours} and {theirs}.")
    return first


def _exposure(premise: Priv) -> Exposure:
    if isinstance(premise.subject, str) or isinstance(premise.notion, ApproxDp):
        raise RuleViolation(f"Expected the cost of mechanisms that adds up instead got {premise}.")
    return premise.subject


@rule(
    "composition",
    source="zCDP: Bun, Steinke 2016, Lemma 2.3; RDP: Mironov 2017, Proposition 1; "
    "GDP: Dong, Roth, Su 2022, Corollary 3.3",
    coq=("adaptive_composition", "profile_step", "gaussian_filter"),
    axioms={"gdp": _GDP_COMPOSITION},
)
def composition(premises: Sequence[Priv], times: Sequence[int]) -> Priv:
    """Costs add up, adaptively too; `times` says how often each premise is used.

    Priv(m₁, N(c₁))  ...  Priv(m_k, N(c_k))    N in zCDP, GDP, RDP at one order    noise fresh
    ------------------------------------------------------------------------------  composition
    Priv(n₁·m₁ + ... + n_k·m_k, N(n₁c₁ + ... + n_kc_k))
    """
    first = _agreeing(premises)
    if len(times) != len(premises) or any(n < 1 for n in times):
        raise RuleViolation(f"times={list(times)} must be >= 1 for {len(premises)} premises.")
    counts: Counter[str] = Counter()
    for premise, n in zip(premises, times, strict=True):
        counts.update(_exposure(premise).times(n))
    cost = sum((n * p.cost for p, n in zip(premises, times, strict=True)), Fraction(0))
    return conclude(
        "composition",
        Exposure.of(counts),
        first.adjacency,
        first.at_cost(cost),
        group=first.group,
        premises=tuple(premises),
        parameters={"times": tuple(times)},
    )


@rule(
    "repeated",
    source="composition of a mechanism with itself",
    coq=("adaptive_composition", "profile_step", "gaussian_filter"),
    axioms={"gdp": _GDP_COMPOSITION},
)
def repeated(mechanism: Repeated, premise: Priv) -> Priv:
    """A mechanism run n times.

    Priv(m, N(c))    N as in composition
    -------------------------------------  repeated
    Priv(Repeated(m, n), N(n·c))
    """
    if _exposure(premise) != Exposure.of({written(mechanism.event): 1}):
        raise RuleViolation(f"Expected a premise about {mechanism.event} instead got {premise}.")
    return conclude(
        "repeated",
        Exposure.of({written(mechanism): 1}),
        premise.adjacency,
        premise.at_cost(mechanism.times * premise.cost),
        group=premise.group,
        premises=(premise,),
        parameters={"mechanism": mechanism},
    )


@rule(
    "parties",
    source="a record meets its own party's part",
    coq=("parallel_composition", "events_rdp", "events_zcdp", "events_gdp"),
    axioms={"approx-dp": _PARALLEL},
)
def parties(mechanism: Parties, premises: Sequence[Priv]) -> Priv:
    """Data holders with disjoint records; one premise for each party that releases anything.

    Priv(part of party 1, N(c₁))  ...  Priv(part of party k, N(c_k))    record → party is public
    ---------------------------------------------------------------------------------  parties
    Priv(Parties(...), N(max c_i))
    """
    first = _agreeing(premises)
    parts = [Exposure.of(Counter(map(written, listed))) for _, listed in mechanism.parts if listed]
    if [_exposure(premise) for premise in premises] != parts:
        raise RuleViolation("Expected one premise for each party's part, in order.")
    return conclude(
        "parties",
        Exposure.of({written(mechanism): 1}),
        first.adjacency,
        max(premises, key=lambda premise: premise.cost).notion,
        group=first.group,
        premises=tuple(premises),
        assumptions=frozenset({DISJOINT_RECORDS}),
        parameters={"mechanism": mechanism},
    )


def exposures(listed: Sequence[Event]) -> set[Exposure]:
    """Return what a record can be exposed to by a run, over all parties it could belong to.

    An event names the parties whose records enter it; an event without parties concerns everybody.
    """
    common: Counter[str] = Counter()
    own: dict[str, Counter[str]] = {}
    texts: dict[int, str] = {}
    for event in listed:
        # equal mechanisms are mostly one object, and writing one down is the slow part
        text = texts.setdefault(id(event.mechanism), "") or written(event.mechanism)
        texts[id(event.mechanism)] = text
        if not event.context.parties:
            common[text] += 1
        for party in set(event.context.parties):
            own.setdefault(party, Counter())[text] += 1
    distinct = {Exposure.of(counts) for counts in own.values()} or {Exposure.of({})}
    return {Exposure.of(common + exposure.times(1)) for exposure in distinct}


@rule(
    "events",
    source="a record meets its own party's events",
    coq=("parallel_composition", "events_rdp", "events_zcdp", "events_gdp"),
    axioms={"approx-dp": _PARALLEL},
)
def events(listed: Sequence[Event], premises: Sequence[Priv]) -> Priv:
    """From the mechanisms that a record can meet to the run as a whole.

    for each party, Priv(events that name it or nobody, N(c_i))    record → party is public
    ----------------------------------------------------------------------------------------  events
    Priv(event list, N(max c_i))
    """
    first = _agreeing(premises)
    views = exposures(listed)
    if {premise.subject for premise in premises} != views:
        raise RuleViolation(f"Expected premises for the {len(views)} exposures of the events.")
    named = any(event.context.parties for event in listed)
    return conclude(
        "events",
        subject_hash(listed),
        first.adjacency,
        max(premises, key=lambda premise: premise.cost).notion,
        group=first.group,
        premises=tuple(premises),
        assumptions=frozenset({DISJOINT_RECORDS} if named else ()),
    )


@rule("weaken", source="every notion is closed upwards")
def weaken(premise: Priv, value: Fraction) -> Priv:
    """A larger number says less; used to keep fractions short.

    Priv(m, N(c))    c' ≥ c
    -------------------------  weaken
    Priv(m, N(c'))
    """
    if value < premise.cost:
        raise RuleViolation(f"value={value} must be in [{premise.cost}, inf).")
    return conclude(
        "weaken",
        premise.subject,
        premise.adjacency,
        premise.at_cost(value),
        group=premise.group,
        premises=(premise,),
        parameters={"value": value},
    )


@rule(
    "post-processing",
    source="Dwork, Roth 2014, Proposition 2.1",
    coq=("post_processing", "excess_post_processing"),
)
def post_processing(premise: Priv, function: str) -> Priv:
    """What is computed from released messages alone; `function` says what, and is an assumption.

    Priv(m, N)    g reads the output of m and no data
    ---------------------------------------------------  post-processing
    Priv(m followed by g, N)
    """
    return conclude(
        "post-processing",
        premise.subject,
        premise.adjacency,
        premise.notion,
        group=premise.group,
        premises=(premise,),
        assumptions=frozenset({f"reads released messages only: {function}"}),
        parameters={"function": function},
    )


@rule("given", source="weakening: an assumption more proves no more")
def given(premise: Priv, statement: str) -> Priv:
    """What else the conclusion takes on trust, in the words of whoever states it.

    Priv(m, N)
    ------------------------  given
    Priv(m, N), if statement
    """
    return conclude(
        "given",
        premise.subject,
        premise.adjacency,
        premise.notion,
        group=premise.group,
        premises=(premise,),
        assumptions=frozenset({f"taken for granted: {statement}"}),
        parameters={"statement": statement},
    )


def _enlarged(premise: Priv, size: int) -> PrivacyNotion:
    if premise.group != 1 or not isinstance(premise.notion, Gdp | Zcdp):
        raise RuleViolation(f"Expected GDP or zCDP of one record instead got {premise}.")
    return premise.at_cost(size**2 * premise.cost)


@rule(
    "group",
    source="zCDP: Bun, Steinke 2016, Proposition 1.9; GDP: Dong, Roth, Su 2022, Theorem 2.14",
    coq=("group_privacy", "gdp_group"),
    axioms={"gdp": _GDP_GROUP},
)
def group(premise: Priv, size: int) -> Priv:
    """Data sets that differ in k records.

    Priv(m, N(c)) for one record    N in zCDP, GDP
    -------------------------------------------------  group
    Priv(m, N(k²c)) for groups of k
    """
    if size < 1:
        raise RuleViolation(f"size={size} must be in 1, 2, ...")
    return conclude(
        "group",
        premise.subject,
        premise.adjacency,
        _enlarged(premise, size),
        group=size,
        premises=(premise,),
        parameters={"size": size},
    )


@rule(
    "replace-one",
    source="a group of two: remove one record, add another",
    coq=("group_privacy", "gdp_group"),
    axioms={"gdp": _GDP_GROUP},
)
def replace_one(premise: Priv) -> Priv:
    """Replacing a record is removing (or zeroing) one and adding another.

    Priv(m, N(c)) under add/remove or zero-out    N in zCDP, GDP
    ---------------------------------------------------------------  replace-one
    Priv(m, N(4c)) under replace-one
    """
    if premise.adjacency not in (Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE):
        raise RuleViolation(f"Expected {premise.adjacency} to be add/remove or zero-out.")
    notion = _enlarged(premise, 2)
    return conclude(
        "replace-one", premise.subject, Adjacency.REPLACE_ONE, notion, premises=(premise,)
    )
