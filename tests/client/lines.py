"""Connections that a script opens, holds and drops, and a server that is nothing but them."""

import random
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import trio
from attrs import define, field

from nerve.client.backoff import Backoff
from nerve.client.errors import SocketEnded
from nerve.client.live import LiveSession, follow
from nerve.contract.generated.frames_client import ClientFrame, MessageFrame, PingFrame
from nerve.contract.generated.frames_server import PongFrame, ServerFrame

LOST = SocketEnded("the line to the server is lost")
PONG = PongFrame()


@define(eq=False)
class Line:
    """One connection: what the server says on it, in order; an exception ends it.  ``sent`` is what it was told."""

    says: list[ServerFrame | SocketEnded]
    bound: tuple[str, int | None] = ("", None)
    sent: list[ClientFrame] = field(factory=list)
    spoken_to: trio.Event = field(factory=trio.Event)
    _arrived: trio.Event = field(factory=trio.Event)

    async def send(self, frame: ClientFrame) -> None:
        await trio.lowlevel.checkpoint()
        self.sent.append(frame)
        if isinstance(frame, MessageFrame):
            self.spoken_to.set()
        self.answer(frame)

    def answer(self, frame: ClientFrame) -> None:
        if isinstance(frame, PingFrame):
            self.say(PONG)

    def say(self, *frames: ServerFrame) -> None:
        self.says += frames
        self._arrived.set()

    def drop(self, why: SocketEnded = LOST) -> None:
        self.says.append(why)
        self._arrived.set()

    async def receive(self) -> ServerFrame:
        await trio.lowlevel.checkpoint()
        while not self.says:
            self._arrived = trio.Event()
            await self._arrived.wait()
        said = self.says.pop(0)
        if isinstance(said, SocketEnded):
            raise said
        return said

    @property
    def messages(self) -> list[MessageFrame]:
        return [one for one in self.sent if isinstance(one, MessageFrame)]


class SilentLine(Line):
    """A connection that nothing comes from any more, not even an answer."""

    def answer(self, frame: ClientFrame) -> None:
        return


@define(eq=False)
class Server:
    """Opens the scripted connections one after another; afterwards there is nobody."""

    lines: Iterator[Line]
    opened: list[Line] = field(factory=list)
    attempts: list[float] = field(factory=list)

    @asynccontextmanager
    async def connect(self, session_id: str, after_seq: int | None) -> AsyncIterator[Line]:
        await trio.lowlevel.checkpoint()
        self.attempts.append(trio.current_time())
        line = next(self.lines, None)
        if line is None:
            raise SocketEnded("nobody is there")
        line.bound = (session_id, after_seq)
        self.opened.append(line)
        yield line

    def follow(self, after_seq: int | None = None, *, seed: int = 1) -> AbstractAsyncContextManager[LiveSession]:
        return follow(
            self.connect, "main", after_seq=after_seq, backoff=Backoff(first=1, longest=8), rng=random.Random(seed)
        )


def server(*lines: Line) -> Server:
    return Server(iter(lines))
