"""Which session a channel last talked to (sessions-and-agents.md sections 1 and 2)."""

from collections.abc import Callable
from datetime import datetime

import apsw

from nerve.domain.attribution import Attribution
from nerve.store import sessions
from nerve.store.instants import to_text
from nerve.store.rows import run, scalar
from nerve.store.sessions import SessionDraft


def current(db: apsw.Connection, channel_key: str, active_since: datetime) -> str | None:
    """The channel's session, if it is not archived and was active at or after ``active_since``."""
    found = scalar(
        db,
        "SELECT s.id FROM channel_sessions c JOIN sessions s ON s.id = c.session_id"
        " WHERE c.channel_key = ? AND s.status <> 'archived' AND coalesce(s.last_activity_at, s.updated_at) >= ?",
        (channel_key, to_text(active_since)),
    )
    return None if found is None else str(found)


def current_or_new(
    db: apsw.Connection,
    channel_key: str,
    active_since: datetime,
    draft: SessionDraft,
    by: Attribution,
    new_id: Callable[[str], str],
    now: datetime,
) -> str:
    """The channel's session, or a new one from ``draft``; the channel stays with it from now on."""
    session_id = current(db, channel_key, active_since) or sessions.create(db, draft, by, new_id, now).id
    run(
        db,
        "INSERT INTO channel_sessions (channel_key, session_id, updated_at) VALUES (?1, ?2, ?3)"
        " ON CONFLICT (channel_key) DO UPDATE SET session_id = ?2, updated_at = ?3",
        (channel_key, session_id, to_text(now)),
    )
    return session_id
