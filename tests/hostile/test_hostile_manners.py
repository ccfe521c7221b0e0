"""What the hardened server does for those who behave: responses, keep-alive, sockets, limits, TLS, its end."""

import contextlib
import json
import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.attack import ENDINGS, Line, Victim, close_frame, eventually, frame, settled, upgrade
from tests.hostile.conftest import QUICK
from tests.soak.scale import within

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
HOST = b"Host: localhost\r\n\r\n"
OK = b"GET /ok HTTP/1.1\r\n" + HOST


# --- HTTP -------------------------------------------------------------------------------------------------------------


def test_a_whole_response_is_one_write(survivor: Victim) -> None:
    line = survivor.connect()
    for _ in range(50):
        line.received = b""
        head, _, body = line.send(OK).socket.recv(65536).partition(b"\r\n\r\n")
        assert body == b"ok"
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert head.lower().count(b"\r\ndate: ") == 1
        assert b"server:" not in head.lower()
    line.close()


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_pipelined_requests_are_answered_in_their_order(survivor: Victim, cut: int) -> None:
    echo = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
    raw = echo + b"one" + OK + echo + b"two" + b"HEAD /ok HTTP/1.1\r\n" + HOST + OK
    line = survivor.connect()
    for start in range(0, len(raw), cut):
        line.send(raw[start : start + cut])
    bodies = [line.response()[2] for _ in range(3)]
    status, headers, rest = line.head()
    assert (bodies, status, headers["content-length"]) == ([b"one", b"ok", b"two"], 200, "2")
    line.received = rest
    assert line.response()[2] == b"ok"
    line.close()


def test_a_stream_is_sent_in_chunks_as_it_comes(survivor: Victim) -> None:
    line = survivor.connect().send(b"GET /stream HTTP/1.1\r\n" + HOST)
    while not line.received.endswith(b"0\r\n\r\n"):
        assert line.read_some()
    assert line.received.partition(b"\r\n\r\n")[2] == b"7\r\npart 0\n\r\n7\r\npart 1\n\r\n7\r\npart 2\n\r\n0\r\n\r\n"
    line.received = b""
    assert line.send(OK).response()[2] == b"ok"
    line.close()
    old = survivor.connect().send(b"GET /stream HTTP/1.0\r\n\r\n")
    assert old.read_to_end().endswith(b"\r\n\r\npart 0\npart 1\npart 2\n")


def test_a_client_may_wait_for_its_invitation(survivor: Victim) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    line = survivor.connect().send(head % b"/echo")
    status, _, rest = line.head()
    assert (status, rest) == (100, b"")
    line.received = b""
    assert line.send(b"hello").response()[2] == b"hello"
    line.send(head % b"/ok")  # nobody wants that body
    status, headers, _ = line.response()
    assert (status, headers["connection"]) == (200, "close")
    assert line.read_to_end() == b""


def test_the_upgrade_to_http2_is_not_taken(survivor: Victim) -> None:
    extra = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    line = survivor.connect().send(b"GET /ok HTTP/1.1\r\n" + extra + HOST)
    assert line.response()[2] == b"ok"
    assert line.send(OK).response()[2] == b"ok"
    line.close()


def test_a_large_response_arrives_whole(survivor: Victim) -> None:
    line = survivor.connect().send(b"GET /big HTTP/1.1\r\n" + HOST)
    _, headers, rest = line.head()
    size, pattern = len(rest), b"0123456789abcdef"
    while size < int(headers["content-length"]):
        line.received = b""
        data = line.read_some()
        at = size % 16
        assert data[:64] == (pattern * 6)[at : at + len(data[:64])]
        size += len(data)
    line.received = b""
    assert line.send(OK).response()[2] == b"ok"
    line.close()


@pytest.mark.parametrize("path", ["/crash?secret-payload", "/silent"])
def test_an_app_that_fails_is_told_as_500(make_victim: Any, path: str) -> None:
    victim: Victim = make_victim()
    line = victim.connect().send(f"GET {path} HTTP/1.1\r\n".encode() + HOST)
    status, headers, body = line.response()
    assert (status, headers["connection"]) == (500, "close")
    assert json.loads(body).keys() == {"detail"}
    assert line.read_to_end() == b""
    midway = victim.connect().send(b"GET /crash-midway HTTP/1.1\r\n" + HOST)
    assert midway.read_to_end().endswith(b"half")
    assert eventually(lambda: victim.log.count("failed: ValueError") == (2 if "crash" in path else 1))
    assert "secret-payload" not in victim.log
    assert "victim_app.py" in victim.log


def test_a_connection_has_its_number_of_requests(make_victim: Any) -> None:
    line = make_victim(limits={"requests": 2}).connect()
    assert "connection" not in line.send(OK).response()[1]
    assert line.send(OK).response()[1]["connection"] == "close"
    assert line.read_to_end() == b""


def test_a_silent_connection_is_closed(make_victim: Any) -> None:
    victim: Victim = make_victim(limits=QUICK)
    fresh, used = victim.connect(), victim.connect().send(OK)
    used.response()
    assert fresh.read_to_end(3) == b""
    assert used.read_to_end(3) == b""


