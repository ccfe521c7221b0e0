"""An agent's kind by its task type, and its last activity in one line (gaps.md 6.5, 6.10)."""

from typing import Any

from nerve.contract.generated.entities import AgentKind
from nerve.domain.agents import ACTIVITY

# In this order; the first whose word is part of the task type counts.
KINDS = (
    ("workflow", AgentKind.WORKFLOW),
    ("remote", AgentKind.REMOTE_AGENT),
    ("teammate", AgentKind.TEAMMATE),
    ("mcp", AgentKind.MCP_TASK),
    ("agent", AgentKind.AGENT),
    ("bash", AgentKind.SHELL),
    ("shell", AgentKind.SHELL),
    ("monitor", AgentKind.MONITOR),
)


def kind_of(task_type: str) -> AgentKind:
    return next((kind for word, kind in KINDS if word in task_type), AgentKind.OTHER)


def activity(tool: str, tool_input: dict[str, Any]) -> str:
    """A tool call in at most 120 characters: ``Bash: pytest -q``."""
    first = next((str(value) for value in tool_input.values() if isinstance(value, str | int | float)), "")
    line = " ".join(f"{tool}: {first}".split()) if first else tool
    return line[:ACTIVITY]
