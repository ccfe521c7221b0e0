"""Running one synchronous function as one transaction or on one snapshot of a connection."""

from collections.abc import Callable
from typing import Any, TypeVar

import apsw

from nerve.store.failures import translating

T = TypeVar("T")


def in_transaction(db: apsw.Connection, fn: Callable[..., T], /, *args: Any) -> T:
    """``fn(db, *args)`` and its COMMIT, or nothing.  Blocks for the write lock up to the busy timeout.

    Raises what ``fn`` raises, NerveError(STORE_FULL or STORE_BUSY) or StoreCorrupt.
    """
    try:
        with translating(db):
            db.execute("BEGIN IMMEDIATE")
            value = fn(db, *args)
            db.execute("COMMIT")
            return value
    finally:
        roll_back(db)


def in_snapshot(db: apsw.Connection, fn: Callable[..., T], /, *args: Any) -> T:
    """``fn(db, *args)`` in one read transaction: all its statements see the same state."""
    try:
        with translating(db):
            db.execute("BEGIN")
            return fn(db, *args)
    finally:
        roll_back(db)


def roll_back(db: apsw.Connection) -> None:
    """End the transaction if there still is one: SQLite ends it by itself after some errors."""
    if db.in_transaction:
        with translating(db):
            db.execute("ROLLBACK")
