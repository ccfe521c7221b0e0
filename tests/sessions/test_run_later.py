"""A person's message that is put off: it runs as they had sent it, once its time has come."""

from typing import Any

import pytest
import trio

from nerve.runtime.house import SYSTEM_ACTOR
from tests.asgi_client import Reply
from tests.sessions.session_house import ALICE, BOB, House, play


async def run_later(house: House, session_id: str, message: str, delay: str = "30m", who: str = "alice") -> Reply:
    body = {"session_id": session_id, "message": message, "delay": delay}
    return await house.alice.with_(token=who).post("/api/sessions/run-later", json=body)


async def messages(house: House, session_id: str) -> list[tuple[str, str, str | None]]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    return [(m["role"], m["content"], m["actor_id"]) for m in reply.json["messages"]]


async def pending(house: House, session_id: str) -> tuple[Any, ...]:
    row = await house.row(session_id)
    return tuple(row[f"pending_wakeup_{key}"] for key in ("at", "created_by_actor_id", "caused_by_actor_id"))


@pytest.mark.req("SESS-30", "SESS-31")
@pytest.mark.parametrize(("delay", "minutes"), [("30m", 30), ("1h", 60), ("24h", 24 * 60)])
async def test_it_runs_as_a_message_of_the_person(house: House, delay: str, minutes: int) -> None:
    session_id, other = await house.create(), await house.create()
    listener = house.listen(session_id)
    reply = await run_later(house, session_id, play("- say: later"), delay, who="bob")
    assert reply.status == 200
    fire_at = reply.json["fire_at"]
    assert reply.json == {"session_id": session_id, "scheduled": True, "ack": reply.json["ack"], "fire_at": fire_at}
    assert reply.json["ack"].startswith("The message will be sent at 2026-03-0")
    assert await pending(house, session_id) == (fire_at, BOB, BOB)
    (told,) = listener.of("session_running")
    assert (told["is_running"], told["pending_wakeup_at"]) == (False, fire_at)
    await trio.sleep(minutes * 60 - 1)
    assert await messages(house, session_id) == []
    await trio.sleep(30)
    assert await messages(house, session_id) == [("user", play("- say: later"), BOB), ("assistant", "later", None)]
    (shown,) = listener.of("user_message")
    assert (shown["actor_id"], shown["client_msg_id"]) == (BOB, None)
    assert listener.of("wakeup") == []
    assert await pending(house, session_id) == (None, None, None)
    feed = (await house.alice.get("/api/sessions")).json["sessions"]
    assert [row["id"] for row in feed][:2] == [session_id, other]  # it moved to the front
    row = feed[0]
    assert (row["caused_by_actor_id"], row["title"]) == (ALICE, "#!nerve-scenario - say: later")


async def test_without_a_delay_it_is_sent_at_once(house: House) -> None:
    session_id = await house.create()
    reply = await run_later(house, session_id, play("- say: now"), "none")
    assert reply.json == {
        "session_id": session_id,
        "scheduled": False,
        "ack": "The message was sent.",
        "fire_at": None,
    }
    await trio.sleep(1)
    assert await messages(house, session_id) == [("user", play("- say: now"), ALICE), ("assistant", "now", None)]


async def test_what_it_takes_the_place_of_is_said(house: House) -> None:
    session_id = await house.create()
    await run_later(house, session_id, play("- say: one"))
    reply = await run_later(house, session_id, play("- say: two"), "1h")
    assert "takes the place of the deferred message" in reply.json["ack"]
    await trio.sleep(4000)
    assert [content for role, content, _ in await messages(house, session_id) if role == "assistant"] == ["two"]


async def test_scheduling_unarchives(house: House) -> None:
    session_id = await house.create()
    await house.archive(session_id)
    assert (await run_later(house, session_id, "Hello")).status == 200
    assert (await house.row(session_id))["status"] == "idle"
    event = next(e for e in await house.events(session_id) if e["event_type"] == "unarchived")
    assert (event["actor_id"], event["caused_by_actor_id"]) == (ALICE, ALICE)


@pytest.mark.req("AGENT-17")
async def test_one_that_waits_for_a_turn_can_be_taken_back_by_its_sender(house: House) -> None:
    session_id = await house.create()
    await run_later(house, session_id, "never mind")
    await trio.sleep(1796)
    await run_later(house, session_id, play("- wait: 200"), "none")
    await trio.sleep(100)
    path = f"/api/sessions/{session_id}/queue"
    (entry,) = (await house.alice.get(path)).json["items"]
    assert (entry["preview"], entry["internal"], entry["source"]) == ("Scheduled run", True, "web")
    assert (await house.bob.delete(f"{path}/{entry['queue_id']}")).status == 403
    taken = await house.alice.delete(f"{path}/{entry['queue_id']}")
    assert taken.json == {"cancelled": True, "content": "never mind"}
    assert (await house.alice.get(path)).json["items"] == []
    gone = await house.alice.delete(f"{path}/{entry['queue_id']}")
    assert gone.json["detail"]["code"] == "queue_entry_not_found"
    assert await pending(house, session_id) == (None, None, None)
    await trio.sleep(200)
    assert len(await messages(house, session_id)) == 2


async def test_on_the_fallback_it_runs_all_the_same(house: House) -> None:
    object.__setattr__(house.supervisor.house.backends, "configured", "claude")
    session_id = await house.create()
    assert (await house.row(session_id))["backend_reason"] is not None
    await run_later(house, session_id, play("- say: later"))
    await trio.sleep(1900)
    assert [content for _, content, _ in await messages(house, session_id)][-1] == "later"


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"delay": "2h"}, 422),
        ({"message": ""}, 422),
        ({"session_id": "nowhere"}, 404),
        ({"file_ids": ["f1"]}, 404),
        ({"image_blocks": [{"type": "image"}]}, 404),
        ({"file_ids": [], "image_blocks": None}, 200),
    ],
)
async def test_what_is_refused_schedules_nothing(house: House, more: dict[str, Any], status: int) -> None:
    session_id = await house.create()
    body = {"session_id": session_id, "message": "Hello", "delay": "1h", **more}
    assert (await house.alice.post("/api/sessions/run-later", json=body)).status == status
    assert await house.sql("SELECT count(*) FROM session_wakeups") == [(int(status == 200),)]


async def test_the_agent_is_attributed_to_the_system_and_the_cause(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- wakeup: 60"))
    assert (await pending(house, session_id))[1:] == (SYSTEM_ACTOR, ALICE)
