"""What a proxy's patience rests on: the server never is silent for half a minute, nor the first to leave.

The clock is the test's; what idles for real through nginx and Caddy is tests/soak/test_soak_proxies.py.
"""

import math
from itertools import pairwise

import pytest
import trio
from trio.testing import MockClock
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Ping, Request, TextMessage

from nerve.asgi.protocol import Receive, Scope, Send
from nerve.asgi.server import bind, serve

PROMISED_SECONDS = 30.0
QUIET_MINUTES = 20
POOLED_SECONDS = 120.0  # how long Caddy keeps a connection for the next request; nginx, where it is told to, 60


@pytest.fixture
def autojump_clock() -> MockClock:
    """Jumps once the loopback has had its moment, too."""
    return MockClock(autojump_threshold=0.02)


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def test_a_quiet_socket_is_pinged_in_good_time_for_as_long_as_it_is_quiet(autojump_clock: MockClock) -> None:
    listening = bind("127.0.0.1", 0)
    over, spoken, echoed = trio.Event(), [0.0], ""
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: serve(echo, listening, until=over.wait, task_status=task_status))
        stream = await trio.open_tcp_stream(*listening.socket.getsockname())
        protocol = WSConnection(ConnectionType.CLIENT)
        await stream.send_all(protocol.send(Request(host="localhost", target="/ws")))
        quiet_until, asked = math.inf, False
        while not echoed:
            protocol.receive_data(await stream.receive_some())
            for event in protocol.events():
                match event:
                    case AcceptConnection():
                        spoken = [trio.current_time()]
                        quiet_until = trio.current_time() + 60 * QUIET_MINUTES
                    case Ping():
                        spoken.append(trio.current_time())
                        await stream.send_all(protocol.send(event.response()))
                    case TextMessage(data=text):
                        echoed = text
            if trio.current_time() >= quiet_until and not asked:
                asked = True
                await stream.send_all(protocol.send(TextMessage("still there?")))
        over.set()
        await stream.aclose()
    assert echoed == "still there?"
    assert len(spoken) > 60 * QUIET_MINUTES / PROMISED_SECONDS
    pauses = [later - earlier for earlier, later in pairwise(spoken)]
    assert max(pauses) <= PROMISED_SECONDS


async def test_a_connection_between_requests_is_the_proxys_to_close(autojump_clock: MockClock) -> None:
    """A request that meets the server's own close on its way is a 502 that nobody can explain."""
    listening, over = bind("127.0.0.1", 0), trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: serve(echo, listening, until=over.wait, task_status=task_status))
        stream = await trio.open_tcp_stream(*listening.socket.getsockname())
        for _ in range(3):
            await stream.send_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert (await stream.receive_some()).startswith(b"HTTP/1.1 204 ")
            with trio.move_on_after(POOLED_SECONDS):
                raise AssertionError(await stream.receive_some())
        over.set()
        await stream.aclose()
