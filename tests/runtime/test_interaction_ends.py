"""Whatever ends a wait settles it: told, recorded, and the runtime gets a refusal or is gone."""

from pathlib import Path

import pytest
import trio
import trio.testing

from nerve.adapters.protocol import (
    Allowed,
    Denied,
    InteractionReply,
    RuntimeGone,
)
from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.runtime.asking import ASK, BLUE, BY_AGENT, REQUEST, answer, ask, asked, awaiting, begun, pending
from tests.runtime.mortal_home import Home
from tests.runtime.puppets import COMPLETED
from tests.runtime.tabs import Frame, of, tab, types
from tests.sessions.session_house import House, open_house

CLOSING = ("interaction_resolved", "session_awaiting_input", "tool_result", "stopped", "error", "done")


def settled(frames: list[Frame], question: Frame) -> list[str]:
    """What ended, in order; the question is settled once."""
    (resolved,) = of(frames, "interaction_resolved")
    assert resolved["interaction_id"] == question["interaction_id"]
    assert [each["awaiting"] for each in of(frames, "session_awaiting_input")][-1] is False
    return [kind for kind in types(of(frames, *CLOSING)) if kind != "session_awaiting_input"]


async def nothing_waits(house: House, session_id: str) -> None:
    assert await pending(house) == []
    assert await awaiting(house, session_id) == [False, False]


