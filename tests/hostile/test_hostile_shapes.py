"""Every malformed shape thrown at one real process, ended by close and by reset; it survives them all, unchanged."""

from collections.abc import Iterator

import pytest

from tests.hostile.attack import ENDINGS, Line, Victim, frame, settled, upgrade
from tests.hostile.shapes import BAD_CHUNKS, CHUNKED_POST, FAULTS, HANDSHAKES, LONGEST, REFUSED, SMALL_LIMITS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def target() -> Iterator[Victim]:
    victim = Victim({"kind": "hardened", "limits": {**SMALL_LIMITS, "message_bytes": LONGEST}}).start()
    try:
        for _ in range(20):
            victim.must_be_well()
        before = victim.census()
        yield victim
        victim.hang_up()
        settled(victim, before, growth=4 * 1024 * 1024)
        assert "Traceback" not in victim.log
        assert "failed" not in victim.log
    finally:
        victim.end()


def end_and_check(victim: Victim, line: Line, ending: str) -> None:
    ENDINGS[ending](line)
    victim.must_be_well()


def refused_with(victim: Victim, raw: bytes, status: int, ending: str) -> None:
    line = victim.connect().send(raw)
    if ending == "close":
        answered, headers, _ = line.response()
        assert (answered, headers["connection"]) == (status, "close")
        assert headers["content-type"] == "application/json"
        line.socket.shutdown(1)
        assert line.read_to_end() == b"", "one answer, and nothing behind it"
    end_and_check(victim, line, ending)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("raw", "status"), REFUSED.values(), ids=REFUSED)
def test_heads(target: Victim, raw: bytes, status: int, ending: str) -> None:
    refused_with(target, raw, status, ending)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("raw", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_chunks(target: Victim, raw: bytes, ending: str) -> None:
    refused_with(target, CHUNKED_POST + raw, 400, ending)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("raw", "status"), HANDSHAKES.values(), ids=HANDSHAKES)
def test_upgrades(target: Victim, raw: bytes, status: int, ending: str) -> None:
    refused_with(target, raw, status, ending)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(("raw", "code"), FAULTS.values(), ids=FAULTS)
def test_frames(target: Victim, raw: bytes, code: int, ending: str) -> None:
    line = target.open_socket()
    for piece in (raw[:3], raw[3:]):
        line.send(piece)
    if ending == "close":
        assert line.close_code() == code
        line.read_to_end()  # the server closes, it does not wait for us
    end_and_check(target, line, ending)


SMUGGLED = b"GET /census HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        + SMUGGLED,
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 44\r\n\r\n" + SMUGGLED,
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n" + SMUGGLED,
        upgrade().replace(b"Version: 13", b"Version: 9") + SMUGGLED,
        upgrade("/nowhere") + SMUGGLED,
        b"GET /ok HTTP/1.1\r\nHost: a\r\nX: a\n\n" + SMUGGLED,
        b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n" + SMUGGLED,
    ],
)
def test_nothing_behind_a_refusal_is_read_as_a_request(target: Victim, raw: bytes) -> None:
    line = target.connect().send(raw)
    line.socket.shutdown(1)
    answered = line.read_to_end()
    assert answered.count(b"HTTP/1.1 ") == 1
    assert b"resident" not in answered
    line.close()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("cut", range(0, 160, 8))
def test_lines_that_end_anywhere(target: Victim, cut: int, ending: str) -> None:
    whole = upgrade() + frame(1, b"hello", fin=False) + frame(9) + frame(0, b"world")
    line = target.connect()
    line.send(whole[:cut])
    end_and_check(target, line, ending)
    line = target.open_socket()
    line.send(whole[len(upgrade()) :][: cut // 8])
    end_and_check(target, line, ending)
