"""What is told of agents over sockets: when, to whom, and how much of it."""

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import trio

from nerve.adapters.subagents import AgentActed, AgentEnded, AgentOutcome, AgentProgressed, AgentText, AgentToolStarted
from tests.roster.rostering import (
    SERVER,
    WORKER,
    Stage,
    ask,
    page,
    roster,
    spawned,
    staged,
    started,
    views,
)
from tests.runtime.tabs import Tab, of, tab
from tests.sessions.session_house import House, play

TURN_ONLY = {"token", "thinking", "tool_use", "tool_result", "tool_output"}


async def timed(stage: Stage, seconds: float, kind: str = "agent_update") -> list[tuple[float, dict[str, Any]]]:
    """The frames of a kind that come within so many seconds, each with the second at which it came."""
    found: list[tuple[float, dict[str, Any]]] = []
    begin = trio.current_time()
    with trio.move_on_after(seconds):
        while True:
            frame = await stage.tab.socket.receive_json(seconds + 1)
            if frame["type"] == kind:
                found.append((round(trio.current_time() - begin, 3), frame))
    return found


# --- agent_update -------------------------------------------------------------------------------------------------


@pytest.mark.req("WS-48")
async def test_what_matters_is_told_after_50_ms_all_at_once(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned("a"), started("a"), spawned("b"))
        ((at, frame),) = await timed(stage, 0.5)
    assert at == pytest.approx(0.05, abs=0.01)
    assert {view["name"]: view["status"] for view in frame["agents"]} == {"a": "running", "b": "starting"}
    assert (frame["summary"]["total"], frame["summary"]["running"], frame["summary"]["starting"]) == (2, 1, 1)


async def progress(stage: Stage, refs: list[str], seconds: float) -> None:
    """Every 100 ms each of them has used more."""
    for step in range(round(seconds * 10)):
        stage.puppet.say(*(AgentProgressed(ref=ref, tokens=step + 1) for ref in refs))
        await trio.sleep(0.1)


@pytest.mark.req("WS-48")
@pytest.mark.parametrize(("live", "pause"), [(1, 1.0), (20, 1.0), (21, 2.0)])
async def test_progress_is_told_once_a_second_or_every_two_in_a_crowd(house: House, live: int, pause: float) -> None:
    refs = [f"ref-{number}" for number in range(live)]
    async with staged(house) as stage:
        for ref in refs:
            stage.puppet.say(spawned(ref), started(ref))
        await stage.tab.quiet(5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(progress, stage, refs[:3], 8.0)
            told = await timed(stage, 8.2)
    times = [at for at, _ in told]
    assert len(times) >= 3
    assert all(later - earlier >= pause - 0.001 for earlier, later in pairwise(times))
    assert max(later - earlier for earlier, later in pairwise(times)) < pause + 0.2
    assert {view["tokens"] for view in told[-1][1]["agents"]} == {told[-1][1]["agents"][0]["tokens"]}
    assert len(told[-1][1]["agents"]) == min(live, 3)


@pytest.mark.req("WS-48")
async def test_an_end_does_not_wait_for_the_second_of_progress(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started())
        await stage.tab.quiet(5)
        stage.puppet.say(AgentProgressed(ref="ref-1", tokens=1))
        assert len(await timed(stage, 0.1)) == 1
        stage.puppet.say(AgentProgressed(ref="ref-1", tokens=2))
        assert await timed(stage, 0.1) == []
        stage.puppet.say(AgentEnded(ref="ref-1", outcome=AgentOutcome.COMPLETED))
        ((_, frame),) = await timed(stage, 0.1)
    (view,) = frame["agents"]
    assert (view["status"], view["tokens"]) == ("completed", 2)


@pytest.mark.req("AGENT-11", "WS-48")
async def test_rev_only_grows_and_the_highest_is_the_newest(house: House) -> None:
    session_id = await house.create()
    steps = ", ".join(f"{{tool: Bash, input: {{command: step {number}}}, seconds: 0.3}}" for number in range(20))
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(f"- {{agent: busy, background: true, steps: [{steps}]}}", WORKER))
        revs: dict[str, list[int]] = {}
        for _ in range(20):
            for frame in of(await alice.quiet(0.4), "agent_update"):
                for view in frame["agents"]:
                    revs.setdefault(view["name"], []).append(view["rev"])
            for name, view in (await views(house, session_id)).items():
                assert view["rev"] >= max(revs.get(name, [0]))
    assert len(revs["busy"]) >= 5
    for told in revs.values():
        assert told == sorted(set(told))


