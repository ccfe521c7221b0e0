"""Turns that do not complete: runtimes that die, fall silent or fail, and the one retry there is."""

from pathlib import Path

import pytest
import trio

from nerve.adapters.protocol import (
    AgentEvent,
    RuntimeGone,
    TextAdded,
    ThinkingAdded,
    ToolStarted,
    TurnEnded,
    TurnStatus,
)
from nerve.domain.turns import RUNTIME_DIED
from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.runtime.puppets import COMPLETED, PuppetAdapter, puppets
from tests.runtime.tabs import Frame, Tab, of, tab, text, types
from tests.sessions.session_house import House, open_house, play


async def contents(house: House, session_id: str) -> list[str]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    return [row["content"] for row in reply.json["messages"]]


def error_of(frames: list[Frame]) -> str:
    (error,) = of(frames, "error")
    assert isinstance(error["seq"], int)
    return str(error["error"])


@pytest.mark.req("WS-35", "SESS-29")
async def test_a_failed_turn(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: Well", "- tool: Bash", "- fail: it broke"))
        frames = await alice.turn()
        assert error_of(frames) == "it broke"
        assert types(frames)[-2:] == ["error", "session_running"]
        row = await house.row(session_id)
        assert (row["status"], row["message_count"]) == ("error", 2)
        assert (await contents(house, session_id))[1] == "Well\n\nAgent error: it broke"
        event = (await house.events(session_id))[0]
        assert (event["event_type"], event["details"]) == ("error", {"error": "it broke"})
        # The conversation goes on in the same runtime.
        await alice.say(session_id, play("- say: '${history}'"))
        again = await alice.turn()
    assert "it broke" in text(again)
    assert (await house.row(session_id))["status"] == "active"
    assert (await house.row(session_id))["sdk_session_id"] == row["sdk_session_id"]


async def test_a_reason_of_any_length_is_told_whole_and_recorded_cut(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(f"- fail: {'x' * 600}"))
        assert error_of(await alice.turn()) == "x" * 600
    assert (await house.events(session_id))[0]["details"] == {"error": "x" * 500}


@pytest.mark.req("WS-35")
@pytest.mark.parametrize("before", [0, 1], ids=["first turn", "second turn"])
async def test_a_scripted_crash_is_never_retried(house: House, before: int) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        for _ in range(before):
            await alice.say(session_id, play("- say: fine"))
            await alice.turn()
        await alice.say(session_id, play("- crash: true"))
        frames = await alice.turn()
        assert "crashed" in error_of(frames)
        assert text(frames) == ""
        stored = await contents(house, session_id)
        assert len(stored) == 2 * before + 2
        assert stored[-1].startswith("Agent error: ")
        # A fresh runtime remembers the conversation.
        await alice.say(session_id, play("- say: '${history}'"))
        assert text(await alice.turn()).count("- crash: true") == 1
    started = [event for event in await house.events(session_id) if event["event_type"] == "started"]
    assert len(started) == 2
    assert len({event["details"]["sdk_session_id"] for event in started}) == 1


async def test_a_silent_crash_ends_its_turn_normally_and_shows_at_the_next(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- say: last words", "- crash: silent", "- say: never"))
        assert types(await alice.turn())[-2:] == ["done", "session_running"]
        await alice.say(session_id, play("- say: again"))
        frames = await alice.turn()
    assert text(frames) == "again"
    assert await contents(house, session_id) == [
        play("- say: last words", "- crash: silent", "- say: never"),
        "last words",
        play("- say: again"),
        "again",
    ]


async def test_a_runtime_that_dies_before_it_said_anything_gets_one_more_try(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "Hello")
        (await adapter.prompted(1)).die(RuntimeGone("killed"))
        second = await adapter.prompted(2)
        assert second.spec.native_id == "native-1"
        second.say(TextAdded("hi"), COMPLETED)
        frames = await alice.turn()
    assert types(frames)[-3:] == ["token", "done", "session_running"]
    assert [len(client.prompts) for client in adapter.clients] == [1, 1]
    assert await contents(house, session_id) == ["Hello", "hi"]


async def test_a_second_death_ends_the_turn(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "Hello")
        (await adapter.prompted(1)).die(RuntimeGone("killed"))
        (await adapter.prompted(2)).die()
        assert error_of(await alice.turn()) == "The agent's runtime ended."
    assert len(adapter.clients) == 2
    assert (await house.row(session_id))["status"] == "error"


@pytest.mark.parametrize(
    "said", [TextAdded("a"), ThinkingAdded("a"), ToolStarted("t", "Bash", {})], ids=lambda e: type(e).__name__
)
async def test_a_death_after_any_content_is_the_end(house: House, said: AgentEvent) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "Hello")
        puppet = await adapter.prompted()
        puppet.say(said)
        puppet.die(RuntimeGone("killed"))
        frames = await alice.turn()
    assert error_of(frames) == "killed"
    assert len(adapter.clients) == 1
    assert [f["result"] for f in of(frames, "tool_result")] == (
        ["[Interrupted]"] if isinstance(said, ToolStarted) else []
    )


async def test_a_runtime_that_does_not_take_the_prompt_any_more_is_replaced(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        first = await adapter.prompted()
        first.say(COMPLETED)
        await alice.turn()
        first.refusal = RuntimeGone("long gone", retryable=False)
        await alice.say(session_id, "two")
        (await adapter.prompted(2)).say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"
    assert first.closed
    assert [prompt.text for client in adapter.clients for prompt in client.prompts] == ["one", "two"]


async def test_a_fresh_runtime_that_refuses_for_good_is_not_tried_again(house: House) -> None:
    adapter = puppets(house)

    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        opened.append(1)
        raise RuntimeGone("no record can be kept", retryable=False)

    opened: list[int] = []
    adapter.opening = fail
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        assert error_of(await alice.turn()) == "no record can be kept"
    assert opened == [1]


@pytest.mark.parametrize("where", ["open", "prompt", "events"])
async def test_what_nobody_expected_is_told_without_its_words(
    house: House, where: str, caplog: pytest.LogCaptureFixture
) -> None:
    adapter, secret = puppets(house), KeyError("secret")
    _arm(adapter, where, secret)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        if where == "events":
            (await adapter.prompted()).die(secret)
        assert error_of(await alice.turn()) in (RUNTIME_DIED, "Internal error.")
        assert "secret" in caplog.text
        assert "secret" not in (await contents(house, session_id))[1]
        # The session goes on.
        adapter.opening, adapter.prepare = PuppetAdapter().opening, PuppetAdapter().prepare
        before = sum(len(client.prompts) for client in adapter.clients)
        await alice.say(session_id, "two")
        (await adapter.prompted(before + 1)).say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"


def _arm(adapter: PuppetAdapter, where: str, cause: Exception) -> None:
    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise cause

    if where == "open":
        adapter.opening = fail
    elif where == "prompt":
        adapter.prepare = lambda puppet: setattr(puppet, "refusal", cause)


async def test_what_a_runtime_says_outside_a_turn_is_passed_over(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        puppet.say(COMPLETED)
        await alice.turn()
        puppet.say(TextAdded("by the way"), COMPLETED)
        assert await alice.quiet() == []
        await alice.say(session_id, "two")
        await adapter.prompted(2)
        puppet.say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"


async def test_a_runtime_that_dies_between_turns_is_opened_again(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        puppet = await adapter.prompted()
        puppet.say(COMPLETED)
        await alice.turn()
        puppet.die(RuntimeGone("killed"))
        assert await alice.quiet() == []
        await alice.say(session_id, "two")
        (await adapter.prompted(2)).say(TextAdded("hi"), COMPLETED)
        assert text(await alice.turn()) == "hi"
    assert [client.spec.native_id for client in adapter.clients] == [None, "native-1"]


@pytest.mark.parametrize("first", [True, False], ids=["nothing said", "something said"])
async def test_a_silent_runtime_fails_its_turn(database: InlineDatabase, tmp_path: Path, first: bool) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(silence_seconds=30.0)) as house:
        adapter = puppets(house)
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, "one")
            puppet = await adapter.prompted()
            if not first:
                await trio.sleep(25)
                puppet.say(TextAdded("so "))
                await trio.sleep(25)
                puppet.say(TextAdded("far"))
            begun = trio.current_time()
            frames = await alice.turn(60)
            assert trio.current_time() - begun == pytest.approx(30, abs=0.5)
            assert error_of(frames) == "The agent's runtime was silent for too long."
            assert puppet.closed
            # What the silent one says now is nobody's.
            await alice.say(session_id, "two")
            (await adapter.prompted(2)).say(TextAdded("hi"), COMPLETED)
            assert text(await alice.turn()) == "hi"
        assert (await contents(house, session_id))[3] == "hi"
        assert len(adapter.clients) == 2


async def test_a_slow_turn_that_says_something_is_not_silent(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(silence_seconds=30.0)) as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: a b c d e f", "  pace: 29"))
            assert text(await alice.turn(200)) == "a b c d e f"


async def test_an_interrupt_that_nobody_asked_for_is_a_stop(house: House) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, "one")
        (await adapter.prompted()).say(TurnEnded(TurnStatus.INTERRUPTED))
        assert types(await alice.turn())[-2:] == ["stopped", "session_running"]


async def test_the_runtime_is_closed_after_an_idle_time_and_comes_back(
    database: InlineDatabase, tmp_path: Path
) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(client_idle_seconds=60.0)) as house:
        adapter = puppets(house)
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice:
            await _one(adapter, alice, session_id, 1)
            await trio.sleep(59)
            assert not adapter.newest.closed
            await _one(adapter, alice, session_id, 2)
            await trio.sleep(61)
            assert adapter.newest.closed
            row = await house.row(session_id)
            assert (row["status"], row["sdk_session_id"]) == ("idle", "native-1")
            event = (await house.events(session_id))[0]
            assert (event["event_type"], event["details"]) == ("idle", {"resumable": True})
            await _one(adapter, alice, session_id, 3)
        assert [client.spec.native_id for client in adapter.clients] == [None, "native-1"]


async def _one(adapter: PuppetAdapter, alice: Tab, session_id: str, number: int) -> None:
    await alice.say(session_id, f"message {number}")
    (await adapter.prompted(number)).say(TextAdded("hi"), COMPLETED)
    await alice.turn()
