"""What parties and coordinator say to each other, and what a step makes of all parties' parts.

A party asks, the coordinator answers. An `Ask` carries the party's part of one step and is
answered once all parts are there. Asking again is harmless: a step's answer never changes.

All functions here are pure and take bytes that came over a network: `fault` looks at what a party
sent, `checked_result` at what the coordinator did. Every engine (threads, sockets, MPI) uses
these, so that all give the same bits. The messages travel as msgpack; the structs refuse unknown
fields.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from ..mechanisms.collectives import sum_in_order
from ..mechanisms.errors import DpledgerError
from ..mechanisms.protocols import FloatArray
from .aggregation import SumOf, added, decoded_words, encoded_words
from .plan import FederatedPlan, RunStep, StepKind

__all__ = [
    "Answer",
    "Ask",
    "Bye",
    "Ended",
    "FederationEnded",
    "HandedIn",
    "Hello",
    "Reply",
    "Request",
    "Welcome",
]

_LONGEST_REASON = 300
"""Bytes of a party's reason that are shown to the others: a sentence, and no way to flood their
logs."""


class FederationEnded(DpledgerError):
    """The run is over before its time, for the reason given. What was paid for stays paid."""


class Hello(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A party is here, and has this plan."""

    protocol: int
    party: str
    subject: str


