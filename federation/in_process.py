"""The engine that needs nothing: all parties are threads of this process, each with its ledger.

The same `take_part` as everywhere runs, so the numbers are those of parties that are far apart.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from .coordinator import Coordinator
from .party import Party, TookPart, take_part
from .plan import FederatedPlan
from .protocol import Bye, Reply, Request

__all__ = ["run_in_process"]


class _Direct:
    """The way to a coordinator in the same process."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        """Return the coordinator's answer."""
        return self._coordinator.reply(request)

    def leave(self, bye: Bye) -> None:
        """Tell the coordinator."""
        self._coordinator.reply(bye)


def run_in_process(
    parties: Sequence[Party], plan: FederatedPlan, coordinator: Coordinator
) -> tuple[TookPart, ...]:
    """Return what came of all parties' parts, in their order, but of those that dropped out.

    Raises what the first of the others did.
    """
    link = _Direct(coordinator)
    with ThreadPoolExecutor(max(1, len(parties))) as pool:
        parts = [pool.submit(take_part, party, plan, link) for party in parties]
        wait(parts)
        named = zip(parties, parts, strict=True)
        return tuple(
            part.result() for party, part in named if party.name not in coordinator.dropped
        )
