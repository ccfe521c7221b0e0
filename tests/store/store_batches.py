"""Making sure that given writes meet in one batch."""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import apsw
import outcome
import trio
import trio.testing

from nerve.store.threads import ThreadDatabase


@asynccontextmanager
async def busy_writer(database: ThreadDatabase) -> AsyncIterator[Callable[[], None]]:
    """The writing thread stands inside a job until the yielded function is called (or the block ends)."""
    loop, began, release = trio.lowlevel.current_trio_token(), trio.Event(), threading.Event()

    def wait(_: apsw.Connection) -> None:
        loop.run_sync_soon(began.set)
        assert release.wait(60)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(database.write, wait)
        await began.wait()
        try:
            yield release.set
        finally:
            release.set()


async def one_batch(database: ThreadDatabase, *jobs: tuple[Any, ...]) -> list[Any]:
    """The outcomes of the jobs, in order, after they went through one batch: a value or the exception."""
    outcomes: list[Any] = [None] * len(jobs)

    async def write(n: int) -> None:
        result = await outcome.acapture(database.write, *jobs[n])
        outcomes[n] = result.error if isinstance(result, outcome.Error) else result.value

    async with busy_writer(database) as release, trio.open_nursery() as nursery:
        for n in range(len(jobs)):
            nursery.start_soon(write, n)
            await trio.testing.wait_all_tasks_blocked()
        release()
    return outcomes
