"""What becomes of a runtime's event: a piece of the transcript, a frame, or the end of the turn."""

from typing import Any

from nerve.adapters.protocol import (
    AgentEvent,
    FileChanged,
    ModelObserved,
    TextAdded,
    ThinkingAdded,
    ToolFinished,
    ToolOutputAdded,
    ToolStarted,
)
from nerve.contract import codec
from nerve.contract.generated.entities import WorkflowTree
from nerve.contract.generated.frames_server import (
    FileChangedFrame,
    LoggedFrame,
    ModelChangedFrame,
    ThinkingFrame,
    TokenFrame,
    ToolOutputFrame,
    ToolResultFrame,
    ToolUseFrame,
    WorkflowProgressFrame,
)
from nerve.domain.transcript import Transcript
from nerve.runtime.event_log import Delta


def fold(transcript: Transcript, event: AgentEvent, model: str) -> None:
    """Add an event to the transcript; ``model`` is the one that served before it."""
    match event:
        case TextAdded(text):
            transcript.text(text)
        case ThinkingAdded(text):
            transcript.thinking(text)
        case ToolStarted(tool_use_id, tool, tool_input):
            transcript.tool_started(tool_use_id, tool, tool_input)
        case ToolFinished(tool_use_id, result, is_error):
            transcript.tool_finished(tool_use_id, result, is_error)
        case ModelObserved(observed, downgrade):
            transcript.model_changed(model, observed, downgrade)
        case _:
            pass


def workflow(session_id: str, tool_use_id: str, tree: dict[str, Any]) -> WorkflowProgressFrame:
    """``tree`` is a WorkflowTree as the contract writes it."""
    return WorkflowProgressFrame(
        session_id=session_id, tool_use_id=tool_use_id, workflow=codec.structure(WorkflowTree, tree)
    )


def delta(session_id: str, event: AgentEvent) -> Delta | None:
    """The frame of an event that is merged before it is numbered; None for any other event."""
    match event:
        case TextAdded(text):
            return TokenFrame(session_id=session_id, content=text)
        case ThinkingAdded(text):
            return ThinkingFrame(session_id=session_id, content=text)
        case ToolOutputAdded(tool_use_id, text):
            return ToolOutputFrame(session_id=session_id, tool_use_id=tool_use_id, content=text)
        case _:
            return None


def frame(session_id: str, event: AgentEvent, model: str) -> LoggedFrame | None:
    """The frame of an event that is recorded before anybody sees it."""
    match event:
        case ToolStarted(tool_use_id, tool, tool_input):
            return ToolUseFrame(session_id=session_id, tool=tool, input=tool_input, tool_use_id=tool_use_id)
        case ToolFinished(tool_use_id, result, is_error):
            return ToolResultFrame(session_id=session_id, tool_use_id=tool_use_id, result=result, is_error=is_error)
        case FileChanged(path, operation, tool_use_id):
            return FileChangedFrame(session_id=session_id, path=path, operation=operation, tool_use_id=tool_use_id)
        case ModelObserved(observed, downgrade):
            return ModelChangedFrame(session_id=session_id, from_model=model, to_model=observed, downgrade=downgrade)
        case _:
            return None
