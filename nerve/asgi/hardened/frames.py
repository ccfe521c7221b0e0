"""One open WebSocket as bytes and events, over wsproto.  No I/O: its tests are lists of bytes.

Cures of Hypercorn 0.18: a message's size is counted while it comes in, not once it is there; a protocol error is told
to the peer (1002, 1007, 1009) instead of a bare end; the peer's close code is told to the app; pongs are checked.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from io import BytesIO, StringIO

from attrs import frozen
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.extensions import Extension
from wsproto.frame_protocol import CloseReason, FrameDecoder, FrameProtocol, Opcode, RsvBits

_LONGEST_REASON = 123  # bytes: a close frame has 125


class CloseCode(IntEnum):
    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    NO_STATUS = 1005
    ABNORMAL = 1006
    NOT_UTF8 = 1007
    TOO_BIG = 1009
    INTERNAL = 1011
    RESTART = 1012
    TRY_AGAIN = 1013


_REASONS = {CloseCode.PROTOCOL_ERROR: "protocol error", CloseCode.NOT_UTF8: "not UTF-8", CloseCode.TOO_BIG: "too big"}


@frozen
class Received:
    """A whole message; ``size`` in bytes."""

    data: str | bytes
    size: int


@frozen
class Reply:
    """Bytes that are owed to the peer: a pong, or the answer to its close."""

    data: bytes


@frozen
class Ended:
    """Nothing more comes: the peer closed, or broke the protocol and was told so."""

    code: int
    reason: str = ""


Event = Received | Reply | Ended


class _Announced(Extension):
    """Refuses a frame by the length that its header announces, before any of it has come; never negotiated."""

    name = "announced length"

    def __init__(self, most: int) -> None:
        self._most = most

    def enabled(self) -> bool:
        return True

    def offer(self) -> bool:
        return False

    def frame_inbound_header(
        self, proto: FrameDecoder | FrameProtocol, opcode: Opcode, rsv: RsvBits, payload_length: int
    ) -> CloseReason | RsvBits:
        if payload_length > self._most and not opcode.iscontrol():
            return CloseReason.MESSAGE_TOO_BIG
        return RsvBits(False, False, False)


class WebSocket:
    """``receive`` bytes and get events; the other methods make bytes."""

    def __init__(self, message_bytes: int) -> None:
        self._wsproto = Connection(ConnectionType.SERVER, [_Announced(message_bytes)])
        self._message_bytes = message_bytes
        self._partial: StringIO | BytesIO | None = None
        self._size = 0
        self._pings = 0
        self._answered = 0
        self._ended = False

    def receive(self, data: bytes) -> Iterator[Event]:
        """What these bytes bring.  After Ended nothing is looked at any more."""
        if self._ended:
            return
        self._wsproto.receive_data(data)
        for event in self._wsproto.events():
            match event:
                case TextMessage() | BytesMessage():
                    yield from self._taken(event)
                case Ping():
                    if self._wsproto.state is ConnectionState.OPEN:
                        yield Reply(bytes(self._wsproto.send(event.response())))
                case Pong(payload=payload):
                    self._pong(bytes(payload))
                case CloseConnection():
                    yield from self._closed(event)
            if self._ended:
                return

    def _taken(self, part: TextMessage | BytesMessage) -> Iterator[Event]:
        if self._partial is None:
            self._partial = StringIO() if isinstance(part, TextMessage) else BytesIO()
            self._size = 0
        match self._partial, part:
            case StringIO() as text, TextMessage(data=data):
                text.write(data)
                self._size += len(data) if data.isascii() else len(data.encode("utf-8"))
            case BytesIO() as binary, BytesMessage(data=data):
                self._size += binary.write(data)
        if self._size > self._message_bytes:
            yield from self._fail(CloseCode.TOO_BIG)
        elif part.message_finished:
            whole, self._partial = self._partial.getvalue(), None
            yield Received(whole, self._size)

    def _closed(self, event: CloseConnection) -> Iterator[Event]:
        """The peer's close frame, or wsproto's word for its having broken the protocol: only the state tells which."""
        match self._wsproto.state:
            case ConnectionState.OPEN:
                yield from self._fail(CloseCode(event.code))
            case ConnectionState.REMOTE_CLOSING:
                self._end()
                yield Reply(bytes(self._wsproto.send(event.response())))
                yield Ended(int(event.code), event.reason or "")
            case _:
                self._end()
                yield Ended(int(event.code), event.reason or "")

    def _fail(self, code: CloseCode) -> Iterator[Event]:
        frame = self.close(code, _REASONS.get(code, ""))
        self._end()
        if frame:
            yield Reply(frame)
        yield Ended(code, _REASONS.get(code, ""))

    def _end(self) -> None:
        self._ended = True
        self._partial = None

    # --- out ------------------------------------------------------------------------------------------------------

    def message(self, data: str | bytes) -> bytes:
        """A whole message as one frame; b"" once a close was sent."""
        if self._wsproto.state is not ConnectionState.OPEN:
            return b""
        event: TextMessage | BytesMessage = TextMessage(data) if isinstance(data, str) else BytesMessage(data)
        return bytes(self._wsproto.send(event))

    def close(self, code: int, reason: str = "") -> bytes:
        """Our close frame, ``reason`` cut to what fits; b"" if one was sent already.  Raises ValueError for a code
        that may not be sent."""
        if not (1000 <= code <= 4999) or code in (1004, CloseCode.NO_STATUS, CloseCode.ABNORMAL, 1015):
            raise ValueError(f"{code} can't be sent as a close code")
        if self._wsproto.state is not ConnectionState.OPEN:
            return b""
        short = reason.encode("utf-8")[:_LONGEST_REASON].decode("utf-8", "ignore")
        return bytes(self._wsproto.send(CloseConnection(code, short or None)))

    def ping(self) -> bytes:
        """The next ping, told apart from the others by its payload; b"" once a close was sent."""
        if self._wsproto.state is not ConnectionState.OPEN:
            return b""
        self._pings += 1
        return bytes(self._wsproto.send(Ping(struct.pack("!Q", self._pings))))

    @property
    def missed_pings(self) -> int:
        """Pings since the last one that was answered.  A pong to a later ping answers the earlier ones, too."""
        return self._pings - self._answered

    def _pong(self, payload: bytes) -> None:
        if len(payload) == 8:
            (number,) = struct.unpack("!Q", payload)
            if self._answered < number <= self._pings:
                self._answered = number


__all__ = ["CloseCode", "Ended", "Event", "Received", "Reply", "WebSocket"]
