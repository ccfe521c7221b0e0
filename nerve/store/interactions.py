"""Interactions that wait for a person's answer; a row goes once its end is on record."""

from collections.abc import Iterable
from datetime import datetime

import apsw

from nerve.contract.generated.entities import SessionSource
from nerve.errors import ErrorCode, NerveError
from nerve.store.rows import insert, run, scalar


def source(db: apsw.Connection, session_id: str) -> SessionSource:
    """Where the session comes from, which says whether a person may be asked.  Raises SESSION_NOT_FOUND."""
    found = scalar(db, "SELECT source FROM sessions WHERE id = ?", (session_id,))
    if found is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return SessionSource(found)


def begin(
    db: apsw.Connection, session_id: str, interaction_id: str, seq: int, turn_id: str | None, now: datetime
) -> None:
    """``seq`` is the number of its frame in the log."""
    insert(
        db, "pending_interactions", id=interaction_id, session_id=session_id, seq=seq, turn_id=turn_id, created_at=now
    )


def end(db: apsw.Connection, interaction_ids: Iterable[str]) -> None:
    for interaction_id in interaction_ids:
        run(db, "DELETE FROM pending_interactions WHERE id = ?", (interaction_id,))


def of_session(db: apsw.Connection, session_id: str) -> list[str]:
    """Those of the session, in the order in which they were asked."""
    rows = db.execute("SELECT id FROM pending_interactions WHERE session_id = ? ORDER BY seq", (session_id,))
    return [row[0] for row in rows]


def sessions_with_any(db: apsw.Connection) -> list[str]:
    return [row[0] for row in db.execute("SELECT DISTINCT session_id FROM pending_interactions ORDER BY session_id")]
