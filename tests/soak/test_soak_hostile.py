"""A crowd of attackers at once, drawn at random, beside people who only want an answer."""

import json
import random
import time
from collections.abc import Callable

import pytest
import trio

from tests.hostile.attack import Victim, frame, settled, upgrade
from tests.hostile.shapes import BAD_CHUNKS, CHUNKED_POST, FAULTS, HANDSHAKES, REFUSED
from tests.soak.scale import amount, only_whole

pytestmark = [pytest.mark.slow, pytest.mark.soak, only_whole]

SECONDS = amount(6.0, 240.0)
ATTACKERS = 40
P95_SECONDS = 0.25  # of a plain request while all of them are at it, on two shared cores
OK = b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"
LIMITS = {
    "head_seconds": 1.0,
    "idle_seconds": 2.0,
    "body_seconds": 1.0,
    "stall_seconds": 1.0,
    "reset_seconds": 0.5,
    "linger_seconds": 0.5,
    "close_seconds": 0.5,
    "leave_seconds": 1.0,
}


def attack(rng: random.Random) -> bytes:
    """What one attacker sends."""
    shape = rng.choice(["head", "chunks", "upgrade", "frames", "noise", "unread", "deaf", "wait", "flood"])
    match shape:
        case "head":
            return rng.choice(list(REFUSED.values()))[0]
        case "chunks":
            return CHUNKED_POST + rng.choice(list(BAD_CHUNKS.values()))
        case "upgrade":
            return rng.choice(list(HANDSHAKES.values()))[0]
        case "frames":
            return upgrade() + rng.choice(list(FAULTS.values()))[0]
        case "noise":
            return rng.choice([b"", OK[: rng.randrange(30)], upgrade()]) + rng.randbytes(rng.randrange(400))
        case "unread":
            return b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n"
        case "deaf":
            return b"POST /deaf HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * rng.randrange(100_000)
        case "wait":
            return b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n" + OK * rng.randrange(50)
        case _:
            return upgrade(rng.choice(["/flood", "/busy", "/echo"]))


async def attacker(port: int, rng: random.Random, until: float) -> None:
    while trio.current_time() < until:
        stream = await trio.open_tcp_stream("127.0.0.1", port)
        if rng.random() < 0.3:
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4096)
        raw = attack(rng)
        with trio.move_on_after(rng.choice([0.0, 0.05, 0.3, 1.5])):
            try:
                cut = rng.randrange(len(raw) + 1)
                for piece in (raw[:cut], raw[cut:], frame(1, rng.randbytes(20))):
                    await stream.send_all(piece)
                    await trio.sleep(rng.random() * 0.01)
                while rng.random() < 0.9 and await stream.receive_some(65536):
                    pass
                await trio.sleep_forever()
            except trio.BrokenResourceError:
                pass
        if rng.random() < 0.5:
            stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        stream.socket.close()
        await trio.sleep(rng.random() * 0.05)


async def person(port: int, until: float, latencies: list[float]) -> None:
    while trio.current_time() < until:
        begun = time.perf_counter()
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(OK)
            received = b""
            while not received.endswith(b"\r\n\r\nok"):
                part = await stream.receive_some(4096)
                assert part, received
                received += part
        latencies.append(time.perf_counter() - begun)
        await trio.sleep(0.01)


async def storm(port: int, rng: random.Random) -> list[float]:
    latencies: list[float] = []
    until = trio.current_time() + SECONDS
    async with trio.open_nursery() as nursery:
        for _ in range(ATTACKERS):
            nursery.start_soon(attacker, port, random.Random(rng.random()), until)
        for _ in range(2):
            nursery.start_soon(person, port, until, latencies)
    return sorted(latencies)


def test_a_crowd_of_attackers(rng: random.Random, say: Callable[[str], None]) -> None:
    victim = Victim({"kind": "hardened", "limits": LIMITS}).start()
    try:
        trio.run(storm, victim.port, random.Random(0))  # whatever grows once has grown
        before = victim.census()
        latencies = trio.run(storm, victim.port, rng)
        after = settled(victim, before)
        p95 = latencies[int(len(latencies) * 0.95)]
        say(
            f"{ATTACKERS} attackers for {SECONDS:.0f} s: {len(latencies)} answers, p95 {p95 * 1000:.0f} ms, "
            f"memory {(after['resident'] - before['resident']) / 1e6:+.1f} MB, seen {json.dumps(after['seen'])}"
        )
        assert p95 < P95_SECONDS
        assert "Traceback" not in victim.log
        assert "failed" not in victim.log
        victim.terminate()
        assert victim.wait(5) == 0
    finally:
        victim.end()
