"""The public facts about private data: what a plan may know, and what sensitivities rest on.

>>> shape = DataShape(parties=("a", "b"), count=4, features=2, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE, party_counts=(4, 9))
>>> shape.counts
(4, 9)
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .adjacency import Adjacency
from .clipping import LENGTH_EXPONENT, largest_entry
from .errors import InvalidParameter, require_magnitude, require_positive, require_positive_int
from .labels import SIGNS, LabelDomain
from .loss_trial import require_convex, stated
from .protocols import FloatArray, Loss
from .refusals import Closed
from .sensitivity import Sensitivity, mean_of_bounded, strongly_convex_argmin
from .stated_loss import assuming

EVERYBODY = ("all",)
"""The parties of data whose holder names none. Events about them name nobody either, so that every
record pays: another handle of the run may hold the same records under names."""


@dataclass(frozen=True, slots=True)
class DataShape(Closed):
    """What everybody may know about private data.

    Args:
        parties: names of the holders of disjoint records, in order.
        count: public lower bound on the number of records of each party; under replace-one and
            zero-out-one the numbers themselves are public, under add-remove-one only this bound is.
        features: dimension d of a row.
        row_bound: l2 bound that every row is cut to, within 2^-900 and 2^900.
        adjacency: the neighbouring relation that sensitivities are derived for.
        label_domain: which labels there may be.
        party_counts: public lower bounds on each party's own number of records, `count` the least
            of them; empty where only `count` is used.
        n_max: public upper bound on the number of records of each party, which rounding errors of
            sums grow with. Without it twice the largest lower bound, under add-remove-one 1024
            times it.
    """

    parties: tuple[str, ...]
    count: int
    features: int
    row_bound: float
    adjacency: Adjacency
    label_domain: LabelDomain = SIGNS
    party_counts: tuple[int, ...] = ()
    n_max: int = 0

    def __post_init__(self) -> None:
        if type(self.parties) is not tuple:
            raise InvalidParameter("parties", self.parties, "a tuple of names")
        if not self.parties or len(set(self.parties)) != len(self.parties):
            raise InvalidParameter("parties", self.parties, "at least one party, each named once")
        require_positive_int("count", self.count)
        require_positive_int("features", self.features)
        require_magnitude("row_bound", self.row_bound, LENGTH_EXPONENT)
        if not isinstance(self.adjacency, Adjacency):
            raise InvalidParameter("adjacency", self.adjacency, "an Adjacency")
        if self.adjacency is Adjacency.REPLACE_FEATURE_COLUMN:
            raise InvalidParameter("adjacency", self.adjacency, "a relation between records")
        if type(self.party_counts) is not tuple:
            raise InvalidParameter("party_counts", self.party_counts, "a tuple")
        for bound in self.party_counts:
            require_positive_int("party_counts", bound)
        if len(self.counts) != len(self.parties) or min(self.counts) != self.count:
            raise InvalidParameter(
                "party_counts", self.party_counts, f"one for each party, {self.count} or more"
            )
        if self.n_max != 0:
            require_positive_int("n_max", self.n_max)
        if 0 < self.n_max < max(self.counts):
            raise InvalidParameter("n_max", self.n_max, f"{max(self.counts)} or more")

    @property
    def counts(self) -> tuple[int, ...]:
        """The public lower bounds on each party's number of records."""
        return self.party_counts or (self.count,) * len(self.parties)

    @property
    def most(self) -> int:
        """The public upper bound on the number of records of each party."""
        if self.n_max:
            return self.n_max
        larger = 2**10 if self.adjacency is Adjacency.ADD_REMOVE_ONE else 2
        return larger * max(self.counts)

    def parameters(self, loss: Loss) -> int:
        """Return the number of coordinates of a model for `loss`: d·K."""
        return self.features * loss.outputs

    def gradient_bound(self, loss: Loss) -> Fraction:
        """Return G: no record's gradient of `loss` is longer.

        Raises `InvalidParameter` for a loss that is not defined for all labels of the domain, or
        whose slopes depend on more than one record.
        """
        read = stated(loss)
        if not read.label_domain.contains(self.label_domain):
            raise InvalidParameter("loss", loss, f"defined for {self.label_domain}")
        return read.derivative_bound * Fraction(float(self.row_bound))

    def point(
        self, name: str, point: FloatArray, width: int, *, rows: int | None = None
    ) -> FloatArray:
        """Return a public point as an array of shape (..., P, width), a row for each party.

        With `rows`, as many rows as parties whose records are at hand, in place of P.

        Raises `InvalidParameter`, calling it `name`, for another shape or an entry above 1e100; a
        `Sensitive` refuses by itself.
        """
        array = np.array(point, dtype=np.float64)  # what is checked is what is used
        block = (len(self.parties) if rows is None else rows, width)
        # far below overflow: an infinite or undefined score would show a record's signs
        if not largest_entry(array) <= 1e100:
            raise InvalidParameter(name, "NaN or above 1e100", "with entries of at most 1e100")
        found = array.shape[-2] if array.ndim > 1 else 1
        if array.shape[-1:] != block[1:] or found not in (1, block[0]):
            raise InvalidParameter(f"{name}.shape", array.shape, f"broadcastable to {block}")
        return np.broadcast_to(array, array.shape[:-2] + block)

    def moduli(self, modulus: float | FloatArray) -> FloatArray:
        """Return a modulus for each party, of shape (P,), from one number or (P,).

        Raises `InvalidParameter` for another shape or a modulus that is not positive.
        """
        array = np.array(modulus, dtype=np.float64)  # what is priced is what is used
        if array.shape not in ((), (len(self.parties),)):
            raise InvalidParameter("modulus.shape", array.shape, f"() or ({len(self.parties)},)")
        require_positive("modulus", float(array.min()))
        require_positive("modulus", float(array.max()))
        return np.broadcast_to(array, (len(self.parties),))

    def mean_sensitivities(self, loss: Loss) -> tuple[Sensitivity, ...]:
        """Return each party's own sensitivity of `PrivateDataset.mean_gradient`, one a party.

        Raises `InvalidParameter` as `gradient_bound` does.
        """
        loss = stated(loss)
        bound = self.gradient_bound(loss)
        derived = {
            n: assuming(loss, mean_of_bounded(bound, n, self.adjacency)) for n in set(self.counts)
        }
        return tuple(derived[n] for n in self.counts)

    def argmin_sensitivities(
        self, loss: Loss, *, modulus: float | FloatArray, tolerance: float
    ) -> tuple[Sensitivity, ...]:
        """Return each party's own sensitivity of `PrivateDataset.strongly_convex_argmin`."""
        loss = stated(loss)
        require_convex(loss)
        bound = self.gradient_bound(loss)
        kinds = list(zip(self.moduli(modulus).tolist(), self.counts, strict=True))
        derived = {
            (m, n): assuming(
                loss,
                strongly_convex_argmin(bound, m, tolerance, n, self.adjacency),
                minimised=True,
            )
            for m, n in set(kinds)
        }
        return tuple(derived[kind] for kind in kinds)
