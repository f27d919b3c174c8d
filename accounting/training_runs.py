"""A training run as people state it: how batches are drawn, under which relation, how often.

One step releases the sum of per-example gradients, each clipped to norm C, plus Gaussian noise;
the *noise multiplier* is noise_std / C, as in DP-SGD (Abadi et al. 2016). What a step costs
depends on the neighbouring relation and on how batches are drawn, so both are asked for:

    relation           a record moves the sum by     sampling that has a rule
    add-remove-one     C                             none, poisson, truncated-poisson
    zero-out-one       C                             none, poisson, truncated-poisson,
                                                     cyclic-poisson, shuffled
    replace-one        2 C                           none, poisson, truncated-poisson,
                                                     cyclic-poisson, fixed-batch,
                                                     with-replacement, shuffled

Shuffled epochs and a fixed partition: every record is in exactly one batch an epoch. For each
order of the records, which does not depend on what they say, the batches of two neighbours differ
in one batch an epoch, so a record pays for one Gaussian release an epoch (parallel composition,
McSherry 2009, Theorem 4; a mixture over public orders costs no more, by joint convexity). The
number of batches and what sums are divided by must be public. Under add-remove-one a further
record shifts all batches behind its place, and this argument says nothing.

Truncated Poisson batches are cut to `largest_batch` records. While cuts are rare, their probability
over all steps is taken from delta, half of it at most; beyond, a cut record counts as if it took
another's place (`cut_batches`). Cyclic Poisson batches: records are dealt by their place to `cycle`
groups that take turns, and a step draws from one of them; a record meets the steps of its own group
alone. Noise that is correlated over up to `cycle` steps (banded matrices, with columns of norm one
at most) costs the same under zero-out-one: Choquette-Choo et al. 2023, arXiv:2306.08153, Theorem 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import ceil

from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import (
    InvalidParameter,
    Number,
    named,
    require_group,
    require_positive,
    require_positive_int,
    require_rate,
)
from ..mechanisms.events import (
    Audience,
    Context,
    Event,
    GaussianStep,
    Mechanism,
    PoissonSampled,
    Repeated,
    SampledWithoutReplacement,
    SampledWithReplacement,
)
from ..mechanisms.sensitivity import Sensitivity, declared, float_up, sum_of_bounded
from .cut_batches import most_cut, twice_moved
from .numbers.enclosure import shown_up


class Sampling(Enum):
    """How the records of a step are chosen."""

    NONE = "none"
    """Every record in every step."""

    POISSON = "poisson"
    """Each record independently with probability batch / records; the sample stays hidden."""

    TRUNCATED_POISSON = "truncated-poisson"
    """Poisson samples, of which those of more than `largest_batch` records are cut to so many."""

    CYCLIC_POISSON = "cyclic-poisson"
    """Poisson samples of one of `cycle` groups of records, which take turns."""

    FIXED_BATCH = "fixed-batch"
    """A fresh uniform batch of fixed size each step, without replacement; it stays hidden."""

    WITH_REPLACEMENT = "with-replacement"
    """As many draws as a batch has places, each of all records; what is drawn stays hidden."""

    SHUFFLED = "shuffled"
    """Every record in one batch an epoch: shuffled epochs, or a fixed partition."""


SCHEMES = tuple(each.value for each in Sampling)
"""How batches are drawn, by their texts."""

_MOVES = {Adjacency.ADD_REMOVE_ONE: 1, Adjacency.ZERO_OUT_ONE: 1, Adjacency.REPLACE_ONE: 2}
"""By how many clip norms a record moves the sum of clipped gradients: one that is replaced takes
its own away and brings another.
"""
RULES: dict[Sampling, tuple[Adjacency, ...]] = {
    Sampling.NONE: tuple(_MOVES),
    Sampling.POISSON: tuple(_MOVES),
    Sampling.TRUNCATED_POISSON: tuple(_MOVES),
    Sampling.CYCLIC_POISSON: (Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE),
    Sampling.FIXED_BATCH: (Adjacency.REPLACE_ONE,),
    Sampling.WITH_REPLACEMENT: (Adjacency.REPLACE_ONE,),
    Sampling.SHUFFLED: (Adjacency.ZERO_OUT_ONE, Adjacency.REPLACE_ONE),
}
"""The relations under which each sampling scheme has a theorem (see the table at the top)."""


_SIZED = (Sampling.FIXED_BATCH, Sampling.WITH_REPLACEMENT)
"""The schemes whose batches all have one size."""

_POISSON = (Sampling.POISSON, Sampling.TRUNCATED_POISSON, Sampling.CYCLIC_POISSON)
"""The schemes that draw each record with a rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """A run of clipped, noised steps; `releases` of them touch a given record at `rate`.

    Args:
        adjacency: the neighbouring relation.
        sampling: how batches are drawn.
        releases: steps that may hold a given record: all, or one an epoch where shuffled.
        steps: all steps of the optimiser; None where only epochs are stated. Of shuffled epochs the
            fewest: of a loader that drops what does not fill a batch.
        rate: of Poisson sampling, rounded up to a double.
        batch, records: of a batch of fixed size, drawn with or without replacement.
        records_per_unit: how many records a unit of privacy (a person) has at most; epsilon is that
            of a unit, all of whose records are added, removed, zeroed or replaced together.
        largest_batch: to which Poisson batches are cut; None if they are not.
        cut: an upper bound on the probability that any of the steps' batches is cut; of several
            runs, in any of them.
        spared: whether that is taken from delta, so that the events are of batches that are not.
        parts: in which a batch is computed; no record is in two of them.
    """

    adjacency: Adjacency
    sampling: Sampling
    releases: int
    steps: int | None = None
    rate: float | None = None
    batch: int | None = None
    records: int | None = None
    records_per_unit: int = 1
    largest_batch: int | None = None
    cut: Fraction = Fraction(0)
    spared: bool = False
    parts: int = 1

    @classmethod
    def of(
        cls,
        *,
        sampling: Sampling | str | None = None,
        adjacency: Adjacency | str | None = None,
        records: int | None = None,
        batch: int | None = None,
        rate: Number | None = None,
        steps: int | None = None,
        epochs: Number | None = None,
        accumulation: int = 1,
        records_per_unit: int = 1,
        largest_batch: int | None = None,
        cycle: int | None = None,
    ) -> "TrainingRun":
        """Return the run that is stated; parts of a step or of an epoch count as a whole one.

        Args:
            sampling: a `Sampling`, or its text.
            adjacency: an `Adjacency`, or its text.
            records: number of records, public.
            batch: (expected) records of a batch that is computed at once.
            rate: in place of batch / records; of cyclic-poisson, in place of batch and records, the
                rate within a group: cycle · batch / records.
            steps: number of optimiser steps, exact.
            epochs: in place of steps; rounded up to whole steps.
            accumulation: parts of `batch` records in which a batch, drawn at once, is computed: no
                record is in two of them. Of Poisson samples that are drawn one by one, a record can
                be in several: such a step is an `AccumulatedPoisson` event.
            records_per_unit: how many records a unit of privacy has at most.
            largest_batch: records to which a larger sample is cut, of truncated-poisson.
            cycle: groups to which records are dealt, of cyclic-poisson.

        Raises `InvalidParameter` naming what is missing, out of range or has no rule.
        """
        relation = named("adjacency", adjacency, _MOVES)
        scheme = named("sampling", sampling, Sampling)
        require_rule(scheme, relation)
        counts = {"records": records, "batch": batch, "steps": steps}
        _require_counts({**counts, "largest_batch": largest_batch, "cycle": cycle})
        _require_own(scheme, Sampling.TRUNCATED_POISSON, "largest_batch", largest_batch)
        _require_own(scheme, Sampling.CYCLIC_POISSON, "cycle", cycle)
        require_positive_int("accumulation", accumulation)
        require_group("records_per_unit", records_per_unit)
        share = _share(scheme, records, batch, rate, accumulation)
        of_all = share and (share / cycle if cycle and rate is not None else share)
        turns = _turns(steps, epochs, of_all)
        releases = turns and ceil(Fraction(turns, cycle or 1))
        if cycle is not None:
            if rate is not None and records is not None:
                allowed = (
                    "left out with cyclic-poisson and records: a rate is of one group; state batch"
                )
                raise InvalidParameter("rate", rate, allowed)
            share = _of_group(share, records, cycle, records_per_unit)
        if scheme is Sampling.SHUFFLED:
            releases = _once_an_epoch(turns, epochs, share)
            if turns and epochs is not None and share:
                # whichever way a loader ends its epochs, so many steps begin no more of them
                turns = min(turns, ceil(Fraction(epochs)) * int(1 / share))
        if releases is None:
            raise InvalidParameter("steps", None, "stated, or epochs with records and batch")
        if scheme in _SIZED:
            if batch is None or records is None:
                raise InvalidParameter("batch", batch, f"stated with records for {scheme.value}")
            return cls(
                adjacency=relation,
                sampling=scheme,
                releases=releases,
                steps=turns,
                batch=batch * accumulation,
                records=records,
                records_per_unit=records_per_unit,
                parts=accumulation,
            )
        return cls(
            adjacency=relation,
            sampling=scheme,
            releases=releases,
            steps=turns,
            rate=float_up(share) if scheme in _POISSON and share is not None else None,
            records_per_unit=records_per_unit,
            largest_batch=largest_batch,
            cut=_cut(releases, share, records, largest_batch, records_per_unit),
            parts=accumulation,
        )

    def among(self, runs: Number) -> "TrainingRun":
        """Return this as the one of `runs`, on average, that alone is published."""
        return replace(self, cut=min(self.cut * Fraction(runs), Fraction(1)))

    def within(self, delta: Number) -> tuple["TrainingRun", Number]:
        """Return the run whose events are to be priced, and at which delta, for `delta` in all.

        Of truncated batches: Poisson batches, at what the probability of a cut leaves of delta,
        where that is half of it at least.
        """
        left = Fraction(delta) - self.cut
        spared = self.largest_batch is not None and 2 * left >= delta
        return (replace(self, spared=True), left) if spared else (self, delta)

    @property
    def given(self) -> tuple[str, ...]:
        """What is taken for granted beside what the events say."""
        several = self.records_per_unit > 1
        # drawn with replacement, parts are what batches of their size would be
        apart = self.parts > 1 and self.sampling is not Sampling.WITH_REPLACEMENT
        return (
            *((f"no record is in two of the {self.parts} parts of a batch",) if apart else ()),
            *(("no record's gradient is longer than one clip norm",) if self._hides_both else ()),
            *((f"no unit has more than {self.records_per_unit} records",) if several else ()),
            *((self._set_aside,) if self.spared and self.cut else ()),
        )

    @property
    def _set_aside(self) -> str:
        """What of delta pays for batches that are cut."""
        part = shown_up(float_up(self.cut), digits=3)
        return (
            f"any sample is of more than {self.largest_batch} records, and cut, with a probability "
            f"of at most {part} in all, which delta holds beside what is proved"
        )

    @property
    def _hides_both(self) -> bool:
        """Whether samples hide a replaced record: its pair rests on what one record brings."""
        return self.rate is not None and self.adjacency is Adjacency.REPLACE_ONE

    @property
    def unit(self) -> str:
        """Whose epsilon it is, in words."""
        several = self.records_per_unit > 1
        return f"unit of at most {self.records_per_unit} records" if several else "record"

    def events(self, noise_multiplier: Number) -> list[Event]:
        """Return the events of the run, in units of the clip norm C."""
        moves = _MOVES[self.adjacency]
        reason = f"a record moves the sum by at most {moves} clip norm{'s' * (moves > 1)}"
        stated = declared(moves, reason, adjacency=self.adjacency)
        # the pair where a record is replaced rests on what one record's own gradient brings
        sensitivity = sum_of_bounded(1, self.adjacency) if self._hides_both else stated
        if self.largest_batch is not None and not self.spared:
            sensitivity = self._cut_often(stated)
        step = GaussianStep(sensitivity, -float_up(-Fraction(noise_multiplier)))
        one: Mechanism = step
        if self.rate is not None:
            one = PoissonSampled(step, self.rate)
        elif self.batch is not None and self.records is not None:
            again = self.sampling is Sampling.WITH_REPLACEMENT
            drawn = SampledWithReplacement if again else SampledWithoutReplacement
            one = drawn(step, self.batch, self.records)
        context = Context((), 1, "noisy sum of clipped gradients", Audience.PUBLIC)
        return [Event(Repeated(one, self.releases), context)]

    def _cut_often(self, size: Sensitivity) -> Sensitivity:
        """Return how far a record moves a sum that is often cut; no rule but under add/remove."""
        if self.adjacency is Adjacency.ADD_REMOVE_ONE:
            return twice_moved(size)
        allowed = (
            f"larger, under {self.adjacency.value}: batches are cut with a probability of up to "
            f"{float(self.cut):.3g} in all, of which delta must be twice as much"
        )
        raise InvalidParameter("largest_batch", self.largest_batch, allowed)


