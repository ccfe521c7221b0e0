"""Binding a socket to a session: what it is told first, and how it catches up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
import trio

from nerve.runtime.limits import Limits
from nerve.store.inline import InlineDatabase
from tests.asgi_client import Closed
from tests.runtime.tabs import Frame, Tab, numbers, of, tab, text, types
from tests.sessions.session_house import House, open_house, play

SLOW = play("- say: 'one two three '", "- tool: Bash", "- wait: 2", "- say: four five", "  pace: 0.5")


def replayed(frames: list[Frame]) -> list[Frame]:
    return [frame for frame in frames if "seq" in frame or frame["type"] == "gap"]


async def after(tab: Tab, session_id: str, seq: int) -> tuple[Frame, list[Frame]]:
    """Switch with a number: the status, and what follows it at once."""
    *_, status = await tab.switch(session_id, after_seq=seq)
    return status, replayed(await tab.beat())


@pytest.mark.req("WS-43", "WS-76", "WS-46")
async def test_a_new_socket_is_bound_to_main(house: House) -> None:
    async with tab(house.alice) as alice:
        switched, status = alice.greeting
    assert switched == {"type": "session_switched", "session_id": "main"}
    agents = status.pop("agents")
    assert status == {
        "type": "session_status",
        "session_id": "main",
        "is_running": False,
        "status": "created",
        "last_seq": 0,
    }
    assert set(agents) == {"session_id", "agents", "summary", "capabilities", "queue", "generated_at"}
    assert (agents["session_id"], agents["agents"], agents["queue"]) == ("main", [], [])
    assert set(agents["capabilities"]) == {
        "stop_task",
        "transcript",
        "output",
        "interrupt_spares_background",
        "quiet_after_minutes",
    }
    assert agents["summary"]["live"] == 0
    assert agents["generated_at"].endswith("Z")


@pytest.mark.req("WS-43")
async def test_the_query_says_where_a_socket_is_bound_first(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- say: hi"))
    async with tab(house.alice, session_id) as alice:
        assert [frame["session_id"] for frame in alice.greeting] == [session_id] * 2
        assert (alice.greeting[-1]["status"], alice.greeting[-1]["last_seq"]) == ("active", 3)
    async with tab(house.alice, session_id, after_seq=1) as alice:
        assert types(replayed(await alice.beat())) == ["token", "done"]
    async with tab(house.alice, after_seq=0) as alice:  # of main, where nothing has happened
        assert alice.greeting[-1]["session_id"] == "main"
        assert await alice.beat() == []


@pytest.mark.req("WS-43")
@pytest.mark.parametrize("seq", ["-1", "x", "", "1.5", "9" * 5000, "\u0663"])
async def test_a_number_that_is_none_is_a_bad_frame(house: House, seq: str) -> None:
    async with house.alice.websocket("/ws", query={"after_seq": seq}) as socket:
        opened = Tab(socket)
        error, *rest = await opened.until("session_status")
        assert error == {"type": "error", "session_id": "main", "error": "bad_frame"}
        assert [frame["session_id"] for frame in rest] == ["main", "main"]


@pytest.mark.req("WS-12")
async def test_an_unknown_session_leaves_the_binding(house: House) -> None:
    session_id = await house.create()
    gone = {"type": "error", "session_id": "nowhere", "error": "session_not_found"}
    async with house.alice.websocket("/ws", query={"session_id": "nowhere"}) as socket:
        first = await Tab(socket).until("session_status")
        assert first[0] == gone
        assert [frame["session_id"] for frame in first[1:]] == ["main", "main"]
    async with tab(house.alice, session_id) as alice:
        for frame in (
            {"type": "switch_session", "session_id": "nowhere"},
            {"type": "switch_session", "session_id": "nowhere", "after_seq": 3},
            {"type": "message", "session_id": "nowhere", "content": "Hello"},
        ):
            await alice.socket.send_json(frame)
            assert await alice.until("error") == [gone]
        await alice.say("nowhere", "Hello", "c1")
        assert await alice.until("error") == [{**gone, "client_msg_id": "c1"}]
        await house.run(session_id, play("- say: still here"))
        assert text(await alice.turn()) == "still here"


@pytest.mark.req("WS-45", "WS-44")
async def test_a_bind_in_mid_turn_brings_what_was_said(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice, tab(house.bob, session_id) as witness:
        await alice.say(session_id, SLOW)
        await witness.until("tool_result")
        # Also somebody else, and also the one who sent the message.
        async with tab(house.bob, session_id) as late, tab(house.alice, session_id) as again:
            status = late.greeting[-1]
            assert status["is_running"]
            assert types(status["buffered_events"]) == ["user_message", "token", "tool_use", "tool_result"]
            assert status["buffered_events"] == [f for f in witness.frames if "seq" in f]
            assert again.greeting[-1]["buffered_events"] == status["buffered_events"]
            assert status["last_seq"] == witness.frames[-1]["seq"]
            rest = await late.turn()
            await witness.turn()
        assert replayed(rest) == [f for f in witness.frames if f.get("seq", 0) > status["last_seq"]]
        assert "buffered_events" not in (await witness.switch(session_id))[-1]


@pytest.mark.req("WS-45")
async def test_a_bind_at_any_moment_misses_nothing_and_repeats_nothing(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as witness, trio.open_nursery() as nursery:
        seen: list[list[int]] = []
        whole: list[int] = []

        async def late(delay: float, after_seq: int | None) -> None:
            await trio.sleep(delay)
            async with tab(house.alice, session_id, after_seq) as one:
                told = one.greeting[-1].get("buffered_events", []) + await one.quiet(2)
            # Whoever comes after the end, without a number, has nothing to catch up with.
            late_comer = after_seq is None and not one.greeting[-1]["is_running"] and not numbers(told)
            seen.append(whole if late_comer else numbers(told))

        nursery.start_soon(house.run, session_id, play("- say: a b c d e f g h i j", "  pace: 0.02", "- tool: Bash"))
        for step in range(40):
            nursery.start_soon(late, step * 0.005, None)
            nursery.start_soon(late, step * 0.005, 0)
        whole += numbers(await witness.turn())
    assert whole == list(range(1, len(whole) + 1))
    assert len(seen) == 80
    assert all(one == whole for one in seen)


@pytest.mark.req("WS-44")
async def test_coming_back_with_a_number(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- say: hi", "- tool: Bash", "- say: there"))
    async with tab(house.alice, session_id) as alice:
        status, whole = await after(alice, session_id, 0)
        assert types(whole) == ["user_message", "token", "tool_use", "tool_result", "token", "done"]
        assert numbers(whole) == [1, 2, 3, 4, 5, 6]
        assert (status["last_seq"], "buffered_events" in status) == (6, False)
        for seq in range(7):
            status, frames = await after(alice, session_id, seq)
            assert frames == whole[seq:]
        status, frames = await after(alice, session_id, 7)
        reset = {"type": "gap", "session_id": session_id, "from_seq": 1, "to_seq": 6, "reset": True}
        assert frames == [reset, *whole]


@pytest.mark.req("WS-44", "WS-45")
async def test_coming_back_in_mid_turn_leaves_the_buffered_events_out(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as witness, tab(house.alice, session_id) as alice:
        await witness.say(session_id, SLOW)
        await alice.until("token")
        status, frames = await after(alice, session_id, 1)
        assert status["is_running"]
        assert "buffered_events" not in status
        assert frames == of(alice.frames, "token")[:1] + of(frames, "tool_use", "tool_result")
        rest = frames + await alice.turn()
        await witness.turn()
    assert numbers(rest) == list(range(2, numbers(rest)[-1] + 1))
    assert [f for f in rest if "seq" in f] == [f for f in witness.frames if "seq" in f]


@asynccontextmanager
async def bounded(database: InlineDatabase, tmp_path: Path, **limits: Any) -> AsyncIterator[tuple[House, str, Tab]]:
    """A house of small bounds, a session, and a witness of it."""
    async with open_house(database, tmp_path / "home", limits=Limits(**limits)) as house:
        session_id = await house.create()
        async with tab(house.bob, session_id) as witness:
            yield house, session_id, witness


@pytest.mark.req("WS-45")
async def test_what_is_kept_ends_with_the_turn_and_the_rest_is_a_gap(database: InlineDatabase, tmp_path: Path) -> None:
    async with bounded(database, tmp_path, log_frames=5) as (house, session_id, witness):
        tools = [line for n in range(6) for line in (f"- tool: T{n}",)]
        await house.run(session_id, play(*tools, "- say: end"))
        whole = [f for f in await witness.turn() if "seq" in f]
        assert len(whole) == 15
        assert [seq for (seq,) in await house.sql("SELECT seq FROM frames ORDER BY seq")] == numbers(whole)[-5:]
        async with tab(house.alice, session_id) as alice:
            for seq in (0, 1, 9):
                _, frames = await after(alice, session_id, seq)
                gap = {"type": "gap", "session_id": session_id, "from_seq": seq + 1, "to_seq": 10}
                assert frames == [gap, *whole[-5:]]
            assert (await after(alice, session_id, 10))[1] == whole[-5:]
            assert (await after(alice, session_id, 12))[1] == whole[-3:]
            reset = {"type": "gap", "session_id": session_id, "from_seq": 11, "to_seq": 15, "reset": True}
            assert (await after(alice, session_id, 99))[1] == [reset, *whole[-5:]]


@pytest.mark.req("WS-45")
async def test_everything_of_the_running_turn_is_kept_and_a_day_of_the_others(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- say: old"))
    await trio.sleep(24 * 3600 + 1)
    async with tab(house.alice, session_id) as alice:
        assert types((await after(alice, session_id, 0))[1]) == ["user_message", "token", "done"]
        await house.run(session_id, play("- say: new"))
        await alice.turn()
        gap, *frames = (await after(alice, session_id, 0))[1]
        assert (gap["from_seq"], gap["to_seq"]) == (1, 3)
        assert text(frames) == "new"


@pytest.mark.req("WS-45")
async def test_a_log_of_which_nothing_is_kept(house: House) -> None:
    session_id = await house.create()
    await house.run(session_id, play("- say: old"))
    await house.sql("DELETE FROM frames")
    async with tab(house.alice, session_id) as alice:
        assert (await after(alice, session_id, 1))[1] == [
            {"type": "gap", "session_id": session_id, "from_seq": 2, "to_seq": 3}
        ]
        assert (await after(alice, session_id, 3))[1] == []
        assert (await after(alice, session_id, 4))[1] == [
            {"type": "gap", "session_id": session_id, "from_seq": 4, "to_seq": 3, "reset": True}
        ]


@pytest.mark.req("WS-45")
@pytest.mark.parametrize("pause", [0.0, 1.0], ids=["still unsaved", "saved"])
async def test_buffered_events_hold_the_newest_that_keep_the_number(
    database: InlineDatabase, tmp_path: Path, pause: float
) -> None:
    async with bounded(database, tmp_path, log_frames=4) as (house, session_id, witness):
        await witness.say(session_id, play(*[f"- tool: T{n}" for n in range(5)], "- say: end", "- wait: 5"))
        await witness.until("token")
        await trio.sleep(pause)
        async with tab(house.alice, session_id) as alice:
            events = alice.greeting[-1]["buffered_events"]
            assert events == [f for f in witness.frames if "seq" in f][-4:]
            await alice.turn()


@pytest.mark.req("WS-45")
@pytest.mark.parametrize("character", ["x", "\N{SNOWMAN}"])
async def test_buffered_events_keep_their_bound_in_bytes(
    database: InlineDatabase, tmp_path: Path, character: str
) -> None:
    async with bounded(database, tmp_path, buffer_bytes=10_000) as (house, session_id, witness):
        lines = [f"- think: {character * 500}", f"- say: {character * 500}"] * 20
        await witness.say(session_id, play(*lines, "- tool: Bash", "- wait: 5"))
        await witness.until("tool_result")
        async with tab(house.alice, session_id) as alice:
            status = alice.greeting[-1]
            events = status["buffered_events"]
            shown = [f for f in witness.frames if "seq" in f]
            assert events == shown[-len(events) :]
            size = 600 if character == "x" else 1600
            assert 10_000 - size <= sum(_size(event) for event in events) <= 10_000
            assert status["last_seq"] == shown[-1]["seq"]
            await alice.turn()


def _size(event: Frame) -> int:
    return len(orjson.dumps(event))


@pytest.mark.req("WS-45")
async def test_one_frame_beyond_the_bound_is_shown_alone(database: InlineDatabase, tmp_path: Path) -> None:
    async with bounded(database, tmp_path, buffer_bytes=1000) as (house, session_id, witness):
        await witness.say(session_id, play(f"- tool: Bash\n  result: {'x' * 5000}", "- wait: 5"))
        await witness.until("tool_result")
        async with tab(house.alice, session_id) as alice:
            assert [f["type"] for f in alice.greeting[-1]["buffered_events"]] == ["tool_result"]
            await alice.turn()


@pytest.mark.req("WS-45")
@pytest.mark.slow
async def test_a_long_log_comes_page_by_page(house: House) -> None:
    session_id = await house.create()
    async with tab(house.bob, session_id) as witness:
        tools = [f"- tool: T{n}\n  result: {'x' * 200}" for n in range(900)]
        await witness.say(session_id, play(*tools, "- wait: 5"))
        await trio.sleep(1)
        shown = [f for f in await witness.quiet() if "seq" in f]
        assert len(shown) == 1800
        async with tab(house.alice, session_id) as alice:
            assert alice.greeting[-1]["buffered_events"][1:] == shown
            _, frames = await after(alice, session_id, 100)
            frames += await alice.turn()
            await witness.turn()
    assert numbers(frames) == list(range(101, numbers(witness.frames)[-1] + 1))


async def test_a_replay_is_dropped_when_the_socket_switches(house: House) -> None:
    first, second = await house.create(), await house.create()
    await house.run(first, play(*[f"- tool: T{n}" for n in range(400)]))
    await house.run(second, play("- say: hi"))
    async with tab(house.alice) as alice:
        for _ in range(5):
            await alice.send("switch_session", session_id=first, after_seq=0)
            await alice.send("switch_session", session_id=second, after_seq=0)
        frames = await alice.quiet()
        last = max(n for n, frame in enumerate(frames) if frame["type"] == "session_status")
        assert numbers(frames[last:]) == [1, 2, 3]
        assert {frame["session_id"] for frame in frames[last:]} == {second}


@pytest.mark.req("WS-12")
async def test_switching_to_where_one_is_starts_afresh(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, SLOW)
        await alice.until("tool_result")
        status = (await alice.switch(session_id))[-1]
        assert types(status["buffered_events"]) == ["user_message", "token", "tool_use", "tool_result"]
        rest = await alice.turn()
    assert numbers(rest) == list(range(status["last_seq"] + 1, numbers(rest)[-1] + 1))
    assert len(of(rest, "done")) == 1


async def test_a_deleted_session_keeps_its_sockets(house: House) -> None:
    session_id = await house.create()
    async with tab(house.alice, session_id) as alice:
        await alice.say(session_id, SLOW)
        await alice.until("tool_result")
        assert (await house.alice.delete(f"/api/sessions/{session_id}")).status == 200
        frames = await alice.quiet()
        assert types(replayed(frames)) == ["error"]
        assert of(frames, "session_running")[-1]["is_running"] is False
        await alice.say(session_id, "Anybody?", "c1")
        assert (await alice.until("error"))[-1]["error"] == "session_not_found"
        await alice.switch("main")
        await alice.say("main", play("- say: hi"))
        assert text(await alice.turn()) == "hi"


@pytest.mark.req("WS-06")
async def test_an_account_that_is_disabled_loses_its_sockets_and_nothing_else(house: House) -> None:
    async with tab(house.alice) as one, tab(house.alice) as two, tab(house.bob) as bob:
        house.services.hub.close_account("acc_alice", 1008, "account disabled")
        # What it says from now on is not heard.
        await one.say("main", play("- say: hi"))
        for each in (one, two):
            assert await each.socket.expect_close() == Closed(1008, "account disabled")
        assert await bob.beat() == []
    assert await house.sql("SELECT count(*) FROM turns") == [(0,)]
    assert len(house.services.hub) == 0


@pytest.mark.req("WS-28")
async def test_what_closes_a_socket(house: House) -> None:
    async with tab(house.alice) as alice:
        await alice.socket.send_bytes(b'{"type": "ping"}')
        assert await alice.socket.expect_close() == Closed(1003, "text frames only")
    async with tab(house.alice) as alice:
        await alice.socket.send_text('{"type": "ping", "x": "' + "x" * 1024 * 1024 + '"}')
        assert await alice.socket.expect_close() == Closed(1009, "frame too big")
    async with tab(house.alice) as alice:
        for bad in ("{", "[]", '{"type": "message"}'):
            await alice.socket.send_text(bad)
            assert (await alice.until("error")) == [{"type": "error", "session_id": "main", "error": "bad_frame"}]
        await alice.send("from_the_future", session_id="main")
        assert await alice.beat() == []


async def test_nothing_is_left_of_sockets_that_have_gone(house: House) -> None:
    session_id = await house.create()
    for _ in range(3):
        async with tab(house.alice, session_id) as alice:
            await alice.say(session_id, play("- say: hi"))
            await alice.turn()
            await alice.switch("main", after_seq=0)
    hub = house.services.hub
    assert len(hub) == 0
    assert not hub.has_bound(session_id)
    assert not hub.has_bound("main")
    assert house.supervisor.last_seq("main") is None
