"""What a party takes part in: its own decision, from its own reading of the plan.

>>> from dpledger.mechanisms import Adjacency
>>> policy = Policy(epsilon=1.0, delta=1e-5, adjacency=Adjacency.REPLACE_ONE,
...                 algorithms=("dp-admm",))
>>> policy.unit, policy.threat_models
('record', ('per-party',))
"""

from dataclasses import dataclass

from ..accounting.guarantees import guarantee
from ..accounting.ledger import Ledger
from ..accounting.ledger.rows import LedgerError
from ..accounting.numbers.enclosure import shown_in_full, shown_up
from ..mechanisms.adjacency import Adjacency
from ..mechanisms.errors import DpledgerError, InvalidParameter, Number, require_open_unit
from .plan import FederatedPlan

__all__ = ["Policy"]

UNIT, THREAT_MODEL = "record", "per-party"
"""What plans are about, one record, and the threat model that a party takes part under unless it
says otherwise: an adversary who sees every party's messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Limits on plans, beside the ledger's budget.

    Args:
        epsilon: the most that one plan may cost, at
        delta: in (0, 1), the party's own.
        adjacency: the neighbouring relation that plans must speak of.
        algorithms: the names of those that it runs.
        unit: of privacy; plans are about a record.
        threat_models: those under which it takes part: "per-party", where every message is seen;
            "summed", where sums over parties alone are, which is an assumption.
        colluders: of summed plans, the least number of parties whose noise an adversary may know.
    """

    epsilon: Number
    delta: Number
    adjacency: Adjacency
    algorithms: tuple[str, ...]
    unit: str = UNIT
    threat_models: tuple[str, ...] = (THREAT_MODEL,)
    colluders: int = 0

    def __post_init__(self) -> None:
        require_open_unit("delta", self.delta)
        if not self.epsilon > 0:
            raise InvalidParameter("epsilon", self.epsilon, "in (0, inf]")

    def objection(self, plan: FederatedPlan) -> str | None:
        """Return why a party with this policy says no, in a sentence; None where it says yes.

        Args:
            plan: as this party derived it.

        The plan is priced at the party's own delta, and the upper end of the epsilon decides. A
        plan that cannot be priced is refused. The sentence goes to all parties and tells the
        policy's limit.
        """
        if self.unit != UNIT:
            return f"its unit of privacy is the {self.unit}, the plan's is the {UNIT}"
        if plan.threat_model not in self.threat_models:
            return f"the threat model {plan.threat_model} is not among those that it accepts"
        if plan.summed is not None and plan.summed.model.colluders < self.colluders:
            return f"the plan allows for fewer than {self.colluders} colluders"
        if plan.algorithm not in self.algorithms:
            return f"the algorithm {plan.algorithm} is not among those that it runs"
        if plan.shape.adjacency is not self.adjacency:
            relation = plan.shape.adjacency.value
            return f"the plan speaks of {relation}, its policy of {self.adjacency.value}"
        try:
            cost = guarantee(plan.events, delta=self.delta, adjacency=self.adjacency)
        except DpledgerError as error:
            return f"no price was found for the plan ({type(error).__name__})"
        if not cost.epsilon.upper_float <= float(self.epsilon):
            return (
                f"the plan costs epsilon {shown_up(cost.epsilon.upper_float, digits=6)} at delta "
                f"{shown_in_full(self.delta)}, more than the {float(self.epsilon):g} of its policy"
            )
        return None


def unaffordable(plan: FederatedPlan, ledger: Ledger) -> str | None:
    """Return why a ledger's budget does not pay for a plan, in a sentence that shows no balance."""
    try:
        ledger.require(plan.events)
    except LedgerError:
        return "its ledger does not take the plan"
    except DpledgerError:
        return "its budget does not pay for the plan"
    return None
