"""The engine "sockets": a process a party, and a coordinator's, over TCP; nothing to install.

A party connects to the coordinator, never the other way. Where a connection breaks, or an answer
does not come, the party connects again and asks again; asking twice is harmless.
"""

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

import msgspec

from ..mechanisms.errors import InvalidParameter, require_positive
from .channel import Channel, ChannelBroken, WrongToken
from .coordinator import Coordinator
from .protocol import Bye, Ended, FederationEnded, Reply, Request

__all__ = ["SocketLink", "address_of", "serve"]

_READY = b"ready"
"""The coordinator's first frame: a party whose token differs finds out before it sends a request.
"""
_GREETING_S = 5.0
"""Seconds for a stranger to greet and to ask: connections without a token do not stay."""

_MOST_CONNECTIONS = 4
"""A party, at one time: its own, and those that it gave up and that still wait for an answer."""

_GOODBYES = 2
"""Attempts to say goodbye: nothing rests on its arrival but the coordinator's waiting."""

_WRONG_TOKENS = 3
"""In a row: one may be a damaged frame."""

_SHORTEST_RETRY, _LONGEST_RETRY = 0.02, 1.0
"""Seconds between attempts to connect: doubled each time, so that a coordinator that restarts is
found at once and one that is gone is not flooded."""


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of "host:port".

    Brackets around an IPv6 address are removed. Raises `InvalidParameter` for a missing host or a
    port that is no whole number up to 65535.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise InvalidParameter("address", text, "host:port")
    return host.strip("[]"), int(port)


@contextmanager
def serve(
    coordinator: Coordinator, address: tuple[str, int], token: bytes
) -> Generator[tuple[str, int]]:
    """Answer parties that connect to `address` while the block runs; yields where it listens.

    Port 0 is any free one.

    Args:
        coordinator: that answers; shared by a thread for each connection.
        address: host and port to listen at; a host with a colon is IPv6.
        token: that all parties know, as `read_token` returns it.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listening = socket.create_server(address, family=family)
    room = threading.BoundedSemaphore(_MOST_CONNECTIONS * len(coordinator.plan.parties))
    thread = threading.Thread(
        target=_accept, args=(listening, coordinator, token, room), daemon=True
    )
    thread.start()
    try:
        yield listening.getsockname()[:2]
    finally:
        with suppress(OSError):
            # wakes the thread that waits in accept, which close alone does not
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def _accept(
    listening: socket.socket,
    coordinator: Coordinator,
    token: bytes,
    room: threading.BoundedSemaphore,
) -> None:
    """Take connections until the socket is closed; one more than `room` has is closed at once."""
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        if not room.acquire(blocking=False):
            connection.close()
            continue
        threading.Thread(
            target=_converse, args=(connection, coordinator, token, room), daemon=True
        ).start()


def _converse(
    connection: socket.socket,
    coordinator: Coordinator,
    token: bytes,
    room: threading.BoundedSemaphore,
) -> None:
    """Answer one connection until it ends; what is no request ends it."""
    try:
        with connection, suppress(OSError, msgspec.MsgspecError):
            connection.settimeout(_GREETING_S)
            channel = Channel(connection, token, accepts=True)
            channel.send(_READY)
            while True:
                request: Request = msgspec.msgpack.decode(channel.receive(), type=Request)
                # who waits inside a step may be silent for one patience; twice that means it is
                # gone
                connection.settimeout(2.0 * coordinator.patience)
                channel.send(msgspec.msgpack.encode(coordinator.reply(request)))
    finally:
        room.release()


class SocketLink:
    """A party's way to a coordinator elsewhere.

    Args:
        address: host and port of the coordinator.
        token: that the coordinator knows.
        patience: seconds to try to reach a coordinator that is gone, > 0.
        resend: seconds after which a request without answer is sent again, > 0.

    One request at a time: a link belongs to one party's thread.
    """

    def __init__(
        self,
        address: tuple[str, int],
        token: bytes,
        *,
        patience: float,
        resend: float = 10.0,
    ) -> None:
        require_positive("patience", patience)
        require_positive("resend", resend)
        self._address, self._token = address, token
        self._patience, self._resend = patience, resend
        self._channel: Channel | None = None

    def send(self, request: Request, *, brief: bool = False) -> Reply:
        """Return the answer; raises `FederationEnded` where the coordinator stays unreachable.

        Args:
            request: sent again, unchanged, on every new connection; the coordinator treats it as
                one.
            brief: whether to give up at the first failure, not after the patience.

        Returns `Ended` where three frames in a row did not fit the token. The patience counts
        from the last moment at which there was a connection.
        """
        content = msgspec.msgpack.encode(request)
        last_seen, pause, strange = time.monotonic(), _SHORTEST_RETRY, 0
        patience = 0.0 if brief else self._patience
        while True:
            try:
                channel = self._connected()
                last_seen, pause = time.monotonic(), _SHORTEST_RETRY
                channel.send(content)
                reply: Reply = msgspec.msgpack.decode(channel.receive(), type=Reply)
                return reply
            except (OSError, msgspec.MsgspecError) as error:
                self.close()
                strange = strange + 1 if isinstance(error, WrongToken) else 0
                if strange == _WRONG_TOKENS:
                    return Ended("The coordinator has another token.")
                if time.monotonic() - last_seen > patience or brief:
                    host, port = self._address
                    raise FederationEnded(
                        f"The coordinator at {host}:{port} was not reached for "
                        f"{patience:g} s ({error}); start again to go on where this ended."
                    ) from error
                time.sleep(pause)
                pause = min(2.0 * pause, _LONGEST_RETRY)

    def leave(self, bye: Bye) -> None:
        """Tell the coordinator, if it is still there; again where the first goodbye was lost.

        It waits for all goodbyes, so that one that is lost would cost it its patience.
        """
        for _ in range(_GOODBYES):
            with suppress(OSError, msgspec.MsgspecError):
                channel = self._connected()
                channel.send(msgspec.msgpack.encode(bye))
                channel.receive()
                break
            self.close()
        self.close()

    def close(self) -> None:
        """End the connection, if there is one."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _connected(self) -> Channel:
        """Return the open channel, or a new one, after the coordinator's first frame."""
        if self._channel is None:
            connection = socket.create_connection(self._address, timeout=self._resend)
            try:
                channel = Channel(connection, self._token, accepts=False)
                if channel.receive() != _READY:
                    raise ChannelBroken("no coordinator answered")
            except BaseException:
                connection.close()
                raise
            self._channel = channel
        return self._channel
