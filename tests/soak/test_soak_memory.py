"""Memory of the real process: idle, with a thousand idle sockets, and after very many frames."""

import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
import trio

from tests.soak.daemon import Daemon
from tests.soak.plays import HEAD
from tests.soak.scale import amount, only_whole
from tests.soak.wire import Wire, WireEnded, open_wire

MB, KIB = 1_000_000, 1024
IDLE_BYTES = 70 * MB
SOCKETS = amount(sample=200, whole=1_000)
SOCKET_BYTES = 60 * KIB
SETTLE_SECONDS = amount(sample=1.0, whole=25.0)  # a server may need a ping to notice that a line is gone
SECOND_WAVE = amount(sample=0.10, whole=0.05)
STEPS = 1_000  # of one play; neighbours of different kinds are never merged, so each is a frame
WARM_FRAMES = 50_000  # the log has reached its bound of 10,000 by then
FRAMES = 1_000_000
LEAST_SECONDS = 20 * 60
FOLLOWERS = 2
GROWTH = 0.05
PLAY = HEAD + "- say: a\n- think: b\n" * (STEPS // 2)


async def _resident(daemon: Daemon) -> int:
    """After whatever still is in flight."""
    await trio.sleep(1.0)
    return daemon.resident_bytes()


@pytest.mark.soak
@pytest.mark.slow
async def test_idle_and_idle_sockets(daemon: Daemon, say: Callable[[str], None]) -> None:
    idle = await _resident(daemon)
    async with AsyncExitStack() as sockets:
        for _ in range(SOCKETS):
            wire = await sockets.enter_async_context(open_wire(daemon.port, daemon.token))
            await wire.receive()
        with_sockets = await _resident(daemon)
    each = (with_sockets - idle) / SOCKETS
    await trio.sleep(SETTLE_SECONDS)
    async with AsyncExitStack() as sockets:
        for _ in range(SOCKETS):
            await sockets.enter_async_context(open_wire(daemon.port, daemon.token))
        again = await _resident(daemon)
    say(f"idle {idle / MB:.1f} MB, {each / KIB:.1f} KiB a socket ({SOCKETS}), the same again {again / MB:.1f} MB")
    assert idle <= IDLE_BYTES
    assert each <= SOCKET_BYTES
    assert again <= with_sockets * (1 + SECOND_WAVE), "sockets that are gone left something behind"


@pytest.mark.soak
@pytest.mark.slow
@only_whole
async def test_growth_over_frames(daemon: Daemon, say: Callable[[str], None]) -> None:
    _, session = await trio.to_thread.run_sync(daemon.post, "/api/sessions")
    session_id = session["id"]
    async with AsyncExitStack() as sockets, trio.open_nursery() as nursery:
        for _ in range(FOLLOWERS):
            wire = await sockets.enter_async_context(open_wire(daemon.port, daemon.token, session_id))
            nursery.start_soon(_drain, wire)
        await _frames(daemon, session_id, WARM_FRAMES)
        before = await _resident(daemon)
        begun = time.monotonic()
        highest = before
        for _ in range(10):
            await _frames(daemon, session_id, FRAMES // 10, LEAST_SECONDS / 10)
            highest = max(highest, await _resident(daemon))
        took = time.monotonic() - begun
        after = await _resident(daemon)
        _, status = await trio.to_thread.run_sync(daemon.get, f"/api/sessions/{session_id}/status")
        nursery.cancel_scope.cancel()
    growth = after / before - 1
    say(
        f"{FRAMES:,} frames in {took:.0f} s: {before / MB:.1f} MB, {growth * 100:+.1f} %, "
        f"at most {highest / MB:.1f} MB between turns"
    )
    assert status["is_running"] is False
    assert growth < GROWTH


async def _frames(daemon: Daemon, session_id: str, frames: int, least_seconds: float = 0.0) -> None:
    """So many frames, spread over at least so many seconds."""
    turns = frames // STEPS
    for _ in range(turns):
        begun = trio.current_time()
        body = {"session_id": session_id, "message": PLAY}
        status, answer = await trio.to_thread.run_sync(daemon.post, "/api/chat", body)
        assert status == 200, answer
        await trio.sleep_until(begun + least_seconds / turns)


async def _drain(wire: Wire) -> None:
    try:
        while True:
            await wire.receive()
    except WireEnded as ended:
        raise AssertionError(f"a follower was dropped: {ended}") from ended
