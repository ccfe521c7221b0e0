"""Archiving a subtree, and bringing a session back."""

from typing import Any

import pytest
import trio

from nerve.domain.attribution import Attribution
from nerve.domain.sessions import ArchiveReason
from tests.asgi_client import Reply
from tests.sessions.session_house import ALICE, House, open_house, play

LONG = play("- say: begun", "- wait: 600", "- say: over")


async def tree(house: House, **parents: str) -> dict[str, str]:
    """Sessions by name, each under the parent that is named for it."""
    made = {name: await house.create() for name in ["root", *parents]}
    for name, parent in parents.items():
        await house.sql("UPDATE sessions SET parent_session_id = ? WHERE id = ?", made[parent], made[name])
    return made


async def statuses(house: House, made: dict[str, str]) -> dict[str, str]:
    return {name: (await house.row(session_id))["status"] for name, session_id in made.items()}


async def start(house: House, nursery: trio.Nursery, session_id: str, text: str = LONG) -> list[Reply]:
    """Begins a turn over /api/chat; its reply is put into the list when it comes."""
    replies: list[Reply] = []

    async def chat() -> None:
        replies.append(await house.alice.post("/api/chat", json={"message": text, "session_id": session_id}))

    nursery.start_soon(chat)
    await trio.sleep(1)
    assert house.supervisor.live(session_id).is_running
    return replies


@pytest.mark.req("SESS-58", "SESS-64", "SESS-69")
async def test_an_archived_session_can_still_be_read(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id)
    native = (await house.row(session_id))["sdk_session_id"]
    assert await house.archive(session_id) == {"archived": True, "archived_ids": [session_id], "skipped": []}
    row = await house.row(session_id)
    assert (row["status"], row["sdk_session_id"]) == ("archived", native)
    assert row["archived_at"].endswith("Z")
    assert len((await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]) == 2
    event = (await house.events(session_id))[0]
    assert (event["event_type"], event["details"]) == ("archived", {"reason": "user", "force": False})
    assert (event["actor_id"], event["caused_by_actor_id"]) == (ALICE, ALICE)


@pytest.mark.req("SESS-58")
async def test_the_runtime_is_closed_and_a_message_brings_the_session_back(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id)
    await house.archive(session_id)
    await house.run(session_id)
    row = await house.row(session_id)
    assert (row["status"], row["archived_at"]) == ("active", None)
    # Two clients were opened: the first one ended with the archiving.
    started = [event for event in await house.events(session_id) if event["event_type"] == "started"]
    assert len(started) == 2


@pytest.mark.req("SESS-59")
@pytest.mark.parametrize("query", [{}, {"force": "true"}])
async def test_main_stays(house: House, query: dict[str, Any]) -> None:
    reply = await house.alice.post("/api/sessions/main/archive", query=query)
    assert (reply.status, reply.json) == (400, {"detail": "The session main can be neither deleted nor archived."})
    assert (await house.row("main"))["status"] == "created"


@pytest.mark.req("SESS-60")
async def test_the_whole_subtree_goes_deepest_first(house: House) -> None:
    made = await tree(house, a="root", b="root", a1="a", a11="a1", b1="b")
    outside = await house.create()
    answer = await house.archive(made["root"])
    order = answer["archived_ids"]
    assert sorted(order) == sorted(made.values())
    assert order[0] == made["a11"]
    assert order[-1] == made["root"]
    assert order.index(made["a1"]) < order.index(made["a"])
    assert order.index(made["b1"]) < order.index(made["b"])
    assert (await house.row(outside))["status"] == "created"
    reasons = {name: (await house.events(made[name]))[0]["details"]["reason"] for name in made}
    assert reasons == {"root": "user", **dict.fromkeys(("a", "b", "a1", "a11", "b1"), "cascade")}


@pytest.mark.req("SESS-61", "SESS-64")
async def test_what_runs_stays_and_so_do_its_ancestors(house: House) -> None:
    made = await tree(house, a="root", b="root", a1="a", a2="a")
    async with trio.open_nursery() as nursery:
        replies = await start(house, nursery, made["a1"])
        answer = await house.archive(made["root"])
        assert answer["archived"] is True
        assert sorted(answer["archived_ids"]) == sorted([made["a2"], made["b"]])
        assert answer["skipped"] == [
            {"id": made["a1"], "reason": "session is running"},
            {"id": made["a"], "reason": f"child session {made['a1']} is not archived"},
            {"id": made["root"], "reason": f"child session {made['a']} is not archived"},
        ]
        assert await statuses(house, made) == {
            "root": "created",
            "a": "created",
            "a1": "active",
            "a2": "archived",
            "b": "archived",
        }
        assert replies == []
        await house.alice.post(f"/api/sessions/{made['a1']}/stop")
    assert replies[0].status == 200