def test_what_is_piled_up_behind_a_request_is_bounded(survivor: Victim) -> None:
    before = survivor.census()
    line = survivor.connect().send(b"GET /wait HTTP/1.1\r\n" + HOST)
    line.socket.settimeout(0.5)
    with contextlib.suppress(OSError):
        for _ in range(400):
            line.send(OK * 2000)
    assert survivor.census()["resident"] - before["resident"] < 4_000_000
    line.reset()
    assert eventually(lambda: survivor.census()["seen"].get("left", 0) > before["seen"].get("left", 0))


@pytest.mark.parametrize("ending", ENDINGS)
def test_work_is_cancelled_when_its_client_leaves(survivor: Victim, ending: str) -> None:
    before = survivor.census()["seen"]
    line = survivor.connect().send(b"GET /work?60 HTTP/1.1\r\n" + HOST)
    assert eventually(lambda: survivor.census()["seen"].get("working", 0) > before.get("working", 0))
    ENDINGS[ending](line)
    assert eventually(lambda: survivor.census()["seen"].get("work cancelled", 0) > before.get("work cancelled", 0), 1)


@pytest.mark.parametrize("seconds", [b"0", b"0.04", b"0.06", b"0.3"])
def test_a_line_goes_on_after_work_that_was_watched(survivor: Victim, seconds: bytes) -> None:
    line = survivor.connect()
    work = b"GET /work?" + seconds + b" HTTP/1.1\r\n" + HOST
    for _ in range(3):
        assert line.send(work).response()[2] == b"done"
        line.send(work[:10])
        assert line.send(work[10:] + OK).response()[2] == b"done"
        assert line.response()[2] == b"ok"
        line.send(work)
        time.sleep(0.1)
        assert line.send(OK).response()[2] == b"done"  # came while the work was watched, and is not lost
        assert line.response()[2] == b"ok"
    line.close()


# --- WebSocket --------------------------------------------------------------------------------------------------------


def test_echoes(survivor: Victim) -> None:
    line = survivor.open_socket()
    for opcode, payload in ((1, b"hello"), (2, b"\0" * 70_000), (1, b""), (2, b"x" * (1024 * 1024))):
        assert line.send(frame(opcode, payload)).frame() == (opcode, payload)
    assert line.send(frame(9, b"are you there")).frame() == (10, b"are you there")
    assert line.send(close_frame(1000)).close_code() == 1000
    assert line.read_to_end() == b""


def test_early_frames_are_read_once_the_socket_is_open(survivor: Victim) -> None:
    line = survivor.open_socket().send(frame(1, b"a") + frame(1, b"b"))
    assert [line.frame(), line.frame()] == [(1, b"a"), (1, b"b")]
    line.close()


def test_a_busy_app_does_not_keep_the_server_from_answering(survivor: Victim) -> None:
    line = survivor.open_socket("/busy")
    for number in range(100):
        line.send(frame(1, b"unread %d" % number))
    assert line.send(frame(9, b"hello")).frame() == (10, b"hello")
    assert line.send(close_frame(4000)).close_code() == 4000
    line.close()


def test_what_a_busy_app_does_not_read_is_bounded(make_victim: Any) -> None:
    victim: Victim = make_victim(limits={**QUICK, "ping_seconds": 5.0})
    before = victim.census()
    many, large = victim.open_socket("/busy"), victim.open_socket("/busy")
    many.send(frame(1, b"x") * 300)
    with contextlib.suppress(OSError):
        for _ in range(20):
            large.send(frame(2, b"x" * 1_000_000))
    assert many.close_code() == 1013
    assert large.close_code() == 1013
    assert victim.census()["resident"] - before["resident"] < 8_000_000


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_socket_that_is_not_accepted_yet(survivor: Victim, ending: str) -> None:
    line = survivor.connect().send(upgrade("/slow-accept"))
    time.sleep(0.05)
    ENDINGS[ending](line)
    assert survivor.saw("early websocket.disconnect")
    line = survivor.connect().send(upgrade("/slow-accept"))
    time.sleep(0.05)
    assert line.send(frame(1, b"too early")).response()[0] == 400
    assert line.read_to_end() == b""


def test_the_apps_own_words(survivor: Victim) -> None:
    line = survivor.open_socket("/close")
    assert line.frame() == (8, b"\x0f\xa1go")
    line.send(close_frame(4001)).read_to_end()
    line = survivor.connect().send(upgrade("/refuse"))
    assert line.response()[0] == 403
    line = survivor.open_socket("/crash").send(frame(1))
    assert line.close_code() == 1011


def test_a_socket_that_pongs_stays(make_victim: Any) -> None:
    missed = 4
    victim: Victim = make_victim(limits={**QUICK, "missed_pings": missed})
    line = victim.open_socket()
    for _ in range(missed + 2):
        opcode, payload = line.frame()
        assert opcode == 9
        line.send(frame(10, payload))
    assert line.send(frame(1, b"still there")).frame()[0] in (1, 9)
    line.close()


