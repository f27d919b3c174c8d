"""A certificate as a term of Coq, and the theorem about its run that Coq's kernel checks.

`proofs/Checker.v` checks certificates of Gaussian and of Laplace noise, discrete or not, of
mixtures, of accumulated samples, of randomised response and of pure steps, inside Coq;
`check_sound` (Soundness.v) proves that what it accepts holds of every run that satisfies the event
list. The file written here states the certificate, has the kernel evaluate the checker on it, and
ends in the theorem. It needs the compiled proofs: `make -C proofs`, then `coqc -R proofs Dpledger
FILE`.
Losses are evaluated with the kernel's primitive integers (FastChecker.v), which `Print Assumptions`
then names beside the axioms of the reals.

Terms are written as text, with every number an exact quotient of whole ones; the kernel parses them
and computes with them alone, so that a mistake here gives a file that does not compile, or a
theorem about another certificate than the one that was asked for: its subject stands at the top.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ...mechanisms.errors import DpledgerError
from ..check.pld_checker import check, first_grid
from ..check.roundings import read_rounding


class BeyondTheorem(DpledgerError, ValueError):
    """The checker in Coq does not cover this certificate. It may be right all the same."""


_RELATIONS = {
    "replace-one": ("ReplaceOne", "replace_one"),
    "zero-out-one": ("ZeroOutOne", "(zero_out_one null)"),
    "add-remove-one": ("AddRemoveOne", "add_remove_one"),
}
"""A relation's constructor in `Certificate.v`, and the predicate of neighbours in `Finite.v`."""
_NOISY = {
    "gaussian": ("GaussianStep", "noise_std"),
    "laplace": ("LaplaceStep", "scale"),
    "discrete-laplace": ("DiscreteLaplaceStep", "scale"),
    "discrete-gaussian": ("DiscreteGaussianStep", "noise_std"),
    "pure": ("PureStep", "scale"),
}
_SAMPLED = {"gaussian": ("SampledStep", "noise_std"), "laplace": ("SampledLaplaceStep", "scale")}
_SCHEMES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "poisson-sampled": lambda m: f"(Poisson {_rational(_dyadic(m['rate']))})",
    "sampled-without-replacement": lambda m: f"(FixedBatch {m['batch']} {m['records']})",
    "sampled-with-replacement": lambda m: f"(WithReplacement {m['batch']} {m['records']})",
}
"""How a step draws its records, as a scheme of `Certificate.v`."""
_LEAVES = {
    "declared": "Declared",
    "mean-of-bounded": "MeanOfBounded",
    "mean-of-nonnegative": "MeanOfNonnegative",
    "sum-of-bounded": "SumOfBounded",
    "histogram": "Histogram",
    "histogram-l1": "HistogramL1",
    "strongly-convex-argmin": "StronglyConvexArgmin",
    "vertical-predictions": "VerticalPredictions",
    "label-dual": "LabelDual",
}
"""Rules of sensitivities without premises, and their constructors in `Sensitivity.v`."""
_INNER = {
    "scaled": "Unary (Scaled {})",
    "linear-map": "Unary (LinearMap {})",
    "clip": "Unary (Clip {})",
    "lattice": "Unary (Lattice {} {} {} {})",
    "lattice-l1": "Unary (LatticeL1 {} {} {})",
    "computed-l1": "Unary (ComputedL1 {} {} {})",
    "computed": "Unary (Computed {} {} {} {})",
    "sum": "Binary (Sum {} {})",
    "concatenation": "Binary Concatenation",
    "disjoint": "Binary Disjoint",
}
"""Rules of sensitivities with premises: the constructor, with a place for each of its numbers."""
_FLOATS = {
    "float-exact": "RoundLeaf (FloatExact {})",
    "float-count": "RoundLeaf (FloatCount {} {})",
    "float-grid": "RoundLeaf (FloatGrid {} {} {})",
    "float-mean": "RoundLeaf (FloatMean {} {} {})",
    "float-total": "RoundLeaf (FloatTotal {} {} {})",
    "float-scores": "RoundLeaf (FloatScores {} {} {})",
    "float-shift": "RoundUnary (FloatShift {})",
    "float-scale": "RoundUnary (FloatScale {})",
    "float-product": "RoundUnary (FloatProduct {} {})",
    "float-map": "RoundUnary (FloatMap {} {})",
    "float-clip": "RoundUnary (FloatClip {})",
    "float-add": "RoundBinary FloatAdd",
    "float-pair": "RoundBinary FloatPair",
    "float-rows": "RoundBinary FloatRows",
}
_IN_L1 = frozenset(
    {
        *("declared", "histogram-l1", "scaled", "linear-map", "sum", "disjoint"),
        *("lattice-l1", "computed-l1"),
    }
)
"""Rules of sensitivities that the checker in Coq follows in l1."""
_COMPOSED = ("privacy-loss", "loss-distribution", "laplace-losses")
"""Rules that compose losses, which the kernel computes with its primitive integers."""
_EXACT = frozenset({"float-exact", "float-count", "float-grid", "float-pair", "float-rows"})
"""Operations that hold a row of any width as it is."""
_COUNTS = ("rows", "dimension", "width", "height", "most", "count", "terms")
"""Parameters that are whole numbers."""
_CLAIMED = {
    "approx-dp": ("ApproxDp", "dp", "check_dp"),
    "pure-dp": ("PureDp", "pure", "check_pure"),
}
"""For each notion that a run may end in: constructor, predicate, the corollary of one record."""


