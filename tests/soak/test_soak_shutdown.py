"""SIGTERM under load: the process is gone in time, every socket that reads is told why, every turn is recorded."""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
import trio
from attrs import define, field

from tests.soak import records
from tests.soak.daemon import Daemon
from tests.soak.plays import HEAD
from tests.soak.scale import amount, only_whole
from tests.soak.wire import Wire, WireEnded, open_wire

SESSIONS = amount(sample=8, whole=24)
READERS_EACH = amount(sample=2, whole=10)
QUEUED_EACH = 2
GRACE_SECONDS = 8.0 + 1.0
INTERRUPTED = "[Interrupted by restart]"
RESTARTING = 1012


@define
class Reader:
    """What one socket saw until its end.  It is ready once bound, or once it read the text ``until``."""

    until: str = ""
    code: int | None = None
    frames: list[dict[str, Any]] = field(factory=list)

    async def read(self, daemon: Daemon, session_id: str, ready: trio.Event) -> None:
        try:
            async with open_wire(daemon.port, daemon.token, session_id) as wire:
                while True:
                    frame = orjson.loads(await wire.receive())
                    self.frames.append(frame)
                    if frame["type"] == "session_status" if not self.until else self.until in frame.get("content", ""):
                        ready.set()
        except WireEnded as ended:
            self.code = ended.code


def _plays(rng: random.Random) -> list[str]:
    """Turns of every kind: one streams, one sits in a tool, one waits, one does not heed an interrupt."""
    words = " ".join(f"w{n}" for n in range(3000))
    kinds: list[dict[str, Any]] = [
        {"say": words, "pace": rng.uniform(0.002, 0.02)},
        {"tool": "Bash", "output": ["."] * 500, "seconds": 300},
        {"wait": 300},
        {"stuck": 300},
    ]
    return [HEAD + json.dumps([{"say": "begins "}, kinds[number % len(kinds)]]) for number in range(SESSIONS)]


def _load(daemon: Daemon, contents: list[str]) -> dict[str, str]:
    sessions = {}
    for content in contents:
        _, session = daemon.post("/api/sessions")
        sessions[session["id"]] = content
    return sessions


async def _send(daemon: Daemon, session_id: str, content: str) -> None:
    """The running turn and what waits behind it."""
    async with open_wire(daemon.port, daemon.token, session_id) as wire:
        for n, text in enumerate([content, *["Hello"] * QUEUED_EACH]):
            await wire.send(
                {"type": "message", "session_id": session_id, "content": text, "client_msg_id": f"{session_id}-{n}"}
            )
        while True:
            frame = orjson.loads(await wire.receive())
            if frame["type"] == "queue_update" and len(frame["queue"]) == QUEUED_EACH:
                return


@pytest.mark.soak
@pytest.mark.slow
async def test_sigterm_under_load(daemon: Daemon, rng: random.Random, say: Callable[[str], None]) -> None:
    sessions = await trio.to_thread.run_sync(_load, daemon, _plays(rng))
    readers = {session_id: [Reader() for _ in range(READERS_EACH)] for session_id in sessions}
    with trio.fail_after(120):
        async with trio.open_nursery() as nursery:
            events = []
            for session_id, own in readers.items():
                for reader in own:
                    events.append(trio.Event())
                    nursery.start_soon(reader.read, daemon, session_id, events[-1])
            async with trio.open_nursery() as sending:
                for session_id, content in sessions.items():
                    sending.start_soon(_send, daemon, session_id, content)
            for event in events:
                await event.wait()
            await trio.sleep(rng.uniform(0.2, 1.0))
            begun = time.monotonic()
            daemon.terminate()
            code = await trio.to_thread.run_sync(daemon.wait, GRACE_SECONDS)
            took = time.monotonic() - begun
    assert code == 0, daemon.log_tail()
    for own in readers.values():
        for reader in own:
            _check(reader)
    _check_records(daemon, sessions)
    say(f"SIGTERM with {SESSIONS} turns and {SESSIONS * READERS_EACH} sockets: gone after {took:.1f} s")


def _check(reader: Reader) -> None:
    """The turn's end before the close, and the close with its reason."""
    assert reader.code == RESTARTING, reader.code
    ends = [f for f in reader.frames if f["type"] == "error" and "seq" in f]
    assert [end["error"] for end in ends] == ["Interrupted by restart"]


