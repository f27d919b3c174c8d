"""Frames over a TCP connection: length, authentication code, content; both ends know a token.

    coordinator → party   its nonce N
    party → coordinator   its nonce M
    then frames           length in 4 bytes | code | content,
                          code = HMAC-SHA256(key, direction | counter | content)

The key is HMAC-SHA256(token, M | N), so that no frame of another connection fits, and the counter
refuses one that was repeated, left out or moved. Whoever lacks the token is turned away, and what
arrives is what was sent. Nothing is encrypted: under the per-party threat model messages are public
(their noise protects the records); across networks that others read, run it inside TLS or SSH.

The coordinator speaks first inside the frames, so that a party notices a wrong token.
"""

import hashlib
import hmac
import secrets
import socket
import struct
from pathlib import Path

from ..mechanisms.errors import InvalidParameter

__all__ = ["MOST_BYTES", "Channel", "ChannelBroken", "WrongToken", "read_token"]

MOST_BYTES = 1 << 24
"""Of a frame; what is longer is refused before it is read."""

_NONCE, _TAG, _LEAST_TOKEN = 32, 32, 32
"""Bytes of a nonce, of an HMAC-SHA256 and of the shortest token: 256 bits, so that none is
guessed."""


class ChannelBroken(ConnectionError):
    """The connection ended, or what came is no frame of it."""


class WrongToken(ChannelBroken):
    """The first frame does not fit the token."""


class Channel:
    """One end of a connection.

    Args:
        connection: a connected socket, with a timeout.
        token: what both ends know.
        accepts: whether this is the end that was connected to, the coordinator's.

    Raises `ChannelBroken` where the other end does not greet.
    """

    def __init__(self, connection: socket.socket, token: bytes, *, accepts: bool) -> None:
        self._connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own = secrets.token_bytes(_NONCE)
        if accepts:
            connection.sendall(own)
            other = self._exactly(_NONCE)
            nonces = other + own
        else:
            other = self._exactly(_NONCE)
            connection.sendall(own)
            nonces = own + other
        self._key = hmac.digest(token, b"dpledger federation 1" + nonces, hashlib.sha256)
        self._out, self._in = (b"c", b"p") if accepts else (b"p", b"c")
        self._sent = self._received = 0

    def send(self, content: bytes) -> None:
        """Send one frame."""
        if len(content) > MOST_BYTES:
            raise InvalidParameter("content", len(content), f"of at most {MOST_BYTES} bytes")
        tag = self._tag(self._out, self._sent, content)
        self._sent += 1
        self._connection.sendall(struct.pack(">I", len(content)) + tag + content)

    def receive(self) -> bytes:
        """Return the content of the next frame; raises `ChannelBroken` for anything else."""
        (length,) = struct.unpack(">I", self._exactly(4))
        if length > MOST_BYTES:
            raise ChannelBroken(f"a frame of {length} bytes, more than {MOST_BYTES}")
        tag, content = self._exactly(_TAG), self._exactly(length)
        if not hmac.compare_digest(tag, self._tag(self._in, self._received, content)):
            kind = ChannelBroken if self._received else WrongToken
            raise kind("a frame whose authentication code does not fit")
        self._received += 1
        return content

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _tag(self, direction: bytes, counter: int, content: bytes) -> bytes:
        """Return the code of a frame; the counter makes each one different, the direction stops
        reflections.
        """
        return hmac.digest(
            self._key, direction + struct.pack(">Q", counter) + content, hashlib.sha256
        )

    def _exactly(self, count: int) -> bytes:
        """Return `count` bytes; raises `ChannelBroken` where the other end closes before."""
        parts: list[bytes] = []
        while count:
            part = self._connection.recv(min(count, 1 << 20))
            if not part:
                raise ChannelBroken("the connection ended inside a frame")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def read_token(path: Path) -> bytes:
    """Return the token in a file: 32 characters or more, without the spaces around them."""
    token = path.read_bytes().strip()
    if len(token) < _LEAST_TOKEN:
        raise InvalidParameter("token", f"{len(token)} bytes", f"of {_LEAST_TOKEN} bytes or more")
    return token