@pytest.mark.req("WS-74")
async def test_another_sessions_sockets_hear_only_the_count(house: House) -> None:
    other = await house.create()
    async with staged(house) as stage, tab(house.bob, other) as bob:
        stage.puppet.say(spawned(), started())
        frames = await bob.quiet(5)
    assert {frame["type"] for frame in frames} == {"session_agents"}


# --- counts -------------------------------------------------------------------------------------------------------


@pytest.mark.req("WS-50", "WS-75", "SESS-32")
async def test_the_count_is_told_to_everybody_a_second_later_once(house: House) -> None:
    other = await house.create()
    async with staged(house) as stage, tab(house.bob, other) as bob:
        for number in range(3):
            stage.puppet.say(spawned(f"ref-{number}"), started(f"ref-{number}"))
            await trio.sleep(0.2)
        assert of(await bob.quiet(0.35), "session_agents") == []
        (told,) = of(await bob.quiet(0.2), "session_agents")
        wanted = {"type": "session_agents", "session_id": stage.session_id}
        assert told == {**wanted, "background_count": 3, "has_background_tasks": True}
        assert await counted(house, stage.session_id) == (False, True, 3)
        for number in range(3):
            stage.puppet.say(AgentEnded(ref=f"ref-{number}", outcome=AgentOutcome.STOPPED))
        (told,) = of(await bob.quiet(3), "session_agents")
        assert told == {**wanted, "background_count": 0, "has_background_tasks": False}
        assert await counted(house, stage.session_id) == (False, False, 0)
        # One that came and went within the second has changed nothing.
        stage.puppet.say(spawned("brief"), started("brief"))
        stage.puppet.say(AgentEnded(ref="brief", outcome=AgentOutcome.STOPPED))
        assert of(await bob.quiet(3), "session_agents") == []


async def counted(house: House, session_id: str) -> tuple[bool, bool, int]:
    """What the list of sessions says; the session's state says the same."""
    rows = (await house.alice.get("/api/sessions")).json["sessions"]
    row = next(row for row in rows if row["id"] == session_id)
    state = (await house.alice.get(f"/api/sessions/{session_id}/status")).json
    assert (state["is_running"], state["background_count"]) == (row["is_running"], row["background_count"])
    return row["is_running"], row["has_background_tasks"], row["background_count"]


@pytest.mark.req("WS-47", "SESS-32")
async def test_a_turns_boundaries_tell_the_count_and_are_independent_of_it(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, SERVER, "- say: x", "- wait: 5"))
        await alice.until("token")
        assert await counted(house, session_id) == (True, True, 2)
        ended = (await alice.turn())[-1]
        assert (ended["is_running"], ended["has_background_tasks"], ended["background_count"]) == (False, True, 2)
        assert await counted(house, session_id) == (False, True, 2)
        assert of(await alice.quiet(5), "session_agents") == []  # told already
        await alice.say(session_id, play("- say: x"))
        begun = (await alice.until("session_running"))[-1]
        assert (begun["is_running"], begun["has_background_tasks"], begun["background_count"]) == (True, True, 2)


# --- one agent's transcript ---------------------------------------------------------------------------------------


async def follow(tab: Tab, session_id: str, agent_id: str) -> None:
    await tab.send("agent_subscribe", session_id=session_id, agent_id=agent_id)
    await tab.beat()


@pytest.mark.req("WS-14", "WS-18", "WS-49")
async def test_only_who_follows_hears_it_and_at_once(house: House) -> None:
    async with staged(house) as stage, tab(house.bob, stage.session_id) as bob:
        stage.puppet.say(spawned(), started())
        await stage.told()
        agent_id = (await stage.only())["id"]
        await follow(bob, stage.session_id, agent_id)
        for word in ("one", "two"):
            stage.puppet.say(AgentActed("ref-1", AgentText(word)))
            assert of(await stage.tab.quiet(0), "agent_event") == []
            (event,) = of(await bob.quiet(0.001), "agent_event")
            assert event.keys() == {"type", "session_id", "agent_id", "item"}
            assert (event["agent_id"], event["item"]["text"]) == (agent_id, word)
            assert (await page(house, stage.session_id, agent_id))["items"][-1] == event["item"]
        await bob.send("agent_unsubscribe", session_id=stage.session_id, agent_id=agent_id)
        await bob.beat()
        stage.puppet.say(AgentActed("ref-1", AgentText("three")))
        assert of(await bob.quiet(5), "agent_event") == []


