"""``GET /api/sessions/{id}/stream``: the event log as server-sent events (decisions D6)."""

import json
from typing import Any

import trio
import trio.testing

from tests.asgi_client import HttpExchange
from tests.sessions.session_house import House, play


def events(exchange: HttpExchange) -> list[dict[str, str]]:
    """What a client of server-sent events reads: one mapping of fields per event, comments as ``:``."""
    found = []
    for block in exchange.received.decode().split("\n\n")[:-1]:
        fields = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            fields[name or ":"] = value.removeprefix(" ")
        found.append(fields)
    return found


def frames(exchange: HttpExchange) -> list[dict[str, Any]]:
    return [json.loads(event["data"]) for event in events(exchange) if "data" in event]


async def until(exchange: HttpExchange, frame_type: str, count: int = 1) -> list[dict[str, Any]]:
    for _ in range(6000):
        if [frame["type"] for frame in frames(exchange)].count(frame_type) >= count:
            break
        await trio.sleep(0.01)
    return frames(exchange)


async def test_it_follows_a_session_across_turns_and_numbers_each_event(house: House) -> None:
    session_id = await house.create()
    async with house.alice.open("GET", f"/api/sessions/{session_id}/stream") as stream:
        await trio.testing.wait_all_tasks_blocked()
        await house.run(session_id, play("- say: one two"))
        await house.run(session_id, play("- say: three"))
        seen = await until(stream, "done", 2)
        assert stream.status == 200
        assert dict(stream.headers)[b"content-type"] == b"text/event-stream"
        assert [event["id"] for event in events(stream)] == [str(frame["seq"]) for frame in seen]
        assert [frame["seq"] for frame in seen] == list(range(1, len(seen) + 1))
        assert {frame["type"] for frame in seen} == {"user_message", "token", "done"}


async def test_without_a_number_it_starts_with_the_running_turn(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- say: before"))
    async with house.alice.websocket("/ws", query={"session_id": session_id}) as socket:
        text = play("- say: now", "- wait: 5", "- say: later")
        await socket.send_json({"type": "message", "session_id": session_id, "content": text})
        await socket.receive_until("token")
        async with house.alice.open("GET", f"/api/sessions/{session_id}/stream") as stream:
            seen = await until(stream, "done")
    assert [frame["type"] for frame in seen] == ["user_message", "token", "token", "done"]
    assert seen[0]["content"] == text


async def test_a_number_brings_what_came_after_it_and_no_more(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- think: a", "- say: b", "- think: c"))
    url = f"/api/sessions/{session_id}/stream"
    async with house.alice.open("GET", url, headers={"Last-Event-ID": "2"}) as stream:
        seen = await until(stream, "done")
    assert [frame["seq"] for frame in seen] == [3, 4, 5]


async def test_what_is_lost_is_a_gap_without_an_id(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- say: a"))
    await house.sql("DELETE FROM frames WHERE session_id = ? AND seq < 3", session_id)
    url = f"/api/sessions/{session_id}/stream"
    async with house.alice.open("GET", url, headers={"Last-Event-ID": "0"}) as stream:
        await until(stream, "done")
        first = events(stream)[0]
    assert "id" not in first
    assert json.loads(first["data"]) == {"type": "gap", "session_id": session_id, "from_seq": 1, "to_seq": 2}


async def test_silence_is_broken_by_a_comment(house: House) -> None:
    async with house.alice.open("GET", "/api/sessions/main/stream") as stream:
        await trio.sleep(31)
        assert events(stream) == [{":": "still here"}] * 2


async def test_an_unknown_session_and_a_bad_number_are_errors_of_the_usual_form(house: House) -> None:
    assert (await house.alice.get("/api/sessions/nowhere/stream")).json == {"detail": "Session not found"}
    bad = await house.alice.get("/api/sessions/main/stream", headers={"Last-Event-ID": "x"})
    assert bad.status == 422
    assert [problem["loc"] for problem in bad.json["detail"]] == [["header", "Last-Event-ID"]]


async def test_the_number_is_read_from_the_header_alone(house: House) -> None:
    await house.run("main", "hello")
    async with house.alice.open("GET", "/api/sessions/main/stream", query={"Last-Event-ID": "0"}) as stream:
        await trio.testing.wait_all_tasks_blocked()
        assert events(stream) == []


async def test_head_has_no_body_and_ends(house: House) -> None:
    reply = await house.alice.head("/api/sessions/main/stream")
    assert (reply.status, reply.text) == (200, "")


async def test_it_ends_with_its_client_and_leaves_nothing_behind(house: House) -> None:
    hub = house.services.hub
    async with house.alice.open("GET", "/api/sessions/main/stream"):
        await trio.testing.wait_all_tasks_blocked()
        assert len(hub) == 1
        assert hub.has_bound("main")
    await trio.testing.wait_all_tasks_blocked()
    assert len(hub) == 0
    assert not hub.has_bound("main")


async def test_it_ends_when_the_account_is_disabled_and_when_the_server_goes_down(house: House) -> None:
    for close in ("close_account", "close_all"):
        async with house.alice.open("GET", "/api/sessions/main/stream") as stream:
            await trio.testing.wait_all_tasks_blocked()
            if close == "close_account":
                house.services.hub.close_account("acc_alice", 1008)
            else:
                house.services.hub.close_all(1012)
            with trio.fail_after(5):
                await stream.ended.wait()


async def test_one_that_reads_nothing_is_given_up(house: House) -> None:
    session_id = await house.create()
    async with house.alice.open("GET", f"/api/sessions/{session_id}/stream") as stream:
        await trio.testing.wait_all_tasks_blocked()
        stream.reads = False
        await house.run(session_id, play("- say: a"))
        with trio.fail_after(30):
            await stream.ended.wait()
        assert len(house.services.hub) == 0