def require_rule(scheme: Sampling, relation: Adjacency) -> None:
    """Raise `InvalidParameter` where no theorem prices a sampling scheme under a relation."""
    if relation in RULES[scheme]:
        return
    others = " or ".join(r.value for r in RULES[scheme])
    why = {
        Sampling.CYCLIC_POISSON: "a record more is dealt a place, and moves others to other groups",
        Sampling.FIXED_BATCH: "the rule of a fixed batch speaks of a replaced record",
        Sampling.WITH_REPLACEMENT: "a record more changes how likely each one is to be drawn",
        Sampling.SHUFFLED: "a record more shifts every batch behind its place",
    }[scheme]
    allowed = f"{others} with sampling={scheme.value!r}: {why}"
    raise InvalidParameter("adjacency", relation.value, allowed)


def _require_counts(counts: Mapping[str, int | None]) -> None:
    """Raise `InvalidParameter` unless all that is stated are whole numbers >= 1."""
    for name, value in counts.items():
        if value is not None:
            require_positive_int(name, value)


def _require_own(scheme: Sampling, own: Sampling, name: str, value: int | None) -> None:
    """Raise `InvalidParameter` unless a count is stated with its own scheme, and only there."""
    if (scheme is own) != (value is not None):
        word = "stated" if scheme is own else "left out"
        raise InvalidParameter(name, value, f"{word} with sampling={scheme.value!r}")


