"""What files held before a session first changed them (sessions-and-agents.md section 10)."""

from datetime import datetime

import apsw

from nerve.store.rows import bound, run, scalar


def known(db: apsw.Connection, session_id: str, path: str) -> bool:
    return (
        scalar(db, "SELECT 1 FROM session_file_snapshots WHERE session_id = ? AND path = ?", (session_id, path))
        is not None
    )


def keep(
    db: apsw.Connection, session_id: str, path: str, *, existed: bool, content: bytes | None, now: datetime
) -> None:
    """The first one counts.  ``content`` is None for a file that was missing, or could not be kept."""
    run(
        db,
        "INSERT INTO session_file_snapshots (session_id, path, existed, content, created_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (session_id, path, bound(existed), content, bound(now)),
    )
