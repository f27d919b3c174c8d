"""Epsilon of a training run in the words people have: records, batch, epochs, noise multiplier.

>>> found = epsilon(noise_multiplier=1.1, records=60000, batch=256, epochs=60, delta=1e-5,
...                 sampling="poisson", adjacency="add-remove-one")
>>> found.steps, round(found.epsilon, 4)
(14063, 2.3817)
>>> noise_multiplier(epsilon=2.3817, records=60000, batch=256, epochs=60, delta=1e-5,
...                  sampling="poisson", adjacency="add-remove-one").noise_multiplier <= 1.1
True

What a run is, and which sampling has a rule under which relation: `training_runs`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, inf
from typing import TypedDict, Unpack, cast

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import (
    DpledgerError,
    InvalidParameter,
    Number,
    named,
    require_nonnegative,
    require_open_unit,
)
from ..mechanisms.events import (
    MOST_TIMES,
    Event,
)
from ..mechanisms.sensitivity import float_down, float_up
from .accountant import CURVES, PrivacyCurve
from .composition import composed
from .guarantees import Guarantee, epsilons_at, guarantee, weaknesses
from .hypothesis_testing import best_guess
from .notebook import cost_page
from .numbers.enclosure import Enclosure, shown_in_full, shown_up
from .numbers.grade import Grade
from .planning import (
    RoundsWithin,
    UnattainableTarget,
    calibrate_noise_multiplier,
    require_target,
    rounds_within,
)
from .proof.planning import proved_noise_multiplier
from .proof.proved import Proof, proved_guarantee
from .renyi.curves import Selection, SelectionAccountant
from .training_runs import RULES, Sampling, TrainingRun

_SHUFFLED = (Sampling.SHUFFLED, Sampling.SHUFFLED.value)
"""The scheme in which steps are counted by the epoch, as an enum or as its text."""


class _Stated(TypedDict, total=False):
    """What people state of a run; see `TrainingRun.of`."""

    sampling: Sampling | str | None
    adjacency: Adjacency | str | None
    records: int | None
    batch: int | None
    rate: Number | None
    steps: int | None
    epochs: Number | None
    accumulation: int
    records_per_unit: int
    largest_batch: int | None
    cycle: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCost:
    """What a training run costs: `guarantee` in full, and the rest in short.

    `epsilon` is the upper end, rounded up; `warnings` are sentences on the promise itself; `proof`
    is what was found and checked where it was asked for.

    Args:
        run: what was priced.
        noise_multiplier: noise_std / clip norm.
        guarantee: enclosure, grade, theorems and assumptions.
        warnings: for instance that delta is not below 1 / records.
        proof: None unless asked for and found.
        select: where the run is one of several, of which the best alone is published.
    """

    run: TrainingRun
    noise_multiplier: float
    guarantee: Guarantee
    warnings: tuple[str, ...]
    proof: Proof | None = None
    select: Selection | None = None

    @property
    def epsilon(self) -> float:
        """The upper end of epsilon, rounded up."""
        return self.guarantee.epsilon.upper_float

    @property
    def delta(self) -> float:
        """The delta that was asked for, rounded up to a double."""
        return float_up(self.guarantee.delta)

    @property
    def steps(self) -> int | None:
        """Steps of the optimiser; None where only epochs were stated."""
        return self.run.steps

    @property
    def meaning(self) -> str:
        """What the number says, in one sentence: how often a fair guess is right at most."""
        right = 100 * best_guess(self.epsilon, self.delta)
        return (
            f"Whoever sees all of it and knows every other {self.run.unit} guesses between two "
            f"neighbouring data sets ({self.run.adjacency.value}), equally likely beforehand, "
            f"right at most {shown_up(right, digits=6)}% of the time."
        )

    def __str__(self) -> str:
        run, grade = self.run, self.guarantee.grade.value
        whose = f"per {run.unit}, " if run.records_per_unit > 1 else ""
        if self.select is not None:
            whose = f"the best of {float(self.select.mean):g} runs on average, {whose}"
        where = f"{grade}; {whose}{run.adjacency.value}, sampling {run.sampling.value}"
        count = f"{run.releases} release{'s' * (run.releases > 1)} a record may be in"
        return (
            f"ε ≤ {shown_up(self.epsilon)} at δ = {shown_in_full(self.delta)} ({where}; "
            f"noise multiplier {self.noise_multiplier!r}; {count})"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the number, its meaning and its curve (in doubles)."""
        deltas = [10.0**-k for k in range(1, 13)]
        found = _curve(self.run, self.noise_multiplier, deltas, Grade.FAST, self.select)
        return cost_page(
            str(self),
            self.meaning,
            epsilon=self.epsilon,
            delta=self.delta,
            notes=(*self.warnings, *self.guarantee.assumptions),
            curve=[*zip(found.epsilon.tolist(), found.delta.tolist(), strict=True)],
        )


