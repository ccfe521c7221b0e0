"""Deleting a session: all of it goes, and who did it stays."""

from functools import partial
from typing import Any

import pytest
import trio

from nerve.store.deletions import KEPT
from tests.asgi_client import Reply
from tests.sessions.session_house import ALICE, BOB, House, play

KEPT_WITHOUT_IT = {"session_deletions", "mcp_tool_usage"}
FULL = {
    "turns",
    "messages",
    "seen_client_messages",
    "frames",
    "session_events",
    "session_usage",
    "session_file_snapshots",
    "channel_sessions",
    "session_agents",
    "session_wakeups",
}
BUSY_LIFE = play(
    "- write: notes.md",
    "  content: x",
    "- usage: {input_tokens: 1}",
    "- agent: helper",
    "  steps: [{say: helped}]",
    "- agent: behind",
    "  background: true",
    "  steps: [{wait: 600}]",
    "- wakeup: 600",
    "  prompt: later",
    "- say: done",
)


async def delete(house: House, session_id: str) -> Reply:
    return await house.alice.delete(f"/api/sessions/{session_id}")


async def left(house: House, session_id: str) -> set[str]:
    """The tables that hold something of it, out of all that could."""
    tables = await house.sql(
        "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c"
        " WHERE t.type = 'table' AND c.name = 'session_id'"
    )
    found = set()
    for (table,) in tables:
        if await house.sql(f"SELECT 1 FROM {table} WHERE session_id = ? LIMIT 1", session_id):
            found.add(table)
    return found - KEPT_WITHOUT_IT


@pytest.mark.req("SESS-39", "SESS-42")
async def test_nothing_of_it_is_left(house: House) -> None:
    reply = await house.alice.post(
        "/api/chat",
        json={"message": BUSY_LIFE, "client_msg_id": "once"},
    )
    session_id = reply.json["session_id"]
    await trio.sleep(1)
    assert await left(house, session_id) == FULL
    assert await house.sql("SELECT 1 FROM session_agent_items LIMIT 1") == [(1,)]
    native = (await house.row(session_id))["sdk_session_id"]
    known = house.services.config.paths.home / "scripted"
    assert any(native in path.name for path in known.iterdir())
    assert (await delete(house, session_id)).json == {"deleted": True}
    assert await left(house, session_id) == set()
    assert await house.sql("SELECT * FROM session_agent_items") == []
    assert not any(native in path.name for path in known.iterdir())
    for path in ("", "/messages", "/status", "/events", "/queue"):
        assert (await house.alice.get(f"/api/sessions/{session_id}{path}")).status == 404
    assert [row["id"] for row in (await house.alice.get("/api/sessions")).json["sessions"]] == ["main"]
    assert (await delete(house, session_id)).status == 404
    assert await house.sql("PRAGMA foreign_key_check") == []


@pytest.mark.req("SESS-43")
async def test_the_delete_is_recorded(house: House) -> None:
    session_id = await house.create(title="Gone soon")
    await house.bob.delete(f"/api/sessions/{session_id}")
    columns = "session_id, title, source, created_by_actor_id, actor_id, caused_by_actor_id"
    assert await house.sql(f"SELECT {columns} FROM session_deletions") == [
        (session_id, "Gone soon", "web", ALICE, BOB, BOB)
    ]


@pytest.mark.req("SESS-43")
async def test_records_of_deletes_are_kept_ninety_days(house: House) -> None:
    ages = {}
    for days in (0, 1, 90):
        await trio.sleep(days * 86_400)
        ages[await house.create()] = days
        await delete(house, list(ages)[-1])
    assert KEPT.days == 90
    assert await house.sql("SELECT session_id FROM session_deletions ORDER BY id") == [(i,) for i in list(ages)[1:]]


@pytest.mark.req("SESS-40")
async def test_main_is_refused(house: House) -> None:
    reply = await delete(house, "main")
    assert (reply.status, reply.json) == (400, {"detail": "The session main can be neither deleted nor archived."})
    assert (await house.row("main"))["id"] == "main"
    assert await house.sql("SELECT count(*) FROM session_deletions") == [(0,)]


