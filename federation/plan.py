"""What all parties of a federation agree on before the first round, and its subject.

Every party derives the plan itself, from its own copy of the configuration and its own installed
software: events with their sensitivities, and how many numbers it sends to each collective. Equal
subjects mean that all derived the same. A coordinator compares subjects and has no say in them.
"""

import hashlib
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from ..mechanisms.collectives import Noted
from ..mechanisms.data_shape import DataShape
from ..mechanisms.encoding import Json, canonical_json, subject_hash
from ..mechanisms.errors import InvalidParameter, Number, require_open_unit
from ..mechanisms.events import Event, UnprotectedRelease
from ..mechanisms.vertical_data import VerticalDataset, VerticalShape
from ..solvers.planning import Solves, plan_across_parties
from ..solvers.solver import ModelSolver
from ..solvers.threat_model import PER_PARTY, Summed, ThreatModel, summed_shape
from .summed import SummedTerms, plan_of_sums

__all__ = ["FederatedPlan", "RunStep", "StepKind", "federated_plan"]

PROTOCOL = 1
"""Of the messages: parties and coordinator speak the same one."""

_MOST_WIDTH = 1 << 20
"""Numbers of a message: 8 MiB, half of what a frame holds."""


class StepKind(Enum):
    """What the parties do together in a step."""

    AGREE = "agree"
    """Everybody says yes to the plan, or a reason."""
    PAY = "pay"
    """Everybody has paid for the whole plan, or says a reason."""
    MEAN = "mean"
    """Rows are added, in the parties' order."""
    EXCHANGE = "exchange"
    """Everybody gets the neighbours' rows."""
    SHARE = "share"
    """One party's numbers go to all."""
    SUM = "sum"
    """Whole numbers are added modulo 2^m; masks hide each party's (`aggregation`)."""
    FINISH = "finish"
    """Everybody hands in a certificate."""


class RunStep(NamedTuple):
    """One step of a run: its kind, the numbers that each party sends (0: texts), of sums m, and who
    alone sends any.
    """

    kind: StepKind
    width: int
    bits: int = 0
    sender: str = ""

    @property
    def agreed(self) -> list[Json]:
        """What of it stands in the plan's subject."""
        bits: list[Json] = [self.bits] if self.bits else []
        return [self.kind.value, self.width, *bits, *([self.sender] if self.sender else [])]


@dataclass(frozen=True, slots=True, eq=False)
class FederatedPlan:
    """What is agreed on. Made by `federated_plan`, and of columns by `plan_of_columns`.

    Args:
        solver: the algorithm, with its noise.
        shape: the public facts about all parties' data.
        delta: at which certificates state epsilon.
        algorithm: its name, as policies write it.
        configuration: SHA-256 of the configuration, schema included, as every party has it.
        events: what will be released, by every party of its own rows; of columns, by all parties.
        steps: of the run, in order.
        neighbours: of every party, by index, in order; none where nothing is exchanged.
        summed: the terms of a run of which sums alone are seen; None where every message is.
        assumptions: what is taken for granted beside what is written in the events; they follow
            from the configuration, and stand in every certificate.
        senders: of columns, whose each release is; "" where every party computes it.
    """

    solver: ModelSolver | Solves[VerticalDataset]
    shape: DataShape | VerticalShape
    delta: Number
    algorithm: str
    configuration: str
    events: tuple[Event, ...]
    steps: tuple[RunStep, ...]
    neighbours: tuple[tuple[int, ...], ...]
    summed: SummedTerms | None = None
    assumptions: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()

    @property
    def seen_shape(self) -> DataShape | VerticalShape:
        """The public facts as a party's own handle has them: of sums, those of one holder."""
        if self.summed is None or isinstance(self.shape, VerticalShape):
            return self.shape
        return summed_shape(self.shape)

    @property
    def threat_model(self) -> str:
        """The threat model's name, as policies write it."""
        return "per-party" if self.summed is None else "summed"

    @property
    def dropouts(self) -> int:
        """How many parties may drop out of the sums, after which the others go on."""
        return 0 if self.summed is None else self.summed.model.dropouts

    @property
    def parties(self) -> tuple[str, ...]:
        """Their names, in the order in which rows are added."""
        return self.shape.parties

    @property
    def subject(self) -> str:
        """The SHA-256 of all that parties must have in common."""
        parts: dict[str, Json] = {
            "protocol": PROTOCOL,
            "software": software(),
            "events": subject_hash(self.events),
            "parties": [*self.parties],
            "configuration": self.configuration,
            "algorithm": self.algorithm,
            "threat_model": "per-party" if self.summed is None else self.summed.text,
            "delta": str(self.delta),
            "steps": [step.agreed for step in self.steps],
            "neighbours": [[*them] for them in self.neighbours],
        }
        return hashlib.sha256(canonical_json(parts)).hexdigest()


