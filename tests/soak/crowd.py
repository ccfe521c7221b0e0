"""Who is there in a crowd: the idle, those who read, those who don't, and somebody who asks for the health."""

import socket
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress

import orjson
import trio
from attrs import define, field

from tests.soak.daemon import Daemon
from tests.soak.wire import LOST, Wire, WireEnded, open_wire

PING_SECONDS = 0.2
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
        with suppress(WireEnded):
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


@contextmanager
def health_asked(daemon: Daemon) -> Iterator[list[float]]:
    """How many seconds each ``/health`` took that was asked for within the block; there once the block is left."""
    command = [sys.executable, "-m", "tests.soak.health_probe", str(daemon.port)]
    seconds: list[float] = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as probe:
        try:
            yield seconds
            answers, _ = probe.communicate(timeout=ANSWER_SECONDS)
            seconds += map(float, answers.split())
        finally:
            probe.kill()


__all__ = ["LOST", "Reader", "Stalled", "health_asked", "stalled", "stay_idle"]