async def test_an_hour_is_enough(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        began = trio.current_time()
        rest = await one.turn(4000)
        assert trio.current_time() - began == pytest.approx(3600, abs=1)
        assert settled(rest, question) == ["interaction_resolved", "tool_result", "done"]
        result = of(rest, "tool_result")[0]
        assert (result["result"], result["is_error"]) == ("Nobody answered within an hour.", True)
    await nothing_waits(house, session_id)


@pytest.mark.parametrize("scope", ["turn", "all", "force"])
async def test_a_stop_settles_it(house: House, scope: str) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        began = trio.current_time()
        reply = await house.bob.post(f"/api/sessions/{session_id}/stop", json={"scope": scope})
        assert reply.json["turn"] == ("killed" if scope == "force" else "stopped")
        assert trio.current_time() - began < 1
        rest = await one.turn()
        assert settled(rest, question) == ["interaction_resolved", "tool_result", "stopped"]
        assert of(rest, "tool_result")[0]["result"] == "[Interrupted]"
        await nothing_waits(house, session_id)
        await answer(one, question, BLUE)
        assert (await one.until("error"))[-1]["error"] == "interaction_not_found"


async def test_a_session_that_waits_is_not_archived_but_by_force(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        kept = await house.archive(session_id)
        assert kept["skipped"] == [{"id": session_id, "reason": "session is running"}]
        assert (await house.archive(session_id, force=True))["archived"] is True
        assert settled(await one.turn(), question) == ["interaction_resolved", "tool_result", "error"]
    assert await pending(house) == []


async def test_a_deleted_session_settles_what_it_asked(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, tab(house.bob) as far:
        question = await ask(one, session_id)
        assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
        assert settled(await one.turn(), question) == ["interaction_resolved", "tool_result", "error"]
        told = of(await far.beat(), "session_awaiting_input", "session_running")
        assert [each.get("awaiting", each.get("is_running")) for each in told] == [True, True, False, False]
    assert await pending(house) == []


async def test_a_shutdown_settles_it_before_the_turn(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        with trio.fail_after(2):
            await house.supervisor.drain()
        rest = await one.turn()
        assert settled(rest, question) == ["interaction_resolved", "tool_result", "error"]
        assert of(rest, "error")[0]["error"] == "Interrupted by restart"
    assert await pending(house) == []


async def test_silence_is_not_counted_while_a_person_is_asked(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(silence_seconds=60)) as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as one:
            question = await ask(one, session_id, *ASK, "- wait: 300")
            await trio.sleep(600)
            answered = trio.current_time()
            await answer(one, question, BLUE)
            rest = await one.turn(100)
            assert "silent" in of(rest, "error")[0]["error"]
            assert trio.current_time() - answered == pytest.approx(60, abs=1)


# --- another runtime ----------------------------------------------------------------------------------------------


async def test_a_runtime_that_only_reacts_to_the_reply_is_told_of_the_stop(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
        puppet = await begun(house, one, session_id)
        replies: list[InteractionReply] = []

        async def calls_back() -> None:
            replies.append(await puppet.spec.host.ask(REQUEST))

        nursery.start_soon(calls_back)
        question = await asked(one)
        await one.send("stop", session_id=session_id)
        rest = await one.turn()
        assert settled(rest, question)[-1] == "stopped"
        assert replies == [Denied("Interrupted while waiting for an answer.")]
    await nothing_waits(house, session_id)


@pytest.mark.parametrize("cause", [None, RuntimeGone("It fell over."), RuntimeError("odd")])
async def test_a_runtime_that_dies_takes_its_question_along(house: House, cause: Exception | None) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
        puppet = await begun(house, one, session_id)
        nursery.start_soon(puppet.spec.host.ask, REQUEST)
        question = await asked(one)
        puppet.die(cause)
        rest = await one.turn()
        assert of(rest, "error")
        nursery.cancel_scope.cancel()
    await trio.testing.wait_all_tasks_blocked()
    await nothing_waits(house, session_id)
    assert question["tool_input"] == REQUEST.tool_input


async def test_what_a_sub_agent_asks_names_it_and_outlives_a_stop_of_the_turn(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
        puppet = await begun(house, one, session_id)
        replies: list[InteractionReply] = []

        async def calls_back() -> None:
            replies.append(await puppet.spec.host.ask(BY_AGENT))

        nursery.start_soon(calls_back)
        question = await asked(one)
        assert question["agent"] == {"agent_id": None, "task_id": "a1b2", "label": "a1b2"}
        await one.send("stop", session_id=session_id)
        assert of(await one.turn(), "interaction_resolved") == []
        assert await awaiting(house, session_id) == [True, True]
        await answer(one, question, {"answers": {}})
        await one.until("interaction_resolved")
        await trio.testing.wait_all_tasks_blocked()
        assert replies == [Allowed({"answers": {}})]
    await nothing_waits(house, session_id)


async def test_between_turns_the_end_of_the_runtime_settles_it(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
        puppet = await begun(house, one, session_id)
        nursery.start_soon(puppet.spec.host.ask, BY_AGENT)
        await asked(one)
        puppet.say(COMPLETED)
        await one.turn()
        await house.supervisor.drain()
        await one.until("interaction_resolved")
        assert (await one.until("session_awaiting_input"))[-1]["awaiting"] is False
        late = await puppet.spec.host.ask(REQUEST)
        assert late == Denied("Interrupted while waiting for an answer.")
    assert await pending(house) == []


async def test_of_two_questions_the_last_one_says_that_nothing_waits(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
        puppet = await begun(house, one, session_id)
        nursery.start_soon(puppet.spec.host.ask, REQUEST)
        first = await asked(one)
        nursery.start_soon(puppet.spec.host.ask, BY_AGENT)
        second = await asked(one)
        await answer(one, second, {"answers": {}})
        await one.until("interaction_resolved")
        assert await awaiting(house, session_id) == [True, True]
        await answer(one, first, {"answers": {}})
        await one.until("interaction_resolved")
        puppet.say(COMPLETED)
        await one.turn()
    assert [each["awaiting"] for each in of(one.frames, "session_awaiting_input")] == [True, False]


# --- a restart ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between_turns", [False, True])
async def test_after_a_kill_a_lost_question_is_visibly_cancelled(
    database: InlineDatabase, tmp_path: Path, between_turns: bool
) -> None:
    home = Home(database, tmp_path / "home")
    async with home.life() as life, trio.open_nursery() as nursery:
        session_id = await life.house.create()
        async with tab(life.house.alice, session_id) as one:
            puppet = await begun(life.house, one, session_id)
            nursery.start_soon(puppet.spec.host.ask, BY_AGENT if between_turns else REQUEST)
            question = await asked(one)
            if between_turns:
                puppet.say(COMPLETED)
                await one.turn()
            last = max(each["seq"] for each in one.frames if "seq" in each)
            life.kill()
        nursery.cancel_scope.cancel()
    assert await home.sql("SELECT id, seq FROM pending_interactions") == [(question["interaction_id"], question["seq"])]
    async with home.life() as life:
        house = life.house
        await nothing_waits(house, session_id)
        async with tab(house.alice, session_id, after_seq=last) as one:
            told = of(await one.beat(), "interaction_resolved", "tool_result", "error")
            assert told[0]["interaction_id"] == question["interaction_id"]
            assert types(told) == ["interaction_resolved"] + ([] if between_turns else ["tool_result", "error"])
            await answer(one, question, BLUE)
            assert (await one.until("error"))[-1]["error"] == "interaction_not_found"


async def test_a_second_kill_while_it_is_cancelled_changes_nothing(database: InlineDatabase, tmp_path: Path) -> None:
    home = Home(database, tmp_path / "home")
    async with home.life() as life:
        session_id = await life.house.create()
        async with tab(life.house.alice, session_id) as one:
            await ask(one, session_id)
            life.kill()
    for fatal in range(1, 8):
        await home.run_for(1, fatal=fatal)
    async with home.life():
        pass
    frames = await home.sql("SELECT frame FROM frames WHERE session_id = ? ORDER BY seq", session_id)
    assert sum('"interaction_resolved"' in frame for (frame,) in frames) == 1
