"""The way to a server at an address: HTTP over httpx, sockets over trio-websocket, each reply and frame judged.

It says what ``AsgiClient`` says, so that the same tests go either way.  Time is the real one and every wait is bounded.
"""

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
import trio
from attrs import define, evolve, field, frozen
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection, wrap_client_stream

from tests.asgi_wire import WAIT_SECONDS, Closed, Observer, Refused, Reply, Request, SocketObserver, lone_errors
from tests.request_building import HeaderItems, Query, body_parts, built_request, header_pairs, with_query_token
from tests.socket_words import SocketWords

PATIENCE_SECONDS = 30.0  # for a reply: failed sign-ins are answered late, one after the other
CLOSE_SECONDS = 2.0
FRAMES_UNREAD = 10_000
LARGEST_MESSAGE = 16 * 1024 * 1024
ABNORMAL = 1006

Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]


class LocalOnly(AssertionError):
    """A scenario asks for what can't be had of an address, and does not say that it is local."""


@frozen(eq=False)
class Address:
    """Where the server is.  ``tls`` trusts what this machine trusts; ``SSL_CERT_FILE`` may name more."""

    url: str  # without a path
    tls: ssl.SSLContext = field(factory=ssl.create_default_context)

    @property
    def authority(self) -> str:
        """What a Host header says."""
        return urlsplit(self.url).netloc

    @asynccontextmanager
    async def http(self) -> AsyncIterator[httpx.AsyncClient]:
        """Connections for one task tree; a client that adds nothing of its own to what it is told to send."""
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(trust_env=False, verify=self.tls, timeout=None, limits=limits) as client:
            client.headers = httpx.Headers({"accept-encoding": "identity"})
            yield client

    async def connected(self) -> Stream:
        url = urlsplit(self.url)
        host = url.hostname or ""
        with trio.fail_after(PATIENCE_SECONDS):
            if url.scheme != "https":
                return await trio.open_tcp_stream(host, url.port or 80)
            secure = await trio.open_ssl_over_tcp_stream(host, url.port or 443, ssl_context=self.tls)
            await secure.do_handshake()
            return secure


@frozen
class RemoteWire:
    """Implements ``Wire``.  ``host`` None is that of the address; an empty one is sent empty, as HTTP/1.1 needs one."""

    address: Address
    http: httpx.AsyncClient
    observers: tuple[Observer, ...] = ()
    token: str | None = None
    host: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    patience: float = PATIENCE_SECONDS

    def with_(self, **changes: Any) -> "RemoteWire":
        if "peer" in changes:
            raise LocalOnly("a connection comes from where it comes from")
        return evolve(self, **changes)

    async def request(self, method: str, path: str, **options: Any) -> Reply:
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
    ) -> AsyncIterator["RemoteExchange"]:
        """Waits until the reply has begun."""
        parts, body_headers = body_parts(json, content, method)
        request = self._request(method, path, query, [*body_headers, *header_pairs(headers)])
        with trio.fail_after(self.patience):
            response = await self.http.send(self._sent(request, parts), stream=True)
        self.http.cookies.clear()
        try:
            yield RemoteExchange(request, response, self.observers, self.patience)
        finally:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await response.aclose()

    def _sent(self, request: Request, parts: list[bytes]) -> httpx.Request:
        target = request.path.encode("ascii") + (b"?" + request.query if request.query else b"")
        sent = self.http.build_request(
            request.method,
            self.address.url,
            headers=list(request.headers),
            content=parts[0] if len(parts) == 1 else _chunks(parts),
            extensions={"target": target},  # as it is: httpx would tidy it up
        )
        sent.method = request.method  # httpx makes it upper case
        return sent

    @asynccontextmanager
    async def websocket(
        self, path: str = "/ws", *, query: Query = b"", headers: HeaderItems = ()
    ) -> AsyncIterator["RemoteSocket"]:
        """An accepted socket.  Raises Refused.  Leaving the block closes it, in good order if the server lets us."""
        request = self._request("GET", path, query, header_pairs(headers))
        if self.token is not None:
            request = with_query_token(request, self.token)
        observers = [o.of_socket(request) if isinstance(o, SocketObserver) else o for o in self.observers]
        stream = await self.address.connected()
        refused: Refused | None = None
        async with lone_errors():
            try:
                async with stream, trio.open_nursery() as nursery:
                    connection = await self._shaken(nursery, stream, request)
                    try:
                        yield RemoteSocket(connection, observers)
                    finally:
                        with trio.move_on_after(CLOSE_SECONDS, shield=True):
                            await connection.aclose()
                        nursery.cancel_scope.cancel()
            except* ConnectionRejected as group:  # of the library's reader where the refusal has a body
                refused = _refused(group)
        if refused is not None:
            raise refused

    async def _shaken(self, nursery: trio.Nursery, stream: Stream, request: Request) -> WebSocketConnection:
        target = request.path + ("?" + request.query.decode("ascii") if request.query else "")
        host = next(value.decode("latin-1") for name, value in request.headers if name == b"host")
        with trio.fail_after(PATIENCE_SECONDS):
            return await wrap_client_stream(
                nursery,
                stream,
                host,
                target,
                extra_headers=[(name, value) for name, value in request.headers if name != b"host"],
                message_queue_size=FRAMES_UNREAD,
                max_message_size=LARGEST_MESSAGE,
            )

    def _request(self, method: str, path: str, query: Query, headers: Iterable[tuple[str, str]]) -> Request:
        headers = [*self.headers, *headers]
        if self.host == "":
            headers.append(("host", ""))
        host = self.address.authority if self.host is None else self.host
        return built_request(method, path, query, headers, host=host, token=self.token)


