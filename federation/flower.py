"""The engine "flower": Flower carries the messages of a star (`pip install dpledger[flower]`).

A coordinator is a ServerApp, a party a ClientApp in a SuperNode of its own. Flower starts a process
for every message and keeps a party's `Context` in memory only, so that nothing is kept there: the
party's journal and ledger are its memory. For each message a party walks its part of the run from
the beginning, with the results in its journal, to the first step that has none, and answers with
what it asks there (`said`). A message that comes again is answered again from the journal, and one
release has one noise whatever Flower repeats.

The walk repeats the arithmetic of all rounds before, and each message costs Flower's waits: this is
an engine for tens of rounds. TLS, the authentication of nodes and the delivery of messages are
Flower's; what a party releases, and at what price, is the party's own installed program's.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec

from ..mechanisms.extras import import_extra
from .coordinator import Coordinator
from .party import Link
from .protocol import Answer, Ask, Bye, Ended, FederationEnded, Hello, Reply, Request, Welcome

__all__ = ["client_app", "coordinate", "said", "server_app"]

_RECORD = "dpledger"
"""Name of the record of bytes in each of Flower's messages, the same in both directions."""

_PAUSE = 0.1
"""Seconds between two looks for nodes and for their answers."""


class Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the coordinator tells a party: the run, empty until it is welcome, and an answer."""

    run: str
    reply: Answer | Ended | None


class _Suspended(Exception):
    """A party's walk came to a request whose answer is still to come."""

    def __init__(self, request: Hello | Ask) -> None:
        self.request = request


class _OneMessage:
    """A party's way to the coordinator while one message is dealt with.

    Args:
        told: what the message says.
    """

    def __init__(self, told: Told) -> None:
        self._told, self.goodbye = told, Bye(told.run, "")

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        """Return the answer that the message brought; raises `_Suspended` for any other request."""
        told = self._told
        match request, told.reply:
            case Hello(), _ if told.run:
                return Welcome(told.run)
            case _, Ended():
                self.goodbye = Bye(told.run, request.party)
                return told.reply
            case Ask(step=asked), Answer(step=answered) if asked <= answered:
                return told.reply
            case Bye(), _:
                return Ended("The run is over.")
            case _:  # an answer to an earlier step was kept when it first came
                raise _Suspended(request)

    def leave(self, bye: Bye) -> None:
        """Note the goodbye; it is said where the walk came to its end."""
        self.goodbye = bye


def said(take: Callable[[Link], object], told: bytes) -> bytes:
    """Return what a party says to a message, as bytes: its next request, or goodbye.

    Args:
        take: the party's part of the run over a link, as `take_part` is; begun anew each time.
        told: the message; empty for the first one.

    Raises what `take` raises but `FederationEnded`: that sentence came from the coordinator.
    """
    link = _OneMessage(msgspec.msgpack.decode(told, type=Told) if told else Told("", None))
    try:
        take(link)
    except _Suspended as suspended:
        return msgspec.msgpack.encode(suspended.request)
    except FederationEnded as ended:
        logging.getLogger(__name__).warning("%s", ended)
    return msgspec.msgpack.encode(link.goodbye)


Exchange = Callable[[Mapping[int, bytes]], Mapping[int, bytes]]
"""Sends bytes to nodes by number, and returns what those said that answered."""


def coordinate(coordinator: Coordinator, nodes: Sequence[int], exchange: Exchange) -> None:
    """Run a federation to its end by messages to nodes; each is one party, and says which.

    Args:
        coordinator: that answers.
        nodes: as many as parties, in any order.
        exchange: called again for nodes that did not answer, with the same bytes, until the
            coordinator's patience is over, which then ends the run.
    """
    told = dict.fromkeys(nodes, b"")
    party_at: dict[int, str] = {}
    with ThreadPoolExecutor(max(1, len(nodes))) as pool:
        over = False
        while told and not over:
            over = coordinator.ended is not None
            heard = _heard(told, exchange, 0.0 if over else coordinator.patience)
            # an answer waits for all parties' parts, so that all requests wait side by side
            replies = {node: pool.submit(coordinator.reply, heard[node]) for node in heard}
            party_at |= {node: request.party for node, request in heard.items()}
            for node in [n for n in told if party_at.get(n) in coordinator.dropped]:
                del told[node]
            for node, reply in replies.items():
                told[node] = _told(coordinator.run, heard[node], reply.result())
                if isinstance(heard[node], Bye):
                    del told[node]


