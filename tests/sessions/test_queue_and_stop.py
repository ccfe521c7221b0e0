"""The turn queue and the stop of a turn, over REST."""

from typing import Any

import pytest
import trio

from tests.sessions.session_house import ALICE, BOB, House, play

RUNNING = play("- say: so far", "- wait: 600")


async def queue(house: House, session_id: str) -> list[dict[str, Any]]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/queue")
    assert reply.status == 200, reply.text
    return reply.json["items"]


async def send(house: House, nursery: trio.Nursery, session_id: str, text: str, token: str = "alice") -> None:
    """A message whose answer nobody waits for."""

    async def chat() -> None:
        body = {"message": text, "session_id": session_id}
        await house.alice.with_(token=token).post("/api/chat", json=body)

    nursery.start_soon(chat)
    await trio.sleep(0.5)


async def stop(house: House, session_id: str, **body: Any) -> dict[str, Any]:
    reply = await house.alice.post(f"/api/sessions/{session_id}/stop", json=body)
    assert reply.status == 200, reply.text
    return reply.json


# --- the queue --------------------------------------------------------------------------------------------------------


@pytest.mark.req("AGENT-72")
async def test_nothing_waits(house: House) -> None:
    session_id = await house.create()
    assert await queue(house, session_id) == []
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, RUNNING)
        assert await queue(house, session_id) == []
        await stop(house, session_id)


async def test_what_waits_is_shown_in_order(house: House) -> None:
    session_id = await house.create()
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, RUNNING)
        await send(house, nursery, session_id, "second\n  line " + "x" * 200)
        await send(house, nursery, session_id, "third", token="bob")
        first, second = await queue(house, session_id)
        assert set(first) == {
            "queue_id",
            "client_msg_id",
            "preview",
            "source",
            "internal",
            "actor_id",
            "created_at",
        }
        assert first["preview"] == ("second line " + "x" * 200)[:120]
        assert (first["actor_id"], second["actor_id"], second["preview"]) == (ALICE, BOB, "third")
        assert first["created_at"].endswith("Z")
        await stop(house, session_id)


@pytest.mark.req("AGENT-74", "AGENT-75")
async def test_ones_own_message_is_cancelled_and_comes_back(house: House) -> None:
    session_id = await house.create()
    text = "also run the e2e suite\n" + "y" * 300
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, RUNNING)
        await send(house, nursery, session_id, text)
        (entry,) = await queue(house, session_id)
        path = f"/api/sessions/{session_id}/queue/{entry['queue_id']}"
        reply = await house.alice.delete(path)
        assert (reply.status, reply.json) == (200, {"cancelled": True, "content": text})
        assert await queue(house, session_id) == []
        again = await house.alice.delete(path)
        assert (again.status, again.json["detail"]["code"]) == (404, "queue_entry_not_found")
        await stop(house, session_id)
    messages = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    assert text not in [message["content"] for message in messages]


@pytest.mark.req("AGENT-76")
async def test_what_runs_can_not_be_cancelled(house: House) -> None:
    session_id = await house.create()
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, RUNNING)
        await send(house, nursery, session_id, RUNNING)
        (entry,) = await queue(house, session_id)
        await stop(house, session_id)
        await trio.sleep(1)
        reply = await house.alice.delete(f"/api/sessions/{session_id}/queue/{entry['queue_id']}")
        assert (reply.status, reply.json["detail"]["code"]) == (409, "already_started")
        await stop(house, session_id)


@pytest.mark.req("AGENT-77")
@pytest.mark.parametrize("token", ["bob", "system", "tool"])
async def test_somebody_elses_message_stays(house: House, token: str) -> None:
    session_id = await house.create()
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, RUNNING)
        await send(house, nursery, session_id, "mine")
        (entry,) = await queue(house, session_id)
        client = house.alice.with_(token=token)
        reply = await client.delete(f"/api/sessions/{session_id}/queue/{entry['queue_id']}")
        assert (reply.status, reply.json["detail"]["code"]) == (403, "not_owner")
        assert await queue(house, session_id) == [entry]
        await stop(house, session_id)


@pytest.mark.req("AGENT-73", "AGENT-01")
async def test_an_unknown_session_has_no_queue(house: House) -> None:
    reply = await house.alice.get("/api/sessions/nowhere/queue")
    assert (reply.status, reply.json["detail"]["code"]) == (404, "session_not_found")
    assert reply.json["detail"]["message"]
    reply = await house.alice.delete("/api/sessions/nowhere/queue/q_1")
    assert reply.status == 404


