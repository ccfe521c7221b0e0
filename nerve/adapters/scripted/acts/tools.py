"""``tool``: a tool call without effect; ``call``, ``form`` and ``wakeup``: the built-in tools of the house."""

import json
from typing import Any

import trio

from nerve.adapters.protocol import ToolOutputAdded, ToolResult
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.steps import CallTool, UseTool

FORM = "ask_form"
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
    await part.stage.heard()
    result = await part.session.host.call_tool(step.tool, step.input, part.agent_ref)
    if step.tool == FORM:
        part.variables |= _answers(step.input, result)
    await part.finish_tool(tool_use_id, result.text, result.is_error)


def _answers(form: dict[str, Any], result: ToolResult) -> dict[str, str]:
    """Of each question of a form, under ``form.<id>``; what was not answered is empty.

    An agent has nothing but the text of the result, whose last line is the answers as JSON.
    """
    answers: dict[str, Any] = {} if result.is_error else json.loads(result.text.rpartition("\n")[2])["answers"]
    questions = form.get("questions")
    return {
        f"form.{question['id']}": _joined(answers.get(question["id"], ""))
        for question in (questions if isinstance(questions, list) else ())
        if isinstance(question, dict) and isinstance(question.get("id"), str)
    }


def _joined(answer: str | list[str]) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)
