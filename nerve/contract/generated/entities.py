"""Entities, shared by operations and frames.  Generated from spec/ by `make contract`: do not edit."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from attrs import field, frozen
from nerve.contract.unset import UNSET, Unset


@frozen(kw_only=True)
class Account:
    """Somebody who may sign in. Holds nothing about the password but whether there is one."""

    id: str
    actor_id: str
    username: str | None
    display_name: str
    enabled: bool
    has_password: bool
    created_at: datetime


class ActorKind(StrEnum):
    """One of the values that spec/ lists."""
    HUMAN = 'human'
    SYSTEM = 'system'


@frozen(kw_only=True)
class Actor:
    """Who something is attributed to. An identity, not an account."""

    id: str
    kind: ActorKind
    display_name: str
    username: str | None


class AgentAttention(StrEnum):
    """Why a person should look at an agent."""
    NEEDS_INPUT = 'needs_input'
    FAILED = 'failed'
    INTERRUPTED = 'interrupted'
    LOST = 'lost'
    STOP_UNCONFIRMED = 'stop_unconfirmed'


class AgentKind(StrEnum):
    """What an agent record stands for."""
    AGENT = 'agent'
    WORKFLOW = 'workflow'
    SHELL = 'shell'
    MONITOR = 'monitor'
    TEAMMATE = 'teammate'
    REMOTE_AGENT = 'remote_agent'
    MCP_TASK = 'mcp_task'
    OTHER = 'other'


class AgentStatus(StrEnum):
    """Where an agent is in its life; the first three are live."""
    STARTING = 'starting'
    RUNNING = 'running'
    STOPPING = 'stopping'
    COMPLETED = 'completed'
    FAILED = 'failed'
    STOPPED = 'stopped'
    INTERRUPTED = 'interrupted'
    LOST = 'lost'


@frozen(kw_only=True)
class AgentBrief:
    """An agent in short."""

    id: str
    label: str
    kind: AgentKind
    status: AgentStatus
    started_at: datetime | None
    tokens: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class AgentCapabilities:
    """What a session's runtime can do with its agents."""

    stop_task: bool
    transcript: bool
    output: bool
    interrupt_spares_background: bool
    quiet_after_minutes: int = field(metadata={'minimum': 0})


class AgentEndReason(StrEnum):
    """Why an agent ended."""
    COMPLETED = 'completed'
    ERROR = 'error'
    SPAWN_FAILED = 'spawn_failed'
    USER = 'user'
    STOP_ALL = 'stop_all'
    TURN_STOP = 'turn_stop'
    ORCHESTRATOR = 'orchestrator'
    UNKNOWN_STOP = 'unknown_stop'
    PROCESS_ENDED = 'process_ended'
    GATEWAY_RESTART = 'gateway_restart'
    FORCE_STOP = 'force_stop'
    MODEL_SWITCH = 'model_switch'
    ARCHIVED = 'archived'
    VANISHED = 'vanished'


class AgentTextKind(StrEnum):
    """One of the values that spec/ lists."""
    TEXT = 'text'
    THINKING = 'thinking'


@frozen(kw_only=True)
class AgentText:
    """Text or thinking."""

    seq: int = field(metadata={'minimum': 1})
    at: datetime
    kind: AgentTextKind
    text: str


@frozen(kw_only=True)
class AgentToolCall:
    """A tool call; its input may be cut."""

    seq: int = field(metadata={'minimum': 1})
    at: datetime
    kind: Literal['tool_call'] = field(default='tool_call')
    tool_use_id: str
    tool: str
    input: dict[str, Any]
    input_truncated: bool
    full_size: int | Unset = field(default=UNSET, metadata={'minimum': 0})
    child_agent_id: str | None


@frozen(kw_only=True)
class AgentToolResult:
    """The end of a tool call; the result may be cut."""

    seq: int = field(metadata={'minimum': 1})
    at: datetime
    kind: Literal['tool_result'] = field(default='tool_result')
    tool_use_id: str
    result: str
    is_error: bool
    truncated: bool
    full_size: int = field(metadata={'minimum': 0})


