"""Opening the database as this version needs it: refused, made, or upgraded with a copy of the old one kept."""

import os
import re
from importlib import resources
from pathlib import Path

import apsw

from nerve.store.connection import BUSY_SECONDS, configure, connect
from nerve.store.failures import StoreCorrupt, StoreForeign, StoreTooNew, translating
from nerve.store.rows import one, scalar
from nerve.store.transaction import in_snapshot, roll_back

Migrations = tuple[str, ...]


def known_migrations() -> Migrations:
    """The SQL of every migration; the one at index n leads from ``user_version`` n to n + 1."""
    found: dict[int, str] = {}
    for entry in resources.files("nerve.store").joinpath("migrations").iterdir():
        if number := re.fullmatch(r"(\d{4})\.sql", entry.name):
            found[int(number[1])] = entry.read_text(encoding="utf-8")
    if sorted(found) != list(range(1, len(found) + 1)):
        raise RuntimeError(f"migrations are not numbered from 1 without a hole: {sorted(found)}")
    return tuple(found[n] for n in sorted(found))


def open_store(
    path: str | Path, busy_seconds: float = BUSY_SECONDS, migrations: Migrations | None = None
) -> apsw.Connection:
    """A configured connection for reading and writing, on a database of exactly the current schema.

    An older database is upgraded; ``<path>.v<version>.bak`` (0600) holds it as it was.  Blocks; call it before
    anything is served, or in a command that uses the database for a moment.  Raises StoreTooNew, StoreForeign or
    StoreCorrupt with nothing changed, NerveError(STORE_FULL or STORE_BUSY), OSError if there is no such directory.
    """
    if migrations is None:
        migrations = known_migrations()
    db = connect(path, busy_seconds)
    try:
        with translating(db):
            _refuse_unusable(db, len(migrations))
            configure(db, busy_seconds)
            _upgrade(db, migrations)
    except BaseException:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a refused database stays as it is, -wal included
        db.close()
        raise
    return db


def _refuse_unusable(db: apsw.Connection, latest: int) -> None:
    version, tables = in_snapshot(db, _version_and_tables)
    if version > latest:
        raise StoreTooNew(db.filename, version, latest)
    if version == 0 and tables:
        raise StoreForeign(f"{db.filename} is an SQLite database of another program; nothing was changed")


def _version_and_tables(db: apsw.Connection) -> tuple[int, int]:
    return _version(db), scalar(db, "SELECT count(*) FROM sqlite_schema")


def _version(db: apsw.Connection) -> int:
    return int(scalar(db, "PRAGMA user_version"))


def _upgrade(db: apsw.Connection, migrations: Migrations) -> None:
    if _version(db) == len(migrations):
        return
    # A migration may rebuild tables others refer to; the check at its end takes the place of enforcement.
    db.pragma("foreign_keys", False)
    kept = False
    try:
        while _step(db, migrations, kept):
            kept = True
    finally:
        roll_back(db)
        db.pragma("foreign_keys", True)


def _step(db: apsw.Connection, migrations: Migrations, kept: bool) -> bool:
    """One migration in one transaction; False if none is left, be it by another process's doing."""
    db.execute("BEGIN IMMEDIATE")
    version = _version(db)
    if version >= len(migrations):
        db.execute("ROLLBACK")
        return False
    if version > 0 and not kept:
        _keep_copy(db.filename, version)
    for _ in db.execute(migrations[version]):
        pass
    if violation := one(db, "PRAGMA foreign_key_check"):
        table, row = violation[:2]
        raise StoreCorrupt(f"{db.filename}: row {row} of {table} refers to nothing after upgrade {version + 1}")
    db.pragma("user_version", version + 1)
    db.execute("COMMIT")
    return True


def _keep_copy(name: str, version: int) -> None:
    """Copy the database, -wal content included.  A copy with the final name is always whole."""
    final, partial = f"{name}.v{version}.bak", f"{name}.v{version}.bak.partial"
    Path(partial).unlink(missing_ok=True)
    # Its own connection: SQLite does not copy from one that is inside a write transaction.
    source, target = connect(name), connect(partial)
    try:
        with target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(1000)
        target.pragma("journal_mode", "delete")
    finally:
        target.close()
        source.close()
    _sync(partial)
    os.replace(partial, final)
    _sync(os.path.dirname(final) or ".")


def _sync(name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
