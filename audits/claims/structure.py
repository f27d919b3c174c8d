"""Promises about the structure of an algorithm: what it looks at, and what its output is made of.

An `AccessPromise` asks whether everything left through a mechanism; a `MessagesOnlyPromise` whether
the output is a function of the messages; a `RecordwisePromise` whether preprocessing treats every
record by itself; a `PublicPromise` whether what is used as public is the same for neighbours; a
`RegimePromise` whether the paper's own conditions are met; a `ReadingsPromise` whether the readings
of an ambiguous notation agree; a `ConstantsPromise` whether all constants are given; an
`AssumptionPromise` whether the algorithm keeps what the analysis assumes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Generic

import numpy as np

from ...accounting.guarantees import guarantee
from ...accounting.numbers.enclosure import Enclosure, shown_down, shown_in_full, shown_up
from ...mechanisms.curators import Curator
from ...mechanisms.events import Event, UnprotectedRelease
from ...mechanisms.private_data import PrivateDataset
from ...mechanisms.protocols import EventList, FloatArray
from ...mechanisms.sampling import SimulationSampler
from ..curators import RecordingCurator, ReplayCurator
from ..neighbours import NeighbourPair
from .auditor import no_argument, no_figures
from .claim import Case, ClaimVerdict, Counterexample, DerivationEvidence, Finding, S
from .settings import stated_delta

_SEED = 2026
"""Of the one run that is replayed: a structure shows in any run."""

_SAME = 1e-9
"""Relative difference of epsilons that counts as none."""


@dataclass(frozen=True, slots=True)
class AccessPromise(Generic[S]):
    """Whatever the algorithm learns from the data passes through a mechanism.

    Args:
        plan: the planned events at these parameters, preprocessing and tuning included.
        figures: further numbers.
        argument: in words.
    """

    plan: Callable[[S], Sequence[Event]]
    figures: Callable[[S], Mapping[str, Enclosure]] = no_figures
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Look for unprotected releases among the planned events.

        Evidence is the list of unprotected releases; how much they show is the attack's business.
        """
        events = self.plan(case.setting)
        mechanisms = [event.mechanism for event in events]
        reasons = [m.reason for m in mechanisms if isinstance(m, UnprotectedRelease)]
        verdict, reason = ClaimVerdict.HOLDS, f"all {len(events)} releases pass through a mechanism"
        if reasons:
            verdict = ClaimVerdict.UNACCOUNTED_ACCESS
            reason = "; ".join(dict.fromkeys(reasons))
        line = f"{len(reasons)} of {len(events)} planned releases are unprotected"
        return Finding(
            verdict,
            reason,
            figures=self.figures(case.setting),
            argument=self.argument(case.setting),
            evidence=(DerivationEvidence((line,)),),
        )


