"""Runs of which sums over all parties alone are seen: how they are planned, and how parties run.

A solver runs on the shape of one holder of all records (`summed_shape`). Every release of it is one
sum: each party computes its part, rounds it, adds its share of the noise (`SummedLattice`), records
the whole numbers, commits, and hands them to an `Aggregation`. The sum comes back to every party as
the message of the one holder, and is all that a solver sees: no algorithm can lean on a message of
one party.

A hidden sample, other noise than Gaussian and a release without noise are refused, at the plan.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..mechanisms.curators import Curator, PlanningCurator, Release
from ..mechanisms.data_shape import DataShape
from ..mechanisms.errors import InvalidParameter
from ..mechanisms.events import Event
from ..mechanisms.private_data import PrivateDataset
from ..mechanisms.protocols import FloatArray
from ..mechanisms.sample import Sample
from ..mechanisms.sampling import ExactSampler, Sampler
from ..mechanisms.sensitive import Sensitive
from ..mechanisms.sensitivity import Sensitivity, concatenated, declared
from ..mechanisms.share_data import ShareOfSum, require_sum, summed_shape
from ..mechanisms.subsampling import Scheme
from ..mechanisms.summed_lattice import SUMMED_BITS, SummedLattice
from ..solvers.planning import Solves
from ..solvers.threat_model import Summed
from .aggregation import Aggregation, PublicMasks, SumRelease, as_integers, as_words
from .journal import Journal, RecordedCurator
from .prepaid import PrepaidRun

__all__ = ["SummedCurator", "SummedTerms", "plan_of_sums"]


@dataclass(frozen=True, slots=True)
class SummedTerms:
    """What parties agree on about their sums.

    Args:
        model: the threat model, with its colluders and dropouts.
        parties: P, as many as take part.
        aggregation: by which sums are taken.
        bits: k of the lattice: a share of noise has a standard deviation of 2^k steps.
    """

    model: Summed
    parties: int
    aggregation: Aggregation
    bits: int = SUMMED_BITS

    @classmethod
    def of(cls, model: Summed, shape: DataShape) -> "SummedTerms":
        """Return the terms of a run on data of a shape, simulated: by the double, which hides
        nothing.
        """
        return cls(model, len(shape.parties), PublicMasks())

    @property
    def lattice(self) -> SummedLattice:
        """How values and noises are rounded; raises `InvalidParameter` for t + D >= P."""
        return SummedLattice(self.parties, self.model.lost, self.bits)

    @property
    def assumption(self) -> str:
        """What every epsilon rests on, in a sentence; it stands in each event."""
        return self.model.assuming(self.aggregation.simulated_by)

    @property
    def text(self) -> str:
        """All of it, for the plan's subject."""
        dropouts = f"{self.model.dropouts} dropouts, " if self.model.dropouts else ""
        return (
            f"summed, {self.model.colluders} colluders, {dropouts}2**{self.bits} steps a share, "
            f"{self.aggregation.name}"
        )


class _Summing(Curator):
    """Prices releases as sums: on the coarse lattice, under the assumption of the terms."""

    terms: SummedTerms

    def sample(self, dataset: PrivateDataset, scheme: Scheme) -> Sample:
        """Raise `InvalidParameter`: no rule here prices a sum over hidden samples of parties."""
        raise InvalidParameter("sample", scheme, "None: only sums over all records are seen")

    def _noise_std(self, sensitive: Sensitive, noise_multiplier: float) -> float:
        return self.terms.lattice.noise_std(
            sensitive.sensitivity,
            noise_multiplier,
            dimension=sensitive.rows * sensitive.dimension,
            error=sensitive.rounding.error,
        )

    def _price(
        self, sensitive: Sensitive, noise_std: float
    ) -> Callable[[Sensitivity], Sensitivity]:
        lattice, rounding = self.terms.lattice, sensitive.rounding
        lattice.modulus_bits(rounding.magnitude, noise_std=noise_std)  # refuses what does not fit

        def priced(sensitivity: Sensitivity) -> Sensitivity:
            size = sensitive.rows * sensitive.dimension
            found = lattice.priced(
                sensitivity, noise_std=noise_std, dimension=size, error=rounding.error
            )
            adjacency = found.adjacency
            return concatenated(found, declared(0, self.terms.assumption, adjacency=adjacency))

        return priced

    def _modulus_bits(self, release: Release) -> int:
        """Return m of a release; raise `InvalidParameter` for one that is no sum with noise."""
        require_sum(release.event)
        magnitude = release.sensitive.rounding.magnitude
        return self.terms.lattice.modulus_bits(magnitude, noise_std=release.scale)


