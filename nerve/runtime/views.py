"""Runtime values in the contract's shapes."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from attrs import frozen

from nerve.adapters.protocol import Capabilities, Usage
from nerve.contract.generated.entities import (
    AgentCapabilities,
    AgentSnapshot,
    AgentSummary,
    QueueEntry,
)
from nerve.contract.generated.entities import (
    Usage as FrameUsage,
)
from nerve.contract.generated.frames_server import SessionRunningFrame, UserMessageFrame, WakeupFrame
from nerve.domain.attachments import Attachment, stored_blocks, stored_content
from nerve.domain.queue import preview
from nerve.domain.wakeups import PendingWakeup
from nerve.store.queue import QueuedMessage
from nerve.store.turns import TurnUsageRow
from nerve.store.wakeups import ScheduledEntry


@frozen
class LiveState:
    """What a session is doing now, and the scheduled turn that is pending."""

    is_running: bool = False
    awaiting_input: bool = False
    background_count: int = 0
    wakeup: PendingWakeup | None = None

    @property
    def has_background_tasks(self) -> bool:
        return self.background_count > 0


def queue_entry(entry: QueuedMessage) -> QueueEntry:
    return QueueEntry(
        queue_id=entry.id,
        client_msg_id=entry.client_msg_id,
        preview=entry.label if isinstance(entry, ScheduledEntry) else preview(entry.content),
        source=entry.source,
        internal=isinstance(entry, ScheduledEntry),
        actor_id=entry.actor_id,
        created_at=entry.created_at,
    )


def queue_entries(entries: Iterable[QueuedMessage]) -> list[QueueEntry]:
    return [queue_entry(entry) for entry in entries]


def opening(entry: QueuedMessage, attachments: Sequence[Attachment] = ()) -> UserMessageFrame | WakeupFrame:
    """The first frame of the turn that the entry begins."""
    if isinstance(entry, ScheduledEntry) and entry.hidden:
        return WakeupFrame(session_id=entry.session_id)
    return UserMessageFrame(
        session_id=entry.session_id,
        content=stored_content(entry.content, attachments),
        blocks=stored_blocks(entry.content, attachments),
        actor_id=entry.actor_id,
        client_msg_id=entry.client_msg_id,
    )


def session_running(session_id: str, live: LiveState) -> SessionRunningFrame:
    wakeup = live.wakeup
    return SessionRunningFrame(
        session_id=session_id,
        is_running=live.is_running,
        pending_wakeup_at=None if wakeup is None else wakeup.fire_at,
        pending_wakeup_created_by_actor_id=None if wakeup is None else wakeup.created_by_actor_id,
        pending_wakeup_caused_by_actor_id=None if wakeup is None else wakeup.caused_by_actor_id,
        has_background_tasks=live.has_background_tasks,
        background_count=live.background_count,
    )


def agent_capabilities(capabilities: Capabilities, quiet_after_minutes: int) -> AgentCapabilities:
    return AgentCapabilities(
        stop_task=capabilities.stop_task,
        transcript=capabilities.transcript,
        output=capabilities.output,
        interrupt_spares_background=capabilities.interrupt_spares_background,
        quiet_after_minutes=quiet_after_minutes,
    )


def agent_snapshot(
    session_id: str, capabilities: AgentCapabilities, queue: Sequence[QueuedMessage], now: datetime
) -> AgentSnapshot:
    """The roster of a session in which no agent was ever started."""
    nothing = dict.fromkeys(
        ("total", "live", "starting", "running", "stopping", "completed", "failed", "stopped", "interrupted", "lost"), 0
    )
    summary = AgentSummary(**nothing, attention=0, shells_live=0, tokens=0, cost_usd=0.0, oldest_live_started_at=None)
    return AgentSnapshot(
        session_id=session_id,
        agents=[],
        summary=summary,
        capabilities=capabilities,
        queue=queue_entries(queue),
        generated_at=now,
    )


def usage_row(usage: Usage) -> TurnUsageRow:
    return TurnUsageRow(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
        cost_usd=usage.cost_usd,
        max_context_tokens=usage.max_context_tokens,
        num_turns=usage.num_turns,
    )


def frame_usage(usage: Usage) -> FrameUsage:
    return FrameUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_input_tokens=usage.cache_read_input_tokens,
        cache_creation_input_tokens=usage.cache_creation_input_tokens,
    )
