"""The sidebar feed and the two collapsed groups, over REST."""

from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.store.inline import InlineDatabase
from tests.asgi_client import AsgiClient
from tests.sessions.session_house import House, open_house, play, system_session

LIVE = {
    "is_running": False,
    "awaiting_input": False,
    "pending_wakeup_at": None,
    "pending_wakeup_created_by_actor_id": None,
    "pending_wakeup_caused_by_actor_id": None,
    "has_background_tasks": False,
    "background_count": 0,
}


async def listed(client: AsgiClient, which: str = "", offset: Any = 0) -> dict[str, Any]:
    reply = await client.get(f"/api/sessions{which}", query={"offset": offset})
    assert reply.status == 200, reply.text
    return reply.json


def ids(page: dict[str, Any]) -> list[str]:
    return [row["id"] for row in page["sessions"]]


@pytest.mark.req("SESS-01", "SESS-13", "SESS-28", "SESS-29", "SESS-30", "SESS-31", "SESS-32")
async def test_a_new_house_shows_main_alone(house: House) -> None:
    page = await listed(house.alice)
    assert list(page) == ["sessions", "archived_count", "system_count", "has_more", "next_offset"]
    assert (page["archived_count"], page["system_count"], page["has_more"], page["next_offset"]) == (0, 0, False, 1)
    (main,) = page["sessions"]
    assert main == {**await house.row("main"), **LIVE}
    assert (main["id"], main["title"], main["source"], main["status"]) == ("main", "Main", "system", "created")
    assert main["created_by_actor_id"] == main["caused_by_actor_id"] == "act_system"


@pytest.mark.req("SESS-02")
async def test_a_page_holds_fifty(house: House) -> None:
    for _ in range(50):
        await house.create()
    page = await listed(house.alice)
    assert len(page["sessions"]) == page["next_offset"] == 50
    assert page["has_more"] is True
    rest = await listed(house.alice, offset=50)
    assert (ids(rest), rest["has_more"], rest["next_offset"]) == (["main"], False, 51)


