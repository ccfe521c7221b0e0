"""What only the real database has: batches, a queue, a pool, a house that falls with it."""

import random
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
import trio.testing
from store_batches import busy_writer, one_batch

from nerve.errors import ErrorCode, NerveError
from nerve.store import writer
from nerve.store.connection import connect
from nerve.store.failures import StoreCorrupt
from nerve.store.health import quick_check
from nerve.store.inline import open_inline
from nerve.store.rows import insert, scalar
from nerve.store.threads import ThreadDatabase, open_database
from nerve.store.transaction import in_transaction

LONG_SECONDS = 60.0  # nothing here lasts so long on any machine


def add(db: apsw.Connection, key: str, value: str = "") -> str:
    insert(db, "instance", key=key, value=value)
    return key


def violate_at_commit(db: apsw.Connection) -> None:
    db.pragma("defer_foreign_keys", True)
    insert(db, "channel_sessions", channel_key="c", session_id="none", updated_at="")


def keys(db: apsw.Connection) -> set[str]:
    return {key for (key,) in db.execute("SELECT key FROM instance")}


@pytest.fixture
async def database(path: Path) -> AsyncIterator[ThreadDatabase]:
    async with open_database(path, busy_seconds=0.2) as opened:
        yield opened


async def test_waiting_jobs_share_one_commit(database: ThreadDatabase) -> None:
    commits = []
    await database.write(lambda db: db.set_commit_hook(lambda: commits.append(1) or False))
    commits.clear()
    assert await one_batch(database, *((add, str(n)) for n in range(50))) == [str(n) for n in range(50)]
    assert len(commits) == 2  # the job that kept the thread busy, and the fifty


async def test_a_batch_has_a_bound(database: ThreadDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "BATCH", 20)
    commits = []
    await database.write(lambda db: db.set_commit_hook(lambda: commits.append(1) or False))
    commits.clear()
    await one_batch(database, *((add, str(n)) for n in range(50)))
    assert len(commits) == 1 + 3


async def test_a_job_that_raises_undoes_only_itself(database: ThreadDatabase) -> None:
    def half(db: apsw.Connection) -> None:
        add(db, "half")
        raise LookupError("no")

    first, second, third, fourth = await one_batch(database, (add, "a"), (half,), (add, "a"), (add, "b"))
    assert (first, fourth) == ("a", "b")
    assert isinstance(second, LookupError)
    assert isinstance(third, apsw.ConstraintError)
    assert await database.read(keys) == {"a", "b"}


async def test_a_failed_commit_fails_every_job_of_the_batch(database: ThreadDatabase) -> None:
    outcomes = await one_batch(database, (add, "a"), (violate_at_commit,), (add, "b"))
    assert [type(o) for o in outcomes] == [apsw.ConstraintError] * 3
    assert len({id(o) for o in outcomes}) == 3, "no two tasks share an exception"
    assert await database.read(keys) == set()
    assert await database.write(add, "a") == "a"


async def test_a_full_disk_at_commit_fails_every_job_of_the_batch(database: ThreadDatabase) -> None:
    def end_it(db: apsw.Connection) -> None:
        add(db, "b")
        db.execute("ROLLBACK")
        raise apsw.FullError("as SQLite does for some full disks")

    outcomes = await one_batch(database, (add, "a"), (end_it,), (add, "c"))
    assert [o.code for o in outcomes[:2]] == [ErrorCode.STORE_FULL] * 2
    assert outcomes[2] == "c"
    assert await database.read(keys) == {"c"}


async def test_a_job_that_ends_the_transaction_is_told_so(database: ThreadDatabase) -> None:
    outcomes = await one_batch(database, (add, "a"), (lambda db: db.execute("ROLLBACK"),), (add, "c"))
    assert isinstance(outcomes[0], RuntimeError)
    assert isinstance(outcomes[1], apsw.SQLError)  # its savepoint is gone
    assert outcomes[2] == "c"
    assert await database.read(keys) == {"c"}


