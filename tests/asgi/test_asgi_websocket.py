"""The WebSocket shell: refused before accept, closed after it, served, and ended in every way there is."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from nerve.asgi import Socket, SocketClosed
from nerve.contract.caller import Caller
from nerve.contract.route import AuthMode
from nerve.errors import ErrorCode, NerveError
from tests.asgi.stage import Conversation, open_house
from tests.asgi_client import Closed, Refused


async def echo(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
    while not isinstance(frame := await socket.receive(), SocketClosed):
        await socket.send(frame.encode() if isinstance(frame, str) else b"binary: " + frame.hex().encode())


@pytest.mark.req("WS-01", "WS-02", "WS-07")
async def test_frames_go_both_ways() -> None:
    house = open_house(conversation=echo)
    async with house.client.websocket() as socket:
        await socket.send_text("héllo")
        assert await socket.receive() == "héllo"
        await socket.send_bytes(b"\x00\xff")
        assert await socket.receive() == "binary: 00ff"
        await socket.close()
    assert house.undeclared == []


@pytest.mark.parametrize(
    "headers",
    [(("authorization", "Bearer alice"),), (("cookie", "nerve_token=alice"),)],
)
@pytest.mark.req("WS-02")
async def test_headers_and_cookies_admit_as_well(headers: tuple[tuple[str, str], ...]) -> None:
    client = open_house(conversation=echo).client.with_(token=None, headers=headers)
    async with client.websocket() as socket:
        await socket.send_text("hi")
        assert await socket.receive() == "hi"


async def test_the_actor_context_admits_in_external_mode() -> None:
    house = open_house(auth_mode=AuthMode.EXTERNAL)
    client = house.client.with_(token=None, headers=(("x-nerve-actor-context", "alice"),))
    async with client.websocket() as socket:
        await socket.expect_close(1000)
    async with open_house().client.with_(token=None, headers=client.headers).websocket() as socket:
        await socket.expect_close(4001)


@pytest.mark.parametrize(("token", "code"), [(None, 4001), ("nobody", 4001), ("early", 1013)])
@pytest.mark.req("WS-03", "WS-04", "AUTH-09")
async def test_who_is_not_admitted_is_accepted_and_closed(token: str | None, code: int) -> None:
    served = []

    async def conversation(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        served.append(caller)

    house = open_house(conversation=conversation)
    async with house.client.with_(token=token).websocket() as socket:
        closed = await socket.expect_close(code)
        assert closed.reason
    assert served == []
    assert house.undeclared == []


async def test_the_conversation_learns_who_and_what_but_not_the_token() -> None:
    seen: list[Any] = []

    async def conversation(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        seen.append((caller, dict(query)))

    client = open_house(conversation=conversation).client.with_(peer="203.0.113.5")
    async with client.websocket(query="session_id=s1&after_seq=4&after_seq=7") as socket:
        await socket.expect_close(1000)
    ((caller, query),) = seen
    assert query == {"session_id": "s1", "after_seq": "7"}
    assert (caller.actor_id, caller.peer, caller.request_id) == ("act_alice", "203.0.113.5", "req_1")


@pytest.mark.parametrize(
    ("path", "host", "status"),
    [("/ws", "evil.example.org", 421), ("/elsewhere", "localhost", 404), ("/ws/", "localhost", 404)],
)
async def test_what_is_refused_before_accept(path: str, host: str, status: int) -> None:
    client = open_house().client.with_(host=host)
    with pytest.raises(Refused) as refused:
        async with client.websocket(path):
            pass
    assert refused.value.reply is not None
    assert refused.value.reply.status == status
    assert "detail" in refused.value.reply.json
    assert refused.value.reply.headers["x-request-id"]
    with pytest.raises(Refused) as bare:
        async with client.websocket(path, refusal_replies=False):
            pass
    assert bare.value.reply is None


async def fail(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
    raise ZeroDivisionError("private")


async def fail_in_a_task(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(fail, caller, query, socket)


@pytest.mark.parametrize("conversation", [fail, fail_in_a_task])
@pytest.mark.req("GEN-09")
async def test_a_conversation_that_breaks_is_closed_and_logged_once(
    conversation: Conversation, caplog: pytest.LogCaptureFixture
) -> None:
    house = open_house(conversation=conversation)
    async with house.client.websocket() as socket:
        assert await socket.expect_close() == Closed(1011, "internal error")
    assert [name for name, _ in house.undeclared] == ["ws"]
    assert [record.name for record in caplog.records if record.levelname == "ERROR"] == ["nerve.asgi"]


async def test_only_admission_may_find_that_a_credential_names_nobody() -> None:
    async def conversation(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        raise NerveError(ErrorCode.UNAUTHENTICATED)

    house = open_house(conversation=conversation)
    async with house.client.websocket() as socket:
        await socket.expect_close(1011)
    assert [name for name, _ in house.undeclared] == ["ws"]


async def test_an_admission_that_breaks_is_closed_too() -> None:
    house = open_house()

    async def admit(credentials: Any) -> Caller:
        raise RuntimeError

    house.admission.admit = admit  # type: ignore[method-assign]
    async with house.client.websocket() as socket:
        await socket.expect_close(1011)
    assert [name for name, _ in house.undeclared] == ["ws"]


async def test_the_conversation_closes_in_its_own_words_once() -> None:
    async def conversation(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        assert socket.is_open
        await socket.send(b"{}")
        await socket.close(1008, "dé" * 100)
        assert not socket.is_open
        await socket.close(1000)
        await socket.send(b"too late")
        assert await socket.receive() == SocketClosed(1008)

    async with open_house(conversation=conversation).client.websocket() as socket:
        assert await socket.receive() == "{}"
        closed = await socket.expect_close(1008)
        assert closed.reason == "dé" * 41
        assert await socket.receive() == closed


async def test_the_conversation_hears_how_its_client_left_again_and_again() -> None:
    heard: list[Any] = []

    async def conversation(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        heard.extend([await socket.receive(), await socket.receive(), socket.code])
        await socket.send(b"into the void")

    house = open_house(conversation=conversation)
    for code in (1000, 1006, 4999):
        heard.clear()
        async with house.client.websocket() as socket:
            await socket.close(code)
        assert heard == [SocketClosed(code), SocketClosed(code), code]
    assert house.undeclared == []


async def test_a_send_to_a_client_that_has_gone_is_no_mistake() -> None:
    async def conversation(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        while socket.is_open:
            await socket.send(b"{}")

    house = open_house(conversation=conversation)
    async with house.client.websocket(window=1) as socket:
        assert await socket.receive() == "{}"
    assert house.undeclared == []


async def test_a_stalled_client_makes_send_wait_and_a_deadline_can_end_it(autojump_clock: MockClock) -> None:
    ends: list[Any] = []

    async def conversation(caller: Caller, query: Mapping[str, str], socket: Socket) -> None:
        with trio.move_on_after(10) as scope:
            while True:
                await socket.send(b"{}")
        ends.append((scope.cancelled_caught, trio.current_time()))

    async with open_house(conversation=conversation).client.with_(patience=60).websocket(window=3) as socket:
        await trio.sleep(20)
        assert ends == [(True, 10)]
        await socket.expect_close(1000)


async def test_shutdown_cancels_a_conversation(autojump_clock: MockClock) -> None:
    client = open_house(conversation=echo).client
    with trio.move_on_after(1) as scope:
        async with client.websocket():
            await trio.sleep_forever()
    assert scope.cancelled_caught


# --- lifespan -----------------------------------------------------------------------------------------------------


async def test_lifespan_says_yes_to_both() -> None:
    told = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    said: list[str] = []

    async def receive() -> dict[str, Any]:
        return told.pop(0)

    async def send(message: Any) -> None:
        said.append(message["type"])

    app: Any = open_house().client.app
    await app({"type": "lifespan"}, receive, send)
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    with pytest.raises(ValueError, match="gopher"):
        await app({"type": "gopher"}, receive, send)
