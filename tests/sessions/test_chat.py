"""``POST /api/chat``: one message in, one complete answer out."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.asgi_client import Reply
from tests.sessions.session_house import ALICE, House, open_house, play


async def chat(house: House, message: str, **body: Any) -> Reply:
    return await house.alice.post("/api/chat", json={"message": message, **body})


async def contents(house: House, session_id: str) -> list[str]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    return [message["content"] for message in reply.json["messages"]]


@pytest.mark.req("CHAT-01")
async def test_the_reply_is_the_whole_answer(house: House) -> None:
    session_id = await house.create()
    text = play("- say: Hello", "- tool: Bash", "- think: hm", "- say: ' world'", "  pace: 3")
    reply = await chat(house, text, session_id=session_id)
    assert (reply.status, reply.json) == (200, {"response": "Hello world", "session_id": session_id})
    assert await contents(house, session_id) == [text, "Hello world"]


@pytest.mark.req("CHAT-02")
async def test_a_repeated_id_runs_nothing(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    first = await chat(house, play("- say: once"), session_id=session_id, client_msg_id="m-1")
    assert first.json["response"] == "once"
    again = await chat(house, play("- say: twice"), session_id=session_id, client_msg_id="m-1")
    assert (again.status, again.json) == (200, {"response": "", "session_id": session_id})
    assert len(await contents(house, session_id)) == 2
    elsewhere = await chat(house, play("- say: other"), session_id=other, client_msg_id="m-1")
    assert elsewhere.json["response"] == "other"
    await trio.sleep(timedelta(minutes=10).total_seconds() + 1)
    late = await chat(house, play("- say: late"), session_id=session_id, client_msg_id="m-1")
    assert late.json["response"] == "late"


@pytest.mark.req("CHAT-02", "GEN-11")
async def test_the_same_id_twenty_times_at_once_runs_once(house: House) -> None:
    session_id = await house.create()
    answers: list[str] = []

    async def one() -> None:
        text = play("- wait: 1", "- say: once")
        reply = await chat(house, text, session_id=session_id, client_msg_id="m-1")
        assert reply.status == 200
        answers.append(reply.json["response"])

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(one)
    assert sorted(answers) == [""] * 19 + ["once"]
    assert len(await contents(house, session_id)) == 2


@pytest.mark.req("CHAT-03")
async def test_it_waits_in_the_queue_for_the_turn_before_it(house: House) -> None:
    session_id = await house.create()
    answers: list[str] = []

    async def one(text: str) -> None:
        answers.append((await chat(house, play("- wait: 5", f"- say: {text}"), session_id=session_id)).json["response"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, "first")
        await trio.sleep(1)
        nursery.start_soon(one, "second")
        await trio.sleep(1)
        (entry,) = (await house.alice.get(f"/api/sessions/{session_id}/queue")).json["items"]
        assert (entry["source"], entry["actor_id"], entry["internal"]) == ("api", ALICE, False)
    assert answers == ["first", "second"]


@pytest.mark.req("CHAT-04")
async def test_it_needs_a_credential(house: House) -> None:
    reply = await house.alice.with_(token=None).post("/api/chat", json={"message": "Hello"})
    assert reply.status == 401
    assert await contents(house, "main") == []


@pytest.mark.req("CHAT-05")
@pytest.mark.parametrize(
    ("body", "loc"),
    [
        ({}, ["body", "message"]),
        ({"message": ""}, ["body", "message"]),
        ({"message": None}, ["body", "message"]),
        ({"message": 5}, ["body", "message"]),
        ({"message": "x", "session_id": 5}, ["body", "session_id"]),
        ({"message": "x", "client_msg_id": ""}, ["body", "client_msg_id"]),
        ({"message": "x", "client_msg_id": "x" * 201}, ["body", "client_msg_id"]),
    ],
)
async def test_a_body_without_a_message_is_refused(house: House, body: dict[str, Any], loc: list[str]) -> None:
    reply = await house.alice.post("/api/chat", json=body)
    assert reply.status == 422
    assert [problem["loc"] for problem in reply.json["detail"]] == [loc]


async def test_an_unknown_session_is_404_and_an_empty_id_too(house: House) -> None:
    for session_id in ("nowhere", ""):
        reply = await chat(house, "Hello", session_id=session_id)
        assert (reply.status, reply.json) == (404, {"detail": "Session not found"})


# --- the channel's own session ----------------------------------------------------------------------------------------


async def test_without_a_session_the_channel_has_its_own(house: House) -> None:
    session_id = (await chat(house, "Hello")).json["session_id"]
    row = await house.row(session_id)
    assert (row["source"], row["title"], row["created_by_actor_id"], row["caused_by_actor_id"]) == (
        "api",
        "Hello",
        ALICE,
        ALICE,
    )
    assert (await chat(house, "Again", session_id=None)).json["session_id"] == session_id
    await house.archive(session_id)
    assert (await chat(house, "And again")).json["session_id"] != session_id


async def test_the_channel_forgets_its_session_after_the_sticky_period(house: House) -> None:
    first = (await chat(house, "Hello")).json["session_id"]
    await trio.sleep(119 * 60)
    assert (await chat(house, "Hello")).json["session_id"] == first
    await trio.sleep(121 * 60)
    second = (await chat(house, "Hello")).json["session_id"]
    assert second != first
    assert (await chat(house, "Hello")).json["session_id"] == second


@pytest.mark.req("GEN-11")
async def test_many_first_messages_at_once_make_one_session(house: House) -> None:
    ids: set[str] = set()

    async def one() -> None:
        ids.add((await chat(house, "Hello")).json["session_id"])

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(one)
    (session_id,) = ids
    assert len(await contents(house, session_id)) == 20


# --- otherwise than success (decisions D3) ----------------------------------------------------------------------------


async def stopped_meanwhile(house: House, session_id: str, act: Any) -> Reply:
    replies: list[Reply] = []

    async def one() -> None:
        replies.append(await chat(house, play("- say: so far", "- wait: 60"), session_id=session_id))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one)
        await trio.sleep(1)
        await act()
    return replies[0]


async def test_a_stopped_turn_answers_with_what_it_said(house: House) -> None:
    session_id = await house.create()

    async def stop() -> None:
        await house.alice.post(f"/api/sessions/{session_id}/stop")

    reply = await stopped_meanwhile(house, session_id, stop)
    assert (reply.status, reply.json["response"]) == (200, "so far\n\n[Stopped by user]")


async def test_a_failed_turn_is_502_with_its_reason(house: House) -> None:
    session_id = await house.create()
    reply = await chat(house, play("- say: so far", "- fail: the model is down"), session_id=session_id)
    assert (reply.status, reply.json) == (502, {"detail": "the model is down"})
    assert (await contents(house, session_id))[1] == "so far\n\nAgent error: the model is down"


async def test_a_restart_is_502_for_what_ran_and_503_for_what_waits_and_comes(house: House) -> None:
    session_id = await house.create()
    replies: dict[str, Reply] = {}

    async def one(name: str) -> None:
        replies[name] = await chat(house, play("- wait: 60"), session_id=session_id, client_msg_id=name)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(one, "running")
        await trio.sleep(1)
        nursery.start_soon(one, "waiting")
        await trio.sleep(1)
        house.supervisor.reception.close()
        nursery.start_soon(one, "late")
        await trio.sleep(0.1)
        await house.supervisor.drain()
    assert (replies["running"].status, replies["running"].json) == (502, {"detail": "Interrupted by restart"})
    for name in ("waiting", "late"):
        assert (replies[name].status, replies[name].json) == (503, {"detail": "The server is shutting down."}), name
        assert int(replies[name].headers["retry-after"]) > 0


async def test_a_message_that_was_cancelled_before_it_ran_is_502(house: House) -> None:
    session_id = await house.create()
    replies: list[Reply] = []

    async def waiting() -> None:
        replies.append(await chat(house, "never", session_id=session_id))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id, play("- wait: 5"))
        await trio.sleep(1)
        nursery.start_soon(waiting)
        await trio.sleep(1)
        (entry,) = (await house.alice.get(f"/api/sessions/{session_id}/queue")).json["items"]
        await house.alice.delete(f"/api/sessions/{session_id}/queue/{entry['queue_id']}")
    assert (replies[0].status, replies[0].json) == (502, {"detail": "The message was cancelled before it ran."})


async def test_a_full_queue_is_429(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(queue_max=2)) as house:
        session_id = await house.create()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(house.run, session_id, play("- wait: 2"))
                await trio.sleep(0.1)
            reply = await chat(house, "one too many", session_id=session_id)
            assert (reply.status, reply.json) == (429, {"detail": "Too many messages wait in this session."})
            assert int(reply.headers["retry-after"]) > 0
        assert len(await contents(house, session_id)) == 6


@pytest.mark.req("CHAT-01")
async def test_the_turn_goes_on_when_the_caller_leaves(house: House) -> None:
    session_id = await house.create()
    body = {"message": play("- wait: 5", "- say: done all the same"), "session_id": session_id}
    async with house.alice.open("POST", "/api/chat", json=body) as exchange:
        await trio.sleep(1)
        exchange.disconnect()
        await trio.sleep(10)
    assert (await contents(house, session_id))[1] == "done all the same"


async def test_a_message_to_an_archived_session_brings_it_back(house: House) -> None:
    session_id = await house.create()
    await house.archive(session_id)
    assert (await chat(house, play("- say: back"), session_id=session_id)).json["response"] == "back"
    row = await house.row(session_id)
    assert (row["status"], row["archived_at"]) == ("active", None)
    (event,) = [event for event in await house.events(session_id) if event["event_type"] == "unarchived"]
    assert (event["actor_id"], event["caused_by_actor_id"]) == (ALICE, ALICE)
