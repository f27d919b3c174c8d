"""Law: whatever `certify` proves, both checkers prove, or neither decides.

Every kind of mechanism under every relation, where all moves, only a part or nothing does, with
and without noise, at rates from 0 to 1, alone and beside others: alone and repeated, beside a
Gaussian step, at one party and in its part, in groups, by losses, by moments and within a filter.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import pytest

from dpledger.accounting.check import pld_checker
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.numbers.notions import Gdp, Rdp, Zcdp
from dpledger.accounting.proof.certificate import Uncertifiable, certify
from dpledger.accounting.proof.extracted import agrees, extracted_checker, run_extracted
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Norm,
    Parties,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    declared,
)
from dpledger.mechanisms.events import AccumulatedPoisson, SampledWithReplacement
from dpledger.mechanisms.sensitivity import Sensitivity, sum_of_bounded

DELTA = Fraction(1, 10**5)
RATES = (0.0, 0.125, 0.5)
BATCHES = ((2, 16), (1, 1), (3, 3))
AGAIN = ((2, 16), (2, 5), (2, 3), (3, 1))
"""Of draws with replacement a group leaves many others, few, or nobody."""
GROUPS = (1, 3)
BUDGETS = (Gdp(10), Zcdp(10), Rdp(8, 100))


def moving(relation: Adjacency, far: int, norm: Norm = Norm.L2) -> Sensitivity:
    return declared(far, "x", adjacency=relation, norm=norm)


def summed(relation: Adjacency, far: int) -> Sensitivity:
    return sum_of_bounded(far, relation)


def plain(relation: Adjacency) -> Iterator[Mechanism]:
    """Steps on all records; what moves by nothing needs no noise."""
    for far, noise in ((1, 8.0), (0, 8.0), (0, 0.0)):
        yield GaussianStep(moving(relation, far), noise)
        yield DiscreteGaussianStep(moving(relation, far), noise)
        for kind in (LaplaceStep, DiscreteLaplaceStep, PureStep):
            yield kind(moving(relation, far, Norm.L1), noise)
    if relation is Adjacency.REPLACE_ONE:
        yield from (RandomisedResponse(truth, 3) for truth in (0.75, 0.25))


def sampled(relation: Adjacency) -> Iterator[Mechanism]:
    """Gaussian and Laplace steps on samples of every kind."""
    for far, noise in ((1, 8.0), (0, 8.0), (0, 0.0)):
        steps = [GaussianStep(of(relation, far), noise) for of in (summed, moving)]
        laplace = LaplaceStep(moving(relation, far, Norm.L1), noise)
        for rate in RATES:
            yield from (PoissonSampled(step, rate) for step in (*steps, laplace))
            yield AccumulatedPoisson(steps[0], rate, 3)
        for batch in BATCHES:
            yield from (SampledWithoutReplacement(step, *batch) for step in (steps[1], laplace))
        yield from (SampledWithReplacement(steps[1], *batch) for batch in AGAIN)


def mixtures(relation: Adjacency) -> Iterator[Mechanism]:
    """Gaussian steps on what is of all records and what is of a sample; either may not move."""
    for of in (summed, moving):
        for constant, drawn, noise in (
            *((1, 1, 8.0), (0, 1, 8.0), (1, 0, 8.0), (0, 0, 8.0), (0, 0, 0.0)),
        ):
            for rate in RATES:
                always = moving(relation, constant)
                yield GaussianMixtureStep(always, of(relation, drawn), rate, noise)


KINDS = {"plain": plain, "sampled": sampled, "mixtures": mixtures}


def asked(
    one: Mechanism, relation: Adjacency
) -> Iterator[tuple[Sequence[Event], Mapping[str, object]]]:
    """Runs of a mechanism, and what is to be certified of them: alone by every route; repeated
    beside a Gaussian step, at one of two parties, and in its part of a mechanism, by some."""
    beside = GaussianStep(moving(relation, 1), 16.0)

    def event(mechanism: Mechanism, *parties: str) -> Event:
        return Event(mechanism, Context(parties, 1, "model", Audience.SERVER))

    loose = {"delta": DELTA, "tight": False}
    for group in GROUPS:
        yield [event(one)], {"delta": DELTA, "group": group}
        yield [event(one)], loose | {"group": group}
    yield [event(one)], {"delta": 0}
    yield from (([event(one)], {"delta": DELTA, "budget": budget}) for budget in BUDGETS)
    repeated = [event(Repeated(one, 3)), event(beside)]
    yield repeated, {"delta": DELTA, "group": 3}
    yield repeated, loose
    yield [event(one, "a"), event(beside, "b"), event(beside)], {"delta": DELTA}
    split = [event(Parties((("a", (one, beside)), ("b", (beside,)))))]
    yield split, loose
    yield [event(Parties((("a", (one, one)), ("b", (one,)))))], {"delta": 0}


def written(relation: Adjacency, one: Mechanism) -> Iterator[bytes]:
    """Every certificate that the prover has for a mechanism, once."""
    seen: set[bytes] = set()
    for run, how in asked(one, relation):
        try:
            document = certify(run, **how).to_json_bytes()
        except Uncertifiable:
            continue
        if document not in seen:
            seen.add(document)
            yield document


@pytest.mark.slow
@pytest.mark.skipif(
    extracted_checker() is None, reason="dpledger-check is not built (make -C proofs checker)"
)
@pytest.mark.parametrize("relation", [*Adjacency][:3], ids=lambda relation: relation.value)
@pytest.mark.parametrize("kind", KINDS)
def test_both_checkers_prove_whatever_is_certified(kind, relation, tmp_path, record_property):
    verdicts, paths = [], []
    for document in (text for one in KINDS[kind](relation) for text in written(relation, one)):
        try:
            verdicts.append(pld_checker.check(document))
        except (CertificateWrong, Undecided):
            verdicts.append(None)
        paths.append(tmp_path / f"{len(paths)}.json")
        paths[-1].write_bytes(document)
    words: Counter[str] = Counter()
    for found, verdict in zip(run_extracted(paths), verdicts, strict=True):
        if verdict is not None and agrees(found, verdict):
            words["both"] += 1
        elif verdict is not None:
            words["checker.py alone"] += 1
        else:
            words["the extracted checker alone" if found.word == "proved" else "neither"] += 1
    record_property("proved by", dict(words))
    assert set(words) <= {"both", "neither"}
    assert words["both"] > 100
