"""Law: however a certificate of a loss distribution is bent, it states no δ below the true one.

The forger bends the lattice (its spacing, doublings, dots, digits, tails), which mechanisms are
composed how often and where, and the facts of sampling; then lets the checker itself find the least
ε that it takes. What is accepted is held against `least_delta`, which plays two neighbours.
"""

import json
import re
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

import pytest
from tests.accounting.conftest import ADD, REPLACE, ZERO, event
from tests.parameters import slow

from dpledger.accounting.check import pld_checker, statements
from dpledger.accounting.check.reading import CertificateWrong, Undecided
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.accounting.proof.derivation import Step
from dpledger.accounting.proof.extracted import agrees, extracted_checker, run_extracted
from dpledger.mechanisms import (
    AccumulatedPoisson,
    Adjacency,
    DiscreteGaussianStep,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Norm,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    declared,
)
from dpledger.mechanisms.events import DiscreteLaplaceStep
from dpledger.mechanisms.sensitivity import scaled, sum_of_bounded

from .grids import on_a_grid
from .least_delta import least_delta, least_losses, relation
from .test_every_mechanism import mixture, on_a_lattice
from .test_mutation import (
    CHANGES,
    NoTruth,
    Truth,
    bend_alike,
    bent_text,
    forged,
    make_fit,
    mutate,
    of_parties,
    places,
    ratio,
)

MUTATIONS = 120
WORK = 600_000
"""Units that the checker may spend on a bent document: what is dearer is undecided."""

DELTA = Fraction(1, 100)
RULES = ("privacy-loss", "laplace-losses", "loss-distribution")


# --- certificates on coarse grids, which are checked in milliseconds ------------------------------


def coarse(*mechanisms, parties=(), group=1) -> Certificate:
    """A certificate on a coarse grid, or on the losses' own; a record of each party by itself."""

    def coarser(grid):
        return replace(grid, step=Fraction(1, 32), dense=8, digits=8, cut=int(DELTA * 10**3))

    return on_a_grid(*mechanisms, delta=DELTA, parties=parties, group=group, changed=coarser)


def of_the_first_kind(mechanism, times) -> Certificate:
    """A certificate with the node that documents had first, which nothing writes any more."""
    made = coarse(Repeated(mechanism, times))
    node = made.root.premises[0]
    given = dict(node.parameters)
    parts = tuple((m, n) for m, n, _ in given["parts"])
    kept = {"parts": parts, "step": Fraction(1, 16), "reach": 160, "bits": 30}
    kept |= {"delta": DELTA, "epsilon": given["epsilon"] * Fraction(21, 20)}
    notion = replace(made.root.notion, epsilon=kept["epsilon"])
    node = replace(node, theorems=node.axioms, notion=notion)
    first = replace(node, rule="loss-distribution", parameters=tuple(kept.items()))
    root: Step = replace(made.root, premises=(first,), notion=notion)
    return Certificate(made.events, root)


