"""What a kill leaves behind, and what the next start makes of it."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import trio

from nerve.runtime.recovery import recover
from nerve.store.inline import InlineDatabase
from tests.runtime.mortal_home import Home
from tests.runtime.tabs import Frame, numbers, of, tab, text, types
from tests.sessions.session_house import House, play

CUT_OFF = play(
    "- think: Let me see.",
    "- say: 'Once upon '",
    "- tool: Bash",
    "  result: done",
    "- say: 'a time'",
    "- tool: Read",
    "  output: [half]",
    "  seconds: 60",
)


@pytest.fixture
def home(database: InlineDatabase, tmp_path: Path) -> Home:
    return Home(database, tmp_path / "home")


async def rows(house: House, session_id: str) -> list[dict[str, Any]]:
    reply = await house.alice.get(f"/api/sessions/{session_id}/messages")
    return list(reply.json["messages"])


async def logged(home: Home, session_id: str) -> list[Frame]:
    found = await home.sql("SELECT seq, frame FROM frames WHERE session_id = ? ORDER BY seq", session_id)
    frames = [orjson.loads(frame) for _, frame in found]
    assert [seq for seq, _ in found] == numbers(frames)
    return frames


async def started(house: House, session_id: str, message: str, client_msg_id: str | None = None) -> None:
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, message, client_msg_id)
        await alice.until(lambda f: f["type"] == "queue_update" and "removed" in f)


@pytest.mark.req("SESS-29")
async def test_a_turn_that_was_cut_off_is_marked_and_not_run_again(home: Home) -> None:
    async with home.life() as life:
        session_id = await life.house.create()
        witness = life.witness(session_id)
        await started(life.house, session_id, CUT_OFF, "c1")
        await trio.sleep(31)
        life.kill()
    shown = [f for f in witness.frames if "seq" in f]
    assert types(shown)[-3:] == ["token", "tool_use", "tool_output"]
    async with home.life() as life:
        assert life.recovered.interrupted == (await home.sql("SELECT id FROM turns"))[0]
        assert (life.recovered.quarantined, life.recovered.waiting) == ((), ())
        user, assistant = await rows(life.house, session_id)
        assert user["content"] == CUT_OFF
        assert assistant["content"] == "Once upon a time\n\n[Interrupted by restart]"
        assert assistant["thinking"] == "Let me see."
        blocks = assistant["blocks"]
        assert [block["type"] for block in blocks] == ["thinking", "text", "tool_call", "text", "tool_call", "text"]
        assert (blocks[2]["result"], blocks[2]["is_error"]) == ("done", False)
        assert (blocks[4]["result"], blocks[4]["is_error"]) == ("[Interrupted]", True)
        assert blocks[5] == {"type": "text", "content": "[Interrupted by restart]"}
        frames = await logged(home, session_id)
        result, error = frames[-2:]
        assert (result["type"], result["result"], result["is_error"]) == ("tool_result", "[Interrupted]", True)
        assert (error["type"], error["error"]) == ("error", "Interrupted by restart")
        assert result["seq"] > max(numbers(shown))
        idle, interrupted, *_ = await life.house.events(session_id)
        (turn_id,) = life.recovered.interrupted
        assert (interrupted["event_type"], interrupted["details"]) == ("interrupted", {"turn_id": turn_id})
        assert (idle["event_type"], idle["details"]) == ("idle", {"reason": "orphan_recovery"})
        assert (interrupted["actor_id"], idle["actor_id"]) == (None, None)
        assert (await life.house.row(session_id))["status"] == "idle"
        assert not life.house.supervisor.live(session_id).is_running
        # The client that comes back has what it lost as a gap, and then the end.
        async with tab(life.house.alice, session_id, after_seq=max(numbers(shown))) as alice:
            gap, *rest = await alice.beat()
        assert (gap["type"], gap["from_seq"], gap["to_seq"]) == ("gap", max(numbers(shown)) + 1, result["seq"] - 1)
        assert rest == [result, error]
        # The conversation goes on, and remembers the message.
        reply = await life.house.run(session_id, play("- say: '${history}'"))
        assert reply.json["response"].count("Once upon") == 1
    assert await home.sql("SELECT state FROM turns ORDER BY started_at") == [("interrupted",), ("completed",)]


async def test_a_turn_that_had_not_said_anything(home: Home) -> None:
    async with home.life() as life:
        session_id = await life.house.create()
        await started(life.house, session_id, play("- wait: 60"))
        life.kill()
    async with home.life() as life:
        _, assistant = await rows(life.house, session_id)
        assert assistant["content"] == "[Interrupted by restart]"
        assert assistant["blocks"] == [{"type": "text", "content": "[Interrupted by restart]"}]


async def test_a_turn_whose_runtime_was_not_there_yet(home: Home) -> None:
    """The native id was never stored, so the session can't be resumed."""
    async with home.life() as life:
        session_id = await life.house.create()
        life.mortal.fatal = life.mortal.writes + 2  # the message is taken in, its turn begins
        async with tab(life.house.alice, session_id) as alice:
            await alice.say(session_id, "Hello")
            await alice.quiet()
        assert life.mortal.dead
    async with home.life() as life:
        stopped = (await life.house.events(session_id))[0]
        assert (stopped["event_type"], stopped["details"]) == ("stopped", {"reason": "orphan_recovery_no_sdk_id"})
        assert (await life.house.row(session_id))["status"] == "stopped"
        assert [row["content"] for row in await rows(life.house, session_id)] == ["Hello", "[Interrupted by restart]"]


