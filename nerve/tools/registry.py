"""One registry of built-in tools for all runtimes: what is called is checked, run and counted here.

A call has a result in any case: what goes wrong is an error result that says so, never an exception.
"""

import json
import logging
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema_rs
import trio
from attrs import field, frozen

from nerve.adapters.protocol import ToolResult
from nerve.contract.misfit import about_value
from nerve.errors import NerveError
from nerve.store import tool_usage
from nerve.tools.tool import Tool, ToolContext

log = logging.getLogger("nerve.tools")

SERVER = "nerve"
COUNT_SECONDS = 2.0  # how long a result waits to be counted
INTERRUPTED = "The call was interrupted."
FAILED = "The tool failed; the server's log says why."


@frozen
class ToolSpec:
    """What spec/tools says of a tool.  ``input_schema`` is JSON Schema."""

    name: str
    description: str
    input_schema: dict[str, Any]
    validator: jsonschema_rs.Draft202012Validator = field(repr=False)


@cache
def documented() -> dict[str, ToolSpec]:
    """From the copy inside the package."""
    text = (files("nerve.contract") / "documents" / "tools.json").read_text("utf-8")
    return {
        name: ToolSpec(name, tool["description"], tool["input"], jsonschema_rs.Draft202012Validator(tool["input"]))
        for name, tool in json.loads(text).items()
    }


@frozen
class Registry:
    """Every documented tool exactly once; raises ValueError where the tools and spec/tools differ."""

    _tools: dict[str, Tool]

    @classmethod
    def of(cls, *tools: Tool) -> "Registry":
        by_name = {tool.name: tool for tool in tools}
        if len(by_name) != len(tools) or by_name.keys() != documented().keys():
            wrong = sorted(by_name.keys() ^ documented().keys()) or "one is there twice"
            raise ValueError(f"built-in tools and spec/tools differ: {wrong}")
        return cls(by_name)

    def specs(self) -> list[ToolSpec]:
        """What a runtime offers to its model, by name."""
        return [documented()[name] for name in sorted(self._tools)]

    async def call(self, name: str, tool_input: dict[str, Any], context: ToolContext) -> ToolResult:
        """Waits for as long as the tool does, then at most ``COUNT_SECONDS`` for the record of the call.

        Cancelled, the call counts as failed.
        """
        began = trio.current_time()
        result = ToolResult(INTERRUPTED, is_error=True)
        try:
            result = await self._result(name, tool_input, context)
        finally:
            await _count(name, context, result, trio.current_time() - began)
        return result

    async def _result(self, name: str, tool_input: dict[str, Any], context: ToolContext) -> ToolResult:
        tool = self._tools.get(name)
        if tool is None:
            return ToolResult(f"There is no built-in tool called {name[:100]!r}.", is_error=True)
        problem = misfit(documented()[name], tool_input)
        if problem is not None:
            return ToolResult(problem, is_error=True)
        try:
            return await tool.run(context, tool_input)
        except NerveError as refusal:
            return ToolResult(refusal.message, is_error=True)
        except Exception:  # the barrier between a tool and the runtime that called it
            log.exception("the tool %s failed in session %s", name, context.session_id)
            return ToolResult(FAILED, is_error=True)


async def _count(name: str, context: ToolContext, result: ToolResult, seconds: float) -> None:
    with trio.move_on_after(COUNT_SECONDS, shield=True):
        try:
            await context.database.write(_record, name, context, result, int(seconds * 1000))
        except NerveError as refusal:
            log.warning("a call of %s is not counted: %s", name[:100], refusal.message)


def _record(db: Any, name: str, context: ToolContext, result: ToolResult, duration_ms: int) -> None:
    error = result.text if result.is_error else None
    now = context.effects.now()
    tool_usage.record(db, SERVER, name, context.session_id, duration_ms=duration_ms, error=error, now=now)


def misfit(spec: ToolSpec, tool_input: dict[str, Any]) -> str | None:
    """The first thing that doesn't fit the schema, with the place where it is; None if all fits."""
    try:
        error = next(spec.validator.iter_errors(tool_input), None)
    except ValueError as unreadable:  # what is no JSON value at all
        return f"The input is no JSON: {unreadable}"
    if error is None:
        return None
    kind = error.kind
    if isinstance(kind, jsonschema_rs.ValidationErrorKind.Required):
        return f"{place([*error.instance_path, kind.property])} is missing."
    return f"{place(error.instance_path)} {about_value(error) or 'does not fit the schema'}."


def place(path: list[str | int]) -> str:
    """As in ``questions[0].label``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "The input"
