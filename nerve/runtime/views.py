"""Runtime values in the contract's shapes."""

from collections.abc import Iterable, Sequence

from attrs import frozen

from nerve.adapters.protocol import Usage
from nerve.contract.generated.entities import (
    QueueEntry,
)
from nerve.contract.generated.entities import (
    Usage as FrameUsage,
)
from nerve.contract.generated.frames_server import AutoTurnFrame, SessionRunningFrame, UserMessageFrame, WakeupFrame
from nerve.domain.attachments import Attachment, stored_blocks, stored_content
from nerve.domain.queue import preview
from nerve.domain.wakeups import PendingWakeup
from nerve.runtime.auto_turns import AutoEntry
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


RESTING = LiveState()


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


def opening(
    entry: QueuedMessage, attachments: Sequence[Attachment] = ()
) -> UserMessageFrame | WakeupFrame | AutoTurnFrame:
    """The first frame of the turn that the entry begins."""
    if isinstance(entry, AutoEntry):
        return entry.frame()
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
