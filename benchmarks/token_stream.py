"""Ten sockets follow one answer: the merging event log against one frame per delta."""

import asyncio
import statistics
import time

import orjson
from attrs import frozen

from benchmarks import cpus
from benchmarks.figures import Figure, ratio
from benchmarks.homes import new_home
from benchmarks.sockets import ReadingSocket, open_socket
from tests.soak.daemon import Daemon

ROUNDS = 5
SOCKETS = 10
WORDS = 8_000  # even as a frame each they stay below the 1 MiB that may wait for a socket (decisions D18)
LONGEST_SECONDS = 120.0
PLAY = "#!nerve-scenario\n- say: " + '"' + " ".join(["word"] * WORDS) + '"'
UNMERGED = ("-m", "benchmarks.stream_server")


@frozen
class Stream:
    """Deltas delivered per second over all sockets, and frames per socket."""

    rate: float
    frames: int


def measure() -> list[Figure]:
    server = cpus.for_server()
    with new_home(server) as merged, new_home(server, UNMERGED) as unmerged, cpus.as_client():
        daemons = (merged, unmerged)
        for daemon in daemons:
            daemon.start()
            daemon.claim()
            _play(daemon)
        runs = [tuple(_play(daemon) for daemon in daemons) for _ in range(ROUNDS)]
    ours, theirs = [run[0] for run in runs], [run[1] for run in runs]
    rates, yardstick = [stream.rate for stream in ours], [stream.rate for stream in theirs]
    return [
        Figure(
            f"merged token stream to {SOCKETS} sockets, against a frame per delta",
            f"{ratio(rates, yardstick):.1f}x",
            ">= 10x",
            f"{statistics.median(rates):,.0f} deltas/s against {statistics.median(yardstick):,.0f}; "
            f"{statistics.median(s.frames for s in ours):,.0f} frames against {theirs[0].frames:,} a socket",
        )
    ]


def _play(daemon: Daemon) -> Stream:
    _, session = daemon.post("/api/sessions")
    return asyncio.run(_follow(daemon, session["id"]))


async def _follow(daemon: Daemon, session_id: str) -> Stream:
    sockets = [await open_socket(daemon.port, daemon.token, session_id) for _ in range(SOCKETS)]
    try:
        begun = time.perf_counter()
        sockets[0].send({"type": "message", "session_id": session_id, "content": PLAY})
        async with asyncio.timeout(LONGEST_SECONDS):
            ends = await asyncio.gather(*(socket.ended for socket in sockets))
        for socket in sockets:
            _check(socket)
        frames = sum(payload.startswith(b'{"type":"token"') for payload in sockets[0].payloads)
        return Stream(WORDS * SOCKETS / (max(ends) - begun), frames)
    finally:
        for socket in sockets:
            socket.close()


def _check(socket: ReadingSocket) -> None:
    """A stream that lost something would be no measurement."""
    frames = [orjson.loads(payload) for payload in socket.payloads]
    text = "".join(frame["content"] for frame in frames if frame["type"] == "token")
    assert text.split() == ["word"] * WORDS, f"{len(text.split())} of {WORDS} words arrived"
