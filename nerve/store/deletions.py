"""Deleting a session, and the only trace that stays of it (gaps.md section 5)."""

from datetime import datetime, timedelta

import apsw
from attrs import frozen

from nerve.domain.attribution import Attribution
from nerve.errors import ErrorCode, NerveError
from nerve.store import forks, queue, search, uploads
from nerve.store.instants import to_text
from nerve.store.queue import QueuedMessage
from nerve.store.rows import insert, one, run
from nerve.store.uploads import StoredFile

KEPT = timedelta(days=90)


@frozen
class Deletion:
    """``native_id`` is the conversation that its runtime may now forget; None if it had none, or a fork still needs it.

    ``waiting`` are the messages that nobody will answer, ``files`` those that nothing is known of any more.
    """

    backend: str
    native_id: str | None
    waiting: list[QueuedMessage]
    files: list[StoredFile]


def delete(db: apsw.Connection, session_id: str, by: Attribution, now: datetime) -> Deletion:
    """Remove a session with all that belongs to it and record who did it; records older than 90 days go on the way.

    Raises SESSION_NOT_FOUND.
    """
    columns = "title, source, created_by_actor_id, backend, sdk_session_id"
    found = one(db, f"SELECT {columns} FROM sessions WHERE id = ?", (session_id,))
    if found is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    title, source, created_by, backend, native_id = found
    waiting = queue.waiting(db, session_id)
    files = uploads.leave(db, session_id)
    run(db, "DELETE FROM sessions WHERE id = ?", (session_id,))
    search.forget(db)  # a short session is out of the index with this, a long one bit by bit
    insert(
        db,
        "session_deletions",
        session_id=session_id,
        title=title,
        source=source,
        created_by_actor_id=created_by,
        actor_id=by.actor_id,
        caused_by_actor_id=by.cause_id,
        deleted_at=now,
    )
    expire(db, now)
    return Deletion(backend, forks.unneeded(db, native_id), waiting, files)


def expire(db: apsw.Connection, now: datetime) -> None:
    """Drop the records of deletions that are older than 90 days."""
    run(db, "DELETE FROM session_deletions WHERE deleted_at < ?", (to_text(now - KEPT),))