class AmbiguousRun(DpledgerError, ValueError):
    """Sampling or relation is not stated; `readings` is what each that fits would cost.

    Args:
        name: of what is not stated.
        readings: each run that fits what is stated, with its cost.
    """

    def __init__(self, name: str, readings: tuple[TrainingCost, ...]) -> None:
        listed = [
            f"{r.run.sampling.value} under {r.run.adjacency.value}: {shown_up(r.epsilon, digits=6)}"
            for r in readings
        ]
        super().__init__(
            "\n  ".join([f"{name} must be stated; epsilon by reading:", *(listed or ["none fits"])])
        )
        self.name = name
        self.readings = readings

    def __reduce__(self) -> tuple[type["AmbiguousRun"], tuple[str, tuple[TrainingCost, ...]]]:
        return (type(self), (self.name, self.readings))


def epsilon(
    *,
    noise_multiplier: Number,
    delta: Number,
    proved: bool = False,
    select: Selection | None = None,
    **stated: Unpack[_Stated],
) -> TrainingCost:
    """Return epsilon of a training run, or of the best of several (`select`).

    Args:
        noise_multiplier: noise_std / clip norm, >= 0.
        delta: in (0, 1).
        proved: whether a certificate is to be found and checked, which takes seconds where batches
            are sampled; the enclosed epsilon without it.
        select: the law of the number of runs, drawn anew, of which the best alone is published,
            with every setting drawn inside of a run; what chooses it is public, or released by the
            run at a price that is in its noise multiplier. Not with `proved`.
        stated: the run, as for `TrainingRun.of`; `sampling` and `adjacency` are never guessed.

    Raises `AmbiguousRun` with the readings side by side where sampling or relation is missing,
    `InvalidParameter`, and as `guarantee` does.
    """
    require_nonnegative("noise_multiplier", noise_multiplier)
    require_open_unit("delta", delta)
    for name in ("sampling", "adjacency"):
        if stated.get(name) is None:
            raise AmbiguousRun(name, _readings(noise_multiplier, delta, stated, select))
    _require_unproved(proved, select)
    run = _run(stated, select)
    priced, left = run.within(delta)
    known = (
        proved_guarantee(
            priced.events(noise_multiplier),
            delta=left,
            group=run.records_per_unit,
            given=priced.given,
        )
        if proved
        else None
    )
    return _cost(run, float_down(noise_multiplier), delta, stated.get("records"), known, select)


def noise_multiplier(
    *,
    epsilon: Number,
    delta: Number,
    proved: bool = False,
    select: Selection | None = None,
    **stated: Unpack[_Stated],
) -> TrainingCost:
    """Return the least noise multiplier (to 1e-6) whose epsilon meets the target; as `epsilon`.

    Raises `UnattainableTarget` where none does.
    """
    require_target("epsilon", epsilon)
    require_open_unit("delta", delta)
    _require_unproved(proved, select)
    run = _run(stated, select)
    priced, left = run.within(delta)
    if proved:
        least, proof = proved_noise_multiplier(
            priced.events,
            target_epsilon=epsilon,
            delta=left,
            group=run.records_per_unit,
            given=priced.given,
        )
    else:
        least, proof = (
            calibrate_noise_multiplier(
                priced.events,
                target_epsilon=epsilon,
                delta=left,
                group=run.records_per_unit,
                selection=select,
            ),
            None,
        )
    known = least.guarantee, proof
    return _cost(run, least.noise_multiplier, delta, stated.get("records"), known, select)


