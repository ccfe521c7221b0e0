"""What the answers to stops say of agents, and who asked for them."""

from typing import Any

import pytest
import trio

from tests.roster.rostering import SERVER, WORKER, page, roster, stop, stop_agent, views
from tests.runtime.tabs import of, tab
from tests.sessions.session_house import ALICE, House, play

CHILD = "{agent: child, background: true, steps: [wait: 600]}"
GRANDCHILD = f"{{agent: middle, background: true, steps: [{CHILD}, wait: 600]}}"
TREE = f"- {{agent: top, background: true, steps: [{GRANDCHILD}, wait: 600]}}"
PAUSE = "- wait: 1"


async def planted(house: House, *steps: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """A session whose turn of these steps has ended, and its agents by name."""
    session_id = await house.create()
    await house.run(session_id, play(*steps, PAUSE))
    return session_id, await views(house, session_id)


def ids(found: dict[str, dict[str, Any]], *names: str) -> list[str]:
    return [found[name]["id"] for name in names]


@pytest.mark.req("AGENT-48", "AGENT-49", "AGENT-50", "AGENT-53")
@pytest.mark.parametrize("body", [{}, {"cascade": True}, None], ids=str)
async def test_a_stop_reaches_what_the_agent_started_deepest_first(house: House, body: Any) -> None:
    session_id, found = await planted(house, TREE, WORKER)
    path = f"/api/sessions/{session_id}/agents/{found['top']['id']}/stop"
    reply = await (house.alice.post(path) if body is None else house.alice.post(path, json=body))
    assert reply.status == 202
    assert reply.json.keys() == {"agent", "stopping"}
    assert reply.json["stopping"] == ids(found, "child", "middle", "top")
    assert reply.json["agent"]["status"] in ("stopping", "stopped")
    assert reply.json["agent"]["stopped_by_actor_id"] == ALICE
    await trio.sleep(1)
    after = await views(house, session_id)
    for name in ("child", "middle", "top"):
        view = after[name]
        assert (view["status"], view["end_reason"], view["attention"]) == ("stopped", "user", None)
        assert view["stopped_by_actor_id"] == ALICE
        assert view["stop_requested_at"] <= view["ended_at"]
        asked, ended = (await page(house, session_id, view["id"]))["items"][-2:]
        assert [(item["event"], item["reason"], item["actor_id"]) for item in (asked, ended)] == [
            ("stop_requested", "user", ALICE),
            ("stopped", "user", ALICE),
        ]
    assert after["child"]["ended_at"] <= after["middle"]["ended_at"] <= after["top"]["ended_at"]
    assert after["build-api"]["status"] == "running"


@pytest.mark.req("AGENT-48")
async def test_without_a_cascade_what_it_started_goes_on(house: House) -> None:
    session_id, found = await planted(house, TREE)
    reply = await stop_agent(house, session_id, found["top"]["id"], cascade=False)
    assert (reply.status, reply.json["stopping"]) == (202, ids(found, "top"))
    await trio.sleep(1)
    after = await views(house, session_id)
    assert [after[name]["status"] for name in ("top", "middle", "child")] == ["stopped", "running", "running"]
    assert after["middle"]["parent_agent_id"] == found["top"]["id"]  # the record keeps its parent (decisions D34)
    assert (await stop_agent(house, session_id, found["middle"]["id"])).json["stopping"] == ids(
        found, "child", "middle"
    )


@pytest.mark.req("AGENT-50", "AGENT-53")
async def test_a_stop_is_stopping_until_it_is_confirmed(house: House) -> None:
    session_id, found = await planted(house, "- {agent: slow, background: true, stop_seconds: 5, steps: [wait: 600]}")
    for _ in range(2):  # asked again it is still on its way
        reply = await stop_agent(house, session_id, found["slow"]["id"])
        assert (reply.status, reply.json["stopping"]) == (202, ids(found, "slow"))
        assert (reply.json["agent"]["status"], reply.json["agent"]["ended_at"]) == ("stopping", None)
        await trio.sleep(2)
    await trio.sleep(2)
    slow = (await views(house, session_id))["slow"]
    assert (slow["status"], slow["end_reason"]) == ("stopped", "user")


@pytest.mark.req("AGENT-51")
async def test_one_that_has_ended_is_at_rest(house: House) -> None:
    session_id, found = await planted(house, "- {agent: quick, result: done}")
    reply = await stop_agent(house, session_id, found["quick"]["id"])
    assert (reply.status, reply.json["stopping"]) == (200, [])
    assert reply.json["agent"] == found["quick"]


@pytest.mark.req("AGENT-52")
async def test_the_turn_and_the_other_agents_go_on(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(TREE, WORKER, SERVER, "- say: x", "- wait: 5", "- say: over"))
        await alice.until("token")
        found = await views(house, session_id)
        await stop_agent(house, session_id, found["build-api"]["id"])
        frames = await alice.turn()
    assert of(frames, "done")
    after = await views(house, session_id)
    assert {name for name, view in after.items() if view["status"] == "running"} == {"top", "middle", "child", "server"}


@pytest.mark.req("AGENT-54")
async def test_a_runtime_that_is_gone(house: House) -> None:
    session_id, found = await planted(house, WORKER, SERVER, "- crash: silent")
    assert found["build-api"]["status"] == "running"  # nobody has noticed
    reply = await stop_agent(house, session_id, found["build-api"]["id"])
    assert (reply.status, reply.json["detail"]["code"]) == (409, "no_runtime")
    for view in (await views(house, session_id)).values():
        assert (view["status"], view["end_reason"]) == ("interrupted", "process_ended")
    reply = await stop_agent(house, session_id, found["build-api"]["id"])
    assert (reply.status, reply.json["stopping"]) == (200, [])


@pytest.mark.req("AGENT-55", "AGENT-66")
async def test_a_runtime_that_cannot_stop_one(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(
            session_id, play("- capabilities: {stop_task: false}", WORKER, SERVER, "- say: x", "- wait: 600")
        )
        await alice.until("token")
        found = await views(house, session_id)
        reply = await stop_agent(house, session_id, found["build-api"]["id"])
        assert (reply.status, reply.json["detail"]["code"]) == (501, "unsupported")
        answer = await stop(house, session_id, scope="all")
    assert answer == {
        "scope": "all",
        "turn": "stopped",
        "stopping": [],
        "unsupported": ids(found, "build-api", "server"),
    }
    assert [view["status"] for view in (await roster(house, session_id))["agents"]] == ["running", "running"]


# --- by scope -----------------------------------------------------------------------------------------------------


@pytest.mark.req("AGENT-58", "AGENT-57")
async def test_no_turn_to_stop(house: House) -> None:
    session_id, _ = await planted(house, WORKER)
    wanted = {"scope": "turn", "turn": "not_running", "would_end": [], "shell_count": 0}
    assert await stop(house, session_id) == wanted
    assert await stop(house, session_id, scope="turn") == wanted
    assert (await views(house, session_id))["build-api"]["status"] == "running"


@pytest.mark.req("AGENT-59")
async def test_the_turn_alone_is_stopped_with_what_it_waits_for(house: House) -> None:
    session_id = await house.create()
    front = "- {agent: front, steps: [say: x, wait: 600]}"
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, SERVER, front))
        await alice.until(lambda frame: frame["type"] == "agent_update" and len(frame["agents"]) == 3)
        answer = await stop(house, session_id)
    assert answer == {"scope": "turn", "turn": "stopped", "would_end": [], "shell_count": 0}
    await trio.sleep(1)
    after = await views(house, session_id)
    assert [after[name]["status"] for name in ("build-api", "server", "front")] == ["running", "running", "stopped"]
    assert (after["front"]["end_reason"], after["front"]["stopped_by_actor_id"]) == ("turn_stop", ALICE)


