"""Frames that a chat mentions in one line: what happens around a turn rather than in it."""

from typing import Any, TypeGuard

from nerve.cli.chat_text import Symbols, clean, counted, one_line
from nerve.contract.generated.entities import AgentStatus
from nerve.contract.generated.frames_server import (
    AutoTurnFrame,
    BackendStatusFrame,
    GapFrame,
    InteractionFrame,
    InteractionResolvedFrame,
    ModelChangedFrame,
    NotificationFrame,
    PlanSummaryFrame,
    PlanUpdateFrame,
    ServerFrame,
    SessionArchivedFrame,
    SessionForkedFrame,
    SessionResumedFrame,
    SessionUpdatedFrame,
    WakeupFrame,
    WorkflowProgressFrame,
)

LONG = 200


def note_of(frame: ServerFrame, symbols: Symbols) -> str | None:
    """What to say about it; None for a frame that a chat passes over."""
    match frame:
        case ModelChangedFrame(from_model=before, to_model=after, downgrade=downgrade):
            why = ", a fallback" if downgrade else ""
            return f"the model is {one_line(after, LONG, symbols)} now (was {one_line(before, LONG, symbols)}{why})"
        case AutoTurnFrame():
            return _auto_turn(frame, symbols)
        case WakeupFrame():
            return "a scheduled turn begins"
        case GapFrame():
            return _gap(frame)
        case BackendStatusFrame(subtype=subtype, data=data):
            said = data.get("message")
            return f"{subtype.value.replace('_', ' ')}" + (f": {one_line(said, LONG, symbols)}" if _text(said) else "")
        case SessionUpdatedFrame(title=title):
            return f"title: {one_line(title, LONG, symbols)}"
        case SessionForkedFrame(fork_id=fork_id, title=title):
            return f"a fork was made: {one_line(title, LONG, symbols)} ({clean(fork_id)})"
        case SessionResumedFrame():
            return "the session was resumed"
        case SessionArchivedFrame():
            return "the session was archived"
        case NotificationFrame(title=title, body=body):
            return one_line(f"{title}: {body}" if body else title, LONG, symbols)
        case _:
            return _asked(frame, symbols)


def _asked(frame: ServerFrame, symbols: Symbols) -> str | None:
    """What an agent asks and plans."""
    match frame:
        case InteractionFrame(interaction_type=kind, tool_input=given):
            questions = "\n".join(_questions(given, symbols))
            return f"{symbols.asks}the agent waits for an answer ({kind.value.replace('_', ' ')})" + (
                f":\n{questions}" if questions else ""
            )
        case InteractionResolvedFrame():
            return "the question is settled"
        case PlanUpdateFrame(content=content):
            return f"the plan was written ({counted(len(content.splitlines()), 'line')})"
        case PlanSummaryFrame(bullets=bullets) if bullets:
            return "the plan in short:\n" + "\n".join(f"- {one_line(bullet, LONG, symbols)}" for bullet in bullets)
        case WorkflowProgressFrame(workflow=workflow):
            done = f"{counted(workflow.agent_count, 'agent')}, {counted(workflow.total_tool_calls, 'tool call')}"
            return f"workflow {one_line(workflow.name, LONG, symbols)}: {workflow.status.value}, {done}"
        case _:
            return None


def _auto_turn(frame: AutoTurnFrame, symbols: Symbols) -> str:
    triggers = frame.triggers or []
    ended = [f"{one_line(trigger.label, LONG, symbols)} {_ended(trigger.status)}" for trigger in triggers]
    if frame.more:
        ended.append(f"{frame.more} more")
    return "the agent goes on by itself" + (f": {', '.join(ended)}" if ended else "")


def _ended(status: AgentStatus) -> str:
    return f"has {status.value}" if status in (AgentStatus.COMPLETED, AgentStatus.FAILED) else f"was {status.value}"


def _gap(frame: GapFrame) -> str:
    if frame.reset is True:
        return "the server has gone back to an earlier state; what it still has of this session follows"
    count = frame.to_seq - frame.from_seq + 1
    frames = "what came meanwhile" if count != 1 else "one frame"
    return f"{frames} can't be had any more (numbers {frame.from_seq} to {frame.to_seq}); /history shows what was said"


def _questions(given: dict[str, Any], symbols: Symbols) -> list[str]:
    found = given.get("questions")
    texts = [entry.get("question") for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
    plan = given.get("plan")
    return [one_line(text, LONG, symbols) for text in [*texts, plan] if _text(text)]


def _text(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())