def _run(stated: _Stated, select: Selection | None) -> TrainingRun:
    """Return the run that is stated; of the best of several, cuts cost delta in each of them.

    Raises as `TrainingRun.of` does.
    """
    if not (select is None or isinstance(select, Selection)):
        raise InvalidParameter("select", select, "None or a Selection")
    run = TrainingRun.of(**stated)
    return run if select is None else run.among(select.mean)


def _require_unproved(proved: bool, select: Selection | None) -> None:
    """Raise `InvalidParameter` where a proof is wanted of the best of several runs."""
    if proved and select is not None:
        raise InvalidParameter("proved", proved, "False with select: no proof rule knows it")


def steps(
    *,
    epsilon: Number,
    noise_multiplier: Number,
    delta: Number,
    select: Selection | None = None,
    **stated: Unpack[_Stated],
) -> TrainingCost:
    """Return the most steps (shuffled: epochs) whose epsilon meets the target; as `epsilon`.

    Raises `UnattainableTarget` where one step is too much, `InvalidParameter` where steps or epochs
    are stated.
    """
    require_target("epsilon", epsilon)
    require_open_unit("delta", delta)
    for name in ("steps", "epochs"):
        if stated.get(name) is not None:
            raise InvalidParameter(name, stated.get(name), "left out: it is what is asked for")
    counted = "epochs" if stated.get("sampling") in _SHUFFLED else "steps"

    def run(count: int) -> TrainingRun:
        return _run(cast("_Stated", {**stated, counted: count}), select)

    def within(left: Number, most: int = MOST_TIMES, *, spared: bool = False) -> RoundsWithin:
        return rounds_within(
            lambda count: replace(run(count), spared=spared).events(noise_multiplier),
            target_epsilon=epsilon,
            delta=left,
            most=most,
            group=stated.get("records_per_unit", 1),
            selection=select,
        )

    known: tuple[Guarantee, Proof | None] | None = None
    if stated.get("largest_batch") is None:
        found = within(delta)
        known = found.guarantee, None
    else:
        found = _truncated_within(within, run(1).cut, Fraction(delta))
    return _cost(
        run(found.rounds),
        float_down(noise_multiplier),
        delta,
        stated.get("records"),
        known,
        select,
    )


def _truncated_within(
    within: Callable[..., RoundsWithin], cut: Fraction, delta: Fraction
) -> RoundsWithin:
    """Return so many steps, of batches that are cut with probability `cut` each, as are within a
    target: the most, or a few less, as what delta holds for the cuts is chosen first."""
    rare = min(int(delta / 2 / cut), MOST_TIMES) if cut else MOST_TIMES
    if not rare:
        return within(delta)
    most = within(delta, rare, spared=True).rounds
    found = [within(delta - most * cut, most, spared=True)]
    if most == rare:
        # more steps may be within it where every cut is paid for
        with suppress(InvalidParameter, UnattainableTarget):
            found.append(within(delta))
    return max(found, key=lambda each: each.rounds)


def curve(
    *,
    noise_multiplier: Number,
    deltas: ArrayLike,
    grade: Grade = Grade.ENCLOSED,
    select: Selection | None = None,
    **stated: Unpack[_Stated],
) -> PrivacyCurve:
    """Return epsilons, rounded up, at an array of deltas of shape (n,); as `epsilon`.

    Of the best of several runs they are enclosed, whatever the grade.
    """
    require_nonnegative("noise_multiplier", noise_multiplier)
    asked = named("grade", grade, CURVES)
    return _curve(_run(stated, select), noise_multiplier, deltas, asked, select)


def _curve(
    run: TrainingRun,
    noise_multiplier: Number,
    deltas: ArrayLike,
    grade: Grade,
    select: Selection | None,
) -> PrivacyCurve:
    """Return a run's curve, or that of the best of several, which is enclosed.

    Of truncated batches, where delta does not pay for cuts and no rule prices them: infinite.
    """
    group, found = run.records_per_unit, np.asarray(deltas, dtype=np.float64)
    if found.ndim != 1:
        raise InvalidParameter("deltas.shape", found.shape, "(n,)")
    for delta in found:
        require_open_unit("delta", float(delta))
    if run.largest_batch is None:
        return _points(run.events(noise_multiplier), deltas, grade, group, select)
    epsilons = np.full(found.shape, inf)
    parts = [run.within(float(delta)) for delta in found]
    for priced in dict.fromkeys(each for each, _ in parts):
        left = [float_down(rest) for each, rest in parts if each == priced]
        with suppress(InvalidParameter):
            events = priced.events(noise_multiplier)
            made = _points(events, left, grade, group, select)
            epsilons[[each == priced for each, _ in parts]] = made.epsilon
    return PrivacyCurve(grade if select is None else Grade.ENCLOSED, epsilons, found)


