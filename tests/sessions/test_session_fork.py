"""Forking a session: which ones can be, what the fork shows, and what is recorded of it."""

from typing import Any

import pytest
import trio

from tests.sessions.branches import asked, conversations, fork, messages, talked, try_fork
from tests.sessions.session_house import ALICE, BOB, House, play, system_session

COPIED = ("role", "content", "thinking", "blocks", "created_at", "channel", "external_id", "actor_id")


def shown(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in COPIED if name in row} for row in rows]


# --- what can't be forked -----------------------------------------------------------------------------------------


@pytest.mark.req("SESS-51")
@pytest.mark.parametrize("source", ["nowhere", "", "fork-00000000", "x" * 5000, "\0", "'; --"])
async def test_an_unknown_source_is_404(house: House, source: str) -> None:
    for at in (None, 1):
        reply = await try_fork(house, source, at)
        assert (reply.status, reply.json) == (404, {"detail": "Session not found"})


@pytest.mark.req("SESS-51")
@pytest.mark.parametrize("odd", ["0", "-1", "1.0", " 1", "msg-1", "one", "", "٣", "9" * 18, "9" * 19, "1e3", "\0"])
async def test_a_message_that_is_not_of_the_source_is_404(house: House, odd: str) -> None:
    source = await talked(house, "one")
    reply = await try_fork(house, source, odd)
    assert (reply.status, reply.json) == (404, {"detail": "The session has no such message."})
    other = await talked(house, "elsewhere")
    reply = await try_fork(house, source, (await messages(house, other))[0]["id"])
    assert (reply.status, reply.json) == (404, {"detail": "The session has no such message."})
    assert await house.sql("SELECT count(*) FROM sessions WHERE id LIKE 'fork-%'") == [(0,)]


async def test_the_messages_of_a_deleted_session_are_no_anchors(house: House) -> None:
    source = await talked(house, "one")
    anchor = (await messages(house, source))[0]["id"]
    made = await fork(house, source, anchor)
    await house.alice.delete(f"/api/sessions/{source}")
    for session_id, what in ((source, "Session not found"), (made["id"], "The session has no such message.")):
        reply = await try_fork(house, session_id, anchor)
        assert (reply.status, reply.json) == (404, {"detail": what})


@pytest.mark.req("SESS-52")
async def test_without_a_conversation_it_is_409(house: House) -> None:
    source = await house.create()
    reply = await try_fork(house, source)
    assert reply.status == 409
    refusal = reply.json
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, source, play("- say: begun", "- wait: 2"))
        await trio.sleep(1)
        assert (await house.row(source))["sdk_session_id"] is not None
        reply = await try_fork(house, source)  # its first turn is still running
        assert (reply.status, reply.json) == (409, refusal)
    made = await fork(house, source)
    reply = await try_fork(house, made["id"])  # the fork has not run
    assert (reply.status, reply.json) == (409, refusal)
    reply = await try_fork(house, made["id"], (await messages(house, made["id"]))[0]["id"])
    assert (reply.status, reply.json) == (409, refusal)
    assert "fork" in refusal["detail"]


@pytest.mark.req("SESS-53")
async def test_a_message_without_a_native_turn_is_409(house: House) -> None:
    source = await talked(house, "one", play("- say: two", "- unmapped: true"), play("- say: three", "- crash: true"))
    for row in (await messages(house, source))[2:]:
        reply = await try_fork(house, source, row["id"])
        assert reply.status == 409
        assert "message" in reply.json["detail"]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, source, play("- wait: 2"))
        await trio.sleep(1)
        running = (await messages(house, source))[-1]
        assert running["role"] == "user"
        assert (await try_fork(house, source, running["id"])).status == 409
    assert (await try_fork(house, source, running["id"])).status == 200


@pytest.mark.parametrize(
    "body", [{"title": "x" * 501}, {"title": 7}, {"at_message_id": 7}, {"source_session_id": None}]
)
async def test_what_is_no_fork_is_422(house: House, body: dict[str, Any]) -> None:
    source = await talked(house, "one")
    assert (await try_fork(house, source, **body)).status == 422


# --- what the fork shows ------------------------------------------------------------------------------------------


@pytest.mark.req("SESS-54")
async def test_it_holds_the_messages_up_to_its_anchor(house: House) -> None:
    rich = play("- think: hm", "- tool: Bash", "  output: [x]", "- say: two")
    source = await talked(house, "one", rich, "three")
    all_rows = await messages(house, source)
    assert len(all_rows) == 6
    for count, anchor in enumerate(all_rows, 1):
        made = await fork(house, source, anchor["id"])
        assert (made["message_count"], made["forked_from_message"]) == (count, anchor["id"])
        rows = await messages(house, made["id"])
        assert shown(rows) == shown(all_rows[:count])
        assert {row["session_id"] for row in rows} == {made["id"]}
        assert not {row["id"] for row in rows} & {row["id"] for row in all_rows}
    whole = await fork(house, source)
    assert (whole["message_count"], whole["forked_from_message"]) == (6, None)
    assert shown(await messages(house, whole["id"])) == shown(all_rows)
    assert await messages(house, source) == all_rows