def _heard(told: Mapping[int, bytes], exchange: Exchange, patience: float) -> dict[int, Request]:
    """Return the requests of all nodes, or of those that answered within so many seconds."""
    heard: dict[int, Request] = {}
    end = time.monotonic() + patience
    while True:
        found = exchange({node: content for node, content in told.items() if node not in heard})
        for node, content in found.items():
            with suppress(msgspec.MsgspecError):  # no request of a party: as if it had said nothing
                heard[node] = msgspec.msgpack.decode(content, type=Request)
        if len(heard) == len(told) or time.monotonic() >= end:
            return heard
        time.sleep(_PAUSE)


def _told(run: str, request: Request, reply: Reply) -> bytes:
    """Return the next message to a node."""
    if isinstance(reply, Welcome):
        return msgspec.msgpack.encode(Told(run, None))
    return msgspec.msgpack.encode(Told("" if isinstance(request, Hello) else run, reply))


def client_app(take: Callable[[Any], Callable[[Link], object]]) -> Any:
    """Return a party's ClientApp; raises `MissingExtra` without flwr.

    Args:
        take: makes of Flower's context, whose `node_config` is the party's own, its part of a run.
    """
    flwr, app = import_extra("flwr.app", "flower"), import_extra("flwr.clientapp", "flower")
    client = app.ClientApp()

    @client.train()  # type: ignore[misc, untyped-decorator, unused-ignore]
    def one_message(message: Any, context: Any) -> Any:
        told = message.content[_RECORD][_RECORD]
        try:
            answer = said(take(context), told)
        except Exception as error:
            # Flower sends the words of an error to the coordinator, and a cell may stand in them
            logging.getLogger(__name__).exception("this party failed")
            kind = type(error).__name__
            raise FederationEnded(f"A party failed ({kind}); its own log says why.") from None
        record = flwr.ConfigRecord({_RECORD: answer})
        return flwr.Message(flwr.RecordDict({_RECORD: record}), reply_to=message)

    return client


def server_app(coordinating: Callable[[Any, Callable[[Coordinator], None]], None]) -> Any:
    """Return a coordinator's ServerApp; raises `MissingExtra` without flwr.

    Args:
        coordinating: opens the coordinator that Flower's context names, and calls its second
            argument with it: that returns at the end of the run.
    """
    app = import_extra("flwr.serverapp", "flower")
    server = app.ServerApp()

    @server.main()  # type: ignore[misc, untyped-decorator, unused-ignore]
    def main(grid: Any, context: Any) -> None:
        coordinating(context, lambda coordinator: _over_grid(coordinator, grid))

    return server


def _over_grid(coordinator: Coordinator, grid: Any) -> None:
    """Run a federation over Flower's grid, once as many nodes as parties are there.

    Raises `FederationEnded` where they are not within the patience.
    """
    flwr, wanted = import_extra("flwr.app", "flower"), len(coordinator.plan.parties)
    end = time.monotonic() + coordinator.patience
    while len(nodes := sorted(grid.get_node_ids())) != wanted:
        if time.monotonic() >= end:
            raise FederationEnded(f"{len(nodes)} nodes are there, not {wanted}, one a party.")
        time.sleep(_PAUSE)

    def exchange(told: Mapping[int, bytes]) -> dict[int, bytes]:
        messages = [
            flwr.Message(
                flwr.RecordDict({_RECORD: flwr.ConfigRecord({_RECORD: content})}), node, "train"
            )
            for node, content in told.items()
        ]
        # the grid's own send_and_receive waits three seconds between two looks
        ids, heard = set(grid.push_messages(messages)), dict[int, bytes]()
        until = time.monotonic() + coordinator.patience
        while ids and time.monotonic() < until:
            for reply in grid.pull_messages(ids):
                ids.discard(reply.metadata.reply_to_message_id)
                if not reply.has_error():
                    heard[reply.metadata.src_node_id] = reply.content[_RECORD][_RECORD]
            time.sleep(_PAUSE if ids else 0.0)
        return heard

    coordinate(coordinator, nodes, exchange)
