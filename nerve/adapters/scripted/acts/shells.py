"""``shell`` and ``monitor``: a task that writes to a file, as its play says."""

from functools import partial
from typing import Any

import trio

from nerve.adapters.protocol import ToolStarted
from nerve.adapters.scripted import output_files
from nerve.adapters.scripted.acts.agents import enter, finish_with
from nerve.adapters.scripted.acts.part import Ended, Failed, Part
from nerve.adapters.scripted.cast import Member, Outcome
from nerve.adapters.scripted.steps import RunShell
from nerve.adapters.subagents import AgentOutcome, AgentSpawned, AgentStarted
from nerve.contract.generated.entities import AgentKind

TOOLS = {AgentKind.SHELL: "Bash", AgentKind.MONITOR: "Monitor"}
TASK_TYPES = {AgentKind.SHELL: "local_bash", AgentKind.MONITOR: "local_monitor"}


async def perform(part: Part, step: RunShell) -> None:
    if step.run is not None:
        raise Ended(Failed(f"{step.pointer}: 'run' needs scripted.allow_run"))
    with part.interruption.deaf():
        member = enter(part, background=step.background, obeys=step.obeys, stop_seconds=step.stop_seconds)
        spawned = AgentSpawned(
            ref=member.ref,
            kind=step.kind,
            background=step.background,
            spawn_tool_use_id=member.ref,
            parent_ref=part.agent_ref,
            name=step.name,
            command=step.command or None,
        )
        await part.stage.emit(spawned)
        await part.stage.emit(ToolStarted(member.ref, TOOLS[step.kind], _tool_input(step)))
        task_id = part.effects.new_id("task")
        part.cast.start(member, partial(_write, part, member, step, task_id))
    if step.background:
        await part.finish_tool(member.ref, f"Running in the background as {task_id}.", False)
    else:
        await finish_with(part, member)


async def _write(part: Part, member: Member, step: RunShell, task_id: str) -> Outcome:
    """The entries of ``output`` are spread evenly over ``seconds``; without a place for the file there is none."""
    blocking = part.effects.blocking
    path = await blocking(output_files.create, part.session.session_id, task_id)
    await part.cast.emit(
        AgentStarted(ref=member.ref, task_id=task_id, task_type=TASK_TYPES[step.kind], output_path=path)
    )
    gap = step.seconds / (len(step.output) + 1)
    for text in step.output:
        await trio.sleep(gap)
        if path is not None:
            await blocking(output_files.append, path, text)
    await trio.sleep(gap)
    report = "".join(step.output) if not step.background else f"Exit code {step.exit_code}"
    if step.exit_code:
        return Outcome(AgentOutcome.FAILED, report or None, f"Exit code {step.exit_code}")
    return Outcome(AgentOutcome.COMPLETED, report)


def _tool_input(step: RunShell) -> dict[str, Any]:
    return {"command": step.command, "description": step.name, "run_in_background": step.background}