@dataclass(frozen=True, slots=True)
class MessagesOnlyPromise(Generic[S]):
    """The final state is a function of the messages, with nothing private besides.

    Args:
        solve: the algorithm at these parameters; it returns its state, a dataclass of arrays.
        pair: two data sets that differ.

    Args are functions of the parameters, so that a claim can be judged at any of them.
    """

    solve: Callable[[S], Callable[[PrivateDataset, Curator], object]]
    pair: Callable[[S], NeighbourPair]
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Run on one data set, replay its messages on the other, and compare the states.

        Whatever differs was computed from data beyond the messages; and a message without a
        mechanism is such data itself.

        States are compared bit for bit, as the same messages must give the same arithmetic.
        """
        solve, pair = self.solve(case.setting), self.pair(case.setting)
        events = EventList()
        recorder = RecordingCurator(events, SimulationSampler(_SEED))
        ran = solve(pair.dataset, recorder)
        differing = pair.dataset.differing(pair.neighbour)
        replayer = ReplayCurator(
            recorder.transcript,
            uniforms=recorder.uniforms,
            differing=None if differing is None else int(differing[0]),
        )
        replayed = solve(pair.neighbour, replayer)
        names = [f.name for f in fields(ran)]  # type: ignore[arg-type]
        moved = [n for n in names if not np.array_equal(getattr(ran, n), getattr(replayed, n))]
        open_events = [e for e in events.events if isinstance(e.mechanism, UnprotectedRelease)]
        verdict = ClaimVerdict.UNACCOUNTED_ACCESS if moved or open_events else ClaimVerdict.HOLDS
        reason = f"{', '.join(names)} come out the same when the messages meet other data"
        if moved:
            reason = f"{', '.join(moved)} depend on the data beyond the messages"
        elif open_events:
            reason = f"{len(open_events)} messages are unprotected"
        return Finding(
            verdict,
            reason,
            argument=self.argument(case.setting),
            evidence=(DerivationEvidence((f"replayed on: {pair.description}", reason)),),
        )


def mean_gradient_moves(first: FloatArray, second: FloatArray) -> float:
    """Return the change of the mean logistic gradient at 0 if all labels are 1, for rows (n, d).

    Args:
        first, second: rows of the two data sets, of one shape, as preprocessing leaves them.
    """
    return float(np.linalg.norm((first - second).mean(axis=0)) / 2)


@dataclass(frozen=True, slots=True)
class RecordwisePromise(Generic[S]):
    """Preprocessing treats every record by itself, so that a replaced record moves one row only.

    Args:
        preprocess: rows of shape (n, d) to rows.
        rows: the rows of two data sets that differ in the last record.
        claimed: the sensitivity that the analysis gives to the mean gradient.
        moved: how far the mean gradient of preprocessed rows moves, from both.
        priced: what leaves costs, if the gradient moves so many times as far as claimed.
    """

    preprocess: Callable[[FloatArray], FloatArray]
    rows: Callable[[S], tuple[FloatArray, FloatArray]]
    claimed: Callable[[S], float]
    moved: Callable[[FloatArray, FloatArray], float] = mean_gradient_moves
    argument: Callable[[S], tuple[str, ...]] = no_argument
    priced: Callable[[S, float], Mapping[str, Enclosure]] = lambda _s, _times: {}

    def judge(self, case: Case[S]) -> Finding:
        """Preprocess both data sets, and count the rows but the last that moved.

        Rows are compared bit for bit: a preprocessing that looks at other records moves theirs by
        something.
        """
        rows = self.rows(case.setting)
        first, second = (self.preprocess(side) for side in rows)
        others = int(np.any(first[:-1] != second[:-1], axis=1).sum())
        verdict = ClaimVerdict.UNACCOUNTED_ACCESS if others else ClaimVerdict.HOLDS
        reason = f"replacing one record changes {others} of the {len(first) - 1} other rows"

        moved, claimed = self.moved(first, second), self.claimed(case.setting)
        line = f"moved {moved:.10g}, claimed {claimed:.10g}"
        return Finding(
            verdict,
            reason,
            claimed=Enclosure.of(claimed),
            true=Enclosure.of(moved),
            unit="change of the mean gradient",
            figures=self.priced(case.setting, moved / claimed),
            argument=self.argument(case.setting),
            evidence=(DerivationEvidence((line,)),),
        )


@dataclass(frozen=True, slots=True)
class ReadingsPromise(Generic[S]):
    """A notation with several readings; the claim is specified where they cost the same.

    Args:
        claimed: the epsilon that the paper states.
        readings: the planned events under each reading, by name.
        delta: at which delta.
    """

    claimed: Callable[[S], Enclosure]
    readings: Callable[[S], Mapping[str, Sequence[Event]]]
    delta: Callable[[S], float] = stated_delta
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Price every reading; the costliest is what a reader may have built.

        An ambiguous notation is unspecified unless all readings cost the same, to nine digits.
        """
        delta = self.delta(case.setting)
        costs = {
            name: guarantee(events, delta=delta).epsilon
            for name, events in self.readings(case.setting).items()
        }
        worst = max(costs.values(), key=lambda e: e.upper_float)
        least = min(costs.values(), key=lambda e: e.upper_float)
        agree = worst.upper_float <= least.upper_float * (1 + _SAME)
        words = ", ".join(
            f"{name}: {shown_up(e.upper_float, digits=6)}" for name, e in costs.items()
        )
        return Finding(
            ClaimVerdict.HOLDS if agree else ClaimVerdict.UNSPECIFIED,
            f"the readings agree ({words})" if agree else f"the readings differ: {words}",
            claimed=self.claimed(case.setting),
            true=worst,
            unit=f"epsilon at delta {shown_in_full(delta)}",
            figures=costs,
            argument=self.argument(case.setting),
            evidence=(DerivationEvidence((words,)),),
        )