async def test_what_waited_runs_once_and_in_order(home: Home) -> None:
    async with home.life() as life:
        first, second = await life.house.create(), await life.house.create()
        for session_id in (first, second):
            await started(life.house, session_id, play("- wait: 60"))
            async with tab(life.house.alice, session_id) as alice:
                for word in ("one", "two"):
                    await alice.say(session_id, play(f"- say: {word}"), word)
                await alice.until(lambda f: f["type"] == "queue_update" and len(f["queue"]) == 2)
        life.kill()
    async with home.life() as life:
        assert sorted(life.recovered.waiting) == sorted([first, second])
        # A duplicate is still known as one.
        async with tab(life.house.alice, first) as alice:
            await alice.say(first, play("- say: one"), "one")
            await alice.until(
                lambda f: f["type"] == "queue_update" and f.get("removed", [{}])[0].get("reason") == "duplicate"
            )
        await trio.sleep(5)
        for session_id in (first, second):
            contents = [row["content"] for row in await rows(life.house, session_id) if row["role"] == "assistant"]
            assert contents == ["[Interrupted by restart]", "one", "two"]
    assert await home.sql("SELECT count(*) FROM queue_entries") == [(0,)]
    states = await home.sql("SELECT state, count(*) FROM turns GROUP BY state ORDER BY state")
    assert states == [("completed", 4), ("interrupted", 2)]


async def test_recovery_done_twice_changes_nothing(home: Home) -> None:
    async with home.life() as life:
        session_id = await life.house.create()
        await started(life.house, session_id, CUT_OFF)
        await trio.sleep(1)
        life.kill()
    async with home.life() as life:
        before = await _everything(home)
        again = await recover(life.house.supervisor.house, f"generation-{home.lives}")
        assert (again.interrupted, again.quarantined) == ((), ())
        assert await _everything(home) == before


async def _everything(home: Home) -> list[Any]:
    tables = ("messages", "turns", "frames", "session_events", "queue_entries")
    sessions = "SELECT id, status, quarantined, seq_reserved, message_count FROM sessions"
    return [await home.sql(sessions), *[await home.sql(f"SELECT * FROM {table}") for table in tables]]


@pytest.mark.parametrize("writes", range(8))
async def test_a_kill_within_recovery_loses_and_repeats_nothing(home: Home, writes: int) -> None:
    async with home.life() as life:
        sessions = [await life.house.create() for _ in range(3)]
        for session_id in sessions:
            await started(life.house, session_id, CUT_OFF)
        await trio.sleep(1)
        life.kill()
    await home.run_for(0, fatal=writes)
    async with home.life() as life:
        for session_id in sessions:
            contents = [row["content"] for row in await rows(life.house, session_id)]
            assert contents == [CUT_OFF, "Once upon a time\n\n[Interrupted by restart]"]
            kinds = [event["event_type"] for event in await life.house.events(session_id)]
            assert kinds == ["idle", "interrupted", "title_changed", "started", "created"] or kinds == [
                "idle",
                "interrupted",
                "started",
                "title_changed",
                "created",
            ]
            frames = await logged(home, session_id)
            assert len(of(frames, "error")) == 1


async def test_nothing_runs_twice_after_many_kills(home: Home) -> None:
    """Kills at each of the first writes of a start with a full queue."""
    async with home.life() as life:
        session_id = await life.house.create()
        await started(life.house, session_id, play("- wait: 60"))
        async with tab(life.house.alice, session_id) as alice:
            for n in range(5):
                await alice.say(session_id, play(f"- say: 'answer {n}'"), str(n))
            await alice.until(lambda f: f["type"] == "queue_update" and len(f["queue"]) == 5)
        life.kill()
    fatal = 4
    while await home.run_for(30, fatal=fatal, survived=True):
        fatal += 1
        assert fatal < 60
    async with home.life() as life:
        contents = [row["content"] for row in await rows(life.house, session_id)]
    users = [content for content in contents if content.startswith("#!")]
    assert users == [play("- wait: 60"), *[play(f"- say: 'answer {n}'") for n in range(5)]]
    assert len(contents) == 2 * len(users)
    assert await home.sql("SELECT count(*) FROM turns") == [(6,)]
    assert await home.sql("SELECT count(*) FROM turns WHERE state = 'running'") == [(0,)]


