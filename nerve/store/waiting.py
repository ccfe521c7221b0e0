"""What waits for a session's next turn, in order: the messages of its queue, then the scheduled turn that is due."""

import apsw

from nerve.domain.queue import may_cancel
from nerve.errors import ErrorCode, NerveError
from nerve.store import queue, wakeups
from nerve.store.queue import QueuedMessage
from nerve.store.rows import one, scalar


def shown(db: apsw.Connection, session_id: str) -> list[QueuedMessage]:
    """As the queue is shown; what is scheduled is a ``ScheduledEntry``."""
    scheduled = wakeups.due_entry(db, session_id)
    waiting = queue.waiting(db, session_id)
    return waiting if scheduled is None else [*waiting, scheduled]


def listed(db: apsw.Connection, session_id: str) -> list[QueuedMessage]:
    """As ``shown``; raises SESSION_NOT_FOUND."""
    if scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return shown(db, session_id)


def take_next(db: apsw.Connection, session_id: str) -> QueuedMessage | None:
    """Remove the first and return it; part of the transaction that begins its turn."""
    return queue.take_first(db, session_id) or wakeups.claim(db, session_id)


def may_run(db: apsw.Connection, session_id: str) -> bool:
    """Whether something waits in a session that is not quarantined."""
    row = one(
        db,
        "SELECT 1 FROM sessions s WHERE s.id = ? AND s.quarantined = 0"
        " AND (EXISTS (SELECT 1 FROM queue_entries q WHERE q.session_id = s.id) OR EXISTS"
        " (SELECT 1 FROM session_wakeups w WHERE w.session_id = s.id AND w.status = 'pending' AND w.due = 1))",
        (session_id,),
    )
    return row is not None


def cancel(db: apsw.Connection, session_id: str, queue_id: str, caller_actor: str | None) -> QueuedMessage:
    """Remove one's own entry.  Raises ALREADY_STARTED, NOT_OWNER, QUEUE_ENTRY_NOT_FOUND, SESSION_NOT_FOUND."""
    scheduled = wakeups.due_entry(db, session_id)
    if scheduled is None or scheduled.id != queue_id:
        return queue.cancel(db, session_id, queue_id, caller_actor)
    if not may_cancel(scheduled.actor_id, scheduled.source, caller_actor):
        raise NerveError(ErrorCode.NOT_OWNER)
    wakeups.withdraw(db, scheduled)
    return scheduled


def sessions_waiting(db: apsw.Connection) -> list[str]:
    """Sessions in which something may run: at start these go on.  A quarantined one keeps its queue and waits."""
    due = "SELECT session_id FROM session_wakeups WHERE status = 'pending' AND due = 1"
    rows = db.execute(
        f"SELECT s.id FROM sessions s WHERE s.quarantined = 0"
        f" AND s.id IN (SELECT session_id FROM queue_entries UNION {due})"
    )
    return [row[0] for row in rows]
