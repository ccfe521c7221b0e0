"""Forks, and who still needs a conversation of a runtime (sessions-and-agents.md section 4).

Until its first turn a fork stands in ``sessions`` with ``fork_pending``: ``sdk_session_id`` is then the conversation of
its source, which that turn branches after ``fork_turn``, or a copy of it, which that turn branches as a whole.  Nobody
is shown that id as the fork's own.
"""

from collections.abc import Callable
from datetime import datetime

import apsw
from attrs import evolve, frozen

from nerve.contract.generated.entities import Session, SessionSource, SessionStatus
from nerve.domain.attribution import Attribution
from nerve.domain.forks import fork_source, fork_title
from nerve.domain.sessions import SessionEventType
from nerve.errors import ErrorCode, NerveError
from nerve.store import sessions
from nerve.store.rows import Shape, insert, one, run, scalar

_COPIED = "role, content, thinking, blocks, created_at, channel, external_id, native_turn_id, turn_id, actor_id"
_NO_BOUND = (1 << 63) - 1


@frozen
class Source:
    """What a fork takes over from the session that it is made of."""

    title: str
    source: str
    backend: str
    backend_reason: str | None
    model: str | None
    cwd: str
    sdk_session_id: str | None
    fork_pending: bool


@frozen
class Point:
    """Where the two part: the last message that is copied, and the turn after which the conversation is branched."""

    last_message_id: int
    native_turn_id: str | None
    turn_id: str | None = None  # of a fork of the whole


@frozen
class Copy:
    """A copy of a whole conversation that was made when the turn ``turn_id`` had ended last and none ran."""

    backend: str
    native_id: str
    turn_id: str


SOURCE = Shape(Source)


def fork(
    db: apsw.Connection,
    source_id: str,
    at_message_id: int | None,
    title: str | None,
    by: Attribution,
    copy: Copy | None,
    new_id: Callable[[str], str],
    now: datetime,
) -> Session:
    """Make a session of the messages up to ``at_message_id``, or of all turns that have ended.

    ``copy`` is of use only where ``unnamed_end`` asked for it.  Raises SESSION_NOT_FOUND, MESSAGE_NOT_FOUND,
    NOT_FORKABLE, and ANCHOR_NOT_MAPPED also if the source has gone on since the copy was made.
    """
    source = SOURCE.one(db, f"SELECT {SOURCE.columns} FROM sessions WHERE id = ?", (source_id,))
    if source is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    point = _whole(db, source_id) if at_message_id is None else _at_message(db, source_id, at_message_id)
    if point is None or source.sdk_session_id is None or source.fork_pending:
        raise NerveError(ErrorCode.NOT_FORKABLE)
    if point.native_turn_id is None:
        if at_message_id is not None or _is_running(db, source_id):
            raise NerveError(ErrorCode.ANCHOR_NOT_MAPPED)
        if copy is not None:
            if copy.turn_id != point.turn_id:
                raise NerveError(ErrorCode.ANCHOR_NOT_MAPPED)
            source = evolve(source, sdk_session_id=copy.native_id)
    fork_id = sessions.unused_id(db, "fork", new_id)
    _add(db, fork_id, source_id, source, point, at_message_id, title, by, now)
    copied = _copy_messages(db, source_id, fork_id, point.last_message_id)
    run(db, "UPDATE sessions SET message_count = ? WHERE id = ?", (copied, fork_id))
    details = {"source": fork_source(SessionSource(source.source)).value, "forked_from": source_id}
    sessions.record(db, fork_id, SessionEventType.CREATED, details, by, now)
    return sessions.get(db, fork_id)


def _at_message(db: apsw.Connection, source_id: str, message_id: int) -> Point:
    found = one(db, "SELECT native_turn_id FROM messages WHERE session_id = ? AND id = ?", (source_id, message_id))
    if found is None:
        raise NerveError(ErrorCode.MESSAGE_NOT_FOUND)
    return Point(message_id, found[0])


def _whole(db: apsw.Connection, source_id: str) -> Point | None:
    """After the turn that ended last; None if none has.

    The turn is named, because the source may go on before the fork's first turn comes to branch.
    """
    ended = one(
        db,
        "SELECT native_turn_id, id FROM turns WHERE session_id = ? AND state <> 'running'"
        " ORDER BY started_at DESC, rowid DESC LIMIT 1",
        (source_id,),
    )
    if ended is None:
        return None
    running = scalar(
        db, "SELECT min(user_message_id) FROM turns WHERE session_id = ? AND state = 'running'", (source_id,)
    )
    return Point(_NO_BOUND if running is None else running - 1, *ended)


def unnamed_end(db: apsw.Connection, source_id: str) -> str | None:
    """The turn that ended last, if the runtime has no name for it and a fork of the whole is possible.

    A later branch would then hold what the source does meanwhile, so such a fork needs a ``Copy``.
    """
    source = SOURCE.one(db, f"SELECT {SOURCE.columns} FROM sessions WHERE id = ?", (source_id,))
    if source is None or source.sdk_session_id is None or source.fork_pending or _is_running(db, source_id):
        return None
    point = _whole(db, source_id)
    return None if point is None or point.native_turn_id is not None else point.turn_id


def _is_running(db: apsw.Connection, session_id: str) -> bool:
    return scalar(db, "SELECT 1 FROM turns WHERE session_id = ? AND state = 'running'", (session_id,)) is not None


def _add(
    db: apsw.Connection,
    fork_id: str,
    source_id: str,
    source: Source,
    point: Point,
    at_message_id: int | None,
    title: str | None,
    by: Attribution,
    now: datetime,
) -> None:
    insert(
        db,
        "sessions",
        id=fork_id,
        title=fork_title(title, source.title),
        source=fork_source(SessionSource(source.source)).value,
        status=SessionStatus.CREATED.value,
        backend=source.backend,
        backend_reason=source.backend_reason,
        model=source.model,
        cwd=source.cwd,
        sdk_session_id=source.sdk_session_id,
        fork_pending=True,
        fork_turn=point.native_turn_id,
        parent_session_id=source_id,
        forked_from_message=at_message_id,
        created_by_actor_id=by.actor_id,
        caused_by_actor_id=by.cause_id,
        created_at=now,
        updated_at=now,
    )


def _copy_messages(db: apsw.Connection, source_id: str, fork_id: str, last_id: int) -> int:
    """Row by row: SQLite would hold in memory whatever one statement reads from the table that it writes to."""
    rows = db.execute("SELECT id FROM messages WHERE session_id = ? AND id <= ? ORDER BY id", (source_id, last_id))
    copied = [row[0] for row in rows]
    for message_id in copied:
        run(
            db,
            f"INSERT INTO messages (session_id, {_COPIED}) SELECT ?, {_COPIED} FROM messages WHERE id = ?",
            (fork_id, message_id),
        )
    return len(copied)


def unneeded(db: apsw.Connection, native_id: str | None) -> str | None:
    """The conversation if no session has it and no fork is still to branch it: its runtime may then forget it."""
    if native_id is None or scalar(db, "SELECT 1 FROM sessions WHERE sdk_session_id = ?", (native_id,)) is not None:
        return None
    return native_id
