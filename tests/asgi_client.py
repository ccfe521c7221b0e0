"""An ASGI client in memory: how the tests come in by the front door.

    client = AsgiClient(app, token="...")
    reply = await client.post("/api/chat", json={"message": "hi"})
    assert (reply.status, reply.json) == (200, {...})

    async with client.websocket("/ws") as socket:
        await socket.send_json({"type": "ping"})
        assert (await socket.receive_json())["type"] == "pong"
        await socket.close()

It is a strict server towards the app: whatever the ASGI specification or HTTP forbids is a ProtocolViolation of the
test, even where a real server would look away.  An ``Observer`` sees every reply and frame of every test, so that they
can be validated against spec/.  Waits are bounded by trio's clock (so a MockClock may jump over them).
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from attrs import define, evolve

from tests.asgi_http import HttpExchange
from tests.asgi_websocket import WebSocketClient
from tests.asgi_wire import (
    WAIT_SECONDS,
    App,
    Closed,
    Observer,
    ProtocolViolation,
    Refused,
    Reply,
    Request,
    SocketObserver,
)
from tests.request_building import HeaderItems, Query, body_parts, built_request, header_pairs, with_query_token

__all__ = [
    "AsgiClient",
    "Closed",
    "HttpExchange",
    "Observer",
    "ProtocolViolation",
    "Refused",
    "Reply",
    "Request",
    "WebSocketClient",
]


@define
class AsgiClient:
    """Options that are None or empty are not sent.  ``with_`` gives a changed copy, such as another person's.

    ``patience`` is how many seconds the app may take for a reply, or to end after its client has left.
    ``silent_when_gone`` is a server that, like Hypercorn, lets the app go on sending to a client that has left.
    """

    app: App
    token: str | None = None
    host: str = "127.0.0.1:8900"
    scheme: str = "http"
    peer: str = "127.0.0.1"
    headers: tuple[tuple[str, str], ...] = ()
    observers: tuple[Observer, ...] = ()
    patience: float = WAIT_SECONDS
    silent_when_gone: bool = False

    def with_(self, **changes: Any) -> "AsgiClient":
        return evolve(self, **changes)

    # --- HTTP -----------------------------------------------------------------------------------------------------

    async def get(self, path: str, **options: Any) -> Reply:
        return await self.request("GET", path, **options)

    async def head(self, path: str, **options: Any) -> Reply:
        return await self.request("HEAD", path, **options)

    async def options(self, path: str, **options: Any) -> Reply:
        return await self.request("OPTIONS", path, **options)

    async def post(self, path: str, **options: Any) -> Reply:
        return await self.request("POST", path, **options)

    async def put(self, path: str, **options: Any) -> Reply:
        return await self.request("PUT", path, **options)

    async def patch(self, path: str, **options: Any) -> Reply:
        return await self.request("PATCH", path, **options)

    async def delete(self, path: str, **options: Any) -> Reply:
        return await self.request("DELETE", path, **options)

    async def request(self, method: str, path: str, **options: Any) -> Reply:
        """One request and its whole reply.  Options as for ``open``; the app has to answer."""
        async with self.open(method, path, **options) as exchange:
            return await exchange.reply()

    @asynccontextmanager
    async def open(
        self,
        method: str,
        path: str,
        *,
        json: Any = ...,
        content: bytes | Iterable[bytes] | None = None,
        query: Query = b"",
        headers: HeaderItems = (),
        raw_headers: Iterable[tuple[bytes, bytes]] = (),
        end_body: bool = True,
    ) -> AsyncIterator["HttpExchange"]:
        """A request that is under way, for tests of what happens meanwhile.  Leaving the block disconnects.

        ``path`` may be raw (percent-encoded) or plain text, and may hold a query.  ``content`` as a list is sent in
        chunks, without Content-Length.  ``end_body=False`` holds the last part back: see ``HttpExchange.send_body``.
        """
        parts, body_headers = body_parts(json, content, method, end_body)
        request = self._request(method, path, query, [*body_headers, *header_pairs(headers)], raw_headers)
        request = evolve(request, body=b"".join(parts))
        scope = self._scope(request, type="http", scheme=self.scheme, method=method)
        exchange = HttpExchange(request, self.observers, self.patience)
        for number, part in enumerate(parts, start=1):
            exchange.feed(part, more=not end_body or number < len(parts))
        exchange.silent_when_gone = self.silent_when_gone
        async with exchange.served_by(self.app, scope):
            yield exchange

    # --- WebSocket ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def websocket(
        self,
        path: str = "/ws",
        *,
        query: Query = b"",
        headers: HeaderItems = (),
        raw_headers: Iterable[tuple[bytes, bytes]] = (),
        window: int = 10_000,
        refusal_replies: bool = True,
        token_in_query: bool = True,
    ) -> AsyncIterator["WebSocketClient"]:
        """An accepted socket.  Raises Refused.  Leaving the block hangs up and waits until the app has ended.

        ``window`` is how many frames the client takes without reading: the app's next ``send`` then waits.
        ``refusal_replies=False`` is a server without the extension ``websocket.http.response``.
        """
        request = self._request("GET", path, query, header_pairs(headers), raw_headers)
        if token_in_query and self.token is not None:
            request = with_query_token(request, self.token)
        extensions: dict[str, Any] = {"websocket.http.response": {}} if refusal_replies else {}
        scheme = {"http": "ws", "https": "wss"}[self.scheme]
        scope = self._scope(request, type="websocket", scheme=scheme, subprotocols=[], extensions=extensions)
        observers = [o.of_socket(request) if isinstance(o, SocketObserver) else o for o in self.observers]
        socket = WebSocketClient(request, window, observers, self.patience)
        socket.silent_when_gone = self.silent_when_gone
        async with socket.served_by(self.app, scope):
            await socket.opened()
            yield socket

    # --- both -----------------------------------------------------------------------------------------------------

    def _request(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Iterable[tuple[str, str]],
        raw_headers: Iterable[tuple[bytes, bytes]],
    ) -> Request:
        headers = [*self.headers, *headers]
        return built_request(method, path, query, headers, host=self.host, token=self.token, raw_headers=raw_headers)

    def _scope(self, request: Request, **specific: Any) -> dict[str, Any]:
        path = request.path.encode("ascii")
        return {
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "path": request.path,
            "raw_path": path,
            "query_string": request.query,
            "root_path": "",
            "headers": list(request.headers),
            "client": (self.peer, 50000) if self.peer else None,
            "server": ("127.0.0.1", 8900),
            "extensions": {},
            "state": {},
            **specific,
        }
