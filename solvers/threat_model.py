"""What the adversary of a run sees: every party's message, or sums of them only.

Under `PER_PARTY` every message is seen, and every party's own noise hides its records. Under
`Summed` parties add their messages by a protocol that shows the sum alone (Bonawitz et al. 2017),
and the noise of all hides each one's records: a replaced record moves the sum by what it moves its
own party's part, whatever the number of parties. So the same epsilon needs sqrt(P) times less noise
in the model.

In one process a sum is a **simulation**: all records stand behind one handle, whose shape is
`summed_shape`, and what a solver releases of it is what the protocol would show. That nobody sees
more is an assumption, `Summed.assumption`, to be written beside every epsilon; the shape's one
party is named a simulation, so that every event says it too.

>>> from dpledger.mechanisms import Adjacency, DataShape
>>> shape = DataShape(("a", "b"), count=4, features=2, row_bound=1.0,
...                   adjacency=Adjacency.REPLACE_ONE)
>>> summed_shape(shape).count, summed_shape(shape).parties
(8, ('sum of 2 parties (simulation)',))
>>> Summed(colluders=1).share(0.6, parties=10)
0.2
"""

import re
from dataclasses import dataclass
from fractions import Fraction

from ..mechanisms.errors import InvalidParameter, require_nonnegative, require_positive_int
from ..mechanisms.sensitivity import float_up, root_up
from ..mechanisms.share_data import summed_name, summed_shape

__all__ = ["PER_PARTY", "PerParty", "Summed", "ThreatModel", "summed_name", "summed_shape"]


SHARES = "each party adds its share of the noise"
"""In every assumption under `Summed`."""

_DROPPED = re.compile(r"over all parties but at most (\d{1,9}) that dropped out, ")
"""In an assumption of `Summed.assuming` with dropouts."""


def spared(assumption: str) -> int:
    """Return how many parties may drop out by an assumption of `Summed.assuming`."""
    found = _DROPPED.search(assumption)
    return int(found[1]) if found else 0


@dataclass(frozen=True, slots=True)
class PerParty:
    """Every message is seen: each party's noise has the whole noise_std of a release."""

    @property
    def assumption(self) -> None:
        """Nothing is assumed of the server or of other parties."""
        return


@dataclass(frozen=True, slots=True)
class Summed:
    """Only sums over all parties are seen, by an adversary who knows the noise of some of them.

    Args:
        colluders: t, parties that tell the adversary their own noise.
        dropouts: D, parties that may drop out, after which the others go on: their shares of the
            noise are missing from the sums.

    With t + D > 0 the sum of all shares has more noise than the `noise_std` that is priced,
    sqrt(P/(P - t - D)) times.
    """

    colluders: int = 0
    dropouts: int = 0

    def __post_init__(self) -> None:
        for name, value in (("colluders", self.colluders), ("dropouts", self.dropouts)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise InvalidParameter(name, value, "a whole number in [0, inf)")
            require_nonnegative(name, value)

    @property
    def lost(self) -> int:
        """t + D: of how many parties the noise may be known or missing."""
        return self.colluders + self.dropouts

    @property
    def assumption(self) -> str:
        """What an epsilon under this model rests on, in a sentence."""
        return self.assuming("one process holds all records")

    def assuming(self, simulated_by: str | None) -> str:
        """Return the assumption, as a sentence.

        Args:
            simulated_by: why more than the sum could be seen here; None where a protocol hides it.
        """
        among = f" and at most {self.colluders} of them collude" if self.colluders else ""
        how = "" if simulated_by is None else f" (here a simulation: {simulated_by})"
        seen = "only sums over all parties are seen"
        if self.dropouts:
            seen = (
                "of each release only one sum is seen, over all parties but at most "
                f"{self.dropouts} that dropped out"
            )
        return f"{seen}, {SHARES}{among}{how}"

    def share(self, noise_std: float, *, parties: int) -> float:
        """Return each party's noise_std, rounded up: noise_std/sqrt(P - t - D).

        The sum of the honest parties' noise then has `noise_std` or more, whatever t others do and
        whichever D drop out.
        Source: distributed noise generation, Dwork, Kenthapadi, McSherry, Mironov and Naor (2006).

        Raises `InvalidParameter` unless more than t + D parties take part.
        """
        require_nonnegative("noise_std", noise_std)
        return float_up(root_up(Fraction(noise_std) ** 2 / self._honest(parties)))

    def total(self, noise_std: float, *, parties: int) -> float:
        """Return the noise_std of the sum of all parties' shares: noise_std·sqrt(P/(P - t - D))."""
        require_nonnegative("noise_std", noise_std)
        ratio = Fraction(parties, self._honest(parties))
        return float_up(root_up(Fraction(noise_std) ** 2 * ratio))

    def _honest(self, parties: int) -> int:
        require_positive_int("parties", parties)
        if parties <= self.lost:
            also = f" + dropouts={self.dropouts}" if self.dropouts else ""
            raise InvalidParameter("parties", parties, f"above colluders={self.colluders}{also}")
        return parties - self.lost


ThreatModel = PerParty | Summed

PER_PARTY = PerParty()