@pytest.mark.req("AGENT-61")
async def test_a_turn_that_cannot_be_killed_for_the_agents_sake(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, SERVER, "- say: x", "- stuck: 600"))
        await alice.until("token")
        before = trio.current_time()
        answer = await stop(house, session_id)
        assert 5 <= trio.current_time() - before < 6
        assert (answer["turn"], answer["shell_count"]) == ("not_stopped", 1)
        assert [brief["label"] for brief in answer["would_end"]] == ["build-api", "server"]
        forced = await stop(house, session_id, scope="force")
    assert forced["turn"] == "killed"
    assert sorted(forced["ended"]) == sorted(brief["id"] for brief in answer["would_end"])


@pytest.mark.req("AGENT-62", "AGENT-63")
async def test_a_runtime_that_spares_nothing_asks_first(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        spares_not = "- capabilities: {interrupt_spares_background: false}"
        await alice.say(session_id, play(spares_not, WORKER, SERVER, "- say: x", "- wait: 600"))
        await alice.until("token")
        answer = await stop(house, session_id)
        assert (answer["turn"], answer["shell_count"]) == ("needs_confirmation", 1)
        assert [brief["label"] for brief in answer["would_end"]] == ["build-api", "server"]
        assert {view["status"] for view in (await views(house, session_id)).values()} == {"running"}
        await alice.send("stop", session_id=session_id)
        assert (await alice.until("error"))[-1]["error"] == "needs_confirmation"
        answer = await stop(house, session_id, confirm_kill_background=True)
    assert (answer["turn"], answer["would_end"]) == ("stopped", [])
    await trio.sleep(1)
    for view in (await views(house, session_id)).values():
        assert (view["status"], view["end_reason"]) == ("stopped", "turn_stop")


@pytest.mark.req("AGENT-64", "AGENT-53", "AGENT-71")
async def test_everything_is_stopped(house: House) -> None:
    session_id, found = await planted(house, TREE, SERVER, "- {agent: quick, result: done}")
    answer = await stop(house, session_id, scope="all")
    assert answer["stopping"][0] == found["child"]["id"]
    assert sorted(answer.pop("stopping")) == sorted(ids(found, "child", "middle", "top", "server"))
    assert answer == {"scope": "all", "turn": "not_running", "unsupported": []}
    await trio.sleep(1)
    after = await views(house, session_id)
    for name in ("child", "middle", "top", "server"):
        assert (after[name]["status"], after[name]["end_reason"]) == ("stopped", "stop_all")
        assert after[name]["stopped_by_actor_id"] == ALICE
    assert after["quick"]["status"] == "completed"
    requested = next(e for e in await house.events(session_id) if e["event_type"] == "stop_requested")
    assert requested["actor_id"] == ALICE
    assert requested["details"]["scope"] == "all"


@pytest.mark.req("AGENT-65")
async def test_shells_and_monitors_can_be_spared(house: House) -> None:
    session_id, found = await planted(house, WORKER, SERVER, "- {monitor: watch, seconds: 600}")
    answer = await stop(house, session_id, scope="all", include_shells=False)
    assert answer["stopping"] == ids(found, "build-api")
    await trio.sleep(1)
    after = await views(house, session_id)
    assert [after[name]["status"] for name in ("build-api", "server", "watch")] == ["stopped", "running", "running"]
    answer = await stop(house, session_id, scope="all")
    assert sorted(answer["stopping"]) == sorted(ids(found, "server", "watch"))


@pytest.mark.req("AGENT-67")
async def test_force_ends_everything_also_between_turns(house: House) -> None:
    session_id, found = await planted(
        house, "- {agent: deaf, background: true, on_stop: ignore, steps: [wait: 600]}", SERVER
    )
    answer = await stop(house, session_id, scope="force")
    assert sorted(answer.pop("ended")) == sorted(ids(found, "deaf", "server"))
    assert answer == {"scope": "force", "turn": "not_running"}
    for view in (await views(house, session_id)).values():
        assert (view["status"], view["end_reason"], view["attention"]) == ("interrupted", "force_stop", "interrupted")
    await house.run(session_id, play("- say: well again"))


@pytest.mark.req("AGENT-68")
@pytest.mark.parametrize("body", [{}, {"scope": "all"}, {"scope": "force"}], ids=str)
async def test_what_waits_in_the_queue_runs_after_any_stop(house: House, body: dict[str, Any]) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, "- say: x", "- wait: 600"))
        await alice.until("token")
        await alice.say(session_id, play("- say: next"), "m-2")
        await alice.until(lambda frame: frame["type"] == "queue_update" and frame["queue"] != [])
        assert [entry["client_msg_id"] for entry in (await roster(house, session_id))["queue"]] == ["m-2"]
        await stop(house, session_id, **body)
        await alice.turn()
        assert of(await alice.turn(), "done")


@pytest.mark.req("AGENT-52", "AGENT-68")
async def test_the_stop_of_an_agent_leaves_the_queue(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, "- say: x", "- wait: 600"))
        await alice.until("token")
        await alice.say(session_id, play("- say: next"), "m-2")
        await alice.until(lambda frame: frame["type"] == "queue_update" and frame["queue"] != [])
        found = await views(house, session_id)
        await stop_agent(house, session_id, found["build-api"]["id"])
        await alice.quiet(5)
        assert [entry["client_msg_id"] for entry in (await roster(house, session_id))["queue"]] == ["m-2"]
