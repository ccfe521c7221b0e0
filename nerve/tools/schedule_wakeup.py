"""``schedule_wakeup``: the agent has its session go on later by itself (sessions-and-agents.md 11)."""

from datetime import timedelta
from typing import Any

from nerve.adapters.protocol import ToolResult
from nerve.contract.generated.entities import SessionSource
from nerve.domain.wakeups import WakeupKind, clamped, replacement, written
from nerve.tools.tool import Tool, ToolContext

UNAVAILABLE_IN = frozenset({SessionSource.EXTERNAL, SessionSource.WORKFLOW})


async def run(context: ToolContext, given: dict[str, Any]) -> ToolResult:
    if context.source in UNAVAILABLE_IN:
        return ToolResult(f"Sessions of the source {context.source.value} can't schedule wakeups.", is_error=True)
    asked = given["delaySeconds"]
    delay = clamped(asked)
    fire_at, replaced = await context.schedule.put(
        context.session_id,
        WakeupKind.WAKEUP,
        "wakeup",
        given["prompt"],
        timedelta(seconds=delay),
        actor_id=context.actor_id,
        cause_id=context.cause_id,
        reason=given.get("reason") or None,
    )
    text = f"This session goes on at {written(fire_at)}, in {delay:g} seconds."
    if delay != asked:
        text += " (A delay is at least 60 seconds and at most 3600.)"
    if replaced is not None:
        text += " " + replacement(replaced.kind, replaced.fire_at)
    return ToolResult(text)


TOOL = Tool("schedule_wakeup", run)
