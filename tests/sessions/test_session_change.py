"""Changing a session: title, star, model, parent; and what is recorded of it."""

from itertools import pairwise
from typing import Any

import pytest
import trio

from tests.asgi_client import Reply
from tests.sessions.session_house import ALICE, BOB, House, play


async def patch(house: House, session_id: str, **body: Any) -> Reply:
    return await house.alice.patch(f"/api/sessions/{session_id}", json=body)


async def changed(house: House, session_id: str, **body: Any) -> dict[str, Any]:
    reply = await patch(house, session_id, **body)
    assert reply.status == 200, reply.text
    assert reply.json == await house.row(session_id)
    return reply.json


async def changes(house: House, session_id: str) -> list[tuple[str, dict[str, Any]]]:
    """What people changed, oldest first."""
    events = await house.events(session_id)
    return [(e["event_type"], e["details"]) for e in reversed(events) if e["actor_id"] == ALICE][1:]


@pytest.mark.req("SESS-44", "SESS-68", "SESS-69")
async def test_a_title_changes_and_is_told_to_those_who_look(house: House) -> None:
    session_id, other = await house.create(title="First"), await house.create()
    here, elsewhere = house.listen(session_id), house.listen(other)
    row = await changed(house, session_id, title=" Second ")
    assert row["title"] == "Second"
    assert here.frames == [{"type": "session_updated", "session_id": session_id, "title": "Second"}]
    assert elsewhere.frames == []
    (event, _) = await house.events(session_id)
    assert (event["event_type"], event["details"]) == ("title_changed", {"title": "Second", "previous": "First"})
    assert (event["actor_id"], event["caused_by_actor_id"]) == (ALICE, ALICE)


@pytest.mark.req("SESS-69")
async def test_the_event_names_who_did_it_not_whose_session_it_is(house: House) -> None:
    session_id = await house.create()
    await house.bob.patch(f"/api/sessions/{session_id}", json={"title": "Bob was here"})
    (event, created) = await house.events(session_id)
    assert (event["actor_id"], event["caused_by_actor_id"]) == (BOB, BOB)
    assert created["actor_id"] == ALICE


@pytest.mark.req("SESS-45")
async def test_a_star_is_set_and_taken_away(house: House) -> None:
    session_id = await house.create()
    assert (await changed(house, session_id, starred=True))["starred"] is True
    assert (await changed(house, session_id, starred=False))["starred"] is False
    assert await changes(house, session_id) == [("starred", {}), ("unstarred", {})]


async def test_what_changes_nothing_is_not_recorded_and_not_told(house: House) -> None:
    session_id = await house.create(title="Same", model="scripted")
    here = house.listen(session_id)
    before = await house.row(session_id)
    await trio.sleep(1)
    assert before == await changed(
        house, session_id, title="Same", starred=False, model="scripted", parent_session_id=None
    )
    assert await changes(house, session_id) == []
    assert here.frames == []


@pytest.mark.req("SESS-19", "SESS-20", "SESS-45")
async def test_starring_an_archived_session_brings_it_back(house: House) -> None:
    session_id = await house.create()
    await house.archive(session_id)
    row = await changed(house, session_id, starred=True)
    assert (row["status"], row["archived_at"], row["starred"]) == ("idle", None, True)
    assert [event for event, _ in await changes(house, session_id)] == ["archived", "starred", "unarchived"]
    await changed(house, session_id, starred=True)
    assert len(await changes(house, session_id)) == 3


async def test_a_change_is_no_activity(house: House) -> None:
    session_id = await house.create()
    before = (await house.row(session_id))["updated_at"]
    await trio.sleep(1)
    row = await changed(house, session_id, title="New", starred=True, model="other")
    assert row["updated_at"] == before


@pytest.mark.req("SESS-46")
async def test_a_new_model_counts_from_the_next_turn_on(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id)
    assert (await house.row(session_id))["status"] == "active"
    native = (await house.row(session_id))["sdk_session_id"]
    row = await changed(house, session_id, model="scripted-large")
    assert row["model"] == "scripted-large"
    assert (await house.row(session_id))["status"] == "idle"
    assert await changes(house, session_id) == [("model_changed", {"model": "scripted-large", "previous": None})]
    await house.run(session_id)
    row = await house.row(session_id)
    assert (row["status"], row["sdk_session_id"]) == ("active", native)
    (usage,) = await house.sql("SELECT count(*) FROM session_events WHERE event_type = 'started'")
    assert usage == (2,)


