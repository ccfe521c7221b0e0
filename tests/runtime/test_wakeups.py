"""Wakeups: an agent has its session go on later by itself, once, whatever happens in between."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from nerve.adapters.protocol import Availability, InteractionReply, InteractionRequest
from nerve.domain.wakeups import CONTINUE
from nerve.runtime.client import Host
from nerve.runtime.house import SYSTEM_ACTOR
from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.runtime.mortal_home import Home
from tests.runtime.puppets import COMPLETED, PuppetAdapter, puppets
from tests.runtime.tabs import Tab, of, tab, text, types
from tests.sessions.session_house import ALICE, START, House, now, open_house, play, system_session

Rows = list[dict[str, Any]]


def scenario(house: House, match: str, *steps: str) -> None:
    directory = house.services.config.workspace / "scenarios"
    directory.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(f"  {line}" for line in steps)
    (directory / f"{match}.yaml").write_text(f"match: ^{match}$\nsteps:\n{lines}\n")


async def schedule(house: House, session_id: str, seconds: float = 60, prompt: str = "tick") -> None:
    await house.run(session_id, play(f"- wakeup: {seconds}", f"  prompt: '{prompt}'"))


async def row(house: House, session_id: str) -> dict[str, Any]:
    reply = await house.alice.get("/api/sessions")
    return next(row for row in reply.json["sessions"] if row["id"] == session_id)


async def messages(house: House, session_id: str) -> Rows:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    return cast("Rows", reply.json["messages"])


def pending(row: dict[str, Any]) -> tuple[Any, Any, Any]:
    return (
        row["pending_wakeup_at"],
        row["pending_wakeup_created_by_actor_id"],
        row["pending_wakeup_caused_by_actor_id"],
    )


NONE = (None, None, None)


@asynccontextmanager
async def watching(house: House, session_id: str) -> AsyncIterator[Tab]:
    async with tab(house.alice, session_id) as opened:
        yield opened


@pytest.mark.req("SESS-30", "SESS-31", "WS-39", "WS-47")
async def test_a_wakeup_begins_a_turn_of_its_own(house: House) -> None:
    scenario(house, "tick", "- say: tock")
    session_id = await house.create()
    assert pending(await row(house, session_id)) == NONE
    async with watching(house, session_id) as alice:
        await alice.say(session_id, play("- wakeup: 90", "  prompt: tick"))
        before = await alice.turn()
        fire_at = of(before, "session_running")[-1]["pending_wakeup_at"]
        scheduled = (fire_at, SYSTEM_ACTOR, ALICE)
        assert pending(of(before, "session_running")[-1]) == scheduled
        assert pending(await row(house, session_id)) == scheduled
        assert pending(await house.row(session_id)) == scheduled
        assert fire_at == "2026-03-01T12:01:30.000Z"
        moved_at = (await row(house, session_id))["updated_at"]
        frames = await alice.turn(200)
    assert (now() - START).total_seconds() == pytest.approx(100, abs=11)  # the sweep after 90 seconds
    assert types(frames) == ["wakeup", "queue_update", "session_running", "token", "done", "session_running"]
    assert all("seq" in frame for frame in of(frames, "wakeup"))
    began, ended = of(frames, "session_running")
    assert began["is_running"]
    assert pending(began) == NONE
    assert pending(ended) == NONE
    assert pending(await row(house, session_id)) == NONE
    after = await row(house, session_id)
    assert after["updated_at"] == moved_at
    last = (await messages(house, session_id))[-1]
    assert last["role"] == "assistant"
    assert last["blocks"] == [{"type": "wakeup"}, {"type": "text", "content": "tock"}]
    assert last["content"] == "tock"
    assert [m["role"] for m in await messages(house, session_id)] == ["user", "assistant", "assistant"]


async def test_it_runs_for_the_cause_of_the_session_and_in_its_name(house: House) -> None:
    session_id = await house.create()
    adapter = puppets(house)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(house.run, session_id)
        client = await adapter.prompted()
        result = await client.spec.host.call_tool("schedule_wakeup", {"delaySeconds": 1, "prompt": "tick"})
        assert not result.is_error
        assert "in 60 seconds" in result.text
        assert "at least 60" in result.text
        client.say(COMPLETED)
    await trio.sleep(70)
    client = await adapter.prompted(2)
    assert (client.prompts[-1].text, client.prompts[-1].source) == ("tick", "wakeup")
    client.say(COMPLETED)
    await trio.sleep(1)
    rows = await house.sql("SELECT source, actor_id, state FROM turns ORDER BY started_at")
    assert rows == [("api", ALICE, "completed"), ("wakeup", SYSTEM_ACTOR, "completed")]


@pytest.mark.parametrize(("asked", "seconds"), [(-5, 60), (0, 60), (60, 60), (61.5, 61.5), (3600, 3600), (1e9, 3600)])
async def test_the_delay_is_kept_within_bounds(house: House, asked: float, seconds: float) -> None:
    session_id = await house.create()
    result = await call(house, session_id, delaySeconds=asked, prompt="x")
    assert not result.is_error
    ((fire_at, created_at),) = await house.sql("SELECT fire_at, created_at FROM session_wakeups")
    assert _seconds(fire_at) - _seconds(created_at) == pytest.approx(seconds)


def _seconds(instant: str) -> float:
    return datetime.fromisoformat(instant).timestamp()


async def reasons(house: House, session_id: str, event_type: str) -> list[str]:
    return [e["details"]["reason"] for e in await house.events(session_id) if e["event_type"] == event_type]


async def call(house: House, session_id: str, tool: str = "schedule_wakeup", **given: Any) -> Any:
    """Calls the tool as a runtime does."""

    async def nobody(request: InteractionRequest) -> InteractionReply:
        raise AssertionError("nobody is asked here")

    return await Host(session_id, house.supervisor.house, nobody).call_tool(tool, given)


async def test_a_new_one_takes_the_place_of_the_pending_one(house: House) -> None:
    session_id = await house.create()
    await call(house, session_id, delaySeconds=60, prompt="one")
    result = await call(house, session_id, delaySeconds=120, prompt="two")
    assert "takes the place of the wakeup" in result.text
    rows = await house.sql("SELECT prompt, status FROM session_wakeups ORDER BY fire_at")
    assert rows == [("one", "cancelled"), ("two", "pending")]
    assert await reasons(house, session_id, "wakeup_cancelled") == ["replaced"]
    await trio.sleep(300)
    assert [m["role"] for m in await messages(house, session_id)] == ["assistant"]


@pytest.mark.parametrize("prompt", ["<<autonomous-loop>>", " <<autonomous-loop-dynamic>>\n"])
async def test_sentinels_stand_for_the_standard_text(house: House, prompt: str) -> None:
    adapter = puppets(house)
    session_id = await house.create()
    await call(house, session_id, delaySeconds=60, prompt=prompt)
    await trio.sleep(70)
    client = await adapter.prompted()
    assert client.prompts[0].text == CONTINUE
    client.say(COMPLETED)


@pytest.mark.parametrize("source", ["workflow", "external"])
async def test_sessions_that_others_drive_have_none(house: House, source: str) -> None:
    await system_session(house, "driven", source)
    result = await call(house, "driven", delaySeconds=60, prompt="x")
    assert result.is_error
    assert source in result.text
    assert await house.sql("SELECT count(*) FROM session_wakeups") == [(0,)]


async def test_a_play_in_a_wakeup_is_plain_text(house: House) -> None:
    session_id = await house.create()
    await call(house, session_id, delaySeconds=60, prompt=play("- say: played"))
    await trio.sleep(100)
    (message,) = await messages(house, session_id)
    assert message["blocks"][0] == {"type": "wakeup"}
    assert message["content"] != "played"


@pytest.mark.req("AGENT-17", "AGENT-18")
async def test_a_busy_session_gets_to_it_when_it_is_free(house: House) -> None:
    """Meanwhile it stands in the queue under a fixed label, and nobody can take it back."""
    scenario(house, "tick", "- say: tock")
    session_id = await house.create()
    async with watching(house, session_id) as alice:
        await alice.say(session_id, play("- wakeup: 60", "  prompt: tick", "- wait: 300", "- say: done"))
        shown = (await alice.until(lambda f: f["type"] == "queue_update" and f["queue"] != [], 200))[-1]
        (entry,) = shown["queue"]
        assert {key: entry[key] for key in ("preview", "source", "internal", "actor_id", "client_msg_id")} == {
            "preview": "Scheduled wakeup",
            "source": "wakeup",
            "internal": True,
            "actor_id": SYSTEM_ACTOR,
            "client_msg_id": None,
        }
        listed = await house.alice.get(f"/api/sessions/{session_id}/queue")
        assert listed.json["items"] == [entry]
        refused = await house.alice.delete(f"/api/sessions/{session_id}/queue/{entry['queue_id']}")
        assert (refused.status, refused.json["detail"]["code"]) == (403, "not_owner")
        async with tab(house.alice, session_id) as late:
            assert of(late.greeting, "session_status")[0]["agents"]["queue"] == [entry]
        # A message that comes meanwhile goes first.
        await alice.say(session_id, play("- say: first"))
        assert text(await alice.turn(400)) == "done"
        assert text(await alice.turn()) == "first"
        frames = await alice.turn()
        assert text(frames) == "tock"
        removed = [r for f in of(frames, "queue_update") for r in f.get("removed", [])]
        assert removed == [{"queue_id": entry["queue_id"], "client_msg_id": None, "reason": "started"}]
        await trio.sleep(100)
        assert text(await alice.quiet()) == ""


async def test_archiving_cancels_it(house: House) -> None:
    session_id = await house.create()
    await call(house, session_id, delaySeconds=60, prompt="x")
    listener = house.listen()
    await house.archive(session_id)
    assert [pending(frame) for frame in listener.of("session_running")] == [NONE]
    await trio.sleep(200)
    await house.alice.post(f"/api/sessions/{session_id}/unarchive")
    await trio.sleep(200)
    assert await messages(house, session_id) == []
    assert pending(await row(house, session_id)) == NONE
    assert await reasons(house, session_id, "wakeup_cancelled") == ["archived"]


async def test_deleting_takes_it_away(house: House) -> None:
    session_id = await house.create()
    await call(house, session_id, delaySeconds=60, prompt="x")
    assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
    assert await house.sql("SELECT count(*) FROM session_wakeups") == [(0,)]
    await trio.sleep(200)
    assert house.supervisor.house.schedule.pending(session_id) is None


async def test_a_session_that_is_set_aside_gets_to_it_when_that_is_lifted(house: House) -> None:
    session_id = await house.create()
    await call(house, session_id, delaySeconds=60, prompt="x")
    await house.sql("UPDATE sessions SET quarantined = 1, status = 'error' WHERE id = ?", session_id)
    await trio.sleep(200)
    assert await messages(house, session_id) == []
    await house.alice.post(f"/api/sessions/{session_id}/unarchive")
    await trio.sleep(30)
    assert len(await messages(house, session_id)) == 1


async def test_many_fire_at_once_and_wait_for_a_slot(database: InlineDatabase, tmp_path: Path) -> None:
    async with open_house(database, tmp_path / "home", limits=Limits(max_concurrent=2)) as house:
        scenario(house, "tick", "- wait: 5", "- say: tock")
        sessions = [await house.create() for _ in range(8)]
        for session_id in sessions:
            await call(house, session_id, delaySeconds=60, prompt="tick")
        await trio.sleep(120)
        for session_id in sessions:
            assert [m["content"] for m in await messages(house, session_id)] == ["tock"]


# --- the fallback ---------------------------------------------------------------------------------------------------


@asynccontextmanager
async def on_the_fallback(house: House) -> AsyncIterator[str]:
    """A session whose configured runtime can't be used."""
    object.__setattr__(house.supervisor.house.backends, "configured", "claude")
    yield await house.create()