@pytest.mark.req("AGENT-75")
async def test_an_entry_of_another_session_is_not_found(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, RUNNING)
        await send(house, nursery, session_id, "waits")
        (entry,) = await queue(house, session_id)
        reply = await house.alice.delete(f"/api/sessions/{other}/queue/{entry['queue_id']}")
        assert (reply.status, reply.json["detail"]["code"]) == (404, "queue_entry_not_found")
        assert await queue(house, session_id) == [entry]
        await stop(house, session_id)


# --- stops ------------------------------------------------------------------------------------------------------------


@pytest.mark.req("AGENT-57", "AGENT-58")
@pytest.mark.parametrize("body", [{}, {"scope": "turn"}, {"scope": "turn", "confirm_kill_background": True}])
async def test_nothing_to_stop(house: House, body: dict[str, Any]) -> None:
    answer = await stop(house, await house.create(), **body)
    assert answer == {"scope": "turn", "turn": "not_running", "would_end": [], "shell_count": 0}


@pytest.mark.req("AGENT-57")
async def test_no_body_is_a_stop_of_the_turn(house: House) -> None:
    reply = await house.alice.post(f"/api/sessions/{await house.create()}/stop")
    assert (reply.status, reply.json["scope"]) == (200, "turn")


@pytest.mark.req("AGENT-59", "AGENT-68")
async def test_a_turn_is_stopped_and_the_queue_is_left_alone(house: House) -> None:
    session_id = await house.create()
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, RUNNING)
        await send(house, nursery, session_id, play("- say: next"))
        await send(house, nursery, session_id, play("- say: after that"))
        before = await queue(house, session_id)
        answer = await stop(house, session_id)
        assert answer == {"scope": "turn", "turn": "stopped", "would_end": [], "shell_count": 0}
        assert len(before) == 2
    messages = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    assert answers == ["so far\n\n[Stopped by user]", "next", "after that"]


@pytest.mark.req("AGENT-60")
async def test_a_turn_that_ignores_the_interrupt_is_killed(house: House) -> None:
    session_id = await house.create()
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, play("- stuck: 600"))
        began = trio.current_time()
        assert (await stop(house, session_id))["turn"] == "killed"
        assert 5 <= trio.current_time() - began <= 8


@pytest.mark.req("AGENT-67")
async def test_force_cancels_at_once(house: House) -> None:
    session_id = await house.create()
    async with trio.open_nursery() as nursery:
        await send(house, nursery, session_id, play("- stuck: 600"))
        began = trio.current_time()
        assert await stop(house, session_id, scope="force") == {"scope": "force", "turn": "killed", "ended": []}
        assert trio.current_time() - began <= 3


@pytest.mark.req("AGENT-64")
async def test_all_answers_in_its_own_shape(house: House) -> None:
    session_id = await house.create()
    answer = await stop(house, session_id, scope="all", include_shells=False)
    assert answer == {"scope": "all", "turn": "not_running", "stopping": [], "unsupported": []}
    assert (await house.events(session_id))[0]["details"] == {"scope": "all", "include_shells": False}


@pytest.mark.req("AGENT-69")
async def test_a_stop_of_an_unknown_session(house: House) -> None:
    reply = await house.alice.post("/api/sessions/nowhere/stop", json={})
    assert (reply.status, reply.json["detail"]["code"]) == (404, "session_not_found")


@pytest.mark.req("AGENT-70")
@pytest.mark.parametrize("scope", ["", "everything", "TURN", "turn "])
async def test_a_scope_that_does_not_exist(house: House, scope: str) -> None:
    reply = await house.alice.post("/api/sessions/main/stop", json={"scope": scope})
    assert (reply.status, reply.json["detail"]["code"]) == (422, "bad_scope")
    assert [event["event_type"] for event in await house.events("main")] == ["created"]


@pytest.mark.req("AGENT-71")
async def test_who_asked_is_recorded(house: House) -> None:
    session_id = await house.create()
    await house.bob.post(f"/api/sessions/{session_id}/stop", json={"scope": "turn"})
    event = (await house.events(session_id))[0]
    assert (event["event_type"], event["details"]["scope"]) == ("stop_requested", "turn")
    assert (event["actor_id"], event["caused_by_actor_id"]) == (BOB, BOB)
