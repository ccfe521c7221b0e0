"""Stopping a turn by its real rule: interrupt, five seconds, then the cancel; and everything around it."""

from typing import Any

import pytest
import trio

from nerve.adapters.protocol import RuntimeGone, TextAdded
from tests.runtime.puppets import COMPLETED, puppets
from tests.runtime.tabs import numbers, of, tab, text, types
from tests.sessions.session_house import ALICE, BOB, House, play

LONG = play("- say: begun", "- tool: Bash", "  seconds: 600", "- say: never")


async def stop(house: House, session_id: str, **body: Any) -> dict[str, Any]:
    reply = await house.alice.post(f"/api/sessions/{session_id}/stop", json=body)
    assert reply.status == 200, reply.text
    return dict(reply.json)


async def answers(house: House, session_id: str) -> list[str]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    return [row["content"] for row in reply.json["messages"] if row["role"] == "assistant"]


@pytest.mark.req("WS-11", "WS-34", "AGENT-57", "AGENT-59", "AGENT-71")
async def test_a_stop_over_the_socket(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as bob:
        await alice.say(session_id, LONG)
        await alice.until("tool_use")
        before = trio.current_time()
        await bob.send("stop", session_id=session_id)
        frames = await alice.turn()
        assert trio.current_time() - before < 1
        await bob.turn()
        assert await bob.beat() == []  # a stop that worked is not answered
    assert types(frames) == ["tool_result", "stopped", "session_running"]
    assert (of(frames, "tool_result")[0]["result"], of(frames, "tool_result")[0]["is_error"]) == ("[Interrupted]", True)
    assert await answers(house, session_id) == ["begun\n\n[Stopped by user]"]
    row = await house.row(session_id)
    assert row["status"] == "stopped"
    stopped, requested, *_ = await house.events(session_id)
    assert (stopped["event_type"], stopped["details"], stopped["actor_id"]) == ("stopped", {}, None)
    assert (requested["event_type"], requested["details"]) == ("stop_requested", {"scope": "turn"})
    assert (requested["actor_id"], requested["caused_by_actor_id"]) == (BOB, BOB)
    blocks = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"][1]["blocks"]
    assert [block["type"] for block in blocks] == ["text", "tool_call", "text"]
    assert (blocks[1]["result"], blocks[1]["is_error"]) == ("[Interrupted]", True)


@pytest.mark.parametrize(("ending", "came"), [(LONG, "stopped"), (play("- fail: no"), "error")])
async def test_a_session_that_runs_again_is_active_again(house: House, ending: str, came: str) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, ending)
        if came == "stopped":
            await alice.until("tool_use")
            await alice.send("stop", session_id=session_id)
        await alice.turn()
        assert (await house.row(session_id))["status"] == came
        await alice.say(session_id, LONG)
        await alice.until("tool_use")
        row = (await house.alice.get(f"/api/sessions/{session_id}/status")).json
        assert (row["status"], row["is_running"]) == ("active", True)
        async with tab(house.bob, session_id) as bob:
            assert of(bob.greeting, "session_status")[0]["status"] == "active"


@pytest.mark.req("WS-11")
async def test_nothing_to_stop_is_told_to_who_asked(house: House) -> None:
    session_id, other = await house.create(), await house.create()
    async with tab(house.alice, other) as alice, tab(house.bob, session_id) as bob:
        await alice.send("stop", session_id=session_id)
        (error,) = await alice.until("error")
        assert error == {"type": "error", "session_id": session_id, "error": "No running task to stop"}
        assert await bob.beat() == []
        await alice.send("stop", session_id="nowhere")
        (error,) = await alice.until("error")
        assert error == {"type": "error", "session_id": "nowhere", "error": "session_not_found"}


