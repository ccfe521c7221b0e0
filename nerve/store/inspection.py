"""Looking into the database of a daemon, running or not, without changing anything: for ``nerve status``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw

from nerve.errors import NerveError
from nerve.store.failures import StoreTooNew, StoreUnusable
from nerve.store.migrate import known_migrations
from nerve.store.rows import scalar
from nerve.store.transaction import in_snapshot

T = TypeVar("T")

_BUSY_SECONDS = 2.0


class NoDatabase(StoreUnusable):
    """There is none yet: the daemon has never been started on this home."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is not there yet; the first start makes it")


def inspect(path: Path, fn: Callable[..., T], *args: Any) -> T:
    """``fn(db, *args)`` on one snapshot of a read-only connection.  Blocks for a bounded read.

    Raises NoDatabase, StoreTooNew, or StoreUnusable for an older, damaged, locked or unreadable database.
    """
    if not path.is_file() or path.stat().st_size == 0:
        raise NoDatabase(path)
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error as error:
        raise StoreUnusable(f"{path} can't be read: {error}") from None
    try:
        db.set_busy_timeout(round(_BUSY_SECONDS * 1000))
        value: T = in_snapshot(db, _current, path, fn, args)
        return value
    except (NerveError, apsw.Error) as error:
        raise StoreUnusable(f"{path} can't be read: {error}") from None
    finally:
        db.close()


def _current(db: apsw.Connection, path: Path, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
    found, known = int(scalar(db, "PRAGMA user_version")), len(known_migrations())
    if found == 0:
        raise NoDatabase(path)
    if found > known:
        raise StoreTooNew(str(path), found, known)
    if found < known:
        raise StoreUnusable(f"{path} is of an older version; the next start upgrades it")
    return fn(db, *args)
