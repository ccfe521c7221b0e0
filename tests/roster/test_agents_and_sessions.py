"""What becomes of agents with their session: its model, archive, deletion, and the end of the server."""

from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trio

from nerve.contract.generated.entities import AgentStatus
from nerve.runtime.limits import Limits
from nerve.store import agents as rows
from nerve.store.inline import InlineDatabase
from tests.roster.rostering import SERVER, WORKER, ask, over, page, roster, stop_agent, views
from tests.runtime.mortal_home import Home
from tests.runtime.tabs import of, tab
from tests.sessions.session_house import House, now, open_house, play


@pytest.fixture
def home(database: InlineDatabase, tmp_path: Path) -> Home:
    return Home(database, tmp_path / "home")


@pytest.mark.req("SESS-48")
async def test_a_new_model_has_to_wait_for_live_agents(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play(WORKER, SERVER, "- {agent: front}"))
    reply = await house.alice.patch(f"/api/sessions/{session_id}", json={"model": "other"})
    assert reply.status == 409
    detail = reply.json["detail"]
    assert detail.keys() == {"code", "message", "live"}
    assert (detail["code"], detail["live"]) == ("live_background_agents", 2)
    assert detail["message"]
    assert (await house.row(session_id))["model"] is None
    # Anything else may be changed meanwhile, and nothing has happened to the agents.
    assert (await house.alice.patch(f"/api/sessions/{session_id}", json={"title": "Mine"})).status == 200
    found = await views(house, session_id)
    assert [found[name]["status"] for name in ("build-api", "server")] == ["running", "running"]
    for name in ("build-api", "server"):
        await stop_agent(house, session_id, found[name]["id"])
    await trio.sleep(1)
    assert (await house.alice.patch(f"/api/sessions/{session_id}", json={"model": "other"})).status == 200
    assert (await house.row(session_id))["model"] == "other"


@pytest.mark.req("SESS-61", "SESS-62")
async def test_live_agents_keep_a_session_from_the_archive_unless_forced(house: House) -> None:
    parent, child = await house.create(), await house.create()
    for session_id in (parent, child):
        await house.run(session_id, play("- say: x"))
    assert (await house.alice.patch(f"/api/sessions/{child}", json={"parent_session_id": parent})).status == 200
    await house.run(child, play(WORKER))
    answer = await house.archive(parent)
    assert (answer["archived"], answer["archived_ids"]) == (False, [])
    skipped = {entry["id"]: entry["reason"] for entry in answer["skipped"]}
    assert skipped[child] == "background agents running"
    assert skipped.keys() == {child, parent}
    assert (await views(house, child))["build-api"]["status"] == "running"
    answer = await house.archive(parent, force="true")
    assert (answer["archived"], answer["archived_ids"], answer["skipped"]) == (True, [child, parent], [])
    view = (await views(house, child))["build-api"]
    assert (view["status"], view["end_reason"]) == ("interrupted", "archived")


@pytest.mark.req("SESS-42")
async def test_agents_and_transcripts_leave_with_their_session(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play(WORKER, "- {agent: front, steps: [say: x]}"))
    agent_id = (await views(house, session_id))["front"]["id"]
    await trio.sleep(1)
    assert await house.sql("SELECT count(*) FROM session_agents") == [(2,)]
    assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
    await trio.sleep(5)
    for table in ("session_agents", "session_agent_items"):
        assert await house.sql(f"SELECT count(*) FROM {table}") == [(0,)]
    assert await house.sql("SELECT count(*) FROM session_events WHERE session_id = ?", session_id) == [(0,)]
    assert (await ask(house, session_id, agent_id)).json["detail"]["code"] == "session_not_found"


@pytest.mark.req("AGENT-21", "AGENT-22", "AGENT-23")
async def test_a_list_has_all_that_live_and_the_newest_that_ended(house: House) -> None:
    session_id = await house.create()
    live, ended = range(0, 520, 100), [number for number in range(520) if number % 100]
    running: dict[str, Any] = {"status": AgentStatus.RUNNING, "ended_at": None}
    records = [over(session_id, number, **(running if number in live else {})) for number in range(520)]
    await house.services.database.write(rows.save, records)
    for limit, shown in ((None, 200), (1, 6), (6, 6), (8, 8), (501, 500), (0, 6)):
        query = {} if limit is None else {"limit": limit}
        found = [int(view["name"][1:]) for view in (await roster(house, session_id, **query))["agents"]]
        assert len(found) == shown
        assert found == sorted(found)  # oldest first
        assert set(found) == {*live, *ended[len(ended) - (shown - len(live)) :]}


