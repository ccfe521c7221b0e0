"""``tool``: a tool call without effect."""

import trio

from nerve.adapters.protocol import ToolOutputAdded
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.steps import UseTool


async def perform(part: Part, step: UseTool) -> None:
    """The entries of ``output`` are spread evenly over ``seconds``, then comes the result."""
    tool_use_id = await part.start_tool(step.tool, step.input)
    gap = step.seconds / (len(step.output) + 1)
    for text in step.output:
        await trio.sleep(gap)
        await part.stage.emit(ToolOutputAdded(tool_use_id, text))
    await trio.sleep(gap)
    await part.finish_tool(tool_use_id, step.result, step.is_error)
