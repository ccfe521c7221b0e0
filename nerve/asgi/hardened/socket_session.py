"""One WebSocket as the ASGI app sees it: a reader that answers the peer while the app is busy, bounds everywhere.

Cures of Hypercorn 0.18: the reader pongs and notices closes whatever the app does; what the app has not read is
bounded; pings follow silence and missed ones end the socket; codes go both ways; the server's end is said (1012)
before the line is cut; a peer that does not read is let go.
"""

import contextlib
from collections import deque
from enum import Enum, auto

import trio

from nerve.asgi.hardened.containment import contained
from nerve.asgi.hardened.context import Application, Context
from nerve.asgi.hardened.exchange import Misuse
from nerve.asgi.hardened.frames import CloseCode, Ended, Received, Reply, WebSocket
from nerve.asgi.hardened.handshake import Handshake
from nerve.asgi.hardened.http1 import Http1
from nerve.asgi.hardened.response import BadResponse, Headers, refusal
from nerve.asgi.hardened.wire import Gone, Stalled, Wire
from nerve.asgi.protocol import Message, Scope

_READ_BYTES = 16 * 1024  # so that a flood of small frames does not hold the loop
_UNSENT_REPLIES = 64 * 1024


class _Phase(Enum):
    CONNECTING = auto()
    OPEN = auto()
    CLOSED = auto()  # either side has said so, or the line is cut
    REFUSING = auto()  # an HTTP response is under way
    REFUSED = auto()


