"""A load client that costs far less than any server measured here: keep-alive connections, one request at a time."""

import asyncio
import time

from attrs import define, field, frozen


@frozen
class Load:
    """How one burst went: answers per second, and the latency of each in seconds."""

    rate: float
    latencies: list[float]


class BadAnswer(Exception):
    """The server did not answer 200, or hung up."""


@define(eq=False)
class _Connection(asyncio.Protocol):
    request: bytes
    deadline: float
    finished: asyncio.Future[None]
    latencies: list[float] = field(factory=list)
    _transport: asyncio.Transport | None = None
    _received: bytes = b""
    _sent_at: float = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def _ask(self) -> None:
        assert self._transport is not None
        self._sent_at = time.perf_counter()
        self._transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        received = self._received = self._received + data if self._received else data
        head = received.find(b"\r\n\r\n")
        if head < 0:
            return
        at = received.find(b"content-length: ", 0, head) + 16
        if at < 16 or not received.startswith(b"HTTP/1.1 200"):
            self._fail(received[:200])
            return
        if len(received) < head + 4 + int(received[at : received.index(b"\r", at)]):
            return
        self._received = b""
        now = time.perf_counter()
        self.latencies.append(now - self._sent_at)
        if now < self.deadline:
            self._ask()
        elif not self.finished.done():
            self.finished.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(b"the connection was closed")

    def _fail(self, what: bytes) -> None:
        if not self.finished.done():
            self.finished.set_exception(BadAnswer(what.decode("latin-1")))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def burst(port: int, path: str, token: str, *, connections: int, seconds: float) -> Load:
    """Ask for ``path`` as fast as answers come.  Raises BadAnswer."""
    return asyncio.run(_burst(port, _request(path, token), connections, seconds))


def _request(path: str, token: str) -> bytes:
    credential = f"Authorization: Bearer {token}\r\n" if token else ""
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{credential}\r\n".encode()


async def _burst(port: int, request: bytes, connections: int, seconds: float) -> Load:
    loop = asyncio.get_running_loop()
    begun = time.perf_counter()
    clients = [_Connection(request, begun + seconds, loop.create_future()) for _ in range(connections)]
    for client in clients:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]
    try:
        async with asyncio.timeout(seconds + 30):
            await asyncio.gather(*(client.finished for client in clients))
    finally:
        for client in clients:
            client.close()
    elapsed = time.perf_counter() - begun
    latencies = [latency for client in clients for latency in client.latencies]
    return Load(len(latencies) / elapsed, latencies)
