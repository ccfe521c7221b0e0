"""The parts of the hardened server that decide: who is let in, whose failure is whose, which Hypercorn this is."""

import contextlib
import itertools
import logging
import resource
import socket
import ssl
from importlib.metadata import requires

import pytest
import trio
from hypercorn.config import Config

from nerve.asgi import server
from nerve.asgi.hardened import Limits, WrongHypercorn, pinned
from nerve.asgi.hardened.containment import contained
from nerve.asgi.hardened.context import Context
from nerve.asgi.hardened.lifespan import LifespanFailed, lifespan
from nerve.asgi.hardened.wire import Gone, Stalled, Wire, _Tls
from nerve.asgi.protocol import Receive, Scope, Send


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    return None


def context(**limits: int) -> Context:
    return Context(nothing, Config(), Limits(**limits))  # type: ignore[arg-type]


# --- connections (decisions D17) --------------------------------------------------------------------------------------


def test_connections_are_counted_in_all_and_per_peer() -> None:
    counted = context(connections=5, connections_per_peer=2)
    assert [counted.admit("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert [counted.admit("2001:db8::1") for _ in range(3)] == [True, True, False]
    assert counted.admit("192.0.2.3")
    assert not counted.admit("192.0.2.4"), "five in all"
    counted.leave("192.0.2.1")
    assert counted.admit("192.0.2.1")
    for peer in ("192.0.2.1", "192.0.2.1", "2001:db8::1", "2001:db8::1", "192.0.2.3"):
        counted.leave(peer)
    assert counted.total == 0
    assert counted.admit("192.0.2.1")


def test_one_network_of_ipv6_is_one_peer() -> None:
    counted = context(connections_per_peer=2)
    assert [counted.admit(f"2001:db8:0:1::{n}") for n in range(3)] == [True, True, False]
    assert counted.admit("2001:db8:0:2::1")
    assert counted.admit("fe80::1%eth0")
    counted.leave("2001:db8:0:1::9")
    assert counted.admit("2001:db8:0:1::8")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", ""])
def test_loopback_counts_in_all_only(peer: str) -> None:
    counted = context(connections=4, connections_per_peer=1)
    assert [counted.admit(peer) for _ in range(5)] == [True] * 4 + [False]


def test_nobody_is_let_in_at_the_end() -> None:
    counted = context()
    counted.stop()
    assert not counted.admit("127.0.0.1")


def test_connections_leave_files_for_the_house(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1024, 1024))
    assert server.within_file_limit(Limits()).connections == 1024 - server.RESERVED_FILES
    assert "896 connections" in caplog.text
    assert server.within_file_limit(Limits(connections=10)).connections == 10
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    assert server.within_file_limit(Limits()).connections == 1
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert server.within_file_limit(Limits()) == Limits()


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_failure_is_logged_once_without_what_it_says(caplog: pytest.LogCaptureFixture) -> None:
    payload = "".join(("sec", "ret"))

    async def fail() -> None:
        raise ValueError(payload)

    assert not await contained("a request", fail)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage().startswith("a request failed: ValueError\n")
    assert "secret" not in caplog.text


async def test_a_peer_that_went_away_is_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ExceptionGroup("of two", [Gone("secret"), ExceptionGroup("of one", [KeyError("secret")])])

    assert not await contained("a socket", fail)
    assert [record.getMessage().split("\n")[0] for record in caplog.records] == ["a socket failed: KeyError"]


async def test_cancelled_passes_also_beside_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    async def fail_late() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_late)
            nursery.start_soon(trio.sleep_forever)

    with trio.move_on_after(0) as scope:
        await contained("a request", both)
        raise AssertionError("the cancellation was swallowed")
    assert scope.cancelled_caught
    assert "ValueError" in caplog.text


async def test_the_end_of_the_program_passes() -> None:
    async def interrupted() -> None:
        raise BaseExceptionGroup("of two", [KeyboardInterrupt(), ValueError()])

    with pytest.RaisesGroup(KeyboardInterrupt):
        await contained("a request", interrupted)


# --- lifespan ---------------------------------------------------------------------------------------------------------


class Living:
    """An app that sends these and then ends, or falls."""

    def __init__(self, *sends: str, falls: bool = False, waits: bool = True) -> None:
        self.sends, self.falls, self.waits = sends, falls, waits
        self.received: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["born"] = True
        for kind in self.sends:
            if self.waits:
                self.received.append((await receive())["type"])
            await send({"type": kind, "message": "because"})
        if self.falls:
            raise ZeroDivisionError


async def test_a_life_from_start_to_end() -> None:
    app = Living("lifespan.startup.complete", "lifespan.shutdown.complete")
    shared = Context(app, Config(), Limits())
    async with lifespan(shared):
        assert app.received == ["lifespan.startup"]
        assert shared.state == {"born": True}
    assert app.received == ["lifespan.startup", "lifespan.shutdown"]


