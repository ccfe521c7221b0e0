"""Databases of other ages, of other programs and of no use."""

import stat
import threading
from pathlib import Path

import apsw
import pytest

from nerve.store.connection import connect
from nerve.store.failures import StoreCorrupt, StoreForeign, StoreTooNew
from nerve.store.inline import open_inline
from nerve.store.migrate import known_migrations, open_store
from nerve.store.rows import insert, scalar
from nerve.store.threads import open_database

FIRST = known_migrations()[0]
OLD = (FIRST,)
NEW = (FIRST, "CREATE TABLE later (x INTEGER) STRICT; INSERT INTO later VALUES (1);", "ALTER TABLE later ADD y TEXT;")


@pytest.fixture
def no_database(path: Path) -> Path:
    path.write_bytes(b"no database" * 1000)
    return path


def version(path: Path) -> int:
    db = connect(path)
    found = int(scalar(db, "PRAGMA user_version"))
    db.close()
    return found


def everything(directory: Path) -> dict[str, bytes]:
    """The content of the files; not of the empty ones, nor of the -wal index that any reader makes anew."""
    files = [file for file in directory.iterdir() if not file.name.endswith("-shm") and file.stat().st_size]
    return {file.name: file.read_bytes() for file in files}


def test_a_new_database_has_the_newest_schema_and_no_copy(path: Path) -> None:
    open_store(path).close()
    assert version(path) == len(known_migrations())
    assert [file.name for file in path.parent.iterdir()] == ["nerve.db"]


def test_the_settings_are_on(path: Path) -> None:
    db = open_store(path, busy_seconds=7)
    wanted = {
        "journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "secure_delete": 1,
        "busy_timeout": 7000, "query_only": 0, "recursive_triggers": 1,
    }  # fmt: skip
    assert {name: db.pragma(name) for name in wanted} == wanted
    with pytest.raises(apsw.SQLError):
        db.execute('SELECT "no such column"')
    db.close()


def test_an_older_database_is_upgraded_and_kept(path: Path) -> None:
    old = open_store(path, migrations=OLD)
    old.wal_autocheckpoint(0)
    insert(old, "instance", key="in the -wal file", value="v")

    db = open_store(path, migrations=NEW)
    assert db.execute("SELECT x, y FROM later").get == (1, None)
    assert scalar(db, "SELECT key FROM instance") == "in the -wal file"
    assert db.pragma("foreign_keys") == 1
    db.close()
    old.close()
    assert version(path) == 3

    copy = path.with_name("nerve.db.v1.bak")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    kept = apsw.Connection(str(copy))
    assert scalar(kept, "PRAGMA user_version") == 1
    assert scalar(kept, "SELECT key FROM instance") == "in the -wal file"
    kept.close()
    assert {file.name for file in path.parent.iterdir()} == {"nerve.db", "nerve.db.v1.bak"}


def test_a_current_database_is_only_opened(path: Path) -> None:
    open_store(path, migrations=NEW).close()
    before = everything(path.parent)
    open_store(path, migrations=NEW).close()
    assert everything(path.parent) == before


def test_a_migration_that_fails_leaves_the_version_before_it(path: Path) -> None:
    open_store(path, migrations=OLD).close()
    with pytest.raises(apsw.SQLError):
        open_store(path, migrations=(*NEW[:2], "CREATE TABLE half (x); SELECT nonsense;"))
    db = open_store(path, migrations=NEW[:2])
    assert scalar(db, "SELECT count(*) FROM later") == 1
    assert not db.table_exists(None, "half")
    db.close()
    assert path.with_name("nerve.db.v1.bak").exists()


def test_a_migration_that_breaks_references_is_undone(path: Path) -> None:
    open_store(path, migrations=OLD).close()
    breaks = "INSERT INTO channel_sessions VALUES ('c', 'no such session', '');"
    with pytest.raises(StoreCorrupt, match="channel_sessions"):
        open_store(path, migrations=(FIRST, breaks))
    assert version(path) == 1


def test_a_migration_may_rebuild_a_table_others_refer_to(path: Path) -> None:
    db = open_store(path, migrations=OLD)
    insert(db, "actors", id="act_1", kind="human", created_at="")
    insert(db, "actor_identities", provider="p", subject="s", actor_id="act_1")
    db.close()
    rebuild = (
        "CREATE TABLE fresh AS SELECT * FROM actors; DROP TABLE actors;"
        "ALTER TABLE fresh RENAME TO actors; CREATE UNIQUE INDEX actors_id ON actors (id);"
    )
    db = open_store(path, migrations=(FIRST, rebuild))
    assert scalar(db, "SELECT count(*) FROM actor_identities") == 1
    db.close()


@pytest.mark.parametrize("in_wal", [False, True])
def test_a_newer_database_is_refused_unchanged(path: Path, in_wal: bool) -> None:
    newer = open_store(path, migrations=NEW)
    if in_wal:
        newer.wal_autocheckpoint(0)
        newer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        insert(newer, "instance", key="k", value="v")
    newer.close()
    before = everything(path.parent)
    with pytest.raises(StoreTooNew, match="has schema version 3, this program knows versions up to 1") as caught:
        open_store(path, migrations=OLD)
    assert (caught.value.found, caught.value.known) == (3, 1)
    assert everything(path.parent) == before


@pytest.mark.parametrize("content", [b"this is no database\n" * 100, b"\0" * 5000])
def test_what_is_no_database_is_refused_unchanged(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"nerve\.db is damaged"):
        open_store(path)
    assert everything(path.parent) == {"nerve.db": content}


def test_a_damaged_schema_is_refused_unchanged(path: Path) -> None:
    open_store(path).close()
    content = bytearray(path.read_bytes())
    content[100:400] = b"\xa5" * 300
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt):
        open_store(path)
    assert everything(path.parent) == {"nerve.db": bytes(content)}


def test_the_database_of_another_program_is_refused_unchanged(path: Path) -> None:
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    before = everything(path.parent)
    with pytest.raises(StoreForeign):
        open_store(path)
    assert everything(path.parent) == before


async def test_both_implementations_migrate(path: Path) -> None:
    with open_inline(path, migrations=OLD):
        pass
    async with open_database(path, migrations=NEW) as database:
        assert await database.read(scalar, "SELECT x FROM later") == 1
    with pytest.raises(StoreTooNew), open_inline(path, migrations=OLD):
        pass


async def test_the_real_database_refuses_too(no_database: Path) -> None:
    with pytest.raises(StoreCorrupt):
        async with open_database(no_database):
            pass
    assert "nerve store writer" not in {thread.name for thread in threading.enumerate()}
