"""What can go wrong with the database as a whole, and the one place where SQLite's errors get their meaning."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from nerve.errors import ErrorCode, NerveError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StoreUnusable(Exception):
    """The database cannot be used; the daemon does not start, or ends.  The message is for the operator."""


class StoreCorrupt(StoreUnusable):
    """The file is damaged or no SQLite database at all.  Takes the house down: no client is told about it."""


class StoreTooNew(StoreUnusable):
    """The file was written by a later version; nothing in it was changed."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} has schema version {found}, this program knows versions up to {known}; "
            "install the version that wrote it, or restore the copy kept at the upgrade"
        )
        self.found = found
        self.known = known


class StoreForeign(StoreUnusable):
    """The file is a sound SQLite database, but somebody else's; nothing in it was changed."""


@contextmanager
def translating(db: apsw.Connection) -> Iterator[None]:
    """Raise what SQLite's errors inside mean to the house; those without a meaning pass as they are.

    A full disk is NerveError(STORE_FULL), a lock held past the busy timeout NerveError(STORE_BUSY), a damaged
    file StoreCorrupt.
    """
    try:
        yield
    except apsw.Error as exc:
        if (meaning := _meaning(exc, db)) is None:
            raise
        raise meaning from exc


def _meaning(exc: apsw.Error, db: apsw.Connection) -> Exception | None:
    match exc:
        case apsw.FullError():
            return NerveError(ErrorCode.STORE_FULL)
        case apsw.IOError() if db.system_errno in _NO_SPACE:
            return NerveError(ErrorCode.STORE_FULL)
        case apsw.BusyError():
            return NerveError(ErrorCode.STORE_BUSY)
        case apsw.CorruptError() | apsw.NotADBError():
            return StoreCorrupt(f"{db.filename or 'the database'} is damaged: {exc}")
        case _:
            return None
