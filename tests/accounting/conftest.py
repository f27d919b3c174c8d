"""Certificates of every kind of node, for the tests that read them, bend them and break them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from dpledger.accounting.numbers.notions import ApproxDp, Gdp, Rdp, Zcdp
from dpledger.accounting.proof.certificate import Certificate, certify
from dpledger.accounting.proof.derivation import DISJOINT_RECORDS, Exposure, Step, written
from dpledger.accounting.proof.prover import Search
from dpledger.mechanisms import (
    Adjacency,
    Audience,
    Context,
    DiscreteGaussianStep,
    Event,
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
    Sensitivity,
    declared,
    rounding,
)
from dpledger.mechanisms.encoding import subject_hash
from dpledger.mechanisms.events import DiscreteLaplaceStep
from dpledger.mechanisms.lattice import on_lattice
from dpledger.mechanisms.sensitivity import (
    added,
    clipped,
    concatenated,
    concatenated_disjoint,
    histogram,
    label_dual,
    linearly_mapped,
    mean_of_bounded,
    mean_of_nonnegative,
    rounded_to_lattice,
    scaled,
    strongly_convex_argmin,
    sum_of_bounded,
    vertical_predictions,
)

REPLACE, ADD, ZERO = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE_ONE, Adjacency.ZERO_OUT_ONE


def event(mechanism: Mechanism, *, parties: tuple[str, ...] = (), round: int = 1) -> Event:
    return Event(mechanism, Context(parties, round, "model", Audience.SERVER))


def every_rule(adjacency: Adjacency) -> Sensitivity:
    """A sensitivity whose derivation uses each rule."""
    mean = mean_of_bounded(3, 40, adjacency)
    argmin = strongly_convex_argmin(1.0, 0.1, 0.001, 40, adjacency)
    both = concatenated(mean, linearly_mapped(argmin, Fraction(7, 3)))
    total = added(scaled(both, -0.5), clipped(sum_of_bounded(2.0, adjacency), 0.25))
    return concatenated_disjoint(total, declared(0.125, "from the protocol", adjacency=adjacency))


def every_operation() -> tuple[Sensitivity, rounding.Rounding]:
    """A block of two rows, computed by each operation; what it moves by, and how far it is off."""
    mean, held = mean_of_bounded(3, 40, REPLACE), rounding.mean(Fraction(3), 40, 6)
    argmin = strongly_convex_argmin(1.0, 0.1, 0.001, 40, REPLACE)
    both = added(scaled(mean, -0.5), argmin)
    found = rounding.joined(
        rounding.scaled(held, Fraction(-1, 2)), rounding.exact(Fraction(20), width=6)
    )
    mapped = clipped(linearly_mapped(both, Fraction(7, 3)), 0.25)
    shifted = rounding.shifted(found, Fraction(2**20))
    cut = rounding.clipped(rounding.mapped(shifted, Fraction(7, 3), height=4), Fraction(1, 4))
    wide = concatenated(mapped, sum_of_bounded(2, REPLACE))
    beside = rounding.paired(cut, rounding.total(Fraction(2), 40, 3))
    weighted = concatenated_disjoint(wide, scaled(wide, 0.75))
    below = rounding.widest(beside, rounding.multiplied(beside, Fraction(3, 4), width=7))
    return weighted, below


def _computed(adjacency: Adjacency = REPLACE) -> Certificate:
    """Counts in l1, and scores of columns: what no Gaussian run of means has."""
    counts = on_lattice(
        histogram(adjacency, Norm.L1), rounding.counted(40, width=5), scale=8.0, rows=2
    )
    scores = on_lattice(_predictions(adjacency), rounding.scores(Fraction(3), 7, 40), scale=200.0)
    events = [event(LaplaceStep(counts, 8.0)), event(GaussianStep(scores, 200.0))]
    return certify(events, delta=1e-5, tight=False)


def _summed_on_a_grid() -> Certificate:
    """Sums of records' quarters, which doubles hold exactly."""
    held = rounding.multiples(Fraction(100), Fraction(1, 4), width=1)
    total = on_lattice(sum_of_bounded(Fraction(5, 2), ADD), held, scale=90.0)
    return certify([event(GaussianStep(total, 90.0))], delta=1e-5)


