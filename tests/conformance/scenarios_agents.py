"""Scenarios of agents: their own documented errors, and how each of their frames is provoked."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tests.conformance.recipes import NOWHERE
from tests.conformance.scenarios_frames import Frame, played, talking
from tests.conformance.scenarios_people import on
from tests.conformance.staging import HELPER, SERVER, playing_agent
from tests.conformance.subject import FrameScenario, Scenario, SocketTalk, Subject, new_session, script
from tests.spec_client import Answer
from tests.spec_replies import Documented

OF_ONE_AGENT = ("agents.get", "agents.transcript", "agents.output", "agents.stop")


def _unknown(operation_id: str) -> Scenario:
    async def play(subject: Subject) -> Answer:
        path = {"session_id": await new_session(subject.owner), "agent_id": NOWHERE}
        return await subject.owner.call(operation_id, path=path)

    return Scenario(play)


def _of_the_original(operation_id: str) -> Scenario:
    """Asked of a fork about what the session that it came from has started."""

    async def play(subject: Subject) -> Answer:
        path = await playing_agent(subject.owner, "{agent: helper, steps: [{say: done}], result: done}")
        fork = await subject.owner.ok("sessions.fork", {"source_session_id": path["session_id"]})
        return await subject.owner.call(operation_id, path={**path, "session_id": fork["id"]})

    return Scenario(play)


async def page_from_two_ends(subject: Subject) -> Answer:
    path = await playing_agent(subject.owner, HELPER)
    return await subject.owner.call("agents.transcript", path=path, query={"before_seq": "9", "after_seq": "1"})


async def read_the_output_of_an_agent(subject: Subject) -> Answer:
    return await subject.owner.call("agents.output", path=await playing_agent(subject.owner, HELPER))


async def stop_what_has_ended(subject: Subject) -> Answer:
    path = await playing_agent(subject.owner, "{agent: helper, steps: [{say: done}], result: done}")
    return await subject.owner.call("agents.stop", path=path)


async def stop_where_nobody_is_left(subject: Subject) -> Answer:
    """The runtime went down without a word, so its agent is still taken for a live one."""
    path = await playing_agent(subject.owner, HELPER, "crash: silent")
    return await subject.owner.call("agents.stop", path=path)


async def stop_where_that_is_not_possible(subject: Subject) -> Answer:
    path = await playing_agent(subject.owner, "capabilities: {stop_task: false}", HELPER)
    return await subject.owner.call("agents.stop", path=path)


async def change_the_model_below_an_agent(subject: Subject) -> Answer:
    path = await playing_agent(subject.owner, HELPER)
    return await subject.owner.call("sessions.update", {"model": "other"}, path={"session_id": path["session_id"]})


SCENARIOS: Mapping[Documented, Scenario] = {
    **{on(operation_id, "agent_not_found"): _unknown(operation_id) for operation_id in OF_ONE_AGENT},
    **{on(operation_id, "agent_in_other_session"): _of_the_original(operation_id) for operation_id in OF_ONE_AGENT},
    on("agents.transcript", "bad_cursor"): Scenario(page_from_two_ends),
    on("agents.output", "not_a_shell"): Scenario(read_the_output_of_an_agent),
    Documented("agents.stop", 200): Scenario(stop_what_has_ended),
    on("agents.stop", "no_runtime"): Scenario(stop_where_nobody_is_left),
    on("sessions.update", "live_background_agents"): Scenario(change_the_model_below_an_agent),
    on("agents.stop", "unsupported"): Scenario(stop_where_that_is_not_possible),
}

# --- frames -------------------------------------------------------------------------------------------------------


async def go_on_unasked(subject: Subject) -> Frame:
    async with talking(subject) as talk:
        await talk.say(script("{agent: helper, background: true, steps: [{wait: 0.2}], result: done}"))
        await talk.until("done")
        return await talk.until("auto_turn")


def _told_of(kind: str, item: str, *steps: str) -> FrameScenario:
    """What a socket hears that follows an agent which does these steps again and again."""

    async def play(subject: Subject) -> Frame:
        async with talking(subject) as talk:
            work = ", ".join([*(f"{{{step}}}" for step in steps), "{wait: 0.2}"] * 20)
            await talk.say(script(f"{{agent: helper, background: true, steps: [{work}], result: done}}"))
            update = await talk.until("agent_update", lambda frame: frame["agents"] != [])
            await talk.send("agent_subscribe", agent_id=update["agents"][0]["id"])
            return await talk.until("agent_event", lambda frame: frame["item"]["kind"] == item)

    return FrameScenario(play)


@asynccontextmanager
async def listening(subject: Subject, *steps: str) -> AsyncIterator[tuple[SocketTalk, Mapping[str, str]]]:
    """A socket bound to a session whose turn has ended, and the path of the agent that goes on there."""
    path = await playing_agent(subject.owner, *steps)
    async with talking(subject, session_id=path["session_id"]) as talk:
        yield talk, path


async def hear_how_an_agent_ends(subject: Subject) -> Frame:
    async with listening(subject, HELPER) as (talk, path):
        await talk.send("agent_subscribe", agent_id=path["agent_id"])
        await talk.socket.send_json({"type": "ping"})
        await talk.until("pong")
        await subject.owner.ok("agents.stop", path=path)
        return await talk.until("agent_event", lambda frame: frame["item"].get("event") == "stopped")


async def count_what_goes_on(subject: Subject) -> Frame:
    async with listening(subject, HELPER) as (talk, path):
        await subject.owner.ok("agents.stop", path=path)
        return await talk.until("session_agents")


_TOOL = "tool: Bash, input: {command: pytest -q}, result: 212 passed"

FRAMES: Mapping[tuple[str, str], FrameScenario] = {
    ("auto_turn", "one agent"): FrameScenario(go_on_unasked),
    ("workflow_progress", "running"): played("workflow_progress", "workflow: {name: w, phases: [a], agents: [b]}"),
    ("agent_update", "a running agent"): played("agent_update", HELPER),
    ("agent_event", "a tool call"): _told_of("agent_event", "tool_call", _TOOL),
    ("agent_event", "its result"): _told_of("agent_event", "tool_result", _TOOL),
    ("agent_event", "text"): _told_of("agent_event", "text", "say: well"),
    ("agent_event", "thinking"): _told_of("agent_event", "thinking", "think: hm"),
    ("agent_event", "an end"): FrameScenario(hear_how_an_agent_ends),
    ("session_agents", "five"): FrameScenario(count_what_goes_on),
    ("background_tasks_update", "one"): played("background_tasks_update", SERVER),
}
