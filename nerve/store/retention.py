"""What is kept only for a time once ``retention.enabled`` is on (sessions-and-agents.md section 10).

What is old is looked for apart from its removal, because the search reads whole tables and must not hold up writers.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw
from attrs import frozen

from nerve.store.instants import to_text

AT_ONCE = 200  # rows that leave in one transaction


@frozen
class Shelf:
    """Rows of one table that leave when they are old: its key columns, and the one that says when they were added."""

    table: str
    key: tuple[str, ...]
    added_at: str = "created_at"


SHELVES = (
    Shelf("session_events", ("id",)),
    Shelf("mcp_tool_usage", ("id",), "at"),
    Shelf("session_usage", ("id",)),
    Shelf("session_file_snapshots", ("session_id", "path")),
)


def old(db: apsw.Connection, shelf: Shelf, before: datetime) -> list[tuple[Any, ...]]:
    """Keys of up to ``AT_ONCE`` rows from before an instant."""
    keys = ", ".join(shelf.key)
    found = db.execute(
        f"SELECT {keys} FROM {shelf.table} WHERE {shelf.added_at} < ? ORDER BY {keys} LIMIT ?",
        (to_text(before), AT_ONCE),
    )
    return list(found)


def remove(db: apsw.Connection, shelf: Shelf, keys: Sequence[tuple[Any, ...]]) -> None:
    matching = " AND ".join(f"{column} = ?" for column in shelf.key)
    db.executemany(f"DELETE FROM {shelf.table} WHERE {matching}", keys)


_FULL = """m.id > ?3 AND m.created_at < ?1 AND (m.blocks IS NOT NULL OR m.thinking IS NOT NULL)
    AND s.last_memorized_at >= m.created_at AND s.starred = 0 AND s.status <> 'active'"""


def full(db: apsw.Connection, before: datetime, after_id: int) -> list[tuple[int]]:
    """Ids of up to ``AT_ONCE`` messages above ``after_id``, from before an instant, that may be reduced to their text.

    They have been memorised, and their session is neither starred nor has it a runtime.
    """
    found = db.execute(
        f"SELECT m.id FROM messages m JOIN sessions s ON s.id = m.session_id WHERE {_FULL} ORDER BY m.id LIMIT ?2",
        (to_text(before), AT_ONCE, after_id),
    )
    return list(found)


def reduce(db: apsw.Connection, ids: Sequence[tuple[int]]) -> None:
    """Drop blocks and thinking."""
    db.executemany("UPDATE messages SET blocks = NULL, thinking = NULL WHERE id = ?", ids)
