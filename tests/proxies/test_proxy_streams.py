"""What stays open behind nginx and Caddy: sockets and event streams, as they come, and to their proper end."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio

from nerve.client import ClientSocket, ClientTurn, SocketEnded
from nerve.contract.generated.frames_server import DoneFrame, TokenFrame
from tests.live.instance import eventually
from tests.proxies.behind import CLIENT, Kind, Site, nerve_with, running, settings
from tests.soak.scale import only_whole, within
from tests.spec_client import judged

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 30.0
AT_ONCE_SECONDS = within(3.0)  # far below the pauses that the plays make
HALF = "#!nerve-scenario\n- say: first\n- wait: 60\n- say: second\n"


def new_session(site: Site) -> str:
    with site.client() as client:
        return str(judged(client.post("/api/sessions", json={})).json()["id"])


def stop(site: Site, session_id: str) -> None:
    with site.client() as client:
        assert judged(client.post(f"/api/sessions/{session_id}/stop", json={})).json()["turn"] == "stopped"


async def first_words(turn: ClientTurn) -> str:
    async for frame in turn:
        if isinstance(frame, TokenFrame):
            return frame.content
    raise AssertionError("the turn has ended already")


# --- sockets ----------------------------------------------------------------------------------------------------------


async def test_a_turn_is_seen_word_by_word(site: Site) -> None:
    session_id = await trio.to_thread.run_sync(new_session, site)
    with trio.fail_after(PATIENCE_SECONDS):
        async with site.socket() as live:
            turn = await live.turn(session_id, HALF)
            with trio.fail_after(AT_ONCE_SECONDS):
                assert await first_words(turn) == "first"
            await trio.to_thread.run_sync(stop, site, session_id)
            rest = [frame async for frame in turn]
            assert rest
            frames = [frame async for frame in await live.turn(session_id, "#!nerve-scenario\n- say: again\n")]
    assert isinstance(frames[-1], DoneFrame)


@pytest.mark.soak
@only_whole
async def test_great_frames_pass_both_ways(site: Site) -> None:
    """Far above every buffer that a proxy has, and nearly what one play may have."""
    session_id = await trio.to_thread.run_sync(new_session, site)
    words = "word " * 50_000
    with trio.fail_after(PATIENCE_SECONDS):
        async with site.socket() as live:
            play = f"#!nerve-scenario\n- say: '{words}'\n"
            frames = [frame async for frame in await live.turn(session_id, play)]
    assert "".join(frame.content for frame in frames if isinstance(frame, TokenFrame)) == words
    assert isinstance(frames[-1], DoneFrame)


async def test_a_socket_that_is_left_is_noticed(site: Site) -> None:
    before = site.nerve.instance.log.count("WEBSOCKET /ws")
    with trio.fail_after(PATIENCE_SECONDS):
        async with site.socket() as live:
            await live.receive()
        await trio.to_thread.run_sync(
            eventually, lambda: site.nerve.instance.log.count("WEBSOCKET /ws") > before, AT_ONCE_SECONDS
        )


# --- event streams ----------------------------------------------------------------------------------------------------


@contextmanager
def followed(site: Site, session_id: str, **headers: str) -> Iterator[httpx.Response]:
    with (
        site.client() as client,
        client.stream("GET", f"/api/sessions/{session_id}/stream", headers=headers) as answer,
    ):
        assert answer.headers["content-type"] == "text/event-stream"
        yield answer


def frames_of(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def chat_in_the_background(site: Site, session_id: str, message: str) -> threading.Thread:
    def chat() -> None:
        with site.client() as client:
            client.post("/api/chat", json={"message": message, "session_id": session_id})

    thread = threading.Thread(target=chat)
    thread.start()
    return thread


def test_an_event_stream_opens_at_once_and_each_event_comes_at_once(site: Site) -> None:
    session_id = new_session(site)
    asked = time.monotonic()
    with followed(site, session_id) as stream:
        assert time.monotonic() - asked < AT_ONCE_SECONDS, "it opened with its first event"
        began = time.monotonic()
        talking = chat_in_the_background(site, session_id, HALF)
        frames = frames_of(stream.iter_lines())
        assert [next(frames)["type"], next(frames)["content"]] == ["user_message", "first"]
        assert time.monotonic() - began < AT_ONCE_SECONDS
        stop(site, session_id)
        talking.join(PATIENCE_SECONDS)
        last = next(frame for frame in frames if frame["type"] in ("stopped", "done", "error"))
    with followed(site, session_id, **{"last-event-id": str(last["seq"] - 1)}) as again:
        assert next(frames_of(again.iter_lines())) == last


def test_a_stream_that_is_left_is_noticed(site: Site) -> None:
    request_id = f"left-{site.proxy.kind}"
    with followed(site, "main", **{"x-request-id": request_id}):
        pass
    assert site.peers(request_id, 1) == [CLIENT]


# --- Nerve goes and comes back ----------------------------------------------------------------------------------------


@pytest.fixture
def own(kind: Kind, tmp_path: Path) -> Iterator[Site]:
    with (
        nerve_with(settings(), tmp_path / "nerve") as nerve,
        running(kind, tmp_path / "proxy", nerve.upstream) as proxy,
    ):
        yield Site(nerve, proxy)


@pytest.mark.soak
@only_whole
async def test_a_restart_is_told_and_survived(own: Site) -> None:
    ended: list[str] = []
    with trio.fail_after(2 * PATIENCE_SECONDS):
        async with own.socket() as live, trio.open_nursery() as nursery:
            turn = await live.turn("main", HALF)
            await first_words(turn)
            nursery.start_soon(trio.to_thread.run_sync, _read_to_its_end, own, ended)
            await trio.to_thread.run_sync(eventually, lambda: ended == ["open"])
            child = own.nerve.child
            child.terminate()
            assert [frame async for frame in turn][-1].type == "error"
            with pytest.raises(SocketEnded, match="1012"):
                await _until_it_ends(live)
            assert await trio.to_thread.run_sync(child.wait, 9) == 0
        assert ended == ["open", "error", "whole"]
        await trio.to_thread.run_sync(_down, own)
        with pytest.raises(SocketEnded) as refused:
            async with own.socket():
                raise AssertionError("a socket to nobody")
        assert not refused.value.final
        await trio.to_thread.run_sync(own.nerve.start)
        async with own.socket("main") as live:
            frames = [frame async for frame in await live.turn("main", "#!nerve-scenario\n- say: back\n")]
    assert isinstance(frames[-1], DoneFrame)


async def _until_it_ends(live: ClientSocket) -> None:
    while True:
        await live.receive()


def _read_to_its_end(site: Site, ended: list[str]) -> None:
    with followed(site, "main") as stream:
        for frame in frames_of(stream.iter_lines()):
            if frame["type"] == "token":
                ended.append("open")
            if frame["type"] == "error":
                ended.append("error")
    ended.append("whole")  # a stream that was cut off would have raised


def _down(site: Site) -> None:
    with site.client() as client:
        began = time.monotonic()
        for _ in range(3):
            assert client.get("/api/auth/me").status_code == 502
        assert time.monotonic() - began < AT_ONCE_SECONDS
