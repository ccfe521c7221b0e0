"""An open WebSocket as lists of bytes: messages, faults, closes, pings; and the handshake before it."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nerve.asgi.hardened.frames import Ended, Event, Received, Reply, WebSocket
from nerve.asgi.hardened.handshake import Handshake
from nerve.asgi.hardened.http1 import BadRequest, Http1
from nerve.asgi.hardened.limits import Limits
from tests.hostile.attack import close_frame, frame, upgrade
from tests.hostile.shapes import FAULTS, HANDSHAKES, KEY, LONGEST


def events(*pieces: bytes, socket: WebSocket | None = None) -> list[Event]:
    socket = WebSocket(LONGEST) if socket is None else socket
    return [event for piece in pieces for event in socket.receive(piece)]


def codes(found: list[Event]) -> list[int]:
    """The codes of the close frames that were owed, and what the app is told last."""
    sent = [
        struct.unpack("!H", event.data[2:4])[0] for event in found if isinstance(event, Reply) and event.data[0] == 0x88
    ]
    return [*sent, *(event.code for event in found if isinstance(event, Ended))]


def dripping(raw: bytes) -> list[bytes]:
    return [raw[i : i + 1] for i in range(len(raw))]


MESSAGES = {
    "text": (frame(1, b"hello"), ["hello"]),
    "empty text": (frame(1), [""]),
    "binary": (frame(2, b"\xff\0"), [b"\xff\0"]),
    "empty binary": (frame(2), [b""]),
    "two": (frame(1, b"a") + frame(2, b"b"), ["a", b"b"]),
    "fragments": (frame(1, b"a", fin=False) + frame(0, b"b", fin=False) + frame(0, b"c"), ["abc"]),
    "empty fragments": (frame(1, fin=False) + frame(0, fin=False) + frame(0), [""]),
    "a character in two fragments": (frame(1, b"\xc3", fin=False) + frame(0, b"\xa9"), ["\u00e9"]),
    "a ping between fragments": (frame(1, b"a", fin=False) + frame(9, b"p") + frame(0, b"b"), ["ab"]),
    "two bytes of length": (frame(2, b"x" * 200), [b"x" * 200]),
    "just not too big": (frame(2, b"x" * LONGEST), [b"x" * LONGEST]),
}


@pytest.mark.parametrize(("raw", "messages"), MESSAGES.values(), ids=MESSAGES)
def test_messages(raw: bytes, messages: list[str | bytes]) -> None:
    for pieces in ([raw], dripping(raw)):
        found = [event for event in events(*pieces) if isinstance(event, Received)]
        assert [event.data for event in found] == messages
        assert [event.size for event in found] == [
            len(data.encode() if isinstance(data, str) else data) for data in messages
        ]


@pytest.mark.parametrize(("raw", "code"), FAULTS.values(), ids=FAULTS)
def test_faults_are_named_to_both_sides(raw: bytes, code: int) -> None:
    for pieces in ([raw], dripping(raw)):
        socket = WebSocket(LONGEST)
        found = events(*pieces, socket=socket)
        assert codes(found) == [code, code]
        assert events(frame(1, b"more"), socket=socket) == []
        assert socket.message("late") == socket.ping() == socket.close(1000) == b""


@pytest.mark.parametrize(
    ("raw", "reply", "code", "reason"),
    [
        (frame(8), b"\x88\x00", 1005, ""),
        (close_frame(1000), b"\x88\x02\x03\xe8", 1000, ""),
        (close_frame(4999, "b\u00fae".encode()), b"\x88\x06\x13\x87b\xc3\xbae", 4999, "b\u00fae"),
        *((close_frame(code), b"\x88\x02" + struct.pack("!H", code), code, "") for code in (1001, 1012, 1013, 3000)),
    ],
)
def test_a_peers_close_is_answered_and_told(raw: bytes, reply: bytes, code: int, reason: str) -> None:
    assert events(frame(1, b"a") + raw + frame(1, b"b")) == [Received("a", 1), Reply(reply), Ended(code, reason)]


def test_our_close_is_sent_once_and_the_answer_ends_it() -> None:
    socket = WebSocket(LONGEST)
    assert socket.close(1012, "\u00e9" * 100) == b"\x88\x7c\x03\xf4" + "\u00e9".encode() * 61
    assert socket.close(1000) == socket.message("late") == socket.ping() == b""
    assert events(frame(1, b"under way") + frame(9), socket=socket) == [Received("under way", 9)]
    assert events(close_frame(1012), socket=socket) == [Ended(1012, "")]


@pytest.mark.parametrize("code", [0, 999, 1004, 1005, 1006, 1015, 5000])
def test_codes_that_may_not_be_sent(code: int) -> None:
    with pytest.raises(ValueError, match="can't be sent"):
        WebSocket(LONGEST).close(code)


def test_pings_of_the_peer_are_answered_with_their_payload() -> None:
    found = events(frame(9) + frame(9, b"x" * 125))
    assert found == [Reply(b"\x8a\x00"), Reply(b"\x8a\x7d" + b"x" * 125)]


def test_pongs_are_checked() -> None:
    socket = WebSocket(LONGEST)
    pings = [socket.ping() for _ in range(3)]
    assert socket.missed_pings == 3
    for nonsense in (b"", b"x", struct.pack("!Q", 99), struct.pack("!Q", 0)):
        events(frame(10, nonsense), socket=socket)
    assert socket.missed_pings == 3
    events(frame(10, pings[1][2:]), socket=socket)
    assert socket.missed_pings == 1
    events(frame(10, pings[0][2:]), socket=socket)
    assert socket.missed_pings == 1
    events(frame(10, pings[2][2:]), socket=socket)
    assert socket.missed_pings == 0


@settings(deadline=None, max_examples=300)
@given(noise=st.binary(max_size=300), cut=st.integers(0, 300))
def test_noise_ends_the_socket_in_good_order_or_not_at_all(noise: bytes, cut: int) -> None:
    found = events(noise[:cut], noise[cut:])
    ends = [event for event in found if isinstance(event, Ended)]
    assert len(ends) <= 1
    assert not ends or found[-1] is ends[0]


# --- the handshake ----------------------------------------------------------------------------------------------------


def shake(raw: bytes) -> Handshake:
    http = Http1(Limits())
    http.feed(raw)
    head = http.next_head()
    assert head is not None
    assert head.wants_websocket
    return Handshake.of(head, http.buffered)


@pytest.mark.parametrize(("raw", "status"), HANDSHAKES.values(), ids=HANDSHAKES)
def test_handshakes_that_are_refused(raw: bytes, status: int) -> None:
    with pytest.raises(BadRequest) as refused:
        shake(raw)
    assert refused.value.status == status


def test_a_handshake_is_accepted_as_rfc_6455_says() -> None:
    raw = upgrade("/echo", b"Sec-WebSocket-Protocol: a, b", b"Sec-WebSocket-Extensions: permessage-deflate; x=abc")
    handshake = shake(raw.replace(KEY, b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"))
    assert handshake.accept_key == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert handshake.subprotocols == ("a", "b")
    response = handshake.response("b", [(b"x", b"y")])
    assert response.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
    assert b"sec-websocket-protocol: b\r\nx: y\r\n\r\n" in response
    assert b"extensions" not in response


@pytest.mark.parametrize(
    ("subprotocol", "header"), [("c", (b"x", b"y")), (None, (b"x", b"a\r\nb: c")), (None, (b"x y", b""))]
)
def test_our_own_mistakes_do_not_become_headers(subprotocol: str | None, header: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match=r"not offered|impossible"):
        shake(upgrade("/echo", b"Sec-WebSocket-Protocol: a")).response(subprotocol, [header])
