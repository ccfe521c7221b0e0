"""The real database: one writing thread with group commit, bounded reads inline, large reads on a pool."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import apsw
import trio

from nerve.store.connection import BUSY_SECONDS, open_reader
from nerve.store.failures import StoreCorrupt
from nerve.store.migrate import Migrations, open_store
from nerve.store.pool import ReadPool
from nerve.store.transaction import in_snapshot
from nerve.store.writer import Writer

T = TypeVar("T")

# An inline read that met another process's exclusive lock (recovery, a restore) holds up the whole loop.
_INLINE_BUSY_SECONDS = 0.1


class ThreadDatabase:
    """Implements ``Database``; made by ``open_database`` only."""

    def __init__(self, writer: Writer, reader: apsw.Connection, pool: ReadPool, fall: "_Fall") -> None:
        self._writer = writer
        self._reader = reader
        self._pool = pool
        self._fall = fall

    async def read(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Cancelled: nothing was read."""
        await trio.lowlevel.checkpoint()
        try:
            return in_snapshot(self._reader, fn, *args)
        except StoreCorrupt as exc:
            self._fall.because(exc)
            raise

    async def read_large(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Waits for one of two connections, then for the result; cancelled, the read is broken off."""
        try:
            return await self._pool.run(fn, *args)
        except StoreCorrupt as exc:
            self._fall.because(exc)
            raise

    async def write(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Waits for a place in the queue of 1024, then for the COMMIT of its batch."""
        return await self._writer.run(fn, *args)


class _Fall:
    """The first reason why the database cannot go on; cancels everything that lives inside ``open_database``."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.reason: BaseException | None = None

    def because(self, reason: BaseException) -> None:
        if self.reason is None:
            self.reason = reason
            self.scope.cancel()

    def raise_reason(self) -> None:
        if self.reason is not None:
            raise self.reason


@asynccontextmanager
async def open_database(
    path: str | Path, *, busy_seconds: float = BUSY_SECONDS, migrations: Migrations | None = None
) -> AsyncIterator[ThreadDatabase]:
    """The migrated database, as long as the block lasts.  Opening blocks; raises what ``open_store`` raises.

    If the file turns out to be damaged, or the writing thread falls, the block is cancelled and the reason raised
    from here.  Leaving waits for the writes that are under way and joins the thread, also when cancelled.
    """
    fall = _Fall()
    async with AsyncExitStack() as stack:
        stack.callback(fall.raise_reason)
        with ExitStack() as opening:
            db = open_store(path, busy_seconds, migrations)
            opening.callback(db.close)
            reader = open_reader(path, _INLINE_BUSY_SECONDS)
            opening.callback(reader.close)
            pool = ReadPool(path, busy_seconds)
            opening.pop_all()
        # The writer's connection is closed last: it brings the -wal file home.
        writer = Writer(db, fall.because)
        stack.push_async_callback(writer.aclose)
        stack.callback(reader.close)
        stack.callback(pool.close)
        with fall.scope:
            yield ThreadDatabase(writer, reader, pool, fall)
