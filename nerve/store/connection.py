"""Opening SQLite connections with the settings this house relies on, and files that only their owner can read."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import apsw.bestpractice

BUSY_SECONDS = 10.0
_WAL_RETRY_SECONDS = 0.02
_STATEMENTS = 256  # prepared ones kept by each connection
_WAL_LIMIT_BYTES = 64 * 1024 * 1024


def connect(path: str | Path, busy_seconds: float = BUSY_SECONDS) -> apsw.Connection:
    """A bare connection for reading and writing; a missing file is made.  No setting but the busy timeout.

    The file and its companions have mode 0600 from their first moment, whatever the umask.
    """
    name = os.fspath(path)
    if name != ":memory:":
        _make_private(name)
    db = apsw.Connection(name, statementcachesize=_STATEMENTS)
    db.set_busy_timeout(round(busy_seconds * 1000))
    return db


def configure(db: apsw.Connection, busy_seconds: float = BUSY_SECONDS) -> None:
    """The settings of every connection.  On a new database this may have to wait for other processes."""
    _use_wal(db, busy_seconds)
    db.pragma("synchronous", "FULL")
    db.pragma("journal_size_limit", _WAL_LIMIT_BYTES)
    db.pragma("secure_delete", True)
    # Spilled sorts and savepoints neither leave traces in /tmp nor fail when that is full.
    db.pragma("temp_store", "MEMORY")
    apsw.bestpractice.connection_enable_foreign_keys(db)
    apsw.bestpractice.connection_recursive_triggers(db)
    apsw.bestpractice.connection_dqs(db)
    # SQLite's own lower() and LIKE know no letters beyond ASCII.
    db.create_scalar_function("casefold", _casefold, 1, deterministic=True)


def _casefold(*values: Any) -> str:
    return str(values[0]).casefold()


def open_reader(path: str | Path, busy_seconds: float = BUSY_SECONDS) -> apsw.Connection:
    """A connection that refuses to write, on a database that a writer has already prepared."""
    db = connect(path, busy_seconds)
    configure(db, busy_seconds)
    db.pragma("query_only", True)
    return db


def _use_wal(db: apsw.Connection, busy_seconds: float) -> None:
    # Leaving the old journal mode is the one step for which SQLite does not wait by itself.
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_WAL_RETRY_SECONDS)
        else:
            return


def _make_private(name: str) -> None:
    # Never open an existing file here: closing it would drop SQLite's own POSIX locks of this process.
    with suppress(FileExistsError):
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    # SQLite gives new -wal and -shm files the mode of the database.
    for companion in (name, f"{name}-wal", f"{name}-shm"):
        with suppress(FileNotFoundError):
            if os.stat(companion).st_mode & 0o777 != 0o600:
                os.chmod(companion, 0o600)
