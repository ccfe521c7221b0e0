"""What a reader is told first about a session, read as one snapshot."""

import apsw
from attrs import frozen

from nerve.errors import ErrorCode, NerveError
from nerve.store import event_log, waiting
from nerve.store.event_log import LogRow
from nerve.store.queue import QueuedMessage
from nerve.store.rows import scalar


@frozen
class BindingRow:
    """``frames`` are logged frames after the asked-for number, as many as the page holds."""

    status: str
    waiting: list[QueuedMessage]
    frames: list[LogRow]


def read(db: apsw.Connection, session_id: str, after: int | None, page: int, page_bytes: int) -> BindingRow:
    """``after`` None reads no frames.  Raises SESSION_NOT_FOUND."""
    status = scalar(db, "SELECT status FROM sessions WHERE id = ?", (session_id,))
    if status is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    frames = [] if after is None else event_log.after(db, session_id, after, page, page_bytes)
    return BindingRow(status, waiting.shown(db, session_id), frames)
