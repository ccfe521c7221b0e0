"""One agent as clients see it: its keys, its words, and what each of them follows from."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from nerve.adapters.protocol import Capabilities, CapabilitiesChanged
from nerve.adapters.subagents import (
    AgentActed,
    AgentEnded,
    AgentModelObserved,
    AgentOutcome,
    AgentProgressed,
    AgentResumed,
    AgentToolStarted,
)
from nerve.contract.generated.entities import AgentKind
from tests.contract.spec_reader import ENTITIES
from tests.roster.rostering import SERVER, WORKER, Stage, ask, roster, spawned, staged, started, stop, views
from tests.runtime.tabs import of, tab
from tests.sessions.session_house import House, play

VIEW = """
id session_id backend kind task_id task_type spawn_tool_use_id parent_agent_id depth name label description agent_type
command background ambient status end_reason error attention activity summary result_preview requested_model model
model_changed tokens tool_uses cost_usd runs created_at started_at run_started_at last_activity_at ended_at
stop_requested_at stopped_by_actor_id resumable controls workflow rev
"""
SUMMARY = """
total live starting running stopping completed failed stopped interrupted lost attention shells_live tokens cost_usd
oldest_live_started_at
"""
WORDS = {
    "AgentKind": "agent workflow shell monitor teammate remote_agent mcp_task other",
    "AgentStatus": "starting running stopping completed failed stopped interrupted lost",
    "AgentEndReason": "completed error spawn_failed user stop_all turn_stop orchestrator unknown_stop process_ended"
    " gateway_restart force_stop model_switch archived vanished",
    "AgentAttention": "needs_input failed interrupted lost stop_unconfirmed",
    "AgentLifecycleEvent": "started resumed stop_requested completed failed stopped interrupted lost",
}
LIVE_OR_OVER = WORDS["AgentStatus"].split()


@pytest.mark.req("AGENT-05", "AGENT-06", "AGENT-07", "AGENT-08", "AGENT-39")
@pytest.mark.parametrize("name", WORDS)
def test_the_words_are_those_of_the_contract(name: str) -> None:
    assert _titled(ENTITIES, name)["enum"] == WORDS[name].split()


def _titled(schema: Any, name: str) -> Any:
    """The schema of this name, wherever it stands."""
    if isinstance(schema, Mapping):
        if name in schema or schema.get("title") == name:
            return schema.get(name, schema)
        schema = list(schema.values())
    parts = schema if isinstance(schema, list) else []
    return next((found for part in parts if (found := _titled(part, name)) is not None), None)


@pytest.mark.req("AGENT-03", "AGENT-04", "AGENT-13", "AGENT-15", "AGENT-20", "AGENT-26")
async def test_every_key_is_there_of_a_live_one_and_of_one_that_has_ended(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play(WORKER, SERVER, "- {agent: reader, prompt: Read it., result: Read.}"))
    snapshot = await roster(house, session_id)
    assert snapshot.keys() == {"session_id", "agents", "summary", "capabilities", "queue", "generated_at"}
    assert snapshot["summary"].keys() == set(SUMMARY.split())
    assert snapshot["capabilities"] == {
        "stop_task": True,
        "transcript": True,
        "output": True,
        "interrupt_spares_background": True,
        "quiet_after_minutes": 10,
    }
    assert [view["status"] for view in snapshot["agents"]] == ["running", "running", "completed"]
    for view in snapshot["agents"]:
        assert view.keys() == set(VIEW.split())
        assert view["controls"].keys() == {"stop", "transcript", "output", "message"}
        details = (await ask(house, session_id, view["id"])).json
        assert details.keys() == {"agent", "prompt", "result_text"}
        assert details["agent"] == view
    assert (details["prompt"], details["result_text"]) == ("Read it.", "Read.")


@pytest.mark.req("AGENT-04")
async def test_what_the_keys_say(house: House) -> None:
    session_id = await house.create()
    steps = "[{tool: Bash, input: {command: pytest -q}}, {usage: {input_tokens: 900, output_tokens: 40}}, wait: 600]"
    fields = "description: Build the API, type: builder, model: opus, prompt: Build it., background: true"
    await house.run(session_id, play(f"- {{agent: build-api, {fields}, steps: {steps}}}", SERVER))
    agent, shell = (await roster(house, session_id))["agents"]
    assert agent["id"].startswith("ag_")
    assert len(agent["id"]) == 15
    wanted: dict[str, Any] = {
        "session_id": session_id,
        "backend": "scripted",
        "kind": "agent",
        "task_type": "local_agent",
        "parent_agent_id": None,
        "depth": 1,
        "name": "build-api",
        "label": "build-api",
        "description": "Build the API",
        "agent_type": "builder",
        "command": None,
        "background": True,
        "ambient": False,
        "status": "running",
        "end_reason": None,
        "activity": "Bash: pytest -q",
        "requested_model": "opus",
        "model": "opus",
        "tokens": 940,
        "tool_uses": 1,
        "runs": 1,
        "ended_at": None,
        "resumable": False,
        "controls": {"stop": True, "transcript": True, "output": False, "message": False},
        "workflow": None,
    }
    assert {key: agent[key] for key in wanted} == wanted
    assert agent["spawn_tool_use_id"] == await spawning_call(house, session_id, "Agent")
    assert (shell["kind"], shell["task_type"], shell["command"]) == ("shell", "local_bash", "npm start")
    assert shell["controls"] == {"stop": True, "transcript": False, "output": True, "message": False}


async def spawning_call(house: House, session_id: str, tool: str) -> str:
    messages = (await house.alice.get(f"/api/sessions/{session_id}/messages")).json["messages"]
    return next(str(block["tool_use_id"]) for block in messages[-1]["blocks"] if block.get("tool") == tool)


async def test_agents_nest(house: House) -> None:
    session_id = await house.create()
    inner = "{agent: inner, background: true, steps: [wait: 600]}"
    await house.run(session_id, play(f"- {{agent: outer, background: true, steps: [{inner}, wait: 600]}}", "- wait: 1"))
    found = await views(house, session_id)
    outer, inner_view = found["outer"], found["inner"]
    assert (outer["depth"], outer["parent_agent_id"]) == (1, None)
    assert (inner_view["depth"], inner_view["parent_agent_id"]) == (2, outer["id"])
    items = (await ask(house, session_id, outer["id"], "transcript")).json["items"]
    call = next(item for item in items if item["kind"] == "tool_call")
    assert (call["tool"], call["child_agent_id"]) == ("Agent", inner_view["id"])
    assert call["tool_use_id"] == inner_view["spawn_tool_use_id"]


# --- how one ends -------------------------------------------------------------------------------------------------

ENDS = {
    AgentOutcome.COMPLETED: ("completed", "completed", None),
    AgentOutcome.FAILED: ("failed", "error", "failed"),
    AgentOutcome.SPAWN_FAILED: ("failed", "spawn_failed", "failed"),
    AgentOutcome.STOPPED: ("stopped", "unknown_stop", None),
    AgentOutcome.STOPPED_BY_ORCHESTRATOR: ("stopped", "orchestrator", None),
}


@pytest.mark.req("AGENT-06", "AGENT-07", "AGENT-08")
@pytest.mark.parametrize("outcome", ENDS)
async def test_an_end_as_the_runtime_tells_it(house: House, outcome: AgentOutcome) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned(background=False))
        await stage.told()
        view = await stage.only()
        assert (view["status"], view["started_at"], view["end_reason"]) == ("starting", None, None)
        stage.puppet.say(started())
        await stage.told()
        assert (await stage.only())["status"] == "running"
        stage.puppet.say(AgentEnded(ref="ref-1", outcome=outcome, result="x" * 600, error="why"))
        await stage.told()
        view = await stage.only()
    assert (view["status"], view["end_reason"], view["attention"]) == ENDS[outcome]
    assert (view["result_preview"], view["error"]) == ("x" * 500, "why")
    assert view["ended_at"] is not None


@pytest.mark.req("AGENT-08")
async def test_what_went_wrong_wants_attention_until_the_next_message(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- {agent: broken, ends: failed}", "- {agent: fine}"))
    snapshot = await roster(house, session_id)
    assert [view["attention"] for view in snapshot["agents"]] == ["failed", None]
    assert snapshot["summary"]["attention"] == 1
    await house.run(session_id, play("- say: I see"))
    snapshot = await roster(house, session_id)
    assert [view["attention"] for view in snapshot["agents"]] == [None, None]
    assert snapshot["summary"]["attention"] == 0


@pytest.mark.req("AGENT-06", "AGENT-07", "AGENT-08")
async def test_one_that_vanishes_is_lost_within_five_seconds(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- {agent: ghost, background: true, ends: vanished, steps: [wait: 10]}"))
    await trio.sleep(10)
    assert (await views(house, session_id))["ghost"]["status"] == "running"
    await trio.sleep(5)
    ghost = (await views(house, session_id))["ghost"]
    assert (ghost["status"], ghost["end_reason"], ghost["attention"]) == ("lost", "vanished", "lost")


@pytest.mark.req("AGENT-08")
async def test_one_that_asks_needs_input_until_it_is_answered(house: House) -> None:
    session_id = await house.create()
    question = "ask: [{question: Which?, header: colour, options: [{label: Red}, {label: Blue}]}]"
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, play(f"- {{agent: asker, background: true, steps: [{question}, wait: 600]}}"))
        asked = (await alice.until("interaction"))[-1]
        view = (await views(house, session_id))["asker"]
        assert view["attention"] == "needs_input"
        assert asked["agent"] == {"agent_id": view["id"], "task_id": view["task_id"], "label": "asker"}
        result = {"answers": {"colour": "Red"}}
        await alice.send(
            "answer_interaction", session_id=session_id, interaction_id=asked["interaction_id"], result=result
        )
        await alice.until("interaction_resolved")
        assert (await views(house, session_id))["asker"]["attention"] is None


@pytest.mark.req("AGENT-08")
async def test_a_stop_that_nobody_confirms_wants_attention_after_ten_seconds(house: House) -> None:
    session_id = await house.create()
    await house.run(
        session_id, play("- {agent: stubborn, background: true, on_stop: ignore, steps: [wait: 600]}", WORKER)
    )
    await stop(house, session_id, scope="all")
    assert (await views(house, session_id))["stubborn"]["attention"] is None
    await trio.sleep(9.5)
    assert (await views(house, session_id))["stubborn"]["attention"] is None
    await trio.sleep(1)
    found = await views(house, session_id)
    assert (found["stubborn"]["status"], found["stubborn"]["attention"]) == ("stopping", "stop_unconfirmed")
    assert (found["build-api"]["status"], found["build-api"]["attention"]) == ("stopped", None)
    assert (await stop(house, session_id, scope="force"))["ended"] == [found["stubborn"]["id"]]
    stubborn = (await views(house, session_id))["stubborn"]
    assert (stubborn["status"], stubborn["end_reason"]) == ("interrupted", "force_stop")


# --- what it does -------------------------------------------------------------------------------------------------


@pytest.mark.req("AGENT-09")
async def test_a_second_model_is_told(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started(model="opus"))
        await stage.told()
        assert (await stage.only())["model_changed"] is None
        stage.puppet.say(AgentModelObserved("ref-1", "opus"))
        await stage.told()
        assert (await stage.only())["model_changed"] is None
        stage.puppet.say(AgentModelObserved("ref-1", "haiku"))
        await stage.told()
        view = await stage.only()
    assert view["model"] == "haiku"
    assert view["model_changed"].keys() == {"from", "to", "at"}
    assert (view["model_changed"]["from"], view["model_changed"]["to"]) == ("opus", "haiku")


@pytest.mark.req("AGENT-10")
async def test_figures_are_the_newest_that_the_runtime_told(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started())
        for tokens, cost in ((100, 0.5), (300, 1.5)):
            stage.puppet.say(AgentProgressed(ref="ref-1", tokens=tokens, cost_usd=cost, summary="s" * 600))
            await stage.told()
            view = await stage.only()
            assert (view["tokens"], view["cost_usd"], view["summary"]) == (tokens, cost, "s" * 500)
        summary = (await roster(house, stage.session_id))["summary"]
        assert (summary["tokens"], summary["cost_usd"]) == (300, 1.5)
        stage.puppet.say(AgentActed("ref-1", AgentToolStarted("call", "Bash", {"command": "y" * 200})))
        await stage.told()
        view = await stage.only()
    assert view["activity"] == ("Bash: " + "y" * 200)[:120]
    assert view["tool_uses"] == 1


@pytest.mark.req("AGENT-10")
async def test_a_cost_is_estimated_until_the_runtime_tells_it(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started(model="claude-haiku-5-5"))
        costs = []
        for tokens, told in ((1000, None), (3000, None), (3000, None), (4000, 0.5), (5000, None)):
            stage.puppet.say(AgentProgressed(ref="ref-1", tokens=tokens, cost_usd=told))
            await stage.told()
            costs.append((await stage.only())["cost_usd"])
    assert costs == pytest.approx([0.005, 0.015, 0.015, 0.5, 0.505])


@pytest.mark.req("AGENT-12")
@pytest.mark.parametrize("kind", [AgentKind.WORKFLOW, AgentKind.AGENT])
async def test_only_a_workflow_has_a_tree(house: House, kind: AgentKind) -> None:
    tree = {"name": "w", "status": "running", "phases": [], "agents": []}
    tree |= {"totalTokens": 0, "totalToolCalls": 0, "agentCount": 0}
    async with staged(house) as stage:
        stage.puppet.say(spawned(kind=kind), started(), AgentProgressed(ref="ref-1", workflow=tree))
        await stage.told()
        view = await stage.only()
        assert (view["workflow"] is not None) is (kind is AgentKind.WORKFLOW)
        stage.puppet.say(AgentEnded(ref="ref-1", outcome=AgentOutcome.FAILED))
        await stage.told()
        view = await stage.only()
    if view["workflow"] is not None:
        assert (view["workflow"]["name"], view["workflow"]["status"]) == ("w", "failed")


@pytest.mark.req("AGENT-14")
async def test_housekeeping_is_listed_and_not_counted(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(spawned("tidy", ambient=True), started("tidy"), spawned("real"), started("real"))
        stage.puppet.say(AgentProgressed(ref="tidy", tokens=1000, cost_usd=1.0))
        await stage.told()
        snapshot = await roster(house, stage.session_id)
        assert [(view["name"], view["ambient"]) for view in snapshot["agents"]] == [("tidy", True), ("real", False)]
        counted = {key: snapshot["summary"][key] for key in ("total", "live", "running", "tokens", "cost_usd")}
        assert counted == {"total": 1, "live": 1, "running": 1, "tokens": 0, "cost_usd": 0}
        assert (await state(stage))["background_count"] == 1
        stage.puppet.say(AgentEnded(ref="tidy", outcome=AgentOutcome.FAILED))
        await stage.told()
        assert (await roster(house, stage.session_id))["summary"]["attention"] == 0
        await stage.tab.quiet(5)
        assert len(stage.puppet.prompts) == 1  # its end starts no turn


async def state(stage: Stage) -> dict[str, Any]:
    return dict((await stage.house.alice.get(f"/api/sessions/{stage.session_id}/status")).json)


@pytest.mark.req("AGENT-11", "WS-48")
async def test_new_capabilities_make_new_views(house: House) -> None:
    """What may be done with an agent is part of its view, so it is told, and with a greater rev."""
    async with staged(house) as stage:
        stage.puppet.say(spawned(), started(), spawned("over"), started("over"))
        stage.puppet.say(AgentEnded(ref="over", outcome=AgentOutcome.COMPLETED))
        before = {view["name"]: view for view in of(await stage.tab.quiet(1), "agent_update")[-1]["agents"]}
        stage.puppet.say(CapabilitiesChanged(Capabilities(stop_task=False, messaging=True)))
        after = {view["name"]: view for view in of(await stage.tab.quiet(1), "agent_update")[-1]["agents"]}
        assert after["ref-1"]["controls"] == {"stop": False, "transcript": True, "output": False, "message": True}
        assert (before["over"]["resumable"], after["over"]["resumable"]) == (False, True)
        stage.puppet.die()
        gone = {view["name"]: view for view in of(await stage.tab.quiet(1), "agent_update")[-1]["agents"]}
        assert (gone["over"]["resumable"], gone["ref-1"]["status"]) == (False, "interrupted")
        for name in ("ref-1", "over"):
            assert before[name]["rev"] < after[name]["rev"] < gone[name]["rev"]


@pytest.mark.req("AGENT-15", "AGENT-16")
async def test_capabilities_are_those_of_the_runtime_now(house: House) -> None:
    session_id = await house.create()
    told = "- capabilities: {stop_task: false, transcript: false, output: false, interrupt_spares_background: false}"
    await house.run(session_id, play(told, WORKER, SERVER))
    snapshot = await roster(house, session_id)
    assert snapshot["capabilities"] == {
        "stop_task": False,
        "transcript": False,
        "output": False,
        "interrupt_spares_background": False,
        "quiet_after_minutes": 10,
    }
    for view in snapshot["agents"]:
        assert view["controls"] == dict.fromkeys(("stop", "transcript", "output", "message"), False)


async def test_one_that_may_be_written_to_can_go_on_after_its_end(house: House) -> None:
    async with staged(house) as stage:
        stage.puppet.say(CapabilitiesChanged(Capabilities(messaging=True)), spawned(), started())
        await stage.told()
        view = await stage.only()
        assert (view["controls"]["message"], view["resumable"]) == (True, False)
        stage.puppet.say(AgentEnded(ref="ref-1", outcome=AgentOutcome.STOPPED, error="killed"))
        await stage.told()
        ended = await stage.only()
        assert (ended["controls"]["message"], ended["resumable"], ended["runs"]) == (False, True, 1)
        stage.puppet.say(AgentResumed(ref="ref-1"))
        await stage.told()
        view = await stage.only()
        assert (view["status"], view["runs"], view["ended_at"], view["error"]) == ("running", 2, None, None)
        assert view["started_at"] == ended["started_at"]
        assert view["run_started_at"] > ended["run_started_at"]
        items = (await ask(house, stage.session_id, view["id"], "transcript")).json["items"]
    assert [(item["event"], item["run"]) for item in items] == [("started", 1), ("stopped", 1), ("resumed", 2)]


@pytest.mark.req("AGENT-19", "AGENT-16")
async def test_a_brief_says_six_things(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        spares_not = "- capabilities: {interrupt_spares_background: false}"
        await alice.say(session_id, play(spares_not, WORKER, SERVER, "- say: x", "- wait: 600"))
        await alice.until("token")
        answer = await stop(house, session_id)
        found = (await roster(house, session_id))["agents"]
    assert (answer["turn"], answer["shell_count"]) == ("needs_confirmation", 1)
    keys = ("id", "label", "kind", "status", "started_at", "tokens")
    assert answer["would_end"] == [{key: view[key] for key in keys} for view in found]
