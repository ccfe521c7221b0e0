"""Session rows: read, made, changed, archived and brought back; each change records its event in its transaction.

``model``, ``status`` and the figures are also written by the transactions of a turn (``turns``); nobody writes
``created_by_actor_id`` and ``caused_by_actor_id`` again once a session exists.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

import apsw
import attrs
import orjson
from attrs import frozen

from nerve.contract.generated.entities import Session, SessionSource, SessionStatus
from nerve.contract.generated.sessions import SessionChange
from nerve.contract.unset import UNSET
from nerve.domain.attribution import Attribution
from nerve.domain.sessions import (
    MAIN_ID,
    MAIN_TITLE,
    ArchiveReason,
    SessionEventType,
    TreeNode,
    check_parent,
    checked_change,
    has_started,
)
from nerve.errors import ErrorCode, NerveError
from nerve.store import event_log, queue, session_events, wakeups
from nerve.store.instants import from_text, from_text_or_none, to_text
from nerve.store.queue import QueuedMessage
from nerve.store.rows import insert, one, run, scalar

NAMES = tuple(attribute.name for attribute in attrs.fields(Session))
_PENDING = {
    f"pending_wakeup_{name}": f"(SELECT w.{column} FROM session_wakeups w"
    " WHERE w.session_id = sessions.id AND w.status = 'pending')"
    for name, column in (
        ("at", "fire_at"),
        ("created_by_actor_id", "created_by_actor_id"),
        ("caused_by_actor_id", "caused_by_actor_id"),
    )
}
# Until its first turn a fork has no conversation of its own (``forks``).
_OWN = {"sdk_session_id": "iif(fork_pending, NULL, sdk_session_id)"}
COLUMNS = ", ".join({**_PENDING, **_OWN}.get(name, name) for name in NAMES)

_PLACE = {name: n for n, name in enumerate(NAMES)}
_SOURCE, _STATUS, _METADATA = _PLACE["source"], _PLACE["status"], _PLACE["metadata"]
_STARRED, _QUARANTINED = _PLACE["starred"], _PLACE["quarantined"]
_INSTANTS = tuple(n for name, n in _PLACE.items() if name.endswith("_at"))
_SOURCES = {source.value: source for source in SessionSource}
_STATUSES = {status.value: status for status in SessionStatus}


@frozen(kw_only=True)
class SessionDraft:
    """What a session starts with.  Without a title its id is its title."""

    title: str | None
    source: SessionSource
    backend: str
    backend_reason: str | None
    model: str | None
    cwd: str


def values(row: tuple[Any, ...]) -> dict[str, Any]:
    """The typed values of a row of ``COLUMNS``, by name."""
    typed = list(row)
    typed[_SOURCE] = _SOURCES[row[_SOURCE]]
    typed[_STATUS] = _STATUSES[row[_STATUS]]
    typed[_METADATA] = {} if row[_METADATA] == "{}" else orjson.loads(row[_METADATA])
    typed[_STARRED] = row[_STARRED] == 1
    typed[_QUARANTINED] = row[_QUARANTINED] == 1
    for place in _INSTANTS:
        typed[place] = from_text_or_none(row[place])
    return dict(zip(NAMES, typed, strict=True))


def get(db: apsw.Connection, session_id: str) -> Session:
    """Raises SESSION_NOT_FOUND."""
    row = one(db, f"SELECT {COLUMNS} FROM sessions WHERE id = ?", (session_id,))
    if row is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return Session(**values(row))


@frozen
class Owner:
    """What the work of a session's agent is attributed by: where it was made, and on whose behalf it works."""

    source: SessionSource
    cause_id: str | None


def working_in(db: apsw.Connection, directories: Sequence[str]) -> frozenset[str]:
    """Those of the directories that are a session's working directory."""
    marks = ", ".join("?" * len(directories))
    return frozenset(
        row[0] for row in db.execute(f"SELECT DISTINCT cwd FROM sessions WHERE cwd IN ({marks})", directories)
    )


def owner(db: apsw.Connection, session_id: str) -> Owner:
    """Raises SESSION_NOT_FOUND."""
    row = one(db, "SELECT source, caused_by_actor_id FROM sessions WHERE id = ?", (session_id,))
    if row is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return Owner(_SOURCES[row[0]], row[1])


def get_with_seq(db: apsw.Connection, session_id: str) -> tuple[Session, int]:
    """The session, and the highest number of its event log that may have been shown.  Raises SESSION_NOT_FOUND."""
    return get(db, session_id), event_log.reserved(db, session_id)


