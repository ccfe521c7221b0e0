"""The durable turn queue and the memory of client message ids (gaps.md section 6)."""

from datetime import datetime

import apsw
from attrs import frozen

from nerve.domain.queue import DUPLICATE_MEMORY, may_cancel
from nerve.errors import ErrorCode, NerveError
from nerve.store.instants import to_text
from nerve.store.rows import Shape, insert, run, scalar


@frozen
class QueuedMessage:
    """One waiting message.  ``source`` is the turn's source (``web``, ``api``, a channel)."""

    id: str
    session_id: str
    content: str
    source: str
    actor_id: str | None
    client_msg_id: str | None
    model: str | None
    created_at: datetime


ENTRY = Shape(QueuedMessage)


def add(db: apsw.Connection, entry: QueuedMessage, limit: int) -> bool:
    """Store an entry at the end; False (and nothing stored) if its ``client_msg_id`` was accepted lately.

    Raises SESSION_NOT_FOUND, and QUEUE_FULL when ``limit`` entries wait.
    """
    if scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (entry.session_id,)) is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    if entry.client_msg_id is not None and not _remember(db, entry.session_id, entry.client_msg_id, entry.created_at):
        return False
    if scalar(db, "SELECT count(*) FROM queue_entries WHERE session_id = ?", (entry.session_id,)) >= limit:
        raise NerveError(ErrorCode.QUEUE_FULL)
    insert(
        db,
        "queue_entries",
        id=entry.id,
        session_id=entry.session_id,
        content=entry.content,
        source=entry.source,
        actor_id=entry.actor_id,
        client_msg_id=entry.client_msg_id,
        model=entry.model,
        created_at=entry.created_at,
    )
    return True


def _remember(db: apsw.Connection, session_id: str, client_msg_id: str, now: datetime) -> bool:
    """False if the id was seen within the last ten minutes, or its message still waits or runs.

    Older ids are forgotten on the way.
    """
    run(db, "DELETE FROM seen_client_messages WHERE seen_at <= ?", (to_text(now - DUPLICATE_MEMORY),))
    if _unsettled(db, session_id, client_msg_id):
        return False
    added = run(
        db,
        "INSERT INTO seen_client_messages (session_id, client_msg_id, seen_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (session_id, client_msg_id, to_text(now)),
    )
    return added == 1


def _unsettled(db: apsw.Connection, session_id: str, client_msg_id: str) -> bool:
    found = scalar(
        db,
        "SELECT EXISTS (SELECT 1 FROM queue_entries WHERE session_id = ?1 AND client_msg_id = ?2)"
        " OR EXISTS (SELECT 1 FROM turns WHERE session_id = ?1 AND client_msg_id = ?2 AND state = 'running')",
        (session_id, client_msg_id),
    )
    return bool(found)


def _forget(db: apsw.Connection, entry: QueuedMessage) -> None:
    if entry.client_msg_id is not None:
        run(
            db,
            "DELETE FROM seen_client_messages WHERE session_id = ? AND client_msg_id = ?",
            (entry.session_id, entry.client_msg_id),
        )


def waiting(db: apsw.Connection, session_id: str) -> list[QueuedMessage]:
    """All entries of a session, in order; there are at most ``sessions.queue_max``."""
    return ENTRY.all(db, f"SELECT {ENTRY.columns} FROM queue_entries WHERE session_id = ? ORDER BY n", (session_id,))


def take_first(db: apsw.Connection, session_id: str) -> QueuedMessage | None:
    """Remove the head and return it; part of the transaction that begins its turn."""
    head = ENTRY.one(
        db, f"SELECT {ENTRY.columns} FROM queue_entries WHERE session_id = ? ORDER BY n LIMIT 1", (session_id,)
    )
    if head is not None:
        run(db, "DELETE FROM queue_entries WHERE id = ?", (head.id,))
    return head


def cancel(db: apsw.Connection, session_id: str, queue_id: str, caller_actor: str | None) -> QueuedMessage:
    """Remove one's own entry.  Raises ALREADY_STARTED, NOT_OWNER, QUEUE_ENTRY_NOT_FOUND, SESSION_NOT_FOUND."""
    entry = ENTRY.one(
        db, f"SELECT {ENTRY.columns} FROM queue_entries WHERE id = ? AND session_id = ?", (queue_id, session_id)
    )
    if entry is None:
        raise _missing(db, session_id, queue_id)
    if not may_cancel(entry.actor_id, entry.source, caller_actor):
        raise NerveError(ErrorCode.NOT_OWNER)
    run(db, "DELETE FROM queue_entries WHERE id = ?", (queue_id,))
    _forget(db, entry)
    return entry


def _missing(db: apsw.Connection, session_id: str, queue_id: str) -> NerveError:
    if scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
        return NerveError(ErrorCode.SESSION_NOT_FOUND)
    running = "SELECT 1 FROM turns WHERE session_id = ? AND state = 'running' AND queue_id = ?"
    if scalar(db, running, (session_id, queue_id)) is not None:
        return NerveError(ErrorCode.ALREADY_STARTED)
    return NerveError(ErrorCode.QUEUE_ENTRY_NOT_FOUND)


def refuse_all(db: apsw.Connection, session_id: str) -> list[QueuedMessage]:
    """Empty the queue of a session at shutdown; what was refused never runs later, and its ids are forgotten."""
    entries = waiting(db, session_id)
    run(db, "DELETE FROM queue_entries WHERE session_id = ?", (session_id,))
    for entry in entries:
        _forget(db, entry)
    return entries


def refuse_everything(db: apsw.Connection) -> list[QueuedMessage]:
    """``refuse_all`` of every session in which something waits, quarantined ones included; in order."""
    waiting_in = [
        row[0] for row in db.execute("SELECT session_id FROM queue_entries GROUP BY session_id ORDER BY min(n)")
    ]
    return [entry for session_id in waiting_in for entry in refuse_all(db, session_id)]
