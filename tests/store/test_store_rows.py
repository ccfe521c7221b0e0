from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import apsw
import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from nerve.store.instants import from_text, from_text_or_none, to_text, to_text_or_none
from nerve.store.rows import Shape, insert, one, run, scalar

INSTANTS = st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@frozen
class Visit:
    name: str
    at: datetime
    left_at: datetime | None
    paid: bool


VISIT = Shape(Visit)
NOON = datetime(2026, 1, 2, 12, 0, 0, 123_000, tzinfo=UTC)


@pytest.fixture
def db() -> Iterator[apsw.Connection]:
    db = apsw.Connection(":memory:")
    db.execute("CREATE TABLE visits (n INTEGER PRIMARY KEY, name TEXT, at TEXT, left_at TEXT, paid INTEGER) STRICT")
    yield db
    db.close()


def test_an_object_comes_back_as_it_went(db: apsw.Connection) -> None:
    insert(db, "visits", name="a", at=NOON, left_at=None, paid=True)
    insert(db, "visits", name="b", at=NOON, left_at=NOON, paid=False)
    sql = f"SELECT {VISIT.columns} FROM visits ORDER BY n"
    assert VISIT.all(db, sql) == [Visit("a", NOON, None, True), Visit("b", NOON, NOON, False)]
    assert list(VISIT.each(db, sql)) == VISIT.all(db, sql)
    assert VISIT.one(db, sql) == Visit("a", NOON, None, True)
    assert VISIT.one(db, f"SELECT {VISIT.columns} FROM visits WHERE name = ?", ("c",)) is None
    joined = f"SELECT {VISIT.prefixed('v')} FROM visits v JOIN visits w ON v.name = w.name WHERE v.name = :name"
    assert VISIT.all(db, joined, {"name": "b"}) == [Visit("b", NOON, NOON, False)]


def test_insert_tells_the_rowid_and_run_the_number_of_changes(db: apsw.Connection) -> None:
    assert [insert(db, "visits", name=name) for name in "abc"] == [1, 2, 3]
    assert run(db, "UPDATE visits SET paid = 1 WHERE name > ?", ("a",)) == 2
    assert run(db, "UPDATE visits SET paid = 1 WHERE name = 'z'") == 0
    assert run(db, "DELETE FROM visits") == 3
    assert run(db, "DELETE FROM visits") == 0
    assert run(db, "INSERT INTO visits (n) VALUES (1) ON CONFLICT DO NOTHING") == 1
    assert run(db, "INSERT INTO visits (n) VALUES (1) ON CONFLICT DO NOTHING") == 0


def test_one_row_or_none(db: apsw.Connection) -> None:
    assert one(db, "SELECT name FROM visits") is None
    assert scalar(db, "SELECT name FROM visits") is None
    assert one(db, "INSERT INTO visits (name) VALUES ('a'), ('b') RETURNING n, name") == (1, "a")
    assert scalar(db, "SELECT count(*) FROM visits") == 2, "all rows were inserted though one was read"


def test_an_instant_as_text() -> None:
    assert to_text(NOON) == "2026-01-02T12:00:00.123Z"
    elsewhere = datetime(2026, 1, 2, 14, 0, 0, 123_999, tzinfo=timezone(timedelta(hours=2)))
    assert to_text(elsewhere) == "2026-01-02T12:00:00.123Z"
    assert from_text("2026-01-02T12:00:00.123Z") == NOON
    assert to_text_or_none(None) is from_text_or_none(None) is None


@pytest.mark.parametrize("text", ["", "noon", "2026-01-02T12:00:00"])
def test_other_text_is_no_instant(text: str) -> None:
    with pytest.raises(ValueError):
        from_text(text)


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError):
        to_text(NOON.replace(tzinfo=None))


@given(INSTANTS, INSTANTS)
def test_instants_keep_their_milliseconds_and_their_order(one: datetime, other: datetime) -> None:
    cut = one.replace(microsecond=one.microsecond // 1000 * 1000)
    assert from_text(to_text(one)) == cut
    if one <= other:
        assert to_text(one) <= to_text(other)