def software() -> str:
    """Return the name and version of what runs here: sensitivities are as this version derives."""
    try:
        return f"dpledger {version('dpledger')}"
    except PackageNotFoundError:
        return "dpledger, not installed"


def federated_plan(
    solver: ModelSolver,
    shape: DataShape,
    *,
    delta: Number,
    algorithm: str,
    configuration: str,
    threat_model: ThreatModel = PER_PARTY,
    assumptions: tuple[str, ...] = (),
) -> FederatedPlan:
    """Return the plan of a solver on data of a public shape; no record is read.

    Raises `InvalidParameter` for a solver that releases something without a mechanism, that asks
    for no collective, or whose messages are longer than an engine carries; under `Summed`, what
    `plan_of_sums` raises.

    Args:
        solver: with its noise; planned on the shape alone, under `Summed` on `summed_shape` of it.
        shape: public: the parties, lower bounds on their records, the model's dimensions.
        delta: in (0, 1).
        algorithm: its name, as policies write it.
        configuration: SHA-256 of the configuration.
        threat_model: what an adversary sees; sums are simulated (`aggregation`).
        assumptions: what is taken for granted beside what is written in the events.
    """
    require_open_unit("delta", delta)

    def agreed(
        events: tuple[Event, ...],
        steps: tuple[RunStep, ...],
        neighbours: tuple[tuple[int, ...], ...],
        terms: SummedTerms | None,
    ) -> FederatedPlan:
        return FederatedPlan(
            *(solver, shape, delta, algorithm, configuration),
            *(events, steps, neighbours, terms, assumptions),
        )

    if isinstance(threat_model, Summed):
        terms = SummedTerms.of(threat_model, shape)
        released, sums = plan_of_sums(solver, shape, terms)
        require_carried(max((width for width, _ in sums), default=0))
        steps = all_steps([RunStep(StepKind.SUM, width, bits) for width, bits in sums])
        return agreed(released, steps, (), terms)
    events, asked = plan_across_parties(solver, shape)
    require_protected(events, algorithm)
    if not asked.calls:
        raise InvalidParameter("solver", algorithm, "one that asks for collectives of parties")
    neighbours = _neighbours(asked, len(shape.parties))
    widest = max(width for _, width in asked.calls) * max(map(len, neighbours), default=1)
    require_carried(widest)
    steps = all_steps([RunStep(StepKind(kind), width) for kind, width in asked.calls])
    return agreed(events, steps, neighbours, None)


def require_protected(events: tuple[Event, ...], algorithm: str) -> None:
    """Raise `InvalidParameter` for a solver that releases something without a mechanism."""
    for event in events:
        if isinstance(event.mechanism, UnprotectedRelease):
            raise InvalidParameter("solver", algorithm, "one that protects all it releases")


def all_steps(between: list[RunStep]) -> tuple[RunStep, ...]:
    """Return all steps of a run, given those of its solver."""
    agreed = (RunStep(StepKind.AGREE, 0), RunStep(StepKind.PAY, 0))
    return (*agreed, *between, RunStep(StepKind.FINISH, 0))


def require_carried(widest: int) -> None:
    """Raise `InvalidParameter` for messages that no frame holds."""
    if widest > _MOST_WIDTH:
        raise InvalidParameter("model", widest, f"of at most {_MOST_WIDTH} numbers in a message")


def _neighbours(asked: Noted, parties: int) -> tuple[tuple[int, ...], ...]:
    """Return the neighbours of every party, in order."""
    if asked.ends is None:
        return ()
    found: list[set[int]] = [set() for _ in range(parties)]
    for i, j in zip(*(ends.tolist() for ends in asked.ends), strict=True):
        found[i].add(j)
        found[j].add(i)
    return tuple(tuple(sorted(them)) for them in found)
