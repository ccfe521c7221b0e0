"""Archiving sessions in which agents work in the background."""

from typing import Any

import pytest
import trio

from tests.sessions.branches import fork, talked
from tests.sessions.session_house import House, play

BUSY = play("- agent: helper", "  background: true", "  steps: [{wait: 600}]", "- say: begun")


async def agents(house: House, session_id: str) -> list[dict[str, Any]]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/agents")
    assert reply.status == 200, reply.text
    return list(reply.json["agents"])


@pytest.mark.req("SESS-61", "SESS-64")
async def test_agents_at_work_keep_their_session_and_its_ancestors(house: House) -> None:
    root = await talked(house, "one")
    busy = await talked(house, BUSY, session_id=(await fork(house, root))["id"])
    idle = (await fork(house, root))["id"]
    assert not house.supervisor.live(busy).is_running
    assert await house.archive(root) == {
        "archived": True,
        "archived_ids": [idle],
        "skipped": [
            {"id": busy, "reason": "background agents running"},
            {"id": root, "reason": f"child session {busy} is not archived"},
        ],
    }
    assert [agent["status"] for agent in await agents(house, busy)] == ["running"]


@pytest.mark.req("SESS-62")
async def test_force_ends_them_as_interrupted(house: House) -> None:
    root = await talked(house, "one")
    busy = await talked(house, BUSY, session_id=(await fork(house, root))["id"])
    answer = await house.archive(root, force="true")
    assert answer == {"archived": True, "archived_ids": [busy, root], "skipped": []}
    (agent,) = await agents(house, busy)
    assert (agent["status"], agent["end_reason"]) == ("interrupted", "archived")
    assert agent["ended_at"] is not None
    await trio.sleep(3600)  # and no turn begins because of it
    row = await house.row(busy)
    assert (row["status"], row["message_count"]) == ("archived", 4)


async def test_a_session_whose_agents_have_ended_goes(house: House) -> None:
    busy = await talked(house, BUSY)
    await trio.sleep(700)
    assert await house.archive(busy) == {"archived": True, "archived_ids": [busy], "skipped": []}
    assert [agent["end_reason"] for agent in await agents(house, busy)] == ["completed"]


async def test_agents_of_the_source_stay_with_it(house: House) -> None:
    source = await talked(house, BUSY)
    made = (await fork(house, source))["id"]
    (agent,) = await agents(house, source)
    assert await agents(house, made) == []
    reply = await house.alice.get(f"/api/sessions/{made}/agents/{agent['id']}")
    assert reply.status == 404
    assert (reply.json["detail"]["code"], reply.json["detail"]["owner_session_id"]) == (
        "agent_in_other_session",
        source,
    )
    await talked(house, "two", session_id=made)
    await house.archive(made, force="true")
    assert [each["status"] for each in await agents(house, source)] == ["running"]