def coq_theorem(document: bytes) -> str:
    """Return a Coq file that ends in (epsilon, delta)-DP, or pure DP, of the run of a certificate,
    or of whatever a filter lets happen.

    Raises what `checker.check` raises, and `BeyondTheorem` for mechanisms, relations or rules that
    the checker in Coq does not know.
    """
    verdict = check(document)
    if verdict.notion not in _CLAIMED:
        raise BeyondTheorem(f"notion={verdict.notion} must be in {sorted(_CLAIMED)}; convert it.")
    if verdict.adjacency not in _RELATIONS:
        raise BeyondTheorem(f"adjacency={verdict.adjacency} must be in {sorted(_RELATIONS)}.")
    notion, predicate, alone = _CLAIMED[verdict.notion]
    numbers = [_rational(value) for value in verdict.values]
    parsed: dict[str, Any] = json.loads(document)
    relation, neighbours = _RELATIONS[verdict.adjacency]
    claim = f"Claim {relation} {verdict.group} ({notion} {' '.join(numbers)})"
    if verdict.group == 1:
        adjacency, by = f"one_part {neighbours}", alone
        stated = f"{relation} {' '.join(numbers)}"
    else:
        together = "unit" if verdict.notion == "approx-dp" else "group"
        adjacency = f"{together}_neighbours null {relation} {verdict.group}"
        by, stated = "check_sound", f"({claim})"
    budget, theorem = "", _RUN
    if verdict.budget is not None:
        kept, _ = _RELATIONS[verdict.budget.adjacency]
        spent = " ".join(map(_rational, verdict.budget.values))
        budget = f"Claim {kept} 1 {_NOTIONS[verdict.budget.notion].split()[0]} {spent})"
        by, theorem = by.replace("check_", "check_filter_"), _FILTERED
    numbers_of = _party_numbers(parsed)
    names = _party_lists(parsed["events"], numbers_of)
    losses = any(node["rule"] in _COMPOSED for node in parsed["nodes"])
    return (_FILE + theorem).format(
        fast=" FastChecker" if losses else "",
        evaluated="rewrite <- fast_check_exact; " if losses else "",
        subject=verdict.subject,
        mechanisms=_rows(_mechanisms(parsed["mechanisms"], numbers_of)),
        parties="".join(
            f"Definition {name} : list positive := [{'; '.join(map(str, members))}]%positive.\n"
            for members, name in names.items()
        ),
        events=_rows(_events(parsed["events"], names, numbers_of)),
        nodes=_rows([_node(node) for node in parsed["nodes"]]),
        claim=claim,
        budget=budget,
        predicate=predicate,
        adjacency=adjacency,
        numbers=" ".join(f"(Q2R {number})" for number in reversed(numbers)),
        by=by,
        stated=stated,
    )


