"""An agent's life as plain values: its record, what may follow what, why it ended (contract chapter Agents, gaps.md 6).

A record is never changed: each function gives the next one, with a greater ``rev``.
"""

from datetime import datetime, timedelta
from typing import Any

from attrs import evolve, frozen

from nerve.contract.generated.entities import (
    AgentAttention,
    AgentEndReason,
    AgentKind,
    AgentLifecycleEvent,
    AgentStatus,
)

LIVE = frozenset({AgentStatus.STARTING, AgentStatus.RUNNING, AgentStatus.STOPPING})
SHELLS = frozenset({AgentKind.SHELL, AgentKind.MONITOR})
# Ends that no person asked for and that somebody should look at, until the session's next user message.
NOTEWORTHY = {
    AgentStatus.FAILED: AgentAttention.FAILED,
    AgentStatus.INTERRUPTED: AgentAttention.INTERRUPTED,
    AgentStatus.LOST: AgentAttention.LOST,
}
# Causes of a stop that say that the house ended it, not a person: it then was interrupted, not stopped.
INTERRUPTING = frozenset(
    {
        AgentEndReason.PROCESS_ENDED,
        AgentEndReason.GATEWAY_RESTART,
        AgentEndReason.FORCE_STOP,
        AgentEndReason.MODEL_SWITCH,
        AgentEndReason.ARCHIVED,
    }
)
UNCONFIRMED_SECONDS = 10.0
LABEL_COMMAND = 60
ACTIVITY, SUMMARY, PREVIEW = 120, 500, 500
KEPT_ENDED = 500


@frozen(kw_only=True)
class AgentRecord:
    """AgentView of the contract as it is stored, less what follows from it; ``stop_cause`` is why it is to end."""

    id: str
    session_id: str
    backend: str
    kind: AgentKind
    ref: str
    task_id: str | None = None
    task_type: str | None = None
    spawn_tool_use_id: str | None = None
    parent_agent_id: str | None = None
    depth: int = 1
    name: str | None = None
    description: str | None = None
    agent_type: str | None = None
    command: str | None = None
    background: bool = False
    ambient: bool = False
    status: AgentStatus = AgentStatus.STARTING
    end_reason: AgentEndReason | None = None
    error: str | None = None
    attention: AgentAttention | None = None
    activity: str | None = None
    summary: str | None = None
    result_preview: str | None = None
    requested_model: str | None = None
    model: str | None = None
    model_changed: dict[str, Any] | None = None
    tokens: int = 0
    tool_uses: int = 0
    cost_usd: float = 0.0
    runs: int = 1
    created_at: datetime
    started_at: datetime | None = None
    run_started_at: datetime | None = None
    last_activity_at: datetime | None = None
    ended_at: datetime | None = None
    stop_requested_at: datetime | None = None
    stopped_by_actor_id: str | None = None
    stop_cause: AgentEndReason | None = None
    output_path: str | None = None
    workflow: dict[str, Any] | None = None
    rev: int = 0

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def counts(self) -> bool:
        """Live and no housekeeping."""
        return self.live and not self.ambient

    @property
    def is_shell(self) -> bool:
        return self.kind in SHELLS

    @property
    def label(self) -> str:
        named = self.name or self.description or self.agent_type
        return named or (self.command or "")[:LABEL_COMMAND] or self.task_id or self.id


@frozen
class Lifecycle:
    """What a change in an agent's life adds to its transcript."""

    event: AgentLifecycleEvent
    run: int
    reason: str | None = None
    actor_id: str | None = None


def next_rev(previous: int, now: datetime) -> int:
    """Microseconds since 1970, or one more than before: it grows also when the clock goes back or nothing passes."""
    return max(previous + 1, int(now.timestamp() * 1_000_000))


def changed(record: AgentRecord, now: datetime, **values: Any) -> AgentRecord:
    return evolve(record, rev=next_rev(record.rev, now), **values)


def started(record: AgentRecord, now: datetime, **values: Any) -> AgentRecord:
    """It runs.  One that is to stop stays so."""
    status = AgentStatus.RUNNING if record.status is AgentStatus.STARTING else record.status
    first = record.started_at or now
    return changed(record, now, status=status, started_at=first, run_started_at=now, last_activity_at=now, **values)


