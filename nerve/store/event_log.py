"""Rows of the numbered event log (decisions D6, D7, D55)."""

from collections.abc import Sequence
from datetime import datetime

import apsw
from attrs import frozen

from nerve.errors import ErrorCode, NerveError
from nerve.store.instants import to_text
from nerve.store.rows import one, run, scalar


@frozen
class LogRow:
    """``frame`` is the JSON text that every reader gets, its number included."""

    seq: int
    turn_id: str | None
    frame: str


@frozen
class LogBounds:
    """``first`` is the lowest kept number (None: nothing is kept); ``reserved`` the highest that may have been seen."""

    first: int | None
    reserved: int


def reserved(db: apsw.Connection, session_id: str) -> int:
    found = scalar(db, "SELECT seq_reserved FROM sessions WHERE id = ?", (session_id,))
    if found is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    return int(found)


def bounds(db: apsw.Connection, session_id: str) -> LogBounds:
    first = scalar(db, "SELECT min(seq) FROM frames WHERE session_id = ?", (session_id,))
    return LogBounds(first, reserved(db, session_id))


def reserve(db: apsw.Connection, session_id: str, up_to: int) -> None:
    """From here on no number up to ``up_to`` is ever given out again, whatever happens to this process."""
    run(db, "UPDATE sessions SET seq_reserved = max(seq_reserved, ?) WHERE id = ?", (up_to, session_id))


def release(db: apsw.Connection, session_id: str, last_used: int) -> None:
    """Give the unused rest of a block back; only while no turn runs and nothing unsaved was shown."""
    run(db, "UPDATE sessions SET seq_reserved = ? WHERE id = ?", (last_used, session_id))


def append(db: apsw.Connection, session_id: str, rows: Sequence[LogRow], now: datetime) -> None:
    at = to_text(now)
    db.executemany(
        "INSERT INTO frames (session_id, seq, turn_id, at, frame) VALUES (?, ?, ?, ?, ?)",
        [(session_id, row.seq, row.turn_id, at, row.frame) for row in rows],
    )


def after(db: apsw.Connection, session_id: str, seq: int, limit: int, max_bytes: int) -> list[LogRow]:
    """Up to ``limit`` frames above ``seq``, ascending; ends early once ``max_bytes`` of text are reached."""
    found, size = [], 0
    cursor = db.execute(
        "SELECT seq, turn_id, frame FROM frames WHERE session_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (session_id, seq, limit),
    )
    for row in cursor:
        found.append(LogRow(*row))
        size += len(row[2])
        if size >= max_bytes:
            break
    cursor.close()
    return found


def buffer_start(db: apsw.Connection, session_id: str, first_seq: int, frames: int, max_bytes: int) -> int:
    """Where the newest part of a turn begins that keeps both bounds: the number of its first frame."""
    start, count, size = first_seq, 0, 0
    cursor = db.execute(
        "SELECT seq, octet_length(frame) FROM frames WHERE session_id = ? AND seq >= ? ORDER BY seq DESC LIMIT ?",
        (session_id, first_seq, frames),
    )
    for seq, length in cursor:
        count, size = count + 1, size + length
        if size > max_bytes and count > 1:
            break
        start = seq
    cursor.close()
    return max(start, first_seq)


def of_turn(db: apsw.Connection, session_id: str, first_seq: int) -> list[str]:
    """Every kept frame from a turn's first one on."""
    rows = db.execute(
        "SELECT frame FROM frames WHERE session_id = ? AND seq >= ? ORDER BY seq", (session_id, first_seq)
    )
    return [row[0] for row in rows]


def trim(db: apsw.Connection, session_id: str, keep_frames: int, not_before: datetime) -> None:
    """Drop what is beyond both the count and the age that are kept."""
    edge = one(
        db,
        "SELECT seq FROM frames WHERE session_id = ? ORDER BY seq DESC LIMIT 1 OFFSET ?",
        (session_id, keep_frames),
    )
    if edge is not None:
        run(db, "DELETE FROM frames WHERE session_id = ? AND seq <= ?", (session_id, edge[0]))
    # Numbers and instants grow together, so the scan ends at the first frame that is young enough.
    young = one(
        db,
        "SELECT seq FROM frames WHERE session_id = ? AND at >= ? ORDER BY seq LIMIT 1",
        (session_id, to_text(not_before)),
    )
    if young is None:
        run(db, "DELETE FROM frames WHERE session_id = ?", (session_id,))
    else:
        run(db, "DELETE FROM frames WHERE session_id = ? AND seq < ?", (session_id, young[0]))