_FILE = """(** The run whose events hash to
    {subject}.
    To check: make -C proofs, then coqc -R proofs Dpledger on this file. *)

From Coq Require Import Reals List QArith Qreals.
From Dpledger Require Import Finite Pure Sensitivity Certificate Checker Claims Soundness{fast}.
Import ListNotations.
Open Scope Q_scope.

(** Mechanisms, numbered from 1: the sensitivity as it is derived, then the noise. *)
Definition listed_mechanisms : list mechanism := [
  {mechanisms}].

(** Parties, numbered from 1, in the order in which they appear. *)
{parties}
(** Events: which mechanism, whose records enter it, how often. *)
Definition listed_events : list event := [
  {events}].

(** Steps from the mechanisms to the claim, numbered from 1. *)
Definition listed_nodes : list node := [
  {nodes}].

Definition this_certificate : certificate :=
  Certificate listed_mechanisms listed_events listed_nodes.
"""
_RUN = """
Lemma the_kernel_checks_it :
  check this_certificate = Some ({claim}).
Proof. {evaluated}vm_cast_no_check (eq_refl (Some ({claim}))). Qed.

(** Every run that satisfies the event list ([satisfies], Certificate.v): all that is ever seen of
    it, on neighbouring data, for every event. *)
Theorem this_run_is_private :
  forall (X : Type) (null : X) (r : execution X), satisfies null this_certificate r ->
  {predicate} ({adjacency}) (all_transcripts r) (run_law r)
    {numbers}.
Proof. exact ({by} this_certificate {stated} the_kernel_checks_it). Qed.

Print Assumptions this_run_is_private.
"""
_FILTERED = """
(** Kept by a filter, of which these events were one run. *)
Definition the_budget : claim := {budget}.

Lemma the_kernel_checks_it :
  check_filter this_certificate = Some (the_budget, {claim}).
Proof. vm_compute; reflexivity. Qed.

(** Whatever the filter lets happen ([filtered], Certificate.v), chosen in view of all messages and
    over whenever it ends: all that is ever seen of it, on neighbouring data, for every event. *)
Theorem this_run_is_private :
  forall (X A : Type) (null : X) outcomes (law : (nat -> list X) -> list A -> A -> R) reads cost
    most, filtered null the_budget outcomes law reads cost most ->
  {predicate} ({adjacency}) (transcripts outcomes most) (fun data => run (law data))
    {numbers}.
Proof. exact ({by} this_certificate the_budget {stated} the_kernel_checks_it). Qed.

Print Assumptions this_run_is_private.
"""


def _rows(terms: Sequence[str]) -> str:
    """Return terms one a line, as Coq separates the items of a list."""
    return ";\n  ".join(terms)


def _rational(value: Fraction) -> str:
    """Return a fraction as a term of type Q."""
    return f"({value.numerator} # {value.denominator})"


def _dyadic(text: str) -> Fraction:
    """Return the number that a certificate writes as "mantissa p exponent", an exact binary64."""
    mantissa, exponent = text.split("p")
    return int(mantissa) * Fraction(2) ** int(exponent)


def _written(value: object) -> str:
    """Return a mechanism's text, by which repeated ones are found among those that are listed."""
    return json.dumps(value, sort_keys=True)


