"""Proved: what the independent checker says of a certificate, held against what is to be printed.

>>> from dpledger.accounting.proof.certificate import certify
>>> from dpledger.mechanisms import Adjacency, Audience, Context, Event, GaussianStep, declared
>>> step = GaussianStep(declared(1, "example", adjacency=Adjacency.ZERO_OUT_ONE), noise_std=2.0)
>>> events = [Event(step, Context((), k, "model", Audience.PUBLIC)) for k in range(1, 5)]
>>> document = certify(events, delta=1e-5).to_json_bytes()
>>> proved(document, events=events, delta=1e-5, epsilon=4.38).adjacency
'zero-out-one'
>>> proved(document, events=events[:3], delta=1e-5)
Traceback (most recent call last):
dpledger.accounting.proof.proved.NotProved: The certificate proves subject=...
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from pathlib import Path

from ...mechanisms.adjacency import Adjacency
from ...mechanisms.encoding import subject_hash
from ...mechanisms.errors import DpledgerError, Number
from ...mechanisms.events import Event
from ...mechanisms.sensitivity import float_up
from ..check.checker import Verdict
from ..check.pld_checker import check
from ..check.reading import MAX_BYTES, CertificateWrong, Undecided
from ..guarantees import Guarantee, guarantee
from ..numbers.enclosure import Enclosure
from ..numbers.grade import Grade
from .certificate import Certificate, Uncertifiable, certify

__all__ = [
    "NotProved",
    "Proof",
    "delta_and_epsilon",
    "prove",
    "proved",
    "proved_guarantee",
    "with_proof",
]


_NO_PROTECTION = 1000
"""The largest epsilon for which losses on a grid are searched; Gaussian steps and pure epsilon need
no search."""


class NotProved(DpledgerError, ValueError):
    """The certificate is right, and it is one of something else."""

    def __init__(self, what: str, found: object, expected: object) -> None:
        super().__init__(f"The certificate proves {what}={found} instead of {expected}.")
        self.what, self.found, self.expected = what, found, expected


def proved(
    document: bytes,
    *,
    events: Sequence[Event],
    delta: Number | None = None,
    epsilon: Number | None = None,
    adjacency: Adjacency | None = None,
    group: int | None = None,
) -> Verdict:
    """Return the independent checker's verdict on a certificate of (ε, δ) for these very events.

    Args:
        document: the certificate.
        events: all that happened, or will.
        delta, epsilon, adjacency, group: what is to be printed beside it; the certificate must be
            of this δ, relation and group, and of this ε or less. None: the verdict's is printed.

    Raises:
        NotProved: names the first of these that differs.
        CertificateWrong, Undecided: the checker's.
    """
    verdict = check(document)
    numbers = delta is not None or epsilon is not None
    stated = delta_and_epsilon(verdict)
    if numbers and stated is None:
        raise NotProved("notion", verdict.notion, "approx-dp")
    found_delta, found_epsilon = stated or (None, Fraction(0))
    compared: tuple[tuple[str, object, object], ...] = (
        ("subject", verdict.subject, subject_hash(events)),
        ("adjacency", verdict.adjacency, adjacency and adjacency.value),
        ("group", verdict.group, group),
        ("delta", found_delta, None if delta is None else Fraction(delta)),
    )
    for what, found, expected in compared:
        if expected is not None and found != expected:
            raise NotProved(what, found, expected)
    if epsilon is not None and found_epsilon > epsilon:
        raise NotProved("epsilon", float_up(found_epsilon), f"{epsilon} or less")
    return verdict


def certificate_bytes(path: Path) -> bytes:
    """Return a certificate's file, as far as the checker's limit on bytes and one byte more.

    A longer one is the checker's to refuse; it is not read whole before. Raises `OSError`.
    """
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def delta_and_epsilon(verdict: Verdict) -> tuple[Fraction, Fraction] | None:
    """Return the δ and ε of a verdict, δ = 0 for pure DP; None where it is of another notion."""
    match verdict.notion, verdict.values:
        case "approx-dp", (delta, epsilon):
            return delta, epsilon
        case "pure-dp", (epsilon,):
            return Fraction(0), epsilon
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Proof:
    """A certificate of (ε, δ), as written down, and what the independent checker says of it."""

    certificate: Certificate
    document: bytes
    verdict: Verdict
    grade = Grade.PROVED

    @property
    def epsilon(self) -> float:
        """The proved ε; exact, because `certify` chooses a binary64."""
        return self.certificate.epsilon


def prove(
    events: Sequence[Event],
    *,
    delta: Number,
    adjacency: Adjacency | None = None,
    group: int = 1,
    given: Sequence[str] = (),
) -> Proof:
    """Return a checked certificate of the smallest ε found at `delta` for a run or a plan.

    Where the tight certificate is more work than the checker allows, or is refused (of shifts that
    the checker lengthens to 2^-32), that by GDP, zCDP or Rényi DP is proved instead.

    Args:
        events: what was, or will be, released; at least one.
        delta: in [0, 1); 0 asks for pure differential privacy.
        adjacency: the relation that it must be proved under; None: that of the events.
        group: how many records neighbours differ in.
        given: what is taken for granted beside what is written in the events.

    Raises:
        InvalidParameter, Uncertifiable: as `certify`.
        NotProved: the events are of another relation than `adjacency`.
        CertificateWrong, Undecided: the checker's.
    """

    def checked(tight: bool) -> Proof:
        made = certify(events, delta=delta, group=group, tight=tight).given(*given)
        document = made.to_json_bytes()
        verdict = proved(
            document,
            events=events,
            delta=delta,
            epsilon=made.epsilon,
            adjacency=adjacency,
            group=group,
        )
        return Proof(made, document, verdict)

    try:
        return checked(tight=True)
    except (Undecided, CertificateWrong):
        return checked(tight=False)


def with_proof(found: Guarantee, proof: Proof) -> Guarantee:
    """Return a guarantee whose epsilon is the one that is proved, with its grade."""
    stated = Enclosure.of(proof.epsilon)
    epsilon = Enclosure(min(found.epsilon.lower, stated.lower), stated.upper)
    return replace(found, epsilon=epsilon, grade=proof.grade)


def proved_guarantee(
    events: Sequence[Event],
    *,
    delta: Number,
    adjacency: Adjacency | None = None,
    group: int = 1,
    given: Sequence[str] = (),
) -> tuple[Guarantee, Proof | None]:
    """Return what `events` guarantee, with the epsilon that is proved, and the proof.

    Where there is none, the guarantee is the enclosed one and says why in `not_proved`.

    Args: as `prove`; without events nothing is proved.

    Raises as `guarantee` does.
    """
    found = guarantee(events, delta=delta, adjacency=adjacency, group=group)
    found = replace(found, assumptions=(*found.assumptions, *given))
    if found.unprotected:
        why = f"no epsilon limits what leaves: {'; '.join(found.unprotected)}"
        return replace(found, not_proved=why), None
    if not events:
        return replace(found, not_proved="there are no events"), None
    if delta and found.epsilon.upper > _NO_PROTECTION and found.notion.mu_squared == inf:
        why = f"an epsilon above {_NO_PROTECTION} is no protection, and a long search"
        return replace(found, not_proved=why), None
    try:
        proof = prove(events, delta=delta, adjacency=adjacency, group=group, given=given)
    except (Uncertifiable, Undecided) as why:
        return replace(found, not_proved=str(why)), None
    except CertificateWrong as why:
        return replace(found, not_proved=f"the checker refuses what was found: {why}"), None
    return with_proof(found, proof), proof