async def _chunks(parts: list[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        if part:
            yield part


def _refused(group: BaseExceptionGroup[ConnectionRejected]) -> Refused:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ConnectionRejected)
    headers = tuple((bytes(name).lower(), bytes(value)) for name, value in error.headers or ())
    return Refused(Reply(error.status_code, headers, error.body or b""))


@define(eq=False)
class RemoteExchange:
    """Implements ``Exchange``."""

    request: Request
    _response: httpx.Response
    _observers: tuple[Observer, ...]
    _patience: float
    _body: bytearray = field(factory=bytearray)

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return tuple((name.lower(), value) for name, value in self._response.headers.raw)

    @property
    def received(self) -> bytes:
        return bytes(self._body)

    async def reply(self) -> Reply:
        with trio.fail_after(self._patience):
            async for part in self._response.aiter_raw():
                self._body += part
        reply = Reply(self.status, self.headers, self.received)
        for observer in self._observers:
            observer.replied(self.request, reply)
        return reply


@define(eq=False)
class RemoteSocket(SocketWords):
    """Implements ``SocketClient``."""

    _connection: WebSocketConnection
    _observers: list[Observer]
    _closed: Closed | None = None

    async def send_text(self, text: str) -> None:
        for observer in self._observers:
            observer.client_frame(text)
        await self._send(text)

    async def send_bytes(self, data: bytes) -> None:
        await self._send(data)

    async def _send(self, message: str | bytes) -> None:
        try:
            with trio.fail_after(PATIENCE_SECONDS):
                await self._connection.send_message(message)
        except ConnectionClosed:
            return  # what is received tells how

    async def receive(self, within: float = WAIT_SECONDS) -> str | bytes | Closed:
        if self._closed is not None:
            return self._closed
        try:
            with trio.fail_after(max(within, PATIENCE_SECONDS)):
                message: str | bytes = await self._connection.get_message()
        except ConnectionClosed as closed:
            reason = closed.reason
            self._closed = Closed(ABNORMAL) if reason is None else Closed(reason.code, reason.reason or "")
            return self._closed
        if isinstance(message, str):
            for observer in self._observers:
                observer.server_frame(message)
        return message

    async def close(self, code: int = 1000) -> None:
        with trio.move_on_after(CLOSE_SECONDS):
            await self._connection.aclose(code)
