"""``shell`` and ``monitor``: a task that writes to a file, as its play says; with ``run`` a real process does."""

import shlex
from functools import partial
from typing import Any

import trio

from nerve.adapters.protocol import ToolStarted
from nerve.adapters.scripted import output_files
from nerve.adapters.scripted.acts.agents import finish_with, new_member
from nerve.adapters.scripted.acts.part import Ended, Failed, Part
from nerve.adapters.scripted.acts.programs import Program
from nerve.adapters.scripted.cast import Member, Outcome
from nerve.adapters.scripted.steps import RunShell
from nerve.adapters.subagents import AgentOutcome, AgentSpawned, AgentStarted
from nerve.contract.generated.entities import AgentKind

TOOLS = {AgentKind.SHELL: "Bash", AgentKind.MONITOR: "Monitor"}
TASK_TYPES = {AgentKind.SHELL: "local_bash", AgentKind.MONITOR: "local_monitor"}


async def perform(part: Part, step: RunShell) -> None:
    if step.run is not None and part.children is None:
        raise Ended(Failed(f"{step.pointer}: 'run' needs scripted.allow_run"))
    agent_id = None if step.run is None else part.effects.new_id("agent")
    member = new_member(part, background=step.background, obeys=step.obeys, stop_seconds=step.stop_seconds)
    task_id = part.effects.new_id("task")
    program = _program(part, member, step, agent_id, task_id)
    work = partial(_write, part, member, step, task_id) if program is None else program.run
    with part.interruption.deaf(), part.cast.entering(member, work):
        spawned = AgentSpawned(
            ref=member.ref,
            kind=step.kind,
            background=step.background,
            spawn_tool_use_id=member.ref,
            parent_ref=part.agent_ref,
            name=step.name,
            command=_command(step) or None,
            agent_id=agent_id,
        )
        await part.stage.emit(spawned)
        await part.stage.emit(ToolStarted(member.ref, TOOLS[step.kind], _tool_input(step)))
    if not step.background:
        await finish_with(part, member)
        return
    if program is not None:
        await program.begun.wait()
    refusal = None if program is None else program.refusal
    await part.finish_tool(member.ref, refusal or f"Running in the background as {task_id}.", refusal is not None)


async def _write(part: Part, member: Member, step: RunShell, task_id: str) -> Outcome:
    """The entries of ``output`` are spread evenly over ``seconds``; without a place for the file there is none."""
    blocking = part.effects.blocking
    path = await blocking(output_files.create, part.stage.native_id, task_id)
    await part.cast.emit(
        AgentStarted(ref=member.ref, task_id=task_id, task_type=TASK_TYPES[step.kind], output_path=path)
    )
    gap = step.seconds / (len(step.output) + 1)
    for text in step.output:
        await trio.sleep(gap)
        if path is not None:
            await blocking(output_files.append, path, text.encode("utf-8", "replace"))
    await trio.sleep(gap)
    report = "".join(step.output) if not step.background else f"Exit code {step.exit_code}"
    if step.exit_code:
        return Outcome(AgentOutcome.FAILED, report or None, f"Exit code {step.exit_code}")
    return Outcome(AgentOutcome.COMPLETED, report)


def _program(part: Part, member: Member, step: RunShell, agent_id: str | None, task_id: str) -> Program | None:
    """None: the play says what is written."""
    if part.children is None or agent_id is None:
        return None
    return Program(part, member, step, part.children, agent_id, task_id, TASK_TYPES[step.kind])


def _command(step: RunShell) -> str:
    return step.command or shlex.join(step.run or ())


def _tool_input(step: RunShell) -> dict[str, Any]:
    return {"command": _command(step), "description": step.name, "run_in_background": step.background}
