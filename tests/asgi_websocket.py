"""One WebSocket in memory: the client's end, with a referee for the app's."""

import json as jsonlib
from collections.abc import Sequence
from typing import Any

import trio

from tests.asgi_wire import (
    WAIT_SECONDS,
    Closed,
    Connection,
    Message,
    Observer,
    Refused,
    Reply,
    Request,
    checked_headers,
)
from tests.socket_words import SocketWords


class WebSocketClient(SocketWords, Connection):
    """The client's end of an accepted socket."""

    def __init__(self, request: Request, window: int, observers: Sequence[Observer], patience: float) -> None:
        super().__init__(patience)
        self.request = request
        self._observers = observers
        self._accepted = False
        self._decided = trio.Event()
        self._closed: Closed | None = None
        self._given_up = False
        self._refusal: tuple[int, tuple[tuple[bytes, bytes], ...]] | None = None
        self._refusal_body = bytearray()
        self._refused: Refused | None = None
        self._frames_in, self._frames = trio.open_memory_channel[str | bytes | Closed](window)
        self._to_app.send_nowait({"type": "websocket.connect"})

    # --- the client's side ----------------------------------------------------------------------------------------

    async def opened(self) -> None:
        with trio.fail_after(self.patience):
            await self._decided.wait()
            if self._refused is not None:
                await self.ended.wait()
        self.raise_violations()
        if self._refused is not None:
            raise self._refused

    async def send_text(self, text: str) -> None:
        for observer in self._observers:
            observer.client_frame(text)
        await self._to_app.send({"type": "websocket.receive", "text": text, "bytes": None})

    async def send_bytes(self, data: bytes) -> None:
        await self._to_app.send({"type": "websocket.receive", "text": None, "bytes": data})

    async def receive(self, within: float = WAIT_SECONDS) -> str | bytes | Closed:
        if self._closed is not None and self._frames.statistics().current_buffer_used == 0:
            return self._closed
        with trio.fail_after(within):
            try:
                frame = await self._frames.receive()
            except trio.EndOfChannel:
                self.raise_violations()
                return Closed(1006)
        self._observe(frame)
        return frame

    def _observe(self, frame: str | bytes | Closed) -> None:
        if isinstance(frame, Closed):
            self._closed = frame
        if isinstance(frame, str):
            for observer in self._observers:
                observer.server_frame(frame)

    def received(self) -> list[Any]:
        """What has arrived and was not read yet; never waits."""
        frames: list[Any] = []
        while self._frames.statistics().current_buffer_used:
            frame = self._frames.receive_nowait()
            self._observe(frame)
            frames.append(jsonlib.loads(frame) if isinstance(frame, str) else frame)
        return frames

    async def close(self, code: int = 1000) -> None:
        """Close in an orderly way and wait until the app has ended."""
        self.disconnect(code)
        with trio.fail_after(self.patience):
            await self.ended.wait()

    def disconnect(self, code: int = 1006) -> None:
        """Be gone; 1006 is a connection that was cut."""
        if not self.left and self._closed is None:
            self._to_app.send_nowait({"type": "websocket.disconnect", "code": code})
        self.left = True
        self._frames_in.close()

    # --- the app's side -------------------------------------------------------------------------------------------

    async def _send(self, message: Message) -> None:
        await trio.lowlevel.checkpoint()
        kind = message["type"]
        if self._closed is not None or self._refused is not None:
            self.violation(f"{kind} came after the end")
        if self.gone():
            return
        if self._refusal is not None or kind.startswith("websocket.http.response."):
            self._refuse(message)
        elif not self._accepted:
            self._handshake(message)
        elif kind == "websocket.send":
            await self._frame(message)
        elif kind == "websocket.close":
            await self._close(message)
        else:
            self.violation(f"{kind} makes no sense on an open socket")

    def _handshake(self, message: Message) -> None:
        if message["type"] == "websocket.accept":
            checked_headers(self, message.get("headers", ()))
            self._accepted = True
        elif message["type"] == "websocket.close":
            self._refused = Refused(None)
        else:
            self.violation(f"{message['type']} came before accept")
        self._decided.set()

    def _refuse(self, message: Message) -> None:
        if self._accepted:
            self.violation("an HTTP reply came after accept")
        if message["type"] == "websocket.http.response.start" and self._refusal is None:
            self._refusal = (message["status"], checked_headers(self, message.get("headers", ())))
        elif message["type"] == "websocket.http.response.body" and self._refusal is not None:
            self._refusal_body += message.get("body", b"")
            if not message.get("more_body", False):
                self._refused = Refused(Reply(*self._refusal, bytes(self._refusal_body)))
                self._decided.set()
        else:
            self.violation(f"{message['type']} makes no sense in a refusal")

    async def _frame(self, message: Message) -> None:
        frames = [frame for frame in (message.get("text"), message.get("bytes")) if frame is not None]
        if len(frames) != 1:
            self.violation("a frame is either text or bytes")
        try:
            await self._frames_in.send(frames[0])
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            self.gone()

    async def _close(self, message: Message) -> None:
        code, reason = message.get("code", 1000), message.get("reason") or ""
        if not (1000 <= code <= 1014 and code not in (1004, 1005, 1006)) and not 3000 <= code <= 4999:
            self.violation(f"{code} is no close code that may be sent")
        if len(reason.encode("utf-8")) > 123:
            self.violation("a close reason has at most 123 bytes")
        closed = Closed(code, reason)
        self._given_up = True  # an app may give up on a close that a full window doesn't carry
        await self._frames_in.send(closed)
        self._closed = closed
        self._to_app.send_nowait({"type": "websocket.disconnect", "code": code})

    def _over(self) -> None:
        self._decided.set()
        self._frames_in.close()

    def _returned(self) -> None:
        if self.left or self._given_up or self._refused is not None:
            return
        self.violation("the app returned without closing the socket" if self._accepted else "no answer to the upgrade")
