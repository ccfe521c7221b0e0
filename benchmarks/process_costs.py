"""What the process costs: seconds until it answers, bytes while it idles, per socket and per frame."""

import asyncio
import statistics
import time

from benchmarks import cpus
from benchmarks.figures import Figure
from benchmarks.homes import MESSAGES, SESSIONS, lived_in_home
from benchmarks.sockets import open_socket
from tests.soak.daemon import Daemon

STARTS = 5
SOCKETS = 1_000
WARM_TURNS, TURNS, STEPS = 12, 20, 1_000  # a play has at most 1,000 steps; the log keeps 10,000 frames
MB, KIB = 1_000_000, 1024
# Neighbours of different kinds are never merged, so every step is a frame.
PLAY = "#!nerve-scenario\n" + "- say: a\n- think: b\n" * (STEPS // 2)


def measure() -> list[Figure]:
    with lived_in_home(cpus.for_server()) as daemon, cpus.as_client():
        starts, used = [], []
        for _ in range(STARTS):
            daemon.end()
            starts.append(daemon.start())
            used.append(daemon.cpu_seconds())
        time.sleep(1.0)
        idle = daemon.resident_bytes()
        per_socket = asyncio.run(_sockets(daemon, idle))
        growth, frames = _growth(daemon)
    return [
        Figure(
            "start to first /health",
            f"{statistics.median(starts):.2f} s",
            "<= 1 s",
            f"home of {SESSIONS:,} sessions, {MESSAGES:,} messages; "
            f"{statistics.median(used):.2f} s of it on the processor; slowest of {STARTS}: {max(starts):.2f} s",
        ),
        Figure("memory, idle", f"{idle / MB:.0f} MB", "<= 70 MB", "resident"),
        Figure("memory, per idle socket", f"{per_socket / KIB:.0f} KiB", "<= 60 KiB", f"{SOCKETS:,} sockets"),
        Figure(
            "memory, growth over frames",
            f"{growth * 100:+.1f} %",
            "< 5 % over a million",
            f"a sample of {frames:,} frames after {WARM_TURNS * STEPS:,}; the million is part of make soak",
        ),
    ]


async def _sockets(daemon: Daemon, before: int) -> float:
    sockets = []
    try:
        for _ in range(SOCKETS):
            sockets.append(await open_socket(daemon.port, daemon.token, "main"))
        await asyncio.sleep(1.0)
        return (daemon.resident_bytes() - before) / SOCKETS
    finally:
        for socket in sockets:
            socket.close()


def _growth(daemon: Daemon) -> tuple[float, int]:
    """The relative growth after the log has reached its bound, and over how many frames."""
    _, session = daemon.post("/api/sessions")
    for _ in range(WARM_TURNS):
        _turn(daemon, session["id"])
    before = daemon.resident_bytes()
    for _ in range(TURNS):
        _turn(daemon, session["id"])
    return daemon.resident_bytes() / before - 1, TURNS * STEPS


def _turn(daemon: Daemon, session_id: str) -> None:
    status, answer = daemon.post("/api/chat", {"session_id": session_id, "message": PLAY})
    assert status == 200, f"{status}: {answer}"
