"""``schedule_wakeup``: the agent has its session go on later by itself (sessions-and-agents.md 11)."""

from datetime import datetime, timedelta
from typing import Any

from nerve.adapters.protocol import ToolResult
from nerve.contract.generated.entities import SessionSource
from nerve.domain.wakeups import WakeupKind, clamped
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
    text = f"This session goes on at {_written(fire_at)}, in {delay:g} seconds."
    if delay != asked:
        text += " (A delay is at least 60 seconds and at most 3600.)"
    if replaced is not None:
        what = "the wakeup" if replaced.kind == WakeupKind.WAKEUP else "a person's deferred message"
        text += f" It takes the place of {what} that was scheduled for {_written(replaced.fire_at)}."
    return ToolResult(text)


def _written(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%S UTC")


TOOL = Tool("schedule_wakeup", run)