@pytest.mark.req("SESS-30")
async def test_without_a_model_it_is_skipped_and_said_so(house: House) -> None:
    async with on_the_fallback(house) as session_id:
        await call(house, session_id, delaySeconds=60, prompt="tick")
        listener = house.listen()
        await trio.sleep(100)
        assert await messages(house, session_id) == []
        (event,) = [e for e in await house.events(session_id) if e["event_type"] == "wakeup_skipped"]
        assert "claude" in event["details"]["reason"]
        assert (event["actor_id"], event["caused_by_actor_id"]) == (SYSTEM_ACTOR, ALICE)
        assert [pending(frame) for frame in listener.of("session_running")] == [NONE]
        assert pending(await row(house, session_id)) == NONE


async def test_once_there_is_a_model_the_session_moves_to_it_and_runs(house: House) -> None:
    async with on_the_fallback(house) as session_id:
        await house.run(session_id)
        await call(house, session_id, delaySeconds=60, prompt="tick")
        adapter = PuppetAdapter(name="claude")
        cast("dict[str, Any]", house.supervisor.house.backends.adapters)["claude"] = adapter
        await trio.sleep(70)
        client = await adapter.prompted()
        assert client.prompts[0].text == "tick"
        client.say(COMPLETED)
        await trio.sleep(1)
        events = [e["event_type"] for e in await house.events(session_id)]
        assert events.count("backend_changed") == 1
        assert "wakeup_skipped" not in events
        assert (await house.row(session_id))["backend"] == "claude"