class SocketSession:
    def __init__(self, wire: Wire, http: Http1, handshake: Handshake, context: Context) -> None:
        self._wire = wire
        self._http = http
        self._handshake = handshake
        self._context = context
        self._limits = context.limits
        self._socket = WebSocket(context.limits.message_bytes)
        self._phase = _Phase.CONNECTING
        self._connect_told = False
        self._refusal_head = b""
        self._inbox: deque[Received] = deque()
        self._inbox_bytes = 0
        self._ended: Ended | None = None
        self._at_end = False  # the reader's: the peer is done, or is not waited for any more
        self._before_answer = trio.CancelScope()
        self._nursery: trio.Nursery | None = None
        self._stirred = trio.Event()  # something for the app
        self._taken = trio.Event()  # the app took something
        self._close_by = float("inf")
        self._silence = trio.CancelScope()  # around each wait of the reader
        self._unsent = 0

    async def run(self, app: Application, scope: Scope) -> None:
        """The app, and the reader beside it once the socket is open, until both have ended."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            fine = await contained("a socket", lambda: app(scope, self.receive, self.send))
            match self._phase:
                case _Phase.REFUSING if not self._refusal_head:
                    self._wire.reset()  # half a response can only be broken off
                case _Phase.CONNECTING | _Phase.REFUSING:
                    await self._refuse(500, "the server failed")
                case _Phase.OPEN:
                    await self._close(CloseCode.NORMAL if fine else CloseCode.INTERNAL)

    def stop(self) -> None:
        """The server ends: say so, if it can still be said."""
        if self._nursery is not None and self._phase is _Phase.OPEN:
            self._nursery.start_soon(self._close, CloseCode.RESTART, "restarting")

    # --- in -------------------------------------------------------------------------------------------------------

    async def receive(self) -> Message:
        if not self._connect_told:
            self._connect_told = True
            return {"type": "websocket.connect"}
        if self._phase is _Phase.CONNECTING:
            await self._await_departure()
        while not self._inbox and self._ended is None:
            self._stirred = trio.Event()
            await self._stirred.wait()
        if not self._inbox:
            assert self._ended is not None
            return {"type": "websocket.disconnect", "code": self._ended.code, "reason": self._ended.reason}
        received = self._inbox.popleft()
        self._inbox_bytes -= received.size
        self._taken.set()
        await trio.lowlevel.checkpoint()
        text = isinstance(received.data, str)
        return {"type": "websocket.receive", "text" if text else "bytes": received.data}

    async def _await_departure(self) -> None:
        """Before the handshake is answered there is nothing to read: whatever comes is an end."""
        early = b""
        with self._before_answer, contextlib.suppress(Gone):
            early = await self._wire.read(_READ_BYTES)
        if self._phase is _Phase.CONNECTING:
            if early:
                await self._refuse(400, "nothing may be sent before the WebSocket is open")
            self._end(Ended(CloseCode.ABNORMAL))

    async def _read(self) -> None:
        """Until the peer is gone, one way or another."""
        ping_at = trio.current_time() + self._limits.ping_seconds
        try:
            while not self._at_end:
                with trio.CancelScope(deadline=min(ping_at, self._close_by)) as self._silence:
                    data = await self._wire.read(_READ_BYTES)
                if self._silence.cancelled_caught:
                    if trio.current_time() >= self._close_by:
                        break
                    await self._ping()
                elif not data:
                    break
                else:
                    await self._take(data)
                    await self._make_room()
                ping_at = trio.current_time() + self._limits.ping_seconds
        except Stalled:
            self._wire.reset()
        except Gone:
            pass
        self._end(Ended(CloseCode.ABNORMAL))

    async def _take(self, data: bytes) -> None:
        replies = b""
        for event in self._socket.receive(data):
            match event:
                case Received():
                    if self._phase is _Phase.OPEN:
                        self._inbox.append(event)
                        self._inbox_bytes += event.size
                        self._stirred.set()
                case Reply(data):
                    replies += data
                case Ended():
                    self._at_end = True
                    self._end(event)
        if replies:
            self._wire.put(replies)
            self._unsent += len(replies)
            # Whoever is sending sends these as well; only a pile of them is worth waiting for.
            if not self._wire.flushing or self._unsent > _UNSENT_REPLIES:
                await self._wire.flush()
                self._unsent = 0

    async def _make_room(self) -> None:
        """Stop reading while the app has much to read, but not for long: a reader that stops no longer pongs."""
        limits = self._limits
        with trio.move_on_after(limits.stall_seconds) as patience:
            while self._ended is None and (
                len(self._inbox) >= limits.inbox_messages or self._inbox_bytes >= limits.inbox_bytes
            ):
                self._taken = trio.Event()
                await self._taken.wait()
        if patience.cancelled_caught:
            await self._close(CloseCode.TRY_AGAIN, "too much unread")

    async def _ping(self) -> None:
        if self._socket.missed_pings >= self._limits.missed_pings:
            await self._close(CloseCode.INTERNAL, "no pong")
        elif not self._wire.flushing:  # who sends has the clock of a stalled peer already
            self._wire.put(self._socket.ping())
            await self._wire.flush()

    def _end(self, ended: Ended) -> None:
        """Tell the app, once; the first reason stays."""
        if self._ended is None:
            self._ended = ended
            # An app that looks away has nobody left to talk to.
            if self._nursery is not None:
                self._nursery.cancel_scope.deadline = trio.current_time() + self._limits.leave_seconds
        if self._phase is _Phase.OPEN:
            self._phase = _Phase.CLOSED
        self._stirred.set()
        self._taken.set()

    # --- out ------------------------------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Waits until the kernel has the bytes.  Raises Gone (an OSError) once the socket is closed, Misuse."""
        kind = message["type"]
        if self._ended is not None:
            if kind == "websocket.close":
                return
            raise Gone("the socket is closed")
        match self._phase, kind:
            case _Phase.CONNECTING, "websocket.accept":
                await self._accept(message)
            case _Phase.CONNECTING, "websocket.close":
                await self._refuse(403, "refused")
            case _Phase.CONNECTING, "websocket.http.response.start":
                self._start_refusal(message)
            case _Phase.REFUSING, "websocket.http.response.body":
                await self._send_refusal(message)
            case _Phase.OPEN, "websocket.send":
                await self._send_message(message)
            case _Phase.OPEN, "websocket.close":
                await self._close(message.get("code") or CloseCode.NORMAL, message.get("reason") or "")
            case _:
                raise Misuse(f"{kind} can't be sent while the socket is {self._phase.name.lower()}")

    async def _accept(self, message: Message) -> None:
        headers = [(bytes(name), bytes(value)) for name, value in message.get("headers") or ()]
        try:
            head = self._handshake.response(message.get("subprotocol"), headers + self._context.common_headers())
        except ValueError as exc:
            raise Misuse(str(exc)) from exc
        self._phase = _Phase.OPEN
        self._before_answer.cancel()
        assert self._nursery is not None
        self._nursery.start_soon(self._read)
        if self._context.stopping:
            self.stop()
        await self._wire.write(head)

    async def _send_message(self, message: Message) -> None:
        data = message.get("bytes")
        frame = self._socket.message(message["text"] if data is None else bytes(data))
        try:
            await self._wire.write(frame)
            await trio.lowlevel.checkpoint()
        except Stalled:
            await self._close(CloseCode.TRY_AGAIN, "too slow")
            raise
        except Gone:
            self._end(Ended(CloseCode.ABNORMAL))
            raise

    async def _close(self, code: int, reason: str = "") -> None:
        """Send our close, and give the peer its seconds to answer; one that can't even take it is reset."""
        if self._phase is not _Phase.OPEN:
            return
        frame = self._socket.close(code, reason)
        self._close_by = trio.current_time() + self._limits.close_seconds
        self._silence.deadline = min(self._silence.deadline, self._close_by)
        self._end(Ended(code, reason))
        said = False
        try:
            with trio.move_on_after(self._limits.reset_seconds), contextlib.suppress(Gone):
                await self._wire.write(frame)
                said = True
        finally:  # also for an app that has lost its patience in the same moment
            if not said:
                self._wire.reset()

    # --- refusing -------------------------------------------------------------------------------------------------

    async def _refuse(self, status: int, detail: str) -> None:
        self._phase = _Phase.REFUSED
        try:
            await self._wire.write(refusal(status, detail, self._context.common_headers()))
        except Gone:
            return

    def _start_refusal(self, message: Message) -> None:
        headers: Headers = [(bytes(name), bytes(value)) for name, value in message.get("headers") or ()]
        headers += [*self._context.common_headers(), (b"connection", b"close")]
        try:
            self._refusal_head = self._http.response.start(message["status"], headers)
        except BadResponse as exc:
            raise Misuse(str(exc)) from exc
        self._phase = _Phase.REFUSING

    async def _send_refusal(self, message: Message) -> None:
        more = message.get("more_body", False)
        try:
            data = self._refusal_head + self._http.response.part(message.get("body", b""))
            if not more:
                data += self._http.response.end()
        except BadResponse as exc:
            raise Misuse(str(exc)) from exc
        self._refusal_head = b""
        if not more:
            self._phase = _Phase.REFUSED
        if data:
            await self._wire.write(data)
