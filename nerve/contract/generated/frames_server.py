"""Frames that the server sends.  Generated from spec/ by `make contract`: do not edit."""

from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from nerve.contract.generated.entities import AgentEventItem, AgentSnapshot, AgentSummary, AgentView, Block, FileOperation, InteractionType, QueueEntry, SessionStatus, TurnTrigger, Usage, WorkflowTree
from nerve.contract.route import Work
from nerve.contract.unset import UNSET, Unset


@frozen(kw_only=True)
class TokenFrame:
    """A piece of the answer's text."""

    type: Literal['token'] = field(default='token')
    session_id: str
    content: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class ThinkingFrame:
    """A piece of the agent's thinking."""

    type: Literal['thinking'] = field(default='thinking')
    session_id: str
    content: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class ToolUseFrame:
    """The agent calls a tool."""

    type: Literal['tool_use'] = field(default='tool_use')
    session_id: str
    tool: str
    input: dict[str, Any]
    tool_use_id: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class ToolOutputFrame:
    """A piece of a running tool's output."""

    type: Literal['tool_output'] = field(default='tool_output')
    session_id: str
    tool_use_id: str
    content: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class ToolResultFrame:
    """A tool call has ended."""

    type: Literal['tool_result'] = field(default='tool_result')
    session_id: str
    tool_use_id: str
    result: str
    is_error: bool
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class DoneFrame:
    """The turn is complete."""

    type: Literal['done'] = field(default='done')
    session_id: str
    usage: Usage | Unset = field(default=UNSET)
    max_context_tokens: int | Unset = field(default=UNSET, metadata={'minimum': 1})
    num_turns: int | Unset = field(default=UNSET, metadata={'minimum': 0})
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class StoppedFrame:
    """A person stopped the turn."""

    type: Literal['stopped'] = field(default='stopped')
    session_id: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class ErrorFrame:
    """The turn failed, if it has a number; else an answer to a request, to its sender only."""

    type: Literal['error'] = field(default='error')
    session_id: str
    error: str
    client_msg_id: str | None | Unset = field(default=UNSET)
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class AutoTurnFrame:
    """An autonomous turn starts, because background work has settled."""

    type: Literal['auto_turn'] = field(default='auto_turn')
    session_id: str
    triggers: list[TurnTrigger] | Unset = field(default=UNSET, metadata={'max_items': 5})
    more: int | Unset = field(default=UNSET, metadata={'minimum': 0})
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class WakeupFrame:
    """A turn starts that a scheduled wakeup fired."""

    type: Literal['wakeup'] = field(default='wakeup')
    session_id: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class UserMessageFrame:
    """A message that began a turn; the socket that sent it is skipped, also at the first replay."""

    type: Literal['user_message'] = field(default='user_message')
    session_id: str
    content: str
    blocks: list[Block] | None
    actor_id: str | None
    client_msg_id: str | None
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class FileChangedFrame:
    """A tool changed a file."""

    type: Literal['file_changed'] = field(default='file_changed')
    session_id: str
    path: str
    operation: FileOperation
    tool_use_id: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class ModelChangedFrame:
    """The serving model changed; the session's own model stays."""

    type: Literal['model_changed'] = field(default='model_changed')
    session_id: str
    from_model: str
    to_model: str
    downgrade: bool
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


class BackendStatusKind(StrEnum):
    """One of the values that spec/ lists."""
    CODEX_RATE_LIMITS = 'codex_rate_limits'
    CODEX_STATUS = 'codex_status'
    CODEX_ERROR = 'codex_error'


@frozen(kw_only=True)
class BackendStatusFrame:
    """What the runtime says about itself, such as rate limits and errors that it retries."""

    type: Literal['backend_status'] = field(default='backend_status')
    session_id: str
    subtype: BackendStatusKind
    data: dict[str, Any]
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class WorkflowProgressFrame:
    """The progress tree of a Workflow tool call."""

    type: Literal['workflow_progress'] = field(default='workflow_progress')
    session_id: str
    tool_use_id: str
    workflow: WorkflowTree
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class PlanUpdateFrame:
    """The plan file was written."""

    type: Literal['plan_update'] = field(default='plan_update')
    session_id: str
    content: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class AskingAgent:
    """interaction.agent of spec/."""

    agent_id: str | None
    task_id: str
    label: str