def create(
    db: apsw.Connection, draft: SessionDraft, by: Attribution, new_id: Callable[[str], str], now: datetime
) -> Session:
    """Add a session under a new id."""
    session_id = unused_id(db, "session", new_id)
    _add(db, session_id, draft, by, now)
    return get(db, session_id)


def unused_id(db: apsw.Connection, form: str, new_id: Callable[[str], str]) -> str:
    session_id = new_id(form)
    while scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is not None:
        session_id = new_id(form)
    return session_id


def ensure_main(db: apsw.Connection, draft: SessionDraft, system_actor: str, now: datetime) -> bool:
    """Make the session ``main`` (decisions D4); False if it exists already.  Needs the system actor's row."""
    if scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (MAIN_ID,)) is not None:
        return False
    main = attrs.evolve(draft, title=MAIN_TITLE, source=SessionSource.SYSTEM)
    _add(db, MAIN_ID, main, Attribution(system_actor, system_actor), now)
    return True


def _add(db: apsw.Connection, session_id: str, draft: SessionDraft, by: Attribution, now: datetime) -> None:
    insert(
        db,
        "sessions",
        id=session_id,
        title=session_id if draft.title is None else draft.title,
        source=draft.source.value,
        status=SessionStatus.CREATED.value,
        backend=draft.backend,
        backend_reason=draft.backend_reason,
        model=draft.model,
        cwd=draft.cwd,
        created_by_actor_id=by.actor_id,
        caused_by_actor_id=by.cause_id,
        created_at=now,
        updated_at=now,
    )
    record(db, session_id, SessionEventType.CREATED, {"source": draft.source.value}, by, now)


@frozen
class Changed:
    before: Session
    after: Session


def update(db: apsw.Connection, session_id: str, change: SessionChange, by: Attribution, now: datetime) -> Changed:
    """Carry out a change and record each part of it that changes something.

    Raises SESSION_NOT_FOUND, PARENT_NOT_FOUND, and what ``checked_change`` and ``check_parent`` raise.
    """
    session = get(db, session_id)
    change = checked_change(change)
    if change.parent_session_id is not UNSET and change.parent_session_id != session.parent_session_id:
        _move(db, session, change.parent_session_id, by, now)
    if change.title is not UNSET and change.title != session.title:
        run(db, "UPDATE sessions SET title = ? WHERE id = ?", (change.title, session_id))
        details = {"title": change.title, "previous": session.title}
        record(db, session_id, SessionEventType.TITLE_CHANGED, details, by, now)
    if change.model is not UNSET and change.model != session.model:
        run(db, "UPDATE sessions SET model = ? WHERE id = ?", (change.model, session_id))
        model = {"model": change.model, "previous": session.model}
        record(db, session_id, SessionEventType.MODEL_CHANGED, model, by, now)
    if change.starred is not UNSET:
        _star(db, session, change.starred, by, now)
    return Changed(session, get(db, session_id))


def _move(db: apsw.Connection, session: Session, parent_id: str | None, by: Attribution, now: datetime) -> None:
    if parent_id is not None:
        if scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (parent_id,)) is None:
            raise NerveError(ErrorCode.PARENT_NOT_FOUND)
        check_parent(session, parent_id, _ancestors(db, parent_id))
    elif not has_started(session):
        raise NerveError(ErrorCode.SESSION_NOT_STARTED)
    run(db, "UPDATE sessions SET parent_session_id = ? WHERE id = ?", (parent_id, session.id))
    details = {"parent_session_id": parent_id, "previous": session.parent_session_id}
    record(db, session.id, SessionEventType.PARENT_CHANGED, details, by, now)


def _ancestors(db: apsw.Connection, session_id: str) -> set[str]:
    rows = db.execute(
        "WITH RECURSIVE up (id) AS (SELECT parent_session_id FROM sessions WHERE id = ?"
        " UNION SELECT s.parent_session_id FROM up JOIN sessions s ON s.id = up.id)"
        " SELECT id FROM up WHERE id IS NOT NULL",
        (session_id,),
    )
    return {row[0] for row in rows}


def _star(db: apsw.Connection, session: Session, starred: bool, by: Attribution, now: datetime) -> None:
    if starred != session.starred:
        run(db, "UPDATE sessions SET starred = ? WHERE id = ?", (int(starred), session.id))
        event = SessionEventType.STARRED if starred else SessionEventType.UNSTARRED
        record(db, session.id, event, {}, by, now)
    if starred:
        unarchive(db, session.id, by, now)


