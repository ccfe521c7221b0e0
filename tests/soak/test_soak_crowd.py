"""A full house: a thousand idle sockets, a hundred on one streaming session of whom seventy don't read, its end."""

import json
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from attrs import define, field

from benchmarks.figures import percentile, ratio
from tests.soak.crowd import LOST, Reader, Stalled, health_asked, stalled, stay_idle
from tests.soak.daemon import Daemon
from tests.soak.plays import HEAD
from tests.soak.scale import only_whole
from tests.soak.wire import open_wire

pytestmark = [pytest.mark.slow, pytest.mark.soak, only_whole]

MB = 1_000_000
IDLE, READERS, STALLED = 1_000, 30, 70
ROUNDS = 4
TURNS = 5  # of one round: twelve seconds, in which a little more comes than may wait for a socket
WORD = "x" * 1_999 + " "
STREAM = HEAD + f"- {{say: &much '{WORD * 12}', pace: 0.02}}\n" + "- {say: *much, pace: 0.02}\n" * 9
SLOWER = 1.15
PONG_SECONDS = 0.005  # below that it is the machine's own noise
HEALTH_P95 = 0.050
GROWTH_BYTES = 64 * MB  # one megabyte may wait for each of seventy, and most of it is the same bytes
GIVEN_UP_SECONDS = 15.0  # ten without progress, two for a close that can't go out
GRACE_SECONDS = 8.0 + 1.0
TRY_AGAIN, RESTARTING = 1013, 1012


@define(eq=False)
class Crowd:
    """Everybody who reads, and what was measured with them."""

    daemon: Daemon
    session_id: str
    idle_codes: list[int] = field(factory=list)
    readers: list[Reader] = field(factory=lambda: [Reader() for _ in range(READERS)])
    highest: int = 0
    turns: int = 0

    async def streamed(self) -> tuple[float, float]:
        """One round: the median of the gaps and of the pongs that its readers saw."""
        for reader in self.readers:
            reader.gaps.clear()
            reader.pongs.clear()
        for _ in range(TURNS):
            await self.say(STREAM)
        await self._until(lambda: all(reader.ends == self.turns for reader in self.readers), 120)
        return self._median(lambda reader: reader.gaps), self._median(lambda reader: reader.pongs)

    async def say(self, content: str) -> None:
        body = {"content": content, "client_msg_id": f"m{self.turns}"}
        message = {"type": "message", "session_id": self.session_id, **body}
        async with open_wire(self.daemon.port, self.daemon.token) as wire:
            await wire.send(message)
            while json.loads(await wire.receive())["type"] != "queue_update":
                pass
        self.turns += 1

    def _median(self, of: Callable[[Reader], list[float]]) -> float:
        return statistics.median(value for reader in self.readers for value in of(reader))

    async def watch_memory(self) -> None:
        while True:
            self.highest = max(self.highest, self.daemon.resident_bytes())
            await trio.sleep(0.1)

    async def given_up(self, deaf: list[Stalled]) -> None:
        """Until the server has let all of them go."""
        await self._until(lambda: not any(one.is_connected for one in deaf), GIVEN_UP_SECONDS)
        for one in deaf:
            assert await one.end() in (TRY_AGAIN, LOST)

    async def _until(self, happens: Callable[[], bool], seconds: float) -> None:
        with trio.fail_after(seconds):
            while not happens():  # noqa: ASYNC110 - it happens in another process
                await trio.sleep(0.05)


@asynccontextmanager
async def gathered(daemon: Daemon) -> AsyncIterator[Crowd]:
    """The idle ones and the readers, each in a task that ends when the server has closed its socket."""
    _, session = await trio.to_thread.run_sync(daemon.post, "/api/sessions")
    crowd = Crowd(daemon, session["id"])
    async with AsyncExitStack() as stack, trio.open_nursery() as nursery:
        for _ in range(IDLE):
            wire = await stack.enter_async_context(open_wire(daemon.port, daemon.token))
            nursery.start_soon(stay_idle, wire, crowd.idle_codes)
        for reader in crowd.readers:
            wire = await stack.enter_async_context(open_wire(daemon.port, daemon.token, crowd.session_id))
            nursery.start_soon(reader.stay, wire)
            nursery.start_soon(reader.ask, wire)
        yield crowd


async def test_readers_never_notice_who_does_not_read(daemon: Daemon, say: Callable[[str], None]) -> None:
    alone: list[tuple[float, float]] = []
    crowded: list[tuple[float, float]] = []
    with trio.fail_after(1200):
        async with gathered(daemon) as crowd:
            await crowd.streamed()  # so that what is read once and kept is there
            before = daemon.resident_bytes()
            with health_asked(daemon) as health:
                async with trio.open_nursery() as watching:
                    watching.start_soon(crowd.watch_memory)
                    for _ in range(ROUNDS):
                        alone.append(await crowd.streamed())
                        async with stalled(daemon, crowd.session_id, STALLED) as deaf:
                            crowded.append(await crowd.streamed())
                            await crowd.given_up(deaf)
                    watching.cancel_scope.cancel()
            assert all(reader.code is None for reader in crowd.readers), "a reader was dropped"
            assert crowd.idle_codes == [], "an idle socket was dropped"
            took = await ended_in_the_middle(crowd)
    gaps, pongs = zip(*crowded, strict=True)
    gaps_alone, pongs_alone = zip(*alone, strict=True)
    gap, pong = ratio(gaps, gaps_alone), ratio(pongs, pongs_alone)
    p95 = percentile(health, 0.95)
    say(
        f"a part every {statistics.median(gaps) * 1000:.1f} ms, {gap:.2f}x of without the {STALLED} that don't read; "
        f"a pong after {statistics.median(pongs) * 1000:.1f} ms, {pong:.2f}x"
    )
    say(f"/health p95 {p95 * 1000:.1f} ms; {before / MB:.1f} MB, at most {crowd.highest / MB:.1f} MB")
    say(f"SIGTERM among all of them: gone after {took:.1f} s")
    _check_numbers(crowd)
    assert gap <= SLOWER
    assert pong <= SLOWER or statistics.median(pongs) - statistics.median(pongs_alone) < PONG_SECONDS
    assert p95 < HEALTH_P95
    assert crowd.highest - before < GROWTH_BYTES


def _check_numbers(crowd: Crowd) -> None:
    for reader in crowd.readers:
        assert reader.code == RESTARTING
        first, last = reader.numbers[0], reader.numbers[-1]
        assert reader.numbers == list(range(first, last + 1)), "a frame is missing or came twice"
    assert crowd.idle_codes == [RESTARTING] * IDLE


async def ended_in_the_middle(crowd: Crowd) -> float:
    """SIGTERM while all are there and a turn runs; how long it took."""
    daemon = crowd.daemon
    async with stalled(daemon, crowd.session_id, STALLED) as deaf:
        for _ in range(TURNS):
            await crowd.say(STREAM)
        await trio.sleep(5.0)
        assert all(one.is_connected for one in deaf)
        begun = time.monotonic()
        daemon.terminate()
        code = await trio.to_thread.run_sync(daemon.wait, GRACE_SECONDS)
        took = time.monotonic() - begun
        assert code == 0, daemon.log_tail()
        for one in deaf:
            assert await one.end() in (TRY_AGAIN, RESTARTING, LOST)
    return took
