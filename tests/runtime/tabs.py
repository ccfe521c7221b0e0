"""A person's browser tab in tests: one socket in memory that keeps what it has read."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from attrs import define, field

from tests.asgi_client import AsgiClient, Closed, WebSocketClient

Frame = dict[str, Any]
ENDS = ("done", "stopped", "error")


@define(eq=False)
class Tab:
    """``greeting`` is what the first bind said: the frames up to ``session_status``."""

    socket: WebSocketClient
    frames: list[Frame] = field(factory=list)
    greeting: list[Frame] = field(factory=list)

    async def send(self, type: str, **fields: Any) -> None:
        await self.socket.send_json({"type": type, **fields})

    async def say(self, session_id: str, content: str, client_msg_id: str | None = None, **fields: Any) -> None:
        await self.send("message", session_id=session_id, content=content, client_msg_id=client_msg_id, **fields)

    async def until(self, wanted: Callable[[Frame], bool] | str, seconds: float = 30.0) -> list[Frame]:
        """The frames up to and with the first one that is wanted."""
        found: list[Frame] = []
        with trio.fail_after(seconds):
            while not found or not _fits(found[-1], wanted):
                found.append(await self.socket.receive_json(seconds))
                self.frames.append(found[-1])
        return found

    async def turn(self, seconds: float = 30.0) -> list[Frame]:
        """The frames up to the end of a turn, and ``session_running`` after it."""
        found = await self.until(ends_turn, seconds)
        return found + await self.until(lambda frame: frame["type"] == "session_running" and not frame["is_running"])

    async def switch(self, session_id: str, after_seq: int | None = None) -> list[Frame]:
        await self.send("switch_session", session_id=session_id, after_seq=after_seq)
        return await self.until("session_status")

    async def quiet(self, seconds: float = 1.0) -> list[Frame]:
        """What comes within so much time."""
        await trio.sleep(seconds)
        found = [frame for frame in self.socket.received() if not isinstance(frame, Closed)]
        self.frames += found
        return found

    async def beat(self) -> list[Frame]:
        """What the server has sent before it answers a ping."""
        await self.send("ping")
        return (await self.until("pong"))[:-1]


def _fits(frame: Frame, wanted: Callable[[Frame], bool] | str) -> bool:
    return frame["type"] == wanted if isinstance(wanted, str) else wanted(frame)


def ends_turn(frame: Frame) -> bool:
    return frame["type"] in ENDS and "seq" in frame


def of(frames: list[Frame], *types: str) -> list[Frame]:
    return [frame for frame in frames if frame["type"] in types]


def types(frames: list[Frame]) -> list[str]:
    """The types in order, a type that repeats at once only once."""
    names = [frame["type"] for frame in frames]
    return [name for n, name in enumerate(names) if n == 0 or names[n - 1] != name]


def text(frames: list[Frame]) -> str:
    return "".join(frame["content"] for frame in of(frames, "token"))


def numbers(frames: list[Frame]) -> list[int]:
    return [frame["seq"] for frame in frames if "seq" in frame]


@asynccontextmanager
async def tab(
    client: AsgiClient, session_id: str | None = None, after_seq: int | None = None, *, window: int = 10_000
) -> AsyncIterator[Tab]:
    query: dict[str, Any] = {}
    if session_id is not None:
        query["session_id"] = session_id
    if after_seq is not None:
        query["after_seq"] = after_seq
    async with client.websocket("/ws", query=query, window=window) as socket:
        opened = Tab(socket)
        opened.greeting = await opened.until("session_status")
        yield opened