@dataclass(frozen=True, slots=True)
class PublicPromise(Generic[S]):
    """What the algorithm uses as public does not depend on the records.

    Args:
        used: from rows of shape (n, d) to what is used, in words.
        rows: the rows of two data sets that differ in one record.
    """

    used: Callable[[S, FloatArray], str]
    rows: Callable[[S], tuple[FloatArray, FloatArray]]
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Compute it from both data sets.

        One pair on which it differs is enough: what is published would tell the two apart with
        certainty.
        """
        setting, rows = case.setting, self.rows(case.setting)
        first, second = (self.used(setting, side) for side in rows)

        def rerun(trials: int, seed: int) -> tuple[float, float]:
            found = [float(self.used(setting, side) == first) for side in rows]
            return found[0], found[1]

        if first == second:
            line = f"{first} in both data sets"
            return Finding(ClaimVerdict.HOLDS, line, evidence=(DerivationEvidence((line,)),))
        return Finding(
            ClaimVerdict.UNACCOUNTED_ACCESS,
            f"one record turns “{first}” into “{second}”",
            argument=self.argument(setting),
            evidence=(
                Counterexample(
                    f"rows {rows[0].tolist()} and {rows[1].tolist()}",
                    f"{first}, where what is used is published",
                    Enclosure.of(1),
                    Enclosure.of(0),
                    rerun,
                    exact=True,
                ),
            ),
        )


@dataclass(frozen=True, slots=True)
class RegimePromise(Generic[S]):
    """The paper's own conditions hold where it applies its theorems.

    Args:
        violated: which condition these parameters violate; None if none.
    """

    violated: Callable[[S], str | None]
    figures: Callable[[S], Mapping[str, Enclosure]] = no_figures
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Check the conditions.

        Outside of its conditions a theorem says nothing, so that the verdict is neither true nor
        false.
        """
        found = self.violated(case.setting)
        reason = "the conditions are met" if found is None else found
        return Finding(
            ClaimVerdict.HOLDS if found is None else ClaimVerdict.OUTSIDE_ITS_REGIME,
            reason,
            figures=self.figures(case.setting),
            argument=self.argument(case.setting),
            evidence=(DerivationEvidence((reason,)),),
        )


@dataclass(frozen=True, slots=True)
class ConstantsPromise(Generic[S]):
    """A statement "for some constants", which says something once the user has fixed them.

    Args:
        open: the parameters that the statement leaves open.
        needed: what they would have to be at least, by name.
    """

    open: tuple[str, ...]
    needed: Callable[[S], Mapping[str, Enclosure]]
    figures: Callable[[S], Mapping[str, Enclosure]] = no_figures
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Compare what the user fixed with what is needed.

        "For some constant c" cannot be wrong, and cannot be used either: what decides is whether
        the c that a user would need is stated and large enough.
        """
        setting, needed = case.setting, self.needed(case.setting)
        words = ", ".join(f"{name} >= {value.upper_float:.6g}" for name, value in needed.items())
        missing = [name for name in self.open if case.free(name)]
        short = [n for n, v in needed.items() if not v <= Enclosure.of(getattr(setting, n))]
        if missing:
            verdict = ClaimVerdict.UNSPECIFIED
            reason = f"{', '.join(missing)} not given" + (f"; needed: {words}" if words else "")
        elif short:
            verdict = ClaimVerdict.OUTSIDE_ITS_REGIME
            reason = f"too small: {', '.join(short)}; needed: {words}"
        else:
            verdict, reason = (
                ClaimVerdict.HOLDS,
                f"all constants are given; needed: {words or 'none'}",
            )
        return Finding(
            verdict,
            reason,
            figures={**{f"{n} needed": v for n, v in needed.items()}, **self.figures(setting)},
            argument=self.argument(setting),
            evidence=(DerivationEvidence((reason,)),),
        )


@dataclass(frozen=True, slots=True)
class AssumptionPromise(Generic[S]):
    """What the analysis assumes of the iterates, the algorithm makes true.

    Args:
        assumed: the assumption, in words.
        broken: the least probability with which a run breaks it.
    """

    assumed: str
    broken: Callable[[S], float]
    figures: Callable[[S], Mapping[str, Enclosure]] = no_figures
    argument: Callable[[S], tuple[str, ...]] = no_argument

    def judge(self, case: Case[S]) -> Finding:
        """Ask for that probability.

        An assumption that noise alone breaks with some probability is no guarantee; that
        probability is a lower bound, rounded down.
        """
        probability = self.broken(case.setting)
        verdict, reason = ClaimVerdict.HOLDS, f"{self.assumed}: nothing in the algorithm breaks it"
        if probability > 0:
            verdict = ClaimVerdict.UNENFORCED_ASSUMPTION
            # a double near 1 may be 1, and no run is certain
            share = shown_down(min(probability, 0.9999), digits=4)
            reason = f"{self.assumed}: false with probability {share} or more"
        return Finding(
            verdict,
            reason,
            figures=self.figures(case.setting),
            argument=self.argument(case.setting),
            evidence=(DerivationEvidence((reason,)),),
        )