class AgentLifecycleEvent(StrEnum):
    """One of the values that spec/ lists."""
    STARTED = 'started'
    RESUMED = 'resumed'
    STOP_REQUESTED = 'stop_requested'
    COMPLETED = 'completed'
    FAILED = 'failed'
    STOPPED = 'stopped'
    INTERRUPTED = 'interrupted'
    LOST = 'lost'


@frozen(kw_only=True)
class AgentLifecycle:
    """A change in the agent's life."""

    seq: int = field(metadata={'minimum': 1})
    at: datetime
    kind: Literal['lifecycle'] = field(default='lifecycle')
    event: AgentLifecycleEvent
    run: int = field(metadata={'minimum': 1})
    reason: str | None
    actor_id: str | None


AgentEventItem = AgentText | AgentToolCall | AgentToolResult | AgentLifecycle


@frozen(kw_only=True)
class AgentModelChange:
    """It ran on more than one model."""

    from_: str = field(metadata={'key': 'from'})
    to: str
    at: datetime


@frozen(kw_only=True)
class AgentControls:
    """What can be done with it."""

    stop: bool
    transcript: bool
    output: bool
    message: bool


class WorkflowStatus(StrEnum):
    """One of the values that spec/ lists."""
    RUNNING = 'running'
    COMPLETED = 'completed'
    FAILED = 'failed'
    STOPPED = 'stopped'


@frozen(kw_only=True)
class WorkflowTree:
    """The progress of a Workflow tool call."""

    name: str
    status: WorkflowStatus
    summary: str | Unset = field(default=UNSET)
    phases: list[dict[str, Any]]
    agents: list[dict[str, Any]]
    total_tokens: int = field(metadata={'minimum': 0, 'key': 'totalTokens'})
    total_tool_calls: int = field(metadata={'minimum': 0, 'key': 'totalToolCalls'})
    agent_count: int = field(metadata={'minimum': 0, 'key': 'agentCount'})


@frozen(kw_only=True)
class AgentView:
    """One record of the agent roster; of two views the one with the higher `rev` counts."""

    id: str
    session_id: str
    backend: str
    kind: AgentKind
    task_id: str | None
    task_type: str | None
    spawn_tool_use_id: str | None
    parent_agent_id: str | None
    depth: int = field(metadata={'minimum': 1})
    name: str | None
    label: str
    description: str | None
    agent_type: str | None
    command: str | None
    background: bool
    ambient: bool
    status: AgentStatus
    end_reason: AgentEndReason | None
    error: str | None
    attention: AgentAttention | None
    activity: str | None
    summary: str | None
    result_preview: str | None
    requested_model: str | None
    model: str | None
    model_changed: AgentModelChange | None
    tokens: int = field(metadata={'minimum': 0})
    tool_uses: int = field(metadata={'minimum': 0})
    cost_usd: float
    runs: int = field(metadata={'minimum': 0})
    created_at: datetime
    started_at: datetime | None
    run_started_at: datetime | None
    last_activity_at: datetime | None
    ended_at: datetime | None
    stop_requested_at: datetime | None
    stopped_by_actor_id: str | None
    resumable: bool
    controls: AgentControls
    workflow: WorkflowTree | None
    rev: int


@frozen(kw_only=True)
class AgentSummary:
    """The roster of a session in numbers, housekeeping left out."""

    total: int = field(metadata={'minimum': 0})
    live: int = field(metadata={'minimum': 0})
    starting: int = field(metadata={'minimum': 0})
    running: int = field(metadata={'minimum': 0})
    stopping: int = field(metadata={'minimum': 0})
    completed: int = field(metadata={'minimum': 0})
    failed: int = field(metadata={'minimum': 0})
    stopped: int = field(metadata={'minimum': 0})
    interrupted: int = field(metadata={'minimum': 0})
    lost: int = field(metadata={'minimum': 0})
    attention: int = field(metadata={'minimum': 0})
    shells_live: int = field(metadata={'minimum': 0})
    tokens: int = field(metadata={'minimum': 0})
    cost_usd: float
    oldest_live_started_at: datetime | None


@frozen(kw_only=True)
class QueueEntry:
    """A message that waits for its turn."""

    queue_id: str
    client_msg_id: str | None
    preview: str
    source: str
    internal: bool
    actor_id: str | None
    created_at: datetime


