"""WebSockets that read as fast as they can and understand as little as possible while they are timed."""

import asyncio
import base64
import os
import struct
import time
from typing import Any, TypeVar

import orjson
from attrs import define, field

_LAST = (b'"type":"done"', b'"type":"stopped"', b'"type":"error"')


class SocketFailed(Exception):
    """The handshake was refused, or the server closed the socket."""


@define(eq=False)
class ReadingSocket(asyncio.Protocol):
    """Keeps the payloads of what came.  ``ended`` tells when a frame that ends a turn was there."""

    request: bytes
    opened: asyncio.Future[None]
    ended: asyncio.Future[float]
    payloads: list[bytes] = field(factory=list)
    _buffer: bytearray = field(factory=bytearray)
    _transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self.opened.done() and not self._shake_hands():
            return
        self._take_frames()

    def _shake_hands(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        if not self._buffer.startswith(b"HTTP/1.1 101"):
            self.opened.set_exception(SocketFailed(self._buffer[:200].decode("latin-1")))
            return False
        del self._buffer[: end + 4]
        self.opened.set_result(None)
        return True

    def _take_frames(self) -> None:
        buffer, at, size = self._buffer, 0, len(self._buffer)
        while size - at >= 2:
            opcode, length, start = buffer[at] & 0x0F, buffer[at + 1], at + 2
            if length >= 126:
                form, width = (">H", 2) if length == 126 else (">Q", 8)
                if size < start + width:
                    break
                length = struct.unpack_from(form, buffer, start)[0]
                start += width
            if size < start + length:
                break
            at = start + length
            self._take(opcode, bytes(buffer[start:at]))
        del buffer[:at]

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode == 1:
            self.payloads.append(payload)
            if payload.startswith(b'{"type":') and any(mark in payload[:40] for mark in _LAST):
                self._end()
        elif opcode == 9:
            self._write(10, payload)
        elif opcode == 8 and not self.ended.done():
            code = struct.unpack(">H", payload[:2])[0] if payload else 1005
            self.ended.set_exception(SocketFailed(f"closed with {code}"))

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(time.perf_counter())

    def _write(self, opcode: int, payload: bytes) -> None:
        assert self._transport is not None
        mask = b"\x00\x00\x00\x00"  # a mask of zeros is a mask
        head = bytes([0x80 | opcode]) + (
            bytes([0x80 | len(payload)]) if len(payload) < 126 else b"\xfe" + struct.pack(">H", len(payload))
        )
        self._transport.write(head + mask + payload)

    def send(self, frame: dict[str, Any]) -> None:
        """At most 64 KiB."""
        self._write(1, orjson.dumps(frame))

    def connection_lost(self, exc: Exception | None) -> None:
        for waiting in (self.opened, self.ended):
            if not waiting.done():
                waiting.set_exception(SocketFailed("the line was cut"))

    def close(self) -> None:
        # Nobody may be waiting for the end any more.
        for waiting in (self.opened, self.ended):
            waiting.cancel()
        if self._transport is not None:
            self._transport.abort()


S = TypeVar("S", bound=ReadingSocket)


async def open_socket(port: int, token: str, session_id: str) -> ReadingSocket:
    """A socket bound to the session.  Raises SocketFailed."""
    return await open_socket_of(ReadingSocket, port, token, session_id)


async def open_socket_of(kind: type[S], port: int, token: str, session_id: str) -> S:
    """One that looks at more than the ends of turns.  Raises SocketFailed."""
    loop = asyncio.get_running_loop()
    key = base64.b64encode(os.urandom(16)).decode()
    request = (
        f"GET /ws?session_id={session_id} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n"
    )
    made = kind(request.encode(), loop.create_future(), loop.create_future())
    await loop.create_connection(lambda: made, "127.0.0.1", port)
    async with asyncio.timeout(30):
        await made.opened
    return made