def _of_group(
    share: Fraction | None, records: int | None, cycle: int, records_per_unit: int
) -> Fraction:
    """Return the rate at which records of the smallest of `cycle` groups are drawn.

    Args:
        share: batch / records, or the rate as it is stated, of a group.
        records: None where the rate is stated.

    Raises `InvalidParameter` for units of several records, which may be dealt to several groups.
    """
    if records_per_unit > 1:
        allowed = "1 with cyclic-poisson: a unit's records may be in several groups"
        raise InvalidParameter("records_per_unit", records_per_unit, allowed)
    assert share is not None
    if records is None:
        return share
    group = records // cycle
    if share * records > group:
        raise InvalidParameter("cycle", cycle, f"such that a group of {group} fills a batch")
    return share * records / group


def _cut(
    releases: int, share: Fraction | None, records: int | None, largest: int | None, unit: int
) -> Fraction:
    """Return an upper bound on the probability that any step's batch is cut; 0 if none is."""
    if largest is None:
        return Fraction(0)
    if records is None or share is None:
        raise InvalidParameter("records", records, "stated with truncated-poisson")
    one = most_cut(records, Fraction(float_up(share)), largest + 1 - unit)
    return min(releases * one, Fraction(1))


def _share(
    scheme: Sampling, records: int | None, batch: int | None, rate: Number | None, accumulation: int
) -> Fraction | None:
    """Return the (expected) part of all records in one step, exactly; None if it is not stated."""
    if rate is not None:
        require_rate("rate", rate)
        if batch is not None or scheme in _SIZED:
            raise InvalidParameter("rate", rate, "left out where a batch is stated")
        if Fraction(rate) * accumulation > 1:
            allowed = f"at most 1 / {accumulation}: no record is in two of a batch's parts"
            raise InvalidParameter("rate", rate, allowed)
        return Fraction(rate) * accumulation
    if batch is None or records is None:
        if scheme in _POISSON:
            allowed = f"stated, or batch and records, with {scheme.value}"
            raise InvalidParameter("rate", None, allowed)
        return None
    if batch * accumulation > records:
        raise InvalidParameter("batch", batch, f"in [1, records={records}] (with accumulation)")
    return Fraction(batch * accumulation, records)


