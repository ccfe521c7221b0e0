"""The database for tests that own the clock: everything inline, so that no thread looks idle to MockClock."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
import trio

from nerve.store.connection import BUSY_SECONDS
from nerve.store.migrate import Migrations, open_store
from nerve.store.transaction import in_snapshot, in_transaction

T = TypeVar("T")


class InlineDatabase:
    """Implements ``Database`` on one connection.  Blocks the event loop for as long as a transaction takes."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    async def read(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Cancelled: nothing was read."""
        await trio.lowlevel.checkpoint()
        self._db.pragma("query_only", True)
        try:
            return in_snapshot(self._db, fn, *args)
        finally:
            self._db.pragma("query_only", False)

    async def read_large(self, fn: Callable[..., T], /, *args: Any) -> T:
        """The same as ``read`` here."""
        return await self.read(fn, *args)

    async def write(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Cancelled: nothing happened."""
        await trio.lowlevel.checkpoint()
        return in_transaction(self._db, fn, *args)


@contextmanager
def open_inline(
    path: str | Path = ":memory:", *, busy_seconds: float = BUSY_SECONDS, migrations: Migrations | None = None
) -> Iterator[InlineDatabase]:
    """A migrated database, in memory unless a path is given.  Raises what ``open_store`` raises."""
    db = open_store(path, busy_seconds, migrations)
    try:
        yield InlineDatabase(db)
    finally:
        db.close()