@pytest.mark.req("SESS-46")
async def test_a_running_turn_keeps_its_model(house: House) -> None:
    session_id = await house.create()
    replies: list[Reply] = []

    async def turn() -> None:
        replies.append(await house.run(session_id, play("- wait: 5", "- say: done")))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn)
        await trio.sleep(1)
        await changed(house, session_id, model="scripted-large")
    assert replies[0].json["response"] == "done"
    assert (await house.row(session_id))["model"] == "scripted-large"
    assert len([event for event in await house.events(session_id) if event["event_type"] == "started"]) == 1
    await house.run(session_id)
    assert len([event for event in await house.events(session_id) if event["event_type"] == "started"]) == 2


@pytest.mark.req("SESS-47")
async def test_a_session_that_ran_moves_under_a_parent_and_away(house: House) -> None:
    parent, child = await house.create(), await house.create()
    await house.run(child)
    assert (await changed(house, child, parent_session_id=parent))["parent_session_id"] == parent
    state = (await house.alice.get(f"/api/sessions/{child}/status")).json
    assert state["parent_session_id"] == parent
    assert (await changed(house, child, parent_session_id=None))["parent_session_id"] is None
    assert await changes(house, child) == [
        ("parent_changed", {"parent_session_id": parent, "previous": None}),
        ("parent_changed", {"parent_session_id": None, "previous": parent}),
    ]


@pytest.mark.req("SESS-47")
async def test_a_parent_may_be_none_of_its_own_kin(house: House) -> None:
    chain = [await house.create() for _ in range(4)]
    for child in chain[1:]:
        await house.run(child)
    await house.run(chain[0])
    for parent, child in pairwise(chain):
        await changed(house, child, parent_session_id=parent)
    for session_id, parent in ((chain[0], chain[0]), (chain[0], chain[1]), (chain[0], chain[3]), (chain[2], chain[3])):
        reply = await patch(house, session_id, parent_session_id=parent)
        assert (reply.status, reply.json) == (400, {"detail": "A session can't be its own ancestor."})
    assert (await house.row(chain[0]))["parent_session_id"] is None


async def test_an_unknown_parent_and_a_session_that_never_ran(house: House) -> None:
    parent, child = await house.create(), await house.create()
    reply = await patch(house, child, parent_session_id="nowhere")
    assert (reply.status, reply.json) == (404, {"detail": "Parent session not found"})
    reply = await patch(house, child, parent_session_id=parent)
    assert reply.status == 409
    assert reply.json == {"detail": "A session that has not run yet can't be moved to another parent."}
    await house.run(child)
    assert (await patch(house, child, parent_session_id=parent)).status == 200


async def test_a_change_is_whole_or_not_at_all(house: House) -> None:
    session_id = await house.create(title="Kept")
    reply = await patch(house, session_id, title="Lost", starred=True, parent_session_id="nowhere")
    assert reply.status == 404
    row = await house.row(session_id)
    assert (row["title"], row["starred"]) == ("Kept", False)
    assert await changes(house, session_id) == []


@pytest.mark.req("SESS-34")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"colour": "red"}, 400),
        ({"title": ""}, 400),
        ({"title": "  "}, 400),
        ({"model": ""}, 400),
        ({"title": None}, 422),
        ({"title": "x" * 501}, 422),
        ({"starred": 1}, 422),
        ({"starred": "true"}, 422),
        ({"parent_session_id": 7}, 422),
    ],
)
async def test_a_change_that_is_none(house: House, body: dict[str, Any], status: int) -> None:
    session_id = await house.create(title="Kept")
    before = await house.row(session_id)
    reply = await patch(house, session_id, **body)
    assert reply.status == status
    assert await house.row(session_id) == before
    assert (await patch(house, "nowhere", **body)).status == (422 if status == 422 else 404)


@pytest.mark.req("SESS-34", "SESS-21")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/messages"),
        ("GET", "/status"),
        ("GET", "/events"),
        ("DELETE", ""),
        ("POST", "/archive"),
        ("POST", "/unarchive"),
    ],
)
async def test_an_unknown_session_is_404(house: House, method: str, path: str) -> None:
    reply = await house.alice.request(method, f"/api/sessions/nowhere{path}")
    assert (reply.status, reply.json) == (404, {"detail": "Session not found"})


async def test_a_session_that_never_ran_keeps_the_parent_it_came_from(house: House) -> None:
    parent, child = await house.create(), await house.create()
    await house.sql("UPDATE sessions SET parent_session_id = ? WHERE id = ?", parent, child)
    assert (await patch(house, child, parent_session_id=None)).status == 409
    assert (await changed(house, child, parent_session_id=parent))["parent_session_id"] == parent
