"""A configured run from plan to report: what `dpledger run` and the demo do, as a library call.

In comes a configuration; out go a trained model, a ledger with every release, a certificate, and a
report with cross-checks and an attack. The order is the promise: plan, prove, reserve the whole
plan, and only then draw noise. Rows and JSON for
people are made by `runs.outcomes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

import msgspec
import numpy as np

from ..accounting.guarantees import Guarantee
from ..accounting.ledger import Head, SqliteLedger
from ..accounting.numbers.enclosure import shown_up
from ..accounting.proof.proved import proved
from ..audits.report import holders_file, to_json, write_pages
from ..data import LabelledRecords
from ..data.strict import ConfigurationError
from ..federation.prepaid import PrepaidRun
from ..mechanisms import Event, EventList, PrivateDataset, SamplingCurator
from ..mechanisms.encoding import subject_hash
from ..mechanisms.errors import DpledgerError, InvalidParameter
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sensitivity import float_up
from ..solvers import PvpAdmm
from .attack import require_attackable, run_attack
from .configuration import Configuration, read_configuration
from .models import ModelFile, classes_of
from .pipeline import Plan
from .planning import plan, planned_events
from .reporting import crosschecks_with_others, report_of_run
from .results import RunOptions, RunResult, TrainedModel
from .resuming import RunRecord
from .sections import LossName
from .training import (
    HOLDERS_COPY,
    Progress,
    StartProgress,
    Training,
    converged,
    new_folder,
    train,
    warn_of_new,
    weights,
)


def run(
    configuration: Configuration | Path | str,
    options: RunOptions | None = None,
    start: StartProgress | None = None,
) -> RunResult:
    """Plan, train through the ledger, certify, cross-check, attack, and write the report.

    Args:
        configuration: of the run, or the TOML file that it stands in.
        options: what is wanted besides; all parts, in a new folder, without them.
        start: called with each thing that is begun; returns what is called as it goes on.

    Files stand in a new folder: configuration, ledger, certificate, model, report in three forms.
    A seed of noise stands in the ledger and in `configuration.holder.toml` only, which stay with
    the data's holder.
    A run that breaks off goes on with `RunOptions.resume` (see `resuming`).
    The whole plan is proved, and paid for in one piece, before the first release. Raises before
    anything is spent if the plan, its proof, the data or the budget do not allow the run; of runs
    that start at once on one budget, those that it does not pay for are refused.
    """
    start = _silent if start is None else start
    options = options or RunOptions()
    name = options.name or "run"
    if isinstance(configuration, Configuration):
        text = configuration.toml
    else:
        path = Path(configuration)
        configuration = read_configuration(path)
        name, text = options.name or path.stem, path.read_text(encoding="utf-8")
    planned = plan(configuration)
    if options.attack and not planned.is_finding:
        require_attackable(configuration)
    baselines = _planned_baselines(configuration, planned) if options.baselines else []
    records, test = configuration.records()
    dataset = configuration.private(records)
    record = _begun(configuration, options, planned, records, name, text)
    with record:
        with SqliteLedger(record.ledger, anchor=record.anchor) as ledger:
            trained = _train(configuration, planned, dataset, test, ledger, record, start)
        result = _concluded(
            configuration, options, planned, baselines, trained, record, dataset, test, start
        )
        record.end()
    return result


def _begun(
    configuration: Configuration,
    options: RunOptions,
    planned: Plan,
    records: LabelledRecords,
    name: str,
    text: str,
) -> RunRecord:
    """Return the record of a run: a new one in a new folder, or that of one that broke off.

    Args:
        configuration: of the run.
        options: say where it writes, which ledger pays, and whether it resumes.
        planned: the plan, which a ledger with a budget must be able to pay.
        records: to train on.
        name: of the run.
        text: the configuration as its file says it.

    Raises `ConfigurationError` for a run that cannot be resumed or noise that is not new,
    `BudgetExceeded` before anything is spent.
    """
    if options.resume is not None:
        if planned.is_finding:
            raise ConfigurationError(
                f"{options.resume}: Expected a run that keeps to a plan instead got one with "
                "unprotected releases, which pays as it goes: run anew."
            )
        return RunRecord.resume(
            options.resume, configuration, records, ledger=options.ledger, anchor=options.anchor
        )
    if options.ledger is not None:
        warn_of_new(options.ledger)
        with SqliteLedger(options.ledger, anchor=options.anchor) as ledger:
            _require_fresh_noise(configuration, ledger)
            ledger.require(planned.events)
    public, copies = _written_configuration(configuration, text)
    folder = new_folder(options.out, name, options.ledger, options.anchor, copies=copies)
    for file, copy in copies.items():
        held = holders_file(folder / file) if file == HOLDERS_COPY else folder / file
        held.write_bytes(copy)
    (folder / "configuration.toml").write_text(public, encoding="utf-8")
    paid_from = options.ledger or folder / "ledger.sqlite"
    return RunRecord.begin(
        folder, configuration, records, name=name, ledger=paid_from, anchor=options.anchor
    )


def _concluded(
    configuration: Configuration,
    options: RunOptions,
    planned: Plan,
    baselines: Sequence[_Baseline],
    trained: _Trained,
    record: RunRecord,
    dataset: PrivateDataset,
    test: LabelledRecords,
    start: StartProgress,
) -> RunResult:
    """Certify, compare, attack and report what was trained; write it all into the run's folder.

    Nothing here goes through the ledger: baselines and attack trials are experiments of the data's
    holder, and the report says that they must not be published beside the release.
    """
    folder = record.folder
    certificate = None if planned.proof is None else planned.proof.certificate
    model = weights(trained.training.state.model, configuration.shape.label_domain)
    np.save(folder / "model.npy", model)
    made = _model_file(configuration, planned, model)
    (folder / "model.json").write_bytes(msgspec.json.format(msgspec.json.encode(made)))
    if certificate is not None:
        certificate = certificate.given(*trained.circumstances)
        proved(
            certificate.to_json_bytes(),
            events=planned.events,
            delta=planned.guarantee.delta,
            epsilon=certificate.epsilon,
            adjacency=planned.guarantee.adjacency,
            group=planned.guarantee.group,
        )
        (folder / "certificate.json").write_bytes(certificate.to_json_bytes())
    promised = _promised(planned.guarantee)
    models = [TrainedModel(configuration.solver.label, trained.training, promised)]
    if baselines:
        models += _baselines(configuration, baselines, dataset, test, start)
    result = RunResult(
        name=trained.name,
        title=f"{configuration.solver.label} on {test.description}",
        unit=configuration.privacy.unit_text,
        folder=folder,
        plan=planned,
        events=trained.events,
        certificate=certificate,
        ledger_head=trained.head.hash,
        models=tuple(models),
        crosschecks=crosschecks_with_others(planned, configuration, options),
        attack=(
            run_attack(configuration, planned, progress=start("attack"))
            if options.attack and not planned.is_finding
            else None
        ),
    )
    report = report_of_run(configuration, options, result, record, test)
    holders_file(folder / "report.json").write_bytes(to_json(report))
    write_pages(report, folder)
    return result


def _model_file(configuration: Configuration, planned: Plan, model: FloatArray) -> ModelFile:
    """Return a model with all that applying it takes.

    Args:
        configuration: of the run.
        planned: whose guarantee the model has.
        model: of shape (d,) or (d, K).
    """
    schema, found = configuration.schema, planned.guarantee
    epsilon = found.epsilon.upper_float
    return ModelFile(
        algorithm=configuration.solver.label,
        schema=schema,
        features=(
            *schema.feature_names,
            *(("constant",) if configuration.solver.intercept else ()),
        ),
        classes=classes_of(schema),
        coefficients=tuple(map(tuple, model.reshape(len(model), -1).tolist())),
        epsilon=epsilon if isfinite(epsilon) else "infinity",
        delta=float_up(found.delta),
        adjacency=None if found.adjacency is None else found.adjacency.value,
        unit=configuration.privacy.unit_text,
        subject=subject_hash(planned.events),
    )


_Baseline = tuple[str, PvpAdmm, Guarantee]
"""A model to compare with: name, solver and what its plan costs."""


@dataclass(frozen=True, eq=False, slots=True)
class _Trained:
    """A training that the ledger has paid for.

    Args:
        name: of the run in the ledger.
        training: what came of it.
        events: what it released.
        head: the ledger's last row after it.
        circumstances: what the ledger says that a certificate of the run takes for granted.
    """

    name: str
    training: Training
    events: tuple[Event, ...]
    head: Head
    circumstances: tuple[str, ...]


def _train(
    configuration: Configuration,
    planned: Plan,
    dataset: PrivateDataset,
    test: LabelledRecords,
    ledger: SqliteLedger,
    record: RunRecord,
    start: StartProgress,
) -> _Trained:
    """Train what was planned, paid for as a whole before its first release.

    What leaks may depend on the data, its later noise included: it keeps to no plan, and pays as it
    goes.

    Args:
        configuration: of the run.
        planned: what is paid for before the first release.
        dataset: private, to train on.
        test: held out, for the accuracy after every round.
        ledger: that pays.
        record: of the run's messages.
        start: opens a report of progress.
    """
    run = ledger.run(record.name, configuration_hash=record.configuration, plan=planned.events)
    solver = configuration.solvers.noisy(planned.noise_multiplier)
    progress, sampler = start(configuration.solver.label), configuration.build_sampler()
    if planned.is_finding:
        curator = SamplingCurator(run, sampler)
        training = train(configuration, solver, dataset, test, curator, progress=progress)
        events = tuple(run.events())
    else:
        record.require_paid(run)
        paid = PrepaidRun(run, planned.events, sampler.provenance, resumed=record.resumed)
        recording = record.curator(paid, sampler)
        training = train(configuration, solver, dataset, test, recording, progress=progress)
        events = paid.released
    given = ledger.circumstances(record.name)
    return _Trained(record.name, training, events, ledger.last_row, given)


def _silent(description: str) -> Progress:
    """Open a report of progress that says nothing."""
    return lambda done, total: None


def _require_fresh_noise(configuration: Configuration, ledger: SqliteLedger) -> None:
    """Raise `ConfigurationError` if the ledger holds noise of this seed: it could be subtracted.

    Args:
        configuration: whose sampler would draw.
        ledger: that the run would be paid from; it alone is searched, as no other is known.
    """
    provenance = configuration.build_sampler().provenance
    if provenance.seed is None:
        return
    if any(found.provenance == provenance for found in ledger.reservations()):
        raise ConfigurationError(
            f"noise.seed must be new to {ledger.path}: equal noise in two "
            "runs can be subtracted. Nothing was spent."
        )


def _baselines(
    configuration: Configuration,
    baselines: Sequence[_Baseline],
    dataset: PrivateDataset,
    test: LabelledRecords,
    start: StartProgress,
) -> list[TrainedModel]:
    """Return PVP at the same noise multiplier, ADMM without noise, and the converged optimum.

    None enters a ledger. ADMM without noise has not converged after so many rounds: what privacy
    costs is the distance to the optimum of logistic regression, whose gradient's norm certifies it.

    Args:
        configuration: of the run.
        baselines: as planned, before the run paid.
        dataset: private, to train on.
        test: held out.
        start: opens a report of progress.

    Baselines read private records without a mechanism: they are the holder's experiments, for
    comparison in a report that stays with the holder.
    """
    models: list[TrainedModel] = []
    for name, solver, found in baselines:
        curator = SamplingCurator(EventList(), configuration.build_sampler())
        training = train(
            configuration, solver, dataset, test, curator, progress=start(f"baseline: {name}")
        )
        models.append(TrainedModel(name, training, _promised(found)))
    # without regularisation, separable data have no minimiser
    if configuration.solver.loss is LossName.LOGISTIC and configuration.solver.regularisation > 0.0:
        # where Newton's method does not end, which the records decide, the run has its model still
        with suppress(DpledgerError, np.linalg.LinAlgError):
            training, norm = converged(configuration)
            words = f"no privacy; |gradient| ≤ {shown_up(norm, digits=2)}"
            models.append(TrainedModel("Without privacy, converged", training, words))
    return models


def _planned_baselines(configuration: Configuration, planned: Plan) -> list[_Baseline]:
    """Return the baselines that are ADMM: name, solver and what its plan costs.

    Their minimisers are exact, which those of the run need not be: a penalty or a tolerance that
    the run never looks at may leave them without a plan. Asked before the run pays, so that no run
    is paid for whose report then cannot be written.

    Args:
        configuration: of the run.
        planned: whose noise multiplier PVP has.

    Raises `ConfigurationError` for settings with which they have no plan.
    """
    unconverged = f"ADMM without noise, {configuration.solver.rounds} rounds"
    found: list[_Baseline] = []
    try:
        for name, multiplier in (("PVP", planned.noise_multiplier), (unconverged, None)):
            solver = configuration.solvers.exact(multiplier)
            events = planned_events(configuration, solver)
            found.append((name, solver, configuration.terms.guarantee(events)))
    except InvalidParameter as error:
        raise ConfigurationError(
            f"baselines: {error} Or run without them (--no-baselines)."
        ) from error
    return found


def _written_configuration(configuration: Configuration, text: str) -> tuple[str, dict[str, bytes]]:
    """Return what ran, for its readers, and what its holder keeps beside it, by file name.

    What has a seed of noise is in full for the holder alone. The schema stands beside it, and of
    the records' files the names only: the plan can be made again from the folder alone.

    Args:
        configuration: of the run.
        text: as the user's file says it, comments included.
    """
    copies = {}
    path = configuration.data.schema_path
    if path is not None:
        copies["schema.toml"] = path.read_bytes()
        configuration = configuration.beside("schema.toml")
        text = configuration.toml
    if configuration.noise.seed is not None:
        copies[HOLDERS_COPY] = text.encode()
        text = configuration.public_toml
    return text, copies


def _promised(found: Guarantee) -> str:
    """Return a guarantee as a text: epsilon rounded up, delta, grade; or that there is none.

    Of a plan that is proved the epsilon is the certificate's.
    """
    if found.unprotected:
        return "no privacy"
    epsilon = shown_up(found.epsilon.upper_float, digits=6)
    return f"ε ≤ {epsilon} at δ = {shown_up(float_up(found.delta))}, {found.grade.value}"
