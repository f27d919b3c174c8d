"""A certificate counts for the events, the relation, the group and the numbers that it is about."""

from fractions import Fraction

import pytest

from dpledger.accounting.check.checker import CertificateWrong
from dpledger.accounting.proof.certificate import certify
from dpledger.accounting.proof.proved import NotProved, proved
from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared

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
