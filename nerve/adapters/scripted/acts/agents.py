"""``agent``: a sub-agent, in the foreground or the background."""

from functools import partial

import trio

from nerve.adapters.protocol import ToolStarted
from nerve.adapters.scripted.acts.part import Crashed, Failed, Part
from nerve.adapters.scripted.agent_stage import AgentStage
from nerve.adapters.scripted.cast import Member, Outcome, Spared
from nerve.adapters.scripted.steps import Ends, SpawnAgent
from nerve.adapters.subagents import AgentOutcome, AgentSpawned, AgentStarted
from nerve.contract.generated.entities import AgentKind

TOOL = "Agent"
LAST_WORDS_SECONDS = 0.1  # in which one that is stopped tells what it was just saying
NOTICED_SECONDS = 4.5  # after that, whoever waits for an agent that vanished is told (decisions D32)


async def perform(part: Part, step: SpawnAgent) -> None:
    """Started, it is live for the runtime before anything else can happen to whoever started it."""
    member = new_member(part, background=step.background, obeys=step.obeys, stop_seconds=step.stop_seconds)
    task_id = part.effects.new_id("task")
    with part.interruption.deaf(), part.cast.entering(member, partial(_play, part, member, step, task_id)):
        spawned = AgentSpawned(
            ref=member.ref,
            kind=AgentKind.AGENT,
            background=step.background,
            spawn_tool_use_id=member.ref,
            parent_ref=part.agent_ref,
            name=step.name,
            description=step.description or None,
            agent_type=step.type,
            prompt=step.prompt or None,
            requested_model=step.model,
        )
        await part.stage.emit(spawned)
        await part.stage.emit(ToolStarted(member.ref, TOOL, _tool_input(step)))
    if step.background:
        await part.finish_tool(member.ref, f"Started in the background as {task_id}.", False)
    else:
        await finish_with(part, member)


def new_member(part: Part, *, background: bool, obeys: bool = True, stop_seconds: float = 0) -> Member:
    return Member(part.effects.new_id("tool_use"), part.member, background, obeys, stop_seconds)


async def finish_with(part: Part, member: Member) -> None:
    """Wait for the member's end and give it as the result of the call that started it.

    Cancelled, the member is stopped and waited for, unless it is to go on without whoever started it.
    """
    try:
        await member.ended.wait()
        if member.silent:
            await trio.sleep(NOTICED_SECONDS)
    except trio.Cancelled:
        if part.member is None or part.member.spared is not Spared.ALL:
            part.cast.stop(member, _spared(part))
            # Whoever forces an end cancels the member as well, so that this wait ends.
            with trio.CancelScope(shield=True):
                await member.ended.wait()
        raise
    if member.silent:
        await part.finish_tool(member.ref, "The agent vanished.", True)
        return
    outcome = member.outcome
    failed = outcome.outcome is not AgentOutcome.COMPLETED
    text = outcome.result or outcome.error or ("The agent was stopped." if failed else "")
    await part.finish_tool(member.ref, text, failed)


def _spared(part: Part) -> Spared:
    if part.member is not None:
        return part.member.spared
    return Spared.BACKGROUND if part.stage.capabilities.interrupt_spares_background else Spared.NONE


async def _play(part: Part, member: Member, step: SpawnAgent, task_id: str) -> Outcome:
    stage = AgentStage(member.ref, part.stage, part.cast.emit, step.model or part.stage.model)
    started = AgentStarted(ref=member.ref, task_id=task_id, task_type="local_agent", model=stage.model)
    await part.cast.emit(started)
    try:
        ending = await part.play_as(member, stage, step.steps)
    except trio.Cancelled:
        with trio.move_on_after(LAST_WORDS_SECONDS, shield=True):
            await stage.step_over(None)
        raise
    await stage.step_over(None)
    match ending:
        case Crashed(silent=silent):
            await part.cast.crash(silent)
        case Failed(reason=reason):
            return Outcome(AgentOutcome.FAILED, error=reason)
    if step.ends is Ends.VANISHED:
        member.silent = True
    if step.ends is Ends.FAILED:
        return Outcome(AgentOutcome.FAILED, step.result or None, step.result or "The agent failed.")
    return Outcome(AgentOutcome.COMPLETED, step.result)


def _tool_input(step: SpawnAgent) -> dict[str, object]:
    return {
        "name": step.name,
        "description": step.description,
        "prompt": step.prompt,
        "subagent_type": step.type,
        "model": step.model,
        "run_in_background": step.background,
    }
