"""One connection, from its first byte to its last: requests one after another, or one WebSocket.

In place of Hypercorn's TCPServer, H11Protocol and their task per request and timer per pause: the app runs in the
connection's own task and reads by itself, and the deadline of each read is the only clock.
"""

from functools import partial
from urllib.parse import unquote

import trio

from nerve.asgi.hardened.containment import contained
from nerve.asgi.hardened.context import Context
from nerve.asgi.hardened.exchange import Exchange
from nerve.asgi.hardened.handshake import Handshake, WrongVersion
from nerve.asgi.hardened.http1 import BadRequest, Head, Http1, refusal
from nerve.asgi.hardened.socket_session import SocketSession
from nerve.asgi.hardened.wire import Gone, Wire
from nerve.asgi.protocol import Scope

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
        self._idle: trio.CancelScope | None = None
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
        if self._idle is not None:
            self._idle.cancel()
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
            while (head := await self._next_head()) is not None:
                self._requests += 1
                if head.wants_websocket:
                    await self._upgrade(head)
                    return True
                if not await self._exchange(head):
                    return True
        except WrongVersion as wrong:
            await self._wire.write(refusal(wrong.status, str(wrong), [*wrong.reply, *self._context.common_headers()]))
        except BadRequest as bad:
            await self._wire.write(refusal(bad.status, str(bad), self._context.common_headers()))
        else:
            return False
        return True

    # --- heads ----------------------------------------------------------------------------------------------------

    async def _next_head(self) -> Head | None:
        """None at the end: the peer is gone or silent, or the server stops.  Raises BadRequest, Gone."""
        first = self._requests == 0
        until = trio.current_time() + (self._limits.head_seconds if first else self._limits.idle_seconds)
        begun = first
        while (head := self._http.next_head()) is None:
            if not begun and self._http.buffered:
                # The bound is for the whole head, so that it can't be had a byte at a time.
                until, begun = trio.current_time() + self._limits.head_seconds, True
            data = await self._read_idle(until)
            if not data:
                return None
            self._http.feed(data)
        return head

    async def _read_idle(self, until: float) -> bytes:
        """b"" at the end.  Raises BadRequest for a head that takes too long."""
        if self._context.stopping:
            return b""
        data = b""
        with trio.CancelScope(deadline=until) as self._idle:
            data = await self._wire.read()
        self._idle = None
        if not data and self._http.buffered and trio.current_time() >= until:
            raise BadRequest(408, "the request did not arrive in time")
        return data

    # --- requests -------------------------------------------------------------------------------------------------

    async def _exchange(self, head: Head) -> bool:
        """One request and its response; whether another may follow.  Raises Gone."""
        last = self._requests >= self._limits.requests
        exchange = Exchange(self._wire, self._http, self._context, last=last)
        scope = self._scope("http", head)
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
            "path": unquote(path.decode("ascii")),
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
            scope["extensions"] = {"websocket.http.response": {}}
        return scope
