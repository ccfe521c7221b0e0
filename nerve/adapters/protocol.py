"""What an agent runtime looks like from the house.  Nothing else of a runtime may be seen outside its folder.

A *client* is what is open: it lives for many turns, because background work outlives a turn and speaks between turns.
The events of a client have one reader for its whole life; within a turn exactly one ``TurnEnded`` comes, also when the
turn was interrupted or failed.  An iterator that ends, or raises ``RuntimeGone``, says that the runtime is gone.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from attrs import field, frozen

from nerve.adapters.subagents import SubagentEvent
from nerve.contract.generated.entities import FileOperation, InteractionType

__all__ = [
    "AgentAdapter",
    "AgentClient",
    "AgentEvent",
    "Allowed",
    "Availability",
    "Capabilities",
    "CapabilitiesChanged",
    "Denied",
    "FileChanged",
    "FileOperation",
    "InteractionReply",
    "InteractionRequest",
    "InteractionType",
    "ModelObserved",
    "PlanUpdated",
    "PromptFile",
    "RuntimeGone",
    "SessionHost",
    "SessionSpec",
    "TextAdded",
    "ThinkingAdded",
    "ToolFinished",
    "ToolOutputAdded",
    "ToolResult",
    "ToolStarted",
    "TurnEnded",
    "TurnPrompt",
    "TurnSource",
    "TurnStatus",
    "Usage",
]


@frozen
class Capabilities:
    """AgentCapabilities of the contract, less ``quiet_after_minutes``, which is configuration.

    ``messaging``: its agents can be written to, also when they have ended.
    """

    stop_task: bool = True
    transcript: bool = True
    output: bool = True
    interrupt_spares_background: bool = True
    messaging: bool = False


class TurnStatus(StrEnum):
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@frozen
class Usage:
    """Tokens of one turn; ``input_tokens`` counts only what no cache served.  ``cost_usd`` is this turn's alone."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cost_usd: float | None = None
    max_context_tokens: int | None = None
    num_turns: int | None = None


# --- events, past tense -----------------------------------------------------------------------------------------


@frozen
class TextAdded:
    text: str


@frozen
class ThinkingAdded:
    text: str


@frozen
class ToolStarted:
    tool_use_id: str
    tool: str
    input: dict[str, Any]


@frozen
class ToolOutputAdded:
    tool_use_id: str
    text: str


@frozen
class ToolFinished:
    tool_use_id: str
    result: str
    is_error: bool = False


@frozen
class FileChanged:
    """A file was changed by a tool that succeeded; ``path`` is absolute."""

    path: str
    operation: FileOperation
    tool_use_id: str


@frozen
class PlanUpdated:
    """The plan file was written, by whichever agent; ``content`` is all of it."""

    content: str


@frozen
class ModelObserved:
    """The model that serves from here on differs from the one before."""

    model: str
    downgrade: bool = False


@frozen
class CapabilitiesChanged:
    capabilities: Capabilities


@frozen
class TurnEnded:
    """The one end of a turn.  ``error`` is the reason, for people, of a failed one; it holds no secret."""

    status: TurnStatus
    error: str | None = None
    usage: Usage | None = None
    native_turn_id: str | None = None


AgentEvent = (
    TextAdded
    | ThinkingAdded
    | ToolStarted
    | ToolOutputAdded
    | ToolFinished
    | FileChanged
    | PlanUpdated
    | ModelObserved
    | CapabilitiesChanged
    | TurnEnded
    | SubagentEvent
)


class RuntimeGone(Exception):
    """The runtime died.  ``retryable`` is False where playing the turn again would be wrong (a scripted crash)."""

    def __init__(self, reason: str, *, retryable: bool = True) -> None:
        super().__init__(reason)
        self.retryable = retryable


# --- what a runtime asks of its session -------------------------------------------------------------------------


@frozen
class InteractionRequest:
    """A question to whoever watches the session: it waits until somebody answers (contract chapter WebSocket).

    ``agent_ref`` is the runtime's own id of the sub-agent that asks; None: the orchestrator does.
    """

    kind: InteractionType
    tool_name: str
    tool_input: dict[str, Any]
    agent_ref: str | None = None


@frozen
class Allowed:
    """``result`` as the person sent it, cleaned by the rules of the interaction's kind; None: plain approval."""

    result: dict[str, Any] | None = None