def subtree(db: apsw.Connection, session_id: str) -> list[TreeNode]:
    """The session and all its descendants.  Raises SESSION_NOT_FOUND."""
    rows = db.execute(
        "WITH RECURSIVE down (id, parent, status) AS ("
        " SELECT id, NULL, status FROM sessions WHERE id = ?"
        " UNION SELECT s.id, s.parent_session_id, s.status FROM down JOIN sessions s ON s.parent_session_id = down.id)"
        " SELECT id, parent, status FROM down",
        (session_id,),
    )
    nodes = [TreeNode(row[0], row[1], row[2] == SessionStatus.ARCHIVED.value) for row in rows]
    if not nodes:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return nodes


def lives_beneath(db: apsw.Connection, session_id: str) -> str | None:
    """A descendant that is not archived, looked for through archived ones."""
    found: str | None = scalar(
        db,
        "WITH RECURSIVE down (id, status) AS ("
        " SELECT id, status FROM sessions WHERE parent_session_id = ?"
        " UNION SELECT s.id, s.status FROM down JOIN sessions s ON s.parent_session_id = down.id"
        " WHERE down.status = 'archived')"
        " SELECT id FROM down WHERE status <> 'archived' LIMIT 1",
        (session_id,),
    )
    return found


class Archived(Enum):
    """What came of archiving one session."""

    DONE = "done"
    BUSY = "busy"
    KEPT = "kept"  # by a session beneath it
    NOT_THERE = "not_there"  # archived or deleted by somebody else meanwhile


@frozen
class Archival:
    """``dropped`` are the messages that waited, ``kept_by`` a descendant that is not archived."""

    outcome: Archived
    dropped: Sequence[QueuedMessage] = ()
    kept_by: str | None = None


def archive(
    db: apsw.Connection, session_id: str, reason: ArchiveReason, force: bool, by: Attribution, now: datetime
) -> Archival:
    """Archive one session unless a turn of it is running or about to; ``force`` drops the messages that wait.

    A quarantined one keeps what waits.  One that came back beneath it meanwhile keeps it, whatever ``force`` says.
    The runtime's id of the conversation is kept, so that an unarchived session can go on.
    """
    found = one(
        db,
        "SELECT status, EXISTS (SELECT 1 FROM turns WHERE session_id = sessions.id AND state = 'running')"
        ", quarantined = 0 AND EXISTS (SELECT 1 FROM queue_entries WHERE session_id = sessions.id)"
        " FROM sessions WHERE id = ?",
        (session_id,),
    )
    if found is None or found[0] == SessionStatus.ARCHIVED.value:
        return Archival(Archived.NOT_THERE)
    if found[1] or (found[2] and not force):
        return Archival(Archived.BUSY)
    if (beneath := lives_beneath(db, session_id)) is not None:
        return Archival(Archived.KEPT, kept_by=beneath)
    dropped = queue.refuse_all(db, session_id) if force else []
    wakeups.cancel(db, session_id, "archived", now)
    run(db, "UPDATE sessions SET status = 'archived', archived_at = ? WHERE id = ?", (to_text(now), session_id))
    record(db, session_id, SessionEventType.ARCHIVED, {"reason": reason.value, "force": force}, by, now)
    return Archival(Archived.DONE, dropped)


def unarchive(db: apsw.Connection, session_id: str, by: Attribution, now: datetime) -> bool:
    """Bring an archived session back as idle, first in its feed; False if it was not archived.

    Raises SESSION_NOT_FOUND.
    """
    found = one(db, "SELECT status, feed FROM sessions WHERE id = ?", (session_id,))
    if found is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    if found[0] != SessionStatus.ARCHIVED.value:
        return False
    run(
        db,
        "UPDATE sessions SET status = 'idle', archived_at = NULL, quarantined = 0, updated_at = ? WHERE id = ?",
        (to_text(_first_place(db, found[1], now)), session_id),
    )
    record(db, session_id, SessionEventType.UNARCHIVED, {}, by, now)
    return True


def _first_place(db: apsw.Connection, feed: str, now: datetime) -> datetime:
    """An instant after every other of the feed, also within the same millisecond or when the clock went back."""
    newest = scalar(
        db,
        "SELECT updated_at FROM sessions WHERE feed = ? AND status <> 'archived' ORDER BY updated_at DESC LIMIT 1",
        (feed,),
    )
    return now if newest is None else max(now, from_text(newest) + timedelta(milliseconds=1))


def record(
    db: apsw.Connection,
    session_id: str,
    event: SessionEventType,
    details: dict[str, Any],
    by: Attribution,
    now: datetime,
) -> None:
    """The event of a change that somebody made."""
    session_events.record(
        db, session_id, event.value, details, actor_id=by.actor_id, caused_by_actor_id=by.cause_id, now=now
    )
