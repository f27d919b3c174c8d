"""A whole run, from plan to report: what `run` and `demo` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.table import Table

from ..accounting.check.pld_checker import check
from ..accounting.guarantees import Guarantee
from ..accounting.ledger import SqliteLedger
from ..audits.crosscheck import MissingExtra
from ..audits.crosscheck import crosscheck as compare
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
    to_html,
    to_json,
    to_markdown,
)
from ..data import LabelledRecords
from ..data.strict import ConfigurationError
from ..mechanisms import EventList, PrivateDataset
from ..runs.configuration import Configuration
from ..runs.narrative import narrative, versions
from ..runs.study import (
    Plan,
    Training,
    certified,
    guaranteed,
    new_folder,
    plan,
    planned_events,
    train,
    weights,
)
from .attack import attack_outcome, run_attack
from .output import Advance, Outcome, guarantee_data, shown, shown_up

__all__ = ["Wishes", "carry_out"]

Start = Callable[[str], Advance]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the caller wants of a run besides its configuration."""

    name: str
    text: str
    out: Path | None = None
    ledger: Path | None = None
    attack: bool = True
    baselines: bool = True
    crosscheck: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class _Model:
    """A trained model beside others, and how private it is."""

    name: str
    training: Training
    guarantee: str


def carry_out(configuration: Configuration, wishes: Wishes, start: Start) -> Outcome:
    """Plan, train through the ledger, certify, cross-check, attack, and write the report.

    Files stand in a new folder: configuration, ledger, certificate, model, report in three forms.
    Raises before anything is spent if the plan, the data or the budget do not allow the run.
    """
    made = plan(configuration)
    dataset, test = configuration.load()
    folder = new_folder(wishes.out, wishes.name)
    (folder / "configuration.toml").write_text(wishes.text, encoding="utf-8")
    solver = configuration.solvers.noisy(made.noise_multiplier)
    ledger_path = wishes.ledger or folder / "ledger.sqlite"
    name = f"{wishes.name} {datetime.now(UTC).isoformat(timespec='microseconds')}"
    with SqliteLedger(ledger_path) as ledger:
        _require_fresh_noise(configuration, ledger)
        sink = ledger.run(name, configuration_hash=configuration.sha256, plan=made.events)
        training = train(
            configuration, solver, dataset, test, sink, progress=start(configuration.solver.label)
        )
        events, head = tuple(sink.events()), ledger.head
    np.save(folder / "model.npy", weights(training.state.model, configuration.shape.label_domain))
    found = guaranteed(configuration, events)
    certificate = None if found.unprotected else folder / "certificate.json"
    if certificate is not None:
        document = certified(configuration, events).to_json_bytes()
        check(document)
        certificate.write_bytes(document)
    models = [_Model(configuration.solver.label, training, _promised(found))]
    if wishes.baselines:
        models += _baselines(configuration, made, dataset, test, start)
    crosschecks = _crosschecks(made, configuration, wishes)
    agrees = None if isinstance(crosschecks, Skipped) else crosschecks.agree
    attack, attacked = _attacked(configuration, made, wishes, start)
    report = build_report(
        title=f"{configuration.solver.label}: {wishes.name}",
        events=events,
        guarantee=found,
        crosschecks=crosschecks,
        attack=attack,
        utility=_utility(models),
        run=RunFacts(
            configuration=msgspec.json.format(msgspec.json.encode(configuration)).decode(),
            configuration_sha256=configuration.sha256,
            ledger=ledger_path.name,
            ledger_head_sha256=head,
            run=name,
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            provenance=configuration.build_sampler().provenance,
            certificate=None if certificate is None else certificate.name,
            versions=versions(),
        ),
        narrative=narrative(
            configuration, description=test.description, demo=wishes.name == "demo"
        ),
    )
    _write(report, folder)
    delta = shown_up(float(found.delta))
    return Outcome(
        title=f"{configuration.solver.label} on {test.description}",
        data={
            "run": name,
            "folder": str(folder),
            "guarantee": guarantee_data(found),
            "noise_multiplier": made.noise_multiplier,
            "plan_equals_run": made.events == events,
            "ledger_head": head,
            "models": [_model_data(model) for model in models],
            "crosschecks_agree": agrees,
            "attack": None if attacked is None else attacked.data,
        },
        rows=(
            ("epsilon", f"{shown(found.epsilon)} at delta {delta}, {found.grade.value}"),
            ("plan = run", "yes" if made.events == events else "NO"),
            ("cross-check", "skipped" if agrees is None else "agrees" if agrees else "DISAGREES"),
            *(() if attacked is None else (r for r in attacked.rows if r[0] != "note")),
            ("files", f"{folder}/report.html, .md, .json; certificate, ledger, model"),
        ),
        tables=(_accuracy_table(models), *(() if attacked is None else attacked.tables)),
        finding=bool(found.unprotected)
        or agrees is False
        or made.events != events
        or (attacked is not None and attacked.finding),
    )