@pytest.mark.req("AGENT-24", "AGENT-25")
async def test_no_session_and_no_agents(house: House) -> None:
    reply = await house.alice.get("/api/sessions/nowhere/agents")
    assert (reply.status, reply.json["detail"]["code"]) == (404, "session_not_found")
    session_id = await house.create()
    snapshot = await roster(house, session_id)
    assert (snapshot["session_id"], snapshot["agents"], snapshot["queue"]) == (session_id, [], [])
    assert snapshot["summary"].pop("oldest_live_started_at") is None
    assert set(snapshot["summary"].values()) == {0}


# --- from one process to the next ---------------------------------------------------------------------------------


@pytest.mark.req("AGENT-11", "AGENT-30")
@pytest.mark.parametrize("killed", [True, False])
async def test_a_restart_shows_them_interrupted_and_rev_has_grown(home: Home, killed: bool) -> None:
    revs: Counter[str] = Counter()
    session_id = ""
    for _ in range(3):
        async with home.life() as life:
            session_id = session_id or await life.house.create()
            for view in (await views(life.house, session_id)).values():
                assert view["rev"] >= revs[view["id"]]
                assert (view["status"], view["end_reason"], view["attention"]) == (
                    "interrupted",
                    "gateway_restart",
                    "interrupted",
                )
                assert view["controls"]["stop"] is False
                items = (await page(life.house, session_id, view["id"]))["items"]
                assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
                assert [item["event"] for item in items if item["kind"] == "lifecycle"][-1] == "interrupted"
            async with tab(life.house.alice, session_id) as alice:
                await alice.say(
                    session_id, play("- {agent: one, background: true, steps: [say: hm, wait: 600]}", SERVER)
                )
                await alice.turn()
                await alice.quiet(1)
            witness = life.witness(session_id)
            found = await views(life.house, session_id)
            assert found["one"]["status"] == "running"
            await trio.sleep(1)
            for frame in witness.frames:
                for view in frame.get("agents", ()):
                    revs[view["id"]] = max(revs[view["id"]], view["rev"])
            for view in (await roster(life.house, session_id))["agents"]:
                assert view["rev"] >= revs[view["id"]]
                revs[view["id"]] = view["rev"]
            if killed:
                life.kill()
    async with home.life() as life:
        snapshot = await roster(life.house, session_id)
        assert snapshot["summary"]["interrupted"] == snapshot["summary"]["total"] == 6
        for view in snapshot["agents"]:
            assert view["rev"] >= revs[view["id"]]


async def test_a_crash_at_any_write_leaves_no_live_agent(home: Home) -> None:
    """Whatever a client was told of an agent is on record afterwards, and everything has come to an end."""
    text = play("- {agent: one, background: true, steps: [say: hm, wait: 2, say: well]}", SERVER, "- say: x")
    for fatal in range(1, 16):
        told: dict[str, int] = {}
        async with home.life() as life:
            session_id = await life.house.create()
            witness = life.witness(session_id)
            life.mortal.fatal = life.mortal.writes + fatal
            with trio.move_on_after(8):
                await life.house.alice.post("/api/chat", json={"message": text, "session_id": session_id})
            life.kill()
        for frame in of(witness.frames, "agent_update"):
            told |= {view["id"]: view["rev"] for view in frame["agents"]}
        async with home.life() as life:
            found = {view["id"]: view for view in (await roster(life.house, session_id))["agents"]}
            assert told.keys() <= found.keys(), fatal
            for agent_id, view in found.items():
                assert view["rev"] >= told.get(agent_id, 0)
                assert view["status"] in ("interrupted", "completed")
                items = (await page(life.house, session_id, agent_id))["items"]
                assert [item["seq"] for item in items] == list(range(1, len(items) + 1))


