"""``workflow``: a Workflow tool call whose agents finish one after the other."""

from functools import partial
from typing import Any

import trio

from nerve.adapters.protocol import ToolStarted
from nerve.adapters.scripted.acts.agents import finish_with, new_member
from nerve.adapters.scripted.acts.part import Part
from nerve.adapters.scripted.cast import Member, Outcome
from nerve.adapters.scripted.steps import RunWorkflow
from nerve.adapters.subagents import AgentOutcome, AgentProgressed, AgentSpawned, AgentStarted
from nerve.contract.generated.entities import AgentKind

TOOL = "Workflow"


async def perform(part: Part, step: RunWorkflow) -> None:
    member = new_member(part, background=False)
    work = partial(_progress, part, member, step, part.effects.new_id("task"))
    with part.interruption.deaf(), part.cast.entering(member, work):
        spawned = AgentSpawned(
            ref=member.ref,
            kind=AgentKind.WORKFLOW,
            background=False,
            spawn_tool_use_id=member.ref,
            parent_ref=part.agent_ref,
            name=step.name,
        )
        await part.stage.emit(spawned)
        tool_input = {"name": step.name, "phases": list(step.phases), "agents": list(step.agents)}
        await part.stage.emit(ToolStarted(member.ref, TOOL, tool_input))
    await finish_with(part, member)


async def _progress(part: Part, member: Member, step: RunWorkflow, task_id: str) -> Outcome:
    """One agent after the other is done, evenly over ``seconds``, and with them the phases."""
    emit = part.cast.emit
    await emit(AgentStarted(ref=member.ref, task_id=task_id, task_type="local_workflow"))
    for done in range(len(step.agents)):
        await emit(AgentProgressed(ref=member.ref, workflow=tree(step, done, "running")))
        await trio.sleep(step.seconds / len(step.agents))
    if not step.agents:
        await emit(AgentProgressed(ref=member.ref, workflow=tree(step, 0, "running")))
        await trio.sleep(step.seconds)
    await emit(AgentProgressed(ref=member.ref, workflow=tree(step, len(step.agents), "completed")))
    return Outcome(AgentOutcome.COMPLETED, f"The workflow {step.name} is completed.")


def tree(step: RunWorkflow, done: int, status: str) -> dict[str, Any]:
    """The WorkflowTree once so many of its agents are done."""
    phases = step.phases or ("",)
    agents = []
    for index, label in enumerate(step.agents):
        phase = index * len(phases) // len(step.agents)
        state = "completed" if index < done else "running" if index == done else "pending"
        agents.append({"label": label, "phaseIndex": phase, "phaseTitle": phases[phase], "state": state})
    return {
        "name": step.name,
        "status": status,
        "phases": [{"index": index, "title": title} for index, title in enumerate(step.phases)],
        "agents": agents,
        "totalTokens": 0,
        "totalToolCalls": 0,
        "agentCount": len(step.agents),
    }