class Ask(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A party's part of a step of a run."""

    run: str
    party: str
    step: int
    part: bytes


class Bye(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """A party knows how the run ended, and asks no more."""

    run: str
    party: str


class Welcome(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The run that a party takes part in, new or begun before."""

    run: str


class Answer(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """What a step came to, the same for all parties."""

    step: int
    result: bytes


class Ended(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """The run is over, or was never this party's; in a sentence."""

    reason: str


class HandedIn(msgspec.Struct, frozen=True, tag=True, forbid_unknown_fields=True):
    """What a party hands in at the end: its certificate, and its public model."""

    certificate: bytes
    model: bytes


Request = Hello | Ask | Bye
"""What a party sends to the coordinator."""
Reply = Welcome | Answer | Ended
"""What the coordinator answers: `Welcome` to a `Hello`, `Answer` to an `Ask`, or `Ended` to any."""


def encoded_row(row: FloatArray) -> bytes:
    """Return numbers as bytes, little-endian binary64: 8 a number, the same bits on every
    machine.
    """
    return np.ascontiguousarray(row, dtype="<f8").tobytes()


def decoded_row(part: bytes) -> FloatArray:
    """Return the numbers of `encoded_row`, of shape (1, width).

    A native copy, so that sums run at full speed and do not hold on to the message. Raises
    `ValueError` for a length that is no multiple of 8.
    """
    return np.frombuffer(part, dtype="<f8").astype(np.float64)[None, :]


def fault(step: RunStep, part: bytes, party: str) -> str | None:
    """Return what is wrong with a party's part of a step, as what the party did; or None.

    Args:
        step: whose kind says what a part must be.
        part: as it came. AGREE and PAY: empty, or a reason in UTF-8. MEAN and EXCHANGE:
            `step.width` finite numbers; SHARE: of its sender, and of others nothing. SUM: as many
            words below 2^m. FINISH: a `HandedIn`.
        party: whose part it is.

    A NaN is a fault and not a number: in a sum it would take every other party's work with it.
    """
    match step.kind:
        case StepKind.AGREE:
            if part:
                return f"does not take part: {_reason(part)}"
        case StepKind.PAY:
            if part:
                return f"did not pay: {_reason(part)}"
        case StepKind.MEAN | StepKind.EXCHANGE | StepKind.SHARE:
            due = 8 * step.width if step.sender in ("", party) else 0
            if len(part) != due:
                return f"sent {len(part)} bytes where {due} were due"
            if not np.isfinite(decoded_row(part)).all():
                return "sent numbers that are not finite"
        case StepKind.SUM:
            if not _are_words(step, part):
                return f"sent {len(part)} bytes that are no {step.width} words of {step.bits} bits"
        case StepKind.FINISH:
            try:
                model = msgspec.msgpack.decode(part, type=HandedIn).model
            except msgspec.MsgspecError:
                return "handed in no certificate"
            if len(model) % 8:
                return f"handed in {len(model)} bytes that are no numbers of a model"
    return None


def combined(
    plan: FederatedPlan,
    number: int,
    parts: Sequence[bytes],
    *,
    run: str = "",
    missing: Sequence[int] = (),
) -> bytes:
    """Return what a step makes of faultless parts, one a party, in the parties' order.

    Args:
        plan: of the run.
        number: of the step, from 0.
        parts: that `fault` found nothing wrong with.
        run: its name, which masks of sums depend on.
        missing: numbers of parties that dropped out, whose parts are not there: of SUM and FINISH.

    A MEAN step gives the sum, which every party divides itself; rows are added in the parties'
    order, because floating-point addition in another order gives other bits. EXCHANGE gives all
    rows, SHARE those of its sender, SUM the sum modulo 2^m, in any order.
    """
    match plan.steps[number].kind:
        case StepKind.MEAN:
            return encoded_row(sum_in_order(np.concatenate([*map(decoded_row, parts)])))
        case StepKind.EXCHANGE | StepKind.SHARE:
            return b"".join(parts)
        case StepKind.SUM:
            assert plan.summed is not None
            bits, before = plan.steps[number].bits, plan.steps[:number]
            which = SumOf(run, sum(step.kind is StepKind.SUM for step in before), bits)
            total = added([*map(decoded_words, parts)], bits)
            aggregation = plan.summed.aggregation
            return encoded_words(aggregation.completed(total, missing, plan.parties, which))
        case _:
            return b""


def result_for(plan: FederatedPlan, number: int, party: str, result: bytes) -> bytes:
    """Return what of a step's result one party gets: of an exchange, its neighbours' rows.

    An exchange shows a party its neighbours in the communication graph and nobody else's rows.
    """
    step = plan.steps[number]
    if step.kind is not StepKind.EXCHANGE:
        return result
    size = 8 * step.width
    them = plan.neighbours[plan.parties.index(party)]
    return b"".join(result[size * i : size * (i + 1)] for i in them)


def checked_result(plan: FederatedPlan, number: int, party: str, result: bytes) -> bytes:
    """Return what a party got of a step, or raise `FederationEnded` where it cannot be that.

    The coordinator is not trusted: a wrong length or a number that is not finite ends the run
    here before it reaches the solver. Whether the sum is right is not checked; privacy does not
    rest on it.
    """
    step = plan.steps[number]
    if step.kind is StepKind.SUM:
        if not _are_words(step, result):
            raise FederationEnded(f"The coordinator answered step {number} with no sum.")
        return result
    rows = 1
    if step.kind is StepKind.EXCHANGE:
        rows = len(plan.neighbours[plan.parties.index(party)])
    if len(result) != 8 * step.width * rows:
        raise FederationEnded(f"The coordinator answered step {number} with {len(result)} bytes.")
    if not all(map(math.isfinite, np.frombuffer(result, dtype="<f8").tolist())):
        raise FederationEnded(f"The coordinator answered step {number} with no finite numbers.")
    return result


def _are_words(step: RunStep, part: bytes) -> bool:
    """Return whether bytes are as many words below 2^m as a step of sums has."""
    return len(part) == 8 * step.width and not any(decoded_words(part) >> (step.bits - 1) >> 1)


def shown_step(plan: FederatedPlan, number: int) -> str:
    """Return a step for readers."""
    return f"step {number + 1} of {len(plan.steps)}, {plan.steps[number].kind.value}"


def _reason(part: bytes) -> str:
    """Return a party's reason as text that is safe to print: no control characters, limited
    length.
    """
    text = part[:_LONGEST_REASON].decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in text)