@pytest.mark.parametrize(
    ("app", "error", "says"),
    [
        (Living(falls=True), ZeroDivisionError, None),
        (Living("lifespan.startup.complete", falls=True), ZeroDivisionError, None),
        (Living(), LifespanFailed, "ended before"),
        (Living("lifespan.startup.complete"), LifespanFailed, "ended before"),
        (Living("lifespan.startup.failed"), LifespanFailed, "startup failed: because"),
        (Living("lifespan.startup.complete", "lifespan.shutdown.failed"), LifespanFailed, "shutdown failed: because"),
        (Living("http.response.start"), LifespanFailed, "may not send"),
    ],
)
async def test_a_life_that_fails_takes_the_server_with_it(
    app: Living, error: type[Exception], says: str | None, autojump_clock: trio.testing.MockClock
) -> None:
    async def serve() -> None:
        async with lifespan(Context(app, Config(), Limits())):
            await trio.sleep(5)

    with pytest.RaisesGroup(pytest.RaisesExc(error, match=says)):
        await serve()


@pytest.mark.parametrize("slow", ["startup", "shutdown"])
async def test_a_life_that_takes_too_long(slow: str, autojump_clock: trio.testing.MockClock) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for step in ("startup", "shutdown"):
            await receive()
            if step == slow:
                await trio.sleep_forever()
            await send({"type": f"lifespan.{step}.complete"})

    async def serve() -> None:
        async with lifespan(Context(app, Config(), Limits())):
            await trio.sleep(5)

    with pytest.RaisesGroup(pytest.RaisesExc(LifespanFailed, match=f"{slow} took more than 60 s")):
        await serve()


# --- Hypercorn --------------------------------------------------------------------------------------------------------


def test_another_hypercorn_is_refused_by_name() -> None:
    pinned.check()
    with pytest.raises(WrongHypercorn, match=r"needs Hypercorn 0\.18\.0, exactly; 0\.19\.1 is installed"):
        pinned.check("0.19.1")


def test_the_pin_is_that_of_the_project() -> None:
    assert f"hypercorn=={pinned.HYPERCORN}" in (requires("nerve") or [])


# --- what the peer takes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["reset", "close"])
async def test_a_closed_wire_says_so_however_many_there_are(ends: str) -> None:
    for _ in range(3):
        ours, theirs = trio.socket.socketpair()
        with theirs:
            wire = Wire(ours, Limits())
            wire.put(b"left")
            getattr(wire, ends)()
            for wait in (wire.read, wire.flush):
                with pytest.raises(Gone):
                    await wait()


class NewKeysForever(_Tls):
    """TLS whose peer asks for new keys and says nothing else; Python's own client can't."""

    def read(self, size: int) -> bytes | None:
        self.incoming.read()
        self.outgoing.write(b"k" * 27)
        return None


@pytest.mark.parametrize("reads", [True, False])
async def test_who_asks_for_new_keys_has_to_read_the_answers(reads: bool) -> None:
    ours, theirs = trio.socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    wire = Wire(ours, Limits())
    wire._tls = NewKeysForever(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))
    gone = trio.Event()

    async def read() -> None:
        with pytest.raises(Gone):
            await wire.read()
        gone.set()

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            for _ in range(3_000):
                if gone.is_set():
                    break
                await theirs.send(b"new keys")
                if reads:
                    await theirs.recv(4096)
                await trio.testing.wait_all_tasks_blocked()
            assert wire.waiting < 64 * 1024
            assert gone.is_set() is not reads
            theirs.close()
            wire.reset()


async def test_every_part_that_the_peer_takes_is_told_until_the_end() -> None:
    ours, theirs = trio.socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    wire, moments = Wire(ours, Limits()), []
    wire.on_progress(lambda: moments.append(wire.waiting))
    with theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wire.write, b"x" * 500_000)
            left = 500_000
            while left:
                left -= len(await theirs.recv(4096))
        assert len(moments) > 10
        assert moments == sorted(moments, reverse=True)
        assert moments[-1] == 0
        wire.close()
        with pytest.raises(Gone):
            await wire.write(b"more")


@pytest.mark.parametrize(
    ("held", "lasted"),
    [
        ([900, 900, 900, 900, 900], 8.0),  # nothing moves
        ([900, 800, 800, 700, 700, 700, 700, 700], 14.0),  # slow, then nothing
        ([900, 900, 900, 900, 800, 800, 800, 900, 900], 16.0),  # filled again: that is no progress of the peer
    ],
)
async def test_a_slow_peer_is_told_from_one_that_does_not_read(
    held: list[int], lasted: float, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """By what the kernel still holds: it asks for more only once a third of its buffer is free."""
    moved: list[float] = []
    here, there = socket.socketpair()
    here.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            here.send(bytes(65536))
    wire = Wire(trio.socket.from_stdlib_socket(here), Limits(stall_seconds=8.0))
    wire.on_progress(lambda: moved.append(trio.current_time()))
    looks = iter(held)
    monkeypatch.setattr(wire, "_held", lambda: next(looks))
    begun = trio.current_time()
    with pytest.raises(Stalled):
        await wire.write(b"one more")
    assert trio.current_time() - begun == pytest.approx(lasted)
    assert len(moved) == sum(after < before for before, after in itertools.pairwise(held))
    wire.reset()
    there.close()


async def test_what_the_kernel_holds_is_known() -> None:
    """Of a real line: what the peer has not taken, and less once it has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        there = socket.create_connection(listener.getsockname())
        here, _ = listener.accept()
    here.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            here.send(bytes(65536))
    wire = Wire(trio.socket.from_stdlib_socket(here), Limits())
    full = wire._held()
    assert full > 0
    there.settimeout(20)
    with trio.fail_after(60):
        while wire._held() >= full:
            await trio.to_thread.run_sync(there.recv, 65536)
    wire.reset()
    there.close()
