"""Resuming: the session goes on with its conversation at the next message."""

from typing import Any

import pytest
import trio

from tests.asgi_client import Reply
from tests.sessions.branches import conversations, fork, remembered, talked
from tests.sessions.session_house import ALICE, BOB, House, play


async def resume(house: House, session_id: str) -> Reply:
    return await house.bob.post(f"/api/sessions/{session_id}/resume")


async def resumed(house: House, session_id: str) -> dict[str, Any]:
    reply = await resume(house, session_id)
    assert reply.status == 200, reply.text
    row: dict[str, Any] = reply.json
    assert row == await house.row(session_id)
    return row


async def resumes(house: House, session_id: str) -> list[dict[str, Any]]:
    return [event for event in await house.events(session_id) if event["details"].get("reason") == "resume"]


@pytest.mark.req("SESS-56")
async def test_without_a_conversation_it_is_refused(house: House) -> None:
    fresh, source = await house.create(), await talked(house, "one")
    unrun = (await fork(house, source))["id"]
    for session_id in (fresh, unrun):
        before = await house.row(session_id)
        reply = await resume(house, session_id)
        assert reply.status == 400
        assert "conversation" in reply.json["detail"]
        assert await house.row(session_id) == before
        assert await resumes(house, session_id) == []


async def test_an_unknown_session_is_404(house: House) -> None:
    reply = await resume(house, "nowhere")
    assert (reply.status, reply.json) == (404, {"detail": "Session not found"})


async def stopped(house: House, session_id: str) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id, play("- say: begun", "- wait: 20"))
        await trio.sleep(1)
        await house.alice.post(f"/api/sessions/{session_id}/stop")


async def failed(house: House, session_id: str) -> None:
    await talked(house, play("- fail: no"), session_id=session_id)


async def idle(house: House, session_id: str) -> None:
    await trio.sleep(2 * 3600)


WAYS = {"stopped": stopped, "error": failed, "idle": idle}


@pytest.mark.req("SESS-57", "SESS-67", "SESS-69")
@pytest.mark.parametrize("status", sorted(WAYS))
async def test_it_is_created_again_and_goes_on(house: House, status: str) -> None:
    session_id = await talked(house, "one")
    await WAYS[status](house, session_id)
    before = await house.row(session_id)
    assert before["status"] == status
    row = await resumed(house, session_id)
    assert row == {**before, "status": "created"}
    assert row["sdk_session_id"] in conversations(house)
    (event,) = await resumes(house, session_id)
    assert (event["event_type"], event["details"]) == ("created", {"reason": "resume"})
    assert (event["actor_id"], event["caused_by_actor_id"]) == (BOB, BOB)
    assert (await remembered(house, session_id))[0] == "one"
    after = await house.row(session_id)
    assert (after["status"], after["sdk_session_id"]) == ("active", row["sdk_session_id"])
    assert after["caused_by_actor_id"] == ALICE


async def test_once_is_enough(house: House) -> None:
    session_id = await talked(house, "one")
    await idle(house, session_id)
    first = await resumed(house, session_id)
    assert await resumed(house, session_id) == first
    assert len(await resumes(house, session_id)) == 1


async def test_what_is_active_or_runs_stays_as_it_is(house: House) -> None:
    session_id = await talked(house, "one")
    assert (await resumed(house, session_id))["status"] == "active"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id, play("- wait: 5"))
        await trio.sleep(1)
        assert (await resumed(house, session_id))["status"] == "active"
        assert house.supervisor.live(session_id).is_running
    assert await resumes(house, session_id) == []


async def test_an_archived_one_comes_back(house: House) -> None:
    session_id = await talked(house, "one")
    await house.archive(session_id)
    row = await resumed(house, session_id)
    assert (row["status"], row["archived_at"]) == ("created", None)
    kinds = [event["event_type"] for event in await house.events(session_id)]
    assert kinds[:3] == ["created", "unarchived", "archived"]
    assert await remembered(house, session_id) == ["one"]


async def test_a_quarantine_is_lifted_and_what_waits_goes_on(house: House) -> None:
    session_id = await talked(house, "one")
    await house.sql("UPDATE sessions SET quarantined = 1, status = 'error' WHERE id = ?", session_id)
    reply = await house.alice.post("/api/chat", json={"message": "two", "session_id": session_id})
    assert reply.status == 502
    await resume(house, session_id)
    await trio.sleep(5)
    assert (await house.alice.get(f"/api/sessions/{session_id}/queue")).json["items"] == []
    assert await remembered(house, session_id) == ["one", "two"]
    assert (await house.row(session_id))["quarantined"] is False


async def test_its_parent_may_change_because_it_has_run(house: House) -> None:
    parent, session_id = await house.create(), await talked(house, "one")
    await idle(house, session_id)
    await resumed(house, session_id)
    reply = await house.alice.patch(f"/api/sessions/{session_id}", json={"parent_session_id": parent})
    assert reply.status == 200


@pytest.mark.req("GEN-11")
async def test_many_at_once_record_one(house: House) -> None:
    session_id = await talked(house, "one")
    await idle(house, session_id)
    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(resume, house, session_id)
    assert len(await resumes(house, session_id)) == 1