def loss_examples():
    """Certificates over every kind of pair, by name."""

    def sums(relation: Adjacency, noise: float, bound=1):
        return GaussianStep(sum_of_bounded(bound, relation), noise)

    def mixed(relation: Adjacency, derived=True):
        one = sum_of_bounded(1, relation) if derived else declared(1, "x", adjacency=relation)
        return GaussianMixtureStep(scaled(one, 0.25), one, 0.125, 2.0)

    def counts(adjacency):
        return declared(1, "counts", adjacency=adjacency, norm=Norm.L1)

    laplace = LaplaceStep(counts(ADD), 1.0)
    batch = SampledWithoutReplacement(sums(REPLACE, 2.0), 2, 9)
    again = SampledWithReplacement(sums(REPLACE, 4.0), 3, 9)
    poisson = PoissonSampled(sums(ADD, 1.0), 0.125)
    return {
        "poisson": lambda: coarse(Repeated(poisson, 3)),
        "poisson, of the first kind": lambda: of_the_first_kind(poisson, 3),
        "poisson, groups": lambda: coarse(poisson, group=3),
        "poisson, accumulated": lambda: coarse(AccumulatedPoisson(sums(ADD, 1.0), 0.125, 2)),
        "poisson, replaced": lambda: coarse(PoissonSampled(sums(REPLACE, 2.0), 0.125)),
        "poisson laplace": lambda: coarse(Repeated(PoissonSampled(laplace, 0.125), 2)),
        "fixed batch": lambda: coarse(Repeated(batch, 2)),
        "with replacement": lambda: coarse(Repeated(again, 2)),
        "mixture": lambda: coarse(mixed(ADD)),
        "mixture, zeroed": lambda: coarse(mixed(ZERO)),
        "mixture, told": lambda: coarse(mixed(REPLACE, derived=False)),
        "answers": lambda: coarse(Repeated(RandomisedResponse(0.75, 3), 3)),
        "whole numbers": lambda: coarse(
            DiscreteGaussianStep(declared(1, "l2", adjacency=ADD), 2.0),
            DiscreteLaplaceStep(declared(2, "l1", adjacency=ADD, norm=Norm.L1), 2.0),
            PureStep(counts(ADD), 2.0),
        ),
        "laplace": lambda: certify([event(Repeated(laplace, 4))], delta=DELTA),
        "parties": lambda: coarse(
            poisson, sums(ADD, 5.0), LaplaceStep(counts(ADD), 3.0), parties=[("a",), (), ("b",)]
        ),
    }


@pytest.fixture(scope="module")
def certificates() -> dict[str, Certificate]:
    return {name: make() for name, make in loss_examples().items()}


# --- the judge ------------------------------------------------------------------------------------


class SeenToLose(Truth):
    """What neighbours under these events are seen to lose; a verdict below that is false."""

    def __init__(self, events) -> None:
        super().__init__(events)
        self.seen: dict[int, list] = {}

    @cached_property
    def relations(self) -> set[str]:
        listed = [m for e in self.events for m, _ in of_parties(e)]
        found = set()
        for mechanism in listed:
            while isinstance(mechanism, Repeated):
                mechanism = mechanism.event
            found.add(relation(mechanism).value)
        return found

    def losses(self, group):
        if group not in self.seen:
            met = [(m, parties) for e in self.events for m, parties in of_parties(e)]
            names = {name for _, parties in met for name in parties} or {"anybody"}
            try:
                self.seen[group] = [
                    least_losses(
                        [(m, 1) for m, parties in met if not parties or name in parties],
                        group,
                        ratio,
                    )
                    for name in names
                ]
            except ValueError as error:
                raise NoTruth(str(error)) from error
        return self.seen[group]

    def holds(self, verdict) -> bool:
        if verdict.notion != "approx-dp":
            return super().holds(verdict)
        if {verdict.adjacency} != self.relations:
            return False
        delta, epsilon = map(float, verdict.values)
        return all(delta >= least_delta(one, epsilon) for one in self.losses(verdict.group))


# --- the forger -----------------------------------------------------------------------------------


def change_losses(doc, rng):
    """Bend a grid, what is composed on it, or facts; then ask for the least ε that is taken."""
    node = rng.choice([n for n in doc["nodes"] if n["rule"] in RULES])
    given = node["parameters"]
    match rng.randrange(5):
        case 0 | 1:
            grid = ("step", "doublings", "dense", "digits", "cut", "reach", "bits")
            bend_number(given, rng.choice([name for name in grid if name in given]), rng)
        case 2:
            names = [name for name in ("parts", "shares", "group") if given.get(name)]
            bend_number(given, rng.choice(names), rng)
        case 3:
            path, value = rng.choice(
                [(p, v) for p, v in places(doc["mechanisms"]) if isinstance(v, int) or number(v)]
            )
            if isinstance(value, str):
                bend_alike(doc["mechanisms"], value, bent_a_little(value, rng))
            else:
                parent = doc["mechanisms"]
                for step in path[:-1]:
                    parent = parent[step]
                bend_number(parent, path[-1], rng)
        case 4:
            bend_alike(doc["nodes"], given["delta"], bent_a_little(given["delta"], rng))
    ask_for_least(doc)


