"""A WebSocket client over a real socket that can also vanish: frames as they came, the close code, an abrupt drop."""

import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import orjson
import trio
from attrs import define, field
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Message,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError

OPEN_SECONDS = 30.0
READ_BYTES = 65536
LOST = 1006


class WireEnded(Exception):
    """The server closed with ``code``; 1006 if the line was cut, or the handshake refused."""

    def __init__(self, code: int) -> None:
        super().__init__(f"closed with {code}")
        self.code = code


@define(eq=False)
class Wire:
    """One task reads, one sends."""

    _stream: trio.SocketStream
    _protocol: WSConnection = field(factory=lambda: WSConnection(ConnectionType.CLIENT))
    _partial: list[str] = field(factory=list)
    _texts: list[bytes] = field(factory=list)
    _ended: int | None = None
    _sending: trio.Lock = field(factory=trio.Lock)

    async def open(self, target: str, token: str) -> None:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        await self._write(Request(host="127.0.0.1", target=target, extra_headers=headers))
        accepted = False
        while not accepted:
            for event in await self._events():
                match event:
                    case AcceptConnection():
                        accepted = True
                    case RejectConnection():
                        raise WireEnded(LOST)
                    case _:
                        await self._take(event)  # the first frames may come with the handshake

    async def receive(self) -> bytes:
        """The text of the next frame.  Raises WireEnded once everything that came was given."""
        while not self._texts:
            if self._ended is not None:
                raise WireEnded(self._ended)
            for event in await self._events():
                await self._take(event)
        return self._texts.pop(0)

    async def send(self, frame: dict[str, Any]) -> None:
        await self._write(TextMessage(orjson.dumps(frame).decode()))

    def drop(self) -> None:
        """Vanish as a client does whose machine fell over: a reset, and not a word before it."""
        self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._stream.socket.close()

    @property
    def plain_socket(self) -> trio.socket.SocketType:
        return self._stream.socket

    async def aclose(self) -> None:
        await trio.aclose_forcefully(self._stream)

    async def _take(self, event: Event) -> None:
        match event:
            case Message(data=str(data)):
                self._partial.append(data)
                if event.message_finished:
                    self._texts.append("".join(self._partial).encode())
                    self._partial.clear()
            case Ping():
                await self._write(event.response())
            case CloseConnection(code=code):
                self._ended = code if self._ended is None else self._ended

    async def _events(self) -> list[Event]:
        try:
            data = await self._stream.receive_some(READ_BYTES)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            data = b""
        if not data:
            self._ended = LOST if self._ended is None else self._ended
            if not self._texts:
                raise WireEnded(self._ended)
            return []
        self._protocol.receive_data(data)
        return list(self._protocol.events())

    async def _write(self, event: Event) -> None:
        try:
            async with self._sending:  # the reader answers pings while another task sends
                await self._stream.send_all(self._protocol.send(event))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise WireEnded(LOST) from None
        except LocalProtocolError:  # the server has closed, which the reader has yet to say
            raise WireEnded(LOST if self._ended is None else self._ended) from None


@asynccontextmanager
async def open_wire(
    port: int,
    token: str,
    session_id: str | None = None,
    after_seq: int | None = None,
    *,
    receive_bytes: int | None = None,
) -> AsyncIterator[Wire]:
    """An accepted socket, gone with the block.  Raises WireEnded if nobody listens or the server does not accept.

    ``receive_bytes`` makes a small window: the server soon can't send to a client that does not read.
    """
    bind = {"session_id": session_id, "after_seq": after_seq}
    query = urlencode({key: value for key, value in bind.items() if value is not None})
    plain = trio.socket.socket()
    try:
        if receive_bytes is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)  # only counts before the connection
        await plain.connect(("127.0.0.1", port))
    except OSError:
        plain.close()
        raise WireEnded(LOST) from None
    wire = Wire(trio.SocketStream(plain))
    try:
        with trio.fail_after(OPEN_SECONDS):
            await wire.open("/ws" + (f"?{query}" if query else ""), token)
        yield wire
    finally:
        await wire.aclose()
