"""The one writing thread.  It gathers waiting jobs into one transaction (group commit), so that one fsync is
shared by all who wait, and hands a whole batch of outcomes back to the event loop at once."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import apsw
import outcome
import trio
from attrs import define

from nerve.errors import ErrorCode, NerveError
from nerve.store.failures import StoreCorrupt, translating
from nerve.store.transaction import roll_back

T = TypeVar("T")

PLACES = 1024
BATCH = 64  # larger ones commit no faster, and whoever wakes together holds up everybody else


@define(eq=False)
class Job:
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    task: trio.lowlevel.Task
    number: int = 0
    result: outcome.Outcome[Any] | None = None

    def fail(self, exc: BaseException) -> None:
        """Unless the job has failed by itself, its outcome is ``exc``."""
        if not isinstance(self.result, outcome.Error):
            self.result = outcome.Error(exc)


class Writer:
    """Owns the writing connection.  ``run`` belongs to the event loop, everything called ``_in_thread`` to the
    thread; they meet in ``_waiting``, under ``_changed``."""

    def __init__(self, db: apsw.Connection, on_failure: Callable[[BaseException], None]) -> None:
        """Must be made inside a trio run.  ``on_failure`` is called once, on the event loop, if the thread falls."""
        self._db = db
        self._on_failure = on_failure
        self._loop = trio.lowlevel.current_trio_token()
        self._places = trio.Semaphore(PLACES)
        self._changed = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._issued = 0
        self._begun: list[Job] = []  # of the batch under way; the thread's own
        self._closing = False
        self._ended = trio.Event()
        self._thread = threading.Thread(target=self._in_thread, name="nerve store writer", daemon=True)
        self._thread.start()

    async def run(self, fn: Callable[..., T], /, *args: Any) -> T:
        """See ``Database.write``.  Waits for one of ``PLACES`` places, then for the outcome.

        Raises trio.ClosedResourceError once the writer is closing or has fallen.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            self._places.acquire_nowait()
        except trio.WouldBlock:
            await self._places.acquire()
        try:
            value: T = await self._outcome_of(Job(fn, args, trio.lowlevel.current_task()))
            return value
        finally:
            self._places.release()

    async def aclose(self) -> None:
        """Refuse new jobs, finish those that wait, close the connection and join the thread; not cancellable."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        with trio.CancelScope(shield=True):
            await self._ended.wait()
        self._thread.join()

    async def _outcome_of(self, job: Job) -> Any:
        with self._changed:
            if self._closing:
                raise trio.ClosedResourceError("the database is closed")
            self._issued += 1
            job.number = self._issued
            self._waiting.append(job)
            self._changed.notify()

        def withdraw(_: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
            with self._changed:
                try:
                    self._waiting.remove(job)
                except ValueError:
                    return trio.lowlevel.Abort.FAILED
            return trio.lowlevel.Abort.SUCCEEDED

        return await trio.lowlevel.wait_task_rescheduled(withdraw)

    # What follows runs in the thread.

    def _in_thread(self) -> None:
        result = outcome.capture(self._serve)
        closed = outcome.capture(self._db.close)
        with self._changed:
            self._closing = True
            left = [*self._begun, *self._waiting]
            self._waiting.clear()
        failure = next((r.error for r in (result, closed) if isinstance(r, outcome.Error)), None)
        for job in left:
            job.fail(_fresh(failure))
        self._loop.run_sync_soon(self._end, left, failure)

    def _serve(self) -> None:
        while newest := self._wait_for_jobs():
            self._batch(newest)
            jobs, self._begun = self._begun, []
            self._loop.run_sync_soon(_deliver, jobs)
            for job in jobs:
                if isinstance(job.result, outcome.Error) and isinstance(job.result.error, StoreCorrupt):
                    raise job.result.error

    def _wait_for_jobs(self) -> int:
        """The number of the newest waiting job; 0 only if the writer is closing and everything is done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            return self._waiting[-1].number if self._waiting else 0

    def _batch(self, newest: int) -> None:
        """Run waiting jobs up to number ``newest`` in one transaction, until each has its outcome."""
        jobs = self._begun
        # The wait for another process's lock comes first, so that everybody may leave while it lasts.
        begun = outcome.capture(self._begin)
        if isinstance(begun, outcome.Error):
            while (job := self._next(newest)) is not None:
                job.fail(_fresh(begun.error))
            return
        while len(jobs) < BATCH and self._db.in_transaction and (job := self._next(newest)) is not None:
            job.result = outcome.capture(self._run, job)
        self._end_transaction(jobs)

    def _next(self, newest: int) -> Job | None:
        with self._changed:
            if self._waiting and self._waiting[0].number <= newest:
                self._begun.append(job := self._waiting.popleft())
                return job
            return None

    def _begin(self) -> None:
        with translating(self._db):
            self._db.execute("BEGIN IMMEDIATE")

    def _run(self, job: Job) -> Any:
        """One job in its own savepoint.  If even undoing it fails, the whole transaction is rolled back."""
        with translating(self._db):
            self._db.execute("SAVEPOINT job")
            try:
                value = job.fn(self._db, *job.args)
                self._db.execute("RELEASE job")
            except BaseException:
                self._undo_job()
                raise
            return value

    def _undo_job(self) -> None:
        if self._db.in_transaction:
            try:
                self._db.execute("ROLLBACK TO job")
                self._db.execute("RELEASE job")
            except apsw.Error:
                roll_back(self._db)
                raise

    def _end_transaction(self, jobs: list[Job]) -> None:
        """COMMIT; if that fails, or there is nothing left to commit, every job of the batch has failed."""
        if not self._db.in_transaction:
            undone = _reason_undone(jobs)
            for job in jobs:
                job.fail(_fresh(undone))
            return
        committed = outcome.capture(self._commit)
        if isinstance(committed, outcome.Error):
            for job in jobs:
                job.fail(_fresh(committed.error))

    def _commit(self) -> None:
        try:
            with translating(self._db):
                self._db.execute("COMMIT")
        finally:
            roll_back(self._db)

    # Back on the event loop.

    def _end(self, left: list[Job], failure: BaseException | None) -> None:
        _deliver(left)
        self._ended.set()
        if failure is not None:
            self._on_failure(failure)


def _reason_undone(jobs: list[Job]) -> BaseException:
    """Why the transaction is gone before its COMMIT: SQLite gave up on it, or a job broke the rules."""
    for job in jobs:
        match job.result:
            case outcome.Error(StoreCorrupt() as error):
                return error
            case outcome.Error(NerveError(code=ErrorCode.STORE_FULL) as error):
                return error
    return RuntimeError("the transaction was ended from inside a write")


def _fresh(exc: BaseException | None) -> BaseException:
    """An exception of one's own for each task that is told of ``exc``."""
    match exc:
        case None:
            return trio.ClosedResourceError("the database is closed")
        case NerveError():
            copy: BaseException = NerveError(exc.code, **exc.details)
        case apsw.Error() | StoreCorrupt():
            copy = type(exc)(*exc.args)
        case _:
            copy = RuntimeError(f"the write failed: {exc}")
    copy.__cause__ = exc
    return copy


def _deliver(jobs: list[Job]) -> None:
    for job in jobs:
        assert job.result is not None
        trio.lowlevel.reschedule(job.task, job.result)
