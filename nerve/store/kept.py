"""Reads whose results are kept for as long as nobody writes: lists that every client asks for again and again."""

from collections.abc import Callable
from typing import Any, TypeVar

import apsw

T = TypeVar("T")

_KEPT = 32


class KeptReads:
    """``read`` goes through ``Database.read``, with one connection at a time; what it returns must not be changed.

    SQLite itself says whether anything was committed, by this connection or any other, in this process or another.
    """

    def __init__(self) -> None:
        self._of: tuple[apsw.Connection | None, Any, int] = (None, None, 0)
        self._results: dict[tuple[Any, ...], Any] = {}

    def read(self, db: apsw.Connection, fn: Callable[..., T], /, *args: Any) -> T:
        """What ``fn(db, *args)`` returns now, or returned when the database was the same as now."""
        state = (db, db.pragma("data_version"), db.total_changes())
        if state != self._of or len(self._results) >= _KEPT:
            self._results.clear()
            self._of = state
        call = (fn, *args)
        if call not in self._results:
            self._results[call] = fn(db, *args)
        result: T = self._results[call]
        return result
