"""A small run with everything that a report can tell of."""

import numpy as np
import pytest
from msgspec import structs
from scipy.special import ndtri

from dpledger.accounting.guarantees import guarantee
from dpledger.audits.assessment import assess
from dpledger.audits.bounds import Scores
from dpledger.audits.report import (
    AttackFacts,
    Crosschecks,
    ModelScore,
    Narrative,
    Report,
    RunFacts,
    StatementFacts,
    UtilityFacts,
    build_report,
)
from dpledger.audits.report.record import Interval, PeerAnswer, UnprotectedGroup
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    Event,
    GaussianStep,
    Provenance,
    UnprotectedRelease,
    declared,
)

DELTA = 1e-5


@pytest.fixture
def events() -> tuple[Event, ...]:
    """Two parties, four rounds, one message each a round: mu² = 4 / noise_std² = 1."""
    sensitivity = declared(1, "an example", adjacency=Adjacency.REPLACE_ONE)
    step = GaussianStep(sensitivity, 2.0)
    return tuple(
        Event(step, Context(("north", "south"), k, "mean", Audience.SERVER)) for k in range(1, 5)
    )


@pytest.fixture
def leak() -> Event:
    """A message without a mechanism."""
    mechanism = UnprotectedRelease("pre-training without noise")
    return Event(mechanism, Context(("north",), 0, "warm start", Audience.PUBLIC))


@pytest.fixture
def attack(events: tuple[Event, ...]) -> AttackFacts:
    """Scores at the quantiles of their laws under a mu-GDP mechanism, mu = 1: nothing is drawn."""
    quantiles = ndtri((np.arange(60) + 0.5) / 60)
    result = assess(
        Scores(0.5 + quantiles, -0.5 + quantiles),
        Scores(0.5 + quantiles, 0.5 + quantiles),
        claimed=guarantee(events, delta=DELTA).notion,
        delta=DELTA,
        confidence=0.95,
    )
    return AttackFacts(attack="replay", result=result, neighbour="a label flipped", share=0.5)


@pytest.fixture
def crosschecks() -> Crosschecks:
    """One peer's answer, typed in: here only its print is looked at."""
    answer = PeerAnswer(
        peer="peer",
        status="agree",
        epsilon=4.25,
        relative_gap=0.125,
        explained=True,
        explanation="a coarse grid",
    )
    return Crosschecks(
        agree=True,
        delta=DELTA,
        ours=Interval(lower=4.0, upper=4.125),
        mapping="one to one",
        peers=(answer,),
    )


@pytest.fixture
def report(events: tuple[Event, ...], attack: AttackFacts, crosschecks: Crosschecks) -> Report:
    """A record in which nothing is missing."""
    made = build_report(
        title="An example",
        events=events,
        guarantee=guarantee(events, delta=DELTA),
        crosschecks=crosschecks,
        attack=attack,
        utility=UtilityFacts(
            metric="accuracy",
            scores=(ModelScore(model="ours", guarantee="a promise", correct=80, records=100),),
            history={"ours": [(1, 0.5), (2, 0.625)]},
        ),
        run=RunFacts(
            configuration="[solver]\nrounds = 4\n",
            configuration_sha256="c" * 64,
            ledger="ledger",
            ledger_head_sha256="d" * 64,
            run="run 1",
            date="2026-01-01",
            provenance=Provenance("numpy-philox", 7),
            certificate="run.cert.json",
            versions=(("dpledger", "0.1.0"),),
        ),
        narrative=Narrative(
            assumes="no collusion",
            published="the final model",
            sampling_claimed="no sampling",
            data="one hundred records",
            preprocessing="rows are clipped",
            tuning="on public data",
            post_processing="averages of messages",
            not_covered=("a look at the data",),
            limitations=("it is small",),
        ),
        records=120,
        statement=StatementFacts(
            purpose="an example of a report",
            contact="privacy@example.org",
            unit="a visitor with one visit",
            bounds="the survey's questionnaire",
            preprocessing="names were removed",
            tuning="settings of an earlier survey",
            retention="two years",
            refresh="never",
        ),
    )
    leaked = UnprotectedGroup(release="warm start", messages=3, reason="no noise")
    # few points, because many tests render the record once for every field
    return structs.replace(
        made,
        access=structs.replace(made.access, unprotected=(leaked,)),
        privacy=structs.replace(made.privacy, curve=made.privacy.curve[::16]),
        audit=structs.replace(made.audit, roc=made.audit.roc[::16]),
    )
