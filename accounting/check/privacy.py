"""What follows from what was proved: composition, groups, and from one notion to another.

Every rule takes the run, its parameters (in the order of `RULES`) and its premises, and returns
what follows from them.
"""

from collections import Counter
from fractions import Fraction
from functools import partial
from math import ceil, floor
from typing import Any

from .intervals import Interval, delta_bounds, log_bounds, require_at_most
from .leaves import LEAVES
from .reading import (
    CertificateWrong,
    read_above,
    read_count,
    read_delta,
    read_kind,
    read_list,
    read_rational,
    read_text,
    require_equal,
    require_least,
)
from .statements import FILTERED, ONE_PARTY, PARTIES, Budget, Priv, Rules, Run, parts_by_party


def _composition(run: Run, times: Any, *premises: Priv) -> Priv:
    """Costs add up, adaptively too; `times` says how often each premise is used.

    Priv(m₁, N(c₁))  ...  Priv(m_k, N(c_k))    noise fresh
    N in zCDP, GDP, pure DP, RDP at one order
    ------------------------------------------------------------------------------  composition
    Priv(n₁·m₁ + ... + n_k·m_k, N(n₁c₁ + ... + n_kc_k))

    Source: zCDP: Bun, Steinke 2016, Lemma 2.3; RDP: Mironov 2017, Proposition 1; GDP: Dong,
    Roth, Su 2022, Corollary 3.3; pure DP: Dwork, Roth 2014, Theorem 3.14.
    Check: gaussian_filter, events_zcdp, pure_filter.
    Coq: adaptive_composition, pure_composition.
    """
    counts = [read_count(n) for n in read_list(times)]
    if not premises or len(counts) != len(premises):
        raise CertificateWrong(f"expected times for {len(premises)} >= 1 premises, got {counts}")
    first = premises[0]
    exposure: Counter[int] = Counter()
    total = Fraction(0)
    for premise, n in zip(premises, counts, strict=True):
        first.agrees(premise)
        if premise.exposure is None or premise.notion == "approx-dp":
            raise CertificateWrong(f"expected costs of mechanisms that add up, got {premise[1:]}")
        run.spend(len(premise.exposure) + total.denominator.bit_length() // 8)
        for place, often in premise.exposure.items():
            exposure[place] += n * often
        total += n * premise.values[-1]
        if total.denominator.bit_length() > 5000:
            raise CertificateWrong("expected a sum of up to 1500 digits; weaken its terms first")
    return first._replace(exposure=dict(exposure), values=(*first.values[:-1], total))


def _repeated(run: Run, place: Any, *premises: Priv) -> Priv:
    """A mechanism run n times.

    Priv(m, N(c))    N as in composition
    -------------------------------------  repeated
    Priv(Repeated(m, n), N(n·c))

    Source: composition of a mechanism with itself.
    Check: gaussian_filter, events_zcdp, pure_filter.
    Coq: adaptive_composition.
    """
    event, times = read_kind(run.at(place), "repeated", "event", "times")
    require_equal("number of premises", len(premises), 1)
    require_equal("exposure", premises[0].exposure, {run.place(event): 1})
    return _composition(run, [times], *premises)._replace(exposure={place: 1})


def _largest(premises: tuple[Priv, ...]) -> tuple[Fraction, ...]:
    """Return the largest of several costs, which must speak of one relation, notion and order."""
    for premise in premises:
        premises[0].agrees(premise)
    return max(premise.values for premise in premises)


def _note_one_party(run: Run, premises: tuple[Priv, ...]) -> None:
    """Note what groups over several parties rest on, whose records pay different parties' costs.

    In pure DP, zCDP and GDP k records that are spread pay no more than k of the dearest party's:
    k₁a + k₂b ≤ (k₁ + k₂)·max(a, b), and likewise for roots of ρ and for μ. Of curves none need be
    the largest.
    """
    one = premises[0]
    if len(premises) > 1 and one.group > 1 and one.notion in ("approx-dp", "rdp"):
        run.assumptions.add(ONE_PARTY)


def _parties(run: Run, place: Any, *premises: Priv) -> Priv:
    """Data holders with disjoint records; one premise for each party that releases anything.

    Priv(part of party 1, N(c₁))  ...  Priv(part of party k, N(c_k))    record → party is public
    ---------------------------------------------------------------------------------  parties
    Priv(Parties(...), N(max c_i))

    Source: a record meets its own party's part.
    Check: follows_valid, events_gdp, events_zcdp, events_pure.
    Coq: parallel_composition, gaussian_parties_dp.
    """
    parts = parts_by_party(run.at(place))
    if not premises:
        raise CertificateWrong("expected premises, one a party")
    exposures = [dict(Counter(map(run.place, held))) for _, held in parts if held]
    require_equal("exposures", [premise.exposure for premise in premises], exposures)
    run.assumptions.add(PARTIES)
    _note_one_party(run, premises)
    return premises[0]._replace(exposure={place: 1}, values=_largest(premises))


def _events(run: Run, *premises: Priv) -> Priv:
    """From the mechanisms that a record can meet to the run as a whole.

    for each party, Priv(events that name it or nobody, N(c_i))    record → party is public
    ----------------------------------------------------------------------------------------  events
    Priv(event list, N(max c_i))

    Mechanisms made of parts by party may count as one, or as the parts of the record's own party.

    Source: a record meets its own party's events.
    Check: events_gdp, events_zcdp, events_pure.
    """
    run.spend(sum(len(premise.exposure or ()) for premise in premises))
    covered = {frozenset((premise.exposure or {}).items()) for premise in premises}
    views = {frozenset(view.items()) for view in run.views()}
    if views != covered:
        views = {frozenset(view.items()) for view in run.views(split=True)}
    if not premises or views != covered:
        raise CertificateWrong(
            f"expected premises for the {len(views)} things a record can be exposed to, "
            f"instead got {len(views & covered)} of them and {len(covered - views)} others"
        )
    _note_one_party(run, premises)
    return premises[0]._replace(exposure=None, values=_largest(premises))


def _filter(run: Run, budget: Any, premise: Priv) -> Priv:
    """What a filter lets happen: its budget, however the run was chosen and whenever it ended.

    Priv(event list, N(c)) for one record    c ≤ B    N in GDP, zCDP, RDP at one order
    B, N and the order fixed beforehand    what would have crossed B was refused
    ----------------------------------------------------------------------------------  filter
    Priv(whatever list of events the filter lets happen, N(B))

    The list at hand is one that could happen. Every mechanism on it, how many there are and when
    the run stops may depend on all earlier messages, so c itself is no guarantee: a run that goes
    on until it is lucky has its cost at a random time. B is one, as on every path no record pays
    more. That takes a notion in which the costs of each record's own events add up along every
    path: loss distributions, as approximate DP, have no such sum. Groups and conversions follow
    from N(B), not the other way.

    Source: GDP: Smith, Thakurta 2022, and Koskela, Tobaben, Honkela 2023; zCDP: Whitehouse, Ramdas,
    Rogers, Wu 2023; RDP: Feldman, Zrnic 2021, Theorem 3.1.
    Check: filtered_said, gaussian_filter, adaptive_filter.
    Coq: zcdp_filter.
    """
    if premise.exposure is not None or premise.budget is not None or premise.group != 1:
        raise CertificateWrong("expected the events of a whole run, and what one record pays")
    if premise.notion not in ("gdp", "zcdp", "rdp"):
        raise CertificateWrong(f"expected GDP, zCDP or RDP instead got {premise.notion}")
    number = read_rational(budget)
    require_least("the budget", number, premise.values[-1])
    run.assumptions |= FILTERED
    kept = premise.costing(*premise.values[:-1], number)
    return kept._replace(budget=Budget(kept.adjacency, kept.notion, kept.values))


def _weaken(run: Run, value: Any, premise: Priv) -> Priv:
    """A larger number says less; used to keep fractions short.

    Priv(m, N(c))    c' ≥ c
    -------------------------  weaken
    Priv(m, N(c'))

    Source: every notion is closed upwards.
    Check: follows_valid.
    """
    number = read_rational(value)
    require_least("the weaker value", number, premise.values[-1])
    return premise.costing(*premise.values[:-1], number)


def _post_processing(run: Run, function: Any, premise: Priv) -> Priv:
    """What is computed from released messages alone; `function` says what, and is an assumption.

    Priv(m, N)    g reads the output of m and no data
    ---------------------------------------------------  post-processing
    Priv(m followed by g, N)

    Source: Dwork, Roth 2014, Proposition 2.1.
    Check: follows_valid.
    Coq: post_processing, excess_post_processing.
    """
    run.assumptions.add(f"reads released messages only: {read_text(function)}")
    return premise


def _given(run: Run, statement: Any, premise: Priv) -> Priv:
    """What else the conclusion takes on trust, in the words of whoever states it.

    Priv(m, N)
    ------------------------  given
    Priv(m, N), if statement

    Source: weakening: an assumption more proves no more.
    Check: follows_valid.
    """
    run.assumptions.add(f"taken for granted: {read_text(statement)}")
    return premise


def _enlarged(premise: Priv, size: int) -> Priv:
    """Return the same for groups of `size` records: k² times in GDP (μ²) and zCDP, k times in pure
    DP.

    Refuses Rényi and approximate DP, for which no such factor holds.
    """
    factors = {"gdp": size**2, "zcdp": size**2, "pure-dp": size}
    if premise.notion not in factors or premise.group != 1:
        raise CertificateWrong(f"expected GDP, zCDP or pure DP of one record, got {premise.notion}")
    return premise._replace(group=size, values=(premise.values[0] * factors[premise.notion],))


def _group(run: Run, size: Any, premise: Priv) -> Priv:
    """Data sets that differ in k records.

    Priv(m, N(c)) for one record    N in zCDP, GDP, pure DP
    -------------------------------------------------  group
    Priv(m, N(k²c)) for groups of k    pure DP: N(kc)

    Source: zCDP: Bun, Steinke 2016, Proposition 1.9; GDP: Dong, Roth, Su 2022, Theorem 2.14;
    pure DP: Dwork, Roth 2014, Theorem 2.2.
    Check: group_privacy, gdp_group, pure_group.
    """
    return _enlarged(premise, read_count(size))


def _replace_one(run: Run, premise: Priv) -> Priv:
    """Replacing a record is removing (or zeroing) one and adding another.

    Priv(m, N(c)) under add/remove or zero-out    N in zCDP, GDP, pure DP
    ------------------------------------------------------------------------  replace-one
    Priv(m, N(4c)) under replace-one    pure DP: N(2c)

    Source: a group of two: remove one record, add another.
    Check: group_privacy, gdp_group, pure_group.
    """
    if premise.adjacency not in ("add-remove-one", "zero-out-one"):
        raise CertificateWrong(f"expected add/remove or zero-out instead got {premise.adjacency}")
    return _enlarged(premise, 2)._replace(adjacency="replace-one", group=1)


def _zcdp_rdp(run: Run, order: Any, premise: Priv) -> Priv:
    """zCDP read at one order.

    Priv(m, Zcdp(ρ))    α > 1
    ---------------------------  zcdp-rdp
    Priv(m, Rdp(α, αρ))

    Source: Bun, Steinke 2016, Definition 1.1.
    Check: follows_valid.
    """
    require_equal("notion", premise.notion, "zcdp")
    alpha = read_above(order, 1)
    return premise._replace(notion="rdp", values=(alpha, alpha * premise.values[0]))


def _pure_approx(run: Run, delta: Any, premise: Priv) -> Priv:
    """Pure DP at any δ.

    Priv(m, PureDp(ε))    0 < δ < 1
    ---------------------------------  pure-approx-dp
    Priv(m, ApproxDp(ε, δ))

    Source: the definition; a larger δ says less.
    Check: pure_dp.
    """
    require_equal("notion", premise.notion, "pure-dp")
    return premise._replace(notion="approx-dp", values=(read_delta(delta), *premise.values))


def _rdp_approx(run: Run, delta: Any, epsilon: Any, premise: Priv) -> Priv:
    """Rényi DP at one order to (ε, δ); ε is a witness.

    Priv(m, Rdp(α, τ))    (α-1)(ε-τ) ≥ ln(1/δ) + (α-1) ln(1-1/α) - ln α, or τ = 0    ε ≥ 0
    ---------------------------------------------------------------------------------  rdp-approx-dp
    Priv(m, ApproxDp(ε, δ))

    Source: Canonne, Kamath, Steinke 2020, Proposition 12; laws at divergence 0 are the same.
    Check: rdp_to_dp_at_delta, order_suffices_sound, renyi_nothing.
    """
    require_equal("notion", premise.notion, "rdp")
    (alpha, rdp), d, e = premise.values, read_delta(delta), read_above(epsilon, 0, False)

    def enclose(p: int) -> Interval:
        first, last = log_bounds(1 / d, p), log_bounds(alpha, p)
        middle = [n * (alpha - 1) for n in log_bounds(1 - 1 / alpha, p)]
        return first[0] + floor(middle[0]) - last[1], first[1] + ceil(middle[1]) - last[0]

    if rdp > 0:
        gap = (alpha - 1) * (e - rdp)
        require_at_most("ln(1/δ) + (α-1) ln(1-1/α) - ln α", enclose, gap, run.spend)
    return premise._replace(notion="approx-dp", values=(d, e))


def _gdp_approx(run: Run, delta: Any, epsilon: Any, premise: Priv) -> Priv:
    """GDP to (ε, δ) without loss; ε is a witness.

    Priv(m, Gdp(μ²))    Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) ≤ δ    ε ≥ 0
    --------------------------------------------------------------------  gdp-approx-dp
    Priv(m, ApproxDp(ε, δ))

    Source: Balle, Wang 2018, Theorem 8.
    Check: profile_dp, gaussian_delta_at_most_sound.
    """
    require_equal("notion", premise.notion, "gdp")
    d, e, (mu_squared,) = read_delta(delta), read_above(epsilon, 0, False), premise.values
    if mu_squared > 0:
        bits = 64 + d.denominator.bit_length() - d.numerator.bit_length()
        enclose = partial(delta_bounds, mu_squared, e)
        require_at_most("delta at epsilon", enclose, d, run.spend, max(bits, 128))
    return premise._replace(notion="approx-dp", values=(d, e))


RULES: Rules = LEAVES | {
    # name: (function, names of its parameters, number of premises or -1 for any)
    "composition": (_composition, ("times",), -1),
    "repeated": (_repeated, ("mechanism",), 1),
    "parties": (_parties, ("mechanism",), -1),
    "events": (_events, (), -1),
    "filter": (_filter, ("budget",), 1),
    "weaken": (_weaken, ("value",), 1),
    "post-processing": (_post_processing, ("function",), 1),
    "given": (_given, ("statement",), 1),
    "group": (_group, ("size",), 1),
    "replace-one": (_replace_one, (), 1),
    "zcdp-rdp": (_zcdp_rdp, ("order",), 1),
    "pure-approx-dp": (_pure_approx, ("delta",), 1),
    "rdp-approx-dp": (_rdp_approx, ("delta", "epsilon"), 1),
    "gdp-approx-dp": (_gdp_approx, ("delta", "epsilon"), 1),
}
