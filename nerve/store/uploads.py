"""Files that people have sent: whose they are, which messages carry them, and when they go."""

from collections.abc import Sequence
from datetime import datetime

import apsw
from attrs import frozen

from nerve.domain.attachments import Attachment, AttachmentKind, url_of
from nerve.errors import ErrorCode, NerveError
from nerve.store.instants import to_text
from nerve.store.rows import Shape, insert, run, scalar

UNUSED_PER_ACTOR = 100


@frozen
class Upload:
    """``path`` is relative to ``directory``; ``size`` is in bytes."""

    id: str
    session_id: str | None
    actor_id: str | None
    filename: str
    media_type: str
    kind: str
    size: int
    directory: str
    path: str
    created_at: datetime


@frozen
class StoredFile:
    """Where a file lies whose record is gone."""

    directory: str
    path: str


UPLOAD = Shape(Upload)
STORED = Shape(StoredFile)

# What waits for its turn: in a queue, or put off.
_WAITS = (
    "EXISTS (SELECT 1 FROM message_uploads m WHERE m.upload_id = uploads.id AND ("
    "m.queue_id IN (SELECT id FROM queue_entries)"
    " OR m.queue_id IN (SELECT id FROM session_wakeups WHERE status = 'pending')))"
)


def add(db: apsw.Connection, uploads: Sequence[Upload]) -> None:
    """Record files that are on disk.  Raises SESSION_NOT_FOUND, and TOO_MANY_UPLOADS when one person has too many."""
    for upload in uploads:
        check_session(db, upload.session_id)
        insert(db, "uploads", **{name: getattr(upload, name) for name in UPLOAD.columns.split(", ")})
        check_room(db, upload.actor_id, 0)


def check_session(db: apsw.Connection, session_id: str | None) -> None:
    if session_id is not None and scalar(db, "SELECT 1 FROM sessions WHERE id = ?", (session_id,)) is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)


def check_room(db: apsw.Connection, actor_id: str | None, more: int) -> None:
    """Raises TOO_MANY_UPLOADS if ``more`` would be too many that no message has carried yet."""
    unused = "SELECT count(*) FROM uploads WHERE actor_id IS ? AND used_at IS NULL"
    if scalar(db, unused, (actor_id,)) + more > UNUSED_PER_ACTOR:
        raise NerveError(ErrorCode.TOO_MANY_UPLOADS)


def get(db: apsw.Connection, upload_id: str) -> Upload:
    """Raises FILE_NOT_FOUND."""
    found = UPLOAD.one(db, f"SELECT {UPLOAD.columns} FROM uploads WHERE id = ?", (upload_id,))
    if found is None:
        raise NerveError(ErrorCode.FILE_NOT_FOUND)
    return found


def attach(db: apsw.Connection, session_id: str, queue_id: str, file_ids: Sequence[str]) -> None:
    """Have a message carry files, which are its session's from then on; part of the transaction that accepts it.

    Raises FILE_NOT_FOUND for an unknown one, also for one that another session has.
    """
    for position, file_id in enumerate(dict.fromkeys(file_ids)):
        own = "UPDATE uploads SET session_id = ?1 WHERE id = ?2 AND (session_id IS NULL OR session_id = ?1)"
        if not run(db, own, (session_id, file_id)):
            raise NerveError(ErrorCode.FILE_NOT_FOUND)
        insert(db, "message_uploads", queue_id=queue_id, position=position, upload_id=file_id)


def take(db: apsw.Connection, queue_id: str, now: datetime) -> tuple[Attachment, ...]:
    """What the message carries whose turn begins."""
    run(
        db,
        "UPDATE uploads SET used_at = coalesce(used_at, ?) WHERE id IN"
        " (SELECT upload_id FROM message_uploads WHERE queue_id = ?)",
        (to_text(now), queue_id),
    )
    rows = db.execute(
        "SELECT u.id, u.filename, u.media_type, u.kind, u.directory, u.path FROM message_uploads m"
        " JOIN uploads u ON u.id = m.upload_id WHERE m.queue_id = ? ORDER BY m.position",
        (queue_id,),
    )
    return tuple(Attachment(row[0], row[1], row[2], AttachmentKind(row[3]), row[4], row[5]) for row in rows)


def expire(db: apsw.Connection, before: datetime) -> list[StoredFile]:
    """Forget what was sent before then and no message carries, not even one that waits; where it lies."""
    unused = f"used_at IS NULL AND created_at < ? AND NOT {_WAITS}"
    gone = STORED.all(db, f"SELECT {STORED.columns} FROM uploads WHERE {unused}", (to_text(before),))
    run(db, f"DELETE FROM uploads WHERE {unused}", (to_text(before),))
    run(db, "DELETE FROM message_uploads WHERE upload_id NOT IN (SELECT id FROM uploads)")
    return gone


def paths(db: apsw.Connection, directory: str) -> frozenset[str]:
    """Of every file that is on record below a directory."""
    return frozenset(row[0] for row in db.execute("SELECT path FROM uploads WHERE directory = ?", (directory,)))


def leave(db: apsw.Connection, session_id: str) -> list[StoredFile]:
    """Before a session goes: what goes with it.  A file that a fork shows too is the fork's from then on."""
    gone = []
    for upload in UPLOAD.all(db, f"SELECT {UPLOAD.columns} FROM uploads WHERE session_id = ?", (session_id,)):
        heir = scalar(
            db,
            "SELECT session_id FROM messages WHERE role = 'user' AND blocks IS NOT NULL AND session_id <> ?"
            " AND instr(blocks, ?) > 0 LIMIT 1",
            (session_id, f'"{url_of(upload.id)}"'),
        )
        if heir is None:
            gone.append(StoredFile(upload.directory, upload.path))
        else:
            run(db, "UPDATE uploads SET session_id = ? WHERE id = ?", (heir, upload.id))
    return gone