def _turns(steps: int | None, epochs: Number | None, share: Fraction | None) -> int | None:
    """Return the number of steps, rounded up; None if only epochs are known."""
    if (steps is None) == (epochs is None):
        raise InvalidParameter("steps", steps, "stated, or epochs, and not both")
    if steps is not None:
        return steps
    assert epochs is not None
    require_positive("epochs", epochs)
    return None if not share else ceil(Fraction(epochs) / share)


def epochs_begun(steps: int, share: Fraction) -> int:
    """Return the epochs that so many steps begin, each on this part of the records, in (0, 1]."""
    # where what does not fill a batch is dropped, an epoch has fewer steps than records / batch
    return ceil(Fraction(steps, max(1, int(1 / share))))


def fewest_epochs_begun(steps: int, share: Fraction) -> int:
    """Return the epochs that so many steps begin where what does not fill a batch is one more."""
    return ceil(Fraction(steps, ceil(1 / share)))


def _once_an_epoch(turns: int | None, epochs: Number | None, share: Fraction | None) -> int | None:
    """Return in how many steps a record is at most: one in each epoch that was begun.

    Args:
        turns: steps of the optimiser.
        epochs: as stated.
        share: part of all records in a step.
    """
    if epochs is not None:
        return ceil(Fraction(epochs))
    if turns is None or not share:
        return None
    return epochs_begun(turns, share)
