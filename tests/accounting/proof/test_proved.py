"""A certificate counts for the events, the relation, the group and the numbers that it is about."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from tests.parameters import quick

from dpledger.accounting.check import statements
from dpledger.accounting.check.reading import CertificateWrong
from dpledger.accounting.proof import proved as proving
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.proved import NotProved, prove, proved
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    Parties,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    Sensitivity,
    declared,
)

ADJACENCY = Adjacency.REPLACE_ONE
STEP = GaussianStep(declared(1, "a test", adjacency=ADJACENCY), 10.0)
EVENTS = [Event(STEP, Context((), r, "model", Audience.SERVER)) for r in range(1, 6)]
CERTIFICATE = certify(EVENTS, delta=1e-5)
ASKED = {
    "events": EVENTS,
    "delta": 1e-5,
    "epsilon": CERTIFICATE.epsilon,
    "adjacency": ADJACENCY,
    "group": 1,
}


def test_the_verdict_on_what_was_asked_is_returned() -> None:
    verdict = proved(CERTIFICATE.to_json_bytes(), **ASKED)
    assert verdict.values == (Fraction(1e-5), Fraction(CERTIFICATE.epsilon))
    assert proved(CERTIFICATE.to_json_bytes(), events=EVENTS) == verdict


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("subject", {"events": EVENTS[:4]}),
        ("subject", {"events": [*EVENTS, EVENTS[0]]}),
        ("subject", {"events": EVENTS[::-1]}),
        ("delta", {"delta": 1e-6}),
        ("delta", {"delta": 2e-5}),
        ("epsilon", {"epsilon": CERTIFICATE.epsilon * (1 - 1e-15)}),
        ("adjacency", {"adjacency": Adjacency.ZERO_OUT_ONE}),
        ("group", {"group": 2}),
    ],
)
def test_a_certificate_of_something_else_is_refused_by_what_differs(what, change) -> None:
    with pytest.raises(NotProved, match=f"proves {what}="):
        proved(CERTIFICATE.to_json_bytes(), **(ASKED | change))


def test_a_wrong_certificate_is_the_checkers_to_refuse() -> None:
    document = CERTIFICATE.to_json_bytes().replace(b'"group":1', b'"group":2')
    with pytest.raises(CertificateWrong):
        proved(document, **ASKED)


SAMPLED = [
    Event(
        PoissonSampled(
            GaussianStep(declared(1, "a test", adjacency=Adjacency.ZERO_OUT_ONE), 1.0), 0.01
        ),
        Context((), r, "model", Audience.SERVER),
    )
    for r in range(1, 9)
]


@pytest.mark.parametrize(("events", "group"), [(EVENTS, 1), (EVENTS, 3), (SAMPLED, 2)])
def test_what_is_proved_is_what_the_checker_said(events, group) -> None:
    found = prove(events, delta=1e-5, group=group)
    assert found.grade.value == "proved"
    assert found.verdict == proved(found.document, events=events, delta=1e-5, group=group)
    assert found.verdict.values == (Fraction(1e-5), Fraction(found.epsilon))


def test_another_relation_than_that_of_the_events_is_not_proved() -> None:
    with pytest.raises(NotProved, match="adjacency"):
        prove(SAMPLED, delta=1e-5, adjacency=ADJACENCY)


def test_what_is_too_much_work_to_check_tightly_is_proved_otherwise(monkeypatch) -> None:
    tight = prove(SAMPLED, delta=1e-5)
    monkeypatch.setattr(statements, "MAX_WORK", 120_000)
    monkeypatch.setattr(statements, "WORK_A_BYTE", 0)
    found = prove(SAMPLED, delta=1e-5)
    assert found.certificate.steps[-2].rule != tight.certificate.steps[-2].rule
    assert found.epsilon > tight.epsilon


def _declared(adjacency: Adjacency, norm: Norm = Norm.L2) -> Sensitivity:
    return declared(1, "a test", adjacency=adjacency, norm=norm)


KINDS: dict[str, Callable[[Adjacency], Mechanism]] = {
    "gaussian": lambda a: GaussianStep(_declared(a), 5.0),
    "laplace": lambda a: LaplaceStep(_declared(a, Norm.L1), 5.0),
    "discrete gaussian": lambda a: DiscreteGaussianStep(_declared(a), 5.0),
    "discrete laplace": lambda a: DiscreteLaplaceStep(_declared(a, Norm.L1), 5.0),
    "pure": lambda a: PureStep(_declared(a, Norm.L1), 5.0),
    "sampled gaussian": lambda a: PoissonSampled(GaussianStep(_declared(a), 2.0), 0.01),
    "sampled laplace": lambda a: PoissonSampled(LaplaceStep(_declared(a, Norm.L1), 2.0), 0.01),
    "mixture": lambda a: GaussianMixtureStep(_declared(a), _declared(a), 0.01, 5.0),
    "repeated": lambda a: Repeated(GaussianStep(_declared(a), 20.0), 7),
    "parties": lambda a: Parties(
        (("one", (GaussianStep(_declared(a), 4.0),)), ("two", (GaussianStep(_declared(a), 5.0),)))
    ),
}
ONE_RELATION: dict[str, Mechanism] = {
    "randomised response": RandomisedResponse(0.7, 3),
    "fixed batch": SampledWithoutReplacement(GaussianStep(_declared(ADJACENCY), 2.0), 10, 1000),
}


def _ran(mechanism: Mechanism, times: int) -> list[Event]:
    return [Event(mechanism, Context((), r, "model", Audience.SERVER)) for r in range(times)]


FEW = ("gaussian", "parties", "randomised response")


@pytest.mark.parametrize("kind", quick(FEW, [*KINDS, *ONE_RELATION]))
def test_of_every_kind_a_certificate_is_refused_for_anything_else(kind, monkeypatch) -> None:
    relation = Adjacency.ZERO_OUT_ONE if kind in KINDS else ADJACENCY
    mechanism = KINDS[kind](relation) if kind in KINDS else ONE_RELATION[kind]
    events = [*_ran(mechanism, 3), *_ran(GaussianStep(_declared(relation), 9.0), 1)]
    found = prove(events, delta=1e-5)
    document = found.document
    assert found.verdict == proved(document, events=events, delta=1e-5, epsilon=found.epsilon)
    changes = [
        ("subject", {"events": events[1:]}),
        ("subject", {"events": [*events, events[0]]}),
        ("delta", {"events": events, "delta": 1e-6}),
        ("group", {"events": events, "group": 2}),
        ("adjacency", {"events": events, "adjacency": Adjacency.ADD_REMOVE_ONE}),
        ("epsilon", {"events": events, "epsilon": found.epsilon * (1 - 1e-15)}),
    ]
    if kind in KINDS:
        changes.append(("subject", {"events": _ran(KINDS[kind](Adjacency.ADD_REMOVE_ONE), 3)}))
    # what the checker says of a document is the same whatever it is then held against
    monkeypatch.setattr(proving, "check", lambda _: found.verdict)
    for what, change in changes:
        with pytest.raises(NotProved, match=f"proves {what}="):
            proved(document, **change)
