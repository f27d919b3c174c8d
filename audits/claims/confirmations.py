"""Verdicts confirmed by attacks, computed anew or as they were computed before.

What was computed before lies in each paper's `evidence.json`, with the command that made it, the
parameters and their hash; it is shown only for these very parameters.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ...accounting.numbers.enclosure import shown_in_full
from ...mechanisms.errors import DpledgerError, require_positive_int
from ..replay import Progress
from ..report.numerals import printed
from ..report.record import Direction
from .attack import AttackKind, AttackOutcome, counted_bound
from .claim import Case, Claim, ClaimVerdict, Counterexample, Finding, Paper

CONFIDENCE = 0.999
"""Of every attack on a claim: one in a thousand true claims would be called exceeded."""

SEED = 1
"""Of every attack, unless the caller states another: evidence can be computed again."""

_TILTED, _COUNTED, _CERTAIN = 4000, 20_000, 200
"""Runs of a tilted attack, runs in each world of a counted event, and of an event that is
certain."""
# where an event is impossible under the neighbour, and the claim names no delta
_SOME_DELTA = 1e-5
_FORMAT = "urn:dpledger:claim-evidence:1"
"""Of evidence.json; a file of another format is `MalformedEvidence`."""


class MalformedEvidence(DpledgerError, ValueError):
    """A file of evidence is not one of ours."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """An attack on a claim, and what it says of the verdict.

    Args:
        claim: its identifier.
        verdict: the court's, at these parameters.
        parameters: all of the paper's, by name.
        sha256: of claim, parameters, trials, seed and confidence.
        outcome: what the attack found.
    """

    claim: str
    verdict: str
    parameters: dict[str, Any]
    sha256: str
    outcome: AttackOutcome

    @property
    def agrees(self) -> bool:
        """Whether what holds was not exceeded, and what does not was."""
        return self.outcome.exceeded is not (self.verdict == ClaimVerdict.HOLDS.value)

    @property
    def text(self) -> str:
        """The attack and its numbers in a sentence, lower bounds rounded down and upper ones up."""
        found = self.outcome
        if found.kind is AttackKind.EXACT_EVENT:
            words = "of one data set only, computed from both"
        elif found.kind is AttackKind.CERTAIN_EVENT:
            words = f"happens under one data set only, in {found.trials} runs of each"
        else:
            assert found.lower is not None
            assert found.confidence is not None
            lower = printed(found.lower, rounding=Direction.DOWN, digits=5)
            words = f"epsilon >= {lower}"
            if found.upper is not None:
                upper = printed(found.upper, rounding=Direction.UP, digits=5)
                words = f"epsilon in [{lower}, {upper}]"
            words += f" at delta {shown_in_full(found.delta)}, promised {found.epsilon:.5g} "
            words += f"({found.confidence:.1%}, {found.trials} trials)"
        word = "exceeded" if found.exceeded else "survived"
        return f"{word}: {found.kind.value}: {words}; {found.at}"


def confirm(
    claim: Claim[Any],
    case: Case[Any],
    finding: Finding,
    *,
    trials: int | None = None,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Confirmation | None:
    """Attack a claim at its parameters; None where nothing about it can be attacked.

    Args:
        claim, case: the claim, and where.
        finding: what the court found there.
        trials: how many runs in each world; by default as many as the kind of attack needs.
        seed: of the noise.
        progress: called with the runs done and all runs.

    An attack of the claim's own comes first; without one, a counterexample of the finding's
    evidence is counted.
    """
    if trials is not None:
        require_positive_int("trials", trials)
    attack = None if claim.attack is None else claim.attack(case)
    if attack is None:
        attack = next((e for e in finding.evidence if isinstance(e, Counterexample)), None)
    if attack is None:
        return None
    if isinstance(attack, Counterexample):
        outcome = _computed(attack) if attack.exact else _counted(attack, trials, seed)
    else:
        outcome = attack.run(
            trials=trials or _TILTED, seed=seed, confidence=CONFIDENCE, progress=progress
        )
    parameters = asdict(case.setting)
    digest = _digest(claim.identifier, case, outcome)
    return Confirmation(claim.identifier, finding.verdict.value, parameters, digest, outcome)


def _computed(event: Counterexample) -> AttackOutcome:
    """Compute an event that nothing random decides, once of each data set."""
    first, second = event.rerun(1, 0)
    return AttackOutcome(
        kind=AttackKind.EXACT_EVENT,
        neighbours=event.datasets,
        at=event.event,
        epsilon=None,
        delta=_SOME_DELTA,
        lower=None,
        upper=None,
        trials=None,
        seed=None,
        confidence=None,
        exceeded=first == 1.0 and second == 0.0,
    )


def _counted(event: Counterexample, trials: int | None, seed: int) -> AttackOutcome:
    """Return what counting an event in runs of both worlds shows.

    With a stated (epsilon, delta) the Clopper-Pearson bound must exceed it. Without one the event
    is claimed to be impossible under the neighbour: derived so, and seen under the data set
    alone.
    """
    certain = event.allowed is None
    number = trials or (_CERTAIN if certain else _COUNTED)
    hits, others = (round(rate * number) for rate in event.rerun(number, seed))
    epsilon, delta = (None, _SOME_DELTA) if event.allowed is None else event.allowed
    lower = counted_bound(hits, others, number, delta=delta, confidence=CONFIDENCE)
    if epsilon is None:
        impossible = event.neighbour_probability.upper_float == 0.0 and others == 0
        exceeded = impossible and event.probability.lower_float > 0.0 and hits > 0
    else:
        exceeded = lower > epsilon
    return AttackOutcome(
        kind=AttackKind.CERTAIN_EVENT if certain else AttackKind.COUNTED_EVENT,
        neighbours=event.datasets,
        at=event.event,
        epsilon=epsilon,
        delta=delta,
        lower=lower,
        upper=None,
        trials=number,
        seed=seed,
        confidence=CONFIDENCE,
        exceeded=exceeded,
    )


def _digest(identifier: str, case: Case[Any], outcome: AttackOutcome) -> str:
    """Return the SHA-256 of claim, parameters, what was fixed, trials, seed and confidence.

    Evidence that was computed at other parameters, or with other trials, has another hash and is
    not shown.
    """
    parts = {
        "claim": identifier,
        "parameters": asdict(case.setting),
        "fixed": sorted(case.fixed),
        "trials": outcome.trials,
        "seed": outcome.seed,
        "confidence": outcome.confidence,
    }
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


# --- kept --------------------------------------------------------------------------------------


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The content of an evidence.json."""

    format: str
    command: str
    confirmations: list[Confirmation]


