"""Claims of a user's own that speak of runs: a claim in a file, and a finished run's ledger.

A claim may name a run's configuration, which is planned; a ledger's run may be attacked where its
configuration, and so its data, are at hand.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..accounting.ledger import SqliteLedger
from ..accounting.ledger.ledger import HISTORY
from ..audits.claims import Finding
from ..audits.claims.claim import DerivationEvidence
from ..audits.claims.claim_file import ClaimFile, Function, Tuning, file_beside, read_claim
from ..audits.claims.finished_run import (
    NOT_ATTACKED,
    JudgedPromise,
    assumed_of,
    attack_check,
    granted,
    judge_ledger,
    unstated,
)
from ..audits.claims.own import OwnPromise, judged_events
from ..audits.claims.own_function import judged_function, load_function, reference
from ..audits.claims.policy import Check, final_verdict
from ..audits.falsifier import ReplacedRecord
from ..audits.visible_text import in_a_line
from ..data.strict import ConfigurationError
from ..interop import read
from ..interop.dp_events import BOUNDS
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import InvalidParameter
from .attack import run_attack
from .configuration import Configuration, read_configuration
from .planning import plan
from .training import StartProgress

_MOST_RELEASES = 20_000
"""Rounds of a configuration that a claim names: its plan lists every release, in bounded time."""

_MOST_PARTIES = 10_000
"""Of such a configuration, likewise."""


def judge_claim_file(path: Path, *, run_code: bool = False) -> JudgedPromise:
    """Return what the court finds about the claim in a TOML file.

    Args:
        path: the file.
        run_code: whether to run the Python file that the claim may name, unprotected.

    Raises `ConfigurationError` for a file that is no claim, or whose code may not be run.

    A search for a sensitivity, a plan, or a list of releases, whichever the file speaks of; then
    the policy of verdicts, which weighs whether settings were tuned on the records
    (`final_verdict`).
    """
    claim, planned = read_claim(path), tuple[Check, ...]()
    if claim.function is not None:
        finding = _of_function(path, claim, claim.function, run_code=run_code)
    elif claim.run is not None:
        finding, planned = _of_plan(file_beside(path, claim.run), claim)
    else:
        finding = claim.judged()
    accounted = claim.tuning is not Tuning.UNACCOUNTED
    finding = final_verdict(finding, accounted_tuning=accounted)
    priced = [each for each in finding.evidence if isinstance(each, DerivationEvidence)]
    assumed = [text for each in priced for text in assumed_of(each.events, each.delta, each.group)]
    return JudgedPromise(claim.title, finding, (*planned, *granted(assumed)), claim.missing)


def judge_foreign_file(
    kind: str, path: Path, promise: OwnPromise, *, adjacency: Adjacency
) -> JudgedPromise:
    """Return what the court finds about a promise for the releases of another tool's file.

    Args:
        kind: one of `interop.KINDS`.
        path: the file.
        promise: of all its releases together.
        adjacency: the relation that its numbers are read under.

    Raises as `interop.read` does.

    Beside the verdict stands what the file does not state, and what its price takes for granted.
    """
    events = read(kind, path, adjacency=adjacency)
    assumed = assumed_of(events, promise.delta)
    finding = final_verdict(judged_events(events, promise, bounded=bool(BOUNDS & {*assumed})))
    # a hearing of a ledger names the same; here nobody wrote a certificate that would
    checks = granted([HISTORY, *assumed])
    return JudgedPromise(f"{kind}: {path.name}", finding, checks, unstated("a file"))


def judge_finished_run(
    path: Path,
    promise: OwnPromise,
    *,
    run: str | None = None,
    configuration: Path | None = None,
    start: StartProgress | None = None,
) -> JudgedPromise:
    """Return what the court finds about a promise for the runs of a ledger.

    Args:
        path: the ledger.
        promise: of all of its runs together, or of `run`.
        run: one run's name.
        configuration: of the runs, whose data are at hand: they are attacked by replay.
        start: called with what is begun; returns what is called as it goes on.

    Raises `ConfigurationError` for a file that is no ledger, has no such run, or is of another
    configuration.
    """

    def attack(hashes: set[str]) -> Check:
        if configuration is None:
            return Check("attack", f"{NOT_ATTACKED} (no --config)")
        return _attacked(configuration, promise, hashes, start)

    try:
        with SqliteLedger(path, read_only=True) as ledger:
            title = f"{path.name}: {run or 'all runs'}"
            return judge_ledger(ledger, promise, title=title, run=run, attack=attack)
    except sqlite3.Error as error:
        raise ConfigurationError(f"{path}: Expected a ledger ({error}).") from error
    except InvalidParameter as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _of_function(path: Path, claim: ClaimFile, function: Function, *, run_code: bool) -> Finding:
    """Return what the falsifier finds about a promised sensitivity of the code that a claim names.

    Raises `ConfigurationError`, before anything runs, where the relation or leave to run is
    missing.
    """
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
    released = load_function(file_beside(path, file), name)
    return judged_function(released, domain, claim.promise.sensitivity)


def _of_plan(path: Path, claim: ClaimFile) -> tuple[Finding, tuple[Check, ...]]:
    """Judge what a run's configuration plans, and say for whom; no record is read.

    Args:
        path: the configuration, beside the claim's file.
        claim: whose relation, if it states one, must be the plan's.
    """
    configuration = read_configuration(path)
    _require_small(path, configuration)
    stated, planned = claim.adjacency, configuration.privacy.adjacency
    if stated is not None and stated is not planned:
        raise ConfigurationError(
            f"{path}: Expected the claim's adjacency {stated.value} instead got {planned.value}."
        )
    # the promise is to whom the run plans for: a person with several records pays for all of them
    privacy = configuration.privacy
    finding = judged_events(plan(configuration).events, claim.promise.made(), group=privacy.group)
    taken = "" if claim.unit is None else f"; taken to be the claim's, {in_a_line(claim.unit)!r}"
    unit = f"a {privacy.unit_text}, as the run plans for{taken}"
    said = Check("relation", planned.value), Check("unit", unit)
    return finding, (*said, *granted(configuration.assumptions))


def _require_small(path: Path, configuration: Configuration) -> None:
    """Raise `ConfigurationError` for a plan that would keep the court busy for minutes."""
    solver, data = configuration.solver, configuration.data
    if solver.rounds * (solver.inner_steps or 1) > _MOST_RELEASES:
        raise ConfigurationError(f"{path}: Expected at most {_MOST_RELEASES} rounds.")
    if data.parties is not None and data.parties > _MOST_PARTIES:
        raise ConfigurationError(f"{path}: Expected at most {_MOST_PARTIES} parties.")


def _attacked(
    path: Path, promise: OwnPromise, hashes: set[str], start: StartProgress | None
) -> Check:
    """Attack by replay, where the ledger's runs were of this very configuration.

    Raises:
        ConfigurationError: for another configuration than the one whose hash the ledger has: an
            attack on other settings would say nothing of these runs.
    """
    configuration = read_configuration(path)
    if len(hashes) != 1 or not hashes <= configuration.known_as:
        raise ConfigurationError(
            f"{path}: Expected the configuration of the ledger's runs {sorted(hashes)} instead got "
            f"{configuration.sha256}."
        )
    planned = plan(configuration)
    if planned.is_finding:
        return Check("attack", "not done: what is unprotected needs no attack")
    progress = None if start is None else start("attack")
    return attack_check(run_attack(configuration, planned, progress=progress).result, promise)
