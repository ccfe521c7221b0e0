"""One connection, from its first byte to its last: requests one after another, or one WebSocket.

In place of Hypercorn's TCPServer, H11Protocol and their task per request and timer per pause: the app runs in the
connection's own task and reads by itself, and the deadline of each read is the only clock.
"""

import math
from functools import partial
from urllib.parse import unquote

import trio

from nerve.asgi.hardened.containment import contained
from nerve.asgi.hardened.context import Context
from nerve.asgi.hardened.exchange import Exchange
from nerve.asgi.hardened.handshake import Handshake, WrongVersion
from nerve.asgi.hardened.http1 import BadRequest, Head, Http1
from nerve.asgi.hardened.response import refusal
from nerve.asgi.hardened.socket_session import SocketSession
from nerve.asgi.hardened.wire import Gone, Wire
from nerve.asgi.protocol import PROGRESS, WATCH, Scope

Address = tuple[str, int] | None


class Connection:
    """``run`` it in a task of its own.  However it is left, the socket is closed."""

    def __init__(self, wire: Wire, context: Context, *, secure: bool, client: Address, server: Address) -> None:
        self._wire = wire
        self._context = context
        self._limits = context.limits
        self._http = Http1(context.limits)
        self._secure = secure
        self._client = client
        self._server = server
        self._requests = 0
        # The one clock: its deadline is moved from head to head, and it stands still while the app works.
        self._clock = trio.CancelScope()
        self._idle = False
        self._session: SocketSession | None = None

    async def run(self) -> None:
        """Waits within the limits, and as long as the app does.  Raises nothing but Cancelled and its like."""
        self._context.connections.add(self)
        try:
            await contained("a connection", self._serve)
        finally:
            self._context.connections.discard(self)
            self._wire.reset()

    def stop(self) -> None:
        if self._idle:
            self._clock.cancel()
        if self._session is not None:
            self._session.stop()

    async def _serve(self) -> None:
        try:
            await self._wire.handshake()
            linger = await self._serve_requests()
            await self._wire.finish(linger=linger)
        except Gone:
            return

    async def _serve_requests(self) -> bool:
        """Whether the peer may still be sending.  Raises Gone."""
        try:
            with self._clock:
                return await self._serve_next()
            # Only an idle connection is ever cancelled by its own clock.
            if not self._http.buffered or self._context.stopping:
                return False
            raise BadRequest(408, "the request did not arrive in time")
        except WrongVersion as wrong:
            await self._wire.write(refusal(wrong.status, str(wrong), [*wrong.reply, *self._context.common_headers()]))
        except BadRequest as bad:
            await self._wire.write(refusal(bad.status, str(bad), self._context.common_headers()))
        return True

    async def _serve_next(self) -> bool:
        while (head := await self._next_head()) is not None:
            self._requests += 1
            if head.wants_websocket:
                await self._upgrade(head)
                return True
            if not await self._exchange(head):
                return True
            if self._http.buffered:
                await trio.lowlevel.checkpoint()  # nothing else on this way waits for sure
        return False

    # --- heads ----------------------------------------------------------------------------------------------------

    async def _next_head(self) -> Head | None:
        """None at the end: the peer is gone, or the server stops.  Raises BadRequest, Gone."""
        if (head := self._http.next_head()) is not None:
            return head
        first, limits = self._requests == 0, self._limits
        begun = first or self._http.buffered > 0
        self._clock.deadline = trio.current_time() + (limits.head_seconds if begun else limits.idle_seconds)
        self._idle = True
        while head is None:
            if self._context.stopping or not (data := await self._wire.read()):
                return None
            if not begun:
                # The bound is for the whole head, so that it can't be had a byte at a time.
                self._clock.deadline, begun = trio.current_time() + limits.head_seconds, True
            self._http.feed(data)
            head = self._http.next_head()
        if self._clock.cancel_called:  # in the same moment: what is begun now would be cancelled midway
            return None
        self._idle = False
        self._clock.deadline = math.inf
        return head

    # --- requests -------------------------------------------------------------------------------------------------

    async def _exchange(self, head: Head) -> bool:
        """One request and its response; whether another may follow.  Raises Gone."""
        last = self._requests >= self._limits.requests
        exchange = Exchange(self._wire, self._http, self._context, last=last)
        scope = self._scope("http", head)
        scope["extensions"] = {WATCH: exchange.watch}
        fine = await contained("a request", partial(self._context.app, scope, exchange.receive, exchange.send))
        if exchange.fault is not None and not exchange.started:
            raise exchange.fault
        if exchange.left:
            raise Gone("the client has left")
        if not exchange.complete:
            if exchange.started:
                raise Gone("the response broke off")  # the peer has to see that it is not whole
            if fine:
                raise BadRequest(500, "the server gave no answer")
            raise BadRequest(500, "the server failed")
        return self._http.reusable and not self._context.stopping

    async def _upgrade(self, head: Head) -> None:
        """Raises BadRequest, Gone."""
        handshake = Handshake.of(head, self._http.buffered)
        scope = self._scope("websocket", head)
        scope["subprotocols"] = list(handshake.subprotocols)
        self._session = SocketSession(self._wire, self._http, handshake, self._context)
        await self._session.run(self._context.app, scope)

    def _scope(self, kind: str, head: Head) -> Scope:
        path, _, query = head.target.partition(b"?")
        scheme = "http" if kind == "http" else "ws"
        scope: Scope = {
            "type": kind,
            "asgi": {"spec_version": "2.4", "version": "3.0"},
            "http_version": head.version,
            "scheme": scheme + "s" if self._secure else scheme,
            "path": unquote(path.decode("ascii")) if b"%" in path else path.decode("ascii"),
            "raw_path": path,
            "query_string": query,
            "root_path": self._context.config.root_path,
            "headers": head.headers,
            "client": self._client,
            "server": self._server,
            "state": self._context.state.copy(),
            "extensions": {},
        }
        if kind == "http":
            scope["method"] = head.method
        else:
            scope["extensions"] = {"websocket.http.response": {}, PROGRESS: self._wire.on_progress}
        return scope