async def test_a_busy_session_on_the_fallback_moves_when_it_is_free(house: House) -> None:
    async with on_the_fallback(house) as session_id, tab(house.alice, session_id) as alice:
        await alice.say(session_id, play("- wakeup: 60", "  prompt: tick", "- wait: 200", "- say: done"))
        await alice.until("tool_result")
        adapter = PuppetAdapter(name="claude")
        cast("dict[str, Any]", house.supervisor.house.backends.adapters)["claude"] = adapter
        assert text(await alice.turn(300)) == "done"
        await trio.sleep(25)
        client = await adapter.prompted()
        assert client.prompts[0].text == "tick"
        client.say(COMPLETED)
        await trio.sleep(1)


# --- when things go wrong -------------------------------------------------------------------------------------------


async def test_a_sweep_that_fails_is_tried_again(house: House, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(PuppetAdapter):
        whole = False

        async def availability(self) -> Availability:
            if not self.whole:
                raise OSError("no such program")
            return Availability(True)

    broken = Broken(name="claude")
    session_id = await house.create()
    await house.sql("UPDATE sessions SET backend_reason = 'none' WHERE id = ?", session_id)
    object.__setattr__(house.supervisor.house.backends, "configured", "claude")
    cast("dict[str, Any]", house.supervisor.house.backends.adapters)["claude"] = broken
    await call(house, session_id, delaySeconds=60, prompt="tick")
    await trio.sleep(100)
    assert "the sweep over scheduled turns failed" in caplog.text
    broken.whole = True
    await trio.sleep(30)
    client = await broken.prompted()
    client.say(COMPLETED)
    await trio.sleep(1)


async def test_old_records_go(house: House) -> None:
    session_id = await house.create()
    for _ in range(3):
        await call(house, session_id, delaySeconds=60, prompt="x")
        await trio.sleep(100)
    assert await house.sql("SELECT count(*) FROM session_wakeups") == [(3,)]
    await house.sql("UPDATE session_wakeups SET created_at = '2026-01-01T00:00:00.000Z'")
    await call(house, session_id, delaySeconds=60, prompt="x")
    assert await house.sql("SELECT count(*) FROM session_wakeups") == [(1,)]


# --- crashes --------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(database: InlineDatabase, tmp_path: Path) -> Home:
    return Home(database, tmp_path / "home")


async def test_one_that_is_pending_survives_a_kill(home: Home) -> None:
    async with home.life() as life:
        scenario(life.house, "tick", "- say: tock")
        session_id = await life.house.create()
        await schedule(life.house, session_id)
        life.kill()
    await trio.sleep(1000)
    async with home.life(survived=True) as life:
        await trio.sleep(1)
        contents = [m["content"] for m in await messages(life.house, session_id) if m["role"] == "assistant"]
        assert contents == ["", "tock"]


async def test_it_fires_once_wherever_the_process_is_killed(home: Home) -> None:
    """Killed at every write around its start: then it either begins later, or began and is recorded as interrupted."""
    for fatal in range(1, 8):
        async with home.life(survived=True) as life:
            scenario(life.house, "tick", "- say: tock")
            session_id = await life.house.create()
            await call(life.house, session_id, delaySeconds=60, prompt="tick")
            life.mortal.fatal = life.mortal.writes + fatal
            await trio.sleep(70)
            life.kill()
        async with home.life(survived=True) as life:
            await trio.sleep(100)
            stored = await messages(life.house, session_id)
            assert [m["blocks"][0] for m in stored] == [{"type": "wakeup"}]
            assert stored[0]["content"].split("\n")[0] in ("tock", "[Interrupted by restart]")
            assert len(await life.house.sql("SELECT 1 FROM turns WHERE session_id = ?", session_id)) == 1


async def test_one_that_waits_in_the_queue_at_a_shutdown_runs_at_the_next_start(home: Home) -> None:
    async with home.life() as life:
        scenario(life.house, "tick", "- say: tock")
        session_id = await life.house.create()
        async with tab(life.house.alice, session_id) as alice:
            await alice.say(session_id, play("- wakeup: 60", "  prompt: tick", "- wait: 300"))
            await alice.until(lambda f: f["type"] == "queue_update" and f["queue"] != [], 200)
    async with home.life() as life:
        await trio.sleep(1)
        assert (await messages(life.house, session_id))[-1]["content"] == "tock"
