"""Messages of a session, as they are read.  They are written by the transactions that begin and end a turn."""

from typing import Any

import apsw
import orjson

from nerve.contract.codec import structure
from nerve.contract.generated.entities import Message, MessageRole, TurnUsage
from nerve.contract.generated.sessions import MessagePage
from nerve.errors import ErrorCode, NerveError
from nerve.store.instants import from_text
from nerve.store.rows import one

_COLUMNS = "id, session_id, role, content, thinking, blocks, created_at, channel, external_id, native_turn_id, actor_id"
_NO_BOUND = (1 << 63) - 1


def page(db: apsw.Connection, session_id: str, limit: int, before_id: int | None) -> MessagePage:
    """The newest ``limit`` messages below ``before_id``, oldest first, and the newest turn's usage (decisions D5).

    Raises SESSION_NOT_FOUND.
    """
    session = one(db, "SELECT last_usage FROM sessions WHERE id = ?", (session_id,))
    if session is None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM messages WHERE session_id = ? AND id < ? ORDER BY id DESC LIMIT ?",
        (session_id, _NO_BOUND if before_id is None else before_id, limit),
    )
    found = [_message(row) for row in rows]
    found.reverse()
    usage = None if session[0] is None else structure(TurnUsage, orjson.loads(session[0]))
    return MessagePage(messages=found, last_usage=usage)


def _message(row: tuple[Any, ...]) -> Message:
    return Message(
        id=row[0],
        session_id=row[1],
        role=MessageRole(row[2]),
        content=row[3],
        thinking=row[4],
        blocks=None if row[5] is None else orjson.loads(row[5]),
        created_at=from_text(row[6]),
        channel=row[7],
        external_id=row[8],
        native_turn_id=row[9],
        actor_id=row[10],
    )
