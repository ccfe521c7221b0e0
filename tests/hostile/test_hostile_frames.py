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

LONGEST = 1000


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


NO_CODES = (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535)
FAULTS = {
    **{f"opcode {opcode}": (frame(opcode), 1002) for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    **{f"reserved bits {rsv}": (frame(1, b"x", rsv=rsv), 1002) for rsv in (1, 2, 4, 7)},
    "reserved bit of a ping": (frame(9, rsv=4), 1002),
    "no mask": (frame(1, b"x", mask=None), 1002),
    "a ping without a mask": (frame(9, b"x", mask=None), 1002),
    "a ping in fragments": (frame(9, b"x", fin=False), 1002),
    "a close in fragments": (frame(8, fin=False), 1002),
    "a long ping": (frame(9, b"x" * 126), 1002),
    "a long close": (frame(8, struct.pack("!H", 1000) + b"x" * 124), 1002),
    "a close of one byte": (frame(8, b"\x03"), 1002),
    **{f"close code {code}": (close_frame(code), 1002) for code in NO_CODES},
    "a close reason that is no UTF-8": (close_frame(1000, b"\xff"), 1007),
    "a continuation of nothing": (frame(0, b"x"), 1002),
    "a message within a message": (frame(1, b"a", fin=False) + frame(1, b"b"), 1002),
    "text within binary": (frame(2, b"a", fin=False) + frame(1, b"b"), 1002),
    "text that is no UTF-8": (frame(1, b"\xff"), 1007),
    "text that ends within a character": (frame(1, b"\xe2\x82"), 1007),
    "a surrogate": (frame(1, b"\xed\xa0\x80"), 1007),
    "an overlong NUL": (frame(1, b"\xc0\x80"), 1007),
    "above Unicode": (frame(1, b"\xf4\x90\x80\x80"), 1007),
    "no UTF-8 in the second fragment": (frame(1, b"a", fin=False) + frame(0, b"\xff", fin=False), 1007),
    "a character broken by fragments": (frame(1, b"\xc3", fin=False) + frame(0, b"x"), 1007),
    "no UTF-8 before the end of the frame": (frame(1, b"a\xff" + b"b" * 50)[:12], 1007),
    "two bytes of length for few": (b"\x81\xfe\x00\x05\0\0\0\0hello", 1002),
    "eight bytes of length for few": (b"\x81\xff" + struct.pack("!Q", 5) + b"\0\0\0\0hello", 1002),
    "eight bytes of length for some": (b"\x82\xff" + struct.pack("!Q", 65535) + b"\0\0\0\0", 1002),
    "a length above 63 bits": (b"\x82\xff" + b"\xff" * 8 + b"\0\0\0\0", 1002),
    "too big": (frame(2, b"x" * (LONGEST + 1)), 1009),
    "too big as text": (frame(1, "\u00e9".encode() * (LONGEST // 2 + 1)), 1009),
    "too big in fragments": (frame(2, b"x" * 600, fin=False) + frame(0, b"x" * 600, fin=False), 1009),
    "the beginning of too big": (b"\x82\xff" + struct.pack("!Q", 2**62) + b"\0\0\0\0" + b"x" * 2000, 1009),
}  # fmt: skip


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


KEY = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
HANDSHAKES = {
    "POST": (upgrade().replace(b"GET", b"POST"), 400),
    "HTTP/1.0": (upgrade().replace(b"HTTP/1.1", b"HTTP/1.0"), 400),
    "no key": (upgrade().replace(KEY, b""), 400),
    "two keys": (upgrade().replace(KEY, KEY + KEY), 400),
    "an empty key": (upgrade().replace(KEY, b"Sec-WebSocket-Key: \r\n"), 400),
    "a short key": (upgrade().replace(KEY, b"Sec-WebSocket-Key: AAAA\r\n"), 400),
    "a long key": (upgrade().replace(KEY, b"Sec-WebSocket-Key: " + b"A" * 64 + b"\r\n"), 400),
    "a key that is no base64": (upgrade().replace(KEY, KEY.replace(b"AAAA", b"A?A_")), 400),
    "a key that is no ASCII": (upgrade().replace(KEY, KEY.replace(b"AAAA", b"\xff\xff\xff\xff")), 400),
    "no version": (upgrade().replace(b"Sec-WebSocket-Version: 13\r\n", b""), 426),
    "version 8": (upgrade().replace(b"Version: 13", b"Version: 8"), 426),
    "two versions": (upgrade("/echo", b"Sec-WebSocket-Version: 8"), 426),
    "a list of versions": (upgrade().replace(b"Version: 13", b"Version: 13, 8"), 426),
    "a body": (upgrade("/echo", b"Content-Length: 1"), 400),
    "chunks": (upgrade("/echo", b"Transfer-Encoding: chunked"), 400),
    "an early byte": (upgrade() + b"x", 400),
    "an early frame": (upgrade() + frame(1, b"hello"), 400),
    "a subprotocol that is no ASCII": (upgrade("/echo", b"Sec-WebSocket-Protocol: \xff"), 400),
    "an empty subprotocol": (upgrade("/echo", b"Sec-WebSocket-Protocol: a,,b"), 400),
    "a subprotocol that is no token": (upgrade("/echo", b"Sec-WebSocket-Protocol: a b"), 400),
    "an extension that is no ASCII": (upgrade("/echo", b"Sec-WebSocket-Extensions: \xff"), 400),
}


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