def _check_records(daemon: Daemon, sessions: dict[str, str]) -> None:
    records.check_sound(daemon.database)
    now = records.read(daemon.database)
    now.check()
    assert not now.waiting, "what waits at a shutdown is refused, durably"
    assert {turn.session_id for turn in now.turns} == sessions.keys()
    for turn in now.turns:
        assert turn.state == "interrupted", turn
        assert turn.answer is not None
        assert turn.answer.startswith("begins"), turn
        assert turn.answer.endswith(INTERRUPTED), turn


# One turn says a megabyte: more than a server may keep for a socket, and several more than the kernel does.
_WORD = "x" * 99 + " "
FLOOD = HEAD + f"- say: &much '{_WORD * 2_000}'\n" + "- say: *much\n" * 4
FLOODS = amount(sample=2, whole=6)
FLOOD_A_LITTLE = HEAD + f"- say: '{_WORD * 2_000}'\n"  # less than the megabyte that may wait for a socket
QUIET = HEAD + json.dumps([{"say": "now quiet "}, {"wait": 300}])


@pytest.mark.soak
@pytest.mark.slow
async def test_sigterm_beside_a_client_that_does_not_read(daemon: Daemon, say: Callable[[str], None]) -> None:
    """It can't be told anything; it must not keep the process from ending, nor a turn from its record."""
    _, session = await trio.to_thread.run_sync(daemon.post, "/api/sessions")
    session_id = session["id"]
    reader, ready = Reader(until="now quiet"), trio.Event()
    with trio.fail_after(120):
        async with (
            open_wire(daemon.port, daemon.token, session_id, receive_bytes=4096) as deaf,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(reader.read, daemon, session_id, ready)
            for n, content in enumerate([*[FLOOD] * FLOODS, QUIET]):
                message = {"type": "message", "session_id": session_id, "content": content, "client_msg_id": f"m{n}"}
                await deaf.send(message)
            await ready.wait()
            begun = time.monotonic()
            daemon.terminate()
            await trio.to_thread.run_sync(daemon.wait, GRACE_SECONDS)
            took = time.monotonic() - begun
    assert reader.code == RESTARTING
    now = records.read(daemon.database)
    now.check()
    assert [turn.state for turn in now.turns] == ["completed"] * FLOODS + ["interrupted"]
    records.check_sound(daemon.database)
    say(f"SIGTERM beside a client that does not read: gone after {took:.1f} s")


async def _read_to_the_end(wire: Wire, seen: list[dict[str, Any]]) -> int:
    """The code that it was closed with."""
    try:
        while True:
            seen.append(orjson.loads(await wire.receive()))
    except WireEnded as ended:
        return ended.code


@pytest.mark.soak
@pytest.mark.slow
@only_whole
async def test_a_slow_reader_is_told_everything_before_the_close(daemon: Daemon, say: Callable[[str], None]) -> None:
    """What waits for it when SIGTERM comes still goes out: its turn's text, its end, and only then 1012."""
    _, session = await trio.to_thread.run_sync(daemon.post, "/api/sessions")
    session_id = session["id"]
    reader, ready = Reader(until="now quiet"), trio.Event()
    seen: list[dict[str, Any]] = []
    with trio.fail_after(60):
        async with (
            open_wire(daemon.port, daemon.token, session_id, receive_bytes=4096) as slow,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(reader.read, daemon, session_id, ready)
            for n, content in enumerate([*[FLOOD_A_LITTLE] * 3, QUIET]):
                message = {"type": "message", "session_id": session_id, "content": content, "client_msg_id": f"m{n}"}
                await slow.send(message)
            await ready.wait()
            daemon.terminate()
            await trio.sleep(0.2)
            ended = await _read_to_the_end(slow, seen)
            code = await trio.to_thread.run_sync(daemon.wait, GRACE_SECONDS)
    numbered = [(f["seq"], f["type"]) for f in seen if "seq" in f]
    others = [(f["seq"], f["type"]) for f in reader.frames if "seq" in f and f["type"] != "user_message"]
    assert ended == RESTARTING
    assert numbered == others, "the slow reader missed something"
    assert numbered[-1][1] == "error"
    assert code == 0, daemon.log_tail()
    say(f"a slow reader had {sum(len(f.get('content', '')) for f in seen):,} characters before its 1012")
