"""The in-memory client itself: it has to notice what an app may not do, or every other test is worth less."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from tests.asgi_client import AsgiClient, Closed, ProtocolViolation, Refused, Reply, Request

START = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
BODY = {"type": "http.response.body", "body": b"ok"}


def start(*headers: Any, status: Any = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def speaking(*messages: dict[str, Any]) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        for message in messages:
            await send(message)

    return app


async def test_a_correct_reply_passes() -> None:
    reply = await AsgiClient(speaking(START, BODY)).get("/")
    assert (reply.status, reply.body, reply.headers) == (200, b"ok", {"content-length": "2"})


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [START],
        [BODY],
        [START, START, BODY],
        [START, BODY, BODY],
        [START, {**BODY, "more_body": True}],
        [START, {**BODY, "body": b"o"}],
        [START, {**BODY, "body": b"too long"}],
        [START, {**BODY, "body": "ok"}],
        [{"type": "http.response.trailers"}],
        [start(status=199), BODY],
        [start(status="200"), BODY],
        [start((b"Content-Length", b"2")), BODY],
        [start(("content-length", "2")), BODY],
        [start((b"x a", b"2")), BODY],
        [start((b"x-a", b"b\r\nx-b: c")), BODY],
        [start((b"x-a", b" b")), BODY],
        [start((b"content-length", b"2"), (b"content-length", b"2")), BODY],
        [start((b"transfer-encoding", b"chunked")), BODY],
        [start((b"content-length", b"0"), status=204), {**BODY, "body": b""}],
        [start(status=204), BODY],
    ],
)
async def test_a_wrong_reply_does_not(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(ProtocolViolation):
        await AsgiClient(speaking(*messages)).get("/")


async def test_head_may_not_have_a_body() -> None:
    with pytest.raises(ProtocolViolation):
        await AsgiClient(speaking(START, BODY)).head("/")
    assert (await AsgiClient(speaking(START, {**BODY, "body": b""})).head("/")).body == b""


async def test_a_violation_is_noticed_even_if_the_app_swallows_it() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        try:
            await send(BODY)
        except AssertionError:
            await send(START)
            await send(BODY)

    with pytest.raises(ProtocolViolation):
        await AsgiClient(app).get("/")


async def test_what_the_app_raises_comes_out() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await AsgiClient(app).get("/")
    with pytest.raises(ZeroDivisionError):
        async with AsgiClient(app).websocket() as socket:
            await socket.receive()


async def test_an_app_that_stays_behind_is_noticed(autojump_clock: MockClock) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
        await trio.sleep_forever()

    client = AsgiClient(app, patience=3)
    with pytest.raises(ProtocolViolation, match="still ran 3 s"):
        async with client.open("GET", "/"):
            pass
    with pytest.raises(ProtocolViolation, match="still ran 3 s"):
        async with client.websocket():
            pass
    with pytest.raises(trio.TooSlowError):
        await client.get("/")


ACCEPT = {"type": "websocket.accept"}
TEXT = {"type": "websocket.send", "text": "{}"}
CLOSE = {"type": "websocket.close", "code": 1000}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [TEXT],
        [ACCEPT],
        [ACCEPT, ACCEPT],
        [ACCEPT, TEXT],
        [ACCEPT, CLOSE, TEXT],
        [ACCEPT, CLOSE, CLOSE],
        [CLOSE, ACCEPT],
        [ACCEPT, {"type": "websocket.send"}, CLOSE],
        [ACCEPT, {**TEXT, "bytes": b""}, CLOSE],
        [ACCEPT, {**CLOSE, "code": 1005}],
        [ACCEPT, {**CLOSE, "code": 999}],
        [ACCEPT, {**CLOSE, "code": 2000}],
        [ACCEPT, {**CLOSE, "reason": "x" * 124}],
        [ACCEPT, {"type": "websocket.http.response.start", "status": 403}],
        [{"type": "websocket.http.response.start", "status": 403}, ACCEPT],
        [{"type": "websocket.http.response.start", "status": 403}],
        [{"type": "websocket.http.response.body"}],
    ],
)
async def test_a_wrong_socket_is_noticed(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(ProtocolViolation):
        async with AsgiClient(speaking(*messages)).websocket() as socket:
            await socket.expect_close()


async def test_a_correct_socket_passes() -> None:
    async with AsgiClient(speaking(ACCEPT, TEXT, TEXT, CLOSE)).websocket() as socket:
        assert await socket.receive_json() == {}
        assert await socket.expect_close() == Closed(1000)
        assert await socket.receive() == Closed(1000)
    with pytest.raises(Refused):
        async with AsgiClient(speaking(CLOSE)).websocket():
            pass


async def test_observers_hear_of_replies_and_frames() -> None:
    class Notes:
        def __init__(self) -> None:
            self.taken: list[Any] = []

        def replied(self, request: Request, reply: Reply) -> None:
            self.taken.append((request.method, request.path, request.query, reply.status))

        def client_frame(self, text: str) -> None:
            self.taken.append(("client", text))

        def server_frame(self, text: str) -> None:
            self.taken.append(("server", text))

    notes = Notes()
    client = AsgiClient(speaking(START, BODY), observers=(notes,))
    await client.get("/a b?x=1")
    async with client.with_(app=speaking(ACCEPT, TEXT, TEXT, TEXT, CLOSE)).websocket() as socket:
        await socket.send_text("1")
        await socket.receive()
        assert await socket.receive_json() == {}
        await socket.expect_close()
    assert notes.taken == [
        ("GET", "/a%20b", b"x=1", 200),
        ("client", "1"),
        ("server", "{}"),
        ("server", "{}"),
        ("server", "{}"),
    ]


async def test_the_request_that_is_sent() -> None:
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope, body=b"")
        while True:
            message = await receive()
            seen["body"] += message["body"]
            if not message["more_body"]:
                break
        await send(START)
        await send(BODY)

    client = AsgiClient(app, token="t", headers=(("x-a", "1"),))
    await client.post("/p/%2F", json={"a": 1}, query={"q": "é"}, headers={"authorization": "Basic x"})
    assert (seen["raw_path"], seen["query_string"], seen["body"]) == (b"/p/%2F", b"q=%C3%A9", b'{"a": 1}')
    assert seen["headers"] == [
        (b"host", b"127.0.0.1:8900"),
        (b"x-a", b"1"),
        (b"content-type", b"application/json"),
        (b"content-length", b"8"),
        (b"authorization", b"Basic x"),
    ]
    await client.post("/p", content=[b"a", b"b"])
    assert seen["body"] == b"ab"
    assert (b"transfer-encoding", b"chunked") in seen["headers"]
