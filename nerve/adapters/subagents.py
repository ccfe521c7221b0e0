"""What a runtime tells of its sub-agents and background tasks, whatever they are: agents, shells, monitors, workflows.

``ref`` is the runtime's own name of one, unique within its client and the same for its whole life.  An ``AgentSpawned``
comes first, before the tool call that spawned it is told; one ``AgentEnded`` comes last, unless the agent vanishes or
the runtime dies.  What follows an ``AgentEnded`` of the same ``ref``, other than ``AgentResumed``, counts for nothing.
"""

from enum import StrEnum
from pathlib import Path
from typing import Any

from attrs import frozen

from nerve.contract.generated.entities import AgentKind

__all__ = [
    "AgentActed",
    "AgentEnded",
    "AgentModelObserved",
    "AgentOutcome",
    "AgentProgressed",
    "AgentResumed",
    "AgentSpawned",
    "AgentStarted",
    "AgentText",
    "AgentToolFinished",
    "AgentToolStarted",
    "Deed",
    "SubagentEvent",
]


@frozen(kw_only=True)
class AgentSpawned:
    """A call asked for it; it doesn't run yet.  ``parent_ref`` None: the orchestrator spawned it.

    ``ambient`` is the runtime's own housekeeping, which nobody asked for.  ``agent_id`` is what a runtime had to
    know of the record beforehand, because processes carry it; None: the house names it.
    """

    ref: str
    kind: AgentKind
    background: bool
    spawn_tool_use_id: str | None = None
    parent_ref: str | None = None
    name: str | None = None
    description: str | None = None
    agent_type: str | None = None
    command: str | None = None
    prompt: str | None = None
    requested_model: str | None = None
    ambient: bool = False
    agent_id: str | None = None


@frozen(kw_only=True)
class AgentStarted:
    """It runs.  ``output_path`` is the file that a shell or monitor writes to."""

    ref: str
    task_id: str | None = None
    task_type: str | None = None
    model: str | None = None
    output_path: Path | None = None


@frozen(kw_only=True)
class AgentProgressed:
    """What is None stays as it was; figures are totals.  ``workflow`` is a WorkflowTree as the contract writes it."""

    ref: str
    activity: str | None = None
    summary: str | None = None
    tokens: int | None = None
    tool_uses: int | None = None
    cost_usd: float | None = None
    workflow: dict[str, Any] | None = None


@frozen
class AgentText:
    """A whole block."""

    text: str
    thinking: bool = False


@frozen
class AgentToolStarted:
    tool_use_id: str
    tool: str
    input: dict[str, Any]


@frozen
class AgentToolFinished:
    tool_use_id: str
    result: str
    is_error: bool = False


Deed = AgentText | AgentToolStarted | AgentToolFinished


@frozen
class AgentActed:
    """One item of its transcript."""

    ref: str
    deed: Deed


@frozen
class AgentModelObserved:
    """The model that serves it from here on."""

    ref: str
    model: str


class AgentOutcome(StrEnum):
    """How the runtime says that one ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    SPAWN_FAILED = "spawn_failed"  # the call that should have started it returned an error
    STOPPED = "stopped"  # killed, or a stop confirmed
    STOPPED_BY_ORCHESTRATOR = "stopped_by_orchestrator"  # by the orchestrator's own stop tool


@frozen(kw_only=True)
class AgentEnded:
    """``result`` is its report, ``error`` why it failed, for people."""

    ref: str
    outcome: AgentOutcome
    result: str | None = None
    error: str | None = None


@frozen
class AgentResumed:
    """One that had ended runs again."""

    ref: str


SubagentEvent = (
    AgentSpawned | AgentStarted | AgentProgressed | AgentActed | AgentModelObserved | AgentEnded | AgentResumed
)