def resumed(record: AgentRecord, now: datetime) -> AgentRecord:
    """One that had ended runs again, as the next of its runs."""
    return changed(
        record,
        now,
        status=AgentStatus.RUNNING,
        runs=record.runs + 1,
        run_started_at=now,
        last_activity_at=now,
        ended_at=None,
        end_reason=None,
        error=None,
        attention=None,
        stop_requested_at=None,
        stopped_by_actor_id=None,
        stop_cause=None,
    )


def stop_requested(record: AgentRecord, cause: AgentEndReason, actor_id: str | None, now: datetime) -> AgentRecord:
    """It is to end.  The first request counts, unless the agent goes on regardless of it: then who asked last."""
    if record.status is AgentStatus.STOPPING and record.attention is not AgentAttention.STOP_UNCONFIRMED:
        return record
    return changed(
        record,
        now,
        status=AgentStatus.STOPPING,
        stop_requested_at=now,
        stopped_by_actor_id=actor_id,
        stop_cause=cause,
        attention=None,
    )


def overdue(record: AgentRecord, now: datetime) -> bool:
    """Whether a stop should have been confirmed by now, and nobody has been told yet that it wasn't."""
    return (
        record.status is AgentStatus.STOPPING
        and record.attention is not AgentAttention.STOP_UNCONFIRMED
        and record.stop_requested_at is not None
        and now - record.stop_requested_at >= timedelta(seconds=UNCONFIRMED_SECONDS)
    )


def ended(
    record: AgentRecord,
    status: AgentStatus,
    reason: AgentEndReason,
    now: datetime,
    *,
    result: str | None = None,
    error: str | None = None,
) -> AgentRecord:
    """The one end of a run."""
    return changed(
        record,
        now,
        status=status,
        end_reason=reason,
        error=error,
        attention=None if record.ambient else NOTEWORTHY.get(status),
        result_preview=None if result is None else result[:PREVIEW],
        ended_at=now,
        last_activity_at=now,
        workflow=_final(record.workflow, status),
    )


def _final(workflow: dict[str, Any] | None, status: AgentStatus) -> dict[str, Any] | None:
    """A progress tree that says no more that it runs."""
    if workflow is None or workflow["status"] != "running":
        return workflow
    known = {AgentStatus.COMPLETED: "completed", AgentStatus.FAILED: "failed"}
    return {**workflow, "status": known.get(status, "stopped")}


def stopped(record: AgentRecord) -> tuple[AgentStatus, AgentEndReason]:
    """What one became that the runtime says was stopped."""
    cause = record.stop_cause or AgentEndReason.UNKNOWN_STOP
    return AgentStatus.INTERRUPTED if cause in INTERRUPTING else AgentStatus.STOPPED, cause


def interrupted(record: AgentRecord, reason: AgentEndReason, now: datetime) -> AgentRecord:
    """The runtime that it lived in is gone."""
    cause = record.stop_cause if record.stop_cause in INTERRUPTING else None
    return ended(record, AgentStatus.INTERRUPTED, cause or reason, now)


def acknowledged(record: AgentRecord, now: datetime) -> AgentRecord:
    """After a user's message nothing that has ended wants attention any more."""
    return record if record.live or record.attention is None else changed(record, now, attention=None)


def is_news(record: AgentRecord) -> bool:
    """Whether the orchestrator has to learn that it ended: background work that it started itself."""
    return record.background and not record.ambient and record.depth == 1


def starts_turn(record: AgentRecord) -> bool:
    """Whether this end makes the orchestrator go on by itself (decisions D33): nobody else brought it about."""
    by_itself = record.end_reason in (AgentEndReason.COMPLETED, AgentEndReason.ERROR, AgentEndReason.VANISHED)
    return is_news(record) and by_itself


def lifecycle(record: AgentRecord) -> Lifecycle:
    """The transcript's word for the state that a record has just come to."""
    match record.status:
        case AgentStatus.STOPPING:
            cause = record.stop_cause.value if record.stop_cause is not None else None
            return Lifecycle(AgentLifecycleEvent.STOP_REQUESTED, record.runs, cause, record.stopped_by_actor_id)
        case AgentStatus.STARTING | AgentStatus.RUNNING:
            event = AgentLifecycleEvent.STARTED if record.runs == 1 else AgentLifecycleEvent.RESUMED
            return Lifecycle(event, record.runs)
        case _:
            reason = record.end_reason.value if record.end_reason is not None else None
            actor = record.stopped_by_actor_id if record.status is AgentStatus.STOPPED else None
            return Lifecycle(AgentLifecycleEvent(record.status.value), record.runs, reason, actor)