def written(paper: str, confirmations: Iterable[Confirmation]) -> bytes:
    """Return a paper's file of evidence.

    Args:
        paper: its name, for the command that makes the file again.
        confirmations: of its claims.
    """
    command = f"dpledger claims audit {paper} --rerun --save papers"
    document = _File(_FORMAT, command, list(confirmations))
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def known(paper: Paper[Any], claim: Claim[Any], case: Case[Any]) -> tuple[Confirmation, str] | None:
    """Return what was kept about a claim at these very parameters, and the command that made it.

    Args:
        paper: whose evidence.json is read.
        claim: of the paper.
        case: its parameters; evidence of others is not shown.
    """
    file = _kept(paper.evidence)
    for each in () if file is None else file.confirmations:
        same = each.claim == claim.identifier
        if file is not None and same and each.sha256 == _digest(each.claim, case, each.outcome):
            return each, file.command
    return None


@lru_cache(maxsize=16)
def _kept(path: Path) -> _File | None:
    """Return a paper's file of evidence, None where there is none; read once."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise MalformedEvidence(f"{path.name}: Expected evidence of claims: {error}") from error
    if found.format != _FORMAT:
        raise MalformedEvidence(f"{path.name}: Expected {_FORMAT} instead got {found.format!r}.")
    return found
