"""Agent records in the contract's shapes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nerve.adapters.protocol import Capabilities
from nerve.contract import codec
from nerve.contract.generated.entities import (
    AgentBrief,
    AgentCapabilities,
    AgentControls,
    AgentKind,
    AgentModelChange,
    AgentSnapshot,
    AgentStatus,
    AgentView,
    QueueEntry,
    WorkflowTree,
)
from nerve.contract.generated.frames_server import BackgroundTask, BackgroundTaskStatus
from nerve.domain.agent_roster import listed, summarised
from nerve.domain.agents import AgentRecord
from nerve.store.instants import from_text

RESUMABLE = frozenset({AgentStatus.COMPLETED, AgentStatus.STOPPED})
# Kinds as tabs from before the roster name the tools that started them.
TOOLS = {AgentKind.SHELL: "Bash", AgentKind.MONITOR: "Monitor", AgentKind.WORKFLOW: "Workflow"}


def is_resumable(record: AgentRecord, capabilities: Capabilities) -> bool:
    """Of one that the open runtime knows: whether it would run again if somebody wrote to it."""
    return capabilities.messaging and record.kind is AgentKind.AGENT and record.status in RESUMABLE


def agent_view(record: AgentRecord, capabilities: Capabilities, *, known: bool) -> AgentView:
    """``known``: the runtime that is open is the one that the agent belongs to."""
    talks = capabilities.messaging and record.kind is AgentKind.AGENT
    return AgentView(
        **{name: getattr(record, name) for name in _SAME},
        model_changed=_model_change(record.model_changed),
        resumable=known and is_resumable(record, capabilities),
        controls=AgentControls(
            stop=record.live and capabilities.stop_task,
            transcript=not record.is_shell and capabilities.transcript,
            output=record.is_shell and capabilities.output,
            message=record.live and talks,
        ),
        workflow=_tree(record),
    )


def _tree(record: AgentRecord) -> WorkflowTree | None:
    shown = record.kind is AgentKind.WORKFLOW and record.workflow is not None
    return codec.structure(WorkflowTree, record.workflow) if shown else None


_APART = {"model_changed", "resumable", "controls", "workflow"}
_SAME = tuple(name for name in AgentView.__annotations__ if name not in _APART)


def _model_change(change: Mapping[str, Any] | None) -> AgentModelChange | None:
    if change is None:
        return None
    return AgentModelChange(from_=change["from"], to=change["to"], at=from_text(change["at"]))


def agent_brief(record: AgentRecord) -> AgentBrief:
    return AgentBrief(
        id=record.id,
        label=record.label,
        kind=record.kind,
        status=record.status,
        started_at=record.started_at,
        tokens=record.tokens,
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
    session_id: str,
    records: Collection[AgentRecord],
    limit: int,
    capabilities: Capabilities,
    *,
    known: Collection[str],
    quiet_after_minutes: int,
    queue: Sequence[QueueEntry],
    now: datetime,
) -> AgentSnapshot:
    """``known`` are the ids that the open runtime knows."""
    return AgentSnapshot(
        session_id=session_id,
        agents=[agent_view(r, capabilities, known=r.id in known) for r in listed(records, limit)],
        summary=summarised(records),
        capabilities=agent_capabilities(capabilities, quiet_after_minutes),
        queue=list(queue),
        generated_at=now,
    )


def background_tasks(records: Iterable[AgentRecord]) -> list[BackgroundTask]:
    """For tabs from before the roster (decisions D37)."""
    return [
        BackgroundTask(
            task_id=record.task_id or record.id,
            label=record.label,
            tool=TOOLS.get(record.kind, "Agent"),
            status=_old_status(record),
        )
        for record in records
    ]


def _old_status(record: AgentRecord) -> BackgroundTaskStatus:
    if record.live:
        return BackgroundTaskStatus.RUNNING
    done = record.status is AgentStatus.COMPLETED
    return BackgroundTaskStatus.DONE if done else BackgroundTaskStatus.FAILED