def test_pongs_to_no_ping_of_ours_do_not_count(make_victim: Any) -> None:
    line = make_victim(limits=QUICK).open_socket()
    for _ in range(2):
        assert line.frame()[0] == 9
        line.send(frame(10, b"something else"))
    assert line.close_code(2) == 1011
    line.close()


def test_a_peer_that_never_answers_a_close_is_not_waited_for(make_victim: Any) -> None:
    victim: Victim = make_victim(limits={**QUICK, "ping_seconds": 600.0, "leave_seconds": 600.0})
    before = victim.census()
    victim.open_socket("/close").read_to_end()
    late = victim.open_socket("/crash").send(frame(1))  # is being read from when the close is sent
    assert late.close_code() == 1011
    late.read_to_end()
    settled(victim, before)


# --- the end of the server --------------------------------------------------------------------------------------------


def test_the_end_waits_for_nobody_longer_than_its_grace(make_victim: Any) -> None:
    victim: Victim = make_victim()
    lines = [victim.connect(receive_buffer=4096) for _ in range(8)]
    requests = (
        b"GET /big HTTP/1.1\r\n" + HOST,
        upgrade("/flood"),
        upgrade("/busy"),
        upgrade("/slow-accept"),
        b"GET /wait HTTP/1.1\r\n" + HOST,
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx",
        b"GET /ok HTTP/1.1\r\nHo",
        b"",
    )
    for line, request in zip(lines, requests, strict=True):
        line.send(request)
    time.sleep(0.3)
    victim.terminate()
    begun = time.monotonic()
    assert victim.wait(3) == 0
    assert time.monotonic() - begun < within(2.2)
    assert "Traceback" not in victim.log


def test_a_response_under_way_is_finished_and_no_other_begun(make_victim: Any) -> None:
    victim: Victim = make_victim()
    line = victim.connect().send(b"GET /last HTTP/1.1\r\n" + HOST + OK)
    status, headers, body = line.response()
    assert (status, headers["connection"], body) == (200, "close", b"the last one")
    assert line.read_to_end() == b""
    assert victim.wait(within(2)) == 0


# --- TLS --------------------------------------------------------------------------------------------------------------


def secure(victim: Victim, line: Line | None = None) -> Line:
    context = ssl.create_default_context(cafile=str(HERE / "certificate.pem"))
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return victim.secure(context, line)


@pytest.fixture(scope="module")
def vault() -> Any:
    victim = Victim(
        {
            "kind": "hardened",
            "cert": str(HERE / "certificate.pem"),
            "key": str(HERE / "certificate.key"),
            "limits": {"tls_seconds": 0.6, "linger_seconds": 0.5},
        }
    ).start()
    yield victim
    assert "failed" not in victim.log
    victim.end()


def test_tls_carries_the_same(vault: Victim) -> None:
    line = secure(vault)
    assert isinstance(line.socket, ssl.SSLSocket)
    assert line.socket.selected_alpn_protocol() is None
    assert line.send(OK).response()[2] == b"ok"
    line.send(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300_000)
    assert line.response()[2] == b"x" * 300_000
    line.close()
    line = secure(vault).send(upgrade())
    assert line.head()[0] == 101
    line.received = b""
    assert line.send(frame(2, b"y" * 200_000)).frame() == (2, b"y" * 200_000)
    assert line.send(close_frame(1000)).close_code() == 1000
    assert line.read_to_end() == b""


def test_no_tls_no_answer(vault: Victim) -> None:
    for raw in (OK, b"\x16\x03\x01\xff\xff", b"\0" * 5000):
        for end in ENDINGS.values():
            line = vault.connect().send(raw)
            with contextlib.suppress(OSError):
                assert b"HTTP" not in line.read_to_end()
            end(line)
    assert secure(vault).send(OK).response()[2] == b"ok"


def test_a_tls_client_that_does_not_read_is_let_go(make_victim: Any) -> None:
    cert, key = str(HERE / "certificate.pem"), str(HERE / "certificate.key")
    victim: Victim = make_victim(cert=cert, key=key, limits=QUICK)
    for request in (upgrade("/flood"), b"GET /big HTTP/1.1\r\n" + HOST):
        line = secure(victim, victim.connect(receive_buffer=4096)).send(request)
        told = "flood broke" if b"flood" in request else "big broke"

        def seen(told: str = told) -> bool:
            asking = secure(victim).send(b"GET /census HTTP/1.1\r\n" + HOST)
            found = told in json.loads(asking.response()[2])["seen"]
            asking.close()
            return found

        assert eventually(seen)
        line.reset()
    line = secure(victim, victim.connect(receive_buffer=4096)).send(upgrade("/flood"))
    time.sleep(0.2)
    victim.terminate()
    assert victim.wait(3) == 0


def test_a_half_closed_line_is_a_closed_one(survivor: Victim) -> None:
    line = survivor.connect().send(OK)
    line.socket.shutdown(socket.SHUT_WR)
    assert line.read_to_end().endswith(b"ok")
