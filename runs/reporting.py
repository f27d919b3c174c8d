"""The report of an executed run: facts of the run, and what only its configuration can tell.

Called by `runs.execution` once all has been trained and checked; what is put together here is a
record, of which HTML, Markdown and the public page are renderings (`audits.report`). Readers learn
no seed of noise from it: whoever knows one could subtract the noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ..audits.crosschecks import crosscheck as compare
from ..audits.report import (
    AttackFacts,
    Crosschecks,
    ModelScore,
    Report,
    RunFacts,
    Skipped,
    UtilityFacts,
    build_report,
    crosschecks_of,
)
from ..data import LabelledRecords
from ..mechanisms.extras import MissingExtra
from .attack import RunAttack
from .configuration import KEPT_SEED, Configuration
from .narrative import narrative, statement, versions
from .pipeline import Plan
from .results import RunOptions, RunResult, TrainedModel
from .resuming import RunRecord


def crosschecks_with_others(
    planned: Plan, configuration: Configuration, options: RunOptions
) -> Crosschecks | Skipped:
    """Return what dp-accounting says of the plan, or why it was not asked.

    Its answer is of one record: dp-accounting has no rule for groups of these events.
    """
    if not options.crosscheck:
        return Skipped(reason="not asked for")
    try:
        found = compare(planned.events, delta=configuration.privacy.delta)
        if planned.guarantee.group > 1:
            found = replace(found, mapping=f"{found.mapping} Both epsilons are of one record.")
        return crosschecks_of(found)
    except MissingExtra as missing:
        return Skipped(reason=str(missing))


def report_of_run(
    configuration: Configuration,
    options: RunOptions,
    result: RunResult,
    record: RunRecord,
    held_out: LabelledRecords,
) -> Report:
    """Return the report's record: facts of the run, and sentences that events cannot tell.

    Args:
        configuration: shown to readers without its seed.
        options: say which parts were left out on purpose.
        result: of the run.
        record: of the run, with its name and its ledger.
        held_out: the records that were not trained on.
    """
    name = record.title
    return build_report(
        title=f"{configuration.solver.label}: {name}",
        events=result.events,
        guarantee=result.guarantee,
        crosschecks=result.crosschecks,
        attack=_attack_facts(configuration, options, result.attack),
        utility=_utility(result.models),
        run=RunFacts(
            configuration=_shown(configuration),
            configuration_sha256=configuration.sha256,
            ledger=record.ledger.name,
            ledger_head_sha256=result.ledger_head,
            run=result.name,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            provenance=configuration.build_sampler().provenance,
            certificate=None if result.certificate is None else "certificate.json",
            versions=versions(),
        ),
        unit=configuration.privacy.unit_text,
        records=sum(configuration.shape.counts),
        narrative=narrative(
            configuration,
            description=held_out.description,
            demo=name == "demo",
        ),
        statement=statement(configuration),
    )


def _shown(configuration: Configuration) -> str:
    """Return a configuration for readers, who learn no seed of noise: it could be subtracted.

    Nor do they learn where the holder's files lie.
    """
    schema = configuration.data.schema
    fields = msgspec.to_builtins(configuration.beside(schema and Path(schema).name))
    if fields["noise"].get("seed") is not None:
        fields["noise"]["seed"] = KEPT_SEED
    return msgspec.json.format(msgspec.json.encode(fields)).decode()


def _attack_facts(
    configuration: Configuration, options: RunOptions, attack: RunAttack | None
) -> AttackFacts | Skipped:
    """Return the attack for the report, or why there was none.

    The share of the plan's mu that this pair attains is known where a loss has the same gradient
    everywhere; without it the attack's bound says less.
    """
    if not options.attack:
        return Skipped(reason="not asked for")
    if attack is None:
        return Skipped(reason="the run is unprotected: there is nothing left to attack")
    some = configuration.attack.parties
    return AttackFacts(
        attack=f"replay of whole transcripts (log-likelihood ratio), {some} of "
        f"{len(configuration.shape.parties)} parties",
        result=attack.result,
        neighbour=attack.pair.description,
        share=attack.pair.share,
    )


def _utility(models: Sequence[TrainedModel]) -> UtilityFacts:
    """Return held-out accuracies for the report: of the final models, and after every round.

    Args:
        models: the private one first; held-out records are read without noise, which the report
            lists among the accesses that no epsilon covers.
    """
    return UtilityFacts(
        metric="accuracy on held-out records",
        scores=tuple(
            ModelScore(
                model=model.name,
                guarantee=model.guarantee,
                correct=model.training.accuracy.right,
                records=model.training.accuracy.total,
            )
            for model in models
        ),
        history={
            model.name: [(k, each.share) for k, each in enumerate(model.training.history, 1)]
            for model in models
        },
    )
