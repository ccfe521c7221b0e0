"""What files held before a session first changed them (sessions-and-agents.md section 10)."""

from datetime import datetime

import apsw
from attrs import field, frozen

from nerve.errors import ErrorCode, NerveError
from nerve.store.rows import Shape, bound, run, scalar


@frozen
class SnapshotName:
    path: str
    created_at: datetime


@frozen
class Snapshot:
    """``content`` is None for a file that was missing, or could not be kept.  ``cwd`` is the session's."""

    existed: bool
    content: bytes | None = field(repr=False)
    cwd: str


NAME = Shape(SnapshotName)


def needed(db: apsw.Connection, session_id: str, path: str) -> str | None:
    """The session's working directory if the path has no snapshot yet.  Raises SESSION_NOT_FOUND."""
    cwd = _cwd(db, session_id)
    known = "SELECT 1 FROM session_file_snapshots WHERE session_id = ? AND path = ?"
    return cwd if scalar(db, known, (session_id, path)) is None else None


def _cwd(db: apsw.Connection, session_id: str) -> str:
    cwd = scalar(db, "SELECT cwd FROM sessions WHERE id = ?", (session_id,))
    if cwd is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return str(cwd)


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


def names(db: apsw.Connection, session_id: str) -> list[SnapshotName]:
    """All of a session, in the order of their making.  Raises SESSION_NOT_FOUND."""
    _cwd(db, session_id)
    return NAME.all(
        db, f"SELECT {NAME.columns} FROM session_file_snapshots WHERE session_id = ? ORDER BY rowid", (session_id,)
    )


def get(db: apsw.Connection, session_id: str, path: str) -> Snapshot:
    """Raises SESSION_NOT_FOUND and SNAPSHOT_NOT_FOUND."""
    cwd = _cwd(db, session_id)
    found = "SELECT existed, content FROM session_file_snapshots WHERE session_id = ? AND path = ?"
    for existed, content in db.execute(found, (session_id, path)):
        return Snapshot(bool(existed), content, cwd)
    raise NerveError(ErrorCode.SNAPSHOT_NOT_FOUND)
