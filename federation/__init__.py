"""Federations: every party its own curator, with its own records, noise, budget and ledger.

A party runs the solver that one process would run, on its own rows alone. What crosses parties are
the collectives that the solver asks for (`dpledger.mechanisms.Collectives`), of public messages.

    aggregation   the seam of secure aggregation, and a test double that hides nothing
    summed        runs of which sums over all parties alone are seen: plan, curator
    columns       runs of parties that hold columns of the same records: plan, curator
    plan          what all parties agree on, and its subject; the steps of a run
    policy        what a party takes part in
    journal       what was sent and received, to be said again after a crash
    party         `take_part`: pay for the plan, then reserve, draw, record, commit, send
    coordinator   gathers, adds in the parties' order, answers; says who is missing
    in_process, sockets, mpi, flower   engines: threads, processes over TCP, ranks, a star by Flower
    guarantee     each party's certificate, and the federation's

Where every message is seen, a guarantee rests on nothing that the coordinator does: whatever it
answers, a party releases the plan's events and no others, each once, so that its records cost what
the plan says (adaptive composition of mechanisms whose parameters are fixed beforehand). Where sums
alone are seen it also rests on nobody seeing their parts, which is a simulation here.
"""

from typing import TYPE_CHECKING

from ..mechanisms.lazy import names_from

if TYPE_CHECKING:
    from .columns import plan_of_columns as plan_of_columns
    from .coordinator import Coordinator as Coordinator
    from .guarantee import FederationVerdict as FederationVerdict
    from .guarantee import joint_events as joint_events
    from .guarantee import verify_federation as verify_federation
    from .guarantee import write_federation as write_federation
    from .in_process import run_in_process as run_in_process
    from .journal import Journal as Journal
    from .mpi import MpiLink as MpiLink
    from .party import Party as Party
    from .party import take_part as take_part
    from .plan import FederatedPlan as FederatedPlan
    from .plan import federated_plan as federated_plan
    from .policy import Policy as Policy
    from .protocol import FederationEnded as FederationEnded
    from .sockets import SocketLink as SocketLink
    from .sockets import serve as serve

__getattr__, __dir__ = names_from(__name__)
