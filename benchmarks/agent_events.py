"""Twenty sockets follow every agent of a session: what eight agents that work at the same time cost, against one.

Each agent does something twenty times a second, so eight send eight times as much.  A delay is the time from the
instant that an item carries, which is when it was heard, until its frame has come; it is as fine as a millisecond.
"""

import asyncio
import json
import statistics
import time
from datetime import datetime
from typing import Any

import orjson
from attrs import define, field, frozen

from benchmarks import cpus
from benchmarks.figures import Figure, percentile, ratio
from benchmarks.homes import new_home
from benchmarks.sockets import ReadingSocket, open_socket_of
from tests.soak.daemon import Daemon

ROUNDS = 5
SOCKETS, AGENTS = 20, 8
ITEMS, PACE_SECONDS = 50, 0.05
SUBSCRIBED_SECONDS = 2.0  # after which the agents begin
LONGEST_SECONDS = 60.0
MB = 1_000_000


@define(eq=False)
class FollowingSocket(ReadingSocket):
    """``delays`` are seconds, one for each item that came; ``all_there`` tells when ``wanted`` items had come."""

    delays: list[float] = field(factory=list)
    wanted: int = 0
    all_there: asyncio.Event = field(factory=asyncio.Event)

    def _take(self, opcode: int, payload: bytes) -> None:
        if opcode != 1 or not payload.startswith(b'{"type":"agent_event"'):
            super()._take(opcode, payload)
            return
        item = orjson.loads(payload)["item"]
        if item["kind"] == "text":
            self.delays.append(time.time() - datetime.fromisoformat(item["at"]).timestamp())
            if len(self.delays) == self.wanted:
                self.all_there.set()


@frozen
class Run:
    delays: list[float]
    resident: int


def measure() -> list[Figure]:
    server = cpus.for_server()
    with new_home(server) as many, new_home(server) as one, cpus.as_client():
        arms = ((many, AGENTS), (one, 1))
        for daemon, agents in arms:
            daemon.start()
            daemon.claim()
            _run(daemon, agents)
        rounds = [tuple(_run(daemon, agents) for daemon, agents in arms) for _ in range(ROUNDS)]
    eight, single = [run[0] for run in rounds], [run[1] for run in rounds]
    what = f"{AGENTS} agents to {SOCKETS} subscribers, against one agent"
    return [
        _delays(f"{what}: median delay", 0.5, eight, single, "<= 3x"),
        _delays(f"{what}: delay, 99th of 100", 0.99, eight, single, "<= 5x"),
        Figure(
            f"{what}: memory",
            f"{ratio([run.resident for run in eight], [run.resident for run in single]):.2f}x",
            "<= 1.1x",
            f"{statistics.median(r.resident for r in eight) / MB:.0f} MB against "
            f"{statistics.median(r.resident for r in single) / MB:.0f} MB, resident",
        ),
    ]


def _delays(what: str, share: float, eight: list[Run], single: list[Run], target: str) -> Figure:
    ours = [percentile(run.delays, share) for run in eight]
    theirs = [percentile(run.delays, share) for run in single]
    frames = AGENTS * SOCKETS / PACE_SECONDS
    return Figure(
        what,
        f"{ratio(ours, theirs):.1f}x",
        target,
        f"{statistics.median(ours) * 1000:.1f} ms against {statistics.median(theirs) * 1000:.1f} ms, "
        f"{frames:,.0f} frames/s against {frames / AGENTS:,.0f}",
    )


def _run(daemon: Daemon, agents: int) -> Run:
    _, session = daemon.post("/api/sessions")
    return asyncio.run(_follow(daemon, session["id"], agents))


async def _follow(daemon: Daemon, session_id: str, agents: int) -> Run:
    sockets = [await open_socket_of(FollowingSocket, daemon.port, daemon.token, session_id) for _ in range(SOCKETS)]
    try:
        sockets[0].send({"type": "message", "session_id": session_id, "content": _play(agents)})
        async with asyncio.timeout(LONGEST_SECONDS):
            await sockets[0].ended
            _, found = await asyncio.to_thread(daemon.get, f"/api/sessions/{session_id}/agents")
            for socket in sockets:
                socket.wanted = agents * ITEMS
                for agent in found["agents"]:
                    socket.send({"type": "agent_subscribe", "session_id": session_id, "agent_id": agent["id"]})
            await asyncio.gather(*(socket.all_there.wait() for socket in sockets))
        resident = await asyncio.to_thread(daemon.resident_bytes)
        return Run([delay for socket in sockets for delay in socket.delays], resident)
    finally:
        for socket in sockets:
            socket.close()


def _play(agents: int) -> str:
    work: list[dict[str, Any]] = [{"wait": SUBSCRIBED_SECONDS}]
    for number in range(ITEMS):
        work += [{"say": f"Step {number} of many is done; the next one follows."}, {"wait": PACE_SECONDS}]
    steps = [{"agent": f"agent-{number}", "background": True, "steps": work} for number in range(agents)]
    return "#!nerve-scenario\n" + json.dumps(steps)
