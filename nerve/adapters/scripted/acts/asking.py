"""``ask``, ``plan`` and ``approve``: what waits for a person, each as the tool call of a real runtime."""

from typing import Any

from nerve.adapters.protocol import Allowed, Denied, InteractionReply, InteractionRequest, InteractionType, PlanUpdated
from nerve.adapters.scripted import files
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.steps import AskQuestions, ProposePlan, RequestApproval

SKIPPED = "(skipped)"
APPROVALS = {
    "command": (InteractionType.COMMAND_APPROVAL, "Bash"),
    "file": (InteractionType.FILE_APPROVAL, "Edit"),
    "permission": (InteractionType.PERMISSION_APPROVAL, "Permission"),
}


async def perform(part: Part, step: AskQuestions | ProposePlan | RequestApproval) -> None:
    """Waits until a person answers, an hour at most.  A refusal is an error result."""
    match step:
        case AskQuestions():
            await _questions(part, step)
        case ProposePlan():
            await _plan(part, step)
        case RequestApproval(kind=kind, input=tool_input):
            asked, tool = APPROVALS[kind]
            tool_use_id, reply = await _asked(part, asked, tool, tool_input)
            await _finish(part, tool_use_id, reply, "Approved.")


async def _asked(
    part: Part, kind: InteractionType, tool: str, tool_input: dict[str, Any]
) -> tuple[str, InteractionReply]:
    tool_use_id = await part.start_tool(tool, tool_input)
    await part.stage.heard()
    return tool_use_id, await part.session.host.ask(InteractionRequest(kind, tool, tool_input, part.agent_ref))


async def _finish(part: Part, tool_use_id: str, reply: InteractionReply, result: str) -> None:
    if isinstance(reply, Denied):
        await part.finish_tool(tool_use_id, reply.message, True)
    else:
        await part.finish_tool(tool_use_id, result, False)


async def _questions(part: Part, step: AskQuestions) -> None:
    tool_input = {"questions": list(step.questions)}
    tool_use_id, reply = await _asked(part, InteractionType.QUESTION, "AskUserQuestion", tool_input)
    lines = ["The person answered."]
    given = (reply.result or {}).get("answers", {}) if isinstance(reply, Allowed) else {}
    for question in step.questions:
        answer = given.get(question["question"])
        text = ", ".join(answer) if isinstance(answer, list) else answer or ""
        part.variables[f"answer.{question['header'] or question['question']}"] = text
        lines.append(f"{question['header'] or question['question']}: {text or SKIPPED}")
    await _finish(part, tool_use_id, reply, "\n".join(lines))


async def _plan(part: Part, step: ProposePlan) -> None:
    problem = await _write_plan(part, step.text)
    tool_input = {"plan": step.text, "planFilePath": str(part.plan_file.path)}
    if problem is not None:
        await part.finish_tool(await part.start_tool("ExitPlanMode", tool_input), problem, True)
        return
    tool_use_id, reply = await _asked(part, InteractionType.PLAN_EXIT, "ExitPlanMode", tool_input)
    result = "The person approved the plan."
    if isinstance(reply, Allowed) and reply.result is not None:
        text = reply.result["plan"]
        problem = await _write_plan(part, text)
        result = f"The person edited the plan and approved it:\n\n{text}" + (f"\n\n({problem})" if problem else "")
    await _finish(part, tool_use_id, reply, result)
    if isinstance(reply, Denied):
        await part.play(step.revise)


async def _write_plan(part: Part, text: str) -> str | None:
    """Why it can't be written, if it can't."""
    scratch = f".{part.effects.new_id('native')}.tmp"
    with part.interruption.deaf():  # a plan that was written is also told
        try:
            await part.effects.blocking(files.write, part.plan_file, text, scratch)
        except files.FileProblem as refused:
            return str(refused)
        await part.stage.emit(PlanUpdated(text))
    return None
