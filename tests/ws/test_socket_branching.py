"""Forking and resuming over the socket, and who is told of it and of an archive."""

from typing import Any

import pytest
import trio

from tests.runtime.tabs import of, tab
from tests.sessions.branches import asked, messages, remembered, talked
from tests.sessions.session_house import BOB, House


@pytest.mark.req("WS-19", "WS-55")
@pytest.mark.parametrize("prefix", ["", "msg-"])
async def test_a_fork_at_a_message(house: House, prefix: str) -> None:
    source = await talked(house, "one", "two")
    anchor = (await messages(house, source))[1]["id"]
    async with tab(house.bob) as bob, tab(house.alice, source) as alice, tab(house.alice) as elsewhere:
        await bob.send("fork", session_id=source, at_message_id=f"{prefix}{anchor}", title="My Fork")
        (forked,) = of(await bob.until("session_forked"), "session_forked")
        assert forked == {
            "type": "session_forked",
            "source_id": source,
            "fork_id": forked["fork_id"],
            "title": "My Fork",
        }
        assert of(await alice.beat(), "session_forked") == [forked]
        assert of(await elsewhere.beat(), "session_forked") == []
        assert of(await bob.beat(), "session_forked", "session_switched") == []  # told once, bound where it was
    row = await house.row(forked["fork_id"])
    assert (row["parent_session_id"], row["forked_from_message"], row["message_count"]) == (source, anchor, 2)
    assert (row["created_by_actor_id"], row["caused_by_actor_id"]) == (BOB, BOB)
    (event,) = await house.events(row["id"])
    assert (event["actor_id"], event["caused_by_actor_id"]) == (BOB, BOB)
    assert await asked(house, row["id"]) == ["one"]
    assert await remembered(house, row["id"]) == ["one"]


@pytest.mark.req("WS-19", "WS-55")
async def test_a_fork_of_the_whole(house: House) -> None:
    source = await talked(house, "one", "two")
    async with tab(house.alice, source) as alice:
        await alice.send("fork", session_id=source)
        (forked,) = of(await alice.until("session_forked"), "session_forked")
        assert forked["title"] == "Fork of Source"
        assert of(await alice.beat(), "session_forked") == []
    assert await asked(house, forked["fork_id"]) == ["one", "two"]


@pytest.mark.req("WS-55")
async def test_a_fork_over_rest_is_told_too(house: House) -> None:
    source = await talked(house, "one")
    async with tab(house.alice, source) as alice:
        made = (await house.bob.post("/api/sessions/fork", json={"source_session_id": source})).json
        (forked,) = of(await alice.until("session_forked"), "session_forked")
    assert (forked["source_id"], forked["fork_id"], forked["title"]) == (source, made["id"], made["title"])


@pytest.mark.parametrize(
    ("fork", "error"),
    [
        ({"session_id": "nowhere"}, "session_not_found"),
        ({"at_message_id": "msg-0"}, "The session has no such message."),
        ({"at_message_id": "msg-msg-1"}, "The session has no such message."),
        ({"at_message_id": ""}, "The session has no such message."),
    ],
)
async def test_what_can_t_be_forked_is_an_error(house: House, fork: dict[str, Any], error: str) -> None:
    source = await talked(house, "one")
    async with tab(house.alice, source) as alice:
        await alice.send("fork", **{"session_id": source, **fork})
        found = await alice.beat()
        assert found == [{"type": "error", "session_id": fork.get("session_id", source), "error": error}]
    assert await house.sql("SELECT count(*) FROM sessions WHERE id LIKE 'fork-%'") == [(0,)]


@pytest.mark.req("WS-20", "WS-56")
async def test_a_resume(house: House) -> None:
    session_id = await talked(house, "one")
    await trio.sleep(2 * 3600)
    async with tab(house.bob) as bob, tab(house.alice, session_id) as alice, tab(house.alice) as elsewhere:
        for _ in range(2):  # the second changes nothing, and only its sender is told
            await bob.send("resume", session_id=session_id)
            (frame,) = of(await bob.beat(), "session_resumed")
            assert frame == {"type": "session_resumed", "session_id": session_id}
        assert of(await alice.beat(), "session_resumed") == [frame]
        assert of(await elsewhere.beat(), "session_resumed") == []
    assert (await house.row(session_id))["status"] == "created"
    events = [e for e in await house.events(session_id) if e["details"] == {"reason": "resume"}]
    assert [(e["event_type"], e["actor_id"], e["caused_by_actor_id"]) for e in events] == [("created", BOB, BOB)]


async def test_a_resume_over_rest_is_told_too(house: House) -> None:
    session_id = await talked(house, "one")
    await trio.sleep(2 * 3600)
    async with tab(house.alice, session_id) as alice:
        assert (await house.bob.post(f"/api/sessions/{session_id}/resume")).status == 200
        assert len(of(await alice.beat(), "session_resumed")) == 1


async def test_what_can_t_be_resumed_is_an_error(house: House) -> None:
    fresh = await house.create()
    async with tab(house.alice) as alice:
        for session_id in (fresh, "nowhere"):
            await alice.send("resume", session_id=session_id)
        refused, unknown = of(await alice.beat(), "error")
    assert (refused["session_id"], unknown["error"]) == (fresh, "session_not_found")
    assert "conversation" in refused["error"]


async def test_whoever_looks_at_a_session_is_told_that_it_was_archived(house: House) -> None:
    source = await talked(house, "one")
    child = (await house.alice.post("/api/sessions/fork", json={"source_session_id": source})).json["id"]
    async with tab(house.alice, source) as parent, tab(house.bob, child) as below, tab(house.bob) as elsewhere:
        await house.archive(source)
        for each, session_id in ((parent, source), (below, child)):
            frames = of(await each.beat(), "session_archived")
            assert frames == [{"type": "session_archived", "session_id": session_id}]
        await house.archive(source)  # which it is already
        for each in (parent, below, elsewhere):
            assert of(await each.beat(), "session_archived") == []