def _predictions(adjacency: Adjacency) -> Sensitivity:
    """The sensitivity of a model's scores, which parties that hold columns release."""
    return vertical_predictions(
        row_bound=1,
        slope_bound=2,
        radius=3,
        penalty=0.5,
        modulus=0.25,
        tolerance=1e-6,
        adjacency=adjacency,
    )


def vertical(adjacency: Adjacency) -> Sensitivity:
    """The sensitivity of what parties that hold columns, and the holder of labels, release."""
    labels = label_dual(derivative_bound=1, label_gap=2, tolerance=1e-9, adjacency=adjacency)
    return concatenated(_predictions(adjacency), labels)


def _converted_by_hand() -> Certificate:
    """Post-processing, groups, add/remove to replace-one, a statement: `certify` needs none."""
    events = (event(GaussianStep(sum_of_bounded(1, ADD), 20.0)),)
    whole = Search(events, Fraction(1, 10**5), 1).whole(Zcdp(0))
    replaced = replace(whole.then("replace-one", Zcdp(4 * whole.cost)), adjacency=REPLACE)
    pairs = replace(replaced.then("group", Zcdp(4 * replaced.cost), size=2), group=2)
    weaker = pairs.then("weaken", Zcdp(Fraction(1, 40)), value=Fraction(1, 40))
    published = replace(
        weaker.then("post-processing", function="the mean model"),
        assumptions=frozenset({"reads released messages only: the mean model"}),
    )
    rdp = published.given("bounds are public").then(
        "zcdp-rdp", Rdp(21, Fraction(21, 40)), order=Fraction(21)
    )
    epsilon, delta = Fraction(3, 2), Fraction(1, 10**5)
    root = rdp.then("rdp-approx-dp", ApproxDp(epsilon, delta), delta=delta, epsilon=epsilon)
    return Certificate(events, root)


def _by_largest_part() -> Certificate:
    """A mechanism of parts by party, priced as one; `certify` prices each party's own."""
    mean = GaussianStep(mean_of_bounded(1, 400, REPLACE), 0.01)
    split = Parties((("a", (mean,)), ("b", (mean,))))
    delta = Fraction(1, 10**5)
    alone = certify([event(mean)], delta=delta)
    gdp, *_ = alone.steps
    events = (event(split),)
    whole = Step(
        Exposure.of({written(split): 1}),
        REPLACE,
        gdp.notion,
        "parties",
        (("mechanism", split),),
        premises=(gdp, gdp),
        assumptions=frozenset({DISJOINT_RECORDS}),
    )
    run = Step(subject_hash(events), REPLACE, gdp.notion, "events", premises=(whole,))
    epsilon = alone.guarantee.epsilon
    notion = ApproxDp(epsilon, delta)
    return Certificate(events, run.then("gdp-approx-dp", notion, delta=delta, epsilon=epsilon))


def _mu_squared(events: Sequence[Event]) -> Fraction:
    """The largest sum of (sensitivity / noise)² over Gaussian events that name one party."""
    spent: Counter[str] = Counter()
    for listed in events:
        assert isinstance(listed.mechanism, GaussianStep)
        cost = listed.mechanism.sensitivity.squared / Fraction(listed.mechanism.noise_std) ** 2
        for party in listed.context.parties:
            spent[party] += cost  # type: ignore[assignment]
    return Fraction(max(spent.values()))