# --- the loop breaker (decisions D8) ----------------------------------------------------------------------------------


async def die(home: Home, session_id: str | None, *, survived: bool = False) -> None:
    """A start that is killed, with a turn of the session running if one is named."""
    async with home.life(survived=survived) as life:
        if session_id is not None:
            await _run_into_it(life.house, session_id)
        life.kill()


async def _run_into_it(house: House, session_id: str) -> None:
    if not house.supervisor.live(session_id).is_running:
        await started(house, session_id, play("- say: deadly", "- wait: 600"))
    await trio.sleep(1)


async def quarantined(home: Home, session_id: str) -> bool:
    return (await home.sql("SELECT quarantined FROM sessions WHERE id = ?", session_id)) == [(1,)]


async def fresh(home: Home) -> str:
    async with home.life() as life:
        return await life.house.create()


async def test_three_quick_deaths_set_a_session_aside(home: Home) -> None:
    session_id = await fresh(home)
    async with home.life() as life:
        innocent = await life.house.create()
        await _run_into_it(life.house, session_id)
        life.kill()
    await die(home, session_id)
    async with home.life() as life:
        await _run_into_it(life.house, session_id)
        async with tab(life.house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: later"), "later")
            await alice.until("queue_update")
        life.kill()
    async with home.life() as life:
        assert life.recovered.quarantined == (session_id,)
        assert life.recovered.waiting == ()
        house = life.house
        row = await house.row(session_id)
        assert (row["status"], row["quarantined"]) == ("error", True)
        assert "quarantined" in [event["event_type"] for event in await house.events(session_id)]
        # Its queue is kept and visible, also what comes in now; others run.
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: last"), "last")
            (update,) = await alice.until("queue_update")
            assert [entry["client_msg_id"] for entry in update["queue"]] == ["later", "last"]
            assert await alice.quiet(60) == []
            assert (await house.run(innocent, play("- say: fine"))).json["response"] == "fine"
            await alice.quiet()
            reply = await house.alice.post(f"/api/sessions/{session_id}/stop", json={})
            assert reply.json["turn"] == "not_running"
            assert [text(await alice.turn()) for _ in range(2)] == ["later", "last"]
        assert not await quarantined(home, session_id)
        assert (await house.row(session_id))["status"] == "active"


async def test_unarchive_lifts_it(home: Home) -> None:
    session_id = await fresh(home)
    for _ in range(3):
        await die(home, session_id)
    async with home.life() as life:
        assert await quarantined(home, session_id)
        async with tab(life.house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: at last"))
            await alice.until("queue_update")
            assert (await life.house.alice.post(f"/api/sessions/{session_id}/unarchive")).status == 200
            assert text(await alice.turn()) == "at last"


@pytest.mark.parametrize("between", ["a clean stop", "a long life", "another session's turn"])
async def test_what_breaks_the_row(home: Home, between: str) -> None:
    session_id, other = await fresh(home), await fresh(home)
    await die(home, session_id)
    await die(home, session_id)
    match between:
        case "a clean stop":
            async with home.life() as life:
                await _run_into_it(life.house, session_id)
        case "a long life":
            await die(home, session_id, survived=True)
        case _:
            await die(home, other)
    await die(home, session_id)
    await die(home, session_id)
    async with home.life():
        assert not await quarantined(home, session_id)
    # And the row begins anew.
    for _ in range(3):
        await die(home, session_id)
    async with home.life():
        assert await quarantined(home, session_id)
        assert not await quarantined(home, other)


async def test_deaths_without_a_turn_set_nothing_aside(home: Home) -> None:
    session_id = await fresh(home)
    for _ in range(5):
        await die(home, None)
    async with home.life() as life:
        assert life.recovered.quarantined == ()
        assert (await life.house.run(session_id, play("- say: hi"))).json["response"] == "hi"


async def test_a_quarantined_session_that_is_archived_comes_back_with_a_message(home: Home) -> None:
    session_id = await fresh(home)
    for _ in range(3):
        await die(home, session_id)
    async with home.life() as life:
        await life.house.archive(session_id, force=True)
        assert (await life.house.run(session_id, play("- say: hi"))).json["response"] == "hi"
        assert not await quarantined(home, session_id)
