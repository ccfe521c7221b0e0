"""The same app behind real Hypercorn on loopback: what a test in memory can't show about bytes, framing and leaving."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio_websocket

from nerve.asgi import Socket, SocketClosed
from nerve.asgi.server import bind, serve
from nerve.contract.caller import Caller
from nerve.contract.route import EventStream, ReplyKind, Work
from tests.asgi.stage import House, Stage, Thing, default_endpoints, endpoint, open_house

pytestmark = pytest.mark.slow

BEARER = b"Authorization: Bearer alice\r\n"


@asynccontextmanager
async def served(house: House) -> AsyncIterator[int]:
    """Hypercorn on a free port, until the block ends."""
    listening, over = bind("127.0.0.1", 0), trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(
            lambda task_status: serve(house.client.app, listening, until=over.wait, task_status=task_status)
        )
        try:
            with trio.fail_after(20):
                yield int(listening.address.rpartition(":")[2])
        finally:
            over.set()


async def read_reply(stream: trio.SocketStream) -> tuple[int, dict[str, str], bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        received += await _some(stream)
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += await _some(stream)
    return int(status.split()[1]), headers, body


async def _some(stream: trio.SocketStream) -> bytes:
    data = bytes(await stream.receive_some(65536))
    assert data, "the server closed before its reply was whole"
    return data


async def ask(port: int, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(raw)
        return await read_reply(stream)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET /health HTTP/1.0\r\n\r\n", 200),
        (b"GET /api/things HTTP/1.0\r\n" + BEARER + b"\r\n", 421),
        (b"GET http://127.0.0.1/api/things HTTP/1.1\r\nHost: evil\r\n" + BEARER + b"\r\n", 200),
        (b"GET http://evil/api/things HTTP/1.1\r\nHost: 127.0.0.1\r\n" + BEARER + b"\r\n", 421),
        (b"GET /api/things/%ff%00 HTTP/1.1\r\nHost: localhost\r\n" + BEARER + b"\r\n", 404),
        (b"GET /api/things/%00?limit=%ff&&==& HTTP/1.1\r\nHost: localhost\r\n" + BEARER + b"\r\n", 200),
        (b"GET /api/things/a|b{}<> HTTP/1.1\r\nHost: localhost\r\n" + BEARER + b"\r\n", 200),
        (b"GET /api/things HTTP/1.1\r\nHost: localhost\r\nCookie: \xff=\xfe; nerve_token=\xff\r\n\r\n", 401),
        (b"GET /api/things HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: \xff\r\n" + BEARER + b"\r\n", 200),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"BREW /api/things HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GET /ws HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
    ],
)
@pytest.mark.req("GEN-05", "GEN-06", "GEN-07")
async def test_odd_requests_on_the_wire(raw: bytes, status: int) -> None:
    house = open_house()
    async with served(house) as port:
        answered, headers, body = await ask(port, raw)
    assert answered == status
    assert headers["content-type"] == "application/json"
    assert len(body) == int(headers["content-length"])
    assert house.undeclared == []


async def test_a_connection_is_kept_over_head_options_and_refused_bodies() -> None:
    async with served(open_house()) as port, await trio.open_tcp_stream("127.0.0.1", port) as stream:
        for raw, status in (
            (b"HEAD /api/things HTTP/1.1\r\nHost: localhost\r\n" + BEARER + b"\r\n", 200),
            (b"OPTIONS /api/things HTTP/1.1\r\nHost: localhost\r\n\r\n", 204),
            (b"POST /api/things HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", 401),
            (b"DELETE /api/things/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n" + BEARER + b"\r\nhello", 200),
            (b"POST /api/things HTTP/1.1\r\nHost: localhost\r\n" + BEARER
             + b"Transfer-Encoding: chunked\r\n\r\n4\r\n{\"id\r\n7\r\n\": \"x\"}\r\n0\r\n\r\n", 200),
            (b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        ):  # fmt: skip
            await stream.send_all(raw)
            if raw.startswith(b"HEAD"):
                head = await _some(stream)
                assert b"content-length: 25" in head
                assert head.endswith(b"\r\n\r\n")
                continue
            assert (await read_reply(stream))[0] == status


@pytest.mark.parametrize("declared", [True, False])
async def test_a_client_that_sends_all_before_it_reads_still_gets_its_refusal(declared: bool) -> None:
    size = 3_000_000
    async with (
        served(open_house(max_body_bytes=2_000_000)) as port,
        await trio.open_tcp_stream("127.0.0.1", port) as stream,
    ):
        framing = f"Content-Length: {size}" if declared else "Transfer-Encoding: chunked"
        await stream.send_all(
            f"POST /api/things HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n".encode() + BEARER + b"\r\n"
        )
        body = b"x" * size
        await stream.send_all(body if declared else b"%x\r\n%s\r\n0\r\n\r\n" % (size, body))
        status, headers, _ = await read_reply(stream)
        assert (status, headers["connection"]) == (413, "close")
        assert await stream.receive_some(1) == b""


async def test_a_read_ends_when_its_client_hangs_up() -> None:
    begun, ended = trio.Event(), trio.Event()

    async def handler(stage: Stage, caller: Any, params: Any, body: Any) -> Thing:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    house = open_house(endpoint("POST", "/a", handler, work=Work.CHECK))
    async with served(house) as port:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(b"POST /a HTTP/1.1\r\nHost: localhost\r\n" + BEARER + b"\r\n")
            await begun.wait()
        await ended.wait()


async def test_an_event_stream_opens_before_its_first_event() -> None:
    """A browser calls it open then; a proxy may give up on a head that does not come."""

    async def keep_quiet(send: Any) -> None:
        await trio.sleep_forever()

    async def handler(stage: Stage, caller: Any, params: Any, body: Any) -> EventStream:
        return EventStream(keep_quiet)

    events = endpoint("GET", "/events", handler, work=Work.STREAM, kind=ReplyKind.EVENT_STREAM, replies={200: str})
    house = open_house(events)
    async with served(house) as port:
        status, headers, body = await ask(port, b"GET /events HTTP/1.1\r\nHost: localhost\r\n" + BEARER + b"\r\n")
    assert (status, headers["content-type"], body) == (200, "text/event-stream", b"")
    assert house.undeclared == []


async def echo(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
    while not isinstance(frame := await socket.receive(), SocketClosed):
        await socket.send(frame.encode() if isinstance(frame, str) else frame)


@asynccontextmanager
async def connected(
    port: int, path: str, headers: Sequence[tuple[bytes, bytes]] = ()
) -> AsyncIterator[trio_websocket.WebSocketConnection]:
    """A socket over a stream of our own, so that it is closed however the handshake ends."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream, trio.open_nursery() as nursery:
        host = f"127.0.0.1:{port}"
        socket = await trio_websocket.wrap_client_stream(nursery, stream, host, path, extra_headers=list(headers))
        yield socket
        await socket.aclose()


@pytest.mark.req("WS-01", "WS-03", "WS-04")
async def test_sockets_on_the_wire() -> None:
    house = open_house(*default_endpoints(), conversation=echo)
    async with served(house) as port:
        async with connected(port, "/ws?token=alice") as socket:
            await socket.send_message("h\u00e9llo")
            assert await socket.get_message() == "h\u00e9llo"
        for path in ("/ws", "/ws?token=nobody"):
            async with connected(port, path) as socket:
                with pytest.raises(trio_websocket.ConnectionClosed) as closed:
                    await socket.get_message()
                assert closed.value.reason is not None
                assert closed.value.reason.code == 4001
    assert house.undeclared == []


async def test_a_foreign_page_gets_a_plain_refusal_of_its_upgrade() -> None:
    upgrade = (
        b"GET /ws?token=alice HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        b"Origin: https://evil.example.org\r\n\r\n"
    )
    async with served(open_house()) as port:
        status, headers, body = await ask(port, upgrade)
    assert (status, headers["content-type"]) == (403, "application/json")
    assert body == b'{"detail":"Requests from this origin are not allowed."}'
