"""What a report says that events cannot tell, drawn from the configuration.

Sentences, no numbers but the configuration's own: who reads what, what was done to the records,
what no epsilon covers. Called by `runs.execution` for the report.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import msgspec

from ..audits.report import Narrative, StatementFacts
from ..data.schema import OnOutside
from ..mechanisms import Adjacency
from .configuration import Configuration
from .sections import Algorithm

_PACKAGES = ("dpledger", "numpy", "scipy", "python-flint", "dp-accounting")
"""Whose versions a report states: a number may depend on each of them."""

_READERS = {Algorithm.PR_ADMM: "the neighbours", Algorithm.CENTRALISED: "everybody"}
"""Who reads the messages of an algorithm, where it is not the server."""

_ALL_RECORDS = "none: every agent uses all of its records in every round"


def narrative(configuration: Configuration, *, description: str, demo: bool) -> Narrative:
    """Return the sentences for a run.

    Args:
        configuration: of the run.
        description: of the records.
        demo: whether it is the demo, whose settings were tuned on the very data set.

    Sentences that only people know are left None, and the report prints "not stated" for them.
    """
    tuned = (
        "The rule that derives this demonstration's settings was tuned on 20,000 records of this "
        "very data set (docs/utility.md), some of which it trains on and tests with: that is an "
        "access which no epsilon covers."
        if demo
        else None
    )
    if tuned is None and configuration.statement.tuning is not None:
        tuned = "as the holder of the data states, below"
    algorithm = configuration.solver.algorithm
    return Narrative(
        assumes="The server follows the protocol and reads everything it is sent; agents keep "
        "their records, their noise and their random seeds to themselves.",
        published=f"every message of every round, to {_READERS.get(algorithm, 'the server')}; "
        "the models of all rounds",
        sampling_claimed=_sampling(configuration),
        data=description,
        preprocessing=_preprocessing(configuration),
        tuning=tuned,
        post_processing="The server's averages, momentum and the dual variables are functions of "
        "messages.",
        not_covered=(
            "baselines and attack trials in this report are experiments of the data's holder; "
            "they are not in the ledger and must not be published beside a real release",
        ),
    )


def _sampling(configuration: Configuration) -> str:
    """Return which records a round looks at."""
    if configuration.solver.algorithm is Algorithm.ADMM:
        return "none"
    if configuration.solver.batch is None:
        return _ALL_RECORDS
    fixed = configuration.privacy.adjacency is Adjacency.REPLACE_ONE
    often = "exactly" if fixed else "on average"
    return f"every agent draws {often} {configuration.solver.batch} of its records in every round"


def statement(configuration: Configuration) -> StatementFacts:
    """Return what the holder of the data states."""
    return StatementFacts(**msgspec.structs.asdict(configuration.statement))


def _preprocessing(configuration: Configuration) -> str:
    """Return what the program does to the records that it reads."""
    schema = configuration.schema
    outside = "moved to the nearest bound" if schema.on_outside is OnOutside.CLIP else "refused"
    missing = "dropped" if schema.drop_missing else "refused"
    return (
        f"Record by record, by the public schema: numbers outside their bounds are {outside} "
        f"(unless a column says otherwise), records with missing values are {missing}, longer rows "
        "are scaled down to the norm bound. One record changes one row."
    )


def versions() -> tuple[tuple[str, str], ...]:
    """Return (package, version) of what a run's numbers depend on; those not installed are left
    out.
    """
    found: list[tuple[str, str]] = []
    for package in _PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)
