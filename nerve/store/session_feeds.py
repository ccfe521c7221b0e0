"""The three lists of sessions, paged by offset (contract chapter Sessions, sessions-and-agents.md section 3).

Each part of a page is one statement that an index serves in order; ``n`` settles equal instants, so that pages fit.
"""

from functools import lru_cache
from typing import Any

import apsw
from attrs import frozen

from nerve.contract.codec import keep_written
from nerve.contract.generated.entities import SessionRow
from nerve.domain.sessions import LiveState
from nerve.store.rows import scalar
from nerve.store.sessions import COLUMNS, values

UNLIMITED = 0

StoredRow = tuple[Any, ...]


@frozen
class StoredPage:
    """Rows of a window as they are stored; ``with_live`` makes list rows of them."""

    rows: list[StoredRow]
    has_more: bool
    next_offset: int


@frozen
class Conversations:
    starred: list[StoredRow]  # empty but on the first page
    window: StoredPage
    archived_count: int
    system_count: int


def conversations(db: apsw.Connection, offset: int, size: int) -> Conversations:
    """One page of what is neither archived nor starred nor of cron or hook; on the first page also all starred ones.

    ``size`` 0 is unlimited.
    """
    return Conversations(
        starred=_starred(db) if offset == 0 else [],
        window=_page(db, "feed = 'chat' AND status <> 'archived' AND starred = 0", "updated_at", offset, size),
        archived_count=scalar(db, "SELECT count(*) FROM sessions WHERE feed = 'chat' AND status = 'archived'"),
        system_count=scalar(db, "SELECT count(*) FROM sessions WHERE feed = 'system' AND status <> 'archived'"),
    )


def archived(db: apsw.Connection, offset: int, size: int) -> StoredPage:
    """One page of archived conversations, last archived first; none of cron or hook."""
    return _page(db, "feed = 'chat' AND status = 'archived'", "archived_at", offset, size)


def system(db: apsw.Connection, offset: int, size: int) -> StoredPage:
    """One page of the sessions of cron and hook that are not archived."""
    return _page(db, "feed = 'system' AND status <> 'archived'", "updated_at", offset, size)


def _starred(db: apsw.Connection) -> list[StoredRow]:
    return list(
        db.execute(
            f"SELECT {COLUMNS} FROM sessions WHERE starred = 1 AND status <> 'archived'"
            " ORDER BY updated_at DESC, n DESC"
        )
    )


def _page(db: apsw.Connection, where: str, order: str, offset: int, size: int) -> StoredPage:
    limit = -1 if size == UNLIMITED else size + 1
    rows = list(
        db.execute(
            f"SELECT {COLUMNS} FROM sessions WHERE {where} ORDER BY {order} DESC, n DESC LIMIT ? OFFSET ?",
            (limit, offset),
        )
    )
    has_more = size != UNLIMITED and len(rows) > size
    if has_more:
        rows.pop()
    return StoredPage(rows, has_more, offset + len(rows))


keep_written(SessionRow)


@lru_cache(maxsize=1024)  # lists are read again and again, and few of their rows have changed meanwhile
def with_live(row: StoredRow, live: LiveState) -> SessionRow:
    return SessionRow(
        **values(row),
        is_running=live.is_running,
        awaiting_input=live.awaiting_input,
        has_background_tasks=live.has_background_tasks,
        background_count=live.background_count,
    )