def examples() -> dict[str, Callable[[], Certificate]]:
    gaussian = GaussianStep(sum_of_bounded(1, ADD), 1.0)
    pure = declared(1, "counts", adjacency=REPLACE, norm=Norm.L1)
    noisy_count = LaplaceStep(declared(1, "counts", adjacency=ADD, norm=Norm.L1), 2.0)
    mean = GaussianStep(mean_of_bounded(1, 400, REPLACE), 0.01)
    schedule = [
        event(GaussianStep(every_rule(REPLACE), 2.0 * 1.25**k), parties=(party,), round=k)
        for k in range(1, 11)
        for party in ("north", "south")[: 1 + k % 2]
    ]
    batch = SampledWithoutReplacement(GaussianStep(mean_of_bounded(1, 1, REPLACE), 4.0), 1, 800)
    return {
        "one Gaussian step": lambda: certify([event(mean)], delta=1e-5),
        "schedule of two parties": lambda: certify(schedule, delta=1e-6),
        "parties inside": lambda: certify(
            [event(Parties((("a", (mean,)), ("b", (mean, mean))))), event(mean, parties=("a",))],
            delta=1e-5,
        ),
        "parties by hand": _by_largest_part,
        "vertical": lambda: certify([event(GaussianStep(vertical(ZERO), 40.0))], delta=1e-5),
        "repeated": lambda: certify([event(Repeated(mean, 7)), event(mean)], delta=1e-9),
        "group": lambda: certify([event(mean)], delta=1e-5, group=3),
        "on lattices": lambda: certify(
            [
                event(GaussianStep(rounded_to_lattice(every_rule(REPLACE), Fraction(1, 9), 7), 30)),
                event(LaplaceStep(rounded_to_lattice(pure, Fraction(1, 2**40), 9), 8.0)),
            ],
            delta=1e-5,
            tight=False,
        ),
        "computed": lambda: certify(
            [event(GaussianStep(on_lattice(*every_operation(), scale=30.0, rows=2), 30.0))],
            delta=1e-5,
        ),
        "computed otherwise": _computed,
        "summed on a grid": _summed_on_a_grid,
        "every noise": lambda: certify(
            [
                event(LaplaceStep(pure, 8.0)),
                event(DiscreteLaplaceStep(pure, 5.0)),
                event(DiscreteGaussianStep(scaled(histogram(REPLACE), 3), 30.0)),
                event(GaussianStep(mean_of_nonnegative(1, 50, REPLACE), 0.5)),
                event(GaussianStep(histogram(REPLACE), 20.0)),
                event(mean),
            ],
            delta=1e-4,
            tight=False,
        ),
        "Poisson samples": lambda: certify(
            [event(Repeated(PoissonSampled(gaussian, 0.01), 500)), event(gaussian)],
            delta=1e-5,
            tight=False,
        ),
        "fixed batches": lambda: certify([event(Repeated(batch, 300))], delta=1e-6, tight=False),
        "pure": lambda: certify(
            [
                event(LaplaceStep(pure, 8.0)),
                event(DiscreteLaplaceStep(pure, 5.0)),
                event(PureStep(pure, 4.0)),
                event(LaplaceStep(histogram(REPLACE, Norm.L1), 9.0)),
                event(RandomisedResponse(0.75, 3)),
                event(SampledWithoutReplacement(LaplaceStep(pure, 8.0), 3, 99)),
            ],
            delta=0,
        ),
        "answers": lambda: certify(
            [
                event(Repeated(RandomisedResponse(0.75, 3), 4), parties=("north",)),
                event(RandomisedResponse(0.75, 3), parties=("south",)),
                event(LaplaceStep(added(scaled(pure, -0.5), pure), 8.0), parties=("south",)),
                event(LaplaceStep(histogram(REPLACE, Norm.L1), 9.0)),
                event(DiscreteLaplaceStep(added(scaled(pure, 2), pure), 5.0)),
            ],
            delta=0,
        ),
        "pure samples": lambda: certify(
            [event(Repeated(PoissonSampled(noisy_count, 0.01), 9))], delta=1e-5, tight=False
        ),
        "a filter": lambda: certify(
            schedule, delta=1e-6, group=2, budget=Gdp(_mu_squared(schedule) * Fraction(1001, 1000))
        ),
        "a filter of one order": lambda: certify(
            [event(PoissonSampled(gaussian, 0.01), round=k) for k in (1, 2)],
            delta=1e-5,
            budget=Rdp(8, Fraction(1, 100)),
        ),
        "by hand": _converted_by_hand,
    }


@pytest.fixture(scope="session")
def certificates() -> dict[str, Certificate]:
    """A certificate for each kind of run; together they use every rule."""
    return {name: make() for name, make in examples().items()}