@pytest.mark.req("SESS-03", "SESS-16", "SESS-17")
async def test_the_configuration_sets_the_page_size(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", settings="sessions: {sidebar_page_size: 2}") as house:
        made = [await house.create() for _ in range(4)]
        page = await listed(house.alice)
        assert (ids(page), page["has_more"], page["next_offset"]) == ([made[3], made[2]], True, 2)
        for session_id in made[:3]:
            await house.archive(session_id)
        page = await listed(house.alice, "/archived")
        assert list(page) == ["sessions", "has_more", "next_offset"]
        assert (ids(page), page["has_more"], page["next_offset"]) == ([made[2], made[1]], True, 2)
        page = await listed(house.alice, "/archived", 2)
        assert (ids(page), page["has_more"], page["next_offset"]) == ([made[0]], False, 3)
        for n in range(3):
            await system_session(house, f"cron:{n}", updated_at=f"2026-01-0{n + 1}T00:00:00.000Z")
        page = await listed(house.alice, "/system")
        assert (ids(page), page["has_more"], page["next_offset"]) == (["cron:2", "cron:1"], True, 2)


@pytest.mark.req("SESS-04")
async def test_size_zero_is_unlimited(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", settings="sessions: {sidebar_page_size: 0}") as house:
        made = [await house.create() for _ in range(60)]
        page = await listed(house.alice)
        assert (ids(page), page["has_more"], page["next_offset"]) == ([*reversed(made), "main"], False, 61)


@pytest.mark.req("SESS-05", "SESS-06", "SESS-11", "SESS-12", "SESS-14", "SESS-15", "SESS-17", "SESS-18")
async def test_archived_and_system_rows_stand_in_their_own_lists(house: House) -> None:
    kept, gone = await house.create(), await house.create()
    await house.archive(gone)
    live_cron = await system_session(house, "cron:job:1")
    live_hook = await system_session(house, "hook:1", source="hook")
    await system_session(house, "cron:job:0", status="archived")
    page = await listed(house.alice)
    assert ids(page) == [kept, "main"]
    assert (page["archived_count"], page["system_count"]) == (1, 2)
    archived = await listed(house.alice, "/archived")
    assert ids(archived) == [gone]
    assert archived["sessions"][0]["status"] == "archived"
    assert set(ids(await listed(house.alice, "/system"))) == {live_cron, live_hook}


@pytest.mark.req("SESS-07", "SESS-08", "SESS-09")
async def test_starred_rows_come_first_whole_and_once(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", settings="sessions: {sidebar_page_size: 2}") as house:
        made = [await house.create() for _ in range(8)]
        for session_id in made[:4]:
            assert (await house.alice.patch(f"/api/sessions/{session_id}", json={"starred": True})).status == 200
        cron = await system_session(house, "cron:job:1", starred=1)
        first = await listed(house.alice)
        assert ids(first) == [*reversed(made[:4]), cron, made[7], made[6]]
        assert (first["next_offset"], first["has_more"]) == (2, True)
        second = await listed(house.alice, offset=2)
        assert ids(second) == [made[5], made[4]]
        third = await listed(house.alice, offset=4)
        assert (ids(third), third["has_more"]) == (["main"], False)


@pytest.mark.req("SESS-32")
async def test_a_running_turn_shows_in_the_list(house: House) -> None:
    session_id = await house.create()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id, play("- wait: 5"))
        await trio.sleep(1)
        rows = {row["id"]: row for row in (await listed(house.alice))["sessions"]}
        assert rows[session_id]["is_running"] is True
        assert rows[session_id]["has_background_tasks"] is False
        assert rows["main"]["is_running"] is False
    rows = {row["id"]: row for row in (await listed(house.alice))["sessions"]}
    assert rows[session_id]["is_running"] is False


async def test_activity_brings_a_session_to_the_top_and_reading_does_not(house: House) -> None:
    old, new = await house.create(), await house.create()
    await trio.sleep(1)
    await house.row(old)
    assert ids(await listed(house.alice)) == [new, old, "main"]
    await house.run(old)
    assert ids(await listed(house.alice)) == [old, new, "main"]


@pytest.mark.req("GEN-06")
@pytest.mark.parametrize("which", ["", "/archived", "/system"])
async def test_offsets_out_of_range_are_clamped_and_words_refused(house: House, which: str) -> None:
    first = await listed(house.alice, which)
    for low in (-1, -(10**30)):
        assert await listed(house.alice, which, low) == first
    beyond = await listed(house.alice, which, 10**30)
    assert (beyond["sessions"], beyond["has_more"], beyond["next_offset"]) == ([], False, 10**9)
    for word in ("ten", "1.5", "", "0x1", "1e3"):
        reply = await house.alice.get(f"/api/sessions{which}", query={"offset": word})
        assert reply.status == 422, word
        assert [problem["loc"] for problem in reply.json["detail"]] == [["query", "offset"]]


@pytest.mark.parametrize(
    "path", ["", "/archived", "/system", "/main", "/main/messages", "/main/status", "/main/events"]
)
async def test_reading_needs_a_credential(house: House, path: str) -> None:
    assert (await house.alice.with_(token=None).get(f"/api/sessions{path}")).status == 401


@pytest.mark.req("SESS-29", "SESS-32")
async def test_a_row_that_is_shown_again_shows_what_is_true_now(house: House) -> None:
    """Rows are written once and kept; each thing that changes what they show has to be seen, and so has its undoing."""
    session_id = await house.create()

    async def shown() -> dict[str, Any]:
        page = await listed(house.alice)
        return next(row for row in page["sessions"] if row["id"] == session_id)

    seen = [await shown()]

    async def after(running: bool = False) -> None:
        row = await shown()
        assert row == {**await house.row(session_id), **LIVE, "is_running": running}
        assert row not in seen[-1:]
        seen.append(row)

    for change in ({"title": "Other"}, {"starred": True}, {"starred": False}, {"model": "small"}, {"title": "Back"}):
        assert (await house.alice.patch(f"/api/sessions/{session_id}", json=change)).status == 200
        await after()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id, play("- wait: 5"))
        await trio.sleep(1)
        await after(running=True)
    await after()
    await house.sql("UPDATE sessions SET metadata = '{\"a\": 1}' WHERE id = ?", session_id)
    await after()