def _mechanisms(listed: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]) -> list[str]:
    """Return the certificate's mechanisms as terms.

    Args:
        listed: as the certificate has them.
        numbers: of parties.

    Raises:
        BeyondTheorem: for a kind that `Checker.v` does not know, and for several relations.
    """
    places = {_written(mechanism): i for i, mechanism in enumerate(listed, start=1)}
    terms: list[str] = []
    relations: set[str] = set()
    for mechanism in listed:
        match mechanism:
            case {"kind": kind, "sensitivity": sensitivity} if kind in _NOISY:
                relations.add(sensitivity["adjacency"])
                step, scale = _NOISY[kind]
                width = _rational(_dyadic(mechanism[scale]))
                terms.append(f"{step} {_sensitivity(sensitivity)} {width}")
            case {"kind": kind, "event": {"kind": ("gaussian" | "laplace") as noise} as event} if (
                kind in _SCHEMES
            ):
                relations.add(event["sensitivity"]["adjacency"])
                step, scale = _SAMPLED[noise]
                width = _rational(_dyadic(event[scale]))
                scheme = _SCHEMES[kind](mechanism)
                terms.append(f"{step} {scheme} {_sensitivity(event['sensitivity'])} {width}")
            case {"kind": "gaussian-mixture", "constant": constant, "sampled": sampled}:
                relations.add(sampled["adjacency"])
                always = _sensitivity(constant).split(" ", 1)[1]
                relation, drawn = _sensitivity(sampled).split(" ", 1)
                widths = (_rational(_dyadic(mechanism[name])) for name in ("rate", "noise_std"))
                terms.append(f"MixtureStep {relation} {always} {drawn} {' '.join(widths)}")
            case {"kind": "poisson-accumulated", "event": event, "batches": samples}:
                relations.add(event["sensitivity"]["adjacency"])
                stated, noise = _sensitivity(event["sensitivity"]), event["noise_std"]
                rate, width = (_rational(_dyadic(each)) for each in (mechanism["rate"], noise))
                terms.append(f"AccumulatedStep {stated} {rate} {samples} {width}")
            case {"kind": "randomised-response", "truth": truth, "categories": answers}:
                relations.add("replace-one")
                terms.append(f"ResponseStep {_rational(_dyadic(truth))} {answers}")
            case {"kind": "repeated", "event": inner, "times": times} if _written(inner) in places:
                terms.append(f"Repeated {places[_written(inner)]} {times}")
            case {"kind": "parties", "parts": parts}:
                held = (
                    f"({numbers[name]}, [{'; '.join(str(places[_written(m)]) for m in part)}])"
                    for name, part in parts
                )
                terms.append(f"Parties [{'; '.join(held)}]%positive")
            case {"kind": kind}:
                raise BeyondTheorem(
                    f"kind={kind} must be in {sorted(_NOISY)}, gaussian or laplace sampled, "
                    "gaussian-mixture, poisson-accumulated, randomised-response, or one of them "
                    "repeated and listed, or parties."
                )
            case _:
                raise AssertionError("the checker has accepted this document")
    if len(relations) != 1:
        raise BeyondTheorem("adjacency must be the same for all mechanisms, at least one of them.")
    return terms


def _sensitivity(stated: Mapping[str, Any]) -> str:
    """Return a stated sensitivity as three arguments: relation, square, derivation."""
    relation, _ = _RELATIONS.get(stated["adjacency"], ("", ""))
    if not relation:
        raise BeyondTheorem(f"adjacency={stated['adjacency']} must be in {sorted(_RELATIONS)}.")
    if stated["norm"] == "l1":
        _require_in_l1(stated["derivation"])
    squared = _rational(Fraction(stated["squared"]))
    return f"{relation} {squared} {_derivation(stated['derivation'])}"


def _require_in_l1(tree: Mapping[str, Any]) -> None:
    """Raise `BeyondTheorem` for a derivation in l1 that the checker in Coq does not follow."""
    rule, premises = tree["rule"], tree["premises"]
    if rule not in _IN_L1:
        raise BeyondTheorem(f"rule={rule} must be in {sorted(_IN_L1)} in l1.")
    if rule == "computed-l1":
        *premises, row = premises
        if not _rules_of(row) <= _EXACT and (width := read_rounding(row, "l1", 2).width) != 1:
            raise BeyondTheorem(f"width={width} of rows that are rounded must be 1 in l1.")
    for premise in premises:
        _require_in_l1(premise)


def _rules_of(tree: Mapping[str, Any]) -> set[str]:
    """Return the names of the rules of a derivation."""
    return {tree["rule"]}.union(*map(_rules_of, tree["premises"]))


def _derivation(tree: Mapping[str, Any]) -> str:
    """Return a derivation of a sensitivity as a term, premises inside."""
    rule, squared = tree["rule"], _rational(Fraction(tree["squared"]))
    terms, premises = _terms(tree), tree["premises"]
    if rule in _LEAVES:
        return f"(Leaf ({_LEAVES[rule]} {' '.join(terms)}) {squared})"
    if rule in ("computed", "computed-l1"):
        terms.append(_operations(premises[1]))
        premises = premises[:1]
    head = _INNER[rule].format(*terms)
    below = " ".join(_derivation(premise) for premise in premises)
    return f"({head} {squared} {below})"


def _terms(node: Mapping[str, Any]) -> list[str]:
    """The parameters of a step, but for reasons: whole numbers as such, others as fractions."""
    pairs = [
        (name, Fraction(value)) for name, value in node["parameters"] if isinstance(value, str)
    ]
    counts = _COUNTS if node["rule"] != "float-grid" else ("width",)
    return [str(value) if name in counts else _rational(value) for name, value in pairs]


