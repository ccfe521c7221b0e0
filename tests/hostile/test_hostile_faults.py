"""The nine faults of stock Hypercorn on trio: each attack is survived here, and shown to be needed there."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.hostile.attack import ENDINGS, Line, Victim, close_frame, eventually, frame, settled, upgrade
from tests.hostile.conftest import QUICK
from tests.hostile.victim import GRACE_SECONDS
from tests.soak.scale import within

pytestmark = pytest.mark.slow

MakeVictim = Callable[..., Victim]
SMALL = 4096
EXIT_SECONDS = within(GRACE_SECONDS + 1.0)

# fmt: off
ENDS_THE_PROCESS = {
    "subprotocol that is no ASCII": upgrade("/echo", b"Sec-WebSocket-Protocol: \xff"),
    "extension that is no ASCII": upgrade("/echo", b"Sec-WebSocket-Extensions: \xff"),
    "window bits that are no number": (
        upgrade("/echo", b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=abc")
    ),
    "stray byte behind an upgrade": upgrade() + b"x",
    "frame behind an upgrade": upgrade() + frame(1, b"hello"),
    "upgrade with a body": upgrade("/echo", b"Content-Length: 5") + b"hello",
    "CONNECT of HTTP/2 without a path": (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
        + bytes.fromhex("00000f010500000001") + b"\x02\x07CONNECT\x01\x04a:80"
    ),
}
# fmt: on


@pytest.mark.parametrize("attack", ENDS_THE_PROCESS.values(), ids=ENDS_THE_PROCESS.keys())
def test_one_connection_does_not_end_the_process(either: MakeVictim, attack: bytes) -> None:  # fault 1
    victim = either(limits=QUICK)
    before = victim.census()
    for end in ENDINGS.values():
        line = victim.connect().send(attack)
        line.read_some()
        end(line)
        victim.must_be_well()
    settled(victim, before)


@pytest.mark.parametrize("path", ["/big", "/flood"])
def test_a_client_that_does_not_read_does_not_hold_the_shutdown(either: MakeVictim, path: str) -> None:  # fault 2
    victim = either(limits={"stall_seconds": 60.0})
    line = _not_reading(victim, path)
    time.sleep(0.4)  # until the windows are full
    victim.terminate()
    assert victim.wait(EXIT_SECONDS) == 0
    line.close()


def _not_reading(victim: Victim, path: str) -> Line:
    line = victim.connect(receive_buffer=SMALL)
    request = upgrade(path) if path == "/flood" else f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    return line.send(request)


@pytest.mark.parametrize(("path", "told"), [("/big", "big broke"), ("/flood", "flood broke")])
def test_a_client_that_does_not_read_is_let_go(either: MakeVictim, path: str, told: str) -> None:  # fault 2
    victim = either(limits=QUICK)
    before = victim.census()
    lines = [_not_reading(victim, path) for _ in range(4)]
    assert victim.saw(told, 4)
    settled(victim, before)
    for line, end in zip(lines, [*ENDINGS.values()] * 2, strict=True):
        end(line)
    settled(victim, before)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_body_that_nobody_reads_leaves_nothing(either: MakeVictim, ending: str) -> None:  # fault 3
    victim = either(limits=QUICK)
    before = victim.census()
    for _ in range(3):
        line = victim.connect()
        line.socket.settimeout(0.5)
        with contextlib.suppress(OSError):  # the server may refuse to take all of it
            line.send(b"POST /deaf HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n")
            line.send(b"x" * 4_000_000)
        ENDINGS[ending](line)
    settled(victim, before)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("fragmented", [False, True])
def test_a_message_is_bounded_while_it_comes(either: MakeVictim, ending: str, fragmented: bool) -> None:  # fault 4
    victim = either()
    before = victim.census()
    line = victim.open_socket()
    huge = 60_000_000
    line.socket.settimeout(1.0)
    with contextlib.suppress(OSError):
        if fragmented:
            line.send(frame(2, b"x" * 65536, fin=False))
            for _ in range(huge // 65536):
                line.send(frame(0, b"x" * 65536, fin=False))
        else:
            line.send(b"\x82\xff" + huge.to_bytes(8, "big") + b"\0\0\0\0")
            for _ in range(huge // 65536):
                line.send(b"x" * 65536)
    grown = victim.census()["resident"] - before["resident"]
    assert grown < 8_000_000
    assert line.close_code() == 1009
    ENDINGS[ending](line)
    settled(victim, before)


def test_deflate_is_never_negotiated(either: MakeVictim) -> None:  # fault 4: a bomb of 58 KB made 201 MiB
    victim = either()
    line = victim.connect().send(upgrade("/echo", b"Sec-WebSocket-Extensions: permessage-deflate"))
    status, headers, rest = line.head()
    assert status == 101
    assert "sec-websocket-extensions" not in headers
    line.received = rest
    line.send(frame(1, b"\x02\x00", rsv=4))
    assert line.close_code() == 1002
    line.close()


def test_a_server_whose_app_fell_falls(either: MakeVictim) -> None:  # fault 5
    victim = either()
    assert victim.get("/fall") == b"falling"
    assert victim.wait(within(3)) != 0
    assert "the app fell" in victim.log


def test_a_server_whose_app_does_not_start_does_not_start(either: MakeVictim) -> None:  # fault 5
    victim = either(lifespan="broken")
    assert victim.wait(within(3)) != 0
    assert "no start" in victim.log


@pytest.mark.parametrize("path", ["/echo", "/busy"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_sockets_are_told_before_the_server_ends(either: MakeVictim, path: str, ending: str) -> None:  # fault 6
    victim = either()
    line = victim.open_socket(path)
    victim.terminate()
    assert line.close_code(EXIT_SECONDS) == 1012
    ENDINGS[ending](line)
    assert victim.wait(EXIT_SECONDS) == 0


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_clients_close_code_reaches_the_app(either: MakeVictim, ending: str) -> None:  # fault 7
    victim = either()
    line = victim.open_socket().send(close_frame(4321, b"bye"))
    assert line.close_code() == 4321
    ENDINGS[ending](line)
    assert victim.saw("closed 4321 bye", 2)


BROKEN_FRAMES = {
    "opcode": (frame(3), 1002),
    "text": (frame(1, b"\xff\xff"), 1007),
    "mask": (frame(1, b"x", mask=None), 1002),
}


@pytest.mark.parametrize(("attack", "code"), BROKEN_FRAMES.values(), ids=BROKEN_FRAMES)
def test_a_broken_frame_is_answered_before_the_end(either: MakeVictim, attack: bytes, code: int) -> None:  # fault 7
    victim = either()
    for end in ENDINGS.values():
        line = victim.open_socket().send(attack)
        assert line.close_code(2) == code
        end(line)


def test_a_socket_without_pongs_is_closed(either: MakeVictim) -> None:  # fault 7
    victim = either(limits=QUICK)
    for end in ENDINGS.values():
        line = victim.open_socket()
        assert line.close_code(3) == 1011
        end(line)
    assert victim.saw("closed 1011 no pong", 2)


def test_a_head_is_bounded_even_when_it_comes_at_once(either: MakeVictim) -> None:  # fault 8
    victim = either()
    for head in (
        b"".join(b"X-%d: %s\r\n" % (number, b"y" * 900) for number in range(50)),
        b"".join(b"X-%d: y\r\n" % number for number in range(150)),
    ):
        line = victim.connect().send(b"GET /ok HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n")
        assert line.response()[0] == 431
        line.close()


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_head_has_its_seconds(either: MakeVictim, ending: str) -> None:  # fault 8
    victim = either(limits=QUICK)
    before = victim.census()
    line = victim.connect()
    begun = time.monotonic()
    with contextlib.suppress(OSError):
        for byte in b"GET /ok HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 30:
            line.send(bytes([byte]))
            time.sleep(0.05)
    assert b" 408 " in line.read_to_end()
    assert time.monotonic() - begun < within(5)
    ENDINGS[ending](line)
    settled(victim, before)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_body_has_its_seconds(either: MakeVictim, ending: str) -> None:  # fault 8
    victim = either(limits=QUICK)
    line = victim.connect().send(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf")
    assert line.response()[0] == 408
    ENDINGS[ending](line)
    assert victim.saw("body cut", 1)


def test_connections_are_counted(either: MakeVictim) -> None:  # fault 8
    victim = either(limits={**QUICK, "connections": 5, "idle_seconds": 30.0})
    lines = [victim.open_socket() for _ in range(5)]
    for end in ENDINGS.values():
        line = victim.connect().send(b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers, _ = line.response()
        assert (status, headers["retry-after"]) == (503, "5")
        end(line)
    for line, end in zip(lines, [*ENDINGS.values()] * 3, strict=False):
        end(line)
    assert eventually(lambda: _well(victim))
    assert "too many connections: 5 are open" in victim.log


def _well(victim: Victim) -> bool:
    try:
        victim.must_be_well()
    except (AssertionError, ConnectionError):
        return False
    return True


@pytest.mark.parametrize("ending", ENDINGS)
def test_sending_to_a_client_that_left_says_so(either: MakeVictim, ending: str) -> None:  # fault 9
    victim = either()
    line = victim.connect(receive_buffer=SMALL).send(b"GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n")
    line.read_some()
    ENDINGS[ending](line)
    assert victim.saw("big broke", 2)


@pytest.mark.parametrize("ending", ENDINGS)
def test_leaving_is_told_at_once(survivor: Victim, ending: str) -> None:  # fault 9
    """Stock Hypercorn tells it too, to an app that asks; what asks here is ``nerve.asgi``, beside each read."""
    before = survivor.census()["seen"].get("left", 0)
    line = survivor.connect().send(b"GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert survivor.saw("waiting")
    begun = time.monotonic()
    ENDINGS[ending](line)
    assert eventually(lambda: survivor.census()["seen"].get("left", 0) == before + 1)
    assert time.monotonic() - begun < within(1)


def test_a_socket_is_let_go_however_it_ends(survivor: Victim) -> None:  # faults 7 and 9
    line = survivor.open_socket()
    line.reset()
    assert survivor.saw("closed 1006")
    line = survivor.open_socket()
    line.socket.shutdown(socket.SHUT_WR)
    assert line.read_to_end() == b""
    line.close()


def test_the_stock_server_is_started_as_it_comes(make_victim: Any) -> None:
    """The yardstick itself works: what fails on it fails because of the fault."""
    victim: Victim = make_victim("stock")
    victim.must_be_well()
    line = victim.open_socket().send(frame(1, b"hello"))
    assert (1, b"hello") in (line.frame(), line.frame())  # the other one is a ping
    line.close()
    victim.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        assert victim.wait(EXIT_SECONDS) == 0
