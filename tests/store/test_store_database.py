"""What every implementation of ``Database`` promises."""

import apsw
import pytest
import trio

from nerve.errors import ErrorCode, NerveError
from nerve.store.database import Database
from nerve.store.health import quick_check
from nerve.store.rows import insert, scalar


def add(db: apsw.Connection, *keys: str) -> int:
    for key in keys:
        insert(db, "instance", key=key, value=f"value of {key}")
    return len(keys)


def keys(db: apsw.Connection) -> list[str]:
    return [key for (key,) in db.execute("SELECT key FROM instance ORDER BY key")]


async def test_what_was_written_is_read(database: Database) -> None:
    assert await database.write(add, "a", "b") == 2
    assert await database.read(keys) == ["a", "b"]
    assert await database.read_large(keys) == ["a", "b"]


async def test_a_write_that_raises_leaves_nothing(database: Database) -> None:
    def half(db: apsw.Connection) -> None:
        add(db, "half")
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)

    with pytest.raises(NerveError) as caught:
        await database.write(half)
    assert caught.value.code is ErrorCode.SESSION_NOT_FOUND
    assert await database.read(keys) == []
    await database.write(add, "next")
    assert await database.read(keys) == ["next"]


async def test_a_violated_constraint_reaches_the_caller(database: Database) -> None:
    await database.write(add, "a")
    with pytest.raises(apsw.ConstraintError):
        await database.write(add, "b", "a")
    assert await database.read(keys) == ["a"]


async def test_foreign_keys_are_enforced(database: Database) -> None:
    with pytest.raises(apsw.ConstraintError):
        await database.write(
            lambda db: insert(db, "channel_sessions", channel_key="c", session_id="none", updated_at="")
        )


async def test_a_job_may_catch_its_own_errors(database: Database) -> None:
    def add_unless_there(db: apsw.Connection, key: str) -> bool:
        try:
            add(db, key)
        except apsw.ConstraintError:
            return False
        return True

    assert await database.write(add_unless_there, "a")
    assert not await database.write(add_unless_there, "a")


async def test_a_commit_that_fails_is_a_write_that_fails(database: Database) -> None:
    def violate_at_commit(db: apsw.Connection) -> None:
        db.pragma("defer_foreign_keys", True)
        insert(db, "channel_sessions", channel_key="c", session_id="none", updated_at="")

    with pytest.raises(apsw.ConstraintError):
        await database.write(violate_at_commit)
    assert await database.read(scalar, "SELECT count(*) FROM channel_sessions") == 0
    await database.write(add, "next")
    assert await database.read(keys) == ["next"]


async def test_a_full_database_fails_writes_but_not_reads(database: Database) -> None:
    await database.write(add, "a")
    await database.write(lambda db: db.pragma("max_page_count", db.pragma("page_count")))

    def fill(db: apsw.Connection) -> None:
        insert(db, "instance", key="big", value="x" * 100_000)

    with pytest.raises(NerveError) as caught:
        await database.write(fill)
    assert caught.value.code is ErrorCode.STORE_FULL
    assert await database.read(keys) == ["a"]
    await database.write(lambda db: db.pragma("max_page_count", 1_000_000))
    await database.write(fill)
    assert await database.read(keys) == ["a", "big"]


@pytest.mark.parametrize("method", ["read", "read_large"])
async def test_a_read_cannot_write(database: Database, method: str) -> None:
    with pytest.raises(apsw.ReadOnlyError):
        await getattr(database, method)(add, "a")
    await database.write(add, "b")
    assert await database.read(keys) == ["b"]


@pytest.mark.parametrize("method", ["read", "read_large", "write"])
async def test_what_is_cancelled_before_it_began_never_runs(database: Database, method: str) -> None:
    ran = []
    with trio.CancelScope() as scope:
        scope.cancel()
        await getattr(database, method)(lambda db: ran.append(1))
    assert scope.cancelled_caught
    assert await database.write(lambda db: len(ran)) == 0


async def test_writers_do_not_slip_between_check_and_insert(database: Database) -> None:
    taken = []

    def claim(db: apsw.Connection) -> bool:
        if scalar(db, "SELECT 1 FROM instance WHERE key = 'claimed'"):
            return False
        return add(db, "claimed") == 1

    async def one_of_twenty() -> None:
        taken.append(await database.write(claim))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(one_of_twenty)
    assert sorted(taken) == [False] * 19 + [True]


@pytest.mark.req("GEN-12")
async def test_metacharacters_are_data(database: Database) -> None:
    odd = "'; DROP TABLE instance; --\" %_ \0 \N{SNOWMAN}"
    await database.write(add, odd)
    assert await database.read(keys) == [odd]


async def test_a_sound_database_has_no_problems(database: Database) -> None:
    await database.write(add, "a")
    assert await database.read_large(quick_check) == []
