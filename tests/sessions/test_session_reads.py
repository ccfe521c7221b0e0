"""Messages, status and events of a session."""

from typing import Any

import pytest
import trio

from nerve.runtime.reception import NewMessage
from tests.sessions.session_house import ALICE, BOB, House, play


async def messages(house: House, session_id: str, **query: Any) -> dict[str, Any]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages", query=query)
    assert reply.status == 200, reply.text
    return reply.json


async def status(house: House, session_id: str) -> dict[str, Any]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/status")
    assert reply.status == 200, reply.text
    return reply.json


# --- messages ---------------------------------------------------------------------------------------------------------


@pytest.mark.req("SESS-35", "SESS-36", "SESS-37", "SESS-38")
async def test_a_turn_leaves_two_messages(house: House) -> None:
    session_id = await house.create()
    usage = "- usage: {input_tokens: 9, output_tokens: 4, cost_usd: 0.25, max_context_tokens: 200000, num_turns: 1}"
    text = play("- think: hm", "- say: Hi", usage)
    await house.bob.post("/api/chat", json={"message": text, "session_id": session_id})
    page = await messages(house, session_id)
    user, assistant = page["messages"]
    assert (user["role"], user["content"], user["actor_id"], user["channel"]) == ("user", text, BOB, "api")
    assert (user["thinking"], user["blocks"], user["external_id"]) == (None, None, None)
    assert (assistant["role"], assistant["content"], assistant["thinking"]) == ("assistant", "Hi", "hm")
    assert assistant["actor_id"] is None
    assert assistant["blocks"] == [{"type": "thinking", "content": "hm"}, {"type": "text", "content": "Hi"}]
    assert assistant["native_turn_id"] == user["native_turn_id"]
    assert user["id"] < assistant["id"]
    assert user["created_at"].endswith("Z")
    assert page["last_usage"] == {
        "input_tokens": 9,
        "output_tokens": 4,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": 0,
        "max_context_tokens": 200000,
        "num_turns": 1,
    }


@pytest.mark.req("SESS-37", "SESS-38")
async def test_a_channels_message_names_nobody(house: House) -> None:
    session_id = await house.create()
    message = NewMessage(content="Hello", source="telegram", actor_id=None)
    submission = await house.supervisor.reception.submit(session_id, message)
    await house.supervisor.reception.outcome(submission)
    user, _ = (await messages(house, session_id))["messages"]
    assert (user["channel"], user["actor_id"]) == ("telegram", None)


async def test_a_new_session_has_neither_messages_nor_usage(house: House) -> None:
    assert await messages(house, await house.create()) == {"messages": [], "last_usage": None}


