"""What a reader is told first about a session, read as one snapshot."""

import apsw
from attrs import frozen

from nerve.domain.agents import AgentRecord
from nerve.errors import ErrorCode, NerveError
from nerve.store import agents, event_log, waiting
from nerve.store.event_log import LogRow
from nerve.store.queue import QueuedMessage
from nerve.store.rows import scalar


@frozen
class BindingRow:
    """``frames`` are logged frames after the asked-for number, as many as the page holds; without one, ``agents``."""

    status: str
    waiting: list[QueuedMessage]
    frames: list[LogRow]
    agents: list[AgentRecord]


def read(db: apsw.Connection, session_id: str, after: int | None, page: int, page_bytes: int) -> BindingRow:
    """``after`` None reads the agents instead of frames: those of a running turn are in memory.

    Raises SESSION_NOT_FOUND.
    """
    status = scalar(db, "SELECT status FROM sessions WHERE id = ?", (session_id,))
    if status is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    frames = [] if after is None else event_log.after(db, session_id, after, page, page_bytes)
    found = agents.of_session(db, session_id) if after is None else []
    return BindingRow(status, waiting.shown(db, session_id), frames, found)