@frozen(kw_only=True)
class InteractionFrame:
    """An interactive tool waits for a person."""

    type: Literal['interaction'] = field(default='interaction')
    session_id: str
    interaction_id: str
    interaction_type: InteractionType
    tool_name: str
    tool_input: dict[str, Any]
    agent: AskingAgent | None
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


class PlanSummaryStatus(StrEnum):
    """One of the values that spec/ lists."""
    OK = 'ok'
    UNAVAILABLE = 'unavailable'


@frozen(kw_only=True)
class PlanSummaryFrame:
    """A short summary of a plan that waits for approval, once."""

    type: Literal['plan_summary'] = field(default='plan_summary')
    session_id: str
    interaction_id: str
    bullets: list[str] = field(metadata={'max_items': 6})
    status: PlanSummaryStatus
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class InteractionResolvedFrame:
    """An interaction was answered or cancelled."""

    type: Literal['interaction_resolved'] = field(default='interaction_resolved')
    session_id: str
    interaction_id: str
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class SessionAwaitingInputFrame:
    """A session waits for input, or no longer does."""

    type: Literal['session_awaiting_input'] = field(default='session_awaiting_input')
    session_id: str
    awaiting: bool


@frozen(kw_only=True)
class SessionSwitchedFrame:
    """The socket is bound to this session now."""

    type: Literal['session_switched'] = field(default='session_switched')
    session_id: str


@frozen(kw_only=True)
class SessionStatusFrame:
    """The state of the session that the socket was just bound to."""

    type: Literal['session_status'] = field(default='session_status')
    session_id: str
    is_running: bool
    status: SessionStatus
    last_seq: int = field(metadata={'minimum': 0})
    buffered_events: list[dict[str, Any]] | Unset = field(default=UNSET)
    agents: AgentSnapshot


@frozen(kw_only=True)
class GapFrame:
    """Frames with these numbers can't be had any more."""

    type: Literal['gap'] = field(default='gap')
    session_id: str
    from_seq: int = field(metadata={'minimum': 0})
    to_seq: int = field(metadata={'minimum': 0})
    reset: bool | Unset = field(default=UNSET)


@frozen(kw_only=True)
class SessionRunningFrame:
    """A turn began or ended in some session."""

    type: Literal['session_running'] = field(default='session_running')
    session_id: str
    is_running: bool
    pending_wakeup_at: datetime | None
    pending_wakeup_created_by_actor_id: str | None
    pending_wakeup_caused_by_actor_id: str | None
    has_background_tasks: bool
    background_count: int = field(metadata={'minimum': 0})


class RemovalReason(StrEnum):
    """One of the values that spec/ lists."""
    STARTED = 'started'
    CANCELLED = 'cancelled'
    DUPLICATE = 'duplicate'
    REFUSED = 'refused'


@frozen(kw_only=True)
class RemovedEntry:
    """queue_update.removed of spec/."""

    queue_id: str | None
    client_msg_id: str | None
    reason: RemovalReason


@frozen(kw_only=True)
class QueueUpdateFrame:
    """The whole turn queue, and what just left it."""

    type: Literal['queue_update'] = field(default='queue_update')
    session_id: str
    queue: list[QueueEntry]
    removed: list[RemovedEntry] | Unset = field(default=UNSET)


@frozen(kw_only=True)
class SessionUpdatedFrame:
    """The session has a new title."""

    type: Literal['session_updated'] = field(default='session_updated')
    session_id: str
    title: str


@frozen(kw_only=True)
class SessionForkedFrame:
    """A fork was made."""

    type: Literal['session_forked'] = field(default='session_forked')
    source_id: str
    fork_id: str
    title: str


@frozen(kw_only=True)
class SessionResumedFrame:
    """The session was resumed."""

    type: Literal['session_resumed'] = field(default='session_resumed')
    session_id: str


@frozen(kw_only=True)
class SessionArchivedFrame:
    """The session was archived."""

    type: Literal['session_archived'] = field(default='session_archived')
    session_id: str


@frozen(kw_only=True)
class AgentUpdateFrame:
    """Agent records that changed; of each the view with the highest `rev` counts."""

    type: Literal['agent_update'] = field(default='agent_update')
    session_id: str
    agents: list[AgentView]
    summary: AgentSummary


@frozen(kw_only=True)
class AgentEventFrame:
    """One item of an agent's transcript, only to sockets that follow it."""

    type: Literal['agent_event'] = field(default='agent_event')
    session_id: str
    agent_id: str
    item: AgentEventItem