@pytest.mark.req("SESS-61")
async def test_a_child_that_runs_keeps_its_ancestors_beyond_an_archived_one(house: House) -> None:
    made = await tree(house, a="root", a1="a")
    await house.sql("UPDATE sessions SET status = 'archived', archived_at = created_at WHERE id = ?", made["a"])
    async with trio.open_nursery() as nursery:
        await start(house, nursery, made["a1"])
        answer = await house.archive(made["root"])
        assert answer["archived"] is False
        assert [skipped["id"] for skipped in answer["skipped"]] == [made["a1"], made["root"]]
        await house.alice.post(f"/api/sessions/{made['a1']}/stop")


@pytest.mark.req("SESS-62")
async def test_force_ends_the_turn_and_archives(house: House) -> None:
    made = await tree(house, a="root")
    async with trio.open_nursery() as nursery:
        replies = await start(house, nursery, made["a"])
        answer = await house.archive(made["root"], force="true")
    assert answer == {"archived": True, "archived_ids": [made["a"], made["root"]], "skipped": []}
    assert await statuses(house, made) == {"root": "archived", "a": "archived"}
    assert (replies[0].status, replies[0].json) == (502, {"detail": "The session was archived."})
    (user, assistant) = (await house.alice.get(f"/api/sessions/{made['a']}/messages")).json["messages"]
    assert (user["role"], assistant["role"]) == ("user", "assistant")
    assert assistant["content"] == "begun\n\nAgent error: The session was archived."
    assert (await house.events(made["a"]))[0]["details"] == {"reason": "cascade", "force": True}


@pytest.mark.req("SESS-62")
async def test_force_drops_what_waits_and_tells_everybody(house: House) -> None:
    session_id = await house.create()
    here = house.listen(session_id)
    async with trio.open_nursery() as nursery:
        running = await start(house, nursery, session_id)
        waiting = await start(house, nursery, session_id, "second")
        assert (await house.archive(session_id, force="true"))["archived_ids"] == [session_id]
    assert [reply[0].status for reply in (running, waiting)] == [502, 502]
    assert waiting[0].json == {"detail": "The session was archived."}
    assert [entry["reason"] for frame in here.of("queue_update") for entry in frame.get("removed", [])] == [
        "started",
        "cancelled",
    ]
    await trio.sleep(60)
    assert (await house.row(session_id))["status"] == "archived"
    assert len((await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]) == 2


@pytest.mark.req("SESS-62")
async def test_main_below_another_session_stays_with_its_ancestors_even_by_force(house: House) -> None:
    made = await tree(house, a="root")
    await house.sql("UPDATE sessions SET parent_session_id = ? WHERE id = 'main'", made["a"])
    answer = await house.archive(made["root"], force="true")
    assert answer["archived"] is False
    assert answer["skipped"] == [
        {"id": "main", "reason": "main cannot be archived"},
        {"id": made["a"], "reason": "child session main is not archived"},
        {"id": made["root"], "reason": f"child session {made['a']} is not archived"},
    ]


@pytest.mark.req("SESS-63")
async def test_nothing_archived(house: House) -> None:
    session_id = await house.create()
    await house.archive(session_id)
    assert await house.archive(session_id) == {"archived": False, "archived_ids": [], "skipped": []}
    assert [event["event_type"] for event in await house.events(session_id)] == ["archived", "created"]
    running = await house.create()
    async with trio.open_nursery() as nursery:
        await start(house, nursery, running)
        answer = await house.archive(running)
        assert answer == {
            "archived": False,
            "archived_ids": [],
            "skipped": [{"id": running, "reason": "session is running"}],
        }
        await house.alice.post(f"/api/sessions/{running}/stop")


async def test_a_message_that_waits_for_a_place_keeps_its_session(database: Any, tmp_path: Any) -> None:
    from nerve.runtime.limits import Limits

    async with open_house(database, tmp_path / "home", limits=Limits(max_concurrent=1)) as house:
        busy, waiting = await house.create(), await house.create()
        async with trio.open_nursery() as nursery:
            await start(house, nursery, busy)
            replies: list[Reply] = []

            async def chat() -> None:
                replies.append(await house.run(waiting, play("- say: my turn")))

            nursery.start_soon(chat)
            await trio.sleep(1)
            answer = await house.archive(waiting)
            assert answer["skipped"] == [{"id": waiting, "reason": "session is running"}]
            await house.alice.post(f"/api/sessions/{busy}/stop")
        assert replies[0].json["response"] == "my turn"