@pytest.mark.req("AGENT-60")
async def test_a_turn_that_does_not_listen_is_killed_after_five_seconds(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: begun", "- stuck: 600", "- say: never"))
        await alice.until("token")
        before = trio.current_time()
        assert await stop(house, session_id) == {"scope": "turn", "turn": "killed", "would_end": [], "shell_count": 0}
        assert 5 <= trio.current_time() - before < 8
        assert types(await alice.turn()) == ["stopped", "session_running"]
        # The native conversation survives.
        await alice.say(session_id, play("- say: '${history}'"))
        frames = await alice.turn()
    assert text(frames).count("stuck: 600") == 1
    assert await answers(house, session_id) == ["begun\n\n[Stopped by user]", text(frames)]


@pytest.mark.req("AGENT-59")
async def test_a_turn_that_listens_late_is_stopped(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: begun", "- stuck: 4", "- say: never"))
        await alice.until("token")
        before = trio.current_time()
        assert (await stop(house, session_id))["turn"] == "stopped"
        assert trio.current_time() - before == pytest.approx(4, abs=0.5)
    assert await answers(house, session_id) == ["begun\n\n[Stopped by user]"]


@pytest.mark.req("AGENT-59", "AGENT-60")
@pytest.mark.parametrize(("step", "answer"), [("wait: 600", "stopped"), ("stuck: 600", "killed")])
async def test_two_stops_at_once_say_the_same(house: House, step: str, answer: str) -> None:
    session_id = await house.create()
    told: list[str] = []

    async def one() -> None:
        told.append((await stop(house, session_id))["turn"])

    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: begun", f"- {step}"))
        await alice.until("token")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one)
            await trio.sleep(0 if answer == "stopped" else 2)
            nursery.start_soon(one)
        frames = await alice.turn()
    assert told == [answer, answer]
    assert types(frames) == ["stopped", "session_running"]
    assert len(await answers(house, session_id)) == 1


@pytest.mark.req("AGENT-68", "WS-11")
async def test_what_waits_runs_after_the_stop(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, LONG)
        await alice.until("tool_use")
        for word in ("next", "last"):
            await alice.say(session_id, play(f"- say: {word}"), word)
        await alice.until(lambda frame: frame["type"] == "queue_update" and len(frame["queue"]) == 2)
        await alice.send("stop", session_id=session_id)
        await alice.turn()
        assert [text(await alice.turn()) for _ in range(2)] == ["next", "last"]
    assert await answers(house, session_id) == ["begun\n\n[Stopped by user]", "next", "last"]


@pytest.mark.req("AGENT-67", "AGENT-60")
async def test_force_cancels_without_asking(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        puppet.say(TextAdded("so far"))
        await alice.until("token")
        assert await stop(house, session_id, scope="force") == {"scope": "force", "turn": "killed", "ended": []}
        assert (puppet.interrupts, puppet.closed) == (0, True)
        await alice.turn()
        # Without a turn the runtime is closed.
        await alice.say(session_id, "two")
        (await adapter.prompted(2)).say(COMPLETED)
        await alice.turn()
        assert (await stop(house, session_id, scope="force"))["turn"] == "not_running"
        assert adapter.newest.closed
    assert await answers(house, session_id) == ["so far\n\n[Stopped by user]", ""]
    event = next(e for e in await house.events(session_id) if e["event_type"] == "stop_requested")
    assert (event["details"], event["actor_id"]) == ({"scope": "force"}, ALICE)


async def test_a_stop_while_the_runtime_is_being_opened(house: House) -> None:
    adapter = puppets(house)

    async def slowly() -> None:
        await trio.sleep(30)

    adapter.opening = slowly
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        await alice.until("session_running")
        before = trio.current_time()
        assert (await stop(house, session_id))["turn"] == "stopped"
        assert trio.current_time() - before < 1
        assert types(await alice.turn()) == ["session_updated", "stopped", "session_running"]
        assert adapter.clients == []
        adapter.opening = trio.lowlevel.checkpoint
        await alice.say(session_id, "two")
        (await adapter.prompted()).say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"
    assert [prompt.text for prompt in adapter.newest.prompts] == ["two"]
    assert await answers(house, session_id) == ["[Stopped by user]", "hi"]
    assert (await house.row(session_id))["sdk_session_id"] == "native-1"


async def test_a_stop_within_the_prompt_reaches_the_runtime(house: House) -> None:
    adapter = puppets(house)
    gate = trio.Event()
    adapter.prepare = lambda puppet: setattr(puppet, "answering", gate.wait)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        await alice.send("stop", session_id=session_id)
        await trio.sleep(1)
        assert puppet.interrupts == 1
        gate.set()
        frames = await alice.turn()
    assert types(frames)[-2:] == ["stopped", "session_running"]
    assert not puppet.closed


async def test_a_turn_that_ends_by_itself_while_it_is_being_stopped_is_complete(house: House) -> None:
    adapter = puppets(house)
    adapter.prepare = lambda puppet: setattr(puppet, "obedient", False)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, trio.open_nursery() as nursery:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        told: list[str] = []

        async def one() -> None:
            told.append((await stop(house, session_id))["turn"])

        nursery.start_soon(one)
        await trio.sleep(1)
        puppet.say(TextAdded("all said"), COMPLETED)
        frames = await alice.turn()
    assert types(frames)[-2:] == ["done", "session_running"]
    assert told == ["not_running"]
    assert await answers(house, session_id) == ["all said"]


async def test_a_stop_outlives_the_socket_that_asked(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob:
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: begun", "- stuck: 600"))
            await alice.until("token")
            await alice.send("stop", session_id=session_id)
            await trio.sleep(1)
            alice.socket.disconnect()
        frames = await bob.turn()
    assert types(frames)[-2:] == ["stopped", "session_running"]


async def test_a_runtime_that_finds_out_of_its_death_by_the_interrupt(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        puppet.deaf = RuntimeGone("long gone")
        assert (await stop(house, session_id))["turn"] == "stopped"
        assert types(await alice.turn())[-2:] == ["stopped", "session_running"]
    assert await answers(house, session_id) == ["[Stopped by user]"]


@pytest.mark.req("AGENT-60")
async def test_a_runtime_that_can_not_even_be_killed_is_said_to_be_so(house: House) -> None:
    adapter = puppets(house)

    async def never() -> None:
        await trio.sleep(30)

    adapter.closing, adapter.prepare = never, lambda puppet: setattr(puppet, "obedient", False)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        await adapter.prompted()
        before = trio.current_time()
        answer = await stop(house, session_id)
        assert answer == {"scope": "turn", "turn": "not_stopped", "would_end": [], "shell_count": 0}
        assert trio.current_time() - before == pytest.approx(8, abs=0.1)
        assert types(await alice.turn())[-2:] == ["stopped", "session_running"]
        # The next turn has a runtime of its own, and not before the old one is gone.
        adapter.closing = trio.lowlevel.checkpoint
        await alice.say(session_id, "two")
        second = await adapter.prompted(2)
        assert adapter.clients[0].closed
        assert trio.current_time() - before == pytest.approx(35, abs=0.5)
        second.say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"


async def test_numbers_have_no_holes_around_stops(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as bob, tab(house.alice, session_id) as alice:
        for step in ("wait: 600", "stuck: 600", "tool: Bash\n  seconds: 600"):
            await alice.say(session_id, play("- say: begun", f"- {step}"))
            await bob.until("token")
            await stop(house, session_id)
            await bob.turn()
    assert numbers(bob.frames) == list(range(1, len(numbers(bob.frames)) + 1))
