"""Our mechanisms as Google's `DpEvent`s and back, where both have a word and a rule for it.

A `DpEvent` knows a noise multiplier only: no units, no relation. Ours goes out as noise_std /
sensitivity, and the sensitivity holds the factor of replace-one already. So what goes out is to be
read under *their* add/remove relation, where they add no factor, whatever ours is. (Under their
replace-one, their PLD accountant would double a Gaussian's sensitivity a second time and their RDP
accountant would not.) Kinds that are about replacing a record, randomised response and sampling
without replacement, stay under replace-one.

What a binary64 cannot hold is rounded towards more epsilon, both ways: noise and lies down, truth,
rates and losses up. What comes in and has no step of its own is priced by one that dominates it;
the reason of its declared sensitivity says which theorem says so.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import comb, inf
from numbers import Integral
from typing import Any

from ..accounting.cut_batches import CUT, twice_moved
from ..accounting.numbers.enclosure import BITS, Enclosure, ball_of, precision
from ..accounting.pure import pure_epsilon
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import (
    Number,
    require_nonnegative,
    require_number,
    require_positive,
    require_positive_int,
    require_rate,
    shown_value,
)
from ..mechanisms.events import (
    AccumulatedPoisson,
    Audience,
    Context,
    DiscreteGaussianStep,
    DiscreteLaplaceStep,
    Event,
    GaussianMixtureStep,
    GaussianStep,
    LaplaceStep,
    Mechanism,
    Parties,
    PoissonSampled,
    PureStep,
    RandomisedResponse,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
    UnprotectedRelease,
    unrepeated,
)
from ..mechanisms.extras import import_extra
from ..mechanisms.sensitivity import Norm, Sensitivity, declared, float_down, float_up, root_up
from .event_trees import EventTree, Untranslatable, event_of_tree, tree_of_event

__all__ = [
    "BOUNDS",
    "Untranslatable",
    "dp_accounting",
    "dp_event_of",
    "mechanism_of",
    "mechanisms_of_tree",
    "tree_of_mechanism",
    "whole",
]


def dp_accounting() -> Any:
    """Return the module, or raise `MissingExtra` naming the extra that installs it."""
    return import_extra("dp_accounting", "crosscheck")


# --- out ---------------------------------------------------------------------------------------


def dp_event_of(mechanism: Mechanism) -> Any:
    """Return a mechanism as a `DpEvent`, to be read under their add/remove relation.

    Raises:
        Untranslatable: they have no such event.
        MissingExtra: dp-accounting is not installed.
    """
    return event_of_tree(tree_of_mechanism(mechanism))


def tree_of_mechanism(mechanism: Mechanism) -> EventTree:
    """Return a mechanism as an event of theirs, for which dp_accounting need not be installed.

    Raises `Untranslatable` as `dp_event_of` does.
    """
    match mechanism:
        case Repeated(event=event, times=times):
            return _tree("SelfComposedDpEvent", event=tree_of_mechanism(event), count=times)
        case UnprotectedRelease():
            return _tree("NonPrivateDpEvent")
        case PoissonSampled(event=event, rate=rate):
            inner = tree_of_mechanism(event)
            return _tree("PoissonSampledDpEvent", sampling_probability=rate, event=inner)
        case AccumulatedPoisson():
            return _tree_of_accumulated(mechanism)
        case SampledWithoutReplacement(event=event, batch=batch, records=records):
            return _tree(
                "SampledWithoutReplacementDpEvent",
                source_dataset_size=records,
                sample_size=batch,
                event=tree_of_mechanism(event),
            )
        case SampledWithReplacement(event=event, batch=batch, records=records):
            return _tree(
                "SampledWithReplacementDpEvent",
                source_dataset_size=records,
                sample_size=batch,
                event=tree_of_mechanism(event),
            )
        case RandomisedResponse():
            return _tree_of_response(mechanism)
        case GaussianStep() | LaplaceStep() | DiscreteLaplaceStep() | PureStep():
            return _tree_of_noise(mechanism)
        case DiscreteGaussianStep() | GaussianMixtureStep() | Parties():
            raise Untranslatable(
                f"{type(mechanism).__name__} must be a kind that dp_accounting knows too."
            )


_MOST_SHIFTS = 500
"""Of a mixture that is written out: exact chances of so many take a second."""


def _tree(name: str, **fields: Any) -> EventTree:
    return EventTree(name, fields)


def _tree_of_accumulated(mechanism: AccumulatedPoisson) -> EventTree:
    """Return a record's binomial number of shifts, in units of the sensitivity; of few samples.

    Chances are doubles that add up to one or a hair less, as theirs must: what a rounding down
    leaves over goes to the largest shift. Raises `Untranslatable` for more than `_MOST_SHIFTS`.
    """
    noise = _tree_of_noise(mechanism.event)
    if noise.name != "GaussianDpEvent":
        return noise
    if mechanism.batches > _MOST_SHIFTS:
        raise Untranslatable(
            f"AccumulatedPoisson with batches={mechanism.batches} must have {_MOST_SHIFTS} at most:"
            " a shift for each number of samples that a record is in."
        )
    n, q = mechanism.batches, Fraction(mechanism.rate)
    chances = [comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n)]
    lower = [float_down(chance) for chance in chances]
    return _tree(
        "MixtureOfGaussiansDpEvent",
        standard_deviation=noise.fields["noise_multiplier"],
        sensitivities=[float(j) for j in range(n + 1)],
        sampling_probs=[*lower, float_up(1 - sum(map(Fraction, lower)))],
    )


def _tree_of_noise(
    mechanism: GaussianStep | LaplaceStep | DiscreteLaplaceStep | PureStep,
) -> EventTree:
    """Return additive noise as an event, in units of its sensitivity.

    The multiplier noise / sensitivity is rounded down and a loss up: what they read costs no
    less.
    """
    size = mechanism.sensitivity.root
    noise = mechanism.noise_std if isinstance(mechanism, GaussianStep) else mechanism.scale
    if size == 0:
        return _tree("NoOpDpEvent")
    if noise == 0:
        return _tree("NonPrivateDpEvent")
    multiplier = float_down(Fraction(noise) / size)
    if isinstance(mechanism, GaussianStep):
        return _tree("GaussianDpEvent", noise_multiplier=multiplier)
    if isinstance(mechanism, LaplaceStep):
        return _tree("LaplaceDpEvent", noise_multiplier=multiplier)
    if isinstance(mechanism, PureStep):
        # losses of ±ε, which dominate every ε-DP mechanism: all versions have this event
        loss = float_up(size / Fraction(noise))
        return _tree("DiscreteLaplaceDpEvent", noise_parameter=loss, sensitivity=1)
    if size.denominator != 1:
        raise Untranslatable(f"sensitivity={size} must be of integer vectors a whole number.")
    rate = float_up(1 / Fraction(noise))
    return _tree("DiscreteLaplaceDpEvent", noise_parameter=rate, sensitivity=int(size))


def _tree_of_response(mechanism: RandomisedResponse) -> EventTree:
    # theirs draws uniformly, the true answer included, with probability p: truth = 1 - p + p/k
    """Return k-ary randomised response; their parameter is the chance of a uniform answer.

    It is rounded down: more truth costs more.
    """
    categories, lie = mechanism.categories, 1 - Fraction(mechanism.truth)
    uniform = lie * categories / (categories - 1)
    if uniform > 1:
        raise Untranslatable(
            f"truth={mechanism.truth} must be in [1/{categories}, 1]; theirs never lies more."
        )
    if uniform == 1:
        return _tree("NoOpDpEvent")
    return _tree(
        "RandomizedResponseDpEvent", noise_parameter=float_down(uniform), num_buckets=categories
    )


# --- in ----------------------------------------------------------------------------------------


def mechanism_of(event: Any, *, adjacency: Adjacency, sensitivity: Number) -> tuple[Mechanism, ...]:
    """Return the mechanisms that a `DpEvent` composes: `Repeated` what runs several times.

    A repeated composition is a composition of repetitions, as the cost does not depend on the
    order; so a document's counts stay numbers.

    Args:
        event: an instance of one of their event classes.
        adjacency: the relation that the mechanisms shall speak of.
        sensitivity: of the released sum under that relation, in units of the bound on one record's
            contribution: 1 under add/remove and zero-out, 2 under replace-one, unless the noise
            multiplier was stated against the whole sensitivity (as `dp_event_of` states it): 1.

    Raises:
        Untranslatable: an event that has no rule here, or a count that is no whole number.
        InvalidParameter: a number outside its range.
    """
    return mechanisms_of_tree(tree_of_event(event), adjacency=adjacency, sensitivity=sensitivity)


def mechanisms_of_tree(
    tree: EventTree, *, adjacency: Adjacency, sensitivity: Number
) -> tuple[Mechanism, ...]:
    """Return the mechanisms of an event of theirs; as `mechanism_of`."""
    require_positive("sensitivity", sensitivity)
    reason = "a DpEvent's noise multiplier is stated against this"
    return tuple(_mechanisms(tree, declared(sensitivity, reason, adjacency=adjacency)))


def _mechanisms(tree: EventTree, size: Sensitivity) -> list[Mechanism]:
    """Return what the rule of an event's class makes of it; `size` is the sensitivity."""
    if tree.name not in _RULES:
        nearest = _NEAREST.get(tree.name, "it has none yet")
        raise Untranslatable(f"{tree.name} must be an event with a rule here; {nearest}.")
    return _RULES[tree.name](tree.fields, size)


