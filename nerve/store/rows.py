"""Small conveniences for repository functions: one row, one value, rows as attrs objects.  No SQL of its own
but a plain INSERT; table and column names always come from our code, values always through bindings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar, cast, get_type_hints

import apsw
import attrs

from nerve.store.instants import from_text, from_text_or_none, to_text

T = TypeVar("T")
Params = Sequence[Any] | Mapping[str, Any]

_READ: dict[Any, Callable[[Any], Any]] = {
    bool: bool,
    datetime: from_text,
    datetime | None: from_text_or_none,
}


def bound(value: Any) -> Any:
    """A value as SQLite keeps it: an aware datetime as text, a bool as 0 or 1, anything else as it is."""
    if isinstance(value, datetime):
        return to_text(value)
    return int(value) if isinstance(value, bool) else value


def one(db: apsw.Connection, sql: str, params: Params = ()) -> tuple[Any, ...] | None:
    """The first row, or None if there is none."""
    cursor = db.execute(sql, params)
    row: tuple[Any, ...] | None = next(cursor, None)
    cursor.close()
    return row


def scalar(db: apsw.Connection, sql: str, params: Params = ()) -> Any:
    """The first column of the first row, or None if there is no row (a NULL looks the same)."""
    row = one(db, sql, params)
    return None if row is None else row[0]


def run(db: apsw.Connection, sql: str, params: Params = ()) -> int:
    """Run one INSERT, UPDATE or DELETE; how many rows it changed (cascades not counted)."""
    for _ in db.execute(sql, params):
        pass
    return db.changes()


def insert(db: apsw.Connection, table: str, **values: Any) -> int:
    """Insert one row; its rowid (meaningless WITHOUT ROWID).  Datetimes and bools are converted."""
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", [bound(value) for value in values.values()])
    return db.last_insert_rowid()


class Shape(Generic[T]):
    """How rows become objects of an attrs class whose fields are named and ordered like the columns.

    ``bool``, ``datetime`` and ``datetime | None`` fields are converted, others taken as SQLite gives them::

        TURN = Shape(TurnRow)
        TURN.one(db, f"SELECT {TURN.columns} FROM turns WHERE id = ?", (turn_id,))
    """

    def __init__(self, cls: type[T]) -> None:
        hints = get_type_hints(cls)
        names = [attribute.name for attribute in attrs.fields(cast("Any", cls))]
        self.columns = ", ".join(names)
        self._cls = cls
        self._reads = [(n, _READ[hints[name]]) for n, name in enumerate(names) if hints[name] in _READ]

    def prefixed(self, table: str) -> str:
        """The columns with the name or alias of their table, for joins."""
        return ", ".join(f"{table}.{name}" for name in self.columns.split(", "))

    def read(self, row: Sequence[Any]) -> T:
        values = list(row)
        for n, convert in self._reads:
            values[n] = convert(values[n])
        return self._cls(*values)

    def one(self, db: apsw.Connection, sql: str, params: Params = ()) -> T | None:
        row = one(db, sql, params)
        return None if row is None else self.read(row)

    def all(self, db: apsw.Connection, sql: str, params: Params = ()) -> list[T]:
        """All rows; the statement carries the LIMIT."""
        return [self.read(row) for row in db.execute(sql, params)]

    def each(self, db: apsw.Connection, sql: str, params: Params = ()) -> Iterator[T]:
        """Row by row, for large reads that should not hold everything at once."""
        for row in db.execute(sql, params):
            yield self.read(row)
