"""What a turn tells of agents, and what it leaves to them; the turns that begin because agents ended."""

import pytest

from nerve.adapters.subagents import AgentEnded, AgentOutcome
from nerve.contract.generated.entities import AgentKind
from tests.roster.rostering import SERVER, WORKER, page, spawned, staged, started, stop_agent, views
from tests.runtime.tabs import of, tab, text
from tests.sessions.session_house import House, play

TURN_ONLY = {"token", "thinking", "tool_use", "tool_result", "tool_output"}


@pytest.mark.req("WS-37")
async def test_what_a_sub_agent_does_is_no_part_of_the_turn(house: House) -> None:
    session_id = await house.create()
    inner = "[say: inside, think: inside, {tool: Read, output: [inside], result: inside}, {model: other}]"
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(f"- {{agent: inner, steps: {inner}, result: reported}}", "- say: outside"))
        frames = await alice.turn()
    turn = of(frames, *TURN_ONLY)
    assert [frame["type"] for frame in turn] == ["tool_use", "tool_result", "token"]
    assert (turn[0]["tool"], turn[1]["result"], text(frames)) == ("Agent", "reported", "outside")
    assert "inside" not in str(of(frames, *TURN_ONLY, "done"))
    assert of(frames, "model_changed") == []
    message = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"][-1]
    assert [block["type"] for block in message["blocks"]] == ["tool_call", "text"]
    agent_id = (await views(house, session_id))["inner"]["id"]
    kinds = [item["kind"] for item in (await page(house, session_id, agent_id))["items"]]
    assert kinds == ["lifecycle", "text", "thinking", "tool_call", "tool_result", "lifecycle"]


@pytest.mark.req("WS-38")
async def test_an_autonomous_turn_names_five_and_counts_the_rest(house: House) -> None:
    session_id = await house.create()
    short = [f"- {{agent: a{number}, background: true, steps: [wait: 2.{number}]}}" for number in range(7)]
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(*short, "- {agent: front}", "- wait: 5"))
        assert of(await alice.turn(), "auto_turn") == []
        frames = await alice.turn()
        auto = of(frames, "auto_turn")[0]
        assert next(frame for frame in frames if "seq" in frame) == auto
        assert [trigger["label"] for trigger in auto["triggers"]] == [f"a{number}" for number in range(5)]
        assert auto["more"] == 2
        agent_id = (await views(house, session_id))["a0"]["id"]
        assert auto["triggers"][0] == {"agent_id": agent_id, "label": "a0", "kind": "agent", "status": "completed"}
        assert of(await alice.quiet(5), "auto_turn") == []
    message = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"][-1]
    assert message["role"] == "assistant"
    assert message["blocks"][0] == {"type": "auto", "triggers": auto["triggers"], "more": 2}


@pytest.mark.req("WS-38")
async def test_a_message_takes_what_has_settled_before_it(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- {agent: a, background: true, steps: [wait: 2]}", "- wait: 5"))
        await alice.until("tool_use")
        await alice.say(session_id, play("- say: mine"))
        await alice.turn()
        assert text(await alice.turn()) == "mine"
        assert of(await alice.quiet(5), "auto_turn") == []


@pytest.mark.req("WS-53", "AGENT-12")
async def test_a_workflow_shows_its_progress(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        flow = "- workflow: {name: review, phases: [Read, Judge], agents: [reader, judge], seconds: 4}"
        await alice.say(session_id, play(flow))
        frames = await alice.turn()
    call = of(frames, "tool_use")[0]
    told = of(frames, "workflow_progress")
    assert {frame["tool_use_id"] for frame in told} == {call["tool_use_id"]}
    states = [[agent["state"] for agent in frame["workflow"]["agents"]] for frame in told]
    assert states == [["running", "pending"], ["completed", "running"], ["completed", "completed"]]
    assert [frame["workflow"]["status"] for frame in told] == ["running", "running", "completed"]
    view = (await views(house, session_id))["review"]
    assert (view["kind"], view["workflow"]) == ("workflow", told[-1]["workflow"])
    message = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"][-1]
    block = next(block for block in message["blocks"] if block["type"] == "tool_call")
    assert block["workflow"] == told[-1]["workflow"]


@pytest.mark.req("WS-52")
async def test_old_tabs_hear_of_background_tasks_in_short(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(WORKER, SERVER, "- {agent: front}"))
        frames = await alice.turn() + await alice.quiet(1)
        found = await views(house, session_id)
        assert of(frames, "background_tasks_update")[-1]["tasks"] == [
            {"task_id": found["build-api"]["task_id"], "label": "build-api", "tool": "Agent", "status": "running"},
            {"task_id": found["server"]["task_id"], "label": "server", "tool": "Bash", "status": "running"},
        ]
        await stop_agent(house, session_id, found["build-api"]["id"])
        told = of(await alice.quiet(1), "background_tasks_update")[-1]["tasks"]
        assert {task["label"]: task["status"] for task in told} == {"build-api": "failed", "server": "running"}


OLD_WORDS = {AgentOutcome.COMPLETED: "done", AgentOutcome.FAILED: "failed", AgentOutcome.STOPPED: "failed"}


@pytest.mark.req("WS-52")
@pytest.mark.parametrize("outcome", OLD_WORDS)
async def test_their_words_for_an_end(house: House, outcome: AgentOutcome) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned(kind=AgentKind.SHELL), started(), AgentEnded(ref="ref-1", outcome=outcome))
        told = of(await stage.tab.quiet(0.1), "background_tasks_update")
    assert [task["status"] for task in told[-1]["tasks"]] == [OLD_WORDS[outcome]]
