"""`dpledger claims check`: the court for a claim of the user's own, or anyone's finished run."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..accounting.ledger import SqliteLedger
from ..audits.claims import ClaimVerdict, Finding
from ..audits.claims.claim_file import (
    ClaimFile,
    Function,
    Tuning,
    beside,
    promise_from_text,
    read_claim,
)
from ..audits.claims.finished_run import NOT_ATTACKED, attack_check, judge_ledger
from ..audits.claims.hearing import describe
from ..audits.claims.own import OwnPromise, judged, judged_events
from ..audits.claims.own_function import judged_function, load_function, reference
from ..audits.claims.policy import Check, final_verdict
from ..audits.falsifier import ReplacedRecord
from ..data.strict import (
    ConfigurationError,
)
from ..mechanisms.errors import InvalidParameter
from ..runs.attack import run_attack
from ..runs.configuration import (
    Configuration,
    read_configuration,
)
from ..runs.planning import (
    plan,
)
from .findings import finding_data
from .output import Outcome, deliver, json_option, shown_down, shown_up, steps

__all__ = ["check"]

_MOST_RELEASES = 20_000
_MOST_PARTIES = 10_000
_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("claim_path", metavar="[CLAIM]", required=False, type=_file)
@click.option("--run-code", is_flag=True, help="Run the Python file that CLAIM names, unprotected.")
@click.option("--ledger", "ledger_path", type=_file, help="Check a finished run instead of CLAIM.")
@click.option("--run", "run_name", help="With --ledger: of this run only.")
@click.option("--promise", help='With --ledger: such as "epsilon=1, delta=1e-5", or rho, or mu.')
@click.option(
    "--config",
    "configuration_path",
    type=_file,
    help="With --ledger: the run's configuration, whose data are at hand: attack it.",
)
@json_option
def check(
    claim_path: Path | None,
    run_code: bool,
    ledger_path: Path | None,
    run_name: str | None,
    promise: str | None,
    configuration_path: Path | None,
    as_json: bool,
) -> None:
    """Judge the claim in the TOML file CLAIM, or a finished run: --ledger FILE --promise TEXT.

    Exit status 0 if the promise holds, 1 if it does not or too little is stated, 2 for a file that
    is no claim, 3 where nothing is missing and it cannot be decided: no rule applies, or it takes
    too much work. What is not stated is named.
    """
    if (claim_path is None) == (ledger_path is None):
        raise click.UsageError("Expected either CLAIM or --ledger.")
    if ledger_path is not None:
        if promise is None or run_code:
            raise click.UsageError("Expected --promise, and no --run-code, with --ledger.")
        outcome = _ledger_outcome(
            ledger_path, run_name, promise_from_text(promise), configuration_path
        )
    else:
        if any(option is not None for option in (promise, run_name, configuration_path)):
            raise click.UsageError("Expected --promise, --run and --config with --ledger only.")
        assert claim_path is not None
        outcome = _claim_outcome(claim_path, run_code=run_code)
    deliver(outcome, as_json=as_json)


# --- a claim in a file -------------------------------------------------------------------------


def _claim_outcome(path: Path, *, run_code: bool) -> Outcome:
    claim = read_claim(path)
    missing = [
        f"{name}: not stated"
        for name, value in (
            ("unit of privacy", claim.unit),
            ("preprocessing", claim.preprocessing),
            ("tuning of settings", claim.tuning),
        )
        if value is None
    ]
    if claim.function is not None:
        finding = _function_finding(path, claim, claim.function, run_code=run_code)
    elif claim.run is not None:
        finding = _planned_finding(beside(path, claim.run), claim)
    else:
        releases = [release.made() for release in claim.releases]
        finding = judged(releases, claim.promise.made(), adjacency=claim.adjacency)
    accounted = claim.tuning is not Tuning.UNACCOUNTED
    return _outcome(claim.title, final_verdict(finding, accounted_tuning=accounted), missing, ())


def _function_finding(
    path: Path, claim: ClaimFile, function: Function, *, run_code: bool
) -> Finding:
    file, name = reference(function.code)
    if claim.adjacency is None:
        raise ConfigurationError(
            f"{path}: Expected adjacency with [function]: the search needs it."
        )
    if not run_code:
        raise ConfigurationError(
            f"{path}: Expected --run-code, for the claim is about the code in {file}; it would run "
            "with all that you may do. Nothing was executed."
        )
    released = load_function(beside(path, file), name)
    domain = ReplacedRecord(
        function.count,
        function.features,
        claim.adjacency,
        row_bound=function.row_bound,
        labels=function.labels,
        public=function.public,
        public_bound=function.public_bound,
    )
    assert claim.promise.sensitivity is not None
    return judged_function(released, domain, claim.promise.sensitivity)


def _planned_finding(path: Path, claim: ClaimFile) -> Finding:
    """Judge what a run's configuration plans; no record is read."""
    configuration = read_configuration(path)
    _require_small(path, configuration)
    stated, planned = claim.adjacency, configuration.privacy.adjacency
    if stated is not None and stated is not planned:
        raise ConfigurationError(
            f"{path}: Expected the claim's adjacency {stated.value} instead got {planned.value}."
        )
    return judged_events(plan(configuration).events, claim.promise.made())