async def test_three_crashes_in_a_row_quarantine_the_session_and_lose_nothing(home: Home) -> None:
    """The loop breaker (decisions D8), with agents of the turn and messages that wait."""
    async with home.life() as life:
        session_id = await life.house.create()
        async with tab(life.house.alice, session_id) as alice:
            await alice.say(session_id, play(WORKER, SERVER, "- say: x", "- wait: 600"))
            await alice.until("token")
            for number in range(4):
                await alice.say(session_id, play(WORKER, f"- say: turn {number}", "- wait: 600"), f"m-{number}")
            await alice.until(lambda frame: frame["type"] == "queue_update" and len(frame["queue"]) == 4)
            await alice.quiet(1)
        life.kill()
    for _ in range(2):
        async with home.life() as life:
            assert life.recovered.quarantined == ()
            await trio.sleep(5)
            assert (await life.house.row(session_id))["status"] == "active"
            life.kill()
    async with home.life() as life:
        house = life.house
        assert life.recovered.quarantined == (session_id,)
        await trio.sleep(5)
        row = await house.row(session_id)
        assert (row["status"], row["quarantined"]) == ("error", True)
        assert (await house.events(session_id))[0]["event_type"] == "quarantined"
        snapshot = await roster(house, session_id)
        assert [entry["client_msg_id"] for entry in snapshot["queue"]] == ["m-2", "m-3"]
        assert snapshot["summary"]["live"] == 0
        assert {view["end_reason"] for view in snapshot["agents"]} == {"gateway_restart"}
        assert len(snapshot["agents"]) == 4
        # The server is up for everybody else, and the session goes on once it is let.
        await house.run(await house.create(), play("- say: fine"))
        await house.alice.post(f"/api/sessions/{session_id}/stop", json={})
        await trio.sleep(5)
        assert (await house.row(session_id))["quarantined"] is False
        snapshot = await roster(house, session_id)
        assert [entry["client_msg_id"] for entry in snapshot["queue"]] == ["m-3"]
        assert snapshot["summary"]["live"] == 1


# --- retention ----------------------------------------------------------------------------------------------------


async def test_beyond_500_the_oldest_that_ended_go(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home") as house:
        session_id = await house.create()
        await house.services.database.write(rows.save, [over(session_id, number) for number in range(510)])
        await house.run(session_id, play(WORKER, "- {agent: newest}"))
        await trio.sleep(1)
        assert await house.sql("SELECT count(*) FROM session_agents WHERE ended_at IS NOT NULL") == [(500,)]
        snapshot = await roster(house, session_id, limit=1)
        assert (snapshot["summary"]["total"], snapshot["summary"]["live"]) == (501, 1)
        names = {name for (name,) in await house.sql("SELECT name FROM session_agents")}
        assert names == {"build-api", "newest", *(f"a{number}" for number in range(11, 510))}


async def test_what_ended_long_ago_goes_a_part_at_a_time(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits()) as house:
        session_id = await house.create()
        say = ", ".join(["say: x"] * 30)
        await house.run(session_id, play(f"- {{agent: old, steps: [{say}]}}", WORKER))
        await trio.sleep(1)
        later = now() + timedelta(seconds=1)
        counts = []
        while await database.write(rows.forget_old, later, 10):
            counts.append((await house.sql("SELECT count(*) FROM session_agent_items WHERE agent_id LIKE '%1'"))[0][0])
        assert counts == [22, 12, 2, 0]
        assert await house.sql("SELECT name FROM session_agents") == [("build-api",)]


async def test_a_runtime_is_not_idle_while_agents_live_in_it(database: InlineDatabase, tmp_path: Path) -> None:
    limits = Limits(client_idle_seconds=60)
    async with open_house(database, tmp_path / "home", limits=limits) as house:
        session_id = await house.create()
        await house.run(session_id, play("- {agent: long, background: true, steps: [wait: 600]}"))
        await trio.sleep(590)
        assert (await house.row(session_id))["status"] == "active"
        assert (await views(house, session_id))["long"]["status"] == "running"
        await trio.sleep(60)
        assert (await house.row(session_id))["status"] == "active"  # it has spoken since
        await trio.sleep(60)
        assert (await house.row(session_id))["status"] == "idle"
        assert (await views(house, session_id))["long"]["status"] == "completed"
