"""A claim that a bound is tight: that what is claimed is what is true, not only more.

A sentence such as "our bound is tight" promises two things: that it is a bound, and that nothing
smaller would do. The second is read off the enclosure of what is true.
"""

from dataclasses import dataclass, replace
from typing import Generic

from .claim import Case, ClaimVerdict, Finding, Promise, S

# a bound is called tight where nobody would notice the difference
_NOTICED = 1.01


@dataclass(frozen=True, slots=True)
class TightPromise(Generic[S]):
    """The number of another promise is no more than 1 % above what is true.

    Args:
        bound: the promise that is called tight.
    """

    bound: Promise[S]

    def judge(self, case: Case[S]) -> Finding:
        """Judge the bound, and ask by how much it is loose; what does not hold is not tight."""
        found = self.bound.judge(case)
        factor = found.factor
        if found.verdict is not ClaimVerdict.HOLDS or factor is None:
            return found
        if factor <= _NOTICED:
            return replace(found, reason=f"{found.reason}: tight")
        reason = f"{found.reason}: a bound, and {factor:.6g} times what is true"
        return replace(found, verdict=ClaimVerdict.FAILS, reason=reason)