async def test_cancelled_before_its_batch_nothing_happens(database: ThreadDatabase) -> None:
    async with busy_writer(database):
        with trio.move_on_after(0.01) as scope:
            await database.write(add, "never")
        assert scope.cancelled_caught, "leaving does not wait for the writer"
    await database.write(add, "later")
    assert await database.read(keys) == {"later"}


async def test_cancelled_after_it_began_the_outcome_is_delivered(database: ThreadDatabase) -> None:
    loop, began, release = trio.lowlevel.current_trio_token(), trio.Event(), threading.Event()
    result = []

    def slow(db: apsw.Connection) -> str:
        loop.run_sync_soon(began.set)
        assert release.wait(LONG_SECONDS)
        return add(db, "done")

    async def write(scope: trio.CancelScope) -> None:
        with scope:
            result.append(await database.write(slow))

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, scope)
        await began.wait()
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert result == []
        release.set()
    assert result == ["done"]
    assert await database.read(keys) == {"done"}


async def test_a_full_queue_makes_callers_wait_and_lets_them_leave(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "PLACES", 3)
    async with open_database(path) as database:
        async with busy_writer(database) as release, trio.open_nursery() as nursery:
            for n in range(10):
                nursery.start_soon(database.write, add, str(n))
            await trio.testing.wait_all_tasks_blocked()
            with trio.move_on_after(0.01) as scope:
                await database.write(add, "never")
            assert scope.cancelled_caught
            nursery.start_soon(database.write, add, "last")
            release()
        assert await database.read(keys) == {*map(str, range(10)), "last"}


async def test_leaving_finishes_what_waits(path: Path) -> None:
    async with trio.open_nursery() as nursery, open_database(path) as database, busy_writer(database):
        for n in range(5):
            nursery.start_soon(database.write, add, str(n))
        await trio.testing.wait_all_tasks_blocked()
    with open_inline(path) as again:
        assert await again.read(keys) == set(map(str, range(5)))


async def test_a_closed_database_refuses(path: Path) -> None:
    async with open_database(path) as database:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await database.write(add, "a")
    assert [t.name for t in threading.enumerate() if t.name == "nerve store writer"] == []


async def test_an_error_of_the_block_passes_unwrapped(path: Path) -> None:
    with pytest.raises(LookupError):
        async with open_database(path):
            raise LookupError


async def test_a_read_sees_one_snapshot(database: ThreadDatabase, path: Path) -> None:
    other = connect(path)

    def count_twice(db: apsw.Connection, key: str) -> tuple[int, int]:
        before = scalar(db, "SELECT count(*) FROM instance")
        in_transaction(other, add, key)
        return before, scalar(db, "SELECT count(*) FROM instance")

    assert await database.read(count_twice, "a") == (0, 0)
    assert await database.read_large(count_twice, "b") == (1, 1)
    assert await database.read(keys) == {"a", "b"}
    other.close()


def endless_statement(db: apsw.Connection) -> Any:
    return scalar(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")


def endless_statements(db: apsw.Connection) -> None:
    for _ in db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"):
        scalar(db, "SELECT 1")


@pytest.mark.parametrize("endless", [endless_statement, endless_statements])
async def test_a_large_read_can_be_cancelled(database: ThreadDatabase, endless: Any) -> None:
    with trio.fail_after(LONG_SECONDS):
        for _ in range(3):
            with trio.move_on_after(0.02) as scope:
                await database.read_large(endless)
            assert scope.cancelled_caught
        assert await database.read_large(scalar, "SELECT 41 + 1") == 42


async def test_large_reads_wait_for_one_of_two_connections(database: ThreadDatabase) -> None:
    with trio.fail_after(LONG_SECONDS):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.read_large, endless_statement)
            nursery.start_soon(database.read_large, endless_statement)
            await trio.testing.wait_all_tasks_blocked()
            with trio.move_on_after(0.01) as waiting:
                await database.read_large(scalar, "SELECT 1")
            assert waiting.cancelled_caught
            assert await database.write(add, "meanwhile") == "meanwhile"
            assert await database.read(keys) == {"meanwhile"}
            nursery.cancel_scope.cancel()