def _points(
    events: list[Event],
    deltas: ArrayLike,
    grade: Grade,
    group: int,
    select: Selection | None,
) -> PrivacyCurve:
    """Return the curve of events, or of the best of several runs of them."""
    if select is None:
        return epsilons_at(events, deltas=deltas, grade=grade, group=group)
    best = SelectionAccountant(select).with_composition(composed(events))
    return best.curve(deltas, group=group)


def _cost(
    run: TrainingRun,
    multiplier: float,
    delta: Number,
    records: int | None,
    known: tuple[Guarantee, Proof | None] | None = None,
    select: Selection | None = None,
) -> TrainingCost:
    """Return the cost of a run with its warnings; `known` is its guarantee, if that was computed
    already.
    """
    priced, left = run.within(delta)
    if known is None:
        found = guarantee(
            priced.events(multiplier), delta=left, group=run.records_per_unit, selection=select
        )
        known = found, None
    found, proof = known
    epsilon = found.epsilon if select else _with_cuts(priced, multiplier, delta, found)
    found = replace(found, delta=delta, epsilon=epsilon)
    assumed = tuple(dict.fromkeys((*found.assumptions, *priced.given)))
    why = "" if select is None else "no certificate's rule knows the best of several runs"
    if found.grade is Grade.PROVED and priced.spared and priced.cut:
        why = "what is certified is batches that are not cut, at what delta leaves for them"
        found = replace(found, grade=Grade.ENCLOSED)
    found = replace(found, assumptions=assumed, not_proved=why or found.not_proved)
    warnings = list(weaknesses(found.epsilon.upper_float, delta, records))
    if run.adjacency is Adjacency.REPLACE_ONE:
        warnings.append(
            "Under replace-one a record moves the sum by up to 2 clip norms; the noise multiplier "
            "is noise_std / clip norm."
        )
    return TrainingCost(
        run=run,
        noise_multiplier=multiplier,
        guarantee=found,
        warnings=tuple(warnings),
        proof=proof,
        select=select,
    )


def _with_cuts(run: TrainingRun, multiplier: float, delta: Number, found: Guarantee) -> Enclosure:
    """Return the enclosure of ε of a run whose batches may be cut: its lower end is another.

    A cut changes each law by at most c, its probability, so that H at e^ε is no less than that of
    uncut batches less c (1 + e^ε): the lower end of these holds at δ + c (1 + e^ε).

    Args:
        run: what is priced.
        multiplier: of its noise.
        delta: in all.
        found: what is guaranteed; its upper end holds.
    """
    if run.largest_batch is None:
        return found.epsilon
    lower, most = arb(0), found.epsilon.upper_float
    if run.spared and most < _FAR_LOSS:
        larger = Fraction(delta) + run.cut * (1 + Fraction(exp(most)) * 2)
        if larger < 1:
            uncut = guarantee(
                run.events(multiplier), delta=float_up(larger), group=run.records_per_unit
            )
            lower = uncut.epsilon.lower.min(found.epsilon.upper)
    return Enclosure(lower, found.epsilon.upper)


_FAR_LOSS = 700.0
"""An ε whose exponential is still a double."""


def _readings(
    noise_multiplier: Number, delta: Number, stated: _Stated, select: Selection | None
) -> tuple[TrainingCost, ...]:
    """Return what every sampling and relation that fits what is stated would cost."""
    found: list[TrainingCost] = []
    for scheme, relations in RULES.items():
        for relation in relations:
            if stated.get("sampling") not in (None, scheme, scheme.value):
                continue
            if stated.get("adjacency") not in (None, relation, relation.value):
                continue
            whole: _Stated = {**stated, "sampling": scheme, "adjacency": relation}
            least, records = float_down(noise_multiplier), stated.get("records")
            with suppress(InvalidParameter):
                run = _run(whole, select)
                found.append(_cost(run, least, delta, records, select=select))
    return tuple(found)