@frozen
class Denied:
    """``message`` reaches the agent verbatim.  Also what a stop, an archive, the hour's end or a shutdown make."""

    message: str


InteractionReply = Allowed | Denied


@frozen
class ToolResult:
    """What a built-in tool answers: text in any case, never an exception."""

    text: str
    is_error: bool = False


# --- what a client is opened with, and asked ----------------------------------------------------------------------


class SessionHost(Protocol):
    """What a runtime may ask of the session it works for."""

    async def before_file_change(self, path: Path) -> None:
        """Keep the file's content, once per session and path, before a tool changes it.

        Returns when the snapshot is stored; a file that is missing, unreadable or above 1 MiB is recorded as such.
        """
        ...

    async def call_tool(self, name: str, tool_input: dict[str, Any], agent_ref: str | None = None) -> ToolResult:
        """Call a built-in tool for the session; ``agent_ref`` as in ``InteractionRequest``.

        Waits for as long as the tool does.  Whatever goes wrong, an unknown name included, is an error result.
        """
        ...

    async def ask(self, request: InteractionRequest) -> InteractionReply:
        """Ask a person and wait, an hour at most.  The events before it have to be read by then.

        Cancelled, the question is settled before this returns.  Whatever keeps it from being answered is a refusal.
        """
        ...


@frozen
class SessionSpec:
    """``native_id`` is the conversation to resume; None opens a fresh one.  ``fork_turn`` branches it there."""

    session_id: str
    cwd: Path
    host: SessionHost = field(repr=False)
    model: str | None = None
    native_id: str | None = None
    fork: bool = False
    fork_turn: str | None = None


class TurnSource(StrEnum):
    """Where a prompt came from.  Plays inside messages are read only from ``web`` and ``api``."""

    WEB = "web"
    API = "api"
    TELEGRAM = "telegram"
    SLACK = "slack"
    CRON = "cron"
    WAKEUP = "wakeup"
    HOOK = "hook"
    WORKFLOW = "workflow"
    NOTIFICATION = "notification"
    AUTO = "auto"  # no prompt: background work has settled, and the orchestrator goes on by itself


@frozen
class PromptFile:
    """A file that a message carries; ``path`` is where it lies, ``filename`` what its sender calls it."""

    path: Path
    filename: str
    media_type: str


@frozen
class TurnPrompt:
    turn_id: str
    text: str
    source: TurnSource
    model: str | None = None
    files: tuple[PromptFile, ...] = ()


class AgentClient(Protocol):
    """An open runtime.  ``prompt`` and ``interrupt`` return at once; what follows arrives as events."""

    @property
    def native_id(self) -> str:
        """The conversation that the runtime keeps, for a later resume or fork."""
        ...

    @property
    def began_afresh(self) -> bool:
        """None was to go on or to be branched, or the runtime does not have it any more."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def events(self) -> AsyncIterator[AgentEvent]: ...

    async def prompt(self, turn: TurnPrompt) -> None:
        """Begin a turn.  Raises RuntimeGone if the runtime is not there any more."""
        ...

    async def interrupt(self) -> None:
        """Ask the turn to end (it then ends as ``interrupted``); spares background work where the runtime can."""
        ...

    async def stop_agent(self, ref: str, *, spare_children: bool = False) -> None:
        """Ask one agent to end, where the capability ``stop_task`` says that this is possible.

        Its ``AgentEnded`` confirms it.  What it started ends with it, or goes on without it (``spare_children``).
        Unknown and ended ones are fine.  Raises RuntimeGone.
        """
        ...

    async def live_agents(self) -> frozenset[str] | None:
        """The refs that the runtime knows as live, to find those that vanished; None if it can't tell."""
        ...


@frozen
class Availability:
    """Whether sessions may be created on a runtime, and if not why, for people."""

    available: bool
    reason: str | None = None


class AgentAdapter(Protocol):
    name: str
    default_model: str

    async def availability(self) -> Availability:
        """Bounded to a few seconds; no network."""
        ...

    def open(self, session: SessionSpec) -> AbstractAsyncContextManager[AgentClient]:
        """Open a client.  However the context is left, everything ends on the other side too."""
        ...

    async def forget_session(self, session_id: str) -> None:
        """Remove what the runtime kept of a deleted session beside its conversation; unknown ids are fine."""
        ...

    async def forget(self, native_id: str) -> None:
        """Remove the runtime's own record of a conversation that no session needs any more; unknown ids are fine."""
        ...
