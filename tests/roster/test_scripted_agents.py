"""The steps of a play that start agents and tasks, in every way they may go (decisions D31 to D38, D48, D49)."""

from typing import Any

import pytest
import trio

from tests.roster.rostering import SERVER, WORKER, ask, page, stop, stop_agent, views
from tests.runtime.tabs import Tab, of, tab, text
from tests.sessions.session_house import House, play


def settling(steps: str, settled: str) -> str:
    return play(f"steps: {steps}", f"on_settled: {settled}")


async def said(house: House, session_id: str, message: str) -> tuple[list[dict[str, Any]], str]:
    """The frames of one turn, and what it said."""
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, message)
        frames = await alice.turn()
    return frames, text(frames)


# --- in the foreground --------------------------------------------------------------------------------------------


async def test_the_report_of_an_agent_is_the_result_of_its_call(house: House) -> None:
    session_id = await house.create()
    fields = "type: builder, description: Build it, prompt: Please build., model: opus, result: Built."
    frames, words = await said(house, session_id, play(f"- {{agent: build, {fields}}}", "- say: '${result}'"))
    (call,), (result,) = of(frames, "tool_use"), of(frames, "tool_result")
    assert (call["tool"], call["input"]) == (
        "Agent",
        {
            "name": "build",
            "description": "Build it",
            "prompt": "Please build.",
            "subagent_type": "builder",
            "model": "opus",
            "run_in_background": False,
        },
    )
    assert (result["tool_use_id"], result["result"], result["is_error"]) == (call["tool_use_id"], "Built.", False)
    assert words == "Built."
    view = (await views(house, session_id))["build"]
    assert (view["background"], view["model"], view["result_preview"]) == (False, "opus", "Built.")
    details = (await ask(house, session_id, view["id"])).json
    assert (details["prompt"], details["result_text"]) == ("Please build.", "Built.")


@pytest.mark.parametrize(
    ("ending", "status"),
    [("ends: failed, result: No.", "failed"), ("steps: [fail: No.]", "failed"), ("ends: vanished", "lost")],
)
async def test_an_end_that_is_no_success_is_an_error_and_the_play_goes_on(
    house: House, ending: str, status: str
) -> None:
    session_id = await house.create()
    before = trio.current_time()
    frames, words = await said(house, session_id, play(f"- {{agent: poor, {ending}}}", "- say: on"))
    assert trio.current_time() - before < 5
    assert [frame["is_error"] for frame in of(frames, "tool_result")] == [True]
    assert words == "on"
    assert of(frames, "done")
    await trio.sleep(1)
    assert (await views(house, session_id))["poor"]["status"] == status