@frozen(kw_only=True)
class SessionAgentsFrame:
    """The number of live agents of some session changed between turns."""

    type: Literal['session_agents'] = field(default='session_agents')
    session_id: str
    background_count: int = field(metadata={'minimum': 0})
    has_background_tasks: bool


class BackgroundTaskStatus(StrEnum):
    """One of the values that spec/ lists."""
    RUNNING = 'running'
    DONE = 'done'
    FAILED = 'failed'


@frozen(kw_only=True)
class BackgroundTask:
    """background_tasks_update.tasks of spec/."""

    task_id: str
    label: str
    tool: str
    status: BackgroundTaskStatus


@frozen(kw_only=True)
class BackgroundTasksUpdateFrame:
    """Background tasks in short, for clients from before the agent roster; kept for one release."""

    type: Literal['background_tasks_update'] = field(default='background_tasks_update')
    session_id: str
    tasks: list[BackgroundTask]


@frozen(kw_only=True)
class WorkflowRunUpdateFrame:
    """A workflow run was made, or its status or spend changed."""

    type: Literal['workflow_run_update'] = field(default='workflow_run_update')
    session_id: str | None
    run: dict[str, Any]


@frozen(kw_only=True)
class ReviewLoopUpdateFrame:
    """A review loop changed."""

    type: Literal['review_loop_update'] = field(default='review_loop_update')
    session_id: str
    loop: dict[str, Any]
    message: dict[str, Any] | Unset = field(default=UNSET)


class TaskChange(StrEnum):
    """One of the values that spec/ lists."""
    CREATED = 'created'
    UPDATED = 'updated'
    MOVED = 'moved'
    DONE = 'done'


@frozen(kw_only=True)
class TaskUpdatedFrame:
    """A row of the task board changed."""

    type: Literal['task_updated'] = field(default='task_updated')
    session_id: Literal[None] = field(default=None)
    event: TaskChange
    task: dict[str, Any]


class NotificationType(StrEnum):
    """One of the values that spec/ lists."""
    NOTIFY = 'notify'
    QUESTION = 'question'
    APPROVAL = 'approval'


class NotificationPriority(StrEnum):
    """One of the values that spec/ lists."""
    LOW = 'low'
    NORMAL = 'normal'
    HIGH = 'high'
    URGENT = 'urgent'


@frozen(kw_only=True)
class NotificationFrame:
    """A notification was made."""

    type: Literal['notification'] = field(default='notification')
    notification_id: str
    notification_type: NotificationType
    session_id: str | None
    title: str
    body: str
    priority: NotificationPriority
    options: list[str] | None


@frozen(kw_only=True)
class NotificationAnsweredFrame:
    """A notification was answered."""

    type: Literal['notification_answered'] = field(default='notification_answered')
    notification_id: str
    session_id: str | None
    answer: str
    answered_by: str
    actor_id: str | None


@frozen(kw_only=True)
class NotificationExpiredFrame:
    """Nobody answered in time."""

    type: Literal['notification_expired'] = field(default='notification_expired')
    notification_id: str
    session_id: str | None
    notification_type: NotificationType
    title: str


@frozen(kw_only=True)
class AnswerInjectedFrame:
    """The answer to a notification came into the session as a message."""

    type: Literal['answer_injected'] = field(default='answer_injected')
    session_id: str
    notification_id: str
    title: str
    answer: str
    answered_by: str
    content: str
    actor_id: str | None
    seq: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class PongFrame:
    """The answer to a ping."""

    type: Literal['pong'] = field(default='pong')


ServerFrame: TypeAlias = (
    TokenFrame
    | ThinkingFrame
    | ToolUseFrame
    | ToolOutputFrame
    | ToolResultFrame
    | DoneFrame
    | StoppedFrame
    | ErrorFrame
    | AutoTurnFrame
    | WakeupFrame
    | UserMessageFrame
    | FileChangedFrame
    | ModelChangedFrame
    | BackendStatusFrame
    | WorkflowProgressFrame
    | PlanUpdateFrame
    | InteractionFrame
    | PlanSummaryFrame
    | InteractionResolvedFrame
    | SessionAwaitingInputFrame
    | SessionSwitchedFrame
    | SessionStatusFrame
    | GapFrame
    | SessionRunningFrame
    | QueueUpdateFrame
    | SessionUpdatedFrame
    | SessionForkedFrame
    | SessionResumedFrame
    | SessionArchivedFrame
    | AgentUpdateFrame
    | AgentEventFrame
    | SessionAgentsFrame
    | BackgroundTasksUpdateFrame
    | WorkflowRunUpdateFrame
    | ReviewLoopUpdateFrame
    | TaskUpdatedFrame
    | NotificationFrame
    | NotificationAnsweredFrame
    | NotificationExpiredFrame
    | AnswerInjectedFrame
    | PongFrame
)