_Fields = Mapping[str, Any]

_LARGEST = "the largest of several shifts of a MixtureOfGaussiansDpEvent"
_SELECTED = "a selection of this epsilon (McSherry, Talwar 2007; McKenna, Sheldon 2020)"
_BEST = "the best of several pure runs"
BOUNDS = frozenset({CUT, _LARGEST, _SELECTED, _BEST})
"""Reasons of sensitivities of steps that are priced by what costs more: what such a step costs at
the least is not known."""


def _composed(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Parts one after the other, each under the same sensitivity.

    Later ones may have been chosen by what earlier ones released, within what the event says.
    """
    return [found for part in fields["events"] for found in _mechanisms(part, size)]


def _self_composed(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Count repetitions of each part; of count 0, nothing."""
    inner, count = _mechanisms(fields["event"], size), whole("count", fields["count"])
    return [Repeated(found, count) for found in inner] if count else []


def _gaussian(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Noise of `noise_multiplier` times the bound on a record, on a sum that moves by `size`."""
    return [GaussianStep(size, fields["noise_multiplier"])]


def _laplace(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """As `_gaussian`, in the ℓ1 norm; the multiplier is the scale over the bound on a record."""
    return [LaplaceStep(_l1(size, 1), fields["noise_multiplier"])]


def _discrete_laplace(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Probabilities that fall as exp(-parameter·|x|): scale 1/parameter, rounded down."""
    require_nonnegative("noise_parameter", fields["noise_parameter"])
    if fields["noise_parameter"] == 0:
        return [UnprotectedRelease("a DiscreteLaplaceDpEvent of parameter 0, no noise to them")]
    sensitivity = _l1(size, whole("sensitivity", fields["sensitivity"]))
    return [DiscreteLaplaceStep(sensitivity, float_down(1 / Fraction(fields["noise_parameter"])))]


def _discrete_gaussian(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """`sigma` and `sensitivity` in one unit; the relation's factor multiplies the latter."""
    reason = "a DiscreteGaussianDpEvent's sensitivity, of vectors of whole numbers"
    require_nonnegative("sensitivity", fields["sensitivity"])
    moved = Fraction(fields["sensitivity"])
    if moved.denominator != 1:
        # taken at its word, whole numbers that move by less than one do not move
        what = shown_value(fields["sensitivity"])
        raise Untranslatable(f"sensitivity={what} must be a whole number, as vectors are.")
    root = size.root * moved
    return [DiscreteGaussianStep(_declared(root, reason, size, Norm.L2), fields["sigma"])]


def _randomised_response(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """k-ary randomised response, of pure loss ln(truth·(k - 1)/lie) between any two records.

    A replaced record is that comparison itself. With a null record it is compared with a mixture
    of answers (quasi-convexity: a mixture's loss is no larger than that of its parts). A record
    more makes an answer more, for which no pair of laws is stated: refused.
    """
    categories, uniform = whole("num_buckets", fields["num_buckets"]), fields["noise_parameter"]
    require_rate("noise_parameter", uniform)
    require_positive_int("num_buckets", categories)
    if categories == 1:
        return []
    # epsilon is ln(truth·(k - 1)/lie): more truth and less lie cost more
    truth = float_up(1 - Fraction(uniform) * (categories - 1) / categories)
    answer = RandomisedResponse(truth, categories)
    if size.adjacency is Adjacency.REPLACE_ONE:
        return [answer]
    if size.adjacency is not Adjacency.ZERO_OUT_ONE:
        raise Untranslatable("RandomizedResponseDpEvent must be read under replace-one: a record")
    # whatever a null record answers is a mixture of answers, and no loss grows by mixing
    return _of_loss(_loss([answer]), "randomised response; a null record answers anything", size)


def _stated(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """A pure epsilon as it is stated; with a delta there is no event here.

    Nobody derived it: certificates list it among what they assume.
    """
    delta = fields["delta"]
    require_rate("delta", delta)
    if delta > 0:
        raise Untranslatable(
            f"EpsilonDeltaDpEvent with delta={delta!r} must have delta 0 to be an event here; "
            "`dpledger claims check` takes (epsilon, delta) steps in a claim."
        )
    return _of_stated_loss(fields["epsilon"], "a stated epsilon, at delta 0", size)


def _selection(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """The exponential mechanism, or permute and flip, of a stated epsilon: pure, with that loss."""
    return _of_stated_loss(fields["epsilon"], _SELECTED, size)


def _mixture_of_gaussians(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """N(0, σ²) against a mixture of N(c_i, σ²), c_i >= 0: no more than one of N(0) and N(max c_i).

    The likelihood ratio grows with the output, so that the best tests are half-lines, whose
    probability under the mixture each c_i moves one way: larger shifts dominate in both orders.
    """
    noise, shifts = fields["standard_deviation"], fields["sensitivities"]
    chances = fields["sampling_probs"]
    if len(shifts) != len(chances) or not shifts:
        raise Untranslatable("sensitivities and sampling_probs must be as many, at least one.")
    if size.adjacency is Adjacency.REPLACE_ONE:
        raise Untranslatable("MixtureOfGaussiansDpEvent must be read under add/remove or zero-out.")
    for shift, chance in zip(shifts, chances, strict=True):
        require_nonnegative("sensitivities", shift)
        require_rate("sampling_probs", chance)
    total = sum(map(Fraction, chances), Fraction(0))
    if abs(total - 1) > Fraction(1, 10**9):
        raise Untranslatable(f"sampling_probs must add up to 1, not {float(total)}.")
    # what is missing in the sum of doubles counts as drawn
    drawn = [Fraction(c) for shift, c in zip(shifts, chances, strict=True) if shift > 0]
    moving = sum(drawn, Fraction(0))
    idle = total - moving
    rate = min(1.0, float_up(max(moving, 1 - idle) if moving else Fraction(0)))
    several = len({shift for shift in shifts if shift > 0}) > 1
    reason = _LARGEST if several else "the shift of a MixtureOfGaussiansDpEvent"
    moved = _declared(size.root * Fraction(max(shifts)), reason, size, Norm.L2)
    return [PoissonSampled(GaussianStep(moved, noise), rate)] if moving and max(shifts) else []


def _tree_aggregation(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Sums in the nodes of binary trees, each record in one leaf of one tree.

    It enters the nodes above its leaf that are complete: as many as the number of steps has binary
    digits, at most (Kairouz et al. 2021, arXiv:2103.00039, appendix D).
    """
    if size.adjacency is Adjacency.ADD_REMOVE_ONE:
        raise Untranslatable(
            "SingleEpochTreeAggregationDpEvent must be read under zero-out-one or replace-one: a "
            "record more moves others to other leaves."
        )
    counts = fields["step_counts"]
    listed = counts if isinstance(counts, Sequence) else [counts]
    nodes = max((whole("step_counts", c).bit_length() for c in listed), default=0)
    reason = f"a record enters at most {nodes} nodes of a tree"
    return [GaussianStep(_joint(size, nodes, reason), fields["noise_multiplier"])] if nodes else []


def _repeat_and_select(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """The best of a random number of runs of an ε-DP mechanism, of shape η: (2 + η)ε.

    Source: Papernot, Steinke 2022, Theorem 2 as both orders go to infinity (truncated negative
    binomial; η = 0 logarithmic, η = 1 geometric). Poisson numbers have no pure rule.
    """
    shape = fields["shape"]
    require_positive("mean", fields["mean"])
    require_number("shape", shape, "in [0, inf)")
    if not 0 <= shape < inf:
        raise Untranslatable(
            f"RepeatAndSelectDpEvent with shape={shape!r} must have it in [0, inf)."
        )
    one = _loss(_mechanisms(fields["event"], size))
    if one == inf:
        raise Untranslatable("RepeatAndSelectDpEvent must be of an event with a pure epsilon.")
    return _of_loss((2 + Fraction(shape)) * Fraction(one), _BEST, size)


def _require_on_sample(inner: EventTree, size: int | None) -> None:
    """Raise `Untranslatable` for what runs on a sample and no rule amplifies.

    A sample in a sample amplifies by its share of what the outer one drew: of a data set that is
    said to be larger, it would by the outer share once more. In trees of sums, a record that is
    drawn moves all behind it to other leaves.

    Args:
        inner: what runs on the outer sample.
        size: of the outer sample; None where chance decides it.
    """
    source = next((inner.fields[name] for name in _SOURCES if name in inner.fields), None)
    if source is not None and (size is None or source != size):
        drawn = "of a size that varies" if size is None else f"of {size} records"
        raise Untranslatable(
            f"{inner.name} must draw from what is sampled around it, {drawn}, not from {source}."
        )
    if inner.name == "SingleEpochTreeAggregationDpEvent":
        raise Untranslatable(
            f"{inner.name} must run on all records: one that is drawn moves others to other leaves."
        )
    if "Sampled" not in inner.name:  # one that is right looks after what runs on it
        for part in (*inner.fields.get("events", ()), *filter(None, [inner.fields.get("event")])):
            _require_on_sample(part, size)


_SOURCES = ("source_dataset_size", "dataset_size")
"""Fields with the size of what is drawn from, where an event has one."""


def _poisson(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Poisson sampling at a rate in [0, 1]; rates of nested samples multiply, rounded up."""
    rate, inner = fields["sampling_probability"], fields["event"]
    require_rate("sampling_probability", rate)
    if inner.name == "PoissonSampledDpEvent":
        # a sample of a sample is a sample of the product of the rates
        require_rate("sampling_probability", inner.fields["sampling_probability"])
        both = float_up(Fraction(rate) * Fraction(inner.fields["sampling_probability"]))
        return _poisson({"sampling_probability": both, "event": inner.fields["event"]}, size)
    _require_on_sample(inner, None)

    def amplified(step: GaussianStep | LaplaceStep) -> Mechanism:
        return PoissonSampled(step, rate)

    return _sampled("PoissonSampledDpEvent", inner, Fraction(rate), size, amplified)


def _without_replacement(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Batches of fixed size from a data set of fixed size; an empty batch releases nothing."""
    names = ("sample_size", "source_dataset_size")
    batch, records = (whole(name, fields[name]) for name in names)
    if batch == 0:
        return []
    require_positive_int("source_dataset_size", records)
    _require_on_sample(fields["event"], batch)

    def amplified(step: GaussianStep | LaplaceStep) -> Mechanism:
        return SampledWithoutReplacement(step, batch, records)

    name = "SampledWithoutReplacementDpEvent"
    return _sampled(name, fields["event"], Fraction(batch, records), size, amplified)


def _with_replacement(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Return what runs on m records drawn with replacement out of n; replace-one only.

    Gaussian noise has a step of its own, several releases of one batch being one.

    Let a pure mechanism be ε-DP when one place of the batch is filled otherwise. Fix what each draw
    would be if it did not hit the differing record, which it does with probability 1/n; given that,
    P = Σ p_k P_k and Q = Σ p_k Q_k over the number k of hits, P_0 = Q_0, and k places differ:
    P_k <= e^(kε) P_0, P_k <= e^(kε) Q_k, Q_k >= e^(-kε) P_0. Let c = Σ p_k e^(kε), that is
    (1 + (e^ε - 1)/n)^m. If c <= e^ε, the share c e^(-kε) of each P_k with k > 0 is at most c Q_k,
    and what is left, at most e^(kε) - c in units of P_0, adds up to (c - 1) p_0: so P <= c Q.
    Whatever c is, P <= c P_0 and Q >= (1 - (1 - e^(-ε))/n)^m P_0, and the loss is at most mε.
    Averaged over what was fixed, these stay (compare Balle, Barthe, Gaboardi 2018, Theorem 10).
    """
    names = ("sample_size", "source_dataset_size")
    batch, records = (whole(name, fields[name]) for name in names)
    require_positive_int("source_dataset_size", records)
    if size.adjacency is not Adjacency.REPLACE_ONE:
        raise Untranslatable(
            "SampledWithReplacementDpEvent must be read under replace-one: a record more "
            "changes how likely each one is to be drawn."
        )
    _require_on_sample(fields["event"], batch)
    inner = _mechanisms(fields["event"], size)
    if batch == 0 or not inner:
        return []
    steps = [unrepeated(each) for each in inner]
    bare = [step for step, _ in steps if isinstance(step, UnprotectedRelease)]
    if bare:
        return [bare[0]]
    gaussians = [(step, times) for step, times in steps if isinstance(step, GaussianStep)]
    if len(gaussians) == len(steps):
        joint = _one_gaussian(gaussians, size)
        if isinstance(joint, UnprotectedRelease):
            return [joint]
        return [SampledWithReplacement(joint, batch, records)]
    loss = _loss(inner)
    if loss == inf:
        raise Untranslatable(
            "the event of a SampledWithReplacementDpEvent must be Gaussian or pure to have a rule "
            "here."
        )
    together = float_up(Fraction(loss) * batch)
    reason = "a pure mechanism on a batch drawn with replacement"
    if records == 1:  # every draw hits
        return _of_loss(together, reason, size)
    with precision(BITS):
        up = (ball_of(loss).expm1() / records).log1p() * batch
        down = ((-ball_of(loss)).expm1() / records).log1p() * batch
        amplified = Enclosure.from_ball(up).upper_float
        always = Enclosure.from_ball(up - down).upper_float
    return _of_loss(amplified if amplified <= loss else min(always, together), reason, size)


def _truncated(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """Poisson batches cut to a uniform subset of B records: twice the shift, at the same rate.

    Proof and a bound for rare cuts: `accounting.cut_batches`.
    """
    rate, noise = fields["sampling_probability"], fields["noise_multiplier"]
    names = ("dataset_size", "truncated_batch_size")
    records, batch = (whole(name, fields[name]) for name in names)
    require_rate("sampling_probability", rate)
    if size.adjacency is not Adjacency.ADD_REMOVE_ONE:
        raise Untranslatable(
            "TruncatedSubsampledGaussianDpEvent must be read under add/remove: elsewhere a record "
            "takes another's place in both data sets."
        )
    if rate == 0 or batch == 0:
        return []
    if batch > records:  # also of the neighbour with one record more, nothing is cut
        return [PoissonSampled(GaussianStep(size, noise), rate)]
    return [PoissonSampled(GaussianStep(twice_moved(size), noise), rate)]


def _sampled(
    name: str,
    inner: EventTree,
    share: Fraction,
    size: Sensitivity,
    amplified: Callable[[GaussianStep | LaplaceStep], Mechanism],
) -> list[Mechanism]:
    """What runs on one hidden sample: Gaussians are one, pure mechanisms are amplified together.

    log(1 + q (e^ε - 1)) for an ε-DP mechanism on a share q of the records: Balle, Barthe, Gaboardi
    2018, Theorems 8 (Poisson) and 9 (without replacement).
    """
    steps = [unrepeated(each) for each in _mechanisms(inner, size)]
    bare = [step for step, _ in steps if isinstance(step, UnprotectedRelease)]
    if not steps or share == 0:
        return []
    if bare:
        return [bare[0]]
    first, times = steps[0]
    if len(steps) == times == 1 and isinstance(first, GaussianStep | LaplaceStep):
        return [amplified(first)]
    gaussians = [(step, n) for step, n in steps if isinstance(step, GaussianStep)]
    if len(gaussians) == len(steps):
        # one sample, several looks: amplified one by one they would be priced as if each drew a
        # sample anew
        joint = _one_gaussian(gaussians, size)
        return [joint if isinstance(joint, UnprotectedRelease) else amplified(joint)]
    loss = _loss([Repeated(step, times) for step, times in steps])
    if loss == inf or any(
        isinstance(s, PoissonSampled | SampledWithoutReplacement) for s, _ in steps
    ):
        raise Untranslatable(f"the event of a {name} must be Gaussian or pure to have a rule here.")
    relation = Adjacency.REPLACE_ONE if name.startswith("SampledWithout") else None
    if (size.adjacency is Adjacency.REPLACE_ONE) != (relation is Adjacency.REPLACE_ONE):
        raise Untranslatable(f"{name} has no rule here under {size.adjacency.value}.")
    if size.adjacency is Adjacency.ZERO_OUT_ONE:
        # a null record is drawn, too, and may be told from nobody: as if all were drawn
        return _of_loss(loss, "a pure mechanism on a sample that a null record may be in", size)
    # outward in ball arithmetic, and the upper end: the amplified loss is never rounded below the
    # theorem
    with precision(BITS):
        amplified_loss = (ball_of(share) * ball_of(loss).expm1()).log1p()
        most = Enclosure.from_ball(amplified_loss).upper_float
    return _of_loss(most, "a pure mechanism on a hidden sample", size)


def _one_gaussian(
    steps: Sequence[tuple[GaussianStep, int]], size: Sensitivity
) -> GaussianStep | UnprotectedRelease:
    """Return the Gaussian that releases of one batch are together: 1/σ² adds up.

    Gaussian releases of one batch are together dominated by one of mu² = Σ n_i Δ_i²/σ_i² (mu-GDP
    composes in squares: Dong, Roth, Su 2022). The root is rounded up, the noise down.
    """
    if any(step.noise_std == 0 for step, _ in steps):
        return UnprotectedRelease("a Gaussian without noise")
    precise = sum(n * step.sensitivity.squared / Fraction(step.noise_std) ** 2 for step, n in steps)
    # of the sensitivity of one, and noise that makes the same ratio
    return GaussianStep(size, float_down(size.root / root_up(precise)))


def _unprotected(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """No bound on the loss: certificates list it, and epsilon is infinite."""
    return [UnprotectedRelease("a NonPrivateDpEvent")]


def _nothing(fields: _Fields, size: Sensitivity) -> list[Mechanism]:
    """No release at all."""
    return []


_RULES: dict[str, Callable[[_Fields, Sensitivity], list[Mechanism]]] = {
    "NoOpDpEvent": _nothing,
    "NonPrivateDpEvent": _unprotected,
    "ComposedDpEvent": _composed,
    "SelfComposedDpEvent": _self_composed,
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "RandomizedResponseDpEvent": _randomised_response,
    "EpsilonDeltaDpEvent": _stated,
    "ExponentialMechanismDpEvent": _selection,
    "PermuteAndFlipDpEvent": _selection,
    "MixtureOfGaussiansDpEvent": _mixture_of_gaussians,
    "SingleEpochTreeAggregationDpEvent": _tree_aggregation,
    "RepeatAndSelectDpEvent": _repeat_and_select,
    "PoissonSampledDpEvent": _poisson,
    "SampledWithoutReplacementDpEvent": _without_replacement,
    "SampledWithReplacementDpEvent": _with_replacement,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
}
"""The events that have a rule here. Without one: ZCDpEvent (no mechanism here is known by rho
alone) and UnsupportedDpEvent."""

_NEAREST = {
    "ZCDpEvent": (
        "no mechanism here is known by rho alone: state what ran, such as a GaussianDpEvent of "
        "noise multiplier 1/sqrt(2 rho) for Gaussian noise; the accountants of "
        "interop.dp_accounting price it by its divergences"
    )
}
"""What to state in place of an event that has no rule."""


def whole(name: str, value: Any) -> int:
    """Return a count as it stands: one cut down to a whole number would cost less than what ran.

    Raises `Untranslatable` for a fraction, a negative number, or a truth value.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise Untranslatable(f"{name}={shown_value(value)} must be a whole number in [0, inf).")
    return int(value)


def _declared(bound: Number, reason: str, size: Sensitivity, norm: Norm) -> Sensitivity:
    """Return a sensitivity under `size`'s relation; certificates list its reason as assumed."""
    return declared(bound, reason, adjacency=size.adjacency, norm=norm)


def _l1(size: Sensitivity, factor: int) -> Sensitivity:
    """Return `factor` times `size`, in the ℓ1 norm, for noise of Laplace's kind."""
    return _declared(size.root * factor, size.assumptions[0], size, Norm.L1)


def _joint(size: Sensitivity, times: int, reason: str) -> Sensitivity:
    """Return the ℓ2 sensitivity of `times` releases together: the root of the sum of squares."""
    return _declared(root_up(size.squared * times), reason, size, Norm.L2)


def _loss(mechanisms: Sequence[Mechanism]) -> float:
    """Return an upper bound on the largest loss of mechanisms together."""
    context = Context((), 1, "a pure event", Audience.PUBLIC)
    return pure_epsilon([Event(m, context) for m in mechanisms]).upper_float


def _of_stated_loss(epsilon: Any, reason: str, size: Sensitivity) -> list[Mechanism]:
    """As `_of_loss`, after a check that a stated epsilon is in [0, inf]."""
    if epsilon != inf:
        require_nonnegative("epsilon", epsilon)
    return _of_loss(epsilon, reason, size)


def _of_loss(epsilon: Number, reason: str, size: Sensitivity) -> list[Mechanism]:
    """Return a `PureStep` of loss `epsilon`; an infinite one is an unprotected release.

    Source: Kairouz, Oh, Viswanath 2015, Theorem 3.3: binary randomised response dominates every
    ε-DP mechanism.
    """
    if epsilon == inf:
        return [UnprotectedRelease(f"{reason}: no loss is the largest")]
    return [PureStep(_declared(epsilon, reason, size, Norm.L1), 1.0)]