async def test_one_that_is_stopped_is_an_error_and_the_play_goes_on(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- {agent: long, steps: [say: begun, wait: 600]}", "- say: on"))
        await alice.until("agent_update")
        await stop_agent(house, session_id, (await views(house, session_id))["long"]["id"])
        frames = await alice.turn()
    assert [frame["is_error"] for frame in of(frames, "tool_result")] == [True]
    assert text(frames) == "on"


async def test_what_one_was_just_saying_is_kept_when_it_is_stopped(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- {agent: slow, background: true, steps: [{say: one two three, pace: 10}]}"))
    await trio.sleep(15)
    view = (await views(house, session_id))["slow"]
    await stop_agent(house, session_id, view["id"])
    await trio.sleep(1)
    items = (await page(house, session_id, view["id"]))["items"]
    assert [item.get("text", item.get("event")) for item in items] == [
        "started",
        "stop_requested",
        "one two ",
        "stopped",
    ]


async def test_one_item_a_step(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- {agent: a, steps: [{say: one two, pace: 1}, say: three, think: four]}"))
    view = (await views(house, session_id))["a"]
    items = (await page(house, session_id, view["id"]))["items"]
    assert [item["text"] for item in items if item["kind"] in ("text", "thinking")] == ["one two", "three", "four"]


async def test_a_plan_of_a_sub_agent_is_told(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- {agent: planner, background: true, steps: [plan: Plant a tree]}"))
        assert (await alice.until("plan_update"))[-1]["content"] == "Plant a tree"
        asked = (await alice.until("interaction"))[-1]
        assert asked["agent"]["label"] == "planner"


# --- in the background --------------------------------------------------------------------------------------------


async def hears_turn(alice: Tab) -> str:
    frames = await alice.turn()
    assert next(frame["type"] for frame in frames if "seq" in frame) == "auto_turn"
    return text(frames)


async def test_what_settles_between_turns_begins_one(house: House) -> None:
    session_id = await house.create()
    steps = "[{agent: a, background: true, steps: [wait: 5]}, {shell: s, seconds: 9}, {say: hello}]"
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, settling(steps, "[{say: one is ready}]"))
        assert text(await alice.turn()) == "hello"
        assert await hears_turn(alice) == "one is ready"
        assert await hears_turn(alice) == "one is ready"
        # Of the latest play, and a line without one.
        await alice.say(session_id, play("- {agent: b, background: true, steps: [wait: 5]}"))
        await alice.turn()
        assert await hears_turn(alice) != ""
    rows = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    assert [row["role"] for row in rows] == [
        "user",
        "assistant",
        "assistant",
        "assistant",
        "user",
        "assistant",
        "assistant",
    ]


async def test_an_autonomous_turn_leaves_the_sessions_place_in_the_feed(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- {agent: a, background: true, steps: [wait: 5]}"))
    before = (await house.row(session_id))["updated_at"]
    await trio.sleep(10)
    assert (await house.row(session_id))["message_count"] == 3
    assert (await house.row(session_id))["updated_at"] == before


ENDED_BY_OTHERS = ("stop", "stop all", "force", "crash", "nested", "foreground")


@pytest.mark.parametrize("how", ENDED_BY_OTHERS)
async def test_what_does_not_end_by_itself_begins_no_turn(house: House, how: str) -> None:
    session_id = await house.create()
    nested = "- {agent: top, background: true, steps: [{agent: inner, background: true, steps: [wait: 2]}, wait: 600]}"
    plays = {
        "nested": [nested],
        "foreground": ["- {agent: front, steps: [wait: 2]}"],
        "crash": [WORKER, "- {agent: bomb, background: true, steps: [wait: 2, crash: true]}"],
    }
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(*plays.get(how, [WORKER, SERVER])))
        await alice.turn()
        match how:
            case "stop":
                for view in (await views(house, session_id)).values():
                    await stop_agent(house, session_id, view["id"])
            case "stop all":
                await stop(house, session_id, scope="all")
            case "force":
                await stop(house, session_id, scope="force")
        assert of(await alice.quiet(10), "auto_turn") == []
    if how == "crash":
        for view in (await views(house, session_id)).values():
            assert (view["status"], view["end_reason"]) == ("interrupted", "process_ended")


async def test_one_that_was_stopped_is_named_with_those_that_begin_a_turn(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, "- {agent: quick, background: true, steps: [wait: 5]}"))
        await alice.turn()
        await stop_agent(house, session_id, (await views(house, session_id))["build-api"]["id"])
        auto = of(await alice.turn(), "auto_turn")[0]
        assert {trigger["label"]: trigger["status"] for trigger in auto["triggers"]} == {
            "build-api": "stopped",
            "quick": "completed",
        }
        # The turn after a message does not hear of it again.
        await alice.say(session_id, play("- say: hello"))
        await alice.turn()
        assert of(await alice.quiet(5), "auto_turn") == []


# --- shells, monitors, workflows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "status"), [(0, "completed"), (3, "failed")])
@pytest.mark.parametrize("background", ["true", "false"])
async def test_a_shell_ends_as_its_exit_code_says(house: House, code: int, status: str, background: str) -> None:
    session_id = await house.create()
    fields = f"command: make, output: [built], seconds: 2, exit_code: {code}, background: {background}"
    frames, _ = await said(house, session_id, play(f"- {{shell: make, {fields}}}"))
    (call,), (result,) = of(frames, "tool_use"), of(frames, "tool_result")
    assert (call["tool"], call["input"]["command"]) == ("Bash", "make")
    assert result["is_error"] is (background == "false" and code != 0)
    await trio.sleep(3)
    view = (await views(house, session_id))["make"]
    assert (view["status"], view["background"]) == (status, background == "true")
    output = (await ask(house, session_id, view["id"], "output")).json
    assert (output["text"], output["available"]) == ("built", True)


async def test_a_program_needs_a_permission(house: House) -> None:
    session_id = await house.create()
    frames, _ = await said(house, session_id, play("- say: x", "- {shell: make, run: [make]}"))
    assert [frame["error"].split(":")[0] for frame in of(frames, "error")] == ["/1"]
    assert await views(house, session_id) == {}


async def test_a_workflow_that_is_cut_off_runs_no_more(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- workflow: {name: w, phases: [a], agents: [x, y], seconds: 600}"))
        await alice.until("workflow_progress")
        await stop(house, session_id)
        frames = await alice.turn()
    assert [frame["workflow"]["status"] for frame in of(frames, "workflow_progress")] == ["stopped"]
    row = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"][-1]
    block = next(block for block in row["blocks"] if block["type"] == "tool_call")
    assert (block["workflow"]["status"], block["is_error"]) == ("stopped", True)
    view = (await views(house, session_id))["w"]
    assert (view["status"], view["workflow"]["status"]) == ("stopped", "stopped")


async def test_a_workflow_of_a_runtime_that_dies_runs_no_more(house: House) -> None:
    session_id = await house.create()
    bomb = "- {agent: bomb, background: true, steps: [wait: 2, crash: true]}"
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(bomb, "- workflow: {name: w, phases: [a], agents: [x, y], seconds: 600}"))
        await alice.turn()
    row = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"][-1]
    block = next(block for block in row["blocks"] if block.get("tool") == "Workflow")
    assert block["workflow"]["status"] == "stopped"
    view = (await views(house, session_id))["w"]
    assert (view["status"], view["workflow"]["status"]) == ("interrupted", "stopped")
