"""Who is there in a crowd: the idle, those who read, those who don't, and somebody who asks for the health."""

import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import orjson
import trio
from attrs import define, field

from tests.soak.daemon import Daemon
from tests.soak.wire import LOST, Wire, WireEnded, open_wire

PING_SECONDS = 0.2
ASK_SECONDS = 0.05
ANSWER_SECONDS = 30.0
_ESTABLISHED = 1
_ENDS = ("done", "stopped", "error")
_DELTAS = ("token",)


@define(eq=False)
class Reader:
    """Reads whatever comes: how long after one part of a text the next came, and a ping's answer.  Seconds."""

    gaps: list[float] = field(factory=list)
    pongs: list[float] = field(factory=list)
    numbers: list[int] = field(factory=list)
    ends: int = 0
    code: int | None = None
    _asked: float | None = None
    _told: float | None = None

    async def stay(self, wire: Wire) -> None:
        """Until the server closes."""
        try:
            while True:
                self._take(await wire.receive(), trio.current_time())
        except WireEnded as ended:
            self.code = ended.code

    async def ask(self, wire: Wire) -> None:
        while self.code is None:
            if self._asked is None:
                self._asked = trio.current_time()
                await wire.send({"type": "ping"})
            await trio.sleep(PING_SECONDS)

    def _take(self, data: bytes, at: float) -> None:
        frame = orjson.loads(data)
        kind = frame["type"]
        if "seq" in frame:
            self.numbers.append(frame["seq"])
            self.ends += kind in _ENDS
        if kind == "pong" and self._asked is not None:
            self.pongs.append(at - self._asked)
            self._asked = None
        # Turns begin and end between their texts: only a part that follows another one tells of the stream.
        if kind in _DELTAS and self._told is not None:
            self.gaps.append(at - self._told)
        self._told = at if kind in _DELTAS else None


async def stay_idle(wire: Wire, codes: list[int]) -> None:
    try:
        while True:
            await wire.receive()
    except WireEnded as ended:
        codes.append(ended.code)


@asynccontextmanager
async def stalled(daemon: Daemon, session_id: str, count: int) -> AsyncIterator[list["Stalled"]]:
    """So many clients that have bound themselves and then read nothing any more."""
    async with AsyncExitStack() as stack:
        wires = []
        for _ in range(count):
            opened = open_wire(daemon.port, daemon.token, session_id, receive_bytes=4096)
            wires.append(Stalled(await stack.enter_async_context(opened)))
        yield wires


@define(eq=False)
class Stalled:
    wire: Wire

    @property
    def is_connected(self) -> bool:
        """As the kernel sees it, without reading: whether the server has neither closed nor reset the line."""
        info: bytes = self.wire.plain_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)
        return struct.unpack("B", info)[0] == _ESTABLISHED

    async def end(self) -> int:
        """Read what is left after all; the code it ended with."""
        try:
            while True:
                await self.wire.receive()
        except WireEnded as ended:
            return ended.code


async def ask_for_health(daemon: Daemon, seconds: list[float]) -> None:
    """Over one line that is kept, until cancelled; how long each answer took."""
    request = f"GET /health HTTP/1.1\r\nHost: 127.0.0.1:{daemon.port}\r\n\r\n".encode()
    async with await trio.open_tcp_stream("127.0.0.1", daemon.port) as stream:
        while True:
            before = trio.current_time()
            with trio.fail_after(ANSWER_SECONDS):
                await stream.send_all(request)
                answer = await stream.receive_some()
            assert answer.startswith(b"HTTP/1.1 200 "), answer
            seconds.append(trio.current_time() - before)
            await trio.sleep(ASK_SECONDS)


__all__ = ["LOST", "Reader", "Stalled", "ask_for_health", "stalled", "stay_idle"]