def _require_fresh_noise(configuration: Configuration, ledger: SqliteLedger) -> None:
    """Raise `ConfigurationError` if the ledger holds noise of this seed: it could be subtracted."""
    provenance = configuration.build_sampler().provenance
    if provenance.seed is None:
        return
    if any(found.provenance == provenance for found in ledger.reservations()):
        raise ConfigurationError(
            f"Expected noise.seed={provenance.seed} to be new to {ledger.path}: equal noise in two "
            "runs can be subtracted. Nothing was spent."
        )


def _baselines(
    configuration: Configuration,
    made: Plan,
    dataset: PrivateDataset,
    test: LabelledRecords,
    start: Start,
) -> list[_Model]:
    """Return PVP at the same noise multiplier and ADMM without privacy; neither enters a ledger."""
    models: list[_Model] = []
    for name, multiplier in (("PVP", made.noise_multiplier), ("ADMM without privacy", None)):
        solver = configuration.solvers.exact(multiplier)
        events = planned_events(configuration, solver)
        found = guaranteed(configuration, events)
        training = train(
            configuration, solver, dataset, test, EventList(), progress=start(f"baseline: {name}")
        )
        models.append(_Model(name, training, _promised(found)))
    return models


def _promised(found: Guarantee) -> str:
    if found.unprotected:
        return "no privacy"
    epsilon = shown_up(found.epsilon.upper_float, digits=6)
    return f"ε ≤ {epsilon} at δ = {shown_up(float(found.delta))}, {found.grade.value}"


def _crosschecks(made: Plan, configuration: Configuration, wishes: Wishes) -> Crosschecks | Skipped:
    if not wishes.crosscheck:
        return Skipped(reason="not asked for")
    try:
        return crosschecks_of(compare(made.events, delta=configuration.privacy.delta))
    except MissingExtra as missing:
        return Skipped(reason=str(missing))


def _attacked(
    configuration: Configuration, made: Plan, wishes: Wishes, start: Start
) -> tuple[AttackFacts | Skipped, Outcome | None]:
    if not wishes.attack:
        return Skipped(reason="not asked for"), None
    if made.guarantee.unprotected:
        return Skipped(reason="the run is unprotected: there is nothing left to attack"), None
    pair, result = run_attack(configuration, made, progress=start("attack"))
    some = configuration.attack.parties
    facts = AttackFacts(
        attack=f"replay of whole transcripts (log-likelihood ratio), {some} of "
        f"{len(configuration.shape.parties)} parties",
        result=result,
        neighbour=pair.description,
        share=pair.share,
    )
    return facts, attack_outcome(pair, result)


def _utility(models: Sequence[_Model]) -> UtilityFacts:
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


def _model_data(model: _Model) -> dict[str, Any]:
    final = model.training.accuracy
    return {
        "model": model.name,
        "guarantee": model.guarantee,
        "right": final.right,
        "records": final.total,
        "accuracy": final.share,
    }


def _accuracy_table(models: Sequence[_Model]) -> Table:
    table = Table("model", "accuracy", "privacy", box=None)
    for model in models:
        table.add_row(model.name, f"{model.training.accuracy.share:.2%}", model.guarantee)
    return table


def _write(report: Report, folder: Path) -> None:
    (folder / "report.json").write_bytes(to_json(report))
    (folder / "report.html").write_text(to_html(report), encoding="utf-8")
    (folder / "report.md").write_text(to_markdown(report), encoding="utf-8")
