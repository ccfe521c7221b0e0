"""Rows of agents' transcripts: each item as the JSON text that every reader gets."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import apsw
import orjson

from nerve.contract import codec
from nerve.contract.generated.entities import (
    AgentEventItem,
    AgentLifecycle,
    AgentLifecycleEvent,
    AgentText,
    AgentTextKind,
    AgentToolCall,
    AgentToolResult,
)
from nerve.domain.agents import Lifecycle
from nerve.store.instants import from_text
from nerve.store.rows import run, scalar


def append(db: apsw.Connection, items: Iterable[tuple[str, int, str]]) -> None:
    """Items ``(agent_id, seq, json)``.  Of agents whose rows are gone nothing is kept."""
    db.executemany(
        "INSERT OR IGNORE INTO session_agent_items (agent_id, seq, item)"
        " SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM session_agents WHERE id = ?1)",
        list(items),
    )


def drop(db: apsw.Connection, agent_id: str, limit: int) -> int:
    """Remove the first items of the agent; how many those were."""
    return run(
        db,
        "DELETE FROM session_agent_items WHERE agent_id = ?1 AND seq IN"
        " (SELECT seq FROM session_agent_items WHERE agent_id = ?1 ORDER BY seq LIMIT ?2)",
        (agent_id, limit),
    )


def last_seq(db: apsw.Connection, agent_id: str) -> int:
    found = scalar(db, "SELECT max(seq) FROM session_agent_items WHERE agent_id = ?", (agent_id,))
    return 0 if found is None else int(found)


def between(db: apsw.Connection, agent_id: str, first: int, last: int) -> dict[int, str]:
    """The items with these numbers, both included, by number."""
    rows = db.execute(
        "SELECT seq, item FROM session_agent_items WHERE agent_id = ? AND seq BETWEEN ? AND ? ORDER BY seq",
        (agent_id, first, last),
    )
    return {row[0]: row[1] for row in rows}


def to_json(item: AgentEventItem) -> str:
    return codec.encode(item).decode()


def from_json(text: str) -> AgentEventItem:
    """An item as it was stored; what is stored fits."""
    values: dict[str, Any] = orjson.loads(text)
    values["at"] = from_text(values["at"])
    match values["kind"]:
        case "tool_call":
            return AgentToolCall(**values)
        case "tool_result":
            return AgentToolResult(**values)
        case "lifecycle":
            return AgentLifecycle(**{**values, "event": AgentLifecycleEvent(values["event"])})
        case kind:
            return AgentText(**{**values, "kind": AgentTextKind(kind)})


def lifecycle_item(life: Lifecycle, seq: int, at: datetime) -> AgentLifecycle:
    return AgentLifecycle(seq=seq, at=at, event=life.event, run=life.run, reason=life.reason, actor_id=life.actor_id)
