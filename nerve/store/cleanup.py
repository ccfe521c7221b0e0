"""What the clean-up looks at, and one session archived by it (sessions-and-agents.md section 2)."""

from datetime import datetime

import apsw

from nerve.domain.attribution import Attribution
from nerve.domain.cleanup import Leaving, Resident
from nerve.domain.sessions import MAIN_ID
from nerve.store import sessions
from nerve.store.instants import from_text, to_text
from nerve.store.rows import one
from nerve.store.sessions import Archival, Archived

# A quarantined session keeps what waits, and waits for nothing.
_EXEMPT = f"""(s.id = '{MAIN_ID}' OR s.starred = 1 OR s.status = 'active'
    OR EXISTS (SELECT 1 FROM turns t WHERE t.session_id = s.id AND t.state = 'running')
    OR EXISTS (SELECT 1 FROM session_wakeups w WHERE w.session_id = s.id AND w.status = 'pending')
    OR (s.quarantined = 0 AND EXISTS (SELECT 1 FROM queue_entries q WHERE q.session_id = s.id)))"""

_RESIDENTS = f"""
    WITH RECURSIVE up (id, parent) AS (
        SELECT id, parent_session_id FROM sessions WHERE status <> 'archived' AND parent_session_id IS NOT NULL
        UNION
        SELECT up.id, p.parent_session_id FROM up JOIN sessions p ON p.id = up.parent
        WHERE p.status = 'archived' AND p.parent_session_id IS NOT NULL
    )
    SELECT s.id, p.id, s.source, s.updated_at, coalesce(s.last_activity_at, s.updated_at),
        s.status IN ('idle', 'stopped', 'error'), {_EXEMPT}
    FROM sessions s LEFT JOIN (
        SELECT up.id AS child, a.id FROM up JOIN sessions a ON a.id = up.parent WHERE a.status <> 'archived'
    ) p ON p.child = s.id
    WHERE s.status <> 'archived'"""


def residents(db: apsw.Connection) -> list[Resident]:
    """Every session that is not archived."""
    return [
        Resident(row[0], row[1], row[2], from_text(row[3]), from_text(max(row[3], row[4])), row[5] == 1, row[6] == 1)
        for row in db.execute(_RESIDENTS)
    ]


def still_leaving(db: apsw.Connection, chosen: Leaving) -> bool:
    """Whether nothing has happened to a session, or beneath it, since it was chosen."""
    found = one(
        db,
        f"SELECT {_EXEMPT} FROM sessions s WHERE s.id = ? AND s.updated_at = ? AND s.status <> 'archived'",
        (chosen.id, to_text(chosen.updated_at)),
    )
    return found == (0,) and sessions.lives_beneath(db, chosen.id) is None


def archive(db: apsw.Connection, chosen: Leaving, by: Attribution, now: datetime) -> Archival:
    """Archive a chosen session unless something has happened meanwhile.  See ``sessions.archive``."""
    if not still_leaving(db, chosen):
        return Archival(Archived.BUSY)
    return sessions.archive(db, chosen.id, chosen.reason, False, by, now)
