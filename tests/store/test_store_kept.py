"""Kept reads answer what a read would answer, whoever has written meanwhile."""

from pathlib import Path

import apsw
import pytest

from nerve.errors import ErrorCode, NerveError
from nerve.store.connection import connect
from nerve.store.database import Database
from nerve.store.kept import KeptReads
from nerve.store.rows import insert, scalar
from nerve.store.threads import open_database


class Counted:
    """How often ``read`` was asked for the keys that begin with a text."""

    def __init__(self) -> None:
        self.times = 0

    def read(self, db: apsw.Connection, begin: str) -> list[str]:
        self.times += 1
        found = db.execute("SELECT key FROM instance WHERE key GLOB ? ORDER BY key", (begin + "*",))
        return [key for (key,) in found]


def add(db: apsw.Connection, key: str) -> None:
    insert(db, "instance", key=key, value="")


def remove(db: apsw.Connection, key: str) -> None:
    db.execute("DELETE FROM instance WHERE key = ?", (key,))


async def test_it_is_read_once_until_something_is_written(database: Database) -> None:
    kept, keys = KeptReads(), Counted()
    await database.write(add, "k1")
    for _ in range(3):
        assert await database.read(kept.read, keys.read, "k") == ["k1"]
        assert await database.read(kept.read, keys.read, "x") == []
    assert keys.times == 2
    await database.write(add, "k2")
    assert await database.read(kept.read, keys.read, "k") == ["k1", "k2"]
    await database.write(remove, "k1")
    assert await database.read(kept.read, keys.read, "k") == ["k2"]
    assert keys.times == 4


async def test_a_write_that_failed_shows_nothing(database: Database) -> None:
    def half(db: apsw.Connection) -> None:
        add(db, "half")
        assert scalar(db, "SELECT count(*) FROM instance WHERE key = 'half'") == 1
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)

    kept, keys = KeptReads(), Counted()
    assert await database.read(kept.read, keys.read, "half") == []
    with pytest.raises(NerveError):
        await database.write(half)
    assert await database.read(kept.read, keys.read, "half") == []


async def test_what_fails_is_not_kept(database: Database) -> None:
    def broken(db: apsw.Connection) -> None:
        raise NerveError(ErrorCode.SESSION_NOT_FOUND)

    kept = KeptReads()
    for _ in range(2):
        with pytest.raises(NerveError):
            await database.read(kept.read, broken)


async def test_many_different_reads_stay_right(database: Database) -> None:
    kept, keys = KeptReads(), Counted()
    await database.write(add, "k77")
    for _ in range(2):
        for number in range(100):
            expected = ["k77"] if number in (7, 77) else []
            assert await database.read(kept.read, keys.read, f"k{number}") == expected


async def test_other_connections_and_processes_are_noticed(tmp_path: Path) -> None:
    kept, keys, path = KeptReads(), Counted(), tmp_path / "nerve.db"
    async with open_database(path) as database:
        assert await database.read(kept.read, keys.read, "k") == []
        other = connect(path)
        add(other, "k1")
        assert await database.read(kept.read, keys.read, "k") == ["k1"]
        with other:
            add(other, "k2")
            assert await database.read(kept.read, keys.read, "k") == ["k1"], "not committed yet"
        assert await database.read(kept.read, keys.read, "k") == ["k1", "k2"]
        assert keys.times == 3
        other.close()
    async with open_database(path) as database:
        assert await database.read(kept.read, keys.read, "k") == ["k1", "k2"]
        assert keys.times == 4