def spoil(path: Path) -> None:
    """A table of many pages, then noise over all of them but the first few (schema and roots)."""
    with open_inline(path) as database:
        in_transaction(database._db, lambda db: [add(db, f"{n:05}", "x" * 1000) for n in range(500)])
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * (size - size // 2))


async def live_until_it_falls(path: Path, life: Callable[[ThreadDatabase], Any]) -> None:
    with trio.fail_after(LONG_SECONDS):
        async with open_database(path) as database:
            await life(database)
            await trio.sleep_forever()


@pytest.mark.parametrize("method", ["read", "read_large", "write"])
async def test_damage_takes_the_house_down(path: Path, method: str) -> None:
    spoil(path)
    swallowed = []

    async def live(database: ThreadDatabase) -> None:
        with suppress(StoreCorrupt):  # as a request barrier might
            await getattr(database, method)(scalar, "SELECT sum(length(value)) FROM instance")
        swallowed.append(1)

    with pytest.raises(StoreCorrupt, match=r"nerve\.db is damaged"):
        await live_until_it_falls(path, live)
    assert swallowed


async def test_after_damage_nothing_is_written(path: Path) -> None:
    spoil(path)

    async def live(database: ThreadDatabase) -> None:
        with trio.CancelScope(shield=True):
            first, _ = await one_batch(
                database, (scalar, "SELECT sum(length(value)) FROM instance"), (add, "same batch")
            )
            assert isinstance(first, StoreCorrupt)
            with pytest.raises(trio.ClosedResourceError):
                await database.write(add, "later")

    with pytest.raises(StoreCorrupt):
        await live_until_it_falls(path, live)


async def test_a_bug_in_the_writing_thread_takes_the_house_down(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    async def live(database: ThreadDatabase) -> None:
        with trio.CancelScope(shield=True), pytest.raises(RuntimeError):
            await database.write(add, "a")

    monkeypatch.setattr(writer.Writer, "_end_transaction", broken)
    with pytest.raises(ZeroDivisionError):
        await live_until_it_falls(path, live)
    with open_inline(path) as again:
        assert await again.read(keys) == set()


async def test_the_check_tells_of_damage(path: Path) -> None:
    spoil(path)
    async with open_database(path) as database:
        problems = await database.read_large(quick_check)
    assert any("invalid page number" in problem for problem in problems)
    assert len(problems) <= 100


async def test_the_check_tells_of_rows_that_refer_to_nothing(database: ThreadDatabase, path: Path) -> None:
    other = connect(path)
    insert(other, "channel_sessions", channel_key="c", session_id="none", updated_at="")
    other.close()
    problem = "row None of channel_sessions refers to a missing row of sessions"
    assert await database.read_large(quick_check) == [problem]


async def test_busy_is_told_apart(database: ThreadDatabase, path: Path) -> None:
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(NerveError) as caught:
        await database.write(add, "a")
    assert caught.value.code is ErrorCode.STORE_BUSY
    assert await database.read(keys) == set()
    other.execute("ROLLBACK")
    other.close()
    assert await database.write(add, "a") == "a"


@pytest.mark.slow
async def test_whoever_leaves_at_whatever_moment_knows_what_happened(database: ThreadDatabase) -> None:
    written: set[str] = set()
    left: set[str] = set()
    rng = random.Random(1)

    async def write(key: str, patience: float) -> None:
        with trio.move_on_after(patience) as scope:
            await database.write(add, key, "x" * 300)
            written.add(key)
        if scope.cancelled_caught:
            left.add(key)

    for turn in range(20):
        async with trio.open_nursery() as nursery:
            for n in range(60):
                nursery.start_soon(write, f"{turn}-{n}", rng.uniform(0, 0.004))
    assert left
    assert written
    assert await database.read(keys) == written
    assert not written & left
