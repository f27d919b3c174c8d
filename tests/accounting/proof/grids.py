"""Certificates of loss distributions on grids that are coarser than those `certify` chooses."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from tests.accounting.conftest import event

from dpledger.accounting.proof.certificate import Certificate
from dpledger.accounting.proof.losses import LossGrid, epsilon_upper, suggested
from dpledger.accounting.proof.prover import Search, _assumed, privacy_loss
from dpledger.mechanisms import Mechanism


def on_a_grid(
    *mechanisms: Mechanism,
    delta: Fraction,
    parties: Sequence[Sequence[str]] = (),
    group: int = 1,
    fineness: float = 1.0,
    changed: Callable[[LossGrid], LossGrid] = lambda grid: grid,
) -> Certificate:
    """Return a certificate of the least epsilon that is proved on a grid so many times as wide.

    `changed` is what is made of a grid that does not lie on the losses' own lattice; `parties` are
    those of each mechanism, all alike if there are none.
    """
    named = parties or [()] * len(mechanisms)
    events = [event(m, parties=tuple(p)) for m, p in zip(mechanisms, named, strict=True)]
    search = Search(events, delta, group)
    parts = []
    for exposure in search._exposures:
        counts = [(search._mechanisms[text], n) for text, n in sorted(exposure.counts)]
        composed, grid = suggested(counts, search._adjacency, delta, group=group, fineness=fineness)
        if grid.doublings:
            grid = changed(grid)
        epsilon = epsilon_upper(composed, grid, delta)
        assumed = frozenset[str]().union(*(_assumed(each) for each, _ in counts))
        parts.append(privacy_loss(exposure, epsilon, composed, grid, delta, assumed))
    return Certificate(tuple(events), search.run(parts))
