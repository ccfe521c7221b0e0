"""One HTTP request as the ASGI app sees it.

Cures of Hypercorn 0.18: body parts go through no queue, so an app that never reads them blocks nobody; ``receive``
tells of a client that left as soon as it does; ``send`` to one that left says so; and the head, the body and the end of
a whole response are one write.
"""

import math
from enum import Enum, auto

import trio

from nerve.asgi.hardened.context import Context
from nerve.asgi.hardened.http1 import BadRequest, Http1
from nerve.asgi.hardened.patrol import Watch
from nerve.asgi.hardened.response import BadResponse, Headers
from nerve.asgi.hardened.wire import Gone, Wire
from nerve.asgi.protocol import Message


class _Phase(Enum):
    WAITING = auto()  # no response yet
    STARTED = auto()  # its head is made, nothing was sent
    SENDING = auto()
    COMPLETE = auto()


class Misuse(RuntimeError):
    """The app sent what it may not send now."""


class Exchange:
    """``receive`` and ``send`` for one request; one task at a time in each of them."""

    def __init__(self, wire: Wire, http: Http1, context: Context, *, last: bool) -> None:
        self._wire = wire
        self._http = http
        self._context = context
        self._last = last  # the last request of this connection, whatever happens
        self._phase = _Phase.WAITING
        self._head = b""
        self._left = False
        self.fault: BadRequest | None = None
        self._reading: trio.CancelScope | None = None
        self._body_until = trio.current_time() + context.limits.body_seconds
        self._told_end = False

    @property
    def started(self) -> bool:
        """Whether the response can't be taken back."""
        return self._phase in (_Phase.SENDING, _Phase.COMPLETE)

    @property
    def complete(self) -> bool:
        return self._phase is _Phase.COMPLETE

    @property
    def left(self) -> bool:
        return self._left

    # --- in -------------------------------------------------------------------------------------------------------

    async def receive(self) -> Message:
        """The next part of the body; ``http.disconnect`` once the client or the response is over."""
        if not self._told_end:
            part = await self._next_part()
            if part is not None:
                self._told_end = self._http.body_complete
                return {"type": "http.request", "body": part, "more_body": not self._told_end}
        else:
            await self._until_left()
        return {"type": "http.disconnect"}

    async def _next_part(self) -> bytes | None:
        """None if the client left, sent nonsense, or took too long."""
        while not self._left and self._phase is not _Phase.COMPLETE:
            try:
                part = self._http.next_body()
                if part or self._http.body_complete:
                    return part
                if invitation := self._http.invitation():
                    await self._wire.write(invitation)
            except BadRequest as bad:
                self._broke(bad)
                break
            except Gone:
                self._left = True
                break
            if not await self._read(self._body_until):
                self._broke(BadRequest(408, "the request's body did not arrive in time"))
        return None

    def watch(self) -> Watch:
        """What an app may do its work in instead of waiting in ``receive`` beside it.  Only behind a whole body."""
        return self._context.patrol.watch(self._has_left)

    async def _has_left(self) -> bool:
        await self._until_left()
        return self._left

    async def _until_left(self) -> None:
        """Read on behind the request.  What comes is the next one, up to a bound."""
        while not self._left and self._phase is not _Phase.COMPLETE:
            if self._http.buffered < self._context.limits.pipelined_bytes:
                await self._read(math.inf)
            else:
                await self._pause()

    async def _read(self, until: float) -> bool:
        """False if nothing came in time.  Returns early once the response is complete."""
        with trio.CancelScope(deadline=until) as scope:
            self._reading = scope
            try:
                data = await self._wire.read()
            except Gone:
                data = b""
            if data:
                self._http.feed(data)
            else:
                self._left = True
        self._reading = None
        return not scope.cancelled_caught or self._phase is _Phase.COMPLETE

    async def _pause(self) -> None:
        """Too much is piled up behind this request: read no more, which makes us blind, and so not for long."""
        with trio.move_on_after(self._context.limits.stall_seconds) as scope:
            self._reading = scope
            await trio.sleep_forever()
        self._reading = None
        if self._phase is not _Phase.COMPLETE:
            self._left = True

    def _broke(self, bad: BadRequest) -> None:
        """The request can't be read to its end: gone for the app; the peer is told if it has no response yet."""
        self.fault = bad
        self._left = True

    # --- out ------------------------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Waits until the kernel has the bytes.  Raises Gone (an OSError) for a client that left, Misuse."""
        if self._left:
            raise Gone("the client has left")
        match message["type"]:
            case "http.response.start" if self._phase is _Phase.WAITING:
                self._start(message)
            case "http.response.body" if self._phase in (_Phase.STARTED, _Phase.SENDING):
                await self._send_body(message)
            case other:
                raise Misuse(f"{other} can't be sent while the response is {self._phase.name.lower()}")

    def _start(self, message: Message) -> None:
        headers: Headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        headers += self._context.common_headers()
        if self._last or self._context.stopping or not self._http.body_complete:
            headers.append((b"connection", b"close"))
        try:
            self._head = self._http.response.start(message["status"], headers)
        except BadResponse as exc:
            raise Misuse(str(exc)) from exc
        self._phase = _Phase.STARTED

    async def _send_body(self, message: Message) -> None:
        more = message.get("more_body", False)
        try:
            data = self._head + self._http.response.part(message.get("body", b""))
            if not more:
                data += self._http.response.end()
        except BadResponse as exc:
            raise Misuse(str(exc)) from exc
        self._head = b""
        self._phase = _Phase.SENDING
        try:
            if data:
                await self._wire.write(data)
            if more:
                await trio.lowlevel.checkpoint()
        except Gone:
            self._left = True
            raise
        if not more:
            self._phase = _Phase.COMPLETE
            if self._reading is not None:
                self._reading.cancel()
