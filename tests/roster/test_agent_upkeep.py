"""Agents and the clean-up: whoever lives keeps the session, whoever ended long ago goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import trio

from nerve.app import upkeep
from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.roster.rostering import ask, stop_agent, views
from tests.runtime.tabs import of, tab
from tests.sessions.session_house import House, open_house, play

REST = 300.0  # before the first clean-up after a start
INTERVAL = 6 * 3600.0
DAY = 24 * 3600.0
LONG_AGO = "2025-12-01T00:00:00.000Z"


@asynccontextmanager
async def kept_house(database: InlineDatabase, home: Path, days: int = 30) -> AsyncIterator[House]:
    """A house whose upkeep runs, and which keeps ended agents for so many days."""
    settings = f"agent: {{subagents: {{ended_retention_days: {days}}}}}\nsessions: {{archive_after_days: 30}}\n"
    kept = Limits(ended_agents_kept=timedelta(days=days))
    async with open_house(database, home, settings=settings, limits=kept) as house, trio.open_nursery() as nursery:
        nursery.start_soon(upkeep(house.services.config, house.services).run)
        yield house
        nursery.cancel_scope.cancel()


async def test_live_agents_keep_a_stale_session(database: InlineDatabase, tmp_path: Path) -> None:
    async with kept_house(database, tmp_path / "home") as house:
        session_id = await house.create()
        await house.run(session_id, play("- {agent: long, background: true, steps: [wait: 600]}"))
        columns = "status = 'idle', updated_at = ?1, last_activity_at = ?1"
        await house.sql(f"UPDATE sessions SET {columns} WHERE id = ?2", LONG_AGO, session_id)
        await trio.sleep(REST + 1)
        assert (await house.row(session_id))["status"] == "idle"
        found = await views(house, session_id)
        assert found["long"]["status"] == "running"
        await stop_agent(house, session_id, found["long"]["id"])
        await house.sql(f"UPDATE sessions SET {columns} WHERE id = ?2", LONG_AGO, session_id)
        await trio.sleep(INTERVAL)
        assert (await house.row(session_id))["status"] == "archived"


async def test_an_ended_agent_goes_when_the_configuration_says(database: InlineDatabase, tmp_path: Path) -> None:
    async with kept_house(database, tmp_path / "home", days=2) as house:
        session_id = await house.create()
        await house.run(session_id, play("- {agent: early, steps: [say: x]}"))
        early = (await views(house, session_id))["early"]["id"]
        await trio.sleep(1.5 * DAY)
        await house.run(session_id, play("- {agent: late}", "- {agent: alive, background: true, steps: [wait: 3500]}"))
        assert (await views(house, session_id)).keys() == {"early", "late", "alive"}
        await trio.sleep(DAY)
        assert (await views(house, session_id)).keys() == {"late", "alive"}
        assert (await ask(house, session_id, early)).json["detail"]["code"] == "agent_not_found"
        assert await house.sql("SELECT * FROM session_agent_items WHERE agent_id = ?", early) == []
        await trio.sleep(2 * DAY)
        assert await views(house, session_id) == {}


async def test_also_where_another_agent_lives_on(database: InlineDatabase, tmp_path: Path) -> None:
    async with kept_house(database, tmp_path / "home", days=0) as house:
        session_id = await house.create()
        async with tab(house.alice, session_id) as alice:
            steps = "- {agent: early}", "- {agent: alive, background: true, steps: [wait: 3500]}"
            await alice.say(session_id, play(*steps))
            told = of(await alice.quiet(1), "agent_update")
        assert "completed" in {view["status"] for frame in told for view in frame["agents"]}
        await trio.sleep(REST + 1)
        assert (await views(house, session_id)).keys() == {"alive"}
        assert await house.sql("SELECT name FROM session_agents") == [("alive",)]
