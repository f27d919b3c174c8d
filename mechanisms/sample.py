"""Hidden samples: records that a curator drew, behind a handle as private data are.

`curator.sample(dataset, scheme)` returns one; DP-SGD and PS-ADMM sum gradients over it. Its values
carry two sensitivities: what a record moves if it is drawn, and what moves whether it is or not.
Amplification by sampling is priced from the two, and holds while nobody learns who was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NoReturn

from . import rounding as rounded
from .clipping import cut_bound, cut_slopes
from .data_shape import DataShape
from .errors import InvalidParameter, UnprotectedIteration
from .inside import Inside
from .loss_trial import stated
from .protocols import FloatArray, Loss
from .records import Records, combined, record_slopes
from .refusals import refuse_copies
from .sensitive import Sensitive
from .sensitivity import sum_of_bounded
from .stated_loss import StatedLoss, assuming
from .subsampling import Draw, SampledPart

__all__ = ["Sample"]


@refuse_copies
class Sample(Inside):
    """Records that a curator drew, for one release; nobody learns which.

    Its functions are sums over the drawn records of each party: `Sensitive` values that know how
    they were sampled. Divide them by public numbers only: the number of drawn records is private.

    Args:
        shape: what is public about the data.
        records: those of the parties whose data are here; None under planning.
        draw: the scheme and, hidden in it, who was drawn.
        rows: the number of parties whose records are here.
        auditable: whether audits may look at values (see `inside`).
    """

    __slots__ = ("_auditable", "_draw", "_records", "_rows", "_shape")

    def __init__(
        self, shape: DataShape, records: Records | None, draw: Draw, *, rows: int, auditable: bool
    ) -> None:
        self._shape = shape
        self._rows = rows
        self._records = records
        self._draw = draw
        self._auditable = auditable

    def sum_gradient(self, loss: Loss, w: FloatArray, *, radius: float | None = None) -> Sensitive:
        """Return each party's sum of drawn gradients at the public point w, each cut to `radius`.

        Args:
            loss: stated and tried as `loss_trial.stated` does.
            w: public, of shape (..., P, d·K) or (d·K,).
            radius: l2 bound on a record's gradient; None for the loss's own bound.

        Raises `InvalidParameter` for a loss that random scores refute, a point of another shape, or
        a radius that is not positive.
        """
        loss, width = stated(loss), self._shape.parameters(loss)
        radius = None if radius is None else float(radius)  # one number for price and cut
        bound = cut_bound(self._shape.gradient_bound(loss), radius)
        point = self._shape.point("w", w, width, rows=self._rows)
        return self._summed(
            loss,
            bound,
            width,
            lambda held: cut_slopes(record_slopes(held, loss, point), held.norms, radius, width),
        )

    def sum_correction(
        self, loss: Loss, w: FloatArray, *, anchor: FloatArray, radius: float
    ) -> Sensitive:
        """Return each party's sum of drawn records' gradients at w less those at `anchor`, each
        cut.

        The correction of variance-reduced gradients (SVRG): near the anchor it is small, and so is
        what the cut loses.

        Args:
            loss: as for `sum_gradient`.
            w: public, of shape (..., P, d·K) or (d·K,).
            anchor: public, likewise.
            radius: l2 bound on a record's difference.

        Raises `InvalidParameter` as `sum_gradient` does.
        """
        loss, width = stated(loss), self._shape.parameters(loss)
        radius = float(radius)  # one number for price and cut
        bound = cut_bound(2 * self._shape.gradient_bound(loss), radius)
        point = self._shape.point("w", w, width, rows=self._rows)
        origin = self._shape.point("anchor", anchor, width, rows=self._rows)
        if origin.shape[:-2] not in ((), point.shape[:-2]):
            raise InvalidParameter("anchor.shape", origin.shape, f"that of w, {point.shape}")

        def moved(held: Records) -> FloatArray:
            slopes = record_slopes(held, loss, point) - record_slopes(held, loss, origin)
            return cut_slopes(slopes, held.norms, radius, width)

        return self._summed(loss, bound, width, moved)

    def _summed(
        self,
        loss: StatedLoss,
        bound: Fraction,
        width: int,
        slopes: Callable[[Records], FloatArray],
    ) -> Sensitive:
        """Return the drawn records' sum of row ⊗ slope, a vector of norm <= `bound` each.

        Args:
            loss: whose slopes they are; what is assumed of one of the caller's is named.
            bound: on each record's product, in l2.
            width: d·K.
            slopes: computes a record's slopes, which are cut so that the bound holds.
        """
        shape, scheme, records = self._shape, self._draw.scheme, self._records
        compute = None
        if records is not None and self._drawn_in(self._draw) is not None:
            compute = partial(self._total, records, slopes)
        total = assuming(loss, sum_of_bounded(bound, shape.adjacency))
        return Sensitive(
            total,
            rounded.total(bound, scheme.most(shape.most), width),
            parties=shape.parties,
            dimension=width,
            compute=compute,
            held=self._rows,
            sampled_part=SampledPart(None, total, shape.count, self._draw),
            auditable=self._auditable,
        )

    def _total(self, records: Records, slopes: Callable[[Records], FloatArray]) -> FloatArray:
        """Return the drawn records' sum of row ⊗ slope, of shape (..., P, d·K)."""
        inside = self._drawn_in(self._draw)
        if inside is None:
            raise InvalidParameter("sample", "planned", "drawn")
        if inside.ndim == 1:
            held = records.drawn(inside)
            return combined(held, slopes(held))
        # many samples at once, which only simulations and attacks have
        return combined(records, slopes(records) * records.placed(inside)[..., None])

    def __repr__(self) -> str:
        """Show the public facts only."""
        return f"<Sample: {self._draw.scheme} of {self._shape}>"

    def __iter__(self) -> NoReturn:
        raise UnprotectedIteration("iteration lets records out; use sum_gradient etc.")