@pytest.mark.req("WS-15")
async def test_the_ninth_drops_the_oldest(house: House) -> None:
    refs = [f"ref-{number}" for number in range(9)]
    async with staged(house) as stage:
        for ref in refs:
            stage.puppet.say(spawned(ref), started(ref))
        await stage.told()
        ids = [view["id"] for view in (await roster(house, stage.session_id))["agents"]]

        async def heard() -> list[int]:
            await stage.tab.quiet(1)
            stage.puppet.say(*(AgentActed(ref, AgentText("x")) for ref in refs))
            return [ids.index(frame["agent_id"]) for frame in of(await stage.tab.quiet(0.01), "agent_event")]

        for agent_id in ids[:8]:
            await follow(stage.tab, stage.session_id, agent_id)
        assert await heard() == list(range(8))
        await follow(stage.tab, stage.session_id, ids[0])  # again: nothing moves
        await follow(stage.tab, stage.session_id, ids[8])
        assert await heard() == list(range(1, 9))


@pytest.mark.req("WS-13")
async def test_a_switch_drops_what_was_followed(house: House) -> None:
    other = await house.create()
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started())
        await stage.told()
        agent_id = (await stage.only())["id"]
        for leave in (stage.tab.switch, partial(stage.tab.say, content="hello")):  # a message binds as well
            await follow(stage.tab, stage.session_id, agent_id)
            await leave(other)
            await stage.tab.switch(stage.session_id)
            stage.puppet.say(AgentActed("ref-1", AgentText("x")))
            assert of(await stage.tab.quiet(1), "agent_event") == []
        await follow(stage.tab, stage.session_id, agent_id)
        await stage.tab.send("switch_session", session_id="nowhere")  # refused, so nothing is left
        await stage.tab.until("error")
        stage.puppet.say(AgentActed("ref-1", AgentText("x")))
        assert len(of(await stage.tab.quiet(1), "agent_event")) == 1


@pytest.mark.req("WS-16", "WS-17")
async def test_an_agent_that_is_not_in_the_active_session(house: House) -> None:
    other = await house.create()
    async with staged(house) as stage, tab(house.alice, other) as alice:
        stage.puppet.say(spawned(), started())
        await stage.told()
        agent_id = (await stage.only())["id"]
        for session_id, agent in ((other, agent_id), (stage.session_id, agent_id), (other, "ag_nobody")):
            await alice.send("agent_subscribe", session_id=session_id, agent_id=agent)
            error = (await alice.until("error"))[-1]
            assert error == {"type": "error", "session_id": session_id, "error": "agent_not_found"}
        stage.puppet.say(AgentActed("ref-1", AgentText("x")))
        assert of(await alice.quiet(1), "agent_event") == []


@pytest.mark.req("WS-49")
async def test_a_slow_reader_may_miss_items_and_finds_them_by_number(house: House) -> None:
    """What is live is left out when much waits; the numbers show the gap."""
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started())
        await stage.told()
        agent_id = (await stage.only())["id"]
        async with tab(house.bob, stage.session_id, window=1) as bob:
            await bob.send("agent_subscribe", session_id=stage.session_id, agent_id=agent_id)
            await trio.sleep(0.1)
            for number in range(60):
                stage.puppet.say(AgentActed("ref-1", AgentText(f"{number} " + "x" * 30_000)))
            await trio.sleep(1)
            frames = of(await bob.quiet(5), "agent_event")
        heard = [frame["item"]["seq"] for frame in frames]
        assert heard == sorted(set(heard))
        assert len(heard) < 60
        everything = (await page(house, stage.session_id, agent_id, limit=500))["items"]
        assert [item["seq"] for item in everything] == list(range(1, 62))


@pytest.mark.req("WS-43", "WS-44", "WS-76")
async def test_a_bind_brings_the_roster_as_rest_tells_it(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play(WORKER, SERVER, "- {agent: front}"))
    async with tab(house.alice) as alice:
        status = (await alice.switch(session_id))[-1]
    snapshot = await roster(house, session_id)
    assert {**status["agents"], "generated_at": ""} == {**snapshot, "generated_at": ""}
    assert [view["name"] for view in snapshot["agents"]] == ["build-api", "server", "front"]


async def test_a_spawn_names_its_child_before_the_call_is_told(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned("top"), started("top"))
        stage.puppet.say(spawned("child", parent_ref="top"))
        stage.puppet.say(AgentActed("top", AgentToolStarted("call-child", "Agent", {"name": "child"})))
        await stage.told()
        found = await views(house, stage.session_id)
        items = (await ask(house, stage.session_id, found["top"]["id"], "transcript")).json["items"]
    assert items[-1]["child_agent_id"] == found["child"]["id"]
    assert found["child"]["depth"] == 2