class _Planning(_Summing, PlanningCurator):
    """Notes events, and of each sum how many numbers it has, and m."""

    def __init__(self, terms: SummedTerms) -> None:
        super().__init__()
        self.terms = terms
        self.sums: list[tuple[int, int]] = []

    def _deliver(self, release: Release) -> FloatArray:
        self.sums.append((release.sensitive.dimension, self._modulus_bits(release)))
        return super()._deliver(release)


def plan_of_sums(
    solver: Solves[PrivateDataset], shape: DataShape, terms: SummedTerms
) -> tuple[tuple[Event, ...], tuple[tuple[int, int], ...]]:
    """Return the events of a run, and the width and modulus bits of each of its sums.

    Args:
        solver: planned on the shape of one holder of all records.
        shape: the public facts about all parties' data.
        terms: agreed on.

    Raises `InvalidParameter` for add-remove-one, a hidden sample, a minimiser, or noise that is not
    Gaussian; for noise that does not fit the lattice.
    """
    curator = _Planning(terms)
    solver.solve(ShareOfSum.planned(summed_shape(shape)), curator)
    return tuple(curator.events), tuple(curator.sums)


class SummedCurator(_Summing, RecordedCurator):
    """A party's curator: its whole numbers are recorded and committed; what comes back is the sum.

    Args:
        paid: where the run has paid for its plan.
        sampler: of this party's share of noise, exact.
        journal: of this party's numbers.
        run: name of the run in it.
        terms: agreed on.
        parties: who takes part, in the order of the plan.
        party: this one.
        exchange: hands bytes to the next step of the run and returns its result.
    """

    def __init__(
        self,
        paid: PrepaidRun,
        sampler: Sampler,
        journal: Journal,
        run: str,
        *,
        terms: SummedTerms,
        parties: Sequence[str],
        party: str,
        exchange: Callable[[bytes], bytes],
    ) -> None:
        super().__init__(paid, sampler, journal, run)
        self.terms, self._parties, self._party = terms, tuple(parties), party
        self._exchange, self._run, self._sums = exchange, run, 0

    def _noise(self, release: Release) -> Callable[[FloatArray], FloatArray]:
        """Return what makes whole numbers of this party's part, its share of noise included.

        As doubles, which hold them exactly: a journal keeps doubles.
        """
        sampler, scale = self._sampler, release.scale
        self._modulus_bits(release)
        if not isinstance(sampler, ExactSampler):
            raise InvalidParameter("sampler", type(sampler).__name__, "an ExactSampler")
        lattice = self.terms.lattice
        return lambda value: lattice.integers(value, scale, sampler.words).astype(np.float64)

    def _deliver(self, release: Release) -> FloatArray:
        """Return the sum over all parties, of shape (1, d), once this party's part is committed."""
        bits = self._modulus_bits(release)
        numbers = super()._deliver(release)
        number, self._sums = self._sums, self._sums + 1
        total = self.terms.aggregation.sum_mod_2m(
            as_words(numbers[0].astype(np.int64), bits),
            self._parties,
            SumRelease(self._run, number, self._party, bits, self._exchange),
        )
        return self.terms.lattice.decoded(as_integers(total, bits)[None, :], release.scale)
