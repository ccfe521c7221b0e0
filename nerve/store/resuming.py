"""Resuming a session: it goes on with its conversation at the next message (sessions-and-agents.md section 2)."""

from datetime import datetime

import apsw
from attrs import frozen

from nerve.contract.generated.entities import Session, SessionStatus
from nerve.domain.attribution import Attribution
from nerve.domain.sessions import SessionEventType
from nerve.errors import ErrorCode, NerveError
from nerve.store import sessions
from nerve.store.rows import run, scalar


@frozen
class Resumed:
    """``changed``: it was not active, did not run and had not been resumed already."""

    session: Session
    changed: bool


def resume(db: apsw.Connection, session_id: str, by: Attribution, now: datetime) -> Resumed:
    """Raises SESSION_NOT_FOUND, and NOT_RESUMABLE without a conversation of its own.

    An archived session is unarchived; a quarantine is lifted (decisions D8).
    """
    session = sessions.get(db, session_id)
    if session.sdk_session_id is None:
        raise NerveError(ErrorCode.NOT_RESUMABLE)
    if not session.quarantined and _goes_on_anyway(db, session):
        return Resumed(session, False)
    sessions.unarchive(db, session_id, by, now)
    run(db, "UPDATE sessions SET status = 'created', quarantined = 0 WHERE id = ?", (session_id,))
    sessions.record(db, session_id, SessionEventType.CREATED, {"reason": "resume"}, by, now)
    return Resumed(sessions.get(db, session_id), True)


def _goes_on_anyway(db: apsw.Connection, session: Session) -> bool:
    if session.status in (SessionStatus.ACTIVE, SessionStatus.CREATED):
        return True
    running = scalar(db, "SELECT 1 FROM turns WHERE session_id = ? AND state = 'running'", (session.id,))
    return running is not None
