"""What happened to a session: the rows behind its event log of lifecycle changes (gaps.md section 5)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import apsw
import orjson

from nerve.contract.generated.entities import SessionEvent
from nerve.errors import ErrorCode, NerveError
from nerve.store.instants import from_text
from nerve.store.rows import insert, scalar


def record(
    db: apsw.Connection,
    session_id: str,
    event_type: str,
    details: Mapping[str, Any],
    *,
    now: datetime,
    actor_id: str | None = None,
    caused_by_actor_id: str | None = None,
) -> None:
    """Add an event; no actor and no cause for one that tells the state of the runtime."""
    insert(
        db,
        "session_events",
        session_id=session_id,
        event_type=event_type,
        details=orjson.dumps(details).decode(),
        actor_id=actor_id,
        caused_by_actor_id=caused_by_actor_id,
        created_at=now,
    )


def newest(db: apsw.Connection, session_id: str, limit: int) -> list[SessionEvent]:
    """At most ``limit`` events, newest first.  Raises SESSION_NOT_FOUND."""
    if scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    rows = db.execute(
        "SELECT id, session_id, event_type, details, actor_id, caused_by_actor_id, created_at FROM session_events"
        " WHERE session_id = ? ORDER BY id DESC LIMIT ?",
        (session_id, limit),
    )
    return [
        SessionEvent(
            id=row[0],
            session_id=row[1],
            event_type=row[2],
            details=orjson.loads(row[3]),
            actor_id=row[4],
            caused_by_actor_id=row[5],
            created_at=from_text(row[6]),
        )
        for row in rows
    ]