def _operations(tree: Mapping[str, Any]) -> str:
    """How a row is computed, and the bounds that each operation states."""
    if tree["rule"] not in _FLOATS:
        raise BeyondTheorem(f"rule={tree['rule']} must be in {sorted(_FLOATS)}.")
    *given, magnitude, error = _terms(tree)
    head = _FLOATS[tree["rule"]].format(*given)
    below = "".join(f" {_operations(premise)}" for premise in tree["premises"])
    return f"({head} {magnitude} {error}{below})"


def _party_numbers(parsed: Mapping[str, Any]) -> dict[str, int]:
    """Return each party's number, from 1, as events name them, then mechanisms of their parts."""
    numbers: dict[str, int] = {}
    for event in parsed["events"]:
        for party in event["parties"]:
            numbers.setdefault(party, len(numbers) + 1)
    for mechanism in parsed["mechanisms"]:
        for party, _ in mechanism.get("parts", ()):
            numbers.setdefault(party, len(numbers) + 1)
    return numbers


def _party_lists(
    events: Sequence[Mapping[str, Any]], numbers: Mapping[str, int]
) -> dict[tuple[int, ...], str]:
    """Return a name for each list of parties that an event names.

    Named once: a run of a thousand agents would else repeat the list in every event.
    """
    names: dict[tuple[int, ...], str] = {}
    for event in events:
        listed = tuple(numbers[party] for party in event["parties"])
        if listed:
            names.setdefault(listed, f"parties_{len(names) + 1}")
    return names


def _events(
    events: Sequence[Mapping[str, Any]],
    names: Mapping[tuple[int, ...], str],
    numbers: Mapping[str, int],
) -> list[str]:
    """Return the events as terms: the number of the mechanism, the parties' name, how often."""
    terms: list[str] = []
    for event in events:
        listed = tuple(numbers[party] for party in event["parties"])
        terms.append(f"Event {event['mechanism'] + 1} {names.get(listed, '[]')} {event['times']}")
    return terms


def _number(parameters: Mapping[str, Any], name: str) -> str:
    """Return a rule's parameter as a term of type Q."""
    return _rational(Fraction(parameters[name]))


def _place(parameters: Mapping[str, Any]) -> str:
    """Return the number of a rule's mechanism; Coq counts from 1."""
    return str(parameters["mechanism"] + 1)


def _privacy_loss(parameters: Mapping[str, Any]) -> str:
    """Return the witness of a loss distribution: the grid on which it is composed again."""
    shares = "; ".join(  # of several for one mechanism the last counts
        f"({place + 1}%positive, {_rational(Fraction(share))})"
        for place, share in reversed(parameters["shares"])
    )
    doublings = "; ".join(map(str, parameters["doublings"]))
    entering = "; ".join(
        f"(({place + 1})%positive, ({often})%positive, {level}%nat)"
        for place, often, level in parameters["parts"]
    )
    terms = (
        *(f"[{entering}]", f"[{shares}]", str(parameters["group"])),
        *(_number(parameters, "step"), f"[{doublings}]%nat"),
        *(str(parameters["dense"]), str(parameters["digits"]), f"{parameters['cut']}%Z"),
        *(_number(parameters, "delta"), _number(parameters, "epsilon")),
    )
    return f"(PrivacyLoss {' '.join(terms)})"


def _loss_distribution(parameters: Mapping[str, Any]) -> str:
    """Return the same as documents first had it, on one step, as the checker reads it."""
    grid = first_grid(
        Fraction(parameters["step"]),
        parameters["reach"],
        parameters["bits"],
        Fraction(parameters["delta"]),
    )
    given = {"parts": [[*part, 0] for part in parameters["parts"]], "shares": [], "group": 1}
    given |= {"step": grid.step, "doublings": [], "dense": grid.dense, "digits": grid.digits}
    given |= {"cut": grid.plan.cut, "delta": parameters["delta"]}
    return _privacy_loss(given | {"epsilon": parameters["epsilon"]})


def _laplace_losses(parameters: Mapping[str, Any]) -> str:
    """Return a composition of Laplace noise alone, in closed form."""
    parts = "; ".join(f"({place + 1}, {often})" for place, often in parameters["parts"])
    numbers = f"{_number(parameters, 'delta')} {_number(parameters, 'epsilon')}"
    return f"(LaplaceLosses [{parts}]%positive {parameters['group']} {numbers})"


