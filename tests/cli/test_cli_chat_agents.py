"""What works in the background, in the chat: told, listed, looked at, watched and stopped."""

from typing import Any

import pytest
from trio.testing import MockClock

from nerve.contract import codec
from nerve.contract.generated.frames_client import AgentSubscribeFrame, AgentUnsubscribeFrame
from tests.cli.stage import on_stage
from tests.cli.test_cli_chat_loop import STOP, running
from tests.client.frames import agent, agent_event, agent_item, agents, frame, message, status, token
from tests.client.lines import Line

LIST = "GET /api/sessions/main/agents"
ONE = f"{LIST}/build"
PAGE = f"{ONE}/transcript"
STOP_ONE = "POST /api/sessions/main/agents/build/stop"


def page(*items: dict[str, Any], more: bool = False) -> dict[str, Any]:
    ends = (items[0]["seq"], items[-1]["seq"]) if items else (None, None)
    return {
        "agent_id": "build",
        "items": list(items),
        "first_seq": ends[0],
        "last_seq": ends[1],
        "has_more_before": more,
    }


def snapshot(*views: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = codec.unstructure(status(1, roster=list(views)))["agents"]
    return found


async def test_beginnings_and_ends_are_told_and_the_prompt_counts(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(agents(agent("build", description="Build the API"), agent("inner", background=False)))
        assert "· agent build has started: Build the API" in stage.screen
        assert "inner" not in stage.screen
        assert stage.prompt == "&1 ›"
        await stage.says(agents(agent("tests", kind="shell", command="pytest -q"), agent("tidy", ambient=True)))
        assert "· shell tests has started: pytest -q" in stage.screen
        assert stage.prompt == "&2 ›"
        await stage.says(running())
        assert stage.prompt == "&2 … ›"
        done = agent("build", 2, status="completed", result_preview="All is built.")
        await stage.says(agents(done, agent("tests", 2, status="failed", error="exit code 1")))
        assert "✓ agent build has completed: All is built." in stage.screen
        assert "✗ agent tests has failed: exit code 1" in stage.screen
        assert "tidy" not in stage.screen
        assert stage.prompt == "… ›"


async def test_what_is_told_waits_for_the_end_of_a_line(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(running(), token(2, "Both are"), agents(agent("build")), token(3, " at work."))
        assert "Both are at work." in stage.screen
        assert "has started" not in stage.screen
        assert stage.prompt == "&1 … ›"
        await stage.says(frame("done", 4))
        assert "Both are at work.\n\n· agent build has started" in stage.screen


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ({"status": "stopped", "stopped_by_actor_id": "act_me"}, "■ agent build was stopped\n"),
        ({"status": "stopped", "stopped_by_actor_id": "act_2"}, "■ agent build was stopped by somebody\n"),
        (
            {"status": "interrupted", "end_reason": "gateway_restart"},
            "✗ agent build was interrupted: gateway restart\n",
        ),
        ({"status": "lost", "end_reason": "vanished"}, "✗ agent build was lost: vanished\n"),
        ({"status": "stopping", "attention": "stop_unconfirmed"}, "✗ agent build does not stop; /stop force ends"),
        ({"status": "running", "activity": "Bash: ls"}, None),
    ],
)
async def test_what_becomes_of_one(view: dict[str, Any], said: str | None, mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(agents(agent("build")))
        before = stage.screen
        await stage.says(agents(agent("build", 2, **view)))
        assert said in stage.screen if said is not None else stage.screen == before


async def test_what_worked_before_one_came_is_named_once(mock_clock: MockClock) -> None:
    old = agent("old", status="completed")
    back = Line([status(1, roster=[old, agent("build"), agent("quick", status="completed")])])
    async with on_stage(mock_clock, Line([status(1, roster=[old, agent("build")])]), back) as stage:
        assert "· in the background: agent build; /agents tells more" in stage.screen
        await stage.drops()
        await stage.waits()
        assert stage.screen.count("build") == 1
        assert "✓ agent quick has completed" in stage.screen  # while the line was lost
        assert "old" not in stage.screen


async def test_a_turn_that_begins_by_itself_says_why_once(mock_clock: MockClock) -> None:
    trigger = {"agent_id": "build", "label": "build", "kind": "agent", "status": "completed"}
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(agents(agent("build")), frame("auto_turn", 2, triggers=[trigger], more=0))
        await stage.says(agents(agent("build", 2, status="completed")), token(3, "It is built."))
        assert "· the agent goes on by itself: build has completed" in stage.screen
        assert stage.screen.count("has completed") == 1


async def test_agents_are_listed_and_one_is_looked_at(mock_clock: MockClock) -> None:
    build = agent("build", tool_uses=1, tokens=1200, activity="Bash: make")
    tests = agent("tests", kind="shell", depth=2, command="pytest -q", tool_uses=0, tokens=0)
    call = {"seq": 2, "at": agent_item(1)["at"], "kind": "tool_call", "tool_use_id": "t", "tool": "Bash"}
    call |= {"input": {"command": "make"}, "input_truncated": False, "child_agent_id": None}
    result = {"seq": 3, "at": agent_item(1)["at"], "kind": "tool_result", "tool_use_id": "t", "result": "ok"}
    result |= {"is_error": False, "truncated": False, "full_size": 2}
    answers = {
        LIST: snapshot(build, tests, agent("tidy", ambient=True)),
        ONE: {"agent": build, "prompt": "Build\nit.", "result_text": "All is\nbuilt."},
        PAGE: page(call, result, more=True),
        f"{LIST}/tests": {"agent": tests, "prompt": None, "result_text": None},
        f"{LIST}/tests/transcript": {**page(), "agent_id": "tests"},
        f"{LIST}/tests/output": {
            "agent_id": "tests",
            "text": "one\ntwo\n",
            "size": 8,
            "truncated": False,
            "available": True,
        },
    }
    async with on_stage(mock_clock, Line([status(1)]), answers=answers) as stage:
        await stage.enter("/agents")
        assert "· build            agent    running    1 tool call, 1,200 tokens  Bash: make\n" in stage.screen
        assert "    tests          shell    running    pytest -q\n" in stage.screen
        assert "tidy" not in stage.screen
        await stage.enter("/agents build")
        assert (
            "(build)\n  asked: Build it.\n  …\n  ● Bash  make\n    ✓ ok\n  result:\n  All is\n  built.\n"
            in stage.screen
        )
        await stage.enter("/agents tests")
        assert "(tests)\n  │ one\n  │ two\n" in stage.screen
        await stage.enter("/agents nobody")
        assert "✗ " in stage.screen.splitlines()[-2]


async def test_one_is_watched_and_what_is_missing_is_read(mock_clock: MockClock) -> None:
    answers: dict[str, Any] = {PAGE: page(agent_item(4, "four"), more=True)}
    second = Line([status(1, roster=[agent("build")])])
    async with on_stage(mock_clock, Line([status(1, roster=[agent("build")])]), second, answers=answers) as stage:
        await stage.enter("/watch bui")
        assert "watching build; /watch ends it\nbuild │ four\n" in stage.screen
        assert [type(one) for one in stage.line.sent] == [AgentSubscribeFrame]
        await stage.says(agent_event("build", 5, "five"), agent_event("build", 5, "five"))
        assert stage.screen.count("build │ five\n") == 1
        stage.rest.answers[PAGE] = page(agent_item(6, "six"), agent_item(7, "seven"))
        await stage.says(agent_event("build", 7, "seven"))
        assert "build │ six\nbuild │ seven\n" in stage.screen
        assert stage.screen.count("seven") == 1
        stage.rest.answers[PAGE] = page(agent_item(8, "eight"))
        await stage.drops()
        await stage.waits()
        assert "build │ eight\n" in stage.screen
        await stage.enter("/watch")
        assert "no agent is watched any more" in stage.screen
        assert [type(one) for one in stage.line.sent] == [AgentSubscribeFrame, AgentUnsubscribeFrame]
        await stage.says(agent_event("build", 9, "nine"))
        assert "nine" not in stage.screen


async def test_one_is_stopped_or_all_are(mock_clock: MockClock) -> None:
    build = agent("build")
    answers: dict[str, Any] = {
        STOP_ONE: (202, {"agent": build, "stopping": ["inner", "build"]}),
        STOP: {"scope": "all", "turn": "not_running", "stopping": ["build"], "unsupported": ["other", "third"]},
    }
    async with on_stage(mock_clock, Line([status(1, roster=[build])]), answers=answers) as stage:
        await stage.enter("/stop build")
        assert "stopping agent build and 1 that it started" in stage.screen
        stage.rest.answers[STOP_ONE] = {"agent": {**build, "status": "completed"}, "stopping": []}
        await stage.enter("/stop build")
        assert "agent build had ended already" in stage.screen
        await stage.enter("/stop all")
        assert stage.rest.asked[-1][1]["scope"] == "all"
        assert "stopping agent build\n" in stage.screen
        assert "✗ 2 agents can't be stopped one by one; /stop force ends all" in stage.screen
        stage.rest.answers[STOP] = {"scope": "force", "turn": "killed", "ended": ["build"]}
        await stage.enter("/stop force")
        assert "ended agent build\n" in stage.screen


async def test_a_stop_that_would_end_more_than_the_turn_says_so(mock_clock: MockClock) -> None:
    brief = {"id": "build", "label": "build", "kind": "agent", "status": "running", "started_at": None, "tokens": 0}
    needs = {"scope": "turn", "turn": "needs_confirmation", "would_end": [brief], "shell_count": 0}
    async with on_stage(mock_clock, Line([status(1)]), answers={STOP: needs}) as stage:
        await stage.says(running())
        await stage.signal()
        assert "✗ that would end what works in the background too (build); /stop all does so" in stage.screen
        assert stage.prompt == "… ›"
        stage.rest.answers[STOP] = {**needs, "turn": "not_stopped"}
        await stage.enter("/stop")
        assert "the turn does not stop; /stop force ends it" in stage.screen


async def test_a_message_alone_tells_what_goes_on_behind_it(mock_clock: MockClock) -> None:
    async with on_stage(mock_clock, Line([status(1)]), message="Build it.") as stage:
        sent = stage.line.messages[0].client_msg_id
        await stage.says(message(2, sent), agents(agent("build")), frame("done", 3))
        assert "agent build goes on in the background" in stage.screen
        assert stage.code == 0


async def test_a_workflow_and_a_plan_tell_their_progress_where_it_is_news(mock_clock: MockClock) -> None:
    tree = {"name": "release", "status": "running", "phases": [], "agents": [], "totalTokens": 0, "agentCount": 2}
    shown = [{**tree, "totalToolCalls": calls} for calls in (1, 1, 2)]
    async with on_stage(mock_clock, Line([status(1)])) as stage:
        await stage.says(
            *(frame("workflow_progress", 2 + n, tool_use_id="t", workflow=one) for n, one in enumerate(shown))
        )
        assert stage.screen.count("workflow release: running, 2 agents, 1 tool call\n") == 1
        assert "workflow release: running, 2 agents, 2 tool calls" in stage.screen
        await stage.says(*(frame("plan_update", n, content=plan) for n, plan in ((5, "one"), (6, "one\ntwo"))))
        assert "the plan was written (1 line)\n" in stage.screen
        assert "the plan was written (2 lines)\n" in stage.screen
