"""What a caller wants of a run besides its configuration, and what came of it.

Made by `runs.execution`, read by its report (`runs.reporting`) and by what shows it to people
(`runs.outcomes`). What is a finding is said here (`RunResult.is_finding`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..accounting.guarantees import Guarantee
from ..accounting.proof.certificate import Certificate
from ..audits.report import Crosschecks, Skipped
from ..mechanisms import Event
from .attack import RunAttack
from .pipeline import Plan
from .training import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the caller wants of a run besides its configuration.

    Args:
        name: of the run, in the ledger and the report; that of the configuration's file without it.
        out: folder for the run's files; a new one under dpledger-runs/ without it.
        resume: folder of a run that broke off, to go on with it in place of a new one.
        ledger: file that the run is written to and paid from; a new one in the folder without it.
        anchor: file elsewhere that remembers how far the ledger had come; None for none.
        attack: whether to attack the plan by replay.
        baselines: whether to train the baselines for comparison.
        crosscheck: whether to ask dp-accounting as well.

    Nothing here changes what is released: two runs of one configuration with different options have
    one hash.
    """

    name: str | None = None
    out: Path | None = None
    resume: Path | None = None
    ledger: Path | None = None
    anchor: Path | None = None
    attack: bool = True
    baselines: bool = True
    crosscheck: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class TrainedModel:
    """A trained model, how well it does, and how private it is in words.

    Args:
        name: of the algorithm.
        training: the last public state, and the accuracy after every round.
        guarantee: an epsilon with its grade, or why there is none.
    """

    name: str
    training: Training
    guarantee: str


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class RunResult:
    """What came of a run.

    Args:
        name: of the run in the ledger.
        title: the algorithm and the data, in words.
        folder: where the files are.
        plan: what was to be released.
        events: what was released of the plan, all of which the ledger counts as spent.
        certificate: of the plan; None where a release is unprotected.
        ledger_head: the last hash of the ledger's chain.
        models: the private model first, then the baselines.
        crosschecks: what other libraries say of the plan, or why they were not asked.
        attack: what the replay attack shows; None where there was none.
        unit: whom the guarantee is for, in words.
    """

    name: str
    title: str
    unit: str
    folder: Path
    plan: Plan
    events: tuple[Event, ...]
    certificate: Certificate | None
    ledger_head: str
    models: tuple[TrainedModel, ...]
    crosschecks: Crosschecks | Skipped
    attack: RunAttack | None

    @property
    def guarantee(self) -> Guarantee:
        """What the plan guarantees."""
        return self.plan.guarantee

    @property
    def kept_to_plan(self) -> bool:
        """Whether the events are those of the plan, in order."""
        return self.plan.events == self.events

    @property
    def crosschecks_agree(self) -> bool | None:
        """Whether other libraries agree; None where they were not asked."""
        return None if isinstance(self.crosschecks, Skipped) else self.crosschecks.agree

    @property
    def is_finding(self) -> bool:
        """Whether anything is wrong: a leak, a broken plan, a disagreement, an attack's finding."""
        return (
            self.plan.is_finding
            or self.crosschecks_agree is False
            or not self.kept_to_plan
            or (self.attack is not None and self.attack.result.is_finding)
        )