def _require_small(path: Path, configuration: Configuration) -> None:
    solver, data = configuration.solver, configuration.data
    releases = solver.rounds * (solver.inner_steps or 1)
    if releases > _MOST_RELEASES:
        raise ConfigurationError(f"{path}: Expected at most {_MOST_RELEASES} rounds.")
    if data.parties is not None and data.parties > _MOST_PARTIES:
        raise ConfigurationError(f"{path}: Expected at most {_MOST_PARTIES} parties.")


# --- a finished run ----------------------------------------------------------------------------


def _ledger_outcome(
    path: Path, run_name: str | None, promise: OwnPromise, configuration_path: Path | None
) -> Outcome:
    def attack(hashes: set[str]) -> Check:
        return _attacked(configuration_path, promise, hashes)

    try:
        with SqliteLedger(path, read_only=True) as ledger:
            found = judge_ledger(ledger, promise, run=run_name, attack=attack)
    except sqlite3.Error as error:
        raise ConfigurationError(f"{path}: Expected a ledger ({error}).") from error
    except InvalidParameter as error:
        raise ConfigurationError(f"{path}: {error}") from error
    return _outcome(
        f"{path.name}: {run_name or 'all runs'}", found.finding, found.missing, found.checks
    )


def _attacked(path: Path | None, promise: OwnPromise, hashes: set[str]) -> Check:
    """Attack by replay, where the data are at hand and the ledger's run was this very one."""
    if path is None:
        return Check("attack", f"{NOT_ATTACKED} (no --config)")
    configuration = read_configuration(path)
    if hashes != {configuration.sha256}:
        raise ConfigurationError(
            f"{path}: Expected the configuration of the ledger's runs {sorted(hashes)} instead got "
            f"{configuration.sha256}."
        )
    made = plan(configuration)
    if made.guarantee.unprotected:
        return Check("attack", "not done: what is unprotected needs no attack")
    with steps() as start:
        attacked = run_attack(configuration, made, progress=start("attack"))
    return attack_check(attacked.result, promise)


# --- what is printed ---------------------------------------------------------------------------


def _outcome(
    title: str,
    finding: Finding,
    missing: Sequence[str],
    checks: Sequence[Check],
) -> Outcome:
    text = finding.verdict_text
    rows = [("verdict", text), ("because", finding.reason)]
    if finding.claimed is not None:
        rows.append(("claimed", f"{finding.claimed.lower_float:.10g} {finding.unit}"))
    rows += [("reading", f"{name}: {_range(cost)}") for name, cost in finding.figures.items()]
    rows += [("not stated", each.removeprefix("not stated: ")) for each in finding.argument]
    rows += [("not stated", each.removesuffix(": not stated")) for each in missing]
    marks = {True: "", False: "WRONG: ", None: ""}
    rows += [(each.name, marks[each.passed] + each.text) for each in checks]
    rows += [("evidence", describe(each)) for each in finding.evidence]
    data: dict[str, Any] = {
        "claim": title,
        **finding_data(finding),
        "missing": [*finding.argument, *missing],
        "checks": [{"name": c.name, "text": c.text, "passed": c.passed} for c in checks],
    }
    undecided = finding.verdict is ClaimVerdict.UNDECIDED
    return Outcome(
        f"Claim: {title}", data, tuple(rows), finding=finding.is_finding, undecided=undecided
    )


def _range(cost: Any) -> str:
    return f"[{shown_down(cost.lower_float, digits=6)}, {shown_up(cost.upper_float, digits=6)}]"
