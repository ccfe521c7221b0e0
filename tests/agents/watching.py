"""What is seen of agents: by a client that keeps every frame, and beneath, which scopes live and end."""

import json
from collections.abc import Callable
from typing import Any

import trio
from attrs import define, field

from tests.asgi_client import Closed
from tests.spec_client import SocketClient

Frame = dict[str, Any]
LIVE = ("starting", "running", "stopping")
LONG = 100_000.0
TASK = "scripted agent "
STATUSES = (*LIVE, "completed", "failed", "stopped", "interrupted", "lost")


@define(eq=False)
class Scopes(trio.abc.Instrument):
    """The tasks of the scripted runtime's agents by the agent's ref: when each began and ended, as a count of ends."""

    live: dict[str, trio.lowlevel.Task] = field(factory=dict)
    ended: list[str] = field(factory=list)

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith(TASK):
            self.live[task.name.removeprefix(TASK)] = task

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        if task.name.startswith(TASK):
            ref = task.name.removeprefix(TASK)
            del self.live[ref]
            self.ended.append(ref)


@define(eq=False)
class Watcher:
    """A socket that is read at once, always.  ``views`` is what its client knows of each agent; ``closed``: its end.

    Holds each ``agent_update`` against what it knows: a record settles once, and the summary is that of the records.
    """

    socket: SocketClient
    frames: list[Frame] = field(factory=list)
    views: dict[str, Frame] = field(factory=dict)
    closed: int | None = None
    _stirred: trio.Event = field(factory=trio.Event)

    async def until(self, happens: Callable[[], bool], seconds: float) -> None:
        """Look again at every frame."""
        with trio.fail_after(seconds):
            while not happens():
                await self._stirred.wait()

    async def read(self) -> None:
        while self.closed is None:
            frame = await self.socket.receive(LONG)  # type: ignore[attr-defined]
            if isinstance(frame, Closed):
                self.closed = frame.code
            else:
                self._hear(json.loads(frame))
            self._stirred.set()
            self._stirred = trio.Event()

    def of(self, *types: str) -> list[Frame]:
        return [frame for frame in self.frames if frame["type"] in types]

    @property
    def live(self) -> list[Frame]:
        return [view for view in self.views.values() if view["status"] in LIVE]

    def named(self, name: str) -> Frame:
        return next(view for view in self.views.values() if view["name"] == name)

    def _hear(self, frame: Frame) -> None:
        self.frames.append(frame)
        if frame["type"] == "session_status":
            self.views = {view["id"]: view for view in frame["agents"]["agents"]}
        if frame["type"] == "agent_update":
            for view in frame["agents"]:
                self._learn(view)
            assert frame["summary"] == tallied(list(self.views.values()))

    def _learn(self, view: Frame) -> None:
        known = self.views.get(view["id"])
        if known is not None:
            assert view["rev"] > known["rev"], "a view that is told again has changed"
            if known["status"] not in LIVE:
                assert settlement(view) == settlement(known), "what has settled stays so"
        self.views[view["id"]] = view


def settlement(view: Frame) -> tuple[Any, ...]:
    return view["status"], view["end_reason"], view["ended_at"], view["runs"]


def tallied(views: list[Frame]) -> Frame:
    """The AgentSummary of these views, by the client's own count."""
    live = [view for view in views if view["status"] in LIVE]
    started = [view["started_at"] for view in live if view["started_at"] is not None]
    return {
        "total": len(views),
        "live": len(live),
        **{status: sum(view["status"] == status for view in views) for status in STATUSES},
        "attention": sum(view["attention"] is not None for view in views),
        "shells_live": sum(view["kind"] in ("shell", "monitor") for view in live),
        "tokens": sum(view["tokens"] for view in views),
        "cost_usd": round(sum(view["cost_usd"] for view in views), 6),
        "oldest_live_started_at": min(started, default=None),
    }