@pytest.mark.req("SESS-35", "GEN-06")
async def test_the_newest_come_oldest_first_and_page_back(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    for n in range(130):
        for owner in (session_id, other):
            await house.sql(
                "INSERT INTO messages (session_id, role, content, created_at)"
                " VALUES (?, 'user', ?, '2026-01-01T00:00:00.000Z')",
                owner,
                f"m{n}",
            )

    async def texts(**query: Any) -> list[str]:
        return [message["content"] for message in (await messages(house, session_id, **query))["messages"]]

    every = [f"m{n}" for n in range(130)]
    assert await texts() == every[-100:]
    assert await texts(limit=3) == every[-3:]
    assert await texts(limit=1000) == every
    for low in (0, -5, -(10**30)):
        assert await texts(limit=low) == every[-1:]
    assert await texts(limit=10**30) == every
    walked: list[str] = []
    before: dict[str, int] = {}
    while page := (await messages(house, session_id, limit=7, **before))["messages"]:
        walked = [message["content"] for message in page] + walked
        before = {"before_id": page[0]["id"]}
    assert walked == every
    assert await texts(before_id=0) == await texts(before_id=-1) == []
    assert await texts(before_id=10**30, limit=2) == every[-2:]
    for word in ("all", "1.0"):
        assert (await house.alice.get(f"/api/sessions/{session_id}/messages", query={"limit": word})).status == 422
        reply = await house.alice.get(f"/api/sessions/{session_id}/messages", query={"before_id": word})
        assert reply.status == 422


# --- status -----------------------------------------------------------------------------------------------------------

NINE = {
    "session_id",
    "status",
    "is_running",
    "background_count",
    "sdk_session_id",
    "connected_at",
    "parent_session_id",
    "message_count",
    "total_cost_usd",
}


@pytest.mark.req("SESS-49", "SESS-50")
async def test_the_state_of_a_new_session(house: House) -> None:
    session_id = await house.create()
    state = await status(house, session_id)
    assert set(state) == NINE | {"awaiting_input", "last_seq"}
    assert state == {
        "session_id": session_id,
        "status": "created",
        "is_running": False,
        "background_count": 0,
        "sdk_session_id": None,
        "connected_at": None,
        "parent_session_id": None,
        "message_count": 0,
        "total_cost_usd": 0.0,
        "awaiting_input": False,
        "last_seq": 0,
    }


@pytest.mark.req("SESS-49")
async def test_the_state_follows_a_turn(house: House) -> None:
    session_id = await house.create()
    here = house.listen(session_id)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id, play("- say: a", "- wait: 5", "- usage: {cost_usd: 0.25}"))
        await trio.sleep(1)
        state = await status(house, session_id)
        assert (state["is_running"], state["status"], state["message_count"]) == (True, "active", 1)
        assert state["connected_at"] is not None
        assert state["last_seq"] == max(frame["seq"] for frame in here.frames if "seq" in frame)
    state = await status(house, session_id)
    assert (state["is_running"], state["message_count"], state["total_cost_usd"]) == (False, 2, 0.25)
    assert state["sdk_session_id"] is not None
    shown = max(frame["seq"] for frame in here.frames if "seq" in frame)
    assert state["last_seq"] == shown
    await house.archive(session_id)  # closes the runtime: from here on the stored number counts
    assert (await status(house, session_id))["last_seq"] == shown


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.req("SESS-65", "SESS-67", "SESS-69", "SESS-70")
async def test_events_come_newest_first_with_who_and_why(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, "Tell me about Italy")
    await house.alice.patch(f"/api/sessions/{session_id}", json={"title": "Italy"})
    events = await house.events(session_id)
    assert [event["id"] for event in events] == sorted((event["id"] for event in events), reverse=True)
    by_type = {event["event_type"]: event for event in events}
    created, started = by_type["created"], by_type["started"]
    assert (created["details"], created["actor_id"], created["caused_by_actor_id"]) == ({"source": "web"}, ALICE, ALICE)
    native = (await house.row(session_id))["sdk_session_id"]
    assert (started["details"], started["actor_id"], started["caused_by_actor_id"]) == (
        {"sdk_session_id": native},
        None,
        None,
    )
    assert events[0] == {
        "id": events[0]["id"],
        "session_id": session_id,
        "event_type": "title_changed",
        "details": {"title": "Italy", "previous": "Tell me about Italy"},
        "actor_id": ALICE,
        "caused_by_actor_id": ALICE,
        "created_at": events[0]["created_at"],
    }


@pytest.mark.req("SESS-66", "GEN-06")
async def test_the_number_of_events_is_limited(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    for n in range(60):
        for owner in (session_id, other):
            await house.alice.patch(f"/api/sessions/{owner}", json={"title": f"t{n}"})

    async def count(**query: Any) -> int:
        reply = await house.alice.get(f"/api/sessions/{session_id}/events", query=query)
        assert reply.status == 200
        assert {event["session_id"] for event in reply.json["events"]} == {session_id}
        return len(reply.json["events"])

    assert [await count(), await count(limit=3), await count(limit=0), await count(limit=10**20)] == [50, 3, 1, 61]
    assert (await house.alice.get(f"/api/sessions/{session_id}/events", query={"limit": "x"})).status == 422


@pytest.mark.req("SESS-70")
async def test_what_the_runtime_does_has_no_actor(house: House) -> None:
    session_id = await house.create()
    await house.alice.post("/api/chat", json={"message": play("- fail: broken"), "session_id": session_id})
    await house.archive(session_id)
    by_type = {event["event_type"]: event for event in await house.events(session_id)}
    assert by_type["error"]["details"] == {"error": "broken"}
    assert (by_type["error"]["actor_id"], by_type["error"]["caused_by_actor_id"]) == (None, None)
