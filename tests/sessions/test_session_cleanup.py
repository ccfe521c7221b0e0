"""The clean-up and retention as they live in the house: when they run, whom they leave alone, what they record."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio

from nerve.app import upkeep
from nerve.errors import ErrorCode, NerveError
from nerve.runtime.house import SYSTEM_ACTOR
from nerve.store.inline import InlineDatabase
from nerve.store.retention import AT_ONCE
from tests.house import open_house as whole_house
from tests.sessions.session_house import House, open_house, play

HOUR = 3600.0
REST = 300.0
LONG_AGO = "2025-12-01T00:00:00.000Z"  # three months before the clock of these tests starts


@asynccontextmanager
async def kept_house(database: InlineDatabase, home: Path, settings: str = "", **options: Any) -> AsyncIterator[House]:
    """A house whose upkeep runs."""
    async with open_house(database, home, settings=settings, **options) as house, trio.open_nursery() as nursery:
        nursery.start_soon(upkeep(house.services.config, house.services).run)
        yield house
        nursery.cancel_scope.cancel()


@pytest.fixture
async def kept(database: InlineDatabase, tmp_path: Path) -> AsyncIterator[House]:
    async with kept_house(database, tmp_path / "home") as house:
        yield house


async def over(house: House, at: str = LONG_AGO, **columns: Any) -> str:
    """A session that has run and has been left since an instant."""
    session_id = await house.create()
    columns = {"status": "idle", "updated_at": at, "last_activity_at": at, **columns}
    for name, value in columns.items():
        await house.sql(f"UPDATE sessions SET {name} = ? WHERE id = ?", value, session_id)
    return session_id


async def status(house: House, session_id: str) -> str:
    return str((await house.row(session_id))["status"])


async def reasons(house: House, session_id: str) -> list[str]:
    return [e["details"]["reason"] for e in await house.events(session_id) if e["event_type"] == "archived"]


async def test_a_stale_session_is_archived_by_the_system_on_nobody_s_behalf(kept: House) -> None:
    stale, fresh = await over(kept), await over(kept, "2026-02-20T00:00:00.000Z")
    await trio.sleep(REST + 1)
    assert [await status(kept, i) for i in (stale, fresh)] == ["archived", "idle"]
    event = (await kept.events(stale))[0]
    assert (event["event_type"], event["details"]) == ("archived", {"reason": "cleanup", "force": False})
    assert (event["actor_id"], event["caused_by_actor_id"]) == (SYSTEM_ACTOR, None)
    assert (await kept.row(stale))["archived_at"] is not None


async def test_it_looks_every_six_hours(kept: House) -> None:
    await trio.sleep(REST + 1)
    stale = await over(kept)
    await trio.sleep(6 * HOUR - 60)
    assert await status(kept, stale) == "idle"
    await trio.sleep(120)
    assert await status(kept, stale) == "archived"


@pytest.mark.parametrize(
    "columns",
    [
        {"starred": 1},
        {"status": "active"},
        {"status": "created"},
    ],
)
async def test_what_is_exempt_stays(kept: House, columns: dict[str, Any]) -> None:
    session_id = await over(kept, **columns)
    await trio.sleep(REST + 1)
    assert await status(kept, session_id) == columns.get("status", "idle")


async def test_main_stays(kept: House) -> None:
    await kept.sql("UPDATE sessions SET status = 'idle', updated_at = ? WHERE id = 'main'", LONG_AGO)
    await trio.sleep(REST + 1)
    assert await status(kept, "main") == "idle"


@pytest.mark.parametrize("ended", ["stopped", "error"])
async def test_what_was_stopped_or_failed_leaves_too(kept: House, ended: str) -> None:
    session_id = await over(kept, status=ended)
    await trio.sleep(REST + 1)
    assert await status(kept, session_id) == "archived"


async def test_what_runs_stays(kept: House) -> None:
    session_id = await kept.create()
    await trio.sleep(REST - 4)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kept.run, session_id, play("- wait: 8"))
        await trio.sleep(1)
        await kept.sql("UPDATE sessions SET status = 'idle', updated_at = ? WHERE id = ?", LONG_AGO, session_id)
        await trio.sleep(5)
        assert kept.supervisor.live(session_id).is_running
    assert await reasons(kept, session_id) == []


@pytest.mark.parametrize(("quarantined", "left"), [(0, "idle"), (1, "archived")])
async def test_what_still_has_work_stays_unless_it_was_set_aside(kept: House, quarantined: int, left: str) -> None:
    session_id = await over(kept, quarantined=quarantined)
    await kept.sql(
        "INSERT INTO queue_entries (id, session_id, content, source, created_at) VALUES ('q_1', ?, 'x', 'web', ?)",
        session_id,
        LONG_AGO,
    )
    await trio.sleep(REST + 1)
    assert await status(kept, session_id) == left


async def test_what_is_going_to_wake_up_stays(kept: House) -> None:
    session_id = await over(kept)
    reply = await kept.alice.post(
        "/api/sessions/run-later", json={"session_id": session_id, "message": "Go on", "delay": "24h"}
    )
    assert reply.status == 200
    await trio.sleep(REST + 1)
    assert await status(kept, session_id) == "idle"


@pytest.mark.req("SESS-60", "SESS-61")
async def test_a_subtree_goes_deepest_first_and_a_child_that_stays_keeps_its_ancestors(kept: House) -> None:
    root = await over(kept)
    child = await over(kept, parent_session_id=root)
    gone = await over(kept, parent_session_id=root, status="archived")
    kept_root = await over(kept)
    between = await over(kept, parent_session_id=kept_root, status="archived")
    fresh = await over(kept, "2026-02-28T00:00:00.000Z", parent_session_id=between)
    await trio.sleep(REST + 1)
    everybody = [root, child, gone, kept_root, between, fresh]
    assert [await status(kept, i) for i in everybody] == ["archived"] * 3 + ["idle", "archived", "idle"]
    assert await reasons(kept, child) == await reasons(kept, root) == ["cleanup"]
    order = await kept.sql("SELECT session_id FROM session_events WHERE event_type = 'archived' ORDER BY id")
    assert order == [(child,), (root,)]


@pytest.mark.req("SESS-70")
async def test_an_idle_runtime_is_closed_of_a_starred_session_too(kept: House) -> None:
    session_id = await kept.create()
    await kept.alice.patch(f"/api/sessions/{session_id}", json={"starred": True})
    await kept.run(session_id)
    await trio.sleep(HOUR - 1)
    assert await status(kept, session_id) == "active"
    await trio.sleep(2)
    row, event = await kept.row(session_id), (await kept.events(session_id))[0]
    assert (row["status"], row["sdk_session_id"] is not None) == ("idle", True)
    assert (event["event_type"], event["details"], event["actor_id"]) == ("idle", {"resumable": True}, None)


async def test_above_the_most_the_oldest_leave_as_overflow(database: InlineDatabase, tmp_path: Path) -> None:
    async with kept_house(database, tmp_path / "home", "sessions: {max_sessions: 3}") as house:
        old, starred, newer, newest = [
            await over(house, f"2026-02-2{day}T00:00:00.000Z", starred=int(day == 1)) for day in range(4)
        ]
        await trio.sleep(REST + 1)
        # With main these were five.
        statuses = [await status(house, i) for i in (old, starred, newer, newest)]
        assert statuses == ["archived", "idle", "archived", "idle"]
        assert await reasons(house, old) == ["overflow"]


async def test_with_an_interactive_cutoff_it_looks_every_hour(database: InlineDatabase, tmp_path: Path) -> None:
    settings = "sessions: {interactive_archive_after_hours: 2}"
    async with kept_house(database, tmp_path / "home", settings) as house:
        session_id = await house.create()
        await house.run(session_id)
        await trio.sleep(2.5 * HOUR)  # its runtime was closed after an hour
        assert await status(house, session_id) == "archived"
        assert await reasons(house, session_id) == ["cleanup"]
        await house.run(session_id)
        assert await status(house, session_id) == "active"


async def test_a_restart_neither_repeats_nor_puts_off_what_is_due(database: InlineDatabase, tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with kept_house(database, home) as house:
        await trio.sleep(REST + 1)
    await trio.sleep(2 * HOUR)
    async with kept_house(database, home, born=1) as house:
        stale = await over(house)
        await trio.sleep(4 * HOUR - 60)
        assert await status(house, stale) == "idle"
        await trio.sleep(120)
        assert await status(house, stale) == "archived"
    await trio.sleep(30 * HOUR)
    async with kept_house(database, home, born=2) as house:
        stale = await over(house)
        await trio.sleep(REST - 1)
        assert await status(house, stale) == "idle"
        await trio.sleep(2)
        assert await status(house, stale) == "archived"


async def test_a_last_time_in_the_future_costs_one_interval(database: InlineDatabase, tmp_path: Path) -> None:
    await database.write(
        lambda db: db.execute("INSERT INTO instance VALUES ('last_cleanup', '2031-01-01T00:00:00.000Z')")
    )
    async with kept_house(database, tmp_path / "home") as house:
        stale = await over(house)
        await trio.sleep(6 * HOUR + 1)
        assert await status(house, stale) == "archived"


class Refusing:
    """A database whose writes are refused for a while."""

    def __init__(self, database: InlineDatabase) -> None:
        self._database = database
        self.refusal: ErrorCode | None = None
        self.read, self.read_large = database.read, database.read_large

    async def write(self, fn: Callable[..., Any], /, *args: Any) -> Any:
        if self.refusal is not None:
            raise NerveError(self.refusal)
        return await self._database.write(fn, *args)


async def test_a_full_disk_puts_it_off_by_a_moment(database: InlineDatabase, tmp_path: Path) -> None:
    refusing = Refusing(database)
    async with kept_house(refusing, tmp_path / "home") as house:  # type: ignore[arg-type]
        stale = await over(house)
        refusing.refusal = ErrorCode.STORE_FULL
        await trio.sleep(REST + 1)
        refusing.refusal = None
        assert await status(house, stale) == "idle"
        await trio.sleep(REST + 1)
        assert await status(house, stale) == "archived"


async def test_what_somebody_looks_into_meanwhile_stays(database: InlineDatabase, tmp_path: Path) -> None:
    """Between the look at all sessions and the moment of one of them, that one may come to life."""

    class Awakening(Refusing):
        async def write(self, fn: Callable[..., Any], /, *args: Any) -> Any:
            answer = await super().write(fn, *args)
            if fn.__module__ == "nerve.store.cleanup":
                await super().write(
                    lambda db: db.execute("UPDATE sessions SET updated_at = '2026-03-01T12:00:00.000Z'")
                )
            return answer

    async with kept_house(Awakening(database), tmp_path / "home") as house:  # type: ignore[arg-type]
        first, second = await over(house), await over(house, "2025-12-02T00:00:00.000Z")
        await trio.sleep(REST + 1)
        assert [await status(house, i) for i in (first, second)] == ["archived", "idle"]


async def test_records_of_deletions_are_kept_ninety_days(kept: House) -> None:
    for at in ("2025-12-01T11:00:00.000Z", "2025-12-02T00:00:00.000Z"):
        await kept.sql(
            "INSERT INTO session_deletions (session_id, title, source, deleted_at) VALUES ('x', 'X', 'web', ?)", at
        )
    await trio.sleep(REST + 1)
    assert await kept.sql("SELECT deleted_at FROM session_deletions") == [("2025-12-02T00:00:00.000Z",)]


async def test_deleted_words_leave_the_index_within_moments(kept: House) -> None:
    session_id = await kept.create()
    for number in range(70):
        await kept.sql(
            "INSERT INTO messages (session_id, role, content, created_at) VALUES (?, 'user', ?, ?)",
            session_id,
            f"zebra {number}",
            LONG_AGO,
        )
    await kept.alice.delete(f"/api/sessions/{session_id}")
    assert await kept.sql("SELECT count(*) FROM forgotten_messages") == [(50,)]
    await trio.sleep(31)
    assert await kept.sql("SELECT count(*) FROM forgotten_messages") == [(0,)]
    assert await kept.sql("SELECT count(*) FROM message_words WHERE message_words MATCH 'zebra'") == [(0,)]


# --- retention ----------------------------------------------------------------------------------------------------

OLD, YOUNG = "2025-11-30T00:00:00.000Z", "2025-12-02T00:00:00.000Z"  # 91 and 89 days
RETENTION = "retention: {enabled: true, interval_hours: 2}"


async def fill_shelves(house: House, session_id: str, many: int = 1) -> None:
    await house.sql("DELETE FROM session_events")
    for at in [OLD] * many + [YOUNG]:
        await house.sql(
            "INSERT INTO session_events (session_id, event_type, created_at) VALUES (?, 'idle', ?)", session_id, at
        )
        await house.sql("INSERT INTO session_usage (session_id, created_at) VALUES (?, ?)", session_id, at)
        await house.sql(
            "INSERT INTO mcp_tool_usage (server, tool, duration_ms, success, at) VALUES ('nerve', 'notify', 1, 1, ?)",
            at,
        )
    for at in (OLD, YOUNG):
        await house.sql(
            "INSERT INTO session_file_snapshots (session_id, path, existed, created_at) VALUES (?, ?, 0, ?)",
            session_id,
            f"/file-{at}",
            at,
        )


async def on_shelves(house: House) -> dict[str, list[str]]:
    found = {}
    columns = {"session_events": "created_at", "session_usage": "created_at", "mcp_tool_usage": "at"}
    for table, column in {**columns, "session_file_snapshots": "created_at"}.items():
        found[table] = [row[0] for row in await house.sql(f"SELECT {column} FROM {table} ORDER BY 1")]
    return found


async def test_without_retention_nothing_leaves_by_age(kept: House) -> None:
    await fill_shelves(kept, await kept.create())
    await trio.sleep(REST + 2)
    assert all(OLD in instants for instants in (await on_shelves(kept)).values())


async def test_what_is_older_than_the_retention_leaves_in_bounded_steps(
    database: InlineDatabase, tmp_path: Path
) -> None:
    async with kept_house(database, tmp_path / "home", RETENTION) as house:
        await fill_shelves(house, await house.create(), AT_ONCE + 1)
        await trio.sleep(REST + 2)
        assert set(map(tuple, (await on_shelves(house)).values())) == {(YOUNG,)}
        await fill_shelves(house, await house.create())
        await trio.sleep(2 * HOUR - 60)
        assert OLD in (await on_shelves(house))["session_usage"]
        await trio.sleep(60)
        assert OLD not in (await on_shelves(house))["session_usage"]


async def test_only_what_was_memorised_and_rests_is_reduced_to_its_text(
    database: InlineDatabase, tmp_path: Path
) -> None:
    async with kept_house(database, tmp_path / "home", RETENTION) as house:
        memorised = {"last_memorized_at": "2026-02-28T00:00:00.000Z", "updated_at": "2026-02-28T00:00:00.000Z"}
        rests = await over(house, **memorised)
        starred = await over(house, **memorised, starred=1)
        active = await over(house, **memorised, status="active")
        unknown = await over(house, updated_at=memorised["updated_at"])
        partly = await over(house, **{**memorised, "last_memorized_at": "2025-06-01T00:00:00.000Z"})
        messages = [(s, LONG_AGO) for s in (rests, starred, active, unknown, partly)] + [
            (rests, "2026-02-10T00:00:00.000Z")
        ]
        for session_id, at in messages:
            await house.sql(
                "INSERT INTO messages (session_id, role, content, thinking, blocks, created_at)"
                " VALUES (?, 'assistant', 'text', 'thought', '[]', ?)",
                session_id,
                at,
            )
        await trio.sleep(REST + 2)
        found = await house.sql("SELECT content, thinking, blocks FROM messages ORDER BY id")
        whole = ("text", "thought", "[]")
        assert found == [("text", None, None), *[whole] * 5]


# --- as it is put together ----------------------------------------------------------------------------------------


async def test_the_whole_house_cleans_up(tmp_path: Path) -> None:
    async with whole_house(tmp_path / "whole", settings={"sessions": "archive_after_days: 1"}) as house:
        made = await house.owner.ok("sessions.create", {"title": "A"})

        def leave(db: apsw.Connection) -> None:
            db.execute("UPDATE sessions SET status = 'idle', updated_at = ? WHERE id = ?", (LONG_AGO, made["id"]))

        await house.database.write(leave)
        await trio.sleep(REST + 1)
        row = await house.owner.ok("sessions.get", path={"session_id": made["id"]})
        assert row["status"] == "archived"
