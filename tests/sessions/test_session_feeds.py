"""The three lists as repository functions: what is in which, and that paging by offset misses and repeats nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import apsw
import pytest
from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from nerve.contract.generated.entities import SessionSource
from nerve.domain.attribution import Attribution
from nerve.domain.sessions import ArchiveReason
from nerve.store import session_feeds, sessions
from nerve.store.inline import open_inline
from nerve.store.rows import insert, run
from nerve.store.sessions import SessionDraft

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = "act_alice"
BY = Attribution(ALICE, ALICE)
DRAFT = SessionDraft(
    title=None, source=SessionSource.WEB, backend="scripted", backend_reason=None, model=None, cwd="/work"
)


@frozen
class Made:
    """A session to be: its source, its flags, and when it was updated (milliseconds; ties wanted)."""

    source: SessionSource
    starred: bool
    archived: bool
    after_ms: int


MADE = st.builds(
    Made,
    source=st.sampled_from(
        [SessionSource.WEB, SessionSource.SYSTEM, SessionSource.TELEGRAM, SessionSource.CRON, SessionSource.HOOK]
    ),
    starred=st.booleans(),
    archived=st.booleans(),
    after_ms=st.integers(0, 3),
)


def fill(db: apsw.Connection, made: list[Made]) -> dict[str, Made]:
    insert(db, "actors", id=ALICE, kind="human", created_at=NOW)
    by_id = {}
    for n, one in enumerate(made):
        at = NOW + timedelta(milliseconds=one.after_ms)
        session = sessions.create(db, evolve(DRAFT, source=one.source), BY, lambda _, n=n: f"s{n}", at)
        if one.starred:
            run(db, "UPDATE sessions SET starred = 1 WHERE id = ?", (session.id,))
        if one.archived:
            sessions.archive(db, session.id, ArchiveReason.USER, False, BY, at)
        by_id[session.id] = one
    return by_id


def ids(rows: list[tuple[Any, ...]]) -> list[str]:
    return [row[0] for row in rows]


@pytest.mark.slow
@pytest.mark.req("SESS-07", "SESS-08", "SESS-09", "SESS-10", "SESS-13", "SESS-16")
@given(made=st.lists(MADE, max_size=24), size=st.integers(0, 9))
def test_paging_walks_through_all_rows_without_gap_or_repeat(made: list[Made], size: int) -> None:
    with open_inline() as database:
        db = database._db
        by_id = fill(db, made)
        live = {i for i, one in by_id.items() if not one.archived}
        system = {i for i, one in by_id.items() if one.source in (SessionSource.CRON, SessionSource.HOOK)}
        starred = {i for i in live if by_id[i].starred}

        first = session_feeds.conversations(db, 0, size)
        assert set(ids(first.starred)) == starred
        assert len(first.starred) == len(starred)
        assert first.archived_count == len(by_id.keys() - live - system)
        assert first.system_count == len(live & system)

        def windows(offset: int) -> session_feeds.StoredPage:
            found = session_feeds.conversations(db, offset, size)
            assert offset == 0 or not found.starred
            return found.window

        for page_at, expected in (
            (windows, live - system - starred),
            (lambda offset: session_feeds.archived(db, offset, size), by_id.keys() - live - system),
            (lambda offset: session_feeds.system(db, offset, size), live & system),
        ):
            walked, offset = [], 0
            while True:
                page = page_at(offset)
                assert page.next_offset == offset + len(page.rows)
                assert size == 0 or len(page.rows) <= size
                walked += ids(page.rows)
                offset = page.next_offset
                if not page.has_more:
                    break
                assert page.rows
            assert len(walked) == len(expected)
            assert set(walked) == expected
            order = [(by_id[i].after_ms, int(i[1:])) for i in walked]
            assert order == sorted(order, reverse=True)
            past = page_at(offset)
            assert (past.rows, past.has_more, past.next_offset) == ([], False, offset)


def test_pages_come_in_the_order_of_an_index() -> None:
    with open_inline() as database:
        db = database._db
        statements: list[str] = []
        db.exec_trace = lambda _cursor, text, _bindings: statements.append(text) or True
        session_feeds.conversations(db, 0, 50)
        session_feeds.archived(db, 0, 50)
        session_feeds.system(db, 0, 50)
        db.exec_trace = None
        assert len(statements) == 6
        for text in statements:
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {text}", (50, 0) if "?" in text else ())]
            steps = [step for step in plan if not step.startswith("CORRELATED")]  # the heading of a subquery's steps
            assert all("USING" in step and "INDEX" in step for step in steps), (text, plan)
