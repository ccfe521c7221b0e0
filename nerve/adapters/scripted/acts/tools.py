"""``tool``: a tool call without effect; ``call``, ``form`` and ``wakeup``: the built-in tools of the house."""

import trio

from nerve.adapters.protocol import ToolOutputAdded
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.steps import CallTool, UseTool

PREFIX = "mcp__nerve__"  # by which runtimes tell the house's tools from their own


async def perform(part: Part, step: UseTool) -> None:
    """The entries of ``output`` are spread evenly over ``seconds``, then comes the result."""
    tool_use_id = await part.start_tool(step.tool, step.input)
    gap = step.seconds / (len(step.output) + 1)
    for text in step.output:
        await trio.sleep(gap)
        await part.stage.emit(ToolOutputAdded(tool_use_id, text))
    await trio.sleep(gap)
    await part.finish_tool(tool_use_id, step.result, step.is_error)


async def call(part: Part, step: CallTool) -> None:
    """Waits for as long as the tool does."""
    tool_use_id = await part.start_tool(PREFIX + step.tool, step.input)
    result = await part.session.host.call_tool(step.tool, step.input)
    await part.finish_tool(tool_use_id, result.text, result.is_error)
