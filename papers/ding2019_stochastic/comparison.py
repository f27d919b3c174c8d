"""PS-9: what is compared with DVP, whose guarantee is of an iteration.

Two algorithms at one epsilon are comparable only if it is an epsilon of the same thing. The
readings price both sides: a whole run, and so many iterations of which each is epsilon-DP.
"""

from collections.abc import Mapping, Sequence

from ...audits.claims.releases import worst_private
from ...audits.claims.settings import multiplier_of, stated_epsilon
from ...audits.claims.structure import ReadingsPromise
from ...mechanisms.events import Event, GaussianStep, Repeated
from ...mechanisms.sensitivity import declared
from .setting import PsSetting, claim, linear_run


def _guarantees(s: PsSetting) -> Mapping[str, Sequence[Event]]:
    """Return what both would be at the same epsilon, with nothing else known of DVP's steps.

    PS-ADMM's side is one Gaussian release with exactly (epsilon, delta); DVP's is K times the worst
    epsilon-DP mechanism, which dominates every other (Kairouz, Oh, Viswanath 2015).
    """
    context = linear_run(s)[0].context
    unit = declared(1, "the unit of noise", adjacency=s.relation)
    noise = multiplier_of(1, epsilon=s.epsilon, delta=s.delta)
    return {
        "the whole run is (epsilon, delta)-DP": [Event(GaussianStep(unit, noise), context)],
        f"each of {s.K} iterations is epsilon-DP": [
            Event(Repeated(worst_private(s.epsilon, least=False), s.K), context)
        ],
    }


def _argument(s: PsSetting) -> tuple[str, ...]:
    """Return whose guarantee is of what."""
    return (
        "DVP (Zhang, Zhu 2017) is epsilon-DP in each iteration, with no delta; PS-ADMM's "
        "(epsilon, delta) is of the whole run. Under one epsilon the two are not under the same "
        "guarantee, and a comparison of errors says nothing until one of both is converted.",
        f"Of {s.K} steps of which no more is known than that each is {s.epsilon:g}-DP, the whole "
        "costs as much as is shown here; DVP's own steps may cost less.",
    )


COMPARISON = claim(
    "PS-9",
    "the same guarantee as DVP's",
    "PS-ADMM outperforms DVP under the same differential privacy guarantee",
    "introduction, contributions; section 5",
    ReadingsPromise(stated_epsilon, readings=_guarantees, argument=_argument),
    not_attacked="a comparison: each side's own guarantee is attacked under its own name",
)
"""Unspecified: the two sides of the comparison are not under one guarantee. DVP's epsilon is of an
iteration, PS-ADMM's of the whole run; the readings price both as whole runs.
"""
