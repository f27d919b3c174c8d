"""Checks a privacy certificate with nothing but Python; shares no code with what wrote it.

A certificate lists the events of a run, and steps (nodes) that lead from them to (epsilon, delta).
The checker re-derives every sensitivity, recomputes every node in exact rational arithmetic or in
integer intervals with the error bounds proved in the comments, and hashes the events. Order:
size and syntax, mechanisms, events and their hash, nodes, assumptions and axioms.

Adjacency, mechanisms and notions are those of the project's written form of events, version 1.
`check` does no input or output.
"""

import json
from decimal import ROUND_CEILING, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from .privacy import RULES
from .reading import (
    CalledWrong,
    CertificateWrong,
    Undecided,
    parse,
    read_count,
    read_fields,
    read_list,
    read_rational,
    read_text,
    require_equal,
)
from .statements import (
    AXIOMS,
    COLUMNS,
    FILTERED,
    LISTED_LATER,
    NOTIONS,
    PARTIES,
    STOPPING,
    Budget,
    Priv,
    Rules,
    Run,
)

FORMAT = "urn:dpledger:certificate:1"
"""The only form of documents that is read, with its version; another is refused."""


class Verdict(NamedTuple):
    """What a correct certificate proves, for the events whose hash is `subject`.

    `budget`: what the filter kept that let these events happen, where that is what was proved.
    """

    subject: str
    adjacency: str
    group: int
    notion: str
    values: tuple[Fraction, ...]
    assumptions: tuple[str, ...]
    axioms: tuple[str, ...]
    steps: int
    budget: Budget | None = None


def _step(run: Run, node: Any, earlier: list[Priv], rules: Rules = RULES) -> Priv:
    """Return what a node concludes, after its rule has found the same from its premises.

    A node may use nodes before it only, so that no proof runs in a circle. The conclusion stated
    must equal what the rule returns, number for number. The theorem that the rule rests on is
    noted.
    """
    rule, parameters, premises, conclusion = read_fields(
        node, "rule", "parameters", "premises", "conclusion"
    )
    if read_text(rule) in ("loss-distribution", "privacy-loss", "laplace-losses") and (
        rule not in rules
    ):
        raise Undecided("loss distributions are recomputed by pld_checker.py")
    if rule not in rules:
        raise CertificateWrong(f"expected one of {sorted(rules)} instead got {rule!r:.80}")
    function, names, arity = rules[rule]
    places = [read_count(place, 0) for place in read_list(premises)]
    if any(place >= len(earlier) for place in places) or arity not in (-1, len(places)):
        raise CertificateWrong(f"expected {arity} premises among earlier nodes, got {places}")
    found = function(run, *read_fields(parameters, *names), *(earlier[place] for place in places))
    if (rule, found.notion) in AXIOMS:
        run.axioms.add(AXIOMS[rule, found.notion])
    labels = NOTIONS[found.notion]
    adjacency, group, notion, *values = read_fields(
        conclusion, "adjacency", "group", "notion", *labels
    )
    stated = (adjacency, read_count(group), notion)
    require_equal("conclusion", stated, (found.adjacency, found.group, found.notion))
    require_equal(f"conclusion {labels}", tuple(read_rational(v) for v in values), found.values)
    return found


def check(document: bytes, more: Rules | None = None) -> Verdict:
    """Return what a certificate proves, by the rules above and `more` (those of pld_checker).

    Raises `CertificateWrong`, naming the node and the two things that differ; `CalledWrong` if
    `document` is no bytes; `Undecided` if checking needs more than the limits above.
    """
    try:
        return _check(document, RULES | (more or {}))
    except RecursionError:
        raise CertificateWrong("expected shallow JSON instead got a deeply nested one") from None
    except (CertificateWrong, CalledWrong, Undecided):
        raise
    except Exception as error:
        # a stranger's document is never to end in a traceback, which reads as neither verdict
        what = f"{type(error).__name__}: {error!s:.80}"
        raise Undecided(f"expected a document that can be followed instead got {what}") from error


def _listed(what: str, got: Any, found: set[str]) -> tuple[str, ...]:
    """What is to be listed; older documents may leave out what was not listed in their time."""
    listed = [read_text(text) for text in read_list(got)]
    if listed != sorted(set(listed)) or not found - LISTED_LATER <= set(listed) <= found:
        require_equal(what, listed, sorted(found))
    return tuple(sorted(found))


def _check(document: bytes, rules: Rules) -> Verdict:
    """Return what a document proves; `check` turns what goes wrong here into its three errors.

    The last node must speak of all events; every mechanism must be used; the assumptions and axioms
    listed must be those that the steps needed, so that a reader sees all of them.
    """
    content = parse(document)
    form, subject, mechanisms, events, nodes, assumptions, axioms = read_fields(
        content,
        *("format", "subject", "mechanisms", "events", "nodes", "assumptions", "axioms"),
    )
    require_equal("format", form, FORMAT)
    # blanks buy no work
    run = Run(mechanisms, events, len(json.dumps(content, separators=(",", ":"))))
    require_equal("subject", subject, run.subject)
    proved: list[Priv] = []
    for i, node in enumerate(read_list(nodes)):
        try:
            proved.append(_step(run, node, proved, rules))
        except (CertificateWrong, Undecided) as error:
            rule = node.get("rule") if isinstance(node, dict) else None
            raise type(error)(f"node {i} ({rule!s:.40}): {error}") from None
    if not proved or proved[-1].exposure is not None:
        raise CertificateWrong("expected the last node to speak of all events instead got a part")
    run.require_all_met()
    if proved[-1].budget is not None:
        run.assumptions.remove(STOPPING)
    elif run.assumptions >= FILTERED:
        raise CertificateWrong("expected a conclusion that follows from the filter")
    if proved[-1].adjacency == "replace-feature-column" and PARTIES in run.assumptions:
        run.assumptions ^= {PARTIES, COLUMNS}
    expected = _listed("assumptions", assumptions, run.assumptions)
    published = _listed("axioms", axioms, run.axioms)
    last = proved[-1]
    return Verdict(
        subject=run.subject,
        adjacency=last.adjacency,
        group=last.group,
        notion=last.notion,
        values=last.values,
        assumptions=expected,
        axioms=published,
        steps=len(proved),
        budget=last.budget,
    )


def _numbers(notion: str, values: tuple[Fraction, ...]) -> str:
    """Return what a notion is stated with, rounded up to 17 digits."""
    with localcontext(Context(prec=17, rounding=ROUND_CEILING, traps=[])):
        rounded = [Decimal(v.numerator) / Decimal(v.denominator) for v in values]
    return ", ".join(f"{k} <= {v}" for k, v in zip(NOTIONS[notion], rounded, strict=True))


def report(verdict: Verdict) -> str:
    """Return the verdict as lines of text."""
    unit = verdict.adjacency + (f", groups of {verdict.group}" if verdict.group > 1 else "")
    numbers = _numbers(verdict.notion, verdict.values)
    lines = [f"{verdict.notion} ({unit}): {numbers}", f"subject {verdict.subject}"]
    if (kept := verdict.budget) is not None:
        numbers = _numbers(kept.notion, kept.values)
        lines.append(f"a filter's budget: {kept.notion} ({kept.adjacency}): {numbers}")
    # a reason is a stranger's words: escaped, so that it cannot pass for a line of the verdict
    lines += [f"assumes: {ascii(text)[1:-1]}" for text in verdict.assumptions]
    lines += [f"axiom: {text}" for text in verdict.axioms]
    return "\n".join([*lines, f"{verdict.steps} steps checked"])
