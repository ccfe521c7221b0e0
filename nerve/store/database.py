"""What the rest of the house may ask of the database: kept by ``threads`` (real) and ``inline`` (tests)."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Database(Protocol):
    """Repository functions are synchronous, take the ``apsw.Connection`` first and know nothing of trio."""

    async def read(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Run a bounded, indexed read inline (well under 1 ms), after a checkpoint, on one snapshot."""
        ...

    async def read_large(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Run an unbounded read (search, export, check) on the pool, on one snapshot; it can be cancelled."""
        ...

    async def write(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Run ``fn`` as one transaction: all of it or none, and durable (fsync) once this returns.

        Cancelled before its batch began: nothing happened.  Once the batch began, the outcome is delivered.
        Raises NerveError(STORE_FULL) on a full disk and NerveError(STORE_BUSY) if another process holds the
        write lock past the busy timeout; what ``fn`` raises rolls back only its own savepoint.
        """
        ...
