"""The whole way, over real Hypercorn and a real file: claim, sign in, WebSocket, a streamed turn, and going down."""

import re
import signal
import time
from typing import Any

import pytest
import trio

from nerve.client import ApiError, ClientSocket, ClientTurn, NerveClient, SocketEnded, open_client, open_socket
from nerve.contract.generated.entities import LoginState
from nerve.contract.generated.frames_server import DoneFrame, ErrorFrame, ServerFrame, TokenFrame
from tests.live.instance import Instance, eventually
from tests.soak.scale import only_whole, within

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0
SLOW_PLAY = "#!nerve-scenario\n- say: one two three four five six seven eight nine ten eleven twelve\n  pace: 0.4\n"


async def text_of_turn(live: ClientSocket, content: str) -> tuple[str, list[ServerFrame]]:
    frames = [frame async for frame in await live.turn("main", content)]
    return "".join(frame.content for frame in frames if isinstance(frame, TokenFrame)), frames


async def until_it_ends(live: ClientSocket) -> None:
    while True:
        await live.receive()


def messages(instance: Instance, token: str) -> list[dict[str, Any]]:
    answer = instance.http("GET", "/api/sessions/main/messages", token)
    assert answer.status_code == 200
    found: list[dict[str, Any]] = answer.json()["messages"]
    return found


@pytest.mark.req("AUTH-17", "AUTH-28", "CLAIM-09")
async def test_a_fresh_instance_is_claimed_and_streams_a_turn(instance: Instance) -> None:
    instance.foreground()
    with trio.fail_after(PATIENCE_SECONDS):
        async with open_client(instance.address) as client:
            assert (await client.auth_status()).login is LoginState.SETUP
            token = instance.status()["setup_token"]
            await client.claim(token, "owner", "correct horse")
            with pytest.raises(ApiError) as again:
                await client.claim(token, "thief", "x")
            assert again.value.status in (403, 409)
        async with open_client(instance.address) as client:
            await client.login("correct horse")
            assert client.token is not None
            async with open_socket(instance.address, client.token) as live:
                text, frames = await text_of_turn(live, "#!nerve-scenario\n- say: Good morning to you.\n  pace: 0.05\n")
    assert text == "Good morning to you."
    assert isinstance(frames[-1], DoneFrame)
    assert sum(isinstance(frame, TokenFrame) for frame in frames) > 1
    roles = [(row["role"], row["content"]) for row in messages(instance, client.token)]
    assert roles[-1] == ("assistant", text)


@pytest.mark.req("HEALTH-01", "HEALTH-02", "HEALTH-03", "HEALTH-04", "HEALTH-06", "HEALTH-07")
def test_health_says_three_things_to_anybody(instance: Instance) -> None:
    child = instance.foreground()
    answers = [instance.http("GET", "/health", headers={"host": host}) for host in ("localhost", "evil.example")]
    assert [answer.status_code for answer in answers] == [200, 200]
    first, second = (answer.json() for answer in answers)
    assert first == second
    assert first.keys() == {"status", "version", "generation"}
    assert (first["status"], first["version"]) == ("ok", "0.1.0")
    # Neither the process number nor a clock is to be read from it.
    assert re.fullmatch(r"[0-9a-f]{16}", first["generation"])
    assert int(first["generation"], 16) > max(child.pid, time.time_ns() // 1_000_000_000)


async def test_a_credential_of_nobody_is_told_so(instance: Instance) -> None:
    instance.foreground()
    with trio.fail_after(PATIENCE_SECONDS), pytest.raises(SocketEnded, match="4001"):
        async with open_socket(instance.address, "nobody") as live:
            await live.receive()


async def test_disabling_an_account_at_the_command_line_closes_its_sockets(instance: Instance) -> None:
    instance.foreground()
    instance.claim()
    instance.must("account", "create", "bob", stdin="pw\n")
    with trio.fail_after(PATIENCE_SECONDS):
        async with open_client(instance.address) as client:
            await until_signed_in(client, "bob", "pw")
            assert client.token is not None
            async with open_socket(instance.address, client.token) as live:
                await live.receive()
                await trio.to_thread.run_sync(instance.must, "account", "disable", "bob")
                disabled = time.monotonic()
                with pytest.raises(SocketEnded, match="1008"):
                    await until_it_ends(live)
                assert time.monotonic() - disabled < within(1.5)
            with pytest.raises(ApiError) as refused:
                await client.login("pw", "bob")
            assert refused.value.status == 401


async def until_signed_in(client: NerveClient, username: str, password: str) -> None:
    """The daemon notices a new account within a second."""
    while client.token is None:
        try:
            await client.login(password, username)
        except ApiError:
            await trio.sleep(0.2)


async def begin_slow_turn(live: ClientSocket) -> tuple[ClientTurn, str]:
    """The turn's frames, of which the first tokens have come."""
    frames = await live.turn("main", SLOW_PLAY)
    async for frame in frames:
        if isinstance(frame, TokenFrame):
            return frames, frame.content
    raise AssertionError("the turn has ended already")


async def test_sigterm_interrupts_the_turn_tells_the_socket_and_ends_in_time(instance: Instance) -> None:
    child = instance.foreground()
    token = instance.claim()
    seen: list[ServerFrame] = []
    with trio.fail_after(PATIENCE_SECONDS):
        async with open_socket(instance.address, token) as live:
            frames, _ = await begin_slow_turn(live)
            child.send_signal(signal.SIGTERM)
            began = time.monotonic()
            seen = [frame async for frame in frames]
            with pytest.raises(SocketEnded, match="1012"):
                await until_it_ends(live)
        assert await trio.to_thread.run_sync(child.wait, 9) == 0
    assert time.monotonic() - began < within(8)
    assert isinstance(seen[-1], ErrorFrame)
    assert seen[-1].error == "Interrupted by restart"
    instance.foreground()
    last = messages(instance, token)[-1]
    assert last["role"] == "assistant"
    assert last["content"].startswith("one ")
    assert last["content"].endswith("[Interrupted by restart]")


@pytest.mark.req("GEN-10")
async def test_after_kill_9_the_turn_is_interrupted_and_its_text_is_kept(instance: Instance) -> None:
    child = instance.foreground()
    token = instance.claim()
    with trio.fail_after(PATIENCE_SECONDS):
        async with open_socket(instance.address, token) as live:
            _, first = await begin_slow_turn(live)
            await trio.sleep(0.5)
            child.kill()
            child.wait(60)
            with pytest.raises(SocketEnded):
                await until_it_ends(live)
    instance.foreground()
    rows = messages(instance, token)
    assert [row["role"] for row in rows] == ["user", "assistant"]
    assert rows[-1]["content"].startswith(first.split()[0])
    assert rows[-1]["content"].endswith("[Interrupted by restart]")


@pytest.mark.soak
@only_whole
async def test_a_second_signal_ends_it_at_once(instance: Instance) -> None:
    child = instance.foreground()
    token = instance.claim()
    with trio.fail_after(PATIENCE_SECONDS):
        async with open_socket(instance.address, token) as live:
            turn = await live.turn("main", "#!nerve-scenario\n- say: I do not listen.\n- stuck: 60\n")
            while not isinstance(await anext(turn), TokenFrame):
                pass
            child.send_signal(signal.SIGTERM)
            await trio.to_thread.run_sync(eventually, lambda: "going down" in instance.log)
            began = time.monotonic()
            child.send_signal(signal.SIGTERM)
            await trio.to_thread.run_sync(child.wait, 5)
    assert time.monotonic() - began < within(2)