@pytest.mark.parametrize("force", ["", "maybe", "2"])
async def test_force_is_true_or_false(house: House, force: str) -> None:
    reply = await house.alice.post("/api/sessions/main/archive", query={"force": force})
    assert reply.status == 422
    assert reply.json["detail"][0]["loc"] == ["query", "force"]


async def test_other_reasons_are_recorded(house: House) -> None:
    session_id = await house.create()
    by = Attribution("act_system", None)
    await house.archiver().archive(session_id, by, reason=ArchiveReason.CLEANUP)
    event = (await house.events(session_id))[0]
    assert event["details"] == {"reason": "cleanup", "force": False}
    assert (event["actor_id"], event["caused_by_actor_id"]) == ("act_system", None)


@pytest.mark.req("SESS-19", "SESS-20", "SESS-69")
async def test_an_unarchived_session_is_idle_and_first(house: House) -> None:
    old, new = await house.create(), await house.create()
    await house.archive(old)
    await house.sql("UPDATE sessions SET updated_at = '2099-01-01T00:00:00.000Z' WHERE id = ?", new)
    reply = await house.alice.post(f"/api/sessions/{old}/unarchive")
    assert (reply.status, reply.json) == (200, {"unarchived": True})
    row = await house.row(old)
    assert (row["status"], row["archived_at"]) == ("idle", None)
    page = (await house.alice.get("/api/sessions")).json
    assert [row["id"] for row in page["sessions"]] == [old, new, "main"]
    assert page["archived_count"] == 0
    event = (await house.events(old))[0]
    assert (event["event_type"], event["details"], event["actor_id"]) == ("unarchived", {}, ALICE)


async def test_unarchiving_what_is_not_archived_changes_nothing(house: House) -> None:
    session_id = await house.create()
    before = await house.row(session_id)
    await trio.sleep(1)
    assert (await house.alice.post(f"/api/sessions/{session_id}/unarchive")).json == {"unarchived": True}
    assert await house.row(session_id) == before
    assert len(await house.events(session_id)) == 1


async def test_unarchiving_lifts_a_quarantine_and_the_queue_goes_on(house: House) -> None:
    session_id = await house.create()
    await house.sql("UPDATE sessions SET quarantined = 1, status = 'error' WHERE id = ?", session_id)
    body = {"message": play("- say: at last"), "session_id": session_id}
    refused = await house.alice.post("/api/chat", json=body)
    assert refused.status == 502
    assert "quarantined" in refused.json["detail"]
    await trio.sleep(5)
    assert len(await queue_of(house, session_id)) == 1
    assert (await house.row(session_id))["quarantined"] is True
    assert (await house.alice.post(f"/api/sessions/{session_id}/unarchive")).status == 200
    await trio.sleep(5)
    messages = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    assert [message["content"] for message in messages] == [body["message"], "at last"]
    assert (await house.row(session_id))["quarantined"] is False


async def test_a_quarantined_session_keeps_what_waits_through_the_archive(house: House) -> None:
    session_id = await house.create()
    await house.sql("UPDATE sessions SET quarantined = 1, status = 'error' WHERE id = ?", session_id)
    await house.sql(
        "INSERT INTO queue_entries (id, session_id, content, source, created_at)"
        " VALUES ('q_1', ?, 'still here', 'web', '2026-01-01T00:00:00.000Z')",
        session_id,
    )
    assert (await house.archive(session_id))["archived"] is True
    assert [entry["queue_id"] for entry in await queue_of(house, session_id)] == ["q_1"]
    await house.alice.patch(f"/api/sessions/{session_id}", json={"starred": True})
    await trio.sleep(5)
    assert await queue_of(house, session_id) == []
    row = await house.row(session_id)
    assert (row["quarantined"], row["message_count"]) == (False, 2)


async def queue_of(house: House, session_id: str) -> list[dict[str, Any]]:
    return (await house.alice.get(f"/api/sessions/{session_id}/queue")).json["items"]


@pytest.mark.req("GEN-11")
async def test_two_people_archive_the_same_tree_at_once(house: House) -> None:
    made = await tree(house, a="root", b="root", a1="a")
    answers: list[dict[str, Any]] = []

    async def one() -> None:
        answers.append(await house.archive(made["root"]))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(one)
    archived = [session_id for answer in answers for session_id in answer["archived_ids"]]
    assert sorted(archived) == sorted(made.values())
    assert [answer["skipped"] for answer in answers] == [[], [], []]


async def test_a_session_that_is_deleted_meanwhile_is_passed_by(house: House) -> None:
    made = await tree(house, a="root")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.archive, made["root"])
        nursery.start_soon(house.alice.delete, f"/api/sessions/{made['a']}")
    assert (await house.row(made["root"]))["status"] == "archived"
    assert (await house.alice.get(f"/api/sessions/{made['a']}")).status == 404
