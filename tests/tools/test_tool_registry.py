"""Every call of a built-in tool has a result and is counted, whatever happens to it."""

from collections.abc import Callable
from typing import Any

import pytest
import trio

from nerve.adapters.protocol import InteractionReply, InteractionRequest, ToolResult
from nerve.contract.generated.entities import SessionSource
from nerve.errors import ErrorCode, NerveError
from nerve.store.database import Database
from nerve.tools import BUILT_IN, Registry
from nerve.tools.registry import documented
from nerve.tools.tool import Tool, ToolContext
from tests.sessions.session_house import ALICE, House

CALLED: list[dict[str, Any]] = []


async def nobody(request: InteractionRequest) -> InteractionReply:
    raise AssertionError("nobody is asked here")


def context(house: House, session_id: str, database: Database | None = None) -> ToolContext:
    runtime = house.supervisor.house
    return ToolContext(
        session_id=session_id,
        source=SessionSource.WEB,
        actor_id="act_system",
        cause_id=ALICE,
        agent_ref=None,
        database=database or runtime.database,
        effects=runtime.effects,
        schedule=runtime.schedule,
        ask=nobody,
    )


def registry(run: Callable[[ToolContext, dict[str, Any]], Any]) -> Registry:
    """One in which ``schedule_wakeup`` does this."""
    others = [tool for name, tool in BUILT_IN._tools.items() if name != "schedule_wakeup"]
    return Registry.of(Tool("schedule_wakeup", run), *others)


GIVEN = {"delaySeconds": 60, "prompt": "x", "and more": 1}


async def counted(house: House) -> list[tuple[Any, ...]]:
    return await house.sql("SELECT server, tool, session_id, duration_ms, success, error FROM mcp_tool_usage")


async def test_a_call_is_timed_and_counted(house: House) -> None:
    async def slow(context: ToolContext, given: dict[str, Any]) -> ToolResult:
        assert given == GIVEN
        await trio.sleep(1.5)
        return ToolResult("done")

    session_id = await house.create()
    assert await registry(slow).call("schedule_wakeup", GIVEN, context(house, session_id)) == ToolResult("done")
    assert await counted(house) == [("nerve", "schedule_wakeup", session_id, 1500, 1, None)]


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (NerveError(ErrorCode.STORE_FULL), "The disk is full; nothing was written."),
        (RuntimeError("a secret"), "The tool failed; the server's log says why."),
    ],
)
async def test_what_a_tool_raises_is_an_error_result(house: House, failure: Exception, text: str) -> None:
    async def fail(context: ToolContext, given: dict[str, Any]) -> ToolResult:
        raise failure

    session_id = await house.create()
    found = await registry(fail).call("schedule_wakeup", GIVEN, context(house, session_id))
    assert found == ToolResult(text, is_error=True)
    assert await counted(house) == [("nerve", "schedule_wakeup", session_id, 0, 0, text)]


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("schedule_wakeup", {"prompt": "x"}, "delaySeconds is missing."),
        ("schedule_wakeup", {"delaySeconds": "60", "prompt": "x"}, "delaySeconds must be a number."),
        ("schedule_wakeup", {"delaySeconds": True, "prompt": "x"}, "delaySeconds must be a number."),
        ("schedule_wakeup", {"delaySeconds": 60, "prompt": " "}, "prompt does not fit the schema."),
        ("schedule_wakeup", {"delaySeconds": 60, "prompt": None}, "prompt must be text."),
        ("schedule_wakeup", {"delaySeconds": 60, "prompt": "x", "reason": None}, None),
        ("no_such_tool", {}, "There is no built-in tool called 'no_such_tool'."),
    ],
)
async def test_what_does_not_fit_is_named(house: House, name: str, given: dict[str, Any], text: str | None) -> None:
    session_id = await house.create()
    found = await BUILT_IN.call(name, given, context(house, session_id))
    assert found.is_error is (text is not None)
    assert text is None or found.text == text
    assert [(row[1], row[4]) for row in await counted(house)] == [(name, int(text is None))]


async def test_a_call_that_is_cut_off_counts_as_failed(house: House) -> None:
    async def forever(context: ToolContext, given: dict[str, Any]) -> ToolResult:
        await trio.sleep_forever()
        raise AssertionError

    session_id = await house.create()
    with trio.move_on_after(3):
        await registry(forever).call("schedule_wakeup", GIVEN, context(house, session_id))
    assert await counted(house) == [("nerve", "schedule_wakeup", session_id, 3000, 0, "The call was interrupted.")]


async def test_a_disk_that_refuses_the_count_does_not_take_the_result(house: House) -> None:
    async def quick(context: ToolContext, given: dict[str, Any]) -> ToolResult:
        return ToolResult("done")

    class Full:
        async def write(self, *args: Any) -> Any:
            await trio.lowlevel.checkpoint()
            raise NerveError(ErrorCode.STORE_FULL)

    class Stuck:
        async def write(self, *args: Any) -> Any:
            await trio.sleep_forever()

    session_id = await house.create()
    for database in (Full(), Stuck()):
        with trio.fail_after(3):
            found = await registry(quick).call("schedule_wakeup", GIVEN, context(house, session_id, database))  # type: ignore[arg-type]
        assert found == ToolResult("done")


async def test_the_count_outlives_the_session(house: House) -> None:
    session_id = await house.create()
    await BUILT_IN.call("schedule_wakeup", GIVEN, context(house, session_id))
    await house.alice.delete(f"/api/sessions/{session_id}")
    late = await BUILT_IN.call("schedule_wakeup", GIVEN, context(house, session_id))
    assert (late.text, late.is_error) == ("Session not found", True)
    assert [row[2] for row in await counted(house)] == [None, None]


def test_tools_and_their_documentation_are_the_same() -> None:
    tools = [Tool(name, lambda context, given: None) for name in documented()]  # type: ignore[arg-type, return-value]
    assert [spec.name for spec in Registry.of(*tools).specs()] == sorted(documented())
    with pytest.raises(ValueError, match="ask_form"):
        Registry.of(*(tool for tool in tools if tool.name != "ask_form"))
    with pytest.raises(ValueError, match="twice"):
        Registry.of(*tools, tools[0])