@pytest.mark.req("SESS-41")
async def test_a_turn_ends_first_and_its_caller_is_told(house: House) -> None:
    session_id = await house.create()
    here = house.listen(session_id)
    replies: dict[str, Reply] = {}

    async def chat(message: str) -> None:
        body = {"message": message, "session_id": session_id}
        replies[message] = await house.alice.post("/api/chat", json=body)

    running, waiting = play("- wait: 600"), "afterwards"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chat, running)
        await trio.sleep(1)
        nursery.start_soon(chat, waiting)
        await trio.sleep(1)
        assert (await delete(house, session_id)).status == 200
    told = [(reply.status, reply.json) for reply in (replies[running], replies[waiting])]
    assert told == [(502, {"detail": "The session was deleted."})] * 2
    assert here.of("error")[-1]["error"] == "The session was deleted."
    running_frames = here.of("session_running")
    assert [frame["is_running"] for frame in running_frames][-1] is False
    assert running_frames[-1]["session_id"] == session_id
    assert not house.supervisor.live(session_id).is_running
    assert await left(house, session_id) == set()


@pytest.mark.req("SESS-41")
@pytest.mark.parametrize("pause", range(12))
async def test_a_turn_that_is_just_beginning_ends_too(house: House, pause: int) -> None:
    session_id = await house.create()
    replies: list[Reply] = []

    async def chat() -> None:
        body = {"message": play("- wait: 3000"), "session_id": session_id}
        replies.append(await house.alice.post("/api/chat", json=body))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(chat)
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        began = trio.current_time()
        assert (await delete(house, session_id)).status == 200
        assert trio.current_time() - began < 10
    assert replies[0].status in (404, 502)
    assert await left(house, session_id) == set()


@pytest.mark.req("SESS-39")
async def test_everybody_is_told_that_it_does_not_run(house: House) -> None:
    session_id = await house.create()
    everywhere = house.listen()
    await delete(house, session_id)
    assert everywhere.frames == [
        {
            "type": "session_running",
            "session_id": session_id,
            "is_running": False,
            "pending_wakeup_at": None,
            "pending_wakeup_created_by_actor_id": None,
            "pending_wakeup_caused_by_actor_id": None,
            "has_background_tasks": False,
            "background_count": 0,
        }
    ]


async def test_children_of_a_deleted_session_stay(house: House) -> None:
    parent, child = await house.create(), await house.create()
    await house.run(child)
    await house.alice.patch(f"/api/sessions/{child}", json={"parent_session_id": parent})
    await delete(house, parent)
    assert (await house.row(child))["parent_session_id"] is None


async def test_two_deletes_at_once_delete_once(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id)
    statuses: list[int] = []

    async def one() -> None:
        statuses.append((await delete(house, session_id)).status)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(one)
    assert sorted(statuses) == [200, 404, 404, 404, 404]
    assert await house.sql("SELECT count(*) FROM session_deletions") == [(1,)]


async def test_the_channel_starts_anew_after_its_session_is_gone(house: House) -> None:
    async def chat() -> Any:
        return (await house.alice.post("/api/chat", json={"message": "Hello"})).json["session_id"]

    first = await chat()
    assert await chat() == first
    await delete(house, first)
    assert await chat() != first


async def test_what_waits_is_told_to_be_gone_with_the_session(house: House) -> None:
    session_id = await house.create()
    listener = house.listen(session_id)
    async with trio.open_nursery() as nursery:
        for number, text in enumerate((play("- wait: 60"), "queued")):
            body = {"message": text, "session_id": session_id, "client_msg_id": f"m{number}"}
            nursery.start_soon(partial(house.alice.post, "/api/chat", json=body))
            await trio.sleep(1)
        await delete(house, session_id)
    gone = listener.of("queue_update")[-1]
    assert gone["queue"] == []
    assert [(entry["client_msg_id"], entry["reason"]) for entry in gone["removed"]] == [("m1", "cancelled")]
