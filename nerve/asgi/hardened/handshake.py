"""The opening handshake of a WebSocket, decided over a request's head.  No I/O.

Hypercorn decodes these headers as ASCII without a thought, looks at a handshake's faults after its stream was made,
and negotiates deflate with whoever offers it: each of these ended the process, or multiplied memory.
"""

import base64
import binascii
import hashlib
import re

from attrs import frozen

from nerve.asgi.hardened.http1 import BadRequest, Head
from nerve.asgi.hardened.response import TOKEN, Headers

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TOKEN = re.compile(TOKEN)
_VERSION = b"13"


class WrongVersion(BadRequest):
    """Another version of the protocol; the reply names ours."""

    reply: Headers = [(b"sec-websocket-version", _VERSION)]  # noqa: RUF012


@frozen
class Handshake:
    """A request that may be accepted.  No extension ever is: deflate costs memory and time out of proportion."""

    accept_key: bytes
    subprotocols: tuple[str, ...]

    @classmethod
    def of(cls, head: Head, buffered: int) -> "Handshake":
        """``buffered`` are bytes behind the head.  Raises BadRequest."""
        if head.method != "GET" or head.version != "1.1":
            raise BadRequest(400, "a WebSocket is opened with GET and HTTP/1.1")
        if head.values(b"transfer-encoding") or head.values(b"content-length") not in ([], [b"0"]):
            raise BadRequest(400, "the opening of a WebSocket has no body")
        if buffered:
            raise BadRequest(400, "nothing may be sent before the WebSocket is open")
        if head.values(b"sec-websocket-version") != [_VERSION]:
            raise WrongVersion(426, "version 13 of the WebSocket protocol is spoken here")
        if any(not value.isascii() for value in head.values(b"sec-websocket-extensions")):
            raise BadRequest(400, "Sec-WebSocket-Extensions is malformed")
        return cls(_accept_key(head.values(b"sec-websocket-key")), _subprotocols(head))

    def response(self, subprotocol: str | None, extra: Headers) -> bytes:
        """The bytes of 101.  Raises ValueError for a subprotocol that was not offered, or an impossible header."""
        lines = [
            b"HTTP/1.1 101 Switching Protocols",
            b"upgrade: websocket",
            b"connection: Upgrade",
            b"sec-websocket-accept: " + self.accept_key,
        ]
        if subprotocol is not None:
            if subprotocol not in self.subprotocols:
                raise ValueError(f"the subprotocol {subprotocol!r} was not offered")
            lines.append(b"sec-websocket-protocol: " + subprotocol.encode("ascii"))
        for name, value in extra:
            if _TOKEN.fullmatch(name) is None or b"\r" in value or b"\n" in value or b"\0" in value:
                raise ValueError(f"the header {name!r} is impossible")
            lines.append(name + b": " + value)
        return b"\r\n".join(lines) + b"\r\n\r\n"


def _accept_key(values: list[bytes]) -> bytes:
    if len(values) != 1:
        raise BadRequest(400, "one Sec-WebSocket-Key is needed")
    try:
        raw = base64.b64decode(values[0], validate=True)
    except binascii.Error:
        raw = b""
    if len(raw) != 16:
        raise BadRequest(400, "Sec-WebSocket-Key is malformed")
    return base64.b64encode(hashlib.sha1(values[0] + _GUID, usedforsecurity=False).digest())


def _subprotocols(head: Head) -> tuple[str, ...]:
    offered = []
    for value in head.values(b"sec-websocket-protocol"):
        for token in value.split(b","):
            token = token.strip(b" \t")
            if _TOKEN.fullmatch(token) is None:
                raise BadRequest(400, "Sec-WebSocket-Protocol is malformed")
            offered.append(token.decode("ascii"))
    return tuple(offered)