def bent_a_little(text, rng):
    """A number between a quarter and four times the old one."""
    if "p" in text:
        return bent_text(text, rng)
    percent = rng.choice((25, 50, 90, 99, 101, 110, 200, 400))
    return str(Fraction(text) * Fraction(percent, 100))


def number(value) -> bool:
    return isinstance(value, str) and value[-1:].isdigit()


def bend_number(parent, place, rng):
    """Bend a number, or one of those in a list of lists of them; or leave an item out."""
    value = parent[place]
    if isinstance(value, list):
        if value and rng.random() < 0.8:
            bend_number(value, rng.randrange(len(value)), rng)
        elif value:
            value.pop(rng.randrange(len(value)))
        else:
            value.append(rng.choice((0, 1, 5)))
    elif isinstance(value, int):
        parent[place] = rng.choice(
            (0, 1, 4, value + 1, value - 1, value + 2, value // 2, 2 * value, 10 * value)
        )
    else:
        parent[place] = rng.choice((bent_a_little(value, rng),) * 4 + ("0", "1", "32"))


def ask_for_least(doc):
    """Take the least ε that the checker accepts, in steps of 1/64 of the one that is there."""
    leaves = [n for n in doc["nodes"] if n["rule"] in RULES]
    stated = [Fraction(n["parameters"]["epsilon"]) for n in leaves]

    def asked(share):
        bent = dict(doc, nodes=[dict(n) for n in doc["nodes"]])
        each = iter(stated)
        for n in bent["nodes"]:
            if n["rule"] in RULES:
                n["parameters"] = n["parameters"] | {"epsilon": str(next(each) * share)}
        make_fit(bent)
        return bent

    def found(share):
        try:
            return asked(share)
        except (CertificateWrong, Undecided):
            return None

    best, low, high = found(Fraction(1)), 8, 63
    while best is not None and low <= high:
        middle = (low + high) // 2
        if (less := found(Fraction(middle, 64))) is not None:
            best, high = less, middle - 1
        else:
            low = middle + 1
    if best is not None:
        doc.update(best)


LOSS_CHANGES = (*CHANGES, change_losses, change_losses)


def mutate_losses(certificates, count, seed):
    """Return as `mutate`, of certificates of loss distributions; raise at a false one."""
    most, a_byte = statements.MAX_WORK, statements.WORK_A_BYTE
    statements.MAX_WORK, statements.WORK_A_BYTE = WORK, 0
    try:
        return mutate(certificates, count, seed, SeenToLose, LOSS_CHANGES)
    finally:
        statements.MAX_WORK, statements.WORK_A_BYTE = most, a_byte


def test_the_judge_admits_the_originals_and_nothing_much_smaller(certificates):
    """Far from tight: what stands for two orders or two shares of the noise, of a step or two."""
    far = {"poisson, of the first kind": 0.94, "poisson, replaced": 0.83, "fixed batch": 0.96}
    far |= {
        "with replacement": 0.9,
        "mixture": 0.97,
        "mixture, told": 0.93,
        "mixture, zeroed": 0.45,
    }
    for name, made in certificates.items():
        verdict = pld_checker.check(made.to_json_bytes())
        truth = SeenToLose(list(made.events))
        assert truth.admits(verdict)
        delta, epsilon = verdict.values
        less = verdict._replace(values=(delta, epsilon * Fraction(far.get(name, 0.99))))
        assert not truth.admits(less), name


def test_records_that_bring_nothing_are_seen_to_lose_nothing():
    """The judge once kept the weight of the last of equal means, and called true bounds false."""
    nothing = sum_of_bounded(0, ADD)
    always = GaussianStep(sum_of_bounded(1, ADD), 2.0)
    mixed = GaussianMixtureStep(sum_of_bounded(1, ADD), nothing, 0.125, 2.0)
    sampled = PoissonSampled(GaussianStep(nothing, 1.0), 0.125)
    (one, both), (alone, other) = (least_losses([(step, 1)], 2, ratio) for step in (mixed, always))
    for epsilon in (0.0, 0.1, 1.0):
        assert least_delta([one, both], epsilon) == pytest.approx(
            least_delta([alone, other], epsilon), rel=1e-3
        )
        assert least_delta(least_losses([(sampled, 3)], 2, ratio), epsilon) <= 1e-9


def test_a_lattice_far_wider_than_what_is_composed_is_answered(certificates):
    """The logarithm of an exponential that no bit is left of was looked for without end."""
    for made in certificates.values():
        doc = json.loads(made.to_json_bytes())
        for node in doc["nodes"]:
            if "step" in node["parameters"]:
                node["parameters"]["step"] = "32"
        with suppress(CertificateWrong):
            verdict = pld_checker.check(json.dumps(doc).encode())
            assert SeenToLose(list(made.events)).admits(verdict)


@pytest.mark.parametrize("times", [MUTATIONS // 2, *slow(MUTATIONS)])
def test_bent_loss_distributions_prove_nothing_false(certificates, times):
    accepted = mutate_losses(certificates, times, seed=8)
    assert accepted["change_losses"] > 0
    assert accepted["change_cunningly"] > 0


# --- the second checker ------------------------------------------------------------------------


def group_examples():
    """Losses of records at once, by name: of what both checkers know."""

    def sums(relation: Adjacency, noise: float):
        return GaussianStep(sum_of_bounded(1, relation), noise)

    def counts(bound, relation: Adjacency):
        return declared(bound, "counts", adjacency=relation, norm=Norm.L1)

    poisson = PoissonSampled(sums(ADD, 2.0), 0.125)
    return {
        "answers": lambda: coarse(Repeated(RandomisedResponse(0.75, 3), 3), group=3),
        "laplace": lambda: certify(
            [event(Repeated(LaplaceStep(counts(1, ADD), 8.0), 4))], delta=DELTA, group=3
        ),
        "whole numbers": lambda: coarse(
            DiscreteGaussianStep(declared(1, "l2", adjacency=ADD), 4.0),
            DiscreteLaplaceStep(counts(2, ADD), 8.0),
            group=2,
        ),
        "poisson": lambda: coarse(Repeated(poisson, 2), group=3),
        "poisson, of the first kind": lambda: of_the_first_kind(poisson, 3),
        "poisson, zeroed": lambda: coarse(PoissonSampled(sums(ZERO, 2.0), 0.0625), group=4),
        "poisson, replaced": lambda: coarse(PoissonSampled(sums(REPLACE, 4.0), 0.125), group=3),
        "fixed batch": lambda: coarse(
            SampledWithoutReplacement(sums(REPLACE, 4.0), 2, 29), group=3
        ),
        "drawn again": lambda: coarse(SampledWithReplacement(sums(REPLACE, 8.0), 3, 29), group=3),
        "laplace, poisson": lambda: coarse(
            PoissonSampled(LaplaceStep(counts(1, ADD), 8.0), 0.125), sums(ADD, 9.0), group=3
        ),
        "laplace, zeroed": lambda: coarse(
            PoissonSampled(LaplaceStep(counts(1, ZERO), 8.0), 0.0625), group=4
        ),
        "laplace, fixed batch": lambda: coarse(
            SampledWithoutReplacement(LaplaceStep(counts(1, REPLACE), 8.0), 2, 29), group=3
        ),
        "parties": lambda: coarse(
            *(LaplaceStep(counts(1, ADD), 9.0), sums(ADD, 9.0), poisson),
            parties=[("a",), (), ("b",)],
            group=2,
        ),
    }


def mixture_examples():
    """Losses of mixtures, of a record and of several at once."""

    def mixed(relation: Adjacency, noise: float, rate=0.125, times=1):
        one = sum_of_bounded(1, relation)
        return Repeated(GaussianMixtureStep(scaled(one, 0.25), one, rate, noise), times)

    def told(noise: float):
        one = declared(1, "x", adjacency=REPLACE)
        return GaussianMixtureStep(scaled(one, 0.25), one, 0.125, noise)

    return {
        "one": lambda: coarse(mixed(ADD, 2.0)),
        "one, zeroed": lambda: coarse(mixed(ZERO, 4.0, times=2)),
        "one, replaced": lambda: coarse(mixed(REPLACE, 4.0)),
        "one, told": lambda: coarse(told(4.0)),
        "several, told": lambda: coarse(Repeated(told(8.0), 2), group=3),
        "on a lattice": lambda: coarse(on_a_lattice(mixture(REPLACE))),
        "always": lambda: coarse(mixed(REPLACE, 4.0, rate=1.0)),
        "several": lambda: coarse(mixed(ADD, 4.0, times=2), group=3),
        "several, zeroed": lambda: coarse(mixed(ZERO, 8.0, rate=0.0625), group=2),
        "several, replaced": lambda: coarse(mixed(REPLACE, 8.0), group=3),
        "beside others": lambda: coarse(
            *(mixed(ADD, 3.0), GaussianStep(sum_of_bounded(1, ADD), 9.0), mixed(ADD, 6.0, 0.25)),
            parties=[("a",), (), ("a",)],
        ),
    }


def accumulated_examples():
    """Losses of Poisson samples under one noise, for a record and for several at once."""

    def summed(relation: Adjacency, noise: float, rate=0.125, batches=2):
        step = GaussianStep(sum_of_bounded(1, relation), noise)
        return AccumulatedPoisson(step, rate, batches)

    return {
        "two": lambda: coarse(summed(ADD, 2.0)),
        "five, zeroed": lambda: coarse(summed(ZERO, 4.0, rate=0.0625, batches=5)),
        "one": lambda: coarse(Repeated(summed(ADD, 2.0, batches=1), 2)),
        "always": lambda: coarse(summed(ADD, 9.0, rate=1.0, batches=3)),
        "several": lambda: coarse(Repeated(summed(ADD, 4.0), 2), group=3),
        "several, zeroed": lambda: coarse(summed(ZERO, 4.0, batches=1), group=2),
        "beside others": lambda: coarse(
            *(summed(ADD, 3.0), GaussianStep(sum_of_bounded(1, ADD), 9.0), summed(ADD, 6.0, 0.25)),
            parties=[("a",), (), ("a",)],
        ),
    }


@pytest.mark.skipif(
    extracted_checker() is None, reason="dpledger-check is not built (make -C proofs checker)"
)
@pytest.mark.parametrize(
    ("examples", "times", "some"),
    [
        *((group_examples, 40, 1), (mixture_examples, 40, 1), (accumulated_examples, 40, 1)),
        *slow(
            (group_examples, 2 * MUTATIONS, 10),
            (mixture_examples, 2 * MUTATIONS, 5),
            (accumulated_examples, 2 * MUTATIONS, 5),
        ),
    ],
)
def test_bent_losses_get_one_verdict(tmp_path, examples, times, some):
    made = {name: make() for name, make in examples().items()}
    documents = [c.to_json_bytes() for c in made.values()]
    bent = forged(made, times, 13, (*CHANGES, change_losses))
    documents += [json.dumps(doc).encode() for *_, doc in bent]
    verdicts, paths = [], []
    for k, document in enumerate(documents):
        verdicts.append(verdict_of(document))
        paths.append(tmp_path / f"{k}.json")
        paths[-1].write_bytes(document)
    for path, verdict, found in zip(paths, verdicts, run_extracted(paths), strict=True):
        if verdict is not None:  # what is too dear for one may not be for the other
            assert (found.word == "proved") == bool(verdict), (path.read_text(), found.line)
        if verdict:
            assert agrees(found, verdict), (verdict, found.line)
    assert sum(map(bool, verdicts)) > len(made) + some


NEAR_MISS = Fraction(1001, 1000)
"""Both checkers round masses up, Python's to the digits that a node states and the other to its own
bits: of a delta that one of them misses by less the other may be content."""


def verdict_of(document):
    """What Python's checker says: a verdict, False where it is wrong, None where it gives up, or
    misses a delta by its digits alone."""
    try:
        return pld_checker.check(document)
    except CertificateWrong as error:
        missed = re.search(r"expected delta >= (\S+) instead got (\S+)", str(error))
        if missed and Fraction(missed[1]) < NEAR_MISS * Fraction(missed[2]):
            return None
        return False
    except Undecided:
        return None