@pytest.mark.req("SESS-54", "SESS-28", "SESS-29")
async def test_its_row(house: House) -> None:
    source = await house.create(title="Plans", model="scripted-large")
    await house.run(source, play("- say: hi", "- usage: {input_tokens: 5, cost_usd: 0.5}"))
    await house.alice.patch(f"/api/sessions/{source}", json={"starred": True})
    reply = await house.bob.post("/api/sessions/fork", json={"source_session_id": source})
    made, original = reply.json, await house.row(source)
    assert made == await house.row(made["id"])
    assert made["id"].startswith("fork-")
    assert (made["title"], made["source"], made["status"]) == ("Fork of Plans", "web", "created")
    assert (made["parent_session_id"], made["message_count"], made["starred"]) == (source, 2, False)
    assert {name: made[name] for name in ("backend", "model", "cwd")} == {
        name: original[name] for name in ("backend", "model", "cwd")
    }
    assert (made["sdk_session_id"], made["connected_at"], made["total_cost_usd"]) == (None, None, 0.0)
    # The one who forks is its cause, whoever the source worked for.
    assert (original["caused_by_actor_id"], made["created_by_actor_id"], made["caused_by_actor_id"]) == (
        ALICE,
        BOB,
        BOB,
    )
    (event,) = await house.events(made["id"])
    assert (event["event_type"], event["details"]) == ("created", {"source": "web", "forked_from": source})
    assert (event["actor_id"], event["caused_by_actor_id"]) == (BOB, BOB)
    # Nothing of this is the source's: neither its place in the feed nor its record has changed.
    assert original["updated_at"] < made["updated_at"] or original["updated_at"] == made["created_at"]
    assert [row["id"] for row in (await house.alice.get("/api/sessions")).json["sessions"]][:2] == [source, made["id"]]


async def test_titles(house: House) -> None:
    source = await talked(house, "one")
    for title, wanted in (
        ("My Fork", "My Fork"),
        ("  padded ", "padded"),
        ("  ", "Fork of Source"),
        (None, "Fork of Source"),
    ):
        assert (await fork(house, source, title=title))["title"] == wanted
    await house.alice.patch(f"/api/sessions/{source}", json={"title": "ü" * 500})
    assert (await fork(house, source))["title"] == "Fork of " + "ü" * 492


async def test_a_fork_of_main_is_a_conversation_of_the_web(house: House) -> None:
    await talked(house, "one", session_id="main")
    made = await fork(house, "main")
    assert (made["source"], made["parent_session_id"]) == ("web", "main")
    assert made["id"] in [row["id"] for row in (await house.alice.get("/api/sessions")).json["sessions"]]


async def test_a_fork_is_listed_where_its_source_is(house: House) -> None:
    cron = await system_session(house, "cron:job:1")
    await talked(house, "one", session_id=cron)
    made = await fork(house, cron)
    assert made["source"] == "cron"
    assert {row["id"] for row in (await house.alice.get("/api/sessions/system")).json["sessions"]} == {cron, made["id"]}


async def test_an_archived_session_can_be_forked_and_stays_archived(house: House) -> None:
    source = await talked(house, "one")
    await house.archive(source)
    made = await fork(house, source)
    assert (made["status"], (await house.row(source))["status"]) == ("created", "archived")


# --- while the source runs ----------------------------------------------------------------------------------------


@pytest.mark.req("SESS-54")
async def test_a_running_turn_is_left_out(house: House) -> None:
    source = await talked(house, "one", "two")
    before = await messages(house, source)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, source, play("- say: 'begun '", "- wait: 2", "- say: over"))
        await trio.sleep(1)
        nursery.start_soon(house.run, source, "queued")
        await trio.sleep(1)
        whole, at_two = await fork(house, source), await fork(house, source, before[2]["id"])
    assert shown(await messages(house, whole["id"])) == shown(before)
    assert await asked(house, at_two["id"]) == ["one", "two"]
    assert len(await messages(house, source)) == 8


async def test_the_end_that_has_no_name_can_be_forked_only_while_nothing_runs(house: House) -> None:
    source = await talked(house, "one", play("- say: two", "- unmapped: true"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, source, play("- wait: 2"))
        await trio.sleep(1)
        assert (await try_fork(house, source)).status == 409
    assert len(conversations(house)) == 1


@pytest.mark.req("GEN-11")
async def test_many_forks_at_once(house: House) -> None:
    source = await talked(house, "one", play("- say: two", "- unmapped: true"))
    made: list[str] = []

    async def one() -> None:
        made.append((await fork(house, source))["id"])

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(one)
    assert len(set(made)) == 8
    for session_id in made:
        assert len(await messages(house, session_id)) == 4


@pytest.mark.req("GEN-11", "SESS-61")
@pytest.mark.parametrize("pause", range(8))
async def test_a_fork_that_is_made_while_its_source_is_archived(house: House, pause: int) -> None:
    source = await talked(house, "one")
    middle = (await fork(house, source))["id"]
    await house.run(middle, "two")
    answers: list[dict[str, Any]] = []

    async def archive() -> None:
        answers.append(await house.archive(source))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(archive)
        for _ in range(pause):
            await trio.lowlevel.checkpoint()
        made = await fork(house, middle)
    (answer,) = answers
    statuses = {each: (await house.row(each))["status"] for each in (source, middle, made["id"])}
    archived = {each for each, status in statuses.items() if status == "archived"}
    assert set(answer["archived_ids"]) == archived
    # Either the fork was there before its ancestors went, and keeps them or goes with them, or it came after.
    if made["id"] in {each["reason"].split()[2] for each in answer["skipped"]}:
        assert archived == set()
    else:
        assert {source, middle} <= archived
