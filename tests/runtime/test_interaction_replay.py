"""A socket that binds later learns of what waits for a person, once (decisions D28)."""

from pathlib import Path

import pytest
import trio

from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.runtime.asking import BLUE, BY_AGENT, answer, ask, asked, begun
from tests.runtime.puppets import COMPLETED, puppets
from tests.runtime.tabs import Frame, of, tab, types
from tests.sessions.session_house import House, open_house, play
from tests.sessions.test_session_stream import until

pytestmark = pytest.mark.req("WS-47", "WS-67")


def buffered(greeting: list[Frame]) -> list[Frame]:
    return list(of(greeting, "session_status")[0].get("buffered_events", []))


async def test_within_the_turn_it_is_among_the_buffered_events(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        async with tab(house.bob, session_id) as late:
            assert of(buffered(late.greeting), "interaction") == [question]
            assert of(await late.beat(), "interaction") == []
            await answer(late, question, BLUE)
            assert of(await late.turn(), "done")


async def test_a_plan_and_its_summary_are_among_the_buffered_events(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        await one.say(session_id, play("- plan: p"))
        await one.until("plan_summary")
        async with tab(house.bob, session_id) as late:
            told = of(buffered(late.greeting), "plan_update", "interaction", "plan_summary")
            assert types(told) == ["plan_update", "interaction", "plan_summary"]
            assert told == of(one.frames, "plan_update", "interaction", "plan_summary")


async def test_what_the_buffer_has_no_room_for_follows_it(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(log_frames=3)) as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
            adapter = puppets(house)
            await one.say(session_id, "Hello")
            puppet = await adapter.prompted()
            nursery.start_soon(puppet.spec.host.ask, BY_AGENT)
            question = await asked(one)
            nursery.start_soon(puppet.spec.host.ask, BY_AGENT)
            second = await asked(one)
            await answer(one, second, {"answers": {}})
            await one.until("interaction_resolved")
            nursery.start_soon(puppet.spec.host.ask, BY_AGENT)
            third = await asked(one)
            async with tab(house.bob, session_id) as late:
                events = buffered(late.greeting)
                assert types(events) == ["interaction", "interaction_resolved", "interaction"]
                assert of(await late.beat(), "interaction") == [question]
                assert events[-1] == third
            puppet.say(COMPLETED)
            await one.turn()
            nursery.cancel_scope.cancel()


async def test_between_turns_it_follows_the_status_with_its_old_number(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
        puppet = await begun(house, one, session_id)
        nursery.start_soon(puppet.spec.host.ask, BY_AGENT)
        question = await asked(one)
        puppet.say(COMPLETED)
        await one.turn()
        async with tab(house.bob, session_id) as late:
            assert late.greeting[-1]["last_seq"] > question["seq"]
            assert of(await late.beat(), "interaction") == [question]
            await answer(late, question, {"answers": {}})
            await late.until("interaction_resolved")
        async with tab(house.bob, session_id) as later:
            assert of(await later.beat(), "interaction") == []


async def test_who_comes_back_by_number_has_seen_it_or_gets_it_from_the_log(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        for after, told in ((question["seq"], []), (question["seq"] - 1, [question]), (0, [question])):
            async with tab(house.bob, session_id, after_seq=after) as late:
                assert of(await late.beat(), "interaction") == told


async def test_it_follows_a_reset_and_a_gap(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(log_frames=2)) as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as one, trio.open_nursery() as nursery:
            adapter = puppets(house)
            await one.say(session_id, "Hello")
            puppet = await adapter.prompted()
            nursery.start_soon(puppet.spec.host.ask, BY_AGENT)
            question = await asked(one)
            for times in (2, 3):
                puppet.say(COMPLETED)
                await one.turn()
                await one.say(session_id, "And then?")
                await adapter.prompted(times)
            puppet.say(COMPLETED)
            await one.turn()
            assert await house.sql("SELECT count(*) FROM frames WHERE seq <= ?", question["seq"]) == [(0,)]
            for after in (0, question["seq"], 10_000):
                async with tab(house.bob, session_id, after_seq=after) as late:
                    told = of(await late.beat(), "gap", "interaction")
                    assert types(told) == ["gap", "interaction"]
                    assert told[-1] == question
            nursery.cancel_scope.cancel()


async def test_the_event_stream_carries_it(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as one:
        question = await ask(one, session_id)
        async with house.bob.open("GET", f"/api/sessions/{session_id}/stream") as stream:
            await answer(one, question, BLUE)
            seen = of(await until(stream, "done"), "interaction", "interaction_resolved", "session_awaiting_input")
    assert types(seen) == ["interaction", "interaction_resolved"]
    assert seen[0] == question
