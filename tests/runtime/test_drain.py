"""Closing the house: what waits is refused, what runs is interrupted; both are recorded before the sockets close."""

import random

import pytest
import trio

from nerve.errors import ErrorCode, NerveError
from nerve.runtime.reception import NewMessage
from tests.asgi_client import Reply
from tests.runtime.puppets import COMPLETED, puppets
from tests.runtime.tabs import Frame, of, tab, text, types
from tests.sessions.session_house import ALICE, House, play

LONG = play("- say: 'so far '", "- tool: Bash", "  seconds: 600")
REFUSED = "The server is shutting down."


def removals(frames: list[Frame]) -> list[tuple[str, str]]:
    return [
        (left["client_msg_id"], left["reason"]) for f in of(frames, "queue_update") for left in f.get("removed", [])
    ]


@pytest.mark.req("WS-36", "WS-51")
async def test_what_waits_is_refused_and_what_runs_is_interrupted(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob:
        await alice.say(session_id, LONG, "c1")
        await alice.until("tool_use")
        await alice.say(session_id, play("- say: never"), "c2")
        await bob.say(session_id, play("- say: never"), "c3")
        await bob.until(lambda f: f["type"] == "queue_update" and len(f["queue"]) == 2)
        await alice.beat()
        before = trio.current_time()
        await house.supervisor.drain()
        assert trio.current_time() - before < 1
        heard, bob_heard = await alice.beat(), await bob.beat()
        # Everybody bound sees the removals, and only the sender is told why.
        for frames in (heard, bob_heard):
            assert removals(frames) == [("c2", "refused"), ("c3", "refused")]
            assert of(frames, "queue_update")[-1]["queue"] == []
        for frames, own in ((heard, "c2"), (bob_heard, "c3")):
            answers = [f for f in of(frames, "error") if "seq" not in f]
            assert answers == [{"type": "error", "session_id": session_id, "error": REFUSED, "client_msg_id": own}]
            assert frames.index(answers[0]) > frames.index(of(frames, "queue_update")[-1])
            result, end = of(frames, "tool_result")[0], [f for f in of(frames, "error") if "seq" in f]
            assert (result["result"], result["is_error"]) == ("[Interrupted]", True)
            assert [f["error"] for f in end] == ["Interrupted by restart"]
            assert end[0]["seq"] == result["seq"] + 1
            assert of(frames, "session_running")[-1]["is_running"] is False
        # Whoever comes now is refused too, on any way.
        await alice.say(session_id, play("- say: never"), "c4")
        update, error = await alice.until("error")
        assert removals([update]) == [("c4", "refused")]
        assert (error["error"], error["client_msg_id"]) == (REFUSED, "c4")
        late = await house.bob.post("/api/chat", json={"message": "hi", "session_id": session_id})
        assert (late.status, late.json) == (503, {"detail": REFUSED})
        assert late.headers["retry-after"]
        assert await bob.beat() == []
    rows = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    assert [row["content"] for row in rows] == [LONG, "so far \n\n[Interrupted by restart]"]
    idle, interrupted, *_ = await house.events(session_id)
    assert (idle["event_type"], idle["details"]) == ("idle", {"resumable": True})
    assert interrupted["event_type"] == "interrupted"
    assert (await house.row(session_id))["status"] == "idle"
    assert await house.sql("SELECT count(*) FROM queue_entries") == [(0,)]
    # A refused id may come again after the restart.
    assert await house.sql("SELECT client_msg_id FROM seen_client_messages") == [("c1",)]


@pytest.mark.req("WS-36")
async def test_a_sender_that_is_bound_elsewhere_is_told_too(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, LONG, "c1")
        await alice.until("tool_use")
        await alice.say(session_id, play("- say: never"), "c2")
        await alice.switch(other)
        await alice.beat()
        await house.supervisor.drain()
        frames = await alice.beat()
    assert removals(frames) == [("c2", "refused")]
    assert [(f["error"], f["client_msg_id"]) for f in of(frames, "error")] == [(REFUSED, "c2")]
    assert {f["session_id"] for f in frames} == {session_id}


async def test_waiting_chats_are_answered(house: House) -> None:
    session_id = await house.create()
    replies: dict[str, Reply] = {}

    async def chat(name: str) -> None:
        replies[name] = await house.alice.post("/api/chat", json={"message": LONG, "session_id": session_id})

    async with trio.open_nursery() as nursery:
        nursery.start_soon(chat, "runs")
        await trio.sleep(1)
        nursery.start_soon(chat, "waits")
        await trio.sleep(1)
        await house.supervisor.drain()
    assert (replies["runs"].status, replies["runs"].json) == (502, {"detail": "Interrupted by restart"})
    assert (replies["waits"].status, replies["waits"].json) == (503, {"detail": REFUSED})


@pytest.mark.parametrize("step", ["wait: 600", "stuck: 600"])
async def test_it_is_bounded_whatever_runs(house: House, step: str) -> None:
    sessions = [await house.create() for _ in range(20)]
    async with trio.open_nursery() as nursery:
        for session_id in sessions:
            body = {"message": play("- say: hi", f"- {step}"), "session_id": session_id}
            nursery.start_soon(_post, house, body)
        await trio.sleep(2)
        before = trio.current_time()
        await house.supervisor.drain()
        assert trio.current_time() - before < 5
    assert await house.sql("SELECT state, count(*) FROM turns GROUP BY state") == [("interrupted", 20)]
    assert await house.sql("SELECT DISTINCT status FROM sessions WHERE id <> 'main'") == [("idle",)]


async def _post(house: House, body: dict[str, str]) -> None:
    assert (await house.alice.post("/api/chat", json=body)).status == 502


async def test_a_runtime_that_hangs_while_it_is_opened_does_not_hold_it_up(house: House) -> None:
    adapter = puppets(house)
    adapter.opening = trio.sleep_forever
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        await alice.until("session_running")
        before = trio.current_time()
        await house.supervisor.drain()
        assert trio.current_time() - before < 5
        assert types(of(await alice.beat(), "error", "session_running")) == ["error", "session_running"]
    assert await house.sql("SELECT state FROM turns") == [("interrupted",)]


async def test_a_turn_that_ends_in_time_is_complete(house: House) -> None:
    adapter = puppets(house)
    adapter.prepare = lambda puppet: setattr(puppet, "obedient", False)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, trio.open_nursery() as nursery:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        nursery.start_soon(house.supervisor.drain)
        await trio.sleep(0.5)
        puppet.say(COMPLETED)
        assert types(await alice.turn())[-2:] == ["done", "session_running"]
    assert puppet.closed
    assert await house.sql("SELECT state FROM turns") == [("completed",)]


async def test_a_stop_that_was_asked_for_before_stays_a_stop(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: hi", "- stuck: 600"))
        await alice.until("token")
        await alice.send("stop", session_id=session_id)
        await trio.sleep(1)
        await house.supervisor.drain()
        assert types(of(await alice.beat(), "stopped", "error", "session_running")) == ["stopped", "session_running"]


@pytest.mark.parametrize("seed", range(30))
async def test_whatever_comes_in_that_moment_is_run_or_refused(house: House, seed: int) -> None:
    """Messages, turns that begin and turns that end race with the drain; afterwards nothing waits and nothing runs."""
    rng = random.Random(seed)
    sessions = [await house.create() for _ in range(4)]
    accepted: list[str] = []
    refused: list[str] = []

    async def send(number: int) -> None:
        for _ in range(rng.randrange(8)):
            await trio.lowlevel.checkpoint()
        if rng.random() < 0.3:
            await trio.sleep(rng.choice([0.001, 0.015, 0.1]))
        message = NewMessage(play(f"- say: '{number}'"), "web", ALICE, client_msg_id=str(number))
        try:
            submission = await house.supervisor.reception.submit(sessions[number % 4], message)
            outcome = await house.supervisor.reception.outcome(submission)
        except NerveError as error:
            if error.code is not ErrorCode.SHUTTING_DOWN:
                raise
            refused.append(str(number))
            return
        (refused if outcome.refused else accepted).append(str(number))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(24):
                nursery.start_soon(send, number)
            for _ in range(rng.randrange(12)):
                await trio.lowlevel.checkpoint()
            if rng.random() < 0.5:
                await trio.sleep(rng.choice([0.001, 0.015, 0.05]))
            await house.supervisor.drain()
            # Nothing runs after it.
            assert await house.sql("SELECT count(*) FROM queue_entries") == [(0,)]
            assert await house.sql("SELECT count(*) FROM turns WHERE state = 'running'") == [(0,)]
            assert not any(house.supervisor.live(session_id).is_running for session_id in sessions)
            turns = await house.sql("SELECT count(*) FROM turns")
            await trio.sleep(30)
    assert await house.sql("SELECT count(*) FROM turns") == turns
    ran = await house.sql("SELECT client_msg_id FROM turns")
    assert sorted(accepted) == sorted(client_msg_id for (client_msg_id,) in ran)
    assert len(accepted) + len(refused) == 24
    answers = await house.sql("SELECT count(*) FROM messages WHERE role = 'assistant'")
    assert answers == [(len(accepted),)]


async def test_sessions_without_a_turn_become_idle(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- say: hi"))
    assert (await house.row(session_id))["status"] == "active"
    await house.supervisor.drain()
    assert (await house.row(session_id))["status"] == "idle"
    assert (await house.events(session_id))[0]["details"] == {"resumable": True}


async def test_a_second_drain_has_nothing_to_do(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, trio.open_nursery() as nursery:
        await alice.say(session_id, LONG)
        await alice.until("tool_use")
        nursery.start_soon(house.supervisor.drain)
        nursery.start_soon(house.supervisor.drain)
    before = await house.sql("SELECT count(*) FROM session_events")
    await house.supervisor.drain()
    assert await house.sql("SELECT count(*) FROM session_events") == before
    assert text(alice.frames) == "so far "
