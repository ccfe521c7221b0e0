"""A few connections for reads without a useful bound, run in threads so that the event loop goes on."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw
import outcome
import trio

from nerve.store.connection import open_reader
from nerve.store.transaction import in_snapshot

T = TypeVar("T")

THREADS = 2
_STEPS_BETWEEN_CHECKS = 2000


class _Reader:
    """One connection and the question, asked at every statement and within long ones, whether to go on.

    Not ``interrupt()``: it would also hit the ROLLBACK while an outer statement is still open, or hit nothing.
    """

    def __init__(self, path: str | Path, busy_seconds: float) -> None:
        self.db = open_reader(path, busy_seconds)
        self._given_up = threading.Event()
        self.db.exec_trace = self._may_go_on
        self.db.set_progress_handler(self._given_up.is_set, _STEPS_BETWEEN_CHECKS)

    def run(self, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
        return in_snapshot(self.db, fn, *args)

    def give_up(self) -> None:
        self._given_up.set()

    def reset(self) -> None:
        self._given_up.clear()

    def _may_go_on(self, _cursor: apsw.Cursor, sql: str, _bindings: object) -> bool:
        return sql == "ROLLBACK" or not self._given_up.is_set()


class ReadPool:
    """Owns the connections of large reads."""

    def __init__(self, path: str | Path, busy_seconds: float) -> None:
        self._free = [_Reader(path, busy_seconds) for _ in range(THREADS)]
        self._places = trio.Semaphore(THREADS)

    async def run(self, fn: Callable[..., T], /, *args: Any) -> T:
        """See ``Database.read_large``.  Waits for a free connection, then for the result.

        Cancelled: the read is broken off within milliseconds, unless ``fn`` computes without touching the database.
        """
        async with self._places:
            reader = self._free.pop()
            try:
                return await _in_thread(reader, fn, args)
            finally:
                reader.reset()
                self._free.append(reader)

    def close(self) -> None:
        for reader in self._free:
            reader.db.close()


async def _in_thread(reader: _Reader, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
    task = trio.lowlevel.current_task()
    loop = trio.lowlevel.current_trio_token()
    given_up = False

    def deliver(result: outcome.Outcome[T]) -> None:
        loop.run_sync_soon(trio.lowlevel.reschedule, task, result)

    def give_up(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        nonlocal given_up
        given_up = True
        reader.give_up()
        return trio.lowlevel.Abort.FAILED

    trio.lowlevel.start_thread_soon(lambda: reader.run(fn, args), deliver, "nerve store read")
    try:
        value: T = await trio.lowlevel.wait_task_rescheduled(give_up)
    except (apsw.InterruptError, apsw.ExecTraceAbort):
        if given_up:
            await trio.lowlevel.checkpoint_if_cancelled()
        raise
    return value