@frozen(kw_only=True)
class AgentSnapshot:
    """The agents of a session, every live one and the newest ended ones, oldest first."""

    session_id: str
    agents: list[AgentView]
    summary: AgentSummary
    capabilities: AgentCapabilities
    queue: list[QueueEntry]
    generated_at: datetime


class AuthModeName(StrEnum):
    """One of the values that spec/ lists."""
    LOCAL = 'local'
    EXTERNAL = 'external'


class LoginState(StrEnum):
    """One of the values that spec/ lists."""
    SETUP = 'setup'
    NONE = 'none'
    PASSWORD = 'password'
    USERNAME_PASSWORD = 'username_password'


@frozen(kw_only=True)
class AuthStatus:
    """How people sign in. Tells neither usernames nor how many accounts there are."""

    mode: AuthModeName
    auth_required: bool
    login: LoginState


Block = dict[str, Any]


@frozen(kw_only=True)
class DiffStats:
    """How many lines were added and taken away; both 0 where the content can't be compared."""

    additions: int = field(metadata={'minimum': 0})
    deletions: int = field(metadata={'minimum': 0})


class FileOperation(StrEnum):
    """How a file was changed."""
    WRITE = 'write'
    EDIT = 'edit'
    DELETE = 'delete'
    NOTEBOOK_EDIT = 'notebook_edit'


class FileStatus(StrEnum):
    """What became of a file since before the session's first change of it."""
    CREATED = 'created'
    MODIFIED = 'modified'
    DELETED = 'deleted'


class FormQuestionKind(StrEnum):
    """One of the values that spec/ lists."""
    CHOICE = 'choice'
    MULTI = 'multi'
    TEXT = 'text'
    LIST = 'list'
    REPOS = 'repos'
    URL = 'url'


@frozen(kw_only=True)
class FormOption:
    """FormQuestion.options of spec/."""

    label: str
    description: str


@frozen(kw_only=True)
class FormQuestion:
    """One question of a form."""

    id: str
    kind: FormQuestionKind
    label: str = field(metadata={'max_length': 40})
    question: str
    help: str
    placeholder: str
    required: bool
    options: list[FormOption] = field(metadata={'max_items': 8})
    allow_other: bool
    default: str | list[str] | None


@frozen(kw_only=True)
class Form:
    """A form that an agent asks a person to fill in, normalised; every key is present."""

    title: str
    intro: str = field(metadata={'max_length': 1500})
    questions: list[FormQuestion] = field(metadata={'max_items': 6})


@frozen(kw_only=True)
class Health:
    """The whole answer of /health."""

    status: Literal['ok'] = field(default='ok')
    version: str
    generation: str


class InteractionType(StrEnum):
    """What a person is asked for."""
    QUESTION = 'question'
    FORM = 'form'
    PLAN_EXIT = 'plan_exit'
    COMMAND_APPROVAL = 'command_approval'
    FILE_APPROVAL = 'file_approval'
    PERMISSION_APPROVAL = 'permission_approval'


class MessageRole(StrEnum):
    """Who speaks; `system` is a note of the server."""
    USER = 'user'
    ASSISTANT = 'assistant'
    SYSTEM = 'system'


@frozen(kw_only=True)
class Message:
    """One stored message."""

    id: int
    session_id: str
    role: MessageRole
    content: str
    thinking: str | None
    blocks: list[Block] | None
    created_at: datetime
    channel: str | None
    external_id: str | None
    native_turn_id: str | None
    actor_id: str | None


class SessionSource(StrEnum):
    """What a session was made by."""
    WEB = 'web'
    TELEGRAM = 'telegram'
    SLACK = 'slack'
    CRON = 'cron'
    HOOK = 'hook'
    WORKFLOW = 'workflow'
    EXTERNAL = 'external'
    API = 'api'
    SYSTEM = 'system'


class SessionStatus(StrEnum):
    """Where a session is in its life."""
    CREATED = 'created'
    ACTIVE = 'active'
    IDLE = 'idle'
    STOPPED = 'stopped'
    ERROR = 'error'
    ARCHIVED = 'archived'