_RULES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "gaussian-gdp": lambda p: f"(GaussianGdp {_place(p)})",
    "gaussian-zcdp": lambda p: f"(GaussianZcdp {_place(p)})",
    "laplace-zcdp": lambda p: f"(LaplaceZcdp {_place(p)})",
    "discrete-laplace-zcdp": lambda p: f"(DiscreteLaplaceZcdp {_place(p)})",
    "discrete-gaussian-zcdp": lambda p: f"(DiscreteGaussianZcdp {_place(p)})",
    "laplace-pure": lambda p: f"(LaplacePure {_place(p)} {_number(p, 'epsilon')})",
    "discrete-laplace-pure": lambda p: f"(DiscreteLaplacePure {_place(p)} {_number(p, 'epsilon')})",
    "randomised-response-pure": lambda p: (
        f"(RandomisedResponsePure {_place(p)} {_number(p, 'epsilon')})"
    ),
    "poisson-pure": lambda p: f"(PoissonPure {_place(p)} {_number(p, 'epsilon')})",
    "fixed-batch-pure": lambda p: f"(FixedBatchPure {_place(p)} {_number(p, 'epsilon')})",
    "poisson-rdp": lambda p: f"(PoissonRdp {_place(p)} {p['order']} {_number(p, 'epsilon')})",
    "fixed-batch-rdp": lambda p: (
        f"(FixedBatchRdp {_place(p)} {p['order']} {_number(p, 'epsilon')})"
    ),
    "pure-step": lambda p: f"(PureStepRule {_place(p)} {_number(p, 'epsilon')})",
    "composition": lambda p: f"(Composition [{'; '.join(map(str, p['times']))}]%positive)",
    "repeated": lambda p: f"(RepeatedRule {_place(p)})",
    "parties": lambda p: f"(PartiesRule {_place(p)})",
    "events": lambda p: "EventsRule",
    "weaken": lambda p: f"(Weaken {_number(p, 'value')})",
    "post-processing": lambda p: "Restate",
    "given": lambda p: "Restate",
    "filter": lambda p: f"(Filter {_number(p, 'budget')})",
    "group": lambda p: f"(Group {p['size']})",
    "replace-one": lambda p: "ReplaceOneRule",
    "zcdp-rdp": lambda p: f"(ZcdpRdp {_number(p, 'order')})",
    "pure-approx-dp": lambda p: f"(PureApproxDp {_number(p, 'delta')})",
    "rdp-approx-dp": lambda p: f"(RdpApproxDp {_number(p, 'delta')} {_number(p, 'epsilon')})",
    "privacy-loss": _privacy_loss,
    "loss-distribution": _loss_distribution,
    "laplace-losses": _laplace_losses,
    "gdp-approx-dp": lambda p: f"(GdpApproxDp {_number(p, 'delta')} {_number(p, 'epsilon')})",
}
"""For each rule of a certificate how its step is written, from the parameters."""
_NOTIONS = {
    "gdp": "(Gdp {mu_squared})",
    "zcdp": "(Zcdp {rho})",
    "pure-dp": "(PureDp {epsilon})",
    "rdp": "(Rdp {order} {epsilon})",
    "approx-dp": "(ApproxDp {delta} {epsilon})",
}
"""For each notion how a conclusion is written; fields in braces are its numbers."""


def _node(node: Mapping[str, Any]) -> str:
    """Return a step of the derivation as a term: rule, numbers of its premises, conclusion."""
    if node["rule"] not in _RULES:
        raise BeyondTheorem(f"rule={node['rule']} must be in {sorted(_RULES)}.")
    stated = node["conclusion"]
    template = _NOTIONS[stated["notion"]]
    fields = re.findall(r"{(\w+)}", template)
    notion = template.format(**{field: _number(stated, field) for field in fields})
    relation, _ = _RELATIONS.get(stated["adjacency"], ("", ""))
    premises = "; ".join(str(place + 1) for place in node["premises"])
    premises = f"[{premises}]%positive" if premises else "[]"
    rule = _RULES[node["rule"]](node["parameters"])
    return f"Node {rule} {premises} (Claim {relation} {stated['group']} {notion})"
