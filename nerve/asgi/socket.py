"""One accepted WebSocket as its conversation sees it: text in and out, one close."""

from collections.abc import Callable
from enum import Enum, auto

from attrs import define, field, frozen

from nerve.asgi.protocol import GONE, OnProgress, Receive, Send

_NO_STATUS = 1005
_LONGEST_REASON = 123  # bytes: a close frame has 125


@frozen
class SocketClosed:
    """The socket has ended.  ``code`` is the peer's close code; 1005 and 1006 stand for none and for a lost line."""

    code: int


class _Phase(Enum):
    CONNECTING = auto()
    OPEN = auto()
    CLOSED = auto()  # our close has been sent, or the peer is gone


@define(eq=False)
class Socket:
    """One task reads; any may send and close.

    What is sent once the socket is closed is dropped, as everything in flight then is: the reader learns of the end.
    """

    _receive: Receive
    _send: Send
    _on_progress: OnProgress | None = None
    code: int | None = None  # the code that ended it, ours or the peer's, whichever came first
    _phase: _Phase = field(default=_Phase.CONNECTING, init=False)
    _ended: SocketClosed | None = field(default=None, init=False)

    @property
    def is_open(self) -> bool:
        return self._phase is _Phase.OPEN

    @property
    def was_accepted(self) -> bool:
        return self._phase is not _Phase.CONNECTING

    def on_progress(self, moved: Callable[[], None]) -> None:
        """Have ``moved`` called when the peer takes a part of what is being sent; some servers can't."""
        if self._on_progress is not None:
            self._on_progress(moved)

    async def accept(self) -> None:
        """Complete the handshake; does nothing if that has been done."""
        if self._phase is _Phase.CONNECTING:
            self._phase = _Phase.OPEN
            await self._deliver({"type": "websocket.accept"})

    async def receive(self) -> str | bytes | SocketClosed:
        """The next frame, text or binary; SocketClosed for ever once the peer is gone."""
        if self._ended is not None:
            return self._ended
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self._ended = SocketClosed(message.get("code") or _NO_STATUS)
            self._over(self._ended.code)
            return self._ended
        text: str | None = message.get("text")
        return text if text is not None else message.get("bytes") or b""

    async def send(self, data: bytes) -> None:
        """Send UTF-8 bytes as one text frame.  Waits for the peer to take it, as long as the server allows."""
        if self._phase is _Phase.OPEN:
            await self._deliver({"type": "websocket.send", "text": data.decode("utf-8")})

    async def close(self, code: int, reason: str = "") -> None:
        """Close; does nothing if the socket is closed already.  ``reason`` is cut to 123 bytes."""
        if self._phase is _Phase.OPEN:
            self._over(code)
            short = reason.encode("utf-8")[:_LONGEST_REASON].decode("utf-8", "ignore")
            await self._deliver({"type": "websocket.close", "code": code, "reason": short})

    def _over(self, code: int) -> None:
        self._phase = _Phase.CLOSED
        if self.code is None:
            self.code = code

    async def _deliver(self, message: dict[str, object]) -> None:
        try:
            await self._send(message)
        except GONE:
            self._over(1006)
