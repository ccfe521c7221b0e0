"""Taking a message or a request in: what is written before anything else happens."""

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Any

import apsw

from nerve.domain.attribution import Attribution
from nerve.errors import ErrorCode, NerveError
from nerve.store import queue, sessions, uploads, waiting, wakeups
from nerve.store.queue import QueuedMessage
from nerve.store.rows import run, scalar
from nerve.store.session_events import record as record_event
from nerve.store.wakeups import Wakeup


class Accepted(Enum):
    """What became of a message that was taken in."""

    DUPLICATE = "duplicate"
    WAITS = "waits"  # its session is quarantined
    MAY_RUN = "may_run"


def accept(
    db: apsw.Connection, entry: QueuedMessage, limit: int, cause_id: str | None, file_ids: Sequence[str] = ()
) -> Accepted:
    """Put a message into the queue, unless it is a duplicate.  A person's message unarchives (decisions D53).

    Raises what ``queue.add`` and ``uploads.attach`` raise.
    """
    if not queue.add(db, entry, limit):
        return Accepted.DUPLICATE
    uploads.attach(db, entry.session_id, entry.id, file_ids)
    sessions.unarchive(db, entry.session_id, Attribution(entry.actor_id, cause_id), entry.created_at)
    return Accepted.MAY_RUN if waiting.may_run(db, entry.session_id) else Accepted.WAITS


def put_off(db: apsw.Connection, wakeup: Wakeup, file_ids: Sequence[str] = ()) -> Wakeup | None:
    """Schedule a person's message; as any message of theirs it unarchives.  Returns what it replaced.

    Raises SESSION_NOT_FOUND and FILE_NOT_FOUND.
    """
    by = Attribution(wakeup.created_by_actor_id, wakeup.caused_by_actor_id)
    sessions.unarchive(db, wakeup.session_id, by, wakeup.created_at)
    replaced = wakeups.schedule(db, wakeup)
    uploads.attach(db, wakeup.session_id, wakeup.id, file_ids)
    return replaced


def stop_requested(
    db: apsw.Connection,
    session_id: str,
    details: dict[str, Any],
    actor_id: str | None,
    cause_id: str | None,
    now: datetime,
) -> bool:
    """Record who asked; True if this lifted a quarantine (decisions D8).  Raises SESSION_NOT_FOUND."""
    if scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    record_event(db, session_id, "stop_requested", details, actor_id=actor_id, caused_by_actor_id=cause_id, now=now)
    return lift_quarantine(db, session_id)


def lift_quarantine(db: apsw.Connection, session_id: str) -> bool:
    """True if the session was quarantined; its queue may go on."""
    lifted = "UPDATE sessions SET quarantined = 0, status = iif(status = 'error', 'idle', status)"
    return run(db, f"{lifted} WHERE id = ? AND quarantined = 1", (session_id,)) > 0


def quarantine(db: apsw.Connection, session_id: str, now: datetime) -> None:
    """Set a session aside: its queue is kept and visible, and nothing of it runs (decisions D8)."""
    run(db, "UPDATE sessions SET quarantined = 1, status = 'error' WHERE id = ?", (session_id,))
    record_event(db, session_id, "quarantined", {}, now=now)