@frozen(kw_only=True)
class Session:
    """A conversation with an agent."""

    id: str
    title: str
    source: SessionSource
    status: SessionStatus
    metadata: dict[str, Any]
    backend: str
    backend_reason: str | None
    model: str | None
    cwd: str
    sdk_session_id: str | None
    parent_session_id: str | None
    forked_from_message: int | None
    starred: bool
    quarantined: bool
    message_count: int = field(metadata={'minimum': 0})
    total_cost_usd: float
    created_by_actor_id: str | None
    caused_by_actor_id: str | None
    created_at: datetime
    updated_at: datetime
    last_activity_at: datetime | None
    connected_at: datetime | None
    archived_at: datetime | None
    last_memorized_at: datetime | None
    pending_wakeup_at: datetime | None
    pending_wakeup_created_by_actor_id: str | None
    pending_wakeup_caused_by_actor_id: str | None


@frozen(kw_only=True)
class SessionEvent:
    """One entry of what happened to a session."""

    id: int
    session_id: str
    event_type: str
    details: dict[str, Any]
    actor_id: str | None
    caused_by_actor_id: str | None
    created_at: datetime


@frozen(kw_only=True)
class SessionRow:
    """A session in a list, with what it is doing now."""

    id: str
    title: str
    source: SessionSource
    status: SessionStatus
    metadata: dict[str, Any]
    backend: str
    backend_reason: str | None
    model: str | None
    cwd: str
    sdk_session_id: str | None
    parent_session_id: str | None
    forked_from_message: int | None
    starred: bool
    quarantined: bool
    message_count: int = field(metadata={'minimum': 0})
    total_cost_usd: float
    created_by_actor_id: str | None
    caused_by_actor_id: str | None
    created_at: datetime
    updated_at: datetime
    last_activity_at: datetime | None
    connected_at: datetime | None
    archived_at: datetime | None
    last_memorized_at: datetime | None
    is_running: bool
    awaiting_input: bool
    pending_wakeup_at: datetime | None
    pending_wakeup_created_by_actor_id: str | None
    pending_wakeup_caused_by_actor_id: str | None
    has_background_tasks: bool
    background_count: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class SessionPage:
    """One page of a list of sessions."""

    sessions: list[SessionRow]
    has_more: bool
    next_offset: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class SessionState:
    """What a session is doing now."""

    session_id: str
    status: SessionStatus
    is_running: bool
    background_count: int = field(metadata={'minimum': 0})
    sdk_session_id: str | None
    connected_at: datetime | None
    parent_session_id: str | None
    message_count: int = field(metadata={'minimum': 0})
    total_cost_usd: float
    awaiting_input: bool
    last_seq: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class Token:
    """A session token; opaque to clients."""

    token: str = field(metadata={'min_length': 1})


class TurnStop(StrEnum):
    """What came of asking a turn to stop."""
    STOPPED = 'stopped'
    NOT_RUNNING = 'not_running'
    KILLED = 'killed'
    NOT_STOPPED = 'not_stopped'
    NEEDS_CONFIRMATION = 'needs_confirmation'


@frozen(kw_only=True)
class TurnTrigger:
    """An agent whose end started an autonomous turn."""

    agent_id: str
    label: str
    kind: AgentKind
    status: AgentStatus


@frozen(kw_only=True)
class TurnUsage:
    """The usage that the newest turn reported, with what its `done` frame said beside it."""

    input_tokens: int = field(metadata={'minimum': 0})
    output_tokens: int = field(metadata={'minimum': 0})
    cache_read_input_tokens: int = field(metadata={'minimum': 0})
    cache_creation_input_tokens: int = field(metadata={'minimum': 0})
    max_context_tokens: int | Unset = field(default=UNSET, metadata={'minimum': 1})
    num_turns: int | Unset = field(default=UNSET, metadata={'minimum': 0})


@frozen(kw_only=True)
class Usage:
    """The tokens of a turn."""

    input_tokens: int = field(metadata={'minimum': 0})
    output_tokens: int = field(metadata={'minimum': 0})
    cache_read_input_tokens: int = field(metadata={'minimum': 0})
    cache_creation_input_tokens: int = field(metadata={'minimum': 0})
