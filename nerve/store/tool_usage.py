"""Calls of built-in tools, counted."""

from datetime import datetime

import apsw

from nerve.store.rows import insert, scalar

LONGEST_ERROR = 500
LONGEST_NAME = 100


def record(
    db: apsw.Connection,
    server: str,
    tool: str,
    session_id: str,
    *,
    duration_ms: int,
    error: str | None,
    now: datetime,
) -> None:
    """``error`` None is a success.  A session that is gone by now is left out."""
    known = scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is not None
    insert(
        db,
        "mcp_tool_usage",
        server=server,
        tool=tool[:LONGEST_NAME],
        session_id=session_id if known else None,
        duration_ms=duration_ms,
        success=error is None,
        error=None if error is None else error[:LONGEST_ERROR],
        at=now,
    )