SERVER_FRAMES: dict[str, type[Any]] = {
    'token': TokenFrame,
    'thinking': ThinkingFrame,
    'tool_use': ToolUseFrame,
    'tool_output': ToolOutputFrame,
    'tool_result': ToolResultFrame,
    'done': DoneFrame,
    'stopped': StoppedFrame,
    'error': ErrorFrame,
    'auto_turn': AutoTurnFrame,
    'wakeup': WakeupFrame,
    'user_message': UserMessageFrame,
    'file_changed': FileChangedFrame,
    'model_changed': ModelChangedFrame,
    'backend_status': BackendStatusFrame,
    'workflow_progress': WorkflowProgressFrame,
    'plan_update': PlanUpdateFrame,
    'interaction': InteractionFrame,
    'plan_summary': PlanSummaryFrame,
    'interaction_resolved': InteractionResolvedFrame,
    'session_awaiting_input': SessionAwaitingInputFrame,
    'session_switched': SessionSwitchedFrame,
    'session_status': SessionStatusFrame,
    'gap': GapFrame,
    'session_running': SessionRunningFrame,
    'queue_update': QueueUpdateFrame,
    'session_updated': SessionUpdatedFrame,
    'session_forked': SessionForkedFrame,
    'session_resumed': SessionResumedFrame,
    'session_archived': SessionArchivedFrame,
    'agent_update': AgentUpdateFrame,
    'agent_event': AgentEventFrame,
    'session_agents': SessionAgentsFrame,
    'background_tasks_update': BackgroundTasksUpdateFrame,
    'workflow_run_update': WorkflowRunUpdateFrame,
    'review_loop_update': ReviewLoopUpdateFrame,
    'task_updated': TaskUpdatedFrame,
    'notification': NotificationFrame,
    'notification_answered': NotificationAnsweredFrame,
    'notification_expired': NotificationExpiredFrame,
    'answer_injected': AnswerInjectedFrame,
    'pong': PongFrame,
}

SERVER_FRAME_PARTS: dict[str, int | Literal['later']] = {
    'token': 1,
    'thinking': 1,
    'tool_use': 1,
    'tool_output': 1,
    'tool_result': 1,
    'done': 1,
    'stopped': 1,
    'error': 1,
    'auto_turn': 4,
    'wakeup': 3,
    'user_message': 1,
    'file_changed': 1,
    'model_changed': 1,
    'backend_status': 'later',
    'workflow_progress': 4,
    'plan_update': 3,
    'interaction': 3,
    'plan_summary': 3,
    'interaction_resolved': 3,
    'session_awaiting_input': 3,
    'session_switched': 1,
    'session_status': 1,
    'gap': 1,
    'session_running': 1,
    'queue_update': 1,
    'session_updated': 1,
    'session_forked': 3,
    'session_resumed': 3,
    'session_archived': 3,
    'agent_update': 4,
    'agent_event': 4,
    'session_agents': 4,
    'background_tasks_update': 4,
    'workflow_run_update': 'later',
    'review_loop_update': 'later',
    'task_updated': 'later',
    'notification': 'later',
    'notification_answered': 'later',
    'notification_expired': 'later',
    'answer_injected': 'later',
    'pong': 1,
}

LoggedFrame: TypeAlias = (
    TokenFrame
    | ThinkingFrame
    | ToolUseFrame
    | ToolOutputFrame
    | ToolResultFrame
    | DoneFrame
    | StoppedFrame
    | ErrorFrame
    | AutoTurnFrame
    | WakeupFrame
    | UserMessageFrame
    | FileChangedFrame
    | ModelChangedFrame
    | BackendStatusFrame
    | WorkflowProgressFrame
    | PlanUpdateFrame
    | InteractionFrame
    | PlanSummaryFrame
    | InteractionResolvedFrame
    | AnswerInjectedFrame
)
